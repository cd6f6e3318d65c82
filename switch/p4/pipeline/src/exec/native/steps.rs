//! A whole pass as one list of steps: parser states, checksums, a pipeline with its actions in their
//! places. Jumps name labels; label 0 is the end.

use std::collections::HashMap;

use crate::definition::Definition;
use crate::ir::*;
use crate::load::effects::{target, Context};

pub type Label = u32;

/// More steps than this are not translated: actions of many tables are repeated for each.
const MOST: usize = 1 << 15;

#[derive(Debug)]
pub enum Step {
    /// Register code; its jumps name labels.
    Op(Op),
    /// A table's lookup: what to run and where to go on.
    Lookup(u32),
    /// On to the action found, by where its code begins.
    Choose(Vec<(u32, Label)>, Label),
    /// On to what follows the action, by where its code begins; the last is taken without asking.
    Next(Vec<(u32, Label)>),
    ParseStart,
    /// Counts a parser state.
    State,
    Extract(u32),
    /// An operation of a state left to the interpreter.
    ParserCall(u32, u32),
    Lookahead {
        dst: Field,
        offset: u32,
        width: u32,
    },
    /// Whole bytes.
    Advance(u64),
    Fail(u64),
    Select {
        keys: Vec<SelectKey>,
        cases: Vec<(u64, u64, Label)>,
        default: Label,
    },
    /// A select left to the interpreter, and the labels of all states.
    SelectCall(u32, Vec<Label>),
    ParseEnd,
    Verify(u32),
    Verified,
    Update(u32),
    /// Headers written over the frame.
    Emit,
}

#[derive(Debug, Default)]
pub struct Steps {
    pub steps: Vec<Step>,
    /// Position of each label.
    pub labels: Vec<usize>,
    /// Where the parser ends.
    pub parsed: Label,
}

impl Steps {
    /// Parser, verification and ingress.
    pub fn ingress(program: &Definition) -> Option<Steps> {
        let mut all = Steps::new();
        all.parser(&program.ir)?;
        all.verify(&program.ir)?;
        all.pipeline(program, program.ir.ingress)?;
        all.finish()
    }

    pub fn egress(program: &Definition) -> Option<Steps> {
        let mut all = Steps::new();
        all.pipeline(program, program.ir.egress)?;
        all.finish()
    }

    /// Checksum update and deparser.
    pub fn deparser(program: &Definition) -> Option<Steps> {
        let ir = &program.ir;
        let mut all = Steps::new();
        for (i, c) in ir.checksums.iter().enumerate().filter(|(_, c)| c.update) {
            let skip = all.condition(ir, c)?;
            all.steps.push(Step::Update(i as u32));
            all.place(skip);
        }
        all.code(ir, ir.deparser.code)?;
        all.steps.push(Step::Emit);
        all.finish()
    }

    /// A piece of register code by itself.
    #[cfg(test)]
    pub fn only(program: &Definition, code: Code) -> Option<Steps> {
        let mut all = Steps::new();
        all.pipeline(program, code)?;
        all.finish()
    }

    fn new() -> Steps {
        Steps { labels: vec![usize::MAX], ..Steps::default() }
    }

    fn finish(mut self) -> Option<Steps> {
        self.labels[0] = self.steps.len();
        (self.steps.len() <= MOST).then_some(self)
    }

    fn label(&mut self) -> Label {
        self.labels.push(usize::MAX);
        (self.labels.len() - 1) as Label
    }

    fn place(&mut self, label: Label) {
        self.labels[label as usize] = self.steps.len();
    }

    /// Code whose jumps stay within it and lead onward; it knows no tables.
    fn code(&mut self, ir: &Ir, code: Code) -> Option<()> {
        let mut to: HashMap<u32, Label> = HashMap::new();
        for at in code.start..code.end {
            if let Some(&label) = to.get(&at) {
                self.place(label);
            }
            let mut op = *ir.code.get(at as usize)?;
            if let Some(jump) = target(&mut op) {
                if *jump <= at || *jump > code.end {
                    return None;
                }
                *jump = *to.entry(*jump).or_insert_with(|| {
                    self.labels.push(usize::MAX);
                    (self.labels.len() - 1) as Label
                });
            }
            if matches!(op, Op::Table(_)) || self.steps.len() > MOST {
                return None;
            }
            self.steps.push(Step::Op(op));
        }
        if let Some(&label) = to.get(&code.end) {
            self.place(label);
        }
        Some(())
    }

    fn pipeline(&mut self, program: &Definition, code: Code) -> Option<()> {
        let ir = &program.ir;
        let mut to: HashMap<u32, Label> = HashMap::from([(code.end, 0)]);
        for at in code.start..code.end {
            let label = match to.get(&at) {
                Some(&label) => label,
                None => {
                    let label = self.label();
                    to.insert(at, label);
                    label
                }
            };
            self.place(label);
            let mut op = *ir.code.get(at as usize)?;
            let mut label_of = |all: &mut Steps, pc: u32| {
                // Onward only.
                if pc <= at || pc > code.end {
                    return None;
                }
                Some(*to.entry(pc).or_insert_with(|| all.label()))
            };
            if let Op::Table(t) = op {
                let table = &ir.tables[t as usize];
                let mut next = Vec::new();
                for node in table.successors() {
                    let pc = node.map_or(table.end, |n| ir.node_at[n as usize]);
                    if !next.iter().any(|(known, _)| *known == pc) {
                        next.push((pc, label_of(self, pc)?));
                    }
                }
                self.table(program, t, next)?;
                continue;
            }
            if let Some(jump) = target(&mut op) {
                *jump = label_of(self, *jump)?;
            }
            self.steps.push(Step::Op(op));
        }
        Some(())
    }

    /// A lookup, all the table's actions, and what may follow.
    fn table(&mut self, program: &Definition, t: u32, next: Vec<(u32, Label)>) -> Option<()> {
        let ir = &program.ir;
        let done = self.label();
        let mut arms: Vec<(Code, Label)> = Vec::new();
        for action in &program.tables[t as usize].actions {
            let code = ir.actions[action.index()].code;
            if code.start < code.end && !arms.iter().any(|(c, _)| c.start == code.start) {
                arms.push((code, self.label()));
            }
        }
        self.steps.push(Step::Lookup(t));
        let by_start = arms.iter().map(|(c, label)| (c.start, *label));
        self.steps.push(Step::Choose(by_start.collect(), done));
        for (code, label) in arms {
            self.place(label);
            self.code(ir, code)?;
            let ops = &ir.code[code.start as usize..code.end as usize];
            if ops.iter().any(Op::may_stop) {
                self.steps.push(Step::Op(Op::Stop));
            }
            self.steps.push(Step::Op(Op::Jump(done)));
        }
        self.place(done);
        self.steps.push(Step::Next(next));
        Some(())
    }

    fn parser(&mut self, ir: &Ir) -> Option<()> {
        let states: Vec<Label> = ir.parser.states.iter().map(|_| self.label()).collect();
        self.parsed = self.label();
        let parsed = self.parsed;
        let to = |next: NextState| next.map_or(parsed, |s| states[s as usize]);
        self.steps.push(Step::ParseStart);
        self.steps.push(Step::Op(Op::Jump(to(ir.parser.start))));
        for (i, state) in order(&ir.parser) {
            self.place(states[i as usize]);
            self.steps.push(Step::State);
            for (j, op) in state.ops.iter().enumerate() {
                self.parser_op(ir, i, j as u32, op)?;
            }
            let simple = |key: &SelectKey| match key {
                SelectKey::Field(f) => (1..=64).contains(&f.width),
                SelectKey::Lookahead { offset, width } => one_word(*offset, *width),
                _ => false,
            };
            self.steps.push(match &state.small {
                _ if state.key.is_empty() => Step::Op(Op::Jump(to(state.default))),
                Some(cases) if state.key.iter().all(simple) => Step::Select {
                    keys: state.key.clone(),
                    cases: cases.iter().map(|(v, m, n)| (*v, *m, to(*n))).collect(),
                    default: to(state.default),
                },
                _ => Step::SelectCall(i, states.clone()),
            });
        }
        self.place(parsed);
        self.steps.push(Step::ParseEnd);
        Some(())
    }

    fn parser_op(&mut self, ir: &Ir, state: u32, at: u32, op: &ParserOp) -> Option<()> {
        let call = Step::ParserCall(state, at);
        let step = match op {
            ParserOp::Extract(ExtractTo::Header(h)) if extracts(ir, *h) => Step::Extract(*h),
            ParserOp::Extract(_) | ParserOp::ExtractVarbit(..) => call,
            ParserOp::Run(code) => return self.code(ir, *code),
            ParserOp::Lookahead { dst, offset, width } => {
                let plain = !dst.saturating && (1..=64).contains(&dst.width);
                if plain && one_word(*offset, *width) {
                    let (dst, offset, width) = (*dst, *offset, *width);
                    Step::Lookahead { dst, offset, width }
                } else {
                    call
                }
            }
            ParserOp::Advance(Expr::Const(bits)) => match u64::try_from(bits) {
                Ok(bits) if bits % 8 == 0 && bits < 1 << 32 => Step::Advance(bits / 8),
                _ => call,
            },
            ParserOp::Advance(_) => call,
            ParserOp::Verify { code, slot, error } => {
                let Expr::Const(error) = error else {
                    self.steps.push(call);
                    return Some(());
                };
                self.code(ir, *code)?;
                let holds = self.label();
                self.steps.push(Step::Op(Op::JumpIfNonZero(*slot, holds)));
                let error = crate::exec::num::Num::from_big(error.clone()).low_u64();
                self.steps.push(Step::Fail(error));
                self.place(holds);
                return Some(());
            }
        };
        self.steps.push(step);
        Some(())
    }

    fn verify(&mut self, ir: &Ir) -> Option<()> {
        for (i, c) in ir.checksums.iter().enumerate().filter(|(_, c)| c.verify) {
            if c.target.width > 64 {
                return None;
            }
            let skip = self.condition(ir, c)?;
            self.steps.push(Step::Op(Op::JumpIfZero(c.target.valid, skip)));
            self.steps.push(Step::Verify(i as u32));
            self.place(skip);
        }
        self.steps.push(Step::Verified);
        Some(())
    }

    /// Jumps to the label, which is to be placed, when the checksum does not apply.
    fn condition(&mut self, ir: &Ir, c: &Checksum) -> Option<Label> {
        let skip = self.label();
        for &(slot, set) in &c.tests {
            self.steps.push(Step::Op(if set { Op::JumpIfZero(slot, skip) } else { Op::JumpIfNonZero(slot, skip) }));
        }
        if let Some((code, slot)) = c.condition {
            self.code(ir, code)?;
            self.steps.push(Step::Op(Op::JumpIfZero(slot, skip)));
        }
        Some(skip)
    }
}

/// Parser states in their order, those that cannot be reached too.
fn order(parser: &Parser) -> impl Iterator<Item = (u32, &ParserState)> {
    parser.states.iter().enumerate().map(|(i, s)| (i as u32, s))
}

/// So many bits that far ahead lie within eight bytes.
fn one_word(offset: u32, width: u32) -> bool {
    width > 0 && offset % 8 + width <= 64
}

/// A header that is read by words, or not at all.
fn extracts(ir: &Ir, h: u32) -> bool {
    let header = &ir.layout.headers[h as usize];
    let ty = &ir.layout.types[header.ty];
    !header.metadata && ty.varbit.is_none() && (header.opaque || ty.words.is_some())
}

/// The slots a step touches.
#[derive(Debug, Default)]
pub struct Touch {
    /// Its operands.
    pub uses: Vec<Slot>,
    /// What it leaves in them: it has all of these values at hand.
    pub sets: Vec<Slot>,
    /// What is read from memory, by a function that it calls.
    pub memory: Vec<Slot>,
    pub all_memory: bool,
    /// What such a function may write there.
    pub clobbers: Vec<Slot>,
    pub clobbers_all: bool,
    /// It may end the pass.
    pub ends: bool,
    /// It may end the parser.
    pub fails: bool,
}

impl Step {
    /// Where it may go, apart from what follows.
    pub fn targets(&self) -> Vec<Label> {
        match self {
            Step::Op(op) => target(&mut { *op }).map(|to| *to).into_iter().collect(),
            Step::Choose(arms, none) => arms.iter().map(|a| a.1).chain([*none]).collect(),
            Step::Next(next) => next.iter().map(|n| n.1).collect(),
            Step::Select { cases, default, .. } => cases.iter().map(|c| c.2).chain([*default]).collect(),
            Step::SelectCall(_, states) => states.clone(),
            _ => Vec::new(),
        }
    }

    /// What follows may come next.
    pub fn continues(&self) -> bool {
        !matches!(
            self,
            Step::Op(Op::Jump(_))
                | Step::Choose(..)
                | Step::Next(_)
                | Step::Fail(_)
                | Step::Select { .. }
                | Step::SelectCall(..)
                | Step::Emit
        )
    }

    pub fn touch(&self, context: &Context, ir: &Ir) -> Touch {
        let mut t = Touch::default();
        let validity = |h: &u32| context.validity(*h);
        match self {
            Step::Op(op) => touch_op(op, context, &mut t),
            Step::Lookup(table) => {
                let table_ir = &ir.tables[*table as usize];
                let to = if table_ir.key_limbs <= 1 { &mut t.uses } else { &mut t.memory };
                for part in &table_ir.key {
                    to.push(part.field.valid);
                    let first = part.field.slot;
                    to.extend(first..first + part.field.limbs() as u32);
                }
                if let Some(profile) = context.infos[*table as usize].profile {
                    let selector = ir.selectors.get(profile.index()).copied().flatten();
                    if let Some(calc) = selector {
                        context.calculation_reads(calc, &mut t.memory);
                    }
                }
                let params = context.layout.params;
                t.clobbers.extend(params..params + context.layout.params_len);
                t.clobbers.extend(table_ir.meter_target.iter().map(|f| f.slot));
            }
            Step::Extract(h) => {
                let header = &ir.layout.headers[*h as usize];
                if header.opaque {
                    t.sets.push(header.base);
                } else {
                    t.sets.extend(context.header_slots(*h));
                }
                t.sets.extend(validity(h));
                t.fails = true;
            }
            Step::ParserCall(..) => {
                t.all_memory = true;
                t.clobbers_all = true;
                t.fails = true;
            }
            Step::Lookahead { dst, .. } => {
                t.sets.push(dst.slot);
                t.fails = true;
            }
            Step::State | Step::Advance(_) | Step::Fail(_) => t.fails = true,
            Step::Select { keys, .. } => {
                for key in keys {
                    match key {
                        SelectKey::Field(f) => t.uses.push(f.slot),
                        _ => t.fails = true,
                    }
                }
            }
            Step::SelectCall(..) => {
                t.all_memory = true;
                t.fails = true;
            }
            Step::Verify(i) => {
                let c = &ir.checksums[*i as usize];
                touch_calc(c.calc, context, ir, &mut t);
                t.uses.push(c.target.slot);
            }
            Step::Verified => {
                let a = &ir.arch;
                let fields = [&a.parser_error, &a.checksum_error];
                t.sets.extend(fields.into_iter().flatten().map(|f| f.slot));
            }
            Step::Update(i) => {
                let c = &ir.checksums[*i as usize];
                touch_calc(c.calc, context, ir, &mut t);
                t.sets.push(c.target.slot);
            }
            Step::Emit => {
                t.all_memory = true;
                t.ends = true;
            }
            Step::Choose(..) | Step::Next(_) | Step::ParseStart | Step::ParseEnd => {}
        }
        t
    }
}

/// A sum over fields is computed in place, any other calculation by a function.
fn touch_calc(calc: u32, context: &Context, ir: &Ir, t: &mut Touch) {
    match &ir.calculations[calc as usize].sum {
        Some((valid, parts)) => {
            t.uses.push(*valid);
            t.uses.extend(parts.iter().map(|p| p.0));
        }
        None => context.calculation_reads(calc, &mut t.memory),
    }
}

fn touch_op(op: &Op, context: &Context, t: &mut Touch) {
    let e = context.of(op);
    let operands = crate::load::effects::operands(&mut { *op }).map(|s| *s).collect();
    match op {
        // What they leave when they do nothing is what was there.
        Op::RegGet { dst, .. } | Op::Meter { dst, .. } | Op::Random { dst, .. } => {
            t.uses = operands;
            t.uses.push(*dst);
            t.sets.push(*dst);
        }
        Op::SetValid(_) => t.sets = e.may_write,
        Op::Hash { dst, calc, .. } => {
            t.uses = operands;
            context.calculation_reads(*calc, &mut t.memory);
            t.sets.push(*dst);
        }
        Op::StackLast { dst, .. } => {
            t.memory = e.reads;
            t.sets.push(*dst);
        }
        Op::AddHeader(_) | Op::RemoveHeader(_) | Op::Heavy(_) => {
            t.memory = e.reads;
            t.all_memory = e.reads_all;
            t.clobbers = e.writes;
            t.clobbers.extend(e.may_write);
            t.clobbers_all = e.may_write_all;
        }
        Op::Stop => t.ends = true,
        _ => {
            t.uses = operands;
            t.sets = e.writes;
        }
    }
}
