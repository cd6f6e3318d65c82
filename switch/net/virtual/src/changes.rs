//! Changes of links while the network runs.

use fairlane_channel::Impairments;

use crate::build::{check_impairments, check_loss};
use crate::description::Change;
use crate::error::{nearest, BuildError};
use crate::network::Network;
use crate::nodes::{Flying, NodeIndex};
use crate::record::PortSample;
use crate::Nanos;

impl Network {
    /// Plans a change.
    ///
    /// # Errors
    /// A link that is not there, a rate of 0, a probability that is none, an instant that has passed or lies after the run's end.
    pub fn schedule(&mut self, at: Nanos, change: Change) -> Result<(), BuildError> {
        let from = change.from();
        let what = match &change {
            Change::LinkRate { .. } => "rate",
            Change::LinkDelay { .. } => "delay",
            Change::LinkLoss { .. } => "loss",
            Change::LinkJitter { .. } => "jitter",
            Change::LinkImpairments { .. } => "impairments",
            Change::LinkTrace { .. } => "trace",
            Change::LinkState { .. } => "state",
            Change::Frame { .. } => "frame",
        };
        let key = format!("change of the {what} of the link of {}:{} at {at} ns", from.node, from.port);
        let fail = |what: String| Err(BuildError::new(key.clone(), what));
        match self.node(&from.node) {
            None => {
                let known = self.hosts.iter().map(|h| h.name.as_str()).chain(self.switches.iter().map(|s| s.name.as_str()));
                return fail(format!("there is no such link: unknown node {:?}{}", from.node, nearest(&from.node, known)));
            }
            Some(NodeIndex::Switch(_)) if matches!(change, Change::Frame { .. }) => {
                return fail("only a host sends frames of its own".into());
            }
            Some(_) => {}
        }
        let Some(channel) = self.channel_of(from) else {
            return fail(format!("there is no such link: port {} of {} has none", from.port, from.node));
        };
        match &change {
            Change::LinkRate { rate_bps: Some(0), .. } => return fail("a rate of 0 bit/s never sends: give a positive rate".into()),
            Change::LinkLoss { loss, .. } => check_loss(&key, loss)?,
            Change::LinkImpairments { change, .. } => check_impairments(&key, &change.of(Impairments::default()))?,
            _ => {}
        }
        if at < self.now {
            return fail(format!("lies in the past: the run is at {} ns", self.now));
        }
        if let Some(end) = self.options.end.filter(|&end| at > end) {
            return fail(format!("lies after the run's end at {end} ns"));
        }
        match &change {
            Change::LinkLoss { loss, .. } => self.note_impairments(channel, loss.is_some(), &Impairments::default()),
            Change::LinkImpairments { change, .. } => self.note_impairments(channel, false, &change.of(Impairments::default())),
            _ => {}
        }
        let place = self.changes.iter().position(|(other, _)| *other > at).unwrap_or(self.changes.len());
        self.changes.insert(place, (at, change));
        if self.started {
            self.queue.set(self.changes_slot, self.changes.front().map(|(at, _)| *at));
        }
        Ok(())
    }

    pub(crate) fn change(&mut self) {
        while self.changes.front().is_some_and(|(at, _)| *at <= self.now) {
            let Some((_, change)) = self.changes.pop_front() else { break };
            self.change_link(change);
        }
        self.queue.reset(self.changes_slot, self.changes.front().map(|(at, _)| *at));
    }

    fn change_link(&mut self, change: Change) {
        let from = change.from();
        let Some(index) = self.channel_of(from) else { return };
        if !self.takes_part(index, from) {
            return;
        }
        let switch = self.switches.iter().position(|node| node.name == from.node);
        let switch = switch.filter(|&switch| self.part.as_ref().is_none_or(|part| part.has_switch(switch)));
        let (now, port, channel) = (self.now, from.port, &mut self.channels[index]);
        let mut device = switch.map(|switch| &mut self.switches[switch].device);
        let mut config = device.as_ref().and_then(|device| device.port_config(port).cloned());
        match change {
            Change::LinkRate { rate_bps, .. } => {
                // How long the link was busy at the old rate, and how long at the new one, is told apart.
                let snapshot = device.as_ref().and_then(|device| device.snapshot(now, port));
                self.samples.extend(snapshot.zip(switch).map(|(port, switch)| PortSample { time: now, switch, port }));
                channel.set_rate(now, rate_bps);
                config.iter_mut().for_each(|config| config.rate_bps = rate_bps);
            }
            Change::LinkDelay { delay_ns, .. } => {
                channel.set_delay(delay_ns);
                config.iter_mut().for_each(|config| config.delay_ns = delay_ns);
            }
            Change::LinkLoss { loss, .. } => channel.set_loss(loss),
            Change::LinkImpairments { change, .. } => channel.set_impairments(change.of(channel.config.impairments)),
            Change::LinkJitter { jitter, .. } => channel.set_jitter(jitter),
            Change::LinkTrace { trace, .. } => match &mut device {
                Some(device) => _ = device.follow(now, port, trace, now),
                None => channel.follow(now, trace, now),
            },
            Change::LinkState { up, .. } => {
                let lost = channel.set_up(up);
                if let Some(device) = &mut device {
                    device.set_link(now, port, up);
                    if let (Some(way), false) = (&mut self.ways[index], up) {
                        self.queue.expect(way.slot, None, 0);
                        for Flying { frame, .. } in way.frames.drain(..) {
                            device.lose_frame(now, port, &frame);
                            self.pool.give(frame);
                        }
                    }
                    lost.iter().for_each(|frame| device.lose_frame(now, port, frame));
                }
                lost.into_iter().for_each(|frame| self.pool.give(frame));
            }
            Change::Frame { frame, .. } => {
                let _ = channel.send(now, frame);
            }
        }
        if let (Some(device), Some(config)) = (device, config) {
            // The rate was checked when the change was added.
            let _ = device.set_port(port, config);
        }
        self.queue.set(self.channel_slots[index], self.channels[index].next());
        if let Some(switch) = switch {
            self.settle(switch, false);
        }
    }
}
