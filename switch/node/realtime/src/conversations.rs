//! Packets and bytes of each conversation that crosses the switch's ports, as CSV next to the ports' time series (`.flows.csv`).
//!
//! A conversation is a port, a direction of it, a pair of IPv4 addresses, a protocol and a pair of TCP or UDP ports. Sums count from the
//! switch's start. An interval has rows of conversations that grew in it, alone.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use fairlane_device::{Nanos, PortId};

/// More conversations than these are counted together, as one without addresses: memory has a bound.
pub const MOST: usize = 65_536;
/// The columns.
pub const HEADER: &str = "unix_s,port,direction,source,destination,protocol,source_port,destination_port,packets,bytes,payload_bytes\n";

const ETHERNET_BYTES: usize = 14;
const IPV4: [u8; 2] = [8, 0];
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Whether a frame comes to the port or leaves by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    In,
    Out,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Ends {
    source: u32,
    destination: u32,
    protocol: u8,
    source_port: u16,
    destination_port: u16,
}

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

    /// Counts a frame; one that is not IPv4 belongs to no conversation.
    pub fn count(&mut self, port: PortId, direction: Direction, frame: &[u8]) {
        let Some((ends, bytes, payload_bytes)) = ends(frame) else { return };
        let mut key = (port, direction, ends);
        if self.sums.len() >= MOST && !self.sums.contains_key(&key) {
            key.2 = Ends::default();
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
            let (source, destination) = (Ipv4Addr::from(source), Ipv4Addr::from(destination));
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

/// Whose frame it is, its bytes as IPv4 datagram, and those behind the headers of IPv4 and TCP, UDP or ICMP; `None`: it is no whole IPv4 datagram.
fn ends(frame: &[u8]) -> Option<(Ends, usize, usize)> {
    let datagram = frame.get(ETHERNET_BYTES..).filter(|_| frame[ETHERNET_BYTES - 2..ETHERNET_BYTES] == IPV4)?;
    let (header, bytes) = ((usize::from(*datagram.first()? & 15)) * 4, usize::from(word(datagram, 2)?));
    // A short frame is padded, so that it may be longer.
    let transport = datagram.get(..bytes)?.get(header..).filter(|_| header >= 20)?;
    let address = |at: usize| Some(u32::from(word(datagram, at)?) << 16 | u32::from(word(datagram, at + 2)?));
    let protocol = *datagram.get(9)?;
    // The ports are in the first fragment alone.
    let whole = word(datagram, 6)? & 0x1fff == 0;
    let (own, ports) = match protocol {
        TCP if whole => (transport.get(12).map_or(0, |offset| usize::from(offset >> 4) * 4), word(transport, 0).zip(word(transport, 2))),
        UDP if whole => (8, word(transport, 0).zip(word(transport, 2))),
        1 if whole => (8, None),
        _ => (0, None),
    };
    let (source_port, destination_port) = ports.unwrap_or_default();
    let ends = Ends { source: address(12)?, destination: address(16)?, protocol, source_port, destination_port };
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
        assert_eq!((Ipv4Addr::from(ends_of.source), Ipv4Addr::from(ends_of.destination)), ([10, 0, 1, 10].into(), [10, 0, 2, 11].into()));
        let (_, bytes, payload) = ends(&frame(UDP, (1, 2), &[0; 8], 5, 13)).expect("UDP");
        assert_eq!((bytes, payload), (33, 5));
        let (echo, bytes, payload) = ends(&frame(1, (0, 0), &[0; 8], 56, 0)).expect("ICMP");
        assert_eq!((echo.source_port, bytes, payload), (0, 84, 56));
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
