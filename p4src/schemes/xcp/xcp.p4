// XCP per output port (Katabi, Handley and Rohrs, "Congestion Control for High Bandwidth-Delay Product Networks", SIGCOMM 2002): by how much each
// packet's flow may change its rate, written into its congestion header (docs/wire-formats.md) where it is less.
//
//   ingress: XcpArrival    frame bytes --> y;  rtt_us, interval_us --> d, sum X;  every d: y, Q, d --> xi_p, xi_n;  change --> change_bps
//   egress:  XcpDeparture  deq_timedelta, deq_qdepth --> Q
//
// The sender says X, the time between its packets, rtt s/cwnd. So the paper's sums need no division, and its feedback to the window, divided by the
// round trip, is a change of the rate (draft-falk-xcp-spec-03):
//
//   F = alpha (C - y) - beta Q/d                        efficiency: phi/d of section 3.5.1
//   h = max(gamma y - |F|, 0)                           shuffled traffic, section 3.5.2
//   xi_p = (h + max(F, 0)) / sum X                      of all packets of the interval before
//   xi_n = (h + max(-F, 0)) / sum s
//   change = xi_p X - xi_n s                            for a packet of s bytes
//
// d is the mean round trip, sum(rtt X) / sum X; Q/C is the least waiting time of a packet that left in the interval, 0 if one left nothing behind.
// No more is given, or taken, in an interval than h + max(F, 0) and h + max(-F, 0). P4 has no timer: the first arrival after d does the update, with
// the time E since the one before. A packet whose sender knows no round trip yet counts for y alone.
//
// Fixed point, without division (reciprocal.p4, relative error below 2^-15):
//   C, y, F, h            bit/s, C below 2^38, y at most 4 C; y in steps of 8
//   E, d, X, Q/C          microseconds, below 2^24; Q/(C d) 2^-20, at most 8
//   alpha, beta, gamma    2^-20, at most 1
//   sum(rtt X)            microseconds^2 / 2^8
//   xi_p, xi_n            2^-16 bit/s for a microsecond, for a byte
//   change_bps            bit/s plus 2^63
// All terms round down.

#include "reciprocal.p4"
#include "../../udp_checksum.p4"

const bit<64> XCP_MOST = 8 << 20;  // of Q/(C d)
const bit<32> XCP_LONGEST = (1 << 24) - 1;  // microseconds
const bit<32> XCP_SHORTEST = 16;
const bit<32> XCP_ASSUMED = 200000;  // d at first
const bit<64> XCP_UNCHANGED = 64w1 << 63;
const bit<64> XCP_STEEPEST = 64w1 << 39;  // of xi_p and xi_n
const bit<64> XCP_FULL = 64w1 << 46;  // of sum(rtt X)

// Per port.
register<bit<64>>(PORTS) xcp_bytes;     // sum s
register<bit<64>>(PORTS) xcp_spread;    // sum X
register<bit<64>>(PORTS) xcp_trips;     // sum(rtt X)
register<bit<32>>(PORTS) xcp_rtt;       // d
register<bit<48>>(PORTS) xcp_began;     // last update; 0: no packet yet
register<bit<32>>(PORTS) xcp_delay;     // Q/C so far
register<bit<64>>(PORTS) xcp_up;        // xi_p
register<bit<64>>(PORTS) xcp_down;      // xi_n
register<bit<64>>(PORTS) xcp_to_give;   // of h + max(F, 0)
register<bit<64>>(PORTS) xcp_to_take;   // of h + max(-F, 0)

control XcpArrival(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    Reciprocal() reciprocal;
    UdpChecksum() checksum;
    bit<64> capacity = 0;
    bit<32> least = 0;
    bit<64> alpha = 0;
    bit<64> beta = 0;
    bit<64> gamma = 0;

    action set_xcp(bit<64> capacity_bps, bit<32> least_us, @fraction_bits(20) bit<32> alpha_fraction, @fraction_bits(20) bit<32> beta_fraction,
                   @fraction_bits(20) bit<32> gamma_fraction) {
        capacity = capacity_bps;
        least = least_us;
        alpha = (bit<64>)alpha_fraction;
        beta = (bit<64>)beta_fraction;
        gamma = (bit<64>)gamma_fraction;
    }

    table xcp_parameters {
        key = { standard_metadata.egress_spec : exact; }
        actions = { set_xcp; NoAction; }
        size = PORTS;
        default_action = NoAction();
    }

    apply {
        bit<32> index = (bit<32>)standard_metadata.egress_spec;
        if (xcp_parameters.apply().hit) {
            bit<48> now = standard_metadata.ingress_global_timestamp;
            bit<64> bytes;
            bit<64> spread;
            bit<64> trips;
            bit<32> d;
            bit<48> began;
            xcp_bytes.read(bytes, index);
            xcp_spread.read(spread, index);
            xcp_trips.read(trips, index);
            xcp_rtt.read(d, index);
            xcp_began.read(began, index);
            if (began == 0) {
                began = now;
                d = XCP_ASSUMED;
                xcp_began.write(index, now);
                xcp_rtt.write(index, d);
                xcp_delay.write(index, XCP_LONGEST);
            }
            bit<48> elapsed = now - began;
            if (elapsed >= (bit<48>)d && elapsed >= (bit<48>)least) {
                bit<64> inverse;
                bit<8> exponent;
                bit<32> delay;
                xcp_delay.read(delay, index);
                xcp_delay.write(index, XCP_LONGEST);
                if (elapsed > (bit<48>)XCP_LONGEST) { elapsed = (bit<48>)XCP_LONGEST; }
                // No packet left.
                if (delay == XCP_LONGEST) { delay = 0; }
                reciprocal.apply((bit<64>)elapsed, inverse, exponent);
                bit<64> y = (((bytes * inverse) >> (exponent - 20)) * 8000000) >> 20;
                if (y > capacity << 2) { y = capacity << 2; }
                // Before d becomes that of the interval that ends: it holds the trips of the packets that Q and y are of.
                if (spread != 0) {
                    reciprocal.apply(spread, inverse, exponent);
                    bit<64> mean = (trips * inverse) >> (exponent - 8);
                    if (mean > (bit<64>)XCP_LONGEST) { mean = (bit<64>)XCP_LONGEST; }
                    if (mean < (bit<64>)XCP_SHORTEST) { mean = (bit<64>)XCP_SHORTEST; }
                    d = (bit<32>)mean;
                    xcp_rtt.write(index, d);
                }
                bit<64> by_spread = inverse;
                bit<8> spread_exponent = exponent;
                reciprocal.apply((bit<64>)d, inverse, exponent);
                bit<64> waits = ((bit<64>)delay * inverse) >> (exponent - 20);
                if (waits > XCP_MOST) { waits = XCP_MOST; }
                bit<64> more = (alpha * capacity) >> 20;
                bit<64> fewer = ((alpha * y) >> 20) + ((beta * ((capacity * waits) >> 20)) >> 20);
                bit<64> shuffled = (gamma * y) >> 20;
                bit<64> give;
                bit<64> take;
                if (more >= fewer) {
                    bit<64> spare = more - fewer;
                    if (shuffled > spare) { shuffled = shuffled - spare; } else { shuffled = 0; }
                    give = shuffled + spare;
                    take = shuffled;
                } else {
                    bit<64> excess = fewer - more;
                    if (shuffled > excess) { shuffled = shuffled - excess; } else { shuffled = 0; }
                    give = shuffled;
                    take = shuffled + excess;
                }
                bit<64> up = 0;
                if (spread != 0) {
                    up = (give * by_spread) >> (spread_exponent - 16);
                    if (up > XCP_STEEPEST) { up = XCP_STEEPEST; }
                }
                reciprocal.apply(bytes | 1, inverse, exponent);
                bit<64> down = (take * inverse) >> (exponent - 16);
                if (down > XCP_STEEPEST) { down = XCP_STEEPEST; }
                xcp_up.write(index, up);
                xcp_down.write(index, down);
                xcp_to_give.write(index, give);
                xcp_to_take.write(index, take);
                xcp_began.write(index, now);
                bytes = 0;
                spread = 0;
                trips = 0;
            }
            xcp_bytes.write(index, bytes + (bit<64>)standard_metadata.packet_length);
            if (hdr.congestion.isValid() && hdr.congestion.rtt_us != 0 && hdr.congestion.interval_us != 0) {
                bit<64> rtt = (bit<64>)hdr.congestion.rtt_us;
                bit<64> x = (bit<64>)hdr.congestion.interval_us;
                if (rtt > (bit<64>)XCP_LONGEST) { rtt = (bit<64>)XCP_LONGEST; }
                if (x > (bit<64>)XCP_LONGEST) { x = (bit<64>)XCP_LONGEST; }
                if (trips < XCP_FULL) {
                    spread = spread + x;
                    trips = trips + ((rtt * x) >> 8);
                }
                bit<64> up;
                bit<64> down;
                bit<64> give;
                bit<64> take;
                xcp_up.read(up, index);
                xcp_down.read(down, index);
                xcp_to_give.read(give, index);
                xcp_to_take.read(take, index);
                bit<64> more = (up * x) >> 16;
                bit<64> fewer = (down * (bit<64>)standard_metadata.packet_length) >> 16;
                if (more > give) { more = give; }
                if (fewer > take) { fewer = take; }
                bit<64> change = XCP_UNCHANGED + more - fewer;
                bit<64> carried = hdr.congestion.change_bps;
                if (carried > change) {
                    checksum.apply(hdr, carried, change);
                    hdr.congestion.change_bps = change;
                } else {
                    // A router before this one gave less: so does this one.
                    fewer = fewer + (change - carried);
                    if (fewer > take) { fewer = take; }
                    more = 0;
                    if (carried + fewer > XCP_UNCHANGED) { more = carried + fewer - XCP_UNCHANGED; }
                    if (more > give) { more = give; }
                }
                xcp_to_give.write(index, give - more);
                xcp_to_take.write(index, take - fewer);
            }
            xcp_spread.write(index, spread);
            xcp_trips.write(index, trips);
        }
    }
}

control XcpDeparture(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    apply {
        bit<32> index = (bit<32>)standard_metadata.egress_port;
        bit<32> delay = standard_metadata.deq_timedelta;
        bit<32> lowest;
        xcp_delay.read(lowest, index);
        if (standard_metadata.deq_qdepth == 0) {
            delay = 0;
        }
        if (delay < lowest) {
            xcp_delay.write(index, delay);
        }
    }
}
