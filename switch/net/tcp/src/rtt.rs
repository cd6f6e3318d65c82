//! Round-trip time estimate and retransmission timeout (RFC 6298, with timestamps [RFC 7323 sec G]; with Linux's least RTO; in whole ticks, Jacobson 1988).

use crate::{Nanos, RttEstimator};

/// [RFC 6298 sec 2]: SRTT, RTTVAR, RTO with a clock of granularity G, bounds, and back-off.
#[derive(Clone, Debug)]
pub(crate) struct Rtt {
    estimator: RttEstimator,
    srtt: Option<Nanos>,
    /// The last sample, as long as nobody took it.
    latest: Option<Nanos>,
    rttvar: Nanos,
    /// SRTT in eighths of a tick and RTTVAR in quarters, where ticks are counted.
    eighths: Option<u64>,
    quarters: u64,
    /// Before bounds and back-off.
    base: Nanos,
    backoff: u32,
    granularity: Nanos,
    min: Nanos,
    max: Nanos,
}

impl Rtt {
    /// `initial`: the RTO before the first sample (section 2.1: 1 s). `granularity`: the clock's tick.
    pub fn new(estimator: RttEstimator, initial: Nanos, granularity: Nanos, min: Nanos, max: Nanos) -> Self {
        Rtt {
            estimator,
            srtt: None,
            latest: None,
            rttvar: 0,
            eighths: None,
            quarters: 0,
            base: initial,
            backoff: 0,
            granularity: granularity.max(1),
            min,
            max,
        }
    }

    /// Takes the round trip of a segment sent at `sent` and acknowledged at `now`, and ends the back-off (section 5, Karn:
    /// the caller gives no sample of a segment that was sent twice).
    ///
    /// A clock of tick G sees only how many ticks passed, at least one. `expected_samples`: how many samples a round trip gives, at least
    /// 1; alpha and beta are divided by it, so that the history is as long as with one sample [RFC 7323 sec 4.2]. In whole ticks they are not.
    pub fn sample(&mut self, sent: Nanos, now: Nanos, expected_samples: u64) {
        self.latest = Some(now.saturating_sub(sent));
        let g = self.granularity;
        let rtt = ((now / g).saturating_sub(sent / g)).max(1) * g;
        self.backoff = 0;
        if self.estimator == RttEstimator::Ticks {
            return self.sample_ticks(rtt / g);
        }
        match self.srtt {
            // (2.2) the first measurement
            None => {
                self.srtt = Some(rtt);
                self.rttvar = rtt / 2;
            }
            // (2.3) alpha = 1/8, beta = 1/4, RTTVAR before SRTT
            Some(srtt) => {
                let (alpha, beta) = (8 * expected_samples.max(1), 4 * expected_samples.max(1));
                self.rttvar = self.rttvar - self.rttvar / beta + srtt.abs_diff(rtt) / beta;
                self.srtt = Some(srtt - srtt / alpha + rtt / alpha);
            }
        }
        let least = if self.estimator == RttEstimator::Linux { self.min } else { g };
        self.base = self.srtt.unwrap_or(rtt).saturating_add(least.max(4 * self.rttvar));
    }

    /// Jacobson 1988, appendix A.2: SRTT in eighths of a tick and RTTVAR in quarters, both at least one such part, and shifts that round down.
    /// A timer of fewer than two ticks could run out at once (4.4BSD's `t_rttmin`, ns-2).
    fn sample_ticks(&mut self, ticks: u64) {
        match self.eighths {
            None => (self.eighths, self.quarters) = (Some(8 * ticks), 2 * ticks),
            Some(eighths) => {
                let error = ticks as i64 - (eighths >> 3) as i64;
                self.eighths = Some((eighths as i64 + error).max(1) as u64);
                let error = error.abs() - (self.quarters >> 2) as i64;
                self.quarters = (self.quarters as i64 + error).max(1) as u64;
            }
        }
        self.base = ((self.eighths.unwrap_or(0) >> 3) + self.quarters).max(2) * self.granularity;
        self.srtt = self.eighths.map(|eighths| eighths * self.granularity / 8);
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
        if self.backoff > 3 {
            // the route may have changed: 4.4BSD and ns-2 begin anew with the next sample
            self.eighths = None;
        }
    }

    /// (5.7) the SYN was lost: 3 s when data begin, unless measured since.
    pub fn after_syn_timeout(&mut self) {
        if self.srtt.is_none() {
            self.base = self.base.max(3_000_000_000);
            self.backoff = 0;
        }
    }

    /// Takes the last sample, whatever the clock's ticks; `None` when it was taken before.
    pub fn take_sample(&mut self) -> Option<Nanos> {
        self.latest.take()
    }

    pub fn srtt(&self) -> Option<Nanos> {
        self.srtt
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    const MS: Nanos = 1_000_000;

    fn linux_like() -> Rtt {
        Rtt::new(RttEstimator::Rfc6298, 1000 * MS, MS, 200 * MS, 60_000 * MS)
    }

    #[test]
    fn rfc_6298_2_1_starts_at_one_second() {
        assert_eq!(linux_like().rto(), 1000 * MS);
    }

    #[test]
    fn linux_bounds_the_variance_and_rfc_6298_the_timeout() {
        let (mut linux, mut rfc) = (Rtt::new(RttEstimator::Linux, 1000 * MS, MS, 200 * MS, 60_000 * MS), linux_like());
        for sent in 0..40 {
            linux.sample(sent * 300 * MS, (sent + 1) * 300 * MS, 1);
            rfc.sample(sent * 300 * MS, (sent + 1) * 300 * MS, 1);
        }
        assert_eq!(linux.rto() / MS, 500, "SRTT + 200 ms");
        assert!(rfc.rto() < 302 * MS, "SRTT + G, and more than 200 ms: {}", rfc.rto());
    }

    #[test]
    fn rfc_6298_2_2_first_sample() {
        let mut e = linux_like();
        e.sample(0, 100 * MS, 1);
        assert_eq!((e.srtt, e.rttvar, e.rto()), (Some(100 * MS), 50 * MS, 300 * MS));
    }

    #[test]
    fn rfc_6298_2_3_second_sample() {
        let mut e = linux_like();
        e.sample(0, 100 * MS, 1);
        e.sample(0, 180 * MS, 1);
        assert_eq!((e.srtt, e.rttvar), (Some(110 * MS), 57_500_000), "3/4 * 50 + 1/4 * 80; 7/8 * 100 + 1/8 * 180");
        assert_eq!(e.rto(), 340 * MS);
    }

    /// By hand, 10 segments in flight: ExpectedSamples is 5, alpha' 1/40 and beta' 1/20.
    #[test]
    fn rfc_7323_g_many_samples_in_a_round_trip_share_alpha_and_beta() {
        let mut e = linux_like();
        e.sample(0, 100 * MS, 5);
        assert_eq!(e.rto(), 300 * MS, "the first sample has no history");
        e.sample(0, 180 * MS, 5);
        assert_eq!((e.srtt, e.rttvar), (Some(102 * MS), 51_500_000), "19/20 * 50 + 1/20 * 80; 39/40 * 100 + 1/40 * 180");
        assert_eq!(e.rto(), 308 * MS);
    }

    #[test]
    fn rfc_6298_2_4_minimum_and_granularity() {
        let mut e = linux_like();
        for _ in 0..200 {
            e.sample(0, 10 * MS, 1);
        }
        assert_eq!(e.rto(), 200 * MS);
        let mut coarse = Rtt::new(RttEstimator::Rfc6298, 1000 * MS, 100 * MS, 0, 60_000 * MS);
        for _ in 0..200 {
            coarse.sample(30 * MS, 40 * MS, 1);
        }
        assert_eq!(coarse.rto(), 200 * MS, "one tick measured, one tick of variance");
        coarse.sample(95 * MS, 305 * MS, 1);
        assert!(coarse.rttvar >= 49 * MS, "three tick boundaries were crossed");
    }

    #[test]
    fn rfc_6298_5_5_back_off_doubles_up_to_the_maximum_and_a_sample_ends_it() {
        let mut e = linux_like();
        e.sample(0, 100 * MS, 1);
        let seen: Vec<u64> = (0..10)
            .map(|_| {
                e.back_off();
                e.rto() / MS
            })
            .collect();
        assert_eq!(seen, [600, 1200, 2400, 4800, 9600, 19200, 38400, 60000, 60000, 60000]);
        e.sample(0, 100 * MS, 1);
        assert_eq!(e.rto(), 250 * MS);
    }

    /// By hand from 4.4BSD's `tcp_xmit_timer` and ns-2's `rtt_update`: SRTT / 8 and RTTVAR / 4 of a tick, shifts that round down.
    #[test]
    fn jacobson_1988_in_whole_ticks() {
        let mut e = Rtt::new(RttEstimator::Ticks, 6000 * MS, 100 * MS, 200 * MS, 64_000 * MS);
        assert_eq!(e.rto(), 6000 * MS);
        let mut rto = |ticks: u64| {
            e.sample(0, ticks * 100 * MS, 1);
            (e.eighths.unwrap(), e.quarters, e.rto() / MS)
        };
        assert_eq!(rto(1), (8, 2, 300), "RTTVAR is half of SRTT");
        assert_eq!(rto(1), (8, 2, 300), "2 / 4 rounds down to no decrease");
        assert_eq!(rto(3), (10, 4, 500), "error 2");
        assert_eq!(rto(2), (11, 4, 500), "error 1, less 4 / 4");
        assert_eq!(rto(9), (19, 11, 1300), "error 8");
        assert_eq!(rto(1), (18, 10, 1200), "error -1");
        // a far back-off begins anew with the next sample
        (0..4).for_each(|_| e.back_off());
        assert_eq!(e.rto(), 16 * 1200 * MS);
        e.sample(0, 100 * MS, 1);
        assert_eq!((e.eighths, e.quarters, e.rto()), (Some(8), 2, 300 * MS));
    }
}
