// Label switching: an IPv4 packet that enters the network gets a label behind its Ethernet header. Switches forward by labels alone; the
// last one takes the label off. Nothing here is of als.p4.

#include <core.p4>
#include <v1model.p4>

const bit<16> TYPE_IPV4 = 0x0800;
const bit<16> TYPE_LABEL = 0x88B5;  // for local experiments, IEEE Std 802

header ethernet_t {
    bit<48> destination;
    bit<48> source;
    bit<16> type;
}

header label_t {
    bit<16> label;
    bit<8>  hops;    // switches that have forwarded the packet
    bit<8>  unused;
    bit<16> type;    // of what follows
}

header ipv4_t {
    bit<96>  first;  // version to header checksum, as it is
    bit<32>  source;
    bit<32>  destination;
}

struct headers_t {
    ethernet_t ethernet;
    label_t    label;
    ipv4_t     ipv4;
}

struct nothing_t { }

parser Reading(packet_in packet, out headers_t hdr, inout nothing_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_LABEL: labelled;
            TYPE_IPV4: ipv4;
            default: accept;
        }
    }

    state labelled {
        packet.extract(hdr.label);
        transition accept;
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control Unchecked(inout headers_t hdr, inout nothing_t meta) {
    apply { }
}

control Switching(inout headers_t hdr, inout nothing_t meta, inout standard_metadata_t standard) {
    counter(1024, CounterType.packets_and_bytes) carried;  // by label

    action discard() {
        mark_to_drop(standard);
    }

    action push(bit<16> label, bit<9> port) {
        hdr.label.setValid();
        hdr.label.label = label;
        hdr.label.hops = 1;
        hdr.label.type = hdr.ethernet.type;
        hdr.ethernet.type = TYPE_LABEL;
        standard.egress_spec = port;
        carried.count((bit<32>)label);
    }

    // To a host of the same switch.
    action deliver(bit<9> port, bit<48> mac) {
        hdr.ethernet.destination = mac;
        standard.egress_spec = port;
    }

    action forward(bit<9> port) {
        hdr.label.hops = hdr.label.hops + 1;
        standard.egress_spec = port;
    }

    action pop(bit<9> port, bit<48> mac) {
        hdr.ethernet.type = hdr.label.type;
        hdr.ethernet.destination = mac;
        hdr.label.setInvalid();
        standard.egress_spec = port;
    }

    table enter {
        key = { hdr.ipv4.destination: exact; }
        actions = { push; deliver; discard; }
        default_action = discard();
    }

    table switch_label {
        key = { hdr.label.label: exact; }
        actions = { forward; pop; discard; }
        default_action = discard();
    }

    apply {
        if (hdr.label.isValid()) {
            switch_label.apply();
        } else if (hdr.ipv4.isValid()) {
            enter.apply();
        } else {
            discard();
        }
    }
}

control Leaving(inout headers_t hdr, inout nothing_t meta, inout standard_metadata_t standard) {
    apply { }
}

control Computed(inout headers_t hdr, inout nothing_t meta) {
    apply { }
}

control Writing(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(Reading(), Unchecked(), Switching(), Leaving(), Computed(), Writing()) main;
