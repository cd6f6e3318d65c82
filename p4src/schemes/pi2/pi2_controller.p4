// The controller of PI2 and DualPI2, per output port: p' from the queue's delay [RFC 9332 sec A.1] figure 3, line 2 to 6.
//
//   egress:  Pi2Update  delay, clock --> p'    at each departure
//
//   p' <- p' + alpha (delay - target) + beta (delay - delay_old)    each T_UPDATE
//
// The delay is the waiting time of the last packet that left, and 0 if it left nothing behind.
//
// P4 has no timer, so each departure does the update that is due, one at most. While packets wait, departures are less than T_UPDATE apart
// (on a slower link, an update each departure). An idle port misses updates, and the packets that end the idle time catch up, one update
// each, with the delay of 0 that they missed. Once p' and both delays are 0, the rest would change nothing, and is left out.
//
// Fixed point. Each number is an unsigned integer times a power of two:
//   p', R                      2^-48 (R has 32 bits)
//   alpha, beta                2^-48 per microsecond: relative error below 1e-6 for alpha >= 0.002 per second
//   delays, target, T_UPDATE   microseconds; delays up to 2^24 (17 s), so that products have 57 bits at most
// An update does not round.

#ifndef PI2_CONTROLLER
#define PI2_CONTROLLER

#define PI2_UNIT_BITS 48

const bit<64> PI2_ONE = 64w1 << PI2_UNIT_BITS;
const bit<64> PI2_SATURATED = PI2_ONE >> 1;  // 1/k
const bit<32> PI2_LONGEST = (1 << 24) - 1;

// Per port, written by departures.
register<bit<64>>(PORTS) pi2_probability;  // p'
register<bit<32>>(PORTS) pi2_delay;        // microseconds, as all times here
register<bit<32>>(PORTS) pi2_delay_old;
register<bit<48>>(PORTS) pi2_next_update;  // 0: no packet has left yet
register<bit<48>>(PORTS) pi2_idle_until;   // end of the last idle time

// Does the update of p' that is due at a departure, if one is. shown: the delay from now on.
control Pi2Update(in bit<32> index, in bit<48> now, in bit<32> target, in bit<32> period, in bit<32> alpha, in bit<32> beta, in bit<32> shown) {
    apply {
        bit<32> delay = shown;
        if (delay > PI2_LONGEST) {
            delay = PI2_LONGEST;
        }
        bit<32> delay_before;
        bit<48> due;
        bit<48> idle_until;
        pi2_delay.read(delay_before, index);
        pi2_next_update.read(due, index);
        pi2_idle_until.read(idle_until, index);
        pi2_delay.write(index, delay);
        if (delay_before == 0) {
            // The packet before left nothing behind.
            idle_until = now;
            pi2_idle_until.write(index, idle_until);
        }
        if (due == 0) {
            pi2_next_update.write(index, now + (bit<48>)period);
        } else if (now >= due) {
            bit<64> p;
            bit<32> delay_old;
            pi2_probability.read(p, index);
            pi2_delay_old.read(delay_old, index);
            bool missed = due < idle_until;
            if (missed) {
                delay = 0;
            }
            bit<64> up = ((bit<64>)alpha + (bit<64>)beta) * (bit<64>)delay;
            bit<64> down = (bit<64>)alpha * (bit<64>)target + (bit<64>)beta * (bit<64>)delay_old;
            p = (p + up) |-| down;
            if (p > PI2_ONE) {
                p = PI2_ONE;
            }
            due = due + (bit<48>)period;
            if (now >= due && (!missed || (p == 0 && delay_old == 0))) {
                due = now + (bit<48>)period;
            }
            pi2_probability.write(index, p);
            pi2_delay_old.write(index, delay);
            pi2_next_update.write(index, due);
        }
    }
}

#endif
