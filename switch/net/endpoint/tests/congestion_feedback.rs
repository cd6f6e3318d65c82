//! Both ends of a flow with congestion control feedback (RFC 8888), 20 ms apart each way: what is sent, and what the sender's algorithm hears.

mod common;

use common::{receiver_spec, sender_spec};
use fairlane_endpoint::algorithm::{Ack, AckDetail, Action, Actions, Fault, Interests, Listener, Loss, SenderAlgorithm};
use fairlane_endpoint::record::FlowRecord;
use fairlane_endpoint::wire::ccfb::CongestionFeedback;
use fairlane_endpoint::wire::rtcp::Compound;
use fairlane_endpoint::{End, Incoming, Io, Ip, Life, Nanos, Network, Outgoing, ReceiverSpec, RtpReceiver, RtpSender, SenderSpec};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const MS: Nanos = 1_000_000;
const SECOND: Nanos = 1_000_000_000;
const WAY: Nanos = 20 * MS;
/// What the receiver's clock is ahead.
const AHEAD: Nanos = 3 * SECOND;
const EPOCH: Nanos = 1_700_000_000 * SECOND;

#[derive(Debug, Clone)]
struct Sent {
    rtcp: bool,
    ecn: u8,
    payload: Vec<u8>,
}

#[derive(Default)]
struct Host(Vec<Sent>);

impl Network for Host {
    fn send(&mut self, datagram: &Outgoing) -> bool {
        let mut payload = datagram.head.to_vec();
        payload.resize(payload.len() + datagram.padding, 0);
        self.0.push(Sent { rtcp: datagram.kind.is_rtcp(), ecn: datagram.ecn, payload });
        true
    }

    fn join(&mut self, _: u32) -> Result<(), Fault> {
        Ok(())
    }

    fn leave(&mut self, _: u32) {}
}

#[derive(Default)]
struct Heard {
    acks: Vec<(Nanos, Ack<'static>)>,
    losses: Vec<(Nanos, Loss)>,
}

/// A packet each 10 ms.
struct Paced {
    heard: Arc<Mutex<Heard>>,
    ecn: u8,
}

impl SenderAlgorithm for Paced {
    fn interests(&self) -> Interests {
        Interests { acks: AckDetail::Every, ecn: self.ecn, ..Interests::default() }
    }

    fn on_start(&mut self, _: Nanos, actions: &mut Actions) -> Result<(), Fault> {
        actions.push(Action::SetRate { rate_bps: 800e3, burst_packets: 1 });
        Ok(())
    }

    fn on_ack(&mut self, now: Nanos, ack: &Ack, _: &mut Actions) -> Result<(), Fault> {
        self.heard.lock().expect("is not poisoned").acks.push((now, Ack { header: &[], ..*ack }));
        Ok(())
    }

    fn on_loss(&mut self, now: Nanos, loss: &Loss, _: &mut Actions) -> Result<(), Fault> {
        self.heard.lock().expect("is not poisoned").losses.push((now, *loss));
        Ok(())
    }
}

/// What happened in a run.
struct Run {
    heard: Arc<Mutex<Heard>>,
    data: Vec<Sent>,
    /// Of the receiver.
    reports: Vec<Sent>,
    sender: RtpSender,
}

/// Runs for some seconds. data: what becomes of the sender's n-th packet, extra delays of its copies with their ECN fields. report: whether the receiver's
/// n-th RTCP packet arrives.
fn run(
    session_bps: f64,
    interval: Nanos,
    ecn: u8,
    duration: Nanos,
    data: impl Fn(usize) -> Vec<(Nanos, u8)>,
    report: impl Fn(usize) -> bool,
) -> Run {
    let heard = Arc::new(Mutex::new(Heard::default()));
    let life = |peer| Life { peer, ip: Ip::V4, start: 0, stop: duration };
    let spec = SenderSpec { cname: b"sender@10.0.0.1".to_vec(), report_interval: Some(interval), ..sender_spec(session_bps) };
    let mut sender = RtpSender::new(life(1), spec, Box::new(Paced { heard: heard.clone(), ecn }), None, 1);
    let spec =
        ReceiverSpec { cname: b"receiver@10.0.0.2".to_vec(), acks: true, report_interval: Some(interval), ..receiver_spec(session_bps) };
    let mut receiver = RtpReceiver::new(life(2), spec, Box::new(Listener), 1);
    let (mut there, mut back) = (Host::default(), Host::default());
    // (when, order) -> (to the receiver, datagram).
    let mut way: BTreeMap<(Nanos, usize), (bool, Sent)> = BTreeMap::new();
    let (mut sent, mut returned, mut packets, mut order) = (0, 0, 0, 0);
    loop {
        let arrives = way.keys().next().copied();
        let next = [sender.next(), receiver.next(), arrives.map(|(at, _)| at)].into_iter().flatten().min();
        let Some(now) = next.filter(|&now| now <= duration) else { break };
        if let Some((key, (forward, datagram))) =
            arrives.filter(|(at, _)| *at == now).and_then(|key| way.remove(&key).map(|found| (key, found)))
        {
            let incoming = Incoming { rtcp: datagram.rtcp, group: None, ecn: datagram.ecn, payload: &datagram.payload };
            assert_eq!(key.0, now);
            if forward {
                receiver.receive(&incoming, &mut Io { now, epoch: EPOCH + AHEAD, network: &mut back }).expect("goes on");
            } else {
                sender.receive(&incoming, &mut Io { now, epoch: EPOCH, network: &mut there }).expect("goes on");
            }
        } else if sender.next() == Some(now) {
            sender.act(&mut Io { now, epoch: EPOCH, network: &mut there }).expect("goes on");
        } else {
            receiver.act(&mut Io { now, epoch: EPOCH + AHEAD, network: &mut back }).expect("goes on");
        }
        for datagram in &there.0[sent..] {
            let copies = if datagram.rtcp { vec![(0, 0)] } else { data(packets) };
            packets += usize::from(!datagram.rtcp);
            for (later, ecn) in copies {
                order += 1;
                way.insert((now + WAY + later, order), (true, Sent { ecn, ..datagram.clone() }));
            }
        }
        for (n, datagram) in back.0.iter().enumerate().skip(returned).filter(|(n, _)| report(*n)) {
            order += 1;
            assert!(datagram.rtcp, "report {n}");
            way.insert((now + WAY, order), (false, datagram.clone()));
        }
        (sent, returned) = (there.0.len(), back.0.len());
    }
    Run { heard, data: there.0.into_iter().filter(|sent| !sent.rtcp).collect(), reports: back.0, sender }
}

fn feedback(report: &Sent) -> Option<CongestionFeedback> {
    Compound::parse_reduced(&report.payload).expect("is RTCP").congestion.pop()
}

#[test]
fn arrivals_come_back_with_a_resolution_of_a_millisecond() {
    // Packet n takes n mod 7 ms longer.
    let later = |n: usize| n as Nanos % 7 * MS;
    let run = run(2e6, 100 * MS, 0, 20 * SECOND, |n| vec![(later(n), 0)], |_| true);
    let heard = run.heard.lock().expect("is not poisoned");
    assert!(heard.losses.is_empty());
    // 20 s of 100 packets a second, less what is on the way at the end.
    assert!(heard.acks.len() > 1980, "{}", heard.acks.len());
    for (number, (at, ack)) in heard.acks.iter().enumerate() {
        assert_eq!(ack.sequence, number as u64);
        let exact_s = (WAY + later(number)) as f64 / 1e9;
        let delay_s = ack.one_way_delay_s.expect("is known");
        assert!((delay_s - AHEAD as f64 / 1e9 - exact_s).abs() < 0.6 / 1024.0, "{number}: {delay_s}");
        assert!((ack.rtt_s - exact_s - WAY as f64 / 1e9).abs() < 0.6 / 1024.0, "{number}: {}", ack.rtt_s);
        // Packets leave each 10 ms from 0 on.
        assert!((*at as f64 / 1e9 - ack.rtt_s - ack.held_s - number as f64 * 0.01).abs() < 1e-6);
        assert!((0.0..0.2).contains(&ack.held_s));
    }
    assert!(heard.acks.windows(2).all(|pair| pair[0].1.ends_report == (pair[0].0 != pair[1].0)), "one ends each report");
}

/// [RFC 5506 sec 4]: compound packets first and at regular intervals, those of reduced size between them; [RFC 4585 sec 3.5.3]. All within 2.5 % of the session's
/// bandwidth [RFC 4585 sec 3.6.1].
#[test]
fn reports_are_of_reduced_size_between_regular_compounds() {
    let run = run(2e6, 100 * MS, 0, 30 * SECOND, |_| vec![(0, 0)], |_| true);
    let compound = |report: &&Sent| report.payload[1] == 201;
    assert!(compound(&&run.reports[0]));
    let full: Vec<_> = run.reports.iter().filter(compound).collect();
    assert!((5..=14).contains(&full.len()), "{}", full.len());
    let reduced: Vec<_> = run.reports.iter().filter(|report| report.payload[1] == 205).collect();
    assert_eq!(full.len() + reduced.len(), run.reports.len());
    // Ten a second, each of 20 packets: those since the report before, and those of that one. Header, block and timestamp: 20 bytes [RFC 8888 sec 3.1].
    assert!((290..=301).contains(&reduced.len()), "{}", reduced.len());
    // But after a compound, which is a report, too.
    let usual = reduced.iter().filter(|report| {
        let said = feedback(report).expect("is there");
        (report.payload.len(), said.streams[0].packets.len(), report.ecn) == (60, 20, 0)
    });
    let usual = usual.count();
    assert!(usual > 260, "{usual}");
    let bytes: usize = run.reports.iter().map(|report| 28 + report.payload.len()).sum();
    assert!((bytes as f64 * 8.0 / 30.0) < 0.025 * 2e6);
}

/// RTCP keeps to its part, 2.5 % of the session's bandwidth [RFC 4585 sec 3.6.1]: in slow sessions reports leave less often than is wanted, and each speaks
/// of more packets. Of 100 packets a second each costs four bytes; the slowest session has 312 bytes a second, and is over its part at first, as the mean
/// size follows by a sixteenth with each packet [RFC 3550 sec 6.3.3].
#[test]
fn a_slow_session_reports_less_often() {
    for (session_bps, interval, most) in [(1e6, 10 * MS, 1.1), (300e3, 50 * MS, 1.1), (100e3, 50 * MS, 1.6)] {
        let run = run(session_bps, interval, 0, 300 * SECOND, |_| vec![(0, 0)], |_| true);
        let bytes: usize = run.reports.iter().map(|report| 28 + report.payload.len()).sum();
        let part = bytes as f64 * 8.0 / 300.0 / (0.025 * session_bps);
        assert!((0.6..most).contains(&part), "{session_bps}: {part}");
        let wanted = 300 * SECOND / interval;
        assert!((run.reports.len() as u64) < wanted * 3 / 4, "{session_bps}: {}", run.reports.len());
        let heard = run.heard.lock().expect("is not poisoned");
        assert!(heard.losses.is_empty() && heard.acks.len() > 29_000, "{session_bps}: {}", heard.acks.len());
    }
}

/// "If only a single congestion control feedback packet is lost" [RFC 8888 sec 5]: the next one repeats it.
#[test]
fn a_lost_report_costs_an_interval_and_no_packet() {
    let run = run(2e6, 100 * MS, 0, 10 * SECOND, |_| vec![(0, 0)], |n| n % 2 == 0);
    let heard = run.heard.lock().expect("is not poisoned");
    assert!(heard.losses.is_empty());
    let numbers: Vec<_> = heard.acks.iter().map(|(_, ack)| ack.sequence).collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
    assert!(heard.acks.iter().any(|(_, ack)| ack.held_s > 0.15));
}

/// Of packets whose two reports are lost nothing is known: they are no losses and no arrivals, and do not stay in flight.
#[test]
fn two_lost_reports_in_a_row_are_no_loss_of_packets() {
    let run = run(2e6, 100 * MS, 0, 10 * SECOND, |_| vec![(0, 0)], |n| !(40..44).contains(&n));
    let heard = run.heard.lock().expect("is not poisoned");
    assert!(heard.losses.is_empty());
    let numbers: Vec<_> = heard.acks.iter().map(|(_, ack)| ack.sequence).collect();
    let gaps: Vec<_> = numbers.windows(2).filter(|pair| pair[1] != pair[0] + 1).map(|pair| pair[1] - pair[0] - 1).collect();
    assert_eq!(gaps.len(), 1);
    assert!((20..=40).contains(&gaps[0]), "{gaps:?}");
    let (_, last) = heard.acks.last().expect("there are some");
    assert!(last.path.in_flight_packets < 20, "{}", last.path.in_flight_packets);
}

#[test]
fn losses_and_marks_and_copies_are_told() {
    // Packet 105 is lost; 205 arrives twice, the second time marked; 305 is marked.
    let fate = |n: usize| match n {
        105 => vec![],
        205 => vec![(0, 2), (3 * MS, 3)],
        305 => vec![(0, 3)],
        _ => vec![(0, 2)],
    };
    let run = run(2e6, 100 * MS, 2, 5 * SECOND, fate, |_| true);
    let heard = run.heard.lock().expect("is not poisoned");
    assert_eq!(heard.losses.iter().map(|(_, loss)| (loss.first_sequence, loss.lost_packets)).collect::<Vec<_>>(), [(105, 1)]);
    let marked: Vec<_> = heard.acks.iter().filter(|(_, ack)| ack.ecn == 3).map(|(_, ack)| ack.sequence).collect();
    assert_eq!(marked, [205, 305]);
    let (_, copied) = heard.acks.iter().find(|(_, ack)| ack.sequence == 205).expect("arrived");
    assert!((copied.rtt_s - 0.04).abs() < 0.6 / 1024.0, "the first copy's arrival");
    assert!(run.data.iter().all(|packet| packet.ecn == 2) && run.reports.iter().all(|report| report.ecn == 0));
}

/// "clearly an indication that the path results in clearing of the ECT field" [RFC 6679 sec 7.4.2].
#[test]
fn a_path_that_clears_ect_is_noticed() {
    let run = run(2e6, 100 * MS, 2, 5 * SECOND, |n| vec![(0, if n < 100 { 2 } else { 0 })], |_| true);
    let noted =
        run.sender.log().iter().filter(|(_, record)| matches!(record, FlowRecord::Note { kind, .. } if kind == "ecn.cleared")).count();
    assert_eq!(noted, 1);
    let since = run.data.iter().position(|packet| packet.ecn == 0).expect("stops");
    assert!((120..160).contains(&since) && run.data[since..].iter().all(|packet| packet.ecn == 0), "{since}");
}

/// After a goodbye nothing follows; a sender that has no report from the receiver hears of no packet.
#[test]
fn without_reports_nothing_is_heard() {
    let run = run(2e6, 100 * MS, 0, 5 * SECOND, |_| vec![(0, 0)], |_| false);
    let heard = run.heard.lock().expect("is not poisoned");
    assert!(heard.acks.is_empty() && heard.losses.is_empty());
    assert!(run.reports.last().is_some_and(|last| Compound::parse(&last.payload).is_some_and(|compound| compound.bye == [8])));
}
