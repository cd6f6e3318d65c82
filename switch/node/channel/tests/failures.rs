//! A link that fails: every frame arrives, or is counted.

use fairlane_channel::{Channel, ChannelConfig, ChannelStats, Sent};
use fairlane_random::Rng;

fn channel() -> Channel {
    let config = ChannelConfig { rate_bps: Some(8_000_000), delay_ns: 2_500_000, queue_packets: 5, ..ChannelConfig::default() };
    Channel::new(config, true, 1, "h1", "s1")
}

fn arrive(channel: &mut Channel, until: u64) -> usize {
    let mut arrived = 0;
    while channel.next().is_some_and(|at| at <= until) {
        arrived += usize::from(matches!(channel.arrive(), Some(Ok(_))));
    }
    arrived
}

#[test]
fn what_waits_and_what_is_on_the_way_is_lost() {
    let mut channel = channel();
    // 1 ms each: at 3.2 ms none has arrived, three are on the way or being sent, and the others wait.
    for _ in 0..6 {
        assert!(!matches!(channel.send(0, vec![0; 1000]), Sent::Full(_)));
    }
    assert_eq!(arrive(&mut channel, 3_600_000), 1);
    assert_eq!(channel.set_up(false).len(), 5);
    assert_eq!(channel.next(), None);
    assert!(matches!(channel.send(4_000_000, vec![0; 1000]), Sent::Full(_)));
    assert_eq!(channel.pass(4_000_000, vec![0; 1000]), Err(Some(vec![0; 1000])));
    assert_eq!(channel.stats.dropped_down, 7);
    assert!(channel.set_up(true).is_empty());
    // The transmitter is free: nothing of what was lost takes its time.
    assert_eq!(channel.send(5_000_000, vec![0; 1000]), Sent::First(8_500_000));
}

#[test]
fn frames_are_conserved() {
    for seed in 0..200 {
        let mut draw = Rng::stream(seed, "failures");
        let (mut channel, mut now, mut arrived) = (channel(), 0, 0);
        for _ in 0..60 {
            now += draw.up_to(3_000_000);
            arrived += arrive(&mut channel, now);
            let frames = draw.up_to(3);
            if frames == 0 {
                channel.set_up(draw.up_to(1) == 1);
            }
            for _ in 0..frames {
                channel.send(now, vec![0; 1000]);
            }
            let ChannelStats { offered_packets, dropped_tail, dropped_down, delivered_packets, .. } = channel.stats;
            assert_eq!(delivered_packets as usize, arrived, "seed {seed}");
            assert_eq!(offered_packets, dropped_tail + dropped_down + delivered_packets + channel.in_flight() as u64, "seed {seed}");
        }
    }
}
