//! The traffic manager: all ports and the order in which they have something to do.

use std::sync::Arc;

use crate::port::Port;
use crate::schedule::Schedule;
use crate::trace::Trace;
use crate::{
    ConfigError, Delays, Dequeued, DropCause, Enqueued, Nanos, PortConfig, PortId, PortStats, QueueLimits, QueueStats, Rejected, MAX_PORT,
};

/// Queues and links of all ports of a switch; see the crate's description for the loop around it.
#[derive(Debug)]
pub struct TrafficManager<T> {
    ports: Vec<Option<Box<Port<T>>>>,
    schedule: Schedule,
}

impl<T> Default for TrafficManager<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> TrafficManager<T> {
    /// A traffic manager without ports.
    pub fn new() -> Self {
        TrafficManager { ports: Vec::new(), schedule: Schedule::default() }
    }

    /// Adds a port, or changes one while it runs: the packet in service finishes at the old rate, packets that wait stay even
    /// where a smaller capacity would not have admitted them, and packets of priorities that cease to exist move to the
    /// highest one left.
    ///
    /// # Errors
    /// A port number above [`MAX_PORT`], a rate of 0, or a number of priority queues out of range; nothing has changed then.
    pub fn configure(&mut self, port: PortId, config: PortConfig) -> Result<(), ConfigError> {
        if port > MAX_PORT {
            return Err(ConfigError::PortOutOfRange(port));
        }
        config.check(port)?;
        let slot = port as usize;
        if slot >= self.ports.len() {
            self.ports.resize_with(slot + 1, || None);
        }
        match &mut self.ports[slot] {
            Some(existing) => existing.configure(config),
            empty => *empty = Some(Box::new(Port::new(config))),
        }
        self.reschedule(port);
        Ok(())
    }

    /// From `now` on, the link of a port follows a trace that began at `origin`, until it is configured with another rate. False if
    /// there is no such port.
    pub fn follow(&mut self, now: Nanos, port: PortId, trace: Arc<Trace>, origin: Nanos) -> bool {
        let Some(target) = self.port_mut(port) else { return false };
        target.follow(now, trace, origin);
        self.reschedule(port);
        true
    }

    /// Removes a port and hands back what waited there, highest priority first.
    pub fn remove(&mut self, now: Nanos, port: PortId) -> Vec<T> {
        self.schedule.set(port, None);
        let removed = self.ports.get_mut(port as usize).and_then(Option::take);
        removed.map_or_else(Vec::new, |mut port| port.clear(now))
    }

    /// Empties the queues of a port and hands back what waited there, highest priority first. What is in service goes on.
    pub fn clear(&mut self, now: Nanos, port: PortId) -> Vec<T> {
        let items = self.port_mut(port).map_or_else(Vec::new, |port| port.clear(now));
        self.reschedule(port);
        items
    }

    /// The configuration of a port, or `None` if there is no such port.
    pub fn config(&self, port: PortId) -> Option<&PortConfig> {
        self.port(port).map(Port::config)
    }

    /// Sets what one priority queue of a port has beside the port's configuration, while it runs. Without effect where there is no such
    /// port or queue.
    pub fn limit_queue(&mut self, port: PortId, priority: usize, limits: QueueLimits) {
        if let Some(target) = self.port_mut(port) {
            target.limit(priority, limits);
        }
        self.reschedule(port);
    }

    /// What was set by [`TrafficManager::limit_queue`].
    pub fn queue_limits(&self, port: PortId, priority: usize) -> QueueLimits {
        self.port(port).map_or_else(QueueLimits::default, |port| port.limits(priority))
    }

    /// All port numbers, ascending.
    pub fn ports(&self) -> impl Iterator<Item = PortId> + '_ {
        self.ports.iter().enumerate().filter(|(_, port)| port.is_some()).map(|(number, _)| number as PortId)
    }

    /// A packet of `bytes` arrives at the queue of `priority` of a port at `now`.
    ///
    /// # Errors
    /// Hands the item back with the cause when the queue is full or does not exist. The port counts it.
    pub fn enqueue(&mut self, now: Nanos, port: PortId, priority: usize, bytes: u32, item: T) -> Result<Enqueued, Rejected<T>> {
        let Some(target) = self.ports.get_mut(port as usize).and_then(Option::as_mut) else {
            return Err(Rejected { item, cause: DropCause::UnknownPort });
        };
        let enqueued = target.enqueue(now, priority, bytes, item)?;
        let departure = target.next_departure();
        self.schedule.set(port, departure);
        Ok(enqueued)
    }

    /// A short cut for a packet that finds its port's queues empty and the link free: true means that it was enqueued and dequeued
    /// at `now` (with depths 0) and that the caller goes on as after [`TrafficManager::dequeue`]. False means nothing: enqueue it.
    pub fn pass(&mut self, now: Nanos, port: PortId, priority: usize, bytes: u32) -> bool {
        self.port_mut(port).is_some_and(|port| port.pass(now, priority, bytes))
    }

    /// The earliest instant at which some port may dequeue, and the port (of several the lowest number). O(1); the other
    /// calls keep it up to date in O(log ports).
    pub fn next_departure(&self) -> Option<(Nanos, PortId)> {
        self.schedule.peek()
    }

    /// The packet that goes next on a port, if its link is free by `now`: of the packets present when the link got free the
    /// one of highest priority, FIFO within a priority. Follow with [`TrafficManager::transmitted`] unless egress drops it.
    pub fn dequeue(&mut self, now: Nanos, port: PortId) -> Option<Dequeued<T>> {
        let target = self.ports.get_mut(port as usize).and_then(Option::as_mut)?;
        let dequeued = target.dequeue(now)?;
        let departure = target.next_departure();
        self.schedule.set(port, departure);
        Some(dequeued)
    }

    /// The packet last dequeued on a port goes on its link with `bytes`; returns the instant at which its last bit has left,
    /// counted from when the transmission could have begun. `None` if there is no such port.
    pub fn transmitted(&mut self, port: PortId, bytes: u32) -> Option<Nanos> {
        let target = self.ports.get_mut(port as usize).and_then(Option::as_mut)?;
        let finish = target.transmitted(bytes);
        if let Some(departure) = target.next_departure() {
            self.schedule.set(port, Some(departure));
        }
        Some(finish)
    }

    /// Packets waiting in one priority queue of a port; 0 where there is none.
    pub fn depth(&self, port: PortId, priority: usize) -> u32 {
        self.port(port).map_or(0, |port| port.depth(priority))
    }

    /// Bytes waiting in one priority queue of a port; 0 where there is none.
    pub fn depth_bytes(&self, port: PortId, priority: usize) -> u64 {
        self.port(port).map_or(0, |port| port.depth_bytes(priority))
    }

    /// What a port has counted up to `now`, or `None` if there is no such port.
    pub fn stats(&self, now: Nanos, port: PortId) -> Option<PortStats> {
        self.port(port).map(|port| port.stats(now))
    }

    /// What one of a port's several priority queues has counted, and how long its packets have waited since this was last asked for. `None` if there is no
    /// such queue, or if it is the port's only one.
    pub fn take_queue_stats(&mut self, port: PortId, priority: usize) -> Option<QueueStats> {
        self.port_mut(port)?.take_queue_stats(priority)
    }

    /// How long packets wait in each queue of each port will count, as far as they leave it in a window. What counted before is forgotten.
    pub fn measure(&mut self, from: Nanos, to: Nanos) {
        let delays = Delays::within(from, to);
        self.ports.iter_mut().flatten().for_each(|port| port.measure(&delays));
    }

    /// What [`TrafficManager::measure`] asked for, of each queue of a port by its priority; a packet that egress drops afterwards has waited, too.
    pub fn delays(&self, port: PortId) -> impl Iterator<Item = &Delays> {
        self.port(port).into_iter().flat_map(Port::delays)
    }

    fn port(&self, port: PortId) -> Option<&Port<T>> {
        self.ports.get(port as usize)?.as_deref()
    }

    fn port_mut(&mut self, port: PortId) -> Option<&mut Port<T>> {
        self.ports.get_mut(port as usize)?.as_deref_mut()
    }

    fn reschedule(&mut self, port: PortId) {
        let departure = self.port(port).and_then(Port::next_departure);
        self.schedule.set(port, departure);
    }
}
