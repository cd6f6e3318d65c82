//! Unification of types with inference variables (spec 8.22, 8.26).

use super::Checker;
use crate::types::{Named, Type};

impl Checker<'_, '_> {
    /// A new inference variable.
    pub(crate) fn fresh(&mut self) -> Type {
        self.infer.push(None);
        Type::Infer(self.infer.len() as u32 - 1)
    }

    /// What a type stands for, one level deep.
    pub(crate) fn resolve(&self, t: &Type) -> Type {
        let mut t = t;
        loop {
            match t {
                Type::Infer(i) => match self.infer.get(*i as usize) {
                    Some(Some(next)) => t = next,
                    _ => return t.clone(),
                },
                _ => return t.clone(),
            }
        }
    }

    /// What a type stands for, in depth.
    pub(crate) fn zonk(&self, t: &Type) -> Type {
        self.resolve(t).map(&|part| self.zonk(part))
    }

    fn bind_variable(&mut self, var: u32, t: &Type) -> bool {
        if self.occurs(var, t, 0) {
            return matches!(self.resolve(t), Type::Infer(v) if v == var);
        }
        self.infer[var as usize] = Some(t.clone());
        true
    }

    fn occurs(&self, var: u32, t: &Type, depth: u32) -> bool {
        if depth > 64 {
            return true;
        }
        match self.resolve(t) {
            Type::Infer(v) => v == var,
            Type::Stack(e, _) | Type::List(e) | Type::Set(e) => self.occurs(var, &e, depth + 1),
            Type::Tuple(ts) => ts.iter().any(|a| self.occurs(var, a, depth + 1)),
            Type::Record(fs) => fs.iter().any(|(_, a)| self.occurs(var, a, depth + 1)),
            Type::Struct(n)
            | Type::Header(n)
            | Type::Union(n)
            | Type::Extern(n)
            | Type::Parser(n)
            | Type::Control(n)
            | Type::Package(n) => n.args.iter().any(|a| self.occurs(var, a, depth + 1)),
            _ => false,
        }
    }

    /// Whether a value of type `actual` may be given where `expected` is awaited, finding inference
    /// variables on the way: equality but for the implicit casts of spec 8.12.2.
    ///
    /// A variable that met an `int` literal gives way to a sized type that it meets later.
    pub(crate) fn unify(&mut self, expected: &Type, actual: &Type) -> bool {
        let e = self.resolve(expected);
        let a = self.resolve(actual);
        match (&e, &a) {
            (Type::Unknown, _) | (_, Type::Unknown) => true,
            (Type::Infer(x), Type::Infer(y)) if x == y => true,
            (Type::Infer(x), _) => self.bind_variable(*x, &a),
            (_, Type::Infer(y)) => self.bind_variable(*y, &e),
            (Type::Bits { .. }, Type::Int) => {
                self.widen_literal(expected, &e);
                self.widen_literal(actual, &e);
                true
            }
            (Type::Int, Type::Bits { .. }) => self.widen_literal(expected, &a),
            (Type::SerEnum(_, _), Type::SerEnum(_, _)) => e == a,
            (_, Type::SerEnum(_, under)) => {
                let under = (**under).clone();
                matches!(e, Type::Bits { .. }) && self.unify(&e, &under)
            }
            (_, Type::Default) => true,
            (Type::Set(x), Type::Set(y)) | (Type::List(x), Type::List(y)) => self.unify(&x.clone(), &y.clone()),
            (Type::List(x), Type::Tuple(ys)) => {
                let x = (**x).clone();
                ys.iter().all(|y| self.unify(&x, y))
            }
            (Type::Stack(x, n), Type::Stack(y, m)) => n == m && self.unify(&x.clone(), &y.clone()),
            (Type::Stack(x, n), Type::Tuple(ys)) => {
                let x = (**x).clone();
                let dots = ys.last() == Some(&Type::Default);
                let given = if dots { ys.len() - 1 } else { ys.len() };
                (given == *n as usize || dots && given <= *n as usize) && ys.iter().all(|y| self.unify(&x, y))
            }
            (Type::Tuple(xs), Type::Tuple(ys)) => {
                let dots = ys.last() == Some(&Type::Default);
                let given = if dots { ys.len() - 1 } else { ys.len() };
                (given == xs.len() || dots && given <= xs.len()) && xs.iter().zip(ys).all(|(x, y)| self.unify(x, y))
            }
            (Type::Header(_) | Type::Union(_), Type::InvalidHeader) => true,
            (Type::Struct(n) | Type::Header(n), Type::Tuple(ys)) => {
                let Some(fields) = self.field_types(n) else { return true };
                let dots = ys.last() == Some(&Type::Default);
                let given = if dots { ys.len() - 1 } else { ys.len() };
                (given == fields.len() || dots && given <= fields.len()) && fields.iter().zip(ys).all(|((_, x), y)| self.unify(x, y))
            }
            (Type::Struct(n) | Type::Header(n), Type::Record(ys)) => {
                let Some(fields) = self.field_types(n) else { return true };
                let dots = ys.iter().any(|(_, t)| *t == Type::Default);
                let named = ys.iter().filter(|(_, t)| *t != Type::Default);
                named.clone().all(|(name, y)| fields.iter().any(|(f, x)| f == name && self.unify(x, y)))
                    && (dots || named.count() == fields.len())
            }
            (Type::Record(xs), Type::Record(ys)) => {
                xs.len() == ys.len() && xs.iter().zip(ys).all(|((n, x), (m, y))| n == m && self.unify(x, y))
            }
            (Type::Struct(x), Type::Struct(y))
            | (Type::Header(x), Type::Header(y))
            | (Type::Union(x), Type::Union(y))
            | (Type::Extern(x), Type::Extern(y))
            | (Type::Package(x), Type::Package(y)) => {
                x.decl == y.decl && x.args.len() == y.args.len() && x.args.iter().zip(&y.args).all(|(p, q)| self.unify(p, q))
            }
            (Type::Parser(x), Type::Parser(y)) | (Type::Control(x), Type::Control(y)) => {
                if x.decl == y.decl {
                    return x.args.len() == y.args.len() && x.args.iter().zip(&y.args).all(|(p, q)| self.unify(p, q));
                }
                self.unify_applicables(&x.clone(), &y.clone())
            }
            (Type::Str, Type::Str) => true,
            _ => e == a,
        }
    }

    fn widen_literal(&mut self, t: &Type, to: &Type) -> bool {
        // Follow the chain of variables to the last one, whose binding is `int`.
        let mut current = t.clone();
        while let Type::Infer(i) = current {
            match self.infer[i as usize].clone() {
                Some(Type::Int) => {
                    self.infer[i as usize] = Some(to.clone());
                    return true;
                }
                Some(next) => current = next,
                None => break,
            }
        }
        false
    }

    /// Whether the parser or control `actual` has the signature of the type `expected` (spec 17).
    fn unify_applicables(&mut self, expected: &Named, actual: &Named) -> bool {
        let (Some(x), Some(y)) = (self.applicable(expected.decl), self.applicable(actual.decl)) else { return true };
        let map_x = x.substitution(&expected.args);
        let map_y = y.substitution(&actual.args);
        x.params.len() == y.params.len()
            && x.params
                .iter()
                .zip(&y.params)
                .all(|(p, q)| p.direction == q.direction && self.unify(&p.ty.substitute(&map_x), &q.ty.substitute(&map_y)))
    }
}
