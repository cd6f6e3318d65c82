//! A link that loses and reorders at random: whatever it does, every byte arrives in order and no connection stalls; windows
//! keep their bounds.

use fairlane_tcp::{
    wire, Config, Flavour, LossDetection, Nanos, Receiver, ReductionBase, RttEstimator, SackRecovery, Segment, Sender, Transmit,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

const MS: Nanos = 1_000_000;

#[derive(Clone, Debug)]
struct Link {
    loss_percent: u64,
    reorder_percent: u64,
    seed: u64,
}

impl Link {
    fn random(&mut self, below: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % below
    }

    /// When the segment arrives, if it does.
    fn carry(&mut self, now: Nanos) -> Option<Nanos> {
        if self.random(100) < self.loss_percent {
            return None;
        }
        let extra = if self.random(100) < self.reorder_percent { self.random(30) } else { 0 };
        Some(now + (10 + extra) * MS)
    }
}

/// What a header is after it went over the wire.
fn over_the_wire(t: &Transmit) -> Segment {
    let mut bytes = vec![];
    let len = wire::emit(&wire::Header { source_port: 1, destination_port: 2, segment: t.segment }, &mut bytes).unwrap();
    wire::parse(&bytes, len + t.segment.payload_len as usize).unwrap().segment
}

fn transfer(config: &Config, iss: u32, bytes: u64, mut link: Link) -> (Sender, Receiver, Nanos) {
    let mut sender = Sender::new(config.clone(), iss).unwrap();
    let mut receiver = Receiver::new(config.clone(), iss ^ 0x5555_5555).unwrap();
    if !config.handshake {
        receiver.listen_without_handshake(iss);
    }
    sender.write(bytes);
    sender.close();
    let (mut now, mut order) = (0, 0);
    let mut in_air: BTreeMap<(Nanos, u64), (bool, Segment)> = BTreeMap::new();
    let mut out = vec![];
    sender.open(now, &mut out);
    for step in 0.. {
        assert!(step < 2_000_000, "stalled: {sender:?}");
        for (forth, t) in out.drain(..).map(|t| (true, t)).collect::<Vec<_>>() {
            if let Some(at) = link.carry(now) {
                order += 1;
                in_air.insert((at, order), (forth, over_the_wire(&t)));
            }
        }
        assert!(sender.cwnd() >= u64::from(config.mss).min(536) && sender.cwnd() <= config.max_window, "cwnd {}", sender.cwnd());
        assert!(sender.ssthresh() >= 2 * u64::from(config.mss).min(config.max_window / 2));
        assert!(sender.flight_size() <= config.max_window + 1, "flight {}", sender.flight_size());
        if sender.is_done() {
            break;
        }
        assert!(sender.next_timer().is_some(), "no timer and not done: {sender:?}");
        let arrival = in_air.first_key_value().map(|(k, _)| k.0);
        let timers = [sender.next_timer(), receiver.next_timer()];
        now = arrival.into_iter().chain(timers.into_iter().flatten()).min().unwrap();
        let mut back = vec![];
        if arrival == Some(now) {
            let (_, (forth, segment)) = in_air.pop_first().unwrap();
            if forth {
                receiver.on_segment(now, &segment, false, &mut back);
            } else {
                sender.on_segment(now, &segment, &mut out);
            }
        } else if timers[0] == Some(now) {
            sender.on_timer(now, &mut out);
        } else {
            receiver.on_timer(now, &mut back);
        }
        for t in back {
            if let Some(at) = link.carry(now) {
                order += 1;
                in_air.insert((at, order), (false, over_the_wire(&t)));
            }
        }
    }
    (sender, receiver, now)
}

fn configs() -> impl Strategy<Value = Config> {
    let flags = any::<(bool, bool, bool, bool, bool)>();
    (0..Flavour::ALL.len(), 1u32..1500, 1u32..12, 2u64..100, flags, any::<(bool, bool, bool, bool, bool, bool)>()).prop_map(
        |(
            flavour,
            mss,
            iw,
            window,
            (delayed_ack, limited_transmit, timestamps, ecn, handshake),
            (base, sack1, ticks, guard, hold_ssthresh, rack),
        )| Config {
            flavour: Flavour::ALL[flavour],
            mss,
            initial_window_segments: iw,
            // a whole number of units of the advertised window, or it would be rounded down
            max_window: (window * u64::from(mss)).next_multiple_of(16),
            delayed_ack,
            limited_transmit,
            timestamps,
            ecn,
            handshake,
            loss_detection: if rack && Flavour::ALL[flavour].uses_sack() { LossDetection::Rack } else { LossDetection::DupAck },
            sack_recovery: if sack1 && !rack { SackRecovery::Sack1 } else { SackRecovery::Rfc6675 },
            rtt_estimator: if ticks {
                RttEstimator::Ticks
            } else if guard {
                RttEstimator::Linux
            } else {
                RttEstimator::Rfc6298
            },
            avoid_multiple_fast_retransmits: guard,
            hold_ssthresh,
            reduction_base: if base { ReductionBase::FlightSize } else { ReductionBase::Window },
            ..Config::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn every_byte_arrives(
        config in configs(), iss in prop_oneof![any::<u32>(), Just(u32::MAX - 5000)], segments in 0u64..300,
        tail in 0u64..1500, loss_percent in 0u64..30, reorder_percent in 0u64..50, seed: u64,
    ) {
        let bytes = segments * u64::from(config.mss) + tail.min(u64::from(config.mss) - 1);
        let (sender, receiver, _) = transfer(&config, iss, bytes, Link { loss_percent, reorder_percent, seed });
        prop_assert_eq!(receiver.delivered(), bytes);
        prop_assert!(receiver.is_finished());
        prop_assert_eq!(sender.acknowledged(), bytes);
        let stats = sender.stats();
        if loss_percent == 0 && reorder_percent == 0 {
            prop_assert_eq!(stats.loss_events(), 0);
            prop_assert_eq!(stats.segments_retransmitted, 0);
        }
    }

    /// Segments from anywhere change nothing for the worse: no panic, and no acknowledgement of what was not sent.
    #[test]
    fn hostile_segments_are_survived(
        config in configs(), segments in prop::collection::vec(any::<(u32, u32, u8, u16, u32, (u32, u32))>(), 0..60),
    ) {
        let mut sender = Sender::new(config.clone(), 0).unwrap();
        let mut receiver = Receiver::new(config, 0).unwrap();
        sender.write(u64::MAX);
        let mut out = vec![];
        sender.open(0, &mut out);
        let mut now = 0;
        for (seq, ack, flags, window, len, block) in segments {
            let mut segment = Segment {
                seq: seq % 100_000, ack: ack % 100_000, flags: fairlane_tcp::Flags(flags), window, payload_len: len % 65_536,
                ..Segment::default()
            };
            segment.sack.push(block.0 % 100_000, block.1 % 100_000);
            now += MS * u64::from(window % 700);
            sender.on_segment(now, &segment, &mut out);
            receiver.on_segment(now, &segment, flags & 1 == 0, &mut out);
            sender.on_timer(now, &mut out);
            receiver.on_timer(now, &mut out);
            prop_assert!(sender.flight_size() <= 1 << 30);
            out.clear();
        }
    }
}

#[test]
fn sequence_numbers_wrap_in_a_long_transfer() {
    for flavour in Flavour::ALL {
        let config = Config { flavour, mss: 60_000, max_window: 1 << 26, ..Config::default() };
        let bytes = (1u64 << 32) + 12_345;
        let (_, receiver, _) = transfer(&config, 1 << 31, bytes, Link { loss_percent: 1, reorder_percent: 0, seed: 7 });
        assert_eq!(receiver.delivered(), bytes, "{flavour:?}");
    }
}
