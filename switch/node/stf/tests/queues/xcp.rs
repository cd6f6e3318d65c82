//! XCP in `p4src/schemes/xcp/xcp.p4` against its equations in real numbers (Katabi, Handley and Rohrs 2002, section 3.5), at a 10 Mb/s link. Packets have
//! congestion headers with round trips of 20 to 120 ms and 1 to 20 ms between a sender's packets; each tenth knows no round trip; each
//! fourth has a change from a router before.
//!
//! After each update the program's xi_p and xi_n are compared with the equations', from the test's own sums and the delay of its own link; and
//! each packet must carry the change that the program's xi_p, xi_n and rests give.

use std::sync::Arc;

use fairlane_device::pipeline::{KeyMatch, Program, Value};
use fairlane_device::{Capacity, Device, Nanos, PortId};

use crate::{compiled, device, fixed, insert, ipv4_frame, loads, Link, Random, FRAME_BYTES, OUT, RATE_BPS};

const ALPHA: f64 = 0.4;
const BETA: f64 = 0.226;
const GAMMA: f64 = 0.1;
const LEAST_US: u64 = 10_000;
const ASSUMED_RTT_US: f64 = 200_000.0;
const QUEUE: u32 = 200;
const UNCHANGED: u64 = 1 << 63;
/// RTP's header behind those of Ethernet, IPv4 and UDP.
const RTP: usize = 42;
const CONGESTION: usize = RTP + 12;
const RELATIVE: f64 = 1.0 / 32768.0;

fn frame(carried: u64, rtt_us: u32, interval_us: u32) -> Vec<u8> {
    let mut frame = ipv4_frame(0x0a00_0002);
    frame[38..40].copy_from_slice(&((FRAME_BYTES - 34) as u16).to_be_bytes());
    frame[40..42].copy_from_slice(&[0xab, 0xcd]);
    frame[RTP] = 0x90;
    frame[CONGESTION..CONGESTION + 4].copy_from_slice(&[0x58, 0x43, 0, 4]);
    frame[CONGESTION + 4..CONGESTION + 12].copy_from_slice(&carried.to_be_bytes());
    frame[CONGESTION + 12..CONGESTION + 16].copy_from_slice(&rtt_us.to_be_bytes());
    frame[CONGESTION + 16..CONGESTION + 20].copy_from_slice(&interval_us.to_be_bytes());
    frame
}

/// What an update gives: xi_p, xi_n, and how far the program's may be from them.
struct Update {
    up: f64,
    down: f64,
    up_error: f64,
    down_error: f64,
}

/// In real numbers.
struct Real {
    bytes: f64,
    spread: f64,
    trips: f64,
    packets: f64,
    d_us: f64,
    /// How far the program's d may be from it, relative.
    d_error: f64,
    began: Option<u64>,
    least_delay_s: Option<f64>,
}

impl Real {
    /// `d_us`: the program's, in whole microseconds: it says when an interval is over.
    fn arrive(&mut self, now_us: u64, d_us: u64) -> Option<Update> {
        let began = *self.began.get_or_insert(now_us);
        if now_us - began < d_us.max(LEAST_US) {
            return None;
        }
        let elapsed = (now_us - began) as f64;
        let capacity = RATE_BPS as f64;
        let y = (8e6 * self.bytes / elapsed).min(4.0 * capacity);
        if self.spread > 0.0 {
            self.d_us = self.trips / self.spread;
            self.d_error = RELATIVE + 256.0 * self.packets / self.trips + 1.0 / self.d_us;
        }
        let waits = (self.least_delay_s.unwrap_or(0.0) * 1e6 / self.d_us).min(8.0);
        let change = ALPHA * (capacity - y) - BETA * capacity * waits;
        let shuffled = (GAMMA * y - change.abs()).max(0.0);
        let (give, take) = (shuffled + change.max(0.0), shuffled + (-change).max(0.0));
        // y in steps of 8 bit/s; d's trips lose 2^8 a packet, d and the delay a microsecond each.
        let terms = (ALPHA + GAMMA) * (y * RELATIVE + 8.0)
            + BETA * capacity * (waits * (self.d_error + RELATIVE) + 2.0 / self.d_us + 2f64.powi(-20));
        let error = terms + 8.0 + capacity * 2f64.powi(-19);
        let up = if self.spread > 0.0 { give / self.spread } else { 0.0 };
        let down = take / self.bytes;
        let result = Update {
            up,
            down,
            up_error: up * RELATIVE + error / self.spread.max(1.0) + 2f64.powi(-16),
            down_error: down * (RELATIVE + 1.0 / self.bytes) + error / self.bytes + 2f64.powi(-16),
        };
        (self.bytes, self.spread, self.trips, self.packets) = (0.0, 0.0, 0.0, 0.0);
        (self.began, self.least_delay_s) = (Some(now_us), None);
        Some(result)
    }
}

fn follow(program: &Arc<Program>, arrivals: &[Nanos], random: &mut Random) -> (usize, f64) {
    let mut device = device(program, Capacity::Packets(QUEUE), 1);
    let switch = device.switch_mut().unwrap();
    let share = |value: f64| fixed(value * 2f64.powi(20));
    let parameters = [RATE_BPS, LEAST_US, share(ALPHA), share(BETA), share(GAMMA)];
    let out = vec![KeyMatch::Exact(Value::from(u64::from(OUT)))];
    insert(switch, "AlsIngress.xcp.xcp_parameters", out, "AlsIngress.xcp.set_xcp", &parameters);
    let any = vec![KeyMatch::Lpm { value: Value::from(0x0a00_0002u64), prefix_len: 32 }];
    insert(switch, "AlsIngress.forward.ipv4_lpm", any, "AlsIngress.forward.send", &[u64::from(OUT), 1, 2]);
    let registers = ["xcp_up", "xcp_down", "xcp_to_give", "xcp_to_take", "xcp_rtt"]
        .map(|name| program.register_by_name(name).unwrap_or_else(|| panic!("no register {name}")));
    let read = |device: &Device| {
        registers.map(|register| device.switch().unwrap().register_read(register, OUT as usize).unwrap().to_u64().unwrap())
    };

    let mut real =
        Real { bytes: 0.0, spread: 0.0, trips: 0.0, packets: 0.0, d_us: ASSUMED_RTT_US, d_error: 0.0, began: None, least_delay_s: None };
    let (mut link, mut updates, mut worst) = (Link::default(), 0, 0f64);
    let mut sent: Vec<(PortId, Nanos, Vec<u8>)> = Vec::new();
    let mut carried = Vec::new();
    let mut before = [0, 0, 0, 0, ASSUMED_RTT_US as u64];
    for (number, &now) in arrivals.iter().enumerate() {
        let rtt_us = if number % 10 == 9 { 0 } else { 20_000 + (100_000.0 * random.unit()) as u32 };
        let interval_us = 1_000 + (19_000.0 * random.unit()) as u32;
        let given = if number % 4 == 3 { UNCHANGED + (2e4 * random.unit()) as u64 - 10_000 } else { u64::MAX };
        device.poll(now, &mut sent);
        device.receive(now, 1, &frame(given, rtt_us, interval_us));
        link.serve_with(now, |_, delay| real.least_delay_s = Some(real.least_delay_s.unwrap_or(f64::MAX).min(delay)));
        let after = read(&device);
        let [up, down, mut give, mut take, d_us] = after;
        let update = real.arrive(now / 1000, before[4]);
        worst = worst.max((d_us as f64 - real.d_us).abs() / (1.0 + real.d_us * real.d_error));
        if let Some(Update { up: real_up, down: real_down, up_error, down_error }) = update {
            updates += 1;
            worst = worst.max((up as f64 / 65536.0 - real_up).abs() / up_error).max((down as f64 / 65536.0 - real_down).abs() / down_error);
        } else {
            assert_eq!([up, down, d_us], [before[0], before[1], before[4]], "they move at updates alone");
            [give, take] = [before[2], before[3]];
        }
        let mut says = given;
        if rtt_us != 0 {
            real.spread += f64::from(interval_us);
            real.trips += f64::from(rtt_us) * f64::from(interval_us);
            real.packets += 1.0;
            if update.is_none() {
                // [xi_p X - xi_n s] of what is left to give and take.
                let more = ((up * u64::from(interval_us)) >> 16).min(give);
                let fewer = ((down * FRAME_BYTES as u64) >> 16).min(take);
                says = given.min(UNCHANGED + more - fewer);
                assert!(after[2] <= give && after[3] <= take, "rests never grow between updates");
                let (spent, taken) = (give - after[2], take - after[3]);
                if says != given {
                    assert_eq!([spent, taken], [more, fewer]);
                } else if spent < give && taken < take {
                    assert_eq!(i128::from(spent) - i128::from(taken), i128::from(given) - i128::from(UNCHANGED));
                }
            }
        }
        real.bytes += FRAME_BYTES as f64;
        before = after;
        if link.waiting.len() < QUEUE as usize {
            link.admit(now);
            carried.push((update.is_none().then_some(says), given));
        }
    }
    device.poll(Nanos::MAX, &mut sent);
    assert_eq!(sent.len(), carried.len());
    for ((_, _, frame), (says, given)) in sent.iter().zip(carried) {
        let there = u64::from_be_bytes(frame[CONGESTION + 4..CONGESTION + 12].try_into().unwrap());
        assert!(there <= given && says.is_none_or(|says| says == there), "{there} in place of {says:?}");
        assert_eq!(frame[40..42] == [0, 0], there != given, "the checksum would not fit");
    }
    (updates, worst)
}

#[test]
fn xcp_in_p4_follows_its_equations() {
    let program = compiled(&["xcp"]);
    let mut random = Random(2002);
    for (name, arrivals) in loads(&mut random) {
        // The switch's clock counts microseconds.
        let arrivals: Vec<Nanos> = arrivals.iter().map(|at| at / 1000 * 1000).collect();
        let (updates, worst) = follow(&program, &arrivals, &mut random);
        println!("{name:14} {updates:6} updates, largest error {worst:.2} of its bound");
        assert!(updates > 600 && worst <= 1.0, "{name}: {updates} updates, an error {worst} times its bound");
    }
}
