//! `ActionProfileMember`, `ActionProfileGroup` and one-shot action sets [P4Runtime sec 9.2].

use std::collections::HashSet;

use fairlane_pipeline::ActionCall;

use super::{actions, find, select, wrap, Kind, Target, Type, Window};
use crate::model::Profile;
use crate::proto::p4::v1 as p4;
use crate::status::{Result, Status};

use p4::action_profile_action::WatchKind as ActionWatch;
use p4::action_profile_action_set::{ActionSelectionMode, SizeSemantics};
use p4::action_profile_group::member::WatchKind;

impl Target<'_> {
    pub(super) fn write_member(&mut self, kind: Type, member: &p4::ActionProfileMember) -> Result<()> {
        let model = self.model;
        let profile = find(&model.profiles, "action_profile_id", member.action_profile_id)?;
        let at = |status: Status| status.at(format!("action profile \"{}\": member {}", profile.name, member.member_id));
        if member.member_id == 0 {
            return Err(at(Status::invalid("the member id is 0 (not set)")));
        }
        if kind == Type::Delete {
            return self.switch.member_delete(profile.program, member.member_id).map_err(|error| at(error.into()));
        }
        if self.has_one_shots(profile) {
            return Err(at(Status::invalid("the profile is programmed by one-shot action sets: the two ways cannot be mixed")));
        }
        let given = member.action.as_ref().ok_or_else(|| at(Status::invalid("it has no action")))?;
        let (_, call) = actions::decode(&profile.actions, given).map_err(at)?;
        match kind {
            Type::Insert => self.switch.member_insert(profile.program, member.member_id, call),
            _ => self.switch.member_modify(profile.program, member.member_id, call),
        }
        .map_err(|error| at(error.into()))
    }

    pub(super) fn read_members(&self, filter: &p4::ActionProfileMember, window: &mut Window, out: &mut Vec<p4::Entity>) -> Result<()> {
        for (id, profile) in select(&self.model.profiles, "action_profile_id", filter.action_profile_id)? {
            let Some(first) = window.enter(id).and_then(|done| u32::try_from(done).ok()) else { continue };
            for (member_id, call) in self.switch.members_from(profile.program, first.max(filter.member_id))? {
                if filter.member_id != 0 && filter.member_id != member_id || !window.one(member_id) {
                    break;
                }
                window.found = true;
                let action = actions::encode(&profile.actions, call);
                out.push(wrap(Kind::ActionProfileMember(p4::ActionProfileMember { action_profile_id: id, member_id, action })));
            }
            if filter.action_profile_id != 0 && filter.member_id != 0 && window.is_without(id) {
                return Err(Status::not_found(format!("action profile \"{}\" has no member {}", profile.name, filter.member_id)));
            }
        }
        Ok(())
    }

    pub(super) fn write_group(&mut self, kind: Type, group: &p4::ActionProfileGroup) -> Result<()> {
        let model = self.model;
        let profile = find(&model.profiles, "action_profile_id", group.action_profile_id)?;
        let at = |status: Status| status.at(format!("action profile \"{}\": group {}", profile.name, group.group_id));
        if !profile.with_selector {
            return Err(at(Status::invalid("the profile has no selector, so no groups")));
        }
        if group.group_id == 0 {
            return Err(at(Status::invalid("the group id is 0 (not set)")));
        }
        let note = (profile.id, group.group_id);
        if kind == Type::Delete {
            self.switch.group_delete(profile.program, group.group_id).map_err(|error| at(error.into()))?;
            self.notes.groups.remove(&note);
            return Ok(());
        }
        if self.has_one_shots(profile) {
            return Err(at(Status::invalid("the profile is programmed by one-shot action sets: the two ways cannot be mixed")));
        }
        let members = self.group_members(profile, group).map_err(at)?;
        if kind == Type::Insert {
            let max_size = group_max_size(profile, group.max_size).map_err(at)?;
            check_group_size(profile, max_size, members.iter().map(|(_, weight)| *weight)).map_err(at)?;
            self.switch.group_insert(profile.program, group.group_id, &members, max_size).map_err(|error| at(error.into()))?;
        } else {
            let found = self.switch.groups_from(profile.program, group.group_id)?.next().filter(|(id, ..)| *id == group.group_id);
            let Some((_, _, max_size)) = found else {
                return Err(at(Status::not_found("there is no such group")));
            };
            if u32::try_from(group.max_size) != Ok(max_size) {
                return Err(at(Status::invalid(format!("max_size {} cannot change: it was inserted with {max_size}", group.max_size))));
            }
            check_group_size(profile, max_size, members.iter().map(|(_, weight)| *weight)).map_err(at)?;
            self.switch.group_modify(profile.program, group.group_id, &members).map_err(|error| at(error.into()))?;
        }
        self.notes.groups.insert(note, group.clone());
        Ok(())
    }

    fn group_members(&self, profile: &Profile, group: &p4::ActionProfileGroup) -> Result<Vec<(u32, u32)>> {
        let mut members: Vec<(u32, u32)> = Vec::with_capacity(group.members.len());
        let mut seen = HashSet::with_capacity(group.members.len());
        for member in &group.members {
            let at = |status: Status| status.at(format!("member {}", member.member_id));
            if !seen.insert(member.member_id) {
                return Err(at(Status::invalid("it is given twice: use its weight instead")));
            }
            #[allow(deprecated)]
            let watched = match &member.watch_kind {
                None => false,
                Some(WatchKind::Watch(port)) => *port != 0,
                Some(WatchKind::WatchPort(port)) => !port.is_empty(),
            };
            if watched {
                return Err(at(no_watch_port()));
            }
            let weight = member_weight(profile, member.weight).map_err(at)?;
            if self.switch.members_from(profile.program, member.member_id)?.next().is_none_or(|(id, _)| id != member.member_id) {
                return Err(at(Status::not_found("there is no such member")));
            }
            members.push((member.member_id, weight));
        }
        Ok(members)
    }

    pub(super) fn read_groups(&self, filter: &p4::ActionProfileGroup, window: &mut Window, out: &mut Vec<p4::Entity>) -> Result<()> {
        for (id, profile) in select(&self.model.profiles, "action_profile_id", filter.action_profile_id)? {
            if !profile.with_selector {
                continue;
            }
            let Some(first) = window.enter(id).and_then(|done| u32::try_from(done).ok()) else { continue };
            for (group_id, members, max_size) in self.switch.groups_from(profile.program, first.max(filter.group_id))? {
                if filter.group_id != 0 && filter.group_id != group_id || !window.one(group_id) {
                    break;
                }
                window.found = true;
                // A group of many members takes as long as many groups.
                window.spend(members.len());
                let message = match self.notes.groups.get(&(id, group_id)) {
                    Some(written) => written.clone(),
                    None => p4::ActionProfileGroup {
                        action_profile_id: id,
                        group_id,
                        members: members
                            .iter()
                            .map(|(member_id, weight)| p4::action_profile_group::Member {
                                member_id: *member_id,
                                weight: *weight as i32,
                                watch_kind: None,
                            })
                            .collect(),
                        max_size: max_size as i32,
                    },
                };
                out.push(wrap(Kind::ActionProfileGroup(message)));
            }
            if filter.action_profile_id != 0 && filter.group_id != 0 && window.is_without(id) {
                return Err(Status::not_found(format!("action profile \"{}\" has no group {}", profile.name, filter.group_id)));
            }
        }
        Ok(())
    }

    /// Reads a one-shot action set into weighted actions.
    pub(super) fn one_shot(&self, profile: &Profile, set: &p4::ActionProfileActionSet) -> Result<Vec<(ActionCall, u32)>> {
        let own_mode = set.action_selection_mode();
        if own_mode == ActionSelectionMode::Random {
            return Err(Status::unimplemented("action_selection_mode RANDOM: the selector's hash always decides"));
        }
        let by_members = profile.sum_of_members.is_some();
        let semantics_agree = match set.size_semantics() {
            SizeSemantics::DefaultSizeDeterminedByActionSelector => true,
            SizeSemantics::SumOfWeights => !by_members,
            SizeSemantics::SumOfMembers => by_members,
        };
        if !semantics_agree {
            return Err(Status::unimplemented("size_semantics: only the one that the action selector has in the P4Info"));
        }
        let mut calls = Vec::with_capacity(set.action_profile_actions.len());
        for (index, given) in set.action_profile_actions.iter().enumerate() {
            let at = |status: Status| status.at(format!("action {} of the set", index + 1));
            #[allow(deprecated)]
            let watched = match &given.watch_kind {
                None => false,
                Some(ActionWatch::Watch(port)) => *port != 0,
                Some(ActionWatch::WatchPort(port)) => !port.is_empty(),
            };
            if watched {
                return Err(at(no_watch_port()));
            }
            let weight = member_weight(profile, given.weight).map_err(at)?;
            let action = given.action.as_ref().ok_or_else(|| at(Status::invalid("it has no action")))?;
            calls.push((actions::decode(&profile.actions, action).map_err(at)?.1, weight));
        }
        check_group_size(profile, 0, calls.iter().map(|(_, weight)| *weight))?;
        Ok(calls)
    }
}

fn no_watch_port() -> Status {
    Status::unimplemented("watch_port: members are selected whatever the state of ports; leave it empty")
}

fn member_weight(profile: &Profile, weight: i32) -> Result<u32> {
    if profile.weights_disallowed {
        return match weight {
            0 => Ok(1),
            _ => Err(Status::invalid(format!("weight {weight}: action profile \"{}\" disallows weights", profile.name))),
        };
    }
    let Some(weight) = u32::try_from(weight).ok().filter(|weight| *weight > 0) else {
        return Err(Status::invalid(format!("weight {weight}: it must be positive")));
    };
    match profile.sum_of_members {
        Some(max) if max > 0 && weight > max => Err(Status::invalid(format!("weight {weight}: max_member_weight is {max}"))),
        _ => Ok(weight),
    }
}

/// The rules on setting `max_size`.
fn group_max_size(profile: &Profile, max_size: i32) -> Result<u32> {
    let given = u32::try_from(max_size).map_err(|_| Status::invalid(format!("max_size {max_size} is negative")))?;
    let limit = profile.max_group_size;
    if limit > 0 && given > limit {
        return Err(Status::invalid(format!("max_size {given}: max_group_size of the P4Info is {limit}")));
    }
    // The specification wants a positive max_size where the P4Info limits groups; clients that leave it out mean the limit.
    Ok(given)
}

/// Checks a group's size against its own maximum, or the profile's.
fn check_group_size(profile: &Profile, max_size: u32, weights: impl Iterator<Item = u32> + Clone) -> Result<()> {
    let limit = if max_size > 0 { max_size } else { profile.max_group_size };
    let size = match profile.sum_of_members {
        Some(_) => weights.count() as u64,
        None => weights.map(u64::from).sum(),
    };
    if limit == 0 || size <= u64::from(limit) {
        return Ok(());
    }
    let text = format!("size {size} (by members' weights, or their number); the limit is {limit}");
    Err(if max_size > 0 { Status::exhausted(text) } else { Status::invalid(text) })
}
