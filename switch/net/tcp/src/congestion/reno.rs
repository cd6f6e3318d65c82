//! Reno [RFC 5681 sec 3.2]: fast retransmit and fast recovery, left at the first ACK of new data.

use super::{Core, DUP_THRESH};

pub(crate) fn on_new_ack(core: &mut Core, acked: u64) {
    if core.in_recovery {
        // step 6: deflate the window
        core.in_recovery = false;
        core.cwnd = core.ssthresh;
    } else {
        core.grow(acked);
    }
}

pub(crate) fn on_dup_ack(core: &mut Core) {
    if core.in_recovery {
        // step 4: one more segment has left the network
        core.cwnd = (core.cwnd + core.mss).min(core.max_window);
    } else if core.dup_acks == DUP_THRESH && core.may_fast_retransmit() {
        enter_recovery(core);
    }
}

/// Steps 2 and 3: half the window, the missing segment again, and three segments that have left the network.
pub(crate) fn enter_recovery(core: &mut Core) {
    core.ssthresh = core.half();
    core.begin_recovery();
    core.in_recovery = true;
    core.cwnd = (core.ssthresh + u64::from(DUP_THRESH) * core.mss).min(core.max_window);
    core.retransmit_first = true;
}
