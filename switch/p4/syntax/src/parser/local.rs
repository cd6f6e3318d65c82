//! Controls and actions (specification 14): declarations with local declarations and a body.

use super::{Parse, Parser};
use crate::ast::{ActionDeclaration, ApplicableType, Block, ControlDeclaration, Declaration, DeclarationKind, TypeExprKind};
use crate::code::Code;
use crate::diagnostic::Diagnostic;
use crate::token::Punct;

impl Parser<'_> {
    /// `controlDeclaration : controlTypeDeclaration optConstructorParameters '{' controlLocalDeclarations APPLY controlBody '}'`,
    /// `controlTypeDeclaration : optAnnotations CONTROL name optTypeParameters '(' parameterList ')'`
    pub(super) fn control_declaration(&mut self) -> Parse<DeclarationKind> {
        let start = self.expect_word("control")?;
        let name = self.name()?;
        self.declare_type(&name);
        self.scoped(|parser| {
            let (type_parameters, parameters) = parser.applicable()?;
            if parser.eat(Punct::Semicolon) {
                return Ok(DeclarationKind::ControlType(ApplicableType { name, type_parameters, parameters }));
            }
            let constructor_parameters = if parser.is(Punct::OpenParen) { parser.parameters()? } else { Vec::new() };
            let mut locals: Vec<Declaration> = Vec::new();
            let mut apply: Option<Block> = None;
            parser.braced(|parser| {
                let body = parser.ahead(1).is(Punct::OpenBrace) || parser.ahead(1).is(Punct::At);
                if parser.is_word("apply") && body {
                    let span = parser.advance().span;
                    let annotations = parser.annotations()?;
                    let block = parser.block(annotations)?;
                    if apply.is_some() {
                        parser.report(
                            Diagnostic::error(Code::UnexpectedToken, span, "the control has a second `apply` block")
                                .rule("14, a control has one body"),
                        );
                    }
                    apply.get_or_insert(block);
                    return Ok(());
                }
                if apply.is_some() {
                    return parser.unexpected("`}` after the `apply` block");
                }
                locals.push(parser.control_local()?);
                Ok(())
            })?;
            let header = parser.span_from(start);
            let apply = match apply {
                Some(apply) => apply,
                None => {
                    parser.report(
                        Diagnostic::error(Code::MissingApply, name.span, format!("control `{}` has no `apply` block", name.name))
                            .rule("14, a control has a body"),
                    );
                    Block { span: header, ..Block::default() }
                }
            };
            Ok(DeclarationKind::Control(ControlDeclaration { name, type_parameters, parameters, constructor_parameters, locals, apply }))
        })
    }

    /// `controlLocalDeclaration : constantDeclaration | actionDeclaration | tableDeclaration | instantiation |
    /// variableDeclaration`
    fn control_local(&mut self) -> Parse<Declaration> {
        let annotations = self.annotations()?;
        let start = self.peek().span;
        let kind = if self.is_word("const") {
            self.constant()?
        } else if self.is_word("action") {
            self.action()?
        } else if self.is_word("table") {
            self.table()?
        } else {
            self.variable_or_instantiation("a declaration or `apply`")?
        };
        Ok(self.declared(annotations, kind, start))
    }

    /// `variableDeclaration` or `instantiation`, with the `;`.
    pub(super) fn variable_or_instantiation(&mut self, awaited: &str) -> Parse<DeclarationKind> {
        let token = self.peek();
        if !self.begins_type(token) && !self.at_name() && !self.is(Punct::Dot) {
            return self.unexpected(awaited);
        }
        let next = self.ahead(1);
        let misplaced = [Punct::Assign, Punct::Dot].iter().any(|punct| next.is(*punct)) || token.is_word("if");
        if misplaced && self.at_name() {
            return Err(self.report(
                Diagnostic::error(Code::MisplacedStatement, token.span, format!("expected {awaited}, found a statement"))
                    .rule("14, statements of a control stand in its `apply` block and in actions"),
            ));
        }
        let ty = self.type_ref()?;
        if self.is(Punct::OpenParen) {
            if self.ahead(1).is(Punct::CloseParen)
                && self.ahead(2).is(Punct::OpenBrace)
                && let TypeExprKind::Name(path) = &ty.kind
            {
                let message = format!("expected {awaited}, found `{}`", path.name.name);
                return Err(self.report(Diagnostic::error(Code::UnexpectedToken, ty.span, message)));
            }
            return self.instantiation(ty);
        }
        let kind = self.variable(ty)?;
        self.semicolon()?;
        Ok(kind)
    }

    /// `actionDeclaration : optAnnotations ACTION name '(' parameterList ')' blockStatement`
    pub(super) fn action(&mut self) -> Parse<DeclarationKind> {
        self.expect_word("action")?;
        let name = self.name()?;
        self.declare_object(&name);
        let (parameters, body) = self.scoped(|parser| {
            let parameters = parser.parameters()?;
            Ok((parameters, parser.block(Vec::new())?))
        })?;
        Ok(DeclarationKind::Action(ActionDeclaration { name, parameters, body }))
    }
}
