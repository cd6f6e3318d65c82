//! The control plane: P4Runtime messages by direct call, with the delay of a control channel.

use std::collections::BTreeMap;

use crate::Nanos;
use fairlane_device::Device;
use fairlane_endpoint::algorithm::Fault;
use fairlane_p4rt::proto::p4::v1::StreamMessageResponse;
use fairlane_p4rt::{ClientId, Core, Status, StreamOutput};

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

/// What reaches the control plane.
#[derive(Debug)]
pub(crate) enum Event {
    Start,
    Timer(u64),
    Answer { switch: usize, token: u64, answer: Answer },
    Stream { switch: usize, message: StreamMessageResponse },
}

/// Where an event stands among those that reach the control plane: by its instant, and when it was sent. Of those sent at once, answers go first in the order of
/// their calls, then what switches say of themselves by the switches' numbers, then the control plane's own timers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Order {
    pub(crate) at: Nanos,
    pub(crate) sent: Nanos,
    pub(crate) place: Place,
}

/// See [`Order`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    Answer { call: u64, part: u64 },
    Said { switch: usize, number: u64 },
    Timer(u64),
}

/// A call on its way to a switch.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) at: Nanos,
    pub(crate) sent: Nanos,
    /// Counted by the control plane.
    pub(crate) number: u64,
    pub(crate) token: u64,
    pub(crate) request: Request,
}

/// The control plane, and all that is on its way to it.
pub(crate) struct ControlChannel {
    pub(crate) plane: Box<dyn ControlPlane>,
    pub(crate) delay: Nanos,
    pending: BTreeMap<Order, Event>,
    /// Counts calls and timers.
    sequence: u64,
    actions: Vec<ControlAction>,
}

impl ControlChannel {
    pub(crate) fn new(plane: Box<dyn ControlPlane>, delay: Nanos, now: Nanos) -> Self {
        let start = Order { at: now, sent: now, place: Place::Answer { call: 0, part: 0 } };
        ControlChannel { plane, delay, pending: BTreeMap::from([(start, Event::Start)]), sequence: 0, actions: Vec::new() }
    }

    /// Another partition has the control plane.
    pub(crate) fn clear(&mut self) {
        self.pending.clear();
    }

    /// The instant of the first event, and when that was sent.
    pub(crate) fn next(&self) -> Option<(Nanos, Nanos)> {
        self.pending.first_key_value().map(|(order, _)| (order.at, order.sent))
    }

    /// Takes the first event that is due.
    pub(crate) fn take(&mut self, now: Nanos) -> Option<Event> {
        let first = self.pending.first_entry().filter(|entry| entry.key().at <= now)?;
        Some(first.remove())
    }

    /// An event is on its way.
    pub(crate) fn put(&mut self, order: Order, event: Event) {
        self.pending.insert(order, event);
    }

    fn count(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// The plane's `on_timer` is to be called at an instant.
    pub(crate) fn wake(&mut self, now: Nanos, at: Nanos, id: u64) {
        let place = Place::Timer(self.count());
        self.put(Order { at: at.max(now), sent: now, place }, Event::Timer(id));
    }

    /// Hands an event to the control plane and returns its calls, with the numbers of their switches.
    pub(crate) fn deliver(&mut self, now: Nanos, event: Event, switches: usize) -> Result<Vec<(usize, Call)>, Fault> {
        let mut actions = std::mem::take(&mut self.actions);
        match event {
            Event::Start => self.plane.on_start(now, &mut actions)?,
            Event::Timer(id) => self.plane.on_timer(now, id, &mut actions)?,
            Event::Answer { switch, token, answer } => self.plane.on_answer(now, switch, token, answer, &mut actions)?,
            Event::Stream { switch, message } => self.plane.on_stream(now, switch, &message, &mut actions)?,
        }
        let mut calls = Vec::new();
        for action in actions.drain(..) {
            match action {
                ControlAction::Timer { at, id } => self.wake(now, at, id),
                ControlAction::Call { switch, .. } if switch >= switches => {
                    return Err(format!("the control plane calls switch {switch}; there are {switches}, counted from 0").into());
                }
                ControlAction::Call { switch, token, request } => {
                    let (at, number) = (now.saturating_add(self.delay), self.count());
                    calls.push((switch, Call { at, sent: now, number, token, request }));
                }
            }
        }
        self.actions = actions;
        Ok(calls)
    }
}

/// A call reaches its switch: what it answers, in order.
pub(crate) fn answer(now: Nanos, switch: usize, call: Call, core: &mut Core, device: &mut Device) -> Vec<Event> {
    let token = call.token;
    let answer = match call.request {
        Request::SetPipeline(bytes) => core.set_pipeline_bytes(&bytes, device, now).map(|()| Vec::new()),
        Request::Write(bytes) => core.write_bytes(&bytes, device, now).map(|()| Vec::new()),
        Request::Read(bytes) => {
            let (responses, status) = core.read_bytes(&bytes, device, now);
            status.map(|()| responses)
        }
        Request::Stream(bytes) => {
            let said = core.stream_bytes(CLIENT, &bytes, device, now);
            let (messages, refused) = match said {
                Ok(StreamOutput { messages, terminate }) => (messages, terminate),
                Err(status) => (Vec::new(), Some(status)),
            };
            let messages = messages.into_iter().map(|(_, message)| Event::Stream { switch, message });
            return messages.chain(refused.map(|status| Event::Answer { switch, token, answer: Err(status) })).collect();
        }
    };
    vec![Event::Answer { switch, token, answer }]
}
