//! The output of the preprocessor as text again (`-E`), with cpp's line markers, from which each token has its place when it is read.

use std::fmt::Write;

use crate::source::SourceMap;
use crate::token::{Token, TokenKind};

/// A gap of so many lines is written as such; a larger one as a marker.
const MAX_GAP: u32 = 8;

/// Writes tokens as text.
pub fn written(tokens: &[Token], sources: &SourceMap) -> String {
    let mut out = String::new();
    // Where the line that is written now stands.
    let mut at: Option<(String, u32)> = None;
    let mut before: Option<&Token> = None;
    for token in tokens.iter().filter(|token| token.kind != TokenKind::End) {
        let here = sources.location(token.span);
        let same_file = at.as_ref().is_some_and(|(file, _)| *file == here.file);
        if token.line_start || !same_file {
            if !out.is_empty() {
                out.push('\n');
            }
            match &at {
                Some((_, line)) if same_file && (1..=MAX_GAP).contains(&here.line.saturating_sub(*line)) => {
                    (line + 1..here.line).for_each(|_| out.push('\n'));
                }
                _ => {
                    let _ = writeln!(out, "# {} \"{}\"", here.line, here.file);
                }
            }
            at = Some((here.file, here.line));
        } else if token.spaced || !before.is_some_and(|before| before.span.file == token.span.file && before.span.end == token.span.start) {
            // Tokens of macros may meet that stood apart.
            out.push(' ');
        }
        out.push_str(token.text());
        // Strings may run over lines.
        if let Some((_, line)) = &mut at {
            *line += token.text().matches('\n').count() as u32;
        }
        before = Some(token);
    }
    out.push('\n');
    out
}
