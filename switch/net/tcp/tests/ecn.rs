//! ECN of the classic flavours, by RFC 3168, RFC 8257 and RFC 8511: by hand, and sender and receiver together, whose packets are lost or marked
//! by number.

mod bench;

use bench::{config, in_flight, in_flight_with, Bench, MS, MSS};
use fairlane_tcp::{Config, Ecn, Flags, Flavour, Nanos, Receiver, Segment, Sender, Transmit};

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
fn rfc_3168_6_1_2_an_echo_halves_once_per_window() {
    let ecn = Config { ecn: true, initial_ssthresh: Some(2 * MSS), ..config(Flavour::Sack) };
    let mut bench = Bench::new(ecn);
    bench.sender.open(0, &mut bench.out);
    assert!(bench.out.iter().all(|t| t.ecn == Ecn::Ect0), "ECT on new data");
    bench.out.clear();
    let echo = |n: u64| Segment { ack: (1 + n * MSS) as u32, flags: Flags::ACK.with(Flags::ECE), window: 8192, ..Segment::default() };
    bench.sender.on_segment(50 * MS, &echo(1), &mut bench.out);
    let halved = bench.sender.cwnd();
    assert_eq!(halved / MSS, 5);
    for n in 2..=9 {
        bench.sender.on_segment(50 * MS, &echo(n), &mut bench.out);
    }
    assert_eq!(bench.sender.stats().ecn_reductions, 1);
    assert_eq!(bench.sender.cwnd(), halved, "an ACK with ECN-Echo does not make the window larger");
    let cwr: Vec<bool> = bench.out.iter().map(|t| t.segment.flags.has(Flags::CWR)).collect();
    assert!(cwr[0] && !cwr[1..].contains(&true), "CWR on the first new segment only");
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

#[test]
fn rfc_3168_6_1_2_the_window_falls_to_one_segment_and_then_waits_for_the_timer() {
    for flavour in CLASSIC {
        let config = Config { ecn: true, initial_window_segments: 2, ..in_avoidance(flavour) };
        let (mut sender, mut out) = (Sender::new(config, 0).unwrap(), vec![]);
        sender.write(u64::MAX);
        sender.open(0, &mut out);
        assert_eq!(out.len(), 2);
        let ack = |sender: &mut Sender, at: Nanos, n: u64, flags: Flags| {
            let segment = Segment { ack: (1 + n * MSS) as u32, flags: flags.with(Flags::ACK), window: 8192, ..Segment::default() };
            sender.on_segment(at, &segment, &mut vec![]);
        };
        // half of two segments, or 0.7 of them
        ack(&mut sender, 100 * MS, 2, Flags::ECE);
        let one = if flavour == Flavour::Cubic { 1400 } else { MSS };
        assert_eq!((sender.cwnd(), sender.ssthresh()), (one, 2 * MSS), "{flavour:?}: cwnd of one, ssthresh of two");
        // the next window is marked as well, and the one after it: what cannot be halved waits
        ack(&mut sender, 200 * MS, 3, Flags::ECE);
        assert_eq!(sender.cwnd(), MSS, "{flavour:?}");
        let at = if sender.flight_size() == 0 {
            200 * MS
        } else {
            ack(&mut sender, 300 * MS, 4, Flags::ECE);
            300 * MS
        };
        assert_eq!((sender.cwnd(), sender.flight_size()), (MSS, 0), "{flavour:?}: nothing leaves");
        assert_eq!(sender.next_timer(), Some(at + sender.rto()), "{flavour:?}: MUST reset the timer");
        let rto = sender.rto();
        sender.on_timer(at + rto, &mut out);
        assert_eq!((sender.flight_size(), sender.stats().timeouts), (MSS, 0), "{flavour:?}: a new packet, and no loss");
        assert!(out.last().unwrap().segment.flags.has(Flags::CWR), "{flavour:?}");
        assert_eq!(sender.rto(), rto, "{flavour:?}: no back-off");
    }
}

#[test]
fn rfc_3168_6_1_2_the_timer_runs_on_while_there_is_nothing_to_send() {
    let config = Config { ecn: true, initial_window_segments: 2, ..in_avoidance(Flavour::Sack) };
    let (mut sender, mut out) = (Sender::new(config, 0).unwrap(), vec![]);
    sender.write(3 * MSS);
    sender.open(0, &mut out);
    for (at, acked) in [(100 * MS, 2), (200 * MS, 3)] {
        let segment = Segment { ack: (1 + acked * MSS) as u32, flags: Flags::ECE.with(Flags::ACK), window: 8192, ..Segment::default() };
        sender.on_segment(at, &segment, &mut out);
    }
    let due = 200 * MS + sender.rto();
    assert_eq!((sender.cwnd(), sender.flight_size(), sender.next_timer()), (MSS, 0, Some(due)));
    sender.on_timer(due, &mut out);
    let sent = out.len();
    sender.write(MSS);
    sender.poll(due + 5000 * MS, &mut out);
    assert_eq!(out.len(), sent + 1, "what is written after it leaves at once");
}

#[test]
fn rfc_3168_6_1_5_a_mark_outside_the_window_is_ignored() {
    for flavour in [Flavour::Sack, Flavour::Dctcp] {
        let config = Config { ecn: true, delayed_ack: false, max_window: 10 * MSS, ..config(flavour) };
        let mut receiver = Receiver::new(config, 0).unwrap();
        receiver.listen_without_handshake(0);
        let mut echoes = |number: u32, marked: bool| {
            let mut out = vec![];
            let segment = Segment { seq: 1 + number * 1000, flags: Flags::ACK, payload_len: 1000, ..Segment::default() };
            receiver.on_segment(0, &segment, marked, &mut out);
            out.iter().any(|t| t.segment.flags.has(Flags::ECE))
        };
        assert!(!echoes(0, false));
        assert!(!echoes(0, true), "{flavour:?}: before the window, a duplicate");
        assert!(!echoes(11, true), "{flavour:?}: beyond the window");
        assert!(echoes(3, true), "{flavour:?}: in the window, out of order");
    }
}

#[test]
fn rfc_8257_3_5_a_mark_reduces_by_half_of_alpha_a_loss_by_half_and_both_once() {
    let mut bench = Bench::new(Config { initial_ssthresh: Some(2 * MSS), delayed_ack: false, ..config(Flavour::Dctcp) });
    bench.sender.open(0, &mut bench.out);
    assert!(bench.out.iter().all(|t| t.ecn == Ecn::Ect0), "ECT without the option `ecn`");
    bench.out.clear();
    let window = ((1u64 << 20) >> config(Flavour::Dctcp).window_scale()) as u16;
    let ack = |n: u64, flags: Flags| Segment { ack: (1 + n * MSS) as u32, flags, window, ..Segment::default() };
    // alpha is 1 and the first window is empty: one mark in one segment leaves it at 1, and the window is halved
    bench.sender.on_segment(50 * MS, &ack(1, Flags::ACK.with(Flags::ECE)), &mut bench.out);
    assert_eq!(bench.cwnd(), 5 * MSS);
    // 40 windows without a mark: alpha = (15/16)^40 = 0.0757
    let mut n = 1;
    while n < 2_000 {
        n += 1;
        bench.sender.on_segment(100 * MS, &ack(n, Flags::ACK), &mut bench.out);
    }
    let before = bench.cwnd();
    bench.sender.on_segment(100 * MS, &ack(n + 1, Flags::ACK.with(Flags::ECE)), &mut bench.out);
    let kept = bench.cwnd() as f64 / before as f64;
    assert!(kept > 0.93 && kept < 1.0, "{kept}");
    // a loss in the same window is no second reduction: once "across all loss signals" [RFC 8257 sec 3.5]
    let before = bench.cwnd();
    for right in 3..6 {
        bench.ack_sack(n + 1, &[(n + 2, n + right)]);
    }
    assert!(bench.sender.in_recovery());
    assert_eq!(bench.cwnd(), before);
    // in the next window it halves, whatever alpha is
    let mut next = (bench.sender.acknowledged() + bench.sender.flight_size()) / MSS;
    bench.ack(next);
    assert!(!bench.sender.in_recovery());
    let before = bench.sender.flight_size();
    for right in 3..6 {
        bench.ack_sack(next, &[(next + 1, next + right)]);
    }
    assert!(bench.sender.in_recovery());
    assert!(bench.cwnd() <= before / 2 + MSS, "{} of {before}", bench.cwnd());
    // a timeout leaves one segment, whatever came before
    next += 1;
    bench.ack(next);
    bench.fire_timer();
    assert_eq!(bench.cwnd(), MSS);
}

#[test]
fn rfc_8257_3_2_the_receiver_echoes_each_change_of_the_mark_at_once() {
    let mut receiver = Receiver::new(Config { delayed_ack: true, ..config(Flavour::Dctcp) }, 0).unwrap();
    receiver.listen_without_handshake(0);
    let mut acks = |n: u32, marked: bool| {
        let mut out = vec![];
        let segment = Segment { seq: 1 + n * 1000, flags: Flags::ACK, payload_len: 1000, ..Segment::default() };
        receiver.on_segment(u64::from(n) * MS, &segment, marked, &mut out);
        out.iter().map(|t| ((t.segment.ack - 1) / 1000, t.segment.flags.has(Flags::ECE))).collect::<Vec<_>>()
    };
    assert_eq!(acks(0, false), []);
    assert_eq!(acks(1, true), [(1, false), (2, true)], "what waited is told without the echo, the marked segment with it");
    assert_eq!(acks(2, true), [], "no change: delayed");
    assert_eq!(acks(3, true), [(4, true)]);
    assert_eq!(acks(4, false), [(5, false)], "nothing waited");
    assert_eq!(acks(5, false), []);
    assert_eq!(acks(6, false), [(7, false)]);
}

#[test]
fn rfc_8257_3_6_dctcps_handshake_is_ecn_capable() {
    for (flavour, ecn) in [(Flavour::Dctcp, Ecn::Ect0), (Flavour::Sack, Ecn::NotEct), (Flavour::Prague, Ecn::NotEct)] {
        let config = Config { ecn: true, handshake: true, ..config(flavour) };
        let mut sender = Sender::new(config.clone(), 0).unwrap();
        let mut receiver = Receiver::new(config, 77).unwrap();
        let (mut there, mut back) = (vec![], vec![]);
        sender.write(MSS);
        sender.open(0, &mut there);
        receiver.on_segment(MS, &there[0].segment, true, &mut back);
        assert_eq!((there[0].ecn, back[0].ecn), (ecn, ecn), "{flavour:?}: SYN and SYN-ACK");
        sender.on_segment(2 * MS, &back[0].segment, &mut there);
        receiver.on_segment(3 * MS, &there[1].segment, false, &mut back);
        receiver.on_timer(receiver.next_timer().unwrap_or(0), &mut back);
        if flavour != Flavour::Prague {
            assert!(!back.last().unwrap().segment.flags.has(Flags::ECE), "{flavour:?}: a mark on the SYN is ignored");
        }
    }
}

/// A sender in congestion avoidance with so many segments in flight.
fn with_abe(flavour: Flavour, window: u64, initial_ssthresh: Option<u64>) -> Bench {
    let config = Config { ecn: true, abe: true, initial_window_segments: window as u32, initial_ssthresh, ..config(flavour) };
    let mut bench = Bench::new(config);
    bench.open();
    bench.now = 100 * MS;
    bench
}

fn echo(bench: &mut Bench, n: u64) {
    let flags = Flags::ACK.with(Flags::ECE);
    // as bench's ACKs say
    let segment = Segment { ack: (1 + n * MSS) as u32, flags, window: 1 << 15, ..Segment::default() };
    bench.sender.on_segment(bench.now, &segment, &mut bench.out);
    bench.out.clear();
}

const STANDARD: [Flavour; 4] = [Flavour::Tahoe, Flavour::Reno, Flavour::NewReno, Flavour::Sack];

#[test]
fn rfc_8511_3_a_mark_leaves_four_fifths_and_a_loss_a_half() {
    for flavour in STANDARD {
        let mut bench = with_abe(flavour, 20, Some(2 * MSS));
        echo(&mut bench, 1);
        assert_eq!((bench.sender.ssthresh(), bench.cwnd()), (16 * MSS, 16 * MSS), "{flavour:?}: 0.8 FlightSize");
        let mut bench = with_abe(flavour, 20, Some(2 * MSS));
        for right in 2..5 {
            bench.ack_sack(0, &[(1, right)]);
        }
        assert_eq!((bench.sender.stats().fast_retransmits, bench.sender.ssthresh()), (1, 10 * MSS), "{flavour:?}");
        let mut bench = with_abe(flavour, 20, Some(2 * MSS));
        bench.fire_timer();
        assert_eq!(bench.sender.ssthresh(), 10 * MSS, "{flavour:?}");
    }
}

/// By hand: K = cbrt(200 * 0.15 / 0.4) = 4.217 s, and W_est has 170 + 42 * 9 / 17 = 192 segments then.
#[test]
fn rfc_8511_3_1_cubic_leaves_85_per_cent() {
    let mut bench = with_abe(Flavour::Cubic, 200, Some(2 * MSS));
    echo(&mut bench, 1);
    assert_eq!((bench.sender.ssthresh(), bench.cwnd()), (170 * MSS, 170 * MSS));
    let (mut acked, mut at_k, mut start) = (200, 0, None);
    bench.ack(acked);
    for _ in 0..50 {
        bench.now += 100 * MS;
        bench.ack_window(&mut acked);
        let start = *start.get_or_insert(bench.now);
        if (bench.now - start) / MS <= 4_200 {
            at_k = bench.cwnd();
        }
    }
    assert!((197 * MSS..=201 * MSS).contains(&at_k), "W_cubic(K) = W_max = 200, not {at_k}");
    let mut bench = with_abe(Flavour::Cubic, 200, Some(2 * MSS));
    bench.ack_sack(0, &[(1, 4)]);
    assert_eq!(bench.sender.ssthresh(), 140 * MSS, "a loss: 0.7");
}

#[test]
fn rfc_8511_3_1_small_windows_follow_rfc_3168() {
    for flavour in STANDARD {
        let mut bench = with_abe(flavour, 2, Some(2 * MSS));
        bench.ack(1);
        assert_eq!((bench.cwnd(), bench.sender.flight_size()), (2500, 2 * MSS), "{flavour:?}");
        echo(&mut bench, 2);
        assert_eq!((bench.sender.ssthresh(), bench.cwnd()), (2 * MSS, 1600), "{flavour:?}: 0.8 of two segments, ssthresh not below two");
    }
}

#[test]
fn rfc_8511_4_not_in_slow_start() {
    for (flavour, window) in STANDARD.into_iter().map(|flavour| (flavour, 10)).chain([(Flavour::Cubic, 14)]) {
        let mut bench = with_abe(flavour, 20, None);
        echo(&mut bench, 1);
        assert_eq!(bench.cwnd(), window * MSS, "{flavour:?}: cwnd <= ssthresh, as a loss");
    }
}

#[test]
fn rfc_8511_4_2_once_in_a_round_trip_whether_marks_or_losses() {
    for flavour in STANDARD {
        let mut bench = with_abe(flavour, 20, Some(2 * MSS));
        for n in 1..=4 {
            echo(&mut bench, n);
        }
        assert_eq!((bench.cwnd(), bench.sender.stats().ecn_reductions), (16 * MSS, 1), "{flavour:?}");
        for right in 6..9 {
            bench.ack_sack(4, &[(5, right)]);
        }
        assert_eq!(
            (bench.sender.stats().fast_retransmits, bench.sender.ssthresh()),
            (1, 16 * MSS),
            "{flavour:?}: a loss of the same window"
        );

        let mut bench = with_abe(flavour, 20, Some(2 * MSS));
        echo(&mut bench, 1);
        for n in 5..=20 {
            bench.ack(n);
        }
        let flight = bench.sender.flight_size();
        echo(&mut bench, 21);
        assert_eq!((bench.sender.ssthresh(), bench.sender.stats().ecn_reductions), (flight * 4 / 5, 2), "{flavour:?}: the next one");
    }
}

#[test]
fn rfc_8511_5_without_marks_nothing_changes() {
    let marked: Vec<u64> = (0..200).filter(|n| n % 17 == 3).collect();
    for (flavour, marked) in CLASSIC.map(|flavour| (flavour, vec![])).into_iter().chain([
        (Flavour::Dctcp, marked.clone()),
        (Flavour::Prague, marked.clone()),
        (Flavour::Bbr, marked),
    ]) {
        let [off, on] = [false, true].map(|abe| {
            let mut path = Path::new(Config { abe, ..in_avoidance(flavour) }, &[7, 31, 32], &marked);
            for _ in 0..30 {
                path.round();
            }
            (path.sent, path.sender.cwnd(), path.sender.ssthresh(), path.sender.stats())
        });
        assert_eq!(off, on, "{flavour:?}");
    }
}
