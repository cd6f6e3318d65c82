//! TS.Recent [RFC 7323 sec 4.3]: the timestamp to echo, and the one below which a segment is an old duplicate (PAWS, [RFC 7323 sec 5]).

use crate::Nanos;

/// A clock of microseconds wraps its sign bit after 2^31 of them; an older value says nothing [RFC 7323 sec 5.5]. That section's 24 days are
/// for a clock of milliseconds.
const VALID: Nanos = (1 << 31) * 1000;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TsRecent {
    /// The value, and when it was stored.
    stored: Option<(u32, Nanos)>,
}

impl TsRecent {
    /// What TSecr says: 0 where no timestamp came yet.
    pub fn echo(&self) -> u32 {
        self.stored.map_or(0, |(value, _)| value)
    }

    /// Whether a segment with this timestamp is an old duplicate, to be acknowledged and dropped: rule R1 of [RFC 7323 sec 5.3].
    pub fn rejects(&self, now: Nanos, value: u32) -> bool {
        self.stored.is_some_and(|(recent, at)| (1..1 << 31).contains(&recent.wrapping_sub(value)) && now.saturating_sub(at) < VALID)
    }

    /// Stores the timestamp of a segment that was not rejected.
    pub fn store(&mut self, now: Nanos, value: u32) {
        self.stored = Some((value, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [RFC 7323 sec 5.2]: s < t if 0 < (t - s) < 2^31, in 32 bits.
    #[test]
    fn older_means_less_than_half_of_the_clock_behind() {
        for (recent, value, rejected) in [
            (5, 5, false),
            (5, 6, false),
            (5, 4, true),
            (5, u32::MAX, true),
            (u32::MAX, 3, false),
            (1 << 31, 0, false),
            ((1 << 31) - 1, 0, true),
        ] {
            let mut ts = TsRecent::default();
            assert!(!ts.rejects(0, value), "nothing is stored");
            ts.store(0, recent);
            assert_eq!(ts.rejects(1000, value), rejected, "{value} after {recent}");
        }
    }

    /// [RFC 7323 sec 5.5]: after so long an idle time the sign of the difference says nothing.
    #[test]
    fn an_outdated_timestamp_rejects_nothing() {
        let mut ts = TsRecent::default();
        ts.store(0, 5);
        assert!(ts.rejects(VALID - 1, 4));
        assert!(!ts.rejects(VALID, 4));
    }
}
