//! Action profiles in scripts, by the commands of BMv2's CLI: `act_prof_create_member`, `act_prof_create_group`,
//! `act_prof_add_member_to_group`, `table_indirect_add`, `table_indirect_add_with_group`.
//!
//! Members and groups are numbered from 0 in each profile, as BMv2 does.

use fairlane_pipeline::{ActionCall, ActionId, KeyInfo, KeyMatch, MatchKind, ProfileId, Program, Switch, TableAction, TableEntry, TableId};

use crate::names::find;
use crate::value::{fitting, key_match, number};

/// The commands handled here.
pub const COMMANDS: &[&str] = &[
    "act_prof_create_member",
    "act_prof_create_group",
    "act_prof_add_member_to_group",
    "table_indirect_add",
    "table_indirect_add_with_group",
];

/// Does what one command says.
pub fn command(name: &str, words: &[String], program: &Program, switch: &mut Switch, now: u64) -> Result<(), String> {
    let word = |i: usize| words.get(i).map(String::as_str).ok_or_else(|| format!("{name} needs more arguments"));
    match name {
        "act_prof_create_member" => {
            let profile = profile(program, word(0)?)?;
            let call = call(program, word(1)?, words.get(2..).unwrap_or_default())?;
            let id = switch.members(profile).map_err(|e| e.to_string())?.len() as u32;
            switch.member_insert(profile, id, call).map_err(|e| e.to_string())
        }
        "act_prof_create_group" => {
            let profile = profile(program, word(0)?)?;
            let id = switch.groups(profile).map_err(|e| e.to_string())?.len() as u32;
            switch.group_insert(profile, id, &[], 0).map_err(|e| e.to_string())
        }
        "act_prof_add_member_to_group" => {
            let profile = profile(program, word(0)?)?;
            let (member, group) = (handle(word(1)?)?, handle(word(2)?)?);
            let groups = switch.groups(profile).map_err(|e| e.to_string())?;
            let found = groups.into_iter().find(|(id, _, _)| *id == group);
            let (_, mut members, _) = found.ok_or_else(|| format!("there is no group {group}"))?;
            members.push((member, 1));
            switch.group_modify(profile, group, &members).map_err(|e| e.to_string())
        }
        "table_indirect_add" | "table_indirect_add_with_group" => {
            let id = find("table", word(0)?, program.tables().iter().map(|t| t.name.as_str()))?;
            let info = &program.tables()[id];
            let arrow = words.iter().position(|w| w == "=>").ok_or_else(|| format!("{name} needs `=> HANDLE`"))?;
            let texts = words.get(1..arrow).unwrap_or_default();
            if texts.len() != info.key.len() {
                return Err(format!("table {} has {} key fields, not {}", info.name, info.key.len(), texts.len()));
            }
            let key: Result<Vec<KeyMatch>, String> = texts.iter().zip(&info.key).map(|(text, key)| cli_key(text, key)).collect();
            let target = handle(word(arrow + 1)?)?;
            let action = if name == "table_indirect_add" { TableAction::Member(target) } else { TableAction::Group(target) };
            // The CLI's priorities are BMv2's: the smallest wins.
            let priority = match words.get(arrow + 2) {
                Some(text) if info.needs_priority => i32::MAX - i32::try_from(handle(text)?).unwrap_or(i32::MAX - 1),
                _ => i32::from(info.needs_priority),
            };
            let entry = TableEntry { key: key?, priority, action, idle_timeout: 0 };
            switch.table_insert(now, TableId(id as u32), entry).map_err(|e| e.to_string())
        }
        other => Err(format!("unknown command `{other}`")),
    }
}

/// A member with this action for a table with an action profile; its number.
pub fn member(program: &Program, switch: &mut Switch, table: TableId, call: ActionCall) -> Result<Option<u32>, String> {
    let Some(profile) = program.table(table).and_then(|t| t.profile) else {
        return Ok(None);
    };
    let id = switch.members(profile).map_err(|e| e.to_string())?.len() as u32;
    switch.member_insert(profile, id, call).map_err(|e| e.to_string())?;
    Ok(Some(id))
}

fn profile(program: &Program, name: &str) -> Result<ProfileId, String> {
    find("action profile", name, program.profiles().iter().map(|p| p.name.as_str())).map(|i| ProfileId(i as u32))
}

fn call(program: &Program, name: &str, values: &[String]) -> Result<ActionCall, String> {
    let id = find("action", name, program.actions().iter().map(|a| a.name.as_str()))?;
    let info = &program.actions()[id];
    if values.len() != info.params.len() {
        return Err(format!("action {} has {} parameters, not {}", info.name, info.params.len(), values.len()));
    }
    let args: Result<Vec<_>, String> = values.iter().zip(&info.params).map(|(v, p)| fitting(v, p.width)).collect();
    Ok(ActionCall { action: ActionId(id as u32), args: args? })
}

fn handle(text: &str) -> Result<u32, String> {
    fitting(text, 31)?.to_u64().map(|v| v as u32).ok_or_else(|| format!("{text} is too large"))
}

/// A key field as the CLI writes it: `VALUE`, `VALUE/PREFIX`, `VALUE&&&MASK`, `LOW->HIGH`.
fn cli_key(text: &str, key: &KeyInfo) -> Result<KeyMatch, String> {
    match (text.split_once("&&&"), key.kind) {
        (Some((_, mask)), MatchKind::Optional) if number(mask)?.is_zero() => Ok(KeyMatch::Any),
        (Some((value, _)), MatchKind::Optional) => fitting(value, key.width).map(KeyMatch::Exact),
        (Some((value, mask)), _) => Ok(KeyMatch::Ternary { value: fitting(value, key.width)?, mask: fitting(mask, key.width)? }),
        (None, _) => match text.split_once('/') {
            Some((value, prefix)) => key_match(value, Some(prefix), key),
            None => key_match(text, None, key),
        },
    }
}
