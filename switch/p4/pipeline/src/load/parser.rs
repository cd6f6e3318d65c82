//! `parsers`, `parse_vsets`, `deparsers`.

use std::collections::HashMap;

use super::json::{Node, Result};
use super::primitives::Caller;
use super::Loader;
use crate::info::ValueSetInfo;
use crate::ir::*;
use crate::observe::Observing;

/// Widest select key, bytes.
const MAX_KEY: usize = 512;

impl<'n> Loader<'n> {
    pub(super) fn load_value_sets(&mut self, root: &Node) -> Result<()> {
        for node in root.list("parse_vsets")? {
            self.program.value_sets.push(ValueSetInfo {
                name: node.get("name")?.str()?.to_string(),
                json_id: node.get("id")?.int()?,
                width: node.get("compressed_bitwidth")?.uint(2048)? as u32,
                max_size: match node.opt("max_size") {
                    Some(n) => Some(n.uint(u32::MAX.into())? as usize),
                    None => None,
                },
            });
        }
        Ok(())
    }

    pub(super) fn parser_named(&mut self, root: &Node, name: &str) -> Result<Parser> {
        let parsers = root.get("parsers")?;
        let mut found = None;
        for node in parsers.items()? {
            if node.get("name")?.str()? == name {
                found = Some(node);
            }
        }
        let node = found.ok_or_else(|| parsers.err(format!("there is no parser named '{name}'")))?;
        let states = node.get("parse_states")?.items()?;
        let mut names = HashMap::new();
        for (i, state) in states.iter().enumerate() {
            let name = state.get("name")?.str()?;
            if names.insert(name.to_string(), i as u32).is_some() {
                return Err(state.err(format!("there are two parser states '{name}'")));
            }
        }
        let mut parser = Parser { id: node.id()?, name: node.name(), ..Parser::default() };
        for state in &states {
            let state = self.parser_state(state, &names)?;
            parser.states.push(state);
        }
        parser.start = match node.opt("init_state") {
            Some(n) => Some(self.state(&n, &names)?),
            None => None,
        };
        Ok(parser)
    }

    fn state(&self, node: &Node, names: &HashMap<String, u32>) -> Result<u32> {
        let name = node.str()?;
        names.get(name).copied().ok_or_else(|| node.err(format!("there is no parser state '{name}'")))
    }

    fn parser_state(&mut self, node: &Node, names: &HashMap<String, u32>) -> Result<ParserState> {
        let mut state = ParserState { name: node.name(), ..ParserState::default() };
        for op in node.list("parser_ops")? {
            let compiled = self.parser_op(&op)?;
            state.ops.push(compiled);
            if self.program.observed >= Observing::Everything && op.get("op")?.str()? == "set" {
                state.ops.extend(self.tell_set(&op.get("parameters")?.tuple(2)?)?);
            }
        }
        for item in node.list("transition_key")? {
            let key = self.select_key(&item)?;
            state.key_bytes += key.width().div_ceil(8) as usize;
            state.key.push(key);
        }
        if state.key_bytes > MAX_KEY {
            return Err(node.err(format!("the key of a select is at most {MAX_KEY} bytes long")));
        }
        for item in node.list("transitions")? {
            self.transition(&item, names, &mut state)?;
        }
        if state.key.is_empty() && !state.cases.is_empty() {
            return Err(node.err("transitions by value need a transition key"));
        }
        state.small = small_select(&state);
        Ok(state)
    }

    fn transition(&self, node: &Node, names: &HashMap<String, u32>, state: &mut ParserState) -> Result<()> {
        let next = match node.opt("next_state") {
            Some(n) => Some(self.state(&n, names)?),
            None => None,
        };
        let ty = node.opt("type").map_or(Ok("hexstr"), |n| n.str())?;
        let is_default = ty == "default" || node.opt("value").is_some_and(|n| n.v.as_str() == Some("default"));
        if is_default {
            state.default = next;
            return Ok(());
        }
        let value = node.get("value")?;
        match ty {
            "hexstr" => {
                let bytes = self.padded(&value, state.key_bytes)?;
                let mask = match node.opt("mask") {
                    Some(n) => self.padded(&n, state.key_bytes)?,
                    None => vec![0xff; state.key_bytes],
                };
                let value = bytes.iter().zip(&mask).map(|(v, m)| v & m).collect();
                state.cases.push(SelectCase::Value { value, mask, next });
            }
            "parse_vset" => {
                let name = value.str()?;
                let set = self
                    .program
                    .value_sets
                    .iter()
                    .position(|s| s.name == name)
                    .ok_or_else(|| value.err(format!("there is no value set '{name}'")))?;
                let width: u32 = state.key.iter().map(SelectKey::width).sum();
                if width != self.program.value_sets[set].width {
                    return Err(
                        value.err(format!("value set '{name}' is {} bits wide, the key is {width}", self.program.value_sets[set].width))
                    );
                }
                let mask = match node.opt("mask") {
                    Some(n) => Some(n.hex_value(width.div_ceil(8) * 8)?.to_be_bytes(width)),
                    None => None,
                };
                state.cases.push(SelectCase::Set { set: set as u32, mask, next });
            }
            other => return Err(node.err(format!("there is no transition of type '{other}'"))),
        }
        Ok(())
    }

    /// Value or mask of a select, as long as the padded key.
    fn padded(&self, node: &Node, bytes: usize) -> Result<Vec<u8>> {
        let text = node.str()?;
        let digits = text.strip_prefix("0x").unwrap_or(text);
        if digits.len().div_ceil(2) != bytes {
            return Err(node.err(format!("the value has {} bytes, the transition key {bytes}", digits.len().div_ceil(2))));
        }
        Ok(node.hex_value(bytes as u32 * 8)?.to_be_bytes(bytes as u32 * 8))
    }

    fn select_key(&self, node: &Node) -> Result<SelectKey> {
        let ty = node.get("type")?;
        let value = node.get("value")?;
        let names = self.names;
        Ok(match ty.str()? {
            "field" => SelectKey::Field(names.field(&value)?),
            "stack_field" => {
                let pair = value.tuple(2)?;
                let stack = names.stack(&pair[0])?;
                let ty = names.layout.stacks[stack as usize].ty;
                SelectKey::StackLast(stack, names.field_of_type(ty, &pair[1])?)
            }
            "union_stack_field" => {
                let triple = value.tuple(3)?;
                let stack = names.union_stack(&triple[0])?;
                let (member, ty) = self.union_member(stack, &triple[1])?;
                SelectKey::UnionStackLast(stack, member, names.field_of_type(ty, &triple[2])?)
            }
            "lookahead" => {
                let (offset, width) = lookahead(&value)?;
                SelectKey::Lookahead { offset, width }
            }
            other => return Err(ty.err(format!("'{other}' cannot be in a transition key"))),
        })
    }

    /// A member of the unions of a stack: position and header type.
    fn union_member(&self, stack: u32, node: &Node) -> Result<(u32, usize)> {
        let name = node.str()?;
        let layout = &self.names.layout;
        let ty = &layout.union_types[layout.union_stacks[stack as usize].ty];
        let at = ty
            .members
            .iter()
            .position(|m| m.0 == name)
            .ok_or_else(|| node.err(format!("union type '{}' has no member '{name}'", ty.name)))?;
        Ok((at as u32, ty.members[at].1))
    }

    fn parser_op(&mut self, node: &Node) -> Result<ParserOp> {
        let op = node.get("op")?;
        let params = node.get("parameters")?;
        Ok(match op.str()? {
            "extract" => {
                let (to, ty) = self.extract_to(&params.tuple(1)?[0])?;
                let def = &self.names.layout.types[ty];
                if def.varbit.is_some() && !self.has_length(ty) {
                    return Err(node
                        .err(format!("header type '{}' has a variable-length field without length", def.name))
                        .hint("use extract_VL with the length in bits"));
                }
                ParserOp::Extract(to)
            }
            "extract_VL" => {
                let pair = params.tuple(2)?;
                let (to, ty) = self.extract_to(&pair[0])?;
                let def = &self.names.layout.types[ty];
                if def.varbit.is_none() {
                    return Err(node.err(format!("header type '{}' has no variable-length field", def.name)));
                }
                ParserOp::ExtractVarbit(to, self.scope().data(&pair[1])?)
            }
            "set" => {
                let pair = params.tuple(2)?;
                self.parser_set(&pair[0], &pair[1])?
            }
            "verify" => {
                let pair = params.tuple(2)?;
                let error = match pair[1].v.as_i64() {
                    Some(code) => Expr::Const(code.into()),
                    None => self.scope().data(&pair[1])?,
                };
                let (code, slot) = self.condition(&pair[0])?;
                ParserOp::Verify { code, slot, error }
            }
            "shift" => {
                let bytes = params.tuple(1)?[0].uint(65535)?;
                ParserOp::Advance(Expr::Const((bytes * 8).into()))
            }
            "advance" => ParserOp::Advance(self.scope().data(&params.tuple(1)?[0])?),
            "primitive" => ParserOp::Run(self.calls(&[], &params.tuple(1)?, Caller::Parser)?),
            other => return Err(op.err(format!("there is no parser operation '{other}'"))),
        })
    }

    fn has_length(&self, ty: usize) -> bool {
        self.codegen.layout.headers.iter().any(|h| h.ty == ty && h.length.is_some())
    }

    fn parser_set(&mut self, dst: &Node, src: &Node) -> Result<ParserOp> {
        let ty = src.get("type")?;
        if ty.str()? == "lookahead" {
            let dst = self.names.field(&dst.get("value")?)?;
            let (offset, width) = lookahead(&src.get("value")?)?;
            return Ok(ParserOp::Lookahead { dst, offset, width });
        }
        let start = self.codegen.here();
        if let (super::layout::FieldName::Varbit(d, _), "field") = (self.names.field_or_varbit(&dst.get("value")?)?, ty.str()?) {
            let super::layout::FieldName::Varbit(s, _) = self.names.field_or_varbit(&src.get("value")?)? else {
                return Err(src.err("expected a variable-length field"));
            };
            self.codegen.push_heavy(Heavy::AssignVarbit { dst: d, src: s });
        } else {
            let dst = self.scope().lvalue(dst)?;
            let e = self.scope().data(src)?;
            self.codegen.assign(&dst, &e);
            self.codegen.end_statement();
        }
        Ok(ParserOp::Run(Code { start, end: self.codegen.here() }))
    }

    /// What tells the value that a `set` of the parser gave to a field.
    fn tell_set(&mut self, sides: &[Node]) -> Result<Option<ParserOp>> {
        let LValue::Field(field) = self.scope().lvalue(&sides[0])? else { return Ok(None) };
        let name = |node: &Node| -> Result<String> {
            let pair = node.get("value")?.tuple(2)?;
            Ok(format!("{}.{}", pair[0].str()?, pair[1].str()?))
        };
        let said = match sides[1].get("type")?.str()? {
            "field" => format!("setting field '{}' from field '{}' (", name(&sides[0])?, name(&sides[1])?),
            "lookahead" => {
                let (offset, width) = lookahead(&sides[1].get("value")?)?;
                format!("setting field '{}' from lookahead ({offset}, {width}), new value is ", name(&sides[0])?)
            }
            "hexstr" => format!("setting field '{}' to ", name(&sides[0])?),
            _ => format!("setting field '{}' from expression, new value is ", name(&sides[0])?),
        };
        let at = self.program.notes.sets.len() as u32;
        self.program.notes.sets.push(said);
        let start = self.codegen.here();
        self.codegen.push_heavy(Heavy::TellSet(at, field));
        Ok(Some(ParserOp::Run(Code { start, end: self.codegen.here() })))
    }

    fn extract_to(&self, node: &Node) -> Result<(ExtractTo, usize)> {
        let ty = node.get("type")?;
        let value = node.get("value")?;
        let layout = &self.names.layout;
        Ok(match ty.str()? {
            "regular" => {
                let h = self.names.header(&value)?;
                if layout.headers[h as usize].metadata {
                    return Err(value.err("metadata cannot be extracted"));
                }
                (ExtractTo::Header(h), layout.headers[h as usize].ty)
            }
            "stack" => {
                let s = self.names.stack(&value)?;
                (ExtractTo::Stack(s), layout.stacks[s as usize].ty)
            }
            "union_stack" => {
                let pair = value.tuple(2)?;
                let s = self.names.union_stack(&pair[0])?;
                let (member, ty) = self.union_member(s, &pair[1])?;
                (ExtractTo::UnionStack(s, member), ty)
            }
            other => return Err(ty.err(format!("'{other}' cannot be extracted"))),
        })
    }

    pub(super) fn deparser_named(&mut self, root: &Node, name: &str) -> Result<Deparser> {
        let deparsers = root.get("deparsers")?;
        let mut found = None;
        for node in deparsers.items()? {
            if node.get("name")?.str()? == name {
                found = Some(node);
            }
        }
        let node = found.ok_or_else(|| deparsers.err(format!("there is no deparser named '{name}'")))?;
        let mut deparser = Deparser { id: node.id()?, name: node.name(), ..Deparser::default() };
        for item in node.get("order")?.items()? {
            let h = self.names.header(&item)?;
            if self.names.layout.headers[h as usize].metadata {
                return Err(item.err("metadata cannot be emitted"));
            }
            deparser.headers.push(h);
        }
        deparser.code = self.calls(&[], &node.list("primitives")?, Caller::Deparser)?;
        Ok(deparser)
    }
}

fn lookahead(node: &Node) -> Result<(u32, u32)> {
    let pair = node.tuple(2)?;
    Ok((pair[0].uint(1 << 20)? as u32, pair[1].uint(2048)? as u32))
}

/// The cases as numbers when they are few bytes and all plain values.
fn small_select(state: &ParserState) -> Option<Vec<(u64, u64, NextState)>> {
    if state.key_bytes > 8 {
        return None;
    }
    let number = |bytes: &[u8]| bytes.iter().fold(0_u64, |v, &b| v << 8 | u64::from(b));
    state
        .cases
        .iter()
        .map(|case| match case {
            SelectCase::Value { value, mask, next } => Some((number(value), number(mask), *next)),
            SelectCase::Set { .. } => None,
        })
        .collect()
}
