//! Segments as plain values: what a TCP header says, without its bytes (see [`crate::wire`]) and without a payload.

/// Control bits of the TCP header (RFC 9293 section 3.1, RFC 3168 section 6.1).
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Flags(pub u8);

impl Flags {
    pub const FIN: Flags = Flags(0x01);
    pub const SYN: Flags = Flags(0x02);
    pub const RST: Flags = Flags(0x04);
    pub const PSH: Flags = Flags(0x08);
    pub const ACK: Flags = Flags(0x10);
    pub const URG: Flags = Flags(0x20);
    /// ECN-Echo: the receiver saw congestion experienced.
    pub const ECE: Flags = Flags(0x40);
    /// Congestion window reduced: the sender answered an ECN-Echo.
    pub const CWR: Flags = Flags(0x80);

    /// Whether every bit of `other` is set.
    pub fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// These bits and those of `other`.
    #[must_use]
    pub fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl std::fmt::Debug for Flags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
        let set: Vec<&str> = (0..8).filter(|bit| self.0 >> bit & 1 == 1).map(|bit| names[bit]).collect();
        f.write_str(if set.is_empty() { "-" } else { "" })?;
        f.write_str(&set.join("|"))
    }
}

/// Up to four SACK blocks (RFC 2018 section 3): left edge included, right edge excluded; the newest first.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct SackBlocks {
    len: u8,
    blocks: [(u32, u32); 4],
}

impl SackBlocks {
    /// The most blocks that fit a header: 4, or 3 beside a timestamps option.
    pub const MAX: usize = 4;

    /// Adds a block at the end; `false`, and nothing added, when there are four already.
    pub fn push(&mut self, left: u32, right: u32) -> bool {
        let Some(slot) = self.blocks.get_mut(usize::from(self.len)) else { return false };
        *slot = (left, right);
        self.len += 1;
        true
    }

    /// The blocks, first to last.
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.len)]
    }

    /// Whether there is no block.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl std::fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

/// The timestamps option (RFC 7323 section 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Timestamps {
    /// TSval: the sender's clock, here in microseconds modulo 2^32.
    pub value: u32,
    /// TSecr: the clock value echoed.
    pub echo: u32,
}

/// Options that only a SYN carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct SynOptions {
    /// Maximum segment size in bytes (RFC 9293 section 3.2).
    pub mss: Option<u16>,
    /// Window scale shift, 0 to 14 (RFC 7323 section 2).
    pub window_scale: Option<u8>,
    /// SACK-permitted (RFC 2018 section 2).
    pub sack_permitted: bool,
}

/// One TCP segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct Segment {
    /// Sequence number of the first byte (of the SYN where that flag is set).
    pub seq: u32,
    /// Acknowledgement number; meaningful with [`Flags::ACK`].
    pub ack: u32,
    pub flags: Flags,
    /// The window field as on the wire: to be shifted by the window scale, except in a SYN.
    pub window: u16,
    /// Bytes of payload.
    pub payload_len: u32,
    pub sack: SackBlocks,
    pub timestamps: Option<Timestamps>,
    pub syn_options: SynOptions,
}

/// A segment to be sent, with what the layers below must know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit {
    pub segment: Segment,
    /// Whether the IP header says ECT(0) (RFC 3168 section 6.1.4: new data only, no retransmission, no pure ACK).
    pub ecn_capable: bool,
    /// Whether any byte of it was sent before.
    pub retransmission: bool,
}
