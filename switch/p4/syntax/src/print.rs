//! The syntax tree as text again: every operand in parentheses, so that the text means what the tree says whatever the
//! precedence. `parse(print(tree))` is the tree again, places and ids aside.

use std::fmt::Write;

use crate::ast::*;

/// The whole program.
pub fn program(program: &Program) -> String {
    let mut printer = Printer::default();
    for declaration in &program.declarations {
        printer.declaration(declaration);
    }
    printer.out
}

/// An expression on one line.
pub fn expression(expr: &Expr) -> String {
    let mut out = String::new();
    write_expression(&mut out, expr);
    out
}

/// A type on one line.
pub fn type_expr(ty: &TypeExpr) -> String {
    let mut out = String::new();
    write_type(&mut out, ty);
    out
}

#[derive(Default)]
struct Printer {
    out: String,
    depth: usize,
}

impl Printer {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{:1$}{text}", "", 4 * self.depth);
    }

    fn braced(&mut self, head: &str, body: impl FnOnce(&mut Self)) {
        self.line(&format!("{head} {{"));
        self.depth += 1;
        body(self);
        self.depth -= 1;
        self.line("}");
    }

    fn annotations(&mut self, list: &[Annotation]) {
        for annotation in list {
            let text = write_annotation(annotation);
            self.line(&text);
        }
    }

    fn declaration(&mut self, declaration: &Declaration) {
        self.annotations(&declaration.annotations);
        match &declaration.kind {
            DeclarationKind::Constant(c) => {
                self.line(&format!("const {} {} = {};", type_expr(&c.ty), c.name.name, expression(&c.value)));
            }
            DeclarationKind::Variable(v) => {
                let value = v.initializer.as_ref().map_or(String::new(), |value| format!(" = {}", expression(value)));
                self.line(&format!("{} {}{value};", type_expr(&v.ty), v.name.name));
            }
            DeclarationKind::Instantiation(i) => {
                let head = format!("{}({}) {}", type_expr(&i.ty), arguments(&i.arguments), i.name.name);
                match &i.initializer {
                    None => self.line(&format!("{head};")),
                    Some(members) => {
                        self.braced(&format!("{head} ="), |p| members.iter().for_each(|member| p.declaration(member)));
                        self.line(";");
                    }
                }
            }
            DeclarationKind::Header(s) => self.fields("header", s),
            DeclarationKind::HeaderUnion(s) => self.fields("header_union", s),
            DeclarationKind::Struct(s) => self.fields("struct", s),
            DeclarationKind::Enum(e) => self.enumeration(e),
            DeclarationKind::Error(names) => self.line(&format!("error {{ {} }}", idents(names))),
            DeclarationKind::MatchKind(names) => self.line(&format!("match_kind {{ {} }}", idents(names))),
            DeclarationKind::Typedef(alias) => match &alias.inline {
                Some(inline) => {
                    self.line("typedef");
                    self.declaration(inline);
                    self.line(&format!("{};", alias.name.name));
                }
                None => self.line(&format!("typedef {} {};", type_expr(&alias.ty), alias.name.name)),
            },
            DeclarationKind::Newtype(alias) => self.line(&format!("type {} {};", type_expr(&alias.ty), alias.name.name)),
            DeclarationKind::ExternObject(object) => self.extern_object(object),
            DeclarationKind::ExternFunction(f) => self.line(&format!("extern {};", prototype(f))),
            DeclarationKind::Function(f) => self.block(&prototype(&f.prototype), &f.body),
            DeclarationKind::Action(a) => {
                self.block(&format!("action {}({})", a.name.name, parameters(&a.parameters)), &a.body);
            }
            DeclarationKind::Table(t) => self.table(t),
            DeclarationKind::ValueSet(v) => {
                self.line(&format!("value_set<{}>({}) {};", type_expr(&v.element), expression(&v.size), v.name.name));
            }
            DeclarationKind::ParserType(t) => self.line(&format!("{};", applicable("parser", t))),
            DeclarationKind::ControlType(t) => self.line(&format!("{};", applicable("control", t))),
            DeclarationKind::Package(t) => self.line(&format!("{};", applicable("package", t))),
            DeclarationKind::Parser(parser) => {
                let head = head("parser", &parser.name, &parser.type_parameters, &parser.parameters);
                let head = head + &constructor(&parser.constructor_parameters);
                self.braced(&head, |p| {
                    parser.locals.iter().for_each(|local| p.declaration(local));
                    parser.states.iter().for_each(|state| p.state(state));
                });
            }
            DeclarationKind::Control(control) => {
                let head = head("control", &control.name, &control.type_parameters, &control.parameters);
                let head = head + &constructor(&control.constructor_parameters);
                self.braced(&head, |p| {
                    control.locals.iter().for_each(|local| p.declaration(local));
                    p.block("apply", &control.apply);
                });
            }
        }
    }

    fn fields(&mut self, word: &str, s: &StructDeclaration) {
        self.braced(&format!("{word} {}{}", s.name.name, type_parameters(&s.type_parameters)), |p| {
            for field in &s.fields {
                p.annotations(&field.annotations);
                p.line(&format!("{} {};", type_expr(&field.ty), field.name.name));
            }
        });
    }

    fn enumeration(&mut self, e: &EnumDeclaration) {
        let underlying = e.underlying.as_ref().map_or(String::new(), |ty| format!("{} ", type_expr(ty)));
        let members: Vec<String> = e
            .members
            .iter()
            .map(|member| match &member.value {
                Some(value) => format!("{} = {}", member.name.name, expression(value)),
                None => member.name.name.to_string(),
            })
            .collect();
        self.line(&format!("enum {underlying}{} {{ {} }}", e.name.name, members.join(", ")));
    }

    fn extern_object(&mut self, object: &ExternObject) {
        self.braced(&format!("extern {}{}", object.name.name, type_parameters(&object.type_parameters)), |p| {
            for constructor in &object.constructors {
                p.annotations(&constructor.annotations);
                p.line(&format!("{}({});", constructor.name.name, parameters(&constructor.parameters)));
            }
            for method in &object.methods {
                p.annotations(&method.annotations);
                let word = if method.is_abstract { "abstract " } else { "" };
                p.line(&format!("{word}{};", prototype(&method.prototype)));
            }
        });
    }

    fn table(&mut self, table: &TableDeclaration) {
        self.braced(&format!("table {}", table.name.name), |p| {
            for property in &table.properties {
                p.annotations(&property.annotations);
                let word = if property.is_const { "const " } else { "" };
                match &property.kind {
                    TablePropertyKind::Key(elements) => p.braced(&format!("{word}key ="), |p| {
                        for element in elements {
                            let annotations: String = element.annotations.iter().map(|a| format!(" {}", write_annotation(a))).collect();
                            let kind = path(&element.match_kind);
                            p.line(&format!("{} : {kind}{annotations};", expression(&element.expression)));
                        }
                    }),
                    TablePropertyKind::Actions(actions) => p.braced(&format!("{word}actions ="), |p| {
                        for action in actions {
                            p.annotations(&action.annotations);
                            p.line(&format!("{};", action_reference(action)));
                        }
                    }),
                    TablePropertyKind::Entries(entries) => p.braced(&format!("{word}entries ="), |p| {
                        entries.iter().for_each(|entry| p.entry(entry));
                    }),
                    TablePropertyKind::Other(name, value) => {
                        p.line(&format!("{word}{} = {};", name.name, expression(value)));
                    }
                }
            }
        });
    }

    fn entry(&mut self, entry: &TableEntry) {
        let mut line = String::new();
        if entry.is_const {
            line.push_str("const ");
        }
        if let Some(priority) = &entry.priority {
            let _ = write!(line, "priority = ({}) : ", expression(priority));
        }
        let _ = write!(line, "{} : {}", keyset(&entry.keyset), action_reference(&entry.action));
        for annotation in &entry.annotations {
            let _ = write!(line, " {}", write_annotation(annotation));
        }
        self.line(&(line + ";"));
    }

    fn state(&mut self, state: &ParserState) {
        self.annotations(&state.annotations);
        self.braced(&format!("state {}", state.name.name), |p| {
            state.statements.iter().for_each(|statement| p.statement(statement));
            match &state.transition {
                None => {}
                Some(Transition::Direct(target)) => p.line(&format!("transition {};", target.name)),
                Some(Transition::Select(select)) => {
                    let keys: Vec<String> = select.keys.iter().map(expression).collect();
                    p.braced(&format!("transition select({})", keys.join(", ")), |p| {
                        for case in &select.cases {
                            p.line(&format!("{} : {};", keyset(&case.keyset), case.target.name));
                        }
                    });
                }
            }
        });
    }

    fn block(&mut self, head: &str, block: &Block) {
        let annotations: String = block.annotations.iter().map(|a| format!(" {}", write_annotation(a))).collect();
        self.braced(&format!("{head}{annotations}"), |p| block.statements.iter().for_each(|s| p.statement(s)));
    }

    fn statement(&mut self, statement: &Statement) {
        self.annotations(&statement.annotations);
        match &statement.kind {
            StatementKind::Declaration(declaration) => self.declaration(declaration),
            StatementKind::Block(block) => self.block("", block),
            StatementKind::If { .. } => self.conditional(statement),
            StatementKind::Switch { subject, cases } => {
                self.braced(&format!("switch ({})", expression(subject)), |p| {
                    for case in cases {
                        let label = format!("{}:", expression(&case.label));
                        match &case.body {
                            Some(body) => p.block(&label, body),
                            None => p.line(&label),
                        }
                    }
                });
            }
            StatementKind::For { init, condition, update, body } => {
                let init: Vec<String> = init.iter().map(simple).collect();
                let update: Vec<String> = update.iter().map(simple).collect();
                self.line(&format!("for ({}; {}; {})", init.join(", "), expression(condition), update.join(", ")));
                self.inner(body);
            }
            StatementKind::ForIn { variable, collection, body } => {
                let variable = match variable {
                    ForVariable::Declared(ty, name) => format!("{} {}", type_expr(ty), name.name),
                    ForVariable::Existing(target) => lvalue(target),
                };
                let collection = match collection {
                    ForCollection::Expression(list) => expression(list),
                    ForCollection::Range(low, high) => format!("{} .. {}", expression(low), expression(high)),
                };
                self.line(&format!("for ({variable} in {collection})"));
                self.inner(body);
            }
            _ => self.line(&(simple(statement) + ";")),
        }
    }

    fn inner(&mut self, statement: &Statement) {
        self.depth += 1;
        self.statement(statement);
        self.depth -= 1;
    }

    /// A chain of `else if` is as deep as it is long: it is walked in a loop.
    fn conditional(&mut self, statement: &Statement) {
        let mut lead = "";
        let mut next = statement;
        while let StatementKind::If { condition, then_branch, else_branch } = &next.kind {
            self.line(&format!("{lead}if ({})", expression(condition)));
            self.inner(then_branch);
            lead = "else ";
            match else_branch.as_deref() {
                Some(last) => next = last,
                None => return,
            }
        }
        self.line("else");
        self.inner(next);
    }
}

/// Statements that fit on a line, without their `;`.
fn simple(statement: &Statement) -> String {
    match &statement.kind {
        StatementKind::Declaration(declaration) => {
            let mut printer = Printer::default();
            printer.declaration(declaration);
            printer.out.trim_end().trim_end_matches(';').replace('\n', " ")
        }
        StatementKind::Assignment { target, op, value } => {
            let op = op.map_or("", |op| op.symbol());
            format!("{} {op}= {}", lvalue(target), expression(value))
        }
        StatementKind::Call(call) => lvalue(call),
        StatementKind::DirectApplication { ty, arguments: list } => {
            format!("{}.apply({})", type_expr(ty), arguments(list))
        }
        StatementKind::Return(None) => "return".into(),
        StatementKind::Return(Some(value)) => format!("return {}", expression(value)),
        StatementKind::Exit => "exit".into(),
        StatementKind::Break => "break".into(),
        StatementKind::Continue => "continue".into(),
        _ => String::new(),
    }
}

/// An expression that begins a statement, which is no operator's operand: no parentheses.
fn lvalue(expr: &Expr) -> String {
    let mut out = String::new();
    write_postfix(&mut out, expr);
    out
}

fn write_expression(out: &mut String, expr: &Expr) {
    match &expr.kind {
        ExprKind::Int(literal) => write_integer(out, literal),
        ExprKind::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        ExprKind::String(text) => out.push_str(&quote(text)),
        ExprKind::Cast(ty, inner) => {
            let _ = write!(out, "(({}) ", type_expr(ty));
            write_expression(out, inner);
            out.push(')');
        }
        ExprKind::Unary(op, inner) => {
            let _ = write!(out, "({} ", op.symbol());
            write_expression(out, inner);
            out.push(')');
        }
        ExprKind::Binary(op, left, right) => {
            out.push('(');
            write_expression(out, left);
            let _ = write!(out, " {} ", op.symbol());
            write_expression(out, right);
            out.push(')');
        }
        ExprKind::Ternary(..) => {
            // A chain is one level deep, as it was in the source.
            out.push('(');
            let mut rest = expr;
            while let ExprKind::Ternary(condition, yes, no) = &rest.kind {
                write_expression(out, condition);
                out.push_str(" ? ");
                write_expression(out, yes);
                out.push_str(" : ");
                rest = no;
            }
            write_expression(out, rest);
            out.push(')');
        }
        ExprKind::List { elements, dots } => {
            let mut all: Vec<String> = elements.iter().map(expression).collect();
            all.extend(dots.then(|| "...".to_string()));
            let _ = write!(out, "{{ {} }}", all.join(", "));
        }
        ExprKind::Record { fields, dots } => {
            let mut all: Vec<String> = fields.iter().map(|(name, value)| format!("{} = {}", name.name, expression(value))).collect();
            all.extend(dots.then(|| "...".to_string()));
            let _ = write!(out, "{{ {} }}", all.join(", "));
        }
        ExprKind::InvalidHeader => out.push_str("{#}"),
        ExprKind::Dots => out.push_str("..."),
        ExprKind::Default => out.push_str("default"),
        ExprKind::DontCare => out.push('_'),
        ExprKind::Invalid => out.push_str("{#}"),
        _ => write_postfix(out, expr),
    }
}

fn write_postfix(out: &mut String, expr: &Expr) {
    match &expr.kind {
        ExprKind::Name(name) => out.push_str(&path(name)),
        ExprKind::This => out.push_str("this"),
        ExprKind::Member(inner, name) => {
            write_postfix(out, inner);
            let _ = write!(out, ".{}", name.name);
        }
        ExprKind::TypeMember(ty, name) => {
            let _ = write!(out, "{}.{}", type_expr(ty), name.name);
        }
        ExprKind::Index(inner, index) => {
            write_postfix(out, inner);
            let _ = write!(out, "[{}]", expression(index));
        }
        ExprKind::Slice(inner, high, low) => {
            write_postfix(out, inner);
            let _ = write!(out, "[{} : {}]", expression(high), expression(low));
        }
        ExprKind::Call { callee, type_arguments, arguments: list } => {
            write_postfix(out, callee);
            if !type_arguments.is_empty() {
                let types: Vec<String> = type_arguments.iter().map(type_expr).collect();
                let _ = write!(out, "<{}>", types.join(", "));
            }
            let _ = write!(out, "({})", arguments(list));
        }
        ExprKind::Construct(ty, list) => {
            let _ = write!(out, "{}({})", type_expr(ty), arguments(list));
        }
        _ => write_expression(out, expr),
    }
}

fn write_integer(out: &mut String, literal: &IntLiteral) {
    if let Some(width) = literal.width {
        let _ = write!(out, "{}{}", width.bits, if width.signed { 's' } else { 'w' });
    }
    let (prefix, base) = match literal.base {
        2 => ("0b", 2),
        8 => ("0o", 8),
        16 => ("0x", 16),
        _ => ("", 10),
    };
    let _ = write!(out, "{prefix}{}", literal.value.to_str_radix(base));
}

fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

fn write_type(out: &mut String, ty: &TypeExpr) {
    let list = |types: &[TypeExpr]| types.iter().map(type_expr).collect::<Vec<_>>().join(", ");
    let _ = match &ty.kind {
        TypeExprKind::Bool => write!(out, "bool"),
        TypeExprKind::Error => write!(out, "error"),
        TypeExprKind::MatchKind => write!(out, "match_kind"),
        TypeExprKind::String => write!(out, "string"),
        TypeExprKind::Int => write!(out, "int"),
        TypeExprKind::Bit(None) => write!(out, "bit"),
        TypeExprKind::Bit(Some(width)) => write!(out, "bit<{}>", expression(width)),
        TypeExprKind::SignedBit(width) => write!(out, "int<{}>", expression(width)),
        TypeExprKind::Varbit(width) => write!(out, "varbit<{}>", expression(width)),
        TypeExprKind::Void => write!(out, "void"),
        TypeExprKind::DontCare => write!(out, "_"),
        TypeExprKind::Name(name) => write!(out, "{}", path(name)),
        TypeExprKind::Specialized(name, types) => write!(out, "{}<{}>", path(name), list(types)),
        TypeExprKind::Stack(element, size) => write!(out, "{}[{}]", type_expr(element), expression(size)),
        TypeExprKind::Tuple(types) => write!(out, "tuple<{}>", list(types)),
        TypeExprKind::List(element) => write!(out, "list<{}>", type_expr(element)),
    };
}

fn path(path: &Path) -> String {
    format!("{}{}", if path.absolute { "." } else { "" }, path.name.name)
}

fn idents(names: &[Ident]) -> String {
    names.iter().map(|name| &*name.name).collect::<Vec<_>>().join(", ")
}

fn type_parameters(names: &[Ident]) -> String {
    if names.is_empty() {
        String::new()
    } else {
        format!("<{}>", idents(names))
    }
}

fn parameters(list: &[Parameter]) -> String {
    let one = |parameter: &Parameter| {
        let mut out: String = parameter.annotations.iter().map(|a| format!("{} ", write_annotation(a))).collect();
        out.push_str(match parameter.direction {
            Direction::None => "",
            Direction::In => "in ",
            Direction::Out => "out ",
            Direction::InOut => "inout ",
        });
        let _ = write!(out, "{} {}", type_expr(&parameter.ty), parameter.name.name);
        if let Some(default) = &parameter.default {
            let _ = write!(out, " = {}", expression(default));
        }
        out
    };
    list.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn constructor(list: &[Parameter]) -> String {
    if list.is_empty() {
        String::new()
    } else {
        format!("({})", parameters(list))
    }
}

fn head(word: &str, name: &Ident, types: &[Ident], list: &[Parameter]) -> String {
    format!("{word} {}{}({})", name.name, type_parameters(types), parameters(list))
}

fn applicable(word: &str, ty: &ApplicableType) -> String {
    head(word, &ty.name, &ty.type_parameters, &ty.parameters)
}

fn prototype(f: &FunctionPrototype) -> String {
    head(&type_expr(&f.return_type), &f.name, &f.type_parameters, &f.parameters)
}

fn arguments(list: &[Argument]) -> String {
    let one = |argument: &Argument| {
        let name = argument.name.as_ref().map_or(String::new(), |name| format!("{} = ", name.name));
        name + &expression(&argument.value)
    };
    list.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn action_reference(action: &ActionReference) -> String {
    let arguments = action.arguments.as_ref().map_or(String::new(), |list| format!("({})", arguments(list)));
    path(&action.name) + &arguments
}

fn keyset(set: &Keyset) -> String {
    match &set.kind {
        KeysetKind::Default => "default".into(),
        KeysetKind::DontCare => "_".into(),
        KeysetKind::Value(value) => expression(value),
        KeysetKind::Mask(value, mask) => format!("{} &&& {}", expression(value), expression(mask)),
        KeysetKind::Range(low, high) => format!("{} .. {}", expression(low), expression(high)),
        KeysetKind::Tuple(sets) => format!("({})", sets.iter().map(keyset).collect::<Vec<_>>().join(", ")),
    }
}

fn write_annotation(annotation: &Annotation) -> String {
    let name = &annotation.name.name;
    match &annotation.body {
        // `@pragma` with a word after it is another annotation.
        AnnotationBody::None if &**name == "pragma" => "@pragma\n".into(),
        AnnotationBody::None => format!("@{name}"),
        AnnotationBody::Unstructured(tokens) => {
            let text = tokens.iter().map(|token| &*token.text).collect::<Vec<_>>().join(" ");
            match balanced(tokens) {
                true => format!("@{name}({text})"),
                // Only the end of a line ends it.
                false => format!("@pragma {name} {text}\n"),
            }
        }
        AnnotationBody::Expressions(list) => {
            format!("@{name}[{}]", list.iter().map(expression).collect::<Vec<_>>().join(", "))
        }
        AnnotationBody::KeyValues(pairs) => {
            let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("{} = {}", key.name, expression(value))).collect();
            format!("@{name}[{}]", pairs.join(", "))
        }
    }
}

/// Whether parentheses around these tokens would be theirs alone: those of a `@pragma` may be any.
fn balanced(tokens: &[AnnotationToken]) -> bool {
    let mut open = 0usize;
    for token in tokens.iter().filter(|token| token.kind == AnnotationTokenKind::Punctuation) {
        match &*token.text {
            "(" => open += 1,
            ")" if open == 0 => return false,
            ")" => open -= 1,
            _ => {}
        }
    }
    open == 0
}
