//! `--explain`: a page for each kind of message, kept as Markdown in `explain/`.

use fairlane_syntax::code::Class;
use fairlane_syntax::Code;

/// The page about a kind of message: what it means, a program in error, the mended program.
pub fn page(code: Code) -> &'static str {
    match code {
        Code::UnreadableFile => include_str!("../explain/unreadable-file.md"),
        Code::MissingInclude => include_str!("../explain/missing-include.md"),
        Code::IncludeDepth => include_str!("../explain/include-depth.md"),
        Code::IncludeCount => include_str!("../explain/include-count.md"),
        Code::FileSize => include_str!("../explain/file-size.md"),
        Code::BadDirective => include_str!("../explain/bad-directive.md"),
        Code::IgnoredDirective => include_str!("../explain/ignored-directive.md"),
        Code::BadCondition => include_str!("../explain/bad-condition.md"),
        Code::BadDefine => include_str!("../explain/bad-define.md"),
        Code::OpenConditional => include_str!("../explain/open-conditional.md"),
        Code::StrayConditional => include_str!("../explain/stray-conditional.md"),
        Code::MacroArguments => include_str!("../explain/macro-arguments.md"),
        Code::MacroDepth => include_str!("../explain/macro-depth.md"),
        Code::MacroGrowth => include_str!("../explain/macro-growth.md"),
        Code::HashError => include_str!("../explain/hash-error.md"),
        Code::HashWarning => include_str!("../explain/hash-warning.md"),
        Code::MacroRedefined => include_str!("../explain/macro-redefined.md"),
        Code::BadToken => include_str!("../explain/bad-token.md"),
        Code::BadInteger => include_str!("../explain/bad-integer.md"),
        Code::UnexpectedToken => include_str!("../explain/unexpected-token.md"),
        Code::TooDeep => include_str!("../explain/too-deep.md"),
        Code::MisplacedDeclaration => include_str!("../explain/misplaced-declaration.md"),
        Code::MisplacedStatement => include_str!("../explain/misplaced-statement.md"),
        Code::MisplacedAnnotation => include_str!("../explain/misplaced-annotation.md"),
        Code::MissingApply => include_str!("../explain/missing-apply.md"),
        Code::MissingState => include_str!("../explain/missing-state.md"),
        Code::BadApplication => include_str!("../explain/bad-application.md"),
        Code::TypeArguments => include_str!("../explain/type-arguments.md"),
        Code::TypeParameters => include_str!("../explain/type-parameters.md"),
        Code::TopLevelVariable => include_str!("../explain/top-level-variable.md"),
        Code::EnumValue => include_str!("../explain/enum-value.md"),
        Code::UndeclaredName => include_str!("../explain/undeclared-name.md"),
        Code::DuplicateDeclaration => include_str!("../explain/duplicate-declaration.md"),
        Code::ShadowedParameter => include_str!("../explain/shadowed-parameter.md"),
        Code::NoSuchMember => include_str!("../explain/no-such-member.md"),
        Code::TypeError => include_str!("../explain/type-error.md"),
        Code::Operator => include_str!("../explain/operator.md"),
        Code::Cast => include_str!("../explain/cast.md"),
        Code::Inference => include_str!("../explain/inference.md"),
        Code::Width => include_str!("../explain/width.md"),
        Code::Literal => include_str!("../explain/literal.md"),
        Code::EnumDeclaration => include_str!("../explain/enum-declaration.md"),
        Code::TypeNesting => include_str!("../explain/type-nesting.md"),
        Code::Recursion => include_str!("../explain/recursion.md"),
        Code::Specialization => include_str!("../explain/specialization.md"),
        Code::NewType => include_str!("../explain/new-type.md"),
        Code::VoidValue => include_str!("../explain/void-value.md"),
        Code::MatchKind => include_str!("../explain/match-kind.md"),
        Code::ErrorName => include_str!("../explain/error-name.md"),
        Code::NotAValue => include_str!("../explain/not-a-value.md"),
        Code::NotAnLvalue => include_str!("../explain/not-an-lvalue.md"),
        Code::NotConstant => include_str!("../explain/not-constant.md"),
        Code::Index => include_str!("../explain/index.md"),
        Code::StructureExpression => include_str!("../explain/structure-expression.md"),
        Code::Call => include_str!("../explain/call.md"),
        Code::ParameterDirection => include_str!("../explain/parameter-direction.md"),
        Code::OptionalParameter => include_str!("../explain/optional-parameter.md"),
        Code::Instantiation => include_str!("../explain/instantiation.md"),
        Code::AbstractMethod => include_str!("../explain/abstract-method.md"),
        Code::ExternDeclaration => include_str!("../explain/extern-declaration.md"),
        Code::Apply => include_str!("../explain/apply.md"),
        Code::StaticAssert => include_str!("../explain/static-assert.md"),
        Code::Statement => include_str!("../explain/statement.md"),
        Code::Variable => include_str!("../explain/variable.md"),
        Code::Return => include_str!("../explain/return.md"),
        Code::Switch => include_str!("../explain/switch.md"),
        Code::Loop => include_str!("../explain/loop.md"),
        Code::Action => include_str!("../explain/action.md"),
        Code::Table => include_str!("../explain/table.md"),
        Code::Entry => include_str!("../explain/entry.md"),
        Code::DuplicateEntry => include_str!("../explain/duplicate-entry.md"),
        Code::ParserState => include_str!("../explain/parser-state.md"),
        Code::EndlessParser => include_str!("../explain/endless-parser.md"),
        Code::Select => include_str!("../explain/select.md"),
        Code::Extraction => include_str!("../explain/extraction.md"),
        Code::ValueSet => include_str!("../explain/value-set.md"),
        Code::Annotation => include_str!("../explain/annotation.md"),
        Code::ControlPlaneName => include_str!("../explain/control-plane-name.md"),
        Code::NoMain => include_str!("../explain/no-main.md"),
        Code::Architecture => include_str!("../explain/architecture.md"),
        Code::Target => include_str!("../explain/target.md"),
        Code::DuplicateId => include_str!("../explain/duplicate-id.md"),
        Code::WrongIdPrefix => include_str!("../explain/wrong-id-prefix.md"),
        Code::DuplicateName => include_str!("../explain/duplicate-name.md"),
        Code::Unused => include_str!("../explain/unused.md"),
        Code::Shadow => include_str!("../explain/shadow.md"),
        Code::ParserTransition => include_str!("../explain/parser-transition.md"),
        Code::Unreachable => include_str!("../explain/unreachable.md"),
        Code::Missing => include_str!("../explain/missing.md"),
        Code::Mismatch => include_str!("../explain/mismatch.md"),
        Code::Overflow => include_str!("../explain/overflow.md"),
        Code::Ordering => include_str!("../explain/ordering.md"),
        Code::Deprecated => include_str!("../explain/deprecated.md"),
        Code::IgnoreProp => include_str!("../explain/ignore-prop.md"),
        Code::Invalid => include_str!("../explain/invalid.md"),
        Code::UninitializedUse => include_str!("../explain/uninitialized-use.md"),
        Code::UninitializedOutParam => include_str!("../explain/uninitialized-out-param.md"),
        Code::Uninitialized => include_str!("../explain/uninitialized.md"),
        Code::InvalidHeader => include_str!("../explain/invalid-header.md"),
        Code::Ignore => include_str!("../explain/ignore.md"),
        Code::Unknown => include_str!("../explain/unknown.md"),
        Code::DuplicatePriorities => include_str!("../explain/duplicate-priorities.md"),
        Code::EntriesOutOfPriorityOrder => include_str!("../explain/entries-out-of-priority-order.md"),
        Code::Keys => include_str!("../explain/keys.md"),
        Code::UnreachableState => include_str!("../explain/unreachable-state.md"),
    }
}

/// What `--explain NAME` shows.
///
/// # Errors
/// There is no such kind of message; the text says which are like it.
pub fn explain(name: &str) -> Result<String, String> {
    let Some(code) = Code::from_name(name.trim_matches(['[', ']'])) else {
        let near = Code::similar(name);
        let guess = if near.is_empty() { String::new() } else { format!("; there is `{}`", near.join("`, `")) };
        return Err(format!("there is no message `{name}`{guess}. `--explain` alone lists all"));
    };
    let mut out = plain(page(code));
    out.push('\n');
    out.push_str(&match (code.class(), code.section()) {
        (Class::Error, "") => "An error.\n".to_owned(),
        (Class::Error, section) => format!("An error. P4_16 specification, draft after 1.2.5, section {section}.\n"),
        (Class::Warning, section) => {
            let rule =
                if section.is_empty() { String::new() } else { format!(" P4_16 specification, draft after 1.2.5, section {section}.") };
            format!("A warning.{rule} `--Wdisable={code}` or `@noWarn(\"{code}\")` silences it, `--Werror={code}` makes it an error.\n")
        }
    });
    Ok(out)
}

/// A page as a terminal shows it: no fences, programs set in, and what stands around them said.
fn plain(page: &str) -> String {
    let mut out = String::new();
    let mut inside = false;
    for line in page.trim_end().lines() {
        match line.strip_prefix("```") {
            Some(_) if inside => inside = false,
            Some(fence) => {
                inside = true;
                let around = match fence {
                    "p4 control" => "    // in the ingress control; hdr.h is a header of bit<8> a and bit<16> b, meta.x a bit<8>\n",
                    "p4 parser" => "    // in the parser\n",
                    "p4 pkginfo" => "    // before `main`\n",
                    _ => "",
                };
                out.push_str(around);
            }
            None => {
                if inside && !line.is_empty() {
                    out.push_str("    ");
                }
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    out
}

/// What `--explain` alone shows: all kinds, each with the first sentence of its page.
pub fn list() -> String {
    let mut out = String::new();
    for (class, title) in [(Class::Error, "Errors"), (Class::Warning, "Warnings")] {
        out.push_str(title);
        out.push('\n');
        for code in Code::ALL.iter().filter(|c| c.class() == class) {
            out.push_str(&format!("  {:<30} {}\n", code.name(), summary(*code)));
        }
    }
    out
}

/// The first paragraph of a page, on one line.
pub fn summary(code: Code) -> String {
    let body = page(code).lines().skip_while(|l| l.is_empty() || l.starts_with('#'));
    body.take_while(|l| !l.is_empty()).collect::<Vec<_>>().join(" ")
}
