//! RTP congestion control feedback, the RTCP packet of RFC 8888: which packets arrived, when, and with which ECN field.
//!
//! `num_reports` counts the metric blocks: "begin_seq to begin_seq+num_reports inclusive" [RFC 8888 sec 3.1] would be one more, and with
//! 0 there are none.

/// Transport-layer feedback [RFC 4585 sec 6.1].
pub const RTPFB: u8 = 205;
/// Of congestion control feedback, among transport-layer feedback [RFC 8888 sec 3.1].
pub const FMT: u8 = 11;
/// Metric blocks in a report block, at most: a quarter of the sequence numbers.
pub const MAX_PACKETS: usize = 16_384;
/// Bytes of a packet without metric blocks about one source: header, SSRC and range of the source, report timestamp.
pub const LEAST_BYTES: usize = 20;
/// Of a metric block.
pub const METRIC_BYTES: usize = 2;

const RECEIVED: u16 = 0x8000;
const ECN_SHIFT: u32 = 13;
const OFFSET_MASK: u16 = 0x1fff;
/// The greatest offset that is a measurement.
const GREATEST_OFFSET: u16 = 0x1ffd;
const OVER_RANGE: u16 = 0x1ffe;
const UNAVAILABLE: u16 = 0x1fff;
/// Of an NTP timestamp's fraction in 1/1024 s.
const OFFSET_SHIFT: u32 = 22;

/// How long before the report's instant a packet arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offset {
    /// In 1/1024 s, 0 to 8189.
    Units(u16),
    /// More than 8189/1024 s.
    OverRange,
    /// It is not known, or the packet arrived after that instant.
    Unavailable,
}

impl Offset {
    /// From the packet's arrival to the report's instant, to the nearest unit.
    pub fn between(arrival_ntp: u64, report_timestamp: u32) -> Offset {
        let before = (u64::from(report_timestamp) << 16).wrapping_sub(arrival_ntp) << 16 >> 16;
        if before >> 47 == 1 {
            return Offset::Unavailable;
        }
        if before > u64::from(GREATEST_OFFSET) << OFFSET_SHIFT {
            return Offset::OverRange;
        }
        Offset::Units(((before + (1 << (OFFSET_SHIFT - 1))) >> OFFSET_SHIFT) as u16)
    }

    /// The 13 bits of the field.
    pub fn field(self) -> u16 {
        match self {
            Offset::Units(units) => units.min(GREATEST_OFFSET),
            Offset::OverRange => OVER_RANGE,
            Offset::Unavailable => UNAVAILABLE,
        }
    }

    /// What the field's 13 bits say.
    pub fn of_field(bits: u16) -> Offset {
        match bits & OFFSET_MASK {
            OVER_RANGE => Offset::OverRange,
            UNAVAILABLE => Offset::Unavailable,
            units => Offset::Units(units),
        }
    }

    /// `None` where there is no measurement.
    pub fn seconds(self) -> Option<f64> {
        match self {
            Offset::Units(units) => Some(f64::from(units) / 1024.0),
            Offset::OverRange | Offset::Unavailable => None,
        }
    }
}

/// The report's instant: the first of the timestamp's resolution that is not before `ntp`, so that nothing that has arrived is after it.
pub fn report_timestamp(ntp: u64) -> u32 {
    (ntp.wrapping_add(0xffff) >> 16) as u32
}

/// From a report's instant to `ntp`, in seconds: negative where the clock that made the report is ahead.
pub fn age_s(report_timestamp: u32, ntp: u64) -> f64 {
    let age = (ntp.wrapping_sub(u64::from(report_timestamp) << 16) << 16) as i64 >> 16;
    age as f64 / 4_294_967_296.0
}

/// A packet that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Its ECN field, two bits.
    pub ecn: u8,
    pub offset: Offset,
}

impl Metric {
    fn bits(metric: Option<Metric>) -> u16 {
        metric.map_or(0, |Metric { ecn, offset }| RECEIVED | u16::from(ecn & 0b11) << ECN_SHIFT | offset.field())
    }

    /// Of a packet that was not received the other bits mean nothing.
    fn of(bits: u16) -> Option<Metric> {
        (bits & RECEIVED != 0).then(|| Metric { ecn: (bits >> ECN_SHIFT) as u8 & 0b11, offset: Offset::of_field(bits) })
    }
}

/// What is reported of one RTP stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StreamReport {
    pub ssrc: u32,
    /// RTP sequence number of the first of `packets`.
    pub begin: u16,
    /// One for each number from `begin` on; `None`: not received yet. At most [`MAX_PACKETS`].
    pub packets: Vec<Option<Metric>>,
}

/// One packet of congestion control feedback.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CongestionFeedback {
    /// Of its sender: the receiver of the streams.
    pub ssrc: u32,
    pub streams: Vec<StreamReport>,
    /// The middle 32 bits of the NTP timestamp from which offsets count.
    pub timestamp: u32,
}

impl CongestionFeedback {
    /// Appends the packet's bytes, with its RTCP header. Of a stream the first [`MAX_PACKETS`] are written.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0x80 | FMT, RTPFB, 0, 0]);
        out.extend_from_slice(&self.ssrc.to_be_bytes());
        for stream in &self.streams {
            let packets = &stream.packets[..stream.packets.len().min(MAX_PACKETS)];
            out.extend_from_slice(&stream.ssrc.to_be_bytes());
            out.extend_from_slice(&stream.begin.to_be_bytes());
            out.extend_from_slice(&(packets.len() as u16).to_be_bytes());
            for &packet in packets {
                out.extend_from_slice(&Metric::bits(packet).to_be_bytes());
            }
            if packets.len() % 2 == 1 {
                out.extend_from_slice(&[0, 0]);
            }
        }
        out.extend_from_slice(&self.timestamp.to_be_bytes());
        let words = ((out.len() - start) / 4 - 1) as u16;
        out[start + 2..start + 4].copy_from_slice(&words.to_be_bytes());
    }

    /// Reads what follows the packet's first 32 bits, without padding. `None` when a report block is cut off or has more metric blocks
    /// than it may.
    pub fn parse(body: &[u8]) -> Option<CongestionFeedback> {
        let (ssrc, rest) = body.split_first_chunk::<4>()?;
        let (mut rest, timestamp) = rest.split_last_chunk::<4>()?;
        let mut streams = Vec::new();
        while !rest.is_empty() {
            let (ssrc, after) = rest.split_first_chunk::<4>()?;
            let (begin, after) = after.split_first_chunk::<2>()?;
            let (count, after) = after.split_first_chunk::<2>()?;
            let count = usize::from(u16::from_be_bytes(*count));
            let metrics = after.get(..METRIC_BYTES * count).filter(|_| count <= MAX_PACKETS)?;
            let packets = metrics.chunks_exact(METRIC_BYTES).map(|bits| Metric::of(u16::from_be_bytes([bits[0], bits[1]]))).collect();
            streams.push(StreamReport { ssrc: u32::from_be_bytes(*ssrc), begin: u16::from_be_bytes(*begin), packets });
            rest = after.get(METRIC_BYTES * (count + count % 2)..)?;
        }
        Some(CongestionFeedback { ssrc: u32::from_be_bytes(*ssrc), streams, timestamp: u32::from_be_bytes(*timestamp) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(units: u16) -> Option<Metric> {
        Some(Metric { ecn: 0, offset: Offset::Units(units) })
    }

    /// The bytes are those of the tests of github.com/pion/rtcp at 11478d1, `rfc8888_test.go`: an implementation of others.
    #[test]
    fn bytes_of_pions_tests() {
        let empty = [0x8b, 0xcd, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1];
        let report = [
            0x8b, 0xcd, 0, 10, 0, 0, 0, 1, // V=2, FMT=11, PT=205, length 10; SSRC 1
            0, 0, 0, 1, 0, 2, 0, 4, 0x9f, 0xfd, 0x9f, 0xfc, 0, 0, 0, 0, // SSRC 1: four from 2 on
            0, 0, 0, 2, 0, 2, 0, 3, 0x9f, 0xfd, 0x9f, 0xfc, 0, 0, 0, 0, // SSRC 2: three, and padding
            0, 0, 0, 1,
        ];
        let stream = |ssrc, packets| StreamReport { ssrc, begin: 2, packets };
        let streams = vec![stream(1, vec![at(8189), at(8188), None, None]), stream(2, vec![at(8189), at(8188), None])];
        for (bytes, streams) in [(&empty[..], vec![]), (&report[..], streams)] {
            let feedback = CongestionFeedback { ssrc: 1, streams, timestamp: 1 };
            let mut written = Vec::new();
            feedback.emit(&mut written);
            assert_eq!(written, bytes);
            assert_eq!(CongestionFeedback::parse(&bytes[4..]), Some(feedback));
        }
        let metrics = [
            (0x0000, None),
            (0x8000, at(0)),
            (0x9ffd, at(8189)),
            (0x9ffe, Some(Metric { ecn: 0, offset: Offset::OverRange })),
            (0x9fff, Some(Metric { ecn: 0, offset: Offset::Unavailable })),
            (0xfff8, Some(Metric { ecn: 3, offset: Offset::Units(8184) })),
        ];
        for (bits, metric) in metrics {
            assert_eq!((Metric::of(bits), Metric::bits(metric)), (metric, bits));
        }
        // "MUST be ignored" of a packet that was not received [RFC 8888 sec 3.1].
        assert_eq!([0x6200, 0x2200].map(Metric::of), [None, None]);
        // Six metric blocks where there are four.
        assert_eq!(CongestionFeedback::parse(&[0, 0, 0, 9, 0, 0, 0, 1, 0, 2, 0, 6, 0x9f, 0xfd, 0x9f, 0xfc, 0, 0, 0, 0, 0, 0, 0, 1]), None);
    }

    /// [RFC 8888 sec 3.1]: 512 is exactly half a second; above 8189/1024 s 0x1FFE; after the report's instant 0x1FFF.
    #[test]
    fn offsets_by_the_text() {
        let second = 1u64 << 32;
        let rts = 0x0001_0000; // one second
        let arrived = |before: u64| Offset::between((1u64 << 48) + second - before, rts);
        assert_eq!(arrived(0), Offset::Units(0));
        assert_eq!(arrived(second / 2), Offset::Units(512));
        assert_eq!(arrived(second / 1024 * 8189), Offset::Units(8189));
        assert_eq!(arrived(second / 1024 * 8189 + 1), Offset::OverRange);
        assert_eq!(Offset::between(second + 1, rts), Offset::Unavailable);
        // Over the wrap of the timestamp, each 18 hours.
        assert_eq!(Offset::between(0x1234_ffff_8000_0000, 0), Offset::Units(512));
        assert_eq!(Offset::Units(512).seconds(), Some(0.5));
        assert_eq!(age_s(0xffff_0000, 0x1235_0000_8000_0000), 1.5);
        assert_eq!(age_s(rts, 0), -1.0);
    }

    #[test]
    fn a_report_is_not_before_what_it_reports() {
        assert_eq!(report_timestamp(0x0102_0304_0506_0000), 0x0304_0506);
        assert_eq!(report_timestamp(0x0102_0304_0506_0001), 0x0304_0507);
        assert_eq!(report_timestamp(0x0102_ffff_ffff_0001), 0);
    }

    /// "MUST NOT include more than 16384" [RFC 8888 sec 3.1].
    #[test]
    fn a_quarter_of_the_numbers_at_most() {
        let stream = StreamReport { ssrc: 1, begin: 65_000, packets: vec![at(1); MAX_PACKETS + 3] };
        let mut bytes = Vec::new();
        CongestionFeedback { ssrc: 2, streams: vec![stream], timestamp: 0 }.emit(&mut bytes);
        let read = CongestionFeedback::parse(&bytes[4..]).expect("is whole");
        assert_eq!(read.streams[0].packets.len(), MAX_PACKETS);
        assert_eq!(bytes.len(), LEAST_BYTES + METRIC_BYTES * MAX_PACKETS);
        let mut more = vec![0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0x40, 1];
        more.resize(more.len() + 2 * 16_386 + 4, 0x80);
        assert_eq!(CongestionFeedback::parse(&more), None);
    }

    fn feedback() -> impl Strategy<Value = CongestionFeedback> {
        let offset = prop_oneof![(0..=GREATEST_OFFSET).prop_map(Offset::Units), Just(Offset::OverRange), Just(Offset::Unavailable)];
        let metric = prop::option::of((0u8..4, offset).prop_map(|(ecn, offset)| Metric { ecn, offset }));
        let stream = (any::<u32>(), any::<u16>(), prop::collection::vec(metric, 0..40));
        let stream = stream.prop_map(|(ssrc, begin, packets)| StreamReport { ssrc, begin, packets });
        (any::<u32>(), prop::collection::vec(stream, 0..5), any::<u32>()).prop_map(|(ssrc, streams, timestamp)| CongestionFeedback {
            ssrc,
            streams,
            timestamp,
        })
    }

    proptest! {
        #[test]
        fn reads_what_it_wrote(feedback in feedback()) {
            let mut bytes = Vec::new();
            feedback.emit(&mut bytes);
            prop_assert_eq!(bytes.len(), 4 + 4 * usize::from(u16::from_be_bytes([bytes[2], bytes[3]])));
            prop_assert_eq!(CongestionFeedback::parse(&bytes[4..]), Some(feedback));
        }

        /// Whatever is read is written back as it was, but for bits that mean nothing.
        #[test]
        fn survives_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            if let Some(read) = CongestionFeedback::parse(&bytes) {
                let mut written = Vec::new();
                read.emit(&mut written);
                prop_assert_eq!(written.len(), 4 + bytes.len());
                prop_assert_eq!(CongestionFeedback::parse(&written[4..]), Some(read));
            }
        }

        #[test]
        fn offsets_are_within_half_a_unit(arrival: u64, before in 0u64..8 << 32) {
            let rts = report_timestamp(arrival.wrapping_add(before));
            let exact = before + ((u64::from(rts) << 16).wrapping_sub(arrival.wrapping_add(before)) << 16 >> 16);
            match Offset::between(arrival, rts) {
                Offset::Units(units) => prop_assert!((u64::from(units) << OFFSET_SHIFT).abs_diff(exact) <= 1 << (OFFSET_SHIFT - 1)),
                Offset::OverRange => prop_assert!(exact > 8189 << OFFSET_SHIFT),
                Offset::Unavailable => prop_assert!(false),
            }
        }
    }
}
