//! Feeds random frames to programs whose tables hold random entries, to look for panics.
//!
//! `cargo run -p fairlane-pipeline --example soak -- prog.json ...`

use std::sync::Arc;

use fairlane_pipeline::{
    ActionCall, CloneSession, EgressOut, IngressOut, KeyMatch, MatchKind, Program, QueueInfo,
    Replica, Switch, SwitchConfig, TableAction, TableEntry, TableId, Value,
};

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    /// A value of `width` bits, small ones preferred.
    fn value(&mut self, width: u32) -> Value {
        let small = self.below(2) == 0;
        let v = if small { self.below(4) } else { self.next() };
        if width < 64 {
            Value::from(v & ((1 << width) - 1))
        } else {
            Value::from(v)
        }
    }

    fn call(&mut self, p: &Program, t: TableId) -> Option<ActionCall> {
        let actions = &p.table(t)?.actions;
        if actions.is_empty() {
            return None;
        }
        let action = actions[self.below(actions.len() as u64) as usize];
        let args = p
            .action(action)?
            .params
            .iter()
            .map(|a| self.value(a.width))
            .collect();
        Some(ActionCall { action, args })
    }
}

fn fill(sw: &mut Switch, rng: &mut Rng) {
    let p = Arc::clone(sw.program());
    for (i, info) in p.tables().iter().enumerate() {
        let t = TableId(i as u32);
        for _ in 0..8 {
            let Some(call) = rng.call(&p, t) else {
                continue;
            };
            let key = info
                .key
                .iter()
                .map(|k| match k.kind {
                    MatchKind::Exact => KeyMatch::Exact(rng.value(k.width)),
                    MatchKind::Valid => KeyMatch::Valid(rng.below(2) == 1),
                    MatchKind::Lpm => KeyMatch::Lpm {
                        value: Value::from(0_u64),
                        prefix_len: rng.below(2) as u32,
                    },
                    _ if rng.below(2) == 0 => KeyMatch::Any,
                    MatchKind::Range => KeyMatch::Range {
                        low: Value::from(0_u64),
                        high: rng.value(k.width),
                    },
                    _ => KeyMatch::Exact(rng.value(k.width)),
                })
                .collect();
            let action = match info.profile {
                Some(profile) => {
                    let m = rng.below(8) as u32;
                    let _ = sw.member_insert(profile, m, call);
                    TableAction::Member(m)
                }
                None => TableAction::Call(call),
            };
            let priority = if info.needs_priority {
                1 + rng.below(5) as i32
            } else {
                0
            };
            let _ = sw.table_insert(
                0,
                t,
                TableEntry {
                    key,
                    priority,
                    action,
                    idle_timeout: 0,
                },
            );
        }
    }
    let replicas = vec![Replica { port: 1, rid: 1 }, Replica { port: 2, rid: 7 }];
    for g in 1..8 {
        let _ = sw.multicast_insert(g, replicas.clone());
        let config = CloneSession {
            replicas: replicas.clone(),
            multicast_group: Some(g),
            packet_length: 0,
        };
        let _ = sw.clone_insert(u32::from(g), config);
    }
}

fn main() {
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let program = match Program::from_json(&text) {
            Ok(p) => Arc::new(p),
            Err(e) => {
                println!("{path}: {e}");
                continue;
            }
        };
        let mut rng = Rng(0x1234_5678_9abc_def1);
        let mut sw = Switch::new(
            program,
            SwitchConfig {
                log: true,
                ..SwitchConfig::default()
            },
        );
        fill(&mut sw, &mut rng);
        let (mut iout, mut eout) = (IngressOut::default(), EgressOut::default());
        for i in 0..2000_u64 {
            let mut frame: Vec<u8> = (0..rng.below(200)).map(|_| rng.next() as u8).collect();
            if frame.len() > 40 && i % 2 == 0 {
                frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
            }
            sw.ingress(i * 1000, rng.below(8) as u32, &frame, &mut iout);
            let mut work: Vec<_> = iout.queued.drain(..).collect();
            let mut left = 50;
            while let (Some(item), true) = (work.pop(), left > 0) {
                left -= 1;
                sw.egress(i * 1000 + 10, item, QueueInfo::default(), &mut eout);
                work.append(&mut eout.queued);
            }
        }
        let s = sw.stats();
        println!(
            "{path}: {s:?}, {} digests, {} log lines",
            sw.take_digests().len(),
            sw.take_log().len()
        );
    }
}
