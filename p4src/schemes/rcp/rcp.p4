// RCP per output port (Dukkipati, Kobayashi, Zhang-Shen and McKeown, "Processor Sharing Flows in the Internet", 2005): one rate for all flows,
// written into each data packet's rate header (docs/wire-formats.md) where it is smaller.
//
//   ingress: RcpArrival    frame bytes --> y;  rtt_us --> d;  every T: y, delay, d --> R;  R < rate_bps --> rate_bps = R
//   egress:  RcpDeparture  deq_timedelta, deq_qdepth --> delay
//
//   R <- R [1 + (T/d) (alpha (C - y) - beta q/d) / C],  C/1024 <= R <= C,  C/16 at first
//
// P4 has no timer: the first arrival after T does the update, with the time E since the one before in place of T. q/C is the delay of the queue: the
// waiting time of the last packet that left, and 0 if it left nothing behind; and E y/C is s, the time to send what arrived. So
//
//   R <- R + R g,  g = alpha (E - s)/d - beta (E/d) (delay/d)
//
// with E/d, s/d and delay/d of 8 at most, and -1 < g <= 4: after a pause without packets R grows fivefold at most.
//   d <- d + (rtt_us - d) / 64  for each packet with a known round trip; 0.2 s while there was none
//
// Fixed point, without division:
//   R, C            bit/s, below 2^40
//   d               microseconds x 2^6, 16 us to 2^24 us (17 s)
//   s               1/16 us: bytes x (8 x 10^6 / C) x 2^40, the factor from the controller, x 2^-36
//   E/d, s/d, delay/d, alpha, beta, g    2^-20
//   1/d             reciprocal.p4; relative error below 2^-15
// All terms round down; R moves by less than 1 bit/s or a relative 2^-20 too little in each update.

#include "reciprocal.p4"
#include "../../udp_checksum.p4"

const bit<64> RCP_ONE = 1 << 20;
const bit<64> RCP_MOST = 8 << 20;  // of E/d, s/d and delay/d
const bit<64> RCP_GROWTH = 4 << 20;  // of g
const bit<32> RCP_LONGEST = (1 << 24) - 1;  // microseconds
const bit<32> RCP_SHORTEST = 16;
const bit<32> RCP_ASSUMED = 200000;  // d at first, as in the authors' ns-2 code

// Per port.
register<bit<64>>(PORTS) rcp_rate;       // R; 0: not yet set
register<bit<64>>(PORTS) rcp_bytes;      // since the last update
register<bit<32>>(PORTS) rcp_rtt;        // d x 2^6; 0: not known
register<bit<32>>(PORTS) rcp_delay;      // microseconds, written by departures
register<bit<48>>(PORTS) rcp_next_update;

control RcpArrival(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    Reciprocal() reciprocal;
    UdpChecksum() checksum;
    bit<64> capacity = 0;
    bit<32> period = 0;
    bit<64> alpha = 0;
    bit<64> beta = 0;
    bit<64> byte_time = 0;

    action set_rcp(bit<64> capacity_bps, bit<32> period_us, @fraction_bits(20) bit<32> alpha_fraction, @fraction_bits(20) bit<32> beta_fraction,
                   @fraction_bits(40) bit<64> us_of_a_byte) {
        capacity = capacity_bps;
        period = period_us;
        alpha = (bit<64>)alpha_fraction;
        beta = (bit<64>)beta_fraction;
        byte_time = us_of_a_byte;
    }

    table rcp_parameters {
        key = { standard_metadata.egress_spec : exact; }
        actions = { set_rcp; NoAction; }
        size = PORTS;
        default_action = NoAction();
    }

    apply {
        bit<32> index = (bit<32>)standard_metadata.egress_spec;
        if (rcp_parameters.apply().hit) {
            bit<48> now = standard_metadata.ingress_global_timestamp;
            bit<64> rate;
            bit<64> bytes;
            bit<32> d;
            bit<48> due;
            rcp_rate.read(rate, index);
            rcp_bytes.read(bytes, index);
            rcp_rtt.read(d, index);
            rcp_next_update.read(due, index);
            if (rate == 0) {
                rate = capacity >> 4;
                due = now + (bit<48>)period;
                rcp_rate.write(index, rate);
                rcp_next_update.write(index, due);
            }
            if (now >= due) {
                bit<32> delay;
                bit<64> inverse;
                bit<8> exponent;
                rcp_delay.read(delay, index);
                bit<32> round_trip = d >> 6;
                if (round_trip == 0) {
                    round_trip = RCP_ASSUMED;
                } else if (round_trip < RCP_SHORTEST) {
                    round_trip = RCP_SHORTEST;
                }
                reciprocal.apply((bit<64>)round_trip, inverse, exponent);
                bit<48> elapsed = now - due + (bit<48>)period;
                if (elapsed > (bit<48>)RCP_LONGEST) { elapsed = (bit<48>)RCP_LONGEST; }
                bit<64> busy = (bytes * byte_time) >> 36;
                if (busy > (bit<64>)RCP_LONGEST << 4) { busy = (bit<64>)RCP_LONGEST << 4; }
                bit<64> part = ((bit<64>)elapsed * inverse) >> (exponent - 20);
                bit<64> waits = ((bit<64>)delay * inverse) >> (exponent - 20);
                busy = (busy * inverse) >> (exponent - 16);
                if (part > RCP_MOST) { part = RCP_MOST; }
                if (waits > RCP_MOST) { waits = RCP_MOST; }
                if (busy > RCP_MOST) { busy = RCP_MOST; }
                bit<64> up = alpha * part;
                bit<64> down = alpha * busy + beta * ((part * waits) >> 20);
                if (up >= down) {
                    bit<64> g = (up - down) >> 20;
                    if (g > RCP_GROWTH) { g = RCP_GROWTH; }
                    rate = rate + ((rate * g) >> 20);
                    if (rate > capacity) {
                        rate = capacity;
                    }
                } else {
                    bit<64> g = (down - up) >> 20;
                    bit<64> least = capacity >> 10;
                    if (g >= RCP_ONE) {
                        rate = least;
                    } else {
                        rate = rate - ((rate * g) >> 20);
                        if (rate < least) {
                            rate = least;
                        }
                    }
                }
                bytes = 0;
                rcp_rate.write(index, rate);
                rcp_next_update.write(index, now + (bit<48>)period);
            }
            rcp_bytes.write(index, bytes + (bit<64>)standard_metadata.packet_length);
            if (hdr.rate.isValid()) {
                bit<32> rtt = hdr.rate.rtt_us;
                if (rtt != 0) {
                    if (rtt > RCP_LONGEST) {
                        rtt = RCP_LONGEST;
                    }
                    if (d == 0) {
                        d = rtt << 6;
                    } else {
                        d = d + rtt - (d >> 6);
                    }
                    rcp_rtt.write(index, d);
                }
                if (hdr.rate.rate_bps > rate) {
                    checksum.apply(hdr, hdr.rate.rate_bps, rate);
                    hdr.rate.rate_bps = rate;
                }
            }
        }
    }
}

control RcpDeparture(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    apply {
        bit<32> delay = standard_metadata.deq_timedelta;
        if (standard_metadata.deq_qdepth == 0) {
            delay = 0;
        } else if (delay > RCP_LONGEST) {
            delay = RCP_LONGEST;
        }
        rcp_delay.write((bit<32>)standard_metadata.egress_port, delay);
    }
}
