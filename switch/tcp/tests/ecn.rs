//! ECN of a connection whose packets are lost or marked by number: sender and receiver together, by RFC 3168.

mod bench;

use bench::{config, in_flight, in_flight_with, MS, MSS};
use fairlane_tcp::{Config, Flags, Flavour, Nanos, Receiver, Segment, Sender, Transmit};

/// A round trip of 100 ms without a queue. The first transmission of a segment may be lost or marked.
struct Path {
    sender: Sender,
    receiver: Receiver,
    now: Nanos,
    lost: Vec<u64>,
    marked: Vec<u64>,
    out: Vec<Transmit>,
    /// Segments that left: number, whether it is a retransmission, whether it has CWR.
    sent: Vec<(u64, bool, bool)>,
}

impl Path {
    fn new(config: Config, lost: &[u64], marked: &[u64]) -> Self {
        let config = Config { ecn: true, delayed_ack: false, ..config };
        let mut sender = Sender::new(config.clone(), 0).unwrap();
        let mut receiver = Receiver::new(config, 0).unwrap();
        receiver.listen_without_handshake(0);
        sender.write(u64::MAX);
        let mut path = Path { sender, receiver, now: 0, lost: lost.to_vec(), marked: marked.to_vec(), out: vec![], sent: vec![] };
        path.sender.open(0, &mut path.out);
        path
    }

    /// Everything that left arrives, and its ACKs come back; where there are none, the sender's timer runs out.
    fn round(&mut self) {
        let mut acks = vec![];
        for t in self.out.drain(..).filter(|t| t.segment.payload_len > 0) {
            let number = u64::from(t.segment.seq - 1) / MSS;
            self.sent.push((number, t.retransmission, t.segment.flags.has(Flags::CWR)));
            if t.retransmission || !self.lost.contains(&number) {
                let marked = !t.retransmission && self.marked.contains(&number);
                self.receiver.on_segment(self.now, &t.segment, marked, &mut acks);
            }
        }
        self.now += 100 * MS;
        if acks.is_empty() {
            self.now = self.sender.next_timer().unwrap();
            self.sender.on_timer(self.now, &mut self.out);
        }
        for ack in acks {
            self.sender.on_segment(self.now, &ack.segment, &mut self.out);
        }
    }

    /// The segments that said CWR.
    fn cwr(&self) -> Vec<u64> {
        self.sent.iter().filter(|s| s.2).map(|s| s.0).collect()
    }

    fn first_new(&self, from: u64) -> u64 {
        self.sent.iter().map(|s| s.0).find(|&number| number >= from).unwrap()
    }
}

/// Flavours of RFC 3168; Prague has other feedback, BBR none.
const CLASSIC: [Flavour; 6] = [Flavour::Tahoe, Flavour::Reno, Flavour::NewReno, Flavour::Sack, Flavour::Cubic, Flavour::Dctcp];

fn in_avoidance(flavour: Flavour) -> Config {
    Config { initial_ssthresh: Some(2 * MSS), ..config(flavour) }
}

#[test]
fn rfc_3168_6_1_2_a_loss_and_a_mark_in_one_window_are_one_reduction() {
    for flavour in CLASSIC {
        // 0 is lost and 5 is marked, of ten; limited transmit sends 10 and 11 before the third duplicate ACK
        let mut path = Path::new(in_avoidance(flavour), &[0], &[5]);
        for _ in 0..8 {
            path.round();
        }
        assert_eq!(path.sender.stats().loss_events(), 1, "{flavour:?}: {:?}", path.sender.stats());
        assert_eq!(path.cwr(), [path.first_new(12)], "{flavour:?}: the first new segment after the reduction, alone");
    }
}

#[test]
fn rfc_3168_6_1_2_a_timeout_says_cwr_and_answers_the_marks_before_it() {
    for flavour in CLASSIC {
        let mut path = Path::new(in_avoidance(flavour), &(0..10).collect::<Vec<_>>(), &[]);
        for _ in 0..10 {
            path.round();
        }
        assert_eq!(path.sender.stats().timeouts, 1, "{flavour:?}");
        assert_eq!(path.cwr(), [10], "{flavour:?}: the first new segment; SHOULD NOT on retransmissions");

        let mut bench = in_flight_with(Config { ecn: true, ..config(flavour) }, 10);
        bench.fire_timer();
        let flags = Flags::ACK.with(Flags::ECE);
        bench.sender.on_segment(
            bench.now,
            &Segment { ack: (1 + 9 * MSS) as u32, flags, window: 8192, ..Segment::default() },
            &mut bench.out,
        );
        assert_eq!(bench.sender.stats().ecn_reductions, 0, "{flavour:?}: the window in which the timer ran out");
    }
}

#[test]
fn rfc_3168_6_1_2_without_ecn_no_segment_says_cwr() {
    for flavour in CLASSIC.into_iter().filter(|&flavour| flavour != Flavour::Dctcp) {
        let mut bench = in_flight(flavour, 10);
        bench.sender.on_timer(bench.sender.next_timer().unwrap(), &mut bench.out);
        let ack = Segment { ack: (1 + 10 * MSS) as u32, flags: Flags::ACK, window: 8192, ..Segment::default() };
        bench.sender.on_segment(bench.now, &ack, &mut bench.out);
        assert!(bench.out.iter().any(|t| t.segment.payload_len > 0 && !t.retransmission), "{flavour:?}");
        assert!(bench.out.iter().all(|t| !t.segment.flags.has(Flags::CWR)), "{flavour:?}");
    }
}
