//! The record of packets: a row for each packet's stay in a queue of a switch, and one for each packet that its link lost after that.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use fairlane_device::{DropCause, QueueEvent, QueueStep};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::identity::Identity;
use crate::{Nanos, PortId};

/// The columns of the record.
pub const PACKET_COLUMNS: &str = "link,queue,flow,part,packet,bytes,arrival_s,queue_packets,queue_bytes,departure_s,wait_s,ecn,drop";

/// A stay in a queue that has begun.
#[derive(Debug, Clone, Copy)]
struct Stay {
    who: Identity,
    bytes: u32,
    queue: usize,
    arrival: Nanos,
    ahead_packets: u32,
    ahead_bytes: u64,
    departure: Option<Nanos>,
}

/// What a row says beside its stay.
#[derive(Debug, Clone, Copy)]
struct End<'a> {
    link: &'a str,
    ecn: u8,
    cause: &'static str,
}

/// Writes a row when a packet has left its queue and the switch's program is done with it, or was dropped. Memory: what waits.
#[derive(Debug)]
pub(crate) struct PacketWriter {
    file: BufWriter<File>,
    path: PathBuf,
    /// The instant that times count from.
    origin: Nanos,
    /// Queues of these ports of switches alone.
    only: Option<FxHashSet<(usize, PortId)>>,
    stays: FxHashMap<(usize, u64), Stay>,
    /// The packet that a switch is at work on.
    present: Identity,
    /// The port by which a flow's packets left a switch, each way.
    ways: FxHashMap<(usize, usize, bool), PortId>,
    failed: Option<io::Error>,
}

impl PacketWriter {
    /// Creates the file.
    ///
    /// # Errors
    /// Those of the file system; the file is there already.
    pub(crate) fn create(path: &Path, origin: Nanos, only: Option<FxHashSet<(usize, PortId)>>) -> io::Result<PacketWriter> {
        let mut file = BufWriter::new(File::create_new(path)?);
        writeln!(file, "{PACKET_COLUMNS}")?;
        let (stays, ways) = (FxHashMap::default(), FxHashMap::default());
        Ok(PacketWriter { file, path: path.to_path_buf(), origin, only, stays, present: Identity::default(), ways, failed: None })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A step of a packet through a switch. `who`: of the frame that the event has. `flows`: their names. `link`: the name of a port's link.
    pub(crate) fn step<'a>(
        &mut self,
        switch: usize,
        event: &QueueEvent,
        who: Identity,
        flows: &[String],
        link: impl Fn(PortId) -> Option<&'a str>,
    ) {
        match event.step {
            QueueStep::Received => self.present = who,
            QueueStep::Enqueued => self.begin(switch, event),
            QueueStep::Dequeued => {
                if let Some(stay) = self.stays.get_mut(&(switch, event.stay)) {
                    stay.departure = Some(event.time);
                    self.present = stay.who;
                }
            }
            QueueStep::Left => {
                if let Some(stay) = self.stays.remove(&(switch, event.stay))
                    && let Some(link) = link(event.port).filter(|_| self.wants(switch, event.port))
                {
                    // What did not leave for its link was taken in again.
                    let ecn = if event.frame.is_empty() { stay.who.ecn } else { who.ecn };
                    self.row(&stay, End { link, ecn, cause: "" }, flows);
                }
            }
            // On its link.
            QueueStep::Dropped(cause) if !event.frame.is_empty() => {
                if let Some(link) = link(event.port) {
                    self.lost(event.time, (link, Some((switch, event.port))), (who, event.bytes), cause.as_str(), flows);
                }
            }
            QueueStep::Dropped(cause) => {
                let waited = self.stays.remove(&(switch, event.stay));
                let present = self.present;
                let (port, stay) = match waited {
                    Some(stay) => (Some(event.port), stay),
                    // Before it came to a queue: by which port it would have left is known from those before it.
                    None if event.stay == 0 && cause != DropCause::LinkDown => {
                        let way = present.flow.and_then(|flow| self.ways.get(&(switch, flow, present.back)).copied());
                        (way, self.stay(event))
                    }
                    None => (Some(event.port), self.stay(event)),
                };
                if port.is_none_or(|port| self.wants(switch, port)) {
                    let link = port.and_then(link).unwrap_or_default();
                    self.row(&stay, End { link, ecn: stay.who.ecn, cause: cause.as_str() }, flows);
                }
            }
        }
    }

    /// A packet was lost on a link: a row without a queue. `link`: its name, and the switch's number and the port that it left, where a switch sent it.
    pub(crate) fn lost(
        &mut self,
        time: Nanos,
        link: (&str, Option<(usize, PortId)>),
        packet: (Identity, u32),
        cause: &str,
        flows: &[String],
    ) {
        let ((link, queue), (who, bytes)) = (link, packet);
        if self.failed.is_some() || !queue.map_or(self.only.is_none(), |(switch, port)| self.wants(switch, port)) {
            return;
        }
        let (name, part, number) = described(who, flows);
        let (at, ecn) = (self.since(time), who.ecn);
        self.failed = writeln!(self.file, "{link},,{name},{part},{number},{bytes},{at},,,,,{ecn},{cause}").err();
    }

    fn since(&self, time: Nanos) -> Seconds {
        Seconds(i128::from(time) - i128::from(self.origin))
    }

    fn wants(&self, switch: usize, port: PortId) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(&(switch, port)))
    }

    fn begin(&mut self, switch: usize, event: &QueueEvent) {
        if let Some(flow) = self.present.flow {
            self.ways.insert((switch, flow, self.present.back), event.port);
        }
        let stay = self.stay(event);
        self.stays.insert((switch, event.stay), stay);
    }

    fn stay(&self, event: &QueueEvent) -> Stay {
        let &QueueEvent { time, bytes, queue, ahead_packets, ahead_bytes, .. } = event;
        Stay { who: self.present, bytes, queue, arrival: time, ahead_packets, ahead_bytes, departure: None }
    }

    fn row(&mut self, stay: &Stay, end: End, flows: &[String]) {
        if self.failed.is_some() {
            return;
        }
        let Stay { who, bytes, queue, arrival, ahead_packets, ahead_bytes, departure } = *stay;
        let (name, part, number) = described(who, flows);
        let left = departure.map_or_else(String::new, |time| format!("{}", self.since(time)));
        let waited = departure.map_or_else(String::new, |time| format!("{}", Seconds(i128::from(time) - i128::from(arrival))));
        let (arrived, End { link, ecn, cause }) = (self.since(arrival), end);
        self.failed = writeln!(
            self.file,
            "{link},{queue},{name},{part},{number},{bytes},{arrived},{ahead_packets},{ahead_bytes},{left},{waited},{ecn},{cause}"
        )
        .err();
    }

    /// Writes out what is buffered; reports the first error of all writes.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.file.flush(),
        }
    }
}

/// The name of a packet's flow, its part of that, and its number.
fn described(who: Identity, flows: &[String]) -> (&str, &'static str, String) {
    let name = who.flow.and_then(|flow| flows.get(flow)).map_or("", String::as_str);
    (name, who.part.as_str(), who.number.map_or_else(String::new, |number| number.to_string()))
}

/// Nanoseconds, written as seconds without loss.
struct Seconds(i128);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (sign, time) = (if self.0 < 0 { "-" } else { "" }, self.0.unsigned_abs());
        write!(f, "{sign}{}.{:09}", time / 1_000_000_000, time % 1_000_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_without_loss() {
        let text = |time| Seconds(time).to_string();
        assert_eq!(
            (text(0), text(1), text(-1_500_000_000), text(12_000_000_345)),
            ("0.000000000".into(), "0.000000001".into(), "-1.500000000".into(), "12.000000345".into())
        );
    }
}
