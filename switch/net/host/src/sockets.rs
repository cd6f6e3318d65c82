//! UDP sockets of one end: data on an even port, RTCP on the next [RFC 3550 sec 11], and those of IPv4 groups; over IPv4 or IPv6.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::num::NonZeroU64;
use std::os::fd::BorrowedFd;

use fairlane_endpoint::algorithm::Fault;
use fairlane_endpoint::{Ip, Kind, Nanos, Network, Outgoing};
use fairlane_sockets::{set_option, Batch};
use rustix::event::{poll, PollFd, PollFlags};
use rustix::net::{recv, send, RecvFlags, SendFlags};
use rustix::time::{clock_gettime, ClockId, Timespec};
use socket2::{Domain, MsgHdr, Protocol, Socket, Type};

use crate::driver::{Arrivals, Taken, Wire};

/// IPv4 router alert, value 0 [RFC 2113 sec 2.1].
const ROUTER_ALERT: [u8; 4] = [0x94, 0x04, 0x00, 0x00];
/// A hop-by-hop header (the kernel sets its first byte) with IPv6's router alert (RFC 2711), of a value for experiments, 65503 (RFC 5350), and padding.
const ROUTER_ALERT_V6: [u8; 8] = [0, 0, 0x05, 0x02, 0xff, 0xdf, 0x01, 0x00];
/// Linux: send UDP checksum 0, "no checksum" (asm-generic/socket.h; RFC 768).
const SO_NO_CHECK: libc::c_int = 11;
/// Hops that data to groups may go; the kernel's default is 1: no router forwards it [RFC 1112 sec 6.1].
const MULTICAST_TTL: u32 = 32;
/// Asked for; the kernel gives what net.core.rmem_max allows, by default about 180 packets of 1000 bytes.
const RECEIVE_BUFFER_BYTES: usize = 1 << 20;

/// A socket could not be opened: which, why, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SocketError(String);

fn failed<T>(what: String, error: &io::Error, hint: &str) -> Result<T, SocketError> {
    let text = error.to_string();
    let reason = text.split(" (os error").next().unwrap_or_default();
    Err(SocketError(format!("{what}: {reason}; {hint}")))
}

/// Which end of which kind of flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Sender,
    Receiver,
    /// Its data goes to groups; reports come from any receiver.
    LayeredSender,
    /// Its data comes to groups.
    LayeredReceiver,
}

/// Who an end is and whom it talks to.
#[derive(Debug, Clone, Copy)]
pub struct Addresses {
    pub role: Role,
    pub ip: Ip,
    /// As of `fairlane_endpoint::ip`.
    pub local: u32,
    /// Unused by a layered sender.
    pub peer: u32,
    /// Even; RTCP uses the next.
    pub port: u16,
    /// A file that interrupts the waiting when it can be read.
    pub wake: Option<BorrowedFd<'static>>,
    /// A socket, SOCK_SEQPACKET, to the program beside the end that encodes or shows a film.
    pub film: Option<BorrowedFd<'static>>,
}

struct Open {
    socket: Socket,
    rtcp: bool,
    group: Option<u32>,
}

/// See the module.
pub struct Sockets {
    addresses: Addresses,
    /// Data, RTCP, and then those of groups: the membership lasts while they are open.
    open: Vec<Open>,
    /// Datagrams that the host refused.
    pub refused: u64,
    /// The program beside the end has gone.
    film_over: bool,
    /// The ECN field of data that leave.
    ecn: u8,
}

impl Sockets {
    /// # Errors
    /// A port that is taken, an address that is not this host's, a peer without a route, an option that the kernel refuses.
    pub fn open(addresses: Addresses) -> Result<Sockets, SocketError> {
        let Addresses { role, ip, port, .. } = addresses;
        let (local, peer) = (ip.address(addresses.local), ip.address(addresses.peer));
        let mut open = Vec::new();
        for (rtcp, port) in [(false, port), (true, port + 1)] {
            // A layered receiver has a data socket for each group.
            if role == Role::LayeredReceiver && !rtcp {
                continue;
            }
            let own = SocketAddr::from((local, port));
            let from = SocketAddr::from(if role == Role::LayeredSender { (Ipv4Addr::UNSPECIFIED.into(), 0) } else { (peer, port) });
            if is_served(own, from) {
                return failed(format!("cannot bind UDP {own}"), &io::Error::from_raw_os_error(libc::EADDRINUSE), TAKEN);
            }
            let socket = bound(local, port)?;
            if role != Role::LayeredSender {
                connect(&socket, local, peer, port)?;
            } else {
                let interface = Ipv4Addr::from(addresses.local);
                let set = socket.set_multicast_if_v4(&interface).and_then(|()| socket.set_multicast_ttl_v4(MULTICAST_TTL));
                set.or_else(|error| failed(format!("cannot send to groups from {local}"), &error, "check --local"))?;
            }
            if rtcp && matches!(role, Role::Sender | Role::LayeredSender) {
                alert_routers(&socket, ip)?;
            }
            open.push(Open { socket, rtcp, group: None });
        }
        if role == Role::LayeredReceiver {
            use_igmpv2();
        }
        // Without it the kernel may wake the thread 50 us late.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        Ok(Sockets { addresses, open, refused: 0, film_over: false, ecn: 0 })
    }

    fn transmit(&mut self, datagram: &Outgoing) -> io::Result<usize> {
        let Addresses { role, ip, peer, port, .. } = self.addresses;
        let rtcp = datagram.kind.is_rtcp();
        // A layered receiver has no data socket of its own: what it reports beside RTCP leaves by the other.
        let open = self.open.iter().find(|open| open.rtcp == rtcp && open.group.is_none());
        let Some(Open { socket, .. }) = open.or(self.open.first()) else { return Err(ErrorKind::NotConnected.into()) };
        if datagram.kind == Kind::Data && datagram.ecn != self.ecn {
            match ip {
                Ip::V4 => socket.set_tos_v4(u32::from(datagram.ecn))?,
                Ip::V6 => socket.set_tclass_v6(u32::from(datagram.ecn))?,
            }
            self.ecn = datagram.ecn;
        }
        let port = port + u16::from(rtcp);
        let payload = [io::IoSlice::new(datagram.head), io::IoSlice::new(&ZEROS[..datagram.padding.min(ZEROS.len())])];
        match (role, datagram.kind) {
            (Role::LayeredSender, Kind::Reflected) => {
                send_without_options(socket, datagram.head, SocketAddrV4::new(datagram.to.into(), port))
            }
            (Role::LayeredSender, _) => socket.send_to_vectored(&payload, &SocketAddrV4::new(datagram.to.into(), port).into()),
            (Role::LayeredReceiver, Kind::Feedback) => socket.send_to_vectored(&payload, &SocketAddrV4::new(peer.into(), port).into()),
            _ => socket.send_vectored(&payload),
        }
    }
}

/// What follows the head of a datagram.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

impl Network for Sockets {
    /// A full local queue, no route; or an ICMP error of an earlier datagram is reported now.
    fn send(&mut self, datagram: &Outgoing) -> bool {
        let sent = self.transmit(datagram).is_ok();
        self.refused += u64::from(!sent);
        sent
    }

    fn join(&mut self, group: u32) -> Result<(), Fault> {
        let Addresses { local, port, .. } = self.addresses;
        let local = Ipv4Addr::from(local);
        // RTCP comes to the base layer's group, which is the first.
        let is_base = self.open.iter().all(|open| open.group.is_none());
        for (rtcp, port) in [(false, port), (true, port + 1)].into_iter().take(1 + usize::from(is_base)) {
            let address = Ipv4Addr::from(group);
            let socket = bound(address.into(), port)?;
            let joined = socket.set_multicast_all_v4(false).and_then(|()| socket.join_multicast_v4(&address, &local));
            let hint = "check --local, and net.ipv4.igmp_max_memberships";
            joined.or_else(|error| failed(format!("cannot join {address} at {local}"), &error, hint))?;
            self.open.push(Open { socket, rtcp, group: Some(group) });
        }
        Ok(())
    }

    fn leave(&mut self, group: u32) {
        self.open.retain(|open| open.group != Some(group));
    }

    /// A program that does not keep up misses the message.
    fn hand(&mut self, message: &[u8]) {
        if let Some(film) = self.addresses.film {
            let _ = send(film, message, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        }
    }
}

impl Wire for Sockets {
    fn now(&self) -> Nanos {
        monotonic()
    }

    fn message(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let film = self.addresses.film.filter(|_| !self.film_over)?;
        let (length, _) = recv(film, buffer, RecvFlags::DONTWAIT).ok()?;
        // 0: the program has ended.
        self.film_over = length == 0;
        (length > 0).then_some(length)
    }

    fn wait(&mut self, until: Nanos, arrivals: &mut Arrivals) -> bool {
        let beside = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut polled: Vec<PollFd<'_>> = self.open.iter().map(|open| PollFd::new(&open.socket, PollFlags::IN)).collect();
        polled.extend(self.addresses.film.filter(|_| !self.film_over).map(beside));
        let others = polled.len();
        polled.extend(self.addresses.wake.map(beside));
        let left = until.saturating_sub(monotonic());
        let timeout = Timespec { tv_sec: (left / 1_000_000_000) as _, tv_nsec: (left % 1_000_000_000) as _ };
        if poll(&mut polled, Some(&timeout)).is_err() {
            return false;
        }
        for (open, _) in self.open.iter().zip(&polled).filter(|(_, polled)| !polled.revents().is_empty()) {
            arrivals.receive(&open.socket, |batch, slot| taken(open, self.addresses.peer, batch, slot));
        }
        polled.len() == others || polled.last().is_none_or(|wake| wake.revents().is_empty())
    }
}

/// A datagram that has come to a socket; `None`: from another than the peer to a group, which is not this flow's.
fn taken(open: &Open, peer: u32, batch: &Batch, slot: usize) -> Option<Taken> {
    // `struct sockaddr_in`: family, port, address.
    let [_, _, _, _, a, b, c, d, ..] = *batch.address(slot);
    let foreign = open.group.is_some() && u32::from_be_bytes([a, b, c, d]) != peer;
    (!foreign).then(|| Taken { bytes: batch.length(slot), rtcp: open.rtcp, group: open.group, ecn: ecn(batch, slot) })
}

/// The ECN field that came with a datagram: its type of service is a message of one byte (ip(7), IP_RECVTOS), its traffic class one of an integer
/// (ipv6(7)).
fn ecn(batch: &Batch, slot: usize) -> u8 {
    let field = batch.messages(slot).find_map(|message| match (message.level, message.kind) {
        (libc::IPPROTO_IP, libc::IP_TOS) => message.data.first().copied(),
        (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => message.data.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes) as u8),
        _ => None,
    });
    field.unwrap_or(0) & 3
}

/// What is sent asks routers to look into it. What they rewrite has no checksum over IPv4; over IPv6 they update it.
fn alert_routers(socket: &Socket, ip: Ip) -> Result<(), SocketError> {
    let set = match ip {
        Ip::V4 => set_option(socket, libc::IPPROTO_IP, libc::IP_OPTIONS, &ROUTER_ALERT)
            .and_then(|()| set_option(socket, libc::SOL_SOCKET, SO_NO_CHECK, &1i32.to_ne_bytes())),
        Ip::V6 => set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_HOPOPTS, &ROUTER_ALERT_V6),
    };
    let hint = match ip {
        Ip::V4 => "Linux is needed",
        Ip::V6 => "Linux is needed, and root (CAP_NET_RAW) for a hop-by-hop header",
    };
    set.or_else(|error| failed("cannot set the router alert option or UDP checksum 0".into(), &error, hint))
}

const TAKEN: &str = "another process has this port: end it, or choose another --port";

/// Whether another socket of this network namespace, connected to the same peer, has the datagrams of an address (/proc/net/udp and udp6, which have words of
/// addresses in the machine's order). Unknown: no.
fn is_served(local: SocketAddr, peer: SocketAddr) -> bool {
    let word = |octets: &[u8]| format!("{:08X}", octets.first_chunk().map_or(0, |word| u32::from_ne_bytes(*word)));
    let words = |octets: &[u8]| octets.chunks(4).map(word).collect::<String>();
    let shown = |of: SocketAddr| match of.ip() {
        IpAddr::V4(address) => format!("{}:{:04X}", words(&address.octets()), of.port()),
        IpAddr::V6(address) => format!("{}:{:04X}", words(&address.octets()), of.port()),
    };
    let table = if local.is_ipv4() { "/proc/self/net/udp" } else { "/proc/self/net/udp6" };
    let (local, peer) = (shown(local), shown(peer));
    let table = std::fs::read_to_string(table).unwrap_or_default();
    table
        .lines()
        .map(|line| line.split_ascii_whitespace().skip(1))
        .any(|mut ends| ends.next() == Some(&local) && ends.next() == Some(&peer))
}

/// Flows of one host may have the same port: the kernel gives a datagram to the socket that is connected to its source, and of a group to all of its sockets.
fn bound(address: IpAddr, port: u16) -> Result<Socket, SocketError> {
    let open = || {
        let domain = if address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
        let socket = Socket::new(domain, Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
        socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES)?;
        if address.is_ipv4() {
            socket.set_recv_tos_v4(true)?;
        } else {
            socket.set_recv_tclass_v6(true)?;
        }
        socket.set_reuse_address(true)?;
        socket.bind(&SocketAddr::from((address, port)).into())?;
        Ok(socket)
    };
    open().or_else(|error: io::Error| {
        let hint = match error.kind() {
            ErrorKind::AddrInUse => TAKEN,
            ErrorKind::AddrNotAvailable => "no interface of this host has this address: check --local, and the namespace",
            ErrorKind::PermissionDenied => "ports below 1024 need root: choose another --port",
            _ => "check --local and --port",
        };
        failed(format!("cannot bind UDP {}", SocketAddr::from((address, port))), &error, hint)
    })
}

fn connect(socket: &Socket, local: IpAddr, peer: IpAddr, port: u16) -> Result<(), SocketError> {
    socket.connect(&SocketAddr::from((peer, port)).into()).or_else(|error| {
        failed(format!("cannot reach {} from {local}", SocketAddr::from((peer, port))), &error, "check --peer, and the routes (ip route)")
    })
}

/// One datagram without the IPv4 options that the socket's others carry: a control message without data takes their place (ip(7)).
fn send_without_options(socket: &Socket, payload: &[u8], to: SocketAddrV4) -> io::Result<usize> {
    let length = size_of::<libc::cmsghdr>();
    let mut control = length.to_ne_bytes().to_vec();
    control.extend_from_slice(&libc::IPPROTO_IP.to_ne_bytes());
    control.extend_from_slice(&libc::IP_RETOPTS.to_ne_bytes());
    let (to, payload) = (to.into(), [io::IoSlice::new(payload)]);
    socket.sendmsg(&MsgHdr::new().with_addr(&to).with_buffers(&payload).with_control(&control), 0)
}

/// The kernel speaks IGMPv2 (RFC 2236) on all interfaces of this network namespace from now on. That needs root; without, it begins with
/// IGMPv3, which Fairlane's switches do not read.
fn use_igmpv2() {
    for name in ["all", "default"] {
        // Refused: the run goes on with IGMPv3.
        let _ = std::fs::write(format!("/proc/sys/net/ipv4/conf/{name}/force_igmp_version"), "2\n");
    }
}

/// Nanoseconds of CLOCK_MONOTONIC: the same for all processes of a machine.
pub fn monotonic() -> Nanos {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as Nanos * 1_000_000_000 + now.tv_nsec as Nanos
}
