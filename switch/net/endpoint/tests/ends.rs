//! The two ends of a flow without a network around them: what a host refuses, what no flow should send, what ends too early.

mod common;

use common::{receiver_spec, sender_spec};
use fairlane_endpoint::algorithm::{
    Ack, AckDetail, Action, Actions, Fault, FixedRate, Interests, Listener, ReceiverAlgorithm, SenderAlgorithm,
};
use fairlane_endpoint::circuit_breaker::CircuitBreaker;
use fairlane_endpoint::record::FlowRecord;
use fairlane_endpoint::wire::ccfb::{CongestionFeedback, Metric, Offset, StreamReport};
use fairlane_endpoint::wire::rtcp::{Compound, ReportBlock};
use fairlane_endpoint::wire::rtp::RtpHeader;
use fairlane_endpoint::{End, Incoming, Io, Ip, Life, Nanos, Network, Outgoing, ReceiverSpec, RtpReceiver, RtpSender, SenderSpec};
use proptest::prelude::*;
use std::sync::{Arc, Mutex};

const MS: Nanos = 1_000_000;
const SECOND: Nanos = 1_000_000_000;

/// Keeps what is sent; refuses data while it is told to.
#[derive(Default)]
struct Host {
    sent: Vec<(bool, Vec<u8>)>,
    /// ECN fields of what was sent.
    ecn: Vec<u8>,
    refuses: bool,
}

impl Network for Host {
    fn send(&mut self, datagram: &Outgoing) -> bool {
        let refuses = self.refuses && !datagram.kind.is_rtcp();
        if !refuses {
            let mut payload = datagram.head.to_vec();
            payload.resize(payload.len() + datagram.padding, 0);
            self.sent.push((datagram.kind.is_rtcp(), payload));
            self.ecn.push(datagram.ecn);
        }
        !refuses
    }

    fn join(&mut self, _: u32) -> Result<(), Fault> {
        Ok(())
    }

    fn leave(&mut self, _: u32) {}
}

fn sender(algorithm: impl SenderAlgorithm + 'static) -> RtpSender {
    RtpSender::new(Life { peer: 1, ip: Ip::V4, start: 0, stop: 10 * SECOND }, sender_spec(1e6), Box::new(algorithm), None, 1)
}

fn receiver(algorithm: impl ReceiverAlgorithm + 'static, acks: bool) -> RtpReceiver {
    let spec = ReceiverSpec { acks, ..receiver_spec(1e6) };
    RtpReceiver::new(Life { peer: 2, ip: Ip::V4, start: 0, stop: 10 * SECOND }, spec, Box::new(algorithm), 1)
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

/// Half a minute's silence, then a report whose packets open the window: before data leave the flow ends [RFC 8083 sec 4.1], whatever else the
/// report says. Of ten packets it names two lost ones, and the receiver says goodbye.
#[test]
fn nothing_follows_the_end_of_a_flow() {
    let circuit_breaker = Some(CircuitBreaker { reduces: false, usable_loss: None, usable_rtt_s: None, unusable_s: 10.0 });
    let spec = SenderSpec { circuit_breaker, report_interval: Some(100 * MS), ..sender_spec(1e6) };
    let life = Life { peer: 1, ip: Ip::V4, start: 0, stop: 60 * SECOND };
    let (mut end, mut host) = (RtpSender::new(life, spec, Box::new(Window(10.0)), None, 1), Host::default());
    run(&mut end, &mut host, 30 * SECOND).expect("runs");
    let (_, first) = host.sent.iter().find(|(rtcp, _)| !rtcp).expect("is there");
    let begin = u16::from_be_bytes([first[2], first[3]]);
    let packets = (0..10).map(|n| (n != 1 && n != 5).then_some(Metric { ecn: 0, offset: Offset::Units(0) })).collect();
    let feedback = CongestionFeedback { ssrc: 8, streams: vec![StreamReport { ssrc: 7, begin, packets }], timestamp: 0 };
    let mut report = Vec::new();
    Compound { ssrc: 8, congestion: vec![feedback], bye: vec![8], ..Compound::default() }.emit(&mut report);
    let report = Incoming { rtcp: true, group: None, ecn: 0, payload: &report };
    end.receive(&report, &mut Io { now: 30 * SECOND, epoch: 0, network: &mut host }).expect("goes on");
    let log = end.log();
    let losses = log.iter().filter(|(_, record)| matches!(record, FlowRecord::Loss { .. })).count();
    assert!(losses == 1 && matches!(log.last(), Some((_, FlowRecord::End { packets: 10, .. }))), "{log:?}");
}

/// Sends data as ECT(0), and remembers what acknowledgements say.
struct Marked(Arc<Mutex<Vec<(u64, u8)>>>);

impl SenderAlgorithm for Marked {
    fn interests(&self) -> Interests {
        Interests { acks: AckDetail::Every, ecn: 2, ..Interests::default() }
    }

    fn on_start(&mut self, _: Nanos, actions: &mut Actions) -> Result<(), Fault> {
        actions.push(Action::SetWindow { window_packets: 4.0 });
        Ok(())
    }

    fn on_ack(&mut self, _: Nanos, ack: &Ack, _: &mut Actions) -> Result<(), Fault> {
        self.0.lock().expect("is not poisoned").push((ack.sequence, ack.ecn));
        Ok(())
    }
}

#[test]
fn a_mark_comes_back_with_its_packets_acknowledgement() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let (mut one, mut other, mut data) = (sender(Marked(heard.clone())), receiver(Listener, true), Host::default());
    run(&mut one, &mut data, 0).expect("runs");
    assert_eq!(data.ecn, [2; 4]);
    run(&mut other, &mut Host::default(), 0).expect("runs");
    for ((_, packet), ecn) in data.sent.iter().zip([2, 3, 0, 3]) {
        let mut acks = Host::default();
        let packet = Incoming { rtcp: false, group: None, ecn, payload: packet };
        other.receive(&packet, &mut Io { now: MS, epoch: 0, network: &mut acks }).expect("goes on");
        assert_eq!(acks.ecn, [0], "an acknowledgement is not ECN-capable");
        let ack = Incoming { rtcp: false, group: None, ecn: 0, payload: &acks.sent[0].1 };
        one.receive(&ack, &mut Io { now: 2 * MS, epoch: 0, network: &mut Host::default() }).expect("goes on");
    }
    assert_eq!(*heard.lock().expect("is not poisoned"), [(0, 2), (1, 3), (2, 0), (3, 3)]);
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

/// [RFC 3550 sec 5.1]: the payload type is the second octet's seven low bits.
#[test]
fn data_of_another_payload_type_are_ignored() {
    let (mut end, mut host) = (receiver(Listener, false), Host::default());
    run(&mut end, &mut host, 0).expect("runs");
    for (sequence, octet) in (1..).zip([96, 0x80 | 96, 95, 97, 0, 200]) {
        let mut packet = [&RtpHeader { sequence, timestamp: 0, ssrc: 7, extension: &[] }.emit()[..], &[0; 20]].concat();
        packet[1] = octet;
        let packet = Incoming { rtcp: false, group: None, ecn: 0, payload: &packet };
        end.receive(&packet, &mut Io { now: MS, epoch: 0, network: &mut host }).expect("goes on");
    }
    end.close(&mut Io { now: 2 * MS, epoch: 0, network: &mut host });
    assert!(matches!(end.log().last(), Some((_, FlowRecord::End { packets: 2, malformed: 4, .. }))), "{:?}", end.log());
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

impl ReceiverAlgorithm for Reports {
    fn interests(&self) -> Interests {
        Interests { rtcp: true, ..Interests::default() }
    }
}

/// Whether each report that was sent is an SR, and has a block.
fn reports(host: &mut Host) -> Vec<(bool, bool)> {
    let compound = |(_, bytes): (bool, Vec<u8>)| Compound::parse(&bytes).expect("is a compound");
    host.sent.drain(..).filter(|(rtcp, _)| *rtcp).map(compound).map(|report| (report.sender.is_some(), !report.blocks.is_empty())).collect()
}

/// [RFC 3550 sec 6.4]: "SR is issued if a site has sent any data packets during the interval since issuing the last report or the
/// previous one, otherwise the RR".
#[test]
fn a_sender_of_nothing_sends_receiver_reports() {
    let (mut end, mut host) = (sender(Reports), Host::default());
    end.life().stop = 300 * SECOND;
    run(&mut end, &mut host, 60 * SECOND).expect("runs");
    let busy = reports(&mut host);
    assert!(busy.len() > 8 && busy.iter().all(|&report| report == (true, false)));
    host.refuses = true;
    run(&mut end, &mut host, 160 * SECOND).expect("runs");
    let idle = reports(&mut host);
    assert_eq!(idle[..2], [(true, false); 2]);
    assert!(idle.len() > 15 && idle[2..].iter().all(|&report| report == (false, false)), "{idle:?}");
    host.refuses = false;
    run(&mut end, &mut host, 200 * SECOND).expect("runs");
    assert!(reports(&mut host).iter().all(|&(is_sr, _)| is_sr));
}

/// [RFC 3550 sec 6.4]: a report block "for each of the synchronization sources from which this receiver has received RTP data packets
/// since the last report".
#[test]
fn a_source_that_was_not_heard_has_no_block() {
    let (mut end, mut host) = (receiver(Reports, false), Host::default());
    end.life().stop = 300 * SECOND;
    run(&mut end, &mut host, 0).expect("runs");
    for n in 0..1000u16 {
        let now = Nanos::from(n) * 100 * MS;
        run(&mut end, &mut host, now).expect("runs");
        // Nothing arrives from 30 s to 60 s.
        if !(300..600).contains(&n) {
            let mut packet = RtpHeader { sequence: n, timestamp: 0, ssrc: 7, extension: &[] }.emit().to_vec();
            packet.resize(100, 0);
            let packet = Incoming { rtcp: false, group: None, ecn: 0, payload: &packet };
            end.receive(&packet, &mut Io { now, epoch: 0, network: &mut host }).expect("goes on");
        }
        if n == 299 || n == 599 {
            let blocks: Vec<bool> = reports(&mut host).into_iter().map(|(_, block)| block).collect();
            let wanted: Vec<bool> = (0..blocks.len()).map(|report| n == 299 || report == 0).collect();
            assert!(blocks.len() > 3 && blocks == wanted, "{blocks:?}");
        }
    }
    assert!(reports(&mut host).iter().all(|&(_, block)| block));
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
            let mut bytes = RtpHeader { sequence, timestamp: 0, ssrc: 7, extension: &[] }.emit().to_vec();
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
