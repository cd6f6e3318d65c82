//! Instants at which a receiver's counts are wanted as if packets arrived in a steady stream.
//!
//! A count of whole packets is off by up to one packet at each end of a window: more than a percent of a window of 82 packets. So the record of
//! a marked instant says how long ago the packet before came, and the packet after it is recorded on its own. Between the two the sum grows
//! in a straight line.

use crate::Nanos;

/// See the module.
#[derive(Debug, Clone, Copy, Default)]
pub struct Marks {
    last_arrival: Option<Nanos>,
    last_mark: Option<Nanos>,
    /// The next arrival is to be recorded.
    open: bool,
}

impl Marks {
    /// Marks an instant: the time since the packet before, for the record; `None` inside: there was none. `None`: it is marked already.
    pub fn set(&mut self, now: Nanos) -> Option<Option<Nanos>> {
        if self.last_mark.replace(now) == Some(now) {
            return None;
        }
        self.open = true;
        Some(self.last_arrival.map(|last| now.saturating_sub(last)))
    }

    /// A packet came; whether to record it.
    #[must_use]
    pub fn arrived(&mut self, now: Nanos) -> bool {
        self.last_arrival = Some(now);
        std::mem::take(&mut self.open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packet_after_a_marked_instant_is_recorded() {
        let mut marks = Marks::default();
        assert_eq!(marks.set(5), Some(None));
        assert!(marks.arrived(10));
        assert!(!marks.arrived(20));
        assert_eq!(marks.set(27), Some(Some(7)));
        assert_eq!(marks.set(27), None);
        assert!(marks.arrived(30) && !marks.arrived(31));
    }
}
