//! The entries of tables (spec 14.2.1.4).

use std::rc::Rc;

use fairlane_syntax::ast::*;
use fairlane_syntax::Code;
use num_bigint::BigInt;
use num_traits::{One, Signed, ToPrimitive, Zero};

use super::constants::{wrap, ConstVal};
use super::defs::Signature;
use super::Checker;
use crate::rule::Rule;
use crate::types::Type;

const ENTRIES: Rule = Rule::Entries;

/// Value and mask of one component of an entry's key; `None` where it is no plain value (a range).
type Pattern = Option<(BigInt, BigInt)>;

impl<'a> Checker<'a, '_> {
    pub(crate) fn check_entry(
        &mut self,
        e: &TableEntry,
        keys: &[Type],
        kinds: &[Symbol],
        actions: &[(&ActionReference, Option<Rc<Signature>>)],
    ) {
        if let Some(p) = &e.priority {
            self.check_expr(p);
            if self.eval_int(p).is_none() {
                self.error(p.span, ENTRIES, "the priority must be an integer known at compile time");
            }
        }
        self.check_keyset(&e.keyset, keys, ENTRIES);
        let parts: Vec<&Keyset> = match &e.keyset.kind {
            KeysetKind::Tuple(parts) => parts.iter().collect(),
            KeysetKind::Default | KeysetKind::DontCare => Vec::new(),
            _ => vec![&e.keyset],
        };
        for (part, kind) in parts.iter().zip(kinds) {
            let bad = match (&part.kind, &**kind) {
                (KeysetKind::Mask(..), "exact" | "range" | "optional") => Some("a mask"),
                (KeysetKind::Range(..), "exact" | "lpm" | "ternary" | "optional") => Some("a range"),
                (KeysetKind::Default | KeysetKind::DontCare, "exact") => Some("`_`"),
                _ => None,
            };
            if let Some(what) = bad {
                self.error(part.span, ENTRIES, format!("{what} cannot stand for a key that matches `{kind}`"));
            }
        }
        let Some((reference, sig)) = actions.iter().find(|(a, _)| a.name.name.name == e.action.name.name.name) else {
            let name = &e.action.name;
            if self.action_signature(name).is_some() {
                self.error_help(
                    name.span,
                    ENTRIES,
                    format!("`{}` is not in the table's list of actions", name.name.name),
                    format!("add `{};` to `actions`", name.name.name),
                );
            }
            return;
        };
        if reference.annotations.iter().any(|a| &*a.name.name == "defaultonly") {
            self.error(
                e.action.span,
                Rule::ActionListAnnotations,
                format!("`{}` is `@defaultonly` and cannot be in an entry", sig.as_ref().map_or("it", |s| &s.name)),
            );
        }
        if let Some(sig) = sig.clone() {
            self.check_control_plane_arguments(
                &sig,
                reference.arguments.as_deref().unwrap_or(&[]),
                e.action.arguments.as_deref().unwrap_or(&[]),
                e.action.span,
            );
        }
    }

    /// Priorities are for tables whose keys can overlap and whose entries are not all `const`; they end within 32 bits.
    pub(crate) fn check_priorities(&mut self, t: &TableDeclaration, p: &TableProperty, entries: &[TableEntry], kinds: &[Symbol]) {
        let given = entries.iter().find(|e| e.priority.is_some());
        let mut largest_wins = true;
        let mut delta = 1u64;
        for property in &t.properties {
            match &property.kind {
                TablePropertyKind::Other(n, value) if &*n.name == "largest_priority_wins" => match self.eval(value) {
                    Some(ConstVal::Bool(b)) => largest_wins = b,
                    _ => self.error(value.span, ENTRIES, "`largest_priority_wins` is `true` or `false`"),
                },
                TablePropertyKind::Other(n, value) if &*n.name == "priority_delta" => match self.eval_int(value).and_then(|v| v.to_u32()) {
                    Some(v) if v > 0 => delta = u64::from(v),
                    _ => self.error(value.span, ENTRIES, "`priority_delta` is a positive integer known at compile time"),
                },
                _ => {}
            }
        }
        if p.is_const {
            if let Some(e) = given {
                self.error_help(e.span, ENTRIES, "`const` entries have no priorities", "leave out the priorities, or `const`");
            }
            return;
        }
        if !kinds.iter().any(|k| !matches!(&**k, "exact" | "lpm")) {
            if let Some(e) = given {
                let at = t.properties.iter().find(|p| matches!(p.kind, TablePropertyKind::Key(_))).map_or(t.name.span, |p| p.span);
                self.error(at, ENTRIES, "keys that match `exact` and `lpm` alone need no priorities, and entries have some");
                self.report.note(e.span, "the entry with a priority");
            }
            return;
        }
        let Some(_) = given else {
            if (entries.len() as u64).saturating_mul(delta) > u64::from(u32::MAX) {
                self.error(t.name.span, ENTRIES, "the priorities of the entries overflow");
            }
            return;
        };
        self.check_given_priorities(t, entries, largest_wins, delta);
    }

    fn check_given_priorities(&mut self, t: &TableDeclaration, entries: &[TableEntry], largest_wins: bool, delta: u64) {
        // The priority before, its entry, and the one that the next entry gets when it has none.
        let mut last: Option<(u64, Span, u64)> = None;
        let mut used: Vec<(u64, Span)> = Vec::new();
        let mut ordered = true;
        for e in entries {
            let priority = match (&e.priority, last) {
                (Some(p), _) => match self.eval_int(p).and_then(|v| v.to_u32()) {
                    Some(v) => u64::from(v),
                    None => return,
                },
                (None, Some((_, _, next))) => next,
                (None, None) => {
                    self.error_help(
                        e.span,
                        ENTRIES,
                        "the first entry has no priority, and another has",
                        "write `priority = ...: (...) : ...`",
                    );
                    return;
                }
            };
            if let Some((_, other)) = used.iter().find(|(p, _)| *p == priority) {
                self.report.warning(Code::DuplicatePriorities, *other, format!("two entries have the priority {priority}"));
                self.report.note(e.span, "the other entry");
            }
            if let Some((before, at, _)) = last {
                let out = if largest_wins { priority > before } else { priority < before };
                if out && ordered {
                    let text = format!("priority {before} stands before priority {priority}");
                    self.report.warning(Code::EntriesOutOfPriorityOrder, at, text);
                    ordered = false;
                }
            }
            let next = if largest_wins { priority.checked_sub(delta) } else { priority.checked_add(delta) };
            let Some(next) = next.filter(|n| *n <= u64::from(u32::MAX)) else {
                self.error(t.name.span, ENTRIES, "the priorities of the entries overflow");
                return;
            };
            used.push((priority, e.span));
            last = Some((priority, e.span, next));
        }
    }

    /// An entry that an earlier one takes everything from never matches.
    pub(crate) fn check_overlaps(&mut self, entries: &[TableEntry], keys: &[Type], kinds: &[Symbol]) {
        let exact = kinds.iter().all(|k| &**k == "exact");
        if entries.iter().any(|e| e.priority.is_some()) || entries.len() > 1024 {
            return;
        }
        let patterns: Vec<Vec<Pattern>> = entries.iter().map(|e| self.patterns(&e.keyset, keys)).collect();
        for (i, later) in patterns.iter().enumerate() {
            let covered = |earlier: &Vec<Pattern>| {
                !later.is_empty()
                    && earlier.len() == later.len()
                    && earlier.iter().zip(later).all(|(a, b)| match (a, b) {
                        (Some((v, m)), Some((w, n))) => (m & n) == *m && (v & m) == (w & m),
                        _ => false,
                    })
            };
            // Where the longest prefix wins, a later entry inside of an earlier one does match.
            let lpm = kinds.iter().any(|k| &**k == "lpm");
            let Some(j) = patterns[..i].iter().position(covered) else { continue };
            let at = entries[i].span;
            if exact || lpm {
                if patterns[j] != *later {
                    continue;
                }
                self.error_code(Code::DuplicateEntry, at, ENTRIES, "another entry has the same key");
            } else {
                self.report.warning(Code::Keys, at, "an entry before it takes all that it matches");
            }
            self.report.note(entries[j].span, "the other entry");
        }
    }

    fn patterns(&mut self, k: &Keyset, keys: &[Type]) -> Vec<Pattern> {
        let parts: Vec<&Keyset> = match &k.kind {
            KeysetKind::Tuple(parts) => parts.iter().collect(),
            KeysetKind::Default | KeysetKind::DontCare if keys.len() != 1 => {
                return vec![Some((BigInt::zero(), BigInt::zero())); keys.len()]
            }
            _ => vec![k],
        };
        if parts.len() != keys.len() {
            return Vec::new();
        }
        parts.into_iter().zip(keys).map(|(part, t)| self.pattern(part, t)).collect()
    }

    fn pattern(&mut self, k: &Keyset, t: &Type) -> Pattern {
        let t = self.strip_newtype(t);
        let width = self.fixed_width(&t)?;
        let full = (BigInt::one() << width) - 1;
        let mut value = |e: &Expr| match self.eval(e)? {
            ConstVal::Int(v) if v.is_negative() => Some(wrap(v, &Type::bit(width))),
            ConstVal::Int(v) => Some(v),
            ConstVal::Bool(b) => Some(BigInt::from(u8::from(b))),
            _ => None,
        };
        match &k.kind {
            KeysetKind::Default | KeysetKind::DontCare => Some((BigInt::zero(), BigInt::zero())),
            KeysetKind::Value(e) => Some((value(e)? & &full, full)),
            KeysetKind::Mask(a, m) => Some((value(a)?, value(m)?)),
            _ => None,
        }
    }
}
