// The program of the control plane's benchmark: forwards by constant entries, so that a pushed pipeline forwards at once, and has a large
// table to fill and a large register to read, which packets use as they go. With DIGEST, a source without an entry causes a digest (soak.py).

#include <core.p4>
#include <v1model.p4>

const bit<32> CELLS = 65536;

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  diffserv;
    bit<16> total_length;
    bit<16> identification;
    bit<3>  flags;
    bit<13> fragment_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
}

struct stranger_t {
    bit<32> source;
}

struct metadata_t {
    bit<16> mark;
}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x0800: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control Receive(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<32>>(CELLS) seen;
    counter(1024, CounterType.packets_and_bytes) received;

    action drop() {
        mark_to_drop(standard);
    }

    action forward(bit<9> port) {
        standard.egress_spec = port;
    }

    action mark(bit<16> value) {
        meta.mark = value;
    }

    table route {
        key = { hdr.ipv4.dst: lpm; }
        actions = { forward; drop; }
        const default_action = drop();
        const entries = {
            0x0a000100 &&& 0xffffff00: forward(1);
            0x0a000200 &&& 0xffffff00: forward(2);
        }
    }

    table hosts {
        key = { hdr.ipv4.src: exact; }
        actions = { mark; NoAction; }
        default_action = NoAction();
        size = 2000000;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            route.apply();
#ifdef DIGEST
            if (!hosts.apply().hit) {
                digest<stranger_t>(1, { hdr.ipv4.src });
            }
#else
            hosts.apply();
#endif
            bit<32> count;
            bit<32> cell = hdr.ipv4.src & (CELLS - 1);
            seen.read(count, cell);
            seen.write(cell, count + 1);
            received.count((bit<32>)standard.ingress_port);
        } else {
            drop();
        }
    }
}

control Send(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control Compute(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(Parse(), Verify(), Receive(), Send(), Compute(), Deparse()) main;
