//! Registers, counters, meters, calculations, checksums, learn and field lists.

use std::collections::HashMap;

use super::json::{Node, Result};
use super::layout::FieldName;
use super::{psa, Loader};
use crate::control::CounterData;
use crate::definition::Definition;
use crate::error::LoadError;
use crate::exec::hash;
use crate::exec::meter::Meter;
use crate::info::*;
use crate::ir::*;

/// Largest array of registers, counters or meters.
const MAX_CELLS: u64 = 1 << 24;

/// What all arrays of a program may take together. While a program replaces another, both are there.
const MAX_ARRAY_BYTES: usize = 1 << 30;

/// Refuses a program whose arrays are too large together. Each alone is bounded where it is read.
pub fn check_memory(program: &Definition) -> Result<()> {
    let counters = program.counters.iter().map(|counter| (&counter.name, counter.size * size_of::<CounterData>()));
    let meters = program.meters.iter().map(|meter| (&meter.name, meter.size * size_of::<Meter>()));
    let registers = program.registers.iter().map(|r| (&r.name, r.size.saturating_mul(r.width.div_ceil(64) as usize * size_of::<u64>())));
    let arrays: Vec<_> = counters.chain(meters).chain(registers).collect();
    let total = arrays.iter().fold(0_usize, |sum, (_, bytes)| sum.saturating_add(*bytes));
    let Some((largest, bytes)) = arrays.iter().max_by_key(|(_, bytes)| *bytes).filter(|_| total > MAX_ARRAY_BYTES) else { return Ok(()) };
    let message = format!(
        "its registers, counters and meters take {total} bytes together, and a program may have {MAX_ARRAY_BYTES}; the largest, '{largest}', \
         takes {bytes}"
    );
    Err(LoadError { too_large: true, ..LoadError::new("", message) }.hint("make arrays smaller"))
}

pub fn registers(root: &Node, program: &mut Definition) -> Result<HashMap<String, u32>> {
    let mut names = HashMap::new();
    for node in root.list("register_arrays")? {
        let name = node.get("name")?.str()?.to_string();
        let width = node.get("bitwidth")?;
        let bits = width.uint(2048)? as u32;
        if bits == 0 {
            return Err(width.err("a register is at least one bit wide"));
        }
        add(&mut names, &node, &name, program.registers.len())?;
        program.registers.push(RegisterInfo {
            name,
            json_id: node.get("id")?.int()?,
            size: node.get("size")?.uint(MAX_CELLS)? as usize,
            width: bits,
        });
    }
    Ok(names)
}

pub fn counters(root: &Node, program: &mut Definition) -> Result<HashMap<String, u32>> {
    let mut names = HashMap::new();
    for node in root.list("counter_arrays")? {
        let name = node.get("name")?.str()?.to_string();
        let direct = node.flag("is_direct", false)?;
        let size = match node.opt("size") {
            Some(n) if !direct => n.uint(MAX_CELLS)? as usize,
            _ => 0,
        };
        if !direct {
            add(&mut names, &node, &name, program.counters.len())?;
        }
        program.counters.push(CounterInfo { name, json_id: node.get("id")?.int()?, size, table: None });
    }
    for node in objects(root, "Counter")? {
        // p4c lists each counter twice.
        let name = node.get("name")?.str()?.to_string();
        if !names.contains_key(&name) {
            add(&mut names, &node, &name, program.counters.len())?;
            let size = psa::number(&node, "n_counters", MAX_CELLS)? as usize;
            program.counters.push(CounterInfo { name, json_id: node.get("id")?.int()?, size, table: None });
        }
    }
    Ok(names)
}

/// The extern objects of a type.
fn objects<'a>(root: &Node<'a>, ty: &str) -> Result<Vec<Node<'a>>> {
    let mut found = Vec::new();
    for node in root.list("extern_instances")? {
        if node.get("type")?.str()? == ty {
            found.push(node);
        }
    }
    Ok(found)
}

pub fn meters(root: &Node, program: &mut Definition) -> Result<HashMap<String, u32>> {
    let mut names = HashMap::new();
    for node in root.list("meter_arrays")? {
        let name = node.get("name")?.str()?.to_string();
        let direct = node.flag("is_direct", false)?;
        let rates = node.get("rate_count")?;
        if rates.int()? != 2 {
            return Err(rates.err(format!("a meter with {} rates is not supported", rates.int()?)).hint("v1model meters have two rates"));
        }
        let unit = meter_unit(&node.get("type")?)?;
        let size = match node.opt("size") {
            Some(n) if !direct => n.uint(MAX_CELLS)? as usize,
            _ => 0,
        };
        if !direct {
            add(&mut names, &node, &name, program.meters.len())?;
        }
        program.meters.push(MeterInfo { name, json_id: node.get("id")?.int()?, size, unit, table: None });
    }
    for node in objects(root, "Meter")? {
        let name = node.get("name")?.str()?.to_string();
        add(&mut names, &node, &name, program.meters.len())?;
        let size = psa::number(&node, "n_meters", MAX_CELLS)? as usize;
        let unit = meter_unit(&psa::attribute(&node, "type")?)?;
        program.meters.push(MeterInfo { name, json_id: node.get("id")?.int()?, size, unit, table: None });
    }
    Ok(names)
}

fn meter_unit(node: &Node) -> Result<MeterUnit> {
    match node.str()? {
        "packets" => Ok(MeterUnit::Packets),
        "bytes" => Ok(MeterUnit::Bytes),
        other => Err(node.err(format!("a meter meters packets or bytes, not '{other}'"))),
    }
}

/// See [`Calculation::sum`].
fn plain_sum(algo: hash::Algo, input: &[CalcInput]) -> Option<(Slot, Vec<(Slot, u32)>)> {
    if algo != hash::Algo::Csum16 {
        return None;
    }
    let (mut valid, mut end, mut parts) = (None, 0, Vec::new());
    for item in input {
        let CalcInput::Field(f) = item else {
            return None;
        };
        if f.width > 64 || valid.is_some_and(|v| v != f.valid) {
            return None;
        }
        valid = Some(f.valid);
        end += f.width;
        parts.push((f.slot, end.wrapping_neg() % 16));
    }
    Some((valid?, parts))
}

/// See [`Calculation::short`].
fn short(input: &[CalcInput]) -> Option<Vec<(Slot, Slot, u32)>> {
    let mut parts = Vec::new();
    for item in input {
        match item {
            CalcInput::Field(f) if f.width <= 64 => parts.push((f.slot, f.valid, f.width)),
            _ => return None,
        }
    }
    (parts.iter().map(|p| p.2).sum::<u32>() <= 128).then_some(parts)
}

/// `result_target` of the direct meters.
pub fn meter_targets(root: &Node, names: &super::layout::Names) -> Result<HashMap<String, Field>> {
    let mut targets = HashMap::new();
    for node in root.list("meter_arrays")? {
        if node.flag("is_direct", false)? {
            let field = names.field(&node.get("result_target")?)?;
            if field.width > 64 {
                return Err(node.err("the colour of a meter goes to a field of at most 64 bits"));
            }
            targets.insert(node.get("name")?.str()?.to_string(), field);
        }
    }
    Ok(targets)
}

/// The direct counter of each table that has one.
pub fn counter_bindings(root: &Node) -> Result<HashMap<String, u32>> {
    let mut bindings = HashMap::new();
    for (i, node) in root.list("counter_arrays")?.into_iter().enumerate() {
        if node.flag("is_direct", false)?
            && let Some(table) = node.opt("binding")
        {
            bindings.insert(table.str()?.to_string(), i as u32);
        }
    }
    Ok(bindings)
}

fn add(names: &mut HashMap<String, u32>, node: &Node, name: &str, at: usize) -> Result<()> {
    match names.insert(name.to_string(), at as u32) {
        Some(_) => Err(node.err(format!("there are two arrays '{name}'"))),
        None => Ok(()),
    }
}

impl Loader<'_> {
    pub(super) fn load_calculations(&mut self, root: &Node) -> Result<()> {
        for node in root.list("calculations")? {
            let name = node.get("name")?.str()?.to_string();
            let at = self.program.ir.calculations.len();
            let calc = Calculation { name: name.clone(), ..self.calculation(&node.get("algo")?, &node.get("input")?)? };
            add(&mut self.calculations, &node, &name, at)?;
            self.program.ir.calculations.push(calc);
        }
        Ok(())
    }

    pub(super) fn calculation(&self, algo: &Node, input: &Node) -> Result<Calculation> {
        let algo = hash::by_name(algo.str()?).ok_or_else(|| {
            algo.err(format!("there is no algorithm '{}'", algo.v.as_str().unwrap_or("?"))).hint(format!("known are {}", hash::NAMES))
        })?;
        let mut items = Vec::new();
        let mut payload = false;
        for item in input.items()? {
            let ty = item.get("type")?;
            match ty.str()? {
                "field" => items.push(match self.names.field_or_varbit(&item.get("value")?)? {
                    FieldName::Fixed(f) => CalcInput::Field(f),
                    FieldName::Varbit(v, valid) => CalcInput::Varbit(v, valid),
                }),
                "hexstr" => {
                    let width = item.get("bitwidth")?.uint(2048)? as u32;
                    let mut limbs = vec![0; width.div_ceil(64) as usize];
                    item.get("value")?.hex_value(width)?.write_limbs(&mut limbs);
                    items.push(CalcInput::Const(limbs, width));
                }
                "header" => items.push(CalcInput::Header(self.names.header(&item.get("value")?)?)),
                "payload" => payload = true,
                other => return Err(ty.err(format!("'{other}' cannot be the input of a calculation"))),
            }
        }
        let sum = if payload { None } else { plain_sum(algo, &items) };
        let short = if payload { None } else { short(&items) };
        Ok(Calculation { name: String::new(), algo, input: items, payload, sum, short })
    }

    /// `length_exp` of header types with a variable-length field; "local" is a field number there.
    pub(super) fn load_header_lengths(&mut self, root: &Node) -> Result<()> {
        for (ty, node) in root.get("header_types")?.items()?.into_iter().enumerate() {
            let Some(length) = node.opt("length_exp") else {
                continue;
            };
            if self.names.layout.types[ty].varbit.is_none() {
                continue;
            }
            for h in 0..self.names.layout.headers.len() {
                let header = &self.names.layout.headers[h];
                if header.ty != ty {
                    continue;
                }
                let locals: Vec<(Slot, u32)> = self.names.layout.types[ty].fields.iter().map(|f| (header.base + f.rel, f.width)).collect();
                let scope = super::expr::Scope { names: self.names, registers: &self.registers, params: &locals };
                let e = scope.data(&length)?;
                self.codegen.layout.headers[h].length = Some(e);
            }
        }
        Ok(())
    }

    pub(super) fn load_checksums(&mut self, root: &Node) -> Result<()> {
        for node in root.list("checksums")? {
            let ty = node.get("type")?;
            if ty.str()? != "generic" {
                return Err(ty
                    .err(format!("a checksum of type '{}' is not supported", ty.str()?))
                    .hint("compilers write 'generic' with a calculation"));
            }
            let target = self.names.field(&node.get("target")?)?;
            if target.width > 64 {
                return Err(node.err("a checksum is at most 64 bits wide"));
            }
            let calc_node = node.get("calculation")?;
            let calc = *self
                .calculations
                .get(calc_node.str()?)
                .ok_or_else(|| calc_node.err(format!("there is no calculation '{}'", calc_node.v.as_str().unwrap_or("?"))))?;
            let (mut tests, mut condition) = (Vec::new(), None);
            if let Some(n) = node.opt("if_cond") {
                let e = self.scope().boolean(&n)?;
                if !self.conjunction(&e, true, &mut tests) {
                    tests.clear();
                    condition = Some(self.condition(&n)?);
                }
            }
            self.program.ir.checksums.push(Checksum {
                id: node.id()?,
                name: node.name(),
                target,
                calc,
                tests,
                condition,
                verify: node.flag("verify", true)?,
                update: node.flag("update", true)?,
            });
        }
        Ok(())
    }

    /// Whether `e` being `truth` is that certain bits are set and others not; adds them.
    fn conjunction(&self, e: &Expr, truth: bool, tests: &mut Vec<(Slot, bool)>) -> bool {
        match e {
            Expr::Bool(b) => *b == truth,
            Expr::Valid(HeaderRef::Fixed(h)) => {
                tests.push((self.codegen.layout.headers[*h as usize].valid, truth));
                true
            }
            Expr::ToBool(a) => match &**a {
                Expr::Field(f) if f.width <= 64 => {
                    tests.push((f.slot, truth));
                    true
                }
                _ => false,
            },
            Expr::BoolNot(a) => self.conjunction(a, !truth, tests),
            Expr::BoolAnd(a, b) if truth => self.conjunction(a, true, tests) && self.conjunction(b, true, tests),
            Expr::BoolOr(a, b) if !truth => self.conjunction(a, false, tests) && self.conjunction(b, false, tests),
            _ => false,
        }
    }

    pub(super) fn load_learn_lists(&mut self, root: &Node) -> Result<()> {
        for node in root.list("learn_lists")? {
            let id = node.get("id")?.uint(65535)?;
            let mut fields = Vec::new();
            for item in node.get("elements")?.items()? {
                let ty = item.get("type")?;
                if ty.str()? != "field" {
                    return Err(ty.err("a digest holds fields only"));
                }
                fields.push(self.names.field(&item.get("value")?)?);
            }
            self.program.digests.push(DigestInfo {
                name: node.get("name")?.str()?.to_string(),
                json_id: id as i64,
                widths: fields.iter().map(|f| f.width).collect(),
            });
            self.program.ir.learn_lists.push(LearnList { id, fields });
        }
        Ok(())
    }

    pub(super) fn load_field_lists(&mut self, root: &Node) -> Result<()> {
        for node in root.list("field_lists")? {
            let id = node.get("id")?.uint(65535)?;
            let mut fields = Vec::new();
            for item in node.get("elements")?.items()? {
                let ty = item.get("type")?;
                match ty.str()? {
                    "field" => fields.push(self.names.field(&item.get("value")?)?),
                    // Constants have nowhere to be copied to.
                    "hexstr" => {}
                    other => return Err(ty.err(format!("'{other}' cannot be in a field list"))),
                }
            }
            self.program.ir.field_lists.push(FieldList { id, fields });
        }
        Ok(())
    }
}
