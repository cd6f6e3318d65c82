//! CUBIC's window after a reduction, in time limited by the application and after a timeout: RFC 9438, and RFC 8312 where it says more.

#![allow(clippy::disallowed_methods)] // within a tolerance

mod bench;

use bench::{config, in_flight, in_flight_with, Bench, MS, MSS};
use fairlane_tcp::{Config, Flavour, Sender};

#[test]
fn rfc_9438_4_6_cubic_multiplies_by_seven_tenths_and_plateaus_at_w_max() {
    let mut bench = in_flight(Flavour::Cubic, 100);
    bench.ack_sack(0, &[(1, 4)]);
    assert_eq!(bench.sender.ssthresh(), 70 * MSS);
    // leave recovery, then ACK a window of segments each 100 ms
    let mut acked = 100;
    bench.ack(acked);
    let (mut at_k, mut start) = (0, None);
    for _ in 0..80 {
        bench.now += 100 * MS;
        bench.ack_window(&mut acked);
        let start = *start.get_or_insert(bench.now);
        // K = cbrt(100 * 0.3 / 0.4) = 4.217 s
        if (bench.now - start) / MS <= 4_200 {
            at_k = bench.cwnd();
        }
    }
    assert!((97 * MSS..=101 * MSS).contains(&at_k), "W_cubic(K) = W_max = 100, not {at_k}");
    assert!(bench.cwnd() > 110 * MSS, "convex beyond K: {}", bench.cwnd());
}

#[test]
fn rfc_9438_4_3_cubic_is_reno_friendly_where_reno_is_faster() {
    // at 1 ms round trips the cubic hardly moves in 100 of them; W_est gains alpha = 9/17 of a segment in each
    let mut bench = in_flight(Flavour::Cubic, 20);
    bench.ack_sack(0, &[(1, 4)]);
    let mut acked = 20;
    bench.ack(acked);
    let start = bench.cwnd();
    for _ in 0..8 {
        bench.now += MS;
        bench.ack_window(&mut acked);
    }
    let gained = (bench.cwnd() - start) as f64 / MSS as f64;
    assert!((3.4..=4.8).contains(&gained), "8 rounds at 9/17: 4.2, not {gained}");
}

/// One segment each 100 ms for 20 s, then data without end: the window stays, and its time begins then.
#[test]
fn rfc_8312_5_8_time_limited_by_the_application_is_no_time_of_cubic() {
    let start = Config { initial_window_segments: 60, initial_ssthresh: Some(50 * MSS), ..config(Flavour::Cubic) };
    let mut bench = Bench { sender: Sender::new(start, 0).unwrap(), now: 0, out: vec![] };
    bench.sender.open(0, &mut bench.out);
    for n in 1..=200 {
        bench.sender.write(MSS);
        bench.sender.poll(bench.now, &mut bench.out);
        bench.now += 100 * MS;
        bench.ack(n);
    }
    assert_eq!(bench.cwnd(), 60 * MSS);
    bench.sender.write(u64::MAX);
    bench.sender.poll(bench.now, &mut bench.out);
    let mut acked = 200;
    for _ in 0..10 {
        bench.now += 100 * MS;
        bench.ack_window(&mut acked);
    }
    // W_est gains a segment in each round trip; with the 20 s, W(t) would be thousands
    assert!((68 * MSS..=71 * MSS).contains(&bench.cwnd()), "{}", bench.cwnd());
}

/// By hand. The first ACK after recovery finds W_cubic(0) below W_est, and adds alpha / cwnd for each segment. A round trip later an ACK goes
/// (W_cubic(t + RTT) - cwnd) / cwnd of a segment, however many segments it covers; where octets are counted, as many times as the segments
/// that it covers, at most two.
#[test]
fn rfc_9438_4_4_cubic_grows_by_acks_or_by_what_they_cover() {
    for (byte_counting, covers, times) in [(false, 1, 1.0), (false, 2, 1.0), (true, 1, 1.0), (true, 2, 2.0), (true, 5, 2.0)] {
        let mut bench = in_flight_with(Config { byte_counting, ..config(Flavour::Cubic) }, 100);
        bench.ack(1);
        bench.ack_sack(1, &[(2, 5)]);
        bench.ack(101);
        let epoch = bench.cwnd() as f64 / 1e3;
        bench.ack(102);
        let before = bench.cwnd() as f64 / 1e3;
        assert!((before - epoch - 9.0 / 17.0 / epoch).abs() < 0.002, "{before} after {epoch}: the Reno-friendly region");
        bench.now += 100 * MS;
        bench.ack(102 + covers);
        let srtt = bench.sender.srtt().unwrap() as f64 * 1e-9;
        // the window before the reduction had grown by the ACK of the first segment
        let (w_max, k) = (100.01, f64::cbrt((100.01 - epoch) / 0.4));
        let step = (0.4 * (0.1 + srtt - k).powi(3) + w_max - before) / before * times;
        let grown = bench.cwnd() as f64 / 1e3 - before;
        assert!((grown - step).abs() < 0.002, "{byte_counting} {covers}: {grown}, by hand {step}");
    }
}

/// By hand: 8 s after a reduction from 100 segments the window is above W_max, at 100 + 0.4 x^3. Then the application has one segment at a time
/// for 20 s. When nine round trips have passed since the first ACK of full windows again, the window is 100 + 0.4 (x + 0.9)^3.
#[test]
fn rfc_9438_4_2_time_limited_by_the_application_is_not_in_t() {
    let start = Config { initial_window_segments: 100, initial_ssthresh: Some(2 * MSS), ..config(Flavour::Cubic) };
    let mut bench = Bench { sender: Sender::new(start, 0).unwrap(), now: 0, out: vec![] };
    bench.sender.write(100 * MSS);
    bench.open();
    bench.ack_sack(0, &[(1, 4)]);
    bench.ack(100);
    let rounds = |bench: &mut Bench, rounds: usize, limited: bool| {
        for _ in 0..rounds {
            let flight = bench.sender.flight_size();
            bench.sender.write(if limited { MSS } else { 2 * bench.cwnd() - flight });
            bench.sender.poll(bench.now, &mut bench.out);
            bench.now += 100 * MS;
            let acknowledged = bench.sender.acknowledged() / MSS;
            for n in 1..=bench.sender.flight_size() / MSS {
                bench.ack(acknowledged + n);
            }
        }
        bench.cwnd() as f64 / 1e3
    };
    let busy = rounds(&mut bench, 80, false);
    assert!(busy > 115.0, "{busy}");
    rounds(&mut bench, 100, true);
    let before = rounds(&mut bench, 100, true);
    let after = rounds(&mut bench, 10, false);
    let by_hand = 100.0 + 0.4 * (f64::cbrt((before - 100.0) / 0.4) + 0.9).powi(3);
    assert!((after - by_hand).abs() < 3.0, "{before}, then {after}, by hand {by_hand}");
}

/// By hand: W(t) = 70 + 0.4 t^3 or W_est = 70 + 5.3 t, whichever is larger.
#[test]
fn rfc_8312_4_7_cubic_begins_at_its_plateau_after_a_timeout() {
    let mut bench = in_flight(Flavour::Cubic, 100);
    assert_eq!(bench.fire_timer(), [0]);
    assert_eq!(bench.sender.ssthresh(), 70 * MSS, "ssthresh by beta");
    let mut acked = 100;
    bench.ack(acked);
    let (mut start, mut seen) = (None, vec![]);
    for _ in 0..120 {
        bench.now += 100 * MS;
        bench.ack_window(&mut acked);
        if bench.cwnd() >= bench.sender.ssthresh() {
            let start = *start.get_or_insert(bench.now);
            let tenths = (bench.now - start) / (100 * MS);
            if [10, 30, 50, 100].contains(&tenths) {
                seen.push((tenths, bench.cwnd() / MSS));
            }
        }
    }
    assert_eq!(seen.len(), 4);
    for ((tenths, window), by_hand) in seen.into_iter().zip([75, 86, 120, 470]) {
        assert!(window.abs_diff(by_hand) <= by_hand / 20, "{} s: {window}, by hand {by_hand}", tenths / 10);
    }
}
