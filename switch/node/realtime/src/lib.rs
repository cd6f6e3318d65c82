//! The switch on real interfaces and the wall clock.
//!
//! One thread owns the [`fairlane_device::Device`] and does everything with packets ([`engine::Engine`]); others, as the
//! P4Runtime server, send it closures through a [`handle::DeviceHandle`]. Frames are received and sent in batches over raw packet
//! sockets ([`socket`]); the thread sleeps until a frame, a job, a signal, or the device's next event.

#![forbid(unsafe_code)]

pub mod checksum;
pub mod cli;
pub mod cli_server;
pub mod clock;
pub mod conversations;
pub mod descriptors;
pub mod engine;
mod gaps;
pub mod handle;
mod links;
pub mod logging;
pub mod pcap;
mod port;
pub mod say;
pub mod signals;
pub mod socket;
pub mod stats;
