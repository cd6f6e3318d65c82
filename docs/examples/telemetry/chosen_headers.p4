// The headers of data packets that this program's schemes read and write, and the parser's states for them.

#include "rtp.p4"
#include "telemetry_header.p4"

#define AFTER_UDP parse_data
#define DATA_HEADERS rtp_t rtp; telemetry_t telemetry; hop_t[4] hops;
#define DATA_CASES (RTP_EXTENDED &&& 0x1FE, 0x5445, 17, 92..0xFFFF): parse_telemetry_header;
#define DATA_STATES RTP_STATES state parse_telemetry_header { packet.extract(hdr.rtp); packet.extract(hdr.telemetry); packet.extract(hdr.hops.next); packet.extract(hdr.hops.next); packet.extract(hdr.hops.next); packet.extract(hdr.hops.next); transition accept; }
#define DATA_EMITS packet.emit(hdr.rtp); packet.emit(hdr.telemetry); packet.emit(hdr.hops);
