// Generic functions and structs, typedefs, new types, enums of both kinds, tuples, unions, slices, concatenation.
#include <core.p4>
#include <v1model.p4>

typedef bit<48> address_t;
type bit<9> my_port_t;

enum bit<16> Kind {
    Data = 1,
    Control = 2
}

enum Colour { Red, Green, Blue }

header short_t { bit<8> value; }
header long_t  { bit<32> value; }

header_union payload_t {
    short_t small;
    long_t  large;
}

header frame_t {
    address_t to;
    Kind      kind;
}

struct pair_t<A, B> {
    A first;
    B second;
}

struct headers_t {
    frame_t   frame;
    payload_t payload;
}

struct metadata_t {
    pair_t<bit<8>, address_t> pair;
    my_port_t                 port;
    Colour                    colour;
}

parser FrameParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.frame);
        transition select(hdr.frame.kind) {
            Kind.Data: large;
            Kind.Control: small;
        }
    }
    state large {
        packet.extract(hdr.payload.large);
        transition accept;
    }
    state small {
        packet.extract(hdr.payload.small);
        transition accept;
    }
}

control NoChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

T larger<T>(in T a, in T b, in bool first) {
    return first ? a : b;
}

control FrameIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    const pair_t<bit<8>, bit<8>> LIMITS = { 3, 200 };

    apply {
        tuple<bit<8>, bit<16>> t = { 1, 2 };
        meta.pair = { 8w7, hdr.frame.to };
        meta.pair.first = larger<bit<8>>(meta.pair.first, LIMITS.second, hdr.payload.isValid());
        hdr.frame.to[15:8] = t[0];
        meta.pair.second = hdr.frame.to[23:0] ++ 24w0xABCDEF;
        meta.colour = hdr.frame.kind == Kind.Data ? Colour.Green : Colour.Blue;
        meta.port = (my_port_t)9w3;
        switch (meta.colour) {
            Colour.Red:
            Colour.Green: { standard_metadata.egress_spec = (bit<9>)meta.port; }
            default: { hdr.payload.small.setInvalid(); }
        }
        if (hdr.payload.large == { 5 }) {
            hdr.payload.large.value = 32w1 << hdr.payload.large.value;
        }
    }
}

control FrameEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control FrameDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(FrameParser(), NoChecksum(), FrameIngress(), FrameEgress(), NoChecksum(), FrameDeparser()) main;
