// UDP checksums that cover the payload: verified on the way in, recomputed on the way out after a port was changed.
#include "../include/common.p4"

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    udp_t      udp;
}
struct meta_t { bit<16> length; }

#define PSEUDO { hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, hdr.udp.length,                  hdr.udp.src_port, hdr.udp.dst_port, hdr.udp.length }

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.ipv4);
        packet.extract(hdr.udp);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) {
    apply { verify_checksum_with_payload(hdr.udp.isValid(), PSEUDO, hdr.udp.checksum, HashAlgorithm.csum16); }
}

control SwitchIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (sm.checksum_error == 1) {
            sm.egress_spec = 3;
        } else {
            sm.egress_spec = 2;
            hdr.udp.dst_port = hdr.udp.dst_port + 1;
        }
    }
}

control SwitchEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }

control Compute(inout headers_t hdr, inout meta_t meta) {
    apply {
        update_checksum_with_payload(hdr.udp.isValid() && hdr.udp.checksum != 0, PSEUDO, hdr.udp.checksum,
                                     HashAlgorithm.csum16);
    }
}
control SwitchDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }

V1Switch(P(), Verify(), SwitchIngress(), SwitchEgress(), Compute(), SwitchDeparser()) main;
