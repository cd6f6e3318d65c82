//! Calculations over fields, headers and payload; checksum verification and update.

use super::hash;
use super::headers::is_valid;
use super::packet::{store_bits, store_limbs, Packet};
use super::run;
use super::state::State;
use crate::ir::*;

/// Largest input in bytes; jumbo frames fit.
const MAX_INPUT: usize = 1 << 18;

/// Collects bits, most significant first.
struct Bits<'a> {
    buf: &'a mut Vec<u8>,
    bits: usize,
}

impl Bits<'_> {
    /// Makes room for `n` more bits; the offset they start at.
    fn extend(&mut self, n: usize) -> usize {
        let at = self.bits;
        self.bits += n;
        self.buf.resize(self.bits.div_ceil(8), 0);
        at
    }

    fn bytes(&mut self, bytes: &[u8]) {
        if self.bits % 8 == 0 {
            self.buf.extend_from_slice(bytes);
            self.bits += bytes.len() * 8;
            return;
        }
        for &b in bytes {
            let at = self.extend(8);
            store_bits(self.buf, at, 8, u64::from(b));
        }
    }
}

/// The value of calculation `calc` for the packet.
pub fn compute(ir: &Ir, st: &mut State, pkt: &Packet, calc: u32) -> u64 {
    let c = &ir.calculations[calc as usize];
    let mut buf = std::mem::take(&mut st.scratch);
    buf.clear();
    let mut bits = Bits {
        buf: &mut buf,
        bits: 0,
    };
    for item in &c.input {
        // An item of an invalid header is skipped.
        match item {
            CalcInput::Field(f) => {
                if pkt.slots[f.valid as usize] == 0 {
                    continue;
                }
                let at = bits.extend(f.width as usize);
                if f.width <= 64 {
                    store_bits(bits.buf, at, f.width, pkt.get(f));
                } else {
                    store_limbs(bits.buf, at, f.width, pkt.limbs(f));
                }
            }
            CalcInput::Varbit(v, valid) => {
                if pkt.slots[*valid as usize] != 0 {
                    bits.bytes(&pkt.varbits[*v as usize].bytes);
                }
            }
            CalcInput::Const(bytes, width) => {
                let mut left = *width as usize;
                // The value is padded in front to whole bytes.
                let first = left % 8;
                for (i, &b) in bytes.iter().enumerate() {
                    let n = if i == 0 && first != 0 {
                        first
                    } else {
                        left.min(8)
                    };
                    if n == 0 {
                        break;
                    }
                    let at = bits.extend(n);
                    store_bits(bits.buf, at, n as u32, u64::from(b));
                    left -= n;
                }
            }
            CalcInput::Header(h) => {
                if is_valid(ir, pkt, *h) {
                    // Headers start at byte boundaries.
                    let start = bits.buf.len();
                    super::deparser::emit_header(ir, pkt, *h, bits.buf);
                    bits.bits = (start + pkt.header_len(ir, *h)) * 8;
                }
            }
        }
        if bits.buf.len() > MAX_INPUT {
            break;
        }
    }
    if c.payload {
        let end = pkt.payload().len().min(pkt.truncate);
        buf.extend_from_slice(&pkt.payload()[..end]);
    }
    let v = hash::run(c.algo, &buf, &mut st.round_robin[calc as usize]);
    st.scratch = buf;
    v
}

fn applies(ir: &Ir, st: &mut State, pkt: &mut Packet, c: &Checksum) -> bool {
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
    }
}
