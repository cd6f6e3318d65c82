//! A device with a small program: rates, delays, depths, drops by cause, events.

mod common;

use common::{depths, device, frame, frame_of, program, What};
use fairlane_device::pipeline::{CloneSession, Replica, Value};
use fairlane_device::{call, Capacity, Device, DeviceConfig, DropCause, Event, PortConfig, SharedDevice};
use proptest::prelude::*;

const MS: u64 = 1_000_000;
type Frames = Vec<(u32, u64, Vec<u8>)>;

fn ten_mbit() -> PortConfig {
    PortConfig { rate_bps: Some(10_000_000), capacity: Capacity::Packets(100), delay_ns: 5 * MS, priorities: 8, ..PortConfig::default() }
}

fn open() -> PortConfig {
    PortConfig { priorities: 8, ..PortConfig::default() }
}

/// Runs the device at each instant that it names, up to `end`.
fn run_until(device: &mut Device, end: u64) -> Frames {
    let mut frames = Frames::new();
    while let Some(instant) = device.next_event().filter(|&instant| instant <= end) {
        device.poll(instant, &mut frames);
    }
    frames
}

#[test]
fn an_unlimited_port_forwards_at_once() {
    let mut device = device(&[(1, open()), (2, open())]);
    let (mut frames, sent) = (Frames::new(), frame(2, What::Forward, 60));
    device.receive(7 * MS, 1, &sent);
    assert_eq!(device.next_event(), Some(7 * MS));
    device.poll(7 * MS, &mut frames);
    assert_eq!(frames, [(2, 7 * MS, sent)]);
    let (one, two) = (device.snapshot(7 * MS, 1).expect("port 1"), device.snapshot(7 * MS, 2).expect("port 2"));
    assert_eq!((one.rx_packets, one.rx_bytes, one.tx_packets), (1, 60, 0));
    assert_eq!((two.rx_packets, two.tx_packets, two.tx_bytes, two.busy_ns), (0, 1, 60, 0));
    assert_eq!(device.drops().total(), 0);
}

#[test]
fn frames_leave_after_serialisation_and_delay_however_late_the_wake_up() {
    for lateness in [0, 300_000, 40 * MS] {
        let mut device = device(&[(1, open()), (2, ten_mbit())]);
        for _ in 0..50 {
            device.receive(MS, 1, &frame(2, What::Forward, 1250)); // 1 ms each at 10 Mb/s
        }
        let mut frames = Frames::new();
        let mut now = 0;
        while let Some(instant) = device.next_event() {
            now = now.max(instant + lateness);
            device.poll(now, &mut frames);
        }
        let departures: Vec<u64> = frames.iter().map(|(_, departure, _)| *departure).collect();
        let expected: Vec<u64> = (1..=50).map(|packet| MS + packet * MS + 5 * MS).collect();
        assert_eq!(departures, expected, "{lateness} ns late");
        assert_eq!(device.snapshot(now, 2).expect("port 2").busy_ns, 50 * MS);
    }
}

#[test]
fn egress_sees_the_depth_behind_it_and_its_wait() {
    let mut device = device(&[(1, open()), (2, ten_mbit())]);
    for _ in 0..4 {
        device.receive(0, 1, &frame(2, What::Forward, 1250));
    }
    let seen: Vec<[u32; 3]> = run_until(&mut device, 20 * MS).iter().map(|(_, _, frame)| depths(frame)).collect();
    // the first goes into service at once: it does not count as waiting
    assert_eq!(seen, [[0, 0, 0], [0, 2, 1000], [1, 1, 2000], [2, 0, 3000]]);
    let queue = device.snapshot(20 * MS, 2).expect("port 2");
    assert_eq!(queue.queue_integral_packet_ns, u128::from((1 + 2 + 3) * MS));
    assert_eq!((queue.max_depth_packets, queue.depth_packets), (3, 0));
}

#[test]
fn a_full_queue_drops_the_tail() {
    let mut device = device(&[(1, open()), (2, PortConfig { capacity: Capacity::Packets(10), ..ten_mbit() })]);
    for _ in 0..30 {
        device.receive(0, 1, &frame(2, What::Forward, 1250));
    }
    assert_eq!(run_until(&mut device, 100 * MS).len(), 11); // one in service, ten waiting
    assert_eq!(device.snapshot(100 * MS, 2).expect("port 2").drops.get(DropCause::Tail), 19);
}

#[test]
fn a_late_receiver_does_not_cause_tail_drops() {
    let mut device = device(&[(1, open()), (2, PortConfig { capacity: Capacity::Packets(1), ..ten_mbit() })]);
    device.receive(0, 1, &frame(2, What::Forward, 1250));
    device.receive(0, 1, &frame(2, What::Forward, 1250));
    // by 1 ms the second is in service, and the queue has room, though nobody has polled
    device.receive(MS + 1, 1, &frame(2, What::Forward, 1250));
    assert_eq!(device.drops().total(), 0);
}

#[test]
fn a_drop_in_egress_takes_no_link_time() {
    let mut device = device(&[(1, open()), (2, ten_mbit())]);
    for what in [What::Forward, What::DropInEgress, What::DropInEgress, What::Forward] {
        device.receive(0, 1, &frame(2, what, 1250));
    }
    let departures: Vec<u64> = run_until(&mut device, 50 * MS).iter().map(|(_, departure, _)| *departure).collect();
    assert_eq!(departures, [6 * MS, 7 * MS]);
    let port = device.snapshot(50 * MS, 2).expect("port 2");
    assert_eq!((port.drops.get(DropCause::Egress), port.busy_ns), (2, 2 * MS));
}

#[test]
fn drops_are_counted_by_cause() {
    let mut device = device(&[(1, open()), (2, ten_mbit())]);
    device.receive(0, 1, &frame(2, What::DropInIngress, 100));
    device.receive(0, 1, &frame(9, What::Forward, 100));
    device.receive(0, 1, &frame_of(2, 0, What::Forward, 77, 100));
    assert_eq!(run_until(&mut device, MS), []);
    let drops = device.drops();
    let seen = [DropCause::Ingress, DropCause::NoPort, DropCause::MulticastEmpty].map(|cause| drops.get(cause));
    assert_eq!((seen, drops.total()), ([1, 1, 1], 3));
    assert_eq!(device.snapshot(MS, 1).expect("port 1").drops.get(DropCause::Ingress), 1);
}

#[test]
fn without_a_program_frames_are_dropped() {
    let mut device = Device::new(DeviceConfig::default());
    device.set_port(1, open()).expect("a good port");
    device.receive(0, 1, &[0; 60]);
    assert_eq!(device.next_event(), None);
    assert_eq!(device.snapshot(0, 1).expect("port 1").drops.get(DropCause::NoProgram), 1);
}

#[test]
fn the_highest_priority_goes_first() {
    let mut device = device(&[(1, open()), (2, ten_mbit())]);
    for priority in [0, 1, 0, 5, 1] {
        device.receive(0, 1, &frame_of(2, priority, What::Forward, 0, 1250));
    }
    let order: Vec<u8> = run_until(&mut device, 50 * MS).iter().map(|(_, _, frame)| frame[2]).collect();
    assert_eq!(order, [0, 5, 1, 1, 0]);
}

#[test]
fn multicast_copies_queue_at_their_ports() {
    let mut device = device(&[(1, open()), (2, ten_mbit()), (3, open())]);
    let replicas = [2, 3].map(|port| Replica { port, rid: 1 }).to_vec();
    device.switch_mut().expect("a program").multicast_insert(4, replicas).expect("a new group");
    device.receive(0, 1, &frame_of(0, 0, What::Forward, 4, 1250));
    let seen: Vec<(u32, u64)> = run_until(&mut device, 50 * MS).iter().map(|(port, at, _)| (*port, *at)).collect();
    assert_eq!(seen, [(3, 0), (2, 6 * MS)]);
}

#[test]
fn clones_of_clones_come_to_an_end() {
    let mut device = device(&[(1, open()), (2, open())]);
    let session = CloneSession { replicas: vec![Replica { port: 2, rid: 0 }], ..CloneSession::default() };
    device.switch_mut().expect("a program").clone_insert(5, session).expect("a new session");
    device.receive(0, 1, &frame(2, What::CloneInEgress, 60));
    let copies = run_until(&mut device, MS).len() as u64;
    assert!(copies > 1);
    let drops = device.drops();
    assert_eq!((drops.get(DropCause::Loop), drops.total()), (1, 1), "{copies} copies");
}

#[test]
fn the_control_plane_hears_of_digests_and_packets_for_the_cpu() {
    let mut device = device(&[(1, open()), (2, open())]);
    let sent = frame(255, What::Forward, 60);
    device.receive(3 * MS, 1, &sent);
    device.receive(4 * MS, 1, &frame(2, What::Digest, 60));
    let forwarded = run_until(&mut device, 4 * MS);
    assert_eq!(forwarded.len(), 1);
    let events = device.take_events();
    assert_eq!(events[0], Event::PacketIn { timestamp: 3 * MS, frame: sent });
    match &events[1..] {
        [Event::Digest(digest)] => assert_eq!(digest.members, [Value::from(2u64)]),
        other => panic!("{other:?}"),
    }
    assert_eq!(device.take_events(), []);
}

#[test]
fn a_new_program_drops_what_waits_but_not_what_is_on_the_link() {
    let mut device = device(&[(1, open()), (2, ten_mbit())]);
    for _ in 0..5 {
        device.receive(0, 1, &frame(2, What::Forward, 1250));
    }
    device.load(MS / 2, program()).expect("memory");
    assert_eq!(run_until(&mut device, 50 * MS).len(), 1);
    assert_eq!(device.drops().get(DropCause::Reconfigured), 4);
    device.receive(60 * MS, 1, &frame(2, What::Forward, 1250));
    assert_eq!(run_until(&mut device, 90 * MS).len(), 1);
}

#[test]
fn ports_change_while_they_run() {
    let mut device = device(&[(1, open()), (2, ten_mbit())]);
    for _ in 0..3 {
        device.receive(0, 1, &frame(2, What::Forward, 1250));
    }
    let faster = PortConfig { rate_bps: Some(100_000_000), delay_ns: 0, ..ten_mbit() };
    device.set_port(2, faster).expect("a good port");
    let departures: Vec<u64> = run_until(&mut device, 50 * MS).iter().map(|(_, departure, _)| *departure).collect();
    // the first ends its service at the old rate and flies at the old delay; a link does not reorder
    assert_eq!(departures, [6 * MS, 6 * MS, 6 * MS]);
    device.receive(50 * MS, 1, &frame(2, What::Forward, 1250));
    device.receive(50 * MS, 1, &frame(2, What::Forward, 1250));
    device.remove_port(50 * MS, 2);
    assert_eq!(device.drops().get(DropCause::Reconfigured), 1);
    assert_eq!(device.snapshot(50 * MS, 2), None);
}

#[test]
fn a_failed_link_loses_what_waits_and_what_is_on_the_way() {
    let mut device = device(&[(1, open()), (2, ten_mbit()), (3, ten_mbit())]);
    for _ in 0..10 {
        device.receive(0, 1, &frame(2, What::Forward, 1250));
        device.receive(0, 1, &frame(3, What::Forward, 1250));
    }
    // 1 ms each, and 5 ms on the link: at 7.5 ms two have arrived, five are on the way, one is being sent, and two wait.
    assert_eq!(run_until(&mut device, 7_500_000).len(), 4);
    assert_eq!(device.set_link(7_500_000, 2, false), 8);
    assert_eq!(device.set_link(7_500_000, 2, false), 0);
    device.receive(8 * MS, 1, &frame(2, What::Forward, 1250));
    let others = run_until(&mut device, 50 * MS);
    assert_eq!(others.iter().filter(|(port, ..)| *port == 3).count(), 8);
    assert_eq!((others.len(), device.drops().get(DropCause::LinkDown), device.drops().total()), (8, 9, 9));
    assert_eq!(device.set_link(60 * MS, 2, true), 0);
    device.receive(60 * MS, 1, &frame(2, What::Forward, 1250));
    assert_eq!(run_until(&mut device, 90 * MS).len(), 1);
}

#[test]
fn other_threads_reach_a_shared_device() {
    let shared = SharedDevice::new(device(&[(1, open())]), || 42);
    let ports = call(&shared, |device, now| (now, device.ports().collect::<Vec<_>>()));
    assert_eq!(ports, Ok((42, vec![1, 255])));
}

proptest! {
    /// Every frame that came in has gone out, was dropped for one cause, waits, or is on its way.
    #[test]
    fn packets_are_conserved(
        arrivals in prop::collection::vec((0u64..3 * MS, 0u16..5, 0u8..8, 0usize..3, 18usize..1500), 1..80),
        capacity in 0u32..6,
    ) {
        let slow = PortConfig { capacity: Capacity::Packets(capacity), ..ten_mbit() };
        let mut device = device(&[(1, open()), (2, slow.clone()), (3, slow)]);
        let (mut now, mut frames) = (0, Frames::new());
        for (gap, port, priority, what, size) in &arrivals {
            now += gap;
            let what = [What::Forward, What::DropInIngress, What::DropInEgress][*what];
            device.receive(now, 1, &frame_of(*port, *priority, what, 0, *size));
            if gap % 2 == 0 {
                device.poll(now, &mut frames);
            }
            let ports: Vec<u32> = device.ports().collect();
            let waiting: u64 = ports.iter().filter_map(|&port| device.snapshot(now, port)).map(|s| u64::from(s.depth_packets)).sum();
            let flying: usize = ports.iter().map(|&port| device.in_flight(port)).sum();
            let received = device.snapshot(now, 1).expect("port 1").rx_packets;
            prop_assert_eq!(received, frames.len() as u64 + flying as u64 + waiting + device.drops().total());
        }
        frames.extend(run_until(&mut device, u64::MAX));
        prop_assert_eq!(arrivals.len() as u64, frames.len() as u64 + device.drops().total());
    }

    #[test]
    fn no_frame_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), port in 0u32..600) {
        let mut device = device(&[(1, open()), (2, ten_mbit())]);
        device.receive(0, port, &bytes);
        run_until(&mut device, 100 * MS);
    }
}
