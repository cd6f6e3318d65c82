// The headers of data packets that this program's schemes read and write, and the parser's states for them.

#include "rtp.p4"
#include "xcp_header.p4"

#define AFTER_UDP parse_data
#define DATA_HEADERS rtp_t rtp; congestion_t congestion;
#define DATA_CASES (RTP_EXTENDED &&& 0x1FE, 0x5843, 4, 40..0xFFFF): parse_xcp_header;
#define DATA_STATES RTP_STATES state parse_xcp_header { packet.extract(hdr.rtp); packet.extract(hdr.congestion); transition accept; }
#define DATA_EMITS packet.emit(hdr.rtp); packet.emit(hdr.congestion);
