//! Headers back to bytes.

use super::calc;
use super::headers::is_valid;
use super::packet::{store_bits, store_limbs, Packet};
use super::run;
use super::state::State;
use crate::ir::*;

/// Appends the bytes of header `h`.
pub fn emit_header(ir: &Ir, pkt: &Packet, h: u32, out: &mut Vec<u8>) {
    let header = &ir.layout.headers[h as usize];
    let ty = &ir.layout.types[header.ty];
    let start = out.len();
    out.resize(start + pkt.header_len(ir, h), 0);
    let buf = &mut out[start..];
    let mut extra = 0;
    for f in &ty.fields {
        let at = f.offset as usize + extra;
        if f.varbit {
            let bytes = pkt.varbit(ir, h);
            extra = bytes.len() * 8;
            for (i, &b) in bytes.iter().enumerate() {
                store_bits(buf, at + i * 8, 8, u64::from(b));
            }
            continue;
        }
        let slot = (header.base + f.rel) as usize;
        if f.width <= 64 {
            store_bits(buf, at, f.width, pkt.slots[slot]);
        } else {
            store_limbs(
                buf,
                at,
                f.width,
                &pkt.slots[slot..slot + f.width.div_ceil(64) as usize],
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
            emit_header(ir, pkt, h, out);
        }
    }
    out.extend_from_slice(pkt.payload());
    out.truncate(pkt.truncate);
}
