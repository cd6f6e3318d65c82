//! Calculations over fields, headers and payload.

use super::hash;
use super::headers::{is_valid, write_header};
use super::packet::{BitWriter, Packet};
use super::state::State;
use crate::ir::*;

/// The value of calculation `calc` for the packet.
pub fn compute(ir: &Ir, st: &mut State, pkt: &Packet, calc: u32) -> u64 {
    let c = &ir.calculations[calc as usize];
    if let Some((valid, parts)) = &c.sum {
        return u64::from(!sum(pkt, *valid, parts));
    }
    if let Some(parts) = &c.short {
        // Fields of invalid headers are skipped.
        let (mut all, mut width) = (0_u128, 0);
        for &(slot, valid, w) in parts {
            if pkt.slots[valid as usize] != 0 {
                all = all << w | u128::from(pkt.slots[slot as usize]);
                width += w;
            }
        }
        let bytes = all.checked_shl(128 - width).unwrap_or(0).to_be_bytes();
        let used = &bytes[..width.div_ceil(8) as usize];
        return run(c.algo, st, calc, used);
    }
    let mut buf = std::mem::take(&mut st.scratch);
    buf.clear();
    let mut bits = BitWriter::new(&mut buf);
    for item in &c.input {
        // An item of an invalid header is skipped.
        match item {
            CalcInput::Field(f) if pkt.slots[f.valid as usize] == 0 => {}
            CalcInput::Field(f) if f.width <= 64 => bits.push(pkt.get(f), f.width),
            CalcInput::Field(f) => bits.push_limbs(pkt.limbs(f), f.width),
            CalcInput::Varbit(v, valid) => {
                if pkt.slots[*valid as usize] != 0 {
                    bits.bytes(&pkt.varbits[*v as usize].bytes);
                }
            }
            CalcInput::Const(limbs, width) => bits.push_limbs(limbs, *width),
            CalcInput::Header(h) => {
                if is_valid(ir, pkt, *h) {
                    write_header(ir, pkt, *h, &mut bits);
                }
            }
        }
    }
    bits.finish();
    if c.payload {
        let end = pkt.payload().len().min(pkt.truncate);
        buf.extend_from_slice(&pkt.payload()[..end]);
    }
    let v = run(c.algo, st, calc, &buf);
    st.scratch = buf;
    v
}

fn run(algo: hash::Algo, st: &mut State, calc: u32, data: &[u8]) -> u64 {
    if let hash::Algo::Crc16Custom | hash::Algo::Crc32Custom = algo
        && let Some(crc) = st.custom_crcs.get(&calc)
    {
        return crc.run(data);
    }
    hash::run(algo, data, &mut st.round_robin[calc as usize])
}

/// The one's complement sum of fields that all belong to one header: each field is shifted to its
/// place within a 16-bit word, since 2^16 is 1 modulo 2^16 - 1 [RFC 1071 sec 2].
fn sum(pkt: &Packet, valid: Slot, parts: &[(Slot, u32)]) -> u16 {
    if pkt.slots[valid as usize] == 0 {
        return 0;
    }
    // A field's lower half may leave 64 bits when shifted: both halves are added apart.
    let mut sum = 0_u64;
    for &(slot, shift) in parts {
        let v = pkt.slots[slot as usize];
        sum += (v & 0xffff_ffff) << shift;
        let high = v >> 32;
        if high != 0 {
            sum += high << shift;
        }
    }
    hash::fold(sum)
}
