// Signed action data keeps its sign, in widths that are whole bytes and not: from entries of the program, of the control plane, and
// from default actions.
#include <core.p4>
#include <v1model.p4>
header H {
    bit<8>  kind;
    bit<8>  negative; // which of the four are below zero
    bit<16> a;        // each widened to more bits
    bit<16> b;
    bit<64> c;
    bit<80> d;
    bit<16> half;     // b, shifted arithmetically
    bit<8>  e;
}
struct headers_t { H h; }
struct metadata_t { int<8> kept; }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action take(int<5> a, int<12> b, int<33> c, int<72> d) {
        hdr.h.a = (bit<16>)(int<16>)a;
        hdr.h.b = (bit<16>)(int<16>)b;
        hdr.h.c = (bit<64>)(int<64>)c;
        hdr.h.d = (bit<80>)(int<80>)d;
        hdr.h.half = (bit<16>)(int<16>)(b >> 1);
        hdr.h.negative = (a < 0 ? 8w1 : 0) | (b < 0 ? 8w2 : 0) | (c < 0 ? 8w4 : 0) | (d < 0 ? 8w8 : 0);
    }
    action keep(int<8> e) { meta.kept = e; }
    table numbers {
        key = { hdr.h.kind : exact; }
        actions = { take; }
        const entries = {
            1 : take(-1, -2048, -4294967296, -1);
            2 : take(15, 2047, 4294967295, 1);
        }
        default_action = take(-16, -1, -1, -2361183241434822606848);
    }
    table given {
        key = { hdr.h.kind : exact; }
        actions = { take; NoAction; }
    }
    table small {
        key = { hdr.h.kind : ternary; }
        actions = { keep; }
        default_action = keep(-128);
    }
    apply {
        if (hdr.h.kind < 3) { numbers.apply(); } else if (hdr.h.kind == 4) { numbers.apply(); } else { given.apply(); }
        small.apply();
        hdr.h.e = meta.kept < -2 ? 8w1 : 0;
        hdr.h.e = hdr.h.e + (bit<8>)(meta.kept >> 1);
        sm.egress_spec = 1;
    }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
