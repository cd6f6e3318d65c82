//! What packet tests reach of a program: statements, branches, parser transitions, tables' actions; as lcov, JSON and a page.
//!
//! A statement is a primitive of BMv2's JSON. What the compiler has left out (a branch whose condition is constant, an action that no
//! table has) is not there to be reached, and is not counted.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use fairlane_pipeline::{Detail, PacketEvent, Program, Source, Step};
use serde_json::json;

use crate::sources::StateLines;

/// What can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Statement,
    Branch,
    Transition,
    Action,
}

const KINDS: [(Kind, &str); 4] = [
    (Kind::Statement, "statements"),
    (Kind::Branch, "branches"),
    (Kind::Transition, "parser transitions"),
    (Kind::Action, "table actions"),
];

/// One of those: where it is in the source, its name, and the place among those of the same name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Item {
    kind: Kind,
    file: String,
    line: u64,
    name: String,
}

/// How often each piece of one or more programs was reached.
#[derive(Debug, Default)]
pub struct Coverage {
    counts: BTreeMap<Item, u64>,
}

/// Counts of one program, by number.
struct Counts<'a> {
    program: &'a Program,
    primitives: Vec<u64>,
    conditions: BTreeMap<(i64, bool), u64>,
    /// By table and place of the action.
    actions: Vec<Vec<u64>>,
    /// By parser, state and the next one.
    transitions: BTreeMap<(i64, u32, Option<u32>), u64>,
}

impl Counts<'_> {
    fn count(&mut self, steps: &[PacketEvent]) {
        let (mut table, mut from) = (None, None);
        for event in steps {
            match &event.step {
                Step::Condition(id, holds) => *self.conditions.entry((*id, *holds)).or_default() += 1,
                Step::ParserStart(_) => from = None,
                // A parser is not interrupted: the last state is of the same packet.
                Step::ParserDone(_) => self.transition(from.take(), None),
                Step::More(detail) => match &**detail {
                    Detail::State(parser, at) => {
                        self.transition(from, Some(*at));
                        from = Some((*parser, *at));
                    }
                    Detail::ParserError(_) => from = None,
                    Detail::Primitive(at) => self.primitives.get_mut(*at as usize).into_iter().for_each(|count| *count += 1),
                    Detail::Lookup(t, _) => table = Some(*t as usize),
                    Detail::Runs(Some(call)) => {
                        let found = table.and_then(|t| {
                            let place = self.program.tables().get(t)?.actions.iter().position(|a| *a == call.action)?;
                            self.actions.get_mut(t)?.get_mut(place)
                        });
                        found.into_iter().for_each(|count| *count += 1);
                    }
                    _ => {}
                },
                _ => {}
            }
        }
    }

    fn transition(&mut self, from: Option<(i64, u32)>, to: Option<u32>) {
        if let Some((parser, state)) = from {
            *self.transitions.entry((parser, state, to)).or_default() += 1;
        }
    }
}

impl Coverage {
    /// Adds what packets did in a program that notes everything.
    pub fn add(&mut self, program: &Program, steps: &[PacketEvent]) {
        let notes = program.notes();
        let mut counts = Counts {
            program,
            primitives: vec![0; notes.primitives.len()],
            conditions: BTreeMap::new(),
            actions: program.tables().iter().map(|t| vec![0; t.actions.len()]).collect(),
            transitions: BTreeMap::new(),
        };
        counts.count(steps);
        for (source, count) in notes.primitives.iter().zip(&counts.primitives) {
            if let Some(source) = source {
                self.item(Kind::Statement, Some(source), source.fragment.clone(), *count);
            }
        }
        for condition in &notes.conditions {
            let shown = condition.source.as_ref().map_or(&condition.name, |s| &s.fragment);
            for holds in [true, false] {
                let count = counts.conditions.get(&(condition.json_id, holds)).copied().unwrap_or(0);
                self.item(Kind::Branch, condition.source.as_ref(), format!("{shown} is {holds}"), count);
            }
        }
        for ((info, source), counts) in program.tables().iter().zip(&notes.tables).zip(&counts.actions).filter(|((t, _), _)| !t.is_made()) {
            for (action, count) in info.actions.iter().zip(counts) {
                let action = program.action(*action).map_or("", |a| &a.name);
                self.item(Kind::Action, source.as_ref(), format!("{}: {action}", info.name), *count);
            }
        }
        self.add_transitions(program, &counts.transitions);
    }

    fn add_transitions(&mut self, program: &Program, counts: &BTreeMap<(i64, u32, Option<u32>), u64>) {
        let lines = StateLines::of(program, Path::new(""));
        for parser in program.parsers() {
            for (at, state) in (0..).zip(&parser.states) {
                for to in &state.next {
                    let end = to.and_then(|to| parser.states.get(to as usize)).map_or("accept", |s| s.name);
                    let count = counts.get(&(parser.json_id, at, *to)).copied().unwrap_or(0);
                    let source = lines.find(state.name);
                    self.item(Kind::Transition, source.as_ref(), format!("{}: {} to {end}", parser.name, state.name), count);
                }
            }
        }
    }

    fn item(&mut self, kind: Kind, source: Option<&Source>, name: String, count: u64) {
        let (file, line) = source.map_or((String::new(), 0), |s| (s.file.clone(), s.line));
        // The same statement in several places of the JSON (an inlined control) is one: it was reached if one of them was.
        let known = self.counts.entry(Item { kind, file, line, name }).or_default();
        *known += count;
    }

    /// A line for each kind: how many there are, and how many were reached.
    pub fn summary(&self) -> String {
        let mut text = String::new();
        for (kind, name) in KINDS {
            let (reached, all) = self.reached(kind);
            let share = if all == 0 { 100.0 } else { 100.0 * reached as f64 / all as f64 };
            let _ = writeln!(text, "coverage: {reached} of {all} {name} ({share:.1} %)");
        }
        text
    }

    fn reached(&self, kind: Kind) -> (usize, usize) {
        let of: Vec<_> = self.counts.iter().filter(|(item, _)| item.kind == kind).collect();
        (of.iter().filter(|(_, count)| **count > 0).count(), of.len())
    }

    /// Lines and branches, as `geninfo` writes them: parser transitions and tables' actions are branches, too.
    pub fn lcov(&self) -> String {
        let mut files: BTreeMap<&str, Lines> = BTreeMap::new();
        for (item, &count) in self.counts.iter().filter(|(item, _)| item.line > 0) {
            let (lines, branches) = files.entry(&item.file).or_default();
            let executed = lines.entry(item.line).or_default();
            // Statements of a line run together; branches of it share its runs.
            *executed = if item.kind == Kind::Statement { (*executed).max(count) } else { *executed + count };
            if item.kind != Kind::Statement {
                branches.push((item.line, count));
            }
        }
        let mut text = "TN:\n".to_string();
        for (file, (lines, mut branches)) in files {
            let _ = writeln!(text, "SF:{file}");
            branches.sort_by_key(|(line, _)| *line);
            let (mut before, mut number) = (0, 0);
            for (line, count) in &branches {
                number = if *line == before { number + 1 } else { 0 };
                before = *line;
                let taken = if lines.get(line) == Some(&0) { "-".to_string() } else { count.to_string() };
                let _ = writeln!(text, "BRDA:{line},0,{number},{taken}");
            }
            let _ = writeln!(text, "BRF:{}\nBRH:{}", branches.len(), branches.iter().filter(|(_, count)| *count > 0).count());
            for (line, count) in &lines {
                let _ = writeln!(text, "DA:{line},{count}");
            }
            let _ = writeln!(text, "LF:{}\nLH:{}\nend_of_record", lines.len(), lines.values().filter(|count| **count > 0).count());
        }
        text
    }

    /// Every piece with its count, so that reports can be added.
    pub fn json(&self) -> String {
        let name = |kind: Kind| KINDS.iter().find(|(k, _)| *k == kind).map_or("", |(_, name)| name);
        let items = self
            .counts
            .iter()
            .map(|(item, count)| json!({"kind": name(item.kind), "file": item.file, "line": item.line, "name": item.name, "count": count}));
        format!("{:#}\n", serde_json::Value::Array(items.collect()))
    }

    /// A page: the counts, what was not reached, and the sources with the counts of their lines.
    pub fn page(&self) -> String {
        let mut text = HEAD.to_string();
        for (kind, name) in KINDS {
            let (reached, all) = self.reached(kind);
            let _ = writeln!(text, "<tr><td>{name}</td><td>{reached}</td><td>{all}</td></tr>");
        }
        text.push_str("</table>\n<h2>Not reached</h2>\n<table>\n");
        for (item, _) in self.counts.iter().filter(|(_, count)| **count == 0) {
            let kind = KINDS.iter().find(|(k, _)| *k == item.kind).map_or("", |(_, name)| name);
            let _ =
                writeln!(text, "<tr><td>{kind}</td><td>{}:{}</td><td>{}</td></tr>", escaped(&item.file), item.line, escaped(&item.name));
        }
        text.push_str("</table>\n");
        let mut files: BTreeMap<&str, BTreeMap<u64, (u64, bool)>> = BTreeMap::new();
        for (item, &count) in self.counts.iter().filter(|(item, _)| item.line > 0) {
            let line = files.entry(&item.file).or_default().entry(item.line).or_insert((0, true));
            *line = (line.0.max(count), line.1 && count > 0);
        }
        for (file, lines) in files {
            let Ok(source) = std::fs::read_to_string(file) else { continue };
            let _ = writeln!(text, "<h2>{}</h2>\n<pre>", escaped(file));
            for (number, line) in (1..).zip(source.lines()) {
                let (class, count) = match lines.get(&number) {
                    None => ("", String::new()),
                    Some((0, _)) => ("none", "0".to_string()),
                    Some((count, true)) => ("all", count.to_string()),
                    Some((count, false)) => ("part", count.to_string()),
                };
                let _ = writeln!(text, "<span class=\"{class}\">{number:5} {count:>8}  {}</span>", escaped(line));
            }
            text.push_str("</pre>\n");
        }
        text.push_str("</body></html>\n");
        text
    }
}

/// Counts of a file's lines, and of each branch with its line.
type Lines = (BTreeMap<u64, u64>, Vec<(u64, u64)>);

const HEAD: &str = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Coverage of a P4 program</title>\n<style>\n\
    body { font-family: sans-serif; margin: 2em }\ntd { padding: 0 1em 0 0; vertical-align: top }\n\
    .all { background: #dfd } .part { background: #ffd } .none { background: #fdd }\npre span { display: block }\n</style></head><body>\n\
    <h1>Coverage of a P4 program</h1>\n<p>Green: reached. Yellow: not in every way (a condition held always or never, an action or a \
    transition was not taken). Red: not reached.</p>\n<table>\n<tr><th></th><th>reached</th><th>of</th></tr>\n";

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
