//! Where a packet's fields are, and expressions over them.

use num_bigint::BigInt;

use crate::words::Words;

/// Index of a slot.
pub type Slot = u32;

#[derive(Debug, Clone)]
pub struct FieldDef {
    pub name: String,
    /// Bits; 0 for a variable-length field.
    pub width: u32,
    pub signed: bool,
    pub saturating: bool,
    /// Slot relative to the header's base.
    pub rel: u32,
    /// Bits before it in the header, when no variable-length field precedes.
    pub offset: u32,
    pub varbit: bool,
}

#[derive(Debug, Clone)]
pub struct HeaderType {
    pub name: String,
    pub fields: Vec<FieldDef>,
    /// Slots all its fields take.
    pub slots: u32,
    /// Bits of all fixed-width fields.
    pub bits: u32,
    /// Position of the variable-length field.
    pub varbit: Option<usize>,
    /// Longest header in bytes, from the JSON's `max_length`; 0 when not given.
    pub max_bytes: u32,
    /// How to read and write all fields at once, where that can be done.
    pub words: Option<Words>,
}

#[derive(Debug, Clone)]
pub struct Header {
    pub name: String,
    /// Its number in the JSON.
    pub id: i64,
    pub ty: usize,
    pub metadata: bool,
    pub base: Slot,
    /// Slot of its validity; the constant 1 for metadata.
    pub valid: Slot,
    /// Index of its variable-length field among those of the packet.
    pub varbit: Option<usize>,
    /// The union it belongs to.
    pub union: Option<usize>,
    /// Length of the variable-length field in bits, when the type says so (`length_exp`).
    pub length: Option<Expr>,
    /// The program neither reads nor writes its fields: its first slot is the byte of the frame
    /// where it begins, and its bytes stay where they are.
    pub opaque: bool,
}

#[derive(Debug, Clone)]
pub struct Stack {
    pub name: String,
    /// Its number in the JSON.
    pub id: i64,
    pub ty: usize,
    pub headers: Vec<u32>,
    /// Slot of `nextIndex`.
    pub next: Slot,
}

#[derive(Debug, Clone)]
pub struct Union {
    pub ty: usize,
    pub headers: Vec<u32>,
}

#[derive(Debug, Clone)]
pub struct UnionType {
    pub name: String,
    /// Member name and header type.
    pub members: Vec<(String, usize)>,
}

#[derive(Debug, Clone)]
pub struct UnionStack {
    /// Its number in the JSON.
    pub id: i64,
    pub ty: usize,
    pub unions: Vec<u32>,
    pub next: Slot,
}

/// A fixed-width field of a header instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    pub slot: Slot,
    pub width: u32,
    pub signed: bool,
    pub saturating: bool,
    /// Slot of the header's validity.
    pub valid: Slot,
}

impl Field {
    pub fn limbs(&self) -> usize {
        self.width.div_ceil(64) as usize
    }
}

/// Where everything of a packet is.
#[derive(Debug, Default)]
pub struct Layout {
    pub types: Vec<HeaderType>,
    pub headers: Vec<Header>,
    pub stacks: Vec<Stack>,
    pub union_types: Vec<UnionType>,
    pub unions: Vec<Union>,
    pub union_stacks: Vec<UnionStack>,
    /// Slots `0..metadata_end` are metadata fields.
    pub metadata_end: u32,
    /// Slots `0..packet_end` belong to the packet: metadata, validity, stack counters, headers.
    pub packet_end: u32,
    /// First slot of the action parameters.
    pub params: u32,
    /// Slots the action with most parameters needs.
    pub params_len: u32,
    /// Initial value of every slot.
    pub init: Vec<u64>,
    /// Number of variable-length fields.
    pub varbits: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Shl,
    Shr,
    And,
    Or,
    Xor,
    TwoCompMod,
    UsatCast,
    SatCast,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CmpOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// A header, perhaps chosen at run time.
#[derive(Debug, Clone)]
pub enum HeaderRef {
    Fixed(u32),
    StackElem(u32, Box<Expr>),
    UnionMember(UnionRef, u32),
}

/// A header union, perhaps chosen at run time.
#[derive(Debug, Clone)]
pub enum UnionRef {
    Fixed(u32),
    StackElem(u32, Box<Expr>),
}

/// An expression. Numbers are unbounded integers, truth values are 0 and 1.
#[derive(Debug, Clone)]
pub enum Expr {
    Const(BigInt),
    Field(Field),
    /// A variable-length field as a number.
    Varbit(u32),
    /// Action parameter: slot and width.
    Param(Slot, u32),
    /// Field `rel` of the last element of a stack.
    StackLast(u32, FieldOfType),
    /// Field of a header chosen at run time.
    FieldOf(HeaderRef, FieldOfType),
    Register(u32, Box<Expr>),
    Bin(BinOp, Box<Expr>, Box<Expr>),
    BitNot(Box<Expr>),
    /// `cond ? a : b`
    Cond(Box<Expr>, Box<Expr>, Box<Expr>),
    StackSize(u32),
    StackLastIndex(u32),
    UnionStackSize(u32),
    /// From here on truth values.
    Bool(bool),
    Cmp(CmpOp, Box<Expr>, Box<Expr>),
    BoolEq(Box<Expr>, Box<Expr>),
    BoolAnd(Box<Expr>, Box<Expr>),
    BoolOr(Box<Expr>, Box<Expr>),
    BoolNot(Box<Expr>),
    Valid(HeaderRef),
    ValidUnion(UnionRef),
    HeaderEq(HeaderRef, HeaderRef),
    UnionEq(UnionRef, UnionRef),
    /// `d2b`
    ToBool(Box<Expr>),
    /// `b2d`
    ToData(Box<Expr>),
}

/// A field of a header type: slot relative to the header's base, and width.
#[derive(Debug, Clone, Copy)]
pub struct FieldOfType {
    pub rel: u32,
    pub width: u32,
    pub signed: bool,
    pub saturating: bool,
}
