//! Randomness: one stream for each component, from the run's seed and the component's name.
//!
//! A component draws from its own stream alone, so that adding a flow or a link changes no other component's draws. The
//! generator is xoshiro256++ (Blackman and Vigna, 2021), its state four outputs of SplitMix64 (Steele et al., 2014) that starts at
//! the seed xor FNV-1a-64 of the name. All arithmetic is on integers or exact in IEEE 754: the same on every machine.

/// A stream of pseudo-random numbers.
#[derive(Debug, Clone)]
pub struct Rng([u64; 4]);

impl Rng {
    /// The stream of a component.
    pub fn stream(seed: u64, component: &str) -> Rng {
        let mut state = seed ^ fnv1a(component.as_bytes());
        Rng([(); 4].map(|()| split_mix(&mut state)))
    }

    /// 64 uniform bits.
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in [0, 1), a multiple of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in 0..=most.
    pub fn up_to(&mut self, most: u64) -> u64 {
        // The bias is below 2^-64 times the range.
        (u128::from(self.bits()) * (u128::from(most) + 1) >> 64) as u64
    }

    /// True with the probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }
}

/// The seed of a component that has its own generator: a program's `random()`, a Python object.
pub fn seed_of(seed: u64, component: &str) -> u64 {
    Rng::stream(seed, component).bits()
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generators_match_their_published_vectors() {
        // SplitMix64 from 1234567, and xoshiro256++ from (1, 2, 3, 4): the reference implementations' first outputs.
        let mut state = 1_234_567;
        assert_eq!(split_mix(&mut state), 6_457_827_717_110_365_317);
        assert_eq!(split_mix(&mut state), 3_203_168_211_198_807_973);
        let mut rng = Rng([1, 2, 3, 4]);
        assert_eq!([rng.bits(), rng.bits(), rng.bits()], [41_943_041, 58_720_359, 3_588_806_011_781_223]);
    }

    #[test]
    fn streams_of_components_and_seeds_differ() {
        let first = |seed, name| Rng::stream(seed, name).bits();
        assert_eq!(first(1, "link a->b"), first(1, "link a->b"));
        assert_ne!(first(1, "link a->b"), first(1, "link b->a"));
        assert_ne!(first(1, "link a->b"), first(2, "link a->b"));
    }

    #[test]
    fn means_are_right() {
        let mut rng = Rng::stream(7, "test");
        let n = 20_000;
        let mean = (0..n).map(|_| rng.unit()).sum::<f64>() / f64::from(n);
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
        let hits = (0..n).filter(|_| rng.chance(0.1)).count();
        assert!((1_800..2_200).contains(&hits), "{hits}");
        assert!((0..1000).all(|_| rng.up_to(3) <= 3));
    }
}
