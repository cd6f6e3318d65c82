//! The entries of the source as a `p4.v1.WriteRequest`, in protobuf's text format [P4Runtime sec 9.1], as p4c writes them.

use fairlane_syntax::Diagnostics;
use num_bigint::BigInt;
use num_traits::One;

use super::ids::{self, Prefix, Symbols};
use super::text::Text;
use super::types::{padded, Types};
use super::Emitter;
use crate::control_plane::{ControlPlane, Entry, EntryMatch, KeyField, Table};

/// Writes the entries of a program whose P4Info has been written.
pub fn entries(plane: &ControlPlane) -> String {
    // What is wrong with names and ids has been told when the P4Info was written.
    let mut told = Diagnostics::default();
    let symbols = Symbols::collect(plane, &mut told);
    let mut emitter = Emitter { plane, symbols, types: Types::new(plane), diagnostics: &mut told, text: Text::default() };
    emitter.text.line("# proto-file: p4/v1/p4runtime.proto");
    emitter.text.line("# proto-message: p4.v1.WriteRequest");
    emitter.text.line("");
    for table in &plane.tables {
        for entry in &table.entries {
            emitter.entry(table, entry);
        }
    }
    emitter.text.finish()
}

impl Emitter<'_> {
    /// `Update`
    fn entry(&mut self, table: &Table, entry: &Entry) {
        self.text.open("updates");
        self.text.word("type", "INSERT");
        self.text.open("entity");
        self.text.open("table_entry");
        self.text.number("table_id", self.symbols.id(Prefix::Table, &table.name));
        let ids = ids::fields(table.keys.iter().map(|key| key.annotations.as_slice()), self.diagnostics);
        let fields = table.keys.iter().zip(ids).filter(|(key, _)| key.match_kind != "selector");
        for ((key, id), wanted) in fields.zip(&entry.matches) {
            self.field_match(key, id, wanted);
        }
        self.text.open("action");
        self.text.open("action");
        self.text.number("action_id", self.symbols.id(Prefix::Action, &entry.action));
        self.arguments("params", &entry.action, &entry.arguments);
        self.text.close();
        self.text.close();
        self.text.number("priority", entry.priority);
        self.text.flag("is_const", table.const_entries || entry.is_const);
        self.text.close();
        self.text.close();
        self.text.close();
    }

    /// `FieldMatch`; one that takes everything is left out.
    fn field_match(&mut self, key: &KeyField, id: u32, wanted: &EntryMatch) {
        let bits = match self.types.width(&key.ty, key.bits) {
            0 => key.bits,
            bits => bits,
        };
        let all: BigInt = (BigInt::one() << bits) - 1;
        let (kind, first, second, prefix) = match wanted {
            EntryMatch::DontCare | EntryMatch::Lpm(_, 0) => return,
            EntryMatch::Range(low, high) if *low == BigInt::from(0) && *high == all => return,
            EntryMatch::Exact(value) if key.match_kind == "optional" => ("optional", ("value", value), None, 0),
            EntryMatch::Exact(value) => ("exact", ("value", value), None, 0),
            EntryMatch::Lpm(value, length) => ("lpm", ("value", value), None, *length),
            EntryMatch::Ternary(value, mask) => ("ternary", ("value", value), Some(("mask", mask)), 0),
            EntryMatch::Range(low, high) => ("range", ("low", low), Some(("high", high)), 0),
        };
        self.text.open("match");
        self.text.number("field_id", id);
        self.text.open(kind);
        for (name, value) in [Some(first), second].into_iter().flatten() {
            self.text.bytes(name, &padded(value, bits));
        }
        self.text.number("prefix_len", prefix);
        self.text.close();
        self.text.close();
    }
}
