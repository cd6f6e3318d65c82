//! A program with random entries and random frames, interpreted or as machine code: all that can be seen of it.

use std::sync::Arc;

use fairlane_pipeline::{
    ActionCall, CloneSession, CounterId, DropCause, EgressOut, IngressOut, KeyMatch, MachineCode, MatchKind, Observing, Program, QueueInfo,
    RegisterId, Replica, Switch, SwitchConfig, TableAction, TableEntry, TableId, Value,
};

/// Xorshift64.
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
        let args = p.action(action)?.params.iter().map(|a| self.value(a.width)).collect();
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
                    MatchKind::Lpm => KeyMatch::Lpm { value: Value::from(0_u64), prefix_len: rng.below(2) as u32 },
                    _ if rng.below(2) == 0 => KeyMatch::Any,
                    MatchKind::Range => KeyMatch::Range { low: Value::from(0_u64), high: rng.value(k.width) },
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
            let priority = if info.needs_priority { 1 + rng.below(5) as i32 } else { 0 };
            let _ = sw.table_insert(0, t, TableEntry { key, priority, action, idle_timeout: 0 });
        }
    }
    let replicas = vec![Replica { port: 1, rid: 1 }, Replica { port: 2, rid: 7 }];
    for g in 1..8 {
        let _ = sw.multicast_insert(g, replicas.clone());
        let config = CloneSession { replicas: replicas.clone(), multicast_group: Some(g), packet_length: 0 };
        let _ = sw.clone_insert(u32::from(g), config);
    }
}

/// A frame with as much of Ethernet, IPv4 and UDP as chance will have it.
fn frame(rng: &mut Rng, i: u64) -> Vec<u8> {
    let mut frame: Vec<u8> = (0..rng.below(200)).map(|_| rng.next() as u8).collect();
    if frame.len() > 40 && i.is_multiple_of(2) {
        frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
        if i.is_multiple_of(4) {
            frame[20..24].copy_from_slice(&[0x40, 0, 64, 17]);
        }
    }
    frame
}

/// All that can be seen of a run.
#[derive(Debug, PartialEq)]
pub struct Seen {
    pub emitted: Vec<(u32, Vec<u8>)>,
    dropped: Vec<Option<DropCause>>,
    rest: String,
}

/// Random entries, and so many random frames.
pub fn run(program: &Arc<Program>, machine_code: MachineCode, frames: u64) -> Seen {
    run_observed(program, machine_code, (Observing::Nothing, false), frames)
}

/// [`run`] by a switch that is ready to keep packets' steps, and does (true) or does not.
pub fn run_observed(program: &Arc<Program>, machine_code: MachineCode, (observe, on): (Observing, bool), frames: u64) -> Seen {
    let mut rng = Rng(0x1234_5678_9abc_def1);
    let config = SwitchConfig { log: true, machine_code, observe, ..SwitchConfig::default() };
    let mut sw = Switch::new(Arc::clone(program), config).expect("memory");
    sw.set_observing(on);
    fill(&mut sw, &mut rng);
    let (mut iout, mut eout) = (IngressOut::default(), EgressOut::default());
    let (mut emitted, mut dropped) = (Vec::new(), Vec::new());
    for i in 0..frames {
        let frame = frame(&mut rng, i);
        sw.ingress(i * 1000, rng.below(8) as u32, &frame, &mut iout);
        dropped.push(iout.dropped);
        let mut work: Vec<_> = iout.queued.drain(..).collect();
        let mut left = 50;
        while let (Some(item), true) = (work.pop(), left > 0) {
            left -= 1;
            sw.egress(i * 1000 + 10, item, QueueInfo::default(), &mut eout);
            dropped.push(eout.dropped);
            emitted.extend(eout.emitted.take().map(|e| (e.port, e.bytes)));
            work.append(&mut eout.queued);
        }
    }
    let registers = (0..program.registers().len() as u32).map(RegisterId);
    let cells = |r: RegisterId| {
        let size = program.register(r).map_or(0, |info| info.size);
        sw.register_read_range(r, 0, size).ok()
    };
    let registers: Vec<_> = registers.map(cells).collect();
    let counters = (0..program.counters().len() as u32).map(CounterId);
    let counters: Vec<_> = counters
        .flat_map(|c| {
            let size = program.counter(c).map_or(0, |info| info.size);
            (0..size).map(move |i| (c, i))
        })
        .map(|(c, i)| sw.counter_read(c, i).ok())
        .collect();
    let rest = format!("{registers:?} {counters:?}");
    let digests = sw.take_digests();
    let rest = format!("{rest} {digests:?} {:?} {:?}", sw.take_log(), sw.stats());
    Seen { emitted, dropped, rest }
}
