//! The packet log: a packet's steps in BMv2's words, with its levels (bm_sim/parser.cpp, pipeline.cpp, match_tables.cpp, match_units.cpp,
//! conditionals.cpp, actions.cpp, checksums.cpp, deparser.cpp; targets/simple_switch/simple_switch.cpp and primitives.cpp).
//!
//! A line begins with the packet's number and that of its copy, and the context, of which there is one: `[12.0] [cxt 0] `.

use std::fmt::Write as _;

use crate::control::{ActionCall, EntryHandle, KeyMatch, TableAction, TableEntry};
use crate::definition::{Definition, Source};
use crate::info::{Gress, KeyInfo, MatchKind, TableInfo};
use crate::ir::{Deparser, Parser};
use crate::observe::{ArrayKind, Detail, Extraction, PacketEvent, Skip, Step};
use crate::table::prefix_mask;
use crate::Value;

/// How urgent a line of the log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

impl Level {
    /// As in a line of the log.
    pub fn letter(self) -> char {
        match self {
            Level::Trace => 'T',
            Level::Debug => 'D',
            Level::Info => 'I',
            Level::Warn => 'W',
            Level::Error => 'E',
        }
    }
}

/// Columns of the names of a key's fields, at least.
const NAME_COLUMN: usize = 20;
/// Columns of the kind of a match.
const KIND_COLUMN: usize = 10;

/// A step's line, and its level; none for a step that only the event log has, or of another program.
pub fn worded(program: &Definition, event: &PacketEvent) -> Option<(Level, String)> {
    let (level, text) = step(program, &event.step)?;
    let anonymous =
        matches!(&event.step, Step::More(detail) if matches!(**detail, Detail::Message(_) | Detail::Group(..) | Detail::NoQueue));
    if anonymous {
        return Some((level, text));
    }
    Some((level, format!("[{}.{}] [cxt 0] {text}", event.packet, event.copy)))
}

pub fn step(program: &Definition, step: &Step) -> Option<(Level, String)> {
    let ir = &program.ir;
    let debug = |text: String| Some((Level::Debug, text));
    match step {
        Step::In(_) | Step::Extract(_) | Step::ChecksumUpdate(_) | Step::ConfigChange => None,
        Step::Out(port, bytes) => debug(format!("Transmitting packet of size {bytes} out of port {port}")),
        Step::ParserStart(id) => debug(format!("Parser '{}': start", parser(program, *id)?.name)),
        Step::ParserDone(id) => debug(format!("Parser '{}': end", parser(program, *id)?.name)),
        Step::DeparserStart(id) => debug(format!("Deparser '{}': start", deparser(program, *id)?.name)),
        Step::DeparserDone(id) => debug(format!("Deparser '{}': end", deparser(program, *id)?.name)),
        Step::Emit(id) => {
            let header = ir.layout.headers.iter().find(|h| h.id == *id && !h.metadata)?;
            debug(format!("Deparsing header '{}'", header.name))
        }
        Step::PipelineStart(id) => debug(format!("Pipeline '{}': start", pipeline(program, *id)?)),
        Step::PipelineDone(id) => debug(format!("Pipeline '{}': end", pipeline(program, *id)?)),
        Step::Hit(id, place, removals) => debug(format!(
            "Table '{}': hit with handle {}",
            table(program, *id)?.name,
            number(EntryHandle { place: *place, removals: *removals })
        )),
        Step::Miss(id) => debug(format!("Table '{}': miss", table(program, *id)?.name)),
        Step::Condition(id, holds) => {
            let note = program.notes.conditions.iter().find(|c| c.json_id == *id)?;
            let shown = note.source.as_ref().map_or(&note.name, |s| &s.fragment);
            Some((Level::Trace, format!("{}Condition \"{shown}\" ({}) is {holds}", place(note.source.as_ref()), note.name)))
        }
        Step::Action(id) => {
            let at = program.actions.iter().position(|a| a.json_id == *id)?;
            let source = program.notes.actions.get(at)?.as_ref();
            Some((Level::Trace, format!("{}Action {}", place(source), program.actions[at].name)))
        }
        Step::More(detail) => in_parser(program, detail).or_else(|| in_control(program, detail)).or_else(|| around(detail)),
    }
}

/// What a parser or a deparser does, and checksums.
fn in_parser(program: &Definition, detail: &Detail) -> Option<(Level, String)> {
    let ir = &program.ir;
    let state = |id: i64, at: u32| parser(program, id).and_then(|p| p.states.get(at as usize)).map(|s| s.name.as_str());
    let checksum = |at: u32| ir.checksums.get(at as usize).map(|c| c.name.as_str());
    let debug = |text: String| Some((Level::Debug, text));
    match detail {
        Detail::State(id, at) => debug(format!("Parser '{}' entering state '{}'", parser(program, *id)?.name, state(*id, *at)?)),
        Detail::Extracting(header, extraction) => {
            let header = ir.layout.headers.get(*header as usize)?;
            debug(match extraction {
                Extraction::Fixed => format!("Extracting header '{}'", header.name),
                Extraction::Variable => format!("Extracting variable-sized header '{}'", header.name),
                Extraction::Stack(id) => format!("Extracting to header stack {id}, next header is {}", header.id),
                Extraction::UnionStack(id) => format!("Extracting to header union stack {id}, next header is {}", header.id),
            })
        }
        Detail::Set(set, value) => {
            let said = program.notes.sets.get(*set as usize)?;
            debug(format!("Parser set: {said}{value}{}", if said.ends_with('(') { ")" } else { "" }))
        }
        Detail::Method(at, true) => debug(format!("Executing method {}", program.notes.methods.get(*at as usize)?)),
        Detail::Method(at, false) => Some((Level::Trace, format!("Action {}", program.notes.methods.get(*at as usize)?))),
        Detail::Advancing(bytes) => debug(format!("Advancing by {bytes} bytes")),
        Detail::NoBytes(Extraction::Variable, bits) => {
            Some((Level::Error, format!("VL field bitwidth {bits} needs to be a multiple of 8")))
        }
        Detail::NoBytes(_, bits) => Some((Level::Error, format!("advance bits amount {bits} must be a multiple of 8"))),
        Detail::NoSelect(id, at) => debug(format!("Parser state '{}' has no switch, going to default next state", state(*id, *at)?)),
        Detail::Key(id, at, key) => debug(format!("Parser state '{}': key is {}", state(*id, *at)?, hex(key))),
        Detail::Parsed(bytes) => Some((Level::Trace, format!("Bytes parsed: {bytes}"))),
        Detail::ParserError(code) => {
            let name = ir.error_names.iter().find(|(c, _)| c == code).map_or_else(|| code.to_string(), |(_, name)| name.clone());
            Some((Level::Error, format!("Exception while parsing: {name}")))
        }
        Detail::Skipped(at, skip) => {
            let why = match skip {
                Skip::Update => "update because condition not met",
                Skip::Verification => "verification because condition not met",
                Skip::Invalid => "verification because target field invalid",
            };
            Some((Level::Trace, format!("Skipping checksum '{}' {why}", checksum(*at)?)))
        }
        Detail::Compared(at, computed, actual) => {
            debug(format!("Checksum '{}': computed {computed:#x} - actual {actual:#x}", checksum(*at)?))
        }
        Detail::Verified(at, right) => {
            debug(format!("Verified checksum '{}': {}", checksum(*at)?, if *right { "passed" } else { "failed" }))
        }
        Detail::Incorrect(at) => Some((Level::Error, format!("Checksum '{}' is not correct", checksum(*at)?))),
        Detail::Updating(at) => debug(format!("Updating checksum '{}'", checksum(*at)?)),
        _ => None,
    }
}

/// What tables and actions do.
fn in_control(program: &Definition, detail: &Detail) -> Option<(Level, String)> {
    let debug = |text: String| Some((Level::Debug, text));
    let trace = |text: String| Some((Level::Trace, text));
    match detail {
        Detail::Applying(t) => trace(format!("Applying table '{}'", program.tables.get(*t as usize)?.name)),
        Detail::Lookup(t, key) => {
            let info = program.tables.get(*t as usize)?;
            let mut text = "Looking up key:\n".to_string();
            for (value, field) in key.iter().zip(&info.key) {
                let _ = writeln!(text, "* {}{}", column(info, field), hex(&value.to_be_bytes(field.width)));
            }
            debug(text)
        }
        Detail::Found(t, handle, entry, members) => debug(dump(program, program.tables.get(*t as usize)?, *handle, (entry, members))),
        Detail::Chosen { member, group } => debug(format!("Choosing member {member} from group {group}")),
        Detail::Runs(call) => debug(format!("Action entry is {}", action(program, call.as_deref()))),
        Detail::Primitive(at) => {
            let source = program.notes.primitives.get(*at as usize)?.as_ref();
            trace(format!("{}Primitive {}", place(source), source.map_or("(no source info)", |s| &s.fragment)))
        }
        Detail::Exit => debug("Packet is marked for exit, interrupting pipeline".to_string()),
        Detail::Random { low, high, value } => trace(format!("random(lo={low}, hi={high}) = {value}")),
        Detail::Hash { base, size, value } => trace(format!("hash(base={base}, max={size}) = {value}")),
        Detail::Metering(meter, at) => debug(format!("Executing meter {}[{at}]", program.meters.get(*meter as usize)?.name)),
        Detail::Cell(kind, array, at, value) => {
            let name = array_of(program, *kind, *array)?.0;
            trace(match kind {
                ArrayKind::Counter => format!("Updated counter '{name}' at index {at}"),
                ArrayKind::Meter => format!("Updated meter '{name}' at index {at}, assigning dest field the color result {value}"),
                ArrayKind::RegisterRead => format!("Read register '{name}' at index {at} read value {value}"),
                ArrayKind::RegisterWrite => format!("Wrote register '{name}' at index {at} with value {value}"),
            })
        }
        Detail::NoCell(kind, array, at) => {
            let (name, size) = array_of(program, *kind, *array)?;
            let (tried, outcome) = match kind {
                ArrayKind::Counter => ("update counter", "No counters were updated."),
                ArrayKind::Meter => ("update meter", "No meters were updated, and neither was dest field."),
                ArrayKind::RegisterRead => ("read register", "Dest field was not updated."),
                ArrayKind::RegisterWrite => ("write register", "No register array elements were updated."),
            };
            let text = format!("Attempted to {tried} '{name}' with size {size} at out-of-bounds index {at}.  {outcome}");
            Some((Level::Error, text))
        }
        Detail::Message(text) => Some((Level::Info, text.clone())),
        _ => None,
    }
}

/// What the switch does around the program.
fn around(detail: &Detail) -> Option<(Level, String)> {
    let gress = |gress: &Gress| match gress {
        Gress::Ingress => "ingress",
        Gress::Egress => "egress",
    };
    let text = match detail {
        Detail::Processing(port) => format!("Processing packet received on port {port}"),
        Detail::Cloning(at) => format!("Cloning packet at {}", gress(at)),
        Detail::CloneToGroup(group) => format!("Cloning packet to MGID {group}"),
        Detail::CloneToPort(port) => format!("Cloning packet to egress port {port}"),
        Detail::Group(group, None) => {
            return Some((Level::Warn, format!("Replication requested for mgid {group}, which is not known to the PRE")));
        }
        Detail::Group(group, Some(copies)) => format!("number of packets replicated : {copies} for MGID: {group}"),
        Detail::Multicast => "Multicast requested for packet".to_string(),
        Detail::Replicating(port) => format!("Replicating packet on port {port}"),
        Detail::Resubmitting => "Resubmitting packet".to_string(),
        Detail::Recirculating => "Recirculating packet".to_string(),
        Detail::EgressPort(port) => format!("Egress port is {port}"),
        Detail::Dropping(at) => format!("Dropping packet at the end of {}", gress(at)),
        Detail::NoQueue => return Some((Level::Error, "Priority out of range, dropping packet".to_string())),
        Detail::Enqueuing { port, priority, ahead } => {
            return Some((Level::Trace, format!("Enqueuing packet at port {port}, priority {priority}, behind {ahead} others")));
        }
        Detail::Dequeued { port, waited } => {
            return Some((Level::Trace, format!("Dequeuing packet at port {port} after {} us", waited / 1000)));
        }
        Detail::Lost(why) => format!("Dropping packet: {why}"),
        _ => return None,
    };
    Some((Level::Debug, text))
}

pub fn parser(program: &Definition, id: i64) -> Option<&Parser> {
    let ingress = program.ir.psa.as_ref().map(|psa| &psa.parser);
    std::iter::once(&program.ir.parser).chain(ingress).find(|p| p.id == id)
}

fn deparser(program: &Definition, id: i64) -> Option<&Deparser> {
    let ingress = program.ir.psa.as_ref().map(|psa| &psa.deparser);
    std::iter::once(&program.ir.deparser).chain(ingress).find(|d| d.id == id)
}

fn pipeline(program: &Definition, id: i64) -> Option<&'static str> {
    let at = program.ir.pipeline_ids.iter().position(|p| *p == id)?;
    ["ingress", "egress"].get(at).copied()
}

fn table(program: &Definition, id: i64) -> Option<&TableInfo> {
    program.tables.iter().find(|t| t.json_id == id)
}

/// Name and size of an array.
pub fn array_of(program: &Definition, kind: ArrayKind, at: u32) -> Option<(&str, usize)> {
    let at = at as usize;
    match kind {
        ArrayKind::Counter => program.counters.get(at).map(|c| (c.name.as_str(), c.size)),
        ArrayKind::Meter => program.meters.get(at).map(|m| (m.name.as_str(), m.size)),
        ArrayKind::RegisterRead | ArrayKind::RegisterWrite => program.registers.get(at).map(|r| (r.name.as_str(), r.size)),
    }
}

/// File and line, as before the words of a step.
fn place(source: Option<&Source>) -> String {
    source.map_or_else(String::new, |s| format!("{}({}) ", s.file, s.line))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The name of a key's field, in its column.
fn column(info: &TableInfo, field: &KeyInfo) -> String {
    if field.name.is_empty() {
        return String::new();
    }
    let width = info.key.iter().map(|k| k.name.len()).fold(NAME_COLUMN, usize::max);
    format!("{:width$}: ", field.name)
}

/// An entry's handle as BMv2 numbers it (match_units.cpp): how often its place was used before, and the place.
pub fn number(handle: EntryHandle) -> u32 {
    u32::from(handle.removals) << 24 | handle.place
}

/// An entry of a table, on several lines.
fn dump(program: &Definition, info: &TableInfo, handle: EntryHandle, (entry, members): (&TableEntry, &[(u32, ActionCall)])) -> String {
    let mut text = format!("Dumping entry {}\nMatch key:\n", number(handle));
    for (field, key) in info.key.iter().zip(&entry.key) {
        let _ = writeln!(text, "* {}{}", column(info, field), matched(field, key));
    }
    if info.needs_priority {
        // As the program's own entries have them: a small number wins.
        let _ = writeln!(text, "Priority: {}", i32::MAX - entry.priority);
    }
    match &entry.action {
        TableAction::Call(call) => {
            let _ = writeln!(text, "Action entry: {}", action(program, Some(call)));
        }
        TableAction::Member(member) => {
            let _ = writeln!(text, "Index: member({member})");
            for (_, call) in members {
                let _ = writeln!(text, "Action entry: {}", action(program, Some(call)));
            }
        }
        TableAction::Group(group) => {
            let _ = writeln!(text, "Index: group({group})\nGroup members:");
            for (member, call) in members {
                let _ = writeln!(text, "  mbr {member}: {}", action(program, Some(call)));
            }
        }
        TableAction::OneShot(calls) => {
            for (call, weight) in calls {
                let _ = writeln!(text, "Action entry (weight {weight}): {}", action(program, Some(call)));
            }
        }
    }
    text
}

/// What a field of an entry matches.
fn matched(field: &KeyInfo, key: &KeyMatch) -> String {
    let width = field.width;
    let bytes = |value: &Value| hex(&value.to_be_bytes(width));
    let (kind, text) = match (field.kind, key) {
        (MatchKind::Exact, KeyMatch::Exact(value)) => ("EXACT", bytes(value)),
        (MatchKind::Valid, KeyMatch::Valid(valid)) => ("VALID", format!("{:02x}", u8::from(*valid))),
        (MatchKind::Valid, KeyMatch::Exact(value)) => ("VALID", bytes(value)),
        (MatchKind::Lpm, KeyMatch::Lpm { value, prefix_len }) => ("LPM", format!("{}/{prefix_len}", bytes(value))),
        (MatchKind::Lpm, KeyMatch::Exact(value)) => ("LPM", format!("{}/{width}", bytes(value))),
        (MatchKind::Lpm, _) => ("LPM", format!("{}/0", bytes(&Value::from(0_u64)))),
        (MatchKind::Range, KeyMatch::Range { low, high }) => ("RANGE", format!("{} -> {}", bytes(low), bytes(high))),
        (MatchKind::Range, KeyMatch::Exact(value)) => ("RANGE", format!("{0} -> {0}", bytes(value))),
        (MatchKind::Range, _) => ("RANGE", format!("{} -> {}", bytes(&Value::from(0_u64)), bytes(&Value::ones(width)))),
        (_, KeyMatch::Ternary { value, mask }) => ("TERNARY", format!("{} &&& {}", bytes(value), bytes(mask))),
        (_, KeyMatch::Lpm { value, prefix_len }) => {
            ("TERNARY", format!("{} &&& {}", bytes(value), bytes(&prefix_mask(width, *prefix_len))))
        }
        (_, KeyMatch::Exact(value)) => ("TERNARY", format!("{} &&& {}", bytes(value), bytes(&Value::ones(width)))),
        (_, _) => ("TERNARY", format!("{0} &&& {0}", bytes(&Value::from(0_u64)))),
    };
    format!("{kind:KIND_COLUMN$}{text}")
}

/// An action and its arguments, as BMv2 dumps them.
fn action(program: &Definition, call: Option<&ActionCall>) -> String {
    let Some(call) = call else { return "NULL".to_string() };
    let mut text = format!("{} - ", program.actions.get(call.action.index()).map_or("?", |a| &a.name));
    for value in &call.args {
        let digits = hex(value.as_bytes());
        let digits = digits.trim_start_matches('0');
        let _ = write!(text, "{},", if digits.is_empty() { "0" } else { digits });
    }
    text
}
