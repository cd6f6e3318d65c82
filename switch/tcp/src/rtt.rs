//! Round-trip time estimate and retransmission timeout (RFC 6298).

use crate::Nanos;

/// RFC 6298 section 2: SRTT, RTTVAR, RTO with a clock of granularity G, bounds, and back-off.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    srtt: Option<Nanos>,
    rttvar: Nanos,
    /// Before bounds and back-off.
    base: Nanos,
    backoff: u32,
    granularity: Nanos,
    min: Nanos,
    max: Nanos,
}

impl RttEstimator {
    /// `initial`: the RTO before the first sample (section 2.1: 1 s). `granularity`: the clock's tick.
    pub fn new(initial: Nanos, granularity: Nanos, min: Nanos, max: Nanos) -> Self {
        RttEstimator { srtt: None, rttvar: 0, base: initial, backoff: 0, granularity: granularity.max(1), min, max }
    }

    /// Takes the round trip of a segment sent at `sent` and acknowledged at `now`, and ends the back-off (section 5, Karn:
    /// the caller gives no sample of a segment that was sent twice).
    ///
    /// A clock of tick G sees only how many ticks passed, at least one.
    pub fn sample(&mut self, sent: Nanos, now: Nanos) {
        let g = self.granularity;
        let rtt = ((now / g).saturating_sub(sent / g)).max(1) * g;
        self.backoff = 0;
        match self.srtt {
            // (2.2) the first measurement
            None => {
                self.srtt = Some(rtt);
                self.rttvar = rtt / 2;
            }
            // (2.3) alpha = 1/8, beta = 1/4, RTTVAR before SRTT
            Some(srtt) => {
                self.rttvar = self.rttvar - self.rttvar / 4 + srtt.abs_diff(rtt) / 4;
                self.srtt = Some(srtt - srtt / 8 + rtt / 8);
            }
        }
        self.base = self.srtt.unwrap_or(rtt).saturating_add(g.max(4 * self.rttvar));
    }

    /// (2.4), (2.5), (5.5): bounded below, doubled by each back-off, bounded above.
    pub fn rto(&self) -> Nanos {
        let backed_off = u128::from(self.base.max(self.min)) << self.backoff.min(32);
        backed_off.min(u128::from(self.max)) as Nanos
    }

    /// (5.5) the timer ran out.
    pub fn back_off(&mut self) {
        if self.rto() < self.max {
            self.backoff += 1;
        }
    }

    /// (5.7) the SYN was lost: 3 s when data begin, unless measured since.
    pub fn after_syn_timeout(&mut self) {
        if self.srtt.is_none() {
            self.base = self.base.max(3_000_000_000);
            self.backoff = 0;
        }
    }

    pub fn srtt(&self) -> Option<Nanos> {
        self.srtt
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    const MS: Nanos = 1_000_000;

    fn linux_like() -> RttEstimator {
        RttEstimator::new(1000 * MS, MS, 200 * MS, 60_000 * MS)
    }

    #[test]
    fn rfc_6298_2_1_starts_at_one_second() {
        assert_eq!(linux_like().rto(), 1000 * MS);
    }

    #[test]
    fn rfc_6298_2_2_first_sample() {
        let mut e = linux_like();
        e.sample(0, 100 * MS);
        assert_eq!((e.srtt, e.rttvar, e.rto()), (Some(100 * MS), 50 * MS, 300 * MS));
    }

    #[test]
    fn rfc_6298_2_3_second_sample() {
        let mut e = linux_like();
        e.sample(0, 100 * MS);
        e.sample(0, 180 * MS);
        assert_eq!((e.srtt, e.rttvar), (Some(110 * MS), 57_500_000), "3/4 * 50 + 1/4 * 80; 7/8 * 100 + 1/8 * 180");
        assert_eq!(e.rto(), 340 * MS);
    }

    #[test]
    fn rfc_6298_2_4_minimum_and_granularity() {
        let mut e = linux_like();
        for _ in 0..200 {
            e.sample(0, 10 * MS);
        }
        assert_eq!(e.rto(), 200 * MS);
        let mut coarse = RttEstimator::new(1000 * MS, 100 * MS, 0, 60_000 * MS);
        for _ in 0..200 {
            coarse.sample(30 * MS, 40 * MS);
        }
        assert_eq!(coarse.rto(), 200 * MS, "one tick measured, one tick of variance");
        coarse.sample(95 * MS, 305 * MS);
        assert!(coarse.rttvar >= 49 * MS, "three tick boundaries were crossed");
    }

    #[test]
    fn rfc_6298_5_5_back_off_doubles_up_to_the_maximum_and_a_sample_ends_it() {
        let mut e = linux_like();
        e.sample(0, 100 * MS);
        let seen: Vec<u64> = (0..10)
            .map(|_| {
                e.back_off();
                e.rto() / MS
            })
            .collect();
        assert_eq!(seen, [600, 1200, 2400, 4800, 9600, 19200, 38400, 60000, 60000, 60000]);
        e.sample(0, 100 * MS);
        assert_eq!(e.rto(), 250 * MS);
    }
}
