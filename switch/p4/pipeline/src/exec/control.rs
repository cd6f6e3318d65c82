//! Control flow: tables, conditionals, action calls.

use super::calc;
use super::candidates;
use super::packet::Packet;
use super::run::{run, run_to_table};
use super::state::State;
use crate::control::{EntryHandle, TableAction};
use crate::definition::Definition;
use crate::info::Gress;
use crate::ir::*;
use crate::observe::{Detail, Step};
use crate::table::Target;
use crate::Value;

/// Runs a pipeline to its end, or to an exit.
pub fn apply(program: &Definition, st: &mut State, pkt: &mut Packet, pipeline: Gress) {
    let ir = &program.ir;
    let id = ir.pipeline_ids[pipeline as usize];
    st.note(pkt, Step::PipelineStart(id));
    let mut code = match pipeline {
        Gress::Ingress => ir.ingress,
        Gress::Egress => ir.egress,
    };
    while let Some(t) = run_to_table(ir, st, pkt, code) {
        let t = t as usize;
        st.tell(pkt, || Detail::Applying(t as u32));
        st.tell(pkt, || Detail::Lookup(t as u32, ir.tables[t].key.iter().map(|part| key_value(part, pkt)).collect()));
        let hit = st.tables[t].lookup(&ir.tables[t], &pkt.slots);
        let (action, next) = found(program, st, pkt, t, hit);
        if st.observed.is_some() {
            note_found(program, st, pkt, t, hit);
        }
        run(ir, st, pkt, action);
        code.start = next;
        if pkt.exit || pkt.failed.is_some() {
            if pkt.exit && next != ir.tables[t].end {
                st.tell(pkt, || Detail::Exit);
            }
            break;
        }
    }
    st.note(pkt, Step::PipelineDone(id));
}

/// Part of a table's key as it is looked up: nothing of a header that is not valid.
fn key_value(part: &KeyPart, pkt: &Packet) -> Value {
    if pkt.slots[part.field.valid as usize] == 0 {
        return Value::from(0_u64);
    }
    let mut limbs = pkt.limbs(&part.field).to_vec();
    for (limb, mask) in limbs.iter_mut().zip(part.mask.iter().flatten()) {
        *limb &= mask;
    }
    Value::from_limbs(&limbs)
}

/// Notes what a table found, and what it runs.
fn note_found(program: &Definition, st: &mut State, pkt: &Packet, t: usize, hit: Option<u32>) {
    let table = program.tables[t].json_id;
    if st.wants_values(pkt) {
        let key = program.ir.tables[t].key.iter().map(|part| key_value(part, pkt)).collect::<Vec<_>>();
        let tried = candidates::beside(program, &st.tables[t], t, &key, hit);
        st.tell(pkt, || Detail::Tried(t as u32, Box::new(tried)));
    }
    let Some(at) = hit else {
        st.note(pkt, Step::Miss(table));
        return tell_action(program, st, pkt, t, st.tables[t].default.as_ref().map(|d| d.1.clone()));
    };
    let handle = EntryHandle { place: at, removals: st.tables[t].removals(at) };
    st.note(pkt, Step::Hit(table, handle.place, handle.removals));
    if !st.details(pkt) {
        return;
    }
    let entry = st.tables[t].written(at);
    let action = entry.as_ref().map(|entry| entry.action.clone());
    if let Some(entry) = entry {
        let profile = program.tables[t].profile.map(|p| &st.profiles[p.index()]);
        let places = match &entry.action {
            TableAction::Member(m) => vec![*m],
            TableAction::Group(g) => profile.and_then(|p| p.groups.get(g)).map_or_else(Vec::new, |g| g.choices.clone()),
            TableAction::Call(_) | TableAction::OneShot(_) => Vec::new(),
        };
        let members = places.into_iter().filter_map(|m| Some((m, profile?.members.get(&m)?.call.clone()))).collect();
        st.tell(pkt, || Detail::Found(t as u32, handle, Box::new(entry), members));
    }
    tell_action(program, st, pkt, t, action);
}

/// Tells which action is run: of a group, or of an entry's own choices, that which the selector has just chosen.
fn tell_action(program: &Definition, st: &mut State, pkt: &Packet, t: usize, action: Option<TableAction>) {
    if !st.details(pkt) {
        return;
    }
    let profile = program.tables[t].profile.map(|p| &st.profiles[p.index()]);
    let member = |m: &u32| profile.and_then(|p| p.members.get(m)).map(|m| m.call.clone());
    let call = match action {
        None => None,
        Some(TableAction::Call(call)) => Some(call),
        Some(TableAction::Member(m)) => member(&m),
        Some(TableAction::Group(g)) => profile.and_then(|p| p.groups.get(&g)?.choices.get(st.chosen)).and_then(member),
        Some(TableAction::OneShot(calls)) => {
            let weighted = calls.iter().flat_map(|(call, weight)| std::iter::repeat_n(call, *weight as usize));
            weighted.clone().nth(st.chosen).cloned()
        }
    };
    st.tell(pkt, || Detail::Runs(call.map(Box::new)));
}

/// Copies an action's arguments to its parameters; its code.
fn bind(ir: &Ir, pkt: &mut Packet, action: u32, params: &[u64]) -> Code {
    let start = ir.layout.params as usize;
    pkt.slots[start..start + params.len()].copy_from_slice(params);
    ir.actions[action as usize].code
}

/// What is run, and its place among the table's actions; none when nothing is.
type Choice = (Code, Option<u32>);

/// Looks a packet up: the code of the action, its arguments bound, and where the pipeline goes on.
#[cfg(not(target_family = "wasm"))] // machine code alone
pub fn find(program: &Definition, st: &mut State, pkt: &mut Packet, t: usize) -> (Code, u32) {
    let hit = st.tables[t].lookup(&program.ir.tables[t], &pkt.slots);
    found(program, st, pkt, t, hit)
}

/// [`find`] for a table whose key, of one limb, is at hand.
#[cfg(not(target_family = "wasm"))] // machine code alone
#[inline]
pub fn find_narrow(program: &Definition, st: &mut State, pkt: &mut Packet, t: usize, key: u64) -> (Code, u32) {
    let hit = st.tables[t].lookup_narrow(key);
    found(program, st, pkt, t, hit)
}

#[inline]
fn found(program: &Definition, st: &mut State, pkt: &mut Packet, t: usize, hit: Option<u32>) -> (Code, u32) {
    let ir = &program.ir;
    let table_ir = &ir.tables[t];
    let table = &mut st.tables[t];
    let start = ir.layout.params as usize;
    let call = table.call(hit, &mut pkt.slots[start..]);
    if let Some(at) = hit {
        let now = st.now;
        if let Some(meter) = table.note(at, now, pkt.ingress_length)
            && let Some(target) = &table_ir.meter_target
        {
            pkt.set(target, meter.colour(now, pkt.ingress_length));
        }
    }
    if !call.slow {
        return (call.code, call.next);
    }
    let (code, place) = choose(program, st, pkt, t, hit);
    (code, ir.next_code(table_ir, place, hit.is_some()))
}

/// The action of an entry, or of the default when `at` is none, its arguments bound.
fn choose(program: &Definition, st: &mut State, pkt: &mut Packet, t: usize, at: Option<u32>) -> Choice {
    let ir = &program.ir;
    let nothing = (Code::default(), None);
    let profile = program.tables[t].profile.map_or(0, |p| p.index());
    let member = match st.tables[t].slow(at) {
        None => return nothing,
        Some(Target::Run(b)) => return (bind(ir, pkt, b.action, &b.params), Some(b.place)),
        Some(Target::OneShot(choices)) => {
            let n = choices.len();
            let Some(i) = select(ir, st, pkt, profile, n) else {
                return nothing;
            };
            return match st.tables[t].slow(at) {
                Some(Target::OneShot(choices)) => {
                    let b = &choices[i];
                    (bind(ir, pkt, b.action, &b.params), Some(b.place))
                }
                _ => nothing,
            };
        }
        Some(Target::Member(m)) => *m,
        Some(Target::Group(g)) => {
            let g = *g;
            let n = st.profiles[profile].groups.get(&g).map_or(0, |g| g.choices.len());
            let Some(i) = select(ir, st, pkt, profile, n) else {
                return nothing;
            };
            let Some(member) = st.profiles[profile].groups.get(&g).map(|g| g.choices[i]) else { return nothing };
            st.tell(pkt, || Detail::Chosen { member, group: g });
            member
        }
    };
    let actions = &program.tables[t].actions;
    let Some(member) = st.profiles[profile].members.get(&member) else {
        return nothing;
    };
    let Some(place) = crate::table::resolve(program, actions, &member.call) else {
        return nothing;
    };
    (bind(ir, pkt, actions[place as usize].0, &member.params), Some(place))
}

/// The selector's choice among `n`; none among none.
fn select(ir: &Ir, st: &mut State, pkt: &Packet, profile: usize, n: usize) -> Option<usize> {
    let calc = (*ir.selectors.get(profile)?)?;
    let hash = calc::compute(ir, st, pkt, calc);
    let chosen = (n > 0).then(|| (hash % n as u64) as usize);
    st.chosen = chosen.unwrap_or(0);
    chosen
}
