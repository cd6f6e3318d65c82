// The checksum of UDP after a switch has changed 64 bits of the payload, from a whole number of 16-bit words on.
//
//   IPv4: 0, no checksum (RFC 768)
//   IPv6, which requires one [RFC 8200 sec 8.1]: HC' = ~(~HC + ~m + m') (RFC 1624)

#ifndef UDP_CHECKSUM_P4
#define UDP_CHECKSUM_P4

control UdpChecksum(inout headers_t hdr, in bit<64> before, in bit<64> after) {
    apply {
#ifdef IPV6
        // Some tunnels send none over IPv6 either (RFC 6935).
        if (hdr.udp.checksum != 0) {
            bit<64> less = ~before;
            bit<16> own = ~hdr.udp.checksum;
            bit<32> sum = (bit<32>)own
                + (bit<32>)less[63:48] + (bit<32>)less[47:32] + (bit<32>)less[31:16] + (bit<32>)less[15:0]
                + (bit<32>)after[63:48] + (bit<32>)after[47:32] + (bit<32>)after[31:16] + (bit<32>)after[15:0];
            sum = (sum & 0xFFFF) + (sum >> 16);
            sum = (sum & 0xFFFF) + (sum >> 16);
            hdr.udp.checksum = ~sum[15:0];
            if (hdr.udp.checksum == 0) {
                hdr.udp.checksum = 0xFFFF;
            }
        }
#else
        hdr.udp.checksum = 0;
#endif
    }
}

#endif
