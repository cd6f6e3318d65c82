//! A sender that finds losses by time: where RACK and TLP (RFC 8985) enter its events. Its functions stay out of line, so that a sender without
//! RACK pays for a comparison only.

use super::{Sender, State};
use crate::congestion::{Core, Delivered};
use crate::segment::{Segment, Transmit};
use crate::{rack, seq, tlp, Nanos};

impl Sender {
    /// When the retransmission timer runs out, or RACK's or TLP's in its place [RFC 8985 sec 8].
    pub(super) fn main_timer(&self) -> Option<Nanos> {
        self.core.rack.as_ref().and_then(|rack| rack.deadline()).or(self.timer)
    }

    /// The first SACK block, if it reports a duplicate: it lies below the acknowledgement of its own segment, or in the second block
    /// [RFC 2883 sec 5].
    fn dsack(&self, segment: &Segment, ack: u64) -> Option<(u64, u64)> {
        let offset = |edge| seq::to_offset(self.iss, ack, edge);
        let mut blocks = segment.sack.as_slice().iter().map(|&(left, right)| Some((offset(left)?, offset(right)?)));
        let first = blocks.next().flatten().filter(|first| first.0 < first.1)?;
        let second = blocks.next().flatten();
        (first.1 <= ack || second.is_some_and(|block| block.0 <= first.0 && first.1 <= block.1)).then_some(first)
    }

    /// After an ACK: whether it moved SND.UNA, and whether there was a recovery before it.
    #[inline(never)]
    pub(super) fn detect_losses(&mut self, now: Nanos, segment: &Segment, moved: bool, recovering: bool) {
        let una = self.core.una;
        self.core.after_timeout &= una < self.core.recover;
        let dsack = self.dsack(segment, una);
        let is_bare_duplicate = !moved && segment.sack.is_empty() && segment.payload_len == 0;
        if self.core.rack.as_mut().is_some_and(|rack| rack.tlp.on_ack(tlp::Ack { ack: una, dsack, is_bare_duplicate })) {
            // as after a fast recovery: the probe has repaired the loss
            self.respond_to_loss(now);
            self.core.in_recovery = false;
            self.core.retransmit_first = false;
        }
        let still = self.core.is_recovering();
        let ack = rack::Ack {
            una,
            nxt: self.core.nxt,
            timestamps: segment.timestamps,
            dsack,
            srtt: self.rtt.srtt(),
            recovering: still,
            recovered: recovering && !still,
        };
        let Core { rack: Some(rack), board, .. } = &mut self.core else { return };
        rack.tlp.restart |= moved;
        let newest = rack.on_ack(now, &ack, board);
        self.on_losses(now, newest);
    }

    /// Segments were found lost, the newest of them sent at `newest`. What was sent since the last reduction asks for another one: also a
    /// retransmission [RFC 8985 sec 9.3].
    fn on_losses(&mut self, now: Nanos, newest: Option<Nanos>) {
        let Some(rack) = &mut self.core.rack else { return };
        let Some(newest) = newest else { return };
        let again = rack.reduced_at.is_some_and(|at| newest < at);
        rack.tlp.reset();
        if !again {
            self.respond_to_loss(now);
        } else if !self.core.is_recovering() {
            self.core.in_recovery = true;
            self.core.recover = self.core.max_sent;
            self.core.retransmit_first = true;
        }
    }

    /// Reduces the window. A recovery from a timeout goes on.
    fn respond_to_loss(&mut self, now: Nanos) {
        let core = &mut self.core;
        let window = core.cwnd;
        if core.is_recovering() {
            // a mark's reduction was of an earlier window
            core.ecn_recover = core.ecn_recover.min(core.una);
        }
        if core.after_timeout {
            core.ssthresh = self.control.ssthresh_after_timeout(core);
            core.cwnd = core.ssthresh;
            core.begin_recovery();
            core.retransmit_first = true;
        } else {
            self.control.enter_recovery(core);
        }
        core.cwnd = core.cwnd.min(window);
        if let Some(rack) = &mut core.rack {
            rack.reduced_at = Some(now);
        }
    }

    /// At a timeout of the retransmission timer [RFC 8985 sec 6.3]; `false` without RACK.
    pub(super) fn mark_lost_at_timeout(&mut self, now: Nanos) -> bool {
        let Some(rack) = &mut self.core.rack else { return false };
        if rack.on_timeout(now) {
            self.core.board.clear(self.core.una);
        }
        rack.reduced_at = Some(now);
        self.core.after_timeout = true;
        self.core.retransmit_first = true;
        true
    }

    /// The reordering timer or the PTO, if one of them was armed.
    pub(super) fn on_rack_timer(&mut self, now: Nanos, out: &mut Vec<Transmit>) -> bool {
        let Some(rack) = &mut self.core.rack else { return false };
        if rack.timer.is_some() {
            let in_flight = rack.in_flight();
            let newest = rack.detect_loss(now);
            self.on_losses(now, newest);
            self.tell_losses(now, in_flight);
            // it took the place of this one
            if self.timer.is_some_and(|at| at <= now) {
                self.timer = Some(now + self.rtt.rto());
            }
            self.send(now, out);
        } else if rack.tlp.due.take().is_some() {
            if rack.tlp.may_probe() {
                self.send_probe(now, out);
            }
            if self.core.flight_size() > 0 {
                self.timer = Some(now + self.rtt.rto());
            }
        } else {
            return false;
        }
        true
    }

    /// A paced flavour learns of losses without an ACK.
    fn tell_losses(&mut self, now: Nanos, prior_in_flight: u64) {
        let (Some(delivery), Some(rack)) = (&mut self.delivery, &mut self.core.rack) else { return };
        let (sample, lost) = (delivery.sample(now), rack.take_newly_lost());
        self.control.on_delivered(&mut self.core, now, &Delivered { sample, lost, prior_in_flight, marks: 0 });
    }

    /// New data, where there are some and the peer's window admits them; otherwise the last segment once more [RFC 8985 sec 7.3]. The
    /// congestion window does not count.
    fn send_probe(&mut self, now: Nanos, out: &mut Vec<Transmit>) {
        let core = &self.core;
        let (nxt, len) = (core.nxt, core.mss.min(self.end() - core.nxt));
        let is_new = len > 0 && nxt + len <= core.una + core.window_limit;
        let last = core.rack.as_ref().and_then(|rack| rack.last());
        let Some((start, end)) = is_new.then_some((nxt, nxt + len)).or(last) else { return };
        self.transmit(start, end - start, now, out);
        self.core.nxt = self.core.nxt.max(end);
        let nxt = self.core.nxt;
        if let Some(rack) = &mut self.core.rack {
            rack.tlp.on_probe(nxt, !is_new);
            rack.tlp.restart = false;
        }
    }

    /// Arms the PTO after new data have left or were acknowledged [RFC 8985 sec 7.2].
    #[inline(never)]
    pub(super) fn schedule_probe(&mut self, now: Nanos) {
        let excluded = self.core.is_recovering() || self.waits_for_timer || self.core.window_limit == 0 || self.state != State::Established;
        let (srtt, Some(rack)) = (self.rtt.srtt(), &mut self.core.rack) else { return };
        if !std::mem::take(&mut rack.tlp.restart) {
            return;
        }
        rack.tlp.due = None;
        if let Some(rto) = self.timer.filter(|_| !excluded && rack.segments() > 0 && !rack.has_sacked()) {
            let is_delayed = rack.segments() == 1 && self.config.delayed_ack;
            let max_ack_delay = if is_delayed { self.config.delayed_ack_timeout } else { 0 };
            rack.tlp.arm(now, srtt, max_ack_delay, rto);
        }
    }

    /// Lost segments, then new data, while the window has room for them: the recovery in place of RFC 6675's [RFC 8985 sec 9.2]. A SACKed
    /// segment has left the network, and lets another one out, as limited transmit does by [RFC 6675 sec 5 step 3].
    #[inline(never)]
    pub(super) fn send_by_rack(&mut self, now: Nanos, out: &mut Vec<Transmit>) {
        let end = self.end();
        loop {
            let recovering = self.core.is_recovering();
            let core = &mut self.core;
            let Some(rack) = &mut core.rack else { return };
            let lost = rack.next_lost();
            let by_pipe = lost.is_some() || recovering || self.config.limited_transmit;
            let in_flight = if by_pipe { rack.in_flight() } else { core.max_sent - core.una };
            let (start, len) = lost.map_or((core.nxt, core.mss.min(end - core.nxt)), |(start, end)| (start, end - start));
            if len == 0 {
                core.cwnd_limited = false;
                return;
            }
            let window = if lost.is_some() { u64::MAX } else { (core.una + core.window_limit).saturating_sub(start) };
            let room = core.cwnd.saturating_sub(in_flight).min(window);
            if room < len {
                core.cwnd_limited = core.cwnd <= core.window_limit;
                // [RFC 9293 sec 3.8.6.2.1]: no small segments, unless nothing else keeps the connection alive
                if room == 0 || core.una < core.max_sent {
                    return;
                }
            }
            if self.waits_for_timer && lost.is_none() || self.waits_for_pace(now) {
                return;
            }
            let len = len.min(room);
            if lost.is_none() && !recovering && start + len > self.core.una + self.core.cwnd {
                self.core.limited_sent += len;
            }
            self.transmit(start, len, now, out);
            self.core.nxt = self.core.nxt.max(start + len);
            if lost.is_some() && start == self.core.una {
                self.timer = Some(now + self.rtt.rto());
            }
        }
    }
}
