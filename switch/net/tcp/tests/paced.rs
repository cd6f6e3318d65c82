//! Prague and BBR over a link of 10 Mb/s and 40 ms: window, queue and delivery over time, as snapshots that change only on purpose; and what
//! both promise: a full link, a queue that stays short, no loss.

use fairlane_tcp::{Config, Ecn, Flavour, Nanos, Receiver, Segment, Sender, Transmit};
use std::collections::VecDeque;
use std::fmt::Write;

const MS: Nanos = 1_000_000;
const ONE_WAY: Nanos = 20 * MS;
/// Of a segment of 1000 octets on the link.
const TRANSMISSION: Nanos = 800_000;

/// One flow, its bottleneck's queue and the way back.
struct Path {
    sender: Sender,
    receiver: Receiver,
    now: Nanos,
    /// Packets at least so many in the queue make it mark ECT packets that arrive; a packet that finds `buffer` is lost.
    mark_at: usize,
    buffer: usize,
    queue: VecDeque<(Segment, bool)>,
    /// When the first of them has left.
    leaves: Nanos,
    forth: VecDeque<(Nanos, Segment, bool)>,
    back: VecDeque<(Nanos, Segment)>,
    marks: u64,
    drops: u64,
    longest: usize,
    out: Vec<Transmit>,
}

impl Path {
    fn new(flavour: Flavour, mark_at: usize, buffer: usize) -> Self {
        let config = Config { flavour, mss: 1000, delayed_ack: false, ..Config::default() };
        let mut sender = Sender::new(config.clone(), 3).unwrap();
        let receiver = Receiver::new(config, 9).unwrap();
        sender.write(u64::MAX);
        let (queue, forth, back, mut out) = (VecDeque::new(), VecDeque::new(), VecDeque::new(), vec![]);
        sender.open(0, &mut out);
        let mut path =
            Path { sender, receiver, now: 0, mark_at, buffer, queue, leaves: 0, forth, back, marks: 0, drops: 0, longest: 0, out };
        path.arrive();
        path
    }

    /// What the sender has sent is at the queue at once.
    fn arrive(&mut self) {
        for transmit in self.out.drain(..) {
            if self.queue.len() >= self.buffer {
                self.drops += 1;
                continue;
            }
            let marked = self.queue.len() >= self.mark_at && transmit.ecn != Ecn::NotEct;
            self.marks += u64::from(marked);
            if self.queue.is_empty() {
                self.leaves = self.now + TRANSMISSION;
            }
            self.queue.push_back((transmit.segment, marked));
            self.longest = self.longest.max(self.queue.len());
        }
    }

    fn run(&mut self, until: Nanos) {
        loop {
            let leaves = (!self.queue.is_empty()).then_some(self.leaves);
            let (forth, back) = (self.forth.front().map(|f| f.0), self.back.front().map(|b| b.0));
            let timers = [self.sender.next_timer(), self.receiver.next_timer()];
            let next = [leaves, forth, back, timers[0], timers[1]].into_iter().flatten().min().unwrap();
            if next > until {
                self.now = until;
                return;
            }
            self.now = next;
            let mut acks = vec![];
            if back == Some(next) {
                if let Some((_, ack)) = self.back.pop_front() {
                    self.sender.on_segment(next, &ack, &mut self.out);
                }
            } else if leaves == Some(next) {
                if let Some((segment, marked)) = self.queue.pop_front() {
                    self.forth.push_back((next + ONE_WAY, segment, marked));
                    self.leaves = next + TRANSMISSION;
                }
            } else if forth == Some(next) {
                if let Some((_, segment, marked)) = self.forth.pop_front() {
                    self.receiver.on_segment(next, &segment, marked, &mut acks);
                }
            } else if timers[0] == Some(next) {
                self.sender.on_timer(next, &mut self.out);
            } else {
                self.receiver.on_timer(next, &mut acks);
            }
            self.back.extend(acks.into_iter().map(|ack| (next + ONE_WAY, ack.segment)));
            self.arrive();
        }
    }

    /// A line for each step: window, delivered segments, longest queue, marks, drops.
    fn trace(&mut self, step: Nanos, end: Nanos) -> String {
        let mut table = String::from("    ms  cwnd  delivered  longest queue  marks  drops\n");
        let mut before = 0;
        for at in (step..=end).step_by(step as usize) {
            (self.marks, self.drops, self.longest) = (0, 0, self.queue.len());
            self.run(at);
            let delivered = self.receiver.delivered() / 1000;
            writeln!(
                table,
                "{:6} {:5.1} {:10} {:14} {:6} {:6}",
                at / MS,
                self.sender.cwnd() as f64 / 1e3,
                delivered - before,
                self.longest,
                self.marks,
                self.drops
            )
            .unwrap();
            before = delivered;
        }
        table
    }
}

#[test]
fn prague_over_a_queue_that_marks() {
    let mut path = Path::new(Flavour::Prague, 5, 200);
    insta::assert_snapshot!("paced_prague_marked", path.trace(200 * MS, 6_000 * MS));
    path.run(30_000 * MS);
    (path.marks, path.drops, path.longest) = (0, 0, 0);
    let before = path.receiver.delivered();
    path.run(60_000 * MS);
    // 1250 segments a second
    let delivered = (path.receiver.delivered() - before) as f64 / 1000.0;
    assert!(delivered / 37_500.0 > 0.98, "{delivered} segments");
    assert!(path.longest <= 8 && path.drops == 0, "{} packets, {} drops", path.longest, path.drops);
    // A step marks whole rounds. DCTCP's analysis (Alizadeh et al. 2010, section 3.3) has alpha = sqrt(2 / W), here of 52 segments.
    let (part, expected) = (path.marks as f64 / delivered, (2.0f64 / 52.0).sqrt());
    assert!((0.5 * expected..1.2 * expected).contains(&part), "{part} marked, alpha {expected}");
}

#[test]
fn prague_without_marks_is_a_reno_that_paces() {
    let mut path = Path::new(Flavour::Prague, usize::MAX, 50);
    insta::assert_snapshot!("paced_prague_lossy", path.trace(200 * MS, 6_000 * MS));
    path.run(60_000 * MS);
    assert!(path.sender.stats().fast_retransmits > 5 && path.sender.stats().ecn_reductions == 0);
    assert!(path.receiver.delivered() > 60_000_000, "{}", path.receiver.delivered());
}

#[test]
fn bbr_fills_the_link_and_lets_its_queue_drain() {
    let mut path = Path::new(Flavour::Bbr, usize::MAX, 200);
    insta::assert_snapshot!("paced_bbr", path.trace(200 * MS, 12_000 * MS));
    (path.drops, path.longest) = (0, 0);
    let before = path.receiver.delivered();
    path.run(32_000 * MS);
    // 20 s with two times 200 ms of ProbeRTT
    let utilisation = (path.receiver.delivered() - before) as f64 / 25_000e3;
    assert!(utilisation > 0.96, "{utilisation}");
    // 1.25 for a round trip adds a quarter of 50 segments, and ProbeBW's window holds two bandwidth-delay products
    assert!(path.longest <= 25 && path.drops == 0, "{} packets, {} drops", path.longest, path.drops);
}
