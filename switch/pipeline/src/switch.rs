//! One switch: a program and its state.

use std::sync::Arc;

use crate::control::*;
use crate::error::ControlError;
use crate::info::*;
use crate::program::Program;
use crate::value::Value;
use crate::{Nanos, Port};

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

/// How a switch is set up.
#[derive(Debug, Clone)]
pub struct SwitchConfig {
    /// `egress_spec` that means drop; 511 in v1model.
    pub drop_port: Port,
    /// The port of packet-in and packet-out, when there is one. Frames for it are emitted like for any port.
    pub cpu_port: Option<Port>,
    /// Seed of `random()`.
    pub seed: u64,
    /// Priority queues per port; a packet whose priority is not below this is dropped, as in BMv2.
    pub priorities: u32,
    /// How often one packet may be resubmitted or recirculated before it is dropped.
    pub max_passes: u32,
    /// Most parser states one packet may go through.
    pub max_parser_states: u32,
    /// Digests kept until taken; more are lost and counted.
    pub max_digests: usize,
    /// Keep `log_msg` lines for [`Switch::take_log`].
    pub log: bool,
}

impl Default for SwitchConfig {
    fn default() -> Self {
        SwitchConfig {
            drop_port: 511,
            cpu_port: None,
            seed: 0,
            priorities: 8,
            max_passes: 64,
            max_parser_states: 4096,
            max_digests: 65536,
            log: false,
        }
    }
}

/// Why a packet left the pipeline without being queued or emitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DropCause {
    /// `egress_spec` was the drop port at the end of ingress.
    Ingress,
    /// `egress_spec` was the drop port at the end of egress.
    Egress,
    /// The multicast group is unknown or empty.
    MulticastEmpty,
    /// The packet's priority is not below [`SwitchConfig::priorities`].
    Priority,
    /// Resubmitted or recirculated too often.
    Loop,
    /// An `assert` or `assume` failed.
    Assert,
    /// Longer than 65535 bytes, or the program ran without end.
    Limit,
}

/// A packet between ingress and egress.
#[derive(Debug)]
pub struct Queued {
    pub(crate) egress_port: Port,
    pub(crate) priority: u32,
    pub(crate) length: u32,
    pub(crate) instance_type: InstanceType,
}

impl Queued {
    /// The port it goes to.
    pub fn egress_port(&self) -> Port {
        self.egress_port
    }
    /// Queue within the port: larger is more urgent, 0 to `priorities - 1`.
    pub fn priority(&self) -> u32 {
        self.priority
    }
    /// Its length in bytes as BMv2 counts it here: the frame's at ingress, headers added and removed since counted.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u32 {
        self.length
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
}

/// A frame to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emitted {
    /// Port.
    pub port: Port,
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
    config: SwitchConfig,
    stats: SwitchStats,
}

/// Result of the control interface.
pub type Control<T> = Result<T, ControlError>;

#[allow(unused_variables)]
impl Switch {
    /// A switch in its initial state: const entries and default actions of the program, all else empty.
    pub fn new(program: Arc<Program>, config: SwitchConfig) -> Switch {
        Switch {
            program,
            config,
            stats: SwitchStats::default(),
        }
    }

    /// The program it runs.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Its configuration.
    pub fn config(&self) -> &SwitchConfig {
        &self.config
    }

    /// Counts since the start.
    pub fn stats(&self) -> SwitchStats {
        self.stats
    }

    /// Replaces the program; all state is new, as after `Switch::new`. `Queued` items of the old
    /// program are refused by [`Switch::egress`] (dropped).
    pub fn swap(&mut self, program: Arc<Program>) {
        self.program = program;
    }

    /// Back to the initial state of the same program (`reset_state` of BMv2).
    pub fn reset(&mut self) {}

    /// Parser, checksum verification, ingress, then clone, digest, resubmit, multicast, drop or
    /// unicast. A frame from `config.cpu_port` is a packet-out like any other frame.
    pub fn ingress(&mut self, now: Nanos, port: Port, frame: &[u8], out: &mut IngressOut) {}

    /// Egress, egress clone, checksum update, deparser. A recirculated packet goes through ingress
    /// at once and shows up in `out.queued`.
    pub fn egress(&mut self, now: Nanos, item: Queued, info: QueueInfo, out: &mut EgressOut) {}

    /// Gives back an item that will not go through egress (queue full), so that its buffers are reused.
    pub fn discard(&mut self, item: Queued) {}

    /// Gives back a frame's buffer for reuse.
    pub fn recycle(&mut self, bytes: Vec<u8>) {}

    /// Takes all digests queued.
    pub fn take_digests(&mut self) -> Vec<Digest> {
        Vec::new()
    }

    /// Takes the lines of `log_msg` (empty unless `config.log`).
    pub fn take_log(&mut self) -> Vec<String> {
        Vec::new()
    }

    // Tables

    /// Adds an entry; `now` starts its idle time.
    pub fn table_insert(&mut self, now: Nanos, table: TableId, entry: TableEntry) -> Control<()> {
        Ok(())
    }

    /// Replaces action and idle timeout of the entry with this key and priority; counters are kept.
    pub fn table_modify(&mut self, now: Nanos, table: TableId, entry: TableEntry) -> Control<()> {
        Ok(())
    }

    /// Removes the entry with this key and priority.
    pub fn table_delete(&mut self, table: TableId, key: &[KeyMatch], priority: i32) -> Control<()> {
        Ok(())
    }

    /// Reads the entry with this key and priority.
    pub fn table_get(
        &self,
        table: TableId,
        key: &[KeyMatch],
        priority: i32,
    ) -> Control<EntryState> {
        Err(ControlError::NotFound(String::new()))
    }

    /// All entries, in the order of insertion.
    pub fn table_entries(&self, table: TableId) -> Control<Vec<EntryState>> {
        Ok(Vec::new())
    }

    /// Number of entries.
    pub fn table_len(&self, table: TableId) -> Control<usize> {
        Ok(0)
    }

    /// Sets what a packet without entry runs; `None` puts the program's default back.
    pub fn table_set_default(
        &mut self,
        table: TableId,
        action: Option<TableAction>,
    ) -> Control<()> {
        Ok(())
    }

    /// The default action in force, `None` when there is none.
    pub fn table_default(&self, table: TableId) -> Control<Option<TableAction>> {
        Ok(None)
    }

    /// Removes all entries (not const ones) and restores the default action.
    pub fn table_clear(&mut self, table: TableId) -> Control<()> {
        Ok(())
    }

    /// Entries whose idle timeout has run out at `now`. Each is reported once, and again after
    /// another timeout without hit.
    pub fn expired(&mut self, now: Nanos) -> Vec<(TableId, TableEntry)> {
        Vec::new()
    }

    // Action profiles

    /// Adds a member.
    pub fn member_insert(
        &mut self,
        profile: ProfileId,
        member: u32,
        action: ActionCall,
    ) -> Control<()> {
        Ok(())
    }
    /// Replaces a member's action.
    pub fn member_modify(
        &mut self,
        profile: ProfileId,
        member: u32,
        action: ActionCall,
    ) -> Control<()> {
        Ok(())
    }
    /// Removes a member; refused while an entry or a group uses it.
    pub fn member_delete(&mut self, profile: ProfileId, member: u32) -> Control<()> {
        Ok(())
    }
    /// All members, by id.
    pub fn members(&self, profile: ProfileId) -> Control<Vec<(u32, ActionCall)>> {
        Ok(Vec::new())
    }
    /// Adds a group of (member, weight); weights are at least 1. `max_size` 0 is the profile's limit.
    pub fn group_insert(
        &mut self,
        profile: ProfileId,
        group: u32,
        members: &[(u32, u32)],
        max_size: u32,
    ) -> Control<()> {
        Ok(())
    }
    /// Replaces a group's members.
    pub fn group_modify(
        &mut self,
        profile: ProfileId,
        group: u32,
        members: &[(u32, u32)],
    ) -> Control<()> {
        Ok(())
    }
    /// Removes a group; refused while an entry uses it.
    pub fn group_delete(&mut self, profile: ProfileId, group: u32) -> Control<()> {
        Ok(())
    }
    /// All groups, by id, with (member, weight) and maximum size.
    pub fn groups(&self, profile: ProfileId) -> Control<Vec<(u32, Vec<(u32, u32)>, u32)>> {
        Ok(Vec::new())
    }

    // Counters, meters, registers

    /// One cell of an indirect counter.
    pub fn counter_read(&self, counter: CounterId, index: usize) -> Control<CounterData> {
        Ok(CounterData::default())
    }
    /// Sets one cell of an indirect counter.
    pub fn counter_write(
        &mut self,
        counter: CounterId,
        index: usize,
        data: CounterData,
    ) -> Control<()> {
        Ok(())
    }
    /// Sets the direct counter of an entry.
    pub fn direct_counter_write(
        &mut self,
        table: TableId,
        key: &[KeyMatch],
        priority: i32,
        data: CounterData,
    ) -> Control<()> {
        Ok(())
    }
    /// One cell's rates; `None` when not configured (all packets are green).
    pub fn meter_read(&self, meter: MeterId, index: usize) -> Control<Option<MeterConfig>> {
        Ok(None)
    }
    /// Sets one cell's rates, with full buckets; `None` puts back the unconfigured state.
    pub fn meter_write(
        &mut self,
        now: Nanos,
        meter: MeterId,
        index: usize,
        config: Option<MeterConfig>,
    ) -> Control<()> {
        Ok(())
    }
    /// Sets the direct meter of an entry.
    pub fn direct_meter_write(
        &mut self,
        now: Nanos,
        table: TableId,
        key: &[KeyMatch],
        priority: i32,
        config: Option<MeterConfig>,
    ) -> Control<()> {
        Ok(())
    }
    /// One cell of a register.
    pub fn register_read(&self, register: RegisterId, index: usize) -> Control<Value> {
        Ok(Value::from(0u64))
    }
    /// `count` cells from `first` on.
    pub fn register_read_range(
        &self,
        register: RegisterId,
        first: usize,
        count: usize,
    ) -> Control<Vec<Value>> {
        Ok(Vec::new())
    }
    /// Sets one cell; the value must fit the register's width.
    pub fn register_write(
        &mut self,
        register: RegisterId,
        index: usize,
        value: &Value,
    ) -> Control<()> {
        Ok(())
    }
    /// Sets `count` cells from `first` on to one value.
    pub fn register_write_range(
        &mut self,
        register: RegisterId,
        first: usize,
        count: usize,
        value: &Value,
    ) -> Control<()> {
        Ok(())
    }

    // Value sets, multicast, clone sessions

    /// The members of a parser value set.
    pub fn value_set(&self, set: ValueSetId) -> Control<Vec<ValueSetMember>> {
        Ok(Vec::new())
    }
    /// Replaces the members of a parser value set.
    pub fn set_value_set(&mut self, set: ValueSetId, members: Vec<ValueSetMember>) -> Control<()> {
        Ok(())
    }
    /// Adds a multicast group (1 to 65535) with all its copies.
    pub fn multicast_insert(&mut self, group: u16, replicas: Vec<Replica>) -> Control<()> {
        Ok(())
    }
    /// Replaces the copies of a multicast group at once.
    pub fn multicast_modify(&mut self, group: u16, replicas: Vec<Replica>) -> Control<()> {
        Ok(())
    }
    /// Removes a multicast group.
    pub fn multicast_delete(&mut self, group: u16) -> Control<()> {
        Ok(())
    }
    /// All multicast groups, by id.
    pub fn multicast_groups(&self) -> Vec<(u16, Vec<Replica>)> {
        Vec::new()
    }
    /// Adds a clone session (0 to 32767).
    pub fn clone_insert(&mut self, session: u32, config: CloneSession) -> Control<()> {
        Ok(())
    }
    /// Replaces a clone session.
    pub fn clone_modify(&mut self, session: u32, config: CloneSession) -> Control<()> {
        Ok(())
    }
    /// Removes a clone session.
    pub fn clone_delete(&mut self, session: u32) -> Control<()> {
        Ok(())
    }
    /// All clone sessions, by id.
    pub fn clone_sessions(&self) -> Vec<(u32, CloneSession)> {
        Vec::new()
    }
}
