//! Tables (spec 14.2).

use std::rc::Rc;

use fairlane_syntax::ast::*;
use fairlane_syntax::names::nearest;
use fairlane_syntax::print::expression;
use fairlane_syntax::Code;

use super::calls::Call;
use super::defs::Signature;
use super::scope::{CallTarget, Context, Local, TableInfo};
use super::Checker;
use crate::rule::Rule;
use crate::types::Type;

/// The properties of tables besides key, actions, entries and default action: of the specification, of v1model and of PSA.
const KNOWN: [&str; 12] = [
    "size",
    "implementation",
    "counters",
    "meters",
    "support_timeout",
    "largest_priority_wins",
    "priority_delta",
    "psa_implementation",
    "psa_direct_counter",
    "psa_direct_meter",
    "psa_idle_timeout",
    "psa_empty_group_action",
];

const TABLES: Rule = Rule::TableProperties;

impl<'a> Checker<'a, '_> {
    /// The signature of an action by its written name.
    pub(crate) fn action_signature(&mut self, p: &Path) -> Option<Rc<Signature>> {
        if let Some(local) = self.lookup_local(p).cloned() {
            return match local {
                Local::Action(s) => Some(s),
                _ => {
                    self.error(p.span, TABLES, format!("`{}` is not an action", p.name.name));
                    None
                }
            };
        }
        let ids = self.lookup_global(&p.name.name);
        if ids.is_empty() {
            self.undeclared(&p.name, "action");
            return None;
        }
        for id in ids {
            if matches!(self.decl(id).kind, DeclarationKind::Action(_)) {
                return self.signature(id);
            }
        }
        self.error(p.span, TABLES, format!("`{}` is not an action", p.name.name));
        None
    }

    pub(crate) fn check_table(&mut self, t: &'a TableDeclaration, span: Span) {
        let mut key_types: Vec<Type> = Vec::new();
        let mut kinds: Vec<Symbol> = Vec::new();
        let mut actions: Vec<(&'a ActionReference, Option<Rc<Signature>>)> = Vec::new();
        let mut seen: Vec<String> = Vec::new();
        let context = std::mem::replace(&mut self.context, Context::Apply);
        for p in &t.properties {
            let name = match &p.kind {
                TablePropertyKind::Key(_) => "key".to_owned(),
                TablePropertyKind::Actions(_) => "actions".to_owned(),
                TablePropertyKind::Entries(_) => "entries".to_owned(),
                TablePropertyKind::Other(n, _) => n.name.to_string(),
            };
            if seen.contains(&name) {
                self.error(p.span, TABLES, format!("table `{}` has the property `{name}` twice", t.name.name));
                continue;
            }
            seen.push(name);
            match &p.kind {
                TablePropertyKind::Key(keys) => {
                    for k in keys {
                        key_types.push(self.check_key(k));
                        kinds.push(k.match_kind.name.name.clone());
                    }
                }
                TablePropertyKind::Actions(list) => {
                    for a in list {
                        let sig = self.action_signature(&a.name);
                        if let Some(sig) = &sig {
                            self.check_action_reference(a, sig);
                        }
                        if actions.iter().any(|(b, _)| b.name.name.name == a.name.name.name) {
                            self.error(a.span, TABLES, format!("action `{}` is listed twice", a.name.name.name));
                        }
                        actions.push((a, sig));
                    }
                }
                _ => {}
            }
        }
        self.check_order(t);
        if !t.properties.iter().any(|p| matches!(&p.kind, TablePropertyKind::Other(n, _) if &*n.name == "default_action")) {
            self.check_no_action(t);
        }
        if !seen.iter().any(|s| s == "actions") {
            self.error(span, TABLES, format!("table `{}` has no `actions`", t.name.name));
        }
        for p in &t.properties {
            match &p.kind {
                TablePropertyKind::Entries(entries) => {
                    if key_types.is_empty() {
                        let text = format!("table `{}` has entries and no key", t.name.name);
                        self.error(t.name.span, TABLES, text);
                    }
                    for e in entries {
                        self.check_entry(e, &key_types, &kinds, &actions);
                    }
                    self.check_priorities(t, p, entries, &kinds);
                    self.check_overlaps(entries, &key_types, &kinds);
                }
                TablePropertyKind::Other(n, value) if &*n.name == "default_action" => self.check_default_action(value, &actions),
                TablePropertyKind::Other(n, value) => self.check_property(n, value),
                _ => {}
            }
        }
        self.context = context;
        let info = TableInfo { actions: actions.iter().map(|(a, _)| a.name.name.name.clone()).collect() };
        self.tables.push(Rc::new(info));
        self.declare(&t.name, Local::Table(self.tables.len() as u32 - 1));
    }

    /// The type of a part of the key.
    fn check_key(&mut self, k: &'a KeyElement) -> Type {
        let ty = self.check_expr(&k.expression);
        let ty = self.zonk(&ty);
        let ok = match self.strip_newtype(&ty) {
            Type::Bits { .. } | Type::Bool | Type::Enum(_) | Type::SerEnum(..) | Type::ErrorCode | Type::Unknown | Type::Varbit(_) => true,
            Type::Int => {
                self.error_help(k.span, TABLES, "a key must have a width", "give the literal one: `8w1`");
                true
            }
            _ => false,
        };
        if !ok {
            self.error(k.expression.span, TABLES, format!("a value of type `{ty}` cannot be a key"));
        }
        if !self.out.match_kinds.contains(&k.match_kind.name.name) {
            let list = self.out.match_kinds.iter().map(|m| format!("`{m}`")).collect::<Vec<_>>().join(", ");
            self.error_help(
                k.match_kind.span,
                Rule::MatchKinds,
                format!("match kind `{}` is not declared", k.match_kind.name.name),
                format!("there are {list}"),
            );
        }
        if !ty.is_unknown() && self.eval(&k.expression).is_some() {
            self.report.warning(Code::IgnoreProp, k.span, "the key is a constant: it matches always or never");
        }
        ty
    }

    /// A property that the language leaves to the architecture.
    fn check_property(&mut self, n: &'a Ident, value: &'a Expr) {
        let ty = self.check_expr(value);
        if !KNOWN.contains(&&*n.name) {
            self.report.warning(Code::IgnoreProp, n.span, format!("the architecture has no table property `{}`: it is ignored", n.name));
            if let Some(near) = nearest(&n.name, KNOWN) {
                self.report.help(format!("did you mean `{near}`?"));
            }
        }
        if &*n.name == "size" {
            let ty = self.strip_newtype(&ty);
            if !matches!(ty, Type::Int | Type::Bits { .. } | Type::Unknown) {
                self.error(value.span, TABLES, format!("`size` must be an integer, not a value of type `{ty}`"));
            } else if !ty.is_unknown() {
                let size = self.eval_int(value);
                if size.is_none() && !self.is_constructor_param(value) {
                    self.error(value.span, TABLES, "`size` must be known at compile time");
                }
                if size.is_some_and(|v| num_traits::Signed::is_negative(&v)) {
                    self.error(value.span, TABLES, "`size` cannot be negative");
                }
            }
        }
    }

    /// Spec 14.2.1: the key stands before the entries, the actions before what names one.
    fn check_order(&mut self, t: &TableDeclaration) {
        let place = |f: &dyn Fn(&TablePropertyKind) -> bool| t.properties.iter().position(|p| f(&p.kind));
        let key = place(&|k| matches!(k, TablePropertyKind::Key(_)));
        let list = place(&|k| matches!(k, TablePropertyKind::Actions(_)));
        for (i, p) in t.properties.iter().enumerate() {
            let entries = matches!(p.kind, TablePropertyKind::Entries(_));
            let default = matches!(&p.kind, TablePropertyKind::Other(n, _) if &*n.name == "default_action");
            if entries && key.is_some_and(|k| k > i) {
                self.error_help(p.span, TABLES, "the entries stand before the key", "move `key` up");
            } else if (entries || default) && list.is_some_and(|l| l > i) {
                self.error_help(p.span, TABLES, "an action is named before the list of actions", "move `actions` up");
            }
        }
    }

    /// A table without default action runs `NoAction` (spec 14.2.1.3).
    fn check_no_action(&mut self, t: &TableDeclaration) {
        if self.lookup_global(&"NoAction".into()).is_empty() {
            let text = format!("table `{}` has no default action, and `NoAction` is not declared", t.name.name);
            self.error_help(t.name.span, Rule::NameResolution, text, "include core.p4, or give a `default_action`");
        }
    }

    /// An action in a table's list: its parameters with a direction get arguments, the others must not.
    fn check_action_reference(&mut self, a: &ActionReference, sig: &Rc<Signature>) {
        let directed = sig.params.iter().filter(|p| p.direction != Direction::None).count();
        let arguments = a.arguments.as_deref().unwrap_or(&[]);
        if arguments.len() != directed {
            let text = if directed == 0 {
                format!("the arguments of `{}` are the control plane's: the list gives none", sig.name)
            } else {
                format!("`{}` needs {directed} arguments here, for its parameters with a direction", sig.name)
            };
            self.error(a.span, Rule::TableProperties, text);
            for x in arguments {
                self.check_expr(&x.value);
            }
            return;
        }
        let params: Vec<_> = sig.params.iter().take(directed).cloned().collect();
        let partial = Rc::new(Signature { name: sig.name.clone(), type_params: Vec::new(), params, returns: Type::Void });
        if !arguments.is_empty() {
            // A reference in a list is no call and has no number; that of an argument may be a call's of its own.
            let nobody = NodeId(u32::MAX);
            self.bind(Call { id: nobody, arguments, span: a.span, rule: TABLES }, CallTarget::Action, &partial, Vec::new());
            self.out.calls.remove(&nobody);
        }
    }

    fn check_default_action(&mut self, value: &Expr, actions: &[(&ActionReference, Option<Rc<Signature>>)]) {
        let (path, arguments): (&Path, &[Argument]) = match &value.kind {
            ExprKind::Name(p) => (p, &[]),
            ExprKind::Call { callee, arguments, .. } => match &callee.kind {
                ExprKind::Name(p) => (p, arguments),
                _ => {
                    self.error(value.span, TABLES, "`default_action` must be an action of the table");
                    return;
                }
            },
            ExprKind::Invalid => return,
            _ => {
                self.error(value.span, TABLES, "`default_action` must be an action of the table");
                return;
            }
        };
        let Some((reference, sig)) = actions.iter().find(|(a, _)| a.name.name.name == path.name.name) else {
            let Some(_) = self.action_signature(path) else { return };
            self.error_help(
                path.span,
                TABLES,
                format!("`{}` is not in the table's list of actions", path.name.name),
                format!("add `{};` to `actions`", path.name.name),
            );
            return;
        };
        let local = Path { absolute: false, ..path.clone() };
        if reference.name.absolute != path.absolute && self.lookup_local(&local).is_some() {
            self.error(path.span, TABLES, format!("`{}` here is another action than the one in the table's list", path.name.name));
            return;
        }
        if reference.annotations.iter().any(|a| &*a.name.name == "tableonly") {
            self.error(
                path.span,
                Rule::ActionListAnnotations,
                format!("`{}` is `@tableonly` and cannot be the default action", path.name.name),
            );
        }
        if let Some(sig) = sig.clone() {
            self.check_control_plane_arguments(&sig, reference.arguments.as_deref().unwrap_or(&[]), arguments, value.span);
        }
    }

    /// Arguments of a default action or an entry: constants for the parameters without direction.
    pub(crate) fn check_control_plane_arguments(&mut self, sig: &Rc<Signature>, bound: &[Argument], arguments: &[Argument], span: Span) {
        let directed = sig.params.iter().filter(|p| p.direction != Direction::None).count();
        // `default_action = a(x, 1)` repeats the arguments of the list (spec 14.2.1.3).
        let all = arguments.len() == sig.params.len() && directed > 0;
        let params: Vec<_> = if all { sig.params.clone() } else { sig.params.iter().skip(directed).cloned().collect() };
        if params.len() != arguments.len() {
            for a in arguments {
                self.check_expr(&a.value);
            }
            let text = format!("`{}` takes {} arguments, not {}", sig.name, params.len(), arguments.len());
            self.error(span, TABLES, text);
            return;
        }
        if all {
            for (given, listed) in arguments.iter().zip(bound) {
                if expression(&given.value) != expression(&listed.value) {
                    let text = format!("the list of actions gives `{}` another value", sig.name);
                    self.error(given.span, TABLES, text);
                    self.report.note(listed.span, "the value in the list");
                }
            }
        }
        for (i, a) in arguments.iter().enumerate() {
            let p = match &a.name {
                Some(n) => match params.iter().find(|p| p.name == n.name) {
                    Some(p) => p,
                    None => {
                        self.error(n.span, TABLES, format!("`{}` has no parameter `{}`", sig.name, n.name));
                        continue;
                    }
                },
                None => &params[i],
            };
            let what = format!("the argument for `{}`", p.name);
            let t = self.check_against(&a.value, &p.ty.clone(), TABLES, &what);
            if p.direction == Direction::None && self.eval(&a.value).is_none() && !t.is_unknown() && !self.is_constructor_param(&a.value) {
                self.error(a.span, TABLES, "the argument must be known at compile time");
            }
        }
    }
}
