//! Segments as plain values: what a TCP header says, without its bytes (see [`crate::wire`]) and without a payload.

use crate::Nanos;

/// Control bits of the TCP header ([RFC 9293 sec 3.1], [RFC 3168 sec 6.1]).
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

/// Up to four SACK blocks [RFC 2018 sec 3]: left edge included, right edge excluded; the newest first.
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

/// The timestamps option [RFC 7323 sec 3].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Timestamps {
    /// TSval: the sender's clock, here in microseconds modulo 2^32.
    pub value: u32,
    /// TSecr: the clock value echoed.
    pub echo: u32,
}

impl Timestamps {
    /// The clock: microseconds, modulo 2^32.
    pub fn clock(now: Nanos) -> u32 {
        (now / 1000) as u32
    }
}

/// Options that only a SYN carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct SynOptions {
    /// Maximum segment size in bytes [RFC 9293 sec 3.2].
    pub mss: Option<u16>,
    /// Window scale shift, 0 to 14 [RFC 7323 sec 2].
    pub window_scale: Option<u8>,
    /// SACK-permitted [RFC 2018 sec 2].
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
    /// AE, the bit before CWR and ECE; the three count marks [RFC 9768 sec 3.2.2].
    pub ae: bool,
    /// The window field as on the wire: to be shifted by the window scale, except in a SYN.
    pub window: u16,
    /// Bytes of payload.
    pub payload_len: u32,
    pub sack: SackBlocks,
    pub timestamps: Option<Timestamps>,
    pub syn_options: SynOptions,
}

/// What ACE begins with at both ends [RFC 9768 sec 3.2.1].
pub(crate) const INITIAL_MARKS: u64 = 5;
/// AE, CWR, ECE of a SYN-ACK that answers a SYN without ECT [RFC 9768 sec 3.1.1], and of the ACK that answers such a SYN-ACK
/// [RFC 9768 sec 3.2.2.1].
pub(crate) const HANDSHAKE_WITHOUT_ECT: u64 = 0b010;
/// The same of the SYN itself.
pub(crate) const COUNTS_MARKS: u64 = 0b111;

impl Segment {
    /// The three bits AE, CWR and ECE as the counter ACE, 0 to 7 [RFC 9768 sec 3.2.2].
    pub fn ace(&self) -> u8 {
        u8::from(self.ae) << 2 | u8::from(self.flags.has(Flags::CWR)) << 1 | u8::from(self.flags.has(Flags::ECE))
    }

    /// The same segment whose ACE is `count` modulo 8.
    #[must_use]
    pub fn with_ace(mut self, count: u64) -> Segment {
        self.ae = count & 4 != 0;
        self.flags.0 &= !(Flags::CWR.0 | Flags::ECE.0);
        // CWR is the higher of the two in ACE as in the header.
        self.flags.0 |= (count as u8 & 3) << 6;
        self
    }
}

/// ECN codepoint of a packet that its sender sends [RFC 3168 sec 5].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Ecn {
    /// A queue may only drop it.
    #[default]
    NotEct,
    /// ECT(0): a mark stands for a loss.
    Ect0,
    /// ECT(1): an L4S packet [RFC 9331 sec 4.1]; marks may be frequent.
    Ect1,
}

impl Ecn {
    /// The two low bits of the type of service.
    pub fn bits(self) -> u8 {
        match self {
            Ecn::NotEct => 0b00,
            Ecn::Ect0 => 0b10,
            Ecn::Ect1 => 0b01,
        }
    }
}

/// A segment to be sent, with what the layers below must know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit {
    pub segment: Segment,
    /// What the IP header says: new data only are ECN-capable, no pure ACK [RFC 3168 sec 6.1.4] and no retransmission [RFC 3168 sec 6.1.5];
    /// of Prague, retransmissions too [RFC 8311 sec 4.3].
    pub ecn: Ecn,
    /// Whether any byte of it was sent before.
    pub retransmission: bool,
}
