//! The types of P4 (spec 7) as the checker computes with them.

use std::fmt::Write as _;

use fairlane_syntax::ast::Symbol;

/// A top-level declaration, by its position among the program's declarations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeclId(pub u32);

/// A type parameter of a generic declaration; unique in the program.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TypeParam {
    /// Its name, for messages.
    pub name: Symbol,
    /// What tells it from others of that name.
    pub id: u32,
}

/// A named type with its arguments. The name is for messages; identity is `decl` and `args`.
#[derive(Debug, Clone)]
pub struct Named {
    /// Where it is declared.
    pub decl: DeclId,
    /// Its name.
    pub name: Symbol,
    /// The arguments for its type parameters.
    pub args: Vec<Type>,
}

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        self.decl == other.decl && self.args == other.args
    }
}
impl Eq for Named {}
impl std::hash::Hash for Named {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.decl.hash(state);
        self.args.hash(state);
    }
}

/// A type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Type {
    /// What an expression with an error has: fits everywhere, so that one mistake is told once.
    Unknown,
    /// `void`
    Void,
    /// `bool`
    Bool,
    /// `int`, of any precision: compile-time values only.
    Int,
    /// `bit<w>`, `int<w>`
    Bits {
        /// Width in bits.
        width: u32,
        /// `int` rather than `bit`: two's complement.
        signed: bool,
    },
    /// `varbit<w>`
    Varbit(u32),
    /// `string`
    Str,
    /// `error`
    ErrorCode,
    /// `match_kind`
    MatchKind,
    /// A struct.
    Struct(Named),
    /// A header.
    Header(Named),
    /// A header union.
    Union(Named),
    /// An enum without a representation.
    Enum(Named),
    /// A serializable enum.
    SerEnum(Named, Box<Type>),
    /// `type T X`: its name and `T`.
    Newtype(Named, Box<Type>),
    /// A header or union stack.
    Stack(Box<Type>, u32),
    /// A tuple, and the type of `{a, b}`.
    Tuple(Vec<Type>),
    /// The type of `{x = a, y = b}`.
    Record(Vec<(Symbol, Type)>),
    /// `list<T>`
    List(Box<Type>),
    /// A set of values (spec 7.2.10.1): of keysets and value sets.
    Set(Box<Type>),
    /// An extern object type.
    Extern(Named),
    /// A parser or parser type.
    Parser(Named),
    /// A control or control type.
    Control(Named),
    /// A package type.
    Package(Named),
    /// A type parameter within its declaration.
    Param(TypeParam),
    /// A type to be found by inference.
    Infer(u32),
    /// The type of `{#}`.
    InvalidHeader,
    /// The type of `...`.
    Default,
    /// A table, by its number.
    Table(u32),
    /// What `apply` of a table yields.
    ApplyResult(u32),
    /// What `action_run` of a table yields.
    ActionRun(u32),
}

impl Type {
    /// `bit<width>`
    pub fn bit(width: u32) -> Type {
        Type::Bits { width, signed: false }
    }

    /// Whether anything about the type is unknown because of an error told before.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Type::Unknown)
    }

    /// The same type with another in the place of each that it is made of.
    pub fn map(&self, part: &impl Fn(&Type) -> Type) -> Type {
        let named = |n: &Named| Named { decl: n.decl, name: n.name.clone(), args: n.args.iter().map(part).collect() };
        match self {
            Type::Struct(n) => Type::Struct(named(n)),
            Type::Header(n) => Type::Header(named(n)),
            Type::Union(n) => Type::Union(named(n)),
            Type::Extern(n) => Type::Extern(named(n)),
            Type::Parser(n) => Type::Parser(named(n)),
            Type::Control(n) => Type::Control(named(n)),
            Type::Package(n) => Type::Package(named(n)),
            Type::Stack(t, n) => Type::Stack(Box::new(part(t)), *n),
            Type::Tuple(ts) => Type::Tuple(ts.iter().map(part).collect()),
            Type::Record(fs) => Type::Record(fs.iter().map(|(n, t)| (n.clone(), part(t))).collect()),
            Type::List(t) => Type::List(Box::new(part(t))),
            Type::Set(t) => Type::Set(Box::new(part(t))),
            _ => self.clone(),
        }
    }

    /// Replaces type parameters by types.
    pub fn substitute(&self, map: &[(u32, Type)]) -> Type {
        match self {
            _ if map.is_empty() => self.clone(),
            Type::Param(p) => map.iter().find(|(id, _)| *id == p.id).map_or_else(|| self.clone(), |(_, t)| t.clone()),
            _ => self.map(&|part| part.substitute(map)),
        }
    }
}

fn write_args(out: &mut String, args: &[Type]) {
    if !args.is_empty() {
        out.push('<');
        for (i, a) in args.iter().enumerate() {
            if i > 0 {
                out.push_str(", ");
            }
            let _ = write!(out, "{a}");
        }
        out.push('>');
    }
}

impl std::fmt::Display for Type {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut s = String::new();
        match self {
            Type::Unknown => s.push_str("<unknown>"),
            Type::Void => s.push_str("void"),
            Type::Bool => s.push_str("bool"),
            Type::Int => s.push_str("int"),
            Type::Bits { width, signed: false } => {
                let _ = write!(s, "bit<{width}>");
            }
            Type::Bits { width, signed: true } => {
                let _ = write!(s, "int<{width}>");
            }
            Type::Varbit(w) => {
                let _ = write!(s, "varbit<{w}>");
            }
            Type::Str => s.push_str("string"),
            Type::ErrorCode => s.push_str("error"),
            Type::MatchKind => s.push_str("match_kind"),
            Type::Struct(n)
            | Type::Header(n)
            | Type::Union(n)
            | Type::Enum(n)
            | Type::SerEnum(n, _)
            | Type::Newtype(n, _)
            | Type::Extern(n)
            | Type::Parser(n)
            | Type::Control(n)
            | Type::Package(n) => {
                s.push_str(&n.name);
                write_args(&mut s, &n.args);
            }
            Type::Stack(t, n) => {
                let _ = write!(s, "{t}[{n}]");
            }
            Type::Tuple(ts) => {
                s.push_str("tuple");
                if ts.is_empty() {
                    s.push_str("<>");
                }
                write_args(&mut s, ts);
            }
            Type::Record(fs) => {
                s.push_str("struct {");
                for (i, (n, t)) in fs.iter().enumerate() {
                    let _ = write!(s, "{} {t} {n};", if i == 0 { "" } else { " " });
                }
                s.push_str(" }");
            }
            Type::List(t) => {
                let _ = write!(s, "list<{t}>");
            }
            Type::Set(t) => {
                let _ = write!(s, "set<{t}>");
            }
            Type::Param(p) => s.push_str(&p.name),
            Type::Infer(_) => s.push('_'),
            Type::InvalidHeader => s.push_str("{#}"),
            Type::Default => s.push_str("..."),
            Type::Table(_) => s.push_str("table"),
            Type::ApplyResult(_) => s.push_str("apply_result"),
            Type::ActionRun(_) => s.push_str("action_list"),
        }
        f.write_str(&s)
    }
}
