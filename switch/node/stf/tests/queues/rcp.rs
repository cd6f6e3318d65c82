//! RCP in `p4src/schemes/rcp/rcp.p4` against its equation in real numbers (Dukkipati et al. 2005, equation 2), at a 10 Mb/s link. Packets have rate headers
//! with round trips of 20 to 120 ms.
//!
//! After each update the program's R is compared with the equation's, from the R before it and with the delay and the d of the test's own
//! link; and each packet must carry the R of its arrival.

use std::sync::Arc;

use fairlane_device::pipeline::{KeyMatch, Program, Value};
use fairlane_device::{Capacity, Nanos, PortId};

use crate::{compiled, device, fixed, insert, ipv4_frame, loads, Link, Random, FRAME_BYTES, OUT, RATE_BPS};

const T_S: f64 = 0.01;
const ALPHA: f64 = 0.4;
const BETA: f64 = 0.4;
const ASSUMED_RTT_US: f64 = 200_000.0;
const QUEUE: u32 = 200;
/// RTP's header behind those of Ethernet, IPv4 and UDP.
const RTP: usize = 42;
const RATE: usize = RTP + 12;

fn frame(rtt_us: u32) -> Vec<u8> {
    let mut frame = ipv4_frame(0x0a00_0002);
    frame[38..40].copy_from_slice(&((FRAME_BYTES - 34) as u16).to_be_bytes());
    frame[40..42].copy_from_slice(&[0xab, 0xcd]);
    frame[RTP] = 0x90;
    frame[RATE..RATE + 4].copy_from_slice(&[0x52, 0x43, 0, 3]);
    frame[RATE + 4..RATE + 12].copy_from_slice(&u64::MAX.to_be_bytes());
    frame[RATE + 12..RATE + 16].copy_from_slice(&rtt_us.to_be_bytes());
    frame
}

/// In real numbers; R itself is the program's of before.
#[derive(Default)]
struct Real {
    bytes: usize,
    rtt_us: Option<f64>,
    due: Nanos,
}

impl Real {
    /// R after the update that is due, if one is; and how far the program's may be from it.
    fn arrive(&mut self, now: Nanos, rate: f64, delay_s: f64) -> Option<(f64, f64)> {
        let period = (T_S * 1e9) as Nanos;
        if self.due == 0 {
            self.due = now + period;
        }
        if now < self.due {
            return None;
        }
        let elapsed_s = (now - self.due + period) as f64 / 1e9;
        self.due = now + period;
        let capacity = RATE_BPS as f64;
        let (d_s, busy_s) = (self.rtt_us.unwrap_or(ASSUMED_RTT_US) / 1e6, 8.0 * self.bytes as f64 / capacity);
        self.bytes = 0;
        let [part, busy, waits] = [elapsed_s, busy_s, delay_s].map(|time_s| (time_s / d_s).min(8.0));
        let g = (ALPHA * (part - busy) - BETA * part * waits).min(4.0);
        let next = (rate * (1.0 + g)).clamp(capacity / 1024.0, capacity);
        // Terms are cut off at 2^-20, those over d have a relative error of 2^-15, and d a step of a microsecond.
        let terms = ALPHA * (part + busy) + BETA * part * waits;
        Some((next, 2.0 + rate * (4.0 / 2f64.powi(20) + terms * (2f64.powi(-14) + 2.0 / (d_s * 1e6)))))
    }

    fn count(&mut self, rtt_us: u32) {
        self.bytes += FRAME_BYTES;
        let rtt = f64::from(rtt_us);
        self.rtt_us = Some(self.rtt_us.map_or(rtt, |d| d + (rtt - d) / 64.0));
    }
}

/// Updates, and the largest part of the bound that an error was.
fn follow(program: &Arc<Program>, arrivals: &[Nanos], random: &mut Random) -> (usize, f64) {
    let mut device = device(program, Capacity::Packets(QUEUE), 1);
    let switch = device.switch_mut().unwrap();
    let share = |value: f64| fixed(value * 2f64.powi(20));
    let byte = fixed(2f64.powi(40) * 8e6 / RATE_BPS as f64);
    let parameters = [RATE_BPS, fixed(T_S * 1e6), share(ALPHA), share(BETA), byte];
    let out = vec![KeyMatch::Exact(Value::from(u64::from(OUT)))];
    insert(switch, "AlsIngress.rcp.rcp_parameters", out, "AlsIngress.rcp.set_rcp", &parameters);
    let any = vec![KeyMatch::Lpm { value: Value::from(0x0a00_0002u64), prefix_len: 32 }];
    insert(switch, "AlsIngress.forward.ipv4_lpm", any, "AlsIngress.forward.send", &[u64::from(OUT), 1, 2]);
    let register = program.register_by_name("rcp_rate").expect("register rcp_rate");

    let (mut real, mut link, mut updates, mut worst) = (Real::default(), Link::default(), 0, 0f64);
    let mut sent: Vec<(PortId, Nanos, Vec<u8>)> = Vec::new();
    let mut carried = Vec::new();
    let mut before = RATE_BPS / 16;
    for &now in arrivals {
        let rtt_us = 20_000 + (100_000.0 * random.unit()) as u32;
        device.poll(now, &mut sent);
        device.receive(now, 1, &frame(rtt_us));
        link.serve(now);
        let rate = device.switch().unwrap().register_read(register, OUT as usize).unwrap().to_u64().unwrap();
        match real.arrive(now, before as f64, link.qdelay) {
            Some((expected, bound)) => {
                updates += 1;
                worst = worst.max((rate as f64 - expected).abs() / bound);
            }
            None => assert_eq!(rate, before, "R moves at updates alone"),
        }
        real.count(rtt_us);
        before = rate;
        if link.waiting.len() < QUEUE as usize {
            link.admit(now);
            carried.push(rate);
        }
    }
    device.poll(Nanos::MAX, &mut sent);
    assert_eq!(sent.len(), carried.len());
    for ((_, _, frame), rate) in sent.iter().zip(carried) {
        assert_eq!(frame[RATE + 4..RATE + 12], rate.to_be_bytes());
        assert_eq!(frame[40..42], [0, 0], "the checksum would not fit");
    }
    (updates, worst)
}

#[test]
fn rcp_in_p4_follows_its_equation() {
    let program = compiled(&["rcp"]);
    let mut random = Random(2005);
    for (name, arrivals) in loads(&mut random) {
        // The switch's clock counts microseconds.
        let arrivals: Vec<Nanos> = arrivals.iter().map(|at| at / 1000 * 1000).collect();
        let (updates, worst) = follow(&program, &arrivals, &mut random);
        println!("{name:14} {updates:6} updates, largest error {worst:.2} of its bound");
        assert!(updates > 4000 && worst <= 1.0, "{name}: {updates} updates, an error {worst} times its bound");
    }
}
