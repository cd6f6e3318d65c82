//! When the next data packet of a paced flow is due.

use crate::rng::Rng;
use crate::Nanos;

/// Turns a rate into instants on a grid that advances by exactly `bits / rate`, so that the mean rate has no drift.
#[derive(Debug)]
pub struct Pacer {
    packet_bits: f64,
    pub rate_bps: f64,
    pub burst_packets: u32,
    interval_ns: f64,
    /// Part of an interval by which each packet is moved at random, 0 to 1; it breaks phase locking.
    jitter: f64,
    rng: Rng,
    grid_ns: f64,
    next_ns: f64,
}

impl Pacer {
    /// `phase`: part of an interval, 0 to 1, before the first packet.
    pub fn new(now: Nanos, rate_bps: f64, burst_packets: u32, packet_bytes: u32, phase: f64, jitter: f64, rng: Rng) -> Pacer {
        let packet_bits = f64::from(packet_bytes) * 8.0;
        let interval_ns = packet_bits * f64::from(burst_packets) / rate_bps * 1e9;
        let grid_ns = now as f64 + phase * interval_ns;
        Pacer { packet_bits, rate_bps, burst_packets, interval_ns, jitter, rng, grid_ns, next_ns: grid_ns }
    }

    /// A new rate from now on. The part of the present interval that has passed stays credited.
    pub fn set_rate(&mut self, now: Nanos, rate_bps: f64, burst_packets: u32) {
        let interval_ns = self.packet_bits * f64::from(burst_packets) / rate_bps * 1e9;
        let waiting_ns = self.grid_ns - now as f64;
        if waiting_ns > 0.0 {
            self.grid_ns = now as f64 + waiting_ns * interval_ns / self.interval_ns;
        }
        (self.rate_bps, self.burst_packets, self.interval_ns) = (rate_bps, burst_packets, interval_ns);
        self.place();
    }

    /// When to call [`Pacer::take`].
    pub fn next(&self) -> Nanos {
        self.next_ns.ceil() as Nanos
    }

    /// The burst that is due goes out now.
    pub fn take(&mut self) -> u32 {
        self.grid_ns += self.interval_ns;
        self.place();
        self.burst_packets
    }

    /// The burst that is due goes out now, and is of so many bytes: the gap follows them.
    pub fn take_bytes(&mut self, bytes: u64) {
        self.grid_ns += bytes as f64 * 8.0 / self.rate_bps * 1e9;
        self.place();
    }

    /// There is something to send again: at once, unless the gap after what was sent last is not over. Time in which there was
    /// nothing to send gives no credit.
    pub fn resume(&mut self, now: Nanos) {
        if self.grid_ns < now as f64 {
            self.grid_ns = now as f64;
            self.next_ns = self.grid_ns;
        }
    }

    fn place(&mut self) {
        self.next_ns = self.grid_ns;
        if self.jitter > 0.0 {
            self.next_ns += (self.rng.unit() - 0.5) * self.jitter * self.interval_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_rate_is_exact() {
        let mut pacer = Pacer::new(0, 3e6, 1, 1000, 0.0, 0.0, Rng::stream(1, "test"));
        let mut packets = 0u64;
        while pacer.next() < 10_000_000_000 {
            pacer.take();
            packets += 1;
        }
        assert_eq!(packets, 3750);
    }

    #[test]
    fn a_new_rate_keeps_the_credit() {
        // 8 ms between packets; after 2 of them a four times higher rate: 6 ms left become 1.5 ms.
        let mut pacer = Pacer::new(0, 1e6, 1, 1000, 0.0, 0.0, Rng::stream(1, "test"));
        pacer.take();
        pacer.set_rate(2_000_000, 4e6, 1);
        assert_eq!(pacer.next(), 3_500_000);
    }

    #[test]
    fn an_idle_time_gives_no_credit_and_the_last_gap_is_kept() {
        let mut pacer = Pacer::new(0, 1e6, 1, 1000, 0.0, 0.0, Rng::stream(1, "test"));
        pacer.take_bytes(500);
        pacer.resume(1_000_000);
        assert_eq!(pacer.next(), 4_000_000);
        pacer.resume(9_000_000);
        assert_eq!(pacer.next(), 9_000_000);
        pacer.take_bytes(1000);
        assert_eq!(pacer.next(), 17_000_000);
    }

    #[test]
    fn jitter_moves_packets_by_half_of_it_at_most() {
        let mut pacer = Pacer::new(0, 1e6, 1, 1000, 0.0, 1.0, Rng::stream(1, "test"));
        pacer.take();
        for n in 1..1000u64 {
            let next = pacer.next();
            assert!(next.abs_diff(n * 8_000_000) <= 4_000_001);
            pacer.take();
        }
    }
}
