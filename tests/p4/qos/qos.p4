// Differentiated services: the code point by protocol, in a switch on the action that ran, and the queue's priority with it.
#include "../include/common.p4"

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
}
struct meta_t { }

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control SwitchIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action expedited() { hdr.ipv4.dscp = 46; }
    action voice_admit() { hdr.ipv4.dscp = 44; }
    action best_effort() { hdr.ipv4.dscp = 0; }

    table classify {
        key = { hdr.ipv4.protocol : exact; }
        actions = { expedited; voice_admit; best_effort; }
        const entries = {
            17: expedited();
            6: voice_admit();
        }
        default_action = best_effort();
    }
    apply {
        sm.egress_spec = 2;
        if (hdr.ipv4.isValid()) {
            switch (classify.apply().action_run) {
                expedited: { sm.priority = 2; }
                voice_admit: { sm.priority = 1; }
                default: { sm.priority = 0; }
            }
            if (hdr.ipv4.ttl == 0) {
                mark_to_drop(sm);
                exit;
            }
            hdr.ipv4.identification = (bit<16>)sm.priority;
        }
    }
}

control SwitchEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control Compute(inout headers_t hdr, inout meta_t meta) {
    apply { update_checksum(hdr.ipv4.isValid(), IPV4_FIELDS(hdr.ipv4), hdr.ipv4.checksum, HashAlgorithm.csum16); }
}
control SwitchDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }

V1Switch(P(), Verify(), SwitchIngress(), SwitchEgress(), Compute(), SwitchDeparser()) main;
