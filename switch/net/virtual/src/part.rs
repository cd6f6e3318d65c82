//! What one process has of a divided network, and how it speaks with the others.

use fairlane_endpoint::algorithm::Fault;

use crate::flight::Ledger;
use crate::nodes::Attachment;
use crate::parcels::Parcel;
use crate::Nanos;

/// The other partitions of a network, numbered from 0, this one among them.
pub trait Peers {
    /// Tells all when this one's next event is, `Nanos::MAX` for never; gives each the bytes for it, if there are any, and empties them; and waits for all.
    ///
    /// # Errors
    /// One of them has ended; whoever waits wants no longer to.
    fn exchange(&mut self, next: Nanos, ours: &mut [Vec<u8>]) -> Result<Heard, Fault>;
}

/// What all partitions have told each other at the end of a window.
#[derive(Debug)]
pub struct Heard {
    /// The earliest event of all, as they have told it.
    pub floor: Nanos,
    /// Who has sent something to this one, in the partitions' order, and what.
    pub theirs: Vec<(usize, Vec<u8>)>,
}

/// What this process has of a network.
pub(crate) struct Partition {
    pub(crate) own: usize,
    /// The partition of each switch, and of each host.
    pub(crate) switches: Vec<usize>,
    pub(crate) hosts: Vec<usize>,
    pub(crate) lookahead: Nanos,
    pub(crate) peers: Box<dyn Peers>,
    /// What goes to each at the window's end.
    pub(crate) ours: Vec<Vec<u8>>,
    /// The earliest instant at which something of that happens.
    pub(crate) earliest: Nanos,
    /// The present window ends before this.
    pub(crate) bound: Nanos,
    /// What has left senders whose receivers are elsewhere.
    pub(crate) ledger: Ledger,
    /// Instants of this window at which all ends wrote records, and whether those were marks.
    pub(crate) sampled: Vec<(Nanos, bool)>,
    pub(crate) counts: PartitionCounts,
}

/// The partition that has the control plane.
pub(crate) const CONTROLS: usize = 0;

/// What partitions have sent each other, counted in one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PartitionCounts {
    pub windows: u64,
    /// Frames that left for other partitions, and all that did, in bytes, and in messages: one for each partition to which something went in a window.
    pub frames: u64,
    pub bytes: u64,
    pub messages: u64,
    /// Least delay between partitions.
    pub lookahead: Nanos,
}

impl Partition {
    /// Whether a switch is simulated here.
    pub(crate) fn has_switch(&self, switch: usize) -> bool {
        self.switches[switch] == self.own
    }

    /// Whether the end of a channel is simulated here, and so all that happens to frames on it.
    pub(crate) fn has(&self, end: Attachment) -> bool {
        match end {
            Attachment::Host(host) => self.has_host(host),
            Attachment::Switch(switch, _) => self.has_switch(switch),
        }
    }

    /// Whether a host, and all ends at it, is simulated here.
    pub(crate) fn has_host(&self, host: usize) -> bool {
        self.hosts[host] == self.own
    }

    pub(crate) fn put(&mut self, home: usize, parcel: &Parcel) {
        let at = match parcel {
            Parcel::Frame { flying, .. } => flying.arrival,
            Parcel::Call { call, .. } => call.at,
            Parcel::Event { order, .. } => order.at,
            Parcel::Left { .. } | Parcel::Starts { .. } => Nanos::MAX,
        };
        self.earliest = self.earliest.min(at);
        parcel.write(&mut self.ours[home]);
    }
}
