//! DualPI2 in `p4src/dualpi2.p4` and `p4src/pi2.p4` against RFC 9332 appendix A.1 in real numbers, at a 10 Mb/s link. With ECN, a third of
//! the packets each is of a transport without it, of ECT(0), and of ECT(1): the last wait in the low-latency queue.
//!
//! Twice, as `pi2.rs`: with the P4 program's own instants of updates and its own random numbers, and with a timer. The two queues and
//! their time-shifted scheduler are modelled here a second time.

use std::collections::VecDeque;
use std::sync::Arc;

use fairlane_device::pipeline::{KeyMatch, Program, Value};
use fairlane_device::{Capacity, Device, DeviceConfig, DropCause, Nanos, PortConfig, PortId};

use crate::pi2::{code, fate, Lazy, Real, ALPHA, BETA, COUPLING, ECT_1, LEAST, ONE, TARGET_S, T_UPDATE_S};
use crate::probability::{hold, Comparison};
use crate::{capable, fixed, insert, ipv4_frame, Fate, Random, Totals, OUT, RATE_BPS, SERVICE};

const STEP: Nanos = 1_000_000;
const SHIFT: Nanos = 30_000_000;
const FEW: usize = 2;

/// A packet that has left its queue.
struct Departure {
    number: usize,
    low_latency: bool,
    at: Nanos,
    wait: Nanos,
    /// Packets that it left behind in its queue.
    behind: usize,
}

/// Both queues of the link: numbers and arrivals of packets that wait.
#[derive(Default)]
struct Queues {
    classic: VecDeque<(usize, Nanos)>,
    low_latency: VecDeque<(usize, Nanos)>,
    free: Nanos,
}

impl Queues {
    fn next(&mut self, until: Nanos) -> Option<Departure> {
        let arrivals = [self.classic.front(), self.low_latency.front()].map(|front| front.map(|&(_, arrival)| arrival));
        let at = self.free.max(arrivals.into_iter().flatten().min()?);
        if at > until {
            return None;
        }
        let present = |arrival: Option<Nanos>| arrival.filter(|&arrival| arrival <= at);
        let low_latency = match (present(arrivals[0]), present(arrivals[1])) {
            (Some(classic), Some(low)) => low <= classic + SHIFT,
            (classic, _) => classic.is_none(),
        };
        let queue = if low_latency { &mut self.low_latency } else { &mut self.classic };
        let (number, arrival) = queue.pop_front()?;
        self.free = at + SERVICE;
        Some(Departure { number, low_latency, at, wait: at - arrival, behind: queue.len() })
    }

    fn admit(&mut self, number: usize, low_latency: bool, now: Nanos) {
        if low_latency { &mut self.low_latency } else { &mut self.classic }.push_back((number, now));
    }
}

impl Departure {
    fn is_marked_by_step(&self) -> bool {
        self.low_latency && self.wait > STEP && self.behind > 0
    }

    /// What the Classic queue shows to the controller from then on.
    fn qdelay(&self, before: f64) -> f64 {
        match (self.low_latency, self.behind) {
            (true, _) => before,
            (false, 0) => 0.0,
            (false, _) => self.wait as f64 / 1e9,
        }
    }
}

/// With a timer.
fn by_timer(arrivals: &[Nanos], ecn: bool, random: &mut Random) -> Totals {
    let (mut real, mut queues, mut totals) = (Real::default(), Queues::default(), Totals::default());
    let period = (T_UPDATE_S * 1e9) as Nanos;
    let mut next = arrivals[0] + period;
    let mut marked = vec![false; arrivals.len()];
    let (mut qdelay, mut waited) = (0.0, 0);
    let mut serve = |until: Nanos, queues: &mut Queues, marked: &mut [bool]| {
        while let Some(departure) = queues.next(until) {
            qdelay = departure.qdelay(qdelay);
            waited += departure.wait;
            marked[departure.number] |= departure.is_marked_by_step();
        }
        (qdelay, waited)
    };
    for (number, &now) in arrivals.iter().enumerate() {
        while next <= now {
            let (qdelay, _) = serve(next, &mut queues, &mut marked);
            real.update(qdelay);
            next += period;
        }
        serve(now, &mut queues, &mut marked);
        let code = code(number, ecn);
        let (picked, scalable) = (random.unit() < real.base * real.base, random.unit() < COUPLING * real.base);
        let few = queues.classic.len() <= FEW;
        match fate(real.base, code, picked && !few, scalable && (code == ECT_1 || !few)) {
            Fate::Dropped => totals.drops += 1,
            fate => {
                marked[number] |= fate == Fate::Marked;
                queues.admit(number, code == ECT_1, now);
            }
        }
    }
    let (_, waited) = serve(Nanos::MAX, &mut queues, &mut marked);
    totals.marks = marked.iter().filter(|&&marked| marked).count();
    Totals { mean_wait_s: waited as f64 / 1e9 / (arrivals.len() - totals.drops) as f64, ..totals }
}

fn device(program: &Arc<Program>, ecn: bool, seed: u64) -> Device {
    let mut device = Device::new(DeviceConfig { seed, priorities: 2, ..DeviceConfig::default() });
    let port = PortConfig {
        rate_bps: Some(RATE_BPS),
        capacity: Capacity::Unlimited,
        priorities: 2,
        time_shift: Some(SHIFT),
        ..PortConfig::default()
    };
    device.set_port(1, PortConfig::default()).unwrap();
    device.set_port(OUT, port).unwrap();
    device.load(0, program.clone()).expect("memory");
    let switch = device.switch_mut().unwrap();
    let out = || vec![KeyMatch::Exact(Value::from(u64::from(OUT)))];
    let gain = |per_second: f64| fixed(per_second * ONE / 1e6);
    let parameters = [fixed(TARGET_S * 1e6), fixed(T_UPDATE_S * 1e6), gain(ALPHA), gain(BETA), u64::from(ecn)];
    insert(switch, "AlsIngress.pi2.pi2_parameters", out(), "AlsIngress.pi2.set_decision", &parameters[4..]);
    insert(switch, "AlsEgress.pi2.pi2_parameters", out(), "AlsEgress.pi2.set_pi2", &parameters);
    insert(switch, "AlsIngress.dual.dualpi2_ports", out(), "AlsIngress.dual.classify", &[]);
    insert(switch, "AlsEgress.dual.dualpi2_parameters", out(), "AlsEgress.dual.set_step", &[STEP / 1000]);
    let any = vec![KeyMatch::Lpm { value: Value::from(0x0a00_0002u64), prefix_len: 32 }];
    insert(switch, "AlsIngress.forward.ipv4_lpm", any, "AlsIngress.forward.send", &[u64::from(OUT), 1, 2]);
    device
}

/// The P4 program, and beside it the real numbers with its instants of updates.
fn in_p4(program: &Arc<Program>, arrivals: &[Nanos], ecn: bool, seed: u64) -> Comparison {
    let mut device = device(program, ecn, seed);
    let mut random = Random(seed);
    let probability = program.register_by_name("pi2_probability").expect("register pi2_probability");
    let frames = [0, 1, 2].map(|code| capable(ipv4_frame(0x0a00_0002), code));
    let (mut lazy, mut queues, mut found) = (Lazy::default(), Queues::default(), Comparison::default());
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

        while let Some(departure) = queues.next(now) {
            lazy.departure(departure.at, departure.qdelay(lazy.qdelay));
            marked[departure.number] |= departure.is_marked_by_step();
        }
        let real = &lazy.real;
        found.error = found.error.max((p4 - real.base).abs() / real.base.max(LEAST));
        let (few, low_latency) = (queues.classic.len() <= FEW, code == ECT_1);
        let (first, second) =
            if p4 > 0.0 && (!few || low_latency) { (random.draw(), random.draw()) } else { (f64::INFINITY, f64::INFINITY) };
        let judge = |base: f64| fate(base, code, first < base && second < base && !few, first < COUPLING * base);
        found.straddled += usize::from(judge(p4) != judge(real.base));
        let fate = judge(p4);
        assert_eq!(fate == Fate::Dropped, dropped, "packet {number}: {fate:?}, R {first} {second}, p' {} and {p4}", real.base);
        if dropped {
            found.p4.drops += 1;
        } else {
            marked[number] = fate == Fate::Marked;
            queues.admit(number, low_latency, now);
        }
    }
    device.poll(Nanos::MAX, &mut sent);
    while let Some(departure) = queues.next(Nanos::MAX) {
        marked[departure.number] |= departure.is_marked_by_step();
    }
    assert_eq!(device.drops().get(DropCause::Tail), 0, "the buffer is never full: only PI2 drops");
    found.settle(&sent, arrivals, &marked);
    found
}

#[test]
fn dualpi2_in_p4_follows_its_formula() {
    hold(&["PI2", "DUALPI2"], 9332, by_timer, in_p4);
}
