//! Collects what the compiler has to say about a program.

use fairlane_syntax::span::Span;
use fairlane_syntax::{Code, Diagnostic};

pub use fairlane_syntax::Severity;

use crate::rule::{Rule, Source};

/// One message about one place of the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// What kind of message it is.
    pub code: Code,
    /// How grave it is.
    pub severity: Severity,
    /// The place.
    pub span: Span,
    /// What is wrong, in one sentence without a full stop.
    pub text: String,
    /// The rule broken; warnings may have none.
    pub rule: Option<Rule>,
    /// The way out, when known.
    pub help: Option<String>,
    /// Another place that explains the message.
    pub note: Option<(Span, String)>,
}

/// The messages of one compilation.
#[derive(Debug, Default)]
pub struct Report {
    messages: Vec<Message>,
}

impl Report {
    /// Adds an error; the same error at the same place is kept once. The kind of message follows from the rule.
    pub fn error(&mut self, span: Span, rule: Rule, text: impl Into<String>) {
        self.error_code(rule.code(), span, rule, text);
    }

    /// Adds an error with the way out.
    pub fn error_help(&mut self, span: Span, rule: Rule, text: impl Into<String>, help: impl Into<String>) {
        self.error(span, rule, text);
        self.help(help);
    }

    /// Adds an error of a kind that does not follow from the rule.
    pub fn error_code(&mut self, code: Code, span: Span, rule: Rule, text: impl Into<String>) {
        self.add(Message { code, severity: Severity::Error, span, text: text.into(), rule: Some(rule), help: None, note: None });
    }

    /// Adds a warning.
    pub fn warning(&mut self, code: Code, span: Span, text: impl Into<String>) {
        self.add(Message { code, severity: Severity::Warning, span, text: text.into(), rule: None, help: None, note: None });
    }

    /// Gives the message just added the way out.
    pub fn help(&mut self, help: impl Into<String>) {
        if let Some(last) = self.messages.last_mut() {
            last.help = Some(help.into());
        }
    }

    /// Gives the message just added another place that explains it.
    pub fn note(&mut self, span: Span, text: impl Into<String>) {
        if let Some(last) = self.messages.last_mut() {
            last.note = Some((span, text.into()));
        }
    }

    /// Whether an error has been added.
    pub fn has_errors(&self) -> bool {
        self.errors() != 0
    }

    /// How many errors have been added.
    pub fn errors(&self) -> usize {
        self.messages.iter().filter(|m| m.severity == Severity::Error).count()
    }

    /// The messages, in the order in which they were found, as the syntax crate shows them.
    pub fn into_diagnostics(self) -> impl Iterator<Item = Diagnostic> {
        self.messages.into_iter().map(diagnostic)
    }

    fn add(&mut self, message: Message) {
        let known = |m: &Message| (m.code, m.severity, m.span, &m.text) == (message.code, message.severity, message.span, &message.text);
        match self.messages.iter().position(known) {
            // What is said of the message goes to the one that stands there.
            Some(i) => {
                let earlier = self.messages.remove(i);
                self.messages.push(earlier);
            }
            None => self.messages.push(message),
        }
    }
}

fn diagnostic(m: Message) -> Diagnostic {
    let mut d = match m.severity {
        Severity::Error => Diagnostic::error(m.code, m.span, m.text),
        _ => Diagnostic::warning(m.code, m.span, m.text),
    };
    match m.rule.map(Rule::source) {
        Some(Source::Specification { section, title }) => d = d.rule(format!("{section}, {title}")),
        Some(Source::Target(target)) => d = d.note(None, format!("this is a rule of {target}")),
        None => {}
    }
    if m.span == Default::default() {
        d = d.without_span();
    }
    if let Some(help) = m.help {
        d = d.help(help);
    }
    match m.note {
        Some((span, text)) => d.note(span, text),
        None => d,
    }
}
