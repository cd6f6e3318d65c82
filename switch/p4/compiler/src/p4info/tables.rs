//! Tables and actions [P4Runtime sec 6.4.1 to 6.4.3].

use fairlane_syntax::annotations::find;
use fairlane_syntax::{Code, Diagnostic};
use num_bigint::BigInt;

use super::annotations::Written;
use super::ids::{self, Prefix};
use super::types::padded;
use super::Emitter;
use crate::control_plane::{KeyField, Table, TableAction};

/// The size of a table that gives none, as p4c has it.
const DEFAULT_SIZE: u64 = 1024;

impl Emitter<'_> {
    pub(super) fn tables(&mut self) {
        for table in &self.plane.tables {
            self.text.open("tables");
            self.preamble(Prefix::Table, &table.name, &table.annotations, &[]);
            self.match_fields("match_fields", &table.keys, &[]);
            for action in &table.actions {
                self.action_reference(table, action);
            }
            self.default_action(table);
            if let Some(profile) = &table.implementation {
                self.text.number("implementation_id", self.symbols.id(Prefix::ActionProfile, profile));
            }
            if let Some(counter) = &table.direct_counter {
                self.text.number("direct_resource_ids", self.symbols.id(Prefix::DirectCounter, counter));
            }
            if let Some(meter) = &table.direct_meter {
                self.text.number("direct_resource_ids", self.symbols.id(Prefix::DirectMeter, meter));
            }
            self.text.number("size", table.size.filter(|size| *size != 0).unwrap_or(DEFAULT_SIZE));
            if table.support_timeout {
                self.text.word("idle_timeout_behavior", "NOTIFY_CONTROL");
            }
            self.text.flag("is_const_table", table.const_entries);
            self.text.flag("has_initial_entries", !table.entries.is_empty());
            self.text.close();
        }
    }

    /// `MatchField`, of tables and value sets. Annotations named in `but` are left out.
    pub(super) fn match_fields(&mut self, name: &str, fields: &[KeyField], but: &[&str]) {
        let ids = ids::fields(fields.iter().map(|field| field.annotations.as_slice()), self.diagnostics);
        for (field, id) in fields.iter().zip(ids).filter(|(field, _)| field.match_kind != "selector") {
            let written = Written::of(&field.annotations, but);
            let standard = match field.match_kind.as_str() {
                "exact" => Some("EXACT"),
                "lpm" => Some("LPM"),
                "ternary" => Some("TERNARY"),
                "range" => Some("RANGE"),
                "optional" => Some("OPTIONAL"),
                _ => None,
            };
            self.text.open(name);
            self.text.number("id", id);
            self.text.string("name", &field.name);
            written.unstructured(&mut self.text);
            self.text.number("bitwidth", self.types.width(&field.ty, field.bits));
            if let Some(kind) = standard {
                self.text.word("match_type", kind);
            }
            written.doc(&mut self.text);
            if standard.is_none() {
                self.text.string("other_match_type", &field.match_kind);
            }
            self.types.name(&field.ty, "type_name", &mut self.text);
            written.structured(&mut self.text);
            self.text.close();
        }
    }

    /// `ActionRef`
    fn action_reference(&mut self, table: &Table, action: &TableAction) {
        if action.table_only && action.default_only {
            let place = find(&action.annotations, "tableonly").or_else(|| find(&action.annotations, "defaultonly"));
            let message = format!("action `{}` of table `{}` is both `@tableonly` and `@defaultonly`", action.action, table.name);
            let error = Diagnostic::error(Code::Annotation, place.map(|found| found.span).unwrap_or_default(), message);
            self.diagnostics.push(if place.is_some() { error } else { error.without_span() });
        }
        self.text.open("action_refs");
        self.text.number("id", self.symbols.id(Prefix::Action, &action.action));
        let written = Written::of(&action.annotations, &[]);
        written.unstructured(&mut self.text);
        // The compiler adds `NoAction` where a table has no default action; p4c marks it so.
        if action.default_only && find(&action.annotations, "defaultonly").is_none() {
            self.text.repeated_string("annotations", "@defaultonly");
        }
        if action.table_only {
            self.text.word("scope", "TABLE_ONLY");
        } else if action.default_only {
            self.text.word("scope", "DEFAULT_ONLY");
        }
        written.structured(&mut self.text);
        self.text.close();
    }

    /// `const_default_action_id`, `TableActionCall`
    fn default_action(&mut self, table: &Table) {
        let Some(default) = &table.default_action else { return };
        let id = self.symbols.id(Prefix::Action, &default.action);
        if default.is_const {
            self.text.number("const_default_action_id", id);
        }
        self.text.open("initial_default_action");
        self.text.number("action_id", id);
        self.arguments("arguments", &default.action, &default.arguments);
        self.text.close();
    }

    /// The values of an action's parameters, each as a message of that name.
    pub(super) fn arguments(&mut self, name: &str, action: &str, values: &[BigInt]) {
        let Some(params) = self.plane.actions.iter().find(|known| known.name == action).map(|action| &action.params) else { return };
        let ids = ids::fields(params.iter().map(|param| param.annotations.as_slice()), self.diagnostics);
        for ((param, id), value) in params.iter().zip(ids).zip(values) {
            let bits = match self.types.width(&param.ty, param.bits) {
                0 => param.bits,
                bits => bits,
            };
            self.text.open(name);
            self.text.number("param_id", id);
            self.text.bytes("value", &padded(value, bits));
            self.text.close();
        }
    }

    pub(super) fn actions(&mut self) {
        for action in self.plane.actions.iter().filter(|action| find(&action.annotations, "hidden").is_none()) {
            self.text.open("actions");
            self.preamble(Prefix::Action, &action.name, &action.annotations, &[]);
            let ids = ids::fields(action.params.iter().map(|param| param.annotations.as_slice()), self.diagnostics);
            for (param, id) in action.params.iter().zip(ids) {
                let written = Written::of(&param.annotations, &[]);
                let is_enum = matches!(param.ty, crate::control_plane::DataType::Enum(_));
                self.text.open("params");
                self.text.number("id", id);
                self.text.string("name", &param.name);
                written.unstructured(&mut self.text);
                self.text.number("bitwidth", if is_enum { 0 } else { self.types.width(&param.ty, param.bits) });
                written.doc(&mut self.text);
                self.types.name(&param.ty, "type_name", &mut self.text);
                self.types.enum_name(&param.ty, "type_name", &mut self.text);
                written.structured(&mut self.text);
                self.text.close();
            }
            self.text.close();
        }
    }
}
