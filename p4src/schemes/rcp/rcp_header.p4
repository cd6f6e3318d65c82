// In an RTP header extension: the rate that the sender may send at, and the round trip that it knows. Profile "RC", 3 words.

header rate_t {
    bit<16> profile;
    bit<16> length;
    bit<64> rate_bps;
    bit<32> rtt_us;
}
