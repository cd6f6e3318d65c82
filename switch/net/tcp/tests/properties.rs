//! What the standards forbid, whatever the link does: sending beyond a window, a timeout below its minimum, an acknowledgement held back
//! too long, a stall after an outage.

use fairlane_tcp::{Config, Flavour, LossDetection, Nanos, Receiver, ReductionBase, Segment, Sender, Transmit};
use proptest::prelude::*;
use std::collections::BTreeMap;

const MS: Nanos = 1_000_000;
const ONE_WAY: Nanos = 20 * MS;

fn config(flavour: usize, (delayed_ack, timestamps, limited_transmit, rack): (bool, bool, bool, bool)) -> Config {
    Config {
        flavour: Flavour::ALL[flavour],
        mss: 1000,
        max_window: 64_000,
        delayed_ack,
        timestamps,
        limited_transmit,
        loss_detection: if rack && Flavour::ALL[flavour].uses_sack() { LossDetection::Rack } else { LossDetection::DupAck },
        reduction_base: ReductionBase::FlightSize,
        ..Config::default()
    }
}

/// A connection over a link that carries what `carries` says, checked at every step.
struct Run<F: FnMut(Nanos, bool) -> bool> {
    config: Config,
    sender: Sender,
    receiver: Receiver,
    carries: F,
    now: Nanos,
    order: u64,
    in_air: BTreeMap<(Nanos, u64), (bool, Segment)>,
    out: Vec<Transmit>,
    /// One past the highest payload byte sent, and the highest acknowledgement that reached the sender.
    highest_sent: u32,
    highest_ack: u32,
    /// Since when a segment waits for its acknowledgement, and how many do.
    waiting: Option<(Nanos, u32)>,
    /// Its timer, as it was seen last.
    timer: Option<Nanos>,
    last_progress: Nanos,
    longest_pause: Nanos,
}

impl<F: FnMut(Nanos, bool) -> bool> Run<F> {
    fn new(config: Config, bytes: u64, carries: F) -> Self {
        let mut sender = Sender::new(config.clone(), 0).unwrap();
        let receiver = Receiver::new(config.clone(), 0).unwrap();
        sender.write(bytes);
        sender.close();
        let (in_air, out) = (BTreeMap::new(), vec![]);
        Run {
            config,
            sender,
            receiver,
            carries,
            now: 0,
            order: 0,
            in_air,
            out,
            highest_sent: 1,
            highest_ack: 1,
            waiting: None,
            timer: None,
            last_progress: 0,
            longest_pause: 0,
        }
    }

    fn run_to_the_end(&mut self) {
        self.sender.open(0, &mut self.out);
        for step in 0.. {
            assert!(step < 500_000, "stalled: {:?}", self.sender);
            self.check_and_carry();
            if self.sender.is_done() {
                return;
            }
            let arrival = self.in_air.first_key_value().map(|(key, _)| key.0);
            let (theirs, ours) = (self.receiver.next_timer(), self.sender.next_timer());
            self.now = [arrival, theirs, ours].into_iter().flatten().min().expect("a connection that is not over has a timer");
            if arrival == Some(self.now) {
                let Some((_, (forth, segment))) = self.in_air.pop_first() else { continue };
                if forth {
                    self.at_receiver(&segment);
                } else {
                    self.at_sender(&segment);
                }
            } else if theirs == Some(self.now) {
                let mut acks = vec![];
                self.receiver.on_timer(self.now, &mut acks);
                self.back(acks);
            } else {
                let (before, timeouts) = (self.sender.rto(), self.sender.stats().timeouts);
                self.sender.on_timer(self.now, &mut self.out);
                if self.sender.stats().timeouts > timeouts {
                    assert_eq!(self.sender.rto(), (2 * before).min(self.config.max_rto), "[RFC 6298 sec 5 step 5.5]");
                    assert_eq!(self.sender.next_timer(), Some(self.now + self.sender.rto()), "[RFC 6298 sec 5 step 5.6]");
                    assert_eq!(
                        self.out.len(),
                        1,
                        "[RFC 6298 sec 5 step 5.4]: the earliest segment, and [RFC 5681 sec 3.1]: a window of one"
                    );
                }
            }
        }
    }

    /// Looks at what the sender sends, and gives it to the link.
    fn check_and_carry(&mut self) {
        let rto = self.sender.rto();
        assert!((self.config.min_rto..=self.config.max_rto).contains(&rto), "[RFC 6298 sec 2 step 2.4, 2.5]: {rto}");
        // with nothing in flight, what BBR's pace holds back may wait for longer
        let paced_alone = self.config.flavour.is_paced() && self.sender.flight_size() == 0;
        let timer = self.sender.next_timer().filter(|_| !paced_alone);
        // a later sample may shorten the RTO, and a partial ACK restarts no timer [RFC 6582 sec 3.2 step 3]
        if let Some(at) = timer.filter(|_| timer != self.timer) {
            assert!(at <= self.now + rto, "a timer is started for one RTO at most");
        }
        self.timer = timer;
        let limited = 2 * u64::from(self.config.mss);
        for transmit in std::mem::take(&mut self.out) {
            let segment = transmit.segment;
            let end = segment.seq + segment.payload_len;
            assert!(end <= self.highest_ack + self.config.max_window as u32 + 1, "beyond the receiver's window");
            assert!(segment.payload_len <= self.config.mss);
            assert!(segment.seq <= self.highest_sent, "a gap in what is sent");
            assert!(segment.payload_len == 0 || transmit.retransmission == (segment.seq < self.highest_sent), "told apart from new data");
            // RACK counts what is in the network, and has its probes and a recovery after a timeout
            if end > self.highest_sent && !self.sender.in_recovery() && self.config.loss_detection == LossDetection::DupAck {
                let flight = u64::from(end - self.highest_ack);
                assert!(
                    flight <= self.sender.cwnd() + limited,
                    "{flight} in flight beyond cwnd {} and limited transmit",
                    self.sender.cwnd()
                );
            }
            self.highest_sent = self.highest_sent.max(end);
            self.carry(true, segment);
        }
    }

    fn carry(&mut self, forth: bool, segment: Segment) {
        if (self.carries)(self.now, forth) {
            self.order += 1;
            self.in_air.insert((self.now + ONE_WAY, self.order), (forth, segment));
        }
    }

    fn at_receiver(&mut self, segment: &Segment) {
        let before = self.receiver.delivered();
        let mut acks = vec![];
        self.receiver.on_segment(self.now, segment, false, &mut acks);
        assert!(self.receiver.delivered() <= u64::from(self.highest_sent - 1), "more delivered than sent");
        if self.receiver.delivered() > before {
            self.longest_pause = self.longest_pause.max(self.now - self.last_progress);
            self.last_progress = self.now;
        }
        if segment.payload_len > 0 {
            let (since, count) = self.waiting.unwrap_or((self.now, 0));
            self.waiting = Some((since, count + 1));
        }
        self.back(acks);
        if let Some((since, count)) = self.waiting {
            assert!(self.config.delayed_ack && count < 2, "[RFC 5681 sec 4.2]: at least every second segment");
            assert_eq!(self.receiver.next_timer(), Some(since + self.config.delayed_ack_timeout), "and within the timer");
        }
    }

    fn back(&mut self, acks: Vec<Transmit>) {
        assert!(acks.len() <= 1, "one ACK for a segment");
        for ack in acks {
            self.waiting = None;
            assert!(ack.segment.ack <= self.highest_sent + 1, "acknowledged beyond what was sent");
            self.carry(false, ack.segment);
        }
    }

    fn at_sender(&mut self, segment: &Segment) {
        self.highest_ack = self.highest_ack.max(segment.ack);
        self.sender.on_segment(self.now, segment, &mut self.out);
        assert!(self.sender.acknowledged() <= self.receiver.delivered(), "acknowledged and not delivered");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_lossy_link_never_makes_either_end_break_its_rules(
        flavour in 0..Flavour::ALL.len(), flags: (bool, bool, bool, bool), segments in 1u64..200, percent in 0u64..35, seed: u64,
    ) {
        let config = config(flavour, flags);
        let mut state = seed;
        let mut run = Run::new(config, segments * 1000, |_, _| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % 100 >= percent
        });
        run.run_to_the_end();
        prop_assert_eq!(run.receiver.delivered(), segments * 1000);
        prop_assert_eq!(u64::from(run.highest_sent) - 1, segments * 1000);
    }

    /// After an outage data flow again no later than the back-off allows: the timer doubles, so the pause is at most about twice the
    /// outage, and never more than the maximum RTO beyond it.
    #[test]
    fn an_outage_is_survived_in_due_time(flavour in 0..Flavour::ALL.len(), flags: (bool, bool, bool, bool), begin_ms in 300u64..2000, outage_ms in 1u64..100_000) {
        let config = config(flavour, flags);
        let (begin, end) = (begin_ms * MS, (begin_ms + outage_ms) * MS);
        let max_rto = config.max_rto;
        let mut run = Run::new(config, 4_000_000, |now, _| !(begin..end).contains(&now));
        run.run_to_the_end();
        prop_assert_eq!(run.receiver.delivered(), 4_000_000);
        let allowed = (outage_ms * MS + max_rto).min(2 * outage_ms * MS + 2_000 * MS) + 4 * ONE_WAY;
        prop_assert!(run.longest_pause <= allowed, "paused {} ms after an outage of {} ms", run.longest_pause / MS, outage_ms);
    }
}
