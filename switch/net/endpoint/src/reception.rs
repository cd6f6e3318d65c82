//! What has arrived of one RTP stream.

use crate::gaps::{Gaps, Missing};
use crate::record::Media;
use crate::seen::Seen;
use crate::statistics::SourceStatistics;
use crate::wire::rtp::RtpHeader;
use crate::wire::stamp::Stamp;
use crate::Nanos;

/// After so long without data a receiver accepts another SSRC from the same peer: a sender that was started again.
const SILENT_SOURCE: Nanos = 10_000_000_000;

/// What a packet was to the books.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Of another source than the one that is heard.
    Foreign,
    Counted {
        /// The first of its source.
        first: bool,
        /// Packets that are lost now.
        lost: Vec<Missing>,
    },
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Reception {
    pub(crate) source: Option<SourceStatistics>,
    source_gone: bool,
    /// Where losses are asked for.
    gaps: Option<Gaps>,
    pub(crate) last_arrival: Nanos,
    /// Packets, each once.
    pub(crate) packets: u64,
    seen: Seen,
    /// Further copies of packets of the present source.
    copies: u64,
    /// Of IPv4 datagrams.
    pub(crate) bytes: u64,
    /// Losses of sources that are over.
    lost_before: i64,
    pub(crate) delay_sum: u64,
    pub(crate) delay_max: u64,
    pub(crate) media: Media,
}

impl Reception {
    /// `loss_distance`: where losses are asked for, packets after which one is lost.
    pub(crate) fn new(loss_distance: Option<u64>) -> Reception {
        Reception { gaps: loss_distance.map(Gaps::new), ..Reception::default() }
    }

    /// Counts a data packet of `bytes`.
    pub(crate) fn arrived(&mut self, now: Nanos, header: &RtpHeader, stamp: Stamp, bytes: usize, threshold: Nanos) -> Arrival {
        let changes = self.source.as_ref().is_none_or(|source| source.ssrc != header.ssrc);
        if changes && !self.may_adopt(now) {
            return Arrival::Foreign;
        }
        if changes {
            self.retire();
        }
        let source = self.source.get_or_insert_with(|| SourceStatistics::new(header.ssrc));
        let (known, expected, restarts) = (source.has_heard(), source.extended_highest_sequence() + 1, source.restarts);
        let counted = source.update(header.sequence, header.timestamp, now);
        let highest = source.extended_highest_sequence();
        let goes_on = known && source.restarts == restarts;
        let before = std::mem::replace(&mut self.last_arrival, now);
        if !goes_on {
            self.seen = Seen::default();
        }
        // A packet that is late is so by less than numbers take to wrap.
        let behind = (highest as u16).wrapping_sub(header.sequence);
        let number = highest.checked_sub(behind.into()).filter(|_| counted);
        if number.is_some_and(|number| !self.seen.is_first(number)) {
            self.copies += 1;
            return Arrival::Counted { first: false, lost: Vec::new() };
        }
        self.packets += 1;
        self.bytes += bytes as u64;
        let delay = now.saturating_sub(stamp.sent);
        self.delay_sum += delay;
        self.delay_max = self.delay_max.max(delay);
        let age = now.saturating_sub(stamp.produced.unwrap_or(stamp.sent));
        self.media.age_sum_ns += age;
        self.media.age_max_ns = self.media.age_max_ns.max(age);
        self.media.overdue_packets += u64::from(age > threshold);
        self.media.delayed_packets += u64::from(known && now - before > threshold);
        let lost = match &mut self.gaps {
            Some(gaps) if !goes_on => {
                gaps.clear();
                Vec::new()
            }
            Some(gaps) => number.map_or_else(Vec::new, |number| gaps.arrived(number, expected, before, now)),
            None => Vec::new(),
        };
        Arrival::Counted { first: !known, lost }
    }

    /// Whether another source may take the place of the one that is heard.
    fn may_adopt(&self, now: Nanos) -> bool {
        self.source.is_none() || self.source_gone || now - self.last_arrival >= SILENT_SOURCE
    }

    /// The source is over: its losses stay in the books.
    pub(crate) fn retire(&mut self) {
        self.lost_before = self.lost_packets();
        (self.source, self.copies) = (None, 0);
        self.source_gone = false;
    }

    /// The source said goodbye.
    pub(crate) fn said_bye(&mut self) {
        self.source_gone = true;
    }

    /// The source that reports are about.
    pub(crate) fn present(&mut self) -> Option<&mut SourceStatistics> {
        self.source.as_mut().filter(|_| !self.source_gone)
    }

    /// Sequence numbers that never came: a copy makes up for no loss, other than in reports [RFC 3550 sec A.3].
    pub(crate) fn lost_packets(&self) -> i64 {
        self.lost_before + self.source.as_ref().map_or(0, |source| source.lost_packets() + self.copies as i64)
    }

    pub(crate) fn highest_sequence(&self) -> Option<u64> {
        self.source.as_ref().map(SourceStatistics::extended_highest_sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    fn packet(reception: &mut Reception, now: Nanos, ssrc: u32, sequence: u16, produced: Nanos) -> Arrival {
        let stamp = Stamp { sent: now.saturating_sub(MS), number: 0, sender_rtt_us: None, produced: Some(produced) };
        reception.arrived(now, &RtpHeader { sequence, timestamp: 0, ssrc, extension: &[] }, stamp, 1000, 75 * MS)
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
        let mut reception = Reception::new(Some(1));
        let counted = |first, lost| Arrival::Counted { first, lost };
        assert_eq!(packet(&mut reception, 0, 1, 10, 0), counted(true, vec![]));
        let missing = Missing { first: 11, last: 12, before: 0, after: MS };
        assert_eq!(packet(&mut reception, MS, 1, 13, 0), counted(false, vec![missing]));
        assert_eq!(packet(&mut reception, MS, 2, 500, 0), Arrival::Foreign);
        reception.said_bye();
        assert_eq!(packet(&mut reception, MS, 2, 500, 0), counted(true, vec![]));
        assert_eq!(packet(&mut reception, MS + SILENT_SOURCE, 3, 1, 0), counted(true, vec![]));
        assert_eq!((reception.packets, reception.lost_packets()), (4, 2));
    }

    #[test]
    fn a_copy_is_no_packet_and_makes_up_for_no_loss() {
        let mut reception = Reception::new(Some(1));
        for (n, sequence) in [65_534, 65_534, 65_535, 1, 1, 65_535, 2, 0].into_iter().enumerate() {
            packet(&mut reception, n as u64 * MS, 1, sequence, 0);
        }
        assert_eq!((reception.packets, reception.bytes, reception.lost_packets()), (5, 5000, 0));
        packet(&mut reception, 8 * MS, 1, 5, 0);
        packet(&mut reception, 9 * MS, 1, 5, 0);
        assert_eq!((reception.packets, reception.lost_packets()), (6, 2));
        // In reports, copies count as received.
        assert_eq!(reception.source.as_ref().map(SourceStatistics::lost_packets), Some(-2));
        reception.said_bye();
        packet(&mut reception, 10 * MS, 2, 5, 0);
        assert_eq!((reception.packets, reception.lost_packets()), (7, 2));
    }

    #[test]
    fn losses_are_told_over_a_wrap_and_not_over_a_restart() {
        let mut reception = Reception::new(Some(3));
        let mut lost = Vec::new();
        for (n, sequence) in [65_533, 65_535, 2, 1, 3, 40_000, 40_001, 40_003, 40_004, 40_005].into_iter().enumerate() {
            if let Arrival::Counted { lost: more, .. } = packet(&mut reception, n as u64 * MS, 1, sequence, 0) {
                lost.extend(more.into_iter().map(|missing| (n, missing.first, missing.last, missing.after / MS)));
            }
        }
        // 65534 when 65535, 2 and 1 have come; 65536 when 2, 1 and 3 have. Then the source restarts, and 40002 is missing.
        assert_eq!(lost, [(3, 65_534, 65_534, 1), (4, 65_536, 65_536, 1), (9, 40_002, 40_002, 7)]);
    }
}
