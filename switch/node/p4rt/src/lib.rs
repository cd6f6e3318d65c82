//! P4Runtime for one device (P4Runtime specification, version 1.4).
//!
//! [`core::Core`] is the service as a pure state machine over a [`fairlane_device::Device`]: arbitration, pipeline configuration,
//! writes and reads of every entity of v1model, digests, packet I/O. [`server::Server`] puts gRPC around it. In virtual time the core
//! is called directly with the same messages.
//!
//! ```text
//! Server::start(config, access)        listen; requests become jobs on the device's thread
//! server.event_sink().deliver(..)      called by that thread with Device::take_events()
//! ```
//!
//! Of what the specification leaves open: batches may be all-or-none (both optional modes; up to 1024 changes where packets must see all or
//! none), large reads and writes go in parts with packets in between, RECONCILE_AND_COMMIT keeps the state
//! where the new program can hold it, and registers can be read and written, which BMv2 refuses. Not offered, each with
//! UNIMPLEMENTED: watch ports, backup replicas, meters' counts by colour, a class of service for clones, direct resources of the
//! default entry, externs.

#![forbid(unsafe_code)]

pub mod arbitration;
pub mod bytes;
pub mod core;
pub mod digest;
#[cfg(feature = "server")]
mod doors;
mod entity;
#[cfg(feature = "server")]
mod incoming;
pub mod limits;
pub mod model;
#[cfg(feature = "server")]
mod oversize;
pub mod packet_io;
mod pipeline_config;
pub mod proto;
#[cfg(feature = "server")]
mod reading;
#[cfg(feature = "server")]
mod reads;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "server")]
mod shared;
pub mod status;
#[cfg(feature = "server")]
pub mod tls;
#[cfg(feature = "server")]
mod turns;
pub mod types;
#[cfg(feature = "server")]
mod whole;

pub use crate::arbitration::{ClientId, Notification};
pub use crate::core::{Core, ReadOutput, StreamOutput, API_VERSION};
pub use crate::limits::Limits;
#[cfg(feature = "server")]
pub use crate::server::{EventSink, ServeError, Server, ServerConfig};
pub use crate::status::{Code, Status};
#[cfg(feature = "server")]
pub use crate::tls::TlsFiles;
