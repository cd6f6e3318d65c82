// Each switch writes into data packets with the header telemetry_t what it knows of the port that the packet leaves by, in front of what
// earlier switches wrote. Packets keep their length: their sender left room for HOPS switches.
//
//   egress: Telemetry   deq_qdepth, bytes of the port, time, microseconds per byte --> hops[0];  count + 1

// Of a port, modulo 2^32.
register<bit<32>>(PORTS) telemetry_bytes;

control Telemetry(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    apply {
        bit<32> index = (bit<32>)standard_metadata.egress_port;
        bit<32> bytes;
        bit<32> byte_time;
        telemetry_bytes.read(bytes, index);
        bytes = bytes + standard_metadata.packet_length;
        telemetry_bytes.write(index, bytes);
        if (hdr.telemetry.isValid()) {
            link_byte_time.read(byte_time, index);
            hdr.hops.push_front(1);
            hdr.hops[0].setValid();
            hdr.hops[0].queue_packets = (bit<32>)standard_metadata.deq_qdepth;
            hdr.hops[0].bytes = bytes;
            hdr.hops[0].time_us = (bit<32>)standard_metadata.egress_global_timestamp;
            hdr.hops[0].byte_time = byte_time;
            hdr.telemetry.count = hdr.telemetry.count + 1;
            // A checksum would cover the header.
            hdr.udp.checksum = 0;
        }
    }
}
