//! Each pipeline as one piece of code: conditions, tables without choice, and all other tables as
//! one instruction each.
//!
//! Compilers put every statement outside an action into a table of its own, without key and with a
//! constant default action. Here its action's code stands in its place.

use std::collections::HashMap;

use super::constants::Constants;
use super::effects::{field_slots, target, Context};
use super::optimise::{optimise, Unit};
use super::Loader;
use crate::ir::*;
use crate::observe::Observing;
use crate::table::resolve;

/// Code whose jumps name labels; label 0 is its end.
struct Emitter<'a> {
    ops: Vec<Op>,
    /// Position of each label; `usize::MAX` until it is known.
    labels: Vec<usize>,
    nodes: HashMap<u32, u32>,
    code: &'a [Op],
}

impl Emitter<'_> {
    fn label(&mut self) -> u32 {
        self.labels.push(usize::MAX);
        (self.labels.len() - 1) as u32
    }

    /// The label of a node, or of the end.
    fn node(&mut self, node: NextNode) -> u32 {
        let Some(node) = node else { return 0 };
        if let Some(&label) = self.nodes.get(&node) {
            return label;
        }
        let label = self.label();
        self.nodes.insert(node, label);
        label
    }

    fn place(&mut self, label: u32) {
        self.labels[label as usize] = self.ops.len();
    }

    /// Code that was compiled for itself; its jumps stay within it.
    fn inline(&mut self, code: Code) {
        let mut targets: HashMap<u32, u32> = HashMap::new();
        for at in code.start..code.end {
            if let Op::Jump(to) | Op::JumpIfZero(_, to) = self.code[at as usize]
                && let std::collections::hash_map::Entry::Vacant(e) = targets.entry(to)
            {
                self.labels.push(usize::MAX);
                e.insert((self.labels.len() - 1) as u32);
            }
        }
        let mut stops = false;
        for at in code.start..code.end {
            if let Some(&label) = targets.get(&at) {
                self.place(label);
            }
            let op = match self.code[at as usize] {
                Op::Jump(to) => Op::Jump(targets[&to]),
                Op::JumpIfZero(slot, to) => Op::JumpIfZero(slot, targets[&to]),
                op => op,
            };
            stops |= op.may_stop();
            self.ops.push(op);
        }
        if let Some(&label) = targets.get(&code.end) {
            self.place(label);
        }
        if stops {
            self.ops.push(Op::Stop);
        }
    }
}

impl Loader<'_> {
    /// Makes the code of both pipelines from their nodes.
    pub(super) fn fuse(&mut self) {
        self.program.ir.node_at = vec![0; self.program.ir.nodes.len()];
        let (ingress, egress) = self.starts;
        let mut units = [ingress, egress].map(|start| self.emit_pipeline(start));
        for unit in &mut units {
            // What a packet log or a debugger shows must be as the program says, not as it was improved.
            unit.forward = self.program.observed < Observing::Everything && unit.is_forward();
        }
        let common = self.always_read();
        let egress_reads = self.reads_of(&units[1]);
        let mut ends = [common.clone(), common];
        match egress_reads {
            Some(reads) => ends[0].extend(reads),
            None => ends[0].extend(0..self.codegen.layout.packet_end),
        }
        self.program.ir.ingress_live = ends[0].clone();
        self.program.ir.egress_live = ends[1].clone();
        let [ingress, egress] = units;
        let (code, first) = self.finish(ingress, &ends[0]);
        self.program.ir.ingress = code;
        self.program.ir.egress = self.finish(egress, &ends[1]).0;
        self.load_needs(first);
    }

    /// The only action of a table without key, when nobody can change it, with its arguments.
    fn only_action(&self, t: usize) -> Option<(u32, Vec<u64>, NextNode)> {
        let (info, ir) = (&self.program.tables[t], &self.program.ir.tables[t]);
        let plain = self.program.observed == Observing::Nothing && info.key.is_empty() && info.const_default && info.profile.is_none();
        let call = ir.default.as_ref().filter(|_| plain)?;
        let place = resolve(&self.program, &info.actions, call)?;
        let action = info.actions[place as usize];
        let widths = self.program.actions[action.index()].params.iter();
        let mut args = Vec::new();
        for (value, param) in call.args.iter().zip(widths) {
            let mut limbs = vec![0; param.width.div_ceil(64) as usize];
            value.write_limbs(&mut limbs);
            args.extend(limbs);
        }
        Some((action.0, args, ir.next_node(Some(place), false)))
    }

    fn emit_pipeline(&mut self, start: NextNode) -> Unit {
        let order = self.order(start);
        let code = std::mem::take(&mut self.codegen.code);
        let mut e = Emitter { ops: Vec::new(), labels: vec![usize::MAX], nodes: HashMap::new(), code: &code };
        for (i, &node) in order.iter().enumerate() {
            let label = e.node(Some(node));
            e.place(label);
            let next = match self.program.ir.nodes[node as usize].clone() {
                Node::Table(t) => match self.only_action(t as usize) {
                    Some((action, args, next)) => {
                        for (k, &arg) in args.iter().enumerate() {
                            let a = self.codegen.constant(arg);
                            let dst = self.codegen.layout.params + k as u32;
                            let imm = u64::MAX;
                            e.ops.push(Op::Mov(Un { dst, a, imm }));
                        }
                        e.inline(self.program.ir.actions[action as usize].code);
                        next
                    }
                    None => {
                        e.ops.push(Op::Table(t));
                        continue;
                    }
                },
                Node::Test { slot, yes, no } => {
                    let no = e.node(no);
                    e.ops.push(Op::JumpIfZero(slot, no));
                    yes
                }
                Node::Cond { code, slot, yes, no } => {
                    e.inline(code);
                    let no = e.node(no);
                    e.ops.push(Op::JumpIfZero(slot, no));
                    yes
                }
                Node::Call { action, next } => {
                    e.inline(self.program.ir.actions[action as usize].code);
                    next
                }
            };
            if next.is_none() || next != order.get(i + 1).copied() {
                let to = e.node(next);
                e.ops.push(Op::Jump(to));
            }
        }
        e.place(0);
        let (ops, labels) = (e.ops, e.labels);
        let nodes = e.nodes;
        self.codegen.code = code;
        Unit { ops: ops.into_iter().map(Some).collect(), labels, nodes, forward: false }
    }

    /// The nodes reached from `start`, each before all that may follow it.
    fn order(&self, start: NextNode) -> Vec<u32> {
        let nodes = &self.program.ir.nodes;
        let successors = |n: u32| -> Vec<u32> {
            let mut all = match &nodes[n as usize] {
                Node::Table(t) => match self.only_action(*t as usize) {
                    Some((_, _, next)) => vec![next],
                    None => self.program.ir.tables[*t as usize].successors(),
                },
                Node::Test { yes, no, .. } | Node::Cond { yes, no, .. } => vec![*yes, *no],
                Node::Call { next, .. } => vec![*next],
            };
            all.dedup();
            all.into_iter().flatten().collect()
        };
        let mut seen = vec![false; nodes.len()];
        let mut order = Vec::new();
        let mut stack: Vec<(u32, Vec<u32>)> = Vec::new();
        if let Some(start) = start {
            seen[start as usize] = true;
            stack.push((start, successors(start)));
        }
        while let Some((node, rest)) = stack.last_mut() {
            // The last first: in reverse postorder the first successor then follows at once.
            match rest.pop() {
                Some(next) if !seen[next as usize] => {
                    seen[next as usize] = true;
                    stack.push((next, successors(next)));
                }
                Some(_) => {}
                None => {
                    order.push(*node);
                    stack.pop();
                }
            }
        }
        order.reverse();
        order
    }

    /// What is read of a packet after either pipeline, whatever the other does.
    fn always_read(&self) -> Vec<Slot> {
        let (ir, layout) = (&self.program.ir, &self.codegen.layout);
        if ir.psa.is_some() {
            return (0..layout.packet_end).collect();
        }
        let mut slots: Vec<Slot> = (layout.metadata_end..layout.packet_end).collect();
        let lists = ir.field_lists.iter().map(|l| &l.fields);
        for f in lists.chain(ir.learn_lists.iter().map(|l| &l.fields)).flatten() {
            slots.extend(field_slots(f));
        }
        let a = &ir.arch;
        let arch = [
            a.ingress_port,
            a.packet_length,
            a.instance_type,
            a.egress_spec,
            a.egress_port,
            a.parser_error,
            a.checksum_error,
            a.ingress_global_timestamp,
            a.egress_global_timestamp,
            a.mcast_grp,
            a.egress_rid,
            a.priority,
            a.enq_timestamp,
            a.enq_qdepth,
            a.deq_timedelta,
            a.deq_qdepth,
            a.qid,
        ];
        slots.extend(arch.iter().flatten().map(|f| f.slot));
        let context = self.context();
        let mut codes = vec![ir.deparser.code];
        for c in &ir.checksums {
            slots.push(c.target.slot);
            context.calculation_reads(c.calc, &mut slots);
            slots.extend(c.tests.iter().map(|t| t.0));
            if let Some((code, slot)) = c.condition {
                codes.push(code);
                slots.push(slot);
            }
        }
        for code in codes {
            for op in &self.codegen.code[code.start as usize..code.end as usize] {
                let e = context.of(op);
                if e.reads_all {
                    slots.extend(0..layout.packet_end);
                }
                slots.extend(e.reads);
            }
        }
        // What is beyond the packet (parameters, temporaries) no piece of code leaves to another.
        slots.retain(|&slot| slot < layout.packet_end);
        slots
    }

    /// What a pipeline reads; none when that is not known.
    fn reads_of(&self, unit: &Unit) -> Option<Vec<Slot>> {
        let context = self.context();
        let mut reads = Vec::new();
        for op in unit.ops.iter().flatten() {
            let e = context.of(op);
            if e.reads_all {
                return None;
            }
            reads.extend(e.reads);
        }
        // What is beyond the packet (parameters, temporaries) no piece of code leaves to another.
        reads.retain(|&slot| slot < self.codegen.layout.packet_end);
        Some(reads)
    }

    pub(super) fn context(&self) -> Context<'_> {
        let ir = &self.program.ir;
        Context {
            layout: &self.codegen.layout,
            heavy: &self.codegen.heavy,
            actions: &ir.actions,
            tables: &ir.tables,
            infos: &self.program.tables,
            calculations: &ir.calculations,
            arch: &ir.arch,
            code: &self.codegen.code,
        }
    }

    /// Optimises a pipeline and appends it to the program's code; also, where that is known, what is
    /// read before it is written, `live` at its end.
    fn finish(&mut self, mut unit: Unit, live: &[Slot]) -> (Code, Option<Vec<Slot>>) {
        let mut needed = None;
        if unit.forward {
            let first = self.codegen.layout.init.len();
            let mut constants = Constants::new(&self.codegen.consts, first);
            needed = Some(optimise(&mut unit, &self.context(), &mut constants, live));
            let added = constants.added;
            for (i, v) in added.into_iter().enumerate() {
                self.codegen.consts.insert(v, (first + i) as Slot);
                self.codegen.layout.init.push(v);
            }
        }
        let (ops, labels, nodes) = unit.pack();
        let base = self.codegen.code.len() as u32;
        let at = |label: u32| base + labels[label as usize];
        for mut op in ops {
            if let Some(to) = target(&mut op) {
                *to = at(*to);
            }
            self.codegen.code.push(op);
        }
        for (node, label) in nodes {
            self.program.ir.node_at[node as usize] = at(label);
            if let Node::Table(t) = self.program.ir.nodes[node as usize] {
                self.program.ir.tables[t as usize].end = at(0);
            }
        }
        let end = at(0);
        (Code { start: base, end }, needed)
    }
}
