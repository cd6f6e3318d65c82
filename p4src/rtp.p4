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

// RTP version 2 without padding and CSRCs, with an extension, marker 0 or 1.
const bit<9> RTP_EXTENDED = 0b1001_0000_0;

// The parser's states for it. DATA_CASES: by RTP's first bits, profile and words of the extension, and bytes of the datagram that have room for it. Not by
// lookahead of a header: as p4c compiles that, the packet would be longer by it in egress.
#define RTP_STATES \
    state parse_data { \
        transition select(hdr.udp.length) { \
            24..0xFFFF: parse_rtp; \
            default: accept; \
        } \
    } \
    state parse_rtp { \
        bit<128> first = packet.lookahead<bit<128>>(); \
        transition select(first[127:119], first[31:16], first[15:0], hdr.udp.length) { \
            DATA_CASES \
            default: accept; \
        } \
    }
