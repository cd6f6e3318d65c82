//! RACK beside its pseudocode [RFC 8985 sec 6.2], [RFC 8985 sec 6.3], which goes through every segment at every ACK.

use super::*;
use proptest::prelude::*;

const MSS: u64 = 1000;

#[derive(Clone, Debug)]
struct TextSegment {
    end_seq: u64,
    /// `None`: INFINITE_TS.
    xmit_ts: Option<Nanos>,
    lost: bool,
    retransmitted: bool,
    sacked: bool,
}

/// The variables of [RFC 8985 sec 5.3] by their names.
#[derive(Debug)]
struct Text {
    segments: Vec<TextSegment>,
    xmit_ts: Nanos,
    end_seq: u64,
    rtt: Nanos,
    min_rtt: Option<Nanos>,
    fack: u64,
    reordering_seen: bool,
    dsack_round: Option<u64>,
    reo_wnd: Nanos,
    reo_wnd_mult: u64,
    reo_wnd_persist: i64,
    timer: Option<Nanos>,
}

fn sent_after(t1: Nanos, seq1: u64, t2: Nanos, seq2: u64) -> bool {
    t1 > t2 || t1 == t2 && seq1 > seq2
}

impl Text {
    fn on_ack(&mut self, now: Nanos, ack: &Ack, sacked: &[u64]) {
        let is_new = |s: &TextSegment| !s.sacked && (s.end_seq <= ack.una || sacked.contains(&s.end_seq));
        let mut newly: Vec<TextSegment> = self.segments.iter().filter(|s| is_new(s)).cloned().collect();
        // step 1
        let sample = newly.iter().filter(|s| !s.retransmitted).filter_map(|s| s.xmit_ts).max().map(|sent| now - sent);
        self.min_rtt = [self.min_rtt, sample].into_iter().flatten().min();
        // step 2, RACK_update()
        newly.sort_by_key(|s| (s.xmit_ts, s.end_seq));
        for segment in &newly {
            let Some(xmit_ts) = segment.xmit_ts else { continue };
            let rtt = now - xmit_ts;
            if segment.retransmitted {
                let echo = ack.timestamps.filter(|_| segment.end_seq <= ack.una).map(|ts| u64::from(ts.echo));
                if echo.is_some_and(|echo| echo < xmit_ts / 1000) || rtt < self.min_rtt.unwrap_or(0) {
                    continue;
                }
            }
            self.rtt = rtt;
            if sent_after(xmit_ts, segment.end_seq, self.xmit_ts, self.end_seq) {
                (self.xmit_ts, self.end_seq) = (xmit_ts, segment.end_seq);
            }
        }
        // step 3, RACK_detect_reordering()
        newly.sort_by_key(|s| s.end_seq);
        for segment in &newly {
            if segment.end_seq > self.fack {
                self.fack = segment.end_seq;
            } else if segment.end_seq < self.fack && !segment.retransmitted {
                self.reordering_seen = true;
            }
        }
        self.segments.retain(|s| s.end_seq > ack.una);
        for segment in &mut self.segments {
            if sacked.contains(&segment.end_seq) {
                (segment.sacked, segment.lost) = (true, false);
            }
        }
        // step 4, RACK_update_reo_wnd()
        if self.dsack_round.is_some_and(|round| ack.una >= round) {
            self.dsack_round = None;
        }
        if self.dsack_round.is_none() && ack.dsack.is_some() {
            self.dsack_round = Some(ack.nxt);
            self.reo_wnd_mult += 1;
            self.reo_wnd_persist = 16;
        } else if ack.recovered {
            self.reo_wnd_persist -= 1;
            if self.reo_wnd_persist <= 0 {
                self.reo_wnd_mult = 1;
            }
        }
        let segs_sacked = self.segments.iter().filter(|s| s.sacked).count();
        self.reo_wnd = if !self.reordering_seen && (ack.recovering || segs_sacked >= 3) {
            0
        } else {
            (self.reo_wnd_mult * self.min_rtt.unwrap_or(0) / 4).min(ack.srtt.unwrap_or(0))
        };
        self.detect_loss(now);
    }

    /// Step 5, RACK_detect_loss_and_arm_timer().
    fn detect_loss(&mut self, now: Nanos) {
        let mut timeout = 0;
        for segment in self.segments.iter_mut().filter(|s| !s.sacked) {
            let Some(xmit_ts) = segment.xmit_ts else { continue };
            if sent_after(self.xmit_ts, self.end_seq, xmit_ts, segment.end_seq) {
                let remaining = (xmit_ts + self.rtt + self.reo_wnd) as i64 - now as i64;
                if remaining <= 0 {
                    segment.lost = true;
                    segment.xmit_ts = None;
                } else {
                    timeout = timeout.max(remaining);
                }
            }
        }
        self.timer = (timeout > 0).then_some(now + timeout as u64);
    }

    /// RACK_mark_losses_on_RTO().
    fn on_timeout(&mut self, now: Nanos) {
        let (rtt, reo_wnd) = (self.rtt, self.reo_wnd);
        for (index, segment) in self.segments.iter_mut().enumerate().filter(|(_, s)| !s.sacked) {
            if index == 0 || segment.xmit_ts.is_some_and(|xmit_ts| xmit_ts + rtt + reo_wnd <= now) {
                (segment.lost, segment.xmit_ts) = (true, None);
            }
        }
        self.timer = None;
    }
}

#[derive(Clone, Debug)]
enum Op {
    Wait(u64),
    Send(u8),
    /// So many lost segments again.
    Resend(u8),
    /// The first so many segments are acknowledged, others by the bits of a mask SACKed; a D-SACK; recovering before and after; TSecr.
    Ack(u8, u16, bool, bool, bool, Option<u64>),
    Timer,
    Timeout,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        4 => (1u64..40).prop_map(Op::Wait),
        4 => (1u8..5).prop_map(Op::Send),
        3 => (1u8..4).prop_map(Op::Resend),
        6 => (0u8..3, any::<u16>(), any::<bool>(), any::<bool>(), any::<bool>(), prop::option::of(0u64..60))
            .prop_map(|(cumulative, mask, dsack, before, after, echo)| Op::Ack(cumulative, mask, dsack, before, after, echo)),
        2 => Just(Op::Timer),
        1 => Just(Op::Timeout),
    ];
    prop::collection::vec(op, 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn rack_does_what_its_pseudocode_says(ops in ops(), srtt in prop::option::of(1u64..100)) {
        let (mut rack, mut board) = (Rack::new(), Scoreboard::new());
        let mut text = Text {
            segments: vec![], xmit_ts: 0, end_seq: 0, rtt: 0, min_rtt: None, fack: 0, reordering_seen: false, dsack_round: None, reo_wnd: 0,
            reo_wnd_mult: 1, reo_wnd_persist: 16, timer: None,
        };
        let (mut now, mut una, mut nxt) = (0u64, 1u64, 1u64);
        for op in ops {
            match op {
                Op::Wait(ms) => now += ms * 1_000_000,
                // the text breaks ties of time by sequence; here there are none
                Op::Send(count) => for _ in 0..count {
                    now += 1;
                    rack.on_sent(now, nxt, nxt + MSS);
                    nxt += MSS;
                    text.segments.push(TextSegment { end_seq: nxt, xmit_ts: Some(now), lost: false, retransmitted: false, sacked: false });
                },
                Op::Resend(count) => for _ in 0..count {
                    let lost = text.segments.iter_mut().find(|s| s.lost);
                    prop_assert_eq!(rack.next_lost().map(|lost| lost.1), lost.as_ref().map(|s| s.end_seq));
                    if let Some(segment) = lost {
                        now += 1;
                        rack.on_sent(now, segment.end_seq - MSS, segment.end_seq);
                        (segment.lost, segment.retransmitted, segment.xmit_ts) = (false, true, Some(now));
                    }
                },
                Op::Ack(cumulative, mask, dsack, before, after, echo) => {
                    una = text.segments.get(usize::from(cumulative).saturating_sub(1)).filter(|_| cumulative > 0).map_or(una, |s| s.end_seq);
                    // what follows the acknowledgement is no SACKed segment
                    while text.segments.iter().any(|s| s.sacked && s.end_seq == una + MSS) {
                        una += MSS;
                    }
                    let above = text.segments.iter().filter(|s| !s.sacked && s.end_seq > una + MSS);
                    let sacked: Vec<u64> = above.enumerate().filter(|(n, _)| mask >> (n % 16) & 1 == 1).map(|(_, s)| s.end_seq).take(4).collect();
                    for &end in sacked.iter().rev() {
                        rack.on_block(&board, end - MSS, end);
                        board.sack(end - MSS, end);
                    }
                    board.advance(una);
                    let timestamps = echo.map(|ms| Timestamps { value: 0, echo: (now / 1000).saturating_sub(ms * 1000) as u32 });
                    let srtt = srtt.map(|ms| ms * 1_000_000);
                    let ack = Ack { una, nxt, timestamps, dsack: dsack.then_some((0, 1)), srtt, recovering: after, recovered: before && !after };
                    rack.on_ack(now, &ack, &board);
                    text.on_ack(now, &ack, &sacked);
                }
                Op::Timer => if let Some(at) = text.timer {
                    now = now.max(at);
                    rack.detect_loss(now);
                    text.detect_loss(now);
                },
                Op::Timeout => {
                    rack.on_timeout(now);
                    text.on_timeout(now);
                }
            }
            let state = |end, lost, sacked, retransmitted| (end, lost, sacked, retransmitted);
            let ours: Vec<_> = rack.segments.iter().map(|s| state(s.end, s.lost, s.sacked, s.retransmitted)).collect();
            let by_text: Vec<_> = text.segments.iter().map(|s| state(s.end_seq, s.lost, s.sacked, s.retransmitted)).collect();
            prop_assert_eq!(ours, by_text);
            prop_assert_eq!((rack.latest.1, rack.rtt, rack.min_rtt.get()), (text.xmit_ts, text.rtt, text.min_rtt));
            prop_assert_eq!((rack.reordering_seen, rack.reo_wnd, rack.timer), (text.reordering_seen, text.reo_wnd, text.timer));
            let in_flight = text.segments.iter().filter(|s| !s.lost && !s.sacked).count() as u64 * MSS;
            let lost = text.segments.iter().filter(|s| s.lost).count() as u64 * MSS;
            prop_assert_eq!((rack.in_flight(), rack.lost()), (in_flight, lost));
        }
    }
}

/// [RFC 8985 sec 6.2 step 4], by hand: N rounds with a D-SACK make it (N + 1) min_RTT / 4, at most SRTT; 16 recoveries later min_RTT / 4.
#[test]
fn the_reordering_window_grows_by_rounds_and_is_reset() {
    let (mut rack, board) = (Rack::new(), Scoreboard::new());
    rack.on_established(0, 100);
    let mut update = |una, dsack: bool, recovered| {
        let ack =
            Ack { una, nxt: una + 10, timestamps: None, dsack: dsack.then_some((0, 1)), srtt: Some(120), recovering: false, recovered };
        rack.on_ack(0, &ack, &board);
        rack.reo_wnd
    };
    assert_eq!(update(1, false, false), 25);
    assert_eq!(update(1, true, false), 50);
    assert_eq!(update(10, true, false), 50, "once in a round");
    assert_eq!([update(11, true, false), update(21, true, false), update(31, true, false)], [75, 100, 120], "bound: SRTT");
    assert!((0..15).all(|_| update(41, false, true) == 120));
    assert_eq!(update(41, false, true), 25, "the sixteenth recovery");
}

/// [RFC 8985 sec 6.2 step 1]: the minimum forgets what is old.
#[test]
fn the_least_round_trip_adapts_to_a_longer_path() {
    let mut least = MinRtt::default();
    let second = 1_000_000_000;
    for at in 0..1000 {
        least.sample(at * second, if at < 10 { 20 } else { 50 });
        let by_hand = if at < 300 { 20 } else { 50 };
        assert_eq!(least.get(), Some(by_hand), "{at} s");
    }
}

/// [RFC 2018 sec 8]: a receiver that SACKed the first segment and does not acknowledge it has dropped it. All is sent again.
#[test]
fn a_timeout_finds_reneging() {
    let (mut rack, mut board) = (Rack::new(), Scoreboard::new());
    for n in 0..4 {
        rack.on_sent(n, 1 + n * MSS, 1 + (n + 1) * MSS);
    }
    let ack = Ack { una: 1, nxt: 4001, timestamps: None, dsack: None, srtt: Some(100), recovering: false, recovered: false };
    rack.on_block(&board, 1, 2001);
    board.sack(1, 2001);
    rack.on_ack(100, &ack, &board);
    assert!(rack.has_sacked() && rack.in_flight() == 2 * MSS);
    assert!(rack.on_timeout(5000));
    assert_eq!((rack.has_sacked(), rack.in_flight(), rack.lost()), (false, 0, 4 * MSS));
}

/// [RFC 8985 sec 6.3], with the example of [RFC 8985 sec 3.5]: the timer of 1 s runs out when two more segments have just left. It resends
/// the first segment alone, and so does the next timeout all whose time is over.
#[test]
fn a_timeout_marks_what_was_sent_a_round_trip_ago() {
    let (mut rack, board) = (Rack::new(), Scoreboard::new());
    rack.on_established(0, 100);
    let ack = |una| Ack { una, nxt: 3001, timestamps: None, dsack: None, srtt: Some(100), recovering: true, recovered: false };
    rack.on_sent(100, 1, 1001);
    rack.on_sent(1090, 1001, 2001);
    rack.on_sent(1095, 2001, 3001);
    assert!(!rack.on_timeout(1100));
    assert_eq!((rack.next_lost(), rack.lost()), (Some((1, 1001)), MSS));
    rack.on_sent(1100, 1, 1001);
    // the ACK of the original, 5 ms later: less than the least round trip, so it says nothing of the others
    rack.on_ack(1105, &ack(1001), &board);
    assert_eq!((rack.next_lost(), rack.in_flight(), rack.timer), (None, 2 * MSS, None));
    rack.on_timeout(2105);
    assert_eq!((rack.next_lost(), rack.lost()), (Some((1001, 2001)), 2 * MSS));
}
