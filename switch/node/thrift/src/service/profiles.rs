//! `bm_mt_act_prof_*`: members and groups of action profiles. A handle is the lowest that is free; P4Runtime's ids are handles, too.

use fairlane_device::pipeline::{ActionCall, ActionId, ControlError, ProfileId};

use super::codes::table as code;
use super::{action_call, action_data, action_named, Answer, Call, Failure};
use crate::value::{Kind, Value};

/// Members of a group, each with its weight.
type Weighted = Vec<(u32, u32)>;

impl Call<'_> {
    pub(super) fn profile(&mut self, method: &str) -> Answer {
        self.check_context()?;
        let unknown = Failure::Refused(code::INVALID_PROFILE);
        let program = self.switch(code::INVALID_PROFILE)?.program();
        let profile = program.profile_by_name(self.args.string(2)?).ok_or(unknown.clone())?;
        let with_selector = program.profile(profile).ok_or(unknown)?.with_selector;
        if method.contains("group") && !with_selector {
            return Err(Failure::Refused(code::NO_SELECTION));
        }
        match method {
            "add_member" => {
                let call = self.profile_action(profile, 3, 4)?;
                let member = lowest_free(self.members(profile)?.iter().map(|(id, _)| *id));
                self.change(|switch| switch.member_insert(profile, member, call), code::ERROR)?;
                Ok(Some(Value::I32(member as i32)))
            }
            "modify_member" => {
                let call = self.profile_action(profile, 4, 5)?;
                let (member, _) = self.profile_member(profile, 3)?;
                self.change(|switch| switch.member_modify(profile, member, call), code::BAD_ACTION_DATA)
            }
            "delete_member" => {
                let (member, _) = self.profile_member(profile, 3)?;
                self.change(|switch| switch.member_delete(profile, member), code::MEMBER_USED)
            }
            "create_group" => {
                let group = lowest_free(self.profile_groups(profile)?.iter().map(|(id, _)| *id));
                self.change(|switch| switch.group_insert(profile, group, &[], 0), code::ERROR)?;
                Ok(Some(Value::I32(group as i32)))
            }
            "delete_group" => {
                let (group, _) = self.profile_group(profile, 3)?;
                self.change(|switch| switch.group_delete(profile, group), code::GROUP_USED)
            }
            "add_member_to_group" => {
                let (member, (group, mut members)) = self.member_and_group(profile)?;
                if members.iter().any(|(id, _)| *id == member) {
                    return Err(Failure::Refused(code::MEMBER_IN_GROUP));
                }
                members.push((member, 1));
                self.change(|switch| switch.group_modify(profile, group, &members), code::ERROR)
            }
            "remove_member_from_group" => {
                let (member, (group, mut members)) = self.member_and_group(profile)?;
                if !members.iter().any(|(id, _)| *id == member) {
                    return Err(Failure::Refused(code::MEMBER_NOT_IN_GROUP));
                }
                members.retain(|(id, _)| *id != member);
                self.change(|switch| switch.group_modify(profile, group, &members), code::ERROR)
            }
            "get_members" => {
                let members = self.members(profile)?;
                let values = members.iter().map(|(member, call)| self.member_value(*member, call)).collect::<Result<_, _>>()?;
                Ok(Some(Value::List(Kind::Struct, values)))
            }
            "get_member" => {
                let (member, call) = self.profile_member(profile, 3)?;
                Ok(Some(self.member_value(member, &call)?))
            }
            "get_groups" => {
                let groups = self.profile_groups(profile)?;
                Ok(Some(Value::List(Kind::Struct, groups.iter().map(|(group, members)| group_value(*group, members)).collect())))
            }
            "get_group" => {
                let (group, members) = self.profile_group(profile, 3)?;
                Ok(Some(group_value(group, &members)))
            }
            _ => Err(Failure::UnknownMethod),
        }
    }

    fn members(&self, profile: ProfileId) -> Result<Vec<(u32, ActionCall)>, Failure> {
        let members = self.switch(code::INVALID_PROFILE)?.members(profile);
        members.map_err(|_| Failure::Refused(code::INVALID_PROFILE))
    }

    fn profile_groups(&self, profile: ProfileId) -> Result<Vec<(u32, Weighted)>, Failure> {
        let groups = self.switch(code::INVALID_PROFILE)?.groups(profile);
        let groups = groups.map_err(|_| Failure::Refused(code::INVALID_PROFILE))?;
        Ok(groups.into_iter().map(|(group, members, _)| (group, members)).collect())
    }

    fn profile_member(&self, profile: ProfileId, number: i16) -> Result<(u32, ActionCall), Failure> {
        let member = self.args.i32(number)? as u32;
        let found = self.members(profile)?.into_iter().find(|(id, _)| *id == member);
        found.ok_or(Failure::Refused(code::INVALID_MEMBER))
    }

    fn profile_group(&self, profile: ProfileId, number: i16) -> Result<(u32, Weighted), Failure> {
        let group = self.args.i32(number)? as u32;
        let found = self.profile_groups(profile)?.into_iter().find(|(id, _)| *id == group);
        found.ok_or(Failure::Refused(code::INVALID_GROUP))
    }

    fn member_and_group(&self, profile: ProfileId) -> Result<(u32, (u32, Weighted)), Failure> {
        let (member, _) = self.profile_member(profile, 3)?;
        Ok((member, self.profile_group(profile, 4)?))
    }

    /// The action that argument `name` names for a profile's tables, with argument `data`.
    fn profile_action(&self, profile: ProfileId, name: i16, data: i16) -> Result<ActionCall, Failure> {
        let program = self.switch(code::INVALID_PROFILE)?.program();
        let tables = program.profile(profile).map_or(&[][..], |info| &info.tables);
        let actions: Vec<ActionId> =
            tables.iter().filter_map(|&table| program.table(table)).flat_map(|table| table.actions.clone()).collect();
        let Some((id, action)) = action_named(program, &actions, self.args.string(name)?) else {
            return Err(Failure::Refused(code::INVALID_ACTION));
        };
        action_call(id, action, self.args.list(data)?).ok_or(Failure::Refused(code::BAD_ACTION_DATA))
    }

    fn change(&mut self, work: impl FnOnce(&mut fairlane_device::pipeline::Switch) -> Result<(), ControlError>, otherwise: i32) -> Answer {
        work(self.switch_mut(code::INVALID_PROFILE)?).map_err(|error| {
            tracing::debug!(%error, "Thrift");
            Failure::Refused(match error {
                ControlError::ResourceExhausted(_) => code::FULL,
                _ => otherwise,
            })
        })?;
        Ok(None)
    }

    fn member_value(&self, member: u32, call: &ActionCall) -> Result<Value, Failure> {
        let program = self.switch(code::INVALID_PROFILE)?.program();
        let name = program.action(call.action).map_or("", |action| action.name.as_str());
        Ok(Value::record([(1, Value::I32(member as i32)), (2, Value::text(name)), (3, action_data(call))]))
    }
}

fn group_value(group: u32, members: &[(u32, u32)]) -> Value {
    let members = members.iter().map(|(member, _)| Value::I32(*member as i32)).collect();
    Value::record([(1, Value::I32(group as i32)), (2, Value::List(Kind::I32, members))])
}

/// The lowest number that is not among these, which ascend.
fn lowest_free(used: impl Iterator<Item = u32>) -> u32 {
    used.fold(0, |free, id| if id == free { free + 1 } else { free })
}
