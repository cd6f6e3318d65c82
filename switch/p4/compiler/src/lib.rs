//! The P4_16 compiler: typed front end, v1model middle end, BMv2 JSON and P4Info back ends.
//! See docs/architecture.md.
//!
//! ```text
//! text --syntax--> tree --check--> types, calls --lower--> specialised program --passes--> --bmv2--> JSON
//!                                                                      \--> control plane --p4info--> P4Info
//! ```

#![forbid(unsafe_code)]

mod bmv2;
mod check;
pub mod control_plane;
pub mod explain;
mod flow;
pub mod index;
mod ir;
mod lint;
mod lower;
pub mod p4info;
mod passes;
mod quiet;
mod report;
mod rule;
mod types;
mod warnings;

use std::path::{Path, PathBuf};

use fairlane_syntax::{Diagnostic, Diagnostics, DiskFiles, Files, MacroOption, Parsed, SourceMap};
use serde_json::Value;

pub use fairlane_syntax::Code;
pub use warnings::{Warnings, Weight};

use control_plane::ControlPlane;
use report::Report;

/// What the compiler is told besides the program.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// `-I`: folders of included files, in order.
    pub include: Vec<PathBuf>,
    /// `-D`: macros, `NAME` or `NAME=VALUE`.
    pub define: Vec<String>,
    /// `-U`: macros to forget.
    pub undefine: Vec<String>,
    /// `--Wdisable`, `--Wwarn`, `--Werror`, `--Winfo`: what becomes of warnings.
    pub warnings: Warnings,
    /// `--maxErrorCount`: so many errors are shown; `None` for 20.
    pub max_errors: Option<usize>,
}

/// What came out of a compilation.
#[derive(Debug)]
pub struct Outcome {
    /// The BMv2 JSON; `None` when there are errors.
    pub json: Option<Value>,
    /// The P4Info in protobuf's text format; `None` when there are errors.
    pub p4info: Option<String>,
    /// What the program shows to the control plane.
    pub control_plane: Option<ControlPlane>,
    /// Errors and warnings.
    pub diagnostics: Diagnostics,
    /// The files read, to show the diagnostics.
    pub sources: SourceMap,
    /// The diagnostics as a terminal shows them; empty when there is nothing to say.
    pub rendered: String,
}

impl Outcome {
    /// Whether the program is accepted.
    pub fn is_ok(&self) -> bool {
        self.json.is_some()
    }
}

/// Compiles a file. A file that cannot be read is an error like others, in [`Outcome::diagnostics`].
pub fn compile(path: &Path, options: &Options) -> Outcome {
    match fairlane_syntax::parse_file(path, &syntax_options(options)) {
        Ok(parsed) => finish(&fairlane_syntax::shown(path), parsed, options),
        Err(e) => {
            let mut diagnostics = Diagnostics::default();
            let message = format!("cannot read {}: {e}", path.display());
            diagnostics.push(Diagnostic::error(Code::UnreadableFile, Default::default(), message).without_span());
            let sources = SourceMap::default();
            let rendered = diagnostics.render(&sources);
            Outcome { json: None, p4info: None, control_plane: None, diagnostics, sources, rendered }
        }
    }
}

/// Only runs the preprocessor (`-E`): its text, `None` where there are errors, and the messages as a terminal shows them.
///
/// # Errors
/// The file cannot be read.
pub fn preprocess(path: &Path, options: &Options) -> Result<(Option<String>, String), String> {
    let text = DiskFiles.read(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    let (tokens, sources, diagnostics) = fairlane_syntax::preprocess_text(path, text, &syntax_options(options), &DiskFiles);
    let text = (!diagnostics.has_errors()).then(|| fairlane_syntax::written(&tokens, &sources));
    Ok((text, diagnostics.render(&sources)))
}

/// Compiles a text as if it stood in a file of that name; included files come from the disk.
pub fn compile_source(name: &str, text: &str, options: &Options) -> Outcome {
    compile_source_with(name, text, options, &DiskFiles)
}

/// As [`compile_source`], included files from `files`.
pub fn compile_source_with(name: &str, text: &str, options: &Options, files: &dyn Files) -> Outcome {
    let parsed = fairlane_syntax::parse_text(Path::new(name), text, &syntax_options(options), files);
    finish(name, parsed, options)
}

fn syntax_options(options: &Options) -> fairlane_syntax::Options {
    let define = options.define.iter().cloned().map(MacroOption::Define);
    let undefine = options.undefine.iter().cloned().map(MacroOption::Undefine);
    fairlane_syntax::Options {
        include_dirs: options.include.clone(),
        macros: define.chain(undefine).collect(),
        max_errors: options.max_errors,
    }
}

/// What an editor needs of a program: its messages, and what each name stands for.
#[derive(Debug)]
pub struct Analysis {
    /// Errors and warnings.
    pub diagnostics: Diagnostics,
    /// The files read.
    pub sources: SourceMap,
    /// Declarations and uses; as complete as the errors allow.
    pub index: index::Index,
}

/// Analyses a text as if it stood in a file of that name, included files from `files`.
pub fn analyze(name: &Path, text: &str, options: &Options, files: &dyn Files) -> Analysis {
    let parsed = fairlane_syntax::parse_text(name, text, &syntax_options(options), files);
    let mut index = index::Index::default();
    let Outcome { diagnostics, sources, .. } = stages(&fairlane_syntax::shown(name), parsed, options, Some(&mut index));
    Analysis { diagnostics, sources, index }
}

fn finish(name: &str, parsed: Parsed, options: &Options) -> Outcome {
    stages(name, parsed, options, None)
}

/// All stages after the parser; fills the index if there is one.
fn stages(name: &str, parsed: Parsed, options: &Options, index: Option<&mut index::Index>) -> Outcome {
    let Parsed { program, sources, mut diagnostics } = parsed;
    let mut report = Report::default();
    let mut json = None;
    let mut p4info = None;
    let mut control_plane = None;
    // The checker goes on after syntax errors only to a point: what the parser left out would be missed twice.
    if !diagnostics.has_errors() {
        let mut doubts = Report::default();
        lint::annotations::check(&program, &mut report);
        lint::names::check(&program, &sources, &mut report, &mut doubts);
        let checked = check::check(&program, &mut report);
        if let Some(index) = index {
            *index = index::index(&checked);
        }
        if !report.has_errors() {
            lint::annotations::check_deprecated(&program, &sources, &mut doubts);
            lint::action_names::check(&checked, &mut report);
            flow::check(&checked, &mut doubts);
            diagnostics.extend(doubts.into_diagnostics());
        }
        if !report.has_errors() {
            if let Some((mut ir, plane)) = lower::lower(&checked, &mut report) {
                ir.parsers.iter_mut().for_each(passes::simplify_parser::run);
                passes::predicate_deparsers::run(&mut ir);
                passes::synthesize_actions::run(&mut ir, &sources, &mut report);
                let value = bmv2::emit(&ir, name, &sources, &mut report);
                if !report.has_errors() {
                    let text = p4info::emit(&plane, &mut diagnostics);
                    json = Some(value);
                    p4info = Some(text);
                }
                control_plane = Some(plane);
            } else {
                check::tell_divisions(&checked, &mut report);
            }
        }
    } else if let Some(index) = index {
        // What is there has names all the same; messages about what is missing would mislead.
        *index = index::index(&check::check(&program, &mut Report::default()));
    }
    diagnostics.extend(report.into_diagnostics());
    let quiet = quiet::Quiet::of(&program, &mut diagnostics);
    let mut warnings = options.warnings.clone();
    quiet.kinds.iter().for_each(|(kind, weight)| warnings.set(kind, *weight));
    diagnostics.reclassify(|d| if quiet.silences(d) { None } else { warnings.weigh(d.code) });
    diagnostics.sort();
    if diagnostics.has_errors() {
        json = None;
        p4info = None;
    }
    let rendered = diagnostics.render(&sources);
    Outcome { json, p4info, control_plane, diagnostics, sources, rendered }
}
