//! The SACK scoreboard [RFC 6675 sec 3, 4]: what of the data in flight the receiver holds, what counts as lost, and
//! what to send next.
//!
//! RFC 6675 defines `SetPipe` octet by octet. The scoreboard works on ranges instead, with the same result: `IsLost` is
//! monotonic (whatever lies below a lost octet and is not SACKed is lost too), so one boundary, `lost_end`, separates lost holes
//! from holes that are in flight. It is moved when SACK blocks arrive, and a query costs one pass over the SACKed ranges.

use crate::ranges::Ranges;

/// [RFC 6675 sec 2].
pub(crate) const DUP_THRESH: usize = 3;

#[derive(Clone, Debug)]
pub(crate) struct Scoreboard {
    /// SACKed ranges, all above the cumulative acknowledgement.
    sacked: Ranges,
    /// Octets below it that are not SACKed are lost (`IsLost`).
    lost_end: u64,
    /// One past HighRxt, the highest octet retransmitted in this recovery.
    pub high_rxt: u64,
    /// One past RescueRxt: no rescue retransmission before a cumulative acknowledgement is above it (NextSeg rule 4).
    pub rescue_rxt: u64,
}

/// What `NextSeg` answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NextSeg {
    /// Retransmit from here, up to the end of the hole.
    Hole { start: u64, end: u64 },
    /// New data.
    New,
    /// Rule 4: the highest octets that are not SACKed once more, so that the ACK clock does not stop.
    Rescue { start: u64, end: u64 },
}

impl Scoreboard {
    pub fn new() -> Self {
        Scoreboard { sacked: Ranges::with_capacity(16), lost_end: 0, high_rxt: 0, rescue_rxt: 0 }
    }

    /// `Update`: takes one SACK block; returns how many octets were new.
    pub fn sack(&mut self, start: u64, end: u64) -> u64 {
        self.sacked.insert(start, end)
    }

    /// `IsLost` of section 4, for all octets at once; call after the blocks of an ACK were taken. An octet is lost when
    /// DupThresh discontiguous ranges, or more than (DupThresh - 1) * SMSS octets, are SACKed above it.
    pub fn update_lost(&mut self, mss: u64) {
        let (mut ranges, mut octets) = (0, 0);
        for &(start, end) in self.sacked.as_slice().iter().rev() {
            ranges += 1;
            octets += end - start;
            if ranges >= DUP_THRESH || octets > (DUP_THRESH as u64 - 1) * mss {
                self.lost_end = self.lost_end.max(start);
                return;
            }
        }
    }

    /// How many octets below `at` are SACKed and not yet acknowledged cumulatively.
    pub fn sacked_below(&self, at: u64) -> u64 {
        self.sacked.bytes_below(at)
    }

    /// `at`, or the end of the SACKed range that it lies in.
    pub fn skip_sacked(&self, at: u64) -> u64 {
        self.sacked.containing(at).map_or(at, |(_, end)| end)
    }

    /// Where the first SACKed range above `at` begins; `at` itself is not SACKed.
    pub fn next_sacked(&self, at: u64) -> Option<u64> {
        let ranges = self.sacked.as_slice();
        ranges.get(ranges.partition_point(|range| range.0 <= at)).map(|range| range.0)
    }

    /// The cumulative acknowledgement moved to `una`.
    pub fn advance(&mut self, una: u64) {
        self.sacked.remove_below(una);
        self.high_rxt = self.high_rxt.max(una);
        self.lost_end = self.lost_end.max(una);
    }

    /// Forgets all SACKs: after a timeout the receiver may have reneged [RFC 2018 sec 8].
    pub fn clear(&mut self, una: u64) {
        self.sacked.clear();
        self.lost_end = una;
        self.high_rxt = una;
    }

    /// Recovery begins: nothing has been retransmitted in it.
    pub fn begin_recovery(&mut self, una: u64) {
        self.high_rxt = una;
    }

    /// Step (4.3) of section 5: recovery's first retransmission goes up to `end`.
    pub fn first_retransmitted(&mut self, end: u64) {
        self.high_rxt = self.high_rxt.max(end);
        self.rescue_rxt = end;
    }

    /// Whether the octet at `at` is lost.
    pub fn is_lost(&self, at: u64) -> bool {
        at < self.lost_end && self.sacked.containing(at).is_none()
    }

    /// Octets below it that are not SACKed are lost.
    pub fn lost_end(&self) -> u64 {
        self.lost_end
    }

    /// How many octets from `at` on count as lost, sent again or not.
    pub fn lost_above(&self, at: u64) -> u64 {
        let sacked = self.sacked.bytes_below(self.lost_end) - self.sacked.bytes_below(at.min(self.lost_end));
        self.lost_end.saturating_sub(at).saturating_sub(sacked)
    }

    /// `SetPipe`: octets in the network, of `una..high_data`.
    pub fn pipe(&self, una: u64, high_data: u64) -> u64 {
        let lost_end = self.lost_end.max(una);
        let in_flight =
            high_data.saturating_sub(lost_end) - self.sacked.bytes_below(u64::MAX).saturating_sub(self.sacked.bytes_below(lost_end));
        let retransmitted = self.high_rxt.saturating_sub(una) - self.sacked.bytes_below(self.high_rxt);
        in_flight + retransmitted
    }

    /// `NextSeg` for `una..high_data`: `new_data` says whether unsent data exist and the receiver's window admits them. `None`: nothing to
    /// send.
    pub fn next_seg(&self, una: u64, high_data: u64, new_data: bool) -> Option<NextSeg> {
        let hole = self.first_hole(self.high_rxt.max(una));
        // (1) a hole that is lost
        if let Some((start, end)) = hole.filter(|h| h.0 < self.lost_end) {
            return Some(NextSeg::Hole { start, end });
        }
        // (2) new data
        if new_data {
            return Some(NextSeg::New);
        }
        // (3) a hole not known to be lost
        if let Some((start, end)) = hole {
            return Some(NextSeg::Hole { start, end });
        }
        // (4) once per recovery, when more than what fast retransmit sent is acknowledged
        if una <= self.rescue_rxt {
            return None;
        }
        let (start, end) = self.last_hole(una, high_data);
        (start < end).then_some(NextSeg::Rescue { start, end })
    }

    /// What Sack1 sends next: the first hole below a SACKed octet that was not sent again yet, then new data.
    pub fn next_seg_sack1(&self, una: u64, new_data: bool) -> Option<NextSeg> {
        let hole = self.first_hole(self.high_rxt.max(una)).map(|(start, end)| NextSeg::Hole { start, end });
        hole.or(new_data.then_some(NextSeg::New))
    }

    /// The highest octets of `una..high_data` that are not SACKed; empty where all are.
    fn last_hole(&self, una: u64, high_data: u64) -> (u64, u64) {
        let ranges = self.sacked.as_slice();
        match ranges {
            [below @ .., last] if last.1 >= high_data => (below.last().map_or(una, |range| range.1), last.0),
            _ => (ranges.last().map_or(una, |range| range.1), high_data),
        }
    }

    /// The first hole at or above `from` with a SACKed octet above it.
    fn first_hole(&self, from: u64) -> Option<(u64, u64)> {
        let mut start = from;
        for &(left, right) in self.sacked.as_slice() {
            if left > start {
                return Some((start, left));
            }
            start = start.max(right);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Sections 3 and 4 octet by octet, as written.
    fn naive_lost(sacked: &[bool], at: usize, mss: usize) -> bool {
        let above = &sacked[at + 1..];
        let octets = above.iter().filter(|&&s| s).count();
        let ranges = (0..above.len()).filter(|&i| above[i] && (i == 0 || !above[i - 1])).count();
        !sacked[at] && (ranges >= DUP_THRESH || octets > (DUP_THRESH - 1) * mss)
    }

    proptest! {
        #[test]
        fn pipe_and_is_lost_are_those_of_rfc_6675(
            blocks in prop::collection::vec((1u64..100, 1u64..8), 0..12), rxt in 0u64..100, mss in 1u64..5,
        ) {
            let mut board = Scoreboard::new();
            let mut sacked = vec![false; 120];
            for &(start, len) in &blocks {
                board.sack(start, start + len);
                sacked[start as usize..(start + len) as usize].fill(true);
            }
            board.update_lost(mss);
            board.high_rxt = rxt;
            let high_data = 110;
            let mut pipe = 0;
            for at in 0..high_data as usize {
                let lost = naive_lost(&sacked, at, mss as usize);
                prop_assert_eq!(board.is_lost(at as u64), lost, "octet {}", at);
                if !sacked[at] {
                    pipe += u64::from(!lost) + u64::from((at as u64) < rxt);
                }
            }
            prop_assert_eq!(board.pipe(0, high_data), pipe);
        }
    }

    #[test]
    fn next_seg_rules_in_order() {
        let mut board = Scoreboard::new();
        for start in [1000, 3000, 5000] {
            board.sack(start, start + 1000);
        }
        board.update_lost(1000);
        assert_eq!(board.next_seg(0, 8000, true), Some(NextSeg::Hole { start: 0, end: 1000 }), "(1)");
        board.high_rxt = 1000;
        assert_eq!(board.next_seg(0, 8000, true), Some(NextSeg::New), "(2): 2000 has only two ranges above it");
        assert_eq!(board.next_seg(0, 8000, false), Some(NextSeg::Hole { start: 2000, end: 3000 }), "(3)");
        board.high_rxt = 6000;
        board.first_retransmitted(1000);
        assert_eq!(board.next_seg(0, 8000, false), None, "(5): HighACK is not above RescueRxt");
        board.advance(1000);
        assert_eq!(board.next_seg(2000, 8000, false), Some(NextSeg::Rescue { start: 6000, end: 8000 }), "(4)");
        board.sack(6000, 8000);
        assert_eq!(
            board.next_seg(2000, 8000, false),
            Some(NextSeg::Rescue { start: 4000, end: 5000 }),
            "the highest octets without a SACK"
        );
        board.rescue_rxt = 8000;
        assert_eq!(board.next_seg(2000, 8000, false), None, "once");
    }
}
