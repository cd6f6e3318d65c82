//! The kinds of messages, each with a stable name.

use std::fmt;

macro_rules! codes {
    ($( $(#[doc = $doc:literal])* $variant:ident = $name:literal $class:ident $section:literal, )*) => {
        /// A kind of message. Its name stands in brackets in each message, `--explain NAME` has a page about it, and
        /// `--Wdisable=NAME` and `@noWarn("NAME")` speak of warnings by it. Warnings that p4c has too have p4c's names.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $( $(#[doc = $doc])* $variant, )*
        }

        impl Code {
            /// All kinds, in the order of the stages that find them.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];

            /// The name: lower case, words joined by `-`.
            pub fn name(self) -> &'static str {
                match self { $(Code::$variant => $name,)* }
            }

            /// Whether such a message is an error or, unless told otherwise, a warning.
            pub fn class(self) -> Class {
                match self { $(Code::$variant => Class::$class,)* }
            }

            /// The section of the P4_16 specification (draft after 1.2.5) that holds the rule; empty where another document does.
            pub fn section(self) -> &'static str {
                match self { $(Code::$variant => $section,)* }
            }
        }
    };
}

/// What a kind of message does to the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Refuses it.
    Error,
    /// Doubts it.
    Warning,
}

codes! {
    // The preprocessor.
    /// A file that cannot be read.
    UnreadableFile = "unreadable-file" Error "",
    /// `#include` of a file that is nowhere.
    MissingInclude = "missing-include" Error "6.2",
    /// Files that include each other without end.
    IncludeDepth = "include-depth" Error "6.2",
    /// More files than the compiler reads.
    IncludeCount = "include-count" Error "6.2",
    /// A file longer than the compiler reads.
    FileSize = "file-size" Error "",
    /// A directive that is written wrong.
    BadDirective = "bad-directive" Error "6.2",
    /// A line that begins with `#` and is nearly a directive.
    IgnoredDirective = "ignored-directive" Warning "6.2",
    /// The condition of an `#if` that cannot be computed.
    BadCondition = "bad-condition" Error "6.2",
    /// A `#define` that is written wrong.
    BadDefine = "bad-define" Error "6.2",
    /// An `#if` without `#endif`.
    OpenConditional = "open-conditional" Error "6.2",
    /// An `#else` or `#endif` without `#if`.
    StrayConditional = "stray-conditional" Error "6.2",
    /// A macro called with the wrong arguments.
    MacroArguments = "macro-arguments" Error "6.2",
    /// Macros nested too deeply.
    MacroDepth = "macro-depth" Error "6.2",
    /// Macros whose text grows beyond measure.
    MacroGrowth = "macro-growth" Error "6.2",
    /// `#error`
    HashError = "hash-error" Error "6.2",
    /// `#warning`
    HashWarning = "hash-warning" Warning "6.2",
    /// A macro defined twice, differently.
    MacroRedefined = "macro-redefined" Warning "6.2",

    // Tokens and grammar.
    /// A character or string that begins no token.
    BadToken = "bad-token" Error "6.4",
    /// An integer literal that is written wrong.
    BadInteger = "bad-integer" Error "6.4.3.2",
    /// A token where the grammar has another.
    UnexpectedToken = "unexpected-token" Error "6.5",
    /// Nesting beyond what the compiler follows.
    TooDeep = "too-deep" Error "",
    /// A declaration where none can stand.
    MisplacedDeclaration = "misplaced-declaration" Error "12",
    /// A statement where none can stand.
    MisplacedStatement = "misplaced-statement" Error "12",
    /// An annotation where none can stand.
    MisplacedAnnotation = "misplaced-annotation" Error "20",
    /// A control without `apply` block.
    MissingApply = "missing-apply" Error "14",
    /// A parser without states.
    MissingState = "missing-state" Error "13.2",
    /// `apply` of a type that cannot be applied.
    BadApplication = "bad-application" Error "15.1",
    /// Type arguments of the wrong number in a built-in type.
    TypeArguments = "type-arguments" Error "7.2.8",
    /// An empty list of type parameters.
    TypeParameters = "type-parameters" Error "7.2",
    /// A variable at the top level.
    TopLevelVariable = "top-level-variable" Error "11.2",
    /// Values of an enum without type, or none of one with.
    EnumValue = "enum-value" Error "7.2.1",

    // Names.
    /// A name that is not declared.
    UndeclaredName = "undeclared-name" Error "6.9",
    /// A name declared twice in one scope.
    DuplicateDeclaration = "duplicate-declaration" Error "6.6.1",
    /// A declaration that hides a parameter.
    ShadowedParameter = "shadowed-parameter" Error "6.9",
    /// A member, field or method that is not there.
    NoSuchMember = "no-such-member" Error "8",

    // Types.
    /// A value of a type where another type is awaited.
    TypeError = "type-error" Error "8.12.2",
    /// An operator on values that it does not take.
    Operator = "operator" Error "8",
    /// A cast that does not exist.
    Cast = "cast" Error "8.12.1",
    /// A type or width that cannot be inferred.
    Inference = "inference" Error "8.26",
    /// A width or size that is none.
    Width = "width" Error "7.1.6",
    /// A literal that does not fit its own width.
    Literal = "literal" Error "6.4.3",
    /// An enum declared wrong.
    EnumDeclaration = "enum-declaration" Error "7.2.1",
    /// A type inside of a type that cannot hold it.
    TypeNesting = "type-nesting" Error "7.2.9",
    /// A declaration that needs itself.
    Recursion = "recursion" Error "7.2.9",
    /// A generic type with the wrong number of arguments, or none.
    Specialization = "specialization" Error "7.2.12",
    /// `type` of a type that has no new types.
    NewType = "new-type" Error "7.6",
    /// `void`, where a value is awaited.
    VoidValue = "void-value" Error "7.1.1",
    /// A match kind that is not declared, or one declared twice.
    MatchKind = "match-kind" Error "7.1.3",
    /// An error that is not declared, or one declared twice.
    ErrorName = "error-name" Error "7.1.2",

    // Expressions.
    /// An expression that is no value.
    NotAValue = "not-a-value" Error "8",
    /// A write to what cannot be written.
    NotAnLvalue = "not-an-lvalue" Error "6.7",
    /// A value that must be known at compile time.
    NotConstant = "not-constant" Error "18.1",
    /// An index out of bounds, or of a value that has none.
    Index = "index" Error "8.19",
    /// A structure-valued expression that is written wrong.
    StructureExpression = "structure-expression" Error "8.14",
    /// Arguments that do not fit the parameters.
    Call = "call" Error "8.22",
    /// An argument or parameter whose direction is wrong.
    ParameterDirection = "parameter-direction" Error "6.8",
    /// A default value or `@optional` where none can be.
    OptionalParameter = "optional-parameter" Error "6.8.2",
    /// A constructor called where or as it cannot be.
    Instantiation = "instantiation" Error "11.3",
    /// An abstract method missing, or implemented wrong.
    AbstractMethod = "abstract-method" Error "11.3.1",
    /// An extern declared wrong.
    ExternDeclaration = "extern-declaration" Error "7.2.11",
    /// A parser, control or table applied where it cannot be.
    Apply = "apply" Error "14.4",
    /// `static_assert` that does not hold.
    StaticAssert = "static-assert" Error "19",

    // Statements and declarations.
    /// A statement that cannot stand where it does.
    Statement = "statement" Error "12",
    /// A variable of a type that variables cannot have.
    Variable = "variable" Error "11.2",
    /// A `return` that does not fit its function.
    Return = "return" Error "12.4",
    /// A `switch` that does not hold together.
    Switch = "switch" Error "12.7",
    /// A loop that does not hold together.
    Loop = "loop" Error "12.8",
    /// An action that does not hold together.
    Action = "action" Error "14.1",
    /// A table that does not hold together.
    Table = "table" Error "14.2.1",
    /// An entry of a table that does not fit it.
    Entry = "entry" Error "14.2.1.4",
    /// Two entries with one key.
    DuplicateEntry = "duplicate-entry" Error "14.2.1.4",
    /// States or transitions that do not hold together.
    ParserState = "parser-state" Error "13.4",
    /// A parser that never ends.
    EndlessParser = "endless-parser" Error "13.4",
    /// A `select` that does not fit its keys.
    Select = "select" Error "13.6",
    /// `extract`, `lookahead` or `verify` of what they do not take.
    Extraction = "extraction" Error "13.8",
    /// A value set that does not fit.
    ValueSet = "value-set" Error "13.11",
    /// An annotation whose body is wrong.
    Annotation = "annotation" Error "20",
    /// Two objects of one name for the control plane.
    ControlPlaneName = "control-plane-name" Error "18.3",
    /// The program has no `main`.
    NoMain = "no-main" Error "6.6",

    // Architecture, target, control plane.
    /// A rule of v1model broken.
    Architecture = "architecture" Error "",
    /// A limit of BMv2 met.
    Target = "target" Error "",
    /// Two `@id` alike.
    DuplicateId = "duplicate-id" Error "",
    /// An `@id` with the prefix of another kind of object.
    WrongIdPrefix = "wrong-id-prefix" Error "",
    /// Two objects of one name in the P4Info.
    DuplicateName = "duplicate-name" Error "18.3",

    // Warnings, by p4c's names.
    /// What is declared and not used.
    Unused = "unused" Warning "",
    /// A declaration that hides another.
    Shadow = "shadow" Warning "6.9",
    /// A transition that is left out or never taken.
    ParserTransition = "parser-transition" Warning "13.5",
    /// A parser that never accepts.
    Unreachable = "unreachable" Warning "13.4",
    /// Something that is not there and is awaited.
    Missing = "missing" Warning "12.7",
    /// A constant where a variable makes sense.
    Mismatch = "mismatch" Warning "14.2.1.1",
    /// A value that does not fit its type.
    Overflow = "overflow" Warning "8.7",
    /// Arguments that overlap.
    Ordering = "ordering" Warning "6.8",
    /// Something marked `@deprecated`.
    Deprecated = "deprecated" Warning "20.3.8",
    /// A property or key that is ignored.
    IgnoreProp = "ignore-prop" Warning "14.2.1",
    /// Something that cannot mean what it says.
    Invalid = "invalid" Warning "",
    /// A variable that may be read before it is written.
    UninitializedUse = "uninitialized-use" Warning "11.2",
    /// An `out` parameter that may keep no value.
    UninitializedOutParam = "uninitialized-out-param" Warning "6.8",
    /// An element of a stack that is read before it is extracted.
    Uninitialized = "uninitialized" Warning "8.20",
    /// A field of a header that may be invalid.
    InvalidHeader = "invalid-header" Warning "8.18",
    /// An annotation that is ignored.
    Ignore = "ignore" Warning "20",
    /// A name that the compiler does not know.
    Unknown = "unknown" Warning "20",
    /// Entries of one priority.
    DuplicatePriorities = "duplicate-priorities" Warning "14.2.1.4",
    /// Entries not in the order of their priorities.
    EntriesOutOfPriorityOrder = "entries-out-of-priority-order" Warning "14.2.1.4",
    /// An entry that never matches.
    Keys = "keys" Warning "14.2.1.4",

    // Warnings that p4c does not have.
    /// A parser state without way to it.
    UnreachableState = "unreachable-state" Warning "13.4",
}

impl Code {
    /// The kind of this name; `_` may stand for `-`, as in p4c's older releases.
    pub fn from_name(name: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|c| c.name() == name || c.name() == name.replace('_', "-"))
    }

    /// The names that look like this one, the likeliest first, to guess at what was meant.
    pub fn similar(name: &str) -> Vec<&'static str> {
        let mut near: Vec<(usize, &'static str)> = Code::ALL
            .iter()
            .map(|c| (crate::names::distance(c.name(), name), c.name()))
            .filter(|(d, n)| *d <= 3 && *d < n.len().min(name.len()))
            .collect();
        near.sort();
        near.into_iter().take(3).map(|(_, n)| n).collect()
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_lead_back() {
        for code in Code::ALL {
            assert_eq!(Code::from_name(code.name()), Some(*code));
            assert!(code.name().bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{code}");
        }
        assert_eq!(Code::from_name("parser_transition"), Some(Code::ParserTransition));
        assert_eq!(Code::from_name("unuse"), None);
        assert_eq!(Code::similar("unusd"), ["unused"]);
    }
}
