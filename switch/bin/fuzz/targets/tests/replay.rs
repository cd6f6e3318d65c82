//! Every file of the corpora through its target: what once was found is never lost again.

use std::path::{Path, PathBuf};

use fairlane_fuzz_targets::{find, names, TARGETS};

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    found.sort();
    found
}

fn replay(target: &str) {
    let target = find(target).unwrap_or_else(|| panic!("no target {target}: there are {}", names()));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(target.name);
    let corpus = files(&folder);
    assert!(!corpus.is_empty(), "{}: empty", folder.display());
    for file in corpus {
        // Shown when the test fails.
        println!("{}", file.display());
        (target.run)(&std::fs::read(&file).expect("a file of the corpus"));
    }
    // The shortest inputs of all.
    for data in [&[][..], &[0], &[255; 3], &[0; 64], &[255; 64]] {
        (target.run)(data);
    }
}

macro_rules! replays {
    ($($name:ident),*) => {
        $(#[test]
        fn $name() {
            replay(stringify!($name));
        })*

        #[test]
        fn each_target_is_replayed() {
            let replayed = [$(stringify!($name)),*];
            assert_eq!(replayed.to_vec(), TARGETS.iter().map(|target| target.name).collect::<Vec<_>>());
        }
    };
}

replays!(preprocess, parse, compile, json, packet, p4runtime, stf);
