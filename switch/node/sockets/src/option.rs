//! Options by number, a socket's address, and flags of interfaces.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use crate::checked;

/// Sets an option of a socket: setsockopt(2).
///
/// # Errors
/// Those of the call.
pub fn set_option(socket: impl AsFd, level: c_int, name: c_int, value: &[u8]) -> io::Result<()> {
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel reads `value` within its length.
    let set = unsafe { libc::setsockopt(fd, level, name, value.as_ptr().cast(), value.len() as libc::socklen_t) };
    checked(set).map(drop)
}

/// Reads an option of a socket: getsockopt(2). What the kernel leaves of `value` stays.
///
/// # Errors
/// Those of the call.
pub fn option(socket: impl AsFd, level: c_int, name: c_int, value: &mut [u8]) -> io::Result<()> {
    let (fd, mut length) = (socket.as_fd().as_raw_fd(), value.len() as libc::socklen_t);
    // SAFETY: the kernel writes into `value` within `length`, which is its length.
    let got = unsafe { libc::getsockopt(fd, level, name, value.as_mut_ptr().cast(), &mut length) };
    checked(got).map(drop)
}

/// Gives a socket an address, the bytes of a `sockaddr` of its family: bind(2).
///
/// # Errors
/// Those of the call.
pub fn bind(socket: impl AsFd, address: &[u8]) -> io::Result<()> {
    // SAFETY: the kernel reads `address` within its length.
    let bound = unsafe { libc::bind(socket.as_fd().as_raw_fd(), address.as_ptr().cast(), address.len() as libc::socklen_t) };
    checked(bound).map(drop)
}

/// The flags of an interface, as in netdevice(7).
///
/// # Errors
/// There is none of this name.
pub fn interface_flags(socket: impl AsFd, name: &str) -> io::Result<c_int> {
    /// `struct ifreq`: a name that ends with 0, and the answer.
    const REQUEST: usize = size_of::<libc::ifreq>();
    let mut request = [0; REQUEST];
    for (to, from) in request.iter_mut().take(libc::IFNAMSIZ - 1).zip(name.bytes()) {
        *to = from;
    }
    // SAFETY: the kernel reads and writes one `struct ifreq`, which is what `request` has room for.
    let answer = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::SIOCGIFFLAGS as _, request.as_mut_ptr()) };
    checked(answer)?;
    Ok(i16::from_ne_bytes([request[libc::IFNAMSIZ], request[libc::IFNAMSIZ + 1]]).into())
}
