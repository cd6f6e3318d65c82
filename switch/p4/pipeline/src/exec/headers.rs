//! Validity, header unions, header stacks, copies of whole headers, and their bytes.

use super::packet::{BitWriter, Packet};
use crate::ir::*;

pub fn is_valid(ir: &Ir, pkt: &Packet, h: u32) -> bool {
    pkt.slots[ir.layout.headers[h as usize].valid as usize] != 0
}

/// Makes a header valid; in a union the others become invalid.
pub fn set_valid(ir: &Ir, pkt: &mut Packet, h: u32) {
    let header = &ir.layout.headers[h as usize];
    if header.metadata {
        return;
    }
    if let Some(u) = header.union {
        for &other in &ir.layout.unions[u].headers {
            pkt.slots[ir.layout.headers[other as usize].valid as usize] = 0;
        }
    }
    pkt.slots[header.valid as usize] = 1;
}

pub fn set_invalid(ir: &Ir, pkt: &mut Packet, h: u32) {
    let header = &ir.layout.headers[h as usize];
    if !header.metadata {
        pkt.slots[header.valid as usize] = 0;
    }
}

/// `setValid()`: a header that was invalid starts with all fields zero.
pub fn add_header(ir: &Ir, pkt: &mut Packet, h: u32) {
    if is_valid(ir, pkt, h) {
        return;
    }
    clear_fields(ir, pkt, h);
    set_valid(ir, pkt, h);
    pkt.length = pkt.length.wrapping_add(pkt.header_len(ir, h) as u32);
}

/// `setInvalid()`
pub fn remove_header(ir: &Ir, pkt: &mut Packet, h: u32) {
    if !is_valid(ir, pkt, h) {
        return;
    }
    pkt.length = pkt.length.wrapping_sub(pkt.header_len(ir, h) as u32);
    set_invalid(ir, pkt, h);
}

pub fn clear_fields(ir: &Ir, pkt: &mut Packet, h: u32) {
    let header = &ir.layout.headers[h as usize];
    let base = header.base as usize;
    pkt.slots[base..base + ir.layout.types[header.ty].slots as usize].fill(0);
    if let Some(v) = header.varbit {
        pkt.varbits[v].bytes.clear();
    }
}

fn copy_fields(ir: &Ir, pkt: &mut Packet, dst: u32, src: u32) {
    let (d, s) = (&ir.layout.headers[dst as usize], &ir.layout.headers[src as usize]);
    let n = ir.layout.types[d.ty].slots as usize;
    let from = s.base as usize;
    pkt.slots.copy_within(from..from + n, d.base as usize);
    if let (Some(dv), Some(sv)) = (d.varbit, s.varbit) {
        copy_varbit(pkt, dv, sv);
    }
}

pub fn copy_varbit(pkt: &mut Packet, dst: usize, src: usize) {
    if dst == src {
        return;
    }
    let mut bytes = std::mem::take(&mut pkt.varbits[dst].bytes);
    bytes.clone_from(&pkt.varbits[src].bytes);
    pkt.varbits[dst].bytes = bytes;
}

/// `dst = src`: an invalid source makes the destination invalid and leaves its fields.
pub fn assign_header(ir: &Ir, pkt: &mut Packet, dst: u32, src: u32) {
    if dst == src {
        return;
    }
    if !is_valid(ir, pkt, src) {
        set_invalid(ir, pkt, dst);
        return;
    }
    set_valid(ir, pkt, dst);
    copy_fields(ir, pkt, dst, src);
}

pub fn assign_union(ir: &Ir, pkt: &mut Packet, dst: u32, src: u32) {
    let (d, s) = (&ir.layout.unions[dst as usize], &ir.layout.unions[src as usize]);
    // Members that end up invalid first: making one valid clears the rest.
    for (&dh, &sh) in d.headers.iter().zip(&s.headers) {
        if !is_valid(ir, pkt, sh) {
            assign_header(ir, pkt, dh, sh);
        }
    }
    for (&dh, &sh) in d.headers.iter().zip(&s.headers) {
        if is_valid(ir, pkt, sh) {
            assign_header(ir, pkt, dh, sh);
        }
    }
}

pub fn union_valid(ir: &Ir, pkt: &Packet, u: u32) -> bool {
    ir.layout.unions[u as usize].headers.iter().any(|&h| is_valid(ir, pkt, h))
}

/// True when both headers are valid and all fields are equal.
pub fn header_eq(ir: &Ir, pkt: &Packet, a: u32, b: u32) -> bool {
    let (ha, hb) = (&ir.layout.headers[a as usize], &ir.layout.headers[b as usize]);
    if ha.ty != hb.ty || !is_valid(ir, pkt, a) || !is_valid(ir, pkt, b) {
        return false;
    }
    let n = ir.layout.types[ha.ty].slots as usize;
    let (x, y) = (ha.base as usize, hb.base as usize);
    pkt.slots[x..x + n] == pkt.slots[y..y + n] && pkt.varbit(ir, a) == pkt.varbit(ir, b)
}

/// True when the same member of both unions is valid and equal.
pub fn union_eq(ir: &Ir, pkt: &Packet, a: u32, b: u32) -> bool {
    let (ua, ub) = (&ir.layout.unions[a as usize], &ir.layout.unions[b as usize]);
    ua.headers.iter().zip(&ub.headers).any(|(&x, &y)| header_eq(ir, pkt, x, y))
}

/// Moves element `from` to `to`, with validity.
fn move_header(ir: &Ir, pkt: &mut Packet, to: u32, from: u32) {
    copy_fields(ir, pkt, to, from);
    let valid = is_valid(ir, pkt, from);
    if valid {
        set_valid(ir, pkt, to);
    } else {
        set_invalid(ir, pkt, to);
    }
}

/// `push_front(n)` [P4_16 sec 8.20]: elements move up, the first `n` become invalid.
pub fn push(ir: &Ir, pkt: &mut Packet, stack: u32, n: usize) {
    let stack = &ir.layout.stacks[stack as usize];
    let size = stack.headers.len();
    let n = n.min(size);
    for i in (n..size).rev() {
        move_header(ir, pkt, stack.headers[i], stack.headers[i - n]);
    }
    for &h in &stack.headers[..n] {
        set_invalid(ir, pkt, h);
        clear_fields(ir, pkt, h);
    }
    let next = &mut pkt.slots[stack.next as usize];
    *next = (*next + n as u64).min(size as u64);
}

/// `pop_front(n)`: elements move down, the last `n` become invalid.
pub fn pop(ir: &Ir, pkt: &mut Packet, stack: u32, n: usize) {
    let stack = &ir.layout.stacks[stack as usize];
    let size = stack.headers.len();
    let n = n.min(size);
    for i in 0..size - n {
        move_header(ir, pkt, stack.headers[i], stack.headers[i + n]);
    }
    for &h in &stack.headers[size - n..] {
        set_invalid(ir, pkt, h);
        clear_fields(ir, pkt, h);
    }
    let next = &mut pkt.slots[stack.next as usize];
    *next = next.saturating_sub(n as u64);
}

fn clear_union(ir: &Ir, pkt: &mut Packet, u: u32) {
    for &h in &ir.layout.unions[u as usize].headers {
        set_invalid(ir, pkt, h);
        clear_fields(ir, pkt, h);
    }
}

/// [`push`] for a stack of unions.
pub fn push_union(ir: &Ir, pkt: &mut Packet, stack: u32, n: usize) {
    let stack = &ir.layout.union_stacks[stack as usize];
    let size = stack.unions.len();
    let n = n.min(size);
    for i in (n..size).rev() {
        assign_union(ir, pkt, stack.unions[i], stack.unions[i - n]);
    }
    for &u in &stack.unions[..n] {
        clear_union(ir, pkt, u);
    }
    let next = &mut pkt.slots[stack.next as usize];
    *next = (*next + n as u64).min(size as u64);
}

/// [`pop`] for a stack of unions.
pub fn pop_union(ir: &Ir, pkt: &mut Packet, stack: u32, n: usize) {
    let stack = &ir.layout.union_stacks[stack as usize];
    let size = stack.unions.len();
    let n = n.min(size);
    for i in 0..size - n {
        assign_union(ir, pkt, stack.unions[i], stack.unions[i + n]);
    }
    for &u in &stack.unions[size - n..] {
        clear_union(ir, pkt, u);
    }
    let next = &mut pkt.slots[stack.next as usize];
    *next = next.saturating_sub(n as u64);
}

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
            out.push_limbs(&pkt.slots[slot..slot + f.width.div_ceil(64) as usize], f.width);
        }
    }
}
