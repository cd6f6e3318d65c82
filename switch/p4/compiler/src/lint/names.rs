//! `unused`, `shadow`, `shadowed-parameter`: a walk that resolves names as spec 6.9 does, and notes which declarations are never named.
//!
//! As in p4c, parameters of parsers, controls and functions may stay unused, those of actions may not; a use by something that is
//! unused itself is a use.

use std::collections::HashMap;

use fairlane_syntax::ast::*;
use fairlane_syntax::visit::{self, Visit};
use fairlane_syntax::{Code, SourceMap};

use crate::report::Report;
use crate::rule::Rule;

/// What a declaration is, in so far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Parser,
    Control,
    Table,
    /// Functions, methods and extern functions, which may have one name.
    Function,
    /// What may hide what is outside of it, as constructors do.
    Object,
    Parameter,
    /// Anything else that is worth a warning when it is not used.
    Other,
}

#[derive(Debug)]
struct Entry {
    name: Ident,
    kind: Kind,
    /// Whether nobody cares when it is unused.
    exempt: bool,
    used: bool,
}

/// The walk.
struct Names<'r> {
    sources: &'r SourceMap,
    /// Errors.
    report: &'r mut Report,
    /// Warnings, which nobody needs beside errors.
    doubts: &'r mut Report,
    entries: Vec<Entry>,
    scopes: Vec<HashMap<Symbol, Vec<usize>>>,
}

/// Looks for what is declared and not used, and for what hides something else.
pub(crate) fn check(program: &Program, sources: &SourceMap, report: &mut Report, doubts: &mut Report) {
    let mut names = Names { sources, report, doubts, entries: Vec::new(), scopes: vec![HashMap::new()] };
    visit::walk_program(&mut names, program);
    names.tell_unused();
}

impl Names<'_> {
    /// Whether a place is in an include file that comes with the compiler.
    fn built_in(&self, at: Span) -> bool {
        self.sources.file(at.file).is_some_and(|f| f.name.starts_with('<'))
    }

    fn tell_unused(&mut self) {
        for e in std::mem::take(&mut self.entries) {
            if e.used || e.exempt || e.name.name.starts_with("__") || self.built_in(e.name.span) {
                continue;
            }
            let what = match e.kind {
                Kind::Parser => "parser ",
                Kind::Control => "control ",
                Kind::Table => "table ",
                _ => "",
            };
            self.doubts.warning(Code::Unused, e.name.span, format!("{what}`{}` is unused", e.name.name));
        }
    }

    fn scoped(&mut self, f: impl FnOnce(&mut Self)) {
        self.scopes.push(HashMap::new());
        f(self);
        self.scopes.pop();
    }

    fn find(&self, name: &Symbol, absolute: bool) -> Option<&[usize]> {
        let scopes = if absolute { &self.scopes[..1] } else { &self.scopes[..] };
        scopes.iter().rev().find_map(|s| s.get(name)).map(Vec::as_slice)
    }

    fn declare(&mut self, name: &Ident, kind: Kind, exempt: bool) {
        self.tell_hidden(name, kind);
        self.entries.push(Entry { name: name.clone(), kind, exempt, used: false });
        let id = self.entries.len() - 1;
        if let Some(scope) = self.scopes.last_mut() {
            scope.entry(name.name.clone()).or_default().push(id);
        }
    }

    fn tell_hidden(&mut self, name: &Ident, kind: Kind) {
        let Some(earlier) = self.scopes[..self.scopes.len() - 1].iter().rev().find_map(|s| s.get(&name.name)).and_then(|v| v.last()) else {
            return;
        };
        let hidden = &self.entries[*earlier];
        let block = matches!(kind, Kind::Function | Kind::Control | Kind::Parser);
        if self.built_in(name.span) || matches!(hidden.kind, Kind::Function | Kind::Object) && block {
            return;
        }
        let (hidden_kind, hidden_at) = (hidden.kind, hidden.name.span);
        if hidden_kind == Kind::Parameter && kind != Kind::Parameter {
            let text = format!("`{}` hides a parameter of the same name", name.name);
            self.report.error_code(Code::ShadowedParameter, name.span, Rule::NameResolution, text);
            self.report.help("give it another name");
            self.report.note(hidden_at, "the parameter");
        } else {
            self.doubts.warning(Code::Shadow, name.span, format!("`{0}` hides another `{0}`", name.name));
            self.doubts.note(hidden_at, "the one hidden");
        }
    }

    fn used(&mut self, path: &Path) {
        let Some(ids) = self.find(&path.name.name, path.absolute).map(<[usize]>::to_vec) else { return };
        for id in ids {
            self.entries[id].used = true;
        }
    }

    fn type_parameters(&mut self, names: &[Ident]) {
        names.iter().for_each(|n| self.declare(n, Kind::Other, false));
    }

    /// Parameters, of which only an action's are awaited to be used.
    fn parameters(&mut self, params: &[Parameter], exempt: bool) {
        for p in params {
            visit::walk_parameter(self, p);
            self.declare(&p.name, Kind::Parameter, exempt);
        }
    }

    /// Parameters of what has no body: their types and default values name things, their names nothing.
    fn prototype(&mut self, f: &FunctionPrototype) {
        self.scoped(|v| {
            v.type_parameters(&f.type_parameters);
            visit::walk_prototype(v, f);
        });
    }

    fn applicable(&mut self, a: &ApplicableType) {
        self.scoped(|v| {
            v.type_parameters(&a.type_parameters);
            a.parameters.iter().for_each(|p| visit::walk_parameter(v, p));
        });
    }

    /// Nothing awaits type parameters of a control or parser with a body: they are an error of their own.
    fn exempt_all(&mut self, names: &[Ident]) {
        names.iter().for_each(|n| self.declare(n, Kind::Other, true));
    }

    fn top_level(&self) -> bool {
        self.scopes.len() == 1
    }
}

impl<'a> Visit<'a> for Names<'_> {
    fn declaration(&mut self, d: &'a Declaration) {
        let top = self.top_level();
        match &d.kind {
            DeclarationKind::Constant(c) => {
                visit::walk_declaration(self, d);
                let asserts = matches!(&c.value.kind, ExprKind::Call { callee, .. } if matches!(&callee.kind, ExprKind::Name(p) if &*p.name.name == "static_assert"));
                self.declare(&c.name, Kind::Other, asserts);
            }
            DeclarationKind::Variable(v) => {
                visit::walk_declaration(self, d);
                self.declare(&v.name, Kind::Other, false);
            }
            DeclarationKind::Instantiation(i) => {
                self.type_expr(&i.ty);
                i.arguments.iter().for_each(|a| self.expr(&a.value));
                self.scoped(|v| i.initializer.iter().flatten().for_each(|d| v.declaration(d)));
                // The functions of an instance are called by the extern.
                self.declare(&i.name, Kind::Other, top && &*i.name.name == "main");
            }
            DeclarationKind::Header(s) | DeclarationKind::HeaderUnion(s) | DeclarationKind::Struct(s) => {
                self.scoped(|v| {
                    v.type_parameters(&s.type_parameters);
                    visit::walk_declaration(v, d);
                });
                self.declare(&s.name, Kind::Other, true);
            }
            DeclarationKind::Enum(e) => {
                visit::walk_declaration(self, d);
                self.declare(&e.name, Kind::Other, true);
            }
            DeclarationKind::Error(_) | DeclarationKind::MatchKind(_) => {}
            DeclarationKind::Typedef(a) | DeclarationKind::Newtype(a) => {
                visit::walk_declaration(self, d);
                self.declare(&a.name, Kind::Other, false);
            }
            DeclarationKind::ExternObject(e) => {
                self.declare(&e.name, Kind::Object, true);
                self.scoped(|v| {
                    v.type_parameters(&e.type_parameters);
                    for k in &e.constructors {
                        k.parameters.iter().for_each(|p| visit::walk_parameter(v, p));
                    }
                    e.methods.iter().for_each(|m| v.prototype(&m.prototype));
                });
            }
            DeclarationKind::ExternFunction(f) => {
                self.prototype(f);
                self.declare(&f.name, Kind::Function, true);
            }
            DeclarationKind::Function(f) => {
                // An implementation of an abstract method is used by its extern.
                let exempt = !top || &*f.prototype.name.name == "verify";
                self.declare(&f.prototype.name, Kind::Function, exempt);
                self.scoped(|v| {
                    v.type_parameters(&f.prototype.type_parameters);
                    v.type_expr(&f.prototype.return_type);
                    v.parameters(&f.prototype.parameters, true);
                    v.scoped(|v| visit::walk_block(v, &f.body));
                });
            }
            DeclarationKind::Action(a) => {
                self.declare(&a.name, Kind::Other, false);
                self.scoped(|v| {
                    v.parameters(&a.parameters, false);
                    v.scoped(|v| visit::walk_block(v, &a.body));
                });
            }
            DeclarationKind::Table(t) => {
                visit::walk_declaration(self, d);
                for p in &t.properties {
                    match &p.kind {
                        TablePropertyKind::Actions(list) => list.iter().for_each(|a| self.used(&a.name)),
                        TablePropertyKind::Entries(list) => list.iter().for_each(|e| self.used(&e.action.name)),
                        _ => {}
                    }
                }
                self.declare(&t.name, Kind::Table, false);
            }
            DeclarationKind::ValueSet(s) => {
                visit::walk_declaration(self, d);
                self.declare(&s.name, Kind::Other, false);
            }
            DeclarationKind::ParserType(a) | DeclarationKind::ControlType(a) | DeclarationKind::Package(a) => {
                self.declare(&a.name, Kind::Other, false);
                self.applicable(a);
            }
            DeclarationKind::Parser(p) => {
                self.declare(&p.name, Kind::Parser, false);
                self.scoped(|v| {
                    v.exempt_all(&p.type_parameters);
                    v.parameters(&p.parameters, true);
                    v.parameters(&p.constructor_parameters, true);
                    v.scoped(|v| {
                        p.locals.iter().for_each(|d| v.declaration(d));
                        p.states.iter().for_each(|s| v.scoped(|v| visit::walk_state(v, s)));
                    });
                });
            }
            DeclarationKind::Control(c) => {
                self.declare(&c.name, Kind::Control, false);
                self.scoped(|v| {
                    v.exempt_all(&c.type_parameters);
                    v.parameters(&c.parameters, true);
                    v.parameters(&c.constructor_parameters, true);
                    v.scoped(|v| {
                        c.locals.iter().for_each(|d| v.declaration(d));
                        v.scoped(|v| visit::walk_block(v, &c.apply));
                    });
                });
            }
        }
    }

    fn block(&mut self, b: &'a Block) {
        self.scoped(|v| visit::walk_block(v, b));
    }

    fn statement(&mut self, s: &'a Statement) {
        match &s.kind {
            StatementKind::For { .. } => self.scoped(|v| visit::walk_statement(v, s)),
            StatementKind::ForIn { variable, collection, body } => self.scoped(|v| {
                match collection {
                    ForCollection::Expression(e) => v.expr(e),
                    ForCollection::Range(a, b) => {
                        v.expr(a);
                        v.expr(b);
                    }
                }
                match variable {
                    ForVariable::Declared(t, name) => {
                        v.type_expr(t);
                        v.declare(name, Kind::Other, false);
                    }
                    ForVariable::Existing(e) => v.expr(e),
                }
                v.statement(body);
            }),
            _ => visit::walk_statement(self, s),
        }
    }

    fn expr(&mut self, e: &'a Expr) {
        if let ExprKind::Name(p) = &e.kind {
            self.used(p);
        }
        visit::walk_expr(self, e);
    }

    fn type_expr(&mut self, t: &'a TypeExpr) {
        if let TypeExprKind::Name(p) | TypeExprKind::Specialized(p, _) = &t.kind {
            self.used(p);
        }
        visit::walk_type_expr(self, t);
    }
}
