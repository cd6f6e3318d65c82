//! The version of IP that carries a flow, and the sizes of its headers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The first 96 bits of each IPv6 address, fd00::/96 of the addresses for local use (RFC 4193). The last 32 are the IPv4 address that the host has
/// in a network of IPv4, so that the parts of a run that no packet shows know a host by 32 bits.
const PREFIX: [u8; 12] = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Ip {
    #[default]
    V4,
    V6,
}

impl Ip {
    /// Of the header without options [RFC 791 sec 3.1], [RFC 8200 sec 3].
    pub const fn header_bytes(self) -> usize {
        match self {
            Ip::V4 => 20,
            Ip::V6 => 40,
        }
    }

    /// Of IP and UDP headers: datagrams are counted with them.
    pub const fn udp_bytes(self) -> usize {
        self.header_bytes() + 8
    }

    /// Of the router alert: an option (RFC 2113), or a hop-by-hop header with it (RFC 2711).
    pub const fn router_alert_bytes(self) -> usize {
        match self {
            Ip::V4 => 4,
            Ip::V6 => 8,
        }
    }

    /// The address that a host's 32 bits stand for.
    pub fn address(self, host: u32) -> IpAddr {
        match self {
            Ip::V4 => Ipv4Addr::from(host).into(),
            Ip::V6 => Ipv6Addr::from(octets(host)).into(),
        }
    }

    /// The version of an address, and the 32 bits of its host; `None`: an IPv6 address that is none of a network's.
    pub fn host(address: IpAddr) -> Option<(Ip, u32)> {
        match address {
            IpAddr::V4(address) => Some((Ip::V4, address.into())),
            IpAddr::V6(address) => host(&address.octets()).map(|host| (Ip::V6, host)),
        }
    }
}

/// The IPv6 address of a host's 32 bits.
pub fn octets(host: u32) -> [u8; 16] {
    let mut octets = [0; 16];
    octets[..12].copy_from_slice(&PREFIX);
    octets[12..].copy_from_slice(&host.to_be_bytes());
    octets
}

/// The 32 bits of the host with an IPv6 address; `None`: it is none of a network's.
pub fn host(octets: &[u8; 16]) -> Option<u32> {
    let [.., a, b, c, d] = *octets;
    octets.starts_with(&PREFIX).then(|| u32::from_be_bytes([a, b, c, d]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_reads_back() {
        for ip in [Ip::V4, Ip::V6] {
            assert_eq!(Ip::host(ip.address(0x0a00_0101)), Some((ip, 0x0a00_0101)));
        }
        assert_eq!(Ip::V6.address(0x0a00_0101).to_string(), "fd00::a00:101");
        assert_eq!(Ip::host("fe80::a00:101".parse().expect("an address")), None);
    }
}
