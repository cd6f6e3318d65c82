//! The growth of the window in congestion avoidance: one segment for a window of acknowledgements, for every window and segment size.

use fairlane_tcp::{seq, Config, Flags, Flavour, Nanos, Segment, Sender};
use proptest::prelude::*;

const MS: Nanos = 1_000_000;

/// An established sender in congestion avoidance, with `window` segments in flight.
fn sender(flavour: Flavour, mss: u32, window: u32, byte_counting: bool) -> Sender {
    let config = Config {
        flavour,
        mss,
        initial_window_segments: window,
        initial_ssthresh: Some(2 * u64::from(mss)),
        max_window: 1 << 30,
        byte_counting,
        handshake: false,
        ..Config::default()
    };
    let mut sender = Sender::new(config, 0).unwrap();
    sender.write(u64::MAX);
    sender.open(0, &mut vec![]);
    sender
}

/// BBR has no such window, and Prague's, in whole segments, has unit tests.
fn by_window() -> Vec<Flavour> {
    Flavour::ALL.into_iter().filter(|flavour| !flavour.is_paced()).collect()
}

/// Acknowledges `segments` segments, `each` at a time.
fn acknowledge(sender: &mut Sender, mss: u32, segments: u32, each: u32) {
    let mut left = segments;
    let mut acknowledged = sender.acknowledged();
    while left > 0 {
        let now = each.min(left);
        left -= now;
        acknowledged += u64::from(now * mss);
        let ack = Segment { flags: Flags::ACK, ack: seq::to_wire(0, 1 + acknowledged), window: u16::MAX, ..Segment::default() };
        sender.on_segment(MS, &ack, &mut vec![]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// [RFC 5681 sec 3.1]: "increments cwnd by roughly 1 full-sized segment per RTT". Equation (3), `cwnd += SMSS * SMSS / cwnd`, adds
    /// at most 1 / W of a segment per ACK; the window grows meanwhile, so W ACKs take W segments to more than sqrt(W^2 + 2 W).
    #[test]
    fn a_window_of_acks_adds_one_segment(flavour in prop::sample::select(by_window()), mss in 60u32..=9000, window in 2u32..=2000, byte_counting: bool, each in 1u32..=2) {
        // without byte counting, delayed ACKs halve the growth [RFC 5681 sec 3.1]; CUBIC counts always
        let each = if byte_counting || flavour == Flavour::Cubic { each } else { 1 };
        let mut sender = sender(flavour, mss, window, byte_counting);
        let before = sender.cwnd();
        acknowledge(&mut sender, mss, window, each);
        let grown = (sender.cwnd() - before) as f64;
        let (mss, window) = (f64::from(mss), f64::from(window));
        prop_assert!(grown <= mss, "{} of {} bytes", grown, mss);
        // two segments in one ACK grow the window once, after the second
        let least = mss * ((window * window + 2.0 * window).sqrt() - window) - 1.0;
        prop_assert!(grown >= least, "{} of {} bytes, at least {}", grown, mss, least);
    }

    /// ns-2 holds the window as a real number of segments, `cwnd_ += 1 / cwnd_`: a sender here stays within one byte of it.
    #[test]
    fn growth_is_that_of_real_numbers(mss in 60u32..=9000, window in 2u32..=200, rounds in 1u32..50) {
        let mut sender = sender(Flavour::Reno, mss, window, false);
        let mut real = f64::from(window);
        for _ in 0..rounds {
            let segments = real as u32;
            acknowledge(&mut sender, mss, segments, 1);
            (0..segments).for_each(|_| real += 1.0 / real);
        }
        let error = sender.cwnd() as f64 - real * f64::from(mss);
        prop_assert!(error.abs() < 2.0, "{} bytes off {}", error, real * f64::from(mss));
    }

    /// The remainder that a large window left is less than a byte for the small window after a timeout too.
    #[test]
    fn a_reduction_does_not_magnify_the_remainder(mss in 60u32..=9000, window in 20u32..=2000, acks in 1u32..20) {
        let mut sender = sender(Flavour::Reno, mss, window, true);
        acknowledge(&mut sender, mss, acks, 1);
        sender.on_timer(sender.next_timer().unwrap(), &mut vec![]);
        let ssthresh = sender.ssthresh();
        while sender.cwnd() < ssthresh {
            acknowledge(&mut sender, mss, 1, 1);
        }
        let before = sender.cwnd();
        acknowledge(&mut sender, mss, 1, 1);
        let step = u64::from(mss) * u64::from(mss) / before;
        prop_assert!((step..=step + 1).contains(&(sender.cwnd() - before)));
    }
}
