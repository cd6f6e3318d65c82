//! Small programs, their whole JSON and P4Info as goldens: `tests/programs/*.p4`.

use std::path::{Path, PathBuf};

use fairlane_compiler::{compile_source, Options, Outcome};

fn folder(name: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name))
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "p4"))
        .collect();
    files.sort();
    files
}

fn compile(path: &Path) -> Outcome {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    compile_source(&name, &std::fs::read_to_string(path).unwrap(), &Options::default())
}

#[test]
fn json_and_p4info_are_as_before() {
    let files = folder("programs");
    assert!(files.len() >= 4);
    for path in files {
        let outcome = compile(&path);
        let json = outcome.json.unwrap_or_else(|| panic!("{}", outcome.rendered));
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        insta::assert_snapshot!(format!("{stem}.json"), serde_json::to_string_pretty(&json).unwrap());
        insta::assert_snapshot!(format!("{stem}.p4info"), outcome.p4info.unwrap());
    }
}

#[test]
fn the_same_program_gives_the_same_text() {
    for path in folder("programs") {
        let text = |o: Outcome| (o.json.map(|j| j.to_string()), o.p4info);
        assert_eq!(text(compile(&path)), text(compile(&path)), "{}", path.display());
    }
}

/// Names, ids and widths that the loader looks up must be there.
#[test]
fn the_json_refers_only_to_what_it_declares() {
    for path in folder("programs") {
        let json = compile(&path).json.unwrap();
        let names =
            |key: &str| -> Vec<String> { json[key].as_array().unwrap().iter().map(|o| o["name"].as_str().unwrap().to_owned()).collect() };
        let (types, headers, stacks) = (names("header_types"), names("headers"), names("header_stacks"));
        for h in json["headers"].as_array().unwrap() {
            assert!(types.contains(&h["header_type"].as_str().unwrap().to_owned()));
        }
        let fields = |header: &str| -> Vec<String> {
            let h = json["headers"].as_array().unwrap().iter().find(|h| h["name"] == header).unwrap();
            let t = json["header_types"].as_array().unwrap().iter().find(|t| t["name"] == h["header_type"]).unwrap();
            t["fields"].as_array().unwrap().iter().map(|f| f[0].as_str().unwrap().to_owned()).collect()
        };
        let mut checked = 0;
        visit(&json, &mut |o| match o["type"].as_str() {
            Some("field") => {
                let (h, f) = (o["value"][0].as_str().unwrap(), o["value"][1].as_str().unwrap());
                assert!(headers.contains(&h.to_owned()), "{h}");
                assert!(f == "$valid$" || fields(h).contains(&f.to_owned()), "{h}.{f}");
                checked += 1;
            }
            Some("header") if o["value"].is_string() => assert!(headers.contains(&o["value"].as_str().unwrap().to_owned())),
            Some("header_stack") => assert!(stacks.contains(&o["value"].as_str().unwrap().to_owned())),
            _ => {}
        });
        assert!(checked > 0);
        let actions = json["actions"].as_array().unwrap();
        for p in json["pipelines"].as_array().unwrap() {
            let mut nodes: Vec<&str> = Vec::new();
            nodes.extend(p["tables"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()));
            nodes.extend(p["conditionals"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()));
            let known = |v: &serde_json::Value| v.is_null() || nodes.contains(&v.as_str().unwrap());
            assert!(known(&p["init_table"]));
            for t in p["tables"].as_array().unwrap() {
                assert!(t["next_tables"].as_object().unwrap().values().all(known));
                for (id, name) in t["action_ids"].as_array().unwrap().iter().zip(t["actions"].as_array().unwrap()) {
                    assert_eq!(actions[id.as_u64().unwrap() as usize]["name"], *name);
                }
            }
            for c in p["conditionals"].as_array().unwrap() {
                assert!(known(&c["true_next"]) && known(&c["false_next"]));
            }
        }
    }
}

fn visit(v: &serde_json::Value, f: &mut impl FnMut(&serde_json::Value)) {
    match v {
        serde_json::Value::Object(o) => {
            f(v);
            o.values().for_each(|x| visit(x, f));
        }
        serde_json::Value::Array(a) => a.iter().for_each(|x| visit(x, f)),
        _ => {}
    }
}

/// Readers of JSON bound its nesting (serde_json at 128), however long an expression is.
#[test]
fn long_expressions_do_not_nest_deeply() {
    fn depth(v: &serde_json::Value) -> usize {
        match v {
            serde_json::Value::Object(o) => 1 + o.values().map(depth).max().unwrap_or(0),
            serde_json::Value::Array(a) => 1 + a.iter().map(depth).max().unwrap_or(0),
            _ => 0,
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/control_flow.p4");
    let sum = ["hdr.probe.hops"; 200].join(" + ");
    let text = std::fs::read_to_string(path).unwrap().replace("hdr.probe.hops + 1", &sum);
    assert!(text.contains(&sum));
    let outcome = compile_source("sum.p4", &text, &Options::default());
    let json = outcome.json.unwrap_or_else(|| panic!("{}", outcome.rendered));
    assert!(depth(&json) < 100, "{}", depth(&json));
}
