//! The integer expressions of `#if` and `#elif` (C11, 6.10.1).

use super::Preprocessor;
use crate::code::Code;
use crate::diagnostic::Diagnostic;
use crate::span::Span;
use crate::token::{Punct, Token, TokenKind};

/// Parentheses and unary operators may be nested that deep.
const MAX_DEPTH: usize = 100;

impl Preprocessor<'_> {
    /// Whether the expression is not zero; a faulty one is reported and false.
    pub(super) fn condition(&mut self, mark: Span, tokens: &[Token]) -> bool {
        let result = self.resolve_defined(mark, tokens).and_then(|tokens| {
            let tokens = self.expand_text(tokens);
            let mut evaluator = Evaluator { tokens: &tokens, at: 0, mark, depth: 0 };
            let value = evaluator.ternary(true)?;
            match evaluator.peek() {
                None => Ok(value),
                Some(token) => Err(evaluator.fault(token.span, format!("unexpected {token} in the condition"))),
            }
        });
        match result {
            Ok(value) => value != 0,
            Err(error) => {
                self.diagnostics.push(error);
                false
            }
        }
    }

    /// Replaces `defined X` and `defined(X)` by 1 or 0, before macros are expanded.
    fn resolve_defined(&self, mark: Span, tokens: &[Token]) -> Result<Vec<Token>, Diagnostic> {
        let mut out = Vec::new();
        let mut rest = tokens;
        while let Some((first, after)) = rest.split_first() {
            rest = after;
            if !first.is_word("defined") {
                out.push(first.clone());
                continue;
            }
            let (name, after) = match rest {
                [open, name, close, after @ ..] if open.is(Punct::OpenParen) && close.is(Punct::CloseParen) => (name, after),
                [name, after @ ..] => (name, after),
                [] => return Err(Diagnostic::error(Code::BadCondition, mark, "`defined` awaits the name of a macro")),
            };
            if name.kind != TokenKind::Word {
                return Err(Diagnostic::error(Code::BadCondition, name.span, "`defined` awaits the name of a macro"));
            }
            let digit = if self.is_defined(&name.text) { "1" } else { "0" };
            out.push(Token { kind: TokenKind::Number, text: digit.into(), ..first.clone() });
            rest = after;
        }
        Ok(out)
    }
}

struct Evaluator<'a> {
    tokens: &'a [Token],
    at: usize,
    mark: Span,
    depth: usize,
}

type Value = Result<i64, Diagnostic>;

/// Binary operators by precedence, the loosest first.
const LEVELS: &[&[&str]] =
    &[&["||"], &["&&"], &["|"], &["^"], &["&"], &["==", "!="], &["<", ">", "<=", ">="], &["<<", ">>"], &["+", "-"], &["*", "/", "%"]];

impl Evaluator<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn fault(&self, span: Span, message: String) -> Diagnostic {
        Diagnostic::error(Code::BadCondition, span, message)
    }

    fn eat(&mut self, punct: Punct) -> bool {
        let found = self.peek().is_some_and(|token| token.is(punct));
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, punct: Punct) -> Result<(), Diagnostic> {
        if self.eat(punct) {
            return Ok(());
        }
        let span = self.peek().map_or(self.mark, |token| token.span);
        Err(self.fault(span, format!("expected `{}` in the condition", punct.text())))
    }

    /// `live`: whether the value counts; a division by zero that does not is no fault.
    fn ternary(&mut self, live: bool) -> Value {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.fault(self.mark, format!("the condition is nested more than {MAX_DEPTH} deep")));
        }
        let condition = self.binary(0, live)?;
        let mut value = condition;
        if self.eat(Punct::Question) {
            let yes = self.ternary(live && condition != 0)?;
            self.expect(Punct::Colon)?;
            let no = self.ternary(live && condition == 0)?;
            value = if condition != 0 { yes } else { no };
        }
        self.depth -= 1;
        Ok(value)
    }

    /// The operator of this level that comes next, with the number of its tokens.
    fn operator(&self, level: usize) -> Option<(&'static str, usize)> {
        let token = self.peek()?;
        let next = self.tokens.get(self.at + 1);
        let joined = token.is(Punct::Greater) && next.is_some_and(|next| next.is(Punct::Greater) && !next.spaced);
        let (text, length) = if joined { (">>", 2) } else { (token.text(), 1) };
        let found = LEVELS[level].iter().find(|operator| **operator == text)?;
        matches!(token.kind, TokenKind::Punct(_)).then_some((*found, length))
    }

    fn binary(&mut self, level: usize, live: bool) -> Value {
        if level == LEVELS.len() {
            return self.unary(live);
        }
        let mut left = self.binary(level + 1, live)?;
        while let Some((operator, length)) = self.operator(level) {
            let span = self.tokens[self.at].span;
            self.at += length;
            let right_live = live
                && match operator {
                    "&&" => left != 0,
                    "||" => left == 0,
                    _ => true,
                };
            let right = self.binary(level + 1, right_live)?;
            left = match operator {
                "||" => i64::from(left != 0 || right != 0),
                "&&" => i64::from(left != 0 && right != 0),
                "|" => left | right,
                "^" => left ^ right,
                "&" => left & right,
                "==" => i64::from(left == right),
                "!=" => i64::from(left != right),
                "<" => i64::from(left < right),
                ">" => i64::from(left > right),
                "<=" => i64::from(left <= right),
                ">=" => i64::from(left >= right),
                "<<" => shift(left, right),
                ">>" => shift(left, right.saturating_neg()),
                "+" => left.wrapping_add(right),
                "-" => left.wrapping_sub(right),
                "*" => left.wrapping_mul(right),
                _ if right == 0 => {
                    if live {
                        return Err(self.fault(span, "division by zero in the condition".into()));
                    }
                    0
                }
                "/" => left.wrapping_div(right),
                _ => left.wrapping_rem(right),
            };
        }
        Ok(left)
    }

    fn unary(&mut self, live: bool) -> Value {
        let Some(token) = self.peek().cloned() else {
            return Err(self.fault(self.mark, "the condition ends too soon".into()));
        };
        self.at += 1;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.fault(self.mark, format!("the condition is nested more than {MAX_DEPTH} deep")));
        }
        let value = match token.kind {
            TokenKind::Punct(Punct::Not) => i64::from(self.unary(live)? == 0),
            TokenKind::Punct(Punct::Tilde) => !self.unary(live)?,
            TokenKind::Punct(Punct::Minus) => self.unary(live)?.wrapping_neg(),
            TokenKind::Punct(Punct::Plus) => self.unary(live)?,
            TokenKind::Punct(Punct::OpenParen) => {
                let value = self.ternary(live)?;
                self.expect(Punct::CloseParen)?;
                value
            }
            TokenKind::Number => integer(&token.text).ok_or_else(|| self.fault(token.span, format!("{token} is no integer of 64 bits")))?,
            // A name that is no macro counts as 0.
            TokenKind::Word => 0,
            _ => return Err(self.fault(token.span, format!("unexpected {token} in the condition"))),
        };
        self.depth -= 1;
        Ok(value)
    }
}

/// To the left by `by` bits, to the right when `by` is negative.
fn shift(value: i64, by: i64) -> i64 {
    match by {
        0..=63 => value.wrapping_shl(by as u32),
        64.. => 0,
        -63..=-1 => value >> -by,
        _ => value >> 63,
    }
}

/// A C integer constant: decimal, octal, hexadecimal or binary, with suffixes.
fn integer(text: &str) -> Option<i64> {
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
    let (radix, digits) = match digits.get(..2) {
        Some("0x" | "0X") => (16, &digits[2..]),
        Some("0b" | "0B") => (2, &digits[2..]),
        _ if digits.len() > 1 && digits.starts_with('0') => (8, &digits[1..]),
        _ => (10, digits),
    };
    u64::from_str_radix(digits, radix).ok().map(|value| value as i64)
}
