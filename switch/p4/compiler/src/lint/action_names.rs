//! Two actions of one control-plane name, by `@name` (spec 18.3): the control plane could not tell which it means.

use std::collections::HashMap;

use fairlane_syntax::ast::*;
use fairlane_syntax::visit::Visit;
use fairlane_syntax::Code;

use crate::check::Checked;
use crate::flow::reached::{self, Mentioned};
use crate::lower::names::qualified;
use crate::report::Report;
use crate::rule::Rule;
use crate::types::DeclId;

/// Looks at the actions that `main` needs, those of controls by the names of their types.
pub(crate) fn check(checked: &Checked<'_>, report: &mut Report) {
    let reached = reached::from_main(checked);
    let mut seen: HashMap<String, Span> = HashMap::new();
    let mut add = |prefix: &str, d: &Declaration, a: &ActionDeclaration| {
        let name = qualified(prefix, &a.name.name, &d.annotations);
        if let Some(other) = seen.get(&name) {
            let text = format!("another action has the control-plane name `{name}`, too");
            report.error_code(Code::ControlPlaneName, a.name.span, Rule::ControlPlaneNames, text);
            report.help("give them different `@name`s, or declare one action outside of the controls for all of them");
            report.note(*other, "the other action");
        } else {
            seen.insert(name, a.name.span);
        }
    };
    for (i, d) in checked.decls.iter().enumerate().filter(|(i, _)| reached.contains(&DeclId(*i as u32))) {
        match &d.kind {
            DeclarationKind::Action(a) => add("", d, a),
            DeclarationKind::Control(c) => {
                let mut used = Mentioned::default();
                used.declaration(checked.decls[i]);
                for local in &c.locals {
                    if let DeclarationKind::Action(a) = &local.kind
                        && used.0.contains(&a.name.name)
                    {
                        add(&c.name.name, local, a);
                    }
                }
            }
            _ => {}
        }
    }
}
