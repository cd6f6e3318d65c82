//! How evenly a port sends: the gap between two frames back to back, as a part of the time that the link takes for the second.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use fairlane_device::{Nanos, PortConfig, PortId};

/// Upper ends of the classes of frame sizes, in bytes; the last takes all others.
const SIZES: [usize; 4] = [128, 512, 1024, usize::MAX];
/// Bounds of the ratio are powers of two, eight to an octave, from 1/16 to 4096.
const PER_OCTAVE: f64 = 8.0;
const LOWEST_OCTAVE: f64 = -4.0;
const BUCKETS: usize = (16 * PER_OCTAVE as usize) + 2;

/// Of one port.
#[derive(Debug, Clone)]
pub(crate) struct Gaps {
    rate_bps: Option<u64>,
    overhead_bytes: i64,
    /// The last frame's departure by the model, and when it was handed to the socket.
    last: Option<(Nanos, Nanos)>,
    counts: [[u64; BUCKETS]; SIZES.len()],
}

impl Default for Gaps {
    fn default() -> Self {
        Gaps { rate_bps: None, overhead_bytes: 0, last: None, counts: [[0; BUCKETS]; SIZES.len()] }
    }
}

impl Gaps {
    /// The port's link, which may change.
    pub(crate) fn configure(&mut self, config: &PortConfig) {
        self.rate_bps = config.rate_bps;
        self.overhead_bytes = config.overhead_bytes.into();
    }

    /// A frame whose departure by the model is `departure` was handed over at `now`.
    pub(crate) fn left(&mut self, departure: Nanos, now: Nanos, bytes: usize) {
        let before = self.last.replace((departure, now));
        let (Some((before, handed)), Some(rate)) = (before, self.rate_bps) else { return };
        let bits = (bytes as i64 + self.overhead_bytes).max(0) as f64 * 8.0;
        let due = bits * 1e9 / rate as f64;
        // Departures are whole nanoseconds. A longer gap is an idle link.
        if due <= 0.0 || (departure.saturating_sub(before) as f64 - due).abs() > 2.0 {
            return;
        }
        let class = SIZES.iter().position(|&size| bytes <= size).unwrap_or(SIZES.len() - 1);
        self.counts[class][bucket(now.saturating_sub(handed) as f64 / due)] += 1;
    }
}

/// The first bucket ends at 1/16, the last has no end.
#[allow(clippy::disallowed_methods)] // of measured times
fn bucket(ratio: f64) -> usize {
    let steps = ((ratio.max(1e-9).log2() - LOWEST_OCTAVE) * PER_OCTAVE).ceil();
    steps.clamp(0.0, (BUCKETS - 1) as f64) as usize
}

/// The upper end of a bucket.
#[allow(clippy::disallowed_methods)]
fn bound(bucket: usize) -> f64 {
    if bucket == BUCKETS - 1 {
        return f64::INFINITY;
    }
    (bucket as f64 / PER_OCTAVE + LOWEST_OCTAVE).exp2()
}

/// The file beside a file of statistics: `s1.csv`, `s1.gaps.csv`.
pub(crate) fn path(stats: &Path) -> PathBuf {
    stats.with_extension("gaps.csv")
}

/// Writes all ports' counts in place of what was there. `bytes_up_to` of the last class and `ratio_up_to` of the last bucket are `inf`.
pub(crate) fn write<'a>(path: &Path, ports: impl Iterator<Item = (PortId, &'a Gaps)>) -> io::Result<()> {
    let mut text = String::from("port,bytes_up_to,ratio_up_to,frames\n");
    for (port, gaps) in ports {
        for (size, counts) in SIZES.iter().zip(&gaps.counts) {
            let size = if *size == usize::MAX { "inf".to_string() } else { size.to_string() };
            for (at, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                let _ = writeln!(text, "{port},{size},{:.6},{count}", bound(at));
            }
        }
    }
    fs::write(path, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(rate_bps: u64, overhead_bytes: i32) -> Gaps {
        let mut gaps = Gaps::default();
        gaps.configure(&PortConfig { rate_bps: Some(rate_bps), overhead_bytes, ..PortConfig::default() });
        gaps
    }

    fn counted(gaps: &Gaps) -> Vec<(usize, usize, u64)> {
        let all = gaps.counts.iter().enumerate();
        all.flat_map(|(class, counts)| counts.iter().enumerate().map(move |(at, count)| (class, at, *count))).filter(|c| c.2 > 0).collect()
    }

    #[test]
    fn an_even_sender_has_gaps_of_length_over_rate() {
        let mut gaps = port(8_000_000, 0); // a byte takes a microsecond
        for i in 1..=11 {
            gaps.left(i * 1_000_000, i * 1_000_000 + 70, 1000);
        }
        assert_eq!(counted(&gaps), [(2, bucket(1.0), 10)]);
        assert_eq!(bound(bucket(1.0)), 1.0);
    }

    #[test]
    fn a_batch_after_a_pause_has_one_long_gap_and_then_none() {
        let mut gaps = port(8_000_000, 0);
        gaps.left(100_000, 100_000, 100);
        for i in 2..=4 {
            gaps.left(i * 100_000, 500_000, 100);
        }
        assert_eq!(counted(&gaps), [(0, 0, 2), (0, bucket(4.0), 1)]);
    }

    #[test]
    fn an_idle_link_and_one_without_a_rate_have_no_gaps() {
        let mut gaps = port(8_000_000, 0);
        for i in 1..=5 {
            gaps.left(i * 2_000_000, i * 2_000_000, 1000);
        }
        assert!(counted(&gaps).is_empty());
        let mut gaps = Gaps::default();
        gaps.left(1, 1, 1000);
        gaps.left(1, 1, 1000);
        assert!(counted(&gaps).is_empty());
    }

    #[test]
    fn the_length_on_the_link_counts() {
        let mut gaps = port(8_000_000, -14);
        for i in 1..=3 {
            gaps.left(i * 1_000_000, i * 1_000_000, 1014);
        }
        assert_eq!(counted(&gaps), [(2, bucket(1.0), 2)]);
    }

    #[test]
    fn every_ratio_is_at_most_its_bound() {
        for ratio in [0.0, 1e-6, 0.06, 0.07, 0.99, 1.0, 1.01, 7.3, 4000.0, 5000.0, 1e12] {
            let at = bucket(ratio);
            assert!(ratio <= bound(at) && (at == 0 || ratio > bound(at - 1) * 0.999_999));
        }
    }
}
