//! What an entry matches of one key: forms of it for the target and for the control plane.

use num_bigint::BigInt;
use num_traits::{One, Zero};

use crate::control_plane::EntryMatch;
use crate::ir::Match;

/// A match of an entry as the control plane would write it.
pub(super) fn entry_match(m: &Match, kind: &str, width: u32) -> EntryMatch {
    let all: BigInt = (BigInt::one() << width) - 1;
    match (m, kind) {
        (Match::Any, _) => EntryMatch::DontCare,
        (Match::Exact(v), "lpm") => EntryMatch::Lpm(v.clone(), width),
        (Match::Exact(v), "ternary") => EntryMatch::Ternary(v.clone(), all),
        (Match::Exact(v), "range") => EntryMatch::Range(v.clone(), v.clone()),
        (Match::Exact(v), _) => EntryMatch::Exact(v.clone()),
        (Match::Mask(_, mask), _) if mask.is_zero() => EntryMatch::DontCare,
        (Match::Mask(v, mask), "lpm") => EntryMatch::Lpm(v.clone(), prefix_length(mask, width).unwrap_or(width)),
        (Match::Mask(v, mask), _) => EntryMatch::Ternary(v.clone(), mask.clone()),
        (Match::Range(a, b), _) => EntryMatch::Range(a.clone(), b.clone()),
    }
}

/// Brings a match into the form that a match kind wants.
pub(super) fn normalise(m: &mut Match, kind: &str, width: u32) {
    let all: BigInt = (BigInt::one() << width) - 1;
    if let Match::Mask(v, mask) = m {
        if *mask == all {
            *m = Match::Exact(v.clone());
        } else if kind == "ternary" || kind == "lpm" {
            let masked: BigInt = &*v & &*mask;
            *v = masked;
        }
    }
}

/// The length of a prefix mask, `None` when the mask is none.
pub(crate) fn prefix_length(mask: &BigInt, width: u32) -> Option<u32> {
    (0..=width).find(|n| *mask == ((BigInt::one() << *n) - 1) << (width - n))
}
