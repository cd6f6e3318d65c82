//! A packet network in virtual time: hosts, switches, links, and the control plane of the switches.
//!
//! Each switch is a [`fairlane_device::Device`], the same pipeline and traffic manager that the real-time switch runs, and its
//! program is executed for each packet. Hosts send real headers. Nothing reads a clock, starts a thread, or iterates over a
//! hash table: a run is a function of its description and one seed.
//!
//! ```text
//! Network::new(Options)                        seed, control-channel delay, interval of records
//! add_switch, add_host, connect, add_flow      refused with what is wrong and where
//! set_control_plane                            P4Runtime messages by direct call
//! run_until(t)                                 again and again, as far as one likes
//! flows(), port_samples(), work()              what it left behind
//! ```
//!
//! | file | what |
//! |---|---|
//! | `events.rs` | the event queue |
//! | `description.rs`, `build.rs`, `error.rs` | what a network is described by; building it; what is wrong with one |
//! | `nodes.rs`, `network.rs`, `control.rs` | the parts of a network, event loop, control plane |
//! | `changes.rs` | changes of links while it runs |
//! | `followers.rs`, `after.rs` | flows that start when others are over |
//! | `part.rs`, `partition.rs`, `parcels.rs` | what a process has of a divided network, how it runs with the others, and what they send each other |
//! | `io.rs`, `flow.rs`, `tcp.rs` | what an end can do to the network; flows, and how their ends send: those over UDP are `fairlane-endpoint`'s |
//! | `flight.rs` | TCP's one-way delays |
//! | `layered.rs` | flows in layers to groups |
//! | `ip.rs`, `igmp.rs`, `membership.rs` | Ethernet, IPv4 and UDP headers; the host's part of IGMPv2 |
//! | `record.rs`, `samples.rs`, `capture.rs` | records, when they are taken, pcap files |
//! | `observer.rs`, `trace.rs`, `packets.rs`, `watch.rs`, `identity.rs` | single packets: the log of events, the record of stays in queues, which flow's packet a frame is |

#![forbid(unsafe_code)]

mod after;
mod build;
mod capture;
mod changes;
mod control;
mod description;
mod error;
mod events;
mod flight;
mod flow;
mod followers;
mod identity;
mod igmp;
mod io;
mod ip;
mod layered;
mod membership;
mod network;
mod nodes;
mod observer;
mod packets;
mod parcels;
mod part;
mod partition;
pub mod record;
mod samples;
mod tcp;
mod trace;
mod watch;

pub use control::{Answer, ControlAction, ControlPlane, Request};
pub use description::{Change, LinkEnd, Options};
pub use error::{BuildError, RunError};
pub use fairlane_channel::{ChannelConfig, ChannelStats, Impairments, ImpairmentsChange, Jitter, LossModel, Trace, TraceError};
pub use fairlane_tm::{Nanos, PortId};
pub use flow::{FlowKind, FlowSpec, RtpSpec};
pub use ip::HostAddress;
pub use layered::{LayeredReceiver, LayeredSpec};
pub use network::Network;
pub use nodes::FlowEnds;
pub use packets::PACKET_COLUMNS;
pub use part::{Heard, PartitionCounts, Peers};
pub use tcp::TcpSpec;
pub use trace::TraceWriter;
pub use watch::{Drop, Station, Visit, Wanted};
