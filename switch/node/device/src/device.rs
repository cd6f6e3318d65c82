//! The device itself.

use std::sync::Arc;

use fairlane_pipeline::{
    ControlError, Detail, Digest, DropCause as PipelineDrop, EgressOut, IngressOut, Level, Observing, PacketEvent, Program, QueueInfo,
    Queued, Switch, SwitchConfig, TableEntry, TableId,
};
use fairlane_tm::{
    Capacity, ConfigError, Delays, DropCause as QueueDrop, Nanos, PortId, QueueLimits, QueueStats, Scheduler, Trace, TrafficManager,
};

use crate::counters::PortCounters;
use crate::delay::DelayLines;
use crate::trace::{QueueEvent, QueueStep};
use crate::{DropCause, Drops, PortSnapshot};

/// What a port of a device is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortConfig {
    /// Link rate in bits per second, positive; `None` transmits in no time.
    pub rate_bps: Option<u64>,
    /// Capacity of each priority queue.
    pub capacity: Capacity,
    /// Propagation delay of the link in nanoseconds, added after the last bit has left.
    pub delay_ns: Nanos,
    /// Priority queues, 1 to [`crate::MAX_PRIORITIES`].
    pub priorities: usize,
    /// Which of them sends next.
    pub scheduler: Scheduler,
    /// Bytes added to each frame on the link, or taken away: [`fairlane_tm::PortConfig`].
    pub overhead_bytes: i32,
}

impl Default for PortConfig {
    /// `simple_switch`'s: no rate limit, 64 packets, one priority queue; and no delay.
    fn default() -> Self {
        PortConfig {
            rate_bps: None,
            capacity: Capacity::Packets(64),
            delay_ns: 0,
            priorities: 1,
            scheduler: Scheduler::Strict,
            overhead_bytes: 0,
        }
    }
}

impl PortConfig {
    fn queue(&self) -> fairlane_tm::PortConfig {
        fairlane_tm::PortConfig {
            rate_bps: self.rate_bps,
            capacity: self.capacity,
            priorities: self.priorities,
            scheduler: self.scheduler,
            overhead_bytes: self.overhead_bytes,
        }
    }
}

/// How a device is set up.
#[derive(Debug, Clone)]
pub struct DeviceConfig {
    /// The port of packet-in and packet-out; it exists without being added.
    pub cpu_port: Option<PortId>,
    /// The `egress_spec` that means drop; 511 in v1model.
    pub drop_port: PortId,
    /// Priority queues of the pipeline: a packet of this priority or above is dropped (BMv2's default: 1).
    pub priorities: usize,
    /// Seed of the program's `random()`.
    pub seed: u64,
    /// How often one packet may be resubmitted, recirculated, or cloned from egress.
    pub max_passes: u32,
    /// Events kept until taken; more are lost and counted.
    pub max_events: usize,
    /// Keep the program's `log_msg` lines for [`Device::take_log`].
    pub log: bool,
    /// Be ready for [`Device::set_observing`].
    pub observe: Observing,
}

impl Default for DeviceConfig {
    fn default() -> Self {
        DeviceConfig {
            cpu_port: None,
            drop_port: 511,
            priorities: 1,
            seed: 0,
            max_passes: 64,
            max_events: 65_536,
            log: false,
            observe: Observing::Nothing,
        }
    }
}

/// What the data plane has to say to the control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A digest of one packet.
    Digest(Digest),
    /// A frame that left by the CPU port.
    PacketIn { timestamp: Nanos, frame: Vec<u8> },
    /// A table entry was not hit for its idle timeout.
    IdleTimeout { timestamp: Nanos, table: TableId, entry: TableEntry },
}

/// Where frames go that leave a device.
pub trait Output {
    /// A frame leaves `port` at the instant `departure` (now or a little ago), after serialisation and propagation.
    /// May return a buffer it no longer needs, this one or another, which the device uses again.
    fn transmit(&mut self, port: PortId, departure: Nanos, frame: Vec<u8>) -> Option<Vec<u8>>;
}

/// Collects `(port, departure, frame)`.
impl Output for Vec<(PortId, Nanos, Vec<u8>)> {
    fn transmit(&mut self, port: PortId, departure: Nanos, frame: Vec<u8>) -> Option<Vec<u8>> {
        self.push((port, departure, frame));
        None
    }
}

/// Time between two looks for entries whose idle timeout has run out (BMv2: 1 s).
const SWEEP_INTERVAL: Nanos = 100_000_000;

/// A packet in a queue, with how many egress clones led to it.
#[derive(Debug)]
struct Waiting {
    packet: Queued,
    generation: u32,
    /// As of `QueueEvent`.
    stay: u64,
}

#[derive(Debug)]
struct Port {
    config: PortConfig,
    counters: PortCounters,
    /// Whether its link has failed.
    down: bool,
}

/// A switch; see the crate's description.
#[derive(Debug)]
pub struct Device {
    config: DeviceConfig,
    switch: Option<Switch>,
    tm: TrafficManager<Waiting>,
    lines: DelayLines,
    ports: Vec<Option<Port>>,
    /// Drops at no port, or at ports that do not exist (any more).
    stray: Drops,
    events: Vec<Event>,
    events_lost: u64,
    next_sweep: Option<Nanos>,
    /// Ports whose links have failed.
    links_down: usize,
    ingress_out: IngressOut,
    egress_out: EgressOut,
    /// Steps of packets since they were last taken; `None` keeps none.
    trace: Option<Vec<QueueEvent>>,
    /// Packets that came to queues.
    stays: u64,
    /// Packets for ports that do not exist: egress runs for them as in BMv2, there is no queue.
    portless: Vec<(PortId, Waiting)>,
}

impl Device {
    /// A device without program; its only port is the CPU port, where there is one.
    pub fn new(config: DeviceConfig) -> Self {
        let mut device = Device {
            switch: None,
            tm: TrafficManager::new(),
            lines: DelayLines::default(),
            ports: Vec::new(),
            stray: Drops::default(),
            events: Vec::new(),
            events_lost: 0,
            next_sweep: None,
            links_down: 0,
            ingress_out: IngressOut::default(),
            egress_out: EgressOut::default(),
            trace: None,
            stays: 0,
            portless: Vec::new(),
            config,
        };
        if let Some(cpu_port) = device.config.cpu_port {
            let priorities = device.config.priorities;
            // Refused only when its number is out of range; there is no CPU port then, and frames for it are counted as `no_port`.
            let _ = device.set_port(cpu_port, PortConfig { priorities, ..PortConfig::default() });
        }
        device
    }

    /// How it was set up.
    pub fn config(&self) -> &DeviceConfig {
        &self.config
    }

    /// Loads a program, or replaces the one that runs. Tables and all other state are new; what waits in queues is dropped
    /// ([`DropCause::Reconfigured`]), what is on a link still arrives.
    ///
    /// # Errors
    /// [`ControlError::ResourceExhausted`] where there is not enough memory; nothing has changed then.
    pub fn load(&mut self, now: Nanos, program: Arc<Program>) -> Result<(), ControlError> {
        let loaded = Arc::clone(&program);
        match &mut self.switch {
            Some(switch) => switch.swap(program)?,
            None => {
                let config = SwitchConfig {
                    drop_port: self.config.drop_port,
                    cpu_port: self.config.cpu_port,
                    seed: self.config.seed,
                    priorities: self.config.priorities as u32,
                    max_passes: self.config.max_passes,
                    max_digests: self.config.max_events,
                    log: self.config.log,
                    observe: self.config.observe,
                    ..SwitchConfig::default()
                };
                self.switch = Some(Switch::new(program, config)?);
            }
        }
        self.clear_queues(now, &loaded);
        Ok(())
    }

    /// [`Device::load`] of the program of another device, which was set up like this one, with its tables and all other state; it gets
    /// this one's. Takes no longer than emptying the queues: reading a program and building its tables can so be done elsewhere.
    pub fn exchange(&mut self, now: Nanos, other: &mut Device) {
        let Some(fresh) = &mut other.switch else { return };
        self.clear_queues(now, &Arc::clone(fresh.program()));
        match &mut self.switch {
            Some(switch) => switch.exchange(fresh),
            None => self.switch = other.switch.take(),
        }
    }

    fn clear_queues(&mut self, now: Nanos, program: &Program) {
        for port in self.tm.ports().collect::<Vec<_>>() {
            for waiting in self.tm.clear(now, port) {
                if let Some(switch) = &mut self.switch {
                    switch.discard(waiting.packet);
                }
                self.count(port, DropCause::Reconfigured);
            }
        }
        let ages = program.tables().iter().any(|table| table.support_timeout);
        self.next_sweep = ages.then_some(now.saturating_add(SWEEP_INTERVAL));
    }

    /// The pipeline with its control interface; `None` before a program is loaded.
    pub fn switch(&self) -> Option<&Switch> {
        self.switch.as_ref()
    }

    /// The pipeline with its control interface; `None` before a program is loaded.
    pub fn switch_mut(&mut self) -> Option<&mut Switch> {
        self.switch.as_mut()
    }

    /// The link of a port fails, or works again. What waits there, and what is on the way, is lost, and so is all that comes to the port until the link works
    /// again ([`DropCause::LinkDown`]). Returns the number of frames lost now. Without effect where there is no such port.
    pub fn set_link(&mut self, now: Nanos, port: PortId, up: bool) -> u64 {
        self.serve(now);
        let Some(entry) = self.port_mut(port) else { return 0 };
        if entry.down != up {
            return 0;
        }
        entry.down = !up;
        if up {
            self.links_down -= 1;
            return 0;
        }
        self.links_down += 1;
        let mut lost = 0;
        for waiting in self.tm.clear(now, port) {
            self.lose(now, port, waiting.packet, waiting.stay);
            lost += 1;
        }
        for (_, frame) in self.lines.clear(port) {
            self.lose_frame(now, port, &frame);
            if let Some(switch) = &mut self.switch {
                switch.recycle(frame);
            }
            lost += 1;
        }
        lost
    }

    /// A frame that had left a port is lost, because its link fails.
    pub fn lose_frame(&mut self, now: Nanos, port: PortId, frame: &[u8]) {
        self.count(port, DropCause::LinkDown);
        if self.trace.is_some() {
            let (bytes, step) = (frame.len() as u32, QueueStep::Dropped(DropCause::LinkDown));
            self.step(QueueEvent { time: now, port, bytes, step, frame: frame.to_vec(), ..QueueEvent::default() });
        }
    }

    /// A packet that waits, or would, is lost because the link is down. `stay`: 0 of one that did not come to a queue.
    fn lose(&mut self, now: Nanos, port: PortId, packet: Queued, stay: u64) {
        self.count(port, DropCause::LinkDown);
        let (bytes, queue, step) = (packet.len(), packet.priority() as usize, QueueStep::Dropped(DropCause::LinkDown));
        self.step(QueueEvent { time: now, port, bytes, step, stay, queue, ..QueueEvent::default() });
        if let Some(switch) = &mut self.switch {
            switch.tell(&packet, || Detail::Lost(format!("the link of port {port} is down")));
            switch.discard(packet);
        }
    }

    fn is_down(&self, port: PortId) -> bool {
        self.links_down > 0 && self.port(port).is_some_and(|port| port.down)
    }

    /// Adds a port, or changes one while it runs: a packet in service ends at the old rate, packets waiting stay, frames in the
    /// delay line keep their instants.
    ///
    /// # Errors
    /// A port number above [`crate::MAX_PORT`], a rate of 0, or a number of priority queues out of range.
    pub fn set_port(&mut self, port: PortId, config: PortConfig) -> Result<(), ConfigError> {
        self.tm.configure(port, config.queue())?;
        let slot = port as usize;
        if slot >= self.ports.len() {
            self.ports.resize_with(slot + 1, || None);
        }
        match &mut self.ports[slot] {
            Some(existing) => existing.config = config,
            empty => *empty = Some(Port { config, counters: PortCounters::default(), down: false }),
        }
        Ok(())
    }

    /// From `now` on, the link of a port follows a trace that began at `origin`, until [`Device::set_port`] gives it another rate. False
    /// if there is no such port.
    pub fn follow(&mut self, now: Nanos, port: PortId, trace: Arc<Trace>, origin: Nanos) -> bool {
        self.tm.follow(now, port, trace, origin)
    }

    /// From now on, frames that leave a port are handed over as soon as their transmission begins ([`Device::take_handed`]), and not in [`Device::poll`]: whoever
    /// drives the device has them on their way, loses them where the link fails, and knows early what arrives at the other end.
    pub fn hand_over(&mut self, port: PortId) {
        self.lines.hand_over(port);
    }

    /// Appends the frames of ports that hand them over, with the instants at which they are at the other end; of one port in their order.
    pub fn take_handed(&mut self, to: &mut Vec<(PortId, Nanos, Vec<u8>)>) {
        self.lines.take_handed(to);
    }

    /// Gives a port's priority queue a rate in packets and a depth of its own, beside the port's configuration, as BMv2's have them.
    /// Without effect where there is no such port or queue.
    pub fn limit_queue(&mut self, port: PortId, priority: usize, limits: QueueLimits) {
        self.tm.limit_queue(port, priority, limits);
    }

    /// What was set by [`Device::limit_queue`].
    pub fn queue_limits(&self, port: PortId, priority: usize) -> QueueLimits {
        self.tm.queue_limits(port, priority)
    }

    /// Removes a port. What waits there is dropped; what is in its delay line still leaves.
    pub fn remove_port(&mut self, now: Nanos, port: PortId) {
        for waiting in self.tm.remove(now, port) {
            if let Some(switch) = &mut self.switch {
                switch.discard(waiting.packet);
            }
            self.count(port, DropCause::Reconfigured);
        }
        if let Some(removed) = self.ports.get_mut(port as usize).and_then(Option::take) {
            self.links_down -= usize::from(removed.down);
            self.stray.merge(&removed.counters.drops);
        }
    }

    /// All port numbers, ascending; the CPU port is among them.
    pub fn ports(&self) -> impl Iterator<Item = PortId> + '_ {
        self.tm.ports()
    }

    /// The configuration of a port, or `None` if there is no such port.
    pub fn port_config(&self, port: PortId) -> Option<&PortConfig> {
        self.port(port).map(|port| &port.config)
    }

    /// A frame comes in by a port (the CPU port: a packet-out). What was due before it is served first, then the frame goes
    /// through ingress and, where the link is free, egress. Frames that leave wait for [`Device::poll`].
    pub fn receive(&mut self, now: Nanos, port: PortId, frame: &[u8]) {
        let mut owned = self.switch.as_mut().map_or_else(Vec::new, Switch::buffer);
        owned.extend_from_slice(frame);
        self.receive_owned(now, port, owned);
    }

    /// [`Device::receive`] of a frame whose buffer the device may keep: it goes through the switch without being copied.
    pub fn receive_owned(&mut self, now: Nanos, port: PortId, frame: Vec<u8>) {
        self.serve(now);
        let length = frame.len();
        if let Some(entry) = self.port_mut(port) {
            entry.counters.rx_packets += 1;
            entry.counters.rx_bytes += length as u64;
        }
        let Some(switch) = &mut self.switch else {
            self.count(port, DropCause::NoProgram);
            return;
        };
        if let Some(trace) = &mut self.trace {
            trace.push(QueueEvent { time: now, port, bytes: length as u32, frame: frame.clone(), ..QueueEvent::default() });
        }
        let mut out = std::mem::take(&mut self.ingress_out);
        switch.ingress_owned(now, port, frame, &mut out);
        if let Some(cause) = out.dropped {
            self.count(port, pipeline_cause(cause));
            let wrong = u64::from(out.wrong_checksum);
            self.port_mut(port).into_iter().for_each(|entry| entry.counters.wrong_checksums += wrong);
            let step = QueueStep::Dropped(pipeline_cause(cause));
            self.step(QueueEvent { time: now, port, bytes: length as u32, step, ..QueueEvent::default() });
        }
        for packet in out.queued.drain(..) {
            let (port, priority, bytes) = (packet.egress_port(), packet.priority() as usize, packet.len());
            if self.is_down(port) {
                self.lose(now, port, packet, 0);
                continue;
            }
            self.stays += 1;
            let stay = self.stays;
            let waiting = Waiting { packet, generation: 0, stay };
            if self.tm.pass(now, port, priority, bytes) {
                if self.trace.is_some() {
                    let event =
                        QueueEvent { time: now, port, bytes, step: QueueStep::Enqueued, stay, queue: priority, ..QueueEvent::default() };
                    self.step(event.clone());
                    self.step(QueueEvent { step: QueueStep::Dequeued, ..event });
                }
                self.egress(now, port, waiting, QueueInfo { enq_timestamp: now, ..QueueInfo::default() });
            } else {
                self.enqueue(now, waiting);
            }
        }
        self.ingress_out = out;
        self.serve(now);
    }

    /// The earliest instant at which [`Device::poll`] has something to do; `None` when only a frame can change that.
    pub fn next_event(&self) -> Option<Nanos> {
        let departure = self.tm.next_departure().map(|(instant, _)| instant);
        [departure, self.lines.next(), self.next_sweep].into_iter().flatten().min()
    }

    /// Serves all queues up to `now` and hands over every frame whose instant of departure has come, in the order of the
    /// instants. Frames for the CPU port become [`Event::PacketIn`].
    pub fn poll(&mut self, now: Nanos, output: &mut impl Output) {
        self.serve(now);
        while let Some((port, departure, frame)) = self.lines.pop(now) {
            if self.config.cpu_port == Some(port) {
                self.event(Event::PacketIn { timestamp: departure, frame });
                continue;
            }
            if let (Some(spare), Some(switch)) = (output.transmit(port, departure, frame), &mut self.switch) {
                switch.recycle(spare);
            }
        }
        if self.next_sweep.is_some_and(|sweep| sweep <= now) {
            self.sweep(now);
        }
    }

    /// Takes what the data plane has to say, digests last. Empty (and without cost) most of the time.
    pub fn take_events(&mut self) -> Vec<Event> {
        let mut events = std::mem::take(&mut self.events);
        if let Some(switch) = self.switch.as_mut().filter(|switch| switch.has_digests()) {
            events.extend(switch.take_digests().into_iter().map(Event::Digest));
        }
        events
    }

    /// Events lost because nobody took them in time.
    pub fn events_lost(&self) -> u64 {
        self.events_lost + self.switch.as_ref().map_or(0, |switch| switch.stats().digests_lost)
    }

    /// Keeps every packet's steps from now on, or no longer; whoever asks must take them.
    pub fn set_trace(&mut self, on: bool) {
        self.trace = on.then(Vec::new);
    }

    /// Hands over each step since the last call, in order.
    pub fn drain_trace(&mut self, mut take: impl FnMut(QueueEvent)) {
        if let Some(trace) = &mut self.trace {
            trace.drain(..).for_each(&mut take);
        }
    }

    /// Keeps each packet's steps through the program from now on, or no longer; whoever asks must take them. Without effect unless the
    /// device is ready for that ([`DeviceConfig::observe`]).
    pub fn set_observing(&mut self, on: bool) {
        if let Some(switch) = &mut self.switch {
            switch.set_observing(on);
        }
    }

    /// Keeps from now on the steps of some packets alone: of the next one that comes in, and of those for which this was called before
    /// ([`Switch::watch_next`]).
    pub fn watch_next(&mut self) -> Option<u64> {
        self.switch.as_mut()?.watch_next()
    }

    /// Takes each packet's steps since the last call, in order.
    pub fn take_observed(&mut self) -> Vec<PacketEvent> {
        self.switch.as_mut().map_or_else(Vec::new, Switch::take_observed)
    }

    /// What BMv2's packet log says of a step ([`Device::take_observed`]) of the program that runs, and how urgently.
    pub fn worded(&self, event: &PacketEvent) -> Option<(Level, String)> {
        self.switch.as_ref().and_then(|switch| switch.worded(event))
    }

    /// Takes the program's `log_msg` lines; empty unless [`DeviceConfig::log`].
    pub fn take_log(&mut self) -> Vec<String> {
        self.switch.as_mut().map_or_else(Vec::new, Switch::take_log)
    }

    /// What a port has counted up to `now`, or `None` if there is no such port.
    pub fn snapshot(&self, now: Nanos, port: PortId) -> Option<PortSnapshot> {
        let counters = &self.port(port)?.counters;
        let queue = self.tm.stats(now, port)?;
        Some(PortSnapshot {
            port,
            rx_packets: counters.rx_packets,
            rx_bytes: counters.rx_bytes,
            tx_packets: queue.transmitted_packets,
            tx_bytes: queue.transmitted_bytes,
            drops: counters.drops,
            wrong_checksums: counters.wrong_checksums,
            busy_ns: queue.busy_ns,
            queue_integral_packet_ns: queue.queue_integral_packet_ns,
            depth_packets: queue.depth_packets,
            depth_bytes: queue.depth_bytes,
            max_depth_packets: queue.max_depth_packets,
        })
    }

    /// What each of a port's several priority queues has counted, those that no packet came to left out; see
    /// [`TrafficManager::take_queue_stats`].
    pub fn take_queues(&mut self, port: PortId) -> impl Iterator<Item = (usize, QueueStats)> + '_ {
        let priorities = self.tm.config(port).map_or(0, |config| config.priorities);
        let found = (0..priorities).filter_map(move |priority| Some((priority, self.tm.take_queue_stats(port, priority)?)));
        found.filter(|(_, stats)| stats.arrived_packets > 0)
    }

    /// How long packets wait in each queue will count, as far as they leave it in a window; see [`TrafficManager::measure`].
    pub fn measure_waits(&mut self, from: Nanos, to: Nanos) {
        self.tm.measure(from, to);
    }

    /// How long packets waited in each queue of a port, by its priority.
    pub fn waits(&self, port: PortId) -> impl Iterator<Item = &Delays> {
        self.tm.delays(port)
    }

    /// Packets dropped by the whole device, those at ports that do not exist too.
    pub fn drops(&self) -> Drops {
        let mut total = self.stray;
        for port in self.ports.iter().flatten() {
            total.merge(&port.counters.drops);
        }
        total
    }

    /// Frames on the link and in the delay line of a port.
    pub fn in_flight(&self, port: PortId) -> usize {
        self.lines.len(port)
    }

    fn port(&self, port: PortId) -> Option<&Port> {
        self.ports.get(port as usize)?.as_ref()
    }

    fn port_mut(&mut self, port: PortId) -> Option<&mut Port> {
        self.ports.get_mut(port as usize)?.as_mut()
    }

    fn count(&mut self, port: PortId, cause: DropCause) {
        match self.port_mut(port) {
            Some(port) => port.counters.drops.add(cause, 1),
            None => self.stray.add(cause, 1),
        }
    }

    fn step(&mut self, event: QueueEvent) {
        if let Some(trace) = &mut self.trace {
            trace.push(event);
        }
    }

    fn event(&mut self, event: Event) {
        if self.events.len() < self.config.max_events {
            self.events.push(event);
        } else {
            self.events_lost += 1;
        }
    }

    fn enqueue(&mut self, now: Nanos, waiting: Waiting) {
        let (port, priority, bytes) = (waiting.packet.egress_port(), waiting.packet.priority() as usize, waiting.packet.len());
        let (stay, queue) = (waiting.stay, priority);
        let (ahead_packets, ahead_bytes) = match self.trace {
            Some(_) => (self.tm.depth(port, priority), self.tm.depth_bytes(port, priority)),
            None => (0, 0),
        };
        let event = |step| QueueEvent { time: now, port, bytes, step, stay, queue, ahead_packets, ahead_bytes, frame: Vec::new() };
        if let Some(switch) = &mut self.switch {
            let tm = &self.tm;
            switch.tell(&waiting.packet, || Detail::Enqueuing { port, priority: queue, ahead: tm.depth(port, priority) as usize });
        }
        let Err(rejected) = self.tm.enqueue(now, port, priority, bytes, waiting) else {
            self.step(event(QueueStep::Enqueued));
            return;
        };
        let cause = match rejected.cause {
            QueueDrop::TailDrop => DropCause::Tail,
            QueueDrop::PriorityOutOfRange => DropCause::Priority,
            QueueDrop::UnknownPort => {
                self.portless.push((port, rejected.item));
                return;
            }
        };
        self.count(port, cause);
        self.step(event(QueueStep::Dropped(cause)));
        if let Some(switch) = &mut self.switch {
            switch.tell(&rejected.item.packet, || Detail::Lost(format!("the queue of port {port} is full")));
            switch.discard(rejected.item.packet);
        }
    }

    /// Runs egress for every packet whose link is free by `now`.
    fn serve(&mut self, now: Nanos) {
        loop {
            while let Some((port, waiting)) = self.portless.pop() {
                self.egress(now, port, waiting, QueueInfo { enq_timestamp: now, ..QueueInfo::default() });
            }
            let Some((_, port)) = self.tm.next_departure().filter(|(instant, _)| *instant <= now) else { return };
            let Some(dequeued) = self.tm.dequeue(now, port) else { return };
            let info = QueueInfo {
                enq_timestamp: dequeued.enq_time,
                enq_qdepth: dequeued.enq_qdepth,
                deq_timedelta: dequeued.deq_time - dequeued.enq_time,
                deq_qdepth: dequeued.deq_qdepth,
            };
            let (time, bytes) = (dequeued.deq_time, dequeued.item.packet.len());
            let (step, stay, queue) = (QueueStep::Dequeued, dequeued.item.stay, dequeued.priority);
            self.step(QueueEvent { time, port, bytes, step, stay, queue, ..QueueEvent::default() });
            if let Some(switch) = &mut self.switch {
                switch.tell(&dequeued.item.packet, || Detail::Dequeued { port, waited: info.deq_timedelta });
            }
            self.egress(dequeued.deq_time, port, dequeued.item, info);
        }
    }

    fn egress(&mut self, now: Nanos, port: PortId, waiting: Waiting, info: QueueInfo) {
        let Some(switch) = &mut self.switch else { return };
        let Waiting { packet, generation, stay } = waiting;
        let (bytes, queue) = (packet.len(), packet.priority() as usize);
        let mut out = std::mem::take(&mut self.egress_out);
        switch.egress(now, packet, info, &mut out);
        let left = self.trace.as_ref().map(|_| out.emitted.as_ref().map_or_else(Vec::new, |emitted| emitted.bytes.clone()));
        if let Some(emitted) = out.emitted.take() {
            match self.tm.transmitted(port, emitted.bytes.len() as u32) {
                Some(finish) => {
                    let delay = self.port(port).map_or(0, |port| port.config.delay_ns);
                    self.lines.push(port, finish.saturating_add(delay), emitted.bytes);
                }
                None => {
                    switch.recycle(emitted.bytes);
                    self.count(port, DropCause::NoPort);
                }
            }
        }
        if let Some(cause) = out.dropped {
            self.count(port, pipeline_cause(cause));
        }
        if let Some(mut frame) = left {
            if out.dropped.is_some() {
                frame.clear();
            }
            let step = out.dropped.map_or(QueueStep::Left, |cause| QueueStep::Dropped(pipeline_cause(cause)));
            self.step(QueueEvent { time: now, port, bytes, step, stay, queue, frame, ..QueueEvent::default() });
        }
        for packet in out.queued.drain(..) {
            if generation >= self.config.max_passes {
                let to = packet.egress_port();
                self.count(to, DropCause::Loop);
                if let Some(switch) = &mut self.switch {
                    switch.discard(packet);
                }
                continue;
            }
            if self.is_down(packet.egress_port()) {
                self.lose(now, packet.egress_port(), packet, 0);
                continue;
            }
            self.stays += 1;
            let stay = self.stays;
            self.enqueue(now, Waiting { packet, generation: generation + 1, stay });
        }
        self.egress_out = out;
    }

    fn sweep(&mut self, now: Nanos) {
        self.next_sweep = Some(now.saturating_add(SWEEP_INTERVAL));
        let expired = self.switch.as_mut().map_or_else(Vec::new, |switch| switch.expired(now));
        for (table, entry) in expired {
            self.event(Event::IdleTimeout { timestamp: now, table, entry });
        }
    }
}

fn pipeline_cause(cause: PipelineDrop) -> DropCause {
    match cause {
        PipelineDrop::Ingress => DropCause::Ingress,
        PipelineDrop::Egress => DropCause::Egress,
        PipelineDrop::MulticastEmpty => DropCause::MulticastEmpty,
        PipelineDrop::Priority => DropCause::Priority,
        PipelineDrop::Loop => DropCause::Loop,
        PipelineDrop::Assert => DropCause::Assert,
        PipelineDrop::Limit => DropCause::Limit,
        PipelineDrop::Swapped => DropCause::Reconfigured,
    }
}
