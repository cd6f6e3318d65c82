//! Single packets after independent gaps, each of an independent size: a renewal process, with exponential gaps the Poisson process of
//! queueing theory.

use crate::error::positive;
use crate::on_off::Period;
use crate::{Emission, Nanos, ParameterError, Stream};

/// How many bytes a packet has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sizes {
    Constant {
        bytes: u32,
    },
    /// Rounded to whole bytes. What is drawn below `least` becomes `least`, and what is drawn above `most` becomes `most`: `mean` is that of the
    /// distribution without bounds, and [`Sizes::mean`] that of the packets.
    Exponential {
        mean: f64,
        least: u32,
        most: u32,
    },
}

impl Sizes {
    fn validate(&self) -> Result<(), ParameterError> {
        match *self {
            Sizes::Constant { bytes: 0 } => Err(ParameterError::value("packet_bytes", 0, "give at least 1 byte")),
            Sizes::Constant { .. } => Ok(()),
            Sizes::Exponential { mean, least, most } => {
                positive("mean_bytes", mean)?;
                if least == 0 || least > most {
                    return Err(ParameterError::value("least", least, "give at least 1 and at most the largest packet"));
                }
                Ok(())
            }
        }
    }

    /// The mean of the packets, in bytes. Of an exponential size X with bounds a and b, E[min(max(X, a), b)] = a + m (exp(-a/m) - exp(-b/m)).
    pub fn mean(&self) -> f64 {
        match *self {
            Sizes::Constant { bytes } => bytes.into(),
            Sizes::Exponential { mean, least, most } => {
                let beyond = |bytes: u32| libm::exp(-f64::from(bytes) / mean);
                f64::from(least) + mean * (beyond(least) - beyond(most))
            }
        }
    }

    fn draw(&self, stream: &mut Stream) -> u32 {
        match *self {
            Sizes::Constant { bytes } => bytes,
            // a float-to-integer `as` saturates
            Sizes::Exponential { mean, least, most } => ((stream.exponential(mean) + 0.5) as u32).clamp(least, most),
        }
    }
}

/// How the gaps between packets are distributed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gaps {
    /// Poisson arrivals.
    Exponential,
    Constant,
    /// Of this shape, above 1.
    Pareto {
        shape: f64,
    },
}

/// What a renewal source needs to know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RenewalParameters {
    /// Mean rate: the mean gap is [`Sizes::mean`] at this rate.
    pub rate_bps: u64,
    pub gaps: Gaps,
    pub sizes: Sizes,
}

/// A renewal source; its first packet comes a gap after the start. Gaps and sizes have a stream each: the same gaps come with any sizes.
#[derive(Debug)]
pub struct Renewal {
    gaps: Period,
    sizes: Sizes,
    gap_stream: Stream,
    size_stream: Stream,
    at: Nanos,
}

impl Renewal {
    /// # Errors
    /// A rate or size that is not above 0, bounds in the wrong order, a Pareto shape of at most 1.
    pub fn new(parameters: RenewalParameters, start: Nanos, mut stream: Stream) -> Result<Self, ParameterError> {
        let RenewalParameters { rate_bps, gaps, sizes } = parameters;
        if rate_bps == 0 {
            return Err(ParameterError::value("rate_bps", 0, "give at least 1 bit/s"));
        }
        sizes.validate()?;
        let mean_s = sizes.mean() * 8.0 / rate_bps as f64;
        let gaps = match gaps {
            Gaps::Exponential => Period::Exponential { mean_s },
            Gaps::Constant => Period::Constant { s: mean_s },
            Gaps::Pareto { shape } => Period::Pareto { mean_s, shape },
        };
        gaps.validate("gaps")?;
        let size_stream = Stream::new(stream.bits(), "sizes");
        Ok(Renewal { gaps, sizes, gap_stream: stream, size_stream, at: start })
    }
}

impl Iterator for Renewal {
    type Item = Emission;

    fn next(&mut self) -> Option<Emission> {
        self.at = self.at.checked_add(self.gaps.draw(&mut self.gap_stream))?;
        Some(Emission { at: self.at, bytes: self.sizes.draw(&mut self.size_stream).into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIZES: Sizes = Sizes::Exponential { mean: 500.0, least: 100, most: 1500 };

    fn packets(gaps: Gaps, sizes: Sizes, n: usize) -> Vec<Emission> {
        let parameters = RenewalParameters { rate_bps: 1_000_000, gaps, sizes };
        Renewal::new(parameters, 0, Stream::new(9, "renewal")).expect("good parameters").take(n).collect()
    }

    fn moments(values: impl Iterator<Item = f64>) -> (f64, f64) {
        let (n, sum, squares) = values.fold((0.0, 0.0, 0.0), |(n, sum, squares), v| (n + 1.0, sum + v, squares + v * v));
        let mean = sum / n;
        (mean, (squares / n - mean * mean) / (mean * mean))
    }

    #[test]
    fn the_rate_is_that_of_the_packets() {
        for sizes in [SIZES, Sizes::Constant { bytes: 1000 }] {
            for gaps in [Gaps::Exponential, Gaps::Constant, Gaps::Pareto { shape: 2.5 }] {
                let found = packets(gaps, sizes, 400_000);
                let bits = found.iter().map(|e| e.bytes as f64 * 8.0).sum::<f64>();
                let rate = bits / (found.last().expect("there are some").at as f64 / 1e9);
                assert!((rate / 1e6 - 1.0).abs() < 0.01, "{gaps:?} {sizes:?}: {rate}");
            }
        }
    }

    #[test]
    fn gaps_and_sizes_have_their_mean_and_variation() {
        let found = packets(Gaps::Exponential, SIZES, 400_000);
        let (mean_bytes, _) = moments(found.iter().map(|e| e.bytes as f64));
        assert!((mean_bytes / SIZES.mean() - 1.0).abs() < 0.005, "{mean_bytes}, said {}", SIZES.mean());
        let (mean_ns, variation) = moments(found.windows(2).map(|pair| (pair[1].at - pair[0].at) as f64));
        assert!((mean_ns / (SIZES.mean() * 8e3) - 1.0).abs() < 0.01 && (variation - 1.0).abs() < 0.02, "{mean_ns} {variation}");
        assert!(found.iter().all(|e| (100..=1500).contains(&e.bytes)));
        // P(X >= 1500) = exp(-3), P(X <= 100) = 1 - exp(-0.2), by rounding half a byte more.
        let part = |bytes: u64| found.iter().filter(|e| e.bytes == bytes).count() as f64 / found.len() as f64;
        assert!((part(1500) - libm::exp(-1499.5 / 500.0)).abs() < 0.002 && (part(100) - 1.0 + libm::exp(-100.5 / 500.0)).abs() < 0.003);
    }

    #[test]
    fn the_same_gaps_come_with_any_sizes() {
        let at = |sizes, n| packets(Gaps::Exponential, sizes, n).iter().map(|e| e.at as f64).collect::<Vec<_>>();
        let mean = Sizes::Constant { bytes: 100 }.mean();
        // Another mean size is another mean gap.
        let (a, b) = (at(Sizes::Constant { bytes: 100 }, 1000), at(SIZES, 1000));
        assert!(a.iter().zip(&b).all(|(a, b)| (a / mean * SIZES.mean() / b - 1.0).abs() < 1e-3));
    }

    #[test]
    fn bad_parameters_are_named() {
        let error = |rate_bps, gaps, sizes| {
            Renewal::new(RenewalParameters { rate_bps, gaps, sizes }, 0, Stream::new(0, "")).expect_err("bad").to_string()
        };
        assert!(error(0, Gaps::Constant, SIZES).starts_with("`rate_bps` = 0"));
        assert!(error(1, Gaps::Constant, Sizes::Constant { bytes: 0 }).starts_with("`packet_bytes` = 0"));
        assert!(error(1, Gaps::Pareto { shape: 1.0 }, SIZES).starts_with("`gaps.shape` = 1"));
        assert!(error(1, Gaps::Exponential, Sizes::Exponential { mean: f64::NAN, least: 1, most: 2 }).starts_with("`mean_bytes` = NaN"));
        assert!(error(1, Gaps::Exponential, Sizes::Exponential { mean: 1.0, least: 3, most: 2 }).starts_with("`least` = 3"));
    }

    proptest! {
        #[test]
        fn time_does_not_go_back(seed: u64, rate_bps in 1u64..1 << 40, mean in 1.0f64..9000.0, shape in 1.01f64..5.0) {
            for gaps in [Gaps::Exponential, Gaps::Pareto { shape }] {
                let sizes = Sizes::Exponential { mean, least: 44, most: 9000 };
                let parameters = RenewalParameters { rate_bps, gaps, sizes };
                let found: Vec<_> = Renewal::new(parameters, 5, Stream::new(seed, "x")).expect("good parameters").take(100).collect();
                prop_assert!(found.windows(2).all(|pair| pair[0].at <= pair[1].at) && found.iter().all(|e| e.at >= 5));
            }
        }
    }
}
