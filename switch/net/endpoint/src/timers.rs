//! An algorithm's timers: few, by name.

use crate::algorithm::Fault;
use crate::Nanos;

/// Timers that may come due at one instant: more is an algorithm that sets its timer to now for ever.
const MAX_AT_ONCE: u32 = 10_000;

/// Pending timers in no order; there are a handful at most.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    pending: Vec<(Nanos, String)>,
    /// The last instant at which one was taken, and how many then.
    taken: (Nanos, u32),
}

impl Timers {
    /// Replaces a pending timer of the same name.
    pub(crate) fn set(&mut self, name: String, at: Nanos) {
        match self.pending.iter_mut().find(|(_, known)| *known == name) {
            Some(timer) => timer.0 = at,
            None => self.pending.push((at, name)),
        }
    }

    pub(crate) fn cancel(&mut self, name: &str) {
        self.pending.retain(|(_, known)| known != name);
    }

    pub(crate) fn next(&self) -> Option<Nanos> {
        self.pending.iter().map(|(at, _)| *at).min()
    }

    /// Takes the earliest that is due, of several the first by name.
    ///
    /// # Errors
    /// An algorithm whose timers keep time from going on.
    pub(crate) fn take_due(&mut self, now: Nanos) -> Result<Option<String>, Fault> {
        let due = self.pending.iter().enumerate().filter(|(_, (at, _))| *at <= now).min_by(|a, b| a.1.cmp(b.1));
        let Some((due, _)) = due else { return Ok(None) };
        self.taken = (now, if self.taken.0 == now { self.taken.1 + 1 } else { 1 });
        let name = self.pending.swap_remove(due).1;
        if self.taken.1 > MAX_AT_ONCE {
            return Err(format!("timer {name:?} is set to an instant that has come, again and again: time cannot go on").into());
        }
        Ok(Some(name))
    }
}
