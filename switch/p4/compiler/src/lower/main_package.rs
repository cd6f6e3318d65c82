//! From `main` to the blocks of the architecture: here those of v1model, in [`super::psa`] those of PSA.

use std::collections::HashMap;
use std::rc::Rc;

use fairlane_syntax::annotations::find;
use fairlane_syntax::ast::*;

use super::builder::ParserBuilder;
use super::instances::{Instance, InstanceKind};
use super::names::Unique;
use super::storage::Storage;
use super::{names, Binding, Lower, Stage};
use crate::check::CallInfo;
use crate::ir::{self, Expr, HeaderRef, Place};
use crate::rule::Rule;
use crate::types::Type;

/// The variables that the blocks share.
struct Shared {
    headers: Storage,
    metadata: Storage,
    standard: Storage,
}

impl<'a> Lower<'a, '_> {
    pub(super) fn run(&mut self) -> Option<()> {
        self.scopes.push(HashMap::new());
        self.describe_types();
        let main = self.main()?;
        let DeclarationKind::Instantiation(inst) = &main.kind else { return None };
        self.control_plane.package_annotations = main.annotations.clone();
        let info = self.checked.calls.get(&inst.ty.id).cloned()?;
        let Type::Package(package) = self.type_of(inst.ty.id) else {
            self.error(main.span, Rule::Programs, "`main` must be an instance of a package");
            return None;
        };
        let done = match (&*package.name, info.signature.params.len()) {
            ("V1Switch", 6) => self.v1_switch(&info, &inst.arguments),
            ("PSA_Switch", 4) => self.psa_switch(&info, &inst.arguments),
            _ => {
                self.report.error_help(
                    main.span,
                    Rule::V1model,
                    format!("`main` is a `{}`, which is neither v1model's switch of six blocks nor PSA's", package.name),
                    "instantiate `V1Switch(parser, verify, ingress, egress, compute, deparser) main;`, or \
                     `PSA_Switch(ingress, PacketReplicationEngine(), egress, BufferingQueueingEngine()) main;`",
                );
                None
            }
        };
        self.targets_of_meters();
        done
    }

    /// The target has a field for the colour of each direct meter of a table, whether the program asks for it or not.
    fn targets_of_meters(&mut self) {
        for i in 0..self.program.meters.len() {
            let m = &self.program.meters[i];
            if m.target.is_none() && matches!(m.cells, ir::Cells::Direct(Some(_))) {
                let name = format!("{}.colour", m.name);
                let target = self.scalar_variable(&name, &Type::bit(32));
                self.program.meters[i].target = Some(target);
            }
        }
    }

    /// The blocks that a package is given, numbered from `first + 1` in the order of the control plane's objects.
    pub(super) fn blocks(&mut self, info: &CallInfo, arguments: &'a [Argument], first: usize) -> Option<Vec<Rc<Instance<'a>>>> {
        let mut blocks: Vec<Rc<Instance<'a>>> = Vec::new();
        for i in 0..info.signature.params.len() {
            let a = info.order.get(i).copied().flatten().and_then(|a| arguments.get(a))?;
            let t = self.type_of(a.value.id);
            let (Type::Parser(n) | Type::Control(n)) = &t else { return None };
            self.position = vec![first + i + 1];
            // The blocks of `main` are known by the names of their types, whatever `@name` those have.
            blocks.push(self.instance_named(&a.value, &n.name, &[])?);
            self.position.clear();
        }
        Some(blocks)
    }

    fn v1_switch(&mut self, info: &CallInfo, arguments: &'a [Argument]) -> Option<()> {
        self.control_plane.arch = "v1model".into();
        let blocks = self.blocks(info, arguments, 0)?;
        self.make_globals();
        self.global_value_sets();
        self.substitution.clone_from(&blocks[0].types);
        let shared = self.shared(&blocks)?;
        self.field_lists(&shared.metadata, &[]);
        let Shared { headers, metadata, standard } = shared;
        let with_standard = [headers.clone(), metadata.clone(), standard].map(Binding::Storage);
        let without = [headers.clone(), metadata].map(Binding::Storage);
        self.run_parser("parser", &blocks[0], &with_packet(&with_standard));
        self.program.verify = self.run_block(&blocks[1], Stage::Verify, &without);
        self.program.ingress = self.run_pipeline("ingress", &blocks[2], Stage::Ingress, &with_standard);
        self.program.egress = self.run_pipeline("egress", &blocks[3], Stage::Egress, &with_standard);
        self.program.update = self.run_block(&blocks[4], Stage::Update, &without);
        self.run_deparser("deparser", &blocks[5], false, &with_packet(&[Binding::Storage(headers)]));
        Some(())
    }

    fn main(&mut self) -> Option<&'a Declaration> {
        let found = self.checked.globals.get("main").and_then(|ids| ids.first()).map(|id| self.decl(*id));
        match found {
            Some(d) if matches!(d.kind, DeclarationKind::Instantiation(_)) => Some(d),
            Some(d) => {
                self.error(d.span, Rule::Programs, "`main` must be an instance of a package");
                None
            }
            None => {
                let end = self.checked.program.declarations.last().map_or(Span::default(), |d| d.span);
                self.report.error_help(end, Rule::Programs, "the program has no `main`", "end it with `V1Switch(...) main;`");
                None
            }
        }
    }

    pub(super) fn global_value_sets(&mut self) {
        for d in &self.checked.decls {
            if let DeclarationKind::ValueSet(v) = &d.kind {
                let name = self.make_value_set(v, &d.annotations, "");
                self.bind(&v.name.name, Binding::ValueSet(name));
            }
        }
    }

    fn block_span(&self, b: &Instance<'a>) -> Span {
        match &b.kind {
            InstanceKind::Control { decl, .. } | InstanceKind::Parser { decl, .. } => self.decl(*decl).span,
            _ => Span::default(),
        }
    }

    pub(super) fn parameters(&self, b: &Instance<'a>) -> &'a [Parameter] {
        match &b.kind {
            InstanceKind::Control { decl, .. } | InstanceKind::Parser { decl, .. } => match &self.decl(*decl).kind {
                DeclarationKind::Control(c) => &c.parameters,
                DeclarationKind::Parser(p) => &p.parameters,
                _ => &[],
            },
            _ => &[],
        }
    }

    /// Allocates headers, user metadata and standard metadata by the parameters of the parser.
    fn shared(&mut self, blocks: &[Rc<Instance<'a>>]) -> Option<Shared> {
        let params = self.parameters(&blocks[0]);
        let [_, headers, metadata, standard] = params else { return None };
        self.scalars();
        let standard_type = self.type_of(standard.ty.id);
        let standard = self.standard_metadata(&standard_type, "standard_metadata", "standard_metadata");
        let headers = self.parsed_headers(headers, &[])?;
        let metadata = self.user_metadata(metadata, "userMetadata")?;
        Some(Shared { headers, metadata, standard })
    }

    /// Allocates the headers of a parser, each by its own name, but for those of a name and type that are known already.
    pub(super) fn parsed_headers(&mut self, param: &Parameter, known: &[(Symbol, Type, Storage)]) -> Option<Storage> {
        let ty = self.type_of(param.ty.id);
        let psa = &*self.control_plane.arch == "psa";
        let Type::Struct(n) = &ty else {
            if psa {
                return Some(self.allocate(&param.name.name, &ty));
            }
            self.error(param.ty.span, Rule::Bmv2, "the parsed headers must be a struct");
            return None;
        };
        let mut parts = Vec::new();
        for (f, (name, t)) in self.declared_fields(n).iter().zip(self.fields(n)) {
            if !psa && !self.is_header_like(&t, 0) {
                self.error(
                    f.span,
                    Rule::Bmv2,
                    format!("field `{name}` of the parsed headers must be a header, a stack or a header union, not `{t}`"),
                );
                return None;
            }
            let public = names::name_annotation(&f.annotations).unwrap_or_else(|| name.clone());
            let s = match known.iter().find(|(n, u, _)| *n == name && *u == t) {
                Some((_, _, s)) => s.clone(),
                None => self.allocate(&public, &t),
            };
            parts.push((name, s));
        }
        Some(Storage::Struct(parts, ty))
    }

    pub(super) fn user_metadata(&mut self, param: &Parameter, name: &str) -> Option<Storage> {
        let ty = self.type_of(param.ty.id);
        if !matches!(ty, Type::Struct(_)) {
            self.error(param.ty.span, Rule::Bmv2, format!("the user metadata must be a struct, not `{ty}`"));
            return None;
        }
        Some(self.allocate(name, &ty))
    }

    fn is_header_like(&self, t: &Type, depth: u32) -> bool {
        match self.strip(t) {
            Type::Header(_) | Type::Stack(..) | Type::Union(_) => true,
            Type::Struct(n) => depth < 16 && self.fields(&n).iter().all(|(_, t)| self.is_header_like(t, depth + 1)),
            _ => false,
        }
    }

    /// Metadata of the architecture: an instance that the target knows by name.
    pub(super) fn standard_metadata(&mut self, t: &Type, type_name: &str, name: &str) -> Storage {
        let Type::Struct(n) = t else { return Storage::Nowhere };
        let flat = self.flat_fields(n);
        let ty = self.add_header_type(t, type_name.into(), flat.clone(), true);
        let unique = self.unique.name(name);
        let id = self.add_header(unique, ty);
        let declared = self.declared_fields(n);
        for f in declared {
            if let Some(alias) = names::string_annotation(&f.annotations, "alias") {
                self.program.aliases.push((alias, name.into(), f.name.name.clone()));
            }
        }
        let parts = flat
            .into_iter()
            .enumerate()
            .map(|(index, (field, ty))| (field.clone(), Storage::Scalar(Place { header: HeaderRef::Instance(id), field, index, ty })))
            .collect();
        Storage::Struct(parts, t.clone())
    }

    /// `@field_list(n)` on fields of the user metadata: what clone, resubmit and recirculate keep. On a field that is a struct it
    /// stands for all members; members may have it, too.
    fn field_lists(&mut self, metadata: &Storage, around: &[u32]) {
        let Storage::Struct(parts, t) = metadata else { return };
        let Type::Struct(n) = self.strip(t) else { return };
        for (f, (_, member)) in self.declared_fields(&n).iter().zip(parts) {
            let mut lists = around.to_vec();
            let given = find(&f.annotations, "field_list").map_or(&[][..], |a| &a.values);
            let numbers = match given {
                [] => names::int_annotation(&f.annotations, "field_list"),
                values => values.iter().filter_map(|e| self.constant_int(e)).collect(),
            };
            for index in numbers {
                let Ok(index) = u32::try_from(index) else {
                    self.error(f.span, Rule::V1model, "the number of a field list must fit into 32 bits");
                    continue;
                };
                let id = match self.field_list_ids.get(&index) {
                    Some(id) => *id,
                    None => {
                        let id = self.new_field_list(format!("field_list{index}"), Vec::new(), Span::default());
                        self.field_list_ids.insert(index, id);
                        id
                    }
                };
                if !lists.contains(&id) {
                    lists.push(id);
                }
            }
            match member {
                Storage::Scalar(p) => {
                    for l in self.program.field_lists.iter_mut().filter(|l| lists.contains(&l.id)) {
                        l.elements.push(Expr::place(p.clone()));
                    }
                }
                Storage::Struct(..) => self.field_lists(member, &lists),
                _ if lists.is_empty() => {}
                _ => self.error(f.span, Rule::Bmv2, "a header cannot be kept: `@field_list` stands on fields of bits or structs of them"),
            }
        }
    }

    pub(super) fn new_field_list(&mut self, name: String, elements: Vec<Expr>, span: Span) -> u32 {
        let id = self.program.field_lists.len() as u32 + 1;
        self.program.field_lists.push(ir::FieldList { id, name, elements, span });
        id
    }

    /// Lowers a parser whose parameters stand for `bound`, in order.
    pub(super) fn run_parser(&mut self, name: &str, b: &Rc<Instance<'a>>, bound: &[Binding<'a>]) {
        let InstanceKind::Parser { decl, args } = &b.kind else { return };
        let DeclarationKind::Parser(p) = &self.decl(*decl).kind else { return };
        self.stage = Stage::Parser;
        let mut scope: HashMap<Symbol, Binding<'a>> = args.iter().cloned().collect();
        scope.extend(p.parameters.iter().zip(bound).map(|(p, b)| (p.name.name.clone(), b.clone())));
        self.prefix = b.name.clone();
        self.scopes.push(scope);
        self.state_names = Unique::default();
        // An entry state before `start` holds the initial values of locals.
        self.builder.parser = Some(ParserBuilder::new("$entry".into()));
        self.parser_body(p, ir::Target::Accept, str::to_owned);
        self.scopes.pop();
        self.prefix.clear();
        if let Some(b) = self.builder.parser.take() {
            self.program.parsers.push(ir::Parser { name: name.into(), states: b.states });
        }
    }

    pub(super) fn run_pipeline(&mut self, name: &str, b: &Rc<Instance<'a>>, stage: Stage, bound: &[Binding<'a>]) -> ir::Pipeline {
        let body = self.run_block(b, stage, bound);
        ir::Pipeline { name: name.into(), body, span: self.block_span(b) }
    }

    pub(super) fn run_deparser(&mut self, name: &str, b: &Rc<Instance<'a>>, computes: bool, bound: &[Binding<'a>]) {
        let body = self.run_block(b, Stage::Deparser, bound);
        self.program.deparsers.push(ir::Deparser { name: name.into(), body, computes, span: self.block_span(b) });
    }

    /// Lowers a control whose parameters stand for `bound`, in order.
    fn run_block(&mut self, b: &Rc<Instance<'a>>, stage: Stage, bound: &[Binding<'a>]) -> Vec<ir::Stmt> {
        self.stage = stage;
        let InstanceKind::Control { decl, args, state } = &b.kind else { return Vec::new() };
        let DeclarationKind::Control(c) = &self.decl(*decl).kind else { return Vec::new() };
        let bound = self.parameters(b).iter().zip(bound).map(|(p, b)| (p.name.name.clone(), b.clone())).collect();
        self.collect(|l| l.run_control(c, b, args, state, bound))
    }
}

/// Parameters of a parser or deparser: the packet first.
pub(super) fn with_packet<'a>(rest: &[Binding<'a>]) -> Vec<Binding<'a>> {
    let packet = Instance { name: "packet".into(), kind: InstanceKind::Packet, position: Vec::new(), types: Vec::new() };
    std::iter::once(Binding::Instance(Rc::new(packet))).chain(rest.iter().cloned()).collect()
}
