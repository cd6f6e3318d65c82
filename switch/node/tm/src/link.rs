//! A link's time line in exact rational arithmetic.

use std::sync::Arc;

use fairlane_units::SECOND;

use crate::trace::{Follower, Trace};
use crate::Nanos;

/// An instant `ns + frac / rate` nanoseconds, where `frac < rate`; the rate is the owner's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Exact {
    ns: Nanos,
    frac: u64,
}

/// The transmitter of one port: when it gets free, and for how long it has been busy in all.
#[derive(Debug, Clone)]
pub struct Link {
    /// Bits per second; `None` transmits in no time.
    rate_bps: Option<u64>,
    free: Exact,
    /// Where the transmission last dequeued begins, if it is a transmission at all.
    start: Exact,
    busy: Exact,
    /// Serves in place of the rate.
    follower: Option<Box<Follower>>,
}

impl Link {
    /// A free link of that many bits per second; `None` transmits in no time.
    pub fn new(rate_bps: Option<u64>) -> Self {
        Link { rate_bps, free: Exact::default(), start: Exact::default(), busy: Exact::default(), follower: None }
    }

    /// From `now` on, what is not in service yet is sent as a trace says that began at `origin`. [`Link::set_rate`] ends that.
    pub fn follow(&mut self, now: Nanos, trace: Arc<Trace>, origin: Nanos) {
        let free = self.free_at().max(now).max(origin);
        self.follower = Some(Box::new(Follower::new(trace, origin, free)));
    }

    /// The instant at which a packet that arrived at `arrival` is served, if no other comes before it.
    pub fn free_for(&self, arrival: Nanos) -> Nanos {
        match &self.follower {
            None => self.free_at().max(arrival),
            Some(follower) => follower.free_for(arrival),
        }
    }

    /// The first whole nanosecond at which the link is free.
    pub fn free_at(&self) -> Nanos {
        if let Some(follower) = &self.follower {
            return follower.free_at();
        }
        self.free.ns.saturating_add((self.free.frac > 0) as u64)
    }

    /// Marks that the next transmission begins when a packet that arrived at `arrival` meets a free link.
    pub fn begin(&mut self, arrival: Nanos) {
        if let Some(follower) = &mut self.follower {
            follower.begin(arrival);
        }
        self.start = if arrival > self.free.ns { Exact { ns: arrival, frac: 0 } } else { self.free };
    }

    /// Occupies the link for `bits` from the instant last given to [`Link::begin`], and returns the first whole nanosecond
    /// at which the last bit has left.
    pub fn transmit(&mut self, bits: u64) -> Nanos {
        if let Some(follower) = &mut self.follower {
            let (finish, busy) = follower.transmit(bits);
            self.busy = Exact { ns: self.busy.ns.saturating_add(busy), frac: 0 };
            return finish;
        }
        let Some(rate) = self.rate_bps else {
            self.free = self.start;
            return self.free_at();
        };
        // duration [ns] = bits * 1e9 / rate, as quotient and remainder
        let (quotient, remainder) = match bits.checked_mul(SECOND) {
            Some(scaled) => (scaled / rate, scaled % rate),
            None => {
                let scaled = u128::from(bits) * u128::from(SECOND);
                let rate = u128::from(rate);
                (u64::try_from(scaled / rate).unwrap_or(u64::MAX), (scaled % rate) as u64)
            }
        };
        self.free = advance(self.start, quotient, remainder, rate);
        self.busy = advance(self.busy, quotient, remainder, rate);
        self.start = self.free;
        self.free_at()
    }

    /// Changes the rate. What is in service ends when it would have; the fraction of a nanosecond carried is rounded down
    /// once to the new denominator.
    pub fn set_rate(&mut self, rate_bps: Option<u64>) {
        if let Some(follower) = self.follower.take() {
            self.free = Exact { ns: follower.free_at(), frac: 0 };
            self.start = self.free;
        }
        let (from, to) = (self.rate_bps, rate_bps);
        self.rate_bps = rate_bps;
        for exact in [&mut self.free, &mut self.start, &mut self.busy] {
            exact.frac = match (from, to) {
                (Some(from), Some(to)) => (u128::from(exact.frac) * u128::from(to) / u128::from(from)) as u64,
                _ => 0,
            };
        }
    }

    /// Nanoseconds the link has been busy up to `now`: a transmission that goes on after `now` counts with its past part.
    pub fn busy_until(&self, now: Nanos) -> Nanos {
        if self.follower.is_some() {
            // What an opportunity stands for lies before it, and a rate may pause: the time is counted with the transmission's beginning.
            return self.busy.ns;
        }
        if self.free.ns < now {
            return self.busy.ns;
        }
        // Exact before it is rounded down: while the link stays busy, this grows by as much as `now` does. Both fractions are of one rate.
        let borrow = u64::from(self.busy.frac < self.free.frac);
        (self.busy.ns + now).saturating_sub(self.free.ns + borrow)
    }
}

fn advance(from: Exact, quotient: u64, remainder: u64, rate: u64) -> Exact {
    let frac = u128::from(from.frac) + u128::from(remainder);
    let carry = frac >= u128::from(rate);
    let frac = if carry { frac - u128::from(rate) } else { frac } as u64;
    Exact { ns: from.ns.saturating_add(quotient).saturating_add(carry as u64), frac }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirds_of_a_nanosecond_add_up() {
        let mut link = Link::new(Some(3_000_000_000));
        link.begin(10);
        assert_eq!(link.transmit(1), 11); // 10 1/3, rounded up
        link.begin(0);
        assert_eq!(link.transmit(1), 11); // 10 2/3
        link.begin(0);
        assert_eq!(link.transmit(1), 11); // 11 exactly
        assert_eq!(link.busy_until(100), 1);
    }

    #[test]
    fn a_link_that_stays_busy_is_so_all_the_time() {
        let mut link = Link::new(Some(3_000_000_000));
        link.begin(10);
        link.transmit(1);
        link.begin(20);
        (0..1_000).for_each(|_| _ = link.transmit(100)); // 33 1/3 ns each
        for now in 21..30_000 {
            assert_eq!(link.busy_until(now + 1) - link.busy_until(now), 1, "{now}");
        }
    }

    #[test]
    fn an_idle_gap_is_not_credited() {
        let mut link = Link::new(Some(1_000_000_000));
        link.begin(100);
        assert_eq!(link.transmit(50), 150);
        link.begin(1_000);
        assert_eq!(link.transmit(50), 1_050);
        assert_eq!(link.busy_until(1_020), 70);
        assert_eq!(link.busy_until(2_000), 100);
    }

    #[test]
    fn a_new_rate_holds_from_the_next_packet() {
        let mut link = Link::new(Some(1_000_000));
        link.begin(0);
        assert_eq!(link.transmit(1_000), 1_000_000);
        link.set_rate(Some(2_000_000));
        assert_eq!(link.free_at(), 1_000_000);
        link.begin(0);
        assert_eq!(link.transmit(1_000), 1_500_000);
    }

    #[test]
    fn absurd_sizes_saturate() {
        let mut link = Link::new(Some(1));
        link.begin(0);
        assert_eq!(link.transmit(u64::MAX), u64::MAX);
        assert_eq!(link.transmit(u64::MAX), u64::MAX);
    }
}
