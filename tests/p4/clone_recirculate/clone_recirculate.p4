// One byte chooses: clone in ingress, clone in egress, resubmit, recirculate, truncate. Metadata that is in a field list survives.
// (A recirculated packet is an ordinary one again when it reaches egress, so egress must look at something else to stop.)
#include "../include/common.p4"

header op_t {
    bit<8> op;
    bit<8> seen;
}

struct headers_t { op_t op; }
struct meta_t {
    @field_list(1)
    bit<8> kept;
    bit<8> lost;
}

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.op);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control SwitchIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 2;
        if (!hdr.op.isValid()) {
            mark_to_drop(sm);
        } else if (sm.instance_type == 6) {
            hdr.op.seen = meta.kept + meta.lost;
        } else if (sm.instance_type == 4) {
            hdr.op.seen = hdr.op.seen + 0x40 + meta.kept;
            sm.egress_spec = 5;
        } else if (hdr.op.op == 1) {
            meta.kept = 7;
            meta.lost = 9;
            clone_preserving_field_list(CloneType.I2E, 3, 1);
        } else if (hdr.op.op == 3) {
            meta.kept = 5;
            meta.lost = 11;
            resubmit_preserving_field_list(1);
        } else if (hdr.op.op == 5) {
            truncate(3);
        }
    }
}

control SwitchEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (sm.instance_type == 1) {
            hdr.op.seen = 0xc0 + meta.kept + meta.lost;
        } else if (sm.instance_type == 2) {
            hdr.op.seen = hdr.op.seen + 0xe0;
        } else if (hdr.op.op == 2) {
            hdr.op.seen = 1;
            clone(CloneType.E2E, 3);
        } else if (hdr.op.op == 4 && hdr.op.seen < 0x40) {
            meta.kept = 2;
            recirculate_preserving_field_list(1);
        }
    }
}
control Compute(inout headers_t hdr, inout meta_t meta) { apply { } }
control SwitchDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }

V1Switch(P(), Verify(), SwitchIngress(), SwitchEgress(), Compute(), SwitchDeparser()) main;
