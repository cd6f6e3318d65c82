//! How many files the process may have open.

use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};

/// Enough for all connections, interfaces and captures of a switch.
const ENOUGH: u64 = 1 << 16;

/// Raises the limit as far as the process may, and tells it.
pub fn raise() -> usize {
    let limit = getrlimit(Resource::Nofile);
    // None: there is no limit.
    let (current, most) = (limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX));
    let raised = most.min(ENOUGH).max(current);
    let current = if setrlimit(Resource::Nofile, Rlimit { current: Some(raised), ..limit }).is_ok() { raised } else { current };
    usize::try_from(current).unwrap_or(usize::MAX)
}
