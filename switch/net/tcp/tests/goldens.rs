//! The window of each flavour over time, with one lost segment and with a burst: snapshots that change only on purpose.
//!
//! RTT 100 ms, no queue: all that is sent in a round is acknowledged in the next, in order. One line per round trip: window and
//! threshold in segments, what was sent, and what of it was lost. Flavours that pace send all through a round: `paced.rs` has theirs.

use fairlane_tcp::{Config, Flavour, Nanos, Receiver, ReductionBase, Sender, Transmit};
use std::collections::BTreeSet;
use std::fmt::Write;

const MS: Nanos = 1_000_000;

/// Runs 24 rounds; the first transmission of each segment in `lost` is dropped.
fn trace(flavour: Flavour, lost: &[u64]) -> String {
    let config = Config {
        flavour,
        mss: 1000,
        initial_window_segments: 2,
        initial_ssthresh: Some(16_000),
        max_window: 1 << 20,
        delayed_ack: false,
        handshake: false,
        reduction_base: ReductionBase::FlightSize,
        ..Config::default()
    };
    let mut sender = Sender::new(config.clone(), 0).unwrap();
    let mut receiver = Receiver::new(config, 0).unwrap();
    receiver.listen_without_handshake(0);
    sender.write(u64::MAX);
    let mut lost: BTreeSet<u64> = lost.iter().copied().collect();
    let mut table = String::from("  ms  cwnd  ssthresh  sent\n");
    let mut out: Vec<Transmit> = vec![];
    sender.open(0, &mut out);
    let mut now = 0;
    for _ in 0..24 {
        let mut line = String::new();
        let mut acks = vec![];
        for t in out.drain(..) {
            let number = u64::from(t.segment.seq - 1) / 1000;
            let mark = if lost.remove(&number) { "x" } else { "" };
            if mark.is_empty() {
                receiver.on_segment(now, &t.segment, false, &mut acks);
            }
            write!(line, " {number}{}{mark}", if t.retransmission { "r" } else { "" }).unwrap();
        }
        writeln!(table, "{:4} {:5.1} {:9.1} {}", now / MS, sender.cwnd() as f64 / 1e3, sender.ssthresh() as f64 / 1e3, ranges(&line))
            .unwrap();
        now += 100 * MS;
        if acks.is_empty() {
            now = sender.next_timer().unwrap();
        }
        for ack in acks {
            sender.on_segment(now, &ack.segment, &mut out);
        }
        if sender.next_timer().is_some_and(|at| at <= now) {
            sender.on_timer(now, &mut out);
        }
    }
    table
}

/// "1 2 3 5x" as " 1-3 5x".
fn ranges(line: &str) -> String {
    let mut result: Vec<String> = vec![];
    let mut run: Option<(u64, u64)> = None;
    let flush = |run: &mut Option<(u64, u64)>, result: &mut Vec<String>| {
        if let Some((a, b)) = run.take() {
            result.push(if a == b { a.to_string() } else { format!("{a}-{b}") });
        }
    };
    for word in line.split_whitespace() {
        match (word.parse::<u64>(), run) {
            (Ok(n), Some((a, b))) if n == b + 1 => run = Some((a, n)),
            (Ok(n), _) => {
                flush(&mut run, &mut result);
                run = Some((n, n));
            }
            (Err(_), _) => {
                flush(&mut run, &mut result);
                result.push(word.to_string());
            }
        }
    }
    flush(&mut run, &mut result);
    result.iter().fold(String::new(), |line, word| line + " " + word)
}

#[test]
fn windows_after_a_single_loss() {
    for flavour in Flavour::ALL.into_iter().filter(|f| !f.is_paced()) {
        insta::assert_snapshot!(format!("single_loss_{}", flavour.name()), trace(flavour, &[40]));
    }
}

#[test]
fn windows_after_a_burst_of_losses() {
    for flavour in Flavour::ALL.into_iter().filter(|f| !f.is_paced()) {
        insta::assert_snapshot!(format!("burst_loss_{}", flavour.name()), trace(flavour, &[40, 41, 44, 47]));
    }
}

#[test]
fn windows_when_every_second_segment_is_lost() {
    let lost: Vec<u64> = (40..60).step_by(2).collect();
    for flavour in [Flavour::NewReno, Flavour::Sack] {
        insta::assert_snapshot!(format!("every_second_lost_{}", flavour.name()), trace(flavour, &lost));
    }
}
