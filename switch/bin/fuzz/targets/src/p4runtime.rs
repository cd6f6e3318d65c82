//! A P4Runtime client that says anything: entries that fit the program, messages of any content, bytes that are no message.

use arbitrary::{Result, Unstructured};
use fairlane_device::{Device, DeviceConfig, PortConfig};
use fairlane_p4rt::proto::p4::config::v1 as config;
use fairlane_p4rt::proto::p4::v1 as p4;
use fairlane_p4rt::{ClientId, Core};
use prost::Message;

use p4::entity::Entity as Kind;
use p4::field_match::FieldMatchType;
use p4::stream_message_request::Update as Request;
use p4::update::Type;

use crate::messages::Messages;
use crate::programs::{self, Compiled};

const CPU_PORT: u32 = 510;
const DEVICE: u64 = 1;
const CLIENT: ClientId = ClientId(1);
const ELECTION: Option<p4::Uint128> = Some(p4::Uint128 { high: 0, low: 1 });

/// The bytes choose a program and say what the client does.
pub fn session(data: &[u8]) {
    let mut bytes = Unstructured::new(data);
    let _ = run(&mut bytes);
}

struct Session {
    core: Core,
    device: Device,
    now: u64,
    messages: Messages,
    compiled: &'static Compiled,
}

fn run(bytes: &mut Unstructured) -> Result<()> {
    let compiled = programs::choose(bytes.arbitrary()?);
    let mut device = Device::new(DeviceConfig { cpu_port: Some(CPU_PORT), max_passes: 8, ..DeviceConfig::default() });
    for port in 0..4 {
        device.set_port(port, PortConfig::default()).expect("a port without a rate");
    }
    let mut session = Session { core: Core::new(DEVICE, 0), device, now: 1, messages: Messages::of(&compiled.p4info), compiled };
    session.arbitrate();
    session.push(compiled, p4::set_forwarding_pipeline_config_request::Action::VerifyAndCommit as i32);
    while !bytes.is_empty() {
        session.step(bytes)?;
    }
    session.write_back();
    Ok(())
}

impl Session {
    fn arbitrate(&mut self) {
        let update = p4::MasterArbitrationUpdate { device_id: DEVICE, election_id: ELECTION, ..Default::default() };
        let message = p4::StreamMessageRequest { update: Some(Request::Arbitration(update)) };
        self.core.stream_message(CLIENT, message, &mut self.device, self.now);
    }

    fn push(&mut self, compiled: &Compiled, action: i32) {
        let request = p4::SetForwardingPipelineConfigRequest {
            device_id: DEVICE,
            election_id: ELECTION,
            action,
            config: Some(p4::ForwardingPipelineConfig {
                p4info: Some(compiled.p4info.clone()),
                p4_device_config: compiled.json.to_string().into_bytes(),
                cookie: None,
            }),
            ..Default::default()
        };
        let _ = self.core.set_pipeline(&request, &mut self.device, self.now);
    }

    fn step(&mut self, bytes: &mut Unstructured) -> Result<()> {
        match bytes.int_in_range(0..=15u8)? {
            0..=4 => {
                let mut updates = Vec::new();
                for _ in 0..bytes.int_in_range(1..=3u8)? {
                    let entity = table_entry(&self.compiled.p4info, bytes)?;
                    updates.push(update(Kind::TableEntry(entity), bytes)?);
                }
                self.write(updates, bytes.int_in_range(0..=2)?);
            }
            5..=8 => {
                let request = self.messages.any("p4.v1.WriteRequest", bytes)?;
                if let Ok(request) = p4::WriteRequest::decode(request.as_slice()) {
                    self.write(request.updates, request.atomicity);
                }
            }
            9 => {
                let request = self.messages.any("p4.v1.ReadRequest", bytes)?;
                let _ = self.core.read_bytes(&request, &mut self.device, self.now);
            }
            10 => {
                let message = self.messages.any("p4.v1.StreamMessageRequest", bytes)?;
                let output = self.core.stream_bytes(CLIENT, &message, &mut self.device, self.now);
                if output.is_ok_and(|output| output.terminate.is_some()) {
                    self.arbitrate();
                }
            }
            11 => {
                let length = bytes.arbitrary_len::<u8>()?.min(300);
                let raw = bytes.bytes(length)?;
                match raw.len() % 4 {
                    0 => drop(self.core.write_bytes(raw, &mut self.device, self.now)),
                    1 => drop(self.core.read_bytes(raw, &mut self.device, self.now)),
                    2 => drop(self.core.set_pipeline_bytes(raw, &mut self.device, self.now)),
                    _ => drop(self.core.stream_bytes(CLIENT, raw, &mut self.device, self.now)),
                }
            }
            12 => {
                if bytes.ratio(1, 8)? {
                    self.compiled = programs::choose(bytes.arbitrary()?);
                    self.messages = Messages::of(&self.compiled.p4info);
                }
                self.push(self.compiled, bytes.int_in_range(0..=6)?);
            }
            _ => {
                let port = bytes.int_in_range(0..=4u32)?;
                let length = bytes.int_in_range(0..=120usize)?.min(bytes.len());
                self.device.receive(self.now, if port == 4 { CPU_PORT } else { port }, bytes.bytes(length)?);
                self.now += u64::from(bytes.arbitrary::<u32>().unwrap_or(0));
                let mut frames = Vec::new();
                self.device.poll(self.now, &mut frames);
                let events = self.device.take_events();
                self.core.on_device_events(events, self.now);
                self.core.tick(self.now);
            }
        }
        Ok(())
    }

    fn write(&mut self, updates: Vec<p4::Update>, atomicity: i32) {
        let request = p4::WriteRequest { device_id: DEVICE, election_id: ELECTION, updates, atomicity, ..Default::default() };
        let _ = self.core.write_bytes(&request.encode_to_vec(), &mut self.device, self.now);
    }

    /// What a read gives of the tables can be written again as it is.
    fn write_back(&mut self) {
        let entities = vec![p4::Entity { entity: Some(Kind::TableEntry(Default::default())) }];
        let request = p4::ReadRequest { device_id: DEVICE, entities, ..Default::default() };
        let output = self.core.read(&request, &mut self.device, self.now);
        for entity in output.responses.into_iter().flat_map(|response| response.entities) {
            let Some(Kind::TableEntry(mut entry)) = entity.entity else { continue };
            if entry.is_const {
                continue;
            }
            entry.time_since_last_hit = None;
            let shown = format!("{entry:?}");
            let entity = Some(p4::Entity { entity: Some(Kind::TableEntry(entry)) });
            let updates = vec![p4::Update { r#type: Type::Modify as i32, entity }];
            let request = p4::WriteRequest { device_id: DEVICE, election_id: ELECTION, updates, ..Default::default() };
            if let Err(error) = self.core.write(&request, &mut self.device, self.now) {
                // A session that is no longer primary may not write.
                assert_eq!(error.code, fairlane_p4rt::Code::PermissionDenied, "{shown}, as it was read, is refused: {error:?}");
            }
        }
    }
}

fn update(entity: Kind, bytes: &mut Unstructured) -> Result<p4::Update> {
    let kind = if bytes.ratio(3, 4)? { Type::Insert as i32 } else { bytes.int_in_range(0..=4)? };
    Ok(p4::Update { r#type: kind, entity: Some(p4::Entity { entity: Some(entity) }) })
}

fn raw(bits: i32, bytes: &mut Unstructured) -> Result<Vec<u8>> {
    let length = (bits.max(1) as usize).div_ceil(8).min(20);
    let length = if bytes.ratio(1, 32)? { length + 1 } else { bytes.int_in_range(1..=length)? }.min(bytes.len());
    let mut value = bytes.bytes(length)?.to_vec();
    if let (Some(first), true) = (value.first_mut(), length == (bits.max(1) as usize).div_ceil(8) && bits % 8 != 0) {
        *first &= 0xff >> (8 - bits % 8);
    }
    Ok(value)
}

/// An entry that mostly fits one of the program's tables.
fn table_entry(info: &config::P4Info, bytes: &mut Unstructured) -> Result<p4::TableEntry> {
    if info.tables.is_empty() {
        return Ok(Default::default());
    }
    let table = &info.tables[bytes.choose_index(info.tables.len())?];
    let mut fields = Vec::new();
    for field in &table.match_fields {
        if bytes.ratio(1, 12)? {
            continue;
        }
        let value = raw(field.bitwidth, bytes)?;
        let kind = match field.r#match {
            Some(config::match_field::Match::MatchType(kind)) => kind,
            _ => 0,
        };
        let kind = match config::match_field::MatchType::try_from(kind) {
            Ok(config::match_field::MatchType::Exact) => FieldMatchType::Exact(p4::field_match::Exact { value }),
            Ok(config::match_field::MatchType::Lpm) => {
                let prefix_len = bytes.int_in_range(0..=field.bitwidth)?;
                let value = if bytes.ratio(1, 2)? { vec![0] } else { value };
                FieldMatchType::Lpm(p4::field_match::Lpm { value, prefix_len })
            }
            Ok(config::match_field::MatchType::Ternary) => FieldMatchType::Ternary(p4::field_match::Ternary { mask: value.clone(), value }),
            Ok(config::match_field::MatchType::Range) => FieldMatchType::Range(p4::field_match::Range { low: vec![0], high: value }),
            _ => FieldMatchType::Optional(p4::field_match::Optional { value }),
        };
        fields.push(p4::FieldMatch { field_id: field.id, field_match_type: Some(kind) });
    }
    let action = action(info, table, bytes)?;
    let needs_priority = table.match_fields.iter().any(|field| {
        use config::match_field::{Match, MatchType};
        matches!(field.r#match, Some(Match::MatchType(kind)) if kind != MatchType::Exact as i32 && kind != MatchType::Lpm as i32)
    });
    let default = table.match_fields.is_empty() || bytes.ratio(1, 12)?;
    Ok(p4::TableEntry {
        table_id: table.preamble.as_ref().map_or(0, |preamble| preamble.id),
        r#match: if default { Vec::new() } else { fields },
        action: Some(action),
        priority: if needs_priority && !default { bytes.int_in_range(1..=4)? } else { 0 },
        is_default_action: default,
        idle_timeout_ns: if bytes.ratio(1, 16)? { bytes.arbitrary::<i32>()?.into() } else { 0 },
        ..Default::default()
    })
}

fn action(info: &config::P4Info, table: &config::Table, bytes: &mut Unstructured) -> Result<p4::TableAction> {
    use p4::table_action::Type;
    let call = call(info, table, bytes)?;
    let weight = bytes.int_in_range(0..=3)?;
    let kind = if table.implementation_id == 0 {
        Type::Action(call)
    } else {
        match bytes.int_in_range(0..=3u8)? {
            0 => Type::ActionProfileMemberId(bytes.int_in_range(0..=3)?),
            1 => Type::ActionProfileGroupId(bytes.int_in_range(0..=3)?),
            _ => Type::ActionProfileActionSet(p4::ActionProfileActionSet {
                action_profile_actions: vec![p4::ActionProfileAction { action: Some(call), weight, watch_kind: None }],
                ..Default::default()
            }),
        }
    };
    Ok(p4::TableAction { r#type: Some(kind) })
}

fn call(info: &config::P4Info, table: &config::Table, bytes: &mut Unstructured) -> Result<p4::Action> {
    if table.action_refs.is_empty() {
        return Ok(Default::default());
    }
    let id = table.action_refs[bytes.choose_index(table.action_refs.len())?].id;
    let known = info.actions.iter().find(|action| action.preamble.as_ref().is_some_and(|preamble| preamble.id == id));
    let mut params = Vec::new();
    for param in known.map_or(&[][..], |action| &action.params) {
        params.push(p4::action::Param { param_id: param.id, value: raw(param.bitwidth, bytes)? });
    }
    Ok(p4::Action { action_id: id, params })
}
