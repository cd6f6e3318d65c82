//! Tail loss probe [RFC 8985 sec 7]: where an ACK is overdue, one segment asks for it, so that RACK can find what was lost without the
//! retransmission timer.

use crate::Nanos;

/// PTO without a round trip measured [RFC 8985 sec 7.2].
const FIRST_PTO: Nanos = 1_000_000_000;

/// What TLP has to know of an ACK.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ack {
    pub ack: u64,
    /// The block that reports a duplicate (RFC 2883).
    pub dsack: Option<(u64, u64)>,
    /// Whether it acknowledges nothing new and has no SACK option.
    pub is_bare_duplicate: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Tlp {
    /// When the probe is due (PTO).
    pub due: Option<Nanos>,
    /// Whether new data have left or have been acknowledged since the PTO was armed.
    pub restart: bool,
    /// TLP.end_seq and TLP.is_retrans.
    end_seq: Option<u64>,
    is_retrans: bool,
    /// Whether a round trip was measured since the last probe.
    measured: bool,
}

impl Tlp {
    /// At the start of a fast recovery or of one from a timeout [RFC 8985 sec 7.1].
    pub fn reset(&mut self) {
        self.due = None;
        self.end_seq = None;
        self.is_retrans = false;
    }

    pub fn on_rtt(&mut self) {
        self.measured = true;
    }

    /// Arms the PTO; `rto`: when the retransmission timer runs out [RFC 8985 sec 7.2].
    pub fn arm(&mut self, now: Nanos, srtt: Option<Nanos>, max_ack_delay: Nanos, rto: Nanos) {
        let interval = srtt.map_or(FIRST_PTO, |srtt| 2 * srtt + max_ack_delay);
        self.due = Some((now + interval).min(rto));
    }

    /// Whether no probe is in flight, and a round trip was measured since the last one [RFC 8985 sec 7.3].
    pub fn may_probe(&self) -> bool {
        self.end_seq.is_none() && self.measured
    }

    /// A probe has left; `nxt`: SND.NXT after it.
    pub fn on_probe(&mut self, nxt: u64, is_retrans: bool) {
        self.end_seq = Some(nxt);
        self.is_retrans = is_retrans;
        self.measured = false;
    }

    /// Whether the ACK shows that the probe has repaired a loss, for which the window has to be reduced [RFC 8985 sec 7.4.2].
    pub fn on_ack(&mut self, ack: Ack) -> bool {
        let Some(end) = self.end_seq.filter(|&end| ack.ack >= end) else { return false };
        // of a new segment; or the original and the probe have both arrived
        let harmless = !self.is_retrans || ack.dsack.is_some_and(|block| block.1 == end);
        let repaired = !harmless && ack.ack > end;
        if harmless || repaired || ack.is_bare_duplicate {
            self.end_seq = None;
        }
        repaired
    }
}
