//! The actions of a table's entries. Entries share equal ones: a table of routes has few next hops. Where all differ a packet would
//! fetch one more line of memory, so that an entry has a word of its own, with the arguments if they are few bits: a port and
//! a MAC address fit.

use std::hash::{BuildHasher, BuildHasherDefault};

use rustc_hash::FxHasher;

use super::shards::Shards;
use super::{coded, copy, roomy, Call, Target, INLINE};
use crate::control::TableAction;
use crate::definition::Definition;
use crate::info::ActionInfo;
use crate::ActionId;

/// What an entry runs: the number of a [`Call`] and its arguments, or else a row.
#[derive(Debug, Clone, Copy, Default)]
pub struct Word(u64);

/// A word's lowest bit says that it holds arguments; the next ones are the call's number.
const HOLDS: u64 = 1;
const NUMBER_BITS: u32 = 6;
/// Where a word's arguments or its row begin.
const ARGUMENTS: u32 = 1 + NUMBER_BITS;

impl Word {
    fn row(at: u32) -> Word {
        Word(u64::from(at) << ARGUMENTS)
    }

    /// Arguments of these widths for a call, if all fit.
    fn holding(number: usize, widths: &[u8; INLINE], arguments: &[u64]) -> Option<Word> {
        let bits: u32 = widths.iter().map(|w| u32::from(*w)).sum();
        if bits > u64::BITS - ARGUMENTS || number >= 1 << NUMBER_BITS {
            return None;
        }
        let (mut word, mut at) = (HOLDS | (number as u64) << 1, ARGUMENTS);
        for (v, width) in arguments.iter().zip(widths) {
            word |= v << at;
            at += u32::from(*width);
        }
        Some(Word(word))
    }
}

/// Bits of each parameter that has any, for [`Word::holding`]: one of more than 64 bits fits no word, nor do the parameters of an action
/// that has many.
pub fn widths(action: &ActionInfo) -> [u8; INLINE] {
    let limbs = action.params.iter().filter(|p| p.width > 0);
    let mut widths = [0; INLINE];
    for (at, param) in limbs.enumerate() {
        match widths.get_mut(at) {
            Some(width) => *width = u8::try_from(param.width).unwrap_or(u8::MAX),
            None => return [u8::MAX; INLINE],
        }
    }
    widths
}

#[derive(Debug)]
struct Row {
    /// As written.
    coded: Box<[u8]>,
    /// What is run, where [`Call`] does not say.
    slow: Option<Box<Target>>,
    /// Entries.
    uses: u32,
}

/// See the module.
#[derive(Debug)]
pub struct Actions {
    rows: Vec<Row>,
    /// Beside `rows`, `stride` words each: an index into `calls`, and parameters.
    words: Vec<u64>,
    stride: usize,
    calls: Vec<Call>,
    by_coded: Shards<u32>,
    free: Vec<u32>,
}

fn hash(coded: &[u8]) -> u64 {
    BuildHasherDefault::<FxHasher>::default().hash_one(coded)
}

impl Actions {
    /// For a table with these actions, with room for so many entries.
    pub fn new(program: &Definition, actions: &[ActionId], room: usize) -> Actions {
        let limbs = |a: &ActionId| {
            let params = program.actions[a.index()].params.iter();
            params.map(|p| p.width.div_ceil(64) as usize).sum::<usize>()
        };
        let most = actions.iter().map(limbs).filter(|n| *n <= INLINE).max();
        let stride = 1 + most.unwrap_or(0);
        Actions { rows: roomy(room), words: roomy(room * stride), ..Actions::with(stride) }
    }

    fn with(stride: usize) -> Actions {
        Actions { rows: Vec::new(), words: Vec::new(), stride, calls: Vec::new(), by_coded: Shards::default(), free: Vec::new() }
    }

    /// What an entry runs; its parameters are written into `slots`.
    #[inline]
    pub fn call(&self, word: Word, slots: &mut [u64]) -> Call {
        if word.0 & HOLDS == 0 {
            let at = (word.0 >> ARGUMENTS) as usize * self.stride;
            let words = &self.words[at..at + self.stride];
            let call = self.calls[words[0] as usize];
            copy(&words[1..=call.count as usize], slots);
            return call;
        }
        let number = word.0 >> 1 & ((1 << NUMBER_BITS) - 1);
        let call = self.calls[number as usize];
        let mut rest = word.0 >> ARGUMENTS;
        for (slot, width) in slots.iter_mut().zip(&call.widths[..call.count as usize]) {
            *slot = rest & ((1 << width) - 1);
            rest >>= width;
        }
        call
    }

    /// What is run, where [`Call`] does not say.
    pub fn slow(&self, at: u32) -> Option<&Target> {
        self.rows[at as usize].slow.as_deref()
    }

    /// As written.
    pub fn get(&self, at: u32) -> TableAction {
        coded::action_of(&self.rows[at as usize].coded)
    }

    /// The row of an action for one more entry of table `t`, and the entry's word; `target` is the action, ready to run.
    pub fn take(&mut self, program: &Definition, t: usize, a: &TableAction, target: Target) -> (u32, Word) {
        let (call, params) = Call::new(program, t, Some(&target), true);
        let all = |c: &Call| (c.code.start, c.code.end, c.next, c.widths, c.count, c.slow);
        let number = self.calls.iter().position(|c| all(c) == all(&call));
        let number = number.unwrap_or_else(|| {
            self.calls.push(call);
            self.calls.len() - 1
        });
        let fits = Word::holding(number, &call.widths, params).filter(|_| !call.slow);
        let coded = coded::action(a);
        let hash_of = hash(&coded);
        let same = |at: &u32| self.rows[*at as usize].coded == coded;
        if let Some(&at) = self.by_coded.find(hash_of, same) {
            self.rows[at as usize].uses += 1;
            return (at, fits.unwrap_or(Word::row(at)));
        }
        let mut words = [0; INLINE + 1];
        words[0] = number as u64;
        words[1..=params.len()].copy_from_slice(params);
        let row = Row { coded, slow: call.slow.then(|| Box::new(target)), uses: 1 };
        let stride = self.stride;
        let at = match self.free.pop() {
            Some(at) => {
                self.rows[at as usize] = row;
                let first = at as usize * stride;
                self.words[first..first + stride].copy_from_slice(&words[..stride]);
                at
            }
            None => {
                self.rows.push(row);
                self.words.extend_from_slice(&words[..stride]);
                (self.rows.len() - 1) as u32
            }
        };
        let rows = &self.rows;
        self.by_coded.insert(hash_of, at, |at| hash(&rows[*at as usize].coded));
        (at, fits.unwrap_or(Word::row(at)))
    }

    /// An entry has the action no more.
    pub fn give(&mut self, at: u32) {
        let row = &mut self.rows[at as usize];
        row.uses -= 1;
        if row.uses > 0 {
            return;
        }
        row.slow = None;
        let coded = std::mem::take(&mut row.coded);
        self.by_coded.remove(hash(&coded), |other| *other == at);
        self.free.push(at);
    }

    /// Takes all actions away; each with the number of its entries.
    pub fn clear(&mut self) -> Vec<(TableAction, u32)> {
        let old = std::mem::replace(self, Actions::with(self.stride));
        let used = old.rows.iter().filter(|row| row.uses > 0);
        used.map(|row| (coded::action_of(&row.coded), row.uses)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Actions with one call of so many parameters, so wide; and a row with their values.
    fn one(number: usize, widths: &[u8], values: &[u64]) -> (Actions, [u8; INLINE]) {
        let mut all = [0; INLINE];
        all[..widths.len()].copy_from_slice(widths);
        let mut actions = Actions::with(1 + INLINE);
        actions.calls = vec![Call::default(); number];
        actions.calls.push(Call { next: 7, widths: all, count: values.len() as u32, ..Call::default() });
        actions.words = vec![0; 1 + INLINE];
        actions.words[0] = number as u64;
        actions.words[1..=values.len()].copy_from_slice(values);
        (actions, all)
    }

    proptest! {
        #[test]
        fn a_word_gives_back_its_arguments_and_leaves_other_slots(
            given in prop::collection::vec((1..=64_u32, any::<u64>()), 0..=INLINE),
            number in 0..80_usize,
        ) {
            let widths: Vec<u8> = given.iter().map(|(width, _)| *width as u8).collect();
            let values: Vec<u64> = given.iter().map(|(width, v)| v >> (64 - width)).collect();
            let (actions, all) = one(number, &widths, &values);
            let held = Word::holding(number, &all, &values);
            let bits: u32 = given.iter().map(|(width, _)| width).sum();
            prop_assert_eq!(held.is_some(), bits <= 57 && number < 64);
            for word in held.into_iter().chain([Word::row(0)]) {
                let mut slots = vec![u64::MAX; INLINE + 2];
                let call = actions.call(word, &mut slots);
                prop_assert_eq!((call.next, call.count as usize), (7, values.len()));
                prop_assert_eq!(&slots[..values.len()], &values[..]);
                prop_assert!(slots[values.len()..].iter().all(|slot| *slot == u64::MAX));
            }
        }
    }

    #[test]
    fn a_port_and_a_mac_address_fit_a_word() {
        assert!(Word::holding(63, &[9, 48, 0, 0], &[511, (1 << 48) - 1]).is_some());
    }
}
