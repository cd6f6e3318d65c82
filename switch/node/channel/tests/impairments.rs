//! Burst loss, reordering, duplication and corruption against their formulas. Tolerances are 4.5 standard errors: a right link fails one of a hundred
//! thousand such comparisons.

use fairlane_channel::{Channel, ChannelConfig, Impairments, Jitter, LossModel};

const GAP_NS: u64 = 1_000_000;
const BOUND: f64 = 4.5;

fn of_loss(loss: LossModel) -> ChannelConfig {
    ChannelConfig { loss: Some(loss), ..ChannelConfig::default() }
}

fn of(impairments: Impairments) -> ChannelConfig {
    ChannelConfig { impairments, ..ChannelConfig::default() }
}

fn gilbert(good_to_bad: f64, bad_to_good: f64, loss_good: f64, loss_bad: f64) -> LossModel {
    LossModel::Gilbert { good_to_bad, bad_to_good, loss_good, loss_bad }
}

/// A frame that carries its number.
fn frame(number: u64) -> Vec<u8> {
    let mut frame = vec![0; 100];
    frame[20..28].copy_from_slice(&number.to_be_bytes());
    frame
}

fn number(frame: &[u8]) -> u64 {
    u64::from_be_bytes(frame[20..28].try_into().expect("eight bytes"))
}

/// What a switch's port sends each millisecond: (when, frame) as they arrive, and the numbers of those that were lost.
fn sent(channel: &mut Channel, count: u64) -> (Vec<(u64, Vec<u8>)>, Vec<u64>) {
    let (mut arrived, mut lost) = (Vec::new(), Vec::new());
    let mut take = |channel: &mut Channel, until: u64, lost: &mut Vec<u64>| {
        while let Some(at) = channel.next().filter(|&at| at <= until) {
            match channel.arrive() {
                Some(Ok(frame)) => arrived.push((at, frame)),
                Some(Err(frame)) => lost.push(number(&frame)),
                None => {}
            }
        }
    };
    let mut direct = Vec::new();
    for n in 0..count {
        let now = n * GAP_NS;
        take(channel, now, &mut lost);
        match channel.pass(now, frame(n)) {
            Ok(frame) => direct.push((now, frame)),
            Err(Some(frame)) => lost.push(number(&frame)),
            Err(None) => {}
        }
    }
    take(channel, u64::MAX, &mut lost);
    arrived.extend(direct);
    arrived.sort_by_key(|(at, _)| *at);
    (arrived, lost)
}

/// A count of independent draws against their probability.
fn near(found: u64, of: u64, p: f64) {
    let (mean, error) = (of as f64 * p, (of as f64 * p * (1.0 - p)).sqrt());
    assert!((found as f64 - mean).abs() <= BOUND * error, "{found} of {of}, expected {mean:.0} +- {error:.1}");
}

#[test]
fn burst_loss_has_the_models_mean() {
    // pi = p / (p + r) in the bad state; of the mean's variance, the part of the state's correlation (1 - p - r)^k is added.
    let count = 200_000;
    for (seed, (p, r, good, bad)) in
        [(0.01, 0.25, 0.0, 1.0), (0.05, 0.1, 0.0, 0.5), (0.001, 0.01, 0.002, 0.8), (0.3, 0.7, 0.0, 1.0), (0.9, 0.9, 0.1, 0.6)]
            .into_iter()
            .enumerate()
    {
        let mut channel = Channel::new(of_loss(gilbert(p, r, good, bad)), false, seed as u64, "a", "b");
        let lost = sent(&mut channel, count).1.len() as f64;
        let pi = p / (p + r);
        let mean = pi * bad + (1.0 - pi) * good;
        let rho = 1.0 - p - r;
        let variance = mean * (1.0 - mean) + 2.0 * (bad - good) * (bad - good) * pi * (1.0 - pi) * rho / (1.0 - rho);
        let error = (variance / count as f64).sqrt();
        assert!((lost / count as f64 - mean).abs() <= BOUND * error, "p {p} r {r}: lost {lost}, expected {mean} +- {error}");
        assert_eq!(channel.stats.dropped_loss as f64, lost);
    }
}

#[test]
fn bursts_are_geometric() {
    // Where the bad state loses all and the good one nothing, a burst has k frames with probability r (1 - r)^(k - 1), a gap with p (1 - p)^(k - 1).
    let (p, r) = (0.02, 0.3);
    let lost = sent(&mut Channel::new(of_loss(gilbert(p, r, 0.0, 1.0)), false, 7, "a", "b"), 400_000).1;
    let mut bursts: Vec<u64> = Vec::new();
    let (mut gaps, mut before) = (Vec::new(), None);
    for n in lost {
        match before {
            Some(last) if n == last + 1 => *bursts.last_mut().expect("a burst has begun") += 1,
            other => {
                gaps.extend(other.map(|last| n - last - 1));
                bursts.push(1);
            }
        }
        before = Some(n);
    }
    bursts.pop();
    for (lengths, stop) in [(&bursts, r), (&gaps, p)] {
        let all = lengths.len() as u64;
        let mut p = 1.0;
        for k in 1..=8 {
            let least = lengths.iter().filter(|&&length| length >= k).count() as u64;
            near(least, all, p);
            p *= 1.0 - stop;
        }
        let mean = lengths.iter().sum::<u64>() as f64 / all as f64;
        let error = (1.0 - stop).sqrt() / stop / (all as f64).sqrt();
        assert!((mean - 1.0 / stop).abs() <= BOUND * error, "{mean}, expected {} +- {error}", 1.0 / stop);
    }
}

#[test]
fn copies_and_flipped_bits_have_their_rates() {
    let count = 30_000;
    for (seed, (duplicate, corrupt)) in [(0.0, 0.01), (0.02, 0.0), (0.1, 0.3), (1.0, 1.0)].into_iter().enumerate() {
        let impairments = Impairments { duplicate, corrupt, ..Impairments::default() };
        let mut channel = Channel::new(of(impairments), false, seed as u64, "a", "b");
        let (arrived, lost) = sent(&mut channel, count);
        assert!(lost.is_empty());
        near(channel.stats.duplicated, count, duplicate);
        near(channel.stats.corrupted, count, corrupt);
        assert_eq!(arrived.len() as u64, count + channel.stats.duplicated);
        assert_eq!(channel.stats.delivered_packets, arrived.len() as u64);
        let whole: Vec<Vec<u8>> = (0..count).map(frame).collect();
        let (mut flipped, mut bits) = (0, [0u64; 8]);
        for (at, frame) in &arrived {
            let sent = &whole[(at / GAP_NS) as usize];
            let changed: Vec<(usize, u8)> = frame.iter().zip(sent).map(|(a, b)| a ^ b).enumerate().filter(|(_, x)| *x != 0).collect();
            assert!(changed.len() <= 1 && changed.iter().all(|(byte, x)| *byte >= 14 && x.count_ones() == 1), "{changed:?}");
            flipped += changed.len() as u64;
            changed.iter().for_each(|(_, x)| bits[x.trailing_zeros() as usize] += 1);
        }
        assert_eq!(flipped, channel.stats.corrupted);
        bits.iter().filter(|_| flipped > 0).for_each(|&n| near(n, flipped, 0.125));
        assert_eq!(channel.stats.reordered, 0);
    }
}

#[test]
fn frames_held_back_are_overtaken() {
    // Held back for 2.5 gaps, a frame is overtaken unless the next two are held back, too.
    let (count, q) = (100_000, 0.2);
    let held = Impairments { reorder: q, reorder_delay_ns: 5 * GAP_NS / 2, ..Impairments::default() };
    let mut channel = Channel::new(of(held), false, 3, "a", "b");
    let (arrived, _) = sent(&mut channel, count);
    assert_eq!(arrived.len() as u64, count);
    let late: Vec<u64> = arrived.iter().map(|(at, frame)| at - number(frame) * GAP_NS).collect();
    assert!(late.iter().all(|&late| late == 0 || late == 5 * GAP_NS / 2));
    near(late.iter().filter(|&&late| late > 0).count() as u64, count, q);
    let mut highest = 0;
    let mut reordered = 0;
    for (_, frame) in &arrived {
        reordered += u64::from(number(frame) < highest);
        highest = highest.max(number(frame));
    }
    assert_eq!(channel.stats.reordered, reordered);
    near(reordered, count, q * (1.0 - q * q));
}

#[test]
fn each_kind_has_its_own_draws() {
    let loss = Some(gilbert(0.05, 0.3, 0.0, 1.0));
    let jitter = Jitter::of(300_000, 0);
    let all = Impairments { reorder: 0.1, reorder_delay_ns: 3 * GAP_NS, duplicate: 0.1, corrupt: 0.1 };
    let run = |impairments, loss| {
        let mut channel = Channel::new(ChannelConfig { impairments, loss, jitter, ..ChannelConfig::default() }, false, 5, "a", "b");
        (sent(&mut channel, 5_000), channel.stats)
    };
    let ((_, lost), stats) = run(all, loss);
    for alone in [Impairments { reorder: 0.0, ..all }, Impairments { duplicate: 0.0, ..all }, Impairments { corrupt: 0.0, ..all }] {
        let ((_, others), found) = run(alone, loss);
        assert_eq!(others, lost);
        assert!(alone.duplicate == 0.0 || found.duplicated == stats.duplicated);
        assert!(alone.corrupt == 0.0 || found.corrupted == stats.corrupted);
        assert_eq!(found.offered_packets + found.duplicated, found.delivered_packets + found.dropped_loss);
    }
    let ((_, none), found) = run(all, None);
    assert!(none.is_empty() && found.duplicated >= stats.duplicated && found.corrupted >= stats.corrupted);
}

#[test]
fn a_hosts_queue_keeps_its_order_but_for_frames_held_back() {
    // 1000 bytes at 8 Mb/s take 1 ms each; a new rate plans anew what waits, and what is held back stays held back.
    let impairments = Impairments { reorder: 0.3, reorder_delay_ns: 4 * GAP_NS, duplicate: 0.2, ..Impairments::default() };
    let config = ChannelConfig { rate_bps: Some(8_000_000), delay_ns: 500, queue_packets: 1000, impairments, ..ChannelConfig::default() };
    let mut channel = Channel::new(config, true, 9, "h", "s");
    let mut arrived = Vec::new();
    for n in 0..500u64 {
        let mut frame = frame(n);
        frame.resize(1000, 0);
        channel.send(n * GAP_NS / 2, frame);
        if n == 300 {
            channel.set_rate(n * GAP_NS / 2, Some(16_000_000));
        }
        while let Some(at) = channel.next().filter(|&at| at <= n * GAP_NS / 2) {
            arrived.extend(channel.arrive().and_then(Result::ok).map(|frame| (at, number(&frame))));
        }
    }
    while let Some(at) = channel.next() {
        arrived.extend(channel.arrive().and_then(Result::ok).map(|frame| (at, number(&frame))));
    }
    assert!(arrived.is_sorted_by_key(|(at, _)| *at));
    assert_eq!(arrived.len() as u64, 500 + channel.stats.duplicated);
    assert_eq!(channel.in_flight(), 0);
    let numbers: std::collections::BTreeSet<u64> = arrived.iter().map(|(_, n)| *n).collect();
    assert_eq!(numbers.len(), 500);
    assert!(channel.stats.reordered > 100 && channel.stats.duplicated > 70, "{:?}", channel.stats);
}
