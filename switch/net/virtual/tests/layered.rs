//! Flows in layers to groups: instants, counts, joins and reports, worked out by hand.

mod common;

use std::sync::{Arc, Mutex};

use common::*;
use fairlane_endpoint::algorithm::{
    AckDetail, Action, Actions, Control, Fault, Feedback, Interests, Layer, ReceiverAlgorithm, ReceptionState, SenderAlgorithm,
};
use fairlane_endpoint::record::FlowRecord;
use fairlane_virtual::{ChannelConfig, Jitter, LayeredReceiver, LayeredSpec, LossModel, Nanos, Network};

const GROUPS: [u32; 3] = [0xef01_0001, 0xef01_0002, 0xef01_0003];

fn link(rate_bps: u64, delay_ns: u64, queue_packets: u32) -> ChannelConfig {
    ChannelConfig { rate_bps: Some(rate_bps), delay_ns, queue_packets, ..ChannelConfig::default() }
}

fn layers(rates_bps: &[f64]) -> Vec<Layer> {
    GROUPS.iter().zip(rates_bps).map(|(&address, &rate_bps)| Layer { address, rate_bps }).collect()
}

type Heard = Arc<Mutex<Vec<(Nanos, Feedback<'static>)>>>;

/// Layers by a timetable, and what they are in the control packets.
struct Timetable {
    /// (seconds, rates)
    steps: Vec<(f64, Vec<f64>)>,
    heard: Heard,
}

impl Timetable {
    fn new(steps: &[(f64, &[f64])]) -> Timetable {
        Timetable { steps: steps.iter().map(|(at, rates)| (*at, rates.to_vec())).collect(), heard: Heard::default() }
    }
}

impl SenderAlgorithm for Timetable {
    fn interests(&self) -> Interests {
        Interests { rtcp: true, ..Interests::default() }
    }

    fn on_start(&mut self, now: Nanos, actions: &mut Actions) -> Result<(), Fault> {
        self.on_timer(now, "step", None, actions)
    }

    fn on_timer(
        &mut self,
        _: Nanos,
        _: &str,
        _: Option<&fairlane_endpoint::algorithm::PathState>,
        actions: &mut Actions,
    ) -> Result<(), Fault> {
        let (_, rates) = self.steps.remove(0);
        actions.push(Action::SetLayers { layers: layers(&rates) });
        actions.push(Action::SetControl { desired_rate_bps: 1e6, utilisation: 0.5, layers: layers(&rates) });
        if let Some((at_s, _)) = self.steps.first() {
            actions.push(Action::SetTimer { name: "step".into(), at_s: *at_s });
        }
        Ok(())
    }

    fn on_feedback(&mut self, now: Nanos, feedback: &Feedback, _: &mut Actions) -> Result<(), Fault> {
        self.heard.lock().expect("one thread").push((now, Feedback { header: &[], ..*feedback }));
        Ok(())
    }
}

/// Groups by a timetable.
struct Joins {
    /// (seconds, how many layers)
    steps: Vec<(f64, usize)>,
    controls: Arc<Mutex<Vec<Control>>>,
}

impl Joins {
    fn new(steps: &[(f64, usize)]) -> Joins {
        Joins { steps: steps.to_vec(), controls: Arc::default() }
    }
}

impl ReceiverAlgorithm for Joins {
    fn interests(&self) -> Interests {
        Interests { rtcp: true, ..Interests::default() }
    }

    fn on_start(&mut self, _: Nanos, actions: &mut Actions) -> Result<(), Fault> {
        if let Some((at_s, _)) = self.steps.first() {
            actions.push(Action::SetTimer { name: "step".into(), at_s: *at_s });
        }
        Ok(())
    }

    fn on_timer(&mut self, _: Nanos, _: &str, _: &ReceptionState, actions: &mut Actions) -> Result<(), Fault> {
        let (_, count) = self.steps.remove(0);
        actions.push(Action::JoinLayers { addresses: GROUPS[..count].to_vec() });
        if let Some((at_s, _)) = self.steps.first() {
            actions.push(Action::SetTimer { name: "step".into(), at_s: *at_s });
        }
        Ok(())
    }

    fn on_control(&mut self, _: Nanos, control: &Control, actions: &mut Actions) -> Result<(), Fault> {
        self.controls.lock().expect("one thread").push(control.clone());
        actions.push(Action::SetReport { desired_rate_bps: control.desired_rate_bps, utilisation: control.utilisation });
        Ok(())
    }
}

fn receiver(n: u8, algorithm: Joins) -> LayeredReceiver {
    let (ssrc, cname) = (u32::from(n) + 1000, format!("receiver-{n}"));
    LayeredReceiver { host: format!("b{n}"), algorithm: Box::new(algorithm), ssrc, cname, start: None, stop: None }
}

fn spec(algorithm: impl SenderAlgorithm + 'static, receivers: Vec<LayeredReceiver>, stop: Nanos) -> LayeredSpec {
    LayeredSpec {
        name: "l".into(),
        sender: "a1".into(),
        algorithm: Box::new(algorithm),
        receivers,
        base_group: GROUPS[0],
        port: 5004,
        start: 0,
        stop,
        packet_bytes: 1000,
        session_bandwidth_bps: 10e6,
        pacing_jitter: 0.0,
        phase: Some(0.0),
        exact_loss: true,
        delay_threshold: 75 * MS,
        sender_ssrc: 7,
        sender_cname: "sender".into(),
    }
}

/// The groups go to all of three hosts behind the bottleneck.
fn tree(seed: u64, bottleneck: &ChannelConfig) -> Network {
    let mut network = dumbbell(3, seed, bottleneck, &link(100_000_000, 0, 1000));
    for group in GROUPS {
        replicate(&mut network, "s1", group, &[1]);
        replicate(&mut network, "s2", group, &[2, 3, 4]);
    }
    network
}

/// (packets, lost) of a layer at the end.
fn layer(network: &Network, receiver: usize, layer: usize) -> (u64, i64) {
    let flow = &network.flows()[0];
    let (_, log) = network.receiver_logs(flow).nth(receiver).expect("a receiver");
    let last = log.iter().rev().find_map(|(_, record)| match record {
        FlowRecord::LayerData { layer: number, packets, lost, .. } if *number == layer => Some((*packets, *lost)),
        _ => None,
    });
    last.unwrap_or_default()
}

fn delay_sum(network: &Network, receiver: usize) -> u64 {
    let (_, log) = network.receiver_logs(&network.flows()[0]).nth(receiver).expect("a receiver");
    let delays = log.iter().filter_map(|(_, record)| match record {
        FlowRecord::Data { delay_sum_ns, .. } => Some(*delay_sum_ns),
        _ => None,
    });
    delays.sum()
}

#[test]
fn each_receiver_gets_the_layers_it_has_joined() {
    let mut network = tree(1, &link(10_000_000, 5 * MS, 50));
    // 8 ms between packets of the base layer, 16 of the next; the third has no rate.
    let sender = Timetable::new(&[(0.0, &[1e6, 0.5e6, 0.0])]);
    let receivers = vec![receiver(1, Joins::new(&[(0.0, 2)])), receiver(2, Joins::new(&[])), receiver(3, Joins::new(&[(0.5, 3)]))];
    network.add_layered_flow(spec(sender, receivers, SECOND)).expect("a good flow");
    network.run_until(2 * SECOND).expect("runs");
    // Of the base layer all of 125; of the next 63, and for the third those that arrive after it has joined: 16 ms * 31 are sent
    // at 496 ms, and arrive after 502 ms.
    assert_eq!([0, 1, 2].map(|n| layer(&network, n, 0)), [(125, 0); 3]);
    assert_eq!([0, 1, 2].map(|n| layer(&network, n, 1)), [(63, 0), (0, 0), (32, 0)]);
    assert_eq!([0, 1, 2].map(|n| layer(&network, n, 2).0), [0, 0, 0]);
    let wire = 1014 * 8;
    let path = wire * 10 + wire * 100 + 5 * MS + wire * 10;
    // Packets of both layers leave at once, the base first: the other waits for its transmission.
    assert_eq!(delay_sum(&network, 1), 125 * path);
    assert_eq!(delay_sum(&network, 0), 125 * path + 63 * (path + wire * 100));
    let (sender, _) = network.logs(&network.flows()[0]);
    let sent: Vec<_> = sender
        .iter()
        .rev()
        .filter_map(|(_, record)| match record {
            FlowRecord::LayerSent { layer, group, packets, .. } => Some((*layer, *group, *packets)),
            _ => None,
        })
        .take(3)
        .collect();
    assert_eq!(sent, [(2, GROUPS[2], 0), (1, GROUPS[1], 63), (0, GROUPS[0], 125)]);
    let total = sender.iter().rev().find_map(|(_, record)| match record {
        FlowRecord::Sent { rate_bps, packets, bytes, .. } => Some((*rate_bps, *packets, *bytes)),
        _ => None,
    });
    assert_eq!(total, Some((1.5e6, 188, 188_000)));
}

#[test]
fn a_layer_that_was_left_loses_nothing_and_a_paused_one_goes_on() {
    let mut network = tree(1, &link(10_000_000, 5 * MS, 50));
    let sender = Timetable::new(&[(0.0, &[1e6, 0.5e6]), (4.0, &[1e6]), (5.0, &[1e6, 1e6])]);
    let receivers = vec![receiver(1, Joins::new(&[(0.0, 2), (1.0, 1), (2.0, 2)])), receiver(2, Joins::new(&[(0.0, 2)]))];
    network.add_layered_flow(spec(sender, receivers, 6 * SECOND)).expect("a good flow");
    network.run_until(7 * SECOND).expect("runs");
    // One at 0 s, 250 in four seconds, the last as the layer pauses, 125 in the sixth.
    assert_eq!(layer(&network, 1, 1), (376, 0));
    let (packets, lost) = layer(&network, 0, 1);
    assert_eq!(lost, 0);
    // One second less, of 62 or 63 packets.
    assert!((313..=314).contains(&packets), "{packets}");
    let (_, log) = network.receiver_logs(&network.flows()[0]).next().expect("a receiver");
    let changes: Vec<_> = log
        .iter()
        .filter_map(|(time, record)| match record {
            FlowRecord::Join { group } => Some((*time, *group, true)),
            FlowRecord::Leave { group } => Some((*time, *group, false)),
            _ => None,
        })
        .collect();
    assert_eq!(changes, [(0, GROUPS[0], true), (0, GROUPS[1], true), (SECOND, GROUPS[1], false), (2 * SECOND, GROUPS[1], true)]);
}

#[test]
fn receivers_report_all_their_layers_and_hear_the_control_packets() {
    let lossy = ChannelConfig { loss: Some(LossModel::Bernoulli { p: 0.1 }), ..link(10_000_000, 5 * MS, 50) };
    let mut network = tree(3, &lossy);
    let sender = Timetable::new(&[(0.0, &[1e6, 0.5e6, 0.5e6])]);
    let heard = Arc::clone(&sender.heard);
    let (all, late) = (Joins::new(&[(0.0, 3)]), Joins::new(&[]));
    let controls = Arc::clone(&all.controls);
    let mut second = receiver(2, late);
    (second.start, second.stop) = (Some(30 * SECOND), Some(50 * SECOND));
    network.add_layered_flow(spec(sender, vec![receiver(1, all), second], 60 * SECOND)).expect("a good flow");
    network.run_until(61 * SECOND).expect("runs");
    let heard = heard.lock().expect("one thread");
    let of = |ssrc| heard.iter().filter(move |(_, feedback)| feedback.reporter == ssrc);
    assert!(of(1001).count() >= 8 && of(1002).count() >= 2);
    assert!(of(1002).all(|(now, _)| (30 * SECOND..51 * SECOND).contains(now)));
    // Losses of all layers together; the link loses a tenth.
    let mean = of(1001).map(|(_, feedback)| feedback.loss_fraction).sum::<f64>() / of(1001).count() as f64;
    assert!((0.08..0.12).contains(&mean), "{mean}");
    assert!(of(1001).skip(1).all(|(_, feedback)| feedback.desired_rate_bps == Some(1e6) && feedback.utilisation == Some(0.5)));
    assert!(of(1001).skip(1).any(|(_, feedback)| feedback.rtt_s.is_some_and(|rtt| rtt > 0.010 && rtt < 0.020)));
    let controls = controls.lock().expect("one thread");
    assert!(controls.len() >= 6 && controls.iter().all(|control| control.sender == 7 && control.layers == layers(&[1e6, 0.5e6, 0.5e6])));
    // What one receiver counted is what its records and its layers say.
    let (received, lost) = (0..3).map(|n| layer(&network, 0, n)).fold((0, 0), |(p, l), (packets, lost)| (p + packets, l + lost));
    let (_, log) = network.logs(&network.flows()[0]);
    let last = log.iter().rev().find_map(|(_, record)| match record {
        FlowRecord::Data { packets, lost, .. } => Some((*packets, *lost)),
        _ => None,
    });
    assert_eq!(last, Some((received, lost)));
    // 15000 packets, each received, lost, or the last of its layer.
    assert!((15_000 - received as i64 - lost).abs() <= 10);
}

/// Reports of all receivers within a time, and the mean size of those and of the sender's.
fn reports(network: &Network, from: Nanos) -> (usize, f64) {
    let (sender, receiver) = network.logs(&network.flows()[0]);
    let sizes: Vec<_> = sender
        .iter()
        .filter_map(|(at, record)| match record {
            FlowRecord::Feedback { bytes, .. } if *at >= from => Some(*bytes),
            _ => None,
        })
        .collect();
    let own = receiver.iter().filter_map(|(at, record)| match record {
        FlowRecord::Control { bytes, .. } if *at >= from => Some(*bytes),
        _ => None,
    });
    let (sum, count) = sizes.iter().copied().chain(own).fold((0, 0), |(sum, count), bytes| (sum + bytes, count + 1));
    (sizes.len(), sum as f64 / f64::from(count))
}

/// [RFC 3550 sec 6.2, 6.3.1]: three quarters of 5% of 100 kb/s are 468.75 B/s.
#[test]
fn receivers_hear_each_other_and_report_as_rarely_as_their_number_demands() {
    for (receivers, rule) in [(10, false), (40, true), (200, true)] {
        let mut network = dumbbell(receivers, 7, &link(10_000_000, 5 * MS, 1000), &link(100_000_000, 0, 1000));
        replicate(&mut network, "s1", GROUPS[0], &[1]);
        replicate(&mut network, "s2", GROUPS[0], &(2..u32::from(receivers) + 2).collect::<Vec<_>>());
        let (from, end) = (100 * SECOND, 400 * SECOND);
        let ends = (1..=receivers).map(|n| receiver(n, Joins::new(&[]))).collect();
        let mut layered = spec(Timetable::new(&[(0.0, &[8e3])]), ends, end);
        layered.session_bandwidth_bps = 100e3;
        network.add_layered_flow(layered).expect("a good flow");
        network.run_until(end).expect("runs");
        let (count, bytes) = reports(&network, from);
        let interval_s = f64::from(receivers) * 300.0 / count as f64;
        let rule_s = f64::max(5.0, f64::from(receivers) * bytes / 468.75);
        assert_eq!(rule, rule_s > 5.0);
        assert!((0.9..1.1).contains(&(interval_s / rule_s)), "{receivers} receivers: {interval_s} s, by the rule {rule_s} s");
        let (sender, receiver) = network.logs(&network.flows()[0]);
        assert!(!sender.iter().any(|(_, record)| matches!(record, FlowRecord::Timeout { .. })));
        // Reports of other receivers are no control packets, and not foreign.
        assert!(receiver.iter().all(|(_, record)| !matches!(record, FlowRecord::Control { sender, .. } if *sender != 7)));
    }
}

/// When the sender hears BYE of `leaving` receivers that leave at 150 s, of `receivers` in all.
fn byes(receivers: u8, leaving: u8) -> Vec<Nanos> {
    let mut network = dumbbell(receivers, 7, &link(10_000_000, 5 * MS, 1000), &link(100_000_000, 0, 1000));
    replicate(&mut network, "s1", GROUPS[0], &[1]);
    replicate(&mut network, "s2", GROUPS[0], &(2..u32::from(receivers) + 2).collect::<Vec<_>>());
    let leave = 150 * SECOND;
    let ends = (1..=receivers).map(|n| LayeredReceiver { stop: (n <= leaving).then_some(leave), ..receiver(n, Joins::new(&[])) }).collect();
    let mut layered = spec(Timetable::new(&[(0.0, &[8e3])]), ends, 300 * SECOND);
    layered.session_bandwidth_bps = 100e3;
    network.add_layered_flow(layered).expect("a good flow");
    network.run_until(300 * SECOND).expect("runs");
    let flow = &network.flows()[0];
    for (index, (_, log)) in network.receiver_logs(flow).enumerate() {
        let last = log.iter().rev().find(|(_, record)| matches!(record, FlowRecord::Data { .. })).expect("data").0;
        assert!(index >= usize::from(leaving) || last == leave, "data counts until it leaves");
    }
    let (sender, _) = network.logs(flow);
    // The interval falls with the group, and a member that waits to say BYE may be silent for five of the new ones (section 6.3.5).
    let stays = |ssrc: u32| ssrc > 1000 + u32::from(leaving);
    assert!(!sender.iter().any(|(_, record)| matches!(record, FlowRecord::Timeout { ssrc } if stays(*ssrc))));
    sender.iter().filter_map(|(at, record)| matches!(record, FlowRecord::Bye { .. }).then_some(*at)).collect()
}

/// [RFC 3550 sec 6.3.7]: BYE has 5% of the session bandwidth for itself, of which receivers get three quarters; the first ones
/// come after 2.5 s x 0.5 / 1.21828 = 1.03 s at the earliest.
#[test]
fn many_receivers_that_leave_together_space_their_byes() {
    let leave = 150 * SECOND;
    let few = byes(49, 40);
    assert!(few.len() == 40 && few.iter().all(|at| (leave..leave + 20 * MS).contains(at)), "{few:?}");
    let many = byes(120, 100);
    assert_eq!(many.len(), 100);
    let (first, last) = (many[0] - leave, many[99] - leave);
    // 100 BYE packets of about 100 bytes at 468.75 B/s take 21 s; reconsideration lets the first come together.
    assert!(first >= 1_026 * MS && (10 * SECOND..60 * SECOND).contains(&last), "{first} {last}");
}

#[test]
fn a_layered_run_repeats() {
    let run = || {
        let lossy =
            ChannelConfig { loss: Some(LossModel::Bernoulli { p: 0.05 }), jitter: Jitter::of(100_000, 0), ..link(2_000_000, 5 * MS, 20) };
        let mut network = tree(5, &lossy);
        let sender = Timetable::new(&[(0.0, &[1e6, 0.5e6, 0.7e6]), (3.0, &[0.5e6, 0.5e6, 0.5e6])]);
        let mut layered =
            spec(sender, vec![receiver(1, Joins::new(&[(0.1, 3), (2.0, 1), (6.0, 2)])), receiver(2, Joins::new(&[(1.0, 2)]))], 20 * SECOND);
        (layered.phase, layered.pacing_jitter) = (None, 0.5);
        network.add_layered_flow(layered).expect("a good flow");
        network.run_until(21 * SECOND).expect("runs");
        for (_, _, stats, in_flight) in network.channel_stats() {
            assert_eq!(stats.offered_packets, stats.delivered_packets + stats.dropped_loss + stats.dropped_tail + in_flight as u64);
        }
        let logs: Vec<_> = network.receiver_logs(&network.flows()[0]).map(|(host, log)| format!("{host} {log:?}")).collect();
        (records(&network), logs)
    };
    assert!(run() == run());
}

/// Asks for something at the start.
struct Asks(Action);

impl SenderAlgorithm for Asks {
    fn interests(&self) -> Interests {
        let acks = if matches!(self.0, Action::SetWindow { .. }) { AckDetail::Every } else { AckDetail::None };
        Interests { acks, ..Interests::default() }
    }

    fn on_start(&mut self, _: Nanos, actions: &mut Actions) -> Result<(), Fault> {
        actions.push(self.0.clone());
        Ok(())
    }
}

impl ReceiverAlgorithm for Asks {
    fn on_start(&mut self, _: Nanos, actions: &mut Actions) -> Result<(), Fault> {
        actions.push(self.0.clone());
        Ok(())
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let network = || tree(1, &link(10_000_000, 0, 50));
    let plain = || Timetable::new(&[(0.0, &[1e6])]);
    let one = || vec![receiver(1, Joins::new(&[]))];
    let refused = |change: &dyn Fn(&mut LayeredSpec)| {
        let mut layered = spec(plain(), one(), SECOND);
        change(&mut layered);
        network().add_layered_flow(layered).expect_err("refused").to_string()
    };
    assert!(refused(&|spec| spec.receivers.clear()).contains("has no receiver"));
    assert!(refused(&|spec| spec.receivers[0].host = "b9".into()).contains("unknown host \"b9\"; did you mean \"b1\"?"));
    assert!(refused(&|spec| spec.receivers.push(receiver(1, Joins::new(&[])))).contains("b1 is named twice"));
    assert!(refused(&|spec| spec.base_group = 0x0a00_0001).contains("base group 10.0.0.1"));
    assert!(refused(&|spec| spec.base_group = 0xe000_0001).contains("base group 224.0.0.1"));
    assert!(refused(&|spec| spec.port = 5005).contains("even for RTP"));
    assert!(refused(&|spec| spec.stop = 0).contains("must start before it stops"));
    assert!(refused(&|spec| spec.receivers[0].stop = Some(0)).contains("receiver b1 stops at 0 ns"));
    assert!(refused(&|spec| spec.algorithm = Box::new(Asks(Action::SetWindow { window_packets: 1.0 }))).contains("acknowledgements"));

    let fails = |sender: Action, receiver: Option<Action>| {
        let mut network = network();
        let mut layered = spec(Asks(sender), one(), SECOND);
        if let Some(action) = receiver {
            layered.receivers[0].algorithm = Box::new(Asks(action));
        }
        network.add_layered_flow(layered).expect("a good flow");
        network.run_until(SECOND).expect_err("refused").to_string()
    };
    let base = Action::SetLayers { layers: layers(&[1e6]) };
    let upper = Layer { address: GROUPS[1], rate_bps: 1.0 };
    assert!(fails(Action::SetLayers { layers: vec![upper] }, None).contains("SetLayers: the base layer's group 239.1.0.1 first"));
    assert!(fails(Action::SetLayers { layers: layers(&[1e6, -1.0]) }, None).contains("-1 bit/s to 239.1.0.2"));
    assert!(fails(Action::SetLayers { layers: layers(&[0.0]) }, None).contains("starts without"));
    assert!(fails(base.clone(), Some(Action::JoinLayers { addresses: vec![0xe000_0005] })).contains("JoinLayers: 224.0.0.5"));
    assert!(fails(base, Some(Action::JoinLayers { addresses: (0..40).map(|n| GROUPS[0] + n).collect() })).contains("at most 31"));
}
