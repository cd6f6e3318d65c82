//! Objects made at compile time (spec 18.2): externs, parsers, controls.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use fairlane_syntax::ast::{self, *};

use super::values::Val;
use super::{names, Binding, Lower};
use crate::check::CallInfo;
use crate::ir::Place;
use crate::types::{DeclId, Type};

/// An object.
#[derive(Debug)]
pub(super) struct Instance<'a> {
    /// Its control-plane name.
    pub name: String,
    /// What it is.
    pub kind: InstanceKind<'a>,
    /// Where it is declared, by positions from `main` inwards.
    pub position: Vec<usize>,
    /// What the type parameters of its parser or control stand for.
    pub types: Vec<(u32, Type)>,
}

/// The kinds of objects.
#[derive(Debug)]
pub(super) enum InstanceKind<'a> {
    /// The packet in a parser or deparser.
    Packet,
    /// An extern object: its type, the type's arguments, the constructor's arguments.
    Extern { decl: DeclId, type_args: Vec<Type>, args: Vec<Val>, meter_target: RefCell<Option<Place>> },
    /// A control: what its constructor bound, and what its first application made of it.
    Control { decl: DeclId, args: Vec<(Symbol, Binding<'a>)>, state: RefCell<Option<State<'a>>> },
    /// A parser.
    Parser { decl: DeclId, args: Vec<(Symbol, Binding<'a>)> },
}

/// A control whose locals have been made.
#[derive(Debug, Clone)]
pub(super) struct State<'a> {
    /// The bindings of parameters and locals.
    pub scope: HashMap<Symbol, Binding<'a>>,
    /// What the parameters stand for, in order.
    pub params: Vec<(Symbol, Binding<'a>)>,
}

impl<'a> Lower<'a, '_> {
    /// The object that an expression names.
    pub(super) fn instance(&mut self, e: &'a ast::Expr) -> Option<Rc<Instance<'a>>> {
        match &e.kind {
            ast::ExprKind::Name(p) => {
                match self.lookup(p) {
                    Some(Binding::Instance(i)) => return Some(i.clone()),
                    Some(_) => return None,
                    None => {}
                }
                let ids = self.checked.globals.get(&p.name.name)?;
                ids.iter().find_map(|id| self.globals.get(id).cloned())
            }
            // A nameless object as a constructor's argument.
            ast::ExprKind::Call { .. } | ast::ExprKind::Construct(..) => {
                let name = self.unique.name("instance");
                self.instance_named(e, &name, &[])
            }
            _ => None,
        }
    }

    /// Makes the nameless object of a constructor's call.
    pub(super) fn instance_named(&mut self, e: &'a ast::Expr, name: &str, annotations: &'a [Annotation]) -> Option<Rc<Instance<'a>>> {
        let (ast::ExprKind::Call { arguments, .. } | ast::ExprKind::Construct(_, arguments)) = &e.kind else { return None };
        let info = self.checked.calls.get(&e.id).cloned()?;
        let t = self.type_of(e.id);
        self.make(&t, &info, arguments, name.to_owned(), annotations, e.span)
    }

    /// Makes the object of an instantiation in the control or parser in work.
    pub(super) fn instantiate(&mut self, i: &'a Instantiation, d: &'a Declaration) -> Option<Rc<Instance<'a>>> {
        let info = self.checked.calls.get(&i.ty.id).cloned()?;
        let t = self.type_of(i.ty.id);
        let name = names::qualified(&self.prefix, &i.name.name, &d.annotations);
        self.make(&t, &info, &i.arguments, name, &d.annotations, d.span)
    }

    fn make(
        &mut self,
        t: &Type,
        info: &CallInfo,
        arguments: &'a [Argument],
        name: String,
        annotations: &'a [Annotation],
        span: Span,
    ) -> Option<Rc<Instance<'a>>> {
        let map: Vec<(u32, Type)> = info.type_args.iter().map(|(p, t)| (*p, t.substitute(&self.substitution))).collect();
        let mut bound: Vec<(Symbol, Binding<'a>)> = Vec::new();
        let defaults: &'a [Parameter] = match t {
            Type::Parser(n) | Type::Control(n) => match &self.decl(n.decl).kind {
                DeclarationKind::Parser(p) => &p.constructor_parameters,
                DeclarationKind::Control(c) => &c.constructor_parameters,
                _ => &[],
            },
            _ => &[],
        };
        for (i, p) in info.signature.params.iter().enumerate() {
            let expr = info.order.get(i).copied().flatten().and_then(|a| arguments.get(a)).map(|a| &a.value);
            let expr = expr.or_else(|| defaults.get(i).and_then(|d| d.default.as_ref()));
            let ty = p.ty.substitute(&map).substitute(&self.substitution);
            let Some(expr) = expr else { continue };
            if matches!(ty, Type::Extern(_) | Type::Parser(_) | Type::Control(_)) {
                let instance = self.instance(expr)?;
                bound.push((p.name.clone(), Binding::Instance(instance)));
            } else {
                let v = self.value_as(expr, &ty);
                bound.push((p.name.clone(), Binding::Value(v)));
            }
        }
        let kind = match t {
            Type::Extern(n) => {
                let args = bound
                    .into_iter()
                    .map(|(_, b)| match b {
                        Binding::Value(v) => v,
                        _ => Val::Broken,
                    })
                    .collect();
                InstanceKind::Extern { decl: n.decl, type_args: n.args.clone(), args, meter_target: RefCell::new(None) }
            }
            Type::Control(n) => InstanceKind::Control { decl: n.decl, args: bound, state: RefCell::new(None) },
            Type::Parser(n) => InstanceKind::Parser { decl: n.decl, args: bound },
            _ => return None,
        };
        let instance = Rc::new(Instance { name, kind, position: self.position.clone(), types: map });
        if matches!(t, Type::Extern(_)) {
            self.declare_extern(&instance, t, annotations, span);
        }
        Some(instance)
    }

    /// Makes the objects declared at the top level, in order.
    pub(super) fn make_globals(&mut self) {
        for (i, d) in self.checked.decls.iter().enumerate() {
            let id = DeclId(i as u32);
            let DeclarationKind::Instantiation(inst) = &d.kind else { continue };
            if matches!(self.type_of(inst.ty.id), Type::Package(_)) {
                continue;
            }
            if let Some(instance) = self.instantiate(inst, d) {
                self.globals.insert(id, instance);
            }
        }
    }

    /// Whether two bindings stand for the same: then a control applied again with them needs no copies.
    pub(super) fn same_binding(a: &Binding<'a>, b: &Binding<'a>) -> bool {
        match (a, b) {
            (Binding::Storage(x), Binding::Storage(y)) => x == y && !x.is_dynamic(),
            (Binding::Instance(x), Binding::Instance(y)) => Rc::ptr_eq(x, y),
            (Binding::Value(Val::Scalar(x)), Binding::Value(Val::Scalar(y))) => x == y && x.is_const(),
            _ => false,
        }
    }
}
