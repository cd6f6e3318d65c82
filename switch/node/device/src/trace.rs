//! What happens to each packet at the queues, for a log; nothing is kept unless asked for.

use fairlane_tm::{Nanos, PortId};

use crate::DropCause;

/// A step of a packet through a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueStep {
    /// It waits, or goes on at once where the link is free.
    Enqueued,
    /// It leaves its queue for egress.
    Dequeued,
    Dropped(DropCause),
}

/// A step, with its instant. `port`: of the queue; for a packet dropped in ingress, the one it came in by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueEvent {
    pub time: Nanos,
    pub port: PortId,
    /// The packet's length at that step.
    pub bytes: u32,
    pub step: QueueStep,
}
