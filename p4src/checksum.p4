// The IPv4 header checksum over header and options [RFC 791 sec 3.1]. A packet with a wrong checksum is dropped
// in ingress (standard_metadata.checksum_error). The IPv6 header has none [RFC 8200 sec 3]; udp_checksum.p4 has that of UDP.

#include "udp_checksum.p4"

control AlsVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
#ifndef IPV6
        verify_checksum(hdr.ipv4.isValid() && !hdr.ipv4_options.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.diffserv, hdr.ipv4.total_length, hdr.ipv4.identification,
              hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src_address, hdr.ipv4.dst_address },
            hdr.ipv4.header_checksum, HashAlgorithm.csum16);
        verify_checksum(hdr.ipv4_options.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.diffserv, hdr.ipv4.total_length, hdr.ipv4.identification,
              hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src_address, hdr.ipv4.dst_address, hdr.ipv4_options.options },
            hdr.ipv4.header_checksum, HashAlgorithm.csum16);
#endif
    }
}

control AlsComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
#ifndef IPV6
        update_checksum(hdr.ipv4.isValid() && !hdr.ipv4_options.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.diffserv, hdr.ipv4.total_length, hdr.ipv4.identification,
              hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src_address, hdr.ipv4.dst_address },
            hdr.ipv4.header_checksum, HashAlgorithm.csum16);
        update_checksum(hdr.ipv4_options.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.diffserv, hdr.ipv4.total_length, hdr.ipv4.identification,
              hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src_address, hdr.ipv4.dst_address, hdr.ipv4_options.options },
            hdr.ipv4.header_checksum, HashAlgorithm.csum16);
#endif
    }
}
