//! Ethernet, IPv4 (RFC 791), IPv6 (RFC 8200) and UDP (RFC 768).

use fairlane_endpoint::ip::{host, octets, Ip};
use fairlane_endpoint::is_multicast;

/// Ethernet header without tag.
pub const ETHERNET_BYTES: usize = 14;
/// IPv4 header without options, and IPv6 header.
const IPV4_BYTES: usize = Ip::V4.header_bytes();
const IPV6_BYTES: usize = Ip::V6.header_bytes();
pub const UDP_BYTES: usize = 8;
pub const PROTOCOL_TCP: u8 = 6;
pub const PROTOCOL_UDP: u8 = 17;
const PROTOCOL_HOP_BY_HOP: u8 = 0;
/// IPv4 router alert, value 0 [RFC 2113 sec 2.1].
const ROUTER_ALERT: [u8; 4] = [0x94, 0x04, 0x00, 0x00];
/// The rest of a hop-by-hop header behind its first byte: no more words, router alert (RFC 2711) of a value for experiments, 65503 (RFC 5350), and padding.
const ROUTER_ALERT_V6: [u8; 7] = [0, 0x05, 0x02, 0xff, 0xdf, 0x01, 0x00];
/// Its first 64 bits are the least.
const HOP_BY_HOP_BYTES: usize = Ip::V6.router_alert_bytes();
/// Of the type of service: its last two bits [RFC 3168 sec 5].
pub(crate) const ECN_MASK: u8 = 0b11;
pub const TTL: u8 = 64;

/// Who a host is, and by whom it sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HostAddress {
    pub version: Ip,
    /// As of `fairlane_endpoint::ip`.
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

/// The sum over a pseudo-header (RFC 768, [RFC 9293 sec 3.1], [RFC 8200 sec 8.1]).
pub fn pseudo_header(version: Ip, source: u32, destination: u32, protocol: u8, length: usize) -> u64 {
    let address = |host: u32| match version {
        Ip::V4 => sum(&host.to_be_bytes()),
        Ip::V6 => sum(&octets(host)),
    };
    address(source) + address(destination) + u64::from(protocol) + length as u64
}

/// The fields of an IP header that datagrams of hosts differ in.
#[derive(Debug, Clone, Copy)]
pub struct Header {
    pub to: u32,
    pub protocol: u8,
    pub ttl: u8,
    /// IPv6's traffic class.
    pub tos: u8,
    /// It asks routers to look into it (RFC 2113, RFC 2711).
    pub router_alert: bool,
    /// Bytes that follow.
    pub payload: usize,
}

/// Appends Ethernet and IP headers.
pub fn push_headers(frame: &mut Vec<u8>, from: &HostAddress, header: &Header) {
    match from.version {
        Ip::V4 => push_ipv4(frame, from, header),
        Ip::V6 => push_ipv6(frame, from, header),
    }
}

/// The identification is 0 and the datagram must not be fragmented, as Linux sends it. A group's Ethernet address follows from its IPv4 address
/// [RFC 1112 sec 6.4].
fn push_ipv4(frame: &mut Vec<u8>, from: &HostAddress, header: &Header) {
    let &Header { to, protocol, ttl, tos, router_alert, payload } = header;
    let options: &[u8] = if router_alert { &ROUTER_ALERT } else { &[] };
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

/// The flow label is 0: not set.
fn push_ipv6(frame: &mut Vec<u8>, from: &HostAddress, header: &Header) {
    let &Header { to, protocol, ttl, tos, router_alert, payload } = header;
    debug_assert!(!is_multicast(to), "groups are of IPv4");
    let (next, options) = if router_alert { (PROTOCOL_HOP_BY_HOP, HOP_BY_HOP_BYTES) } else { (protocol, 0) };
    frame.extend_from_slice(&from.gateway_mac);
    frame.extend_from_slice(&from.mac);
    frame.extend_from_slice(&[0x86, 0xdd, 0x60 | tos >> 4, tos << 4, 0, 0]);
    frame.extend_from_slice(&((options + payload) as u16).to_be_bytes());
    frame.extend_from_slice(&[next, ttl]);
    frame.extend_from_slice(&octets(from.ip));
    frame.extend_from_slice(&octets(to));
    if router_alert {
        frame.push(protocol);
        frame.extend_from_slice(&ROUTER_ALERT_V6);
    }
}

/// Appends a UDP header with checksum 0; both ports are `port`. `bytes`: header and payload.
pub fn push_udp(frame: &mut Vec<u8>, port: u16, bytes: usize) {
    for half in [port, port, bytes as u16, 0] {
        frame.extend_from_slice(&half.to_be_bytes());
    }
}

/// An IP datagram in an Ethernet frame, header and length checked.
#[derive(Debug, Clone, Copy)]
pub struct Datagram<'a> {
    pub version: Ip,
    /// As of `fairlane_endpoint::ip`.
    pub source: u32,
    pub destination: u32,
    pub protocol: u8,
    /// Type of service or traffic class; its last two bits are ECN's (RFC 3168).
    pub tos: u8,
    pub payload: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// `None` when the frame holds no whole IPv4 datagram with a right header checksum, and no whole IPv6 datagram between hosts of a network.
    pub fn parse(frame: &'a [u8]) -> Option<Datagram<'a>> {
        let ip = frame.get(ETHERNET_BYTES..)?;
        match (frame[12], frame[13], ip.first()? >> 4) {
            (0x08, 0x00, 4) => Datagram::parse_ipv4(ip),
            (0x86, 0xdd, 6) => Datagram::parse_ipv6(ip),
            _ => None,
        }
    }

    fn parse_ipv4(ip: &'a [u8]) -> Option<Datagram<'a>> {
        if ip.len() < IPV4_BYTES {
            return None;
        }
        let header = usize::from(ip[0] & 15) * 4;
        let bytes = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
        if header < IPV4_BYTES || bytes < header || bytes > ip.len() || fold(sum(&ip[..header])) != 0 {
            return None;
        }
        Some(Datagram {
            version: Ip::V4,
            source: u32::from_be_bytes([ip[12], ip[13], ip[14], ip[15]]),
            destination: u32::from_be_bytes([ip[16], ip[17], ip[18], ip[19]]),
            protocol: ip[9],
            tos: ip[1],
            payload: &ip[header..bytes],
        })
    }

    /// Hop-by-hop options are skipped; behind any other extension nothing is read.
    fn parse_ipv6(ip: &'a [u8]) -> Option<Datagram<'a>> {
        let header = ip.first_chunk::<IPV6_BYTES>()?;
        let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
        let mut payload = ip[IPV6_BYTES..].get(..length)?;
        let mut protocol = header[6];
        if protocol == PROTOCOL_HOP_BY_HOP {
            let [next, words, ..] = *payload.first_chunk::<HOP_BY_HOP_BYTES>()?;
            protocol = next;
            payload = payload.get(8 * (1 + usize::from(words))..)?;
        }
        let address = |at: usize| host(header[at..].first_chunk()?);
        let tos = header[0] << 4 | header[1] >> 4;
        Some(Datagram { version: Ip::V6, source: address(8)?, destination: address(24)?, protocol, tos, payload })
    }

    /// Whether the checksum of UDP or TCP is right; UDP's may be left out over IPv4 (RFC 768), not over IPv6 [RFC 8200 sec 8.1]. True of every other
    /// protocol.
    pub fn has_right_checksum(&self) -> bool {
        let bytes = match (self.protocol, self.payload) {
            (PROTOCOL_TCP, bytes) => bytes,
            (PROTOCOL_UDP, [_, _, _, _, high, low, a, b, ..]) => {
                let length = usize::from(u16::from_be_bytes([*high, *low]));
                match self.payload.get(..length) {
                    Some(_) if (*a, *b) == (0, 0) => return self.version == Ip::V4 && length >= UDP_BYTES,
                    Some(bytes) => bytes,
                    None => return false,
                }
            }
            (PROTOCOL_UDP, _) => return false,
            _ => return true,
        };
        fold(pseudo_header(self.version, self.source, self.destination, self.protocol, bytes.len()) + sum(bytes)) == 0
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

    fn host(version: Ip) -> HostAddress {
        HostAddress { version, ip: 0x0a00_0101, mac: [2, 0, 0, 1, 0, 1], gateway_mac: [2, 1, 0, 1, 0, 1] }
    }

    #[test]
    fn a_datagram_reads_back() {
        for version in [Ip::V4, Ip::V6] {
            let mut frame = Vec::new();
            let header = Header { to: 0x0a00_0201, protocol: PROTOCOL_UDP, ttl: TTL, tos: 0xb9, router_alert: true, payload: 12 };
            push_headers(&mut frame, &host(version), &header);
            assert_eq!(frame.len(), ETHERNET_BYTES + version.header_bytes() + version.router_alert_bytes());
            frame.extend_from_slice(&[0x13, 0x8c, 0x13, 0x8d, 0, 12, 0, 0, 1, 2, 3, 4]);
            let datagram = Datagram::parse(&frame).expect("well formed");
            assert_eq!((datagram.version, datagram.tos, datagram.protocol), (version, 0xb9, PROTOCOL_UDP));
            assert_eq!((datagram.source, datagram.destination), (host(version).ip, 0x0a00_0201));
            assert_eq!(datagram.ports(), Some((5004, 5005)));
            assert_eq!(datagram.udp_payload(), Some(&[1u8, 2, 3, 4][..]));
            for cut in 0..frame.len() {
                assert!(Datagram::parse(&frame[..cut]).is_none());
            }
            // The first byte of IPv4's time to live, and of IPv6's own address.
            frame[22] ^= 1;
            assert!(Datagram::parse(&frame).is_none(), "a wrong checksum, or a foreign address");
        }
    }

    #[test]
    fn every_flipped_bit_is_found() {
        for (version, protocol) in [(Ip::V4, PROTOCOL_TCP), (Ip::V4, PROTOCOL_UDP), (Ip::V6, PROTOCOL_TCP), (Ip::V6, PROTOCOL_UDP)] {
            let mut frame = Vec::new();
            let payload: Vec<u8> = (0u8..61).map(|n| n.wrapping_mul(37)).collect();
            let (to, host) = (0x0a00_0201, host(version));
            let header = Header { to, protocol, ttl: TTL, tos: 0, router_alert: false, payload: 20 + payload.len() };
            push_headers(&mut frame, &host, &header);
            let start = frame.len();
            frame.extend_from_slice(&[0x13, 0x8c, 0x13, 0x8d, 0, 81, 0, 0, 0, 1, 2, 3, 0x50, 0x10, 0, 9, 0, 0, 0, 0]);
            frame.extend_from_slice(&payload);
            let at = start + if protocol == PROTOCOL_TCP { 16 } else { 6 };
            let checksum = udp_checksum(pseudo_header(version, host.ip, to, protocol, 81) + sum(&frame[start..]));
            frame[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
            let is_right = |frame: &[u8]| Datagram::parse(frame).is_some_and(|datagram| datagram.has_right_checksum());
            assert!(is_right(&frame));
            // No checksum covers IPv6's traffic class, flow label and hop limit; with another next header nobody reads the rest.
            let covered = |byte: usize| version == Ip::V4 || !matches!(byte - ETHERNET_BYTES, 0..4 | 6 | 7);
            for bit in (8 * ETHERNET_BYTES..8 * frame.len()).filter(|bit| covered(bit / 8)) {
                frame[bit / 8] ^= 1 << (bit % 8);
                assert!(!is_right(&frame), "{version:?}, protocol {protocol}, bit {bit}");
                frame[bit / 8] ^= 1 << (bit % 8);
            }
            // UDP's may be left out over IPv4; a datagram is longer than its frame, or shorter than its header.
            frame[at..at + 2].fill(0);
            assert_eq!(is_right(&frame), (version, protocol) == (Ip::V4, PROTOCOL_UDP));
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
