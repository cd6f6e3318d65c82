//! What the bodies of annotations say, for those that read them.

use num_traits::ToPrimitive;

use crate::ast::{Annotation, AnnotationBody, AnnotationToken, AnnotationTokenKind, Expr, ExprKind, Symbol};

impl Annotation {
    /// The only argument, a string: `@name("a.b")`, `@name["a.b"]`.
    pub fn string(&self) -> Option<Symbol> {
        let mut all = self.strings()?;
        let only = all.pop()?;
        all.is_empty().then_some(only)
    }

    /// All arguments, where each is a string.
    pub fn strings(&self) -> Option<Vec<Symbol>> {
        match &self.body {
            AnnotationBody::None => Some(Vec::new()),
            AnnotationBody::Unstructured(tokens) => {
                // Literals side by side make one string, as in C: `@brief("a" "b")`.
                let mut out: Vec<String> = Vec::new();
                let mut fresh = true;
                for token in tokens {
                    match &token.kind {
                        AnnotationTokenKind::String(text) if fresh => out.push(text.to_string()),
                        AnnotationTokenKind::String(text) => out.last_mut()?.push_str(text),
                        AnnotationTokenKind::Punctuation if &*token.text == "," => {
                            fresh = true;
                            continue;
                        }
                        AnnotationTokenKind::Punctuation if &*token.text == "++" && !fresh => {}
                        _ => return None,
                    }
                    fresh = false;
                }
                Some(out.into_iter().map(Symbol::from).collect())
            }
            AnnotationBody::Expressions(list) => list
                .iter()
                .map(|expr| match &expr.kind {
                    ExprKind::String(text) => Some(text.clone()),
                    _ => None,
                })
                .collect(),
            AnnotationBody::KeyValues(_) => None,
        }
    }

    /// The only argument, an integer from 0 to 2^64 - 1: `@id(5)`, `@id[5]`.
    pub fn integer(&self) -> Option<u64> {
        match self.integers()?.as_slice() {
            [only] => Some(*only),
            _ => None,
        }
    }

    /// All arguments, where each is an integer from 0 to 2^64 - 1: `@field_list(1, 2)`.
    pub fn integers(&self) -> Option<Vec<u64>> {
        match &self.body {
            AnnotationBody::None => Some(Vec::new()),
            AnnotationBody::Unstructured(tokens) => tokens.split(|token| &*token.text == ",").map(integer_token).collect(),
            AnnotationBody::Expressions(list) => list.iter().map(integer_expr).collect(),
            AnnotationBody::KeyValues(_) => None,
        }
    }
}

fn integer_token(tokens: &[AnnotationToken]) -> Option<u64> {
    match tokens {
        [AnnotationToken { kind: AnnotationTokenKind::Integer(literal), .. }] => literal.value.to_u64(),
        _ => None,
    }
}

fn integer_expr(expr: &Expr) -> Option<u64> {
    match &expr.kind {
        ExprKind::Int(literal) => literal.value.to_u64(),
        _ => None,
    }
}

/// The annotation of that name, the first where there are many.
pub fn find<'a>(annotations: &'a [Annotation], name: &str) -> Option<&'a Annotation> {
    annotations.iter().find(|annotation| &*annotation.name.name == name)
}
