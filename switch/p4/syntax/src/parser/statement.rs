//! Statements (specification 12).

use super::{Parse, Parser, Reported};
use crate::ast::{
    Annotation, BinaryOp, Block, DeclarationKind, Expr, ExprKind, ForCollection, ForVariable, Statement, StatementKind, SwitchCase,
    TypeExprKind,
};
use crate::code::Code;
use crate::diagnostic::Diagnostic;
use crate::span::Span;
use crate::token::{Punct, TokenKind};

/// `else if` may follow each other that often.
const MAX_CHAIN: usize = 500;

impl Parser<'_> {
    /// `blockStatement : optAnnotations '{' statOrDeclList '}'`, after the annotations.
    pub(super) fn block(&mut self, annotations: Vec<Annotation>) -> Parse<Block> {
        let mut statements = Vec::new();
        let span = self.nested(|parser| {
            parser.scoped(|parser| {
                parser.braced(|parser| {
                    statements.push(parser.statement()?);
                    Ok(())
                })
            })
        })?;
        Ok(Block { annotations, statements, span })
    }

    /// `statementOrDeclaration`
    pub(super) fn statement(&mut self) -> Parse<Statement> {
        let annotations = self.annotations()?;
        let token = self.peek();
        let start = token.span;
        let word = if token.kind == TokenKind::Word { &*token.text } else { "" };
        let kind = match word {
            "if" => self.conditional()?,
            "switch" => self.switch()?,
            "for" => {
                let kind = self.nested(|parser| parser.scoped(Self::for_loop))?;
                return Ok(Statement { annotations, kind, span: self.span_from(start) });
            }
            "return" => {
                self.advance();
                let value = if self.is(Punct::Semicolon) { None } else { Some(self.expression()?) };
                self.semicolon()?;
                StatementKind::Return(value)
            }
            "exit" | "break" | "continue" => {
                self.advance();
                self.semicolon()?;
                match word {
                    "exit" => StatementKind::Exit,
                    "break" => StatementKind::Break,
                    _ => StatementKind::Continue,
                }
            }
            "const" => {
                let kind = self.constant()?;
                let declaration = self.declared(annotations, kind, start);
                return Ok(self.declaration_statement(declaration, start));
            }
            "action" | "table" | "state" | "value_set" | "apply" if self.ahead(1).kind == TokenKind::Word => {
                let message = format!("`{word}` cannot be declared within a block");
                return Err(self.report(Diagnostic::error(Code::MisplacedDeclaration, start, message).rule("12, statements")));
            }
            "else" => {
                return Err(
                    self.report(Diagnostic::error(Code::UnexpectedToken, start, "`else` without `if`").rule("12.6, conditional statement"))
                );
            }
            _ if self.is(Punct::Semicolon) => {
                self.advance();
                StatementKind::Empty
            }
            _ if self.is(Punct::OpenBrace) => {
                let block = self.block(annotations)?;
                return Ok(Statement { annotations: Vec::new(), kind: StatementKind::Block(block), span: self.span_from(start) });
            }
            _ => {
                let mut statement = self.simple_statement()?;
                self.semicolon()?;
                statement.span = self.span_from(start);
                if let StatementKind::Declaration(declaration) = &mut statement.kind {
                    declaration.annotations = annotations;
                    declaration.span = statement.span;
                    return Ok(statement);
                }
                statement.kind
            }
        };
        if let Some(first) = annotations.first() {
            self.report(
                Diagnostic::error(Code::MisplacedAnnotation, first.span, "this statement takes no annotation")
                    .rule("20, annotations stand before declarations, blocks and loops")
                    .help("put the statement in a block and annotate that"),
            );
        }
        Ok(Statement { annotations: Vec::new(), kind, span: self.span_from(start) })
    }

    fn declaration_statement(&self, declaration: crate::ast::Declaration, start: Span) -> Statement {
        let kind = StatementKind::Declaration(Box::new(declaration));
        Statement { annotations: Vec::new(), kind, span: self.span_from(start) }
    }

    /// `variableDeclarationWithoutSemicolon`, `assignmentOrMethodCallStatementWithoutSemicolon`, an instantiation without its `;`, a
    /// direct application.
    fn simple_statement(&mut self) -> Parse<Statement> {
        let start = self.peek().span;
        if self.begins_declaration() {
            let ty = self.type_ref()?;
            let kind = if self.is(Punct::OpenParen) {
                let arguments = self.arguments()?;
                let name = self.name()?;
                self.declare_object(&name);
                DeclarationKind::Instantiation(crate::ast::Instantiation { ty, arguments, name, initializer: None })
            } else if self.is(Punct::Dot) {
                return self.direct_application(ty, start);
            } else {
                self.variable(ty)?
            };
            let declaration = self.declared(Vec::new(), kind, start);
            return Ok(self.declaration_statement(declaration, start));
        }
        let awaited = "a statement";
        if !self.at_name() && !self.is_word("this") && !self.is(Punct::OpenParen) && !self.is(Punct::Dot) {
            return self.unexpected(awaited);
        }
        let target = self.lvalue()?;
        let kind = match target.kind {
            ExprKind::Call { .. } | ExprKind::Construct(..) => StatementKind::Call(target),
            _ => {
                let op = self.assignment_operator()?;
                let value = self.expression()?;
                StatementKind::Assignment { target, op, value }
            }
        };
        Ok(Statement { annotations: Vec::new(), kind, span: self.span_from(start) })
    }

    /// `lvalue`, or a call, which begins like one.
    fn lvalue(&mut self) -> Parse<Expr> {
        let primary = if self.is(Punct::OpenParen) {
            // '(' lvalue ')'
            self.advance();
            let inner = self.nested(Self::lvalue)?;
            self.expect(Punct::CloseParen)?;
            inner
        } else if self.is_word("this") {
            let span = self.advance().span;
            self.make(ExprKind::This, span)?
        } else {
            let path = self.path()?;
            let span = path.span;
            self.make(ExprKind::Name(path), span)?
        };
        self.selectors(primary, true)
    }

    /// Whether the statement begins with a type: a declaration, or `T.apply(..)` with type arguments.
    fn begins_declaration(&self) -> bool {
        let token = self.peek();
        let next = self.ahead(1);
        if token.is(Punct::Dot) {
            // `.T x`
            return super::is_name(next) && super::is_name(self.ahead(2));
        }
        if !super::is_name(token) {
            return self.begins_type(token);
        }
        if super::is_name(next) {
            return true;
        }
        if token.is_word("list") && next.is(Punct::Less) {
            return true;
        }
        if !self.is_type_name(token) {
            return false;
        }
        match next.kind {
            TokenKind::Punct(Punct::Dot) => self.ahead(2).is_word("apply"),
            TokenKind::Punct(Punct::OpenParen) => self.name_after_parentheses(1),
            _ => true,
        }
    }

    /// Whether a name stands after the parentheses that open that many places on: `T(..) name`.
    fn name_after_parentheses(&self, by: usize) -> bool {
        let mut nested = 0usize;
        for by in by.. {
            match self.ahead(by).kind {
                TokenKind::Punct(Punct::OpenParen) => nested += 1,
                TokenKind::Punct(Punct::CloseParen) if nested <= 1 => return super::is_name(self.ahead(by + 1)),
                TokenKind::Punct(Punct::CloseParen) => nested -= 1,
                TokenKind::End | TokenKind::Punct(Punct::Semicolon) => return false,
                _ => {}
            }
        }
        false
    }

    /// `directApplication : typeName '.' APPLY '(' argumentList ')'`, after the type.
    fn direct_application(&mut self, ty: crate::ast::TypeExpr, start: Span) -> Parse<Statement> {
        self.expect(Punct::Dot)?;
        self.expect_word("apply")?;
        let arguments = self.arguments()?;
        if !matches!(ty.kind, TypeExprKind::Name(_) | TypeExprKind::Specialized(..)) {
            return Err(self.report(
                Diagnostic::error(Code::BadApplication, ty.span, "only parsers and controls can be applied")
                    .rule("15.1, direct type invocation"),
            ));
        }
        let kind = StatementKind::DirectApplication { ty, arguments };
        Ok(Statement { annotations: Vec::new(), kind, span: self.span_from(start) })
    }

    /// `=`, `+=`, ..
    fn assignment_operator(&mut self) -> Parse<Option<BinaryOp>> {
        let TokenKind::Punct(punct) = self.peek().kind else { return self.unexpected("`=` or `(`") };
        let op = match punct {
            Punct::Assign => None,
            Punct::AddAssign => Some(BinaryOp::Add),
            Punct::SubAssign => Some(BinaryOp::Sub),
            Punct::AddSatAssign => Some(BinaryOp::AddSat),
            Punct::SubSatAssign => Some(BinaryOp::SubSat),
            Punct::MulAssign => Some(BinaryOp::Mul),
            Punct::DivAssign => Some(BinaryOp::Div),
            Punct::ModAssign => Some(BinaryOp::Mod),
            Punct::ShlAssign => Some(BinaryOp::Shl),
            Punct::AndAssign => Some(BinaryOp::BitAnd),
            Punct::OrAssign => Some(BinaryOp::BitOr),
            Punct::XorAssign => Some(BinaryOp::BitXor),
            Punct::Greater if self.ahead(1).is(Punct::GreaterEq) && !self.ahead(1).spaced => {
                self.advance();
                Some(BinaryOp::Shr)
            }
            Punct::EqEq => {
                let span = self.peek().span;
                return Err(self.report(
                    Diagnostic::error(Code::UnexpectedToken, span, "expected `=`, found `==`").help("`=` assigns, `==` compares"),
                ));
            }
            _ => return self.unexpected("`=` or `(`"),
        };
        self.advance();
        Ok(op)
    }

    /// `conditionalStatement : IF '(' expression ')' statement [ELSE statement]`. A chain of `else if` is read in a loop, as it may be long.
    fn conditional(&mut self) -> Parse<StatementKind> {
        let mut arms: Vec<(Span, Expr, Statement)> = Vec::new();
        let mut last: Option<Box<Statement>> = None;
        loop {
            let start = self.expect_word("if")?;
            if arms.len() >= MAX_CHAIN {
                let message = format!("more than {MAX_CHAIN} `else if` follow each other");
                return Err(self.report(Diagnostic::error(Code::TooDeep, start, message).help("use a table or `switch`")));
            }
            self.expect(Punct::OpenParen)?;
            let condition = self.expression()?;
            self.expect(Punct::CloseParen)?;
            let then_branch = self.branch()?;
            arms.push((start, condition, then_branch));
            if !self.eat_word("else") {
                break;
            }
            if !self.is_word("if") {
                last = Some(Box::new(self.branch()?));
                break;
            }
        }
        while let Some((start, condition, then_branch)) = arms.pop() {
            let kind = StatementKind::If { condition, then_branch: Box::new(then_branch), else_branch: last.take() };
            if arms.is_empty() {
                return Ok(kind);
            }
            last = Some(Box::new(Statement { annotations: Vec::new(), kind, span: self.span_from(start) }));
        }
        Err(Reported)
    }

    /// A statement that is a branch or a loop's body: no declaration.
    fn branch(&mut self) -> Parse<Statement> {
        // A block counts for itself.
        let statement = if self.is(Punct::OpenBrace) { self.statement()? } else { self.nested(|parser| parser.scoped(Self::statement))? };
        if matches!(statement.kind, StatementKind::Declaration(_)) {
            self.report(
                Diagnostic::error(Code::MisplacedDeclaration, statement.span, "a declaration cannot be a branch or a loop's body")
                    .rule("12.6, a branch is a statement")
                    .help("put it in braces"),
            );
        }
        Ok(statement)
    }

    /// `switchStatement : SWITCH '(' expression ')' '{' switchCases '}'`
    fn switch(&mut self) -> Parse<StatementKind> {
        self.expect_word("switch")?;
        self.expect(Punct::OpenParen)?;
        let subject = self.expression()?;
        self.expect(Punct::CloseParen)?;
        let mut cases = Vec::new();
        self.braced(|parser| {
            // switchCase : switchLabel ':' blockStatement | switchLabel ':'
            let start = parser.peek().span;
            let label = if parser.eat_word("default") { parser.make(ExprKind::Default, start)? } else { parser.expression()? };
            parser.expect(Punct::Colon)?;
            let annotations = if parser.is(Punct::At) { parser.annotations()? } else { Vec::new() };
            let body = if parser.is(Punct::OpenBrace) || !annotations.is_empty() { Some(parser.block(annotations)?) } else { None };
            cases.push(SwitchCase { label, body, span: parser.span_from(start) });
            Ok(())
        })?;
        Ok(StatementKind::Switch { subject, cases })
    }

    /// `forStatement : FOR '(' forInitStatements ';' expression ';' forUpdateStatements ')' statement | FOR '(' typeRef name IN
    /// forCollectionExpr ')' statement`, and an existing l-value as the loop variable.
    fn for_loop(&mut self) -> Parse<StatementKind> {
        self.expect_word("for")?;
        self.expect(Punct::OpenParen)?;
        if let Some(variable) = self.for_variable() {
            if let ForVariable::Declared(_, name) = &variable {
                self.declare_object(name);
            }
            let first = self.expression()?;
            let collection =
                if self.eat(Punct::Range) { ForCollection::Range(first, self.expression()?) } else { ForCollection::Expression(first) };
            self.expect(Punct::CloseParen)?;
            let body = Box::new(self.branch()?);
            return Ok(StatementKind::ForIn { variable, collection, body });
        }
        let init = self.for_list(Punct::Semicolon)?;
        let condition = self.expression()?;
        self.expect(Punct::Semicolon)?;
        let update = self.for_list(Punct::CloseParen)?;
        for statement in &update {
            if matches!(statement.kind, StatementKind::Declaration(_)) {
                self.report(
                    Diagnostic::error(Code::MisplacedDeclaration, statement.span, "a loop's update cannot declare anything")
                        .rule("12.8, for statement"),
                );
            }
        }
        let body = Box::new(self.branch()?);
        Ok(StatementKind::For { init, condition, update, body })
    }

    /// `T x in`, `x in`
    fn for_variable(&mut self) -> Option<ForVariable> {
        let declared = self.attempt(|parser| {
            parser.annotations()?;
            let ty = parser.type_ref()?;
            let name = parser.name()?;
            parser.expect_word("in")?;
            Ok(ForVariable::Declared(ty, name))
        });
        if declared.is_some() {
            return declared;
        }
        self.attempt(|parser| {
            let variable = parser.lvalue()?;
            parser.expect_word("in")?;
            Ok(ForVariable::Existing(variable))
        })
    }

    /// Simple statements with commas between, up to `close`.
    fn for_list(&mut self, close: Punct) -> Parse<Vec<Statement>> {
        self.separated(close, false, |parser| {
            let annotations = parser.annotations()?;
            let mut statement = parser.simple_statement()?;
            if let StatementKind::Declaration(declaration) = &mut statement.kind {
                declaration.annotations = annotations;
            }
            Ok(statement)
        })
    }
}
