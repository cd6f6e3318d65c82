//! `fairlane-switch`: a P4 switch with the command line of `simple_switch_grpc`.

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use fairlane_clients::Clients;
use fairlane_device::pipeline::{Observing, Program};
use fairlane_device::Device;
use fairlane_p4rt::{ServeError, Server, ServerConfig};
use fairlane_realtime::cli::{self, CliError, Options, ThriftOptions};
use fairlane_realtime::engine::{Engine, Observer};
use fairlane_realtime::handle::DeviceHandle;
use fairlane_realtime::logging::PacketLog;
use fairlane_realtime::say::{complain, say};
use fairlane_realtime::signals::{Reload, Termination};
use fairlane_realtime::{clock, descriptors, handle, logging};
use fairlane_thrift::{EventSink, Identity, Publisher, Server as ThriftServer, ServerConfig as ThriftConfig};

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
    complain(format_args!("fairlane-switch: {message}"));
    ExitCode::FAILURE
}

fn run(options: &Options) -> Result<(), String> {
    let log = logging::install(&options.log, options.log_level).map_err(|error| format!("--log-file: {error}"))?;
    if let Some(name) = &options.process_name {
        // Where this cannot be, the process keeps the name of its file.
        let _ = std::fs::write("/proc/self/comm", name);
    }
    for note in &options.notes {
        complain(format_args!("fairlane-switch: note: {note}"));
    }
    let mut device = Device::new(options.device.clone());
    if let Some(path) = &options.program {
        device.load(clock::now(), Arc::new(load(path)?)).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    // Before any thread is started, so that all inherit the blocked signals.
    let termination = Termination::take_over().map_err(|error| error.to_string())?;
    let reload = options.links.as_ref().map(|_| Reload::take_over()).transpose().map_err(|error| error.to_string())?;
    let (handle, jobs) = handle::pair().map_err(|error| error.to_string())?;
    let clients = Clients::new(descriptors::raise(), options.limits.max_message_bytes);
    // Before any file is opened for writing: a switch started twice must not empty the records of the first.
    let p4runtime = match options.grpc_address {
        Some(address) => {
            let config = ServerConfig {
                address,
                device_id: options.device_id,
                epoch: clock::unix().wrapping_sub(clock::now()),
                limits: options.limits,
                tls: options.tls.clone(),
                clients: clients.clone(),
            };
            Some(Server::start(config, Arc::new(handle.clone())).map_err(serve_error)?)
        }
        None => None,
    };
    let thrift = match &options.thrift {
        Some(thrift) => Some(start_thrift(options.device_id, thrift, &handle, clients)?),
        None => None,
    };
    let mut engine = Engine::new(device, options, termination, jobs).map_err(|error| error.to_string())?;
    reload.into_iter().for_each(|reload| engine.set_reload(reload));
    let (messages, notifications) = (p4runtime.as_ref().map(Server::event_sink), thrift.as_ref().map(ThriftServer::event_sink));
    if let Some(sink) = notifications.clone() {
        engine.set_port_sink(Box::new(move |port, up| sink.port(port, up)));
    }
    if options.device.observe > Observing::Nothing {
        engine.set_observer(observer(log.filter(|_| options.device.observe == Observing::Everything), notifications.clone()));
    }
    engine.set_event_sink(Box::new(move |events, device, now| {
        if let Some(sink) = &notifications {
            sink.deliver(&events, device, now);
        }
        if let Some(sink) = &messages {
            sink.deliver(events, now);
        }
    }));
    ready(options, p4runtime.as_ref().map(Server::local_addr), thrift.as_ref().map(ThriftServer::local_addr));
    let ended = engine.run().map_err(|error| error.to_string());
    drop(thrift);
    if let Some(server) = p4runtime {
        server.shutdown();
    }
    ended
}

/// Who takes the steps of packets: the packet log, and who subscribes to the event log.
fn observer(mut log: Option<PacketLog>, events: Option<EventSink>) -> Observer {
    Box::new(move |device| {
        device.set_observing(log.is_some() || events.as_ref().is_some_and(EventSink::wants_steps));
        for event in device.take_observed() {
            if let Some(events) = &events {
                events.step(&event);
            }
            if let Some(log) = &mut log
                && let Some((level, line)) = device.worded(&event)
            {
                log.write(level, &line);
            }
        }
        log.iter_mut().for_each(PacketLog::flush);
    })
}

fn start_thrift(device_id: u64, options: &ThriftOptions, handle: &DeviceHandle, clients: Clients) -> Result<ThriftServer, String> {
    let address = &options.notifications;
    let publisher = match Publisher::bind(address) {
        Ok(publisher) => Some(publisher),
        Err(error) if options.default_notifications => {
            complain(format_args!(
                "fairlane-switch: note: no notifications: {address}: {error} (is another switch of device {device_id} running? Give each \
                 its --device-id, or a --notifications-addr)"
            ));
            None
        }
        Err(error) => return Err(format!("--notifications-addr {address}: {error}: is another switch using it? Choose another")),
    };
    let event_log = options.event_log.as_ref().and_then(|address| {
        let bound = Publisher::bind(address);
        let complaint = |error: &std::io::Error| {
            complain(format_args!("fairlane-switch: note: no event log: --nanolog {address}: {error}: is another switch using it?"));
        };
        bound.inspect_err(complaint).ok()
    });
    let now = clock::now();
    let config = ThriftConfig {
        address: options.address,
        identity: Identity { device_id, epoch: clock::unix().wrapping_sub(now), started: now, swap: options.swap, ..Identity::default() },
        ports: Arc::new(handle.clone()),
        publisher,
        event_log,
        clock: clock::now,
        clients,
    };
    let port = options.address.port();
    ThriftServer::start(config, Arc::new(handle.clone())).map_err(|error| match error {
        fairlane_thrift::ServeError::AddressInUse(_) => format!(
            "--thrift-port {port}: TCP port {port} is in use: find by whom with `ss -ltnp sport = :{port}`, stop it, or choose another port"
        ),
        other => format!("--thrift-port {port}: {other}"),
    })
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
fn ready(options: &Options, grpc: Option<SocketAddr>, thrift: Option<SocketAddr>) {
    let ports: Vec<String> = options.interfaces.iter().map(|(port, name)| format!("{port}@{name}")).collect();
    let grpc = grpc.map_or_else(|| "none".to_string(), |address| address.to_string());
    let thrift = thrift.map_or_else(String::new, |address| format!(" thrift {address}"));
    say(format_args!("ready device {} grpc {grpc} ports {}{thrift}", options.device_id, ports.join(" ")));
}
