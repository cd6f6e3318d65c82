//! Parsers (spec 13).

use std::collections::HashSet;

use fairlane_syntax::ast::*;
use fairlane_syntax::Code;

use super::scope::{Context, Local};
use super::Checker;
use crate::rule::Rule;
use crate::types::Type;

impl<'a> Checker<'a, '_> {
    pub(crate) fn check_parser(&mut self, p: &'a ParserDeclaration) {
        self.push_scope();
        self.declare_own_type_params(&p.type_parameters);
        let given = self.resolve_params(&p.constructor_parameters, Some(Self::constructor_local));
        for c in given.iter().filter(|c| matches!(c.ty, Type::Control(_))) {
            self.error(c.span, Rule::Instantiations, format!("`{}` is a control, and a parser has none", c.name));
        }
        self.resolve_params(&p.parameters, Some(Self::param_local));
        self.push_scope();
        let context = std::mem::replace(&mut self.context, Context::Parser);
        for d in &p.locals {
            match &d.kind {
                DeclarationKind::ValueSet(v) => self.check_value_set(v),
                _ => self.check_local(d),
            }
        }
        for s in &p.states {
            if matches!(&*s.name.name, "accept" | "reject") {
                self.error(s.name.span, Rule::ParserStates, format!("state `{}` is built in", s.name.name));
                continue;
            }
            self.declare(&s.name, Local::State);
        }
        if !p.states.iter().any(|s| &*s.name.name == "start") {
            self.error(p.name.span, Rule::ParserStates, format!("parser `{}` has no state `start`", p.name.name));
        }
        for s in &p.states {
            self.check_state(p, s);
        }
        self.context = context;
        self.warn_unreachable(p);
        self.pop_scope();
        self.pop_scope();
    }

    fn warn_unreachable(&mut self, p: &ParserDeclaration) {
        let mut reached: HashSet<Symbol> = HashSet::new();
        let mut work: Vec<Symbol> = vec!["start".into()];
        while let Some(name) = work.pop() {
            if !reached.insert(name.clone()) {
                continue;
            }
            for s in p.states.iter().filter(|s| s.name.name == name) {
                match &s.transition {
                    Some(Transition::Direct(t)) => work.push(t.name.clone()),
                    Some(Transition::Select(sel)) => work.extend(sel.cases.iter().map(|c| c.target.name.clone())),
                    None => {}
                }
            }
        }
        // A state without transition goes to `reject` (spec 13.5).
        let rejects = reached.contains("reject") || p.states.iter().any(|s| s.transition.is_none() && reached.contains(&s.name.name));
        // Where a transition leads to no state, that is told already, and all else is a guess.
        let known = |n: &Symbol| matches!(&**n, "accept" | "reject") || p.states.iter().any(|s| s.name.name == *n);
        if !reached.contains("accept") && reached.iter().all(known) {
            if rejects {
                self.report.warning(Code::Unreachable, p.name.span, format!("parser `{}` never reaches `accept`", p.name.name));
            } else {
                let text = format!("parser `{}` reaches neither `accept` nor `reject`", p.name.name);
                self.error_code(Code::EndlessParser, p.name.span, Rule::ParserLoops, text);
                self.report.help("end it with `transition accept;`");
            }
        }
        for s in &p.states {
            if s.transition.is_none() {
                let text = format!("state `{}` has no transition: it goes to `reject`", s.name.name);
                self.report.warning(Code::ParserTransition, s.name.span, text);
                self.report.help("write `transition reject;`, or `transition accept;`");
            }
            if !reached.contains(&s.name.name) {
                self.report.warning(Code::UnreachableState, s.name.span, format!("state `{}` is never reached", s.name.name));
            }
        }
    }

    pub(crate) fn check_value_set(&mut self, v: &'a ValueSetDeclaration) {
        let rule = Rule::ValueSets;
        let element = self.resolve_type(&v.element);
        if !is_key(&self.strip_newtype(&element)) && !matches!(self.strip_newtype(&element), Type::Struct(_)) {
            self.error(v.element.span, rule, format!("a value set cannot hold values of type `{element}`"));
        }
        self.check_expr(&v.size);
        if self.eval_int(&v.size).is_none() {
            self.error(v.size.span, rule, "the size must be an integer known at compile time");
        }
        self.declare(&v.name, Local::Var { ty: Type::Set(Box::new(element)), access: super::scope::Access::ReadOnly("a value set") });
    }

    fn check_state(&mut self, p: &ParserDeclaration, s: &'a ParserState) {
        self.check_annotations(&s.annotations);
        self.push_scope();
        for st in &s.statements {
            self.check_statement(st);
        }
        match &s.transition {
            None => {}
            Some(Transition::Direct(t)) => self.check_target(p, t),
            Some(Transition::Select(sel)) => {
                let mut keys: Vec<Type> = Vec::new();
                for k in &sel.keys {
                    let t = self.check_expr(k);
                    let t = self.zonk(&t);
                    if !is_key(&self.strip_newtype(&t)) {
                        if t == Type::Int {
                            self.error_help(k.span, Rule::Select, "a key must have a width", "give the literal one: `8w1`");
                        } else {
                            self.error(k.span, Rule::Select, format!("a value of type `{t}` cannot be a key"));
                        }
                        keys.push(Type::Unknown);
                        continue;
                    }
                    keys.push(t);
                }
                let mut closed: bool = false;
                for c in &sel.cases {
                    if closed {
                        self.report.warning(
                            Code::ParserTransition,
                            c.span,
                            "the case is never reached: the one before it takes everything",
                        );
                        closed = false;
                    }
                    if matches!(c.keyset.kind, KeysetKind::Default | KeysetKind::DontCare) {
                        closed = true;
                    }
                    self.check_keyset(&c.keyset, &keys, Rule::Select);
                    self.check_target(p, &c.target);
                }
            }
        }
        self.pop_scope();
    }

    fn check_target(&mut self, p: &ParserDeclaration, t: &Ident) {
        let known = matches!(&*t.name, "accept" | "reject") || p.states.iter().any(|s| s.name.name == t.name);
        if !known {
            self.error_help(
                t.span,
                Rule::Transitions,
                format!("parser `{}` has no state `{}`", p.name.name, t.name),
                super::exprs::meant(&t.name, "its states are", p.states.iter().map(|s| &*s.name.name).chain(["accept", "reject"])),
            );
        }
    }

    /// A keyset held against keys of the given types: of a `select` or a table's entry.
    pub(crate) fn check_keyset(&mut self, k: &Keyset, keys: &[Type], rule: Rule) {
        match &k.kind {
            KeysetKind::Default | KeysetKind::DontCare => {}
            KeysetKind::Tuple(parts) => {
                // A single struct or tuple key is held against its parts.
                if parts.len() != keys.len() {
                    if let [single] = keys
                        && let Some(fields) = self.parts(single)
                        && fields.len() == parts.len()
                    {
                        return self.check_keyset(k, &fields, rule);
                    }
                    let text = format!("the key has {} components, this has {}", keys.len(), parts.len());
                    self.error(k.span, rule, text);
                    return;
                }
                for (part, t) in parts.iter().zip(keys) {
                    self.check_keyset(part, std::slice::from_ref(t), rule);
                }
            }
            KeysetKind::Value(e) => {
                let t = self.check_expr(e);
                let t = self.zonk(&t);
                if let Type::Set(element) = &t {
                    let awaited = match keys {
                        [one] => one.clone(),
                        many => Type::Tuple(many.to_vec()),
                    };
                    let given = self.leaf_types(element, 0);
                    let wanted: Vec<Type> = keys.iter().flat_map(|k| self.leaf_types(k, 0)).collect();
                    let fits = given.len() == wanted.len() && given.iter().zip(&wanted).all(|(a, b)| self.unify(b, a));
                    if !fits {
                        self.error(e.span, Rule::ValueSets, format!("a value set of `{element}` does not fit the key of type `{awaited}`"));
                    }
                    return;
                }
                match keys {
                    // `{a, b}` for the components one by one.
                    keys if matches!(&t, Type::Tuple(ts) if ts.len() == keys.len() && !matches!(keys, [Type::Tuple(_) | Type::Struct(_)])) =>
                    {
                        let Type::Tuple(ts) = &t else { return };
                        for (key, t) in keys.iter().zip(ts) {
                            self.expect_type(key, t, e.span, rule, "the value");
                        }
                    }
                    [one] => {
                        self.expect_type(one, &t, e.span, rule, "the value");
                        if self.eval(e).is_none() && !t.is_unknown() && !self.is_constructor_param(e) {
                            self.error(e.span, rule, "the value must be known at compile time");
                        }
                    }
                    _ => {
                        let text = format!("the key has {} components, this has one", keys.len());
                        self.error(k.span, rule, text);
                    }
                }
            }
            KeysetKind::Mask(a, b) | KeysetKind::Range(a, b) => {
                let at = self.check_expr(a);
                let bt = self.check_expr(b);
                let [one] = keys else {
                    let text = format!("the key has {} components, this has one", keys.len());
                    self.error(k.span, rule, text);
                    return;
                };
                let stripped = self.strip_newtype(one);
                let one = &match one {
                    Type::SerEnum(_, under) => (**under).clone(),
                    t => t.clone(),
                };
                if !matches!(stripped, Type::Bits { .. } | Type::SerEnum(..) | Type::Unknown) {
                    self.error(k.span, Rule::Sets, format!("masks and ranges are not defined on `{one}`"));
                    return;
                }
                for (e, t) in [(a, at), (b, bt)] {
                    self.expect_type(one, &t, e.span, rule, "the value");
                    if self.eval(e).is_none() && !t.is_unknown() && !self.is_constructor_param(e) {
                        self.error(e.span, rule, "the value must be known at compile time");
                    }
                }
                if let (KeysetKind::Range(..), Some(x), Some(y)) = (&k.kind, self.eval_int(a), self.eval_int(b))
                    && x > y
                {
                    self.report.warning(Code::Invalid, k.span, format!("the range {x} .. {y} is empty: its end is below its start"));
                }
            }
        }
    }

    /// The scalar types that a type is made of.
    fn leaf_types(&mut self, t: &Type, depth: u32) -> Vec<Type> {
        match self.parts(t) {
            Some(parts) if depth < 32 => parts.iter().flat_map(|t| self.leaf_types(t, depth + 1)).collect(),
            _ => vec![t.clone()],
        }
    }

    /// The types that a struct or tuple is made of.
    fn parts(&mut self, t: &Type) -> Option<Vec<Type>> {
        match t {
            Type::Struct(n) | Type::Header(n) => Some(self.field_types(n)?.into_iter().map(|(_, t)| t).collect()),
            Type::Tuple(ts) => Some(ts.clone()),
            _ => None,
        }
    }
}

/// Whether a value of this type can be a key of a `select`.
fn is_key(t: &Type) -> bool {
    matches!(t, Type::Bits { .. } | Type::Bool | Type::Enum(_) | Type::SerEnum(..) | Type::ErrorCode | Type::Tuple(_) | Type::Unknown)
}
