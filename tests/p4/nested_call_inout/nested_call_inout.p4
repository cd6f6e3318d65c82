#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> x; bit<8> y; }
struct headers_t { h_t h; }
struct meta_t { }
bit<8> f(inout bit<8> p, in bit<8> q) { p = p + 1; return q + 10; }
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { state start { packet.extract(hdr.h); transition accept; } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        hdr.h.y = f(hdr.h.x, f(hdr.h.x, 0));
    }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
