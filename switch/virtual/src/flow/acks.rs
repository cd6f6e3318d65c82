//! Acknowledgements of single packets: what rate and window schemes such as RAP and GAIMD need.
//!
//! The receiver answers each data packet with a datagram of 40 bytes to the data port: the packet's number, and which of the 32
//! packets before it have arrived, so that a lost acknowledgement loses nothing. The sender finds losses by gaps or by time.

use std::collections::VecDeque;

use crate::algorithm::{Ack, Loss, LossCause, PathState};
use super::report::{SEQUENCE_MASK, VERSION};
use crate::flow::seconds;
use crate::Nanos;

/// Bytes of an acknowledgement's payload: version and type of 4 bits each, 8 bits of flags, 48 bits of the number, 32 of history.
pub(super) const ACK_BYTES: usize = 12;
const TYPE_ACK: u8 = 1;

/// What an acknowledgement says. Bit k of `history`: packet `sequence - 1 - k` has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AckPacket {
    pub(super) sequence: u64,
    pub(super) history: u32,
}

impl AckPacket {
    pub(super) fn emit(&self) -> [u8; ACK_BYTES] {
        let mut bytes = [0; ACK_BYTES];
        let first = u64::from(VERSION << 4 | TYPE_ACK) << 56 | self.sequence & SEQUENCE_MASK;
        bytes[..8].copy_from_slice(&first.to_be_bytes());
        bytes[8..].copy_from_slice(&self.history.to_be_bytes());
        bytes
    }

    /// `None` for what is no acknowledgement of this version. Flags are for later versions.
    pub(super) fn parse(payload: &[u8]) -> Option<AckPacket> {
        let bytes: &[u8; ACK_BYTES] = payload.try_into().ok()?;
        if bytes[0] != VERSION << 4 | TYPE_ACK {
            return None;
        }
        let (first, history) = (bytes.first_chunk::<8>()?, bytes.last_chunk::<4>()?);
        Some(AckPacket { sequence: u64::from_be_bytes(*first) & SEQUENCE_MASK, history: u32::from_be_bytes(*history) })
    }
}

/// At the receiver: which packets have arrived.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    highest: Option<u64>,
    /// Bit k: packet `highest - k` has arrived.
    seen: u64,
}

impl Arrivals {
    /// A data packet arrived; the acknowledgement to send.
    pub(super) fn arrived(&mut self, sequence: u64) -> AckPacket {
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
        AckPacket { sequence, history }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Outstanding,
    Acked,
    Lost,
}

/// At the sender: packets sent and not yet done with, and the path's round-trip times.
#[derive(Debug)]
pub(super) struct AckBook {
    /// Number of the first in `packets`.
    base: u64,
    packets: VecDeque<(Nanos, Fate)>,
    in_flight: u64,
    highest_acked: Option<u64>,
    loss_distance: u64,
    timeout: Option<Nanos>,
    rtt: PathState,
}

impl AckBook {
    pub(super) fn new(loss_distance: u64) -> AckBook {
        let packets = VecDeque::new();
        AckBook { base: 0, packets, in_flight: 0, highest_acked: None, loss_distance, timeout: None, rtt: PathState::default() }
    }

    /// The next packet, in order, is sent.
    pub(super) fn sent(&mut self, now: Nanos) {
        self.packets.push_back((now, Fate::Outstanding));
        self.in_flight += 1;
    }

    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    pub(super) fn set_timeout(&mut self, timeout: Nanos) {
        self.timeout = Some(timeout);
    }

    pub(super) fn path(&self) -> PathState {
        PathState {
            in_flight_packets: self.in_flight,
            last_sent_sequence: (self.base + self.packets.len() as u64) as i64 - 1,
            highest_acked_sequence: self.highest_acked.map_or(-1, |highest| highest as i64),
            ..self.rtt
        }
    }

    /// An acknowledgement came: the losses it reveals, and what it says itself. `None` for one of a packet never sent.
    pub(super) fn acknowledge(&mut self, now: Nanos, ack: AckPacket) -> Option<(Option<Loss>, Option<Ack>)> {
        let end = self.base + self.packets.len() as u64;
        if ack.sequence >= end {
            return None;
        }
        let (mut newly, mut rtt_s) = (0, None);
        let numbers = std::iter::once(ack.sequence)
            .chain((0..32u64).filter(|k| ack.history >> k & 1 == 1).filter_map(|k| ack.sequence.checked_sub(k + 1)));
        for number in numbers {
            let Some(packet) = number.checked_sub(self.base).and_then(|at| self.packets.get_mut(at as usize)) else { continue };
            if number == ack.sequence {
                rtt_s = Some(seconds(now - packet.0));
            }
            if packet.1 == Fate::Outstanding {
                self.in_flight -= 1;
                newly += 1;
            }
            packet.1 = Fate::Acked;
        }
        self.highest_acked = self.highest_acked.max(Some(ack.sequence));
        if let Some(sample) = rtt_s {
            self.sample(sample);
        }
        let limit = self.highest_acked.and_then(|highest| (highest + 1).checked_sub(self.loss_distance));
        let loss = self.lose(LossCause::Gap, |number, _| limit.is_some_and(|limit| number < limit));
        self.forget();
        let path = self.path();
        let said = rtt_s.map(|rtt_s| Ack { sequence: ack.sequence, rtt_s, newly_acked_packets: newly, path });
        Some((loss, said.filter(|_| newly > 0)))
    }

    /// Packets older than the timeout in force are lost.
    pub(super) fn expire(&mut self, now: Nanos) -> Option<Loss> {
        let timeout = self.timeout?;
        let loss = self.lose(LossCause::Timeout, |_, sent| sent.saturating_add(timeout) <= now);
        self.forget();
        loss
    }

    /// When [`AckBook::expire`] has something to do.
    pub(super) fn next_expiry(&self) -> Option<Nanos> {
        let timeout = self.timeout?;
        let oldest = self.packets.iter().find(|(_, fate)| *fate == Fate::Outstanding)?;
        Some(oldest.0.saturating_add(timeout))
    }

    fn lose(&mut self, cause: LossCause, is_lost: impl Fn(u64, Nanos) -> bool) -> Option<Loss> {
        let mut lost: Option<(u64, u64, u64)> = None;
        for (number, (sent, fate)) in (self.base..).zip(self.packets.iter_mut()) {
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

    /// Drops from the front what is done with.
    fn forget(&mut self) {
        while self.packets.front().is_some_and(|(_, fate)| *fate != Fate::Outstanding) {
            self.packets.pop_front();
            self.base += 1;
        }
    }

    /// RFC 6298 section 2, with gains 1/8 and 1/4.
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
        let mut book = AckBook::new(3);
        (0..packets).for_each(|n| book.sent(n * 10));
        book
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
        assert_eq!(book.acknowledge(1_000, AckPacket { sequence: 3, history: 0 }), None);
    }

    #[test]
    fn what_is_too_old_is_lost() {
        let mut book = book(4);
        book.set_timeout(100);
        assert_eq!(book.next_expiry(), Some(100));
        let loss = book.expire(115).expect("two are too old");
        assert_eq!((loss.first_sequence, loss.last_sequence, loss.cause), (0, 1, LossCause::Timeout));
        assert_eq!(book.next_expiry(), Some(120));
        assert_eq!(book.path().in_flight_packets, 2);
    }

    proptest! {
        /// Whatever is lost, reordered or forged: each packet is acknowledged or lost once at most, and the books balance.
        #[test]
        fn the_books_balance(order in prop::collection::vec(0u64..60, 0..200)) {
            let (mut book, mut arrivals) = (book(50), Arrivals::default());
            let (mut acked, mut lost) = (0, 0);
            for number in order {
                if let Some((loss, said)) = book.acknowledge(1_000_000, arrivals.arrived(number)) {
                    lost += loss.map_or(0, |loss| loss.lost_packets);
                    acked += said.map_or(0, |ack| ack.newly_acked_packets);
                }
                prop_assert_eq!(acked + lost + book.in_flight(), 50);
            }
        }

        #[test]
        fn acks_read_back(sequence in 0..=SEQUENCE_MASK, history: u32) {
            let ack = AckPacket { sequence, history };
            prop_assert_eq!(AckPacket::parse(&ack.emit()), Some(ack));
            prop_assert_eq!(ack.emit()[..2].to_vec(), vec![0x11, 0]);
        }
    }
}
