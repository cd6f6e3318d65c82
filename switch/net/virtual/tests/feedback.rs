//! Flows whose receivers keep their own time: reports, stamps, gaps, against numbers worked out by hand.

mod common;

use std::sync::{Arc, Mutex};

use common::*;
use fairlane_endpoint::algorithm::{Action, Actions, Fault, Feedback, Gap, Interests, ReceiverAlgorithm, ReceptionState, SenderAlgorithm};
use fairlane_endpoint::record::FlowRecord;
use fairlane_virtual::{ChannelConfig, FlowKind, FlowSpec, LossModel, Nanos, Network};

fn link(rate_bps: u64, delay_ns: u64, queue_packets: u32) -> ChannelConfig {
    ChannelConfig { rate_bps: Some(rate_bps), delay_ns, queue_packets, ..ChannelConfig::default() }
}

/// What the two halves were told.
#[derive(Default)]
struct Heard {
    feedback: Vec<(Nanos, Feedback<'static>)>,
    gaps: Vec<(Nanos, Gap)>,
    receptions: Vec<(Nanos, ReceptionState)>,
}

/// A constant rate, stamped with what was measured last.
struct Stamping {
    rate_bps: f64,
    heard: Arc<Mutex<Heard>>,
}

impl SenderAlgorithm for Stamping {
    fn on_start(&mut self, _: Nanos, actions: &mut Actions) -> Result<(), Fault> {
        actions.push(Action::SetRate { rate_bps: self.rate_bps, burst_packets: 1 });
        Ok(())
    }

    fn on_feedback(&mut self, now: Nanos, feedback: &Feedback, actions: &mut Actions) -> Result<(), Fault> {
        self.heard.lock().expect("one thread").feedback.push((now, Feedback { header: &[], ..*feedback }));
        actions.push(Action::StampData { rtt_s: feedback.rtt_s.expect("in each report") });
        Ok(())
    }
}

/// A report each period, and one for each gap.
struct Reporting {
    period_s: f64,
    at_s: f64,
    heard: Arc<Mutex<Heard>>,
}

impl ReceiverAlgorithm for Reporting {
    fn interests(&self) -> Interests {
        Interests { gaps: true, ..Interests::default() }
    }

    fn on_start(&mut self, _: Nanos, actions: &mut Actions) -> Result<(), Fault> {
        actions.push(Action::SetTimer { name: "report".into(), at_s: self.at_s });
        Ok(())
    }

    fn on_gap(&mut self, now: Nanos, gap: &Gap, _: &mut Actions) -> Result<(), Fault> {
        self.heard.lock().expect("one thread").gaps.push((now, *gap));
        Ok(())
    }

    fn on_timer(&mut self, now: Nanos, _: &str, reception: &ReceptionState, actions: &mut Actions) -> Result<(), Fault> {
        self.heard.lock().expect("one thread").receptions.push((now, *reception));
        actions.push(Action::SendFeedback { loss_event_rate: Some(0.25) });
        self.at_s += self.period_s;
        actions.push(Action::SetTimer { name: "report".into(), at_s: self.at_s });
        Ok(())
    }
}

fn reporting(rate_bps: f64, period_s: f64, stop: Nanos) -> (FlowSpec, Arc<Mutex<Heard>>) {
    let heard = Arc::new(Mutex::new(Heard::default()));
    let mut spec = fixed("f", 1, rate_bps, 0, stop);
    let FlowKind::Rtp(rtp) = &mut spec.kind else { unreachable!("fixed is an RTP flow") };
    rtp.sender = Box::new(Stamping { rate_bps, heard: Arc::clone(&heard) });
    rtp.receiver = Box::new(Reporting { period_s, at_s: period_s, heard: Arc::clone(&heard) });
    (spec, heard)
}

fn reports(network: &Network) -> Vec<(Nanos, u32, u32, u64)> {
    let (sender, _) = network.logs(&network.flows()[0]);
    let report = |(time, record): &(Nanos, FlowRecord)| match record {
        FlowRecord::Report { expected_packets, lost_packets, receive_rate_bps, .. } => {
            Some((*time, *expected_packets, *lost_packets, *receive_rate_bps))
        }
        _ => None,
    };
    sender.iter().filter_map(report).collect()
}

#[test]
fn a_report_tells_round_trip_and_rate_as_worked_out() {
    let mut network = dumbbell(1, 1, &link(10_000_000, 5 * MS, 50), &link(100_000_000, 10_000, 1000));
    // 1000 bytes each 8 ms; a report each 125 ms.
    let (spec, heard) = reporting(1e6, 0.125, SECOND);
    network.add_flow(spec).expect("a good flow");
    network.run_until(2 * SECOND).expect("runs");
    let heard = heard.lock().expect("one thread");
    // Data: 1014 bytes on the wire. Report: 14 + 20 + 8 + 44 = 86 bytes.
    let there = 81_120 + 10_000 + 811_200 + 5_000_000 + 81_120 + 10_000;
    let back = 6_880 + 10_000 + 68_800 + 5_000_000 + 6_880 + 10_000;
    assert_eq!(heard.feedback[0].0, 125 * MS + back);
    // Packet k leaves at 8 ms * k: the 15th, of number 14, arrives at 112 ms and 5.99344 ms, the next after 125 ms.
    let held = 125 * MS - (112 * MS + there);
    let rtt = heard.feedback[0].1.rtt_s.expect("measured") * 1e9;
    assert!((rtt - (there + back) as f64 - (held % 1000) as f64).abs() < 0.01, "held in whole microseconds: {rtt}");
    // 14 packets after the first, over the time since the first.
    let first_rate = 14 * 8_000 * 1_000_000_000 / (125 * MS - there);
    let said = reports(&network);
    assert_eq!(said[0], (125 * MS + back, 15, 0, first_rate));
    // Then 15 or 16 packets in each eighth of a second.
    for (n, (time, expected, lost, rate)) in said.iter().enumerate().skip(1) {
        assert_eq!(*time, (n as u64 + 1) * 125 * MS + back);
        assert!((15..=16).contains(expected) && *lost == 0);
        assert_eq!(*rate, u64::from(*expected) * 64_000);
    }
    let total: u32 = said.iter().map(|(_, expected, ..)| expected).sum();
    // The report of 1 s comes too late for its sender: what arrived in 875 ms.
    assert_eq!((said.len(), total), (7, 109));
    let feedback = &heard.feedback[1].1;
    assert_eq!((feedback.reporter, feedback.loss_fraction, feedback.loss_event_rate), (1001, 0.0, Some(0.25)));
    assert_eq!((feedback.desired_rate_bps, feedback.jitter_s), (None, None));
    // The stamp of the first report's round trip is in the data that arrived before the third report.
    assert_eq!(heard.receptions[0].1.sender_rtt_s, None);
    let stamped = heard.receptions[2].1.sender_rtt_s.expect("stamped");
    assert!((stamped - heard.feedback[0].1.rtt_s.expect("measured")).abs() <= 0.5e-6);
    // Bytes and the last arrival, at the first report.
    let (at, reception) = heard.receptions[0];
    assert_eq!((at, reception.received_packets, reception.received_bytes, reception.lost_packets), (125 * MS, 15, 15_000, 0));
    assert_eq!(reception.last_arrival_s, (112 * MS + there) as f64 / 1e9);
    // No RTCP where nobody asked for it.
    let (sender, receiver) = network.logs(&network.flows()[0]);
    for log in [sender, receiver] {
        let Some((_, FlowRecord::End { rtcp_sent, feedback, malformed, .. })) = log.last() else { panic!("no end") };
        assert_eq!((*rtcp_sent, *malformed), (0, 0));
        assert!(*feedback >= 7);
    }
}

#[test]
fn gaps_reports_and_records_count_the_same_losses() {
    let lossy = ChannelConfig { loss: Some(LossModel::Bernoulli { p: 0.05 }), ..link(10_000_000, 5 * MS, 50) };
    let mut network = dumbbell(1, 5, &lossy, &link(100_000_000, 0, 1000));
    let (spec, heard) = reporting(2e6, 0.05, 20 * SECOND);
    network.add_flow(spec).expect("a good flow");
    network.run_until(21 * SECOND).expect("runs");
    let heard = heard.lock().expect("one thread");
    let (_, _, lost) = received(&network, 0);
    assert!(lost > 150);
    let skipped: u64 = heard.gaps.iter().map(|(_, gap)| gap.last_lost_sequence - gap.first_lost_sequence + 1).sum();
    assert_eq!(skipped as i64, lost);
    for (now, gap) in &heard.gaps {
        assert!(gap.first_lost_sequence <= gap.last_lost_sequence && gap.before_s < gap.after_s);
        // The third packet after them, 4 ms after the second at the earliest, and that as much after the first.
        assert!(gap.reception.highest_sequence >= gap.last_lost_sequence + 3);
        assert!(*now as f64 / 1e9 > gap.after_s + 0.0079 && gap.reception.last_arrival_s == *now as f64 / 1e9);
    }
    assert_eq!(heard.gaps.last().expect("some").1.reception.lost_packets as i64, lost);
    // Reports are lost too, so what they say adds up to no more, and to most of it.
    let said: i64 = reports(&network).iter().map(|(_, _, lost, _)| i64::from(*lost)).sum();
    assert!(said <= lost && said > lost * 8 / 10, "{said} of {lost}");
}

/// A timer that is always due.
struct Impatient;

impl SenderAlgorithm for Impatient {
    fn on_start(&mut self, _: Nanos, actions: &mut Actions) -> Result<(), Fault> {
        actions.push(Action::SetRate { rate_bps: 1e6, burst_packets: 1 });
        actions.push(Action::SetTimer { name: "now".into(), at_s: 0.0 });
        Ok(())
    }

    fn on_timer(
        &mut self,
        _: Nanos,
        _: &str,
        _: Option<&fairlane_endpoint::algorithm::PathState>,
        actions: &mut Actions,
    ) -> Result<(), Fault> {
        actions.push(Action::SetTimer { name: "now".into(), at_s: 0.0 });
        Ok(())
    }
}

#[test]
fn an_algorithm_that_stops_time_is_stopped() {
    let mut network = dumbbell(1, 1, &link(10_000_000, 0, 50), &link(100_000_000, 0, 1000));
    let mut spec = fixed("f", 1, 1e6, MS, SECOND);
    let FlowKind::Rtp(rtp) = &mut spec.kind else { unreachable!("fixed is an RTP flow") };
    rtp.sender = Box::new(Impatient);
    network.add_flow(spec).expect("a good flow");
    let error = network.run_until(SECOND).expect_err("refused").to_string();
    assert!(error.contains("\"now\"") && error.contains("time cannot go on"), "{error}");
}
