//! One switch: the pipeline of a P4 program, a traffic manager, and a delay line per port.
//!
//! [`Device`] opens no socket and reads no clock: `now` is an argument, frames come in by [`Device::receive`] and leave
//! through an [`Output`] in [`Device::poll`]. The real-time switch and the virtual network are two loops around it:
//!
//! ```text
//! loop {
//!     wait for a frame or until device.next_event()
//!     device.receive(now, port, frame)      for each frame
//!     device.poll(now, &mut output)         frames whose instant of departure has come
//!     device.take_events()                  digests, packet-ins, idle timeouts for the control plane
//! }
//! ```
//!
//! Control planes reach a device that another thread owns through [`DeviceAccess`].

#![forbid(unsafe_code)]

mod access;
mod counters;
mod delay;
mod device;
pub mod rows;
mod trace;

pub use access::{call, lock, Closed, DeviceAccess, Job, SharedDevice};
pub use counters::{DropCause, Drops, PortSnapshot};
pub use device::{Device, DeviceConfig, Event, Output, PortConfig};
pub use fairlane_pipeline as pipeline;
pub use fairlane_tm::{
    parse_capacity, Capacity, ConfigError, Delays, Nanos, PortId, QueueLimits, QueueStats, Scheduler, WaitSummary, MAX_PORT, MAX_PRIORITIES,
};
pub use trace::{QueueEvent, QueueStep};
