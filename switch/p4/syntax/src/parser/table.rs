//! Tables (specification 14.2).

use super::{Parse, Parser};
use crate::ast::{
    ActionReference, Annotation, DeclarationKind, Expr, ExprKind, KeyElement, TableDeclaration, TableEntry, TableProperty,
    TablePropertyKind,
};
use crate::code::Code;
use crate::diagnostic::Diagnostic;
use crate::token::{Punct, TokenKind};

impl Parser<'_> {
    /// `tableDeclaration : optAnnotations TABLE name '{' tablePropertyList '}'`
    pub(super) fn table(&mut self) -> Parse<DeclarationKind> {
        self.expect_word("table")?;
        let name = self.name()?;
        self.declare_object(&name);
        let mut properties = Vec::new();
        self.braced(|parser| {
            properties.push(parser.table_property()?);
            Ok(())
        })?;
        Ok(DeclarationKind::Table(TableDeclaration { name, properties }))
    }

    /// `tableProperty : KEY '=' '{' keyElementList '}' | ACTIONS '=' '{' actionList '}' | optAnnotations optCONST ENTRIES '=' '{'
    /// entriesList '}' | optAnnotations optCONST name '=' initializer ';'`
    fn table_property(&mut self) -> Parse<TableProperty> {
        let annotations = self.annotations()?;
        let start = self.peek().span;
        let is_const = self.eat_word("const");
        let name = self.name()?;
        self.expect(Punct::Assign)?;
        let braces = self.is(Punct::OpenBrace);
        let kind = match &*name.name {
            "key" | "actions" if is_const => {
                return Err(self.report(
                    Diagnostic::error(Code::UnexpectedToken, start, format!("`{}` cannot be `const`", name.name))
                        .rule("14.2.1, table properties"),
                ));
            }
            "key" if braces => TablePropertyKind::Key(self.key_elements()?),
            "actions" if braces => TablePropertyKind::Actions(self.action_list()?),
            "entries" if braces => TablePropertyKind::Entries(self.entries()?),
            "key" | "actions" | "entries" => return self.unexpected("`{`"),
            _ => {
                let value = self.expression()?;
                self.semicolon()?;
                TablePropertyKind::Other(name, value)
            }
        };
        // A `;` after the braces is no part of the grammar, but means no harm.
        if braces && self.is(Punct::Semicolon) {
            let span = self.advance().span;
            self.report(
                Diagnostic::error(Code::UnexpectedToken, span, "a `;` cannot stand after the braces of a table's property")
                    .rule("14.2, tables")
                    .help("take the `;` away"),
            );
        }
        Ok(TableProperty { annotations, is_const, kind, span: self.span_from(start) })
    }

    /// `keyElement : expression ':' name optAnnotations ';'`
    fn key_elements(&mut self) -> Parse<Vec<KeyElement>> {
        let mut out = Vec::new();
        self.braced(|parser| {
            let start = parser.peek().span;
            let expression = parser.expression()?;
            if parser.is(Punct::Semicolon) {
                let span = parser.span_from(start);
                let error = Diagnostic::error(Code::UnexpectedToken, span, "the key has no match kind")
                    .rule("14.2.1.1, keys")
                    .help("write `: exact`, `: lpm`, `: ternary`, `: range` or `: optional` after it");
                return Err(parser.report(error));
            }
            parser.expect(Punct::Colon)?;
            let match_kind = parser.path()?;
            let annotations = parser.annotations()?;
            parser.semicolon()?;
            out.push(KeyElement { expression, match_kind, annotations, span: parser.span_from(start) });
            Ok(())
        })?;
        Ok(out)
    }

    /// `actionList : /* empty */ | actionList optAnnotations actionRef ';'`
    fn action_list(&mut self) -> Parse<Vec<ActionReference>> {
        let mut out = Vec::new();
        self.braced(|parser| {
            let annotations = parser.annotations()?;
            out.push(parser.action_reference(annotations)?);
            parser.semicolon()
        })?;
        Ok(out)
    }

    /// `actionRef : prefixedNonTypeName | prefixedNonTypeName '(' argumentList ')'`
    fn action_reference(&mut self, annotations: Vec<Annotation>) -> Parse<ActionReference> {
        let start = self.peek().span;
        let name = self.path()?;
        let arguments = if self.is(Punct::OpenParen) { Some(self.arguments()?) } else { None };
        Ok(ActionReference { annotations, name, arguments, span: self.span_from(start) })
    }

    /// `entry : optCONST entryPriority keysetExpression ':' actionRef optAnnotations ';' | ..`
    fn entries(&mut self) -> Parse<Vec<TableEntry>> {
        let mut out = Vec::new();
        self.braced(|parser| {
            let start = parser.peek().span;
            let is_const = parser.eat_word("const");
            let priority = parser.entry_priority()?;
            let keyset = parser.keyset()?;
            parser.expect(Punct::Colon)?;
            let action = parser.action_reference(Vec::new())?;
            let annotations = parser.annotations()?;
            parser.semicolon()?;
            out.push(TableEntry { annotations, is_const, priority, keyset, action, span: parser.span_from(start) });
            Ok(())
        })?;
        Ok(out)
    }

    /// `entryPriority : PRIORITY '=' INTEGER ':' | PRIORITY '=' '(' expression ')' ':'`
    fn entry_priority(&mut self) -> Parse<Option<Expr>> {
        if !self.is_word("priority") || !self.ahead(1).is(Punct::Assign) {
            return Ok(None);
        }
        self.advance();
        self.advance();
        let token = self.peek();
        let value = match token.kind {
            TokenKind::Number => {
                self.advance();
                let literal = self.integer_literal(token)?;
                self.make(ExprKind::Int(literal), token.span)?
            }
            TokenKind::Punct(Punct::OpenParen) => {
                self.advance();
                let value = self.expression()?;
                self.expect(Punct::CloseParen)?;
                value
            }
            _ => return self.unexpected("a number or `(`"),
        };
        self.expect(Punct::Colon)?;
        Ok(Some(value))
    }
}
