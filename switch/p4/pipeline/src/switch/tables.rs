//! The control interface to tables.

use std::ops::Range;

use super::*;
use crate::control::{CounterData, EntryHandle, EntryState, KeyMatch, TableAction, TableEntry};
use crate::info::{TableId, TableInfo};
use crate::table::{flatten, pack, Bound, Limits, Packed, Target};

fn no_entry(info: &TableInfo) -> ControlError {
    ControlError::NotFound(format!("table '{}' has no such entry", info.name))
}

impl Switch {
    pub(super) fn table_info(&self, table: TableId) -> Control<&TableInfo> {
        self.program.tables.get(table.index()).ok_or_else(|| ControlError::NotFound(format!("there is no table number {}", table.0)))
    }

    pub(super) fn pack_key(&self, table: TableId, key: &[KeyMatch], priority: i32) -> Control<Packed> {
        let info = self.table_info(table)?;
        pack(info, &self.program.ir.tables[table.index()], key, priority)
    }

    /// Place of the entry with this key and priority.
    pub(super) fn find_entry(&self, table: TableId, key: &[KeyMatch], priority: i32) -> Control<u32> {
        let packed = self.pack_key(table, key, priority)?;
        let found = self.rt.state.tables[table.index()].find(&packed);
        found.ok_or_else(|| no_entry(&self.program.tables[table.index()]))
    }

    fn refuse_const(info: &TableInfo) -> Control<()> {
        if info.const_entries {
            return Err(ControlError::PermissionDenied(format!("the entries of table '{}' are constants of the program", info.name)));
        }
        Ok(())
    }

    /// Checks an action for a table and makes it ready to run.
    fn bind_action(&self, info: &TableInfo, action: &TableAction) -> Control<Target> {
        let invalid = |m: String| Err(ControlError::InvalidArgument(m));
        let Some(profile) = info.profile else {
            return match action {
                TableAction::Call(call) => Ok(Target::Run(flatten(&self.program, info, call)?)),
                _ => invalid(format!("table '{}' has no action profile, its entries hold an action", info.name)),
            };
        };
        let p = &self.program.profiles[profile.index()];
        let state = &self.rt.state.profiles[profile.index()];
        match action {
            TableAction::Call(_) => invalid(format!(
                "table '{}' has the action profile '{}', its entries hold a member, a group or weighted actions",
                info.name, p.name
            )),
            TableAction::Member(m) if state.members.contains_key(m) => Ok(Target::Member(*m)),
            TableAction::Member(m) => Err(ControlError::NotFound(format!("action profile '{}' has no member {m}", p.name))),
            _ if !p.with_selector => invalid(format!("action profile '{}' has no selector, hence no groups", p.name)),
            TableAction::Group(g) if state.groups.contains_key(g) => Ok(Target::Group(*g)),
            TableAction::Group(g) => Err(ControlError::NotFound(format!("action profile '{}' has no group {g}", p.name))),
            TableAction::OneShot(choices) => {
                let total: u64 = choices.iter().map(|(_, w)| u64::from(*w)).sum();
                if choices.is_empty() || choices.iter().any(|(_, w)| *w == 0) || total > Limits::MAX_WEIGHT {
                    return invalid(format!(
                        "weighted actions of table '{}' need weights from 1, {} in all at most",
                        info.name,
                        Limits::MAX_WEIGHT
                    ));
                }
                let mut bound: Vec<Bound> = Vec::new();
                for (call, weight) in choices {
                    let b = flatten(&self.program, info, call)?;
                    bound.extend(std::iter::repeat_n(b, *weight as usize));
                }
                Ok(Target::OneShot(bound))
            }
        }
    }

    /// Counts uses of members and groups, more or fewer.
    fn count_use(&mut self, info: &TableInfo, action: &TableAction, more: i64) {
        let Some(profile) = info.profile else { return };
        let state = &mut self.rt.state.profiles[profile.index()];
        let uses = match action {
            TableAction::Member(m) => state.members.get_mut(m).map(|m| &mut m.uses),
            TableAction::Group(g) => state.groups.get_mut(g).map(|g| &mut g.uses),
            _ => None,
        };
        if let Some(uses) = uses {
            *uses = uses.saturating_add_signed(more as isize);
        }
    }

    fn check_timeout(info: &TableInfo, entry: &TableEntry) -> Control<()> {
        if entry.idle_timeout != 0 && !info.support_timeout {
            return Err(ControlError::InvalidArgument(format!("table '{}' does not support idle timeouts", info.name)));
        }
        Ok(())
    }

    /// Adds an entry; `now` starts its idle time.
    pub fn table_insert(&mut self, now: Nanos, table: TableId, entry: TableEntry) -> Control<()> {
        let program = Arc::clone(&self.program);
        let info = self.table_info(table).map(|_| &program.tables[table.index()])?;
        Self::refuse_const(info)?;
        let packed = self.pack_key(table, &entry.key, entry.priority)?;
        let target = self.bind_action(info, &entry.action)?;
        Self::check_timeout(info, &entry)?;
        let state = &mut self.rt.state.tables[table.index()];
        if state.find(&packed).is_some() {
            return Err(ControlError::AlreadyExists(format!(
                "table '{}' already has an entry with this key{}",
                info.name,
                if info.needs_priority { " and priority" } else { "" }
            )));
        }
        if state.len >= info.max_size {
            return Err(ControlError::ResourceExhausted(format!("table '{}' is full: it holds {} entries", info.name, info.max_size)));
        }
        state.add(&program, table.index(), now, &packed, &entry, target);
        self.count_use(info, &entry.action, 1);
        Ok(())
    }

    /// Replaces action and idle timeout of the entry with this key and priority; counters are kept.
    pub fn table_modify(&mut self, now: Nanos, table: TableId, entry: TableEntry) -> Control<()> {
        let program = Arc::clone(&self.program);
        let info = self.table_info(table).map(|_| &program.tables[table.index()])?;
        Self::refuse_const(info)?;
        let at = self.find_entry(table, &entry.key, entry.priority)?;
        let target = self.bind_action(info, &entry.action)?;
        Self::check_timeout(info, &entry)?;
        self.count_use(info, &entry.action, 1);
        let state = &mut self.rt.state.tables[table.index()];
        let before = state.modify(&program, table.index(), now, at, &entry, target);
        self.count_use(info, &before, -1);
        Ok(())
    }

    /// Removes the entry with this key and priority.
    pub fn table_delete(&mut self, table: TableId, key: &[KeyMatch], priority: i32) -> Control<()> {
        let program = Arc::clone(&self.program);
        let info = self.table_info(table).map(|_| &program.tables[table.index()])?;
        Self::refuse_const(info)?;
        let packed = self.pack_key(table, key, priority)?;
        let state = &mut self.rt.state.tables[table.index()];
        let at = state.find(&packed).ok_or_else(|| no_entry(info))?;
        if let Some(old) = state.remove(&packed, at) {
            self.count_use(info, &old, -1);
        }
        Ok(())
    }

    fn entry_state(&self, table: usize, at: u32) -> Option<EntryState> {
        let info = &self.program.tables[table];
        let state = &self.rt.state.tables[table];
        let is_const = state.entries.get(at as usize)?.as_ref()?.is_const;
        Some(EntryState {
            entry: state.written(at)?,
            is_const,
            last_hit: state.last_hit(at),
            counter: info.direct_counter.map(|_| state.watch(at).map_or(CounterData::default(), |w| w.counter)),
            meter: info.direct_meter.and_then(|_| state.meter(at).and_then(|m| m.config())),
        })
    }

    /// Reads the entry with this key and priority.
    pub fn table_get(&self, table: TableId, key: &[KeyMatch], priority: i32) -> Control<EntryState> {
        let at = self.find_entry(table, key, priority)?;
        self.entry_state(table.index(), at).ok_or_else(|| no_entry(&self.program.tables[table.index()]))
    }

    /// Entries are at places below this one. An entry keeps its place until it is removed.
    pub fn table_places(&self, table: TableId) -> Control<usize> {
        self.table_info(table)?;
        Ok(self.rt.state.tables[table.index()].entries.len())
    }

    /// The entries at these places, so that a large table can be read in parts.
    pub fn table_entries_at(&self, table: TableId, places: Range<usize>) -> Control<impl Iterator<Item = EntryState> + '_> {
        self.table_info(table)?;
        Ok(places.filter_map(move |at| self.entry_state(table.index(), u32::try_from(at).ok()?)))
    }

    /// All entries, in the order of insertion.
    pub fn table_entries(&self, table: TableId) -> Control<Vec<EntryState>> {
        self.table_info(table)?;
        let state = &self.rt.state.tables[table.index()];
        let mut places: Vec<(u64, u32)> =
            state.entries.iter().enumerate().filter_map(|(i, e)| e.as_ref().map(|e| (e.sequence, i as u32))).collect();
        places.sort_unstable();
        Ok(places.into_iter().filter_map(|(_, at)| self.entry_state(table.index(), at)).collect())
    }

    /// The handle of the entry with this key and priority.
    pub fn table_handle(&self, table: TableId, key: &[KeyMatch], priority: i32) -> Control<EntryHandle> {
        let at = self.find_entry(table, key, priority)?;
        Ok(self.handle(table, at))
    }

    fn handle(&self, table: TableId, place: u32) -> EntryHandle {
        EntryHandle { place, removals: self.rt.state.tables[table.index()].removals(place) }
    }

    /// The entry at a handle's place, with the handle that it has: another than the one given when that one's entry was removed since.
    /// `None` when nothing is there.
    pub fn table_at(&self, table: TableId, handle: EntryHandle) -> Control<Option<(EntryHandle, EntryState)>> {
        self.table_info(table)?;
        Ok(self.entry_state(table.index(), handle.place).map(|entry| (self.handle(table, handle.place), entry)))
    }

    /// The entry at a place, with its handle; `None` when nothing is there.
    pub fn table_in_place(&self, table: TableId, place: usize) -> Control<Option<(EntryHandle, EntryState)>> {
        self.table_info(table)?;
        let entry = |place| Some((self.handle(table, place), self.entry_state(table.index(), place)?));
        Ok(u32::try_from(place).ok().and_then(entry))
    }

    /// Number of entries.
    pub fn table_len(&self, table: TableId) -> Control<usize> {
        self.table_info(table)?;
        Ok(self.rt.state.tables[table.index()].len)
    }

    /// Sets what a packet without entry runs; `None` puts the program's default back.
    pub fn table_set_default(&mut self, table: TableId, action: Option<TableAction>) -> Control<()> {
        let program = Arc::clone(&self.program);
        let info = self.table_info(table).map(|_| &program.tables[table.index()])?;
        let initial = program.ir.tables[table.index()].default.clone().map(TableAction::Call);
        let action = action.or(initial);
        if info.const_default && action != self.rt.state.tables[table.index()].default.as_ref().map(|d| d.1.clone()) {
            return Err(ControlError::PermissionDenied(format!(
                "the default action of table '{}' is a constant of the program",
                info.name
            )));
        }
        let new = match action {
            Some(action) => Some((self.bind_default(info, &action)?, action)),
            None => None,
        };
        if let Some((_, action)) = &new {
            self.count_use(info, action, 1);
        }
        let state = &mut self.rt.state.tables[table.index()];
        let old = state.default.take();
        state.set_default(&program, table.index(), new);
        if let Some((_, action)) = old {
            self.count_use(info, &action, -1);
        }
        Ok(())
    }

    /// Unlike an entry, the default of a table with a profile may also be a plain action: the
    /// program's own is one.
    fn bind_default(&self, info: &TableInfo, action: &TableAction) -> Control<Target> {
        match action {
            TableAction::Call(call) => Ok(Target::Run(flatten(&self.program, info, call)?)),
            other => self.bind_action(info, other),
        }
    }

    /// The default action in force, `None` when there is none.
    pub fn table_default(&self, table: TableId) -> Control<Option<TableAction>> {
        self.table_info(table)?;
        Ok(self.rt.state.tables[table.index()].default.as_ref().map(|d| d.1.clone()))
    }

    /// Removes all entries (not const ones) and restores the default action.
    pub fn table_clear(&mut self, table: TableId) -> Control<()> {
        let program = Arc::clone(&self.program);
        let info = self.table_info(table).map(|_| &program.tables[table.index()])?;
        if !info.const_entries {
            for (old, uses) in self.rt.state.tables[table.index()].clear() {
                self.count_use(info, &old, -i64::from(uses));
            }
        }
        if info.const_default {
            return Ok(());
        }
        self.table_set_default(table, None)
    }

    /// Sets after how long without a hit an entry is reported (0: never); nothing else of it changes.
    pub fn table_set_timeout(&mut self, table: TableId, key: &[KeyMatch], priority: i32, timeout: Nanos) -> Control<()> {
        let info = self.table_info(table)?;
        if !info.support_timeout {
            return Err(ControlError::InvalidArgument(format!("table '{}' does not support idle timeouts", info.name)));
        }
        let at = self.find_entry(table, key, priority)?;
        if let Some(watch) = self.rt.state.tables[table.index()].watch_mut(at) {
            watch.idle_timeout = timeout;
        }
        Ok(())
    }

    /// Entries whose idle timeout has run out at `now`. Each is reported once, and again after
    /// another timeout without hit.
    pub fn expired(&mut self, now: Nanos) -> Vec<(TableId, TableEntry)> {
        let mut out = Vec::new();
        for (i, table) in self.rt.state.tables.iter_mut().enumerate().filter(|(_, t)| t.timeouts) {
            for at in 0..table.entries.len() as u32 {
                if table.entries[at as usize].is_none() {
                    continue;
                }
                let Some(watch) = table.watch_mut(at) else {
                    continue;
                };
                let since = watch.last_hit.max(watch.reported);
                if watch.idle_timeout == 0 || now.saturating_sub(since) < watch.idle_timeout {
                    continue;
                }
                watch.reported = now;
                out.extend(table.written(at).map(|entry| (TableId(i as u32), entry)));
            }
        }
        out
    }
}
