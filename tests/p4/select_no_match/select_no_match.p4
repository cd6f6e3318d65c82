// A `select` without a case for its key raises `error.NoMatch` and ends in `reject` (spec 13.6).
#include <core.p4>
#include <v1model.p4>
header H { bit<8> key; bit<8> report; bit<8> raised; }
struct headers_t { H h; }
struct metadata_t { bit<8> seen; }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.h);
        transition select(hdr.h.key) {
            1: one;
        }
    }
    state one { meta.seen = 1; transition accept; }
}
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        hdr.h.report = meta.seen;
        hdr.h.raised = sm.parser_error == error.NoMatch ? 8w0xee : 0;
    }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
