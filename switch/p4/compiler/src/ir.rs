//! The program after specialisation: one flat parser, two pipelines, no generics, no nested instances.
//!
//! Structs are gone: what is left are scalar fields of header and metadata instances ([`Place`]), whole
//! headers ([`HeaderRef`]), stacks and unions. Jumps are structured: [`Stmt::Leave`] leaves the enclosing
//! [`Stmt::Scope`] of that label, which is how `return`, `break` and `continue` are said.

use fairlane_syntax::ast::{BinaryOp, Span, Symbol, UnaryOp};
use num_bigint::BigInt;

use crate::types::Type;

/// A header or metadata instance, by position in [`Program::headers`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HeaderId(pub usize);
/// A stack, by position in [`Program::stacks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(pub usize);
/// A header union instance, by position in [`Program::unions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnionId(pub usize);
/// A header type, by position in [`Program::header_types`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HeaderTypeId(pub usize);
/// A union type, by position in [`Program::union_types`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnionTypeId(pub usize);
/// An action, by position in [`Program::actions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ActionId(pub usize);
/// A table, by position in [`Program::tables`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub usize);
/// A parser state, by position in [`Parser::states`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateId(pub usize);
/// The label of a [`Stmt::Scope`]; unique in the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label(pub u32);

/// A header.
#[derive(Debug, Clone, PartialEq)]
pub enum HeaderRef {
    /// One instance.
    Instance(HeaderId),
    /// The element of a stack at an index known at run time only.
    Element(StackId, Box<Expr>),
    /// The element that is extracted next.
    Next(StackId),
    /// The element extracted last.
    Last(StackId),
    /// The member of the union that is extracted next of a union stack.
    UnionNext(StackId, Symbol),
}

/// A field of a header or metadata instance.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// The instance.
    pub header: HeaderRef,
    /// The field's name.
    pub field: Symbol,
    /// Its position in the header type.
    pub index: usize,
    /// Its type: bits, `bool`, an enum, `error` or varbit.
    pub ty: Type,
}

/// A scalar expression without side effects.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// The type of its value.
    pub ty: Type,
}

/// The forms of expressions.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    /// An integer, enum member or error code.
    Const(BigInt),
    /// A Boolean.
    Bool(bool),
    /// A field's value.
    Place(Box<Place>),
    /// The action's argument of that position.
    Param(usize),
    /// Whether a header is valid.
    Valid(HeaderRef),
    /// Whether some header of a union is valid.
    ValidUnion(UnionId),
    /// The index of the element of a stack extracted last.
    LastIndex(StackId),
    /// Bits of the packet ahead: offset and width. Only as the whole right-hand side of an assignment, or a select key.
    Lookahead(u32, u32),
    /// `op e`
    Unary(UnaryOp, Box<Expr>),
    /// `l op r`
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `c ? t : f`
    Mux(Box<Expr>, Box<Expr>, Box<Expr>),
    /// The value in another width or sign.
    Cast(Box<Expr>),
    /// `e[high:low]`
    Slice(Box<Expr>, u32, u32),
}

/// An argument of a primitive.
#[derive(Debug, Clone, PartialEq)]
pub enum Arg {
    /// A value.
    Expr(Expr),
    /// A Boolean value, which the target awaits as an expression (`assert`).
    Condition(Expr),
    /// A field to write to.
    Place(Place),
    /// A header.
    Header(HeaderRef),
    /// A named object: the JSON type (`register_array`) and the name.
    Object(&'static str, String),
    /// A text.
    Text(Symbol),
    /// Values to print.
    Vector(Vec<Expr>),
    /// Fields, in order.
    Fields(Vec<Expr>),
}

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Stmt {
    /// `place = value`
    Assign(Place, Expr, Span),
    /// A whole header, validity too.
    AssignHeader(HeaderRef, HeaderRef, Span),
    /// A whole stack.
    AssignStack(StackId, StackId, Span),
    /// A whole union.
    AssignUnion(UnionId, UnionId, Span),
    /// `setValid`, `setInvalid`
    SetValid(HeaderRef, bool, Span),
    /// `push_front` (true) or `pop_front` by a count.
    Shift(StackId, bool, u32, Span),
    /// A primitive of the target.
    Primitive(String, Vec<Arg>, Span),
    /// `if`
    If(Expr, Vec<Stmt>, Vec<Stmt>, Span),
    /// Statements that can be left.
    Scope(Label, Vec<Stmt>),
    /// Jumps behind the scope of that label.
    Leave(Label, Span),
    /// Repeats its statements until they are left.
    Loop(Vec<Stmt>, Span),
    /// `exit`
    Exit(Span),
    /// Applies a table.
    Apply(TableId, Span),
    /// Applies a table and branches on hit or miss.
    ApplyHit(TableId, Vec<Stmt>, Vec<Stmt>, Span),
    /// Applies a table and branches on the action that ran.
    ApplySwitch(TableId, Vec<(Vec<ActionId>, Vec<Stmt>)>, Option<Vec<Stmt>>, Span),
    /// Extracts a header, with the length in bits of its varbit field.
    Extract(HeaderRef, Option<Expr>, Span),
    /// Raises a parser error unless the condition holds.
    Verify(Expr, Expr, Span),
    /// Skips bits of the packet.
    Advance(Expr, Span),
    /// Emits a header in a deparser.
    Emit(HeaderRef, Span),
    /// A checksum, in the checksum controls.
    Checksum(Box<Checksum>),
}

/// A header or metadata type.
#[derive(Debug, Clone, PartialEq)]
pub struct HeaderType {
    /// Its name in the JSON.
    pub name: String,
    /// Names and types of its fields.
    pub fields: Vec<(Symbol, Type)>,
    /// Whether the instances are metadata: padded to bytes.
    pub metadata: bool,
}

/// A header or metadata instance.
#[derive(Debug, Clone, PartialEq)]
pub struct Header {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: HeaderTypeId,
}

/// A stack of headers or of unions.
#[derive(Debug, Clone, PartialEq)]
pub struct Stack {
    /// Its name.
    pub name: String,
    /// The elements.
    pub elements: StackElements,
}

/// The elements of a stack.
#[derive(Debug, Clone, PartialEq)]
pub enum StackElements {
    /// Headers of one type.
    Headers(HeaderTypeId, Vec<HeaderId>),
    /// Unions of one type.
    Unions(UnionTypeId, Vec<UnionId>),
}

/// A union type.
#[derive(Debug, Clone, PartialEq)]
pub struct UnionType {
    /// Its name.
    pub name: String,
    /// Names and types of its members.
    pub members: Vec<(Symbol, HeaderTypeId)>,
}

/// A union instance.
#[derive(Debug, Clone, PartialEq)]
pub struct Union {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: UnionTypeId,
    /// The instances of its members.
    pub members: Vec<(Symbol, HeaderId)>,
}

/// One key of a select case or a table's entry.
#[derive(Debug, Clone, PartialEq)]
pub enum Match {
    /// Anything.
    Any,
    /// One value.
    Exact(BigInt),
    /// Value and mask.
    Mask(BigInt, BigInt),
    /// Lowest and highest value.
    Range(BigInt, BigInt),
}

/// Where a parser goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// `accept`
    Accept,
    /// `reject`
    Reject,
    /// Another state.
    State(StateId),
}

/// A case of a transition.
#[derive(Debug, Clone, PartialEq)]
pub enum Case {
    /// The keys match.
    Matches(Vec<Match>, Target),
    /// The keys are in the value set of that name.
    ValueSet(String, Target),
}

/// The end of a parser state.
#[derive(Debug, Clone, PartialEq)]
pub enum Transition {
    /// Always there.
    Goto(Target),
    /// By the first case that matches; the last takes everything.
    Select(Vec<Expr>, Vec<Case>),
}

/// A parser state.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// Its name, unique in the parser.
    pub name: String,
    /// Its statements: none with branches.
    pub body: Vec<Stmt>,
    /// Where it goes.
    pub next: Transition,
}

/// A parser; it starts in the first state.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Parser {
    /// Its name in the JSON.
    pub name: String,
    /// Its states.
    pub states: Vec<State>,
}

/// A deparser.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Deparser {
    /// Its name in the JSON.
    pub name: String,
    /// Its statements.
    pub body: Vec<Stmt>,
    /// Whether it may do more than emit headers.
    pub computes: bool,
    /// Where it is declared.
    pub span: Span,
}

/// An action.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// Its control-plane name.
    pub name: String,
    /// Names and widths of the parameters that a table entry binds.
    pub params: Vec<(String, u32)>,
    /// Its statements.
    pub body: Vec<Stmt>,
    /// Where it is declared.
    pub span: Span,
}

/// A key of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// What is matched: a field, or the validity of a header.
    pub expr: Expr,
    /// How.
    pub match_kind: Symbol,
    /// Its control-plane name.
    pub name: String,
}

/// An entry of a table that the source gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// One match for each key.
    pub matches: Vec<Match>,
    /// The action, by position in the table's list.
    pub action: ActionId,
    /// Its arguments.
    pub args: Vec<BigInt>,
    /// As the JSON counts: smaller wins.
    pub priority: Option<BigInt>,
    /// Where it stands.
    pub span: Span,
}

/// What implements a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Implementation {
    /// Entries with actions.
    Simple,
    /// An action profile, by name.
    Profile(String),
    /// An action selector, by name.
    Selector(String),
}

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Its control-plane name.
    pub name: String,
    /// Its key.
    pub keys: Vec<Key>,
    /// What computes keys that are no fields, before each application.
    pub prelude: Vec<Stmt>,
    /// Its actions.
    pub actions: Vec<ActionId>,
    /// The default action, its arguments, and whether it is `const`.
    pub default: Option<(ActionId, Vec<BigInt>, bool)>,
    /// `size`
    pub size: Option<u64>,
    /// The entries; `None` when the source gives none.
    pub entries: Option<Vec<Entry>>,
    /// What implements it.
    pub implementation: Implementation,
    /// Whether a direct counter counts its hits.
    pub with_counters: bool,
    /// Its direct meter, by name.
    pub direct_meter: Option<String>,
    /// Whether its entries age.
    pub support_timeout: bool,
    /// Where it is declared.
    pub span: Span,
}

/// A pipeline.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pipeline {
    /// `ingress` or `egress`
    pub name: String,
    /// Its statements.
    pub body: Vec<Stmt>,
    /// Where its control is declared.
    pub span: Span,
}

/// An action profile or selector.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// Number of members.
    pub size: BigInt,
    /// The algorithm and the input of a selector; the input is known from its first table.
    pub selector: Option<(Symbol, Option<Vec<Expr>>)>,
    /// Where it is declared.
    pub span: Span,
}

/// What a counter or meter is attached to.
#[derive(Debug, Clone, PartialEq)]
pub enum Cells {
    /// An array of that size.
    Array(BigInt),
    /// The entries of a table, once known.
    Direct(Option<String>),
}

/// A counter.
#[derive(Debug, Clone, PartialEq)]
pub struct Counter {
    /// Its name.
    pub name: String,
    /// Its cells.
    pub cells: Cells,
    /// Where it is declared.
    pub span: Span,
}

/// A meter.
#[derive(Debug, Clone, PartialEq)]
pub struct Meter {
    /// Its name.
    pub name: String,
    /// Its cells.
    pub cells: Cells,
    /// `packets` or `bytes`.
    pub unit: Symbol,
    /// Where a direct meter writes the colour.
    pub target: Option<Place>,
    /// The size of the table of a direct meter.
    pub table_size: u64,
    /// Where it is declared.
    pub span: Span,
}

/// A register array.
#[derive(Debug, Clone, PartialEq)]
pub struct Register {
    /// Its name.
    pub name: String,
    /// Number of cells.
    pub size: BigInt,
    /// Width of a cell.
    pub bits: u32,
    /// Where it is declared.
    pub span: Span,
}

/// An attribute of an extern object.
#[derive(Debug, Clone, PartialEq)]
pub enum Attribute {
    /// A number.
    Number(BigInt),
    /// A text.
    Text(Symbol),
}

/// An object of an extern type that the target makes by name, as `psa_switch` does.
#[derive(Debug, Clone, PartialEq)]
pub struct Extern {
    /// Its name.
    pub name: String,
    /// The name of its type.
    pub ty: &'static str,
    /// Its attributes, by name.
    pub attributes: Vec<(&'static str, Attribute)>,
    /// Where it is declared.
    pub span: Span,
}

/// A list of fields: kept by clone, resubmit, recirculate; sent by a digest.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldList {
    /// Its number, from 1.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Its elements.
    pub elements: Vec<Expr>,
    /// Where it is written.
    pub span: Span,
}

/// A hash or checksum over fields.
#[derive(Debug, Clone, PartialEq)]
pub struct Calculation {
    /// Its name.
    pub name: String,
    /// The algorithm.
    pub algorithm: Symbol,
    /// The input.
    pub input: Vec<Expr>,
    /// Whether the payload belongs to it.
    pub payload: bool,
    /// Where it is written.
    pub span: Span,
}

/// A checksum to verify or to update.
#[derive(Debug, Clone, PartialEq)]
pub struct Checksum {
    /// Whether it is verified rather than updated.
    pub verify: bool,
    /// When.
    pub condition: Expr,
    /// The field of the checksum.
    pub target: Place,
    /// The algorithm.
    pub algorithm: Symbol,
    /// The input.
    pub input: Vec<Expr>,
    /// Whether the payload belongs to it.
    pub payload: bool,
    /// Where it is written.
    pub span: Span,
}

/// A value set.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueSet {
    /// Its name.
    pub name: String,
    /// Width of a value.
    pub bits: u32,
    /// Largest number of values.
    pub size: BigInt,
}

/// A whole program.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Program {
    /// Header and metadata types.
    pub header_types: Vec<HeaderType>,
    /// Header and metadata instances.
    pub headers: Vec<Header>,
    /// Stacks.
    pub stacks: Vec<Stack>,
    /// Union types.
    pub union_types: Vec<UnionType>,
    /// Unions.
    pub unions: Vec<Union>,
    /// The instance of scalar variables.
    pub scalars: Option<HeaderId>,
    /// Errors, by code.
    pub errors: Vec<Symbol>,
    /// Enums without representation: name and members.
    pub enums: Vec<(Symbol, Vec<Symbol>)>,
    /// Names that the target uses for fields of standard metadata: name, instance, field.
    pub aliases: Vec<(Symbol, String, Symbol)>,
    /// The parser; with PSA that of ingress, then that of egress.
    pub parsers: Vec<Parser>,
    /// Value sets.
    pub value_sets: Vec<ValueSet>,
    /// Actions.
    pub actions: Vec<Action>,
    /// Tables.
    pub tables: Vec<Table>,
    /// The ingress pipeline.
    pub ingress: Pipeline,
    /// The egress pipeline.
    pub egress: Pipeline,
    /// The statements of the checksum verification.
    pub verify: Vec<Stmt>,
    /// The statements of the checksum update.
    pub update: Vec<Stmt>,
    /// The deparser; with PSA that of ingress, then that of egress.
    pub deparsers: Vec<Deparser>,
    /// Action profiles, with the pipeline of each (`ingress`, `egress`).
    pub profiles: Vec<(String, Profile)>,
    /// Counters.
    pub counters: Vec<Counter>,
    /// Meters.
    pub meters: Vec<Meter>,
    /// Registers.
    pub registers: Vec<Register>,
    /// Objects of extern types that the target makes by name.
    pub externs: Vec<Extern>,
    /// Field lists.
    pub field_lists: Vec<FieldList>,
    /// Digests.
    pub learn_lists: Vec<FieldList>,
    /// Hashes.
    pub calculations: Vec<Calculation>,
}

impl Expr {
    /// An integer constant.
    pub fn constant(value: impl Into<BigInt>, ty: Type) -> Expr {
        Expr { kind: ExprKind::Const(value.into()), ty }
    }

    /// A Boolean constant.
    pub fn boolean(value: bool) -> Expr {
        Expr { kind: ExprKind::Bool(value), ty: Type::Bool }
    }

    /// A field's value.
    pub fn place(place: Place) -> Expr {
        Expr { ty: place.ty.clone(), kind: ExprKind::Place(Box::new(place)) }
    }

    /// The value of an integer constant.
    pub fn as_const(&self) -> Option<&BigInt> {
        match &self.kind {
            ExprKind::Const(v) => Some(v),
            _ => None,
        }
    }

    /// Whether it is a constant of any kind.
    pub fn is_const(&self) -> bool {
        matches!(self.kind, ExprKind::Const(_) | ExprKind::Bool(_))
    }

    /// Calls `f` for this expression and all within it.
    pub fn walk(&self, f: &mut impl FnMut(&Expr)) {
        f(self);
        match &self.kind {
            ExprKind::Unary(_, e) | ExprKind::Cast(e) | ExprKind::Slice(e, _, _) => e.walk(f),
            ExprKind::Binary(_, l, r) => {
                l.walk(f);
                r.walk(f);
            }
            ExprKind::Mux(c, t, e) => {
                c.walk(f);
                t.walk(f);
                e.walk(f);
            }
            ExprKind::Place(p) => {
                if let HeaderRef::Element(_, i) = &p.header {
                    i.walk(f);
                }
            }
            ExprKind::Valid(HeaderRef::Element(_, i)) => i.walk(f),
            _ => {}
        }
    }

    /// Whether `f` holds for it or something within it.
    pub fn any(&self, mut f: impl FnMut(&Expr) -> bool) -> bool {
        let mut found = false;
        self.walk(&mut |e| found |= f(e));
        found
    }
}
