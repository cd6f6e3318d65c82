//! IGMPv2 messages (RFC 2236) of hosts: reports, leaves, and the queries of routers.

use crate::ip::{fold, push_headers, sum, Header, HostAddress};

pub const PROTOCOL_IGMP: u8 = 2;
/// 224.0.0.2: who leaves tells all routers (section 3).
pub const ALL_ROUTERS: u32 = 0xe000_0002;
/// 224.0.0.1: where general queries go; no host reports it (section 6).
pub const ALL_HOSTS: u32 = 0xe000_0001;
/// "All IGMP messages ... are sent with IP TTL 1" (section 2).
const TTL: u8 = 1;
/// Internetwork control (RFC 791), as Linux sends it.
const TOS: u8 = 0xc0;
const BYTES: usize = 8;
const QUERY: u8 = 0x11;
const REPORT_V1: u8 = 0x12;
const REPORT: u8 = 0x16;
const LEAVE: u8 = 0x17;
/// A query of version 1 has no response time: ten seconds (section 4).
const VERSION_1_TENTHS: u8 = 100;

/// What a message says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Igmp {
    /// Of one group, or of all (`None`); members answer within so many tenths of a second.
    Query {
        group: Option<u32>,
        tenths: u8,
    },
    Report {
        group: u32,
    },
    Leave {
        group: u32,
    },
}

impl Igmp {
    /// Appends a whole frame of a host: reports to the group, leaves to all routers, queries to the group or to all hosts.
    pub fn push(&self, frame: &mut Vec<u8>, from: &HostAddress) {
        let (kind, tenths, group, to) = match *self {
            Igmp::Query { group, tenths } => (QUERY, tenths, group.unwrap_or(0), group.unwrap_or(ALL_HOSTS)),
            Igmp::Report { group } => (REPORT, 0, group, group),
            Igmp::Leave { group } => (LEAVE, 0, group, ALL_ROUTERS),
        };
        push_headers(frame, from, &Header { to, protocol: PROTOCOL_IGMP, ttl: TTL, tos: TOS, router_alert: true, payload: BYTES });
        let start = frame.len();
        frame.extend_from_slice(&[kind, tenths, 0, 0]);
        frame.extend_from_slice(&group.to_be_bytes());
        let checksum = fold(sum(&frame[start..]));
        frame[start + 2..start + 4].copy_from_slice(&checksum.to_be_bytes());
    }

    /// Reads an IP payload. `None`: cut short, a wrong checksum, or of a type that hosts ignore (section 2). What follows eight
    /// bytes is of later versions, covered by the checksum, and ignored.
    pub fn parse(payload: &[u8]) -> Option<Igmp> {
        let message = payload.first_chunk::<BYTES>()?;
        if fold(sum(payload)) != 0 {
            return None;
        }
        let group = u32::from_be_bytes([message[4], message[5], message[6], message[7]]);
        match message[0] {
            QUERY => {
                let tenths = if message[1] == 0 { VERSION_1_TENTHS } else { message[1] };
                Some(Igmp::Query { group: (group != 0).then_some(group), tenths })
            }
            REPORT | REPORT_V1 => Some(Igmp::Report { group }),
            LEAVE => Some(Igmp::Leave { group }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::Datagram;
    use fairlane_endpoint::Ip;
    use proptest::prelude::*;

    const HOST: HostAddress = HostAddress { version: Ip::V4, ip: 0x0a00_0101, mac: [2, 0, 0, 1, 0, 1], gateway_mac: [2, 1, 0, 1, 0, 1] };

    #[test]
    fn a_report_is_bytes_as_worked_out() {
        let mut frame = Vec::new();
        Igmp::Report { group: 0xef81_0203 }.push(&mut frame, &HOST);
        let said: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
        // Ethernet: the low 23 bits of 239.129.2.3. IPv4: 24 bytes of header, TTL 1, protocol 2, router alert. IGMP: 16 00.
        let expected = concat!(
            "01005e010203020000010001",
            "0800",
            "46c00020000040000102",
            "e792",
            "0a000101",
            "ef810203",
            "94040000",
            "1600",
            "f87a",
            "ef810203"
        );
        assert_eq!(said, expected);
        let datagram = Datagram::parse(&frame).expect("a right checksum");
        assert_eq!(
            (datagram.protocol, datagram.destination, Igmp::parse(datagram.payload)),
            (2, 0xef81_0203, Some(Igmp::Report { group: 0xef81_0203 }))
        );
    }

    #[test]
    fn leaves_go_to_all_routers_and_queries_of_version_1_have_their_time() {
        let mut frame = Vec::new();
        Igmp::Leave { group: 0xef00_0001 }.push(&mut frame, &HOST);
        let datagram = Datagram::parse(&frame).expect("well formed");
        assert_eq!((datagram.destination, frame[22]), (ALL_ROUTERS, 1));
        assert_eq!(Igmp::parse(&[0x11, 0, 0xee, 0xff, 0, 0, 0, 0]), Some(Igmp::Query { group: None, tenths: 100 }));
        assert_eq!(Igmp::parse(&[0x11, 0, 0xee, 0xfe, 0, 0, 0, 0]), None);
    }

    proptest! {
        #[test]
        fn reads_what_it_wrote(group in 0xe000_0000u32..0xf000_0000, tenths in 1u8.., kind in 0..4) {
            let message = match kind {
                0 => Igmp::Query { group: None, tenths },
                1 => Igmp::Query { group: Some(group), tenths },
                2 => Igmp::Report { group },
                _ => Igmp::Leave { group },
            };
            let mut frame = Vec::new();
            message.push(&mut frame, &HOST);
            let datagram = Datagram::parse(&frame).expect("well formed");
            prop_assert_eq!(Igmp::parse(datagram.payload), Some(message));
        }

        #[test]
        fn survives_anything(payload in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = Igmp::parse(&payload);
        }
    }
}
