// The headers of data packets that this program's schemes read and write, and the parser's states for them.

#include "rtp.p4"
#include "rcp_header.p4"

#define AFTER_UDP parse_data
#define DATA_HEADERS rtp_t rtp; rate_t rate;
#define DATA_CASES (RTP_EXTENDED &&& 0x1FE, 0x5243, 3, 36..0xFFFF): parse_rcp_header;
#define DATA_STATES RTP_STATES state parse_rcp_header { packet.extract(hdr.rtp); packet.extract(hdr.rate); transition accept; }
#define DATA_EMITS packet.emit(hdr.rtp); packet.emit(hdr.rate);
