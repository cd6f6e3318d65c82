//! The timestamps option [RFC 7323]: which one is echoed, and what an old one says of its segment.

mod bench;

use bench::{config, MS, MSS};
use fairlane_tcp::{Config, Flags, Flavour, Nanos, Receiver, Segment, Sender, Timestamps};

fn with_timestamps(flavour: Flavour) -> Config {
    Config { timestamps: true, ..config(flavour) }
}

/// A receiver, and the ACKs (segments acknowledged, TSecr) that a data segment makes it send.
struct Receiving(Receiver);

impl Receiving {
    fn new(config: Config) -> Self {
        let mut receiver = Receiver::new(config, 0).unwrap();
        receiver.listen_without_handshake(0);
        Receiving(receiver)
    }

    fn takes(&mut self, now: Nanos, number: u32, value: u32) -> Vec<(u32, u32)> {
        let mut out = vec![];
        let timestamps = Some(Timestamps { value, echo: 0 });
        let segment = Segment { seq: 1 + number * 1000, flags: Flags::ACK, payload_len: 1000, timestamps, ..Segment::default() };
        self.0.on_segment(now, &segment, false, &mut out);
        out.iter().map(|t| ((t.segment.ack - 1) / 1000, t.segment.timestamps.unwrap().echo)).collect()
    }
}

/// The two examples of [RFC 7323 sec 4.3], with segments A = 0, B = 1 and so on: each line is what the ACK says, and TSecr.
#[test]
fn rfc_7323_4_3_the_oldest_unacknowledged_segment_is_echoed() {
    // the text's receiver acknowledges three segments at once; this one two
    let mut receiver = Receiving::new(with_timestamps(Flavour::Sack));
    assert_eq!(receiver.takes(MS, 0, 1), []);
    assert_eq!(receiver.takes(2 * MS, 1, 2), [(2, 1)], "(A): the earliest unacknowledged segment");
    assert_eq!(receiver.takes(3 * MS, 2, 3), []);
    assert_eq!(receiver.takes(4 * MS, 3, 4), [(4, 3)], "the first segment since the last ACK");

    let mut receiver = Receiving::new(Config { delayed_ack: false, ..with_timestamps(Flavour::Sack) });
    let example = [(0, 1, (1, 1)), (2, 1, (1, 1)), (1, 2, (3, 2)), (4, 5, (3, 2)), (3, 4, (5, 4))];
    for (number, value, ack) in example {
        assert_eq!(receiver.takes(MS, number, value), [ack], "(B), (C): segment {number}, TSval {value}");
    }
    assert_eq!(receiver.takes(MS, 0, 6), [(5, 4)], "[RFC 7323 sec 5.3] R2, R3: a segment outside the window leaves no timestamp");
}

/// The example of [RFC 7323 sec 5.3]: B is lost and sent again; C to Z are accepted with older timestamps than B's, before it comes. What
/// comes after it with an older timestamp is acknowledged and dropped.
#[test]
fn rfc_7323_5_3_old_segments_are_acknowledged_and_dropped() {
    let mut receiver = Receiving::new(Config { delayed_ack: false, ..with_timestamps(Flavour::Sack) });
    assert_eq!(receiver.takes(MS, 0, 1), [(1, 1)]);
    assert_eq!(receiver.takes(MS, 2, 1), [(1, 1)]);
    assert_eq!(receiver.takes(MS, 3, 1), [(1, 1)]);
    assert_eq!(receiver.takes(2 * MS, 1, 2), [(4, 2)], "B fills the hole; C and D are not inspected again");
    assert_eq!(receiver.takes(2 * MS, 4, 1), [(4, 2)], "R1: an acknowledgment, and the segment is dropped");
    assert_eq!(receiver.0.stats().duplicates, 1);
    assert_eq!(receiver.takes(2 * MS, 4, 3), [(5, 3)]);
    assert_eq!(receiver.takes(3 * MS, 5, 1 << 31 | 4), [(5, 3)], "more than half of the clock ahead is behind");
    // [RFC 7323 sec 5.5]: after an idle time of half of the clock, TS.Recent is invalid
    assert_eq!(receiver.takes(3 * MS + (1 << 31) * 1000, 5, 1 << 31 | 4), [(6, 1 << 31 | 4)]);
}

#[test]
fn rfc_7323_5_3_old_acks_are_acknowledged_and_dropped() {
    for flavour in [Flavour::Reno, Flavour::Sack, Flavour::Cubic] {
        let mut sender = Sender::new(with_timestamps(flavour), 0).unwrap();
        let mut out = vec![];
        sender.write(u64::MAX);
        sender.open(0, &mut out);
        let mut ack = |n: u64, value: u32| {
            out.clear();
            let timestamps = Some(Timestamps { value, echo: 0 });
            let segment = Segment { ack: (1 + n * MSS) as u32, flags: Flags::ACK, window: 8192, timestamps, ..Segment::default() };
            sender.on_segment(100 * MS, &segment, &mut out);
            (sender.acknowledged() / MSS, out.iter().filter(|t| t.segment.payload_len > 0).count(), out.len())
        };
        assert_eq!(ack(2, 50), (2, 3, 3), "{flavour:?}");
        assert_eq!(ack(3, 49), (2, 0, 1), "{flavour:?}: an acknowledgment, and no data");
        assert_eq!(ack(3, 50), (3, 2, 2), "{flavour:?}: the same time is no older");
    }
}

/// By hand [RFC 7323 sec G]: the first sample is 100 ms; at the second, of 180 ms, 11 segments are in flight, so ExpectedSamples is 6, alpha'
/// 1/48 and beta' 1/24. SRTT = 100 + 80 / 48 ms, RTTVAR = 50 + (80 - 50) / 24 ms.
#[test]
fn rfc_7323_4_2_a_sample_counts_by_how_many_a_round_trip_gives() {
    let mut sender = Sender::new(with_timestamps(Flavour::Sack), 0).unwrap();
    let mut out = vec![];
    sender.write(u64::MAX);
    sender.open(0, &mut out);
    for (now, acknowledged, echo, flight) in [(100, 2, 0, 11), (200, 3, 20, 12)] {
        let timestamps = Some(Timestamps { value: 1, echo: echo * 1000 });
        let segment = Segment { ack: (1 + acknowledged * MSS) as u32, flags: Flags::ACK, window: 8192, timestamps, ..Segment::default() };
        sender.on_segment(now * MS, &segment, &mut out);
        assert_eq!(sender.flight_size(), flight * MSS);
    }
    let (srtt, rttvar) = (100e6 + 80e6 / 48.0, 50e6 + 30e6 / 24.0);
    assert!((sender.srtt().unwrap() as f64 - srtt).abs() < 10.0, "{:?}", sender.srtt());
    assert!((sender.rto() as f64 - (srtt + 4.0 * rttvar)).abs() < 50.0, "{}", sender.rto());
}
