//! The control interface to counters, meters, registers and value sets.

use super::*;
use crate::control::{CounterData, CrcConfig, KeyMatch, MeterConfig, ValueSetMember};
use crate::exec::hash::{Algo, CustomCrc};
use crate::exec::meter::Meter;
use crate::exec::state::Register;
use crate::info::*;
use crate::ir::Calculation;
use crate::value::Value;

fn out_of_bounds(what: &str, name: &str, index: usize, size: usize) -> ControlError {
    ControlError::InvalidArgument(format!("{what} '{name}' has {size} cells, there is no cell {index}"))
}

impl Switch {
    fn counter_info(&self, counter: CounterId) -> Control<&CounterInfo> {
        let info = self
            .program
            .counters
            .get(counter.index())
            .ok_or_else(|| ControlError::NotFound(format!("there is no counter number {}", counter.0)))?;
        if info.table.is_some() {
            return Err(ControlError::InvalidArgument(format!(
                "counter '{}' is direct, it is reached through the entries of its table",
                info.name
            )));
        }
        Ok(info)
    }

    /// One cell of an indirect counter.
    pub fn counter_read(&self, counter: CounterId, index: usize) -> Control<CounterData> {
        let info = self.counter_info(counter)?;
        let cells = &self.rt.state.counters[counter.index()];
        cells.get(index).copied().ok_or_else(|| out_of_bounds("counter", &info.name, index, cells.len()))
    }

    /// Sets one cell of an indirect counter.
    pub fn counter_write(&mut self, counter: CounterId, index: usize, data: CounterData) -> Control<()> {
        let name = self.counter_info(counter)?.name.clone();
        let cells = &mut self.rt.state.counters[counter.index()];
        let size = cells.len();
        *cells.get_mut(index).ok_or_else(|| out_of_bounds("counter", &name, index, size))? = data;
        Ok(())
    }

    /// Sets the direct counter of an entry.
    pub fn direct_counter_write(&mut self, table: TableId, key: &[KeyMatch], priority: i32, data: CounterData) -> Control<()> {
        let info = self.table_info(table)?;
        if info.direct_counter.is_none() {
            return Err(ControlError::InvalidArgument(format!("table '{}' has no direct counter", info.name)));
        }
        let at = self.find_entry(table, key, priority)?;
        if let Some(watch) = self.rt.state.tables[table.index()].watch_mut(at) {
            watch.counter = data;
        }
        Ok(())
    }

    fn meter_cell(&self, meter: MeterId, index: usize) -> Control<&Meter> {
        let info = self
            .program
            .meters
            .get(meter.index())
            .ok_or_else(|| ControlError::NotFound(format!("there is no meter number {}", meter.0)))?;
        if info.table.is_some() {
            return Err(ControlError::InvalidArgument(format!(
                "meter '{}' is direct, it is reached through the entries of its table",
                info.name
            )));
        }
        let cells = &self.rt.state.meters[meter.index()];
        cells.get(index).ok_or_else(|| out_of_bounds("meter", &info.name, index, cells.len()))
    }

    /// One cell's rates; `None` when not configured (all packets are green).
    pub fn meter_read(&self, meter: MeterId, index: usize) -> Control<Option<MeterConfig>> {
        Ok(self.meter_cell(meter, index)?.config())
    }

    fn check_rates(config: &Option<MeterConfig>) -> Control<()> {
        match config {
            Some(c) if c.is_inverted() => {
                Err(ControlError::InvalidArgument(format!("the committed rate {} is above the peak rate {}", c.cir, c.pir)))
            }
            _ => Ok(()),
        }
    }

    /// Sets one cell's rates, with full buckets; `None` puts back the unconfigured state.
    pub fn meter_write(&mut self, now: Nanos, meter: MeterId, index: usize, config: Option<MeterConfig>) -> Control<()> {
        Self::check_rates(&config)?;
        self.meter_cell(meter, index)?;
        self.rt.state.meters[meter.index()][index].set(now, config);
        Ok(())
    }

    /// Sets the direct meter of an entry.
    pub fn direct_meter_write(
        &mut self,
        now: Nanos,
        table: TableId,
        key: &[KeyMatch],
        priority: i32,
        config: Option<MeterConfig>,
    ) -> Control<()> {
        let info = self.table_info(table)?;
        if info.direct_meter.is_none() {
            return Err(ControlError::InvalidArgument(format!("table '{}' has no direct meter", info.name)));
        }
        Self::check_rates(&config)?;
        let at = self.find_entry(table, key, priority)?;
        if let Some(meter) = self.rt.state.tables[table.index()].meter_mut(at) {
            meter.set(now, config);
        }
        Ok(())
    }

    fn register_range(&self, register: RegisterId, first: usize, count: usize) -> Control<(&RegisterInfo, &Register)> {
        let info = self
            .program
            .registers
            .get(register.index())
            .ok_or_else(|| ControlError::NotFound(format!("there is no register number {}", register.0)))?;
        match first.checked_add(count) {
            Some(end) if end <= info.size => Ok((info, &self.rt.state.registers[register.index()])),
            _ => Err(out_of_bounds("register", &info.name, first.max(info.size), info.size)),
        }
    }

    /// One cell of a register.
    pub fn register_read(&self, register: RegisterId, index: usize) -> Control<Value> {
        let (_, reg) = self.register_range(register, index, 1)?;
        Ok(Value::from_limbs(reg.limbs_at(index as u64).unwrap_or(&[])))
    }

    /// `count` cells from `first` on.
    pub fn register_read_range(&self, register: RegisterId, first: usize, count: usize) -> Control<Vec<Value>> {
        let (_, reg) = self.register_range(register, first, count)?;
        Ok((first..first + count).map(|i| Value::from_limbs(reg.limbs_at(i as u64).unwrap_or(&[]))).collect())
    }

    /// Sets one cell; the value must fit the register's width.
    pub fn register_write(&mut self, register: RegisterId, index: usize, value: &Value) -> Control<()> {
        self.register_write_range(register, index, 1, value)
    }

    /// Sets `count` cells from `first` on to one value.
    pub fn register_write_range(&mut self, register: RegisterId, first: usize, count: usize, value: &Value) -> Control<()> {
        let (info, _) = self.register_range(register, first, count)?;
        if value.bit_len() > info.width {
            return Err(ControlError::InvalidArgument(format!(
                "register '{}': {value} needs {} bits, the width is {}",
                info.name,
                value.bit_len(),
                info.width
            )));
        }
        let reg = &mut self.rt.state.registers[register.index()];
        for i in first..first + count {
            if let Some(cell) = reg.limbs_at_mut(i as u64) {
                value.write_limbs(cell);
            }
        }
        Ok(())
    }

    fn value_set_info(&self, set: ValueSetId) -> Control<&ValueSetInfo> {
        self.program.value_sets.get(set.index()).ok_or_else(|| ControlError::NotFound(format!("there is no value set number {}", set.0)))
    }

    /// Sets the parameters of the calculation with this name, which has to be a custom CRC of that width; they outlive
    /// [`Switch::reset`].
    pub fn set_crc(&mut self, calculation: &str, config: CrcConfig) -> Control<()> {
        let wanted = match config.width {
            16 => Algo::Crc16Custom,
            32 => Algo::Crc32Custom,
            width => return Err(ControlError::InvalidArgument(format!("a custom CRC has 16 or 32 bits, not {width}"))),
        };
        let named = |c: &Calculation| !calculation.is_empty() && c.name == calculation;
        match self.program.ir.calculations.iter().enumerate().find(|(_, c)| named(c)) {
            None => Err(ControlError::NotFound(format!("there is no calculation '{calculation}'"))),
            Some((_, c)) if c.algo != wanted => {
                Err(ControlError::FailedPrecondition(format!("calculation '{calculation}' is no custom CRC of {} bits", config.width)))
            }
            Some((at, _)) => {
                self.rt.state.custom_crcs.insert(at as u32, CustomCrc::new(config));
                Ok(())
            }
        }
    }

    /// The members of a parser value set.
    pub fn value_set(&self, set: ValueSetId) -> Control<Vec<ValueSetMember>> {
        self.value_set_info(set)?;
        Ok(self.rt.state.value_sets[set.index()].clone())
    }

    /// Replaces the members of a parser value set.
    pub fn set_value_set(&mut self, set: ValueSetId, members: Vec<ValueSetMember>) -> Control<()> {
        let info = self.value_set_info(set)?;
        for m in &members {
            if m.value.bit_len() > info.width || m.mask.bit_len() > info.width {
                return Err(ControlError::InvalidArgument(format!(
                    "value set '{}' is {} bits wide, the member {} with mask {} is not",
                    info.name, info.width, m.value, m.mask
                )));
            }
        }
        if info.max_size.is_some_and(|max| members.len() > max) {
            return Err(ControlError::ResourceExhausted(format!(
                "value set '{}' holds {} values, {} are too many",
                info.name,
                info.max_size.unwrap_or(0),
                members.len()
            )));
        }
        self.rt.state.value_sets[set.index()] = members;
        Ok(())
    }
}
