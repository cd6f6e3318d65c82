//! A program's files: BMv2's JSON does not say where parser states are declared, so they are looked for there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fairlane_pipeline::{Program, Source};

/// Where parser states are declared.
#[derive(Debug)]
pub struct StateLines {
    files: BTreeMap<PathBuf, String>,
}

impl StateLines {
    /// Reads the program's files, as far as they are there. `root`: the folder from which their names count.
    pub fn of(program: &Program, root: &Path) -> StateLines {
        let notes = program.notes();
        let conditions = notes.conditions.iter().filter_map(|c| c.source.as_ref());
        let all = notes.primitives.iter().chain(&notes.actions).chain(&notes.tables).flatten().chain(conditions);
        let mut left: Vec<PathBuf> = all.map(|s| PathBuf::from(&s.file)).collect();
        let json: serde_json::Value = serde_json::from_str(program.source()).unwrap_or_default();
        left.extend(json["program"].as_str().map(PathBuf::from));
        let mut files = BTreeMap::new();
        while let Some(path) = left.pop() {
            if files.contains_key(&path) {
                continue;
            }
            let Ok(text) = std::fs::read_to_string(root.join(&path)) else { continue };
            let included = text.lines().filter_map(|line| line.trim_start().strip_prefix("#include \"")?.split('"').next());
            left.extend(included.map(|name| path.with_file_name(name)));
            files.insert(path, text);
        }
        StateLines { files }
    }

    /// Where a state is declared.
    pub fn find(&self, state: &str) -> Option<Source> {
        let declares =
            |line: &str| line.trim_start().strip_prefix("state ").is_some_and(|rest| rest.split([' ', '{']).next() == Some(state));
        self.files.iter().find_map(|(file, text)| {
            let (line, fragment) = (1..).zip(text.lines()).find(|(_, line)| declares(line))?;
            Some(Source { file: file.display().to_string(), line, column: 0, fragment: fragment.to_string() })
        })
    }
}
