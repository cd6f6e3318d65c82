// Numbers that more than one file needs. Python reads ids and widths from P4Info and never repeats these.

const bit<8> IP_PROTOCOL_TCP  = 6;
const bit<8> IP_PROTOCOL_UDP  = 17;

// [RFC 3550 sec 12.1].
const bit<2> RTCP_VERSION = 2;
const bit<8> RTCP_SR   = 200;
const bit<8> RTCP_RR   = 201;
const bit<8> RTCP_APP  = 204;

const bit<32> ALSF_NAME           = 0x414C5346;  // "ALSF"
const bit<5>  ALSF_FROM_SENDER    = 0;           // switches rewrite it
const bit<16> ALSF_MINIMUM_LENGTH = 5;           // words minus one, without layers

// An RTCP packet longer than this many words (minus one) is forwarded, not parsed.
const bit<16> RTCP_MAXIMUM_LENGTH = 255;
#define RTCP_MAXIMUM_BITS 8160
#define RTCP_STACK_SIZE 4

// v1model ports are 9 bits wide; 511 drops.
#define PORTS 512
const bit<9> CPU_PORT  = 510;
const bit<9> DROP_PORT = 511;
// instance_type of a copy made by the multicast engine.
const bit<32> REPLICATION = 5;
