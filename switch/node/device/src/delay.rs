//! Delay lines: frames on their way, FIFO per port.

use std::collections::VecDeque;

use fairlane_tm::{Nanos, PortId, Schedule};

/// A frame with its instant of departure.
type Departure = (Nanos, Vec<u8>);

/// The frames of a port.
#[derive(Debug, Default)]
struct Line {
    frames: VecDeque<Departure>,
    /// Where frames are handed over: of the last one.
    handed: Option<Nanos>,
}

/// The frames of all ports that have left the queue and not yet the switch.
#[derive(Debug, Default)]
pub(crate) struct DelayLines {
    lines: Vec<Line>,
    schedule: Schedule,
    handed: Vec<(PortId, Nanos, Vec<u8>)>,
}

impl DelayLines {
    fn line(&mut self, port: PortId) -> &mut Line {
        let slot = port as usize;
        if slot >= self.lines.len() {
            self.lines.resize_with(slot + 1, Line::default);
        }
        &mut self.lines[slot]
    }

    /// From now on, whoever drives the switch has the frames of this port while they are on their way.
    pub(crate) fn hand_over(&mut self, port: PortId) {
        self.line(port).handed = Some(0);
    }

    /// Appends what was handed over.
    pub(crate) fn take_handed(&mut self, to: &mut Vec<(PortId, Nanos, Vec<u8>)>) {
        to.append(&mut self.handed);
    }

    /// Appends a frame to a port's line. A link does not reorder: where the delay was shortened the frame leaves no earlier than
    /// the one before it.
    pub(crate) fn push(&mut self, port: PortId, departure: Nanos, frame: Vec<u8>) {
        let line = self.line(port);
        if let Some(before) = line.handed {
            let departure = departure.max(before);
            line.handed = Some(departure);
            self.handed.push((port, departure, frame));
            return;
        }
        match line.frames.back() {
            Some((before, _)) => {
                let departure = departure.max(*before);
                line.frames.push_back((departure, frame));
            }
            None => {
                line.frames.push_back((departure, frame));
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
        let line = &mut self.lines.get_mut(port as usize)?.frames;
        let (departure, frame) = line.pop_front()?;
        let next = line.front().map(|(instant, _)| *instant);
        self.schedule.set(port, next);
        Some((port, departure, frame))
    }

    /// Takes all frames of a port, those handed over not among them; the next one follows none.
    pub(crate) fn clear(&mut self, port: PortId) -> VecDeque<Departure> {
        self.schedule.set(port, None);
        let Some(line) = self.lines.get_mut(port as usize) else { return VecDeque::new() };
        line.handed = line.handed.map(|_| 0);
        std::mem::take(&mut line.frames)
    }

    /// Frames on the line of a port.
    pub(crate) fn len(&self, port: PortId) -> usize {
        self.lines.get(port as usize).map_or(0, |line| line.frames.len())
    }
}
