//! Statements (spec 12).

use fairlane_syntax::ast::*;
use fairlane_syntax::Code;

use super::scope::{Access, CallTarget, Context, Local};
use super::{Checker, MAX_DEPTH};
use crate::rule::Rule;
use crate::types::Type;

impl<'a> Checker<'a, '_> {
    pub(crate) fn check_block(&mut self, b: &'a Block) {
        self.push_scope();
        for s in &b.statements {
            self.check_statement(s);
        }
        self.pop_scope();
    }

    /// A statement that is a scope of its own (the branch of an `if`, the body of a loop).
    fn check_nested(&mut self, s: &'a Statement) {
        self.push_scope();
        self.check_statement(s);
        self.pop_scope();
    }

    pub(crate) fn check_statement(&mut self, s: &'a Statement) {
        if self.depth > MAX_DEPTH {
            self.error(s.span, Rule::Statements, "statements are nested too deeply for this compiler");
            return;
        }
        self.depth += 1;
        self.check_annotations(&s.annotations);
        self.statement(s);
        self.depth -= 1;
    }

    fn statement(&mut self, s: &'a Statement) {
        match &s.kind {
            StatementKind::Empty => {}
            StatementKind::Declaration(d) => {
                if let DeclarationKind::Instantiation(i) = &d.kind {
                    let text = format!("`{}` is instantiated among statements", i.name.name);
                    self.error_help(
                        i.name.span,
                        Rule::Instantiations,
                        text,
                        "instantiate it among the locals of the parser or control, before the first state or `apply`",
                    );
                }
                self.check_local(d);
            }
            StatementKind::Assignment { target, op, value } => self.assignment(s, target, *op, value),
            StatementKind::Call(e) => self.call_statement(e),
            StatementKind::DirectApplication { ty, arguments } => {
                self.direct_application(ty.id, ty, arguments, s.span);
            }
            StatementKind::Block(b) => self.check_block(b),
            StatementKind::If { condition, then_branch, else_branch } => {
                self.check_condition(condition, Rule::Conditional);
                self.check_nested(then_branch);
                if let Some(e) = else_branch {
                    self.check_nested(e);
                }
            }
            StatementKind::Switch { subject, cases } => self.switch(subject, cases),
            StatementKind::For { init, condition, update, body } => {
                self.push_scope();
                for i in init {
                    self.check_statement(i);
                }
                self.check_condition(condition, Rule::For);
                for u in update {
                    self.check_statement(u);
                }
                self.loop_depth += 1;
                self.check_nested(body);
                self.loop_depth -= 1;
                self.pop_scope();
            }
            StatementKind::ForIn { variable, collection, body } => self.for_in(variable, collection, body),
            StatementKind::Return(value) => self.check_return(s, value.as_ref()),
            StatementKind::Exit => {
                if !matches!(self.context, Context::Apply | Context::Action) {
                    self.error(s.span, Rule::Exit, "`exit` can only be used in controls and actions");
                }
            }
            StatementKind::Break | StatementKind::Continue => {
                if self.loop_depth == 0 {
                    self.error(s.span, Rule::For, "`break` and `continue` can only be used in a loop");
                }
            }
        }
    }

    fn assignment(&mut self, s: &Statement, target: &Expr, op: Option<BinaryOp>, value: &Expr) {
        let rule = Rule::Assignment;
        let t = self.check_expr(target);
        let v = self.check_expr(value);
        let t = self.zonk(&t);
        if !t.is_unknown() {
            self.check_lvalue(target);
        }
        let Some(op) = op else {
            if matches!(t, Type::Extern(_) | Type::Parser(_) | Type::Control(_) | Type::Table(_)) {
                self.error(target.span, rule, format!("a value of type `{t}` cannot be assigned"));
                return;
            }
            if self.expect_type(&t, &v, value.span, rule, "the value") {
                self.refuse_tuple(&t, value, rule, "the value");
            }
            return;
        };
        let ok = match op {
            BinaryOp::Shl | BinaryOp::Shr => {
                matches!(t, Type::Bits { .. } | Type::Unknown)
                    && matches!(self.strip_newtype(&v), Type::Bits { signed: false, .. } | Type::Int | Type::Unknown)
            }
            _ => matches!(t, Type::Bits { .. } | Type::Unknown) && self.unify(&t, &v),
        };
        if !ok {
            let v = self.zonk(&v);
            self.error(s.span, rule, format!("`{}=` is not defined on `{t}` and `{v}`", op.symbol()));
        } else if matches!(op, BinaryOp::Div | BinaryOp::Mod) && self.eval_int(value).is_some_and(|v| num_traits::Zero::is_zero(&v)) {
            self.error(value.span, Rule::Integers, "division by zero");
        } else if matches!(op, BinaryOp::Div | BinaryOp::Mod) {
            self.note_division(op, target, value, s.span);
        }
    }

    fn call_statement(&mut self, e: &Expr) {
        let t = self.check_expr(e);
        if !matches!(e.kind, ExprKind::Call { .. } | ExprKind::Construct(..)) {
            if !t.is_unknown() {
                self.error(e.span, Rule::Statements, "an expression is no statement; only a call is");
            }
            return;
        }
        if let Some(info) = self.out.calls.get(&e.id)
            && matches!(info.target, CallTarget::Constructor(_))
        {
            self.error(e.span, Rule::Constructors, "an instance must have a name to be used");
        }
    }

    fn check_return(&mut self, s: &Statement, value: Option<&Expr>) {
        let rule = Rule::Return;
        if self.context == Context::Parser {
            self.error(s.span, rule, "`return` cannot be used in a parser");
            return;
        }
        let expected = self.return_type.clone();
        match value {
            Some(v) => {
                let t = self.check_expr(v);
                if expected == Type::Void {
                    self.error(v.span, rule, "there is nothing to return a value to");
                } else {
                    if self.expect_type(&expected, &t, v.span, rule, "the value returned") {
                        self.refuse_tuple(&expected, v, rule, "the value returned");
                    }
                }
            }
            None if expected != Type::Void => {
                self.error(s.span, rule, format!("the function must return a value of type `{expected}`"));
            }
            None => {}
        }
    }

    fn switch(&mut self, subject: &Expr, cases: &'a [SwitchCase]) {
        let rule = Rule::Switch;
        let t = self.check_expr(subject);
        let t = self.zonk(&t);
        if self.context == Context::Parser {
            // A table cannot be applied there anyway; a switch on a value is like a select.
            if matches!(t, Type::ActionRun(_)) {
                return;
            }
        }
        let mut seen: Vec<String> = Vec::new();
        let mut default_at: Option<usize> = None;
        for (i, c) in cases.iter().enumerate() {
            if let Some(d) = default_at
                && d + 1 == i
            {
                self.error(c.span, rule, "`default` must be the last case");
            }
            let key = match &c.label.kind {
                ExprKind::Default | ExprKind::DontCare => {
                    default_at = Some(i);
                    None
                }
                ExprKind::Name(p) if matches!(t, Type::ActionRun(_)) => {
                    let Type::ActionRun(table) = t else { continue };
                    if !self.tables[table as usize].actions.contains(&p.name.name) {
                        let list = self.tables[table as usize].actions.iter().map(|a| format!("`{a}`")).collect::<Vec<_>>().join(", ");
                        self.error_help(
                            p.span,
                            Rule::SwitchOnAction,
                            format!("`{}` is no action of the table", p.name.name),
                            format!("its actions are {list}"),
                        );
                    }
                    Some(p.name.name.to_string())
                }
                _ if matches!(t, Type::ActionRun(_)) => {
                    self.error(c.label.span, Rule::SwitchOnAction, "the label must be the name of an action");
                    None
                }
                _ => {
                    let lt = self.check_expr(&c.label);
                    self.expect_type(&t, &lt, c.label.span, Rule::SwitchOnValues, "the label");
                    let value = self.eval(&c.label);
                    if value.is_none() && !lt.is_unknown() {
                        self.error(c.label.span, Rule::SwitchOnValues, "the label must be known at compile time");
                    }
                    value.map(|v| format!("{v:?}"))
                }
            };
            if let Some(k) = key {
                if seen.contains(&k) {
                    self.error(c.label.span, Rule::AnySwitch, "this label stands in another case, too");
                }
                seen.push(k);
            }
            if let Some(b) = &c.body {
                self.check_block(b);
            }
        }
        if let Some(last) = cases.last().filter(|c| c.body.is_none()) {
            self.report.warning(Code::Missing, last.span, "no block stands under the last label: nothing is done");
            self.report.help("give it a block: `{ }`");
        }
        if !matches!(
            t,
            Type::ActionRun(_)
                | Type::Bits { .. }
                | Type::Int
                | Type::Enum(_)
                | Type::SerEnum(..)
                | Type::ErrorCode
                | Type::Newtype(..)
                | Type::Unknown
        ) {
            self.error(subject.span, rule, format!("`switch` works on integers, enums and `action_run`, not on `{t}`"));
        }
    }

    fn for_in(&mut self, variable: &'a ForVariable, collection: &'a ForCollection, body: &'a Statement) {
        let rule = Rule::For;
        self.push_scope();
        let element = match collection {
            ForCollection::Expression(e) => {
                let t = self.check_expr(e);
                match self.zonk(&t) {
                    Type::Stack(t, _) | Type::List(t) => *t,
                    Type::Tuple(ts) => {
                        let first = ts.first().cloned().unwrap_or(Type::Unknown);
                        if ts.iter().all(|t| self.unify(&first, t)) {
                            first
                        } else {
                            Type::Unknown
                        }
                    }
                    Type::Unknown => Type::Unknown,
                    t => {
                        self.error(e.span, rule, format!("a loop runs over a range, a list or a stack, not over `{t}`"));
                        Type::Unknown
                    }
                }
            }
            ForCollection::Range(a, b) => {
                let (at, bt) = (self.check_expr(a), self.check_expr(b));
                match self.common_type(&at, &bt) {
                    Some(t @ (Type::Bits { .. } | Type::Int | Type::Unknown)) => t,
                    _ => {
                        self.error(a.span.to(b.span), rule, "the ends of the range must be integers of one type");
                        Type::Unknown
                    }
                }
            }
        };
        match variable {
            ForVariable::Declared(t, name) => {
                let ty = self.resolve_type(t);
                self.expect_type(&ty, &element, name.span, rule, "the loop variable");
                self.declare(name, Local::Var { ty, access: Access::Variable });
            }
            ForVariable::Existing(e) => {
                let t = self.check_expr(e);
                let t = if matches!(t, Type::Bits { .. }) { t.to_string() } else { "bit<32>".to_owned() };
                let name = fairlane_syntax::print::expression(e);
                self.error_help(e.span, rule, "the loop declares its variable", format!("write `for ({t} {name} in ...)`"));
            }
        }
        self.loop_depth += 1;
        self.check_nested(body);
        self.loop_depth -= 1;
        self.pop_scope();
    }

    /// A constant, variable or instantiation among statements or locals.
    pub(crate) fn check_local(&mut self, d: &'a Declaration) {
        self.check_annotations(&d.annotations);
        match &d.kind {
            DeclarationKind::Constant(c) => self.check_constant(c),
            DeclarationKind::Variable(v) => {
                let ty = self.resolve_type(&v.ty);
                let rule = Rule::Variables;
                match &ty {
                    Type::Void | Type::Int | Type::Str | Type::MatchKind | Type::Set(_) => {
                        let text = format!("a variable cannot have the type `{ty}`");
                        if ty == Type::Int {
                            self.error_help(v.ty.span, rule, text, "give it a width: `bit<32>`");
                        } else {
                            self.error(v.ty.span, rule, text);
                        }
                    }
                    Type::Extern(_) | Type::Parser(_) | Type::Control(_) | Type::Package(_) => {
                        self.error_help(
                            d.span,
                            rule,
                            format!("`{}` is an object of type `{ty}`, not a variable", v.name.name),
                            "give the arguments of its constructor: `T(...) name;`",
                        );
                    }
                    _ => {}
                }
                if let Some(e) = &v.initializer {
                    self.check_against(e, &ty, rule, "the initial value");
                    self.check_left_open(&v.ty, &ty, e.span);
                }
                self.declare(&v.name, Local::Var { ty, access: Access::Variable });
            }
            DeclarationKind::Instantiation(i) => {
                let t = self.check_instantiation(i, d.span);
                self.declare(&i.name, Local::Instance(t));
            }
            _ => self.error(d.span, Rule::Statements, "this cannot be declared here"),
        }
    }

    pub(crate) fn check_constant(&mut self, c: &'a ConstantDeclaration) {
        let rule = Rule::Constants;
        let ty = self.resolve_type(&c.ty);
        if matches!(c.ty.kind, TypeExprKind::DontCare) {
            self.error(c.ty.span, Rule::Inference, "the type of a constant must be written");
        }
        let t = self.check_expr_expecting(&c.value, &ty);
        let fits = self.expect_type(&ty, &t, c.value.span, rule, "the value");
        if fits {
            self.refuse_tuple(&ty, &c.value, rule, "the value");
        }
        if fits {
            self.check_left_open(&c.ty, &ty, c.value.span);
        }
        let value = self.constant_value(&c.value, &ty, fits && !t.is_unknown(), rule);
        self.declare(&c.name, Local::Var { ty, access: Access::Constant(value) });
    }

    /// Type arguments written as `_` take the types of the initial value; a literal without a width gives none (spec 8.26).
    fn check_left_open(&mut self, written: &TypeExpr, ty: &Type, value: Span) {
        let TypeExprKind::Specialized(_, args) = &written.kind else { return };
        if !args.iter().any(|a| matches!(a.kind, TypeExprKind::DontCare)) {
            return;
        }
        let (Type::Struct(n) | Type::Header(n) | Type::Union(n)) = self.zonk(ty) else { return };
        for (t, arg) in n.args.iter().zip(args).filter(|(_, a)| matches!(a.kind, TypeExprKind::DontCare)) {
            let rule = Rule::Inference;
            match t {
                Type::Int => {
                    self.error_help(value, rule, format!("the literals give no width for the `_` of `{}`", n.name), "give them one: `8w1`");
                }
                Type::Infer(_) => {
                    self.error_help(arg.span, rule, "the initial value does not say what this stands for", "write the type");
                }
                _ => {}
            }
        }
    }

    /// The value of a constant's initialiser in the constant's type.
    pub(crate) fn constant_value(&mut self, e: &Expr, ty: &Type, tell: bool, rule: Rule) -> Option<super::ConstVal> {
        let value = self.eval(e);
        match value {
            Some(super::ConstVal::Int(v)) => {
                let ty = self.strip_newtype(ty);
                Some(super::ConstVal::Int(super::constants::wrap(v, &ty)))
            }
            Some(v) => Some(v),
            None => {
                if tell && !self.is_constructor_param(e) {
                    self.error_code(Code::NotConstant, e.span, rule, "the value must be known at compile time");
                }
                None
            }
        }
    }
}
