//! Sack1: loss recovery with selective acknowledgements before RFC 6675 (K. Fall and S. Floyd, "Simulation-based Comparisons of Tahoe, Reno,
//! and SACK TCP", 1996; ns-2's `Agent/TCP/Sack1`).
//!
//! The sender counts `pipe`: less one segment for a duplicate ACK that reports new data, less two for a partial ACK, more by what it
//! sends. A lost segment stays in `pipe` until a partial ACK covers it, so many losses in one window end in a timeout. The sender
//! remembers SACK blocks in one fast recovery only: after a timeout it goes back N.

use super::{Core, DUP_THRESH};

pub(crate) fn on_new_ack(core: &mut Core, acked: u64) {
    if !core.in_recovery {
        core.board.clear(core.una);
        core.grow(acked);
    } else if core.una >= core.recover {
        core.in_recovery = false;
        core.board.clear(core.una);
        // the third duplicate ACK of the next segment begins a recovery at once
        core.recover = 0;
    } else {
        // a partial ACK: the retransmission has left the network, and so had the segment that was lost
        core.pipe = core.pipe.saturating_sub(2 * core.mss);
    }
}

pub(crate) fn on_dup_ack(core: &mut Core) {
    if core.in_recovery {
        core.pipe = core.pipe.saturating_sub(core.mss);
    } else if core.dup_acks == DUP_THRESH && core.may_fast_retransmit() {
        core.ssthresh = core.half();
        core.cwnd = core.ssthresh;
        core.begin_recovery();
        core.in_recovery = true;
        core.board.begin_recovery(core.una);
        core.pipe = core.flight_size().saturating_sub(u64::from(DUP_THRESH) * core.mss);
        core.retransmit_first = true;
    }
}
