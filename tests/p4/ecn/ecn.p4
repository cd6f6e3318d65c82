// Explicit congestion notification: an ECN-capable packet that met a queue of the threshold or more is marked (RFC 3168).
// The threshold is a register, so that the test can set it to 0 and see marks without filling a queue.
#include "../include/common.p4"

const bit<2> NOT_ECT = 0;
const bit<2> CE = 3;

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
    apply { sm.egress_spec = 2; }
}

control SwitchEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    register<bit<19>>(1) threshold;
    counter(1, CounterType.packets) marks;
    apply {
        if (hdr.ipv4.isValid() && hdr.ipv4.ecn != NOT_ECT) {
            bit<19> limit;
            threshold.read(limit, 0);
            if (sm.enq_qdepth >= limit) {
                hdr.ipv4.ecn = CE;
                marks.count(0);
            }
        }
    }
}

control Compute(inout headers_t hdr, inout meta_t meta) {
    apply { update_checksum(hdr.ipv4.isValid(), IPV4_FIELDS(hdr.ipv4), hdr.ipv4.checksum, HashAlgorithm.csum16); }
}
control SwitchDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(P(), Verify(), SwitchIngress(), SwitchEgress(), Compute(), SwitchDeparser()) main;
