//! The wall clock of a switch.

#![allow(unsafe_code)]

use fairlane_device::Nanos;

/// Nanoseconds of `CLOCK_MONOTONIC`: the same for all switches (and for Python's `time.monotonic()`) on one machine.
pub fn now() -> Nanos {
    read(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds since 1970 (`CLOCK_REALTIME`).
pub fn unix() -> Nanos {
    read(libc::CLOCK_REALTIME)
}

fn read(clock: libc::clockid_t) -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place to write; both clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// Makes timed waits of the calling thread end within microseconds instead of the kernel's usual 50 µs of slack.
pub fn sharpen_timers() {
    // SAFETY: takes no pointers.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1u64) };
}

/// What Open vSwitch's daemon gives itself (`ovs-ctl`, `--ovs-vswitchd-priority`).
const NICE: i32 = -10;

/// Lets the calling thread run before those of other programs, where that is allowed and nobody has chosen another priority for it.
pub fn go_first() {
    let ordinary = libc::sched_param { sched_priority: 0 };
    // SAFETY: the pointer is to a local. For Linux a thread has a priority of its own, and 0 is the calling one.
    unsafe {
        let unchosen = libc::sched_getscheduler(0) == libc::SCHED_OTHER && libc::getpriority(libc::PRIO_PROCESS, 0) == 0;
        if unchosen && libc::setpriority(libc::PRIO_PROCESS, 0, NICE) == 0 {
            // Threads that this one starts, such as the translator of programs, begin at 0 again.
            libc::sched_setscheduler(0, libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK, &raw const ordinary);
        }
    }
}
