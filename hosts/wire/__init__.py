"""RTP, RTCP and our own headers on the wire (RFC 3550; docs/wire-formats.md). Pure: bytes in, values out."""
