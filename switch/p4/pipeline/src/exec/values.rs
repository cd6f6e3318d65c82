//! What packets hold before and after each step ([`crate::Observing::Values`]).
//!
//! A packet's slots are compared with a copy of them at its next step, so that whatever changed them is seen: statements, the parser, a
//! table's meter, the switch itself.

use std::collections::BTreeMap;

use crate::ir::{Layout, Slot};
use crate::observe::{Change, Detail};
use crate::{Nanos, Value};

use super::packet::Packet;

/// Packets whose values are known at a time; those seen first go first.
const KEPT: usize = 256;

/// A piece of what a packet holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// `header.field`; `header.$valid$` is its validity, `stack.nextIndex` the next element of a stack.
    pub name: String,
    /// In bits; 0 of a variable-length field.
    pub width: u32,
    slot: Slot,
    limbs: usize,
    /// The validity of the header that it is a field of.
    valid: Option<Slot>,
    varbit: Option<usize>,
}

/// The places of a packet, in the order of the program's headers.
pub fn places(layout: &Layout) -> Vec<Place> {
    let plain = |name: String, slot| Place { name, width: 1, slot, limbs: 1, valid: None, varbit: None };
    let mut places = Vec::new();
    for header in &layout.headers {
        if !header.metadata {
            places.push(plain(format!("{}.$valid$", header.name), header.valid));
        }
        let valid = (!header.metadata).then_some(header.valid);
        for field in layout.types[header.ty].fields.iter().filter(|f| !f.name.starts_with("_padding")) {
            let varbit = if field.varbit { header.varbit } else { None };
            let (slot, limbs) = (header.base + field.rel, if field.varbit { 0 } else { field.width.div_ceil(64) as usize });
            places.push(Place { name: format!("{}.{}", header.name, field.name), width: field.width, slot, limbs, valid, varbit });
        }
    }
    let stacks = layout.stacks.iter().map(|stack| (stack.name.as_str(), stack.next));
    places.extend(stacks.map(|(name, next)| Place { width: 32, ..plain(format!("{name}.nextIndex"), next) }));
    places
}

/// What a packet held at its last step.
#[derive(Debug)]
struct Held {
    slots: Vec<u64>,
    varbits: Vec<Vec<u8>>,
    now: Nanos,
}

/// What the packets under way held at their last steps.
#[derive(Debug)]
pub struct Values {
    places: Vec<Place>,
    /// Slots of a packet; those behind are parameters and temporaries.
    end: usize,
    held: BTreeMap<(u64, u64), Held>,
}

impl Values {
    pub fn new(layout: &Layout) -> Values {
        Values { places: places(layout), end: layout.packet_end as usize, held: BTreeMap::new() }
    }

    /// Tells what has changed since a packet's last step.
    pub fn compare(&mut self, pkt: &Packet, now: Nanos, mut tell: impl FnMut(Detail)) {
        let Values { places, end, held } = self;
        let slots = &pkt.slots[..*end];
        let varbits = || pkt.varbits.iter().map(|v| v.bytes.clone()).collect();
        let key = (pkt.name.packet, pkt.name.copy);
        let Some(before) = held.get_mut(&key) else {
            tell(Detail::Now(now));
            let values = (0..).zip(places.iter()).filter(|(_, place)| place.has_value(slots));
            let values = values.map(|(at, place)| (at, place.value(slots, |v| &pkt.varbits[v].bytes)));
            tell(Detail::Holds(values.filter(|(_, value)| !value.is_zero()).collect()));
            while held.len() >= KEPT {
                held.pop_first();
            }
            held.insert(key, Held { slots: slots.to_vec(), varbits: varbits(), now });
            return;
        };
        let same = before.slots == slots && before.varbits.iter().zip(&pkt.varbits).all(|(was, is)| *was == is.bytes);
        if !same {
            let changes: Vec<Change> = (0..).zip(places.iter()).filter_map(|(at, place)| place.change(at, before, pkt)).collect();
            if !changes.is_empty() {
                tell(Detail::Changed(changes));
            }
            before.slots.copy_from_slice(slots);
            before.varbits = varbits();
        }
        if before.now != now {
            before.now = now;
            tell(Detail::Now(now));
        }
    }

    /// A packet has ended.
    pub fn forget(&mut self, pkt: &Packet) {
        self.held.remove(&(pkt.name.packet, pkt.name.copy));
    }
}

impl Place {
    /// It is of metadata, or of a valid header.
    fn has_value(&self, slots: &[u64]) -> bool {
        self.valid.is_none_or(|valid| slots[valid as usize] != 0)
    }

    fn value<'p>(&self, slots: &[u64], varbit: impl Fn(usize) -> &'p Vec<u8>) -> Value {
        match self.varbit {
            Some(at) => Value::from_be_bytes(varbit(at)),
            None => Value::from_limbs(&slots[self.slot as usize..self.slot as usize + self.limbs]),
        }
    }

    fn change(&self, at: u32, before: &Held, pkt: &Packet) -> Option<Change> {
        if !self.has_value(&pkt.slots) {
            return None;
        }
        let after = self.value(&pkt.slots, |v| &pkt.varbits[v].bytes);
        if !self.has_value(&before.slots) {
            return Some(Change { place: at, before: None, after });
        }
        let was = self.value(&before.slots, |v| &before.varbits[v]);
        (was != after).then_some(Change { place: at, before: Some(was), after })
    }
}
