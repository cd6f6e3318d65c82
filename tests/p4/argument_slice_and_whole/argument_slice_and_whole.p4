// Results are copied in order, left to right (spec 6.8): a field after some of its bits holds the second result alone.
#include <core.p4>
#include <v1model.p4>
header H { bit<16> first; bit<16> second; }
struct headers_t { H h; }
struct metadata_t { }
void bits_and_field(inout bit<8> bits, out bit<16> field) {
    field = 0xabcd;
    bits = bits + 1;
}
void field_and_bits(out bit<16> field, inout bit<8> bits) {
    field = 0xabcd;
    bits = bits + 1;
}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        bits_and_field(hdr.h.first[11:4], hdr.h.first);
        field_and_bits(hdr.h.second, hdr.h.second[15:4][7:0]);
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }
control U(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), U(), D()) main;
