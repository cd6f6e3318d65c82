// Limits a connection that sends too much to its share of the output port: the flow protection that [ALS sec 5] asks of
// routers.
//
//   (source, destination, port) --mix--> one cell in each of two rows; each cell has two buckets
//   over the allowance in both rows  --> found, until its share bucket runs empty
//   found, and over the share in both rows --> dropped before a scheme sees it
//
// A bucket fills with the bytes of packets and drains at a rate set by the controller, share < allowance. A packet that would fill it
// above its depth is over, and is not added. So in any time t a connection passes at most allowance_depth + allowance t; once it
// is found, share_depth + share t. It is no longer found after it has sent so little that its share bucket is empty.
//
// The state is 2 rows x 16384 cells x 24 bytes for any number of connections. Two connections are taken for one only if
// both cells are the same; docs/flow-protection.md gives the probability.
//
// Fixed point: levels and depths in bytes x 2^20, rates in bytes per microsecond x 2^20. Level and drain are exact; a rate is off
// by at most 2^-21 bytes/us (4 bit/s).

#include "mix.p4"

// Bits behind the binary point of all levels, depths and rates; in P4Info, too.
#define PROTECTION_BITS 20

const bit<32> PROTECTION_ROW = 1 << 14;
// Microseconds; more empties any bucket, and the bound keeps products within 64 bits.
const bit<64> PROTECTION_LONGEST = 0x7FFFFFFF;

struct protection_limits_t {
    bit<32> share;             // bytes per microsecond x 2^20
    bit<32> allowance;         // bytes per microsecond x 2^20
    bit<64> share_depth;       // bytes x 2^20
    bit<64> allowance_depth;   // bytes x 2^20
}

struct protection_cell_t {
    bit<64> share;             // level, bytes x 2^20
    bit<64> allowance;         // level, bytes x 2^20
    bool    found;
}

register<bit<64>>(2 * PROTECTION_ROW) protection_share;
register<bit<64>>(2 * PROTECTION_ROW) protection_allowance;
// Bit 48: found. Below: microseconds of the switch's clock at which the levels held.
register<bit<64>>(2 * PROTECTION_ROW) protection_seen;

// Per port: packets within the shares (dropped later or not), and packets dropped here.
counter(PORTS, CounterType.packets_and_bytes) within_share;
counter(PORTS, CounterType.packets_and_bytes) held_back;

// A cell as it is now.
control ProtectionCell(in bit<32> index, in bit<48> now, in protection_limits_t limits, out protection_cell_t cell) {
    apply {
        bit<64> seen;
        bit<64> elapsed = 0;
        protection_share.read(cell.share, index);
        protection_allowance.read(cell.allowance, index);
        protection_seen.read(seen, index);
        if (now > seen[47:0]) {
            elapsed = (bit<64>)(now - seen[47:0]);
        }
        if (elapsed > PROTECTION_LONGEST) {
            elapsed = PROTECTION_LONGEST;
        }
        // Depths shrink with the share: a level above the depth would take too long to drain.
        if (cell.share > limits.share_depth) {
            cell.share = limits.share_depth;
        }
        if (cell.allowance > limits.allowance_depth) {
            cell.allowance = limits.allowance_depth;
        }
        cell.share = cell.share |-| elapsed * (bit<64>)limits.share;
        cell.allowance = cell.allowance |-| elapsed * (bit<64>)limits.allowance;
        cell.found = seen[48:48] == 1 && cell.share != 0;
    }
}

control Hold(in headers_t hdr, in port_t port, in bit<48> now, inout standard_metadata_t standard_metadata) {
    MixAddresses() mix;
    ProtectionCell() first_cell;
    ProtectionCell() second_cell;

    protection_limits_t limits = { 0, 0, 0, 0 };

    action set_limits(@fraction_bits(PROTECTION_BITS) bit<32> share, @fraction_bits(PROTECTION_BITS) bit<32> allowance,
                      @fraction_bits(PROTECTION_BITS) bit<64> share_depth, @fraction_bits(PROTECTION_BITS) bit<64> allowance_depth) {
        limits = { share, allowance, share_depth, allowance_depth };
    }

    // A port that is not in the table has no protection.
    table limits_of_port {
        key = { port : exact @name("port"); }
        actions = { set_limits; NoAction; }
        size = PORTS;
        default_action = NoAction();
    }

    apply {
        // A scheme may have dropped a copy before.
        if (standard_metadata.egress_spec != DROP_PORT && limits_of_port.apply().hit) {
            // The golden ratio's bits: neighbouring ports give distant values.
            bit<64> x = (bit<64>)port * 0x9E3779B97F4A7C15;
            mix.apply(hdr, x);
            bit<32> first_index = x[31:0] & (PROTECTION_ROW - 1);
            bit<32> second_index = PROTECTION_ROW + (x[63:32] & (PROTECTION_ROW - 1));
            protection_cell_t first;
            protection_cell_t second;
            first_cell.apply(first_index, now, limits, first);
            second_cell.apply(second_index, now, limits, second);

            bit<64> size = (bit<64>)standard_metadata.packet_length << PROTECTION_BITS;
            bool within = first.share + size <= limits.share_depth || second.share + size <= limits.share_depth;
            bool allowed = first.allowance + size <= limits.allowance_depth || second.allowance + size <= limits.allowance_depth;
            if (!allowed || (first.found && second.found)) {
                allowed = within;
                first.found = true;
                second.found = true;
            }
            if (within) {
                within_share.count((bit<32>)port);
                first.share = first.share + size;
                second.share = second.share + size;
            }
            if (allowed) {
                first.allowance = first.allowance + size;
                second.allowance = second.allowance + size;
            } else {
                held_back.count((bit<32>)port);
                mark_to_drop(standard_metadata);
            }
            protection_share.write(first_index, first.share);
            protection_share.write(second_index, second.share);
            protection_allowance.write(first_index, first.allowance);
            protection_allowance.write(second_index, second.allowance);
            protection_seen.write(first_index, 15w0 ++ (bit<1>)first.found ++ now);
            protection_seen.write(second_index, 15w0 ++ (bit<1>)second.found ++ now);
        }
    }
}

control Protection(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    Hold() hold;

    apply {
        hold.apply(hdr, standard_metadata.egress_spec, standard_metadata.ingress_global_timestamp, standard_metadata);
    }
}

control ReplicaProtection(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    Hold() hold;

    apply {
        hold.apply(hdr, standard_metadata.egress_port, standard_metadata.egress_global_timestamp, standard_metadata);
    }
}
