//! Verification and update of checksums.

use super::calc::compute;
use super::packet::Packet;
use super::run;
use super::state::State;
use crate::ir::*;
use crate::observe::{Detail, Skip, Step};

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
    for (at, c) in ir.checksums.iter().enumerate().filter(|(_, c)| c.verify) {
        if pkt.slots[c.target.valid as usize] == 0 {
            st.tell(pkt, || Detail::Skipped(at as u32, Skip::Invalid));
            continue;
        }
        if !applies(ir, st, pkt, c) {
            st.tell(pkt, || Detail::Skipped(at as u32, Skip::Verification));
            continue;
        }
        let (computed, actual) = (compute(ir, st, pkt, c.calc), pkt.get(&c.target));
        st.tell(pkt, || Detail::Compared(at as u32, computed, actual));
        st.tell(pkt, || Detail::Verified(at as u32, computed == actual));
        if computed != actual {
            st.tell(pkt, || Detail::Incorrect(at as u32));
            wrong = true;
        }
    }
    wrong
}

/// Updates all checksums.
pub fn update(ir: &Ir, st: &mut State, pkt: &mut Packet) {
    for (at, c) in ir.checksums.iter().enumerate().filter(|(_, c)| c.update) {
        let applies = applies(ir, st, pkt, c);
        st.tell(pkt, || if applies { Detail::Updating(at as u32) } else { Detail::Skipped(at as u32, Skip::Update) });
        if applies {
            let v = compute(ir, st, pkt, c.calc);
            pkt.set(&c.target, v);
        }
        st.note(pkt, Step::ChecksumUpdate(c.id));
    }
}
