//! Delay lines: frames on their way, FIFO per port.

use std::collections::VecDeque;

use fairlane_tm::{Nanos, PortId, Schedule};

/// A frame with its instant of departure.
type Departure = (Nanos, Vec<u8>);

/// The frames of all ports that have left the queue and not yet the switch.
#[derive(Debug, Default)]
pub(crate) struct DelayLines {
    lines: Vec<VecDeque<Departure>>,
    schedule: Schedule,
}

impl DelayLines {
    /// Appends a frame to a port's line. A link does not reorder: where the delay was shortened the frame leaves no earlier than
    /// the one before it.
    pub(crate) fn push(&mut self, port: PortId, departure: Nanos, frame: Vec<u8>) {
        let slot = port as usize;
        if slot >= self.lines.len() {
            self.lines.resize_with(slot + 1, VecDeque::new);
        }
        let line = &mut self.lines[slot];
        match line.back() {
            Some((before, _)) => {
                let departure = departure.max(*before);
                line.push_back((departure, frame));
            }
            None => {
                line.push_back((departure, frame));
                self.schedule.set(port, Some(departure));
            }
        }
    }

    /// The earliest departure.
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.schedule.peek().map(|(instant, _)| instant)
    }

    /// Takes a frame that is due by `now`: earliest first, of several the lowest port's.
    pub(crate) fn pop(&mut self, now: Nanos) -> Option<(PortId, Nanos, Vec<u8>)> {
        let (_, port) = self.schedule.peek().filter(|(instant, _)| *instant <= now)?;
        let line = self.lines.get_mut(port as usize)?;
        let (departure, frame) = line.pop_front()?;
        let next = line.front().map(|(instant, _)| *instant);
        self.schedule.set(port, next);
        Some((port, departure, frame))
    }

    /// Takes all frames of a port.
    pub(crate) fn clear(&mut self, port: PortId) -> VecDeque<Departure> {
        self.schedule.set(port, None);
        self.lines.get_mut(port as usize).map_or_else(VecDeque::new, std::mem::take)
    }

    /// Frames on the line of a port.
    pub(crate) fn len(&self, port: PortId) -> usize {
        self.lines.get(port as usize).map_or(0, VecDeque::len)
    }
}
