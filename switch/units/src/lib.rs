//! Time, ports and rates: what all crates count in.

#![forbid(unsafe_code)]

mod histogram;
pub mod text;

pub use histogram::Delays;

/// An instant or a duration in nanoseconds. Instants count from an origin that the caller chooses and keeps.
pub type Nanos = u64;

/// A port number; BMv2's v1model has 9 bits (`bit<9>`).
pub type PortId = u32;

pub const SECOND: Nanos = 1_000_000_000;

/// Nanoseconds as seconds.
#[inline]
pub fn seconds(time: Nanos) -> f64 {
    time as f64 / 1e9
}

/// Seconds as nanoseconds, rounded; what does not fit becomes the largest instant.
#[inline]
pub fn rounded(seconds: f64) -> Nanos {
    // a float-to-integer `as` saturates, and NaN gives 0
    (seconds * 1e9 + 0.5) as Nanos
}

/// The first instant that is not before a time in seconds: a timer is never early. What lies before the beginning is the
/// beginning, what never comes is the end of time.
#[inline]
pub fn instant(time_s: f64) -> Nanos {
    let mut instant = (time_s * 1e9).ceil() as Nanos;
    while seconds(instant) < time_s && instant < Nanos::MAX {
        instant += 1;
    }
    instant
}

/// How long bits take at a rate, rounded down. The rate is not 0.
#[inline]
pub fn transmission(bits: u128, rate_bps: u64) -> Nanos {
    Nanos::try_from(bits * u128::from(SECOND) / u128::from(rate_bps)).unwrap_or(Nanos::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_are_never_early() {
        for time_s in [0.0, 0.1, 0.3, 1.1, 5.000000001, 123.456789, 99999.7] {
            let at = instant(time_s);
            assert!(seconds(at) >= time_s && at as f64 - time_s * 1e9 < 2.0, "{time_s}");
        }
        assert_eq!(instant(-1.0), 0);
        assert_eq!(instant(f64::INFINITY), Nanos::MAX);
        assert_eq!(instant(f64::NAN), 0);
    }

    #[test]
    fn a_packet_takes_its_bits_by_the_rate() {
        assert_eq!(transmission(12_000, 10_000_000), 1_200_000);
        assert_eq!(transmission(1, 3), 333_333_333);
        assert_eq!(transmission(u128::from(u64::MAX), 1), Nanos::MAX);
    }
}
