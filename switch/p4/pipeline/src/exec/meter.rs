//! Two-rate three-colour meters (RFC 2698, colour-blind), as BMv2 runs them.

use crate::control::MeterConfig;
use crate::info::MeterUnit;
use crate::Nanos;

/// Colours as v1model numbers them.
pub const GREEN: u64 = 0;
pub const YELLOW: u64 = 1;
pub const RED: u64 = 2;

/// A token bucket whose tokens are counted from time zero, so that no rounding accumulates.
#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    rate: u64,
    /// Millionths beyond `rate`.
    micro: u32,
    burst: u64,
    tokens: u64,
    /// Tokens produced between time zero and the last update.
    produced: u128,
}

impl Bucket {
    fn new(now: Nanos, rate: u64, micro: u32, burst: u64) -> Bucket {
        Bucket { rate, micro, burst, tokens: burst, produced: produced(now, rate, micro) }
    }

    /// Takes `amount` tokens if there are so many.
    fn take(&mut self, now: Nanos, amount: u64) -> bool {
        let produced = produced(now, self.rate, self.micro);
        let fresh = produced.saturating_sub(self.produced);
        self.produced = self.produced.max(produced);
        self.tokens = (u128::from(self.tokens) + fresh).min(u128::from(self.burst)) as u64;
        if self.tokens < amount {
            return false;
        }
        self.tokens -= amount;
        true
    }
}

/// Whole tokens of `rate + micro / 1e6` per second, exactly.
fn produced(now: Nanos, rate: u64, micro: u32) -> u128 {
    let whole = u128::from(now) * u128::from(rate);
    if micro == 0 {
        return whole / 1_000_000_000;
    }
    whole / 1_000_000_000 + (whole % 1_000_000_000 * 1_000_000 + u128::from(now) * u128::from(micro)) / 1_000_000_000_000_000
}

/// One meter cell.
#[derive(Debug, Clone, Copy)]
pub struct Meter {
    unit: MeterUnit,
    config: Option<MeterConfig>,
    committed: Bucket,
    peak: Bucket,
}

impl Meter {
    pub fn new(unit: MeterUnit) -> Meter {
        Meter { unit, config: None, committed: Bucket::default(), peak: Bucket::default() }
    }

    pub fn config(&self) -> Option<MeterConfig> {
        self.config
    }

    pub fn set(&mut self, now: Nanos, config: Option<MeterConfig>) {
        self.config = config;
        if let Some(c) = config {
            self.committed = Bucket::new(now, c.cir, c.cir_micro, c.cburst);
            self.peak = Bucket::new(now, c.pir, c.pir_micro, c.pburst);
        }
    }

    /// The colour of a packet of `bytes` bytes.
    pub fn colour(&mut self, now: Nanos, bytes: u32) -> u64 {
        self.colour_after(now, bytes, GREEN)
    }

    /// The colour of a packet that had one before (RFC 2698, colour-aware): none becomes better.
    #[inline]
    pub fn colour_after(&mut self, now: Nanos, bytes: u32, before: u64) -> u64 {
        if self.config.is_none() {
            return before;
        }
        let amount = match self.unit {
            MeterUnit::Packets => 1,
            MeterUnit::Bytes => u64::from(bytes),
        };
        if before == RED || !self.peak.take(now, amount) {
            RED
        } else if before == YELLOW || !self.committed.take(now, amount) {
            YELLOW
        } else {
            GREEN
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn bursts_then_rates() {
        let mut m = Meter::new(MeterUnit::Packets);
        assert_eq!(m.colour(0, 100), GREEN);
        // 10 and 20 packets/s, bursts 1 and 3.
        m.set(0, Some(MeterConfig { cir: 10, cburst: 1, pir: 20, pburst: 3, ..Default::default() }));
        let colours: Vec<u64> = (0..5).map(|_| m.colour(0, 100)).collect();
        assert_eq!(colours, [GREEN, YELLOW, YELLOW, RED, RED]);
        // 50 ms give one token of the peak rate, none of the committed rate.
        assert_eq!(m.colour(50 * MS, 100), YELLOW);
        // 100 ms after the start: one of each.
        assert_eq!(m.colour(100 * MS, 100), GREEN);
        assert_eq!(m.colour(100 * MS, 100), RED);
    }

    #[test]
    fn long_run_rate_is_exact() {
        let mut m = Meter::new(MeterUnit::Bytes);
        m.set(0, Some(MeterConfig { cir: 3000, cburst: 200, pir: 10_000_000, pburst: 10_000_000, ..Default::default() }));
        // 100 bytes every 7 ms, far above 3000 bytes/s, for 100 s.
        let green = (0..).map(|i| i * 7 * MS).take_while(|t| *t <= 100_000 * MS).filter(|t| m.colour(*t, 100) == GREEN).count();
        assert!((2998..=3002).contains(&green), "{green}");
    }

    #[test]
    fn rates_below_one_per_second_are_exact() {
        let mut m = Meter::new(MeterUnit::Packets);
        // Half a packet per second; a packet each second for 1000 s.
        m.set(0, Some(MeterConfig { cir_micro: 500_000, cburst: 1, pir: 10, pburst: 1, ..Default::default() }));
        let colours: Vec<u64> = (0..1000).map(|second| m.colour(second * 1000 * MS, 100)).collect();
        assert_eq!(colours.iter().filter(|colour| **colour == GREEN).count(), 500);
        assert_eq!(colours[..4], [GREEN, YELLOW, GREEN, YELLOW]);
        // 2.000003 per second are 2,000,003 in a million seconds.
        assert_eq!(produced(1_000_000_000_000_000, 2, 3), 2_000_003);
    }

    #[test]
    fn bytes_count() {
        let mut m = Meter::new(MeterUnit::Bytes);
        m.set(0, Some(MeterConfig { cir: 1000, cburst: 1500, pir: 2000, pburst: 3000, ..Default::default() }));
        assert_eq!(m.colour(0, 1500), GREEN);
        assert_eq!(m.colour(0, 1500), YELLOW);
        assert_eq!(m.colour(0, 1), RED);
        m.set(0, None);
        assert_eq!(m.colour(0, 1500), GREEN);
    }
}
