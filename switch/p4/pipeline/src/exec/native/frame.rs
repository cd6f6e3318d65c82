//! Parser and deparser: steps that read and write the frame.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{types, InstBuilder, MemFlags, Value};

use super::calls::{Helper, NO_STATE};
use super::emit::{own, Emitter, DONE, EMITTED};
use super::steps::Label;
use crate::exec::packet::Packet;
use crate::exec::state::State;
use crate::ir::*;
use crate::load::codegen::ones;

/// Frames begin anywhere.
fn bytes() -> MemFlags {
    MemFlags::new().with_notrap()
}

/// The parser.
impl Emitter<'_, '_> {
    pub(super) fn parse_start(&mut self) {
        let at = offset_of!(State, max_parser_states) as i32;
        let left = self.b.ins().uload32(own(), self.state, at);
        self.b.def_var(self.counts.left, left);
        let error = self.number(self.ir.errors.no_error);
        self.set_packet(offset_of!(Packet, error), error);
    }

    pub(super) fn parsed(&self) -> Label {
        self.steps.parsed
    }

    /// Ends the parser with an error unless the condition holds.
    pub(super) fn require(&mut self, c: Value, error: u64) {
        let (fails, next) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(c, next, &[], fails, &[]);
        self.b.set_cold_block(fails);
        self.b.switch_to_block(fails);
        self.b.seal_block(fails);
        self.fail(error);
        self.b.switch_to_block(next);
        self.b.seal_block(next);
    }

    pub(super) fn fail(&mut self, error: u64) {
        let error = self.number(error);
        self.set_packet(offset_of!(Packet, error), error);
        self.jump(self.parsed());
    }

    pub(super) fn state(&mut self) {
        let left = self.b.use_var(self.counts.left);
        self.require(left, self.ir.errors.parser_timeout);
        let left = self.b.ins().iadd_imm(left, -1);
        self.b.def_var(self.counts.left, left);
    }

    /// The frame has so many bytes more.
    pub(super) fn room(&mut self, n: u64) {
        let len = self.of_packet(offset_of!(Packet, len));
        let offset = self.b.use_var(self.counts.offset);
        let end = self.b.ins().iadd_imm(offset, n as i64);
        let c = self.test(IntCC::UnsignedLessThanOrEqual, end, len);
        self.require(c, self.ir.errors.packet_too_short);
    }

    pub(super) fn advance(&mut self, n: u64) {
        self.room(n);
        let offset = self.b.use_var(self.counts.offset);
        let offset = self.b.ins().iadd_imm(offset, n as i64);
        self.b.def_var(self.counts.offset, offset);
    }

    pub(super) fn extract(&mut self, h: u32) {
        let header = &self.ir.layout.headers[h as usize];
        let ty = &self.ir.layout.types[header.ty];
        let start = self.b.use_var(self.counts.offset);
        self.advance(u64::from(ty.bits / 8));
        if header.opaque {
            self.define(header.base, start);
        } else if let Some(words) = &ty.words {
            let at = self.b.ins().iadd(self.buf, start);
            for (word, parts) in words.each() {
                let v = self.load_bytes(at, word.at as i32, word.bytes);
                for p in parts {
                    let v = self.b.ins().ushr_imm(v, i64::from(p.shift));
                    let v = self.mask(v, p.mask);
                    self.define(header.base + p.rel, v);
                }
            }
        }
        self.set_valid(h);
    }

    /// Up to eight bytes of the frame as a number.
    pub(super) fn load_bytes(&mut self, base: Value, at: i32, n: u32) -> Value {
        let (mut v, mut done) = (None, 0);
        for size in [8, 4, 2, 1] {
            while n - done >= size {
                let from = at + done as i32;
                let part = match size {
                    8 => self.b.ins().load(types::I64, bytes(), base, from),
                    4 => self.b.ins().load(types::I32, bytes(), base, from),
                    2 => self.b.ins().load(types::I16, bytes(), base, from),
                    _ => self.b.ins().load(types::I8, bytes(), base, from),
                };
                let part = self.big_endian(part, size);
                let part = match size {
                    8 => part,
                    _ => self.b.ins().uextend(types::I64, part),
                };
                done += size;
                v = Some(match v {
                    None => part,
                    Some(v) => {
                        let v = self.b.ins().ishl_imm(v, i64::from(8 * size));
                        self.b.ins().bor(v, part)
                    }
                });
            }
        }
        match v {
            Some(v) => v,
            None => self.number(0),
        }
    }

    pub(super) fn big_endian(&mut self, v: Value, size: u32) -> Value {
        if cfg!(target_endian = "big") || size == 1 {
            v
        } else {
            self.b.ins().bswap(v)
        }
    }

    /// The low `n` bytes of a value to the frame.
    pub(super) fn store_bytes(&mut self, base: Value, at: i32, n: u32, v: Value) {
        let mut done = 0;
        for size in [8, 4, 2, 1] {
            while n - done >= size {
                let part = self.b.ins().ushr_imm(v, i64::from(8 * (n - done - size)));
                let part = match size {
                    8 => part,
                    4 => self.b.ins().ireduce(types::I32, part),
                    2 => self.b.ins().ireduce(types::I16, part),
                    _ => self.b.ins().ireduce(types::I8, part),
                };
                let part = self.big_endian(part, size);
                self.b.ins().store(bytes(), part, base, at + done as i32);
                done += size;
            }
        }
    }

    /// `width` bits `offset` bits ahead, within eight bytes of which the frame has all it needs.
    pub(super) fn ahead(&mut self, offset: u32, width: u32) -> Value {
        self.room(u64::from((offset + width).div_ceil(8)));
        let at = self.b.use_var(self.counts.offset);
        let at = self.b.ins().iadd(self.buf, at);
        let n = (offset % 8 + width).div_ceil(8);
        let v = self.load_bytes(at, (offset / 8) as i32, n);
        let v = self.b.ins().ushr_imm(v, i64::from(8 * n - offset % 8 - width));
        self.mask(v, ones(width))
    }

    pub(super) fn lookahead(&mut self, dst: &Field, offset: u32, width: u32) {
        let v = self.ahead(offset, width);
        self.set_field(dst, v);
    }

    pub(super) fn parser_select(&mut self, keys: &[SelectKey], cases: &[(u64, u64, Label)], default: Label) {
        let mut key = None;
        for part in keys {
            let width = part.width();
            let v = match part {
                SelectKey::Lookahead { offset, width } => self.ahead(*offset, *width),
                SelectKey::Field(f) => self.get(f.slot),
                _ => self.number(0),
            };
            let shift = width.div_ceil(8) * 8;
            key = Some(match key {
                Some(key) if shift < 64 => {
                    let key = self.b.ins().ishl_imm(key, i64::from(shift));
                    self.b.ins().bor(key, v)
                }
                _ => v,
            });
        }
        if let Some(key) = key {
            for &(value, mask, to) in cases {
                let v = self.mask(key, mask);
                let value = self.number(value);
                let c = self.test(IntCC::Equal, v, value);
                self.jump_if(c, to);
            }
        }
        self.jump(default);
    }

    /// The packet learns what is its payload.
    pub(super) fn sync_offset(&mut self) {
        let offset = self.b.use_var(self.counts.offset);
        self.set_packet(offset_of!(Packet, offset), offset);
    }

    pub(super) fn parser_call(&mut self, state: u32, at: u32) {
        self.sync_offset();
        let (state, at) = (self.number(state.into()), self.number(at.into()));
        let failed = self.call(Helper::ParserOp, &[state, at]);
        let offset = self.of_packet(offset_of!(Packet, offset));
        self.b.def_var(self.counts.offset, offset);
        self.jump_if(failed, self.parsed());
    }

    pub(super) fn select_call(&mut self, state: u32, to: &[Label]) {
        self.sync_offset();
        let state = self.number(state.into());
        let next = self.call(Helper::Select, &[state]);
        let none = self.number(NO_STATE);
        let c = self.test(IntCC::Equal, next, none);
        self.jump_if(c, self.parsed());
        for (i, &label) in to.iter().enumerate() {
            let i = self.number(i as u64);
            let c = self.test(IntCC::Equal, next, i);
            self.jump_if(c, label);
        }
        self.jump(self.parsed());
    }
}

/// The deparser.
impl Emitter<'_, '_> {
    /// Headers that have kept their places are written where they are; otherwise nothing is done.
    pub(super) fn emit_headers(&mut self) {
        let emits = &self.ir.deparser.emits;
        let not = self.b.create_block();
        let at = self.counts.offset;
        let start = self.number(0);
        self.b.def_var(at, start);
        for (i, e) in emits.iter().enumerate() {
            self.if_valid(e, |this| {
                let here = this.b.use_var(at);
                if e.opaque {
                    let was = this.load_slot(e.base);
                    let c = this.test(IntCC::Equal, here, was);
                    let next = this.b.create_block();
                    this.b.ins().brif(c, next, &[], not, &[]);
                    this.b.switch_to_block(next);
                    this.b.seal_block(next);
                }
                let mut next = this.b.ins().iadd_imm(here, i64::from(e.bytes));
                if e.varbit {
                    let i = this.number(i as u64);
                    let n = this.call(Helper::VarbitLength, &[i]);
                    next = this.b.ins().iadd(next, n);
                }
                this.b.def_var(at, next);
            });
        }
        let end = self.b.use_var(at);
        let offset = self.of_packet(offset_of!(Packet, offset));
        let c = self.test(IntCC::Equal, end, offset);
        let kept = self.b.create_block();
        self.b.ins().brif(c, kept, &[], not, &[]);
        self.b.switch_to_block(not);
        self.b.seal_block(not);
        self.finish(DONE);
        self.b.switch_to_block(kept);
        self.b.seal_block(kept);
        let start = self.number(0);
        self.b.def_var(at, start);
        for (i, e) in emits.iter().enumerate() {
            self.if_valid(e, |this| {
                let here = this.b.use_var(at);
                let words = this.ir.layout.types[e.ty as usize].words.as_ref();
                let next = match words {
                    _ if e.opaque => this.b.ins().iadd_imm(here, i64::from(e.bytes)),
                    Some(words) => {
                        let to = this.b.ins().iadd(this.buf, here);
                        for (word, parts) in words.each() {
                            let mut v = None;
                            for p in parts {
                                let part = this.load_slot(e.base + p.rel);
                                let part = this.b.ins().ishl_imm(part, i64::from(p.shift));
                                v = Some(match v {
                                    None => part,
                                    Some(v) => this.b.ins().bor(v, part),
                                });
                            }
                            if let Some(v) = v {
                                this.store_bytes(to, word.at as i32, word.bytes, v);
                            }
                        }
                        this.b.ins().iadd_imm(here, i64::from(e.bytes))
                    }
                    None => {
                        let i = this.number(i as u64);
                        let n = this.call(Helper::Overwrite, &[i, here]);
                        this.b.ins().iadd(here, n)
                    }
                };
                this.b.def_var(at, next);
            });
        }
        self.finish(EMITTED as i64);
    }

    pub(super) fn if_valid(&mut self, e: &Emit, then: impl FnOnce(&mut Self)) {
        let valid = self.load_slot(e.valid);
        let (yes, end) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(valid, yes, &[], end, &[]);
        self.b.switch_to_block(yes);
        self.b.seal_block(yes);
        then(self);
        self.b.ins().jump(end, &[]);
        self.b.switch_to_block(end);
        self.b.seal_block(end);
    }
}
