//! Annotations as P4Info holds them: unstructured ones as text, structured ones as messages, `@brief` and `@description` as
//! documentation.

use fairlane_syntax::annotations::find;
use fairlane_syntax::ast::{Annotation, AnnotationBody, AnnotationToken, BinaryOp, Expr, ExprKind, UnaryOp};
use num_bigint::BigInt;
use num_traits::ToPrimitive;

use super::text::Text;
use crate::check::constants::int_op;
use crate::types::Type;

/// Annotations that P4Info holds elsewhere, in fields of their own.
const ELSEWHERE: &[&str] = &["name", "id", "brief", "description"];

/// Annotations of the language with a list of expressions; p4c writes them back without spaces between tokens.
const EXPRESSION_LISTS: &[&str] = &["controller_header", "deprecated", "field_list", "hidden", "length", "match", "noWarn", "synchronous"];

/// The annotations of one object that are written.
pub(super) struct Written<'a> {
    all: &'a [Annotation],
    but: &'a [&'a str],
}

impl<'a> Written<'a> {
    /// All of them, but those held elsewhere and those named in `but`.
    pub fn of(all: &'a [Annotation], but: &'a [&'a str]) -> Self {
        Written { all, but }
    }

    /// `annotations`
    pub fn unstructured(&self, text: &mut Text) {
        for annotation in self.all {
            let name = &*annotation.name.name;
            if ELSEWHERE.contains(&name) || self.but.contains(&name) {
                continue;
            }
            match &annotation.body {
                AnnotationBody::None => text.repeated_string("annotations", &format!("@{name}")),
                AnnotationBody::Unstructured(tokens) => {
                    text.repeated_string("annotations", &format!("@{name}{}", body(name, tokens)));
                }
                AnnotationBody::Expressions(_) | AnnotationBody::KeyValues(_) => {}
            }
        }
    }

    /// `doc`
    pub fn doc(&self, text: &mut Text) {
        let of = |name| find(self.all, name).map(|found| found.string().unwrap_or_else(|| "".into()));
        let (brief, description) = (of("brief"), of("description"));
        if brief.is_some() || description.is_some() {
            text.open("doc");
            text.string("brief", brief.as_deref().unwrap_or(""));
            text.string("description", description.as_deref().unwrap_or(""));
            text.close();
        }
    }

    /// `structured_annotations`
    pub fn structured(&self, text: &mut Text) {
        for annotation in self.all {
            match &annotation.body {
                AnnotationBody::Expressions(list) => {
                    text.open("structured_annotations");
                    text.string("name", &annotation.name.name);
                    if !list.is_empty() {
                        text.open("expression_list");
                        for expr in list {
                            text.open("expressions");
                            expression(expr, text);
                            text.close();
                        }
                        text.close();
                    }
                    text.close();
                }
                AnnotationBody::KeyValues(pairs) => {
                    text.open("structured_annotations");
                    text.string("name", &annotation.name.name);
                    text.open("kv_pair_list");
                    for (key, value) in pairs {
                        text.open("kv_pairs");
                        text.string("key", &key.name);
                        text.open("value");
                        expression(value, text);
                        text.close();
                        text.close();
                    }
                    text.close();
                    text.close();
                }
                AnnotationBody::None | AnnotationBody::Unstructured(_) => {}
            }
        }
    }
}

/// A value known at compile time (P4Runtime 6.1.2.2); the checker lets nothing else into a structured annotation.
fn expression(expr: &Expr, text: &mut Text) {
    match constant(expr, 0) {
        Some(Constant::String(value)) => text.repeated_string("string_value", &value),
        Some(Constant::Int(value)) => text.word("int64_value", &value.to_i64().unwrap_or(i64::MAX).to_string()),
        Some(Constant::Bool(value)) => text.word("bool_value", &value.to_string()),
        None => {}
    }
}

#[derive(PartialEq)]
enum Constant {
    String(String),
    Int(BigInt),
    Bool(bool),
}

/// The value of an expression of literals.
fn constant(expr: &Expr, depth: u32) -> Option<Constant> {
    if depth > 64 {
        return None;
    }
    let of = |expr: &Expr| constant(expr, depth + 1);
    Some(match &expr.kind {
        ExprKind::String(value) => Constant::String(value.to_string()),
        ExprKind::Int(literal) => Constant::Int(literal.value.clone()),
        ExprKind::Bool(value) => Constant::Bool(*value),
        ExprKind::Unary(op, inner) => match (op, of(inner)?) {
            (UnaryOp::Not, Constant::Bool(value)) => Constant::Bool(!value),
            (UnaryOp::Negate, Constant::Int(value)) => Constant::Int(-value),
            (UnaryOp::Plus, value @ Constant::Int(_)) => value,
            _ => return None,
        },
        ExprKind::Binary(op, left, right) => match (op, of(left)?, of(right)?) {
            (BinaryOp::Eq, l, r) => Constant::Bool(l == r),
            (BinaryOp::Ne, l, r) => Constant::Bool(l != r),
            (BinaryOp::And, Constant::Bool(l), Constant::Bool(r)) => Constant::Bool(l && r),
            (BinaryOp::Or, Constant::Bool(l), Constant::Bool(r)) => Constant::Bool(l || r),
            (BinaryOp::Lt, Constant::Int(l), Constant::Int(r)) => Constant::Bool(l < r),
            (BinaryOp::Le, Constant::Int(l), Constant::Int(r)) => Constant::Bool(l <= r),
            (BinaryOp::Gt, Constant::Int(l), Constant::Int(r)) => Constant::Bool(l > r),
            (BinaryOp::Ge, Constant::Int(l), Constant::Int(r)) => Constant::Bool(l >= r),
            (BinaryOp::Concat, Constant::String(l), Constant::String(r)) => Constant::String(l + &r),
            (op, Constant::Int(l), Constant::Int(r)) => Constant::Int(int_op(*op, &l, &r, &Type::Int)?),
            _ => return None,
        },
        ExprKind::Ternary(condition, yes, no) => match of(condition)? {
            Constant::Bool(true) => of(yes)?,
            Constant::Bool(false) => of(no)?,
            _ => return None,
        },
        _ => return None,
    })
}

/// The tokens between parentheses, with spaces between as p4c writes them; nothing when there are none.
fn body(name: &str, tokens: &[AnnotationToken]) -> String {
    if tokens.is_empty() {
        return String::new();
    }
    let texts = tokens.iter().map(|token| &*token.text);
    let inner: String = if EXPRESSION_LISTS.contains(&name) {
        texts.map(|text| if text == "," { ", " } else { text }).collect()
    } else {
        texts.collect::<Vec<_>>().join(" ")
    };
    format!("({inner})")
}
