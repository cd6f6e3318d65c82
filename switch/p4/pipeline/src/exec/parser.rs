//! The parser.

use super::checksums;
use super::eval::Env;
use super::headers::set_valid;
use super::packet::{field_of, load_bits, load_limbs, Packet};
use super::run::run;
use super::state::State;
use crate::ir::*;
use crate::observe::{Detail, Extraction, Step};

/// A parser error's code.
type Result<T> = std::result::Result<T, u64>;

/// Parses the frame from its start, then verifies checksums. Sets `offset`, `error`,
/// `checksum_error`.
pub fn parse(ir: &Ir, st: &mut State, pkt: &mut Packet) {
    take_apart(ir, &ir.parser, st, pkt);
    pkt.checksum_error = checksums::verify(ir, st, pkt);
    st.note(pkt, Step::ParserDone(ir.parser.id));
}

/// Parses the frame from its start by that parser, which has no checksums.
pub fn parse_with(ir: &Ir, parser: &Parser, st: &mut State, pkt: &mut Packet) {
    take_apart(ir, parser, st, pkt);
    st.note(pkt, Step::ParserDone(parser.id));
}

#[inline]
fn take_apart(ir: &Ir, parser: &Parser, st: &mut State, pkt: &mut Packet) {
    st.note(pkt, Step::ParserStart(parser.id));
    pkt.error = ir.errors.no_error;
    pkt.offset = 0;
    let mut next = parser.start;
    let mut left = st.max_parser_states;
    while let Some(at) = next {
        if left == 0 {
            pkt.error = ir.errors.parser_timeout;
            break;
        }
        left -= 1;
        st.tell(pkt, || Detail::State(parser.id, at));
        match step(ir, st, pkt, (parser.id, at), &parser.states[at as usize]) {
            Ok(state) => next = state,
            Err(code) => {
                st.tell(pkt, || Detail::ParserError(code));
                pkt.error = code;
                break;
            }
        }
        st.tell(pkt, || Detail::Parsed(pkt.offset));
    }
}

#[inline]
fn step(ir: &Ir, st: &mut State, pkt: &mut Packet, (parser, at): (i64, u32), state: &ParserState) -> Result<NextState> {
    for op in &state.ops {
        run_op(ir, st, pkt, op)?;
    }
    if st.details(pkt) {
        let key = wide_key(ir, pkt, state)?;
        let detail = || if state.key.is_empty() { Detail::NoSelect(parser, at) } else { Detail::Key(parser, at, key) };
        st.tell(pkt, detail);
    }
    select(ir, st, pkt, state)
}

/// One operation of a state.
pub fn run_op(ir: &Ir, st: &mut State, pkt: &mut Packet, op: &ParserOp) -> Result<()> {
    match op {
        ParserOp::Extract(to) => extract(ir, st, pkt, *to, None)?,
        ParserOp::ExtractVarbit(to, bits) => extract(ir, st, pkt, *to, Some(bits))?,
        ParserOp::Run(code) => run(ir, st, pkt, *code),
        ParserOp::Lookahead { dst, offset, width } => {
            let bit = ahead(ir, pkt, *offset, *width)?;
            let mut limbs = [0; 32];
            let limbs = &mut limbs[..width.div_ceil(64) as usize];
            load_limbs(&pkt.buf, bit, *width, limbs);
            let v = super::num::Num::from_limbs(limbs);
            pkt.set_num(dst, &v);
        }
        ParserOp::Verify { code, slot, error } => {
            run(ir, st, pkt, *code);
            if pkt.slots[*slot as usize] == 0 {
                return Err(Env { ir, registers: &st.registers, pkt }.num(error).low_u64());
            }
        }
        ParserOp::Advance(bits) => {
            let bits = Env { ir, registers: &st.registers, pkt }.num(bits);
            let bits = bits.to_u64().ok_or(ir.errors.packet_too_short)?;
            if bits % 8 != 0 {
                st.tell(pkt, || Detail::NoBytes(Extraction::Fixed, bits));
                return Err(ir.errors.parser_invalid_argument);
            }
            st.tell(pkt, || Detail::Advancing(bits / 8));
            if bits / 8 > (pkt.len - pkt.offset) as u64 {
                return Err(ir.errors.packet_too_short);
            }
            pkt.offset += (bits / 8) as usize;
        }
    }
    Ok(())
}

/// Bit position in the frame of `width` bits `offset` bits ahead.
fn ahead(ir: &Ir, pkt: &Packet, offset: u32, width: u32) -> Result<usize> {
    let bit = pkt.offset * 8 + offset as usize;
    if bit + width as usize > pkt.len * 8 {
        return Err(ir.errors.packet_too_short);
    }
    Ok(bit)
}

fn extract(ir: &Ir, st: &mut State, pkt: &mut Packet, to: ExtractTo, bits: Option<&Expr>) -> Result<()> {
    let layout = &ir.layout;
    let (h, counter) = match to {
        ExtractTo::Header(h) => (h, None),
        ExtractTo::Stack(s) => {
            let stack = &layout.stacks[s as usize];
            let next = pkt.slots[stack.next as usize] as usize;
            let h = *stack.headers.get(next).ok_or(ir.errors.stack_out_of_bounds)?;
            (h, Some(stack.next))
        }
        ExtractTo::UnionStack(s, member) => {
            let stack = &layout.union_stacks[s as usize];
            let next = pkt.slots[stack.next as usize] as usize;
            let u = *stack.unions.get(next).ok_or(ir.errors.stack_out_of_bounds)?;
            (layout.unions[u as usize].headers[member as usize], Some(stack.next))
        }
    };
    // As in BMv2 before it is known whether the packet is long enough.
    st.tell(pkt, || Detail::Extracting(h, extraction(layout, to, bits.is_some())));
    st.note(pkt, Step::Extract(layout.headers[h as usize].id));
    extract_header(ir, st, pkt, h, bits)?;
    set_valid(ir, pkt, h);
    if let Some(slot) = counter {
        pkt.slots[slot as usize] += 1;
    }
    Ok(())
}

fn extraction(layout: &Layout, to: ExtractTo, variable: bool) -> Extraction {
    match to {
        ExtractTo::Header(_) if variable => Extraction::Variable,
        ExtractTo::Header(_) => Extraction::Fixed,
        ExtractTo::Stack(s) => Extraction::Stack(layout.stacks[s as usize].id),
        ExtractTo::UnionStack(s, _) => Extraction::UnionStack(layout.union_stacks[s as usize].id),
    }
}

fn extract_header(ir: &Ir, st: &mut State, pkt: &mut Packet, h: u32, bits: Option<&Expr>) -> Result<()> {
    let header = &ir.layout.headers[h as usize];
    let ty = &ir.layout.types[header.ty];
    let fixed = ty.bits as usize / 8;
    let left = pkt.len - pkt.offset;
    let Some(varbit) = ty.varbit else {
        if left < fixed {
            return Err(ir.errors.packet_too_short);
        }
        if header.opaque {
            pkt.slots[header.base as usize] = pkt.offset as u64;
        } else if let Some(words) = &ty.words {
            words.load(&mut pkt.slots, header.base, &pkt.buf, pkt.offset);
        } else {
            extract_fields(pkt, header.base, &ty.fields, pkt.offset * 8);
        }
        pkt.offset += fixed;
        return Ok(());
    };
    // The length may depend on the fields in front, when the header type says it.
    if bits.is_none() {
        if left < fixed {
            return Err(ir.errors.packet_too_short);
        }
        extract_fields(pkt, header.base, &ty.fields[..varbit], pkt.offset * 8);
    }
    let length = match bits.or(header.length.as_ref()) {
        Some(e) => Env { ir, registers: &st.registers, pkt }.num(e),
        None => return Err(ir.errors.header_too_short),
    };
    // A negative length is a huge one in P4's unsigned arithmetic.
    let length = length.to_u64().ok_or(ir.errors.header_too_short)?;
    if length % 8 != 0 {
        st.tell(pkt, || Detail::NoBytes(Extraction::Variable, length));
        return Err(ir.errors.parser_invalid_argument);
    }
    let bytes = usize::try_from(length / 8).map_err(|_| ir.errors.packet_too_short)?;
    let total = fixed.saturating_add(bytes);
    if left < total {
        return Err(ir.errors.packet_too_short);
    }
    if ty.max_bytes != 0 && total > ty.max_bytes as usize {
        return Err(ir.errors.header_too_short);
    }
    let start = pkt.offset * 8;
    extract_fields(pkt, header.base, &ty.fields[..varbit], start);
    let at = start + ty.fields[varbit].offset as usize;
    if let Some(v) = header.varbit {
        let mut data = std::mem::take(&mut pkt.varbits[v].bytes);
        data.clear();
        if at.is_multiple_of(8) {
            data.extend_from_slice(&pkt.buf[at / 8..at / 8 + bytes]);
        } else {
            data.extend((0..bytes).map(|i| load_bits(&pkt.buf, at + i * 8, 8) as u8));
        }
        pkt.varbits[v].bytes = data;
    }
    extract_fields(pkt, header.base, &ty.fields[varbit + 1..], start + bytes * 8);
    pkt.offset += total;
    Ok(())
}

/// Reads fixed-width fields; `start` is the bit where offset 0 of the header lies.
#[inline]
fn extract_fields(pkt: &mut Packet, base: Slot, fields: &[FieldDef], start: usize) {
    for f in fields {
        let at = start + f.offset as usize;
        let slot = (base + f.rel) as usize;
        if f.width <= 64 {
            pkt.slots[slot] = load_bits(&pkt.buf, at, f.width);
        } else {
            let limbs = f.width.div_ceil(64) as usize;
            load_limbs(&pkt.buf, at, f.width, &mut pkt.slots[slot..slot + limbs]);
        }
    }
}

/// The state that a state's key leads to.
pub fn select(ir: &Ir, st: &State, pkt: &Packet, state: &ParserState) -> Result<NextState> {
    if state.key.is_empty() {
        return Ok(state.default);
    }
    if let Some(cases) = &state.small {
        let mut key = 0_u64;
        for part in &state.key {
            let width = part.width();
            let shift = width.div_ceil(8) * 8;
            key = if shift >= 64 { 0 } else { key << shift } | small_part(ir, pkt, part)?;
        }
        for (value, mask, next) in cases {
            if key & mask == *value {
                return Ok(*next);
            }
        }
        return Ok(state.default);
    }
    let key = wide_key(ir, pkt, state)?;
    for case in &state.cases {
        match case {
            SelectCase::Value { value, mask, next } => {
                if key.iter().zip(mask).zip(value).all(|((k, m), v)| k & m == *v) {
                    return Ok(*next);
                }
            }
            SelectCase::Set { set, mask, next } => {
                let key = unpad(&state.key, &key);
                let hit = st.value_sets[*set as usize].iter().any(|m| {
                    let width = key.len() as u32 * 8;
                    let (value, bits) = (m.value.to_be_bytes(width), m.mask.to_be_bytes(width));
                    key.iter().enumerate().all(|(i, k)| {
                        let fixed = mask.as_ref().map_or(0xff, |m| m[i]);
                        (k ^ value[i]) & bits[i] & fixed == 0
                    })
                });
                if hit {
                    return Ok(*next);
                }
            }
        }
    }
    Ok(state.default)
}

/// The bytes of a state's key, each part padded to whole bytes.
fn wide_key(ir: &Ir, pkt: &Packet, state: &ParserState) -> Result<Vec<u8>> {
    let mut key = Vec::with_capacity(state.key_bytes);
    for part in &state.key {
        let width = part.width();
        let mut limbs = [0; 32];
        let limbs = &mut limbs[..width.div_ceil(64) as usize];
        wide_part(ir, pkt, part, limbs)?;
        key.extend_from_slice(&crate::Value::from_limbs(limbs).to_be_bytes(width));
    }
    Ok(key)
}

/// The key without the padding between its parts, right-aligned.
fn unpad(parts: &[SelectKey], key: &[u8]) -> Vec<u8> {
    let bits: u32 = parts.iter().map(SelectKey::width).sum();
    let bytes = bits.div_ceil(8) as usize;
    let mut out = vec![0; bytes];
    let mut at = bytes * 8 - bits as usize;
    let mut from = 0;
    for part in parts {
        let width = part.width();
        let room = width.div_ceil(8) * 8;
        let mut limbs = [0; 32];
        let limbs = &mut limbs[..width.div_ceil(64) as usize];
        load_limbs(key, from + (room - width) as usize, width, limbs);
        super::packet::store_limbs(&mut out, at, width, limbs);
        from += room as usize;
        at += width as usize;
    }
    out
}

/// A field of the last element of a stack; none when the stack is empty.
fn last_field(ir: &Ir, pkt: &Packet, stack: u32, f: &FieldOfType) -> Result<Field> {
    let stack = &ir.layout.stacks[stack as usize];
    let last = pkt.slots[stack.next as usize].checked_sub(1);
    let h = last.and_then(|i| stack.headers.get(i as usize)).ok_or(ir.errors.stack_out_of_bounds)?;
    Ok(field_of(ir, *h, f))
}

fn union_last_field(ir: &Ir, pkt: &Packet, stack: u32, member: u32, f: &FieldOfType) -> Result<Field> {
    let stack = &ir.layout.union_stacks[stack as usize];
    let last = pkt.slots[stack.next as usize].checked_sub(1);
    let u = last.and_then(|i| stack.unions.get(i as usize)).ok_or(ir.errors.stack_out_of_bounds)?;
    Ok(field_of(ir, ir.layout.unions[*u as usize].headers[member as usize], f))
}

fn small_part(ir: &Ir, pkt: &Packet, part: &SelectKey) -> Result<u64> {
    Ok(match part {
        SelectKey::Field(f) => pkt.get(f),
        SelectKey::StackLast(s, f) => pkt.get(&last_field(ir, pkt, *s, f)?),
        SelectKey::UnionStackLast(s, m, f) => pkt.get(&union_last_field(ir, pkt, *s, *m, f)?),
        SelectKey::Lookahead { offset, width } => {
            let bit = ahead(ir, pkt, *offset, *width)?;
            if *width == 0 {
                0
            } else {
                load_bits(&pkt.buf, bit, *width)
            }
        }
    })
}

fn wide_part(ir: &Ir, pkt: &Packet, part: &SelectKey, limbs: &mut [u64]) -> Result<()> {
    let field = match part {
        SelectKey::Field(f) => *f,
        SelectKey::StackLast(s, f) => last_field(ir, pkt, *s, f)?,
        SelectKey::UnionStackLast(s, m, f) => union_last_field(ir, pkt, *s, *m, f)?,
        SelectKey::Lookahead { offset, width } => {
            let bit = ahead(ir, pkt, *offset, *width)?;
            load_limbs(&pkt.buf, bit, *width, limbs);
            return Ok(());
        }
    };
    limbs.copy_from_slice(pkt.limbs(&field));
    Ok(())
}
