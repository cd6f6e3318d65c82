// Destination -> one port (longest prefix wins), one of several of equal cost, or the multicast group of a group's address.
// IGMP goes to the controller, which turns joins and leaves into group members.
//
//   dst_address      --ipv4_lpm or ipv6_lpm--> egress_spec, ethernet addresses, ttl | drop | group of ports, seed
//   group, seed, flow --equal_cost--> egress_spec, ethernet addresses, ttl
//   a group          --multicast_from, multicast--> mcast_grp, ttl | drop

#include "mix.p4"

// A flow's number, by which switches choose among ports of equal cost: of addresses, protocol and ports, the same for all of its packets. `number`
// comes with the switch's seed. A CRC with a seed is unsuitable: it is linear, so a switch whose neighbours chose by the same bits would see flows that
// all choose alike. fairlane/topologies/equal_cost.py computes the same.
control FlowNumber(in headers_t hdr, inout bit<64> number) {
    MixAddresses() addresses;
    Mix() transport;

    apply {
        bit<32> ports = 0;
        // Not of the first of several fragments: the others have no ports.
        if (IS_WHOLE) {
            if (hdr.tcp.isValid()) {
                ports = hdr.tcp.src_port ++ hdr.tcp.dst_port;
            } else if (hdr.udp.isValid()) {
                // RTP has an even port, and its RTCP the odd one above [RFC 3550 sec 11]: both take one way, so that feedback is about that way.
                ports = hdr.udp.src_port[15:1] ++ 1w0 ++ hdr.udp.dst_port[15:1] ++ 1w0;
            }
        }
        addresses.apply(hdr, number);
        number = number ^ (24w0 ++ TRANSPORT_PROTOCOL ++ ports);
        transport.apply(number);
    }
}

control Forward(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action drop() {
        mark_to_drop(standard_metadata);
    }

    action send(port_t port, mac_address_t src_address, mac_address_t dst_address) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.src_address = src_address;
        hdr.ethernet.dst_address = dst_address;
        hdr.IP.ttl = hdr.IP.ttl - 1;
    }

    bit<16> port_group = 0;
    bit<64> flow_number = 0;

    // Several ports lead there at equal cost. Groups count from 1.
    action spread(bit<16> group, bit<64> seed) {
        port_group = group;
        flow_number = seed;
    }

    // The group determines the Ethernet destination [RFC 1112 sec 6.4], which stays.
    action replicate(bit<16> group) {
        standard_metadata.mcast_grp = group;
        hdr.IP.ttl = hdr.IP.ttl - 1;
    }

    table IP_LPM {
        key = { hdr.IP.dst_address : lpm; }
        actions = { send; spread; drop; }
        size = 4096;
        default_action = drop();
    }

    action_selector(HashAlgorithm.crc32, 4096, 32) equal_cost_ports;

    // The member of the group that the flow's number chooses.
    table equal_cost {
        key = {
            port_group : exact;
            flow_number : selector;
        }
        actions = { send; NoAction; }
        implementation = equal_cost_ports;
        size = 4096;
    }

    FlowNumber() number_of_flow;

    // From a port that itself leads to members: to the other ports. So no copy for the ingress port ever
    // takes a place in that port's queue.
    table multicast_from {
        key = {
            standard_metadata.ingress_port : exact;
            hdr.IP.dst_address : exact;
        }
        actions = { replicate; drop; NoAction; }
        size = 4096;
        default_action = NoAction();
    }

    // From any other port: to all ports that lead to members. Groups without members go to multicast routers, if any.
    table multicast {
        key = { hdr.IP.dst_address : exact; }
        actions = { replicate; drop; }
        size = 4096;
        default_action = drop();
    }

    apply {
        if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else if (!hdr.IP.isValid() || standard_metadata.checksum_error == 1) {
            drop();
#ifndef IPV6
        } else if (hdr.ipv4.protocol == IP_PROTOCOL_IGMP) {
            standard_metadata.egress_spec = CPU_PORT;
#endif
        } else if (hdr.IP.ttl <= 1) {
            drop();
        } else if (IS_GROUP) {
            if (!multicast_from.apply().hit) {
                multicast.apply();
            }
        } else {
            IP_LPM.apply();
            if (port_group != 0) {
                number_of_flow.apply(hdr, flow_number);
                if (!equal_cost.apply().hit) {
                    drop();
                }
            }
        }
    }
}
