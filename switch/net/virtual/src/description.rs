//! What a run and its network are described by, and what may change while it runs.

use std::sync::Arc;

use fairlane_channel::{ImpairmentsChange, Jitter, LossModel, Trace};

use crate::{Nanos, PortId};

/// How a run is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// From it, and the components' names, all randomness follows.
    pub seed: u64,
    /// Nanoseconds since the Unix epoch at instant 0.
    pub epoch: Nanos,
    /// One way between the control plane and each switch.
    pub control_delay: Nanos,
    /// Between the periodic records; 0 writes none.
    pub record_interval: Nanos,
    /// When the run ends, if that is known: what is planned for later is refused, and so is running on.
    pub end: Option<Nanos>,
}

impl Default for Options {
    fn default() -> Self {
        Options { seed: 1, epoch: 0, control_delay: 1_000_000, record_interval: 100_000_000, end: None }
    }
}

/// One end of a link: a node by name, and its port (0 for a host).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkEnd {
    pub node: String,
    pub port: PortId,
}

impl LinkEnd {
    pub fn new(node: impl Into<String>, port: PortId) -> LinkEnd {
        LinkEnd { node: node.into(), port }
    }
}

/// Something that changes while the network runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// The rate of one direction of a link, in bits per second: from the next transmission on.
    LinkRate { from: LinkEnd, rate_bps: Option<u64> },
    /// The propagation delay of one direction of a link, for frames sent from then on.
    LinkDelay { from: LinkEnd, delay_ns: Nanos },
    /// How one direction of a link loses frames, from then on; `None`: not at all.
    LinkLoss { from: LinkEnd, loss: Option<LossModel> },
    /// How much longer than its delay one direction of a link may take, from then on.
    LinkJitter { from: LinkEnd, jitter: Option<Jitter> },
    /// What of the impairments of one direction of a link becomes other, for frames sent from then on.
    LinkImpairments { from: LinkEnd, change: ImpairmentsChange },
    /// A trace that one direction of a link follows in place of its rate; the trace begins then.
    LinkTrace { from: LinkEnd, trace: Arc<Trace> },
    /// One direction of a link fails, or works again: what waits and what is on the way is lost, and all that follows until then.
    LinkState { from: LinkEnd, up: bool },
    /// A host sends one frame, whatever is in it, as a program with a raw socket does.
    Frame { from: LinkEnd, frame: Vec<u8> },
}

impl Change {
    /// The end that sends.
    pub(crate) fn from(&self) -> &LinkEnd {
        match self {
            Change::LinkRate { from, .. }
            | Change::LinkDelay { from, .. }
            | Change::LinkLoss { from, .. }
            | Change::LinkJitter { from, .. }
            | Change::LinkImpairments { from, .. }
            | Change::LinkTrace { from, .. }
            | Change::LinkState { from, .. }
            | Change::Frame { from, .. } => from,
        }
    }
}
