// start -> [packet_out] -> ethernet -> ipv4 -> [options]    -> tcp | udp -> [rtcp ...] -> [alsf]
//                             with IPV6: ipv6 -> [hop by hop]            udp -> [rtp -> the header of a scheme]
//
// RTCP is parsed only behind the router alert option, so that data packets pay nothing for it. A compound that is cut
// short, too deep or not RTCP raises a parser error; the packet is forwarded unchanged, only without an ALSF header.

parser AlsParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    bit<16> rtcp_length;
#ifdef IPV6
    bit<32> hop_by_hop_length;
#endif

    state start {
        meta.router_alert = false;
        transition select(standard_metadata.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }

    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_ethernet;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
#ifdef IPV6
            ETHERTYPE_IPV6: parse_ipv6;
#else
            ETHERTYPE_IPV4: parse_ipv4;
#endif
            default: accept;
        }
    }

#ifdef IPV6
    state parse_ipv6 {
        packet.extract(hdr.ipv6);
        transition select(hdr.ipv6.version, hdr.ipv6.next_header) {
            (6, IPV6_HOP_BY_HOP): parse_hop_by_hop;
            (6, IP_PROTOCOL_TCP): parse_tcp;
            (6, IP_PROTOCOL_UDP): parse_udp;
            default: accept;
        }
    }

    state parse_hop_by_hop {
        // Not by lookahead of a header: as p4c compiles that, the packet would be longer by it in egress.
        bit<48> first = packet.lookahead<bit<48>>();
        meta.router_alert = first[31:0] == IPV6_ROUTER_ALERT;
        hop_by_hop_length = (bit<32>)first[39:32];
        transition select(first[39:32]) {
            0..HOP_BY_HOP_MAXIMUM_LENGTH: parse_hop_by_hop_options;
            default: accept;
        }
    }

    state parse_hop_by_hop_options {
        packet.extract(hdr.hop_by_hop, hop_by_hop_length * 64 + 48);
        transition select(hdr.hop_by_hop.next_header) {
            IP_PROTOCOL_TCP: parse_tcp;
            IP_PROTOCOL_UDP: parse_udp;
            default: accept;
        }
    }
#else
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.version, hdr.ipv4.ihl) {
            (4, 5): parse_transport;
            (4, 6..15): parse_ipv4_options;
            default: accept;
        }
    }

    state parse_ipv4_options {
        meta.router_alert = packet.lookahead<bit<32>>() == IPV4_ROUTER_ALERT;
        packet.extract(hdr.ipv4_options, ((bit<32>)hdr.ipv4.ihl - 5) * 32);
        transition parse_transport;
    }

    // Only a first fragment has a transport header.
    state parse_transport {
        transition select(hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (0, IP_PROTOCOL_TCP): parse_tcp;
            (0, IP_PROTOCOL_UDP): parse_udp;
            default: accept;
        }
    }
#endif

    state parse_tcp {
        packet.extract(hdr.tcp);
        transition accept;
    }

    state parse_udp {
        packet.extract(hdr.udp);
        transition select(meta.router_alert) {
            true: parse_first_rtcp;
            default: AFTER_UDP;
        }
    }

    DATA_STATES

    // A compound begins with a report [RFC 3550 sec 6.1].
    state parse_first_rtcp {
        rtcp_header_t first = packet.lookahead<rtcp_header_t>();
        rtcp_length = first.length;
        transition select(first.version, first.packet_type, first.length) {
            (RTCP_VERSION, RTCP_SR, 0..RTCP_MAXIMUM_LENGTH): parse_rtcp;
            (RTCP_VERSION, RTCP_RR, 0..RTCP_MAXIMUM_LENGTH): parse_rtcp;
            default: accept;
        }
    }

    state parse_rtcp {
        packet.extract(hdr.rtcp.next, (bit<32>)rtcp_length * 32);
        rtcp_header_t following = packet.lookahead<rtcp_header_t>();
        rtcp_length = following.length;
        transition select(following.version, following.packet_type, following.length) {
            (RTCP_VERSION, RTCP_APP, ALSF_MINIMUM_LENGTH..RTCP_MAXIMUM_LENGTH): parse_app;
            (RTCP_VERSION, RTCP_SR..RTCP_APP, 0..RTCP_MAXIMUM_LENGTH): parse_rtcp;
            default: accept;
        }
    }

    state parse_app {
        app_header_t app = packet.lookahead<app_header_t>();
        transition select(app.subtype, app.name) {
            (ALSF_FROM_SENDER, ALSF_NAME): parse_alsf;
            default: parse_rtcp;
        }
    }

    state parse_alsf {
        packet.extract(hdr.alsf);
        transition accept;
    }
}

control AlsDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.IP);
#ifdef IPV6
        packet.emit(hdr.hop_by_hop);
#else
        packet.emit(hdr.ipv4_options);
#endif
        packet.emit(hdr.tcp);
        packet.emit(hdr.udp);
        packet.emit(hdr.rtcp);
        packet.emit(hdr.alsf);
        DATA_EMITS
    }
}
