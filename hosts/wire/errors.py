"""The one error that malformed bytes raise."""

from __future__ import annotations


class MalformedPacket(ValueError):
    """Bytes that are no valid RTP or RTCP. No other exception leaves a parser of this package, whatever the bytes."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(f"byte {offset}: {reason}")
        self.offset = offset
        """Where in the UDP payload the offending field starts."""
        self.reason = reason
        """What is wrong with it, with the values found."""
