//! The checksum controls.

use fairlane_syntax::ast::{self, Span};

use super::storage::Storage;
use super::{Lower, Stage};
use crate::ir::{Checksum, HeaderRef, Stmt};
use crate::rule::Rule;
use crate::types::Type;

impl<'a> Lower<'a, '_> {
    pub(super) fn checksum(&mut self, name: &str, args: [Option<&'a ast::Expr>; 4], types: &[Type], span: Span) {
        let [Some(condition), Some(data), Some(target), Some(algorithm)] = args else { return };
        let verify = name.starts_with("verify");
        let stage = if verify { Stage::Verify } else { Stage::Update };
        if self.stage != stage {
            let block = if verify { "the checksum verification" } else { "the checksum update" };
            self.error(span, Rule::V1model, format!("`{name}` can only be called in {block}"));
            return;
        }
        // The target has no place for statements in these controls.
        let (mut checked, mut input) = (None, Vec::new());
        let computed = self.collect(|l| {
            checked = Some(l.scalar_value(condition));
            input = l.calculation_input(data, types.get(1));
        });
        let Some(condition) = checked else { return };
        if !computed.is_empty() {
            self.error(data.span, Rule::Bmv2, format!("`{name}` takes fields and constants, nothing computed"));
            return;
        }
        let algorithm = self.algorithm(algorithm);
        let place = match self.place(target) {
            Some(Storage::Scalar(p)) if matches!(p.header, HeaderRef::Instance(_)) => p,
            _ => {
                self.error(target.span, Rule::Bmv2, format!("the checksum of `{name}` must be a field"));
                return;
            }
        };
        self.emit(Stmt::Checksum(Box::new(Checksum {
            verify,
            condition,
            target: place,
            algorithm,
            input,
            payload: name.ends_with("with_payload"),
            span,
        })));
    }
}
