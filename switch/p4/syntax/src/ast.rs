//! The abstract syntax of P4_16 (specification, draft after 1.2.5, by whose sections the comments speak).
//!
//! The tree says what stands in the source and nothing of what it means: names are not
//! resolved, types not checked, constants not folded. Every node has a [`Span`]; every
//! expression and every written type has a [`NodeId`], unique in its [`Program`], by which
//! later stages attach what they find out.

use std::sync::Arc;

mod expressions;

pub use crate::span::{FileId, Span};
pub use expressions::*;

/// A name's text; clones are cheap.
pub type Symbol = Arc<str>;

/// Identifies an expression or a written type within one [`Program`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NodeId(pub u32);

/// One whole compilation unit, includes in place.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Program {
    /// The top-level declarations, in source order.
    pub declarations: Vec<Declaration>,
    /// One more than the largest [`NodeId`] given out, so that later stages can make new ones.
    pub node_count: u32,
}

/// A name where it stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ident {
    /// The text of the name.
    pub name: Symbol,
    /// Where it stands.
    pub span: Span,
}

/// A reference to a declared name: `x`, or `.x`, which is looked up at the top level only
/// (spec 6.8).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Path {
    /// Whether a dot leads.
    pub absolute: bool,
    /// The name.
    pub name: Ident,
    /// The name with its leading dot.
    pub span: Span,
}

// ---------------------------------------------------------------------------------------
// Annotations (spec 20)

/// `@name`, `@name(tokens)`, `@name[structured]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Annotation {
    /// The name after the `@`.
    pub name: Ident,
    /// What follows the name.
    pub body: AnnotationBody,
    /// The arguments of one whose meaning is a list of expressions (`@field_list(Lists.KEEP)`); empty where literals say all.
    pub values: Vec<Expr>,
    /// From the `@` to the closing bracket.
    pub span: Span,
}

/// The body of an annotation.
#[derive(Debug, Clone, PartialEq)]
pub enum AnnotationBody {
    /// `@hidden`
    None,
    /// `@name("a.b")`: any tokens with balanced brackets; their meaning is the annotation's own.
    Unstructured(Vec<AnnotationToken>),
    /// `@fields[1, "x"]`: a list of expressions.
    Expressions(Vec<Expr>),
    /// `@doc[brief="x", port=1]`: a list of keys and values.
    KeyValues(Vec<(Ident, Expr)>),
}

/// One raw token of an unstructured annotation.
#[derive(Debug, Clone, PartialEq)]
pub struct AnnotationToken {
    /// What the token is.
    pub kind: AnnotationTokenKind,
    /// The token as written (a string keeps its quotes and escapes).
    pub text: Symbol,
    /// Where it stands.
    pub span: Span,
}

/// The kinds of raw tokens that annotations tell apart.
#[derive(Debug, Clone, PartialEq)]
pub enum AnnotationTokenKind {
    /// A string literal, its value with escapes resolved.
    String(Symbol),
    /// An integer literal.
    Integer(IntLiteral),
    /// An identifier or a keyword.
    Word,
    /// An operator, bracket or punctuation mark.
    Punctuation,
}

// ---------------------------------------------------------------------------------------
// Declarations

/// A declaration, at the top level or local to a parser, control, or block.
#[derive(Debug, Clone, PartialEq)]
pub struct Declaration {
    /// The annotations before it.
    pub annotations: Vec<Annotation>,
    /// What is declared.
    pub kind: DeclarationKind,
    /// The whole declaration, annotations left out.
    pub span: Span,
}

/// What a declaration declares.
#[derive(Debug, Clone, PartialEq)]
pub enum DeclarationKind {
    /// `const T x = e;` (spec 11.1)
    Constant(ConstantDeclaration),
    /// `T x;`, `T x = e;` (spec 11.2): local only.
    Variable(VariableDeclaration),
    /// `T(args) x;` (spec 11.3)
    Instantiation(Instantiation),
    /// `header H<T> { .. }` (spec 7.2.2)
    Header(StructDeclaration),
    /// `header_union U { .. }` (spec 7.2.5)
    HeaderUnion(StructDeclaration),
    /// `struct S<T> { .. }` (spec 7.2.6)
    Struct(StructDeclaration),
    /// `enum E { .. }`, `enum bit<8> E { A = 1, .. }` (spec 7.2.1)
    Enum(EnumDeclaration),
    /// `error { A, B }` (spec 7.1.2); many such declarations make one type.
    Error(Vec<Ident>),
    /// `match_kind { exact, lpm }` (spec 7.1.3)
    MatchKind(Vec<Ident>),
    /// `typedef T X;` (spec 7.5)
    Typedef(TypeAlias),
    /// `type T X;`, a new type (spec 7.6)
    Newtype(TypeAlias),
    /// `extern E<T> { .. }` (spec 7.2.11)
    ExternObject(ExternObject),
    /// `extern T f<T>(..);` (spec 7.2.11)
    ExternFunction(FunctionPrototype),
    /// `T f(..) { .. }` (spec 10)
    Function(FunctionDeclaration),
    /// `action a(..) { .. }` (spec 14.1)
    Action(ActionDeclaration),
    /// `table t { .. }` (spec 14.2): local to a control only.
    Table(TableDeclaration),
    /// `value_set<T>(n) v;` (spec 13.11): local to a parser or at the top level.
    ValueSet(ValueSetDeclaration),
    /// `parser P<T>(..);` (spec 7.2.13)
    ParserType(ApplicableType),
    /// `parser P(..)(..) { .. }` (spec 13)
    Parser(ParserDeclaration),
    /// `control C<T>(..);` (spec 7.2.13)
    ControlType(ApplicableType),
    /// `control C(..)(..) { .. }` (spec 14)
    Control(ControlDeclaration),
    /// `package P<T>(..);` (spec 7.2.14)
    Package(ApplicableType),
}

/// A constant.
#[derive(Debug, Clone, PartialEq)]
pub struct ConstantDeclaration {
    /// Its type.
    pub ty: TypeExpr,
    /// Its name.
    pub name: Ident,
    /// Its value.
    pub value: Expr,
}

/// A variable of a parser, control, action, function or block.
#[derive(Debug, Clone, PartialEq)]
pub struct VariableDeclaration {
    /// Its type.
    pub ty: TypeExpr,
    /// Its name.
    pub name: Ident,
    /// Its initial value.
    pub initializer: Option<Expr>,
}

/// An instance of an extern object, parser, control or package.
#[derive(Debug, Clone, PartialEq)]
pub struct Instantiation {
    /// What is instantiated, with its type arguments.
    pub ty: TypeExpr,
    /// The constructor's arguments.
    pub arguments: Vec<Argument>,
    /// The instance's name.
    pub name: Ident,
    /// The abstract methods' implementations, `= { .. }`: functions and instantiations.
    pub initializer: Option<Vec<Declaration>>,
}

/// A header, header union or struct.
#[derive(Debug, Clone, PartialEq)]
pub struct StructDeclaration {
    /// Its name.
    pub name: Ident,
    /// Its type parameters.
    pub type_parameters: Vec<Ident>,
    /// Its fields, in order.
    pub fields: Vec<Field>,
}

/// A field of a header, header union or struct.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// The annotations before it.
    pub annotations: Vec<Annotation>,
    /// Its type.
    pub ty: TypeExpr,
    /// Its name.
    pub name: Ident,
    /// The whole field.
    pub span: Span,
}

/// An enumeration; serializable when `underlying` is given.
#[derive(Debug, Clone, PartialEq)]
pub struct EnumDeclaration {
    /// Its name.
    pub name: Ident,
    /// The type of its values on the wire, as in `enum bit<8> E`.
    pub underlying: Option<TypeExpr>,
    /// Its members, in order.
    pub members: Vec<EnumMember>,
}

/// A member of an enumeration.
#[derive(Debug, Clone, PartialEq)]
pub struct EnumMember {
    /// Its name.
    pub name: Ident,
    /// Its value, in a serializable enumeration.
    pub value: Option<Expr>,
}

/// A `typedef` or a `type`.
#[derive(Debug, Clone, PartialEq)]
pub struct TypeAlias {
    /// The type that gets a name. A struct or the like declared in place is in `inline`.
    pub ty: TypeExpr,
    /// The new name.
    pub name: Ident,
    /// `typedef struct S { .. } T;`: the declaration in the place of the type; `ty` then names it.
    pub inline: Option<Box<Declaration>>,
}

/// An extern object type.
#[derive(Debug, Clone, PartialEq)]
pub struct ExternObject {
    /// Its name.
    pub name: Ident,
    /// Its type parameters.
    pub type_parameters: Vec<Ident>,
    /// Its constructors: name, parameters, annotations.
    pub constructors: Vec<Constructor>,
    /// Its methods.
    pub methods: Vec<Method>,
}

/// A constructor of an extern object.
#[derive(Debug, Clone, PartialEq)]
pub struct Constructor {
    /// The annotations before it.
    pub annotations: Vec<Annotation>,
    /// The object's name again.
    pub name: Ident,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// The whole constructor.
    pub span: Span,
}

/// A method of an extern object.
#[derive(Debug, Clone, PartialEq)]
pub struct Method {
    /// The annotations before it.
    pub annotations: Vec<Annotation>,
    /// Whether `abstract` stands before it: the instance implements it.
    pub is_abstract: bool,
    /// Its signature.
    pub prototype: FunctionPrototype,
    /// The whole method.
    pub span: Span,
}

/// The signature of a function, extern function or method.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionPrototype {
    /// What it returns; [`TypeExprKind::Void`] for nothing.
    pub return_type: TypeExpr,
    /// Its name.
    pub name: Ident,
    /// Its type parameters.
    pub type_parameters: Vec<Ident>,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// The whole signature.
    pub span: Span,
}

/// A function with a body.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionDeclaration {
    /// Its signature.
    pub prototype: FunctionPrototype,
    /// Its body.
    pub body: Block,
}

/// An action.
#[derive(Debug, Clone, PartialEq)]
pub struct ActionDeclaration {
    /// Its name.
    pub name: Ident,
    /// Its parameters: those with a direction first, then those that the control plane binds.
    pub parameters: Vec<Parameter>,
    /// Its body.
    pub body: Block,
}

/// The direction of a parameter (spec 6.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Direction {
    /// Directionless: a compile-time value, an object, or an action parameter of the control plane's.
    #[default]
    None,
    /// `in`
    In,
    /// `out`
    Out,
    /// `inout`
    InOut,
}

/// A parameter of anything callable or constructible.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// The annotations before it.
    pub annotations: Vec<Annotation>,
    /// Its direction.
    pub direction: Direction,
    /// Its type.
    pub ty: TypeExpr,
    /// Its name.
    pub name: Ident,
    /// `= e`, the value of an argument left out.
    pub default: Option<Expr>,
    /// The whole parameter.
    pub span: Span,
}

/// A parser type, control type or package type: only a signature.
#[derive(Debug, Clone, PartialEq)]
pub struct ApplicableType {
    /// Its name.
    pub name: Ident,
    /// Its type parameters.
    pub type_parameters: Vec<Ident>,
    /// Its parameters (for a package those of its constructor).
    pub parameters: Vec<Parameter>,
}

/// A parser.
#[derive(Debug, Clone, PartialEq)]
pub struct ParserDeclaration {
    /// Its name.
    pub name: Ident,
    /// Its type parameters (the spec forbids them; the checker says so).
    pub type_parameters: Vec<Ident>,
    /// The parameters of `apply`.
    pub parameters: Vec<Parameter>,
    /// The parameters of its constructor.
    pub constructor_parameters: Vec<Parameter>,
    /// Its constants, variables, instantiations and value sets.
    pub locals: Vec<Declaration>,
    /// Its states, in source order.
    pub states: Vec<ParserState>,
}

/// A control.
#[derive(Debug, Clone, PartialEq)]
pub struct ControlDeclaration {
    /// Its name.
    pub name: Ident,
    /// Its type parameters (the spec forbids them; the checker says so).
    pub type_parameters: Vec<Ident>,
    /// The parameters of `apply`.
    pub parameters: Vec<Parameter>,
    /// The parameters of its constructor.
    pub constructor_parameters: Vec<Parameter>,
    /// Its constants, variables, instantiations, actions and tables.
    pub locals: Vec<Declaration>,
    /// The block after `apply`.
    pub apply: Block,
}

/// A value set: matches of a parser that the control plane fills.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueSetDeclaration {
    /// The type of one value.
    pub element: TypeExpr,
    /// The largest number of values.
    pub size: Expr,
    /// Its name.
    pub name: Ident,
}

// ---------------------------------------------------------------------------------------
// Parser states (spec 13)

/// A state of a parser.
#[derive(Debug, Clone, PartialEq)]
pub struct ParserState {
    /// The annotations before it.
    pub annotations: Vec<Annotation>,
    /// Its name.
    pub name: Ident,
    /// Its statements.
    pub statements: Vec<Statement>,
    /// Where it goes; without one it goes to `reject` (spec 13.5).
    pub transition: Option<Transition>,
    /// The whole state.
    pub span: Span,
}

/// The end of a parser state.
#[derive(Debug, Clone, PartialEq)]
pub enum Transition {
    /// `transition s;`
    Direct(Ident),
    /// `transition select(..) { .. }`
    Select(Select),
}

/// A `select` expression (spec 13.6).
#[derive(Debug, Clone, PartialEq)]
pub struct Select {
    /// What is matched.
    pub keys: Vec<Expr>,
    /// The cases, first match first.
    pub cases: Vec<SelectCase>,
    /// The whole expression.
    pub span: Span,
}

/// A case of a `select`.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectCase {
    /// What the keys are held against. A parenthesised tuple keyset is one
    /// [`KeysetKind::Tuple`].
    pub keyset: Keyset,
    /// The state to go to.
    pub target: Ident,
    /// The whole case.
    pub span: Span,
}

/// A set of values: in a `select` case and in a table's entry (spec 8.16).
#[derive(Debug, Clone, PartialEq)]
pub struct Keyset {
    /// What kind of set.
    pub kind: KeysetKind,
    /// Where it stands.
    pub span: Span,
}

/// The kinds of sets.
#[derive(Debug, Clone, PartialEq)]
pub enum KeysetKind {
    /// `default`
    Default,
    /// `_`
    DontCare,
    /// `e`: one value, or the name of a value set.
    Value(Expr),
    /// `value &&& mask`
    Mask(Expr, Expr),
    /// `low .. high`, both ends belong
    Range(Expr, Expr),
    /// `(k, k, ..)`
    Tuple(Vec<Keyset>),
}

// ---------------------------------------------------------------------------------------
// Tables (spec 14.2)

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableDeclaration {
    /// Its name.
    pub name: Ident,
    /// Its properties, in source order.
    pub properties: Vec<TableProperty>,
}

/// A property of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableProperty {
    /// The annotations before it.
    pub annotations: Vec<Annotation>,
    /// Whether `const` stands before it.
    pub is_const: bool,
    /// What it is.
    pub kind: TablePropertyKind,
    /// The whole property.
    pub span: Span,
}

/// The kinds of table properties.
#[derive(Debug, Clone, PartialEq)]
pub enum TablePropertyKind {
    /// `key = { .. }`
    Key(Vec<KeyElement>),
    /// `actions = { .. }`
    Actions(Vec<ActionReference>),
    /// `entries = { .. }`
    Entries(Vec<TableEntry>),
    /// `default_action = a(..)`, `size = e`, `implementation = e`, or any other `name = e`.
    /// An initializer of the form `{ .. }` is an [`ExprKind::List`].
    Other(Ident, Expr),
}

/// A component of a table's key.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyElement {
    /// What is matched.
    pub expression: Expr,
    /// How: `exact`, `lpm`, ...
    pub match_kind: Path,
    /// The annotations after the match kind.
    pub annotations: Vec<Annotation>,
    /// The whole component.
    pub span: Span,
}

/// An action in a table's list, with the arguments for its parameters that have a direction.
#[derive(Debug, Clone, PartialEq)]
pub struct ActionReference {
    /// The annotations before it (`@defaultonly`, `@tableonly`).
    pub annotations: Vec<Annotation>,
    /// Which action.
    pub name: Path,
    /// The arguments, when written.
    pub arguments: Option<Vec<Argument>>,
    /// The whole reference.
    pub span: Span,
}

/// An entry given in the source.
#[derive(Debug, Clone, PartialEq)]
pub struct TableEntry {
    /// The annotations after the action (`@priority(1)`).
    pub annotations: Vec<Annotation>,
    /// Whether `const` stands before it (spec 1.2.4).
    pub is_const: bool,
    /// `priority = e:` (spec 1.2.4)
    pub priority: Option<Expr>,
    /// What it matches.
    pub keyset: Keyset,
    /// What it runs.
    pub action: ActionReference,
    /// The whole entry.
    pub span: Span,
}

// ---------------------------------------------------------------------------------------
// Statements (spec 12)

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// The annotations before it (only blocks, loops and declarations take them).
    pub annotations: Vec<Annotation>,
    /// What it does.
    pub kind: StatementKind,
    /// Where it stands.
    pub span: Span,
}

/// The kinds of statements.
#[derive(Debug, Clone, PartialEq)]
pub enum StatementKind {
    /// `;`
    Empty,
    /// A constant, variable or instantiation among the statements.
    Declaration(Box<Declaration>),
    /// `l = e;`, or `l op= e;` when `op` is given (draft after 1.2.5: `+= -= |+|= |-|= *= /= %= <<= >>= &= |= ^=`).
    Assignment {
        /// What is assigned.
        target: Expr,
        /// The operator before the `=`.
        op: Option<BinaryOp>,
        /// The right-hand side.
        value: Expr,
    },
    /// `f(..);`, `x.m<T>(..);`: the expression is an [`ExprKind::Call`].
    Call(Expr),
    /// `C.apply(..);`, `C<T>.apply(..);` where `C` is a type name (spec 15.1): parsers that do not know whether
    /// `C` names a type may leave it a [`StatementKind::Call`].
    DirectApplication {
        /// The parser or control type.
        ty: TypeExpr,
        /// The arguments of `apply`.
        arguments: Vec<Argument>,
    },
    /// `{ .. }`
    Block(Block),
    /// `if (c) s else t`
    If {
        /// The condition.
        condition: Expr,
        /// What runs when it holds.
        then_branch: Box<Statement>,
        /// What runs when it does not.
        else_branch: Option<Box<Statement>>,
    },
    /// `switch (e) { .. }`
    Switch {
        /// What is switched on: `t.apply().action_run`, or a value.
        subject: Expr,
        /// The cases, in order.
        cases: Vec<SwitchCase>,
    },
    /// `for (init; condition; update) s` (draft after 1.2.5)
    For {
        /// Declarations, assignments and calls before the first round.
        init: Vec<Statement>,
        /// Checked before each round.
        condition: Expr,
        /// Assignments and calls after each round.
        update: Vec<Statement>,
        /// What is repeated.
        body: Box<Statement>,
    },
    /// `for (T x in a .. b) s`, `for (x in list) s` (draft after 1.2.5)
    ForIn {
        /// The loop variable: declared here, or an existing l-value.
        variable: ForVariable,
        /// What it runs over.
        collection: ForCollection,
        /// What is repeated.
        body: Box<Statement>,
    },
    /// `return;`, `return e;`
    Return(Option<Expr>),
    /// `exit;`
    Exit,
    /// `break;`
    Break,
    /// `continue;`
    Continue,
}

/// The variable of a `for .. in` loop.
#[derive(Debug, Clone, PartialEq)]
pub enum ForVariable {
    /// `T x`
    Declared(TypeExpr, Ident),
    /// `x`
    Existing(Expr),
}

/// What a `for .. in` loop runs over.
#[derive(Debug, Clone, PartialEq)]
pub enum ForCollection {
    /// A list or header stack.
    Expression(Expr),
    /// `a .. b`, both ends belong
    Range(Expr, Expr),
}

/// A case of a `switch`.
#[derive(Debug, Clone, PartialEq)]
pub struct SwitchCase {
    /// The label: an action's name or a value; `default` is [`ExprKind::Default`].
    pub label: Expr,
    /// What runs; without one, control falls through to the next case that has a block.
    pub body: Option<Block>,
    /// The whole case.
    pub span: Span,
}

/// `{ .. }`
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Block {
    /// The annotations before the brace.
    pub annotations: Vec<Annotation>,
    /// What runs, in order.
    pub statements: Vec<Statement>,
    /// From brace to brace.
    pub span: Span,
}
