// Lab 3: random early detection per output port, in packets (Floyd and Jacobson 1993, figure 2).
//
//   ingress: RedArrival    queue, clock --> average --> admit | drop     before the packet takes a buffer or link time
//   egress:  RedDeparture  deq_qdepth   --> queue, start of idle time
//   egress:  RedReplica    the same decision for copies of a multicast packet; nothing to do there
//
// Fixed point. P4 has neither fractions nor signs here; each number is an unsigned integer times a power of two:
//   average, thresholds   2^-20 packets   (up to 4095 packets)
//   weight, probability   2^-32
//   factor                2^-31
// The formulas:
//   avg <- avg + w (q - avg)                   at each arrival; w is the weight, q the queue that it finds
//   avg <- avg (1-w)^m                         instead, after an idle time of m packets: given
//   p_b = max_p (avg - min) / (max - min)      as slope (avg - min): the controller has divided already
//   drop if R < p_b / (1 - count p_b)          as R (1 - count p_b) < p_b, since P4 does not divide; R uniform in [0, 1)

const bit<32> RED_QUEUE_LIMIT = 4095;
const bit<64> RED_ONE = 64w1 << 32;

struct red_parameters_t {
    bool    enabled;
    bit<32> minimum;       // packets x 2^20
    bit<32> maximum;       // packets x 2^20
    bit<32> slope;         // max_p / (max - min) per packet x 2^32
    bit<32> weight;        // x 2^32
    bit<32> idle_decay;    // -ln(1 - w) / s, per microsecond x 2^40
}

// Per port. Waiting packets as the next arrival will find them; departures correct the count after drops at a full queue.
register<bit<32>>(PORTS) red_queue;
register<bit<32>>(PORTS) red_average;
// 0: below the minimum; else 1 + packets admitted since the last drop (the paper's count, plus one).
register<bit<32>>(PORTS) red_count;
// Time at which the link has nothing more to send, in microseconds of the switch's clock.
register<bit<48>>(PORTS) red_idle_since;

// Given: the decay of the average in idle time. Your part begins after it, at RedDecision.
//
// e^-x for x >= 0 in units of 2^-32, as a factor in units of 2^-31.
control NegativeExponential(in bit<64> x, out bit<64> result) {
    bit<64> factor = 0;

    action set_factor(bit<64> value) {
        factor = value;
    }

    table whole {
        key = { x[63:32] : exact @name("x_whole"); }
        actions = { set_factor; }
        default_action = set_factor(0);
        const entries = {
            0 : set_factor(2147483648);  // exp(-0)
            1 : set_factor(790015084);  // exp(-1)
            2 : set_factor(290630308);  // exp(-2)
            3 : set_factor(106916915);  // exp(-3)
            4 : set_factor(39332535);  // exp(-4)
            5 : set_factor(14469631);  // exp(-5)
            6 : set_factor(5323080);  // exp(-6)
            7 : set_factor(1958252);  // exp(-7)
            8 : set_factor(720401);  // exp(-8)
            9 : set_factor(265021);  // exp(-9)
            10 : set_factor(97496);  // exp(-10)
            11 : set_factor(35867);  // exp(-11)
            12 : set_factor(13195);  // exp(-12)
            13 : set_factor(4854);  // exp(-13)
            14 : set_factor(1786);  // exp(-14)
            15 : set_factor(657);  // exp(-15)
        }
    }

    table sixteenths {
        key = { x[31:28] : exact @name("x_sixteenths"); }
        actions = { set_factor; }
        default_action = set_factor(0);
        const entries = {
            0 : set_factor(2147483648);  // exp(-0/16)
            1 : set_factor(2017374191);  // exp(-1/16)
            2 : set_factor(1895147668);  // exp(-2/16)
            3 : set_factor(1780326475);  // exp(-3/16)
            4 : set_factor(1672461947);  // exp(-4/16)
            5 : set_factor(1571132600);  // exp(-5/16)
            6 : set_factor(1475942488);  // exp(-6/16)
            7 : set_factor(1386519653);  // exp(-7/16)
            8 : set_factor(1302514674);  // exp(-8/16)
            9 : set_factor(1223599299);  // exp(-9/16)
            10 : set_factor(1149465165);  // exp(-10/16)
            11 : set_factor(1079822591);  // exp(-11/16)
            12 : set_factor(1014399448);  // exp(-12/16)
            13 : set_factor(952940092);  // exp(-13/16)
            14 : set_factor(895204371);  // exp(-14/16)
            15 : set_factor(840966680);  // exp(-15/16)
        }
    }

    apply {
        bit<64> rest = (bit<64>)x[27:0];
        bit<64> square = (rest * rest) >> 32;
        // 1 - f + f^2/2, in units of 2^-31.
        bit<64> small = (RED_ONE - rest + (square >> 1)) >> 1;
        whole.apply();
        bit<64> product = (factor * small) >> 31;
        sixteenths.apply();
        result = (factor * product) >> 31;
    }
}

// One arrival: updates the port's average and decides whether to drop the packet.
control RedDecision(in port_t port, in bit<32> queue, in bit<48> now, in red_parameters_t red, out bool discard) {
    NegativeExponential() negative_exponential;
    counter(PORTS, CounterType.packets_and_bytes) early_drops;   // minimum <= average < maximum
    counter(PORTS, CounterType.packets_and_bytes) forced_drops;  // average >= maximum

    apply {
        bit<32> index = (bit<32>)port;
        bit<32> stored;
        bit<48> idle_since;
        bit<32> count;
        discard = false;
        red_average.read(stored, index);
        red_idle_since.read(idle_since, index);
        red_count.read(count, index);
        bit<64> average = (bit<64>)stored;
        bit<64> weight = (bit<64>)red.weight;

        if (queue == 0 && now > idle_since) {
            bit<64> idle = (bit<64>)(now - idle_since);
            // Half an hour: the bound keeps the product within 64 bits.
            if (idle > 0x7FFFFFFF) {
                idle = 0x7FFFFFFF;
            }
            bit<64> factor;
            negative_exponential.apply((idle * (bit<64>)red.idle_decay) >> 8, factor);
            average = (average * factor) >> 31;
        } else {
            bit<64> depth = (bit<64>)queue;
            if (queue > RED_QUEUE_LIMIT) {
                depth = (bit<64>)RED_QUEUE_LIMIT;
            }
            depth = depth << 20;
            // BEGIN SOLUTION
            if (depth >= average) {
                average = average + (((depth - average) * weight + 0x80000000) >> 32);
            } else {
                average = average - (((average - depth) * weight + 0x80000000) >> 32);
            }
            // SKELETON
            // // TODO 1: move the average towards `depth` by the weight. Both are in units of 2^-20 packets, the weight in units of 2^-32.
            // END SOLUTION
        }
        red_average.write(index, (bit<32>)average);

        // BEGIN SOLUTION
        if (average < (bit<64>)red.minimum) {
            count = 0;
        } else if (average >= (bit<64>)red.maximum) {
            discard = true;
            count = 1;
            forced_drops.count(index);
        } else {
            bit<64> probability = ((average - (bit<64>)red.minimum) * (bit<64>)red.slope) >> 20;
            bit<64> spread = (bit<64>)count * probability;
            bit<32> draw;
            random(draw, 0, 0xFFFFFFFF);
            count = count |+| 1;
            if (spread >= RED_ONE || ((RED_ONE - spread) * (bit<64>)draw) >> 32 < probability) {
                discard = true;
                count = 1;
                early_drops.count(index);
            }
        }
        // SKELETON
        // // TODO 2: decide. `count` is 0 below the minimum, else 1 + packets admitted since the last drop.
        // //   below the minimum       admit
        // //   from the maximum on     drop, and count the packet in forced_drops
        // //   in between              drop with the probability above, and count the packet in early_drops;
        // //                           random(draw, 0, 0xFFFFFFFF) draws R in units of 2^-32
        // END SOLUTION
        red_count.write(index, count);
    }
}

control RedArrival(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    RedDecision() decision;
    red_parameters_t red = { false, 0, 0, 0, 0, 0 };

    action set_red(bit<32> minimum, bit<32> maximum, bit<32> slope, bit<32> weight, bit<32> idle_decay) {
        red = { true, minimum, maximum, slope, weight, idle_decay };
    }

    table red_parameters {
        key = { standard_metadata.egress_spec : exact; }
        actions = { set_red; NoAction; }
        size = PORTS;
        default_action = NoAction();
    }

    apply {
        bit<32> index = (bit<32>)standard_metadata.egress_spec;
        red_parameters.apply();
        if (red.enabled) {
            bit<32> queue;
            bool discard;
            red_queue.read(queue, index);
            decision.apply(standard_metadata.egress_spec, queue, standard_metadata.ingress_global_timestamp, red, discard);
            // BEGIN SOLUTION
            if (discard) {
                mark_to_drop(standard_metadata);
            } else {
                red_queue.write(index, queue + 1);
            }
            // SKELETON
            // // TODO 3: a packet that RED discards must not go on. One that it admits takes a place in the queue, and the next
            // //         arrival must find it there.
            // END SOLUTION
        }
    }
}

// Copies meet RED when they leave the queue, with the queue length and the instant of their entry,
// one queueing delay late. On the embedded switch a packet that egress drops uses no link time.
control RedReplica(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    RedDecision() decision;
    red_parameters_t red = { false, 0, 0, 0, 0, 0 };

    action set_red(bit<32> minimum, bit<32> maximum, bit<32> slope, bit<32> weight, bit<32> idle_decay) {
        red = { true, minimum, maximum, slope, weight, idle_decay };
    }

    table red_parameters {
        key = { standard_metadata.egress_port : exact; }
        actions = { set_red; NoAction; }
        size = PORTS;
        default_action = NoAction();
    }

    apply {
        red_parameters.apply();
        if (red.enabled) {
            bool discard;
            bit<48> arrival = standard_metadata.egress_global_timestamp - (bit<48>)standard_metadata.deq_timedelta;
            decision.apply(standard_metadata.egress_port, (bit<32>)standard_metadata.enq_qdepth, arrival, red, discard);
            if (discard) {
                mark_to_drop(standard_metadata);
            }
        }
    }
}

control RedDeparture(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    bit<32> transmission = 0;

    action set_link(bit<32> microseconds_per_byte) {
        transmission = microseconds_per_byte;
    }

    // Microseconds per byte x 2^20 (0.8 at 10 Mb/s).
    table link {
        key = { standard_metadata.egress_port : exact; }
        actions = { set_link; NoAction; }
        size = PORTS;
        default_action = NoAction();
    }

    apply {
        bit<32> index = (bit<32>)standard_metadata.egress_port;
        if (link.apply().hit) {
            // BEGIN SOLUTION
            red_queue.write(index, (bit<32>)standard_metadata.deq_qdepth);
            // SKELETON
            // // TODO 4: record for later arrivals how many packets wait behind this one.
            // END SOLUTION
            if (standard_metadata.deq_qdepth == 0) {
                if (standard_metadata.egress_spec != DROP_PORT) {
                    bit<64> duration = ((bit<64>)standard_metadata.packet_length * (bit<64>)transmission) >> 20;
                    red_idle_since.write(index, standard_metadata.egress_global_timestamp + (bit<48>)duration);
                } else if (standard_metadata.deq_timedelta != 0) {
                    // A copy that RED dropped at its turn on the link; a copy that found the link idle leaves it idle.
                    red_idle_since.write(index, standard_metadata.egress_global_timestamp);
                }
            }
        }
    }
}
