//! A network in several partitions leaves the same records behind as in one: random networks, flows, links and changes, with delays and rates from short lists, so
//! that much happens at the same instants.

mod common;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;

use common::{load, program, tcp, MS, SECOND};
use fairlane_device::DeviceConfig;
use fairlane_endpoint::algorithm::Fault;
use fairlane_endpoint::Ip;
use fairlane_p4rt::proto::p4::v1::StreamMessageResponse;
use fairlane_tcp::{Config, Flavour, Ftp};
use fairlane_virtual::{
    Answer, Change, ChannelConfig, ControlAction, ControlPlane, FlowKind, Heard, HostAddress, Impairments, Jitter, LinkEnd, LossModel,
    Nanos, Network, Options, Peers, Request, TcpSpec,
};
use proptest::prelude::*;

/// Partitions in threads of one process.
struct Threads {
    own: usize,
    to: Vec<Sender<(Nanos, Vec<u8>)>>,
    from: Vec<Receiver<(Nanos, Vec<u8>)>>,
}

impl Threads {
    fn mesh(count: usize) -> Vec<Threads> {
        let mut from: Vec<Vec<Receiver<_>>> = (0..count).map(|_| Vec::new()).collect();
        let mut threads = Vec::new();
        for own in 0..count {
            let mut to = Vec::new();
            for receivers in &mut from {
                let (sender, receiver) = channel();
                to.push(sender);
                receivers.push(receiver);
            }
            threads.push(Threads { own, to, from: Vec::new() });
        }
        for (thread, from) in threads.iter_mut().zip(from) {
            thread.from = from;
        }
        threads
    }
}

impl Peers for Threads {
    fn exchange(&mut self, next: Nanos, ours: &mut [Vec<u8>]) -> Result<Heard, Fault> {
        assert!(ours[self.own].is_empty(), "nothing goes to oneself");
        for (to, bytes) in self.to.iter().zip(ours) {
            to.send((next, std::mem::take(bytes)))?;
        }
        let all = self.from.iter().map(Receiver::recv).collect::<Result<Vec<_>, _>>()?;
        let floor = all.iter().map(|(next, _)| *next).min().unwrap_or(Nanos::MAX);
        let theirs = all.into_iter().enumerate().map(|(peer, (_, bytes))| (peer, bytes)).filter(|(_, bytes)| !bytes.is_empty()).collect();
        Ok(Heard { floor, theirs })
    }
}

/// Writes, reads and streams, and logs in which order it is answered.
struct Plane {
    switches: usize,
    tokens: u64,
    log: Arc<Mutex<String>>,
}

impl Plane {
    fn call(&mut self, switch: usize, request: Request, actions: &mut Vec<ControlAction>) {
        self.tokens += 1;
        actions.push(ControlAction::Call { switch, token: self.tokens, request });
    }

    fn note(&self, what: std::fmt::Arguments) {
        self.log.lock().expect("whole").write_fmt(what).expect("room");
    }
}

impl ControlPlane for Plane {
    fn on_start(&mut self, now: Nanos, actions: &mut Vec<ControlAction>) -> Result<(), Fault> {
        actions.push(ControlAction::Timer { at: now + 10 * MS, id: 0 });
        Ok(())
    }

    fn on_timer(&mut self, now: Nanos, id: u64, actions: &mut Vec<ControlAction>) -> Result<(), Fault> {
        self.note(format_args!("{now} timer {id}\n"));
        for switch in 0..self.switches {
            self.call(switch, Request::Read(Vec::new()), actions);
            self.call((switch * 7) % self.switches, Request::Write(vec![1]), actions);
            self.call(switch, Request::Stream(Vec::new()), actions);
        }
        actions.push(ControlAction::Timer { at: now + 10 * MS, id: id + 1 });
        Ok(())
    }

    fn on_answer(&mut self, now: Nanos, switch: usize, token: u64, answer: Answer, actions: &mut Vec<ControlAction>) -> Result<(), Fault> {
        self.note(format_args!("{now} {switch} {token} {answer:?}\n"));
        if token.is_multiple_of(5) {
            self.call(switch, Request::Read(vec![2]), actions);
        }
        Ok(())
    }

    fn on_stream(&mut self, now: Nanos, switch: usize, message: &StreamMessageResponse, _: &mut Vec<ControlAction>) -> Result<(), Fault> {
        self.note(format_args!("{now} {switch} {message:?}\n"));
        Ok(())
    }
}

#[derive(Debug, Clone)]
struct Trunk {
    ends: (usize, usize),
    delay: Nanos,
    rate: u64,
    what: u8,
}

/// A flow: hosts, kind, start, and the flow after which it starts.
#[derive(Debug, Clone)]
struct Flow {
    from: usize,
    to: usize,
    kind: u8,
    start: Nanos,
}

#[derive(Debug, Clone)]
struct Case {
    seed: u64,
    /// Of switch n+1: what it hangs on. So all are connected.
    trunks: Vec<Trunk>,
    /// The switch of each host.
    hosts: Vec<usize>,
    flows: Vec<Flow>,
    changes: Vec<(Nanos, usize, u8)>,
    homes: Vec<usize>,
    controlled: bool,
}

fn cases() -> impl Strategy<Value = Case> {
    (2usize..7, 2usize..5).prop_flat_map(|(switches, partitions)| {
        let delay = prop::sample::select(vec![50_000, 100_000, 100_000, 1_000_000, 3_000_000]);
        let rate = prop::sample::select(vec![10_000_000, 10_000_000, 50_000_000, 1_000_000_000]);
        let trunk = (any::<prop::sample::Index>(), delay, rate, 0u8..12);
        let flow = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0u8..8, prop::sample::select(vec![0, 0, 5 * MS, 100 * MS]));
        (
            any::<u64>(),
            prop::collection::vec(trunk, switches - 1..switches + 3),
            prop::collection::vec(0..switches, 2..9),
            prop::collection::vec(flow, 1..10),
            prop::collection::vec((0..400u64, any::<prop::sample::Index>(), 0u8..5), 0..5),
            prop::collection::vec(0..partitions, switches),
            any::<bool>(),
        )
            .prop_map(move |(seed, trunks, hosts, flows, changes, mut homes, controlled)| {
                let trunks: Vec<Trunk> = (1..)
                    .zip(trunks)
                    .map(|(n, (other, delay, rate, what))| {
                        // Beyond the tree: further links, between any two.
                        let at = if n < switches { n } else { n % switches };
                        Trunk { ends: (at, other.index(if n < switches { at } else { switches })), delay, rate, what }
                    })
                    .filter(|trunk| trunk.ends.0 != trunk.ends.1)
                    .collect();
                let flows = flows.into_iter().map(|(from, to, kind, start)| Flow {
                    from: from.index(hosts.len()),
                    to: to.index(hosts.len()),
                    kind,
                    start,
                });
                let flows = flows.filter(|flow| flow.from != flow.to).collect();
                let changes = changes.into_iter().map(|(at, trunk, what)| (at * MS, trunk.index(trunks.len()), what)).collect();
                // No partition is empty.
                homes[0] = 0;
                let last = homes.iter().copied().max().unwrap_or(0);
                for (n, home) in (0..=last).zip(homes.iter_mut()) {
                    *home = n;
                }
                let most = homes.len() - 1;
                homes.iter_mut().for_each(|home| *home = (*home).min(most));
                Case { seed, trunks, hosts, flows, changes, homes, controlled }
            })
    })
}

fn address(host: usize) -> HostAddress {
    let n = host as u8 + 1;
    HostAddress { version: Ip::V4, ip: u32::from_be_bytes([10, 0, 0, n]), mac: [2, 0, 0, 0, 0, n], gateway_mac: [2, 1, 0, 0, 0, n] }
}

fn config(trunk: &Trunk) -> ChannelConfig {
    let plain = ChannelConfig { rate_bps: Some(trunk.rate), delay_ns: trunk.delay, queue_packets: 20, ..ChannelConfig::default() };
    match trunk.what {
        0 => ChannelConfig { loss: Some(LossModel::Bernoulli { p: 0.02 }), ..plain },
        1 => ChannelConfig { jitter: Some(Jitter::Uniform { most_ns: 100_000 }), ..plain },
        2 => {
            let impairments = Impairments { reorder: 0.05, reorder_delay_ns: 200_000, duplicate: 0.02, corrupt: 0.01 };
            ChannelConfig { impairments, ..plain }
        }
        3 => ChannelConfig { rate_bps: None, ..plain },
        _ => plain,
    }
}

/// The network of a case, and what its control plane will log.
fn build(case: &Case) -> (Network, Arc<Mutex<String>>) {
    let mut network = Network::new(Options { seed: case.seed, control_delay: MS / 2, record_interval: 10 * MS, ..Options::default() });
    let switches = case.homes.len();
    for n in 0..switches {
        network.add_switch(&format!("s{n}"), n as u64 + 1, DeviceConfig::default()).expect("a new name");
    }
    let mut used = vec![0; switches];
    let mut port = |switch: usize| {
        used[switch] += 1;
        LinkEnd::new(format!("s{switch}"), used[switch])
    };
    // Of each switch: its ports to others.
    let mut peers: Vec<Vec<(usize, u32)>> = vec![Vec::new(); switches];
    let mut ends = Vec::new();
    for trunk in &case.trunks {
        let (a, b) = (port(trunk.ends.0), port(trunk.ends.1));
        network.connect(&a, &b, &config(trunk), &config(trunk)).expect("a link");
        peers[trunk.ends.0].push((trunk.ends.1, a.port));
        peers[trunk.ends.1].push((trunk.ends.0, b.port));
        ends.push((a, b));
    }
    let access = ChannelConfig { rate_bps: Some(100_000_000), delay_ns: 10_000, ..ChannelConfig::default() };
    let mut routes: Vec<Vec<(u32, u32)>> = vec![Vec::new(); switches];
    for (host, &switch) in case.hosts.iter().enumerate() {
        network.add_host(&format!("h{host}"), address(host)).expect("a new host");
        let end = port(switch);
        network.connect(&LinkEnd::new(format!("h{host}"), 0), &end, &access, &access).expect("a link");
        // Breadth first from the host's switch: towards it, each other one takes the port by which it was found.
        let (mut found, mut todo) = (vec![false; switches], vec![switch]);
        found[switch] = true;
        routes[switch].push((address(host).ip, end.port));
        while !todo.is_empty() {
            let next = std::mem::take(&mut todo);
            for at in next {
                for other in 0..switches {
                    let way = peers[other].iter().find(|&&(peer, _)| peer == at).filter(|_| !found[other]);
                    if let Some(&(_, out)) = way {
                        found[other] = true;
                        routes[other].push((address(host).ip, out));
                        todo.push(other);
                    }
                }
            }
        }
    }
    for (switch, routes) in routes.iter().enumerate() {
        load(&mut network, &format!("s{switch}"), routes);
    }
    for (number, flow) in case.flows.iter().enumerate() {
        add(&mut network, number, flow);
    }
    for (number, flow) in case.flows.iter().enumerate().filter(|(_, flow)| flow.kind >= 6) {
        // After the first file that ends or begins where this one begins.
        let before = case.flows[..number]
            .iter()
            .position(|other| (4..8).contains(&other.kind) && (other.to == flow.from || other.from == flow.from));
        if let Some(before) = before {
            let delay = u64::from(flow.kind - 6) * 2 * MS;
            network.start_after(&format!("f{number}"), &[format!("f{before}")], delay).expect("they share a host");
        }
    }
    for &(at, trunk, what) in &case.changes {
        let from = ends[trunk].0.clone();
        let change = match what {
            0 => Change::LinkRate { from, rate_bps: Some(5_000_000) },
            1 => Change::LinkDelay { from, delay_ns: 40_000 },
            2 => Change::LinkLoss { from, loss: Some(LossModel::Bernoulli { p: 0.1 }) },
            3 => Change::LinkJitter { from, jitter: Some(Jitter::Uniform { most_ns: 30_000 }) },
            _ => Change::LinkRate { from, rate_bps: Some(100_000_000) },
        };
        network.schedule(at, change).expect("a link");
    }
    let log = Arc::new(Mutex::new(String::new()));
    if case.controlled {
        network.set_control_plane(Box::new(Plane { switches, tokens: 0, log: Arc::clone(&log) }));
    }
    network.mark([50 * MS, 123 * MS + 456, 200 * MS]).expect("to come");
    network.measure_delays(50 * MS, 300 * MS);
    (network, log)
}

fn add(network: &mut Network, number: usize, flow: &Flow) {
    let (name, port) = (format!("f{number}"), 5004 + 2 * number as u16);
    let mut spec = match flow.kind {
        0 => common::fixed(&name, number as u8, 2e6, flow.start, SECOND),
        kind => {
            let flavour = [Flavour::Sack, Flavour::Cubic, Flavour::Reno][usize::from(kind) % 3];
            let mut spec = tcp(&name, 1, flavour, SECOND);
            if kind >= 4 {
                let config = Config { flavour, mss: 960, ..Config::default() };
                spec.kind = FlowKind::Tcp(TcpSpec { config, source: Ftp::Bytes(20_000), sending_jitter: 0 });
            }
            spec
        }
    };
    (spec.sender, spec.receiver, spec.port, spec.start) = (format!("h{}", flow.from), format!("h{}", flow.to), port, flow.start);
    network.add_flow(spec).expect("a good flow");
}

/// What one process has seen, by what it is of: parts of several processes have no key in common.
fn seen(network: &mut Network, log: &Mutex<String>) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for number in 0..network.flows().len() {
        let (sender, receivers) = network.take_logs(number).expect("a flow");
        found.insert(format!("flow {number} sender"), format!("{sender:?}"));
        found.extend(receivers.into_iter().map(|(host, log)| (format!("flow {number} {host}"), format!("{log:?}"))));
    }
    for sample in network.take_port_samples() {
        *found.entry(format!("switch {}", sample.switch)).or_default() += &format!("{sample:?}\n");
    }
    for sample in network.take_link_samples() {
        *found.entry(format!("link {}", sample.link)).or_default() += &format!("{sample:?}\n");
    }
    for (of, delays) in network.delays() {
        found.insert(format!("delays {of:?}"), format!("{delays:?}"));
    }
    for (number, (from, to, stats, _)) in network.channel_stats().enumerate().filter(|(_, (_, _, stats, _))| *stats != Default::default()) {
        found.insert(format!("channel {number} {from} {to}"), format!("{stats:?}"));
    }
    found.insert("control".into(), log.lock().expect("whole").clone());
    let empty = format!("{:?}", fairlane_endpoint::record::FlowLog::new());
    found.retain(|_, text| !text.is_empty() && *text != empty);
    found
}

fn alone(case: &Case) -> BTreeMap<String, String> {
    let (mut network, log) = build(case);
    network.run_until(150 * MS).expect("runs");
    network.run_until(400 * MS).expect("runs");
    seen(&mut network, &log)
}

fn divided(case: &Case) -> BTreeMap<String, String> {
    let count = case.homes.iter().max().expect("switches") + 1;
    let run = |peers: Threads| {
        let (mut network, log) = build(case);
        let own = peers.own;
        network.partition(own, &case.homes, Box::new(peers)).expect("it can be divided");
        network.run_until(150 * MS).expect("runs");
        network.run_until(400 * MS).expect("runs");
        seen(&mut network, &log)
    };
    let run = &run;
    let mut whole = BTreeMap::new();
    thread::scope(|scope| {
        let threads: Vec<_> = Threads::mesh(count).into_iter().map(|peers| scope.spawn(move || run(peers))).collect();
        for part in threads {
            for (key, text) in part.join().expect("no panic") {
                assert!(whole.insert(key.clone(), text).is_none(), "two partitions have {key}");
            }
        }
    });
    whole
}

fn differences(one: &BTreeMap<String, String>, other: &BTreeMap<String, String>) -> String {
    let mut text = String::new();
    for key in one.keys().chain(other.keys().filter(|key| !one.contains_key(*key))) {
        let (a, b) = (one.get(key), other.get(key));
        if a != b {
            let (a, b) = (a.map_or("", String::as_str), b.map_or("", String::as_str));
            let at = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count().saturating_sub(150);
            let cut = |text: &str| text.chars().skip(at).take(400).collect::<String>();
            text += &format!("{key} from {at}:\n  {}\n  {}\n", cut(a), cut(b));
        }
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn the_same_records(case in cases()) {
        program();
        let (one, several) = (alone(&case), divided(&case));
        prop_assert!(one == several, "{}", differences(&one, &several));
    }
}
