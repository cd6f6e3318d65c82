//! The loop of one end: do what is due, wait for the next instant or a datagram, hand over what came.

use std::collections::VecDeque;
use std::os::fd::AsFd;

use fairlane_endpoint::algorithm::Fault;
use fairlane_endpoint::record::FlowLog;
use fairlane_endpoint::{End, Incoming, Io, Nanos, Network};
use fairlane_sockets::Batch;

/// Datagrams that are taken in at once.
const MOST_ARRIVALS: usize = 32;
/// The largest datagram.
const MOST_BYTES: usize = 65_536;
/// Times that an end acts before the loop looks at what arrived: what is due for ever must not stop the reading.
const MOST_ACTS: usize = 64;
/// Receivers write what they counted at multiples of this Unix time: the same instants for all flows.
const SAMPLE_INTERVAL: Nanos = 100_000_000;

/// What carries datagrams and tells the time.
pub trait Wire: Network {
    /// Nanoseconds on a clock that never goes back.
    fn now(&self) -> Nanos;

    /// Takes a message of the program beside the end that encodes a film; its length.
    fn message(&mut self, _buffer: &mut [u8]) -> Option<usize> {
        None
    }

    /// Waits for an instant or for datagrams, and takes those in. False: somebody interrupted the waiting.
    fn wait(&mut self, until: Nanos, arrivals: &mut Arrivals) -> bool;
}

/// What is known of a datagram in a slot, as of [`Incoming`].
#[derive(Debug, Clone, Copy)]
pub struct Taken {
    pub bytes: usize,
    pub rtcp: bool,
    pub group: Option<u32>,
    pub ecn: u8,
}

/// Datagrams that came.
pub struct Arrivals {
    batch: Batch,
    /// Of each slot in use; `None`: it is not the end's.
    taken: Vec<Option<Taken>>,
}

impl Default for Arrivals {
    fn default() -> Self {
        Arrivals { batch: Batch::new(MOST_ARRIVALS, MOST_BYTES, 0), taken: Vec::with_capacity(MOST_ARRIVALS) }
    }
}

impl Arrivals {
    /// Takes in what has come to a socket, as far as there is room. told: what is known of a datagram, from the batch and its slot.
    pub(crate) fn receive(&mut self, socket: impl AsFd, told: impl Fn(&Batch, usize) -> Option<Taken>) {
        let first = self.taken.len();
        // An ICMP error of an earlier sending is reported once.
        let received = self.batch.receive(socket, first).unwrap_or(0);
        for slot in first..first + received {
            self.taken.push(told(&self.batch, slot));
            self.batch.release(slot);
        }
    }

    /// Adds a datagram, where there is room.
    pub(crate) fn push(&mut self, datagram: &Incoming) {
        let Incoming { rtcp, group, ecn, payload } = *datagram;
        let slot = self.taken.len();
        if slot < MOST_ARRIVALS && payload.len() <= MOST_BYTES {
            self.batch.slot_mut(slot)[..payload.len()].copy_from_slice(payload);
            self.taken.push(Some(Taken { bytes: payload.len(), rtcp, group, ecn }));
        }
    }

    fn get(&self, index: usize) -> Option<Incoming<'_>> {
        let Taken { bytes, rtcp, group, ecn } = (*self.taken.get(index)?)?;
        Some(Incoming { rtcp, group, ecn, payload: self.batch.slot(index).get(..bytes)? })
    }
}

/// How far an end has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    Running,
    /// Somebody interrupted the waiting.
    Interrupted,
    /// The end has nothing left to do.
    Over,
}

/// See the module.
pub struct Driver<W> {
    end: Box<dyn End>,
    wire: W,
    epoch: Nanos,
    next_sample: Nanos,
    /// By time.
    marks: VecDeque<Nanos>,
    arrivals: Arrivals,
    message: Vec<u8>,
}

impl<W: Wire> Driver<W> {
    /// `epoch`: Unix time of the clock's instant 0. `marks`: instants at which the end's sums are to be known exactly; see [`End::mark`].
    pub fn new(end: Box<dyn End>, wire: W, epoch: Nanos, mut marks: Vec<Nanos>) -> Driver<W> {
        let next_sample = after(wire.now(), epoch);
        marks.sort_unstable();
        Driver { end, wire, epoch, next_sample, marks: marks.into(), arrivals: Arrivals::default(), message: vec![0; MOST_BYTES] }
    }

    /// Runs up to an instant, an interruption, or the end's end.
    ///
    /// # Errors
    /// Those of the end.
    pub fn run_until(&mut self, until: Nanos) -> Result<Progress, Fault> {
        loop {
            let mut now = self.wire.now();
            if now >= self.next_sample {
                self.end.sample(now);
                self.next_sample = after(now, self.epoch);
            }
            if self.marks.front().is_some_and(|&mark| mark <= now) {
                self.marks.pop_front();
                self.end.mark(now);
            }
            for _ in 0..MOST_ACTS {
                if self.end.next().is_none_or(|at| at > now) {
                    break;
                }
                self.end.act(&mut Io { now, epoch: self.epoch, network: &mut self.wire })?;
                now = self.wire.now();
            }
            let Some(next) = self.end.next() else { return Ok(Progress::Over) };
            if now >= until {
                return Ok(Progress::Running);
            }
            self.arrivals.taken.clear();
            let mark = self.marks.front().copied().unwrap_or(Nanos::MAX);
            if !self.wire.wait(next.min(self.next_sample).min(mark).min(until), &mut self.arrivals) {
                return Ok(Progress::Interrupted);
            }
            for index in 0..self.arrivals.taken.len() {
                let Some(datagram) = self.arrivals.get(index) else { continue };
                let now = self.wire.now();
                self.end.receive(&datagram, &mut Io { now, epoch: self.epoch, network: &mut self.wire })?;
            }
            for _ in 0..MOST_ACTS {
                let Some(length) = self.wire.message(&mut self.message) else { break };
                let now = self.wire.now();
                self.end.produced(&self.message[..length], &mut Io { now, epoch: self.epoch, network: &mut self.wire })?;
            }
        }
    }

    /// Ends at once: see [`End::close`].
    pub fn close(&mut self) {
        let now = self.wire.now();
        self.end.close(&mut Io { now, epoch: self.epoch, network: &mut self.wire });
    }

    pub fn wire(&self) -> &W {
        &self.wire
    }

    pub fn take_log(&mut self) -> FlowLog {
        self.end.take_log()
    }
}

/// The next multiple of the interval in Unix time.
fn after(now: Nanos, epoch: Nanos) -> Nanos {
    let unix = now + epoch;
    (unix / SAMPLE_INTERVAL + 1) * SAMPLE_INTERVAL - epoch
}
