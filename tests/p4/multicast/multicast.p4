// A switch that floods unknown destinations to a group, never back to where the packet came from, and tags each copy with its
// replication id.
#include "../include/common.p4"

struct headers_t { ethernet_t ethernet; }
struct meta_t { }

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}
control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control SwitchIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action flood() { sm.mcast_grp = 1; }
    action forward(port_t port) { sm.egress_spec = port; }
    action drop() { mark_to_drop(sm); }
    table mac {
        key = { hdr.ethernet.dst : exact; }
        actions = { flood; forward; drop; }
        default_action = flood();
    }
    apply { mac.apply(); }
}

control SwitchEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (sm.mcast_grp != 0) {
            if (sm.egress_port == sm.ingress_port) {
                mark_to_drop(sm);
            }
            hdr.ethernet.type = sm.egress_rid;
        }
    }
}
control Compute(inout headers_t hdr, inout meta_t meta) { apply { } }
control SwitchDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.ethernet); } }

V1Switch(P(), Verify(), SwitchIngress(), SwitchEgress(), Compute(), SwitchDeparser()) main;
