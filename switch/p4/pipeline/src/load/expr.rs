//! Expressions and the "type value" objects they are made of.

use num_bigint::{BigInt, Sign};

use super::json::{Node, Result};
use super::layout::{FieldName, Names};
use crate::ir::*;

/// What names an expression may use besides the packet.
pub struct Scope<'n> {
    pub names: &'n Names,
    /// Register arrays by name.
    pub registers: &'n std::collections::HashMap<String, u32>,
    /// Parameters of the action: slot and width.
    pub params: &'n [(Slot, u32)],
}

/// Deepest nesting of an expression.
const MAX_DEPTH: usize = 200;

enum Any {
    Data(Expr),
    Bool(Expr),
    Header(HeaderRef),
    Stack(u32),
    Union(UnionRef),
    UnionStack(u32),
}

impl Any {
    fn what(&self) -> &'static str {
        match self {
            Any::Data(_) => "a number",
            Any::Bool(_) => "a truth value",
            Any::Header(_) => "a header",
            Any::Stack(_) => "a header stack",
            Any::Union(_) => "a header union",
            Any::UnionStack(_) => "a header union stack",
        }
    }
}

impl Scope<'_> {
    /// A number.
    pub fn data(&self, node: &Node) -> Result<Expr> {
        match self.any(node, 0)? {
            Any::Data(e) => Ok(e),
            // BMv2 reads truth values as data where a primitive asks for data.
            Any::Bool(e) => Ok(Expr::ToData(Box::new(e))),
            other => Err(node.err(format!("expected a number, found {}", other.what()))),
        }
    }

    /// A truth value.
    pub fn boolean(&self, node: &Node) -> Result<Expr> {
        match self.any(node, 0)? {
            Any::Bool(e) => Ok(e),
            other => Err(node
                .err(format!("expected a truth value, found {}", other.what()))
                .hint("use the operation d2b to make a truth value of a number")),
        }
    }

    /// A header.
    pub fn header(&self, node: &Node) -> Result<HeaderRef> {
        match self.any(node, 0)? {
            Any::Header(h) => Ok(h),
            other => Err(node.err(format!("expected a header, found {}", other.what()))),
        }
    }

    /// A header union.
    pub fn union(&self, node: &Node) -> Result<UnionRef> {
        match self.any(node, 0)? {
            Any::Union(u) => Ok(u),
            other => Err(node.err(format!("expected a header union, found {}", other.what()))),
        }
    }

    /// A place to write a number to.
    pub fn lvalue(&self, node: &Node) -> Result<LValue> {
        match self.any(node, 0)? {
            Any::Data(Expr::Field(f)) => {
                if self.names.layout.headers.iter().any(|h| h.valid == f.slot) {
                    return Err(node.err("the validity of a header cannot be assigned").hint("use add_header or remove_header"));
                }
                Ok(LValue::Field(f))
            }
            Any::Data(Expr::FieldOf(h, f)) => Ok(LValue::FieldOf(h, f)),
            Any::Data(Expr::StackLast(s, f)) => Ok(LValue::StackLast(s, f)),
            Any::Data(Expr::Register(r, idx)) => Ok(LValue::Register(r, *idx)),
            other => Err(node.err(format!("expected a field to write to, found {} that is none", other.what()))),
        }
    }

    pub fn header_type(&self, header: &HeaderRef) -> usize {
        let layout = &self.names.layout;
        match header {
            HeaderRef::Fixed(h) => layout.headers[*h as usize].ty,
            HeaderRef::StackElem(s, _) => layout.stacks[*s as usize].ty,
            HeaderRef::UnionMember(u, i) => layout.union_types[self.union_type(u)].members[*i as usize].1,
        }
    }

    pub fn union_type(&self, union: &UnionRef) -> usize {
        let layout = &self.names.layout;
        match union {
            UnionRef::Fixed(u) => layout.unions[*u as usize].ty,
            UnionRef::StackElem(s, _) => layout.union_stacks[*s as usize].ty,
        }
    }

    fn any(&self, node: &Node, depth: usize) -> Result<Any> {
        if depth > MAX_DEPTH {
            return Err(node.err(format!("the expression is nested deeper than {MAX_DEPTH}")));
        }
        let names = self.names;
        // The body of an expression without its "type".
        if node.v.get("op").is_some() && node.v.get("type").is_none() {
            return self.operation(node, depth);
        }
        let ty = node.get("type")?;
        let value = node.get("value")?;
        Ok(match ty.str()? {
            "expression" => return self.any(&value, depth + 1),
            "field" => match names.field_or_varbit(&value)? {
                FieldName::Fixed(f) => Any::Data(Expr::Field(f)),
                FieldName::Varbit(v, _) => Any::Data(Expr::Varbit(v)),
            },
            "hexstr" => Any::Data(Expr::Const(value.hex()?)),
            "bool" => Any::Bool(Expr::Bool(value.bool()?)),
            "local" | "runtime_data" => {
                let index = value.uint(u64::MAX)? as usize;
                let Some(&(slot, width)) = self.params.get(index) else {
                    return Err(value.err(format!("there is no action parameter number {index}, the action has {}", self.params.len())));
                };
                Any::Data(Expr::Param(slot, width))
            }
            "header" => Any::Header(HeaderRef::Fixed(names.header(&value)?)),
            "header_stack" => Any::Stack(names.stack(&value)?),
            "header_union" => Any::Union(UnionRef::Fixed(names.union(&value)?)),
            "header_union_stack" => Any::UnionStack(names.union_stack(&value)?),
            "stack_field" => {
                let pair = value.tuple(2)?;
                let stack = names.stack(&pair[0])?;
                let ty = names.layout.stacks[stack as usize].ty;
                Any::Data(Expr::StackLast(stack, names.field_of_type(ty, &pair[1])?))
            }
            "register" => {
                let pair = value.tuple(2)?;
                let name = pair[0].str()?;
                let reg = *self.registers.get(name).ok_or_else(|| pair[0].err(format!("there is no register array '{name}'")))?;
                let Any::Data(index) = self.any(&pair[1], depth + 1)? else {
                    return Err(pair[1].err("the index of a register is a number"));
                };
                Any::Data(Expr::Register(reg, Box::new(index)))
            }
            other => return Err(ty.err(format!("'{other}' cannot be used here"))),
        })
    }

    fn operation(&self, node: &Node, depth: usize) -> Result<Any> {
        let op_node = node.get("op")?;
        let op = op_node.str()?;
        let depth = depth + 1;
        let data = |key: &str| -> Result<Box<Expr>> {
            let n = node.get(key)?;
            match self.any(&n, depth)? {
                Any::Data(e) => Ok(Box::new(e)),
                other => Err(n.err(format!("'{op}' works on numbers, this is {}", other.what()))),
            }
        };
        let boolean = |key: &str| -> Result<Box<Expr>> {
            let n = node.get(key)?;
            match self.any(&n, depth)? {
                Any::Bool(e) => Ok(Box::new(e)),
                other => Err(n.err(format!("'{op}' works on truth values, this is {}", other.what()))),
            }
        };
        let bin = |b: BinOp| -> Result<Any> { Ok(Any::Data(Expr::Bin(b, data("left")?, data("right")?))) };
        let cmp = |c: CmpOp| -> Result<Any> { Ok(Any::Bool(Expr::Cmp(c, data("left")?, data("right")?))) };
        // A unary operand stands to the right; BMv2 also takes it from the left.
        let operand =
            || -> Result<Node> { node.opt("right").or_else(|| node.opt("left")).ok_or_else(|| node.err(format!("'{op}' has no operand"))) };
        Ok(match op {
            "+" | "-" if node.opt("left").is_none() => {
                let zero = Box::new(Expr::Const(BigInt::from(0)));
                let b = if op == "+" { BinOp::Add } else { BinOp::Sub };
                Any::Data(Expr::Bin(b, zero, data("right")?))
            }
            "+" => bin(BinOp::Add)?,
            "-" => bin(BinOp::Sub)?,
            "*" => bin(BinOp::Mul)?,
            "/" => bin(BinOp::Div)?,
            "%" => bin(BinOp::Rem)?,
            "<<" => bin(BinOp::Shl)?,
            ">>" => bin(BinOp::Shr)?,
            "&" => bin(BinOp::And)?,
            "|" => bin(BinOp::Or)?,
            "^" => bin(BinOp::Xor)?,
            "two_comp_mod" | "usat_cast" | "sat_cast" => {
                let right = node.get("right")?;
                let width = data("right")?;
                match width.as_ref() {
                    Expr::Const(w) if w.sign() == Sign::Plus && *w <= BigInt::from(65536) => {}
                    _ => return Err(right.err(format!("the width of '{op}' must be a constant from 1 to 65536"))),
                }
                let b = match op {
                    "two_comp_mod" => BinOp::TwoCompMod,
                    "usat_cast" => BinOp::UsatCast,
                    _ => BinOp::SatCast,
                };
                Any::Data(Expr::Bin(b, data("left")?, width))
            }
            "~" => {
                let n = operand()?;
                match self.any(&n, depth)? {
                    Any::Data(e) => Any::Data(Expr::BitNot(Box::new(e))),
                    other => return Err(n.err(format!("'~' works on numbers, this is {}", other.what()))),
                }
            }
            "not" => {
                let n = operand()?;
                match self.any(&n, depth)? {
                    Any::Bool(e) => Any::Bool(Expr::BoolNot(Box::new(e))),
                    other => return Err(n.err(format!("'not' works on truth values, this is {}", other.what()))),
                }
            }
            "and" => Any::Bool(Expr::BoolAnd(boolean("left")?, boolean("right")?)),
            "or" => Any::Bool(Expr::BoolOr(boolean("left")?, boolean("right")?)),
            "<" => cmp(CmpOp::Lt)?,
            "<=" => cmp(CmpOp::Le)?,
            ">" => cmp(CmpOp::Gt)?,
            ">=" => cmp(CmpOp::Ge)?,
            "==" | "!=" => self.equality(node, op, depth)?,
            "?" => {
                let cond = boolean("cond")?;
                let (left, right) = (node.get("left")?, node.get("right")?);
                match (self.any(&left, depth)?, self.any(&right, depth)?) {
                    (Any::Data(a), Any::Data(b)) => Any::Data(Expr::Cond(cond, Box::new(a), Box::new(b))),
                    (Any::Bool(a), Any::Bool(b)) => Any::Bool(Expr::Cond(cond, Box::new(a), Box::new(b))),
                    (a, b) => return Err(node.err(format!("'?' chooses between {} and {}", a.what(), b.what()))),
                }
            }
            "d2b" => {
                let n = operand()?;
                Any::Bool(match self.any(&n, depth)? {
                    Any::Data(e) => Expr::ToBool(Box::new(e)),
                    Any::Bool(e) => e,
                    other => return Err(n.err(format!("'d2b' works on numbers, this is {}", other.what()))),
                })
            }
            "b2d" => {
                let n = operand()?;
                Any::Data(match self.any(&n, depth)? {
                    Any::Bool(e) => Expr::ToData(Box::new(e)),
                    Any::Data(e) => e,
                    other => return Err(n.err(format!("'b2d' works on truth values, this is {}", other.what()))),
                })
            }
            "valid" => {
                let n = operand()?;
                match self.any(&n, depth)? {
                    Any::Header(h) => Any::Bool(Expr::Valid(h)),
                    other => return Err(n.err(format!("'valid' works on headers, this is {}", other.what()))),
                }
            }
            "valid_union" => {
                let n = operand()?;
                match self.any(&n, depth)? {
                    Any::Union(u) => Any::Bool(Expr::ValidUnion(u)),
                    other => return Err(n.err(format!("'valid_union' works on header unions, this is {}", other.what()))),
                }
            }
            "dereference_header_stack" | "dereference_stack" => {
                let n = node.get("left")?;
                let Any::Stack(stack) = self.any(&n, depth)? else {
                    return Err(n.err(format!("'{op}' works on header stacks")));
                };
                Any::Header(self.stack_elem(stack, *data("right")?, &node.get("right")?)?)
            }
            "dereference_union_stack" => {
                let n = node.get("left")?;
                let Any::UnionStack(stack) = self.any(&n, depth)? else {
                    return Err(n.err(format!("'{op}' works on header union stacks")));
                };
                Any::Union(UnionRef::StackElem(stack, data("right")?))
            }
            "last_stack_index" | "size_stack" => {
                let n = operand()?;
                match self.any(&n, depth)? {
                    Any::Stack(s) if op == "size_stack" => Any::Data(Expr::StackSize(s)),
                    Any::Stack(s) => Any::Data(Expr::StackLastIndex(s)),
                    Any::UnionStack(s) if op == "size_stack" => Any::Data(Expr::UnionStackSize(s)),
                    Any::UnionStack(s) => {
                        Any::Data(Expr::Bin(BinOp::Sub, Box::new(Expr::UnionStackSize(s)), Box::new(Expr::Const(BigInt::from(1)))))
                    }
                    other => return Err(n.err(format!("'{op}' works on stacks, this is {}", other.what()))),
                }
            }
            "access_field" => {
                let left = node.get("left")?;
                let Any::Header(header) = self.any(&left, depth)? else {
                    return Err(left.err("'access_field' works on headers"));
                };
                let right = node.get("right")?;
                let index = right.uint(u64::MAX)?;
                let f = self.names.field_of_type_at(self.header_type(&header), index, &right)?;
                Any::Data(match header {
                    HeaderRef::Fixed(h) => match self.names.field_at(h, index as usize) {
                        Some(FieldName::Fixed(field)) => Expr::Field(field),
                        _ => Expr::FieldOf(header, f),
                    },
                    _ => Expr::FieldOf(header, f),
                })
            }
            "access_union_header" => {
                let left = node.get("left")?;
                let Any::Union(union) = self.any(&left, depth)? else {
                    return Err(left.err("'access_union_header' works on header unions"));
                };
                let right = node.get("right")?;
                let index = right.uint(u32::MAX.into())? as usize;
                let ty = &self.names.layout.union_types[self.union_type(&union)];
                if index >= ty.members.len() {
                    return Err(right.err(format!("union type '{}' has no member number {index}", ty.name)));
                }
                Any::Header(match union {
                    UnionRef::Fixed(u) => HeaderRef::Fixed(self.names.layout.unions[u as usize].headers[index]),
                    _ => HeaderRef::UnionMember(union, index as u32),
                })
            }
            other => return Err(op_node.err(format!("there is no operation '{other}'"))),
        })
    }

    fn stack_elem(&self, stack: u32, index: Expr, node: &Node) -> Result<HeaderRef> {
        if let Expr::Const(i) = &index {
            let def = &self.names.layout.stacks[stack as usize];
            return match u64::try_from(i).ok().and_then(|i| def.headers.get(i as usize)) {
                Some(&h) => Ok(HeaderRef::Fixed(h)),
                None => Err(node.err(format!("stack '{}' has {} elements, there is no element {i}", def.name, def.headers.len()))),
            };
        }
        Ok(HeaderRef::StackElem(stack, Box::new(index)))
    }

    fn equality(&self, node: &Node, op: &str, depth: usize) -> Result<Any> {
        let (l, r) = (node.get("left")?, node.get("right")?);
        let negate = op == "!=";
        let wrap = |e: Expr| Any::Bool(if negate { Expr::BoolNot(Box::new(e)) } else { e });
        Ok(match (self.any(&l, depth)?, self.any(&r, depth)?) {
            (Any::Data(a), Any::Data(b)) => {
                let c = if negate { CmpOp::Ne } else { CmpOp::Eq };
                Any::Bool(Expr::Cmp(c, Box::new(a), Box::new(b)))
            }
            (Any::Bool(a), Any::Bool(b)) => wrap(Expr::BoolEq(Box::new(a), Box::new(b))),
            (Any::Header(a), Any::Header(b)) => wrap(Expr::HeaderEq(a, b)),
            (Any::Union(a), Any::Union(b)) => wrap(Expr::UnionEq(a, b)),
            (a, b) => return Err(node.err(format!("'{op}' compares {} with {}", a.what(), b.what()))),
        })
    }
}
