//! What becomes of warnings: `--Wdisable`, `--Wwarn`, `--Werror`, `--Winfo`, with p4c's rules.

use fairlane_syntax::{Code, Severity};

/// What becomes of a kind of warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// It is not shown.
    Disabled,
    /// It is shown as an information.
    Info,
    /// It is a warning.
    Warn,
    /// It refuses the program.
    Error,
}

/// What becomes of warnings. What is said of one kind goes before what is said of all, and the later word before the earlier.
#[derive(Debug, Clone, Default)]
pub struct Warnings {
    all: Option<Weight>,
    kinds: Vec<(String, Weight)>,
}

/// Kinds of warnings that p4c has and this compiler never gives: options may name them.
const OF_P4C_ONLY: [&str; 11] = [
    "branch",
    "duplicate",
    "expr",
    "failed",
    "inferred",
    "legacy",
    "multi-header-extract",
    "progress",
    "removed",
    "type-inference",
    "unsupported",
];

impl Warnings {
    /// Weighs one kind of warning, or all when `kind` is empty.
    pub fn set(&mut self, kind: &str, weight: Weight) {
        if kind.is_empty() {
            self.all = Some(weight);
        } else {
            self.kinds.push((kind.replace('_', "-"), weight));
        }
    }

    /// The kinds named that neither this compiler nor p4c has, each with the names most like it.
    pub fn unknown(&self) -> Vec<(String, Vec<&'static str>)> {
        let known = |k: &str| Code::from_name(k).is_some() || OF_P4C_ONLY.contains(&k);
        self.kinds.iter().filter(|(k, _)| !known(k)).map(|(k, _)| (k.clone(), Code::similar(k))).collect()
    }

    /// How a warning is shown; `None` when it is not.
    pub fn weigh(&self, code: Code) -> Option<Severity> {
        let weight = self.kinds.iter().rev().find(|(k, _)| k == code.name()).map(|(_, w)| *w).or(self.all).unwrap_or(Weight::Warn);
        match weight {
            Weight::Disabled => None,
            Weight::Info => Some(Severity::Info),
            Weight::Warn => Some(Severity::Warning),
            Weight::Error => Some(Severity::Error),
        }
    }
}

/// Whether p4c has a kind of warning of this name that this compiler never gives.
pub(crate) fn is_of_p4c_only(name: &str) -> bool {
    OF_P4C_ONLY.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_goes_before_all_and_the_later_word_before_the_earlier() {
        let mut w = Warnings::default();
        assert_eq!(w.weigh(Code::Unused), Some(Severity::Warning));
        w.set("unused", Weight::Warn);
        w.set("", Weight::Error);
        assert_eq!(w.weigh(Code::Unused), Some(Severity::Warning));
        assert_eq!(w.weigh(Code::Shadow), Some(Severity::Error));
        w.set("unused", Weight::Disabled);
        w.set("parser_transition", Weight::Info);
        assert_eq!(w.weigh(Code::Unused), None);
        assert_eq!(w.weigh(Code::ParserTransition), Some(Severity::Info));
        w.set("unusd", Weight::Info);
        w.set("removed", Weight::Disabled);
        assert_eq!(w.unknown(), [("unusd".to_owned(), vec!["unused"])]);
    }
}
