//! Constants as the program is run: each value has a slot.

use std::collections::HashMap;

use crate::ir::Slot;

/// The slots of constants, by value; new ones follow the last slot.
pub struct Constants {
    by_value: HashMap<u64, Slot>,
    pub by_slot: HashMap<Slot, u64>,
    next: Slot,
    pub added: Vec<u64>,
}

impl Constants {
    pub fn new(known: &HashMap<u64, Slot>, slots: usize) -> Constants {
        Constants {
            by_value: known.clone(),
            by_slot: known.iter().map(|(v, s)| (*s, *v)).collect(),
            next: slots as Slot,
            added: Vec::new(),
        }
    }

    pub fn slot(&mut self, v: u64) -> Slot {
        if let Some(&slot) = self.by_value.get(&v) {
            return slot;
        }
        let slot = self.next;
        self.next += 1;
        self.by_value.insert(v, slot);
        self.by_slot.insert(slot, v);
        self.added.push(v);
        slot
    }
}
