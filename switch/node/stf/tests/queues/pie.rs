//! PIE against RFC 8033 in real numbers, at a 10 Mb/s link; every seventh packet is of a transport without ECN.
//!
//! Twice. First with the P4 program's own instants of updates, delays and random numbers: the same packets are dropped and marked, except where
//! a random number lies between both probabilities, and these agree within a thousandth. Then [`Text`], which shares nothing with the program: the
//! pseudocode of [RFC 8033 sec A] with its timer, bytes, and the delay by Little's law; compared are the numbers of drops and marks, and the mean wait.

use std::collections::VecDeque;
use std::sync::Arc;

use fairlane_device::pipeline::{KeyMatch, Program, Value};
use fairlane_device::{Capacity, DropCause, Nanos, PortId};

use crate::probability::{hold, Comparison};
use crate::{capable, device, fixed, insert, ipv4_frame, Fate, Link, Random, Totals, FRAME_BYTES, OUT, RATE_BPS, SERVICE};

const TARGET_S: f64 = 0.015;
const T_UPDATE_S: f64 = 0.015;
const ALPHA: f64 = 0.125;
const BETA: f64 = 1.25;
const MAX_BURST_S: f64 = 0.15;
const MARK_ECNTH: f64 = 0.1;
const ONE: f64 = (1u64 << 48) as f64;
/// Below this, a probability's error is compared with it instead.
const LEAST: f64 = 1e-6;

/// The RFC's variables, times in seconds, at the program's instants.
#[derive(Default)]
struct Real {
    drop_prob: f64,
    qdelay_old: f64,
    burst_allowance: f64,
}

impl Real {
    /// Section 4.2, with the cap of section 5.5.
    fn calculate_drop_prob(&mut self, qdelay: f64) {
        let scale = match self.drop_prob {
            p if p < 0.000001 => 2048.0,
            p if p < 0.00001 => 512.0,
            p if p < 0.0001 => 128.0,
            p if p < 0.001 => 32.0,
            p if p < 0.01 => 8.0,
            p if p < 0.1 => 2.0,
            _ => 1.0,
        };
        let mut p = (ALPHA * (qdelay - TARGET_S) + BETA * (qdelay - self.qdelay_old)) / scale;
        if self.drop_prob >= 0.1 {
            p = p.min(0.02);
        }
        self.drop_prob = (self.drop_prob + p).max(0.0);
        if qdelay == 0.0 && self.qdelay_old == 0.0 {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.min(1.0);
        self.qdelay_old = qdelay;
    }

    /// Section 4.4, each T_UPDATE. In binary, ten times 0.015 is a little less than 0.15.
    fn spend_burst_allowance(&mut self) {
        let left = self.burst_allowance - T_UPDATE_S;
        self.burst_allowance = if left > 1e-9 { left } else { 0.0 };
    }

    /// Section 4.4: when congestion has gone.
    fn renew_burst_allowance(&mut self, qdelay: f64) {
        if self.drop_prob == 0.0 && qdelay < TARGET_S / 2.0 && self.qdelay_old < TARGET_S / 2.0 {
            self.burst_allowance = MAX_BURST_S;
        }
    }

    /// Sections 4.1 and 4.4: whether the packet's fate is drawn. No random number is below a probability of 0.
    fn in_question(&self, waiting: usize) -> bool {
        let safe = self.qdelay_old < TARGET_S / 2.0 && self.drop_prob < 0.2 || waiting <= 2;
        self.burst_allowance <= 0.0 && !safe && self.drop_prob > 0.0
    }

    /// Section 5.1.
    fn fate(&self, picked: bool, ecn: bool) -> Fate {
        match (picked, ecn && self.drop_prob < MARK_ECNTH) {
            (false, _) => Fate::Admitted,
            (true, true) => Fate::Marked,
            (true, false) => Fate::Dropped,
        }
    }
}

/// The same without a timer, as `p4src/schemes/pie/pie.p4` has it: a departure does one update at most.
#[derive(Default)]
struct Lazy {
    real: Real,
    qdelay: f64,
    next: Nanos,
    idle_until: Nanos,
}

impl Lazy {
    fn departure(&mut self, now: Nanos, qdelay: f64) {
        let period = (T_UPDATE_S * 1e9) as Nanos;
        let before = std::mem::replace(&mut self.qdelay, qdelay);
        if before == 0.0 {
            self.idle_until = now;
        }
        let mut qdelay = qdelay;
        if self.next == 0 {
            self.next = now + period;
        } else if now >= self.next {
            let missed = self.next < self.idle_until;
            if missed {
                qdelay = 0.0;
            }
            let was_idle = self.real.qdelay_old == 0.0;
            self.real.calculate_drop_prob(qdelay);
            self.real.spend_burst_allowance();
            self.next += period;
            if now >= self.next && (!missed || self.real.drop_prob == 0.0 && was_idle) {
                self.next = now + period;
            }
        }
        self.real.renew_burst_allowance(qdelay);
    }
}

fn is_capable(number: usize, ecn: bool) -> bool {
    ecn && !number.is_multiple_of(7)
}

/// [RFC 8033 sec A], with the options of [RFC 8033 sec 5.1] and [RFC 8033 sec 5.5].
struct Text {
    /// Arrivals of the packets in queue_, all of one size.
    queue: VecDeque<Nanos>,
    current_qdelay: f64,
    qdelay_old: f64,
    drop_prob: f64,
    burst_allowance: f64,
}

impl Text {
    fn byte_length(&self) -> usize {
        self.queue.len() * FRAME_BYTES
    }

    /// enque(), for a packet whose random number is `u`.
    fn enque(&mut self, ecn_capable: bool, u: f64) -> Fate {
        if self.drop_prob == 0.0 && self.current_qdelay < TARGET_S / 2.0 && self.qdelay_old < TARGET_S / 2.0 {
            self.burst_allowance = MAX_BURST_S;
        }
        if self.burst_allowance > 0.0 || !self.drop_early(u) {
            return Fate::Admitted;
        }
        if self.drop_prob < MARK_ECNTH && ecn_capable {
            return Fate::Marked;
        }
        Fate::Dropped
    }

    fn drop_early(&self, u: f64) -> bool {
        // "Safeguard PIE to be work conserving"
        if (self.qdelay_old < TARGET_S / 2.0 && self.drop_prob < 0.2) || self.byte_length() <= 2 * FRAME_BYTES {
            return false;
        }
        u < self.drop_prob
    }

    /// Each T_UPDATE. [RFC 8033 sec 4.3]: "current_qdelay = queue_.byte_length()/dequeue_rate".
    fn calculate_drop_prob(&mut self) {
        self.current_qdelay = self.byte_length() as f64 / (RATE_BPS as f64 / 8.0);
        let mut p = ALPHA * (self.current_qdelay - TARGET_S) + BETA * (self.current_qdelay - self.qdelay_old);
        if self.drop_prob < 0.000001 {
            p /= 2048.0;
        } else if self.drop_prob < 0.00001 {
            p /= 512.0;
        } else if self.drop_prob < 0.0001 {
            p /= 128.0;
        } else if self.drop_prob < 0.001 {
            p /= 32.0;
        } else if self.drop_prob < 0.01 {
            p /= 8.0;
        } else if self.drop_prob < 0.1 {
            p /= 2.0;
        }
        if self.drop_prob >= 0.1 && p > 0.02 {
            p = 0.02;
        }
        self.drop_prob += p;
        if self.current_qdelay == 0.0 && self.qdelay_old == 0.0 {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.qdelay_old = self.current_qdelay;
        self.burst_allowance = (self.burst_allowance - T_UPDATE_S).max(0.0);
    }
}

/// The text, its timer and a link.
fn by_text(arrivals: &[Nanos], ecn: bool, random: &mut Random) -> Totals {
    let queue = VecDeque::new();
    // "burst_allowance_ ... is initialized to MAX_BURST" [RFC 8033 sec 4.4]
    let mut text = Text { queue, current_qdelay: 0.0, qdelay_old: 0.0, drop_prob: 0.0, burst_allowance: MAX_BURST_S };
    let (mut totals, mut link_free, mut waited) = (Totals::default(), 0, 0);
    let mut serve = |text: &mut Text, until: Nanos| {
        while let Some(&arrival) = text.queue.front() {
            let start = arrival.max(link_free);
            if start > until {
                break;
            }
            text.queue.pop_front();
            waited += start - arrival;
            link_free = start + SERVICE;
        }
    };
    let period = (T_UPDATE_S * 1e9) as Nanos;
    let mut timer = arrivals[0] + period;
    for (number, &now) in arrivals.iter().enumerate() {
        while timer <= now {
            serve(&mut text, timer);
            text.calculate_drop_prob();
            timer += period;
        }
        serve(&mut text, now);
        match text.enque(is_capable(number, ecn), random.unit()) {
            Fate::Dropped => totals.drops += 1,
            fate => {
                totals.marks += usize::from(fate == Fate::Marked);
                text.queue.push_back(now);
            }
        }
    }
    serve(&mut text, Nanos::MAX);
    Totals { mean_wait_s: waited as f64 / 1e9 / (arrivals.len() - totals.drops) as f64, ..totals }
}

/// The P4 program, and beside it the real numbers with its instants of updates. After a difference these follow the program's queue.
fn in_p4(program: &Arc<Program>, arrivals: &[Nanos], ecn: bool, seed: u64) -> Comparison {
    let mut device = device(program, Capacity::Unlimited, seed);
    let mut random = Random(seed);
    let switch = device.switch_mut().unwrap();
    let out = || vec![KeyMatch::Exact(Value::from(u64::from(OUT)))];
    let gain = |per_second: f64| fixed(per_second * ONE / 1e6);
    let micros = |seconds: f64| fixed(seconds * 1e6);
    let parameters = [micros(TARGET_S), micros(T_UPDATE_S), gain(ALPHA), gain(BETA), micros(MAX_BURST_S), u64::from(ecn)];
    insert(switch, "AlsIngress.pie.pie_parameters", out(), "AlsIngress.pie.set_decision", &[parameters[0], parameters[5]]);
    insert(switch, "AlsEgress.pie.pie_parameters", out(), "AlsEgress.pie.set_pie", &parameters);
    let any = vec![KeyMatch::Lpm { value: Value::from(0x0a00_0002u64), prefix_len: 32 }];
    insert(switch, "AlsIngress.forward.ipv4_lpm", any, "AlsIngress.forward.send", &[u64::from(OUT), 1, 2]);
    let probability = switch.program().register_by_name("pie_probability").expect("register pie_probability");

    let (plain, capable) = (ipv4_frame(0x0a00_0002), capable(ipv4_frame(0x0a00_0002), 2));
    let (mut lazy, mut link, mut found) = (Lazy::default(), Link::default(), Comparison::default());
    let mut sent: Vec<(PortId, Nanos, Vec<u8>)> = Vec::new();
    let mut marked = vec![false; arrivals.len()];
    for (number, &now) in arrivals.iter().enumerate() {
        let is_capable = is_capable(number, ecn);
        let mut frame = if is_capable { capable.clone() } else { plain.clone() };
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
        found.error = found.error.max((p4 - real.drop_prob).abs() / real.drop_prob.max(LEAST));
        let draw = if real.in_question(link.waiting.len()) { random.draw() } else { 1.0 };
        let mut fate = real.fate(draw < real.drop_prob, is_capable);
        if (draw < p4) != (draw < real.drop_prob) {
            found.straddled += 1;
            fate = real.fate(draw < p4, is_capable);
        }
        assert_eq!(fate == Fate::Dropped, dropped, "packet {number}: {fate:?}, R {draw}, p {} and {p4}", real.drop_prob);
        if dropped {
            found.p4.drops += 1;
        } else {
            marked[number] = fate == Fate::Marked;
            link.admit(now);
        }
    }
    device.poll(Nanos::MAX, &mut sent);
    assert_eq!(device.drops().get(DropCause::Tail), 0, "the buffer is never full: only PIE drops");
    found.settle(&sent, arrivals, &marked);
    found
}

#[test]
fn pie_in_p4_follows_the_rfc() {
    hold(&["pie"], 8033, by_text, in_p4);
}
