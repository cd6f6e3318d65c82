//! Packets' steps as data: what happened, where in the source, which values were read and changed ([`crate::Observing::Values`]). The
//! object of a step is described in docs/why.md.

use serde_json::{json, Map, Value as Json};

use crate::control::{ActionCall, KeyMatch, TableAction, TableEntry};
use crate::definition::{Definition, Source};
use crate::drop_cause::DropCause;
use crate::exec::values::Place;
use crate::info::{Gress, MatchKind, TableInfo};
use crate::observe::{ArrayKind, Candidates, Change, Detail, PacketEvent, Skip, Step};
use crate::wording::{array_of, number, parser};
use crate::{Nanos, Value};

/// The steps of packets, in order.
pub fn explained(program: &Definition, events: &[PacketEvent]) -> Vec<Json> {
    let mut story = Story { program, places: program.places(), steps: Vec::new(), copies: Vec::new() };
    for event in events {
        story.tell(event);
    }
    story.steps.into_iter().map(Json::Object).collect()
}

/// What is known of a packet or a copy of it.
struct Telling {
    name: (u64, u64),
    part: &'static str,
    now: Nanos,
    /// Its last step, and its last `select`.
    last: Option<usize>,
    select: Option<usize>,
    /// It is in a table that the compiler made of statements: nobody can choose among its actions.
    made: bool,
    /// The action that it runs, by its place in the program.
    action: Option<usize>,
    holds: Option<Json>,
}

struct Story<'a> {
    program: &'a Definition,
    places: Vec<Place>,
    steps: Vec<Map<String, Json>>,
    copies: Vec<Telling>,
}

impl Story<'_> {
    fn telling(&mut self, event: &PacketEvent) -> usize {
        let name = (event.packet, event.copy);
        if let Some(at) = self.copies.iter().rposition(|c| c.name == name) {
            return at;
        }
        let telling = Telling { name, part: "switch", now: 0, last: None, select: None, made: false, action: None, holds: None };
        self.copies.push(telling);
        self.copies.len() - 1
    }

    /// A new step.
    fn push(&mut self, of: usize, kind: &str, more: Json) {
        let telling = &mut self.copies[of];
        let mut step = Map::new();
        step.insert("packet".to_string(), json!(telling.name.0));
        step.insert("copy".to_string(), json!(telling.name.1));
        step.insert("time_ns".to_string(), json!(telling.now));
        step.insert("part".to_string(), json!(telling.part));
        step.insert("kind".to_string(), json!(kind));
        if let Some(holds) = telling.holds.take() {
            step.insert("begins".to_string(), holds);
        }
        if let Json::Object(more) = more {
            step.extend(more.into_iter().filter(|(_, value)| !value.is_null()));
        }
        telling.last = Some(self.steps.len());
        self.steps.push(step);
    }

    /// Adds to the last step of a packet.
    fn add(&mut self, of: usize, key: &str, value: Json) {
        let Some(last) = self.copies[of].last else { return };
        match (self.steps[last].get_mut(key), value) {
            (Some(Json::Array(known)), Json::Array(more)) => known.extend(more),
            (_, value) => drop(self.steps[last].insert(key.to_string(), value)),
        }
    }

    fn say(&mut self, of: usize, event: &PacketEvent) {
        if let Some((_, text)) = crate::wording::step(self.program, &event.step) {
            self.push(of, "switch", json!({ "text": text }));
        }
    }

    fn tell(&mut self, event: &PacketEvent) {
        let of = self.telling(event);
        match &event.step {
            Step::In(port) => self.push(of, "received", json!({ "port": port })),
            Step::Out(port, bytes) => {
                self.copies[of].part = "switch";
                self.push(of, "sent", json!({ "port": port, "bytes": bytes }));
            }
            Step::ParserStart(_) => self.begin(of, "parser"),
            Step::ParserDone(_) => {
                self.next_state(of, "accept");
                self.copies[of].part = "switch";
            }
            Step::DeparserStart(_) => self.begin(of, "deparser"),
            Step::DeparserDone(_) => self.copies[of].part = "switch",
            Step::PipelineStart(id) => {
                let egress = self.program.ir.pipeline_ids[Gress::Egress as usize] == *id;
                self.begin(of, if egress { "egress" } else { "ingress" });
            }
            Step::PipelineDone(_) => self.copies[of].part = "switch",
            Step::Emit(id) => {
                let header = self.program.ir.layout.headers.iter().find(|h| h.id == *id && !h.metadata);
                let name = header.map(|h| h.name.clone());
                self.push(of, "emit", json!({ "header": name }));
            }
            Step::Condition(id, holds) => {
                let note = self.program.notes.conditions.iter().find(|c| c.json_id == *id);
                let source = note.and_then(|note| note.source.as_ref()).map(place);
                self.push(of, "condition", json!({ "name": note.map(|n| &n.name), "source": source, "holds": holds }));
            }
            Step::Hit(..) if !self.copies[of].made => self.add(of, "hit", json!(true)),
            Step::Miss(_) if !self.copies[of].made => self.add(of, "hit", json!(false)),
            Step::Action(id) => self.action(of, *id),
            Step::More(detail) => self.detail(of, event, detail),
            Step::Extract(_) | Step::ChecksumUpdate(_) | Step::ConfigChange | Step::Hit(..) | Step::Miss(_) => {}
        }
    }

    fn begin(&mut self, of: usize, part: &'static str) {
        let telling = &mut self.copies[of];
        (telling.part, telling.made, telling.action) = (part, false, None);
    }

    fn next_state(&mut self, of: usize, name: &str) {
        if let Some(select) = self.copies[of].select.take() {
            self.steps[select].insert("next".to_string(), json!(name));
        }
    }

    fn action(&mut self, of: usize, id: i64) {
        let at = self.program.actions.iter().position(|a| a.json_id == id);
        self.copies[of].action = at;
        if self.copies[of].made {
            return;
        }
        if let Some(info) = at.and_then(|at| self.program.actions.get(at)) {
            let source = at.and_then(|at| self.program.notes.actions.get(at)?.as_ref()).map(place);
            self.push(of, "action", json!({ "name": info.name, "source": source }));
        }
    }

    fn detail(&mut self, of: usize, event: &PacketEvent, detail: &Detail) {
        let done = self.of_values(of, detail) || self.of_parser(of, detail) || self.of_tables(of, detail) || self.of_switch(of, detail);
        if !done {
            self.say(of, event);
        }
    }

    fn of_values(&mut self, of: usize, detail: &Detail) -> bool {
        let program = self.program;
        match detail {
            Detail::Now(now) => self.copies[of].now = *now,
            Detail::Holds(values) => {
                let values = values.iter().filter_map(|(at, value)| {
                    let place = self.places.get(*at as usize)?;
                    Some(json!({ "name": place.name, "width": place.width, "value": value.to_string() }))
                });
                self.copies[of].holds = Some(values.collect());
            }
            Detail::Changed(changes) => {
                let changes = changes.iter().filter_map(|change| self.change(change)).collect();
                // What the switch sets between its blocks is no doing of the last statement.
                let last = self.copies[of].last.and_then(|last| self.steps[last].get("part")).and_then(Json::as_str);
                if last != Some(self.copies[of].part) {
                    self.push(of, "switch", json!({ "text": "the switch sets metadata" }));
                }
                self.add(of, "changes", changes);
            }
            Detail::Reads(at, values) => {
                let params = self.copies[of].action.and_then(|at| program.actions.get(at)).map(|info| &info.params);
                let reads = program.notes.reads.get(*at as usize).into_iter().flatten().zip(values);
                let reads = reads.map(|(read, value)| {
                    let param = read.param.and_then(|at| params?.get(at)).map(|p| p.name.as_str());
                    json!({ "name": param.unwrap_or(&read.name), "width": read.width, "value": value.to_string() })
                });
                self.add(of, "reads", reads.collect());
            }
            Detail::Was(kind, array, at, was) => {
                let cell = json!([{ "kind": cell_kind(*kind), "name": self.array(*kind, *array), "index": at, "before": was }]);
                self.add(of, "cells", cell);
            }
            Detail::Cell(kind, array, at, value) => self.cell(of, *kind, *array, *at, value),
            _ => return false,
        }
        true
    }

    fn change(&self, change: &Change) -> Option<Json> {
        let place = self.places.get(change.place as usize)?;
        let before = change.before.as_ref().map(Value::to_string);
        Some(json!({ "name": place.name, "width": place.width, "before": before, "after": change.after.to_string() }))
    }

    fn array(&self, kind: ArrayKind, array: u32) -> &str {
        array_of(self.program, kind, array).map_or("", |(name, _)| name)
    }

    fn cell(&mut self, of: usize, kind: ArrayKind, array: u32, at: u64, value: &str) {
        let name = self.array(kind, array).to_string();
        // What a counter has then is what it had before and this packet.
        let after = (kind != ArrayKind::Counter).then_some(value);
        let known = self.copies[of].last.and_then(|last| self.steps[last].get_mut("cells")?.as_array_mut()?.last_mut()?.as_object_mut());
        match known.filter(|cell| cell.get("name") == Some(&json!(name)) && cell.get("index") == Some(&json!(at))) {
            Some(cell) => {
                if let Some(after) = after {
                    cell.insert("after".to_string(), json!(after));
                }
            }
            None => self.add(of, "cells", json!([{ "kind": cell_kind(kind), "name": name, "index": at, "after": after }])),
        }
    }

    fn of_parser(&mut self, of: usize, detail: &Detail) -> bool {
        let program = self.program;
        let state = |id: i64, at: u32| parser(program, id).and_then(|p| p.states.get(at as usize)).map(|s| s.name.clone());
        match detail {
            Detail::State(id, at) => {
                let name = state(*id, *at).unwrap_or_default();
                self.next_state(of, &name);
                self.push(of, "state", json!({ "parser": parser(program, *id).map(|p| &p.name), "state": name }));
            }
            Detail::Extracting(header, _) => {
                let name = program.ir.layout.headers.get(*header as usize).map(|h| &h.name);
                self.push(of, "extract", json!({ "header": name }));
            }
            Detail::Set(set, value) => {
                let name = program.notes.sets.get(*set as usize).and_then(|said| said.split('\'').nth(1));
                self.push(of, "set", json!({ "name": name, "value": value }));
            }
            Detail::Key(id, at, key) => {
                let key = key.iter().fold("0x".to_string(), |text, byte| format!("{text}{byte:02x}"));
                self.push(of, "select", json!({ "state": state(*id, *at), "key": key }));
                self.copies[of].select = self.copies[of].last;
            }
            Detail::Compared(at, computed, actual) => {
                let (name, right) = (self.checksum(*at), computed == actual);
                let values =
                    json!({ "name": name, "computed": format!("{computed:#x}"), "actual": format!("{actual:#x}"), "right": right });
                self.push(of, "checksum", values);
            }
            Detail::Updating(at) => {
                let name = self.checksum(*at);
                self.push(of, "checksum", json!({ "name": name, "updated": true }));
            }
            Detail::Skipped(at, skip) => {
                let why = match skip {
                    Skip::Update | Skip::Verification => "its condition does not hold",
                    Skip::Invalid => "its header is not valid",
                };
                let name = self.checksum(*at);
                self.push(of, "checksum", json!({ "name": name, "skipped": why }));
            }
            Detail::ParserError(_) => {
                self.copies[of].select = None;
                return false;
            }
            Detail::Method(..) | Detail::NoSelect(..) | Detail::Parsed(_) | Detail::Verified(..) | Detail::Incorrect(_) => {}
            _ => return false,
        }
        true
    }

    fn checksum(&self, at: u32) -> Option<String> {
        self.program.ir.checksums.get(at as usize).map(|c| c.name.clone())
    }

    fn of_tables(&mut self, of: usize, detail: &Detail) -> bool {
        let program = self.program;
        match detail {
            Detail::Applying(t) => self.copies[of].made = program.tables.get(*t as usize).is_some_and(TableInfo::is_made),
            _ if self.copies[of].made && matches!(detail, Detail::Lookup(..) | Detail::Tried(..) | Detail::Found(..) | Detail::Runs(_)) => {
            }
            Detail::Lookup(t, values) => {
                let Some(info) = program.tables.get(*t as usize) else { return true };
                let key = info.key.iter().zip(values).map(|(field, value)| {
                    json!({ "name": field.name, "match": kind(field.kind), "width": field.width, "value": value.to_string() })
                });
                let source = program.notes.tables.get(*t as usize).and_then(Option::as_ref).map(place);
                self.push(of, "table", json!({ "name": info.name, "source": source, "key": key.collect::<Vec<_>>() }));
            }
            Detail::Tried(t, tried) => {
                if let Some(info) = program.tables.get(*t as usize) {
                    self.add(of, "candidates", candidates(program, info, tried));
                }
            }
            Detail::Runs(call) => {
                let call = call.as_deref().map(|call| run(program, call));
                self.add(of, "runs", json!(call));
            }
            Detail::Found(t, handle, found, members) => {
                let Some(info) = program.tables.get(*t as usize) else { return true };
                let members: Vec<Json> = members.iter().map(|(m, call)| json!({ "member": m, "runs": run(program, call) })).collect();
                let mut found = entry(program, info, found);
                if let (Json::Object(found), false) = (&mut found, members.is_empty()) {
                    found.insert("members".to_string(), json!(members));
                }
                self.add(of, "entry", found);
                self.add(of, "handle", json!(number(*handle)));
            }
            Detail::Chosen { member, group } => self.add(of, "chosen", json!({ "member": member, "group": group })),
            Detail::Primitive(at) => {
                let source = program.notes.primitives.get(*at as usize).and_then(Option::as_ref);
                let in_action = !self.copies[of].made && self.copies[of].action.is_some();
                self.push(of, "statement", json!({ "source": source.map(place), "in_action": in_action }));
            }
            Detail::Random { low, high, value } => self.note(of, format!("random number from {low} to {high}: {value}")),
            Detail::Hash { base, size, value } => self.note(of, format!("hash from {base}, of {size} values: {value}")),
            Detail::NoCell(kind, array, at) => {
                let Some((name, size)) = array_of(program, *kind, *array) else { return true };
                self.note(of, format!("{name} has no cell {at}, its size is {size}: nothing is read or written"));
            }
            Detail::Metering(..) => {}
            Detail::Message(text) => self.note(of, text.clone()),
            _ => return false,
        }
        true
    }

    fn note(&mut self, of: usize, text: String) {
        self.add(of, "notes", json!([text]));
    }

    fn of_switch(&mut self, of: usize, detail: &Detail) -> bool {
        match detail {
            Detail::Processing(_) if self.copies[of].name.1 == 0 => {}
            Detail::Enqueuing { port, priority, ahead } => {
                self.push(of, "queue", json!({ "port": port, "priority": priority, "ahead": ahead }));
            }
            Detail::Dequeued { port, waited } => {
                self.push(of, "dequeue", json!({ "port": port, "waited_ns": waited }));
            }
            Detail::EgressPort(_) => {}
            Detail::Dropping(gress) => {
                let at = if *gress == Gress::Ingress { "ingress" } else { "egress" };
                self.push(of, "drop", json!({ "cause": at }));
            }
            Detail::Lost(why) => self.push(of, "drop", json!({ "cause": "switch", "text": why })),
            Detail::Gone(cause) => {
                let told = self.copies[of].last.is_some_and(|last| self.steps[last].get("kind") == Some(&json!("drop")));
                if !told {
                    self.push(of, "drop", json!({ "cause": cause_of(*cause) }));
                }
            }
            _ => return false,
        }
        true
    }
}

fn cell_kind(kind: ArrayKind) -> &'static str {
    match kind {
        ArrayKind::Counter => "counter",
        ArrayKind::Meter => "meter",
        ArrayKind::RegisterRead | ArrayKind::RegisterWrite => "register",
    }
}

fn cause_of(cause: DropCause) -> &'static str {
    match cause {
        DropCause::Ingress => "ingress",
        DropCause::Egress => "egress",
        DropCause::MulticastEmpty => "multicast group",
        DropCause::Priority => "priority",
        DropCause::Loop => "loop",
        DropCause::Assert => "assert",
        DropCause::Limit => "limit",
        DropCause::Swapped => "reconfigured",
    }
}

fn kind(kind: MatchKind) -> &'static str {
    match kind {
        MatchKind::Exact => "exact",
        MatchKind::Lpm => "lpm",
        MatchKind::Ternary => "ternary",
        MatchKind::Range => "range",
        MatchKind::Optional => "optional",
        MatchKind::Valid => "valid",
    }
}

fn place(source: &Source) -> Json {
    json!({ "file": source.file, "line": source.line, "column": source.column, "text": source.fragment })
}

/// An action and its arguments by name.
fn run(program: &Definition, call: &ActionCall) -> Json {
    let Some(info) = program.actions.get(call.action.index()) else { return Json::Null };
    let arguments = info.params.iter().zip(&call.args);
    let arguments = arguments.map(|(p, value)| json!({ "name": p.name, "width": p.width, "value": value.to_string() }));
    json!({ "name": info.name, "arguments": arguments.collect::<Vec<_>>() })
}

/// An entry: what each field of the key must be, its priority, and its action.
fn entry(program: &Definition, info: &TableInfo, entry: &TableEntry) -> Json {
    let mut found = Map::new();
    found.insert("match".to_string(), info.key.iter().zip(&entry.key).map(|(field, m)| matched(field.width, m)).collect());
    if info.needs_priority {
        found.insert("priority".to_string(), json!(entry.priority));
    }
    let (key, action) = match &entry.action {
        TableAction::Call(call) => ("runs", run(program, call)),
        TableAction::Member(member) => ("member", json!(member)),
        TableAction::Group(group) => ("group", json!(group)),
        TableAction::OneShot(calls) => {
            let calls = calls.iter().map(|(call, weight)| json!({ "weight": weight, "runs": run(program, call) }));
            ("choices", calls.collect())
        }
    };
    found.insert(key.to_string(), action);
    Json::Object(found)
}

fn matched(width: u32, m: &KeyMatch) -> Json {
    match m {
        KeyMatch::Exact(value) => json!({ "value": value.to_string() }),
        KeyMatch::Lpm { value, prefix_len } => json!({ "value": value.to_string(), "prefix": prefix_len }),
        KeyMatch::Ternary { value, mask } if *mask == Value::ones(width) => json!({ "value": value.to_string() }),
        KeyMatch::Ternary { value, mask } => json!({ "value": value.to_string(), "mask": mask.to_string() }),
        KeyMatch::Range { low, high } => json!({ "low": low.to_string(), "high": high.to_string() }),
        KeyMatch::Valid(valid) => json!({ "valid": valid }),
        KeyMatch::Any => json!({ "any": true }),
    }
}

fn candidates(program: &Definition, info: &TableInfo, tried: &Candidates) -> Json {
    let shown = tried.shown.iter().map(|candidate| {
        json!({
            "number": candidate.number,
            "handle": number(candidate.handle),
            "hit": candidate.hit,
            "fields": candidate.fields,
            "entry": entry(program, info, &candidate.entry),
        })
    });
    json!({
        "entries": tried.entries,
        "compared": tried.compared,
        "matching": tried.matching,
        "shown": shown.collect::<Vec<_>>(),
    })
}
