"""RTP, RTCP and ALSF on the wire (RFC 3550; docs/architecture.md, "ALS on the wire"). Pure: bytes in, values out."""
