#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> x; bit<8> y; }
struct headers_t { h_t h; }
struct meta_t { }
bit<8> f(inout bit<8> p) { p = 5; return 3; }
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { state start { packet.extract(hdr.h); transition accept; } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        hdr.h.y = hdr.h.x;
        hdr.h.x = hdr.h.x * f(hdr.h.x);     // 2 * 3
        hdr.h.y *= f(hdr.h.y);              // the same: A *= B is A = A * B
    }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
