//! What a program shows to the control plane, as plain data.
//!
//! The compiler fills a [`ControlPlane`] once a program has been checked and its controls
//! specialised; the P4Info back end walks it. Names are control-plane names (`MyIngress.ipv4_lpm`), as
//! they stand in the BMv2 JSON, `@name` annotations applied (spec 18.3, P4Runtime 6.1); a leading dot of an
//! absolute `@name` is left out. All lists are in the order of declaration within the specialised program:
//! parser, verify, ingress, egress, compute, deparser; with PSA that of its six blocks.

use fairlane_syntax::ast::Annotation;
use num_bigint::BigInt;

/// Everything the control plane can see of one program.
#[derive(Debug, Clone, Default)]
pub struct ControlPlane {
    /// The architecture, `v1model` or `psa`.
    pub arch: String,
    /// Annotations of the main package's instantiation (`@pkginfo`, ...).
    pub package_annotations: Vec<Annotation>,
    /// Tables that a control plane can fill; those synthesised by the compiler, `@hidden` ones and those applied nowhere are left out.
    pub tables: Vec<Table>,
    /// Actions that appear in some table of [`Self::tables`], or that an `apply` block calls; the latter have no parameters left.
    pub actions: Vec<Action>,
    /// Action profiles and selectors, once each however many tables share them.
    pub action_profiles: Vec<ActionProfile>,
    /// Indexed and direct counters.
    pub counters: Vec<Counter>,
    /// Indexed and direct meters.
    pub meters: Vec<Meter>,
    /// Register arrays.
    pub registers: Vec<Register>,
    /// Value sets of the parser.
    pub value_sets: Vec<ValueSet>,
    /// Digests sent by the program, by the name of the type of their data; with PSA by their own.
    pub digests: Vec<Digest>,
    /// Whether a control or an action calls a function of the architecture (`mark_to_drop`, `hash`, ...), or there are objects that
    /// the control plane cannot reach (`Hash`, ...): p4c's P4Info shows it.
    pub calls_extern_functions: bool,
    /// Headers annotated `@controller_header("packet_in")`, `("packet_out")`.
    pub controller_headers: Vec<ControllerHeader>,
    /// Every named type of the program, in source order, those of the include files too.
    pub types: Vec<TypeDefinition>,
}

/// A table.
#[derive(Debug, Clone)]
pub struct Table {
    /// Fully qualified name.
    pub name: String,
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// Its key, in order. Those of kind `selector` count when ids are given, but are not shown (see [`ActionProfile::selector`]).
    pub keys: Vec<KeyField>,
    /// The actions it can run, in order.
    pub actions: Vec<TableAction>,
    /// Its default action, `NoAction` when the source gives none.
    pub default_action: Option<DefaultAction>,
    /// `size` of the source, where given.
    pub size: Option<u64>,
    /// Name of its action profile or selector.
    pub implementation: Option<String>,
    /// Name of its direct counter.
    pub direct_counter: Option<String>,
    /// Name of its direct meter.
    pub direct_meter: Option<String>,
    /// Whether entries may age (`support_timeout = true`).
    pub support_timeout: bool,
    /// The entries of the source.
    pub entries: Vec<Entry>,
    /// Whether all entries are fixed: `const entries`.
    pub const_entries: bool,
}

/// A field of a table's key.
#[derive(Debug, Clone)]
pub struct KeyField {
    /// `@name` of the field, or the source text of its expression (`hdr.ipv4.dstAddr`).
    pub name: String,
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// `exact`, `lpm`, `ternary`, `range`, `optional`, `selector`.
    pub match_kind: String,
    /// Width in bits; 1 for `bool`, 32 for `error`.
    pub bits: u32,
    /// Its type as declared: tells new types and serializable enums apart from bit strings.
    pub ty: DataType,
}

/// An action as listed by a table.
#[derive(Debug, Clone)]
pub struct TableAction {
    /// Fully qualified name of the action.
    pub action: String,
    /// The annotations in the list.
    pub annotations: Vec<Annotation>,
    /// `@tableonly`: never a default action.
    pub table_only: bool,
    /// `@defaultonly`: never an entry's action.
    pub default_only: bool,
}

/// A table's default action.
#[derive(Debug, Clone)]
pub struct DefaultAction {
    /// Fully qualified name.
    pub action: String,
    /// The arguments for its control-plane parameters.
    pub arguments: Vec<BigInt>,
    /// Whether the control plane must leave it alone.
    pub is_const: bool,
}

/// An entry given in the source.
#[derive(Debug, Clone)]
pub struct Entry {
    /// One match for each key of the table.
    pub matches: Vec<EntryMatch>,
    /// Fully qualified name of its action.
    pub action: String,
    /// The arguments for its control-plane parameters.
    pub arguments: Vec<BigInt>,
    /// As P4Runtime counts: larger wins. 0 where the table has no ternary, range or optional key.
    pub priority: u32,
    /// Whether the entry alone is `const`.
    pub is_const: bool,
}

/// What an entry matches in one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryMatch {
    /// One value (`exact`, and an `optional` that is given).
    Exact(BigInt),
    /// Value and prefix length in bits.
    Lpm(BigInt, u32),
    /// Value and mask.
    Ternary(BigInt, BigInt),
    /// Lowest and highest value.
    Range(BigInt, BigInt),
    /// Anything.
    DontCare,
}

/// An action.
#[derive(Debug, Clone)]
pub struct Action {
    /// Fully qualified name.
    pub name: String,
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// The parameters that the control plane binds, in order.
    pub params: Vec<Param>,
}

/// A parameter of an action.
#[derive(Debug, Clone)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// Width in bits.
    pub bits: u32,
    /// Its type as declared.
    pub ty: DataType,
}

/// An action profile or selector.
#[derive(Debug, Clone)]
pub struct ActionProfile {
    /// Fully qualified name.
    pub name: String,
    /// Its annotations (`@max_group_size`).
    pub annotations: Vec<Annotation>,
    /// The tables that it serves.
    pub tables: Vec<String>,
    /// Largest number of members.
    pub size: u64,
    /// Whether it selects members of groups by a hash.
    pub selector: bool,
}

/// What a counter counts or a meter meters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Packets.
    Packets,
    /// Bytes.
    Bytes,
    /// Both (counters only).
    PacketsAndBytes,
}

/// A counter, indexed or direct.
#[derive(Debug, Clone)]
pub struct Counter {
    /// Fully qualified name.
    pub name: String,
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// What it counts.
    pub unit: Unit,
    /// Number of cells; `None` for a direct one.
    pub size: Option<u64>,
    /// The table of a direct one.
    pub table: Option<String>,
    /// Type of the index, where it is a new type.
    pub index: Option<DataType>,
}

/// A meter, indexed or direct.
#[derive(Debug, Clone)]
pub struct Meter {
    /// Fully qualified name.
    pub name: String,
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// What it meters: packets or bytes.
    pub unit: Unit,
    /// Number of cells; `None` for a direct one.
    pub size: Option<u64>,
    /// The table of a direct one.
    pub table: Option<String>,
    /// Type of the index, where it is a new type.
    pub index: Option<DataType>,
}

/// A register array.
#[derive(Debug, Clone)]
pub struct Register {
    /// Fully qualified name.
    pub name: String,
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// The type of a cell.
    pub ty: DataType,
    /// Number of cells.
    pub size: u64,
    /// Type of the index, where it is a new type.
    pub index: Option<DataType>,
}

/// A value set of a parser.
#[derive(Debug, Clone)]
pub struct ValueSet {
    /// Fully qualified name.
    pub name: String,
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// The fields of a value, in order: one, nameless, for a plain `bit<n>`. All match exactly unless `@match` says otherwise.
    pub fields: Vec<KeyField>,
    /// Largest number of values.
    pub size: u64,
}

/// A digest.
#[derive(Debug, Clone)]
pub struct Digest {
    /// The name of its struct, or `digest_0` and so on for tuples.
    pub name: String,
    /// The annotations of that struct.
    pub annotations: Vec<Annotation>,
    /// The type of one message.
    pub ty: DataType,
}

/// A header of packets from and to the controller.
#[derive(Debug, Clone)]
pub struct ControllerHeader {
    /// `packet_in`, `packet_out`.
    pub name: String,
    /// Annotations of the header, `@controller_header` left out.
    pub annotations: Vec<Annotation>,
    /// Its fields, in order.
    pub fields: Vec<Param>,
}

/// A type as the control plane sees it. Typedefs are seen through, new types are not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataType {
    /// `bit<n>`
    Bits(u32),
    /// `int<n>`
    SignedBits(u32),
    /// `varbit<n>`
    Varbit(u32),
    /// `bool`
    Bool,
    /// `error`
    Error,
    /// `string`
    String,
    /// A tuple or list.
    Tuple(Vec<DataType>),
    /// A struct, by name.
    Struct(String),
    /// A header, by name.
    Header(String),
    /// A header union, by name.
    HeaderUnion(String),
    /// A stack: element type and size.
    Stack(Box<DataType>, u32),
    /// An enum without given values, by name.
    Enum(String),
    /// A serializable enum, by name.
    SerializableEnum(String),
    /// A new type (`type T X`), by name.
    Newtype(String),
}

/// A named type.
#[derive(Debug, Clone)]
pub struct TypeDefinition {
    /// Its name.
    pub name: String,
    /// Its annotations (`@p4runtime_translation`, ...).
    pub annotations: Vec<Annotation>,
    /// What it is.
    pub kind: TypeDefinitionKind,
}

/// What a named type is.
#[derive(Debug, Clone)]
pub enum TypeDefinitionKind {
    /// A struct: names and types of its fields with their annotations.
    Struct(Vec<(String, DataType, Vec<Annotation>)>),
    /// A header.
    Header(Vec<(String, DataType, Vec<Annotation>)>),
    /// A header union.
    HeaderUnion(Vec<(String, DataType, Vec<Annotation>)>),
    /// An enum: its members.
    Enum(Vec<String>),
    /// A serializable enum: width in bits, members and values.
    SerializableEnum(u32, Vec<(String, BigInt)>),
    /// The error type: all members of the program, in order.
    Error(Vec<String>),
    /// `type T X`: the type `T`.
    Newtype(DataType),
}
