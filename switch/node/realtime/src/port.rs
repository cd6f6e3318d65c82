//! A port's end on the operating system's side: socket, batch to send, captures.

use std::fmt::Write as _;
use std::io;

use fairlane_device::{Nanos, Output, PortId};
use fairlane_thrift::PortInfo;
use tracing::{error, info, warn};

use crate::conversations::{Conversations, Direction};
use crate::gaps::Gaps;
use crate::links::Links;
use crate::pcap::Capture;
use crate::socket::{Interface, Sender};
use crate::stats::SocketCounts;

pub(crate) struct PortIo {
    pub(crate) number: PortId,
    pub(crate) interface: Interface,
    pub(crate) capture_in: Option<Capture>,
    capture_out: Option<Capture>,
    sender: Sender,
    /// `rx_missed` is added when they are asked for.
    counts: SocketCounts,
    pub(crate) gaps: Box<Gaps>,
    /// Frames missed on sockets that were replaced.
    missed_before: u64,
    /// The interface is down or gone; it is looked at again from time to time.
    pub(crate) down: bool,
    /// It went down or up since that was last told.
    pub(crate) changed: bool,
    /// The last batch had failures that were logged.
    failing: bool,
}

impl PortIo {
    pub(crate) fn new(number: PortId, interface: Interface, captures: Option<(Capture, Capture)>) -> Self {
        let (capture_in, capture_out) = captures.unzip();
        let down = !interface.is_up();
        if down {
            let name = interface.name();
            warn!("port {number}: interface {name} is down; frames flow once it is up (ip link set {name} up)");
        }
        PortIo {
            number,
            interface,
            capture_in,
            capture_out,
            sender: Sender::new(),
            counts: SocketCounts::default(),
            gaps: Box::default(),
            missed_before: 0,
            down,
            changed: false,
            failing: false,
        }
    }

    /// Looks whether an interface that was down is up again, or was made anew.
    pub(crate) fn recover(&mut self) {
        if !self.interface.exists() {
            let Ok(fresh) = self.interface.reopened() else { return };
            self.missed_before += self.interface.missed();
            self.interface = fresh;
        }
        if self.interface.is_up() {
            self.down = false;
            self.changed = true;
            info!("port {}: interface {} is up again", self.number, self.interface.name());
        }
    }

    pub(crate) fn went_down(&mut self, reason: &io::Error) {
        if !self.down {
            self.down = true;
            self.changed = true;
            warn!("port {}: interface {} is down ({reason}); the switch goes on", self.number, self.interface.name());
        }
    }

    pub(crate) fn info(&self) -> PortInfo {
        PortInfo { number: self.number, interface: self.interface.name().to_string(), up: !self.down }
    }

    pub(crate) fn counts(&mut self) -> SocketCounts {
        SocketCounts { rx_missed: self.missed_before + self.interface.missed(), ..self.counts }
    }

    pub(crate) fn flush_captures(&mut self) {
        for capture in [&mut self.capture_in, &mut self.capture_out] {
            end_on_error(capture, Capture::flush);
        }
    }

    fn flush(&mut self, spare: &mut Vec<Vec<u8>>) {
        if self.sender.is_empty() {
            return;
        }
        let sent = self.sender.flush(&self.interface, spare);
        self.counts.tx_failed += sent.failed;
        match sent.error {
            None => self.failing = false,
            Some(reason) => self.report(sent.failed, &reason),
        }
    }

    fn report(&mut self, failed: u64, reason: &io::Error) {
        match reason.raw_os_error() {
            Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => self.went_down(reason),
            _ if self.failing => {}
            Some(libc::EMSGSIZE) => {
                let name = self.interface.name();
                warn!(
                    "port {}: {failed} frames longer than the MTU of {name} were dropped: turn off segmentation offload \
                     at the sender (ethtool -K IFACE tso off gso off gro off)",
                    self.number
                );
            }
            _ => warn!("port {}: {failed} frames not sent on {}: {reason}", self.number, self.interface.name()),
        }
        self.failing = true;
    }
}

/// Runs a write to a capture; one that fails ends the capture.
pub(crate) fn end_on_error(capture: &mut Option<Capture>, write: impl FnOnce(&mut Capture) -> io::Result<()>) {
    if let Some(open) = capture
        && let Err(reason) = write(open)
    {
        error!("capture {} ends: {reason}", open.path().display());
        *capture = None;
    }
}

/// All ports, as the device's [`Output`].
pub(crate) struct Wire {
    pub(crate) ports: Vec<PortIo>,
    /// Index in `ports` by port number.
    index: Vec<Option<usize>>,
    /// Buffers of frames that were sent, for the device to use again.
    spare: Vec<Vec<u8>>,
    /// What to add to an instant to get nanoseconds since 1970; kept up to date while capturing.
    pub(crate) unix_offset: Nanos,
    /// The instant at which the device hands over what is due.
    pub(crate) now: Nanos,
    dump_bytes: usize,
    pub(crate) links: Links,
    pub(crate) conversations: Option<Conversations>,
}

/// Places in the list by port number.
fn index(ports: &[PortIo]) -> Vec<Option<usize>> {
    let size = ports.iter().map(|port| port.number as usize + 1).max().unwrap_or(0);
    let mut index = vec![None; size];
    for (at, port) in ports.iter().enumerate() {
        index[port.number as usize] = Some(at);
    }
    index
}

impl Wire {
    pub(crate) fn new(ports: Vec<PortIo>, dump_bytes: usize, links: Links) -> Self {
        let index = index(&ports);
        Wire { ports, index, spare: Vec::new(), unix_offset: 0, now: 0, dump_bytes, links, conversations: None }
    }

    /// Adds a port, or puts a new one in the place of one of this number.
    pub(crate) fn add(&mut self, port: PortIo) {
        self.ports.retain(|other| other.number != port.number);
        self.ports.push(port);
        self.index = index(&self.ports);
    }

    /// Removes a port, and with it its interface's socket; whether there was one.
    pub(crate) fn remove(&mut self, number: PortId) -> bool {
        let before = self.ports.len();
        self.ports.retain(|port| port.number != number);
        self.index = index(&self.ports);
        self.ports.len() < before
    }

    pub(crate) fn capturing(&self) -> bool {
        self.ports.iter().any(|port| port.capture_in.is_some() || port.capture_out.is_some())
    }

    pub(crate) fn flush(&mut self) {
        for port in &mut self.ports {
            port.flush(&mut self.spare);
        }
    }

    /// Notes a frame in capture and log as it comes in.
    pub(crate) fn received(&mut self, at: usize, now: Nanos, frame: &[u8]) {
        let port = &mut self.ports[at];
        dump(self.dump_bytes, "in", port.number, frame);
        if let Some(conversations) = &mut self.conversations {
            conversations.count(port.number, Direction::In, frame);
        }
        if port.capture_in.is_some() {
            let unix = now.wrapping_add(self.unix_offset);
            end_on_error(&mut port.capture_in, |capture| capture.write(unix, frame));
        }
    }
}

impl Output for Wire {
    fn transmit(&mut self, port: PortId, departure: Nanos, frame: Vec<u8>) -> Option<Vec<u8>> {
        match self.links.leave(port, departure, frame) {
            Some(frame) => self.send(port, departure, frame),
            None => self.spare.pop(),
        }
    }
}

impl Wire {
    /// Puts a frame on a port's interface.
    pub(crate) fn send(&mut self, port: PortId, departure: Nanos, frame: Vec<u8>) -> Option<Vec<u8>> {
        let Some(at) = self.index.get(port as usize).copied().flatten() else { return Some(frame) };
        let port = &mut self.ports[at];
        dump(self.dump_bytes, "out", port.number, &frame);
        if let Some(conversations) = &mut self.conversations {
            conversations.count(port.number, Direction::Out, &frame);
        }
        if port.capture_out.is_some() {
            let unix = departure.wrapping_add(self.unix_offset);
            end_on_error(&mut port.capture_out, |capture| capture.write(unix, &frame));
        }
        port.counts.left(self.now.saturating_sub(departure));
        port.gaps.left(departure, self.now, frame.len());
        if port.sender.push(frame) {
            port.flush(&mut self.spare);
        }
        self.spare.pop()
    }
}

fn dump(limit: usize, direction: &str, port: PortId, frame: &[u8]) {
    if limit == 0 || !tracing::enabled!(tracing::Level::INFO) {
        return;
    }
    let mut hex = String::with_capacity(limit * 2);
    for byte in frame.iter().take(limit) {
        let _ = write!(hex, "{byte:02x}");
    }
    info!("port {port} {direction}: {hex}");
}
