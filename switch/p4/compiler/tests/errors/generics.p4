#include <core.p4>
#include <v1model.p4>

// What generic types, objects and their parameters cannot be.
header h_t { bit<8> a; }
struct headers_t { h_t h; }
struct metadata_t { bit<8> a; }

struct stack_t { h_t[2] all; }
header box_t<T> { T value; }
header_union one_t<T> { T only; }
struct pair_t<T> { T left; T right; }
struct outer_t<T> { box_t<T> inner; }
typedef box_t<bit<8>> byte_box_t;
typedef box_t<stack_t> stack_box_t;                  //~ field `value` of `box_t<stack_t>` has the type `stack_t`, which cannot be in a header
typedef one_t<h_t> one_header_t;
typedef one_t<bit<8>> one_byte_t;                    //~ field `only` of `one_t<bit<8>>` has the type `bit<8>`, which cannot be in a header union
typedef pair_t<string> names_t;                      //~ field `left` of `pair_t<string>` has the type `string`, which cannot be in a struct
typedef outer_t<int> deep_t;                         //~ field `value` of `box_t<int>` has the type `int`, which cannot be in a header
const pair_t<_> SIZED = { left = 8w1, right = 8w2 };
const pair_t<_> OPEN = { left = 1, right = 2 };      //~ the literals give no width for the `_` of `pair_t`

control Unit(in bit<8> x);
control Concrete(in bit<8> x) { apply { } }
parser Reader(packet_in packet);

extern Meterlike<T> {
    Meterlike();
    void run(in T value);
    bit<8> level();
}
extern Runner {
    Runner(Unit u);                                  //~ `u` of type `Unit` cannot be a parameter of an extern's constructor
    void run();
}
extern Hook {
    Hook();
    abstract void called();
}
extern Chain {
    Chain();
    void link(Chain next);                           //~ `Chain` needs itself for its own declaration
}
extern Sizes {
    Sizes(list<bit<8>> all = ...);                   //~ there is no default value of type `list<bit<8>>` for `...` to stand for
}
extern void trace<T>(in T value);
extern void fill<T>(out T result, in T low);
Chain() first;
Chain() second;

void keep(tuple<Chain, bit<8>> t) { }                //~ a tuple cannot hold a value of type `Chain`
void hold(pair_t<Unit> p) { }                        //~ the control `Unit` cannot be a type argument
void read(pair_t<Reader> p) { }                      //~ the parser `Reader` cannot be a type argument
control Takes()(Concrete c) { apply { } }            //~ `Concrete` is a control, and not the type of parameter `c`
control TakesType()(Unit u) { apply { } }
control Hooked()(Hook h) { apply { } }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control N(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    Meterlike<_>() loose;
    Meterlike<bit<8>>() tight;
    Runner(Concrete()) runner;
    Hooked(Hook()) hooked;                           //~ `Hook` has the abstract method `called`, which nothing implements here
    apply {
        loose.run(hdr.h.a);                          //~ the type of parameter `value` was left open where the object is declared
        meta.a = loose.level();
        tight.run(hdr.h.a);
        trace("text");                               //~ `value` has a direction, and no value of type `string` can be given for it
        trace(first);                                //~ `value` has a direction, and no value of type `Chain` can be given for it
        fill(_, 0);                                  //~ the width of the literal cannot be inferred
        fill(_, 8w0);
        pair_t<_> p = { left = 1, right = 2 };       //~ the literals give no width for the `_` of `pair_t`
        meta.a = first == second ? 8w1 : 8w2;        //~ objects of an extern type are not compared
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), N(), I(), E(), N(), D()) main;
