//! Verification and update of checksums.

use super::calc::compute;
use super::packet::Packet;
use super::run;
use super::state::State;
use crate::ir::*;
use crate::observe::Step;

fn applies(ir: &Ir, st: &mut State, pkt: &mut Packet, c: &Checksum) -> bool {
    let holds = |&(slot, set): &(Slot, bool)| (pkt.slots[slot as usize] != 0) == set;
    if !c.tests.iter().all(holds) {
        return false;
    }
    match c.condition {
        Some((code, slot)) => {
            run::run(ir, st, pkt, code);
            pkt.slots[slot as usize] != 0
        }
        None => true,
    }
}

/// Verifies all checksums; true when one is wrong.
pub fn verify(ir: &Ir, st: &mut State, pkt: &mut Packet) -> bool {
    let mut wrong = false;
    for c in ir.checksums.iter().filter(|c| c.verify) {
        if pkt.slots[c.target.valid as usize] == 0 || !applies(ir, st, pkt, c) {
            continue;
        }
        wrong |= compute(ir, st, pkt, c.calc) != pkt.get(&c.target);
    }
    wrong
}

/// Updates all checksums.
pub fn update(ir: &Ir, st: &mut State, pkt: &mut Packet) {
    for c in ir.checksums.iter().filter(|c| c.update) {
        if applies(ir, st, pkt, c) {
            let v = compute(ir, st, pkt, c.calc);
            pkt.set(&c.target, v);
        }
        st.note(pkt, Step::ChecksumUpdate(c.id));
    }
}
