//! What a network counts of itself: periodic records of ports, queues and links, and delays of packets.

use fairlane_endpoint::Delays;

use crate::error::BuildError;
use crate::network::Network;
use crate::nodes::FlowEnds;
use crate::record::{LinkSample, Measured, PortSample, QueueSample};
use crate::Nanos;

/// Intervals whose records get room at once.
const MAX_ROOM: u64 = 10_000;

impl Network {
    /// At these instants, too, what ports and ends have counted is recorded, before anything else that happens then: sums over a window
    /// that begins or ends there are exact.
    ///
    /// # Errors
    /// One lies in the past.
    pub fn mark(&mut self, instants: impl IntoIterator<Item = Nanos>) -> Result<(), BuildError> {
        let mut marks: Vec<Nanos> = self.marks.drain(..).chain(instants).collect();
        marks.sort_unstable();
        marks.dedup();
        if let Some(&first) = marks.first().filter(|&&first| first < self.now) {
            return Err(BuildError::new("mark", format!("{first} ns has passed: the run is at {} ns", self.now)));
        }
        self.marks = marks.into();
        Ok(())
    }

    /// Records at the marked instants that have come.
    pub(crate) fn record_marks(&mut self, until: Nanos) {
        loop {
            let mark = self.marks.front().copied().filter(|&mark| mark <= until);
            let of_end = self.end_marks.first().copied().filter(|&(at, _)| at <= until && mark.is_none_or(|mark| at < mark));
            if let Some((at, end)) = of_end {
                self.end_marks.pop_first();
                if self.part.as_ref().is_none_or(|part| part.has_host(self.ends[end].host)) {
                    self.ends[end].end.mark(at);
                }
            } else if let Some(mark) = mark {
                self.marks.pop_front();
                // What was due before has happened.
                self.now = self.now.max(mark);
                self.sample_ports(mark);
                for node in self.ends.iter_mut().filter(|node| self.part.as_ref().is_none_or(|part| part.has_host(node.host))) {
                    node.end.mark(mark);
                }
                self.part.iter_mut().for_each(|part| part.sampled.push((mark, true)));
            } else {
                return;
            }
        }
    }

    /// Writes the periodic records of all ports and ends.
    pub(crate) fn record(&mut self) {
        let now = self.now;
        let before = self.samples.len();
        self.sample_ports(now);
        self.sample_queues(now);
        // Room for all that follow: a list that grew step by step would be copied, and take fresh memory, again and again.
        let left = self.until.saturating_sub(now) / self.options.record_interval;
        self.samples.reserve_exact((self.samples.len() - before).saturating_mul(left.min(MAX_ROOM) as usize));
        for node in self.ends.iter_mut().filter(|node| self.part.as_ref().is_none_or(|part| part.has_host(node.host))) {
            node.end.sample(now);
        }
        self.part.iter_mut().for_each(|part| part.sampled.push((now, false)));
        self.queue.reset(self.recorder_slot, Some(now + self.options.record_interval));
    }

    fn sample_ports(&mut self, now: Nanos) {
        let part = self.part.as_ref();
        let here = |link: &&usize| part.is_none_or(|part| part.has(self.channel_ends[**link]));
        let counts = self.impaired.iter().filter(here).map(|&link| LinkSample { time: now, link, counts: self.channels[link].stats });
        self.link_samples.extend(counts);
        for (switch, node) in self.switches.iter().enumerate().filter(|&(switch, _)| part.is_none_or(|part| part.has_switch(switch))) {
            for port in node.device.ports() {
                if node.channels.get(port as usize).copied().flatten().is_some()
                    && let Some(snapshot) = node.device.snapshot(now, port)
                {
                    self.samples.push(PortSample { time: now, switch, port: snapshot });
                }
            }
        }
    }

    /// Of the ports that have several.
    fn sample_queues(&mut self, now: Nanos) {
        for (switch, node) in self.switches.iter_mut().enumerate() {
            if node.device.config().priorities < 2 || self.part.as_ref().is_some_and(|part| !part.has_switch(switch)) {
                continue;
            }
            for port in node.device.ports().collect::<Vec<_>>() {
                let queues = node.device.take_queues(port);
                self.queue_samples.extend(queues.map(|(priority, queue)| QueueSample { time: now, switch, port, priority, queue }));
            }
        }
    }

    /// Measures from now on how long packets wait in the queues of switches, their one-way delays, and round trips, as far as they leave the queue, arrive, or
    /// are acknowledged in a window. What was measured before is forgotten.
    pub fn measure_delays(&mut self, from: Nanos, to: Nanos) {
        self.measured = Some((from, to));
        self.switches.iter_mut().for_each(|node| node.device.measure_waits(from, to));
        self.ends.iter_mut().for_each(|node| *node.end.delays() = Delays::within(from, to));
    }

    /// What [`Network::measure_delays`] asked for, where there is any.
    pub fn delays(&mut self) -> Vec<(Measured, Delays)> {
        let mut found = Vec::new();
        for (switch, node) in self.switches.iter().enumerate() {
            for port in node.device.ports().filter(|&port| node.channels.get(port as usize).copied().flatten().is_some()) {
                let queues = node.device.waits(port).enumerate();
                found.extend(queues.map(|(priority, waits)| (Measured::Wait { switch, port, priority }, waits.clone())));
            }
        }
        for (flow, FlowEnds { sender, receivers, .. }) in self.flows.iter().enumerate() {
            found.push((Measured::RoundTrip { flow }, self.ends[*sender].end.delays().clone()));
            for (receiver, &end) in receivers.iter().enumerate() {
                found.push((Measured::OneWay { flow, receiver }, self.ends[end].end.delays().clone()));
            }
        }
        found.retain(|(_, delays)| delays.packets() > 0);
        found
    }

    /// Takes the records of all ports that have several queues, queue by queue.
    pub fn take_queue_samples(&mut self) -> Vec<QueueSample> {
        std::mem::take(&mut self.queue_samples)
    }

    /// Takes the records of all ports.
    pub fn take_port_samples(&mut self) -> Vec<PortSample> {
        std::mem::take(&mut self.samples)
    }

    /// Takes the records of the links that lose or impair frames.
    pub fn take_link_samples(&mut self) -> Vec<LinkSample> {
        std::mem::take(&mut self.link_samples)
    }

    /// What the ports of all switches had counted at each interval's end, as far as it was not taken.
    pub fn port_samples(&self) -> &[PortSample] {
        &self.samples
    }
}
