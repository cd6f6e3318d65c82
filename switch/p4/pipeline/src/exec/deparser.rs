//! Headers back to bytes.

use super::checksums;
use super::headers::write_header;
use super::packet::{BitWriter, Packet};
use super::run;
use super::state::State;
use crate::ir::*;
use crate::observe::Step;

/// Checksum update, then all valid headers and the payload, cut to the packet's truncation. The
/// packet's own buffer becomes the frame where the headers have kept their place; then it has none
/// any more. Otherwise the frame is built in one of `spare`.
pub fn deparse(ir: &Ir, st: &mut State, pkt: &mut Packet, spare: &mut Vec<Vec<u8>>) -> Vec<u8> {
    st.note(pkt, Step::DeparserStart(ir.deparser.id));
    checksums::update(ir, st, pkt);
    run::run(ir, st, pkt, ir.deparser.code);
    emit(ir, &ir.deparser, st, pkt, spare)
}

/// The valid headers and the payload as a frame; see [`deparse`].
pub fn emit(ir: &Ir, deparser: &Deparser, st: &mut State, pkt: &mut Packet, spare: &mut Vec<Vec<u8>>) -> Vec<u8> {
    let emits = &deparser.emits;
    if st.observed.is_some() {
        for e in emits.iter().filter(|e| pkt.slots[e.valid as usize] != 0) {
            st.note(pkt, Step::Emit(ir.layout.headers[e.header as usize].id));
        }
        st.note(pkt, Step::DeparserDone(deparser.id));
    }
    if !keeps_places(ir, emits, pkt) {
        return anew(ir, emits, pkt, spare);
    }
    let mut frame = std::mem::take(&mut pkt.buf);
    let mut at = 0;
    for e in emits.iter().filter(|e| pkt.slots[e.valid as usize] != 0) {
        at += overwrite(ir, st, pkt, e, &mut frame, at);
    }
    pkt.buf = frame;
    in_place(pkt)
}

/// The packet's own buffer, in which the headers have been written, as the frame.
pub fn in_place(pkt: &mut Packet) -> Vec<u8> {
    let mut frame = std::mem::take(&mut pkt.buf);
    frame.truncate(pkt.len.min(pkt.truncate));
    frame
}

/// All valid headers and the payload in another buffer.
pub fn anew(ir: &Ir, emits: &[Emit], pkt: &Packet, spare: &mut Vec<Vec<u8>>) -> Vec<u8> {
    let mut frame = spare.pop().unwrap_or_default();
    frame.clear();
    for e in emits.iter().filter(|e| pkt.slots[e.valid as usize] != 0) {
        if e.opaque {
            let at = pkt.slots[e.base as usize] as usize;
            let bytes = pkt.buf.get(at..at + e.bytes as usize);
            frame.extend_from_slice(bytes.unwrap_or(&[]));
            continue;
        }
        let mut bits = BitWriter::new(&mut frame);
        write_header(ir, pkt, e.header, &mut bits);
        bits.finish();
    }
    frame.extend_from_slice(pkt.payload());
    frame.truncate(pkt.truncate);
    frame
}

/// The valid headers take the room of those that were parsed, and what is not written anew is
/// where it was.
fn keeps_places(ir: &Ir, emits: &[Emit], pkt: &Packet) -> bool {
    let mut at = 0;
    for e in emits.iter().filter(|e| pkt.slots[e.valid as usize] != 0) {
        if e.opaque && pkt.slots[e.base as usize] != at as u64 {
            return false;
        }
        at += e.bytes as usize;
        if e.varbit {
            at += pkt.varbit(ir, e.header).len();
        }
    }
    at == pkt.offset && pkt.offset <= pkt.len && pkt.len <= pkt.buf.len()
}

/// Writes a header at byte `at`; its length.
pub fn overwrite(ir: &Ir, st: &mut State, pkt: &Packet, e: &Emit, frame: &mut [u8], at: usize) -> usize {
    if e.opaque {
        return e.bytes as usize;
    }
    if let Some(words) = &ir.layout.types[e.ty as usize].words {
        words.store(&pkt.slots, e.base, frame, at);
        return e.bytes as usize;
    }
    let mut bytes = std::mem::take(&mut st.scratch);
    bytes.clear();
    let mut bits = BitWriter::new(&mut bytes);
    write_header(ir, pkt, e.header, &mut bits);
    bits.finish();
    let n = bytes.len();
    if let Some(room) = frame.get_mut(at..at + n) {
        room.copy_from_slice(&bytes);
    }
    st.scratch = bytes;
    n
}
