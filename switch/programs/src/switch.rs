//! `fairlane-switch`: a P4 switch with the command line of `simple_switch_grpc`.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use fairlane_device::pipeline::Program;
use fairlane_device::Device;
use fairlane_p4rt::{ServeError, Server, ServerConfig};
use fairlane_realtime::cli::{self, CliError, Options};
use fairlane_realtime::engine::Engine;
use fairlane_realtime::signals::{Reload, Termination};
use fairlane_realtime::{clock, handle, logging};

pub fn main() -> ExitCode {
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
    let reload = options.links.as_ref().map(|_| Reload::take_over()).transpose().map_err(|error| error.to_string())?;
    let (handle, jobs) = handle::pair().map_err(|error| error.to_string())?;
    // Before any file is opened for writing: a switch started twice must not empty the records of the first.
    let config = ServerConfig {
        address: options.grpc_address,
        device_id: options.device_id,
        epoch: clock::unix().wrapping_sub(clock::now()),
        limits: options.limits,
        tls: options.tls.clone(),
    };
    let server = Server::start(config, Arc::new(handle)).map_err(serve_error)?;
    let mut engine = Engine::new(device, options, termination, jobs).map_err(|error| error.to_string())?;
    reload.into_iter().for_each(|reload| engine.set_reload(reload));
    let sink = server.event_sink();
    engine.set_event_sink(Box::new(move |events, now| sink.deliver(events, now)));
    ready(options, server.local_addr());
    let ended = engine.run().map_err(|error| error.to_string());
    server.shutdown();
    ended
}

fn serve_error(error: ServeError) -> String {
    match error {
        ServeError::AddressInUse(address) => format!(
            "--grpc-server-addr {address}: TCP port {port} is in use: find by whom with `ss -ltnp sport = :{port}`, stop it, or \
             choose another port",
            port = address.port()
        ),
        ServeError::Tls(error) => format!("--grpc-server-ssl: {error}"),
        other => format!("--grpc-server-addr: {other}"),
    }
}

fn load(path: &Path) -> Result<Program, String> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{shown}: {error}"))?;
    Program::from_json(&text).map_err(|error| format!("{shown}: {error}"))
}

/// Tells whoever started the switch that frames flow and requests are served.
fn ready(options: &Options, grpc: SocketAddr) {
    let ports: Vec<String> = options.interfaces.iter().map(|(port, name)| format!("{port}@{name}")).collect();
    let mut stdout = std::io::stdout().lock();
    // Nobody may be listening; the switch runs all the same.
    let _ = writeln!(stdout, "ready device {} grpc {} ports {}", options.device_id, grpc, ports.join(" "));
    let _ = stdout.flush();
}
