//! Expressions (specification 8).

use num_bigint::BigInt;

use super::annotation::unescape;
use super::{Parse, Parser, MAX_HEIGHT};
use crate::ast::{Argument, BinaryOp, Expr, ExprKind, IntLiteral, LiteralWidth, TypeExpr, TypeExprKind, UnaryOp};
use crate::code::Code;
use crate::diagnostic::Diagnostic;
use crate::span::Span;
use crate::token::{Punct, Token, TokenKind};

/// Widths of literals beyond this are an error (p4c's limit is 2048 too, for all of `bit`, `int` and `varbit`).
const MAX_LITERAL_BITS: u32 = 1 << 16;
/// A literal may have that many digits.
const MAX_DIGITS: usize = 1 << 15;

/// Binary operators and their precedence, larger binds tighter (specification 8, table of operators). `>>` is put together by the parser.
fn binary_operator(punct: Punct) -> Option<(u8, BinaryOp)> {
    Some(match punct {
        Punct::OrOr => (1, BinaryOp::Or),
        Punct::AndAnd => (2, BinaryOp::And),
        Punct::EqEq => (3, BinaryOp::Eq),
        Punct::NotEq => (3, BinaryOp::Ne),
        Punct::Less => (4, BinaryOp::Lt),
        Punct::Greater => (4, BinaryOp::Gt),
        Punct::LessEq => (4, BinaryOp::Le),
        Punct::GreaterEq => (4, BinaryOp::Ge),
        Punct::Pipe => (5, BinaryOp::BitOr),
        Punct::Caret => (6, BinaryOp::BitXor),
        Punct::Amp => (7, BinaryOp::BitAnd),
        Punct::Shl => (8, BinaryOp::Shl),
        Punct::PlusPlus => (9, BinaryOp::Concat),
        Punct::Plus => (9, BinaryOp::Add),
        Punct::Minus => (9, BinaryOp::Sub),
        Punct::AddSat => (9, BinaryOp::AddSat),
        Punct::SubSat => (9, BinaryOp::SubSat),
        Punct::Star => (10, BinaryOp::Mul),
        Punct::Slash => (10, BinaryOp::Div),
        Punct::Percent => (10, BinaryOp::Mod),
        _ => return None,
    })
}

impl Parser<'_> {
    /// `expression`. The last branches of a chain of conditional expressions are read one after the other: such chains can be long.
    pub(super) fn expression(&mut self) -> Parse<Expr> {
        self.nested(|parser| {
            let mut chain = Vec::new();
            let mut last = parser.binary(1)?;
            while parser.eat(Punct::Question) {
                let yes = parser.inside_brackets(Self::expression)?;
                parser.expect(Punct::Colon)?;
                chain.push((std::mem::replace(&mut last, parser.binary(1)?), yes));
            }
            while let Some((condition, yes)) = chain.pop() {
                let span = condition.span.to(last.span);
                last = parser.make(ExprKind::Ternary(Box::new(condition), Box::new(yes), Box::new(last)), span)?;
            }
            Ok(last)
        })
    }

    /// `expression op expression`, for operators that bind at least as tightly as `least`.
    fn binary(&mut self, least: u8) -> Parse<Expr> {
        let mut left = self.prefix()?;
        while let Some((precedence, op, length)) = self.operator().filter(|(precedence, ..)| *precedence >= least) {
            for _ in 0..length {
                self.advance();
            }
            let right = self.binary(precedence + 1)?;
            let span = left.span.to(right.span);
            left = self.make(ExprKind::Binary(op, Box::new(left), Box::new(right)), span)?;
        }
        Ok(left)
    }

    /// The binary operator that comes next: precedence, operator, number of tokens.
    fn operator(&self) -> Option<(u8, BinaryOp, usize)> {
        let TokenKind::Punct(punct) = self.peek().kind else { return None };
        if punct == Punct::Greater || punct == Punct::GreaterEq {
            if self.inside_angles {
                return None;
            }
            let next = self.ahead(1);
            if punct == Punct::Greater && !next.spaced {
                if next.is(Punct::Greater) {
                    return Some((8, BinaryOp::Shr, 2));
                }
                if next.is(Punct::GreaterEq) {
                    // `>>=`, an assignment.
                    return None;
                }
            }
        }
        let (precedence, op) = binary_operator(punct)?;
        Some((precedence, op, 1))
    }

    /// `'!' expression`, `'~' expression`, `'-' expression`, `'+' expression`, `'(' typeRef ')' expression`
    fn prefix(&mut self) -> Parse<Expr> {
        let start = self.peek().span;
        let op = match self.peek().kind {
            TokenKind::Punct(Punct::Not) => UnaryOp::Not,
            TokenKind::Punct(Punct::Tilde) => UnaryOp::Complement,
            TokenKind::Punct(Punct::Minus) => UnaryOp::Negate,
            TokenKind::Punct(Punct::Plus) => UnaryOp::Plus,
            TokenKind::Punct(Punct::OpenParen) => {
                if let Some(ty) = self.cast_type() {
                    let operand = self.nested(Self::prefix)?;
                    let span = start.to(operand.span);
                    return self.make(ExprKind::Cast(ty, Box::new(operand)), span);
                }
                return self.postfix();
            }
            _ => return self.postfix(),
        };
        self.advance();
        let operand = self.nested(Self::prefix)?;
        let span = start.to(operand.span);
        self.make(ExprKind::Unary(op, Box::new(operand)), span)
    }

    /// `'(' typeRef ')'` before an operand, if that is what comes next.
    fn cast_type(&mut self) -> Option<TypeExpr> {
        let first = self.ahead(1);
        let second = self.ahead(2);
        if first.is_word("error") && second.is(Punct::Dot) {
            return None;
        }
        let leading_dot = first.is(Punct::Dot) && self.is_type_name(second);
        let list = first.is_word("list") && second.is(Punct::Less);
        // `(x) y`, where `x` is unknown: nothing but a cast makes sense; the checker will not find the type.
        let unknown = super::is_name(first) && second.is(Punct::CloseParen) && {
            let operand = self.ahead(3);
            let value = matches!(operand.kind, TokenKind::Word | TokenKind::Number | TokenKind::String);
            !operand.line_start && (value && !operand.is_word("in") || operand.is(Punct::OpenBrace) && self.record_follows(4))
        };
        if !(leading_dot || list || unknown || self.begins_type(first)) {
            return None;
        }
        let inside_angles = std::mem::replace(&mut self.inside_angles, false);
        let ty = self.attempt(|parser| {
            parser.expect(Punct::OpenParen)?;
            let ty = parser.type_ref()?;
            parser.expect(Punct::CloseParen)?;
            Ok(ty)
        });
        self.inside_angles = inside_angles;
        ty
    }

    /// Whether `name =` comes that many places on, as in `{ a = 1 }`.
    fn record_follows(&self, by: usize) -> bool {
        super::is_name(self.ahead(by)) && self.ahead(by + 1).is(Punct::Assign)
    }

    /// `expression '.' member`, `expression '[' expression ']'`, slices, calls with and without type arguments.
    fn postfix(&mut self) -> Parse<Expr> {
        let primary = self.primary()?;
        self.selectors(primary, false)
    }

    /// What may follow a primary expression. `statement`: a `<` cannot compare, as the expression is a statement.
    pub(super) fn selectors(&mut self, mut left: Expr, statement: bool) -> Parse<Expr> {
        loop {
            let TokenKind::Punct(punct) = self.peek().kind else { return Ok(left) };
            let start = left.span;
            let kind = match punct {
                Punct::Dot => {
                    self.advance();
                    ExprKind::Member(Box::new(left), self.name()?)
                }
                Punct::OpenBracket => self.subscript(left)?,
                Punct::OpenParen => {
                    let arguments = self.arguments()?;
                    match self.type_of_callee(&left) {
                        Some(ty) => ExprKind::Construct(ty, arguments),
                        None => ExprKind::Call { callee: Box::new(left), type_arguments: Vec::new(), arguments },
                    }
                }
                Punct::Less => {
                    let Some(type_arguments) = self.call_type_arguments(statement)? else { return Ok(left) };
                    let arguments = self.arguments()?;
                    ExprKind::Call { callee: Box::new(left), type_arguments, arguments }
                }
                _ => return Ok(left),
            };
            let span = self.span_from(start);
            left = self.make(kind, span)?;
        }
    }

    /// When the callee is the plain name of a type, that type.
    fn type_of_callee(&mut self, callee: &Expr) -> Option<TypeExpr> {
        let ExprKind::Name(path) = &callee.kind else { return None };
        let known = self.scopes.iter().rev().find_map(|scope| scope.get(&path.name.name));
        if known != Some(&super::NameKind::Type) {
            return None;
        }
        Some(self.make_type(TypeExprKind::Name(path.clone()), path.span))
    }

    /// The type arguments before a `(`, when the `<` that comes next opens such.
    fn call_type_arguments(&mut self, statement: bool) -> Parse<Option<Vec<TypeExpr>>> {
        if statement {
            let arguments = self.type_arguments()?;
            if !self.is(Punct::OpenParen) {
                return self.unexpected("`(`");
            }
            return Ok(Some(arguments));
        }
        let place = self.at;
        let next = self.ahead(1);
        let likely = self.begins_type(next) || next.is_word("_") || next.is_word("list") || next.is(Punct::Dot);
        if !(likely || super::is_name(next)) || self.no_type_arguments.contains(&place) {
            return Ok(None);
        }
        let arguments = self.attempt(|parser| {
            let arguments = parser.type_arguments()?;
            // `f<x>()` compares nothing even where `x` is unknown: the checker will not find the type.
            if parser.is(Punct::OpenParen) && (likely || parser.ahead(1).is(Punct::CloseParen)) {
                Ok(arguments)
            } else {
                Err(super::Reported)
            }
        });
        if arguments.is_none() {
            self.no_type_arguments.insert(place);
        }
        Ok(arguments)
    }

    /// `'[' expression ']'`, `'[' expression ':' expression ']'`, and p4c's `'[' expression '+:' expression ']'`
    fn subscript(&mut self, left: Expr) -> Parse<ExprKind> {
        self.expect(Punct::OpenBracket)?;
        let start = self.at;
        let first = self.inside_brackets(Self::expression)?;
        let left = Box::new(left);
        if self.eat(Punct::Colon) {
            let low = self.inside_brackets(Self::expression)?;
            self.expect(Punct::CloseBracket)?;
            return Ok(ExprKind::Slice(left, Box::new(first), Box::new(low)));
        }
        if self.eat(Punct::PlusColon) {
            // `e[i +: w]` is `e[i + w - 1 : i]`; `i` is read twice, so that each reading has ids of its own.
            let width = self.inside_brackets(Self::expression)?;
            self.expect(Punct::CloseBracket)?;
            let end = std::mem::replace(&mut self.at, start);
            let low = self.inside_brackets(Self::expression)?;
            self.at = end;
            let span = first.span.to(width.span);
            let sum = self.make(ExprKind::Binary(BinaryOp::Add, Box::new(first), Box::new(width)), span)?;
            let one = IntLiteral { value: BigInt::from(1), width: None, base: 10 };
            let one = self.make(ExprKind::Int(one), span)?;
            let high = self.make(ExprKind::Binary(BinaryOp::Sub, Box::new(sum), Box::new(one)), span)?;
            return Ok(ExprKind::Slice(left, Box::new(high), Box::new(low)));
        }
        self.expect(Punct::CloseBracket)?;
        Ok(ExprKind::Index(left, Box::new(first)))
    }

    /// `'(' argumentList ')'`
    pub(super) fn arguments(&mut self) -> Parse<Vec<Argument>> {
        self.expect(Punct::OpenParen)?;
        self.inside_brackets(|parser| parser.separated(Punct::CloseParen, false, Self::argument))
    }

    /// `argument : expression | name '=' expression | DONTCARE | name '=' DONTCARE`
    fn argument(&mut self) -> Parse<Argument> {
        let start = self.peek().span;
        let name = if self.at_name() && self.ahead(1).is(Punct::Assign) {
            let name = self.name()?;
            self.advance();
            Some(name)
        } else {
            None
        };
        let value = if self.is_word("_") {
            let span = self.advance().span;
            self.make(ExprKind::DontCare, span)?
        } else {
            self.expression()?
        };
        Ok(Argument { name, value, span: self.span_from(start) })
    }

    /// The expressions that no operator makes.
    fn primary(&mut self) -> Parse<Expr> {
        let token = self.peek();
        let span = token.span;
        let kind = match token.kind {
            TokenKind::Number => {
                self.advance();
                ExprKind::Int(self.integer_literal(token)?)
            }
            TokenKind::String => {
                self.advance();
                ExprKind::String(unescape(&token.text))
            }
            TokenKind::Punct(Punct::Dots) => {
                self.advance();
                ExprKind::Dots
            }
            TokenKind::Punct(Punct::InvalidHeader) => {
                self.advance();
                ExprKind::InvalidHeader
            }
            TokenKind::Punct(Punct::OpenBrace) => return self.braced_expression(),
            TokenKind::Punct(Punct::OpenParen) => {
                self.advance();
                let inner = self.inside_brackets(Self::expression)?;
                self.expect(Punct::CloseParen)?;
                return Ok(Expr { span: self.span_from(span), ..inner });
            }
            TokenKind::Punct(Punct::Dot) => ExprKind::Name(self.path()?),
            TokenKind::Word => match &*token.text {
                "true" | "false" => {
                    self.advance();
                    ExprKind::Bool(token.is_word("true"))
                }
                "this" => {
                    self.advance();
                    ExprKind::This
                }
                "error" => {
                    let ty = self.type_ref()?;
                    self.expect(Punct::Dot)?;
                    ExprKind::TypeMember(ty, self.name()?)
                }
                _ if self.is_type_name(token) && self.ahead(1).is(Punct::Less) => match self.specialized_primary()? {
                    Some(kind) => kind,
                    None => ExprKind::Name(self.path()?),
                },
                _ if super::is_name(token) => ExprKind::Name(self.path()?),
                _ => return self.unexpected("an expression"),
            },
            _ => return self.unexpected("an expression"),
        };
        let span = self.span_from(span);
        self.make(kind, span)
    }

    /// `specializedType '(' argumentList ')'`, `specializedType '.' name`; `None` when the `<` compares.
    fn specialized_primary(&mut self) -> Parse<Option<ExprKind>> {
        let place = self.at + 1;
        if self.no_type_arguments.contains(&place) {
            return Ok(None);
        }
        let ty = self.attempt(|parser| {
            let ty = parser.named_type()?;
            if parser.is(Punct::OpenParen) || parser.is(Punct::Dot) {
                Ok(ty)
            } else {
                Err(super::Reported)
            }
        });
        let Some(ty) = ty else {
            self.no_type_arguments.insert(place);
            return Ok(None);
        };
        if self.eat(Punct::Dot) {
            return Ok(Some(ExprKind::TypeMember(ty, self.name()?)));
        }
        Ok(Some(ExprKind::Construct(ty, self.arguments()?)))
    }

    /// `'{' expressionList optTrailingComma '}'`, `'{' kvList [',' DOTS] optTrailingComma '}'`
    fn braced_expression(&mut self) -> Parse<Expr> {
        let start = self.expect(Punct::OpenBrace)?;
        let record = self.record_follows(0);
        let mut dots = false;
        let mut fields = Vec::new();
        let mut elements = Vec::new();
        self.inside_brackets(|parser| {
            parser.separated(Punct::CloseBrace, true, |parser| {
                if dots {
                    return parser.unexpected("`}` after `...`");
                }
                let ends = parser.is(Punct::Dots)
                    && (parser.ahead(1).is(Punct::CloseBrace) || parser.ahead(1).is(Punct::Comma) && parser.ahead(2).is(Punct::CloseBrace));
                if ends {
                    parser.advance();
                    dots = true;
                } else if record {
                    let name = parser.name()?;
                    parser.expect(Punct::Assign)?;
                    fields.push((name, parser.expression()?));
                } else {
                    elements.push(parser.expression()?);
                }
                Ok(())
            })
        })?;
        let kind = if record { ExprKind::Record { fields, dots } } else { ExprKind::List { elements, dots } };
        let span = self.span_from(start);
        self.make(kind, span)
    }

    /// Runs `parse` where a `>` compares again.
    pub(super) fn inside_brackets<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        let outer = std::mem::replace(&mut self.inside_angles, false);
        let result = parse(self);
        self.inside_angles = outer;
        result
    }

    /// The value of an integer literal (specification 6.4.3.2): `[width ('w'|'s')] [0x|0o|0b|0d] digits`.
    pub(super) fn integer_literal(&mut self, token: &Token) -> Parse<IntLiteral> {
        match parse_integer(&token.text) {
            Ok(literal) => Ok(literal),
            Err(message) => Err(self.report(
                Diagnostic::error(Code::BadInteger, token.span, format!("`{}`: {message}", token.text))
                    .rule("6.4.3.2, integer literals")
                    .help("write digits, `0x1F`, `0b11` or `0o17`, with a width as in `8w0x1F` or `8s5`"),
            )),
        }
    }

    /// A node for the expression, unless the tree grows too high.
    pub(super) fn make(&mut self, kind: ExprKind, span: Span) -> Parse<Expr> {
        let height = 1 + children(&kind).map(|child| self.heights[child.id.0 as usize]).max().unwrap_or(0);
        if height > MAX_HEIGHT {
            let message = format!("the expression is nested more than {MAX_HEIGHT} deep");
            return Err(self.report(Diagnostic::error(Code::TooDeep, span, message).help("keep parts of it in variables")));
        }
        Ok(Expr { id: self.new_id(height), kind, span })
    }
}

/// The expressions directly within an expression; those within types left out.
fn children(kind: &ExprKind) -> impl Iterator<Item = &Expr> {
    let (boxed, list, arguments, fields): ([Option<&Expr>; 3], &[Expr], &[Argument], &[_]) = match kind {
        ExprKind::Member(a, _) | ExprKind::Cast(_, a) | ExprKind::Unary(_, a) => ([Some(a), None, None], &[], &[], &[]),
        ExprKind::Index(a, b) | ExprKind::Binary(_, a, b) => ([Some(a), Some(b), None], &[], &[], &[]),
        ExprKind::Slice(a, b, c) | ExprKind::Ternary(a, b, c) => ([Some(a), Some(b), Some(c)], &[], &[], &[]),
        ExprKind::Call { callee, arguments, .. } => ([Some(callee), None, None], &[], arguments, &[]),
        ExprKind::Construct(_, arguments) => ([None; 3], &[], arguments, &[]),
        ExprKind::List { elements, .. } => ([None; 3], elements, &[], &[]),
        ExprKind::Record { fields, .. } => ([None; 3], &[], &[], fields.as_slice()),
        _ => ([None; 3], &[], &[], &[]),
    };
    let arguments = arguments.iter().map(|argument| &argument.value);
    boxed.into_iter().flatten().chain(list).chain(arguments).chain(fields.iter().map(|(_, value)| value))
}

fn parse_integer(text: &str) -> Result<IntLiteral, String> {
    let digits_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (width, rest) = match text[digits_end..].chars().next() {
        Some(sign @ ('w' | 's')) => {
            let bits: u32 = text[..digits_end].parse().map_err(|_| "the width is too large".to_string())?;
            if bits > MAX_LITERAL_BITS {
                return Err(format!("the width is larger than {MAX_LITERAL_BITS} bits"));
            }
            (Some(LiteralWidth { bits, signed: sign == 's' }), &text[digits_end + 1..])
        }
        _ => (None, text),
    };
    let (base, digits) = match rest.get(..2) {
        Some("0x" | "0X") => (16, &rest[2..]),
        Some("0o" | "0O") => (8, &rest[2..]),
        Some("0b" | "0B") => (2, &rest[2..]),
        Some("0d" | "0D") => (10, &rest[2..]),
        _ => (10, rest),
    };
    if digits.len() > MAX_DIGITS {
        return Err(format!("more than {MAX_DIGITS} digits"));
    }
    let plain = digits.replace('_', "");
    if let Some(bad) = plain.chars().find(|c| !c.is_digit(base)) {
        return Err(format!("`{bad}` is no digit of base {base}"));
    }
    let value = BigInt::parse_bytes(plain.as_bytes(), base).ok_or_else(|| "digits are missing".to_string())?;
    Ok(IntLiteral { value, width, base: base as u8 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integer_literals_have_width_sign_base_and_underscores() {
        let literal = |value: u32, width: Option<(u32, bool)>, base| IntLiteral {
            value: value.into(),
            width: width.map(|(bits, signed)| LiteralWidth { bits, signed }),
            base,
        };
        assert_eq!(parse_integer("32w0xFF_FF"), Ok(literal(65535, Some((32, false)), 16)));
        assert_eq!(parse_integer("4s0b111"), Ok(literal(7, Some((4, true)), 2)));
        assert_eq!(parse_integer("8w10"), Ok(literal(10, Some((8, false)), 10)));
        assert_eq!(parse_integer("0o17"), Ok(literal(15, None, 8)));
        assert_eq!(parse_integer("0d19"), Ok(literal(19, None, 10)));
        assert_eq!(parse_integer("007"), Ok(literal(7, None, 10)));
        for bad in ["8w", "0x", "12a", "0b2", "99999999999w1", "8x1", "_"] {
            assert!(parse_integer(bad).is_err(), "{bad}");
        }
    }
}
