// In an RTP header extension: by how much the sender may change its rate, its round trip, and the time between its packets. Profile "XC", 4 words.

header congestion_t {
    bit<16> profile;
    bit<16> length;
    bit<64> change_bps;  // plus 2^63
    bit<32> rtt_us;
    bit<32> interval_us;
}
