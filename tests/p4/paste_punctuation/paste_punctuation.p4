// `##` beside punctuation joins nothing and leaves both tokens, as p4c's preprocessor does.
#include <core.p4>
#include <v1model.p4>
#define KEEP(N) action keep_##N##(bit<8> v) { meta.x##N##=v; }
#define SUM(A, B) (A ## + ## B)
header H { bit<8> a; bit<8> b; }
struct headers_t { H h; }
struct metadata_t { bit<8> x0; bit<8> x1; }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    KEEP(0)
    KEEP(1)
    apply {
        keep_0(hdr.h.a);
        keep_1(3);
        hdr.h.b = SUM(meta.x0, meta.x1);
        sm.egress_spec = 2;
    }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
