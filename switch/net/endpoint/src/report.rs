//! Reports of receivers that keep their own time: the feedback of equation-based and periodic schemes such as TFRC, SSVP, TRABOL.
//!
//! A datagram of 72 bytes from data port to data port. The receiver says what arrived since its report before, and sends back the
//! stamp of the newest data packet with the time it held it, so that the sender knows the round trip. Behind that stands what the receiver
//! made of the headers of the flow's own since its report before (`header.rs`).

use crate::algorithm::Feedback;
use crate::{seconds, Nanos};

/// Bytes of a report's payload.
pub(crate) const REPORT_BYTES: usize = 44;
/// Version of the feedback formats, the first four bits; the type is the next four.
pub(crate) const VERSION: u8 = 1;
const TYPE_REPORT: u8 = 2;
/// In the flags: the loss event rate is there.
const HAS_LOSS_EVENT_RATE: u8 = 1;
const PARTS_PER_BILLION: f64 = 1e9;
/// 48 bits.
pub(crate) const SEQUENCE_MASK: u64 = (1 << 48) - 1;

/// What a report says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportPacket<'a> {
    /// The highest sequence number received, extended; 48 bits.
    pub highest_sequence: u64,
    /// The instant of sending that the newest data packet carried, in nanoseconds.
    pub echoed: Nanos,
    /// Microseconds between that packet's arrival and this report.
    pub held_us: u32,
    /// Bytes of IPv4 datagrams since the report before, in bit/s.
    pub receive_rate_bps: u64,
    /// In parts per billion.
    pub loss_event_ppb: Option<u32>,
    /// Packets, since the report before.
    pub expected: u32,
    pub lost: u32,
    /// SSRC of who reports.
    pub reporter: u32,
    /// What packets' own headers bring back: whole words of 32 bits; empty: nothing.
    pub header: &'a [u8],
}

impl<'a> ReportPacket<'a> {
    pub fn emit(&self) -> Vec<u8> {
        let mut bytes = vec![0; REPORT_BYTES];
        let flags = if self.loss_event_ppb.is_some() { HAS_LOSS_EVENT_RATE } else { 0 };
        let first = u64::from(VERSION << 4 | TYPE_REPORT) << 56 | u64::from(flags) << 48 | self.highest_sequence & SEQUENCE_MASK;
        bytes[..8].copy_from_slice(&first.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.echoed.to_be_bytes());
        bytes[16..20].copy_from_slice(&self.held_us.to_be_bytes());
        bytes[20..28].copy_from_slice(&self.receive_rate_bps.to_be_bytes());
        let words = [self.loss_event_ppb.unwrap_or(0), self.expected, self.lost, self.reporter];
        for (place, word) in bytes[28..].chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        bytes.extend_from_slice(self.header);
        bytes
    }

    /// `None` for what is no report of this version.
    pub fn parse(payload: &'a [u8]) -> Option<ReportPacket<'a>> {
        let (bytes, header) = payload.split_first_chunk::<REPORT_BYTES>().filter(|(_, header)| header.len().is_multiple_of(4))?;
        let word = |at: usize| bytes[at..].first_chunk::<4>().map_or(0, |word| u32::from_be_bytes(*word));
        let double = |at: usize| u64::from(word(at)) << 32 | u64::from(word(at + 4));
        if bytes[0] != VERSION << 4 | TYPE_REPORT {
            return None;
        }
        Some(ReportPacket {
            highest_sequence: double(0) & SEQUENCE_MASK,
            echoed: double(8),
            held_us: word(16),
            receive_rate_bps: double(20),
            loss_event_ppb: (bytes[1] & HAS_LOSS_EVENT_RATE != 0).then(|| word(28)),
            expected: word(32),
            lost: word(36),
            reporter: word(40),
            header,
        })
    }

    /// What the sender's algorithm is told.
    pub fn feedback(&self, now: Nanos) -> Feedback<'a> {
        let held = Nanos::from(self.held_us) * 1000;
        let loss = if self.expected == 0 { 0.0 } else { f64::from(self.lost) / f64::from(self.expected) };
        Feedback {
            reporter: self.reporter,
            loss_fraction: loss.min(1.0),
            rtt_s: Some(seconds(now.saturating_sub(self.echoed).saturating_sub(held))),
            receive_rate_bps: Some(self.receive_rate_bps as f64),
            loss_event_rate: self.loss_event_ppb.map(|ppb| f64::from(ppb) / PARTS_PER_BILLION),
            header: self.header,
            ..Feedback::default()
        }
    }
}

/// A loss event rate as the field holds it: rounded half to even, limited to 0..=1.
pub(crate) fn loss_event_field(rate: f64) -> u32 {
    (rate.clamp(0.0, 1.0) * PARTS_PER_BILLION).round_ties_even() as u32
}

/// At the receiver: what has been reported, so that each report speaks of the time since the one before.
#[derive(Debug, Default)]
pub(crate) struct ReportBook {
    /// When the previous report left; before the first: when the first packet arrived.
    since: Nanos,
    bytes: u64,
    expected: u64,
    received: u64,
}

impl ReportBook {
    /// A source's first packet, of `total_bytes` counted so far, came now. The first rate is of what follows it.
    pub(crate) fn begin(&mut self, now: Nanos, total_bytes: u64) {
        *self = ReportBook { since: now, bytes: total_bytes, expected: 0, received: 0 };
    }

    /// Closes the interval: bit/s, expected and lost packets in it. A rate over no time is 0.
    pub(crate) fn close(&mut self, now: Nanos, bytes: u64, expected: u64, received: u64) -> (u64, u32, u32) {
        let elapsed = u128::from(now.saturating_sub(self.since));
        let bits = u128::from(bytes.saturating_sub(self.bytes)) * 8;
        let rate = u64::try_from((bits * 1_000_000_000).checked_div(elapsed).unwrap_or(0)).unwrap_or(u64::MAX);
        let (expected_now, received_now) = (expected.saturating_sub(self.expected), received.saturating_sub(self.received));
        let narrow = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        *self = ReportBook { since: now, bytes, expected, received };
        (rate, narrow(expected_now), narrow(expected_now.saturating_sub(received_now)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn reports_read_back(
            highest_sequence in 0..=SEQUENCE_MASK, echoed: u64, held_us: u32, receive_rate_bps: u64,
            loss_event_ppb: Option<u32>, (expected, lost, reporter) in any::<(u32, u32, u32)>(), words in prop::collection::vec(any::<u32>(), 0..4),
        ) {
            let header: &[u8] = &words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<_>>();
            let report = ReportPacket { highest_sequence, echoed, held_us, receive_rate_bps, loss_event_ppb, expected, lost, reporter, header };
            let bytes = report.emit();
            prop_assert_eq!(ReportPacket::parse(&bytes), Some(report));
        }

        /// Whatever comes from the network: fractions are fractions, and no time is negative.
        #[test]
        fn forged_reports_are_within_their_ranges(bytes in prop::collection::vec(any::<u8>(), 42..46), now: u64) {
            let mut bytes = bytes;
            bytes[0] = 0x12;
            if let Some(feedback) = ReportPacket::parse(&bytes).map(|report| report.feedback(now)) {
                prop_assert!((0.0..=1.0).contains(&feedback.loss_fraction));
                prop_assert!(feedback.rtt_s.is_some_and(|rtt| rtt >= 0.0 && rtt.is_finite()));
            }
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_description() {
        let report = ReportPacket {
            highest_sequence: 0x0102_0304_0506,
            echoed: 0x1112_1314_1516_1718,
            held_us: 0x2122_2324,
            receive_rate_bps: 0x3132_3334_3536_3738,
            loss_event_ppb: Some(0x4142_4344),
            expected: 0x5152_5354,
            lost: 0x6162_6364,
            reporter: 0x7172_7374,
            header: &[],
        };
        let said: String = report.emit().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(said, "1201010203040506111213141516171821222324313233343536373841424344515253546162636471727374");
        assert!(ReportPacket::parse(&report.emit()[..43]).is_none());
    }

    #[test]
    fn intervals_follow_each_other_without_gap() {
        let mut book = ReportBook::default();
        book.begin(1_000_000_000, 1000);
        // Nine packets of 1000 bytes in a second, of ten that were expected with the first.
        assert_eq!(book.close(2_000_000_000, 10_000, 11, 10), (72_000, 11, 1));
        assert_eq!(book.close(2_000_000_000, 10_000, 11, 10), (0, 0, 0));
        assert_eq!(book.close(2_500_000_000, 15_000, 16, 15), (80_000, 5, 0));
    }
}
