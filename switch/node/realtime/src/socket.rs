//! Raw packet sockets (`AF_PACKET`, packet(7)) with batched receive and send.

#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use fairlane_device::Nanos;

use crate::{checksum, clock};

/// Frames per system call.
pub const BATCH: usize = 64;

/// The longest frame that is received whole: a segmentation-offload super-frame can have 64 KiB.
const SLOT: usize = 65_536 + 64;
/// Room before each frame for a VLAN tag that the kernel keeps apart from it.
const HEADROOM: usize = 4;
const CONTROL: usize = 128;
const SOCKET_BUFFER: libc::c_int = 8 << 20;
/// A frame that seems to have waited longer for us was stamped by a clock that was set meanwhile.
const LONGEST_WAIT: Nanos = 1_000_000_000;

// From linux/if_packet.h.
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
const TP_STATUS_CSUMNOTREADY: u32 = 1 << 3;
const TP_STATUS_VLAN_VALID: u32 = 1 << 4;
const TP_STATUS_VLAN_TPID_VALID: u32 = 1 << 6;

/// `struct tpacket_auxdata`.
#[repr(C)]
#[derive(Clone, Copy)]
struct AuxData {
    status: u32,
    len: u32,
    snaplen: u32,
    mac: u16,
    net: u16,
    vlan_tci: u16,
    vlan_tpid: u16,
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
    index: libc::c_int,
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
        // SAFETY: plain system call; the descriptor is owned at once.
        let fd = unsafe {
            let flags = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
            let fd = libc::socket(libc::AF_PACKET, flags, 0);
            if fd < 0 {
                let error = io::Error::last_os_error();
                return Err(match error.raw_os_error() {
                    Some(libc::EPERM | libc::EACCES) => OpenError::NotPermitted(name.to_string()),
                    _ => other(error),
                });
            }
            OwnedFd::from_raw_fd(fd)
        };
        let index = index_of(name).ok_or_else(|| OpenError::Missing(name.to_string()))?;
        // Kernels before 4.20 do not know this; `receive` sorts the frames out then. Our own never come back: this socket sends them.
        let _ = set_option(&fd, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &i32::from(!hears_outgoing));
        set_option(&fd, libc::SOL_PACKET, libc::PACKET_AUXDATA, &1i32).map_err(other)?;
        // A kernel that cannot stamp frames is no reason not to run; `receive` takes the time of reading then.
        let _ = set_option(&fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1i32);
        // SAFETY: all-zero is a valid value of these plain structs.
        let mut membership: libc::packet_mreq = unsafe { zeroed() };
        membership.mr_ifindex = index;
        membership.mr_type = libc::PACKET_MR_PROMISC as u16;
        set_option(&fd, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership).map_err(other)?;
        for (forced, plain) in [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)] {
            if set_option(&fd, libc::SOL_SOCKET, forced, &SOCKET_BUFFER).is_err() {
                set_option(&fd, libc::SOL_SOCKET, plain, &SOCKET_BUFFER).map_err(other)?;
            }
        }
        // SAFETY: as above; the address lives through the call.
        unsafe {
            let mut address: libc::sockaddr_ll = zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
            address.sll_ifindex = index;
            let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            if libc::bind(fd.as_raw_fd(), (&raw const address).cast(), length) < 0 {
                return Err(other(io::Error::last_os_error()));
            }
        }
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
        index_of(&self.name) == Some(self.index)
    }

    /// The interface is administratively up.
    pub fn is_up(&self) -> bool {
        // SAFETY: the request holds a NUL-terminated name (at most 15 bytes are copied into 16) and is written by the kernel.
        unsafe {
            let mut request: libc::ifreq = zeroed();
            for (to, from) in request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1).zip(self.name.bytes()) {
                *to = from as libc::c_char;
            }
            libc::ioctl(self.fd.as_raw_fd(), libc::SIOCGIFFLAGS as _, &raw mut request) == 0
                && libc::c_int::from(request.ifr_ifru.ifru_flags) & libc::IFF_UP != 0
        }
    }

    /// Frames the kernel dropped because they were not received in time, since the start.
    pub fn missed(&mut self) -> u64 {
        // SAFETY: the kernel writes at most `length` bytes into the struct.
        unsafe {
            let mut stats: libc::tpacket_stats = zeroed();
            let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
            let (value, option) = ((&raw mut stats).cast(), libc::PACKET_STATISTICS);
            if libc::getsockopt(self.fd.as_raw_fd(), libc::SOL_PACKET, option, value, &mut length) == 0 {
                self.missed += u64::from(stats.tp_drops); // the kernel resets its count at each reading
            }
        }
        self.missed
    }
}

impl AsRawFd for Interface {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

fn index_of(name: &str) -> Option<libc::c_int> {
    let name = CString::new(name).ok()?;
    // SAFETY: a NUL-terminated string.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => None,
        index => Some(index as libc::c_int),
    }
}

fn set_option<T>(fd: &OwnedFd, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: pointer and size are those of `value`.
    let result = unsafe {
        let length = size_of::<T>() as libc::socklen_t;
        libc::setsockopt(fd.as_raw_fd(), level, option, (value as *const T).cast(), length)
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
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
    start: usize,
    end: usize,
    arrival: Nanos,
}

/// Buffers for one batch of received frames; one serves all interfaces in turn.
pub struct Receiver {
    storage: Vec<u8>,
    controls: Vec<[u64; CONTROL / 8]>,
    addresses: Vec<libc::sockaddr_ll>,
    iovecs: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
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
        // SAFETY: all-zero is a valid value of these plain structs.
        let (address, header) = unsafe { (zeroed(), zeroed()) };
        let mut receiver = Receiver {
            storage: vec![0; SLOT * BATCH],
            controls: vec![[0; CONTROL / 8]; BATCH],
            addresses: vec![address; BATCH],
            iovecs: vec![libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; BATCH],
            headers: vec![header; BATCH],
            frames: Vec::with_capacity(BATCH),
            incomplete_checksums: 0,
        };
        for slot in 0..BATCH {
            receiver.prepare(slot);
        }
        receiver
    }

    /// Points a header at the buffers of its slot, which stay where they are on the heap for good.
    fn prepare(&mut self, slot: usize) {
        let storage = &mut self.storage[slot * SLOT..(slot + 1) * SLOT];
        self.iovecs[slot] = libc::iovec { iov_base: storage[HEADROOM..].as_mut_ptr().cast(), iov_len: SLOT - HEADROOM };
        let header = &mut self.headers[slot].msg_hdr;
        header.msg_iov = &raw mut self.iovecs[slot];
        header.msg_iovlen = 1;
        header.msg_name = (&raw mut self.addresses[slot]).cast();
        header.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        header.msg_control = (&raw mut self.controls[slot]).cast();
        header.msg_controllen = CONTROL as _;
    }

    /// Receives what is there, up to [`BATCH`] frames, with VLAN tags put back and checksums completed. Returns how many frames
    /// the kernel handed over; a full batch means that there may be more.
    ///
    /// # Errors
    /// Those of recvmmsg(2): `ENETDOWN` once when the interface goes down.
    pub fn receive(&mut self, interface: &Interface) -> io::Result<usize> {
        self.frames.clear();
        // SAFETY: every pointer in the headers was set by `prepare` to a buffer of ours that outlives the call.
        let received = unsafe {
            let headers = self.headers.as_mut_ptr();
            libc::recvmmsg(interface.as_raw_fd(), headers, BATCH as u32, libc::MSG_DONTWAIT, std::ptr::null_mut())
        };
        if received < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
                _ => Err(error),
            };
        }
        let (now, unix) = (clock::now(), clock::unix());
        for slot in 0..received as usize {
            if interface.hears_outgoing || self.addresses[slot].sll_pkttype != libc::PACKET_OUTGOING {
                self.accept(slot, now, unix);
            }
            self.prepare(slot);
        }
        Ok(received as usize)
    }

    /// The frames of the batch last received, in order of arrival.
    pub fn frames(&self) -> impl Iterator<Item = Received<'_>> {
        self.frames.iter().map(|slot| Received { arrival: slot.arrival, bytes: &self.storage[slot.start..slot.end] })
    }

    fn accept(&mut self, slot: usize, now: Nanos, unix: Nanos) {
        let start = slot * SLOT + HEADROOM;
        let end = start + self.headers[slot].msg_len as usize;
        let Ancillary { aux, stamp } = ancillary(&self.headers[slot].msg_hdr);
        // The stamp is wall-clock time: what counts is its age. A clock that was set meanwhile gives nonsense.
        let age = stamp.and_then(|stamp| unix.checked_sub(stamp)).filter(|age| *age < LONGEST_WAIT).unwrap_or(0);
        let arrival = now.saturating_sub(age);
        let mut begin = start;
        if let Some(aux) = aux.filter(|aux| aux.status & TP_STATUS_VLAN_VALID != 0 && end - start >= 12) {
            let tpid = if aux.status & TP_STATUS_VLAN_TPID_VALID != 0 { aux.vlan_tpid } else { 0x8100 };
            self.storage.copy_within(start..start + 12, start - 4);
            self.storage[start + 8..start + 10].copy_from_slice(&tpid.to_be_bytes());
            self.storage[start + 10..start + 12].copy_from_slice(&aux.vlan_tci.to_be_bytes());
            begin = start - 4;
        }
        if aux.is_some_and(|aux| aux.status & TP_STATUS_CSUMNOTREADY != 0) && !checksum::complete(&mut self.storage[begin..end]) {
            self.incomplete_checksums += 1;
        }
        self.frames.push(Slot { start: begin, end, arrival });
    }
}

/// What the kernel says beside a frame.
#[derive(Default)]
struct Ancillary {
    aux: Option<AuxData>,
    /// Nanoseconds since 1970.
    stamp: Option<Nanos>,
}

fn ancillary(header: &libc::msghdr) -> Ancillary {
    let mut found = Ancillary::default();
    // SAFETY: the kernel filled `msg_control` up to `msg_controllen`; the CMSG macros stay within it, and the length of a
    // message is checked before it is read (unaligned).
    unsafe {
        let mut control = libc::CMSG_FIRSTHDR(header);
        while let Some(message) = control.as_ref() {
            #[allow(clippy::unnecessary_cast)] // another type with musl's libc
            let holds = |size: usize| message.cmsg_len as usize >= libc::CMSG_LEN(size as u32) as usize;
            match (message.cmsg_level, message.cmsg_type) {
                (libc::SOL_PACKET, libc::PACKET_AUXDATA) if holds(size_of::<AuxData>()) => {
                    found.aux = Some(std::ptr::read_unaligned(libc::CMSG_DATA(control).cast()));
                }
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) if holds(size_of::<libc::timespec>()) => {
                    let time: libc::timespec = std::ptr::read_unaligned(libc::CMSG_DATA(control).cast());
                    found.stamp = Some((time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64));
                }
                _ => {}
            }
            control = libc::CMSG_NXTHDR(header, control);
        }
    }
    found
}

/// Frames waiting to be sent on one interface in one system call.
pub struct Sender {
    frames: Vec<Vec<u8>>,
    iovecs: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

/// What became of a batch.
#[derive(Debug, Default)]
pub struct Sent {
    /// Frames handed to the kernel.
    pub frames: u64,
    /// Frames it refused, and the last reason.
    pub failed: u64,
    pub error: Option<io::Error>,
}

impl Default for Sender {
    fn default() -> Self {
        Self::new()
    }
}

impl Sender {
    /// An empty batch.
    pub fn new() -> Self {
        Sender { frames: Vec::with_capacity(BATCH), iovecs: Vec::with_capacity(BATCH), headers: Vec::with_capacity(BATCH) }
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
        let mut sent = Sent::default();
        self.iovecs.clear();
        self.headers.clear();
        for frame in &mut self.frames {
            self.iovecs.push(libc::iovec { iov_base: frame.as_mut_ptr().cast(), iov_len: frame.len() });
        }
        for iovec in &mut self.iovecs {
            // SAFETY: all-zero is a valid value of this plain struct.
            let mut header: libc::mmsghdr = unsafe { zeroed() };
            header.msg_hdr.msg_iov = iovec;
            header.msg_hdr.msg_iovlen = 1;
            self.headers.push(header);
        }
        let mut next = 0;
        while next < self.headers.len() {
            // SAFETY: headers, iovecs and frames live and stay in place through the call.
            let result = unsafe {
                let headers = self.headers[next..].as_mut_ptr();
                let count = (self.headers.len() - next) as u32;
                libc::sendmmsg(interface.as_raw_fd(), headers, count, libc::MSG_DONTWAIT)
            };
            if result > 0 {
                sent.frames += result as u64;
                next += result as usize;
                continue;
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                sent.failed += 1;
                sent.error = Some(error);
                next += 1;
            }
        }
        self.headers.clear();
        self.iovecs.clear();
        spare.append(&mut self.frames);
        sent
    }
}
