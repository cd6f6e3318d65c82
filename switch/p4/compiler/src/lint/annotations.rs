//! What annotations say (spec 20): their form, and uses of what is `@deprecated`.

use std::collections::HashMap;

use fairlane_syntax::ast::*;
use fairlane_syntax::visit::{self, Visit};
use fairlane_syntax::{Code, SourceMap};

use crate::report::Report;
use crate::rule::Rule;

const ANNOTATIONS: Rule = Rule::Annotations;

struct Forms<'r> {
    report: &'r mut Report,
}

/// Holds the annotations themselves against the rules.
pub(crate) fn check(program: &Program, report: &mut Report) {
    visit::walk_program(&mut Forms { report }, program);
}

impl<'a> Visit<'a> for Forms<'_> {
    fn annotated(&mut self, annotations: &'a [Annotation], _span: Span) {
        let structured = |a: &Annotation| matches!(a.body, AnnotationBody::Expressions(_) | AnnotationBody::KeyValues(_));
        for (i, a) in annotations.iter().enumerate() {
            if let Some(b) = annotations[..i].iter().find(|b| b.name.name == a.name.name && (structured(a) || structured(b))) {
                let text = format!("`@{}` stands here twice, and is structured", a.name.name);
                self.report.error_code(Code::Annotation, a.span, ANNOTATIONS, text);
                self.report.note(b.span, "the other one");
            }
            let values: Vec<&Expr> = match &a.body {
                AnnotationBody::Expressions(list) => list.iter().collect(),
                AnnotationBody::KeyValues(list) => list.iter().map(|(_, e)| e).collect(),
                _ => Vec::new(),
            };
            for e in values {
                if matches!(e.kind, ExprKind::List { .. } | ExprKind::Record { .. } | ExprKind::InvalidHeader | ExprKind::Dots) {
                    self.report.error_code(
                        Code::Annotation,
                        e.span,
                        ANNOTATIONS,
                        "a structured annotation holds integers, strings and Booleans",
                    );
                }
            }
            if &*a.name.name == "pkginfo" && !may_be_pairs(&a.body) {
                self.report.error_code(Code::Annotation, a.span, ANNOTATIONS, "`@pkginfo` takes keys and values");
                self.report.help("write `@pkginfo(name=\"...\", version=\"...\")`");
            }
            if WITHOUT_BODY.contains(&&*a.name.name) && matches!(&a.body, AnnotationBody::Unstructured(tokens) if !tokens.is_empty()) {
                let text = format!("`@{}` takes no arguments", a.name.name);
                self.report.error_code(Code::Annotation, a.span, ANNOTATIONS, text);
                self.report.help(format!("write `@{}`", a.name.name));
            }
            if matches!(&*a.name.name, "name" | "deprecated" | "noWarn") && !may_be_string(&a.body) {
                let text = format!("`@{}` takes a string", a.name.name);
                self.report.error_code(Code::Annotation, a.span, ANNOTATIONS, text);
                self.report.help(format!("write `@{}(\"...\")`", a.name.name));
            }
        }
    }
}

/// Annotations that say all by their names.
const WITHOUT_BODY: [&str; 12] = [
    "atomic",
    "defaultonly",
    "hidden",
    "likely",
    "noSideEffects",
    "optional",
    "pure",
    "tableonly",
    "unlikely",
    "disable_optimization",
    "unroll",
    "nounroll",
];

/// Whether a body is, or may be read as, `key = value, ...`.
fn may_be_pairs(body: &AnnotationBody) -> bool {
    match body {
        AnnotationBody::KeyValues(_) => true,
        AnnotationBody::Unstructured(tokens) => tokens.get(1).is_some_and(|t| &*t.text == "="),
        AnnotationBody::None | AnnotationBody::Expressions(_) => false,
    }
}

/// Whether a body comes to one string: strings, joined by `++` or side by side.
fn may_be_string(body: &AnnotationBody) -> bool {
    match body {
        AnnotationBody::None | AnnotationBody::KeyValues(_) => false,
        AnnotationBody::Expressions(list) => match list.as_slice() {
            [only] => !matches!(only.kind, ExprKind::Int(_) | ExprKind::Bool(_) | ExprKind::List { .. } | ExprKind::Record { .. }),
            _ => false,
        },
        AnnotationBody::Unstructured(tokens) => {
            !tokens.is_empty()
                && tokens.iter().all(|t| match &t.kind {
                    AnnotationTokenKind::Integer(_) | AnnotationTokenKind::Word => false,
                    AnnotationTokenKind::Punctuation => matches!(&*t.text, "++" | ","),
                    AnnotationTokenKind::String(_) => true,
                })
        }
    }
}

struct Deprecated<'r> {
    report: &'r mut Report,
    sources: &'r SourceMap,
    /// Of each name what may be used and why not: the number of parameters where it matters, and the reason.
    names: HashMap<Symbol, Vec<(Option<usize>, String)>>,
}

/// Warns of each use of what the program or the architecture marks `@deprecated`.
pub(crate) fn check_deprecated(program: &Program, sources: &SourceMap, report: &mut Report) {
    let mut names: HashMap<Symbol, Vec<(Option<usize>, String)>> = HashMap::new();
    for d in &program.declarations {
        let Some(name) = crate::check::declared_name(d) else { continue };
        // Functions of one name differ in the number of their parameters, and not all of them may be deprecated.
        let count = match &d.kind {
            DeclarationKind::ExternFunction(f) => Some(f.parameters.len()),
            DeclarationKind::Function(f) => Some(f.prototype.parameters.len()),
            _ => None,
        };
        if let Some(a) = d.annotations.iter().find(|a| &*a.name.name == "deprecated") {
            names.entry(name.name.clone()).or_default().push((count, a.strings().map(|s| s.concat()).unwrap_or_default()));
        }
    }
    if !names.is_empty() {
        visit::walk_program(&mut Deprecated { report, sources, names }, program);
    }
}

impl Deprecated<'_> {
    /// A use, with so many arguments when it is a call.
    fn used(&mut self, p: &Path, arguments: Option<usize>) {
        let built_in = self.sources.file(p.span.file).is_some_and(|f| f.name.starts_with('<'));
        let known = self.names.get(&p.name.name).into_iter().flatten();
        let why = known.filter(|(count, _)| count.is_none() || *count == arguments).map(|(_, why)| why.clone()).next();
        if let (Some(why), false) = (why, built_in) {
            self.report.warning(Code::Deprecated, p.span, format!("`{}` is deprecated", p.name.name));
            if !why.is_empty() {
                self.report.help(why);
            }
        }
    }
}

impl<'a> Visit<'a> for Deprecated<'_> {
    fn expr(&mut self, e: &'a Expr) {
        match &e.kind {
            ExprKind::Name(p) => self.used(p, None),
            ExprKind::Call { callee, arguments, .. } => {
                if let ExprKind::Name(p) = &callee.kind {
                    self.used(p, Some(arguments.len()));
                }
            }
            _ => {}
        }
        visit::walk_expr(self, e);
    }

    fn type_expr(&mut self, t: &'a TypeExpr) {
        if let TypeExprKind::Name(p) | TypeExprKind::Specialized(p, _) = &t.kind {
            self.used(p, None);
        }
        visit::walk_type_expr(self, t);
    }
}
