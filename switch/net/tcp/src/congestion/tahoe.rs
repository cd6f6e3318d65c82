//! Tahoe (V. Jacobson, "Congestion Avoidance and Control", 1988; 4.3BSD-Tahoe): slow start, congestion avoidance and fast
//! retransmit, but no fast recovery. A third duplicate ACK acts as a timeout does, without waiting for one: the window falls
//! to one segment and everything from the missing segment on is sent again.

use super::{Core, DUP_THRESH};

pub(crate) fn on_new_ack(core: &mut Core, acked: u64) {
    core.grow(acked);
}

pub(crate) fn on_dup_ack(core: &mut Core) {
    if core.dup_acks == DUP_THRESH && core.may_fast_retransmit() {
        core.ssthresh = core.half();
        core.begin_recovery();
        core.cwnd = core.mss;
        core.nxt = core.una;
        core.retransmit_first = true;
    }
}
