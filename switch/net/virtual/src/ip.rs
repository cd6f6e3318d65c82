//! Ethernet, IPv4 (RFC 791) and UDP (RFC 768).

use fairlane_endpoint::is_multicast;

/// Ethernet header without tag.
pub const ETHERNET_BYTES: usize = 14;
/// IPv4 header without options.
pub const IPV4_BYTES: usize = 20;
pub const UDP_BYTES: usize = 8;
pub const PROTOCOL_TCP: u8 = 6;
pub const PROTOCOL_UDP: u8 = 17;
/// IPv4 router alert, value 0 [RFC 2113 sec 2.1].
pub const ROUTER_ALERT: [u8; 4] = [0x94, 0x04, 0x00, 0x00];
/// Of the type of service: its last two bits [RFC 3168 sec 5].
pub(crate) const ECN_MASK: u8 = 0b11;
pub const TTL: u8 = 64;

/// Who a host is, and by whom it sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HostAddress {
    pub ip: u32,
    pub mac: [u8; 6],
    /// Of the switch port that the host hangs on.
    pub gateway_mac: [u8; 6],
}

/// The ones' complement sum of 16-bit words, not yet folded (RFC 1071). An odd last byte counts as the high half of a word.
pub fn sum(bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(2);
    let total: u64 = words.by_ref().map(|word| u64::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    total + words.remainder().first().map_or(0, |&last| u64::from(last) << 8)
}

/// The checksum of a sum: folded and complemented.
pub fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The checksum of UDP of a sum: 0 would say that there is none (RFC 768).
pub fn udp_checksum(sum: u64) -> u16 {
    match fold(sum) {
        0 => 0xffff,
        checksum => checksum,
    }
}

/// The sum over a pseudo-header (RFC 768, [RFC 9293 sec 3.1]).
pub fn pseudo_header(source: u32, destination: u32, protocol: u8, length: usize) -> u64 {
    let halves = |x: u32| u64::from(x >> 16) + u64::from(x & 0xffff);
    halves(source) + halves(destination) + u64::from(protocol) + length as u64
}

/// The fields of an IPv4 header that datagrams of hosts differ in.
#[derive(Debug, Clone, Copy)]
pub struct Header<'a> {
    pub to: u32,
    pub protocol: u8,
    pub ttl: u8,
    pub tos: u8,
    /// Whole words, at most 10.
    pub options: &'a [u8],
    /// Bytes that follow.
    pub payload: usize,
}

/// Appends Ethernet and IPv4 headers. The identification is 0 and the datagram must not be fragmented, as Linux sends it. A group's
/// Ethernet address follows from its IPv4 address [RFC 1112 sec 6.4].
pub fn push_headers(frame: &mut Vec<u8>, from: &HostAddress, header: &Header) {
    let &Header { to, protocol, ttl, tos, options, payload } = header;
    if is_multicast(to) {
        let [_, second, third, fourth] = to.to_be_bytes();
        frame.extend_from_slice(&[0x01, 0x00, 0x5e, second & 0x7f, third, fourth]);
    } else {
        frame.extend_from_slice(&from.gateway_mac);
    }
    frame.extend_from_slice(&from.mac);
    frame.extend_from_slice(&[0x08, 0x00]);
    let start = frame.len();
    let header = IPV4_BYTES + options.len();
    let total = (header + payload) as u16;
    frame.extend_from_slice(&[0x40 | (header / 4) as u8, tos]);
    frame.extend_from_slice(&total.to_be_bytes());
    frame.extend_from_slice(&[0, 0, 0x40, 0, ttl, protocol, 0, 0]);
    frame.extend_from_slice(&from.ip.to_be_bytes());
    frame.extend_from_slice(&to.to_be_bytes());
    frame.extend_from_slice(options);
    let checksum = fold(sum(&frame[start..]));
    frame[start + 10..start + 12].copy_from_slice(&checksum.to_be_bytes());
}

/// Appends a UDP header with checksum 0; both ports are `port`. `bytes`: header and payload.
pub fn push_udp(frame: &mut Vec<u8>, port: u16, bytes: usize) {
    for half in [port, port, bytes as u16, 0] {
        frame.extend_from_slice(&half.to_be_bytes());
    }
}

/// An IPv4 datagram in an Ethernet frame, header and length checked.
#[derive(Debug, Clone, Copy)]
pub struct Datagram<'a> {
    pub source: u32,
    pub destination: u32,
    pub protocol: u8,
    /// Type of service; its last two bits are ECN's (RFC 3168).
    pub tos: u8,
    pub payload: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// `None` when the frame holds no whole IPv4 datagram with a right header checksum.
    pub fn parse(frame: &'a [u8]) -> Option<Datagram<'a>> {
        let ip = frame.get(ETHERNET_BYTES..)?;
        if frame[12..14] != [0x08, 0x00] || ip.len() < IPV4_BYTES || ip[0] >> 4 != 4 {
            return None;
        }
        let header = usize::from(ip[0] & 15) * 4;
        let bytes = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
        if header < IPV4_BYTES || bytes < header || bytes > ip.len() || fold(sum(&ip[..header])) != 0 {
            return None;
        }
        Some(Datagram {
            source: u32::from_be_bytes([ip[12], ip[13], ip[14], ip[15]]),
            destination: u32::from_be_bytes([ip[16], ip[17], ip[18], ip[19]]),
            protocol: ip[9],
            tos: ip[1],
            payload: &ip[header..bytes],
        })
    }

    /// Whether the checksum of UDP or TCP is right; UDP's may be left out [RFC 768]. True of every other protocol.
    pub fn has_right_checksum(&self) -> bool {
        let bytes = match (self.protocol, self.payload) {
            (PROTOCOL_TCP, bytes) => bytes,
            (PROTOCOL_UDP, [_, _, _, _, high, low, a, b, ..]) => {
                let length = usize::from(u16::from_be_bytes([*high, *low]));
                match self.payload.get(..length) {
                    Some(_) if (*a, *b) == (0, 0) => return length >= UDP_BYTES,
                    Some(bytes) => bytes,
                    None => return false,
                }
            }
            (PROTOCOL_UDP, _) => return false,
            _ => return true,
        };
        fold(pseudo_header(self.source, self.destination, self.protocol, bytes.len()) + sum(bytes)) == 0
    }

    /// Source and destination port, of UDP and TCP.
    pub fn ports(&self) -> Option<(u16, u16)> {
        let p = self.payload.get(..4)?;
        Some((u16::from_be_bytes([p[0], p[1]]), u16::from_be_bytes([p[2], p[3]])))
    }

    /// The payload of UDP, its length checked.
    pub fn udp_payload(&self) -> Option<&'a [u8]> {
        let length = usize::from(u16::from_be_bytes([*self.payload.get(4)?, *self.payload.get(5)?]));
        if length < UDP_BYTES {
            None
        } else {
            self.payload.get(UDP_BYTES..length)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: HostAddress = HostAddress { ip: 0x0a00_0101, mac: [2, 0, 0, 1, 0, 1], gateway_mac: [2, 1, 0, 1, 0, 1] };

    #[test]
    fn a_datagram_reads_back() {
        let mut frame = Vec::new();
        let header = Header { to: 0x0a00_0201, protocol: PROTOCOL_UDP, ttl: TTL, tos: 0, options: &ROUTER_ALERT, payload: 12 };
        push_headers(&mut frame, &HOST, &header);
        frame.extend_from_slice(&[0x13, 0x8c, 0x13, 0x8d, 0, 12, 0, 0, 1, 2, 3, 4]);
        let datagram = Datagram::parse(&frame).expect("well formed");
        assert_eq!((datagram.source, datagram.destination), (HOST.ip, 0x0a00_0201));
        assert_eq!(datagram.ports(), Some((5004, 5005)));
        assert_eq!(datagram.udp_payload(), Some(&[1u8, 2, 3, 4][..]));
        for cut in 0..frame.len() {
            assert!(Datagram::parse(&frame[..cut]).is_none());
        }
        frame[20] ^= 1;
        assert!(Datagram::parse(&frame).is_none(), "a wrong checksum");
    }

    #[test]
    fn every_flipped_bit_is_found() {
        for protocol in [PROTOCOL_TCP, PROTOCOL_UDP] {
            let mut frame = Vec::new();
            let payload: Vec<u8> = (0u8..61).map(|n| n.wrapping_mul(37)).collect();
            let to = 0x0a00_0201;
            push_headers(&mut frame, &HOST, &Header { to, protocol, ttl: TTL, tos: 0, options: &[], payload: 20 + payload.len() });
            let start = frame.len();
            frame.extend_from_slice(&[0x13, 0x8c, 0x13, 0x8d, 0, 81, 0, 0, 0, 1, 2, 3, 0x50, 0x10, 0, 9, 0, 0, 0, 0]);
            frame.extend_from_slice(&payload);
            let at = start + if protocol == PROTOCOL_TCP { 16 } else { 6 };
            let checksum = udp_checksum(pseudo_header(HOST.ip, to, protocol, 81) + sum(&frame[start..]));
            frame[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
            let is_right = |frame: &[u8]| Datagram::parse(frame).is_some_and(|datagram| datagram.has_right_checksum());
            assert!(is_right(&frame));
            for bit in 8 * ETHERNET_BYTES..8 * frame.len() {
                frame[bit / 8] ^= 1 << (bit % 8);
                assert!(!is_right(&frame), "protocol {protocol}, bit {bit}");
                frame[bit / 8] ^= 1 << (bit % 8);
            }
            // UDP's may be left out; a datagram is longer than its frame, or shorter than its header.
            frame[at..at + 2].fill(0);
            assert_eq!(is_right(&frame), protocol == PROTOCOL_UDP);
            for length in [7u16, 82] {
                frame[start + 4..start + 6].copy_from_slice(&length.to_be_bytes());
                assert!(!is_right(&frame));
            }
        }
    }

    #[test]
    fn the_example_of_rfc_1071_adds_up() {
        assert_eq!(!fold(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7])), 0xddf2);
    }
}
