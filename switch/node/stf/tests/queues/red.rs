//! RED in `p4src/als.p4` against the real-valued algorithm (Floyd and Jacobson 1993, figure 2) on the same recorded
//! arrivals: 100,000 packets each under light load, heavy load, overload, and bursts with idle gaps.
//!
//! Copies of multicast packets meet RED when they leave the queue; the reference for them does the same.
//!
//! Both sides serve a 10 Mb/s link; each drops by its own random numbers. Compared: the mean of the average queue over all
//! arrivals (within 1%, or a hundredth of a packet where it is near 0) and the drop rate (within 5%).

use std::collections::VecDeque;
use std::sync::Arc;

use fairlane_device::pipeline::{KeyMatch, Program, Replica, Value};
use fairlane_device::{Capacity, DropCause, Nanos, PortId};

use crate::{compiled, device, fixed, insert, ipv4_frame, loads, Random, OUT, RATE_BPS, SERVICE};

const GROUP: u32 = 0xef01_0001;

#[derive(Clone, Copy)]
struct Parameters {
    minimum: f64,
    maximum: f64,
    max_p: f64,
    weight: f64,
}

#[derive(Debug, Default)]
struct Outcome {
    mean_average: f64,
    drop_rate: f64,
}

/// One arrival in the real-valued algorithm: whether it is dropped. `idle`: services that the link has been idle for; `None` when it
/// was not.
struct Real {
    p: Parameters,
    average: f64,
    count: i64,
}

impl Real {
    fn drops(&mut self, queue: f64, idle: Option<f64>, random: &mut Random) -> bool {
        let p = self.p;
        match idle {
            Some(m) => self.average *= (1.0 - p.weight).powf(m),
            None => self.average += p.weight * (queue - self.average),
        }
        if self.average < p.minimum {
            self.count = -1;
            return false;
        }
        if self.average >= p.maximum {
            self.count = 0;
            return true;
        }
        self.count += 1;
        let pb = p.max_p * (self.average - p.minimum) / (p.maximum - p.minimum);
        let spread = self.count as f64 * pb;
        let drop = spread >= 1.0 || random.unit() < pb / (1.0 - spread);
        if drop {
            self.count = 0;
        }
        drop
    }
}

/// The real-valued algorithm and a FIFO link: the queue is what waits, a packet in service is not counted.
fn reference(arrivals: &[Nanos], p: Parameters, random: &mut Random) -> Outcome {
    let mut real = Real { p, average: 0.0, count: -1 };
    let (mut sum, mut drops) = (0.0, 0u32);
    let mut waiting: VecDeque<Nanos> = VecDeque::new();
    let mut link_free: Nanos = 0;
    for &now in arrivals {
        while waiting.front().is_some_and(|&start| start <= now) {
            waiting.pop_front();
        }
        let idle = (waiting.is_empty() && now > link_free).then(|| (now - link_free) as f64 / SERVICE as f64);
        let drop = real.drops(waiting.len() as f64, idle, random);
        sum += real.average;
        if drop {
            drops += 1;
        } else {
            let start = link_free.max(now);
            link_free = start + SERVICE;
            if start > now {
                waiting.push_back(start);
            }
        }
    }
    Outcome { mean_average: sum / arrivals.len() as f64, drop_rate: f64::from(drops) / arrivals.len() as f64 }
}

/// Copies wait first, and are judged when their turn has come, by the queue and the instant of their arrival. One that is dropped
/// takes no link time.
fn reference_of_copies(arrivals: &[Nanos], p: Parameters, random: &mut Random) -> Outcome {
    let mut real = Real { p, average: 0.0, count: -1 };
    let (mut sum, mut drops, mut link_free) = (0.0, 0u32, 0);
    let mut waiting: VecDeque<(Nanos, usize)> = VecDeque::new();
    let serve = |until: Nanos, waiting: &mut VecDeque<(Nanos, usize)>, link_free: &mut Nanos, real: &mut Real, random: &mut Random| {
        let mut dropped = 0;
        while let Some(&(arrival, queue)) = waiting.front() {
            let start = arrival.max(*link_free);
            if start > until {
                break;
            }
            waiting.pop_front();
            let idle = (queue == 0 && arrival > *link_free).then(|| (arrival - *link_free) as f64 / SERVICE as f64);
            if real.drops(queue as f64, idle, random) {
                dropped += 1;
            } else {
                *link_free = start + SERVICE;
            }
        }
        dropped
    };
    for &now in arrivals {
        drops += serve(now, &mut waiting, &mut link_free, &mut real, random);
        waiting.push_back((now, waiting.len()));
        drops += serve(now, &mut waiting, &mut link_free, &mut real, random);
        sum += real.average;
    }
    drops += serve(Nanos::MAX, &mut waiting, &mut link_free, &mut real, random);
    Outcome { mean_average: sum / arrivals.len() as f64, drop_rate: f64::from(drops) / arrivals.len() as f64 }
}

/// `copies`: the packets go to a multicast group with one member.
fn in_p4(program: &Arc<Program>, arrivals: &[Nanos], p: Parameters, seed: u64, copies: bool) -> Outcome {
    let mut device = device(program, Capacity::Packets(4096), seed);
    let switch = device.switch_mut().unwrap();
    let unit = 2f64.powi(32);
    let red = [
        fixed(p.minimum * 2f64.powi(20)),
        fixed(p.maximum * 2f64.powi(20)),
        fixed(p.max_p / (p.maximum - p.minimum) * unit),
        fixed(p.weight * unit),
        fixed(-(1.0 - p.weight).ln() / (SERVICE as f64 / 1000.0) * 2f64.powi(40)),
    ];
    let out = || vec![KeyMatch::Exact(Value::from(u64::from(OUT)))];
    if copies {
        insert(switch, "AlsEgress.replica.red_parameters", out(), "AlsEgress.replica.set_red", &red);
    } else {
        insert(switch, "AlsIngress.red.red_parameters", out(), "AlsIngress.red.set_red", &red);
    }
    let per_byte = 8e6 / RATE_BPS as f64 * 2f64.powi(20);
    insert(switch, "AlsEgress.departure.link", out(), "AlsEgress.departure.set_link", &[fixed(per_byte)]);
    let group = vec![KeyMatch::Exact(Value::from(u64::from(GROUP)))];
    insert(switch, "AlsIngress.forward.multicast", group, "AlsIngress.forward.replicate", &[1]);
    switch.multicast_insert(1, vec![Replica { port: OUT, rid: 1 }]).expect("group is accepted");
    let any = vec![KeyMatch::Lpm { value: Value::from(0x0a00_0002u64), prefix_len: 32 }];
    let send = [u64::from(OUT), 1, 2];
    insert(switch, "AlsIngress.forward.ipv4_lpm", any, "AlsIngress.forward.send", &send);

    let average = switch.program().register_by_name("red_average").expect("register red_average");
    let frame = ipv4_frame(if copies { GROUP } else { 0x0a00_0002 });
    let mut sent: Vec<(PortId, Nanos, Vec<u8>)> = Vec::new();
    let (mut sum, mut left) = (0.0, 0usize);
    for &now in arrivals {
        device.receive(now, 1, &frame);
        device.poll(now, &mut sent);
        left += sent.len();
        sent.clear();
        let stored = device.switch().unwrap().register_read(average, OUT as usize).expect("index in range");
        sum += stored.to_u64().expect("32 bits") as f64 / 2f64.powi(20);
    }
    device.poll(Nanos::MAX, &mut sent);
    left += sent.len();
    assert!(sent.iter().all(|(port, ..)| *port == OUT));
    assert_eq!(device.drops().get(DropCause::Tail), 0, "the buffer is never full: only RED drops");
    Outcome { mean_average: sum / arrivals.len() as f64, drop_rate: 1.0 - left as f64 / arrivals.len() as f64 }
}

#[test]
fn red_in_p4_follows_the_real_valued_algorithm() {
    compare(false);
}

#[test]
fn red_of_copies_in_p4_follows_the_real_valued_algorithm() {
    compare(true);
}

fn compare(copies: bool) {
    let program = compiled(&[]);
    let parameters = Parameters { minimum: 5.0, maximum: 15.0, max_p: 0.1, weight: 0.002 };
    let mut random = Random(1993);
    let cases = loads(&mut random);
    println!("{:14} {:>12} {:>12} {:>8} {:>10} {:>10} {:>8}", "load", "avg real", "avg P4", "diff", "drop real", "drop P4", "diff");
    let mut failures = Vec::new();
    for (name, arrivals) in &cases {
        let real = if copies { reference_of_copies } else { reference }(arrivals, parameters, &mut random);
        let p4 = in_p4(&program, arrivals, parameters, 7, copies);
        let average_off = (p4.mean_average - real.mean_average).abs();
        let drops_off = (p4.drop_rate - real.drop_rate).abs();
        println!(
            "{name:14} {:12.4} {:12.4} {:7.2}% {:10.5} {:10.5} {:7.2}%",
            real.mean_average,
            p4.mean_average,
            100.0 * average_off / real.mean_average,
            real.drop_rate,
            p4.drop_rate,
            if real.drop_rate > 0.0 { 100.0 * drops_off / real.drop_rate } else { 0.0 }
        );
        if average_off > (0.01 * real.mean_average).max(0.01) {
            failures.push(format!("{name}: average queue {} against {}", p4.mean_average, real.mean_average));
        }
        // Five in ten thousand is one drop in 2000 packets: below that both rates are noise.
        if drops_off > (0.05 * real.drop_rate).max(0.0005) {
            failures.push(format!("{name}: drop rate {} against {}", p4.drop_rate, real.drop_rate));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}
