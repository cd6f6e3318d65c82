//! The virtual network against timings worked out by hand, to the nanosecond, and against its own books.

mod common;

use common::*;
use fairlane_endpoint::algorithm;
use fairlane_endpoint::record::FlowRecord;
use fairlane_endpoint::sources::{Mpeg4Parameters, Period};
use fairlane_endpoint::{RawSpec, RawTraffic};
use fairlane_tcp::Flavour;
use fairlane_virtual::{Change, ChannelConfig, FlowKind, Jitter, LinkEnd, LossModel};

fn link(rate_bps: u64, delay_ns: u64, queue_packets: u32) -> ChannelConfig {
    ChannelConfig { rate_bps: Some(rate_bps), delay_ns, queue_packets, ..ChannelConfig::default() }
}

/// Delays of a flow's packets: sum and maximum over the run.
fn delays(network: &fairlane_virtual::Network, flow: usize) -> (u64, u64) {
    let (_, receiver) = network.logs(&network.flows()[flow]);
    let parts = receiver.iter().filter_map(|(_, record)| match record {
        FlowRecord::Data { delay_sum_ns, delay_max_ns, .. } => Some((*delay_sum_ns, *delay_max_ns)),
        _ => None,
    });
    parts.fold((0, 0), |(sum, max), (s, m)| (sum + s, max.max(m)))
}

#[test]
fn an_empty_path_takes_serialisation_and_propagation() {
    // 1014 bytes on the wire: 81.12 us on each access link at 100 Mb/s, 811.2 us at 10 Mb/s, 5 ms and twice 10 us of propagation.
    let mut network = dumbbell(1, 1, &link(10_000_000, 5 * MS, 50), &link(100_000_000, 10_000, 1000));
    network.add_flow(fixed("f", 1, 1e6, 0, SECOND)).expect("a good flow");
    network.run_until(2 * SECOND).expect("runs");
    let one = 81_120 + 10_000 + 811_200 + 5_000_000 + 81_120 + 10_000;
    // 8 ms apart over one second; the one at 1 s is not sent any more.
    let (packets, bytes, lost) = received(&network, 0);
    assert_eq!((packets, bytes, lost), (125, 125_000, 0));
    assert_eq!(delays(&network, 0), (125 * one, one));
}

#[test]
fn a_rate_may_count_datagrams_alone() {
    // 1000 bytes of the 1014: 80 us on each access link at 100 Mb/s, 800 us at 10 Mb/s.
    let datagrams = |link: ChannelConfig| ChannelConfig { overhead_bytes: -14, ..link };
    let mut network = dumbbell(1, 1, &datagrams(link(10_000_000, 5 * MS, 50)), &datagrams(link(100_000_000, 10_000, 1000)));
    network.add_flow(fixed("f", 1, 1e6, 0, SECOND)).expect("a good flow");
    network.run_until(2 * SECOND).expect("runs");
    let one = 80_000 + 10_000 + 800_000 + 5_000_000 + 80_000 + 10_000;
    assert_eq!(delays(&network, 0), (125 * one, one));
}

/// How long after the acknowledgement that lets it go each segment of a TCP with a window of one leaves its host.
fn sending_delays(jitter: u64) -> Vec<u64> {
    let path = std::env::temp_dir().join(format!("fairlane-sending-{}-{jitter}.csv", std::process::id()));
    let mut network = dumbbell(1, 1, &link(10_000_000, 5 * MS, 50), &link(100_000_000, 10_000, 1000));
    let mut flow = tcp("f", 1, Flavour::Sack, 60 * SECOND);
    let FlowKind::Tcp(spec) = &mut flow.kind else { unreachable!() };
    spec.config = fairlane_tcp::Config { max_window: 960, handshake: false, delayed_ack: false, ..spec.config.clone() };
    spec.sending_jitter = jitter;
    network.add_flow(flow).expect("a good flow");
    network.trace(&path).expect("a file");
    network.run_until(60 * SECOND).expect("runs");
    let text = std::fs::read_to_string(&path).expect("written");
    std::fs::remove_file(&path).expect("removed");
    let (mut acknowledged, mut found) = (None, Vec::new());
    for row in text.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>()).filter(|row| row[2] == "a1") {
        let time: u64 = row[0].parse().expect("a time");
        match row[1] {
            "receive" => acknowledged = Some(time),
            "send" => found.extend(acknowledged.take().map(|before| time - before)),
            other => panic!("{other}"),
        }
    }
    found
}

#[test]
fn sending_jitter_is_uniform_from_none_to_all_of_it() {
    let at_once = sending_delays(0);
    assert!(at_once.len() > 4_000 && at_once.iter().all(|&delay| delay == 0), "{}", at_once.len());
    let found = sending_delays(MS);
    assert!(found.len() > 4_000 && found.iter().all(|&delay| delay <= MS), "{}", found.len());
    // A tenth of the draws lies in each tenth of the range; 4 standard deviations are 4 sqrt(0.1 * 0.9 / 4000) = 0.019.
    for tenth in 0..10 {
        let part = found.iter().filter(|&&delay| delay * 10 / (MS + 1) == tenth).count() as f64 / found.len() as f64;
        assert!((part - 0.1).abs() < 0.019, "{tenth}: {part}");
    }
}

#[test]
fn a_flow_may_come_and_go_while_the_network_runs() {
    let setting = || dumbbell(2, 1, &link(10_000_000, 5 * MS, 50), &link(100_000_000, 10_000, 1000));
    let mut planned = setting();
    planned.add_flow(fixed("f", 1, 1e6, 0, 3 * SECOND)).expect("a good flow");
    planned.add_flow(fixed("g", 2, 1e6, SECOND, 2 * SECOND)).expect("a good flow");
    planned.run_until(4 * SECOND).expect("runs");
    let mut live = setting();
    live.add_flow(fixed("f", 1, 1e6, 0, 100 * SECOND)).expect("a good flow");
    live.run_until(SECOND / 2).expect("runs");
    assert!(live.add_flow(fixed("early", 2, 1e6, SECOND / 4, SECOND)).expect_err("in the past").to_string().contains("lies in the past"));
    live.add_flow(fixed("g", 2, 1e6, SECOND, 100 * SECOND)).expect("a good flow");
    live.run_until(2 * SECOND - 1).expect("runs");
    live.stop_flow("g", 2 * SECOND).expect("it goes on");
    live.stop_flow("f", 3 * SECOND).expect("it goes on");
    live.run_until(4 * SECOND).expect("runs");
    assert_eq!(received(&live, 1), (125, 125_000, 0));
    for flow in 0..2 {
        assert_eq!((received(&live, flow), delays(&live, flow)), (received(&planned, flow), delays(&planned, flow)));
    }
    // One that begins at this very instant, and TCP.
    let mut tcp = tcp("h", 2, Flavour::Sack, 100 * SECOND);
    (tcp.start, tcp.port) = (4 * SECOND, 6000);
    live.add_flow(tcp).expect("a good flow");
    live.run_until(6 * SECOND).expect("runs");
    live.stop_flow("h", 6 * SECOND).expect("it goes on");
    live.run_until(20 * SECOND).expect("runs");
    let (_, receiver) = live.logs(&live.flows()[2]);
    let delivered = receiver.iter().rev().find_map(|(_, record)| match record {
        FlowRecord::TcpData { delivered_bytes, .. } => Some(*delivered_bytes),
        _ => None,
    });
    let most = 2.5 * 10e6 / 8.0;
    assert!(delivered.is_some_and(|bytes| (0.5 * most..most).contains(&(bytes as f64))), "{delivered:?}");
    for (name, at, what) in [("x", 30 * SECOND, "there is no such flow"), ("h", 19 * SECOND, "cannot stop")] {
        assert!(live.stop_flow(name, at).expect_err("refused").to_string().contains(what));
    }
}

#[test]
fn a_queue_fills_and_overflows_as_worked_out() {
    // 10 packets at once at 1 Gb/s into 10 Mb/s with room for 4 behind the one in service.
    let mut network = dumbbell(1, 1, &link(10_000_000, 0, 4), &link(1_000_000_000, 0, 1000));
    let mut spec = fixed("f", 1, 1e6, 0, 50 * MS);
    let FlowKind::Rtp(rtp) = &mut spec.kind else { unreachable!("fixed is an RTP flow") };
    rtp.sender = Box::new(Burst(10));
    network.add_flow(spec).expect("a good flow");
    network.run_until(SECOND).expect("runs");
    let (packets, _, lost) = received(&network, 0);
    assert_eq!((packets, lost), (5, 0), "what was lost at the end is missed by nobody");
    // Access 8.112 us each; the k-th of the five waits for k transmissions less k arrivals.
    let (access, bottleneck) = (8_112u64, 811_200u64);
    // The stamps are all 0, so the delay of the k-th is when it arrives.
    let expected: u64 = (0..5).map(|k| access + (k + 1) * bottleneck + access).sum();
    assert_eq!(delays(&network, 0).0, expected);
    let last = network.port_samples().iter().rfind(|sample| sample.switch == 0 && sample.port.port == 1).expect("a sample");
    assert_eq!(last.port.tx_packets, 5);
    assert_eq!(last.port.drops.total(), 5);
    assert_eq!(last.port.max_depth_packets, 4);
}

/// So many packets at the start, and none after.
struct Burst(u32);

impl fairlane_endpoint::algorithm::SenderAlgorithm for Burst {
    fn on_start(
        &mut self,
        _: u64,
        actions: &mut Vec<fairlane_endpoint::algorithm::Action>,
    ) -> Result<(), fairlane_endpoint::algorithm::Fault> {
        actions.push(fairlane_endpoint::algorithm::Action::SetRate { rate_bps: 1e6, burst_packets: self.0 });
        Ok(())
    }
}

/// Additive increase by one packet each window, halved by a loss.
struct Aimd {
    window: f64,
    acks: std::sync::Arc<std::sync::atomic::AtomicU64>,
}

impl algorithm::SenderAlgorithm for Aimd {
    fn interests(&self) -> algorithm::Interests {
        algorithm::Interests { acks: algorithm::AckDetail::Every, ..Default::default() }
    }

    fn on_start(&mut self, _: u64, actions: &mut algorithm::Actions) -> Result<(), algorithm::Fault> {
        actions.push(algorithm::Action::SetWindow { window_packets: self.window });
        actions.push(algorithm::Action::SetLossTimeout(algorithm::LossTimeout { timeout_s: 0.5, ..Default::default() }));
        Ok(())
    }

    fn on_ack(&mut self, _: u64, ack: &algorithm::Ack, actions: &mut algorithm::Actions) -> Result<(), algorithm::Fault> {
        self.acks.fetch_add(ack.newly_acked_packets, std::sync::atomic::Ordering::Relaxed);
        assert!(ack.rtt_s >= 0.02 && ack.path.srtt_s >= 0.02);
        self.window += ack.newly_acked_packets as f64 / self.window;
        actions.push(algorithm::Action::SetWindow { window_packets: self.window });
        Ok(())
    }

    fn on_loss(&mut self, _: u64, loss: &algorithm::Loss, actions: &mut algorithm::Actions) -> Result<(), algorithm::Fault> {
        assert!(loss.lost_packets >= 1 && loss.first_sequence <= loss.last_sequence);
        self.window = (self.window / 2.0).max(1.0);
        actions.push(algorithm::Action::SetWindow { window_packets: self.window });
        Ok(())
    }
}

#[test]
fn an_acknowledged_flow_fills_the_link_by_its_window() {
    let mut network = dumbbell(1, 1, &link(5_000_000, 10 * MS, 15), &link(100_000_000, 0, 1000));
    let acks = std::sync::Arc::default();
    let mut spec = fixed("f", 1, 1e6, 0, 20 * SECOND);
    let FlowKind::Rtp(rtp) = &mut spec.kind else { unreachable!("fixed is an RTP flow") };
    rtp.sender = Box::new(Aimd { window: 2.0, acks: std::sync::Arc::clone(&acks) });
    network.add_flow(spec).expect("a good flow");
    network.run_until(21 * SECOND).expect("runs");
    let (packets, _, lost) = received(&network, 0);
    let share = packets as f64 * 1014.0 * 8.0 / (20.0 * 5e6);
    assert!((0.75..=1.0).contains(&share), "{share}");
    assert!(lost > 5, "its window must have found the queue's end");
    let (sender, _) = network.logs(&network.flows()[0]);
    let found: u64 =
        sender.iter().map(|(_, record)| if let FlowRecord::Loss { lost_packets, .. } = record { *lost_packets } else { 0 }).sum();
    assert!(found as i64 >= lost && found as i64 <= lost + 60, "{found}, and those that nobody missed at the end; {lost}");
    let paths = sender.iter().filter(|(_, record)| matches!(record, FlowRecord::Path { srtt_s, .. } if *srtt_s > 0.02)).count();
    assert!((20..=21).contains(&paths), "{paths} seconds");
    let acked = acks.load(std::sync::atomic::Ordering::Relaxed);
    // What was on the way when the flow stopped was not heard any more.
    assert!(acked <= packets && packets - acked < 60, "{acked} of {packets}");
}

/// A packet of 1000 bytes each 0.8 s, a timeout of 0.5 s.
struct Patient {
    before_sending: bool,
}

impl algorithm::SenderAlgorithm for Patient {
    fn interests(&self) -> algorithm::Interests {
        algorithm::Interests { acks: algorithm::AckDetail::Losses, loss_distance_packets: 3, ..Default::default() }
    }

    fn on_start(&mut self, _: u64, actions: &mut algorithm::Actions) -> Result<(), algorithm::Fault> {
        actions.push(algorithm::Action::SetRate { rate_bps: 10_000.0, burst_packets: 1 });
        let timeout = algorithm::LossTimeout { timeout_s: 0.5, before_sending: self.before_sending, ..Default::default() };
        actions.push(algorithm::Action::SetLossTimeout(timeout));
        Ok(())
    }
}

#[test]
fn a_timeout_before_sending_is_found_when_the_next_packet_leaves() {
    // Packet n leaves at 0.8 n s and never arrives: the timer finds it lost 0.5 s later, the look before sending 0.8 s later.
    let dead = ChannelConfig { loss: Some(LossModel::Bernoulli { p: 1.0 }), ..link(5_000_000, 0, 15) };
    for (before_sending, found_after) in [(false, 500 * MS), (true, 800 * MS)] {
        let mut network = dumbbell(1, 1, &dead, &link(100_000_000, 0, 1000));
        let mut spec = fixed("f", 1, 1e6, 0, 4 * SECOND);
        let FlowKind::Rtp(rtp) = &mut spec.kind else { unreachable!("fixed is an RTP flow") };
        rtp.sender = Box::new(Patient { before_sending });
        network.add_flow(spec).expect("a good flow");
        network.run_until(5 * SECOND).expect("runs");
        let (sender, _) = network.logs(&network.flows()[0]);
        let found: Vec<_> = sender
            .iter()
            .filter_map(
                |(at, record)| if let FlowRecord::Loss { first_sequence, .. } = record { Some((*first_sequence, *at)) } else { None },
            )
            .take(4)
            .collect();
        let expected: Vec<_> = (0..4).map(|n| (n, n * 800 * MS + found_after)).collect();
        assert_eq!(found, expected, "{before_sending}");
    }
}

#[test]
fn tcp_fills_the_bottleneck_with_every_flavour() {
    for flavour in Flavour::ALL {
        let mut network = dumbbell(1, 1, &link(10_000_000, 5 * MS, 50), &link(100_000_000, 0, 1000));
        network.add_flow(tcp("f", 1, flavour, 10 * SECOND)).expect("a good flow");
        network.run_until(10 * SECOND).expect("runs");
        let (_, receiver) = network.logs(&network.flows()[0]);
        let delivered = receiver.iter().rev().find_map(|(_, record)| match record {
            FlowRecord::TcpData { delivered_bytes, .. } => Some(*delivered_bytes),
            _ => None,
        });
        // 960 of 1014 bytes are payload; slow start and recovery cost a little.
        let most = 10.0 * 10e6 / 8.0 * 960.0 / 1014.0;
        let share = delivered.expect("records") as f64 / most;
        assert!((0.85..=1.0).contains(&share), "{}: {share}", flavour.name());
    }
}

#[test]
fn every_packet_is_accounted_for() {
    let lossy = ChannelConfig { loss: Some(LossModel::Bernoulli { p: 0.01 }), jitter: Jitter::of(300_000, 0), ..link(100_000_000, MS, 20) };
    let mut network = dumbbell(3, 7, &ChannelConfig { jitter: Jitter::of(100_000, 0), ..link(5_000_000, 5 * MS, 10) }, &lossy);
    network.add_flow(tcp("t", 1, Flavour::Sack, 10 * SECOND)).expect("a good flow");
    network.add_flow(fixed("r", 2, 4e6, 0, 10 * SECOND)).expect("a good flow");
    let cbr = RawSpec { traffic: RawTraffic::ConstantBitRate { rate_bps: 1_000_000 }, packet_bytes: 500 };
    network.add_flow(flow("c", 3, SECOND, 9 * SECOND, FlowKind::Raw(cbr))).expect("a good flow");
    network.run_until(20 * SECOND).expect("runs");
    let (mut offered, mut delivered, mut lost, mut tail) = (0, 0, 0, 0);
    for (_, _, stats, in_flight) in network.channel_stats() {
        assert_eq!(stats.offered_packets, stats.delivered_packets + stats.dropped_loss + stats.dropped_tail + in_flight as u64);
        assert_eq!(in_flight, 0, "all is over");
        offered += stats.offered_packets;
        delivered += stats.delivered_packets;
        lost += stats.dropped_loss;
        tail += stats.dropped_tail;
    }
    assert!(lost > 0 && offered == delivered + lost + tail);
    // What went into the switches came out, or was dropped there.
    let mut dropped = 0;
    for switch in ["s1", "s2"] {
        let device = network.device(switch).expect("a switch");
        let ports: Vec<_> = device.ports().collect();
        let snapshots: Vec<_> = ports.iter().filter_map(|&port| device.snapshot(20 * SECOND, port)).collect();
        let (rx, tx): (u64, u64) = snapshots.iter().fold((0, 0), |(rx, tx), s| (rx + s.rx_packets, tx + s.tx_packets));
        assert_eq!(rx, tx + device.drops().total(), "{switch}");
        dropped += device.drops().total();
    }
    assert!(dropped > 0);
    let (received_packets, _, missed) = received(&network, 1);
    let (sender, _) = network.logs(&network.flows()[1]);
    let sent = sender.iter().rev().find_map(|(_, record)| match record {
        FlowRecord::End { packets, .. } => Some(*packets),
        _ => None,
    });
    let unseen = sent.expect("an end") as i64 - received_packets as i64 - missed;
    assert!((0..20).contains(&unseen), "only losses after the last arrival are missed by nobody: {unseen}");
}

#[test]
fn a_run_repeats_to_the_byte_and_seeds_differ() {
    let run = |seed| {
        let lossy =
            ChannelConfig { loss: Some(LossModel::Bernoulli { p: 0.02 }), jitter: Jitter::of(50_000, 0), ..link(50_000_000, MS, 100) };
        let mut network = dumbbell(4, seed, &link(8_000_000, 10 * MS, 20), &lossy);
        for (n, flavour) in [(1, Flavour::Sack), (2, Flavour::Cubic)] {
            network.add_flow(tcp(flavour.name(), n, flavour, 5 * SECOND)).expect("a good flow");
        }
        let mut spec = fixed("r", 3, 2e6, MS, 5 * SECOND);
        let FlowKind::Rtp(rtp) = &mut spec.kind else { unreachable!("fixed is an RTP flow") };
        rtp.phase = None;
        rtp.pacing_jitter = 0.5;
        network.add_flow(spec).expect("a good flow");
        network.run_until(6 * SECOND).expect("runs");
        records(&network)
    };
    let first = run(1);
    assert!(first == run(1), "the same seed, another run");
    assert!(first != run(2), "another seed, the same run");
    // In steps instead of at once: the same.
    let mut whole = dumbbell(1, 3, &link(8_000_000, 10 * MS, 20), &link(50_000_000, MS, 100));
    let mut steps = dumbbell(1, 3, &link(8_000_000, 10 * MS, 20), &link(50_000_000, MS, 100));
    for network in [&mut whole, &mut steps] {
        network.add_flow(tcp("t", 1, Flavour::Reno, 5 * SECOND)).expect("a good flow");
    }
    whole.run_until(5 * SECOND).expect("runs");
    for step in 1..=50 {
        steps.run_until(step * SECOND / 10).expect("runs");
    }
    assert_eq!(records(&whole), records(&steps));
}

#[test]
fn sources_send_at_their_rates() {
    let mut network = dumbbell(3, 1, &link(50_000_000, MS, 1000), &link(100_000_000, 0, 1000));
    let period = |mean_s| Period::Exponential { mean_s };
    let parameters = Box::new(Mpeg4Parameters::standard().expect("the crate's own"));
    let traffic = [
        RawTraffic::ConstantBitRate { rate_bps: 1_000_000 },
        RawTraffic::OnOff { rate_bps: 4_000_000, on: period(0.05), off: period(0.15) },
        RawTraffic::Mpeg4 { parameters, rate_scale: 1.0 },
    ];
    for (n, traffic) in (1u8..).zip(traffic) {
        let kind = FlowKind::Raw(RawSpec { traffic, packet_bytes: 1000 });
        network.add_flow(flow(&format!("r{n}"), n, 0, 60 * SECOND, kind)).expect("a good flow");
    }
    network.run_until(61 * SECOND).expect("runs");
    let rate = |flow| received(&network, flow).1 as f64 * 8.0 / 60.0;
    assert!((rate(0) - 1e6).abs() < 1e3, "{}", rate(0));
    assert!((rate(1) / 1e6 - 1.0).abs() < 0.15, "{}", rate(1));
    assert!(rate(2) > 50e3, "{}", rate(2));
    for flow in 0..3 {
        assert_eq!(received(&network, flow).2, 0);
    }
}

#[test]
fn the_log_tells_every_packets_way_and_end() {
    let path = std::env::temp_dir().join(format!("fairlane-trace-{}.csv", std::process::id()));
    let lossy = ChannelConfig { loss: Some(LossModel::Bernoulli { p: 0.1 }), ..link(2_000_000, MS, 3) };
    let mut network = dumbbell(1, 1, &lossy, &link(10_000_000, 0, 1000));
    network.add_flow(fixed("f", 1, 4e6, 0, SECOND)).expect("a good flow");
    network.trace(&path).expect("a file");
    network.run_until(2 * SECOND).expect("runs");
    let text = std::fs::read_to_string(&path).expect("written");
    std::fs::remove_file(&path).expect("removed");
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let count = |event: &str, node: &str, cause: &str| rows.iter().filter(|r| r[1] == event && r[2] == node && r[5] == cause).count();
    assert_eq!(text.lines().next(), Some("time_ns,event,node,port,bytes,cause,queue,flow,part,packet"));
    assert!(rows.iter().map(|row| row[0].parse::<u64>().expect("a time")).is_sorted());
    let sent = count("send", "a1", "");
    assert_eq!(sent, 500);
    assert_eq!(count("receive", "s1", ""), sent);
    assert_eq!(count("enqueue", "s1", "") + count("drop", "s1", "tail"), sent);
    assert_eq!(count("enqueue", "s1", ""), count("dequeue", "s1", ""));
    assert!(count("drop", "s1", "link") > 0 && count("drop", "s1", "tail") > 0);
    assert_eq!(count("receive", "s2", ""), count("dequeue", "s1", "") - count("drop", "s1", "link"));
    assert_eq!(count("receive", "b1", "") as u64, received(&network, 0).0);
}

#[test]
fn a_link_changes_its_rate_while_it_runs() {
    let mut network = dumbbell(1, 1, &link(10_000_000, 0, 20), &link(100_000_000, 0, 1000));
    network.schedule(5 * SECOND, Change::LinkRate { from: LinkEnd::new("s1", 1), rate_bps: Some(2_000_000) }).expect("a change");
    network.add_flow(fixed("f", 1, 8e6, 0, 10 * SECOND)).expect("a good flow");
    network.run_until(11 * SECOND).expect("runs");
    let (_, receiver) = network.logs(&network.flows()[0]);
    let at = |time: u64| {
        receiver.iter().rev().find_map(|(t, record)| match record {
            FlowRecord::Data { bytes, .. } if *t == time => Some(*bytes as f64 * 8.0),
            _ => None,
        })
    };
    let (before, after) = (at(5 * SECOND).expect("a record"), at(10 * SECOND).expect("a record"));
    assert!((before / 5.0 - 8e6).abs() < 0.05e6);
    assert!(((after - before) / 5.0 - 2e6 * 1000.0 / 1014.0).abs() < 0.05e6);
}

#[test]
fn a_link_changes_its_loss_and_delay_while_it_runs() {
    let mut network = dumbbell(1, 1, &link(10_000_000, 5 * MS, 20), &link(100_000_000, 0, 1000));
    let from = || LinkEnd::new("s1", 1);
    let all = Some(LossModel::Bernoulli { p: 1.0 });
    for (at, loss) in [(2 * SECOND, all), (3 * SECOND, None)] {
        network.schedule(at, Change::LinkLoss { from: from(), loss }).expect("a change");
    }
    network.schedule(4 * SECOND, Change::LinkDelay { from: from(), delay_ns: 9 * MS }).expect("a change");
    // A packet each 8 ms, 5.99 ms on the way; 9.97 ms from 4 s on.
    network.add_flow(fixed("f", 1, 1e6, 0, 5 * SECOND)).expect("a good flow");
    network.run_until(6 * SECOND).expect("runs");
    let (packets, _, lost) = received(&network, 0);
    // Those that reach the end of the link in the second from 2 s on are gone.
    assert_eq!((packets, lost), (500, 125));
    let path = |delay: u64| 2 * 81_120 + 811_200 + delay;
    assert_eq!(delays(&network, 0), (375 * path(5 * MS) + 125 * path(9 * MS), path(9 * MS)));
}

#[test]
fn what_cannot_be_is_refused_before_the_clock_starts() {
    let plain = link(1_000_000, 0, 10);
    let mut network = dumbbell(2, 1, &plain, &plain);
    let said = |result: Result<(), fairlane_virtual::BuildError>| result.expect_err("refused").to_string();
    assert_eq!(said(network.add_host("a1", address(9, 9)).map(drop)), "node a1: two nodes have this name");
    let unknown = network.connect(&LinkEnd::new("s1", 9), &LinkEnd::new("s3", 9), &plain, &plain);
    assert_eq!(said(unknown), "link s1-s3: unknown node \"s3\"; did you mean \"s1\"?");
    let zero = network.connect(&LinkEnd::new("s1", 9), &LinkEnd::new("s2", 9), &plain, &link(0, 0, 1));
    assert!(said(zero).contains("a rate of 0 bit/s never sends"));
    let lossy = ChannelConfig { loss: Some(LossModel::Bernoulli { p: 1.5 }), ..plain.clone() };
    assert!(said(network.connect(&LinkEnd::new("s1", 9), &LinkEnd::new("s2", 9), &lossy, &plain)).contains("p = 1.5: must be in [0, 1]"));
    let mut nobody = fixed("f", 1, 1e6, 0, 1);
    nobody.receiver = "b7".into();
    assert_eq!(said(network.add_flow(nobody)), "flow f receiver: unknown host \"b7\"; did you mean \"b1\"?");
    assert!(said(network.add_flow(fixed("f", 1, 1e6, 5, 5))).contains("must start before it stops"));
    network.add_flow(fixed("f", 1, 1e6, 0, 1)).expect("a good flow");
    assert!(said(network.add_flow(fixed("g", 1, 1e6, 0, 1))).contains("port 5004 is used by another flow"));
    let rate = |node: &str, port, rate_bps| Change::LinkRate { from: LinkEnd::new(node, port), rate_bps };
    assert!(said(network.schedule(0, rate("s1", 77, None))).contains("there is no such link: port 77 of s1 has none"));
    let unknown = "change of the rate of the link of s7:1 at 0 ns: there is no such link: unknown node \"s7\"; did you mean \"s1\"?";
    assert_eq!(said(network.schedule(0, rate("s7", 1, None))), unknown);
    assert!(said(network.schedule(0, rate("s1", 1, Some(0)))).contains("a rate of 0 bit/s never sends"));
    let loss = Change::LinkLoss { from: LinkEnd::new("s1", 1), loss: Some(LossModel::Bernoulli { p: -0.1 }) };
    assert!(said(network.schedule(0, loss)).contains("p = -0.1: must be in [0, 1]"));
    // What lies after the run's end, once that is known.
    let options = fairlane_virtual::Options { end: Some(SECOND), ..Default::default() };
    let mut short = fairlane_virtual::Network::new(options);
    short.add_switch("s1", 1, Default::default()).expect("a new name");
    for n in [1, 2] {
        short.add_host(&format!("a{n}"), address(1, n)).expect("a new host");
        short.connect(&LinkEnd::new(format!("a{n}"), 0), &LinkEnd::new("s1", n.into()), &plain, &plain).expect("a link");
    }
    let late = short.schedule(SECOND + 1, rate("s1", 1, None));
    assert_eq!(said(late), "change of the rate of the link of s1:1 at 1000000001 ns: lies after the run's end at 1000000000 ns");
    short.schedule(SECOND, rate("s1", 1, None)).expect("at the end is in time");
    let mut never = fixed("f", 1, 1e6, SECOND, 2 * SECOND);
    never.receiver = "a2".into();
    assert_eq!(said(short.add_flow(never)), "flow f: starts at 1000000000 ns, not before the run's end at 1000000000 ns");
    assert!(short.run_until(SECOND + 1).expect_err("refused").to_string().contains("the run ends at 1000000000 ns"));

    let mut apart = fairlane_virtual::Network::new(fairlane_virtual::Options::default());
    for (n, switch) in [(1, "s1"), (2, "s2")] {
        apart.add_switch(switch, 1, Default::default()).expect("a new name");
        let host = if n == 1 { "a1" } else { "b1" };
        apart.add_host(host, address(n, 1)).expect("a new host");
        apart.connect(&LinkEnd::new(host, 0), &LinkEnd::new(switch, 2), &plain, &plain).expect("a link");
    }
    apart.add_flow(fixed("f", 1, 1e6, 0, 1)).expect("a good flow");
    let error = apart.run_until(1).expect_err("refused").to_string();
    assert_eq!(error, "flow f: b1 cannot be reached from a1: no path of links");
    assert_eq!(apart.now(), 0);
}
