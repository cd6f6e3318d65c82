//! Step marking against its definition ([RFC 8257 sec 3.1]; a ramp of width 0 of [RFC 9332 sec A.1 step c]) on a 10 Mb/s link: the same packets are marked.

use std::collections::VecDeque;
use std::sync::Arc;

use fairlane_device::pipeline::{KeyMatch, Program, Value};
use fairlane_device::{Capacity, DropCause, Nanos, PortId};

use crate::{bursts, capable, compiled, device, insert, ipv4_frame, poisson, Random, OUT, SERVICE, TOS};

const NEVER: u64 = u32::MAX as u64;

/// Which packets are marked, and which are not because they are of no ECN-capable transport: every seventh.
fn reference(arrivals: &[Nanos], threshold_us: u64, packets: u64) -> Vec<bool> {
    let mut waiting: VecDeque<Nanos> = VecDeque::new();
    let mut link_free = 0;
    arrivals
        .iter()
        .enumerate()
        .map(|(number, &now)| {
            // starts of packets that have not begun to leave
            while waiting.front().is_some_and(|&start| start <= now) {
                waiting.pop_front();
            }
            let start = link_free.max(now);
            let marked = (start - now) / 1000 > threshold_us || waiting.len() as u64 >= packets;
            link_free = start + SERVICE;
            if start > now {
                waiting.push_back(start);
            }
            marked && !number.is_multiple_of(7)
        })
        .collect()
}

fn in_p4(program: &Arc<Program>, arrivals: &[Nanos], threshold_us: u64, packets: u64) -> Vec<bool> {
    let mut device = device(program, Capacity::Unlimited, 0);
    let switch = device.switch_mut().unwrap();
    let out = vec![KeyMatch::Exact(Value::from(u64::from(OUT)))];
    insert(switch, "AlsEgress.step.step_parameters", out, "AlsEgress.step.set_step", &[threshold_us, packets]);
    let any = vec![KeyMatch::Lpm { value: Value::from(0x0a00_0002u64), prefix_len: 32 }];
    insert(switch, "AlsIngress.forward.ipv4_lpm", any, "AlsIngress.forward.send", &[u64::from(OUT), 1, 2]);
    let (plain, capable) = (ipv4_frame(0x0a00_0002), capable(ipv4_frame(0x0a00_0002), 2));
    let mut sent: Vec<(PortId, Nanos, Vec<u8>)> = Vec::new();
    for (number, &now) in arrivals.iter().enumerate() {
        let mut frame = if number.is_multiple_of(7) { plain.clone() } else { capable.clone() };
        frame[60..68].copy_from_slice(&(number as u64).to_be_bytes());
        device.receive(now, 1, &frame);
        device.poll(now, &mut sent);
    }
    device.poll(Nanos::MAX, &mut sent);
    assert_eq!(device.drops().get(DropCause::Tail), 0);
    assert_eq!(sent.len(), arrivals.len(), "nothing is dropped");
    let mut marked = vec![false; arrivals.len()];
    for (_, _, frame) in &sent {
        let number = u64::from_be_bytes(frame[60..68].try_into().unwrap()) as usize;
        let expected = if number.is_multiple_of(7) { [0, 0] } else { [2, 3] };
        assert!(expected.contains(&(frame[TOS] & 3)), "packet {number}: {}", frame[TOS]);
        marked[number] = frame[TOS] & 3 == 3;
    }
    marked
}

#[test]
fn step_in_p4_marks_what_its_definition_marks() {
    let program = compiled(&["step"]);
    let mut random = Random(9332);
    for (name, arrivals) in [("light", poisson(0.8, &mut random)), ("heavy", poisson(0.98, &mut random)), ("bursts", bursts(&mut random))] {
        // The switch's clock counts microseconds.
        let arrivals: Vec<Nanos> = arrivals.iter().map(|at| at / 1000 * 1000).collect();
        for (threshold_us, packets) in [(1000, NEVER), (NEVER, 8), (8_000, 12)] {
            let (known, found) = (reference(&arrivals, threshold_us, packets), in_p4(&program, &arrivals, threshold_us, packets));
            let count = |marks: &[bool]| marks.iter().filter(|&&m| m).count();
            let apart = known.iter().zip(&found).filter(|(a, b)| a != b).count();
            println!(
                "{name:8} {threshold_us:10} us {packets:10} packets: {:6} marks by definition, {:6} in P4, {apart} apart",
                count(&known),
                count(&found)
            );
            assert_eq!(apart, 0);
            assert!(count(&known) > 100, "a threshold that is seldom met shows nothing");
        }
    }
}
