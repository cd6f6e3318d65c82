// Branches, early returns, a switch on the action that ran, an exit that copies out.
#include <core.p4>
#include <v1model.p4>

header probe_t {
    bit<8>  kind;
    bit<8>  hops;
    bit<16> total;
}

struct headers_t {
    probe_t probe;
}

struct metadata_t {
    bit<8> class;
    bool   seen;
}

parser ProbeParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.probe);
        transition accept;
    }
}

control NoChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

bit<16> clamp(in bit<16> value, in bit<16> limit) {
    if (value > limit) {
        return limit;
    }
    return value;
}

control Classify(inout probe_t probe, out bit<8> class) {
    action set_class(bit<8> value) { class = value; }
    action unknown() { class = 0; }

    table by_kind {
        key = { probe.kind : exact; }
        actions = { set_class; unknown; }
        default_action = unknown();
        const entries = {
            1 : set_class(10);
            2 : set_class(20);
        }
    }

    apply {
        class = 255;
        if (!probe.isValid()) {
            return;
        }
        by_kind.apply();
    }
}

control ProbeIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Classify() classify;

    action forward(bit<9> port) { standard_metadata.egress_spec = port; }
    action stop(inout bit<8> hops) {
        hops = 255;
        exit;
    }

    table route {
        key = { meta.class : exact; }
        actions = { forward; stop(hdr.probe.hops); @defaultonly NoAction; }
        const default_action = NoAction();
        size = 16;
    }

    apply {
        classify.apply(hdr.probe, meta.class);
        hdr.probe.total = clamp(hdr.probe.total, 1000);
        if (hdr.probe.hops > 8 && meta.class != 0) {
            stop(hdr.probe.hops);
        }
        switch (route.apply().action_run) {
            forward: { meta.seen = true; }
            default: { mark_to_drop(standard_metadata); }
        }
        if (meta.seen) {
            hdr.probe.hops = hdr.probe.hops + 1;
        }
    }
}

control ProbeEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control ProbeDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(ProbeParser(), NoChecksum(), ProbeIngress(), ProbeEgress(), NoChecksum(), ProbeDeparser()) main;
