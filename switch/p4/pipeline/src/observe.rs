//! What packets do on their way, for BMv2's event log and its packet log; nothing is kept unless asked for
//! ([`crate::Switch::set_observing`]). `wording.rs` says the steps in BMv2's words.
//!
//! Numbers are those of the program's JSON. A packet keeps its number, copies of it count from 1, and the signature is the XXH64 of
//! the bytes that it was made of, all as in BMv2 (bm_sim/event_logger.cpp, bm_sim/packet.cpp).

use twox_hash::XxHash64;

use crate::control::{ActionCall, EntryHandle, TableEntry};
use crate::drop_cause::DropCause;
use crate::{Gress, Nanos, PortId, Value};

/// What a switch can be asked to keep of packets' steps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Observing {
    /// Nothing.
    #[default]
    Nothing,
    /// The steps of the event log.
    Events,
    /// Those, and all that the packet log says ([`Detail`]).
    Everything,
    /// That, and the values before and after each step, and the entries that tables have tried.
    Values,
}

/// A step of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    In(PortId),
    /// Port, and bytes of the frame.
    Out(PortId, usize),
    ParserStart(i64),
    ParserDone(i64),
    /// A header is extracted, if the packet is long enough.
    Extract(i64),
    DeparserStart(i64),
    DeparserDone(i64),
    /// A header was emitted.
    Emit(i64),
    ChecksumUpdate(i64),
    PipelineStart(i64),
    PipelineDone(i64),
    Condition(i64, bool),
    /// Table, and the place and removals of the entry that was hit.
    Hit(i64, u32, u8),
    Miss(i64),
    Action(i64),
    /// Another program runs from here on. No packet did it: its numbers are 0.
    ConfigChange,
    /// What the packet log says beside that.
    More(Box<Detail>),
}

/// How an extract names its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extraction {
    Fixed,
    Variable,
    /// To the next element of the stack with this number in the JSON.
    Stack(i64),
    UnionStack(i64),
}

/// Why a checksum is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skip {
    Update,
    Verification,
    /// Its verification, since the header of its field is not valid.
    Invalid,
}

/// Which kind of array a step used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrayKind {
    Counter,
    Meter,
    RegisterRead,
    RegisterWrite,
}

/// A step that only the packet log has. Numbers are indices into the program's lists, unless they are said to be those of the JSON;
/// values are as they are then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detail {
    /// Ingress begins, of a packet that came by that port.
    Processing(PortId),
    /// The parser (its number in the JSON) enters a state.
    State(i64, u32),
    /// The header is extracted next, if the packet is long enough.
    Extracting(u32, Extraction),
    /// A `set` of the parser, and the value that the field has then.
    Set(u32, String),
    /// A method of a parser or deparser runs; `true` where it is called rather than begun.
    Method(u32, bool),
    Advancing(u64),
    /// A state's bits to advance, or of a variable-length field, are no whole number of bytes.
    NoBytes(Extraction, u64),
    /// A state without `select` is done.
    NoSelect(i64, u32),
    /// The key of a state's `select`.
    Key(i64, u32, Vec<u8>),
    /// Bytes that the parser has taken so far.
    Parsed(usize),
    /// The parser ends with this error code.
    ParserError(u64),
    Skipped(u32, Skip),
    /// A checksum as computed, and as it is in the packet.
    Compared(u32, u64, u64),
    /// Whether that is right.
    Verified(u32, bool),
    Incorrect(u32),
    Updating(u32),
    Applying(u32),
    /// A table looks these values up.
    Lookup(u32, Vec<Value>),
    /// A table found this entry; the members of its action profile that it may run.
    Found(u32, EntryHandle, Box<TableEntry>, Vec<(u32, ActionCall)>),
    /// A member of a group of an action profile was chosen.
    Chosen {
        member: u32,
        group: u32,
    },
    /// What a table runs, if anything.
    Runs(Option<Box<ActionCall>>),
    /// A primitive, by its place among the notes of the program.
    Primitive(u32),
    /// A pipeline ends early, because of an `exit`.
    Exit,
    Random {
        low: u64,
        high: u64,
        value: u64,
    },
    Hash {
        base: u64,
        size: u64,
        value: u64,
    },
    /// A meter is asked for a colour.
    Metering(u32, u64),
    /// A cell of an array was used; with the value read, written or found by a meter.
    Cell(ArrayKind, u32, u64, String),
    /// The array has no such cell.
    NoCell(ArrayKind, u32, String),
    /// The program's own `log_msg`, or a failed `assert`.
    Message(String),
    Cloning(Gress),
    CloneToGroup(u16),
    CloneToPort(PortId),
    /// Copies of a multicast group, how many; no such group with `None`.
    Group(u16, Option<usize>),
    Multicast,
    Replicating(PortId),
    Resubmitting,
    Recirculating,
    EgressPort(PortId),
    Dropping(Gress),
    /// Its priority is above those of the queues.
    NoQueue,
    /// It comes to a queue that is served later; the packets before it. BMv2 does not say so, nor when it leaves.
    Enqueuing {
        port: PortId,
        priority: usize,
        ahead: usize,
    },
    /// It leaves the queue, after so many nanoseconds.
    Dequeued {
        port: PortId,
        waited: u64,
    },
    /// Dropped by the switch itself, which BMv2 does not say.
    Lost(String),
    /// Only with [`Observing::Values`], as all that follow: the clock from here on.
    Now(Nanos),
    /// What the packet's places hold when it is first seen, those that hold 0 left out.
    Holds(Vec<(u32, Value)>),
    /// What the step before has changed.
    Changed(Vec<Change>),
    /// The values that a primitive or a condition reads, by its place among the notes of the program.
    Reads(u32, Vec<Value>),
    /// A cell before it is written or counted in.
    Was(ArrayKind, u32, u64, String),
    /// The entries of a table beside the key that it looked up.
    Tried(u32, Box<Candidates>),
    /// The packet ends here.
    Gone(DropCause),
}

/// A place of a packet ([`crate::Definition::places`]) and its value before and after a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub place: u32,
    /// None of a field whose header was not valid.
    pub before: Option<Value>,
    pub after: Value,
}

/// A table's entries beside a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidates {
    /// How many there are.
    pub entries: usize,
    /// How many of them were compared with the key: a bound keeps a large table from taking long.
    pub compared: usize,
    /// How many of these match it.
    pub matching: usize,
    /// The entry that was hit, others that match, and those that come nearest; few.
    pub shown: Vec<Candidate>,
}

/// An entry of a table beside a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// From 1, in the order in which the entries were added.
    pub number: usize,
    pub handle: EntryHandle,
    pub entry: TableEntry,
    /// Whether each field matches.
    pub fields: Vec<bool>,
    /// Leading bits of the key that are as the entry says, over all fields.
    pub common: u32,
    pub hit: bool,
}

/// A step, and whose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketEvent {
    pub signature: u64,
    pub packet: u64,
    /// 0 for the packet itself.
    pub copy: u64,
    pub step: Step,
}

/// Who a packet is.
#[derive(Debug, Clone, Copy, Default)]
pub struct PacketName {
    pub signature: u64,
    pub packet: u64,
    pub copy: u64,
}

/// Packets whose copies are counted apart; more at a time share a count.
const COUNTED: usize = 1024;

/// Gives packets and their copies numbers.
#[derive(Debug)]
pub struct Names {
    next: u64,
    copies: [u64; COUNTED],
}

impl Default for Names {
    fn default() -> Names {
        Names { next: 0, copies: [0; COUNTED] }
    }
}

impl Names {
    /// The number of the next packet that comes in.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The name of a packet that came in.
    pub fn fresh(&mut self, bytes: &[u8]) -> PacketName {
        self.copies[self.next as usize % COUNTED] = 0;
        let name = PacketName { signature: XxHash64::oneshot(0, bytes), packet: self.next, copy: 0 };
        self.next += 1;
        name
    }

    /// The name of a copy of a packet, made of these of its bytes.
    pub fn copy(&mut self, of: PacketName, bytes: &[u8]) -> PacketName {
        let copies = &mut self.copies[of.packet as usize % COUNTED];
        *copies += 1;
        PacketName { signature: XxHash64::oneshot(0, bytes), packet: of.packet, copy: *copies }
    }
}
