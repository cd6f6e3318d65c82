//! What has arrived of one RTP stream.

use crate::record::Media;
use crate::statistics::SourceStatistics;
use crate::wire::rtp::{RtpHeader, LONG_STAMP_BYTES, STAMP_BYTES};
use crate::Nanos;

/// After so long without data a receiver accepts another SSRC from the same peer: a sender that was started again.
const SILENT_SOURCE: Nanos = 10_000_000_000;

/// The stamp of a data packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Stamp {
    pub(super) sent: Nanos,
    /// Packets of the stream before this one.
    pub(super) number: u64,
    pub(super) sender_rtt_us: Option<u32>,
    /// Of the frame that it carries; that of sending, where the flow has no application.
    pub(super) produced: Nanos,
}

impl Stamp {
    /// `None` when it is cut short. `media`: an instant of production follows.
    pub(super) fn parse(payload: &[u8], media: bool) -> Option<Stamp> {
        let double = |at: usize| payload.get(at..).and_then(|rest| rest.first_chunk::<8>()).map(|bytes| u64::from_be_bytes(*bytes));
        let sent = double(0)?;
        let rtt = payload.get(STAMP_BYTES..LONG_STAMP_BYTES).and_then(|rtt| rtt.first_chunk::<4>());
        Some(Stamp {
            sent,
            number: double(8)?,
            sender_rtt_us: rtt.map(|rtt| u32::from_be_bytes(*rtt)).filter(|&micros| micros > 0),
            produced: double(LONG_STAMP_BYTES).filter(|_| media).unwrap_or(sent),
        })
    }
}

/// Sequence numbers that were skipped when a packet came: the first and the last, and when the packet before them came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Skipped {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) before: Nanos,
}

/// What a packet was to the books.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Of another source than the one that is heard.
    Foreign,
    Counted {
        /// The first of its source.
        first: bool,
        skipped: Option<Skipped>,
    },
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Reception {
    pub(super) source: Option<SourceStatistics>,
    source_gone: bool,
    pub(super) last_arrival: Nanos,
    pub(super) packets: u64,
    /// Of IPv4 datagrams.
    pub(super) bytes: u64,
    /// Losses of sources that are over.
    lost_before: i64,
    pub(super) delay_sum: u64,
    pub(super) delay_max: u64,
    pub(super) media: Media,
}

impl Reception {
    /// Counts a data packet of `bytes`.
    pub(super) fn arrived(&mut self, now: Nanos, header: &RtpHeader, stamp: Stamp, bytes: usize, threshold: Nanos) -> Arrival {
        let changes = self.source.as_ref().is_none_or(|source| source.ssrc != header.ssrc);
        if changes && !self.may_adopt(now) {
            return Arrival::Foreign;
        }
        if changes {
            self.retire();
        }
        let source = self.source.get_or_insert_with(|| SourceStatistics::new(header.ssrc));
        let (known, expected, restarts) = (source.has_heard(), source.extended_highest_sequence() + 1, source.restarts);
        source.update(header.sequence, header.timestamp, now);
        let highest = source.extended_highest_sequence();
        let goes_on = known && source.restarts == restarts;
        let before = std::mem::replace(&mut self.last_arrival, now);
        self.packets += 1;
        self.bytes += bytes as u64;
        let delay = now.saturating_sub(stamp.sent);
        self.delay_sum += delay;
        self.delay_max = self.delay_max.max(delay);
        let age = now.saturating_sub(stamp.produced);
        self.media.age_sum_ns += age;
        self.media.age_max_ns = self.media.age_max_ns.max(age);
        self.media.overdue_packets += u64::from(age > threshold);
        self.media.delayed_packets += u64::from(known && now - before > threshold);
        let skipped = (goes_on && highest > expected).then(|| Skipped { first: expected, last: highest - 1, before });
        Arrival::Counted { first: !known, skipped }
    }

    /// Whether another source may take the place of the one that is heard.
    fn may_adopt(&self, now: Nanos) -> bool {
        self.source.is_none() || self.source_gone || now - self.last_arrival >= SILENT_SOURCE
    }

    /// The source is over: its losses stay in the books.
    pub(super) fn retire(&mut self) {
        self.lost_before += self.source.take().map_or(0, |old| old.lost_packets());
        self.source_gone = false;
    }

    /// The source said goodbye.
    pub(super) fn said_bye(&mut self) {
        self.source_gone = true;
    }

    /// The source that reports are about.
    pub(super) fn present(&mut self) -> Option<&mut SourceStatistics> {
        self.source.as_mut().filter(|_| !self.source_gone)
    }

    pub(super) fn lost_packets(&self) -> i64 {
        self.lost_before + self.source.as_ref().map_or(0, SourceStatistics::lost_packets)
    }

    pub(super) fn highest_sequence(&self) -> Option<u64> {
        self.source.as_ref().map(SourceStatistics::extended_highest_sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    fn packet(reception: &mut Reception, now: Nanos, ssrc: u32, sequence: u16, produced: Nanos) -> Arrival {
        let stamp = Stamp { sent: now.saturating_sub(MS), number: 0, sender_rtt_us: None, produced };
        reception.arrived(now, &RtpHeader { sequence, timestamp: 0, ssrc }, stamp, 1000, 75 * MS)
    }

    #[test]
    fn late_packets_are_counted_by_both_readings() {
        let mut reception = Reception::default();
        for (n, now) in [0, 40, 115, 191].into_iter().enumerate() {
            packet(&mut reception, now * MS, 1, n as u16, if n == 2 { 30 * MS } else { now * MS });
        }
        // 75 ms after the one before is in time, 76 is not; the third was produced 85 ms before.
        assert_eq!((reception.media.delayed_packets, reception.media.overdue_packets), (1, 1));
        assert_eq!((reception.media.age_max_ns, reception.delay_sum), (85 * MS, 3 * MS));
    }

    #[test]
    fn another_source_must_wait_for_silence_or_goodbye() {
        let mut reception = Reception::default();
        assert_eq!(packet(&mut reception, 0, 1, 10, 0), Arrival::Counted { first: true, skipped: None });
        let skipped = Skipped { first: 11, last: 12, before: 0 };
        assert_eq!(packet(&mut reception, MS, 1, 13, 0), Arrival::Counted { first: false, skipped: Some(skipped) });
        assert_eq!(packet(&mut reception, MS, 2, 500, 0), Arrival::Foreign);
        reception.said_bye();
        assert_eq!(packet(&mut reception, MS, 2, 500, 0), Arrival::Counted { first: true, skipped: None });
        assert_eq!(packet(&mut reception, MS + SILENT_SOURCE, 3, 1, 0), Arrival::Counted { first: true, skipped: None });
        assert_eq!((reception.packets, reception.lost_packets()), (4, 2));
    }

    #[test]
    fn a_stamp_reads_what_there_is_of_it() {
        let payload: Vec<u8> = (0..28).collect();
        assert_eq!(Stamp::parse(&payload[..15], true), None);
        let short = Stamp::parse(&payload[..16], true).expect("long enough");
        assert_eq!((short.sender_rtt_us, short.produced), (None, short.sent));
        let long = Stamp::parse(&payload, true).expect("long enough");
        assert_eq!((long.sender_rtt_us, long.produced), (Some(0x1011_1213), 0x1415_1617_1819_1a1b));
    }
}
