// Joins ports 1 and 2 like a cable: any frame, no header parsed, no control plane.

#include <core.p4>
#include <v1model.p4>

struct headers_t {}
struct metadata_t {}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control Receive(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action out_by(bit<9> port) {
        standard.egress_spec = port;
    }
    action drop() {
        mark_to_drop(standard);
    }
    table cable {
        key = { standard.ingress_port: exact; }
        actions = { out_by; drop; }
        const default_action = drop();
        const entries = {
            1: out_by(2);
            2: out_by(1);
        }
    }
    apply {
        cable.apply();
    }
}

control Send(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control Compute(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {}
}

V1Switch(Parse(), Verify(), Receive(), Send(), Compute(), Deparse()) main;
