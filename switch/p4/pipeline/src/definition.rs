//! A program as it is declared and run: its lists, and the code of [`crate::ir`].

use crate::info::*;
use crate::ir::{Ir, Parser, ParserState, SelectCase};
use crate::observe::Observing;

/// What a loaded program declares. [`crate::Program`] is one, and its machine code.
#[derive(Debug, Default)]
pub struct Definition {
    pub(crate) tables: Vec<TableInfo>,
    pub(crate) actions: Vec<ActionInfo>,
    pub(crate) profiles: Vec<ProfileInfo>,
    pub(crate) counters: Vec<CounterInfo>,
    pub(crate) meters: Vec<MeterInfo>,
    pub(crate) registers: Vec<RegisterInfo>,
    pub(crate) value_sets: Vec<ValueSetInfo>,
    pub(crate) digests: Vec<DigestInfo>,
    pub(crate) ir: Ir,
    /// Its code notes conditions and actions, and looks every table up; with [`Observing::Everything`] it notes all else, too.
    pub(crate) observed: Observing,
    /// What the packet log says of it; empty unless its code notes everything.
    pub(crate) notes: Notes,
}

/// A piece of the P4 program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The file, as the compiler was given it.
    pub file: String,
    /// From 1.
    pub line: u64,
    /// From 0.
    pub column: u64,
    /// Its text, or as much of it as is on its first line.
    pub fragment: String,
}

/// A condition of a pipeline.
#[derive(Debug)]
pub struct ConditionNote {
    pub json_id: i64,
    pub name: String,
    pub source: Option<Source>,
}

/// Names and places in the source of what steps name by number.
#[derive(Debug, Default)]
pub struct Notes {
    /// Beside the actions.
    pub actions: Vec<Option<Source>>,
    /// Beside the tables.
    pub tables: Vec<Option<Source>>,
    pub primitives: Vec<Option<Source>>,
    pub conditions: Vec<ConditionNote>,
    /// The parser's `set`s, up to the value.
    pub sets: Vec<String>,
    /// Methods of parsers and deparsers.
    pub methods: Vec<String>,
    /// What primitives and conditions read, where values are noted.
    pub reads: Vec<Vec<Read>>,
}

/// A value that a primitive or a condition reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// `header.field`; of an action's parameter empty.
    pub name: String,
    /// In bits.
    pub width: u32,
    /// Of an action's parameter, which.
    pub param: Option<usize>,
}

macro_rules! lists {
    ($($list:ident $one:ident $by_name:ident $Info:ident $Id:ident $what:literal)*) => {
        impl Definition {$(
            #[doc = concat!("All ", $what, "s; the index is the id.")]
            pub fn $list(&self) -> &[$Info] {
                &self.$list
            }
            #[doc = concat!("The ", $what, " with this id. Panics never: `None` for an id of another program.")]
            pub fn $one(&self, id: $Id) -> Option<&$Info> {
                self.$list.get(id.index())
            }
            #[doc = concat!("The ", $what, " with this fully qualified name.")]
            pub fn $by_name(&self, name: &str) -> Option<$Id> {
                self.$list.iter().position(|x| x.name == name).map(|i| $Id(i as u32))
            }
        )*}
    };
}

lists! {
    tables table table_by_name TableInfo TableId "table"
    actions action action_by_name ActionInfo ActionId "action"
    profiles profile profile_by_name ProfileInfo ProfileId "action profile"
    counters counter counter_by_name CounterInfo CounterId "counter"
    meters meter meter_by_name MeterInfo MeterId "meter"
    registers register register_by_name RegisterInfo RegisterId "register"
    value_sets value_set value_set_by_name ValueSetInfo ValueSetId "value set"
    digests digest digest_by_name DigestInfo DigestId "digest"
}

/// A parser, and where its states lead.
#[derive(Debug)]
pub struct ParserNote<'a> {
    pub json_id: i64,
    pub name: &'a str,
    pub states: Vec<StateNote<'a>>,
}

/// A state of a parser.
#[derive(Debug)]
pub struct StateNote<'a> {
    pub name: &'a str,
    /// The states that may follow, each once; `None` is the parser's end.
    pub next: Vec<Option<u32>>,
}

impl Definition {
    /// Names and places in the source; empty unless the program notes everything ([`crate::Program::observed`]).
    pub fn notes(&self) -> &Notes {
        &self.notes
    }

    /// The parsers: of PSA the egress parser first.
    pub fn parsers(&self) -> Vec<ParserNote<'_>> {
        let ingress = self.ir.psa.as_ref().map(|psa| &psa.parser);
        let state = |state: &'_ ParserState| {
            let cases = state.cases.iter().map(|case| match case {
                SelectCase::Value { next, .. } | SelectCase::Set { next, .. } => *next,
            });
            let mut next: Vec<Option<u32>> = cases.chain([state.default]).collect();
            next.sort_unstable();
            next.dedup();
            next
        };
        let states = |p: &'_ Parser| p.states.iter().map(state).collect::<Vec<_>>();
        std::iter::once(&self.ir.parser)
            .chain(ingress)
            .map(|p| ParserNote {
                json_id: p.id,
                name: &p.name,
                states: p.states.iter().zip(states(p)).map(|(s, next)| StateNote { name: &s.name, next }).collect(),
            })
            .collect()
    }

    /// What a packet holds, as far as the program names it: the fields of metadata and headers, and whether headers are valid.
    pub fn places(&self) -> Vec<crate::exec::values::Place> {
        crate::exec::values::places(&self.ir.layout)
    }

    /// Whether it is a program for PSA; else it is one for v1model.
    pub fn is_psa(&self) -> bool {
        self.ir.psa.is_some()
    }

    /// The number of a parser error (`error.NoMatch` and so on) and its name, as the program has them.
    pub fn error_names(&self) -> &[(u64, String)] {
        &self.ir.error_names
    }

    /// The code of ingress and egress as it is run, an instruction a line; slots are numbers, named where they are fields.
    pub fn listing(&self) -> String {
        let ir = &self.ir;
        let mut text = String::new();
        for (header, ty) in ir.layout.headers.iter().map(|h| (h, &ir.layout.types[h.ty])) {
            for f in ty.fields.iter().filter(|f| !f.varbit) {
                text += &format!("{:5} {}.{}\n", header.base + f.rel, header.name, f.name);
            }
        }
        for (name, code) in [("ingress", ir.ingress), ("egress", ir.egress)] {
            text += &format!("{name}\n");
            for at in code.start..code.end {
                text += &format!("{at:5} {:?}\n", ir.code[at as usize]);
            }
        }
        text
    }

    /// The program's enums: name, and entries with their values.
    pub fn enums(&self) -> &[(String, Vec<(String, i64)>)] {
        &self.ir.enums
    }
}

impl Definition {
    /// There is a calculation (a hash or checksum) of this name.
    pub fn has_calculation(&self, name: &str) -> bool {
        !name.is_empty() && self.ir.calculations.iter().any(|calculation| calculation.name == name)
    }
}
