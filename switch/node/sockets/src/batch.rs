//! Many datagrams or frames in one system call, recvmmsg(2) and sendmmsg(2).

use std::ffi::c_int;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::null_mut;

use crate::checked;

/// Room for the address of a sender: that of a packet socket is the longest here.
const ADDRESS: usize = size_of::<libc::sockaddr_ll>();
/// Room for what the kernel says beside a datagram.
const CONTROL: usize = 128;

fn empty() -> libc::mmsghdr {
    // SAFETY: all-zero is a value of this plain struct.
    unsafe { zeroed() }
}

/// Buffers for datagrams that are received together, each in a slot of its own. Memory is touched only as far as they are long.
pub struct Batch {
    storage: Vec<u8>,
    slot: usize,
    headroom: usize,
    controls: Vec<[u8; CONTROL]>,
    addresses: Vec<[u8; ADDRESS]>,
    iovecs: Vec<libc::iovec>,
    /// These point to the other buffers.
    headers: Vec<libc::mmsghdr>,
}

// SAFETY: the pointers in it are to its own memory on the heap, which moves with it.
unsafe impl Send for Batch {}

impl Batch {
    /// `most` slots of so many bytes, the first `headroom` of which are left free.
    pub fn new(most: usize, slot: usize, headroom: usize) -> Batch {
        let iovec = libc::iovec { iov_base: null_mut(), iov_len: 0 };
        let mut batch = Batch {
            storage: vec![0; slot * most],
            slot,
            headroom: headroom.min(slot),
            controls: vec![[0; CONTROL]; most],
            addresses: vec![[0; ADDRESS]; most],
            iovecs: vec![iovec; most],
            headers: vec![empty(); most],
        };
        for at in 0..most {
            batch.prepare(at);
        }
        batch
    }

    /// Points a header at the buffers of its slot, which stay where they are on the heap for good.
    fn prepare(&mut self, at: usize) {
        let room = &mut self.storage[at * self.slot..(at + 1) * self.slot][self.headroom..];
        self.iovecs[at] = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
        let header = &mut self.headers[at].msg_hdr;
        (header.msg_iov, header.msg_iovlen) = (&raw mut self.iovecs[at], 1);
        (header.msg_name, header.msg_namelen) = ((&raw mut self.addresses[at]).cast(), ADDRESS as libc::socklen_t);
        (header.msg_control, header.msg_controllen) = ((&raw mut self.controls[at]).cast(), CONTROL as _);
    }

    /// Receives what is there into the slots from `first` on, without waiting; says how many.
    ///
    /// # Errors
    /// Those of the call; not that there is nothing, or that a signal came.
    pub fn receive(&mut self, socket: impl AsFd, first: usize) -> io::Result<usize> {
        let Some(headers) = self.headers.get_mut(first..).filter(|headers| !headers.is_empty()) else { return Ok(0) };
        let (headers, most) = (headers.as_mut_ptr(), headers.len() as libc::c_uint);
        // SAFETY: `most` headers follow the pointer. What they point to was set by `prepare`: buffers of ours that outlive the call, with their lengths.
        let received = unsafe { libc::recvmmsg(socket.as_fd().as_raw_fd(), headers, most, libc::MSG_DONTWAIT as _, null_mut()) };
        checked(received).or_else(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
            _ => Err(error),
        })
    }

    /// What was received into a slot may be overwritten by the next call.
    pub fn release(&mut self, at: usize) {
        self.prepare(at);
    }

    /// All of a slot's bytes, the headroom before what was received.
    pub fn slot(&self, at: usize) -> &[u8] {
        &self.storage[at * self.slot..(at + 1) * self.slot]
    }

    /// As [`Batch::slot`].
    pub fn slot_mut(&mut self, at: usize) -> &mut [u8] {
        &mut self.storage[at * self.slot..(at + 1) * self.slot]
    }

    /// Bytes that were received into a slot.
    pub fn length(&self, at: usize) -> usize {
        (self.headers[at].msg_len as usize).min(self.slot - self.headroom)
    }

    /// Who sent it: a `sockaddr` of the socket's family.
    pub fn address(&self, at: usize) -> &[u8; ADDRESS] {
        &self.addresses[at]
    }

    /// What the kernel says beside it.
    pub fn messages(&self, at: usize) -> impl Iterator<Item = Message<'_>> {
        #[allow(clippy::unnecessary_cast)] // another type with musl's libc
        let length = (self.headers[at].msg_hdr.msg_controllen as usize).min(CONTROL);
        messages(&self.controls[at][..length])
    }
}

/// A control message, cmsg(3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    pub level: c_int,
    pub kind: c_int,
    pub data: &'a [u8],
}

/// Control messages as the kernel writes them: the length of the whole, level and type, content; each from a whole word on.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    const WORD: usize = size_of::<usize>();
    const NUMBER: usize = size_of::<c_int>();
    std::iter::from_fn(move || {
        let (length, rest) = bytes.split_first_chunk::<WORD>()?;
        let (level, rest) = rest.split_first_chunk::<NUMBER>()?;
        let (kind, _) = rest.split_first_chunk::<NUMBER>()?;
        let length = usize::from_ne_bytes(*length);
        let data = bytes.get(WORD + 2 * NUMBER..length)?;
        bytes = bytes.get(length.next_multiple_of(WORD)..).unwrap_or_default();
        Some(Message { level: c_int::from_ne_bytes(*level), kind: c_int::from_ne_bytes(*kind), data })
    })
}

/// Frames that are sent together; its memory is used again.
#[derive(Default)]
pub struct Outgoing {
    iovecs: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

/// What became of frames.
#[derive(Debug, Default)]
pub struct Sent {
    /// Handed to the kernel.
    pub frames: u64,
    /// Refused by it, and the last reason.
    pub failed: u64,
    pub error: Option<io::Error>,
}

impl Outgoing {
    /// Sends all frames in order, without waiting; one that the kernel refuses is passed over, and those after it are tried.
    pub fn send(&mut self, socket: impl AsFd, frames: &[Vec<u8>]) -> Sent {
        let fd = socket.as_fd().as_raw_fd();
        self.iovecs.clear();
        self.headers.clear();
        self.iovecs.extend(frames.iter().map(|frame| libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() }));
        self.headers.extend(self.iovecs.iter_mut().map(|iovec| {
            let mut header = empty();
            (header.msg_hdr.msg_iov, header.msg_hdr.msg_iovlen) = (iovec, 1);
            header
        }));
        let (mut sent, mut left) = (Sent::default(), &mut self.headers[..]);
        while !left.is_empty() {
            let (headers, count) = (left.as_mut_ptr(), left.len() as libc::c_uint);
            // SAFETY: `count` headers follow the pointer. They point to frames, which the kernel reads within their lengths; all lives through the call.
            let went = match checked(unsafe { libc::sendmmsg(fd, headers, count, libc::MSG_DONTWAIT as _) }) {
                Ok(count) => {
                    sent.frames += count as u64;
                    count
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
                Err(error) => {
                    sent.failed += 1;
                    sent.error = Some(error);
                    1
                }
            };
            left = &mut left[went..];
        }
        sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn datagrams_come_in_batches_behind_their_headroom() {
        let (there, here) = (UdpSocket::bind("127.0.0.1:0").expect("a port"), UdpSocket::bind("127.0.0.1:0").expect("a port"));
        let from = there.local_addr().expect("bound").port();
        there.connect(here.local_addr().expect("bound")).expect("is there");
        crate::set_option(&here, libc::IPPROTO_IP, libc::IP_RECVTOS, &1i32.to_ne_bytes()).expect("Linux");
        let frames: Vec<Vec<u8>> = (0..5).map(|n| vec![n; 10 + usize::from(n)]).collect();
        assert_eq!(Outgoing::default().send(&there, &frames).frames, 5);
        let mut batch = Batch::new(4, 16, 4);
        for round in 0..2 {
            // Three into the slots behind the first; the last two afterwards, of which the second is cut to its slot.
            let count = [3, 2][round];
            assert_eq!(batch.receive(&here, 1).expect("received"), count);
            for at in 1..=count {
                let number = round * 3 + at - 1;
                let length = (10 + number).min(12);
                assert_eq!(batch.length(at), length);
                assert_eq!(batch.slot(at)[..4 + length], [&[0; 4][..], &frames[number][..length]].concat());
                // Family, and the port in the network's order.
                assert_eq!(batch.address(at)[2..8], [&from.to_be_bytes()[..], &[127, 0, 0, 1]].concat());
                let tos = Message { level: libc::IPPROTO_IP, kind: libc::IP_TOS, data: &[0] };
                assert_eq!(batch.messages(at).collect::<Vec<_>>(), [tos]);
                batch.release(at);
            }
        }
        assert_eq!(batch.receive(&here, 0).expect("nothing is there"), 0);
        assert_eq!(batch.receive(&here, 4).expect("no slot is left"), 0);
    }

    #[test]
    fn what_is_refused_is_an_error() {
        let here = UdpSocket::bind("127.0.0.1:0").expect("a port");
        // Nobody is named to whom.
        let sent = Outgoing::default().send(&here, &[vec![1], vec![2]]);
        assert_eq!((sent.frames, sent.failed), (0, 2));
        assert_eq!(sent.error.and_then(|error| error.raw_os_error()), Some(libc::EDESTADDRREQ));
        assert!(crate::interface_flags(&here, "lo").is_ok_and(|flags| flags & libc::IFF_LOOPBACK != 0));
        assert!(crate::interface_flags(&here, "no-such-one").is_err());
        let mut kind = [0; 4];
        crate::option(&here, libc::SOL_SOCKET, libc::SO_TYPE, &mut kind).expect("is read");
        assert_eq!(i32::from_ne_bytes(kind), libc::SOCK_DGRAM);
    }

    #[test]
    fn control_messages_that_are_cut_end_the_list() {
        let head = |length: usize| [&length.to_ne_bytes()[..], &1i32.to_ne_bytes(), &2i32.to_ne_bytes()].concat();
        let size = head(0).len();
        let whole = [head(size + 1), vec![7], vec![0; size_of::<usize>() - 1], head(size + 2), vec![8, 9]].concat();
        let read = |bytes: &[u8]| messages(bytes).map(|message| message.data.to_vec()).collect::<Vec<_>>();
        assert_eq!(read(&whole), [vec![7], vec![8, 9]]);
        assert_eq!(read(&whole[..whole.len() - 1]), [vec![7]]);
        assert_eq!(read(&whole[..size - 1]), Vec::<Vec<u8>>::new());
        for length in [0, size - 1, usize::MAX] {
            assert_eq!(read(&head(length)), Vec::<Vec<u8>>::new());
        }
    }
}
