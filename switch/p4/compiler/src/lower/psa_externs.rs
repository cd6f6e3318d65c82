//! Extern objects of PSA, and their methods: to objects that the target makes by name, and to primitives `_Type_method`.

use std::rc::Rc;

use fairlane_syntax::ast::{self, *};
use num_bigint::BigInt;

use super::instances::{Instance, InstanceKind};
use super::values::Val;
use super::{fold, Lower, Stage};
use crate::ir::{self, Arg, Attribute, Expr, ExprKind, HeaderRef, Place, Stmt};
use crate::rule::Rule;
use crate::types::Type;

/// The target's names of the members of `PSA_HashAlgorithm_t`.
const ALGORITHMS: [(&str, &str); 7] = [
    ("IDENTITY", "identity"),
    ("CRC32", "crc32"),
    ("CRC32_CUSTOM", "crc32_custom"),
    ("CRC16", "crc16"),
    ("CRC16_CUSTOM", "crc16_custom"),
    ("ONES_COMPLEMENT16", "csum16"),
    ("TARGET_DEFAULT", "crc16"),
];

/// The extern types whose state belongs to one packet and one run of their parser or control.
fn starts_clear(ty: &str) -> bool {
    matches!(ty, "InternetChecksum" | "Checksum")
}

impl<'a> Lower<'a, '_> {
    /// Objects that the target makes by name, beside what [`Lower::declare_extern`] does for both architectures.
    pub(super) fn declare_psa_extern(&mut self, instance: &Rc<Instance<'a>>, ty: &str, span: Span) {
        let InstanceKind::Extern { args, .. } = &instance.kind else { return };
        // As p4c has it, the P4Info shows that there are some, though not which.
        self.control_plane.calls_extern_functions |= matches!(ty, "Hash" | "Checksum" | "InternetChecksum" | "Random");
        let member = args.get(1).and_then(|v| self.enum_name(v)).unwrap_or_else(|| "".into());
        let size = self.const_argument(args, 0).unwrap_or_default();
        let (ty, attributes) = match ty {
            "Hash" => ("Hash", vec![("algo", Attribute::Text(self.psa_algorithm(args.first())))]),
            "Checksum" => ("Checksum", vec![("algo", Attribute::Text(self.psa_algorithm(args.first())))]),
            "InternetChecksum" => ("InternetChecksum", Vec::new()),
            "Counter" => {
                let unit = ["PACKETS", "BYTES", "PACKETS_AND_BYTES"].iter().position(|u| *u == &*member).unwrap_or(0);
                ("Counter", vec![("n_counters", Attribute::Number(size)), ("type", Attribute::Number(unit.into()))])
            }
            "Meter" => {
                let unit = Attribute::Text(member.to_lowercase().into());
                let number = |n: BigInt| Attribute::Number(n);
                let rates = number(2.into());
                ("Meter", vec![("is_direct", number(0.into())), ("n_meters", number(size)), ("rate_count", rates), ("type", unit)])
            }
            _ => return,
        };
        self.program.externs.push(ir::Extern { name: instance.name.clone(), ty, attributes, span });
        self.clear_psa_extern(instance, span);
    }

    /// A checksum begins as after `clear` each time that its parser or control runs.
    pub(super) fn clear_psa_extern(&mut self, instance: &Rc<Instance<'a>>, span: Span) {
        let InstanceKind::Extern { decl, .. } = &instance.kind else { return };
        let Some(def) = self.checked.externs.get(decl).cloned() else { return };
        if starts_clear(&def.name) {
            self.emit(Stmt::Primitive(format!("_{}_clear", def.name), vec![Arg::Object("extern", instance.name.clone())], span));
        }
    }

    pub(super) fn psa_algorithm(&self, v: Option<&Val>) -> Symbol {
        let member = v.and_then(|v| self.enum_name(v)).unwrap_or_else(|| "TARGET_DEFAULT".into());
        ALGORITHMS.iter().find(|(n, _)| *n == &*member).map_or("crc16", |(_, n)| n).into()
    }

    /// A method of an extern object of PSA; `types` are those of its parameters.
    pub(super) fn psa_method(
        &mut self,
        e: &'a ast::Expr,
        instance: &Rc<Instance<'a>>,
        (ty, method): (&str, &str),
        args: [Option<&'a ast::Expr>; 3],
        types: &[Type],
    ) -> Val {
        let span = e.span;
        let object = || Arg::Object("extern", instance.name.clone());
        let op = format!("_{ty}_{method}");
        let result = self.type_of(e.id);
        let InstanceKind::Extern { args: constructed, type_args, .. } = &instance.kind else { return Val::Broken };
        match (ty, method, args) {
            ("Register", "read", [Some(index), ..]) => {
                let index = self.simple_argument(index, types.first());
                let to = self.scalar_variable("tmp", &result);
                let array = Arg::Object("register_array", instance.name.clone());
                self.emit(Stmt::Primitive("register_read".into(), vec![Arg::Place(to.clone()), array, Arg::Expr(index)], span));
                return Val::Scalar(Expr::place(to));
            }
            ("Register", "write", [Some(index), Some(value), _]) => {
                let index = self.simple_argument(index, types.first());
                let value = self.simple_argument(value, types.get(1));
                let array = Arg::Object("register_array", instance.name.clone());
                self.emit(Stmt::Primitive("register_write".into(), vec![array, Arg::Expr(index), Arg::Expr(value)], span));
            }
            ("Counter", "count", [Some(index), ..]) => {
                let index = self.simple_argument(index, types.first());
                self.emit(Stmt::Primitive(op, vec![object(), Arg::Expr(index)], span));
            }
            // A direct counter counts by itself when its table matches.
            ("DirectCounter", "count", _) => {}
            ("Meter", "execute", [Some(index), before, _]) => {
                let index = self.simple_argument(index, types.first());
                let mut all = vec![object(), Arg::Expr(index)];
                let before = before.map(|b| self.simple_argument(b, types.get(1)));
                let to = self.scalar_variable("colour", &result);
                all.push(Arg::Place(to.clone()));
                all.extend(before.map(Arg::Expr));
                self.emit(Stmt::Primitive(op, all, span));
                return Val::Scalar(Expr::place(to));
            }
            ("DirectMeter", "execute", [before, ..]) => {
                if before.is_some() {
                    self.error(span, Rule::Bmv2, "the target's direct meters do not know the colour that a packet had before");
                }
                let measured = self.direct_colour(instance, Type::bit(32));
                return Val::Scalar(psa_colour(measured, result));
            }
            ("Random", "read", _) => {
                let [low, high] = [0, 1].map(|i| Expr::constant(self.const_argument(constructed, i).unwrap_or_default(), result.clone()));
                let to = self.scalar_variable("random", &result);
                let all = vec![Arg::Place(to.clone()), Arg::Expr(low), Arg::Expr(high)];
                self.emit(Stmt::Primitive("modify_field_rng_uniform".into(), all, span));
                return Val::Scalar(Expr::place(to));
            }
            ("Hash", "get_hash", [Some(data), None, _]) => {
                let fields = self.field_arguments(data, types.first());
                let to = self.scalar_variable("hash", &result);
                self.emit(Stmt::Primitive(op, vec![object(), Arg::Place(to.clone()), Arg::Fields(fields)], span));
                return Val::Scalar(Expr::place(to));
            }
            ("Hash", "get_hash", [Some(base), Some(data), Some(max)]) => {
                let base = self.simple_argument(base, types.first());
                let fields = self.field_arguments(data, types.get(1));
                let max = self.simple_argument(max, types.get(2));
                let to = self.scalar_variable("hash", &result);
                let all = vec![object(), Arg::Place(to.clone()), Arg::Expr(base), Arg::Fields(fields), Arg::Expr(max)];
                self.emit(Stmt::Primitive("_Hash_get_hash_mod".into(), all, span));
                return Val::Scalar(Expr::place(to));
            }
            ("InternetChecksum" | "Checksum", "clear", _) => self.emit(Stmt::Primitive(op, vec![object()], span)),
            ("InternetChecksum", "add" | "subtract", [Some(data), ..]) | ("Checksum", "update", [Some(data), ..]) => {
                let fields = self.field_arguments(data, types.first());
                let bits: u32 = fields.iter().map(|f| fold::bits_of(&f.ty)).sum();
                if ty == "InternetChecksum" && !bits.is_multiple_of(16) {
                    self.error(data.span, Rule::Psa, format!("`{method}` takes a multiple of 16 bits, not {bits} bits"));
                }
                self.emit(Stmt::Primitive(op, vec![object(), Arg::Fields(fields)], span));
            }
            ("InternetChecksum", "get" | "get_state", _) | ("Checksum", "get", _) => {
                let to = self.scalar_variable("checksum", &result);
                self.emit(Stmt::Primitive(op, vec![object(), Arg::Place(to.clone())], span));
                return Val::Scalar(Expr::place(to));
            }
            ("InternetChecksum", "set_state", [Some(state), ..]) => {
                let state = self.simple_argument(state, types.first());
                self.emit(Stmt::Primitive(op, vec![object(), Arg::Expr(state)], span));
            }
            ("Digest", "pack", [Some(data), ..]) => {
                if self.stage != Stage::Deparser {
                    self.error(span, Rule::Psa, "`pack` of a digest can only be called in a deparser");
                }
                let data_type = type_args.first().cloned().unwrap_or(Type::Unknown);
                let receiver = Expr::constant(1, Type::bit(32));
                self.send_digest(receiver, data, data_type, (instance.name.clone(), Vec::new()), span);
            }
            _ => self.error(span, Rule::Psa, format!("`{ty}.{method}` cannot be called from the data plane")),
        }
        Val::Broken
    }

    /// Data as fields: what is no field is put into one.
    fn field_arguments(&mut self, data: &'a ast::Expr, t: Option<&Type>) -> Vec<Expr> {
        let input = self.calculation_input(data, t);
        input
            .into_iter()
            .map(|e| match &e.kind {
                ExprKind::Place(p) if matches!(p.header, HeaderRef::Instance(_)) => e,
                _ => {
                    let ty = e.ty.clone();
                    self.temporary_of(&ty, e, "tmp", data.span)
                }
            })
            .collect()
    }
}

/// The target counts green, yellow, red from 0; PSA red, green, yellow.
fn psa_colour(measured: Place, ty: Type) -> Expr {
    let is = |n: u32| fold::binary(BinaryOp::Eq, Expr::place(measured.clone()), Expr::constant(n, Type::bit(32)));
    let colour = |n: u32| Expr::constant(n, ty.clone());
    fold::mux(is(0), colour(1), fold::mux(is(1), colour(2), colour(0)))
}
