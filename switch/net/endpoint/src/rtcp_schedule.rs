//! When to send RTCP packets [RFC 3550 sec 6.2, 6.3, A.7].
//!
//! Each wait is drawn from [0.5 Td, 1.5 Td] / (e - 3/2), Td >= 5 s the deterministic interval: timer reconsideration lengthens the
//! mean by that constant, and the division takes it back. Times are seconds, as in the RFC.

use std::collections::BTreeMap;
use std::f64::consts::E;

use crate::circuit_breaker::Session;
use fairlane_random::Rng;

/// 1.21828 [RFC 3550 sec 6.3.1].
pub(crate) const COMPENSATION: f64 = E - 1.5;
/// RTCP's part of the session bandwidth (section 6.2).
pub(crate) const RTCP_FRACTION: f64 = 0.05;
/// Senders' part of that, while they are at most this part of the members.
const SENDER_FRACTION: f64 = 0.25;
/// Td's lower bound in seconds (section 6.2).
const MIN_INTERVAL_S: f64 = 5.0;
/// M: a member silent for so many Td is gone [RFC 3550 sec 6.3.5].
const TIMEOUT_INTERVALS: f64 = 5.0;
/// Members up to which a participant that leaves says BYE at once (section 6.3.7).
const MAX_MEMBERS_FOR_PROMPT_BYE: usize = 50;

/// The timetable of one participant.
#[derive(Debug)]
pub struct RtcpSchedule {
    session_bandwidth_bps: f64,
    own_ssrc: u32,
    rng: Rng,
    /// SSRC -> last heard.
    members: BTreeMap<u32, f64>,
    senders: BTreeMap<u32, f64>,
    /// SSRC -> when it said BYE: a straggler does not make it a member again [RFC 3550 sec 6.2.1].
    gone: BTreeMap<u32, f64>,
    initial: bool,
    /// Whether this participant ever sent RTP or RTCP.
    has_sent: bool,
    /// Whether it sent data since its last report, and in the interval before that.
    data_since: [bool; 2],
    /// Of a participant that leaves: the BYE packets, its own included, which section 6.3.7 counts in place of members.
    byes: Option<usize>,
    average_bytes: f64,
    /// tp
    last_s: f64,
    pmembers: usize,
    /// tn
    next_s: f64,
    /// T: the interval drawn last.
    drawn_s: f64,
    /// Members that timed out and were not taken yet.
    silent: Vec<u32>,
}

impl RtcpSchedule {
    /// `first_packet_bytes`: likely size of the first compound, UDP and IP headers included (section 6.3.2).
    pub fn new(now_s: f64, session_bandwidth_bps: f64, own_ssrc: u32, first_packet_bytes: usize, rng: Rng) -> RtcpSchedule {
        let mut schedule = RtcpSchedule {
            session_bandwidth_bps,
            own_ssrc,
            rng,
            members: BTreeMap::from([(own_ssrc, now_s)]),
            senders: BTreeMap::new(),
            gone: BTreeMap::new(),
            initial: true,
            has_sent: false,
            data_since: [false; 2],
            byes: None,
            average_bytes: first_packet_bytes as f64,
            last_s: now_s,
            pmembers: 1,
            next_s: 0.0,
            drawn_s: 0.0,
            silent: Vec::new(),
        };
        schedule.next_s = now_s + schedule.draw();
        schedule
    }

    /// When to call [`RtcpSchedule::expire`].
    pub fn next_s(&self) -> f64 {
        self.next_s
    }

    /// Td of this participant (section 6.3.1).
    pub fn deterministic_interval_s(&self) -> f64 {
        let minimum_s = if self.initial { MIN_INTERVAL_S / 2.0 } else { MIN_INTERVAL_S };
        self.interval_s(self.senders.contains_key(&self.own_ssrc), minimum_s)
    }

    /// Td of this participant and of one that sends data or not, with the fixed minimum [RFC 8083 sec 3].
    pub fn session(&self, other_sends: bool) -> Session {
        let of = |sends| self.interval_s(sends, MIN_INTERVAL_S);
        Session { td_s: of(self.senders.contains_key(&self.own_ssrc)), tdr_s: of(other_sends) }
    }

    /// Td of a sender, or of a receiver.
    fn interval_s(&self, sends: bool, minimum_s: f64) -> f64 {
        let (members, senders) = (self.byes.unwrap_or(self.members.len()) as f64, self.senders.len() as f64);
        let mut bandwidth = self.session_bandwidth_bps * RTCP_FRACTION / 8.0;
        let mut n = members;
        if senders <= members * SENDER_FRACTION {
            if sends {
                bandwidth *= SENDER_FRACTION;
                n = senders;
            } else {
                bandwidth *= 1.0 - SENDER_FRACTION;
                n = members - senders;
            }
        }
        minimum_s.max(n * self.average_bytes / bandwidth)
    }

    fn draw(&mut self) -> f64 {
        self.drawn_s = self.deterministic_interval_s() * (self.rng.unit() + 0.5) / COMPENSATION;
        self.drawn_s
    }

    /// This participant sent RTP data [RFC 3550 sec 6.3.8]. A receiver that becomes a sender reconsiders in reverse, "to possibly reduce
    /// the delay before sending an SR": by the ratio of its intervals, since members / pmembers of [RFC 3550 sec 6.3.4] is not below 1.
    pub fn sent_data(&mut self, now_s: f64) {
        let as_receiver_s = self.deterministic_interval_s();
        self.has_sent = true;
        self.data_since[0] = true;
        if self.senders.insert(self.own_ssrc, now_s).is_none() {
            let ratio = self.deterministic_interval_s() / as_receiver_s;
            if ratio < 1.0 {
                self.bring_forward(now_s, ratio);
            }
        }
    }

    /// A data packet of `ssrc` arrived (section 6.3.3).
    pub fn received_data(&mut self, now_s: f64, ssrc: u32) {
        if self.byes.is_some() || self.is_gone(ssrc) {
            return;
        }
        self.members.insert(ssrc, now_s);
        self.senders.insert(ssrc, now_s);
    }

    /// A compound of `ssrc` arrived, `bytes` with UDP and IP headers (section 6.3.3).
    pub fn received_rtcp(&mut self, now_s: f64, ssrc: u32, bytes: usize) {
        if self.byes.is_some() {
            return;
        }
        if !self.is_gone(ssrc) {
            self.members.insert(ssrc, now_s);
        }
        self.average(bytes);
    }

    /// Whether `ssrc` said BYE not long ago: what still comes of it counts for nothing.
    pub fn is_gone(&self, ssrc: u32) -> bool {
        self.gone.contains_key(&ssrc)
    }

    /// `ssrc` left, by a compound of `bytes` that [`RtcpSchedule::received_rtcp`] has had: reverse reconsideration (section 6.3.4).
    /// A participant that leaves too counts the BYE, whether it knows `ssrc` or not (section 6.3.7).
    pub fn received_bye(&mut self, now_s: f64, ssrc: u32, bytes: usize) {
        if let Some(byes) = self.byes.as_mut().filter(|_| ssrc != self.own_ssrc) {
            *byes += 1;
            self.average(bytes);
            return;
        }
        if ssrc == self.own_ssrc || self.members.remove(&ssrc).is_none() {
            return;
        }
        self.senders.remove(&ssrc);
        self.gone.insert(ssrc, now_s);
        self.members_left(now_s);
    }

    /// Reverse reconsideration [RFC 3550 sec 6.3.4].
    fn members_left(&mut self, now_s: f64) {
        let members = self.members.len();
        if members < self.pmembers {
            self.bring_forward(now_s, members as f64 / self.pmembers as f64);
            self.pmembers = members;
        }
    }

    /// The interval is now so many times the interval before: so are its parts, that before now and that after.
    fn bring_forward(&mut self, now_s: f64, ratio: f64) {
        self.next_s = now_s + ratio * (self.next_s - now_s);
        self.last_s = now_s - ratio * (now_s - self.last_s);
    }

    /// This participant leaves; its BYE compound has `bytes`, headers included (section 6.3.7). True: send it now. False: more than
    /// 50 members; send it when [`RtcpSchedule::expire`] says so. A participant that has sent nothing must not say BYE:
    /// [`RtcpSchedule::next_s`] is infinite.
    pub fn leave(&mut self, now_s: f64, bytes: usize) -> bool {
        if !self.has_sent {
            self.next_s = f64::INFINITY;
            return false;
        }
        if self.members.len() <= MAX_MEMBERS_FOR_PROMPT_BYE {
            return true;
        }
        self.last_s = now_s;
        self.byes = Some(1);
        self.senders.clear();
        self.initial = true;
        self.average_bytes = bytes as f64;
        self.next_s = now_s + self.draw();
        false
    }

    /// The time has come. True: send a report and call [`RtcpSchedule::sent_rtcp`], or send BYE. False: reconsidered, there is a
    /// new [`RtcpSchedule::next_s`] (sections 6.3.5 to 6.3.7).
    pub fn expire(&mut self, now_s: f64) -> bool {
        if self.byes.is_none() {
            self.time_out(now_s);
        }
        let due_s = self.last_s + self.draw();
        self.pmembers = self.members.len();
        if due_s > now_s {
            self.next_s = due_s;
            return false;
        }
        true
    }

    /// A report of `bytes` went out, headers included (section 6.3.6).
    pub fn sent_rtcp(&mut self, now_s: f64, bytes: usize) {
        self.average(bytes);
        self.last_s = now_s;
        self.next_s = now_s + self.draw();
        // After the draw, whose lower bound is so that of the first report [RFC 3550 sec 6.3.6], [RFC 3550 sec A.7].
        self.initial = false;
        self.has_sent = true;
        self.data_since = [false, self.data_since[0]];
    }

    /// Whether the next report is an SR: data were sent since the report before the last [RFC 3550 sec 6.4].
    pub fn is_sender_report(&self) -> bool {
        self.data_since.contains(&true)
    }

    /// Members that timed out since the last call (section 6.3.5).
    pub fn take_silent(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.silent)
    }

    fn average(&mut self, bytes: usize) {
        self.average_bytes += (bytes as f64 - self.average_bytes) / 16.0;
    }

    /// [RFC 3550 sec 6.3.5], before the interval of this expiry is drawn.
    fn time_out(&mut self, now_s: f64) {
        // "for a receiver, that is, with we_sent false": a sender's own Td is far shorter than its receivers' in a large group.
        let member_limit = now_s - TIMEOUT_INTERVALS * self.interval_s(false, MIN_INTERVAL_S);
        let sender_limit = now_s - 2.0 * self.drawn_s;
        let own = self.own_ssrc;
        let (senders, silent) = (&mut self.senders, &mut self.silent);
        self.members.retain(|&ssrc, heard| {
            let stays = *heard >= member_limit || ssrc == own;
            if !stays {
                senders.remove(&ssrc);
                silent.push(ssrc);
            }
            stays
        });
        self.senders.retain(|_, heard| *heard >= sender_limit);
        self.gone.retain(|_, left| *left >= member_limit);
        self.members_left(now_s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert, proptest};

    fn run(participants: u32, rounds: usize) -> Vec<f64> {
        let mut schedule = RtcpSchedule::new(0.0, 10e6, 1, 120, Rng::stream(1, "test"));
        let mut waits = Vec::new();
        let (mut last, mut now) = (0.0, 0.0);
        while waits.len() < rounds {
            now = f64::max(now, schedule.next_s());
            for other in 2..=participants {
                schedule.received_rtcp(now, other, 120);
            }
            schedule.sent_data(now);
            if schedule.expire(now) {
                schedule.sent_rtcp(now, 120);
                waits.push(now - last);
                last = now;
            }
        }
        waits
    }

    #[test]
    fn reports_are_five_seconds_apart_on_average() {
        let waits = run(2, 4000);
        let mean = waits.iter().sum::<f64>() / waits.len() as f64;
        assert!((4.9..5.1).contains(&mean), "{mean}");
        assert!(waits[1..].iter().all(|wait| (2.0..6.2).contains(wait)));
        // "the first RTCP packet ... half" (section 6.2).
        assert!(waits[0] < 3.1);
    }

    /// `rtcp_interval` of [RFC 3550 sec A.7], before its random factor; `rtcp_bw` in bytes a second.
    fn rtcp_interval(members: f64, senders: f64, mut rtcp_bw: f64, we_sent: bool, avg_rtcp_size: f64, initial: bool) -> f64 {
        let minimum = if initial { 2.5 } else { 5.0 };
        let mut n = members;
        if senders <= members * 0.25 {
            if we_sent {
                rtcp_bw *= 0.25;
                n = senders;
            } else {
                rtcp_bw *= 0.75;
                n -= senders;
            }
        }
        f64::max(avg_rtcp_size * n / rtcp_bw, minimum)
    }

    proptest! {
        #[test]
        fn the_interval_is_that_of_appendix_a_7(
            others in 0u32..300, part in 0.0..1.0, we_sent: bool, bandwidth in 1e3..1e8, bytes in 60usize..1500, first: bool,
        ) {
            let sending = (f64::from(others) * part) as u32;
            let mut schedule = RtcpSchedule::new(0.0, bandwidth, 1, bytes, Rng::stream(1, "test"));
            (2..2 + others).for_each(|ssrc| schedule.received_rtcp(0.0, ssrc, bytes));
            (2..2 + sending).for_each(|ssrc| schedule.received_data(0.0, ssrc));
            if we_sent {
                schedule.sent_data(0.0);
            }
            if !first {
                schedule.sent_rtcp(0.0, bytes);
            }
            let (members, senders) = (f64::from(1 + others), f64::from(sending + u32::from(we_sent)));
            let wanted = rtcp_interval(members, senders, bandwidth * 0.05 / 8.0, we_sent, bytes as f64, first);
            prop_assert!((schedule.deterministic_interval_s() / wanted - 1.0).abs() < 1e-9);
        }
    }

    proptest! {
        /// Section 6.3.7 and `OnExpire`, `OnReceive` of appendix A.7 for EVENT_BYE, with the same draws. The average size follows
        /// section 6.3.7: only BYE packets count; appendix A.7 counts reports too.
        #[test]
        fn a_bye_waits_as_in_appendix_a_7(
            others in 0u32..300, seed: u64, heard in proptest::collection::vec((0.0..0.2, proptest::bool::ANY, 60usize..200), 0..300),
        ) {
            let (bandwidth, size) = (100e3, 120);
            let mut schedule = RtcpSchedule::new(0.0, bandwidth, 1, size, Rng::stream(seed, "test"));
            schedule.sent_rtcp(1.0, size);
            (2..2 + others).for_each(|ssrc| schedule.received_rtcp(1.0, ssrc, 100));
            let mut draws = Rng::stream(seed, "test");
            draws.unit();
            draws.unit();
            let tp = 2.0;
            if others < 50 {
                prop_assert!(schedule.leave(tp, size));
                return Ok(());
            }
            prop_assert!(!schedule.leave(tp, size));
            let (mut members, mut avg_rtcp_size, mut sent) = (1.0, size as f64, false);
            let mut interval = |members, avg| rtcp_interval(members, 0.0, bandwidth * 0.05 / 8.0, false, avg, true) * (draws.unit() + 0.5) / (E - 1.5);
            let mut tn = tp + interval(members, avg_rtcp_size);
            let mut tc = tp;
            for (gap, bye, bytes) in heard.into_iter().chain(std::iter::repeat_n((1e9, false, 100), 1)) {
                while !sent && tn <= tc + gap {
                    prop_assert!((schedule.next_s() / tn - 1.0).abs() < 1e-9);
                    let now = schedule.next_s();
                    let t = interval(members, avg_rtcp_size);
                    sent = tp + t <= now;
                    tn = tp + t;
                    prop_assert!(schedule.expire(now) == sent);
                }
                tc += gap;
                schedule.received_data(tc, 7);
                schedule.received_rtcp(tc, 1000, bytes);
                if bye {
                    schedule.received_bye(tc, 1000, bytes);
                    members += 1.0;
                    avg_rtcp_size = bytes as f64 / 16.0 + 15.0 / 16.0 * avg_rtcp_size;
                }
            }
            prop_assert!(sent);
        }
    }

    /// "a participant which never sent an RTP or RTCP packet MUST NOT send a BYE packet" (section 6.3.7).
    #[test]
    fn who_has_sent_nothing_says_no_bye() {
        for others in [0, 49, 200] {
            let mut schedule = RtcpSchedule::new(0.0, 100e3, 1, 100, Rng::stream(1, "test"));
            (2..2 + others).for_each(|ssrc| schedule.received_data(0.0, ssrc));
            assert!(!schedule.leave(1.0, 100) && schedule.next_s() == f64::INFINITY);
        }
        let mut sender = RtcpSchedule::new(0.0, 100e3, 1, 100, Rng::stream(1, "test"));
        sender.sent_data(0.5);
        assert!(sender.leave(1.0, 100));
    }

    /// Section 6.3.5: five Td "for a receiver": 5 x 200 x 100 B / 468.75 B/s = 213 s, though the sender's own Td is 5 s.
    #[test]
    fn a_sender_waits_for_its_receivers_own_interval_before_it_forgets_them() {
        let mut sender = RtcpSchedule::new(0.0, 100e3, 1, 100, Rng::stream(1, "test"));
        (2..202).for_each(|ssrc| sender.received_rtcp(0.0, ssrc, 100));
        for (now, left) in [(100.0, 0), (213.0, 0), (213.5, 200)] {
            sender.sent_data(now);
            sender.expire(now);
            assert_eq!(sender.take_silent().len(), left);
            sender.sent_rtcp(now, 100);
            assert_eq!(sender.deterministic_interval_s(), 5.0);
        }
    }

    /// [RFC 3550 sec 6.3.5]: a sender leaves the list 2 T after its last data, T the interval as drawn, not Td.
    #[test]
    fn a_sender_is_one_for_two_intervals_as_drawn() {
        for seed in 0..20 {
            let mut schedule = RtcpSchedule::new(0.0, 10e6, 1, 120, Rng::stream(seed, "test"));
            schedule.sent_rtcp(0.0, 120);
            schedule.sent_rtcp(100.0, 120);
            let (now, drawn_s) = (schedule.next_s(), schedule.next_s() - 100.0);
            schedule.received_data(now - 2.0 * drawn_s - 1e-6, 2);
            schedule.received_data(now - 2.0 * drawn_s + 1e-6, 3);
            schedule.expire(now);
            assert_eq!(schedule.senders.keys().collect::<Vec<_>>(), [&3]);
        }
    }

    #[test]
    fn silent_members_time_out_and_goodbye_brings_the_next_report_forward() {
        let mut schedule = RtcpSchedule::new(0.0, 10e6, 1, 120, Rng::stream(2, "test"));
        for other in 2..10 {
            schedule.received_rtcp(0.0, other, 120);
        }
        schedule.expire(0.1);
        let before = schedule.next_s();
        for other in 2..10 {
            schedule.received_bye(0.1, other, 120);
        }
        assert!(schedule.next_s() < before);
        schedule.received_data(0.2, 99);
        schedule.expire(100.0);
        assert!(!schedule.members.contains_key(&99) && !schedule.senders.contains_key(&99));
    }
}
