//! The network and its event loop.

use std::collections::{BTreeSet, VecDeque};

use fairlane_channel::{Channel, ChannelStats};
use fairlane_device::{Device, Output};
use fairlane_endpoint::algorithm::Fault;
use fairlane_endpoint::is_multicast;
use fairlane_endpoint::record::FlowLog;
use fairlane_tcp::Transmit;
use rustc_hash::FxHashMap;

use crate::capture::Capture;
use crate::control::{answer, Call, ControlChannel, ControlPlane, Event, Order, Place as Standing};
use crate::description::{Change, Options};
use crate::error::{BuildError, RunError};
use crate::events::{ActorSlot, EventQueue};
use crate::flow::End;
use crate::followers::Followers;
use crate::identity::Route;
use crate::igmp::{Igmp, PROTOCOL_IGMP};
use crate::io::{FramePool, Io};
use crate::ip::Datagram;
use crate::nodes::{Attachment, EndNode, FlowEnds, Flying, Host, NodeIndex, SwitchNode, Way};
use crate::observer::Observer;
use crate::part::Partition;
use crate::record::{LinkSample, PortSample, QueueSample, WorkCounts};
use crate::trace::Place;
use crate::{Nanos, PortId};

/// What a slot stands for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Actor {
    Switch(usize),
    Digests(usize),
    /// Calls of the control plane reach a switch.
    Calls(usize),
    Channel(usize),
    /// Frames are on their way between two switches, in a channel.
    Way(usize),
    End(usize),
    Membership(usize),
    Control,
    Recorder,
    Changes,
}

/// Ranks of events that were sent at the same instant, see `EventQueue::expect`: of the control plane, of calls to each switch, of frames on each way.
pub(crate) const CONTROL: u64 = 0;
pub(crate) const CALLS: u64 = 1 << 40;
pub(crate) const WAYS: u64 = 1 << 41;

/// See the crate's description.
pub struct Network {
    pub(crate) options: Options,
    pub(crate) now: Nanos,
    pub(crate) started: bool,
    pub(crate) queue: EventQueue,
    pub(crate) actors: Vec<Actor>,
    pub(crate) hosts: Vec<Host>,
    pub(crate) switches: Vec<SwitchNode>,
    /// By name.
    pub(crate) nodes: FxHashMap<String, NodeIndex>,
    /// By IPv4 address.
    pub(crate) host_of: FxHashMap<u32, usize>,
    pub(crate) channels: Vec<Channel>,
    /// Of each channel between two switches.
    pub(crate) ways: Vec<Option<Way>>,
    pub(crate) channel_slots: Vec<ActorSlot>,
    pub(crate) channel_ends: Vec<Attachment>,
    /// From and to, for captures and messages.
    pub(crate) channel_names: Vec<(String, String)>,
    /// The same as results call them: "s1->s2".
    pub(crate) link_names: Vec<String>,
    pub(crate) ends: Vec<EndNode>,
    pub(crate) flows: Vec<FlowEnds>,
    /// By name.
    pub(crate) flow_of: FxHashMap<String, usize>,
    pub(crate) followers: Followers,
    pub(crate) control: Option<ControlChannel>,
    pub(crate) control_slot: ActorSlot,
    pub(crate) recorder_slot: ActorSlot,
    pub(crate) changes_slot: ActorSlot,
    /// By time, then in the order given.
    pub(crate) changes: VecDeque<(Nanos, Change)>,
    /// By time: instants whose records all counts must follow from exactly.
    pub(crate) marks: VecDeque<Nanos>,
    /// The same of one end.
    pub(crate) end_marks: BTreeSet<(Nanos, usize)>,
    pub(crate) captures: Vec<Capture>,
    /// Of single packets.
    pub(crate) observer: Option<Box<Observer>>,
    pub(crate) samples: Vec<PortSample>,
    pub(crate) queue_samples: Vec<QueueSample>,
    /// The window in which delays of packets are measured.
    pub(crate) measured: Option<(Nanos, Nanos)>,
    pub(crate) link_samples: Vec<LinkSample>,
    /// Links that lose or impair frames at some time: what they count is recorded.
    pub(crate) impaired: BTreeSet<usize>,
    /// A link corrupts frames at some time, so hosts verify checksums. Elsewhere none can be wrong.
    pub(crate) verifies: bool,
    /// Where the present run ends.
    pub(crate) until: Nanos,
    pub(crate) work: WorkCounts,
    pub(crate) pool: FramePool,
    pub(crate) memberships: Vec<(u32, bool)>,
    /// What this process has of the network; `None`: all of it.
    pub(crate) part: Option<Partition>,
    segments: Vec<Transmit>,
    departures: Departures,
    handed: Vec<(PortId, Nanos, Vec<u8>)>,
}

/// Frames that leave a switch at an instant, in the buffers that they came in.
#[derive(Default)]
struct Departures {
    frames: Vec<(PortId, Vec<u8>)>,
}

impl Output for Departures {
    fn transmit(&mut self, port: PortId, _departure: Nanos, frame: Vec<u8>) -> Option<Vec<u8>> {
        self.frames.push((port, frame));
        None
    }
}

impl Network {
    /// An empty network.
    pub fn new(options: Options) -> Network {
        let mut network = Network {
            options,
            now: 0,
            started: false,
            queue: EventQueue::default(),
            actors: Vec::new(),
            hosts: Vec::new(),
            switches: Vec::new(),
            nodes: FxHashMap::default(),
            host_of: FxHashMap::default(),
            channels: Vec::new(),
            ways: Vec::new(),
            channel_slots: Vec::new(),
            channel_ends: Vec::new(),
            channel_names: Vec::new(),
            link_names: Vec::new(),
            ends: Vec::new(),
            flows: Vec::new(),
            flow_of: FxHashMap::default(),
            followers: Followers::default(),
            control: None,
            control_slot: 0,
            recorder_slot: 0,
            changes_slot: 0,
            changes: VecDeque::new(),
            marks: VecDeque::new(),
            end_marks: BTreeSet::new(),
            captures: Vec::new(),
            observer: None,
            samples: Vec::new(),
            queue_samples: Vec::new(),
            measured: None,
            link_samples: Vec::new(),
            impaired: BTreeSet::new(),
            verifies: false,
            until: 0,
            work: WorkCounts::default(),
            pool: FramePool::default(),
            memberships: Vec::new(),
            part: None,
            segments: Vec::new(),
            departures: Departures::default(),
            handed: Vec::new(),
        };
        network.control_slot = network.slot(Actor::Control);
        network.changes_slot = network.slot(Actor::Changes);
        network.recorder_slot = network.slot(Actor::Recorder);
        network
    }

    pub(crate) fn slot(&mut self, actor: Actor) -> ActorSlot {
        self.actors.push(actor);
        self.queue.add()
    }

    /// Who controls the switches, from now on.
    pub fn set_control_plane(&mut self, plane: Box<dyn ControlPlane>) {
        let channel = ControlChannel::new(plane, self.options.control_delay, self.now);
        self.queue.expect(self.control_slot, channel.next(), CONTROL);
        self.control = Some(channel);
    }

    /// Calls the control plane's `on_timer` at an instant, as if it had asked for that itself: somebody told it something.
    ///
    /// # Errors
    /// There is none, or the instant lies in the past.
    pub fn wake_control_plane(&mut self, at: Nanos, id: u64) -> Result<(), BuildError> {
        let fail = |what: String| Err(BuildError::new("control plane", what));
        if at < self.now {
            return fail(format!("cannot be woken at {at} ns: the run is at {} ns", self.now));
        }
        let Some(control) = &mut self.control else { return fail("there is none to wake".into()) };
        control.wake(self.now, at, id);
        self.queue.expect(self.control_slot, control.next(), CONTROL);
        Ok(())
    }

    /// The instant up to which it has run.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Runs all that happens up to and at `end`.
    ///
    /// # Errors
    /// A network that cannot be run (before the first event), an algorithm or control plane that fails, a capture or trace that
    /// cannot be written. The network is not to be run on then.
    pub fn run_until(&mut self, end: Nanos) -> Result<(), RunError> {
        if let Some(last) = self.options.end.filter(|&last| end > last) {
            let what = format!("to {end} ns: the run ends at {last} ns");
            return Err(BuildError::new("run", what).into());
        }
        if !self.started {
            self.check()?;
            self.begin()?;
        }
        self.introduce();
        self.until = end;
        if self.part.is_none() {
            self.run_events(end)?;
        }
        while let Some(last) = self.next_window(end)? {
            self.run_events(last)?;
        }
        self.record_marks(end);
        self.now = self.now.max(end);
        self.queue.at(self.now);
        self.flush()
    }

    /// Runs all events up to and at `last`.
    fn run_events(&mut self, last: Nanos) -> Result<(), RunError> {
        while let Some((time, slot)) = self.queue.peek().filter(|(time, _)| *time <= last) {
            self.record_marks(time);
            // An end may find that what it waits for was due already: a new rate, a shorter timeout. Time does not go back for it.
            self.now = self.now.max(time);
            self.queue.at(self.now);
            self.work.events += 1;
            let Some(&actor) = self.actors.get(slot as usize) else { break };
            match actor {
                Actor::Switch(switch) => self.poll_switch(switch)?,
                Actor::Channel(channel) => self.arrive(channel)?,
                Actor::Way(channel) => self.end_way(channel)?,
                Actor::Calls(switch) => self.answer(switch),
                Actor::End(end) => self.act(end)?,
                Actor::Membership(host) => self.report_membership(host),
                Actor::Digests(switch) => {
                    let node = &mut self.switches[switch];
                    let messages = node.core.tick(time);
                    self.queue.reset(slot, node.core.next_deadline());
                    self.notify(switch, messages);
                }
                Actor::Control => self.control_event()?,
                Actor::Recorder => self.record(),
                Actor::Changes => self.change(),
            }
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<(), RunError> {
        self.started = true;
        if self.options.record_interval > 0 {
            self.queue.set(self.recorder_slot, Some(self.options.record_interval));
        }
        self.changes.make_contiguous().sort_by_key(|(at, _)| *at);
        self.queue.set(self.changes_slot, self.changes.front().map(|(at, _)| *at));
        for node in self.ends.iter().filter(|node| self.part.as_ref().is_none_or(|part| part.has_host(node.host))) {
            self.queue.set(node.slot, node.end.next());
        }
        for (switch, node) in self.switches.iter().enumerate() {
            if self.part.as_ref().is_none_or(|part| part.has_switch(switch)) {
                self.queue.set(node.slot, node.device.next_event());
            }
        }
        Ok(())
    }

    /// What a switch does by itself: frames leave its ports, queues move on.
    fn poll_switch(&mut self, switch: usize) -> Result<(), RunError> {
        let mut departures = std::mem::take(&mut self.departures);
        self.switches[switch].device.poll(self.now, &mut departures);
        self.settle(switch, true);
        let mut result = Ok(());
        for (port, frame) in departures.frames.drain(..) {
            let channel = self.switches[switch].channels.get(port as usize).copied().flatten();
            match channel {
                Some(channel) if result.is_ok() => result = self.leave(channel, frame),
                // A port without a link: the frame goes nowhere.
                _ => self.pool.give(frame),
            }
        }
        self.departures = departures;
        result
    }

    /// After a switch did something: its digests go to the control plane, its next instant into the queue.
    pub(crate) fn settle(&mut self, switch: usize, acted: bool) {
        let node = &mut self.switches[switch];
        let next = node.device.next_event();
        if acted {
            self.queue.reset(node.slot, next);
        } else {
            self.queue.set(node.slot, next);
        }
        if let Some(observer) = &mut self.observer {
            let (names, channels) = (&self.link_names, &node.channels);
            let link = |port: PortId| names.get(channels.get(port as usize).copied().flatten()?).map(String::as_str);
            node.device.drain_trace(|event| observer.step((switch, &node.name), &event, link));
            observer.follow(switch, &mut node.device);
        }
        node.device.take_handed(&mut self.handed);
        let events = node.device.take_events();
        if !events.is_empty() {
            let messages = node.core.on_device_events(events, self.now);
            self.queue.set(node.digest_slot, node.core.next_deadline());
            self.notify(switch, messages);
        }
        if !self.handed.is_empty() {
            self.send_handed(switch);
        }
    }

    /// Frames begin their ways from a switch to others.
    fn send_handed(&mut self, switch: usize) {
        let mut handed = std::mem::take(&mut self.handed);
        for (port, arrival, frame) in handed.drain(..) {
            let Some(index) = self.switches[switch].channels.get(port as usize).copied().flatten() else { continue };
            let flying = Flying { arrival, sent: self.now, frame };
            if let Some(flying) = self.send_away(index, flying) {
                self.fly(index, flying);
            }
        }
        self.handed = handed;
    }

    /// A frame is on its way in a channel between two switches, behind the others there.
    pub(crate) fn fly(&mut self, index: usize, flying: Flying) {
        let Some(way) = &mut self.ways[index] else { return };
        if way.frames.is_empty() {
            self.queue.expect(way.slot, Some((flying.arrival, flying.sent)), WAYS + index as u64);
        }
        way.frames.push_back(flying);
    }

    /// A switch has something to say to the control plane.
    fn notify(&mut self, switch: usize, messages: Vec<fairlane_p4rt::Notification>) {
        let Some(delay) = self.control.as_ref().map(|control| control.delay) else { return };
        let (at, sent) = (self.now.saturating_add(delay), self.now);
        for (_, message) in messages {
            let said = &mut self.switches[switch].said;
            *said += 1;
            let place = Standing::Said { switch, number: *said };
            self.tell(Order { at, sent, place }, Event::Stream { switch, message });
        }
    }

    /// An event is on its way to the control plane.
    pub(crate) fn tell(&mut self, order: Order, event: Event) {
        let Some(event) = self.tell_away(order, event) else { return };
        let Some(control) = &mut self.control else { return };
        control.put(order, event);
        self.queue.expect(self.control_slot, control.next(), CONTROL);
    }

    /// A call is on its way to a switch.
    pub(crate) fn call(&mut self, switch: usize, call: Call) {
        let Some(call) = self.call_away(switch, call) else { return };
        let node = &mut self.switches[switch];
        node.calls.push_back(call);
        let next = node.calls.front().map(|call| (call.at, call.sent));
        self.queue.expect(node.call_slot, next, CALLS + switch as u64);
    }

    /// A frame is at the end of its way between two switches.
    fn end_way(&mut self, index: usize) -> Result<(), RunError> {
        let Some(Some(way)) = self.ways.get_mut(index) else { return Ok(()) };
        let Some(Flying { frame, .. }) = way.frames.pop_front() else { return Ok(()) };
        let next = way.frames.front().map(|next| (next.arrival, next.sent));
        self.queue.expect(way.slot, next, WAYS + index as u64);
        self.leave(index, frame)
    }

    /// A frame leaves a switch's port, serialised and propagated.
    fn leave(&mut self, index: usize, frame: Vec<u8>) -> Result<(), RunError> {
        let channel = &mut self.channels[index];
        match channel.pass(self.now, frame) {
            Ok(frame) => self.deliver(index, frame),
            Err(Some(lost)) => {
                self.lost(index, lost);
                Ok(())
            }
            Err(None) => {
                self.queue.set(self.channel_slots[index], channel.next());
                Ok(())
            }
        }
    }

    /// The next frame of a channel is at its end.
    fn arrive(&mut self, index: usize) -> Result<(), RunError> {
        let channel = &mut self.channels[index];
        let arrived = channel.arrive();
        self.queue.reset(self.channel_slots[index], channel.next());
        match arrived {
            Some(Ok(frame)) => self.deliver(index, frame),
            Some(Err(lost)) => {
                self.lost(index, lost);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// A frame was lost on the way, from the end whose node the log names.
    fn lost(&mut self, index: usize, frame: Vec<u8>) {
        if let Some(observer) = &mut self.observer {
            let node = self.channel_names[index].0.as_str();
            let queue = match self.nodes.get(node) {
                Some(&NodeIndex::Switch(switch)) => {
                    let port = self.switches[switch].channels.iter().position(|&channel| channel == Some(index));
                    port.map(|port| (switch, port as PortId))
                }
                _ => None,
            };
            observer.lost(self.now, node, (&self.link_names[index], queue), &frame);
        }
        self.pool.give(frame);
    }

    fn deliver(&mut self, index: usize, frame: Vec<u8>) -> Result<(), RunError> {
        self.work.link_traversals += 1;
        if let Some(observer) = &mut self.observer {
            let port = match self.channel_ends[index] {
                Attachment::Switch(_, port) => port,
                Attachment::Host(_) => 0,
            };
            let who = observer.logged(&frame);
            observer.log(self.now, ("receive", ""), Place::at(&self.channel_names[index].1, port), frame.len() as u64, who);
            if let (Attachment::Switch(switch, port), true) = (self.channel_ends[index], observer.wants(who)) {
                observer.visit(self.now, (switch, port), &frame, &mut self.switches[switch].device);
            }
        }
        if let Some(capture) = self.captures.get_mut(index) {
            let written = capture.write(self.options.epoch + self.now, &frame);
            written.map_err(|error| RunError::File { path: capture.path().display().to_string(), error })?;
        }
        match self.channel_ends[index] {
            Attachment::Switch(switch, port) => {
                self.work.switch_packets += 1;
                self.switches[switch].device.receive_owned(self.now, port, frame);
                self.settle(switch, false);
                Ok(())
            }
            Attachment::Host(host) => {
                let result = self.receive(host, &frame);
                self.pool.give(frame);
                result
            }
        }
    }

    fn receive(&mut self, host: usize, frame: &[u8]) -> Result<(), RunError> {
        let node = &mut self.hosts[host];
        let is_ours = |datagram: &Datagram| datagram.destination == node.address.ip || is_multicast(datagram.destination);
        let datagram = Datagram::parse(frame);
        if self.verifies && !datagram.is_some_and(|datagram| datagram.has_right_checksum()) {
            node.wrong_checksums += 1;
            return Ok(());
        }
        let datagram = datagram.filter(is_ours);
        if let Some(message) =
            datagram.filter(|datagram| datagram.protocol == PROTOCOL_IGMP).and_then(|datagram| Igmp::parse(datagram.payload))
        {
            node.membership.hear(self.now, message);
            self.queue.set(node.slot, node.membership.next());
            return Ok(());
        }
        let claimed = datagram.and_then(|datagram| {
            let (_, to) = datagram.ports()?;
            Some((datagram, *node.demux.get(&(datagram.source, to, datagram.protocol))?))
        });
        let Some((datagram, end)) = claimed else {
            node.unclaimed += 1;
            return Ok(());
        };
        self.with_end(end, |end, io| end.receive(&datagram, io))?;
        self.rearm(end);
        self.follow(end);
        Ok(())
    }

    /// An end does what is due.
    fn act(&mut self, end: usize) -> Result<(), RunError> {
        self.with_end(end, |end, io| end.act(io))?;
        let node = &self.ends[end];
        self.queue.reset(node.slot, node.end.next());
        Ok(())
    }

    /// After an end received something. A timer that only moved to later keeps its old instant in the queue: when that comes the
    /// end finds nothing due and is asked again, which is cheaper than moving it with every acknowledgement.
    fn rearm(&mut self, end: usize) {
        let node = &self.ends[end];
        let next = node.end.next();
        if node.lazy && self.queue.is_before(node.slot, next) {
            return;
        }
        self.queue.set(node.slot, next);
    }

    fn with_end(&mut self, end: usize, work: impl FnOnce(&mut End, &mut Io) -> Result<(), Fault>) -> Result<(), RunError> {
        let node = &mut self.ends[end];
        let Some(channel) = self.hosts[node.host].channel else { return Ok(()) };
        let mut io = Io {
            now: self.now,
            epoch: self.options.epoch,
            own: &self.hosts[node.host].address,
            port: node.port,
            channel: &mut self.channels[channel],
            slot: self.channel_slots[channel],
            queue: &mut self.queue,
            pool: &mut self.pool,
            segments: &mut self.segments,
            work: &mut self.work,
            observer: self.observer.as_deref_mut(),
            memberships: &mut self.memberships,
            host: &self.hosts[node.host].name,
        };
        let host = node.host;
        work(&mut node.end, &mut io).map_err(|fault| RunError::Fault { time: self.now, fault })?;
        if !self.memberships.is_empty() {
            self.change_memberships(host);
        }
        Ok(())
    }

    /// Ends of a host have joined and left groups: it tells its routers.
    fn change_memberships(&mut self, host: usize) {
        let mut changes = std::mem::take(&mut self.memberships);
        for (group, joins) in changes.drain(..) {
            let membership = &mut self.hosts[host].membership;
            let message = if joins { membership.join(self.now, group) } else { membership.leave(group) };
            if let Some(message) = message {
                self.say(host, message);
            }
        }
        self.memberships = changes;
        let node = &self.hosts[host];
        self.queue.set(node.slot, node.membership.next());
    }

    /// Reports of membership that are due.
    fn report_membership(&mut self, host: usize) {
        while let Some(message) = self.hosts[host].membership.take_due(self.now) {
            self.say(host, message);
        }
        let node = &self.hosts[host];
        self.queue.reset(node.slot, node.membership.next());
    }

    fn say(&mut self, host: usize, message: Igmp) {
        let node = &self.hosts[host];
        let Some(channel) = node.channel else { return };
        let mut frame = self.pool.take();
        message.push(&mut frame, &node.address);
        let mut io = Io {
            now: self.now,
            epoch: self.options.epoch,
            own: &node.address,
            port: 0,
            channel: &mut self.channels[channel],
            slot: self.channel_slots[channel],
            queue: &mut self.queue,
            pool: &mut self.pool,
            segments: &mut self.segments,
            work: &mut self.work,
            observer: self.observer.as_deref_mut(),
            memberships: &mut self.memberships,
            host: &node.name,
        };
        io.send(frame);
    }

    /// The next event of the control plane.
    fn control_event(&mut self) -> Result<(), RunError> {
        let (now, switches) = (self.now, self.switches.len());
        let Some(control) = &mut self.control else { return Ok(()) };
        let calls = match control.take(now) {
            Some(event) => control.deliver(now, event, switches).map_err(|fault| RunError::Fault { time: now, fault })?,
            None => Vec::new(),
        };
        self.queue.expect(self.control_slot, control.next(), CONTROL);
        for (switch, call) in calls {
            self.call(switch, call);
        }
        Ok(())
    }

    /// The next call of the control plane reaches its switch.
    fn answer(&mut self, switch: usize) {
        let node = &mut self.switches[switch];
        let Some(call) = node.calls.pop_front() else { return };
        let next = node.calls.front().map(|call| (call.at, call.sent));
        self.queue.expect(node.call_slot, next, CALLS + switch as u64);
        let number = call.number;
        let events = answer(self.now, switch, call, &mut node.core, &mut node.device);
        self.queue.set(node.digest_slot, node.core.next_deadline());
        let delay = self.control.as_ref().map_or(0, |control| control.delay);
        for (part, event) in (0..).zip(events) {
            let order = Order { at: self.now.saturating_add(delay), sent: self.now, place: Standing::Answer { call: number, part } };
            self.tell(order, event);
        }
        self.settle(switch, false);
    }

    fn flush(&mut self) -> Result<(), RunError> {
        for capture in &mut self.captures {
            let flushed = capture.flush();
            flushed.map_err(|error| RunError::File { path: capture.path().display().to_string(), error })?;
        }
        self.observer.as_mut().map_or(Ok(()), |observer| observer.flush())
    }

    /// Tells the observer of flows that it does not know yet.
    pub(crate) fn introduce(&mut self) {
        let Some(observer) = &mut self.observer else { return };
        for flow in self.flows.iter().skip(observer.flows()) {
            let host = |end: usize| self.hosts[self.ends[end].host].address.ip;
            let (port, receivers) = (self.ends[flow.sender].port, flow.receivers.iter().map(|&end| host(end)).collect());
            observer.add(&flow.name, Route { form: flow.form, port, sender: host(flow.sender), receivers });
        }
    }

    /// Flows in the order in which they were added.
    pub fn flows(&self) -> &[FlowEnds] {
        &self.flows
    }

    /// The number of a flow, in the order in which they were added.
    pub fn flow_number(&self, name: &str) -> Option<usize> {
        self.flow_of.get(name).copied()
    }

    /// The records of a flow's sending end and of its first receiving end.
    pub fn logs(&self, flow: &FlowEnds) -> (&FlowLog, &FlowLog) {
        (self.ends[flow.sender].end.log(), self.ends[flow.receivers[0]].end.log())
    }

    /// The records of all receiving ends of a flow, with the names of their hosts.
    pub fn receiver_logs<'a>(&'a self, flow: &'a FlowEnds) -> impl Iterator<Item = (&'a str, &'a FlowLog)> {
        flow.receivers.iter().map(|&receiver| (self.hosts[self.ends[receiver].host].name.as_str(), self.ends[receiver].end.log()))
    }

    /// Takes the records of a flow's sending end and of its receiving ends, with the names of their hosts: memory need not grow
    /// with the run's length.
    pub fn take_logs(&mut self, flow: usize) -> Option<(FlowLog, Vec<(String, FlowLog)>)> {
        let FlowEnds { sender, receivers, .. } = self.flows.get(flow)?.clone();
        let mut take = |end: usize| (self.hosts[self.ends[end].host].name.clone(), self.ends[end].end.take_log());
        Some((take(sender).1, receivers.into_iter().map(take).collect()))
    }

    /// The nodes between which a direction of a link leads, by the number that [`LinkSample`] has.
    pub fn link_name(&self, link: usize) -> Option<(&str, &str)> {
        self.channel_names.get(link).map(|(from, to)| (from.as_str(), to.as_str()))
    }

    /// Whether a link corrupts frames at some time.
    pub fn corrupts(&self) -> bool {
        self.verifies
    }

    /// Counts of the simulation itself.
    pub fn work(&self) -> WorkCounts {
        self.work
    }

    /// What each direction of a link has counted: from, to, counts, and frames on the way.
    pub fn channel_stats(&self) -> impl Iterator<Item = (&str, &str, ChannelStats, usize)> {
        self.channels
            .iter()
            .zip(&self.channel_names)
            .map(|(channel, (from, to))| (from.as_str(), to.as_str(), channel.stats, channel.in_flight()))
    }

    /// The switch of a name, to load a program or to look at.
    pub fn device(&mut self, switch: &str) -> Option<&mut Device> {
        self.switches.iter_mut().find(|node| node.name == switch).map(|node| &mut node.device)
    }

    /// A switch by its number: its name, and what it runs.
    pub fn switch(&self, number: usize) -> Option<(&str, &Device)> {
        self.switches.get(number).map(|node| (node.name.as_str(), &node.device))
    }

    /// Datagrams that a host dropped for a wrong checksum of IPv4, UDP or TCP.
    pub fn wrong_checksums(&self, host: &str) -> Option<u64> {
        self.hosts.iter().find(|node| node.name == host).map(|node| node.wrong_checksums)
    }

    /// Datagrams that reached a host and that no flow there claimed.
    pub fn unclaimed(&self, host: &str) -> Option<u64> {
        self.hosts.iter().find(|node| node.name == host).map(|node| node.unclaimed)
    }
}
