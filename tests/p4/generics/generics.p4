// Type parameters: of headers and structs, functions, parsers and controls; given, or found from the arguments.
#include <core.p4>
#include <v1model.p4>

header pair_h<T> { T first; T second; }
struct both_t<T, U> { T left; U right; }

struct headers_t {
    pair_h<bit<8>>  small;
    pair_h<bit<16>> large;
}
struct meta_t { both_t<bit<8>, bit<16>> seen; both_t<bit<8>, bit<16>> gone; }

T choose<T>(in bool first, in T a, in T b) {
    if (first) {
        return a;
    }
    return b;
}

parser Note<T>(in T value, out T seen) {
    state start {
        T kept = value;
        seen = kept;
        transition accept;
    }
}

// The second takes the first's place, and a constant of their type the second's.
control Shift<T>(inout T first, inout T second, out T gone)(T filler) {
    action keep(T value) {
        gone = value;
    }
    apply {
        keep(first);
        first = second;
        second = filler;
    }
}

control Swap<T>(inout T first, inout T second) {
    apply {
        T kept = first;
        first = second;
        second = kept;
    }
}

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    Note<bit<8>>() small;
    Note<bit<16>>() large;
    state start {
        packet.extract(hdr.small);
        packet.extract(hdr.large);
        small.apply(hdr.small.first, meta.seen.left);
        large.apply(hdr.large.first, meta.seen.right);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control SwitchIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    Shift<bit<8>>(8w0x99) small;
    Shift<bit<16>>(16w0x7777) large;
    Swap<bit<16>>() swap;
    apply {
        small.apply(hdr.small.first, hdr.small.second, meta.gone.left);
        large.apply(hdr.large.first, hdr.large.second, meta.gone.right);
        swap.apply(hdr.large.first, hdr.large.second);
        hdr.small.second = choose(meta.seen.left == 3, hdr.small.second, 8w0x11);
        hdr.large.second = choose<bit<16>>(meta.gone.right == 0x10, hdr.large.second, meta.gone.right);
        sm.egress_spec = 2;
    }
}

control SwitchEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control Compute(inout headers_t hdr, inout meta_t meta) { apply { } }
control SwitchDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }

V1Switch(P(), Verify(), SwitchIngress(), SwitchEgress(), Compute(), SwitchDeparser()) main;
