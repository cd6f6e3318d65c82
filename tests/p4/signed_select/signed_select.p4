// Signed keys of a `select`: single values, and ranges below, above and over zero (spec 8.16).
#include <core.p4>
#include <v1model.p4>
header H { int<8> a; int<4> b; bit<4> pad; bit<8> report; }
struct headers_t { H h; }
struct metadata_t { bit<8> seen; }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.h);
        transition select(hdr.h.a, hdr.h.b) {
            (-2, _): two;
            (-5 .. 5, -1 .. 1): near;
            (-128 .. -6, -8 .. 7): below;
            (6 .. 127, _): above;
            (_, _): other;
        }
    }
    state two { meta.seen = 1; transition accept; }
    state near { meta.seen = 2; transition accept; }
    state below { meta.seen = 3; transition accept; }
    state above { meta.seen = 4; transition accept; }
    state other { meta.seen = 5; transition accept; }
}
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply { sm.egress_spec = 1; hdr.h.report = meta.seen; }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
