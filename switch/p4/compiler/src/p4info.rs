//! The P4Info back end: what a program shows to the control plane, as a `p4.config.v1.P4Info` message in protobuf's text
//! format [P4Runtime sec 6]. The text is what p4c writes for the same program, ids and aliases
//! included, so that controllers need not know which compiler ran.

mod annotations;
mod entries;
mod ids;
mod tables;
mod text;
mod types;

use std::collections::{BTreeMap, HashSet};

use fairlane_syntax::annotations::find;
use fairlane_syntax::ast::{Annotation, AnnotationBody, AnnotationTokenKind, ExprKind};
use fairlane_syntax::{Code, Diagnostic, Diagnostics};
use num_traits::ToPrimitive;

use crate::control_plane::{ActionProfile, ControlPlane, ControllerHeader, Counter, Meter, Param, TypeDefinitionKind, Unit};
use annotations::Written;
pub use entries::entries;
use ids::{Prefix, Symbols};
use text::Text;
use types::Types;

/// Writes the P4Info of a program. What stands in the way (an `@id` given twice or with a wrong prefix, two objects
/// of one name, an annotation without its argument) is reported; the text is then not to be used.
pub fn emit(plane: &ControlPlane, diagnostics: &mut Diagnostics) -> String {
    let symbols = Symbols::collect(plane, diagnostics);
    check_names(plane, diagnostics);
    let mut emitter = Emitter { plane, symbols, types: Types::new(plane), diagnostics, text: Text::default() };
    emitter.text.line("# proto-file: p4/config/v1/p4info.proto");
    emitter.text.line("# proto-message: p4.config.v1.P4Info");
    emitter.text.line("");
    emitter.package();
    emitter.tables();
    emitter.actions();
    emitter.action_profiles();
    emitter.counters();
    emitter.meters();
    emitter.controller_headers();
    emitter.value_sets();
    emitter.registers();
    emitter.digests();
    emitter.type_info();
    emitter.text.finish()
}

struct Emitter<'a> {
    plane: &'a ControlPlane,
    symbols: Symbols,
    types: Types<'a>,
    diagnostics: &'a mut Diagnostics,
    text: Text,
}

impl Emitter<'_> {
    /// `PkgInfo`, from `@pkginfo` and `@platform_property` of the main package.
    fn package(&mut self) {
        let annotations = &self.plane.package_annotations;
        let mut values = BTreeMap::from([("arch".to_string(), self.plane.arch.clone())]);
        let known = ["name", "version", "organization", "contact", "url", "arch"];
        for (key, value) in pairs(find(annotations, "pkginfo")) {
            match value {
                PairValue::String(value) if known.contains(&key.as_str()) => {
                    values.insert(key, value);
                }
                _ => self.report_pair("pkginfo", &key),
            }
        }
        let mut sizes = BTreeMap::new();
        let limits = ["multicast_group_table_size", "multicast_group_table_total_replicas", "multicast_group_table_max_replicas_per_entry"];
        for (key, value) in pairs(find(annotations, "platform_property")) {
            match value {
                PairValue::Integer(value) if limits.contains(&key.as_str()) => {
                    sizes.insert(key, value);
                }
                _ => self.report_pair("platform_property", &key),
            }
        }
        self.text.open("pkg_info");
        let written = Written::of(annotations, &["pkginfo", "platform_property"]);
        for key in ["name", "version"] {
            self.text.string(key, values.get(key).map_or("", String::as_str));
        }
        written.doc(&mut self.text);
        written.unstructured(&mut self.text);
        for key in ["arch", "organization", "contact", "url"] {
            self.text.string(key, values.get(key).map_or("", String::as_str));
        }
        written.structured(&mut self.text);
        if !sizes.is_empty() {
            self.text.open("platform_properties");
            for key in limits {
                self.text.number(key, sizes.get(key).copied().unwrap_or(0));
            }
            self.text.close();
        }
        self.text.close();
    }

    fn report_pair(&mut self, annotation: &str, key: &str) {
        let Some(found) = find(&self.plane.package_annotations, annotation) else { return };
        self.diagnostics.push(Diagnostic::warning(
            Code::Ignore,
            found.span,
            format!("`{key}` in `@{annotation}` is unknown, or its value is of the wrong type; it is ignored"),
        ));
    }

    /// `Preamble`
    fn preamble(&mut self, prefix: Prefix, name: &str, annotations: &[Annotation], but: &[&str]) {
        let id = self.symbols.id(prefix, name);
        let alias = self.symbols.alias(name);
        self.preamble_as(id, name, &alias, annotations, but);
    }

    fn preamble_as(&mut self, id: u32, name: &str, alias: &str, annotations: &[Annotation], but: &[&str]) {
        self.text.open("preamble");
        self.text.number("id", id);
        self.text.string("name", name);
        self.text.string("alias", alias);
        let written = Written::of(annotations, but);
        written.unstructured(&mut self.text);
        written.doc(&mut self.text);
        written.structured(&mut self.text);
        self.text.close();
    }

    fn action_profiles(&mut self) {
        for profile in &self.plane.action_profiles {
            self.text.open("action_profiles");
            let but = ["max_group_size", "selector_size_semantics", "max_member_weight"];
            self.preamble(Prefix::ActionProfile, &profile.name, &profile.annotations, &but);
            let mut tables = profile.tables.clone();
            tables.sort();
            for table in &tables {
                self.text.number("table_ids", self.symbols.id(Prefix::Table, table));
            }
            self.text.flag("with_selector", profile.selector);
            self.text.number("size", profile.size);
            self.group_size(profile);
            self.text.close();
        }
    }

    /// `max_group_size` and `selector_size_semantics`, of selectors only.
    fn group_size(&mut self, profile: &ActionProfile) {
        if !profile.selector {
            return;
        }
        let integer = |name| find(&profile.annotations, name).map(|found| (found.span, found.integer()));
        match integer("max_group_size") {
            Some((_, Some(size))) => self.text.number("max_group_size", size),
            Some((span, None)) => self.diagnostics.push(annotation_error(span, "max_group_size", "one integer")),
            None => {}
        }
        let Some(semantics) = find(&profile.annotations, "selector_size_semantics") else { return };
        match semantics.string().as_deref().map(str::to_ascii_lowercase).as_deref() {
            Some("sum_of_weights") => {
                self.text.open("sum_of_weights");
                self.text.close();
            }
            Some("sum_of_members") => {
                self.text.open("sum_of_members");
                if let Some((_, Some(weight))) = integer("max_member_weight") {
                    self.text.number("max_member_weight", weight);
                }
                self.text.close();
            }
            _ => self.diagnostics.push(annotation_error(
                semantics.span,
                "selector_size_semantics",
                "\"sum_of_weights\" or \"sum_of_members\"",
            )),
        }
    }

    /// `Counter`, then `DirectCounter` in the order of their tables.
    fn counters(&mut self) {
        let plane = self.plane;
        for counter in plane.counters.iter().filter(|counter| counter.size.is_some()) {
            self.text.open("counters");
            self.preamble(Prefix::Counter, &counter.name, &counter.annotations, &[]);
            self.unit(counter.unit);
            self.text.number("size", counter.size.unwrap_or(0));
            self.index_type(counter.index.as_ref());
            self.text.close();
        }
        for name in plane.tables.iter().filter_map(|table| table.direct_counter.as_ref()) {
            let Some(counter) = plane.counters.iter().find(|counter| counter.name == *name) else { continue };
            self.text.open("direct_counters");
            self.preamble(Prefix::DirectCounter, &counter.name, &counter.annotations, &[]);
            self.unit(counter.unit);
            self.direct_table(counter.table.as_deref());
            self.text.close();
        }
    }

    /// `Meter`, then `DirectMeter` in the order of their tables.
    fn meters(&mut self) {
        let plane = self.plane;
        for meter in plane.meters.iter().filter(|meter| meter.size.is_some()) {
            self.text.open("meters");
            self.preamble(Prefix::Meter, &meter.name, &meter.annotations, &[]);
            self.unit(meter.unit);
            self.text.number("size", meter.size.unwrap_or(0));
            self.index_type(meter.index.as_ref());
            self.text.close();
        }
        for name in plane.tables.iter().filter_map(|table| table.direct_meter.as_ref()) {
            let Some(meter) = plane.meters.iter().find(|meter| meter.name == *name) else { continue };
            self.text.open("direct_meters");
            self.preamble(Prefix::DirectMeter, &meter.name, &meter.annotations, &[]);
            self.unit(meter.unit);
            self.direct_table(meter.table.as_deref());
            self.text.close();
        }
    }

    /// `CounterSpec`, `MeterSpec`
    fn unit(&mut self, unit: Unit) {
        self.text.open("spec");
        self.text.word(
            "unit",
            match unit {
                Unit::Packets => "PACKETS",
                Unit::Bytes => "BYTES",
                Unit::PacketsAndBytes => "BOTH",
            },
        );
        self.text.close();
    }

    fn direct_table(&mut self, table: Option<&str>) {
        if let Some(table) = table {
            self.text.number("direct_table_id", self.symbols.id(Prefix::Table, table));
        }
    }

    fn controller_headers(&mut self) {
        for header in &self.plane.controller_headers {
            self.text.open("controller_packet_metadata");
            let id = self.symbols.id(Prefix::ControllerHeader, &controller_type(self.plane, header));
            // The message is known by the name in the annotation, not by that of the type (P4Runtime 6.4.7).
            let annotations = controller_annotations(self.plane, header);
            self.preamble_as(id, &header.name, &header.name, annotations, &[]);
            let fields = self.types.flat_fields(&header.fields);
            let ids = ids::fields(fields.iter().map(|field| field.annotations.as_slice()), self.diagnostics);
            let shown = |field: &Param| find(&field.annotations, "hidden").is_none();
            for (field, id) in fields.iter().zip(ids).filter(|(field, _)| shown(field)) {
                self.text.open("metadata");
                self.text.number("id", id);
                self.text.string("name", &field.name);
                let written = Written::of(&field.annotations, &[]);
                written.unstructured(&mut self.text);
                self.text.number("bitwidth", self.types.width(&field.ty, field.bits));
                self.types.name(&field.ty, "type_name", &mut self.text);
                written.structured(&mut self.text);
                self.text.close();
            }
            self.text.close();
        }
    }

    fn value_sets(&mut self) {
        for set in &self.plane.value_sets {
            self.text.open("value_sets");
            self.preamble(Prefix::ValueSet, &set.name, &set.annotations, &[]);
            self.match_fields("match", &set.fields, &["match"]);
            self.text.number("size", set.size);
            self.text.close();
        }
    }

    fn registers(&mut self) {
        for register in &self.plane.registers {
            self.text.open("registers");
            self.preamble(Prefix::Register, &register.name, &register.annotations, &[]);
            self.types.spec("type_spec", &register.ty, &mut self.text);
            self.text.number("size", register.size);
            self.index_type(register.index.as_ref());
            self.text.close();
        }
    }

    fn digests(&mut self) {
        let mut seen = HashSet::new();
        for digest in self.plane.digests.iter().filter(|digest| seen.insert(digest.name.as_str())) {
            self.text.open("digests");
            self.preamble(Prefix::Digest, &digest.name, &[], &[]);
            self.types.spec("type_spec", &digest.ty, &mut self.text);
            self.text.close();
        }
    }

    fn index_type(&mut self, index: Option<&crate::control_plane::DataType>) {
        if let Some(index) = index {
            self.types.name(index, "index_type_name", &mut self.text);
        }
    }

    /// `P4TypeInfo`: the types that were named above, with those that they are made of. p4c opens it, be it empty, for every
    /// program with a table, an extern instance, a call of an extern function or an action with parameters.
    fn type_info(&mut self) {
        let plane = self.plane;
        let present = !plane.tables.is_empty()
            || !plane.action_profiles.is_empty()
            || !plane.counters.is_empty()
            || !plane.meters.is_empty()
            || !plane.registers.is_empty()
            || !plane.digests.is_empty()
            || !plane.controller_headers.is_empty()
            || plane.calls_extern_functions
            || plane.actions.iter().any(|action| !action.params.is_empty());
        if present {
            self.text.open("type_info");
            self.types.definitions(&mut self.text, self.diagnostics);
            self.text.close();
        }
    }
}

fn annotation_error(span: fairlane_syntax::span::Span, name: &str, awaited: &str) -> Diagnostic {
    Diagnostic::error(Code::Annotation, span, format!("`@{name}` awaits {awaited}"))
}

/// The name of the type of a controller header.
fn controller_type(plane: &ControlPlane, header: &ControllerHeader) -> String {
    let found = plane.types.iter().find(|definition| is_controller_type(definition, header));
    found.map_or_else(|| header.name.clone(), |definition| definition.name.clone())
}

/// The annotations of the type of a controller header, `@controller_header` too, as p4c writes them.
fn controller_annotations<'a>(plane: &'a ControlPlane, header: &'a ControllerHeader) -> &'a [Annotation] {
    let found = plane.types.iter().find(|definition| is_controller_type(definition, header));
    found.map_or(&header.annotations, |definition| &definition.annotations)
}

fn is_controller_type(definition: &crate::control_plane::TypeDefinition, header: &ControllerHeader) -> bool {
    matches!(definition.kind, TypeDefinitionKind::Header(_))
        && find(&definition.annotations, "controller_header").and_then(Annotation::string).as_deref() == Some(header.name.as_str())
}

enum PairValue {
    String(String),
    Integer(i64),
    Other,
}

/// The keys and values of `@a[k = v, ..]` and `@a(k = v, ..)`.
fn pairs(annotation: Option<&Annotation>) -> Vec<(String, PairValue)> {
    match annotation.map(|annotation| &annotation.body) {
        Some(AnnotationBody::KeyValues(pairs)) => pairs
            .iter()
            .map(|(key, value)| {
                let value = match &value.kind {
                    ExprKind::String(text) => PairValue::String(text.to_string()),
                    ExprKind::Int(literal) => literal.value.to_i64().map_or(PairValue::Other, PairValue::Integer),
                    _ => PairValue::Other,
                };
                (key.name.to_string(), value)
            })
            .collect(),
        Some(AnnotationBody::Unstructured(tokens)) => tokens
            .split(|token| &*token.text == ",")
            .filter_map(|pair| match pair {
                [key, equals, value] if &*equals.text == "=" => {
                    let value = match &value.kind {
                        AnnotationTokenKind::String(text) => PairValue::String(text.to_string()),
                        AnnotationTokenKind::Integer(literal) => literal.value.to_i64().map_or(PairValue::Other, PairValue::Integer),
                        _ => PairValue::Other,
                    };
                    Some((key.text.to_string(), value))
                }
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// Finds two objects of one kind and name: the control plane could not tell them apart.
fn check_names(plane: &ControlPlane, diagnostics: &mut Diagnostics) {
    let mut seen = HashSet::new();
    let direct = |direct: bool| if direct { "direct " } else { "" };
    let counter = |c: &Counter| (format!("{}counter", direct(c.table.is_some())), c.name.clone());
    let meter = |m: &Meter| (format!("{}meter", direct(m.table.is_some())), m.name.clone());
    let all = (plane.tables.iter().map(|t| ("table".to_string(), t.name.clone())))
        .chain(plane.actions.iter().map(|a| ("action".to_string(), a.name.clone())))
        .chain(plane.action_profiles.iter().map(|p| ("action profile".to_string(), p.name.clone())))
        .chain(plane.counters.iter().map(counter))
        .chain(plane.meters.iter().map(meter))
        .chain(plane.registers.iter().map(|r| ("register".to_string(), r.name.clone())))
        .chain(plane.value_sets.iter().map(|v| ("value set".to_string(), v.name.clone())))
        .chain(plane.controller_headers.iter().map(|h| ("controller header".to_string(), h.name.clone())));
    for (kind, name) in all {
        if !seen.insert((kind.clone(), name.clone())) {
            let message = format!("two {kind}s have the control-plane name `{name}`");
            diagnostics.push(
                Diagnostic::error(Code::DuplicateName, Default::default(), message)
                    .without_span()
                    .help("give one of them another name with `@name`"),
            );
        }
    }
}

#[cfg(test)]
mod tests;
