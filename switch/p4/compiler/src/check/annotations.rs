//! Expressions in structured annotations (spec 20): they have types and values like others.

use fairlane_syntax::ast::*;

use super::Checker;
use crate::rule::Rule;

const RULE: Rule = Rule::Annotations;

impl<'a> Checker<'a, '_> {
    /// Checks what `@name[...]` and lists of expressions hold: integers, strings and Booleans known at compile time. The scope is
    /// that of what is annotated.
    pub(crate) fn check_annotations(&mut self, annotations: &'a [Annotation]) {
        for a in annotations {
            a.values.iter().for_each(|e| self.check_annotation_value(e));
            match &a.body {
                AnnotationBody::None | AnnotationBody::Unstructured(_) => {}
                AnnotationBody::Expressions(list) => list.iter().for_each(|e| self.check_annotation_value(e)),
                AnnotationBody::KeyValues(list) => list.iter().for_each(|(_, e)| self.check_annotation_value(e)),
            }
        }
    }

    fn check_annotation_value(&mut self, e: &Expr) {
        // These forms are refused as such, whatever they hold.
        if matches!(e.kind, ExprKind::List { .. } | ExprKind::Record { .. } | ExprKind::InvalidHeader | ExprKind::Dots) {
            return;
        }
        let errors = self.report.errors();
        let t = self.check_expr(e);
        if self.report.errors() == errors && !t.is_unknown() && self.eval(e).is_none() {
            self.error(e.span, RULE, "an annotation holds values known at compile time");
        }
    }

    /// The annotations of a declaration at the top level, which may name its type parameters.
    pub(crate) fn check_top_level_annotations(&mut self, d: &'a Declaration) {
        if d.annotations.is_empty() {
            return;
        }
        self.push_scope();
        let generic: &[Ident] = match &d.kind {
            DeclarationKind::Header(s) | DeclarationKind::HeaderUnion(s) | DeclarationKind::Struct(s) => &s.type_parameters,
            DeclarationKind::ExternObject(e) => &e.type_parameters,
            DeclarationKind::ExternFunction(f) => &f.type_parameters,
            DeclarationKind::Function(f) => &f.prototype.type_parameters,
            DeclarationKind::ParserType(a) | DeclarationKind::ControlType(a) | DeclarationKind::Package(a) => &a.type_parameters,
            DeclarationKind::Parser(p) => &p.type_parameters,
            DeclarationKind::Control(c) => &c.type_parameters,
            _ => &[],
        };
        self.declare_type_params(generic);
        self.check_annotations(&d.annotations);
        self.pop_scope();
    }
}
