//! Traffic manager: what stands between ingress and egress of a switch.
//!
//! Each port has a link of a given bit rate and one FIFO per priority, served in strict priority unless another [`Scheduler`] is set (as BMv2's
//! `simple_switch`: the **highest number is served first**, 0 is the default and the lowest). Capacities hold per
//! priority queue, as in BMv2. The manager is generic over the item queued and knows nothing of packets but their size.
//!
//! Time is an argument everywhere ([`Nanos`]); nothing here reads a clock. The caller's loop is:
//!
//! 1. [`TrafficManager::enqueue`] on arrival, with the instant of arrival;
//! 2. at [`TrafficManager::next_departure`] (or later: see below), [`TrafficManager::dequeue`];
//! 3. run egress; if a frame comes out, [`TrafficManager::transmitted`] with its size. If egress drops the packet, don't:
//!    no link time is used and the next packet may be dequeued at once.
//!
//! **Late wake-ups do not change the rate.** A transmission begins at the instant it could have begun, which is the later of
//! the link getting free and the arrival of the packet, not when the caller got round to it; link time is carried
//! as an exact fraction of a nanosecond, so `n` packets of `b` bits back to back take exactly `n * b / rate`.
//! A caller that is late must serve what was due before it enqueues later arrivals, or the queue looks fuller to them than it was.

#![forbid(unsafe_code)]

mod capacity;
mod link;
mod manager;
mod port;
mod schedule;
mod scheduler;
mod trace;
mod waits;

pub use capacity::parse_capacity;
pub use fairlane_units::{Delays, Nanos, PortId};
pub use link::Link;
pub use manager::TrafficManager;
pub use port::{Capacity, Dequeued, DropCause, Enqueued, PortConfig, PortStats, QueueLimits, QueueStats, Rejected};
pub use schedule::Schedule;
pub use scheduler::Scheduler;
pub use trace::{Trace, TraceError};
pub use waits::WaitSummary;

/// The largest port number that can be configured (ports are held in a dense table).
pub const MAX_PORT: PortId = 0xffff;

/// The most priority queues a port can have (BMv2 has 32 at most; v1model's `priority` field has 3 bits).
pub const MAX_PRIORITIES: usize = 32;

/// Why a port could not be configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("port {0} is out of range: use 0 to {MAX_PORT}")]
    PortOutOfRange(PortId),
    #[error("port {port}: {priorities} priority queues: use 1 to {MAX_PRIORITIES}")]
    Priorities { port: PortId, priorities: usize },
    #[error("port {0}: a rate of 0 bit/s never sends: give a positive rate, or none for an unlimited link")]
    ZeroRate(PortId),
    #[error("port {0} does not exist: add it first")]
    UnknownPort(PortId),
}
