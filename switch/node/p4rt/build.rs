//! Generates the protobuf and gRPC code of P4Runtime from the `.proto` files that the `finsy` Python package ships, without
//! `protoc`. Nothing generated is kept in the source tree.

use std::error::Error;
use std::path::{Path, PathBuf};

use prost::Message;

const VARIABLE: &str = "FAIRLANE_PROTO_DIR";
const ROOT: &str = "p4/v1/p4runtime.proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-env-changed={VARIABLE}");
    println!("cargo:rerun-if-changed=build.rs");
    let include = match proto_dir() {
        Ok(include) => include,
        Err(sentence) => {
            eprintln!("error: {sentence}");
            std::process::exit(1);
        }
    };
    for file in [ROOT, "p4/v1/p4data.proto", "p4/config/v1/p4info.proto", "p4/config/v1/p4types.proto", "google/rpc/status.proto"] {
        println!("cargo:rerun-if-changed={}", include.join(file).display());
    }
    let mut files = protox::compile([ROOT], [&include])?;
    // For tests that read P4Info in text form.
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("run this by cargo")?);
    std::fs::write(out.join("descriptors.bin"), files.encode_to_vec())?;
    // Its answers wait encoded for their clients: src/reading.rs serves it.
    files.file.iter_mut().flat_map(|file| &mut file.service).for_each(|service| service.method.retain(|method| method.name() != "Read"));
    tonic_prost_build::configure()
        .build_client(false)
        .build_server(std::env::var_os("CARGO_FEATURE_SERVER").is_some())
        // P4Info must compare and print the same in every run.
        .btree_map(".")
        // Their comments are not Rust documentation: code blocks in them would be taken for doctests.
        .disable_comments(["."])
        .compile_fds(files)?;
    Ok(())
}

/// Where the `.proto` files are: the environment variable, or the project's Python environment.
fn proto_dir() -> Result<PathBuf, String> {
    if let Some(value) = std::env::var_os(VARIABLE) {
        let dir = PathBuf::from(value);
        return if dir.join(ROOT).is_file() {
            Ok(dir)
        } else {
            Err(format!("{VARIABLE}={} has no {ROOT}: set it to the folder that holds `p4/` and `google/`", dir.display()))
        };
    }
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).ok_or("run this by cargo")?;
    let repository = manifest.ancestors().nth(3).unwrap_or(Path::new("/")).to_path_buf();
    let lib = repository.join(".venv/lib");
    let mut found: Vec<PathBuf> = std::fs::read_dir(&lib)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("site-packages/finsy/proto"))
        .filter(|dir| dir.join(ROOT).is_file())
        .collect();
    found.sort();
    found.pop().ok_or_else(|| {
        format!(
            "the P4Runtime .proto files are not in {}: run `make setup` in {} (it installs finsy, which ships them), \
             or set {VARIABLE} to the folder that holds `p4/` and `google/`",
            lib.join("python3*/site-packages/finsy/proto").display(),
            repository.display()
        )
    })
}
