//! `fairlane-switch`: a P4 switch with the command line of `simple_switch_grpc`.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use fairlane_device::pipeline::Program;
use fairlane_device::Device;
use fairlane_realtime::cli::{self, CliError, Options};
use fairlane_realtime::engine::Engine;
use fairlane_realtime::signals::Termination;
use fairlane_realtime::{clock, logging};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let options = match cli::parse(&arguments) {
        Ok(options) => options,
        Err(CliError::Text(text)) => {
            print!("{text}");
            return ExitCode::SUCCESS;
        }
        Err(CliError::Bad(message)) => return fail(&message),
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => fail(&message),
    }
}

fn fail(message: &str) -> ExitCode {
    eprintln!("fairlane-switch: {message}");
    ExitCode::FAILURE
}

fn run(options: &Options) -> Result<(), String> {
    logging::install(&options.log, options.log_level).map_err(|error| format!("--log-file: {error}"))?;
    for note in &options.notes {
        eprintln!("fairlane-switch: note: {note}");
    }
    let mut device = Device::new(options.device.clone());
    if let Some(path) = &options.program {
        device.load(clock::now(), Arc::new(load(path)?));
    }
    // Before any thread is started, so that all inherit the blocked signals.
    let termination = Termination::take_over().map_err(|error| error.to_string())?;
    let engine = Engine::new(device, options, termination).map_err(|error| error.to_string())?;
    ready(options);
    engine.run().map_err(|error| error.to_string())
}

fn load(path: &Path) -> Result<Program, String> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{shown}: {error}"))?;
    Program::from_json(&text).map_err(|error| format!("{shown}: {error}"))
}

/// Tells whoever started the switch that frames flow and requests are served.
fn ready(options: &Options) {
    let ports: Vec<String> = options.interfaces.iter().map(|(port, name)| format!("{port}@{name}")).collect();
    let mut stdout = std::io::stdout().lock();
    // Nobody may be listening; the switch runs all the same.
    let _ = writeln!(stdout, "ready device {} grpc {} ports {}", options.device_id, options.grpc_address, ports.join(" "));
    let _ = stdout.flush();
}
