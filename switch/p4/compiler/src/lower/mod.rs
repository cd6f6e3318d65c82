//! From the checked syntax tree to the specialised program ([`crate::ir`]).
//!
//! Lowering evaluates the program as spec 18.2 has it: from `main` it instantiates parsers, controls and
//! extern objects, and inlines what they apply and call: sub-parsers, controls, functions, actions
//! called directly. On the way it orders side effects, flattens structs to scalar fields, copies arguments in
//! and out where they could alias, and folds constants.

mod arguments;
mod assign;
mod builder;
mod checksums;
mod choices;
mod controls;
mod conversions;
mod describe;
mod exprs;
mod extern_functions;
mod externs;
pub(crate) mod fold;
mod functions;
mod instances;
mod loops;
mod main_package;
mod matches;
pub(crate) mod names;
mod parsers;
mod psa;
mod psa_externs;
mod statements;
mod storage;
mod tables;
mod types;
mod values;

use std::collections::HashMap;
use std::rc::Rc;

use fairlane_syntax::ast::*;

use crate::check::Checked;
use crate::control_plane::ControlPlane;
use crate::ir;
use crate::report::Report;
use crate::rule::Rule;
use crate::types::{DeclId, Type};
use builder::Builder;
use instances::Instance;
use names::Unique;
use storage::Storage;
use values::Val;

pub(crate) use matches::prefix_length;
#[cfg(test)]
pub(crate) use parsers::range_masks;

/// What a name stands for during lowering.
#[derive(Debug, Clone)]
enum Binding<'a> {
    /// A variable.
    Storage(Storage),
    /// A value: constants, `in` arguments.
    Value(Val),
    /// An object.
    Instance(Rc<Instance<'a>>),
    /// An action and how many scopes it sees.
    Action(&'a Declaration, usize, String),
    /// A table.
    Table(Rc<TableBinding>),
    /// A value set, by name.
    ValueSet(String),
}

/// A table of the control in work.
#[derive(Debug)]
struct TableBinding {
    id: ir::TableId,
    /// The actions by the names that the source uses.
    actions: Vec<(Symbol, ir::ActionId)>,
}

/// Which part of the program is in work: some externs belong to some parts only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Parser,
    Verify,
    Ingress,
    Egress,
    Update,
    Deparser,
}

/// Where `return` goes, and what it returns to.
#[derive(Debug, Clone)]
struct ReturnPoint {
    label: ir::Label,
    result: Option<Storage>,
    ty: Type,
}

/// How often loops may be unrolled and calls nested before the program is refused.
const MAX_INLINE_DEPTH: u32 = 64;
/// The most statements that the specialised program may have; inlining can grow exponentially.
const MAX_STATEMENTS: usize = 200_000;

struct Lower<'a, 'r> {
    checked: &'r Checked<'a>,
    report: &'r mut Report,
    program: ir::Program,
    control_plane: ControlPlane,
    scopes: Vec<HashMap<Symbol, Binding<'a>>>,
    substitution: Vec<(u32, Type)>,
    builder: Builder,
    unique: Unique,
    state_names: Unique,
    header_types: HashMap<Type, ir::HeaderTypeId>,
    union_types: HashMap<Type, ir::UnionTypeId>,
    globals: HashMap<DeclId, Rc<Instance<'a>>>,
    global_actions: HashMap<(DeclId, String), ir::ActionId>,
    stage: Stage,
    returns: Vec<ReturnPoint>,
    loops: Vec<(ir::Label, ir::Label)>,
    /// Results that calls in work have still to copy out.
    pending: Vec<Vec<(Storage, arguments::Destination)>>,
    prefix: String,
    inline_depth: u32,
    statements: usize,
    overflow_told: bool,
    /// Ids of the field lists by the number in `@field_list`.
    field_list_ids: HashMap<u32, u32>,
    depth: u32,
    /// Where the control in work is declared, by positions from `main` inwards; orders what the control plane sees.
    position: Vec<usize>,
    /// How many controls and parsers have been applied by their types: orders their instances.
    direct_applications: usize,
    /// Actions in the order of declaration, and whether one is used.
    shown_actions: Vec<describe::Shown>,
    shown_tables: Vec<(Vec<usize>, ir::TableId, crate::control_plane::Table)>,
    in_action: bool,
    /// The elements that indices known at run time stand for in the branch in work, by the index's expression.
    chosen: HashMap<NodeId, u32>,
    /// What arguments held, and where they are, when their turn came in the call in work.
    evaluated: HashMap<NodeId, Val>,
    located: HashMap<NodeId, arguments::Destination>,
}

/// The specialised program and what it shows to the control plane; `None` when there is no `main` to start from.
pub fn lower<'a>(checked: &Checked<'a>, report: &mut Report) -> Option<(ir::Program, ControlPlane)> {
    let mut l = Lower {
        checked,
        report,
        program: ir::Program { errors: checked.errors.clone(), ..ir::Program::default() },
        control_plane: ControlPlane::default(),
        scopes: Vec::new(),
        substitution: Vec::new(),
        builder: Builder::default(),
        unique: Unique::default(),
        state_names: Unique::default(),
        header_types: HashMap::new(),
        union_types: HashMap::new(),
        globals: HashMap::new(),
        global_actions: HashMap::new(),
        stage: Stage::Parser,
        returns: Vec::new(),
        loops: Vec::new(),
        pending: Vec::new(),
        prefix: String::new(),
        inline_depth: 0,
        statements: 0,
        overflow_told: false,
        field_list_ids: HashMap::new(),
        depth: 0,
        position: Vec::new(),
        direct_applications: 0,
        shown_actions: Vec::new(),
        shown_tables: Vec::new(),
        in_action: false,
        chosen: HashMap::new(),
        evaluated: HashMap::new(),
        located: HashMap::new(),
    };
    l.run()?;
    l.order_control_plane();
    Some((l.program, l.control_plane))
}

impl<'a> Lower<'a, '_> {
    fn error(&mut self, span: Span, rule: Rule, text: impl Into<String>) {
        self.report.error(span, rule, text);
    }

    fn lookup(&self, path: &Path) -> Option<&Binding<'a>> {
        if path.absolute {
            return None;
        }
        self.scopes.iter().rev().find_map(|s| s.get(&path.name.name))
    }

    fn bind(&mut self, name: &Symbol, binding: Binding<'a>) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.clone(), binding);
        }
    }

    /// Runs `f` in a scope of its own.
    fn scoped<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        self.scopes.push(HashMap::new());
        let result = f(self);
        self.scopes.pop();
        result
    }

    /// Runs `f` seeing only the first `keep` scopes.
    fn with_scopes<T>(&mut self, keep: usize, f: impl FnOnce(&mut Self) -> T) -> T {
        let hidden = self.scopes.split_off(keep.min(self.scopes.len()));
        let result = f(self);
        self.scopes.truncate(keep);
        self.scopes.extend(hidden);
        result
    }

    /// The type of an expression or written type, in the terms of the instance in work.
    fn type_of(&self, id: NodeId) -> Type {
        self.checked.types.get(&id).map_or(Type::Unknown, |t| t.substitute(&self.substitution))
    }

    fn decl(&self, id: DeclId) -> &'a Declaration {
        self.checked.decls[id.0 as usize]
    }

    /// Guards the nesting of inlined calls.
    fn nested<T>(&mut self, span: Span, f: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.inline_depth >= MAX_INLINE_DEPTH {
            self.error(span, Rule::Calls, "calls are nested too deeply");
            return None;
        }
        self.inline_depth += 1;
        let result = f(self);
        self.inline_depth -= 1;
        Some(result)
    }
}
