//! From `main` to the blocks of the Portable Switch Architecture [PSA sec 5, 6].
//!
//! A packet is bytes between ingress and egress: each has its parser, its deparser and its user metadata. Headers of one name and
//! type are one instance for both, since egress begins with all headers invalid. What a deparser hands on (`normal_meta`,
//! `resubmit_meta`, ...) is a variable of its own, which the target keeps when the packet goes there: it is told by a field list
//! of that name, `psa_normal_meta`.

use std::rc::Rc;

use fairlane_syntax::ast::{self, *};

use super::instances::Instance;
use super::main_package::with_packet;
use super::storage::Storage;
use super::values::Val;
use super::{Binding, Lower, Stage};
use crate::check::CallInfo;
use crate::ir::{Expr, ExprKind, HeaderRef};
use crate::rule::Rule;
use crate::types::Type;

/// The egress port of a packet to recirculate.
const RECIRCULATE: u32 = 0xffff_fffa;

impl<'a> Lower<'a, '_> {
    pub(super) fn psa_switch(&mut self, info: &CallInfo, arguments: &'a [Argument]) -> Option<()> {
        self.control_plane.arch = "psa".into();
        let argument = |i: usize| info.order.get(i).copied().flatten().and_then(|a| arguments.get(a)).map(|a| &a.value);
        let mut blocks: Vec<Rc<Instance<'a>>> = Vec::new();
        for e in [argument(0)?, argument(2)?] {
            let (info, arguments) = self.package(e)?;
            blocks.extend(self.blocks(&info, arguments, blocks.len())?);
        }
        let [ip, ig, id, ep, eg, ed] = &blocks[..] else { return None };
        self.make_globals();
        self.global_value_sets();
        self.scalars();

        self.substitution.clone_from(&ip.types);
        let params = self.parameters(ip);
        let [_, headers, metadata, input, resubmit, recirculate] = params else { return None };
        let headers = self.parsed_headers(headers, &[])?;
        let metadata = self.user_metadata(metadata, "userMetadata")?;
        let parser_input = self.architecture(input, "psa_ingress_parser_input_metadata");
        let resubmit = self.carried(resubmit, "psa_resubmit_meta");
        let recirculate = self.carried(recirculate, "psa_recirculate_meta");
        self.substitution.clone_from(&ig.types);
        let [_, _, input, output] = self.parameters(ig) else { return None };
        let input = self.architecture(input, "psa_ingress_input_metadata");
        let output = self.architecture(output, "psa_ingress_output_metadata");

        self.substitution.clone_from(&ep.types);
        let [_, egress_headers, egress_metadata, egress_parser_input, normal, clone_i2e, clone_e2e] = self.parameters(ep) else {
            return None;
        };
        let known = self.typed_parts(&headers);
        let egress_headers = self.parsed_headers(egress_headers, &known)?;
        let egress_metadata = self.user_metadata(egress_metadata, "egressMetadata")?;
        let egress_parser_input = self.architecture(egress_parser_input, "psa_egress_parser_input_metadata");
        let normal = self.carried(normal, "psa_normal_meta");
        let clone_i2e = self.carried(clone_i2e, "psa_clone_i2e_meta");
        let clone_e2e = self.carried(clone_e2e, "psa_clone_e2e_meta");
        self.substitution.clone_from(&eg.types);
        let [_, _, egress_input, egress_output] = self.parameters(eg) else { return None };
        let egress_input = self.architecture(egress_input, "psa_egress_input_metadata");
        let egress_output = self.architecture(egress_output, "psa_egress_output_metadata");
        self.substitution.clone_from(&ed.types);
        let deparser_input = self.parameters(ed).last()?;
        let deparser_input = self.architecture(deparser_input, "psa_egress_deparser_input_metadata");

        let bound = |all: &[&Storage]| -> Vec<Binding<'a>> { all.iter().map(|s| Binding::Storage((*s).clone())).collect() };
        self.substitution.clone_from(&ip.types);
        let all = bound(&[&headers, &metadata, &parser_input, &resubmit, &recirculate]);
        self.run_parser("ingress_parser", ip, &with_packet(&all));
        let all = bound(&[&headers, &metadata, &input, &output]);
        self.program.ingress = self.run_pipeline("ingress", ig, Stage::Ingress, &all);
        let all = bound(&[&clone_i2e, &resubmit, &normal, &headers, &metadata, &output]);
        self.run_deparser("ingress_deparser", id, true, &with_packet(&all));
        self.substitution.clone_from(&ep.types);
        let all = bound(&[&egress_headers, &egress_metadata, &egress_parser_input, &normal, &clone_i2e, &clone_e2e]);
        self.run_parser("egress_parser", ep, &with_packet(&all));
        let all = bound(&[&egress_headers, &egress_metadata, &egress_input, &egress_output]);
        self.program.egress = self.run_pipeline("egress", eg, Stage::Egress, &all);
        let all = bound(&[&clone_e2e, &recirculate, &egress_headers, &egress_metadata, &egress_output, &deparser_input]);
        self.run_deparser("egress_deparser", ed, true, &with_packet(&all));
        Some(())
    }

    /// The arguments of a package: one made in place, or declared before `main`.
    fn package(&mut self, e: &'a ast::Expr) -> Option<(CallInfo, &'a [Argument])> {
        match &e.kind {
            ast::ExprKind::Call { arguments, .. } | ast::ExprKind::Construct(_, arguments) => {
                Some((self.checked.calls.get(&e.id).cloned()?, arguments))
            }
            ast::ExprKind::Name(p) => {
                let ids = self.checked.globals.get(&p.name.name)?;
                let DeclarationKind::Instantiation(inst) = &self.decl(*ids.first()?).kind else { return None };
                Some((self.checked.calls.get(&inst.ty.id).cloned()?, &inst.arguments))
            }
            _ => None,
        }
    }

    fn architecture(&mut self, param: &Parameter, name: &str) -> Storage {
        let t = self.type_of(param.ty.id);
        self.standard_metadata(&t, &format!("{name}_t"), name)
    }

    /// The headers of a struct with their types.
    fn typed_parts(&self, headers: &Storage) -> Vec<(Symbol, Type, Storage)> {
        let Storage::Struct(parts, Type::Struct(n)) = headers else { return Vec::new() };
        let types = self.fields(n);
        parts.iter().zip(types).map(|((name, s), (_, t))| (name.clone(), t, s.clone())).collect()
    }

    /// What goes with a packet from a deparser to a parser.
    fn carried(&mut self, param: &Parameter, name: &str) -> Storage {
        let ty = self.type_of(param.ty.id);
        let storage = self.allocate(name, &ty);
        let (mut leaves, mut elements) = (Vec::new(), Vec::new());
        storage.leaves(&mut leaves);
        for leaf in leaves {
            match leaf {
                Storage::Scalar(p) if !matches!(p.ty, Type::Varbit(_)) => elements.push(Expr::place(p.clone())),
                Storage::Header(h @ HeaderRef::Instance(_), t) => {
                    elements.push(Expr { kind: ExprKind::Valid(h.clone()), ty: Type::Bool });
                    elements.extend(self.header_places(h, t).into_iter().map(Expr::place));
                }
                Storage::Nowhere => {}
                _ => self.error(
                    param.span,
                    Rule::Bmv2,
                    format!("`{}` can hold bits, structs and headers of fixed length only", param.name.name),
                ),
            }
        }
        if !elements.is_empty() {
            self.new_field_list(name.into(), elements, param.span);
        }
        storage
    }

    /// `psa_normal(istd)` and its kin: what the deparser asks of what ingress or egress decided [PSA sec 4.1].
    pub(super) fn psa_question(&mut self, name: &str, first: &'a ast::Expr, second: Option<&'a ast::Expr>) -> Val {
        use super::fold::{binary, unary};
        let decided = self.value(first);
        let field = |l: &mut Self, v: &Val, name: &str| match v {
            Val::Struct(fields, _) => match fields.iter().find(|(f, _)| &**f == name) {
                Some((_, v)) => l.as_scalar(v.clone()),
                None => Expr::boolean(false),
            },
            _ => Expr::boolean(false),
        };
        if self.stage != Stage::Deparser {
            self.error(first.span, Rule::Psa, format!("`{name}` can only be called in a deparser"));
            return Val::Broken;
        }
        let dropped = field(self, &decided, "drop");
        let kept = unary(UnaryOp::Not, dropped);
        Val::Scalar(match name {
            "psa_clone_i2e" | "psa_clone_e2e" => field(self, &decided, "clone"),
            "psa_resubmit" => binary(BinaryOp::And, kept, field(self, &decided, "resubmit")),
            "psa_normal" => binary(BinaryOp::And, kept, unary(UnaryOp::Not, field(self, &decided, "resubmit"))),
            _ => {
                let input = second.map_or(Val::Broken, |e| self.value(e));
                let port = field(self, &input, "egress_port");
                binary(BinaryOp::And, kept, binary(BinaryOp::Eq, port, Expr::constant(RECIRCULATE, Type::bit(32))))
            }
        })
    }
}
