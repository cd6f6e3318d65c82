//! Packets and bytes of each conversation that crosses the switch's ports, as CSV next to the ports' time series (`.flows.csv`).
//!
//! A conversation is a port, a direction of it, a pair of IP addresses, a protocol and a pair of TCP or UDP ports. Sums count from the
//! switch's start. An interval has rows of conversations that grew in it, alone.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use fairlane_device::{Nanos, PortId};

/// More conversations than these are counted together, as one without addresses: memory has a bound.
pub const MOST: usize = 65_536;
/// The columns.
pub const HEADER: &str = "unix_s,port,direction,source,destination,protocol,source_port,destination_port,packets,bytes,payload_bytes\n";

const ETHERNET_BYTES: usize = 14;
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
/// IPv6 headers of whole 64 bits, whose second byte counts those behind the first: hop-by-hop options, routing, destination options.
const EXTENSIONS: [u8; 3] = [0, 43, 60];
const FRAGMENT: u8 = 44;
/// An IPv6 datagram with more extensions than these counts without its ports.
const MOST_EXTENSIONS: usize = 8;

/// Whether a frame comes to the port or leaves by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    In,
    Out,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ends {
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    source_port: u16,
    destination_port: u16,
}

/// Of conversations that are counted together.
const OTHERS: Ends = {
    let none = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    Ends { source: none, destination: none, protocol: 0, source_port: 0, destination_port: 0 }
};

#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    packets: u64,
    bytes: u64,
    payload_bytes: u64,
    grown: bool,
}

/// The counts of a switch, and their file.
#[derive(Debug)]
pub struct Conversations {
    path: PathBuf,
    file: File,
    sums: BTreeMap<(PortId, Direction, Ends), Sums>,
}

impl Conversations {
    /// Creates (or empties) the file that belongs to a file of statistics.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn create(stats: &Path) -> io::Result<Self> {
        let path = stats.with_extension("flows.csv");
        let mut file = File::create(&path)?;
        file.write_all(HEADER.as_bytes())?;
        Ok(Conversations { path, file, sums: BTreeMap::new() })
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Counts a frame; one that is not IP belongs to no conversation.
    pub fn count(&mut self, port: PortId, direction: Direction, frame: &[u8]) {
        let Some((ends, bytes, payload_bytes)) = ends(frame) else { return };
        let mut key = (port, direction, ends);
        if self.sums.len() >= MOST && !self.sums.contains_key(&key) {
            key.2 = OTHERS;
        }
        let sums = self.sums.entry(key).or_default();
        sums.packets += 1;
        sums.bytes += bytes as u64;
        sums.payload_bytes += payload_bytes as u64;
        sums.grown = true;
    }

    /// Writes the rows of the current interval.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&mut self, unix: Nanos) -> io::Result<()> {
        let mut text = String::new();
        for ((port, direction, ends), sums) in self.sums.iter_mut().filter(|(_, sums)| sums.grown) {
            sums.grown = false;
            let direction = if *direction == Direction::In { "in" } else { "out" };
            let Ends { source, destination, protocol, source_port, destination_port } = *ends;
            let Sums { packets, bytes, payload_bytes, .. } = *sums;
            let (seconds, rest) = (unix / 1_000_000_000, unix % 1_000_000_000);
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{seconds}.{rest:09},{port},{direction},{source},{destination},{protocol},{source_port},{destination_port},{packets},{bytes},{payload_bytes}"
            );
        }
        self.file.write_all(text.as_bytes())
    }
}

/// An IP datagram, as far as its headers say.
struct Datagram<'a> {
    source: IpAddr,
    destination: IpAddr,
    /// Of what follows.
    protocol: u8,
    /// Behind the headers of IP.
    transport: &'a [u8],
    bytes: usize,
    /// It begins with the header of its protocol: it is no fragment but the first.
    whole: bool,
}

fn ipv4(datagram: &[u8]) -> Option<Datagram<'_>> {
    let (header, bytes) = ((usize::from(*datagram.first()? & 15)) * 4, usize::from(word(datagram, 2)?));
    // A short frame is padded, so that it may be longer.
    let transport = datagram.get(..bytes)?.get(header..).filter(|_| header >= 20)?;
    let address = |at: usize| Some(IpAddr::from(*datagram.get(at..)?.first_chunk::<4>()?));
    // The ports are in the first fragment alone.
    let whole = word(datagram, 6)? & 0x1fff == 0;
    Some(Datagram { source: address(12)?, destination: address(16)?, protocol: *datagram.get(9)?, transport, bytes, whole })
}

fn ipv6(datagram: &[u8]) -> Option<Datagram<'_>> {
    let bytes = 40 + usize::from(word(datagram, 4)?);
    let mut transport = datagram.get(..bytes)?.get(40..)?;
    let mut protocol = datagram[6];
    let mut whole = true;
    for _ in 0..MOST_EXTENSIONS {
        let length = match (protocol, transport) {
            (FRAGMENT, [_, _, high, low, ..]) => {
                whole &= u16::from_be_bytes([*high, *low]) >> 3 == 0;
                8
            }
            (_, [_, words, ..]) if EXTENSIONS.contains(&protocol) => 8 * (1 + usize::from(*words)),
            _ => break,
        };
        let Some(rest) = transport.get(length..) else { break };
        (protocol, transport) = (transport[0], rest);
    }
    let address = |at: usize| Some(IpAddr::from(Ipv6Addr::from(*datagram.get(at..)?.first_chunk::<16>()?)));
    Some(Datagram { source: address(8)?, destination: address(24)?, protocol, transport, bytes, whole })
}

/// Whose frame it is, its bytes as IP datagram, and those behind the headers of IP and TCP, UDP or ICMP; `None`: it is no whole IP datagram.
fn ends(frame: &[u8]) -> Option<(Ends, usize, usize)> {
    let (header, datagram) = frame.split_at_checked(ETHERNET_BYTES)?;
    let datagram = match [header[ETHERNET_BYTES - 2], header[ETHERNET_BYTES - 1]] {
        IPV4 => ipv4(datagram)?,
        IPV6 => ipv6(datagram)?,
        _ => return None,
    };
    let Datagram { source, destination, protocol, transport, bytes, whole } = datagram;
    let (own, ports) = match protocol {
        TCP if whole => (transport.get(12).map_or(0, |offset| usize::from(offset >> 4) * 4), word(transport, 0).zip(word(transport, 2))),
        UDP if whole => (8, word(transport, 0).zip(word(transport, 2))),
        ICMP | ICMPV6 if whole => (8, None),
        _ => (0, None),
    };
    let (source_port, destination_port) = ports.unwrap_or_default();
    let ends = Ends { source, destination, protocol, source_port, destination_port };
    Some((ends, bytes, transport.len().saturating_sub(own)))
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(protocol: u8, ports: (u16, u16), own: &[u8], payload: usize, padding: usize) -> Vec<u8> {
        let total = 20 + own.len() + payload;
        let mut frame = vec![0; 12];
        frame.extend([8, 0, 0x45, 0]);
        frame.extend((total as u16).to_be_bytes());
        frame.extend([0, 0, 0x40, 0, 64, protocol, 0, 0, 10, 0, 1, 10, 10, 0, 2, 11]);
        frame.extend(own);
        if protocol != 1 {
            frame[34..36].copy_from_slice(&ports.0.to_be_bytes());
            frame[36..38].copy_from_slice(&ports.1.to_be_bytes());
        }
        frame.resize(frame.len() + payload + padding, 0);
        frame
    }

    #[test]
    fn headers_and_padding_are_no_payload() {
        let mut tcp = [0; 32];
        tcp[12] = 8 << 4;
        let (ends_of, bytes, payload) = ends(&frame(TCP, (5201, 40000), &tcp, 700, 0)).expect("TCP");
        assert_eq!((ends_of.source_port, ends_of.destination_port, bytes, payload), (5201, 40000, 752, 700));
        assert_eq!((ends_of.source, ends_of.destination), ([10, 0, 1, 10].into(), [10, 0, 2, 11].into()));
        let (_, bytes, payload) = ends(&frame(UDP, (1, 2), &[0; 8], 5, 13)).expect("UDP");
        assert_eq!((bytes, payload), (33, 5));
        let (echo, bytes, payload) = ends(&frame(1, (0, 0), &[0; 8], 56, 0)).expect("ICMP");
        assert_eq!((echo.source_port, bytes, payload), (0, 84, 56));
    }

    /// An IPv6 datagram with these headers behind the first, the first of them of type `next`.
    fn frame_v6(next: u8, headers: &[&[u8]], payload: usize, padding: usize) -> Vec<u8> {
        let total = headers.iter().map(|header| header.len()).sum::<usize>() + payload;
        let mut frame = vec![0; 12];
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend((total as u16).to_be_bytes());
        frame.extend([next, 64]);
        for number in [1u8, 2] {
            frame.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, number, 10]);
        }
        headers.iter().for_each(|header| frame.extend(*header));
        frame.resize(frame.len() + payload + padding, 0);
        frame
    }

    #[test]
    fn ipv6_has_extensions() {
        let udp = [0x13, 0x8d, 0x13, 0x8d, 0, 0, 0, 0];
        let hop_by_hop = [UDP, 0, 5, 2, 0xff, 0xdf, 1, 0];
        let (ends_of, bytes, payload) = ends(&frame_v6(0, &[&hop_by_hop, &udp], 100, 0)).expect("UDP");
        assert_eq!((ends_of.protocol, ends_of.source_port, bytes, payload), (UDP, 5005, 156, 100));
        assert_eq!((ends_of.source.to_string(), ends_of.destination.to_string()), ("fd00::a00:10a".into(), "fd00::a00:20a".into()));
        let (ends_of, bytes, payload) = ends(&frame_v6(ICMPV6, &[&[128, 0, 0, 0, 0, 0, 0, 0]], 56, 3)).expect("ICMPv6");
        assert_eq!((ends_of.protocol, bytes, payload), (ICMPV6, 104, 56));
        let later = [UDP, 0, 0, 8, 0, 0, 0, 7];
        let (ends_of, bytes, payload) = ends(&frame_v6(FRAGMENT, &[&later, &udp], 92, 0)).expect("a fragment");
        assert_eq!((ends_of.protocol, ends_of.source_port, bytes, payload), (UDP, 0, 148, 100));
        assert!(ends(&frame_v6(UDP, &[&udp], 5, 0)[..60]).is_none());
    }

    #[test]
    fn a_later_fragment_has_no_ports() {
        let mut later = frame(UDP, (9, 9), &[0; 8], 100, 0);
        later[20..22].copy_from_slice(&[0, 10]);
        let (ends, bytes, payload) = ends(&later).expect("a fragment");
        assert_eq!((ends.source_port, bytes, payload), (0, 128, 108));
    }

    #[test]
    fn rows_are_of_conversations_that_grew() {
        let stats = std::env::temp_dir().join(format!("fairlane-conversations-{}.csv", std::process::id()));
        let mut counts = Conversations::create(&stats).expect("a file");
        let (one, other) = (frame(UDP, (5004, 5004), &[0; 8], 100, 0), frame(UDP, (5006, 5006), &[0; 8], 10, 0));
        counts.count(1, Direction::In, &one);
        counts.count(1, Direction::In, &one);
        counts.count(2, Direction::Out, &other);
        counts.write(1_500_000_000).expect("written");
        counts.count(2, Direction::Out, &other);
        counts.write(1_600_000_000).expect("written");
        let text = std::fs::read_to_string(counts.path()).expect("readable");
        std::fs::remove_file(counts.path()).expect("removed");
        let rows: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(
            rows,
            [
                "1.500000000,1,in,10.0.1.10,10.0.2.11,17,5004,5004,2,256,200",
                "1.500000000,2,out,10.0.1.10,10.0.2.11,17,5006,5006,1,38,10",
                "1.600000000,2,out,10.0.1.10,10.0.2.11,17,5006,5006,2,76,20"
            ]
        );
        assert_eq!(HEADER.split(',').count(), rows[0].split(',').count());
    }

    proptest! {
        #[test]
        fn no_frame_is_a_panic(frame in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Some((_, bytes, payload)) = ends(&frame) {
                prop_assert!(payload < bytes && bytes + ETHERNET_BYTES <= frame.len());
            }
        }

        #[test]
        fn no_datagram_of_ipv6_is_a_panic(mut frame in proptest::collection::vec(any::<u8>(), 54..160), next in prop_oneof![Just(0), Just(FRAGMENT), Just(TCP), Just(UDP)]) {
            frame[12..15].copy_from_slice(&[0x86, 0xdd, 0x60]);
            let length = frame.len() - ETHERNET_BYTES - 40;
            frame[18..20].copy_from_slice(&(length as u16).to_be_bytes());
            frame[20] = next;
            let (_, bytes, payload) = ends(&frame).expect("a datagram");
            prop_assert!(bytes == length + 40 && payload <= length);
        }

        #[test]
        fn no_whole_datagram_is_a_panic(mut frame in proptest::collection::vec(any::<u8>(), 34..120), protocol in prop_oneof![Just(TCP), Just(UDP), Just(1)]) {
            frame[12..15].copy_from_slice(&[8, 0, 0x45]);
            let total = (frame.len() - ETHERNET_BYTES) as u16;
            frame[16..18].copy_from_slice(&total.to_be_bytes());
            frame[23] = protocol;
            let (_, bytes, payload) = ends(&frame).expect("a datagram");
            prop_assert!(bytes == usize::from(total) && payload <= bytes - 20);
        }
    }
}
