//! Marks that the receiver counts and the sender reads, by RFC 9768, and Prague's answer to them.

mod bench;

use bench::{config, Bench, MS, MSS};
use fairlane_tcp::{Config, Ecn, Flags, Flavour, Receiver, Segment, Sender};

#[test]
fn rfc_9768_3_1_1_marks_are_counted_where_both_ends_say_so() {
    let base = Config { handshake: true, ..config(Flavour::Prague) };
    for (other, codepoint) in [(Flavour::Prague, Ecn::Ect1), (Flavour::Sack, Ecn::NotEct), (Flavour::Dctcp, Ecn::NotEct)] {
        let mut sender = Sender::new(base.clone(), 0).unwrap();
        let mut receiver = Receiver::new(Config { flavour: other, ..base.clone() }, 77).unwrap();
        let mut out = vec![];
        sender.write(u64::MAX);
        sender.open(0, &mut out);
        let syn = out.pop().unwrap();
        assert_eq!((syn.segment.ace(), syn.ecn), (0b111, Ecn::NotEct));
        receiver.on_segment(10 * MS, &syn.segment, false, &mut out);
        let syn_ack = out.pop().unwrap().segment;
        assert_eq!(syn_ack.ace() == 0b010, other == Flavour::Prague, "{other:?}");
        sender.on_segment(20 * MS, &syn_ack, &mut out);
        assert!(out[0].segment.payload_len > 0 && out[0].ecn == codepoint, "{other:?}");
        // a retransmission is an L4S packet, too [RFC 8311 sec 4.3]
        let at = loop {
            let at = sender.next_timer().unwrap();
            out.clear();
            sender.on_timer(at, &mut out);
            if sender.stats().timeouts > 0 {
                break at;
            }
        };
        assert!(out[0].retransmission && out[0].ecn == codepoint, "{other:?} at {at}");
    }
}

#[test]
fn rfc_9768_3_2_2_the_receiver_counts_each_mark() {
    let mut receiver = Receiver::new(Config { delayed_ack: true, ..config(Flavour::Prague) }, 0).unwrap();
    receiver.listen_without_handshake(0);
    let mut acks = |n: u32, marked: bool| {
        let mut out = vec![];
        let segment = Segment { seq: 1 + n * 1000, flags: Flags::ACK, payload_len: 1000, ..Segment::default() };
        receiver.on_segment(u64::from(n) * MS, &segment, marked, &mut out);
        out.iter().map(|t| ((t.segment.ack - 1) / 1000, t.segment.ace())).collect::<Vec<_>>()
    };
    assert_eq!(acks(0, false), []);
    assert_eq!(acks(1, false), [(2, 5)], "the count begins with 5");
    assert_eq!(acks(2, true), [(3, 6)], "the first mark is told at once (3.2.2.5.1)");
    assert_eq!(acks(3, true), [], "one more: delayed");
    assert_eq!(acks(4, true), [(5, 0)], "8 modulo 8");
    assert_eq!(acks(5, false), []);
    assert_eq!(acks(7, true), [(6, 1)], "out of order: the mark counts, whatever is acknowledged");
    assert_eq!(acks(7, true), [(6, 2)], "so does one of a duplicate");
    assert_eq!(acks(0, true), [(6, 2)], "outside the window a packet is not acceptable (3.2)");
}

/// The client has no data yet, and its SYN-ACK came without ECT: a pure ACK has 0b010 (3.2.2.1), also of a SYN-ACK that comes again. 0b101 is
/// reserved, and confirms (3.1.3); any reserved SYN asks for a count.
#[test]
fn rfc_9768_3_2_2_1_the_last_ack_of_the_handshake_reports_the_syn_acks_codepoint() {
    let base = Config { handshake: true, ..config(Flavour::Prague) };
    for (ace, confirms) in [(0b010, true), (0b101, true), (0b001, false), (0b000, false), (0b111, false)] {
        let mut sender = Sender::new(base.clone(), 0).unwrap();
        let mut out = vec![];
        sender.open(0, &mut out);
        let syn_ack = Segment { seq: 77, ack: 1, flags: Flags::SYN.with(Flags::ACK), window: 8192, ..Segment::default() }.with_ace(ace);
        for _ in 0..2 {
            out.clear();
            sender.on_segment(10 * MS, &syn_ack, &mut out);
            assert_eq!((out.len(), out[0].segment.ace()), (1, if confirms { 0b010 } else { 0 }), "{ace:03b}");
        }
        sender.write(MSS);
        out.clear();
        sender.poll(20 * MS, &mut out);
        assert_eq!((out[0].segment.ace(), out[0].ecn), if confirms { (5, Ecn::Ect1) } else { (0, Ecn::NotEct) }, "{ace:03b}");
    }
    for ace in 0..8 {
        let mut receiver = Receiver::new(base.clone(), 0).unwrap();
        let mut out = vec![];
        receiver.on_segment(0, &Segment { flags: Flags::SYN, ..Segment::default() }.with_ace(ace), false, &mut out);
        assert_eq!(out[0].segment.ace() == 0b010, ![0b000, 0b011].contains(&ace), "{ace:03b}");
    }
}

/// ACKs that overtook each other: the older count is not seven more marks (A.2.1).
#[test]
fn rfc_9768_3_2_2_2_a_superseded_ack_has_no_marks() {
    let mut bench = Bench::new(Config { initial_ssthresh: Some(2 * MSS), delayed_ack: false, ..config(Flavour::Prague) });
    bench.open();
    let mut ack = |now: u64, n: u64, count: u64| {
        let segment = Segment { ack: (1 + n * MSS) as u32, flags: Flags::ACK, window: 8192, ..Segment::default() };
        bench.sender.on_segment(now * MS, &segment.with_ace(count), &mut bench.out);
        bench.sender.stats().ecn_reductions
    };
    assert_eq!(ack(100, 2, 5), 0);
    assert_eq!(ack(101, 2, 4), 0, "it acknowledges nothing new");
    assert_eq!(ack(102, 3, 5), 0, "nor did it turn the count around");
    assert_eq!(ack(103, 4, 6), 1);
}

#[test]
fn prague_2_4_2_a_count_of_marks_reduces_the_window_once() {
    let mut bench = Bench::new(Config { initial_ssthresh: Some(2 * MSS), delayed_ack: false, ..config(Flavour::Prague) });
    bench.open();
    let window = ((1u64 << 20) >> config(Flavour::Prague).window_scale()) as u16;
    let mut ack = |n: u64, marks: u64| {
        let segment = Segment { ack: (1 + n * MSS) as u32, flags: Flags::ACK, window, ..Segment::default() };
        bench.sender.on_segment((50 + n) * MS, &segment.with_ace(5 + marks), &mut bench.out);
        (bench.sender.cwnd(), bench.sender.stats().ecn_reductions)
    };
    assert_eq!(ack(1, 0), (11 * MSS, 0), "10.1 segments, rounded up");
    assert_eq!(ack(2, 1), (6 * MSS, 1), "5.05: alpha is 1 at first");
    assert_eq!(ack(3, 2), (6 * MSS, 1), "once in a round trip");
    assert_eq!(ack(4, 2), (6 * MSS, 1), "5.05 + 1 / 5.05");
}
