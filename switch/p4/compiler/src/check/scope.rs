//! Scopes and what local names stand for (spec 6.6.1, 6.9).

use std::collections::HashMap;
use std::rc::Rc;

use fairlane_syntax::ast::*;
use fairlane_syntax::names::nearest;

use super::constants::ConstVal;
use super::defs::Signature;
use super::Checker;
use crate::rule::Rule;
use crate::types::{DeclId, Type};

/// What is being checked; says which statements are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Context {
    /// Outside of everything.
    TopLevel,
    /// A parser's states.
    Parser,
    /// A control's `apply`.
    Apply,
    /// An action.
    Action,
    /// A function.
    Function,
}

/// What may be done with a variable.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Access {
    /// Read and written.
    Variable,
    /// Read only; the reason is for messages.
    ReadOnly(&'static str),
    /// A compile-time constant; the value is missing after an error, and for constructor parameters.
    Constant(Option<ConstVal>),
}

/// What a local name stands for.
#[derive(Debug, Clone)]
pub(crate) enum Local {
    Var { ty: Type, access: Access },
    TypeParam(Type),
    Action(Rc<Signature>),
    Table(u32),
    Instance(Type),
    State,
}

/// What the checker knows of a table.
#[derive(Debug)]
pub(crate) struct TableInfo {
    /// The names of its actions as written.
    pub actions: Vec<Symbol>,
}

/// What a call calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallTarget {
    /// A function of the program.
    Function(DeclId),
    /// An extern function.
    ExternFunction(DeclId),
    /// A method of an extern object: the extern, and the position among its methods.
    Method(DeclId, usize),
    /// A constructor of an extern object, parser or control.
    Constructor(DeclId),
    /// An action, local or global.
    Action,
    /// `apply` of a parser or control: an instance, or directly of a type.
    Apply(DeclId),
    /// `apply` of a table.
    TableApply,
    /// `isValid`, `setValid`, `setInvalid`, `push_front`, `pop_front`, `minSizeInBits`, ...
    BuiltIn(Symbol),
}

impl Checker<'_, '_> {
    pub(crate) fn push_scope(&mut self) {
        self.scopes.push(HashMap::new());
    }

    pub(crate) fn pop_scope(&mut self) {
        self.scopes.pop();
    }

    /// Declares a local name; one scope holds a name once.
    pub(crate) fn declare(&mut self, name: &Ident, local: Local) {
        let Some(scope) = self.scopes.last_mut() else { return };
        let entry = scope.entry(name.name.clone()).or_default();
        let clash = !entry.is_empty();
        entry.push(local);
        if clash {
            self.error(name.span, Rule::Scopes, format!("`{}` is already declared in this scope", name.name));
        }
    }

    pub(crate) fn lookup_local(&self, path: &Path) -> Option<&Local> {
        if path.absolute {
            return None;
        }
        self.scopes.iter().rev().find_map(|s| s.get(&path.name.name).and_then(|v| v.last()))
    }

    /// The top-level declarations of a name that the place of use may see: those that stand before it
    /// (spec 6.9), types and constants alike.
    pub(crate) fn lookup_global(&self, name: &Symbol) -> Vec<DeclId> {
        let Some(ids) = self.out.globals.get(name) else { return Vec::new() };
        ids.iter().copied().filter(|id| id.0 <= self.checked_until).collect()
    }

    /// Tells that a name is not declared, with a guess at what was meant.
    pub(crate) fn undeclared(&mut self, name: &Ident, what: &str) {
        let later = self.out.globals.get(&name.name).is_some_and(|ids| ids.iter().any(|id| id.0 > self.checked_until));
        if later {
            self.error_help(
                name.span,
                Rule::NameResolution,
                format!("`{}` is used before its declaration", name.name),
                "move the declaration up: a name is visible only after it",
            );
            return;
        }
        let locals = self.scopes.iter().flat_map(|s| s.keys());
        let best = nearest(&name.name, locals.chain(self.out.globals.keys()).map(|k| &**k)).map(str::to_owned);
        match best {
            Some(k) => self.error_help(
                name.span,
                Rule::NameResolution,
                format!("{what} `{}` is not declared", name.name),
                format!("did you mean `{k}`?"),
            ),
            None => self.error(name.span, Rule::NameResolution, format!("{what} `{}` is not declared", name.name)),
        }
    }
}
