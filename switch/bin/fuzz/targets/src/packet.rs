//! Any packets through the pipeline, with any entries in its tables: interpreted, and as machine code.

use std::collections::VecDeque;
use std::sync::Arc;

use arbitrary::{Result, Unstructured};
use fairlane_pipeline::{
    ActionCall, CloneSession, CounterData, CounterId, Digest, DropCause, EgressOut, Emitted, IngressOut, KeyInfo, KeyMatch, MachineCode,
    MatchKind, MeterConfig, MeterId, ProfileId, Program, QueueInfo, RegisterId, Replica, Switch, SwitchConfig, SwitchStats, TableAction,
    TableEntry, TableId, Value, ValueSetId, ValueSetMember, MAX_FRAME,
};

use crate::programs;

/// Packets that one input may lead to: clones of clones end here.
const MOST_PACKETS: usize = 256;

/// Cells of each array that are looked at in the end.
const MOST_CELLS: usize = 64;

/// The bytes choose a program, fill its tables, and are its packets.
pub fn pipeline(data: &[u8]) {
    let mut bytes = Unstructured::new(data);
    let Ok(choice) = bytes.arbitrary() else { return };
    let config = SwitchConfig { cpu_port: Some(510), max_passes: 8, log: true, ..SwitchConfig::default() };
    both(&programs::choose(choice).program, &config, bytes.take_rest());
}

/// Runs the bytes through the interpreter and through machine code, and compares all that can be seen.
pub fn both(program: &Arc<Program>, config: &SwitchConfig, data: &[u8]) {
    let run = |machine_code| {
        let mut switch = Switch::new(program.clone(), SwitchConfig { machine_code, ..config.clone() }).expect("memory");
        drive(&mut switch, program, data)
    };
    let interpreted = run(MachineCode::Never);
    let translated = run(MachineCode::Always);
    assert_eq!(interpreted, translated, "interpreted (left) and as machine code (right)");
}

/// All that can be seen of a run.
#[derive(Debug, Default, PartialEq)]
pub struct Seen {
    emitted: Vec<Emitted>,
    dropped: Vec<Option<DropCause>>,
    registers: Vec<Value>,
    counters: Vec<CounterData>,
    digests: Vec<Digest>,
    log: Vec<String>,
    stats: SwitchStats,
    expired: usize,
}

/// Writes and packets in turn, until the bytes end.
pub fn drive(switch: &mut Switch, program: &Program, data: &[u8]) -> Seen {
    let mut bytes = Unstructured::new(data);
    let mut seen = Seen::default();
    let mut now = 0;
    while !bytes.is_empty() {
        // Bytes that end early make a shorter run.
        if step(switch, program, &mut now, &mut bytes, &mut seen).is_err() {
            break;
        }
    }
    for table in 0..program.tables().len() {
        let entries = switch.table_entries(TableId(table as u32)).expect("a table of the program");
        assert_eq!(entries.len(), switch.table_len(TableId(table as u32)).expect("a table of the program"));
    }
    for (at, info) in program.registers().iter().enumerate() {
        let cells = switch.register_read_range(RegisterId(at as u32), 0, info.size.min(MOST_CELLS));
        seen.registers.extend(cells.expect("cells of the register"));
    }
    for (at, info) in program.counters().iter().enumerate() {
        for cell in 0..info.size.min(MOST_CELLS) {
            seen.counters.push(switch.counter_read(CounterId(at as u32), cell).expect("a cell of the counter"));
        }
    }
    seen.expired = switch.expired(now).len();
    seen.digests = switch.take_digests();
    seen.log = switch.take_log();
    seen.stats = switch.stats();
    seen
}

/// One write, which may be refused, or one packet.
fn step(switch: &mut Switch, program: &Program, now: &mut u64, bytes: &mut Unstructured, seen: &mut Seen) -> Result<()> {
    match bytes.int_in_range(0..=9u8)? {
        0..=2 => insert(switch, program, *now, bytes)?,
        3 => elsewhere(switch, program, *now, bytes)?,
        4 => *now += u64::from(bytes.arbitrary::<u32>()?),
        _ => {
            let port = bytes.int_in_range(0..=511u32)?;
            let length = bytes.int_in_range(0..=200usize)?.min(bytes.len());
            send(switch, *now, port, bytes.bytes(length)?, seen);
        }
    }
    Ok(())
}

fn send(switch: &mut Switch, now: u64, port: u32, frame: &[u8], seen: &mut Seen) {
    let mut ingress = IngressOut::default();
    let mut egress = EgressOut::default();
    switch.ingress(now, port, frame, &mut ingress);
    seen.dropped.push(ingress.dropped);
    let mut waiting: VecDeque<_> = ingress.queued.drain(..).collect();
    for _ in 0..MOST_PACKETS {
        let Some(item) = waiting.pop_front() else { break };
        let info = QueueInfo { enq_timestamp: now, enq_qdepth: 1, deq_timedelta: 7, deq_qdepth: 3 };
        switch.egress(now, item, info, &mut egress);
        seen.dropped.push(egress.dropped);
        waiting.extend(egress.queued.drain(..));
        if let Some(emitted) = egress.emitted.take() {
            assert!(emitted.bytes.len() <= 2 * MAX_FRAME, "{} bytes", emitted.bytes.len());
            seen.emitted.push(emitted.clone());
            switch.recycle(emitted.bytes);
        }
    }
    for item in waiting {
        switch.discard(item);
    }
}

fn value(width: u32, bytes: &mut Unstructured) -> Result<Value> {
    let length = width.div_ceil(8) as usize;
    let mut raw = bytes.bytes(length.min(bytes.len()).min(32))?.to_vec();
    // Mostly one that fits the width.
    if let (Some(first), true) = (raw.first_mut(), bytes.ratio(15, 16)?)
        && raw_is_full(length, width)
    {
        *first &= 0xffu8 >> (8 - width % 8);
    }
    Ok(Value::from_be_bytes(&raw))
}

fn raw_is_full(length: usize, width: u32) -> bool {
    length <= 32 && !width.is_multiple_of(8)
}

fn key(info: &KeyInfo, bytes: &mut Unstructured) -> Result<KeyMatch> {
    let kind = if bytes.ratio(1, 16)? { bytes.int_in_range(0..=5u8)? } else { info.kind as u8 };
    Ok(if kind == MatchKind::Exact as u8 {
        KeyMatch::Exact(value(info.width, bytes)?)
    } else if kind == MatchKind::Lpm as u8 {
        let prefix_len = bytes.int_in_range(0..=info.width + 1)?;
        let masked = if bytes.ratio(1, 8)? { value(info.width, bytes)? } else { Value::from_be_bytes(&[]) };
        KeyMatch::Lpm { value: masked, prefix_len }
    } else if kind == MatchKind::Ternary as u8 {
        let mask = value(info.width, bytes)?;
        let value = if bytes.ratio(1, 4)? { value(info.width, bytes)? } else { mask.clone() };
        KeyMatch::Ternary { value, mask }
    } else if kind == MatchKind::Range as u8 {
        KeyMatch::Range { low: value(info.width, bytes)?, high: value(info.width, bytes)? }
    } else if kind == MatchKind::Valid as u8 {
        KeyMatch::Valid(bytes.arbitrary()?)
    } else {
        KeyMatch::Any
    })
}

fn call(program: &Program, action: fairlane_pipeline::ActionId, bytes: &mut Unstructured) -> Result<ActionCall> {
    let params = program.action(action).map_or(&[][..], |info| &info.params);
    let args = params.iter().map(|param| value(param.width, bytes)).collect::<Result<_>>()?;
    Ok(ActionCall { action, args })
}

fn insert(switch: &mut Switch, program: &Program, now: u64, bytes: &mut Unstructured) -> Result<()> {
    if program.tables().is_empty() {
        return Ok(());
    }
    let id = TableId(bytes.choose_index(program.tables().len())? as u32);
    let info = &program.tables()[id.index()];
    if info.actions.is_empty() {
        return Ok(());
    }
    let action = *bytes.choose(&info.actions)?;
    let wanted = match info.profile {
        None => TableAction::Call(call(program, action, bytes)?),
        Some(profile) => profile_action(switch, program, profile, action, bytes)?,
    };
    if bytes.ratio(1, 8)? {
        let _ = switch.table_set_default(id, Some(wanted));
        return Ok(());
    }
    let entry = TableEntry {
        key: info.key.iter().map(|info| key(info, bytes)).collect::<Result<_>>()?,
        priority: if info.needs_priority { bytes.int_in_range(0..=4)? } else { 0 },
        action: wanted,
        idle_timeout: if info.support_timeout { u64::from(bytes.arbitrary::<u16>()?) } else { 0 },
    };
    let _ = match bytes.int_in_range(0..=5u8)? {
        0 => switch.table_delete(id, &entry.key, entry.priority),
        1 => switch.table_modify(now, id, entry),
        _ => switch.table_insert(now, id, entry),
    };
    Ok(())
}

fn profile_action(
    switch: &mut Switch,
    program: &Program,
    profile: ProfileId,
    action: fairlane_pipeline::ActionId,
    bytes: &mut Unstructured,
) -> Result<TableAction> {
    let (member, group) = (bytes.int_in_range(0..=3)?, bytes.int_in_range(0..=3)?);
    let call = call(program, action, bytes)?;
    Ok(match bytes.int_in_range(0..=7u8)? {
        0 => {
            let _ = switch.member_delete(profile, member);
            TableAction::Member(member)
        }
        1 => {
            let _ = switch.member_modify(profile, member, call);
            TableAction::Member(member)
        }
        2 => {
            let _ = switch.group_insert(profile, group, &[(member, bytes.int_in_range(0..=3)?)], 4);
            TableAction::Group(group)
        }
        3 => {
            let _ = switch.group_delete(profile, group);
            TableAction::Group(group)
        }
        4 => TableAction::OneShot(vec![(call, bytes.int_in_range(0..=3)?)]),
        _ => {
            let _ = switch.member_insert(profile, member, call);
            TableAction::Member(member)
        }
    })
}

/// Everything that is no table: groups, sessions, meters, value sets.
fn elsewhere(switch: &mut Switch, program: &Program, now: u64, bytes: &mut Unstructured) -> Result<()> {
    let mut replicas = Vec::new();
    for _ in 0..bytes.int_in_range(0..=3u8)? {
        replicas.push(Replica { port: bytes.int_in_range(0..=520)?, rid: bytes.int_in_range(0..=3)? });
    }
    match bytes.int_in_range(0..=4u8)? {
        0 => {
            let group = bytes.int_in_range(0..=4)?;
            let _ = switch.multicast_insert(group, replicas);
        }
        1 => {
            let multicast_group = bytes.ratio(1, 3)?.then_some(1);
            let packet_length = u32::from(bytes.arbitrary::<u8>()?);
            let session = bytes.int_in_range(0..=8)?;
            let _ = switch.clone_insert(session, CloneSession { replicas, multicast_group, packet_length });
        }
        2 => {
            let [cir, cburst, pir, pburst] = bytes.arbitrary::<[u32; 4]>()?.map(u64::from);
            let config = Some(MeterConfig { cir, cburst, pir, pburst, ..MeterConfig::default() });
            let _ = switch.meter_write(now, MeterId(bytes.int_in_range(0..=2)?), bytes.int_in_range(0..=20)?, config);
        }
        3 => {
            let set = ValueSetId(bytes.int_in_range(0..=1)?);
            let width = program.value_set(set).map_or(8, |info| info.width);
            let member = ValueSetMember { value: value(width, bytes)?, mask: Value::ones(width) };
            let _ = switch.set_value_set(set, vec![member]);
        }
        _ => {
            let group = bytes.int_in_range(0..=4)?;
            let _ = switch.multicast_delete(group);
        }
    }
    Ok(())
}
