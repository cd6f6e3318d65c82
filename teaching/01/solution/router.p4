// Lab 1: an IPv4 router. Its treatment of each packet [RFC 1812 sec 5.2]:
//
//   destination --longest prefix--> port and the next hop's Ethernet address; time to live minus one, new header checksum
//   dropped: not IPv4, wrong header checksum, expired time to live, no route

#include <core.p4>
#include <v1model.p4>

const bit<16> ETHERTYPE_IPV4 = 0x0800;

header ethernet_t {
    bit<48> dst_address;
    bit<48> src_address;
    bit<16> ether_type;
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
    bit<16> header_checksum;
    bit<32> src_address;
    bit<32> dst_address;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
}

struct metadata_t {
}

parser RouterParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        // BEGIN SOLUTION
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            default: accept;
        }
        // SKELETON
        // // TODO 1: go on to parse_ipv4 when the Ethernet type says IPv4.
        // transition accept;
        // END SOLUTION
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control RouterVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.diffserv, hdr.ipv4.total_length, hdr.ipv4.identification, hdr.ipv4.flags,
              hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src_address, hdr.ipv4.dst_address },
            hdr.ipv4.header_checksum, HashAlgorithm.csum16);
    }
}

control RouterIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action drop() {
        mark_to_drop(standard_metadata);
    }

    action send(bit<9> port, bit<48> src_address, bit<48> dst_address) {
        // BEGIN SOLUTION
        standard_metadata.egress_spec = port;
        hdr.ethernet.src_address = src_address;
        hdr.ethernet.dst_address = dst_address;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        // SKELETON
        // // TODO 2: the port; the Ethernet addresses of the next link; the time to live.
        // END SOLUTION
    }

    table ipv4_lpm {
        // BEGIN SOLUTION
        key = { hdr.ipv4.dst_address : lpm; }
        // SKELETON
        // // TODO 3: which field decides, and how does it match? Keep the names of the table and of its actions.
        // END SOLUTION
        actions = { send; drop; }
        size = 1024;
        default_action = drop();
    }

    apply {
        // checksum_error is 1 when RouterVerifyChecksum found a wrong checksum.
        // BEGIN SOLUTION
        if (!hdr.ipv4.isValid() || standard_metadata.checksum_error == 1 || hdr.ipv4.ttl <= 1) {
            drop();
        } else {
            ipv4_lpm.apply();
        }
        // SKELETON
        // // TODO 4: drop the packets that the head of this file lists; all others go through the table.
        // drop();
        // END SOLUTION
    }
}

control RouterEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
    }
}

control RouterComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        // BEGIN SOLUTION
        update_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.diffserv, hdr.ipv4.total_length, hdr.ipv4.identification, hdr.ipv4.flags,
              hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src_address, hdr.ipv4.dst_address },
            hdr.ipv4.header_checksum, HashAlgorithm.csum16);
        // SKELETON
        // // TODO 5: RouterIngress has changed the header. update_checksum takes the same arguments as verify_checksum above.
        // END SOLUTION
    }
}

control RouterDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(RouterParser(), RouterVerifyChecksum(), RouterIngress(), RouterEgress(), RouterComputeChecksum(), RouterDeparser()) main;
