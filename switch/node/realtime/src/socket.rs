//! Raw packet sockets (`AF_PACKET`, packet(7)) with batched receive and send.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use fairlane_device::Nanos;
use fairlane_sockets::{bind, interface_flags, option, set_option, Batch, Outgoing};
use rustix::io::Errno;
use rustix::net::netdevice::name_to_index;
use rustix::net::{socket_with, AddressFamily, SocketFlags, SocketType};

use crate::{checksum, clock};

pub use fairlane_sockets::Sent;

/// Frames per system call.
pub const BATCH: usize = 64;

/// The longest frame that is received whole: a segmentation-offload super-frame can have 64 KiB.
const SLOT: usize = 65_536 + 64;
/// Room before each frame for a VLAN tag that the kernel keeps apart from it.
const HEADROOM: usize = 4;
const SOCKET_BUFFER: i32 = 8 << 20;
/// A frame that seems to have waited longer for us was stamped by a clock that was set meanwhile.
const LONGEST_WAIT: Nanos = 1_000_000_000;

// From linux/if_packet.h.
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
const TP_STATUS_CSUMNOTREADY: u32 = 1 << 3;
const TP_STATUS_VLAN_VALID: u32 = 1 << 4;
const TP_STATUS_VLAN_TPID_VALID: u32 = 1 << 6;

/// Of `struct tpacket_auxdata` (three numbers of 32 bits, four of 16) the status and the VLAN tag.
#[derive(Clone, Copy)]
struct AuxData {
    status: u32,
    vlan_tci: u16,
    vlan_tpid: u16,
}

impl AuxData {
    fn read(data: &[u8]) -> Option<AuxData> {
        let [s0, s1, s2, s3, .., c0, c1, p0, p1] = *data.first_chunk::<20>()?;
        Some(AuxData {
            status: u32::from_ne_bytes([s0, s1, s2, s3]),
            vlan_tci: u16::from_ne_bytes([c0, c1]),
            vlan_tpid: u16::from_ne_bytes([p0, p1]),
        })
    }
}

/// Why an interface could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("interface {0} does not exist: see `ip link` for those there are (in this network namespace)")]
    Missing(String),
    #[error(
        "interface {0}: opening a raw socket needs the capability CAP_NET_RAW: run as root (sudo), or \
         grant it once with `setcap cap_net_raw,cap_net_admin+ep` on this program"
    )]
    NotPermitted(String),
    #[error("interface {0}: {1}")]
    Other(String, io::Error),
}

/// A network interface opened for raw frames, in promiscuous mode, non-blocking.
#[derive(Debug)]
pub struct Interface {
    fd: OwnedFd,
    name: String,
    index: u32,
    missed: u64,
    hears_outgoing: bool,
}

impl Interface {
    /// Opens an interface by name.
    ///
    /// # Errors
    /// [`OpenError`]: no such interface, no permission, or another failure of the system.
    pub fn open(name: &str) -> Result<Self, OpenError> {
        Self::open_to(name, false)
    }

    /// Opens an interface by name; with `hears_outgoing`, frames that other programs send out of it are received, too, as by BMv2.
    ///
    /// # Errors
    /// Those of [`Interface::open`].
    pub fn open_to(name: &str, hears_outgoing: bool) -> Result<Self, OpenError> {
        let other = |error| OpenError::Other(name.to_string(), error);
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None).map_err(|error| match error {
            Errno::PERM | Errno::ACCESS => OpenError::NotPermitted(name.to_string()),
            error => other(error.into()),
        })?;
        let index = name_to_index(&fd, name).map_err(|_| OpenError::Missing(name.to_string()))?;
        // Kernels before 4.20 do not know this; `receive` sorts the frames out then. Our own never come back: this socket sends them.
        let _ = set_option(&fd, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &i32::from(!hears_outgoing).to_ne_bytes());
        set_option(&fd, libc::SOL_PACKET, libc::PACKET_AUXDATA, &1i32.to_ne_bytes()).map_err(other)?;
        // A kernel that cannot stamp frames is no reason not to run; `receive` takes the time of reading then.
        let _ = set_option(&fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1i32.to_ne_bytes());
        // `struct packet_mreq`: interface, type, and an address that this type has not.
        let membership = [&index.to_ne_bytes()[..], &(libc::PACKET_MR_PROMISC as u16).to_ne_bytes(), &[0; 10]].concat();
        set_option(&fd, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership).map_err(other)?;
        for (forced, plain) in [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)] {
            if set_option(&fd, libc::SOL_SOCKET, forced, &SOCKET_BUFFER.to_ne_bytes()).is_err() {
                set_option(&fd, libc::SOL_SOCKET, plain, &SOCKET_BUFFER.to_ne_bytes()).map_err(other)?;
            }
        }
        // `struct sockaddr_ll`: family, protocol, interface, and what only sending to an address needs.
        let (family, protocol) = ((libc::AF_PACKET as u16).to_ne_bytes(), (libc::ETH_P_ALL as u16).to_be_bytes());
        bind(&fd, &[&family[..], &protocol, &index.to_ne_bytes(), &[0; 12]].concat()).map_err(other)?;
        Ok(Interface { fd, name: name.to_string(), index, missed: 0, hears_outgoing })
    }

    /// The interface that has this name now.
    ///
    /// # Errors
    /// Those of [`Interface::open`].
    pub fn reopened(&self) -> Result<Self, OpenError> {
        Self::open_to(&self.name, self.hears_outgoing)
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// False once the interface was removed (a new one of the same name is another interface).
    pub fn exists(&self) -> bool {
        name_to_index(&self.fd, &self.name) == Ok(self.index)
    }

    /// The interface is administratively up.
    pub fn is_up(&self) -> bool {
        interface_flags(&self.fd, &self.name).is_ok_and(|flags| flags & libc::IFF_UP != 0)
    }

    /// Frames the kernel dropped because they were not received in time, since the start.
    pub fn missed(&mut self) -> u64 {
        // `struct tpacket_stats`: packets and drops, 32 bits each.
        let mut stats = [0; 8];
        if option(&self.fd, libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut stats).is_ok() {
            let [.., d0, d1, d2, d3] = stats;
            // The kernel resets its count at each reading.
            self.missed += u64::from(u32::from_ne_bytes([d0, d1, d2, d3]));
        }
        self.missed
    }
}

impl AsFd for Interface {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A received frame.
#[derive(Debug, Clone, Copy)]
pub struct Received<'a> {
    /// When the kernel took it in, in nanoseconds of [`clock::now`]: before it was read here, however late that was.
    pub arrival: Nanos,
    pub bytes: &'a [u8],
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    number: usize,
    start: usize,
    end: usize,
    arrival: Nanos,
}

/// Buffers for one batch of received frames; one serves all interfaces in turn.
pub struct Receiver {
    batch: Batch,
    frames: Vec<Slot>,
    /// Frames whose checksum was left undone and could not be completed.
    pub incomplete_checksums: u64,
}

impl Default for Receiver {
    fn default() -> Self {
        Self::new()
    }
}

impl Receiver {
    /// Buffers for [`BATCH`] frames. Memory is touched only as far as frames are long.
    pub fn new() -> Self {
        Receiver { batch: Batch::new(BATCH, SLOT, HEADROOM), frames: Vec::with_capacity(BATCH), incomplete_checksums: 0 }
    }

    /// Receives what is there, up to [`BATCH`] frames, with VLAN tags put back and checksums completed. Returns how many frames
    /// the kernel handed over; a full batch means that there may be more.
    ///
    /// # Errors
    /// Those of recvmmsg(2): `ENETDOWN` once when the interface goes down.
    pub fn receive(&mut self, interface: &Interface) -> io::Result<usize> {
        self.frames.clear();
        let received = self.batch.receive(interface, 0)?;
        let (now, unix) = (clock::now(), clock::unix());
        for number in 0..received {
            if interface.hears_outgoing || packet_type(self.batch.address(number)) != libc::PACKET_OUTGOING {
                self.accept(number, now, unix);
            }
            self.batch.release(number);
        }
        Ok(received)
    }

    /// The frames of the batch last received, in order of arrival.
    pub fn frames(&self) -> impl Iterator<Item = Received<'_>> {
        self.frames.iter().map(|slot| Received { arrival: slot.arrival, bytes: &self.batch.slot(slot.number)[slot.start..slot.end] })
    }

    fn accept(&mut self, number: usize, now: Nanos, unix: Nanos) {
        let (mut start, end) = (HEADROOM, HEADROOM + self.batch.length(number));
        let Ancillary { aux, stamp } = ancillary(&self.batch, number);
        let frame = self.batch.slot_mut(number);
        // The stamp is wall-clock time: what counts is its age. A clock that was set meanwhile gives nonsense.
        let age = stamp.and_then(|stamp| unix.checked_sub(stamp)).filter(|age| *age < LONGEST_WAIT).unwrap_or(0);
        let arrival = now.saturating_sub(age);
        if let Some(aux) = aux.filter(|aux| aux.status & TP_STATUS_VLAN_VALID != 0 && end - start >= 12) {
            let tpid = if aux.status & TP_STATUS_VLAN_TPID_VALID != 0 { aux.vlan_tpid } else { 0x8100 };
            frame.copy_within(start..start + 12, start - 4);
            frame[start + 8..start + 10].copy_from_slice(&tpid.to_be_bytes());
            frame[start + 10..start + 12].copy_from_slice(&aux.vlan_tci.to_be_bytes());
            start -= 4;
        }
        if aux.is_some_and(|aux| aux.status & TP_STATUS_CSUMNOTREADY != 0) && !checksum::complete(&mut frame[start..end]) {
            self.incomplete_checksums += 1;
        }
        self.frames.push(Slot { number, start, end, arrival });
    }
}

/// `sll_pkttype` of a `sockaddr_ll`: after family, protocol, interface, and hardware type.
fn packet_type(address: &[u8; 20]) -> u8 {
    address[10]
}

/// What the kernel says beside a frame.
#[derive(Default)]
struct Ancillary {
    aux: Option<AuxData>,
    /// Nanoseconds since 1970.
    stamp: Option<Nanos>,
}

fn ancillary(batch: &Batch, number: usize) -> Ancillary {
    let mut found = Ancillary::default();
    for message in batch.messages(number) {
        match (message.level, message.kind) {
            (libc::SOL_PACKET, libc::PACKET_AUXDATA) => found.aux = AuxData::read(message.data),
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => found.stamp = stamp(message.data),
            _ => {}
        }
    }
    found
}

/// A `struct timespec`.
fn stamp(data: &[u8]) -> Option<Nanos> {
    let (seconds, rest) = data.split_first_chunk()?;
    let nanos = rest.first_chunk()?;
    Some(u64::from_ne_bytes(*seconds).wrapping_mul(1_000_000_000).wrapping_add(u64::from_ne_bytes(*nanos)))
}

/// Frames waiting to be sent on one interface in one system call.
pub struct Sender {
    frames: Vec<Vec<u8>>,
    outgoing: Outgoing,
}

impl Default for Sender {
    fn default() -> Self {
        Self::new()
    }
}

impl Sender {
    /// An empty batch.
    pub fn new() -> Self {
        Sender { frames: Vec::with_capacity(BATCH), outgoing: Outgoing::default() }
    }

    /// Adds a frame; true when the batch is full and must be flushed before the next.
    pub fn push(&mut self, frame: Vec<u8>) -> bool {
        self.frames.push(frame);
        self.frames.len() >= BATCH
    }

    /// No frame waits.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Sends all frames in order; a frame that the kernel refuses is dropped and those after it are tried. The buffers go to `spare`.
    pub fn flush(&mut self, interface: &Interface, spare: &mut Vec<Vec<u8>>) -> Sent {
        let sent = self.outgoing.send(interface, &self.frames);
        spare.append(&mut self.frames);
        sent
    }
}
