//! Whether two texts are the same program: the same tokens, comments and directives, before the preprocessor and after it.

use std::io;
use std::path::Path;

use fairlane_syntax::token::{Punct, Token, TokenKind};
use fairlane_syntax::{Files, Options};

use crate::pieces::{pieces, Kind};
use crate::Refusal;

/// Compares a text with its formatted form.
///
/// # Errors
/// They differ: at the place in the first that is named.
pub(crate) fn check(before: &str, after: &str) -> Result<(), Refusal> {
    let (old, new) = (fairlane_syntax::raw_tokens(before), fairlane_syntax::raw_tokens(after));
    let fault = old.len().min(new.len());
    let at = (0..fault).find(|i| !alike(&old, &new, *i)).or((old.len() != new.len()).then_some(fault));
    if let Some(i) = at {
        let byte = old.get(i).map_or(before.len(), |token| token.span.start as usize);
        return Err(Refusal::at(before, byte, "the tokens would not stay the same"));
    }
    if comments(before)? != comments(after)? {
        return Err(Refusal::at(before, 0, "the comments or directives would not stay the same"));
    }
    let (old, new) = (preprocessed(before), preprocessed(after));
    if let Some(i) = (0..old.len().max(new.len())).find(|i| old.get(*i).map(|t| t.text()) != new.get(*i).map(|t| t.text())) {
        let byte = old.get(i).map_or(before.len(), |token| token.span.start as usize);
        return Err(Refusal::at(before, byte, "a macro here depends on lines or blanks"));
    }
    Ok(())
}

fn alike(old: &[Token], new: &[Token], i: usize) -> bool {
    let (a, b) = (&old[i], &new[i]);
    // The parser reads two `>` that touch as one operator.
    let touching = |list: &[Token]| {
        list[i].is(Punct::Greater)
            && list
                .get(i + 1)
                .is_some_and(|next| !next.spaced && !next.line_start && (next.is(Punct::Greater) || next.is(Punct::GreaterEq)))
    };
    let directive = |token: &Token| token.is(Punct::Hash) && token.line_start;
    a.kind == b.kind && a.text() == b.text() && directive(a) == directive(b) && touching(old) == touching(new)
}

/// Comments and directives in their order, each line without the blanks around it, and after how many tokens each stands.
fn comments(text: &str) -> Result<Vec<(usize, String)>, Refusal> {
    let mut tokens = 0;
    let mut out = Vec::new();
    for piece in pieces(text)? {
        match piece.kind {
            Kind::LineComment | Kind::BlockComment | Kind::Directive | Kind::Pragma => {
                let lines: Vec<&str> = piece.text.split('\n').map(str::trim).collect();
                out.push((tokens, lines.join("\n")));
            }
            _ => tokens += 1,
        }
    }
    Ok(out)
}

/// No file can be included: what a macro of another file does to this one is not known here.
struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &Path) -> io::Result<String> {
        Err(io::ErrorKind::NotFound.into())
    }
}

fn preprocessed(text: &str) -> Vec<Token> {
    let (mut tokens, ..) = fairlane_syntax::preprocess_text(Path::new("text.p4"), text, &Options::default(), &NoFiles);
    tokens.retain(|token| token.kind != TokenKind::End);
    tokens
}
