//! Completes transport checksums that a sending kernel left to an offload engine which, on a virtual link, does not exist.

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const ETHERTYPES_VLAN: [u16; 2] = [0x8100, 0x88a8];
const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;

/// Computes the TCP or UDP checksum of an Ethernet frame in place ([RFC 9293 sec 3.1], RFC 768, [RFC 8200 sec 8.1]).
///
/// Returns false, with the frame unchanged, when there is none to compute: neither TCP nor UDP over IPv4 or IPv6, a fragment, or a
/// frame that is too short for what its headers say.
pub fn complete(frame: &mut [u8]) -> bool {
    locate(frame).is_some_and(|transport| transport.fill(frame))
}

struct Transport {
    protocol: u8,
    /// Addresses, within the frame.
    addresses: std::ops::Range<usize>,
    /// Transport header and payload, within the frame.
    segment: std::ops::Range<usize>,
}

impl Transport {
    fn fill(&self, frame: &mut [u8]) -> bool {
        let at = self.segment.start + if self.protocol == PROTOCOL_TCP { 16 } else { 6 };
        if at + 2 > self.segment.end {
            return false;
        }
        frame[at..at + 2].fill(0);
        let length = self.segment.len() as u32;
        let mut sum = sum_words(&frame[self.addresses.clone()]) + sum_words(&frame[self.segment.clone()]);
        sum += u64::from(self.protocol) + u64::from(length >> 16) + u64::from(length & 0xffff);
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        let mut checksum = !(sum as u16);
        if checksum == 0 && self.protocol == PROTOCOL_UDP {
            checksum = 0xffff; // zero means "no checksum" in UDP
        }
        frame[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
        true
    }
}

fn locate(frame: &[u8]) -> Option<Transport> {
    let mut at = 12;
    let mut ethertype = word(frame, at)?;
    while ETHERTYPES_VLAN.contains(&ethertype) {
        at += 4;
        ethertype = word(frame, at)?;
    }
    let ip = at + 2;
    let transport = match ethertype {
        ETHERTYPE_IPV4 => {
            let header = usize::from(frame.get(ip)? & 0x0f) * 4;
            let fragment = word(frame, ip + 6)? & 0x3fff;
            if header < 20 || fragment != 0 {
                return None;
            }
            let end = ip + usize::from(word(frame, ip + 2)?);
            Transport { protocol: *frame.get(ip + 9)?, addresses: ip + 12..ip + 20, segment: ip + header..end }
        }
        ETHERTYPE_IPV6 => {
            let end = ip + 40 + usize::from(word(frame, ip + 4)?);
            Transport { protocol: *frame.get(ip + 6)?, addresses: ip + 8..ip + 40, segment: ip + 40..end }
        }
        _ => return None,
    };
    let known = matches!(transport.protocol, PROTOCOL_TCP | PROTOCOL_UDP);
    let segment = &transport.segment;
    (known && segment.start <= segment.end && segment.end <= frame.len()).then_some(transport)
}

fn word(frame: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]))
}

fn sum_words(bytes: &[u8]) -> u64 {
    let pairs = bytes.chunks_exact(2);
    let odd = pairs.remainder().first().map_or(0, |&last| u64::from(last) << 8);
    odd + pairs.map(|pair| u64::from(u16::from_be_bytes([pair[0], pair[1]]))).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn udp4(payload: &[u8], tagged: bool) -> Vec<u8> {
        let mut frame = vec![2; 12];
        if tagged {
            frame.extend([0x81, 0, 0, 5]);
        }
        frame.extend([8, 0, 0x45, 0]);
        frame.extend((28 + payload.len() as u16).to_be_bytes());
        frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x12, 0x34, 0, 53]);
        frame.extend((8 + payload.len() as u16).to_be_bytes());
        frame.extend([0xab, 0xcd]);
        frame.extend(payload);
        frame
    }

    /// The receiver's check: pseudo-header and segment sum up to all ones.
    fn holds(frame: &[u8]) -> bool {
        let transport = locate(frame).expect("a transport header");
        let mut sum = sum_words(&frame[transport.addresses]) + sum_words(&frame[transport.segment.clone()]);
        sum += u64::from(transport.protocol) + transport.segment.len() as u64;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum == 0xffff
    }

    #[test]
    fn a_known_datagram() {
        // 0a000001 0a000002 0011 000a | 1234 0035 000a 0000 6869 sums to 0x8efa
        let mut frame = udp4(b"hi", false);
        assert!(complete(&mut frame));
        assert_eq!(frame[40..42], (!0x8efau16).to_be_bytes());
    }

    #[test]
    fn padding_after_the_datagram_does_not_count() {
        let mut bare = udp4(b"odd", true);
        let mut padded = bare.clone();
        padded.extend([0xff; 20]);
        assert!(complete(&mut bare) && complete(&mut padded));
        assert_eq!(bare, padded[..bare.len()]);
    }

    #[test]
    fn fragments_and_other_protocols_are_left_alone() {
        let mut fragment = udp4(b"data", false);
        fragment[20] = 0x20;
        let mut icmp = udp4(b"data", false);
        icmp[23] = 1;
        for mut frame in [fragment, icmp] {
            let before = frame.clone();
            assert!(!complete(&mut frame));
            assert_eq!(frame, before);
        }
    }

    proptest! {
        #[test]
        fn what_is_completed_verifies(payload in prop::collection::vec(any::<u8>(), 0..1400), tagged: bool) {
            let mut frame = udp4(&payload, tagged);
            prop_assert!(complete(&mut frame));
            prop_assert!(holds(&frame));
        }

        #[test]
        fn no_bytes_panic(mut frame in prop::collection::vec(any::<u8>(), 0..120), six: bool) {
            if frame.len() > 14 {
                frame[12..14].copy_from_slice(if six { &[0x86, 0xdd] } else { &[8, 0] });
            }
            complete(&mut frame);
        }

        #[test]
        fn truncation_anywhere_is_harmless(cut in 0usize..60) {
            let mut frame = udp4(b"some payload bytes", false);
            frame.truncate(cut);
            complete(&mut frame);
        }
    }
}
