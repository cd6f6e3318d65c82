//! The control interface's vocabulary: entries, meters' rates, groups, sessions.

use crate::info::{ActionId, DigestId};
use crate::value::Value;
use crate::{Nanos, PortId};

/// What one key field of an entry matches.
///
/// `Exact` is accepted wherever it has a meaning (a full mask, a full-length prefix, a range of
/// one value), `Any` for every kind but exact and valid.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum KeyMatch {
    /// Equal to the value.
    Exact(Value),
    /// The first `prefix_len` bits are equal. Bits beyond the prefix must be zero.
    Lpm {
        /// Value, as wide as the field.
        value: Value,
        /// 0 to the field's width.
        prefix_len: u32,
    },
    /// Equal under the mask. Bits outside the mask must be zero.
    Ternary {
        /// Value, as wide as the field.
        value: Value,
        /// Mask, as wide as the field.
        mask: Value,
    },
    /// `low <= field <= high`.
    Range {
        /// Smallest value that matches.
        low: Value,
        /// Largest value that matches.
        high: Value,
    },
    /// The header's validity.
    Valid(bool),
    /// Matches everything (an omitted field).
    Any,
}

/// An action with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionCall {
    /// The action.
    pub action: ActionId,
    /// Arguments, in order of the parameters.
    pub args: Vec<Value>,
}

/// What an entry does: an action, or for tables with an action profile, a member or a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableAction {
    /// An action (tables without profile).
    Call(ActionCall),
    /// A member of the table's profile.
    Member(u32),
    /// A group of the table's profile (needs a selector).
    Group(u32),
    /// Weighted actions that belong to this entry alone (P4Runtime's one-shot; needs a selector).
    OneShot(Vec<(ActionCall, u32)>),
}

/// A table entry as written and read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableEntry {
    /// One item per key field.
    pub key: Vec<KeyMatch>,
    /// Larger wins, as in P4Runtime. Must be 0 for tables without priorities, positive otherwise.
    pub priority: i32,
    /// What to do.
    pub action: TableAction,
    /// Report the entry once it was not hit for this long; 0 is never. Needs `support_timeout`.
    pub idle_timeout: Nanos,
}

/// Names an entry as BMv2's handles do: where it is, and how many were there before it. The lowest free place is taken first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EntryHandle {
    /// Its place in the table.
    pub place: u32,
    /// Entries removed from that place before, modulo 256.
    pub removals: u8,
}

/// Packets and bytes counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CounterData {
    /// Packets.
    pub packets: u64,
    /// Bytes, by the packet's length at ingress plus headers added.
    pub bytes: u64,
}

/// Rates and bursts of a two-rate three-colour meter (RFC 2698), in the meter's unit
/// (packets or bytes), rates per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MeterConfig {
    /// Committed rate: above it packets are yellow.
    pub cir: u64,
    /// Millionths that the committed rate has beyond `cir`; below 1,000,000. P4Runtime has none, BMv2's Thrift port has.
    pub cir_micro: u32,
    /// Committed burst.
    pub cburst: u64,
    /// Peak rate, at least the committed one: above it packets are red.
    pub pir: u64,
    /// As `cir_micro`.
    pub pir_micro: u32,
    /// Peak burst.
    pub pburst: u64,
}

impl MeterConfig {
    /// Whether the committed rate is above the peak rate, which no meter may have.
    pub fn is_inverted(&self) -> bool {
        (self.cir, self.cir_micro) > (self.pir, self.pir_micro)
    }
}

/// A table entry with what the switch measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryState {
    /// The entry as written.
    pub entry: TableEntry,
    /// True for entries of the program itself.
    pub is_const: bool,
    /// When the entry was last hit, or inserted.
    pub last_hit: Nanos,
    /// The direct counter, when the table has one.
    pub counter: Option<CounterData>,
    /// The direct meter's configuration, when the table has one and it was configured.
    pub meter: Option<MeterConfig>,
}

/// One copy of a multicast group or clone session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Replica {
    /// Egress port.
    pub port: PortId,
    /// `egress_rid` of the copy.
    pub rid: u16,
}

/// A clone (mirror) session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CloneSession {
    /// Copies made, in order.
    pub replicas: Vec<Replica>,
    /// Also the copies of this multicast group.
    pub multicast_group: Option<u16>,
    /// Longest copy in bytes; 0 is unlimited.
    pub packet_length: u32,
}

/// Parameters of a CRC, for calculations of the kind `crc16_custom` and `crc32_custom`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrcConfig {
    /// 16 or 32 bits.
    pub width: u32,
    /// Without its highest bit.
    pub polynomial: u32,
    /// What the register starts with.
    pub initial_remainder: u32,
    /// What the result is combined with.
    pub final_xor_value: u32,
    /// Each byte is taken lowest bit first.
    pub data_reflected: bool,
    /// The result has its lowest bit first.
    pub remainder_reflected: bool,
}

/// One digest sent by the data plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    /// Which learn list.
    pub list: DigestId,
    /// When.
    pub timestamp: Nanos,
    /// Values in the order of [`crate::info::DigestInfo::widths`].
    pub members: Vec<Value>,
}

/// A member of a parser value set: value and mask, both of the set's width.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueSetMember {
    /// Value.
    pub value: Value,
    /// Mask; all ones for an exact value.
    pub mask: Value,
}
