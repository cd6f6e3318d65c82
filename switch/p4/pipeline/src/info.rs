//! What a program declares, for control planes: tables, actions, counters and so on, with widths.

/// How a key field is matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchKind {
    /// Equal.
    Exact,
    /// Longest prefix.
    Lpm,
    /// Value and mask.
    Ternary,
    /// Low and high bound, both inclusive.
    Range,
    /// Equal, or not looked at.
    Optional,
    /// Validity of a header (P4_14).
    Valid,
}

macro_rules! index {
    ($(#[$doc:meta] $name:ident)*) => {$(
        #[$doc]
        /// An index into the list of the same kind in [`crate::Program`]; not the id in the JSON.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);
        impl $name {
            /// The index as `usize`.
            pub fn index(self) -> usize { self.0 as usize }
        }
    )*};
}

index! {
    /// A table.
    TableId
    /// An action.
    ActionId
    /// An action profile, with or without selector.
    ProfileId
    /// A counter array, indirect or direct.
    CounterId
    /// A meter array, indirect or direct.
    MeterId
    /// A register array.
    RegisterId
    /// A parser value set.
    ValueSetId
    /// A learn list (digest).
    DigestId
}

/// One field of a table's key.
#[derive(Debug, Clone)]
pub struct KeyInfo {
    /// Name as in the JSON (`name` of the key, otherwise `header.field`).
    pub name: String,
    /// How it is matched.
    pub kind: MatchKind,
    /// Width in bits (1 for `valid`).
    pub width: u32,
}

/// One parameter of an action.
#[derive(Debug, Clone)]
pub struct ParamInfo {
    /// Name in the P4 source.
    pub name: String,
    /// Width in bits.
    pub width: u32,
}

/// An action.
#[derive(Debug, Clone)]
pub struct ActionInfo {
    /// Fully qualified name.
    pub name: String,
    /// `id` in the JSON.
    pub json_id: i64,
    /// Parameters in order.
    pub params: Vec<ParamInfo>,
}

/// Which control block a table is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gress {
    /// The pipeline named `ingress`.
    Ingress,
    /// The pipeline named `egress`.
    Egress,
}

/// A table.
#[derive(Debug, Clone)]
pub struct TableInfo {
    /// Fully qualified name.
    pub name: String,
    /// `id` in the JSON.
    pub json_id: i64,
    /// Control block.
    pub gress: Gress,
    /// Key fields in order; empty for a table that always runs its default action.
    pub key: Vec<KeyInfo>,
    /// The actions an entry may have.
    pub actions: Vec<ActionId>,
    /// Largest number of entries.
    pub max_size: usize,
    /// Entries need a priority (some field is ternary, range or optional).
    pub needs_priority: bool,
    /// Entries come from the program and cannot be changed.
    pub const_entries: bool,
    /// The default action cannot be changed.
    pub const_default: bool,
    /// Entries may have an idle timeout.
    pub support_timeout: bool,
    /// Counter array bound to the table.
    pub direct_counter: Option<CounterId>,
    /// Meter array bound to the table.
    pub direct_meter: Option<MeterId>,
    /// Action profile the entries point into.
    pub profile: Option<ProfileId>,
}

impl TableInfo {
    /// The compiler has made it of statements: nobody can choose among its actions.
    pub fn is_made(&self) -> bool {
        self.key.is_empty() && self.const_default
    }
}

/// An action profile.
#[derive(Debug, Clone)]
pub struct ProfileInfo {
    /// Fully qualified name.
    pub name: String,
    /// `id` in the JSON.
    pub json_id: i64,
    /// Largest number of members (groups' weights included).
    pub max_size: usize,
    /// Has a selector, so that entries may point at groups.
    pub with_selector: bool,
    /// Tables that use it.
    pub tables: Vec<TableId>,
}

/// A counter array. BMv2 counters count packets and bytes, always both.
#[derive(Debug, Clone)]
pub struct CounterInfo {
    /// Fully qualified name.
    pub name: String,
    /// `id` in the JSON.
    pub json_id: i64,
    /// Number of cells (of an indirect one).
    pub size: usize,
    /// The table of a direct counter.
    pub table: Option<TableId>,
}

/// What a meter meters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeterUnit {
    /// Packets per second, bursts in packets.
    Packets,
    /// Bytes per second, bursts in bytes.
    Bytes,
}

/// A meter array.
#[derive(Debug, Clone)]
pub struct MeterInfo {
    /// Fully qualified name.
    pub name: String,
    /// `id` in the JSON.
    pub json_id: i64,
    /// Number of cells (of an indirect one).
    pub size: usize,
    /// Packets or bytes.
    pub unit: MeterUnit,
    /// The table of a direct meter.
    pub table: Option<TableId>,
}

/// A register array.
#[derive(Debug, Clone)]
pub struct RegisterInfo {
    /// Fully qualified name.
    pub name: String,
    /// `id` in the JSON.
    pub json_id: i64,
    /// Number of cells.
    pub size: usize,
    /// Width of a cell in bits.
    pub width: u32,
}

/// A parser value set.
#[derive(Debug, Clone)]
pub struct ValueSetInfo {
    /// Fully qualified name.
    pub name: String,
    /// `id` in the JSON.
    pub json_id: i64,
    /// Width of a value in bits, without padding.
    pub width: u32,
    /// Largest number of values (`max_size` in the JSON; unbounded when absent).
    pub max_size: Option<usize>,
}

/// A learn list, the JSON's form of a digest.
#[derive(Debug, Clone)]
pub struct DigestInfo {
    /// Name in the JSON.
    pub name: String,
    /// `id` in the JSON.
    pub json_id: i64,
    /// Widths of the members in bits, in order.
    pub widths: Vec<u32>,
}
