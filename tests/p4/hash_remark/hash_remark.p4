// Lines that begin with `#` and are no directive are remarks, as for p4c's preprocessor and lexer.
#include <core.p4>
#include <v1model.p4>
header H { bit<8> a; }
struct headers_t { H h; }
struct metadata_t { }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        # it's an old idea, "switched off
        #other_table.apply();
#!second
        #  3rd try: hdr.h.a = 7;
        hdr.h.a = hdr.h.a + 1;
        sm.egress_spec = 2;
    }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
