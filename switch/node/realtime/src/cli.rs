//! The command line of `simple_switch_grpc`, and what this switch adds to it.
//!
//! `fairlane-switch [OPTIONS] [PROGRAM.json] [-- TARGET OPTIONS]`: the general options come before `--`, those of the target after
//! it, as in BMv2.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Parser;
use fairlane_device::pipeline::Observing;
use fairlane_device::{parse_capacity, Capacity, DeviceConfig, Nanos, PortConfig, PortId, Scheduler, MAX_PORT, MAX_PRIORITIES};
use fairlane_p4rt::{Limits, TlsFiles};
use fairlane_units::text::{parse_delay, parse_rate};

/// The port that IANA assigned to P4Runtime.
/// on the loopback address: whoever reaches it can program the switch.
pub const DEFAULT_GRPC: &str = "127.0.0.1:9559";

#[derive(Debug, Parser)]
#[command(name = "fairlane-switch", version, about = "A P4 switch: v1model programs as BMv2 JSON, P4Runtime over gRPC, bit rates per port")]
#[command(after_help = "Options of the target come after `--`: see `fairlane-switch -- --help`.")]
struct General {
    /// BMv2 JSON of the program, from p4c or fairlane-compile
    #[arg(value_name = "PROGRAM.json")]
    program: Option<PathBuf>,
    /// Attach network interface IFACE as port PORT (repeat for more ports)
    #[arg(short, long, value_name = "PORT@IFACE")]
    interface: Vec<String>,
    /// Start without a program; one comes over P4Runtime
    #[arg(long)]
    no_p4: bool,
    /// Device id of P4Runtime
    #[arg(long, value_name = "ID", default_value_t = 0)]
    device_id: u64,
    /// Log on standard output
    #[arg(long, conflicts_with = "log_file")]
    log_console: bool,
    /// Log to FILE.txt, as BMv2 does
    #[arg(long, value_name = "FILE")]
    log_file: Option<PathBuf>,
    /// Write each line of --log-file at once, rather than those of a few packets together
    #[arg(long)]
    log_flush: bool,
    /// Bytes of a log file; then it is renamed to FILE.1.txt, and a new one begins
    #[arg(long, value_name = "BYTES", default_value_t = 5 << 20)]
    log_file_max_size: u64,
    /// Log files that are kept beside the one in use
    #[arg(long, value_name = "N", default_value_t = 3)]
    log_file_max_files: u32,
    /// trace or debug (what every packet does; a packet then takes tens of microseconds), info, warn, error or off; default: trace when
    /// a log is asked for, as in BMv2
    #[arg(short = 'L', long, value_name = "LEVEL")]
    log_level: Option<String>,
    /// Write IFACE_in.pcap and IFACE_out.pcap for each interface into a directory (default: the current one)
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".")]
    pcap: Option<PathBuf>,
    /// Log the first N bytes of each packet (at level info)
    #[arg(long, value_name = "N", default_value_t = 0)]
    dump_packet_data: usize,
    /// Link rate of a port, as 10mbit (default: unlimited); `all=RATE` for every port
    #[arg(long, value_name = "PORT=RATE")]
    port_rate: Vec<String>,
    /// Queue capacity of a port, as 100p or 64000b (default: 64p); `all=...` for every port
    #[arg(long, value_name = "PORT=SIZE")]
    port_queue: Vec<String>,
    /// Propagation delay of a port's link, as 5ms (default: 0); `all=...` for every port
    #[arg(long, value_name = "PORT=DELAY")]
    port_delay: Vec<String>,
    /// Bytes that each frame takes on the link beside its own (24 for Ethernet's preamble, FCS and gap; default: 0)
    #[arg(long, value_name = "PORT=BYTES")]
    port_overhead: Vec<String>,
    /// Between priority queues, in place of strict priority: one step of priority counts as so much time in the queue, as 30ms
    #[arg(long, value_name = "PORT=TIME")]
    port_time_shift: Vec<String>,
    /// Between priority queues, in place of strict priority: all others send so many bytes for each byte of queue 0, as 15
    #[arg(long, value_name = "PORT=WEIGHT")]
    port_weight: Vec<String>,
    /// Losses, jitter, changes and traces of the ports' links, as JSON; read again at SIGHUP
    #[arg(long, value_name = "FILE.json")]
    links: Option<PathBuf>,
    /// Seed of the program's random()
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Write a time series of every port's counters as CSV
    #[arg(long, value_name = "FILE.csv")]
    stats: Option<PathBuf>,
    /// Seconds between two rows of a port in --stats
    #[arg(long, value_name = "SECONDS", default_value = "0.1", allow_hyphen_values = true)]
    stats_interval: String,
    /// Count the packets and bytes of each pair of addresses and ports, next to the file of --stats (`.flows.csv`)
    #[arg(long, requires = "stats")]
    count_flows: bool,
    /// Serve BMv2's Thrift services on this TCP port (default: do not)
    #[arg(long, value_name = "PORT")]
    thrift_port: Option<u16>,
    /// Address that the Thrift port listens on: whoever reaches it can program the switch
    #[arg(long, value_name = "ADDR", default_value_t = Ipv4Addr::LOCALHOST.into())]
    thrift_address: IpAddr,
    /// Where BMv2's notifications are published: ipc:///PATH or tcp://ADDR:PORT (default with --thrift-port:
    /// ipc:///tmp/bmv2-ID-notifications.ipc)
    #[arg(long, value_name = "ADDRESS")]
    notifications_addr: Option<String>,
    /// Publish what each packet does, in BMv2's format: ipc:///PATH or tcp://ADDR:PORT. Programs run several
    /// times slower while somebody subscribes
    #[arg(long, value_name = "ADDRESS")]
    nanolog: Option<String>,
    /// Do not serve P4Runtime
    #[arg(long)]
    no_p4runtime: bool,
    /// Receive also the frames that other programs send out of a port's interface on this machine, as BMv2 does
    #[arg(long)]
    hear_outgoing: bool,
    /// What `ps` and `pkill` call this process: of the name 15 characters count
    #[arg(long, value_name = "NAME")]
    process_name: Option<String>,
    /// Print the BMv2 JSON version that is understood, and exit
    #[arg(long)]
    json_version: bool,

    // Known to BMv2, without meaning here; see `note_ignored`.
    #[arg(long, hide = true)]
    debugger: bool,
    #[arg(long, hide = true)]
    debugger_addr: Option<String>,
    #[arg(long, hide = true)]
    max_port_count: Option<String>,
    #[arg(long, hide = true)]
    use_files: Option<String>,
    #[arg(long, hide = true)]
    restore_state: Option<String>,
    #[arg(long, hide = true)]
    packet_in: Option<String>,
}

#[derive(Debug, Parser)]
#[command(name = "fairlane-switch --", version, about = "Options of the target, after `--`")]
struct Target {
    /// Address and TCP port of the P4Runtime server
    #[arg(long, value_name = "ADDR:PORT", default_value = DEFAULT_GRPC)]
    grpc_server_addr: String,
    /// Port of packet-in and packet-out: not 0, not the drop port, no interface of that number (default: none)
    #[arg(long, value_name = "N")]
    cpu_port: Option<PortId>,
    /// The egress_spec that means drop
    #[arg(long, value_name = "N", default_value_t = 511)]
    drop_port: PortId,
    /// Priority queues per port; the highest number is served first
    #[arg(long, value_name = "N", default_value_t = 1)]
    priority_queues: usize,
    #[command(flatten)]
    tls: crate::cli_server::Tls,
    #[command(flatten)]
    limits: crate::cli_server::ServerLimits,

    /// Allow programs to be replaced over Thrift (P4Runtime may always do so)
    #[arg(long)]
    enable_swap: bool,
    #[arg(long, hide = true)]
    disable_swap: bool,
    #[arg(long, hide = true)]
    max_mc_groups: Option<String>,
    #[arg(long, hide = true)]
    max_l1_entries: Option<String>,
    #[arg(long, hide = true)]
    max_l2_entries: Option<String>,
    #[arg(long, hide = true)]
    dp_grpc_server_addr: Option<String>,
}

/// Log levels of BMv2, the most talkative first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
    Off,
}

/// Where the log goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogTarget {
    None,
    Console,
    File(LogFile),
}

/// A log in files of bounded size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFile {
    /// Without `.txt`, which its file has as in BMv2; older ones are `.1.txt` and so on.
    pub base: PathBuf,
    /// Bytes of a file, at most.
    pub max_size: u64,
    /// Older files that are kept.
    pub max_files: u32,
    /// Each line is written at once.
    pub flush: bool,
}

/// The time series of counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatsOptions {
    pub path: PathBuf,
    pub interval: Nanos,
    /// Whether conversations are counted, too.
    pub flows: bool,
}

/// The Thrift services and their notifications.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThriftOptions {
    pub address: SocketAddr,
    /// Where notifications are published.
    pub notifications: fairlane_thrift::Address,
    /// The address was not chosen: the switch runs without notifications where another one uses it.
    pub default_notifications: bool,
    /// Where packets' steps are published, if they are.
    pub event_log: Option<fairlane_thrift::Address>,
    /// Programs may be swapped.
    pub swap: bool,
}

/// A checked command line.
#[derive(Debug)]
pub struct Options {
    /// The program's JSON; `None` with `--no-p4`.
    pub program: Option<PathBuf>,
    /// Interfaces by port number.
    pub interfaces: BTreeMap<PortId, String>,
    /// Configuration of each interface's port.
    pub ports: BTreeMap<PortId, PortConfig>,
    pub device_id: u64,
    pub device: DeviceConfig,
    /// Where P4Runtime is served; `None` with `--no-p4runtime`.
    pub grpc_address: Option<SocketAddr>,
    /// BMv2's Thrift services; `None` without `--thrift-port`.
    pub thrift: Option<ThriftOptions>,
    /// Certificates of the P4Runtime server; `None` is no TLS.
    pub tls: Option<TlsFiles>,
    /// What P4Runtime clients may take.
    pub limits: Limits,
    pub log: LogTarget,
    pub log_level: LogLevel,
    /// Bytes of each packet in the log.
    pub dump_bytes: usize,
    pub pcap: Option<PathBuf>,
    pub stats: Option<StatsOptions>,
    /// What the ports' links do; see `links.rs`.
    pub links: Option<PathBuf>,
    /// Frames that other programs send out of a port's interface are received, too.
    pub hears_outgoing: bool,
    /// What other programs call this process.
    pub process_name: Option<String>,
    /// Sentences for the user: options that were ignored, and why.
    pub notes: Vec<String>,
}

/// Why the switch does not start from this command line.
#[derive(Debug)]
pub enum CliError {
    /// `--help` or `--version`: this text for standard output, and success.
    Text(String),
    /// One sentence that names the option at fault.
    Bad(String),
}

fn bad<T>(message: impl Into<String>) -> Result<T, CliError> {
    Err(CliError::Bad(message.into()))
}

/// Reads and checks a command line, without the program's name.
///
/// # Errors
/// [`CliError`].
pub fn parse(arguments: &[String]) -> Result<Options, CliError> {
    let split = arguments.iter().position(|argument| argument == "--").unwrap_or(arguments.len());
    let named =
        |arguments: &[String]| -> Vec<String> { std::iter::once("fairlane-switch".to_string()).chain(arguments.iter().cloned()).collect() };
    let general = General::try_parse_from(named(&arguments[..split])).map_err(clap_error)?;
    let rest = arguments.get(split + 1..).unwrap_or_default();
    let target = Target::try_parse_from(named(rest)).map_err(clap_error)?;
    check(general, target)
}

fn clap_error(error: clap::Error) -> CliError {
    let text = error.render().to_string();
    if !error.use_stderr() {
        return CliError::Text(text);
    }
    // One sentence: what follows the blank line is usage.
    let sentence = text.split("\n\n").next().unwrap_or_default().replace('\n', " ");
    CliError::Bad(sentence.trim().trim_start_matches("error: ").to_string())
}

fn check(general: General, target: Target) -> Result<Options, CliError> {
    if general.json_version {
        return Err(CliError::Text("2.23\n".to_string()));
    }
    refuse_unsupported(&general, &target)?;
    let mut notes = note_ignored(&general, &target);
    let program = match (general.program.clone(), general.no_p4) {
        (Some(program), true) => {
            notes.push(format!("{} is not loaded, because of --no-p4", program.display()));
            None
        }
        (None, false) => {
            return bad("give the program's BMv2 JSON, or --no-p4 to have one loaded over P4Runtime");
        }
        (program, _) => program,
    };
    let drop_port = target.drop_port;
    if target.priority_queues == 0 || target.priority_queues > MAX_PRIORITIES {
        return bad(format!("--priority-queues {}: use 1 to {MAX_PRIORITIES}", target.priority_queues));
    }
    let interfaces = interfaces(&general.interface, drop_port)?;
    if let Some(cpu_port) = target.cpu_port {
        check_cpu_port(cpu_port, drop_port, &interfaces)?;
    }
    let ports = port_configs(&general, &interfaces, target.priority_queues)?;
    let grpc_address: SocketAddr = target.grpc_server_addr.parse().map_err(|_| {
        CliError::Bad(format!(
            "--grpc-server-addr {}: write it as ADDRESS:PORT with an IP address, as in {DEFAULT_GRPC}",
            target.grpc_server_addr
        ))
    })?;
    let tls = target.tls.files().map_err(CliError::Bad)?;
    let limits = target.limits.check().map_err(CliError::Bad)?;
    let grpc_address = (!general.no_p4runtime).then_some(grpc_address);
    notes.extend(grpc_address.and_then(|address| crate::cli_server::exposure(address, tls.as_ref())));
    let thrift = thrift(&general, &target)?;
    notes.extend(
        thrift
            .as_ref()
            .filter(|thrift| !thrift.address.ip().is_loopback())
            .map(|thrift| format!("Thrift on {} asks nobody who they are: whoever reaches it can program the switch", thrift.address)),
    );
    let log = match (general.log_console, general.log_file.clone()) {
        (true, _) => LogTarget::Console,
        (false, Some(base)) => {
            let (max_size, max_files) = (general.log_file_max_size, general.log_file_max_files);
            if max_size == 0 {
                return bad("--log-file-max-size 0: use 1 byte or more");
            }
            LogTarget::File(LogFile { base, max_size, max_files, flush: general.log_flush })
        }
        (false, None) => LogTarget::None,
    };
    let log_level = log_level(general.log_level.as_deref())?;
    if let Some(directory) = general.pcap.as_ref().filter(|directory| !directory.is_dir()) {
        return bad(format!("--pcap {}: there is no such directory: create it first", directory.display()));
    }
    let stats = match general.stats.clone() {
        Some(path) => Some(StatsOptions { path, interval: stats_interval(&general.stats_interval)?, flows: general.count_flows }),
        None => None,
    };
    let everything = log != LogTarget::None && log_level <= LogLevel::Debug;
    Ok(Options {
        program,
        interfaces,
        ports,
        device_id: general.device_id,
        device: DeviceConfig {
            cpu_port: target.cpu_port,
            drop_port,
            priorities: target.priority_queues,
            seed: general.seed,
            // The packet log has them among a packet's other steps.
            log: log != LogTarget::None && log_level != LogLevel::Off && !everything,
            observe: match thrift.as_ref().is_some_and(|thrift| thrift.event_log.is_some()) {
                _ if everything => Observing::Everything,
                true => Observing::Events,
                false => Observing::Nothing,
            },
            ..DeviceConfig::default()
        },
        grpc_address,
        thrift,
        tls,
        limits,
        log,
        log_level,
        dump_bytes: general.dump_packet_data,
        pcap: general.pcap,
        stats,
        hears_outgoing: general.hear_outgoing,
        process_name: general.process_name,
        links: general.links,
        notes,
    })
}

fn thrift(general: &General, target: &Target) -> Result<Option<ThriftOptions>, CliError> {
    let Some(port) = general.thrift_port else {
        return match &general.notifications_addr {
            Some(_) => bad("--notifications-addr has no effect without --thrift-port: give that, too"),
            None if general.nanolog.is_some() => bad("--nanolog has no effect without --thrift-port: give that, too"),
            None if target.enable_swap => bad("--enable-swap has no effect without --thrift-port: give that, too"),
            None if general.no_p4runtime && general.program.is_none() => {
                bad("--no-p4runtime and --no-p4 without --thrift-port: nobody could load a program")
            }
            None => Ok(None),
        };
    };
    let default = || format!("ipc:///tmp/bmv2-{}-notifications.ipc", general.device_id);
    let text = general.notifications_addr.clone().unwrap_or_else(default);
    let address = |option: &str, text: &str| text.parse().map_err(|error| CliError::Bad(format!("{option} {text}: {error}")));
    let notifications = address("--notifications-addr", &text)?;
    let event_log = general.nanolog.as_deref().map(|text| address("--nanolog", text)).transpose()?;
    Ok(Some(ThriftOptions {
        address: SocketAddr::from((general.thrift_address, port)),
        notifications,
        default_notifications: general.notifications_addr.is_none(),
        event_log,
        swap: target.enable_swap,
    }))
}

fn refuse_unsupported(general: &General, target: &Target) -> Result<(), CliError> {
    let refused = [
        ("--use-files", general.use_files.is_some(), "packets come from interfaces; for files use fairlane-stf"),
        ("--restore-state", general.restore_state.is_some(), "write state over P4Runtime"),
        ("--packet-in", general.packet_in.is_some(), "packets come from interfaces"),
        ("--dp-grpc-server-addr", target.dp_grpc_server_addr.is_some(), "packets come from interfaces"),
    ];
    match refused.iter().find(|(_, given, _)| *given) {
        Some((option, _, way_out)) => bad(format!("{option} is not supported: {way_out}")),
        None => Ok(()),
    }
}

fn note_ignored(general: &General, target: &Target) -> Vec<String> {
    let ignored = [
        ("--debugger", general.debugger || general.debugger_addr.is_some(), "there is no debugger"),
        ("--max-port-count", general.max_port_count.is_some(), "ports are not limited"),
        ("--disable-swap", target.disable_swap, "it is the default over Thrift, and P4Runtime may always replace the program"),
        ("--max-mc-groups", target.max_mc_groups.is_some(), "multicast groups are limited by memory alone"),
        ("--max-l1-entries", target.max_l1_entries.is_some(), "multicast groups are limited by memory alone"),
        ("--max-l2-entries", target.max_l2_entries.is_some(), "multicast groups are limited by memory alone"),
    ];
    let given = ignored.iter().filter(|(_, given, _)| *given);
    given.map(|(option, _, why)| format!("{option} is ignored: {why}")).collect()
}

fn interfaces(given: &[String], drop_port: PortId) -> Result<BTreeMap<PortId, String>, CliError> {
    let mut interfaces = BTreeMap::new();
    for text in given {
        let parsed = text.split_once('@').and_then(|(port, name)| Some((port.parse::<PortId>().ok()?, name)));
        let Some((port, name)) = parsed.filter(|(_, name)| !name.is_empty()) else {
            return bad(format!("-i {text}: write it as PORT@INTERFACE, as in 1@s1-eth1"));
        };
        if port > MAX_PORT {
            return bad(format!("-i {text}: port numbers go up to {MAX_PORT} (to 510 with v1model's 9 bits)"));
        }
        if port == drop_port {
            return bad(format!("-i {text}: {port} is the drop port: choose another, or give -- --drop-port N"));
        }
        if let Some((other, _)) = interfaces.iter().find(|(_, known)| *known == name) {
            return bad(format!("-i {text}: interface {name} is port {other} already: give each interface once"));
        }
        if let Some(other) = interfaces.insert(port, name.to_string()) {
            return bad(format!("-i {text}: port {port} is {other} already: give each port once"));
        }
    }
    Ok(interfaces)
}

fn check_cpu_port(cpu_port: PortId, drop_port: PortId, interfaces: &BTreeMap<PortId, String>) -> Result<(), CliError> {
    if cpu_port == 0 || cpu_port > 511 {
        return bad(format!("--cpu-port {cpu_port}: use 1 to 511, v1model's ports have 9 bits and 0 is not a CPU port"));
    }
    if cpu_port == drop_port {
        return bad(format!("--cpu-port {cpu_port}: that is the drop port: choose another, as 510"));
    }
    match interfaces.get(&cpu_port) {
        Some(name) => bad(format!("--cpu-port {cpu_port}: that is the port of interface {name}: choose another")),
        None => Ok(()),
    }
}

fn port_configs(
    general: &General,
    interfaces: &BTreeMap<PortId, String>,
    priorities: usize,
) -> Result<BTreeMap<PortId, PortConfig>, CliError> {
    let start = PortConfig { priorities, ..PortConfig::default() };
    let mut ports: BTreeMap<PortId, PortConfig> = interfaces.keys().map(|&port| (port, start.clone())).collect();
    per_port("--port-rate", &general.port_rate, &mut ports, |config, text| {
        config.rate_bps = parse_rate(text).map_err(|error| error.to_string())?;
        Ok(())
    })?;
    per_port("--port-queue", &general.port_queue, &mut ports, |config, text| {
        config.capacity = parse_capacity(text).map_err(|error| error.to_string())?;
        match config.capacity {
            Capacity::Packets(0) | Capacity::Bytes(0) => Err("a queue of no capacity drops every packet".to_string()),
            _ => Ok(()),
        }
    })?;
    per_port("--port-delay", &general.port_delay, &mut ports, |config, text| {
        config.delay_ns = parse_delay(text).map_err(|error| error.to_string())?;
        Ok(())
    })?;
    per_port("--port-time-shift", &general.port_time_shift, &mut ports, |config, text| {
        config.scheduler = Scheduler::TimeShifted(parse_delay(text).map_err(|error| error.to_string())?);
        Ok(())
    })?;
    per_port("--port-weight", &general.port_weight, &mut ports, |config, text| {
        if let Scheduler::TimeShifted(_) = config.scheduler {
            return Err("the port has a --port-time-shift: give one of them".to_string());
        }
        config.scheduler = Scheduler::Weighted(text.parse().map_err(|_| format!("`{text}` is not a weight: give an integer from 1 on"))?);
        Ok(())
    })?;
    per_port("--port-overhead", &general.port_overhead, &mut ports, |config, text| {
        config.overhead_bytes = text.parse().map_err(|_| format!("`{text}` is not a number of bytes"))?;
        Ok(())
    })?;
    Ok(ports)
}

/// Applies `PORT=VALUE` options: `all` first, so that single ports may differ from it wherever it stands.
fn per_port(
    option: &str,
    given: &[String],
    ports: &mut BTreeMap<PortId, PortConfig>,
    apply: impl Fn(&mut PortConfig, &str) -> Result<(), String>,
) -> Result<(), CliError> {
    let is_all = |text: &&String| text.starts_with("all=");
    for text in given.iter().filter(is_all).chain(given.iter().filter(|text| !is_all(text))) {
        let Some((port, value)) = text.split_once('=') else {
            return bad(format!("{option} {text}: write it as PORT=VALUE or all=VALUE"));
        };
        let chosen: Vec<PortId> = if port == "all" {
            ports.keys().copied().collect()
        } else {
            let number = port.parse::<PortId>().ok().filter(|number| ports.contains_key(number));
            let Some(number) = number else {
                let known: Vec<String> = ports.keys().map(PortId::to_string).collect();
                let known = if known.is_empty() { "there are none".to_string() } else { known.join(", ") };
                return bad(format!("{option} {text}: no -i option makes a port {port} (ports: {known})"));
            };
            vec![number]
        };
        for number in chosen {
            if let Some(config) = ports.get_mut(&number) {
                apply(config, value).map_err(|error| CliError::Bad(format!("{option} {text}: {error}")))?;
            }
        }
    }
    Ok(())
}

fn log_level(text: Option<&str>) -> Result<LogLevel, CliError> {
    Ok(match text {
        None | Some("trace") => LogLevel::Trace,
        Some("debug") => LogLevel::Debug,
        Some("info") => LogLevel::Info,
        Some("warn" | "warning") => LogLevel::Warn,
        Some("error") => LogLevel::Error,
        Some("off") => LogLevel::Off,
        Some(other) => return bad(format!("-L {other}: use trace, debug, info, warn, error or off")),
    })
}

fn stats_interval(text: &str) -> Result<Nanos, CliError> {
    let interval = parse_delay(&format!("{text}s")).ok();
    match interval.filter(|&interval| interval >= 1_000_000) {
        Some(interval) => Ok(interval),
        None => bad(format!("--stats-interval {text}: give seconds, 0.001 or more")),
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    fn parse(line: &str) -> Result<Options, CliError> {
        super::parse(&line.split_whitespace().map(str::to_string).collect::<Vec<_>>())
    }

    fn refused(line: &str) -> String {
        match parse(line) {
            Err(CliError::Bad(message)) => message,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn the_tutorials_command_line() {
        let options = parse(
            "-i 1@s1-eth1 -i 2@s1-eth2 --pcap . --nanolog ipc:///tmp/x --device-id 1 build/basic.json --log-console \
             --thrift-port 9090 -- --grpc-server-addr 0.0.0.0:50051 --cpu-port 255",
        )
        .expect("accepted");
        assert_eq!(options.program, Some("build/basic.json".into()));
        assert_eq!(options.interfaces.get(&2).map(String::as_str), Some("s1-eth2"));
        assert_eq!((options.device_id, options.device.cpu_port), (1, Some(255)));
        assert_eq!(options.grpc_address.map(|address| address.port()), Some(50051));
        let thrift = options.thrift.expect("served");
        assert_eq!(thrift.address.to_string(), "127.0.0.1:9090");
        assert_eq!(thrift.notifications.to_string(), "ipc:///tmp/bmv2-1-notifications.ipc");
        assert_eq!((options.log, options.log_level), (LogTarget::Console, LogLevel::Trace));
        assert_eq!(thrift.event_log.map(|address| address.to_string()).as_deref(), Some("ipc:///tmp/x"));
        assert_eq!(options.device.observe, Observing::Everything);
        assert_eq!(options.notes.len(), 1, "{:?}", options.notes);
    }

    #[test]
    fn rates_queues_and_delays() {
        let options = parse(
            "--no-p4 -i 1@a -i 2@b --port-weight 1=15 --port-rate 2=10mbit --port-rate all=1gbit --port-queue 2=100p --port-delay all=5ms \
             --port-time-shift 2=30ms -- --priority-queues 8",
        )
        .expect("accepted");
        let expected = PortConfig {
            rate_bps: Some(10_000_000),
            capacity: Capacity::Packets(100),
            delay_ns: 5_000_000,
            priorities: 8,
            scheduler: Scheduler::TimeShifted(30_000_000),
            overhead_bytes: 0,
        };
        assert_eq!(options.ports[&2], expected);
        assert_eq!(options.ports[&1].rate_bps, Some(1_000_000_000));
        assert_eq!(options.ports[&1].scheduler, Scheduler::Weighted(NonZeroU32::new(15).expect("positive")));
        assert_eq!(options.grpc_address.map(|address| address.to_string()).as_deref(), Some(DEFAULT_GRPC));
        assert_eq!(options.thrift, None);
    }

    #[test]
    fn bad_lines_name_the_option_and_the_way_out() {
        let cases = [
            ("", "give the program's BMv2 JSON, or --no-p4 to have one loaded over P4Runtime"),
            ("--no-p4 -i 1@a -i 1@b", "-i 1@b: port 1 is a already: give each port once"),
            ("--no-p4 -i 1@a -i 2@a", "-i 2@a: interface a is port 1 already: give each interface once"),
            ("--no-p4 -i x@a", "-i x@a: write it as PORT@INTERFACE, as in 1@s1-eth1"),
            ("--no-p4 -i 511@a", "-i 511@a: 511 is the drop port: choose another, or give -- --drop-port N"),
            (
                "--no-p4 -i 1@a --port-rate 1=10mbps",
                "--port-rate 1=10mbps: `10mbps` is not a rate: write bits per second as in 10mbit, 1.5gbit, 500kbit or 64000, or \
                 `unlimited`",
            ),
            (
                "--no-p4 -i 1@a --port-delay 1=-5ms",
                "--port-delay 1=-5ms: `-5ms` is not a delay: write it as in 5ms, 1.5ms, 250us, 100ns or 1s; a bare number is milliseconds",
            ),
            ("--no-p4 -i 1@a --port-weight 1=0", "--port-weight 1=0: `0` is not a weight: give an integer from 1 on"),
            (
                "--no-p4 -i 1@a --port-time-shift 1=5 --port-weight 1=15",
                "--port-weight 1=15: the port has a --port-time-shift: give one of them",
            ),
            ("--no-p4 -i 1@a --port-queue 3=10p", "--port-queue 3=10p: no -i option makes a port 3 (ports: 1)"),
            ("--no-p4 -i 1@a --port-queue 1=0p", "--port-queue 1=0p: a queue of no capacity drops every packet"),
            ("--no-p4 -i 1@a -- --cpu-port 1", "--cpu-port 1: that is the port of interface a: choose another"),
            ("--no-p4 -- --cpu-port 511", "--cpu-port 511: that is the drop port: choose another, as 510"),
            ("--no-p4 -- --cpu-port 0", "--cpu-port 0: use 1 to 511, v1model's ports have 9 bits and 0 is not a CPU port"),
            ("--no-p4 -- --priority-queues 0", "--priority-queues 0: use 1 to 32"),
            (
                "--no-p4 -- --grpc-server-addr nowhere",
                "--grpc-server-addr nowhere: write it as ADDRESS:PORT with an IP address, as in 127.0.0.1:9559",
            ),
            ("--no-p4 -L loud", "-L loud: use trace, debug, info, warn, error or off"),
            ("--no-p4 --pcap /nonexistent/dir", "--pcap /nonexistent/dir: there is no such directory: create it first"),
            ("--no-p4 --stats x.csv --stats-interval -1", "--stats-interval -1: give seconds, 0.001 or more"),
            ("--no-p4 --use-files 1", "--use-files is not supported: packets come from interfaces; for files use fairlane-stf"),
            ("--no-p4 --notifications-addr ipc:///x", "--notifications-addr has no effect without --thrift-port: give that, too"),
            (
                "--no-p4 --thrift-port 9090 --notifications-addr x",
                "--notifications-addr x: write it as ipc:///PATH or tcp://ADDRESS:PORT with an IP address",
            ),
            ("--no-p4 --no-p4runtime", "--no-p4runtime and --no-p4 without --thrift-port: nobody could load a program"),
            ("--no-p4 -- --enable-swap", "--enable-swap has no effect without --thrift-port: give that, too"),
            ("--no-p4 --bogus", "unexpected argument '--bogus' found"),
        ];
        for (line, message) in cases {
            assert_eq!(refused(line), message, "{line}");
        }
    }

    #[test]
    fn help_is_no_error() {
        for line in ["--help", "--no-p4 -- --help", "--json-version"] {
            assert!(matches!(parse(line), Err(CliError::Text(_))), "{line}");
        }
    }
}
