// IPv4 destination -> one port or one multicast group (longest prefix wins).
// IGMP goes to the controller, which turns joins and leaves into group members.
//
//   ipv4.dst_address --ipv4_lpm--> egress_spec, ethernet addresses, ttl | mcast_grp | drop

control Forward(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action drop() {
        mark_to_drop(standard_metadata);
    }

    action send(port_t port, mac_address_t src_address, mac_address_t dst_address) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.src_address = src_address;
        hdr.ethernet.dst_address = dst_address;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }

    action multicast(bit<16> group) {
        standard_metadata.mcast_grp = group;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }

    table ipv4_lpm {
        key = { hdr.ipv4.dst_address : lpm; }
        actions = { send; multicast; drop; }
        size = 4096;
        default_action = drop();
    }

    apply {
        if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else if (!hdr.ipv4.isValid() || standard_metadata.checksum_error == 1) {
            drop();
        } else if (hdr.ipv4.protocol == IP_PROTOCOL_IGMP) {
            standard_metadata.egress_spec = CPU_PORT;
        } else if (hdr.ipv4.ttl <= 1) {
            drop();
        } else {
            ipv4_lpm.apply();
        }
    }
}
