//! Random Early Detection in real numbers, in packet mode: Floyd and Jacobson 1993, figure 2, or ns-2's variations of it.

#![allow(clippy::disallowed_methods)] // within a tolerance

use fairlane_tcp::Nanos;

#[derive(Clone, Debug)]
pub struct RedParameters {
    pub min_threshold: f64,
    pub max_threshold: f64,
    pub max_p: f64,
    pub weight: f64,
    /// Drops are 1/p to 2/p packets apart (ns-2's `wait_`), not up to 1/p.
    pub wait: bool,
    /// No drop while at most one packet waits, and none at the crossing of the minimum threshold (ns-2, always).
    pub spare_short_queue: bool,
}

pub struct Red {
    parameters: RedParameters,
    /// Typical packets per nanosecond, for the decay of the average over idle time.
    packets_per_ns: f64,
    average: f64,
    /// Packets since the last early drop.
    count: u64,
    /// Whether the last arrival found the average above the minimum threshold.
    above: bool,
    idle_since: Option<Nanos>,
    random: u64,
}

impl Red {
    pub fn new(parameters: RedParameters, rate_bps: u64, seed: u64) -> Self {
        Red {
            parameters,
            packets_per_ns: rate_bps as f64 / 8000.0 * 1e-9,
            average: 0.0,
            count: 0,
            above: false,
            idle_since: Some(0),
            random: seed,
        }
    }

    pub fn idle_from(&mut self, now: Nanos) {
        self.idle_since = Some(now);
    }

    /// Whether the packet arriving to `waiting` packets is dropped.
    pub fn drops(&mut self, now: Nanos, waiting: usize, full: bool) -> bool {
        let p = self.parameters.clone();
        // avg <- (1 - w)^m avg over an idle time of m packets, then avg <- (1 - w) avg + w q
        if let Some(since) = self.idle_since.take() {
            let m = (self.packets_per_ns * (now - since) as f64) as i32;
            self.average *= (1.0 - p.weight).powi(m);
        }
        self.average += p.weight * (waiting as f64 - self.average);
        self.count += 1;
        let mut dropped = full;
        if self.average >= p.min_threshold && (waiting > 1 || !p.spare_short_queue) {
            if self.average >= p.max_threshold {
                dropped = true;
            } else if !self.above {
                self.above = true;
                self.count = u64::from(p.spare_short_queue);
                dropped |= !p.spare_short_queue
                    && self.uniform() <= p.max_p * (self.average - p.min_threshold) / (p.max_threshold - p.min_threshold);
            } else {
                let pb = p.max_p * (self.average - p.min_threshold) / (p.max_threshold - p.min_threshold);
                let n = self.count as f64 * pb;
                let pa = if !p.wait {
                    if n < 1.0 {
                        pb / (1.0 - n)
                    } else {
                        1.0
                    }
                } else if n < 1.0 {
                    0.0
                } else if n < 2.0 {
                    pb / (2.0 - n)
                } else {
                    1.0
                };
                dropped |= self.uniform() <= pa;
            }
        } else {
            self.above = false;
        }
        if dropped {
            self.count = 0;
        }
        dropped
    }

    /// SplitMix64, as a fraction of one.
    fn uniform(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}
