// A range of all values takes every packet; the default behind it is never reached (spec 13.6: the first case that matches).
#include <core.p4>
#include <v1model.p4>
header H { bit<8> key; bit<8> report; }
struct headers_t { H h; }
struct metadata_t { bit<8> seen; }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.h);
        transition select(hdr.h.key) {
            0 .. 255: full;
            default: accept;
        }
    }
    state full { meta.seen = 1; transition accept; }
}
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        hdr.h.report = meta.seen;
    }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
