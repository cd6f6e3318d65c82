//! Top-level declarations, controls, actions, functions, instantiations (spec 10, 11.3, 14).

use std::rc::Rc;

use fairlane_syntax::ast::*;

use super::defs::Signature;
use super::scope::{Access, Context, Local};
use super::Checker;
use crate::rule::Rule;
use crate::types::{DeclId, Type};

impl<'a> Checker<'a, '_> {
    pub(crate) fn check_declarations(&mut self) {
        for i in 0..self.out.decls.len() {
            let id = DeclId(i as u32);
            self.checked_until = id.0;
            self.current_decl = Some(id);
            self.check_declaration(id);
        }
        self.current_decl = None;
    }

    fn check_declaration(&mut self, id: DeclId) {
        let d = self.decl(id);
        self.check_top_level_annotations(d);
        match &d.kind {
            DeclarationKind::Constant(c) => {
                if &*c.name.name == "NoAction" {
                    self.error(c.name.span, Rule::Actions, "`NoAction` is the action of tables without default action");
                }
                self.push_scope();
                self.check_constant(c);
                self.check_version(c);
                let value = self.scopes.last().and_then(|s| match s.get(&c.name.name).and_then(|v| v.last()) {
                    Some(Local::Var { access: Access::Constant(v), .. }) => v.clone(),
                    _ => None,
                });
                self.pop_scope();
                if let Some(v) = value {
                    self.out.constants.insert(id, v);
                }
            }
            DeclarationKind::Variable(v) => {
                self.resolve_type(&v.ty);
                self.error_help(
                    d.span,
                    Rule::Programs,
                    format!("variable `{}` cannot be declared at the top level", v.name.name),
                    "make it a `const`, or declare it in a parser or control",
                );
            }
            DeclarationKind::Instantiation(i) => {
                self.push_scope();
                let t = self.check_instantiation(i, d.span);
                self.pop_scope();
                self.out.types.insert(i.ty.id, t.clone());
                match t {
                    Type::Package(_) | Type::Extern(_) | Type::Unknown => {}
                    _ => self.error(
                        d.span,
                        Rule::TopLevelInstantiations,
                        format!("a value of type `{t}` cannot be instantiated at the top level"),
                    ),
                }
            }
            DeclarationKind::Header(_) | DeclarationKind::HeaderUnion(_) | DeclarationKind::Struct(_) => {
                self.struct_def(id);
            }
            DeclarationKind::Enum(_) => {
                self.enum_def(id);
            }
            DeclarationKind::Typedef(_) | DeclarationKind::Newtype(_) => {
                self.type_of_decl(id, None, d.span, false);
            }
            DeclarationKind::Error(_) | DeclarationKind::MatchKind(_) => {}
            DeclarationKind::ExternObject(_) => {
                self.extern_def(id);
            }
            DeclarationKind::ExternFunction(_) => {
                self.signature(id);
            }
            DeclarationKind::Function(f) => {
                let type_params = self.signature(id).map(|s| s.type_params.clone()).unwrap_or_default();
                self.check_function(f, &type_params);
            }
            DeclarationKind::Action(a) => {
                self.signature(id);
                self.push_scope();
                self.check_action(a);
                self.pop_scope();
            }
            DeclarationKind::Table(t) => {
                self.error(d.span, Rule::Tables, format!("table `{}` must be declared in a control", t.name.name));
            }
            DeclarationKind::ValueSet(v) => {
                self.push_scope();
                self.check_value_set(v);
                self.pop_scope();
            }
            DeclarationKind::ParserType(_) | DeclarationKind::ControlType(_) | DeclarationKind::Package(_) => {
                self.applicable(id);
            }
            DeclarationKind::Parser(p) => {
                self.applicable(id);
                self.check_parser(p);
            }
            DeclarationKind::Control(c) => {
                self.applicable(id);
                self.check_control(c);
            }
        }
    }

    /// The version that v1model.p4 was told.
    fn check_version(&mut self, c: &ConstantDeclaration) {
        const KNOWN: std::ops::RangeInclusive<u32> = 20180101..=20200408;
        if &*c.name.name != "__v1model_version" {
            return;
        }
        let known = |v: &num_bigint::BigInt| num_traits::ToPrimitive::to_u32(v).is_some_and(|v| KNOWN.contains(&v));
        if let Some(version) = self.eval_int(&c.value).filter(|v| !known(v)) {
            let text = format!("`{version}` is no version of v1model: they go from {} to {}", KNOWN.start(), KNOWN.end());
            let help = format!("write `#define V1MODEL_VERSION {}` before `#include <v1model.p4>`, or leave it out", KNOWN.end());
            self.error_help(c.value.span, Rule::V1model, text, help);
        }
    }

    fn check_function(&mut self, f: &'a FunctionDeclaration, type_params: &[crate::types::TypeParam]) {
        self.refuse_optional(&f.prototype.parameters);
        self.push_scope();
        for (name, p) in f.prototype.type_parameters.iter().zip(type_params) {
            self.declare(name, Local::TypeParam(Type::Param(p.clone())));
        }
        self.resolve_params(&f.prototype.parameters, Some(Self::param_local));
        let returns = self.resolve_type(&f.prototype.return_type);
        if matches!(returns, Type::Int) {
            self.error(f.prototype.return_type.span, Rule::Functions, "a function cannot return `int`: give the result a width");
        }
        let context = std::mem::replace(&mut self.context, Context::Function);
        let previous = std::mem::replace(&mut self.return_type, returns.clone());
        self.check_block(&f.body);
        self.return_type = previous;
        self.context = context;
        if !matches!(returns, Type::Void | Type::Unknown) && !block_returns(&f.body) {
            let text = format!("function `{}` does not return a value on all its paths", f.prototype.name.name);
            self.error(f.prototype.name.span, Rule::Functions, text);
        }
        self.pop_scope();
    }

    /// Checks an action; the caller has opened the scope of its parameters.
    fn check_action(&mut self, a: &'a ActionDeclaration) {
        self.refuse_optional(&a.parameters);
        if &*a.name.name == "NoAction" && !a.parameters.is_empty() {
            self.error(a.name.span, Rule::Actions, "`NoAction` has no parameters: tables without default action run it");
        }
        let sigs = self.resolve_params(
            &a.parameters,
            Some(|p| {
                let access = match p.direction {
                    Direction::In => Access::ReadOnly("an `in` parameter"),
                    Direction::None => Access::ReadOnly("a parameter bound by the control plane"),
                    _ => Access::Variable,
                };
                Local::Var { ty: p.ty.clone(), access }
            }),
        );
        let mut directionless = false;
        for p in &sigs {
            if p.direction == Direction::None {
                directionless = true;
                if matches!(p.ty, Type::Int | Type::Extern(_) | Type::Str) {
                    self.error(p.span, Rule::Actions, format!("an action cannot have a parameter of type `{}`", p.ty));
                }
            } else if directionless {
                self.error(p.span, Rule::Actions, "parameters with a direction stand before those without");
            }
        }
        let context = std::mem::replace(&mut self.context, Context::Action);
        let previous = std::mem::replace(&mut self.return_type, Type::Void);
        self.check_block(&a.body);
        self.return_type = previous;
        self.context = context;
    }

    fn check_control(&mut self, c: &'a ControlDeclaration) {
        self.push_scope();
        self.declare_own_type_params(&c.type_parameters);
        let given = self.resolve_params(&c.constructor_parameters, Some(Self::constructor_local));
        for p in given.iter().filter(|p| matches!(p.ty, Type::Parser(_))) {
            self.error(p.span, Rule::Instantiations, format!("`{}` is a parser, and a control has none", p.name));
        }
        self.resolve_params(&c.parameters, Some(Self::param_local));
        self.push_scope();
        for d in &c.locals {
            match &d.kind {
                DeclarationKind::Action(a) => {
                    self.check_annotations(&d.annotations);
                    self.push_scope();
                    let params = self.resolve_params(&a.parameters, None);
                    self.pop_scope();
                    let sig = Rc::new(Signature { name: a.name.name.clone(), type_params: Vec::new(), params, returns: Type::Void });
                    // The action's own name is not visible in its body: there is no recursion.
                    self.push_scope();
                    self.check_action(a);
                    self.pop_scope();
                    self.declare(&a.name, Local::Action(sig));
                }
                DeclarationKind::Table(t) => {
                    self.check_annotations(&d.annotations);
                    self.check_table(t, d.span);
                }
                _ => self.check_local(d),
            }
        }
        let context = std::mem::replace(&mut self.context, Context::Apply);
        let previous = std::mem::replace(&mut self.return_type, Type::Void);
        self.check_block(&c.apply);
        self.return_type = previous;
        self.context = context;
        self.pop_scope();
        self.pop_scope();
    }

    /// An implementation has the signature of its abstract method.
    fn check_implementation(&mut self, t: &Type, f: &'a FunctionDeclaration) {
        const ABSTRACT: Rule = Rule::AbstractMethods;
        let Type::Extern(n) = t else { return };
        let Some(def) = self.extern_def(n.decl) else { return };
        let name = &f.prototype.name;
        let awaited: Vec<Rc<Signature>> = def.methods.iter().filter(|(s, a)| *a && s.name == name.name).map(|(s, _)| s.clone()).collect();
        let given = self.prototype(&f.prototype);
        let near = awaited.iter().find(|s| s.params.len() == given.params.len());
        let Some(method) = near else {
            let text = format!("extern `{}` has no abstract method `{}` with {} parameters", n.name, name.name, given.params.len());
            self.error(name.span, ABSTRACT, text);
            return;
        };
        let map: Vec<(u32, Type)> = def.type_params.iter().map(|p| p.id).zip(n.args.iter().cloned()).collect();
        let returns = method.returns.substitute(&map);
        if self.zonk(&returns) != given.returns && !given.returns.is_unknown() {
            let text = format!("`{}` returns `{}`, the abstract method `{}`", name.name, given.returns, self.zonk(&returns));
            self.error(f.prototype.name.span, ABSTRACT, text);
        }
        for (p, q) in method.params.iter().zip(&given.params) {
            let ty = p.ty.substitute(&map);
            let ty = self.zonk(&ty);
            if p.direction != q.direction || ty != q.ty && !q.ty.is_unknown() && !ty.is_unknown() {
                let text = format!("parameter `{}` differs from the abstract method's, which has type `{ty}`", q.name);
                self.error(q.span, ABSTRACT, text);
            }
        }
    }

    /// The type of an instance, its type arguments inferred.
    pub(crate) fn check_instantiation(&mut self, i: &'a Instantiation, span: Span) -> Type {
        let t = self.resolve_type_inferring(&i.ty);
        let t = self.constructor(i.ty.id, &t, &i.arguments, span);
        if let (Type::Extern(n), TypeExprKind::Name(_)) = (&t, &i.ty.kind) {
            for arg in &n.args {
                match arg {
                    Type::Int => {
                        let at = i.arguments.first().map_or(i.name.span, |a| a.span);
                        self.error_help(at, INFERENCE, "the width of the literal cannot be inferred", "give it one: `8w1`");
                    }
                    Type::Infer(_) => {
                        let text = format!("a type argument of `{}` cannot be inferred", n.name);
                        self.error_help(i.name.span, INFERENCE, text, format!("write `{}<...>`", n.name));
                        break;
                    }
                    _ => {}
                }
            }
        }
        if let Type::Extern(n) = &t {
            let abstract_methods: Vec<Symbol> = self
                .extern_def(n.decl)
                .map(|d| d.methods.iter().filter(|(_, a)| *a).map(|(s, _)| s.name.clone()).collect())
                .unwrap_or_default();
            let given: Vec<&Symbol> = i
                .initializer
                .iter()
                .flatten()
                .filter_map(|d| match &d.kind {
                    DeclarationKind::Function(f) => Some(&f.prototype.name.name),
                    _ => None,
                })
                .collect();
            for m in &abstract_methods {
                if !given.contains(&m) {
                    self.error(span, Rule::AbstractMethods, format!("`{}` must implement the abstract method `{m}`", i.name.name));
                }
            }
            if i.initializer.is_some() && abstract_methods.is_empty() {
                self.error(span, Rule::AbstractMethods, format!("extern `{}` has no abstract methods to implement", n.name));
            }
        } else if i.initializer.is_some() {
            self.error(span, Rule::AbstractMethods, "only extern objects have abstract methods to implement");
        }
        for d in i.initializer.iter().flatten() {
            match &d.kind {
                DeclarationKind::Function(f) => {
                    self.check_implementation(&t, f);
                    self.check_function(f, &[]);
                }
                _ => self.check_local(d),
            }
        }
        t
    }
}

const INFERENCE: Rule = Rule::Inference;

/// Whether each path through the block ends in `return` or `exit`.
fn block_returns(b: &Block) -> bool {
    b.statements.iter().any(statement_returns)
}

fn statement_returns(s: &Statement) -> bool {
    match &s.kind {
        StatementKind::Return(_) | StatementKind::Exit => true,
        StatementKind::Block(b) => block_returns(b),
        StatementKind::If { then_branch, else_branch: Some(e), .. } => statement_returns(then_branch) && statement_returns(e),
        StatementKind::Switch { cases, .. } => {
            cases.iter().any(|c| matches!(c.label.kind, ExprKind::Default | ExprKind::DontCare))
                && cases.iter().all(|c| c.body.as_ref().is_none_or(block_returns))
        }
        _ => false,
    }
}
