//! What the compiler has to say about a program.

use std::fmt::Write;

use crate::code::Code;
use crate::source::SourceMap;
use crate::span::Span;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing, no more (`--Winfo`).
    Info,
    /// The program compiles; something in it is doubtful.
    Warning,
    /// The program is rejected.
    Error,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// The kind of message.
    pub code: Code,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// The text at fault; `None` when no text is (a missing `main`).
    pub span: Option<Span>,
    /// The rule broken, by section of the P4_16 specification: `11.2, a variable is local to a block`.
    pub rule: Option<String>,
    /// Further places that explain the message.
    pub notes: Vec<(Option<Span>, String)>,
    /// The way out.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error at a place.
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Error, code, message: message.into(), span: Some(span), rule: None, notes: Vec::new(), help: None }
    }

    /// A warning at a place.
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, span, message) }
    }

    /// Takes the place away: the message is about the program as a whole.
    pub fn without_span(mut self) -> Self {
        self.span = None;
        self
    }

    /// Names the rule broken, as `section, rule`.
    pub fn rule(mut self, rule: impl Into<String>) -> Self {
        self.rule = Some(rule.into());
        self
    }

    /// Adds a note, at a place or at none.
    pub fn note(mut self, span: impl Into<Option<Span>>, message: impl Into<String>) -> Self {
        self.notes.push((span.into(), message.into()));
        self
    }

    /// Names the way out.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The message with place, source line and caret, as a terminal shows it; ends with a line end.
    pub fn render(&self, sources: &SourceMap) -> String {
        let mut out = String::new();
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
        };
        if let Some(span) = self.span {
            include_chain(&mut out, sources, span);
        }
        headline(&mut out, sources, self.span, &format!("{severity}[{}]", self.code), &self.message);
        let gutter = self.span.map_or(2, |span| excerpt(&mut out, sources, span));
        if let Some(rule) = &self.rule {
            let _ = writeln!(out, "{:gutter$} = rule: P4_16 specification {rule}", "");
        }
        if let Some(help) = &self.help {
            let _ = writeln!(out, "{:gutter$} = help: {help}", "");
        }
        for (span, message) in &self.notes {
            headline(&mut out, sources, *span, "note", message);
            if let Some(span) = span {
                excerpt(&mut out, sources, *span);
            }
        }
        out
    }
}

fn headline(out: &mut String, sources: &SourceMap, span: Option<Span>, label: &str, message: &str) {
    if let Some(span) = span {
        let at = sources.location(span);
        let _ = write!(out, "{}:{}:{}: ", at.file, at.line, at.column);
    }
    let _ = writeln!(out, "{label}: {message}");
}

/// `In file included from a.p4:3:` for each `#include` on the way to the span, outermost last as cpp shows it.
fn include_chain(out: &mut String, sources: &SourceMap, span: Span) {
    let mut next = sources.file(span.file).and_then(|file| file.included_from);
    let mut lead = "In file included from";
    while let Some(include) = next {
        let at = sources.location(include);
        next = sources.file(include.file).and_then(|file| file.included_from);
        let end = if next.is_some() { ',' } else { ':' };
        let _ = writeln!(out, "{lead} {}:{}{end}", at.file, at.line);
        lead = "                 from";
    }
}

/// The source line with a caret line below; returns the width of the line-number gutter.
fn excerpt(out: &mut String, sources: &SourceMap, span: Span) -> usize {
    let at = sources.location(span);
    let number = at.line.to_string();
    let gutter = number.len().max(1) + 1;
    let line = sources.line_text(span);
    // A line of a machine-made file can be very long: show the part around the caret.
    let before = at.column as usize - usize::from(at.column > 0);
    let skipped = before.saturating_sub(100);
    let shown: String = line.chars().skip(skipped).take(160).collect();
    let width = sources.text(span).split('\n').next().unwrap_or("").trim_end_matches('\r').chars().count();
    let room = shown.chars().count().saturating_sub(before - skipped).max(1);
    let width = width.clamp(1, room);
    // Tabs stay tabs, so that the caret stands right whatever the terminal's tab width.
    let pad: String = shown.chars().take(before - skipped).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    let _ = writeln!(out, "{number:>gutter$} | {shown}");
    let _ = writeln!(out, "{:>gutter$} | {pad}{}", "", "^".repeat(width));
    gutter
}

/// So many warnings are kept; a program with more is in need of other help.
const MAX_WARNINGS: usize = 1000;

/// Collects messages; stops collecting errors at a limit.
#[derive(Debug, Clone)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    errors: usize,
    warnings: usize,
    limit: usize,
}

impl Default for Diagnostics {
    /// Keeps 20 errors.
    fn default() -> Self {
        Diagnostics::with_limit(20)
    }
}

impl Diagnostics {
    /// Keeps at most `limit` errors (0 means 1).
    pub fn with_limit(limit: usize) -> Self {
        Diagnostics { list: Vec::new(), errors: 0, warnings: 0, limit: limit.max(1) }
    }

    /// Adds a message, unless the same one stands there already or the limit is reached. All errors are counted.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if self.list.contains(&diagnostic) {
            return;
        }
        let kept = match diagnostic.severity {
            Severity::Error => {
                self.errors += 1;
                self.errors <= self.limit
            }
            Severity::Warning => {
                self.warnings += 1;
                self.warnings <= MAX_WARNINGS
            }
            Severity::Info => true,
        };
        if kept {
            self.list.push(diagnostic);
        }
    }

    /// Adds the messages of another collector.
    pub fn extend(&mut self, other: impl IntoIterator<Item = Diagnostic>) {
        other.into_iter().for_each(|diagnostic| self.push(diagnostic));
    }

    /// Whether any error was reported.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Number of errors reported, those beyond the limit too.
    pub fn error_count(&self) -> usize {
        self.errors
    }

    /// Number of warnings reported, those beyond the limit too.
    pub fn warning_count(&self) -> usize {
        self.warnings
    }

    /// Whether so many errors were reported that going on helps nobody.
    pub fn is_full(&self) -> bool {
        self.errors >= self.limit
    }

    /// The messages kept, in the order of reporting.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// Weighs the warnings anew (`--Wdisable`, `--Werror`): `None` drops one.
    pub fn reclassify(&mut self, weigh: impl Fn(&Diagnostic) -> Option<Severity>) {
        self.list.retain_mut(|diagnostic| {
            if diagnostic.severity != Severity::Warning {
                return true;
            }
            self.warnings -= 1;
            match weigh(diagnostic) {
                Some(severity) => diagnostic.severity = severity,
                None => return false,
            }
            match diagnostic.severity {
                Severity::Error => self.errors += 1,
                Severity::Warning => self.warnings += 1,
                Severity::Info => {}
            }
            true
        });
    }

    /// Puts the messages into the order of their places; those of one place, and those without, stay in the order of reporting.
    /// Warnings that became errors count towards the limit of errors: what is beyond it is dropped.
    pub fn sort(&mut self) {
        self.list.sort_by_key(|d| d.span.map_or((u32::MAX, 0), |s| (s.file.0, s.start)));
        let mut room = self.limit;
        self.list.retain(|d| {
            let kept = d.severity != Severity::Error || room > 0;
            room = room.saturating_sub(usize::from(d.severity == Severity::Error));
            kept
        });
    }

    /// All messages as a terminal shows them, then one line that counts them; empty when there is nothing to say.
    pub fn render(&self, sources: &SourceMap) -> String {
        let mut out: String = self.list.iter().map(|diagnostic| diagnostic.render(sources)).collect();
        let hidden = self.errors.saturating_sub(self.list.iter().filter(|d| d.severity == Severity::Error).count());
        let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        match (self.errors, self.warnings) {
            (0, 0) => {}
            (0, warnings) => {
                let _ = writeln!(out, "{}", plural(warnings, "warning"));
            }
            (errors, warnings) => {
                let _ = write!(out, "{}", plural(errors, "error"));
                if hidden > 0 {
                    let _ = write!(out, " ({hidden} not shown)");
                }
                if warnings > 0 {
                    let _ = write!(out, ", {}", plural(warnings, "warning"));
                }
                out.push('\n');
            }
        }
        out
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;
    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renders_place_line_caret_rule_help_and_notes() {
        let mut map = SourceMap::default();
        let main = map.add("main.p4", "#include \"b.p4\"\n", None);
        let file = map.add("b.p4", "bit<8> x;\n\tbit<9> yy = 1;\n", Some(Span::new(main, 0, 15)));
        let text = Diagnostic::error(Code::TopLevelVariable, Span::new(file, 18, 20), "variable `yy` at the top level")
            .rule("11.2, variables are local")
            .help("make it a `const`")
            .note(Span::new(file, 7, 8), "another one")
            .render(&map);
        assert_eq!(
            text,
            "In file included from main.p4:1:\n\
             b.p4:2:9: error[top-level-variable]: variable `yy` at the top level\n \
             2 | \tbit<9> yy = 1;\n   \
             | \t       ^^\n   \
             = rule: P4_16 specification 11.2, variables are local\n   \
             = help: make it a `const`\n\
             b.p4:1:8: note: another one\n \
             1 | bit<8> x;\n   \
             |        ^\n"
        );
    }

    #[test]
    fn the_limit_hides_errors_but_counts_them() {
        let map = SourceMap::default();
        let mut all = Diagnostics::with_limit(2);
        for i in 0..5 {
            all.push(Diagnostic::error(Code::UndeclaredName, Span::default(), format!("{i}")).without_span());
        }
        all.push(Diagnostic::error(Code::UndeclaredName, Span::default(), "0").without_span());
        assert_eq!(all.error_count(), 5);
        assert!(all.is_full());
        assert!(all.render(&map).ends_with("5 errors (3 not shown)\n"));
    }

    #[test]
    fn the_limit_holds_for_warnings_that_became_errors() {
        let mut all = Diagnostics::with_limit(2);
        let mut map = SourceMap::default();
        let file = map.add("x.p4", "abcde", None);
        for i in (0..4).rev() {
            all.push(Diagnostic::warning(Code::Unused, Span::new(file, i, i + 1), format!("w{i}")));
        }
        all.reclassify(|_| Some(Severity::Error));
        all.sort();
        let text = all.render(&map);
        assert!(text.contains("w0") && text.contains("w1") && !text.contains("w2"), "{text}");
        assert!(text.ends_with("4 errors (2 not shown)\n"), "{text}");
    }
}
