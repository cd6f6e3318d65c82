//! RTCP reception statistics [RFC 3550 sec 6.4.1, A.1, A.3, A.8].

use crate::wire::rtcp::ReportBlock;
use crate::wire::rtp::CLOCK_HZ;
use crate::Nanos;

/// A jump ahead by more is a restart of the source, if the next packet follows on (appendix A.1; larger than its 3000, so that a
/// blackout of many seconds does not lose packets from the books).
const MAX_DROPOUT: u16 = 32_000;
/// A packet at most this far behind the highest is late, not a restart (appendix A.1).
const MAX_MISORDER: u32 = 100;

/// What a receiver knows of one source. The first packet counts (appendix A.1 with MIN_SEQUENTIAL = 1).
#[derive(Debug, Clone)]
pub struct SourceStatistics {
    pub ssrc: u32,
    base: Option<u16>,
    highest: u16,
    cycles: u64,
    received: u64,
    /// Of the sources before the last restart.
    expected_before: u64,
    received_before: u64,
    pub restarts: u64,
    pub out_of_order_packets: u64,
    jitter: f64,
    bad: Option<u16>,
    transit: Option<f64>,
    expected_prior: u64,
    received_prior: u64,
}

impl SourceStatistics {
    pub fn new(ssrc: u32) -> SourceStatistics {
        SourceStatistics {
            ssrc,
            base: None,
            highest: 0,
            cycles: 0,
            received: 0,
            expected_before: 0,
            received_before: 0,
            restarts: 0,
            out_of_order_packets: 0,
            jitter: 0.0,
            bad: None,
            transit: None,
            expected_prior: 0,
            received_prior: 0,
        }
    }

    fn restart(&mut self, sequence: u16) {
        self.expected_before += self.expected();
        self.received_before += self.received;
        self.base = Some(sequence);
        self.highest = sequence;
        self.cycles = 0;
        self.received = 0;
        self.bad = None;
        self.transit = None;
        (self.expected_prior, self.received_prior) = (0, 0);
    }

    /// Counts a data packet. False when it was set aside as a possible restart of the source (appendix A.1).
    pub fn update(&mut self, sequence: u16, timestamp: u32, arrival: Nanos) -> bool {
        if self.base.is_none() {
            self.restart(sequence);
        } else {
            let ahead = sequence.wrapping_sub(self.highest);
            if ahead < MAX_DROPOUT {
                if sequence < self.highest {
                    self.cycles += 65_536;
                }
                self.highest = sequence;
            } else if u32::from(ahead) <= 65_536 - MAX_MISORDER {
                if self.bad != Some(sequence) {
                    self.bad = Some(sequence.wrapping_add(1));
                    return false;
                }
                self.restart(sequence);
                self.restarts += 1;
            } else {
                self.out_of_order_packets += 1;
            }
        }
        self.received += 1;
        // Appendix A.8: J += (|D| - J) / 16, D the change of (arrival - timestamp), modulo 2^32 as timestamps wrap.
        const WRAP: f64 = 4_294_967_296.0;
        let units = arrival as u128 * u128::from(CLOCK_HZ);
        let (whole, part) = (units / 1_000_000_000, units % 1_000_000_000);
        let transit = f64::from((whole as u32).wrapping_sub(timestamp)) + part as f64 / 1e9;
        if let Some(before) = self.transit {
            let change = (transit - before).abs();
            self.jitter += (change.min(WRAP - change) - self.jitter) / 16.0;
        }
        self.transit = Some(transit);
        true
    }

    /// Grows without wrapping; 32 bits of it go on the wire.
    pub fn extended_highest_sequence(&self) -> u64 {
        self.cycles + u64::from(self.highest)
    }

    fn expected(&self) -> u64 {
        self.base.map_or(0, |base| self.extended_highest_sequence() - u64::from(base) + 1)
    }

    /// Expected minus received, over all restarts; negative when there were more duplicates than losses (appendix A.3).
    pub fn lost_packets(&self) -> i64 {
        let (expected, received) = self.totals();
        expected as i64 - received as i64
    }

    /// Whether a packet has come.
    pub fn has_heard(&self) -> bool {
        self.base.is_some()
    }

    /// Expected and received packets, over all restarts.
    pub fn totals(&self) -> (u64, u64) {
        (self.expected_before + self.expected(), self.received_before + self.received)
    }

    /// Whether data came since the last block: only then a report has one [RFC 3550 sec 6.4].
    pub fn heard_since_report(&self) -> bool {
        self.received > self.received_prior
    }

    /// A block for a report sent now; starts the next loss interval (appendix A.3).
    pub fn report_block(&mut self, lsr: u32, dlsr: u32) -> ReportBlock {
        let expected = self.expected();
        let expected_interval = expected - self.expected_prior;
        let lost_interval = expected_interval as i64 - (self.received - self.received_prior) as i64;
        (self.expected_prior, self.received_prior) = (expected, self.received);
        let fraction =
            if expected_interval > 0 && lost_interval > 0 { ((lost_interval as u64 * 256) / expected_interval).min(255) as u8 } else { 0 };
        ReportBlock {
            ssrc: self.ssrc,
            fraction_lost: fraction,
            cumulative_lost: (expected as i64 - self.received as i64).clamp(-0x80_0000, 0x7f_ffff) as i32,
            extended_highest_sequence: self.extended_highest_sequence() as u32,
            jitter: self.jitter as u32,
            lsr,
            dlsr,
        }
    }
}

/// Loss fraction between two reports of one receiver, exact: the wire's fraction has 8 bits and rounds down. `None` for a first
/// report, and when the difference is none that a receiver could have counted (restart, reordering, forgery, saturation).
pub fn loss_between(previous: Option<&ReportBlock>, block: &ReportBlock) -> Option<f64> {
    let (expected, lost) = packets_between(previous, block)?;
    Some(if expected == 0 { 0.0 } else { f64::from(lost) / f64::from(expected) })
}

/// Packets expected and lost between two reports, `None` as for [`loss_between`].
pub fn packets_between(previous: Option<&ReportBlock>, block: &ReportBlock) -> Option<(u32, u32)> {
    let previous = previous?;
    if previous.ssrc != block.ssrc || block.cumulative_lost == 0x7f_ffff {
        return None;
    }
    let expected = block.extended_highest_sequence.wrapping_sub(previous.extended_highest_sequence);
    let lost = i64::from(block.cumulative_lost) - i64::from(previous.cumulative_lost);
    if expected >= 0x8000_0000 || lost > i64::from(expected) {
        return None;
    }
    Some((expected, lost.max(0) as u32))
}

/// Losses over several streams together: exact where the reports before tell, and of the 8-bit fractions, each with the weight of
/// its packets; those that are reported for the first time count when there are no others.
pub fn loss_of_layers<'a>(blocks: impl Iterator<Item = (Option<&'a ReportBlock>, &'a ReportBlock)>) -> (Option<f64>, f64) {
    let (mut expected_sum, mut lost_sum, mut weighted) = (0.0, 0.0, 0.0);
    let (mut first_sum, mut first_count) = (0.0, 0.0);
    for (before, block) in blocks {
        let fraction = f64::from(block.fraction_lost) / 256.0;
        match packets_between(before, block) {
            Some((expected, lost)) => {
                expected_sum += f64::from(expected);
                lost_sum += f64::from(lost);
                weighted += fraction * f64::from(expected);
            }
            None => {
                first_sum += fraction;
                first_count += 1.0;
            }
        }
    }
    if expected_sum > 0.0 {
        (Some(lost_sum / expected_sum), weighted / expected_sum)
    } else {
        (None, if first_count > 0.0 { first_sum / first_count } else { 0.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn losses_are_counted_over_wraps_and_reported_once() {
        let mut source = SourceStatistics::new(5);
        for n in 0..1000u32 {
            if n % 10 != 9 {
                assert!(source.update((65_000 + n) as u16, n * 900, u64::from(n) * 10_000_000));
            }
        }
        // The last packet lost is not missed yet.
        assert_eq!(source.lost_packets(), 99);
        let first = source.report_block(0, 0);
        assert_eq!((first.fraction_lost, first.cumulative_lost), ((99 * 256 / 999) as u8, 99));
        assert_eq!(first.jitter, 0);
        let second = source.report_block(0, 0);
        assert_eq!((second.fraction_lost, second.cumulative_lost), (0, 99));
        assert_eq!(loss_between(Some(&first), &second), Some(0.0));
        assert_eq!(loss_between(None, &second), None);
    }

    #[test]
    fn a_far_jump_is_a_restart_when_it_goes_on() {
        let mut source = SourceStatistics::new(5);
        assert!(source.update(0, 0, 0));
        assert!(!source.update(40_000, 0, 0));
        assert!(source.update(40_001, 0, 0));
        assert_eq!(source.restarts, 1);
        assert_eq!(source.lost_packets(), 0);
    }

    fn fed(sequences: impl IntoIterator<Item = u32>) -> SourceStatistics {
        let mut source = SourceStatistics::new(1);
        for sequence in sequences {
            source.update(sequence as u16, 0, 0);
        }
        source
    }

    #[test]
    fn fraction_and_cumulative_loss_by_hand() {
        // A.3: of 10 expected, 3 lost: fraction 3 * 256 / 10 = 76; the next interval starts afresh.
        let mut source = fed([0, 1, 2, 4, 6, 7, 9]);
        let first = source.report_block(0, 0);
        assert_eq!((first.fraction_lost, first.cumulative_lost, first.extended_highest_sequence), (76, 3, 9));
        for sequence in 10..14 {
            source.update(sequence, 0, 0);
        }
        let second = source.report_block(5, 6);
        assert_eq!((second.fraction_lost, second.cumulative_lost, second.lsr, second.dlsr), (0, 3, 5, 6));
        // A duplicate makes the loss negative and the fraction 0; nothing heard is all 0.
        let twice = fed([1, 2, 2, 3]).report_block(0, 0);
        assert_eq!((twice.fraction_lost, twice.cumulative_lost), (0, -1));
        assert_eq!(SourceStatistics::new(1).report_block(0, 0), ReportBlock { ssrc: 1, ..ReportBlock::default() });
    }

    #[test]
    fn a_small_loss_reads_zero_in_eight_bits_and_not_between_reports() {
        let mut source = fed(0..600);
        let first = source.report_block(0, 0);
        for sequence in (600..1200).filter(|&n| n != 700) {
            source.update(sequence, 0, 0);
        }
        let second = source.report_block(0, 0);
        assert_eq!((second.fraction_lost, packets_between(Some(&first), &second)), (0, Some((600, 1))));
    }

    #[test]
    fn jitter_by_hand() {
        // A.8: arrivals at 0, 30, 40 ms of packets stamped 0, 20, 40 ms: |D| = 900, 900 units: J = 56.25, 56.25 + 843.75 / 16.
        let mut source = SourceStatistics::new(1);
        for (sequence, (timestamp, ms)) in [(0, 0), (1800, 30), (3600, 40)].into_iter().enumerate() {
            source.update(sequence as u16, timestamp, ms * 1_000_000);
        }
        assert!((source.jitter - (56.25 + 843.75 / 16.0)).abs() < 1e-9, "{}", source.jitter);
        let mut source = SourceStatistics::new(1);
        for n in 0..10u32 {
            source.update(n as u16, 0xffff_ff00u32.wrapping_add(1800 * n), 1_000_000_000_000_000 + u64::from(n) * 20_000_000);
        }
        assert!(source.jitter < 0.01, "timestamps wrap");
    }

    proptest! {
        #[test]
        fn counts_are_exact_across_the_wrap(first: u16, mut arrives in prop::collection::vec(any::<bool>(), 1..400)) {
            arrives[0] = true;
            *arrives.last_mut().expect("one at least") = true;
            let source = fed((0..).zip(&arrives).filter(|&(_, &here)| here).map(|(n, _)| u32::from(first) + n));
            let lost = arrives.iter().filter(|&&here| !here).count();
            prop_assert_eq!((source.totals().0, source.lost_packets()), (arrives.len() as u64, lost as i64));
            prop_assert_eq!(source.extended_highest_sequence(), u64::from(first) + arrives.len() as u64 - 1);
        }

        #[test]
        fn no_pair_of_reports_yields_an_impossible_fraction(lost in any::<(i32, i32)>(), highest in any::<(u32, u32)>()) {
            let block = |lost, highest| ReportBlock { cumulative_lost: lost >> 8, extended_highest_sequence: highest, ..ReportBlock::default() };
            let found = loss_between(Some(&block(lost.0, highest.0)), &block(lost.1, highest.1));
            prop_assert!(found.is_none_or(|fraction| (0.0..=1.0).contains(&fraction)));
        }
    }
}
