//! Parsers: the states of all parsers applied become those of one (spec 13).

use std::collections::HashMap;

use fairlane_syntax::ast::{self, *};
use fairlane_syntax::Code;
use num_bigint::BigInt;
use num_traits::One;

use super::arguments::Bound;
use super::instances::Instance;
use super::{fold, names, Binding, Lower};
use crate::control_plane as cp;
use crate::ir::{self, Case, Expr, ExprKind, HeaderRef, Match, StateId, Target, Transition};
use crate::rule::Rule;
use crate::types::Type;

/// The most cases that the ranges of one `select` case are taken apart to.
const MAX_CASES: usize = 4096;

impl<'a> Lower<'a, '_> {
    /// Puts the states of a parser behind the current one; control goes on where it accepts.
    pub(super) fn inline_parser(
        &mut self,
        p: &'a ParserDeclaration,
        instance: &Instance<'a>,
        args: &[(Symbol, Binding<'a>)],
        bound: &[Bound<'a>],
    ) {
        let name = &*instance.name;
        let scopes = std::mem::take(&mut self.scopes);
        let prefix = std::mem::replace(&mut self.prefix, name.to_owned());
        let scope: HashMap<Symbol, Binding<'a>> =
            args.iter().cloned().chain(bound.iter().map(|b| (b.name.clone(), b.binding.clone()))).collect();
        self.scopes.push(scope);
        let short = name.rsplit('.').next().unwrap_or(name).to_owned();
        let join = self.add_state(&format!("{short}_end"));
        let substitution = std::mem::replace(&mut self.substitution, instance.types.clone());
        self.parser_body(p, Target::State(join), |n| format!("{short}_{n}"));
        self.substitution = substitution;
        self.set_current(join);
        self.scopes = scopes;
        self.prefix = prefix;
    }

    fn add_state(&mut self, base: &str) -> StateId {
        let name = self.state_names.name(base);
        match &mut self.builder.parser {
            Some(b) => b.add(name),
            None => StateId(0),
        }
    }

    fn set_current(&mut self, s: StateId) {
        if let Some(b) = &mut self.builder.parser {
            b.current = s;
        }
    }

    fn finish(&mut self, next: Transition) {
        if let Some(b) = &mut self.builder.parser {
            b.finish(next);
        }
    }

    /// Lowers locals and states; the current state goes to `start`.
    pub(super) fn parser_body(&mut self, p: &'a ParserDeclaration, accept: Target, state_name: impl Fn(&str) -> String) {
        for d in &p.locals {
            match &d.kind {
                DeclarationKind::ValueSet(v) => {
                    let name = self.make_value_set(v, &d.annotations, &self.prefix.clone());
                    self.bind(&v.name.name, Binding::ValueSet(name));
                }
                _ => self.local(d),
            }
        }
        let mut states: HashMap<Symbol, StateId> = HashMap::new();
        for s in &p.states {
            let id = self.add_state(&state_name(&s.name.name));
            states.insert(s.name.name.clone(), id);
        }
        let target = |n: &Symbol| match &**n {
            "accept" => accept,
            "reject" => Target::Reject,
            _ => states.get(n).map_or(Target::Reject, |s| Target::State(*s)),
        };
        self.finish(Transition::Goto(target(&"start".into())));
        for s in &p.states {
            let Some(id) = states.get(&s.name.name) else { continue };
            self.set_current(*id);
            self.scoped(|l| {
                for st in &s.statements {
                    l.statement(st);
                }
                let next = match &s.transition {
                    None => Transition::Goto(Target::Reject),
                    Some(ast::Transition::Direct(t)) => Transition::Goto(target(&t.name)),
                    Some(ast::Transition::Select(sel)) => l.select(sel, &target),
                };
                l.finish(next);
            });
        }
    }

    /// Declares a value set.
    pub(super) fn make_value_set(&mut self, v: &'a ValueSetDeclaration, annotations: &[Annotation], prefix: &str) -> String {
        let name = names::qualified(prefix, &v.name.name, annotations);
        let ty = self.type_of(v.element.id);
        let size = self.constant_int(&v.size).unwrap_or_default();
        let mut fields = Vec::new();
        match self.strip(&ty) {
            Type::Struct(n) => {
                for (f, (_, t)) in self.declared_fields(&n).iter().zip(self.fields(&n)) {
                    let match_kind = match names::string_annotation(&f.annotations, "match") {
                        Some(k) => k.to_string(),
                        None => match_annotation(&f.annotations).unwrap_or_else(|| "exact".into()),
                    };
                    fields.push(cp::KeyField {
                        name: names::name_annotation(&f.annotations).unwrap_or_else(|| f.name.name.clone()).to_string(),
                        annotations: f.annotations.clone(),
                        match_kind,
                        bits: self.bits(&t, true, 0),
                        ty: self.data_type(&t),
                    });
                }
            }
            Type::Tuple(ts) => {
                for t in &ts {
                    fields.push(cp::KeyField {
                        name: String::new(),
                        annotations: Vec::new(),
                        match_kind: "exact".into(),
                        bits: self.bits(t, true, 0),
                        ty: self.data_type(t),
                    });
                }
            }
            t => fields.push(cp::KeyField {
                name: String::new(),
                annotations: Vec::new(),
                match_kind: match_annotation(annotations).unwrap_or_else(|| "exact".into()),
                bits: self.bits(&t, true, 0),
                ty: self.data_type(&ty),
            }),
        }
        self.program.value_sets.push(ir::ValueSet { name: name.clone(), bits: self.bits(&ty, true, 0), size: size.clone() });
        self.control_plane.value_sets.push(cp::ValueSet {
            name: name.clone(),
            annotations: annotations.to_vec(),
            fields,
            size: u64::try_from(size).unwrap_or(0),
        });
        name
    }

    fn value_set(&self, e: &ast::Expr) -> Option<String> {
        let ast::ExprKind::Name(p) = &e.kind else { return None };
        match self.lookup(p) {
            Some(Binding::ValueSet(n)) => Some(n.clone()),
            _ => None,
        }
    }

    fn select(&mut self, sel: &'a Select, target: &impl Fn(&Symbol) -> Target) -> Transition {
        let mut keys: Vec<Expr> = Vec::new();
        let mut types: Vec<Type> = Vec::new();
        let refs: Vec<&'a ast::Expr> = sel.keys.iter().collect();
        let values = self.values_in_order(&refs);
        for (k, v) in sel.keys.iter().zip(values) {
            let mut scalars = Vec::new();
            self.scalars_of(&v, &mut scalars);
            for e in scalars {
                let e = self.select_key(e, k.span);
                keys.push(e);
            }
            types.push(self.type_of(k.id));
        }
        let mut cases = Vec::new();
        // Whether some case takes all that is left; those behind it are for the checker's warning.
        let mut closed = false;
        for c in &sel.cases {
            let to = target(&c.target.name);
            if let KeysetKind::Value(e) = &c.keyset.kind
                && let Some(name) = self.value_set(e)
            {
                cases.push(Case::ValueSet(name, to));
                continue;
            }
            if let KeysetKind::Tuple(parts) = &c.keyset.kind
                && parts.iter().any(|p| matches!(&p.kind, KeysetKind::Value(e) if self.value_set(e).is_some()))
            {
                self.error(c.keyset.span, Rule::Bmv2, "a value set cannot stand beside other keys");
                continue;
            }
            let matches = match &c.keyset.kind {
                KeysetKind::Default | KeysetKind::DontCare => vec![Match::Any; keys.len()],
                _ => self.keyset(&c.keyset, &types),
            };
            if matches.len() != keys.len() {
                continue;
            }
            let mut expanded: Vec<Vec<Match>> = vec![Vec::new()];
            for (m, key) in matches.into_iter().zip(&keys) {
                let choices = match m {
                    Match::Range(a, b) => ranges(a, b, &key.ty),
                    m => vec![m],
                };
                expanded = expanded
                    .into_iter()
                    .flat_map(|prefix| {
                        choices.iter().map(move |c| {
                            let mut p = prefix.clone();
                            p.push(c.clone());
                            p
                        })
                    })
                    .take(MAX_CASES + 1)
                    .collect();
            }
            if expanded.len() > MAX_CASES {
                self.error(c.keyset.span, Rule::Bmv2, format!("the ranges of this case need more than {MAX_CASES} masks"));
                continue;
            }
            let taken = !closed && self.is_taken(&expanded, &cases, &keys);
            closed |= matches!(c.keyset.kind, KeysetKind::Default | KeysetKind::DontCare);
            if taken {
                self.report.warning(Code::ParserTransition, c.span, "the case is never reached: those before it take all that it matches");
                continue;
            }
            cases.extend(expanded.into_iter().map(|m| Case::Matches(m, to)));
        }
        let all = |case: &Case| matches!(case, Case::Matches(matches, _) if matches.iter().all(|m| *m == Match::Any));
        match cases.iter().position(all) {
            // The target takes the last of many defaults.
            Some(first) => cases.truncate(first + 1),
            None => {
                let to = self.no_match(sel.span);
                cases.push(Case::Matches(vec![Match::Any; keys.len()], to));
            }
        }
        if keys.is_empty() {
            return match cases.into_iter().next() {
                Some(Case::Matches(_, t)) => Transition::Goto(t),
                _ => Transition::Goto(Target::Reject),
            };
        }
        Transition::Select(keys, cases)
    }

    /// Whether earlier cases take everything that these matches take.
    fn is_taken(&self, matches: &[Vec<Match>], earlier: &[Case], keys: &[Expr]) -> bool {
        !matches.is_empty()
            && earlier.len() <= MAX_CASES
            && matches.len() <= MAX_CASES / (earlier.len() + 1)
            && matches.iter().all(|later| {
                earlier.iter().any(|case| match case {
                    Case::Matches(before, _) => {
                        before.iter().zip(later).zip(keys).all(|((before, later), key)| takes(before, later, fold::bits_of(&key.ty)))
                    }
                    Case::ValueSet(..) => false,
                })
            })
    }

    /// Where a `select` goes that has no case for its key: to `reject`, with the error that the specification gives (13.6).
    fn no_match(&mut self, span: Span) -> Target {
        let Some(error) = self.checked.errors.iter().position(|name| &**name == "NoMatch") else { return Target::Reject };
        if let Some(known) = self.builder.parser.as_ref().and_then(|b| b.no_match) {
            return Target::State(known);
        }
        let state = self.add_state("no_match");
        if let Some(b) = &mut self.builder.parser {
            b.no_match = Some(state);
            b.states[state.0].body.push(ir::Stmt::Verify(Expr::boolean(false), Expr::constant(error, Type::ErrorCode), span));
        }
        Target::State(state)
    }

    /// A key as the target can read it: a field, or bits of the packet ahead.
    fn select_key(&mut self, e: Expr, span: Span) -> Expr {
        let simple = match &e.kind {
            ExprKind::Place(p) => matches!(p.header, HeaderRef::Instance(_) | HeaderRef::Last(_)) && !matches!(e.ty, Type::Varbit(_)),
            ExprKind::Lookahead(..) => true,
            _ => false,
        };
        if simple {
            return e;
        }
        let ty = if e.ty == Type::Int { Type::bit(32) } else { e.ty.clone() };
        self.temporary_of(&ty, e, "select_key", span)
    }
}

fn match_annotation(annotations: &[Annotation]) -> Option<String> {
    let a = annotations.iter().find(|a| &*a.name.name == "match")?;
    match &a.body {
        AnnotationBody::Unstructured(tokens) => tokens.first().map(|t| t.text.to_string()),
        AnnotationBody::Expressions(es) => es.first().and_then(|e| match &e.kind {
            ast::ExprKind::Name(p) => Some(p.name.name.to_string()),
            _ => None,
        }),
        _ => None,
    }
}

/// Whether a match takes all that another takes.
fn takes(before: &Match, later: &Match, width: u32) -> bool {
    let all: BigInt = (BigInt::one() << width) - 1;
    let value_and_mask = |m: &Match| match m {
        Match::Any => Some((BigInt::from(0), BigInt::from(0))),
        Match::Exact(v) => Some((v.clone(), all.clone())),
        Match::Mask(v, mask) => Some((v.clone(), mask.clone())),
        Match::Range(..) => None,
    };
    match (value_and_mask(before), value_and_mask(later)) {
        (Some((v, mask)), Some((w, finer))) => (&mask & &finer) == mask && (v & &mask) == (w & &mask),
        _ => false,
    }
}

/// The masks of a range, whose ends are the bits of values of that type.
fn ranges(low: BigInt, high: BigInt, ty: &Type) -> Vec<Match> {
    let width = fold::bits_of(ty);
    let half = BigInt::one() << width.saturating_sub(1);
    if matches!(ty, Type::Bits { signed: true, .. }) && (low >= half) != (high >= half) {
        if low < half {
            return Vec::new();
        }
        // Over zero: the bits of negative values are those of larger numbers.
        let mut out = range_masks(low, (BigInt::one() << width) - 1, width);
        out.extend(range_masks(BigInt::from(0), high, width));
        return out;
    }
    range_masks(low, high, width)
}

/// The masks whose union is a range: the largest aligned block at each step.
pub(crate) fn range_masks(low: BigInt, high: BigInt, width: u32) -> Vec<Match> {
    let all: BigInt = (BigInt::one() << width) - 1;
    let mut out = Vec::new();
    let mut at = low;
    while at <= high {
        let mut size = 0u32;
        while size < width {
            let next: BigInt = BigInt::one() << (size + 1);
            let aligned: BigInt = &at & (&next - 1);
            if aligned != BigInt::from(0) || &at + &next - 1 > high {
                break;
            }
            size += 1;
        }
        let block: BigInt = BigInt::one() << size;
        if size == 0 {
            out.push(Match::Exact(at.clone()));
        } else if size == width {
            out.push(Match::Any);
        } else {
            out.push(Match::Mask(at.clone(), &all - (&block - 1)));
        }
        at += block;
        if out.len() > MAX_CASES {
            break;
        }
    }
    out
}
