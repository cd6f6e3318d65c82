//! Properties of the traffic manager: exact rates, order, conservation, and an independent model of the queue.

use std::num::NonZeroU32;

use fairlane_tm::{Capacity, DropCause, Nanos, PortConfig, QueueStats, Scheduler, Trace, TrafficManager};
use proptest::prelude::*;

const PORT: u32 = 1;

fn manager(config: PortConfig) -> TrafficManager<usize> {
    let mut tm = TrafficManager::new();
    tm.configure(PORT, config).expect("a good port");
    tm
}

fn config(rate_bps: Option<u64>, capacity: Capacity, priorities: usize) -> PortConfig {
    PortConfig { rate_bps, capacity, priorities, ..PortConfig::default() }
}

proptest! {
    /// `n` packets back to back take exactly `n * bits / rate`, whatever the lateness of each wake-up.
    #[test]
    fn the_rate_is_exact_on_late_wake_ups(
        rate in 1_000u64..40_000_000_000,
        bytes in 1u32..9000,
        overhead_bytes in -14i32..=24,
        count in 1usize..200,
        lateness in prop::collection::vec(0u64..5_000_000, 200),
        start in 0u64..1_000_000_000_000,
    ) {
        let mut tm = manager(PortConfig { overhead_bytes, ..config(Some(rate), Capacity::Unlimited, 1) });
        for packet in 0..count {
            tm.enqueue(start, PORT, 0, bytes, packet).expect("unlimited");
        }
        let mut finish = start;
        let mut now = start;
        for (packet, late) in (0..count).zip(lateness) {
            let (due, port) = tm.next_departure().expect("a backlog");
            prop_assert_eq!(due, finish);
            now = now.max(due + late);
            let dequeued = tm.dequeue(now, port).expect("due");
            prop_assert_eq!(dequeued.item, packet);
            prop_assert_eq!(dequeued.deq_time, finish);
            finish = tm.transmitted(port, bytes).expect("the port exists");
        }
        let bits = count as u128 * u128::from(bytes.saturating_add_signed(overhead_bytes)) * 8;
        let exact = (bits * 1_000_000_000).div_ceil(u128::from(rate)) as u64;
        prop_assert_eq!(finish - start, exact);
        let busy = tm.stats(finish, PORT).expect("the port exists").busy_ns;
        prop_assert!(busy == exact || busy + 1 == exact, "busy {} of {}", busy, exact);
    }
}

#[derive(Debug, Clone)]
enum Step {
    Arrive {
        gap: Nanos,
        priority: usize,
        bytes: u32,
    },
    /// Serve all that is due after `gap`; egress drops the packets whose number is a multiple of the last field.
    Serve {
        gap: Nanos,
        drop_every: usize,
    },
    Rate(Option<u64>),
    Capacity(Capacity),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let capacity =
        prop_oneof![(0u32..20).prop_map(Capacity::Packets), (0u64..20_000).prop_map(Capacity::Bytes), Just(Capacity::Unlimited),];
    let step = prop_oneof![
        6 => (0u64..200_000, 0usize..5, 0u32..1600).prop_map(|(gap, priority, bytes)| Step::Arrive { gap, priority, bytes }),
        4 => (0u64..2_000_000, 1usize..7).prop_map(|(gap, drop_every)| Step::Serve { gap, drop_every }),
        1 => prop::option::of(1u64..100_000_000).prop_map(Step::Rate),
        1 => capacity.prop_map(Step::Capacity),
    ];
    prop::collection::vec(step, 1..120)
}

fn weight() -> impl Strategy<Value = NonZeroU32> {
    (1u32..40).prop_map(|weight| NonZeroU32::new(weight).expect("positive"))
}

fn scheduler() -> impl Strategy<Value = Scheduler> {
    prop_oneof![Just(Scheduler::Strict), weight().prop_map(Scheduler::Weighted), (0u64..5_000_000).prop_map(Scheduler::TimeShifted)]
}

proptest! {
    /// Nothing is lost or made up; FIFO holds within a priority; the link is not idle while a packet waits; depths and the queue's time-integral
    /// agree with a model that only adds up waiting times.
    #[test]
    fn conservation_order_and_integral(steps in steps(), scheduler in scheduler()) {
        let mut current = PortConfig { scheduler, ..config(Some(10_000_000), Capacity::Packets(8), 4) };
        let mut tm = manager(current.clone());
        let (mut now, mut packet, mut intervals) = (0, 0usize, 0u64);
        let (mut admitted, mut left, mut tail, mut range, mut waited) = (0u64, 0u64, 0u64, 0u64, 0u128);
        let mut waiting: [std::collections::VecDeque<(usize, Nanos)>; 4] = Default::default();
        let mut last_departure = 0;
        for step in steps {
            match step {
                Step::Arrive { gap, priority, bytes } => {
                    now += gap;
                    // as a caller that is on time: what is due leaves first
                    while let Some((due, port)) = tm.next_departure().filter(|(due, _)| *due <= now) {
                        let dequeued = tm.dequeue(now, port).expect("due");
                        prop_assert_eq!(dequeued.deq_time, due);
                        let (expected, came) = waiting[dequeued.priority].pop_front().expect("modelled");
                        prop_assert_eq!((dequeued.item, dequeued.enq_time), (expected, came));
                        waited += u128::from(due - came);
                        left += 1;
                        tm.transmitted(port, bytes);
                    }
                    match tm.enqueue(now, PORT, priority, bytes, packet) {
                        Ok(enqueued) => {
                            prop_assert_eq!(enqueued.qdepth as usize, waiting[priority].len());
                            waiting[priority].push_back((packet, now));
                            admitted += 1;
                        }
                        Err(rejected) => {
                            prop_assert_eq!(rejected.item, packet);
                            match rejected.cause {
                                DropCause::TailDrop => tail += 1,
                                DropCause::PriorityOutOfRange => { prop_assert_eq!(priority, 4); range += 1 }
                                DropCause::UnknownPort => prop_assert!(false, "the port exists"),
                            }
                        }
                    }
                    packet += 1;
                }
                Step::Serve { gap, drop_every } => {
                    now += gap;
                    while let Some(dequeued) = tm.dequeue(now, PORT) {
                        prop_assert!(dequeued.deq_time <= now && dequeued.deq_time >= last_departure);
                        last_departure = dequeued.deq_time;
                        let (expected, came) = waiting[dequeued.priority].pop_front().expect("modelled");
                        prop_assert_eq!((dequeued.item, dequeued.enq_time), (expected, came));
                        prop_assert_eq!(dequeued.deq_qdepth as usize, waiting[dequeued.priority].len());
                        // among those present when the link got free: strict priority, or the one that waited longest by its shifted wait
                        for (other, queue) in waiting.iter().enumerate().filter(|(other, _)| *other != dequeued.priority) {
                            let Some((_, front)) = queue.front().filter(|(_, front)| *front <= dequeued.deq_time) else { continue };
                            match scheduler {
                                Scheduler::Strict => prop_assert!(other < dequeued.priority),
                                Scheduler::Weighted(_) => prop_assert!(other < dequeued.priority || dequeued.priority == 0),
                                Scheduler::TimeShifted(shift) => prop_assert!(
                                    front + shift * (4 - other as u64) >= came + shift * (4 - dequeued.priority as u64)
                                ),
                            }
                        }
                        waited += u128::from(dequeued.deq_time - came);
                        left += 1;
                        if dequeued.item % drop_every != 0 {
                            let finish = tm.transmitted(PORT, 700).expect("the port exists");
                            prop_assert!(finish >= dequeued.deq_time);
                        }
                    }
                    prop_assert!(tm.next_departure().is_none_or(|(due, _)| due > now));
                }
                Step::Rate(rate_bps) => {
                    current.rate_bps = rate_bps;
                    tm.configure(PORT, current.clone()).expect("a good port");
                }
                Step::Capacity(capacity) => {
                    current.capacity = capacity;
                    tm.configure(PORT, current.clone()).expect("a good port");
                }
            }
            let stats = tm.stats(now, PORT).expect("the port exists");
            let queued: u64 = waiting.iter().map(|queue| queue.len() as u64).sum();
            prop_assert_eq!(stats.enqueued_packets, admitted);
            prop_assert_eq!(stats.dequeued_packets, left);
            prop_assert_eq!(u64::from(stats.depth_packets), queued);
            prop_assert_eq!(stats.enqueued_packets, stats.dequeued_packets + u64::from(stats.depth_packets));
            prop_assert_eq!(stats.enqueued_bytes, stats.dequeued_bytes + stats.depth_bytes);
            prop_assert_eq!((stats.tail_drops, stats.priority_drops), (tail, range));
            // [RFC 9332 sec 2.5.2.2], per queue: the sums of all queues are the port's.
            let queues: Vec<_> = (0..4).map(|priority| tm.take_queue_stats(PORT, priority).expect("one of several")).collect();
            intervals += queues.iter().map(|queue| queue.waits.packets).sum::<u64>();
            prop_assert_eq!(intervals, left, "each packet's wait is of one interval");
            for (queue, modelled) in queues.iter().zip(&waiting) {
                prop_assert_eq!(queue.depth_packets as usize, modelled.len());
                prop_assert_eq!(queue.arrived_packets, queue.tail_drops + queue.dequeued_packets + u64::from(queue.depth_packets));
            }
            let total = |of: fn(&QueueStats) -> u64| queues.iter().map(of).sum::<u64>();
            prop_assert_eq!(total(|queue| queue.tail_drops), stats.tail_drops);
            prop_assert_eq!(total(|queue| queue.dequeued_packets), stats.dequeued_packets);
            prop_assert_eq!(total(|queue| queue.transmitted_packets), stats.transmitted_packets);
            prop_assert_eq!(total(|queue| queue.transmitted_bytes), stats.transmitted_bytes);
            let pending: u128 = waiting.iter().flatten().map(|(_, came)| u128::from(now - came)).sum();
            prop_assert_eq!(stats.queue_integral_packet_ns, waited + pending);
        }
    }
}

/// Bytes of the longest frame.
const MTU: i64 = 1514;

/// Enqueues `(queue, bytes)` at 0 and serves them, the packets of one priority in the order given, until one side has none left. Returns what was sent:
/// egress drops each packet whose number in the order of service is a multiple of `drop_every`.
fn contend(weight: NonZeroU32, packets: &[(usize, u32)], drop_every: usize) -> Vec<(usize, u32)> {
    let mut tm = manager(PortConfig { scheduler: Scheduler::Weighted(weight), ..config(Some(10_000_000), Capacity::Unlimited, 4) });
    for (number, &(queue, bytes)) in packets.iter().enumerate() {
        tm.enqueue(0, PORT, queue, bytes, number).expect("room");
    }
    let (mut sent, mut served) = (Vec::new(), 0);
    while tm.depth(PORT, 0) > 0 && (1..4).any(|queue| tm.depth(PORT, queue) > 0) {
        let (due, _) = tm.next_departure().expect("packets wait");
        let packet = tm.dequeue(due, PORT).expect("due");
        served += 1;
        if served % drop_every != 0 {
            let (queue, bytes) = packets[packet.item];
            assert_eq!(queue, packet.priority);
            tm.transmitted(PORT, bytes);
            sent.push((queue, bytes));
        }
    }
    sent
}

proptest! {
    /// [RFC 9332 sec 2.5.2.1]: the weight is w:1, and bounds how long a Classic packet is delayed. While both sides wait, the bytes of the others are w times
    /// those of queue 0, but for one full packet of each, over any time; what egress drops is no one's.
    #[test]
    fn a_weight_bounds_the_shares(
        weight in weight(),
        packets in prop::collection::vec((0usize..4, 60u32..=MTU as u32), 2..400),
        drop_every in prop_oneof![2usize..6, Just(usize::MAX)],
    ) {
        let w = i64::from(weight.get());
        let (mut ahead, mut least, mut most) = (0, 0, 0);
        for (queue, bytes) in contend(weight, &packets, drop_every) {
            ahead += i64::from(bytes) * if queue == 0 { -w } else { 1 };
            (least, most) = (ahead.min(least), ahead.max(most));
        }
        prop_assert!(most - least <= (w + 1) * MTU, "{} to {} bytes", least, most);
    }
}

/// [RFC 9332 sec 4.2.2]: "if the Classic weight is 1/16, the maximum that a Classic packet at the head of the queue can be delayed by L traffic is the
/// serialization delay of 15 MTU-sized packets."
#[test]
fn a_classic_weight_of_a_sixteenth_lets_fifteen_full_packets_pass() {
    let packets: Vec<(usize, u32)> = (0..64).flat_map(|_| [(0, MTU as u32), (1, MTU as u32)]).collect();
    let order: Vec<usize> = contend(NonZeroU32::new(15).expect("positive"), &packets, usize::MAX).iter().map(|sent| sent.0).collect();
    let expected: Vec<usize> = (0..64 + 64 / 15).map(|number| usize::from(number % 16 != 15)).collect();
    assert_eq!(order, expected);
}

/// [RFC 9332 sec A.1]: the credit "is only changed if there are packets in both queues", and "is reset in favour of the L queue when the link is idle".
#[test]
fn credit_changes_under_contention_alone_and_is_reset_by_an_idle_link() {
    // 1000 bytes last 1 ms. A weight of 1: the first of L, then each in turn.
    let scheduler = Scheduler::Weighted(NonZeroU32::MIN);
    let mut tm = manager(PortConfig { scheduler, ..config(Some(8_000_000), Capacity::Unlimited, 2) });
    let serve = |tm: &mut TrafficManager<usize>| {
        let (due, _) = tm.next_departure().expect("a packet waits");
        let priority = tm.dequeue(due, PORT).expect("due").priority;
        tm.transmitted(PORT, 1000);
        priority
    };
    let come = |tm: &mut TrafficManager<usize>, at: Nanos, priorities: &[usize]| {
        priorities.iter().for_each(|&priority| _ = tm.enqueue(at, PORT, priority, 1000, 0).expect("room"));
    };
    // L alone, however much, is charged nothing: it is first again when C comes.
    come(&mut tm, 0, &[1, 1, 1]);
    assert_eq!([serve(&mut tm), serve(&mut tm)], [1, 1]);
    come(&mut tm, 1_000_000, &[0, 0, 0]);
    assert_eq!([serve(&mut tm), serve(&mut tm)], [1, 0]);
    // L was charged its packet beside C: with the link busy all the time, the next choice is C's.
    come(&mut tm, 3_500_000, &[1]);
    assert_eq!([serve(&mut tm), serve(&mut tm), serve(&mut tm)], [0, 1, 0]);
    // The next choice would be C's again, but the link was idle from 7 ms on.
    come(&mut tm, 20_000_000, &[0, 1]);
    assert_eq!([serve(&mut tm), serve(&mut tm)], [1, 0]);
}

proptest! {
    /// The short cut is one: with and without it, the same packets go at the same instants and the same is counted.
    #[test]
    fn passing_equals_enqueueing_and_dequeueing(
        arrivals in prop::collection::vec((0u64..3_000_000, 0usize..4, 0u32..1600), 1..60),
        rate in prop::option::of(1_000_000u64..20_000_000),
        capacity in prop_oneof![(0u32..4).prop_map(Capacity::Packets), (0u64..4000).prop_map(Capacity::Bytes)],
        scheduler in scheduler(),
    ) {
        let config = PortConfig { scheduler, ..config(rate, capacity, 3) };
        let (mut with, mut without) = (manager(config.clone()), manager(config));
        let mut now = 0;
        let mut sent = [Vec::new(), Vec::new()];
        for (packet, &(gap, priority, bytes)) in arrivals.iter().enumerate() {
            now += gap;
            for (tm, sent) in [&mut with, &mut without].into_iter().zip(&mut sent) {
                while let Some(dequeued) = tm.dequeue(now, PORT) {
                    sent.push((dequeued.item, dequeued.deq_time, tm.transmitted(PORT, bytes)));
                }
            }
            if with.pass(now, PORT, priority, bytes) {
                sent[0].push((packet, now, with.transmitted(PORT, bytes)));
            } else {
                let _ = with.enqueue(now, PORT, priority, bytes, packet);
            }
            let _ = without.enqueue(now, PORT, priority, bytes, packet);
            while let Some(dequeued) = without.dequeue(now, PORT) {
                sent[1].push((dequeued.item, dequeued.deq_time, without.transmitted(PORT, bytes)));
            }
            prop_assert_eq!(&sent[0], &sent[1]);
            prop_assert_eq!(with.stats(now, PORT), without.stats(now, PORT));
            for priority in 0..3 {
                prop_assert_eq!(with.take_queue_stats(PORT, priority), without.take_queue_stats(PORT, priority));
            }
            prop_assert_eq!(with.next_departure(), without.next_departure());
        }
    }
}

#[test]
fn the_highest_priority_present_at_the_free_instant_goes_first() {
    let mut tm = manager(config(Some(8_000_000), Capacity::Packets(64), 3));
    // 1000 bytes last 1 ms. 0 is in service until 1 ms; 2 comes after the link got free, so 1 has gone by then.
    tm.enqueue(0, PORT, 0, 1000, 0).expect("room");
    assert_eq!(tm.dequeue(0, PORT).map(|dequeued| dequeued.item), Some(0));
    assert_eq!(tm.transmitted(PORT, 1000), Some(1_000_000));
    tm.enqueue(10, PORT, 0, 1000, 1).expect("room");
    tm.enqueue(20, PORT, 1, 1000, 2).expect("room");
    tm.enqueue(1_500_000, PORT, 2, 1000, 3).expect("room");
    let mut order = Vec::new();
    while let Some(dequeued) = tm.dequeue(1_999_999, PORT) {
        order.push(dequeued.item);
        tm.transmitted(PORT, 1000);
    }
    assert_eq!(order, [2]);
    while let Some(dequeued) = tm.dequeue(9_000_000, PORT) {
        order.push(dequeued.item);
        tm.transmitted(PORT, 1000);
    }
    assert_eq!(order, [2, 3, 1]);
}

#[test]
fn a_drop_in_egress_uses_no_link_time() {
    let mut tm = manager(config(Some(8_000), Capacity::Packets(64), 1));
    for packet in 0..3 {
        tm.enqueue(5, PORT, 0, 1000, packet).expect("room");
    }
    assert_eq!(tm.dequeue(5, PORT).map(|dequeued| dequeued.item), Some(0));
    // dropped: `transmitted` is not called
    assert_eq!(tm.dequeue(5, PORT).map(|dequeued| dequeued.item), Some(1));
    assert_eq!(tm.transmitted(PORT, 1000), Some(1_000_000_005));
    assert_eq!(tm.dequeue(1_000_000_004, PORT), None);
    assert_eq!(tm.dequeue(1_000_000_005, PORT).map(|dequeued| dequeued.deq_time), Some(1_000_000_005));
}

#[test]
fn fewer_priorities_keep_what_waits() {
    let mut tm = manager(config(Some(8_000), Capacity::Packets(64), 3));
    for (instant, priority) in [(1, 2), (2, 0), (3, 1), (4, 2)] {
        tm.enqueue(instant, PORT, priority, 100, instant as usize).expect("room");
    }
    tm.configure(PORT, config(Some(8_000), Capacity::Packets(64), 2)).expect("a good port");
    let mut order = Vec::new();
    while let Some((due, port)) = tm.next_departure() {
        order.push(tm.dequeue(due, port).expect("due").item);
        tm.transmitted(port, 100);
    }
    assert_eq!(order, [1, 3, 4, 2]);
}

#[test]
fn removal_and_clearing_hand_back_what_waited() {
    let mut tm = manager(config(Some(8_000), Capacity::Packets(64), 2));
    for (packet, priority) in [(0, 0), (1, 1), (2, 0)] {
        tm.enqueue(0, PORT, priority, 100, packet).expect("room");
    }
    assert_eq!(tm.clear(7, PORT), [1, 0, 2]);
    assert_eq!(tm.next_departure(), None);
    let stats = tm.stats(7, PORT).expect("the port exists");
    assert_eq!((stats.cleared, stats.depth_packets, stats.queue_integral_packet_ns), (3, 0, 21));
    tm.enqueue(9, PORT, 0, 100, 3).expect("room");
    assert_eq!(tm.remove(9, PORT), [3]);
    assert_eq!((tm.next_departure(), tm.stats(9, PORT)), (None, None));
    assert!(tm.enqueue(9, PORT, 0, 100, 4).is_err());
}

#[test]
fn bad_ports_are_refused_with_the_way_out() {
    let mut tm: TrafficManager<()> = TrafficManager::new();
    let refuse = |tm: &mut TrafficManager<()>, port, config| tm.configure(port, config).expect_err("refused").to_string();
    assert_eq!(refuse(&mut tm, 70_000, PortConfig::default()), "port 70000 is out of range: use 0 to 65535");
    assert_eq!(
        refuse(&mut tm, 3, config(Some(0), Capacity::Unlimited, 1)),
        "port 3: a rate of 0 bit/s never sends: give a positive rate, or none for an unlimited link"
    );
    assert_eq!(refuse(&mut tm, 3, config(None, Capacity::Unlimited, 0)), "port 3: 0 priority queues: use 1 to 32");
    assert_eq!(tm.ports().count(), 0);
}

/// Mahimahi's link, as its authors describe it: at each opportunity the packets that wait are sent, in part if need be, until its bytes are
/// used. `arrivals` in milliseconds with sizes; the result is when each left.
fn mahimahi(schedule: &[u64], arrivals: &[(u64, u32)]) -> Vec<u64> {
    let (mut waiting, mut left, mut next, mut base) = (std::collections::VecDeque::new(), Vec::new(), 0, 0);
    let mut arrivals = arrivals.iter().copied().peekable();
    while arrivals.peek().is_some() || !waiting.is_empty() {
        let now = base + schedule[next];
        // What comes at the instant of an opportunity comes after it.
        while let Some((_, bytes)) = arrivals.next_if(|(at, _)| *at < now) {
            waiting.push_back(bytes);
        }
        let mut room = 1500;
        while let Some(bytes) = waiting.front_mut().filter(|_| room > 0) {
            let sent = room.min(*bytes);
            (room, *bytes) = (room - sent, *bytes - sent);
            if *bytes == 0 {
                waiting.pop_front();
                left.push(now);
            }
        }
        next += 1;
        if next == schedule.len() {
            (next, base) = (0, now);
        }
    }
    left
}

proptest! {
    #[test]
    fn a_trace_is_followed_as_mahimahi_does(
        steps in prop::collection::vec(0u64..5, 1..12), last in 1u64..4,
        gaps in prop::collection::vec((0u64..6, 40u32..=1500), 1..60),
    ) {
        const MS: u64 = 1_000_000;
        let mut sum = 0;
        let schedule: Vec<u64> = steps.iter().chain([&last]).map(|step| { sum += step; sum }).collect();
        let mut now = 0;
        let arrivals: Vec<(u64, u32)> = gaps.iter().map(|(gap, bytes)| { now += gap; (now, *bytes) }).collect();

        let mut tm = manager(config(Some(1), Capacity::Unlimited, 1));
        let trace = Trace::opportunities(schedule.iter().map(|ms| ms * MS).collect(), 1500).expect("a trace");
        prop_assert!(tm.follow(0, 1, trace.into(), 0));
        let mut left = Vec::new();
        let mut serve = |tm: &mut TrafficManager<usize>, until: u64| {
            while let Some((instant, port)) = tm.next_departure().filter(|(instant, _)| *instant <= until) {
                let Some(packet) = tm.dequeue(instant, port) else { break };
                left.extend(tm.transmitted(port, packet.item as u32).map(|finish| finish / MS));
            }
        };
        for (at, bytes) in &arrivals {
            serve(&mut tm, at * MS);
            prop_assert!(!tm.pass(at * MS, 1, 0, *bytes), "nothing leaves between opportunities");
            prop_assert!(tm.enqueue(at * MS, 1, 0, *bytes, *bytes as usize).is_ok());
        }
        serve(&mut tm, u64::MAX);
        prop_assert_eq!(left, mahimahi(&schedule, &arrivals));
    }
}
