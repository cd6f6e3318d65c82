//! Counters, meters and registers, indirect and direct [P4Runtime sec 9.3, 9.4, 9.7].

use std::sync::Once;

use fairlane_pipeline::EntryState;

use super::data::{counter_data, counter_message, meter_config, meter_message};
use super::tables::key_message;
use super::{cells, find, only_modify, select, wrap, Kind, Target, Type, Window};
use crate::model::Table;
use crate::proto::p4::v1 as p4;
use crate::status::{Result, Status};

fn no_colours(counter_data: Option<&p4::MeterCounterData>) -> Result<()> {
    match counter_data {
        Some(_) => Err(Status::unimplemented("counter_data: meters do not count by colour")),
        None => Ok(()),
    }
}

fn index(cell: usize) -> Option<p4::Index> {
    Some(p4::Index { index: cell as i64 })
}

impl Target<'_> {
    pub(super) fn write_counter(&mut self, kind: Type, entry: &p4::CounterEntry, window: &mut Window) -> Result<()> {
        only_modify(kind, "a counter")?;
        let counter = find(&self.model.counters, "counter_id", entry.counter_id)?;
        let what = format!("counter \"{}\"", counter.name);
        let range = cells(&what, entry.index.as_ref(), counter.size)?;
        let Some(data) = &entry.data else { return Ok(()) };
        let data = counter_data(data).map_err(|status| status.at(&what))?;
        for cell in window.take(entry.counter_id, range) {
            self.switch.counter_write(counter.program, cell, data)?;
        }
        Ok(())
    }

    pub(super) fn read_counters(&self, filter: &p4::CounterEntry, window: &mut Window, out: &mut Vec<p4::Entity>) -> Result<()> {
        for (counter_id, counter) in select(&self.model.counters, "counter_id", filter.counter_id)? {
            let index_of = filter.index.as_ref().filter(|_| filter.counter_id != 0);
            for cell in window.take(counter_id, cells(&format!("counter \"{}\"", counter.name), index_of, counter.size)?) {
                let data = Some(counter_message(self.switch.counter_read(counter.program, cell)?));
                out.push(wrap(Kind::CounterEntry(p4::CounterEntry { counter_id, index: index(cell), data })));
            }
        }
        Ok(())
    }

    pub(super) fn write_meter(&mut self, kind: Type, entry: &p4::MeterEntry, window: &mut Window) -> Result<()> {
        only_modify(kind, "a meter")?;
        no_colours(entry.counter_data.as_ref())?;
        let meter = find(&self.model.meters, "meter_id", entry.meter_id)?;
        let what = format!("meter \"{}\"", meter.array.name);
        let range = cells(&what, entry.index.as_ref(), meter.array.size)?;
        let config = entry.config.as_ref().map(|config| meter_config(config, meter.kind)).transpose().map_err(|status| status.at(&what))?;
        for cell in window.take(entry.meter_id, range) {
            self.switch.meter_write(self.now, meter.array.program, cell, config)?;
        }
        Ok(())
    }

    pub(super) fn read_meters(&self, filter: &p4::MeterEntry, window: &mut Window, out: &mut Vec<p4::Entity>) -> Result<()> {
        no_colours(filter.counter_data.as_ref())?;
        for (meter_id, meter) in select(&self.model.meters, "meter_id", filter.meter_id)? {
            let index_of = filter.index.as_ref().filter(|_| filter.meter_id != 0);
            for cell in window.take(meter_id, cells(&format!("meter \"{}\"", meter.array.name), index_of, meter.array.size)?) {
                let config = self.switch.meter_read(meter.array.program, cell)?.map(meter_message);
                out.push(wrap(Kind::MeterEntry(p4::MeterEntry { meter_id, index: index(cell), config, counter_data: None })));
            }
        }
        Ok(())
    }

    pub(super) fn write_register(&mut self, kind: Type, entry: &p4::RegisterEntry, window: &mut Window) -> Result<()> {
        only_modify(kind, "a register")?;
        note_registers();
        let register = find(&self.model.registers, "register_id", entry.register_id)?;
        let what = format!("register \"{}\"", register.array.name);
        let range = cells(&what, entry.index.as_ref(), register.array.size)?;
        let data = entry.data.as_ref().ok_or_else(|| Status::invalid("data is not set").at(&what))?;
        let mut leaves = Vec::new();
        register.data.decode(data, &mut leaves).map_err(|status| status.at(&what))?;
        let value = leaves.first().ok_or_else(|| Status::invalid("data is empty").at(&what))?;
        let range = window.take(entry.register_id, range);
        Ok(self.switch.register_write_range(register.array.program, range.start, range.len(), value)?)
    }

    pub(super) fn read_registers(&self, filter: &p4::RegisterEntry, window: &mut Window, out: &mut Vec<p4::Entity>) -> Result<()> {
        note_registers();
        for (register_id, register) in select(&self.model.registers, "register_id", filter.register_id)? {
            let index_of = filter.index.as_ref().filter(|_| filter.register_id != 0);
            let range = window.take(register_id, cells(&format!("register \"{}\"", register.array.name), index_of, register.array.size)?);
            let values = self.switch.register_read_range(register.array.program, range.start, range.len())?;
            for (cell, value) in range.zip(values) {
                let data = Some(register.data.encode(&mut std::iter::once(&value)));
                out.push(wrap(Kind::RegisterEntry(p4::RegisterEntry { register_id, index: index(cell), data })));
            }
        }
        Ok(())
    }

    /// The table and entry of a direct counter or meter that is written.
    fn direct_entry<'m>(&self, table: &'m Table, entry: &p4::TableEntry, what: &str) -> Result<(&'m Table, super::EntryKey)> {
        let at = |status: Status| status.at(format!("table \"{}\"", table.name));
        if entry.is_default_action {
            return Err(at(Status::unimplemented(format!("the default entry has no direct {what} (as in BMv2)"))));
        }
        Ok((table, self.entry_key(table, entry).map_err(at)?))
    }

    pub(super) fn write_direct_counter(&mut self, kind: Type, entry: &p4::DirectCounterEntry) -> Result<()> {
        only_modify(kind, "a direct counter")?;
        let given = table_entry(entry.table_entry.as_ref())?;
        let model = self.model;
        let table = find(&model.tables, "table_id", given.table_id)?;
        if !table.direct_counter {
            return Err(Status::invalid(format!("table \"{}\": it has no direct counter", table.name)));
        }
        let (table, key) = self.direct_entry(table, given, "counter")?;
        self.switch.table_get(table.program, &key.1, key.2)?;
        let Some(data) = &entry.data else { return Ok(()) };
        let data = counter_data(data).map_err(|status| status.at(format!("table \"{}\"", table.name)))?;
        Ok(self.switch.direct_counter_write(table.program, &key.1, key.2, data)?)
    }

    pub(super) fn write_direct_meter(&mut self, kind: Type, entry: &p4::DirectMeterEntry) -> Result<()> {
        only_modify(kind, "a direct meter")?;
        no_colours(entry.counter_data.as_ref())?;
        let given = table_entry(entry.table_entry.as_ref())?;
        let model = self.model;
        let table = find(&model.tables, "table_id", given.table_id)?;
        let Some(kind) = table.direct_meter else {
            return Err(Status::invalid(format!("table \"{}\": it has no direct meter", table.name)));
        };
        let (table, key) = self.direct_entry(table, given, "meter")?;
        self.switch.table_get(table.program, &key.1, key.2)?;
        let config = entry.config.as_ref().map(|config| meter_config(config, kind)).transpose();
        let config = config.map_err(|status| status.at(format!("table \"{}\"", table.name)))?;
        Ok(self.switch.direct_meter_write(self.now, table.program, &key.1, key.2, config)?)
    }

    /// Entries in the window whose direct resource a read selects. A key that is given must exist.
    fn direct_entries(
        &self,
        filter: &p4::TableEntry,
        has: impl Fn(&Table) -> bool,
        what: &str,
        window: &mut Window,
    ) -> Result<Vec<(&Table, EntryState)>> {
        let mut found = Vec::new();
        for (_, table) in select(&self.model.tables, "table_id", filter.table_id)? {
            let at = |status: Status| status.at(format!("table \"{}\"", table.name));
            if !has(table) {
                if filter.table_id != 0 {
                    return Err(at(Status::invalid(format!("it has no direct {what}"))));
                }
                continue;
            }
            if filter.is_default_action {
                return Err(at(Status::unimplemented(format!("the default entry has no direct {what} (as in BMv2)"))));
            }
            let states = self.matching_entries(table, filter, window).map_err(at)?;
            if !filter.r#match.is_empty() && window.is_without(table.id) {
                return Err(at(Status::not_found("there is no entry with this key")));
            }
            found.extend(states.into_iter().map(|state| (table, state)));
        }
        Ok(found)
    }

    pub(super) fn read_direct_counters(
        &self,
        filter: &p4::DirectCounterEntry,
        window: &mut Window,
        out: &mut Vec<p4::Entity>,
    ) -> Result<()> {
        let all = p4::TableEntry::default();
        let filter = filter.table_entry.as_ref().unwrap_or(&all);
        for (table, state) in self.direct_entries(filter, |table| table.direct_counter, "counter", window)? {
            let data = state.counter.map(counter_message);
            let table_entry = Some(key_message(table, state.entry.key, state.entry.priority));
            out.push(wrap(Kind::DirectCounterEntry(p4::DirectCounterEntry { table_entry, data })));
        }
        Ok(())
    }

    pub(super) fn read_direct_meters(&self, filter: &p4::DirectMeterEntry, window: &mut Window, out: &mut Vec<p4::Entity>) -> Result<()> {
        no_colours(filter.counter_data.as_ref())?;
        let all = p4::TableEntry::default();
        let filter = filter.table_entry.as_ref().unwrap_or(&all);
        for (table, state) in self.direct_entries(filter, |table| table.direct_meter.is_some(), "meter", window)? {
            let config = state.meter.map(meter_message);
            let table_entry = Some(key_message(table, state.entry.key, state.entry.priority));
            out.push(wrap(Kind::DirectMeterEntry(p4::DirectMeterEntry { table_entry, config, counter_data: None })));
        }
        Ok(())
    }
}

fn table_entry(entry: Option<&p4::TableEntry>) -> Result<&p4::TableEntry> {
    entry.ok_or_else(|| Status::invalid("table_entry is not set"))
}

/// Stock BMv2 answers UNIMPLEMENTED to register entries: a client that uses them does not run there.
fn note_registers() {
    static NOTE: Once = Once::new();
    NOTE.call_once(|| {
        tracing::info!("P4Runtime register entries are in use: an extension, which BMv2 does not have");
    });
}
