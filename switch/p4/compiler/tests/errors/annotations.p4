#include <core.p4>
#include <v1model.p4>

// What structured annotations hold, and which ones hold nothing.
const bit<8> LIMIT = 4;
extern Object { Object(); }
Object() one;
Object() two;
struct headers_t { @limit[high=LIMIT + 1] bit<8> a; }
struct metadata_t { @limit[high=UNKNOWN] bit<8> a; } //~ name `UNKNOWN` is not declared
@same[one == two] typedef bit<8> byte_t;             //~ objects of an extern type are not compared
@same[1 + true] typedef bit<8> sum_t;                //~ `+` is not defined on `int` and `bool`
@object[one] typedef bit<8> object_t;                //~ an annotation holds values known at compile time
@size[8 < T] extern void sized<T>(in T value);       //~ `T` is a type, not a value
@brief["a" ++ "b", LIMIT == 4] typedef bit<8> fine_t;

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    @step[meta.a] state start { transition accept; } //~ an annotation holds values known at compile time
}
control N(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    @hidden(1) action drop() { mark_to_drop(sm); }   //~ `@hidden` takes no arguments
    @cost[LIMIT / 0] action pass() { }               //~ division by zero
    @hidden() table t { actions = { drop; pass; } }
    apply {
        @likely("often") { t.apply(); }              //~ `@likely` takes no arguments
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { } }
@pkginfo V1Switch(P(), N(), I(), E(), N(), D()) main; //~ `@pkginfo` takes keys and values
