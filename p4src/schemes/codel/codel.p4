// CoDel per output port (RFC 8289): drops, or marks, packets when all of them have waited longer than a target for an interval.
//
//   sojourn    microseconds that the packet waited (deq_timedelta)
//   ok         the sojourn of each packet was at least `target` for the time `interval`, and more than one packet waits
//   drop_next  drop_next + interval / sqrt(count), once `count` packets were dropped
//
// It runs in egress, for each packet that leaves the queue. The RFC's loop over dequeued packets is one packet each here: a packet that
// egress drops uses no link time on the embedded switch, so the next one follows at the same instant.
// The RFC compares the waiting bytes with a packet's; v1model tells of packets alone, so at most one waiting packet counts as no queue.
//
//   1 / sqrt(count)   count = m 4^k with 1 <= m < 4; of 1 / sqrt(m) the first guess stands in a table of 12 rows, and three steps of Newton,
//                     y <- y (3 - m y^2) / 2, follow: relative error below 5e-5 (y has 16 bits)

const bit<32> CODEL_COUNT_LIMIT = 0xFFFF;
const bit<48> CODEL_RECENT = 16;  // intervals within which a new dropping phase goes on where the last one was [RFC 8289 sec 5.5]

// Per port. The instant from which on packets may be dropped, if no packet waits less than the target before; 0: a packet did.
register<bit<48>>(PORTS) codel_first_above;
register<bit<48>>(PORTS) codel_drop_next;
register<bit<32>>(PORTS) codel_count;
register<bit<32>>(PORTS) codel_last_count;
// CODEL_DROPPING: the dropping phase. CODEL_OWED: the last packet was dropped in it, and drop_next is of before.
register<bit<2>>(PORTS) codel_phase;
const bit<2> CODEL_DROPPING = 1;
const bit<2> CODEL_OWED = 2;

// interval / sqrt(count), for 1 <= count < 2^16.
control ControlLaw(in bit<32> count, in bit<32> interval, out bit<48> result) {
    bit<64> y = 0;  // 1 / sqrt(m) x 2^16

    action set_guess(bit<64> value) {
        y = value;
    }

    bit<64> m = 0;  // x 2^14
    table guess {
        key = { m[15:12] : exact @name("m_quarters"); }
        actions = { set_guess; }
        default_action = set_guess(65536);
        const entries = {
            4 : set_guess(61884);
            5 : set_guess(55947);
            6 : set_guess(51449);
            7 : set_guess(47887);
            8 : set_guess(44977);
            9 : set_guess(42540);
            10 : set_guess(40461);
            11 : set_guess(38660);
            12 : set_guess(37080);
            13 : set_guess(35679);
            14 : set_guess(34426);
            15 : set_guess(33297);
        }
    }

    apply {
        bit<8> k = 7;
        m = (bit<64>)count;
        if (m < 256) { m = m << 8; k = k - 4; }
        if (m < 4096) { m = m << 4; k = k - 2; }
        if (m < 16384) { m = m << 2; k = k - 1; }
        guess.apply();
        y = (y * ((((bit<64>)3 << 46) - m * y * y) >> 16)) >> 31;
        y = (y * ((((bit<64>)3 << 46) - m * y * y) >> 16)) >> 31;
        y = (y * ((((bit<64>)3 << 46) - m * y * y) >> 16)) >> 31;
        result = (bit<48>)(((bit<64>)interval * y) >> (16 + k));
    }
}

control Codel(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    ControlLaw() law;
    counter(PORTS, CounterType.packets_and_bytes) drops;
    counter(PORTS, CounterType.packets_and_bytes) marks;  // instead of drops
    bit<32> target = 0;    // microseconds
    bit<32> interval = 0;  // microseconds
    bool ecn = false;

    action set_codel(bit<32> target_us, bit<32> interval_us, bit<1> marking) {
        target = target_us;
        interval = interval_us;
        ecn = marking == 1;
    }

    table codel_parameters {
        key = { standard_metadata.egress_port : exact; }
        actions = { set_codel; NoAction; }
        size = PORTS;
        default_action = NoAction();
    }

    apply {
        bit<32> index = (bit<32>)standard_metadata.egress_port;
        if (standard_metadata.egress_spec != DROP_PORT && codel_parameters.apply().hit) {
            bit<48> now = standard_metadata.egress_global_timestamp;
            bit<48> first_above;
            bit<2> phase;
            bit<2> phase_before;
            bool ok = false;
            codel_first_above.read(first_above, index);
            codel_phase.read(phase, index);
            phase_before = phase;
            if (standard_metadata.deq_timedelta < target || standard_metadata.deq_qdepth <= 1) {
                if (first_above != 0) {
                    codel_first_above.write(index, 0);
                }
            } else if (first_above == 0) {
                codel_first_above.write(index, now + (bit<48>)interval);
            } else {
                ok = now >= first_above;
            }
            if (!ok) {
                phase = 0;
            } else {
                bit<48> next;
                bit<48> step;
                bit<32> count;
                bool discard = phase == 0;
                codel_drop_next.read(next, index);
                codel_count.read(count, index);
                if (phase == 0) {
                    bit<32> last_count;
                    codel_last_count.read(last_count, index);
                    bit<32> growth = count - last_count;
                    count = 1;
                    if (growth > 1 && now < next + CODEL_RECENT * (bit<48>)interval) {
                        count = growth;
                    }
                    codel_last_count.write(index, count);
                    next = now;
                }
                if (phase != CODEL_DROPPING) {
                    law.apply(count, interval, step);
                    next = next + step;
                    phase = CODEL_DROPPING;
                    codel_drop_next.write(index, next);
                }
                if (!discard && now >= next) {
                    discard = true;
                    if (count < CODEL_COUNT_LIMIT) {
                        count = count + 1;
                    }
                    phase = CODEL_DROPPING | CODEL_OWED;
                }
                if (discard) {
                    codel_count.write(index, count);
                    if (ecn && hdr.IP.isValid() && hdr.IP.diffserv & 3 != 0) {
                        hdr.IP.diffserv = hdr.IP.diffserv | 3;
                        marks.count(index);
                    } else {
                        mark_to_drop(standard_metadata);
                        drops.count(index);
                    }
                }
            }
            if (phase != phase_before) {
                codel_phase.write(index, phase);
            }
        }
    }
}
