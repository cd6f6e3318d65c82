//! Congestion control feedback at both ends [RFC 8888 sec 3.1]: what the receiver has to report, and which packets a report speaks of.
//!
//! Each packet stands in two reports where there is room, so that one that is lost costs no news, only an interval of time. Two that are lost in
//! a row leave packets of which nothing is known: they are neither arrivals nor losses [RFC 8888 sec 5].

use std::collections::VecDeque;

use crate::wire::ccfb::{self, CongestionFeedback, Metric, Offset, StreamReport, LEAST_BYTES, MAX_PACKETS, METRIC_BYTES};
use crate::wire::ntp;
use crate::{Nanos, MAX_REPORT_BYTES};

/// The ECN field of a marked packet.
const CE: u8 = 3;
/// Packets that have stood in two reports and are still known, so that late packets among them can be reported.
const KEPT: u64 = 512;
/// Metric blocks that one packet has room for beside so many bytes.
fn room(beside_bytes: usize) -> usize {
    (MAX_REPORT_BYTES as usize).saturating_sub(beside_bytes + LEAST_BYTES + 2) / METRIC_BYTES
}
/// As many new packets as fill a packet with those of the report before are reported at once: "small enough to fit within the path MTU".
pub(crate) const MOST_NEWS: u64 = 300;

/// At the receiver: when the packets of one stream arrived. Numbers are RTP's, extended: they do not wrap.
#[derive(Debug, Default)]
pub(crate) struct ArrivalBook {
    /// Number of the first in `packets`.
    base: u64,
    /// When each arrived, and its ECN field.
    packets: VecDeque<Option<(Nanos, u8)>>,
    /// Numbers below have stood in two reports, and in one.
    twice: u64,
    once: u64,
    /// The lowest number of which there is news that no report has.
    late: Option<u64>,
}

impl ArrivalBook {
    fn end(&self) -> u64 {
        self.base + self.packets.len() as u64
    }

    /// A packet arrived. Of copies the arrival of the first counts, and a mark of any.
    pub(crate) fn arrived(&mut self, now: Nanos, sequence: u16, ecn: u8) {
        if self.packets.is_empty() {
            self.begin(u64::from(sequence));
        }
        let last = self.end().saturating_sub(1).max(self.base);
        let ahead = sequence.wrapping_sub(last as u16) as i16;
        let Some(number) = last.checked_add_signed(ahead.into()).filter(|&number| number >= self.base) else { return };
        if i32::from(ahead) > MAX_PACKETS as i32 {
            self.begin(number);
        }
        while self.end() <= number {
            self.packets.push_back(None);
        }
        let packet = &mut self.packets[(number - self.base) as usize];
        let news = match packet {
            None => {
                *packet = Some((now, ecn));
                true
            }
            Some((_, before)) => ecn == CE && std::mem::replace(before, CE) != CE,
        };
        if news && number < self.twice {
            self.late = Some(self.late.map_or(number, |late| late.min(number)));
        }
        while self.packets.len() > MAX_PACKETS {
            self.packets.pop_front();
            self.base += 1;
        }
        (self.twice, self.once) = (self.twice.max(self.base), self.once.max(self.base));
        self.late = self.late.filter(|&late| late >= self.base);
    }

    fn begin(&mut self, number: u64) {
        *self = ArrivalBook { base: number, twice: number, once: number, ..ArrivalBook::default() };
    }

    /// Packets that no report has.
    pub(crate) fn news(&self) -> u64 {
        self.end() - self.once
    }

    /// Whether some packet has not stood in two reports.
    pub(crate) fn has_news(&self) -> bool {
        self.end() > self.twice || self.late.is_some()
    }

    /// What is to be said of stream `ssrc` now, in as many packets as it needs beside `beside_bytes` of headers and others in each.
    pub(crate) fn report(&mut self, now: Nanos, epoch: Nanos, own_ssrc: u32, ssrc: u32, beside_bytes: usize) -> Vec<CongestionFeedback> {
        // The report before is repeated as far as one packet has room for it: else a session whose RTCP has little bandwidth would fall behind.
        let repeat = self.twice.max(self.end().saturating_sub(room(beside_bytes) as u64)).min(self.once);
        let first = self.late.take().map_or(repeat, |late| late.min(repeat));
        let timestamp = ccfb::report_timestamp(ntp::from_unix(epoch + now));
        let metric = |packet: &Option<(Nanos, u8)>| {
            packet.map(|(at, ecn)| Metric { ecn, offset: Offset::between(ntp::from_unix(epoch + at), timestamp) })
        };
        let packets: Vec<_> = self.packets.range((first - self.base) as usize..).map(metric).collect();
        (self.twice, self.once) = (self.once, self.end());
        while self.base + KEPT < self.twice {
            self.packets.pop_front();
            self.base += 1;
        }
        let mut begin = first as u16;
        let part = |packets: &[Option<Metric>]| {
            let stream = StreamReport { ssrc, begin, packets: packets.to_vec() };
            begin = begin.wrapping_add(packets.len() as u16);
            CongestionFeedback { ssrc: own_ssrc, streams: vec![stream], timestamp }
        };
        packets.chunks(room(beside_bytes).max(1)).map(part).collect()
    }
}

/// At the sender: the number, counted from 0, of the packet with an RTP sequence number, among `sent` that began with RTP number `first`.
/// `None`: none of them can be meant.
pub(crate) fn number_of(sequence: u16, first: u16, sent: u64) -> Option<u64> {
    let last = sent.checked_sub(1)?;
    let behind = (last as u16).wrapping_sub(sequence.wrapping_sub(first));
    last.checked_sub(behind.into()).filter(|_| behind < 0x8000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: Nanos = 1_000_000;

    fn report(book: &mut ArrivalBook, now: Nanos) -> StreamReport {
        let mut packets = book.report(now, 0, 8, 7, 28);
        assert_eq!(packets.len(), 1);
        packets.remove(0).streams.remove(0)
    }

    fn offsets(report: &StreamReport) -> Vec<Option<u16>> {
        let units = |metric: &Metric| match metric.offset {
            Offset::Units(units) => units,
            other => panic!("{other:?}"),
        };
        report.packets.iter().map(|packet| packet.as_ref().map(units)).collect()
    }

    #[test]
    fn each_packet_stands_in_two_reports() {
        let mut book = ArrivalBook::default();
        for (n, ms) in [(65_534, 0), (65_535, 250), (1, 500)] {
            book.arrived(ms * MS, n, 2);
        }
        let first = report(&mut book, 1000 * MS);
        // 0 is not there yet; offsets in 1/1024 s.
        assert_eq!((first.begin, offsets(&first)), (65_534, vec![Some(1024), Some(768), None, Some(512)]));
        book.arrived(1100 * MS, 2, 2);
        book.arrived(1125 * MS, 0, 2);
        let second = report(&mut book, 1250 * MS);
        assert_eq!((second.begin, offsets(&second)), (65_534, vec![Some(1280), Some(1024), Some(128), Some(768), Some(154)]));
        let third = report(&mut book, 2000 * MS);
        assert_eq!((third.begin, third.packets.len()), (2, 1));
        assert!(!book.has_news());
    }

    /// "overlapping reports ... need to be sent in cases where RTP packet reordering occurs across the boundary" [RFC 8888 sec 3.1], and
    /// what was reported as received is reported so again.
    #[test]
    fn a_packet_that_comes_after_two_reports_is_reported_with_all_since() {
        let mut book = ArrivalBook::default();
        for n in [0, 1, 3, 4] {
            book.arrived(0, n, 0);
        }
        report(&mut book, MS);
        report(&mut book, 2 * MS);
        assert!(!book.has_news());
        book.arrived(3 * MS, 2, 0);
        assert!(book.has_news());
        let late = report(&mut book, 3 * MS);
        assert_eq!((late.begin, late.packets.iter().flatten().count()), (2, 3));
    }

    /// "the arrival time of the first copy to arrive MUST be reported. If any of the copies ... are ECN-CE marked, then an ECN-CE mark MUST be
    /// reported ...; otherwise, the ECN mark of the first copy" [RFC 8888 sec 3.1].
    #[test]
    fn of_copies_the_first_arrival_and_any_mark() {
        let mut book = ArrivalBook::default();
        for (ms, n, ecn) in [(0, 5, 2), (500, 5, 3), (500, 6, 1), (750, 6, 2), (0, 7, 3), (500, 7, 1)] {
            book.arrived(ms * MS, n, ecn);
        }
        let said = report(&mut book, 1000 * MS);
        let marks: Vec<_> = said.packets.iter().flatten().map(|metric| metric.ecn).collect();
        assert_eq!((offsets(&said), marks), (vec![Some(1024), Some(512), Some(1024)], vec![3, 1, 3]));
        report(&mut book, 1001 * MS);
        // A copy after both reports that brings a mark is news; one more is not.
        book.arrived(1002 * MS, 6, 3);
        assert_eq!(report(&mut book, 1002 * MS).packets.iter().flatten().map(|metric| metric.ecn).collect::<Vec<_>>(), [3, 3]);
        book.arrived(1004 * MS, 6, 3);
        assert!(!book.has_news());
    }

    /// "too large to fit within the path MTU, its sender SHOULD split it" [RFC 8888 sec 3.1].
    #[test]
    fn what_does_not_fit_is_split() {
        let mut book = ArrivalBook::default();
        (0..2000u16).for_each(|n| book.arrived(n.into(), n.wrapping_add(65_000), 0));
        let packets = book.report(MS, 0, 8, 7, 100);
        assert_eq!(packets.len(), 3);
        let mut next = 65_000u16;
        for packet in &packets {
            let mut bytes = Vec::new();
            packet.emit(&mut bytes);
            assert!(100 + bytes.len() <= 1500);
            assert_eq!(packet.streams[0].begin, next);
            next = next.wrapping_add(packet.streams[0].packets.len() as u16);
        }
        assert_eq!(next, 65_000u16.wrapping_add(2000));
    }

    #[test]
    fn sequence_numbers_name_packets_that_were_sent() {
        assert_eq!(number_of(10, 10, 0), None);
        assert_eq!(number_of(10, 10, 1), Some(0));
        assert_eq!(number_of(11, 10, 1), None, "was not sent");
        assert_eq!(number_of(9, 10, 65_536), Some(65_535));
        assert_eq!(number_of(9, 10, 65_537), Some(65_535));
        assert_eq!(number_of(10, 10, 65_537), Some(65_536));
        assert_eq!(number_of(11, 10, 98_000), Some(65_537));
        assert_eq!(number_of(60_000, 10, 100_000), None, "half the numbers behind");
    }

    proptest! {
        /// Packets in some disorder: what one report says is received, later ones do not take back [RFC 8888 sec 3.1].
        #[test]
        fn no_report_takes_back_what_another_said(steps in prop::collection::vec((0u16..40, 0u8..4, any::<bool>()), 1..300)) {
            let (mut book, mut sequence, mut received) = (ArrivalBook::default(), 65_500u16, std::collections::BTreeSet::new());
            for (n, (step, ecn, reports)) in steps.into_iter().enumerate() {
                sequence = sequence.wrapping_add(step).wrapping_sub(9);
                book.arrived(n as Nanos, sequence, ecn);
                if !reports || !book.has_news() {
                    continue;
                }
                for packet in book.report(n as Nanos, 0, 8, 7, 28) {
                    let stream = &packet.streams[0];
                    for (at, metric) in stream.packets.iter().enumerate() {
                        let number = stream.begin.wrapping_add(at as u16);
                        prop_assert!(metric.is_some() || !received.contains(&number));
                        if metric.is_some() {
                            received.insert(number);
                        }
                    }
                }
            }
        }

        /// Any numbers at all: a report covers a quarter of them at most.
        #[test]
        fn any_numbers_give_a_report_within_bounds(sequences in prop::collection::vec(any::<u16>(), 1..60), every in 1usize..5) {
            let mut book = ArrivalBook::default();
            for (n, sequence) in sequences.into_iter().enumerate() {
                book.arrived(n as Nanos, sequence, 0);
                if n % every == 0 && book.has_news() {
                    let packets = book.report(n as Nanos, 0, 8, 7, 28);
                    let all: usize = packets.iter().map(|packet| packet.streams[0].packets.len()).sum();
                    prop_assert!((1..=MAX_PACKETS).contains(&all));
                    prop_assert!(book.packets.len() <= MAX_PACKETS);
                }
            }
        }
    }
}
