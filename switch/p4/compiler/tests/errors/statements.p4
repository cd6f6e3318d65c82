#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<16> b; }
struct headers_t { h_t h; }
struct metadata_t { bit<8> a; }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control N(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action set(bit<8> v) { meta.a = v; }
    table t2 {
        key = { hdr.h.a : exact; }
        actions = { set; }
    }
    apply {
        t2.apply(1);                                 //~ `apply` of a table takes no arguments
        switch (t2.apply().action_run) {
            drop: { }                                //~ `drop` is no action of the table
            set: { }
            set: { }                                 //~ this label stands in another case, too
        }
        sm.egress_spec.apply();                      //~ has no method `apply`
        verify(true, error.NoError);                 //~ `verify` can only be called in a parser
        hdr.h.setValid(1);                           //~ `setValid` takes 0 arguments, not 1
        mark_to_drop(sm, sm);                        //~ `mark_to_drop` takes 1 arguments, not 2
        random(meta.a, 0);                           //~ the call of `random` lacks an argument for `hi`
        random(5, 0, 9);                             //~ this is no l-value and cannot be written
        break;                                       //~ `break` and `continue` can only be used in a loop
        hdr.h.b[meta.a:0] = 1;                       //~ the bounds of a slice must be known at compile time
        meta.a = hdr.h.b[meta.a +: 8];               //~ the bounds of a slice must be known at compile time
        meta.a = (bit<8>)sm.qid;                     //~ has no field `qid`
        return 5;                                    //~ there is nothing to return a value to
        I.apply(hdr, meta, sm);                      //~ `I` applies itself: recursion is not possible
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), N(), I(), E(), N(), D()) main;
