//! One packet's way through the network, with its steps at each switch; and the search for a packet that was dropped. `fairlane why` runs a
//! network again, which gives the same bytes, and follows one packet alone.

use std::collections::VecDeque;

use fairlane_device::pipeline::PacketEvent;

use crate::identity::Identity;
use crate::trace::Place;
use crate::{Nanos, PortId};

/// Stations of a way that are kept: the last ones.
const STATIONS: usize = 256;
/// Steps that are kept of a packet at one switch: the first ones.
const STEPS: usize = 100_000;

/// Which packet of which flow, as the log of packets has them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wanted {
    /// Its name; empty of packets of no flow.
    pub flow: String,
    /// "data", "ack", "rtcp" and so on.
    pub part: String,
    /// From the receiver to the sender.
    pub back: bool,
    /// None of those that have no number.
    pub number: Option<u64>,
    /// The sendings of such a packet before the one that is followed.
    pub before: u64,
}

/// A packet that was dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drop {
    pub time: Nanos,
    pub node: String,
    pub cause: String,
    pub packet: Wanted,
}

/// Where a packet was.
#[derive(Debug, Clone)]
pub enum Station {
    /// A host sends it.
    Sent { time: Nanos, host: String },
    /// It came to a switch, by its number, at a port.
    Visit(Visit),
    /// A host or a switch has it.
    Received { time: Nanos, node: String },
    /// It was lost: at a switch, on the link behind a node, or in the full queue of a host.
    Lost { time: Nanos, node: String, cause: String },
}

/// A packet at a switch.
#[derive(Debug, Clone)]
pub struct Visit {
    pub time: Nanos,
    pub switch: usize,
    pub port: PortId,
    pub frame: Vec<u8>,
    /// Its number there.
    pub packet: u64,
    pub events: Vec<PacketEvent>,
    /// Some steps were too many.
    pub cut: bool,
}

/// Which drop is looked for.
#[derive(Debug)]
pub(crate) struct Search {
    /// Of a flow with this name alone, and with this cause.
    pub(crate) flow: Option<String>,
    pub(crate) cause: Option<String>,
    /// Drops of that kind before it.
    pub(crate) left: u64,
    pub(crate) found: Option<Drop>,
}

impl Search {
    /// A packet was dropped.
    pub(crate) fn dropped(&mut self, time: Nanos, node: &str, cause: &str, (who, flow): (Identity, &str)) {
        let other = |wanted: &Option<String>, is: &str| wanted.as_ref().is_some_and(|wanted| wanted != is);
        if self.found.is_some() || other(&self.flow, flow) || other(&self.cause, cause) {
            return;
        }
        if self.left > 0 {
            self.left -= 1;
            return;
        }
        let packet = Wanted { flow: flow.to_string(), part: who.part.as_str().to_string(), back: who.back, number: who.number, before: 0 };
        self.found = Some(Drop { time, node: node.to_string(), cause: cause.to_string(), packet });
    }
}

/// Follows a packet.
#[derive(Debug)]
pub(crate) struct Watch {
    wanted: Wanted,
    /// Sendings that are still to come before the packet's.
    left: u64,
    pub(crate) way: VecDeque<Station>,
}

impl Watch {
    pub(crate) fn new(wanted: Wanted) -> Watch {
        Watch { left: wanted.before, wanted, way: VecDeque::new() }
    }

    /// Whether it is the packet. `flow`: the name of its flow.
    pub(crate) fn wants(&self, who: Identity, flow: &str) -> bool {
        let Wanted { part, back, number, .. } = &self.wanted;
        who.number == *number && who.back == *back && who.part.as_str() == part && flow == self.wanted.flow
    }

    /// Something happened to the packet at a host or on a link.
    pub(crate) fn heard(&mut self, time: Nanos, (event, cause): (&str, &str), place: Place) {
        let node = place.node.to_string();
        match event {
            "send" if self.left > 0 => self.left -= 1,
            _ if self.left > 0 => {}
            "send" => self.push(Station::Sent { time, host: node }),
            "receive" => self.push(Station::Received { time, node }),
            "drop" => self.push(Station::Lost { time, node, cause: cause.to_string() }),
            _ => {}
        }
    }

    /// Whether its sending is over.
    pub(crate) fn has_begun(&self) -> bool {
        self.wanted.before == 0 || (self.left == 0 && !self.way.is_empty())
    }

    /// It comes to a switch.
    pub(crate) fn visit(&mut self, visit: Visit) {
        self.push(Station::Visit(visit));
    }

    fn push(&mut self, station: Station) {
        if self.way.len() == STATIONS {
            self.way.pop_front();
        }
        self.way.push_back(station);
    }

    /// A step of it at a switch.
    pub(crate) fn step(&mut self, switch: usize, event: PacketEvent) {
        let visits = self.way.iter_mut().rev().filter_map(|station| if let Station::Visit(visit) = station { Some(visit) } else { None });
        if let Some(visit) = { visits }.find(|visit| visit.switch == switch && visit.packet == event.packet) {
            if visit.events.len() < STEPS {
                visit.events.push(event);
            } else {
                visit.cut = true;
            }
        }
    }
}
