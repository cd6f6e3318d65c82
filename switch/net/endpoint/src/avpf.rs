//! When a receiver's RTCP packets leave in a session of two members with feedback: [RFC 4585 sec 3.5], RTP/AVPF.
//!
//! There are regular slots as in RFC 3550, without its minimum of five seconds, and most pass unused: a full report leaves about each
//! `T_rr_interval`. Feedback leaves at once, and then not before the next slot: so RTCP keeps to its part of the session's bandwidth,
//! half of 5 % for each of the two [RFC 4585 sec 3.6.1]. Times are seconds; names in comments are the RFC's.

use fairlane_random::Rng;

use crate::rtcp_schedule::{COMPENSATION, RTCP_FRACTION};

/// Members of the session: a sender and a receiver. With more than a quarter of them sending, they share RTCP's part evenly [RFC 3550 sec 6.2].
const MEMBERS: f64 = 2.0;
/// T_rr_interval: the mean time between full reports, RFC 3550's minimum.
const FULL_REPORTS_APART_S: f64 = 5.0;

/// Slots are so far apart at least, so that those of a fast session do not come by the thousand: "a minimum interval ... may be enforced"
/// [RFC 4585 sec 3.2].
const SLOTS_APART_S: f64 = 0.005;

/// What a regular slot is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// The slot was moved: there is a new [`AvpfSchedule::next_s`].
    Moved,
    /// Nothing leaves.
    Suppressed,
    /// Feedback that had to wait, in a compound packet.
    Feedback,
    /// A full report, with feedback if some waits.
    Full,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct AvpfSchedule {
    /// RTCP's part of the session's bandwidth.
    bytes_per_s: f64,
    rng: Rng,
    /// avg_rtcp_size.
    average_bytes: f64,
    /// tp
    last_s: f64,
    /// tn
    next_s: f64,
    /// T_rr: the last interval that was drawn.
    interval_s: f64,
    allow_early: bool,
    /// Feedback waits for the next slot.
    stored: bool,
    /// t_rr_last
    full_s: Option<f64>,
    has_sent: bool,
}

impl AvpfSchedule {
    /// `first_packet_bytes`: likely size of the first compound, UDP and IP headers included [RFC 3550 sec 6.3.2]. "For a point-to-point
    /// session, the initial Tmin is set to 0" [RFC 4585 sec 3.5.1].
    pub(crate) fn new(now_s: f64, session_bandwidth_bps: f64, first_packet_bytes: usize, rng: Rng) -> AvpfSchedule {
        let mut schedule = AvpfSchedule {
            bytes_per_s: session_bandwidth_bps * RTCP_FRACTION / 8.0,
            rng,
            average_bytes: first_packet_bytes as f64,
            last_s: now_s,
            next_s: now_s,
            interval_s: 0.0,
            allow_early: true,
            stored: false,
            full_s: None,
            has_sent: false,
        };
        schedule.next_s = now_s + schedule.draw();
        schedule
    }

    /// When to call [`AvpfSchedule::slot`].
    pub(crate) fn next_s(&self) -> f64 {
        self.next_s
    }

    /// Whether a packet has left: then a BYE may [RFC 3550 sec 6.3.7], and packets of reduced size [RFC 5506 sec 4].
    pub(crate) fn has_sent(&self) -> bool {
        self.has_sent
    }

    /// T [RFC 3550 sec 6.3.1].
    fn draw(&mut self) -> f64 {
        let deterministic_s = SLOTS_APART_S.max(MEMBERS * self.average_bytes / self.bytes_per_s);
        self.interval_s = deterministic_s * (self.rng.unit() + 0.5) / COMPENSATION;
        self.interval_s
    }

    /// There is feedback to send. True: send it now, and call [`AvpfSchedule::sent_early`]. False: it is "stored" for the next slot, whose
    /// packet says all that is known by then [RFC 4585 sec 3.5.2 step 2a to 4b]. Between two members nothing is dithered.
    pub(crate) fn feedback(&mut self) -> bool {
        self.stored |= !self.allow_early;
        self.allow_early
    }

    /// An early packet of `bytes` has left, headers included [RFC 4585 sec 3.5.2 step 6].
    pub(crate) fn sent_early(&mut self, bytes: usize) {
        self.average(bytes);
        self.has_sent = true;
        self.allow_early = false;
        (self.last_s, self.next_s) = (self.next_s, self.last_s + 2.0 * self.interval_s);
    }

    /// The slot has come: "timer reconsideration takes place when tn is reached" [RFC 4585 sec 3.5.3]. Unless it was moved, call
    /// [`AvpfSchedule::done`] when what is to leave has left.
    pub(crate) fn slot(&mut self, now_s: f64) -> Slot {
        let due_s = self.last_s + self.draw();
        if due_s > now_s {
            self.next_s = due_s;
            return Slot::Moved;
        }
        let full = match self.full_s {
            None => true,                                                                           // 1
            Some(full_s) => full_s + FULL_REPORTS_APART_S * (self.rng.unit() + 0.5) <= self.next_s, // 2a
        };
        if full {
            self.full_s = Some(self.next_s);
            Slot::Full
        } else if self.stored {
            Slot::Feedback // 2b
        } else {
            Slot::Suppressed // 2c
        }
    }

    /// The slot is over, with a packet of `bytes` or none.
    pub(crate) fn done(&mut self, now_s: f64, bytes: Option<usize>) {
        if let Some(bytes) = bytes {
            self.average(bytes);
            self.has_sent = true;
        }
        self.allow_early = true;
        self.stored = false;
        self.last_s = now_s;
        self.next_s = now_s + self.draw();
    }

    /// A packet of the other member came [RFC 4585 sec 3.5.4].
    pub(crate) fn received(&mut self, bytes: usize) {
        self.average(bytes);
    }

    fn average(&mut self, bytes: usize) {
        self.average_bytes += (bytes as f64 - self.average_bytes) / 16.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(session_bps: f64) -> AvpfSchedule {
        AvpfSchedule::new(0.0, session_bps, 100, Rng::stream(1, "test"))
    }

    /// What leaves in `duration_s`, with feedback each `each_s` in packets of 100 bytes: (when, whether early or in which slot).
    fn run(schedule: &mut AvpfSchedule, each_s: f64, duration_s: f64) -> Vec<(f64, Option<Slot>)> {
        let (mut sent, mut wanted_s) = (Vec::new(), each_s);
        loop {
            let now_s = wanted_s.min(schedule.next_s());
            if now_s > duration_s {
                return sent;
            }
            if wanted_s == now_s {
                wanted_s += each_s;
                if schedule.feedback() {
                    schedule.sent_early(100);
                    sent.push((now_s, None));
                }
            } else {
                match schedule.slot(now_s) {
                    Slot::Moved => {}
                    Slot::Suppressed => schedule.done(now_s, None),
                    slot => {
                        schedule.done(now_s, Some(100));
                        sent.push((now_s, Some(slot)));
                    }
                }
            }
        }
    }

    /// [RFC 4585 sec 3.6.1]: of 64 kb/s 2.5 % are 1600 bit/s; packets of 96 bytes "can report 2 events per second".
    #[test]
    fn the_interval_is_of_half_of_five_percent() {
        let mut schedule = AvpfSchedule::new(0.0, 64e3, 96, Rng::stream(3, "test"));
        let mean_s = (0..10_000).map(|_| schedule.draw()).sum::<f64>() / 1e4;
        // Divided by e - 3/2, which reconsideration takes back [RFC 3550 sec 6.3.1].
        assert!((mean_s * COMPENSATION - 96.0 * 8.0 / 1600.0).abs() < 0.01, "{mean_s}");
    }

    #[test]
    fn feedback_leaves_at_once_while_there_is_bandwidth() {
        // 10 Mb/s: slots each 5 ms, feedback each 100 ms.
        let sent = run(&mut schedule(10e6), 0.1, 60.0);
        let (early, slots): (Vec<_>, Vec<_>) = sent.iter().partition(|(_, slot)| slot.is_none());
        assert!((599..=600).contains(&early.len()), "{}", early.len());
        assert!(slots.iter().all(|(_, slot)| *slot == Some(Slot::Full)), "{slots:?}");
        // Full reports each 2.5 to 7.5 s, the first at the first slot.
        assert!(slots[0].0 < 0.01);
        for pair in slots.windows(2) {
            let apart_s = pair[1].0 - pair[0].0;
            assert!((2.5..7.6).contains(&apart_s), "{apart_s}");
        }
    }

    /// "the short-term average RTCP bandwidth used with Early feedback does not exceed the bandwidth used without" [RFC 4585 sec 3.4].
    #[test]
    fn more_feedback_than_the_bandwidth_waits() {
        // 64 kb/s: 1600 bit/s are two packets of 100 bytes a second; twenty a second are wanted.
        let sent = run(&mut schedule(64e3), 0.05, 600.0);
        let rate = sent.len() as f64 / 600.0;
        assert!((1.8..2.3).contains(&rate), "{rate} packets a second");
        assert!(sent.iter().any(|(_, slot)| *slot == Some(Slot::Feedback)));
    }

    #[test]
    fn an_early_packet_takes_the_next_slot() {
        let mut schedule = schedule(1e6);
        let (first_s, interval_s) = (schedule.next_s(), schedule.interval_s);
        assert!(schedule.feedback());
        schedule.sent_early(100);
        // "recalculate tn = tp + 2 T_rr", "set tp to the previous tn" [RFC 4585 sec 3.5.2 step 6].
        assert_eq!((schedule.last_s, schedule.next_s()), (first_s, 2.0 * interval_s));
        assert!(!schedule.feedback(), "allow_early is false until then");
        while schedule.slot(schedule.next_s()) == Slot::Moved {}
        schedule.done(schedule.next_s(), Some(100));
        assert!(schedule.feedback());
    }
}
