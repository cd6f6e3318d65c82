//! What a device counts, per port and by cause.

use std::fmt;

use fairlane_tm::{Nanos, PortId};

macro_rules! causes {
    ($($(#[$doc:meta])* $name:ident = $text:literal)*) => {
        /// Why a packet was dropped. The text of each is what statistics and reports call it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum DropCause { $($(#[$doc])* $name),* }

        impl DropCause {
            /// All causes, in the order of the enumeration.
            pub const ALL: &'static [DropCause] = &[$(DropCause::$name),*];

            /// The cause's name in statistics.
            pub const fn as_str(self) -> &'static str {
                match self { $(DropCause::$name => $text),* }
            }
        }
    };
}

causes! {
    /// The program dropped it in ingress (RED's drops are of this kind). Counted at the port it came in by.
    Ingress = "ingress"
    /// The program dropped it in egress, at the port it was to leave by; it used no link time.
    Egress = "egress"
    /// The queue of its port was full.
    Tail = "tail"
    /// It left egress for a port that does not exist.
    NoPort = "no_port"
    /// Its priority is not below the number of priority queues.
    Priority = "priority"
    /// Its multicast group is unknown or empty.
    MulticastEmpty = "multicast_empty"
    /// Resubmitted, recirculated or cloned from egress too often.
    Loop = "loop"
    /// An `assert` or `assume` of the program failed.
    Assert = "assert"
    /// Longer than 65535 bytes, or the program ran without end.
    Limit = "limit"
    /// No program is loaded.
    NoProgram = "no_program"
    /// It was waiting when the program was replaced or its port removed.
    Reconfigured = "reconfigured"
    /// The link of its port had failed, or failed while it waited or was on the way.
    LinkDown = "link_down"
}

impl fmt::Display for DropCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

const CAUSES: usize = DropCause::ALL.len();

/// Packets dropped, by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drops([u64; CAUSES]);

impl Drops {
    /// Packets dropped for one cause.
    pub fn get(&self, cause: DropCause) -> u64 {
        self.0[cause as usize]
    }

    /// Packets dropped in all.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Every cause with its count.
    pub fn iter(&self) -> impl Iterator<Item = (DropCause, u64)> + '_ {
        DropCause::ALL.iter().map(|&cause| (cause, self.get(cause)))
    }

    pub(crate) fn add(&mut self, cause: DropCause, packets: u64) {
        self.0[cause as usize] += packets;
    }

    pub(crate) fn merge(&mut self, other: &Drops) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }
}

/// What a port counts beside its traffic manager.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PortCounters {
    pub(crate) rx_packets: u64,
    pub(crate) rx_bytes: u64,
    pub(crate) drops: Drops,
    pub(crate) wrong_checksums: u64,
}

/// All a port has counted up to one instant; sums run from the creation of the port. Over a window of `t` ns: utilisation is
/// the difference of `busy_ns` over `t`, mean queue the difference of `queue_integral_packet_ns` over `t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PortSnapshot {
    pub port: PortId,
    /// Frames received.
    pub rx_packets: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Frames put on the link (those in the delay line included).
    pub tx_packets: u64,
    /// Their bytes, link overhead not counted.
    pub tx_bytes: u64,
    /// Packets dropped, by cause.
    pub drops: Drops,
    /// Packets that came in with a wrong checksum, and that the program dropped in ingress for whatever reason; they count as such drops, too.
    pub wrong_checksums: u64,
    /// Nanoseconds the link has been busy.
    pub busy_ns: Nanos,
    /// Time-integral of the packets waiting, in packet-nanoseconds.
    pub queue_integral_packet_ns: u128,
    /// Packets waiting now, over all priorities; the one in service is not among them.
    pub depth_packets: u32,
    /// Their bytes.
    pub depth_bytes: u64,
    /// The most packets that ever waited.
    pub max_depth_packets: u32,
}
