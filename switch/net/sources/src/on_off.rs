//! On-off: bursts at a constant rate, silence between them.

use fairlane_units::rounded;

use crate::cbr::offset;
use crate::error::positive;
use crate::{Emission, Nanos, ParameterError, Stream};

/// How long an on or off period lasts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Period {
    Constant {
        s: f64,
    },
    Exponential {
        mean_s: f64,
    },
    /// Shape between 1 and 2 gives bursts of infinite variance (Willinger et al. 1997); it must be above 1 for a mean to exist.
    Pareto {
        mean_s: f64,
        shape: f64,
    },
}

impl Period {
    pub(crate) fn validate(&self, key: &str) -> Result<(), ParameterError> {
        match *self {
            Period::Constant { s } => positive(&format!("{key}.s"), s),
            Period::Exponential { mean_s } => positive(&format!("{key}.mean_s"), mean_s),
            Period::Pareto { mean_s, shape } => {
                positive(&format!("{key}.mean_s"), mean_s)?;
                if shape.is_finite() && shape > 1.0 {
                    Ok(())
                } else {
                    Err(ParameterError::value(format!("{key}.shape"), shape, "give more than 1, or there is no mean"))
                }
            }
        }
    }

    pub(crate) fn draw(&self, stream: &mut Stream) -> Nanos {
        rounded(match *self {
            Period::Constant { s } => s,
            Period::Exponential { mean_s } => stream.exponential(mean_s),
            Period::Pareto { mean_s, shape } => stream.pareto(mean_s, shape),
        })
    }
}

/// What an on-off source needs to know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OnOffParameters {
    /// Rate of payload while on.
    pub rate_bps: u64,
    pub packet_bytes: u32,
    pub on: Period,
    pub off: Period,
}

/// An on-off source: starts with an on period.
///
/// The packet clock runs only while the source is on and keeps its fraction over a silence, so that the long-run rate is
/// exactly `rate * on / (on + off)` even where an on period is shorter than a packet's time.
#[derive(Debug)]
pub struct OnOff {
    parameters: OnOffParameters,
    stream: Stream,
    /// Packets sent, which fixes the next one's place on the packet clock.
    sent: u64,
    /// On time before the current on period.
    on_before: Nanos,
    period_start: Nanos,
    period_len: Nanos,
}

impl OnOff {
    /// # Errors
    /// A rate, size or period that is not above 0, or a Pareto shape of at most 1.
    pub fn new(parameters: OnOffParameters, start: Nanos, mut stream: Stream) -> Result<Self, ParameterError> {
        crate::ConstantBitRate::new(parameters.rate_bps, parameters.packet_bytes, start)?;
        parameters.on.validate("on")?;
        parameters.off.validate("off")?;
        let period_len = parameters.on.draw(&mut stream);
        Ok(OnOff { parameters, stream, sent: 0, on_before: 0, period_start: start, period_len })
    }
}

impl Iterator for OnOff {
    type Item = Emission;

    fn next(&mut self) -> Option<Emission> {
        let p = self.parameters;
        let due = offset(self.sent, p.packet_bytes, p.rate_bps);
        while due >= self.on_before.checked_add(self.period_len)? {
            self.on_before += self.period_len;
            let silence = p.off.draw(&mut self.stream);
            self.period_start = self.period_start.checked_add(self.period_len)?.checked_add(silence)?;
            self.period_len = p.on.draw(&mut self.stream);
        }
        self.sent += 1;
        let at = self.period_start.checked_add(due - self.on_before)?;
        Some(Emission { at, bytes: p.packet_bytes.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn periods() -> impl Strategy<Value = Period> {
        prop_oneof![
            (0.001f64..2.0).prop_map(|s| Period::Constant { s }),
            (0.001f64..2.0).prop_map(|mean_s| Period::Exponential { mean_s }),
            (0.001f64..2.0, 1.1f64..3.0).prop_map(|(mean_s, shape)| Period::Pareto { mean_s, shape }),
        ]
    }

    proptest! {
        /// Never faster than the rate within a burst, never back in time, and the same again for the same seed.
        #[test]
        fn gaps_are_at_least_a_packet_time(on in periods(), off in periods(), rate in 1_000u64..10_000_000, seed: u64) {
            let parameters = OnOffParameters { rate_bps: rate, packet_bytes: 100, on, off };
            let run = || OnOff::new(parameters, 7, Stream::new(seed, "x")).unwrap().take(300).collect::<Vec<_>>();
            let packets = run();
            prop_assert_eq!(packets[0].at, 7);
            let gap = 100 * 8 * 1_000_000_000 / rate;
            prop_assert!(packets.windows(2).all(|w| w[1].at - w[0].at >= gap));
            prop_assert_eq!(packets, run());
        }
    }

    #[test]
    fn the_mean_rate_is_the_duty_cycle() {
        for (on, off) in [
            (Period::Exponential { mean_s: 0.4 }, Period::Exponential { mean_s: 0.6 }),
            (Period::Pareto { mean_s: 0.4, shape: 2.5 }, Period::Pareto { mean_s: 0.6, shape: 2.5 }),
            (Period::Constant { s: 0.000_04 }, Period::Constant { s: 0.000_06 }),
        ] {
            let parameters = OnOffParameters { rate_bps: 1_000_000, packet_bytes: 125, on, off };
            let packets: Vec<_> = OnOff::new(parameters, 0, Stream::new(5, "x")).unwrap().take(800_000).collect();
            let rate = 800_000.0 * 1000.0 / (packets.last().unwrap().at as f64 / 1e9);
            assert!((rate / 400_000.0 - 1.0).abs() < 0.04, "{on:?}: {rate}");
        }
    }

    #[test]
    fn bad_parameters_are_named() {
        let ok = OnOffParameters { rate_bps: 1, packet_bytes: 1, on: Period::Constant { s: 1.0 }, off: Period::Constant { s: 1.0 } };
        let error = |p| OnOff::new(p, 0, Stream::new(0, "")).unwrap_err().to_string();
        assert!(error(OnOffParameters { rate_bps: 0, ..ok }).contains("`rate_bps`"));
        assert!(error(OnOffParameters { on: Period::Exponential { mean_s: -1.0 }, ..ok }).contains("`on.mean_s` = -1"));
        assert!(error(OnOffParameters { off: Period::Pareto { mean_s: 1.0, shape: 1.0 }, ..ok }).contains("`off.shape` = 1"));
        assert!(error(OnOffParameters { off: Period::Constant { s: f64::NAN }, ..ok }).contains("`off.s` = NaN"));
    }
}
