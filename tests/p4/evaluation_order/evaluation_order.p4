// Operands and arguments from left to right (spec 6.8, 8.1): each has the value from before a later one changes the variable, and the
// index of an l-value is evaluated once, before what comes after it.
#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> x;
    bit<8> argument;
    bit<8> compound;
    bit<8> slice;
    bit<8> named;
    bit<8> register;
    bit<8> once;
    bit<8> concatenation;
    bit<8> key;
}
header e_t { bit<8> v; }
struct headers_t { h_t h; e_t[2] s; }
struct meta_t { }

bit<8> bump(inout bit<8> p) { p = p + 1; return p; }
bit<32> bump_index(inout bit<32> p) { p = p + 1; return p; }
bit<8> pair(in bit<8> p, in bit<8> q) { return (p << 4) + q; }
void add(inout bit<8> p, in bit<8> q) { p = p + q; }

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.h);
        packet.extract(hdr.s.next);
        packet.extract(hdr.s.next);
        transition accept;
    }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    register<bit<8>>(4) r;
    action add_to(inout bit<8> p, in bit<8> q) { p = p + q; }
    action found() { hdr.h.key = 0x99; }
    table t {
        key = { hdr.h.x : exact @name("before"); bump(hdr.h.x) : exact @name("after"); }
        actions = { found; NoAction; }
        default_action = NoAction;
        const entries = { (7, 8) : found(); }
    }
    apply {
        sm.egress_spec = 1;
        hdr.h.argument = pair(hdr.h.x, bump(hdr.h.x));          // 5, 6
        hdr.h.x += bump(hdr.h.x);                               // 6 + 7
        hdr.h.compound = hdr.h.x;
        hdr.h.x = 0x35;
        hdr.h.x[3:0] += bump(hdr.h.x)[3:0];                     // 5 + 6
        hdr.h.slice = hdr.h.x;
        hdr.h.x = 0;
        hdr.s[hdr.h.x].v = bump(hdr.h.x);                       // s[0] = 1
        hdr.h.x = 0;
        add(hdr.s[hdr.h.x].v, bump(hdr.h.x));                   // s[0] = 1 + 1
        hdr.h.named = pair(q = bump(hdr.h.x), p = hdr.h.x);     // 2, 2
        bit<32> i = 1;
        r.write(i, (bit<8>)bump_index(i));                      // r[1] = 2
        r.read(hdr.h.register, 1);
        hdr.h.x = 0;
        add(hdr.s[bump(hdr.h.x)].v, 3);                         // s[1] = 0x30 + 3
        hdr.h.once = hdr.h.x;                                   // 1
        hdr.h.concatenation = hdr.h.x[3:0] ++ bump(hdr.h.x)[3:0];  // 1, 2
        if (!(hdr.h.x == 2 && bump(hdr.h.x) == 3)) {
            hdr.h.x = 0;
        }
        add_to(hdr.h.x, bump(hdr.h.x));                         // 3 + 4
        t.apply();                                              // 7, 8
    }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
