//! SIGINT and SIGTERM as something to wait for.

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
        // SAFETY: the set is initialised by sigemptyset before use; the descriptor is owned at once.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, libc::SIGINT);
            libc::sigaddset(&mut set, libc::SIGTERM);
            if libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
            let fd = libc::signalfd(-1, &set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Termination(OwnedFd::from_raw_fd(fd)))
        }
    }
}

impl AsRawFd for Termination {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
