// IPv4: headers, and the names by which the other files know the network's header (ipv6.p4 has the same names).

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<8>  IP_PROTOCOL_IGMP = 2;

// RFC 2113: option 148 (copied, class 0, number 20), length 4, value 0 ("examine packet").
const bit<32> IPV4_ROUTER_ALERT = 0x94040000;

typedef bit<32> ip_address_t;
#define ADDRESS_PAIR_BITS 64

header ipv4_t {
    bit<4>       version;
    bit<4>       ihl;
    bit<8>       diffserv;
    bit<16>      total_length;
    bit<16>      identification;
    bit<3>       flags;
    bit<13>      fragment_offset;
    bit<8>       ttl;
    bit<8>       protocol;
    bit<16>      header_checksum;
    ip_address_t src_address;
    ip_address_t dst_address;
}

header ipv4_options_t {
    varbit<320> options;
}

#define IP_HEADERS ipv4_t ipv4; ipv4_options_t ipv4_options;
// As in hdr.IP.diffserv. Both versions have diffserv, ttl, src_address and dst_address.
#define IP ipv4
#define TRANSPORT_PROTOCOL hdr.ipv4.protocol
// A first fragment has ports, and those that follow have none.
#define IS_WHOLE (hdr.ipv4.flags[0:0] == 0)
// Of class D: the first four bits [RFC 1112 sec 4].
#define IS_GROUP (hdr.ipv4.dst_address[31:28] == 14)
#define IP_LPM ipv4_lpm
