//! A walk over the tree: implement the methods for what matters, and call the function `walk_*` of the same name to go on inside.

use crate::ast::*;

/// What to do at each kind of node. All methods but the ones written walk on.
pub trait Visit<'a>: Sized {
    /// A declaration, at the top level, local, or among statements.
    fn declaration(&mut self, d: &'a Declaration) {
        walk_declaration(self, d);
    }
    /// A parameter of whatever has parameters.
    fn parameter(&mut self, p: &'a Parameter) {
        walk_parameter(self, p);
    }
    /// A state of a parser.
    fn state(&mut self, s: &'a ParserState) {
        walk_state(self, s);
    }
    /// A property of a table.
    fn property(&mut self, p: &'a TableProperty) {
        walk_property(self, p);
    }
    /// A block of statements.
    fn block(&mut self, b: &'a Block) {
        walk_block(self, b);
    }
    /// A statement.
    fn statement(&mut self, s: &'a Statement) {
        walk_statement(self, s);
    }
    /// A keyset of a `select` or an entry.
    fn keyset(&mut self, k: &'a Keyset) {
        walk_keyset(self, k);
    }
    /// An expression.
    fn expr(&mut self, e: &'a Expr) {
        walk_expr(self, e);
    }
    /// A written type.
    fn type_expr(&mut self, t: &'a TypeExpr) {
        walk_type_expr(self, t);
    }
    /// The annotations of something that spans `_span`.
    fn annotated(&mut self, _annotations: &'a [Annotation], _span: Span) {}
}

/// All of a program.
pub fn walk_program<'a>(v: &mut impl Visit<'a>, p: &'a Program) {
    p.declarations.iter().for_each(|d| v.declaration(d));
}

/// What is inside a declaration.
pub fn walk_declaration<'a>(v: &mut impl Visit<'a>, d: &'a Declaration) {
    v.annotated(&d.annotations, d.span);
    match &d.kind {
        DeclarationKind::Constant(c) => {
            v.type_expr(&c.ty);
            v.expr(&c.value);
        }
        DeclarationKind::Variable(x) => {
            v.type_expr(&x.ty);
            x.initializer.iter().for_each(|e| v.expr(e));
        }
        DeclarationKind::Instantiation(i) => {
            v.type_expr(&i.ty);
            i.arguments.iter().for_each(|a| v.expr(&a.value));
            i.initializer.iter().flatten().for_each(|d| v.declaration(d));
        }
        DeclarationKind::Header(s) | DeclarationKind::HeaderUnion(s) | DeclarationKind::Struct(s) => {
            for f in &s.fields {
                v.annotated(&f.annotations, f.span);
                v.type_expr(&f.ty);
            }
        }
        DeclarationKind::Enum(e) => {
            e.underlying.iter().for_each(|t| v.type_expr(t));
            e.members.iter().filter_map(|m| m.value.as_ref()).for_each(|e| v.expr(e));
        }
        DeclarationKind::Error(_) | DeclarationKind::MatchKind(_) => {}
        DeclarationKind::Typedef(a) | DeclarationKind::Newtype(a) => {
            a.inline.iter().for_each(|d| v.declaration(d));
            v.type_expr(&a.ty);
        }
        DeclarationKind::ExternObject(e) => {
            for k in &e.constructors {
                v.annotated(&k.annotations, k.span);
                k.parameters.iter().for_each(|p| v.parameter(p));
            }
            for m in &e.methods {
                v.annotated(&m.annotations, m.span);
                walk_prototype(v, &m.prototype);
            }
        }
        DeclarationKind::ExternFunction(f) => walk_prototype(v, f),
        DeclarationKind::Function(f) => {
            walk_prototype(v, &f.prototype);
            v.block(&f.body);
        }
        DeclarationKind::Action(a) => {
            a.parameters.iter().for_each(|p| v.parameter(p));
            v.block(&a.body);
        }
        DeclarationKind::Table(t) => t.properties.iter().for_each(|p| v.property(p)),
        DeclarationKind::ValueSet(s) => {
            v.type_expr(&s.element);
            v.expr(&s.size);
        }
        DeclarationKind::ParserType(a) | DeclarationKind::ControlType(a) | DeclarationKind::Package(a) => {
            a.parameters.iter().for_each(|p| v.parameter(p));
        }
        DeclarationKind::Parser(p) => {
            p.parameters.iter().chain(&p.constructor_parameters).for_each(|p| v.parameter(p));
            p.locals.iter().for_each(|d| v.declaration(d));
            p.states.iter().for_each(|s| v.state(s));
        }
        DeclarationKind::Control(c) => {
            c.parameters.iter().chain(&c.constructor_parameters).for_each(|p| v.parameter(p));
            c.locals.iter().for_each(|d| v.declaration(d));
            v.block(&c.apply);
        }
    }
}

/// The types in a prototype.
pub fn walk_prototype<'a>(v: &mut impl Visit<'a>, f: &'a FunctionPrototype) {
    v.type_expr(&f.return_type);
    f.parameters.iter().for_each(|p| v.parameter(p));
}

/// What is inside a parameter.
pub fn walk_parameter<'a>(v: &mut impl Visit<'a>, p: &'a Parameter) {
    v.annotated(&p.annotations, p.span);
    v.type_expr(&p.ty);
    p.default.iter().for_each(|e| v.expr(e));
}

/// What is inside a state.
pub fn walk_state<'a>(v: &mut impl Visit<'a>, s: &'a ParserState) {
    v.annotated(&s.annotations, s.span);
    s.statements.iter().for_each(|s| v.statement(s));
    if let Some(Transition::Select(select)) = &s.transition {
        select.keys.iter().for_each(|e| v.expr(e));
        select.cases.iter().for_each(|c| v.keyset(&c.keyset));
    }
}

/// What is inside a property.
pub fn walk_property<'a>(v: &mut impl Visit<'a>, p: &'a TableProperty) {
    v.annotated(&p.annotations, p.span);
    match &p.kind {
        TablePropertyKind::Key(keys) => {
            for k in keys {
                v.annotated(&k.annotations, k.span);
                v.expr(&k.expression);
            }
        }
        TablePropertyKind::Actions(list) => list.iter().for_each(|a| walk_action_reference(v, a)),
        TablePropertyKind::Entries(entries) => {
            for e in entries {
                v.annotated(&e.annotations, e.span);
                e.priority.iter().for_each(|p| v.expr(p));
                v.keyset(&e.keyset);
                walk_action_reference(v, &e.action);
            }
        }
        TablePropertyKind::Other(_, e) => v.expr(e),
    }
}

/// The arguments of an action in a list or entry.
pub fn walk_action_reference<'a>(v: &mut impl Visit<'a>, a: &'a ActionReference) {
    v.annotated(&a.annotations, a.span);
    a.arguments.iter().flatten().for_each(|a| v.expr(&a.value));
}

/// What is inside a block.
pub fn walk_block<'a>(v: &mut impl Visit<'a>, b: &'a Block) {
    v.annotated(&b.annotations, b.span);
    b.statements.iter().for_each(|s| v.statement(s));
}

/// What is inside a statement.
pub fn walk_statement<'a>(v: &mut impl Visit<'a>, s: &'a Statement) {
    v.annotated(&s.annotations, s.span);
    match &s.kind {
        StatementKind::Empty | StatementKind::Exit | StatementKind::Break | StatementKind::Continue => {}
        StatementKind::Declaration(d) => v.declaration(d),
        StatementKind::Assignment { target, value, .. } => {
            v.expr(target);
            v.expr(value);
        }
        StatementKind::Call(e) => v.expr(e),
        StatementKind::DirectApplication { ty, arguments } => {
            v.type_expr(ty);
            arguments.iter().for_each(|a| v.expr(&a.value));
        }
        StatementKind::Block(b) => v.block(b),
        StatementKind::If { condition, then_branch, else_branch } => {
            v.expr(condition);
            v.statement(then_branch);
            else_branch.iter().for_each(|s| v.statement(s));
        }
        StatementKind::Switch { subject, cases } => {
            v.expr(subject);
            for c in cases {
                v.expr(&c.label);
                c.body.iter().for_each(|b| v.block(b));
            }
        }
        StatementKind::For { init, condition, update, body } => {
            init.iter().for_each(|s| v.statement(s));
            v.expr(condition);
            update.iter().for_each(|s| v.statement(s));
            v.statement(body);
        }
        StatementKind::ForIn { variable, collection, body } => {
            match variable {
                ForVariable::Declared(t, _) => v.type_expr(t),
                ForVariable::Existing(e) => v.expr(e),
            }
            match collection {
                ForCollection::Expression(e) => v.expr(e),
                ForCollection::Range(a, b) => {
                    v.expr(a);
                    v.expr(b);
                }
            }
            v.statement(body);
        }
        StatementKind::Return(value) => value.iter().for_each(|e| v.expr(e)),
    }
}

/// What is inside a keyset.
pub fn walk_keyset<'a>(v: &mut impl Visit<'a>, k: &'a Keyset) {
    match &k.kind {
        KeysetKind::Default | KeysetKind::DontCare => {}
        KeysetKind::Value(e) => v.expr(e),
        KeysetKind::Mask(a, b) | KeysetKind::Range(a, b) => {
            v.expr(a);
            v.expr(b);
        }
        KeysetKind::Tuple(parts) => parts.iter().for_each(|k| v.keyset(k)),
    }
}

/// What is inside an expression.
pub fn walk_expr<'a>(v: &mut impl Visit<'a>, e: &'a Expr) {
    match &e.kind {
        ExprKind::Int(_)
        | ExprKind::Bool(_)
        | ExprKind::String(_)
        | ExprKind::Name(_)
        | ExprKind::This
        | ExprKind::InvalidHeader
        | ExprKind::Dots
        | ExprKind::Default
        | ExprKind::DontCare
        | ExprKind::Invalid => {}
        ExprKind::Member(base, _) => v.expr(base),
        ExprKind::TypeMember(t, _) => v.type_expr(t),
        ExprKind::Index(a, b) | ExprKind::Binary(_, a, b) => {
            v.expr(a);
            v.expr(b);
        }
        ExprKind::Slice(a, b, c) | ExprKind::Ternary(a, b, c) => {
            v.expr(a);
            v.expr(b);
            v.expr(c);
        }
        ExprKind::Cast(t, e) => {
            v.type_expr(t);
            v.expr(e);
        }
        ExprKind::Unary(_, e) => v.expr(e),
        ExprKind::Call { callee, type_arguments, arguments } => {
            v.expr(callee);
            type_arguments.iter().for_each(|t| v.type_expr(t));
            arguments.iter().for_each(|a| v.expr(&a.value));
        }
        ExprKind::Construct(t, arguments) => {
            v.type_expr(t);
            arguments.iter().for_each(|a| v.expr(&a.value));
        }
        ExprKind::List { elements, .. } => elements.iter().for_each(|e| v.expr(e)),
        ExprKind::Record { fields, .. } => fields.iter().for_each(|(_, e)| v.expr(e)),
    }
}

/// What is inside a written type.
pub fn walk_type_expr<'a>(v: &mut impl Visit<'a>, t: &'a TypeExpr) {
    match &t.kind {
        TypeExprKind::Bit(Some(e)) | TypeExprKind::SignedBit(e) | TypeExprKind::Varbit(e) => v.expr(e),
        TypeExprKind::Specialized(_, args) | TypeExprKind::Tuple(args) => args.iter().for_each(|t| v.type_expr(t)),
        TypeExprKind::Stack(t, e) => {
            v.type_expr(t);
            v.expr(e);
        }
        TypeExprKind::List(t) => v.type_expr(t),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    struct Names(Vec<String>);

    impl<'a> Visit<'a> for Names {
        fn expr(&mut self, e: &'a Expr) {
            if let ExprKind::Name(p) = &e.kind {
                self.0.push(p.name.name.to_string());
            }
            walk_expr(self, e);
        }
    }

    #[test]
    fn the_walk_sees_every_name_used_as_a_value() {
        let text = "control c(inout bit<8> a)(bit<W> b) { bit<8> x = c1; table t { key = { k : exact; } actions = { f(g); } entries = { m &&& n : f(o); } } \
                    apply { if (p) { q = r; } else a[s:u] = (bit<8>)v; for (bit<8> i in w..y) { h(z); } switch (aa) { bb: { cc = dd; } } } }";
        let parsed = crate::parse_text(Path::new("x.p4"), text, &crate::Options::default(), &crate::DiskFiles);
        assert!(!parsed.diagnostics.has_errors());
        let mut names = Names(Vec::new());
        walk_program(&mut names, &parsed.program);
        assert_eq!(names.0.join(" "), "W c1 k g m n o p q r a s u v w y h z aa bb cc dd");
    }
}
