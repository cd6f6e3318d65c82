//! The sending end: RFC 9293's state machine for one direction, the retransmission timer, and what may be sent when.

mod rack_tlp;

use crate::congestion::{Control, Core, Delivered};
use crate::delivery::Delivery;
use crate::pacing::Pacer;
use crate::rtt::Rtt;
use crate::scoreboard::NextSeg;
use crate::segment::{Ecn, Flags, Segment, Timestamps, Transmit, COUNTS_MARKS, HANDSHAKE_WITHOUT_ECT, INITIAL_MARKS};
use crate::ts_recent::TsRecent;
use crate::{seq, Config, ConfigError, Flavour, Nanos};

/// Counts since the start of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderStats {
    /// Segments with payload, retransmissions included.
    pub segments_sent: u64,
    /// Of those, segments with bytes that were sent before.
    pub segments_retransmitted: u64,
    /// Times the third duplicate ACK (or, for SACK, a loss seen on the scoreboard) began a fast retransmit.
    pub fast_retransmits: u64,
    /// Times the retransmission timer ran out with data outstanding.
    pub timeouts: u64,
    /// Reductions for an ECN echo.
    pub ecn_reductions: u64,
    /// ACK segments taken.
    pub acks: u64,
}

impl SenderStats {
    /// Reductions of the congestion window: loss events as a sender sees them, those that a mark tells among them.
    pub fn loss_events(&self) -> u64 {
        self.fast_retransmits + self.timeouts + self.ecn_reductions
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Closed,
    SynSent,
    Established,
    Done,
}

/// A TCP sender. See the crate's documentation for the loop around it.
#[derive(Clone, Debug)]
pub struct Sender {
    config: Config,
    iss: u32,
    state: State,
    core: Core,
    control: Control,
    rtt: Rtt,
    /// The retransmission timer, also the persist timer when the peer's window is shut.
    timer: Option<Nanos>,
    /// One past the last octet that the application wrote.
    written: u64,
    /// Whether the application closed: a FIN follows the last octet.
    closed: bool,
    /// The segment whose round trip is being measured: one past its end, and when it left [RFC 6298 sec 3].
    timing: Option<(u64, Nanos)>,
    /// The peer's next sequence number (RCV.NXT).
    rcv_nxt: u32,
    peer_scale: u8,
    ts_recent: TsRecent,
    /// An ECN echo met a window of one segment: new data wait for the timer.
    waits_for_timer: bool,
    syn_lost: bool,
    /// Where the segment began that the last timeout sent again.
    timeout_una: Option<u64>,
    /// When data last left.
    sent_at: Option<Nanos>,
    /// Of paced flavours.
    delivery: Option<Delivery>,
    pacer: Pacer,
    /// When a segment may leave that waits for the pace.
    pacing_timer: Option<Nanos>,
    /// Marks that the receiver has counted (s.cep of [RFC 9768 sec 3.2.1]); `None`: it counts none.
    marks: Option<u64>,
}

impl Sender {
    /// A sender with initial sequence number `iss`.
    ///
    /// # Errors
    /// A setting that cannot be.
    pub fn new(config: Config, iss: u32) -> Result<Self, ConfigError> {
        config.validate()?;
        let rtt = Rtt::new(config.rtt_estimator, config.initial_rto, config.timer_granularity, config.min_rto, config.max_rto);
        Ok(Sender {
            core: Core::new(&config),
            control: Control::new(&config, iss),
            rtt,
            iss,
            state: State::Closed,
            timer: None,
            written: 1,
            closed: false,
            timing: None,
            rcv_nxt: 0,
            peer_scale: config.window_scale(),
            ts_recent: TsRecent::default(),
            waits_for_timer: false,
            syn_lost: false,
            timeout_una: None,
            sent_at: None,
            delivery: config.flavour.is_paced().then(Delivery::default),
            pacer: Pacer::default(),
            pacing_timer: None,
            marks: config.counts_marks().then_some(INITIAL_MARKS),
            config,
        })
    }

    /// Opens the connection: sends a SYN, or data at once where the configuration has no handshake. A second call does nothing.
    pub fn open(&mut self, now: Nanos, out: &mut Vec<Transmit>) {
        if self.state != State::Closed {
            return;
        }
        self.core.nxt = 1;
        self.core.max_sent = 1;
        if self.config.handshake {
            self.state = State::SynSent;
            self.send_syn(now, false, out);
        } else {
            self.core.una = 1;
            self.establish(now, None);
            self.send(now, out);
        }
    }

    fn establish(&mut self, now: Nanos, rtt: Option<Nanos>) {
        self.state = State::Established;
        self.control.on_established(&self.core, now, rtt);
        if let (Some(rack), Some(rtt)) = (&mut self.core.rack, rtt) {
            rack.on_established(now, rtt);
        }
        self.pacer.set_rate(self.control.pacing_rate(&self.core));
    }

    /// The application writes `bytes` more; `u64::MAX` is data without end. [`Sender::poll`] sends what the window admits.
    pub fn write(&mut self, bytes: u64) {
        if !self.closed {
            self.written = self.written.saturating_add(bytes);
        }
    }

    /// The application will write no more: a FIN follows the last byte. No effect on data without end.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Sends what may be sent, after [`Sender::write`] or [`Sender::close`] on an open connection.
    pub fn poll(&mut self, now: Nanos, out: &mut Vec<Transmit>) {
        if self.state == State::Established {
            self.send(now, out);
        }
    }

    /// When [`Sender::on_timer`] is to be called. It moves with every ACK: a caller may keep an old event and ask again when it fires.
    pub fn next_timer(&self) -> Option<Nanos> {
        [self.main_timer(), self.pacing_timer].into_iter().flatten().min()
    }

    /// A segment came from the receiver. What is none of this connection's business is ignored.
    pub fn on_segment(&mut self, now: Nanos, segment: &Segment, out: &mut Vec<Transmit>) {
        if segment.flags.has(Flags::RST) {
            if self.state != State::Closed {
                self.finish();
            }
            return;
        }
        if !segment.flags.has(Flags::ACK) {
            return;
        }
        match self.state {
            State::SynSent => self.on_syn_ack(now, segment, out),
            State::Established => self.on_ack(now, segment, out),
            State::Closed | State::Done => {}
        }
    }

    fn on_syn_ack(&mut self, now: Nanos, segment: &Segment, out: &mut Vec<Transmit>) {
        if !segment.flags.has(Flags::SYN) || segment.ack != seq::to_wire(self.iss, 1) {
            return;
        }
        self.core.una = 1;
        self.timer = None;
        self.rcv_nxt = segment.seq.wrapping_add(1);
        match segment.syn_options.window_scale {
            Some(shift) => self.peer_scale = shift.min(14),
            None => self.peer_scale = 0,
        }
        // [RFC 7323 sec 2.2]: the window of a SYN is never scaled
        self.core.window_limit = u64::from(segment.window).min(self.core.max_window);
        // 536 where the option is missing [RFC 9293 sec 3.7.1]
        self.core.mss = self.core.mss.min(u64::from(segment.syn_options.mss.unwrap_or(536).max(1)));
        self.core.cwnd = self.core.initial_window();
        if let Some(ts) = segment.timestamps {
            self.ts_recent.store(now, ts.value);
        }
        // a receiver that does not count marks leaves the sender without ECN; 0b101 is reserved [RFC 9768 sec 3.1.2], [RFC 9768 sec 3.1.3]
        self.marks = self.marks.filter(|_| [HANDSHAKE_WITHOUT_ECT, 0b101].contains(&segment.ace().into()));
        let sent = self.timing.take().map(|(_, sent)| sent);
        if let Some(sent) = sent {
            self.rtt.sample(sent, now, 1);
        }
        self.establish(now, sent.map(|sent| (now - sent).max(1)));
        if self.syn_lost {
            // [RFC 5681 sec 3.1], [RFC 6298 sec 5 step 5.7]
            self.core.cwnd = self.core.mss;
            self.rtt.after_syn_timeout();
        }
        let before = out.len();
        self.send(now, out);
        if out.len() == before {
            out.push(self.ack_of_syn_ack(now));
        }
    }

    fn on_ack(&mut self, now: Nanos, segment: &Segment, out: &mut Vec<Transmit>) {
        if segment.flags.has(Flags::SYN) {
            // our last step of the handshake was lost
            out.push(self.ack_of_syn_ack(now));
            return;
        }
        if segment.timestamps.is_some_and(|ts| self.ts_recent.rejects(now, ts.value)) {
            out.push(self.bare(Flags::ACK, self.core.nxt, now));
            return;
        }
        let Some(ack) = seq::to_offset(self.iss, self.core.una, segment.ack) else { return };
        if ack > self.core.max_sent {
            // it acknowledges what was not sent [RFC 9293 sec 3.10.7.4]
            out.push(self.bare(Flags::ACK, self.core.nxt, now));
            return;
        }
        if ack < self.core.una {
            return;
        }
        self.core.stats.acks += 1;
        self.core.keep_timer = false;
        let window = (u64::from(segment.window) << self.peer_scale).min(self.core.max_window);
        let window_changed = window != self.core.window_limit;
        self.core.window_limit = window;
        let is_newer = segment.timestamps.is_some_and(|ts| ts.value != self.ts_recent.echo());
        if let Some(ts) = segment.timestamps {
            self.ts_recent.store(now, ts.value);
        }
        let (prior_in_flight, prior_lost) = self.before_delivery();
        let echo = self.config.uses_ecn() && !self.config.counts_marks() && segment.flags.has(Flags::ECE);
        self.control.observe(&self.core, ack, ack - self.core.una, echo);
        if echo {
            self.on_ecn_echo(now, ack);
            // [RFC 3168 sec 6.1.2]: such an ACK does not make the window larger.
            self.core.cwnd_limited = false;
        }
        let newly_sacked = self.take_sack(now, segment, ack);
        let (moved, recovering) = (ack > self.core.una, self.core.is_recovering());
        if moved {
            self.on_new_ack(now, ack, segment.timestamps);
            if self.state == State::Done {
                return;
            }
        }
        // [RFC 5681 sec 2]; [RFC 6675 sec 2], where HighACK may move; in Sack1 it may not
        let duplicate = if self.config.flavour.uses_sack() {
            newly_sacked > 0 && !(moved && matches!(self.control, Control::Sack1))
        } else {
            !moved && segment.payload_len == 0 && !segment.flags.has(Flags::FIN) && !window_changed
        };
        if self.core.rack.is_some() {
            self.detect_losses(now, segment, moved, recovering);
        } else if duplicate && self.core.flight_size() > 0 {
            self.core.dup_acks = self.core.dup_acks.saturating_add(1);
            self.control.on_dup_ack(&mut self.core);
        }
        self.deliver(now, segment, is_newer, prior_in_flight, prior_lost);
        self.send(now, out);
    }

    /// What is in flight before an ACK is taken, and where lost octets end, for [`Sender::deliver`].
    fn before_delivery(&self) -> (u64, u64) {
        if self.delivery.is_some() {
            (self.core.in_flight(), self.core.board.lost_end())
        } else {
            (0, 0)
        }
    }

    /// Tells a paced flavour what this ACK delivered. `is_newer`: its timestamp is.
    fn deliver(&mut self, now: Nanos, segment: &Segment, is_newer: bool, prior_in_flight: u64, prior_lost: u64) {
        let Some(delivery) = &mut self.delivery else { return };
        let sample = delivery.sample(now);
        // an ACK that neither delivers nor is newer may be superseded: its count is ignored [RFC 9768 sec A.2.1]
        let marks = self.marks.as_mut().filter(|_| sample.newly_delivered > 0 || is_newer).map_or(0, |count| {
            let new = new_marks(*count, segment.ace(), sample.newly_delivered_segments);
            *count += new;
            new
        });
        let lost = match &mut self.core.rack {
            Some(rack) => rack.take_newly_lost(),
            None => self.core.board.lost_above(prior_lost.max(self.core.una)),
        };
        self.control.on_delivered(&mut self.core, now, &Delivered { sample, marks, lost, prior_in_flight });
        if self.control.holds_back() {
            delivery.set_app_limited(self.core.in_flight());
        }
        self.pacer.set_rate(self.control.pacing_rate(&self.core));
    }

    /// Takes the SACK blocks that lie in what is outstanding; returns how many octets were news.
    fn take_sack(&mut self, now: Nanos, segment: &Segment, ack: u64) -> u64 {
        if !self.config.flavour.uses_sack() || segment.sack.is_empty() {
            return 0;
        }
        // after a timeout Sack1 sends everything again, whatever the receiver has
        if matches!(self.control, Control::Sack1) && !self.core.in_recovery && !self.core.may_fast_retransmit() {
            return 0;
        }
        let mut news = 0;
        for &(left, right) in segment.sack.as_slice() {
            let edges = (seq::to_offset(self.iss, self.core.una, left), seq::to_offset(self.iss, self.core.una, right));
            let (Some(left), Some(right)) = edges else { continue };
            // below the ACK: a D-SACK (RFC 2883) or an old block
            if left >= ack && left < right && right <= self.core.max_sent {
                if let Some(rack) = &mut self.core.rack {
                    rack.on_block(&self.core.board, left, right);
                }
                let new = self.core.board.sack(left, right);
                if let Some(delivery) = self.delivery.as_mut().filter(|_| new > 0) {
                    delivery.on_sacked(now, left, right);
                }
                news += new;
            }
        }
        if news > 0 {
            self.core.board.update_lost(self.core.mss);
        }
        news
    }

    fn on_new_ack(&mut self, now: Nanos, ack: u64, timestamps: Option<Timestamps>) {
        let acked = ack - self.core.una;
        self.core.una = ack;
        self.core.nxt = self.core.nxt.max(ack);
        self.core.board.advance(ack);
        if let Some(delivery) = &mut self.delivery {
            delivery.on_acknowledged(now, ack);
        }
        if let Some(ts) = timestamps.filter(|_| self.config.timestamps) {
            let elapsed = Timestamps::clock(now).wrapping_sub(ts.echo);
            // ExpectedSamples of [RFC 7323 sec G], of the flight that this ACK was sent for
            let expected_samples = (self.core.flight_size() + acked).div_ceil(2 * self.core.mss);
            self.rtt.sample(now.saturating_sub(u64::from(elapsed) * 1000), now, expected_samples);
            self.timing = None;
        } else if let Some((_, sent)) = self.timing.filter(|&(end, _)| end <= ack) {
            self.rtt.sample(sent, now, 1);
            self.timing = None;
        }
        self.control.on_new_ack(&mut self.core, now, acked, self.rtt.srtt());
        self.core.dup_acks = 0;
        self.core.limited_sent = 0;
        // [RFC 6298 sec 5 step 5.2, 5.3]
        if self.core.flight_size() == 0 {
            // After an echo to a window of one segment the timer runs on, also while there is nothing to send.
            self.timer = self.waits_for_timer.then(|| now + self.rtt.rto());
            if self.closed && ack == self.end() {
                self.finish();
            }
        } else if !self.core.keep_timer {
            self.timer = Some(now + self.rtt.rto());
        }
    }

    /// All is acknowledged, or the peer has reset the connection.
    fn finish(&mut self) {
        self.state = State::Done;
        self.timer = None;
        self.pacing_timer = None;
        if let Some(rack) = &mut self.core.rack {
            rack.stop_timers();
        }
    }

    /// As a lost segment, without a retransmission, and once for a window of data, whether it was marked or lost [RFC 3168 sec 6.1.2]. The
    /// window may fall to one segment, the threshold to two [RFC 5681 eq 4]; a window of one is halved by waiting for the timer.
    fn on_ecn_echo(&mut self, now: Nanos, ack: u64) {
        if self.core.in_recovery || ack <= self.core.ecn_recover.max(self.core.recover) {
            return;
        }
        let mss = self.core.mss;
        if self.core.cwnd <= mss {
            self.waits_for_timer = true;
            self.timer = Some(now + self.rtt.rto());
        }
        let window = self.control.window_after_echo(&self.core);
        self.core.cwnd = window.max(mss);
        self.core.ssthresh = window.max(2 * mss);
        self.core.ecn_recover = self.core.max_sent;
        self.core.cwr_due = true;
        self.core.stats.ecn_reductions += 1;
    }

    /// The timer ran out; nothing happens before [`Sender::next_timer`].
    pub fn on_timer(&mut self, now: Nanos, out: &mut Vec<Transmit>) {
        if self.main_timer().is_none_or(|at| at > now) {
            if self.pacing_timer.is_some_and(|at| at <= now) {
                self.send(now, out);
            }
            return;
        }
        if self.on_rack_timer(now, out) {
            return;
        }
        self.timer = None;
        if self.state == State::SynSent {
            self.syn_lost = true;
            self.rtt.back_off();
            self.send_syn(now, true, out);
            return;
        }
        if std::mem::take(&mut self.waits_for_timer) && self.core.flight_size() == 0 {
            return self.send(now, out);
        }
        if self.core.flight_size() == 0 || self.core.window_limit == 0 {
            self.rtt.back_off();
            self.probe(now, out);
            return;
        }
        // [RFC 5681 sec 3.1]: a second timeout for the same segment leaves ssthresh alone
        if self.timeout_una.replace(self.core.una) != Some(self.core.una) || !self.config.hold_ssthresh {
            self.core.ssthresh = self.control.ssthresh_after_timeout(&self.core);
        }
        self.core.stats.timeouts += 1;
        self.core.cwnd = self.core.mss;
        self.core.recover = self.core.max_sent;
        self.core.cwr_due = true;
        self.core.in_recovery = false;
        self.core.dup_acks = 0;
        self.core.limited_sent = 0;
        if !self.mark_lost_at_timeout(now) {
            self.core.nxt = self.core.una;
            self.core.retransmit_first = false;
            self.core.board.clear(self.core.una);
        }
        self.pacer.release();
        self.timing = None;
        // [RFC 6298 sec 5 step 5.4 to 5.6]
        self.rtt.back_off();
        self.send(now, out);
    }

    /// Zero-window probe [RFC 9293 sec 3.8.6.1]: one octet, whatever the window.
    fn probe(&mut self, now: Nanos, out: &mut Vec<Transmit>) {
        if self.core.una < self.end() {
            self.core.nxt = self.core.una;
            self.transmit(self.core.una, 1, now, out);
            self.core.nxt = if self.core.rack.is_some() { self.core.max_sent } else { self.core.una + 1 };
        }
    }

    /// One past the last sequence number that the application's data and FIN take.
    fn end(&self) -> u64 {
        self.written.saturating_add(u64::from(self.closed))
    }

    /// Sends what the windows admit.
    fn send(&mut self, now: Nanos, out: &mut Vec<Transmit>) {
        self.pacing_timer = None;
        self.restart_after_idle(now);
        if std::mem::take(&mut self.core.retransmit_first) && self.core.una < self.core.max_sent {
            let lost = self.core.rack.as_mut().and_then(|rack| rack.next_lost());
            let (start, end) = lost.unwrap_or((self.core.una, self.core.max_sent));
            let len = self.core.mss.min(end - start);
            self.core.board.first_retransmitted(start + len);
            self.transmit(start, len, now, out);
            self.core.nxt = self.core.nxt.max(start + len);
            // a retransmission has a whole RTO to be acknowledged in, as in ns-2 and [RFC 6675 sec 6]
            if !self.core.keep_timer {
                self.timer = Some(now + self.rtt.rto());
            }
        }
        if self.core.rack.is_some() {
            self.send_by_rack(now, out);
        } else if self.core.in_recovery && self.config.flavour.uses_sack() {
            self.send_by_pipe(now, out);
        } else {
            self.send_by_window(now, out);
        }
        if self.timer.is_none() && self.core.una < self.end() && self.pacing_timer.is_none() {
            // nothing outstanding and yet data to send: the peer's window is shut
            self.timer = Some(now + self.rtt.rto());
        }
        self.note_application_limit();
        if self.core.rack.is_some() {
            self.schedule_probe(now);
        }
    }

    /// A window that no data have used for more than an RTO is RW = min(IW, cwnd) when they begin again [RFC 5681 sec 4.1].
    fn restart_after_idle(&mut self, now: Nanos) {
        let idle = self.core.flight_size() == 0 && self.sent_at.is_some_and(|at| now.saturating_sub(at) > self.rtt.rto());
        if idle && self.core.una < self.end() && self.control.restarts_after_idle() {
            self.core.cwnd = self.core.cwnd.min(self.core.initial_window());
        }
    }

    /// Section 3.4 of draft-cheng-iccrg-delivery-rate-estimation-00: less than a segment is left to send, the window has room, and all
    /// that was lost was sent again.
    fn note_application_limit(&mut self) {
        let end = self.end();
        let Some(delivery) = &mut self.delivery else { return };
        let core = &self.core;
        let all_sent_again = match &core.rack {
            Some(rack) => rack.lost() == 0,
            None => core.board.high_rxt >= core.board.lost_end() || core.board.lost_above(core.una) == 0,
        };
        if end - core.nxt < core.mss && self.pacing_timer.is_none() && all_sent_again && core.in_flight() < core.cwnd {
            delivery.set_app_limited(core.in_flight());
        }
    }

    /// Whether a segment has to wait for the pace; then the pacing timer is set. The rate comes from the window, so it counts as its limit.
    fn waits_for_pace(&mut self, now: Nanos) -> bool {
        self.pacing_timer = self.pacer.wait(now);
        self.core.cwnd_limited |= self.pacing_timer.is_some();
        self.pacing_timer.is_some()
    }

    /// Sliding window: from `nxt` to the window's end. After a timeout this fills the holes that SACK blocks have shown since, and skips
    /// what lies between [RFC 6675 sec 5.1].
    fn send_by_window(&mut self, now: Nanos, out: &mut Vec<Transmit>) {
        let end = self.end();
        loop {
            self.core.nxt = self.core.board.skip_sacked(self.core.nxt);
            let core = &self.core;
            let len = core.mss.min(end - core.nxt).min(core.board.next_sacked(core.nxt).map_or(u64::MAX, |at| at - core.nxt));
            if len == 0 {
                self.core.cwnd_limited = false;
                return;
            }
            // RFC 3042: the first two duplicate ACKs let one new segment each out
            let limited = if self.config.limited_transmit && !core.in_recovery && core.nxt == core.max_sent && core.dup_acks <= 2 {
                u64::from(core.dup_acks) * core.mss
            } else {
                0
            };
            // what the receiver holds has left the network, but still fills its window
            let resending = core.nxt < core.max_sent;
            let arrived = if resending { core.board.sacked_below(core.nxt) } else { 0 };
            let used = core.nxt - core.una;
            let room = (core.cwnd + limited + arrived).min(core.window_limit).saturating_sub(used);
            if room < len {
                self.core.cwnd_limited = self.core.cwnd <= self.core.window_limit;
                // [RFC 9293 sec 3.8.6.2.1]: no small segments, unless nothing else keeps the connection alive
                if room == 0 || used > 0 {
                    return;
                }
            }
            if self.waits_for_timer && !resending || self.waits_for_pace(now) {
                return;
            }
            let len = len.min(room);
            if limited > 0 && used + len > self.core.cwnd {
                self.core.limited_sent += len;
            }
            let nxt = self.core.nxt;
            self.transmit(nxt, len, now, out);
            self.core.nxt += len;
        }
    }

    /// [RFC 6675 sec 5 step C]: while cwnd - pipe >= 1 SMSS, what NextSeg says. Sack1 has its own pipe and its own order.
    fn send_by_pipe(&mut self, now: Nanos, out: &mut Vec<Transmit>) {
        let end = self.end();
        let sack1 = matches!(self.control, Control::Sack1);
        let mut pipe = if sack1 { self.core.pipe } else { self.core.board.pipe(self.core.una, self.core.max_sent) };
        while self.core.cwnd >= pipe.saturating_add(self.core.mss) {
            if self.pacer.wait(now).is_some() {
                // also where it turns out that there is nothing to send
                self.pacing_timer = self.pacer.wait(now);
                break;
            }
            let core = &self.core;
            let fresh = core.mss.min(end - core.nxt);
            let new_data = fresh > 0 && core.nxt + fresh <= core.una + core.window_limit;
            let next =
                if sack1 { core.board.next_seg_sack1(core.una, new_data) } else { core.board.next_seg(core.una, core.max_sent, new_data) };
            match next {
                Some(NextSeg::Hole { start, end }) => {
                    let len = core.mss.min(end - start);
                    self.core.board.high_rxt = start + len;
                    self.transmit(start, len, now, out);
                    pipe += len;
                }
                Some(NextSeg::New) => {
                    let nxt = core.nxt;
                    self.transmit(nxt, fresh, now, out);
                    self.core.nxt += fresh;
                    pipe += fresh;
                }
                Some(NextSeg::Rescue { start, end }) => {
                    let start = start.max(end.saturating_sub(core.mss));
                    self.core.board.rescue_rxt = core.recover;
                    self.transmit(start, end - start, now, out);
                    pipe += end - start;
                }
                None => break,
            }
        }
        self.core.pipe = pipe;
        self.core.cwnd_limited = true;
    }

    /// Sends `len` sequence numbers from `start`, the FIN's included where it lies there.
    fn transmit(&mut self, start: u64, len: u64, now: Nanos, out: &mut Vec<Transmit>) {
        let stop = start + len;
        let retransmission = start < self.core.max_sent;
        let fin = self.closed && stop > self.written;
        let payload = len - u64::from(fin);
        let mut flags = if fin { Flags::ACK.with(Flags::FIN) } else { Flags::ACK };
        if stop >= self.written && payload > 0 {
            flags = flags.with(Flags::PSH);
        }
        let new_data = !retransmission && payload > 0;
        // where marks are counted, the bit belongs to the count
        if new_data && std::mem::take(&mut self.core.cwr_due) && self.config.uses_ecn() && !self.config.counts_marks() {
            flags = flags.with(Flags::CWR);
        }
        let mut transmit = self.bare(flags, start, now);
        transmit.segment.payload_len = payload as u32;
        transmit.ecn = self.codepoint(new_data, payload);
        transmit.retransmission = retransmission;
        out.push(transmit);
        if payload > 0 {
            self.core.stats.segments_sent += 1;
            self.core.stats.segments_retransmitted += u64::from(retransmission);
        }
        if retransmission {
            // [RFC 6298 sec 3], Karn: no sample of what was sent twice
            if self.timing.is_some_and(|(end, _)| start < end) {
                self.timing = None;
            }
        } else if self.timing.is_none() {
            self.timing = Some((stop, now));
        }
        self.sent_at = Some(now);
        self.pacer.sent(now, len);
        if let Some(delivery) = &mut self.delivery {
            let idle = self.core.una == self.core.max_sent;
            if idle && delivery.is_app_limited() {
                self.control.on_restart_from_idle();
            }
            delivery.on_sent(now, start, stop, idle);
        }
        if let Some(rack) = &mut self.core.rack {
            rack.on_sent(now, start, stop);
        }
        self.core.max_sent = self.core.max_sent.max(stop);
        // [RFC 6298 sec 5 step 5.1]
        if self.timer.is_none() {
            self.timer = Some(now + self.rtt.rto());
        }
    }

    /// New data only [RFC 3168 sec 6.1.5]. L4S packets are marked in retransmissions, too [RFC 8311 sec 4.3].
    fn codepoint(&self, new_data: bool, payload: u64) -> Ecn {
        match self.config.ecn_codepoint() {
            Ecn::Ect1 if payload > 0 && self.marks.is_some() => Ecn::Ect1,
            Ecn::Ect0 if new_data => Ecn::Ect0,
            _ => Ecn::NotEct,
        }
    }

    fn send_syn(&mut self, now: Nanos, again: bool, out: &mut Vec<Transmit>) {
        let flags = if self.config.uses_ecn() { Flags::SYN.with(Flags::ECE).with(Flags::CWR) } else { Flags::SYN };
        let mut transmit = self.bare(flags, 0, now);
        if self.config.counts_marks() {
            transmit.segment = transmit.segment.with_ace(COUNTS_MARKS);
        }
        transmit.segment.ack = 0;
        transmit.segment.window = self.config.max_window.min(0xffff) as u16;
        transmit.segment.syn_options = self.config.syn_options();
        transmit.ecn = self.config.handshake_codepoint();
        transmit.retransmission = again;
        out.push(transmit);
        self.timing = if again { None } else { Some((1, now)) };
        self.timer = Some(now + self.rtt.rto());
    }

    /// The last step of the handshake, without data; it says of the SYN-ACK that it came without ECT [RFC 9768 sec 3.2.2.1].
    fn ack_of_syn_ack(&self, now: Nanos) -> Transmit {
        let mut transmit = self.bare(Flags::ACK, self.core.nxt, now);
        if self.marks.is_some() {
            transmit.segment = transmit.segment.with_ace(HANDSHAKE_WITHOUT_ECT);
        }
        transmit
    }

    /// A segment without payload at stream offset `at`.
    fn bare(&self, flags: Flags, at: u64, now: Nanos) -> Transmit {
        let timestamps = self.config.timestamps.then(|| Timestamps { value: Timestamps::clock(now), echo: self.ts_recent.echo() });
        let segment = Segment {
            seq: seq::to_wire(self.iss, at),
            ack: self.rcv_nxt,
            flags,
            // this end takes no data; any window will do
            window: (self.config.max_window >> self.config.window_scale()) as u16,
            timestamps,
            ..Segment::default()
        };
        // nothing comes from the receiver that a queue could mark
        let segment = if self.marks.is_some() { segment.with_ace(INITIAL_MARKS) } else { segment };
        Transmit { segment, ecn: Ecn::NotEct, retransmission: false }
    }

    /// Congestion window in bytes. In Reno's and NewReno's recovery it is inflated by the duplicate ACKs [RFC 5681 sec 3.2].
    pub fn cwnd(&self) -> u64 {
        self.core.cwnd
    }

    /// Slow start threshold in bytes.
    pub fn ssthresh(&self) -> u64 {
        self.core.ssthresh
    }

    /// Bytes sent and not acknowledged.
    pub fn flight_size(&self) -> u64 {
        self.core.flight_size()
    }

    /// Bytes of data that the receiver has acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.core.una.clamp(1, self.written) - 1
    }

    /// The round trip last measured, unless it was taken before. With time stamps in whole microseconds.
    pub fn take_round_trip(&mut self) -> Option<Nanos> {
        self.rtt.take_sample()
    }

    /// Smoothed round-trip time, after the first measurement.
    pub fn srtt(&self) -> Option<Nanos> {
        self.rtt.srtt()
    }

    /// The current retransmission timeout, back-off included.
    pub fn rto(&self) -> Nanos {
        self.rtt.rto()
    }

    /// Whether the sender is in fast recovery (never, for Tahoe).
    pub fn in_recovery(&self) -> bool {
        self.core.in_recovery
    }

    /// Whether the handshake is over and the connection not yet.
    pub fn is_established(&self) -> bool {
        self.state == State::Established
    }

    /// Whether all data and the FIN are acknowledged, or the peer reset the connection.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Its congestion control.
    pub fn flavour(&self) -> Flavour {
        self.config.flavour
    }

    pub fn stats(&self) -> SenderStats {
        self.core.stats
    }
}

/// How many marks an ACK with this ACE tells, after `count` [RFC 9768 sec 3.2.2.5.2]: the difference modulo 8, and as many rounds of 8 more
/// as the segments that it delivers allow. They do where ACKs were lost.
fn new_marks(count: u64, ace: u8, segments: u64) -> u64 {
    let difference = u64::from(ace).wrapping_sub(count) & 7;
    difference + segments.saturating_sub(difference) / 8 * 8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [RFC 9768 sec 3.2.2.5.2]: the field has three bits; segments that arrived without an ACK of their own may have turned it around.
    #[test]
    fn marks_are_the_difference_of_the_counts() {
        let cases =
            [(5, 5, 2, 0), (5, 6, 2, 1), (7, 0, 1, 1), (13, 4, 7, 7), (5, 5, 7, 0), (5, 5, 8, 8), (5, 6, 8, 1), (5, 6, 9, 9), (5, 4, 1, 7)];
        // the examples of [RFC 9768 sec A.2.1]
        for (count, ace, segments, marks) in cases.into_iter().chain([(5, 7, 9, 2), (5, 7, 10, 10)]) {
            assert_eq!(new_marks(count, ace, segments), marks, "{count}, then {ace}, of {segments} segments");
        }
    }
}
