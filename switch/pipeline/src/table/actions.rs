//! The actions of a table's entries. Entries share equal ones: a table of routes has few next hops.

use std::hash::{BuildHasher, BuildHasherDefault};

use hashbrown::HashTable;
use rustc_hash::FxHasher;

use super::{coded, Hot, Target};
use crate::control::TableAction;
use crate::program::Program;

#[derive(Debug)]
struct Row {
    /// As written.
    coded: Box<[u8]>,
    /// What is run, where [`Hot`] does not say.
    slow: Option<Box<Target>>,
    /// Entries.
    uses: u32,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Actions {
    rows: Vec<Row>,
    /// Beside `rows`, a cache line each.
    hot: Vec<Hot>,
    by_coded: HashTable<u32>,
    free: Vec<u32>,
}

fn hash(coded: &[u8]) -> u64 {
    BuildHasherDefault::<FxHasher>::default().hash_one(coded)
}

impl Actions {
    #[inline]
    pub fn hot(&self, at: u32) -> &Hot {
        &self.hot[at as usize]
    }

    /// What is run, where [`Hot`] does not say.
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
        let hot = Hot::new(program, t, Some(&target), true);
        let row = Row {
            coded,
            slow: hot.slow.then(|| Box::new(target)),
            uses: 1,
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.rows[at as usize] = row;
                self.hot[at as usize] = hot;
                at
            }
            None => {
                self.rows.push(row);
                self.hot.push(hot);
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

    /// All actions with the number of their entries.
    pub fn uses(&self) -> impl Iterator<Item = (TableAction, u32)> + '_ {
        let used = self.rows.iter().filter(|row| row.uses > 0);
        used.map(|row| (coded::action_of(&row.coded), row.uses))
    }
}
