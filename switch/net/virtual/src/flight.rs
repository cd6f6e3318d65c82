//! TCP's one-way delays: segments carry no instant of sending, so both ends of a flow, which are in one process, share the list of those
//! under way.

use std::cell::RefCell;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::Nanos;

/// Segments under way; when there are more, those before are forgotten.
const MOST: usize = 1 << 20;

/// By sequence number, the instant at which a segment with data last left its sender.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flight(Rc<RefCell<FxHashMap<u32, Nanos>>>);

impl Flight {
    pub(crate) fn left(&self, sequence: u32, now: Nanos) {
        let mut under_way = self.0.borrow_mut();
        if under_way.len() >= MOST {
            under_way.clear();
        }
        under_way.insert(sequence, now);
    }

    /// How long a segment took that has arrived, since its last sending. `None`: it arrived before.
    pub(crate) fn arrived(&self, sequence: u32, now: Nanos) -> Option<Nanos> {
        Some(now - self.0.borrow_mut().remove(&sequence)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_sending_counts_and_a_copy_does_not() {
        let (sender, receiver) = (Flight::default(), Flight::default());
        assert_eq!(receiver.arrived(1, 5), None);
        let receiver = sender.clone();
        sender.left(1, 10);
        sender.left(1001, 20);
        sender.left(1, 50);
        assert_eq!((receiver.arrived(1001, 60), receiver.arrived(1, 80), receiver.arrived(1, 90)), (Some(40), Some(30), None));
    }
}
