//! Collects what the compiler has to say about a program.

use fairlane_syntax::span::Span;

/// How grave a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The program is refused.
    Error,
    /// The program is accepted, maybe with another meaning than intended.
    Warning,
}

/// One message about one place of the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// How grave it is.
    pub severity: Severity,
    /// The place.
    pub span: Span,
    /// What is wrong, in one sentence without a full stop.
    pub text: String,
    /// The rule broken, as a section of the P4_16 specification or a limit of the target.
    pub rule: &'static str,
    /// The way out, when known.
    pub help: Option<String>,
}

/// The messages of one compilation.
#[derive(Debug, Default)]
pub struct Report {
    messages: Vec<Message>,
}

impl Report {
    /// Adds an error; the same error at the same place is kept once.
    pub fn error(&mut self, span: Span, rule: &'static str, text: impl Into<String>) {
        self.add(Message { severity: Severity::Error, span, text: text.into(), rule, help: None });
    }

    /// Adds an error with the way out.
    pub fn error_help(&mut self, span: Span, rule: &'static str, text: impl Into<String>, help: impl Into<String>) {
        self.add(Message { severity: Severity::Error, span, text: text.into(), rule, help: Some(help.into()) });
    }

    /// Adds a warning.
    pub fn warning(&mut self, span: Span, rule: &'static str, text: impl Into<String>) {
        self.add(Message { severity: Severity::Warning, span, text: text.into(), rule, help: None });
    }

    /// Whether an error has been added.
    pub fn has_errors(&self) -> bool {
        self.messages.iter().any(|m| m.severity == Severity::Error)
    }

    /// The messages, in the order in which they were found.
    pub fn into_messages(self) -> Vec<Message> {
        self.messages
    }

    fn add(&mut self, message: Message) {
        if !self.messages.contains(&message) {
            self.messages.push(message);
        }
    }
}

/// Rules that are the target's and not the specification's.
pub const V1MODEL: &str = "v1model architecture";
/// Limits of BMv2.
pub const BMV2: &str = "limit of the BMv2 target";
