//! Moves statements of a pipeline into actions of hidden tables: the target executes statements in actions only.
//!
//! ```text
//! meta.x = 1;                        tbl_l12.apply();   // default action l12() { meta.x = 1; meta.y = 2; }
//! meta.y = 2;                     => if (c) { t.apply(); }
//! if (c) { t.apply(); }
//! ```
//!
//! Conditions stay, for the target branches between tables. A loop moves as a whole, for it cannot branch back.

use std::collections::HashSet;

use fairlane_syntax::ast::Span;
use fairlane_syntax::SourceMap;

use crate::ir::{Action, ActionId, Implementation, Label, Program, Stmt, Table, TableId};
use crate::report::Report;
use crate::rule::Rule;

/// Runs the pass on both pipelines.
pub fn run(program: &mut Program, sources: &SourceMap, report: &mut Report) {
    let names = program.tables.iter().map(|t| t.name.clone()).collect();
    let ingress = std::mem::take(&mut program.ingress.body);
    let egress = std::mem::take(&mut program.egress.body);
    let mut pass = Pass { program, sources, report, names };
    let ingress = pass.block(ingress);
    let egress = pass.block(egress);
    program.ingress.body = ingress;
    program.egress.body = egress;
}

struct Pass<'p> {
    program: &'p mut Program,
    sources: &'p SourceMap,
    report: &'p mut Report,
    names: HashSet<String>,
}

impl Pass<'_> {
    fn block(&mut self, body: Vec<Stmt>) -> Vec<Stmt> {
        let mut out = Vec::new();
        let mut run: Vec<Stmt> = Vec::new();
        for s in body {
            match s {
                s if self.moves(&s) => run.push(s),
                s => {
                    self.flush(&mut run, &mut out);
                    let s = self.inside(s);
                    out.push(s);
                }
            }
        }
        self.flush(&mut run, &mut out);
        out
    }

    /// Whether a statement goes into an action as it is.
    fn moves(&self, s: &Stmt) -> bool {
        match s {
            Stmt::Apply(..) | Stmt::ApplyHit(..) | Stmt::ApplySwitch(..) | Stmt::Leave(..) | Stmt::Exit(_) | Stmt::If(..) => false,
            Stmt::Loop(..) | Stmt::Scope(..) => has_loop(s) && !applies(s) && closed(s, &mut Vec::new()),
            _ => true,
        }
    }

    fn inside(&mut self, s: Stmt) -> Stmt {
        match s {
            Stmt::If(c, a, b, span) => Stmt::If(c, self.block(a), self.block(b), span),
            Stmt::ApplyHit(t, a, b, span) => Stmt::ApplyHit(t, self.block(a), self.block(b), span),
            Stmt::ApplySwitch(t, cases, default, span) => {
                let cases = cases.into_iter().map(|(l, b)| (l, self.block(b))).collect();
                Stmt::ApplySwitch(t, cases, default.map(|b| self.block(b)), span)
            }
            Stmt::Scope(l, b) => Stmt::Scope(l, self.block(b)),
            Stmt::Loop(b, span) => {
                self.report.error_help(
                    span,
                    Rule::Bmv2,
                    "a loop that applies tables must have a number of rounds known at compile time",
                    "loop over a constant range, or apply the table once",
                );
                Stmt::Loop(self.block(b), span)
            }
            s => s,
        }
    }

    /// Makes a hidden table of the statements collected.
    fn flush(&mut self, run: &mut Vec<Stmt>, out: &mut Vec<Stmt>) {
        if run.is_empty() {
            return;
        }
        let body = std::mem::take(run);
        let span = body.iter().find_map(span_of).unwrap_or_default();
        let at = self.sources.location(span);
        let stem: String = at
            .file
            .rsplit('/')
            .next()
            .and_then(|f| f.split('.').next())
            .unwrap_or("")
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        let base = if stem.is_empty() { "act".to_owned() } else { format!("{stem}l{}", at.line) };
        let mut name = base.clone();
        let mut n = 0;
        while !self.names.insert(format!("tbl_{name}")) {
            name = format!("{base}_{n}");
            n += 1;
        }
        let action = ActionId(self.program.actions.len());
        self.program.actions.push(Action { name: name.clone(), params: Vec::new(), body, span });
        let table = TableId(self.program.tables.len());
        self.program.tables.push(Table {
            name: format!("tbl_{name}"),
            keys: Vec::new(),
            prelude: Vec::new(),
            actions: vec![action],
            default: Some((action, Vec::new(), true)),
            size: None,
            entries: None,
            implementation: Implementation::Simple,
            with_counters: false,
            direct_meter: None,
            support_timeout: false,
            span,
        });
        out.push(Stmt::Apply(table, span));
    }
}

fn children(s: &Stmt) -> Vec<&Stmt> {
    match s {
        Stmt::If(_, a, b, _) | Stmt::ApplyHit(_, a, b, _) => a.iter().chain(b).collect(),
        Stmt::ApplySwitch(_, cases, default, _) => cases.iter().flat_map(|(_, b)| b).chain(default.iter().flatten()).collect(),
        Stmt::Scope(_, b) | Stmt::Loop(b, _) => b.iter().collect(),
        _ => Vec::new(),
    }
}

fn has_loop(s: &Stmt) -> bool {
    matches!(s, Stmt::Loop(..)) || children(s).into_iter().any(has_loop)
}

fn applies(s: &Stmt) -> bool {
    matches!(s, Stmt::Apply(..) | Stmt::ApplyHit(..) | Stmt::ApplySwitch(..)) || children(s).into_iter().any(applies)
}

/// Whether all jumps stay inside.
fn closed(s: &Stmt, labels: &mut Vec<Label>) -> bool {
    match s {
        Stmt::Leave(l, _) => labels.contains(l),
        Stmt::Scope(l, b) => {
            labels.push(*l);
            let ok = b.iter().all(|s| closed(s, labels));
            labels.pop();
            ok
        }
        s => children(s).into_iter().all(|s| closed(s, labels)),
    }
}

fn span_of(s: &Stmt) -> Option<Span> {
    let span = match s {
        Stmt::Assign(_, _, s)
        | Stmt::AssignHeader(_, _, s)
        | Stmt::AssignStack(_, _, s)
        | Stmt::AssignUnion(_, _, s)
        | Stmt::SetValid(_, _, s)
        | Stmt::Shift(_, _, _, s)
        | Stmt::Primitive(_, _, s)
        | Stmt::Loop(_, s) => *s,
        Stmt::Scope(_, b) => return b.iter().find_map(span_of),
        _ => return None,
    };
    (span != Span::default()).then_some(span)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Expr, HeaderId, HeaderRef};

    fn mark(h: usize) -> Stmt {
        Stmt::SetValid(HeaderRef::Instance(HeaderId(h)), true, Span::default())
    }

    fn leave(l: u32) -> Stmt {
        Stmt::Leave(Label(l), Span::default())
    }

    fn passed(body: Vec<Stmt>) -> (Program, Report) {
        let mut p = Program::default();
        p.ingress.body = body;
        let mut report = Report::default();
        run(&mut p, &SourceMap::default(), &mut report);
        (p, report)
    }

    #[test]
    fn runs_of_statements_share_a_table_and_conditions_stay() {
        let condition = Expr::boolean(true);
        let (p, report) =
            passed(vec![mark(0), mark(1), Stmt::If(condition.clone(), vec![mark(2)], vec![leave(1)], Span::default()), mark(3)]);
        assert!(!report.has_errors());
        let apply = |i| Stmt::Apply(TableId(i), Span::default());
        let expected = vec![apply(0), Stmt::If(condition, vec![apply(1)], vec![leave(1)], Span::default()), apply(2)];
        assert_eq!(p.ingress.body, expected);
        let sizes: Vec<usize> = p.actions.iter().map(|a| a.body.len()).collect();
        assert_eq!(sizes, [2, 1, 1]);
        let names: HashSet<&String> = p.tables.iter().map(|t| &t.name).collect();
        assert_eq!(names.len(), 3);
    }

    #[test]
    fn a_loop_moves_whole_unless_it_applies_a_table() {
        let body = |inner: Stmt| Stmt::Scope(Label(1), vec![Stmt::Loop(vec![inner, leave(1)], Span::default())]);
        let (p, report) = passed(vec![mark(0), body(mark(1))]);
        assert!(!report.has_errors());
        assert_eq!((p.ingress.body.len(), p.actions[0].body.len()), (1, 2));
        let (_, report) = passed(vec![body(Stmt::Apply(TableId(0), Span::default()))]);
        assert!(report.has_errors());
    }
}
