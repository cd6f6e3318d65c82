//! `TableEntry` [P4Runtime sec 9.1].

use fairlane_pipeline::{EntryState, KeyMatch, Nanos, TableAction, TableEntry};

use super::{actions, find, keys, select, wrap, EntryKey, EntryNotes, Kind, Notes, Target, Type, Window};
use crate::model::{Profile, Table};
use crate::proto::p4::config::v1::action_ref::Scope;
use crate::proto::p4::v1 as p4;
use crate::status::{Code, Result, Status};

use p4::table_action::Type as ActionType;

/// What a read wants beside key and action.
struct Wanted {
    counter: bool,
    meter: bool,
    elapsed: bool,
}

#[allow(deprecated)]
fn cookie(entry: &p4::TableEntry) -> u64 {
    entry.controller_metadata
}

/// The idle timeout that a write asks for. The sentences are BMv2's, and stand alone: published packet tests compare them.
fn idle_timeout(table: &Table, entry: &p4::TableEntry) -> Result<Nanos> {
    let timeout = Nanos::try_from(entry.idle_timeout_ns).map_err(|_| Status::invalid("idle_timeout_ns must be a positive value"))?;
    if timeout != 0 && !table.idle_timeout {
        return Err(Status::invalid("idle_timeout_ns must be set to 0 for tables which do not support idle timeout"));
    }
    Ok(timeout)
}

impl Target<'_> {
    pub(super) fn write_table_entry(&mut self, kind: Type, entry: &p4::TableEntry) -> Result<()> {
        let model = self.model;
        let table = find(&model.tables, "table_id", entry.table_id)?;
        let at = |status: Status| status.at(format!("table \"{}\"", table.name));
        if entry.is_const {
            return Err(at(Status::invalid("is_const must not be set in a write")));
        }
        if entry.time_since_last_hit.is_some() {
            // BMv2's sentence, and alone, as those of `idle_timeout`.
            return Err(Status::invalid("has_time_since_last_hit must not be set in WriteRequest"));
        }
        if entry.is_default_action {
            return self.write_default(table, kind, entry).map_err(at);
        }
        if table.is_const && (kind != Type::Modify || entry.action.is_some()) {
            return Err(at(Status::denied("its entries are constant: only the counter and meter of an entry can be modified")));
        }
        let idle_timeout = idle_timeout(table, entry)?;
        let key = self.entry_key(table, entry).map_err(at)?;
        match kind {
            Type::Insert => self.insert_entry(table, key, entry, idle_timeout),
            Type::Delete => self.delete_entry(table, key),
            _ => self.modify_entry(table, key, entry, idle_timeout),
        }
        .map_err(at)
    }

    /// Key and priority of an entry.
    pub(super) fn entry_key(&self, table: &Table, entry: &p4::TableEntry) -> Result<EntryKey> {
        if table.fields.is_empty() {
            return Err(Status::invalid("it has no key: only its default action can be written"));
        }
        let key = keys::canonical(&table.fields, keys::decode(&table.fields, &entry.r#match)?);
        if table.needs_priority && entry.priority <= 0 {
            return Err(Status::invalid(format!(
                "priority {}: an entry with a ternary, range or optional field needs a positive priority",
                entry.priority
            )));
        }
        if !table.needs_priority && entry.priority != 0 {
            return Err(Status::invalid(format!(
                "priority {}: entries without ternary, range or optional fields have priority 0",
                entry.priority
            )));
        }
        Ok((table.program, key, entry.priority))
    }

    /// Checks the fields of a write that the table may not have.
    fn check_resources(&self, table: &Table, entry: &p4::TableEntry) -> Result<()> {
        if entry.counter_data.is_some() && !table.direct_counter {
            return Err(Status::invalid("counter_data: it has no direct counter"));
        }
        if entry.meter_config.is_some() && table.direct_meter.is_none() {
            return Err(Status::invalid("meter_config: it has no direct meter"));
        }
        if entry.meter_counter_data.is_some() {
            return Err(Status::unimplemented("meter_counter_data: meters do not count by colour"));
        }
        Ok(())
    }

    fn insert_entry(&mut self, table: &Table, key: EntryKey, entry: &p4::TableEntry, idle_timeout: Nanos) -> Result<()> {
        self.check_resources(table, entry)?;
        let given = entry.action.as_ref().ok_or_else(|| Status::invalid("an INSERT needs an action"))?;
        let action = self.table_action(table, given)?;
        let counter = entry.counter_data.as_ref().map(super::data::counter_data).transpose()?;
        let meter = match (&entry.meter_config, table.direct_meter) {
            (Some(config), Some(kind)) => Some(super::data::meter_config(config, kind)?),
            _ => None,
        };
        let new = TableEntry { key: key.1.clone(), priority: key.2, action, idle_timeout };
        self.check_room(table, &key)?;
        self.switch.table_insert(self.now, table.program, new)?;
        if let Some(data) = counter {
            self.switch.direct_counter_write(table.program, &key.1, key.2, data)?;
        }
        if meter.is_some() {
            self.switch.direct_meter_write(self.now, table.program, &key.1, key.2, meter)?;
        }
        self.note(table, key, notes_of(entry));
        Ok(())
    }

    /// The switch refuses what exceeds the size that the program declares; here is the limit of whoever runs the switch.
    fn check_room(&self, table: &Table, key: &EntryKey) -> Result<()> {
        if self.switch.table_len(table.program)? < self.max_table_entries {
            return Ok(());
        }
        // An entry that exists already is refused for that.
        match self.switch.table_get(table.program, &key.1, key.2) {
            Ok(_) => Ok(()),
            Err(_) => Err(Status::exhausted(format!(
                "it holds {} entries, which is the switch's limit for one table: delete some, or start the switch with a higher \
                 --max-table-entries",
                self.max_table_entries
            ))),
        }
    }

    fn modify_entry(&mut self, table: &Table, key: EntryKey, entry: &p4::TableEntry, idle_timeout: Nanos) -> Result<()> {
        let old = self.switch.table_get(table.program, &key.1, key.2)?;
        self.check_resources(table, entry)?;
        if old.is_const && entry.action.is_some() {
            return Err(Status::denied("the entry is constant: only its counter and meter can be modified"));
        }
        let counter = entry.counter_data.as_ref().map(super::data::counter_data).transpose()?;
        let meter = match (&entry.meter_config, table.direct_meter) {
            (Some(config), Some(kind)) => Some(super::data::meter_config(config, kind)?),
            _ => None,
        };
        let mut notes = notes_of(entry);
        match &entry.action {
            Some(given) => {
                let action = self.table_action(table, given)?;
                let new = TableEntry { key: key.1.clone(), priority: key.2, action, idle_timeout };
                self.switch.table_modify(self.now, table.program, new)?;
            }
            None => {
                if !old.is_const && old.entry.idle_timeout != idle_timeout {
                    let new = TableEntry { idle_timeout, ..old.entry };
                    self.switch.table_modify(self.now, table.program, new)?;
                }
                // The action stays, and so does how it was written.
                notes.one_shot = self.notes.entries.get(&key).and_then(|notes| notes.one_shot.clone());
            }
        }
        if let Some(data) = counter {
            self.switch.direct_counter_write(table.program, &key.1, key.2, data)?;
        }
        if table.direct_meter.is_some() {
            // Unset puts the default back: MODIFY gives the whole new state.
            self.switch.direct_meter_write(self.now, table.program, &key.1, key.2, meter)?;
        }
        self.note(table, key, notes);
        Ok(())
    }

    fn delete_entry(&mut self, table: &Table, key: EntryKey) -> Result<()> {
        if self.switch.table_get(table.program, &key.1, key.2)?.is_const {
            return Err(Status::denied("the entry is constant"));
        }
        self.switch.table_delete(table.program, &key.1, key.2)?;
        self.note(table, key, EntryNotes::default());
        Ok(())
    }

    /// Replaces what is kept of an entry beside the switch.
    fn note(&mut self, table: &Table, key: EntryKey, notes: EntryNotes) {
        let had = self.notes.entries.get(&key).is_some_and(|notes| notes.one_shot.is_some());
        let has = notes.one_shot.is_some();
        if let (Some(profile), true) = (table.profile, had != has) {
            let count = self.notes.one_shots.entry(profile).or_default();
            *count = if has { *count + 1 } else { count.saturating_sub(1) };
        }
        if notes.is_empty() {
            self.notes.entries.remove(&key);
        } else {
            self.notes.entries.insert(key, notes);
        }
    }

    fn write_default(&mut self, table: &Table, kind: Type, entry: &p4::TableEntry) -> Result<()> {
        if kind != Type::Modify {
            return Err(Status::invalid(format!("the default entry can only be modified; {} was asked for", kind.as_str_name())));
        }
        if !entry.r#match.is_empty() || entry.priority != 0 {
            return Err(Status::invalid("the default entry has neither match fields nor a priority"));
        }
        if entry.idle_timeout_ns != 0 {
            return Err(Status::invalid("the default entry has no idle timeout"));
        }
        if table.const_default {
            return Err(Status::denied("its default action is constant"));
        }
        if table.profile.is_some() {
            return Err(Status::denied("the default entry of a table with an action profile is constant"));
        }
        if entry.counter_data.is_some() || entry.meter_config.is_some() || entry.meter_counter_data.is_some() {
            return Err(Status::unimplemented("the default entry has neither counter nor meter (as in BMv2)"));
        }
        let action = match &entry.action {
            None => None,
            Some(p4::TableAction { r#type: Some(ActionType::Action(given)) }) => {
                let (action, call) = actions::decode(&table.actions, given)?;
                if action.scope == Scope::TableOnly {
                    return Err(Status::denied(format!("action \"{}\" is for entries only, not for the default", action.name)));
                }
                Some(TableAction::Call(call))
            }
            Some(_) => return Err(Status::invalid("the default entry needs an action, not a member or group")),
        };
        let reset = action.is_none();
        self.switch.table_set_default(table.program, action)?;
        // What is noted here is also what a client has changed.
        if reset {
            self.notes.defaults.remove(&table.id);
        } else {
            self.notes.defaults.insert(table.id, notes_of(entry));
        }
        Ok(())
    }

    fn table_action(&self, table: &Table, given: &p4::TableAction) -> Result<TableAction> {
        let given = given.r#type.as_ref().ok_or_else(|| Status::invalid("the action is not set"))?;
        let profile = match table.profile {
            None => {
                let ActionType::Action(given) = given else {
                    return Err(Status::invalid("it has no action profile: give an action, not a member or group"));
                };
                let (action, call) = actions::decode(&table.actions, given)?;
                if action.scope == Scope::DefaultOnly {
                    return Err(Status::denied(format!("action \"{}\" is for the default entry only", action.name)));
                }
                return Ok(TableAction::Call(call));
            }
            Some(id) => find(&self.model.profiles, "action_profile_id", id)?,
        };
        let mixed = |with: &str| {
            Status::invalid(format!("action profile \"{}\" is programmed by {with}: the two ways cannot be mixed", profile.name))
        };
        if !matches!(given, ActionType::ActionProfileActionSet(_)) && self.has_one_shots(profile) {
            return Err(mixed("one-shot action sets"));
        }
        match given {
            ActionType::Action(_) => Err(Status::invalid("it has an action profile: give a member, group or action set, not an action")),
            ActionType::ActionProfileMemberId(0) => Err(Status::invalid("the member id is 0 (not set)")),
            ActionType::ActionProfileMemberId(id) => Ok(TableAction::Member(*id)),
            _ if !profile.with_selector => {
                Err(Status::invalid(format!("action profile \"{}\" has no selector: give a member", profile.name)))
            }
            ActionType::ActionProfileGroupId(0) => Err(Status::invalid("the group id is 0 (not set)")),
            ActionType::ActionProfileGroupId(id) => Ok(TableAction::Group(*id)),
            ActionType::ActionProfileActionSet(set) => {
                if self.switch.members_from(profile.program, 0)?.next().is_some() {
                    return Err(mixed("members and groups"));
                }
                self.one_shot(profile, set).map(TableAction::OneShot)
            }
        }
    }

    pub(super) fn has_one_shots(&self, profile: &Profile) -> bool {
        self.notes.one_shots.get(&profile.id).is_some_and(|count| *count > 0)
    }

    pub(super) fn read_table_entries(&self, filter: &p4::TableEntry, window: &mut Window, out: &mut Vec<p4::Entity>) -> Result<()> {
        if filter.meter_counter_data.is_some() {
            return Err(Status::unimplemented("meter_counter_data: meters do not count by colour"));
        }
        let tables = select(&self.model.tables, "table_id", filter.table_id)?;
        // What is wrong with the request is found before the first part is on its way.
        for (_, table) in &tables {
            self.action_filter(table, filter).map_err(|status| status.at(format!("table \"{}\"", table.name)))?;
        }
        for (_, table) in tables {
            let at = |status: Status| status.at(format!("table \"{}\"", table.name));
            if filter.table_id != 0 && filter.time_since_last_hit.is_some() && !table.idle_timeout {
                return Err(at(Status::invalid("time_since_last_hit: it does not support idle timeouts")));
            }
            if filter.is_default_action {
                if !filter.r#match.is_empty() || filter.priority != 0 {
                    return Err(at(Status::invalid("the default entry has neither match fields nor a priority")));
                }
                out.push(wrap(Kind::TableEntry(self.default_entry(table).map_err(at)?)));
                continue;
            }
            let wanted = Wanted {
                counter: filter.counter_data.is_some(),
                meter: filter.meter_config.is_some(),
                elapsed: filter.time_since_last_hit.is_some() && table.idle_timeout,
            };
            let action = self.action_filter(table, filter).map_err(at)?;
            for state in self.matching_entries(table, filter, window).map_err(at)? {
                let entry = self.entry_message(table, state, &wanted);
                let kept = (cookie(filter) == 0 || cookie(filter) == cookie(&entry))
                    && (filter.metadata.is_empty() || filter.metadata == entry.metadata)
                    && action.is_none_or(|id| action_id(&entry) == Some(id));
                if kept {
                    out.push(wrap(Kind::TableEntry(entry)));
                }
            }
        }
        Ok(())
    }

    fn action_filter(&self, table: &Table, filter: &p4::TableEntry) -> Result<Option<u32>> {
        match filter.action.as_ref().and_then(|action| action.r#type.as_ref()) {
            None => Ok(None),
            Some(ActionType::Action(action)) => match table.action(action.action_id) {
                Some(action) => Ok(Some(action.id)),
                None => Err(Status::invalid(format!("action id {} is not one of its actions", action.action_id))),
            },
            Some(_) => Err(Status::invalid("entries cannot be filtered by member or group")),
        }
    }

    /// Entries in the window that a filter's key and priority select; a filter without match fields selects all.
    pub(super) fn matching_entries(&self, table: &Table, filter: &p4::TableEntry, window: &mut Window) -> Result<Vec<EntryState>> {
        let key = match filter.r#match.is_empty() {
            true => None,
            false => Some(keys::canonical(&table.fields, keys::decode(&table.fields, &filter.r#match)?)),
        };
        let selected = match key {
            Some(key) if !table.needs_priority || filter.priority != 0 => match window.take(table.id, 0..1).is_empty() {
                true => Vec::new(),
                false => match self.switch.table_get(table.program, &key, filter.priority).map_err(Status::from) {
                    Ok(state) => vec![state],
                    Err(status) if status.code == Code::NotFound => Vec::new(),
                    Err(status) => return Err(status),
                },
            },
            key => {
                let wanted = |state: &EntryState| {
                    let same = key.as_ref().is_none_or(|key| keys::canonical(&table.fields, state.entry.key.clone()) == *key);
                    same && (filter.priority == 0 || state.entry.priority == filter.priority)
                };
                // Places are counted, not entries: a part with few of them takes no longer than another.
                let places = window.take(table.id, 0..self.switch.table_places(table.program)?);
                self.switch.table_entries_at(table.program, places)?.filter(wanted).collect()
            }
        };
        window.found |= !selected.is_empty();
        Ok(selected)
    }

    fn entry_message(&self, table: &Table, state: EntryState, wanted: &Wanted) -> p4::TableEntry {
        let key = (table.program, keys::canonical(&table.fields, state.entry.key), state.entry.priority);
        let notes = self.notes.entries.get(&key);
        let mut entry = key_message(table, key.1.clone(), key.2);
        entry.action = match notes.and_then(|notes| notes.one_shot.clone()) {
            Some(set) => Some(p4::TableAction { r#type: Some(ActionType::ActionProfileActionSet(set)) }),
            None => self.action_message(table, &state.entry.action),
        };
        fill_notes(&mut entry, notes);
        entry.idle_timeout_ns = i64::try_from(state.entry.idle_timeout).unwrap_or(i64::MAX);
        entry.is_const = state.is_const;
        if wanted.counter {
            entry.counter_data = state.counter.map(super::data::counter_message);
        }
        if wanted.meter {
            entry.meter_config = state.meter.map(super::data::meter_message);
        }
        if wanted.elapsed {
            let elapsed = self.now.saturating_sub(state.last_hit);
            entry.time_since_last_hit = Some(p4::table_entry::IdleTimeout { elapsed_ns: i64::try_from(elapsed).unwrap_or(i64::MAX) });
        }
        entry
    }

    fn default_entry(&self, table: &Table) -> Result<p4::TableEntry> {
        let mut entry = p4::TableEntry { table_id: table.id, is_default_action: true, ..Default::default() };
        entry.action = self.switch.table_default(table.program)?.and_then(|action| self.action_message(table, &action));
        fill_notes(&mut entry, self.notes.defaults.get(&table.id));
        entry.is_const = table.const_default;
        Ok(entry)
    }

    fn action_message(&self, table: &Table, action: &TableAction) -> Option<p4::TableAction> {
        let kind = match action {
            TableAction::Call(call) => ActionType::Action(actions::encode(&table.actions, call)?),
            TableAction::Member(id) => ActionType::ActionProfileMemberId(*id),
            TableAction::Group(id) => ActionType::ActionProfileGroupId(*id),
            TableAction::OneShot(calls) => {
                let actions = calls.iter().filter_map(|(call, weight)| {
                    let action = actions::encode(&table.actions, call)?;
                    Some(p4::ActionProfileAction { action: Some(action), weight: *weight as i32, watch_kind: None })
                });
                ActionType::ActionProfileActionSet(p4::ActionProfileActionSet {
                    action_profile_actions: actions.collect(),
                    ..Default::default()
                })
            }
        };
        Some(p4::TableAction { r#type: Some(kind) })
    }
}

/// An entry with its table, match fields and priority.
pub(super) fn key_message(table: &Table, key: Vec<KeyMatch>, priority: i32) -> p4::TableEntry {
    let key = keys::canonical(&table.fields, key);
    p4::TableEntry { table_id: table.id, r#match: keys::encode(&table.fields, &key), priority, ..Default::default() }
}

/// The message about an entry whose idle timeout ran out.
pub(crate) fn idle_message(notes: &Notes, table: &Table, entry: TableEntry) -> p4::TableEntry {
    let key = (table.program, keys::canonical(&table.fields, entry.key), entry.priority);
    let notes = notes.entries.get(&key);
    let idle_timeout_ns = i64::try_from(entry.idle_timeout).unwrap_or(i64::MAX);
    let mut message = p4::TableEntry { idle_timeout_ns, ..key_message(table, key.1, key.2) };
    fill_notes(&mut message, notes);
    message
}

#[allow(deprecated)]
fn fill_notes(entry: &mut p4::TableEntry, notes: Option<&EntryNotes>) {
    if let Some(notes) = notes {
        entry.metadata = notes.metadata.clone();
        entry.controller_metadata = notes.controller_metadata;
    }
}

fn notes_of(entry: &p4::TableEntry) -> EntryNotes {
    let one_shot = match entry.action.as_ref().and_then(|action| action.r#type.as_ref()) {
        Some(ActionType::ActionProfileActionSet(set)) => Some(set.clone()),
        _ => None,
    };
    EntryNotes { metadata: entry.metadata.clone(), controller_metadata: cookie(entry), one_shot }
}

fn action_id(entry: &p4::TableEntry) -> Option<u32> {
    match entry.action.as_ref()?.r#type.as_ref()? {
        ActionType::Action(action) => Some(action.action_id),
        _ => None,
    }
}
