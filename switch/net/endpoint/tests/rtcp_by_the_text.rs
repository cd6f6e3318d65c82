//! The timetable of RTCP beside a second one, which is written from RFC 3550's text alone: its variables, its steps, its names.

use fairlane_endpoint::rtcp_schedule::RtcpSchedule;
use fairlane_random::Rng;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// The variables of [RFC 3550 sec 6.3]; each list has when its member was last heard.
struct Participant {
    tp: f64,
    tn: f64,
    t: f64,
    pmembers: usize,
    members: BTreeMap<u32, f64>,
    senders: BTreeMap<u32, f64>,
    /// Members that said BYE, marked until "an appropriate delay" [RFC 3550 sec 6.2.1]: M Td, as of one that is silent.
    marked: BTreeMap<u32, f64>,
    rtcp_bw: f64,
    we_sent: bool,
    avg_rtcp_size: f64,
    initial: bool,
    drand48: Rng,
}

const US: u32 = 1;

impl Participant {
    /// [RFC 3550 sec 6.3.2]
    fn join(session_bandwidth: f64, avg_rtcp_size: f64, drand48: Rng) -> Participant {
        let mut joined = Participant {
            tp: 0.0,
            tn: 0.0,
            t: 0.0,
            pmembers: 1,
            members: BTreeMap::from([(US, 0.0)]),
            senders: BTreeMap::new(),
            marked: BTreeMap::new(),
            rtcp_bw: 0.05 * session_bandwidth / 8.0,
            we_sent: false,
            avg_rtcp_size,
            initial: true,
            drand48,
        };
        joined.tn = joined.rtcp_interval();
        joined
    }

    /// Td [RFC 3550 sec 6.3.1]
    fn deterministic(&self, we_sent: bool, tmin: f64) -> f64 {
        let (members, senders) = (self.members.len() as f64, self.senders.len() as f64);
        let (c, n) = match (senders <= 0.25 * members, we_sent) {
            (true, true) => (self.avg_rtcp_size / (0.25 * self.rtcp_bw), senders),
            (true, false) => (self.avg_rtcp_size / (0.75 * self.rtcp_bw), members - senders),
            (false, _) => (self.avg_rtcp_size / self.rtcp_bw, members),
        };
        tmin.max(n * c)
    }

    fn td(&self) -> f64 {
        self.deterministic(self.we_sent, if self.initial { 2.5 } else { 5.0 })
    }

    fn rtcp_interval(&mut self) -> f64 {
        let (shortest, longest) = (0.5 * self.td(), 1.5 * self.td());
        self.t = (shortest + self.drand48.unit() * (longest - shortest)) / (std::f64::consts::E - 1.5);
        self.t
    }

    /// [RFC 3550 sec 6.3.4]
    fn reverse_reconsideration(&mut self, tc: f64) {
        if self.members.len() < self.pmembers {
            let ratio = self.members.len() as f64 / self.pmembers as f64;
            self.tn = tc + ratio * (self.tn - tc);
            self.tp = tc - ratio * (tc - self.tp);
            self.pmembers = self.members.len();
        }
    }

    /// [RFC 3550 sec 6.3.3]
    fn receive_rtp(&mut self, tc: f64, ssrc: u32) {
        if !self.marked.contains_key(&ssrc) {
            self.members.insert(ssrc, tc);
            self.senders.insert(ssrc, tc);
        }
    }

    fn receive_report(&mut self, tc: f64, ssrc: u32, size: f64) {
        if !self.marked.contains_key(&ssrc) {
            self.members.insert(ssrc, tc);
        }
        self.avg_rtcp_size = (1.0 / 16.0) * size + (15.0 / 16.0) * self.avg_rtcp_size;
    }

    /// The BYE of a compound that [`Participant::receive_report`] has had.
    fn receive_bye(&mut self, tc: f64, ssrc: u32) {
        if self.members.remove(&ssrc).is_some() {
            self.senders.remove(&ssrc);
            self.marked.insert(ssrc, tc);
            self.reverse_reconsideration(tc);
        }
    }

    /// [RFC 3550 sec 6.3.8]
    fn send_rtp(&mut self, tc: f64) {
        let before = self.td();
        self.senders.insert(US, tc);
        if !self.we_sent {
            self.we_sent = true;
            if self.td() < before {
                let ratio = self.td() / before;
                self.tn = tc + ratio * (self.tn - tc);
                self.tp = tc - ratio * (tc - self.tp);
            }
        }
    }

    /// [RFC 3550 sec 6.3.5]
    fn time_out(&mut self, tc: f64) {
        let oldest = tc - 5.0 * self.deterministic(false, 5.0);
        let (members, senders) = (self.members.clone(), self.senders.clone());
        for (ssrc, heard) in members {
            if ssrc != US && heard < oldest {
                self.members.remove(&ssrc);
                self.senders.remove(&ssrc);
            }
        }
        for (ssrc, heard) in senders {
            if heard < tc - 2.0 * self.t {
                self.senders.remove(&ssrc);
                self.we_sent &= ssrc != US;
            }
        }
        self.marked.retain(|_, said| *said >= oldest);
        self.reverse_reconsideration(tc);
    }

    /// [RFC 3550 sec 6.3.6], [RFC 3550 sec A.7]
    fn on_expire(&mut self, tc: f64, size: f64) -> bool {
        self.time_out(tc);
        let t = self.rtcp_interval();
        let sends = self.tp + t <= tc;
        if sends {
            self.avg_rtcp_size = (1.0 / 16.0) * size + (15.0 / 16.0) * self.avg_rtcp_size;
            self.tp = tc;
            self.tn = self.rtcp_interval() + tc;
            self.initial = false;
        } else {
            self.tn = self.tp + t;
        }
        self.pmembers = self.members.len();
        sends
    }
}

#[derive(Debug, Clone)]
enum Event {
    Rtp(u32),
    Report(u32, usize),
    Bye(u32, usize),
    OwnRtp,
}

fn event() -> impl Strategy<Value = Event> {
    let (ssrc, size) = (2u32..60, 60usize..400);
    prop_oneof![
        ssrc.clone().prop_map(Event::Rtp),
        (ssrc.clone(), size.clone()).prop_map(|(ssrc, size)| Event::Report(ssrc, size)),
        (ssrc, size).prop_map(|(ssrc, size)| Event::Bye(ssrc, size)),
        Just(Event::OwnRtp),
    ]
}

proptest! {
    /// Members come, go, fall silent and come back; each report leaves when the text's participant sends it. The long gaps let most of
    /// a session time out at once.
    #[test]
    fn reports_leave_when_the_text_sends_them(
        bandwidth in 5e3..1e6,
        seed: u64,
        events in prop::collection::vec((prop_oneof![9 => 0.0..3.0, 1 => 0.0..400.0], event()), 1..300),
    ) {
        let stream = || Rng::stream(seed, "rtcp");
        let (mut ours, mut text) = (RtcpSchedule::new(0.0, bandwidth, US, 100, stream()), Participant::join(bandwidth, 100.0, stream()));
        let mut tc = 0.0;
        let end = [(3000.0, Event::OwnRtp)];
        for (gap, event) in events.into_iter().chain(end) {
            while ours.next_s() <= tc + gap {
                let now = ours.next_s();
                prop_assert!((text.tn - now).abs() < 1e-6 * now.max(1.0), "{} {now}", text.tn);
                let sends = ours.expire(now);
                prop_assert_eq!(sends, text.on_expire(now, 120.0));
                if sends {
                    ours.sent_rtcp(now, 120);
                }
            }
            tc += gap;
            match event {
                Event::Rtp(ssrc) => {
                    ours.received_data(tc, ssrc);
                    text.receive_rtp(tc, ssrc);
                }
                Event::Report(ssrc, size) => {
                    ours.received_rtcp(tc, ssrc, size);
                    text.receive_report(tc, ssrc, size as f64);
                }
                Event::Bye(ssrc, size) => {
                    ours.received_rtcp(tc, ssrc, size);
                    ours.received_bye(tc, ssrc, size);
                    text.receive_report(tc, ssrc, size as f64);
                    text.receive_bye(tc, ssrc);
                }
                Event::OwnRtp => {
                    ours.sent_data(tc);
                    text.send_rtp(tc);
                }
            }
        }
    }
}

/// [RFC 3550 sec 6.3.8]: 200 receivers and 100 kb/s: Td = 201 x 100 B / 468.75 B/s = 42.88 s as a receiver; as the only sender
/// 100 B / 156.25 B/s is below 5 s. So of what is left until the next report, 5 / 42.88 stay.
#[test]
fn the_first_data_packet_brings_the_report_forward() {
    let mut schedule = RtcpSchedule::new(0.0, 100e3, US, 100, Rng::stream(3, "rtcp"));
    (2..202).for_each(|ssrc| schedule.received_rtcp(0.0, ssrc, 100));
    schedule.sent_rtcp(0.0, 100);
    schedule.sent_rtcp(0.0, 100);
    assert!((schedule.deterministic_interval_s() - 42.88).abs() < 1e-9);
    let left = schedule.next_s() - 1.0;
    schedule.sent_data(1.0);
    assert!((schedule.next_s() - 1.0 - left * 5.0 / 42.88).abs() < 1e-9);
    let next_s = schedule.next_s();
    schedule.sent_data(1.5);
    assert_eq!(schedule.next_s(), next_s, "the second changes nothing");
}

/// [RFC 3550 sec 6.2.1]: data that come after their source's BYE do not make it a member again; later, they do.
#[test]
fn a_straggler_is_no_member() {
    let mut schedule = RtcpSchedule::new(0.0, 1e3, US, 100, Rng::stream(1, "rtcp"));
    let alone = schedule.deterministic_interval_s();
    schedule.received_data(0.0, 2);
    let both = schedule.deterministic_interval_s();
    assert_eq!((alone, both), (100.0 / (0.75 * 6.25), 200.0 / 6.25));
    schedule.received_rtcp(1.0, 2, 100);
    schedule.received_bye(1.0, 2, 100);
    schedule.received_data(1.1, 2);
    schedule.received_rtcp(1.2, 2, 100);
    assert_eq!((schedule.deterministic_interval_s(), schedule.is_gone(2)), (alone, true));
    // Five Td of a receiver, 5 x 21.3 s, after the BYE the SSRC is nobody's again.
    schedule.expire(107.0);
    schedule.received_data(107.0, 2);
    assert!(schedule.is_gone(2));
    schedule.expire(108.0);
    schedule.received_data(108.0, 2);
    assert_eq!((schedule.deterministic_interval_s(), schedule.is_gone(2)), (both, false));
}

/// [RFC 3550 sec 6.3.6], [RFC 3550 sec A.7]: the interval drawn with the first report still has the lower bound of 2.5 s:
/// 2.5 s x [0.5, 1.5] / 1.21828 = 1.026 to 3.078 s; the next one has 5 s, 2.052 to 6.156 s.
#[test]
fn the_draw_with_the_first_report_has_its_lower_bound() {
    for seed in 0..200 {
        let mut schedule = RtcpSchedule::new(0.0, 1e6, US, 100, Rng::stream(seed, "rtcp"));
        for (low, high) in [(1.026, 3.079), (1.026, 3.079), (2.052, 6.157)] {
            assert!((low..high).contains(&schedule.next_s()), "{}", schedule.next_s());
            schedule.sent_rtcp(0.0, 100);
        }
    }
}
