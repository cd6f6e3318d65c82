//! ABC in `p4src/schemes/abc/abc.p4` against its equations in real numbers (Goyal et al. 2020, equations 1 and 2, algorithm 1), at a 10 Mb/s link. All packets
//! come as "accelerate".
//!
//! The reference knows when packets leave the test's own link, which of them had waited, and what they left behind. After each departure the
//! program's r is compared with mu/cr; and its token with algorithm 1, from the token before and the program's r and sigma.

use std::sync::Arc;

use fairlane_device::pipeline::{KeyMatch, Program, Value};
use fairlane_device::{Capacity, Device, Nanos, PortId};

use crate::{capable, compiled, device, fixed, insert, ipv4_frame, loads, Link, Random, FRAME_BYTES, OUT, RATE_BPS, TOS};

const ETA: f64 = 0.98;
const DELTA_US: f64 = 133_000.0;
const THRESHOLD_US: f64 = 20_000.0;
const BYTE_US: f64 = 8e6 / RATE_BPS as f64;
const PERIOD_US: u64 = 5_000;
const MOST: f64 = 4.0;
const LIMIT: f64 = 5.0;
const QUEUE: u32 = 200;
const ACCELERATE: u8 = 0b01;
const BRAKE: u8 = 0b10;

/// In real numbers; times in microseconds.
#[derive(Default)]
struct Real {
    last: u64,
    due: u64,
    elapsed: f64,
    left: f64,
    busy: f64,
    waited: f64,
    /// Of a byte.
    sigma: f64,
    told: bool,
    r: f64,
    /// How far the program's may be from it, relative: sums lose up to two units by halving, sigma has steps of 2^-24 us, left sigma whole ones.
    sigma_error: f64,
    r_error: f64,
    periods: usize,
}

impl Real {
    fn depart(&mut self, now: u64, waited: bool) {
        if self.due == 0 {
            (self.due, self.r) = (now + PERIOD_US, MOST);
        } else {
            let gap = (now - self.last).min(4 * PERIOD_US) as f64;
            self.elapsed += gap;
            self.left += FRAME_BYTES as f64;
            if waited {
                self.busy += gap;
                self.waited += FRAME_BYTES as f64;
            }
        }
        self.last = now;
        if now < self.due {
            return;
        }
        if !self.told && self.waited >= 128.0 && self.busy > 0.0 {
            self.sigma = self.busy / self.waited;
            self.sigma_error = 2.0 / self.busy + 2.0 / self.waited + 2f64.powi(-15) + 2f64.powi(-24) / self.sigma;
        }
        if self.sigma > 0.0 {
            let needed = (self.left * self.sigma).max(16.0);
            self.r = (self.elapsed / needed).min(MOST);
            self.r_error = self.sigma_error + 2.0 / self.elapsed + 2.0 / self.left + 1.0 / needed + 2f64.powi(-15);
        }
        self.due = now + PERIOD_US;
        self.periods += 1;
        for sum in [&mut self.elapsed, &mut self.left, &mut self.busy, &mut self.waited] {
            *sum /= 2.0;
        }
    }
}

#[derive(Debug, Default)]
struct Outcome {
    periods: usize,
    brakes: usize,
    /// The largest errors, as parts of their bounds.
    worst_r: f64,
    worst_token: f64,
}

/// `told`: the switch is given the link's rate.
fn follow(program: &Arc<Program>, arrivals: &[Nanos], told: bool) -> Outcome {
    let mut device = device(program, Capacity::Packets(QUEUE), 1);
    let switch = device.switch_mut().unwrap();
    let parameters = [
        fixed(ETA * 65536.0),
        fixed(2f64.powi(32) / DELTA_US),
        fixed(THRESHOLD_US),
        PERIOD_US,
        if told { fixed(BYTE_US * 2f64.powi(24)) } else { 0 },
    ];
    let out = vec![KeyMatch::Exact(Value::from(u64::from(OUT)))];
    insert(switch, "AlsEgress.abc.abc_parameters", out, "AlsEgress.abc.set_abc", &parameters);
    let any = vec![KeyMatch::Lpm { value: Value::from(0x0a00_0002u64), prefix_len: 32 }];
    insert(switch, "AlsIngress.forward.ipv4_lpm", any, "AlsIngress.forward.send", &[u64::from(OUT), 1, 2]);
    let registers =
        ["abc_ratio", "abc_token", "abc_sigma"].map(|name| program.register_by_name(name).unwrap_or_else(|| panic!("no register {name}")));

    let (mut real, mut outcome, mut token_before) = (Real { told, ..Real::default() }, Outcome::default(), 0.0);
    if told {
        (real.sigma, real.sigma_error) = (BYTE_US, 2f64.powi(-24));
    }
    let mut marks: Vec<Option<bool>> = Vec::new();
    let mut departed = |device: &Device, now: Nanos, waited: bool, depth: usize| {
        let read = |register| device.switch().unwrap().register_read(register, OUT as usize).unwrap().to_u64().unwrap() as f64;
        let [r, token, sigma] = registers.map(read);
        let (r, token, sigma) = (r / 65536.0, token / 65536.0, if told { BYTE_US } else { sigma / 2f64.powi(24) });
        real.depart(now / 1000, waited);
        outcome.worst_r = outcome.worst_r.max((r - real.r).abs() / (real.r * real.r_error + 2f64.powi(-16)));
        let over = (((depth + 1) * FRAME_BYTES) as f64 * sigma - THRESHOLD_US).max(0.0);
        let f = (r * (ETA - over / DELTA_US).max(0.0) / 2.0).min(1.0);
        let earned = (token_before + f).min(LIMIT);
        let bound = f * 2f64.powi(-13) + 5.0 / 65536.0 + r / (2.0 * DELTA_US);
        // Within the error of 1 either mark is right.
        let braked = ((earned - 1.0).abs() > bound).then_some(earned <= 1.0);
        if let Some(braked) = braked {
            let expected = if braked { earned } else { earned - 1.0 };
            outcome.worst_token = outcome.worst_token.max((token - expected).abs() / bound);
        }
        marks.push(braked);
        token_before = token;
    };

    let mut link = Link::default();
    let mut sent: Vec<(PortId, Nanos, Vec<u8>)> = Vec::new();
    let frame = capable(ipv4_frame(0x0a00_0002), ACCELERATE);
    for now in arrivals.iter().copied().chain([Nanos::MAX]) {
        while let Some(&(arrival, start)) = link.waiting.front().filter(|&&(_, start)| start <= now) {
            device.poll(start, &mut sent);
            link.waiting.pop_front();
            departed(&device, start, start > arrival, link.waiting.len());
        }
        if now == Nanos::MAX {
            break;
        }
        device.poll(now, &mut sent);
        device.receive(now, 1, &frame);
        if link.waiting.len() < QUEUE as usize {
            link.admit(now);
        }
    }
    device.poll(Nanos::MAX, &mut sent);
    assert_eq!(sent.len(), marks.len());
    for ((_, _, frame), braked) in sent.iter().zip(marks) {
        let code = frame[TOS] & 3;
        assert!(code == ACCELERATE || code == BRAKE);
        outcome.brakes += usize::from(code == BRAKE);
        assert!(braked.is_none_or(|braked| braked == (code == BRAKE)), "mark {code}, expected brake: {braked:?}");
    }
    outcome.periods = real.periods;
    outcome
}

#[test]
fn abc_in_p4_follows_its_equations() {
    let program = compiled(&["abc"]);
    let mut random = Random(2020);
    for (name, arrivals) in loads(&mut random) {
        // The switch's clock counts microseconds.
        let arrivals: Vec<Nanos> = arrivals.iter().map(|at| at / 1000 * 1000).collect();
        for told in [false, true] {
            let outcome = follow(&program, &arrivals, told);
            println!("{name:14} told: {told:5} {outcome:?}");
            let Outcome { periods, brakes, worst_r, worst_token } = outcome;
            assert!(periods > 4000 && brakes > 1000, "{name}: {periods} periods, {brakes} brakes");
            assert!(worst_r <= 1.0 && worst_token <= 1.0, "{name}: errors of {worst_r} and {worst_token} times their bounds");
        }
    }
}

#[test]
fn only_accelerate_becomes_brake() {
    let program = compiled(&["abc"]);
    let mut device = device(&program, Capacity::Unlimited, 1);
    let switch = device.switch_mut().unwrap();
    // eta and 1/delta are 0: no token is ever earned.
    insert(
        switch,
        "AlsEgress.abc.abc_parameters",
        vec![KeyMatch::Exact(Value::from(u64::from(OUT)))],
        "AlsEgress.abc.set_abc",
        &[0, 0, 0, PERIOD_US, 0],
    );
    let any = vec![KeyMatch::Lpm { value: Value::from(0x0a00_0002u64), prefix_len: 32 }];
    insert(switch, "AlsIngress.forward.ipv4_lpm", any, "AlsIngress.forward.send", &[u64::from(OUT), 1, 2]);
    let mut sent: Vec<(PortId, Nanos, Vec<u8>)> = Vec::new();
    for code in 0..4 {
        device.receive(u64::from(code) * 1_000_000, 1, &capable(ipv4_frame(0x0a00_0002), code));
    }
    device.poll(Nanos::MAX, &mut sent);
    let codes: Vec<u8> = sent.iter().map(|(_, _, frame)| frame[TOS] & 3).collect();
    assert_eq!(codes, [0, 2, 2, 3]);
}
