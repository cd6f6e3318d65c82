// An action of a table leaves with `exit`; what was assigned before the table stands.
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> x; bit<8> y; }
struct headers_t { h_t h; }
struct meta_t { }
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { state start { packet.extract(hdr.h); transition accept; } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action leave(bit<8> d) { exit; }
    table t {
        key = { hdr.h.x : exact; }
        actions = { leave; NoAction; }
    }
    apply {
        sm.egress_spec = 5;
        t.apply();
        sm.egress_spec = 3;
    }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
