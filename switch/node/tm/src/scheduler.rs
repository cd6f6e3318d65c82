//! Which of a port's priority queues sends next: strict priority, and the two orders of [RFC 9332 sec 4.2.2] in which the lowest queue does
//! not starve.

use std::num::NonZeroU32;

use crate::Nanos;

/// Of two queues that wait, which goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scheduler {
    /// The queue of the highest priority.
    #[default]
    Strict,
    /// Weighted round robin: while queue 0 and another one wait, the others together send so many bytes for each byte of queue 0: w in the
    /// ratio w:1 of [RFC 9332 sec 2.5.2.1]. Among the others, the highest priority goes first.
    Weighted(NonZeroU32),
    /// A packet counts as having waited this much longer for each step of its priority, and of the first packets of the queues the one
    /// that waited longest goes: the time-shifted FIFO, in which no queue starves.
    TimeShifted(Nanos),
}

/// A scheduler at work.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Order {
    Strict,
    Weighted(Credit),
    TimeShifted(Nanos),
}

impl From<Scheduler> for Order {
    fn from(scheduler: Scheduler) -> Self {
        match scheduler {
            Scheduler::Strict => Order::Strict,
            Scheduler::Weighted(weight) => Order::Weighted(Credit::new(weight)),
            Scheduler::TimeShifted(shift) => Order::TimeShifted(shift),
        }
    }
}

/// The longest frame that the weighted order expects (Ethernet's without FCS).
const MTU_BYTES: i64 = 1514;

/// The account of [`Scheduler::Weighted`], in bytes of queue 0. Only packets that were chosen while both sides waited change it, and each when it is on
/// the link: a packet that egress drops used none [RFC 9332 sec A.1].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Credit {
    weight: i64,
    /// Above 0: it is queue 0's turn.
    bytes: i64,
    /// By which each byte of the packet last chosen changes the account.
    per_byte: i64,
}

impl Credit {
    fn new(weight: NonZeroU32) -> Self {
        let mut credit = Credit { weight: weight.get().into(), bytes: 0, per_byte: 0 };
        credit.reset();
        credit
    }

    /// When the link was idle, the others may send `weight` full packets before queue 0.
    pub(crate) fn reset(&mut self) {
        self.bytes = (1 - self.weight) * MTU_BYTES;
    }

    /// Whether queue 0 goes next, while it and another one wait.
    pub(crate) fn is_due(&self) -> bool {
        self.bytes > 0
    }

    /// A packet was chosen. contended: queue 0 and another one had packets.
    pub(crate) fn choose(&mut self, priority: usize, contended: bool) {
        self.per_byte = match (contended, priority) {
            (false, _) => 0,
            (true, 0) => -self.weight,
            (true, _) => 1,
        };
    }

    /// The packet last chosen is on the link.
    pub(crate) fn sent(&mut self, bytes: u32) {
        self.bytes += self.per_byte * i64::from(bytes);
    }
}
