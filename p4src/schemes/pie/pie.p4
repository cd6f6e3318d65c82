// PIE per output port (RFC 8033): drops, or marks, arrivals with a probability that a controller of the queue's delay sets.
//
//   egress:  PieDeparture  deq_timedelta, deq_qdepth, clock --> delay --> probability, burst allowance, queue
//   ingress: PieArrival    probability, queue --> admit | mark | drop    before the packet takes a buffer or link time
//
// Copies of a multicast packet, whose port ingress does not know, meet the decision in egress.
//
//   p <- p + s (alpha (delay - target) + beta (delay - delay_old))    each T_UPDATE (section 4.2)
//   s    1/2048, 1/512, 1/128, 1/32, 1/8, 1/2 while p < 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1; else 1, and a step up is 0.02 at most (section 5.5)
//   p <- 0.98 p    if delay = delay_old = 0
//   drop if R < p, R uniform in [0, 1), except
//     while the burst allowance lasts, which an idle queue with p = 0 renews (section 4.4);
//     if delay_old < target / 2 and p < 0.2, or at most two packets wait (section 4.1)
//   mark instead of drop if p < 0.1 and the transport is ECN-capable (section 5.1)
//
// The delay is the waiting time of the last packet that left, and 0 if it left nothing behind.
//
// P4 has no timer, so each departure does the update that is due, one at most. While packets wait, departures are less than T_UPDATE apart
// (on a slower link, an update each departure). An idle port misses updates, and the packets that end the idle time catch up, one update
// each, with the delay of 0 that they missed. Once p and both delays are 0, the rest would change nothing, and is left out.
//
// Fixed point. Each number is an unsigned integer times a power of two:
//   probability, R             2^-48 (R has 32 bits)
//   alpha, beta                2^-48 per microsecond: relative error below 1e-6 for alpha >= 0.002 per second
//   delays, target, T_UPDATE   microseconds; delays up to 2^24 (17 s), so that products have 57 bits at most
// An update rounds by less than 2^-47, a decay by less than 2^-37.

#define PIE_UNIT_BITS 48

const bit<64> PIE_ONE = 64w1 << PIE_UNIT_BITS;
const bit<64> PIE_MICRO = 281474977;         // 1e-6
const bit<64> PIE_10_MICRO = 2814749767;     // 1e-5
const bit<64> PIE_100_MICRO = 28147497671;   // 1e-4
const bit<64> PIE_MILLI = 281474976711;      // 1e-3
const bit<64> PIE_HUNDREDTH = 2814749767107;
const bit<64> PIE_STEP = 5629499534213;      // 0.02
const bit<64> PIE_DECAY = 85899346;          // 0.02 x 2^32
const bit<64> PIE_TENTH = 28147497671066;
const bit<64> PIE_FIFTH = 56294995342131;
const bit<32> PIE_LONGEST = (1 << 24) - 1;
const bit<32> PIE_FEW = 2;  // waiting packets

// Per port, written by departures.
register<bit<64>>(PORTS) pie_probability;
register<bit<32>>(PORTS) pie_delay;            // microseconds, as all times here
register<bit<32>>(PORTS) pie_delay_old;
register<bit<32>>(PORTS) pie_burst_allowance;
register<bit<48>>(PORTS) pie_next_update;      // 0: no packet has left yet
register<bit<48>>(PORTS) pie_idle_until;       // end of the last idle time
// Waiting packets as the next arrival will find them; departures correct the count after drops at a full queue.
register<bit<32>>(PORTS) pie_queue;

// Whether to drop a packet, or to mark it, that found `queue` packets waiting.
control PieDecision(inout headers_t hdr, in port_t port, in bit<32> queue, in bit<32> target, in bool ecn, out bool discard) {
    counter(PORTS, CounterType.packets_and_bytes) drops;
    counter(PORTS, CounterType.packets_and_bytes) marks;  // instead of drops

    apply {
        bit<32> index = (bit<32>)port;
        bit<64> p;
        discard = false;
        pie_probability.read(p, index);
        if (p != 0 && queue > PIE_FEW) {
            bit<32> delay_old;
            bit<32> allowance;
            pie_delay_old.read(delay_old, index);
            pie_burst_allowance.read(allowance, index);
            if (allowance == 0 && (p >= PIE_FIFTH || delay_old >= target >> 1)) {
                bit<32> draw;
                random(draw, 0, 0xFFFFFFFF);
                if ((bit<64>)draw << (PIE_UNIT_BITS - 32) < p) {
                    if (ecn && p < PIE_TENTH && hdr.IP.isValid() && hdr.IP.diffserv & 3 != 0) {
                        hdr.IP.diffserv = hdr.IP.diffserv | 3;
                        marks.count(index);
                    } else {
                        discard = true;
                        drops.count(index);
                    }
                }
            }
        }
    }
}

control PieArrival(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    PieDecision() decision;
    bit<32> target = 0;
    bool ecn = false;

    action set_decision(bit<32> target_us, bit<1> marking) {
        target = target_us;
        ecn = marking == 1;
    }

    table pie_parameters {
        key = { standard_metadata.egress_spec : exact; }
        actions = { set_decision; NoAction; }
        size = PORTS;
        default_action = NoAction();
    }

    apply {
        bit<32> index = (bit<32>)standard_metadata.egress_spec;
        if (pie_parameters.apply().hit) {
            bit<32> queue;
            bool discard;
            pie_queue.read(queue, index);
            decision.apply(hdr, standard_metadata.egress_spec, queue, target, ecn, discard);
            if (discard) {
                mark_to_drop(standard_metadata);
            } else {
                pie_queue.write(index, queue + 1);
            }
        }
    }
}

control PieDeparture(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    PieDecision() decision;
    bit<32> target = 0;
    bit<32> period = 0;  // T_UPDATE
    bit<32> alpha = 0;
    bit<32> beta = 0;
    bit<32> max_burst = 0;
    bool ecn = false;

    action set_pie(bit<32> target_us, bit<32> update_us, @fraction_bits(PIE_UNIT_BITS) bit<32> alpha_per_us,
                   @fraction_bits(PIE_UNIT_BITS) bit<32> beta_per_us, bit<32> burst_us, bit<1> marking) {
        target = target_us;
        period = update_us;
        alpha = alpha_per_us;
        beta = beta_per_us;
        max_burst = burst_us;
        ecn = marking == 1;
    }

    table pie_parameters {
        key = { standard_metadata.egress_port : exact; }
        actions = { set_pie; NoAction; }
        size = PORTS;
        default_action = NoAction();
    }

    apply {
        bit<32> index = (bit<32>)standard_metadata.egress_port;
        if (pie_parameters.apply().hit) {
            bit<48> now = standard_metadata.egress_global_timestamp;
            bit<64> p;
            bit<32> delay = standard_metadata.deq_timedelta;
            bit<32> delay_before;
            bit<32> delay_old;
            bit<32> allowance;
            bit<32> allowance_before;
            bit<48> due;
            bit<48> idle_until;
            pie_probability.read(p, index);
            pie_delay.read(delay_before, index);
            pie_delay_old.read(delay_old, index);
            pie_burst_allowance.read(allowance, index);
            pie_next_update.read(due, index);
            pie_idle_until.read(idle_until, index);
            allowance_before = allowance;

            if (standard_metadata.deq_qdepth == 0) {
                delay = 0;
            } else if (delay > PIE_LONGEST) {
                delay = PIE_LONGEST;
            }
            pie_delay.write(index, delay);
            pie_queue.write(index, (bit<32>)standard_metadata.deq_qdepth);
            if (delay_before == 0) {
                // The packet before left nothing behind.
                idle_until = now;
                pie_idle_until.write(index, idle_until);
            }

            if (due == 0) {
                pie_next_update.write(index, now + (bit<48>)period);
            } else if (now >= due) {
                bool missed = due < idle_until;
                if (missed) {
                    delay = 0;
                }
                bit<64> up = ((bit<64>)alpha + (bit<64>)beta) * (bit<64>)delay;
                bit<64> down = (bit<64>)alpha * (bit<64>)target + (bit<64>)beta * (bit<64>)delay_old;
                bit<8> shift = 0;
                if (p < PIE_MICRO) { shift = 11; }
                else if (p < PIE_10_MICRO) { shift = 9; }
                else if (p < PIE_100_MICRO) { shift = 7; }
                else if (p < PIE_MILLI) { shift = 5; }
                else if (p < PIE_HUNDREDTH) { shift = 3; }
                else if (p < PIE_TENTH) { shift = 1; }
                if (up >= down) {
                    bit<64> rise = (up - down) >> shift;
                    if (shift == 0 && rise > PIE_STEP) {
                        rise = PIE_STEP;
                    }
                    p = p + rise;
                } else {
                    p = p |-| ((down - up) >> shift);
                }
                due = due + (bit<48>)period;
                if (delay == 0 && delay_old == 0) {
                    p = p - (((p >> 16) * PIE_DECAY) >> 16);
                }
                if (now >= due && (!missed || (p == 0 && delay_old == 0))) {
                    due = now + (bit<48>)period;
                }
                if (p > PIE_ONE) {
                    p = PIE_ONE;
                }
                allowance = allowance |-| period;
                delay_old = delay;
                pie_probability.write(index, p);
                pie_delay_old.write(index, delay_old);
                pie_next_update.write(index, due);
            }
            if (p == 0 && delay < target >> 1 && delay_old < target >> 1) {
                allowance = max_burst;
            }
            if (allowance != allowance_before) {
                pie_burst_allowance.write(index, allowance);
            }

            // One queueing delay late. On the embedded switch a packet that egress drops uses no link time.
            if (standard_metadata.instance_type == REPLICATION && standard_metadata.egress_spec != DROP_PORT) {
                bool discard;
                decision.apply(hdr, standard_metadata.egress_port, (bit<32>)standard_metadata.enq_qdepth, target, ecn, discard);
                if (discard) {
                    mark_to_drop(standard_metadata);
                }
            }
        }
    }
}
