//! Counters, meters, registers and parser value sets.

use fairlane_device::pipeline::{
    ControlError, CounterData, CounterId, MeterConfig, MeterId, RegisterId, TableId, Value as Number, ValueSetId, ValueSetMember,
};

use super::codes;
use super::{cut, index, Answer, Call, Failure};
use crate::value::{BadField, Fields, Kind, Value};

/// Micros in a second: BMv2's rates are per microsecond.
const MICROS: f64 = 1e6;

pub fn counter_value(data: CounterData) -> Value {
    Value::record([(1, Value::I64(data.bytes as i64)), (2, Value::I64(data.packets as i64))])
}

pub fn read_counter(fields: &Fields) -> Result<CounterData, BadField> {
    Ok(CounterData { bytes: fields.i64(1)? as u64, packets: fields.i64(2)? as u64 })
}

/// Committed and peak rate with their bursts; nothing for a meter that is not configured.
pub fn rates_of(config: Option<MeterConfig>) -> Vec<(f64, u64)> {
    let per_second = |whole: u64, micro: u32| whole as f64 + f64::from(micro) / MICROS;
    config.map_or_else(Vec::new, |config| {
        vec![(per_second(config.cir, config.cir_micro), config.cburst), (per_second(config.pir, config.pir_micro), config.pburst)]
    })
}

pub fn rates_value(rates: Vec<(f64, u64)>) -> Value {
    let one = |(rate, burst): (f64, u64)| {
        let burst = i32::try_from(burst).unwrap_or(i32::MAX);
        Value::record([(1, Value::Double(rate / MICROS)), (2, Value::I32(burst))])
    };
    Value::List(Kind::Struct, rates.into_iter().map(one).collect())
}

/// The two rates of a meter.
///
/// # Errors
/// The code of meters' exception.
pub fn read_rates(rates: Vec<&Fields>) -> Result<MeterConfig, Failure> {
    let [committed, peak] = rates.as_slice() else { return Err(Failure::Refused(codes::meter::BAD_RATES)) };
    let rate = |fields: &Fields| -> Result<(u64, u32), Failure> {
        let per_second = fields.double(1)? * MICROS;
        // Also refuses what is not a number.
        if !(0.0..=1e18).contains(&per_second) {
            return Err(Failure::Refused(codes::meter::INVALID_RATE));
        }
        // Whole units and millionths: a rate may be below one per second.
        let micro = (per_second * MICROS).round() as u128;
        Ok(((micro / 1_000_000) as u64, (micro % 1_000_000) as u32))
    };
    let burst = |fields: &Fields| -> Result<u64, Failure> {
        u64::try_from(fields.i32(2)?).map_err(|_| Failure::Refused(codes::meter::INVALID_BURST))
    };
    let ((cir, cir_micro), (pir, pir_micro)) = (rate(committed)?, rate(peak)?);
    let config = MeterConfig { cir, cir_micro, cburst: burst(committed)?, pir, pir_micro, pburst: burst(peak)? };
    if config.is_inverted() {
        return Err(Failure::Refused(codes::meter::INVALID_RATE));
    }
    Ok(config)
}

/// The code for an index that is out of range; there is no other cause once the array is known.
fn within<T>(result: Result<T, ControlError>, beyond: i32) -> Result<T, Failure> {
    result.map_err(|_| Failure::Refused(beyond))
}

impl Call<'_> {
    pub(super) fn counter(&mut self, method: &str) -> Answer {
        use codes::counter::{INVALID_INDEX, INVALID_NAME};
        self.check_context()?;
        let (counter, size) = self.indirect_counter()?;
        match method {
            "read" => {
                let at = index(self.args.i32(3)?, INVALID_INDEX)?;
                let data = within(self.switch(INVALID_NAME)?.counter_read(counter, at), INVALID_INDEX)?;
                Ok(Some(counter_value(data)))
            }
            "write" => {
                let (at, data) = (index(self.args.i32(3)?, INVALID_INDEX)?, read_counter(self.args.fields(4)?)?);
                within(self.switch_mut(INVALID_NAME)?.counter_write(counter, at, data), INVALID_INDEX)?;
                Ok(None)
            }
            "reset_all" => {
                let switch = self.switch_mut(INVALID_NAME)?;
                (0..size).try_for_each(|at| within(switch.counter_write(counter, at, CounterData::default()), INVALID_INDEX))?;
                Ok(None)
            }
            _ => Err(Failure::UnknownMethod),
        }
    }

    fn indirect_counter(&self) -> Result<(CounterId, usize), Failure> {
        let unknown = Failure::Refused(codes::counter::INVALID_NAME);
        let program = self.switch(codes::counter::INVALID_NAME)?.program();
        let id = program.counter_by_name(self.args.string(2)?).ok_or(unknown.clone())?;
        let info = program.counter(id).filter(|info| info.table.is_none()).ok_or(unknown)?;
        Ok((id, info.size))
    }

    pub(super) fn meter(&mut self, method: &str) -> Answer {
        use codes::meter::{INVALID_INDEX, INVALID_NAME};
        self.check_context()?;
        let now = self.now;
        if method == "array_set_rates"
            && let Some(table) = self.metered_table()?
        {
            let config = read_rates(self.args.structs(3)?)?;
            let switch = self.switch_mut(INVALID_NAME)?;
            for state in within(switch.table_entries(table), INVALID_NAME)? {
                let entry = state.entry;
                within(switch.direct_meter_write(now, table, &entry.key, entry.priority, Some(config)), INVALID_INDEX)?;
            }
            return Ok(None);
        }
        let (meter, size) = self.indirect_meter()?;
        match method {
            "get_rates" => {
                let at = index(self.args.i32(3)?, INVALID_INDEX)?;
                let config = within(self.switch(INVALID_NAME)?.meter_read(meter, at), INVALID_INDEX)?;
                Ok(Some(rates_value(rates_of(config))))
            }
            "set_rates" => {
                let at = index(self.args.i32(3)?, INVALID_INDEX)?;
                if at >= size {
                    return Err(Failure::Refused(INVALID_INDEX));
                }
                let config = read_rates(self.args.structs(4)?)?;
                within(self.switch_mut(INVALID_NAME)?.meter_write(now, meter, at, Some(config)), INVALID_INDEX)?;
                Ok(None)
            }
            "array_set_rates" => {
                let config = read_rates(self.args.structs(3)?)?;
                let switch = self.switch_mut(INVALID_NAME)?;
                (0..size).try_for_each(|at| within(switch.meter_write(now, meter, at, Some(config)), INVALID_INDEX))?;
                Ok(None)
            }
            _ => Err(Failure::UnknownMethod),
        }
    }

    /// The table of a direct meter; its array is the meters of its entries.
    fn metered_table(&self) -> Result<Option<TableId>, Failure> {
        let program = self.switch(codes::meter::INVALID_NAME)?.program();
        let id = program.meter_by_name(self.args.string(2)?).ok_or(Failure::Refused(codes::meter::INVALID_NAME))?;
        Ok(program.meter(id).and_then(|info| info.table))
    }

    fn indirect_meter(&self) -> Result<(MeterId, usize), Failure> {
        let unknown = Failure::Refused(codes::meter::INVALID_NAME);
        let program = self.switch(codes::meter::INVALID_NAME)?.program();
        let id = program.meter_by_name(self.args.string(2)?).ok_or(unknown.clone())?;
        let info = program.meter(id).filter(|info| info.table.is_none()).ok_or(unknown)?;
        Ok((id, info.size))
    }

    pub(super) fn register(&mut self, method: &str) -> Answer {
        use codes::register::{INVALID_INDEX, INVALID_NAME};
        self.check_context()?;
        let unknown = Failure::Refused(INVALID_NAME);
        let program = self.switch(INVALID_NAME)?.program();
        let register: RegisterId = program.register_by_name(self.args.string(2)?).ok_or(unknown.clone())?;
        let info = program.register(register).ok_or(unknown)?;
        let (size, width) = (info.size, info.width);
        match method {
            "read" => {
                let at = index(self.args.i32(3)?, INVALID_INDEX)?;
                let value = within(self.switch(INVALID_NAME)?.register_read(register, at), INVALID_INDEX)?;
                Ok(Some(Value::I64(low_bits(&value))))
            }
            "read_all" => {
                let values = within(self.switch(INVALID_NAME)?.register_read_range(register, 0, size), INVALID_INDEX)?;
                Ok(Some(Value::List(Kind::I64, values.iter().map(|value| Value::I64(low_bits(value))).collect())))
            }
            "write" => {
                let at = index(self.args.i32(3)?, INVALID_INDEX)?;
                let value = extended(self.args.i64(4)?, width);
                within(self.switch_mut(INVALID_NAME)?.register_write(register, at, &value), INVALID_INDEX)?;
                Ok(None)
            }
            "write_range" => {
                let (first, end) = (index(self.args.i32(3)?, INVALID_INDEX)?, index(self.args.i32(4)?, INVALID_INDEX)?);
                let value = extended(self.args.i64(5)?, width);
                let count = end.checked_sub(first).ok_or(Failure::Refused(INVALID_INDEX))?;
                within(self.switch_mut(INVALID_NAME)?.register_write_range(register, first, count, &value), INVALID_INDEX)?;
                Ok(None)
            }
            "reset" => {
                let zero = Number::from(0u32);
                within(self.switch_mut(INVALID_NAME)?.register_write_range(register, 0, size, &zero), codes::register::ERROR)?;
                Ok(None)
            }
            _ => Err(Failure::UnknownMethod),
        }
    }

    pub(super) fn value_set(&mut self, method: &str) -> Answer {
        use codes::value_set::{ERROR, INVALID_NAME};
        self.check_context()?;
        let unknown = Failure::Refused(INVALID_NAME);
        let program = self.switch(INVALID_NAME)?.program();
        let set: ValueSetId = program.value_set_by_name(self.args.string(2)?).ok_or(unknown.clone())?;
        let width = program.value_set(set).ok_or(unknown)?.width;
        let mut members = within(self.switch(INVALID_NAME)?.value_set(set), ERROR)?;
        let given = || -> Result<ValueSetMember, Failure> {
            // BMv2 takes values of any length, and its own command line writes them too long.
            Ok(ValueSetMember { value: cut(self.args.bytes(3)?, width), mask: Number::ones(width) })
        };
        match method {
            "get" => {
                let bytes = members.iter().map(|member| Value::Bytes(member.value.to_be_bytes(width))).collect();
                return Ok(Some(Value::List(Kind::Bytes, bytes)));
            }
            "add" => {
                let member = given()?;
                if !members.contains(&member) {
                    members.push(member);
                }
            }
            "remove" => {
                let member = given()?;
                members.retain(|other| *other != member);
            }
            "clear" => members.clear(),
            _ => return Err(Failure::UnknownMethod),
        }
        within(self.switch_mut(INVALID_NAME)?.set_value_set(set, members), ERROR)?;
        Ok(None)
    }
}

/// A register's value as an `i64`: one that does not fit is the largest there is, as in BMv2.
fn low_bits(value: &Number) -> i64 {
    value.to_u64().and_then(|value| i64::try_from(value).ok()).unwrap_or(i64::MAX)
}

/// An `i64` in so many bits, in two's complement.
fn extended(value: i64, width: u32) -> Number {
    let sign = if value < 0 { 0xff } else { 0 };
    let mut bytes = vec![sign; (width.div_ceil(8) as usize).saturating_sub(8)];
    bytes.extend_from_slice(&value.to_be_bytes());
    cut(&bytes, width)
}
