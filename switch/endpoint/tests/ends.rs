//! The two ends of a flow without a network around them: what a host refuses, what no flow should send, what ends too early.

use fairlane_endpoint::algorithm::{AckDetail, Action, Actions, Fault, FixedRate, Interests, Listener, ReceiverAlgorithm, SenderAlgorithm};
use fairlane_endpoint::record::FlowRecord;
use fairlane_endpoint::wire::rtcp::{Compound, ReportBlock};
use fairlane_endpoint::wire::rtp::RtpHeader;
use fairlane_endpoint::{End, Incoming, Io, Life, Nanos, Network, Outgoing, ReceiverSpec, RtpReceiver, RtpSender, SenderSpec};
use proptest::prelude::*;

const MS: Nanos = 1_000_000;
const SECOND: Nanos = 1_000_000_000;

/// Keeps what is sent; refuses while it is told to.
#[derive(Default)]
struct Host {
    sent: Vec<(bool, Vec<u8>)>,
    refuses: bool,
}

impl Network for Host {
    fn send(&mut self, datagram: &Outgoing) -> bool {
        if !self.refuses {
            let mut payload = datagram.head.to_vec();
            payload.resize(payload.len() + datagram.padding, 0);
            self.sent.push((datagram.kind.is_rtcp(), payload));
        }
        !self.refuses
    }

    fn join(&mut self, _: u32) -> Result<(), Fault> {
        Ok(())
    }

    fn leave(&mut self, _: u32) {}
}

fn sender(algorithm: impl SenderAlgorithm + 'static) -> RtpSender {
    let spec = SenderSpec {
        name: "f".into(),
        packet_bytes: 1000,
        session_bandwidth_bps: 1e6,
        pacing_jitter: 0.0,
        phase: Some(0.0),
        exact_loss: false,
        ssrc: 7,
        cname: b"sender".to_vec(),
        layered: false,
    };
    RtpSender::new(Life { peer: 1, start: 0, stop: 10 * SECOND }, spec, Box::new(algorithm), None, 1)
}

fn receiver(algorithm: impl ReceiverAlgorithm + 'static, acks: bool) -> RtpReceiver {
    let spec = ReceiverSpec {
        name: "f".into(),
        stream: "flow f receiver".into(),
        session_bandwidth_bps: 1e6,
        ssrc: 8,
        cname: b"receiver".to_vec(),
        acks,
        media: false,
        film: false,
        delay_threshold: 75 * MS,
        base_group: None,
    };
    RtpReceiver::new(Life { peer: 2, start: 0, stop: 10 * SECOND }, spec, Box::new(algorithm), 1)
}

/// Does what is due up to an instant.
fn run(end: &mut dyn End, host: &mut Host, until: Nanos) -> Result<(), Fault> {
    while let Some(now) = end.next().filter(|&at| at <= until) {
        end.act(&mut Io { now, epoch: 0, network: host })?;
    }
    Ok(())
}

fn numbers(host: &Host) -> Vec<u64> {
    let number = |packet: &[u8]| packet.get(20..28).and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes);
    host.sent.iter().filter(|(rtcp, _)| !rtcp).filter_map(|(_, packet)| number(packet)).collect()
}

/// A window of so many packets, without pacing.
struct Window(f64);

impl SenderAlgorithm for Window {
    fn interests(&self) -> Interests {
        Interests { acks: AckDetail::Losses, ..Interests::default() }
    }

    fn on_start(&mut self, _: Nanos, actions: &mut Actions) -> Result<(), Fault> {
        actions.push(Action::SetWindow { window_packets: self.0 });
        Ok(())
    }
}

#[test]
fn a_refused_packet_is_tried_again_with_the_same_number() {
    let (mut end, mut host) = (sender(Window(3.0)), Host { refuses: true, ..Host::default() });
    run(&mut end, &mut host, 5 * MS).expect("runs");
    host.refuses = false;
    assert_eq!(end.next(), Some(6 * MS), "a millisecond after the last try");
    run(&mut end, &mut host, 6 * MS).expect("runs");
    assert_eq!(numbers(&host), [0, 1, 2]);
    // A paced flow does not try again: the number is the next packet's.
    let (mut end, mut host) = (sender(FixedRate { rate_bps: 8e6 }), Host::default());
    for (ms, refuses) in [(0, false), (1, true), (2, true), (3, false)] {
        host.refuses = refuses;
        run(&mut end, &mut host, ms * MS).expect("runs");
    }
    assert_eq!(numbers(&host), [0, 1]);
}

/// Asks once for something.
struct Asks(Vec<Action>);

impl SenderAlgorithm for Asks {
    fn on_start(&mut self, _: Nanos, actions: &mut Actions) -> Result<(), Fault> {
        actions.append(&mut self.0);
        Ok(())
    }
}

#[test]
fn what_cannot_be_asked_for_is_named() {
    let rate = || Action::SetRate { rate_bps: 1e5, burst_packets: 1 };
    let cases = [
        (vec![], "starts without SetRate or SetWindow"),
        (vec![rate(), Action::SendFeedback { loss_event_rate: None }], "SendFeedback"),
        (vec![rate(), Action::SetLayers { layers: vec![] }], "SetLayers"),
        (vec![rate(), Action::SetWindow { window_packets: 2.0 }], "SetWindow"),
        (vec![Action::SetRate { rate_bps: f64::NAN, burst_packets: 1 }], "must be positive"),
    ];
    for (actions, said) in cases {
        let fault = run(&mut sender(Asks(actions)), &mut Host::default(), MS).expect_err("cannot be").to_string();
        assert!(fault.starts_with("flow f: ") && fault.contains(said), "{fault}");
    }
}

#[test]
fn an_end_that_is_closed_says_its_last_words_once() {
    let (mut end, mut host) = (sender(FixedRate { rate_bps: 8e6 }), Host::default());
    run(&mut end, &mut host, 10 * MS).expect("runs");
    for _ in 0..2 {
        end.close(&mut Io { now: 11 * MS, epoch: 0, network: &mut host });
    }
    let ends = end.log().iter().filter(|(_, record)| matches!(record, FlowRecord::End { packets: 11, .. })).count();
    assert_eq!((ends, end.next()), (1, None));
}

/// Wants RTCP.
struct Reports;

impl SenderAlgorithm for Reports {
    fn interests(&self) -> Interests {
        Interests { rtcp: true, ..Interests::default() }
    }

    fn on_start(&mut self, _: Nanos, actions: &mut Actions) -> Result<(), Fault> {
        actions.push(Action::SetRate { rate_bps: 1e5, burst_packets: 1 });
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Bytes of any kind, reports that lie, numbers that jump: both ends go on, and count what they did not understand.
    #[test]
    fn whatever_arrives_the_flow_goes_on(datagrams in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..80)), 1..40),
                                         lies in prop::collection::vec((any::<u32>(), any::<u8>(), any::<i32>(), any::<(u32, u32, u32)>()), 0..8),
                                         sequences in prop::collection::vec(any::<u16>(), 0..30)) {
        let (mut one, mut other, mut host) = (sender(Reports), receiver(Listener, true), Host::default());
        run(&mut one, &mut host, 0).expect("runs");
        run(&mut other, &mut host, 0).expect("runs");
        let lie = |(ssrc, fraction_lost, cumulative_lost, (extended_highest_sequence, lsr, dlsr)): (u32, u8, i32, (u32, u32, u32))| {
            let block = ReportBlock { ssrc: 7, fraction_lost, cumulative_lost, extended_highest_sequence, lsr, dlsr, ..ReportBlock::default() };
            let mut bytes = Vec::new();
            Compound { ssrc, blocks: vec![block], bye: vec![ssrc], ..Compound::default() }.emit(&mut bytes);
            (true, bytes)
        };
        let data = |sequence: u16| {
            let mut bytes = RtpHeader { sequence, timestamp: 0, ssrc: 7, rate: None }.emit().0[..12].to_vec();
            bytes.resize(100, 0);
            (false, bytes)
        };
        let all = datagrams.into_iter().chain(lies.into_iter().map(lie)).chain(sequences.into_iter().map(data));
        for (n, (rtcp, payload)) in all.enumerate() {
            let now = n as Nanos * MS;
            for end in [&mut one as &mut dyn End, &mut other] {
                run(end, &mut host, now).expect("runs");
                end.receive(&Incoming { rtcp, group: None, ecn: 0, payload: &payload }, &mut Io { now, epoch: 0, network: &mut host }).expect("goes on");
            }
        }
        let before = numbers(&host).len();
        run(&mut one, &mut host, SECOND).expect("runs");
        run(&mut other, &mut host, SECOND).expect("runs");
        prop_assert!(numbers(&host).len() > before);
    }
}
