//! Flows that start when others are over.

mod common;

use common::{dumbbell, flow, MS, SECOND};
use fairlane_endpoint::record::FlowRecord;
use fairlane_tcp::{Config, Flavour, Ftp};
use fairlane_virtual::{ChannelConfig, FlowKind, FlowSpec, Nanos, Network, TcpSpec};

const RATE: u64 = 10_000_000;

fn link(delay_ns: Nanos) -> ChannelConfig {
    ChannelConfig { rate_bps: Some(RATE), delay_ns, queue_packets: 100, ..ChannelConfig::default() }
}

fn network(pairs: u8) -> Network {
    dumbbell(pairs, 1, &link(10 * MS), &link(MS))
}

/// A file from one host to another, on a port of its own.
fn file(name: &str, ends: (&str, &str), port: u16, bytes: Option<u64>, start: Nanos) -> FlowSpec {
    let config = Config { flavour: Flavour::Sack, mss: 960, ..Config::default() };
    let source = bytes.map_or(Ftp::Persistent, Ftp::Bytes);
    let kind = FlowKind::Tcp(TcpSpec { config, source, sending_jitter: 0 });
    FlowSpec { sender: ends.0.into(), receiver: ends.1.into(), port, ..flow(name, 1, start, 20 * SECOND, kind) }
}

/// When a flow's end recorded something first: of its sender, or of its receiver.
fn at(network: &Network, name: &str, receiver: bool, wanted: fn(&FlowRecord) -> bool) -> Option<Nanos> {
    let found = network.flows().iter().find(|flow| flow.name == name).expect("a flow");
    let (sent, received) = network.logs(found);
    let log = if receiver { received } else { sent };
    log.iter().find(|(_, record)| wanted(record)).map(|(time, _)| *time)
}

fn started(network: &Network, name: &str) -> Option<Nanos> {
    at(network, name, false, |record| matches!(record, FlowRecord::Start))
}

fn delivered(network: &Network, name: &str) -> Option<Nanos> {
    at(network, name, true, |record| matches!(record, FlowRecord::Delivered { .. }))
}

fn complete(network: &Network, name: &str) -> Option<Nanos> {
    at(network, name, false, |record| matches!(record, FlowRecord::Complete { .. }))
}

#[test]
fn a_response_starts_when_its_request_has_arrived() {
    let mut network = network(1);
    network.add_flow(file("ask", ("a1", "b1"), 5004, Some(100), SECOND)).expect("a flow");
    network.add_flow(file("answer", ("b1", "a1"), 5006, Some(50_000), 0)).expect("a flow");
    network.start_after("answer", &["ask"], 3 * MS).expect("they share a host");
    network.run_until(10 * SECOND).expect("a run");
    let arrived = delivered(&network, "ask").expect("delivered");
    // The handshake takes a round trip of 24 ms and more, the request half of one.
    assert!(arrived > SECOND + 36 * MS && arrived < SECOND + 38 * MS, "{arrived}");
    assert_eq!(started(&network, "answer"), Some(arrived + 3 * MS));
    assert!(complete(&network, "ask").expect("acknowledged") >= arrived + 12 * MS);
    assert!(delivered(&network, "answer").is_some());
}

#[test]
fn a_flow_may_wait_for_several_and_for_what_its_own_host_sent() {
    let mut network = network(2);
    network.add_flow(file("first", ("b1", "a1"), 5004, Some(5_000), 0)).expect("a flow");
    network.add_flow(file("second", ("b2", "a1"), 5004, Some(90_000), 0)).expect("a flow");
    network.add_flow(file("own", ("a1", "b2"), 5006, Some(20_000), 0)).expect("a flow");
    network.add_flow(file("next", ("a1", "b1"), 5008, Some(1_000), 0)).expect("a flow");
    network.start_after("next", &["first", "second", "own"], 0).expect("they share a host");
    network.run_until(10 * SECOND).expect("a run");
    let known = [delivered(&network, "first"), delivered(&network, "second"), complete(&network, "own")];
    assert_eq!(started(&network, "next"), known.into_iter().max().expect("three"));
    assert!(known.iter().all(Option::is_some));
}

#[test]
fn its_own_start_is_the_earliest() {
    let mut network = network(1);
    network.add_flow(file("ask", ("a1", "b1"), 5004, Some(100), 0)).expect("a flow");
    network.add_flow(file("late", ("b1", "a1"), 5006, Some(100), 5 * SECOND)).expect("a flow");
    network.start_after("late", &["ask"], MS).expect("they share a host");
    network.run_until(10 * SECOND).expect("a run");
    assert_eq!(started(&network, "late"), Some(5 * SECOND));
}

#[test]
fn what_never_ends_starts_nothing() {
    let mut network = network(1);
    let mut cut = file("cut", ("a1", "b1"), 5004, Some(100_000_000), 0);
    cut.stop = SECOND;
    network.add_flow(cut).expect("a flow");
    network.add_flow(file("after", ("b1", "a1"), 5006, Some(100), 0)).expect("a flow");
    network.start_after("after", &["cut"], 0).expect("they share a host");
    network.run_until(10 * SECOND).expect("a run");
    assert_eq!((started(&network, "after"), complete(&network, "cut")), (None, None));
}

#[test]
fn others_keep_their_records() {
    let records = |more: bool| {
        let mut network = network(2);
        network.add_flow(file("plain", ("a2", "b2"), 5004, Some(300_000), 0)).expect("a flow");
        if more {
            network.add_flow(file("ask", ("a1", "b1"), 5004, Some(100), 9 * SECOND)).expect("a flow");
            network.add_flow(file("answer", ("b1", "a1"), 5006, Some(100), 0)).expect("a flow");
            network.start_after("answer", &["ask"], 0).expect("they share a host");
        }
        network.run_until(8 * SECOND).expect("a run");
        let flow = network.flows()[0].clone();
        let (sent, received) = network.logs(&flow);
        format!("{sent:?}{received:?}")
    };
    assert_eq!(records(false), records(true));
}

#[test]
fn what_cannot_be_is_refused() {
    let mut network = network(3);
    network.add_flow(file("ask", ("a1", "b1"), 5004, Some(100), 0)).expect("a flow");
    network.add_flow(file("endless", ("a1", "b1"), 5006, None, 0)).expect("a flow");
    network.add_flow(file("answer", ("b1", "a1"), 5008, Some(100), 0)).expect("a flow");
    network.add_flow(file("other", ("a2", "b2"), 5004, Some(100), 0)).expect("a flow");
    network.add_flow(common::fixed("media", 3, 1e6, 0, SECOND)).expect("a flow");
    let mut refused = |name: &str, after: &str| network.start_after(name, &[after], 0).expect_err("refused").to_string();
    assert_eq!(refused("answer", "asks"), "flow asks: there is no such flow; did you mean \"ask\"?");
    assert_eq!(refused("answer", "endless"), "flow answer: endless has no end to wait for: it is no TCP flow with a file");
    assert_eq!(refused("other", "ask"), "flow other: a2 learns nothing of the end of ask, which is between other hosts");
    assert_eq!(refused("media", "ask"), "flow media: a3 learns nothing of the end of ask, which is between other hosts");
    network.start_after("answer", &["ask"], 0).expect("they share a host");
    let twice = network.start_after("answer", &["ask"], 0).expect_err("refused").to_string();
    assert_eq!(twice, "flow answer: waits for other flows already, or has started");
}
