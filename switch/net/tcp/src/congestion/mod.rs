//! Congestion control: the state common to all flavours, and the choice of one. One flavour, one file.
//!
//! A flavour sees three events: an ACK of new data, a duplicate ACK, a timeout (an ECN echo is a fourth, the same for all
//! but the size of the reduction; DCTCP also counts which ACKs had one). It changes [`Core`]; the sender then sends what `Core` permits.
//! Paced flavours, Prague and BBR, see what each ACK delivered besides, and set a rate.

pub(crate) mod bbr;
pub(crate) mod cubic;
pub(crate) mod dctcp;
pub(crate) mod newreno;
pub(crate) mod prague;
pub(crate) mod reno;
pub(crate) mod sack;
pub(crate) mod sack1;
pub(crate) mod tahoe;

use crate::delivery::Sample;
use crate::rack::Rack;
use crate::scoreboard::Scoreboard;
use crate::{Config, Flavour, Nanos, ReductionBase, SackRecovery, SenderStats};
use bbr::Bbr;
use cubic::Cubic;
use dctcp::Dctcp;
use prague::Prague;

/// Duplicate ACKs that make a fast retransmit [RFC 5681 sec 3.2].
pub(crate) const DUP_THRESH: u32 = 3;

/// Per cent of the window that a mark leaves, with ABE (beta_ecn, [RFC 8511 sec 3.1]).
const BETA_ECN_PERCENT: u64 = 80;

/// Windows and stream positions of a sender. Positions are stream offsets: `una` is SND.UNA, `nxt` SND.NXT.
#[derive(Clone, Debug)]
pub(crate) struct Core {
    pub mss: u64,
    pub cwnd: u64,
    initial_window_segments: u64,
    /// Part of an octet that congestion avoidance has added to `cwnd`, in units of 1 / `cwnd`.
    cwnd_remainder: u64,
    pub ssthresh: u64,
    pub una: u64,
    pub nxt: u64,
    /// One past the highest octet ever sent; above `nxt` while old data are sent again after a timeout.
    pub max_sent: u64,
    /// The peer's window, and our own bound.
    pub window_limit: u64,
    pub max_window: u64,
    pub dup_acks: u32,
    /// In fast recovery (never, for Tahoe).
    pub in_recovery: bool,
    /// `max_sent` when the last recovery began (RFC 6582 `recover`, RFC 6675 RecoveryPoint), one past.
    pub recover: u64,
    /// An ECN echo has reduced the window for what was sent up to here ([RFC 3168 sec 6.1.2]: once per window of data, losses included).
    pub ecn_recover: u64,
    /// Whether the next segment of new data says that the window was reduced [RFC 3168 sec 6.1.2].
    pub cwr_due: bool,
    /// Octets that limited transmit sent since the last ACK of new data; no part of FlightSize [RFC 5681 sec 3.2 step 2].
    pub limited_sent: u64,
    pub board: Scoreboard,
    /// Of a sender that finds losses by time (RFC 8985).
    pub rack: Option<Box<Rack>>,
    /// A timeout's recovery: not all is acknowledged that was sent before it. RACK alone asks.
    pub after_timeout: bool,
    /// Octets in the network, as Sack1 counts them in recovery; RFC 6675 takes them from the scoreboard.
    pub pipe: u64,
    /// Set by a flavour: send the segment at `una` again now.
    pub retransmit_first: bool,
    /// Set by a flavour in an ACK of new data: leave the retransmission timer as it is.
    pub keep_timer: bool,
    /// Whether the window was what stopped the last transmission: only then may it grow [RFC 9438 sec 5.8]. [RFC 7661 sec 4.3] asks for less:
    /// it lets a window grow that is half in use.
    pub cwnd_limited: bool,
    pub reduction_base: ReductionBase,
    pub byte_counting: bool,
    pub abe: bool,
    /// Whether the flavour takes SACK blocks.
    pub sack: bool,
    pub avoid_multiple_fast_retransmits: bool,
    pub stats: SenderStats,
}

impl Core {
    pub fn new(config: &Config) -> Self {
        let mut core = Core {
            mss: u64::from(config.mss),
            cwnd: 0,
            initial_window_segments: u64::from(config.initial_window_segments),
            cwnd_remainder: 0,
            ssthresh: config.initial_ssthresh.unwrap_or(config.max_window).min(config.max_window),
            una: 0,
            nxt: 0,
            max_sent: 0,
            window_limit: config.max_window,
            max_window: config.max_window,
            dup_acks: 0,
            in_recovery: false,
            recover: 0,
            ecn_recover: 0,
            cwr_due: false,
            limited_sent: 0,
            board: Scoreboard::new(),
            rack: config.uses_rack().then(|| Box::new(Rack::new())),
            after_timeout: false,
            pipe: 0,
            retransmit_first: false,
            keep_timer: false,
            cwnd_limited: false,
            reduction_base: config.reduction_base,
            byte_counting: config.byte_counting,
            abe: config.abe,
            sack: config.flavour.uses_sack(),
            avoid_multiple_fast_retransmits: config.avoid_multiple_fast_retransmits || config.flavour.uses_sack(),
            stats: SenderStats::default(),
        };
        core.cwnd = core.initial_window();
        core
    }

    /// IW of RFC 5681 and RFC 6928, in segments of the connection's own size.
    pub fn initial_window(&self) -> u64 {
        (self.mss * self.initial_window_segments).min(self.max_window)
    }

    /// Sent and not acknowledged [RFC 5681 sec 2].
    pub fn flight_size(&self) -> u64 {
        self.max_sent - self.una
    }

    /// Octets in the network: sent, neither arrived nor lost, and retransmissions ([RFC 6675 sec 4]; after a timeout all counts as lost
    /// that is not sent again).
    pub fn in_flight(&self) -> u64 {
        if let Some(rack) = &self.rack {
            rack.in_flight()
        } else if self.nxt < self.max_sent {
            (self.nxt - self.una).saturating_sub(self.board.sacked_below(self.nxt))
        } else {
            self.board.pipe(self.una, self.max_sent)
        }
    }

    /// What a reduction takes its fraction of.
    pub fn reduction_base(&self) -> u64 {
        let base = match self.reduction_base {
            ReductionBase::FlightSize => self.flight_size().saturating_sub(self.limited_sent),
            ReductionBase::Window | ReductionBase::WindowSegments => self.cwnd.min(self.window_limit),
        };
        // In recovery duplicate ACKs inflate both; what they add is no part of the window. RFC 5681 allows less than equation (4).
        if self.in_recovery {
            base.min(self.ssthresh)
        } else if self.after_timeout || self.sack && self.nxt == self.max_sent {
            // After a timeout that RACK follows, slow start has not brought the window back. With SACK, what the receiver holds above a hole still
            // counts as outstanding: after a recovery of several round trips that is more than the window, and losses in two successive
            // windows lower it twice [RFC 5681 sec 4.3].
            base.min(self.cwnd)
        } else {
            base
        }
    }

    /// In fast recovery, or in one after a timeout that RACK follows.
    pub fn is_recovering(&self) -> bool {
        self.in_recovery || self.after_timeout
    }

    /// Whether what is acknowledged next belongs to a window for which an ECN echo has made the reduction.
    pub fn is_reduced(&self) -> bool {
        self.una < self.ecn_recover
    }

    /// The threshold after a loss, max(FlightSize / 2, 2 * SMSS) [RFC 5681 eq 4]; the present one where a mark has reduced the window that
    /// the loss is in, also by less than half [RFC 8257 sec 3.5].
    pub fn half(&self) -> u64 {
        if self.is_reduced() {
            return self.ssthresh;
        }
        self.halved().max(2 * self.mss)
    }

    /// Whether a mark reduces by less than a loss: with ABE, and in congestion avoidance [RFC 8511 sec 4].
    pub fn backs_off_less(&self) -> bool {
        self.abe && self.cwnd > self.ssthresh
    }

    /// The same without its lower bound.
    pub fn halved(&self) -> u64 {
        let half = self.reduction_base() / 2;
        let fraction = if self.reduction_base == ReductionBase::WindowSegments { half % self.mss } else { 0 };
        half - fraction
    }

    /// Slow start and congestion avoidance [RFC 5681 sec 3.1, eq 2, 3]. An ACK of several segments counts as so many,
    /// where octets are counted; never more than a segment in a round trip. Congestion avoidance keeps the remainder of its division
    /// for the next ACK, so that W ACKs of a window of W segments add one segment for every W and every MSS.
    pub fn grow(&mut self, acked: u64) {
        if !self.cwnd_limited {
            return;
        }
        let step = if self.cwnd < self.ssthresh {
            acked.min(self.mss)
        } else {
            let counted = if self.byte_counting { acked.min(self.cwnd) } else { self.mss };
            // less than an octet is left, also where a reduction has made the window smaller since
            let earned = self.mss * counted + self.cwnd_remainder.min(self.cwnd - 1);
            self.cwnd_remainder = earned % self.cwnd;
            earned / self.cwnd
        };
        self.cwnd = (self.cwnd + step).min(self.max_window);
    }

    /// Whether a third duplicate ACK may start a fast retransmit: not for duplicates of what a timeout or an earlier fast
    /// retransmit sent again [RFC 6582 sec 3.2 step 2].
    pub fn may_fast_retransmit(&self) -> bool {
        !self.in_recovery && (self.una > self.recover || !self.avoid_multiple_fast_retransmits)
    }

    /// The same with SACK blocks, which show that a duplicate ACK reports new data: from the recovery point on [RFC 6675 sec 5.1].
    pub fn may_sack_recover(&self) -> bool {
        !self.in_recovery && self.una >= self.recover
    }

    /// Marks the start of a reduction: all that is sent up to now belongs to it.
    pub fn begin_recovery(&mut self) {
        self.recover = self.max_sent;
        self.cwr_due = true;
        self.stats.fast_retransmits += 1;
    }
}

/// What an ACK says to a paced flavour.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delivered {
    pub sample: Sample,
    /// Segments that the receiver found marked since the ACK before.
    pub marks: u64,
    /// Octets that count as lost since the ACK before.
    pub lost: u64,
    /// [`Core::in_flight`] before the ACK.
    pub prior_in_flight: u64,
}

/// The flavour of a sender, with what it remembers.
#[derive(Clone, Debug)]
pub(crate) enum Control {
    Tahoe,
    Reno,
    NewReno(newreno::State),
    Sack,
    Sack1,
    Cubic(Cubic),
    Dctcp(Dctcp),
    Prague(Prague),
    Bbr(Box<Bbr>),
}

impl Control {
    /// `seed`: of what a flavour draws at random.
    pub fn new(config: &Config, seed: u32) -> Self {
        match config.flavour {
            Flavour::Tahoe => Control::Tahoe,
            Flavour::Reno => Control::Reno,
            Flavour::NewReno => Control::NewReno(newreno::State::default()),
            Flavour::Sack => match config.sack_recovery {
                SackRecovery::Rfc6675 => Control::Sack,
                SackRecovery::Sack1 => Control::Sack1,
            },
            Flavour::Cubic => Control::Cubic(Cubic::new(config.reno_friendliness)),
            Flavour::Dctcp => Control::Dctcp(Dctcp::new()),
            Flavour::Prague => Control::Prague(Prague::new()),
            Flavour::Bbr => Control::Bbr(Box::new(Bbr::new(seed))),
        }
    }

    /// `una` has moved by `acked` octets. `srtt` is the smoothed round trip, where there is one.
    pub fn on_new_ack(&mut self, core: &mut Core, now: Nanos, acked: u64, srtt: Option<Nanos>) {
        match self {
            Control::Tahoe => tahoe::on_new_ack(core, acked),
            Control::Reno => reno::on_new_ack(core, acked),
            Control::NewReno(state) => newreno::on_new_ack(state, core, acked),
            Control::Sack | Control::Dctcp(_) => sack::on_new_ack(core, |core| core.grow(acked)),
            Control::Sack1 => sack1::on_new_ack(core, acked),
            Control::Cubic(cubic) => sack::on_new_ack(core, |core| cubic.grow(core, now, acked, srtt)),
            // Their windows grow by what is delivered.
            Control::Prague(_) | Control::Bbr(_) => sack::on_new_ack(core, |_| ()),
        }
    }

    /// A duplicate ACK came: for SACK one that reports new data, for the others one as [RFC 5681 sec 2] defines it.
    /// `core.dup_acks` counts it already.
    pub fn on_dup_ack(&mut self, core: &mut Core) {
        match self {
            Control::Tahoe => tahoe::on_dup_ack(core),
            Control::Reno => reno::on_dup_ack(core),
            Control::NewReno(state) => newreno::on_dup_ack(state, core),
            Control::Sack1 => sack1::on_dup_ack(core),
            _ if sack::begins_recovery(core) => self.enter_recovery(core),
            _ => {}
        }
    }

    /// Fast recovery begins, or another loss is answered in it, where selective acknowledgements have shown the loss.
    pub fn enter_recovery(&mut self, core: &mut Core) {
        match self {
            Control::Cubic(cubic) => sack::enter_recovery(core, |core| cubic.reduce(core)),
            Control::Prague(prague) => sack::enter_recovery(core, |core| prague.half(core)),
            Control::Bbr(bbr) => bbr.enter_recovery(core),
            _ => sack::enter_recovery(core, |core| core.half()),
        }
    }

    /// The slow start threshold after a timeout.
    pub fn ssthresh_after_timeout(&mut self, core: &Core) -> u64 {
        match self {
            Control::Cubic(cubic) => cubic.on_timeout(core),
            Control::Prague(prague) => prague.half(core),
            Control::Bbr(bbr) => bbr.on_timeout(core),
            _ => core.half(),
        }
    }

    /// The window after an ECN echo, before its lower bound.
    pub fn window_after_echo(&mut self, core: &Core) -> u64 {
        match self {
            Control::Cubic(cubic) => cubic.reduced(core, if core.backs_off_less() { cubic::BETA_ECN } else { cubic::BETA }),
            Control::Dctcp(dctcp) => dctcp.reduced(core),
            _ if core.backs_off_less() => core.reduction_base() * BETA_ECN_PERCENT / 100,
            _ => core.halved(),
        }
    }

    /// An ACK came, before anything is done for it: up to the stream offset `ack`, of `acked` new octets; `echo` is its ECE.
    pub fn observe(&mut self, core: &Core, ack: u64, acked: u64, echo: bool) {
        if let Control::Dctcp(dctcp) = self {
            dctcp.on_ack(core, ack, acked, echo);
        }
    }

    /// The connection is established; `rtt`: of the handshake, where it was measured.
    pub fn on_established(&mut self, core: &Core, now: Nanos, rtt: Option<Nanos>) {
        match self {
            Control::Prague(prague) => prague.on_established(rtt),
            Control::Bbr(bbr) => bbr.on_established(core, now, rtt),
            _ => {}
        }
    }

    /// What an ACK delivered, after all else is done for it.
    #[inline]
    pub fn on_delivered(&mut self, core: &mut Core, now: Nanos, delivered: &Delivered) {
        match self {
            Control::Prague(prague) => prague.on_delivered(core, now, delivered),
            Control::Bbr(bbr) => bbr.on_delivered(core, now, delivered),
            _ => {}
        }
    }

    /// A segment leaves after a time in which the application had nothing to send.
    pub fn on_restart_from_idle(&mut self) {
        if let Control::Bbr(bbr) = self {
            bbr.on_restart_from_idle();
        }
    }

    /// Whether a window as it was before is too much after a long time without data [RFC 5681 sec 4.1]. BBR sends at its rate then.
    pub fn restarts_after_idle(&self) -> bool {
        !matches!(self, Control::Bbr(_))
    }

    /// Whether the flavour itself sends less than it could, so that delivery rates say nothing of the path.
    pub fn holds_back(&self) -> bool {
        matches!(self, Control::Bbr(bbr) if bbr.holds_back())
    }

    /// Octets a second at which segments leave; `None`: as the window lets them.
    pub fn pacing_rate(&self, core: &Core) -> Option<f64> {
        match self {
            Control::Prague(prague) => prague.pacing_rate(core),
            Control::Bbr(bbr) => Some(bbr.pacing_rate()),
            _ => None,
        }
    }
}
