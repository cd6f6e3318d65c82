//! From `main` to the blocks of the v1model architecture.

use std::collections::HashMap;
use std::rc::Rc;

use fairlane_syntax::ast::*;

use super::builder::ParserBuilder;
use super::instances::{Instance, InstanceKind};
use super::storage::Storage;
use super::{names, Binding, Lower, Stage};
use crate::ir::{self, Expr, HeaderRef, Place};
use crate::report::{BMV2, V1MODEL};
use crate::types::Type;

/// The variables that the blocks share.
struct Shared {
    headers: Storage,
    metadata: Storage,
    standard: Storage,
}

impl<'a> Lower<'a, '_> {
    pub(super) fn run(&mut self) -> Option<()> {
        self.control_plane.arch = "v1model".into();
        self.scopes.push(HashMap::new());
        self.describe_types();
        let main = self.main()?;
        let DeclarationKind::Instantiation(inst) = &main.kind else { return None };
        self.control_plane.package_annotations = main.annotations.clone();
        let info = self.checked.calls.get(&inst.ty.id).cloned()?;
        let Type::Package(package) = self.type_of(inst.ty.id) else {
            self.error(main.span, "P4_16 6.6 (P4 programs)", "`main` must be an instance of a package");
            return None;
        };
        if &*package.name != "V1Switch" || info.signature.params.len() != 6 {
            self.report.error_help(
                main.span,
                V1MODEL,
                format!("`main` is a `{}`, which is not v1model's switch of six blocks", package.name),
                "instantiate `V1Switch(parser, verify, ingress, egress, compute, deparser) main;`",
            );
            return None;
        }
        let mut blocks: Vec<Rc<Instance<'a>>> = Vec::new();
        for i in 0..6 {
            let a = info.order.get(i).copied().flatten().and_then(|a| inst.arguments.get(a))?;
            let t = self.type_of(a.value.id);
            let (Type::Parser(n) | Type::Control(n)) = &t else { return None };
            self.position = vec![i + 1];
            // The blocks of `main` are known by the names of their types, whatever `@name` those have.
            blocks.push(self.instance_named(&a.value, &n.name, &[])?);
            self.position.clear();
        }
        self.make_globals();
        self.global_value_sets();
        self.substitution.clone_from(&blocks[0].types);
        let shared = self.shared(&blocks)?;
        self.field_lists(&shared.metadata, &[]);
        self.run_parser(&blocks[0], &shared);
        let std = Some(&shared.standard);
        self.program.verify = self.run_block(&blocks[1], Stage::Verify, &[&shared.headers, &shared.metadata], None);
        let ingress = self.run_block(&blocks[2], Stage::Ingress, &[&shared.headers, &shared.metadata], std);
        self.program.ingress = ir::Pipeline { name: "ingress".into(), body: ingress, span: self.block_span(&blocks[2]) };
        let egress = self.run_block(&blocks[3], Stage::Egress, &[&shared.headers, &shared.metadata], std);
        self.program.egress = ir::Pipeline { name: "egress".into(), body: egress, span: self.block_span(&blocks[3]) };
        self.program.update = self.run_block(&blocks[4], Stage::Update, &[&shared.headers, &shared.metadata], None);
        let packet = Rc::new(Instance { name: "packet".into(), kind: InstanceKind::Packet, position: Vec::new(), types: Vec::new() });
        let deparser = self.run_deparser(&blocks[5], packet, &shared.headers);
        self.program.deparser = (deparser, self.block_span(&blocks[5]));
        Some(())
    }

    fn main(&mut self) -> Option<&'a Declaration> {
        let found = self.checked.globals.get("main").and_then(|ids| ids.first()).map(|id| self.decl(*id));
        match found {
            Some(d) if matches!(d.kind, DeclarationKind::Instantiation(_)) => Some(d),
            Some(d) => {
                self.error(d.span, "P4_16 6.6 (P4 programs)", "`main` must be an instance of a package");
                None
            }
            None => {
                let end = self.checked.program.declarations.last().map_or(Span::default(), |d| d.span);
                self.report.error_help(end, "P4_16 6.6 (P4 programs)", "the program has no `main`", "end it with `V1Switch(...) main;`");
                None
            }
        }
    }

    fn global_value_sets(&mut self) {
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

    fn parameters(&self, b: &Instance<'a>) -> &'a [Parameter] {
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
        let standard = self.standard_metadata(&standard_type);
        let headers_type = self.type_of(headers.ty.id);
        let Type::Struct(n) = &headers_type else {
            self.error(headers.ty.span, BMV2, "the parsed headers must be a struct");
            return None;
        };
        let mut parts = Vec::new();
        for (f, (name, t)) in self.declared_fields(n).iter().zip(self.fields(n)) {
            if !self.is_header_like(&t, 0) {
                self.error(
                    f.span,
                    BMV2,
                    format!("field `{name}` of the parsed headers must be a header, a stack or a header union, not `{t}`"),
                );
                return None;
            }
            let public = names::name_annotation(&f.annotations).unwrap_or_else(|| name.clone());
            let s = self.allocate(&public, &t);
            parts.push((name, s));
        }
        let metadata_type = self.type_of(metadata.ty.id);
        if !matches!(metadata_type, Type::Struct(_)) {
            self.error(metadata.ty.span, BMV2, format!("the user metadata must be a struct, not `{metadata_type}`"));
            return None;
        }
        let metadata = self.allocate("userMetadata", &metadata_type);
        Some(Shared { headers: Storage::Struct(parts, headers_type), metadata, standard })
    }

    fn is_header_like(&self, t: &Type, depth: u32) -> bool {
        match self.strip(t) {
            Type::Header(_) | Type::Stack(..) | Type::Union(_) => true,
            Type::Struct(n) => depth < 16 && self.fields(&n).iter().all(|(_, t)| self.is_header_like(t, depth + 1)),
            _ => false,
        }
    }

    fn standard_metadata(&mut self, t: &Type) -> Storage {
        let Type::Struct(n) = t else { return Storage::Nowhere };
        let flat = self.flat_fields(n);
        let ty = self.add_header_type(t, "standard_metadata".into(), flat.clone(), true);
        let name = self.unique.name("standard_metadata");
        let id = self.add_header(name, ty);
        let declared = self.declared_fields(n);
        for f in declared {
            if let Some(alias) = names::string_annotation(&f.annotations, "alias") {
                self.program.aliases.push((alias, "standard_metadata".into(), f.name.name.clone()));
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
            for index in names::int_annotation(&f.annotations, "field_list") {
                let Ok(index) = u32::try_from(index) else {
                    self.error(f.span, V1MODEL, "the number of a field list must fit into 32 bits");
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
                _ => self.error(f.span, BMV2, "a header cannot be kept: `@field_list` stands on fields of bits or structs of them"),
            }
        }
    }

    pub(super) fn new_field_list(&mut self, name: String, elements: Vec<Expr>, span: Span) -> u32 {
        let id = self.program.field_lists.len() as u32 + 1;
        self.program.field_lists.push(ir::FieldList { id, name, elements, span });
        id
    }

    fn run_parser(&mut self, b: &Rc<Instance<'a>>, shared: &Shared) {
        let InstanceKind::Parser { decl, args } = &b.kind else { return };
        let DeclarationKind::Parser(p) = &self.decl(*decl).kind else { return };
        self.stage = Stage::Parser;
        let packet = Rc::new(Instance { name: "packet".into(), kind: InstanceKind::Packet, position: Vec::new(), types: Vec::new() });
        let storages = [&shared.headers, &shared.metadata, &shared.standard];
        let mut scope: HashMap<Symbol, Binding<'a>> = args.iter().cloned().collect();
        for (i, param) in p.parameters.iter().enumerate() {
            let binding = match i {
                0 => Binding::Instance(packet.clone()),
                i => Binding::Storage(storages[(i - 1).min(2)].clone()),
            };
            scope.insert(param.name.name.clone(), binding);
        }
        self.prefix = b.name.clone();
        self.scopes.push(scope);
        // An entry state before `start` holds the initial values of locals.
        self.builder.parser = Some(ParserBuilder::new("$entry".into()));
        self.parser_body(p, ir::Target::Accept, str::to_owned);
        self.scopes.pop();
        self.prefix.clear();
        if let Some(b) = self.builder.parser.take() {
            self.program.parser = ir::Parser { states: b.states };
        }
    }

    fn run_block(&mut self, b: &Rc<Instance<'a>>, stage: Stage, storages: &[&Storage], standard: Option<&Storage>) -> Vec<ir::Stmt> {
        self.stage = stage;
        let all: Vec<&Storage> = storages.iter().copied().chain(standard).collect();
        let bound: Vec<(Symbol, Binding<'a>)> =
            self.parameters(b).iter().zip(all).map(|(p, s)| (p.name.name.clone(), Binding::Storage(s.clone()))).collect();
        self.run_top(b, bound)
    }

    fn run_deparser(&mut self, b: &Rc<Instance<'a>>, packet: Rc<Instance<'a>>, headers: &Storage) -> Vec<ir::Stmt> {
        self.stage = Stage::Deparser;
        let params = self.parameters(b);
        let bound = params
            .iter()
            .enumerate()
            .map(|(i, p)| {
                let binding = if i == 0 { Binding::Instance(packet.clone()) } else { Binding::Storage(headers.clone()) };
                (p.name.name.clone(), binding)
            })
            .collect();
        self.run_top(b, bound)
    }

    fn run_top(&mut self, b: &Rc<Instance<'a>>, bound: Vec<(Symbol, Binding<'a>)>) -> Vec<ir::Stmt> {
        let InstanceKind::Control { decl, args, state } = &b.kind else { return Vec::new() };
        let DeclarationKind::Control(c) = &self.decl(*decl).kind else { return Vec::new() };
        self.collect(|l| l.run_control(c, b, args, state, bound))
    }
}
