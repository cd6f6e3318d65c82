//! A table's entries beside the key that it looked up: which match, and where the others differ.

use crate::control::{EntryHandle, KeyMatch, TableEntry};
use crate::definition::Definition;
use crate::ir::KeyPart;
use crate::observe::{Candidate, Candidates};
use crate::table::{prefix_mask, Table};
use crate::Value;

/// Entries compared at most.
const COMPARED: usize = 1 << 17;
/// Entries shown at most.
const SHOWN: usize = 8;

/// The entries of table `t` beside a key; `hit`: the place of the entry that the table found.
pub fn beside(program: &Definition, table: &Table, t: usize, key: &[Value], hit: Option<u32>) -> Candidates {
    let parts = &program.ir.tables[t].key;
    let mut found = Candidates { entries: table.len, compared: 0, matching: 0, shown: Vec::new() };
    if parts.is_empty() {
        return found;
    }
    let mut best: Vec<(Nearness, u32, Candidate)> = Vec::new();
    let places = (0_u32..).zip(&table.entries).filter(|(_, entry)| entry.is_some()).map(|(at, _)| at);
    // The entry that was hit is compared in any case.
    let others = places.filter(|at| Some(*at) != hit).take(COMPARED);
    for at in hit.into_iter().chain(others) {
        let Some(entry) = table.written(at) else { continue };
        found.compared += 1;
        let compared = entry.key.iter().zip(key).zip(parts).map(|((m, v), part)| compare(m, v, part));
        let (fields, common): (Vec<bool>, Vec<u32>) = compared.unzip();
        let matches = fields.iter().all(|&field| field);
        found.matching += usize::from(matches);
        let candidate = Candidate {
            number: 0,
            handle: EntryHandle { place: at, removals: table.removals(at) },
            common: common.iter().sum(),
            hit: hit == Some(at),
            fields,
            entry,
        };
        let nearness = nearness(&candidate);
        let before = best.partition_point(|(other, place, _)| (*other, std::cmp::Reverse(*place)) >= (nearness, std::cmp::Reverse(at)));
        best.insert(before, (nearness, at, candidate));
        best.truncate(SHOWN);
    }
    found.shown = best.into_iter().map(|(_, at, candidate)| Candidate { number: number(table, at), ..candidate }).collect();
    found
}

/// Hit; matching, with its priority and the bits that it asks for; fields that match, and leading bits that are alike.
type Nearness = (bool, bool, i32, u32, usize, u32);

fn nearness(candidate: &Candidate) -> Nearness {
    let matches = candidate.fields.iter().all(|&field| field);
    let (priority, bits) = if matches { (candidate.entry.priority, prefix_bits(&candidate.entry)) } else { (0, 0) };
    let fields = candidate.fields.iter().filter(|&&field| field).count();
    (candidate.hit, matches, priority, bits, fields, candidate.common)
}

fn prefix_bits(entry: &TableEntry) -> u32 {
    let bits = |m: &KeyMatch| if let KeyMatch::Lpm { prefix_len, .. } = m { *prefix_len } else { 0 };
    entry.key.iter().map(bits).sum()
}

/// The place of an entry in the order of insertion, from 1.
fn number(table: &Table, at: u32) -> usize {
    let sequence = |at: u32| table.entries.get(at as usize).and_then(|e| e.as_ref()).map(|e| e.sequence);
    let own = sequence(at);
    1 + table.entries.iter().flatten().filter(|entry| Some(entry.sequence) < own).count()
}

/// Whether a field of an entry matches, and how many leading bits of it are alike.
fn compare(m: &KeyMatch, value: &Value, part: &KeyPart) -> (bool, u32) {
    let width = part.field.width;
    let bytes = |v: &Value| v.to_be_bytes(width);
    let fixed = part.mask.as_ref().map_or_else(|| Value::ones(width), |mask| Value::from_limbs(mask));
    let masked = |wanted: &Value, mask: &Value| {
        let differ = bytes(value).into_iter().zip(bytes(wanted)).zip(bytes(mask)).zip(bytes(&fixed));
        let differ: Vec<u8> = differ.map(|(((v, w), m), f)| (v ^ w) & m & f).collect();
        let common = Value::from_be_bytes(&differ);
        (common.is_zero(), width.saturating_sub(common.bit_len()))
    };
    match m {
        KeyMatch::Any => (true, 0),
        KeyMatch::Valid(wanted) => (value.is_zero() != *wanted, 0),
        KeyMatch::Exact(wanted) => masked(wanted, &Value::ones(width)),
        KeyMatch::Lpm { value: wanted, prefix_len } => masked(wanted, &prefix_mask(width, *prefix_len)),
        KeyMatch::Ternary { value: wanted, mask } => masked(wanted, mask),
        KeyMatch::Range { low, high } => ((bytes(low)..=bytes(high)).contains(&bytes(value)), 0),
    }
}
