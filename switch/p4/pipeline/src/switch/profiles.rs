//! The control interface to action profiles.

use super::*;
use crate::control::ActionCall;
use crate::info::{ProfileId, ProfileInfo};
use crate::table::{arguments, resolve, Group, Limits, Member};

impl Switch {
    fn profile_info(&self, profile: ProfileId) -> Control<&ProfileInfo> {
        self.program
            .profiles
            .get(profile.index())
            .ok_or_else(|| ControlError::NotFound(format!("there is no action profile number {}", profile.0)))
    }

    /// Checks that every table of the profile knows the action; its arguments as limbs.
    fn member_params(&self, info: &ProfileInfo, call: &ActionCall) -> Control<Box<[u64]>> {
        let Some(action) = self.program.actions.get(call.action.index()) else {
            return Err(ControlError::NotFound(format!("there is no action number {}", call.action.0)));
        };
        for table in &info.tables {
            let t = &self.program.tables[table.index()];
            if resolve(&self.program, &t.actions, call).is_none() {
                return Err(ControlError::InvalidArgument(format!(
                    "action '{}' is not one of table '{}', which uses the action profile '{}'",
                    action.name, t.name, info.name
                )));
            }
        }
        arguments(&self.program, call.action.index(), &call.args)
    }

    /// Adds a member.
    pub fn member_insert(&mut self, profile: ProfileId, member: u32, action: ActionCall) -> Control<()> {
        let info = self.profile_info(profile)?;
        let params = self.member_params(info, &action)?;
        let (name, max) = (info.name.clone(), info.max_size);
        let state = &mut self.rt.state.profiles[profile.index()];
        if state.members.contains_key(&member) {
            return Err(ControlError::AlreadyExists(format!("action profile '{name}' already has a member {member}")));
        }
        if state.members.len() >= max {
            return Err(ControlError::ResourceExhausted(format!("action profile '{name}' is full: it holds {max} members")));
        }
        state.members.insert(member, Member { call: action, params, uses: 0 });
        Ok(())
    }

    /// Replaces a member's action.
    pub fn member_modify(&mut self, profile: ProfileId, member: u32, action: ActionCall) -> Control<()> {
        let info = self.profile_info(profile)?;
        let params = self.member_params(info, &action)?;
        let name = info.name.clone();
        match self.rt.state.profiles[profile.index()].members.get_mut(&member) {
            Some(m) => {
                m.call = action;
                m.params = params;
                Ok(())
            }
            None => Err(ControlError::NotFound(format!("action profile '{name}' has no member {member}"))),
        }
    }

    /// Removes a member; refused while an entry or a group uses it.
    pub fn member_delete(&mut self, profile: ProfileId, member: u32) -> Control<()> {
        let name = self.profile_info(profile)?.name.clone();
        let members = &mut self.rt.state.profiles[profile.index()].members;
        match members.get(&member) {
            None => Err(ControlError::NotFound(format!("action profile '{name}' has no member {member}"))),
            Some(m) if m.uses > 0 => {
                Err(ControlError::FailedPrecondition(format!("member {member} of action profile '{name}' is in use, {} times", m.uses)))
            }
            Some(_) => {
                members.remove(&member);
                Ok(())
            }
        }
    }

    /// All members, by id.
    pub fn members(&self, profile: ProfileId) -> Control<Vec<(u32, ActionCall)>> {
        Ok(self.members_from(profile, 0)?.map(|(id, call)| (id, call.clone())).collect())
    }

    /// Members with this id or a higher one, by id.
    pub fn members_from(&self, profile: ProfileId, first: u32) -> Control<impl Iterator<Item = (u32, &ActionCall)> + '_> {
        self.profile_info(profile)?;
        let members = &self.rt.state.profiles[profile.index()].members;
        Ok(members.range(first..).map(|(id, m)| (*id, &m.call)))
    }

    fn check_group(&self, profile: ProfileId, members: &[(u32, u32)], max_size: u32) -> Control<()> {
        let info = self.profile_info(profile)?;
        if !info.with_selector {
            return Err(ControlError::InvalidArgument(format!("action profile '{}' has no selector, hence no groups", info.name)));
        }
        let state = &self.rt.state.profiles[profile.index()];
        let mut seen = std::collections::BTreeSet::new();
        let mut total = 0;
        for (member, weight) in members {
            if !state.members.contains_key(member) {
                return Err(ControlError::NotFound(format!("action profile '{}' has no member {member}", info.name)));
            }
            if !seen.insert(member) {
                return Err(ControlError::InvalidArgument(format!("member {member} is in the group twice")));
            }
            if *weight == 0 {
                return Err(ControlError::InvalidArgument(format!("the weight of member {member} is 0, it must be at least 1")));
            }
            total += u64::from(*weight);
        }
        let limit = if max_size == 0 { Limits::MAX_WEIGHT } else { u64::from(max_size) };
        if total > limit {
            return Err(ControlError::ResourceExhausted(format!(
                "the weights of the group add up to {total}, at most {limit} are allowed"
            )));
        }
        Ok(())
    }

    fn count_members(&mut self, profile: ProfileId, members: &[(u32, u32)], add: bool) {
        let state = &mut self.rt.state.profiles[profile.index()].members;
        for (member, _) in members {
            if let Some(m) = state.get_mut(member) {
                m.uses = if add { m.uses + 1 } else { m.uses.saturating_sub(1) };
            }
        }
    }

    /// Adds a group of (member, weight); weights are at least 1. `max_size` bounds their sum; 0 is
    /// the switch's own limit.
    pub fn group_insert(&mut self, profile: ProfileId, group: u32, members: &[(u32, u32)], max_size: u32) -> Control<()> {
        self.check_group(profile, members, max_size)?;
        let groups = &mut self.rt.state.profiles[profile.index()].groups;
        if groups.contains_key(&group) {
            let name = &self.program.profiles[profile.index()].name;
            return Err(ControlError::AlreadyExists(format!("action profile '{name}' already has a group {group}")));
        }
        let mut new = Group { max_size, ..Group::default() };
        new.set(members);
        groups.insert(group, new);
        self.count_members(profile, members, true);
        Ok(())
    }

    /// Replaces a group's members.
    pub fn group_modify(&mut self, profile: ProfileId, group: u32, members: &[(u32, u32)]) -> Control<()> {
        let name = self.profile_info(profile)?.name.clone();
        let missing = || ControlError::NotFound(format!("action profile '{name}' has no group {group}"));
        let max_size = self.rt.state.profiles[profile.index()].groups.get(&group).ok_or_else(missing)?.max_size;
        self.check_group(profile, members, max_size)?;
        self.count_members(profile, members, true);
        let g = self.rt.state.profiles[profile.index()].groups.get_mut(&group).ok_or_else(missing)?;
        let old = g.members.clone();
        g.set(members);
        self.count_members(profile, &old, false);
        Ok(())
    }

    /// Removes a group; refused while an entry uses it.
    pub fn group_delete(&mut self, profile: ProfileId, group: u32) -> Control<()> {
        let name = self.profile_info(profile)?.name.clone();
        let groups = &mut self.rt.state.profiles[profile.index()].groups;
        match groups.get(&group) {
            None => return Err(ControlError::NotFound(format!("action profile '{name}' has no group {group}"))),
            Some(g) if g.uses > 0 => {
                return Err(ControlError::FailedPrecondition(format!(
                    "group {group} of action profile '{name}' is in use by {} entries",
                    g.uses
                )))
            }
            Some(_) => {}
        }
        if let Some(old) = groups.remove(&group) {
            self.count_members(profile, &old.members, false);
        }
        Ok(())
    }

    /// All groups, by id, with (member, weight) and maximum size.
    #[allow(clippy::type_complexity)]
    pub fn groups(&self, profile: ProfileId) -> Control<Vec<(u32, Vec<(u32, u32)>, u32)>> {
        Ok(self.groups_from(profile, 0)?.map(|(id, members, max_size)| (id, members.to_vec(), max_size)).collect())
    }

    /// Groups with this id or a higher one, by id, with (member, weight) and maximum size.
    #[allow(clippy::type_complexity)]
    pub fn groups_from(&self, profile: ProfileId, first: u32) -> Control<impl Iterator<Item = (u32, &[(u32, u32)], u32)> + '_> {
        self.profile_info(profile)?;
        let groups = &self.rt.state.profiles[profile.index()].groups;
        Ok(groups.range(first..).map(|(id, g)| (*id, g.members.as_slice(), g.max_size)))
    }
}
