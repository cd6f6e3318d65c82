//! Draws from a component's stream (`stream.rs`): each component has one, from the run's seed and the component's name.
//!
//! A component draws from its own stream alone, so that adding a flow or a link changes no other component's draws.

use crate::Stream;

/// A stream of pseudo-random numbers.
#[derive(Debug)]
pub struct Rng(Stream);

impl Rng {
    /// The stream of a component.
    pub fn stream(seed: u64, component: &str) -> Rng {
        Rng(Stream::new(seed, component))
    }

    /// 64 uniform bits.
    pub fn bits(&mut self) -> u64 {
        self.0.bits()
    }

    /// Uniform in [0, 1), a multiple of 2^-53.
    pub fn unit(&mut self) -> f64 {
        self.0.uniform()
    }

    /// Uniform in 0..=most.
    pub fn up_to(&mut self, most: u64) -> u64 {
        // The bias is below 2^-64 times the range.
        ((u128::from(self.bits()) * (u128::from(most) + 1)) >> 64) as u64
    }

    /// Gaussian of mean 0 and standard deviation 1.
    pub fn gaussian(&mut self) -> f64 {
        self.0.gaussian()
    }

    /// True with the probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }
}

/// The seed of a component that has its own generator: a program's `random()`.
pub fn seed_of(seed: u64, component: &str) -> u64 {
    Rng::stream(seed, component).bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_their_range_and_probability() {
        let mut rng = Rng::stream(7, "test");
        let hits = (0..20_000).filter(|_| rng.chance(0.1)).count();
        assert!((1_800..2_200).contains(&hits), "{hits}");
        let mut counts = [0u32; 4];
        for _ in 0..8_000 {
            counts[rng.up_to(3) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (1_850..2_150).contains(count)), "{counts:?}");
    }
}
