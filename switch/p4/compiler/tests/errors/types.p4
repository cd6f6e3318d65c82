#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<16> b; int<8> s; }
struct headers_t { h_t h; }
struct metadata_t { bool flag; bit<8> a; }
type bit<8> id_t;
enum bit<8> Kind { A = 1, A = 2 }                    //~ member `A` is already declared in `Kind`
struct twice_t { bit<8> x; bit<4> x; }               //~ field `x` is already declared in `twice_t`
header bad_t { bit<8>[2] x; }                        //~ a stack holds headers or header unions, not `bit<8>`
const bit<8> LIMIT = 300 - 45;
const bit<8> HALF = 1 / 0;                           //~ division by zero
bit<8> missing() { }                                 //~ function `missing` does not return a value on all its paths

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control N(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.h.a = hdr.h.b;                           //~ the value has type `bit<16>` where `bit<8>` is awaited
        hdr.h.a = hdr.h.a + hdr.h.b;                 //~ `+` is not defined on `bit<8>` and `bit<16>`
        meta.flag = hdr.h.a;                         //~ the value has type `bit<8>` where `bool` is awaited
        if (hdr.h.a) { }                             //~ the condition has type `bit<8>` where `bool` is awaited
        hdr.h.c = 1;                                 //~ `h_t` has no field `c`
        hdr.h.s = (int<8>)hdr.h.b;                   //~ a value of type `bit<16>` cannot be cast to `int<8>`
        hdr.h.a[9:2] = 1;                            //~ [9:2] is no slice of `bit<8>`
        hdr.h.a = undeclared_thing;                  //~ name `undeclared_thing` is not declared
        LIMIT = 3;                                   //~ `LIMIT` cannot be written
        bit<8> x = 1;
        bit<4> x = 2;                                //~ `x` is already declared in this scope
        int y = 5;                                   //~ a variable cannot have the type `int`
        id_t id = hdr.h.a;                           //~ the initial value has type `bit<8>` where `id_t` is awaited
        hdr.h.a = ~meta.flag;                        //~ `~` is not defined on `bool`
        hdr.h.b = 4 ++ hdr.h.a;                      //~ both operands of `++` need a width
        meta.a = meta.flag ? 1 : 2;                  //~ both alternatives are literals without a width
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), N(), I(), E(), N(), D()) main;
