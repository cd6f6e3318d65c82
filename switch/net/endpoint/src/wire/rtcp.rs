//! RTCP compounds [RFC 3550 sec 6] with ALS's addition, the APP packet `ALSF` (docs/architecture.md, "ALS on the wire").
//! A compound is written as report, SDES with a CNAME, ALSF, congestion control feedback (RFC 8888), BYE.

use crate::wire::ccfb::{self, CongestionFeedback, RTPFB};

pub const SR: u8 = 200;
pub const RR: u8 = 201;
pub const SDES: u8 = 202;
pub const BYE: u8 = 203;
pub const APP: u8 = 204;
const CNAME: u8 = 1;
const ALSF: [u8; 4] = *b"ALSF";
const FROM_SENDER: u8 = 0;
const FROM_RECEIVER: u8 = 1;

/// One reception report [RFC 3550 sec 6.4.1].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReportBlock {
    /// The source this is about.
    pub ssrc: u32,
    /// Lost since the previous report, in 1/256, rounded down.
    pub fraction_lost: u8,
    /// Since the beginning; signed 24 bits.
    pub cumulative_lost: i32,
    pub extended_highest_sequence: u32,
    /// In timestamp units.
    pub jitter: u32,
    /// Middle of the last SR's NTP timestamp; 0 = none.
    pub lsr: u32,
    /// Delay since that SR in 1/65536 s.
    pub dlsr: u32,
}

/// What an SR says of its sender [RFC 3550 sec 6.4.1].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderInfo {
    pub ntp: u64,
    pub rtp_timestamp: u32,
    pub packet_count: u32,
    pub octet_count: u32,
}

/// The layer list of ALSF: group address and rate in bit/s.
pub type LayerEntry = (u32, u64);

/// What an ALSF packet says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Alsf {
    pub ssrc: u32,
    /// R_d in bit/s.
    pub desired_rate_bps: u64,
    /// U in parts per million.
    pub utilisation_ppm: u32,
    /// Empty from a receiver.
    pub layers: Vec<LayerEntry>,
}

/// A compound to be written, or the parts of one that were understood.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Compound {
    /// Of the leading report.
    pub ssrc: u32,
    /// `Some`: the report is an SR.
    pub sender: Option<SenderInfo>,
    pub blocks: Vec<ReportBlock>,
    pub cname: Vec<u8>,
    /// The first well-formed ALSF of each direction.
    pub from_sender: Option<Alsf>,
    pub from_receiver: Option<Alsf>,
    pub congestion: Vec<CongestionFeedback>,
    /// Sources that say goodbye.
    pub bye: Vec<u32>,
}

fn header(out: &mut Vec<u8>, count: u8, kind: u8) -> usize {
    out.extend_from_slice(&[0x80 | count, kind, 0, 0]);
    out.len() - 4
}

/// Fills in the length of the packet that began at `start`: words minus one.
fn close(out: &mut [u8], start: usize) {
    let words = ((out.len() - start) / 4 - 1) as u16;
    out[start + 2..start + 4].copy_from_slice(&words.to_be_bytes());
}

impl Compound {
    /// Appends the compound's bytes. At most 31 blocks and 31 goodbyes are written, and 255 bytes of CNAME.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let blocks = &self.blocks[..self.blocks.len().min(31)];
        let start = header(out, blocks.len() as u8, if self.sender.is_some() { SR } else { RR });
        out.extend_from_slice(&self.ssrc.to_be_bytes());
        if let Some(sender) = &self.sender {
            out.extend_from_slice(&sender.ntp.to_be_bytes());
            for word in [sender.rtp_timestamp, sender.packet_count, sender.octet_count] {
                out.extend_from_slice(&word.to_be_bytes());
            }
        }
        for block in blocks {
            let lost = block.cumulative_lost.clamp(-0x80_0000, 0x7f_ffff) as u32 & 0xff_ffff;
            let loss = u32::from(block.fraction_lost) << 24 | lost;
            for word in [block.ssrc, loss, block.extended_highest_sequence, block.jitter, block.lsr, block.dlsr] {
                out.extend_from_slice(&word.to_be_bytes());
            }
        }
        close(out, start);

        let start = header(out, 1, SDES);
        let chunk = out.len();
        out.extend_from_slice(&self.ssrc.to_be_bytes());
        let cname = &self.cname[..self.cname.len().min(255)];
        out.extend_from_slice(&[CNAME, cname.len() as u8]);
        out.extend_from_slice(cname);
        // At least one null ends the items, and fills the word [RFC 3550 sec 6.5].
        let padding = 4 - (out.len() - chunk) % 4;
        out.resize(out.len() + padding, 0);
        close(out, start);

        for (alsf, subtype) in [(&self.from_sender, FROM_SENDER), (&self.from_receiver, FROM_RECEIVER)] {
            let Some(alsf) = alsf else { continue };
            let start = header(out, subtype, APP);
            out.extend_from_slice(&alsf.ssrc.to_be_bytes());
            out.extend_from_slice(&ALSF);
            out.extend_from_slice(&alsf.desired_rate_bps.to_be_bytes());
            out.extend_from_slice(&alsf.utilisation_ppm.to_be_bytes());
            for (address, rate) in &alsf.layers {
                out.extend_from_slice(&address.to_be_bytes());
                out.extend_from_slice(&rate.to_be_bytes());
            }
            close(out, start);
        }

        self.congestion.iter().for_each(|feedback| feedback.emit(out));

        if !self.bye.is_empty() {
            let gone = &self.bye[..self.bye.len().min(31)];
            let start = header(out, gone.len() as u8, BYE);
            for ssrc in gone {
                out.extend_from_slice(&ssrc.to_be_bytes());
            }
            close(out, start);
        }
    }

    /// Reads a UDP payload. `None` when it is no compound: the checks of [RFC 3550 sec A.2], or a report, SDES, BYE or congestion
    /// control feedback shorter than its count says. Packets of other types are passed over (section 6.1); an ALSF that is not well formed is ignored.
    pub fn parse(payload: &[u8]) -> Option<Compound> {
        Compound::read(payload, false)
    }

    /// Reads a compound, or a packet of reduced size [RFC 5506 sec 4.1]. Such a packet begins with congestion control feedback: "restricting
    /// Reduced-Size RTCP to contain only some specific RTCP packet types" keeps validation strong [RFC 5506 sec 3.4.2].
    pub fn parse_reduced(payload: &[u8]) -> Option<Compound> {
        Compound::read(payload, true)
    }

    fn read(payload: &[u8], reduced: bool) -> Option<Compound> {
        let mut compound = Compound::default();
        let mut rest = payload;
        let mut first = true;
        while first || !rest.is_empty() {
            let head = rest.first_chunk::<4>()?;
            let (count, kind) = (head[0] & 0x1f, head[1]);
            let end = 4 + 4 * usize::from(u16::from_be_bytes([head[2], head[3]]));
            let feedback = (count, kind) == (ccfb::FMT, RTPFB);
            let padded = head[0] & 0x20 != 0;
            if head[0] >> 6 != 2 || end > rest.len() || first && (padded || kind != SR && kind != RR && !(reduced && feedback)) {
                return None;
            }
            let mut body = &rest[4..end];
            if padded {
                let padding = usize::from(*rest.last()?);
                if end != rest.len() || padding == 0 || padding % 4 != 0 || padding > body.len() {
                    return None;
                }
                body = &body[..body.len() - padding];
            }
            match kind {
                SR | RR => compound.report(body, count, kind == SR, first)?,
                BYE => {
                    let sources = body.get(..4 * usize::from(count))?;
                    compound.bye.extend(sources.chunks_exact(4).map(word));
                }
                SDES => compound.description(body, count)?,
                RTPFB if feedback => {
                    let feedback = CongestionFeedback::parse(body)?;
                    if first {
                        compound.ssrc = feedback.ssrc;
                    }
                    compound.congestion.push(feedback);
                }
                APP => {
                    if body.len() < 8 {
                        return None;
                    }
                    if body[4..8] == ALSF {
                        let slot = match count {
                            FROM_SENDER => Some(&mut compound.from_sender),
                            FROM_RECEIVER => Some(&mut compound.from_receiver),
                            _ => None,
                        };
                        if let Some(slot @ None) = slot {
                            *slot = alsf(body, count == FROM_SENDER);
                        }
                    }
                }
                _ => {}
            }
            rest = &rest[end..];
            first = false;
        }
        Some(compound)
    }

    fn report(&mut self, body: &[u8], count: u8, is_sr: bool, first: bool) -> Option<()> {
        let start = if is_sr { 24 } else { 4 };
        let blocks = body.get(start..start + 24 * usize::from(count))?;
        let ssrc = word(&body[..4]);
        if first {
            self.ssrc = ssrc;
            if is_sr {
                let ntp = u64::from(word(&body[4..8])) << 32 | u64::from(word(&body[8..12]));
                let (rtp_timestamp, packet_count) = (word(&body[12..16]), word(&body[16..20]));
                self.sender = Some(SenderInfo { ntp, rtp_timestamp, packet_count, octet_count: word(&body[20..24]) });
            }
        }
        // Reports of another source than the first would be a mixer's (section 6.1); there is none here.
        if ssrc == self.ssrc {
            self.blocks.extend(blocks.chunks_exact(24).map(|block| {
                let loss = word(&block[4..8]);
                ReportBlock {
                    ssrc: word(block),
                    fraction_lost: (loss >> 24) as u8,
                    cumulative_lost: (loss << 8) as i32 >> 8,
                    extended_highest_sequence: word(&block[8..12]),
                    jitter: word(&block[12..16]),
                    lsr: word(&block[16..20]),
                    dlsr: word(&block[20..24]),
                }
            }));
        }
        Some(())
    }

    fn description(&mut self, body: &[u8], count: u8) -> Option<()> {
        let mut at = 0;
        for _ in 0..count {
            body.get(at..at + 4)?;
            at += 4;
            loop {
                match *body.get(at)? {
                    0 => {
                        at += 4 - at % 4;
                        break;
                    }
                    kind => {
                        let length = usize::from(*body.get(at + 1)?);
                        let value = body.get(at + 2..at + 2 + length)?;
                        if kind == CNAME && self.cname.is_empty() {
                            self.cname = value.to_vec();
                        }
                        at += 2 + length;
                    }
                }
            }
        }
        (at == body.len()).then_some(())
    }
}

fn word(bytes: &[u8]) -> u32 {
    bytes.first_chunk::<4>().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

fn double(bytes: &[u8]) -> u64 {
    bytes.first_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

fn alsf(body: &[u8], from_sender: bool) -> Option<Alsf> {
    let list = body.get(20..)?;
    if list.len() % 12 != 0 || !list.is_empty() && !from_sender {
        return None;
    }
    Some(Alsf {
        ssrc: word(body),
        desired_rate_bps: double(&body[8..16]),
        utilisation_ppm: word(&body[16..20]),
        layers: list.chunks_exact(12).map(|layer| (word(layer), double(&layer[4..]))).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ccfb::StreamReport;
    use proptest::prelude::*;

    fn block() -> impl Strategy<Value = ReportBlock> {
        (any::<u32>(), any::<u8>(), -0x80_0000..0x80_0000, any::<(u32, u32, u32, u32)>()).prop_map(
            |(ssrc, fraction_lost, cumulative_lost, (extended_highest_sequence, jitter, lsr, dlsr))| ReportBlock {
                ssrc,
                fraction_lost,
                cumulative_lost,
                extended_highest_sequence,
                jitter,
                lsr,
                dlsr,
            },
        )
    }

    fn compound() -> impl Strategy<Value = Compound> {
        let sender = prop::option::of(any::<(u64, u32, u32, u32)>()).prop_map(|info| {
            info.map(|(ntp, rtp_timestamp, packet_count, octet_count)| SenderInfo { ntp, rtp_timestamp, packet_count, octet_count })
        });
        let layers = prop::collection::vec(any::<(u32, u64)>(), 0..4);
        let stream =
            any::<(u32, u16)>().prop_map(|(ssrc, begin)| StreamReport { ssrc, begin, packets: vec![None; usize::from(begin % 5)] });
        let feedback = (any::<(u32, u32)>(), prop::collection::vec(stream, 0..3));
        let feedback = feedback.prop_map(|((ssrc, timestamp), streams)| CongestionFeedback { ssrc, streams, timestamp });
        let feedback = prop::collection::vec(feedback, 0..2);
        let alsf = |layers| {
            (any::<(u32, u64, u32)>(), layers).prop_map(|((ssrc, desired_rate_bps, utilisation_ppm), layers)| Alsf {
                ssrc,
                desired_rate_bps,
                utilisation_ppm,
                layers,
            })
        };
        (
            any::<u32>(),
            sender,
            prop::collection::vec(block(), 0..32),
            prop::collection::vec(any::<u8>(), 1..60),
            prop::option::of(alsf(layers.boxed())),
            prop::option::of(alsf(Just(Vec::new()).boxed())),
            feedback,
            prop::collection::vec(any::<u32>(), 0..4),
        )
            .prop_map(|(ssrc, sender, blocks, cname, from_sender, from_receiver, congestion, bye)| Compound {
                ssrc,
                sender,
                blocks,
                cname,
                from_sender,
                from_receiver,
                congestion,
                bye,
            })
    }

    /// "contains one or more RTCP packet(s)" [RFC 5506 sec 4.1]: read only where it was agreed on, and only with feedback first.
    #[test]
    fn reduced_size_only_where_it_was_agreed_on() {
        let feedback = CongestionFeedback { ssrc: 9, ..CongestionFeedback::default() };
        let mut bytes = Vec::new();
        feedback.emit(&mut bytes);
        assert_eq!(Compound::parse(&bytes), None);
        assert_eq!(Compound::parse_reduced(&bytes), Some(Compound { ssrc: 9, congestion: vec![feedback], ..Compound::default() }));
        // A generic NACK [RFC 4585 sec 6.2.1], and an SDES: neither comes alone.
        let nack = [0x81, 205, 0, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 5, 0, 0];
        let sdes = [0x81, 202, 0, 2, 0, 0, 0, 1, 1, 0, 0, 0];
        for other in [&nack[..], &sdes] {
            assert_eq!(Compound::parse_reduced(other), None);
            let read = Compound::parse_reduced(&[&bytes, other].concat()).expect("follows the feedback");
            assert_eq!((read.ssrc, read.congestion.len()), (9, 1));
        }
    }

    proptest! {
        #[test]
        fn reads_what_it_wrote(compound in compound()) {
            let mut bytes = Vec::new();
            compound.emit(&mut bytes);
            prop_assert_eq!(Compound::parse(&bytes), Some(compound));
        }

        #[test]
        fn survives_damage(compound in compound(), at in any::<prop::sample::Index>(), byte: u8, cut in any::<prop::sample::Index>()) {
            let mut bytes = Vec::new();
            compound.emit(&mut bytes);
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = Compound::parse_reduced(&bytes);
            let _ = Compound::parse_reduced(&bytes[..cut.index(bytes.len())]);
        }
    }

    /// [RFC 3550 sec A.2]: padding belongs to the last packet alone, and so not to the first.
    #[test]
    fn only_the_last_packet_is_padded() {
        let mut report = Vec::new();
        Compound { ssrc: 1, ..Compound::default() }.emit(&mut report);
        // RR of 8 bytes, SDES of 12: a word of padding, of which the last byte counts 4, after either.
        let padded = |at: usize, end: usize| {
            let mut bytes = report[..end].to_vec();
            bytes[at] |= 0x20;
            bytes[at + 3] += 1;
            bytes.extend([0, 0, 0, 4]);
            bytes
        };
        assert!(Compound::parse(&report).is_some() && Compound::parse(&padded(8, report.len())).is_some());
        assert_eq!(Compound::parse(&padded(0, 8)), None);
        let first = [padded(0, 8), report[8..].to_vec()].concat();
        assert_eq!(Compound::parse(&first), None);
    }
}
