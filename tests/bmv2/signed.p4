// Signed action data from Thrift and P4Runtime: what a packet from the controller becomes goes back to it.
#include <core.p4>
#include <v1model.p4>
header H { bit<8> kind; bit<16> a; bit<16> b; bit<8> below; }
struct headers_t { H h; }
struct metadata_t { }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action take(int<5> a, int<16> b) {
        hdr.h.a = (bit<16>)(int<16>)a;
        hdr.h.b = (bit<16>)(b >> 4);
        hdr.h.below = (int<16>)a < b ? 8w1 : 0;
    }
    @name("given") action_profile(16) given;
    table direct { key = { hdr.h.kind : exact; } actions = { take; } default_action = take(-3, -64); }
    table members { key = { hdr.h.kind : exact; } actions = { take; NoAction; } implementation = given; }
    apply {
        if (hdr.h.kind < 16) { direct.apply(); } else { members.apply(); }
        sm.egress_spec = 510;
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
