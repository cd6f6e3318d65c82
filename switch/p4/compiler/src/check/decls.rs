//! Top-level declarations: names, and the definitions that they give.

use std::collections::HashSet;
use std::rc::Rc;

use fairlane_syntax::ast::*;
use fairlane_syntax::Code;

use super::defs::{Applicable, EnumDef, ExternDef, FieldDef, ParamSig, Signature, StructDef};
use super::scope::{Access, Local};
use super::Checker;
use crate::rule::Rule;
use crate::types::{DeclId, Named, Type, TypeParam};

const EXTERNS: Rule = Rule::ExternTypes;

/// The name that a declaration gives, if it gives one.
pub(crate) fn declared_name(d: &Declaration) -> Option<&Ident> {
    Some(match &d.kind {
        DeclarationKind::Constant(c) => &c.name,
        DeclarationKind::Variable(v) => &v.name,
        DeclarationKind::Instantiation(i) => &i.name,
        DeclarationKind::Header(s) | DeclarationKind::HeaderUnion(s) | DeclarationKind::Struct(s) => &s.name,
        DeclarationKind::Enum(e) => &e.name,
        DeclarationKind::Error(_) | DeclarationKind::MatchKind(_) => return None,
        DeclarationKind::Typedef(a) | DeclarationKind::Newtype(a) => &a.name,
        DeclarationKind::ExternObject(e) => &e.name,
        DeclarationKind::ExternFunction(f) => &f.name,
        DeclarationKind::Function(f) => &f.prototype.name,
        DeclarationKind::Action(a) => &a.name,
        DeclarationKind::Table(t) => &t.name,
        DeclarationKind::ValueSet(v) => &v.name,
        DeclarationKind::ParserType(a) | DeclarationKind::ControlType(a) | DeclarationKind::Package(a) => &a.name,
        DeclarationKind::Parser(p) => &p.name,
        DeclarationKind::Control(c) => &c.name,
    })
}

impl<'a> Checker<'a, '_> {
    /// Gives each top-level declaration its id and its name a place; finds double declarations.
    pub(crate) fn collect(&mut self) {
        for d in &self.out.program.declarations {
            if let DeclarationKind::Typedef(a) | DeclarationKind::Newtype(a) = &d.kind
                && let Some(inline) = &a.inline
            {
                self.collect_one(inline);
            }
            self.collect_one(d);
        }
    }

    fn collect_one(&mut self, d: &'a Declaration) {
        let id = DeclId(self.out.decls.len() as u32);
        self.out.decls.push(d);
        match &d.kind {
            DeclarationKind::Error(names) => {
                for n in names {
                    if self.out.errors.contains(&n.name) {
                        self.error(n.span, Rule::ErrorType, format!("error `{}` is already declared", n.name));
                    } else {
                        self.out.errors.push(n.name.clone());
                    }
                }
            }
            DeclarationKind::MatchKind(names) => {
                for n in names {
                    if self.out.match_kinds.contains(&n.name) {
                        self.error(n.span, Rule::MatchKinds, format!("match kind `{}` is already declared", n.name));
                    } else {
                        self.out.match_kinds.push(n.name.clone());
                    }
                }
            }
            _ => {}
        }
        let Some(name) = declared_name(d) else { return };
        let overloads = |k: &DeclarationKind| matches!(k, DeclarationKind::ExternFunction(_) | DeclarationKind::Function(_));
        let earlier = self.out.globals.entry(name.name.clone()).or_default();
        let clash = earlier.iter().any(|e| !(overloads(&self.out.decls[e.0 as usize].kind) && overloads(&d.kind)));
        earlier.push(id);
        if clash {
            self.error(name.span, Rule::Scopes, format!("`{}` is already declared at the top level", name.name));
        }
    }

    pub(crate) fn decl(&self, id: DeclId) -> &'a Declaration {
        self.out.decls[id.0 as usize]
    }

    /// Declares type parameters in the innermost scope.
    pub(crate) fn declare_type_params(&mut self, names: &[Ident]) -> Vec<TypeParam> {
        names
            .iter()
            .map(|n| {
                let p = TypeParam { name: n.name.clone(), id: self.next_param };
                self.next_param += 1;
                self.declare(n, Local::TypeParam(Type::Param(p.clone())));
                p
            })
            .collect()
    }

    /// Declares the type parameters of the parser or control in work for its body: those of its signature, so that what an instance
    /// binds them to holds in the body, too. Beyond the specification (13.2, 14), as p4c has it.
    pub(crate) fn declare_own_type_params(&mut self, names: &[Ident]) {
        let Some(own) = self.current_decl.and_then(|id| self.applicable(id)) else { return };
        for (name, p) in names.iter().zip(&own.type_params) {
            self.declare(name, Local::TypeParam(Type::Param(p.clone())));
        }
    }

    /// Runs `f` with the top level as only scope, seeing what the declaration `id` may see.
    pub(crate) fn at_top_level<T>(&mut self, id: DeclId, f: impl FnOnce(&mut Self) -> T) -> T {
        let scopes = std::mem::take(&mut self.scopes);
        let until = std::mem::replace(&mut self.checked_until, id.0);
        let result = f(self);
        self.scopes = scopes;
        self.checked_until = until;
        result
    }

    /// Guards against declarations that need themselves.
    fn guarded<T>(&mut self, id: DeclId, f: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.resolving.contains(&id) {
            let d = self.decl(id);
            let span = declared_name(d).map_or(d.span, |n| n.span);
            self.error_code(Code::Recursion, span, Rule::TypeNesting, "the declaration refers to itself");
            return None;
        }
        self.resolving.push(id);
        let result = self.at_top_level(id, |c| {
            c.push_scope();
            let r = f(c);
            c.pop_scope();
            r
        });
        self.resolving.pop();
        Some(result)
    }

    /// The definition of a struct, header or union.
    pub(crate) fn struct_def(&mut self, id: DeclId) -> Option<Rc<StructDef>> {
        if let Some(d) = self.out.structs.get(&id) {
            return Some(d.clone());
        }
        let d = self.decl(id);
        let (DeclarationKind::Header(s) | DeclarationKind::HeaderUnion(s) | DeclarationKind::Struct(s)) = &d.kind else {
            return None;
        };
        let def = self.guarded(id, |c| {
            let type_params = c.declare_type_params(&s.type_parameters);
            let mut seen = HashSet::new();
            let mut fields = Vec::new();
            for f in &s.fields {
                c.check_annotations(&f.annotations);
                let ty = c.resolve_type(&f.ty);
                if !seen.insert(f.name.name.clone()) {
                    let text = format!("field `{}` is already declared in `{}`", f.name.name, s.name.name);
                    c.error(f.name.span, Rule::StructTypes, text);
                    continue;
                }
                if super::typedefs::mentions(&ty, id, 0) {
                    let text = format!("`{}` has a field of its own type", s.name.name);
                    c.error_code(Code::Recursion, f.ty.span, Rule::TypeNesting, text);
                    continue;
                }
                c.check_field_type(d, &ty, f);
                c.check_match_annotation(f);
                if matches!(ty, Type::Varbit(_)) && fields.iter().any(|f: &FieldDef| matches!(f.ty, Type::Varbit(_))) {
                    c.error(f.name.span, Rule::TypeNesting, format!("header `{}` has more than one varbit field", s.name.name));
                }
                fields.push(FieldDef { name: f.name.name.clone(), ty });
            }
            Rc::new(StructDef { type_params, fields })
        })?;
        self.out.structs.insert(id, def.clone());
        Some(def)
    }

    /// `@match(kind)` of a field tells how a value set or table compares it.
    fn check_match_annotation(&mut self, f: &Field) {
        for a in f.annotations.iter().filter(|a| &*a.name.name == "match") {
            let kind = match &a.body {
                AnnotationBody::Unstructured(tokens) => match tokens.as_slice() {
                    [only] => Some(only.text.clone()),
                    _ => None,
                },
                _ => None,
            };
            if !kind.is_some_and(|k| self.out.match_kinds.contains(&k)) {
                let text = "`@match` takes one match kind";
                self.error_help(a.span, Rule::Annotations, text, "write `@match(exact)`, `@match(ternary)` or `@match(lpm)`");
            }
        }
    }

    /// Spec 7.2.9: what may stand inside what.
    fn check_field_type(&mut self, d: &Declaration, ty: &Type, f: &Field) {
        if let Some(what) = self.misplaced_field(&d.kind, ty) {
            let text = format!("field `{}` of type `{ty}` cannot be in {what}", f.name.name);
            self.error(f.ty.span, Rule::TypeNesting, text);
        }
    }

    /// What the declaration is when it cannot hold a field of this type.
    pub(crate) fn misplaced_field(&mut self, kind: &DeclarationKind, inner: &Type) -> Option<&'static str> {
        let (ok, what) = match kind {
            DeclarationKind::Header(_) => (
                match inner {
                    Type::Struct(n) => self.is_flat_struct(n, 0),
                    Type::Bits { .. } | Type::Varbit(_) | Type::Bool | Type::SerEnum(..) | Type::Newtype(..) => true,
                    t => matches!(t, Type::Unknown | Type::Param(_) | Type::Infer(_)),
                },
                "a header",
            ),
            DeclarationKind::HeaderUnion(_) => {
                (matches!(inner, Type::Header(_) | Type::Unknown | Type::Param(_) | Type::Infer(_)), "a header union")
            }
            _ => (
                !matches!(
                    inner,
                    Type::Void
                        | Type::Int
                        | Type::Str
                        | Type::MatchKind
                        | Type::Set(_)
                        | Type::Extern(_)
                        | Type::Parser(_)
                        | Type::Control(_)
                        | Type::Package(_)
                ),
                "a struct",
            ),
        };
        (!ok).then_some(what)
    }

    fn is_flat_struct(&mut self, n: &Named, depth: u32) -> bool {
        let Some(fields) = self.field_types(n) else { return true };
        fields.iter().all(|(_, t)| match t {
            Type::Struct(m) => depth < 32 && self.is_flat_struct(m, depth + 1),
            t => matches!(
                t,
                Type::Bits { .. } | Type::Bool | Type::SerEnum(..) | Type::Newtype(..) | Type::Unknown | Type::Param(_) | Type::Infer(_)
            ),
        })
    }

    /// Names and types of the fields of a struct, header or union type, its arguments in place.
    pub(crate) fn field_types(&mut self, n: &Named) -> Option<Vec<(Symbol, Type)>> {
        let def = self.struct_def(n.decl)?;
        let map: Vec<(u32, Type)> = def.type_params.iter().map(|p| p.id).zip(n.args.iter().cloned()).collect();
        Some(def.fields.iter().map(|f| (f.name.clone(), f.ty.substitute(&map))).collect())
    }

    /// The definition of an enum.
    pub(crate) fn enum_def(&mut self, id: DeclId) -> Option<Rc<EnumDef>> {
        if let Some(d) = self.out.enums.get(&id) {
            return Some(d.clone());
        }
        let DeclarationKind::Enum(e) = &self.decl(id).kind else { return None };
        let def = self.guarded(id, |c| {
            let underlying = e.underlying.as_ref().map(|t| {
                let ty = c.resolve_type(t);
                if !matches!(ty, Type::Bits { .. } | Type::Unknown) {
                    let text = format!("an enum needs a fixed-width integer type, not `{ty}`");
                    c.error(t.span, Rule::EnumTypes, text);
                    return Type::Unknown;
                }
                ty
            });
            let mut members: Vec<(Symbol, Option<num_bigint::BigInt>)> = Vec::new();
            for m in &e.members {
                if members.iter().any(|(n, _)| *n == m.name.name) {
                    let text = format!("member `{}` is already declared in `{}`", m.name.name, e.name.name);
                    c.error(m.name.span, Rule::EnumTypes, text);
                    continue;
                }
                let value = match (&underlying, &m.value) {
                    (None, None) => None,
                    (Some(ty), Some(v)) => {
                        let t = c.check_expr(v);
                        c.expect_type(ty, &t, v.span, Rule::EnumTypes, "the value of the member");
                        // A member may refer to those before it.
                        let value = c.eval_int(v);
                        if value.is_none() && !t.is_unknown() {
                            c.error(v.span, Rule::EnumTypes, "the value of a member must be known at compile time");
                        }
                        if let Some(v) = value.as_ref().filter(|v| super::constants::wrap((*v).clone(), ty) != **v) {
                            let text = format!("the value {v} of member `{}` does not fit `{ty}`", m.name.name);
                            c.error(m.name.span, Rule::EnumTypes, text);
                        }
                        value
                    }
                    (Some(_), None) => {
                        let text = format!("member `{}` needs a value: `{} = ...`", m.name.name, m.name.name);
                        c.error(m.name.span, Rule::EnumTypes, text);
                        None
                    }
                    (None, Some(v)) => {
                        c.error_help(
                            v.span,
                            Rule::EnumTypes,
                            "only an enum with an underlying type has values",
                            format!("write `enum bit<8> {}`", e.name.name),
                        );
                        None
                    }
                };
                members.push((m.name.name.clone(), value));
            }
            Rc::new(EnumDef { underlying, members })
        })?;
        self.out.enums.insert(id, def.clone());
        Some(def)
    }

    /// Resolves parameters, which are also declared in the innermost scope when `declare` is given.
    pub(crate) fn resolve_params(&mut self, params: &'a [Parameter], declare: Option<fn(&ParamSig) -> Local>) -> Vec<ParamSig> {
        let mut out: Vec<ParamSig> = Vec::new();
        for p in params {
            self.check_annotations(&p.annotations);
            let ty = self.resolve_type(&p.ty);
            if p.direction != Direction::None
                && matches!(ty, Type::Extern(_) | Type::Parser(_) | Type::Control(_) | Type::Package(_) | Type::Str)
            {
                let text = format!("a parameter of type `{ty}` has no direction");
                self.error(p.span, Rule::CallingConvention, text);
            }
            if matches!(ty, Type::Int) && p.direction != Direction::None {
                self.error(p.span, Rule::CallingConvention, "a parameter of type `int` has no direction");
            }
            if matches!(ty, Type::Void) {
                self.error(p.ty.span, Rule::Void, "a parameter cannot be `void`");
            }
            if let Type::Parser(n) | Type::Control(n) = &ty {
                let what = match &self.decl(n.decl).kind {
                    DeclarationKind::Parser(_) => Some("parser"),
                    DeclarationKind::Control(_) => Some("control"),
                    _ => None,
                };
                if let Some(what) = what {
                    let text = format!("`{ty}` is a {what}, and not the type of parameter `{}`", p.name.name);
                    let help = format!("declare a {what} type of its signature, `{what} T(...);`, and use that");
                    self.error_help(p.ty.span, Rule::CallingConvention, text, help);
                }
            }
            if let Some(e) = &p.default {
                let t = self.check_expr_expecting(e, &ty);
                self.expect_type(&ty, &t, e.span, Rule::OptionalParameters, "the default value");
                let computed = matches!(e.kind, ExprKind::Call { .. } | ExprKind::Name(_) | ExprKind::Binary(..) | ExprKind::Unary(..));
                let object = matches!(ty, Type::Extern(_) | Type::Parser(_) | Type::Control(_) | Type::Package(_));
                if computed && !object && !t.is_unknown() && self.eval(e).is_none() && !self.is_constructor_param(e) {
                    self.error(e.span, Rule::KnownValues, "a default value must be known at compile time");
                }
                if matches!(p.direction, Direction::Out | Direction::InOut) {
                    self.error(p.span, Rule::OptionalParameters, "an `out` or `inout` parameter cannot have a default value");
                }
            }
            let optional = p.default.is_some() || p.annotations.iter().any(|a| &*a.name.name == "optional");
            let sig = ParamSig { name: p.name.name.clone(), direction: p.direction, ty, optional, span: p.span };
            if let Some(local) = declare {
                self.declare(&p.name, local(&sig));
            } else if out.iter().any(|q| q.name == sig.name) {
                self.error(p.name.span, Rule::Scopes, format!("parameter `{}` is already declared", p.name.name));
            }
            out.push(sig);
        }
        out
    }

    /// `@optional` is for what has no body here: externs, packages and types of blocks.
    pub(crate) fn refuse_optional(&mut self, params: &[Parameter]) {
        for p in params.iter().filter(|p| p.annotations.iter().any(|a| &*a.name.name == "optional")) {
            let text = format!("`{}` cannot be `@optional`", p.name.name);
            self.error_help(p.name.span, Rule::OptionalParameters, text, "give it a default value");
        }
    }

    /// The local meaning of a parameter of `apply`, a function or a method.
    pub(crate) fn param_local(p: &ParamSig) -> Local {
        match (&p.ty, p.direction) {
            (Type::Extern(_) | Type::Parser(_) | Type::Control(_), _) => Local::Instance(p.ty.clone()),
            (_, Direction::In) => Local::Var { ty: p.ty.clone(), access: Access::ReadOnly("an `in` parameter") },
            (_, Direction::None) => Local::Var { ty: p.ty.clone(), access: Access::ReadOnly("a parameter without direction") },
            _ => Local::Var { ty: p.ty.clone(), access: Access::Variable },
        }
    }

    /// The local meaning of a constructor's parameter: a constant of the instance.
    pub(crate) fn constructor_local(p: &ParamSig) -> Local {
        match &p.ty {
            Type::Extern(_) | Type::Parser(_) | Type::Control(_) | Type::Package(_) => Local::Instance(p.ty.clone()),
            _ => Local::Var { ty: p.ty.clone(), access: Access::Constant(None) },
        }
    }

    pub(crate) fn prototype(&mut self, f: &'a FunctionPrototype) -> Rc<Signature> {
        self.push_scope();
        let type_params = self.declare_type_params(&f.type_parameters);
        let params = self.resolve_params(&f.parameters, None);
        let returns = self.resolve_type(&f.return_type);
        self.pop_scope();
        Rc::new(Signature { name: f.name.name.clone(), type_params, params, returns })
    }

    /// The signature of a function, extern function or global action.
    pub(crate) fn signature(&mut self, id: DeclId) -> Option<Rc<Signature>> {
        if let Some(s) = self.signatures.get(&id) {
            return Some(s.clone());
        }
        let d = self.decl(id);
        let sig = self.guarded(id, |c| match &d.kind {
            DeclarationKind::ExternFunction(f) => Some(c.prototype(f)),
            DeclarationKind::Function(f) => Some(c.prototype(&f.prototype)),
            DeclarationKind::Action(a) => {
                let params = c.resolve_params(&a.parameters, None);
                Some(Rc::new(Signature { name: a.name.name.clone(), type_params: Vec::new(), params, returns: Type::Void }))
            }
            _ => None,
        })??;
        self.signatures.insert(id, sig.clone());
        Some(sig)
    }

    /// The definition of an extern object type.
    pub(crate) fn extern_def(&mut self, id: DeclId) -> Option<Rc<ExternDef>> {
        if let Some(d) = self.out.externs.get(&id) {
            return Some(d.clone());
        }
        let DeclarationKind::ExternObject(e) = &self.decl(id).kind else { return None };
        let def = self.guarded(id, |c| {
            let type_params = c.declare_type_params(&e.type_parameters);
            let mut constructors = Vec::new();
            for k in &e.constructors {
                let params = c.resolve_params(&k.parameters, None);
                constructors.push(Rc::new(Signature { name: k.name.name.clone(), type_params: Vec::new(), params, returns: Type::Void }));
            }
            let mut methods = Vec::new();
            for m in &e.methods {
                let sig = c.prototype(&m.prototype);
                if sig.name == e.name.name {
                    let text = format!("the constructor of `{}` returns nothing, not even `void`", e.name.name);
                    c.error_help(m.prototype.name.span, EXTERNS, text, format!("write `{}(...);`", e.name.name));
                }
                if sig.returns == Type::Int {
                    c.error(m.prototype.return_type.span, EXTERNS, "a method cannot return `int`: give the result a width");
                }
                methods.push((sig, m.is_abstract));
            }
            for (i, k) in constructors.iter().enumerate() {
                let names = |s: &Signature| s.params.iter().map(|p| p.name.clone()).collect::<Vec<_>>();
                if constructors[..i].iter().any(|other: &Rc<Signature>| names(other) == names(k)) {
                    let text = format!("`{}` already has a constructor with these parameters", e.name.name);
                    c.error(e.constructors[i].name.span, EXTERNS, text);
                }
            }
            Rc::new(ExternDef { name: e.name.name.clone(), type_params, constructors, methods })
        })?;
        self.out.externs.insert(id, def.clone());
        Some(def)
    }

    /// The signature of a parser, control, parser type, control type or package.
    pub(crate) fn applicable(&mut self, id: DeclId) -> Option<Rc<Applicable>> {
        if let Some(a) = self.applicables.get(&id) {
            return Some(a.clone());
        }
        let d = self.decl(id);
        let def = self.guarded(id, |c| {
            let (type_parameters, parameters, constructor, concrete) = match &d.kind {
                DeclarationKind::ParserType(a) | DeclarationKind::ControlType(a) | DeclarationKind::Package(a) => {
                    (&a.type_parameters, &a.parameters, &[][..], false)
                }
                DeclarationKind::Parser(p) => (&p.type_parameters, &p.parameters, &p.constructor_parameters[..], true),
                DeclarationKind::Control(p) => (&p.type_parameters, &p.parameters, &p.constructor_parameters[..], true),
                _ => return None,
            };
            let type_params = c.declare_type_params(type_parameters);
            let params = c.resolve_params(parameters, None);
            let constructor = c.resolve_params(constructor, None);
            if !matches!(d.kind, DeclarationKind::Package(_)) {
                for p in params.iter().filter(|p| matches!(p.ty, Type::Parser(_) | Type::Control(_) | Type::Package(_))) {
                    let text = format!("parameter `{}` cannot have the type `{}`", p.name, p.ty);
                    c.error_help(p.span, Rule::CallingConvention, text, "make it a parameter of the constructor");
                }
            }
            if concrete {
                c.refuse_optional(parameters);
                c.refuse_optional(match &d.kind {
                    DeclarationKind::Parser(p) => &p.constructor_parameters,
                    DeclarationKind::Control(p) => &p.constructor_parameters,
                    _ => &[],
                });
            }
            Some(Rc::new(Applicable { type_params, params, constructor, concrete }))
        })??;
        self.applicables.insert(id, def.clone());
        Some(def)
    }
}
