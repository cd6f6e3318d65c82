// Reports each connection, a pair of source and destination address [ALS sec 3.1], to the controller once per observation
// interval and output port.
//
//   (source, destination, output) --hash--> slot; slot holds another pair, or an older epoch --> digest
//
// The controller numbers the intervals: at each second it gives `observation` the next epoch, and every pair that is
// still sending is reported again. So all switches use the controller's intervals, not their own clocks.
// Two pairs that share a slot evict each other and are reported more than once; the controller counts distinct pairs, so
// the count stays exact, at the cost of more digests.

const bit<32> CONNECTION_SLOTS = 65536;

control Connections(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    register<bit<ADDRESS_PAIR_BITS>>(CONNECTION_SLOTS) slot_pair;
    register<bit<64>>(CONNECTION_SLOTS) slot_epoch;

    bit<32> epoch = 0;

    action set_epoch(bit<32> number) {
        epoch = number;
    }

    // No keys: the default action's argument is the epoch; 0 means: do not count.
    table observation {
        actions = { set_epoch; }
        default_action = set_epoch(0);
    }

    apply {
        observation.apply();
        if (epoch != 0) {
            bit<ADDRESS_PAIR_BITS> pair = hdr.IP.src_address ++ hdr.IP.dst_address;
            bit<64> tag = epoch ++ 7w0 ++ standard_metadata.egress_spec ++ standard_metadata.mcast_grp;
            bit<32> slot;
            bit<ADDRESS_PAIR_BITS> seen_pair;
            bit<64> seen_tag;
            hash(slot, HashAlgorithm.crc32, 32w0,
                 { hdr.IP.src_address, hdr.IP.dst_address, standard_metadata.egress_spec, standard_metadata.mcast_grp },
                 CONNECTION_SLOTS);
            slot_pair.read(seen_pair, slot);
            slot_epoch.read(seen_tag, slot);
            if (seen_pair != pair || seen_tag != tag) {
                slot_pair.write(slot, pair);
                slot_epoch.write(slot, tag);
                digest<connection_t>(1, { epoch, standard_metadata.egress_spec, standard_metadata.mcast_grp,
                                          hdr.IP.src_address, hdr.IP.dst_address });
            }
        }
    }
}

// Ingress has reported copies by their group, whose ports the controller knows.
control ReplicaConnections(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    apply {
    }
}
