//! RACK, loss detection by time [RFC 8985 sec 6]: a segment is lost when one that was sent later has arrived, and a round trip and a reordering
//! window have passed since it was sent. Retransmissions count as any other transmission.
//!
//! Segments are kept one by one, by sequence, and their last transmissions in the order of time, as [RFC 8985 sec 6.2 step 5] advises: an ACK
//! costs what it delivers and what it finds lost.

use std::collections::VecDeque;

use crate::scoreboard::{Scoreboard, DUP_THRESH};
use crate::segment::Timestamps;
use crate::tlp::Tlp;
use crate::Nanos;

/// Recoveries without a D-SACK after which the reordering window starts again [RFC 8985 sec 6.2].
const PERSIST: u32 = 16;
/// How long a round trip counts towards the minimum, at least; at most twice as long. Linux: 300 s (`tcp_min_rtt_wlen`).
const MIN_RTT_WINDOW: Nanos = 150_000_000_000;

/// [RFC 8985 sec 5.2], and what of it is in the network.
#[derive(Clone, Debug)]
struct Segment {
    start: u64,
    end: u64,
    /// When it was sent last (Segment.xmit_ts), and the number of that transmission.
    sent: Nanos,
    order: u64,
    retransmitted: bool,
    lost: bool,
    sacked: bool,
    /// Transmissions that may be in the network: 0 of a lost segment, 2 of one that a loss probe repeats.
    copies: u64,
}

impl Segment {
    fn octets(&self) -> u64 {
        self.end - self.start
    }
}

/// A segment that an ACK reports for the first time.
#[derive(Clone, Debug)]
struct Delivered {
    end: u64,
    /// Number and time of its last transmission; `None`: it counted as lost, so they say nothing (INFINITE_TS).
    sent: Option<(u64, Nanos)>,
    retransmitted: bool,
    /// Whether the cumulative acknowledgement covers it.
    acknowledged: bool,
}

/// The least round trip of the last while [RFC 8985 sec 6.2 step 1], by two halves of a window.
#[derive(Clone, Debug, Default)]
struct MinRtt {
    before: Option<Nanos>,
    now: Option<Nanos>,
    since: Nanos,
}

impl MinRtt {
    fn sample(&mut self, now: Nanos, rtt: Nanos) {
        if now - self.since >= MIN_RTT_WINDOW {
            (self.before, self.now, self.since) = (self.now, None, now);
        }
        self.now = Some(self.now.map_or(rtt, |least| least.min(rtt)));
    }

    fn get(&self) -> Option<Nanos> {
        [self.before, self.now].into_iter().flatten().min()
    }
}

/// What RACK has to know of an ACK and of the connection after it.
#[derive(Clone, Debug)]
pub(crate) struct Ack {
    pub una: u64,
    pub nxt: u64,
    pub timestamps: Option<Timestamps>,
    /// The block that reports a duplicate (RFC 2883).
    pub dsack: Option<(u64, u64)>,
    pub srtt: Option<Nanos>,
    /// In fast recovery or in recovery from a timeout, and whether this ACK ended one.
    pub recovering: bool,
    pub recovered: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Rack {
    /// In flight, by sequence.
    segments: VecDeque<Segment>,
    /// Transmissions by number, each with its Segment.end_seq. An entry is outdated where its segment was sent again, has arrived or is lost.
    by_time: VecDeque<(u64, u64)>,
    /// How many transmissions there were. They have an order also within an instant, so that RACK_sent_after() needs no sequence numbers.
    transmissions: u64,
    /// SACKed octets that the present ACK reports first; the segments that it delivers, by sequence.
    news: Vec<(u64, u64)>,
    delivered: Vec<Delivered>,
    in_flight: u64,
    /// Octets that are lost and not sent again, and a stream offset below which none of them lies.
    lost: u64,
    lost_from: u64,
    newly_lost: u64,
    /// RACK.segs_sacked.
    sacked: usize,
    /// The transmission of RACK.segment, and RACK.xmit_ts.
    latest: (u64, Nanos),
    rtt: Nanos,
    min_rtt: MinRtt,
    fack: u64,
    reordering_seen: bool,
    dsack_round: Option<u64>,
    reo_wnd: Nanos,
    reo_wnd_mult: u64,
    reo_wnd_persist: u32,
    /// When the window was reduced last, for a loss.
    pub reduced_at: Option<Nanos>,
    /// The reordering timer.
    pub timer: Option<Nanos>,
    pub tlp: Tlp,
}

impl Rack {
    pub fn new() -> Self {
        Rack { reo_wnd_mult: 1, reo_wnd_persist: PERSIST, ..Rack::default() }
    }

    /// The round trip of the handshake: a SYN is a segment, too.
    pub fn on_established(&mut self, now: Nanos, rtt: Nanos) {
        self.rtt = rtt;
        self.min_rtt.sample(now, rtt);
        self.tlp.on_rtt();
    }

    /// The octets `start..end` leave [RFC 8985 sec 6.1].
    #[inline(never)]
    pub fn on_sent(&mut self, now: Nanos, start: u64, end: u64) {
        self.transmissions += 1;
        let order = self.transmissions;
        let known = self.segments.back().map_or(start, |last| last.end);
        if start < known {
            // only a zero-window probe sends a part of a segment
            self.split(start);
            self.split(end.min(known));
            let first = self.segments.partition_point(|segment| segment.end <= start);
            for at in first..self.segments.len() {
                let segment = &mut self.segments[at];
                if segment.start >= end {
                    break;
                }
                if std::mem::take(&mut segment.lost) {
                    self.lost -= segment.octets();
                }
                if !segment.sacked {
                    segment.copies += 1;
                    self.in_flight += segment.octets();
                }
                segment.retransmitted = true;
                (segment.sent, segment.order) = (now, order);
                self.by_time.push_back((order, segment.end));
            }
        }
        if end > known {
            let start = start.max(known);
            self.segments.push_back(Segment { start, end, sent: now, order, retransmitted: false, lost: false, sacked: false, copies: 1 });
            self.in_flight += end - start;
            self.by_time.push_back((order, end));
            self.tlp.restart = true;
        }
    }

    /// Makes two segments of one that lies on both sides of `at`.
    fn split(&mut self, at: u64) {
        let index = self.segments.partition_point(|segment| segment.end <= at);
        let Some(segment) = self.segments.get_mut(index).filter(|segment| segment.start < at) else { return };
        let lower = Segment { end: at, ..segment.clone() };
        segment.start = at;
        self.sacked += usize::from(lower.sacked);
        let entry = (lower.order, at);
        self.segments.insert(index, lower);
        self.by_time.insert(self.by_time.partition_point(|&other| other < entry), entry);
    }

    /// The index of the segment whose last transmission an entry of `by_time` is, if that is in flight.
    fn live(&self, (order, end): (u64, u64)) -> Option<usize> {
        let at = self.segments.partition_point(|segment| segment.end < end);
        let segment = self.segments.get(at)?;
        (segment.end == end && segment.order == order && !segment.sacked && !segment.lost).then_some(at)
    }

    /// A SACK block of the present ACK, before the scoreboard takes it.
    #[inline(never)]
    pub fn on_block(&mut self, board: &Scoreboard, left: u64, right: u64) {
        let mut at = board.skip_sacked(left);
        while at < right {
            let stop = board.next_sacked(at).map_or(right, |next| next.min(right));
            self.news.push((at, stop));
            at = board.skip_sacked(stop);
        }
    }

    /// An ACK, after the scoreboard has its blocks [RFC 8985 sec 6.2]. Returns when the newest of the segments was sent that it shows as lost.
    pub fn on_ack(&mut self, now: Nanos, ack: &Ack, board: &Scoreboard) -> Option<Nanos> {
        self.take_delivered(ack.una, board);
        self.update_rtt(now, ack.timestamps);
        self.detect_reordering();
        self.update_reo_wnd(ack);
        self.detect_loss(now)
    }

    /// Marks what the ACK delivers, by sequence: first what it covers, then what its blocks do.
    fn take_delivered(&mut self, una: u64, board: &Scoreboard) {
        self.delivered.clear();
        while self.segments.front().is_some_and(|first| first.end <= una) {
            let Some(first) = self.segments.pop_front() else { break };
            if first.sacked {
                self.sacked -= 1;
            } else {
                self.arrived(&first, true);
            }
        }
        if let Some(front) = self.segments.front_mut().filter(|front| front.start < una) {
            let octets = una - front.start;
            front.start = una;
            self.in_flight -= octets * front.copies;
            self.lost -= if front.lost { octets } else { 0 };
        }
        let mut news = std::mem::take(&mut self.news);
        news.sort_unstable();
        for (left, right) in news.drain(..) {
            for at in self.segments.partition_point(|segment| segment.end <= left)..self.segments.len() {
                let segment = &self.segments[at];
                if segment.start >= right {
                    break;
                }
                // a segment has arrived when all of it has
                if segment.sacked || board.skip_sacked(segment.start) < segment.end {
                    continue;
                }
                let segment = segment.clone();
                self.arrived(&segment, false);
                self.sacked += 1;
                let segment = &mut self.segments[at];
                (segment.sacked, segment.lost, segment.copies) = (true, false, 0);
            }
        }
        self.news = news;
    }

    fn arrived(&mut self, segment: &Segment, acknowledged: bool) {
        self.in_flight -= segment.octets() * segment.copies;
        self.lost -= if segment.lost { segment.octets() } else { 0 };
        let sent = (!segment.lost).then_some((segment.order, segment.sent));
        self.delivered.push(Delivered { end: segment.end, sent, retransmitted: segment.retransmitted, acknowledged });
    }

    /// Steps 1 and 2. A TSecr can speak of a segment only where it is acknowledged in order: with a hole below, the receiver repeats the
    /// timestamp of what came before the hole [RFC 7323 sec 4.3].
    fn update_rtt(&mut self, now: Nanos, timestamps: Option<Timestamps>) {
        let sample = self.delivered.iter().filter(|segment| !segment.retransmitted).filter_map(|segment| segment.sent).max();
        if let Some((_, sent)) = sample {
            self.min_rtt.sample(now, now - sent);
            self.tlp.on_rtt();
        }
        let min_rtt = self.min_rtt.get().unwrap_or(0);
        let valid = |segment: &Delivered| {
            segment.sent.filter(|&(_, sent)| {
                let echo = timestamps.filter(|_| segment.acknowledged);
                let earlier = echo.is_some_and(|ts| (ts.echo.wrapping_sub(Timestamps::clock(sent)) as i32) < 0);
                !segment.retransmitted || !earlier && now - sent >= min_rtt
            })
        };
        if let Some(newest) = self.delivered.iter().filter_map(valid).max() {
            self.rtt = now - newest.1;
            self.latest = self.latest.max(newest);
        }
    }

    /// Step 3.
    fn detect_reordering(&mut self) {
        for segment in &self.delivered {
            self.reordering_seen |= segment.end < self.fack && !segment.retransmitted;
            self.fack = self.fack.max(segment.end);
        }
    }

    /// Step 4, and [RFC 8985 sec 3.3.2].
    fn update_reo_wnd(&mut self, ack: &Ack) {
        self.dsack_round = self.dsack_round.filter(|&round| ack.una < round);
        if self.dsack_round.is_none() && ack.dsack.is_some() {
            self.dsack_round = Some(ack.nxt);
            self.reo_wnd_mult += 1;
            self.reo_wnd_persist = PERSIST;
        } else if ack.recovered {
            self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
            if self.reo_wnd_persist == 0 {
                self.reo_wnd_mult = 1;
            }
        }
        let at_once = !self.reordering_seen && (ack.recovering || self.sacked >= DUP_THRESH);
        let window = self.min_rtt.get().map_or(0, |least| self.reo_wnd_mult.saturating_mul(least) / 4);
        self.reo_wnd = if at_once { 0 } else { window.min(ack.srtt.unwrap_or(0)) };
    }

    /// Step 5, at an ACK and when the reordering timer runs out. Returns when the newest of the segments was sent that are now lost.
    pub fn detect_loss(&mut self, now: Nanos) -> Option<Nanos> {
        let mut newest = None;
        while let Some(&entry) = self.by_time.front() {
            let live = self.live(entry);
            if live.is_some_and(|at| entry.0 >= self.latest.0 || self.deadline_of(at) > now) {
                break;
            }
            self.by_time.pop_front();
            if let Some(at) = live {
                newest = Some(self.segments[at].sent);
                self.mark_lost(at);
            }
        }
        // the last one whose time is not over yet, of those that were sent before RACK.segment
        let before = self.by_time.partition_point(|&entry| entry.0 < self.latest.0);
        let last = self.by_time.range(..before).rev().find_map(|&entry| self.live(entry));
        self.timer = last.map(|at| self.deadline_of(at));
        newest
    }

    /// When a segment counts as lost that was sent before RACK.segment.
    fn deadline_of(&self, at: usize) -> Nanos {
        self.segments[at].sent + self.rtt + self.reo_wnd
    }

    fn mark_lost(&mut self, at: usize) {
        let segment = &mut self.segments[at];
        let octets = segment.octets();
        self.in_flight -= octets * std::mem::take(&mut segment.copies);
        segment.lost = true;
        self.lost_from = if self.lost == 0 { segment.start } else { self.lost_from.min(segment.start) };
        self.lost += octets;
        self.newly_lost += octets;
    }

    /// The retransmission timer ran out: the first segment is lost, and others whose time is over [RFC 8985 sec 6.3]. Returns whether the
    /// receiver has reneged: it SACKed the first segment and did not acknowledge it [RFC 2018 sec 8]. Then all its blocks are forgotten.
    pub fn on_timeout(&mut self, now: Nanos) -> bool {
        self.timer = None;
        self.tlp.reset();
        let reneged = self.segments.front().is_some_and(|first| first.sacked);
        for at in 0..self.segments.len() {
            let segment = &mut self.segments[at];
            let forgotten = reneged && std::mem::take(&mut segment.sacked);
            let over = at == 0 || segment.sent + self.rtt + self.reo_wnd <= now;
            if forgotten || over && !segment.sacked && !segment.lost {
                self.mark_lost(at);
            }
        }
        if reneged {
            self.sacked = 0;
        }
        reneged
    }

    /// The lowest lost segment.
    pub fn next_lost(&mut self) -> Option<(u64, u64)> {
        if self.lost == 0 {
            return None;
        }
        let first = self.segments.partition_point(|segment| segment.end <= self.lost_from);
        let segment = self.segments.range(first..).find(|segment| segment.lost)?;
        self.lost_from = segment.start;
        Some((segment.start, segment.end))
    }

    /// The segment of the highest sequence numbers, for a loss probe.
    pub fn last(&self) -> Option<(u64, u64)> {
        self.segments.back().filter(|last| !last.sacked).map(|last| (last.start, last.end))
    }

    /// Octets in the network: of segments that are neither lost nor delivered, and what a loss probe repeats of them [RFC 8985 sec 9.3].
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Octets that are lost and not sent again.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Octets that were found lost since the last call.
    pub fn take_newly_lost(&mut self) -> u64 {
        std::mem::take(&mut self.newly_lost)
    }

    /// Segments sent and not acknowledged.
    pub fn segments(&self) -> usize {
        self.segments.len()
    }

    pub fn has_sacked(&self) -> bool {
        self.sacked > 0
    }

    /// When the timer runs out that takes the place of the retransmission timer: only one of the three is armed [RFC 8985 sec 8].
    pub fn deadline(&self) -> Option<Nanos> {
        self.timer.or(self.tlp.due)
    }

    pub fn stop_timers(&mut self) {
        self.timer = None;
        self.tlp.due = None;
    }
}

#[cfg(test)]
mod tests;
