// Wire formats, outermost first, and the metadata that a packet carries between the stages.

typedef bit<48> mac_address_t;
typedef bit<9>  port_t;

@controller_header("packet_in")
header packet_in_t {
    port_t ingress_port;
    bit<7> pad;
}

@controller_header("packet_out")
header packet_out_t {
    port_t egress_port;
    bit<7> pad;
}

header ethernet_t {
    mac_address_t dst_address;
    mac_address_t src_address;
    bit<16>       ether_type;
}

#ifdef IPV6
#include "ipv6.p4"
#else
#include "ipv4.p4"
#endif

header tcp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<32> sequence_number;
    bit<32> acknowledgement_number;
    bit<4>  data_offset;
    bit<4>  reserved;
    bit<8>  flags;
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent_pointer;
}

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length;
    bit<16> checksum;
}

// Any RTCP packet that precedes ALSF in the compound: SR, RR, SDES, BYE, another APP [RFC 3550 sec 6].
header rtcp_t {
    bit<2>  version;
    bit<1>  padding;
    bit<5>  count;
    bit<8>  packet_type;
    bit<16> length;
    varbit<RTCP_MAXIMUM_BITS> body;
}

// The fixed part of any RTCP packet, and of an APP packet: only for lookahead, never extracted.
header rtcp_header_t {
    bit<2>  version;
    bit<1>  padding;
    bit<5>  count;
    bit<8>  packet_type;
    bit<16> length;
}

header app_header_t {
    bit<2>  version;
    bit<1>  padding;
    bit<5>  subtype;
    bit<8>  packet_type;
    bit<16> length;
    bit<32> ssrc;
    bit<32> name;
}

// RTCP APP named ALSF ([RFC 3550 sec 6.7]; layout in docs/architecture.md). Layers, if any, stay in the payload.
header alsf_t {
    bit<2>  version;
    bit<1>  padding;
    bit<5>  subtype;
    bit<8>  packet_type;
    bit<16> length;
    bit<32> ssrc;
    bit<32> name;
    bit<64> desired_rate_bps;
    bit<32> utilisation_ppm;
}

struct headers_t {
    packet_in_t             packet_in;
    packet_out_t            packet_out;
    ethernet_t              ethernet;
    IP_HEADERS
    tcp_t                   tcp;
    udp_t                   udp;
    rtcp_t[RTCP_STACK_SIZE] rtcp;
    alsf_t                  alsf;
    DATA_HEADERS
}

struct metadata_t {
    bool router_alert;
}

// The digest of a connection's first packet in an observation interval.
struct connection_t {
    bit<32>      epoch;
    port_t       egress_port;      // 0 when the packet goes to a multicast group
    bit<16>      multicast_group;  // 0 when the packet goes to one port
    ip_address_t src_address;
    ip_address_t dst_address;
}
