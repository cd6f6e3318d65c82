// What a register or a hash gives to a signed variable has its sign.
#include <core.p4>
#include <v1model.p4>
header H {
    bit<8>  given;
    bit<16> wide;     // the register's value, widened
    bit<8>  negative; // whether it is below zero
    bit<16> hashed;   // whether the hash is
}
struct headers_t { H h; }
struct metadata_t { }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    register<int<8>>(4) r;
    apply {
        int<8> x = (int<8>)hdr.h.given;
        r.write(1, x);
        int<8> y;
        r.read(y, 1);
        hdr.h.wide = (bit<16>)(int<16>)y;
        hdr.h.negative = y < 0 ? 8w1 : 0;
        int<16> z;
        hash(z, HashAlgorithm.identity, 16w0, { hdr.h.given, hdr.h.given }, 32w65536);
        hdr.h.hashed = z < 0 ? 16w1 : 0;
        sm.egress_spec = 1;
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
