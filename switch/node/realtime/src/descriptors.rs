//! How many files the process may have open.

#![allow(unsafe_code)]

/// Enough for all connections, interfaces and captures of a switch.
const ENOUGH: libc::rlim_t = 1 << 16;

/// Raises the limit as far as the process may, and tells it.
pub fn raise() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a structure that lives through the call.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return 1024;
    }
    let raised = libc::rlimit { rlim_cur: limit.rlim_max.min(ENOUGH).max(limit.rlim_cur), ..limit };
    // SAFETY: as above.
    let current = if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raised) } == 0 { raised.rlim_cur } else { limit.rlim_cur };
    usize::try_from(current).unwrap_or(usize::MAX)
}
