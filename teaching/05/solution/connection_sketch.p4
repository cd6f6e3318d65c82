// Lab 5: the switch's part of linear counting (Whang, Vander-Zanden and Taylor 1990). It replaces connections.p4 where CONNECTION_SKETCH is
// defined.
//
//   (source, destination, epoch) --mix--> slot of the port; slot holds an older epoch --> write, count in `filled`
//
// The controller reads only `filled`, since stock BMv2 serves no registers. Even and odd epochs count in different cells, cell
// 2 port + (epoch mod 2), so that the cell of a finished interval no longer changes while it is read.

// For all ports together; the controller assigns each port its part.
const bit<32> SKETCH_SLOTS = 1 << 21;

register<bit<32>>(SKETCH_SLOTS) sketch_epoch;
counter(2 * PORTS, CounterType.packets) filled;

// Mixes every bit of x into every bit of the result, one to one (Stafford's variant 13 of MurmurHash3's finalizer, as in SplitMix64).
// A CRC is unsuitable: it is linear, so a subnet's addresses spread more or less evenly than at random, which biases the estimate.
control MixBits(inout bit<64> x) {
    apply {
        x = x ^ (x >> 30);
        x = x * 0xBF58476D1CE4E5B9;
        x = x ^ (x >> 27);
        x = x * 0x94D049BB133111EB;
        x = x ^ (x >> 31);
    }
}

control Sketch(in headers_t hdr, in port_t port) {
    MixBits() mix;

    bit<32> epoch = 0;
    bit<32> first = 0;
    bit<32> mask = 0;

    action set_epoch(bit<32> number) {
        epoch = number;
    }

    // No keys: the default action's argument is the epoch; 0 means: do not count.
    table observation {
        actions = { set_epoch; }
        default_action = set_epoch(0);
    }

    // slots: a power of two, minus one.
    action set_region(bit<32> first_slot, bit<32> slots) {
        first = first_slot;
        mask = slots;
    }

    // A port that is not in the table is not counted.
    table region {
        key = { port : exact @name("port"); }
        actions = { set_region; NoAction; }
        size = PORTS;
        default_action = NoAction();
    }

    apply {
        observation.apply();
        if (epoch != 0 && region.apply().hit) {
            // The golden ratio's bits: neighbouring epochs give distant values.
            bit<64> x = (hdr.ipv4.src_address ++ hdr.ipv4.dst_address) ^ ((bit<64>)epoch * 0x9E3779B97F4A7C15);
            mix.apply(x);
            // BEGIN SOLUTION
            bit<32> slot = first + ((bit<32>)x & mask);
            bit<32> seen;
            sketch_epoch.read(seen, slot);
            if (seen != epoch) {
                sketch_epoch.write(slot, epoch);
                filled.count((bit<32>)(port ++ epoch[0:0]));
            }
            // SKELETON
            // // TODO 4: x is now as good as random. It chooses one of the port's slots: `first` is the first of them, `mask` their number minus one, a
            // //         power of two minus one. If sketch_epoch holds another epoch in that slot, this packet is its first hit in the current epoch.
            // END SOLUTION
        }
    }
}

control Connections(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    Sketch() sketch;

    apply {
        // A multicast packet counts at each of its output ports, which ingress does not know.
        if (standard_metadata.mcast_grp == 0) {
            sketch.apply(hdr, standard_metadata.egress_spec);
        }
    }
}

control ReplicaConnections(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    Sketch() sketch;

    apply {
        sketch.apply(hdr, standard_metadata.egress_port);
    }
}
