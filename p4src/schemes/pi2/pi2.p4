// PI2 per output port (De Schepper, Bondarenko, Tsang and Briscoe, "PI2: A Linearized AQM for both Classic and Scalable TCP", 2016; the
// Classic queue of [RFC 9332 sec A]): PIE's controller, linear, whose output is squared for TCP that halves its window.
//
//   egress:  Pi2Departure  deq_timedelta, deq_qdepth, clock --> delay --> p', queue
//   ingress: Pi2Arrival    p', queue --> admit | mark | drop    before the packet takes a buffer or link time
//
// Copies of a multicast packet, whose port ingress does not know, meet the decision in egress.
//
//   p' <- p' + alpha (delay - target) + beta (delay - delay_old)    each T_UPDATE
//   drop if R1 < p' and R2 < p', R1 and R2 uniform in [0, 1): p'^2; mark instead if the transport is ECN-capable
//   ECT(1), CE: mark if R1 < k p', k = 2 [RFC 9332 sec 2.1], in one queue
//   while at most two packets wait, neither, as in PIE: no packet would leave and no update would be done if p' = 1 dropped all
//   from p' = 1/k on (overload, [RFC 9332 sec A.2]) all are dropped by p'^2, and the ECT(1) that stay are marked
//
// The delay and p' are those of pi2_controller.p4, which has the scale of each number.

#include "pi2_controller.p4"

const bit<32> PI2_FEW = 2;  // waiting packets

// Waiting packets as the next arrival will find them; departures correct the count after drops at a full queue.
register<bit<32>>(PORTS) pi2_queue;

// Whether to drop a packet, or to mark it, that found `queue` packets waiting.
control Pi2Decision(inout headers_t hdr, in port_t port, in bit<32> queue, in bool ecn, out bool discard) {
    counter(PORTS, CounterType.packets_and_bytes) drops;
    counter(PORTS, CounterType.packets_and_bytes) marks;

    apply {
        bit<32> index = (bit<32>)port;
        bit<64> p;
        discard = false;
        pi2_probability.read(p, index);
        if (p != 0 && queue > PI2_FEW) {
            bit<2> code = 0;
            if (ecn && hdr.IP.isValid()) {
                code = hdr.IP.diffserv[1:0];
            }
            bit<32> first;
            bit<32> second;
            random(first, 0, 0xFFFFFFFF);
            random(second, 0, 0xFFFFFFFF);
            bool once = (bit<64>)first << (PI2_UNIT_BITS - 32) < p << 1;
            bool twice = (bit<64>)first << (PI2_UNIT_BITS - 32) < p && (bit<64>)second << (PI2_UNIT_BITS - 32) < p;
            if (twice && (code == 0 || p >= PI2_SATURATED)) {
                discard = true;
                drops.count(index);
            } else if ((twice && code == 2) || (once && code[0:0] == 1)) {
                hdr.IP.diffserv = hdr.IP.diffserv | 3;
                marks.count(index);
            }
        }
    }
}

control Pi2Arrival(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    Pi2Decision() decision;
    bool ecn = false;

    action set_decision(bit<1> marking) {
        ecn = marking == 1;
    }

    table pi2_parameters {
        key = { standard_metadata.egress_spec : exact; }
        actions = { set_decision; NoAction; }
        size = PORTS;
        default_action = NoAction();
    }

    apply {
        bit<32> index = (bit<32>)standard_metadata.egress_spec;
        if (pi2_parameters.apply().hit) {
            bit<32> queue;
            bool discard;
            pi2_queue.read(queue, index);
            decision.apply(hdr, standard_metadata.egress_spec, queue, ecn, discard);
            if (discard) {
                mark_to_drop(standard_metadata);
            } else {
                pi2_queue.write(index, queue + 1);
            }
        }
    }
}

control Pi2Departure(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    Pi2Update() update;
    Pi2Decision() decision;
    bit<32> target = 0;
    bit<32> period = 0;  // T_UPDATE
    bit<32> alpha = 0;
    bit<32> beta = 0;
    bool ecn = false;

    action set_pi2(bit<32> target_us, bit<32> update_us, @fraction_bits(PI2_UNIT_BITS) bit<32> alpha_per_us,
                   @fraction_bits(PI2_UNIT_BITS) bit<32> beta_per_us, bit<1> marking) {
        target = target_us;
        period = update_us;
        alpha = alpha_per_us;
        beta = beta_per_us;
        ecn = marking == 1;
    }

    table pi2_parameters {
        key = { standard_metadata.egress_port : exact; }
        actions = { set_pi2; NoAction; }
        size = PORTS;
        default_action = NoAction();
    }

    apply {
        bit<32> index = (bit<32>)standard_metadata.egress_port;
        if (pi2_parameters.apply().hit) {
            bit<32> delay = 0;
            if (standard_metadata.deq_qdepth != 0) {
                delay = standard_metadata.deq_timedelta;
            }
            pi2_queue.write(index, (bit<32>)standard_metadata.deq_qdepth);
            update.apply(index, standard_metadata.egress_global_timestamp, target, period, alpha, beta, delay);

            // One queueing delay late. On the embedded switch a packet that egress drops uses no link time.
            if (standard_metadata.instance_type == REPLICATION && standard_metadata.egress_spec != DROP_PORT) {
                bool discard;
                decision.apply(hdr, standard_metadata.egress_port, (bit<32>)standard_metadata.enq_qdepth, ecn, discard);
                if (discard) {
                    mark_to_drop(standard_metadata);
                }
            }
        }
    }
}
