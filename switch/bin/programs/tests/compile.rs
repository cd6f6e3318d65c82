//! The command line of `fairlane-compile`: where output goes, exit status, nothing written on errors.

#![cfg(unix)] // which names a program by its first word

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fairlane-switch")).arg0("fairlane-compile").args(arguments).output().unwrap()
}

fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn program() -> String {
    format!("{}/../../p4/compiler/tests/programs/control_flow.p4", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn writes_json_and_p4info_and_nothing_else() {
    let folder = scratch("output");
    let info = folder.join("x.p4info.txtpb");
    let out = run(&[
        "--target",
        "bmv2",
        "--arch",
        "v1model",
        "--std",
        "p4-16",
        "-o",
        folder.to_str().unwrap(),
        "--p4runtime-files",
        info.to_str().unwrap(),
        &program(),
    ]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let mut files: Vec<String> = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    files.sort();
    assert_eq!(files, ["control_flow.json", "x.p4info.txtpb"]);
    let json: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(folder.join("control_flow.json")).unwrap()).unwrap();
    assert_eq!(json["pipelines"][0]["name"], "ingress");
    assert!(std::fs::read_to_string(info).unwrap().contains("ProbeIngress.route"));
}

#[test]
fn a_program_in_error_exits_with_1_and_leaves_the_old_output() {
    let folder = scratch("errors");
    let (source, output) = (folder.join("bad.p4"), folder.join("bad.json"));
    std::fs::write(&source, "const bit<8> X = y;\nconst bit<4> X = true;\n").unwrap();
    std::fs::write(&output, "old").unwrap();
    let out = run(&["-o", output.to_str().unwrap(), source.to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(1));
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    for part in ["bad.p4:1:18", "bad.p4:2:14", "bad.p4:2:18", "3 errors"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(std::fs::read_to_string(&output).unwrap(), "old");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
}

#[test]
fn max_error_count_limits_what_is_shown_and_counts_all() {
    let folder = scratch("limit");
    let source = folder.join("bad.p4");
    std::fs::write(&source, (0..30).map(|i| format!("const bit<8> C{i} = y{i};\n")).collect::<String>()).unwrap();
    let shown = |flags: &[&str]| {
        let out = run(&[flags, &[source.to_str().unwrap()]].concat());
        assert_eq!(out.status.code(), Some(1));
        let text = String::from_utf8_lossy(&out.stderr).into_owned();
        (text.matches("error[").count(), text.lines().last().unwrap_or("").to_owned())
    };
    assert_eq!(shown(&[]), (20, "30 errors (10 not shown)".to_owned()));
    assert_eq!(shown(&["--maxErrorCount", "3"]), (3, "30 errors (27 not shown)".to_owned()));
    assert_eq!(shown(&["--maxErrorCount=100"]), (30, "30 errors".to_owned()));
    assert_eq!(run(&["--maxErrorCount", "many", source.to_str().unwrap()]).status.code(), Some(2));
}

#[test]
fn missing_files_and_unknown_formats_are_told() {
    let out = run(&["/nonexistent/x.p4"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&out.stderr).contains("cannot read /nonexistent/x.p4"));
    let out = run(&["--p4runtime-files", "/tmp/x.p4info", &program()]);
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("name the file .txtpb, .txt, .json or .bin"));
    let out = run(&["-o", "/nonexistent/x.json", &program()]);
    assert_eq!(out.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&out.stderr).contains("cannot write /nonexistent/x.json"));
    assert!(run(&["--version"]).status.success());
    let out = run(&["--arch", "psa", &program()]);
    assert_eq!(out.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&out.stderr).contains("is a program for v1model, not for psa"));
    assert_eq!(run(&["--arch", "tna", &program()]).status.code(), Some(2));
}

#[test]
fn the_driver_writes_into_a_folder_that_it_makes() {
    let folder = scratch("driver");
    let source = folder.join("x.p4_16.p4");
    std::fs::copy(program(), &source).unwrap();
    let build = folder.join("build/deep");
    let out = run(&["--driver", "-o", build.to_str().unwrap(), source.to_str().unwrap()]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(build.join("x.p4_16.json").is_file());
    let out = run(&["--driver", "-E", "-o", build.to_str().unwrap(), source.to_str().unwrap()]);
    assert!(out.status.success() && out.stdout.is_empty());
    assert!(build.join("x.p4_16.p4i").is_file());
}

#[test]
fn what_the_preprocessor_writes_compiles_to_the_same() {
    let folder = scratch("preprocessed");
    let (once, twice) = (folder.join("once.json"), folder.join("twice.json"));
    assert!(run(&["-o", once.to_str().unwrap(), &program()]).status.success());
    let out = run(&["-E", &program()]);
    assert!(out.status.success());
    let source = folder.join("x.p4i");
    std::fs::write(&source, &out.stdout).unwrap();
    let out = run(&["--nocpp", "-o", twice.to_str().unwrap(), source.to_str().unwrap()]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let read = |path: &Path| -> serde_json::Value {
        let mut json: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        json["program"] = serde_json::Value::Null;
        plain(&mut json);
        json
    };
    assert_eq!(read(&once), read(&twice));
}

/// Without columns and pieces of the source, in which comments and spaces stand; lines and files stay.
fn plain(json: &mut serde_json::Value) {
    match json {
        serde_json::Value::Array(all) => all.iter_mut().for_each(plain),
        serde_json::Value::Object(all) => {
            all.remove("column");
            all.remove("source_fragment");
            all.values_mut().for_each(plain);
        }
        _ => {}
    }
}

#[test]
fn options_of_p4c_are_taken_or_refused_in_a_sentence() {
    let taken = [
        "-c",
        "-S",
        "-g",
        "-O2",
        "--ndebug",
        "--parser-inline-opt",
        "--loopsUnroll",
        "-T",
        "x:3",
        "--top4",
        "FrontEnd,MidEnd",
        "--std",
        "16",
    ];
    assert!(run(&[&taken[..], &["-Xp4c", "--Wdisable", "-Xlinker", "x", &program()]].concat()).status.success());
    let out = run(&["--toJSON", "/nonexistent/tree.json", &program()]);
    assert!(out.status.success());
    assert!(String::from_utf8_lossy(&out.stderr).contains("/nonexistent/tree.json is not written"));
    for (option, sentence) in [
        ("--std=p4-14", "P4_14 is not supported"),
        ("--fromJSON=x", "give the program itself"),
        ("--disable-annotations=pkginfo", "cannot be switched off"),
        ("-MD", "rules for make are not written"),
        ("--metrics=loc", "are not computed"),
    ] {
        let out = run(&[option, &program()]);
        assert_eq!(out.status.code(), Some(2), "{option}");
        let text = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(text.contains(sentence), "{option}: {text}");
    }
}

#[test]
fn p4info_and_entries_are_the_same_message_in_every_format() {
    use prost::Message as _;
    use prost_reflect::{DescriptorPool, DynamicMessage};
    let folder = scratch("formats");
    let entries = format!("{}/../../../tests/p4/signed_action_data/signed_action_data.p4", env!("CARGO_MANIFEST_DIR"));
    let files = |name: &str| ["txtpb", "json", "bin"].map(|suffix| folder.join(format!("{name}.{suffix}")));
    let listed = |name: &str| files(name).map(|path| path.to_str().unwrap().to_owned()).join(",");
    let out = run(&["--p4runtime-files", &listed("info"), "--p4runtime-entries-files", &listed("entries"), &entries]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let pool = DescriptorPool::decode(fairlane_p4rt::proto::DESCRIPTORS).unwrap();
    for (name, message) in [("info", "p4.config.v1.P4Info"), ("entries", "p4.v1.WriteRequest")] {
        let kind = pool.get_message_by_name(message).unwrap();
        let [text, json, binary] = files(name).map(|path| std::fs::read(path).unwrap());
        let text = DynamicMessage::parse_text_format(kind.clone(), std::str::from_utf8(&text).unwrap()).unwrap();
        assert_eq!(text, DynamicMessage::decode(kind.clone(), &*binary).unwrap());
        let mut reader = serde_json::Deserializer::from_slice(&json);
        assert_eq!(text, DynamicMessage::deserialize(kind, &mut reader).unwrap());
        assert!(!text.encode_to_vec().is_empty());
    }
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(folder.join("info.json")).unwrap()).unwrap();
    // As protobuf's printer has it: names in camel case, 64 bits as text.
    assert_eq!(json["tables"][0]["matchFields"][0]["matchType"], "EXACT");
    assert!(json["tables"][0]["size"].is_string() && json["pkgInfo"]["arch"] == "v1model");
    let text = std::fs::read_to_string(folder.join("entries.txtpb")).unwrap();
    assert_eq!(text.matches("updates {").count(), 2);
    // -1, -2048, -4294967296, -1 as int<5>, int<12>, int<33> and int<72>.
    for value in [r"\037", r"\010\000", r"\001\000\000\000\000", &r"\377".repeat(9)] {
        assert!(text.contains(&format!("value: \"{value}\"")), "{value}: {text}");
    }
    let old = folder.join("old.p4info");
    let format = |name: &str| run(&["--p4runtime-file", old.to_str().unwrap(), "--p4runtime-format", name, &entries]).status.success();
    assert!(format("text") && std::fs::read(&old).unwrap() == std::fs::read(folder.join("info.txtpb")).unwrap());
    assert!(format("binary") && std::fs::read(&old).unwrap() == std::fs::read(folder.join("info.bin")).unwrap());
    assert!(format("json") && std::fs::read(&old).unwrap() == std::fs::read(folder.join("info.json")).unwrap());
}

#[test]
fn explains_messages_and_lists_them() {
    let page = run(&["--explain", "undeclared-name"]);
    assert!(page.status.success());
    let text = String::from_utf8_lossy(&page.stdout).into_owned();
    assert!(text.starts_with("# undeclared-name\n") && text.contains("section 6.9") && !text.contains("```"), "{text}");
    let list = run(&["--explain"]);
    assert!(list.status.success() && String::from_utf8_lossy(&list.stdout).contains("  unused "));
    let unknown = run(&["--explain", "undeclared-nam"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("there is `undeclared-name`"));
}

#[test]
fn options_about_warnings_count_in_their_order() {
    let folder = scratch("warnings");
    let source = folder.join("doubtful.p4");
    let text = std::fs::read_to_string(program()).unwrap();
    std::fs::write(&source, text.replace("state start {", "state lost { transition accept; }\n    state start {")).unwrap();
    let source = source.to_str().unwrap();
    let code = |options: &[&str]| run(&[options, &[source]].concat()).status.code();
    assert_eq!(code(&["--Werror"]), Some(1));
    assert_eq!(code(&["--Werror", "--Wwarn=unreachable-state"]), Some(0));
    assert_eq!(code(&["--Werror=unreachable-state", "--Wdisable=unreachable_state"]), Some(0));
    assert_eq!(code(&["--Wdisable=unreachable-state", "--Werror=unreachable-state"]), Some(1));
    let shown = |options: &[&str]| String::from_utf8_lossy(&run(&[options, &[source]].concat()).stderr).into_owned();
    assert!(shown(&[]).contains("warning[unreachable-state]"), "{}", shown(&[]));
    assert!(shown(&["--Winfo=unreachable-state"]).contains("info[unreachable-state]"));
    assert_eq!(shown(&["--Wdisable"]), "");
    assert!(shown(&["--Wdisable=unusd"]).contains("is `unused` meant?"));
}
