// Address learning: a digest for each source that no entry knows.
#include "../include/common.p4"

struct headers_t { ethernet_t ethernet; }
struct meta_t { }
struct learn_t {
    mac_t  address;
    port_t port;
}

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control SwitchIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action learn() { digest<learn_t>(1, { hdr.ethernet.src, sm.ingress_port }); }
    action forward(port_t port) { sm.egress_spec = port; }
    action drop() { mark_to_drop(sm); }

    table source {
        key = { hdr.ethernet.src : exact; }
        actions = { NoAction; learn; }
        default_action = learn();
        support_timeout = true;
    }
    table destination {
        key = { hdr.ethernet.dst : exact; }
        actions = { forward; drop; }
        default_action = drop();
    }
    apply {
        source.apply();
        destination.apply();
    }
}

control SwitchEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control Compute(inout headers_t hdr, inout meta_t meta) { apply { } }
control SwitchDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }

V1Switch(P(), Verify(), SwitchIngress(), SwitchEgress(), Compute(), SwitchDeparser()) main;
