//! Writing and reading the entities of a device, one file for each kind.
//!
//! The switch is the truth about its state. What it has no place for (opaque metadata, one-shot groups as the client wrote them)
//! is kept in [`Notes`] beside it, so that a read gives back what was written.

mod actions;
mod cells;
mod data;
mod keys;
mod profiles;
mod replication;
mod tables;
mod undo;
mod value_sets;
mod window;

pub(crate) use tables::idle_message;
pub(crate) use undo::Batch;
pub(crate) use window::Window;

use std::collections::{BTreeMap, HashMap};

use fairlane_pipeline::{KeyMatch, Nanos, Switch, TableId};

use crate::digest::Digests;
use crate::model::Model;
use crate::proto::p4::v1 as p4;
use crate::status::{Result, Status};

use p4::entity::Entity as Kind;
use p4::update::Type;

/// What an update takes of a window, in cells.
pub(crate) const UPDATE_COST: usize = 64;

/// What identifies a table entry.
pub(crate) type EntryKey = (TableId, Vec<KeyMatch>, i32);

/// What the switch does not keep of a table entry.
#[derive(Debug, Clone, Default)]
pub(crate) struct EntryNotes {
    metadata: Vec<u8>,
    controller_metadata: u64,
    one_shot: Option<p4::ActionProfileActionSet>,
}

impl EntryNotes {
    fn is_empty(&self) -> bool {
        self.metadata.is_empty() && self.controller_metadata == 0 && self.one_shot.is_none()
    }
}

/// What clients wrote and the switch has no place for.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    entries: HashMap<EntryKey, EntryNotes>,
    defaults: BTreeMap<u32, EntryNotes>,
    groups: BTreeMap<(u32, u32), p4::ActionProfileGroup>,
    multicast: BTreeMap<u32, p4::MulticastGroupEntry>,
    clones: BTreeMap<u32, p4::CloneSessionEntry>,
    /// Number of entries with a one-shot, by action profile.
    one_shots: BTreeMap<u32, usize>,
}

/// A switch with everything that is needed to write and read its entities.
pub(crate) struct Target<'a> {
    pub model: &'a Model,
    pub notes: &'a mut Notes,
    pub digests: &'a mut Digests,
    pub switch: &'a mut Switch,
    pub now: Nanos,
    /// Entries of one table, whatever its program declares.
    pub max_table_entries: usize,
}

impl Target<'_> {
    /// Applies one update.
    ///
    /// # Errors
    /// The canonical code of the update; nothing has changed then.
    pub fn write(&mut self, update: &p4::Update) -> Result<()> {
        self.write_window(update, &mut Window::whole())
    }

    /// [`Target::write`] of the cells in a window, where the update is for all cells of an array. Other updates have no parts.
    ///
    /// # Errors
    /// The canonical code of the update; nothing has changed then.
    pub fn write_window(&mut self, update: &p4::Update, window: &mut Window) -> Result<()> {
        let kind = update_type(update)?;
        match entity(&update.entity)? {
            Kind::TableEntry(entry) => self.write_table_entry(kind, entry),
            Kind::ActionProfileMember(member) => self.write_member(kind, member),
            Kind::ActionProfileGroup(group) => self.write_group(kind, group),
            Kind::MeterEntry(entry) => self.write_meter(kind, entry, window),
            Kind::DirectMeterEntry(entry) => self.write_direct_meter(kind, entry),
            Kind::CounterEntry(entry) => self.write_counter(kind, entry, window),
            Kind::DirectCounterEntry(entry) => self.write_direct_counter(kind, entry),
            Kind::PacketReplicationEngineEntry(entry) => self.write_replication(kind, entry),
            Kind::ValueSetEntry(entry) => self.write_value_set(kind, entry),
            Kind::RegisterEntry(entry) => self.write_register(kind, entry, window),
            Kind::DigestEntry(entry) => self.digests.write(self.model, kind, entry, self.now),
            Kind::ExternEntry(_) => Err(no_externs()),
        }
    }

    /// Appends what an entity of a read request selects.
    ///
    /// # Errors
    /// The canonical code of the request.
    pub fn read(&self, request: &p4::Entity, out: &mut Vec<p4::Entity>) -> Result<()> {
        self.read_window(request, &mut Window::whole(), out)
    }

    /// [`Target::read`] of what is in a window.
    ///
    /// # Errors
    /// The canonical code of the request.
    pub fn read_window(&self, request: &p4::Entity, window: &mut Window, out: &mut Vec<p4::Entity>) -> Result<()> {
        match request.entity.as_ref().ok_or_else(|| Status::invalid("the entity of the read request is not set"))? {
            Kind::TableEntry(entry) => self.read_table_entries(entry, window, out),
            Kind::ActionProfileMember(member) => self.read_members(member, window, out),
            Kind::ActionProfileGroup(group) => self.read_groups(group, window, out),
            Kind::MeterEntry(entry) => self.read_meters(entry, window, out),
            Kind::DirectMeterEntry(entry) => self.read_direct_meters(entry, window, out),
            Kind::CounterEntry(entry) => self.read_counters(entry, window, out),
            Kind::DirectCounterEntry(entry) => self.read_direct_counters(entry, window, out),
            Kind::PacketReplicationEngineEntry(entry) => self.read_replication(entry, window, out),
            Kind::ValueSetEntry(entry) => self.read_value_sets(entry, window, out),
            Kind::RegisterEntry(entry) => self.read_registers(entry, window, out),
            Kind::DigestEntry(entry) => self.digests.read(self.model, entry, out),
            Kind::ExternEntry(_) => Err(no_externs()),
        }
    }
}

/// The type of an update.
pub(crate) fn update_type(update: &p4::Update) -> Result<Type> {
    match Type::try_from(update.r#type) {
        Ok(kind) if kind != Type::Unspecified => Ok(kind),
        _ => Err(Status::invalid(format!("update type {} is not INSERT, MODIFY or DELETE", update.r#type))),
    }
}

/// The entity of an update.
pub(crate) fn entity(entity: &Option<p4::Entity>) -> Result<&Kind> {
    entity.as_ref().and_then(|entity| entity.entity.as_ref()).ok_or_else(|| Status::invalid("the update has no entity"))
}

/// Wraps an entity.
pub(crate) fn wrap(kind: Kind) -> p4::Entity {
    p4::Entity { entity: Some(kind) }
}

fn no_externs() -> Status {
    Status::unimplemented("extern_entry: v1model has no externs beyond those with entities of their own")
}

/// Refuses updates of entities that always exist.
fn only_modify(kind: Type, what: &str) -> Result<()> {
    match kind {
        Type::Modify => Ok(()),
        _ => Err(Status::invalid(format!("{what} can only be modified; {} was asked for", kind.as_str_name()))),
    }
}

/// The cells an index selects: one, or all when it is not set.
fn cells(what: &str, index: Option<&p4::Index>, size: usize) -> Result<std::ops::Range<usize>> {
    let Some(index) = index else { return Ok(0..size) };
    match usize::try_from(index.index) {
        Err(_) => Err(Status::invalid(format!("{what}: index {} is negative", index.index))),
        Ok(index) if index >= size => {
            Err(Status::out_of_range(format!("{what}: index {index}; it has {size} cells, 0 to {}", size.saturating_sub(1))))
        }
        Ok(index) => Ok(index..index + 1),
    }
}

/// Looks up an id of P4Info.
fn find<'a, T>(map: &'a BTreeMap<u32, T>, what: &str, id: u32) -> Result<&'a T> {
    map.get(&id).ok_or_else(|| match id {
        0 => Status::invalid(format!("the {what} is 0 (not set)")),
        _ => Status::invalid(format!("{what} {id} (0x{id:08x}) is not in the P4Info")),
    })
}

/// All objects for id 0, otherwise the one with the id.
fn select<'a, T>(map: &'a BTreeMap<u32, T>, what: &str, id: u32) -> Result<Vec<(u32, &'a T)>> {
    match id {
        0 => Ok(map.iter().map(|(id, item)| (*id, item)).collect()),
        _ => Ok(vec![(id, find(map, what, id)?)]),
    }
}
