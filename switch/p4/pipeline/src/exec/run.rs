//! The register machine.

use super::calc;
use super::headers;
use super::heavy;
use super::packet::Packet;
use super::state::State;
use crate::drop_cause::DropCause;
use crate::ir::*;

/// Backward jumps one run may take before the packet is given up.
const MAX_JUMPS: u32 = 100_000;

#[inline(always)]
fn tri(s: &mut [u64], t: &Tri, f: impl Fn(u64, u64) -> u64) {
    s[t.dst as usize] = f(s[t.a as usize], s[t.b as usize]) & t.mask;
}

#[inline(always)]
fn un(s: &mut [u64], u: &Un, f: impl Fn(u64, u64) -> u64) {
    s[u.dst as usize] = f(s[u.a as usize], u.imm);
}

/// Jumps forward unless a comparison holds.
macro_rules! branch {
    ($s:ident, $b:ident, $pc:ident, $test:expr) => {{
        let test: fn(u64, u64) -> bool = $test;
        if !test($s[$b.a as usize], $s[$b.b as usize]) {
            $pc = $b.to as usize;
            continue;
        }
    }};
}

/// Runs a range of the program's code.
#[inline]
pub fn run(ir: &Ir, st: &mut State, pkt: &mut Packet, code: Code) {
    if code.start < code.end {
        let _ = run_to_table(ir, st, pkt, code);
    }
}

/// Runs a range of the program's code up to the next table, and says which.
pub fn run_to_table(ir: &Ir, st: &mut State, pkt: &mut Packet, code: Code) -> Option<u32> {
    let mut pc = code.start as usize;
    let ops = ir.code.get(..code.end as usize).unwrap_or(&[]);
    let mut jumps = 0;
    while let Some(op) = ops.get(pc) {
        let s = &mut pkt.slots[..];
        match op {
            Op::Mov(u) => un(s, u, |a, m| a & m),
            Op::Add(t) => tri(s, t, u64::wrapping_add),
            Op::Sub(t) => tri(s, t, u64::wrapping_sub),
            Op::Mul(t) => tri(s, t, u64::wrapping_mul),
            Op::Div(t) => tri(s, t, |a, b| a.checked_div(b).unwrap_or(0)),
            Op::Rem(t) => tri(s, t, |a, b| a.checked_rem(b).unwrap_or(0)),
            Op::And(t) => tri(s, t, |a, b| a & b),
            Op::Or(t) => tri(s, t, |a, b| a | b),
            Op::Xor(t) => tri(s, t, |a, b| a ^ b),
            Op::Shl(t) => tri(s, t, |a, b| if b < 64 { a << b } else { 0 }),
            Op::Shr(t) => tri(s, t, |a, b| if b < 64 { a >> b } else { 0 }),
            Op::Sar(t) => tri(s, t, |a, b| (a as i64 >> b.min(63)) as u64),
            Op::BitNot(u) => un(s, u, |a, m| !a & m),
            Op::Eq(t) => tri(s, t, |a, b| u64::from(a == b)),
            Op::Ne(t) => tri(s, t, |a, b| u64::from(a != b)),
            Op::LtU(t) => tri(s, t, |a, b| u64::from(a < b)),
            Op::LeU(t) => tri(s, t, |a, b| u64::from(a <= b)),
            Op::LtS(t) => tri(s, t, |a, b| u64::from((a as i64) < b as i64)),
            Op::LeS(t) => tri(s, t, |a, b| u64::from(a as i64 <= b as i64)),
            Op::NonZero(u) => un(s, u, |a, _| u64::from(a != 0)),
            Op::IsZero(u) => un(s, u, |a, _| u64::from(a == 0)),
            Op::Sext(u) => un(s, u, |a, w| {
                let shift = 64 - w as u32;
                ((a << shift) as i64 >> shift) as u64
            }),
            Op::MinU(u) => un(s, u, u64::min),
            Op::ClampU(u) => un(s, u, |a, max| if (a as i64) < 0 { 0 } else { a.min(max) }),
            Op::ClampS(u) => un(s, u, |a, w| {
                let max = i64::MAX >> (64 - w as u32);
                (a as i64).clamp(-max - 1, max) as u64
            }),
            Op::ClampUS(u) => un(s, u, |a, w| a.min(i64::MAX as u64 >> (64 - w as u32))),
            Op::Select { dst, c, a, b } => {
                s[*dst as usize] = s[if s[*c as usize] != 0 { *a } else { *b } as usize];
            }
            Op::RegGet { dst, reg, idx, mask } => {
                if let Some(v) = st.registers[*reg as usize].get(s[*idx as usize]) {
                    s[*dst as usize] = v & mask;
                }
            }
            Op::RegVal { dst, reg, idx } => {
                s[*dst as usize] = st.registers[*reg as usize].get(s[*idx as usize]).unwrap_or(0);
            }
            Op::RegSet { reg, idx, src } => {
                st.registers[*reg as usize].set(s[*idx as usize], s[*src as usize]);
            }
            Op::StackLast { dst, stack, rel } => {
                let stack = &ir.layout.stacks[*stack as usize];
                let next = s[stack.next as usize];
                let last = next.checked_sub(1).and_then(|i| stack.headers.get(i as usize));
                s[*dst as usize] = match last {
                    Some(&h) => s[(ir.layout.headers[h as usize].base + rel) as usize],
                    None => 0,
                };
            }
            Op::SetValid(h) => headers::set_valid(ir, pkt, *h),
            Op::AddHeader(h) => headers::add_header(ir, pkt, *h),
            Op::RemoveHeader(h) => headers::remove_header(ir, pkt, *h),
            Op::Count { counter, idx } => {
                let idx = s[*idx as usize] as usize;
                if let Some(cell) = st.counters[*counter as usize].get_mut(idx) {
                    cell.packets = cell.packets.wrapping_add(1);
                    cell.bytes = cell.bytes.wrapping_add(u64::from(pkt.ingress_length));
                }
            }
            Op::Meter { meter, idx, dst, mask } => {
                let idx = s[*idx as usize] as usize;
                let now = st.now;
                if let Some(cell) = st.meters[*meter as usize].get_mut(idx) {
                    s[*dst as usize] = cell.colour(now, pkt.ingress_length) & mask;
                }
            }
            Op::MarkToDrop => {
                pkt.set_opt(&ir.arch.egress_spec, st.drop_port);
                pkt.set_opt(&ir.arch.mcast_grp, 0);
            }
            Op::Exit => pkt.exit = true,
            Op::Jump(to) => {
                if (*to as usize) <= pc {
                    jumps += 1;
                }
                pc = *to as usize;
                if jumps > MAX_JUMPS {
                    pkt.failed = Some(DropCause::Limit);
                    return None;
                }
                continue;
            }
            Op::JumpIfZero(slot, to) => {
                if s[*slot as usize] == 0 {
                    if (*to as usize) <= pc {
                        jumps += 1;
                    }
                    pc = *to as usize;
                    if jumps > MAX_JUMPS {
                        pkt.failed = Some(DropCause::Limit);
                        return None;
                    }
                    continue;
                }
            }
            Op::JumpIfNonZero(slot, to) => {
                if s[*slot as usize] != 0 {
                    pc = *to as usize;
                    continue;
                }
            }
            Op::UnlessEq(b) => branch!(s, b, pc, |x, y| x == y),
            Op::UnlessNe(b) => branch!(s, b, pc, |x, y| x != y),
            Op::UnlessLtU(b) => branch!(s, b, pc, |x, y| x < y),
            Op::UnlessLeU(b) => branch!(s, b, pc, |x, y| x <= y),
            Op::UnlessLtS(b) => branch!(s, b, pc, |x, y| (x as i64) < y as i64),
            Op::UnlessLeS(b) => branch!(s, b, pc, |x, y| x as i64 <= y as i64),
            Op::Random { dst, lo, hi, mask } => {
                // As in BMv2, an empty interval leaves the field alone.
                let (lo, hi) = (s[*lo as usize], s[*hi as usize]);
                if lo <= hi {
                    s[*dst as usize] = st.rng.between(lo, hi) & mask;
                }
            }
            Op::Hash { dst, base, calc, size } => {
                let (base, size) = (s[*base as usize], s[*size as usize]);
                let hash = calc::compute(ir, st, pkt, *calc) % size.max(1);
                pkt.slots[*dst as usize] = base.wrapping_add(hash);
            }
            Op::Digest(list) => pkt.requests.digest = u64::from(*list),
            Op::Stop => {
                if pkt.exit || pkt.failed.is_some() {
                    return None;
                }
            }
            Op::Table(t) => return Some(*t),
            Op::Heavy(i) => heavy::run(ir, st, pkt, &ir.heavy[*i as usize]),
        }
        pc += 1;
    }
    None
}
