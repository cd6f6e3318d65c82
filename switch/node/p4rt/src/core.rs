//! The P4Runtime service of one device as a state machine: requests and events in, responses and stream messages out.
//!
//! Nothing here opens a socket, reads a clock or blocks. The gRPC server ([`crate::server`]) calls it on the thread that owns the
//! device; a simulation calls it directly, with messages or with their bytes.

use fairlane_device::{Device, DeviceConfig, Event};
use fairlane_pipeline::Nanos;
use prost::Message;

use crate::arbitration::{Arbitration, ClientId, Notification, RoleKey};
use crate::entity::{idle_message, Batch, Target, Window, UPDATE_COST};
use crate::limits::Limits;
use crate::packet_io;
use crate::pipeline_config::PipelineConfig;
use crate::proto::p4::v1 as p4;
use crate::status::{Result, Status};

use p4::set_forwarding_pipeline_config_request::Action;
use p4::stream_error::Details;
use p4::stream_message_request::Update as Request;
use p4::stream_message_response::Update as Response;
use p4::write_request::Atomicity;

/// The version of P4Runtime that this service speaks.
pub const API_VERSION: &str = "1.4.1";

/// Entities in one message of a read.
const ENTITIES_PER_RESPONSE: usize = 256;

/// Cells, entries and other things in one part of a read: some tenths of a millisecond of the device's thread.
const READ_PART: usize = 512;

/// The same for a write, in cells; an update takes [`UPDATE_COST`] of them.
const WRITE_PART: usize = 256 * UPDATE_COST;

/// Updates, and cells, that are changed between two packets because a batch asks for that.
const MOST_AT_ONCE: usize = 1024;

/// What a message on a stream leads to.
#[derive(Debug, Default, PartialEq)]
pub struct StreamOutput {
    /// Messages to send, in order.
    pub messages: Vec<Notification>,
    /// Close this client's stream with the status. The client is disconnected already.
    pub terminate: Option<Status>,
}

/// What a read gives: the entities that could be read, and how it went.
#[derive(Debug)]
pub struct ReadOutput {
    /// Messages to stream, in order.
    pub responses: Vec<p4::ReadResponse>,
    /// The status that ends the stream.
    pub status: Result<()>,
}

/// How far a read in parts has come.
#[derive(Debug, Default)]
pub struct ReadProgress {
    /// Index of the entity of the request that is read next, and how far.
    entity: usize,
    window: Window,
    outcomes: Vec<Result<()>>,
}

/// How far a write in parts has come.
#[derive(Debug, Default)]
pub struct WriteProgress {
    /// How updates are applied; `None` before the request is checked.
    mode: Option<Atomicity>,
    window: Window,
    /// Of the updates tried, where each counts for itself.
    outcomes: Vec<Result<()>>,
    /// Where all count, or none.
    batch: Batch,
    /// Why the request was refused, or could not go on.
    refused: Option<Status>,
}

impl WriteProgress {
    /// The status of a request that is over. May take long where there are many updates: not for the device's thread.
    ///
    /// # Errors
    /// As [`Core::write`].
    pub fn finish(mut self, request: &p4::WriteRequest) -> Result<()> {
        let updates = request.updates.len();
        let outcomes = match (self.refused, self.mode) {
            (Some(status), Some(Atomicity::ContinueOnError)) => {
                self.outcomes.resize(updates, Err(status));
                self.outcomes
            }
            (Some(status), _) => return Err(status),
            (None, Some(Atomicity::ContinueOnError)) => self.outcomes,
            (None, _) => self.batch.outcomes(updates),
        };
        Status::of_batch("update", outcomes)
    }
}

/// What a pipeline is made of, read and built away from the device's thread ([`Core::prepare_pipeline`]).
#[derive(Debug)]
pub struct PreparedPipeline {
    /// With a device that has it loaded; or why it is none.
    built: Result<(PipelineConfig, Box<Device>)>,
}

/// What a pipeline's replacement leaves behind. Dropping it may take long, where tables were large.
#[derive(Debug, Default)]
pub struct Retired {
    _device: Option<Box<Device>>,
    _config: Option<PipelineConfig>,
    _saved: Option<Box<Saved>>,
}

/// A configuration saved by VERIFY_AND_SAVE: reads and writes go to a device of its own until it is committed.
#[derive(Debug)]
struct Saved {
    config: PipelineConfig,
    device: Box<Device>,
}

/// The service of one device. See the module.
#[derive(Debug)]
pub struct Core {
    arbitration: Arbitration,
    /// Nanoseconds since the Unix epoch at the device's instant 0, for timestamps.
    epoch: Nanos,
    committed: Option<PipelineConfig>,
    saved: Option<Box<Saved>>,
    limits: Limits,
}

impl Core {
    /// A service without pipeline or clients. `epoch` is added to the device's time in timestamps (0: they are the device's time).
    pub fn new(device_id: u64, epoch: Nanos) -> Core {
        Core { arbitration: Arbitration::new(device_id), epoch, committed: None, saved: None, limits: Limits::default() }
    }

    /// The same with other limits than the default.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Core {
        Core { limits, ..self }
    }

    // Streams

    /// A message came in on a client's stream. The first must be an arbitration update.
    pub fn stream_message(&mut self, client: ClientId, message: p4::StreamMessageRequest, device: &mut Device, now: Nanos) -> StreamOutput {
        let (details, result) = match message.update {
            Some(Request::Arbitration(update)) => return self.arbitrate(client, &update),
            Some(Request::Packet(packet)) => {
                let result = self.packet_out(client, &packet, device, now);
                (Some(Details::PacketOut(p4::PacketOutError { packet_out: Some(packet) })), result)
            }
            Some(Request::DigestAck(ack)) => {
                let result = self.digest_ack(client, &ack);
                (Some(Details::DigestListAck(p4::DigestListAckError { digest_list_ack: Some(ack) })), result)
            }
            Some(Request::Other(other)) => {
                let result = Err(Status::unimplemented(format!("messages of type {} are not known here", other.type_url)));
                (Some(Details::Other(p4::StreamOtherError { other: Some(other) })), result)
            }
            None => (None, Err(Status::invalid("the stream message has no update"))),
        };
        let Err(status) = result else { return StreamOutput::default() };
        let error = p4::StreamError { canonical_code: status.code as i32, message: status.message, details, ..Default::default() };
        let message = p4::StreamMessageResponse { update: Some(Response::Error(error)) };
        StreamOutput { messages: vec![(client, message)], terminate: None }
    }

    /// [`Core::stream_message`] for a serialised message.
    ///
    /// # Errors
    /// INVALID_ARGUMENT when the bytes are no message.
    pub fn stream_bytes(&mut self, client: ClientId, bytes: &[u8], device: &mut Device, now: Nanos) -> Result<StreamOutput> {
        Ok(self.stream_message(client, decode(bytes)?, device, now))
    }

    fn arbitrate(&mut self, client: ClientId, update: &p4::MasterArbitrationUpdate) -> StreamOutput {
        if update.role.as_ref().is_some_and(|role| role.config.is_some()) {
            tracing::warn!("the role's config is kept and not enforced: every role has full pipeline access");
        }
        match self.arbitration.update(client, update) {
            Ok(messages) => StreamOutput { messages, terminate: None },
            Err(status) => StreamOutput { messages: self.arbitration.disconnect(client), terminate: Some(status) },
        }
    }

    /// A client's stream is gone. Returns what to tell the others.
    pub fn disconnect(&mut self, client: ClientId) -> Vec<Notification> {
        self.arbitration.disconnect(client)
    }

    fn check_stream(&self, client: ClientId, what: &str) -> Result<&PipelineConfig> {
        if !self.arbitration.is_primary(client) {
            return Err(Status::denied(format!("{what}: only the primary may send it, and this client is not")));
        }
        self.committed.as_ref().ok_or_else(|| Status::precondition(format!("{what}: {}", no_pipeline().message)))
    }

    fn packet_out(&mut self, client: ClientId, packet: &p4::PacketOut, device: &mut Device, now: Nanos) -> Result<()> {
        let config = self.check_stream(client, "packet-out")?;
        let Some(port) = device.config().cpu_port else {
            return Err(Status::precondition("packet-out: the switch was started without a CPU port (--cpu-port)"));
        };
        let frame = packet_io::packet_out(&config.model.packet_out, packet)?;
        device.receive(now, port, &frame);
        Ok(())
    }

    fn digest_ack(&mut self, client: ClientId, ack: &p4::DigestListAck) -> Result<()> {
        self.check_stream(client, "digest list acknowledgement")?;
        match &mut self.committed {
            Some(config) => config.digests.acknowledge(&config.model, ack),
            None => Err(no_pipeline()),
        }
    }

    /// A message for every primary.
    fn to_primaries(&self, update: Response) -> impl Iterator<Item = Notification> + '_ {
        let message = p4::StreamMessageResponse { update: Some(update) };
        self.arbitration.primaries().map(move |client| (client, message.clone()))
    }

    // Events and time

    /// The data plane has something to say. `now` is the instant of the call.
    pub fn on_device_events(&mut self, events: Vec<Event>, now: Nanos) -> Vec<Notification> {
        let mut messages = Vec::new();
        // One notification for the entries of one table that ran out together.
        let mut idle: Vec<p4::TableEntry> = Vec::new();
        for event in events {
            let Some(config) = &mut self.committed else { break };
            let update = match event {
                Event::PacketIn { frame, .. } => match packet_io::packet_in(&config.model.packet_in, &frame) {
                    Some(packet) => Response::Packet(packet),
                    None => {
                        tracing::debug!(bytes = frame.len(), "a frame for the CPU port is shorter than the packet_in header");
                        continue;
                    }
                },
                Event::Digest(digest) => match config.digests.learn(&config.model, digest.list, digest.members, now, self.epoch) {
                    Some(list) => Response::Digest(list),
                    None => continue,
                },
                Event::IdleTimeout { table, entry, .. } => {
                    if let Some(table) = config.model.table_of(table) {
                        let entry = idle_message(&config.notes, table, entry);
                        if idle.first().is_some_and(|first| first.table_id != entry.table_id) {
                            messages.extend(self.idle_notification(std::mem::take(&mut idle), now));
                        }
                        idle.push(entry);
                    }
                    continue;
                }
            };
            messages.extend(self.to_primaries(update));
        }
        if !idle.is_empty() {
            messages.extend(self.idle_notification(idle, now));
        }
        messages
    }

    fn idle_notification(&self, table_entry: Vec<p4::TableEntry>, now: Nanos) -> Vec<Notification> {
        let timestamp = i64::try_from(self.epoch.saturating_add(now)).unwrap_or(i64::MAX);
        self.to_primaries(Response::IdleTimeoutNotification(p4::IdleTimeoutNotification { table_entry, timestamp })).collect()
    }

    /// Sends the digests whose time has come.
    pub fn tick(&mut self, now: Nanos) -> Vec<Notification> {
        let Some(config) = &mut self.committed else { return Vec::new() };
        let lists = config.digests.tick(&config.model, now, self.epoch);
        lists.into_iter().flat_map(|list| self.to_primaries(Response::Digest(list)).collect::<Vec<_>>()).collect()
    }

    /// When [`Core::tick`] has something to do; `None` when only an event or a request can change that.
    pub fn next_deadline(&self) -> Option<Nanos> {
        self.committed.as_ref()?.digests.next_deadline()
    }

    // Requests

    /// `Write`.
    ///
    /// # Errors
    /// The status of the request, with one detail for each update when updates were tried.
    pub fn write(&mut self, request: &p4::WriteRequest, device: &mut Device, now: Nanos) -> Result<()> {
        let mut progress = WriteProgress::default();
        while !self.write_part(request, &mut progress, usize::MAX, device, now) {}
        progress.finish(request)
    }

    /// A part of a `Write`, so that many updates do not hold up the device's thread. True after the last, when
    /// [`WriteProgress::finish`] knows the outcome. Nothing else may be written between the parts.
    pub fn write_next(&mut self, request: &p4::WriteRequest, progress: &mut WriteProgress, device: &mut Device, now: Nanos) -> bool {
        self.write_part(request, progress, WRITE_PART, device, now)
    }

    fn write_part(
        &mut self,
        request: &p4::WriteRequest,
        progress: &mut WriteProgress,
        most: usize,
        device: &mut Device,
        now: Nanos,
    ) -> bool {
        match self.try_write_part(request, progress, most, device, now) {
            Ok(over) => over,
            Err(status) => {
                progress.refused = Some(status);
                true
            }
        }
    }

    fn try_write_part(
        &mut self,
        request: &p4::WriteRequest,
        progress: &mut WriteProgress,
        most: usize,
        device: &mut Device,
        now: Nanos,
    ) -> Result<bool> {
        let Some(mode) = progress.mode else {
            let role = RoleKey::new(&request.role, role_id(request));
            self.arbitration.check_primary(request.device_id, &role, request.election_id.as_ref())?;
            let mode = Atomicity::try_from(request.atomicity)
                .map_err(|_| Status::invalid(format!("atomicity {} is unknown", request.atomicity)))?;
            check_atomicity(mode, &request.updates, &self.target(device, now)?)?;
            progress.mode = Some(mode);
            return self.try_write_part(request, progress, most, device, now);
        };
        let mut target = self.target(device, now)?;
        progress.window.refill(most);
        match mode {
            Atomicity::ContinueOnError => {
                while let Some(update) = request.updates.get(progress.outcomes.len()) {
                    if progress.window.is_spent() {
                        return Ok(false);
                    }
                    let outcome = target.write_window(update, &mut progress.window);
                    if outcome.is_ok() && progress.window.is_cut() {
                        return Ok(false);
                    }
                    progress.outcomes.push(outcome);
                    progress.window.next_entity();
                    progress.window.spend(UPDATE_COST);
                }
                Ok(true)
            }
            Atomicity::RollbackOnError => Ok(target.write_all_or_none(&request.updates, &mut progress.batch, &mut progress.window)),
            // The device's thread does nothing else meanwhile: packets see the batch before or after, never in between.
            Atomicity::DataplaneAtomic => Ok(target.write_all_or_none(&request.updates, &mut progress.batch, &mut Window::whole())),
        }
    }

    /// `Read`.
    pub fn read(&mut self, request: &p4::ReadRequest, device: &mut Device, now: Nanos) -> ReadOutput {
        let (mut responses, mut progress) = (Vec::new(), ReadProgress::default());
        loop {
            let mut part = self.read_part(request, &mut progress, usize::MAX, device, now);
            responses.append(&mut part.0);
            if let Some(status) = part.1 {
                return ReadOutput { responses, status };
            }
        }
    }

    /// A part of a `Read`, so that a large table or array does not hold up the device's thread: what is read in other parts may be of
    /// other instants. Returns messages to stream, and after the last part the status.
    pub fn read_next(
        &mut self,
        request: &p4::ReadRequest,
        progress: &mut ReadProgress,
        device: &mut Device,
        now: Nanos,
    ) -> (Vec<p4::ReadResponse>, Option<Result<()>>) {
        self.read_part(request, progress, READ_PART, device, now)
    }

    fn read_part(
        &mut self,
        request: &p4::ReadRequest,
        progress: &mut ReadProgress,
        most: usize,
        device: &mut Device,
        now: Nanos,
    ) -> (Vec<p4::ReadResponse>, Option<Result<()>>) {
        let checked = self.arbitration.check_device(request.device_id).and_then(|()| self.target(device, now));
        let target = match checked {
            Ok(target) => target,
            Err(status) => return (Vec::new(), Some(Err(status))),
        };
        let mut entities = Vec::new();
        progress.window.refill(most);
        while let Some(entity) = request.entities.get(progress.entity) {
            let before = entities.len();
            if progress.window.is_spent() {
                return (responses(entities), None);
            }
            let outcome = target.read_window(entity, &mut progress.window, &mut entities);
            if outcome.is_err() {
                entities.truncate(before);
            } else if progress.window.is_cut() {
                return (responses(entities), None);
            }
            progress.outcomes.push(outcome);
            progress.entity += 1;
            progress.window.next_entity();
        }
        (responses(entities), Some(Status::of_batch("entity", std::mem::take(&mut progress.outcomes))))
    }

    /// What reads and writes act on: the configuration saved last, committed or not.
    fn target<'a>(&'a mut self, device: &'a mut Device, now: Nanos) -> Result<Target<'a>> {
        let (config, device) = match &mut self.saved {
            Some(saved) => (&mut saved.config, &mut *saved.device),
            None => (self.committed.as_mut().ok_or_else(no_pipeline)?, device),
        };
        target(config, device, now)
    }

    /// `SetForwardingPipelineConfig`.
    ///
    /// # Errors
    /// The status of the request; nothing has changed then.
    pub fn set_pipeline(&mut self, request: &p4::SetForwardingPipelineConfigRequest, device: &mut Device, now: Nanos) -> Result<()> {
        self.may_set_pipeline(request)?;
        let prepared = Self::prepare_pipeline(request, self.limits, device.config().clone());
        self.set_prepared_pipeline(request, prepared, device, now).map(drop)
    }

    /// First of the three steps of [`Core::set_pipeline`]: whether the client may ask for it.
    ///
    /// # Errors
    /// The status of the request.
    pub fn may_set_pipeline(&self, request: &p4::SetForwardingPipelineConfigRequest) -> Result<()> {
        let role = RoleKey::new(&request.role, config_role_id(request));
        self.arbitration.check_primary(request.device_id, &role, request.election_id.as_ref())
    }

    /// Second step: reads the program and builds its tables, which takes long. Needs neither core nor device, and so no thread of
    /// theirs; `device` is how the device is set up.
    pub fn prepare_pipeline(request: &p4::SetForwardingPipelineConfigRequest, limits: Limits, device: DeviceConfig) -> PreparedPipeline {
        let built = PipelineConfig::verify(request.config.as_ref(), limits).and_then(|config| {
            let mut device = Box::new(Device::new(device));
            device.load(0, config.model.program.clone())?;
            Ok((config, device))
        });
        PreparedPipeline { built }
    }

    /// Last step: what was prepared takes the place of what is there.
    ///
    /// # Errors
    /// The status of the request; nothing has changed then.
    pub fn set_prepared_pipeline(
        &mut self,
        request: &p4::SetForwardingPipelineConfigRequest,
        prepared: PreparedPipeline,
        device: &mut Device,
        now: Nanos,
    ) -> Result<Retired> {
        self.may_set_pipeline(request)?;
        match Action::try_from(request.action) {
            Ok(Action::Verify) => prepared.built.map(|_| Retired::default()),
            Ok(Action::VerifyAndSave) => {
                let (config, device) = prepared.built?;
                let saved = self.saved.replace(Box::new(Saved { config, device }));
                Ok(Retired { _saved: saved, ..Retired::default() })
            }
            Ok(Action::VerifyAndCommit) => {
                let (config, fresh) = prepared.built?;
                Ok(self.realize(config, fresh, device, now))
            }
            Ok(Action::Commit) if request.config.is_some() => {
                Err(Status::invalid("config must not be set for COMMIT: it realizes the one saved before"))
            }
            Ok(Action::Commit) => {
                let saved = self.saved.take();
                let saved = saved.ok_or_else(|| Status::not_found("there is no saved config: VERIFY_AND_SAVE comes before COMMIT"))?;
                // With what was written to it since it was saved.
                Ok(self.realize(saved.config, saved.device, device, now))
            }
            Ok(Action::ReconcileAndCommit) => {
                let (config, fresh) = prepared.built?;
                self.reconcile(config, fresh, device, now)
            }
            Ok(Action::Unspecified) | Err(_) => Err(Status::invalid(format!("action {} is unknown", request.action))),
        }
    }

    /// The device gets the program, the tables and all other state of another one.
    fn realize(&mut self, config: PipelineConfig, mut fresh: Box<Device>, device: &mut Device, now: Nanos) -> Retired {
        device.exchange(now, &mut fresh);
        // What the old program had to say means nothing to the new one.
        drop(device.take_events());
        Retired { _device: Some(fresh), _config: self.committed.replace(config), _saved: self.saved.take() }
    }

    fn reconcile(&mut self, mut config: PipelineConfig, mut fresh: Box<Device>, device: &mut Device, now: Nanos) -> Result<Retired> {
        if let Some(committed) = &mut self.committed {
            if committed.message.p4info == config.message.p4info && committed.message.p4_device_config == config.message.p4_device_config {
                committed.message.cookie = config.message.cookie;
                return Ok(Retired { _saved: self.saved.take(), ..Retired::default() });
            }
            let (kept, measured) = target(committed, device, now)?.dump()?;
            // A state that does not fit must leave the real device alone.
            target(&mut config, &mut fresh, now)?
                .replay(&kept, &measured)
                .map_err(|status| Status::invalid(format!("the forwarding state does not fit the new config: {status}")))?;
        }
        Ok(self.realize(config, fresh, device, now))
    }

    /// `GetForwardingPipelineConfig`.
    ///
    /// # Errors
    /// The status of the request.
    pub fn get_pipeline(&self, request: &p4::GetForwardingPipelineConfigRequest) -> Result<p4::GetForwardingPipelineConfigResponse> {
        self.arbitration.check_device(request.device_id)?;
        let config = match (&self.saved, &self.committed) {
            (Some(saved), _) => Some(saved.config.respond(request.response_type)?),
            (None, Some(committed)) => Some(committed.respond(request.response_type)?),
            (None, None) => None,
        };
        Ok(p4::GetForwardingPipelineConfigResponse { config })
    }

    /// `Capabilities`.
    ///
    /// # Errors
    /// NOT_FOUND for another device.
    pub fn capabilities(&self, request: &p4::CapabilitiesRequest) -> Result<p4::CapabilitiesResponse> {
        if request.device_id != 0 {
            self.arbitration.check_device(request.device_id)?;
        }
        Ok(p4::CapabilitiesResponse { p4runtime_api_version: API_VERSION.to_string(), ..Default::default() })
    }

    // The same with serialised messages

    /// [`Core::write`] for a serialised request.
    ///
    /// # Errors
    /// As [`Core::write`], or INVALID_ARGUMENT when the bytes are no message.
    pub fn write_bytes(&mut self, request: &[u8], device: &mut Device, now: Nanos) -> Result<()> {
        self.write(&decode(request)?, device, now)
    }

    /// [`Core::read`] for a serialised request: the serialised responses, and the status after them.
    pub fn read_bytes(&mut self, request: &[u8], device: &mut Device, now: Nanos) -> (Vec<Vec<u8>>, Result<()>) {
        match decode(request) {
            Ok(request) => {
                let output = self.read(&request, device, now);
                (output.responses.iter().map(Message::encode_to_vec).collect(), output.status)
            }
            Err(status) => (Vec::new(), Err(status)),
        }
    }

    /// [`Core::set_pipeline`] for a serialised request.
    ///
    /// # Errors
    /// As [`Core::set_pipeline`], or INVALID_ARGUMENT when the bytes are no message.
    pub fn set_pipeline_bytes(&mut self, request: &[u8], device: &mut Device, now: Nanos) -> Result<()> {
        self.set_pipeline(&decode(request)?, device, now)
    }

    /// [`Core::get_pipeline`] for a serialised request.
    ///
    /// # Errors
    /// As [`Core::get_pipeline`], or INVALID_ARGUMENT when the bytes are no message.
    pub fn get_pipeline_bytes(&self, request: &[u8]) -> Result<Vec<u8>> {
        Ok(self.get_pipeline(&decode(request)?)?.encode_to_vec())
    }

    /// [`Core::capabilities`] for a serialised request.
    ///
    /// # Errors
    /// As [`Core::capabilities`], or INVALID_ARGUMENT when the bytes are no message.
    pub fn capabilities_bytes(&self, request: &[u8]) -> Result<Vec<u8>> {
        Ok(self.capabilities(&decode(request)?)?.encode_to_vec())
    }
}

/// Entities in messages of bounded size.
fn responses(entities: Vec<p4::Entity>) -> Vec<p4::ReadResponse> {
    let mut responses = Vec::with_capacity(entities.len().div_ceil(ENTITIES_PER_RESPONSE));
    let mut entities = entities.into_iter().peekable();
    while entities.peek().is_some() {
        responses.push(p4::ReadResponse { entities: entities.by_ref().take(ENTITIES_PER_RESPONSE).collect() });
    }
    responses
}

fn decode<M: Message + Default>(bytes: &[u8]) -> Result<M> {
    M::decode(bytes).map_err(|error| Status::invalid(format!("the bytes are no message: {error}")))
}

fn target<'a>(config: &'a mut PipelineConfig, device: &'a mut Device, now: Nanos) -> Result<Target<'a>> {
    let switch = device.switch_mut().ok_or_else(no_pipeline)?;
    if !switch.program().is(&config.model.program) {
        return Err(Status::precondition(
            "another program was put in over Thrift since the forwarding pipeline config was set: push the config again",
        ));
    }
    let max_table_entries = config.limits.max_table_entries;
    Ok(Target { model: &config.model, notes: &mut config.notes, digests: &mut config.digests, switch, now, max_table_entries })
}

/// Batches that are all-or-none, or seen whole by packets, are bounded: their updates cannot be cut, or cannot be undone in parts.
fn check_atomicity(mode: Atomicity, updates: &[p4::Update], target: &Target<'_>) -> Result<()> {
    let (name, reach) = match mode {
        Atomicity::ContinueOnError => return Ok(()),
        Atomicity::RollbackOnError => ("ROLLBACK_ON_ERROR", updates.iter().map(|update| target.reach(update)).max()),
        Atomicity::DataplaneAtomic => ("DATAPLANE_ATOMIC", updates.iter().map(|update| target.reach(update)).reduce(usize::saturating_add)),
    };
    match reach {
        Some(reach) if reach > MOST_AT_ONCE => Err(Status::unimplemented(format!(
            "{name}: packets would wait for {reach} changes at once, and {MOST_AT_ONCE} is the most: send smaller batches, \
             or use CONTINUE_ON_ERROR"
        ))),
        _ => Ok(()),
    }
}

fn no_pipeline() -> Status {
    Status::precondition("no forwarding pipeline config has been set: push one by SetForwardingPipelineConfig")
}

#[allow(deprecated)]
fn role_id(request: &p4::WriteRequest) -> u64 {
    request.role_id
}

#[allow(deprecated)]
fn config_role_id(request: &p4::SetForwardingPipelineConfigRequest) -> u64 {
    request.role_id
}
