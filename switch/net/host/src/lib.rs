//! Drives one end of a flow (`fairlane-endpoint`) by UDP sockets and the machine's clock: one thread, one loop.
//!
//! ```text
//! let mut driver = Driver::new(end, Sockets::open(addresses)?, epoch, marks);
//! while driver.run_until(instant)? == Progress::Running { ... }   take_log(), now and then
//! ```
//!
//! `driver.rs` is the loop, over anything that carries datagrams and tells the time; `sockets.rs` is UDP on Linux,
//! `trace.rs` a recording of it.

#![forbid(unsafe_code)]

mod driver;
mod sockets;
mod trace;

pub use driver::{Arrivals, Driver, Progress, Taken, Wire};
pub use sockets::{monotonic, Addresses, Role, SocketError, Sockets};
pub use trace::{Arrival, Trace};
