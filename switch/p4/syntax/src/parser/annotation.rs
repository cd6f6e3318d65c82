//! Annotations (specification 20).

use super::{Parse, Parser};
use crate::ast::{Annotation, AnnotationBody, AnnotationToken, AnnotationTokenKind, Ident};
use crate::code::Code;
use crate::diagnostic::Diagnostic;
use crate::span::Span;
use crate::token::{Punct, Token, TokenKind};

/// Annotations of v1model whose arguments are expressions.
const LISTS_OF_EXPRESSIONS: [&str; 1] = ["field_list"];

fn is_literal_or_comma(token: &AnnotationToken) -> bool {
    matches!(token.kind, AnnotationTokenKind::Integer(_) | AnnotationTokenKind::String(_)) || &*token.text == ","
}

impl Parser<'_> {
    /// `optAnnotations`
    pub(super) fn annotations(&mut self) -> Parse<Vec<Annotation>> {
        let mut out = Vec::new();
        while self.is(Punct::At) {
            out.push(self.annotation()?);
        }
        Ok(out)
    }

    /// `annotation : '@' name | '@' name '(' annotationBody ')' | '@' name '[' structuredAnnotationBody ']'`, and p4c's
    /// `@pragma name tokens` up to the end of the line.
    fn annotation(&mut self) -> Parse<Annotation> {
        let start = self.expect(Punct::At)?;
        let name = self.annotation_name()?;
        if &*name.name == "pragma" && self.peek().kind == TokenKind::Word && !self.peek().line_start {
            let name = self.annotation_name()?;
            let mut tokens = Vec::new();
            while self.peek().kind != TokenKind::End && !self.peek().line_start {
                let token = self.advance();
                tokens.push(self.annotation_token(token)?);
            }
            let body = AnnotationBody::Unstructured(tokens);
            return Ok(Annotation { name, body, values: Vec::new(), span: self.span_from(start) });
        }
        let open = self.peek().span;
        let mut values = Vec::new();
        let body = if self.eat(Punct::OpenParen) {
            let first = self.at;
            let tokens = self.annotation_tokens(open)?;
            if LISTS_OF_EXPRESSIONS.contains(&&*name.name) && !tokens.iter().all(is_literal_or_comma) {
                self.at = first;
                values = self.separated(Punct::CloseParen, false, Self::expression)?;
            }
            AnnotationBody::Unstructured(tokens)
        } else if self.eat(Punct::OpenBracket) {
            self.structured_annotation()?
        } else {
            AnnotationBody::None
        };
        Ok(Annotation { name, body, values, span: self.span_from(start) })
    }

    /// `annotationName`: any word, keywords too.
    fn annotation_name(&mut self) -> Parse<Ident> {
        let token = self.peek();
        if token.kind != TokenKind::Word {
            return self.unexpected("the name of an annotation");
        }
        self.advance();
        Ok(Ident { name: token.text.clone(), span: token.span })
    }

    /// `annotationBody`: tokens with balanced parentheses, up to the closing one.
    fn annotation_tokens(&mut self, open: Span) -> Parse<Vec<AnnotationToken>> {
        let mut out = Vec::new();
        let mut nested = 0usize;
        loop {
            let token = self.peek();
            match token.kind {
                TokenKind::End => {
                    return Err(self.report(
                        Diagnostic::error(Code::UnexpectedToken, token.span, "expected `)`, found end of file")
                            .note(open, "the parenthesis is opened here"),
                    ));
                }
                TokenKind::Punct(Punct::CloseParen) if nested == 0 => {
                    self.advance();
                    return Ok(out);
                }
                TokenKind::Punct(Punct::CloseParen) => nested -= 1,
                TokenKind::Punct(Punct::OpenParen) => nested += 1,
                _ => {}
            }
            self.advance();
            out.push(self.annotation_token(token)?);
        }
    }

    fn annotation_token(&mut self, token: &Token) -> Parse<AnnotationToken> {
        let kind = match token.kind {
            TokenKind::String => AnnotationTokenKind::String(unescape(&token.text)),
            TokenKind::Number => AnnotationTokenKind::Integer(self.integer_literal(token)?),
            TokenKind::Word => AnnotationTokenKind::Word,
            _ => AnnotationTokenKind::Punctuation,
        };
        Ok(AnnotationToken { kind, text: token.text().into(), span: token.span })
    }

    /// `structuredAnnotationBody : expressionList optTrailingComma | kvList optTrailingComma`, with the closing bracket.
    fn structured_annotation(&mut self) -> Parse<AnnotationBody> {
        if self.at_name() && self.ahead(1).is(Punct::Assign) {
            let pairs = self.separated(Punct::CloseBracket, true, |parser| {
                let key = parser.name()?;
                parser.expect(Punct::Assign)?;
                Ok((key, parser.expression()?))
            })?;
            return Ok(AnnotationBody::KeyValues(pairs));
        }
        Ok(AnnotationBody::Expressions(self.separated(Punct::CloseBracket, true, Self::expression)?))
    }
}

/// The value of a string literal: quotes off, `\"`, `\\` and `\n` resolved, other escapes left as they are (specification 6.4.3.3).
pub(super) fn unescape(literal: &str) -> crate::ast::Symbol {
    let inner = literal.strip_prefix('"').unwrap_or(literal);
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('"') => out.push('"'),
            Some('\\') => out.push('\\'),
            Some('n') => out.push('\n'),
            other => {
                out.push('\\');
                out.extend(other);
            }
        }
    }
    out.into()
}
