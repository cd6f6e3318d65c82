// Prefixes of a key that is no whole number of bytes count from the key's own first bit.
#include <core.p4>
#include <v1model.p4>
header H { bit<12> key; bit<4> pad; bit<8> report; }
struct headers_t { H h; }
struct metadata_t { }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action mark(bit<8> number) { hdr.h.report = number; }
    table t {
        key = { hdr.h.key : lpm; }
        actions = { mark; }
        const entries = {
            12w0 &&& 12w0       : mark(1);
            0x400 &&& 0xc00     : mark(2);
            0x800 &&& 0xc00     : mark(3);
            0x500 &&& 0xf00     : mark(4);
            0x900 &&& 0xf00     : mark(5);
            0x9ab               : mark(6);
        }
    }
    apply { sm.egress_spec = 1; t.apply(); }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
