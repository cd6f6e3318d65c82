// The body of a for-in loop may write its variable; the loop takes each value of the range or list all the same (spec 12.8).
#include <core.p4>
#include <v1model.p4>
header H { bit<8> low; bit<8> high; bit<8> known; bit<8> found; bit<8> listed; bit<8> before; }
struct headers_t { H h; }
struct metadata_t { }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.h.known = 0;
        for (bit<8> i in 1 .. 3) {
            i = i + 10;
            hdr.h.known = hdr.h.known + i;
        }
        hdr.h.found = 0;
        for (bit<8> i in hdr.h.low .. hdr.h.high) {
            i = i + 10;
            if (i == 12) { continue; }
            hdr.h.found = hdr.h.found + i;
        }
        hdr.h.listed = 0;
        for (bit<8> i in (list<bit<8>>) { 7, hdr.h.low, 9 }) {
            i[7:4] = i[3:0];
            hdr.h.listed = hdr.h.listed ^ i;
        }
        // The elements have their values before the first round.
        bit<8> m = hdr.h.low;
        hdr.h.before = 0;
        for (bit<8> i in (list<bit<8>>) { m, m + 1, 16 }) {
            i = i + 1;
            m = m + 1;
            hdr.h.before = hdr.h.before + i;
        }
        sm.egress_spec = 2;
    }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
