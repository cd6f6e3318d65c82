//! RFC 8083's circuit breakers on series of reports that are made by hand. What must come out is computed here from the RFC's formulas.

mod common;

use common::sender_spec;
use fairlane_endpoint::algorithm::{FixedRate, NoteValue};
use fairlane_endpoint::circuit_breaker::{Cause, CircuitBreaker, CircuitBreakers, Session, Trip};
use fairlane_endpoint::record::FlowRecord;
use fairlane_endpoint::wire::rtcp::{Compound, ReportBlock};
use fairlane_endpoint::{End, Incoming, Io, Ip, Life, Nanos, Network, Outgoing, RtpSender, SenderSpec};
use proptest::prelude::*;

const CEASE: CircuitBreaker = CircuitBreaker { reduces: false, usable_loss: None, usable_rtt_s: None, unusable_s: 10.0 };
const SMALL: Session = Session { td_s: 5.0, tdr_s: 5.0 };

fn block(fraction_lost: u8, highest: u32) -> ReportBlock {
    ReportBlock { ssrc: 7, fraction_lost, extended_highest_sequence: highest, ..ReportBlock::default() }
}

/// Packets of `bytes` at a constant rate from one instant to another, each a frame.
fn send(breakers: &mut CircuitBreakers, from_s: f64, to_s: f64, gap_s: f64, bytes: u64) {
    for n in 0..((to_s - from_s) / gap_s).round() as u64 {
        let at = from_s + n as f64 * gap_s;
        breakers.sent(at, (at * 1e9) as Nanos, bytes);
    }
}

/// [RFC 8083 sec 4.1]: no report for three Td, 15 s or 3 x 8 s here, while data are sent; a report without a block about them is none.
#[test]
fn silence_for_three_intervals_trips() {
    for td_s in [5.0, 8.0] {
        let session = Session { td_s, ..SMALL };
        let mut breakers = CircuitBreakers::new(CEASE, session);
        assert_eq!(breakers.rtcp_timeout(1000.0, session), None, "nothing was sent");
        send(&mut breakers, 0.0, 3.0, 0.1, 100);
        assert_eq!(breakers.reported(3.0, Some(&block(0, 1)), None, session), None);
        assert_eq!(breakers.rtcp_timeout(1000.0, session), None, "all is reported");
        send(&mut breakers, 3.5, 18.0, 0.1, 100);
        breakers.reported(9.0, None, None, session);
        assert_eq!(breakers.rtcp_timeout(3.5 + 3.0 * td_s - 0.001, session), None);
        assert_eq!(breakers.rtcp_timeout(3.5 + 3.0 * td_s, session).map(|trip| trip.cause), Some(Cause::RtcpTimeout));
    }
}

/// How many reports without new data trip the second breaker.
fn reports_until_media_timeout(frames_s: f64, rtt_s: f64, session: Session) -> usize {
    let mut breakers = CircuitBreakers::new(CEASE, session);
    let mut now = 0.0;
    for n in 0..100 {
        send(&mut breakers, now, now + 3.0 * frames_s, frames_s, 100);
        now += 3.0 * frames_s;
        // The first report says that data arrived; then the highest number stays.
        let trip = breakers.reported(now, Some(&block(0, 5)), Some(rtt_s), session);
        if let Some(trip) = trip {
            assert_eq!(trip.cause, Cause::MediaTimeout);
            return n;
        }
    }
    panic!("does not trip")
}

/// [RFC 8083 sec 4.2]: MEDIA_TIMEOUT = ceil(5 max(Tf, Tr, Tdr) / Tdr).
#[test]
fn reports_without_new_data_trip() {
    assert_eq!(reports_until_media_timeout(0.04, 0.1, SMALL), 5);
    assert_eq!(reports_until_media_timeout(0.04, 5.1, SMALL), 6, "ceil(5 x 5.1 / 5)");
    assert_eq!(reports_until_media_timeout(7.0, 0.1, SMALL), 7, "5 x 7 / 5");
    assert_eq!(reports_until_media_timeout(7.0, 0.1, Session { tdr_s: 20.0, ..SMALL }), 5);
}

/// [RFC 8083 sec 4.2]: data that arrive cancel it; a larger value extends it, a smaller one does not shorten it; without data in between a
/// report says nothing.
#[test]
fn a_media_timeout_is_cancelled_and_reconsidered() {
    let mut breakers = CircuitBreakers::new(CEASE, SMALL);
    let mut now = 0.0;
    let mut report = |sends: bool, highest: Option<u32>, rtt_s: f64| {
        if sends {
            send(&mut breakers, now, now + 1.0, 0.1, 100);
        }
        now += 1.0;
        breakers.reported(now, highest.map(|highest| block(0, highest)).as_ref(), Some(rtt_s), SMALL).map(|trip| trip.cause)
    };
    let stale = |report: &mut dyn FnMut(bool, Option<u32>, f64) -> Option<Cause>, times: usize, highest: Option<u32>, rtt_s: f64| {
        (0..times).for_each(|_| assert_eq!(report(true, highest, rtt_s), None));
    };
    assert_eq!(report(true, Some(10), 0.1), None);
    stale(&mut report, 4, Some(10), 0.1);
    assert_eq!(report(true, Some(11), 0.1), None, "new data");
    // Tr = 0.8 x 0.1 + 0.2 x 40 = 8.08 s makes 9 of 5; it falls below 5 s again, and nine reports stay.
    assert_eq!(report(true, Some(11), 40.0), None);
    stale(&mut report, 7, Some(11), 0.1);
    assert_eq!(report(true, Some(12), 0.1), None, "new data");
    // No block at all says the same as a number that stays [RFC 3550 sec 6.4], and so does one that goes back.
    stale(&mut report, 3, None, 0.1);
    (0..4).for_each(|_| assert_eq!(report(false, None, 0.1), None, "nothing was sent"));
    stale(&mut report, 1, Some(0xffff_fff0), 0.1);
    assert_eq!(report(true, None, 0.1), Some(Cause::MediaTimeout));
}

/// [RFC 8083 sec 4.3] by hand: packets of 972 bytes each 2.5 ms, 3.1104 Mb/s; a fraction of 26/256 and 0.1 s make
/// X = 972 B / (0.1 s x sqrt(2 x 0.1015625 / 3)) = 37,354.5 B/s = 298,836 bit/s: 10 X is below the rate. With 23/256 it is not.
#[test]
fn ten_times_tcps_rate_trips_after_the_interval() {
    let run = |fraction: u8, gap_s: f64, reports: usize| -> Vec<Option<Trip>> {
        let mut breakers = CircuitBreakers::new(CEASE, SMALL);
        (1..=reports)
            .map(|n| {
                let (from_s, to_s) = (5.0 * (n - 1) as f64, 5.0 * n as f64);
                send(&mut breakers, from_s, to_s, gap_s, 972);
                breakers.reported(to_s, Some(&block(fraction, 1000 * n as u32)), Some(0.1), SMALL)
            })
            .collect()
    };
    let x = |p: f64| 8.0 * 972.0 / (0.1 * (2.0 * p / 3.0_f64).sqrt());
    let rate = 8.0 * 972.0 / 0.0025;
    assert!(10.0 * x(26.0 / 256.0) < rate && rate < 10.0 * x(23.0 / 256.0));
    // CB_INTERVAL = ceil(3 x min(max(10 x 0.0025, 10 x 0.1, 15), 15) / 15) = 3: "more than CB_INTERVAL" blocks are four.
    let trips = run(26, 0.0025, 4);
    assert_eq!(trips[..3], [None; 3]);
    let trip = trips[3].expect("trips");
    let close = |value: Option<f64>, wanted: f64| value.is_some_and(|value| (value / wanted - 1.0).abs() < 1e-9);
    assert!(trip.cause == Cause::Congestion && !trip.reduce && close(trip.rate_bps, rate) && close(trip.tcp_rate_bps, x(26.0 / 256.0)));
    assert!(close(trip.loss, 26.0 / 256.0) && close(trip.rtt_s, 0.1));
    assert_eq!(run(23, 0.0025, 10), [None; 10]);
}

/// Until a round trip is known it counts as 0.25 s: X = 8 x 972 b / (0.25 s x sqrt(2 x 0.5 / 3)) = 53,874 bit/s for 128/256.
#[test]
fn an_unknown_round_trip_is_a_quarter_of_tcps_first_timeout() {
    for (gap_s, trips) in [(8.0 * 972.0 / 530e3, false), (8.0 * 972.0 / 550e3, true)] {
        let mut breakers = CircuitBreakers::new(CEASE, SMALL);
        let last = (1..=4).map(|n| {
            let to_s = 5.0 * f64::from(n);
            send(&mut breakers, to_s - 5.0, to_s, gap_s, 972);
            breakers.reported(to_s, Some(&block(128, n)), None, SMALL)
        });
        let trip = last.last().flatten();
        assert_eq!(trip.map(|trip| (trip.cause, trip.rtt_s)), trips.then_some((Cause::Congestion, None)));
    }
}

/// [RFC 8083 sec 4.3]: an interval with less than a packet in each max(Tdr, Tr) is not recorded.
#[test]
fn an_interval_without_data_does_not_count() {
    let trips: Vec<_> = (1..=5)
        .map(|n| (5.0 * f64::from(n), n))
        .scan(CircuitBreakers::new(CEASE, SMALL), |breakers, (to_s, n)| {
            if n != 3 {
                send(breakers, to_s - 5.0, to_s, 0.001, 972);
            }
            Some(breakers.reported(to_s, Some(&block(200, n)), Some(0.1), SMALL).is_some())
        })
        .collect();
    assert_eq!(trips, [false, false, false, false, true]);
}

/// [RFC 8083 sec 4.3]: each fraction weighs by its interval. 128/256 in 1 s and 0 in 5 s and 4 s: 0.05 over 10 s, X = 5324 / 0.1 B/s.
#[test]
fn fractions_weigh_by_their_intervals() {
    let mut breakers = CircuitBreakers::new(CEASE, SMALL);
    let mut trips = Vec::new();
    let mut from_s = 0.0;
    for (n, (to_s, fraction)) in [(5.0, 255), (6.0, 128), (11.0, 0), (15.0, 0)].into_iter().enumerate() {
        send(&mut breakers, from_s, to_s, 0.001, 972);
        trips.push(breakers.reported(to_s, Some(&block(fraction, 1 + n as u32)), Some(0.1), SMALL));
        from_s = to_s;
    }
    assert_eq!(trips[..3], [None; 3]);
    let trip = trips[3].expect("7.8 Mb/s are more than 10 x 426 kb/s");
    assert!(trip.loss.is_some_and(|loss| (loss - 0.05).abs() < 1e-12), "{trip:?}");
}

/// CB_INTERVAL = ceil(3 min(max(10 G Tf, 10 Tr, 3 Tdr), max(15, 3 Td)) / (3 Tdr)): with Tr of 2 s and Td of 10 s, min(max(20, 15), 30) / 5 = 4;
/// with Tr of 9 s the minimum is 30 s: 6. The value is computed anew after each report's check.
#[test]
fn slow_paths_have_a_longer_interval() {
    let count = |rtt_s: f64, td_s: f64| {
        let session = Session { td_s, ..SMALL };
        let mut breakers = CircuitBreakers::new(CEASE, session);
        (1..50)
            .find(|&n| {
                let to_s = 5.0 * f64::from(n);
                send(&mut breakers, to_s - 5.0, to_s, 0.001, 972);
                breakers.reported(to_s, Some(&block(200, n)), Some(rtt_s), session).is_some()
            })
            .expect("trips")
    };
    assert_eq!([count(0.1, 5.0), count(2.0, 10.0), count(9.0, 10.0), count(9.0, 5.0)], [4, 5, 7, 4]);
}

/// "the next CB_INTERVAL RTCP reporting intervals" after the reduction, then it MUST cease [RFC 8083 sec 4.3].
#[test]
fn a_reduction_comes_once() {
    let mut breakers = CircuitBreakers::new(CircuitBreaker { reduces: true, ..CEASE }, SMALL);
    let reduces: Vec<_> = (1..=7)
        .map(|n| {
            let to_s = 5.0 * f64::from(n);
            send(&mut breakers, to_s - 5.0, to_s, if n <= 4 { 0.0005 } else { 0.005 }, 972);
            breakers.reported(to_s, Some(&block(250, n)), Some(0.5), SMALL).map(|trip| trip.reduce)
        })
        .collect();
    assert_eq!(reduces, [None, None, None, Some(true), None, None, Some(false)]);
}

/// [RFC 8083 sec 4.4]: the bounds are the application's.
#[test]
fn unusable_media_trip_after_their_time() {
    let series = |settings: CircuitBreaker, reports: &[(f64, u8, f64)]| {
        let mut breakers = CircuitBreakers::new(settings, SMALL);
        let mut trips = Vec::new();
        for (n, &(at, fraction, rtt_s)) in reports.iter().enumerate() {
            send(&mut breakers, at - 1.0, at, 0.5, 100);
            trips.push(breakers.reported(at, Some(&block(fraction, n as u32 + 1)), Some(rtt_s), SMALL).map(|trip| trip.cause));
        }
        trips
    };
    let loss = CircuitBreaker { usable_loss: Some(0.1), ..CEASE };
    let lossy = [(5.0, 26, 0.1), (10.0, 0, 0.1), (15.0, 26, 0.1), (20.0, 26, 0.1), (25.0, 26, 0.1)];
    assert_eq!(series(loss, &lossy), [None, None, None, None, Some(Cause::Usability)]);
    assert_eq!(series(loss, &lossy.map(|(at, _, rtt_s)| (at, 25, rtt_s))), [None; 5], "25/256 is below 0.1");
    let late = CircuitBreaker { usable_rtt_s: Some(0.5), ..CEASE };
    // Tr = 0.6 from the first sample on.
    assert_eq!(series(late, &[(5.0, 0, 0.6), (10.0, 0, 0.6), (15.0, 0, 0.6)]), [None, None, Some(Cause::Usability)]);
    assert_eq!(series(CEASE, &lossy), [None; 5]);
}

proptest! {
    /// Without loss and with reports nothing trips, at any rate, round trip and interval between reports.
    #[test]
    fn a_path_without_loss_never_trips(
        gap_s in 1e-3..3.0,
        reports in prop::collection::vec((0.5..12.0, prop::option::of(0.0..4.0)), 1..40),
        reduces: bool,
        td_s in 5.0..60.0,
        tdr_s in 5.0..60.0,
    ) {
        let session = Session { td_s, tdr_s };
        let settings = CircuitBreaker { reduces, usable_loss: Some(0.0), ..CEASE };
        let mut breakers = CircuitBreakers::new(settings, session);
        let (mut now, mut number, mut sent_s) = (0.0, 0, 0.0);
        for (wait_s, rtt_s) in reports {
            let before = number;
            now += wait_s;
            while sent_s < now {
                prop_assert_eq!(breakers.rtcp_timeout(sent_s, session), None);
                breakers.sent(sent_s, (sent_s * 1e9) as Nanos, 472);
                sent_s += gap_s;
                number += 1;
            }
            let block = (number > before).then(|| block(0, number));
            prop_assert_eq!(breakers.reported(now, block.as_ref(), rtt_s, session), None);
        }
    }

    /// Reports of any kind in any order: nothing panics.
    #[test]
    fn survives_any_reports(
        reports in prop::collection::vec((0.0..30.0, any::<u8>(), prop::option::of(any::<u32>()), prop::option::of(0.0..1e4)), 1..60),
    ) {
        let settings = CircuitBreaker { reduces: true, usable_loss: Some(0.5), usable_rtt_s: Some(1.0), unusable_s: 5.0 };
        let mut breakers = CircuitBreakers::new(settings, SMALL);
        let mut now = 0.0;
        for (wait_s, fraction, highest, rtt_s) in reports {
            breakers.sent(now, (now * 1e9) as Nanos, 72);
            now += wait_s;
            let _ = breakers.rtcp_timeout(now, SMALL);
            let _ = breakers.reported(now, highest.map(|highest| block(fraction, highest)).as_ref(), rtt_s, SMALL);
        }
    }
}

/// Counts what is sent.
#[derive(Default)]
struct Host {
    data: u64,
    reports: Vec<Compound>,
}

impl Network for Host {
    fn send(&mut self, datagram: &Outgoing) -> bool {
        if datagram.kind.is_rtcp() {
            self.reports.extend(Compound::parse(datagram.head));
        } else {
            self.data += 1;
        }
        true
    }

    fn join(&mut self, _: u32) -> Result<(), fairlane_endpoint::algorithm::Fault> {
        Ok(())
    }

    fn leave(&mut self, _: u32) {}
}

const SECOND: Nanos = 1_000_000_000;

fn sender(reduces: bool) -> RtpSender {
    let spec = SenderSpec { circuit_breaker: Some(CircuitBreaker { reduces, ..CEASE }), ..sender_spec(1e7) };
    RtpSender::new(Life { peer: 1, ip: Ip::V4, start: 0, stop: 100 * SECOND }, spec, Box::new(FixedRate { rate_bps: 8e6 }), None, 1)
}

fn notes(end: &RtpSender) -> Vec<(f64, String, String)> {
    let text = |values: &[(String, NoteValue)], name: &str| match values.iter().find(|(known, _)| known == name) {
        Some((_, NoteValue::Text(text))) => text.clone(),
        other => panic!("{name}: {other:?}"),
    };
    let note = |(at, record): &(Nanos, FlowRecord)| match record {
        FlowRecord::Note { kind, values } if kind == "circuit_breaker" => {
            Some((*at as f64 / 1e9, text(values, "cause"), text(values, "action")))
        }
        _ => None,
    };
    end.log().iter().filter_map(note).collect()
}

/// Runs a sender of 1,000 packets a second to `until` seconds, with a report each 5 s.
fn run(end: &mut RtpSender, host: &mut Host, until: u64, report: impl Fn(u64) -> Option<(u8, u32)>) {
    for second in (0..=until).step_by(5) {
        while let Some(now) = end.next().filter(|&at| at < second * SECOND) {
            end.act(&mut Io { now, epoch: 0, network: host }).expect("runs");
        }
        if let Some((fraction, highest)) = report(second).filter(|_| second > 0) {
            // LSR is of 0.1 s ago: a round trip of 0.1 s.
            let lsr = fairlane_endpoint::wire::ntp::middle(fairlane_endpoint::wire::ntp::from_unix(second * SECOND - SECOND / 10));
            let mut bytes = Vec::new();
            Compound { ssrc: 8, blocks: vec![ReportBlock { lsr, ..block(fraction, highest) }], ..Compound::default() }.emit(&mut bytes);
            let report = Incoming { rtcp: true, group: None, ecn: 0, payload: &bytes };
            end.receive(&report, &mut Io { now: second * SECOND, epoch: 0, network: host }).expect("goes on");
        }
    }
}

/// The flow ends with a BYE, and the record says why; or it goes on with a tenth. An algorithm without RTCP gets it for the breakers.
#[test]
fn a_sender_ceases_or_reduces_and_says_why() {
    // Nobody reports: 15 s after the first packet.
    let (mut end, mut host) = (sender(false), Host::default());
    run(&mut end, &mut host, 30, |_| None);
    assert_eq!(notes(&end), [(15.0, "rtcp timeout".into(), "cease".into())]);
    assert_eq!((host.data, end.next()), (15_000, None));
    assert_eq!(host.reports.last().map(|last| (last.bye.clone(), last.sender.is_some())), Some((vec![7], true)));
    // Half is lost: with the fourth report.
    let (mut end, mut host) = (sender(false), Host::default());
    run(&mut end, &mut host, 30, |second| Some((128, second as u32)));
    assert_eq!(notes(&end), [(20.0, "congestion".into(), "cease".into())]);
    assert_eq!(host.data, 20_000);
    // The same, with a tenth: 100 packets a second from then on, 777.6 kb/s, below 10 X = 1.35 Mb/s.
    let (mut end, mut host) = (sender(true), Host::default());
    run(&mut end, &mut host, 60, |second| Some((128, second as u32)));
    assert_eq!(notes(&end), [(20.0, "congestion".into(), "reduce".into())]);
    assert!((24_000..=24_001).contains(&host.data), "{}", host.data);
    // Reports come, data do not: five reports after the last that had news.
    let (mut end, mut host) = (sender(false), Host::default());
    run(&mut end, &mut host, 60, |second| Some((0, second.min(20) as u32)));
    assert_eq!(notes(&end), [(45.0, "media timeout".into(), "cease".into())]);
}
