//! What is known at one point of a program: which leaves may still be unwritten, and which headers are valid.

use std::ops::Range;

/// Whether a header is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Validity {
    No,
    Maybe,
    Yes,
}

impl Validity {
    pub(super) fn join(self, other: Validity) -> Validity {
        if self == other {
            self
        } else {
            Validity::Maybe
        }
    }
}

/// What a condition around this point says of a header, until the header changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Nothing,
    /// `isValid()` was asked, or is true: nobody is warned.
    Valid,
    /// `isValid()` is false.
    Invalid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    is: Validity,
    told: Told,
}

/// What is known at one point.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct State {
    /// A bit for each leaf that may be unwritten.
    unwritten: Vec<u64>,
    headers: Vec<Header>,
    /// No way leads here.
    pub dead: bool,
}

impl State {
    pub(super) fn dead() -> State {
        State { dead: true, ..State::default() }
    }

    /// So much does one look at the state cost.
    pub(super) fn weight(&self) -> u64 {
        1 + (self.unwritten.len() + self.headers.len()) as u64 / 4
    }

    pub(super) fn set_unwritten(&mut self, leaves: Range<u32>, unwritten: bool) {
        let need = (leaves.end as usize).div_ceil(64);
        if self.unwritten.len() < need {
            self.unwritten.resize(need, 0);
        }
        for leaf in leaves {
            let (word, bit) = (&mut self.unwritten[leaf as usize / 64], 1u64 << (leaf % 64));
            if unwritten {
                *word |= bit;
            } else {
                *word &= !bit;
            }
        }
    }

    pub(super) fn is_unwritten(&self, leaf: u32) -> bool {
        self.unwritten.get(leaf as usize / 64).is_some_and(|w| w & (1 << (leaf % 64)) != 0)
    }

    pub(super) fn any_unwritten(&self, mut leaves: Range<u32>) -> bool {
        leaves.any(|l| self.is_unwritten(l))
    }

    /// Sets the validity of a header; what a condition said of it is over.
    pub(super) fn set_valid(&mut self, header: u32, is: Validity) {
        self.at(header).is = is;
        self.at(header).told = Told::Nothing;
    }

    /// `isValid()` of a header is asked, with a result that nobody knows here.
    pub(super) fn ask(&mut self, header: u32) {
        self.at(header).told = Told::Valid;
    }

    /// `isValid()` of a header has this result here.
    pub(super) fn tell(&mut self, header: u32, valid: bool) {
        self.at(header).told = if valid { Told::Valid } else { Told::Invalid };
    }

    /// Whether a header is valid, conditions around included.
    pub(super) fn validity(&self, header: u32) -> Validity {
        match self.headers.get(header as usize) {
            None | Some(Header { told: Told::Valid, .. }) => Validity::Yes,
            Some(Header { told: Told::Invalid, .. }) => Validity::No,
            Some(h) => h.is,
        }
    }

    fn at(&mut self, header: u32) -> &mut Header {
        let i = header as usize;
        if self.headers.len() <= i {
            self.headers.resize(i + 1, Header { is: Validity::Yes, told: Told::Nothing });
        }
        &mut self.headers[i]
    }

    /// What is known where this way and another meet.
    pub(super) fn join(&mut self, other: &State) {
        self.join_with(other, Told::Nothing);
    }

    /// As [`Self::join`] within a condition: of a header that was asked about, nobody is warned.
    pub(super) fn join_quietly(&mut self, other: &State) {
        self.join_with(other, Told::Valid);
    }

    fn join_with(&mut self, other: &State, differ: Told) {
        if other.dead {
            return;
        }
        if self.dead {
            self.clone_from(other);
            return;
        }
        if self.unwritten.len() < other.unwritten.len() {
            self.unwritten.resize(other.unwritten.len(), 0);
        }
        for (a, b) in self.unwritten.iter_mut().zip(&other.unwritten) {
            *a |= b;
        }
        for (a, b) in self.headers.iter_mut().zip(&other.headers) {
            a.is = a.is.join(b.is);
            if a.told != b.told {
                a.told = differ;
            }
        }
        // A header that one way has not met is not in sight where they meet.
        let met = self.headers.len();
        self.headers.extend(other.headers.iter().skip(met));
    }

    /// Headers that were valid `before` and still are in one of the ways that met here are taken to be valid.
    pub(super) fn trust(&mut self, before: &State) {
        for (h, b) in self.headers.iter_mut().zip(&before.headers) {
            if (h.is, b.is) == (Validity::Maybe, Validity::Yes) {
                h.is = Validity::Yes;
            }
        }
    }

    /// Learns from `way`, one of those that met here and the one that was taken: what it wrote, and which headers it left valid.
    pub(super) fn took(&mut self, way: &State) {
        self.dead |= way.dead;
        self.unwritten.clone_from(&way.unwritten);
        for (h, w) in self.headers.iter_mut().zip(&way.headers) {
            if w.is == Validity::Yes {
                h.is = Validity::Yes;
            }
        }
    }

    /// Forgets what conditions inside of a branching said, but not what those around it (`before`) said of headers that
    /// did not change since, in any of `ways`.
    pub(super) fn leave(&mut self, before: &State, ways: &[&State]) {
        for (i, h) in self.headers.iter_mut().enumerate() {
            let told = before.headers.get(i).map_or(Told::Nothing, |b| b.told);
            let changed = ways.iter().any(|w| !w.dead && w.headers.get(i).is_some_and(|w| w.told == Told::Nothing));
            h.told = if changed { Told::Nothing } else { told };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meeting_ways_keep_what_both_say() {
        let (mut a, mut b) = (State::default(), State::default());
        a.set_unwritten(0..70, true);
        b.set_unwritten(0..70, true);
        b.set_unwritten(3..69, false);
        a.set_unwritten(0..69, false);
        a.set_valid(1, Validity::Yes);
        b.set_valid(1, Validity::No);
        a.join(&b);
        assert!(a.is_unwritten(2) && a.is_unwritten(69) && !a.is_unwritten(3) && !a.is_unwritten(500));
        assert_eq!(a.validity(1), Validity::Maybe);
        a.join(&State::dead());
        assert!(!a.dead);
    }

    #[test]
    fn what_a_condition_says_ends_with_it_or_with_a_change() {
        let mut before = State::default();
        before.set_valid(0, Validity::No);
        before.set_valid(1, Validity::No);
        before.tell(1, true);
        let mut inside = before.clone();
        inside.tell(0, true);
        assert_eq!(inside.validity(0), Validity::Yes);
        let mut after = inside.clone();
        after.join(&before);
        after.leave(&before, &[&inside]);
        assert_eq!((after.validity(0), after.validity(1)), (Validity::No, Validity::Yes));
        inside.set_valid(1, Validity::No);
        let mut after = inside.clone();
        after.leave(&before, &[&inside]);
        assert_eq!(after.validity(1), Validity::No);
    }
}
