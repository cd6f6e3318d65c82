//! Who follows single packets: the log of events and the record of packets, and what both know of the flows.

use std::path::Path;

use fairlane_device::{Device, QueueEvent, QueueStep};

use crate::error::RunError;
use crate::identity::{Book, Identity, Route};
use crate::packets::PacketWriter;
use crate::trace::{Place, TraceWriter};
use crate::watch::{Search, Visit, Watch};
use crate::{Nanos, PortId};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Observer {
    pub(crate) trace: Option<TraceWriter>,
    pub(crate) packets: Option<PacketWriter>,
    pub(crate) watch: Option<Watch>,
    pub(crate) search: Option<Search>,
    book: Book,
    names: Vec<String>,
    /// The packet that a switch is at work on, and those that wait there, for the log.
    present: Identity,
    waiting: rustc_hash::FxHashMap<(usize, u64), Identity>,
}

impl Observer {
    /// One flow more.
    pub(crate) fn add(&mut self, name: &str, route: Route) {
        self.names.push(name.to_string());
        self.book.add(route);
    }

    /// How many flows it knows.
    pub(crate) fn flows(&self) -> usize {
        self.book.flows()
    }

    /// Which packet a frame is, where that is to be logged.
    pub(crate) fn logged(&self, frame: &[u8]) -> Identity {
        match self.trace.is_some() || self.watch.is_some() || self.search.is_some() {
            true => self.book.identify(frame),
            false => Identity::default(),
        }
    }

    /// Whether a packet is the one that is followed.
    pub(crate) fn wants(&self, who: Identity) -> bool {
        self.watch.as_ref().is_some_and(|watch| watch.has_begun() && watch.wants(who, Self::name(&self.names, who)))
    }

    fn name(names: &[String], who: Identity) -> &str {
        who.flow.and_then(|flow| names.get(flow)).map_or("", String::as_str)
    }

    /// Something happened at a host, on a link, or in a queue.
    pub(crate) fn log(&mut self, now: Nanos, what: (&str, &str), place: Place, bytes: u64, who: Identity) {
        let name = Self::name(&self.names, who);
        if let Some(search) = self.search.as_mut().filter(|_| what.0 == "drop") {
            search.dropped(now, place.node, what.1, (who, name));
        }
        if let Some(watch) = self.watch.as_mut().filter(|watch| watch.wants(who, name)) {
            watch.heard(now, what, place);
        }
        if let Some(trace) = &mut self.trace {
            trace.write(now, what, place, bytes, (who, name));
        }
    }

    /// A frame was lost on the way. `node`: that sent it. `link`: its name, and the switch's number and the port that it left, where a switch did.
    pub(crate) fn lost(&mut self, now: Nanos, node: &str, link: (&str, Option<(usize, PortId)>), frame: &[u8]) {
        let (who, bytes) = (self.book.identify(frame), frame.len());
        if let Some(packets) = &mut self.packets {
            packets.lost(now, link, (who, bytes as u32), "link", &self.names);
        }
        self.log(now, ("drop", "link"), Place::at(node, 0), bytes as u64, who);
    }

    /// A step of a packet through a switch. `link`: the name of a port's link.
    pub(crate) fn step<'a>(&mut self, switch: (usize, &str), event: &QueueEvent, link: impl Fn(PortId) -> Option<&'a str>) {
        let who = if event.frame.is_empty() { Identity::default() } else { self.book.identify(&event.frame) };
        if let Some(packets) = &mut self.packets {
            packets.step(switch.0, event, who, &self.names, link);
        }
        if self.trace.is_some() || self.search.is_some() {
            self.log_step(switch, event, who);
        }
    }

    fn log_step(&mut self, (number, node): (usize, &str), event: &QueueEvent, who: Identity) {
        let key = (number, event.stay);
        let what = match event.step {
            QueueStep::Received => {
                self.present = who;
                return;
            }
            QueueStep::Left => {
                self.waiting.remove(&key);
                return;
            }
            QueueStep::Enqueued => {
                self.waiting.insert(key, self.present);
                ("enqueue", "")
            }
            QueueStep::Dequeued => {
                self.present = self.waiting.get(&key).copied().unwrap_or_default();
                ("dequeue", "")
            }
            QueueStep::Dropped(cause) => ("drop", cause.as_str()),
        };
        let waited = if what.0 == "drop" { self.waiting.remove(&key) } else { None };
        let present = if event.frame.is_empty() { waited.unwrap_or(self.present) } else { who };
        let place = Place { node, port: event.port, queue: event.queue };
        self.log(event.time, what, place, u64::from(event.bytes), present);
    }

    /// The packet that is followed comes to a switch, whose steps it keeps from now on.
    pub(crate) fn visit(&mut self, time: Nanos, (switch, port): (usize, PortId), frame: &[u8], device: &mut Device) {
        let packet = device.watch_next();
        if let (Some(watch), Some(packet)) = (&mut self.watch, packet) {
            watch.visit(Visit { time, switch, port, frame: frame.to_vec(), packet, events: Vec::new(), cut: false });
        }
    }

    /// Takes the steps of the packet that is followed.
    pub(crate) fn follow(&mut self, switch: usize, device: &mut Device) {
        if let Some(watch) = &mut self.watch {
            device.take_observed().into_iter().for_each(|event| watch.step(switch, event));
        }
    }

    /// Writes out what is buffered.
    ///
    /// # Errors
    /// The first of all writes.
    pub(crate) fn flush(&mut self) -> Result<(), RunError> {
        let failed = |path: &Path, error| RunError::File { path: path.display().to_string(), error };
        if let Some(trace) = &mut self.trace {
            trace.flush().map_err(|error| failed(trace.path(), error))?;
        }
        if let Some(packets) = &mut self.packets {
            packets.flush().map_err(|error| failed(packets.path(), error))?;
        }
        Ok(())
    }
}
