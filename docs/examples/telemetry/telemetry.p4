// Each switch writes into data packets with the header telemetry_t what it knows of the port that the packet leaves by, in front of what
// earlier switches wrote. Packets keep their length: their sender left room for HOPS switches.
//
//   egress: Telemetry   deq_qdepth, bytes of the port, time, time of a byte --> hops[0];  count + 1
//
// The time of a byte on the link is measured: of two packets that leave one behind the other from the queue, the second leaves when the first is
// sent. 1/8 of each such time counts; it is 0 before the first. Fixed point: microseconds x 2^20, relative error below 2^-15 (reciprocal.p4).

#include "reciprocal.p4"

// Per port.
register<bit<32>>(PORTS) telemetry_bytes;   // sent, modulo 2^32
register<bit<32>>(PORTS) telemetry_byte_time;
register<bit<48>>(PORTS) telemetry_left;    // when the last packet left
register<bit<32>>(PORTS) telemetry_length;  // its bytes; 0: it left nothing behind in the queue

control Telemetry(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    Reciprocal() reciprocal;

    apply {
        bit<32> index = (bit<32>)standard_metadata.egress_port;
        bit<48> now = standard_metadata.egress_global_timestamp;
        bit<32> bytes;
        bit<32> byte_time;
        bit<48> left;
        bit<32> length;
        telemetry_bytes.read(bytes, index);
        telemetry_byte_time.read(byte_time, index);
        telemetry_left.read(left, index);
        telemetry_length.read(length, index);
        bytes = bytes + standard_metadata.packet_length;
        if (length != 0) {
            bit<64> inverse;
            bit<8> exponent;
            reciprocal.apply((bit<64>)length, inverse, exponent);
            bit<32> measured = (bit<32>)(((bit<64>)(now - left) * inverse) >> (exponent - 20));
            if (byte_time == 0) {
                byte_time = measured;
            } else {
                byte_time = byte_time - (byte_time >> 3) + (measured >> 3);
            }
        }
        length = 0;
        if (standard_metadata.deq_qdepth != 0) { length = standard_metadata.packet_length; }
        telemetry_bytes.write(index, bytes);
        telemetry_byte_time.write(index, byte_time);
        telemetry_left.write(index, now);
        telemetry_length.write(index, length);
        if (hdr.telemetry.isValid()) {
            hdr.hops.push_front(1);
            hdr.hops[0].setValid();
            hdr.hops[0].queue_packets = (bit<32>)standard_metadata.deq_qdepth;
            hdr.hops[0].bytes = bytes;
            hdr.hops[0].time_us = (bit<32>)now;
            hdr.hops[0].byte_time = byte_time;
            hdr.telemetry.count = hdr.telemetry.count + 1;
            // A checksum would cover the header.
            hdr.udp.checksum = 0;
        }
    }
}
