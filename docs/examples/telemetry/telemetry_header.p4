// In an RTP header extension: what each switch of the path wrote. Profile "TE"; packets leave with room for HOPS switches.

#define HOPS 4

header telemetry_t {
    bit<16> profile;
    bit<16> length;  // words of 32 bits that follow
    bit<8>  count;   // switches that have written
    bit<24> unused;
}

header hop_t {
    bit<32> queue_packets;  // behind the packet when it left
    bit<32> bytes;          // that the port has sent, modulo 2^32
    bit<32> time_us;        // when the packet left, modulo 2^32
    bit<32> byte_time;      // on the link, as measured, microseconds x 2^20; 0: not known
}
