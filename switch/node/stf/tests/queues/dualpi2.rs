//! DualPI2 in `p4src/schemes/dualpi2/dualpi2.p4` and `p4src/schemes/pi2/pi2.p4` against the pseudocode of RFC 9332 in real numbers, at a 10 Mb/s link.
//!
//! [`DualPi2`] is figures 2, 3, 5, 7 and 8 of [RFC 9332 sec A], line by line, and a scheduler: weighted round robin, or that of figure 10. It
//! runs twice: with the timer of the text; and with the instants of updates, the delays and the rounded gains of the P4 program. With those, the
//! fate of each packet is the same: recur() leaves nothing to chance, and at random both draw the same numbers.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::Arc;

use fairlane_device::pipeline::{KeyMatch, Program, Value};
use fairlane_device::{Capacity, Device, DeviceConfig, DropCause, Nanos, PortConfig, PortId, Scheduler};

use crate::pi2::{code, Instants, ONE};
use crate::{capable, compiled, fixed, insert, ipv4_frame, loads, Random, FRAME_BYTES, OUT, RATE_BPS, SERVICE, TOS};

/// [RFC 9332 sec A.1] figure 2, in seconds.
const TARGET_S: f64 = 0.015;
const RTT_MAX_S: f64 = 0.1;
const K: f64 = 2.0;
const P_C_MAX: f64 = 1.0 / (K * K);
const T_UPDATE_S: f64 = TARGET_S;
const ALPHA: f64 = 0.1 * T_UPDATE_S / (RTT_MAX_S * RTT_MAX_S);
const BETA: f64 = 0.3 / RTT_MAX_S;
const RAMP: Ramp = Ramp { min_th_us: 800, range_us: 400 };
/// Note c: "by setting the range to zero".
const STEP: Ramp = Ramp { min_th_us: 1000, range_us: 0 };
const TH_LEN: usize = 1;
const P_L_MAX: f64 = 1.0;
/// [RFC 9332 sec A.2]: "For the public Internet, a good value for tshift is 50 ms."
const TSHIFT_S: f64 = 0.05;
/// [RFC 9332 sec 4.2.2]: "The scheduling weight of the Classic queue should be small (e.g., 1/16)"; then "the maximum that a Classic packet at
/// the head of the queue can be delayed by L traffic is the serialization delay of 15 MTU-sized packets".
const CLASSIC_WEIGHT: f64 = 1.0 / 16.0;
/// Ethernet's.
const MTU_BYTES: f64 = 1514.0;
const SEED: u64 = 9332;

const NOT_ECT: u8 = 0;

fn seconds(time: Nanos) -> f64 {
    time as f64 / 1e9
}

#[derive(Clone, Copy)]
struct Packet {
    number: usize,
    ecn: u8,
    arrival: Nanos,
}

#[derive(Default)]
struct Queue {
    packets: VecDeque<Packet>,
    /// Of recur().
    count: f64,
}

impl Queue {
    /// `lq.time()`, `cq.time()`: how long the head packet has waited, 0 of an empty queue.
    fn time(&self, now: Nanos) -> f64 {
        self.packets.front().map_or(0.0, |head| seconds(now.saturating_sub(head.arrival)))
    }

    fn recur(&mut self, likelihood: f64) -> bool {
        self.count += likelihood;
        let happens = self.count > 1.0;
        if happens {
            self.count -= 1.0;
        }
        happens
    }
}

#[derive(Clone, Copy)]
struct Ramp {
    min_th_us: u32,
    range_us: u32,
}

impl Ramp {
    /// [RFC 9332 sec A.1] figure 5.
    fn laqm(self, qdelay: Nanos) -> f64 {
        let (qdelay_us, min_th_us) = (qdelay as f64 / 1e3, f64::from(self.min_th_us));
        if qdelay_us >= f64::from(self.min_th_us + self.range_us) {
            1.0
        } else if qdelay_us > min_th_us {
            (qdelay_us - min_th_us) / f64::from(self.range_us)
        } else {
            0.0
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Sent { wait: Nanos, marked: bool },
    Dropped,
}

/// What the text leaves to the implementer: scheduler() [RFC 9332 sec A.2], and whether a likelihood is "either probabilistic or deterministic"
/// [RFC 9332 sec 2.5.1].
#[derive(Clone, Copy, PartialEq)]
struct Choices {
    is_weighted: bool,
    is_random: bool,
}

const DEFAULT: Choices = Choices { is_weighted: true, is_random: false };

/// When p' is updated, and by which delay.
enum Updates {
    /// Each Tupdate, by the time that the head packets have waited.
    Timer { next: Nanos },
    /// At departures, by the time that the last packet of each queue (L's, C's) had waited, 0 if it left nothing behind.
    Departures { instants: Instants, delays: [f64; 2] },
}

struct DualPi2 {
    lq: Queue,
    cq: Queue,
    /// p'
    base: f64,
    prevq: f64,
    alpha: f64,
    beta: f64,
    ramp: Ramp,
    updates: Updates,
    choices: Choices,
    random: Random,
    /// Bytes that the Classic queue should have sent by its weight, less those that it has sent, of all that left while both queues waited.
    owed: f64,
    free: Nanos,
    fates: Vec<Option<Fate>>,
}

impl DualPi2 {
    fn new([alpha, beta]: [f64; 2], ramp: Ramp, choices: Choices, updates: Updates) -> DualPi2 {
        let (lq, cq, fates, random) = (Queue::default(), Queue::default(), Vec::new(), Random(SEED));
        let mut dual = DualPi2 { lq, cq, base: 0.0, prevq: 0.0, alpha, beta, ramp, updates, choices, random, owed: 0.0, free: 0, fates };
        dual.favour_lq();
        dual
    }

    /// L may send 15 full packets, and then C one: the last of them finds nothing owed.
    fn favour_lq(&mut self) {
        self.owed = -(1.0 / CLASSIC_WEIGHT - 2.0) * CLASSIC_WEIGHT * MTU_BYTES;
    }

    /// The likelihood of figure 4's recur(), or of a random number.
    fn happens(&mut self, is_lq: bool, likelihood: f64) -> bool {
        match (self.choices.is_random, is_lq) {
            (true, _) => self.random.draw() < likelihood,
            (false, true) => self.lq.recur(likelihood),
            (false, false) => self.cq.recur(likelihood),
        }
    }

    /// Runs the link, and the timer, up to an instant.
    fn serve(&mut self, until: Nanos) {
        loop {
            let departure = self.first_arrival().map(|arrival| arrival.max(self.free)).filter(|&at| at <= until);
            match self.updates {
                Updates::Timer { next } if next <= departure.unwrap_or(until) => {
                    self.updates = Updates::Timer { next: next + (T_UPDATE_S * 1e9) as Nanos };
                    self.update(self.cq.time(next).max(self.lq.time(next)));
                }
                _ => match departure {
                    Some(at) if self.dequeue(at) => self.free = at + SERVICE,
                    Some(_) => (),
                    None => return,
                },
            }
        }
    }

    fn departed(&mut self, now: Nanos, is_lq: bool, wait: Nanos, behind: usize) {
        let Updates::Departures { instants, delays } = &mut self.updates else { return };
        delays[usize::from(is_lq)] = if behind == 0 { 0.0 } else { seconds(wait) };
        let (delay, mut due) = (delays[0].max(delays[1]), None);
        let mut instants = std::mem::take(instants);
        instants.departure(now, delay, (T_UPDATE_S * 1e9) as Nanos, |delay| {
            let was_idle = self.prevq == 0.0;
            self.base = self.next_base(delay);
            due = Some(delay);
            self.base == 0.0 && was_idle
        });
        if let Updates::Departures { instants: kept, .. } = &mut self.updates {
            *kept = instants;
        }
        self.prevq = due.unwrap_or(self.prevq);
    }

    /// Figure 3, without a limit.
    fn enqueue(&mut self, packet: Packet) {
        self.fates.resize(packet.number + 1, None);
        // [RFC 9332 sec A.1]: "The WRR credit is reset in favour of the L queue when the link is idle."
        if self.first_arrival().is_none() && self.free < packet.arrival {
            self.favour_lq();
        }
        if packet.ecn % 2 == 1 { &mut self.lq } else { &mut self.cq }.packets.push_back(packet);
    }

    /// From an empty queue nothing can be chosen. With a shift: figure 10, lines 28 to 33.
    fn schedules_lq(&self, now: Nanos) -> bool {
        let is_first = if self.choices.is_weighted { self.owed <= 0.0 } else { self.lq.time(now) + TSHIFT_S >= self.cq.time(now) };
        !self.lq.packets.is_empty() && (self.cq.packets.is_empty() || is_first)
    }

    /// Figure 7: true if a packet was sent.
    fn dequeue(&mut self, now: Nanos) -> bool {
        loop {
            let is_lq = self.schedules_lq(now);
            let is_contended = !self.lq.packets.is_empty() && !self.cq.packets.is_empty();
            let queue = if is_lq { &mut self.lq } else { &mut self.cq };
            let Some(packet) = queue.packets.pop_front() else { return false };
            let (wait, behind) = (now - packet.arrival, queue.packets.len());
            self.departed(now, is_lq, wait, behind);
            // a probability is 1 at most
            let (p_cl, p_c) = ((K * self.base).min(1.0), self.base * self.base);
            let (drop, marked);
            if is_lq {
                if p_cl < P_L_MAX {
                    // "if the queue is only 1 packet": with the one that leaves
                    let native = if behind + 1 > TH_LEN { self.ramp.laqm(wait) } else { 0.0 };
                    (drop, marked) = (false, self.happens(is_lq, native.max(p_cl)));
                } else {
                    drop = self.happens(is_lq, p_c);
                    // "all remaining packets will be marked": that needs no number
                    marked = !drop && (self.choices.is_random || self.happens(is_lq, p_cl));
                }
            } else {
                let happens = self.happens(is_lq, p_c);
                drop = happens && (packet.ecn == NOT_ECT || p_c >= P_C_MAX);
                marked = happens && !drop;
            }
            self.fates[packet.number] = Some(if drop { Fate::Dropped } else { Fate::Sent { wait, marked } });
            if !drop {
                // [RFC 9332 sec A.1]: the credit "is only changed if there are packets in both queues".
                let had = if is_lq { 0.0 } else { 1.0 };
                if is_contended {
                    self.owed += (CLASSIC_WEIGHT - had) * FRAME_BYTES as f64;
                }
                return true;
            }
        }
    }

    /// Figure 8, line 3.
    fn next_base(&self, curq: f64) -> f64 {
        (self.base + self.alpha * (curq - TARGET_S) + self.beta * (curq - self.prevq)).clamp(0.0, 1.0)
    }

    fn update(&mut self, curq: f64) {
        self.base = self.next_base(curq);
        self.prevq = curq;
    }

    /// When the head packet of either queue arrived.
    fn first_arrival(&self) -> Option<Nanos> {
        [&self.lq, &self.cq].into_iter().filter_map(|queue| queue.packets.front()).map(|head| head.arrival).min()
    }
}

/// Drops, marks and the mean waits in ms, of L and of C.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    drops: [usize; 2],
    marks: [usize; 2],
    waits_ms: [f64; 2],
}

impl Outcome {
    fn new(fates: &[Fate], codes: &[u8]) -> Outcome {
        let (mut outcome, mut sent) = (Outcome::default(), [0; 2]);
        for (fate, code) in fates.iter().zip(codes) {
            let queue = 1 - usize::from(code % 2);
            match fate {
                Fate::Dropped => outcome.drops[queue] += 1,
                Fate::Sent { wait, marked } => {
                    outcome.marks[queue] += usize::from(*marked);
                    outcome.waits_ms[queue] += 1e3 * seconds(*wait);
                    sent[queue] += 1;
                }
            }
        }
        for (wait, sent) in outcome.waits_ms.iter_mut().zip(sent) {
            *wait /= f64::from(sent.max(1));
        }
        outcome
    }
}

fn by_text(case: &Case, gains: [f64; 2], updates: Updates) -> Vec<Fate> {
    let Case { arrivals, codes, ramp, choices, .. } = case;
    let mut real = DualPi2::new(gains, *ramp, *choices, updates);
    for (number, (&arrival, &ecn)) in arrivals.iter().zip(codes).enumerate() {
        real.serve(arrival);
        real.enqueue(Packet { number, ecn, arrival });
    }
    let last = arrivals.last().copied().unwrap_or(0);
    real.serve(last + 100_000_000_000);
    real.fates.into_iter().map(|fate| fate.expect("each packet leaves or is dropped")).collect()
}

fn device(program: &Arc<Program>, ramp: Ramp, choices: Choices) -> Device {
    let mut device = Device::new(DeviceConfig { priorities: 2, seed: SEED, ..DeviceConfig::default() });
    let scheduler = if choices.is_weighted {
        Scheduler::Weighted(NonZeroU32::new((1.0 / CLASSIC_WEIGHT) as u32 - 1).unwrap())
    } else {
        Scheduler::TimeShifted((TSHIFT_S * 1e9) as Nanos)
    };
    let port = PortConfig { rate_bps: Some(RATE_BPS), capacity: Capacity::Unlimited, priorities: 2, scheduler, ..PortConfig::default() };
    device.set_port(1, PortConfig::default()).unwrap();
    device.set_port(OUT, port).unwrap();
    device.load(0, program.clone()).expect("memory");
    let switch = device.switch_mut().unwrap();
    let out = || vec![KeyMatch::Exact(Value::from(u64::from(OUT)))];
    let us = |seconds: f64| fixed(seconds * 1e6);
    let slope = if ramp.range_us == 0 { 0 } else { (ONE / f64::from(ramp.range_us)) as u64 };
    let ramp = [ramp.min_th_us.into(), ramp.range_us.into(), slope, choices.is_random.into()];
    let controller = [us(TARGET_S), us(T_UPDATE_S), gain(ALPHA), gain(BETA)];
    insert(switch, "AlsIngress.dual.dualpi2_ports", out(), "AlsIngress.dual.classify", &[]);
    insert(switch, "AlsEgress.dual.dualpi2_parameters", out(), "AlsEgress.dual.set_dualpi2", &[&controller[..], &ramp[..]].concat());
    let any = vec![KeyMatch::Lpm { value: Value::from(0x0a00_0002u64), prefix_len: 32 }];
    insert(switch, "AlsIngress.forward.ipv4_lpm", any, "AlsIngress.forward.send", &[u64::from(OUT), 1, 2]);
    device
}

/// Per microsecond.
fn gain(per_second: f64) -> u64 {
    fixed(per_second * ONE / 1e6)
}

fn in_p4(program: &Arc<Program>, case: &Case) -> Vec<Fate> {
    let Case { arrivals, codes, .. } = case;
    let mut device = device(program, case.ramp, case.choices);
    let frames = [0, 1, 2].map(|code| capable(ipv4_frame(0x0a00_0002), code));
    let mut sent: Vec<(PortId, Nanos, Vec<u8>)> = Vec::new();
    for (number, (&now, &code)) in arrivals.iter().zip(codes).enumerate() {
        let mut frame = frames[usize::from(code)].clone();
        frame[60..68].copy_from_slice(&(number as u64).to_be_bytes());
        device.poll(now, &mut sent);
        device.receive(now, 1, &frame);
    }
    device.poll(Nanos::MAX, &mut sent);
    assert_eq!(device.drops().get(DropCause::Tail), 0, "the buffer is never full: only DualPI2 drops");
    let mut fates = vec![Fate::Dropped; arrivals.len()];
    for (_, at, frame) in &sent {
        let number = u64::from_be_bytes(frame[60..68].try_into().unwrap()) as usize;
        assert_eq!(fates[number], Fate::Dropped, "packet {number} left twice");
        fates[number] = Fate::Sent { wait: at - SERVICE - arrivals[number], marked: frame[TOS] & 3 == 3 };
    }
    fates
}

struct Case {
    name: String,
    arrivals: Vec<Nanos>,
    /// Their ECN fields.
    codes: Vec<u8>,
    ramp: Ramp,
    choices: Choices,
    /// Of counts and waits, from the pseudocode with its timer. p' follows the waits of single packets, so that both sides drift apart.
    tolerance: f64,
}

fn cases() -> Vec<Case> {
    let mut random = Random(9332);
    let mut cases = Vec::new();
    for (name, arrivals) in loads(&mut random) {
        // The switch's clock counts microseconds.
        let arrivals: Vec<Nanos> = arrivals.iter().map(|at| at / 1000 * 1000).collect();
        let mut add = |what: &str, code: &dyn Fn(usize) -> u8, ramp, choices| {
            let codes = (0..arrivals.len()).map(code).collect();
            // Where Classic packets are rare, how long the last one waited is much more than how long the head has waited so far.
            let tolerance = if what.starts_with("15 of 16") { 0.2 } else { 0.07 };
            cases.push(Case { name: format!("{name}, {what}"), arrivals: arrivals.clone(), codes, ramp, choices, tolerance });
        };
        let all = |number| code(number, true);
        add("no ECN", &|_| NOT_ECT, RAMP, DEFAULT);
        add("all three", &all, RAMP, DEFAULT);
        add("all three, step", &all, STEP, DEFAULT);
        add("all three, shift", &all, RAMP, Choices { is_weighted: false, ..DEFAULT });
        add("all three, at random", &all, RAMP, Choices { is_random: true, ..DEFAULT });
        add("ECT(1) alone", &|_| 1, RAMP, DEFAULT);
        // The scheduler decides only where the low-latency queue is not short: 15 of 16 packets are its.
        add("15 of 16 ECT(1)", &|number| u8::from(number % 16 != 0), RAMP, DEFAULT);
    }
    cases
}

#[test]
fn dualpi2_in_p4_follows_the_rfc() {
    let program = compiled(&["dualpi2"]);
    let mut failures = Vec::new();
    println!("{:28} {:>6} {:>33} {:>33} {:>31}", "load", "apart", "drops L, C: text, P4", "marks L, C: text, P4", "wait ms L, C: text, P4");
    for case in cases() {
        let Case { name, arrivals, codes, .. } = &case;
        let p4 = in_p4(&program, &case);
        let held = [ALPHA, BETA].map(|per_second| gain(per_second) as f64 * 1e6 / ONE);
        let alike = by_text(&case, held, Updates::Departures { instants: Instants::default(), delays: [0.0; 2] });
        let apart = alike.iter().zip(&p4).filter(|(text, p4)| text != p4).count();
        let text = by_text(&case, [ALPHA, BETA], Updates::Timer { next: arrivals[0] + (T_UPDATE_S * 1e9) as Nanos });
        let (text, p4) = (Outcome::new(&text, codes), Outcome::new(&p4, codes));
        println!(
            "{name:28} {apart:6} {:7} {:7} | {:7} {:7} {:7} {:7} | {:7} {:7} {:7.3} {:7.3} | {:7.3} {:7.3}",
            text.drops[0],
            text.drops[1],
            p4.drops[0],
            p4.drops[1],
            text.marks[0],
            text.marks[1],
            p4.marks[0],
            p4.marks[1],
            text.waits_ms[0],
            text.waits_ms[1],
            p4.waits_ms[0],
            p4.waits_ms[1]
        );
        if apart > 0 {
            failures.push(format!("{name}: {apart} packets fare otherwise than by the pseudocode with the same instants"));
        }
        for queue in 0..2 {
            let (count, known) = ((p4.drops[queue] + p4.marks[queue]) as f64, (text.drops[queue] + text.marks[queue]) as f64);
            if (count - known).abs() > (case.tolerance * known).max(40.0) {
                failures.push(format!("{name}: {count} drops and marks of queue {queue}, by the pseudocode {known}"));
            }
            let (wait, known) = (p4.waits_ms[queue], text.waits_ms[queue]);
            if (wait - known).abs() > (case.tolerance * known).max(0.01) {
                failures.push(format!("{name}: mean wait {wait} ms in queue {queue}, by the pseudocode {known} ms"));
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// [RFC 9332 sec A.2]: "Then the Base AQM will keep the L queue to the Classic target (default 15 ms) by shedding L packets."
#[test]
fn an_overloaded_low_latency_queue_is_kept_at_the_classic_target() {
    // 12 Mb/s of ECT(1) that answers to nothing, for 60 s
    let arrivals: Vec<Nanos> = (0..90_000).map(|number| 1_000_000 + number * SERVICE / 12 * 10).collect();
    let codes = vec![1; arrivals.len()];
    let case = Case { name: String::new(), arrivals, codes, ramp: RAMP, choices: DEFAULT, tolerance: 0.05 };
    let text = by_text(&case, [ALPHA, BETA], Updates::Timer { next: 16_000_000 });
    let p4 = in_p4(&compiled(&["dualpi2"]), &case);
    for (side, fates) in [("text", &text), ("P4", &p4)] {
        let settled = Outcome::new(&fates[15_000..], &case.codes[15_000..]);
        println!("{side}: {settled:?}");
        assert!((settled.waits_ms[0] - 1e3 * TARGET_S).abs() < 1.0, "{side}: {settled:?}");
        assert!(settled.drops[0] > 10_000 && settled.drops[0] + settled.marks[0] <= 75_000, "{side}: {settled:?}");
    }
}
