// What the language allows and the target cannot do.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<16> b; }
header odd_t { bit<3> x; }                           //~ the fields of header `odd_t` have 3 bits in all
struct headers_t { h_t h; odd_t odd; }
struct metadata_t { bit<8> a; }
extern Strange { Strange(); void ask(in bit<8> a); }
extern void resubmit();
extern void strange(in bit<8> a);

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(true, { hdr.h.a + 1 }, hdr.h.b, HashAlgorithm.csum16); //~ takes fields and constants, nothing computed
    }
}
control N(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action a() { meta.a = 1; }
    table t {
        key = { hdr.h.a + 1 : exact; }               //~ a key that is computed has no name
        actions = { a; }
    }
    table twice { actions = { a; } }
    table signed {
        key = { (int<8>)hdr.h.a : range @name("a"); }
        actions = { a; }
        const entries = {
            -6 .. -2 : a;
            -3 .. 3 : a;                             //~ a range of a signed key that goes over zero
        }
    }
    Strange() unknown;                               //~ an extern object that the architecture does not have
    apply {
        t.apply();
        signed.apply();
        meta.a = hdr.h.a / meta.a;                   //~ the target does not divide
        clone(CloneType.E2E, 5);                     //~ can only be called in egress
        twice.apply();                               //~ table `I.twice` is applied more than once and goes on differently
        meta.a = 7;
        resubmit();                                  //~ this `resubmit` is the program's own
        strange(meta.a);                             //~ extern function `strange` is not one of the architecture's
        unknown.ask(meta.a);                         //~ cannot be called from the data plane
        twice.apply();
        bit<8> i = 0;
        for (; i < meta.a; i = i + 1) {              //~ a loop that applies tables must have a number of rounds known
            t.apply();
        }
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }
control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.h);
        if (hdr.h.a == 1) { packet.emit(hdr.h); }    //~ the deparser can only emit headers
    }
}
V1Switch(P(), V(), I(), E(), N(), D()) main;
