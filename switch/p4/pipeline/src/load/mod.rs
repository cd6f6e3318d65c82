//! From BMv2 JSON (behavioral-model, docs/JSON_format.md, version 2.24) to [`Program`].
//!
//! Everything a packet or the control plane could trip over later is refused here, with the path
//! in the JSON.

mod arch;
pub mod codegen;
mod constants;
mod control;
pub mod effects;
mod expr;
mod externs;
mod fuse;
mod json;
mod layout;
mod needs;
mod optimise;
mod parser;
mod primitives;
mod psa;
mod psa_primitives;
mod reads;

use std::collections::HashMap;

use codegen::CodeGen;
use json::{Node, Result};
use layout::Names;
use primitives::{Caller, Objects};

use crate::definition::{Definition, Notes, Read};
use crate::error::LoadError;
use crate::info::*;
use crate::ir::{Action, Code, Field, Heavy, Layout, NextNode, Slot};
use crate::observe::{Observing, Step};

/// Format version understood: the major number must be equal.
const MAJOR: i64 = 2;

/// Loads a program.
///
/// `observed`: with instructions that note conditions and actions, or everything ([`crate::observe`]).
pub fn load(text: &str, observed: Observing) -> std::result::Result<Definition, LoadError> {
    let root: serde_json::Value = serde_json::from_str(text).map_err(|e| LoadError {
        path: String::new(),
        position: Some((e.line(), e.column())),
        message: if e.is_eof() {
            "the JSON ends too early".to_string()
        } else {
            format!("this is not JSON: {}", strip_position(&e.to_string()))
        },
        hint: e.is_eof().then(|| "the file is cut off, compile the program again".to_string()),
        too_large: false,
    })?;
    let root = Node::root(&root);
    if !root.v.is_object() {
        return Err(root.err("a BMv2 program is a JSON object"));
    }
    check_version(&root)?;
    let names = Names::load(&root)?;
    names.check_size(&root)?;
    Loader::new(&root, &names, observed)?.run(&root)
}

/// serde_json repeats the position in its message.
fn strip_position(message: &str) -> &str {
    message.rsplit_once(" at line ").map_or(message, |(m, _)| m)
}

fn check_version(root: &Node) -> Result<()> {
    let Some(meta) = root.opt("__meta__") else {
        return Ok(());
    };
    let Some(version) = meta.opt("version") else {
        return Ok(());
    };
    let pair = version.tuple(2)?;
    if pair[0].int()? != MAJOR {
        return Err(version
            .err(format!("BMv2 JSON of version {}.{} cannot be read, only {MAJOR}.x", pair[0].int()?, pair[1].int()?))
            .hint("compile the program with a p4c that writes version 2"));
    }
    Ok(())
}

/// Code that tells what is read, where anything is.
fn tell_reads(codegen: &mut CodeGen, notes: &mut Notes, reads: Vec<(Read, Field)>) {
    if reads.is_empty() {
        return;
    }
    let (reads, fields) = reads.into_iter().unzip();
    codegen.push_heavy(Heavy::TellReads(notes.reads.len() as u32, fields));
    notes.reads.push(reads);
}

/// What is known while a program is loaded.
struct Loader<'n> {
    names: &'n Names,
    program: Definition,
    codegen: CodeGen,
    registers: HashMap<String, u32>,
    counters: HashMap<String, u32>,
    meters: HashMap<String, u32>,
    calculations: HashMap<String, u32>,
    externs: psa::Objects,
    action_ids: HashMap<i64, ActionId>,
    profiles: HashMap<String, ProfileId>,
    /// Where the colour of each direct meter goes.
    meter_targets: HashMap<String, Field>,
    /// Direct counter of each table.
    counter_bindings: HashMap<String, u32>,
    /// First nodes of ingress and egress.
    starts: (NextNode, NextNode),
}

impl<'n> Loader<'n> {
    fn new(root: &Node, names: &'n Names, observed: Observing) -> Result<Loader<'n>> {
        let mut program = Definition { observed, ..Definition::default() };
        let registers = externs::registers(root, &mut program)?;
        let counters = externs::counters(root, &mut program)?;
        let meters = externs::meters(root, &mut program)?;
        externs::check_memory(&program)?;
        let layout = Layout {
            types: names.layout.types.clone(),
            headers: names.layout.headers.clone(),
            stacks: names.layout.stacks.clone(),
            union_types: names.layout.union_types.clone(),
            unions: names.layout.unions.clone(),
            union_stacks: names.layout.union_stacks.clone(),
            init: names.layout.init.clone(),
            ..names.layout
        };
        let widths = program.registers.iter().map(|r| r.width).collect();
        Ok(Loader {
            names,
            program,
            codegen: CodeGen::new(layout, widths),
            registers,
            counters,
            meters,
            calculations: HashMap::new(),
            externs: HashMap::new(),
            action_ids: HashMap::new(),
            profiles: HashMap::new(),
            meter_targets: externs::meter_targets(root, names)?,
            counter_bindings: externs::counter_bindings(root)?,
            starts: (None, None),
        })
    }

    /// A list of primitive calls as code.
    fn body(&mut self, params: &[(Slot, u32)], calls: &[Node]) -> Result<Code> {
        self.calls(params, calls, Caller::Action)
    }

    fn calls(&mut self, params: &[(Slot, u32)], calls: &[Node], caller: Caller) -> Result<Code> {
        let objects = Objects {
            names: self.names,
            registers: &self.registers,
            counters: &self.counters,
            meters: &self.meters,
            calculations: &self.calculations,
            externs: &self.externs,
            psa: psa::is_psa(self.names),
        };
        let mut target = primitives::Target { codegen: &mut self.codegen, program: &mut self.program, caller };
        primitives::body(&mut target, &objects, params, calls)
    }

    /// An instruction that notes a step, if that is asked for; `slot` is whether a condition holds.
    fn observe(&mut self, step: Step, slot: Option<Slot>) {
        if self.program.observed > Observing::Nothing {
            self.codegen.push_heavy(Heavy::Observe(step, slot));
        }
    }

    /// Code that tells what is read, if values are noted.
    fn tell_reads(&mut self, reads: impl FnOnce(&Names) -> Vec<(Read, Field)>) {
        if self.program.observed == Observing::Values {
            tell_reads(&mut self.codegen, &mut self.program.notes, reads(self.names));
        }
    }

    fn scope(&self) -> expr::Scope<'_> {
        expr::Scope { names: self.names, registers: &self.registers, params: &[] }
    }

    /// A truth value as code and the slot it ends in.
    fn condition(&mut self, node: &Node) -> Result<(Code, Slot)> {
        let e = self.scope().boolean(node)?;
        let start = self.codegen.here();
        let slot = self.codegen.condition(&e);
        self.codegen.end_statement();
        Ok((Code { start, end: self.codegen.here() }, slot))
    }

    fn run(mut self, root: &Node) -> Result<Definition> {
        self.load_calculations(root)?;
        self.load_externs(root)?;
        self.load_header_lengths(root)?;
        self.load_errors(root)?;
        self.load_actions(root)?;
        self.load_value_sets(root)?;
        if psa::is_psa(self.names) {
            self.program.ir.parser = self.parser_named(root, "egress_parser")?;
            self.program.ir.deparser = self.deparser_named(root, "egress_deparser")?;
            self.load_psa(root)?;
        } else {
            self.program.ir.parser = self.parser_named(root, "parser")?;
            self.program.ir.deparser = self.deparser_named(root, "deparser")?;
        }
        self.load_pipelines(root)?;
        self.load_checksums(root)?;
        self.load_learn_lists(root)?;
        self.load_field_lists(root)?;
        self.load_arch(root)?;
        self.fuse();
        let constants = self.codegen.consts.iter().map(|(v, slot)| (*slot, *v));
        self.program.ir.constants = constants.collect();
        self.program.ir.layout = self.codegen.layout;
        self.program.ir.code = self.codegen.code;
        self.program.ir.heavy = self.codegen.heavy;
        Ok(self.program)
    }

    fn load_actions(&mut self, root: &Node) -> Result<()> {
        let nodes = root.list("actions")?;
        let mut parsed = Vec::new();
        let mut most = 0;
        for node in &nodes {
            let mut params = Vec::new();
            let mut limbs = 0;
            for p in node.list("runtime_data")? {
                let width = p.get("bitwidth")?.uint(2048)? as u32;
                if width == 0 {
                    return Err(p.err("a parameter is at least one bit wide"));
                }
                params.push(ParamInfo { name: p.get("name")?.str()?.to_string(), width });
                limbs += width.div_ceil(64);
            }
            most = most.max(limbs);
            parsed.push(params);
        }
        let base = self.codegen.layout.init.len() as Slot;
        self.codegen.layout.params = base;
        self.codegen.layout.params_len = most;
        for _ in 0..most {
            self.codegen.slot(0);
        }
        for (node, params) in nodes.iter().zip(parsed) {
            let mut next = base;
            let mut slots = Vec::new();
            for p in &params {
                slots.push((next, p.width));
                next += p.width.div_ceil(64);
            }
            let json_id = node.get("id")?.int()?;
            let start = self.codegen.here();
            self.observe(Step::Action(json_id), None);
            let code = Code { start, ..self.body(&slots, &node.list("primitives")?)? };
            let id = ActionId(self.program.actions.len() as u32);
            if self.action_ids.insert(json_id, id).is_some() {
                return Err(node.err(format!("two actions have the id {json_id}")));
            }
            self.program.notes.actions.push(node.source());
            self.program.actions.push(ActionInfo { name: node.get("name")?.str()?.to_string(), json_id, params });
            self.program.ir.actions.push(Action { code });
        }
        Ok(())
    }

    fn action(&self, node: &Node) -> Result<ActionId> {
        let id = node.int()?;
        self.action_ids.get(&id).copied().ok_or_else(|| node.err(format!("there is no action with id {id}")))
    }
}
