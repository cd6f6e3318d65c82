//! What can be set on a connection, with the standards' defaults.

use crate::segment::{Ecn, SynOptions};
use crate::Nanos;

/// The congestion control of a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Flavour {
    /// Slow start, congestion avoidance, fast retransmit; no fast recovery (Jacobson 1988).
    Tahoe,
    /// RFC 5681.
    Reno,
    /// RFC 6582.
    NewReno,
    /// RFC 2018 and RFC 6675.
    Sack,
    /// RFC 9438 with SACK loss recovery.
    Cubic,
    /// RFC 8257 with SACK loss recovery. It always uses ECN.
    Dctcp,
    /// draft-briscoe-iccrg-prague-congestion-control-04 with SACK loss recovery. It always uses ECN, as ECT(1), with feedback by RFC 9768.
    Prague,
    /// BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00) with SACK loss recovery. It never uses ECN.
    Bbr,
}

impl Flavour {
    pub const ALL: [Flavour; 8] =
        [Flavour::Tahoe, Flavour::Reno, Flavour::NewReno, Flavour::Sack, Flavour::Cubic, Flavour::Dctcp, Flavour::Prague, Flavour::Bbr];

    /// Its name in experiment files.
    pub fn name(self) -> &'static str {
        match self {
            Flavour::Tahoe => "tahoe",
            Flavour::Reno => "reno",
            Flavour::NewReno => "newreno",
            Flavour::Sack => "sack",
            Flavour::Cubic => "cubic",
            Flavour::Dctcp => "dctcp",
            Flavour::Prague => "prague",
            Flavour::Bbr => "bbr",
        }
    }

    /// Whether its receiver sends SACK blocks.
    pub fn uses_sack(self) -> bool {
        matches!(self, Flavour::Sack | Flavour::Cubic | Flavour::Dctcp | Flavour::Prague | Flavour::Bbr)
    }

    /// Whether its sender spaces segments in time, by a rate.
    pub fn is_paced(self) -> bool {
        matches!(self, Flavour::Prague | Flavour::Bbr)
    }
}

impl std::str::FromStr for Flavour {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        Flavour::ALL.into_iter().find(|f| f.name() == text.to_ascii_lowercase()).ok_or_else(|| ConfigError {
            key: "flavour",
            given: text.to_string(),
            hint: "one of tahoe, reno, newreno, sack, cubic, dctcp, prague, bbr",
        })
    }
}

/// What a reduction takes its fraction of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ReductionBase {
    /// Data in flight, less what limited transmit added [RFC 5681 eq 4].
    FlightSize,
    /// The congestion window, or the peer's where that is smaller (ns-2, Linux).
    Window,
    /// The same, and half of it is rounded down to whole segments (4.4BSD; ns-2's slow start threshold, from which its Tahoe and NewReno
    /// take their window).
    WindowSegments,
}

impl std::str::FromStr for ReductionBase {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        match text {
            "flight-size" => Ok(ReductionBase::FlightSize),
            "window" => Ok(ReductionBase::Window),
            "window-segments" => Ok(ReductionBase::WindowSegments),
            _ => Err(ConfigError { key: "reduction_base", given: text.to_string(), hint: "flight-size, window or window-segments" }),
        }
    }
}

/// How CUBIC keeps up with Reno where Reno would be faster.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum RenoFriendliness {
    /// [RFC 9438 sec 4.3]: alpha = 9/17, and 1 from the window of the last reduction on; by segments acknowledged.
    Rfc9438,
    /// Linux 2.6 and ns-2.35, to compare with them: alpha = 8/23 always, by ACKs, in whole segments.
    Linux26,
}

impl std::str::FromStr for RenoFriendliness {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        match text {
            "rfc9438" => Ok(RenoFriendliness::Rfc9438),
            "linux26" => Ok(RenoFriendliness::Linux26),
            _ => Err(ConfigError { key: "reno_friendliness", given: text.to_string(), hint: "rfc9438 or linux26" }),
        }
    }
}

/// How a sender with selective acknowledgements recovers from losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum SackRecovery {
    /// RFC 6675.
    Rfc6675,
    /// Fall and Floyd 1996, and ns-2's `Agent/TCP/Sack1`.
    Sack1,
}

impl std::str::FromStr for SackRecovery {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        match text {
            "rfc6675" => Ok(SackRecovery::Rfc6675),
            "sack1" => Ok(SackRecovery::Sack1),
            _ => Err(ConfigError { key: "sack_recovery", given: text.to_string(), hint: "rfc6675 or sack1" }),
        }
    }
}

/// How a sender with selective acknowledgements finds losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum LossDetection {
    /// By counting duplicate ACKs and SACKed octets [RFC 6675 sec 4]; what no ACK shows waits for the retransmission timer.
    DupAck,
    /// By time: RACK-TLP (RFC 8985). The receiver reports duplicates (RFC 2883).
    Rack,
}

impl std::str::FromStr for LossDetection {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        match text {
            "dupack" => Ok(LossDetection::DupAck),
            "rack" => Ok(LossDetection::Rack),
            _ => Err(ConfigError { key: "loss_detection", given: text.to_string(), hint: "dupack or rack" }),
        }
    }
}

/// The arithmetic of the round-trip time estimate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum RttEstimator {
    /// RFC 6298, in nanoseconds.
    Rfc6298,
    /// The same, but `min_rto` bounds the part of the variance, as Linux has it: RTO = SRTT + max(min_rto, 4 RTTVAR).
    Linux,
    /// Jacobson 1988, appendix A, in whole ticks of the clock, as 4.4BSD and ns-2 have it.
    Ticks,
}

impl std::str::FromStr for RttEstimator {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        match text {
            "rfc6298" => Ok(RttEstimator::Rfc6298),
            "linux" => Ok(RttEstimator::Linux),
            "ticks" => Ok(RttEstimator::Ticks),
            _ => Err(ConfigError { key: "rtt_estimator", given: text.to_string(), hint: "rfc6298, linux or ticks" }),
        }
    }
}

/// A setting that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("TCP `{key}` = {given} is not possible: {hint}")]
pub struct ConfigError {
    pub key: &'static str,
    pub given: String,
    pub hint: &'static str,
}

/// Settings of one connection, given to both ends. Sizes are in bytes, times in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub flavour: Flavour,
    /// Largest payload of a segment, 1..=65495.
    pub mss: u32,
    /// Initial window in segments (RFC 6928: 10, RFC 3390: 2 to 4).
    pub initial_window_segments: u32,
    /// Slow start threshold at the start; `None`: as high as the window may be [RFC 5681 sec 3.1].
    pub initial_ssthresh: Option<u64>,
    /// Upper bound of both the congestion window and the advertised window, up to 2^30 (RFC 7323). In whole segments of
    /// ns-2's `window_`, this is `window_ * mss`.
    pub max_window: u64,
    /// RTO before the first measurement ([RFC 6298 sec 2 step 2.1]: 1 s).
    pub initial_rto: Nanos,
    /// Lower bound of the RTO: 1 s in [RFC 6298 sec 2 step 2.4]; 200 ms in Linux and ns-2.
    pub min_rto: Nanos,
    /// Upper bound of the RTO, at least `min_rto` ([RFC 6298 sec 2 step 2.5]: 60 s or more).
    pub max_rto: Nanos,
    /// Tick of the clock that measures round trips (RFC 6298's G; ns-2's `tcpTick_`).
    pub timer_granularity: Nanos,
    /// Whether the receiver delays acknowledgements [RFC 5681 sec 4.2]: every second segment, or after `delayed_ack_timeout`.
    pub delayed_ack: bool,
    /// At most 500 ms [RFC 5681 sec 4.2]; ns-2's `interval_` is 100 ms, Linux's minimum 40 ms.
    pub delayed_ack_timeout: Nanos,
    /// RFC 3042: a new segment for each of the first two duplicate ACKs.
    pub limited_transmit: bool,
    /// RFC 7323 timestamps, and a round-trip sample from each ACK of new data.
    pub timestamps: bool,
    /// RFC 3168. DCTCP and Prague have ECN without it, and BBR has none with it: version 1 says nothing of marks.
    pub ecn: bool,
    /// Whether a connection opens with SYN, SYN-ACK; otherwise both ends start established.
    pub handshake: bool,
    pub reduction_base: ReductionBase,
    /// Whether congestion avoidance counts the octets that an ACK covers, as [RFC 5681 sec 3.1] recommends and Linux does, or adds
    /// the same for every ACK (its equation 3, ns-2, [RFC 8312 sec 4.3]), which delayed ACKs halve.
    pub byte_counting: bool,
    /// Of CUBIC.
    pub reno_friendliness: RenoFriendliness,
    /// Of SACK; all others with selective acknowledgements recover by RFC 6675.
    pub sack_recovery: SackRecovery,
    /// Of flavours with selective acknowledgements; RACK-TLP has its own recovery in place of RFC 6675's and Sack1's.
    pub loss_detection: LossDetection,
    /// Whether a mark reduces the window by less than a loss does, in congestion avoidance: to 0.8 of it, of CUBIC to 0.85 (RFC 8511, ABE).
    /// DCTCP and Prague have their own answer to marks, and BBR none.
    pub abe: bool,
    pub rtt_estimator: RttEstimator,
    /// Whether duplicate ACKs of data that were sent before the last reduction begin no fast retransmit ([RFC 6582 sec 3.2 step 2], ns-2's
    /// `bugFix_`). 4.4BSD has no such rule. Flavours with selective acknowledgements always keep it [RFC 6675 sec 5.1].
    pub avoid_multiple_fast_retransmits: bool,
    /// Whether a second timeout of the same segment leaves the slow start threshold alone [RFC 5681 sec 3.1]; otherwise it falls to two
    /// segments, as in 4.4BSD and ns-2.
    pub hold_ssthresh: bool,
}

impl Default for Config {
    /// SACK with the standards' values, and Linux's minimum RTO and delayed ACK timer.
    fn default() -> Self {
        Config {
            flavour: Flavour::Sack,
            mss: 1460,
            initial_window_segments: 10,
            initial_ssthresh: None,
            max_window: 4 << 20,
            initial_rto: 1_000_000_000,
            min_rto: 200_000_000,
            max_rto: 60_000_000_000,
            timer_granularity: 1_000_000,
            delayed_ack: true,
            delayed_ack_timeout: 40_000_000,
            limited_transmit: true,
            timestamps: false,
            ecn: false,
            handshake: true,
            reduction_base: ReductionBase::FlightSize,
            byte_counting: true,
            reno_friendliness: RenoFriendliness::Rfc9438,
            sack_recovery: SackRecovery::Rfc6675,
            loss_detection: LossDetection::DupAck,
            abe: false,
            rtt_estimator: RttEstimator::Rfc6298,
            avoid_multiple_fast_retransmits: true,
            hold_ssthresh: true,
        }
    }
}

impl Config {
    /// # Errors
    /// The first setting that cannot be, with its key and the way out.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let error = |key, given: u64, hint| Err(ConfigError { key, given: given.to_string(), hint });
        // 65535 less the IPv4 header and a TCP header without options
        if self.mss == 0 || self.mss > 65_495 {
            return error("mss", self.mss.into(), "give 1 to 65495 bytes");
        }
        if self.initial_window_segments == 0 {
            return error("initial_window_segments", 0, "give at least 1");
        }
        if self.max_window < u64::from(self.mss) || self.max_window > 1 << 30 {
            return error("max_window", self.max_window, "give at least one mss and at most 2^30 bytes (RFC 7323)");
        }
        if self.initial_ssthresh.is_some_and(|s| s < 2 * u64::from(self.mss)) {
            return error("initial_ssthresh", self.initial_ssthresh.unwrap_or(0), "give at least two mss (RFC 5681)");
        }
        if self.initial_rto == 0 {
            return error("initial_rto", 0, "give more than 0 ns; RFC 6298 says 1 s");
        }
        if self.min_rto == 0 {
            return error("min_rto", 0, "give more than 0 ns; RFC 6298 says 1 s, Linux has 200 ms");
        }
        if self.max_rto < self.min_rto || self.max_rto < self.initial_rto {
            return error("max_rto", self.max_rto, "give at least min_rto and initial_rto");
        }
        if self.timer_granularity == 0 {
            return error("timer_granularity", 0, "give at least 1 ns");
        }
        if self.delayed_ack && (self.delayed_ack_timeout == 0 || self.delayed_ack_timeout > 500_000_000) {
            return error("delayed_ack_timeout", self.delayed_ack_timeout, "give 1 ns to 500 ms [RFC 5681 sec 4.2]");
        }
        if self.uses_rack() && (!self.flavour.uses_sack() || self.flavour == Flavour::Sack && self.sack_recovery == SackRecovery::Sack1) {
            let hint = "give dupack: RACK needs selective acknowledgements (sack, cubic, dctcp, prague, bbr) without sack_recovery = sack1";
            return Err(ConfigError { key: "loss_detection", given: "rack".to_string(), hint });
        }
        Ok(())
    }

    /// Whether losses are found by time (RFC 8985).
    pub fn uses_rack(&self) -> bool {
        self.loss_detection == LossDetection::Rack
    }

    /// What packets of new data say of ECN.
    pub fn ecn_codepoint(&self) -> Ecn {
        match self.flavour {
            Flavour::Dctcp => Ecn::Ect0,
            Flavour::Prague => Ecn::Ect1,
            Flavour::Bbr => Ecn::NotEct,
            _ if self.ecn => Ecn::Ect0,
            _ => Ecn::NotEct,
        }
    }

    /// What a SYN and a SYN-ACK say of ECN: nothing [RFC 3168 sec 6.1.1], except in DCTCP, where a switch full of ECN-capable packets would
    /// drop them [RFC 8257 sec 3.6].
    pub fn handshake_codepoint(&self) -> Ecn {
        if self.flavour == Flavour::Dctcp {
            Ecn::Ect0
        } else {
            Ecn::NotEct
        }
    }

    /// Whether packets say that they are ECN-capable.
    pub fn uses_ecn(&self) -> bool {
        self.ecn_codepoint() != Ecn::NotEct
    }

    /// Whether the receiver counts marks (RFC 9768), instead of echoing that there was one.
    pub fn counts_marks(&self) -> bool {
        self.flavour == Flavour::Prague
    }

    /// The options of a SYN or SYN-ACK.
    pub fn syn_options(&self) -> SynOptions {
        SynOptions { mss: Some(self.mss as u16), window_scale: Some(self.window_scale()), sack_permitted: self.flavour.uses_sack() }
    }

    /// The window scale shift that lets `max_window` be advertised [RFC 7323 sec 2.3].
    pub fn window_scale(&self) -> u8 {
        (0..14).find(|&shift| self.max_window >> shift <= 0xffff).unwrap_or(14)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_settings_are_named() {
        let ok = Config::default();
        assert_eq!(ok.validate(), Ok(()));
        let bad = [
            (Config { mss: 0, ..ok.clone() }, "mss"),
            (Config { mss: 65_496, ..ok.clone() }, "mss"),
            (Config { initial_window_segments: 0, ..ok.clone() }, "initial_window_segments"),
            (Config { max_window: 1459, ..ok.clone() }, "max_window"),
            (Config { max_window: (1 << 30) + 1, ..ok.clone() }, "max_window"),
            (Config { initial_ssthresh: Some(100), ..ok.clone() }, "initial_ssthresh"),
            (Config { initial_rto: 0, ..ok.clone() }, "initial_rto"),
            (Config { min_rto: 0, ..ok.clone() }, "min_rto"),
            (Config { max_rto: 1, ..ok.clone() }, "max_rto"),
            (Config { timer_granularity: 0, ..ok.clone() }, "timer_granularity"),
            (Config { delayed_ack_timeout: 500_000_001, ..ok.clone() }, "delayed_ack_timeout"),
            (Config { loss_detection: LossDetection::Rack, flavour: Flavour::NewReno, ..ok.clone() }, "loss_detection"),
            (Config { loss_detection: LossDetection::Rack, sack_recovery: SackRecovery::Sack1, ..ok.clone() }, "loss_detection"),
        ];
        for (config, key) in bad {
            assert_eq!(config.validate().map_err(|e| e.key), Err(key));
        }
    }

    #[test]
    fn flavours_are_read_by_name() {
        for flavour in Flavour::ALL {
            assert_eq!(flavour.name().parse(), Ok(flavour));
        }
        assert_eq!(
            "vegas".parse::<Flavour>().unwrap_err().to_string(),
            "TCP `flavour` = vegas is not possible: one of tahoe, reno, newreno, sack, cubic, dctcp, prague, bbr"
        );
    }

    #[test]
    fn window_scale_fits() {
        for (window, shift) in [(65_535, 0), (65_536, 1), (4 << 20, 7), (1 << 30, 14)] {
            let config = Config { max_window: window, ..Config::default() };
            assert_eq!(config.window_scale(), shift, "{window}");
        }
    }
}
