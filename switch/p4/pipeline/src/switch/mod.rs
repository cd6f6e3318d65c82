//! One switch: a program and its state.

mod externs;
mod flow;
mod profiles;
mod psa;
mod replication;
mod tables;

use std::sync::Arc;

use crate::config::{MachineCode, SwitchConfig};
use crate::control::Digest;
use crate::drop_cause::DropCause;
use crate::error::ControlError;
use crate::exec::packet::Packet;
use crate::exec::state::State;
use crate::exec::values::Values;
use crate::observe::{Detail, Names, Observing, PacketEvent, Step};
use crate::program::Program;
use crate::wording::Level;
use crate::{Nanos, PortId};

/// `standard_metadata.instance_type` as `simple_switch` numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum InstanceType {
    /// A packet from a port.
    Normal = 0,
    /// Cloned in ingress.
    IngressClone = 1,
    /// Cloned in egress.
    EgressClone = 2,
    /// Coalesced (unused by v1model).
    Coalesced = 3,
    /// Recirculated from egress.
    Recirculated = 4,
    /// A multicast copy.
    Replication = 5,
    /// Resubmitted from ingress.
    Resubmitted = 6,
}

/// Longest frame taken, bytes.
pub const MAX_FRAME: usize = 65535;

/// A packet between ingress and egress.
#[derive(Debug)]
pub struct Queued {
    pub(crate) egress_port: PortId,
    pub(crate) priority: u32,
    pub(crate) instance_type: InstanceType,
    epoch: u32,
    packet: Box<Packet>,
}

impl Queued {
    /// The port it goes to.
    pub fn egress_port(&self) -> PortId {
        self.egress_port
    }
    /// Queue within the port: larger is more urgent, 0 to `priorities - 1`.
    pub fn priority(&self) -> u32 {
        self.priority
    }
    /// Its length in bytes as BMv2 counts it here: the frame's at ingress, headers added and removed since counted.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u32 {
        self.packet.length
    }
    /// Where it comes from.
    pub fn instance_type(&self) -> InstanceType {
        self.instance_type
    }
}

/// What the traffic manager tells of a packet's wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueInfo {
    /// When it was enqueued.
    pub enq_timestamp: Nanos,
    /// Packets in the queue before it was enqueued.
    pub enq_qdepth: u32,
    /// How long it waited.
    pub deq_timedelta: Nanos,
    /// Packets left in the queue when it was dequeued.
    pub deq_qdepth: u32,
}

/// What ingress made of a frame. Cleared at each call; keep one and reuse it.
#[derive(Debug, Default)]
pub struct IngressOut {
    /// Packets for the traffic manager, in order.
    pub queued: Vec<Queued>,
    /// Why there is no packet that continues the frame itself (clones may be queued all the same).
    pub dropped: Option<DropCause>,
    /// The program dropped it at the end of ingress, and had found a wrong checksum (`verify_checksum` of v1model).
    pub wrong_checksum: bool,
}

/// A frame to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emitted {
    /// Port.
    pub port: PortId,
    /// The whole frame.
    pub bytes: Vec<u8>,
}

/// What egress made of a packet. Cleared at each call; keep one and reuse it.
#[derive(Debug, Default)]
pub struct EgressOut {
    /// The frame, unless dropped or recirculated.
    pub emitted: Option<Emitted>,
    /// Clones, and what ingress made of a recirculated packet.
    pub queued: Vec<Queued>,
    /// Why there is no frame.
    pub dropped: Option<DropCause>,
}

/// Counts of what went on in the pipeline itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SwitchStats {
    /// Frames given to [`Switch::ingress`].
    pub received: u64,
    /// Frames emitted by [`Switch::egress`].
    pub emitted: u64,
    /// Dropped at the end of ingress.
    pub dropped_ingress: u64,
    /// Of these, packets for which the program had found a wrong checksum.
    pub wrong_checksums: u64,
    /// Dropped at the end of egress.
    pub dropped_egress: u64,
    /// Dropped for any other cause.
    pub dropped_other: u64,
    /// Digests lost because the queue was full.
    pub digests_lost: u64,
}

/// One switch: a program, its tables and other state. See the crate's documentation.
#[derive(Debug)]
pub struct Switch {
    program: Arc<Program>,
    rt: Runtime,
}

/// A switch without its program.
#[derive(Debug)]
struct Runtime {
    config: SwitchConfig,
    state: State,
    stats: SwitchStats,
    /// Packets not in use; boxed, since they move into and out of [`Queued`].
    #[allow(clippy::vec_box)]
    pool: Vec<Box<Packet>>,
    /// Frame buffers not in use.
    frames: Vec<Vec<u8>>,
    /// Machine code is not used.
    interprets: bool,
    /// Packets until the program is translated; 0 when that has begun.
    cold: u32,
    /// Names packets where their steps are kept.
    names: Option<Box<Names>>,
    /// Counts the programs, so that packets of an old one are known.
    epoch: u32,
}

/// Result of the control interface.
pub type Control<T> = Result<T, ControlError>;

/// Packets before a program is translated: they take about as long as its translation.
const COLD: u32 = 10_000;

/// Packets and buffers kept for reuse.
const POOL: usize = 1024;

impl Switch {
    /// A switch in its initial state: const entries and default actions of the program, all else empty.
    ///
    /// # Errors
    /// [`ControlError::ResourceExhausted`] where there is not enough memory.
    pub fn new(program: Arc<Program>, config: SwitchConfig) -> Control<Switch> {
        let program = fitted(program, &config);
        let state = State::new(&program, &config)?;
        let names = (config.observe > Observing::Nothing).then(Box::default);
        let rt = Runtime {
            names,
            config,
            state,
            stats: SwitchStats::default(),
            pool: Vec::new(),
            frames: Vec::new(),
            interprets: false,
            cold: 0,
            epoch: 0,
        };
        let mut switch = Switch { program, rt };
        switch.prepare();
        Ok(switch)
    }

    /// The program it runs.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Its configuration.
    pub fn config(&self) -> &SwitchConfig {
        &self.rt.config
    }

    /// Counts since the start.
    pub fn stats(&self) -> SwitchStats {
        SwitchStats { digests_lost: self.rt.state.digests_lost, ..self.rt.stats }
    }

    /// Replaces the program; all state is new, as after `Switch::new`. `Queued` items of the old
    /// program are dropped by [`Switch::egress`], with [`DropCause::Swapped`].
    ///
    /// # Errors
    /// [`ControlError::ResourceExhausted`] where there is not enough memory; nothing has changed then.
    pub fn swap(&mut self, program: Arc<Program>) -> Control<()> {
        let program = fitted(program, &self.rt.config);
        let state = State::new(&program, &self.rt.config)?;
        self.program = program;
        self.rt.pool.clear();
        self.rt.epoch = self.rt.epoch.wrapping_add(1);
        self.prepare();
        let (observed, watched) = (self.rt.state.observed.take(), self.rt.state.watched.take());
        self.rt.state = State { watched, ..state };
        self.note_change(observed);
        Ok(())
    }

    /// Goes on with the steps kept so far, and notes that the program is another one.
    fn note_change(&mut self, observed: Option<Vec<PacketEvent>>) {
        self.rt.state.observed = observed;
        self.set_observing(self.rt.state.observed.is_some());
        if let Some(observed) = &mut self.rt.state.observed {
            observed.push(PacketEvent { signature: 0, packet: 0, copy: 0, step: Step::ConfigChange });
        }
    }

    /// [`Switch::swap`] to the program of a switch of the same configuration, with its state as it is; that one gets this one's.
    pub fn exchange(&mut self, other: &mut Switch) {
        let observed = self.rt.state.observed.take();
        std::mem::swap(&mut self.program, &mut other.program);
        std::mem::swap(&mut self.rt.state, &mut other.rt.state);
        std::mem::swap(&mut self.rt.state.watched, &mut other.rt.state.watched);
        std::mem::swap(&mut self.rt.pool, &mut other.rt.pool);
        for rt in [&mut self.rt, &mut other.rt] {
            rt.epoch = rt.epoch.wrapping_add(1);
        }
        self.prepare();
        other.prepare();
        self.note_change(observed);
    }

    /// Machine code for a program that has just been loaded: now or later.
    fn prepare(&mut self) {
        self.rt.cold = match self.rt.config.machine_code {
            MachineCode::Auto => COLD,
            MachineCode::Always => {
                // Where there is none, the interpreter runs.
                let _ = self.program.translate();
                0
            }
            MachineCode::Never => 0,
        };
        self.set_observing(self.rt.state.observed.is_some());
    }

    /// Back to the initial state of the same program, as BMv2's `reset_state`: clone sessions and the parameters of custom CRCs stay.
    ///
    /// # Errors
    /// [`ControlError::ResourceExhausted`] where there is not enough memory; nothing has changed then.
    pub fn reset(&mut self) -> Control<()> {
        let mut old = std::mem::replace(&mut self.rt.state, State::new(&self.program, &self.rt.config)?);
        self.rt.state.sessions = std::mem::take(&mut old.sessions);
        self.rt.state.custom_crcs = std::mem::take(&mut old.custom_crcs);
        self.rt.state.observed = old.observed;
        self.rt.state.detailed = old.detailed;
        self.rt.state.values = old.values;
        self.rt.state.watched = old.watched;
        Ok(())
    }

    /// Gives back an item that will not go through egress (queue full), so that its buffers are reused.
    pub fn discard(&mut self, item: Queued) {
        self.rt.discard(item);
    }

    /// Gives back a frame's buffer for reuse.
    pub fn recycle(&mut self, bytes: Vec<u8>) {
        self.rt.recycle(bytes);
    }

    /// There are digests to take.
    pub fn has_digests(&self) -> bool {
        !self.rt.state.digests.is_empty()
    }

    /// Gives an empty buffer for a frame, one used before where there is one.
    pub fn buffer(&mut self) -> Vec<u8> {
        let mut buffer = self.rt.frames.pop().unwrap_or_default();
        buffer.clear();
        buffer
    }

    /// Takes all digests queued.
    pub fn take_digests(&mut self) -> Vec<Digest> {
        self.rt.state.digests.drain(..).collect()
    }

    /// Keeps each packet's steps from now on, or no longer; whoever asks must take them. Programs are interpreted meanwhile. Without
    /// effect unless the switch is ready for that ([`SwitchConfig::observe`]).
    pub fn set_observing(&mut self, on: bool) {
        let on = on && self.rt.config.observe > Observing::Nothing;
        self.rt.state.detailed = on && self.rt.config.observe >= Observing::Everything;
        let values = on && self.rt.config.observe == Observing::Values;
        self.rt.state.values = values.then(|| Box::new(Values::new(&self.program.ir.layout)));
        if on != self.rt.state.observed.is_some() {
            self.rt.state.observed = on.then(Vec::new);
        }
        self.rt.interprets = on || self.rt.config.machine_code == MachineCode::Never;
    }

    /// Keeps from now on the steps of some packets alone ([`Switch::set_observing`]): of the next one that comes in, with its copies, and of
    /// those for which this was called before.
    /// The number of that packet; none where the switch is not ready for that.
    pub fn watch_next(&mut self) -> Option<u64> {
        if self.rt.state.observed.is_none() {
            self.set_observing(true);
        }
        let packet = self.rt.names.as_ref()?.next();
        self.rt.state.watched.get_or_insert_default().insert(packet);
        Some(packet)
    }

    /// Takes each packet's steps since the last call, in order.
    pub fn take_observed(&mut self) -> Vec<PacketEvent> {
        self.rt.state.observed.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Keeps what the packet log says of a packet that waits, if that is kept.
    pub fn tell(&mut self, item: &Queued, detail: impl FnOnce() -> Detail) {
        self.rt.state.tell(&item.packet, detail);
    }

    /// What BMv2's packet log says of a step ([`Switch::take_observed`]), and how urgently; nothing of a step that only the event log
    /// has. An entry of a table is several lines.
    pub fn worded(&self, event: &PacketEvent) -> Option<(Level, String)> {
        self.program.worded(event)
    }

    /// Takes the lines of `log_msg`, and of failed `assert`s (empty unless `config.log`).
    pub fn take_log(&mut self) -> Vec<String> {
        self.rt.state.log.as_mut().map(std::mem::take).unwrap_or_default()
    }
}

/// The program as a switch of this configuration runs it.
fn fitted(program: Arc<Program>, config: &SwitchConfig) -> Arc<Program> {
    match config.observe > program.observed {
        true => program.observed(config.observe).map_or(program, Arc::new),
        false => program,
    }
}

impl Runtime {
    /// Names a copy of a packet, which was made of the packet's bytes from `from` on.
    fn name_copy(&mut self, copy: &mut Packet, from: usize) {
        if let Some(names) = &mut self.names {
            copy.name = names.copy(copy.name, copy.buf.get(from..copy.len).unwrap_or(&[]));
        }
    }

    fn discard(&mut self, item: Queued) {
        if item.epoch == self.epoch {
            self.give(item.packet);
        }
    }

    fn recycle(&mut self, bytes: Vec<u8>) {
        if self.frames.len() < POOL {
            self.frames.push(bytes);
        }
    }

    fn take(&mut self, program: &Program) -> Box<Packet> {
        self.pool.pop().unwrap_or_else(|| Box::new(Packet::new(&program.ir.layout)))
    }

    fn give(&mut self, packet: Box<Packet>) {
        if self.pool.len() < POOL {
            self.pool.push(packet);
        }
    }
}
