// A header stack indexed by a variable: extracted to in the parser, read and written in the pipeline.
#include <core.p4>
#include <v1model.p4>

header head_t { bit<8> count; bit<8> which; }
header item_t { bit<8> value; }

struct headers_t {
    head_t    head;
    item_t[3] items;
}
struct meta_t { }

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    bit<32> index;
    state start {
        index = 0;
        packet.extract(hdr.head);
        transition select(hdr.head.count) {
            0: accept;
            default: item;
        }
    }
    state item {
        packet.extract(hdr.items[index]);
        index = index + 1;
        transition select(hdr.head.count - (bit<8>)index) {
            0: accept;
            default: item;
        }
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control SwitchIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 2;
        if (sm.parser_error == error.StackOutOfBounds) {
            sm.egress_spec = 3;
        } else if (sm.parser_error != error.NoError) {
            mark_to_drop(sm);
        } else if (hdr.items[hdr.head.which].isValid()) {
            hdr.items[hdr.head.which].value = hdr.items[hdr.head.which].value + 1;
        }
    }
}

control SwitchEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control Compute(inout headers_t hdr, inout meta_t meta) { apply { } }
control SwitchDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }

V1Switch(P(), Verify(), SwitchIngress(), SwitchEgress(), Compute(), SwitchDeparser()) main;
