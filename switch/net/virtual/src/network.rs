//! The network and its event loop.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;

use fairlane_channel::{Channel, ChannelStats, ImpairmentsChange, Jitter, LossModel, Trace};
use fairlane_device::{Device, Output};
use fairlane_endpoint::algorithm::Fault;
use fairlane_endpoint::record::FlowLog;
use fairlane_endpoint::{is_multicast, Delays};
use fairlane_p4rt::Core;
use fairlane_tcp::Transmit;
use rustc_hash::FxHashMap;

use crate::after::Followers;
use crate::build::NodeIndex;
use crate::capture::Capture;
use crate::control::{ControlChannel, ControlPlane, Event};
use crate::description::{BuildError, LinkEnd};
use crate::events::{ActorSlot, EventQueue};
use crate::flow::End;
use crate::identity::{Form, Route};
use crate::igmp::{Igmp, PROTOCOL_IGMP};
use crate::io::{FramePool, Io};
use crate::ip::{Datagram, HostAddress};
use crate::membership::Membership;
use crate::observer::Observer;
use crate::record::{LinkSample, Measured, PortSample, QueueSample, WorkCounts};
use crate::trace::Place;
use crate::{Nanos, PortId};

/// How a run is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// From it, and the components' names, all randomness follows.
    pub seed: u64,
    /// Nanoseconds since the Unix epoch at instant 0.
    pub epoch: Nanos,
    /// One way between the control plane and each switch.
    pub control_delay: Nanos,
    /// Between the periodic records; 0 writes none.
    pub record_interval: Nanos,
    /// When the run ends, if that is known: what is planned for later is refused, and so is running on.
    pub end: Option<Nanos>,
}

impl Default for Options {
    fn default() -> Self {
        Options { seed: 1, epoch: 0, control_delay: 1_000_000, record_interval: 100_000_000, end: None }
    }
}

/// Something that changes while the network runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// The rate of one direction of a link, in bits per second: from the next transmission on.
    LinkRate { from: LinkEnd, rate_bps: Option<u64> },
    /// The propagation delay of one direction of a link, for frames sent from then on.
    LinkDelay { from: LinkEnd, delay_ns: Nanos },
    /// How one direction of a link loses frames, from then on; `None`: not at all.
    LinkLoss { from: LinkEnd, loss: Option<LossModel> },
    /// How much longer than its delay one direction of a link may take, from then on.
    LinkJitter { from: LinkEnd, jitter: Option<Jitter> },
    /// What of the impairments of one direction of a link becomes other, for frames sent from then on.
    LinkImpairments { from: LinkEnd, change: ImpairmentsChange },
    /// A trace that one direction of a link follows in place of its rate; the trace begins then.
    LinkTrace { from: LinkEnd, trace: Arc<Trace> },
    /// One direction of a link fails, or works again: what waits and what is on the way is lost, and all that follows until then.
    LinkState { from: LinkEnd, up: bool },
    /// A host sends one frame, whatever is in it, as a program with a raw socket does.
    Frame { from: LinkEnd, frame: Vec<u8> },
}

impl Change {
    /// The end that sends.
    pub(crate) fn from(&self) -> &LinkEnd {
        match self {
            Change::LinkRate { from, .. }
            | Change::LinkDelay { from, .. }
            | Change::LinkLoss { from, .. }
            | Change::LinkJitter { from, .. }
            | Change::LinkImpairments { from, .. }
            | Change::LinkTrace { from, .. }
            | Change::LinkState { from, .. }
            | Change::Frame { from, .. } => from,
        }
    }
}

/// Why a run cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error("at {} s: {fault}", *.time as f64 / 1e9)]
    Fault { time: Nanos, fault: Fault },
    #[error("{path}: {error}")]
    File { path: String, error: io::Error },
}

/// Where the ends of a flow are in the list of ends.
#[derive(Debug, Clone)]
pub struct FlowEnds {
    pub name: String,
    pub(crate) sender: usize,
    /// One, or as many as a layered flow has.
    pub(crate) receivers: Vec<usize>,
    pub(crate) form: Form,
}

pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) address: HostAddress,
    /// The channel it sends by.
    pub(crate) channel: Option<usize>,
    /// (peer, own port, protocol) -> end.
    pub(crate) demux: FxHashMap<(u32, u16, u8), usize>,
    pub(crate) membership: Membership,
    /// Of its membership reports.
    pub(crate) slot: ActorSlot,
    pub(crate) unclaimed: u64,
    /// Datagrams dropped for a wrong checksum of IPv4, UDP or TCP.
    pub(crate) wrong_checksums: u64,
}

pub(crate) struct SwitchNode {
    pub(crate) name: String,
    pub(crate) device: Device,
    pub(crate) core: Core,
    pub(crate) slot: ActorSlot,
    /// Of lists of digests that wait for company.
    pub(crate) digest_slot: ActorSlot,
    /// Port -> channel.
    pub(crate) channels: Vec<Option<usize>>,
}

/// Where a channel ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attachment {
    Host(usize),
    Switch(usize, PortId),
}

pub(crate) struct EndNode {
    pub(crate) end: End,
    pub(crate) host: usize,
    /// UDP port of data, or TCP port, at both ends.
    pub(crate) port: u16,
    pub(crate) slot: ActorSlot,
    /// Its timer moves with every packet, mostly to later: see [`Network::rearm`].
    pub(crate) lazy: bool,
}

/// What a slot stands for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Actor {
    Switch(usize),
    Digests(usize),
    Channel(usize),
    End(usize),
    Membership(usize),
    Control,
    Recorder,
    Changes,
}

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
    marks: VecDeque<Nanos>,
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
    until: Nanos,
    pub(crate) work: WorkCounts,
    pub(crate) pool: FramePool,
    pub(crate) memberships: Vec<(u32, bool)>,
    segments: Vec<Transmit>,
    departures: Departures,
}

/// Intervals whose records get room at once.
const MAX_ROOM: u64 = 10_000;

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
            segments: Vec::new(),
            departures: Departures::default(),
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
        self.queue.set(self.control_slot, channel.next());
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
        control.wake(at, id);
        self.queue.set(self.control_slot, control.next());
        Ok(())
    }

    /// At these instants, too, what ports and ends have counted is recorded, before anything else that happens then: sums over a window
    /// that begins or ends there are exact.
    ///
    /// # Errors
    /// One lies in the past.
    pub fn mark(&mut self, instants: impl IntoIterator<Item = Nanos>) -> Result<(), BuildError> {
        let mut marks: Vec<Nanos> = self.marks.drain(..).chain(instants).collect();
        marks.sort_unstable();
        marks.dedup();
        if let Some(&first) = marks.first().filter(|&&first| first < self.now) {
            return Err(BuildError::new("mark", format!("{first} ns has passed: the run is at {} ns", self.now)));
        }
        self.marks = marks.into();
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
        while let Some((time, slot)) = self.queue.peek() {
            self.record_marks(time.min(end));
            if time > end {
                break;
            }
            // An end may find that what it waits for was due already: a new rate, a shorter timeout. Time does not go back for it.
            self.now = self.now.max(time);
            self.work.events += 1;
            let Some(&actor) = self.actors.get(slot as usize) else { break };
            match actor {
                Actor::Switch(switch) => self.poll_switch(switch)?,
                Actor::Channel(channel) => self.arrive(channel)?,
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
        self.record_marks(end);
        self.now = self.now.max(end);
        self.flush()
    }

    /// Records at the marked instants that have come.
    fn record_marks(&mut self, until: Nanos) {
        while let Some(&mark) = self.marks.front().filter(|&&mark| mark <= until) {
            self.marks.pop_front();
            // What was due before has happened.
            self.now = self.now.max(mark);
            self.sample_ports(mark);
            self.ends.iter_mut().for_each(|node| node.end.mark(mark));
        }
        while let Some(&(mark, end)) = self.end_marks.first().filter(|&&(mark, _)| mark <= until) {
            self.end_marks.pop_first();
            self.ends[end].end.mark(mark);
        }
    }

    fn begin(&mut self) -> Result<(), RunError> {
        self.started = true;
        if self.options.record_interval > 0 {
            self.queue.set(self.recorder_slot, Some(self.options.record_interval));
        }
        self.changes.make_contiguous().sort_by_key(|(at, _)| *at);
        self.queue.set(self.changes_slot, self.changes.front().map(|(at, _)| *at));
        for node in &self.ends {
            self.queue.set(node.slot, node.end.next());
        }
        for node in &self.switches {
            self.queue.set(node.slot, node.device.next_event());
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
    fn settle(&mut self, switch: usize, acted: bool) {
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
        }
        let events = node.device.take_events();
        if !events.is_empty() {
            let messages = node.core.on_device_events(events, self.now);
            self.queue.set(node.digest_slot, node.core.next_deadline());
            self.notify(switch, messages);
        }
    }

    fn notify(&mut self, switch: usize, messages: Vec<fairlane_p4rt::Notification>) {
        if let Some(control) = self.control.as_mut().filter(|_| !messages.is_empty()) {
            control.notify(self.now, switch, messages);
            self.queue.set(self.control_slot, control.next());
        }
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

    fn control_event(&mut self) -> Result<(), RunError> {
        let Some(control) = &mut self.control else { return Ok(()) };
        if let Some(event) = control.take(self.now) {
            match event {
                Event::ToSwitch { switch, token, request } => {
                    if let Some(node) = self.switches.get_mut(switch) {
                        control.call(self.now, switch, token, request, &mut node.core, &mut node.device);
                        self.queue.set(node.digest_slot, node.core.next_deadline());
                        self.settle(switch, false);
                    }
                }
                event => {
                    let switches = self.switches.len();
                    let delivered = control.deliver(self.now, event, switches);
                    delivered.map_err(|fault| RunError::Fault { time: self.now, fault })?;
                }
            }
        }
        let next = self.control.as_ref().and_then(ControlChannel::next);
        self.queue.reset(self.control_slot, next);
        Ok(())
    }

    /// Writes the periodic records of all ports and ends.
    fn record(&mut self) {
        let now = self.now;
        let before = self.samples.len();
        self.sample_ports(now);
        self.sample_queues(now);
        // Room for all that follow: a list that grew step by step would be copied, and take fresh memory, again and again.
        let left = self.until.saturating_sub(now) / self.options.record_interval;
        self.samples.reserve_exact((self.samples.len() - before).saturating_mul(left.min(MAX_ROOM) as usize));
        for node in &mut self.ends {
            node.end.sample(now);
        }
        self.queue.reset(self.recorder_slot, Some(now + self.options.record_interval));
    }

    fn sample_ports(&mut self, now: Nanos) {
        let counts = self.impaired.iter().map(|&link| LinkSample { time: now, link, counts: self.channels[link].stats });
        self.link_samples.extend(counts);
        for (switch, node) in self.switches.iter().enumerate() {
            for port in node.device.ports() {
                if node.channels.get(port as usize).copied().flatten().is_some()
                    && let Some(snapshot) = node.device.snapshot(now, port)
                {
                    self.samples.push(PortSample { time: now, switch, port: snapshot });
                }
            }
        }
    }

    /// Of the ports that have several.
    fn sample_queues(&mut self, now: Nanos) {
        for (switch, node) in self.switches.iter_mut().enumerate() {
            if node.device.config().priorities < 2 {
                continue;
            }
            for port in node.device.ports().collect::<Vec<_>>() {
                let queues = node.device.take_queues(port);
                self.queue_samples.extend(queues.map(|(priority, queue)| QueueSample { time: now, switch, port, priority, queue }));
            }
        }
    }

    fn change(&mut self) {
        while self.changes.front().is_some_and(|(at, _)| *at <= self.now) {
            let Some((_, change)) = self.changes.pop_front() else { break };
            self.change_link(change);
        }
        self.queue.reset(self.changes_slot, self.changes.front().map(|(at, _)| *at));
    }

    fn change_link(&mut self, change: Change) {
        let from = change.from();
        let Some(index) = self.channel_of(from) else { return };
        let switch = self.switches.iter().position(|node| node.name == from.node);
        let (now, port, channel) = (self.now, from.port, &mut self.channels[index]);
        let mut device = switch.map(|switch| &mut self.switches[switch].device);
        let mut config = device.as_ref().and_then(|device| device.port_config(port).cloned());
        match change {
            Change::LinkRate { rate_bps, .. } => {
                // How long the link was busy at the old rate, and how long at the new one, is told apart.
                let snapshot = device.as_ref().and_then(|device| device.snapshot(now, port));
                self.samples.extend(snapshot.zip(switch).map(|(port, switch)| PortSample { time: now, switch, port }));
                channel.set_rate(now, rate_bps);
                config.iter_mut().for_each(|config| config.rate_bps = rate_bps);
            }
            Change::LinkDelay { delay_ns, .. } => {
                channel.set_delay(delay_ns);
                config.iter_mut().for_each(|config| config.delay_ns = delay_ns);
            }
            Change::LinkLoss { loss, .. } => channel.set_loss(loss),
            Change::LinkImpairments { change, .. } => channel.set_impairments(change.of(channel.config.impairments)),
            Change::LinkJitter { jitter, .. } => channel.set_jitter(jitter),
            Change::LinkTrace { trace, .. } => match &mut device {
                Some(device) => _ = device.follow(now, port, trace, now),
                None => channel.follow(now, trace, now),
            },
            Change::LinkState { up, .. } => {
                let lost = channel.set_up(up);
                if let Some(device) = &mut device {
                    device.set_link(now, port, up);
                    lost.iter().for_each(|frame| device.lose_frame(now, port, frame));
                }
                lost.into_iter().for_each(|frame| self.pool.give(frame));
            }
            Change::Frame { frame, .. } => {
                let _ = channel.send(now, frame);
            }
        }
        if let (Some(device), Some(config)) = (device, config) {
            // The rate was checked when the change was added.
            let _ = device.set_port(port, config);
        }
        self.queue.set(self.channel_slots[index], self.channels[index].next());
        if let Some(switch) = switch {
            self.settle(switch, false);
        }
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

    /// Measures from now on how long packets wait in the queues of switches, their one-way delays, and round trips, as far as they leave the queue, arrive, or
    /// are acknowledged in a window. What was measured before is forgotten.
    pub fn measure_delays(&mut self, from: Nanos, to: Nanos) {
        self.measured = Some((from, to));
        self.switches.iter_mut().for_each(|node| node.device.measure_waits(from, to));
        self.ends.iter_mut().for_each(|node| *node.end.delays() = Delays::within(from, to));
    }

    /// What [`Network::measure_delays`] asked for, where there is any.
    pub fn delays(&mut self) -> Vec<(Measured, Delays)> {
        let mut found = Vec::new();
        for (switch, node) in self.switches.iter().enumerate() {
            for port in node.device.ports().filter(|&port| node.channels.get(port as usize).copied().flatten().is_some()) {
                let queues = node.device.waits(port).enumerate();
                found.extend(queues.map(|(priority, waits)| (Measured::Wait { switch, port, priority }, waits.clone())));
            }
        }
        for (flow, FlowEnds { sender, receivers, .. }) in self.flows.iter().enumerate() {
            found.push((Measured::RoundTrip { flow }, self.ends[*sender].end.delays().clone()));
            for (receiver, &end) in receivers.iter().enumerate() {
                found.push((Measured::OneWay { flow, receiver }, self.ends[end].end.delays().clone()));
            }
        }
        found.retain(|(_, delays)| delays.packets() > 0);
        found
    }

    /// Takes the records of all ports that have several queues, queue by queue.
    pub fn take_queue_samples(&mut self) -> Vec<QueueSample> {
        std::mem::take(&mut self.queue_samples)
    }

    /// Takes the records of all ports.
    pub fn take_port_samples(&mut self) -> Vec<PortSample> {
        std::mem::take(&mut self.samples)
    }

    /// Takes the records of the links that lose or impair frames.
    pub fn take_link_samples(&mut self) -> Vec<LinkSample> {
        std::mem::take(&mut self.link_samples)
    }

    /// The nodes between which a direction of a link leads, by the number that [`LinkSample`] has.
    pub fn link_name(&self, link: usize) -> Option<(&str, &str)> {
        self.channel_names.get(link).map(|(from, to)| (from.as_str(), to.as_str()))
    }

    /// Whether a link corrupts frames at some time.
    pub fn corrupts(&self) -> bool {
        self.verifies
    }

    /// What the ports of all switches had counted at each interval's end, as far as it was not taken.
    pub fn port_samples(&self) -> &[PortSample] {
        &self.samples
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

    /// Datagrams that a host dropped for a wrong checksum of IPv4, UDP or TCP.
    pub fn wrong_checksums(&self, host: &str) -> Option<u64> {
        self.hosts.iter().find(|node| node.name == host).map(|node| node.wrong_checksums)
    }

    /// Datagrams that reached a host and that no flow there claimed.
    pub fn unclaimed(&self, host: &str) -> Option<u64> {
        self.hosts.iter().find(|node| node.name == host).map(|node| node.unclaimed)
    }
}
