//! Which flows wait for others.

use rustc_hash::FxHashMap;

use crate::Nanos;

/// A flow that waits: its ends, and how long it waits after the last of the others is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Follower {
    pub(crate) sender: usize,
    pub(crate) receiver: usize,
    pub(crate) delay: Nanos,
}

/// All that wait.
#[derive(Debug, Default)]
pub(crate) struct Followers {
    /// With the number of flows that are not over yet.
    all: Vec<(Follower, usize)>,
    /// The end of a flow -> those that wait until it is over.
    of: FxHashMap<usize, Vec<usize>>,
}

impl Followers {
    /// Nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// A flow waits until the flows of all these ends are over.
    pub(crate) fn add(&mut self, follower: Follower, ends: &[usize]) {
        let number = self.all.len();
        self.all.push((follower, ends.len()));
        for &end in ends {
            self.of.entry(end).or_default().push(number);
        }
    }

    /// An end's flow is over: the flows that waited for it alone, in the order in which they were added.
    pub(crate) fn over(&mut self, end: usize) -> Vec<Follower> {
        let mut ready = self.of.remove(&end).unwrap_or_default();
        ready.retain(|&number| {
            let (_, left) = &mut self.all[number];
            *left -= 1;
            *left == 0
        });
        ready.into_iter().map(|number| self.all[number].0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_waits_for_all_the_others_and_starts_once() {
        let follower = |sender| Follower { sender, receiver: sender + 1, delay: 5 };
        let mut followers = Followers::default();
        assert!(followers.is_empty());
        followers.add(follower(10), &[1, 2]);
        followers.add(follower(20), &[2]);
        assert_eq!(followers.over(3), []);
        assert_eq!(followers.over(1), []);
        assert_eq!(followers.over(2), [follower(10), follower(20)]);
        assert_eq!(followers.over(2), []);
        assert!(followers.is_empty());
    }

    #[test]
    fn a_flow_named_twice_is_over_for_both() {
        let follower = Follower { sender: 1, receiver: 2, delay: 0 };
        let mut followers = Followers::default();
        followers.add(follower, &[7, 7]);
        assert_eq!(followers.over(7), [follower]);
    }
}
