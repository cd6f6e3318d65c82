//! When the calling thread runs, sched(7). For Linux a thread has a policy of its own, and 0 is the calling one.

use std::ffi::c_int;

/// Gives the calling thread a policy and a priority of it; false: the kernel refuses.
pub fn schedule(policy: c_int, priority: c_int) -> bool {
    // SAFETY: all-zero is a value of this plain struct, which has fields beside the priority in some C libraries; it lives through the call.
    unsafe {
        let mut parameter: libc::sched_param = std::mem::zeroed();
        parameter.sched_priority = priority;
        libc::sched_setscheduler(0, policy, &raw const parameter) == 0
    }
}

/// Nobody has given the calling thread another policy than the ordinary one.
pub fn is_ordinary() -> bool {
    // SAFETY: the call takes no pointer.
    unsafe { libc::sched_getscheduler(0) == libc::SCHED_OTHER }
}
