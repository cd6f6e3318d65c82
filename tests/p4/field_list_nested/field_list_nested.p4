// A resubmitted packet keeps what `@field_list(1)` names, in nested structs, too; on a struct it names all members.
#include "../include/common.p4"

header op_t { bit<8> first; bit<8> second; bit<8> third; bit<8> fourth; }
struct headers_t { op_t op; }
struct inner_t {
    @field_list(1)
    bit<8> kept;
    bit<8> lost;
}
struct whole_t { bit<8> a; }
struct outer_t {
    inner_t inner;
    @field_list(1)
    whole_t whole;
    @field_list(2)
    bit<8> other;
}
struct meta_t { outer_t outer; }

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
        if (sm.instance_type == 6) {
            hdr.op.first = meta.outer.inner.kept;
            hdr.op.second = meta.outer.inner.lost;
            hdr.op.third = meta.outer.whole.a;
            hdr.op.fourth = meta.outer.other;
        } else {
            meta.outer.inner.kept = 1;
            meta.outer.inner.lost = 2;
            meta.outer.whole.a = 3;
            meta.outer.other = 4;
            resubmit_preserving_field_list(1);
        }
    }
}

control SwitchEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }

control Update(inout headers_t hdr, inout meta_t meta) { apply { } }

control Deparse(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.op); } }

V1Switch(P(), Verify(), SwitchIngress(), SwitchEgress(), Update(), Deparse()) main;
