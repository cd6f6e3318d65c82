//! Delivery rate samples (draft-cheng-iccrg-delivery-rate-estimation-00): for each ACK, how many octets the receiver got since the newest
//! segment that it acknowledges was sent, and in what time. The same records give exact round-trip times.

use std::collections::VecDeque;

use crate::Nanos;

/// What is known of a segment in flight (section 3.2, P).
#[derive(Clone, Debug)]
struct Packet {
    start: u64,
    end: u64,
    sent: Nanos,
    retransmitted: bool,
    /// C.first_sent_time, C.delivered_time and C.delivered when it was sent.
    first_sent: Nanos,
    delivered_at: Nanos,
    delivered: u64,
    app_limited: bool,
    /// Whether the receiver has it.
    arrived: bool,
}

/// What an ACK says (section 3.2, rs).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sample {
    /// Octets that this ACK says for the first time to have arrived, and in how many segments they were sent.
    pub newly_delivered: u64,
    pub newly_delivered_segments: u64,
    /// All octets that have arrived.
    pub delivered: u64,
    /// `delivered` when the newest of them was sent; `None`: this ACK says of no segment that it arrived.
    pub prior_delivered: Option<u64>,
    /// Octets a second; `None` where the interval is too short to be true.
    pub rate: Option<f64>,
    /// Whether the application had too little to send then.
    pub app_limited: bool,
    /// Round trip of the newest segment, where each was sent once.
    pub rtt: Option<Nanos>,
}

/// The newest segment of an ACK so far.
#[derive(Clone, Debug, Default)]
struct Newest {
    prior_delivered: Option<u64>,
    app_limited: bool,
    send_elapsed: Nanos,
    ack_elapsed: Nanos,
    /// When the newest segment left, and whether one of them was sent twice.
    sent: Option<Nanos>,
    retransmitted: bool,
    octets: u64,
    segments: u64,
}

/// The connection's state (section 3.2, C).
#[derive(Clone, Debug, Default)]
pub(crate) struct Delivery {
    packets: VecDeque<Packet>,
    delivered: u64,
    delivered_at: Nanos,
    first_sent: Nanos,
    /// `delivered` at which the last segment of an application-limited phase has arrived; 0: not limited.
    app_limited: u64,
    min_rtt: Option<Nanos>,
    newest: Newest,
}

impl Delivery {
    /// The octets `start..end` leave. `idle`: nothing is in flight (section 3.2, SendPacket).
    pub fn on_sent(&mut self, now: Nanos, start: u64, end: u64, idle: bool) {
        if idle {
            self.first_sent = now;
            self.delivered_at = now;
        }
        let known = self.packets.back().map_or(start, |last| last.end);
        if start < known {
            let first = self.packets.partition_point(|packet| packet.end <= start);
            for packet in self.packets.iter_mut().skip(first).take_while(|packet| packet.start < end) {
                packet.retransmitted = true;
                packet.sent = now;
                packet.first_sent = self.first_sent;
                packet.delivered_at = self.delivered_at;
                packet.delivered = self.delivered;
                packet.app_limited = self.app_limited > 0;
            }
        }
        if end > known {
            self.packets.push_back(Packet {
                start: start.max(known),
                end,
                sent: now,
                retransmitted: false,
                first_sent: self.first_sent,
                delivered_at: self.delivered_at,
                delivered: self.delivered,
                app_limited: self.app_limited > 0,
                arrived: false,
            });
        }
    }

    /// All below `una` is acknowledged.
    pub fn on_acknowledged(&mut self, now: Nanos, una: u64) {
        while self.packets.front().is_some_and(|packet| packet.end <= una) {
            if let Some(mut packet) = self.packets.pop_front() {
                self.arrived(now, &mut packet);
            }
        }
    }

    /// A SACK block says that `start..end` arrived.
    pub fn on_sacked(&mut self, now: Nanos, start: u64, end: u64) {
        let first = self.packets.partition_point(|packet| packet.start < start);
        for at in first..self.packets.len() {
            let Some(packet) = self.packets.get_mut(at).filter(|packet| packet.end <= end) else { return };
            if !packet.arrived {
                let mut packet = packet.clone();
                self.arrived(now, &mut packet);
                self.packets[at] = packet;
            }
        }
    }

    /// Section 3.3, UpdateRateSample.
    fn arrived(&mut self, now: Nanos, packet: &mut Packet) {
        if std::mem::replace(&mut packet.arrived, true) {
            return;
        }
        let octets = packet.end - packet.start;
        self.delivered += octets;
        self.delivered_at = now;
        let newest = &mut self.newest;
        newest.octets += octets;
        newest.segments += 1;
        if newest.prior_delivered.is_none_or(|prior| packet.delivered > prior) {
            newest.prior_delivered = Some(packet.delivered);
            newest.app_limited = packet.app_limited;
            newest.send_elapsed = packet.sent - packet.first_sent;
            newest.ack_elapsed = now - packet.delivered_at;
            self.first_sent = packet.sent;
        }
        newest.sent = newest.sent.max(Some(packet.sent));
        newest.retransmitted |= packet.retransmitted;
    }

    /// The sample of the ACK whose segments were told since the last call (section 3.3, GenerateRateSample).
    pub fn sample(&mut self, now: Nanos) -> Sample {
        let newest = std::mem::take(&mut self.newest);
        if self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        // Karn: with a segment that was sent twice, others may have waited for it
        let rtt = newest.sent.filter(|_| !newest.retransmitted).map(|sent| (now - sent).max(1));
        self.min_rtt = [self.min_rtt, rtt].into_iter().flatten().min();
        let interval = newest.send_elapsed.max(newest.ack_elapsed);
        let rate = newest
            .prior_delivered
            .filter(|_| interval > 0 && interval >= self.min_rtt.unwrap_or(0))
            .map(|prior| (self.delivered - prior) as f64 / (interval as f64 * 1e-9));
        Sample {
            newly_delivered: newest.octets,
            newly_delivered_segments: newest.segments,
            delivered: self.delivered,
            prior_delivered: newest.prior_delivered,
            rate,
            app_limited: newest.app_limited,
            rtt,
        }
    }

    /// The application has too little to send, or the congestion control holds back, with so many octets in flight (section 3.4).
    pub fn set_app_limited(&mut self, in_flight: u64) {
        self.app_limited = (self.delivered + in_flight).max(1);
    }

    pub fn is_app_limited(&self) -> bool {
        self.app_limited > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    const MS: Nanos = 1_000_000;

    /// Sections 3.2 and 3.3 by hand: four segments of 1000 octets at 0, 1, 2, 3 ms; ACKs of them at 20, 22, 24, 26 ms.
    #[test]
    fn the_rate_is_what_arrived_over_the_longer_of_sending_and_acknowledging() {
        let mut delivery = Delivery::default();
        for n in 0..4 {
            delivery.on_sent(n * MS, 1 + n * 1000, 1 + (n + 1) * 1000, n == 0);
        }
        delivery.on_acknowledged(20 * MS, 1001);
        let first = delivery.sample(20 * MS);
        assert_eq!((first.newly_delivered, first.newly_delivered_segments, first.prior_delivered), (1000, 1, Some(0)));
        assert_eq!((first.rate, first.rtt), (Some(1000.0 / 0.020), Some(20 * MS)));
        // the fifth leaves now: 1000 had arrived, at 20 ms
        delivery.on_sent(20 * MS, 4001, 5001, false);
        for n in 1..4 {
            delivery.on_acknowledged((20 + 2 * n) * MS, 1001 + n * 1000);
            let sample = delivery.sample((20 + 2 * n) * MS);
            assert_eq!(sample.prior_delivered, Some(0));
            assert_eq!(sample.rtt, Some((20 + n) * MS));
            assert!((sample.rate.unwrap() - (n as f64 + 1.0) * 1000.0 / (0.020 + 0.002 * n as f64)).abs() < 1e-6);
        }
        // it arrives at 40 ms: 4000 octets since 20 ms, sent in the 17 ms after the fourth
        delivery.on_acknowledged(40 * MS, 5001);
        let fifth = delivery.sample(40 * MS);
        assert_eq!(fifth.prior_delivered, Some(1000));
        assert!((fifth.rate.unwrap() - 4000.0 / 0.020).abs() < 1e-6, "{:?}", fifth.rate);
    }

    #[test]
    fn an_ack_that_comes_before_the_shortest_round_trip_gives_no_rate() {
        let mut delivery = Delivery::default();
        delivery.on_sent(0, 1, 1001, true);
        delivery.on_acknowledged(20 * MS, 1001);
        delivery.sample(20 * MS);
        // sent, given up and sent again; the ACK of the first comes 2 ms later
        delivery.on_sent(100 * MS, 1001, 2001, true);
        delivery.on_sent(300 * MS, 1001, 2001, true);
        delivery.on_acknowledged(302 * MS, 2001);
        let sample = delivery.sample(302 * MS);
        assert_eq!((sample.newly_delivered, sample.rate, sample.rtt), (1000, None, None), "and no round trip: it was sent twice");
    }

    #[test]
    fn what_sack_blocks_report_counts_once() {
        let mut delivery = Delivery::default();
        for n in 0..5 {
            delivery.on_sent(n * MS, 1 + n * 1000, 1 + (n + 1) * 1000, n == 0);
        }
        delivery.on_sacked(20 * MS, 1001, 2001);
        assert_eq!(delivery.sample(20 * MS).newly_delivered, 1000);
        delivery.on_sacked(21 * MS, 1001, 4001);
        let sample = delivery.sample(21 * MS);
        assert_eq!((sample.newly_delivered, sample.newly_delivered_segments, sample.rtt), (2000, 2, Some(18 * MS)));
        delivery.on_sent(21 * MS, 1, 1001, false);
        delivery.on_acknowledged(41 * MS, 5001);
        let sample = delivery.sample(41 * MS);
        assert_eq!((sample.newly_delivered, sample.delivered), (2000, 5000));
        assert_eq!(sample.rtt, None, "the fifth may have waited for the first, which was sent twice");
    }

    #[test]
    fn an_application_limited_phase_ends_when_its_segments_have_arrived() {
        let mut delivery = Delivery::default();
        delivery.on_sent(0, 1, 1001, true);
        delivery.set_app_limited(1000);
        delivery.on_sent(MS, 1001, 2001, false);
        delivery.on_acknowledged(20 * MS, 1001);
        assert!(!delivery.sample(20 * MS).app_limited, "sent before");
        assert!(delivery.is_app_limited());
        delivery.on_acknowledged(21 * MS, 2001);
        assert!(delivery.sample(21 * MS).app_limited);
        assert!(!delivery.is_app_limited());
    }
}
