//! Signals as something to wait for.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Readable once the process is asked to end.
#[derive(Debug)]
pub struct Termination(OwnedFd);

impl Termination {
    /// Takes over SIGINT and SIGTERM. Call before any thread is started: they inherit the blocked signals.
    ///
    /// # Errors
    /// Those of signalfd(2).
    pub fn take_over() -> io::Result<Self> {
        take_over(&[libc::SIGINT, libc::SIGTERM]).map(Termination)
    }
}

/// Readable once the process is asked to read its files again.
#[derive(Debug)]
pub struct Reload(OwnedFd);

impl Reload {
    /// Takes over SIGHUP. Call before any thread is started.
    ///
    /// # Errors
    /// Those of signalfd(2).
    pub fn take_over() -> io::Result<Self> {
        take_over(&[libc::SIGHUP]).map(Reload)
    }

    /// Answers the request: it is readable again at the next.
    pub(crate) fn take(&self) {
        let mut request = std::mem::MaybeUninit::<libc::signalfd_siginfo>::uninit();
        // SAFETY: the kernel writes at most the structure's size; the descriptor is non-blocking.
        unsafe { libc::read(self.0.as_raw_fd(), request.as_mut_ptr().cast(), size_of::<libc::signalfd_siginfo>()) };
    }
}

fn take_over(signals: &[libc::c_int]) -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised by sigemptyset before use; the descriptor is owned at once.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for &signal in signals {
            libc::sigaddset(&mut set, signal);
        }
        if libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
        let fd = libc::signalfd(-1, &set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

impl AsRawFd for Reload {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl AsRawFd for Termination {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
