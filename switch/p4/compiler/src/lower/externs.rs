//! Extern objects of v1model, and their methods; [`super::psa_externs`] has those of PSA.

use std::rc::Rc;

use fairlane_syntax::ast::{self, *};
use num_bigint::BigInt;
use num_traits::ToPrimitive;

use super::instances::{Instance, InstanceKind};
use super::storage::Storage;
use super::values::Val;
use super::{fold, Lower, Stage};
use crate::check::CallInfo;
use crate::control_plane as cp;
use crate::ir::{self, Arg, Cells, Expr, ExprKind, HeaderRef, Place, Stmt};
use crate::rule::Rule;
use crate::types::{DeclId, Type};

impl<'a> Lower<'a, '_> {
    /// The member of an enum that a value is.
    pub(super) fn enum_name(&self, v: &Val) -> Option<Symbol> {
        let Val::Scalar(Expr { kind: ExprKind::Const(i), ty: Type::Enum(n) }) = v else { return None };
        let def = self.checked.enums.get(&n.decl)?;
        def.members.get(i.to_usize()?).map(|(m, _)| m.clone())
    }

    pub(super) fn const_argument(&self, args: &[Val], i: usize) -> Option<BigInt> {
        match args.get(i) {
            Some(Val::Scalar(e)) => e.as_const().cloned(),
            _ => None,
        }
    }

    /// A new type of an index, which the control plane may translate.
    pub(super) fn index_type(&self, args: &[Type], i: usize) -> Option<cp::DataType> {
        match args.get(i) {
            Some(t @ Type::Newtype(..)) => Some(self.data_type(t)),
            _ => None,
        }
    }

    /// Registers an extern object with the program and the control plane.
    pub(super) fn declare_extern(&mut self, instance: &Rc<Instance<'a>>, _t: &Type, annotations: &'a [Annotation], span: Span) {
        let InstanceKind::Extern { decl, type_args, args, .. } = &instance.kind else { return };
        let Some(def) = self.checked.externs.get(decl).cloned() else { return };
        let name = instance.name.clone();
        let annotations = annotations.to_vec();
        let size = |l: &Self| l.const_argument(args, 0).unwrap_or_default();
        // `bytes` in v1model, `BYTES` in PSA.
        let unit = |l: &Self, i: usize| {
            let name = args.get(i).and_then(|v| l.enum_name(v));
            Symbol::from(name.map_or_else(|| "packets".into(), |n| n.to_lowercase()))
        };
        let cp_unit = |u: &str| match u {
            "bytes" => cp::Unit::Bytes,
            "packets_and_bytes" => cp::Unit::PacketsAndBytes,
            _ => cp::Unit::Packets,
        };
        match &*def.name {
            "register" | "Register" => self.declare_register(name, annotations, type_args, args, span),
            "counter" | "Counter" => {
                let size = size(self);
                self.program.counters.push(ir::Counter { name: name.clone(), cells: Cells::Array(size.clone()), span });
                // Before the type of the index, PSA has that of the cells.
                let (unit, index) = (cp_unit(&unit(self, 1)), self.index_type(type_args, usize::from(&*def.name == "Counter")));
                self.control_plane.counters.push(cp::Counter { name, annotations, unit, size: size.to_u64(), table: None, index });
            }
            "direct_counter" | "DirectCounter" => {
                self.program.counters.push(ir::Counter { name: name.clone(), cells: Cells::Direct(None), span });
                let unit = cp_unit(&unit(self, 0));
                self.control_plane.counters.push(cp::Counter { name, annotations, unit, size: None, table: None, index: None });
            }
            "meter" | "Meter" => {
                let size = size(self);
                let u = unit(self, 1);
                // In PSA the target makes it by name.
                if &*def.name == "meter" {
                    self.program.meters.push(ir::Meter {
                        name: name.clone(),
                        cells: Cells::Array(size.clone()),
                        unit: u.clone(),
                        target: None,
                        table_size: 0,
                        span,
                    });
                }
                let index = self.index_type(type_args, 0);
                self.control_plane.meters.push(cp::Meter { name, annotations, unit: cp_unit(&u), size: size.to_u64(), table: None, index });
            }
            "direct_meter" | "DirectMeter" => {
                let u = unit(self, 0);
                self.program.meters.push(ir::Meter {
                    name: name.clone(),
                    cells: Cells::Direct(None),
                    unit: u.clone(),
                    target: None,
                    table_size: 1024,
                    span,
                });
                self.control_plane.meters.push(cp::Meter { name, annotations, unit: cp_unit(&u), size: None, table: None, index: None });
            }
            "action_profile" | "action_selector" | "ActionProfile" | "ActionSelector" => {
                self.declare_profile(name, annotations, &def.name, args, span);
            }
            _ if !self.of_architecture(*decl) => {
                let text = format!("`{name}` is a `{}`, an extern object that the architecture does not have", def.name);
                self.error(span, Rule::V1model, text);
            }
            _ => {}
        }
        self.declare_psa_extern(instance, &def.name, span);
    }

    fn declare_register(&mut self, name: String, annotations: Vec<Annotation>, type_args: &[Type], args: &[Val], span: Span) {
        if args.len() == 2 && self.const_argument(args, 1) != Some(BigInt::from(0)) {
            let text = format!("register `{name}` begins with another value than 0, which the target cannot give it");
            self.error(span, Rule::Bmv2, text);
        }
        let ty = type_args.first().cloned().unwrap_or(Type::Unknown);
        let scalar = self.scalar(&ty);
        let Type::Bits { width, .. } = scalar else {
            self.error(span, Rule::Bmv2, format!("a register holds `bit<n>` or `int<n>`, not `{ty}`"));
            return;
        };
        let size = self.const_argument(args, 0).unwrap_or_default();
        if size == BigInt::from(0) {
            self.error(span, Rule::Bmv2, format!("register `{name}` has no cells"));
        }
        self.program.registers.push(ir::Register { name: name.clone(), size: size.clone(), bits: width, span });
        let index = self.index_type(type_args, 1);
        let ty = self.data_type(&ty);
        self.control_plane.registers.push(cp::Register { name, annotations, ty, size: size.to_u64().unwrap_or(0), index });
    }

    fn declare_profile(&mut self, name: String, annotations: Vec<Annotation>, kind: &str, args: &[Val], span: Span) {
        let selecting = matches!(kind, "action_selector" | "ActionSelector");
        let size = self.const_argument(args, usize::from(selecting)).unwrap_or_default();
        let selector = if !selecting {
            None
        } else if kind == "ActionSelector" {
            Some((self.psa_algorithm(args.first()), None))
        } else {
            Some((args.first().and_then(|v| self.enum_name(v)).unwrap_or_else(|| "crc16".into()), None))
        };
        let stage = match self.stage {
            Stage::Egress => "egress",
            Stage::Ingress => "ingress",
            _ => "",
        };
        self.program.profiles.push((stage.into(), ir::Profile { name: name.clone(), size: size.clone(), selector, span }));
        self.control_plane.action_profiles.push(cp::ActionProfile {
            name,
            annotations,
            tables: Vec::new(),
            size: size.to_u64().unwrap_or(0),
            selector: selecting,
        });
    }

    /// Whether a declaration stands in the file of the architecture, or of the core library.
    pub(super) fn of_architecture(&self, id: DeclId) -> bool {
        let file = self.decl(id).span.file;
        ["V1Switch", "PSA_Switch", "packet_in"]
            .iter()
            .filter_map(|name| self.checked.globals.get(*name))
            .flatten()
            .any(|known| self.decl(*known).span.file == file)
    }

    /// Whether a program declares a function of its own under the name of one of the architecture's.
    pub(super) fn takes_name_of_architecture(&self, id: DeclId, name: &str) -> bool {
        let others = self.checked.globals.get(name).into_iter().flatten();
        !self.of_architecture(id) && others.into_iter().any(|other| self.of_architecture(*other))
    }

    /// A method of an extern object.
    pub(super) fn extern_method(
        &mut self,
        e: &'a ast::Expr,
        instance: &Rc<Instance<'a>>,
        method: usize,
        info: &CallInfo,
        arguments: &'a [Argument],
    ) -> Val {
        let name = info.signature.name.clone();
        let arg = |i: usize| info.order.get(i).copied().flatten().and_then(|a| arguments.get(a)).map(|a| &a.value);
        let InstanceKind::Extern { decl, .. } = &instance.kind else {
            return self.packet_method(e, &name, info, arguments);
        };
        let _ = method;
        let Some(def) = self.checked.externs.get(decl).cloned() else { return Val::Broken };
        let types = self.parameter_types(info, instance);
        let object = |kind: &'static str| Arg::Object(kind, instance.name.clone());
        match (&*def.name, &*name) {
            ("register", "read") => {
                let (Some(dest), Some(index)) = (arg(0), arg(1)) else { return Val::Broken };
                let index = self.simple_argument(index, types.get(1));
                self.with_out(dest, types.first(), e.span, |l, place| {
                    l.emit(Stmt::Primitive(
                        "register_read".into(),
                        vec![Arg::Place(place), object("register_array"), Arg::Expr(index)],
                        e.span,
                    ));
                });
            }
            ("register", "write") => {
                let (Some(index), Some(value)) = (arg(0), arg(1)) else { return Val::Broken };
                let index = self.simple_argument(index, types.first());
                let value = self.simple_argument(value, types.get(1));
                self.emit(Stmt::Primitive(
                    "register_write".into(),
                    vec![object("register_array"), Arg::Expr(index), Arg::Expr(value)],
                    e.span,
                ));
            }
            ("counter", "count") => {
                let Some(index) = arg(0) else { return Val::Broken };
                let index = self.simple_argument(index, types.first());
                self.emit(Stmt::Primitive("count".into(), vec![object("counter_array"), Arg::Expr(index)], e.span));
            }
            // A direct counter counts by itself when its table matches.
            ("direct_counter", "count") => {}
            ("meter", "execute_meter") => {
                let (Some(index), Some(dest)) = (arg(0), arg(1)) else { return Val::Broken };
                let index = self.simple_argument(index, types.first());
                self.with_out(dest, types.get(1), e.span, |l, place| {
                    l.emit(Stmt::Primitive(
                        "execute_meter".into(),
                        vec![object("meter_array"), Arg::Expr(index), Arg::Place(place)],
                        e.span,
                    ));
                });
            }
            ("direct_meter", "read") => {
                let Some(dest) = arg(0) else { return Val::Broken };
                let from = self.direct_colour(instance, types.first().cloned().unwrap_or(Type::bit(2)));
                self.store_expr(dest, &Storage::Scalar(from), e.span);
            }
            (object, method) => return self.psa_method(e, instance, (object, method), [arg(0), arg(1), arg(2)], &types),
        }
        Val::Broken
    }

    /// Where the target writes the colour of a direct meter, before the action runs: one field per meter.
    pub(super) fn direct_colour(&mut self, instance: &Rc<Instance<'a>>, ty: Type) -> Place {
        let InstanceKind::Extern { meter_target, .. } = &instance.kind else { return self.scalar_variable("colour", &ty) };
        if let Some(known) = &*meter_target.borrow() {
            return known.clone();
        }
        let place = self.scalar_variable(&format!("{}.colour", instance.name), &ty);
        *meter_target.borrow_mut() = Some(place.clone());
        if let Some(m) = self.program.meters.iter_mut().find(|m| m.name == instance.name) {
            m.target = Some(place.clone());
        }
        place
    }

    /// The types of a method's parameters, for this object and call.
    fn parameter_types(&self, info: &CallInfo, instance: &Instance<'a>) -> Vec<Type> {
        let mut map: Vec<(u32, Type)> = info.type_args.iter().map(|(p, t)| (*p, t.substitute(&self.substitution))).collect();
        if let InstanceKind::Extern { decl, type_args, .. } = &instance.kind
            && let Some(def) = self.checked.externs.get(decl)
        {
            map.extend(def.type_params.iter().map(|p| p.id).zip(type_args.iter().cloned()));
        }
        info.signature.params.iter().map(|p| p.ty.substitute(&map)).collect()
    }

    /// An argument as the target's primitives want it: a field, a constant, or data of the action.
    pub(super) fn simple_argument(&mut self, e: &'a ast::Expr, t: Option<&Type>) -> Expr {
        let v = match t {
            Some(t) => self.value_as(e, t),
            None => self.value(e),
        };
        let v = self.as_scalar(v);
        self.simple(v, e.span)
    }

    pub(super) fn simple(&mut self, e: Expr, span: Span) -> Expr {
        let simple = match &e.kind {
            ExprKind::Const(_) | ExprKind::Param(_) => e.ty != Type::Bool,
            ExprKind::Place(p) => matches!(p.header, HeaderRef::Instance(_)) && e.ty != Type::Bool,
            _ => false,
        };
        if simple {
            return e;
        }
        let ty = e.ty.clone();
        self.temporary_of(&ty, e, "tmp", span)
    }

    /// Calls `f` with a field for an `out` argument; an l-value that is no plain field is written afterwards.
    pub(super) fn with_out(&mut self, e: &'a ast::Expr, t: Option<&Type>, span: Span, f: impl FnOnce(&mut Self, Place)) {
        if !matches!(e.kind, ast::ExprKind::DontCare | ast::ExprKind::Slice(..))
            && let Some(Storage::Scalar(p)) = self.place(e)
            && matches!(p.header, HeaderRef::Instance(_))
        {
            f(self, p.clone());
            return self.give_sign(p, span);
        }
        let ty = t.cloned().filter(|t| !t.is_unknown()).unwrap_or_else(|| self.type_of(e.id));
        let place = self.scalar_variable("tmp", &ty);
        f(self, place.clone());
        self.give_sign(place.clone(), span);
        if !matches!(e.kind, ast::ExprKind::DontCare) {
            self.store_expr(e, &Storage::Scalar(place), span);
        }
    }

    /// BMv2's primitives write bits without a sign, and its signed fields then hold a large positive number.
    fn give_sign(&mut self, place: Place, span: Span) {
        if let Type::Bits { width, signed: true } = place.ty {
            let bits = Expr { kind: ExprKind::Place(Box::new(place.clone())), ty: Type::bit(width) };
            let value = Expr { kind: ExprKind::Cast(Box::new(bits)), ty: place.ty.clone() };
            self.emit(Stmt::Assign(place, value, span));
        }
    }

    /// `packet_in` and `packet_out` (spec 13.8, 16.1).
    fn packet_method(&mut self, e: &'a ast::Expr, name: &str, info: &CallInfo, arguments: &'a [Argument]) -> Val {
        let arg = |i: usize| info.order.get(i).copied().flatten().and_then(|a| arguments.get(a)).map(|a| &a.value);
        match name {
            "extract" => {
                let Some(target) = arg(0) else { return Val::Broken };
                let length = match arg(1) {
                    Some(x) => {
                        let v = self.value_as(x, &Type::bit(32));
                        let v = self.as_scalar(v);
                        Some(self.settle(v, x.span))
                    }
                    None => None,
                };
                let storage = if matches!(target.kind, ast::ExprKind::DontCare) {
                    let t = info.type_args.last().map(|(_, t)| t.substitute(&self.substitution)).unwrap_or(Type::Unknown);
                    Some(self.allocate("skipped", &t))
                } else {
                    self.place(target)
                };
                match storage {
                    Some(Storage::Header(HeaderRef::Element(stack, index), _)) => self.extract_element(stack, *index, length, e.span),
                    Some(Storage::Header(h, _)) => self.emit(Stmt::Extract(h, length, e.span)),
                    _ => {}
                }
                Val::Broken
            }
            "lookahead" => {
                let t = info.type_args.last().map(|(_, t)| t.substitute(&self.substitution)).unwrap_or(Type::Unknown);
                self.lookahead(&t, e.span)
            }
            "advance" => {
                let Some(x) = arg(0) else { return Val::Broken };
                let v = self.value_as(x, &Type::bit(32));
                let v = self.as_scalar(v);
                let v = self.settle(v, x.span);
                self.emit(Stmt::Advance(v, e.span));
                Val::Broken
            }
            "emit" => {
                let Some(x) = arg(0) else { return Val::Broken };
                let v = self.value(x);
                self.emit_value(&v, e.span);
                Val::Broken
            }
            other => {
                self.error(e.span, Rule::Bmv2, format!("`{other}` of a packet is not supported"));
                Val::Broken
            }
        }
    }

    /// The value of a type as it stands in the packet ahead. All bits are read at once, since a packet that is too short for one
    /// field is too short for the whole type (spec 13.8.3).
    fn lookahead(&mut self, t: &Type, span: Span) -> Val {
        let width = self.bits(t, true, 0);
        if width == 0 {
            return self.default_value(t);
        }
        let scalar = self.scalar(&self.strip(t));
        if matches!(scalar, Type::Bits { .. }) {
            return Val::Scalar(Expr { kind: ExprKind::Lookahead(0, width), ty: scalar });
        }
        let ahead = self.settle(Expr { kind: ExprKind::Lookahead(0, width), ty: Type::bit(width) }, span);
        let mut left = width;
        self.taken_apart(t, &ahead, &mut left, 0)
    }

    /// A value of a type from the `left` lowest bits of `all`; takes its bits from the top.
    fn taken_apart(&self, t: &Type, all: &Expr, left: &mut u32, depth: u32) -> Val {
        if depth > 32 {
            return Val::Broken;
        }
        let stripped = self.strip(t);
        let mut parts = |fields: Vec<(Symbol, Type)>| -> Vec<(Symbol, Val)> {
            fields.into_iter().map(|(f, ft)| (f, self.taken_apart(&ft, all, left, depth + 1))).collect()
        };
        match &stripped {
            Type::Struct(n) => Val::Struct(parts(self.fields(n)), stripped.clone()),
            Type::Header(n) => Val::HeaderLiteral(Some(parts(self.fields(n))), stripped.clone()),
            Type::Tuple(ts) => {
                let fields = ts.iter().enumerate().map(|(i, ft)| (format!("{i}").into(), ft.clone())).collect();
                Val::Struct(parts(fields), t.clone())
            }
            Type::Stack(element, size) => {
                let fields = (0..*size).map(|i| (format!("{i}").into(), (**element).clone())).collect();
                Val::StackLiteral(parts(fields).into_iter().map(|(_, v)| v).collect())
            }
            other => {
                let ty = self.scalar(other);
                let high = left.saturating_sub(1);
                *left = left.saturating_sub(fold::bits_of(&ty));
                let bits = fold::slice(all.clone(), high, *left);
                Val::Scalar(match ty {
                    Type::Bool => fold::binary(BinaryOp::Eq, bits, Expr::constant(1, Type::bit(1))),
                    ty => fold::cast(bits, &ty),
                })
            }
        }
    }

    fn emit_value(&mut self, v: &Val, span: Span) {
        match v {
            Val::Header(h, _) => self.emit(Stmt::Emit(h.clone(), span)),
            Val::Struct(parts, _) => parts.iter().for_each(|(_, v)| self.emit_value(v, span)),
            Val::Stack(s, _) => match self.program.stacks[s.0].elements.clone() {
                ir::StackElements::Headers(_, ids) => {
                    ids.into_iter().for_each(|h| self.emit(Stmt::Emit(HeaderRef::Instance(h), span)));
                }
                ir::StackElements::Unions(_, ids) => {
                    for u in ids {
                        for (_, h) in self.program.unions[u.0].members.clone() {
                            self.emit(Stmt::Emit(HeaderRef::Instance(h), span));
                        }
                    }
                }
            },
            Val::Union(u, _) => {
                for (_, h) in self.program.unions[u.0].members.clone() {
                    self.emit(Stmt::Emit(HeaderRef::Instance(h), span));
                }
            }
            _ => self.error(span, Rule::Bmv2, "only headers can be emitted"),
        }
    }
}
