//! Loss recovery with selective acknowledgements [RFC 6675 sec 5]. What to send and how much is in the network is
//! [`crate::scoreboard`]'s; the sender sends while `cwnd - pipe >= SMSS`.

use super::{Core, DUP_THRESH};

/// `grow` is applied outside recovery (RFC 5681's window for SACK, RFC 9438's for CUBIC).
pub(crate) fn on_new_ack(core: &mut Core, grow: impl FnOnce(&mut Core)) {
    if !core.in_recovery {
        grow(core);
    } else if core.una >= core.recover {
        // step (A): all outstanding at the start is acknowledged; cwnd is ssthresh already
        core.in_recovery = false;
    }
}

/// Whether a duplicate ACK begins a recovery: steps (1) and (2).
pub(crate) fn begins_recovery(core: &Core) -> bool {
    (core.dup_acks >= DUP_THRESH || core.board.is_lost(core.una)) && core.may_sack_recover()
}

/// Step (4). `reduce` gives the new slow start threshold.
pub(crate) fn enter_recovery(core: &mut Core, reduce: impl FnOnce(&mut Core) -> u64) {
    core.ssthresh = reduce(core);
    core.cwnd = core.ssthresh;
    core.begin_recovery();
    core.in_recovery = true;
    core.board.begin_recovery(core.una);
    core.retransmit_first = true;
}
