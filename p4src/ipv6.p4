// IPv6 [RFC 8200]: headers, and the names by which the other files know the network's header (ipv4.p4 has the same names). A program with IPV6
// defined forwards IPv6 alone.

const bit<16> ETHERTYPE_IPV6 = 0x86DD;
const bit<8>  IPV6_HOP_BY_HOP = 0;

// RFC 2711: option 5, length 2, value 65503, the first of those for experiments (RFC 5350).
const bit<32> IPV6_ROUTER_ALERT = 0x0502FFDF;

// A hop-by-hop header with more words of 64 bits behind the first is forwarded, not parsed.
const bit<8> HOP_BY_HOP_MAXIMUM_LENGTH = 7;
#define HOP_BY_HOP_MAXIMUM_BITS 496

typedef bit<128> ip_address_t;
#define ADDRESS_PAIR_BITS 256

// Where a field means the same in both versions it has one name: diffserv is the traffic class [RFC 8200 sec 7], ttl the hop limit.
header ipv6_t {
    bit<4>       version;
    bit<8>       diffserv;
    bit<20>      flow_label;
    bit<16>      payload_length;
    bit<8>       next_header;
    bit<8>       ttl;
    ip_address_t src_address;
    ip_address_t dst_address;
}

// The hop-by-hop options header [RFC 8200 sec 4.3]. length: words of 64 bits behind the first.
header hop_by_hop_t {
    bit<8>  next_header;
    bit<8>  length;
    varbit<HOP_BY_HOP_MAXIMUM_BITS> options;
}

#define IP_HEADERS ipv6_t ipv6; hop_by_hop_t hop_by_hop;
// As in hdr.IP.diffserv. Both versions have diffserv, ttl, src_address and dst_address.
#define IP ipv6
#define TRANSPORT_PROTOCOL (hdr.hop_by_hop.isValid() ? hdr.hop_by_hop.next_header : hdr.ipv6.next_header)
// A fragment has a header of its own, behind which the parser reads nothing.
#define IS_WHOLE true
// The first eight bits (RFC 4291).
#define IS_GROUP (hdr.ipv6.dst_address[127:120] == 0xFF)
#define IP_LPM ipv6_lpm
