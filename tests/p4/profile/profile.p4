// Action profiles and selectors: entries that point at shared members, groups picked by a hash.
#include "../include/common.p4"

header pair_t {
    bit<8> key;
    bit<8> flow;
    bit<8> result;
}

struct headers_t { pair_t pair; }
struct meta_t { }

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.pair);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control SwitchIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action_profile(32) shared;
    action_selector(HashAlgorithm.crc16, 64, 14) balanced;

    action send(port_t port, bit<8> value) {
        sm.egress_spec = port;
        hdr.pair.result = value;
    }
    action drop() { mark_to_drop(sm); }

    table members {
        key = { hdr.pair.key : exact; }
        actions = { send; drop; }
        implementation = shared;
    }
    table groups {
        key = {
            hdr.pair.key  : exact;
            hdr.pair.flow : selector;
        }
        actions = { send; drop; }
        implementation = balanced;
    }
    apply {
        mark_to_drop(sm);
        if (hdr.pair.isValid()) {
            if (hdr.pair.key < 0x80) {
                members.apply();
            } else {
                groups.apply();
            }
        }
    }
}

control SwitchEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control Compute(inout headers_t hdr, inout meta_t meta) { apply { } }
control SwitchDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }

V1Switch(P(), Verify(), SwitchIngress(), SwitchEgress(), Compute(), SwitchDeparser()) main;
