//! `SetForwardingPipelineConfig` and `GetForwardingPipelineConfig`: what a client pushes, checked.

use std::sync::{Arc, Mutex, Weak};

use fairlane_pipeline::Program;
use prost::Message;

use crate::digest::Digests;
use crate::entity::Notes;
use crate::limits::Limits;
use crate::model::Model;
use crate::proto::p4::config::v1::P4Info;
use crate::proto::p4::v1 as p4;
use crate::status::{Result, Status};

use p4::get_forwarding_pipeline_config_request::ResponseType;

/// A pipeline configuration, and what belongs to it beside the switch.
#[derive(Debug)]
pub(crate) struct PipelineConfig {
    pub message: p4::ForwardingPipelineConfig,
    pub model: Arc<Model>,
    pub notes: Notes,
    pub digests: Digests,
    pub limits: Limits,
}

/// The wrapping of device configurations that PI once used and that the P4 tutorials' Python library still writes.
#[derive(Clone, PartialEq, Message)]
struct LegacyDeviceConfig {
    #[prost(bool, tag = "1")]
    reassign: bool,
    #[prost(bytes = "vec", tag = "3")]
    device_data: Vec<u8>,
}

impl PipelineConfig {
    /// Checks a configuration: the device configuration is BMv2 JSON that can be run, and P4Info fits it.
    ///
    /// # Errors
    /// INVALID_ARGUMENT with the first thing that is wrong.
    pub fn verify(message: Option<&p4::ForwardingPipelineConfig>, limits: Limits) -> Result<PipelineConfig> {
        let message = message.ok_or_else(|| Status::invalid("config is not set"))?;
        let info = message.p4info.as_ref().ok_or_else(|| Status::invalid("config.p4info is not set"))?;
        if message.p4_device_config.is_empty() {
            return Err(Status::invalid("config.p4_device_config is empty: it must be the BMv2 JSON of the program"));
        }
        let model = Known::of(message).map_or_else(|| read(message, info), Ok)?;
        Ok(PipelineConfig {
            message: message.clone(),
            model,
            notes: Notes::default(),
            digests: Digests::new(limits.max_digest_backlog),
            limits,
        })
    }

    /// The parts of the configuration that a client asks for.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for an unknown response type.
    pub fn respond(&self, response_type: i32) -> Result<p4::ForwardingPipelineConfig> {
        let kind =
            ResponseType::try_from(response_type).map_err(|_| Status::invalid(format!("response_type {response_type} is unknown")))?;
        let mut config = p4::ForwardingPipelineConfig { cookie: self.message.cookie, ..Default::default() };
        if matches!(kind, ResponseType::All | ResponseType::P4infoAndCookie) {
            config.p4info = self.message.p4info.clone();
        }
        if matches!(kind, ResponseType::All | ResponseType::DeviceConfigAndCookie) {
            config.p4_device_config = self.message.p4_device_config.clone();
        }
        Ok(config)
    }
}

/// The configuration that was read last, and what it says while some switch has it.
struct Known {
    message: p4::ForwardingPipelineConfig,
    model: Weak<Model>,
}

/// In a network in virtual time all switches get the same one, and reading it takes longer than all else before the first packet.
static LAST: Mutex<Option<Known>> = Mutex::new(None);

impl Known {
    fn of(message: &p4::ForwardingPipelineConfig) -> Option<Arc<Model>> {
        let last = LAST.lock().ok()?;
        let known = last.as_ref().filter(|known| known.message.p4_device_config == message.p4_device_config)?;
        (known.message.p4info == message.p4info).then(|| known.model.upgrade()).flatten()
    }
}

/// What a configuration says.
fn read(message: &p4::ForwardingPipelineConfig, info: &P4Info) -> Result<Arc<Model>> {
    let json = device_json(&message.p4_device_config)?;
    let program = Program::from_json(&json).map_err(|error| {
        let refuse = if error.too_large { Status::exhausted } else { Status::invalid };
        refuse(format!("config.p4_device_config: {error}"))
    })?;
    let model = Model::new(info, Arc::new(program)).map_err(|text| Status::invalid(format!("config.p4info: {text}")))?;
    let model = Arc::new(model);
    if let Ok(mut last) = LAST.lock() {
        *last = Some(Known { message: message.clone(), model: Arc::downgrade(&model) });
    }
    Ok(model)
}

/// The JSON text of a device configuration.
fn device_json(bytes: &[u8]) -> Result<String> {
    let is_json = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    let wrapped = match is_json {
        true => None,
        // A message of this form cannot begin with `{`: that would be field 15.
        false => LegacyDeviceConfig::decode(bytes).ok().map(|legacy| legacy.device_data).filter(|data| !data.is_empty()),
    };
    String::from_utf8(wrapped.unwrap_or_else(|| bytes.to_vec())).map_err(|error| {
        Status::invalid(format!(
            "config.p4_device_config is not text (byte {}): it must be the BMv2 JSON of the program",
            error.utf8_error().valid_up_to()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_comes_bare_or_wrapped() {
        let json = b" {\"a\": 1}".to_vec();
        assert_eq!(device_json(&json).as_deref(), Ok(" {\"a\": 1}"));
        let legacy = LegacyDeviceConfig { reassign: true, device_data: json };
        assert_eq!(device_json(&legacy.encode_to_vec()).as_deref(), Ok(" {\"a\": 1}"));
        assert!(device_json(&[0xff, 0xfe]).unwrap_err().message.contains("byte 0"));
    }
}
