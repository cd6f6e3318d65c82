//! What happens to each packet at the queues, for a log; nothing is kept unless asked for.

use fairlane_tm::{Nanos, PortId};

use crate::DropCause;

/// A step of a packet through a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QueueStep {
    /// It came in. What follows, up to the next packet that comes in or leaves a queue, is of this one.
    #[default]
    Received,
    /// It waits, or goes on at once where the link is free.
    Enqueued,
    /// It leaves its queue for egress.
    Dequeued,
    /// Egress is done with it, and did not drop it.
    Left,
    Dropped(DropCause),
}

/// A step, with its instant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueueEvent {
    pub time: Nanos,
    /// Of the queue; of a packet that came in or was dropped by ingress, the one it came in by.
    pub port: PortId,
    /// The packet's length at that step.
    pub bytes: u32,
    pub step: QueueStep,
    /// A number of the packet's stay in a queue, from 1; 0 before it comes to one.
    pub stay: u64,
    /// The queue of the port, by its priority.
    pub queue: usize,
    /// What waited in the queue before it, of a packet that comes to one.
    pub ahead_packets: u32,
    pub ahead_bytes: u64,
    /// Of a packet that came in, of one that goes on its link, and of one that is lost on it.
    pub frame: Vec<u8>,
}
