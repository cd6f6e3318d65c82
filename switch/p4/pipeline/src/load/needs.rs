//! What a program needs of a packet: fields nobody looks at need not be read, and slots nobody
//! reads before they are written need not be cleared.

use super::effects::{field_slots, Context};
use super::Loader;
use crate::ir::*;
use crate::observe::Observing;

/// All that a program does to slots, anywhere.
#[derive(Default)]
struct Uses {
    read: Vec<bool>,
    written: Vec<bool>,
    /// Read in the parser, before the pipelines.
    early: Vec<bool>,
    /// Some instruction may read or write anything.
    anything: bool,
}

fn mark(set: &mut [bool], slots: impl IntoIterator<Item = Slot>) {
    for slot in slots {
        if let Some(bit) = set.get_mut(slot as usize) {
            *bit = true;
        }
    }
}

impl Loader<'_> {
    /// Finds the headers that can stay bytes, what to clear, and what the deparser does.
    /// `ingress` are the slots that ingress reads, or leaves for later, before it writes them.
    pub(super) fn load_needs(&mut self, ingress: Option<Vec<Slot>>) {
        let end = self.codegen.layout.packet_end;
        let mut uses = self.uses();
        // PSA parses twice: each parser may read anything that the other wrote.
        uses.anything |= self.program.ir.psa.is_some();
        // A packet log or a debugger may show any field.
        uses.anything |= self.program.observed >= Observing::Everything;
        if !uses.anything {
            for h in 0..self.codegen.layout.headers.len() {
                self.codegen.layout.headers[h].opaque = self.stays_bytes(h as u32, &uses);
            }
        }
        if !uses.anything {
            self.forget_unread_metadata(&uses);
        }
        let mut reset = vec![false; end as usize];
        match ingress {
            Some(live) if !uses.anything => {
                let layout = &self.codegen.layout;
                mark(&mut reset, layout.headers.iter().map(|h| h.valid));
                mark(&mut reset, layout.stacks.iter().map(|s| s.next));
                mark(&mut reset, layout.union_stacks.iter().map(|s| s.next));
                mark(&mut reset, live.into_iter().filter(|&s| s < layout.metadata_end));
                let slots = (0..end).filter(|&s| {
                    let read = if s < layout.metadata_end { &uses.early } else { &uses.read };
                    read[s as usize]
                });
                mark(&mut reset, slots);
                for op in &self.codegen.code {
                    // A header made valid as it is shows all its fields.
                    if let Op::SetValid(h) = op {
                        mark(&mut reset, self.context().header_slots(*h));
                    }
                }
            }
            _ => reset.fill(true),
        }
        let mut ranges: Vec<(Slot, Slot)> = Vec::new();
        for slot in (0..end).filter(|&s| reset[s as usize]) {
            match ranges.last_mut() {
                // A few slots too many are cheaper than another range.
                Some((_, to)) if slot - *to <= 16 => *to = slot + 1,
                _ => ranges.push((slot, slot + 1)),
            }
        }
        let layout = &self.codegen.layout;
        let emit = |&h: &u32| {
            let header = &layout.headers[h as usize];
            Emit {
                header: h,
                valid: header.valid,
                base: header.base,
                ty: header.ty as u32,
                bytes: layout.types[header.ty].bits / 8,
                varbit: header.varbit.is_some(),
                opaque: header.opaque,
            }
        };
        let ir = &mut self.program.ir;
        let ingress = ir.psa.as_mut().map(|psa| &mut psa.deparser);
        for deparser in std::iter::once(&mut ir.deparser).chain(ingress) {
            deparser.emits = deparser.headers.iter().map(emit).collect();
        }
        ir.reset = ranges;
    }

    /// What the program never reads of the metadata that the switch alone writes need not be written.
    fn forget_unread_metadata(&mut self, uses: &Uses) {
        let a = &mut self.program.ir.arch;
        let fields = [
            &mut a.ingress_port,
            &mut a.packet_length,
            &mut a.instance_type,
            &mut a.egress_port,
            &mut a.parser_error,
            &mut a.checksum_error,
            &mut a.ingress_global_timestamp,
            &mut a.egress_global_timestamp,
            &mut a.egress_rid,
            &mut a.enq_timestamp,
            &mut a.enq_qdepth,
            &mut a.deq_timedelta,
            &mut a.deq_qdepth,
            &mut a.qid,
        ];
        for field in fields {
            *field = field.filter(|f| uses.read[f.slot as usize]);
        }
    }

    /// A header outside stacks and unions whose fields are extracted and emitted, no more.
    fn stays_bytes(&self, h: u32, uses: &Uses) -> bool {
        let layout = &self.codegen.layout;
        let header = &layout.headers[h as usize];
        let plain = !header.metadata && header.varbit.is_none() && header.union.is_none();
        let mut slots = self.context().header_slots(h);
        plain
            && layout.types[header.ty].slots > 0
            && !layout.stacks.iter().any(|s| s.headers.contains(&h))
            && !self.codegen.code.iter().any(|op| matches!(op, Op::SetValid(v) if *v == h))
            && slots.all(|s| !uses.read[s as usize] && !uses.written[s as usize])
    }

    fn uses(&self) -> Uses {
        let end = self.codegen.layout.packet_end as usize;
        let mut uses = Uses { read: vec![false; end], written: vec![false; end], early: vec![false; end], anything: false };
        let context = self.context();
        for op in &self.codegen.code {
            let e = context.of(op);
            uses.anything |= e.reads_all || e.may_write_all;
            mark(&mut uses.read, e.reads);
            mark(&mut uses.written, e.writes);
            mark(&mut uses.written, e.may_write);
        }
        let ir = &self.program.ir;
        let mut reads = Vec::new();
        for calc in 0..ir.calculations.len() {
            context.calculation_reads(calc as u32, &mut reads);
        }
        let lists = ir.field_lists.iter().map(|l| &l.fields);
        for f in lists.chain(ir.learn_lists.iter().map(|l| &l.fields)).flatten() {
            reads.extend(field_slots(f));
            mark(&mut uses.written, field_slots(f));
        }
        for c in &ir.checksums {
            reads.push(c.target.slot);
            mark(&mut uses.written, [c.target.slot]);
        }
        for t in &ir.tables {
            reads.extend(t.key.iter().flat_map(|k| field_slots(&k.field)));
            mark(&mut uses.written, t.meter_target.iter().map(|f| f.slot));
        }
        mark(&mut uses.read, reads);
        self.parser_uses(&context, &mut uses);
        uses
    }

    fn parser_uses(&self, context: &Context, uses: &mut Uses) {
        let mut reads = Vec::new();
        let mut codes: Vec<Code> = Vec::new();
        for header in &self.codegen.layout.headers {
            if let Some(length) = &header.length {
                uses.anything |= !context.expression(length, &mut reads);
            }
        }
        // Checksums are verified before ingress, too.
        for c in &self.program.ir.checksums {
            reads.push(c.target.slot);
            reads.extend(c.tests.iter().map(|t| t.0));
            context.calculation_reads(c.calc, &mut reads);
            if let Some((code, slot)) = c.condition {
                codes.push(code);
                reads.push(slot);
            }
        }
        for state in &self.program.ir.parser.states {
            for op in &state.ops {
                match op {
                    ParserOp::Extract(_) => {}
                    ParserOp::ExtractVarbit(_, bits) | ParserOp::Advance(bits) => {
                        uses.anything |= !context.expression(bits, &mut reads);
                    }
                    ParserOp::Run(code) => codes.push(*code),
                    ParserOp::Lookahead { dst, .. } => mark(&mut uses.written, field_slots(dst)),
                    ParserOp::Verify { code, slot, error } => {
                        codes.push(*code);
                        reads.push(*slot);
                        uses.anything |= !context.expression(error, &mut reads);
                    }
                }
            }
            for key in &state.key {
                match key {
                    SelectKey::Field(f) => reads.extend(field_slots(f)),
                    SelectKey::Lookahead { .. } => {}
                    SelectKey::StackLast(s, f) => {
                        let headers = &self.codegen.layout.stacks[*s as usize].headers;
                        for h in headers {
                            let base = self.codegen.layout.headers[*h as usize].base + f.rel;
                            reads.extend(base..base + f.width.div_ceil(64));
                        }
                    }
                    SelectKey::UnionStackLast(..) => uses.anything = true,
                }
            }
        }
        for code in codes {
            for op in &self.codegen.code[code.start as usize..code.end as usize] {
                reads.extend(context.of(op).reads);
            }
        }
        mark(&mut uses.early, reads.iter().copied());
        mark(&mut uses.read, reads);
    }
}
