// Reports the number of connections to the controller, not their addresses: linear counting (Whang, Vander-Zanden and Taylor 1990). It
// replaces connections.p4 where CONNECTION_SKETCH is defined, for more connections than digests can carry.
//
//   (source, destination, epoch) --mix--> slot of the port; slot holds an older epoch --> write, count in `filled`
//
// The controller reads only `filled`: connections hit u of m slots, so n = -m ln(1 - u/m), with a standard error of
// sqrt(m (e^t - t - 1)) / n connections each, t = n/m. The slots stay in the data plane, where no controller can read them on stock BMv2.
//
// The mix includes the epoch, so that pairs that share a slot in one interval do not share it in the next: errors of different
// intervals are independent. Even and odd epochs count in different cells: the cell of a finished interval no longer changes.

#include "mix.p4"

// For all ports together; the controller assigns each port its part.
const bit<32> SKETCH_SLOTS = 1 << 21;

register<bit<32>>(SKETCH_SLOTS) sketch_epoch;
counter(2 * PORTS, CounterType.packets) filled;

control Sketch(in headers_t hdr, in port_t port) {
    MixAddresses() mix;

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
            bit<64> x = (bit<64>)epoch * 0x9E3779B97F4A7C15;
            mix.apply(hdr, x);
            bit<32> slot = first + ((bit<32>)x & mask);
            bit<32> seen;
            sketch_epoch.read(seen, slot);
            if (seen != epoch) {
                sketch_epoch.write(slot, epoch);
                filled.count((bit<32>)(port ++ epoch[0:0]));
            }
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
