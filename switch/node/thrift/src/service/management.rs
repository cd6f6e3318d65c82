//! The rest of the service `standard`: programs, identity, hashes.

use fairlane_device::pipeline::{ControlError, CrcConfig};

use super::codes;
use super::{Answer, Call, Failure};
use crate::value::{Fields, Value};

impl Call<'_> {
    pub(super) fn management(&mut self, method: &str) -> Answer {
        match method {
            "mgmt_get_info" => Ok(Some(self.info_value())),
            "get_config" => Ok(Some(Value::text(self.config()))),
            "get_config_md5" => Ok(Some(Value::Bytes(md5::compute(self.config()).0.to_vec()))),
            "get_id_from_name" => self.id_of_name(),
            "reset_state" => {
                if let Some(switch) = self.device.switch_mut() {
                    switch.reset().map_err(|error| Failure::Impossible(error.to_string()))?;
                }
                self.core.replication.reset();
                Ok(None)
            }
            "swap_configs" => self.swap(),
            "set_crc16_custom_parameters" => {
                let config = self.args.fields(3)?;
                let bits = |number| -> Result<u32, Failure> { Ok(u32::from(config.i16(number)? as u16)) };
                self.set_crc(16, [bits(1)?, bits(2)?, bits(3)?], config)
            }
            "set_crc32_custom_parameters" => {
                let config = self.args.fields(3)?;
                let bits = |number| -> Result<u32, Failure> { Ok(config.i32(number)? as u32) };
                self.set_crc(32, [bits(1)?, bits(2)?, bits(3)?], config)
            }
            // v1model has no calculation of this kind, so that the name is either unknown or of another.
            "set_toeplitz_hash_key" => {
                self.check_context()?;
                let name = self.args.string(2)?;
                let known = self.device.switch().is_some_and(|switch| switch.program().has_calculation(name));
                Err(Failure::Refused(if known { codes::calculation::WRONG_TYPE } else { codes::calculation::INVALID_NAME }))
            }
            "serialize_state" => Err(Failure::Impossible("this switch does not write BMv2's state files: read its tables instead".into())),
            _ => Err(Failure::UnknownMethod),
        }
    }

    fn config(&self) -> &str {
        self.device.switch().map_or("", |switch| switch.program().source())
    }

    fn info_value(&self) -> Value {
        let identity = &self.core.identity;
        let mut info = Fields::new([(1, Value::I64(identity.device_id as i64)), (2, Value::I32(i32::from(identity.thrift_port)))]);
        info.push(3, Value::text(identity.notifications.clone().unwrap_or_default()));
        identity.event_log.iter().for_each(|address| info.push(4, Value::text(address.clone())));
        Value::Struct(info)
    }

    fn set_crc(&mut self, width: u32, [polynomial, initial_remainder, final_xor_value]: [u32; 3], config: &Fields) -> Answer {
        use codes::calculation::{INVALID_NAME, WRONG_TYPE};
        self.check_context()?;
        let name = self.args.string(2)?.to_string();
        let (data_reflected, remainder_reflected) = (config.bool(4)?, config.bool(5)?);
        let config = CrcConfig { width, polynomial, initial_remainder, final_xor_value, data_reflected, remainder_reflected };
        match self.switch_mut(INVALID_NAME)?.set_crc(&name, config) {
            Ok(()) => Ok(None),
            Err(ControlError::FailedPrecondition(_)) => Err(Failure::Refused(WRONG_TYPE)),
            Err(_) => Err(Failure::Refused(INVALID_NAME)),
        }
    }

    fn id_of_name(&self) -> Answer {
        use codes::lookup::{INVALID_NAME, INVALID_TYPE};
        self.check_context()?;
        let (kind, name) = (self.args.i32(2)?, self.args.string(3)?);
        let program = self.switch(INVALID_NAME)?.program();
        let id = match kind {
            0 => program.table_by_name(name).and_then(|id| program.table(id)).map(|info| info.json_id),
            1 => program.profile_by_name(name).and_then(|id| program.profile(id)).map(|info| info.json_id),
            2 => program.counter_by_name(name).and_then(|id| program.counter(id)).map(|info| info.json_id),
            3 => program.meter_by_name(name).and_then(|id| program.meter(id)).map(|info| info.json_id),
            4 => program.register_by_name(name).and_then(|id| program.register(id)).map(|info| info.json_id),
            5 => program.digest_by_name(name).and_then(|id| program.digest(id)).map(|info| info.json_id),
            _ => return Err(Failure::Refused(INVALID_TYPE)),
        };
        Ok(Some(Value::I32(id.ok_or(Failure::Refused(INVALID_NAME))? as i32)))
    }

    fn swap(&mut self) -> Answer {
        if !self.core.identity.swap {
            return Err(Failure::Refused(codes::swap::DISABLED));
        }
        let Some(mut fresh) = self.core.staged.take() else { return Err(Failure::Refused(codes::swap::NONE_ONGOING)) };
        self.core.replication.reset();
        self.device.exchange(self.now, &mut fresh);
        self.core.retired = Some(fresh);
        Ok(None)
    }
}
