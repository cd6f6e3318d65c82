// Sub-parsers, lookahead, stacks, a varbit header, ranges and masks, a value set, verify.
#include <core.p4>
#include <v1model.p4>

error { TooManyTags }

header tag_t {
    bit<7>  id;
    bit<1>  last;
}

header base_t {
    bit<4>  version;
    bit<4>  words;
    bit<16> port;
}

header options_t {
    varbit<64> bytes;
}

struct headers_t {
    base_t    base;
    options_t options;
    tag_t[3]  tags;
}

struct metadata_t {
    bit<8> depth;
}

struct endpoint_t {
    bit<16> port;
}

parser Tags(packet_in packet, inout tag_t[3] tags, inout bit<8> depth) {
    state start {
        transition next_tag;
    }
    state next_tag {
        packet.extract(tags.next);
        depth = depth + 1;
        verify(depth <= 3, error.TooManyTags);
        transition select(tags.last.last) {
            0: next_tag;
            1: accept;
        }
    }
}

parser StackParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Tags() tags;
    value_set<endpoint_t>(8) known_ports;

    state start {
        meta.depth = 0;
        bit<4> version = packet.lookahead<bit<4>>();
        transition select(version) {
            4w1: base;
            4w2 &&& 4w6: skip;
            default: accept;
        }
    }
    state skip {
        packet.advance(8);
        transition base;
    }
    state base {
        packet.extract(hdr.base);
        if (hdr.base.words == 0) {
            meta.depth = 100;
        }
        transition select(hdr.base.words) {
            1..8: options;
            default: ports;
        }
    }
    state options {
        packet.extract(hdr.options, (bit<32>)hdr.base.words << 3);
        transition ports;
    }
    state ports {
        transition select(hdr.base.port) {
            known_ports: tagged;
            default: accept;
        }
    }
    state tagged {
        tags.apply(packet, hdr.tags, meta.depth);
        transition accept;
    }
}

control NoChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control StackIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (standard_metadata.parser_error == error.TooManyTags) {
            mark_to_drop(standard_metadata);
        } else {
            hdr.tags.push_front(1);
            hdr.tags[0] = { 7w5, 1w0 };
        }
    }
}

control StackEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control StackDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.base);
        packet.emit(hdr.options);
        packet.emit(hdr.tags);
    }
}

V1Switch(StackParser(), NoChecksum(), StackIngress(), StackEgress(), NoChecksum(), StackDeparser()) main;
