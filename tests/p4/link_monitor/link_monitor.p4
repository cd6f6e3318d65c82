// Probes gather what links carried: a stack of ports to visit, a stack of measurements, bytes per port in a register that
// probes read and reset.
#include "../include/common.p4"

const bit<16> TYPE_PROBE = 0x0812;
#define HOPS 4

header probe_t { bit<8> hops; }
header forward_t { bit<8> port; }
header data_t {
    bit<1>  bottom;
    bit<7>  switch_id;
    bit<8>  port;
    bit<32> bytes;
}

struct headers_t {
    ethernet_t      ethernet;
    probe_t         probe;
    data_t[HOPS]    data;
    forward_t[HOPS] forward;
}
struct meta_t {
    bit<8>  left;
    port_t  port;
}

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_PROBE: probe;
            default: accept;
        }
    }
    state probe {
        packet.extract(hdr.probe);
        meta.left = hdr.probe.hops + 1;
        transition select(hdr.probe.hops) {
            0: forward;
            default: data;
        }
    }
    state data {
        packet.extract(hdr.data.next);
        transition select(hdr.data.last.bottom) {
            1: forward;
            default: data;
        }
    }
    state forward {
        packet.extract(hdr.forward.next);
        meta.left = meta.left - 1;
        meta.port = (port_t)hdr.forward.last.port;
        transition select(meta.left) {
            0: accept;
            default: forward;
        }
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control SwitchIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (hdr.probe.isValid()) {
            sm.egress_spec = meta.port;
            hdr.probe.hops = hdr.probe.hops + 1;
        } else {
            sm.egress_spec = 2;
        }
    }
}

control SwitchEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    // A cell for every port that a probe may name: outside of a register BMv2 reads what is there, or dies.
    register<bit<32>>(512) bytes;

    action identify(bit<7> id) { hdr.data[0].switch_id = id; }
    table switch_id {
        actions = { identify; NoAction; }
        default_action = NoAction();
    }
    apply {
        bit<32> count;
        bytes.read(count, (bit<32>)sm.egress_port);
        count = count + sm.packet_length;
        if (hdr.probe.isValid()) {
            bytes.write((bit<32>)sm.egress_port, 0);
            hdr.data.push_front(1);
            hdr.data[0].setValid();
            hdr.data[0].bottom = (bit<1>)(hdr.probe.hops == 1);
            switch_id.apply();
            hdr.data[0].port = (bit<8>)sm.egress_port;
            hdr.data[0].bytes = count;
        } else {
            bytes.write((bit<32>)sm.egress_port, count);
        }
    }
}

control Compute(inout headers_t hdr, inout meta_t meta) { apply { } }
control SwitchDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.probe);
        packet.emit(hdr.data);
        packet.emit(hdr.forward);
    }
}

V1Switch(P(), Verify(), SwitchIngress(), SwitchEgress(), Compute(), SwitchDeparser()) main;
