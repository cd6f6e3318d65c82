//! RTP circuit breakers [RFC 8083]: from the reports that it gets, when a sender that does harm must cease.
//!
//! Times are seconds, as in the RFC. Tr, Td and Tdr are its names: round trip, the sender's own interval between reports, and the
//! receiver's. G, the frames for which a rate holds, is 1: what is above a flow here changes its rate with each frame.

use std::collections::VecDeque;

use crate::wire::rtcp::ReportBlock;
use crate::{seconds, Nanos};

/// k: reports without new data until the path is taken to be broken [RFC 8083 sec 4.2].
const NON_REPORTING_THRESHOLD: f64 = 5.0;
/// An order of magnitude above TCP is too much [RFC 8083 sec 4.3].
const TOLERANCE: f64 = 10.0;
/// Part of a new round-trip time in Tr [RFC 8083 sec 3].
const RTT_GAIN: f64 = 0.2;
/// Tr in X until a report has told it: TCP's first timeout, a second [RFC 6298 sec 2 step 2.1], by t_RTO = 4 Tr [RFC 8083 sec 3]. Where most
/// packets are lost, so are the SRs that a round trip needs.
const UNKNOWN_RTT_S: f64 = 0.25;
/// Frames over which packets are averaged: 4 G [RFC 8083 sec 3].
const SIZE_FRAMES: usize = 4;
/// Time over which Tf is the longest interval between frames [RFC 8083 sec 3].
const FRAME_WINDOW_S: f64 = 10.0;
/// Intervals that are kept: more than any CB_INTERVAL with Td below 100 s.
const MAX_INTERVALS: usize = 64;

/// What a flow wants of its circuit breakers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CircuitBreaker {
    /// Send a tenth before ceasing, where congestion trips [RFC 8083 sec 4.3].
    pub reduces: bool,
    /// Loss fraction above which the media is unusable [RFC 8083 sec 4.4]; `None`: there is no bound.
    pub usable_loss: Option<f64>,
    /// Round-trip time above which it is; `None`: there is no bound.
    pub usable_rtt_s: Option<f64>,
    /// How long it must have been unusable.
    pub unusable_s: f64,
}

/// Which circuit breaker [RFC 8083 sec 4.1] to [RFC 8083 sec 4.4].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    RtcpTimeout,
    MediaTimeout,
    Congestion,
    Usability,
}

impl Cause {
    pub fn name(self) -> &'static str {
        match self {
            Cause::RtcpTimeout => "rtcp timeout",
            Cause::MediaTimeout => "media timeout",
            Cause::Congestion => "congestion",
            Cause::Usability => "media usability",
        }
    }
}

/// A circuit breaker has tripped. What it was computed from, where it is known; rates are of RTP packets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trip {
    pub cause: Cause,
    /// Send a tenth instead of ceasing.
    pub reduce: bool,
    pub rate_bps: Option<f64>,
    /// X: what TCP would reach.
    pub tcp_rate_bps: Option<f64>,
    pub loss: Option<f64>,
    pub rtt_s: Option<f64>,
}

/// What a sender knows of its session when a report comes [RFC 8083 sec 3].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Session {
    /// Td, with the minimum of 5 s.
    pub td_s: f64,
    /// Tdr, as well.
    pub tdr_s: f64,
}

/// The four breakers of one stream.
#[derive(Debug)]
pub struct CircuitBreakers {
    settings: CircuitBreaker,
    sending: Sending,
    /// Tr
    rtt_s: Option<f64>,
    /// First data since the last report on them.
    unreported_s: Option<f64>,
    /// Whether data were sent since the receiver's last report of any kind.
    sent_since_report: bool,
    highest: Option<u32>,
    /// Reports in a row that say that no data came.
    not_received: u32,
    /// MEDIA_TIMEOUT; `None`: not set since data were last received.
    media_timeout: Option<u32>,
    last_block_s: Option<f64>,
    /// Fraction lost and duration of reporting intervals, the newest last.
    intervals: VecDeque<(f64, f64)>,
    /// CB_INTERVAL
    congestion_intervals: usize,
    reduced: bool,
    unusable_since_s: Option<f64>,
}

impl CircuitBreakers {
    pub fn new(settings: CircuitBreaker, session: Session) -> CircuitBreakers {
        let mut breakers = CircuitBreakers {
            settings,
            sending: Sending::default(),
            rtt_s: None,
            unreported_s: None,
            sent_since_report: false,
            highest: None,
            not_received: 0,
            media_timeout: None,
            last_block_s: None,
            intervals: VecDeque::new(),
            congestion_intervals: 0,
            reduced: false,
            unusable_since_s: None,
        };
        breakers.congestion_intervals = breakers.cb_interval(session);
        breakers
    }

    /// A data packet left: of the frame of such an instant, so many bytes of RTP.
    pub fn sent(&mut self, now_s: f64, produced: Nanos, bytes: u64) {
        self.sending.sent(now_s, seconds(produced), bytes);
        self.unreported_s.get_or_insert(now_s);
        self.sent_since_report = true;
    }

    /// Before a data packet leaves: whether there was no report on data for three Td [RFC 8083 sec 4.1]. The time begins with the first data
    /// after the last report, since nothing is reported of a sender that is silent.
    pub fn rtcp_timeout(&self, now_s: f64, session: Session) -> Option<Trip> {
        self.unreported_s.filter(|since| now_s - since >= 3.0 * session.td_s).map(|_| self.trip(Cause::RtcpTimeout))
    }

    /// The receiver sent an SR or RR, with or without a block about this stream, and with a round-trip time where it has one.
    pub fn reported(&mut self, now_s: f64, block: Option<&ReportBlock>, rtt_s: Option<f64>, session: Session) -> Option<Trip> {
        if let Some(new) = rtt_s {
            self.rtt_s = Some(self.rtt_s.map_or(new, |old| (1.0 - RTT_GAIN) * old + RTT_GAIN * new));
        }
        if block.is_some() {
            self.unreported_s = None;
        }
        let trips = [self.media_timeout(block, session), self.congestion(now_s, block, session), self.usability(now_s, block)];
        self.congestion_intervals = self.cb_interval(session);
        self.sent_since_report = false;
        let trip = trips.into_iter().flatten().next()?;
        if trip.reduce {
            self.reduced = true;
            self.intervals.clear();
        }
        Some(trip)
    }

    /// Tf: without frames yet it adds nothing.
    fn frame_interval_s(&self) -> f64 {
        self.sending.longest_gap_s()
    }

    /// ceil(3 * min(max(10 * G * Tf, 10 * Tr, 3 * Tdr), max(15, 3 * Td)) / (3 * Tdr)) [RFC 8083 sec 4.3]
    fn cb_interval(&self, Session { td_s, tdr_s }: Session) -> usize {
        let reacts_s = (10.0 * self.frame_interval_s()).max(10.0 * self.rtt_s.unwrap_or(0.0)).max(3.0 * tdr_s);
        let most_s = f64::max(15.0, 3.0 * td_s);
        (3.0 * reacts_s.min(most_s) / (3.0 * tdr_s)).ceil() as usize
    }

    fn media_timeout(&mut self, block: Option<&ReportBlock>, Session { tdr_s, .. }: Session) -> Option<Trip> {
        // ceil(k * max(Tf, Tr, Tdr) / Tdr) [RFC 8083 sec 4.2]
        let longest_s = self.frame_interval_s().max(self.rtt_s.unwrap_or(0.0)).max(tdr_s);
        let value = (NON_REPORTING_THRESHOLD * longest_s / tdr_s).ceil() as u32;
        let highest = block.map(|block| block.extended_highest_sequence);
        let received = match (self.highest, highest) {
            (Some(before), Some(now)) => matches!(now.wrapping_sub(before), 1..0x8000_0000),
            (before, now) => before.is_none() && now.is_some(),
        };
        self.highest = highest.or(self.highest);
        if received {
            self.not_received = 0;
            self.media_timeout = Some(value);
        } else if self.sent_since_report {
            self.not_received += 1;
            self.media_timeout = self.media_timeout.max(Some(value));
        }
        (self.not_received > 0 && self.media_timeout.is_some_and(|most| self.not_received >= most)).then(|| self.trip(Cause::MediaTimeout))
    }

    fn congestion(&mut self, now_s: f64, block: Option<&ReportBlock>, Session { tdr_s, .. }: Session) -> Option<Trip> {
        let block = block?;
        let fraction = f64::from(block.fraction_lost) / 256.0;
        let (packets, bytes) = self.sending.take();
        let duration_s = now_s - self.last_block_s.replace(now_s)?;
        // "transmitting at least one RTP packet every max(Tdr, Tr) seconds"
        if duration_s <= 0.0 || packets as f64 * tdr_s.max(self.rtt_s.unwrap_or(0.0)) < duration_s {
            return None;
        }
        self.intervals.push_back((fraction, duration_s));
        if self.intervals.len() > MAX_INTERVALS {
            self.intervals.pop_front();
        }
        let first = self.intervals.len().checked_sub(self.congestion_intervals)?;
        let (sum, time_s) = self.intervals.range(first..).fold((0.0, 0.0), |(sum, time), (lost, s)| (sum + lost * s, time + s));
        let loss = sum / time_s;
        // X = s / (Tr * sqrt(2 * b * p / 3)), b = 1; without loss there is no bound.
        let tcp_rate_bps = 8.0 * self.sending.mean_bytes() / (self.rtt_s.unwrap_or(UNKNOWN_RTT_S) * (2.0 * loss / 3.0).sqrt());
        let rate_bps = 8.0 * bytes as f64 / duration_s;
        (rate_bps > TOLERANCE * tcp_rate_bps).then(|| Trip {
            reduce: self.settings.reduces && !self.reduced,
            rate_bps: Some(rate_bps),
            tcp_rate_bps: Some(tcp_rate_bps),
            loss: Some(loss),
            ..self.trip(Cause::Congestion)
        })
    }

    fn usability(&mut self, now_s: f64, block: Option<&ReportBlock>) -> Option<Trip> {
        let CircuitBreaker { usable_loss, usable_rtt_s, unusable_s, .. } = self.settings;
        let loss = f64::from(block?.fraction_lost) / 256.0;
        let beyond = |value: Option<f64>, most: Option<f64>| value.zip(most).is_some_and(|(value, most)| value > most);
        if !beyond(Some(loss), usable_loss) && !beyond(self.rtt_s, usable_rtt_s) {
            self.unusable_since_s = None;
            return None;
        }
        let since_s = *self.unusable_since_s.get_or_insert(now_s);
        (now_s - since_s >= unusable_s).then(|| Trip { loss: Some(loss), ..self.trip(Cause::Usability) })
    }

    fn trip(&self, cause: Cause) -> Trip {
        Trip { cause, reduce: false, rate_bps: None, tcp_rate_bps: None, loss: None, rtt_s: self.rtt_s }
    }
}

/// What was sent: frames, the time between them, and the sizes of packets, as RTP packets.
#[derive(Debug, Default)]
struct Sending {
    /// Since the last block.
    packets: u64,
    bytes: u64,
    /// Of the newest frames: instant, packets and bytes.
    frames: VecDeque<(f64, u64, u64)>,
    /// Gaps between frames and when they ended, each shorter than those before it.
    gaps: VecDeque<(f64, f64)>,
}

impl Sending {
    fn sent(&mut self, now_s: f64, produced_s: f64, bytes: u64) {
        self.packets += 1;
        self.bytes += bytes;
        match self.frames.back_mut() {
            Some((at, packets, sum)) if *at == produced_s => {
                *packets += 1;
                *sum += bytes;
                return;
            }
            Some(&mut (at, ..)) => {
                let gap_s = produced_s - at;
                while self.gaps.back().is_some_and(|&(_, shorter)| shorter <= gap_s) {
                    self.gaps.pop_back();
                }
                self.gaps.push_back((now_s, gap_s));
            }
            None => {}
        }
        while self.gaps.front().is_some_and(|&(ended, _)| ended < now_s - FRAME_WINDOW_S) {
            self.gaps.pop_front();
        }
        if self.frames.len() == SIZE_FRAMES {
            self.frames.pop_front();
        }
        self.frames.push_back((produced_s, 1, bytes));
    }

    fn longest_gap_s(&self) -> f64 {
        self.gaps.front().map_or(0.0, |&(_, gap_s)| gap_s)
    }

    fn mean_bytes(&self) -> f64 {
        let (packets, bytes) = self.frames.iter().fold((0, 0), |(packets, bytes), frame| (packets + frame.1, bytes + frame.2));
        bytes as f64 / packets.max(1) as f64
    }

    /// Packets and bytes since it was last asked.
    fn take(&mut self) -> (u64, u64) {
        (std::mem::take(&mut self.packets), std::mem::take(&mut self.bytes))
    }
}
