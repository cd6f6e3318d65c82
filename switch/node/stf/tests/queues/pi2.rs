//! PI2 in `p4src/schemes/pi2/pi2.p4` against its formula in real numbers (De Schepper et al. 2016, and [RFC 9332 sec A]), at a 10 Mb/s link. Packets
//! are of a transport without ECN, of ECT(0) and of ECT(1) in turns.
//!
//! Twice. First with the P4 program's own instants of updates, delays and random numbers: the same packets are dropped and marked, except
//! where a random number lies between both probabilities, and these agree within a thousandth. Then with the text's timer, delay, and one random
//! number against p'^2: the numbers of drops and marks, and the mean wait.

use std::sync::Arc;

use fairlane_device::pipeline::{KeyMatch, Program, Value};
use fairlane_device::{Capacity, DropCause, Nanos, PortId};

use crate::probability::{hold, Comparison};
use crate::{capable, device, fixed, insert, ipv4_frame, Fate, Link, Random, Totals, OUT};

const TARGET_S: f64 = 0.015;
const T_UPDATE_S: f64 = 0.015;
const ALPHA: f64 = 0.15;
const BETA: f64 = 3.0;
const COUPLING: f64 = 2.0;
pub const ONE: f64 = (1u64 << 48) as f64;
/// Below this, a probability's error is compared with it instead.
const LEAST: f64 = 1e-6;

const ECT_1: u8 = 1;
const ECT_0: u8 = 2;

#[derive(Default)]
struct Real {
    /// p'
    base: f64,
    qdelay_old: f64,
}

impl Real {
    fn update(&mut self, qdelay: f64) {
        let step = ALPHA * (qdelay - TARGET_S) + BETA * (qdelay - self.qdelay_old);
        self.base = (self.base + step).clamp(0.0, 1.0);
        self.qdelay_old = qdelay;
    }
}

/// When `p4src/schemes/pi2/pi2.p4` does an update, without a timer: at a departure, one at most.
#[derive(Default)]
pub struct Instants {
    /// The delay that the last departure showed.
    pub delay: f64,
    next: Nanos,
    idle_until: Nanos,
}

impl Instants {
    /// Calls `update` with the delay if an update is due; it returns whether p' and the delay of the update before are 0.
    pub fn departure(&mut self, now: Nanos, delay: f64, period: Nanos, update: impl FnOnce(f64) -> bool) {
        let before = std::mem::replace(&mut self.delay, delay);
        if before == 0.0 {
            self.idle_until = now;
        }
        if self.next == 0 {
            self.next = now + period;
        } else if now >= self.next {
            let missed = self.next < self.idle_until;
            let is_zero = update(if missed { 0.0 } else { delay });
            self.next += period;
            if now >= self.next && (!missed || is_zero) {
                self.next = now + period;
            }
        }
    }
}

/// `Real` with these instants.
#[derive(Default)]
struct Lazy {
    real: Real,
    instants: Instants,
}

impl Lazy {
    fn departure(&mut self, now: Nanos, delay: f64) {
        let real = &mut self.real;
        self.instants.departure(now, delay, (T_UPDATE_S * 1e9) as Nanos, |delay| {
            let was_idle = real.qdelay_old == 0.0;
            real.update(delay);
            real.base == 0.0 && was_idle
        });
    }
}

/// [RFC 9332 sec A.2], in one queue. picked: an event of probability p'^2; scalable: one of k p'.
fn fate(base: f64, code: u8, picked: bool, scalable: bool) -> Fate {
    let overload = COUPLING * base >= 1.0;
    match code {
        0 if picked => Fate::Dropped,
        _ if picked && overload => Fate::Dropped,
        ECT_0 if picked => Fate::Marked,
        ECT_1 if scalable => Fate::Marked,
        _ => Fate::Admitted,
    }
}

pub fn code(number: usize, ecn: bool) -> u8 {
    if ecn {
        (number % 3) as u8
    } else {
        0
    }
}

/// With a timer.
fn by_timer(arrivals: &[Nanos], ecn: bool, random: &mut Random) -> Totals {
    let (mut real, mut link, mut totals) = (Real::default(), Link::default(), Totals::default());
    let period = (T_UPDATE_S * 1e9) as Nanos;
    let mut next = arrivals[0] + period;
    for (number, &now) in arrivals.iter().enumerate() {
        while next <= now {
            link.serve(next);
            // [RFC 9332 sec A.1]: "how long the head packet was in the Classic queue", and "0 if the queue is empty"
            real.update(link.waiting.front().map_or(0.0, |&(arrival, _)| (next - arrival) as f64 / 1e9));
            next += period;
        }
        link.serve(now);
        let (picked, scalable) = (random.unit() < real.base * real.base, random.unit() < COUPLING * real.base);
        let few = link.waiting.len() <= 2;
        match fate(real.base, code(number, ecn), picked && !few, scalable && !few) {
            Fate::Dropped => totals.drops += 1,
            fate => {
                totals.marks += usize::from(fate == Fate::Marked);
                link.admit(now);
            }
        }
    }
    link.serve(Nanos::MAX);
    Totals { mean_wait_s: link.waited_s / (arrivals.len() - totals.drops) as f64, ..totals }
}

/// The P4 program, and beside it the real numbers with its instants of updates. After a difference these follow the program's queue.
fn in_p4(program: &Arc<Program>, arrivals: &[Nanos], ecn: bool, seed: u64) -> Comparison {
    let mut device = device(program, Capacity::Unlimited, seed);
    let mut random = Random(seed);
    let switch = device.switch_mut().unwrap();
    let out = || vec![KeyMatch::Exact(Value::from(u64::from(OUT)))];
    let gain = |per_second: f64| fixed(per_second * ONE / 1e6);
    let parameters = [fixed(TARGET_S * 1e6), fixed(T_UPDATE_S * 1e6), gain(ALPHA), gain(BETA), u64::from(ecn)];
    insert(switch, "AlsIngress.pi2.pi2_parameters", out(), "AlsIngress.pi2.set_decision", &parameters[4..]);
    insert(switch, "AlsEgress.pi2.pi2_parameters", out(), "AlsEgress.pi2.set_pi2", &parameters);
    let any = vec![KeyMatch::Lpm { value: Value::from(0x0a00_0002u64), prefix_len: 32 }];
    insert(switch, "AlsIngress.forward.ipv4_lpm", any, "AlsIngress.forward.send", &[u64::from(OUT), 1, 2]);
    let probability = switch.program().register_by_name("pi2_probability").expect("register pi2_probability");

    let frames = [0, ECT_1, ECT_0].map(|code| capable(ipv4_frame(0x0a00_0002), code));
    let (mut lazy, mut link, mut found) = (Lazy::default(), Link::default(), Comparison::default());
    let mut sent: Vec<(PortId, Nanos, Vec<u8>)> = Vec::new();
    let mut marked = vec![false; arrivals.len()];
    for (number, &now) in arrivals.iter().enumerate() {
        let code = code(number, ecn);
        let mut frame = frames[usize::from(code)].clone();
        frame[60..68].copy_from_slice(&(number as u64).to_be_bytes());
        device.poll(now, &mut sent);
        // Before the packet itself leaves, at once if the link is free.
        let stored = device.switch().unwrap().register_read(probability, OUT as usize).expect("index in range");
        let p4 = stored.to_u64().expect("64 bits") as f64 / ONE;
        let before = device.drops().get(DropCause::Ingress);
        device.receive(now, 1, &frame);
        let dropped = device.drops().get(DropCause::Ingress) > before;

        link.serve_with(now, |at, qdelay| lazy.departure(at, qdelay));
        let real = &lazy.real;
        found.error = found.error.max((p4 - real.base).abs() / real.base.max(LEAST));
        let (first, second) =
            if p4 > 0.0 && link.waiting.len() > 2 { (random.draw(), random.draw()) } else { (f64::INFINITY, f64::INFINITY) };
        let judge = |base: f64| fate(base, code, first < base && second < base, first < COUPLING * base);
        found.straddled += usize::from(judge(p4) != judge(real.base));
        let fate = judge(p4);
        assert_eq!(fate == Fate::Dropped, dropped, "packet {number}: {fate:?}, R {first} {second}, p' {} and {p4}", real.base);
        if dropped {
            found.p4.drops += 1;
        } else {
            marked[number] = fate == Fate::Marked;
            link.admit(now);
        }
    }
    device.poll(Nanos::MAX, &mut sent);
    assert_eq!(device.drops().get(DropCause::Tail), 0, "the buffer is never full: only PI2 drops");
    found.settle(&sent, arrivals, &marked);
    found
}

#[test]
fn pi2_in_p4_follows_its_formula() {
    hold(&["pi2"], 9332, by_timer, in_p4);
}
