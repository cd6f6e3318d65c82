// `a ? b : c ? d : e` of booleans, which both readings of it compile: it is `a ? b : (c ? d : e)`.
#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<1> a;
    bit<1> b;
    bit<1> c;
    bit<1> d;
    bit<1> e;
    bit<3> result;
}
struct headers_t { h_t h; }
struct meta_t { }

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control SwitchIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 2;
        bool a = hdr.h.a == 1;
        bool b = hdr.h.b == 1;
        bool c = hdr.h.c == 1;
        bool d = hdr.h.d == 1;
        bool e = hdr.h.e == 1;
        bool plain = a ? b : c ? d : e;
        bool right = a ? b : (c ? d : e);
        bool left = (a ? b : c) ? d : e;
        hdr.h.result = (plain ? 3w4 : 0) | (right ? 3w2 : 0) | (left ? 3w1 : 0);
    }
}

control SwitchEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }

control Update(inout headers_t hdr, inout meta_t meta) { apply { } }

control Deparse(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.h); } }

V1Switch(P(), Verify(), SwitchIngress(), SwitchEgress(), Update(), Deparse()) main;
