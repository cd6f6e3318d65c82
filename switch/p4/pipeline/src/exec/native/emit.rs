//! Steps to Cranelift's intermediate language.

use std::collections::HashMap;
use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{types, AbiParam, Block, FuncRef, InstBuilder, MemFlags, Value};
use cranelift_frontend::{FunctionBuilder, Variable};
use cranelift_jit::JITModule;
use cranelift_module::{Linkage, Module};

use super::calls::{Helper, FOUND_NOTHING};
use super::places::{places, Places};
use super::steps::{Label, Step, Steps};
use crate::definition::Definition;
use crate::exec::packet::Packet;
use crate::ir::*;
use crate::load::effects::Context;

/// The value a function returns when there is nothing to say.
pub const DONE: i64 = 0;
/// [`Step::Emit`]: the headers are in their places.
pub const EMITTED: u64 = 1;

/// What the parser counts, beside slots.
#[derive(Clone, Copy)]
pub(super) struct Counts {
    /// Byte of the frame.
    pub offset: Variable,
    /// States left.
    pub left: Variable,
    /// A checksum was wrong.
    pub wrong: Variable,
    /// What a lookup returned.
    pub found: Variable,
}

pub struct Emitter<'a, 'b> {
    pub(super) b: FunctionBuilder<'b>,
    pub(super) module: &'a mut JITModule,
    pub(super) functions: HashMap<&'static str, FuncRef>,
    pub(super) program: &'a Definition,
    pub(super) ir: &'a Ir,
    pub(super) steps: &'a Steps,
    pub(super) constants: &'a HashMap<Slot, u64>,
    pub(super) vars: HashMap<Slot, Variable>,
    pub(super) blocks: Vec<Block>,
    pub(super) counts: Counts,
    pub(super) env: Value,
    pub(super) slots: Value,
    pub(super) buf: Value,
    pub(super) packet: Value,
    pub(super) state: Value,
    pub(super) addresses: Value,
}

/// Slots and packets are where Rust put them, aligned.
pub fn own() -> MemFlags {
    MemFlags::trusted()
}

/// Translates one pass into the function under construction.
pub fn emit(
    mut b: FunctionBuilder,
    module: &mut JITModule,
    program: &Definition,
    context: &Context,
    steps: &Steps,
    live: &[Slot],
    constants: &HashMap<Slot, u64>,
) {
    let ir = &program.ir;
    let plan = places(steps, context, ir, live, constants);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    b.seal_block(entry);
    let p: Vec<Value> = b.block_params(entry).to_vec();
    let blocks = steps.labels.iter().map(|_| b.create_block()).collect();
    let counts = Counts {
        offset: b.declare_var(types::I64),
        left: b.declare_var(types::I64),
        wrong: b.declare_var(types::I64),
        found: b.declare_var(types::I64),
    };
    let zero = b.ins().iconst(types::I64, 0);
    for var in [counts.offset, counts.left, counts.wrong, counts.found] {
        b.def_var(var, zero);
    }
    let mut e = Emitter {
        b,
        module,
        functions: HashMap::new(),
        program,
        ir,
        steps,
        constants,
        vars: HashMap::new(),
        blocks,
        counts,
        env: p[0],
        slots: p[1],
        buf: p[2],
        packet: p[3],
        state: p[4],
        addresses: p[5],
    };
    e.all(&plan);
    e.b.seal_all_blocks();
    e.b.finalize();
}

impl Emitter<'_, '_> {
    pub(super) fn all(&mut self, plan: &Places) {
        // Blocks end where a step jumps away; what nobody reaches has none.
        let mut open = true;
        for (i, step) in self.steps.steps.iter().enumerate() {
            for &label in plan.labels.get(&i).into_iter().flatten() {
                if !plan.reached[i] {
                    continue;
                }
                let block = self.blocks[label as usize];
                if open {
                    self.b.ins().jump(block, &[]);
                }
                self.b.switch_to_block(block);
                open = true;
            }
            if !plan.reached[i] {
                continue;
            }
            for &slot in &plan.loads[i] {
                let v = self.load_slot(slot);
                self.define(slot, v);
            }
            self.step(step);
            for &slot in &plan.stores[i] {
                let v = self.get(slot);
                self.store_slot(slot, v);
            }
            open = step.continues();
        }
        // The end may have several labels.
        let n = self.steps.steps.len();
        for &label in plan.labels.get(&n).into_iter().flatten() {
            let block = self.blocks[label as usize];
            if open {
                self.b.ins().jump(block, &[]);
            }
            self.b.switch_to_block(block);
            open = true;
        }
        self.finish(DONE);
    }

    pub(super) fn finish(&mut self, v: i64) {
        let v = self.number(v as u64);
        self.b.ins().return_(&[v]);
    }

    pub(super) fn number(&mut self, v: u64) -> Value {
        self.b.ins().iconst(types::I64, v as i64)
    }

    pub(super) fn var(&mut self, slot: Slot) -> Variable {
        if let Some(&var) = self.vars.get(&slot) {
            return var;
        }
        let var = self.b.declare_var(types::I64);
        self.vars.insert(slot, var);
        var
    }

    /// The value of a slot that is at hand, or constant.
    pub(super) fn get(&mut self, slot: Slot) -> Value {
        if let Some(&v) = self.constants.get(&slot) {
            return self.number(v);
        }
        let var = self.var(slot);
        self.b.use_var(var)
    }

    pub(super) fn define(&mut self, slot: Slot, v: Value) {
        let var = self.var(slot);
        self.b.def_var(var, v);
    }

    pub(super) fn load_slot(&mut self, slot: Slot) -> Value {
        self.b.ins().load(types::I64, own(), self.slots, slot as i32 * 8)
    }

    pub(super) fn store_slot(&mut self, slot: Slot, v: Value) {
        self.b.ins().store(own(), v, self.slots, slot as i32 * 8);
    }

    /// A field of the packet's own.
    pub(super) fn of_packet(&mut self, at: usize) -> Value {
        self.b.ins().load(types::I64, own(), self.packet, at as i32)
    }

    pub(super) fn set_packet(&mut self, at: usize, v: Value) {
        self.b.ins().store(own(), v, self.packet, at as i32);
    }

    pub(super) fn flag_to_packet(&mut self, at: usize, v: Value) {
        self.b.ins().istore8(own(), v, self.packet, at as i32);
    }

    /// Calls a function of Rust's.
    pub(super) fn call(&mut self, helper: Helper, args: &[Value]) -> Value {
        let name = helper.name();
        let function = match self.functions.get(name) {
            Some(&f) => f,
            None => {
                let mut sig = self.module.make_signature();
                sig.params = vec![AbiParam::new(types::I64); 4];
                sig.returns = vec![AbiParam::new(types::I64)];
                // The names are declared once for the module, always with this signature.
                let id = self.module.declare_function(name, Linkage::Import, &sig);
                let Ok(id) = id else {
                    unreachable!("'{name}' is declared in one way");
                };
                let f = self.module.declare_func_in_func(id, self.b.func);
                self.functions.insert(name, f);
                f
            }
        };
        let zero = self.number(0);
        let mut all = vec![self.env];
        all.extend(args);
        all.resize(4, zero);
        let call = self.b.ins().call(function, &all);
        self.b.inst_results(call)[0]
    }

    pub(super) fn mask(&mut self, v: Value, mask: u64) -> Value {
        match mask {
            u64::MAX => v,
            _ => {
                let m = self.number(mask);
                self.b.ins().band(v, m)
            }
        }
    }

    pub(super) fn test(&mut self, cc: IntCC, a: Value, b: Value) -> Value {
        self.b.ins().icmp(cc, a, b)
    }

    pub(super) fn select(&mut self, c: Value, a: Value, b: Value) -> Value {
        self.b.ins().select(c, a, b)
    }

    pub(super) fn truth(&mut self, c: Value) -> Value {
        self.b.ins().uextend(types::I64, c)
    }

    /// On to the label when the condition holds.
    pub(super) fn jump_if(&mut self, c: Value, to: Label) {
        let next = self.b.create_block();
        let to = self.blocks[to as usize];
        self.b.ins().brif(c, to, &[], next, &[]);
        self.b.switch_to_block(next);
        self.b.seal_block(next);
    }

    pub(super) fn jump_unless(&mut self, c: Value, to: Label) {
        let next = self.b.create_block();
        let to = self.blocks[to as usize];
        self.b.ins().brif(c, next, &[], to, &[]);
        self.b.switch_to_block(next);
        self.b.seal_block(next);
    }

    pub(super) fn jump(&mut self, to: Label) {
        let to = self.blocks[to as usize];
        self.b.ins().jump(to, &[]);
    }

    pub(super) fn step(&mut self, step: &Step) {
        match step {
            Step::Op(op) => self.op(op),
            Step::Lookup(t) => {
                let table = &self.ir.tables[*t as usize];
                let t = self.number((*t).into());
                let found = if table.key_limbs <= 1 {
                    let key = self.key(&table.key);
                    self.call(Helper::LookupNarrow, &[t, key])
                } else {
                    self.call(Helper::Lookup, &[t])
                };
                self.b.def_var(self.counts.found, found);
            }
            Step::Choose(arms, none) => {
                let found = self.b.use_var(self.counts.found);
                let start = self.mask(found, 0xffff_ffff);
                if arms.len() > 1 {
                    let nothing = self.number(FOUND_NOTHING.into());
                    let c = self.test(IntCC::Equal, start, nothing);
                    self.jump_if(c, *none);
                }
                // An action is one of these, or nothing.
                for (code, label) in arms {
                    let code = self.number((*code).into());
                    let c = self.test(IntCC::Equal, start, code);
                    self.jump_if(c, *label);
                }
                self.jump(*none);
            }
            Step::Next(next) => {
                let Some(((_, last), others)) = next.split_last() else {
                    return self.jump(0);
                };
                for (pc, label) in others {
                    let found = self.b.use_var(self.counts.found);
                    let there = self.b.ins().ushr_imm(found, 32);
                    let pc = self.number((*pc).into());
                    let c = self.test(IntCC::Equal, there, pc);
                    self.jump_if(c, *label);
                }
                self.jump(*last);
            }
            Step::ParseStart => self.parse_start(),
            Step::State => self.state(),
            Step::Extract(h) => self.extract(*h),
            Step::ParserCall(state, at) => self.parser_call(*state, *at),
            Step::Lookahead { dst, offset, width } => self.lookahead(dst, *offset, *width),
            Step::Advance(n) => self.advance(*n),
            Step::Fail(error) => self.fail(*error),
            Step::Select { keys, cases, default } => self.parser_select(keys, cases, *default),
            Step::SelectCall(state, to) => self.select_call(*state, to),
            Step::ParseEnd => self.sync_offset(),
            Step::Verify(i) => {
                let c = &self.ir.checksums[*i as usize];
                let sum = self.calculation(c.calc);
                let known = self.get(c.target.slot);
                let differs = self.test(IntCC::NotEqual, sum, known);
                let differs = self.truth(differs);
                let wrong = self.b.use_var(self.counts.wrong);
                let wrong = self.b.ins().bor(wrong, differs);
                self.b.def_var(self.counts.wrong, wrong);
            }
            Step::Verified => {
                let wrong = self.b.use_var(self.counts.wrong);
                self.flag_to_packet(offset_of!(Packet, checksum_error), wrong);
                let arch = &self.ir.arch;
                if let Some(f) = &arch.checksum_error {
                    self.set_field(f, wrong);
                }
                if let Some(f) = &arch.parser_error {
                    let error = self.of_packet(offset_of!(Packet, error));
                    self.set_field(f, error);
                }
            }
            Step::Update(i) => {
                let c = &self.ir.checksums[*i as usize];
                let sum = self.calculation(c.calc);
                self.set_field(&c.target, sum);
            }
            Step::Emit => self.emit_headers(),
        }
    }

    /// A key of one limb: fields of invalid headers count as zero.
    pub(super) fn key(&mut self, parts: &[KeyPart]) -> Value {
        let mut key = self.number(0);
        for part in parts {
            let mut v = self.get(part.field.slot);
            if self.constants.get(&part.field.valid) != Some(&1) {
                let valid = self.get(part.field.valid);
                v = self.b.ins().imul(v, valid);
            }
            if let Some(mask) = &part.mask {
                v = self.mask(v, mask[0]);
            }
            let v = self.b.ins().ishl_imm(v, i64::from(part.shift));
            key = self.b.ins().bor(key, v);
        }
        key
    }

    /// As [`Packet::set`].
    pub(super) fn set_field(&mut self, f: &Field, v: Value) {
        let v = self.mask(v, crate::load::codegen::ones(f.width.min(64)));
        self.define(f.slot, v);
    }

    pub(super) fn calculation(&mut self, calc: u32) -> Value {
        let c = &self.ir.calculations[calc as usize];
        let Some((valid, parts)) = &c.sum else {
            let calc = self.number(calc.into());
            return self.call(Helper::Compute, &[calc]);
        };
        let widths: HashMap<Slot, u32> = c
            .input
            .iter()
            .filter_map(|i| match i {
                CalcInput::Field(f) => Some((f.slot, f.width)),
                _ => None,
            })
            .collect();
        let mut sum = self.number(0);
        for &(slot, shift) in parts {
            let v = self.get(slot);
            let wide = widths.get(&slot).is_none_or(|&w| w > 32);
            let low = if wide { self.mask(v, 0xffff_ffff) } else { v };
            let low = self.b.ins().ishl_imm(low, i64::from(shift));
            sum = self.b.ins().iadd(sum, low);
            if wide {
                let high = self.b.ins().ushr_imm(v, 32);
                let high = self.b.ins().ishl_imm(high, i64::from(shift));
                sum = self.b.ins().iadd(sum, high);
            }
        }
        // Three times for what 48 bits may hold, once for the carry [RFC 1071 sec 2].
        for (half, mask) in [(32, 0xffff_ffff), (16, 0xffff), (16, 0xffff), (16, 0xffff)] {
            let low = self.mask(sum, mask);
            let high = self.b.ins().ushr_imm(sum, half);
            sum = self.b.ins().iadd(low, high);
        }
        let zero = self.number(0);
        let valid = self.get(*valid);
        let sum = self.select(valid, sum, zero);
        let not = self.b.ins().bnot(sum);
        self.mask(not, 0xffff)
    }
}
