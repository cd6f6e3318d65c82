//! Prague's window (draft-briscoe-iccrg-prague-congestion-control-04, sections 2.3 and 2.4): DCTCP's answer to marks, with an increase that
//! depends less on the round trip, and segments spaced in time. A loss halves the window. Loss recovery is `sack.rs`.
//!
//! Only `+ - * /` are used, so that a run is the same on every machine.

use super::{Core, Delivered};
use crate::Nanos;

/// Weight of the latest round in alpha, g (section 2.4.1).
const G: f64 = 1.0 / 16.0;
/// The least virtual round trip, `RTT_VIRT_MIN` (section 2.4.4).
const LEAST_VIRTUAL_RTT: f64 = 25e6;
/// Rounds after slow start from which on the virtual round trip counts, D (section 2.4.4).
const DEPENDENT_ROUNDS: u32 = 500;
/// Weight of a round trip in its mean [RFC 6298 sec 2], which is kept apart from the timer's: that one counts ticks of a clock.
const RTT_WEIGHT: f64 = 1.0 / 8.0;

#[derive(Clone, Debug)]
pub(crate) struct Prague {
    /// The window in octets, with its fraction. `Core` has it in whole segments, rounded up; the pace makes up for the difference.
    window: f64,
    /// What `Core` was given: something else there is a loss's or a timeout's.
    given: u64,
    /// Estimated fraction of octets that are marked, 0 to 1.
    alpha: f64,
    /// Whether a mark ever came: before, there is nothing to estimate.
    marked_once: bool,
    /// In nanoseconds.
    srtt: Option<f64>,
    /// The stream offset whose acknowledgement ends the round.
    round_end: u64,
    /// Rounds since slow start.
    rounds: u32,
    /// Octets since alpha's last update, those marked, and when that was.
    delivered: f64,
    marked: f64,
    alpha_at: Nanos,
    /// The last reduction for a mark: up to where the data were sent, and when.
    reduced_until: u64,
    reduced_at: Nanos,
}

impl Prague {
    /// Alpha is 1 at first: a flow answers its first mark as it answers a loss (section 2.4.1).
    pub fn new() -> Self {
        Prague {
            window: 0.0,
            given: 0,
            alpha: 1.0,
            marked_once: false,
            srtt: None,
            round_end: 0,
            rounds: 0,
            delivered: 0.0,
            marked: 0.0,
            alpha_at: 0,
            reduced_until: 0,
            reduced_at: 0,
        }
    }

    pub fn on_established(&mut self, rtt: Option<Nanos>) {
        self.srtt = rtt.map(|rtt| rtt as f64);
    }

    /// The virtual round trip, max(srtt, 25 ms), once the flow is as old as section 2.4.4 asks for; before, the round trip itself.
    fn virtual_rtt(&self) -> f64 {
        let srtt = self.srtt.unwrap_or(LEAST_VIRTUAL_RTT);
        if self.rounds >= DEPENDENT_ROUNDS {
            srtt.max(LEAST_VIRTUAL_RTT)
        } else {
            srtt
        }
    }

    /// Whether a virtual round trip has passed since then. It is a round trip where the two are the same, which the caller's offsets tell.
    fn has_passed(&self, since: Nanos, now: Nanos) -> bool {
        self.rounds < DEPENDENT_ROUNDS || (now - since) as f64 >= self.virtual_rtt()
    }

    /// What an ACK delivered: the reduction for marks, the increase for what has none, then alpha.
    pub fn on_delivered(&mut self, core: &mut Core, now: Nanos, event: &Delivered) {
        if let Some(rtt) = event.sample.rtt {
            let srtt = self.srtt.unwrap_or(rtt as f64);
            self.srtt = Some(srtt + (rtt as f64 - srtt) * RTT_WEIGHT);
        }
        self.window = self.window(core);
        let delivered = event.sample.newly_delivered as f64;
        let marked = (event.marks as f64 * core.mss as f64).min(delivered);
        self.delivered += delivered;
        self.marked += marked;
        if event.marks > 0 {
            self.marked_once = true;
            self.reduce(core, now);
        }
        if !core.in_recovery && core.cwnd_limited {
            self.grow(core, delivered - marked);
        }
        if core.una >= self.round_end {
            self.end_round(core, now);
        }
        self.window = self.window.min(core.max_window as f64);
        // whole segments, rounded up
        let mss = core.mss as f64;
        core.cwnd = (((self.window + mss - 1.0) / mss) as u64 * core.mss).max(core.mss).min(core.max_window);
        self.given = core.cwnd;
    }

    /// Section 2.4.2: cwnd (1 - alpha / 2), at most once in a round trip and in a virtual one; none in loss recovery.
    fn reduce(&mut self, core: &mut Core, now: Nanos) {
        if core.in_recovery || core.una < self.reduced_until || self.reduced_until > 0 && !self.has_passed(self.reduced_at, now) {
            return;
        }
        self.window = (self.window * (1.0 - self.alpha / 2.0)).max(2.0 * core.mss as f64);
        core.ssthresh = self.window as u64;
        self.reduced_until = core.max_sent;
        self.reduced_at = now;
        core.stats.ecn_reductions += 1;
    }

    /// Section 2.4.3: octets that came without a mark make the window larger, also in the round after a reduction. In congestion avoidance a
    /// window of them adds (srtt / virtual RTT)^2 segments (section 2.4.4), so that flows of other round trips get the same rate.
    fn grow(&mut self, core: &Core, octets: f64) {
        let mss = core.mss as f64;
        if self.window < core.ssthresh as f64 {
            self.window += octets.min(mss);
            return;
        }
        let srtt = self.srtt.unwrap_or(LEAST_VIRTUAL_RTT);
        let ratio = srtt / self.virtual_rtt();
        self.window += mss * ratio * ratio * octets / self.window;
    }

    /// Section 2.4.1: alpha moves by a sixteenth of the way to the part that was marked, once in a virtual round trip of whole rounds.
    fn end_round(&mut self, core: &Core, now: Nanos) {
        self.round_end = core.nxt;
        if self.window >= core.ssthresh as f64 {
            self.rounds = self.rounds.saturating_add(1);
        }
        if !self.has_passed(self.alpha_at, now) {
            return;
        }
        if self.marked_once && self.delivered > 0.0 {
            self.alpha += (self.marked / self.delivered - self.alpha) * G;
        }
        self.alpha_at = now;
        self.delivered = 0.0;
        self.marked = 0.0;
    }

    /// The window with its fraction, unless a loss or a timeout has set another.
    fn window(&self, core: &Core) -> f64 {
        if core.cwnd == self.given {
            self.window
        } else {
            core.cwnd as f64
        }
    }

    /// The window after a loss (section 2.3.2): half, as Reno's.
    pub fn half(&self, core: &Core) -> u64 {
        ((self.window(core) / 2.0) as u64).max(2 * core.mss)
    }

    /// Section 2.4.6: a window in a round trip, and twice that well below the slow start threshold, where each ACK lets two segments out.
    pub fn pacing_rate(&self, core: &Core) -> Option<f64> {
        let gain = if core.cwnd < core.ssthresh / 2 { 2.0 } else { 1.0 };
        self.srtt.map(|srtt| gain * self.window(core) / (srtt * 1e-9))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::Sample;
    use crate::{Config, Flavour};
    const MS: Nanos = 1_000_000;

    /// A sender in congestion avoidance with a window of so many segments of 1000 octets, all in flight.
    fn flow(segments: u64, rtt: Nanos, rounds: u32) -> (Core, Prague) {
        let mut core = Core::new(&Config { flavour: Flavour::Prague, mss: 1000, ..Config::default() });
        core.cwnd = segments * 1000;
        core.ssthresh = core.cwnd;
        core.una = 1;
        core.nxt = 1 + core.cwnd;
        core.max_sent = core.nxt;
        core.cwnd_limited = true;
        let mut prague = Prague::new();
        prague.on_established(Some(rtt));
        prague.rounds = rounds;
        prague.round_end = core.nxt;
        (core, prague)
    }

    /// An ACK of so many segments, some of them marked; new ones are sent for them.
    fn ack(core: &mut Core, prague: &mut Prague, now: Nanos, segments: u64, marks: u64) {
        core.una += segments * 1000;
        core.nxt += segments * 1000;
        core.max_sent = core.nxt;
        let sample = Sample { newly_delivered: segments * 1000, newly_delivered_segments: segments, ..Sample::default() };
        prague.on_delivered(core, now, &Delivered { sample, marks, ..Delivered::default() });
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9 * expected.abs().max(1.0), "{found}, not {expected}");
    }

    /// Section 2.4.1: alpha is 1 until the first mark; then rounds with 1, 0 and 5 of 10 segments marked.
    #[test]
    fn alpha_follows_the_marked_part_round_by_round() {
        let (mut core, mut prague) = flow(10, 40 * MS, 0);
        ack(&mut core, &mut prague, MS, 10, 0);
        assert_eq!(prague.alpha, 1.0, "no mark, no estimate");
        ack(&mut core, &mut prague, 2 * MS, 10, 1);
        close(prague.alpha, 1.0 - 0.9 / 16.0);
        let first = prague.alpha;
        ack(&mut core, &mut prague, 3 * MS, 4, 0);
        close(prague.alpha, first);
        ack(&mut core, &mut prague, 4 * MS, 6, 0);
        close(prague.alpha, first * 15.0 / 16.0);
        let second = prague.alpha;
        ack(&mut core, &mut prague, 5 * MS, 10, 5);
        close(prague.alpha, second * 15.0 / 16.0 + 0.5 / 16.0);
    }

    /// Section 2.4.2: the first mark halves, a later one reduces by half of alpha; a round has one reduction.
    #[test]
    fn a_mark_reduces_by_half_of_alpha_once_in_a_round() {
        let (mut core, mut prague) = flow(40, 40 * MS, 0);
        ack(&mut core, &mut prague, MS, 1, 1);
        close(prague.window, 20_000.0);
        assert_eq!((core.cwnd, core.ssthresh, core.stats.ecn_reductions), (20_000, 20_000, 1));
        ack(&mut core, &mut prague, 2 * MS, 1, 1);
        close(prague.window, 20_000.0);
        // 38 more end the round that the reduction began in
        ack(&mut core, &mut prague, 40 * MS, 39, 0);
        prague.alpha = 0.1;
        let before = prague.window;
        ack(&mut core, &mut prague, 41 * MS, 1, 1);
        close(prague.window, before * 0.95);
        assert_eq!(core.stats.ecn_reductions, 2);
        prague.window = 2_100.0;
        prague.alpha = 1.0;
        ack(&mut core, &mut prague, 99 * MS, 40, 1);
        assert!(prague.window >= 2_000.0, "never below two segments");
    }

    /// Section 2.4.3: marked octets add nothing, others mss / cwnd each, in the round of a reduction too.
    #[test]
    fn octets_without_a_mark_make_the_window_larger() {
        let (mut core, mut prague) = flow(20, 40 * MS, 0);
        ack(&mut core, &mut prague, MS, 4, 0);
        close(prague.window, 20_000.0 + 1000.0 * 4000.0 / 20_000.0);
        assert_eq!(core.cwnd, 21_000, "rounded up to whole segments");
        prague.alpha = 0.0;
        let before = prague.window;
        ack(&mut core, &mut prague, 2 * MS, 4, 3);
        close(prague.window, before + 1000.0 * 1000.0 / before);
        let before = prague.window;
        core.in_recovery = true;
        ack(&mut core, &mut prague, 3 * MS, 4, 0);
        close(prague.window, before);
        core.in_recovery = false;
        core.cwnd_limited = false;
        ack(&mut core, &mut prague, 4 * MS, 4, 0);
        close(prague.window, before);
    }

    /// Section 2.4.4: at 5 ms a round adds (5 / 25)^2 = 1/25 of a segment, after 500 rounds; at 40 ms one segment.
    #[test]
    fn a_short_round_trip_adds_less() {
        for (rtt_ms, rounds, per_round) in [(5, 500, 1.0 / 25.0), (5, 499, 1.0), (40, 500, 1.0)] {
            let (mut core, mut prague) = flow(20, rtt_ms * MS, rounds);
            ack(&mut core, &mut prague, MS, 10, 0);
            close(prague.window, 20_000.0 + 1000.0 * per_round * 0.5);
        }
    }

    /// Section 2.4.4: with a round trip of 5 ms, alpha and the reductions are those of 25 ms.
    #[test]
    fn alpha_and_reductions_keep_the_virtual_round_trip() {
        let (mut core, mut prague) = flow(10, 5 * MS, 500);
        prague.alpha = 0.5;
        ack(&mut core, &mut prague, 100 * MS, 10, 1);
        assert_eq!(core.stats.ecn_reductions, 1);
        close(prague.alpha, 0.5 + (0.1 - 0.5) / 16.0);
        for n in 1..5 {
            ack(&mut core, &mut prague, 100 * MS + n * 5 * MS, 10, 1);
            assert_eq!(core.stats.ecn_reductions, 1, "{} ms later", 5 * n);
        }
        close(prague.alpha, 0.475);
        ack(&mut core, &mut prague, 125 * MS, 10, 1);
        assert_eq!(core.stats.ecn_reductions, 2);
        close(prague.alpha, 0.475 + (0.1 - 0.475) / 16.0);
    }

    /// Section 2.3.2: half; a timeout begins anew with one segment.
    #[test]
    fn a_loss_halves_and_a_timeout_begins_anew() {
        let (mut core, mut prague) = flow(20, 40 * MS, 0);
        ack(&mut core, &mut prague, MS, 1, 0);
        assert_eq!(prague.half(&core), 10_025);
        core.cwnd = 1000;
        ack(&mut core, &mut prague, 2 * MS, 1, 0);
        close(prague.window, 2000.0);
        assert_eq!(core.cwnd, 2000);
    }

    /// Section 2.4.6: 20 segments in 40 ms are 500 kB/s; in slow start, twice that.
    #[test]
    fn the_pace_is_a_window_in_a_round_trip() {
        let (mut core, mut prague) = flow(20, 40 * MS, 0);
        assert!((prague.pacing_rate(&core).unwrap() - 500e3).abs() < 1e-3);
        ack(&mut core, &mut prague, MS, 4, 0);
        assert!((prague.pacing_rate(&core).unwrap() - 505e3).abs() < 1e-3, "the fraction counts");
        core.ssthresh = 1 << 20;
        assert!((prague.pacing_rate(&core).unwrap() - 1010e3).abs() < 1e-3);
        assert_eq!(Prague::new().pacing_rate(&core), None, "no round trip, no pace");
    }
}
