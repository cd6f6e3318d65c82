//! TCP's one-way delays: segments carry no instant of sending, so the receiving end of a flow has a list of those under way.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::Nanos;

/// Segments under way; when there are more, those before are forgotten.
const MOST: usize = 1 << 20;

/// Segments that have left, and what the receiving end knows of them.
#[derive(Debug, Default)]
struct UnderWay {
    /// Since the last arrival, in their order.
    left: VecDeque<(u32, Nanos)>,
    /// By sequence number, the instant at which a segment with data last left its sender.
    known: FxHashMap<u32, Nanos>,
}

/// Both ends of a flow share it where they are in one partition; otherwise the sender's is a [`Ledger`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Flight {
    under_way: Rc<RefCell<UnderWay>>,
    /// The flow's number, and where it is told what leaves.
    ledger: Option<(u32, Ledger)>,
}

/// What has left senders whose receivers are in other partitions: flow, sequence number, instant.
pub(crate) type Ledger = Rc<RefCell<Vec<(u32, u32, Nanos)>>>;

impl Flight {
    /// From now on the receiving end is elsewhere.
    pub(crate) fn tell(&mut self, flow: u32, ledger: Ledger) {
        self.ledger = Some((flow, ledger));
    }

    pub(crate) fn left(&self, sequence: u32, now: Nanos) {
        if let Some((flow, ledger)) = &self.ledger {
            return ledger.borrow_mut().push((*flow, sequence, now));
        }
        let left = &mut self.under_way.borrow_mut().left;
        if left.len() >= MOST {
            left.pop_front();
        }
        left.push_back((sequence, now));
    }

    /// How long a segment took that has arrived, since its last sending before this instant. `None`: it arrived before.
    pub(crate) fn arrived(&self, sequence: u32, now: Nanos) -> Option<Nanos> {
        let UnderWay { left, known } = &mut *self.under_way.borrow_mut();
        while let Some(&(sequence, time)) = left.front().filter(|(_, time)| *time < now) {
            left.pop_front();
            if known.len() >= MOST {
                known.clear();
            }
            known.insert(sequence, time);
        }
        Some(now - known.remove(&sequence)?)
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

    #[test]
    fn what_leaves_at_the_instant_of_an_arrival_is_later_than_that() {
        let sender = Flight::default();
        sender.left(1, 10);
        sender.left(1, 60);
        assert_eq!((sender.arrived(1, 60), sender.arrived(1, 100)), (Some(50), Some(40)));
    }
}
