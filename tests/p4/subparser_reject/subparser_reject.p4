// What a sub-parser has written when it ends at `reject` stays written, as with `exit` (spec 12.5).
#include <core.p4>
#include <v1model.p4>
header H { bit<8> x; }
struct inner_t { H a; H b; }
struct headers_t { H kind; inner_t inner; H report; }
struct metadata_t { bit<8> seen; }
parser Inner(packet_in packet, out inner_t inner, inout metadata_t meta, in bit<8> add) {
    state start {
        packet.extract(inner.a);
        meta.seen = meta.seen + add;
        packet.extract(inner.b);
        verify(inner.b.x != 0, error.NoMatch);
        meta.seen = meta.seen + add;
        transition accept;
    }
}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    Inner() inner;
    state start {
        packet.extract(hdr.kind);
        meta.seen = 1;
        transition select(hdr.kind.x) {
            1: once;
            2: again;
            default: accept;
        }
    }
    state once { inner.apply(packet, hdr.inner, meta, 0x10); transition accept; }
    // The second application starts with its `out` argument invalid (spec 6.8).
    state again { inner.apply(packet, hdr.inner, meta, 0x10); inner.apply(packet, hdr.inner, meta, 0x20); transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.report.setValid();
        hdr.report.x = meta.seen;
        if (sm.parser_error == error.PacketTooShort) { hdr.report.x = hdr.report.x | 0x80; }
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }
control U(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.report); packet.emit(hdr.kind); packet.emit(hdr.inner); } }
V1Switch(P(), V(), I(), E(), U(), D()) main;
