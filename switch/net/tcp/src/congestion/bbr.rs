//! BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00): a model of the path, of its bandwidth and its round-trip time, sets rate
//! and window. Loss recovery is `sack.rs`; a loss changes the window for a round trip only.
//!
//! Linux's `tcp_bbr.c` and ns-3.37's `TcpBbr` have two things beyond the draft, which are here, too: the window has two segments more while it
//! probes for bandwidth, and the first round-trip time sets the pace anew. Not here: a pace 1% below the model's, and
//! allowances for aggregated ACKs and for policers, which Linux has.
//!
//! Only `+ - * /` are used, so that a run is the same on every machine.

use super::{sack, Core, Delivered};
use crate::Nanos;

/// Gain of rate and window in Startup, `BBRHighGain` (section 4.3.2.1): 2 / ln 2, as the draft rounds it, with which the rate doubles in each round.
const HIGH_GAIN: f64 = 2.89;
/// Gains of the rate in `ProbeBW`, one a minimum round trip (section 4.3.4.1).
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Gain of the window in `ProbeBW` (section 4.3.4.3).
const PROBE_CWND_GAIN: f64 = 2.0;
/// Rounds that a maximum of the bandwidth lasts, `BtlBwFilterLen` (section 4.1.1.2).
const BANDWIDTH_ROUNDS: usize = 10;
/// Time that a minimum of the round trip lasts, `RTpropFilterLen` (section 4.1.2.2).
const MIN_RTT_LASTS: Nanos = 10_000_000_000;
/// Least time in `ProbeRTT` (section 4.3.5).
const PROBE_RTT: Nanos = 200_000_000;
/// Segments of the least window, `BBRMinPipeCwnd` (section 4.2.3.3).
const MIN_SEGMENTS: u64 = 4;
/// Growth that counts as such in Startup, and rounds without it that end Startup (section 4.3.2.2).
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// Round trip of the first pace, where none is known (section 4.2.1).
const NOMINAL_RTT: Nanos = 1_000_000;

/// The greatest of the latest rounds.
#[derive(Clone, Debug, Default)]
struct MaxFilter {
    rounds: [f64; BANDWIDTH_ROUNDS],
    newest: u64,
}

impl MaxFilter {
    fn update(&mut self, round: u64, value: f64) {
        // rounds without a sample are over, too
        for gone in (self.newest + 1..=round).take(BANDWIDTH_ROUNDS) {
            self.rounds[gone as usize % BANDWIDTH_ROUNDS] = 0.0;
        }
        if round > self.newest + BANDWIDTH_ROUNDS as u64 {
            self.rounds = Default::default();
        }
        self.newest = round;
        let slot = &mut self.rounds[round as usize % BANDWIDTH_ROUNDS];
        *slot = slot.max(value);
    }

    fn get(&self) -> f64 {
        self.rounds.iter().copied().fold(0.0, f64::max)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// What is being recovered from, where the window from before is to be restored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Recovery {
    None,
    Fast,
    /// A timeout, until this stream offset is acknowledged.
    Timeout(u64),
}

#[derive(Clone, Debug)]
pub(crate) struct Bbr {
    mode: Mode,
    pacing_gain: f64,
    cwnd_gain: f64,
    /// `BBR.BtlBw`, octets a second.
    bandwidth: MaxFilter,
    /// `BBR.RTprop`, and since when it holds.
    min_rtt: Option<Nanos>,
    min_rtt_at: Nanos,
    /// Rounds (section 4.1.1.3).
    round: u64,
    round_start: bool,
    next_round_delivered: u64,
    /// `BBR.full_bw`, `full_bw_count`, `filled_pipe` (section 4.3.2.2).
    full_bandwidth: f64,
    full_rounds: u32,
    filled: bool,
    /// Of `ProbeBW`.
    cycle: usize,
    cycle_at: Nanos,
    /// Of `ProbeRTT`.
    probe_rtt_done_at: Option<Nanos>,
    probe_rtt_round_done: bool,
    recovery: Recovery,
    /// `BBR.packet_conservation`: until a segment arrives that left when so many octets had been delivered.
    conserved_until: Option<u64>,
    prior_cwnd: u64,
    idle_restart: bool,
    /// Octets a second.
    pacing_rate: f64,
    has_seen_rtt: bool,
    initial_cwnd: u64,
    random: u64,
}

impl Bbr {
    /// `seed`: of the phase in which `ProbeBW` begins.
    pub fn new(seed: u32) -> Self {
        Bbr {
            mode: Mode::Startup,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            bandwidth: MaxFilter::default(),
            min_rtt: None,
            min_rtt_at: 0,
            round: 0,
            round_start: false,
            next_round_delivered: 0,
            full_bandwidth: 0.0,
            full_rounds: 0,
            filled: false,
            cycle: 0,
            cycle_at: 0,
            probe_rtt_done_at: None,
            probe_rtt_round_done: false,
            recovery: Recovery::None,
            conserved_until: None,
            prior_cwnd: 0,
            idle_restart: false,
            pacing_rate: 0.0,
            has_seen_rtt: false,
            initial_cwnd: 0,
            random: u64::from(seed),
        }
    }

    /// `BBRInit` (section 4.3.1): `rtt` is of the handshake.
    pub fn on_established(&mut self, core: &Core, now: Nanos, rtt: Option<Nanos>) {
        self.min_rtt = rtt;
        self.min_rtt_at = now;
        self.initial_cwnd = core.cwnd;
        self.has_seen_rtt = rtt.is_some();
        self.init_pacing_rate(rtt);
    }

    /// `BBRInitPacingRate` (section 4.2.1).
    fn init_pacing_rate(&mut self, rtt: Option<Nanos>) {
        self.pacing_rate = self.pacing_gain * self.initial_cwnd as f64 / (rtt.unwrap_or(NOMINAL_RTT) as f64 * 1e-9);
    }

    pub fn pacing_rate(&self) -> f64 {
        self.pacing_rate
    }

    /// Rates in `ProbeRTT` say nothing of the path (section 4.3.5).
    pub fn holds_back(&self) -> bool {
        self.mode == Mode::ProbeRtt
    }

    /// `BBRHandleRestartFromIdle` (section 4.3.4.4).
    pub fn on_restart_from_idle(&mut self) {
        self.idle_restart = true;
        if self.mode == Mode::ProbeBw {
            self.set_pacing_rate(1.0);
        }
    }

    /// `BBRUpdateOnACK` (section 3.5.2).
    pub fn on_delivered(&mut self, core: &mut Core, now: Nanos, event: &Delivered) {
        self.follow_recovery(core, event);
        self.update_bandwidth(event);
        self.check_cycle(core, now, event);
        self.check_full_pipe(event);
        self.check_drain(core, now);
        let expired = self.update_min_rtt(now, event);
        self.check_probe_rtt(core, now, event, expired);
        self.set_pacing_rate(self.pacing_gain);
        self.set_cwnd(core, event);
    }

    /// `BBRUpdateBtlBw`, `BBRUpdateRound` (sections 4.1.1.5 and 4.1.1.3).
    fn update_bandwidth(&mut self, event: &Delivered) {
        self.round_start = false;
        let Some(prior) = event.sample.prior_delivered else { return };
        if prior >= self.next_round_delivered {
            self.next_round_delivered = event.sample.delivered;
            self.round += 1;
            self.round_start = true;
        }
        self.conserved_until = self.conserved_until.filter(|&until| prior < until);
        if let Some(rate) = event.sample.rate.filter(|&rate| rate >= self.bandwidth.get() || !event.sample.app_limited) {
            self.bandwidth.update(self.round, rate);
        }
    }

    /// `BBRInflight` (section 4.2.3.2): gain times the model's bandwidth-delay product, and three segments for those that travel in bursts.
    fn inflight(&self, core: &Core, gain: f64) -> u64 {
        let Some(min_rtt) = self.min_rtt.filter(|_| self.bandwidth.get() > 0.0) else { return self.initial_cwnd };
        let product = self.bandwidth.get() * (min_rtt as f64 * 1e-9);
        let probing = if self.mode == Mode::ProbeBw && self.cycle == 0 { 2 } else { 0 };
        (gain * product) as u64 + (3 + probing) * core.mss
    }

    /// `BBRCheckCyclePhase`, `BBRIsNextCyclePhase` (section 4.3.4.3).
    fn check_cycle(&mut self, core: &Core, now: Nanos, event: &Delivered) {
        if self.mode != Mode::ProbeBw {
            return;
        }
        let is_full_length = self.min_rtt.is_some_and(|min_rtt| now - self.cycle_at > min_rtt);
        let over = if self.pacing_gain > 1.0 {
            is_full_length && (event.lost > 0 || event.prior_in_flight >= self.inflight(core, self.pacing_gain))
        } else if self.pacing_gain < 1.0 {
            is_full_length || event.prior_in_flight <= self.inflight(core, 1.0)
        } else {
            is_full_length
        };
        if over {
            self.advance_cycle(now);
        }
    }

    fn advance_cycle(&mut self, now: Nanos) {
        self.cycle_at = now;
        self.cycle = (self.cycle + 1) % CYCLE.len();
        self.pacing_gain = CYCLE[self.cycle];
    }

    /// `BBRCheckFullPipe` (section 4.3.2.2).
    fn check_full_pipe(&mut self, event: &Delivered) {
        if self.filled || !self.round_start || event.sample.app_limited {
            return;
        }
        if self.bandwidth.get() >= self.full_bandwidth * FULL_GROWTH {
            self.full_bandwidth = self.bandwidth.get();
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.filled = self.full_rounds >= FULL_ROUNDS;
    }

    /// `BBRCheckDrain` (section 4.3.3).
    fn check_drain(&mut self, core: &Core, now: Nanos) {
        if self.mode == Mode::Startup && self.filled {
            self.mode = Mode::Drain;
            self.pacing_gain = 1.0 / HIGH_GAIN;
            self.cwnd_gain = HIGH_GAIN;
        }
        if self.mode == Mode::Drain && core.in_flight() <= self.inflight(core, 1.0) {
            self.enter_probe_bw(now);
        }
    }

    /// `BBREnterProbeBW` (section 4.3.4.3): in any phase but the one that drains.
    fn enter_probe_bw(&mut self, now: Nanos) {
        self.mode = Mode::ProbeBw;
        self.cwnd_gain = PROBE_CWND_GAIN;
        self.cycle = CYCLE.len() - 1 - self.draw(7);
        self.advance_cycle(now);
    }

    /// A number below `below`.
    fn draw(&mut self, below: u64) -> usize {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.random >> 33) % below) as usize
    }

    /// `BBRUpdateRTprop` (section 4.1.2.3); whether the minimum was too old.
    fn update_min_rtt(&mut self, now: Nanos, event: &Delivered) -> bool {
        let expired = now > self.min_rtt_at + MIN_RTT_LASTS;
        if let Some(rtt) = event.sample.rtt {
            if expired || self.min_rtt.is_none_or(|min_rtt| rtt <= min_rtt) {
                self.min_rtt = Some(rtt);
                self.min_rtt_at = now;
            }
            if !self.has_seen_rtt {
                self.has_seen_rtt = true;
                self.init_pacing_rate(Some(rtt));
            }
        }
        expired
    }

    /// `BBRCheckProbeRTT`, `BBRHandleProbeRTT` (section 4.3.5).
    fn check_probe_rtt(&mut self, core: &mut Core, now: Nanos, event: &Delivered, expired: bool) {
        if self.mode != Mode::ProbeRtt && expired && !self.idle_restart {
            self.save_cwnd(core);
            self.mode = Mode::ProbeRtt;
            self.pacing_gain = 1.0;
            self.cwnd_gain = 1.0;
            self.probe_rtt_done_at = None;
        }
        if self.mode == Mode::ProbeRtt {
            match self.probe_rtt_done_at {
                None if core.in_flight() <= MIN_SEGMENTS * core.mss => {
                    self.probe_rtt_done_at = Some(now + PROBE_RTT);
                    self.probe_rtt_round_done = false;
                    self.next_round_delivered = event.sample.delivered;
                }
                None => {}
                Some(done_at) => {
                    self.probe_rtt_round_done |= self.round_start;
                    if self.probe_rtt_round_done && now > done_at {
                        self.min_rtt_at = now;
                        core.cwnd = core.cwnd.max(self.prior_cwnd);
                        self.exit_probe_rtt(now);
                    }
                }
            }
        }
        if event.sample.newly_delivered > 0 {
            self.idle_restart = false;
        }
    }

    fn exit_probe_rtt(&mut self, now: Nanos) {
        if self.filled {
            self.enter_probe_bw(now);
        } else {
            self.mode = Mode::Startup;
            self.pacing_gain = HIGH_GAIN;
            self.cwnd_gain = HIGH_GAIN;
        }
    }

    /// `BBRSetPacingRateWithGain` (section 4.2.1): in Startup the pace never falls.
    fn set_pacing_rate(&mut self, gain: f64) {
        let rate = gain * self.bandwidth.get();
        if rate > 0.0 && (self.filled || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    /// `BBRSaveCwnd` (section 4.2.3.4).
    fn save_cwnd(&mut self, core: &Core) {
        let undisturbed = self.recovery == Recovery::None && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if undisturbed { core.cwnd } else { self.prior_cwnd.max(core.cwnd) };
    }

    /// A recovery begins; its window is [`Bbr::follow_recovery`]'s. Another loss in it changes nothing.
    pub fn enter_recovery(&mut self, core: &mut Core) {
        let (cwnd, ssthresh, was) = (core.cwnd, core.ssthresh, core.in_recovery);
        sack::enter_recovery(core, |_| ssthresh);
        core.cwnd = cwnd;
        if !was {
            self.save_cwnd(core);
            self.recovery = Recovery::Fast;
            // until what is in flight is known, after the ACK
            core.cwnd = 0;
        }
    }

    /// The timer ran out (section 4.2.3.4): the sender sets a window of a segment. The slow start threshold means nothing to BBR.
    pub fn on_timeout(&mut self, core: &Core) -> u64 {
        self.save_cwnd(core);
        self.recovery = Recovery::Timeout(core.max_sent);
        self.conserved_until = None;
        core.ssthresh
    }

    /// Begins and ends recovery (section 4.2.3.4): on entry the window is what is in flight and what was delivered, on exit the one before.
    fn follow_recovery(&mut self, core: &mut Core, event: &Delivered) {
        let over = match self.recovery {
            Recovery::None => return,
            Recovery::Fast => !core.in_recovery,
            Recovery::Timeout(until) => core.una >= until,
        };
        if over {
            self.recovery = Recovery::None;
            self.conserved_until = None;
            core.cwnd = core.cwnd.max(self.prior_cwnd);
        } else if core.cwnd == 0 {
            // one round trip, which begins now
            self.conserved_until = Some(event.sample.delivered);
            core.cwnd = core.in_flight() + event.sample.newly_delivered.max(core.mss);
        }
    }

    /// `BBRSetCwnd` (sections 4.2.3.3 to 4.2.3.6).
    fn set_cwnd(&mut self, core: &mut Core, event: &Delivered) {
        let delivered = event.sample.newly_delivered;
        if delivered > 0 {
            if self.recovery != Recovery::None && event.lost > 0 {
                core.cwnd = core.cwnd.saturating_sub(event.lost).max(core.mss);
            }
            if self.conserved_until.is_some() {
                core.cwnd = core.cwnd.max(core.in_flight() + delivered);
            } else {
                let target = self.inflight(core, self.cwnd_gain);
                if self.filled {
                    core.cwnd = (core.cwnd + delivered).min(target);
                } else if core.cwnd < target || event.sample.delivered < self.initial_cwnd {
                    core.cwnd += delivered;
                }
                core.cwnd = core.cwnd.max(MIN_SEGMENTS * core.mss);
            }
        }
        if self.mode == Mode::ProbeRtt {
            core.cwnd = core.cwnd.min(MIN_SEGMENTS * core.mss);
        }
        core.cwnd = core.cwnd.min(core.max_window);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::Sample;
    use crate::{Config, Flavour};
    const MS: Nanos = 1_000_000;

    /// Segments of 1000 octets, an initial window of 10, and a handshake of 40 ms that ends at 40 ms.
    fn flow() -> (Core, Bbr) {
        let mut core = Core::new(&Config { flavour: Flavour::Bbr, mss: 1000, ..Config::default() });
        (core.una, core.nxt, core.max_sent) = (1, 1, 1);
        let mut bbr = Bbr::new(7);
        bbr.on_established(&core, 40 * MS, Some(40 * MS));
        send(&mut core, 10);
        (core, bbr)
    }

    fn send(core: &mut Core, segments: u64) {
        core.nxt += segments * 1000;
        core.max_sent = core.nxt;
    }

    /// An ACK of one segment, sent when `prior` octets had been delivered.
    struct Ack {
        prior: u64,
        rate: f64,
        rtt_ms: u64,
        app_limited: bool,
    }

    impl Ack {
        fn at(self, core: &mut Core, bbr: &mut Bbr, now: Nanos) {
            let prior_in_flight = core.in_flight();
            core.una += 1000;
            core.board.advance(core.una);
            let sample = Sample {
                newly_delivered: 1000,
                newly_delivered_segments: 1,
                delivered: core.una - 1,
                prior_delivered: Some(self.prior),
                rate: Some(self.rate),
                app_limited: self.app_limited,
                rtt: Some(self.rtt_ms * MS),
            };
            bbr.on_delivered(core, now, &Delivered { sample, prior_in_flight, ..Delivered::default() });
        }
    }

    fn round(rate: f64) -> Ack {
        Ack { prior: u64::MAX, rate, rtt_ms: 40, app_limited: false }
    }

    /// A flow whose pipe is full at 1 MB/s and 40 ms (40 segments), in `ProbeBW`.
    fn full() -> (Core, Bbr, Nanos) {
        let (mut core, mut bbr) = flow();
        send(&mut core, 40);
        let mut now = 80 * MS;
        for _ in 0..4 {
            round(1e6).at(&mut core, &mut bbr, now);
            now += 40 * MS;
        }
        assert!(bbr.filled && bbr.mode == Mode::Drain, "{:?}", bbr.mode);
        while bbr.mode == Mode::Drain {
            Ack { prior: 0, ..round(1e6) }.at(&mut core, &mut bbr, now);
        }
        (core, bbr, now)
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9 * expected.abs(), "{found}, not {expected}");
    }

    /// Section 4.1.1.2: ten rounds, whether or not they have a sample.
    #[test]
    fn the_bandwidth_is_the_greatest_of_ten_rounds() {
        let mut filter = MaxFilter::default();
        for (round, rate, greatest) in
            [(1, 5.0, 5.0), (2, 9.0, 9.0), (2, 3.0, 9.0), (5, 4.0, 9.0), (11, 6.0, 9.0), (12, 2.0, 6.0), (40, 1.0, 1.0)]
        {
            filter.update(round, rate);
            assert_eq!(filter.get(), greatest, "round {round}");
        }
    }

    /// Section 4.2.1: 2.89 initial windows a handshake; then 2.89 times the bandwidth, and never less than before in Startup.
    #[test]
    fn startup_paces_at_2_89_times_the_bandwidth() {
        let (mut core, mut bbr) = flow();
        close(bbr.pacing_rate(), 2.89 * 10_000.0 / 0.040);
        round(200e3).at(&mut core, &mut bbr, 80 * MS);
        close(bbr.pacing_rate(), 2.89 * 10_000.0 / 0.040);
        round(400e3).at(&mut core, &mut bbr, 120 * MS);
        close(bbr.pacing_rate(), 2.89 * 400e3);
        assert_eq!(core.cwnd, 12_000, "by what is delivered, up to 2.89 x 16 + 3 segments");
    }

    /// Section 4.2.1: without a handshake the first pace takes 1 ms for the round trip, and the first round trip sets it anew.
    #[test]
    fn the_first_round_trip_sets_the_pace_anew() {
        let core = Core::new(&Config { flavour: Flavour::Bbr, mss: 1000, ..Config::default() });
        let mut bbr = Bbr::new(1);
        bbr.on_established(&core, 0, None);
        close(bbr.pacing_rate(), 2.89 * 10_000.0 / 0.001);
        let sample = Sample { rtt: Some(40 * MS), ..Sample::default() };
        bbr.update_min_rtt(40 * MS, &Delivered { sample, ..Delivered::default() });
        close(bbr.pacing_rate(), 2.89 * 10_000.0 / 0.040);
    }

    /// Section 4.3.2.2: three rounds with less than 25% more end Startup; application-limited rounds do not count.
    #[test]
    fn three_rounds_without_growth_fill_the_pipe() {
        let (mut core, mut bbr) = flow();
        send(&mut core, 40);
        for (n, rate, app_limited, filled) in [
            (1, 400e3, false, false),
            (2, 500e3, false, false),
            (3, 600e3, false, false),
            (4, 620e3, true, false),
            (5, 620e3, false, false),
            (6, 624e3, false, true),
        ] {
            Ack { app_limited, ..round(rate) }.at(&mut core, &mut bbr, n * 40 * MS);
            assert_eq!(bbr.filled, filled, "round {n}");
        }
        assert_eq!(bbr.mode, Mode::Drain);
        close(bbr.pacing_rate(), 624e3 / 2.89);
    }

    /// Section 4.3.3 and 4.2.3.2: Drain ends at one bandwidth-delay product and three segments in flight.
    #[test]
    fn drain_ends_at_one_bandwidth_delay_product() {
        let (core, bbr, _) = full();
        assert_eq!(bbr.mode, Mode::ProbeBw);
        assert_eq!(core.in_flight(), 43_000);
        assert_ne!(bbr.cycle, 1, "not in the phase that drains");
        let extra = if bbr.cycle == 0 { 2 } else { 0 };
        assert_eq!(bbr.inflight(&core, 2.0), 83_000 + extra * 1000);
    }

    /// Section 4.3.4: 1.25 until so much is in flight, 0.75 until the queue is gone, then 1, a minimum round trip each.
    #[test]
    fn probe_bw_goes_through_its_cycle() {
        let (mut core, mut bbr, mut now) = full();
        bbr.cycle = 7;
        bbr.advance_cycle(now);
        assert_eq!((bbr.cycle, bbr.pacing_gain), (0, 1.25));
        now += 41 * MS;
        Ack { prior: 0, ..round(1e6) }.at(&mut core, &mut bbr, now);
        assert_eq!(bbr.cycle, 0, "43 segments are fewer than 1.25 x 40 + 5");
        send(&mut core, 14);
        Ack { prior: 0, ..round(1e6) }.at(&mut core, &mut bbr, now);
        assert_eq!((bbr.cycle, bbr.pacing_gain), (1, 0.75));
        close(bbr.pacing_rate(), 0.75 * 1e6);
        for _ in 0..12 {
            Ack { prior: 0, ..round(1e6) }.at(&mut core, &mut bbr, now + MS);
        }
        assert_eq!(bbr.cycle, 1, "44 in flight before the last ACK");
        Ack { prior: 0, ..round(1e6) }.at(&mut core, &mut bbr, now + MS);
        assert_eq!((bbr.cycle, bbr.pacing_gain), (2, 1.0));
        Ack { prior: 0, ..round(1e6) }.at(&mut core, &mut bbr, now + 41 * MS);
        assert_eq!(bbr.cycle, 2, "exactly a minimum round trip is not more than one");
        Ack { prior: 0, ..round(1e6) }.at(&mut core, &mut bbr, now + 42 * MS);
        assert_eq!(bbr.cycle, 3);
    }

    /// Section 4.3.4.3: a loss ends the phase of 1.25, too.
    #[test]
    fn a_loss_ends_the_probe() {
        let (mut core, mut bbr, now) = full();
        bbr.cycle = 7;
        bbr.advance_cycle(now);
        core.una += 1000;
        bbr.check_cycle(&core, now + 41 * MS, &Delivered { lost: 1000, ..Delivered::default() });
        assert_eq!(bbr.cycle, 1);
    }

    /// Sections 4.1.2.3 and 4.3.5: 10 s without a round trip as short bring a window of four segments for 200 ms and a round.
    #[test]
    fn probe_rtt_drains_the_path() {
        let (mut core, mut bbr, now) = full();
        let before = core.cwnd;
        Ack { prior: 0, rtt_ms: 50, ..round(1e6) }.at(&mut core, &mut bbr, now + 9_000 * MS);
        assert_eq!((bbr.mode, bbr.min_rtt), (Mode::ProbeBw, Some(40 * MS)));
        let late = now + 10_001 * MS;
        Ack { prior: 0, rtt_ms: 50, ..round(1e6) }.at(&mut core, &mut bbr, late);
        assert_eq!((bbr.mode, bbr.min_rtt, core.cwnd), (Mode::ProbeRtt, Some(50 * MS), 4000));
        assert!(bbr.holds_back());
        // 41 segments are in flight: until 4 are left, time does not count
        while core.in_flight() > 4000 {
            assert_eq!(bbr.probe_rtt_done_at, None);
            Ack { prior: 0, rtt_ms: 45, ..round(1e6) }.at(&mut core, &mut bbr, late + MS);
        }
        assert_eq!(bbr.probe_rtt_done_at, Some(late + 201 * MS));
        send(&mut core, 10);
        Ack { prior: 0, rtt_ms: 42, ..round(1e6) }.at(&mut core, &mut bbr, late + 202 * MS);
        assert_eq!(bbr.mode, Mode::ProbeRtt, "no round is over");
        Ack { rtt_ms: 42, ..round(1e6) }.at(&mut core, &mut bbr, late + 203 * MS);
        assert_eq!((bbr.mode, bbr.min_rtt), (Mode::ProbeBw, Some(42 * MS)));
        assert!(core.cwnd >= before, "the window from before: {} of {before}", core.cwnd);
    }

    /// Section 4.2.3.4: on entry what is in flight and what was delivered; a round later the model's again; on exit at least the window from before.
    #[test]
    fn a_loss_holds_the_window_for_a_round() {
        let (mut core, mut bbr, now) = full();
        core.cwnd = 80_000;
        let una = core.una;
        for n in 1..=4 {
            core.board.sack(una + n * 1000, una + (n + 1) * 1000);
        }
        core.board.update_lost(1000);
        core.dup_acks = 3;
        bbr.enter_recovery(&mut core);
        assert!(core.in_recovery);
        let ack = |delivered, prior, lost| Delivered {
            sample: Sample { newly_delivered: delivered, delivered: una + 3000, prior_delivered: Some(prior), ..Sample::default() },
            lost,
            ..Delivered::default()
        };
        let flight = core.in_flight();
        // an ACK that begins a round, of segments that left before the loss was known
        let round = bbr.next_round_delivered;
        bbr.on_delivered(&mut core, now, &ack(1000, round, 1000));
        // in flight and delivered, less the segment that was lost, and not below what conservation of packets allows
        assert_eq!((core.cwnd, bbr.prior_cwnd), (flight + 1000, 80_000));
        bbr.on_delivered(&mut core, now, &ack(1000, round, 0));
        assert_eq!(core.cwnd, flight + 1000, "one round trip is not over");
        bbr.on_delivered(&mut core, now, &ack(1000, una + 3000, 0));
        assert_eq!(core.cwnd, flight + 2000, "a segment that left since");
        core.una = core.recover;
        core.board.advance(core.una);
        sack::on_new_ack(&mut core, |_| ());
        bbr.on_delivered(&mut core, now, &ack(1000, 0, 0));
        assert_eq!(core.cwnd, 81_000, "restored, and one segment delivered");
        assert_eq!(bbr.recovery, Recovery::None);
    }

    /// Section 4.2.3.4: after a timeout a window of a segment, which grows again; the one from before when all is acknowledged.
    #[test]
    fn a_timeout_is_recovered_from() {
        let (mut core, mut bbr, now) = full();
        core.cwnd = 80_000;
        assert_eq!(bbr.on_timeout(&core), core.ssthresh);
        core.cwnd = 1000;
        round(1e6).at(&mut core, &mut bbr, now + MS);
        assert_eq!((core.cwnd, bbr.prior_cwnd), (4000, 80_000), "the least window");
        core.una = core.max_sent - 1000;
        round(1e6).at(&mut core, &mut bbr, now + 2 * MS);
        assert!(core.cwnd >= 80_000, "{}", core.cwnd);
    }
}
