//! What the ports of switches leave behind, in the order of time, and counts of the simulation itself.

use fairlane_channel::ChannelStats;
use fairlane_device::{PortSnapshot, QueueStats};

use crate::Nanos;

/// A port of a switch at an instant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PortSample {
    pub time: Nanos,
    pub switch: usize,
    pub port: PortSnapshot,
}

/// One of several queues of a switch's port at the end of an interval, by its priority.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueueSample {
    pub time: Nanos,
    pub switch: usize,
    pub port: u32,
    pub priority: usize,
    pub queue: QueueStats,
}

/// What delays of packets are of: a queue of a switch's port, a flow, or the `receiver`-th receiver of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measured {
    Wait { switch: usize, port: u32, priority: usize },
    RoundTrip { flow: usize },
    OneWay { flow: usize, receiver: usize },
}

/// One direction of a link, by its number, at an instant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkSample {
    pub time: Nanos,
    pub link: usize,
    pub counts: ChannelStats,
}

/// Counts of the simulation itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkCounts {
    /// Events taken from the queue.
    pub events: u64,
    /// Frames that reached the end of a link.
    pub link_traversals: u64,
    /// Frames that a switch took in: executions of its program's ingress.
    pub switch_packets: u64,
    /// Data packets that left senders (TCP segments with payload, RTP data, raw datagrams).
    pub data_packets: u64,
}
