//! Tokens of P4_16 (specification 6.4), as the lexer finds them and the preprocessor passes them on.

use std::fmt;

use crate::ast::Symbol;
use crate::span::Span;

/// A token.
#[derive(Debug, Clone, PartialEq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// As written, for all but [`TokenKind::Punct`] and [`TokenKind::End`]; a string has its quotes.
    pub text: Symbol,
    /// Where it stands; a token out of a macro's body stands where the macro is used.
    pub span: Span,
    /// Whether it is the first of its line.
    pub line_start: bool,
    /// Whether white space or a comment stands before it.
    pub spaced: bool,
}

/// The kinds of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// An identifier or keyword. Keywords are told apart by the parser, since macros may bear their names.
    Word,
    /// What begins with a digit: an integer literal, if it is well formed.
    Number,
    /// A string literal with both quotes.
    String,
    /// An operator, bracket or punctuation mark.
    Punct(Punct),
    /// A character that begins no token.
    Stray,
    /// A string literal without its closing quote.
    OpenString,
    /// A `/*` without its `*/`.
    OpenComment,
    /// The end of the input.
    End,
}

macro_rules! punctuation {
    ($($(#[$doc:meta])* $name:ident $text:literal)*) => {
        /// Operators, brackets and punctuation marks.
        ///
        /// `>>` and `>>=` are not among them: the lexer leaves `>` `>` and `>` `>=`, because they may close two
        /// lists of type arguments (specification 6.4.4); the parser joins them where it awaits an operator.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Punct { $(#[doc = concat!("`", $text, "`")] $(#[$doc])* $name),* }

        impl Punct {
            /// As written.
            pub fn text(self) -> &'static str {
                match self { $(Punct::$name => $text),* }
            }

            /// All of them, longer ones before their prefixes.
            pub const ALL: &'static [Punct] = &[$(Punct::$name),*];
        }
    };
}

punctuation! {
    AddSatAssign "|+|=" SubSatAssign "|-|="
    Mask "&&&" Dots "..." InvalidHeader "{#}" ShlAssign "<<=" AddSat "|+|" SubSat "|-|"
    Range ".." Shl "<<" AndAnd "&&" OrOr "||" EqEq "==" NotEq "!=" GreaterEq ">=" LessEq "<=" PlusPlus "++"
    AddAssign "+=" SubAssign "-=" MulAssign "*=" DivAssign "/=" ModAssign "%=" AndAssign "&=" OrAssign "|="
    XorAssign "^=" PlusColon "+:" HashHash "##"
    Plus "+" Minus "-" Star "*" Slash "/" Percent "%" Pipe "|" Amp "&" Caret "^" Tilde "~"
    OpenParen "(" CloseParen ")" OpenBracket "[" CloseBracket "]" OpenBrace "{" CloseBrace "}"
    Less "<" Greater ">" Not "!" Colon ":" Comma "," Question "?" Dot "." Assign "=" Semicolon ";" At "@" Hash "#"
}

impl Token {
    /// The token as written.
    pub fn text(&self) -> &str {
        match self.kind {
            TokenKind::Punct(punct) => punct.text(),
            _ => &self.text,
        }
    }

    /// Whether it is this punctuation mark.
    pub fn is(&self, punct: Punct) -> bool {
        self.kind == TokenKind::Punct(punct)
    }

    /// Whether it is this word.
    pub fn is_word(&self, word: &str) -> bool {
        self.kind == TokenKind::Word && &*self.text == word
    }
}

/// For messages: `` `x` ``, `end of file`.
impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            TokenKind::End => f.write_str("end of file"),
            TokenKind::Word if is_keyword(&self.text) => write!(f, "keyword `{}`", self.text),
            TokenKind::String if self.text.chars().count() > 30 => f.write_str("a string"),
            _ => write!(f, "`{}`", self.text()),
        }
    }
}

/// The words that P4_16 reserves and that can name nothing (specification 6.4.2). The words `actions`, `apply`, `entries`,
/// `key`, `list`, `priority`, `state` and `type` have a meaning only in their places and can name things.
const KEYWORDS: &[&str] = &[
    "_",
    "abstract",
    "action",
    "bit",
    "bool",
    "break",
    "const",
    "continue",
    "control",
    "default",
    "else",
    "enum",
    "error",
    "exit",
    "extern",
    "false",
    "for",
    "header",
    "header_union",
    "if",
    "in",
    "inout",
    "int",
    "match_kind",
    "out",
    "package",
    "parser",
    "return",
    "select",
    "string",
    "struct",
    "switch",
    "table",
    "this",
    "transition",
    "true",
    "tuple",
    "typedef",
    "value_set",
    "varbit",
    "void",
];

/// Whether the word is reserved.
pub fn is_keyword(word: &str) -> bool {
    KEYWORDS.binary_search(&word).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_sorted_for_the_search() {
        assert!(KEYWORDS.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(is_keyword("_") && is_keyword("void") && !is_keyword("apply"));
    }

    #[test]
    fn longer_marks_precede_their_prefixes() {
        for (i, long) in Punct::ALL.iter().enumerate() {
            assert!(Punct::ALL[..i].iter().all(|short| !long.text().starts_with(short.text())), "{long:?}");
        }
    }
}
