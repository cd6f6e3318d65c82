//! An algorithm's timers: few, by name.

use crate::Nanos;

/// Pending timers in no order; there are a handful at most.
#[derive(Debug, Default)]
pub(crate) struct Timers(Vec<(Nanos, String)>);

impl Timers {
    /// Replaces a pending timer of the same name.
    pub(crate) fn set(&mut self, name: String, at: Nanos) {
        match self.0.iter_mut().find(|(_, known)| *known == name) {
            Some(timer) => timer.0 = at,
            None => self.0.push((at, name)),
        }
    }

    pub(crate) fn cancel(&mut self, name: &str) {
        self.0.retain(|(_, known)| known != name);
    }

    pub(crate) fn next(&self) -> Option<Nanos> {
        self.0.iter().map(|(at, _)| *at).min()
    }

    /// Takes the earliest that is due, of several the first by name.
    pub(crate) fn take_due(&mut self, now: Nanos) -> Option<String> {
        let due = self.0.iter().enumerate().filter(|(_, (at, _))| *at <= now).min_by(|a, b| a.1.cmp(b.1))?.0;
        Some(self.0.swap_remove(due).1)
    }
}
