//! Cost of a lookup over the kind of match and the number of entries, and of an insertion.
//!
//! `cargo bench -p fairlane-pipeline --bench tables [-- --json FILE --quick --only WORD]`
//!
//! Each table stands alone in a program; a packet goes through ingress and egress with one lookup, which mostly hits (entries and
//! keys are random, of a fixed seed). Actions have a port and one of 256 next hops for arguments. What the same program
//! costs without the table is printed first. The memory of an entry is told of the first table, or of the one that `--only` names.

#[path = "../tests/common/mod.rs"]
mod common;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::hint::black_box;

use common::*;
use fairlane_pipeline::*;
use serde_json::json;

fairlane_memory::huge_pages!();

const SIZES: [usize; 3] = [10, 1000, 100_000];
/// Frames of one pass; more than a cache of the first level holds entries for.
const FRAMES: usize = 16_384;
const PASSES: usize = 15;
const QUICK_PASSES: usize = 3;
/// Nanoseconds of CPU of a pass at least: the kernel counts it by ticks of some milliseconds.
const PASS: f64 = 100e6;
/// How much a packet may cost more with most entries than with fewest.
const FLAT: f64 = 2.0;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
    fn wide(&mut self) -> u128 {
        u128::from(self.next()) << 64 | u128::from(self.next())
    }
}

/// A header's fields: name and width.
const FIELDS: [(&str, u64); 6] = [
    ("src", 128),
    ("dst", 32),
    ("port", 16),
    ("from", 16),
    ("proto", 8),
    // No key; written by the action.
    ("hop", 32),
];

/// The values of one packet, in the order of [`FIELDS`].
type Key = [u128; 5];

type Frame = [u8; 64];

fn frame(key: &Key) -> Frame {
    let (mut out, mut at) = ([0; 64], 0);
    for (v, (_, width)) in key.iter().zip(FIELDS) {
        let n = width as usize / 8;
        out[at..at + n].copy_from_slice(&v.to_be_bytes()[16 - n..]);
        at += n;
    }
    out
}

/// One kind of table: its match type, key fields, and how to make an entry together with a packet that hits it.
struct Case {
    name: &'static str,
    match_type: &'static str,
    key: &'static [(&'static str, &'static str)],
    /// So many actions with different arguments.
    hops: u64,
    make: fn(&mut Random) -> (Vec<KeyMatch>, Key),
}

fn is(v: u128) -> KeyMatch {
    KeyMatch::Exact(Value::from(v))
}

/// The first `n` of `width` bits.
fn top(n: u64, width: u64) -> u128 {
    (u128::MAX >> (128 - width)) & !((1_u128 << (width - n)) - 1)
}

fn prefix(v: u128, n: u64, width: u64) -> KeyMatch {
    KeyMatch::Lpm { value: Value::from(v & top(n, width)), prefix_len: n as u32 }
}

fn masked(v: u128, mask: u128) -> KeyMatch {
    KeyMatch::Ternary { value: Value::from(v & mask), mask: Value::from(mask) }
}

fn range(low: u64, high: u64) -> KeyMatch {
    KeyMatch::Range { low: Value::from(low), high: Value::from(high) }
}

/// A random packet.
fn any(r: &mut Random) -> Key {
    [r.wide(), r.below(1 << 32).into(), r.below(1 << 16).into(), r.below(1 << 16).into(), r.below(4).into()]
}

/// Different next hops in a table.
const HOPS: u64 = 256;

const CASES: [Case; 10] = [
    Case {
        name: "exact, 32 bits",
        match_type: "exact",
        key: &[("dst", "exact")],
        hops: HOPS,
        make: |r| {
            let k = any(r);
            (vec![is(k[1])], k)
        },
    },
    Case {
        name: "exact, 200 bits in 5 fields",
        match_type: "exact",
        key: &[("src", "exact"), ("dst", "exact"), ("port", "exact"), ("from", "exact"), ("proto", "exact")],
        hops: HOPS,
        make: |r| {
            let k = any(r);
            (k.map(is).to_vec(), k)
        },
    },
    Case {
        name: "LPM, 32 bits, /8 to /32",
        match_type: "lpm",
        key: &[("dst", "lpm")],
        hops: HOPS,
        make: |r| {
            let k = any(r);
            // Mostly /24 and thereabouts, as in the tables of routers.
            let n = if r.below(2) == 0 { 24 } else { 8 + r.below(25) };
            (vec![prefix(k[1], n, 32)], k)
        },
    },
    Case {
        name: "LPM, 32 bits, all hops differ",
        match_type: "lpm",
        key: &[("dst", "lpm")],
        hops: u32::MAX as u64,
        make: |r| {
            let k = any(r);
            let n = if r.below(2) == 0 { 24 } else { 8 + r.below(25) };
            (vec![prefix(k[1], n, 32)], k)
        },
    },
    Case {
        name: "LPM, 128 bits, /16 to /128",
        match_type: "lpm",
        key: &[("src", "lpm")],
        hops: HOPS,
        make: |r| {
            let k = any(r);
            (vec![prefix(k[0], 16 + r.below(113), 128)], k)
        },
    },
    Case {
        name: "LPM with an exact field",
        match_type: "lpm",
        key: &[("proto", "exact"), ("dst", "lpm")],
        hops: HOPS,
        make: |r| {
            let k = any(r);
            (vec![is(k[4]), prefix(k[1], 8 + r.below(25), 32)], k)
        },
    },
    Case {
        name: "ternary, 225 masks",
        match_type: "ternary",
        key: &[("dst", "ternary"), ("src", "ternary")],
        hops: HOPS,
        make: |r| {
            let k = any(r);
            let mask = |r: &mut Random, width| top(width - 8 - r.below(15), width);
            (vec![masked(k[1], mask(r, 32)), masked(k[0], mask(r, 128))], k)
        },
    },
    Case {
        name: "optional, 4 fields",
        match_type: "ternary",
        key: &[("dst", "optional"), ("port", "optional"), ("from", "optional"), ("proto", "optional")],
        hops: HOPS,
        make: |r| {
            let k = any(r);
            let given = r.below(8);
            let maybe = |bit: u64, v| {
                if given & bit == 0 {
                    is(v)
                } else {
                    KeyMatch::Any
                }
            };
            (vec![is(k[1]), maybe(1, k[2]), maybe(2, k[3]), maybe(4, k[4])], k)
        },
    },
    Case {
        name: "range, 16 bits, narrow and wide",
        match_type: "range",
        key: &[("port", "range"), ("from", "range")],
        hops: HOPS,
        make: |r| {
            let mut k = any(r);
            let mut pick = |most: u64| {
                let low = r.below(65_536);
                let high = (low + r.below(most)).min(65_535);
                (range(low, high), u128::from(low + (high - low) / 2))
            };
            let (first, second) = (pick(256), pick(65_536));
            (k[2], k[3]) = (first.1, second.1);
            (vec![first.0, second.0], k)
        },
    },
    Case {
        name: "ternary, LPM, range, optional",
        match_type: "range",
        key: &[("dst", "ternary"), ("src", "lpm"), ("port", "range"), ("proto", "optional")],
        hops: HOPS,
        make: |r| {
            let k = any(r);
            let port = k[2] as u64;
            let ports = [(0, 65_535), (0, 1023), (1024, 65_535), (port, port)];
            let (low, high) = ports[r.below(4) as usize];
            let mut k = k;
            k[2] = k[2].clamp(low.into(), high.into());
            let proto = if r.below(2) == 0 { is(k[4]) } else { KeyMatch::Any };
            let dst = masked(k[1], top(32 - 8 * r.below(2), 32));
            (vec![dst, prefix(k[0], 48 + 16 * r.below(2), 128), range(low, high), proto], k)
        },
    },
];

fn build(case: Option<&Case>) -> Switch {
    let mut b = Build::new();
    b.header("k", &FIELDS).extracts(&["k"]);
    b.action(
        "to",
        &[("port", 9), ("hop", 32)],
        &[
            assign(std("egress_spec"), json!({"type": "runtime_data", "value": 0})),
            assign(field("k", "hop"), json!({"type": "runtime_data", "value": 1})),
        ],
    );
    b.action("miss", &[], &[set_port(2)]);
    match case {
        None => b.always(0, "go", &[set_port(1)], None),
        Some(case) => {
            let key: Vec<_> = case.key.iter().map(|(field, kind)| ("k", *field, *kind)).collect();
            b.table(0, "t", case.match_type, &key, &["to", "miss"], None);
            b.edit(|r| r["pipelines"][0]["tables"][0]["max_size"] = json!(10_000_000));
            &mut b
        }
    };
    b.switch()
}

/// Nanoseconds this process has been on a CPU: a busy machine does not count.
fn cpu_time() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0.0)
}

/// A switch and frames for it, and what has been measured.
struct Run {
    switch: Switch,
    frames: Vec<Frame>,
    /// Nanoseconds of CPU per packet, of each pass.
    times: Vec<f64>,
    packets: usize,
    hits: usize,
}

impl Run {
    fn new(switch: Switch, frames: Vec<Frame>) -> Run {
        Run { switch, frames, times: Vec::new(), packets: 0, hits: 0 }
    }

    fn pass(&mut self) {
        let (mut iout, mut eout) = (IngressOut::default(), EgressOut::default());
        let (start, before) = (cpu_time(), self.packets);
        while cpu_time() - start < PASS {
            for f in &self.frames {
                self.switch.ingress(0, 0, black_box(&f[..]), &mut iout);
                if let Some(item) = iout.queued.pop() {
                    self.packets += 1;
                    self.hits += usize::from(item.egress_port() == 1);
                    let info = QueueInfo::default();
                    self.switch.egress(0, item, info, &mut eout);
                    black_box(&eout.emitted);
                }
            }
        }
        let packets = (self.packets - before).max(1);
        self.times.push((cpu_time() - start) / packets as f64);
    }

    /// The cost of a packet over another run's. Of passes next to each other, since the machine's pace changes within seconds.
    fn ratio(&self, to: &Run) -> f64 {
        median(self.times.iter().zip(&to.times).map(|(a, b)| a / b))
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Measures some in turns, so that a change of the machine's pace falls on all.
fn measure(runs: &mut [Run], passes: usize) {
    for _ in 0..passes {
        for run in &mut *runs {
            run.pass();
        }
    }
}

/// Bytes of memory that this process has.
fn memory() -> f64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split_whitespace().nth(1).and_then(|n| n.parse().ok());
    pages.unwrap_or(0.0) * 4096.0
}

/// A filled table, packets for it, and what an entry cost.
struct Filled {
    switch: Switch,
    keys: Vec<Key>,
    /// Nanoseconds of CPU.
    insert: f64,
    bytes: f64,
}

fn fill(case: &Case, size: usize) -> Filled {
    let mut sw = build(Some(case));
    let t = table_id(&sw, "t");
    let mut keys = Vec::with_capacity(size);
    let mut fresh = Vec::with_capacity(size);
    let mut seen = BTreeSet::new();
    let mut random = Random(7);
    while keys.len() < size {
        let (key, packet) = (case.make)(&mut random);
        fresh.push(seen.insert(format!("{key:?}")));
        if fresh.last() == Some(&true) {
            keys.push(packet);
        }
    }
    // The same again, so that nothing but the table takes memory.
    let (mut random, mut more) = (Random(7), Random(8));
    let (mut time, before) = (0.0, memory());
    for piece in fresh.chunks(1000) {
        let mut entries = Vec::new();
        for fresh in piece {
            let (key, _) = (case.make)(&mut random);
            let priority = 1 + more.below(1000) as i32;
            let hop = more.below(case.hops);
            if *fresh {
                let ordered = matches!(case.match_type, "ternary" | "range");
                let priority = if ordered { priority } else { 0 };
                entries.push(entry(key, priority, call(&sw, "to", &[1, hop])));
            }
        }
        let start = cpu_time();
        for e in entries {
            sw.table_insert(0, t, e).expect("an entry of its own");
        }
        time += cpu_time() - start;
    }
    let bytes = (memory() - before) / size as f64;
    drop(seen);
    Filled { switch: sw, keys, insert: time / size as f64, bytes }
}

fn main() {
    let to = std::env::args().skip_while(|word| word != "--json").nth(1);
    let quick = std::env::args().any(|word| word == "--quick");
    let only = std::env::args().skip_while(|word| word != "--only").nth(1);
    let passes = if quick { QUICK_PASSES } else { PASSES };
    let mut random = Random(1);
    let blank: Vec<Frame> = (0..FRAMES).map(|_| frame(&any(&mut random))).collect();
    let mut without = [Run::new(build(None), blank)];
    measure(&mut without, passes);
    let bare = median(without[0].times.iter().copied());
    println!("without a table: {bare:.0} ns of CPU per packet (ingress and egress, 64 B)\n");
    println!(
        "{:32}{:>9}{:>12}{:>12}{:>8}{:>11}{:>13}{:>9}",
        "table", "entries", "ns/packet", "ns/lookup", "hits", "ns/insert", "bytes/entry", "flat"
    );
    let mut rows = Vec::new();
    let named = |case: &&Case| only.as_ref().is_none_or(|word| case.name.contains(word.as_str()));
    for case in CASES.iter().filter(named) {
        let mut inserts = Vec::new();
        let mut runs: Vec<Run> = SIZES
            .iter()
            .map(|&size| {
                let filled = fill(case, size);
                // Of few insertions the time is too short to tell.
                // Tables after the first get memory that others gave back, which would not show.
                let many = size >= 100_000;
                let bytes = (many && rows.is_empty()).then_some(filled.bytes);
                inserts.push((many.then_some(filled.insert), bytes));
                let pick = |_| frame(&filled.keys[random.below(size as u64) as usize]);
                Run::new(filled.switch, (0..FRAMES).map(pick).collect())
            })
            .collect();
        measure(&mut runs, passes);
        for ((run, size), insert) in runs.iter().zip(SIZES).zip(inserts) {
            let packet = median(run.times.iter().copied());
            let flat = run.ratio(&runs[0]);
            let hits = run.hits as f64 / run.packets.max(1) as f64;
            let mut line = String::new();
            let _ = write!(line, "{:32}{size:>9}{packet:>12.0}{:>12.0}{:>7.0}%", case.name, packet - bare, 100.0 * hits);
            let shown = |n: Option<f64>| n.map_or("-".to_string(), |n| format!("{n:.0}"));
            let (insert, bytes) = insert;
            let _ = write!(line, "{:>11}{:>13}{:>9.2}", shown(insert), shown(bytes), flat);
            println!("{line}");
            rows.push(json!({"table": case.name, "entries": size, "ns_packet": packet, "ns_without": bare, "hits": hits,
                             "ns_insert": insert, "bytes_per_entry": bytes, "flat": flat}));
        }
    }
    println!(
        "\nflat: the cost of a packet, over that with {} entries, the median over passes next to each other (goal for LPM: below {FLAT})",
        SIZES[0]
    );
    if let Some(path) = to {
        let text = serde_json::to_string_pretty(&json!({"flat_goal": FLAT, "rows": rows})).unwrap_or_default();
        if let Err(error) = std::fs::write(&path, text + "\n") {
            eprintln!("{path}: {error}");
            std::process::exit(1);
        }
    }
}
