//! Primitive calls: the bodies of actions, and calls from parsers and deparsers.

use std::collections::HashMap;

use super::codegen::{ones, CodeGen};
use super::expr::Scope;
use super::json::{Node, Result};
use super::layout::{FieldName, Names};
use crate::ir::*;

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

/// Compiles a list of primitive calls to one piece of code.
pub fn body(
    codegen: &mut CodeGen,
    calculations: &mut Vec<Calculation>,
    objects: &Objects,
    params: &[(Slot, u32)],
    calls: &[Node],
) -> Result<Code> {
    let start = codegen.here();
    let mut starts = Vec::with_capacity(calls.len() + 1);
    let mut jumps = Vec::new();
    for call in calls {
        starts.push(codegen.here());
        let mut p = Primitive { codegen, calculations, objects, params, call, jumps: &mut jumps };
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

    fn same_type(&self, a: usize, b: usize) -> Result<()> {
        if a != b {
            return Err(self.call.err("the two sides are of different types"));
        }
        Ok(())
    }

    fn compile(&mut self) -> Result<()> {
        let op_node = self.call.get("op")?;
        let op = op_node.str()?;
        match op {
            "assign" | "modify_field" => {
                let a = self.args(2)?;
                let (dst, e) = (self.scope().lvalue(&a[0])?, self.scope().data(&a[1])?);
                self.codegen.assign(&dst, &e);
            }
            "add" | "subtract" | "bit_xor" | "bit_or" | "bit_and" | "shift_left" | "shift_right" => {
                let a = self.args(3)?;
                let s = self.scope();
                let (dst, x, y) = (s.lvalue(&a[0])?, s.data(&a[1])?, s.data(&a[2])?);
                let b = match op {
                    "add" => BinOp::Add,
                    "subtract" => BinOp::Sub,
                    "bit_xor" => BinOp::Xor,
                    "bit_or" => BinOp::Or,
                    "bit_and" => BinOp::And,
                    "shift_left" => BinOp::Shl,
                    _ => BinOp::Shr,
                };
                self.codegen.assign(&dst, &Expr::Bin(b, Box::new(x), Box::new(y)));
            }
            "add_to_field" | "subtract_from_field" => {
                let a = self.args(2)?;
                let s = self.scope();
                let (dst, x, y) = (s.lvalue(&a[0])?, s.data(&a[0])?, s.data(&a[1])?);
                let b = if op == "add_to_field" { BinOp::Add } else { BinOp::Sub };
                self.codegen.assign(&dst, &Expr::Bin(b, Box::new(x), Box::new(y)));
            }
            "assign_VL" => {
                let a = self.args(2)?;
                let h = Heavy::AssignVarbit { dst: self.varbit(&a[0])?, src: self.varbit(&a[1])? };
                self.codegen.push_heavy(h);
            }
            "assign_header" | "copy_header" => {
                let a = self.args(2)?;
                let s = self.scope();
                let (dst, src) = (s.header(&a[0])?, s.header(&a[1])?);
                self.same_type(s.header_type(&dst), s.header_type(&src))?;
                self.codegen.push_heavy(Heavy::AssignHeader(dst, src));
            }
            "assign_union" => {
                let a = self.args(2)?;
                let s = self.scope();
                let (dst, src) = (s.union(&a[0])?, s.union(&a[1])?);
                self.same_type(s.union_type(&dst), s.union_type(&src))?;
                self.codegen.push_heavy(Heavy::AssignUnion(dst, src));
            }
            "assign_header_stack" => {
                let a = self.args(2)?;
                let (dst, src) = (self.stack(&a[0])?, self.stack(&a[1])?);
                let stacks = &self.objects.names.layout.stacks;
                let (d, s) = (&stacks[dst as usize], &stacks[src as usize]);
                self.same_type(d.ty, s.ty)?;
                if d.headers.len() != s.headers.len() {
                    return Err(self.call.err("the two stacks have different sizes"));
                }
                self.codegen.push_heavy(Heavy::AssignStack(dst, src));
            }
            "assign_union_stack" => {
                let a = self.args(2)?;
                let names = self.objects.names;
                let dst = names.union_stack(&a[0].get("value")?)?;
                let src = names.union_stack(&a[1].get("value")?)?;
                let stacks = &names.layout.union_stacks;
                let (d, s) = (&stacks[dst as usize], &stacks[src as usize]);
                self.same_type(d.ty, s.ty)?;
                if d.unions.len() != s.unions.len() {
                    return Err(self.call.err("the two stacks have different sizes"));
                }
                self.codegen.push_heavy(Heavy::AssignUnionStack(dst, src));
            }
            "push" | "pop" => {
                let a = self.args(2)?;
                let n = self.scope().data(&a[1])?;
                let union = a[0].get("type")?.str()? == "header_union_stack";
                let h = if union {
                    let s = self.objects.names.union_stack(&a[0].get("value")?)?;
                    if op == "push" {
                        Heavy::PushUnion(s, n)
                    } else {
                        Heavy::PopUnion(s, n)
                    }
                } else {
                    let s = self.stack(&a[0])?;
                    if op == "push" {
                        Heavy::Push(s, n)
                    } else {
                        Heavy::Pop(s, n)
                    }
                };
                self.codegen.push_heavy(h);
            }
            "add_header" | "add_header_fast" | "remove_header" => {
                let a = self.args(1)?;
                let header = self.scope().header(&a[0])?;
                match (op, header) {
                    ("add_header", HeaderRef::Fixed(h)) => self.codegen.code.push(Op::AddHeader(h)),
                    ("add_header_fast", HeaderRef::Fixed(h)) => self.codegen.code.push(Op::SetValid(h)),
                    (_, HeaderRef::Fixed(h)) => self.codegen.code.push(Op::RemoveHeader(h)),
                    ("remove_header", h) => self.codegen.push_heavy(Heavy::RemoveHeader(h)),
                    (_, h) => self.codegen.push_heavy(Heavy::AddHeader(h)),
                }
            }
            "register_read" => self.register_read()?,
            "register_write" => {
                let a = self.args(3)?;
                let reg = self.named(&a[0], "register_array", self.objects.registers, "register array")?;
                let (idx, e) = (self.scope().data(&a[1])?, self.scope().data(&a[2])?);
                let small = self.codegen.register_widths[reg as usize] <= 64;
                match self.codegen.unsigned(&idx) {
                    Some(slot) if small => {
                        // The register's own width is cut when it is stored.
                        let src = self.codegen.low(&e);
                        self.codegen.code.push(Op::RegSet { reg, idx: slot, src });
                    }
                    _ => self.codegen.push_heavy(Heavy::RegisterWrite(reg, idx, e)),
                }
            }
            "count" => {
                let a = self.args(2)?;
                let counter = self.named(&a[0], "counter_array", self.objects.counters, "counter array")?;
                let idx = self.scope().data(&a[1])?;
                match self.codegen.unsigned(&idx) {
                    Some(idx) => self.codegen.code.push(Op::Count { counter, idx }),
                    None => self.codegen.push_heavy(Heavy::Count(counter, idx)),
                }
            }
            "execute_meter" => {
                let a = self.args(3)?;
                let meter = self.named(&a[0], "meter_array", self.objects.meters, "meter array")?;
                let (idx, dst) = (self.scope().data(&a[1])?, self.scope().lvalue(&a[2])?);
                match (&dst, self.codegen.unsigned(&idx)) {
                    (LValue::Field(f), Some(idx)) if f.width <= 64 && !f.saturating => {
                        let mask = if f.width == 64 { u64::MAX } else { (1 << f.width) - 1 };
                        self.codegen.code.push(Op::Meter { meter, idx, dst: f.slot, mask });
                    }
                    _ => self.codegen.push_heavy(Heavy::ExecuteMeter(meter, idx, dst)),
                }
            }
            "modify_field_rng_uniform" => {
                let a = self.args(3)?;
                let s = self.scope();
                let (dst, lo, hi) = (s.lvalue(&a[0])?, s.data(&a[1])?, s.data(&a[2])?);
                match dst {
                    LValue::Field(f) if f.width <= 64 && !f.saturating => {
                        let (lo, hi) = (self.codegen.low(&lo), self.codegen.low(&hi));
                        let (dst, mask) = (f.slot, ones(f.width));
                        self.codegen.code.push(Op::Random { dst, lo, hi, mask });
                    }
                    _ => self.codegen.push_heavy(Heavy::Random(dst, lo, hi)),
                }
            }
            "modify_field_with_hash_based_offset" => {
                let a = self.args(4)?;
                let s = self.scope();
                let calc = self.named(&a[2], "calculation", self.objects.calculations, "calculation")?;
                let (dst, base, size) = (s.lvalue(&a[0])?, s.data(&a[1])?, s.data(&a[3])?);
                match dst {
                    LValue::Field(f) if f.width <= 64 && !f.saturating => {
                        let (base, size) = (self.codegen.low(&base), self.codegen.low(&size));
                        self.codegen.hash(&f, base, calc, size);
                    }
                    _ => self.codegen.push_heavy(Heavy::Hash { dst, base, calc, size }),
                }
            }
            "generate_digest" if self.objects.psa => self.pack()?,
            "generate_digest" => {
                let a = self.args(2)?;
                match self.scope().data(&a[1])? {
                    Expr::Const(c) if u16::try_from(&c).is_ok() => {
                        let list = u16::try_from(&c).unwrap_or(0);
                        self.codegen.code.push(Op::Digest(list.into()));
                    }
                    list => self.codegen.push_heavy(Heavy::Digest(list)),
                }
            }
            "clone_ingress_pkt_to_egress" | "clone_egress_pkt_to_egress" => {
                let a = self.args(2)?;
                let (session, list) = (self.scope().data(&a[0])?, self.scope().data(&a[1])?);
                self.codegen.push_heavy(if op == "clone_ingress_pkt_to_egress" {
                    Heavy::CloneIngress(session, list)
                } else {
                    Heavy::CloneEgress(session, list)
                });
            }
            "resubmit" | "recirculate" => {
                let a = self.args(1)?;
                let list = self.scope().data(&a[0])?;
                self.codegen.push_heavy(if op == "resubmit" { Heavy::Resubmit(list) } else { Heavy::Recirculate(list) });
            }
            "truncate" => {
                let a = self.args(1)?;
                let length = self.scope().data(&a[0])?;
                self.codegen.push_heavy(Heavy::Truncate(length));
            }
            "drop" => {
                self.args(0)?;
                self.codegen.code.push(Op::MarkToDrop);
            }
            "mark_to_drop" => {
                let a = self.call.list("parameters")?;
                if a.len() > 1 {
                    return Err(self.call.err("'mark_to_drop' takes the standard metadata and nothing else"));
                }
                if let Some(header) = a.first() {
                    self.scope().header(header)?;
                }
                self.codegen.code.push(Op::MarkToDrop);
            }
            "exit" => self.codegen.code.push(Op::Exit),
            "no_op" => {}
            "_jump" => {
                let a = self.args(1)?;
                let target = self.jump_target(&a[0])?;
                self.jumps.push((self.codegen.code.len(), target, a[0].clone()));
                self.codegen.code.push(Op::Jump(0));
            }
            "_jump_if_zero" => {
                let a = self.args(2)?;
                let cond = self.scope().data(&a[0])?;
                let target = self.jump_target(&a[1])?;
                let slot = self.codegen.condition(&Expr::ToBool(Box::new(cond)));
                self.jumps.push((self.codegen.code.len(), target, a[1].clone()));
                self.codegen.code.push(Op::JumpIfZero(slot, 0));
            }
            "log_msg" => {
                let a = self.args(2)?;
                let format = a[0].get("value")?.str()?.to_string();
                let mut values = Vec::new();
                let list = a[1].get("value")?;
                // p4c writes an empty list as an empty object.
                let none = list.v.as_object().is_some_and(|o| o.is_empty());
                for v in if none { Vec::new() } else { list.items()? } {
                    values.push(self.scope().data(&v)?);
                }
                self.codegen.push_heavy(Heavy::LogMsg(format, values));
            }
            "assert" | "assume" => {
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
                self.codegen.push_heavy(Heavy::Assert(cond, place));
            }
            other => {
                if !self.psa_primitive(other)? {
                    let hint = "externs other than those of v1model and PSA are not supported";
                    return Err(op_node.err(format!("there is no primitive '{other}'")).hint(hint));
                }
            }
        }
        Ok(())
    }

    fn register_read(&mut self) -> Result<()> {
        let a = self.args(3)?;
        let dst = self.scope().lvalue(&a[0])?;
        let reg = self.named(&a[1], "register_array", self.objects.registers, "register array")?;
        let idx = self.scope().data(&a[2])?;
        let small = self.codegen.register_widths[reg as usize] <= 64;
        match (&dst, self.codegen.unsigned(&idx)) {
            (LValue::Field(f), Some(idx)) if small && f.width <= 64 && !f.saturating => {
                let mask = if f.width == 64 { u64::MAX } else { (1 << f.width) - 1 };
                self.codegen.code.push(Op::RegGet { dst: f.slot, reg, idx, mask });
            }
            _ => self.codegen.push_heavy(Heavy::RegisterRead(dst, reg, idx)),
        }
        Ok(())
    }
}
