// Your own AQM instead of RED: drops by the current queue length, without an average. Above the minimum threshold it drops each
// arrival with probability 1/8, above the maximum always. docs/own-aqm.md explains it line by line.
//
// Keep what other files rely on: the names of the controls, which als.p4 applies; the tables and counters, which the controller uses.

register<bit<32>>(PORTS) red_queue;

control Steps(in port_t port, in bit<32> queue, in bit<32> minimum, in bit<32> maximum, out bool discard) {
    counter(PORTS, CounterType.packets_and_bytes) early_drops;
    counter(PORTS, CounterType.packets_and_bytes) forced_drops;

    apply {
        discard = false;
        bit<32> scaled = queue << 20;  // thresholds are packets x 2^20
        if (scaled >= maximum) {
            discard = true;
            forced_drops.count((bit<32>)port);
        } else if (scaled >= minimum) {
            bit<32> draw;
            random(draw, 0, 7);
            if (draw == 0) {
                discard = true;
                early_drops.count((bit<32>)port);
            }
        }
    }
}

control RedArrival(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    Steps() decision;
    bool enabled = false;
    bit<32> min = 0;
    bit<32> max = 0;

    action set_red(bit<32> minimum, bit<32> maximum, bit<32> slope, bit<32> weight, bit<32> idle_decay) {
        enabled = true;
        min = minimum;
        max = maximum;
    }

    table red_parameters {
        key = { standard_metadata.egress_spec : exact; }
        actions = { set_red; NoAction; }
        size = PORTS;
        default_action = NoAction();
    }

    apply {
        red_parameters.apply();
        if (enabled) {
            bit<32> queue;
            bool discard;
            red_queue.read(queue, (bit<32>)standard_metadata.egress_spec);
            decision.apply(standard_metadata.egress_spec, queue, min, max, discard);
            if (discard) {
                mark_to_drop(standard_metadata);
            } else {
                red_queue.write((bit<32>)standard_metadata.egress_spec, queue + 1);
            }
        }
    }
}

control RedReplica(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    Steps() decision;
    bool enabled = false;
    bit<32> min = 0;
    bit<32> max = 0;

    action set_red(bit<32> minimum, bit<32> maximum, bit<32> slope, bit<32> weight, bit<32> idle_decay) {
        enabled = true;
        min = minimum;
        max = maximum;
    }

    table red_parameters {
        key = { standard_metadata.egress_port : exact; }
        actions = { set_red; NoAction; }
        size = PORTS;
        default_action = NoAction();
    }

    apply {
        red_parameters.apply();
        if (enabled) {
            bool discard;
            decision.apply(standard_metadata.egress_port, (bit<32>)standard_metadata.enq_qdepth, min, max, discard);
            if (discard) {
                mark_to_drop(standard_metadata);
            }
        }
    }
}

control RedDeparture(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    action set_link(bit<32> microseconds_per_byte) {
    }

    table link {
        key = { standard_metadata.egress_port : exact; }
        actions = { set_link; NoAction; }
        size = PORTS;
        default_action = NoAction();
    }

    apply {
        if (link.apply().hit) {
            red_queue.write((bit<32>)standard_metadata.egress_port, (bit<32>)standard_metadata.deq_qdepth);
        }
    }
}
