//! `bm_mt_*`: tables, their entries, counters and meters.

use fairlane_device::pipeline::{
    ActionCall, ControlError, CounterData, EntryHandle, EntryState, KeyInfo, KeyMatch, MatchKind, Switch, TableAction, TableEntry, TableId,
    TableInfo, Value as Number,
};
use fairlane_device::Nanos;

use super::cells::{rates_of, rates_value, read_rates};
use super::codes::table as code;
use super::{action_call, action_data, action_named, cut, Answer, Call, Failure};
use crate::value::{Fields, Kind, Value};

const MILLISECOND: Nanos = 1_000_000;

/// BMv2's types of match parameters, and the field of the union that holds each.
mod param {
    pub const EXACT: i32 = 0;
    pub const LPM: i32 = 1;
    pub const TERNARY: i32 = 2;
    pub const VALID: i32 = 3;
    pub const RANGE: i32 = 4;
    /// Field of the type itself; those of the types follow it.
    pub const TYPE: i16 = 1;

    pub fn field(kind: i32) -> i16 {
        kind as i16 + 2
    }
}

/// `BmActionEntryType`.
mod action_type {
    pub const NONE: i32 = 0;
    pub const DATA: i32 = 1;
    pub const MEMBER: i32 = 2;
    pub const GROUP: i32 = 3;
}

/// What the entries of a table are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TableType {
    Simple,
    Indirect,
    Selector,
}

/// A handle as BMv2 writes it: removals above the place.
pub fn handle_number(handle: EntryHandle) -> i32 {
    (u32::from(handle.removals) << 24 | handle.place & 0x00ff_ffff) as i32
}

fn handle_of(number: i32) -> EntryHandle {
    let number = number as u32;
    EntryHandle { place: number & 0x00ff_ffff, removals: (number >> 24) as u8 }
}

fn refused<T>(code: i32) -> Result<T, Failure> {
    Err(Failure::Refused(code))
}

/// What BMv2 says in place of an error of the control interface, where nothing more is known.
fn code_of(error: &ControlError) -> i32 {
    match error {
        ControlError::AlreadyExists(_) => code::DUPLICATE,
        ControlError::ResourceExhausted(_) => code::FULL,
        ControlError::PermissionDenied(_) => code::IMMUTABLE,
        ControlError::NotFound(_) => code::INVALID_HANDLE,
        ControlError::InvalidArgument(_) => code::BAD_KEY,
        ControlError::FailedPrecondition(_) | ControlError::Unimplemented(_) => code::ERROR,
    }
}

fn control<T>(result: Result<T, ControlError>) -> Result<T, Failure> {
    result.map_err(|error| {
        tracing::debug!(%error, "Thrift");
        Failure::Refused(code_of(&error))
    })
}

/// Places of a table in one part of a read: some tenths of a millisecond of the device's thread.
const PLACES_PER_PART: usize = 256;

impl Call<'_> {
    fn table_id(&self) -> Result<TableId, Failure> {
        self.check_context()?;
        let name = self.args.string(2)?;
        self.switch(code::INVALID_NAME)?.program().table_by_name(name).ok_or(Failure::Refused(code::INVALID_NAME))
    }

    fn info(&self, table: TableId) -> Result<&TableInfo, Failure> {
        self.switch(code::INVALID_NAME)?.program().table(table).ok_or(Failure::Refused(code::INVALID_NAME))
    }

    fn table_type(&self, table: TableId) -> Result<TableType, Failure> {
        let Some(profile) = self.info(table)?.profile else { return Ok(TableType::Simple) };
        let info = self.switch(code::INVALID_NAME)?.program().profile(profile);
        Ok(if info.is_some_and(|info| info.with_selector) { TableType::Selector } else { TableType::Indirect })
    }

    fn need(&self, table: TableId, holds: impl FnOnce(TableType) -> bool) -> Result<(), Failure> {
        if holds(self.table_type(table)?) {
            return Ok(());
        }
        refused(code::WRONG_TYPE)
    }

    /// The entry that argument 3 names.
    fn entry(&self, table: TableId) -> Result<(EntryHandle, EntryState), Failure> {
        let asked = handle_of(self.args.i32(3)?);
        match control(self.switch(code::INVALID_NAME)?.table_at(table, asked))? {
            None => refused(code::INVALID_HANDLE),
            Some((handle, _)) if handle != asked => refused(code::EXPIRED_HANDLE),
            Some(found) => Ok(found),
        }
    }

    pub(super) fn table(&mut self, method: &str) -> Answer {
        if method == "get_entries" {
            let (mut entries, mut next) = (Vec::new(), Some(0));
            while let Some(first) = next {
                let mut part = self.entries(first)?;
                entries.append(&mut part.0);
                next = part.1;
            }
            return Ok(Some(Value::List(Kind::Struct, entries)));
        }
        let table = self.table_id()?;
        match method {
            "get_num_entries" => {
                let length = control(self.switch(code::INVALID_NAME)?.table_len(table))?;
                Ok(Some(Value::I64(length as i64)))
            }
            "clear_entries" => self.clear(table),
            "add_entry" => {
                self.need(table, |kind| kind == TableType::Simple)?;
                let call = self.named_action(table, 4, 5)?;
                self.add(table, TableAction::Call(call), 6)
            }
            "indirect_add_entry" => {
                self.need(table, |kind| kind != TableType::Simple)?;
                let member = self.member(table, 4)?;
                self.add(table, member, 5)
            }
            "indirect_ws_add_entry" => {
                self.need(table, |kind| kind == TableType::Selector)?;
                let group = self.group(table, 4)?;
                self.add(table, group, 5)
            }
            "set_default_action" => {
                self.need(table, |kind| kind == TableType::Simple)?;
                let call = self.named_action(table, 3, 4)?;
                self.set_default(table, Some(TableAction::Call(call)))
            }
            "indirect_set_default_member" => {
                self.need(table, |kind| kind != TableType::Simple)?;
                let member = self.member(table, 3)?;
                self.set_default(table, Some(member))
            }
            "indirect_ws_set_default_group" => {
                self.need(table, |kind| kind == TableType::Selector)?;
                let group = self.group(table, 3)?;
                self.set_default(table, Some(group))
            }
            "reset_default_entry" => {
                self.need(table, |kind| kind == TableType::Simple)?;
                self.set_default(table, None)
            }
            "indirect_reset_default_entry" => {
                self.need(table, |kind| kind != TableType::Simple)?;
                self.set_default(table, None)
            }
            "delete_entry" => {
                self.need(table, |kind| kind == TableType::Simple)?;
                self.delete(table)
            }
            "indirect_delete_entry" => {
                self.need(table, |kind| kind != TableType::Simple)?;
                self.delete(table)
            }
            "modify_entry" => {
                self.need(table, |kind| kind == TableType::Simple)?;
                let call = self.named_action(table, 4, 5)?;
                self.modify(table, TableAction::Call(call))
            }
            "indirect_modify_entry" => {
                self.need(table, |kind| kind != TableType::Simple)?;
                let member = self.member(table, 4)?;
                self.modify(table, member)
            }
            "indirect_ws_modify_entry" => {
                self.need(table, |kind| kind == TableType::Selector)?;
                let group = self.group(table, 4)?;
                self.modify(table, group)
            }
            "set_entry_ttl" | "indirect_set_entry_ttl" => self.set_timeout(table),
            "get_entry" => {
                let (handle, state) = self.entry(table)?;
                Ok(Some(self.entry_value(table, handle, &state)?))
            }
            "get_default_entry" => Ok(Some(self.default_entry(table)?)),
            "get_entry_from_key" => self.entry_from_key(table),
            "read_counter" => self.read_counter(table),
            "write_counter" => self.write_counter(table),
            "reset_counters" => self.reset_counters(table),
            "get_meter_rates" => self.get_meter(table),
            "set_meter_rates" => self.set_meter(table),
            _ => Err(Failure::UnknownMethod),
        }
    }

    /// The action that argument `name` names for a table, with argument `data`.
    fn named_action(&self, table: TableId, name: i16, data: i16) -> Result<ActionCall, Failure> {
        let program = self.switch(code::INVALID_NAME)?.program();
        let info = self.info(table)?;
        let Some((id, action)) = action_named(program, &info.actions, self.args.string(name)?) else {
            return refused(code::INVALID_ACTION);
        };
        action_call(id, action, self.args.list(data)?).ok_or(Failure::Refused(code::BAD_ACTION_DATA))
    }

    fn member(&self, table: TableId, number: i16) -> Result<TableAction, Failure> {
        let Some(profile) = self.info(table)?.profile else { return refused(code::WRONG_TYPE) };
        let member = self.args.i32(number)? as u32;
        let members = control(self.switch(code::INVALID_NAME)?.members(profile))?;
        if !members.iter().any(|(id, _)| *id == member) {
            return refused(code::INVALID_MEMBER);
        }
        Ok(TableAction::Member(member))
    }

    fn group(&self, table: TableId, number: i16) -> Result<TableAction, Failure> {
        let Some(profile) = self.info(table)?.profile else { return refused(code::WRONG_TYPE) };
        let group = self.args.i32(number)? as u32;
        let groups = control(self.switch(code::INVALID_NAME)?.groups(profile))?;
        match groups.iter().find(|(id, ..)| *id == group) {
            None => refused(code::INVALID_GROUP),
            Some((_, members, _)) if members.is_empty() => refused(code::EMPTY_GROUP),
            Some(_) => Ok(TableAction::Group(group)),
        }
    }

    /// Key and priority of arguments 3 and `options`.
    fn key(&self, table: TableId, options: i16) -> Result<(Vec<KeyMatch>, i32), Failure> {
        let info = self.info(table)?;
        let given = self.args.structs(3)?;
        if given.len() != info.key.len() {
            return refused(code::BAD_KEY);
        }
        let key = given.into_iter().zip(&info.key).map(|(param, field)| key_match(param, field)).collect::<Result<_, _>>()?;
        let priority = match (info.needs_priority, self.args.fields(options).ok().and_then(|options| options.i32(1).ok())) {
            (false, _) => 0,
            (true, given) => priority_of(given.unwrap_or(0)),
        };
        Ok((key, priority))
    }

    fn add(&mut self, table: TableId, action: TableAction, options: i16) -> Answer {
        let info = self.info(table)?;
        if info.const_entries {
            return refused(code::IMMUTABLE);
        }
        if info.key.is_empty() {
            return refused(code::NO_KEY);
        }
        let (key, priority) = self.key(table, options)?;
        let now = self.now;
        let switch = self.switch_mut(code::INVALID_NAME)?;
        let entry = TableEntry { key: key.clone(), priority, action, idle_timeout: 0 };
        control(switch.table_insert(now, table, entry))?;
        let handle = control(switch.table_handle(table, &key, priority))?;
        Ok(Some(Value::I32(handle_number(handle))))
    }

    fn refuse_immutable(&self, table: TableId) -> Result<(), Failure> {
        if self.info(table)?.const_entries {
            return refused(code::IMMUTABLE);
        }
        Ok(())
    }

    fn delete(&mut self, table: TableId) -> Answer {
        self.refuse_immutable(table)?;
        let (_, state) = self.entry(table)?;
        control(self.switch_mut(code::INVALID_NAME)?.table_delete(table, &state.entry.key, state.entry.priority))?;
        Ok(None)
    }

    fn modify(&mut self, table: TableId, action: TableAction) -> Answer {
        self.refuse_immutable(table)?;
        let (_, state) = self.entry(table)?;
        let now = self.now;
        control(self.switch_mut(code::INVALID_NAME)?.table_modify(now, table, TableEntry { action, ..state.entry }))?;
        Ok(None)
    }

    fn set_timeout(&mut self, table: TableId) -> Answer {
        if !self.info(table)?.support_timeout {
            return refused(code::AGEING_DISABLED);
        }
        let (_, state) = self.entry(table)?;
        let timeout = u64::from(self.args.i32(4)? as u32) * MILLISECOND;
        control(self.switch_mut(code::INVALID_NAME)?.table_set_timeout(table, &state.entry.key, state.entry.priority, timeout))?;
        Ok(None)
    }

    fn set_default(&mut self, table: TableId, action: Option<TableAction>) -> Answer {
        let reset = action.is_none();
        match self.switch_mut(code::INVALID_NAME)?.table_set_default(table, action) {
            Ok(()) => Ok(None),
            // The program's default is in force all the time.
            Err(ControlError::PermissionDenied(_)) if reset => Ok(None),
            Err(ControlError::PermissionDenied(_)) => refused(code::CONST_DEFAULT),
            Err(error) => control(Err(error)),
        }
    }

    fn clear(&mut self, table: TableId) -> Answer {
        let reset_default = self.args.bool(3)?;
        let switch = self.switch_mut(code::INVALID_NAME)?;
        let before = control(switch.table_default(table))?;
        control(switch.table_clear(table))?;
        if !reset_default && control(switch.table_default(table))? != before {
            control(switch.table_set_default(table, before))?;
        }
        Ok(None)
    }

    /// A part of the entries of the table that argument 2 names, and from which place to go on.
    pub(super) fn entries(&self, first: usize) -> Result<(Vec<Value>, Option<usize>), Failure> {
        let table = match self.table_id() {
            // BMv2 answers with what a list holds by default.
            Err(Failure::Refused(code::INVALID_NAME)) => return Ok((Vec::new(), None)),
            other => other?,
        };
        let switch = self.switch(code::INVALID_NAME)?;
        let places = control(switch.table_places(table))?;
        let end = places.min(first.saturating_add(PLACES_PER_PART));
        let mut entries = Vec::new();
        for place in first..end {
            if let Some((handle, state)) = control(switch.table_in_place(table, place))? {
                entries.push(self.entry_value(table, handle, &state)?);
            }
        }
        Ok((entries, (end < places).then_some(end)))
    }

    fn entry_from_key(&self, table: TableId) -> Answer {
        if self.args.list(3)?.is_empty() {
            let none = [(1, Value::List(Kind::Struct, Vec::new())), (2, Value::record([])), (3, Value::I32(0))];
            return Ok(Some(Value::record(none.into_iter().chain([(4, self.default_entry(table)?)]))));
        }
        let (key, priority) = self.key(table, 4)?;
        let switch = self.switch(code::INVALID_NAME)?;
        let Ok(handle) = switch.table_handle(table, &key, priority) else { return refused(code::BAD_KEY) };
        match control(switch.table_at(table, handle))? {
            Some((handle, state)) => Ok(Some(self.entry_value(table, handle, &state)?)),
            None => refused(code::BAD_KEY),
        }
    }

    fn entry_value(&self, table: TableId, handle: EntryHandle, state: &EntryState) -> Result<Value, Failure> {
        let info = self.info(table)?;
        let key = state.entry.key.iter().zip(&info.key).map(|(part, field)| param_value(part, field)).collect();
        let priority = if info.needs_priority { priority_of(state.entry.priority) } else { -1 };
        let mut entry = Fields::new([
            (1, Value::List(Kind::Struct, key)),
            (2, Value::record([(1, Value::I32(priority))])),
            (3, Value::I32(handle_number(handle))),
            (4, self.action_value(Some(&state.entry.action))?),
        ]);
        if state.entry.idle_timeout != 0 {
            let since = self.now.saturating_sub(state.last_hit);
            let life = [(1, milliseconds(state.entry.idle_timeout)), (2, milliseconds(since))];
            entry.push(5, Value::record(life));
        }
        Ok(Value::Struct(entry))
    }

    fn action_value(&self, action: Option<&TableAction>) -> Result<Value, Failure> {
        let kind = |kind| (1, Value::I32(kind));
        Ok(Value::record(match action {
            Some(TableAction::Call(call)) => {
                let program = self.switch(code::INVALID_NAME)?.program();
                let name = program.action(call.action).map_or("", |action| action.name.as_str());
                vec![kind(action_type::DATA), (2, Value::text(name)), (3, action_data(call))]
            }
            Some(TableAction::Member(member)) => vec![kind(action_type::MEMBER), (4, Value::I32(*member as i32))],
            Some(TableAction::Group(group)) => vec![kind(action_type::GROUP), (5, Value::I32(*group as i32))],
            // Actions that P4Runtime gave to the entry alone have no handle.
            Some(TableAction::OneShot(_)) | None => vec![kind(action_type::NONE)],
        }))
    }

    fn default_entry(&self, table: TableId) -> Result<Value, Failure> {
        let default = control(self.switch(code::INVALID_NAME)?.table_default(table))?;
        let indirect = self.table_type(table)? != TableType::Simple;
        // Of a table with a profile BMv2 shows only a default that was set.
        self.action_value(default.as_ref().filter(|action| !(indirect && matches!(action, TableAction::Call(_)))))
    }

    fn read_counter(&self, table: TableId) -> Answer {
        if self.info(table)?.direct_counter.is_none() {
            return refused(code::COUNTERS_DISABLED);
        }
        let (_, state) = self.entry(table)?;
        Ok(Some(super::cells::counter_value(state.counter.unwrap_or_default())))
    }

    fn write_counter(&mut self, table: TableId) -> Answer {
        if self.info(table)?.direct_counter.is_none() {
            return refused(code::COUNTERS_DISABLED);
        }
        let (_, state) = self.entry(table)?;
        let data = super::cells::read_counter(self.args.fields(4)?)?;
        control(self.switch_mut(code::INVALID_NAME)?.direct_counter_write(table, &state.entry.key, state.entry.priority, data))?;
        Ok(None)
    }

    fn reset_counters(&mut self, table: TableId) -> Answer {
        if self.info(table)?.direct_counter.is_none() {
            return refused(code::COUNTERS_DISABLED);
        }
        self.each_entry(table, |switch, entry| switch.direct_counter_write(table, &entry.key, entry.priority, CounterData::default()))?;
        Ok(None)
    }

    fn each_entry(
        &mut self,
        table: TableId,
        mut work: impl FnMut(&mut Switch, &TableEntry) -> Result<(), ControlError>,
    ) -> Result<(), Failure> {
        let switch = self.switch_mut(code::INVALID_NAME)?;
        for state in control(switch.table_entries(table))? {
            control(work(switch, &state.entry))?;
        }
        Ok(())
    }

    fn get_meter(&self, table: TableId) -> Answer {
        if self.info(table)?.direct_meter.is_none() {
            return refused(code::METERS_DISABLED);
        }
        let (_, state) = self.entry(table)?;
        Ok(Some(rates_value(rates_of(state.meter))))
    }

    fn set_meter(&mut self, table: TableId) -> Answer {
        if self.info(table)?.direct_meter.is_none() {
            return refused(code::METERS_DISABLED);
        }
        let (_, state) = self.entry(table)?;
        let Ok(rates) = read_rates(self.args.structs(4)?) else { return refused(code::INVALID_METER_OPERATION) };
        let now = self.now;
        let switch = self.switch_mut(code::INVALID_NAME)?;
        match switch.direct_meter_write(now, table, &state.entry.key, state.entry.priority, Some(rates)) {
            Ok(()) => Ok(None),
            Err(_) => refused(code::INVALID_METER_OPERATION),
        }
    }
}

fn milliseconds(time: Nanos) -> Value {
    Value::I32(i32::try_from(time / MILLISECOND).unwrap_or(i32::MAX))
}

/// BMv2's priority of ours, and ours of BMv2's: there the smallest goes first, in P4Runtime the largest.
fn priority_of(priority: i32) -> i32 {
    i32::MAX - priority.clamp(0, i32::MAX - 1)
}

/// What a match parameter says of a key's field.
fn key_match(given: &Fields, field: &KeyInfo) -> Result<KeyMatch, Failure> {
    let bad = Failure::Refused(code::BAD_KEY);
    let kind = given.i32(param::TYPE)?;
    let fits = match field.kind {
        MatchKind::Exact => kind == param::EXACT,
        MatchKind::Lpm => kind == param::LPM,
        MatchKind::Ternary | MatchKind::Optional => kind == param::TERNARY,
        MatchKind::Range => kind == param::RANGE,
        // What is a header's validity in P4_14 is a field of one bit in P4_16.
        MatchKind::Valid => matches!(kind, param::VALID | param::EXACT),
    };
    if !fits {
        return Err(bad);
    }
    let parts = given.fields(param::field(kind))?;
    let number = |at: i16| -> Result<Number, Failure> {
        let bytes = parts.bytes(at)?;
        if bytes.len() != field.width.div_ceil(8) as usize {
            return Err(Failure::Refused(code::BAD_KEY));
        }
        Ok(cut(bytes, field.width))
    };
    Ok(match field.kind {
        MatchKind::Exact => KeyMatch::Exact(number(1)?),
        MatchKind::Lpm => {
            let prefix_len = u32::try_from(parts.i32(2)?).ok().filter(|&length| length <= field.width).ok_or(bad)?;
            let mask = prefix_mask(field.width, prefix_len);
            KeyMatch::Lpm { value: masked(&number(1)?, &mask, field.width), prefix_len }
        }
        MatchKind::Ternary => {
            let mask = number(2)?;
            KeyMatch::Ternary { value: masked(&number(1)?, &mask, field.width), mask }
        }
        MatchKind::Optional => match number(2)? {
            mask if mask.is_zero() => KeyMatch::Any,
            mask if mask == Number::ones(field.width) => KeyMatch::Exact(number(1)?),
            _ => return Err(bad),
        },
        MatchKind::Range => KeyMatch::Range { low: number(1)?, high: number(2)? },
        MatchKind::Valid if kind == param::VALID => KeyMatch::Valid(parts.bool(1)?),
        MatchKind::Valid => KeyMatch::Valid(!number(1)?.is_zero()),
    })
}

fn prefix_mask(width: u32, length: u32) -> Number {
    let mut bytes = vec![0; width.div_ceil(8) as usize];
    let unused = bytes.len() as u32 * 8 - width;
    for bit in unused..unused + length {
        bytes[(bit / 8) as usize] |= 0x80 >> (bit % 8);
    }
    Number::from_be_bytes(&bytes)
}

fn masked(value: &Number, mask: &Number, width: u32) -> Number {
    let bytes: Vec<u8> = value.to_be_bytes(width).iter().zip(mask.to_be_bytes(width)).map(|(value, mask)| value & mask).collect();
    Number::from_be_bytes(&bytes)
}

/// A field of an entry's key as BMv2 shows it: of the field's kind, whatever it was written as.
fn param_value(part: &KeyMatch, field: &KeyInfo) -> Value {
    let bytes = |number: &Number| Value::Bytes(number.to_be_bytes(field.width));
    let (zero, ones) = (Number::from(0u32), Number::ones(field.width));
    let (kind, parts) = match field.kind {
        MatchKind::Exact => match part {
            KeyMatch::Exact(value) => (param::EXACT, vec![(1, bytes(value))]),
            _ => (param::EXACT, vec![(1, bytes(&zero))]),
        },
        MatchKind::Lpm => {
            let (value, length) = match part {
                KeyMatch::Lpm { value, prefix_len } => (value, *prefix_len),
                KeyMatch::Exact(value) => (value, field.width),
                _ => (&zero, 0),
            };
            (param::LPM, vec![(1, bytes(value)), (2, Value::I32(length as i32))])
        }
        MatchKind::Ternary | MatchKind::Optional => {
            let (value, mask) = match part {
                KeyMatch::Ternary { value, mask } => (value, mask),
                KeyMatch::Exact(value) => (value, &ones),
                _ => (&zero, &zero),
            };
            (param::TERNARY, vec![(1, bytes(value)), (2, bytes(mask))])
        }
        MatchKind::Range => {
            let (low, high) = match part {
                KeyMatch::Range { low, high } => (low, high),
                KeyMatch::Exact(value) => (value, value),
                _ => (&zero, &ones),
            };
            (param::RANGE, vec![(1, bytes(low)), (2, bytes(high))])
        }
        MatchKind::Valid => (param::VALID, vec![(1, Value::Bool(matches!(part, KeyMatch::Valid(true))))]),
    };
    Value::record([(param::TYPE, Value::I32(kind)), (param::field(kind), Value::record(parts))])
}
