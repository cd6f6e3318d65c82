//! DualPI2 in `p4src/dualpi2.p4` and `p4src/pi2.p4` against the pseudocode of RFC 9332 in real numbers, at a 10 Mb/s link.
//!
//! [`DualPi2`] is figures 2, 3, 5, 7 and 8 of [RFC 9332 sec A], and the scheduler of figure 10, line by line. It reads no P4.

use std::collections::VecDeque;

use fairlane_device::Nanos;

use crate::{Totals, SERVICE};

/// [RFC 9332 sec A.1] figure 2, in seconds.
const TARGET_S: f64 = 0.015;
const RTT_MAX_S: f64 = 0.1;
const K: f64 = 2.0;
const P_C_MAX: f64 = 1.0 / (K * K);
const T_UPDATE_S: f64 = TARGET_S;
const ALPHA: f64 = 0.1 * T_UPDATE_S / (RTT_MAX_S * RTT_MAX_S);
const BETA: f64 = 0.3 / RTT_MAX_S;
const MIN_TH_S: f64 = 800e-6;
const RANGE_S: f64 = 400e-6;
const TH_LEN: usize = 1;
const P_L_MAX: f64 = 1.0;
/// [RFC 9332 sec A.2]: "For the public Internet, a good value for tshift is 50 ms."
const TSHIFT_S: f64 = 0.05;

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

/// [RFC 9332 sec A.1] figure 5.
fn laqm(qdelay: f64) -> f64 {
    if qdelay >= MIN_TH_S + RANGE_S {
        1.0
    } else if qdelay > MIN_TH_S {
        (qdelay - MIN_TH_S) / RANGE_S
    } else {
        0.0
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Sent { wait: Nanos, marked: bool },
    Dropped,
}

#[derive(Default)]
struct DualPi2 {
    lq: Queue,
    cq: Queue,
    /// p'
    base: f64,
    prevq: f64,
    fates: Vec<Option<Fate>>,
}

impl DualPi2 {
    /// Figure 3, without a limit.
    fn enqueue(&mut self, packet: Packet) {
        self.fates.resize(packet.number + 1, None);
        if packet.ecn % 2 == 1 { &mut self.lq } else { &mut self.cq }.packets.push_back(packet);
    }

    /// Figure 10, lines 28 to 33; from an empty queue nothing can be chosen.
    fn schedules_lq(&self, now: Nanos) -> bool {
        !self.lq.packets.is_empty() && (self.cq.packets.is_empty() || self.lq.time(now) + TSHIFT_S >= self.cq.time(now))
    }

    /// Figure 7: true if a packet was sent.
    fn dequeue(&mut self, now: Nanos) -> bool {
        let (p_cl, p_c) = (K * self.base, self.base * self.base);
        loop {
            let is_lq = self.schedules_lq(now);
            let queue = if is_lq { &mut self.lq } else { &mut self.cq };
            let Some(packet) = queue.packets.pop_front() else { return false };
            let wait = now - packet.arrival;
            let (drop, marked);
            if is_lq {
                if p_cl < P_L_MAX {
                    // "if the queue is only 1 packet": with the one that leaves
                    let native = if queue.packets.len() + 1 > TH_LEN { laqm(seconds(wait)) } else { 0.0 };
                    (drop, marked) = (false, queue.recur(native.max(p_cl)));
                } else {
                    drop = queue.recur(p_c);
                    marked = !drop && queue.recur(p_cl);
                }
            } else {
                let happens = queue.recur(p_c);
                drop = happens && (packet.ecn == NOT_ECT || p_c >= P_C_MAX);
                marked = happens && !drop;
            }
            self.fates[packet.number] = Some(if drop { Fate::Dropped } else { Fate::Sent { wait, marked } });
            if !drop {
                return true;
            }
        }
    }

    /// Figure 8.
    fn update(&mut self, curq: f64) {
        self.base = (self.base + ALPHA * (curq - TARGET_S) + BETA * (curq - self.prevq)).clamp(0.0, 1.0);
        self.prevq = curq;
    }

    /// When the head packet of either queue arrived.
    fn first_arrival(&self) -> Option<Nanos> {
        [&self.lq, &self.cq].into_iter().filter_map(|queue| queue.packets.front()).map(|head| head.arrival).min()
    }
}
