//! The actions of a table's entries. Entries share equal ones: a table of routes has few next hops.

use std::hash::{BuildHasher, BuildHasherDefault};

use hashbrown::HashTable;
use rustc_hash::FxHasher;

use super::{coded, Call, Target, INLINE};
use crate::control::TableAction;
use crate::program::Program;
use crate::ActionId;

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
    by_coded: HashTable<u32>,
    free: Vec<u32>,
}

fn hash(coded: &[u8]) -> u64 {
    BuildHasherDefault::<FxHasher>::default().hash_one(coded)
}

impl Actions {
    /// For a table with these actions.
    pub fn new(program: &Program, actions: &[ActionId]) -> Actions {
        let limbs = |a: &ActionId| {
            let params = program.actions[a.index()].params.iter();
            params.map(|p| p.width.div_ceil(64) as usize).sum::<usize>()
        };
        let most = actions.iter().map(limbs).filter(|n| *n <= INLINE).max();
        Actions::with(1 + most.unwrap_or(0))
    }

    fn with(stride: usize) -> Actions {
        Actions {
            rows: Vec::new(),
            words: Vec::new(),
            stride,
            calls: Vec::new(),
            by_coded: HashTable::new(),
            free: Vec::new(),
        }
    }

    /// What is run, and its parameters.
    #[inline]
    pub fn call(&self, at: u32) -> (Call, &[u64]) {
        let at = at as usize * self.stride;
        let words = &self.words[at..at + self.stride];
        let call = self.calls[words[0] as usize];
        (call, &words[1..=call.count as usize])
    }

    /// What is run, where [`Call`] does not say.
    pub fn slow(&self, at: u32) -> Option<&Target> {
        self.rows[at as usize].slow.as_deref()
    }

    /// As written.
    pub fn get(&self, at: u32) -> TableAction {
        coded::action_of(&self.rows[at as usize].coded)
    }

    /// The action for one more entry of table `t`; `target` is it, ready to run.
    pub fn take(&mut self, program: &Program, t: usize, a: &TableAction, target: Target) -> u32 {
        let coded = coded::action(a);
        let hash_of = hash(&coded);
        let same = |at: &u32| self.rows[*at as usize].coded == coded;
        if let Some(&at) = self.by_coded.find(hash_of, same) {
            self.rows[at as usize].uses += 1;
            return at;
        }
        let (call, params) = Call::new(program, t, Some(&target), true);
        let all = |c: &Call| (c.code.start, c.code.end, c.next, c.count, c.slow);
        let number = self.calls.iter().position(|c| all(c) == all(&call));
        let number = number.unwrap_or_else(|| {
            self.calls.push(call);
            self.calls.len() - 1
        });
        let mut words = [0; INLINE + 1];
        words[0] = number as u64;
        words[1..=params.len()].copy_from_slice(params);
        let row = Row {
            coded,
            slow: call.slow.then(|| Box::new(target)),
            uses: 1,
        };
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
        self.by_coded
            .insert_unique(hash_of, at, |at| hash(&rows[*at as usize].coded));
        at
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
        if let Ok(found) = self.by_coded.find_entry(hash(&coded), |other| *other == at) {
            found.remove();
        }
        self.free.push(at);
    }

    /// Takes all actions away; each with the number of its entries.
    pub fn clear(&mut self) -> Vec<(TableAction, u32)> {
        let old = std::mem::replace(self, Actions::with(self.stride));
        let used = old.rows.iter().filter(|row| row.uses > 0);
        used.map(|row| (coded::action_of(&row.coded), row.uses))
            .collect()
    }
}
