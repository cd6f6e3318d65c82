//! One transition at a time, by hand: what goes in, what must come out, and the clause that says so.

mod bench;

use bench::{config, in_flight, in_flight_with, Bench, MS, MSS};
use fairlane_tcp::{Config, Flags, Flavour, Receiver, ReductionBase, SackBlocks, SackRecovery, Segment, Sender};

#[test]
fn rfc_5681_3_1_slow_start_adds_a_segment_per_ack() {
    let mut bench = Bench::new(config(Flavour::Reno));
    assert_eq!(bench.open().len(), 10);
    bench.now = 100 * MS;
    assert_eq!(bench.ack(1), [10, 11]);
    assert_eq!(bench.ack(3), [12, 13, 14], "min(N, SMSS): one segment of growth for an ACK of two");
    assert_eq!(bench.cwnd(), 12 * MSS);
}

#[test]
fn rfc_5681_3_1_congestion_avoidance_adds_a_segment_per_window() {
    let mut bench = in_flight(Flavour::Reno, 10);
    assert_eq!(bench.ack(1), [10]);
    assert_eq!(bench.cwnd(), 10 * MSS + 100, "equation (3): SMSS * SMSS / cwnd");
    for n in 2..=11 {
        bench.ack(n);
    }
    assert!((11 * MSS - 60..11 * MSS + 60).contains(&bench.cwnd()), "{}", bench.cwnd());
}

#[test]
fn rfc_5681_3_1_congestion_avoidance_counts_octets_or_acks() {
    for (byte_counting, step) in [(true, 200), (false, 100)] {
        let mut bench = Bench::new(Config { byte_counting, initial_ssthresh: Some(10 * MSS), ..config(Flavour::Reno) });
        bench.open();
        let before = bench.cwnd();
        assert_eq!(before, 10 * MSS);
        bench.ack(2);
        assert_eq!(bench.cwnd() - before, step, "an ACK of two segments, byte_counting {byte_counting}");
    }
}

#[test]
fn rfc_3042_the_first_two_duplicates_let_new_segments_out() {
    for flavour in [Flavour::Reno, Flavour::NewReno, Flavour::Tahoe] {
        let mut bench = in_flight(flavour, 10);
        assert_eq!((bench.ack(0), bench.ack(0)), (vec![10], vec![11]), "{flavour:?}");
        assert_eq!(bench.cwnd(), 10 * MSS, "the window stays");
    }
    let mut off = Bench::new(Config { limited_transmit: false, ..config(Flavour::Reno) });
    off.open();
    assert_eq!((off.ack(0), off.ack(0)), (vec![], vec![]));
}

#[test]
fn rfc_5681_3_2_reno_retransmits_at_the_third_duplicate_and_leaves_at_new_data() {
    let mut bench = in_flight(Flavour::Reno, 10);
    bench.ack(0);
    bench.ack(0);
    assert_eq!(bench.ack(0), [0], "step 2 and 3: fast retransmit");
    assert_eq!(bench.sender.ssthresh(), 5 * MSS, "equation (4), without what limited transmit sent");
    assert_eq!(bench.cwnd(), 8 * MSS, "step 3: ssthresh + 3 SMSS");
    let mut inflated = vec![];
    for _ in 0..6 {
        inflated.extend(bench.ack(0));
    }
    assert_eq!(inflated, [12, 13], "steps 4 and 5: 14 segments of window, 12 used");
    assert!(bench.sender.in_recovery());
    assert_eq!(bench.ack(10), [14], "step 6");
    assert_eq!((bench.cwnd(), bench.sender.in_recovery()), (5 * MSS, false));
}

#[test]
fn jacobson_1988_tahoe_goes_back_to_one_segment() {
    let mut bench = in_flight(Flavour::Tahoe, 10);
    bench.ack(0);
    bench.ack(0);
    assert_eq!(bench.ack(0), [0]);
    assert_eq!((bench.cwnd(), bench.sender.ssthresh()), (MSS, 5 * MSS));
    assert_eq!(bench.ack(0), Vec::<u64>::new(), "no fast recovery");
    assert_eq!(bench.ack(10), [10, 11], "slow start from there: what limited transmit sent is sent again");
}

#[test]
fn a_fast_retransmit_restarts_the_timer() {
    for flavour in Flavour::ALL {
        let mut bench = in_flight(flavour, 10);
        bench.now = 150 * MS;
        let rto = bench.sender.rto();
        for n in 1..=3 {
            bench.ack_sack(0, &[(1, 1 + n)]);
        }
        assert_eq!(bench.sender.stats().fast_retransmits, 1);
        assert_eq!(bench.sender.next_timer(), Some(150 * MS + rto), "{flavour:?}: [RFC 6675 sec 6]; ns-2 for all flavours");
    }
}

#[test]
fn rfc_6582_newreno_sends_one_hole_per_partial_ack() {
    let mut bench = in_flight(Flavour::NewReno, 10);
    bench.ack(0);
    bench.ack(0);
    assert_eq!(bench.ack(0), [0]);
    let before = bench.cwnd();
    let timer = bench.sender.next_timer();
    bench.now += 10 * MS;
    assert_eq!(bench.ack(4), [4], "section 3.2 step 3: the first unacknowledged segment");
    assert!(bench.sender.in_recovery());
    assert_eq!(bench.cwnd(), before - 4 * MSS + MSS, "deflated by what was acknowledged, one segment back");
    let restarted = bench.sender.next_timer();
    assert!(restarted > timer, "the first partial ACK restarts the timer");
    bench.now += 10 * MS;
    assert_eq!(bench.ack(6)[0], 6);
    assert_eq!(bench.sender.next_timer(), restarted, "the second does not");
    bench.ack(12);
    assert!(!bench.sender.in_recovery(), "recover was the highest segment sent, 11");
    assert!(bench.cwnd() <= 5 * MSS);
}

#[test]
fn rfc_6582_3_2_no_second_fast_retransmit_for_the_same_window() {
    for flavour in Flavour::ALL {
        let mut bench = in_flight(flavour, 10);
        bench.fire_timer();
        let mut sent = vec![];
        for n in 1..=4 {
            sent.extend(bench.ack_sack(0, &[(1, 1 + n)]));
        }
        assert!(!sent.contains(&0), "{flavour:?}: duplicates of what the timeout sent again");
        assert_eq!(bench.sender.stats().fast_retransmits, 0, "{flavour:?}");
    }
}

#[test]
fn rfc_6675_5_sack_fills_holes_while_the_pipe_allows() {
    let mut bench = in_flight(Flavour::Sack, 10);
    // 0, 2 and 4 are lost
    assert_eq!(bench.ack_sack(0, &[(1, 2)]), [10], "limited transmit");
    assert_eq!(bench.ack_sack(0, &[(3, 4), (1, 2)]), [11]);
    let third = bench.ack_sack(0, &[(5, 6), (3, 4), (1, 2)]);
    assert_eq!(third, [0], "step 4.3");
    assert_eq!((bench.cwnd(), bench.sender.ssthresh()), (5 * MSS, 5 * MSS), "step 4.2");
    assert_eq!(bench.ack_sack(0, &[(5, 7), (3, 4), (1, 2)]), Vec::<u64>::new(), "pipe: 0 again, and 7 to 11; 2 is lost by now");
    assert_eq!(bench.ack_sack(0, &[(5, 8), (3, 4), (1, 2)]), Vec::<u64>::new(), "pipe 0, 8, 9, 10, 11");
    assert_eq!(bench.ack_sack(0, &[(5, 9), (3, 4), (1, 2)]), [2], "NextSeg (1)");
    assert_eq!(bench.ack_sack(0, &[(5, 10), (3, 4), (1, 2)]), [4]);
    assert_eq!(bench.ack_sack(2, &[(5, 10), (3, 4)]), [12], "NextSeg (2): no hole is left to send");
    assert!(bench.sender.in_recovery());
    bench.ack(12);
    assert!(!bench.sender.in_recovery(), "step (A)");
    assert_eq!(bench.cwnd(), 5 * MSS);
}

/// Ten segments and no more; 0 and, in the second case, 9 are lost.
#[test]
fn rfc_6675_4_a_rescue_waits_for_an_ack_above_the_first_retransmission() {
    for (acknowledged, rescue) in [(10, vec![]), (9, vec![9])] {
        let mut bench = Bench { sender: Sender::new(config(Flavour::Sack), 0).unwrap(), now: 0, out: vec![] };
        bench.sender.write(10 * MSS);
        assert_eq!(bench.open().len(), 10);
        let sent: Vec<u64> = (2..=9).flat_map(|upto| bench.ack_sack(0, &[(1, upto)])).collect();
        assert_eq!(sent, [0], "nothing else is lost, and 9 may be under way: pipe leaves room for three");
        assert_eq!(bench.ack(acknowledged), rescue, "HighACK is above RescueRxt");
        assert_eq!(bench.ack_sack(acknowledged, &[]), [] as [u64; 0], "once");
    }
}

#[test]
fn rfc_6675_2_a_duplicate_ack_reports_new_data() {
    let mut bench = in_flight(Flavour::Sack, 10);
    for _ in 0..5 {
        bench.ack_sack(0, &[(1, 2)]);
    }
    assert_eq!(bench.sender.stats().fast_retransmits, 0, "the same block five times is one duplicate");
}

/// Segment 0 arrives, 1 is lost, and the ACK for 0 comes with the news of 2. Blocks are half of a segment long, so that only DupAcks tell.
#[test]
fn rfc_6675_5_an_ack_that_moves_high_ack_and_has_news_is_the_first_duplicate() {
    for (config, third_is_enough) in [(config(Flavour::Sack), true), (sack1(), false)] {
        let mut bench = in_flight_with(config, 10);
        let mut retransmitted = vec![];
        for half in 1..=4u64 {
            let mut sack = SackBlocks::default();
            sack.push(1 + 2000, 1 + 2000 + 500 * half as u32);
            let segment = Segment { ack: 1001, flags: Flags::ACK, window: 8192, sack, ..Segment::default() };
            bench.sender.on_segment(bench.now, &segment, &mut bench.out);
            retransmitted.push(bench.sent().contains(&1));
        }
        assert_eq!(retransmitted, [false, false, third_is_enough, !third_is_enough]);
    }
}

#[test]
fn rfc_6675_5_limited_transmit_follows_such_an_ack_too() {
    let mut bench = in_flight(Flavour::Sack, 10);
    assert_eq!(bench.ack_sack(1, &[(2, 3)]), [10, 11], "one for the segment that is acknowledged, one for the duplicate");
    assert_eq!(bench.ack_sack(1, &[(2, 4)]), [12]);
    assert_eq!(bench.ack_sack(1, &[(2, 5)])[0], 1, "the third");
}

#[test]
fn rfc_6675_5_1_a_recovery_may_follow_another_from_the_recovery_point_on() {
    let mut bench = in_flight(Flavour::Sack, 10);
    let third = bench.ack_sack(0, &[(1, 4)]);
    assert_eq!(third[0], 0);
    // all that was sent before is acknowledged, and the first segment sent since is lost
    let sent = bench.ack(10);
    assert!(!bench.sender.in_recovery());
    assert_eq!(sent[0], 10);
    assert!(bench.ack_sack(10, &[(11, 14)]).contains(&10));
    assert_eq!(bench.sender.stats().fast_retransmits, 2);
}

/// A recovery of two round trips, as its last hole shows late, and a loss in what was sent meanwhile: twice the window is outstanding then.
#[test]
fn rfc_5681_4_3_a_loss_in_the_next_window_lowers_the_window_again() {
    for (flavour, percent) in [(Flavour::Sack, 50), (Flavour::Cubic, 70)] {
        let mut bench = in_flight(flavour, 100);
        // 0 and 95 are lost, and 100, the first of the new segments
        bench.ack_sack(0, &[(1, 4)]);
        let window = percent * MSS;
        assert_eq!(bench.cwnd(), window);
        (5..=95).for_each(|upto| drop(bench.ack_sack(0, &[(1, upto)])));
        (97..=100).for_each(|upto| drop(bench.ack_sack(95, &[(96, upto)])));
        // a window of new segments arrives, and each ACK lets one more out; then 95, sent again
        let arrived = 101 + percent;
        for upto in 102..=arrived {
            bench.ack_sack(95, &[(101, upto), (96, 100)]);
        }
        assert_eq!((bench.sender.in_recovery(), bench.cwnd(), bench.sender.stats().fast_retransmits), (true, window, 1));
        assert!(bench.sender.flight_size() > window + 40 * MSS, "{}", bench.sender.flight_size());
        bench.ack_sack(100, &[(101, arrived)]);
        assert!(!bench.sender.in_recovery());
        bench.ack_sack(100, &[(101, arrived + 1)]);
        assert_eq!(bench.sender.stats().fast_retransmits, 2);
        assert_eq!((bench.cwnd(), bench.sender.ssthresh()), (window * percent / 100, window * percent / 100));
    }
}

#[test]
fn rfc_6675_5_is_lost_starts_recovery_before_the_third_duplicate() {
    let mut bench = in_flight(Flavour::Sack, 10);
    assert_eq!(bench.ack_sack(0, &[(1, 4)])[0], 0, "more than two segments SACKed above it, in one ACK");
}

fn sack1() -> Config {
    Config { sack_recovery: SackRecovery::Sack1, limited_transmit: false, reduction_base: ReductionBase::Window, ..config(Flavour::Sack) }
}

#[test]
fn fall_floyd_1996_sack1_counts_its_pipe_by_acks() {
    let mut bench = in_flight_with(sack1(), 10);
    // 0, 2 and 4 are lost
    assert_eq!((bench.ack_sack(0, &[(1, 2)]), bench.ack_sack(0, &[(3, 4), (1, 2)])), (vec![], vec![]));
    assert_eq!(bench.ack_sack(0, &[(5, 6), (3, 4), (1, 2)]), [0]);
    assert_eq!(bench.cwnd(), 5 * MSS);
    assert_eq!(bench.ack_sack(0, &[(5, 7), (3, 4), (1, 2)]), Vec::<u64>::new(), "pipe 10 - 3 - 1");
    assert_eq!(bench.ack_sack(0, &[(5, 8), (3, 4), (1, 2)]), Vec::<u64>::new(), "pipe 5");
    assert_eq!(bench.ack_sack(0, &[(5, 9), (3, 4), (1, 2)]), [2], "pipe 4, less than the window");
    assert_eq!(bench.ack_sack(0, &[(5, 10), (3, 4), (1, 2)]), [4]);
    assert_eq!(bench.ack_sack(2, &[(5, 10), (3, 4)]), [10, 11], "a partial ACK takes two segments out of the pipe");
    assert_eq!(bench.ack_sack(4, &[(5, 10)]), [12, 13]);
    assert_eq!(bench.ack(10), [14], "the end of recovery: 10 to 14 fill the window of five");
    assert!(!bench.sender.in_recovery());
    // the very next segment was lost as well: no timeout is needed
    bench.ack_sack(10, &[(11, 12)]);
    bench.ack_sack(10, &[(11, 13)]);
    assert_eq!(bench.ack_sack(10, &[(11, 14)]), [10]);
}

#[test]
fn fall_floyd_1996_sack1_waits_for_its_timer_when_most_of_a_window_is_lost() {
    // 0 to 6 of ten are lost; RFC 6675 takes them out of its pipe, Sack1 does not
    for (config, timeouts) in [(sack1(), 1), (Config { sack_recovery: SackRecovery::Rfc6675, ..sack1() }, 0)] {
        let mut bench = in_flight_with(config, 10);
        let mut sent = vec![];
        for upto in 8..=10 {
            sent.extend(bench.ack_sack(0, &[(7, upto)]));
        }
        sent.extend(bench.ack_sack(1, &[(7, 10)]));
        if timeouts == 0 {
            assert_eq!(sent[..3], [0, 1, 2], "pipe 1, window 5");
            continue;
        }
        assert_eq!(sent, [0], "pipe 10 - 3 - 2 fills the window of five");
        assert_eq!((bench.fire_timer(), bench.sender.stats().timeouts), (vec![1], 1));
        assert_eq!(bench.sender.ssthresh(), 2500, "half of the halved window");
        // it goes back N: what was SACKed is sent again, and the blocks of later ACKs change nothing
        assert_eq!(bench.ack_sack(2, &[(7, 10)]), [2, 3]);
        assert_eq!(bench.ack_sack(3, &[(7, 10)]), [4, 5]);
        assert_eq!(bench.ack_sack(4, &[(7, 10)]), [6]);
        assert_eq!(bench.ack_sack(5, &[(7, 10)]), [7], "window 3.6");
        assert_eq!(bench.ack_sack(6, &[(7, 10)]), [8]);
    }
}

#[test]
fn bsd_4_4_has_neither_of_the_later_guards_and_halves_in_segments() {
    // duplicates of what a timeout sent again begin a fast retransmit (S. Floyd, "TCP and Successive Fast Retransmits", 1995)
    let mut bench = in_flight_with(Config { avoid_multiple_fast_retransmits: false, ..config(Flavour::Reno) }, 10);
    bench.fire_timer();
    let sent: Vec<u64> = (0..3).flat_map(|_| bench.ack(0)).collect();
    assert!(sent.contains(&0));
    assert_eq!(bench.sender.stats().fast_retransmits, 1);
    // 9 / 2 segments are 4 (tcp_input.c: `win = min(tp->snd_wnd, tp->snd_cwnd) / 2 / tp->t_maxseg`)
    let mut bench = in_flight_with(Config { reduction_base: ReductionBase::WindowSegments, ..config(Flavour::Tahoe) }, 9);
    bench.fire_timer();
    assert_eq!(bench.sender.ssthresh(), 4 * MSS);
    // a second timeout of the same segment halves the window of one (tcp_timer.c, TCPT_REXMT)
    let mut bench = in_flight_with(Config { hold_ssthresh: false, reduction_base: ReductionBase::Window, ..config(Flavour::Reno) }, 10);
    bench.fire_timer();
    assert_eq!(bench.sender.ssthresh(), 5 * MSS);
    bench.fire_timer();
    assert_eq!(bench.sender.ssthresh(), 2 * MSS);
}

#[test]
fn rfc_6298_5_timeout_backs_off_and_slow_starts() {
    for flavour in Flavour::ALL {
        let mut bench = in_flight(flavour, 10);
        bench.ack(1);
        let rto = bench.sender.rto();
        assert_eq!(bench.fire_timer(), [1], "{flavour:?} (5.4): the earliest segment, alone");
        assert_eq!(bench.cwnd(), MSS, "[RFC 5681 sec 3.1]: the loss window");
        let ssthresh = match flavour {
            Flavour::Cubic => 7 * MSS,
            // of 10.1 segments
            Flavour::Prague => 5050,
            // which has no use for it
            Flavour::Bbr => 2 * MSS,
            _ => 5 * MSS,
        };
        assert_eq!(bench.sender.ssthresh(), ssthresh, "{flavour:?}");
        assert_eq!(bench.sender.rto(), 2 * rto, "(5.5)");
        bench.fire_timer();
        assert_eq!(bench.sender.rto(), 4 * rto);
        assert_eq!(bench.sender.ssthresh(), ssthresh, "[RFC 5681 sec 3.1]: held at a second timeout");
        // Karn: the ACK of a segment sent again is no sample, so the back-off stays
        bench.now += 5 * MS;
        bench.ack(2);
        assert_eq!(bench.sender.rto(), 4 * rto, "{flavour:?} [RFC 6298 sec 3]");
        // the segments sent next are timed once they are new
        bench.now += 100 * MS;
        bench.ack(11);
        bench.now += 100 * MS;
        bench.ack(12);
        if flavour.is_paced() {
            // of 10.1 segments, and of BBR's window, one more was out before the timeout
            bench.now += 100 * MS;
            bench.ack(13);
        }
        assert!(bench.sender.rto() <= rto, "{flavour:?} (5.7): a new sample ends the back-off");
    }
}

#[test]
fn rfc_6298_5_timer_stops_when_all_is_acknowledged() {
    let mut sender = Sender::new(config(Flavour::Reno), 0).unwrap();
    let mut out = vec![];
    sender.write(3000);
    sender.open(0, &mut out);
    assert!(sender.next_timer().is_some(), "(5.1)");
    let ack = |n: u32| Segment { ack: n, flags: Flags::ACK, window: 8192, ..Segment::default() };
    sender.on_segment(50 * MS, &ack(1001), &mut out);
    assert_eq!(sender.next_timer(), Some(50 * MS + sender.rto()), "(5.3)");
    sender.on_segment(60 * MS, &ack(3001), &mut out);
    assert_eq!(sender.next_timer(), None, "(5.2)");
}

#[test]
fn rfc_5681_4_1_data_after_an_idle_time_begin_with_the_restart_window() {
    for flavour in Flavour::ALL.into_iter().filter(|&flavour| flavour != Flavour::Bbr) {
        for (idle, restarts) in [(60_000 * MS, true), (20 * MS, false)] {
            let mut sender = Sender::new(config(flavour), 0).unwrap();
            let (mut out, mut now) = (vec![], 0);
            sender.write(400 * MSS);
            sender.open(0, &mut out);
            while sender.acknowledged() < 400 * MSS {
                now += 20 * MS;
                while let Some(at) = sender.next_timer().filter(|&at| at < now) {
                    sender.on_timer(at, &mut out);
                }
                let segment = Segment { flags: Flags::ACK, window: 8192, ..Segment::default() };
                let segment = if flavour == Flavour::Prague { segment.with_ace(5) } else { segment };
                for n in sender.acknowledged() / MSS..(sender.acknowledged() + sender.flight_size()) / MSS {
                    sender.on_segment(now, &Segment { ack: (1 + (n + 1) * MSS) as u32, ..segment }, &mut out);
                }
            }
            let before = sender.cwnd();
            assert!(before > 20 * MSS, "{flavour:?}: {before}");
            sender.write(400 * MSS);
            sender.poll(now + idle, &mut out);
            let window = if restarts { 10 * MSS } else { before };
            assert_eq!(sender.cwnd(), window, "{flavour:?} after {idle} ns");
            assert!(sender.flight_size() <= window, "{flavour:?} after {idle} ns: {}", sender.flight_size());
        }
    }
}

#[test]
fn rfc_9293_3_5_handshake_negotiates_and_a_lost_syn_is_sent_again() {
    let base = Config { handshake: true, max_window: 1 << 20, ..config(Flavour::Sack) };
    let mut sender = Sender::new(base.clone(), u32::MAX).unwrap();
    let mut receiver = Receiver::new(Config { mss: 500, ..base }, 77).unwrap();
    let mut out = vec![];
    sender.write(2000);
    sender.open(0, &mut out);
    let syn = out.pop().unwrap().segment;
    assert_eq!((syn.flags, syn.seq, syn.syn_options.mss), (Flags::SYN, u32::MAX, Some(1000)));
    let at = sender.next_timer().unwrap();
    assert_eq!(at, 1_000 * MS);
    sender.on_timer(at, &mut out);
    let again = out.pop().unwrap();
    assert!(again.retransmission && again.segment == syn);
    receiver.on_segment(at, &again.segment, false, &mut out);
    let syn_ack = out.pop().unwrap().segment;
    assert_eq!((syn_ack.flags, syn_ack.ack), (Flags::SYN.with(Flags::ACK), 0));
    sender.on_segment(at + 10 * MS, &syn_ack, &mut out);
    assert!(sender.is_established());
    assert_eq!(sender.rto(), 3_000 * MS, "[RFC 6298 sec 5 step 5.7]");
    assert_eq!(out.len(), 1, "[RFC 5681 sec 3.1]: one segment after a lost SYN");
    assert_eq!((out[0].segment.payload_len, out[0].segment.ack), (500, 78), "the peer's MSS");
}

#[test]
fn rfc_9293_3_7_1_without_an_mss_option_segments_have_536_bytes() {
    let mut sender = Sender::new(Config { handshake: true, ..config(Flavour::Sack) }, 0).unwrap();
    let mut out = vec![];
    sender.write(u64::MAX);
    sender.open(0, &mut out);
    let syn_ack = Segment { ack: 1, flags: Flags::SYN.with(Flags::ACK), window: u16::MAX, ..Segment::default() };
    sender.on_segment(10 * MS, &syn_ack, &mut out);
    assert!(out[1..].iter().all(|t| t.segment.payload_len == 536));
    assert_eq!((out.len(), sender.cwnd()), (11, 5_360));
}

#[test]
fn rfc_9293_3_10_7_4_an_ack_of_what_was_not_sent_is_answered_and_dropped() {
    let mut bench = in_flight(Flavour::Sack, 10);
    let ack = |n: u64| Segment { ack: (1 + n * MSS) as u32, flags: Flags::ACK, window: 8192, ..Segment::default() };
    bench.sender.on_segment(bench.now, &ack(11), &mut bench.out);
    assert_eq!(bench.out.iter().map(|t| (t.segment.seq, t.segment.payload_len)).collect::<Vec<_>>(), [(1 + 10 * MSS as u32, 0)]);
    assert_eq!((bench.sender.acknowledged(), bench.sender.stats().acks), (0, 0));
    bench.out.clear();
    bench.ack(2);
    bench.sender.on_segment(bench.now, &ack(1), &mut bench.out);
    assert!(bench.out.is_empty() && bench.sender.acknowledged() == 2 * MSS, "an old one is ignored");
}

#[test]
fn rfc_9293_3_8_6_1_a_zero_window_is_probed() {
    let mut bench = in_flight(Flavour::Sack, 10);
    let rto = bench.sender.rto();
    let shut = Segment { ack: 1 + 10 * MSS as u32, flags: Flags::ACK, window: 0, ..Segment::default() };
    bench.sender.on_segment(bench.now, &shut, &mut bench.out);
    let mut at = bench.now;
    // the round trip of this ACK is a sample, and changes the RTO
    let mut wait = bench.sender.rto();
    assert!(wait != rto);
    for _ in 0..3 {
        assert_eq!(bench.sender.next_timer(), Some(at + wait), "first after an RTO, then with back-off");
        at += wait;
        wait *= 2;
        bench.sender.on_timer(at, &mut bench.out);
        assert_eq!(bench.out.iter().map(|t| (t.segment.seq, t.segment.payload_len)).collect::<Vec<_>>(), [(1 + 10 * MSS as u32, 1)]);
        bench.out.clear();
        bench.sender.on_segment(at, &shut, &mut bench.out);
        assert!(bench.out.is_empty());
    }
    bench.now = at;
    bench.sender.on_segment(at, &Segment { window: 8192, ..shut }, &mut bench.out);
    assert!(!bench.out.is_empty() && bench.sender.stats().timeouts == 0, "the window is open again");
}

#[test]
fn rfc_5681_4_2_acknowledgements_are_delayed_at_most_two_segments_or_the_timer() {
    let config = Config { delayed_ack: true, delayed_ack_timeout: 100 * MS, ..config(Flavour::Sack) };
    let mut receiver = Receiver::new(config, 0).unwrap();
    receiver.listen_without_handshake(0);
    let data = |n: u32| Segment { seq: 1 + n * 1000, flags: Flags::ACK, payload_len: 1000, ..Segment::default() };
    let acks = |receiver: &mut Receiver, n: u32| {
        let mut out = vec![];
        receiver.on_segment(u64::from(n) * MS, &data(n), false, &mut out);
        out.iter().map(|t| (t.segment.ack - 1) / 1000).collect::<Vec<_>>()
    };
    assert_eq!(acks(&mut receiver, 0), [] as [u32; 0]);
    assert_eq!(receiver.next_timer(), Some(100 * MS));
    assert_eq!(acks(&mut receiver, 1), [2], "every second segment");
    assert_eq!(receiver.next_timer(), None);
    assert_eq!(acks(&mut receiver, 3), [2], "out of order: at once");
    assert_eq!(acks(&mut receiver, 4), [2]);
    assert_eq!(acks(&mut receiver, 2), [5], "a gap filled: at once");
    acks(&mut receiver, 5);
    let mut out = vec![];
    receiver.on_timer(receiver.next_timer().unwrap(), &mut out);
    assert_eq!(out[0].segment.ack, 6001, "the timer");
}

#[test]
fn rfc_2018_4_the_newest_block_comes_first() {
    let mut receiver = Receiver::new(Config { delayed_ack: false, ..config(Flavour::Sack) }, 0).unwrap();
    receiver.listen_without_handshake(0);
    let mut last = vec![];
    for n in [2u32, 4, 6, 8, 10, 4, 9] {
        let mut out = vec![];
        let segment = Segment { seq: 1 + n * 1000, flags: Flags::ACK, payload_len: 1000, ..Segment::default() };
        receiver.on_segment(0, &segment, false, &mut out);
        last = out[0].segment.sack.as_slice().iter().map(|b| ((b.0 - 1) / 1000, (b.1 - 1) / 1000)).collect();
    }
    assert_eq!(last, [(8, 11), (4, 5), (6, 7), (2, 3)]);
}
