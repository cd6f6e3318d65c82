//! Random streams: one per component, independent of each other, from one seed.
//!
//! # Derivation
//!
//! The stream of component `name` in a run of seed `seed` is ChaCha with 8 rounds whose 256-bit key is, in order and little-endian:
//!
//! | bytes | value |
//! |---|---|
//! | 0..8 | `seed` |
//! | 8..16 | FNV-1a, 64 bits, of the name's UTF-8 bytes |
//! | 16..24 | the name's length in bytes |
//! | 24..32 | the ASCII text `fairlane` |
//!
//! Streams of different keys are independent as far as anyone can tell, so a component that is added, removed or renamed changes
//! no other component's numbers. Two names share a stream only if FNV-1a and length both collide.

use chacha20::rand_core::{Rng, SeedableRng};
use chacha20::ChaCha8Rng;

/// The random numbers of one component.
pub struct Stream {
    rng: ChaCha8Rng,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stream")
    }
}

/// The key of a component's stream; see the module's table.
pub fn key(seed: u64, name: &str) -> [u8; 32] {
    let fnv = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&fnv.to_le_bytes());
    key[16..24].copy_from_slice(&(name.len() as u64).to_le_bytes());
    key[24..].copy_from_slice(b"fairlane");
    key
}

impl Stream {
    /// The stream of component `name` in a run of seed `seed`.
    pub fn new(seed: u64, name: &str) -> Self {
        Stream { rng: ChaCha8Rng::from_seed(key(seed, name)) }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.rng.next_u64()
    }

    /// Uniform in [0, 1): a multiple of 2^-53.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Exponential of the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log1p(-self.uniform())
    }

    /// Gaussian of mean 0 and standard deviation 1: Box and Muller's first value of two uniform ones.
    pub fn gaussian(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log1p(-self.uniform()));
        radius * libm::cos(2.0 * std::f64::consts::PI * self.uniform())
    }

    /// Pareto of the given shape (above 1) and mean: the least value is mean * (shape - 1) / shape.
    pub fn pareto(&mut self, mean: f64, shape: f64) -> f64 {
        let least = mean * (shape - 1.0) / shape;
        least * libm::exp(-libm::log1p(-self.uniform()) / shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_stay_what_they_are() {
        let mut stream = Stream::new(1, "h1");
        let bits: Vec<u64> = (0..4).map(|_| stream.bits()).collect();
        assert_eq!(bits, GOLDEN, "records of earlier runs would no longer repeat");
        assert_eq!(key(0, "")[8..16], 0xcbf2_9ce4_8422_2325u64.to_le_bytes(), "FNV-1a's offset basis");
        assert_eq!(key(0, "a")[8..16], 0xaf63_dc4c_8601_ec8cu64.to_le_bytes(), "FNV-1a of `a`");
    }

    const GOLDEN: [u64; 4] = [1080757029376073685, 7920800262720337217, 17477540602521289896, 18138805694987987676];

    #[test]
    fn streams_of_different_components_and_seeds_differ() {
        let first = |seed, name| Stream::new(seed, name).bits();
        let all = [first(1, "h1"), first(1, "h2"), first(2, "h1"), first(1, ""), first(1, "h1/")];
        for (i, a) in all.iter().enumerate() {
            assert!(all[i + 1..].iter().all(|b| a != b));
        }
        // correlation of two streams' uniforms
        let (mut a, mut b) = (Stream::new(1, "h1"), Stream::new(1, "h2"));
        let n = 20_000;
        let sum: f64 = (0..n).map(|_| (a.uniform() - 0.5) * (b.uniform() - 0.5)).sum();
        assert!((sum / f64::from(n) * 12.0).abs() < 0.03);
    }

    #[test]
    fn moments() {
        let mut stream = Stream::new(3, "moments");
        let n = 200_000;
        let mean = |draw: &mut dyn FnMut() -> f64| (0..n).map(|_| draw()).sum::<f64>() / f64::from(n);
        assert!((mean(&mut || stream.uniform()) - 0.5).abs() < 0.005);
        assert!((mean(&mut || stream.exponential(2.0)) - 2.0).abs() < 0.03);
        assert!((mean(&mut || stream.pareto(2.0, 2.5)) - 2.0).abs() < 0.05);
        assert!(mean(&mut || stream.gaussian()).abs() < 0.01);
        assert!((mean(&mut || libm::pow(stream.gaussian(), 2.0)) - 1.0).abs() < 0.02);
        // Within one standard deviation 68.27 %, within three 99.73 %.
        for (deviations, part) in [(1.0, 0.6827), (3.0, 0.9973)] {
            assert!((mean(&mut || f64::from(stream.gaussian().abs() < deviations)) - part).abs() < 0.005);
        }
        let least = (0..10_000).map(|_| stream.pareto(2.0, 2.5)).fold(f64::MAX, f64::min);
        assert!((1.2..1.21).contains(&least), "{least}");
    }
}
