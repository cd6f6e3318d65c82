//! One port: its priority queues, its link and what it counts.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::sync::Arc;

use crate::link::Link;
use crate::scheduler::{Order, Scheduler};
use crate::trace::Trace;
use crate::waits::{WaitSummary, Waits};
use crate::{ConfigError, Delays, Nanos, PortId, MAX_PRIORITIES};

/// How much one priority queue may hold. What is in service on the link is not in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capacity {
    /// At most so many packets wait (BMv2's default: 64).
    Packets(u32),
    /// A packet is admitted when it fits: bytes waiting plus its own do not exceed this.
    Bytes(u64),
    /// Every packet is admitted.
    Unlimited,
}

/// What a port is. Capacity holds for **each** priority queue, as in BMv2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortConfig {
    /// Link rate in bits per second, positive; `None` transmits in no time.
    pub rate_bps: Option<u64>,
    /// Capacity of each priority queue.
    pub capacity: Capacity,
    /// Number of priority queues, 1..=[`MAX_PRIORITIES`].
    pub priorities: usize,
    /// Which of the priority queues sends next.
    pub scheduler: Scheduler,
    /// Bytes added to each frame on the link (24: Ethernet's preamble, FCS and inter-frame gap), or taken away (-14: the rate counts
    /// datagrams without Ethernet's header).
    pub overhead_bytes: i32,
}

impl Default for PortConfig {
    /// `simple_switch`'s defaults: no rate limit, 64 packets, one priority queue.
    fn default() -> Self {
        PortConfig { rate_bps: None, capacity: Capacity::Packets(64), priorities: 1, scheduler: Scheduler::Strict, overhead_bytes: 0 }
    }
}

impl PortConfig {
    pub(crate) fn check(&self, port: PortId) -> Result<(), ConfigError> {
        if self.rate_bps == Some(0) {
            return Err(ConfigError::ZeroRate(port));
        }
        if self.priorities == 0 || self.priorities > MAX_PRIORITIES {
            return Err(ConfigError::Priorities { port, priorities: self.priorities });
        }
        Ok(())
    }
}

/// What one priority queue has beside its port's configuration, as BMv2's queues do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueLimits {
    /// Packets that leave the queue in a second, evenly spaced, whatever their size; `None` is no limit beside the link's.
    pub rate_pps: Option<NonZeroU64>,
    /// Packets that may wait, in place of the port's capacity.
    pub depth_packets: Option<u32>,
}

/// Why a packet was not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropCause {
    /// The priority queue was full.
    TailDrop,
    /// The port has no queue of that priority (BMv2: "Priority out of range, dropping packet").
    PriorityOutOfRange,
    /// The port does not exist.
    UnknownPort,
}

/// A packet was admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enqueued {
    /// Packets that were waiting in the same priority queue when it came, itself not counted (v1model `enq_qdepth`).
    pub qdepth: u32,
}

/// A packet was not admitted; it is handed back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected<T> {
    pub item: T,
    pub cause: DropCause,
}

/// A packet on its way to egress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dequeued<T> {
    pub item: T,
    /// The priority queue it waited in.
    pub priority: usize,
    /// Instant of arrival in the queue.
    pub enq_time: Nanos,
    /// Packets ahead of it in its priority queue on arrival.
    pub enq_qdepth: u32,
    /// Instant at which it left the queue: when the link was free for it, even if the caller came later.
    pub deq_time: Nanos,
    /// Packets left in its priority queue after it (v1model `deq_qdepth`).
    pub deq_qdepth: u32,
}

/// What a port has counted, at one instant. All sums run from the creation of the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PortStats {
    pub enqueued_packets: u64,
    pub enqueued_bytes: u64,
    pub dequeued_packets: u64,
    pub dequeued_bytes: u64,
    /// Packets and bytes put on the link; bytes as sent (egress may change a packet's size), overhead not counted.
    pub transmitted_packets: u64,
    pub transmitted_bytes: u64,
    /// Drops because a priority queue was full.
    pub tail_drops: u64,
    /// Drops because the port has no queue of the packet's priority.
    pub priority_drops: u64,
    /// Packets thrown away by [`crate::TrafficManager::clear`].
    pub cleared: u64,
    /// Time the link has been busy, in nanoseconds: utilisation of a window is the difference over its length.
    pub busy_ns: Nanos,
    /// Time-integral of the number of packets waiting, in packet-nanoseconds: the mean queue of a window is the
    /// difference over its length.
    pub queue_integral_packet_ns: u128,
    /// Packets and bytes waiting now, over all priorities.
    pub depth_packets: u32,
    pub depth_bytes: u64,
    /// The most packets that ever waited, over all priorities; one that finds the link free counts as having waited no time.
    pub max_depth_packets: u32,
}

/// What one of several priority queues has counted, at one instant [RFC 9332 sec 2.5.2.2]. All sums run from the creation of the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueStats {
    /// Packets that came, and of them those that a full queue refused.
    pub arrived_packets: u64,
    pub tail_drops: u64,
    /// Packets that left the queue: those that egress, where an AQM may be, was given.
    pub dequeued_packets: u64,
    /// Packets and bytes put on the link.
    pub transmitted_packets: u64,
    pub transmitted_bytes: u64,
    /// Packets waiting now.
    pub depth_packets: u32,
    /// Of the packets that left the queue since this was last asked for.
    pub waits: WaitSummary,
}

#[derive(Debug)]
struct Entry<T> {
    item: T,
    enq_time: Nanos,
    enq_qdepth: u32,
    bytes: u32,
}

#[derive(Debug)]
struct Queue<T> {
    entries: VecDeque<Entry<T>>,
    bytes: u64,
    /// What is set for this queue alone; see [`QueueLimits`].
    limits: QueueLimits,
    /// A time line of packets, each a unit long, where the queue has a rate in packets.
    pace: Option<Link>,
    /// Kept where a port has several queues.
    stats: QueueStats,
    waits: Option<Box<Waits>>,
    /// How long packets waited that left the queue in a window.
    delays: Delays,
}

impl<T> Queue<T> {
    fn new() -> Self {
        Queue {
            entries: VecDeque::new(),
            bytes: 0,
            limits: QueueLimits::default(),
            pace: None,
            stats: QueueStats::default(),
            waits: None,
            delays: Delays::default(),
        }
    }

    /// The instant at which its first packet may leave it.
    fn ready(&self) -> Option<Nanos> {
        let first = self.entries.front()?.enq_time;
        Some(self.pace.as_ref().map_or(first, |pace| pace.free_at().max(first)))
    }
}

#[derive(Debug)]
pub(crate) struct Port<T> {
    config: PortConfig,
    queues: Vec<Queue<T>>,
    /// Some queue has limits of its own.
    limited: bool,
    order: Order,
    /// The queue of the packet last dequeued.
    last: usize,
    link: Link,
    stats: PortStats,
    /// Sum of the waiting times of packets that have left, in nanoseconds.
    waited_ns: u128,
    /// Sum of the arrival instants of packets that wait now; with `waited_ns` it gives the queue's time-integral in
    /// any order of calls: sum of waits = integral of depth.
    arrivals_ns: u128,
}

impl<T> Port<T> {
    pub(crate) fn new(config: PortConfig) -> Self {
        Port {
            queues: (0..config.priorities).map(|_| Queue::new()).collect(),
            limited: false,
            order: config.scheduler.into(),
            last: 0,
            link: Link::new(config.rate_bps),
            config,
            stats: PortStats::default(),
            waited_ns: 0,
            arrivals_ns: 0,
        }
    }

    pub(crate) fn config(&self) -> &PortConfig {
        &self.config
    }

    pub(crate) fn configure(&mut self, config: PortConfig) {
        if config.rate_bps != self.config.rate_bps {
            self.link.set_rate(config.rate_bps);
        }
        if config.scheduler != self.config.scheduler {
            self.order = config.scheduler.into();
        }
        while self.queues.len() < config.priorities {
            self.queues.push(Queue::new());
        }
        if self.queues.len() > config.priorities {
            self.fold_queues(config.priorities);
        }
        self.config = config;
    }

    pub(crate) fn follow(&mut self, now: Nanos, trace: Arc<Trace>, origin: Nanos) {
        self.link.follow(now, trace, origin);
    }

    /// Sets what a queue has of its own; a queue that does not exist has nothing.
    pub(crate) fn limit(&mut self, priority: usize, limits: QueueLimits) {
        let Some(queue) = self.queues.get_mut(priority) else { return };
        if queue.limits.rate_pps != limits.rate_pps {
            let rate = limits.rate_pps.map(NonZeroU64::get);
            match (&mut queue.pace, rate) {
                (Some(pace), Some(_)) => pace.set_rate(rate),
                (pace, rate) => *pace = rate.map(|rate| Link::new(Some(rate))),
            }
        }
        queue.limits = limits;
        self.limited = self.queues.iter().any(|queue| queue.limits != QueueLimits::default());
    }

    pub(crate) fn limits(&self, priority: usize) -> QueueLimits {
        self.queues.get(priority).map_or_else(QueueLimits::default, |queue| queue.limits)
    }

    /// Moves what waits in queues that cease to exist into the highest one left, in order of arrival.
    fn fold_queues(&mut self, left: usize) {
        let removed: Vec<Queue<T>> = self.queues.drain(left..).collect();
        let Some(target) = self.queues.last_mut() else { return };
        for queue in removed {
            target.bytes += queue.bytes;
            target.entries.extend(queue.entries);
        }
        target.entries.make_contiguous().sort_by_key(|entry| entry.enq_time);
    }

    pub(crate) fn enqueue(&mut self, now: Nanos, priority: usize, bytes: u32, item: T) -> Result<Enqueued, Rejected<T>> {
        if self.stats.depth_packets == 0 {
            self.idle_until(now);
        }
        let Some(queue) = self.queues.get_mut(priority) else {
            self.stats.priority_drops += 1;
            return Err(Rejected { item, cause: DropCause::PriorityOutOfRange });
        };
        let qdepth = queue.entries.len() as u32;
        let fits = match self.config.capacity {
            _ if queue.limits.depth_packets.is_some() => queue.limits.depth_packets.is_some_and(|limit| qdepth < limit),
            Capacity::Packets(limit) => qdepth < limit,
            Capacity::Bytes(limit) => queue.bytes.saturating_add(u64::from(bytes)) <= limit,
            Capacity::Unlimited => qdepth < u32::MAX,
        };
        queue.stats.arrived_packets += 1;
        if !fits {
            queue.stats.tail_drops += 1;
            self.stats.tail_drops += 1;
            return Err(Rejected { item, cause: DropCause::TailDrop });
        }
        // A clock that steps back must not reorder a FIFO.
        let enq_time = queue.entries.back().map_or(now, |last| last.enq_time.max(now));
        queue.entries.push_back(Entry { item, enq_time, enq_qdepth: qdepth, bytes });
        queue.bytes += u64::from(bytes);
        self.arrivals_ns += u128::from(enq_time);
        let stats = &mut self.stats;
        stats.enqueued_packets += 1;
        stats.enqueued_bytes += u64::from(bytes);
        stats.depth_packets += 1;
        stats.depth_bytes += u64::from(bytes);
        stats.max_depth_packets = stats.max_depth_packets.max(stats.depth_packets);
        Ok(Enqueued { qdepth })
    }

    /// [`Port::enqueue`] and [`Port::dequeue`] in one, for a packet that need not wait; false (and nothing changed) for any other.
    pub(crate) fn pass(&mut self, now: Nanos, priority: usize, bytes: u32) -> bool {
        let admits = match self.config.capacity {
            Capacity::Packets(limit) => limit > 0,
            Capacity::Bytes(limit) => u64::from(bytes) <= limit,
            Capacity::Unlimited => true,
        };
        if self.stats.depth_packets > 0 || !admits || self.limited || priority >= self.queues.len() || self.link.free_for(now) > now {
            return false;
        }
        self.idle_until(now);
        if let Order::Weighted(credit) = &mut self.order {
            credit.choose(priority, false);
        }
        self.link.begin(now);
        self.queues[priority].delays.add(now, 0);
        if self.queues.len() > 1 {
            self.queues[priority].stats.arrived_packets += 1;
            self.took(priority, 0);
        }
        let stats = &mut self.stats;
        stats.enqueued_packets += 1;
        stats.enqueued_bytes += u64::from(bytes);
        stats.dequeued_packets += 1;
        stats.dequeued_bytes += u64::from(bytes);
        stats.max_depth_packets = stats.max_depth_packets.max(1);
        true
    }

    /// The earliest instant at which a waiting packet meets a free link.
    pub(crate) fn next_departure(&self) -> Option<Nanos> {
        let earliest = match self.queues.as_slice() {
            [only] if !self.limited => only.entries.front()?.enq_time,
            queues if self.limited => queues.iter().filter_map(Queue::ready).min()?,
            queues => queues.iter().filter_map(|queue| queue.entries.front()).map(|entry| entry.enq_time).min()?,
        };
        Some(self.link.free_for(earliest))
    }

    pub(crate) fn dequeue(&mut self, now: Nanos) -> Option<Dequeued<T>> {
        let deq_time = self.next_departure().filter(|&instant| instant <= now)?;
        let priority = self.next_queue(deq_time)?;
        let queue = &mut self.queues[priority];
        let entry = queue.entries.pop_front()?;
        let mut arrival = entry.enq_time;
        if let Some(pace) = &mut queue.pace {
            arrival = pace.free_at().max(arrival);
            pace.begin(entry.enq_time);
            pace.transmit(1);
        }
        queue.bytes -= u64::from(entry.bytes);
        queue.delays.add(deq_time, deq_time.saturating_sub(entry.enq_time));
        let deq_qdepth = queue.entries.len() as u32;
        self.link.begin(arrival);
        self.leave(&entry, deq_time);
        if self.queues.len() > 1 {
            self.took(priority, deq_time.saturating_sub(entry.enq_time));
        }
        self.stats.dequeued_packets += 1;
        self.stats.dequeued_bytes += u64::from(entry.bytes);
        let Entry { item, enq_time, enq_qdepth, .. } = entry;
        Some(Dequeued { item, priority, enq_time, enq_qdepth, deq_time, deq_qdepth })
    }

    /// The queue whose first packet goes at an instant, of the packets present then (the caller may be late).
    fn next_queue(&mut self, instant: Nanos) -> Option<usize> {
        let is_ready = |queue: &Queue<T>| queue.ready().is_some_and(|ready| ready <= instant);
        match &mut self.order {
            Order::Strict => self.queues.iter().rposition(is_ready),
            Order::Weighted(credit) => {
                let highest = self.queues.iter().rposition(is_ready)?;
                let contended = highest > 0 && self.queues.first().is_some_and(is_ready);
                let chosen = if contended && credit.is_due() { 0 } else { highest };
                credit.choose(chosen, contended);
                Some(chosen)
            }
            &mut Order::TimeShifted(shift) => {
                let since = |(priority, queue): (usize, &Queue<T>)| {
                    let entry = queue.entries.front().filter(|_| is_ready(queue))?;
                    Some((i128::from(entry.enq_time) - i128::from(shift) * priority as i128, Reverse(priority)))
                };
                self.queues.iter().enumerate().filter_map(since).min().map(|(_, Reverse(priority))| priority)
            }
        }
    }

    /// No packet waited before `arrival`.
    fn idle_until(&mut self, arrival: Nanos) {
        if let Order::Weighted(credit) = &mut self.order
            && self.link.free_at() < arrival
        {
            credit.reset();
        }
    }

    /// One of several queues gave a packet to egress.
    fn took(&mut self, priority: usize, wait: Nanos) {
        self.last = priority;
        let queue = &mut self.queues[priority];
        queue.stats.dequeued_packets += 1;
        queue.waits.get_or_insert_with(|| Box::new(Waits::new())).add(wait);
    }

    fn leave(&mut self, entry: &Entry<T>, instant: Nanos) {
        self.arrivals_ns -= u128::from(entry.enq_time);
        self.waited_ns += u128::from(instant.saturating_sub(entry.enq_time));
        self.stats.depth_packets -= 1;
        self.stats.depth_bytes -= u64::from(entry.bytes);
    }

    pub(crate) fn transmitted(&mut self, bytes: u32) -> Nanos {
        self.stats.transmitted_packets += 1;
        self.stats.transmitted_bytes += u64::from(bytes);
        if let Order::Weighted(credit) = &mut self.order {
            credit.sent(bytes);
        }
        if self.queues.len() > 1
            && let Some(queue) = self.queues.get_mut(self.last)
        {
            queue.stats.transmitted_packets += 1;
            queue.stats.transmitted_bytes += u64::from(bytes);
        }
        self.link.transmit(u64::from(bytes).saturating_add_signed(self.config.overhead_bytes.into()) * 8)
    }

    pub(crate) fn clear(&mut self, now: Nanos) -> Vec<T> {
        let mut items = Vec::with_capacity(self.stats.depth_packets as usize);
        for priority in (0..self.queues.len()).rev() {
            while let Some(entry) = self.queues[priority].entries.pop_front() {
                self.leave(&entry, now);
                self.stats.cleared += 1;
                items.push(entry.item);
            }
            self.queues[priority].bytes = 0;
        }
        items
    }

    pub(crate) fn depth(&self, priority: usize) -> u32 {
        self.queues.get(priority).map_or(0, |queue| queue.entries.len() as u32)
    }

    pub(crate) fn depth_bytes(&self, priority: usize) -> u64 {
        self.queues.get(priority).map_or(0, |queue| queue.bytes)
    }

    /// From now on, how long packets wait that leave in a window.
    pub(crate) fn measure(&mut self, delays: &Delays) {
        self.queues.iter_mut().for_each(|queue| queue.delays = delays.clone());
    }

    /// Of each queue, by its priority.
    pub(crate) fn delays(&self) -> impl Iterator<Item = &Delays> {
        self.queues.iter().map(|queue| &queue.delays)
    }

    /// None where the port has one queue, whose counts are the port's, or no queue of this priority. The interval of its waits ends.
    pub(crate) fn take_queue_stats(&mut self, priority: usize) -> Option<QueueStats> {
        if self.queues.len() < 2 {
            return None;
        }
        let queue = self.queues.get_mut(priority)?;
        let waits = queue.waits.as_mut().map_or_else(WaitSummary::default, |waits| waits.take());
        Some(QueueStats { depth_packets: queue.entries.len() as u32, waits, ..queue.stats })
    }

    pub(crate) fn stats(&self, now: Nanos) -> PortStats {
        let waiting = (u128::from(self.stats.depth_packets) * u128::from(now)).saturating_sub(self.arrivals_ns);
        PortStats { busy_ns: self.link.busy_until(now), queue_integral_packet_ns: self.waited_ns + waiting, ..self.stats }
    }
}
