//! CoDel against the pseudocode of [RFC 8289 sec 5] in real numbers. Both sides serve a 10 Mb/s link. Compared: which packets are
//! dropped (their number within 1%), and how long the others wait (the mean within 1%).

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use fairlane_device::pipeline::{KeyMatch, Program, Value};
use fairlane_device::{Capacity, DropCause, Nanos, PortId};

use crate::{compiled, device, fixed, insert, ipv4_frame, loads, Random, OUT, SERVICE};

const TARGET_S: f64 = 0.005;
const INTERVAL_S: f64 = 0.1;

/// The RFC's `codel_queue_t`, times in seconds, the backlog in packets.
#[derive(Default)]
struct Real {
    waiting: VecDeque<(usize, f64)>,
    first_above_time: f64,
    drop_next: f64,
    count: u32,
    last_count: u32,
    dropping: bool,
    dropped: HashSet<usize>,
}

impl Real {
    /// The packet, with its time in the queue, and whether it may be dropped.
    fn dodeque(&mut self, now: f64) -> (Option<(usize, f64)>, bool) {
        let Some((packet, arrival)) = self.waiting.pop_front() else {
            self.first_above_time = 0.0;
            return (None, false);
        };
        let sojourn = now - arrival;
        let mut ok = false;
        if sojourn < TARGET_S || self.waiting.len() <= 1 {
            self.first_above_time = 0.0;
        } else if self.first_above_time == 0.0 {
            self.first_above_time = now + INTERVAL_S;
        } else if now >= self.first_above_time {
            ok = true;
        }
        (Some((packet, sojourn)), ok)
    }

    fn control_law(&self, t: f64) -> f64 {
        t + INTERVAL_S / f64::from(self.count).sqrt()
    }

    fn drop(&mut self, packet: Option<(usize, f64)>) {
        self.dropped.extend(packet.map(|(number, _)| number));
    }

    fn deque(&mut self, now: f64) -> Option<(usize, f64)> {
        let (mut packet, mut ok) = self.dodeque(now);
        if self.dropping {
            if !ok {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                self.drop(packet);
                self.count += 1;
                (packet, ok) = self.dodeque(now);
                if ok {
                    self.drop_next = self.control_law(self.drop_next);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok {
            self.drop(packet);
            packet = self.dodeque(now).0;
            self.dropping = true;
            let delta = self.count - self.last_count;
            self.count = 1;
            if delta > 1 && now - self.drop_next < 16.0 * INTERVAL_S {
                self.count = delta;
            }
            self.drop_next = self.control_law(now);
            self.last_count = self.count;
        }
        packet
    }
}

struct Outcome {
    dropped: HashSet<usize>,
    mean_wait_s: f64,
}

fn reference(arrivals: &[Nanos]) -> Outcome {
    let seconds = |at: Nanos| at as f64 / 1e9;
    let mut real = Real::default();
    let (mut link_free, mut waited_s) = (0, 0.0);
    let mut serve = |real: &mut Real, until: Nanos| {
        while let Some(&(_, arrival)) = real.waiting.front() {
            let start = link_free.max((arrival * 1e9).round() as Nanos);
            if start > until {
                break;
            }
            if let Some((_, sojourn)) = real.deque(seconds(start)) {
                waited_s += sojourn;
                link_free = start + SERVICE;
            }
        }
    };
    for (number, &now) in arrivals.iter().enumerate() {
        serve(&mut real, now - 1);
        real.waiting.push_back((number, seconds(now)));
    }
    serve(&mut real, Nanos::MAX);
    let left = (arrivals.len() - real.dropped.len()) as f64;
    Outcome { dropped: real.dropped, mean_wait_s: waited_s / left }
}

fn in_p4(program: &Arc<Program>, arrivals: &[Nanos]) -> Outcome {
    let mut device = device(program, Capacity::Unlimited, 0);
    let switch = device.switch_mut().unwrap();
    let out = || vec![KeyMatch::Exact(Value::from(u64::from(OUT)))];
    let parameters = [fixed(TARGET_S * 1e6), fixed(INTERVAL_S * 1e6), 0];
    insert(switch, "AlsEgress.codel.codel_parameters", out(), "AlsEgress.codel.set_codel", &parameters);
    let any = vec![KeyMatch::Lpm { value: Value::from(0x0a00_0002u64), prefix_len: 32 }];
    insert(switch, "AlsIngress.forward.ipv4_lpm", any, "AlsIngress.forward.send", &[u64::from(OUT), 1, 2]);

    let mut frame = ipv4_frame(0x0a00_0002);
    let mut sent: Vec<(PortId, Nanos, Vec<u8>)> = Vec::new();
    for (number, &now) in arrivals.iter().enumerate() {
        // Behind the headers, where no program looks.
        frame[60..68].copy_from_slice(&(number as u64).to_be_bytes());
        device.receive(now, 1, &frame);
        device.poll(now, &mut sent);
    }
    device.poll(Nanos::MAX, &mut sent);
    assert_eq!(device.drops().get(DropCause::Tail), 0, "the buffer is never full: only CoDel drops");
    let mut dropped: HashSet<usize> = (0..arrivals.len()).collect();
    let mut waited_s = 0.0;
    for (_, at, frame) in &sent {
        let number = u64::from_be_bytes(frame[60..68].try_into().unwrap()) as usize;
        assert!(dropped.remove(&number), "packet {number} left twice");
        // A frame has left when its last bit has.
        waited_s += (at - SERVICE - arrivals[number]) as f64 / 1e9;
    }
    Outcome { mean_wait_s: waited_s / sent.len() as f64, dropped }
}

#[test]
fn codel_in_p4_follows_the_rfc() {
    let program = compiled(&["codel"]);
    let mut random = Random(8289);
    let cases = loads(&mut random);
    println!("{:14} {:>10} {:>10} {:>10} {:>12} {:>12}", "load", "drops real", "drops P4", "both", "wait real ms", "wait P4 ms");
    let mut failures = Vec::new();
    for (name, arrivals) in &cases {
        // The switch's clock counts microseconds.
        let arrivals: Vec<Nanos> = arrivals.iter().map(|at| at / 1000 * 1000).collect();
        let (real, p4) = (reference(&arrivals), in_p4(&program, &arrivals));
        let both = real.dropped.intersection(&p4.dropped).count();
        let (drops, known) = (p4.dropped.len() as f64, real.dropped.len() as f64);
        println!("{name:14} {known:10} {drops:10} {both:10} {:12.4} {:12.4}", 1e3 * real.mean_wait_s, 1e3 * p4.mean_wait_s);
        if (drops - known).abs() > (0.01 * known).max(2.0) {
            failures.push(format!("{name}: {drops} drops, the RFC's pseudocode {known}"));
        }
        if (p4.mean_wait_s - real.mean_wait_s).abs() > (0.01 * real.mean_wait_s).max(10e-6) {
            failures.push(format!("{name}: mean wait {} s, the RFC's pseudocode {} s", p4.mean_wait_s, real.mean_wait_s));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}
