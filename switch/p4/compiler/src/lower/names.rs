//! Control-plane names (spec 18.3) and unique internal ones.

use std::collections::HashSet;

use fairlane_syntax::ast::*;

/// The text of `@name("...")`, when present.
pub fn name_annotation(annotations: &[Annotation]) -> Option<Symbol> {
    string_annotation(annotations, "name")
}

/// The text of an annotation `@which("...")`.
pub fn string_annotation(annotations: &[Annotation], which: &str) -> Option<Symbol> {
    let a = annotations.iter().find(|a| &*a.name.name == which)?;
    match &a.body {
        AnnotationBody::Unstructured(_) => a.strings()?.into_iter().next(),
        AnnotationBody::Expressions(es) => es.iter().find_map(|e| match &e.kind {
            ExprKind::String(s) => Some(s.clone()),
            _ => None,
        }),
        _ => None,
    }
}

/// The integers of an annotation `@which(1, 2)`.
pub fn int_annotation(annotations: &[Annotation], which: &str) -> Vec<num_bigint::BigInt> {
    let Some(a) = annotations.iter().find(|a| &*a.name.name == which) else { return Vec::new() };
    match &a.body {
        AnnotationBody::Unstructured(tokens) => tokens
            .iter()
            .filter_map(|t| match &t.kind {
                AnnotationTokenKind::Integer(i) => Some(i.value.clone()),
                _ => None,
            })
            .collect(),
        AnnotationBody::Expressions(es) => es
            .iter()
            .filter_map(|e| match &e.kind {
                ExprKind::Int(i) => Some(i.value.clone()),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// Whether an annotation is present.
pub fn has_annotation(annotations: &[Annotation], which: &str) -> bool {
    annotations.iter().any(|a| &*a.name.name == which)
}

/// The fully qualified name of an object declared under `prefix` (spec 18.3.1, 18.3.2): an absolute
/// `@name(".x")` is taken as it is.
pub fn qualified(prefix: &str, name: &str, annotations: &[Annotation]) -> String {
    let local = name_annotation(annotations);
    let local = local.as_deref().unwrap_or(name);
    match local.strip_prefix('.') {
        Some(absolute) => absolute.to_owned(),
        None if prefix.is_empty() => local.to_owned(),
        None => format!("{prefix}.{local}"),
    }
}

/// Gives out names that are unique in the program.
#[derive(Debug, Default)]
pub struct Unique {
    taken: HashSet<String>,
}

impl Unique {
    /// The name itself when it is free, else with a number behind it.
    pub fn name(&mut self, base: &str) -> String {
        if self.taken.insert(base.to_owned()) {
            return base.to_owned();
        }
        let mut n = 0u32;
        loop {
            let candidate = format!("{base}_{n}");
            if self.taken.insert(candidate.clone()) {
                return candidate;
            }
            n += 1;
        }
    }
}
