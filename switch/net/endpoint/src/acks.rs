//! Acknowledgements of single packets: what rate and window schemes such as RAP and GAIMD need.
//!
//! The receiver answers each data packet with a datagram of 40 bytes to the data port: the packet's number, and which of the 32
//! packets before it have arrived, so that a lost acknowledgement loses nothing. The sender finds losses by gaps or by time. Where
//! the receiver's algorithm wants it, 8 bytes more say when the packet arrived, so that the sender knows the delay one way: what
//! RFC 8888 reports of each packet. Behind them stands what the packet's own header brings back (`header.rs`).

use std::collections::VecDeque;

use crate::algorithm::{Ack, Interests, Loss, LossCause, LossTimeout, PathState};
use crate::report::{SEQUENCE_MASK, VERSION};
use crate::{instant, seconds, Delays, Nanos};
use fairlane_units::rounded;

/// Bytes of an acknowledgement's payload: version and type of 4 bits each, 6 bits of flags, 2 of ECN, 48 of the number, 32 of history.
const ACK_BYTES: usize = 12;
/// With 64 bits of the instant of arrival.
const TIMED_ACK_BYTES: usize = 20;
const TYPE_ACK: u8 = 1;
/// Where the packet's ECN codepoint stands in the first 64 bits.
const ECN_SHIFT: u32 = 48;
const ECN_MASK: u8 = 0b11;

/// What an acknowledgement says. Bit k of `history`: packet `sequence - 1 - k` has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AckPacket<'a> {
    pub sequence: u64,
    pub history: u32,
    /// The packet's ECN field, as it arrived [RFC 8888 sec 3.1].
    pub ecn: u8,
    /// When the packet arrived, on the receiver's clock.
    pub arrived: Option<Nanos>,
    /// What the packet's own header brings back: whole words of 32 bits, only beside `arrived`; empty: nothing.
    pub header: &'a [u8],
}

impl<'a> AckPacket<'a> {
    /// Its bytes, in the place of what was in `bytes`.
    pub fn emit(&self, bytes: &mut Vec<u8>) {
        let first = u64::from(VERSION << 4 | TYPE_ACK) << 56 | u64::from(self.ecn & ECN_MASK) << ECN_SHIFT | self.sequence & SEQUENCE_MASK;
        bytes.clear();
        bytes.extend_from_slice(&first.to_be_bytes());
        bytes.extend_from_slice(&self.history.to_be_bytes());
        if let Some(arrived) = self.arrived {
            bytes.extend_from_slice(&arrived.to_be_bytes());
            bytes.extend_from_slice(self.header);
        }
    }

    /// `None` for what is no acknowledgement of this version. Flags are for later versions.
    pub fn parse(payload: &'a [u8]) -> Option<AckPacket<'a>> {
        let whole = payload.len() == ACK_BYTES || payload.len() >= TIMED_ACK_BYTES && payload.len().is_multiple_of(4);
        if payload.first() != Some(&(VERSION << 4 | TYPE_ACK)) || !whole {
            return None;
        }
        let (first, rest) = payload.split_first_chunk::<8>()?;
        let (history, rest) = rest.split_first_chunk::<4>()?;
        let (arrived, header) = rest.split_first_chunk::<8>().map_or((None, rest), |(arrived, header)| (Some(arrived), header));
        let first = u64::from_be_bytes(*first);
        Some(AckPacket {
            sequence: first & SEQUENCE_MASK,
            history: u32::from_be_bytes(*history),
            ecn: (first >> ECN_SHIFT) as u8 & ECN_MASK,
            arrived: arrived.map(|arrived| u64::from_be_bytes(*arrived)),
            header,
        })
    }
}

/// At the receiver: which packets have arrived.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    highest: Option<u64>,
    /// Bit k: packet `highest - k` has arrived.
    seen: u64,
}

impl Arrivals {
    /// A data packet arrived; the acknowledgement to send.
    pub(crate) fn arrived(&mut self, sequence: u64) -> AckPacket<'static> {
        match self.highest {
            Some(highest) if sequence <= highest => {
                self.seen |= 1u64.checked_shl(u32::try_from(highest - sequence).unwrap_or(u32::MAX)).unwrap_or(0);
            }
            highest => {
                let ahead = highest.map_or(0, |highest| u32::try_from(sequence - highest).unwrap_or(u32::MAX));
                self.seen = self.seen.checked_shl(ahead).unwrap_or(0) | 1;
                self.highest = Some(sequence);
            }
        }
        let behind = self.highest.map_or(0, |highest| u32::try_from(highest - sequence).unwrap_or(u32::MAX));
        let history = self.seen.checked_shr(behind.saturating_add(1)).unwrap_or(0) as u32;
        AckPacket { sequence, history, ..AckPacket::default() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Outstanding,
    Lost,
    /// No report that came has spoken of it, and none will: the reports that did were lost.
    Unreported,
    /// It arrived, as another packet's acknowledgement said.
    Told,
    /// Its own acknowledgement came: the sample of its round trip is taken.
    Acked,
}

/// Packets done with whose instants of sending are kept, so that an acknowledgement that comes after its packet was given up as lost
/// still tells the round trip: else a round trip that grew beyond the timeout would never be noticed.
const KEPT: u64 = 256;

/// Reports for which a packet may wait beyond a round trip before it is lost.
const REPORTS_AWAITED: u64 = 3;

/// At the sender: packets sent and not yet done with, and the path's round-trip times.
#[derive(Debug)]
pub(crate) struct AckBook {
    /// Number of the first in `packets`.
    base: u64,
    packets: VecDeque<(Nanos, Fate)>,
    /// Number of the first outstanding packet; that of the next packet when there is none.
    oldest: u64,
    in_flight: u64,
    highest_acked: Option<u64>,
    loss_distance: usize,
    /// The `loss_distance` highest numbers of packets known to have arrived, ascending.
    delivered: Vec<u64>,
    timeout: Option<LossTimeout>,
    /// Where packets are reported together: how often, as was agreed on.
    report_interval: Nanos,
    /// When the last report came, and how long after the one before.
    reported: Option<(Nanos, Nanos)>,
    rtt: PathState,
    /// Samples in a window.
    pub(crate) round_trips: Delays,
}

impl AckBook {
    pub(crate) fn new(interests: Interests) -> AckBook {
        AckBook {
            base: 0,
            packets: VecDeque::new(),
            oldest: 0,
            in_flight: 0,
            highest_acked: None,
            loss_distance: usize::try_from(interests.loss_distance_packets.max(1)).unwrap_or(usize::MAX),
            delivered: Vec::new(),
            timeout: None,
            report_interval: 0,
            reported: None,
            rtt: PathState::default(),
            round_trips: Delays::default(),
        }
    }

    /// The next packet, in order, is sent.
    pub(crate) fn sent(&mut self, now: Nanos) {
        self.packets.push_back((now, Fate::Outstanding));
        self.in_flight += 1;
    }

    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    pub(crate) fn set_timeout(&mut self, timeout: LossTimeout) {
        self.timeout = Some(timeout);
    }

    pub(crate) fn path(&self) -> PathState {
        PathState {
            in_flight_packets: self.in_flight,
            last_sent_sequence: self.end() as i64 - 1,
            highest_acked_sequence: self.highest_acked.map_or(-1, |highest| highest as i64),
            ..self.rtt
        }
    }

    /// Number of the next packet.
    fn end(&self) -> u64 {
        self.base + self.packets.len() as u64
    }

    /// An acknowledgement came: the losses it reveals, and what it says itself where that is news. `None` for one of a packet never sent.
    pub(crate) fn acknowledge<'a>(&mut self, now: Nanos, ack: AckPacket<'a>) -> Option<(Option<Loss>, Option<Ack<'a>>)> {
        if ack.sequence >= self.end() {
            return None;
        }
        let (mut newly, mut sample, mut one_way_delay_s) = (0, None, None);
        let numbers = std::iter::once(ack.sequence)
            .chain((0..32u64).filter(|k| ack.history >> k & 1 == 1).filter_map(|k| ack.sequence.checked_sub(k + 1)));
        for number in numbers {
            let Some(packet) = number.checked_sub(self.base).and_then(|at| self.packets.get_mut(at as usize)) else { continue };
            let before = packet.1;
            if number == ack.sequence {
                if before != Fate::Acked {
                    sample = Some(seconds(now - packet.0));
                    // Clocks of two machines need not agree: the difference may be negative.
                    one_way_delay_s = ack.arrived.map(|at| (at as f64 - packet.0 as f64) / 1e9);
                }
                packet.1 = Fate::Acked;
            } else if before != Fate::Acked {
                packet.1 = Fate::Told;
            }
            if before == Fate::Outstanding {
                self.in_flight -= 1;
                newly += 1;
            }
            if matches!(before, Fate::Outstanding | Fate::Lost | Fate::Unreported) {
                self.arrived(number);
            }
        }
        let loss = self.heard(now, ack.sequence, sample);
        if newly == 0 && sample.is_none() {
            return Some((loss, None));
        }
        let ack = Ack {
            sequence: ack.sequence,
            rtt_s: sample.unwrap_or(self.rtt.latest_rtt_s),
            newly_acked_packets: newly,
            path: self.path(),
            one_way_delay_s,
            header: ack.header,
            ecn: ack.ecn,
            held_s: 0.0,
            ends_report: true,
        };
        Some((loss, Some(ack)))
    }

    /// What follows from the acknowledgement of a packet, with a sample of the round trip: losses.
    fn heard(&mut self, now: Nanos, number: u64, sample: Option<f64>) -> Option<Loss> {
        self.highest_acked = self.highest_acked.max(Some(number));
        if let Some(rtt_s) = sample {
            self.sample(rtt_s);
            self.round_trips.add(now, rounded(rtt_s));
        }
        let limit = if self.delivered.len() < self.loss_distance { 0 } else { self.delivered[0] };
        let loss = self.lose(LossCause::Gap, |number, _| number < limit);
        self.forget();
        loss
    }

    /// Packets are reported together, so often (RFC 8888).
    pub(crate) fn expect_reports(&mut self, interval: Nanos) {
        self.report_interval = interval;
    }

    /// A report came that speaks of packets from `first` on. Each report repeats the one before; so of packets that are passed over nothing
    /// will be known, and that is no sign of congestion: "assume that the level of congestion has remained roughly the same" [RFC 8888 sec 5].
    pub(crate) fn reports_from(&mut self, now: Nanos, first: u64) {
        if self.reported.is_none_or(|(before, _)| before != now) {
            self.reported = Some((now, self.reported.map_or(0, |(before, _)| now - before)));
        }
        let outstanding = self.packets.range_mut((self.oldest - self.base) as usize..);
        for (_, (_, fate)) in (self.oldest..first).zip(outstanding).filter(|(_, (_, fate))| *fate == Fate::Outstanding) {
            *fate = Fate::Unreported;
            self.in_flight -= 1;
        }
    }

    /// A report says that a packet arrived, so long after it left (with what the receiver's clock is ahead) and so long before the report.
    /// Times are `None` where the report does not say them. As [`AckBook::acknowledge`].
    pub(crate) fn reported(
        &mut self,
        now: Nanos,
        number: u64,
        arrival: Option<(f64, f64)>,
        ecn: u8,
    ) -> (Option<Loss>, Option<Ack<'static>>) {
        let Some(packet) = number.checked_sub(self.base).and_then(|at| self.packets.get_mut(at as usize)) else { return (None, None) };
        let (sent, before) = *packet;
        if before == Fate::Acked {
            return (None, None);
        }
        packet.1 = Fate::Acked;
        let newly = u64::from(before == Fate::Outstanding);
        self.in_flight -= newly;
        self.arrived(number);
        let since_s = seconds(now - sent);
        let sample = arrival.map(|(_, held_s)| (since_s - held_s).max(0.0));
        let loss = self.heard(now, number, sample);
        let ack = Ack {
            sequence: number,
            rtt_s: sample.unwrap_or(self.rtt.latest_rtt_s),
            newly_acked_packets: newly,
            path: self.path(),
            one_way_delay_s: arrival.map(|(arrived_s, _)| arrived_s - seconds(sent)),
            header: &[],
            ecn,
            held_s: sample.map_or(0.0, |rtt_s| since_s - rtt_s),
            ends_report: true,
        };
        (loss, Some(ack))
    }

    /// A packet is known to have arrived, for the first time.
    fn arrived(&mut self, number: u64) {
        let at = self.delivered.partition_point(|&other| other < number);
        self.delivered.insert(at, number);
        if self.delivered.len() > self.loss_distance {
            self.delivered.remove(0);
        }
    }

    /// The timeout in force, with the round-trip times of this moment.
    fn timeout(&self) -> Option<Nanos> {
        let timeout = self.timeout?.in_force_s(self.rtt.srtt_s, self.rtt.rttvar_s);
        // A packet may wait for its report, for the next one when that is lost, and for one more that passes it over when both are.
        let apart = self.reported.map_or(0, |(_, apart)| apart).max(self.report_interval);
        Some(instant(timeout).saturating_add(REPORTS_AWAITED * apart).max(1))
    }

    /// Packets older than the timeout in force are lost. `sending`: the look before a paced packet leaves, and not the timer's.
    pub(crate) fn expire(&mut self, now: Nanos, sending: bool) -> Option<Loss> {
        let timeout = self.timeout().filter(|_| self.looks_before_sending() == sending)?;
        let loss = self.lose(LossCause::Timeout, |_, sent| sent.saturating_add(timeout) <= now);
        self.forget();
        loss
    }

    fn looks_before_sending(&self) -> bool {
        self.timeout.is_some_and(|timeout| timeout.before_sending)
    }

    /// When [`AckBook::expire`] has something to do by itself.
    pub(crate) fn next_expiry(&self) -> Option<Nanos> {
        let timeout = self.timeout().filter(|_| !self.looks_before_sending())?;
        let (sent, _) = self.packets.get((self.oldest - self.base) as usize)?;
        Some(sent.saturating_add(timeout))
    }

    fn lose(&mut self, cause: LossCause, is_lost: impl Fn(u64, Nanos) -> bool) -> Option<Loss> {
        let mut lost: Option<(u64, u64, u64)> = None;
        let outstanding = self.packets.range_mut((self.oldest - self.base) as usize..);
        for (number, (sent, fate)) in (self.oldest..).zip(outstanding) {
            if !is_lost(number, *sent) {
                break;
            }
            if *fate == Fate::Outstanding {
                *fate = Fate::Lost;
                self.in_flight -= 1;
                lost = Some(lost.map_or((number, number, 1), |(first, _, count)| (first, number, count + 1)));
            }
        }
        let (first_sequence, last_sequence, lost_packets) = lost?;
        Some(Loss { first_sequence, last_sequence, lost_packets, cause, path: self.path() })
    }

    /// Drops what has been done with for long.
    fn forget(&mut self) {
        while self.packets.get((self.oldest - self.base) as usize).is_some_and(|(_, fate)| *fate != Fate::Outstanding) {
            self.oldest += 1;
        }
        while self.base + KEPT < self.oldest {
            self.packets.pop_front();
            self.base += 1;
        }
    }

    /// [RFC 6298 sec 2], with gains 1/8 and 1/4.
    fn sample(&mut self, rtt_s: f64) {
        let first = self.rtt.srtt_s == 0.0;
        let error = rtt_s - self.rtt.srtt_s;
        self.rtt = PathState {
            latest_rtt_s: rtt_s,
            srtt_s: if first { rtt_s } else { self.rtt.srtt_s + error / 8.0 },
            rttvar_s: if first { rtt_s / 2.0 } else { self.rtt.rttvar_s + (error.abs() - self.rtt.rttvar_s) / 4.0 },
            ..PathState::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn book(packets: u64) -> AckBook {
        let mut book = AckBook::new(Interests::default());
        (0..packets).for_each(|n| book.sent(n * 10));
        book
    }

    fn fixed(timeout_s: f64) -> LossTimeout {
        LossTimeout { timeout_s, ..LossTimeout::default() }
    }

    #[test]
    fn three_later_acknowledgements_reveal_a_loss() {
        let (mut book, mut arrivals) = (book(6), Arrivals::default());
        let mut found = Vec::new();
        for number in [0, 2, 3, 4, 5] {
            let (loss, ack) = book.acknowledge(1_000_000, arrivals.arrived(number)).expect("was sent");
            assert_eq!(ack.map(|ack| ack.newly_acked_packets), Some(1));
            found.push(loss.map(|loss| (loss.first_sequence, loss.last_sequence, loss.lost_packets)));
        }
        assert_eq!(found, [None, None, None, Some((1, 1, 1)), None]);
        assert_eq!(book.in_flight(), 0);
    }

    #[test]
    fn a_lost_acknowledgement_is_made_good_by_the_next() {
        let (mut book, mut arrivals) = (book(3), Arrivals::default());
        arrivals.arrived(0);
        arrivals.arrived(1);
        let (loss, ack) = book.acknowledge(1_000, arrivals.arrived(2)).expect("was sent");
        assert_eq!((loss, ack.map(|ack| ack.newly_acked_packets)), (None, Some(3)));
        assert_eq!(book.acknowledge(1_000, AckPacket { sequence: 3, history: 0, ..AckPacket::default() }), None);
    }

    #[test]
    fn the_delay_one_way_is_arrival_less_sending() {
        let mut book = book(3);
        let mut delay = |sequence, arrived| {
            let (_, ack) = book.acknowledge(1_000, AckPacket { sequence, arrived, ..AckPacket::default() }).expect("was sent");
            ack.expect("is news").one_way_delay_s
        };
        // Sent at 0, 10, 20 ns: 600 ns later; 5 ns earlier by a clock that is behind; not said.
        assert_eq!([delay(0, Some(600)), delay(1, Some(5)), delay(2, None)], [Some(600e-9), Some(-5e-9), None]);
    }

    #[test]
    fn what_is_too_old_is_lost() {
        let mut book = book(4);
        book.set_timeout(fixed(100e-9));
        assert_eq!(book.next_expiry(), Some(100));
        let loss = book.expire(115, false).expect("two are too old");
        assert_eq!((loss.first_sequence, loss.last_sequence, loss.cause), (0, 1, LossCause::Timeout));
        assert_eq!(book.next_expiry(), Some(120));
        assert_eq!(book.path().in_flight_packets, 2);
    }

    #[test]
    fn a_timeout_before_sending_has_no_timer() {
        let mut book = book(4);
        book.set_timeout(LossTimeout { before_sending: true, ..fixed(100e-9) });
        assert_eq!((book.next_expiry(), book.expire(115, false)), (None, None));
        let loss = book.expire(115, true).expect("two are too old");
        assert_eq!((loss.first_sequence, loss.last_sequence, loss.cause), (0, 1, LossCause::Timeout));
        // Both are done with; the next is 100 ns old at 120.
        assert_eq!((book.expire(119, true), book.expire(120, true).map(|loss| loss.first_sequence)), (None, Some(2)));
    }

    #[test]
    fn packets_that_arrived_count_and_not_numbers() {
        let (mut book, mut arrivals) = (book(12), Arrivals::default());
        let lost = |book: &mut AckBook, ack| {
            let (loss, _) = book.acknowledge(1_000_000, ack).expect("was sent");
            loss.map(|loss| (loss.first_sequence, loss.last_sequence, loss.lost_packets))
        };
        // 1 to 3 and 5 are lost: 4 and 6 are two packets, though 6 is 3 after 3. Then 7 is the third after 1 to 3, 8 after 5.
        let found: Vec<_> = [0, 4, 6, 7, 8].into_iter().map(|number| lost(&mut book, arrivals.arrived(number))).collect();
        assert_eq!(found, [None, None, None, Some((1, 3, 3)), Some((5, 5, 1))]);
        // What an acknowledgement implies counts as well.
        assert_eq!(lost(&mut book, AckPacket { sequence: 11, history: 0b11, ..AckPacket::default() }), None);
        assert_eq!(book.in_flight(), 0);
        let mut book = self::book(5);
        assert_eq!(lost(&mut book, AckPacket { sequence: 4, history: 0b110, ..AckPacket::default() }), Some((0, 0, 1)));
        assert_eq!(book.in_flight(), 1);
    }

    #[test]
    fn a_late_acknowledgement_tells_the_round_trip() {
        let mut book = book(400);
        book.set_timeout(fixed(100e-9));
        assert_eq!(book.expire(10_000, false).map(|loss| loss.lost_packets), Some(400));
        let (loss, ack) = book.acknowledge(20_000, AckPacket { sequence: 399, history: 0, ..AckPacket::default() }).expect("was sent");
        let ack = ack.expect("a sample is news");
        assert_eq!((loss, ack.newly_acked_packets), (None, 0));
        assert!((ack.path.srtt_s - 16_010e-9).abs() < 1e-15);
        // Once: what comes twice is no sample; nor is what was given up long ago.
        assert_eq!(book.acknowledge(30_000, AckPacket { sequence: 399, history: 0, ..AckPacket::default() }), Some((None, None)));
        assert_eq!(
            book.acknowledge(30_000, AckPacket { sequence: 400 - KEPT - 1, history: 0, ..AckPacket::default() }),
            Some((None, None))
        );
        assert!(book
            .acknowledge(30_000, AckPacket { sequence: 400 - KEPT, history: 0, ..AckPacket::default() })
            .expect("was sent")
            .1
            .is_some());
        assert_eq!(book.in_flight(), 0);
    }

    /// Packets 0 to 5 left each 10 ns. A report says that 1 and 3 arrived, and begins with 1: of 0 nothing is known, and 2 is lost when three later ones
    /// arrived. Of what it repeats nothing is news.
    #[test]
    fn a_report_tells_arrivals_and_losses_and_passes_over() {
        let (second, held) = (1_000_000_000, 0.25);
        let mut book = AckBook::new(Interests::default());
        (0..8).for_each(|_| book.sent(0));
        book.expect_reports(second / 10);
        book.set_timeout(fixed(0.5));
        // Half a second, and three intervals of reports.
        assert_eq!(book.next_expiry(), Some(second * 8 / 10));
        book.reports_from(second, 1);
        assert_eq!(book.in_flight(), 7);
        let (loss, ack) = book.reported(second, 1, Some((0.6, held)), 3);
        let ack = ack.expect("is news");
        assert_eq!((loss, ack.sequence, ack.newly_acked_packets, ack.ecn), (None, 1, 1, 3));
        assert_eq!((ack.rtt_s, ack.held_s, ack.one_way_delay_s), (0.75, 0.25, Some(0.6)));
        let losses: Vec<_> = [3, 4, 5].map(|number| book.reported(second, number, None, 0).0).into_iter().flatten().collect();
        assert_eq!(losses.iter().map(|loss| (loss.first_sequence, loss.lost_packets)).collect::<Vec<_>>(), [(2, 1)]);
        book.reports_from(second * 11 / 10, 1);
        assert_eq!(book.reported(second * 11 / 10, 1, Some((0.6, 0.35)), 3), (None, None));
        // A late report speaks of 0 after all: a round trip, and no packet in flight more or less.
        let (_, late) = book.reported(second * 11 / 10, 0, Some((0.9, 0.1)), 0);
        assert_eq!(late.map(|ack| (ack.newly_acked_packets, ack.rtt_s)), Some((0, 1.0)));
        assert_eq!(book.in_flight(), 2);
    }

    #[test]
    fn the_timeout_follows_the_round_trip() {
        let mut book = AckBook::new(Interests::default());
        let second: Nanos = 1_000_000_000;
        (0..3).for_each(|n| book.sent(n * second));
        let expires = |book: &AckBook| book.next_expiry().map(|at| (at + 5) / 10 * 10);
        book.set_timeout(LossTimeout {
            timeout_s: 3.0,
            srtt_factor: 1.0,
            rttvar_factor: 4.0,
            granularity_s: 0.1,
            ..LossTimeout::default()
        });
        assert_eq!(expires(&book), Some(3 * second));
        // A first round trip of 0.2 s: SRTT = 0.2, RTTVAR = 0.1.
        book.acknowledge(second / 5, AckPacket { sequence: 0, history: 0, ..AckPacket::default() }).expect("was sent");
        assert_eq!(expires(&book), Some(second + second * 6 / 10));
        // A second one: RTTVAR = 0.075.
        book.acknowledge(second * 6 / 5, AckPacket { sequence: 1, history: 0, ..AckPacket::default() }).expect("was sent");
        assert_eq!(expires(&book), Some(2 * second + second / 2));
        assert_eq!(LossTimeout { granularity_s: 0.5, srtt_factor: 2.0, ..fixed(3.0) }.in_force_s(0.25, 0.01), 1.0);
    }

    proptest! {
        /// Whatever is lost, reordered or forged: each packet is acknowledged or lost once at most, and the books balance.
        #[test]
        fn the_books_balance(order in prop::collection::vec((0u64..60, any::<bool>()), 0..200)) {
            let (mut book, mut arrivals) = (book(50), Arrivals::default());
            let (mut acked, mut lost, mut now) = (0, 0, 490);
            book.set_timeout(fixed(500e-9));
            for (number, waits) in order {
                if waits {
                    now += 10;
                    lost += book.expire(now, false).map_or(0, |loss| loss.lost_packets);
                    prop_assert!(book.next_expiry().is_none_or(|at| at > now));
                }
                if let Some((loss, said)) = book.acknowledge(now, arrivals.arrived(number)) {
                    lost += loss.map_or(0, |loss| loss.lost_packets);
                    acked += said.map_or(0, |ack| ack.newly_acked_packets);
                }
                prop_assert_eq!(acked + lost + book.in_flight(), 50);
            }
        }

        #[test]
        fn acks_read_back(
            sequence in 0..=SEQUENCE_MASK,
            history: u32,
            ecn in 0u8..4,
            arrived: Option<Nanos>,
            words in prop::collection::vec(any::<u32>(), 0..6),
        ) {
            let header: Vec<u8> = words.iter().filter(|_| arrived.is_some()).flat_map(|word| word.to_be_bytes()).collect();
            let ack = AckPacket { sequence, history, ecn, arrived, header: &header };
            let mut bytes = vec![7; 3];
            ack.emit(&mut bytes);
            prop_assert_eq!(AckPacket::parse(&bytes), Some(ack));
            prop_assert_eq!(bytes[..2].to_vec(), vec![0x11, ecn]);
            for cut in (0..bytes.len()).filter(|&cut| cut != ACK_BYTES && (cut < TIMED_ACK_BYTES || cut % 4 != 0)) {
                prop_assert_eq!(AckPacket::parse(&bytes[..cut]), None);
            }
        }
    }
}
