//! The average window of a flow that loses one packet in so many, beside the tables of the texts.

mod dumbbell;

use dumbbell::Settings;
use fairlane_tcp::{Config, Flavour, Nanos};

/// Segments in a round trip, over five losses after the first three, on a link without a queue. `about`: this number; slow start ends there, as
/// a cubic flow comes near its average only after many losses.
fn average_window(flavour: Flavour, rtt: Nanos, packets_a_loss: u64, about: u64) -> f64 {
    let config = Config {
        flavour,
        mss: 960,
        delayed_ack: false,
        max_window: 10_000 * 960,
        initial_ssthresh: Some(about * 960),
        ..Config::default()
    };
    let outcome = dumbbell::run(Settings {
        config,
        flows: 1,
        rate_bps: 10_000_000_000,
        rtt,
        buffer_packets: 10_000,
        red: None,
        lost: (1..=8).map(|n| n * packets_a_loss).collect(),
        seed: 1,
        until: 12 * packets_a_loss / about * rtt,
        starts: vec![0],
    });
    assert_eq!((outcome.timeouts, outcome.drops.len()), (0, 8), "{flavour:?}");
    (5 * packets_a_loss) as f64 / ((outcome.drops[7].0 - outcome.drops[2].0) as f64 / rtt as f64)
}

/// Tables 1 and 2 of [RFC 9438 sec 5.1]: Reno, and CUBIC with C = 0.4. Their "Loss Rate" is one packet of so many.
#[test]
fn rfc_9438_5_1_average_windows_are_those_of_the_tables() {
    let mut rows = vec![(100, 1_000, 38, 38), (10, 1_000, 38, 38), (100, 10_000, 120, 187)];
    if !cfg!(debug_assertions) {
        rows.extend([(10, 10_000, 120, 120), (100, 100_000, 379, 1054)]);
    }
    let mut failures = vec![];
    for (rtt_ms, packets_a_loss, reno, cubic) in rows {
        for (flavour, table) in [(Flavour::Sack, reno), (Flavour::Cubic, cubic)] {
            let found = average_window(flavour, rtt_ms * 1_000_000, packets_a_loss, table);
            println!("{flavour:?}, {rtt_ms} ms, one loss in {packets_a_loss}: {found:.1}, table {table}");
            if (found / table as f64 - 1.0).abs() > 0.1 {
                failures.push((flavour, rtt_ms, packets_a_loss, found, table));
            }
        }
    }
    assert!(failures.is_empty(), "{failures:?}");
}
