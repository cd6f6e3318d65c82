//! A packet inside the pipeline: its slots, its bytes, and what the program asked for it.

use crate::drop_cause::DropCause;
use crate::ir::{Field, FieldOfType, Ir, Layout};
use crate::observe::PacketName;
use crate::PortId;

use super::num::{cut, Num};

/// A variable-length field: whole bytes.
#[derive(Debug, Clone, Default)]
pub struct VarBits {
    pub bytes: Vec<u8>,
}

/// What an action asked for, carried out at the end of the control (the packet registers of
/// simple_switch).
#[derive(Debug, Clone, Copy, Default)]
pub struct Requests {
    /// Clone session and field list.
    pub clone: Option<(u32, u64)>,
    /// Learn list, 0 for none.
    pub digest: u64,
    /// Field list, 0 for none.
    pub resubmit: u64,
    /// Field list, 0 for none.
    pub recirculate: u64,
}

#[derive(Debug, Clone)]
pub struct Packet {
    pub slots: Vec<u64>,
    pub varbits: Vec<VarBits>,
    /// The frame as received (or as deparsed, when recirculated).
    pub buf: Vec<u8>,
    /// Bytes of the frame in `buf`.
    pub len: usize,
    /// Bytes the parser took: the payload starts here.
    pub offset: usize,
    /// Longest frame to emit.
    pub truncate: usize,
    pub ingress_port: PortId,
    /// Length at ingress, which counters and meters count.
    pub ingress_length: u32,
    /// Length now: headers added and removed are counted.
    pub length: u32,
    pub requests: Requests,
    /// Parser error code.
    pub error: u64,
    pub checksum_error: bool,
    pub exit: bool,
    /// How often it was resubmitted or recirculated.
    pub passes: u32,
    /// Who it is, where steps are kept.
    pub name: PacketName,
    /// The program failed on it.
    pub failed: Option<DropCause>,
}

impl Packet {
    pub fn new(layout: &Layout) -> Packet {
        Packet {
            slots: layout.init.clone(),
            varbits: vec![VarBits::default(); layout.varbits],
            buf: Vec::new(),
            len: 0,
            offset: 0,
            truncate: usize::MAX,
            ingress_port: 0,
            ingress_length: 0,
            length: 0,
            requests: Requests::default(),
            error: 0,
            checksum_error: false,
            exit: false,
            passes: 0,
            name: PacketName::default(),
            failed: None,
        }
    }

    /// Starts anew with the frame in `buf`, received on `port`.
    pub fn reset(&mut self, ir: &Ir, port: PortId) {
        self.len = self.buf.len();
        self.offset = 0;
        self.reset_fields(ir);
        self.truncate = usize::MAX;
        self.ingress_port = port;
        self.ingress_length = self.len as u32;
        self.length = self.len as u32;
        self.requests = Requests::default();
        self.passes = 0;
        self.failed = None;
        self.exit = false;
    }

    /// All headers invalid, all stacks empty, and what may be read before it is written zero.
    pub fn reset_fields(&mut self, ir: &Ir) {
        // Nothing may depend on the rest: tests would see it.
        #[cfg(debug_assertions)]
        self.slots[..ir.layout.packet_end as usize].fill(0xdead_beef_dead_beef);
        for &(from, to) in &ir.reset {
            self.slots[from as usize..to as usize].fill(0);
        }
        for v in &mut self.varbits {
            v.bytes.clear();
        }
    }

    pub fn reset_metadata(&mut self, layout: &Layout) {
        self.slots[..layout.metadata_end as usize].fill(0);
    }

    /// Makes this packet a copy of another one, buffers reused.
    pub fn copy_from(&mut self, other: &Packet) {
        self.slots.clone_from(&other.slots);
        self.varbits.clone_from(&other.varbits);
        self.copy_frame(other);
        self.offset = other.offset;
        self.error = other.error;
        self.checksum_error = other.checksum_error;
    }

    /// What a copy made by [`Packet::copy_from`] would be, without copying.
    pub fn become_copy(&mut self) {
        self.len = self.len.min(self.offset.saturating_add(self.truncate));
        self.truncate = usize::MAX;
        self.requests = Requests::default();
        self.exit = false;
    }

    /// Takes over another packet's frame and history, but not its fields. Like BMv2's copies, the
    /// copy holds no more of the bytes than the original's truncation leaves.
    pub fn copy_frame(&mut self, other: &Packet) {
        self.buf.clone_from(&other.buf);
        self.len = other.len.min(other.offset.saturating_add(other.truncate));
        self.offset = other.offset;
        self.truncate = usize::MAX;
        self.ingress_port = other.ingress_port;
        self.ingress_length = other.ingress_length;
        self.length = other.length;
        self.requests = Requests::default();
        self.exit = false;
        self.passes = other.passes;
        self.name = other.name;
        self.failed = None;
    }

    pub fn payload(&self) -> &[u8] {
        self.buf.get(self.offset..self.len).unwrap_or(&[])
    }

    #[inline]
    pub fn get(&self, f: &Field) -> u64 {
        self.slots[f.slot as usize]
    }

    /// Sets a field of at most 64 bits; higher bits are cut.
    #[inline]
    pub fn set(&mut self, f: &Field, v: u64) {
        let mask = if f.width >= 64 { u64::MAX } else { (1 << f.width) - 1 };
        self.slots[f.slot as usize] = v & mask;
    }

    pub fn set_opt(&mut self, f: &Option<Field>, v: u64) {
        if let Some(f) = f {
            self.set(f, v);
        }
    }

    pub fn limbs(&self, f: &Field) -> &[u64] {
        let start = f.slot as usize;
        &self.slots[start..start + f.limbs()]
    }

    pub fn num(&self, f: &Field) -> Num {
        let n = Num::from_limbs(self.limbs(f));
        if f.signed {
            n.two_comp_mod(f.width)
        } else {
            n
        }
    }

    pub fn set_num(&mut self, f: &Field, v: &Num) {
        let clamped;
        let v = match (f.saturating, f.signed) {
            (true, true) => {
                clamped = v.sat(f.width);
                &clamped
            }
            (true, false) => {
                clamped = v.usat(f.width);
                &clamped
            }
            _ => v,
        };
        let start = f.slot as usize;
        v.write_limbs(&mut self.slots[start..start + f.limbs()], f.width);
    }

    /// Copies a field's bits to an equally wide one.
    pub fn copy_field(&mut self, from: &Packet, f: &Field) {
        let start = f.slot as usize;
        let end = start + f.limbs();
        self.slots[start..end].copy_from_slice(&from.slots[start..end]);
    }

    /// The varbit of header `h` as bytes.
    pub fn varbit(&self, ir: &Ir, h: u32) -> &[u8] {
        match ir.layout.headers[h as usize].varbit {
            Some(v) => &self.varbits[v].bytes,
            None => &[],
        }
    }

    /// Bytes header `h` takes in a frame.
    pub fn header_len(&self, ir: &Ir, h: u32) -> usize {
        let header = &ir.layout.headers[h as usize];
        ir.layout.types[header.ty].bits as usize / 8 + self.varbit(ir, h).len()
    }
}

/// The field `f` of header `h`.
pub fn field_of(ir: &Ir, h: u32, f: &FieldOfType) -> Field {
    let header = &ir.layout.headers[h as usize];
    Field { slot: header.base + f.rel, width: f.width, signed: f.signed, saturating: f.saturating, valid: header.valid }
}

/// `width` bits (1 to 64) at bit `offset`; those behind the buffer's end are zero.
#[inline]
pub fn load_bits(buf: &[u8], offset: usize, width: u32) -> u64 {
    let byte = offset / 8;
    let bit = (offset % 8) as u32;
    let word = crate::words::load(buf, byte) << bit;
    let mut v = word >> (64 - width);
    if bit + width > 64 {
        let rest = bit + width - 64;
        v |= u64::from(buf.get(byte + 8).copied().unwrap_or(0)) >> (8 - rest);
    }
    v
}

/// ORs `width` bits (1 to 64) into a zeroed buffer at bit `offset`.
#[inline]
pub fn store_bits(buf: &mut [u8], offset: usize, width: u32, v: u64) {
    let byte = offset / 8;
    let bit = (offset % 8) as u32;
    let last = (offset + width as usize - 1) / 8;
    // The value, left-aligned behind `bit` bits of a 72-bit window.
    let aligned = (u128::from(v) << (128 - width)) >> bit;
    let bytes = aligned.to_be_bytes();
    if let Some(out) = buf.get_mut(byte..=last) {
        for (o, b) in out.iter_mut().zip(bytes) {
            *o |= b;
        }
    }
}

/// Appends fields of any width to a buffer, most significant bit first.
pub struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    /// Bits not yet written are the low `pending` ones, fewer than 64 between calls.
    acc: u128,
    pending: u32,
}

impl<'a> BitWriter<'a> {
    pub fn new(out: &'a mut Vec<u8>) -> BitWriter<'a> {
        BitWriter { out, acc: 0, pending: 0 }
    }

    /// The low `width` bits (1 to 64) of `v`, which has none above them.
    #[inline]
    pub fn push(&mut self, v: u64, width: u32) {
        self.acc = self.acc << width | u128::from(v);
        self.pending += width;
        if self.pending >= 64 {
            self.pending -= 64;
            self.out.extend_from_slice(&((self.acc >> self.pending) as u64).to_be_bytes());
        }
    }

    /// `width` bits of little-endian limbs.
    pub fn push_limbs(&mut self, limbs: &[u64], width: u32) {
        let mut left = width;
        for limb in limbs.iter().rev() {
            // The highest limb first, with what is beyond whole limbs.
            let take = if left.is_multiple_of(64) { 64 } else { left % 64 };
            self.push(*limb, take);
            left -= take;
        }
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        if self.pending.is_multiple_of(8) {
            self.flush();
            self.out.extend_from_slice(bytes);
            return;
        }
        for &b in bytes {
            self.push(b.into(), 8);
        }
    }

    /// Writes what is pending, padded with zeros to a whole byte.
    pub fn finish(mut self) {
        let pad = self.pending.wrapping_neg() % 8;
        self.acc <<= pad;
        self.pending += pad;
        self.flush();
    }

    /// Writes what is pending, which is whole bytes.
    fn flush(&mut self) {
        let n = (self.pending / 8) as usize;
        let bytes = (self.acc as u64).to_be_bytes();
        self.out.extend_from_slice(&bytes[8 - n..]);
        self.pending = 0;
    }
}

/// A field of any width from bit `offset` into little-endian limbs.
pub fn load_limbs(buf: &[u8], offset: usize, width: u32, limbs: &mut [u64]) {
    let mut end = offset + width as usize;
    let mut left = width;
    for limb in limbs.iter_mut() {
        let take = left.min(64);
        if take == 0 {
            *limb = 0;
            continue;
        }
        end -= take as usize;
        *limb = load_bits(buf, end, take);
        left -= take;
    }
    cut(limbs, width);
}

/// Little-endian limbs to `width` bits at bit `offset` of a zeroed buffer.
pub fn store_limbs(buf: &mut [u8], offset: usize, width: u32, limbs: &[u64]) {
    let mut end = offset + width as usize;
    let mut left = width;
    for &limb in limbs {
        let take = left.min(64);
        if take == 0 {
            break;
        }
        end -= take as usize;
        store_bits(buf, end, take, limb);
        left -= take;
    }
}
