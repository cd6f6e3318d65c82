//! Which top-level declarations `main` needs.

use std::collections::HashSet;

use fairlane_syntax::ast::*;
use fairlane_syntax::visit::{self, Visit};

use crate::check::Checked;
use crate::types::DeclId;

/// The names that stand in a declaration.
#[derive(Default)]
pub(crate) struct Mentioned(pub HashSet<Symbol>);

impl<'a> Visit<'a> for Mentioned {
    fn property(&mut self, p: &'a TableProperty) {
        match &p.kind {
            TablePropertyKind::Actions(list) => self.0.extend(list.iter().map(|a| a.name.name.name.clone())),
            TablePropertyKind::Entries(list) => self.0.extend(list.iter().map(|e| e.action.name.name.name.clone())),
            _ => {}
        }
        visit::walk_property(self, p);
    }

    fn expr(&mut self, e: &'a Expr) {
        if let ExprKind::Name(p) = &e.kind {
            self.0.insert(p.name.name.clone());
        }
        visit::walk_expr(self, e);
    }

    fn type_expr(&mut self, t: &'a TypeExpr) {
        if let TypeExprKind::Name(p) | TypeExprKind::Specialized(p, _) = &t.kind {
            self.0.insert(p.name.name.clone());
        }
        visit::walk_type_expr(self, t);
    }
}

/// What `main` needs, by names: a local name counts as the global one that it hides. Empty without `main`.
pub(crate) fn from_main(checked: &Checked<'_>) -> HashSet<DeclId> {
    let mut reached = HashSet::new();
    let mut work: Vec<Symbol> = vec!["main".into()];
    while let Some(name) = work.pop() {
        for id in checked.globals.get(&name).into_iter().flatten() {
            if reached.insert(*id) {
                let mut mentioned = Mentioned::default();
                mentioned.declaration(checked.decls[id.0 as usize]);
                work.extend(mentioned.0);
            }
        }
    }
    reached
}
