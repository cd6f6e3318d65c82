// Every match kind in two tables: ternary with priorities, ranges, optional, and entries that the program itself gives.
#include "../include/common.p4"

header key_t {
    bit<8>  a;
    bit<16> b;
    bit<8>  c;
    bit<8>  result;
}

struct headers_t { key_t key; }
struct meta_t { }

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.key);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control SwitchIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action answer(bit<8> value) { hdr.key.result = value; }
    action more(bit<8> value) { hdr.key.result = hdr.key.result | value; }

    table fixed {
        key = {
            hdr.key.a : exact;
            hdr.key.b : ternary;
        }
        actions = { answer; }
        default_action = answer(0x0f);
        const entries = {
            (1, 0x1200 &&& 0xff00) : answer(1);
            (1, 0x1234)            : answer(2);
            (1, _)                 : answer(3);
            (2, 0x0000 &&& 0x0001) : answer(4);
        }
    }
    table ranged {
        key = {
            hdr.key.b : range;
            hdr.key.c : optional;
        }
        actions = { more; NoAction; }
        default_action = NoAction();
        size = 64;
    }
    apply {
        sm.egress_spec = 2;
        fixed.apply();
        ranged.apply();
    }
}

control SwitchEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control Compute(inout headers_t hdr, inout meta_t meta) { apply { } }
control SwitchDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }

V1Switch(P(), Verify(), SwitchIngress(), SwitchEgress(), Compute(), SwitchDeparser()) main;
