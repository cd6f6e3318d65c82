//! Parsers, their states and transitions (specification 13), and sets of values (8.13).

use super::{Parse, Parser};
use crate::ast::{
    Annotation, ApplicableType, Declaration, DeclarationKind, Keyset, KeysetKind, ParserDeclaration, ParserState, Select, SelectCase,
    StatementKind, Transition, ValueSetDeclaration,
};
use crate::code::Code;
use crate::diagnostic::Diagnostic;
use crate::token::{Punct, TokenKind};

impl Parser<'_> {
    /// `parserDeclaration : parserTypeDeclaration optConstructorParameters '{' parserLocalElements parserStates '}'`,
    /// `parserTypeDeclaration : optAnnotations PARSER name optTypeParameters '(' parameterList ')'`
    pub(super) fn parser_declaration(&mut self) -> Parse<DeclarationKind> {
        self.expect_word("parser")?;
        let name = self.name()?;
        self.declare_type(&name);
        self.scoped(|parser| {
            let (type_parameters, parameters) = parser.applicable()?;
            if parser.eat(Punct::Semicolon) {
                return Ok(DeclarationKind::ParserType(ApplicableType { name, type_parameters, parameters }));
            }
            let constructor_parameters = if parser.is(Punct::OpenParen) { parser.parameters()? } else { Vec::new() };
            let mut locals: Vec<Declaration> = Vec::new();
            let mut states: Vec<ParserState> = Vec::new();
            parser.braced(|parser| {
                let annotations = parser.annotations()?;
                if parser.is_word("state") {
                    states.push(parser.state(annotations)?);
                    return Ok(());
                }
                if !states.is_empty() {
                    return parser.unexpected("`state` or `}`");
                }
                locals.push(parser.parser_local(annotations)?);
                Ok(())
            })?;
            if states.is_empty() {
                parser.report(
                    Diagnostic::error(Code::MissingState, name.span, format!("parser `{}` has no state", name.name))
                        .rule("13.2, a parser has a state `start`"),
                );
            }
            Ok(DeclarationKind::Parser(ParserDeclaration { name, type_parameters, parameters, constructor_parameters, locals, states }))
        })
    }

    /// `parserLocalElement : constantDeclaration | instantiation | variableDeclaration | valueSetDeclaration`
    fn parser_local(&mut self, annotations: Vec<Annotation>) -> Parse<Declaration> {
        let start = self.peek().span;
        let kind = if self.is_word("const") {
            self.constant()?
        } else if self.is_word("value_set") {
            self.value_set()?
        } else {
            self.variable_or_instantiation("a declaration or `state`")?
        };
        Ok(self.declared(annotations, kind, start))
    }

    /// `valueSetDeclaration : optAnnotations VALUESET '<' type '>' '(' expression ')' name ';'`
    fn value_set(&mut self) -> Parse<DeclarationKind> {
        self.expect_word("value_set")?;
        self.expect(Punct::Less)?;
        let element = self.type_ref()?;
        self.expect(Punct::Greater)?;
        self.expect(Punct::OpenParen)?;
        let size = self.expression()?;
        self.expect(Punct::CloseParen)?;
        let name = self.name()?;
        self.declare_object(&name);
        self.semicolon()?;
        Ok(DeclarationKind::ValueSet(ValueSetDeclaration { element, size, name }))
    }

    /// `parserState : optAnnotations STATE name '{' parserStatements transitionStatement '}'`
    fn state(&mut self, annotations: Vec<Annotation>) -> Parse<ParserState> {
        let start = self.expect_word("state")?;
        let name = self.name()?;
        let mut statements = Vec::new();
        let mut transition: Option<Transition> = None;
        self.scoped(|parser| {
            parser.braced(|parser| {
                if transition.is_some() {
                    return parser.unexpected("`}` after the transition");
                }
                if parser.eat_word("transition") {
                    transition = Some(parser.transition()?);
                    return Ok(());
                }
                let statement = parser.statement()?;
                let word = match statement.kind {
                    StatementKind::Return(_) => "return",
                    StatementKind::Exit => "exit",
                    StatementKind::Switch { .. } => "switch",
                    _ => {
                        statements.push(statement);
                        return Ok(());
                    }
                };
                let message = format!("`{word}` cannot stand in a parser state");
                parser.report(
                    Diagnostic::error(Code::MisplacedStatement, statement.span, message)
                        .rule("13.4, a state has assignments, calls, declarations, conditionals, blocks and one transition"),
                );
                Ok(())
            })
        })?;
        Ok(ParserState { annotations, name, statements, transition, span: self.span_from(start) })
    }

    /// `stateExpression : name ';' | selectExpression`
    fn transition(&mut self) -> Parse<Transition> {
        if self.is_word("select") {
            return Ok(Transition::Select(self.select()?));
        }
        let target = self.name()?;
        self.semicolon()?;
        Ok(Transition::Direct(target))
    }

    /// `selectExpression : SELECT '(' expressionList ')' '{' selectCaseList '}'`
    fn select(&mut self) -> Parse<Select> {
        let start = self.expect_word("select")?;
        self.expect(Punct::OpenParen)?;
        let keys = self.separated(Punct::CloseParen, false, Self::expression)?;
        let mut cases = Vec::new();
        self.braced(|parser| {
            // selectCase : keysetExpression ':' name ';'
            let start = parser.peek().span;
            let keyset = parser.keyset()?;
            parser.expect(Punct::Colon)?;
            let target = parser.name()?;
            parser.semicolon()?;
            cases.push(SelectCase { keyset, target, span: parser.span_from(start) });
            Ok(())
        })?;
        Ok(Select { keys, cases, span: self.span_from(start) })
    }

    /// `keysetExpression : tupleKeysetExpression | simpleKeysetExpression`, up to a `:`
    pub(super) fn keyset(&mut self) -> Parse<Keyset> {
        let start = self.peek().span;
        if !self.is(Punct::OpenParen) || !self.closes_before_colon() {
            return self.simple_keyset();
        }
        self.advance();
        let mut elements = self.separated(Punct::CloseParen, true, Self::simple_keyset)?;
        let span = self.span_from(start);
        if elements.len() == 1
            && matches!(elements[0].kind, KeysetKind::Value(_))
            && let Some(only) = elements.pop()
        {
            return Ok(Keyset { span, ..only });
        }
        Ok(Keyset { kind: KeysetKind::Tuple(elements), span })
    }

    /// Whether the parenthesis that opens here closes just before a `:`.
    fn closes_before_colon(&self) -> bool {
        let mut nested = 0usize;
        for by in 0.. {
            match self.ahead(by).kind {
                TokenKind::Punct(Punct::OpenParen) => nested += 1,
                TokenKind::Punct(Punct::CloseParen) if nested <= 1 => return self.ahead(by + 1).is(Punct::Colon),
                TokenKind::Punct(Punct::CloseParen) => nested -= 1,
                TokenKind::End | TokenKind::Punct(Punct::Semicolon) => return false,
                _ => {}
            }
        }
        false
    }

    /// `simpleKeysetExpression : expression | expression '&&&' expression | expression '..' expression | DEFAULT | '_'`
    fn simple_keyset(&mut self) -> Parse<Keyset> {
        let start = self.peek().span;
        let kind = if self.eat_word("default") {
            KeysetKind::Default
        } else if self.eat_word("_") {
            KeysetKind::DontCare
        } else {
            let value = self.expression()?;
            if self.eat(Punct::Mask) {
                KeysetKind::Mask(value, self.expression()?)
            } else if self.eat(Punct::Range) {
                KeysetKind::Range(value, self.expression()?)
            } else {
                KeysetKind::Value(value)
            }
        };
        Ok(Keyset { kind, span: self.span_from(start) })
    }
}
