//! BMv2's Thrift services and notifications for one device: what `simple_switch_CLI`, p4-utils and controllers written for
//! `simple_switch` talk to.
//!
//! [`service::Core`] is the services `standard`, `simple_pre`, `simple_pre_lag` and `simple_switch` as functions over a
//! [`fairlane_device::Device`]: a call with its arguments in, a result or BMv2's own error code out; no sockets, no clock.
//! [`server::Server`] puts them on a TCP port: multiplexed, buffered, binary; [`scan::Scan`] finds where a call ends.
//! [`notify::Notifier`] turns what the data plane has to say into BMv2's notifications, which [`publish::Publisher`] sends over
//! nanomsg's PUB protocol, as it does the event log ([`nanolog`]).
//!
//! P4Runtime acts on the same device: an entry that one of them adds, the other reads.
//!
//! There is no interface definition here: binary Thrift says the type of each field, so that [`value::Value`] holds any call, and a
//! method takes its arguments by number.

#![forbid(unsafe_code)]

pub mod nanolog;
pub mod notify;
pub mod ports;
pub mod publish;
pub mod scan;
pub mod server;
pub mod service;
pub mod value;

pub use notify::Notifier;
pub use ports::{PortInfo, Ports};
pub use publish::{Address, Publisher};
pub use server::{EventSink, ServeError, Server, ServerConfig};
pub use service::{Core, Failure, Identity};
