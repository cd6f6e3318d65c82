// The program of primer.md: a switch for frames that carry a label.
//
//   label --table--> output port; one more hop in the frame
//   dropped: no label, a label that the table does not have, a frame after 8 hops

#include <core.p4>
#include <v1model.p4>

const bit<16> ETHERTYPE_LABEL = 0x88b5;
const bit<8> MOST_HOPS = 8;

header ethernet_t {
    bit<48> dst_address;
    bit<48> src_address;
    bit<16> ether_type;
}

header label_t {
    bit<8> label;
    bit<8> hops;
}

struct headers_t {
    ethernet_t ethernet;
    label_t    label;
}

struct metadata_t {
}

parser LabelParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_LABEL: parse_label;
            default: accept;
        }
    }

    state parse_label {
        packet.extract(hdr.label);
        transition accept;
    }
}

control LabelVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}

control LabelIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action drop() {
        mark_to_drop(standard_metadata);
    }

    action forward(bit<9> port) {
        standard_metadata.egress_spec = port;
        hdr.label.hops = hdr.label.hops + 1;
    }

    table labels {
        key = { hdr.label.label : exact; }
        actions = { forward; drop; }
        size = 256;
        default_action = drop();
    }

    apply {
        if (hdr.label.isValid() && hdr.label.hops < MOST_HOPS) {
            labels.apply();
        } else {
            drop();
        }
    }
}

control LabelEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
    }
}

control LabelComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}

control LabelDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.label);
    }
}

V1Switch(LabelParser(), LabelVerifyChecksum(), LabelIngress(), LabelEgress(), LabelComputeChecksum(), LabelDeparser()) main;
