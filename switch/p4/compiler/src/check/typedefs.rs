//! Written types to types (spec 7).

use fairlane_syntax::ast::*;
use fairlane_syntax::Code;
use num_traits::ToPrimitive;

use super::scope::Local;
use super::Checker;
use crate::rule::Rule;
use crate::types::{DeclId, Named, Type};

/// The widest bit string accepted. Wider ones are most likely a slip, and cost memory.
const MAX_WIDTH: u32 = 1 << 16;

impl<'a> Checker<'a, '_> {
    /// The type that is written, [`Type::Unknown`] after an error. Remembered by node.
    pub(crate) fn resolve_type(&mut self, t: &TypeExpr) -> Type {
        self.resolve_written(t, false)
    }

    /// As [`Self::resolve_type`], but a generic type without arguments gets ones to be inferred.
    pub(crate) fn resolve_type_inferring(&mut self, t: &TypeExpr) -> Type {
        self.resolve_written(t, true)
    }

    fn resolve_written(&mut self, t: &TypeExpr, infer: bool) -> Type {
        if self.depth > super::MAX_DEPTH {
            return Type::Unknown;
        }
        self.depth += 1;
        let ty = self.resolve_inner(t, infer);
        self.depth -= 1;
        self.out.types.insert(t.id, ty.clone());
        ty
    }

    fn resolve_inner(&mut self, t: &TypeExpr, infer: bool) -> Type {
        match &t.kind {
            TypeExprKind::Bool => Type::Bool,
            TypeExprKind::Error => {
                if self.out.errors.is_empty() {
                    let text = "`error` is not declared";
                    self.error_help(t.span, Rule::NameResolution, text, "include core.p4, or declare errors: `error { ... }`");
                    return Type::Unknown;
                }
                Type::ErrorCode
            }
            TypeExprKind::MatchKind => Type::MatchKind,
            TypeExprKind::String => Type::Str,
            TypeExprKind::Int => Type::Int,
            TypeExprKind::Void => Type::Void,
            TypeExprKind::DontCare => self.fresh(),
            TypeExprKind::Bit(None) => Type::bit(1),
            TypeExprKind::Bit(Some(w)) => self.width(w, 0).map_or(Type::Unknown, Type::bit),
            TypeExprKind::SignedBit(w) => self.width(w, 1).map_or(Type::Unknown, |width| Type::Bits { width, signed: true }),
            TypeExprKind::Varbit(w) => self.width(w, 0).map_or(Type::Unknown, Type::Varbit),
            TypeExprKind::Name(p) => self.named_type(p, None, infer),
            TypeExprKind::Specialized(p, args) => {
                let args: Vec<Type> = args.iter().map(|a| self.type_argument(a, infer)).collect();
                let ty = self.named_type(p, Some((args, t.span)), infer);
                self.check_specialized(&ty, t.span, 0);
                ty
            }
            TypeExprKind::Stack(e, n) => {
                let element = self.resolve_written(e, false);
                let size = self.width(n, 1);
                match (&element, size) {
                    (Type::Unknown, _) | (_, None) => Type::Unknown,
                    (Type::Header(_) | Type::Union(_) | Type::Param(_), Some(n)) => Type::Stack(Box::new(element), n),
                    (_, Some(_)) => {
                        let text = format!("a stack holds headers or header unions, not `{element}`");
                        self.error(e.span, Rule::HeaderStackTypes, text);
                        Type::Unknown
                    }
                }
            }
            TypeExprKind::Tuple(ts) => Type::Tuple(ts.iter().map(|a| self.tuple_element(a, infer)).collect()),
            TypeExprKind::List(e) => Type::List(Box::new(self.resolve_written(e, infer))),
        }
    }

    /// A type argument as written: parsers, controls and packages are no types of values.
    fn type_argument(&mut self, t: &TypeExpr, infer: bool) -> Type {
        let ty = self.resolve_written(t, infer);
        let what = match ty {
            Type::Parser(_) => "parser",
            Type::Control(_) => "control",
            Type::Package(_) => "package",
            _ => return ty,
        };
        let text = format!("the {what} `{ty}` cannot be a type argument");
        self.error_code(Code::TypeNesting, t.span, Rule::Specialization, text);
        Type::Unknown
    }

    /// A generic header, union or struct holds with its arguments in place what it may hold (spec 7.2.9).
    fn check_specialized(&mut self, t: &Type, span: Span, depth: u32) {
        let (Type::Struct(n) | Type::Header(n) | Type::Union(n)) = t else { return };
        // One in definition is looked at by its definition.
        if depth > 32 || n.args.is_empty() || self.resolving.contains(&n.decl) {
            return;
        }
        let Some(def) = self.struct_def(n.decl) else { return };
        let d = self.decl(n.decl);
        let (DeclarationKind::Header(s) | DeclarationKind::HeaderUnion(s) | DeclarationKind::Struct(s)) = &d.kind else { return };
        let map: Vec<(u32, Type)> = def.type_params.iter().map(|p| p.id).zip(n.args.iter().cloned()).collect();
        for f in &def.fields {
            let ty = f.ty.substitute(&map);
            if ty == f.ty {
                continue;
            }
            if let Some(what) = self.misplaced_field(&d.kind, &ty) {
                let text = format!("field `{}` of `{t}` has the type `{ty}`, which cannot be in {what}", f.name);
                self.error(span, Rule::TypeNesting, text);
                if let Some(written) = s.fields.iter().find(|w| w.name.name == f.name) {
                    self.report.note(written.name.span, "the field");
                }
                return;
            }
            self.check_specialized(&ty, span, depth + 1);
        }
    }

    fn tuple_element(&mut self, t: &TypeExpr, infer: bool) -> Type {
        let ty = self.resolve_written(t, infer);
        let bad = matches!(ty, Type::Void | Type::Extern(_) | Type::Parser(_) | Type::Control(_) | Type::Package(_));
        if bad || matches!(t.kind, TypeExprKind::DontCare) {
            let what = if bad { format!("of type `{ty}`") } else { "of a type left open".to_owned() };
            self.error(t.span, Rule::TypeNesting, format!("a tuple cannot hold a value {what}"));
            return Type::Unknown;
        }
        ty
    }

    /// A width or size: known at compile time, at least `least`.
    fn width(&mut self, e: &Expr, least: u32) -> Option<u32> {
        let t = self.check_expr(e);
        if t.is_unknown() {
            return None;
        }
        let Some(value) = self.eval_int(e) else {
            self.error(e.span, Rule::IntegerTypes, "a width or size must be an integer known at compile time");
            return None;
        };
        match value.to_u32() {
            Some(w) if w >= least && w <= MAX_WIDTH => Some(w),
            _ => {
                let text = format!("{value} is no width or size: it must be from {least} to {MAX_WIDTH}");
                self.error(e.span, Rule::IntegerTypes, text);
                None
            }
        }
    }

    /// The top-level declaration of a type's name, if it names a type.
    pub(crate) fn type_decl(&self, name: &Symbol) -> Option<DeclId> {
        self.lookup_global(name).into_iter().find(|id| is_type(&self.decl(*id).kind))
    }

    fn named_type(&mut self, p: &Path, args: Option<(Vec<Type>, Span)>, infer: bool) -> Type {
        if let Some(local) = self.lookup_local(p) {
            return match local.clone() {
                Local::TypeParam(t) => t,
                _ => {
                    self.error(p.span, Rule::NameResolution, format!("`{}` is not a type", p.name.name));
                    Type::Unknown
                }
            };
        }
        let Some(id) = self.type_decl(&p.name.name) else {
            if self.lookup_global(&p.name.name).is_empty() {
                self.undeclared(&p.name, "type");
            } else {
                self.error(p.span, Rule::NameResolution, format!("`{}` is not a type", p.name.name));
            }
            return Type::Unknown;
        };
        // Structs tell of their fields themselves.
        let own = self.resolving.last() == Some(&id);
        if own && !matches!(self.decl(id).kind, DeclarationKind::Header(_) | DeclarationKind::HeaderUnion(_) | DeclarationKind::Struct(_)) {
            let text = format!("`{}` needs itself for its own declaration", p.name.name);
            self.error_code(Code::Recursion, p.span, Rule::TypeNesting, text);
            return Type::Unknown;
        }
        self.type_of_decl(id, args, p.span, infer)
    }

    /// The type that a declaration defines, with arguments for its type parameters.
    pub(crate) fn type_of_decl(&mut self, id: DeclId, args: Option<(Vec<Type>, Span)>, span: Span, infer: bool) -> Type {
        let d = self.decl(id);
        let (name, count) = match &d.kind {
            DeclarationKind::Header(s) | DeclarationKind::HeaderUnion(s) | DeclarationKind::Struct(s) => (&s.name, s.type_parameters.len()),
            DeclarationKind::Enum(e) => (&e.name, 0),
            DeclarationKind::Typedef(a) | DeclarationKind::Newtype(a) => (&a.name, 0),
            DeclarationKind::ExternObject(e) => (&e.name, e.type_parameters.len()),
            DeclarationKind::ParserType(a) | DeclarationKind::ControlType(a) | DeclarationKind::Package(a) => {
                (&a.name, a.type_parameters.len())
            }
            DeclarationKind::Parser(p) => (&p.name, p.type_parameters.len()),
            DeclarationKind::Control(c) => (&c.name, c.type_parameters.len()),
            _ => return Type::Unknown,
        };
        let args = match args {
            Some((args, args_span)) => {
                if args.len() != count {
                    let text = format!("`{}` takes {count} type arguments, not {}", name.name, args.len());
                    self.error(args_span, Rule::Specialization, text);
                    return Type::Unknown;
                }
                args
            }
            None if count == 0 => Vec::new(),
            None if infer => (0..count).map(|_| self.fresh()).collect(),
            None => {
                self.error_help(
                    span,
                    Rule::Specialization,
                    format!("`{}` needs {count} type arguments", name.name),
                    format!("write `{}<...>`", name.name),
                );
                return Type::Unknown;
            }
        };
        if args.iter().any(|a| mentions(a, id, 0)) {
            let text = format!("`{}` is its own type argument", name.name);
            self.error_code(Code::Specialization, span, Rule::Specialization, text);
            return Type::Unknown;
        }
        let named = Named { decl: id, name: name.name.clone(), args };
        match &d.kind {
            DeclarationKind::Header(_) => Type::Header(named),
            DeclarationKind::HeaderUnion(_) => Type::Union(named),
            DeclarationKind::Struct(_) => Type::Struct(named),
            DeclarationKind::Enum(_) => match self.enum_def(id) {
                Some(def) => match &def.underlying {
                    Some(t) => Type::SerEnum(named, Box::new(t.clone())),
                    None => Type::Enum(named),
                },
                None => Type::Unknown,
            },
            DeclarationKind::Typedef(a) => self.alias(id, a),
            DeclarationKind::Newtype(a) => {
                let under = self.alias(id, a);
                if !matches!(under, Type::Bits { .. } | Type::Bool | Type::Newtype(..) | Type::Unknown) {
                    let text = format!("`type` cannot be made of `{under}`");
                    self.error_help(
                        a.name.span,
                        Rule::NewTypes,
                        text,
                        "it is made of `bit<n>`, `int<n>` or `bool`; `typedef` names any type",
                    );
                    return Type::Unknown;
                }
                Type::Newtype(named, Box::new(under))
            }
            DeclarationKind::ExternObject(_) => Type::Extern(named),
            DeclarationKind::ParserType(_) | DeclarationKind::Parser(_) => Type::Parser(named),
            DeclarationKind::ControlType(_) | DeclarationKind::Control(_) => Type::Control(named),
            _ => Type::Package(named),
        }
    }

    fn alias(&mut self, id: DeclId, a: &TypeAlias) -> Type {
        if let Some(t) = self.out.types.get(&a.ty.id) {
            return t.clone();
        }
        if self.resolving.contains(&id) {
            self.error(a.name.span, Rule::Typedefs, "the type refers to itself");
            return Type::Unknown;
        }
        self.resolving.push(id);
        let t = self.at_top_level(id, |c| c.resolve_type(&a.ty));
        self.resolving.pop();
        t
    }

    /// The type under new types.
    pub(crate) fn strip_newtype(&self, t: &Type) -> Type {
        let mut t = self.zonk(t);
        while let Type::Newtype(_, under) = t {
            t = *under;
        }
        t
    }
}

/// Whether a type is made of the one that `id` declares.
pub(crate) fn mentions(t: &Type, id: DeclId, depth: u32) -> bool {
    if depth > 32 {
        return false;
    }
    match t {
        Type::Struct(n) | Type::Header(n) | Type::Union(n) | Type::Extern(n) => {
            n.decl == id || n.args.iter().any(|a| mentions(a, id, depth + 1))
        }
        Type::Stack(t, _) | Type::List(t) | Type::Set(t) => mentions(t, id, depth + 1),
        Type::Tuple(ts) => ts.iter().any(|t| mentions(t, id, depth + 1)),
        _ => false,
    }
}

/// Whether a declaration's name is a type's.
pub(crate) fn is_type(k: &DeclarationKind) -> bool {
    matches!(
        k,
        DeclarationKind::Header(_)
            | DeclarationKind::HeaderUnion(_)
            | DeclarationKind::Struct(_)
            | DeclarationKind::Enum(_)
            | DeclarationKind::Typedef(_)
            | DeclarationKind::Newtype(_)
            | DeclarationKind::ExternObject(_)
            | DeclarationKind::ParserType(_)
            | DeclarationKind::Parser(_)
            | DeclarationKind::ControlType(_)
            | DeclarationKind::Control(_)
            | DeclarationKind::Package(_)
    )
}
