//! A dumbbell around two switches that forward by IPv4 destination.

#![allow(dead_code)]

use std::path::Path;
use std::sync::{Arc, OnceLock};

use fairlane_device::DeviceConfig;
use fairlane_endpoint::algorithm::{FixedRate, Listener};
use fairlane_endpoint::record::FlowRecord;
use fairlane_endpoint::Ip;
use fairlane_pipeline::{ActionCall, KeyMatch, Program, Replica, TableAction, TableEntry, Value};
use fairlane_virtual::{ChannelConfig, FlowKind, FlowSpec, HostAddress, LinkEnd, Nanos, Network, Options, RtpSpec, TcpSpec};

pub const MS: Nanos = 1_000_000;
pub const SECOND: Nanos = 1_000_000_000;

/// The program of `forward.p4`.
pub fn program() -> Arc<Program> {
    static PROGRAM: OnceLock<Arc<Program>> = OnceLock::new();
    let load = || {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/common/forward.p4");
        let compiled = fairlane_compiler::compile(&source, &fairlane_compiler::Options::default());
        let json = compiled.json.unwrap_or_else(|| panic!("{}", compiled.rendered));
        Arc::new(Program::from_json(&json.to_string()).expect("a good program"))
    };
    PROGRAM.get_or_init(load).clone()
}

/// The address of host `number` (from 1) on a switch.
pub fn address(switch: u8, number: u8) -> HostAddress {
    HostAddress {
        version: Ip::V4,
        ip: u32::from_be_bytes([10, 0, switch, number]),
        mac: [2, 0, 0, switch, 0, number],
        gateway_mac: [2, 1, 0, switch, 0, number],
    }
}

/// Loads the program and routes each address to a port.
pub fn load(network: &mut Network, switch: &str, routes: &[(u32, u32)]) {
    let program = program();
    let (table, action) =
        (program.table_by_name("ForwardIngress.route").expect("route"), program.action_by_name("ForwardIngress.send").expect("send"));
    let device = network.device(switch).expect("a switch");
    device.load(0, program).expect("memory");
    for &(ip, port) in routes {
        let entry = TableEntry {
            key: vec![KeyMatch::Exact(Value::from(u64::from(ip)))],
            priority: 0,
            action: TableAction::Call(ActionCall { action, args: vec![Value::from(u64::from(port))] }),
            idle_timeout: 0,
        };
        device.switch_mut().expect("loaded").table_insert(0, table, entry).expect("room");
    }
}

/// Copies for an IPv4 group to ports of a switch.
pub fn replicate(network: &mut Network, switch: &str, group: u32, ports: &[u32]) {
    let program = program();
    let (table, action) = (
        program.table_by_name("ForwardIngress.route").expect("route"),
        program.action_by_name("ForwardIngress.replicate").expect("replicate"),
    );
    let number = group as u16;
    let entry = TableEntry {
        key: vec![KeyMatch::Exact(Value::from(u64::from(group)))],
        priority: 0,
        action: TableAction::Call(ActionCall { action, args: vec![Value::from(u64::from(number))] }),
        idle_timeout: 0,
    };
    let device = network.device(switch).expect("a switch");
    let control = device.switch_mut().expect("loaded");
    control.table_insert(0, table, entry).expect("room");
    let copies = ports.iter().map(|&port| Replica { port: port as _, rid: 0 }).collect();
    control.multicast_insert(number, copies).expect("a new group");
}

/// `pairs` senders a1.. on s1, as many receivers b1.. on s2; port 1 of both switches is the bottleneck.
pub fn dumbbell(pairs: u8, seed: u64, bottleneck: &ChannelConfig, access: &ChannelConfig) -> Network {
    let mut network = Network::new(Options { seed, ..Options::default() });
    for (index, switch) in ["s1", "s2"].into_iter().enumerate() {
        network.add_switch(switch, index as u64 + 1, DeviceConfig::default()).expect("a new name");
    }
    network.connect(&LinkEnd::new("s1", 1), &LinkEnd::new("s2", 1), bottleneck, bottleneck).expect("a link");
    for n in 1..=pairs {
        for (side, switch) in [("a", 1), ("b", 2)] {
            let name = format!("{side}{n}");
            network.add_host(&name, address(switch, n)).expect("a new host");
            let port = LinkEnd::new(format!("s{switch}"), u32::from(n) + 1);
            network.connect(&LinkEnd::new(name, 0), &port, access, access).expect("a link");
        }
    }
    for switch in 1..=2 {
        let route = |side: u8, n: u8| (address(side, n).ip, if side == switch { u32::from(n) + 1 } else { 1 });
        let routes: Vec<_> = (1..=2).flat_map(|side| (1..=pairs).map(move |n| route(side, n))).collect();
        load(&mut network, &format!("s{switch}"), &routes);
    }
    network
}

/// An RTP flow at a constant rate without feedback, of 1000 byte packets, the first at the start.
pub fn fixed(name: &str, n: u8, rate_bps: f64, start: Nanos, stop: Nanos) -> FlowSpec {
    let spec = RtpSpec {
        sender: Box::new(FixedRate { rate_bps }),
        receiver: Box::new(Listener),
        packet_bytes: 1000,
        session_bandwidth_bps: 10e6,
        pacing_jitter: 0.0,
        phase: Some(0.0),
        exact_loss: false,
        report_interval: None,
        application: None,
        delay_threshold: 75 * MS,
        circuit_breaker: None,
        sender_ssrc: u32::from(n),
        receiver_ssrc: u32::from(n) + 1000,
        sender_cname: format!("sender-{n}"),
        receiver_cname: format!("receiver-{n}"),
    };
    flow(name, n, start, stop, FlowKind::Rtp(spec))
}

pub fn flow(name: &str, n: u8, start: Nanos, stop: Nanos, kind: FlowKind) -> FlowSpec {
    FlowSpec { name: name.into(), sender: format!("a{n}"), receiver: format!("b{n}"), port: 5004, start, stop, kind }
}

/// A persistent TCP flow of 1000 byte datagrams.
pub fn tcp(name: &str, n: u8, flavour: fairlane_tcp::Flavour, stop: Nanos) -> FlowSpec {
    let config = fairlane_tcp::Config { flavour, mss: 960, ..fairlane_tcp::Config::default() };
    flow(name, n, 0, stop, FlowKind::Tcp(TcpSpec { config, source: fairlane_tcp::Ftp::Persistent, sending_jitter: 0 }))
}

/// The last totals of a receiver of data: packets, bytes, lost.
pub fn received(network: &Network, flow: usize) -> (u64, u64, i64) {
    let (_, receiver) = network.logs(&network.flows()[flow]);
    let last = receiver.iter().rev().find_map(|(_, record)| match record {
        FlowRecord::Data { packets, bytes, lost, .. } => Some((*packets, *bytes, *lost)),
        _ => None,
    });
    last.unwrap_or_default()
}

/// Everything that a run left behind, as text.
pub fn records(network: &Network) -> String {
    let mut text = String::new();
    for flow in network.flows() {
        let (sender, receiver) = network.logs(flow);
        text += &format!("{}\n{sender:?}\n{receiver:?}\n", flow.name);
    }
    text += &format!("{:?}\n{:?}\n", network.port_samples(), network.work());
    text
}
