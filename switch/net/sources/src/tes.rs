//! TES, Transform-Expand-Sample (B. Melamed, "TES: a class of methods for generating autocorrelated uniform variates", ORSA
//! Journal on Computing 3(4), 1991; B. Melamed, D. Jagerman, 1992): sequences with a given marginal distribution and autocorrelation.
//!
//! - Background: U_0 uniform on [0, 1), then U_n = <U_{n-1} + V_n>, the fractional part of a random walk on the unit circle. The
//!   innovations V_n are uniform on [left, right): the narrower, the stronger the correlation. Every U_n is uniform, whatever the
//!   innovation. TES+ takes U_n; TES- takes 1 - U_n for odd n.
//! - Stitching S_xi smooths the jump where the circle closes and keeps the uniform marginal: y / xi below xi, (1 - y) / (1 - xi) above.
//! - Foreground: X_n = F^-1(S_xi(U_n)).

use crate::Stream;
use serde::Deserialize;

/// The sign of the lag-1 correlation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Sign {
    #[serde(rename = "plus")]
    Plus,
    #[serde(rename = "minus")]
    Minus,
}

/// The background of a TES process.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TesParameters {
    pub sign: Sign,
    /// Innovations are uniform on [`innovation_left`, `innovation_right`), within [-0.5, 0.5).
    pub innovation_left: f64,
    pub innovation_right: f64,
    /// Stitching parameter xi, in [0, 1]; 1 and 0 leave the jump.
    pub stitching: f64,
}

/// A sequence of uniform variates with correlation.
#[derive(Debug)]
pub struct Tes {
    parameters: TesParameters,
    background: Option<f64>,
    odd: bool,
}

impl Tes {
    pub fn new(parameters: TesParameters) -> Self {
        Tes { parameters, background: None, odd: false }
    }

    /// The next stitched variate, in [0, 1].
    pub fn next(&mut self, stream: &mut Stream) -> f64 {
        let p = self.parameters;
        let u = match self.background {
            None => stream.uniform(),
            Some(u) => {
                let sum = u + p.innovation_left + (p.innovation_right - p.innovation_left) * stream.uniform();
                let fraction = sum - libm::floor(sum);
                // a sum just below 0 rounds up to 1
                if fraction < 1.0 {
                    fraction
                } else {
                    0.0
                }
            }
        };
        self.background = Some(u);
        let signed = if p.sign == Sign::Minus && self.odd { 1.0 - u } else { u };
        self.odd = !self.odd;
        stitch(signed, p.stitching)
    }
}

/// S_xi.
pub fn stitch(y: f64, xi: f64) -> f64 {
    if xi > 0.0 && y < xi {
        y / xi
    } else if xi < 1.0 {
        (1.0 - y) / (1.0 - xi)
    } else {
        y
    }
}

/// The quantile function of the standard normal distribution: Acklam's rational approximation (relative error under 1.2e-9) for `p`
/// in (0, 1), clamped to 8 standard deviations outside.
pub fn normal_quantile(p: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    const B: [f64; 5] =
        [-5.447_609_879_822_406e1, 1.615_858_368_580_409e2, -1.556_989_798_598_866e2, 6.680_131_188_771_972e1, -1.328_068_155_288_572e1];
    const C: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 4] = [7.784_695_709_041_462e-3, 3.224_671_290_700_398e-1, 2.445_134_137_142_996, 3.754_408_661_907_416];
    const TAIL: f64 = 0.02425;
    let horner = |c: &[f64], x: f64| c.iter().fold(0.0, |sum, c| sum * x + c);
    let tail = |p: f64| {
        let q = libm::sqrt(-2.0 * libm::log(p));
        horner(&C, q) / (horner(&D, q) * q + 1.0)
    };
    let z = if p <= 0.0 {
        -8.0
    } else if p >= 1.0 {
        8.0
    } else if p < TAIL {
        tail(p)
    } else if p > 1.0 - TAIL {
        -tail(1.0 - p)
    } else {
        let q = p - 0.5;
        let r = q * q;
        horner(&A, r) * q / (horner(&B, r) * r + 1.0)
    };
    z.clamp(-8.0, 8.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sequence(parameters: TesParameters, seed: u64, n: usize) -> Vec<f64> {
        let (mut tes, mut stream) = (Tes::new(parameters), Stream::new(seed, "tes"));
        (0..n).map(|_| tes.next(&mut stream)).collect()
    }

    fn autocorrelation(x: &[f64], lag: usize) -> f64 {
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        let variance: f64 = x.iter().map(|v| (v - mean) * (v - mean)).sum();
        x.windows(lag + 1).map(|w| (w[0] - mean) * (w[lag] - mean)).sum::<f64>() / variance
    }

    /// Melamed 1991: with innovations uniform on [-a/2, a/2) and no stitching, the autocorrelation of TES+ at a lag is
    /// (6 / pi^2) * sum over v of v^-2 * (sin(pi v a) / (pi v a))^lag.
    fn theory(a: f64, lag: i32) -> f64 {
        let pi = std::f64::consts::PI;
        6.0 / (pi * pi)
            * (1..2000).map(f64::from).map(|v| libm::pow(libm::sin(pi * v * a) / (pi * v * a), lag.into()) / (v * v)).sum::<f64>()
    }

    #[test]
    fn autocorrelation_is_that_of_the_theory() {
        for a in [0.1, 0.3, 0.6] {
            let p = TesParameters { sign: Sign::Plus, innovation_left: -a / 2.0, innovation_right: a / 2.0, stitching: 1.0 };
            let x = sequence(p, 11, 400_000);
            for lag in [1, 2, 5] {
                let (seen, said) = (autocorrelation(&x, lag), theory(a, lag as i32));
                assert!((seen - said).abs() < 0.03, "a = {a}, lag {lag}: {seen}, theory {said}");
            }
        }
    }

    #[test]
    fn tes_minus_alternates() {
        let p = TesParameters { sign: Sign::Minus, innovation_left: -0.05, innovation_right: 0.05, stitching: 1.0 };
        let x = sequence(p, 1, 100_000);
        assert!(autocorrelation(&x, 1) < -0.5 && autocorrelation(&x, 2) > 0.5);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

        /// Whatever innovation and stitching, the marginal stays uniform (Kolmogorov-Smirnov distance, correlation allowed for).
        #[test]
        fn the_marginal_is_uniform(left in -0.5f64..-0.1, right in 0.1f64..0.5, stitching in 0.0f64..=1.0, plus: bool) {
            let sign = if plus { Sign::Plus } else { Sign::Minus };
            let mut x = sequence(TesParameters { sign, innovation_left: left, innovation_right: right, stitching }, 2, 40_000);
            prop_assert!(x.iter().all(|v| (0.0..=1.0).contains(v)));
            x.sort_by(f64::total_cmp);
            let n = x.len() as f64;
            let distance = x.iter().enumerate().map(|(i, v)| (v - i as f64 / n).abs()).fold(0.0, f64::max);
            prop_assert!(distance < 0.05, "distance {}", distance);
        }
    }

    #[test]
    fn normal_quantiles_from_the_tables() {
        for (p, z) in [(0.5, 0.0), (0.975, 1.959_963_985), (0.01, -2.326_347_874), (0.999, 3.090_232_306), (0.2, -0.841_621_234)] {
            assert!((normal_quantile(p) - z).abs() < 1e-7, "{p}: {}", normal_quantile(p));
        }
        assert_eq!((normal_quantile(0.0), normal_quantile(1.0)), (-8.0, 8.0));
    }
}
