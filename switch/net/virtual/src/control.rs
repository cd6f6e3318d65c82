//! The control plane: P4Runtime messages by direct call, with the delay of a control channel.

use std::collections::BTreeMap;

use crate::Nanos;
use fairlane_device::Device;
use fairlane_endpoint::algorithm::Fault;
use fairlane_p4rt::proto::p4::v1::StreamMessageResponse;
use fairlane_p4rt::{ClientId, Core, Notification, Status, StreamOutput};

/// A P4Runtime call, its message serialised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// `SetForwardingPipelineConfigRequest`
    SetPipeline(Vec<u8>),
    /// `WriteRequest`
    Write(Vec<u8>),
    /// `ReadRequest`
    Read(Vec<u8>),
    /// `StreamMessageRequest`; it has no answer.
    Stream(Vec<u8>),
}

/// The answer to a call: serialised `ReadResponse`s (none for other calls), or the status.
pub type Answer = Result<Vec<Vec<u8>>, Status>;

/// What a control plane wants done.
#[derive(Debug)]
pub enum ControlAction {
    /// Call [`ControlPlane::on_timer`] at an instant.
    Timer { at: Nanos, id: u64 },
    /// Send a call to a switch; the answer comes with the token.
    Call { switch: usize, token: u64, request: Request },
}

/// Who controls the switches. Events in, actions out; switches are numbered in the order in which they were added.
pub trait ControlPlane: Send {
    /// The run begins.
    ///
    /// # Errors
    /// They end the run. So in all handlers.
    fn on_start(&mut self, now: Nanos, actions: &mut Vec<ControlAction>) -> Result<(), Fault>;
    fn on_timer(&mut self, now: Nanos, id: u64, actions: &mut Vec<ControlAction>) -> Result<(), Fault>;
    fn on_answer(&mut self, now: Nanos, switch: usize, token: u64, answer: Answer, actions: &mut Vec<ControlAction>) -> Result<(), Fault>;
    fn on_stream(
        &mut self,
        now: Nanos,
        switch: usize,
        message: &StreamMessageResponse,
        actions: &mut Vec<ControlAction>,
    ) -> Result<(), Fault>;
}

/// The one client of each switch.
const CLIENT: ClientId = ClientId(1);

/// A message under way, or a timer.
#[derive(Debug)]
pub(crate) enum Event {
    Start,
    Timer(u64),
    ToSwitch { switch: usize, token: u64, request: Request },
    Answer { switch: usize, token: u64, answer: Answer },
    Stream { switch: usize, message: StreamMessageResponse },
}

/// All messages under way, in the order of their arrival.
pub(crate) struct ControlChannel {
    pub(crate) plane: Box<dyn ControlPlane>,
    delay: Nanos,
    pending: BTreeMap<(Nanos, u64), Event>,
    sequence: u64,
    actions: Vec<ControlAction>,
}

impl ControlChannel {
    pub(crate) fn new(plane: Box<dyn ControlPlane>, delay: Nanos, now: Nanos) -> Self {
        let mut channel = ControlChannel { plane, delay, pending: BTreeMap::new(), sequence: 0, actions: Vec::new() };
        channel.put(now, Event::Start);
        channel
    }

    pub(crate) fn next(&self) -> Option<Nanos> {
        self.pending.first_key_value().map(|((at, _), _)| *at)
    }

    /// Takes the first event that is due.
    pub(crate) fn take(&mut self, now: Nanos) -> Option<Event> {
        let first = self.pending.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(first.remove())
    }

    fn put(&mut self, at: Nanos, event: Event) {
        self.sequence += 1;
        self.pending.insert((at, self.sequence), event);
    }

    /// The plane's `on_timer` is to be called at an instant.
    pub(crate) fn wake(&mut self, at: Nanos, id: u64) {
        self.put(at, Event::Timer(id));
    }

    /// A switch has something to say.
    pub(crate) fn notify(&mut self, now: Nanos, switch: usize, messages: Vec<Notification>) {
        for (_, message) in messages {
            self.put(now + self.delay, Event::Stream { switch, message });
        }
    }

    /// A call reaches its switch.
    pub(crate) fn call(&mut self, now: Nanos, switch: usize, token: u64, request: Request, core: &mut Core, device: &mut Device) {
        let answer = match request {
            Request::SetPipeline(bytes) => core.set_pipeline_bytes(&bytes, device, now).map(|()| Vec::new()),
            Request::Write(bytes) => core.write_bytes(&bytes, device, now).map(|()| Vec::new()),
            Request::Read(bytes) => {
                let (responses, status) = core.read_bytes(&bytes, device, now);
                status.map(|()| responses)
            }
            Request::Stream(bytes) => {
                match core.stream_bytes(CLIENT, &bytes, device, now) {
                    Ok(StreamOutput { messages, terminate }) => {
                        self.notify(now, switch, messages);
                        if let Some(status) = terminate {
                            self.put(now + self.delay, Event::Answer { switch, token, answer: Err(status) });
                        }
                    }
                    Err(status) => self.put(now + self.delay, Event::Answer { switch, token, answer: Err(status) }),
                }
                return;
            }
        };
        self.put(now + self.delay, Event::Answer { switch, token, answer });
    }

    /// Hands an event to the control plane and takes its actions.
    pub(crate) fn deliver(&mut self, now: Nanos, event: Event, switches: usize) -> Result<(), Fault> {
        let mut actions = std::mem::take(&mut self.actions);
        match event {
            Event::Start => self.plane.on_start(now, &mut actions)?,
            Event::Timer(id) => self.plane.on_timer(now, id, &mut actions)?,
            Event::Answer { switch, token, answer } => self.plane.on_answer(now, switch, token, answer, &mut actions)?,
            Event::Stream { switch, message } => self.plane.on_stream(now, switch, &message, &mut actions)?,
            Event::ToSwitch { .. } => {}
        }
        for action in actions.drain(..) {
            match action {
                ControlAction::Timer { at, id } => self.put(at.max(now), Event::Timer(id)),
                ControlAction::Call { switch, .. } if switch >= switches => {
                    return Err(format!("the control plane calls switch {switch}; there are {switches}, counted from 0").into());
                }
                ControlAction::Call { switch, token, request } => {
                    self.put(now + self.delay, Event::ToSwitch { switch, token, request });
                }
            }
        }
        self.actions = actions;
        Ok(())
    }
}
