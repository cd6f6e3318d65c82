//! Name resolution, type checking and inference (spec 6 to 15).
//!
//! The checker walks the syntax tree once. What later stages need of it stands in [`Checked`]: the
//! types of expressions and written types by [`NodeId`], which overload each call chose with which type
//! arguments, and the definitions of the named types. An expression in error has the type
//! [`Type::Unknown`], which fits everywhere, so that one mistake makes one message.

mod annotations;
mod calls;
mod casts;
pub(crate) mod constants;
mod consteval;
mod controls;
mod decls;
mod defs;
mod division;
mod entries;
mod exprs;
mod infer;
mod parsers;
mod scope;
mod statements;
mod tables;
mod typedefs;

use std::collections::HashMap;
use std::rc::Rc;

use fairlane_syntax::ast::*;
use fairlane_syntax::Code;

pub use constants::ConstVal;
pub(crate) use decls::declared_name;
pub use defs::{Applicable, EnumDef, ExternDef, ParamSig, Signature, StructDef};
pub(crate) use division::{no_division, tell_divisions, NO_DIVISION_HELP};
pub use scope::CallTarget;

use crate::report::Report;
use crate::rule::Rule;
use crate::types::{DeclId, Type};
use scope::{Context, Local, TableInfo};

/// How a call was understood.
#[derive(Debug, Clone)]
pub struct CallInfo {
    /// What is called.
    pub target: CallTarget,
    /// The types for the callee's type parameters, given or inferred, with the parameters they stand for.
    pub type_args: Vec<(u32, Type)>,
    /// For each parameter the position of its argument; `None` where the default or nothing is passed.
    pub order: Vec<Option<usize>>,
    /// The signature, type parameters not replaced.
    pub signature: Rc<Signature>,
}

/// A program whose types are known.
#[derive(Debug)]
pub struct Checked<'a> {
    /// The syntax tree.
    pub program: &'a Program,
    /// All top-level declarations, by [`DeclId`].
    pub decls: Vec<&'a Declaration>,
    /// Top-level names.
    pub globals: HashMap<Symbol, Vec<DeclId>>,
    /// Types of expressions and written types. May hold type parameters inside generic functions.
    pub types: HashMap<NodeId, Type>,
    /// How each call was understood.
    pub calls: HashMap<NodeId, CallInfo>,
    /// Structs, headers and header unions.
    pub structs: HashMap<DeclId, Rc<StructDef>>,
    /// Enums of both kinds.
    pub enums: HashMap<DeclId, Rc<EnumDef>>,
    /// Extern object types.
    pub externs: HashMap<DeclId, Rc<ExternDef>>,
    /// The values of top-level constants.
    pub constants: HashMap<DeclId, ConstVal>,
    /// Members of `error`, in order; the position is the code.
    pub errors: Vec<Symbol>,
    /// Members of `match_kind`.
    pub match_kinds: Vec<Symbol>,
    /// Divisions of values that are not known at compile time, whatever the callers, and in which declaration they stand.
    pub divisions: Vec<(DeclId, Span, BinaryOp)>,
}

/// The state of the check.
pub(crate) struct Checker<'a, 'r> {
    pub(crate) out: Checked<'a>,
    pub(crate) report: &'r mut Report,
    scopes: Vec<HashMap<Symbol, Vec<Local>>>,
    tables: Vec<Rc<TableInfo>>,
    infer: Vec<Option<Type>>,
    signatures: HashMap<DeclId, Rc<Signature>>,
    applicables: HashMap<DeclId, Rc<Applicable>>,
    resolving: Vec<DeclId>,
    next_param: u32,
    context: Context,
    return_type: Type,
    loop_depth: u32,
    checked_until: u32,
    current_decl: Option<DeclId>,
    /// The depth of expressions and statements in work; deeper nesting than [`MAX_DEPTH`] is refused.
    depth: u32,
}

/// The deepest nesting of expressions that the compiler follows; guards the stack.
const MAX_DEPTH: u32 = 256;

/// Checks a program. Errors go to `report`; the result is as complete as the errors allow.
pub fn check<'a>(program: &'a Program, report: &mut Report) -> Checked<'a> {
    let mut checker = Checker {
        out: Checked {
            program,
            decls: Vec::new(),
            globals: HashMap::new(),
            types: HashMap::new(),
            calls: HashMap::new(),
            structs: HashMap::new(),
            enums: HashMap::new(),
            externs: HashMap::new(),
            constants: HashMap::new(),
            errors: Vec::new(),
            match_kinds: Vec::new(),
            divisions: Vec::new(),
        },
        report,
        scopes: Vec::new(),
        tables: Vec::new(),
        infer: Vec::new(),
        signatures: HashMap::new(),
        applicables: HashMap::new(),
        resolving: Vec::new(),
        next_param: 0,
        context: Context::TopLevel,
        return_type: Type::Void,
        loop_depth: 0,
        checked_until: 0,
        current_decl: None,
        depth: 0,
    };
    checker.collect();
    checker.check_declarations();
    checker.zonk_results();
    checker.out
}

impl<'a> Checker<'a, '_> {
    pub(crate) fn error(&mut self, span: Span, rule: Rule, text: impl Into<String>) {
        self.report.error(span, rule, text);
    }

    pub(crate) fn error_help(&mut self, span: Span, rule: Rule, text: impl Into<String>, help: impl Into<String>) {
        self.report.error_help(span, rule, text, help);
    }

    /// As [`Self::error`], of a kind that does not follow from the rule.
    pub(crate) fn error_code(&mut self, code: Code, span: Span, rule: Rule, text: impl Into<String>) {
        self.report.error_code(code, span, rule, text);
    }

    /// Replaces inference variables by what was found for them.
    fn zonk_results(&mut self) {
        let types = std::mem::take(&mut self.out.types);
        self.out.types = types.into_iter().map(|(id, t)| (id, self.zonk(&t))).collect();
        let calls = std::mem::take(&mut self.out.calls);
        self.out.calls = calls
            .into_iter()
            .map(|(id, mut c)| {
                for (_, t) in &mut c.type_args {
                    *t = self.zonk(t);
                }
                (id, c)
            })
            .collect();
    }
}
