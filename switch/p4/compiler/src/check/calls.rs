//! Calls: overloads, arguments, inference of type arguments (spec 6.8, 8.22, 8.23).

use std::rc::Rc;

use fairlane_syntax::ast::*;
use fairlane_syntax::Code;

use super::defs::{ParamSig, Signature};
use super::scope::{CallTarget, Context, Local};
use super::{CallInfo, Checker};
use crate::rule::Rule;
use crate::types::{Named, Type, TypeParam};

const CALL: Rule = Rule::Calls;

/// A call as the source has it, and the rule by which its arguments are judged.
pub(crate) struct Call<'x> {
    pub(crate) id: NodeId,
    pub(crate) arguments: &'x [Argument],
    pub(crate) span: Span,
    pub(crate) rule: Rule,
}

impl<'a> Checker<'a, '_> {
    /// The type of a call.
    pub(crate) fn call(&mut self, e: &Expr, callee: &Expr, type_arguments: &[TypeExpr], arguments: &[Argument]) -> Type {
        match &callee.kind {
            ExprKind::Name(p) => self.call_name(e, p, type_arguments, arguments),
            ExprKind::Member(base, m) => self.call_member(e, base, m, type_arguments, arguments),
            ExprKind::TypeMember(t, m) if &*m.name == "apply" => self.direct_application(e.id, t, arguments, e.span),
            ExprKind::TypeMember(t, m) => {
                let ty = self.resolve_type(t);
                self.size_method(e, &ty, m, arguments)
            }
            _ => {
                self.check_expr(callee);
                self.check_arguments(arguments);
                self.error(callee.span, CALL, "this cannot be called");
                Type::Unknown
            }
        }
    }

    /// Checks arguments that belong to no known parameter.
    fn check_arguments(&mut self, arguments: &[Argument]) {
        for a in arguments {
            if !matches!(a.value.kind, ExprKind::DontCare) {
                self.check_expr(&a.value);
            }
        }
    }

    fn call_name(&mut self, e: &Expr, p: &Path, type_arguments: &[TypeExpr], arguments: &[Argument]) -> Type {
        if let Some(local) = self.lookup_local(p).cloned() {
            return match local {
                Local::Action(sig) => self.action_call(e, sig, type_arguments, arguments),
                _ => {
                    self.check_arguments(arguments);
                    self.error(p.span, CALL, format!("`{}` cannot be called", p.name.name));
                    Type::Unknown
                }
            };
        }
        let ids = self.lookup_global(&p.name.name);
        if ids.is_empty() {
            self.check_arguments(arguments);
            self.undeclared(&p.name, "function");
            return Type::Unknown;
        }
        if self.current_decl.is_some_and(|d| ids.contains(&d)) && matches!(self.context, Context::Function | Context::Action) {
            self.check_arguments(arguments);
            self.error_code(Code::Recursion, p.span, Rule::Functions, format!("`{}` calls itself: recursion is not possible", p.name.name));
            return Type::Unknown;
        }
        let mut candidates: Vec<(CallTarget, Rc<Signature>)> = Vec::new();
        for id in ids {
            match &self.decl(id).kind {
                DeclarationKind::Function(_) => candidates.extend(self.signature(id).map(|s| (CallTarget::Function(id), s))),
                DeclarationKind::ExternFunction(_) => {
                    candidates.extend(self.signature(id).map(|s| (CallTarget::ExternFunction(id), s)));
                }
                DeclarationKind::Action(_) => {
                    if let Some(sig) = self.signature(id) {
                        return self.action_call(e, sig, type_arguments, arguments);
                    }
                }
                k if super::typedefs::is_type(k) => {
                    let args: Vec<Type> = type_arguments.iter().map(|t| self.resolve_type_inferring(t)).collect();
                    let given = if type_arguments.is_empty() { None } else { Some((args, e.span)) };
                    let t = self.type_of_decl(id, given, p.span, true);
                    self.refuse_nameless(&t, e.span);
                    return self.constructor(e.id, &t, arguments, e.span);
                }
                _ => {}
            }
        }
        if candidates.is_empty() {
            self.check_arguments(arguments);
            self.error(p.span, CALL, format!("`{}` cannot be called", p.name.name));
            return Type::Unknown;
        }
        if let Some((CallTarget::ExternFunction(_), sig)) = candidates.first() {
            if &*sig.name == "verify" && self.context != Context::Parser {
                self.error(e.span, Rule::Verify, "`verify` can only be called in a parser");
            }
            if &*sig.name == "static_assert" {
                self.static_assert(arguments);
            }
        }
        self.overloaded(e, &p.name, candidates, &[], type_arguments, arguments)
    }

    fn static_assert(&mut self, arguments: &[Argument]) {
        let Some(first) = arguments.first() else { return };
        self.check_expr(&first.value);
        match self.eval(&first.value) {
            Some(super::ConstVal::Bool(true)) => {}
            Some(super::ConstVal::Bool(false)) => {
                let text = match arguments.get(1).map(|a| &a.value.kind) {
                    Some(ExprKind::String(s)) => format!("static assertion failed: {s}"),
                    _ => "static assertion failed".to_owned(),
                };
                self.error(first.span, Rule::StaticAssertions, text);
            }
            _ => self.error(first.span, Rule::StaticAssertions, "the condition must be known at compile time"),
        }
    }

    fn action_call(&mut self, e: &Expr, sig: Rc<Signature>, type_arguments: &[TypeExpr], arguments: &[Argument]) -> Type {
        if let Some(t) = type_arguments.first() {
            self.error(t.span, Rule::ActionCalls, "an action has no type arguments");
        }
        if !matches!(self.context, Context::Apply | Context::Action) {
            self.error(e.span, Rule::ActionCalls, "an action can only be called in a control or in another action");
        }
        let rule = Rule::ActionCalls;
        self.bind(Call { id: e.id, arguments, span: e.span, rule }, CallTarget::Action, &sig, Vec::new());
        Type::Void
    }

    /// Chooses by the number and names of arguments, as spec 8.22 wants overloads to differ.
    fn overloaded(
        &mut self,
        e: &Expr,
        name: &Ident,
        candidates: Vec<(CallTarget, Rc<Signature>)>,
        object_args: &[(u32, Type)],
        type_arguments: &[TypeExpr],
        arguments: &[Argument],
    ) -> Type {
        let fits = |s: &Signature| {
            let required = s.params.iter().filter(|p| !p.optional).count();
            arguments.len() <= s.params.len()
                && arguments.len() >= required
                && arguments.iter().all(|a| a.name.as_ref().is_none_or(|n| s.params.iter().any(|p| p.name == n.name)))
        };
        // When none fits, the message is about the nearest.
        let nearest = || candidates.iter().min_by_key(|(_, s)| s.params.len().abs_diff(arguments.len()));
        let chosen = candidates.iter().find(|(_, s)| fits(s)).or_else(nearest).cloned();
        let Some((target, sig)) = chosen else { return Type::Unknown };
        if matches!(target, CallTarget::Method(..)) && candidates.iter().filter(|(_, s)| fits(s)).count() > 1 {
            self.error(name.span, CALL, format!("the call fits several methods `{}`", name.name));
            self.report.help("name the arguments: `x = ...`");
        }
        let mut map = object_args.to_vec();
        if type_arguments.is_empty() {
            for p in &sig.type_params {
                let t = self.fresh();
                map.push((p.id, t));
            }
        } else {
            let types: Vec<Type> = type_arguments.iter().map(|t| self.resolve_type_inferring(t)).collect();
            if types.len() != sig.type_params.len() {
                let text = format!("`{}` takes {} type arguments, not {}", name.name, sig.type_params.len(), types.len());
                self.error(e.span, CALL, text);
                self.check_arguments(arguments);
                return Type::Unknown;
            }
            map.extend(sig.type_params.iter().map(|p| p.id).zip(types));
        }
        if self.left_open(&sig, object_args, arguments) {
            self.check_arguments(arguments);
            return Type::Unknown;
        }
        self.bind(Call { id: e.id, arguments, span: e.span, rule: CALL }, target, &sig, map.clone());
        self.check_inferred(e, &sig, &map, arguments);
        let returns = sig.returns.substitute(&map);
        if self.zonk(&returns) == returns {
            returns
        } else {
            self.zonk(&returns)
        }
    }

    /// Whether a parameter of a method has a type that the object's declaration left open as `_`: no call decides it. Says so.
    fn left_open(&mut self, sig: &Signature, object_args: &[(u32, Type)], arguments: &[Argument]) -> bool {
        for (i, p) in sig.params.iter().enumerate() {
            let Type::Param(x) = &p.ty else { continue };
            let Some((_, t)) = object_args.iter().find(|(id, _)| *id == x.id) else { continue };
            let argument = arguments.iter().find(|a| a.name.as_ref().is_some_and(|n| n.name == p.name)).or(arguments.get(i));
            if let (Type::Infer(_), Some(argument)) = (self.resolve(t), argument) {
                let text = format!("the type of parameter `{}` was left open where the object is declared", p.name);
                self.error_help(argument.span, Rule::Inference, text, format!("write the type for `{}` there in place of `_`", x.name));
                self.report.note(p.span, "the parameter");
                return true;
            }
        }
        false
    }

    /// All type parameters of a called function must have got types that values can have at run time (spec 8.26).
    fn check_inferred(&mut self, e: &Expr, sig: &Signature, map: &[(u32, Type)], arguments: &[Argument]) {
        const RULE: Rule = Rule::Inference;
        for p in &sig.type_params {
            let Some((_, t)) = map.iter().find(|(id, _)| *id == p.id) else { continue };
            let t = self.zonk(t);
            let of_p = |q: &ParamSig| matches!(&q.ty, Type::Param(x) if x.id == p.id);
            let order = self.out.calls.get(&e.id).map(|c| c.order.clone()).unwrap_or_default();
            let given: Vec<(&ParamSig, &Argument)> =
                sig.params.iter().zip(order).filter(|(q, _)| of_p(q)).filter_map(|(q, a)| Some((q, arguments.get(a?)?))).collect();
            let open = |a: &Argument| matches!(a.value.kind, ExprKind::DontCare);
            let argument = given.iter().map(|(_, a)| *a).find(|a| !open(a)).or(given.first().map(|(_, a)| *a));
            let at = argument.map_or(e.span, |a| a.span);
            // A literal for an `out` parameter has been told already.
            let told = given.iter().any(|(q, a)| matches!(q.direction, Direction::Out | Direction::InOut) && !open(a));
            match &t {
                Type::Int if !told => {
                    self.error_help(at, RULE, "the width of the literal cannot be inferred", "give it one: `8w1`");
                }
                Type::Str | Type::Extern(_) => {
                    let directed = sig.params.iter().find(|q| of_p(q) && q.direction != Direction::None);
                    if let Some(q) = directed {
                        let text = format!("`{}` has a direction, and no value of type `{t}` can be given for it", q.name);
                        self.error(at, Rule::CallingConvention, text);
                        self.report.note(q.span, "the parameter");
                    }
                }
                Type::Record(_) => {
                    self.error_help(at, RULE, "the type of the structure cannot be inferred", "name it: `(S){...}`");
                }
                Type::Infer(_)
                    if argument.is_some_and(|a| matches!(a.value.kind, ExprKind::DontCare)) && !of_return(&sig.returns, p.id) =>
                {
                    let text = format!("the type of `{}` cannot be inferred from `_`", p.name);
                    self.error_help(e.span, RULE, text, format!("write `{}<...>(_)`", sig.name));
                }
                _ => {}
            }
        }
    }

    /// Matches arguments to parameters and checks them; remembers the call.
    pub(crate) fn bind(&mut self, call: Call, target: CallTarget, sig: &Rc<Signature>, map: Vec<(u32, Type)>) {
        let Call { id, arguments, span, rule } = call;
        let constructor = matches!(target, CallTarget::Constructor(_));
        let action = target == CallTarget::Action;
        let order = self.match_arguments(&sig.params, arguments, span, rule, &sig.name);
        // Sized arguments first, so that literals without a width take their types.
        let mut checked: Vec<Option<Type>> = vec![None; sig.params.len()];
        for (i, a) in order.iter().enumerate() {
            if let Some(a) = a {
                let arg = &arguments[*a];
                if !matches!(arg.value.kind, ExprKind::DontCare) {
                    let awaited = sig.params[i].ty.substitute(&map);
                    checked[i] = Some(self.check_expr_expecting(&arg.value, &awaited));
                }
            }
        }
        for literals in [false, true] {
            for (i, a) in order.iter().enumerate() {
                let (Some(a), Some(t)) = (a, &checked[i]) else { continue };
                let is_literal = matches!(self.zonk(t), Type::Int);
                if is_literal != literals {
                    continue;
                }
                let p = &sig.params[i];
                let arg = &arguments[*a];
                let awaited = p.ty.substitute(&map);
                let t = t.clone();
                let what = format!("the argument for `{}`", p.name);
                let ty = self.zonk(&t);
                if !constructor
                    && !matches!(target, CallTarget::Apply(_))
                    && matches!(ty, Type::Parser(_) | Type::Control(_) | Type::Package(_) | Type::Table(_))
                {
                    self.error(arg.span, rule, format!("a value of type `{ty}` cannot be an argument"));
                    continue;
                }
                if self.expect_type(&awaited, &t, arg.span, rule, &what) {
                    self.refuse_tuple(&awaited, &arg.value, rule, &what);
                    self.check_direction(p, arg, &t, &awaited, constructor, action);
                }
            }
        }
        for (i, a) in order.iter().enumerate() {
            if let Some(a) = a
                && matches!(arguments[*a].value.kind, ExprKind::DontCare)
                && sig.params[i].direction != Direction::Out
            {
                let text = format!("`_` can only be given for an `out` parameter, `{}` is none", sig.params[i].name);
                self.error(arguments[*a].span, Rule::CallingConvention, text);
            }
        }
        if !constructor {
            self.warn_of_overlap(sig, &order, arguments);
        }
        self.out.calls.insert(id, CallInfo { target, type_args: map, order, signature: sig.clone() });
    }

    /// What two `out` arguments have in common gets the value of the last one (spec 6.8).
    fn warn_of_overlap(&mut self, sig: &Signature, order: &[Option<usize>], arguments: &[Argument]) {
        let written: Vec<(String, Span)> = sig
            .params
            .iter()
            .zip(order)
            .filter(|(p, _)| matches!(p.direction, Direction::Out | Direction::InOut))
            .filter_map(|(_, a)| arguments.get((*a)?))
            .filter(|a| !matches!(a.value.kind, ExprKind::DontCare))
            .map(|a| (fairlane_syntax::print::expression(&a.value), a.span))
            .collect();
        let inside =
            |a: &str, b: &str| a.strip_prefix(b).is_some_and(|rest| rest.is_empty() || rest.starts_with('.') || rest.starts_with('['));
        for (i, (a, span)) in written.iter().enumerate() {
            if let Some((b, _)) = written[..i].iter().find(|(b, _)| inside(a, b) || inside(b, a)) {
                let text = format!("`{a}` and `{b}` are written by the same call, and have fields in common");
                self.report.warning(Code::Ordering, *span, text);
            }
        }
    }

    /// Spec 6.8: what an argument must be for the parameter's direction.
    fn check_direction(&mut self, p: &ParamSig, arg: &Argument, t: &Type, awaited: &Type, constructor: bool, action: bool) {
        match p.direction {
            Direction::Out | Direction::InOut => {
                let writable = self.check_lvalue(&arg.value);
                // An l-value is neither cast nor built on the way.
                let (t, awaited) = (self.zonk(t), self.zonk(awaited));
                if writable && t != awaited && !t.is_unknown() && !awaited.is_unknown() {
                    let text = format!("an argument for `{}` must have exactly the type `{awaited}`, not `{t}`", p.name);
                    self.error(arg.span, Rule::CallingConvention, text);
                }
            }
            Direction::None if constructor => {
                let awaited = self.zonk(awaited);
                let object = matches!(awaited, Type::Extern(_) | Type::Parser(_) | Type::Control(_) | Type::Package(_));
                if !object
                    && !awaited.is_unknown()
                    && self.eval(&arg.value).is_none()
                    && !self.is_constructor_param(&arg.value)
                    && !t.is_unknown()
                {
                    let text = format!("the argument for `{}` must be known at compile time", p.name);
                    self.error(arg.span, Rule::Constructors, text);
                }
            }
            Direction::None if !action => {
                let awaited = self.zonk(awaited);
                let object = matches!(awaited, Type::Extern(_) | Type::Parser(_) | Type::Control(_) | Type::Package(_) | Type::Str);
                if !object && self.eval(&arg.value).is_none() && !self.is_constructor_param(&arg.value) && !t.is_unknown() {
                    let text = format!("`{}` has no direction: its argument must be known at compile time", p.name);
                    self.error(arg.span, Rule::CallingConvention, text);
                }
            }
            _ => {}
        }
    }

    /// Whether the expression is built from constructor parameters: known for each instance.
    pub(crate) fn is_constructor_param(&mut self, e: &Expr) -> bool {
        use super::scope::Access;
        match &e.kind {
            ExprKind::Name(p) => matches!(
                self.lookup_local(p),
                Some(Local::Var { access: Access::Constant(None) | Access::ReadOnly("a parameter without direction"), .. })
            ),
            ExprKind::Binary(_, l, r) => {
                (self.is_constructor_param(l) || self.eval(l).is_some()) && (self.is_constructor_param(r) || self.eval(r).is_some())
            }
            ExprKind::Cast(_, x) | ExprKind::Unary(_, x) => self.is_constructor_param(x),
            _ => false,
        }
    }

    /// For each parameter the position of its argument.
    fn match_arguments(
        &mut self,
        params: &[ParamSig],
        arguments: &[Argument],
        span: Span,
        rule: Rule,
        callee: &Symbol,
    ) -> Vec<Option<usize>> {
        let mut order = vec![None; params.len()];
        let mut told = false;
        for (i, a) in arguments.iter().enumerate() {
            let slot = match &a.name {
                Some(n) => match params.iter().position(|p| p.name == n.name) {
                    Some(slot) => slot,
                    None => {
                        self.error(n.span, rule, format!("`{callee}` has no parameter `{}`", n.name));
                        told = true;
                        self.check_arguments(std::slice::from_ref(a));
                        continue;
                    }
                },
                None => i,
            };
            if slot >= params.len() {
                if !told {
                    let text = format!("`{callee}` takes {} arguments, not {}", params.len(), arguments.len());
                    self.error(a.span, rule, text);
                    told = true;
                }
                self.check_arguments(std::slice::from_ref(a));
                continue;
            }
            if order[slot].is_some() {
                self.error(a.span, rule, format!("parameter `{}` gets two arguments", params[slot].name));
                told = true;
                continue;
            }
            order[slot] = Some(i);
        }
        let named = arguments.iter().filter(|a| a.name.is_some()).count();
        if named != 0 && named != arguments.len() {
            self.error(span, rule, "either all arguments are named or none");
        }
        if !told {
            let missing: Vec<String> =
                params.iter().zip(&order).filter(|(p, o)| o.is_none() && !p.optional).map(|(p, _)| format!("`{}`", p.name)).collect();
            if !missing.is_empty() {
                self.error(span, rule, format!("the call of `{callee}` lacks an argument for {}", missing.join(", ")));
            }
        }
        order
    }

    fn call_member(&mut self, e: &Expr, base: &Expr, m: &Ident, type_arguments: &[TypeExpr], arguments: &[Argument]) -> Type {
        if let Some(t) = self.type_name(base) {
            if &*m.name == "apply" {
                return self.apply_type(e.id, &t, arguments, e.span);
            }
            return self.size_method(e, &t, m, arguments);
        }
        let t = self.check_expr(base);
        let t = self.zonk(&t);
        match &t {
            Type::Unknown => {
                self.check_arguments(arguments);
                Type::Unknown
            }
            Type::Extern(n) => self.method(e, n, m, type_arguments, arguments),
            Type::Table(i) if &*m.name == "apply" => {
                if self.context != Context::Apply {
                    self.error(e.span, Rule::TableCalls, "a table can only be applied in the `apply` block of a control");
                }
                if !arguments.is_empty() {
                    self.check_arguments(arguments);
                    self.error(e.span, Rule::TableCalls, "`apply` of a table takes no arguments");
                }
                self.out.calls.insert(
                    e.id,
                    CallInfo {
                        target: CallTarget::TableApply,
                        type_args: Vec::new(),
                        order: Vec::new(),
                        signature: empty_signature(&m.name),
                    },
                );
                Type::ApplyResult(*i)
            }
            Type::Parser(_) | Type::Control(_) if &*m.name == "apply" => self.apply_type(e.id, &t, arguments, e.span),
            Type::Header(_) | Type::Union(_) | Type::Stack(..) => self.builtin(e, &t, base, m, arguments),
            Type::Struct(_) | Type::Tuple(_) | Type::Bits { .. } | Type::SerEnum(..) | Type::Newtype(..) | Type::Bool | Type::Varbit(_)
                if m.name.contains("SizeIn") =>
            {
                self.size_method(e, &t, m, arguments)
            }
            _ => {
                self.check_arguments(arguments);
                self.error(m.span, Rule::Headers, format!("a value of type `{t}` has no method `{}`", m.name));
                Type::Unknown
            }
        }
    }

    fn size_method(&mut self, e: &Expr, t: &Type, m: &Ident, arguments: &[Argument]) -> Type {
        self.check_arguments(arguments);
        if t.is_unknown() {
            return Type::Unknown;
        }
        if !matches!(&*m.name, "minSizeInBits" | "minSizeInBytes" | "maxSizeInBits" | "maxSizeInBytes") || !arguments.is_empty() {
            self.error(m.span, Rule::Headers, format!("type `{t}` has no method `{}`", m.name));
            return Type::Unknown;
        }
        self.out.calls.insert(
            e.id,
            CallInfo {
                target: CallTarget::BuiltIn(m.name.clone()),
                type_args: Vec::new(),
                order: Vec::new(),
                signature: empty_signature(&m.name),
            },
        );
        Type::Int
    }

    fn builtin(&mut self, e: &Expr, t: &Type, base: &Expr, m: &Ident, arguments: &[Argument]) -> Type {
        if m.name.contains("SizeIn") {
            return self.size_method(e, t, m, arguments);
        }
        let header = matches!(t, Type::Header(_));
        let union = matches!(t, Type::Union(_));
        let stack = matches!(t, Type::Stack(..));
        let (ok, params, returns, writes) = match &*m.name {
            "isValid" => (header || union, 0, Type::Bool, false),
            "setValid" | "setInvalid" => (header, 0, Type::Void, true),
            "push_front" | "pop_front" => (stack, 1, Type::Void, true),
            _ => (false, 0, Type::Unknown, false),
        };
        if !ok {
            self.check_arguments(arguments);
            self.error(m.span, Rule::Headers, format!("a value of type `{t}` has no method `{}`", m.name));
            return Type::Unknown;
        }
        if writes {
            self.check_lvalue(base);
        }
        if arguments.len() != params {
            self.error(e.span, CALL, format!("`{}` takes {params} arguments, not {}", m.name, arguments.len()));
        }
        for a in arguments {
            let at = self.check_expr(&a.value);
            if !at.is_unknown() && self.eval_int(&a.value).is_none_or(|v| num_traits::Signed::is_negative(&v)) {
                self.error(a.span, Rule::HeaderStacks, format!("`{}` takes a positive integer known at compile time", m.name));
            }
        }
        self.out.calls.insert(
            e.id,
            CallInfo {
                target: CallTarget::BuiltIn(m.name.clone()),
                type_args: Vec::new(),
                order: vec![Some(0); params],
                signature: empty_signature(&m.name),
            },
        );
        returns
    }

    fn method(&mut self, e: &Expr, n: &Named, m: &Ident, type_arguments: &[TypeExpr], arguments: &[Argument]) -> Type {
        let Some(def) = self.extern_def(n.decl) else { return Type::Unknown };
        let candidates: Vec<(CallTarget, Rc<Signature>)> = def
            .methods
            .iter()
            .enumerate()
            .filter(|(_, (s, _))| s.name == m.name)
            .map(|(i, (s, _))| (CallTarget::Method(n.decl, i), s.clone()))
            .collect();
        if candidates.is_empty() {
            self.check_arguments(arguments);
            self.error_help(
                m.span,
                Rule::ExternObjects,
                format!("extern `{}` has no method `{}`", n.name, m.name),
                super::exprs::meant(&m.name, "its methods are", def.methods.iter().map(|(s, _)| &*s.name)),
            );
            return Type::Unknown;
        }
        let map: Vec<(u32, Type)> = def.type_params.iter().map(|p| p.id).zip(n.args.iter().cloned()).collect();
        let result = self.overloaded(e, m, candidates, &map, type_arguments, arguments);
        self.check_packet_method(e, n, m, arguments);
        result
    }

    /// What core.p4 says of packets in words (spec 13.8).
    fn check_packet_method(&mut self, e: &Expr, n: &Named, m: &Ident, arguments: &[Argument]) {
        if &*n.name != "packet_in" {
            return;
        }
        match &*m.name {
            "extract" => {
                let Some(a) = arguments.first() else { return };
                let Some(t) = self.out.types.get(&a.value.id).map(|t| self.zonk(t)) else { return };
                if !matches!(t, Type::Header(_) | Type::Unknown) {
                    self.error(a.span, Rule::Extraction, format!("only headers can be extracted, not a value of type `{t}`"));
                    return;
                }
                if let Type::Header(h) = &t {
                    let fields = self.field_types(h).unwrap_or_default();
                    let varbits = fields.iter().filter(|(_, t)| matches!(t, Type::Varbit(_))).count();
                    match (arguments.len(), varbits) {
                        (1, 1..) => self.error_help(
                            e.span,
                            Rule::FixedExtraction,
                            format!("header `{t}` has a varbit field: `extract` needs its length"),
                            "give the length in bits as second argument",
                        ),
                        (2, 0) => {
                            self.error(e.span, Rule::VariableExtraction, format!("header `{t}` has no varbit field"));
                        }
                        (2, 2..) => self.error(e.span, Rule::VariableExtraction, format!("header `{t}` has more than one varbit field")),
                        _ => {}
                    }
                }
            }
            "lookahead" => {
                let Some(info) = self.out.calls.get(&e.id) else { return };
                let Some((_, t)) = info.type_args.last().cloned() else { return };
                let t = self.zonk(&t);
                if !t.is_unknown()
                    && !matches!(t, Type::Param(_))
                    && (self.fixed_width(&t).is_none() || self.fixed_width(&t) != self.largest_width(&t))
                {
                    self.error(e.span, Rule::Lookahead, format!("`lookahead` needs a type of fixed width, not `{t}`"));
                }
            }
            _ => {}
        }
    }

    /// `C.apply(..)` where `C` is a written type.
    pub(crate) fn direct_application(&mut self, id: NodeId, t: &TypeExpr, arguments: &[Argument], span: Span) -> Type {
        let ty = self.resolve_type_inferring(t);
        self.apply_type(id, &ty, arguments, span)
    }

    /// `apply` of a parser or control.
    fn apply_type(&mut self, id: NodeId, t: &Type, arguments: &[Argument], span: Span) -> Type {
        let rule = Rule::ControlCalls;
        let (n, parser) = match t {
            Type::Parser(n) => (n.clone(), true),
            Type::Control(n) => (n.clone(), false),
            Type::Unknown => {
                self.check_arguments(arguments);
                return Type::Unknown;
            }
            _ => {
                self.check_arguments(arguments);
                self.error(span, rule, format!("`{t}` cannot be applied"));
                return Type::Unknown;
            }
        };
        match (parser, self.context) {
            (true, Context::Parser) | (false, Context::Apply) => {}
            (true, _) => self.error(span, Rule::SubParsers, "a parser can only be applied in a parser's state"),
            (false, _) => self.error(span, rule, "a control can only be applied in the `apply` block of a control"),
        }
        let Some(def) = self.applicable(n.decl) else { return Type::Unknown };
        if self.current_decl.is_some_and(|d| d == n.decl) {
            self.error_code(Code::Recursion, span, rule, format!("`{}` applies itself: recursion is not possible", n.name));
            return Type::Unknown;
        }
        let map = def.substitution(&n.args);
        let sig = Rc::new(Signature { name: n.name.clone(), type_params: Vec::new(), params: def.params.clone(), returns: Type::Void });
        self.bind(Call { id, arguments, span, rule }, CallTarget::Apply(n.decl), &sig, map);
        Type::Void
    }

    /// `T(args)`: a nameless instance.
    pub(crate) fn construct(&mut self, e: &Expr, t: &TypeExpr, arguments: &[Argument]) -> Type {
        let ty = self.resolve_type_inferring(t);
        self.refuse_nameless(&ty, e.span);
        self.constructor(e.id, &ty, arguments, e.span)
    }

    /// Abstract methods are implemented where the instance is declared; a nameless one has no such place.
    fn refuse_nameless(&mut self, t: &Type, span: Span) {
        let Type::Extern(n) = t else { return };
        let Some(def) = self.extern_def(n.decl) else { return };
        if let Some((m, _)) = def.methods.iter().find(|(_, is_abstract)| *is_abstract) {
            let text = format!("`{}` has the abstract method `{}`, which nothing implements here", n.name, m.name);
            let help = format!("declare an instance, and give its name: `{}(...) name = {{ ... }};`", n.name);
            self.error_help(span, Rule::AbstractMethods, text, help);
        }
    }

    /// A constructor's call; the type with its arguments found.
    pub(crate) fn constructor(&mut self, id: NodeId, t: &Type, arguments: &[Argument], span: Span) -> Type {
        let rule = Rule::Constructors;
        match t {
            Type::Unknown => {
                self.check_arguments(arguments);
                Type::Unknown
            }
            Type::Extern(n) => {
                let Some(def) = self.extern_def(n.decl) else { return Type::Unknown };
                let map: Vec<(u32, Type)> = def.type_params.iter().map(|p| p.id).zip(n.args.iter().cloned()).collect();
                let fits =
                    |s: &Signature| arguments.len() <= s.params.len() && arguments.len() >= s.params.iter().filter(|p| !p.optional).count();
                let Some(sig) = def.constructors.iter().find(|s| fits(s)).or(def.constructors.first()).cloned() else {
                    self.check_arguments(arguments);
                    self.error(span, rule, format!("extern `{}` has no constructor", n.name));
                    return Type::Unknown;
                };
                for p in sig.params.iter().filter(|p| matches!(p.ty, Type::Parser(_) | Type::Control(_) | Type::Package(_))) {
                    let text = format!("`{}` of type `{}` cannot be a parameter of an extern's constructor", p.name, p.ty);
                    self.error(p.span, Rule::CallingConvention, text);
                    self.report.note(span, "constructed here");
                }
                self.bind(Call { id, arguments, span, rule }, CallTarget::Constructor(n.decl), &sig, map);
                self.zonk(t)
            }
            Type::Parser(n) | Type::Control(n) | Type::Package(n) => {
                let Some(def) = self.applicable(n.decl) else { return Type::Unknown };
                let package = matches!(t, Type::Package(_));
                if !package && !def.concrete {
                    self.check_arguments(arguments);
                    self.error(span, rule, format!("`{}` is only a type and has no body: it cannot be instantiated", n.name));
                    return Type::Unknown;
                }
                if self.current_decl.is_some_and(|d| d == n.decl) {
                    self.error_code(Code::Recursion, span, rule, format!("`{}` instantiates itself: recursion is not possible", n.name));
                    return Type::Unknown;
                }
                let map = def.substitution(&n.args);
                let params = if package { def.params.clone() } else { def.constructor.clone() };
                let sig = Rc::new(Signature { name: n.name.clone(), type_params: Vec::new(), params, returns: Type::Void });
                self.bind(Call { id, arguments, span, rule }, CallTarget::Constructor(n.decl), &sig, map);
                self.zonk(t)
            }
            _ => {
                self.check_arguments(arguments);
                self.error(span, rule, format!("type `{t}` has no constructor"));
                Type::Unknown
            }
        }
    }
}

/// Whether a result's type is, or is made of, this type parameter.
fn of_return(t: &Type, id: u32) -> bool {
    matches!(t, Type::Param(p) if p.id == id)
}

fn empty_signature(name: &Symbol) -> Rc<Signature> {
    Rc::new(Signature { name: name.clone(), type_params: Vec::<TypeParam>::new(), params: Vec::new(), returns: Type::Void })
}
