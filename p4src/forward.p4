// IPv4 destination -> one port (longest prefix wins), or the multicast group of a class D address.
// IGMP goes to the controller, which turns joins and leaves into group members.
//
//   ipv4.dst_address --ipv4_lpm--> egress_spec, ethernet addresses, ttl | drop
//   224.0.0.0/4      --multicast_from, multicast--> mcast_grp, ttl | drop

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

    // The group determines the Ethernet destination [RFC 1112 sec 6.4], which stays.
    action replicate(bit<16> group) {
        standard_metadata.mcast_grp = group;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }

    table ipv4_lpm {
        key = { hdr.ipv4.dst_address : lpm; }
        actions = { send; drop; }
        size = 4096;
        default_action = drop();
    }

    // From a port that itself leads to members: to the other ports. So no copy for the ingress port ever
    // takes a place in that port's queue.
    table multicast_from {
        key = {
            standard_metadata.ingress_port : exact;
            hdr.ipv4.dst_address : exact;
        }
        actions = { replicate; drop; NoAction; }
        size = 4096;
        default_action = NoAction();
    }

    // From any other port: to all ports that lead to members. Groups without members go to multicast routers, if any.
    table multicast {
        key = { hdr.ipv4.dst_address : exact; }
        actions = { replicate; drop; }
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
        } else if (hdr.ipv4.dst_address[31:28] == CLASS_D) {
            if (!multicast_from.apply().hit) {
                multicast.apply();
            }
        } else {
            ipv4_lpm.apply();
        }
    }
}
