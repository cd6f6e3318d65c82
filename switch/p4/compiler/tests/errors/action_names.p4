#include <core.p4>
#include <v1model.p4>

// Two actions of one control-plane name. What is not used, and one name written twice for one action, does no harm.
header h_t { bit<8> a; }
struct headers_t { h_t h; }
struct metadata_t { bit<8> a; }
@name("shared") action global_shared(inout bit<8> x) { x = 1; }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control N(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    @name(".drop") action drop() { mark_to_drop(sm); }
    action pass() { }
    @name(".drop") action unlisted() { }          //~ `unlisted` is unused
    @name("pass") action again() { }                 //~ another action has the control-plane name `I.pass`, too
    table t { actions = { drop; pass; global_shared(hdr.h.a); } }
    table u { actions = { drop; again; } }
    apply { t.apply(); u.apply(); }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action pass() { }
    @name(".drop") action drop() { mark_to_drop(sm); } //~ another action has the control-plane name `drop`, too
    @name(".shared") action shared() { }             //~ another action has the control-plane name `shared`, too
    table t { actions = { pass; drop; shared; } }
    apply { t.apply(); }
}
control Unreached(inout headers_t hdr) {             //~ control `Unreached` is unused
    @name(".drop") action drop() { hdr.h.a = 0; }
    apply { drop(); }
}
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), N(), I(), E(), N(), D()) main;
