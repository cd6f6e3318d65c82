//! Action profiles: members, and groups a selector chooses from.

use std::collections::BTreeMap;

use crate::control::ActionCall;

#[derive(Debug, Clone)]
pub struct Member {
    pub call: ActionCall,
    /// Arguments as limbs.
    pub params: Box<[u64]>,
    /// Entries and groups that use it.
    pub uses: usize,
}

#[derive(Debug, Clone, Default)]
pub struct Group {
    /// Member and weight, by member.
    pub members: Vec<(u32, u32)>,
    /// Members repeated by weight, in order of their ids: what the hash chooses from.
    pub choices: Vec<u32>,
    pub max_size: u32,
    /// Entries that use it.
    pub uses: usize,
}

#[derive(Debug, Clone, Default)]
pub struct Profile {
    pub members: BTreeMap<u32, Member>,
    pub groups: BTreeMap<u32, Group>,
}

impl Group {
    pub fn set(&mut self, members: &[(u32, u32)]) {
        self.members = members.to_vec();
        self.members.sort_unstable();
        self.choices = self.members.iter().flat_map(|&(m, w)| std::iter::repeat_n(m, w as usize)).collect();
    }
}
