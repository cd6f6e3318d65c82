//! BMv2 JSON loader and v1model execution, as `simple_switch` does it.
//!
//! The crate is pure: bytes and metadata in, bytes and metadata out. Time is an argument
//! ([`Nanos`]), randomness comes from a generator seeded by [`SwitchConfig::seed`].
//!
//! ```text
//! Program::from_json(text)                       load and check a compiler's output
//! Switch::new(Arc<Program>, SwitchConfig)        tables, counters, registers ... of one switch
//! Switch::ingress(now, port, frame, &mut out)    parser, ingress, clone/multicast/drop -> Queued
//! Switch::egress(now, queued, info, &mut out)    egress, deparser -> Emitted, clones -> Queued
//! ```
//!
//! Between the two calls a [`Queued`] item belongs to a traffic manager, which knows its egress
//! port, priority and length. Everything else on [`Switch`] is the control interface: tables,
//! action profiles, counters, meters, registers, value sets, multicast groups, clone sessions,
//! digests. Ids ([`TableId`] and so on) index the lists in [`Program`]; find them by name once.

mod config;
mod control;
mod definition;
mod drop_cause;
mod error;
mod exec;
mod explain;
mod info;
mod ir;
mod load;
mod observe;
mod program;
mod switch;
mod table;
mod value;
mod wording;
mod words;

pub use config::{MachineCode, SwitchConfig};
pub use control::*;
pub use definition::{ConditionNote, Definition, Notes, ParserNote, Read, Source, StateNote};
pub use drop_cause::DropCause;
pub use error::{ControlError, LoadError};
pub use exec::values::Place;
pub use fairlane_units::{Nanos, PortId};
pub use info::*;
pub use observe::{ArrayKind, Candidate, Candidates, Change, Detail, Extraction, Observing, PacketEvent, Skip, Step};
pub use program::Program;
pub use switch::{Control, EgressOut, Emitted, IngressOut, InstanceType, QueueInfo, Queued, Switch, SwitchStats, MAX_FRAME};
pub use value::Value;
pub use wording::Level;
