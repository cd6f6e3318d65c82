// For programs with schemes that read and write headers of data packets (chosen_headers.p4).

// RTP data [RFC 3550 sec 5.1] with a header extension (section 5.3.1), the header that a scheme reads and writes there.
header rtp_t {
    bit<2>  version;
    bit<1>  padding;
    bit<1>  extension;
    bit<4>  csrc_count;
    bit<1>  marker;
    bit<7>  payload_type;
    bit<16> sequence_number;
    bit<32> timestamp;
    bit<32> ssrc;
}

// Only for lookahead: RTP's fixed header, and what the extension begins with.
header rtp_start_t {
    bit<9>  fixed;  // version, padding, extension, csrc_count, marker
    bit<87> rest;
    bit<16> profile;
    bit<16> length;
}

// RTP version 2 without padding and CSRCs, with an extension, marker 0 or 1.
const bit<9> RTP_EXTENDED = 0b1001_0000_0;

// The parser's states for it, where data has room for an extension behind the headers of UDP and RTP. DATA_CASES: the headers that schemes know.
#define RTP_STATES \
    state parse_data { \
        transition select(hdr.udp.length) { \
            24..0xFFFF: parse_rtp; \
            default: accept; \
        } \
    } \
    state parse_rtp { \
        rtp_start_t start = packet.lookahead<rtp_start_t>(); \
        transition select(start.fixed, start.profile, start.length) { \
            DATA_CASES \
            default: accept; \
        } \
    }
