//! The command line: that of `p4c-bm2-ss`, and with `--driver` that of the driver `p4c`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Parser};

use super::messages::Format;

/// Compiles a P4_16 program for the v1model or PSA architecture.
#[derive(Debug, Parser)]
#[command(name = "fairlane-compile", version, about)]
pub struct Arguments {
    /// The program.
    #[arg(required_unless_present = "explain")]
    pub program: Option<PathBuf>,
    /// Explains a kind of message, with an example; without a name, lists all kinds.
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "", conflicts_with = "program")]
    pub explain: Option<String>,
    /// Where the BMv2 JSON goes; into a folder it goes under the program's name.
    #[arg(short = 'o', long = "output", value_name = "FILE|DIR")]
    pub output: Option<PathBuf>,
    /// Where the P4Info goes, by comma; the suffix tells the format: .txtpb, .txt, .json, .bin.
    #[arg(long = "p4runtime-files", value_name = "FILES", value_delimiter = ',')]
    pub p4runtime_files: Vec<PathBuf>,
    /// Where the entries of the program go as a P4Runtime WriteRequest, by comma; suffixes as above.
    #[arg(long = "p4runtime-entries-files", value_name = "FILES", value_delimiter = ',')]
    pub entries_files: Vec<PathBuf>,
    /// Where the P4Info goes, in the format that --p4runtime-format tells.
    #[arg(long = "p4runtime-file", value_name = "FILE")]
    pub p4runtime_file: Option<PathBuf>,
    /// Where the entries go, in the format that --p4runtime-format tells.
    #[arg(long = "p4runtime-entries-file", value_name = "FILE")]
    pub entries_file: Option<PathBuf>,
    /// Format of --p4runtime-file and --p4runtime-entries-file.
    #[arg(long, value_name = "FORMAT", default_value = "binary", value_enum)]
    pub p4runtime_format: Format,
    /// Only runs the preprocessor, and prints its output.
    #[arg(short = 'E')]
    pub preprocess: bool,
    /// Folders of included files.
    #[arg(short = 'I', value_name = "DIR")]
    pub include: Vec<PathBuf>,
    /// Macros: NAME or NAME=VALUE.
    #[arg(short = 'D', value_name = "MACRO")]
    pub define: Vec<String>,
    /// Macros to forget.
    #[arg(short = 'U', value_name = "MACRO")]
    pub undefine: Vec<String>,
    /// The architecture that the program must be for; else either.
    #[arg(short = 'a', long, value_parser = ["v1model", "psa"])]
    pub arch: Option<String>,
    /// The target.
    #[arg(short = 'b', long, default_value = "bmv2", value_parser = ["bmv2", "bmv2-ss-p4org"])]
    pub target: String,
    /// The version of the language: P4_16.
    #[arg(long = "std", short = 'x', alias = "p4v", default_value = "p4-16", value_parser = language)]
    pub std: String,
    /// Makes a kind of warning, or all, refuse the program.
    #[arg(long = "Werror", value_name = "KIND", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub error: Vec<String>,
    /// Hides a kind of warning, or all.
    #[arg(long = "Wdisable", value_name = "KIND", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub disable: Vec<String>,
    /// Shows a kind of warning, or all, as warnings again.
    #[arg(long = "Wwarn", value_name = "KIND", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub warn: Vec<String>,
    /// Shows a kind of warning, or all, as an information.
    #[arg(long = "Winfo", value_name = "KIND", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub info: Vec<String>,
    /// Shows so many errors at most, and counts the others.
    #[arg(long = "maxErrorCount", value_name = "N", default_value_t = 20)]
    pub max_errors: usize,
    /// Tells where the output goes.
    #[arg(short = 'v', long = "debug", action = ArgAction::Count)]
    pub verbose: u8,
    /// `-o` is a folder, `.` by default, as for p4c's driver.
    #[arg(long, hide = true)]
    pub driver: bool,

    // Accepted, since p4c's Makefiles and scripts have them.
    /// `-Wall` and the like change nothing.
    #[arg(short = 'W', value_name = "WHAT", hide = true)]
    pub w: Vec<String>,
    /// Steps and speed of p4c, which change nothing in the output: `-c`, `-S`, `-e`, `-g`.
    #[arg(short = 'c', short_aliases = ['S', 'e', 'g'], long = "compile", action = ArgAction::Count, hide = true,
          aliases = ["ndebug", "nocpp", "parser-inline-opt", "loopsUnroll", "emit-externs", "testJson", "doNotEmitIncludes"])]
    pub without_effect: u8,
    /// What p4c's own parts log, and which of them run.
    #[arg(short = 'T', long = "top4", aliases = ["excludeFrontendPasses", "excludeMidendPasses"], value_name = "WHAT", hide = true)]
    pub of_passes: Vec<String>,
    /// Files of p4c's own tree of the program, which this compiler does not have.
    #[arg(long = "toJSON", aliases = ["toJson", "dump", "pp"], value_name = "FILE", hide = true)]
    pub trees: Vec<PathBuf>,
}

fn language(text: &str) -> Result<String, String> {
    match text {
        "16" | "1.2" | "p4-16" | "p4_16" | "p4-16-v1model" | "P4₁₆" => Ok(text.to_owned()),
        "14" | "1.0" | "p4-14" | "p4_14" | "P4₁₄" => {
            Err("P4_14 is not supported; p4c translates such programs to P4_16: `p4test --std p4-14 --pp NEW.p4 OLD.p4`".into())
        }
        _ => Err("P4_16 (`p4-16`) is the only language".into()),
    }
}

/// Options of p4c that would change the output, and that this compiler cannot obey.
const REFUSED: [(&str, &str); 6] = [
    ("--fromJSON", "p4c's own tree of a program cannot be read: give the program itself"),
    ("--fromJson", "p4c's own tree of a program cannot be read: give the program itself"),
    ("--disable-annotations", "annotations cannot be switched off: leave them out of the program, or put them under `#ifdef`"),
    ("--metrics", "p4c's metrics of a program are not computed"),
    ("-M", "rules for make are not written: `cpp -M` writes them for a P4 program, too"),
    ("-###", "there are no commands to show: this compiler runs no others"),
];

/// The words of the command line, those of p4c's parts (`-Xp4c WORD`) among them; or why one is refused.
pub fn words(given: impl Iterator<Item = OsString>) -> Result<Vec<OsString>, String> {
    let mut out = Vec::new();
    let mut given = given;
    while let Some(word) = given.next() {
        let text = word.to_string_lossy().into_owned();
        let name = text.split_once('=').map_or(&*text, |(name, _)| name);
        if let Some((_, why)) = REFUSED.iter().find(|(refused, _)| *refused == name || *refused == "-M" && DEPENDENCIES.contains(&name)) {
            return Err(format!("{name}: {why}"));
        }
        match &*text {
            "-Xp4c" | "-Xpreprocessor" => out.extend(given.next()),
            "-Xassembler" | "-Xlinker" => {
                given.next();
            }
            // Levels of p4c's optimiser.
            _ if text.starts_with("-O") => {}
            _ => out.push(word),
        }
    }
    Ok(out)
}

const DEPENDENCIES: [&str; 7] = ["-M", "-MD", "-MF", "-MG", "-MP", "-MT", "-MQ"];
