//! NewReno (RFC 6582): Reno that stays in fast recovery until all data sent before it began are acknowledged, and sends one
//! missing segment per partial ACK.

use super::{reno, Core, DUP_THRESH};

/// What a NewReno sender remembers beside [`Core`].
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    /// Whether a partial ACK came in this recovery.
    partial_ack_seen: bool,
}

pub(crate) fn on_new_ack(state: &mut State, core: &mut Core, acked: u64) {
    if !core.in_recovery {
        return core.grow(acked);
    }
    if core.una >= core.recover {
        // section 3.2 step 3, full acknowledgement, option (1): no burst when little is in flight
        core.in_recovery = false;
        core.cwnd = core.ssthresh.min(core.flight_size().max(core.mss) + core.mss);
        return;
    }
    // partial acknowledgement: send the next hole, deflate by what was acknowledged, add one segment back
    core.retransmit_first = true;
    core.cwnd = core.cwnd.saturating_sub(acked).max(core.mss);
    if acked >= core.mss {
        core.cwnd += core.mss;
    }
    // only the first partial ACK restarts the timer
    core.keep_timer = state.partial_ack_seen;
    state.partial_ack_seen = true;
}

pub(crate) fn on_dup_ack(state: &mut State, core: &mut Core) {
    if !core.in_recovery && core.dup_acks == DUP_THRESH && core.may_fast_retransmit() {
        state.partial_ack_seen = false;
    }
    reno::on_dup_ack(core);
}
