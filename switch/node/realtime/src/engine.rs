//! The loop of the switch.

use std::io;
use std::path::Path;

use fairlane_device::{Device, Event, Nanos, PortConfig, PortId};
use fairlane_thrift::PortInfo;
use rustix::event::{PollFd, PollFlags};
use tracing::{error, info, warn};

use crate::cli::{LogLevel, LogTarget, Options};
use crate::clock;
use crate::conversations::Conversations;
use crate::gaps;
use crate::handle::{JobQueue, PortRequest};
use crate::links::{Arrived, Links};
use crate::pcap::Capture;
use crate::port::{PortIo, Wire};
use crate::say::{complain, say};
use crate::signals::{Reload, Termination};
use crate::socket::{Interface, OpenError, Receiver};
use crate::stats::{SocketCounts, StatsWriter};

/// Takes the events of the data plane, in order, on the switch's thread: must not block.
pub type EventSink = Box<dyn FnMut(Vec<Event>, &Device, Nanos) + Send>;
/// Takes the steps of packets, on the switch's thread: must not block.
pub type Observer = Box<dyn FnMut(&mut Device) + Send>;
/// Takes that an interface went up (true) or down, on the switch's thread: must not block.
pub type PortSink = Box<dyn FnMut(PortId, bool) + Send>;

/// How often an interface that is down is looked at.
const RECOVERY_INTERVAL: Nanos = 500_000_000;
/// How often captures are written out.
const CAPTURE_FLUSH_INTERVAL: Nanos = 1_000_000_000;
/// How often the file of gaps is written anew; and at the end.
const GAPS_INTERVAL: Nanos = 5_000_000_000;

/// Why the switch does not start or goes down.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("port {0}: {1}")]
    Interface(u32, OpenError),
    #[error("port {0}: {1}")]
    Port(u32, fairlane_device::ConfigError),
    #[error("{what} {path}: {error}")]
    File { what: &'static str, path: String, error: io::Error },
    #[error("{0}")]
    Links(String),
    #[error("waiting for frames: {0}")]
    System(#[from] io::Error),
}

/// The switch: device, interfaces, and all that is tied to them. One thread runs it.
pub struct Engine {
    device: Device,
    wire: Wire,
    receiver: Receiver,
    jobs: JobQueue,
    termination: Termination,
    reload: Option<Reload>,
    sink: Option<EventSink>,
    port_sink: Option<PortSink>,
    observer: Option<Observer>,
    new_port: PortConfig,
    hears_outgoing: bool,
    drop_port: PortId,
    stats: Option<(StatsWriter, Nanos, Nanos)>,
    next_gaps: Nanos,
    next_recovery: Option<Nanos>,
    next_capture_flush: Option<Nanos>,
    /// Of what was waited for: termination, jobs, the ports, and the reload.
    ready: Vec<bool>,
    incomplete_reported: bool,
    /// The latest instant given to the device.
    served: Nanos,
}

impl Engine {
    /// Opens the interfaces and files that the options name; the device gets their ports. Jobs are served once
    /// [`Engine::run`] is under way.
    ///
    /// # Errors
    /// [`EngineError`], the first that occurs.
    pub fn new(mut device: Device, options: &Options, termination: Termination, jobs: JobQueue) -> Result<Self, EngineError> {
        let mut ports = Vec::new();
        for (&number, name) in &options.interfaces {
            let config = options.ports.get(&number).cloned().unwrap_or_default();
            let interface = open(number, name, options.hears_outgoing)?;
            ports.push(make_port(&mut device, number, interface, config, options.pcap.as_deref())?);
        }
        let stats = match &options.stats {
            Some(stats) => {
                let shown = stats.path.display().to_string();
                let writer =
                    StatsWriter::create(stats.path.clone()).map_err(|error| EngineError::File { what: "--stats", path: shown, error })?;
                Some((writer, stats.interval, clock::now()))
            }
            None => None,
        };
        let logging = options.log != LogTarget::None && options.log_level != LogLevel::Off;
        let links = match &options.links {
            Some(path) => Links::open(path, &device).map_err(EngineError::Links)?,
            None => Links::default(),
        };
        let mut wire = Wire::new(ports, if logging { options.dump_bytes } else { 0 }, links);
        if let Some(stats) = options.stats.as_ref().filter(|stats| stats.flows) {
            let shown = stats.path.display().to_string();
            let conversations =
                Conversations::create(&stats.path).map_err(|error| EngineError::File { what: "--count-flows", path: shown, error })?;
            wire.conversations = Some(conversations);
        }
        let next_capture_flush = wire.capturing().then(clock::now);
        Ok(Engine {
            device,
            receiver: Receiver::new(),
            jobs,
            termination,
            reload: None,
            sink: None,
            port_sink: None,
            observer: None,
            new_port: PortConfig { priorities: options.device.priorities, ..PortConfig::default() },
            hears_outgoing: options.hears_outgoing,
            drop_port: options.device.drop_port,
            stats,
            next_gaps: 0,
            next_recovery: None,
            next_capture_flush,
            ready: Vec::new(),
            incomplete_reported: false,
            served: 0,
            wire,
        })
    }

    /// Sets where digests, packet-ins and idle timeouts go; without one they are thrown away.
    pub fn set_event_sink(&mut self, sink: EventSink) {
        self.sink = Some(sink);
    }

    /// Sets what asks for the links' file to be read again.
    pub fn set_reload(&mut self, reload: Reload) {
        self.reload = Some(reload);
    }

    /// Sets who takes the steps of packets, where the device keeps them.
    pub fn set_observer(&mut self, observer: Observer) {
        self.observer = Some(observer);
    }

    /// Sets who is told of interfaces that go up or down.
    pub fn set_port_sink(&mut self, sink: PortSink) {
        self.port_sink = Some(sink);
    }

    /// Runs until SIGINT or SIGTERM; then writes the last statistics and captures.
    ///
    /// # Errors
    /// A failure of poll(2) itself. Interfaces that go down or away are no errors.
    pub fn run(mut self) -> Result<(), EngineError> {
        clock::sharpen_timers();
        clock::go_first();
        loop {
            let now = clock::now();
            let before = self.served;
            self.served = self.served.max(now);
            self.wire.now = now;
            if self.wire.links.is_used() {
                self.carry(before);
            }
            self.device.poll(self.served, &mut self.wire);
            self.wire.flush();
            self.forward_events();
            let deadline = self.upkeep(now);
            if self.wait(deadline)? {
                break;
            }
        }
        self.finish();
        Ok(())
    }

    /// What is due on the links: frames at their ends, and changes. before: the latest instant given to the device.
    fn carry(&mut self, before: Nanos) {
        self.wire.links.change(self.served, &mut self.device);
        while let Some(Arrived { port, inward, at, frame }) = self.wire.links.arrived(self.served) {
            if inward {
                self.device.receive_owned(at.max(before), port, frame);
            } else {
                self.wire.send(port, at, frame);
            }
        }
    }

    /// Hands events to the control plane and `log_msg` lines to the log.
    fn forward_events(&mut self) {
        let events = self.device.take_events();
        if let Some(sink) = self.sink.as_mut().filter(|_| !events.is_empty()) {
            sink(events, &self.device, self.served);
        }
        self.observe();
        if let Some(sink) = &mut self.port_sink {
            for port in self.wire.ports.iter_mut().filter(|port| port.changed) {
                port.changed = false;
                sink(port.number, !port.down);
            }
        }
        if self.device.config().log {
            for line in self.device.take_log() {
                info!("{line}");
            }
        }
    }

    fn observe(&mut self) {
        if let Some(observer) = &mut self.observer {
            observer(&mut self.device);
        }
    }

    /// Does what is due by `now`, and returns when something is due next.
    fn upkeep(&mut self, now: Nanos) -> Option<Nanos> {
        if self.stats.as_ref().is_some_and(|(_, _, due)| *due <= now) {
            self.write_stats(now);
        }
        if self.next_recovery.is_some_and(|due| due <= now) {
            for port in self.wire.ports.iter_mut().filter(|port| port.down) {
                port.recover();
            }
            self.next_recovery = None;
        }
        if self.next_recovery.is_none() && self.wire.ports.iter().any(|port| port.down) {
            self.next_recovery = Some(now + RECOVERY_INTERVAL);
        }
        if self.next_capture_flush.is_some_and(|due| due <= now) {
            self.wire.ports.iter_mut().for_each(PortIo::flush_captures);
            self.wire.unix_offset = clock::unix().wrapping_sub(clock::now());
            self.next_capture_flush = self.wire.capturing().then_some(now + CAPTURE_FLUSH_INTERVAL);
        }
        let stats = self.stats.as_ref().map(|(_, _, due)| *due);
        [self.device.next_event(), self.wire.links.next(), stats, self.next_recovery, self.next_capture_flush].into_iter().flatten().min()
    }

    fn write_stats(&mut self, now: Nanos) {
        let Some((writer, interval, due)) = &mut self.stats else { return };
        let unix = clock::unix();
        for number in self.device.ports().collect::<Vec<_>>() {
            let Some(snapshot) = self.device.snapshot(now, number) else { continue };
            let mut port = self.wire.ports.iter_mut().find(|port| port.number == number);
            if let (Some(port), Some(config)) = (&mut port, self.device.port_config(number)) {
                port.gaps.configure(config);
            }
            writer.add(now, unix, &snapshot, port.map_or_else(SocketCounts::default, PortIo::counts));
            self.device.take_queues(number).for_each(|(priority, queue)| writer.add_queue(now, unix, number, priority, &queue));
        }
        self.wire.links.write_rows(writer.link_text(), now, unix);
        if let Err(reason) = writer.flush() {
            error!("--stats {}: {reason}; no more rows are written", writer.path().display());
            self.stats = None;
            return;
        }
        if let Some(conversations) = &mut self.wire.conversations
            && let Err(reason) = conversations.write(unix)
        {
            error!("{}: {reason}; no more rows are written", conversations.path().display());
            self.wire.conversations = None;
        }
        if now >= self.next_gaps {
            self.next_gaps = now + GAPS_INTERVAL;
            let path = gaps::path(writer.path());
            if let Err(reason) = gaps::write(&path, self.wire.ports.iter().map(|port| (port.number, &*port.gaps))) {
                error!("{}: {reason}", path.display());
            }
        }
        // Rows keep to the grid; those of a grid point that was missed altogether are left out.
        if let Some(late) = now.checked_sub(*due) {
            *due += *interval * (late / *interval + 1);
        }
    }

    /// Sleeps until `deadline`, a frame, a job or a signal, and serves frames and jobs. True when the switch is to end.
    fn wait(&mut self, deadline: Option<Nanos>) -> Result<bool, EngineError> {
        let mut polled = Vec::with_capacity(self.wire.ports.len() + 3);
        polled.extend([PollFd::new(&self.termination, PollFlags::IN), PollFd::new(&self.jobs, PollFlags::IN)]);
        polled.extend(self.wire.ports.iter().map(|port| PollFd::new(&port.interface, PollFlags::IN)));
        polled.extend(self.reload.iter().map(|reload| PollFd::new(reload, PollFlags::IN)));
        if clock::wait(&mut polled, deadline)? == 0 {
            return Ok(false);
        }
        self.ready.clear();
        self.ready.extend(polled.iter().map(|polled| !polled.revents().is_empty()));
        if self.ready[0] {
            return Ok(true);
        }
        let ports = self.wire.ports.len();
        for at in 0..ports {
            if self.ready[at + 2] {
                self.receive(at);
            }
        }
        if self.ready.get(ports + 2) == Some(&true) {
            self.reread();
        }
        if self.ready[1] {
            // Steps are said by the program that packets took them in: a job may load another.
            self.observe();
            self.jobs.run(&mut self.device, clock::now);
            while let Some(request) = self.jobs.port_request() {
                self.serve_ports(request);
            }
        }
        Ok(false)
    }

    fn reread(&mut self) {
        self.reload.iter().for_each(Reload::take);
        // Whoever changed the file looks at the standard output for the answer.
        match self.wire.links.read(&self.device) {
            Ok(()) => say("links read"),
            Err(reason) => complain(format_args!("fairlane-switch: {reason}; the links stay as they are")),
        }
    }

    /// Who asked may be gone meanwhile: then nobody wants the answer.
    fn serve_ports(&mut self, request: PortRequest) {
        match request {
            PortRequest::List(done) => {
                let mut all: Vec<PortInfo> = self.wire.ports.iter().map(PortIo::info).collect();
                all.sort_by_key(|port| port.number);
                let _ = done.send(all);
            }
            PortRequest::Add { number, interface, pcap, done } => {
                let _ = done.send(self.add_port(number, &interface, pcap.as_deref()));
            }
            PortRequest::Remove { number, done } => {
                let removed = self.wire.remove(number);
                if removed {
                    self.device.remove_port(clock::now().max(self.served), number);
                }
                let _ = done.send(if removed { Ok(()) } else { Err(format!("port {number}: there is no such port")) });
            }
        }
    }

    fn add_port(&mut self, number: PortId, interface: &str, pcap: Option<&Path>) -> Result<(), String> {
        if number == self.drop_port || self.device.config().cpu_port == Some(number) {
            return Err(format!("port {number}: that is the drop port or the CPU port: choose another number"));
        }
        if let Some(taken) = self.wire.ports.iter().find(|port| port.number == number || port.interface.name() == interface) {
            return Err(format!("port {number}: interface {} is port {} already", taken.interface.name(), taken.number));
        }
        let port = open(number, interface, self.hears_outgoing)
            .and_then(|interface| make_port(&mut self.device, number, interface, self.new_port.clone(), pcap))
            .map_err(|error| error.to_string())?;
        self.wire.add(port);
        self.next_capture_flush = self.wire.capturing().then(clock::now);
        Ok(())
    }

    fn receive(&mut self, at: usize) {
        let port = &mut self.wire.ports[at];
        let number = port.number;
        match self.receiver.receive(&port.interface) {
            Ok(_) => {}
            Err(reason) => {
                port.went_down(&reason);
                return;
            }
        }
        for frame in self.receiver.frames() {
            // The instant of arrival counts, however late the frame is read; only the device's time never goes back.
            self.served = self.served.max(frame.arrival);
            self.wire.received(at, self.served, frame.bytes);
            if !self.wire.links.come(number, frame.arrival, frame.bytes) {
                self.device.receive(self.served, number, frame.bytes);
            }
        }
        if self.receiver.incomplete_checksums > 0 && !self.incomplete_reported {
            self.incomplete_reported = true;
            warn!(
                "port {number}: frames came with checksums left to an offload engine and of a kind that cannot be completed here: \
                 turn it off at the sender (ethtool -K IFACE tx off)"
            );
        }
    }

    fn finish(&mut self) {
        let now = clock::now().max(self.served);
        self.wire.now = now;
        self.device.poll(now, &mut self.wire);
        self.wire.flush();
        self.observe();
        for line in self.wire.links.summary() {
            say(line);
        }
        self.next_gaps = now;
        self.write_stats(now);
        self.wire.ports.iter_mut().for_each(PortIo::flush_captures);
        info!("the switch ends");
    }
}

fn open(number: PortId, name: &str, hears_outgoing: bool) -> Result<Interface, EngineError> {
    Interface::open_to(name, hears_outgoing).map_err(|error| EngineError::Interface(number, error))
}

/// Opens the captures of an interface; the device gets the port.
fn make_port(
    device: &mut Device,
    number: PortId,
    interface: Interface,
    config: PortConfig,
    pcap: Option<&Path>,
) -> Result<PortIo, EngineError> {
    let name = interface.name().to_owned();
    let captures = match pcap {
        Some(directory) => {
            let create = |direction| {
                let path = directory.join(format!("{name}_{direction}.pcap"));
                let shown = path.display().to_string();
                Capture::create(path).map_err(|error| EngineError::File { what: "capture", path: shown, error })
            };
            Some((create("in")?, create("out")?))
        }
        None => None,
    };
    device.set_port(number, config).map_err(|error| EngineError::Port(number, error))?;
    Ok(PortIo::new(number, interface, captures))
}
