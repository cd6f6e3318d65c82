#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<16> b; }
struct headers_t { h_t h; }
struct metadata_t { bit<8> a; }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(meta.a);                      //~ only headers can be extracted, not a value of type `bit<8>`
        transition select(hdr.h.a, hdr.h.b) {
            (1, 2): nowhere;                         //~ parser `P` has no state `nowhere`
            3: accept;                               //~ the key has 2 components, this has one
            (hdr.h.a, 1): accept;                    //~ the value must be known at compile time
            (5 .. 2, _): accept;                     //~ the range 5 .. 2 is empty
            default: accept;
        }
    }
}
parser Q(packet_in packet) {                         //~ parser `Q` has no state `start`
    state begin { transition accept; }               //~ state `begin` is never reached
}
control N(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action set(bit<8> v) { meta.a = v; v = 2; }      //~ `v` is a parameter bound by the control plane and cannot be written
    action swap(bit<8> v, in bit<8> w) { }           //~ parameters with a direction stand before those without
    action other() { t2.apply(); }                   //~ name `t2` is not declared
    table t {
        key = { hdr.h.a : exactly; hdr.h : exact; }  //~ match kind `exactly` is not declared
                                                     //~^ a value of type `h_t` cannot be a key
        actions = { set; nobody; set; }              //~ action `nobody` is not declared
                                                     //~^ action `set` is listed twice
        default_action = other();                    //~ `other` is not in the table's list of actions
        size = "big";                                //~ `size` must be an integer, not a value of type `string`
    }
    table t2 {
        key = { hdr.h.a : exact; hdr.h.b : lpm; }
        actions = { set; }
        default_action = set(1, 2);                  //~ `set` takes 1 arguments, not 2
        const entries = {
            (1, 2): set(300 ++ 8w1);                 //~ both operands of `++` need a width
            (1): set(1);                             //~ the key has 2 components, this has one
            (1 &&& 2, 3): set(1);                    //~ a mask cannot stand for a key that matches `exact`
        }
    }
    table t3 { key = { hdr.h.a : exact; } }          //~ table `t3` has no `actions`
    apply {
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), N(), I(), E(), N(), D()) main;
