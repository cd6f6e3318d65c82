//! All-or-none batches, and moving the state of one pipeline configuration into another.
//!
//! Before an update of an atomic batch is applied, the state of what it touches is read, in full, as entities. When a later update
//! fails, the updates applied so far are undone in reverse by writing those entities back.

use super::{entity, update_type, wrap, Kind, Target, Type, Window, UPDATE_COST};
use crate::model::Model;
use crate::proto::p4::v1 as p4;
use crate::status::{Result, Status};

/// An all-or-none batch under way.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// What undoes each update that is applied.
    undo: Vec<Vec<p4::Update>>,
    /// The update that failed.
    failed: Option<(usize, Status)>,
    /// Why the batch could not be undone.
    lost: Option<Status>,
}

impl Batch {
    /// The outcome of each of so many updates, when one failed: its own error for that, ABORTED for the others. Else none.
    pub fn outcomes(self, updates: usize) -> Vec<Result<()>> {
        let Some((failed, error)) = self.failed else { return Vec::new() };
        let number = failed + 1;
        let outcome = |other: usize| {
            if other == failed {
                return Err(error.clone());
            }
            if let Some(status) = &self.lost {
                return Err(Status::internal(format!("update {number} failed, and the batch could not be undone: {status}")));
            }
            let what = if other < failed { "undone" } else { "not attempted" };
            Err(Status::aborted(format!("{what}, because update {number} failed")))
        };
        (0..updates).map(outcome).collect()
    }
}

impl Target<'_> {
    /// Goes on with a batch of which all updates are applied, or none, until the window is full. True when the batch is over.
    pub fn write_all_or_none(&mut self, updates: &[p4::Update], batch: &mut Batch, window: &mut Window) -> bool {
        while batch.failed.is_none() {
            let index = batch.undo.len();
            let Some(update) = updates.get(index) else { return true };
            if window.is_spent() {
                return false;
            }
            // It is read before it is written.
            window.spend(2 * UPDATE_COST);
            let applied = self.inverse(update).and_then(|inverse| {
                self.write(update)?;
                Ok(inverse)
            });
            match applied {
                Ok(inverse) => batch.undo.push(inverse),
                Err(error) => batch.failed = Some((index, error)),
            }
        }
        while !window.is_spent() {
            let Some(inverse) = batch.undo.pop() else { return true };
            window.spend(UPDATE_COST);
            for update in inverse {
                if let Err(status) = self.write(&update) {
                    batch.lost.get_or_insert(status);
                }
            }
        }
        batch.undo.is_empty()
    }

    /// How many things an update changes: the cells of an array, or one.
    pub fn reach(&self, update: &p4::Update) -> usize {
        let size = match update.entity.as_ref().and_then(|entity| entity.entity.as_ref()) {
            Some(Kind::CounterEntry(entry)) if entry.index.is_none() => self.model.counters.get(&entry.counter_id).map(|array| array.size),
            Some(Kind::RegisterEntry(entry)) if entry.index.is_none() => {
                self.model.registers.get(&entry.register_id).map(|register| register.array.size)
            }
            Some(Kind::MeterEntry(entry)) if entry.index.is_none() => self.model.meters.get(&entry.meter_id).map(|meter| meter.array.size),
            _ => None,
        };
        size.unwrap_or(1)
    }

    /// The updates that put back what an update is about to change.
    fn inverse(&self, update: &p4::Update) -> Result<Vec<p4::Update>> {
        let kind = update_type(update)?;
        let target = entity(&update.entity)?;
        if kind == Type::Insert {
            return Ok(vec![p4::Update { r#type: Type::Delete as i32, entity: update.entity.clone() }]);
        }
        let Some(request) = query(target) else { return Ok(Vec::new()) };
        let mut state = Vec::new();
        // What does not exist cannot be modified or deleted: the write will say so.
        if self.read(&request, &mut state).is_err() {
            return Ok(Vec::new());
        }
        let back = if kind == Type::Delete { Type::Insert } else { Type::Modify };
        Ok(state.into_iter().filter_map(|entity| restore(back, entity)).collect())
    }

    /// The updates that make a fresh switch like this one. The second list is what the data plane counts and keeps itself, which
    /// another program may not have room for.
    ///
    /// # Errors
    /// INTERNAL when the state cannot be read.
    pub fn dump(&self) -> Result<(Vec<p4::Update>, Vec<p4::Update>)> {
        let mut kept = Vec::new();
        let mut measured = Vec::new();
        let add = |to: &mut Vec<p4::Update>, kind: Type, request: Kind| -> Result<()> {
            let mut state = Vec::new();
            self.read(&wrap(request), &mut state)?;
            to.extend(state.into_iter().filter(|entity| !is_initial(entity)).filter_map(|entity| restore(kind, entity)));
            Ok(())
        };
        add(&mut kept, Type::Insert, Kind::DigestEntry(Default::default()))?;
        add(&mut kept, Type::Insert, Kind::ActionProfileMember(Default::default()))?;
        add(&mut kept, Type::Insert, Kind::ActionProfileGroup(Default::default()))?;
        add(&mut kept, Type::Insert, Kind::TableEntry(full_entry(0)))?;
        for table_id in self.notes.defaults.keys() {
            let default = p4::TableEntry { table_id: *table_id, is_default_action: true, ..Default::default() };
            add(&mut kept, Type::Modify, Kind::TableEntry(default))?;
        }
        add(&mut kept, Type::Insert, Kind::PacketReplicationEngineEntry(Default::default()))?;
        add(&mut kept, Type::Modify, Kind::ValueSetEntry(Default::default()))?;
        add(&mut kept, Type::Modify, Kind::MeterEntry(Default::default()))?;
        add(&mut measured, Type::Modify, Kind::CounterEntry(Default::default()))?;
        for (register_id, register) in &self.model.registers {
            let mut state = Vec::new();
            self.read(&wrap(Kind::RegisterEntry(p4::RegisterEntry { register_id: *register_id, ..Default::default() })), &mut state)?;
            let zero = register.data.encode(&mut std::iter::empty());
            let changed = state.into_iter().filter(|entity| match &entity.entity {
                Some(Kind::RegisterEntry(entry)) => entry.data.as_ref() != Some(&zero),
                _ => false,
            });
            measured.extend(changed.filter_map(|entity| restore(Type::Modify, entity)));
        }
        Ok((kept, measured))
    }

    /// Applies what [`Target::dump`] gave, on a switch that is fresh from its program.
    ///
    /// # Errors
    /// The first update that this configuration does not accept.
    pub fn replay(&mut self, kept: &[p4::Update], measured: &[p4::Update]) -> Result<()> {
        // Entries that the program brings along, and that are not constant, are among those kept, unless they were deleted.
        for table in self.model.tables.values().filter(|table| !table.is_const) {
            self.switch.table_clear(table.program)?;
        }
        for update in kept {
            let update = adapt(self.model, update);
            self.write(&update)?;
        }
        for update in measured {
            if let Err(status) = self.write(update) {
                tracing::debug!(%status, "a count is not carried over to the new pipeline");
            }
        }
        Ok(())
    }
}

/// A table entry that asks for everything in a read.
fn full_entry(table_id: u32) -> p4::TableEntry {
    p4::TableEntry {
        table_id,
        counter_data: Some(p4::CounterData::default()),
        meter_config: Some(p4::MeterConfig::default()),
        ..Default::default()
    }
}

/// The read request for what an update touches.
fn query(target: &Kind) -> Option<p4::Entity> {
    Some(wrap(match target {
        Kind::TableEntry(entry) if entry.is_default_action => {
            Kind::TableEntry(p4::TableEntry { table_id: entry.table_id, is_default_action: true, ..Default::default() })
        }
        Kind::TableEntry(entry) => {
            Kind::TableEntry(p4::TableEntry { r#match: entry.r#match.clone(), priority: entry.priority, ..full_entry(entry.table_id) })
        }
        Kind::ActionProfileMember(member) => Kind::ActionProfileMember(p4::ActionProfileMember { action: None, ..member.clone() }),
        Kind::DirectCounterEntry(entry) => Kind::DirectCounterEntry(p4::DirectCounterEntry { data: None, ..entry.clone() }),
        Kind::ExternEntry(_) => return None,
        other => other.clone(),
    }))
}

/// The update that brings an entity back.
fn restore(kind: Type, mut entity: p4::Entity) -> Option<p4::Update> {
    let mut kind = kind;
    if let Some(Kind::TableEntry(entry)) = &mut entity.entity {
        if entry.is_const && !entry.is_default_action {
            // Its action is the program's; only counter and meter are state.
            if entry.counter_data.is_none() && entry.meter_config.is_none() {
                return None;
            }
            entry.action = None;
            kind = Type::Modify;
        }
        entry.is_const = false;
    }
    Some(p4::Update { r#type: kind as i32, entity: Some(entity) })
}

/// True for a cell or set as a fresh switch has it.
fn is_initial(entity: &p4::Entity) -> bool {
    match &entity.entity {
        Some(Kind::CounterEntry(entry)) => entry.data.as_ref().is_none_or(|data| *data == p4::CounterData::default()),
        Some(Kind::MeterEntry(entry)) => entry.config.is_none(),
        Some(Kind::ValueSetEntry(entry)) => entry.members.is_empty(),
        _ => false,
    }
}

/// Leaves out of a kept entry the counter that its table no longer has.
fn adapt(model: &Model, update: &p4::Update) -> p4::Update {
    let mut update = update.clone();
    if let Some(Kind::TableEntry(entry)) = update.entity.as_mut().and_then(|entity| entity.entity.as_mut())
        && model.tables.get(&entry.table_id).is_some_and(|table| !table.direct_counter)
    {
        entry.counter_data = None;
    }
    update
}
