//! Queue managements in `p4src/als.p4` against their real-valued algorithms, on the same recorded arrivals: 100,000 packets each, one
//! module for each scheme.

#![allow(clippy::disallowed_methods)] // within a tolerance

mod abc;
mod codel;
mod dualpi2;
mod pi2;
mod pie;
mod probability;
mod rcp;
mod red;
mod step;
mod xcp;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use fairlane_device::pipeline::{ActionCall, KeyMatch, Program, Switch, TableAction, TableEntry, Value};
use fairlane_device::{Capacity, Device, DeviceConfig, Nanos, PortConfig, PortId};

const RATE_BPS: u64 = 10_000_000;
const FRAME_BYTES: usize = 1000;
const SERVICE: Nanos = FRAME_BYTES as Nanos * 8 * 1_000_000_000 / RATE_BPS;
const ARRIVALS: usize = 100_000;
const OUT: PortId = 2;

/// SplitMix64: enough for drawing arrivals and the reference's drops.
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The 32 bits that a program draws next, of a switch with the seed that this began with.
    fn draw(&mut self) -> f64 {
        (self.bits() >> 32) as f64 / (1u64 << 32) as f64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }
}

/// `p4src/als.p4` with these macros, in which a name in small letters is that of a scheme: of a folder in `p4src/schemes`.
fn compiled(names: &[&str]) -> Arc<Program> {
    let p4src = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../p4src");
    let mut options = fairlane_compiler::Options::default();
    for &name in names {
        let folder = p4src.join("schemes").join(name);
        if name.starts_with(|first: char| first.is_ascii_lowercase()) {
            assert!(folder.is_dir(), "no scheme {name}");
            options.include.extend([folder, p4src.clone()]);
            options.define.push("CHOSEN".to_owned());
        } else {
            options.define.push(name.to_owned());
        }
    }
    let outcome = fairlane_compiler::compile(&p4src.join("als.p4"), &options);
    let json = outcome.json.expect("als.p4 compiles");
    Arc::new(Program::from_json(&json.to_string()).expect("our JSON loads"))
}

fn insert(switch: &mut Switch, table: &str, key: Vec<KeyMatch>, action: &str, args: &[u64]) {
    let program = switch.program().clone();
    let table = program.table_by_name(table).unwrap_or_else(|| panic!("no table {table}"));
    let action = program.action_by_name(action).unwrap_or_else(|| panic!("no action {action}"));
    let args = args.iter().map(|&value| Value::from(value)).collect();
    let action = TableAction::Call(ActionCall { action, args });
    switch.table_insert(0, table, TableEntry { key, priority: 0, action, idle_timeout: 0 }).expect("entry is accepted");
}

fn ipv4_frame(destination: u32) -> Vec<u8> {
    let mut frame = vec![0u8; FRAME_BYTES];
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14..34].copy_from_slice(&[0x45, 0, 3, 0xda, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 0, 0, 0, 0]);
    frame[30..34].copy_from_slice(&destination.to_be_bytes());
    let sum: u32 = frame[14..34].chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    frame
}

const TOS: usize = 15;

/// The same of an ECN-capable transport: `code` is 1 or 2.
fn capable(mut frame: Vec<u8>, code: u8) -> Vec<u8> {
    frame[TOS] = code;
    // RFC 1624: the header's sum with it
    let sum = !u16::from_be_bytes([frame[24], frame[25]]) as u32 + u32::from(code);
    frame[24..26].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    frame
}

/// A switch with `program` that sends to `OUT` what comes in at port 1, at `RATE_BPS`.
fn device(program: &Arc<Program>, capacity: Capacity, seed: u64) -> Device {
    let mut device = Device::new(DeviceConfig { seed, ..DeviceConfig::default() });
    device.set_port(1, PortConfig::default()).unwrap();
    device.set_port(OUT, PortConfig { rate_bps: Some(RATE_BPS), capacity, ..PortConfig::default() }).unwrap();
    device.load(0, program.clone()).expect("memory");
    device
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Admitted,
    Marked,
    Dropped,
}

/// A FIFO link, and the delay that it shows to a controller: the wait of the last packet that left, 0 if it left nothing behind.
#[derive(Default)]
struct Link {
    /// Arrivals and starts of packets that have not begun to leave.
    waiting: VecDeque<(Nanos, Nanos)>,
    free: Nanos,
    qdelay: f64,
    waited_s: f64,
}

impl Link {
    fn serve(&mut self, until: Nanos) {
        self.serve_with(until, |_, _| ());
    }

    /// departed: gets each packet's instant, and the delay from then on.
    fn serve_with(&mut self, until: Nanos, mut departed: impl FnMut(Nanos, f64)) {
        while let Some(&(arrival, start)) = self.waiting.front() {
            if start > until {
                break;
            }
            self.waiting.pop_front();
            let wait = (start - arrival) as f64 / 1e9;
            self.waited_s += wait;
            self.qdelay = if self.waiting.is_empty() { 0.0 } else { wait };
            departed(start, self.qdelay);
        }
    }

    fn admit(&mut self, now: Nanos) {
        let start = self.free.max(now);
        self.free = start + SERVICE;
        self.waiting.push_back((now, start));
    }
}

#[derive(Default)]
struct Totals {
    drops: usize,
    marks: usize,
    mean_wait_s: f64,
}

/// The loads at which a scheme and its real-valued algorithm are compared.
fn loads(random: &mut Random) -> [(&'static str, Vec<Nanos>); 5] {
    [
        ("light 0.8", poisson(0.8, random)),
        ("heavy 0.98", poisson(0.98, random)),
        ("overload 1.05", poisson(1.05, random)),
        ("overload 1.4", poisson(1.4, random)),
        ("idle gaps", bursts(random)),
    ]
}

/// To the nearest integer.
fn fixed(value: f64) -> u64 {
    value.round() as u64
}

fn poisson(load: f64, random: &mut Random) -> Vec<Nanos> {
    let mut now = 1_000_000.0;
    (0..ARRIVALS)
        .map(|_| {
            now += random.exponential(SERVICE as f64 / load);
            now as Nanos
        })
        .collect()
}

/// Bursts of 300 packets at 1.5 times the link rate, with silences of 0.1 s mean between them.
fn bursts(random: &mut Random) -> Vec<Nanos> {
    let mut now = 1_000_000.0;
    (0..ARRIVALS)
        .map(|i| {
            now += random.exponential(SERVICE as f64 / 1.5);
            if i % 300 == 299 {
                now += random.exponential(100e6);
            }
            now as Nanos
        })
        .collect()
}
