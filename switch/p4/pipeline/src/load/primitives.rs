//! Primitive calls: the bodies of actions, and calls from parsers and deparsers.

use std::collections::HashMap;

use super::codegen::{ones, CodeGen};
use super::expr::Scope;
use super::json::{Node, Result};
use super::layout::{FieldName, Names};
use super::reads;
use crate::definition::Definition;
use crate::ir::*;
use crate::observe::{Detail, Observing, Step};

/// Names a primitive's arguments may use.
pub struct Objects<'n> {
    pub names: &'n Names,
    pub registers: &'n HashMap<String, u32>,
    pub counters: &'n HashMap<String, u32>,
    pub meters: &'n HashMap<String, u32>,
    pub calculations: &'n HashMap<String, u32>,
    pub externs: &'n super::psa::Objects,
    /// The program is one for `psa_switch`.
    pub psa: bool,
}

/// Who calls primitives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    Action,
    /// BMv2 makes an action of each primitive of a parser or a deparser.
    Parser,
    Deparser,
}

/// What primitives are compiled into.
pub struct Target<'a> {
    pub caller: Caller,
    pub codegen: &'a mut CodeGen,
    pub program: &'a mut Definition,
}

/// Compiles a list of primitive calls to one piece of code.
pub fn body(target: &mut Target, objects: &Objects, params: &[(Slot, u32)], calls: &[Node]) -> Result<Code> {
    let Target { codegen, program, caller } = target;
    let told = program.observed >= Observing::Everything;
    let start = codegen.here();
    let mut starts = Vec::with_capacity(calls.len() + 1);
    let mut jumps = Vec::new();
    for call in calls {
        starts.push(codegen.here());
        if told && *caller != Caller::Action {
            let at = program.notes.methods.len() as u32;
            program.notes.methods.push(call.get("op")?.str()?.to_string());
            let calls = [true, false].into_iter().filter(|&called| !called || *caller == Caller::Parser);
            calls.for_each(|called| codegen.push_heavy(Heavy::Observe(Step::More(Box::new(Detail::Method(at, called))), None)));
        }
        if told {
            let detail = Detail::Primitive(program.notes.primitives.len() as u32);
            program.notes.primitives.push(call.source());
            codegen.push_heavy(Heavy::Observe(Step::More(Box::new(detail)), None));
        }
        if program.observed == Observing::Values {
            super::tell_reads(codegen, &mut program.notes, reads::of_primitive(call, objects.names, params));
        }
        let mut p = Primitive { codegen, calculations: &mut program.ir.calculations, objects, params, call, jumps: &mut jumps, told };
        p.compile()?;
        codegen.end_statement();
    }
    starts.push(codegen.here());
    for (at, target, node) in jumps {
        let Some(&to) = starts.get(target) else {
            return Err(node.err(format!("there is no primitive number {target} to jump to, the action has {}", calls.len())));
        };
        match &mut codegen.code[at] {
            Op::Jump(t) | Op::JumpIfZero(_, t) => *t = to,
            _ => return Err(node.err("a jump cannot be here")),
        }
    }
    Ok(Code { start, end: codegen.here() })
}

pub(super) struct Primitive<'a, 'n, 'j> {
    pub(super) codegen: &'a mut CodeGen,
    pub(super) calculations: &'a mut Vec<Calculation>,
    pub(super) objects: &'a Objects<'n>,
    params: &'a [(Slot, u32)],
    pub(super) call: &'a Node<'j>,
    /// Position of a jump in the code, primitive it goes to, and where it is said.
    jumps: &'a mut Vec<(usize, usize, Node<'j>)>,
    /// What it does is told: only rare instructions do that.
    told: bool,
}

impl<'j> Primitive<'_, '_, 'j> {
    pub(super) fn scope(&self) -> Scope<'_> {
        Scope { names: self.objects.names, registers: self.objects.registers, params: self.params }
    }

    pub(super) fn args(&self, n: usize) -> Result<Vec<Node<'j>>> {
        let args = self.call.list("parameters")?;
        if args.len() != n {
            let op = self.call.get("op")?;
            return Err(self.call.err(format!("'{}' takes {n} parameters, found {}", op.str()?, args.len())));
        }
        Ok(args)
    }

    pub(super) fn named(&self, node: &Node, ty: &str, map: &HashMap<String, u32>, what: &str) -> Result<u32> {
        let found = node.get("type")?;
        if found.str()? != ty {
            return Err(found.err(format!("expected a '{ty}', found '{}'", found.str()?)));
        }
        let value = node.get("value")?;
        let name = value.str()?;
        map.get(name).copied().ok_or_else(|| value.err(format!("there is no {what} '{name}'")))
    }

    fn stack(&self, node: &Node) -> Result<u32> {
        let ty = node.get("type")?;
        if ty.str()? != "header_stack" {
            return Err(ty.err(format!("expected a header stack, found '{}'", ty.str()?)));
        }
        self.objects.names.stack(&node.get("value")?)
    }

    fn varbit(&self, node: &Node) -> Result<u32> {
        let ty = node.get("type")?;
        if ty.str()? != "field" {
            return Err(ty.err("expected a variable-length field"));
        }
        match self.objects.names.field_or_varbit(&node.get("value")?)? {
            FieldName::Varbit(v, _) => Ok(v),
            FieldName::Fixed(_) => Err(node.err("expected a variable-length field, this one has a fixed width")),
        }
    }

    fn jump_target(&self, node: &Node) -> Result<usize> {
        match self.scope().data(node)? {
            Expr::Const(c) => usize::try_from(&c).map_err(|_| node.err("a jump goes to a primitive's number")),
            _ => Err(node.err("the target of a jump must be a constant")),
        }
    }

    fn same_size(&self, a: usize, b: usize) -> Result<()> {
        if a != b {
            return Err(self.call.err("the two stacks have different sizes"));
        }
        Ok(())
    }

    fn same_type(&self, a: usize, b: usize) -> Result<()> {
        if a != b {
            return Err(self.call.err("the two sides are of different types"));
        }
        Ok(())
    }

    fn compile(&mut self) -> Result<()> {
        let op_node = self.call.get("op")?;
        match op_node.str()? {
            "assign" | "modify_field" => self.assign(),
            "add" => self.binary(BinOp::Add),
            "subtract" => self.binary(BinOp::Sub),
            "bit_xor" => self.binary(BinOp::Xor),
            "bit_or" => self.binary(BinOp::Or),
            "bit_and" => self.binary(BinOp::And),
            "shift_left" => self.binary(BinOp::Shl),
            "shift_right" => self.binary(BinOp::Shr),
            "add_to_field" => self.change(BinOp::Add),
            "subtract_from_field" => self.change(BinOp::Sub),
            "assign_VL" => self.assign_varbit(),
            "assign_header" | "copy_header" => self.assign_header(),
            "assign_union" => self.assign_union(),
            "assign_header_stack" => self.assign_stack(),
            "assign_union_stack" => self.assign_union_stack(),
            "push" => self.shift_stack(Heavy::Push, Heavy::PushUnion),
            "pop" => self.shift_stack(Heavy::Pop, Heavy::PopUnion),
            "add_header" => self.header(Op::AddHeader, Heavy::AddHeader),
            "add_header_fast" => self.header(Op::SetValid, Heavy::AddHeader),
            "remove_header" => self.header(Op::RemoveHeader, Heavy::RemoveHeader),
            "register_read" => self.register_read(),
            "register_write" => self.register_write(),
            "count" => self.count(),
            "execute_meter" => self.execute_meter(),
            "modify_field_rng_uniform" => self.random(),
            "modify_field_with_hash_based_offset" => self.hash_based_offset(),
            "generate_digest" if self.objects.psa => self.pack(),
            "generate_digest" => self.digest(),
            "clone_ingress_pkt_to_egress" => self.clone_packet(Heavy::CloneIngress),
            "clone_egress_pkt_to_egress" => self.clone_packet(Heavy::CloneEgress),
            "resubmit" => self.with_value(Heavy::Resubmit),
            "recirculate" => self.with_value(Heavy::Recirculate),
            "truncate" => self.with_value(Heavy::Truncate),
            "drop" => {
                self.args(0)?;
                self.plain(Op::MarkToDrop)
            }
            "mark_to_drop" => self.mark_to_drop(),
            "exit" => self.plain(Op::Exit),
            "no_op" => Ok(()),
            "_jump" => self.jump(),
            "_jump_if_zero" => self.jump_if_zero(),
            "log_msg" => self.log_msg(),
            op @ ("assert" | "assume") => self.assert(op),
            other if self.psa_primitive(other)? => Ok(()),
            other => {
                let hint = "externs other than those of v1model and PSA are not supported";
                Err(op_node.err(format!("there is no primitive '{other}'")).hint(hint))
            }
        }
    }

    fn plain(&mut self, op: Op) -> Result<()> {
        self.codegen.code.push(op);
        Ok(())
    }

    fn heavy(&mut self, heavy: Heavy) -> Result<()> {
        self.codegen.push_heavy(heavy);
        Ok(())
    }

    /// With one parameter, a value.
    fn with_value(&mut self, heavy: fn(Expr) -> Heavy) -> Result<()> {
        let a = self.args(1)?;
        let value = self.scope().data(&a[0])?;
        self.heavy(heavy(value))
    }

    fn assign(&mut self) -> Result<()> {
        let a = self.args(2)?;
        let (dst, e) = (self.scope().lvalue(&a[0])?, self.scope().data(&a[1])?);
        self.codegen.assign(&dst, &e);
        Ok(())
    }

    fn binary(&mut self, op: BinOp) -> Result<()> {
        let a = self.args(3)?;
        let s = self.scope();
        let (dst, x, y) = (s.lvalue(&a[0])?, s.data(&a[1])?, s.data(&a[2])?);
        self.codegen.assign(&dst, &Expr::Bin(op, Box::new(x), Box::new(y)));
        Ok(())
    }

    /// Of a field by itself and another value.
    fn change(&mut self, op: BinOp) -> Result<()> {
        let a = self.args(2)?;
        let s = self.scope();
        let (dst, x, y) = (s.lvalue(&a[0])?, s.data(&a[0])?, s.data(&a[1])?);
        self.codegen.assign(&dst, &Expr::Bin(op, Box::new(x), Box::new(y)));
        Ok(())
    }

    fn assign_varbit(&mut self) -> Result<()> {
        let a = self.args(2)?;
        let (dst, src) = (self.varbit(&a[0])?, self.varbit(&a[1])?);
        self.heavy(Heavy::AssignVarbit { dst, src })
    }

    fn assign_header(&mut self) -> Result<()> {
        let a = self.args(2)?;
        let s = self.scope();
        let (dst, src) = (s.header(&a[0])?, s.header(&a[1])?);
        self.same_type(s.header_type(&dst), s.header_type(&src))?;
        self.heavy(Heavy::AssignHeader(dst, src))
    }

    fn assign_union(&mut self) -> Result<()> {
        let a = self.args(2)?;
        let s = self.scope();
        let (dst, src) = (s.union(&a[0])?, s.union(&a[1])?);
        self.same_type(s.union_type(&dst), s.union_type(&src))?;
        self.heavy(Heavy::AssignUnion(dst, src))
    }

    fn assign_stack(&mut self) -> Result<()> {
        let a = self.args(2)?;
        let (dst, src) = (self.stack(&a[0])?, self.stack(&a[1])?);
        let stacks = &self.objects.names.layout.stacks;
        let (d, s) = (&stacks[dst as usize], &stacks[src as usize]);
        self.same_type(d.ty, s.ty)?;
        self.same_size(d.headers.len(), s.headers.len())?;
        self.heavy(Heavy::AssignStack(dst, src))
    }

    fn assign_union_stack(&mut self) -> Result<()> {
        let a = self.args(2)?;
        let names = self.objects.names;
        let (dst, src) = (names.union_stack(&a[0].get("value")?)?, names.union_stack(&a[1].get("value")?)?);
        let stacks = &names.layout.union_stacks;
        let (d, s) = (&stacks[dst as usize], &stacks[src as usize]);
        self.same_type(d.ty, s.ty)?;
        self.same_size(d.unions.len(), s.unions.len())?;
        self.heavy(Heavy::AssignUnionStack(dst, src))
    }

    fn shift_stack(&mut self, headers: fn(u32, Expr) -> Heavy, unions: fn(u32, Expr) -> Heavy) -> Result<()> {
        let a = self.args(2)?;
        let n = self.scope().data(&a[1])?;
        let heavy = if a[0].get("type")?.str()? == "header_union_stack" {
            unions(self.objects.names.union_stack(&a[0].get("value")?)?, n)
        } else {
            headers(self.stack(&a[0])?, n)
        };
        self.heavy(heavy)
    }

    /// fixed: where the header is known; heavy: where it is an element of a stack that is found by its index.
    fn header(&mut self, fixed: fn(u32) -> Op, heavy: fn(HeaderRef) -> Heavy) -> Result<()> {
        let a = self.args(1)?;
        match self.scope().header(&a[0])? {
            HeaderRef::Fixed(h) => self.plain(fixed(h)),
            h => self.heavy(heavy(h)),
        }
    }

    fn register_write(&mut self) -> Result<()> {
        let a = self.args(3)?;
        let reg = self.named(&a[0], "register_array", self.objects.registers, "register array")?;
        let (idx, e) = (self.scope().data(&a[1])?, self.scope().data(&a[2])?);
        let small = self.codegen.register_widths[reg as usize] <= 64;
        match self.codegen.unsigned(&idx) {
            Some(slot) if small && !self.told => {
                // The register's own width is cut when it is stored.
                let src = self.codegen.low(&e);
                self.plain(Op::RegSet { reg, idx: slot, src })
            }
            _ => self.heavy(Heavy::RegisterWrite(reg, idx, e)),
        }
    }

    fn count(&mut self) -> Result<()> {
        let a = self.args(2)?;
        let counter = self.named(&a[0], "counter_array", self.objects.counters, "counter array")?;
        let idx = self.scope().data(&a[1])?;
        match self.codegen.unsigned(&idx) {
            Some(idx) if !self.told => self.plain(Op::Count { counter, idx }),
            _ => self.heavy(Heavy::Count(counter, idx)),
        }
    }

    fn execute_meter(&mut self) -> Result<()> {
        let a = self.args(3)?;
        let meter = self.named(&a[0], "meter_array", self.objects.meters, "meter array")?;
        let (idx, dst) = (self.scope().data(&a[1])?, self.scope().lvalue(&a[2])?);
        match (&dst, self.codegen.unsigned(&idx)) {
            (LValue::Field(f), Some(idx)) if f.width <= 64 && !f.saturating && !self.told => {
                let mask = if f.width == 64 { u64::MAX } else { (1 << f.width) - 1 };
                self.plain(Op::Meter { meter, idx, dst: f.slot, mask })
            }
            _ => self.heavy(Heavy::ExecuteMeter(meter, idx, dst)),
        }
    }

    fn random(&mut self) -> Result<()> {
        let a = self.args(3)?;
        let s = self.scope();
        let (dst, lo, hi) = (s.lvalue(&a[0])?, s.data(&a[1])?, s.data(&a[2])?);
        match dst {
            LValue::Field(f) if f.width <= 64 && !f.saturating && !self.told => {
                let (lo, hi) = (self.codegen.low(&lo), self.codegen.low(&hi));
                self.plain(Op::Random { dst: f.slot, lo, hi, mask: ones(f.width) })
            }
            _ => self.heavy(Heavy::Random(dst, lo, hi)),
        }
    }

    fn hash_based_offset(&mut self) -> Result<()> {
        let a = self.args(4)?;
        let s = self.scope();
        let calc = self.named(&a[2], "calculation", self.objects.calculations, "calculation")?;
        let (dst, base, size) = (s.lvalue(&a[0])?, s.data(&a[1])?, s.data(&a[3])?);
        match dst {
            LValue::Field(f) if f.width <= 64 && !f.saturating && !self.told => {
                let (base, size) = (self.codegen.low(&base), self.codegen.low(&size));
                self.codegen.hash(&f, base, calc, size);
                Ok(())
            }
            _ => self.heavy(Heavy::Hash { dst, base, calc, size }),
        }
    }

    fn digest(&mut self) -> Result<()> {
        let a = self.args(2)?;
        let list = self.scope().data(&a[1])?;
        let known = if let Expr::Const(c) = &list { u16::try_from(c).ok() } else { None };
        match known {
            Some(list) => self.plain(Op::Digest(list.into())),
            None => self.heavy(Heavy::Digest(list)),
        }
    }

    fn clone_packet(&mut self, heavy: fn(Expr, Expr) -> Heavy) -> Result<()> {
        let a = self.args(2)?;
        let (session, list) = (self.scope().data(&a[0])?, self.scope().data(&a[1])?);
        self.heavy(heavy(session, list))
    }

    fn mark_to_drop(&mut self) -> Result<()> {
        let a = self.call.list("parameters")?;
        if a.len() > 1 {
            return Err(self.call.err("'mark_to_drop' takes the standard metadata and nothing else"));
        }
        if let Some(header) = a.first() {
            self.scope().header(header)?;
        }
        self.plain(Op::MarkToDrop)
    }

    fn jump(&mut self) -> Result<()> {
        let a = self.args(1)?;
        let target = self.jump_target(&a[0])?;
        self.jumps.push((self.codegen.code.len(), target, a[0].clone()));
        self.plain(Op::Jump(0))
    }

    fn jump_if_zero(&mut self) -> Result<()> {
        let a = self.args(2)?;
        let cond = self.scope().data(&a[0])?;
        let target = self.jump_target(&a[1])?;
        let slot = self.codegen.condition(&Expr::ToBool(Box::new(cond)));
        self.jumps.push((self.codegen.code.len(), target, a[1].clone()));
        self.plain(Op::JumpIfZero(slot, 0))
    }

    fn log_msg(&mut self) -> Result<()> {
        let a = self.args(2)?;
        let format = a[0].get("value")?.str()?.to_string();
        let list = a[1].get("value")?;
        // p4c writes an empty list as an empty object.
        let none = list.v.as_object().is_some_and(|o| o.is_empty());
        let items = if none { Vec::new() } else { list.items()? };
        let values = items.iter().map(|v| self.scope().data(v)).collect::<Result<_>>()?;
        self.heavy(Heavy::LogMsg(format, values))
    }

    fn assert(&mut self, op: &str) -> Result<()> {
        let a = self.args(1)?;
        let cond = self.scope().data(&a[0])?;
        let place = match self.call.opt("source_info") {
            Some(info) => format!(
                "{op} failed: {} at {}:{}",
                info.opt("source_fragment").and_then(|n| n.v.as_str()).unwrap_or(op),
                info.opt("filename").and_then(|n| n.v.as_str()).unwrap_or("?"),
                info.opt("line").and_then(|n| n.v.as_u64()).unwrap_or(0),
            ),
            None => format!("{op} failed"),
        };
        self.heavy(Heavy::Assert(cond, place))
    }

    fn register_read(&mut self) -> Result<()> {
        let a = self.args(3)?;
        let dst = self.scope().lvalue(&a[0])?;
        let reg = self.named(&a[1], "register_array", self.objects.registers, "register array")?;
        let idx = self.scope().data(&a[2])?;
        let small = self.codegen.register_widths[reg as usize] <= 64;
        match (&dst, self.codegen.unsigned(&idx)) {
            (LValue::Field(f), Some(idx)) if small && !self.told && f.width <= 64 && !f.saturating => {
                let mask = if f.width == 64 { u64::MAX } else { (1 << f.width) - 1 };
                self.codegen.code.push(Op::RegGet { dst: f.slot, reg, idx, mask });
            }
            _ => self.codegen.push_heavy(Heavy::RegisterRead(dst, reg, idx)),
        }
        Ok(())
    }
}
