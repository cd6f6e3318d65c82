//! The wall clock of a switch.

use std::io;
use std::num::NonZeroU64;

use fairlane_device::Nanos;
use rustix::event::{poll, PollFd};
use rustix::io::Errno;
use rustix::process::{getpriority_process, setpriority_process};
use rustix::time::{clock_gettime, ClockId, Timespec};

/// Nanoseconds of `CLOCK_MONOTONIC`: the same for all switches (and for Python's `time.monotonic()`) on one machine.
pub fn now() -> Nanos {
    read(ClockId::Monotonic)
}

/// Nanoseconds since 1970 (`CLOCK_REALTIME`).
pub fn unix() -> Nanos {
    read(ClockId::Realtime)
}

fn read(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// Sleeps until a descriptor is readable, an instant has come, or a signal; says how many are readable.
///
/// # Errors
/// Those of poll(2).
pub fn wait(polled: &mut [PollFd<'_>], until: Option<Nanos>) -> io::Result<usize> {
    let timeout = until.map(|until| {
        let left = until.saturating_sub(now());
        Timespec { tv_sec: (left / 1_000_000_000) as _, tv_nsec: (left % 1_000_000_000) as _ }
    });
    poll(polled, timeout.as_ref()).or_else(|error| match error {
        Errno::INTR => {
            polled.iter_mut().for_each(PollFd::clear_revents);
            Ok(0)
        }
        error => Err(error.into()),
    })
}

/// Lets the calling thread run as soon as a frame or an instant has come, whatever else there is to run (the lowest of the real-time priorities,
/// sched(7)). False when the kernel refuses.
pub fn run_before_others() -> bool {
    fairlane_sockets::schedule(libc::SCHED_FIFO, 1)
}

/// Makes timed waits of the calling thread end within microseconds instead of the kernel's usual 50 µs of slack.
pub fn sharpen_timers() {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// What Open vSwitch's daemon gives itself (`ovs-ctl`, `--ovs-vswitchd-priority`).
const NICE: i32 = -10;

/// Lets the calling thread run before those of other programs, where that is allowed and nobody has chosen another priority for it.
pub fn go_first() {
    let unchosen = fairlane_sockets::is_ordinary() && getpriority_process(None) == Ok(0);
    if unchosen && setpriority_process(None, NICE).is_ok() {
        // Threads that this one starts, such as the translator of programs, begin at 0 again.
        fairlane_sockets::schedule(libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK, 0);
    }
}
