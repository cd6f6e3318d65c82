// ABC per output port (Goyal, Agarwal, Netravali, Alizadeh and Balakrishnan, "ABC: A Simple Explicit Congestion Controller for Wireless Networks",
// NSDI 2020): each data packet says "accelerate" or "brake" to its sender, by its ECN codepoint (section 5.1.2).
//
//   ECT(1)  accelerate, as the sender sets it      ECT(0)  brake      CE  congestion at a router without ABC      Not-ECT  not of ABC
//
//   egress, for each packet that leaves the queue:
//     tr = eta mu - (mu / delta) max(x - d_t, 0)                                                                        (1)
//     f = min(tr / (2 cr), 1)                                                                                          (2)
//     token = min(token + f, limit);  accelerate: token > 1 --> token = token - 1, else brake                            (algorithm 1)
//
//   mu  rate of the link; cr  rate at which frames leave; x  time that the queue takes with this frame, if the others are as long
//
// The controller may tell the link's rate; otherwise it is measured. The time from one departure to the next is the link's time for a frame if the
// second one waited, and partly idle otherwise. Of the last frames
//
//   sigma = 1/mu = busy / waited,   r = mu/cr = elapsed / (left sigma),   x = (deq_qdepth + 1) s sigma,   f = r max(eta - max(x - d_t, 0)/delta, 0) / 2
//
// with elapsed and left: time and bytes; busy and waited: of these the time before frames that had waited, and their bytes. After each
// period of `period` they are halved, which is a sliding window of about four periods with the same mean age; the authors' has 20 ms. A single time
// counts as four periods at most. A measured sigma stays where no frame waited; f = 1 while none ever did.
//
// Fixed point, without division (reciprocal.p4, relative error below 2^-15):
//   elapsed, busy         microseconds, below 2^24
//   left, waited          bytes, below 2^29; waited at least 128
//   sigma                 microseconds of a byte x 2^24, below 2^34: links from 10 kb/s
//   left sigma, x         microseconds, rounded down; left sigma at least 16
//   r                     2^-16, at most 4
//   f, token, eta         2^-16;  1/delta  2^-32 per microsecond
// All terms round down. f differs from the formula by less than 2^-13 of it and 5 x 2^-16, and by what whole microseconds do to x and left sigma.

#include "reciprocal.p4"

const bit<32> ABC_ONE = 1 << 16;
const bit<32> ABC_LIMIT = 5 << 16;  // of tokens, as in the authors' code
const bit<64> ABC_MOST = 4 << 16;  // of r
const bit<32> ABC_LONGEST = (1 << 24) - 1;
const bit<64> ABC_SHORTEST = 16;  // of left sigma
const bit<32> ABC_FEWEST = 128;  // of waited
const bit<32> ABC_FULL = 1 << 29;  // of left
const bit<64> ABC_SLOWEST = 64w1 << 34;  // of sigma

const bit<2> ACCELERATE = 0b01;
const bit<2> BRAKE = 0b10;

// Per port.
register<bit<48>>(PORTS) abc_last;     // departure before
register<bit<48>>(PORTS) abc_due;      // end of the period; 0: no packet yet
register<bit<32>>(PORTS) abc_elapsed;
register<bit<32>>(PORTS) abc_left;
register<bit<32>>(PORTS) abc_busy;
register<bit<32>>(PORTS) abc_waited;
register<bit<64>>(PORTS) abc_sigma;    // as measured; 0: no frame has waited
register<bit<32>>(PORTS) abc_ratio;    // r
register<bit<32>>(PORTS) abc_token;

control Abc(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    Reciprocal() reciprocal;
    counter(PORTS, CounterType.packets_and_bytes) brakes;
    bit<64> eta = 0;
    bit<64> slope = 0;
    bit<64> threshold = 0;
    bit<32> period = 0;
    bit<64> told = 0;

    // us_of_a_byte: 0 has the rate measured.
    action set_abc(@fraction_bits(16) bit<32> eta_fraction, @fraction_bits(32) bit<32> per_delta_us, bit<32> threshold_us, bit<32> period_us,
                   @fraction_bits(24) bit<64> us_of_a_byte) {
        told = us_of_a_byte;
        eta = (bit<64>)eta_fraction;
        slope = (bit<64>)per_delta_us;
        threshold = (bit<64>)threshold_us;
        period = period_us;
    }

    table abc_parameters {
        key = { standard_metadata.egress_port : exact; }
        actions = { set_abc; NoAction; }
        size = PORTS;
        default_action = NoAction();
    }

    apply {
        bit<32> index = (bit<32>)standard_metadata.egress_port;
        if (abc_parameters.apply().hit) {
            bit<48> now = standard_metadata.egress_global_timestamp;
            bit<48> last;
            bit<48> due;
            bit<32> elapsed;
            bit<32> left;
            bit<32> busy;
            bit<32> waited;
            bit<64> sigma;
            bit<32> ratio;
            abc_last.read(last, index);
            abc_due.read(due, index);
            abc_elapsed.read(elapsed, index);
            abc_left.read(left, index);
            abc_busy.read(busy, index);
            abc_waited.read(waited, index);
            abc_sigma.read(sigma, index);
            if (told != 0) { sigma = told; }
            abc_ratio.read(ratio, index);
            if (due == 0) {
                due = now + (bit<48>)period;
                abc_due.write(index, due);
                ratio = (bit<32>)ABC_MOST;
                abc_ratio.write(index, ratio);
            } else {
                bit<48> gap = now - last;
                bit<48> longest = (bit<48>)period << 2;
                if (gap > longest) { gap = longest; }
                if (elapsed < ABC_LONGEST - 4000000 && left < ABC_FULL - 65536) {
                    elapsed = elapsed + (bit<32>)gap;
                    left = left + standard_metadata.packet_length;
                    if (standard_metadata.deq_timedelta != 0) {
                        busy = busy + (bit<32>)gap;
                        waited = waited + standard_metadata.packet_length;
                    }
                }
            }
            abc_last.write(index, now);
            if (now >= due) {
                bit<64> inverse;
                bit<8> exponent;
                if (told == 0 && waited >= ABC_FEWEST && busy != 0) {
                    reciprocal.apply((bit<64>)waited, inverse, exponent);
                    sigma = ((bit<64>)busy * inverse) >> (exponent - 24);
                    if (sigma > ABC_SLOWEST) { sigma = ABC_SLOWEST; }
                    abc_sigma.write(index, sigma);
                }
                bit<64> needed = ((bit<64>)left * sigma) >> 24;
                if (needed < ABC_SHORTEST) { needed = ABC_SHORTEST; }
                reciprocal.apply(needed, inverse, exponent);
                bit<64> r = ((bit<64>)elapsed * inverse) >> (exponent - 16);
                if (r > ABC_MOST || sigma == 0) { r = ABC_MOST; }
                ratio = (bit<32>)r;
                abc_ratio.write(index, ratio);
                elapsed = elapsed >> 1;
                left = left >> 1;
                busy = busy >> 1;
                waited = waited >> 1;
                abc_due.write(index, now + (bit<48>)period);
            }
            abc_elapsed.write(index, elapsed);
            abc_left.write(index, left);
            abc_busy.write(index, busy);
            abc_waited.write(index, waited);

            if (hdr.IP.isValid() && hdr.IP.diffserv & 3 != 0) {
                bit<32> token;
                bit<64> part = eta;
                bit<64> x = (((bit<64>)standard_metadata.deq_qdepth + 1) * (bit<64>)standard_metadata.packet_length * sigma) >> 24;
                if (x > threshold) {
                    x = x - threshold;
                    if (x > (bit<64>)ABC_LONGEST) { x = (bit<64>)ABC_LONGEST; }
                    bit<64> less = (x * slope) >> 16;
                    part = 0;
                    if (less < eta) { part = eta - less; }
                }
                bit<64> f = ((bit<64>)ratio * part) >> 17;
                if (f > (bit<64>)ABC_ONE) { f = (bit<64>)ABC_ONE; }
                abc_token.read(token, index);
                token = token + (bit<32>)f;
                if (token > ABC_LIMIT) { token = ABC_LIMIT; }
                if (hdr.IP.diffserv[1:0] == ACCELERATE) {
                    if (token > ABC_ONE) {
                        token = token - ABC_ONE;
                    } else {
                        hdr.IP.diffserv[1:0] = BRAKE;
                        brakes.count(index);
                    }
                }
                abc_token.write(index, token);
            }
        }
    }
}
