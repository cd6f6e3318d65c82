//! The program as it is run: headers laid out in slots, expressions, code, control flow.
//!
//! All fields, validity bits, stack counters, action parameters, temporaries and constants of a
//! packet are 64-bit slots of one array, so that every operand of the register code
//! ([`Op`]) is an index. A field wider than 64 bits takes several slots, low limb first.

mod layout;

pub use layout::*;

/// Operands of a two-operand instruction: `dst = (a op b) & mask`.
#[derive(Debug, Clone, Copy)]
pub struct Tri {
    pub dst: Slot,
    pub a: Slot,
    pub b: Slot,
    pub mask: u64,
}

/// Operands of a one-operand instruction with an immediate.
#[derive(Debug, Clone, Copy)]
pub struct Un {
    pub dst: Slot,
    pub a: Slot,
    pub imm: u64,
}

/// Operands of a comparison that jumps when it does not hold.
#[derive(Debug, Clone, Copy)]
pub struct Branch {
    pub a: Slot,
    pub b: Slot,
    pub to: u32,
}

/// Patterns for the instructions of one shape.
macro_rules! unary {
    ($of:pat) => {
        Op::Mov($of)
            | Op::BitNot($of)
            | Op::NonZero($of)
            | Op::IsZero($of)
            | Op::Sext($of)
            | Op::MinU($of)
            | Op::ClampU($of)
            | Op::ClampS($of)
            | Op::ClampUS($of)
    };
}
macro_rules! arithmetic {
    ($of:pat) => {
        Op::Add($of)
            | Op::Sub($of)
            | Op::Mul($of)
            | Op::Div($of)
            | Op::Rem($of)
            | Op::And($of)
            | Op::Or($of)
            | Op::Xor($of)
            | Op::Shl($of)
            | Op::Shr($of)
            | Op::Sar($of)
    };
}
macro_rules! comparison {
    ($of:pat) => {
        Op::Eq($of) | Op::Ne($of) | Op::LtU($of) | Op::LeU($of) | Op::LtS($of) | Op::LeS($of)
    };
}
pub(crate) use {arithmetic, comparison, unary};

/// Register code. Wrapping arithmetic modulo 2^64; the compiler proved that this is exact enough.
#[derive(Debug, Clone, Copy)]
pub enum Op {
    /// `dst = a & imm`
    Mov(Un),
    Add(Tri),
    Sub(Tri),
    Mul(Tri),
    /// Unsigned; 0 for a zero divisor.
    Div(Tri),
    Rem(Tri),
    And(Tri),
    Or(Tri),
    Xor(Tri),
    /// Shifts by 64 or more yield 0 (or the sign).
    Shl(Tri),
    Shr(Tri),
    Sar(Tri),
    /// `dst = !a & imm`
    BitNot(Un),
    Eq(Tri),
    Ne(Tri),
    LtU(Tri),
    LeU(Tri),
    LtS(Tri),
    LeS(Tri),
    /// `dst = a != 0`
    NonZero(Un),
    /// `dst = a == 0`
    IsZero(Un),
    /// Sign extension from `imm` bits.
    Sext(Un),
    /// `min(a, imm)`, unsigned.
    MinU(Un),
    /// Signed `a` clamped to `0..=imm`.
    ClampU(Un),
    /// Signed `a` clamped to `imm` bits signed.
    ClampS(Un),
    /// Unsigned `a` clamped to `imm` bits signed.
    ClampUS(Un),
    /// `dst = c ? a : b`
    Select {
        dst: Slot,
        c: Slot,
        a: Slot,
        b: Slot,
    },
    /// `dst = register[a] & mask`; unchanged when out of bounds.
    RegGet {
        dst: Slot,
        reg: u32,
        idx: Slot,
        mask: u64,
    },
    /// Like `RegGet` inside an expression: 0 when out of bounds.
    RegVal {
        dst: Slot,
        reg: u32,
        idx: Slot,
    },
    RegSet {
        reg: u32,
        idx: Slot,
        src: Slot,
    },
    /// `dst =` field `rel` of the stack's last element, 0 when the stack is empty.
    StackLast {
        dst: Slot,
        stack: u32,
        rel: u32,
    },
    SetValid(u32),
    /// `add_header`, `remove_header`: also count the packet's length.
    AddHeader(u32),
    RemoveHeader(u32),
    Count {
        counter: u32,
        idx: Slot,
    },
    Meter {
        meter: u32,
        idx: Slot,
        dst: Slot,
        mask: u64,
    },
    MarkToDrop,
    /// `dst = random(lo, hi) & mask`; unchanged, and no number drawn, when `lo > hi`.
    Random {
        dst: Slot,
        lo: Slot,
        hi: Slot,
        mask: u64,
    },
    /// `dst = base + calculation % size`
    Hash {
        dst: Slot,
        base: Slot,
        calc: u32,
        size: Slot,
    },
    /// A digest by this learn list.
    Digest(u32),
    Exit,
    Jump(u32),
    JumpIfZero(Slot, u32),
    /// The rest is made by the optimiser. `JumpIfZero` after `IsZero`.
    JumpIfNonZero(Slot, u32),
    /// Comparison and `JumpIfZero` in one.
    UnlessEq(Branch),
    UnlessNe(Branch),
    UnlessLtU(Branch),
    UnlessLeU(Branch),
    UnlessLtS(Branch),
    UnlessLeS(Branch),
    /// Ends the pipeline after an `exit` or a failure.
    Stop,
    /// Lookup in a table, its action, and on from where that leads.
    Table(u32),
    /// Anything rarer: an index into [`Ir::heavy`].
    Heavy(u32),
}

impl Op {
    /// The pipeline may end after the piece of code that this is in: an `exit`, or a failure.
    pub fn may_stop(&self) -> bool {
        matches!(self, Op::Exit | Op::Heavy(_))
    }
}

/// Where a value is written.
#[derive(Debug, Clone)]
pub enum LValue {
    Field(Field),
    FieldOf(HeaderRef, FieldOfType),
    StackLast(u32, FieldOfType),
    Register(u32, Expr),
}

/// Instructions too big or too rare for [`Op`].
#[derive(Debug, Clone)]
pub enum Heavy {
    Assign(LValue, Expr),
    /// `dst[..n] = src[..n]`, slots.
    CopySlots {
        dst: Slot,
        src: Slot,
        n: u32,
    },
    AssignVarbit {
        dst: u32,
        src: u32,
    },
    AssignHeader(HeaderRef, HeaderRef),
    AssignUnion(UnionRef, UnionRef),
    AssignStack(u32, u32),
    AssignUnionStack(u32, u32),
    /// `add_header`/`remove_header` of a header chosen at run time.
    AddHeader(HeaderRef),
    RemoveHeader(HeaderRef),
    Push(u32, Expr),
    Pop(u32, Expr),
    PushUnion(u32, Expr),
    PopUnion(u32, Expr),
    RegisterRead(LValue, u32, Expr),
    RegisterWrite(u32, Expr, Expr),
    Count(u32, Expr),
    ExecuteMeter(u32, Expr, LValue),
    Random(LValue, Expr, Expr),
    Hash {
        dst: LValue,
        base: Expr,
        calc: u32,
        size: Expr,
    },
    Digest(Expr),
    CloneIngress(Expr, Expr),
    CloneEgress(Expr, Expr),
    Resubmit(Expr),
    Recirculate(Expr),
    Truncate(Expr),
    LogMsg(String, Vec<Expr>),
    /// `assert` or `assume`, with its place in the source.
    Assert(Expr, String),
    /// A calculation as it is.
    GetHash {
        dst: LValue,
        calc: u32,
    },
    /// A meter with PSA's colours, and the colour that the packet had before.
    PsaMeter {
        meter: u32,
        idx: Expr,
        dst: LValue,
        before: Option<Expr>,
    },
    /// Adds fields to a one's complement sum, or takes them away.
    Sum {
        state: Field,
        fields: Vec<Field>,
        subtract: bool,
    },
    /// Goes on with a checksum over fields.
    Checksum {
        state: Field,
        algo: crate::exec::hash::Algo,
        fields: Vec<Field>,
    },
    /// Sends a digest by this learn list at once.
    Pack(u64),
    /// Notes a step; of a condition, with the slot that says whether it holds.
    Observe(crate::observe::Step, Option<Slot>),
    /// Tells the values of fields that a primitive or a condition reads, by its place among the program's notes.
    TellReads(u32, Vec<Field>),
    /// Tells the value of a field that the parser has set.
    TellSet(u32, Field),
    /// Truth value of an expression the register code cannot hold, to a slot.
    EvalBool(Slot, Expr),
    /// Low 64 bits of such an expression, to a slot.
    Eval(Slot, Expr),
}

/// A range of [`Ir::code`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Code {
    pub start: u32,
    pub end: u32,
}

#[derive(Debug, Clone)]
pub struct Action {
    pub code: Code,
}

/// A header in the deparser.
#[derive(Debug, Clone, Copy)]
pub struct Emit {
    pub header: u32,
    pub valid: Slot,
    pub base: Slot,
    pub ty: u32,
    /// Bytes without a variable-length field.
    pub bytes: u32,
    pub varbit: bool,
    pub opaque: bool,
}

/// How an extract finds its header.
#[derive(Debug, Clone, Copy)]
pub enum ExtractTo {
    Header(u32),
    Stack(u32),
    UnionStack(u32, u32),
}

#[derive(Debug, Clone)]
pub enum ParserOp {
    Extract(ExtractTo),
    /// With the variable-length field's width in bits.
    ExtractVarbit(ExtractTo, Expr),
    Run(Code),
    /// `dst` from `width` bits at `offset` bits ahead.
    Lookahead {
        dst: Field,
        offset: u32,
        width: u32,
    },
    /// Bits.
    Advance(Expr),
    /// Condition: the slot tested after `code`, and the error when it is 0.
    Verify {
        code: Code,
        slot: Slot,
        error: Expr,
    },
}

#[derive(Debug, Clone)]
pub enum SelectKey {
    Field(Field),
    StackLast(u32, FieldOfType),
    UnionStackLast(u32, u32, FieldOfType),
    Lookahead { offset: u32, width: u32 },
}

impl SelectKey {
    pub fn width(&self) -> u32 {
        match self {
            SelectKey::Field(f) => f.width,
            SelectKey::StackLast(_, f) | SelectKey::UnionStackLast(_, _, f) => f.width,
            SelectKey::Lookahead { width, .. } => *width,
        }
    }
}

/// `None` ends the parser.
pub type NextState = Option<u32>;

#[derive(Debug, Clone)]
pub enum SelectCase {
    /// `key & mask == value`, bytes of the padded key.
    Value { value: Vec<u8>, mask: Vec<u8>, next: NextState },
    /// Member of a value set; `mask` covers the unpadded key.
    Set { set: u32, mask: Option<Vec<u8>>, next: NextState },
}

#[derive(Debug, Clone, Default)]
pub struct ParserState {
    pub name: String,
    pub ops: Vec<ParserOp>,
    pub key: Vec<SelectKey>,
    /// Bytes of the padded key.
    pub key_bytes: usize,
    /// The select as numbers, when the padded key has at most 8 bytes and there are no value sets.
    pub small: Option<Vec<(u64, u64, NextState)>>,
    pub cases: Vec<SelectCase>,
    pub default: NextState,
}

#[derive(Debug, Clone, Default)]
pub struct Parser {
    /// Its number in the JSON.
    pub id: i64,
    pub name: String,
    pub states: Vec<ParserState>,
    pub start: NextState,
}

#[derive(Debug, Clone)]
pub enum CalcInput {
    /// A field; its validity slot decides whether it is taken.
    Field(Field),
    /// A variable-length field of a header: index of the varbit and validity slot.
    Varbit(u32, Slot),
    /// Little-endian limbs and width.
    Const(Vec<u64>, u32),
    Header(u32),
}

#[derive(Debug, Clone)]
pub struct Calculation {
    /// Its name in the JSON; empty for one that a table's selector has to itself.
    pub name: String,
    pub algo: crate::exec::hash::Algo,
    pub input: Vec<CalcInput>,
    pub payload: bool,
    /// For csum16 over fields of one header: its validity, and each field's slot and shift to its
    /// place in a 16-bit word.
    pub sum: Option<(Slot, Vec<(Slot, u32)>)>,
    /// Each field's slot, validity and width, when they have at most 128 bits in all.
    pub short: Option<Vec<(Slot, Slot, u32)>>,
}

#[derive(Debug, Clone)]
pub struct Checksum {
    /// Its number in the JSON.
    pub id: i64,
    pub name: String,
    pub target: Field,
    pub calc: u32,
    /// Slots that must be other than zero (true) or zero (false).
    pub tests: Vec<(Slot, bool)>,
    /// Where that does not say the condition: code, and the slot then tested.
    pub condition: Option<(Code, Slot)>,
    pub verify: bool,
    pub update: bool,
}

/// What comes next in a control: a node, or `None` for the end.
pub type NextNode = Option<u32>;

#[derive(Debug, Clone)]
pub enum Node {
    Table(u32),
    /// Test of one slot.
    Test {
        slot: Slot,
        yes: NextNode,
        no: NextNode,
    },
    /// Code, then a test.
    Cond {
        code: Code,
        slot: Slot,
        yes: NextNode,
        no: NextNode,
    },
    Call {
        action: u32,
        next: NextNode,
    },
}

/// Where a table's key comes from.
#[derive(Debug, Clone)]
pub struct KeyPart {
    pub field: Field,
    /// Static mask of the field (limbs), when the JSON has one.
    pub mask: Option<Vec<u64>>,
    /// Position in the packed key: limb and shift.
    pub limb: u32,
    pub shift: u32,
}

/// How a table is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableKind {
    Exact,
    Lpm,
    Ternary,
    Range,
}

#[derive(Debug, Clone)]
pub struct TableIr {
    pub kind: TableKind,
    pub key: Vec<KeyPart>,
    pub key_limbs: usize,
    /// Next node per action of the table (same order as `TableInfo::actions`).
    pub next: Vec<NextNode>,
    /// `__HIT__` and `__MISS__`, instead of `next`.
    pub hit_miss: Option<(NextNode, NextNode)>,
    /// After a miss without default action.
    pub base_next: NextNode,
    pub default: Option<crate::control::ActionCall>,
    pub entries: Vec<crate::control::TableEntry>,
    /// Where a direct meter's colour goes.
    pub meter_target: Option<Field>,
    /// Where its pipeline ends, in [`Ir::code`].
    pub end: u32,
}

impl TableIr {
    /// The node after the action at `place` among the table's actions, or after none.
    pub fn next_node(&self, place: Option<u32>, hit: bool) -> NextNode {
        match (self.hit_miss, place) {
            (Some((yes, no)), _) => {
                if hit {
                    yes
                } else {
                    no
                }
            }
            (None, Some(p)) => self.next[p as usize],
            (None, None) => self.base_next,
        }
    }

    /// All nodes that may come next.
    pub fn successors(&self) -> Vec<NextNode> {
        let mut all = self.next.clone();
        all.push(self.base_next);
        if let Some((hit, miss)) = self.hit_miss {
            all.extend([hit, miss]);
        }
        all.sort_unstable();
        all.dedup();
        all
    }
}

#[derive(Debug, Clone)]
pub struct FieldList {
    pub id: u64,
    pub fields: Vec<Field>,
}

#[derive(Debug, Clone)]
pub struct LearnList {
    pub id: u64,
    pub fields: Vec<Field>,
}

/// The metadata fields `simple_switch` reads and writes; `None` where the program has none.
#[derive(Debug, Clone, Default)]
pub struct Arch {
    pub ingress_port: Option<Field>,
    pub packet_length: Option<Field>,
    pub instance_type: Option<Field>,
    pub egress_spec: Option<Field>,
    pub egress_port: Option<Field>,
    pub parser_error: Option<Field>,
    pub checksum_error: Option<Field>,
    pub ingress_global_timestamp: Option<Field>,
    pub egress_global_timestamp: Option<Field>,
    pub mcast_grp: Option<Field>,
    pub egress_rid: Option<Field>,
    pub priority: Option<Field>,
    pub enq_timestamp: Option<Field>,
    pub enq_qdepth: Option<Field>,
    pub deq_timedelta: Option<Field>,
    pub deq_qdepth: Option<Field>,
    pub qid: Option<Field>,
    /// All four queueing fields exist.
    pub queueing: bool,
}

/// A deparser.
#[derive(Debug, Clone, Default)]
pub struct Deparser {
    /// Its number in the JSON.
    pub id: i64,
    pub name: String,
    /// The headers that it emits, in order.
    pub headers: Vec<u32>,
    /// What runs before that.
    pub code: Code,
    /// What it needs of each header.
    pub emits: Vec<Emit>,
}

/// What PSA has beside v1model: ingress has a parser and a deparser of its own (those of [`Ir`] belong to egress), and the metadata
/// of `psa_switch`.
#[derive(Debug, Clone)]
pub struct Psa {
    pub parser: Parser,
    pub deparser: Deparser,
    pub ingress_parser: PsaInput,
    pub ingress: PsaInput,
    pub ingress_timestamp: Field,
    pub ingress_error: Field,
    pub class_of_service: Field,
    pub clone: Field,
    pub clone_session_id: Field,
    pub drop: Field,
    pub resubmit: Field,
    pub multicast_group: Field,
    pub egress_port: Field,
    pub egress_parser: PsaInput,
    pub egress: PsaInput,
    pub egress_class_of_service: Field,
    pub instance: Field,
    pub egress_timestamp: Field,
    pub egress_error: Field,
    pub egress_clone: Field,
    pub egress_clone_session_id: Field,
    pub egress_drop: Field,
    pub deparser_port: Field,
    /// What the deparsers hand on: the fields of `normal_meta` and so on.
    pub normal_meta: Vec<Field>,
    pub clone_i2e_meta: Vec<Field>,
    pub resubmit_meta: Vec<Field>,
    pub recirculate_meta: Vec<Field>,
    pub clone_e2e_meta: Vec<Field>,
}

/// Port and path of a packet, as a block is told them.
#[derive(Debug, Clone, Copy)]
pub struct PsaInput {
    pub port: Field,
    pub path: Field,
}

/// Error codes of the core library, as the program numbers them.
#[derive(Debug, Clone, Copy, Default)]
pub struct ErrorCodes {
    pub no_error: u64,
    pub packet_too_short: u64,
    pub stack_out_of_bounds: u64,
    pub header_too_short: u64,
    pub parser_timeout: u64,
    pub parser_invalid_argument: u64,
}

/// Everything needed to run a program.
#[derive(Debug, Default)]
pub struct Ir {
    pub layout: Layout,
    pub code: Vec<Op>,
    pub heavy: Vec<Heavy>,
    pub parser: Parser,
    pub deparser: Deparser,
    /// What a PSA program has beside this.
    pub psa: Option<Box<Psa>>,
    /// Slots that must be zero when a packet comes in, as ranges; nobody reads the others before
    /// they are written.
    pub reset: Vec<(Slot, Slot)>,
    pub actions: Vec<Action>,
    /// The control flow as loaded.
    pub nodes: Vec<Node>,
    /// Where each node's code begins, in `code`; for those that are reached.
    pub node_at: Vec<u32>,
    /// The pipelines as one piece of code each.
    pub ingress: Code,
    pub egress: Code,
    /// Their numbers in the JSON, by [`crate::Gress`].
    pub pipeline_ids: [i64; 2],
    /// What is read of a packet after each of them.
    pub ingress_live: Vec<Slot>,
    pub egress_live: Vec<Slot>,
    /// Slots nobody writes, and what is in them.
    pub constants: Vec<(Slot, u64)>,
    pub tables: Vec<TableIr>,
    pub calculations: Vec<Calculation>,
    /// Calculation of each profile's selector.
    pub selectors: Vec<Option<u32>>,
    pub checksums: Vec<Checksum>,
    pub field_lists: Vec<FieldList>,
    pub learn_lists: Vec<LearnList>,
    pub arch: Arch,
    pub errors: ErrorCodes,
    /// Names of error codes, for messages.
    pub error_names: Vec<(u64, String)>,
    pub enums: Vec<(String, Vec<(String, i64)>)>,
}

impl Ir {
    /// Where a pipeline goes on after a table ran the action at `place` among its actions.
    pub fn next_code(&self, table: &TableIr, place: Option<u32>, hit: bool) -> u32 {
        let next = table.next_node(place, hit);
        next.map_or(table.end, |n| self.node_at[n as usize])
    }
}
