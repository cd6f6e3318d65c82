//! The rules that a program can break.

use fairlane_syntax::Code;

macro_rules! rules {
    ($( $variant:ident = $section:literal $title:literal $code:ident, )*) => {
        /// A section of the P4_16 specification, an architecture, or a limit of the target.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Rule {
            $( $variant, )*
            /// The v1model architecture's.
            V1model,
            /// The Portable Switch Architecture's.
            Psa,
            /// A limit of BMv2.
            Bmv2,
        }

        impl Rule {
            /// The kind of message about a breach that has no kind of its own.
            pub(crate) fn code(self) -> Code {
                match self {
                    $( Rule::$variant => Code::$code, )*
                    Rule::V1model | Rule::Psa => Code::Architecture,
                    Rule::Bmv2 => Code::Target,
                }
            }

            /// Where the rule stands.
            pub(crate) fn source(self) -> Source {
                match self {
                    $( Rule::$variant => Source::Specification { section: $section, title: $title }, )*
                    Rule::V1model => Source::Target("the v1model architecture"),
                    Rule::Psa => Source::Target("the Portable Switch Architecture (PSA)"),
                    Rule::Bmv2 => Source::Target("the BMv2 target"),
                }
            }
        }
    };
}

/// Where a rule stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// In the P4_16 specification (draft after 1.2.5).
    Specification { section: &'static str, title: &'static str },
    /// In the documents of an architecture or a target.
    Target(&'static str),
}

rules! {
    Literals = "6.4.3" "literal constants" Literal,
    Programs = "6.6" "P4 programs" NoMain,
    Scopes = "6.6.1" "scopes" DuplicateDeclaration,
    LValues = "6.7" "l-values" NotAnLvalue,
    CallingConvention = "6.8" "calling convention" ParameterDirection,
    OptionalParameters = "6.8.2" "optional parameters" OptionalParameter,
    NameResolution = "6.9" "name resolution" UndeclaredName,
    Void = "7.1.1" "void" VoidValue,
    ErrorType = "7.1.2" "error" ErrorName,
    MatchKinds = "7.1.3" "match_kind" MatchKind,
    IntegerTypes = "7.1.6" "integers" Width,
    EnumTypes = "7.2.1" "enum" EnumDeclaration,
    HeaderStackTypes = "7.2.4" "header stacks" TypeNesting,
    StructTypes = "7.2.6" "struct" TypeNesting,
    TypeNesting = "7.2.9" "type nesting" TypeNesting,
    ExternTypes = "7.2.11" "extern types" ExternDeclaration,
    Specialization = "7.2.12" "type specialization" Specialization,
    DefaultValues = "7.3" "default values" TypeError,
    Typedefs = "7.5" "typedef" Recursion,
    NewTypes = "7.6" "new types" NewType,
    Expressions = "8" "expressions" NotAValue,
    EnumMembers = "8.3" "enum" NoSuchMember,
    Booleans = "8.5" "Booleans" Operator,
    ConditionalOperator = "8.5.1" "conditional operator" Operator,
    Bits = "8.7" "fixed-width bit types" Operator,
    Integers = "8.9" "arbitrary-precision integers" Operator,
    Concatenation = "8.10.1" "concatenation" Operator,
    Shifts = "8.10.2" "shifts" Operator,
    Casts = "8.12.1" "explicit casts" Cast,
    Tuples = "8.13" "tuples" Index,
    Structures = "8.14" "structure-valued expressions" StructureExpression,
    Sets = "8.16" "sets" Operator,
    StructFields = "8.17" "struct types" NoSuchMember,
    Headers = "8.18" "headers" NoSuchMember,
    Arrays = "8.19" "arrays" Index,
    HeaderStacks = "8.20" "header stacks" NoSuchMember,
    Calls = "8.22" "function calls" Call,
    Constructors = "8.23" "constructor invocations" Instantiation,
    ExternObjects = "8.24" "extern objects" NoSuchMember,
    Inference = "8.26" "type inference" Inference,
    Functions = "10" "functions" Return,
    Constants = "11.1" "constants" TypeError,
    Variables = "11.2" "variables" Variable,
    Instantiations = "11.3" "instantiations" Instantiation,
    AbstractMethods = "11.3.1" "abstract methods" AbstractMethod,
    TopLevelInstantiations = "11.3.2" "top-level instantiations" Instantiation,
    Statements = "12" "statements" Statement,
    Assignment = "12.1" "assignment statement" TypeError,
    Return = "12.4" "return statement" Return,
    Exit = "12.5" "exit statement" Statement,
    Conditional = "12.6" "conditional statement" TypeError,
    Switch = "12.7" "switch statement" Switch,
    SwitchOnAction = "12.7.1" "switch on action_run" Switch,
    SwitchOnValues = "12.7.2" "switch on values" Switch,
    AnySwitch = "12.7.3" "switch statements" Switch,
    For = "12.8" "for statement" Loop,
    ParserStates = "13.1" "parser states" ParserState,
    ParserLoops = "13.4" "parser states" ParserState,
    Transitions = "13.5" "transition statements" ParserState,
    Select = "13.6" "select expressions" Select,
    Verify = "13.7" "verify" Extraction,
    Extraction = "13.8" "data extraction" Extraction,
    FixedExtraction = "13.8.1" "fixed-width extraction" Extraction,
    VariableExtraction = "13.8.2" "variable-width extraction" Extraction,
    Lookahead = "13.8.3" "lookahead" Extraction,
    SubParsers = "13.10" "sub-parsers" Apply,
    ValueSets = "13.11" "value sets" ValueSet,
    Actions = "14.1" "actions" Action,
    ActionCalls = "14.1.1" "invoking actions" Action,
    Tables = "14.2" "tables" Table,
    Entries = "14.2.1" "entries" Entry,
    TableProperties = "14.2.1" "table properties" Table,
    TableCalls = "14.2.2" "match-action unit invocation" Apply,
    ControlCalls = "14.4" "invoking controls" Apply,
    KnownValues = "18.1" "compile-time known values" NotConstant,
    ControlPlaneNames = "18.3" "control-plane names" ControlPlaneName,
    ComputedControlPlaneNames = "18.3.1" "control-plane names" ControlPlaneName,
    StaticAssertions = "19" "static assertions" StaticAssert,
    Annotations = "20" "annotations" Annotation,
    ActionListAnnotations = "20.3.2" "action list annotations" Annotation,
}
