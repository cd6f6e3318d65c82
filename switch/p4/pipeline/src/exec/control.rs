//! Control flow: tables, conditionals, action calls.

use super::calc;
use super::packet::Packet;
use super::run::{run, run_to_table};
use super::state::State;
use crate::definition::Definition;
use crate::info::Gress;
use crate::ir::*;
use crate::observe::Step;
use crate::table::Target;

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
        let hit = st.tables[t].lookup(&ir.tables[t], &pkt.slots);
        if st.observed.is_some() {
            let table = program.tables[t].json_id;
            st.note(pkt, hit.map_or(Step::Miss(table), |at| Step::Hit(table, at, st.tables[t].removals(at))));
        }
        let (action, next) = found(program, st, pkt, t, hit);
        run(ir, st, pkt, action);
        code.start = next;
        if pkt.exit || pkt.failed.is_some() {
            break;
        }
    }
    st.note(pkt, Step::PipelineDone(id));
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
            match st.profiles[profile].groups.get(&g) {
                Some(g) => g.choices[i],
                None => return nothing,
            }
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
    (n > 0).then(|| (hash % n as u64) as usize)
}
