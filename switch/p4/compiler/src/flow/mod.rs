//! Warnings that need to know the way of values: `uninitialized-use`, `uninitialized-out-param`, `invalid-header`, `uninitialized`.
//!
//! Each parser, control and function is run once over what may be ([`state::State`]): for each scalar whether it may be unwritten,
//! for each header whether it is valid. Ways that meet are joined; loops and the graph of a parser's states run until nothing
//! changes, and warn in a last round. Actions and tables are run where they are called, for they see the control's
//! variables; functions, controls, parsers and externs are taken as their parameters say, functions with the validity
//! that their own run ended with.
//!
//! As in p4c, parameters that are not `out` come written and valid: nobody is asked to test the headers of the packet.
//! What a condition with `isValid()` says holds inside of its branches. What `main` does not need is not looked at.

mod calls;
mod conditions;
pub(crate) mod reached;
mod reads;
mod state;
mod statements;
mod storage;
mod units;
mod writes;

use std::collections::HashMap;

use fairlane_syntax::ast::*;
use fairlane_syntax::Code;

use crate::check::Checked;
use crate::report::Report;
use crate::types::{DeclId, Type};
use state::{State, Validity};
use storage::{Place, Shape};

/// So much is looked at for one declaration, and for all; a program that needs more is not warned about the rest.
const WORK: u64 = 1 << 22;
const ALL_WORK: u64 = 1 << 24;
/// The deepest nesting of expressions, statements and calls together; guards the stack.
const MOST_DEPTH: u32 = 400;

/// What a name within a declaration stands for.
#[derive(Clone)]
enum Binding<'a> {
    Variable(Place),
    Action(&'a ActionDeclaration),
    Table(&'a TableDeclaration),
    Instance(&'a Instantiation),
    /// A constant, a value set: nothing that is written.
    Other,
}

/// A message that waits for the end of the declaration.
struct Doubt {
    code: Code,
    span: Span,
    text: String,
    help: String,
}

/// The run over one declaration.
struct Flow<'a> {
    checked: &'a Checked<'a>,
    /// For each function that has run, for each parameter the validity of its headers at the end.
    summaries: HashMap<DeclId, Vec<Vec<Validity>>>,
    scopes: Vec<HashMap<Symbol, Binding<'a>>>,
    /// How many of the scopes are the control's own, which its actions see.
    outer: usize,
    /// The storage of each variable and parameter, by the address of its name in the tree.
    places: HashMap<usize, Place>,
    leaves: u32,
    headers: u32,
    now: State,
    /// Where `return` and `exit` lead.
    returned: State,
    exited: State,
    /// Where `break` and `continue` of the loops around lead.
    loops: Vec<(State, State)>,
    /// For the table applied last, what each of its actions leaves.
    ran: Vec<(Symbol, State)>,
    /// Above zero in rounds that only look for what may be.
    silent: u32,
    depth: u32,
    work: u64,
    all_work: u64,
    /// The declaration is too large to be followed.
    gave_up: bool,
    doubts: Vec<Doubt>,
}

/// Looks through a program that has no errors.
pub(crate) fn check(checked: &Checked<'_>, doubts: &mut Report) {
    let mut flow = Flow {
        checked,
        summaries: HashMap::new(),
        scopes: Vec::new(),
        outer: 1,
        places: HashMap::new(),
        leaves: 0,
        headers: 0,
        now: State::default(),
        returned: State::dead(),
        exited: State::dead(),
        loops: Vec::new(),
        ran: Vec::new(),
        silent: 0,
        depth: 0,
        work: 0,
        all_work: 0,
        gave_up: false,
        doubts: Vec::new(),
    };
    let reached = reached::from_main(checked);
    for (i, d) in checked.decls.iter().enumerate().filter(|(i, _)| reached.contains(&DeclId(*i as u32))) {
        flow.begin();
        match &d.kind {
            DeclarationKind::Function(f) => flow.function(DeclId(i as u32), f),
            DeclarationKind::Parser(p) => flow.parser(p),
            DeclarationKind::Control(c) => flow.control(c),
            _ => continue,
        }
        flow.all_work += flow.work;
        if flow.gave_up {
            continue;
        }
        for d in flow.doubts.drain(..) {
            doubts.warning(d.code, d.span, d.text);
            doubts.help(d.help);
        }
    }
}

impl<'a> Flow<'a> {
    fn begin(&mut self) {
        self.scopes = vec![HashMap::new()];
        self.places.clear();
        (self.leaves, self.headers) = (0, 0);
        self.now = State::default();
        self.returned = State::dead();
        self.exited = State::dead();
        self.loops.clear();
        self.ran.clear();
        self.silent = 0;
        self.depth = 0;
        self.work = 0;
        self.gave_up = self.all_work > ALL_WORK;
        self.doubts.clear();
    }

    /// Counts work; false when there is too much of it.
    fn spend(&mut self) -> bool {
        self.work += self.now.weight();
        self.gave_up |= self.work > WORK || self.depth > MOST_DEPTH;
        !self.gave_up
    }

    fn doubt(&mut self, code: Code, span: Span, text: String, help: impl Into<String>) {
        if self.silent == 0 && !self.now.dead {
            self.doubts.push(Doubt { code, span, text, help: help.into() });
        }
    }

    /// Runs `f` without a word.
    fn silently<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        self.silent += 1;
        let result = f(self);
        self.silent -= 1;
        result
    }

    fn type_of(&self, e: &Expr) -> Option<&'a Type> {
        self.checked.types.get(&e.id)
    }

    fn bind(&mut self, name: &Ident, binding: Binding<'a>) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.name.clone(), binding);
        }
    }

    fn lookup(&self, p: &Path) -> Option<&Binding<'a>> {
        if p.absolute {
            return None;
        }
        self.scopes.iter().rev().find_map(|s| s.get(&p.name.name))
    }

    fn scoped(&mut self, f: impl FnOnce(&mut Self)) {
        self.scopes.push(HashMap::new());
        f(self);
        self.scopes.pop();
    }

    /// The storage of a variable or parameter; the same each time that it is met.
    fn storage(&mut self, name: &'a Ident, ty: &TypeExpr) -> Place {
        let key = std::ptr::from_ref(name) as usize;
        if let Some(place) = self.places.get(&key) {
            return place.clone();
        }
        let shape = self.checked.types.get(&ty.id).map_or_else(Shape::nothing, |t| Shape::of(self.checked, t));
        let place = Place { leaf: self.leaves, header: self.headers, shape };
        self.leaves = self.leaves.saturating_add(place.shape.leaves);
        self.headers = self.headers.saturating_add(place.shape.headers);
        // So many variables are no program.
        if self.leaves > 1 << 20 || self.headers > 1 << 20 {
            self.gave_up = true;
        }
        self.places.insert(key, place.clone());
        place
    }

    /// What a fresh variable holds: written and valid, or nothing and invalid.
    fn fresh(&mut self, place: &Place, written: bool) {
        self.now.set_unwritten(place.leaves(), !written);
        self.set_headers(place, if written { Validity::Yes } else { Validity::No });
    }
}
