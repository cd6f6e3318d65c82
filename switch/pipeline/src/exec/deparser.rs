//! Headers back to bytes.

use super::calc;
use super::headers::is_valid;
use super::packet::{BitWriter, Packet};
use super::run;
use super::state::State;
use crate::ir::*;

/// Writes the fields of header `h`.
pub fn write_header(ir: &Ir, pkt: &Packet, h: u32, out: &mut BitWriter) {
    let header = &ir.layout.headers[h as usize];
    for f in &ir.layout.types[header.ty].fields {
        let slot = (header.base + f.rel) as usize;
        if f.varbit {
            out.bytes(pkt.varbit(ir, h));
        } else if f.width <= 64 {
            out.push(pkt.slots[slot], f.width);
        } else {
            out.push_limbs(
                &pkt.slots[slot..slot + f.width.div_ceil(64) as usize],
                f.width,
            );
        }
    }
}

/// Checksum update, then all valid headers and the payload, cut to the packet's truncation.
pub fn deparse(ir: &Ir, st: &mut State, pkt: &mut Packet, out: &mut Vec<u8>) {
    calc::update(ir, st, pkt);
    run::run(ir, st, pkt, ir.deparser_code);
    out.clear();
    for &h in &ir.deparser {
        if is_valid(ir, pkt, h) {
            let mut bits = BitWriter::new(out);
            write_header(ir, pkt, h, &mut bits);
            bits.finish();
        }
    }
    out.extend_from_slice(pkt.payload());
    out.truncate(pkt.truncate);
}
