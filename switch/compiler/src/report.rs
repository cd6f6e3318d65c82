//! Collects what the compiler has to say about a program.

use fairlane_syntax::span::Span;
use fairlane_syntax::{Code, Diagnostic};

pub use fairlane_syntax::Severity;

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
    /// The rule broken, as a section of the P4_16 specification or a limit of the target; warnings may have none.
    pub rule: Option<&'static str>,
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
    pub fn error(&mut self, span: Span, rule: &'static str, text: impl Into<String>) {
        self.error_code(code_of(rule), span, rule, text);
    }

    /// Adds an error with the way out.
    pub fn error_help(&mut self, span: Span, rule: &'static str, text: impl Into<String>, help: impl Into<String>) {
        self.error(span, rule, text);
        self.help(help);
    }

    /// Adds an error of a kind that does not follow from the rule.
    pub fn error_code(&mut self, code: Code, span: Span, rule: &'static str, text: impl Into<String>) {
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

/// Rules that are the target's and not the specification's.
pub const V1MODEL: &str = "v1model architecture";
/// Rules of the Portable Switch Architecture.
pub const PSA: &str = "PSA";
/// Limits of BMv2.
pub const BMV2: &str = "limit of the BMv2 target";

/// The rule `P4_16 12.1 (assignment statement)` is shown as `12.1, assignment statement`.
fn diagnostic(m: Message) -> Diagnostic {
    let mut d = match m.severity {
        Severity::Error => Diagnostic::error(m.code, m.span, m.text),
        _ => Diagnostic::warning(m.code, m.span, m.text),
    };
    match m.rule {
        Some(V1MODEL) => d = d.note(None, "this is a rule of the v1model architecture"),
        Some(PSA) => d = d.note(None, "this is a rule of the Portable Switch Architecture (PSA)"),
        Some(BMV2) => d = d.note(None, "this is a rule of the BMv2 target"),
        Some(rule) => {
            let rule = rule.strip_prefix("P4_16 ").unwrap_or(rule);
            d = d.rule(match rule.split_once(" (").and_then(|(n, t)| Some((n, t.strip_suffix(')')?))) {
                Some((section, title)) => format!("{section}, {title}"),
                None => rule.to_owned(),
            });
        }
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

/// The kind of message for a rule: by the section's number, and its title where a section has several.
fn code_of(rule: &str) -> Code {
    match rule {
        V1MODEL | PSA => return Code::Architecture,
        BMV2 => return Code::Target,
        _ => {}
    }
    let rest = rule.strip_prefix("P4_16 ").unwrap_or(rule);
    let (section, title) = rest.split_once(' ').unwrap_or((rest, ""));
    match (section, title) {
        ("6.9", _) => Code::UndeclaredName,
        ("6.6.1", _) => Code::DuplicateDeclaration,
        ("6.6", _) => Code::NoMain,
        ("6.7", _) => Code::NotAnLvalue,
        ("6.8", _) => Code::ParameterDirection,
        ("6.8.2", _) => Code::OptionalParameter,
        ("6.4.3", _) => Code::Literal,
        ("7.1.1", _) => Code::VoidValue,
        ("7.1.2", _) => Code::ErrorName,
        ("7.1.3", _) => Code::MatchKind,
        ("7.1.6", _) => Code::Width,
        ("7.2.1", _) => Code::EnumDeclaration,
        ("7.2.4" | "7.2.6" | "7.2.9", _) => Code::TypeNesting,
        ("7.2.11", _) => Code::ExternDeclaration,
        ("7.2.12", _) => Code::Specialization,
        ("7.5", _) => Code::Recursion,
        ("7.6", _) => Code::NewType,
        ("8.3" | "8.17" | "8.18" | "8.20" | "8.24", _) => Code::NoSuchMember,
        ("8.5" | "8.7" | "8.9" | "8.10.1" | "8.10.2" | "8.16" | "8.5.1", _) => Code::Operator,
        ("8.12.1", _) => Code::Cast,
        ("8.13" | "8.19", _) => Code::Index,
        ("8.14", _) => Code::StructureExpression,
        ("8.16.4", _) => Code::Select,
        ("8.22", _) => Code::Call,
        ("8.23" | "11.3" | "11.3.2", _) => Code::Instantiation,
        ("8.26", _) => Code::Inference,
        ("8", _) => Code::NotAValue,
        ("10" | "12.4", _) => Code::Return,
        ("11.2", _) => Code::Variable,
        ("11.3.1", _) => Code::AbstractMethod,
        ("12" | "12.5", _) => Code::Statement,
        ("12.7" | "12.7.1" | "12.7.2" | "12.7.3", _) => Code::Switch,
        ("12.8", _) => Code::Loop,
        ("13.1" | "13.2" | "13.4" | "13.5", _) => Code::ParserState,
        ("13.6", _) => Code::Select,
        ("13.7" | "13.8" | "13.8.1" | "13.8.2" | "13.8.3", _) => Code::Extraction,
        ("13.10" | "14.2.2" | "14.4", _) => Code::Apply,
        ("13.11", _) => Code::ValueSet,
        ("14.1" | "14.1.1", _) => Code::Action,
        ("14.2.1", "(entries)") => Code::Entry,
        ("14.2" | "14.2.1", _) => Code::Table,
        ("14", _) => Code::TypeParameters,
        ("18.1", _) => Code::NotConstant,
        ("18.3" | "18.3.1", _) => Code::ControlPlaneName,
        ("19", _) => Code::StaticAssert,
        ("20" | "20.3.2" | "20.3.4", _) => Code::Annotation,
        _ => Code::TypeError,
    }
}
