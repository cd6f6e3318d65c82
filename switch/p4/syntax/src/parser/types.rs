//! Written types (specification 7).

use super::{Parse, Parser};
use crate::ast::{Expr, Ident, Path, TypeExpr, TypeExprKind};
use crate::code::Code;
use crate::diagnostic::Diagnostic;
use crate::span::Span;
use crate::token::{Punct, Token, TokenKind};

/// Arrays of arrays may be nested that deep: P4 knows one level only, the checker says so.
const MAX_DIMENSIONS: usize = 8;

impl Parser<'_> {
    /// `typeRef : baseType | typeName | specializedType | headerStackType | p4listType | tupleType`, and `void`, which the
    /// checker allows for results only.
    pub(super) fn type_ref(&mut self) -> Parse<TypeExpr> {
        self.nested(|parser| {
            let ty = parser.simple_type()?;
            parser.array_suffix(ty)
        })
    }

    /// `headerStackType : typeName '[' expression ']'`, also after a declarator's name.
    pub(super) fn array_suffix(&mut self, mut ty: TypeExpr) -> Parse<TypeExpr> {
        let mut dimensions = 0;
        while self.eat(Punct::OpenBracket) {
            dimensions += 1;
            if dimensions > MAX_DIMENSIONS {
                let span = self.peek().span;
                return Err(self.report(Diagnostic::error(Code::TooDeep, span, "too many dimensions")));
            }
            let size = self.inside_brackets(Self::expression)?;
            self.expect(Punct::CloseBracket)?;
            let span = self.span_from(ty.span);
            ty = self.make_type(TypeExprKind::Stack(Box::new(ty), Box::new(size)), span);
        }
        Ok(ty)
    }

    /// `baseType`, `typeName`, `specializedType`, `p4listType`, `tupleType`
    fn simple_type(&mut self) -> Parse<TypeExpr> {
        let token = self.peek();
        let start = token.span;
        let angle = self.ahead(1).is(Punct::Less);
        let word = if token.kind == TokenKind::Word { &*token.text } else { "" };
        let kind = match word {
            "bool" => TypeExprKind::Bool,
            "error" => TypeExprKind::Error,
            "match_kind" => TypeExprKind::MatchKind,
            "string" => TypeExprKind::String,
            "void" => TypeExprKind::Void,
            "int" if !angle => TypeExprKind::Int,
            "bit" if !angle => TypeExprKind::Bit(None),
            "int" | "bit" | "varbit" => {
                self.advance();
                let width = Box::new(self.width()?);
                let kind = match word {
                    "int" => TypeExprKind::SignedBit(width),
                    "bit" => TypeExprKind::Bit(Some(width)),
                    _ => TypeExprKind::Varbit(width),
                };
                let span = self.span_from(start);
                return Ok(self.make_type(kind, span));
            }
            "tuple" => {
                self.advance();
                let kind = TypeExprKind::Tuple(self.type_arguments()?);
                let span = self.span_from(start);
                return Ok(self.make_type(kind, span));
            }
            "list" if angle => {
                self.advance();
                let mut arguments = self.type_arguments()?;
                let span = self.span_from(start);
                let (Some(element), true) = (arguments.pop(), arguments.is_empty()) else {
                    return Err(
                        self.report(Diagnostic::error(Code::TypeArguments, span, "a list has one element type").rule("7.2.8, lists"))
                    );
                };
                return Ok(self.make_type(TypeExprKind::List(Box::new(element)), span));
            }
            _ if self.is(Punct::Dot) || self.at_name() => return self.named_type(),
            _ => return self.unexpected("a type"),
        };
        self.advance();
        Ok(self.make_type(kind, start))
    }

    /// `namedType : typeName | specializedType`
    pub(super) fn named_type(&mut self) -> Parse<TypeExpr> {
        let path = self.path()?;
        let start = path.span;
        if self.is(Punct::Less) {
            let arguments = self.type_arguments()?;
            let span = self.span_from(start);
            return Ok(self.make_type(TypeExprKind::Specialized(path, arguments), span));
        }
        Ok(self.make_type(TypeExprKind::Name(path), start))
    }

    /// `prefixedType`, `prefixedNonTypeName : name | '.' name`
    pub(super) fn path(&mut self) -> Parse<Path> {
        let start = self.peek().span;
        let absolute = self.eat(Punct::Dot);
        let name = self.name()?;
        Ok(Path { absolute, name, span: self.span_from(start) })
    }

    /// `'<' width '>'`, the width an expression without `>`.
    fn width(&mut self) -> Parse<Expr> {
        self.expect(Punct::Less)?;
        let outer = std::mem::replace(&mut self.inside_angles, true);
        let width = self.expression();
        self.inside_angles = outer;
        let width = width?;
        self.expect(Punct::Greater)?;
        Ok(width)
    }

    /// `'<' typeArgumentList '>'`
    pub(super) fn type_arguments(&mut self) -> Parse<Vec<TypeExpr>> {
        self.expect(Punct::Less)?;
        self.separated(Punct::Greater, false, Self::type_argument)
    }

    /// `typeArg : typeRef | nonTypeName | VOID | DONTCARE`
    fn type_argument(&mut self) -> Parse<TypeExpr> {
        if self.is_word("_") {
            let span = self.advance().span;
            return Ok(self.make_type(TypeExprKind::DontCare, span));
        }
        self.type_ref()
    }

    /// `optTypeParameters : /* empty */ | '<' typeParameterList '>'`; the names become types of the current scope.
    pub(super) fn type_parameters(&mut self) -> Parse<Vec<Ident>> {
        if !self.eat(Punct::Less) {
            return Ok(Vec::new());
        }
        let names = self.separated(Punct::Greater, false, Self::name)?;
        if names.is_empty() {
            let span = self.previous_span();
            return Err(self.report(Diagnostic::error(Code::TypeParameters, span, "the list of type parameters is empty")));
        }
        for name in &names {
            self.declare_type(name);
        }
        Ok(names)
    }

    /// Whether the token begins a type for certain: a base type, or a name declared as a type.
    pub(super) fn begins_type(&self, token: &Token) -> bool {
        let base = token.kind == TokenKind::Word
            && matches!(&*token.text, "bit" | "bool" | "error" | "int" | "match_kind" | "string" | "tuple" | "varbit" | "void");
        base || self.is_type_name(token)
    }

    pub(super) fn make_type(&mut self, kind: TypeExprKind, span: Span) -> TypeExpr {
        TypeExpr { id: self.new_id(0), kind, span }
    }
}
