//! Time per packet through ingress and egress: a router of ten tables with RED-like arithmetic,
//! and lookups in large tables. Prints nanoseconds per packet.
//!
//! `cargo bench -p fairlane-pipeline`

#[path = "../tests/common/mod.rs"]
mod common;

use common::*;
use fairlane_pipeline::*;
use serde_json::json;
use std::hint::black_box;

fairlane_memory::huge_pages!();

const FRAMES: u64 = 300_000;

fn router() -> Build {
    let mut b = Build::new();
    b.header("eth", &[("dst", 48), ("src", 48), ("type", 16)]);
    b.header(
        "ip",
        &[
            ("version", 4),
            ("ihl", 4),
            ("tos", 8),
            ("len", 16),
            ("id", 16),
            ("flags", 3),
            ("frag", 13),
            ("ttl", 8),
            ("proto", 8),
            ("sum", 16),
            ("src", 32),
            ("dst", 32),
        ],
    );
    b.header("udp", &[("sport", 16), ("dport", 16), ("len", 16), ("sum", 16)]);
    b.metadata("m", &[("avg", 64), ("depth", 32), ("p", 64), ("count", 32), ("drop", 1), ("port", 9), ("x", 32)]);
    b.state("start", &[Build::extract("eth")], &[field("eth", "type")], &[("0x0800", Some("ip")), ("default", None)]);
    b.state("ip", &[Build::extract("ip")], &[field("ip", "proto")], &[("0x11", Some("udp")), ("default", None)]);
    b.state("udp", &[Build::extract("udp")], &[], &[("default", None)]);
    let input: Vec<_> =
        ["version", "ihl", "tos", "len", "id", "flags", "frag", "ttl", "proto", "src", "dst"].map(|f| field("ip", f)).into();
    b.push("calculations", json!({"name": "c", "id": 0, "algo": "csum16", "input": input}));
    b.push(
        "checksums",
        json!({"name": "s", "id": 0, "target": ["ip", "sum"], "type": "generic", "calculation": "c",
        "verify": true, "update": true, "if_cond": expr("==", field("ip", "version"), hex(4))}),
    );
    for (i, r) in ["avg", "count", "last"].iter().enumerate() {
        b.push("register_arrays", json!({"name": r, "id": i, "size": 64, "bitwidth": 64}));
    }
    let reg = |n: &str| json!({"type": "register_array", "value": n});
    let param = |i: u64| json!({"type": "runtime_data", "value": i});
    let mask = |e| wrapped(expr("&", e, hex(u64::MAX)));
    b.action("nop", &[], &[]);
    b.action(
        "forward",
        &[("port", 9), ("mac", 48)],
        &[
            assign(std("egress_spec"), param(0)),
            assign(field("eth", "src"), field("eth", "dst")),
            assign(field("eth", "dst"), param(1)),
            assign(field("ip", "ttl"), wrapped(expr("&", expr("+", field("ip", "ttl"), hex(255)), hex(255)))),
        ],
    );
    b.action("tag", &[("x", 32)], &[assign(field("m", "x"), wrapped(expr("&", expr("+", field("m", "x"), param(0)), hex(0xffff_ffff))))]);
    // avg += (depth - avg) >> 9, in fixed point, and a probability.
    b.action(
        "red",
        &[],
        &[
            assign(field("m", "depth"), hex(12)),
            prim("register_read", &[field("m", "avg"), reg("avg"), std("egress_spec")]),
            assign(
                field("m", "avg"),
                mask(expr(
                    "-",
                    expr("+", field("m", "avg"), expr("<<", field("m", "depth"), hex(7))),
                    expr(">>", field("m", "avg"), hex(9)),
                )),
            ),
            prim("register_write", &[reg("avg"), std("egress_spec"), field("m", "avg")]),
            prim("register_read", &[field("m", "p"), reg("last"), std("egress_spec")]),
            assign(field("m", "p"), mask(expr("*", field("m", "avg"), hex(12345)))),
            assign(field("m", "drop"), wrapped(expr("&", expr(">>", field("m", "p"), hex(63)), hex(1)))),
            prim("register_read", &[field("m", "count"), reg("count"), std("egress_spec")]),
            assign(field("m", "count"), wrapped(expr("&", expr("+", field("m", "count"), hex(1)), hex(0xffff_ffff)))),
            prim("register_write", &[reg("count"), std("egress_spec"), field("m", "count")]),
        ],
    );
    b.table(0, "port", "exact", &[("standard_metadata", "ingress_port", "exact")], &["tag", "nop"], Some("mac"));
    b.table(0, "mac", "exact", &[("eth", "dst", "exact")], &["tag", "nop"], Some("acl"));
    b.table(0, "acl", "ternary", &[("ip", "src", "ternary"), ("udp", "dport", "ternary")], &["tag", "nop"], Some("valid"));
    b.edit(|r| {
        r["pipelines"][0]["conditionals"] = json!([{"name": "valid", "id": 0, "true_next": "route", "false_next": null,
            "expression": expr("and", expr("==", field("ip", "$valid$"), hex(1)), expr(">", field("ip", "ttl"), hex(1)))}]);
    });
    b.table(0, "route", "lpm", &[("ip", "dst", "lpm")], &["forward", "nop"], Some("tbl_red"));
    b.table(0, "tbl_red", "exact", &[], &["red"], Some("conn"));
    b.table(0, "conn", "exact", &[("ip", "src", "exact"), ("ip", "dst", "exact")], &["tag", "nop"], Some("qos"));
    b.table(0, "qos", "exact", &[("ip", "tos", "exact")], &["tag", "nop"], None);
    b.table(1, "smac", "exact", &[("standard_metadata", "egress_port", "exact")], &["tag", "nop"], Some("efilter"));
    b.table(1, "efilter", "ternary", &[("udp", "dport", "ternary")], &["tag", "nop"], Some("stats"));
    b.table(1, "stats", "exact", &[("m", "x", "exact")], &["tag", "nop"], None);
    b.edit(|r| {
        for p in 0..2 {
            for t in r["pipelines"][p]["tables"].as_array_mut().into_iter().flatten() {
                t["max_size"] = json!(200_000);
            }
        }
    });
    b
}

fn frame(dst: u32, len: usize) -> Vec<u8> {
    let mut f = vec![0; len.max(42)];
    f[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
    f[14..24].copy_from_slice(&[0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17]);
    f[26..30].copy_from_slice(&[10, 0, 0, 1]);
    f[30..34].copy_from_slice(&dst.to_be_bytes());
    f
}

fn fill(sw: &mut Switch, routes: u32) {
    let lpm = |v: u32, n| KeyMatch::Lpm { value: Value::from(v), prefix_len: n };
    let add = |sw: &mut Switch, t: &str, key, p, a: &str, args: &[u64]| {
        let e = entry(key, p, call(sw, a, args));
        let t = table_id(sw, t);
        sw.table_insert(0, t, e).expect("insert");
    };
    add(sw, "port", vec![exact(0)], 0, "tag", &[1]);
    add(sw, "mac", vec![exact(0x0200_0000_0001)], 0, "tag", &[2]);
    let any = KeyMatch::Ternary { value: Value::from(0x0a00_0000_u64), mask: Value::from(0xff00_0000_u64) };
    add(sw, "acl", vec![any, KeyMatch::Any], 1, "tag", &[4]);
    for i in 0..routes {
        add(sw, "route", vec![lpm(0x0b00_0000 + (i << 8), 24)], 0, "forward", &[u64::from(i % 4 + 1), 5]);
    }
    for n in [8, 16, 20] {
        add(sw, "route", vec![lpm(0x0a00_0000, n)], 0, "forward", &[1, 5]);
    }
    add(sw, "qos", vec![exact(0)], 0, "tag", &[8]);
    add(sw, "smac", vec![exact(1)], 0, "tag", &[16]);
    add(sw, "efilter", vec![KeyMatch::Any], 1, "tag", &[32]);
}

/// Nanoseconds this process has been on a CPU: a busy machine does not count.
fn cpu_time() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0.0)
}

/// Nanoseconds per frame, best of three.
fn measure(sw: &mut Switch, frames: &[Vec<u8>]) -> f64 {
    let (mut iout, mut eout) = (IngressOut::default(), EgressOut::default());
    let mut best = f64::MAX;
    for _ in 0..3 {
        let start = cpu_time();
        for i in 0..FRAMES {
            let f = &frames[i as usize % frames.len()];
            sw.ingress(i, 0, black_box(f), &mut iout);
            if let Some(item) = iout.queued.pop() {
                sw.egress(i, item, QueueInfo::default(), &mut eout);
                black_box(&eout.emitted);
            }
        }
        best = best.min((cpu_time() - start) / FRAMES as f64);
    }
    best
}

/// Nanoseconds per frame, best of three, where packets' steps are kept, and said in words if they are those of the packet log.
fn observed(observe: Observing) -> f64 {
    let mut sw = Switch::new(router().load(), SwitchConfig { observe, ..SwitchConfig::default() }).expect("memory");
    sw.set_observing(true);
    fill(&mut sw, 1000);
    let (mut iout, mut eout, mut best) = (IngressOut::default(), EgressOut::default(), f64::MAX);
    let frames: Vec<Vec<u8>> = (0..512).map(|i: u32| frame(0x0b00_0001 + ((i.wrapping_mul(7919) % 1000) << 8), 64)).collect();
    let count = if observe == Observing::Nothing { FRAMES } else { FRAMES / 10 };
    for _ in 0..3 {
        let start = cpu_time();
        for i in 0..count {
            sw.ingress(i, 0, black_box(&frames[i as usize % frames.len()]), &mut iout);
            if let Some(item) = iout.queued.pop() {
                sw.egress(i, item, QueueInfo::default(), &mut eout);
            }
            for step in sw.take_observed() {
                if observe == Observing::Everything {
                    black_box(sw.worded(&step));
                }
            }
        }
        best = best.min((cpu_time() - start) / count as f64);
    }
    best
}

fn main() {
    for routes in [10, 1000, 100_000] {
        let mut sw = router().switch();
        fill(&mut sw, routes);
        for len in [64, 1000] {
            let frames: Vec<Vec<u8>> = (0..512).map(|i: u32| frame(0x0b00_0001 + ((i.wrapping_mul(7919) % routes) << 8), len)).collect();
            println!("router, {routes} routes, {len} B: {:.0} ns per packet", measure(&mut sw, &frames));
        }
    }
    for (observe, name) in
        [(Observing::Nothing, "off"), (Observing::Events, "steps of the event log"), (Observing::Everything, "packet log")]
    {
        println!("router, 1000 routes, 64 B, {name}: {:.0} ns per packet", observed(observe));
    }
    let mut b = Build::new();
    b.header("h", &[("x", 16)]).extracts(&["h"]);
    b.always(0, "go", &[set_port(1)], None);
    let mut sw = b.switch();
    println!("one table, 64 B: {:.0} ns per packet", measure(&mut sw, &[vec![0; 64]]));
}
