//! Building a network: everything that is wrong with a description is said before the clock starts.

use std::collections::VecDeque;
use std::path::Path;

use fairlane_channel::{Channel, ChannelConfig, Impairments, LossModel};
use fairlane_device::{Capacity, Device, DeviceConfig, PortConfig};
use fairlane_endpoint::{
    check_session, Backlog, Delays, Ip, Life, RawReceiver, RawSender, ReceiverSpec, RtpReceiver, RtpSender, SenderSpec,
};
use fairlane_p4rt::Core;
use fairlane_random::{seed_of, Rng};
use rustc_hash::FxHashMap;

use crate::capture::Capture;
use crate::description::LinkEnd;
use crate::error::{nearest, BuildError, RunError};
use crate::flow::{End, FlowKind, FlowSpec, RtpSpec};
use crate::identity::Form;
use crate::ip::{HostAddress, PROTOCOL_TCP, PROTOCOL_UDP};
use crate::membership::Membership;
use crate::network::{Actor, Network};
use crate::nodes::{Attachment, EndNode, FlowEnds, Host, NodeIndex, SwitchNode, Way};
use crate::observer::Observer;
use crate::packets::PacketWriter;
use crate::tcp::{TcpReceiver, TcpSender};
use crate::trace::TraceWriter;
use crate::watch::{Drop, Search, Station, Wanted, Watch};
use crate::Nanos;

/// A receiver of rate-adaptive flows is there so long before its sender, and so long after it.
pub(crate) const LINGER: Nanos = 500_000_000;

impl Network {
    /// Adds a switch with device id `device_id`; the seed of its program's `random()` follows from the run's. Ports come with
    /// links. Returns its number.
    ///
    /// # Errors
    /// A name that is taken.
    pub fn add_switch(&mut self, name: &str, device_id: u64, config: DeviceConfig) -> Result<usize, BuildError> {
        self.check_new_name(name)?;
        let number = self.switches.len();
        let seed = seed_of(self.options.seed, &format!("switch {name}"));
        let slot = self.slot(Actor::Switch(number));
        let digest_slot = self.slot(Actor::Digests(number));
        let call_slot = self.slot(Actor::Calls(number));
        self.nodes.insert(name.to_string(), NodeIndex::Switch(number));
        self.switches.push(SwitchNode {
            name: name.to_string(),
            device: Device::new(DeviceConfig { seed, ..config }),
            core: Core::new(device_id, self.options.epoch),
            slot,
            digest_slot,
            calls: VecDeque::new(),
            call_slot,
            said: 0,
            channels: Vec::new(),
        });
        Ok(number)
    }

    /// The version of IP of the hosts there are.
    pub fn ip(&self) -> Ip {
        self.hosts.first().map_or(Ip::V4, |host| host.address.version)
    }

    /// Adds a host; it gets one link.
    ///
    /// # Errors
    /// A name or an address that is taken, an address of another version of IP than those of other hosts.
    pub fn add_host(&mut self, name: &str, address: HostAddress) -> Result<usize, BuildError> {
        self.check_new_name(name)?;
        if let Some(&other) = self.host_of.get(&address.ip) {
            return Err(BuildError::new(format!("host {name}"), format!("has the address of {}", self.hosts[other].name)));
        }
        if !self.hosts.is_empty() && address.version != self.ip() {
            let what = format!(
                "has the address {}: all hosts have IPv4 addresses, or all have IPv6 addresses",
                address.version.address(address.ip)
            );
            return Err(BuildError::new(format!("host {name}"), what));
        }
        self.host_of.insert(address.ip, self.hosts.len());
        self.nodes.insert(name.to_string(), NodeIndex::Host(self.hosts.len()));
        let slot = self.slot(Actor::Membership(self.hosts.len()));
        let membership = Membership::new(Rng::stream(self.options.seed, &format!("host {name} membership")));
        self.hosts.push(Host {
            name: name.to_string(),
            address,
            channel: None,
            demux: Default::default(),
            membership,
            slot,
            unclaimed: 0,
            wrong_checksums: 0,
        });
        Ok(self.hosts.len() - 1)
    }

    fn check_new_name(&self, name: &str) -> Result<(), BuildError> {
        if self.node(name).is_some() {
            return Err(BuildError::new(format!("node {name}"), "two nodes have this name"));
        }
        Ok(())
    }

    /// The number of a host.
    pub(crate) fn host(&self, name: &str) -> Option<usize> {
        match self.node(name) {
            Some(NodeIndex::Host(host)) => Some(host),
            _ => None,
        }
    }

    pub(crate) fn push_flow(&mut self, ends: FlowEnds) {
        self.flow_of.insert(ends.name.clone(), self.flows.len());
        self.flows.push(ends);
    }

    pub(crate) fn node(&self, name: &str) -> Option<NodeIndex> {
        self.nodes.get(name).copied()
    }

    /// Links two ends, each direction with its own properties.
    ///
    /// # Errors
    /// An unknown node, a port that has a link, a rate of 0, a probability that is none, a queue that holds nothing.
    pub fn connect(&mut self, a: &LinkEnd, b: &LinkEnd, there: &ChannelConfig, back: &ChannelConfig) -> Result<(), BuildError> {
        let key = format!("link {}-{}", a.node, b.node);
        if a.node == b.node {
            return Err(BuildError::new(key, "loops back to the same node"));
        }
        for (end, config) in [(a, there), (b, back)] {
            check_channel(&key, config)?;
            match self.node(&end.node) {
                None => {
                    let known = self.hosts.iter().map(|h| h.name.as_str()).chain(self.switches.iter().map(|s| s.name.as_str()));
                    return Err(BuildError::new(key, format!("unknown node {:?}{}", end.node, nearest(&end.node, known))));
                }
                Some(NodeIndex::Host(host)) => {
                    if self.hosts[host].channel.is_some() {
                        return Err(BuildError::new(key, format!("host {} has a link already", end.node)));
                    }
                }
                Some(NodeIndex::Switch(switch)) => {
                    if self.switches[switch].channels.get(end.port as usize).copied().flatten().is_some() {
                        return Err(BuildError::new(key, format!("port {} of {} has a link already", end.port, end.node)));
                    }
                }
            }
        }
        for (from, to, config) in [(a, b, there), (b, a, back)] {
            let index = self.channels.len();
            let attachment = match self.node(&to.node) {
                Some(NodeIndex::Host(host)) => Attachment::Host(host),
                Some(NodeIndex::Switch(switch)) => Attachment::Switch(switch, to.port),
                None => continue,
            };
            let slot = self.slot(Actor::Channel(index));
            let mut between = false;
            let from_host = match self.node(&from.node) {
                Some(NodeIndex::Host(host)) => {
                    self.hosts[host].channel = Some(index);
                    true
                }
                Some(NodeIndex::Switch(switch)) => {
                    let node = &mut self.switches[switch];
                    let priorities = node.device.config().priorities;
                    let port = PortConfig {
                        rate_bps: config.rate_bps,
                        capacity: Capacity::Packets(config.queue_packets),
                        delay_ns: config.delay_ns,
                        priorities,
                        scheduler: config.scheduler,
                        overhead_bytes: config.overhead_bytes,
                    };
                    node.device.set_port(from.port, port).map_err(|error| BuildError::new(key.clone(), error.to_string()))?;
                    let slot = from.port as usize;
                    if slot >= node.channels.len() {
                        node.channels.resize(slot + 1, None);
                    }
                    node.channels[slot] = Some(index);
                    if matches!(attachment, Attachment::Switch(..)) {
                        node.device.hand_over(from.port);
                        between = true;
                    }
                    false
                }
                None => false,
            };
            self.note_impairments(index, config.loss.is_some(), &config.impairments);
            let way = between.then(|| Way { frames: VecDeque::new(), slot: self.slot(Actor::Way(index)) });
            self.ways.push(way);
            self.channels.push(Channel::new(config.clone(), from_host, self.options.seed, &from.node, &to.node));
            self.channel_ends.push(attachment);
            self.channel_slots.push(slot);
            self.channel_names.push((from.node.clone(), to.node.clone()));
            self.link_names.push(format!("{}->{}", from.node, to.node));
        }
        Ok(())
    }

    /// A direction of a link does this at some time.
    pub(crate) fn note_impairments(&mut self, channel: usize, loses: bool, impairments: &Impairments) {
        if loses || !impairments.are_none() {
            self.impaired.insert(channel);
        }
        self.verifies |= impairments.corrupt > 0.0;
    }

    /// Adds a flow.
    ///
    /// # Errors
    /// An unknown host, a name or a port that is taken, a time that cannot be, settings that its kind refuses.
    pub fn add_flow(&mut self, spec: FlowSpec) -> Result<(), BuildError> {
        let key = format!("flow {}", spec.name);
        let fail = |what: String| BuildError::new(key.clone(), what);
        let index = |name: &str, role: &str| {
            self.host(name).ok_or_else(|| {
                let known = self.hosts.iter().map(|host| host.name.as_str());
                BuildError::new(format!("{key} {role}"), format!("unknown host {name:?}{}", nearest(name, known)))
            })
        };
        let (sender, receiver) = (index(&spec.sender, "sender")?, index(&spec.receiver, "receiver")?);
        if sender == receiver {
            return Err(fail(format!("{} cannot send to itself", spec.sender)));
        }
        if self.flow_of.contains_key(&spec.name) {
            return Err(fail("two flows have this name".into()));
        }
        self.check_times(&key, spec.start, spec.stop)?;
        let (from, to) = (self.hosts[sender].address, self.hosts[receiver].address);
        let life = |peer: HostAddress, start, stop| Life { peer: peer.ip, ip: peer.version, start, stop };
        let linger = (spec.start.saturating_sub(LINGER), spec.stop.saturating_add(LINGER));
        let (protocol, ports) = match spec.kind {
            FlowKind::Tcp(_) => (PROTOCOL_TCP, 1),
            FlowKind::Rtp(_) => (PROTOCOL_UDP, 2),
            FlowKind::Raw(_) => (PROTOCOL_UDP, 1),
        };
        if spec.port == 0 || matches!(spec.kind, FlowKind::Rtp(_)) && spec.port % 2 == 1 {
            return Err(fail(format!("port {}: not 0, and even for RTP [RFC 3550 sec 11]", spec.port)));
        }
        for port in spec.port..spec.port + ports {
            let taken = self.hosts[sender].demux.contains_key(&(to.ip, port, protocol))
                || self.hosts[receiver].demux.contains_key(&(from.ip, port, protocol));
            if taken {
                return Err(fail(format!("port {port} is used by another flow between {} and {}", spec.sender, spec.receiver)));
            }
        }
        let seed = self.options.seed;
        let lazy = matches!(spec.kind, FlowKind::Tcp(_));
        let (form, first, second) = match spec.kind {
            FlowKind::Tcp(tcp) => {
                let mut rng = Rng::stream(seed, &format!("flow {}", spec.name));
                let (iss, receiver_iss) = (rng.bits() as u32, rng.bits() as u32);
                let refused = |error: fairlane_tcp::ConfigError| fail(error.to_string());
                let processing = Rng::stream(seed, &format!("flow {} processing", spec.name));
                let sender = TcpSender::new(life(to, spec.start, spec.stop), &tcp, iss, processing).map_err(refused)?;
                let receiver =
                    TcpReceiver::new(life(from, linger.0, linger.1), &tcp, receiver_iss, iss, sender.flight()).map_err(refused)?;
                (Form::Tcp(iss), End::TcpSender(Box::new(sender)), End::TcpReceiver(Box::new(receiver)))
            }
            FlowKind::Rtp(rtp) => {
                let media = rtp.application.is_some();
                let film = rtp.application.as_ref().is_some_and(fairlane_endpoint::Application::is_film);
                check_session(from.version, rtp.packet_bytes, media, rtp.session_bandwidth_bps, rtp.pacing_jitter, rtp.phase)
                    .map_err(fail)?;
                let RtpSpec { sender: sending, receiver: receiving, application, .. } = rtp;
                let backlog = application.map(|application| {
                    let stream = fairlane_random::Stream::new(seed, &format!("flow {} source", spec.name));
                    Backlog::new(application, from.version, rtp.packet_bytes, spec.start, stream).map_err(fail)
                });
                let settings = SenderSpec {
                    name: spec.name.clone(),
                    packet_bytes: rtp.packet_bytes,
                    session_bandwidth_bps: rtp.session_bandwidth_bps,
                    pacing_jitter: rtp.pacing_jitter,
                    phase: rtp.phase,
                    exact_loss: rtp.exact_loss,
                    ssrc: rtp.sender_ssrc,
                    cname: rtp.sender_cname.into_bytes(),
                    layered: false,
                    circuit_breaker: rtp.circuit_breaker,
                    report_interval: rtp.report_interval,
                };
                let heard = ReceiverSpec {
                    name: spec.name.clone(),
                    stream: format!("flow {} receiver", spec.name),
                    session_bandwidth_bps: rtp.session_bandwidth_bps,
                    ssrc: rtp.receiver_ssrc,
                    cname: rtp.receiver_cname.into_bytes(),
                    acks: sending.interests().acks != fairlane_endpoint::algorithm::AckDetail::None,
                    report_interval: rtp.report_interval,
                    media,
                    film,
                    delay_threshold: rtp.delay_threshold,
                    base_group: None,
                    rtcp: rtp.circuit_breaker.is_some(),
                };
                let sender = RtpSender::new(life(to, spec.start, spec.stop), settings, sending, backlog.transpose()?, seed);
                let receiver = RtpReceiver::new(life(from, linger.0, linger.1), heard, receiving, seed);
                (Form::Rtp, End::Udp(Box::new(sender)), End::Udp(Box::new(receiver)))
            }
            FlowKind::Raw(raw) => {
                let stream = fairlane_random::Stream::new(seed, &format!("flow {} source", spec.name));
                let sender = RawSender::new(life(to, spec.start, spec.stop), raw, stream).map_err(fail)?;
                let receiver = RawReceiver::new(life(from, linger.0, linger.1));
                (Form::Raw, End::Udp(Box::new(sender)), End::Udp(Box::new(receiver)))
            }
        };
        let (first, second) = (self.add_end(first, sender, spec.port, lazy), self.add_end(second, receiver, spec.port, lazy));
        for port in spec.port..spec.port + ports {
            self.hosts[sender].demux.insert((to.ip, port, protocol), first);
            self.hosts[receiver].demux.insert((from.ip, port, protocol), second);
        }
        // What has arrived when the flow starts, and when it stops.
        self.end_marks.extend([(spec.start, second), (spec.stop, second)]);
        self.push_flow(FlowEnds { name: spec.name, sender: first, receivers: vec![second], form });
        Ok(())
    }

    /// Lets a flow stop at another instant than planned, which may be now; of a flow that is over already, nothing changes.
    ///
    /// # Errors
    /// An unknown flow, an instant that has passed or does not lie after the flow's start.
    pub fn stop_flow(&mut self, name: &str, at: Nanos) -> Result<(), BuildError> {
        let Some(flow) = self.flows.iter().find(|flow| flow.name == name) else {
            let known = self.flows.iter().map(|flow| flow.name.as_str());
            return Err(BuildError::new(format!("flow {name}"), format!("there is no such flow{}", nearest(name, known))));
        };
        let start = self.ends[flow.sender].end.life().start;
        if at < self.now || at <= start {
            let what = format!("cannot stop at {at} ns: it starts at {start} ns, and the run is at {} ns", self.now);
            return Err(BuildError::new(format!("flow {name}"), what));
        }
        self.end_marks.extend(flow.receivers.iter().map(|&end| (at, end)));
        for (index, stop) in std::iter::once((flow.sender, at)).chain(flow.receivers.iter().map(|&end| (end, at.saturating_add(LINGER)))) {
            let node = &mut self.ends[index];
            node.end.life().stop = stop;
            if self.started {
                self.queue.set(node.slot, node.end.next().map(|time| time.max(self.now)));
            }
        }
        Ok(())
    }

    /// A flow must start before it stops, before the run's end, and not in the past.
    pub(crate) fn check_times(&self, key: &str, start: Nanos, stop: Nanos) -> Result<(), BuildError> {
        if self.started && start < self.now {
            return Err(BuildError::new(key, format!("starts at {start} ns, which lies in the past: the run is at {} ns", self.now)));
        }
        if stop <= start {
            return Err(BuildError::new(key, format!("stops at {stop} ns and starts at {start} ns: it must start before it stops")));
        }
        match self.options.end.filter(|&end| start >= end) {
            Some(end) => Err(BuildError::new(key, format!("starts at {start} ns, not before the run's end at {end} ns"))),
            None => Ok(()),
        }
    }

    pub(crate) fn add_end(&mut self, mut end: End, host: usize, port: u16, lazy: bool) -> usize {
        let slot = self.slot(Actor::End(self.ends.len()));
        if let Some((from, to)) = self.measured {
            *end.delays() = Delays::within(from, to);
        }
        if self.started {
            // A receiver waits from before its flow's start, which may be now.
            self.queue.set(slot, end.next().map(|time| time.max(self.now)));
        }
        self.ends.push(EndNode { end, host, port, slot, lazy });
        self.ends.len() - 1
    }

    pub(crate) fn channel_of(&self, from: &LinkEnd) -> Option<usize> {
        match self.node(&from.node)? {
            NodeIndex::Host(host) => self.hosts[host].channel,
            NodeIndex::Switch(switch) => self.switches[switch].channels.get(from.port as usize).copied().flatten(),
        }
    }

    /// Captures every frame that arrives at an end of a link, from now on, in one file for each direction: `FROM-TO.pcap`.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn capture(&mut self, directory: &Path) -> Result<(), RunError> {
        self.captures.clear();
        for (from, to) in &self.channel_names {
            let capture = Capture::create(directory, from, to);
            self.captures.push(capture.map_err(|error| RunError::File { path: directory.display().to_string(), error })?);
        }
        Ok(())
    }

    /// Logs each packet at each queue of the nodes there are, from now on.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn trace(&mut self, path: &Path) -> Result<(), RunError> {
        let writer = TraceWriter::create(path).map_err(|error| RunError::File { path: path.display().to_string(), error })?;
        self.observe().trace = Some(writer);
        Ok(())
    }

    /// Records each packet's stay in a queue of the switches there are, from now on: a row of [`PACKET_COLUMNS`](crate::PACKET_COLUMNS). Times count from
    /// `origin`. `only`: queues of these ports alone.
    ///
    /// # Errors
    /// Those of the file system; a port that has no link.
    pub fn record_packets(&mut self, path: &Path, origin: Nanos, only: Option<&[LinkEnd]>) -> Result<(), RunError> {
        let place = |end: &LinkEnd| {
            let switch = self.switches.iter().position(|node| node.name == end.node).filter(|_| self.channel_of(end).is_some());
            let missing =
                || BuildError::new("record of packets", format!("port {} of {:?} is no port of a switch with a link", end.port, end.node));
            switch.map(|switch| (switch, end.port)).ok_or_else(missing)
        };
        let only = only.map(|ends| ends.iter().map(place).collect::<Result<_, _>>()).transpose()?;
        let writer =
            PacketWriter::create(path, origin, only).map_err(|error| RunError::File { path: path.display().to_string(), error })?;
        self.observe().packets = Some(writer);
        Ok(())
    }

    /// Looks for a packet that is dropped, from now on: the one after `before` others, of a flow with that name, and for that cause, where these are given.
    pub fn search_drop(&mut self, flow: Option<&str>, cause: Option<&str>, before: u64) {
        let (flow, cause) = (flow.map(str::to_string), cause.map(str::to_string));
        self.observe().search = Some(Search { flow, cause, left: before, found: None });
    }

    /// What [`Network::search_drop`] has found.
    pub fn found_drop(&self) -> Option<&Drop> {
        self.observer.as_ref()?.search.as_ref()?.found.as_ref()
    }

    /// Follows a packet, from now on. Switches keep its steps if they are ready for that ([`DeviceConfig::observe`]).
    pub fn watch(&mut self, wanted: Wanted) {
        self.observer.get_or_insert_default().watch = Some(Watch::new(wanted));
    }

    /// Where the packet that is followed was; the last stations alone, where they are many.
    pub fn way(&self) -> impl Iterator<Item = &Station> {
        self.observer.as_ref().and_then(|observer| observer.watch.as_ref()).into_iter().flat_map(|watch| &watch.way)
    }

    fn observe(&mut self) -> &mut Observer {
        for node in &mut self.switches {
            node.device.set_trace(true);
        }
        self.observer.get_or_insert_default()
    }

    /// What can only be said when all is there: every host that takes part has a link, and every receiver can be reached.
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        let parts = self.parts();
        for flow in &self.flows {
            let sender = self.ends[flow.sender].host;
            for receiver in flow.receivers.iter().map(|&receiver| self.ends[receiver].host) {
                for host in [sender, receiver] {
                    if self.hosts[host].channel.is_none() {
                        return Err(BuildError::new(format!("flow {}", flow.name), format!("host {} has no link", self.hosts[host].name)));
                    }
                }
                let part = |host: usize| parts.get(self.hosts[host].name.as_str());
                if part(sender) != part(receiver) {
                    let what =
                        format!("{} cannot be reached from {}: no path of links", self.hosts[receiver].name, self.hosts[sender].name);
                    return Err(BuildError::new(format!("flow {}", flow.name), what));
                }
            }
        }
        Ok(())
    }

    /// Of each node that has a link: nodes with a way between them have the same number.
    fn parts(&self) -> FxHashMap<&str, usize> {
        let mut peers: FxHashMap<&str, Vec<&str>> = FxHashMap::default();
        for (from, to) in &self.channel_names {
            peers.entry(from).or_default().push(to);
        }
        let mut parts = FxHashMap::default();
        for (from, _) in &self.channel_names {
            let (number, mut todo) = (parts.len(), vec![from.as_str()]);
            while let Some(node) = todo.pop() {
                if !parts.contains_key(node) {
                    parts.insert(node, number);
                    todo.extend(peers.get(node).into_iter().flatten());
                }
            }
        }
        parts
    }
}

fn check_channel(key: &str, config: &ChannelConfig) -> Result<(), BuildError> {
    let fail = |what: String| Err(BuildError::new(key, what));
    if config.rate_bps == Some(0) {
        return fail("a rate of 0 bit/s never sends: give a positive rate, or none for an unlimited link".into());
    }
    if config.queue_packets == 0 {
        return fail("a queue of 0 packets holds none: give at least 1".into());
    }
    check_loss(key, &config.loss)?;
    check_impairments(key, &config.impairments)
}

pub(crate) fn check_loss(key: &str, loss: &Option<LossModel>) -> Result<(), BuildError> {
    for (name, p) in loss.iter().flat_map(|loss| loss.probabilities()) {
        if !(0.0..=1.0).contains(&p) {
            return Err(BuildError::new(key, format!("loss probability {name} = {p}: must be in [0, 1]")));
        }
    }
    Ok(())
}

pub(crate) fn check_impairments(key: &str, impairments: &Impairments) -> Result<(), BuildError> {
    match impairments.probabilities().into_iter().find(|(_, p)| !(0.0..=1.0).contains(p)) {
        Some((name, p)) => Err(BuildError::new(key, format!("probability {name} = {p}: must be in [0, 1]"))),
        None => Ok(()),
    }
}
