// The argument of `@field_list` is an expression: a member of a serializable enum, a constant, a sum.
#include <core.p4>
#include <v1model.p4>
enum bit<8> Lists { NONE = 0, KEEP = 1, ALSO = 2 }
const bit<8> THIRD = 3;
header H { bit<8> kind; bit<8> a; bit<8> b; bit<8> c; bit<8> d; }
struct headers_t { H h; }
struct inner_t {
    @field_list(Lists.KEEP)
    bit<8> a;
    @field_list(Lists.ALSO, 1)
    bit<8> b;
    bit<8> lost;
}
struct metadata_t {
    inner_t inner;
    @field_list(THIRD, (bit<8>)Lists.ALSO - 1)
    bit<8> c;
    @field_list(THIRD)
    bit<8> d;
}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        if (sm.instance_type == 0) {
            meta = { { 1, 2, 3 }, 4, 5 };
            if (hdr.h.kind == 1) {
                resubmit_preserving_field_list((bit<8>)Lists.KEEP);
            } else if (hdr.h.kind == 2) {
                resubmit_preserving_field_list(2);
            } else {
                resubmit_preserving_field_list(THIRD);
            }
        } else {
            hdr.h.a = meta.inner.a;
            hdr.h.b = meta.inner.b + meta.inner.lost;
            hdr.h.c = meta.c;
            hdr.h.d = meta.d;
            sm.egress_spec = 3;
        }
    }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
