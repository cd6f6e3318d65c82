//! TCP headers as bytes [RFC 9293 sec 3.1], with the options MSS, window scale, SACK-permitted, SACK and timestamps.

use crate::segment::{Flags, SackBlocks, Segment, Timestamps};

/// A header without options, in bytes.
pub const MIN_HEADER: usize = 20;
/// The longest header: 15 words.
pub const MAX_HEADER: usize = 60;

/// Ports and segment: what a TCP header says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    pub source_port: u16,
    pub destination_port: u16,
    pub segment: Segment,
}

/// Why bytes are no TCP header, or a header does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    #[error("a TCP header needs at least 20 bytes, there are {0}")]
    Short(usize),
    #[error("TCP data offset of {0} words: it must be 5 to 15 and the header must be there in full")]
    DataOffset(u8),
    #[error("TCP option {kind} at byte {at} of the header has a wrong length")]
    OptionLength { kind: u8, at: usize },
    #[error("TCP length {total} is less than the header's {header} bytes")]
    TotalLength { total: usize, header: usize },
    #[error("the options take {0} bytes, and 40 fit: give at most 3 SACK blocks beside timestamps")]
    OptionsTooLong(usize),
}

const OPT_END: u8 = 0;
const OPT_NOP: u8 = 1;
const OPT_MSS: u8 = 2;
const OPT_WINDOW_SCALE: u8 = 3;
const OPT_SACK_PERMITTED: u8 = 4;
const OPT_SACK: u8 = 5;
const OPT_TIMESTAMPS: u8 = 8;

/// The header's length in bytes, options and padding included.
pub fn header_len(segment: &Segment) -> usize {
    MIN_HEADER + options_len(segment).next_multiple_of(4)
}

fn options_len(segment: &Segment) -> usize {
    let syn = &segment.syn_options;
    let sack = segment.sack.as_slice().len();
    syn.mss.map_or(0, |_| 4)
        + syn.window_scale.map_or(0, |_| 4)
        + if syn.sack_permitted { 4 } else { 0 }
        + segment.timestamps.map_or(0, |_| 12)
        + if sack > 0 { 4 + 8 * sack } else { 0 }
}

/// Appends the header, checksum 0, to `out`; returns its length. Nothing is appended on an error.
///
/// # Errors
/// Options that do not fit in 40 bytes.
pub fn emit(header: &Header, out: &mut Vec<u8>) -> Result<usize, WireError> {
    let segment = &header.segment;
    let len = header_len(segment);
    if len > MAX_HEADER {
        return Err(WireError::OptionsTooLong(len - MIN_HEADER));
    }
    let start = out.len();
    out.extend_from_slice(&header.source_port.to_be_bytes());
    out.extend_from_slice(&header.destination_port.to_be_bytes());
    out.extend_from_slice(&segment.seq.to_be_bytes());
    out.extend_from_slice(&segment.ack.to_be_bytes());
    out.push((len as u8 / 4) << 4 | u8::from(segment.ae));
    out.push(segment.flags.0);
    out.extend_from_slice(&segment.window.to_be_bytes());
    // checksum and urgent pointer
    out.extend_from_slice(&[0; 4]);
    if let Some(mss) = segment.syn_options.mss {
        out.extend_from_slice(&[OPT_MSS, 4]);
        out.extend_from_slice(&mss.to_be_bytes());
    }
    if let Some(shift) = segment.syn_options.window_scale {
        out.extend_from_slice(&[OPT_NOP, OPT_WINDOW_SCALE, 3, shift]);
    }
    if segment.syn_options.sack_permitted {
        out.extend_from_slice(&[OPT_NOP, OPT_NOP, OPT_SACK_PERMITTED, 2]);
    }
    if let Some(ts) = segment.timestamps {
        out.extend_from_slice(&[OPT_NOP, OPT_NOP, OPT_TIMESTAMPS, 10]);
        out.extend_from_slice(&ts.value.to_be_bytes());
        out.extend_from_slice(&ts.echo.to_be_bytes());
    }
    let blocks = segment.sack.as_slice();
    if !blocks.is_empty() {
        out.extend_from_slice(&[OPT_NOP, OPT_NOP, OPT_SACK, 2 + 8 * blocks.len() as u8]);
        for (left, right) in blocks {
            out.extend_from_slice(&left.to_be_bytes());
            out.extend_from_slice(&right.to_be_bytes());
        }
    }
    out.resize(start + len, OPT_END);
    Ok(len)
}

/// Reads the header at the start of `bytes`. `total_len` is the TCP length that the IP header gives (header and payload); the
/// payload itself need not be there. Unknown options are skipped; the checksum is not looked at.
///
/// # Errors
/// A header cut short, or an option whose length cannot be.
pub fn parse(bytes: &[u8], total_len: usize) -> Result<Header, WireError> {
    let Some(fixed) = bytes.first_chunk::<MIN_HEADER>() else { return Err(WireError::Short(bytes.len())) };
    let word = |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    let half = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    let words = fixed[12] >> 4;
    let len = usize::from(words) * 4;
    let options = bytes.get(MIN_HEADER..len).filter(|_| words >= 5).ok_or(WireError::DataOffset(words))?;
    let payload_len = total_len.checked_sub(len).ok_or(WireError::TotalLength { total: total_len, header: len })?;
    let mut segment = Segment {
        seq: word(4),
        ack: word(8),
        flags: Flags(fixed[13]),
        ae: fixed[12] & 1 == 1,
        window: half(14),
        payload_len: u32::try_from(payload_len).unwrap_or(u32::MAX),
        ..Segment::default()
    };
    parse_options(options, &mut segment)?;
    Ok(Header { source_port: half(0), destination_port: half(2), segment })
}

fn parse_options(options: &[u8], segment: &mut Segment) -> Result<(), WireError> {
    let mut at = 0;
    while let Some(&kind) = options.get(at) {
        match kind {
            OPT_END => break,
            OPT_NOP => {
                at += 1;
                continue;
            }
            _ => {}
        }
        let error = WireError::OptionLength { kind, at: MIN_HEADER + at };
        let len = usize::from(*options.get(at + 1).ok_or(error)?);
        let body = options.get(at + 2..at + len).ok_or(error)?;
        let word = |i: usize| u32::from_be_bytes([body[i], body[i + 1], body[i + 2], body[i + 3]]);
        match (kind, body.len()) {
            (OPT_MSS, 2) => segment.syn_options.mss = Some(u16::from_be_bytes([body[0], body[1]])),
            (OPT_WINDOW_SCALE, 1) => segment.syn_options.window_scale = Some(body[0]),
            (OPT_SACK_PERMITTED, 0) => segment.syn_options.sack_permitted = true,
            (OPT_TIMESTAMPS, 8) => {
                segment.timestamps = Some(Timestamps { value: word(0), echo: word(4) });
            }
            (OPT_SACK, 8 | 16 | 24 | 32) => {
                segment.sack = SackBlocks::default();
                for i in (0..body.len()).step_by(8) {
                    segment.sack.push(word(i), word(i + 4));
                }
            }
            (OPT_MSS | OPT_WINDOW_SCALE | OPT_SACK_PERMITTED | OPT_TIMESTAMPS | OPT_SACK, _) => return Err(error),
            _ => {}
        }
        at += len;
    }
    Ok(())
}

/// The checksum of a header over IPv4 [RFC 9293 sec 3.1] whose payload is `payload_len` zero bytes; put it at byte 16.
/// `header` must hold the whole header with checksum 0.
pub fn checksum_ipv4(header: &[u8], payload_len: u32, source: [u8; 4], destination: [u8; 4]) -> u16 {
    let tcp_len = header.len() as u32 + payload_len;
    let pseudo = [[0, 6], [(tcp_len >> 8) as u8, tcp_len as u8]];
    let pairs = source.chunks(2).chain(destination.chunks(2)).chain(pseudo.iter().map(|p| &p[..]));
    let sum: u32 = pairs.chain(header.chunks(2)).map(|p| u32::from(u16::from_be_bytes([p[0], p.get(1).copied().unwrap_or(0)]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::SynOptions;
    use proptest::prelude::*;

    fn segments() -> impl Strategy<Value = Segment> {
        let sack = prop::collection::vec(any::<(u32, u32)>(), 0..=4).prop_map(|pairs| {
            let mut blocks = SackBlocks::default();
            for (left, right) in pairs {
                blocks.push(left, right);
            }
            blocks
        });
        let timestamps = prop::option::of(any::<(u32, u32)>().prop_map(|(value, echo)| Timestamps { value, echo }));
        let syn = any::<(Option<u16>, Option<u8>, bool)>().prop_map(|(mss, window_scale, sack_permitted)| SynOptions {
            mss,
            window_scale,
            sack_permitted,
        });
        (any::<(u32, u32, u8, bool, u16)>(), 0u32..65_000, sack, timestamps, syn).prop_map(
            |((seq, ack, flags, ae, window), payload_len, sack, timestamps, syn_options)| Segment {
                seq,
                ack,
                flags: Flags(flags),
                ae,
                window,
                payload_len,
                sack,
                timestamps,
                syn_options,
            },
        )
    }

    proptest! {
        #[test]
        fn parse_of_emit_is_the_header(segment in segments(), ports: (u16, u16)) {
            let header = Header { source_port: ports.0, destination_port: ports.1, segment };
            let mut bytes = vec![];
            match emit(&header, &mut bytes) {
                Ok(len) => {
                    prop_assert_eq!(len, bytes.len());
                    prop_assert_eq!(parse(&bytes, len + segment.payload_len as usize), Ok(header));
                }
                Err(WireError::OptionsTooLong(n)) => prop_assert!(n > 40 && bytes.is_empty()),
                Err(e) => prop_assert!(false, "{}", e),
            }
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), total in 0usize..70_000) {
            let _ = parse(&bytes, total);
        }
    }

    /// The bytes that scapy 2.7 makes of the same headers, its checksums over 10.0.0.1 and 10.0.0.2 included.
    #[test]
    fn bytes_are_those_of_another_implementation() {
        let syn = Segment {
            seq: 0x0102_0304,
            flags: Flags::SYN.with(Flags::ECE).with(Flags::CWR),
            window: 65_535,
            syn_options: SynOptions { mss: Some(1460), window_scale: Some(7), sack_permitted: true },
            timestamps: Some(Timestamps { value: 1000, echo: 0 }),
            ..Segment::default()
        };
        let mut ack = Segment { seq: 78, ack: 0xffff_fff0, flags: Flags::ACK, window: 512, ..Segment::default() };
        ack.sack.push(0xffff_fff8, 100);
        ack.sack.push(200, 300);
        for (ports, segment, hex) in [
            ((40_000, 5001), syn, "9c4013890102030400000000b0c2ffff69800000020405b401030307010104020101080a000003e800000000"),
            ((5001, 40_000), ack, "13899c400000004efffffff0a01002009151000001010512fffffff800000064000000c80000012c"),
        ] {
            let header = Header { source_port: ports.0, destination_port: ports.1, segment };
            let mut bytes = vec![];
            emit(&header, &mut bytes).unwrap();
            let sum = checksum_ipv4(&bytes, 0, [10, 0, 0, 1], [10, 0, 0, 2]);
            bytes[16..18].copy_from_slice(&sum.to_be_bytes());
            let ours: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
            assert_eq!(ours, hex);
            assert_eq!(parse(&bytes, bytes.len()), Ok(header));
        }
    }

    #[test]
    fn malformed_options_are_refused() {
        let mut bytes = vec![0; 24];
        bytes[12] = 6 << 4;
        bytes[20..24].copy_from_slice(&[OPT_MSS, 3, 0, 0]);
        assert_eq!(parse(&bytes, 24), Err(WireError::OptionLength { kind: OPT_MSS, at: 20 }));
        bytes[21] = 0;
        assert_eq!(parse(&bytes, 24), Err(WireError::OptionLength { kind: OPT_MSS, at: 20 }));
        bytes[21] = 40;
        assert_eq!(parse(&bytes, 24), Err(WireError::OptionLength { kind: OPT_MSS, at: 20 }));
        bytes[20..24].copy_from_slice(&[99, 4, 1, 2]);
        assert!(parse(&bytes, 24).is_ok(), "an unknown option is skipped");
        assert_eq!(parse(&bytes, 10), Err(WireError::TotalLength { total: 10, header: 24 }));
        bytes[12] = 4 << 4;
        assert_eq!(parse(&bytes, 24), Err(WireError::DataOffset(4)));
        assert_eq!(parse(&bytes[..19], 24), Err(WireError::Short(19)));
    }

    #[test]
    fn checksum_makes_the_sum_all_ones() {
        let segment = Segment { seq: 0xdead_beef, ack: 7, flags: Flags::ACK, window: 512, payload_len: 960, ..Segment::default() };
        let mut bytes = vec![];
        emit(&Header { source_port: 5000, destination_port: 80, segment }, &mut bytes).unwrap();
        let (from, to) = ([10, 0, 0, 1], [10, 0, 0, 2]);
        let sum = checksum_ipv4(&bytes, 960, from, to);
        bytes[16..18].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(checksum_ipv4(&bytes, 960, from, to), 0);
    }
}
