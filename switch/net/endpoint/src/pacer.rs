//! When the next data packet of a paced flow is due.

use crate::Nanos;
use fairlane_random::Rng;

/// An end that was kept waiting sends at once what it owes of so long; the rest is forgiven, for a long burst is not what a paced
/// source would have sent.
const CATCH_UP_NS: f64 = 20e6;

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
    /// Packets that were due and are not sent, for lateness.
    pub forgiven_packets: u64,
}

impl Pacer {
    /// `phase`: part of an interval, 0 to 1, before the first packet.
    pub fn new(now: Nanos, rate_bps: f64, burst_packets: u32, packet_bytes: u32, phase: f64, jitter: f64, rng: Rng) -> Pacer {
        let packet_bits = f64::from(packet_bytes) * 8.0;
        let interval_ns = packet_bits * f64::from(burst_packets) / rate_bps * 1e9;
        let grid_ns = now as f64 + phase * interval_ns;
        Pacer { packet_bits, rate_bps, burst_packets, interval_ns, jitter, rng, grid_ns, next_ns: grid_ns, forgiven_packets: 0 }
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
    pub fn take(&mut self, now: Nanos) -> u32 {
        self.grid_ns += self.interval_ns;
        let late_ns = now as f64 - self.grid_ns;
        if late_ns >= 0.0 {
            let owed = (late_ns / self.interval_ns).floor() + 1.0;
            let forgiven = (owed - (CATCH_UP_NS / self.interval_ns).floor()).max(0.0);
            self.forgiven_packets += forgiven as u64 * u64::from(self.burst_packets);
            self.grid_ns += forgiven * self.interval_ns;
        }
        self.place();
        self.burst_packets
    }

    /// The burst that is due goes out now, and is of so many bytes: the gap follows them.
    pub fn take_bytes(&mut self, now: Nanos, bytes: u64) {
        self.grid_ns += bytes as f64 * 8.0 / self.rate_bps * 1e9;
        self.grid_ns = self.grid_ns.max(now as f64 - CATCH_UP_NS);
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
    use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

    #[test]
    fn the_mean_rate_is_exact() {
        let mut pacer = Pacer::new(0, 3e6, 1, 1000, 0.0, 0.0, Rng::stream(1, "test"));
        let mut packets = 0u64;
        while pacer.next() < 10_000_000_000 {
            pacer.take(pacer.next());
            packets += 1;
        }
        assert_eq!(packets, 3750);
    }

    #[test]
    fn a_new_rate_keeps_the_credit() {
        // 8 ms between packets; after 2 of them a four times higher rate: 6 ms left become 1.5 ms.
        let mut pacer = Pacer::new(0, 1e6, 1, 1000, 0.0, 0.0, Rng::stream(1, "test"));
        pacer.take(0);
        pacer.set_rate(2_000_000, 4e6, 1);
        assert_eq!(pacer.next(), 3_500_000);
    }

    /// What is due by an instant, as a driver asks for it.
    fn due(pacer: &mut Pacer, now: Nanos) -> u32 {
        let mut sent = 0;
        while pacer.next() <= now {
            sent += pacer.take(now);
        }
        sent
    }

    #[test]
    fn a_long_stall_is_not_made_up_in_a_burst() {
        // 1 ms a packet: the one that is due, and 20 ms of what was missed.
        let mut pacer = Pacer::new(0, 8e6, 1, 1000, 0.0, 0.0, Rng::stream(1, "test"));
        assert_eq!((due(&mut pacer, 0), due(&mut pacer, 500_000_000)), (1, 21));
        assert_eq!((pacer.forgiven_packets, pacer.next()), (500 - 21, 501_000_000));
        // A packet a second: one after a stall, and the grid stays.
        let mut pacer = Pacer::new(0, 8e3, 1, 1000, 0.0, 0.0, Rng::stream(1, "test"));
        let instants = [0, 500, 1000, 9500, 9900, 10_000];
        assert_eq!(instants.map(|ms| due(&mut pacer, ms * 1_000_000)), [1, 0, 1, 1, 0, 1]);
    }

    proptest! {
        #[test]
        fn lateness_does_not_lower_the_rate(rate_bps in 8e3..10e6, bytes in 60u32..1500, seed: u64, jitter in 0.0..1.0) {
            let (mut pacer, mut late) = (Pacer::new(0, rate_bps, 1, bytes, 0.0, jitter, Rng::stream(seed, "jitter")), Rng::stream(seed, "late"));
            let (mut now, mut sent) = (0, 0);
            while now < 20_000_000_000 {
                sent += due(&mut pacer, now);
                now = pacer.next() + late.up_to(5_000_000);
            }
            let expected = 20.0 * rate_bps / f64::from(bytes * 8);
            prop_assert_eq!(pacer.forgiven_packets, 0);
            prop_assert!((f64::from(sent) - expected).abs() <= 2.0 + 0.005 * rate_bps / f64::from(bytes) / 8.0, "{} {}", sent, expected);
        }

        #[test]
        fn changing_rates_send_their_integral(steps in prop::collection::vec((1_000_000u64..300_000_000, 8e3..4e6), 1..40)) {
            let mut pacer = Pacer::new(0, 1e5, 1, 1000, 0.0, 0.0, Rng::stream(1, "test"));
            let (mut now, mut sent, mut bits, mut rate) = (0, 0, 0.0, 1e5);
            for (length, new_rate) in steps {
                while pacer.next() < now + length {
                    sent += pacer.take(pacer.next());
                }
                bits += rate * length as f64 * 1e-9;
                (now, rate) = (now + length, new_rate);
                pacer.set_rate(now, rate, 1);
            }
            prop_assert!((f64::from(sent) - bits / 8000.0).abs() <= 1.01, "{} {}", sent, bits / 8000.0);
        }
    }

    #[test]
    fn an_idle_time_gives_no_credit_and_the_last_gap_is_kept() {
        let mut pacer = Pacer::new(0, 1e6, 1, 1000, 0.0, 0.0, Rng::stream(1, "test"));
        pacer.take_bytes(0, 500);
        pacer.resume(1_000_000);
        assert_eq!(pacer.next(), 4_000_000);
        pacer.resume(9_000_000);
        assert_eq!(pacer.next(), 9_000_000);
        pacer.take_bytes(9_000_000, 1000);
        assert_eq!(pacer.next(), 17_000_000);
    }

    #[test]
    fn jitter_moves_packets_by_half_of_it_at_most() {
        let mut pacer = Pacer::new(0, 1e6, 1, 1000, 0.0, 1.0, Rng::stream(1, "test"));
        pacer.take(0);
        for n in 1..1000u64 {
            let next = pacer.next();
            assert!(next.abs_diff(n * 8_000_000) <= 4_000_001);
            pacer.take(next);
        }
    }
}
