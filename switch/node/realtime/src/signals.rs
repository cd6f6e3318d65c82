//! Signals as something to wait for.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// Readable once the process is asked to end.
#[derive(Debug)]
pub struct Termination(SignalFd);

impl Termination {
    /// Takes over SIGINT and SIGTERM. Call before any thread is started: they inherit the blocked signals.
    ///
    /// # Errors
    /// Those of signalfd(2).
    pub fn take_over() -> io::Result<Self> {
        take_over([Signal::SIGINT, Signal::SIGTERM]).map(Termination)
    }
}

/// Readable once the process is asked to read its files again.
#[derive(Debug)]
pub struct Reload(SignalFd);

impl Reload {
    /// Takes over SIGHUP. Call before any thread is started.
    ///
    /// # Errors
    /// Those of signalfd(2).
    pub fn take_over() -> io::Result<Self> {
        take_over([Signal::SIGHUP]).map(Reload)
    }

    /// Answers the request: it is readable again at the next.
    pub(crate) fn take(&self) {
        let _ = self.0.read_signal();
    }
}

fn take_over(signals: impl IntoIterator<Item = Signal>) -> io::Result<SignalFd> {
    let set: SigSet = signals.into_iter().collect();
    set.thread_block()?;
    Ok(SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?)
}

impl AsFd for Reload {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsFd for Termination {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
