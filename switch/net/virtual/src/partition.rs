//! Partitions of one network: each process simulates the switches that are its own, with their hosts, and all have the same description.
//!
//! What happens in one partition reaches another over a link between switches, or over the control channel; that takes at least the *lookahead*, the least delay
//! of these. So all partitions may run on their own up to the earliest event of the whole network and so much longer. Then each gives the others what goes
//! there, and the instant of its next event, and the next window begins: windows follow the events, and nothing is done where nothing happens.
//!
//! The order of events (`events.rs`) does not depend on the partitions, so a network leaves the same records behind in one process and in several.

use std::cell::RefCell;
use std::rc::Rc;

use crate::control::{Call, Event, Order};
use crate::description::{Change, LinkEnd};
use crate::error::{BuildError, RunError};
use crate::flow::End;
use crate::network::{Network, CONTROL};
use crate::nodes::{Attachment, Flying, NodeIndex};
use crate::parcels::{Parcel, Reader};
use crate::part::{Heard, Partition, PartitionCounts, Peers, CONTROLS};
use crate::Nanos;

impl Network {
    /// From now on this is one of several partitions: `homes` has the partition of each switch, in the order in which they were added, and hosts are where
    /// their switch is. All partitions have the same description, and nothing is added later.
    ///
    /// # Errors
    /// The run has begun, or a partition is missing; packets are logged one by one; a link between two partitions has no delay, or fails at some time; the control
    /// channel has no delay.
    pub fn partition(&mut self, own: usize, homes: &[usize], peers: Box<dyn Peers>) -> Result<(), BuildError> {
        let fail = |key: &str, what: &str| Err(BuildError::new(key, what));
        let count = homes.iter().max().map_or(0, |last| last + 1);
        if self.started || self.part.is_some() {
            return fail("partition", "the run has begun, or it is one already");
        }
        if homes.len() != self.switches.len() || own >= count {
            return fail("partition", "each switch needs a partition, and this one is none of them");
        }
        if self.observer.is_some() {
            return fail("partition", "packets that are logged one by one are not divided");
        }
        let switches = homes.to_vec();
        let mut hosts = vec![CONTROLS; self.hosts.len()];
        for (node, &home) in self.switches.iter().zip(&switches) {
            for channel in node.channels.iter().flatten() {
                if let Attachment::Host(host) = self.channel_ends[*channel] {
                    hosts[host] = home;
                }
            }
        }
        let lookahead = self.lookahead(&switches)?;
        let counts = PartitionCounts { lookahead, ..PartitionCounts::default() };
        let ours = vec![Vec::new(); count];
        let ledger = Rc::new(RefCell::new(Vec::new()));
        for (number, flow) in self.flows.iter().enumerate() {
            let home = |end: usize| hosts[self.ends[end].host];
            let (sender, receiver) = (flow.sender, flow.receivers[0]);
            let parts = home(sender) == own && home(receiver) != own;
            if let (true, End::TcpSender(tcp)) = (parts, &mut self.ends[sender].end) {
                tcp.tell_flight(number as u32, Rc::clone(&ledger));
            }
        }
        if own != CONTROLS {
            if let Some(control) = &mut self.control {
                control.clear();
            }
            self.queue.expect(self.control_slot, None, CONTROL);
        }
        let (earliest, bound, sampled) = (Nanos::MAX, 0, Vec::new());
        self.part = Some(Partition { own, switches, hosts, lookahead, peers, ours, earliest, bound, ledger, sampled, counts });
        Ok(())
    }

    /// What partitions sent each other. `None`: the network is not divided.
    pub fn partition_counts(&self) -> Option<PartitionCounts> {
        self.part.as_ref().map(|part| part.counts)
    }

    /// The least delay between two partitions.
    fn lookahead(&self, homes: &[usize]) -> Result<Nanos, BuildError> {
        let mut least = match &self.control {
            Some(control) => control.delay,
            None => Nanos::MAX,
        };
        if least == 0 {
            return Err(BuildError::new("partition", "the control channel has no delay"));
        }
        for (from, node) in self.switches.iter().enumerate() {
            for (port, channel) in node.channels.iter().enumerate() {
                let Some(channel) = *channel else { continue };
                let Attachment::Switch(to, _) = self.channel_ends[channel] else { continue };
                if homes[from] == homes[to] {
                    continue;
                }
                let key = || format!("partition: link {}", self.link_names[channel]);
                let planned = self.changes.iter().map(|(_, change)| change).filter(|change| {
                    let end = change.from();
                    end.node == node.name && end.port as usize == port
                });
                let mut delay = self.channels[channel].config.delay_ns;
                for change in planned {
                    match change {
                        Change::LinkDelay { delay_ns, .. } => delay = delay.min(*delay_ns),
                        Change::LinkState { .. } => {
                            return Err(BuildError::new(key(), "fails at some time, and both of its ends must know what that loses"))
                        }
                        _ => {}
                    }
                }
                if delay == 0 {
                    return Err(BuildError::new(key(), "has no delay"));
                }
                least = least.min(delay);
            }
        }
        Ok(least)
    }

    /// Whether one end of a channel is here.
    pub(crate) fn takes_part(&self, channel: usize, from: &LinkEnd) -> bool {
        let Some(part) = &self.part else { return true };
        let sends = match self.node(&from.node) {
            Some(NodeIndex::Host(host)) => part.has_host(host),
            Some(NodeIndex::Switch(switch)) => part.has_switch(switch),
            None => false,
        };
        sends || part.has(self.channel_ends[channel])
    }

    /// A frame is on its way between two switches; back, if it ends here.
    pub(crate) fn send_away(&mut self, channel: usize, flying: Flying) -> Option<Flying> {
        let (Some(part), Attachment::Switch(to, _)) = (&mut self.part, self.channel_ends[channel]) else { return Some(flying) };
        let home = part.switches[to];
        if home == part.own {
            return Some(flying);
        }
        part.counts.frames += 1;
        let parcel = Parcel::Frame { channel: channel as u32, flying };
        part.put(home, &parcel);
        if let Parcel::Frame { flying, .. } = parcel {
            self.pool.give(flying.frame);
        }
        None
    }

    /// The same of a call of the control plane.
    pub(crate) fn call_away(&mut self, switch: usize, call: Call) -> Option<Call> {
        let Some(part) = &mut self.part else { return Some(call) };
        let home = part.switches[switch];
        if home == part.own {
            return Some(call);
        }
        part.put(home, &Parcel::Call { switch: switch as u32, call });
        None
    }

    /// The same of what the control plane is told.
    pub(crate) fn tell_away(&mut self, order: Order, event: Event) -> Option<Event> {
        let Some(part) = self.part.as_mut().filter(|part| part.own != CONTROLS) else { return Some(event) };
        part.put(CONTROLS, &Parcel::Event { order, event });
        None
    }

    /// A flow starts here whose receiving end may be elsewhere.
    pub(crate) fn start_away(&mut self, end: usize, start: Nanos) {
        let (host, now) = (self.ends[end].host, self.now);
        if let Some(part) = self.part.as_mut().filter(|part| part.hosts[host] != part.own) {
            part.put(part.hosts[host], &Parcel::Starts { end: end as u32, now, start });
        }
    }

    /// The window's end: all get what goes to them, and the next window begins. Returns the last instant of it, `None` where nothing happens up to `end` any more.
    pub(crate) fn next_window(&mut self, end: Nanos) -> Result<Option<Nanos>, RunError> {
        let now = self.now;
        let Some(part) = &mut self.part else { return Ok(None) };
        let own = self.queue.peek().map_or(Nanos::MAX, |(time, _)| time).min(part.earliest);
        for (flow, sequence, time) in part.ledger.borrow_mut().drain(..) {
            let receiver = self.flows[flow as usize].receivers[0];
            let home = part.hosts[self.ends[receiver].host];
            Parcel::Left { flow, sequence, time }.write(&mut part.ours[home]);
        }
        for bytes in part.ours.iter().filter(|bytes| !bytes.is_empty()) {
            part.counts.bytes += bytes.len() as u64;
            part.counts.messages += 1;
        }
        part.counts.windows += 1;
        let Heard { floor, theirs } = part.peers.exchange(own, &mut part.ours).map_err(|fault| RunError::Fault { time: now, fault })?;
        part.earliest = Nanos::MAX;
        for (peer, bytes) in theirs {
            let mut reader = Reader(&bytes);
            while !reader.0.is_empty() {
                let Some(parcel) = reader.parcel(&mut self.pool) else { return Err(strange(now, peer)) };
                self.take(parcel).ok_or_else(|| strange(now, peer))?;
            }
        }
        let Some(part) = &mut self.part else { return Ok(None) };
        part.sampled.clear();
        let last = end.min(floor.saturating_add(part.lookahead - 1));
        if floor <= end {
            part.bound = last.saturating_add(1);
        }
        Ok((floor <= end).then_some(last))
    }
}

fn strange(time: Nanos, peer: usize) -> RunError {
    RunError::Fault {
        time,
        fault: format!("partition {peer} sent what is out of place: the network is not divided as it should be").into(),
    }
}

impl Network {
    /// What another partition sent. `None`: it lies before what has happened here, or names what there is not.
    fn take(&mut self, parcel: Parcel) -> Option<()> {
        let bound = self.part.as_ref()?.bound;
        match parcel {
            Parcel::Frame { channel, flying } if flying.arrival >= bound => self.fly(channel as usize, flying),
            Parcel::Call { switch, call } if call.at >= bound && (switch as usize) < self.switches.len() => {
                self.call(switch as usize, call);
            }
            Parcel::Event { order, event } if order.at >= bound => self.tell(order, event),
            Parcel::Left { flow, sequence, time } => {
                let receiver = self.flows.get(flow as usize)?.receivers[0];
                let End::TcpReceiver(tcp) = &self.ends[receiver].end else { return None };
                tcp.left(sequence, time);
            }
            Parcel::Starts { end, now, start } => {
                self.ends.get_mut(end as usize)?;
                self.start_late(end as usize, now, start, bound);
            }
            _ => return None,
        }
        Some(())
    }

    /// A flow whose end this is starts at an instant that may have passed here: then no packet of it has, but records were written since, which are this end's, too.
    fn start_late(&mut self, index: usize, now: Nanos, start: Nanos, bound: Nanos) {
        let end = &mut self.ends[index].end;
        end.start_at(start);
        if start >= bound {
            self.end_marks.insert((start, index));
            return;
        }
        let sampled = self.part.as_ref().map_or(&[][..], |part| &part.sampled);
        // A mark at the start itself comes before the end's own, if the start was known by then.
        let (before, after): (Vec<_>, Vec<_>) =
            sampled.iter().filter(|(time, _)| *time >= start).partition(|(time, mark)| *mark && *time == start);
        if now < start {
            before.into_iter().for_each(|&(time, _)| end.mark(time));
        }
        end.mark(start);
        for &(time, mark) in after {
            if mark {
                end.mark(time);
            } else {
                end.sample(time);
            }
        }
    }
}
