//! Ids and aliases [P4Runtime sec 6.3]: the top byte is the kind of object, the lower 24 bits come from `@id` or from a hash of
//! the name, chosen as p4c does, so that both compilers give an object the same id.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use fairlane_syntax::annotations::find;
use fairlane_syntax::ast::Annotation;
use fairlane_syntax::{Code, Diagnostic, Diagnostics};

use crate::control_plane::ControlPlane;

/// The top byte of an id (`P4Ids.Prefix`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Prefix {
    Action = 0x01,
    Table = 0x02,
    ValueSet = 0x03,
    ControllerHeader = 0x04,
    ActionProfile = 0x11,
    Counter = 0x12,
    DirectCounter = 0x13,
    Meter = 0x14,
    DirectMeter = 0x15,
    Register = 0x16,
    Digest = 0x17,
}

/// All objects with their ids.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    /// By kind and name, both in order: probing depends on it. `None` until computed.
    ids: BTreeMap<(Prefix, String), Option<u32>>,
    taken: BTreeSet<u32>,
    names: HashSet<String>,
    /// How many names end in these components.
    suffixes: HashMap<String, u32>,
}

impl Symbols {
    pub fn collect(plane: &ControlPlane, diagnostics: &mut Diagnostics) -> Symbols {
        let mut symbols = Symbols::default();
        let mut add = |prefix, name: &str, annotations: &[Annotation]| symbols.add(prefix, name, annotations, diagnostics);
        plane.actions.iter().for_each(|a| add(Prefix::Action, &a.name, &a.annotations));
        plane.tables.iter().for_each(|t| add(Prefix::Table, &t.name, &t.annotations));
        plane.value_sets.iter().for_each(|v| add(Prefix::ValueSet, &v.name, &v.annotations));
        plane.action_profiles.iter().for_each(|p| add(Prefix::ActionProfile, &p.name, &p.annotations));
        for counter in &plane.counters {
            let prefix = if counter.size.is_none() { Prefix::DirectCounter } else { Prefix::Counter };
            add(prefix, &counter.name, &counter.annotations);
        }
        for meter in &plane.meters {
            let prefix = if meter.size.is_none() { Prefix::DirectMeter } else { Prefix::Meter };
            add(prefix, &meter.name, &meter.annotations);
        }
        plane.registers.iter().for_each(|r| add(Prefix::Register, &r.name, &r.annotations));
        plane.digests.iter().for_each(|d| add(Prefix::Digest, &d.name, &[]));
        for header in &plane.controller_headers {
            let annotations = super::controller_annotations(plane, header);
            add(Prefix::ControllerHeader, &super::controller_type(plane, header), annotations);
        }
        symbols.compute();
        symbols
    }

    fn add(&mut self, prefix: Prefix, name: &str, annotations: &[Annotation], diagnostics: &mut Diagnostics) {
        let key = (prefix, name.to_string());
        if self.ids.contains_key(&key) {
            return;
        }
        // Objects of two kinds may share a name; it counts once.
        if self.names.insert(name.to_string()) {
            for suffix in suffixes(name) {
                *self.suffixes.entry(suffix.to_string()).or_default() += 1;
            }
        }
        let id = given(prefix, name, annotations, diagnostics);
        if let (Some(id), Some(annotation)) = (id, find(annotations, "id"))
            && !self.taken.insert(id)
        {
            let message = format!("the id 0x{id:08x} of `{name}` is given to another object too");
            diagnostics.push(Diagnostic::error(Code::DuplicateId, annotation.span, message));
        }
        self.ids.insert(key, id);
    }

    /// Gives ids to those that have none: the hash of the name, or the next number that is free. Kinds go in the order
    /// of their prefixes, names in alphabetical order.
    fn compute(&mut self) {
        for ((prefix, name), id) in &mut self.ids {
            if id.is_none() {
                let mut value = hash(name.as_bytes());
                let mut candidate = compose(*prefix, value);
                while !self.taken.insert(candidate) {
                    value = value.wrapping_add(1);
                    candidate = compose(*prefix, value);
                }
                *id = Some(candidate);
            }
        }
    }

    /// The id of an object; 0, which is no id, when there is no such object (an object left out of the control plane).
    pub fn id(&self, prefix: Prefix, name: &str) -> u32 {
        self.ids.get(&(prefix, name.to_string())).copied().flatten().unwrap_or(0)
    }

    /// The fewest last components of the name that no other name ends in.
    pub fn alias(&self, name: &str) -> String {
        let mut all: Vec<&str> = suffixes(name).collect();
        all.reverse();
        let unique = all.iter().find(|suffix| self.suffixes.get(**suffix).copied().unwrap_or(0) < 2);
        unique.copied().unwrap_or(name).to_string()
    }
}

/// `a.b.c`, `b.c`, `c`
fn suffixes(name: &str) -> impl Iterator<Item = &str> {
    std::iter::once(name).chain(name.match_indices('.').map(|(i, _)| &name[i + 1..]))
}

fn compose(prefix: Prefix, value: u32) -> u32 {
    (prefix as u32) << 24 | value & 0x00ff_ffff
}

/// The id by `@id`, with its prefix.
fn given(prefix: Prefix, name: &str, annotations: &[Annotation], diagnostics: &mut Diagnostics) -> Option<u32> {
    let annotation = find(annotations, "id")?;
    let Some(id) = annotation.integer().and_then(|id| u32::try_from(id).ok()) else {
        diagnostics.push(super::annotation_error(annotation.span, "id", "one integer of 32 bits"));
        return None;
    };
    let top = id >> 24;
    if top != 0 && top != prefix as u32 {
        let message = format!("the `@id` of `{name}` has the prefix 0x{top:02x}, its kind has 0x{:02x}", prefix as u32);
        diagnostics.push(
            Diagnostic::error(Code::WrongIdPrefix, annotation.span, message)
                .help(format!("write `@id(0x{:08x})`, or the lower 24 bits only", compose(prefix, id))),
        );
        return None;
    }
    Some(id | (prefix as u32) << 24)
}

/// Jenkins's one-at-a-time hash.
fn hash(key: &[u8]) -> u32 {
    let mut hash = 0u32;
    for byte in key {
        hash = hash.wrapping_add(u32::from(*byte));
        hash = hash.wrapping_add(hash << 10);
        hash ^= hash >> 6;
    }
    hash = hash.wrapping_add(hash << 3);
    hash ^= hash >> 11;
    hash.wrapping_add(hash << 15)
}

/// The ids of match fields, parameters or metadata: `@id`, otherwise the position from 1, or the next number that is free.
pub(super) fn fields<'a>(all: impl Iterator<Item = &'a [Annotation]> + Clone, diagnostics: &mut Diagnostics) -> Vec<u32> {
    let mut taken = BTreeSet::new();
    let mut out: Vec<Option<u32>> = Vec::new();
    for annotations in all {
        let annotation = find(annotations, "id");
        let id = annotation.and_then(Annotation::integer).and_then(|id| u32::try_from(id).ok()).filter(|id| *id != 0);
        if let (Some(annotation), None) = (annotation, id) {
            diagnostics.push(super::annotation_error(annotation.span, "id", "one integer above 0, of 32 bits"));
        }
        if let (Some(annotation), Some(id)) = (annotation, id)
            && !taken.insert(id)
        {
            let message = format!("the id {id} is given to another field too");
            diagnostics.push(Diagnostic::error(Code::DuplicateId, annotation.span, message));
        }
        out.push(id);
    }
    let mut index = 1;
    for id in &mut out {
        match id {
            Some(_) => index += 1,
            None => {
                while !taken.insert(index) {
                    index += 1;
                }
                *id = Some(index);
            }
        }
    }
    out.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids that p4c gave to objects of the tutorials' basic program and to `NoAction`; every P4Runtime user has met the last one.
    #[test]
    fn hashes_names_as_p4c_does() {
        assert_eq!(compose(Prefix::Action, hash(b"NoAction")), 21257015);
        assert_eq!(compose(Prefix::Table, hash(b"MyIngress.ipv4_lpm")), 37375156);
        assert_eq!(compose(Prefix::Action, hash(b"MyIngress.ipv4_forward")), 28792405);
        assert_eq!(compose(Prefix::Action, hash(b"MyIngress.drop")), 25652968);
    }

    #[test]
    fn an_alias_is_the_shortest_unique_suffix() {
        let mut symbols = Symbols::default();
        let mut diagnostics = Diagnostics::default();
        for name in ["d.a.c", "e.b.c", "x", "y.x", "f.g"] {
            symbols.add(Prefix::Action, name, &[], &mut diagnostics);
        }
        symbols.add(Prefix::Table, "f.g", &[], &mut diagnostics);
        let alias = |name| symbols.alias(name);
        assert_eq!([alias("d.a.c"), alias("e.b.c")], ["a.c", "b.c"]);
        assert_eq!([alias("x"), alias("y.x"), alias("f.g")], ["x", "y.x", "g"]);
    }
}
