"""End hosts of the testbed: rate-adaptation algorithms, the RTP/RTCP codec, socket runners."""
