//! `@noWarn("unused")` and `@diagnostic("unused", "disable")`: what the program itself says about warnings (spec 20.3.9).

use fairlane_syntax::ast::{Annotation, Program, Span};
use fairlane_syntax::visit::{walk_program, Visit};
use fairlane_syntax::{Code, Diagnostic, Diagnostics};

use crate::warnings::{is_of_p4c_only, Weight};

/// Where which warnings are not wanted, and what the program says of whole kinds.
#[derive(Debug, Default)]
pub(crate) struct Quiet {
    places: Vec<(Span, Code)>,
    /// `@diagnostic`, in order.
    pub(crate) kinds: Vec<(String, Weight)>,
    unknown: Vec<Diagnostic>,
}

impl Quiet {
    /// Reads the annotations of a program. Names of no warning are warned of.
    pub(crate) fn of(program: &Program, diagnostics: &mut Diagnostics) -> Quiet {
        let mut quiet = Quiet::default();
        walk_program(&mut quiet, program);
        diagnostics.extend(std::mem::take(&mut quiet.unknown));
        quiet
    }

    /// Whether a warning stands inside of something annotated against it.
    pub(crate) fn silences(&self, d: &Diagnostic) -> bool {
        let Some(at) = d.span else { return false };
        self.places.iter().any(|(s, code)| *code == d.code && s.file == at.file && s.start <= at.start && at.end <= s.end)
    }

    fn no_warn(&mut self, a: &Annotation, span: Span) {
        let Some(name) = a.string() else { return };
        match Code::from_name(&name) {
            Some(code) => self.places.push((span, code)),
            None if is_of_p4c_only(&name) => {}
            None => {
                let message = format!("there is no warning `{name}`");
                let d = Diagnostic::warning(Code::Unknown, a.span, message);
                self.unknown.push(match Code::similar(&name).first() {
                    Some(near) => d.help(format!("write `@noWarn(\"{near}\")`")),
                    None => d.help("`fairlane compile --explain` lists them"),
                });
            }
        }
    }

    fn diagnostic(&mut self, a: &Annotation) {
        let strings = a.strings().unwrap_or_default();
        let [name, action] = strings.as_slice() else {
            let message = "`@diagnostic` takes two strings, the name of a warning and what becomes of it";
            self.unknown.push(Diagnostic::warning(Code::Missing, a.span, message).help("write `@diagnostic(\"unused\", \"disable\")`"));
            return;
        };
        let weight = match &**action {
            "disable" => Weight::Disabled,
            "warn" => Weight::Warn,
            "error" => Weight::Error,
            _ => {
                let message = format!("`{action}` is nothing that becomes of warnings");
                self.unknown.push(Diagnostic::warning(Code::Mismatch, a.span, message).help("write \"disable\", \"warn\" or \"error\""));
                return;
            }
        };
        self.kinds.push((name.to_string(), weight));
    }
}

impl<'a> Visit<'a> for Quiet {
    fn annotated(&mut self, annotations: &'a [Annotation], span: Span) {
        for a in annotations {
            match &*a.name.name {
                "noWarn" => self.no_warn(a, a.span.to(span)),
                "diagnostic" => self.diagnostic(a),
                _ => {}
            }
        }
    }
}
