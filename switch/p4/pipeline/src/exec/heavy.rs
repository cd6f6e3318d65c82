//! The rarer instructions.

use super::calc;
use super::eval::{decimal, header, union, Env};
use super::headers;
use super::num::Num;
use super::packet::{field_of, Packet};
use super::state::State;
use crate::drop_cause::DropCause;
use crate::ir::*;
use crate::observe::{ArrayKind, Detail, Step};

/// Lines of log kept at most.
const MAX_LOG: usize = 1 << 16;
/// Largest clone session (simple_switch keeps the id in 15 bits).
const SESSION_MASK: u64 = 0x7fff;
/// Field and learn list ids are kept in 16 bits.
const LIST_MASK: u64 = 0xffff;

fn env<'a>(ir: &'a Ir, st: &'a State, pkt: &'a Packet) -> Env<'a> {
    Env { ir, registers: &st.registers, pkt }
}

/// Writes a number to a place; a place that does not exist is left alone.
fn write(ir: &Ir, st: &mut State, pkt: &mut Packet, dst: &LValue, v: &Num) {
    match dst {
        LValue::Field(f) => pkt.set_num(f, v),
        LValue::FieldOf(h, f) => {
            if let Some(h) = header(&env(ir, st, pkt), h) {
                pkt.set_num(&field_of(ir, h, f), v);
            }
        }
        LValue::StackLast(s, f) => {
            if let Some(h) = env(ir, st, pkt).last(*s) {
                pkt.set_num(&field_of(ir, h, f), v);
            }
        }
        LValue::Register(reg, idx) => {
            let idx = env(ir, st, pkt).num(idx);
            register_write(st, *reg, &idx, v);
        }
    }
}

fn register_write(st: &mut State, reg: u32, idx: &Num, v: &Num) {
    let Some(idx) = idx.to_u64() else { return };
    let reg = &mut st.registers[reg as usize];
    let width = reg.width;
    if let Some(cell) = reg.limbs_at_mut(idx) {
        v.write_limbs(cell, width);
    }
}

/// Tells of the use of an array's cell; the value there, or none where there is no such cell.
fn tell_cell(st: &mut State, pkt: &Packet, kind: ArrayKind, array: u32, idx: Option<u64>, value: Option<&Num>) {
    st.tell(pkt, || match (idx, value) {
        (Some(idx), Some(value)) => Detail::Cell(kind, array, idx, decimal(value)),
        (idx, _) => Detail::NoCell(kind, array, idx.map_or_else(|| "out of range".to_string(), |idx| idx.to_string())),
    });
}

pub fn run(ir: &Ir, st: &mut State, pkt: &mut Packet, h: &Heavy) {
    match h {
        Heavy::Observe(..) if st.observed.is_none() => {}
        Heavy::Observe(Step::More(_), _) if !st.detailed => {}
        Heavy::TellReads(at, fields) => {
            st.tell(pkt, || Detail::Reads(*at, fields.iter().map(|f| crate::Value::from_limbs(pkt.limbs(f))).collect()));
        }
        Heavy::TellSet(set, field) => st.tell(pkt, || Detail::Set(*set, decimal(&pkt.num(field)))),
        Heavy::Observe(step, slot) => {
            let step = match (step, slot) {
                (Step::Condition(id, _), Some(slot)) => Step::Condition(*id, pkt.slots[*slot as usize] != 0),
                (step, _) => step.clone(),
            };
            st.note(pkt, step);
        }
        Heavy::Assign(dst, e) => {
            let v = env(ir, st, pkt).num(e);
            write(ir, st, pkt, dst, &v);
        }
        Heavy::CopySlots { dst, src, n } => {
            let src = *src as usize;
            pkt.slots.copy_within(src..src + *n as usize, *dst as usize);
        }
        Heavy::EvalBool(slot, e) => {
            let v = env(ir, st, pkt).truth(e);
            pkt.slots[*slot as usize] = v.into();
        }
        Heavy::Eval(slot, e) => {
            let v = env(ir, st, pkt).num(e).low_u64();
            pkt.slots[*slot as usize] = v;
        }
        Heavy::AssignVarbit { dst, src } => headers::copy_varbit(pkt, *dst as usize, *src as usize),
        Heavy::AssignHeader(dst, src) => {
            let e = env(ir, st, pkt);
            if let (Some(d), Some(s)) = (header(&e, dst), header(&e, src)) {
                headers::assign_header(ir, pkt, d, s);
            }
        }
        Heavy::AssignUnion(dst, src) => {
            let e = env(ir, st, pkt);
            if let (Some(d), Some(s)) = (union(&e, dst), union(&e, src)) {
                headers::assign_union(ir, pkt, d, s);
            }
        }
        Heavy::AssignStack(dst, src) => {
            let (d, s) = (&ir.layout.stacks[*dst as usize], &ir.layout.stacks[*src as usize]);
            pkt.slots[d.next as usize] = pkt.slots[s.next as usize];
            for (&dh, &sh) in d.headers.iter().zip(&s.headers) {
                headers::assign_header(ir, pkt, dh, sh);
            }
        }
        Heavy::AssignUnionStack(dst, src) => {
            let (d, s) = (&ir.layout.union_stacks[*dst as usize], &ir.layout.union_stacks[*src as usize]);
            pkt.slots[d.next as usize] = pkt.slots[s.next as usize];
            for (&du, &su) in d.unions.iter().zip(&s.unions) {
                headers::assign_union(ir, pkt, du, su);
            }
        }
        Heavy::AddHeader(h) => {
            if let Some(h) = header(&env(ir, st, pkt), h) {
                headers::add_header(ir, pkt, h);
            }
        }
        Heavy::RemoveHeader(h) => {
            if let Some(h) = header(&env(ir, st, pkt), h) {
                headers::remove_header(ir, pkt, h);
            }
        }
        Heavy::Push(s, n) => {
            let n = env(ir, st, pkt).bounded(n, 1 << 16) as usize;
            headers::push(ir, pkt, *s, n);
        }
        Heavy::Pop(s, n) => {
            let n = env(ir, st, pkt).bounded(n, 1 << 16) as usize;
            headers::pop(ir, pkt, *s, n);
        }
        Heavy::PushUnion(s, n) => {
            let n = env(ir, st, pkt).bounded(n, 1 << 16) as usize;
            headers::push_union(ir, pkt, *s, n);
        }
        Heavy::PopUnion(s, n) => {
            let n = env(ir, st, pkt).bounded(n, 1 << 16) as usize;
            headers::pop_union(ir, pkt, *s, n);
        }
        Heavy::RegisterRead(dst, reg, idx) => {
            let idx = env(ir, st, pkt).num(idx).to_u64();
            let v = idx.and_then(|i| st.registers[*reg as usize].limbs_at(i)).map(Num::from_limbs);
            tell_cell(st, pkt, ArrayKind::RegisterRead, *reg, idx, v.as_ref());
            if let Some(v) = v {
                write(ir, st, pkt, dst, &v);
            }
        }
        Heavy::RegisterWrite(reg, idx, e) => {
            let (idx, v) = (env(ir, st, pkt).num(idx), env(ir, st, pkt).num(e));
            if st.wants_values(pkt)
                && let Some((at, was)) = idx.to_u64().and_then(|i| Some((i, st.registers[*reg as usize].limbs_at(i).map(Num::from_limbs)?)))
            {
                st.tell(pkt, || Detail::Was(ArrayKind::RegisterWrite, *reg, at, decimal(&was)));
            }
            register_write(st, *reg, &idx, &v);
            if st.detailed {
                let written = idx.to_u64().and_then(|i| st.registers[*reg as usize].limbs_at(i)).map(Num::from_limbs);
                tell_cell(st, pkt, ArrayKind::RegisterWrite, *reg, idx.to_u64(), written.as_ref());
            }
        }
        Heavy::Count(counter, idx) => {
            let idx = env(ir, st, pkt).num(idx).to_u64();
            if st.wants_values(pkt)
                && let Some((at, was)) = idx.and_then(|i| Some((i, *st.counters[*counter as usize].get(i as usize)?)))
            {
                st.tell(pkt, || Detail::Was(ArrayKind::Counter, *counter, at, format!("{} packets, {} bytes", was.packets, was.bytes)));
            }
            if let Some(cell) = idx.and_then(|i| st.counters[*counter as usize].get_mut(i as usize)) {
                cell.packets = cell.packets.wrapping_add(1);
                cell.bytes = cell.bytes.wrapping_add(u64::from(pkt.ingress_length));
                tell_cell(st, pkt, ArrayKind::Counter, *counter, idx, Some(&Num::from_u64(0)));
            } else {
                tell_cell(st, pkt, ArrayKind::Counter, *counter, idx, None);
            }
        }
        Heavy::ExecuteMeter(meter, idx, dst) => {
            let idx = env(ir, st, pkt).num(idx).to_u64();
            let now = st.now;
            let cell = idx.and_then(|i| st.meters[*meter as usize].get_mut(i as usize));
            if let Some(cell) = cell {
                let colour = cell.colour(now, pkt.ingress_length);
                st.tell(pkt, || Detail::Metering(*meter, idx.unwrap_or(0)));
                write(ir, st, pkt, dst, &Num::from_u64(colour));
                tell_cell(st, pkt, ArrayKind::Meter, *meter, idx, Some(&Num::from_u64(colour)));
            } else {
                tell_cell(st, pkt, ArrayKind::Meter, *meter, idx, None);
            }
        }
        Heavy::Random(dst, lo, hi) => {
            let e = env(ir, st, pkt);
            let (lo, hi) = (e.num(lo).low_u64(), e.num(hi).low_u64());
            // As in BMv2, an empty interval leaves the field alone.
            if lo <= hi {
                let v = st.rng.between(lo, hi);
                st.tell(pkt, || Detail::Random { low: lo, high: hi, value: v });
                write(ir, st, pkt, dst, &Num::from_u64(v));
            }
        }
        Heavy::Hash { dst, base, calc, size } => {
            let e = env(ir, st, pkt);
            let (base, size) = (e.num(base).low_u64(), e.num(size).low_u64());
            let hash = calc::compute(ir, st, pkt, *calc);
            let v = base.wrapping_add(hash % size.max(1));
            st.tell(pkt, || Detail::Hash { base, size, value: v });
            write(ir, st, pkt, dst, &Num::from_u64(v));
        }
        Heavy::Digest(list) => {
            pkt.requests.digest = env(ir, st, pkt).num(list).low_u64() & LIST_MASK;
        }
        Heavy::CloneIngress(session, list) | Heavy::CloneEgress(session, list) => {
            let e = env(ir, st, pkt);
            let session = e.num(session).low_u64() & SESSION_MASK;
            let list = e.num(list).low_u64() & LIST_MASK;
            pkt.requests.clone = Some((session as u32, list));
        }
        Heavy::Resubmit(list) => {
            pkt.requests.resubmit = env(ir, st, pkt).num(list).low_u64() & LIST_MASK;
        }
        Heavy::Recirculate(list) => {
            pkt.requests.recirculate = env(ir, st, pkt).num(list).low_u64() & LIST_MASK;
        }
        Heavy::Truncate(length) => {
            let length = env(ir, st, pkt).bounded(length, u64::from(u32::MAX)) as usize;
            pkt.truncate = pkt.truncate.min(length);
        }
        Heavy::GetHash { dst, calc } => {
            let hash = calc::compute(ir, st, pkt, *calc);
            write(ir, st, pkt, dst, &Num::from_u64(hash));
        }
        Heavy::PsaMeter { meter, idx, dst, before } => {
            let e = env(ir, st, pkt);
            // PSA counts red, green, yellow; meters count green, yellow, red.
            let before = before.as_ref().map_or(super::meter::GREEN, |b| (e.num(b).low_u64() + 2) % 3);
            let idx = e.num(idx).to_u64();
            let now = st.now;
            if let Some(cell) = idx.and_then(|i| st.meters[*meter as usize].get_mut(i as usize)) {
                let colour = (cell.colour_after(now, pkt.ingress_length, before) + 1) % 3;
                write(ir, st, pkt, dst, &Num::from_u64(colour));
            }
        }
        Heavy::Sum { state, fields, subtract } => {
            let data = bytes_of(pkt, fields);
            // As psa_switch: word by word from the last one, as long as something is left.
            let used = data.iter().position(|&b| b != 0).map_or(0, |first| (data.len() - first).div_ceil(2));
            let mut sum = pkt.get(state);
            for word in data.rchunks(2).take(used) {
                let word = word.iter().fold(0, |v, &b| v << 8 | u64::from(b));
                sum += if *subtract { !word & 0xffff } else { word };
                sum = (sum & 0xffff) + (sum >> 16);
            }
            pkt.set(state, sum);
        }
        Heavy::Checksum { state, algo, fields } => {
            let data = bytes_of(pkt, fields);
            let value = super::hash::go_on(*algo, pkt.get(state), &data);
            pkt.set(state, value);
        }
        Heavy::Pack(list) => pack(ir, st, pkt, *list),
        Heavy::LogMsg(format, values) => {
            if st.log.is_none() && !st.detailed {
                return;
            }
            let e = env(ir, st, pkt);
            let line = fill(format, values.iter().map(|v| decimal(&e.num(v))));
            st.tell(pkt, || Detail::Message(line.clone()));
            if let Some(log) = st.log.as_mut().filter(|l| l.len() < MAX_LOG) {
                log.push(line);
            }
        }
        Heavy::Assert(cond, place) => {
            if env(ir, st, pkt).num(cond).is_zero() {
                pkt.failed = Some(DropCause::Assert);
                pkt.exit = true;
                st.tell(pkt, || Detail::Message(place.clone()));
                if let Some(log) = st.log.as_mut().filter(|l| l.len() < MAX_LOG) {
                    log.push(place.clone());
                }
            }
        }
    }
}

/// Fields one behind the other, with zeros before them up to a whole number of bytes.
fn bytes_of(pkt: &Packet, fields: &[Field]) -> Vec<u8> {
    let width: u32 = fields.iter().map(|f| f.width).sum();
    let mut out = Vec::with_capacity(width.div_ceil(8) as usize);
    let mut bits = super::packet::BitWriter::new(&mut out);
    let pad = width.wrapping_neg() % 8;
    if pad > 0 {
        bits.push(0, pad);
    }
    for f in fields {
        bits.push_limbs(pkt.limbs(f), f.width);
    }
    bits.finish();
    out
}

/// Keeps a digest of the fields as they are until it is taken.
pub fn pack(ir: &Ir, st: &mut State, pkt: &Packet, list: u64) {
    let Some(at) = ir.learn_lists.iter().position(|l| l.id == list) else {
        return;
    };
    if st.digests.len() >= st.max_digests {
        st.digests_lost += 1;
        return;
    }
    let members = ir.learn_lists[at].fields.iter().map(|f| crate::Value::from_limbs(pkt.limbs(f))).collect();
    st.digests.push_back(crate::control::Digest { list: crate::DigestId(at as u32), timestamp: st.now, members });
}

/// Puts values for the `{}` of a format; `\{` and `\}` are braces.
fn fill(format: &str, mut values: impl Iterator<Item = String>) -> String {
    let mut out = String::with_capacity(format.len());
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if matches!(chars.peek(), Some('{' | '}')) => out.extend(chars.next()),
            '{' => {
                let inside: String = chars.by_ref().take_while(|&c| c != '}').collect();
                match values.next() {
                    Some(v) => out.push_str(&v),
                    None => out.push_str(&format!("{{{inside}}}")),
                }
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::fill;

    #[test]
    fn formats() {
        let f = |s: &str| fill(s, ["1", "-2"].iter().map(|s| s.to_string()));
        assert_eq!(f("a={} b={}"), "a=1 b=-2");
        assert_eq!(f("\\{x\\} {} {} {}"), "{x} 1 -2 {}");
        assert_eq!(f("{"), "1");
        assert_eq!(f(""), "");
    }
}
