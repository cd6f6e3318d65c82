// DualPI2 per output port [RFC 9332 sec A], a DualQ Coupled AQM: scalable transports, which say so by ECT(1), have a queue of their own, kept
// short by marks; the other packets' queue is kept at a target; one probability p', of PI2's controller, couples both.
//
//   ingress: DualArrival    ECT(1), CE --> priority 1: the low-latency queue (L); all others: priority 0, the Classic queue (C)
//   egress:  DualDeparture  sojourn of L or C --> p' --> drop | mark | send    a packet that egress drops uses no link time
//
//   delay  <- max(L's, C's)    each: the sojourn of the queue's last packet, 0 if it left nothing behind [figure 8, line 2a]
//   native <- 0 | (sojourn - least) / range | 1    0 for a packet that leaves nothing behind [figure 5; figure 7, lines 5a to 5d]
//   L: mark by max(native, 2 p'); from p' = 1/2 on (overload) drop by p'^2, and mark all others [lines 4b to 8i]
//   C: drop by p'^2, or mark ECT(0); in overload drop both [lines 11 to 16]. ECT(1) in C (multicast) is treated as L [sec 2.5.1.1]
//
// "By" a likelihood is recur(): the likelihoods add up, and each time that their sum exceeds 1 it loses 1 and the event happens. It needs no
// random numbers, and each event comes as soon as it may. One sum is of each queue. Or it is a random number below the likelihood, as in the
// reference implementation [RFC 9332 sec 2.5.1]: "either probabilistic or deterministic". 2 p' is at most 1.
// The switch's scheduler decides which queue sends (`--port-weight` or `--port-time-shift`; strict priority without). Fixed point: as
// pi2_controller.p4.

#include "../pi2/pi2_controller.p4"

const bit<3> LOW_LATENCY = 1;

// Per port and queue, L's after C's.
register<bit<32>>(PORTS * 2) dualpi2_delay;  // microseconds
register<bit<64>>(PORTS * 2) dualpi2_sum;    // of recur(), 2^-48

control Happening(in bit<32> queue, in bit<64> likelihood, in bool randomly, out bool happens) {
    apply {
        if (randomly) {
            bit<32> drawn;
            random(drawn, 0, 0xFFFFFFFF);
            happens = (bit<64>)drawn << (PI2_UNIT_BITS - 32) < likelihood;
        } else {
            bit<64> sum;
            dualpi2_sum.read(sum, queue);
            sum = sum + likelihood;
            happens = sum > PI2_ONE;
            if (happens) {
                sum = sum - PI2_ONE;
            }
            dualpi2_sum.write(queue, sum);
        }
    }
}

control DualArrival(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    action classify() {
        standard_metadata.priority = LOW_LATENCY;
    }

    table dualpi2_ports {
        key = { standard_metadata.egress_spec : exact; }
        actions = { classify; NoAction; }
        size = PORTS;
        default_action = NoAction();
    }

    apply {
        if (hdr.IP.isValid() && hdr.IP.diffserv & 1 == 1) {
            dualpi2_ports.apply();
        }
    }
}

control DualDeparture(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    counter(PORTS, CounterType.packets_and_bytes) drops;
    counter(PORTS, CounterType.packets_and_bytes) marks;
    counter(PORTS, CounterType.packets_and_bytes) low_latency_marks;  // of marks, those in L
    counter(PORTS, CounterType.packets_and_bytes) overload;           // all packets that came to a decision in overload
    Pi2Update() update;
    Happening() happening;
    bit<32> target = 0;
    bit<32> period = 0;
    bit<32> alpha = 0;
    bit<32> beta = 0;
    bit<32> least = 0;
    bit<32> width = 0;
    bit<64> slope = 0;
    bool randomly = false;

    // The slope is 1 / range; a range of 0 makes the ramp a step.
    action set_dualpi2(bit<32> target_us, bit<32> update_us, @fraction_bits(PI2_UNIT_BITS) bit<32> alpha_per_us,
                       @fraction_bits(PI2_UNIT_BITS) bit<32> beta_per_us, bit<32> least_us, bit<32> range_us,
                       @fraction_bits(PI2_UNIT_BITS) bit<64> slope_per_us, bit<1> at_random) {
        target = target_us;
        period = update_us;
        alpha = alpha_per_us;
        beta = beta_per_us;
        least = least_us;
        width = range_us;
        slope = slope_per_us;
        randomly = at_random == 1;
    }

    table dualpi2_parameters {
        key = { standard_metadata.egress_port : exact; }
        actions = { set_dualpi2; NoAction; }
        size = PORTS;
        default_action = NoAction();
    }

    apply {
        if (dualpi2_parameters.apply().hit) {
            bit<32> index = (bit<32>)standard_metadata.egress_port;
            bool low_latency = standard_metadata.priority == LOW_LATENCY;
            bit<32> queue = index;
            bit<32> other = index + PORTS;
            if (low_latency) {
                queue = index + PORTS;
                other = index;
            }
            bit<32> sojourn = standard_metadata.deq_timedelta;
            bit<32> delay = 0;
            if (standard_metadata.deq_qdepth != 0) {
                delay = sojourn;
            }
            dualpi2_delay.write(queue, delay);
            bit<32> delay_other;
            dualpi2_delay.read(delay_other, other);
            if (delay_other > delay) {
                delay = delay_other;
            }
            update.apply(index, standard_metadata.egress_global_timestamp, target, period, alpha, beta, delay);

            if (standard_metadata.egress_spec != DROP_PORT) {
                bit<64> p;
                pi2_probability.read(p, index);
                bool overloaded = p >= PI2_SATURATED;
                if (overloaded) {
                    overload.count(index);
                }
                bit<2> code = 0;
                if (hdr.IP.isValid()) {
                    code = hdr.IP.diffserv[1:0];
                }
                bool scalable = code != 0 && (low_latency || code == 1 || code == 3);
                // p'^2 of two halves, so that products have 64 bits at most; only the result is rounded.
                bit<64> high = p >> 24;
                bit<64> low = p & 0xFFFFFF;
                bit<64> likelihood = high * high + (((high * low << 1) + (low * low >> 24)) >> 24);
                if (scalable && !overloaded) {
                    likelihood = p << 1;
                    if (low_latency && standard_metadata.deq_qdepth != 0 && sojourn >= least) {
                        bit<64> native = PI2_ONE;
                        if (sojourn - least < width) {
                            native = (bit<64>)(sojourn - least) * slope;
                        }
                        if (native > likelihood) {
                            likelihood = native;
                        }
                    }
                }
                bool happens;
                happening.apply(queue, likelihood, randomly, happens);
                if (happens && (code == 0 || overloaded)) {
                    mark_to_drop(standard_metadata);
                    drops.count(index);
                } else if (code != 3 && (happens || (overloaded && scalable))) {
                    hdr.IP.diffserv = hdr.IP.diffserv | 3;
                    marks.count(index);
                    if (low_latency) {
                        low_latency_marks.count(index);
                    }
                }
            }
        }
    }
}
