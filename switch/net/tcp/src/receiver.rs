//! The receiving end: reassembly, acknowledgements now or delayed [RFC 5681 sec 4.2], SACK blocks (RFC 2018, RFC 2883), ECN echo (RFC 3168, and
//! DCTCP's of each mark, [RFC 8257 sec 3.2]; a count of marks, RFC 9768).
//!
//! The application reads at once, so the advertised window is always the whole buffer. The receiver sends no data and, having none,
//! does not close its own direction.

use crate::ranges::Ranges;
use crate::segment::{Ecn, Flags, SackBlocks, Segment, Timestamps, Transmit, HANDSHAKE_WITHOUT_ECT, INITIAL_MARKS};
use crate::ts_recent::TsRecent;
use crate::{seq, Config, ConfigError, Flavour, Nanos};

/// How many of the latest out-of-order arrivals are remembered to order the SACK blocks.
const RECENT: usize = 8;

/// Counts since the start of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverStats {
    /// Segments with payload that arrived.
    pub segments_received: u64,
    /// Of those, segments that brought nothing new.
    pub duplicates: u64,
    /// ACKs sent.
    pub acks_sent: u64,
}

/// A TCP receiver.
#[derive(Clone, Debug)]
pub struct Receiver {
    config: Config,
    iss: u32,
    /// The sender's initial sequence number; `None` until its SYN (or, without a handshake, its first segment) came.
    irs: Option<u32>,
    /// Stream offset of RCV.NXT.
    next: u64,
    out_of_order: Ranges,
    /// Offsets of the latest out-of-order arrivals, the newest first.
    recent: [u64; RECENT],
    recent_len: usize,
    /// Stream offset of the last acknowledgment: `next`, except while ACKs are delayed (Last.ACK.sent of [RFC 7323 sec 4.3]).
    last_ack_sent: u64,
    /// In-order segments not yet acknowledged.
    unacknowledged: u32,
    timer: Option<Nanos>,
    /// Stream offset of the FIN, once seen.
    fin_at: Option<u64>,
    /// Whether `next` is past it.
    finished: bool,
    /// What the latest segment brought twice, until an ACK reports it (RFC 2883); never, where losses are found by duplicate ACKs.
    duplicate: Option<(u64, u64)>,
    ts_recent: TsRecent,
    echo_congestion: bool,
    /// Packets that arrived with a mark, from 5 on (r.cep of [RFC 9768 sec 3.2.1]).
    marks: u64,
    /// Whether the last segment had one.
    marked: bool,
    stats: ReceiverStats,
}

impl Receiver {
    /// A receiver with initial sequence number `iss`; `config` is the sender's.
    ///
    /// # Errors
    /// A setting that cannot be.
    pub fn new(config: Config, iss: u32) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Receiver {
            config,
            iss,
            irs: None,
            next: 1,
            last_ack_sent: 1,
            out_of_order: Ranges::with_capacity(16),
            recent: [0; RECENT],
            recent_len: 0,
            unacknowledged: 0,
            timer: None,
            fin_at: None,
            finished: false,
            duplicate: None,
            ts_recent: TsRecent::default(),
            echo_congestion: false,
            marks: INITIAL_MARKS,
            marked: false,
            stats: ReceiverStats::default(),
        })
    }

    /// Says that the sender's initial sequence number is `irs`, for connections without a handshake.
    pub fn listen_without_handshake(&mut self, irs: u32) {
        self.irs = Some(irs);
    }

    /// A segment came; `congestion_experienced` is the IP header's CE mark (RFC 3168).
    pub fn on_segment(&mut self, now: Nanos, segment: &Segment, congestion_experienced: bool, out: &mut Vec<Transmit>) {
        if segment.flags.has(Flags::RST) {
            self.timer = None;
            return;
        }
        if segment.flags.has(Flags::SYN) {
            return self.on_syn(now, segment, out);
        }
        let Some(irs) = self.irs else { return };
        let len = u64::from(segment.payload_len);
        let fin = segment.flags.has(Flags::FIN);
        if len == 0 && !fin {
            return;
        }
        self.stats.segments_received += u64::from(len > 0);
        if segment.timestamps.is_some_and(|ts| self.ts_recent.rejects(now, ts.value)) {
            self.stats.duplicates += u64::from(len > 0);
            return self.acknowledge(now, out);
        }
        let Some(start) = seq::to_offset(irs, self.next, segment.seq).filter(|&at| at > 0) else {
            return self.acknowledge(now, out);
        };
        let end = start + len;
        if end > self.next + self.config.max_window {
            // outside the window: [RFC 9293 sec 3.10.7.4], drop and acknowledge
            return self.acknowledge(now, out);
        }
        // a mark is ignored outside the window [RFC 3168 sec 6.1.5], and counts in acceptable packets only [RFC 9768 sec 3.2]
        let in_window = start >= self.next || end > self.next;
        let mark_changed = in_window && self.take_mark(now, congestion_experienced, segment.flags.has(Flags::CWR), out);
        if fin && self.fin_at.is_none() {
            self.fin_at = Some(end);
        }
        // the earliest segment that no ACK has covered: rule (2) of [RFC 7323 sec 4.3], R2 and R3 of [RFC 7323 sec 5.3]
        if let Some(ts) = segment.timestamps.filter(|_| in_window && start <= self.last_ack_sent) {
            self.ts_recent.store(now, ts.value);
        }
        if self.config.uses_rack() {
            self.duplicate = self.first_duplicate(start, end + u64::from(fin));
        }
        let before = self.next;
        let had_gap = !self.out_of_order.is_empty();
        // a FIN behind a gap is reported, too: it may be the loss probe
        let end = if self.config.uses_rack() { end + u64::from(fin) } else { end };
        if start <= self.next {
            self.next = self.next.max(end);
            if had_gap {
                if let Some((_, top)) = self.out_of_order.containing(self.next) {
                    self.next = top;
                }
                self.out_of_order.remove_below(self.next);
            }
        } else {
            if self.out_of_order.insert(start, end) == 0 {
                self.stats.duplicates += 1;
            }
            self.remember(start);
        }
        let in_order = self.next > before;
        if start < before && !in_order {
            self.stats.duplicates += 1;
        }
        let finished = !self.finished && self.fin_at.is_some_and(|at| self.next >= at);
        if finished {
            // the FIN takes one sequence number
            self.next = self.next.max(self.fin_at.map_or(0, |at| at + 1));
            self.finished = true;
        }
        self.unacknowledged += u32::from(in_order);
        // [RFC 5681 sec 4.2]: at once when out of order, when a gap is filled, and for every second segment
        let at_once = !self.config.delayed_ack
            || mark_changed
            || !in_order
            || had_gap
            || finished
            || self.duplicate.is_some()
            || self.unacknowledged >= 2;
        if at_once {
            self.acknowledge(now, out);
        } else if self.timer.is_none() {
            self.timer = Some(now + self.config.delayed_ack_timeout);
        }
    }

    /// Notes whether a segment came with a mark, and answers whether its ACK must not wait: [RFC 8257 sec 3.2] echoes every change at once,
    /// [RFC 9768 sec 3.2.2.5.1] the first mark after a segment without one.
    fn take_mark(&mut self, now: Nanos, marked: bool, cwr: bool, out: &mut Vec<Transmit>) -> bool {
        if self.config.flavour == Flavour::Dctcp {
            let changed = self.echo_congestion != marked;
            if changed && self.unacknowledged > 0 {
                // what waits for a delayed ACK came with the mark before
                self.acknowledge(now, out);
            }
            self.echo_congestion = marked;
            changed
        } else if self.config.counts_marks() {
            self.marks += u64::from(marked);
            let first = marked && !self.marked;
            self.marked = marked;
            first
        } else {
            if self.config.uses_ecn() {
                self.echo_congestion = self.echo_congestion && !cwr || marked;
            }
            false
        }
    }

    fn on_syn(&mut self, now: Nanos, segment: &Segment, out: &mut Vec<Transmit>) {
        if self.irs.is_some_and(|irs| irs != segment.seq) {
            return;
        }
        self.irs = Some(segment.seq);
        if let Some(ts) = segment.timestamps {
            self.ts_recent.store(now, ts.value);
        }
        let mut flags = Flags::SYN.with(Flags::ACK);
        if self.config.uses_ecn() && !self.config.counts_marks() && segment.flags.has(Flags::ECE) {
            flags = flags.with(Flags::ECE);
        }
        let mut reply = Segment {
            seq: self.iss,
            ack: segment.seq.wrapping_add(1),
            flags,
            window: self.config.max_window.min(0xffff) as u16,
            timestamps: segment.timestamps.and(self.timestamps(now)),
            syn_options: self.config.syn_options(),
            ..Segment::default()
        };
        // reserved combinations ask for a count, too [RFC 9768 sec 3.1.3]
        if self.config.counts_marks() && !matches!(segment.ace(), 0b000 | 0b011) {
            reply = reply.with_ace(HANDSHAKE_WITHOUT_ECT);
        }
        out.push(Transmit { segment: reply, ecn: self.config.handshake_codepoint(), retransmission: false });
    }

    /// The delayed-ACK timer ran out; nothing happens before [`Receiver::next_timer`].
    pub fn on_timer(&mut self, now: Nanos, out: &mut Vec<Transmit>) {
        if self.timer.is_some_and(|at| at <= now) {
            self.acknowledge(now, out);
        }
    }

    /// When [`Receiver::on_timer`] is to be called.
    pub fn next_timer(&self) -> Option<Nanos> {
        self.timer
    }

    fn acknowledge(&mut self, now: Nanos, out: &mut Vec<Transmit>) {
        let Some(irs) = self.irs else { return };
        self.timer = None;
        self.last_ack_sent = self.next;
        self.unacknowledged = 0;
        self.stats.acks_sent += 1;
        let flags = if self.echo_congestion { Flags::ACK.with(Flags::ECE) } else { Flags::ACK };
        let mut segment = Segment {
            seq: self.iss.wrapping_add(1),
            ack: seq::to_wire(irs, self.next),
            flags,
            window: (self.config.max_window >> self.config.window_scale()) as u16,
            sack: self.sack_blocks(irs),
            timestamps: self.timestamps(now),
            ..Segment::default()
        };
        if self.config.counts_marks() {
            segment = segment.with_ace(self.marks);
        }
        out.push(Transmit { segment, ecn: Ecn::NotEct, retransmission: false });
    }

    fn timestamps(&self, now: Nanos) -> Option<Timestamps> {
        self.config.timestamps.then(|| Timestamps { value: Timestamps::clock(now), echo: self.ts_recent.echo() })
    }

    fn remember(&mut self, start: u64) {
        self.recent_len = (self.recent_len + 1).min(RECENT);
        self.recent.copy_within(..RECENT - 1, 1);
        self.recent[0] = start;
    }

    /// The first contiguous part of `start..end` that was here before [RFC 2883 sec 4].
    fn first_duplicate(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        if start < self.next {
            return Some((start, end.min(self.next)));
        }
        let ranges = self.out_of_order.as_slice();
        let &(left, right) = ranges.get(ranges.partition_point(|range| range.1 <= start))?;
        (left < end).then_some((left.max(start), right.min(end)))
    }

    /// [RFC 2018 sec 4]: the block of the latest arrival first, then those reported before it. A duplicate comes before all [RFC 2883 sec 4].
    fn sack_blocks(&mut self, irs: u32) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        if let Some((left, right)) = self.duplicate.take() {
            blocks.push(seq::to_wire(irs, left), seq::to_wire(irs, right));
        }
        let duplicates = blocks.as_slice().len();
        if self.out_of_order.is_empty() {
            self.recent_len = 0;
            return blocks;
        }
        if !self.config.flavour.uses_sack() {
            return blocks;
        }
        let most = if self.config.timestamps { SackBlocks::MAX - 1 } else { SackBlocks::MAX };
        for &at in &self.recent[..self.recent_len] {
            let Some((left, right)) = self.out_of_order.containing(at) else { continue };
            let block = (seq::to_wire(irs, left), seq::to_wire(irs, right));
            if !blocks.as_slice()[duplicates..].contains(&block) && blocks.as_slice().len() < most {
                blocks.push(block.0, block.1);
            }
        }
        blocks
    }

    /// Bytes of data delivered to the application, in order and without gaps.
    pub fn delivered(&self) -> u64 {
        self.next - 1 - u64::from(self.finished)
    }

    /// Whether everything up to the FIN was delivered.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    pub fn stats(&self) -> ReceiverStats {
        self.stats
    }
}
