//! Written types (spec 7) and expressions (spec 8).

use num_bigint::BigInt;

use super::{Ident, NodeId, Path, Span, Symbol};

/// A type as written.
#[derive(Debug, Clone, PartialEq)]
pub struct TypeExpr {
    /// Which node it is.
    pub id: NodeId,
    /// What is written.
    pub kind: TypeExprKind,
    /// Where it stands.
    pub span: Span,
}

/// The forms of written types.
#[derive(Debug, Clone, PartialEq)]
pub enum TypeExprKind {
    /// `bool`
    Bool,
    /// `error`
    Error,
    /// `match_kind`
    MatchKind,
    /// `string`
    String,
    /// `int`, of any precision
    Int,
    /// `bit<n>`; `bit` alone is `bit<1>` and has no width here
    Bit(Option<Box<Expr>>),
    /// `int<n>`
    SignedBit(Box<Expr>),
    /// `varbit<n>`, `n` the largest width
    Varbit(Box<Expr>),
    /// `void`
    Void,
    /// `_` as a type argument: to be inferred
    DontCare,
    /// `X`, `.X`
    Name(Path),
    /// `X<T, ..>`
    Specialized(Path, Vec<TypeExpr>),
    /// `T[n]`
    Stack(Box<TypeExpr>, Box<Expr>),
    /// `tuple<T, ..>`
    Tuple(Vec<TypeExpr>),
    /// `list<T>`
    List(Box<TypeExpr>),
}

// ---------------------------------------------------------------------------------------
// Expressions (spec 8)

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// Which node it is.
    pub id: NodeId,
    /// What it is.
    pub kind: ExprKind,
    /// Where it stands.
    pub span: Span,
}

/// An integer literal (spec 6.4.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntLiteral {
    /// Its value, never negative.
    pub value: BigInt,
    /// `8w`, `8s`: width and sign; without, the literal is an `int` of any precision.
    pub width: Option<LiteralWidth>,
    /// Its base, 2, 8, 10 or 16, for printing it back.
    pub base: u8,
}

/// The width of an integer literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiteralWidth {
    /// In bits.
    pub bits: u32,
    /// `s` rather than `w`.
    pub signed: bool,
}

/// The forms of expressions.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    /// `5`, `8w0xFF`
    Int(IntLiteral),
    /// `true`, `false`
    Bool(bool),
    /// `"text"`, escapes resolved
    String(Symbol),
    /// `x`, `.x`
    Name(Path),
    /// `this`, within an abstract method's implementation
    This,
    /// `e.m`
    Member(Box<Expr>, Ident),
    /// `T.m`, where `T` is a written type that is no plain name: `error.NoError`, `X<bit<8>>.y`
    TypeMember(TypeExpr, Ident),
    /// `e[i]`
    Index(Box<Expr>, Box<Expr>),
    /// `e[high:low]`
    Slice(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `(T) e`
    Cast(TypeExpr, Box<Expr>),
    /// `op e`
    Unary(UnaryOp, Box<Expr>),
    /// `l op r`
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `c ? t : f`
    Ternary(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `f<T>(..)`: a call of a function, method or action, `t.apply()`; or the constructor of
    /// a nameless instance when the callee is a name of a type.
    Call {
        /// What is called.
        callee: Box<Expr>,
        /// Its type arguments.
        type_arguments: Vec<TypeExpr>,
        /// Its arguments.
        arguments: Vec<Argument>,
    },
    /// `T<U>(..)`: the constructor of a nameless instance, where the parser knows `T` to be a type.
    Construct(TypeExpr, Vec<Argument>),
    /// `{ e, .. }`, `{ e, ... }` (`dots`: the rest takes default values, spec 8.28)
    List {
        /// The elements.
        elements: Vec<Expr>,
        /// Whether `...` ends it.
        dots: bool,
    },
    /// `{ a = e, .. }`, `{ a = e, ... }` (spec 8.14)
    Record {
        /// Names and values.
        fields: Vec<(Ident, Expr)>,
        /// Whether `...` ends it.
        dots: bool,
    },
    /// `{#}`, an invalid header (spec 8.18)
    InvalidHeader,
    /// `...` alone, the default value of a type (spec 8.28)
    Dots,
    /// `_` or `default` where an expression is awaited (`switch` labels, arguments)
    Default,
    /// `_` as an argument: an `out` value thrown away
    DontCare,
    /// What the parser could not make sense of; it has told the user.
    Invalid,
}

/// An argument: `e`, `name = e`, `_`.
#[derive(Debug, Clone, PartialEq)]
pub struct Argument {
    /// The parameter's name, when given.
    pub name: Option<Ident>,
    /// The value; `_` is [`ExprKind::DontCare`].
    pub value: Expr,
    /// The whole argument.
    pub span: Span,
}

/// Operators before an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `!`
    Not,
    /// `~`
    Complement,
    /// `-`
    Negate,
    /// `+`
    Plus,
}

/// Operators between two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Mod,
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `|+|`, saturating
    AddSat,
    /// `|-|`, saturating
    SubSat,
    /// `<<`
    Shl,
    /// `>>`
    Shr,
    /// `&`
    BitAnd,
    /// `^`
    BitXor,
    /// `|`
    BitOr,
    /// `++`, concatenation
    Concat,
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `&&`
    And,
    /// `||`
    Or,
}

impl UnaryOp {
    /// The operator as written.
    pub fn symbol(self) -> &'static str {
        match self {
            UnaryOp::Not => "!",
            UnaryOp::Complement => "~",
            UnaryOp::Negate => "-",
            UnaryOp::Plus => "+",
        }
    }
}

impl BinaryOp {
    /// The operator as written.
    pub fn symbol(self) -> &'static str {
        match self {
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::Mod => "%",
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::AddSat => "|+|",
            BinaryOp::SubSat => "|-|",
            BinaryOp::Shl => "<<",
            BinaryOp::Shr => ">>",
            BinaryOp::BitAnd => "&",
            BinaryOp::BitXor => "^",
            BinaryOp::BitOr => "|",
            BinaryOp::Concat => "++",
            BinaryOp::Eq => "==",
            BinaryOp::Ne => "!=",
            BinaryOp::Lt => "<",
            BinaryOp::Le => "<=",
            BinaryOp::Gt => ">",
            BinaryOp::Ge => ">=",
            BinaryOp::And => "&&",
            BinaryOp::Or => "||",
        }
    }
}
