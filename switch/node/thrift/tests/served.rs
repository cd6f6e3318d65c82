//! The server over TCP, called by Apache Thrift's own protocol; and what no client should send.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fairlane_clients::Clients;
use fairlane_device::pipeline::{Observing, Program};
use fairlane_device::{Device, DeviceConfig, Event, Nanos, PortConfig, SharedDevice};
use fairlane_thrift::ports::NoPorts;
use fairlane_thrift::value::{read_fields, write_fields, Fields, Kind, Value};
use fairlane_thrift::{Core, Failure, Identity, Notifier, Server, ServerConfig};
use proptest::prelude::*;
use thrift::protocol::{TBinaryInputProtocol, TBinaryOutputProtocol, TInputProtocol, TMessageIdentifier, TMessageType, TOutputProtocol};

fn program() -> Arc<Program> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/bmv2/commands.p4");
    let outcome = fairlane_compiler::compile(&path, &Default::default());
    let json = outcome.json.unwrap_or_else(|| panic!("{}", outcome.rendered));
    Arc::new(Program::from_json(&json.to_string()).expect("loads"))
}

fn device() -> Device {
    let mut device = Device::new(DeviceConfig::default());
    for port in 1..=4 {
        device.set_port(port, PortConfig::default()).expect("a port");
    }
    device.load(0, program()).expect("memory");
    device
}

fn serve() -> Server {
    let config = ServerConfig {
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        identity: Identity { device_id: 7, ..Identity::default() },
        ports: Arc::new(NoPorts),
        publisher: None,
        event_log: None,
        clock: || 0,
        clients: Clients::default(),
    };
    Server::start(config, Arc::new(SharedDevice::new(device(), || 0))).expect("serves")
}

type Reply = (TMessageType, Fields);

fn send(stream: &mut TcpStream, method: &str, args: &Fields) {
    let mut bytes = Vec::new();
    let mut output = TBinaryOutputProtocol::new(&mut bytes, true);
    output.write_message_begin(&TMessageIdentifier::new(method, TMessageType::Call, 5)).expect("written");
    write_fields(&mut output, args).expect("written");
    stream.write_all(&bytes).expect("sent");
}

fn receive(stream: &mut TcpStream) -> Reply {
    let mut input = TBinaryInputProtocol::new(stream, true);
    let message = input.read_message_begin().expect("a reply");
    assert_eq!(message.sequence_number, 5);
    (message.message_type, read_fields(&mut input).expect("a struct"))
}

fn ask(stream: &mut TcpStream, method: &str, args: Fields) -> Reply {
    send(stream, method, &args);
    receive(stream)
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.local_addr()).expect("connected");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
    stream
}

fn text(text: &str) -> Value {
    Value::text(text)
}

fn read_register(stream: &mut TcpStream) -> Reply {
    ask(stream, "standard:bm_register_read", Fields::new([(1, Value::I32(0)), (2, text("I.reg")), (3, Value::I32(3))]))
}

#[test]
fn calls_are_answered_with_results_and_with_the_codes_of_bmv2() {
    let server = serve();
    let mut stream = connect(&server);
    let write = |index, value| Fields::new([(1, Value::I32(0)), (2, text("I.reg")), (3, Value::I32(index)), (4, Value::I64(value))]);
    assert_eq!(ask(&mut stream, "standard:bm_register_write", write(3, 77)), (TMessageType::Reply, Fields::default()));
    assert_eq!(read_register(&mut stream), (TMessageType::Reply, Fields::new([(0, Value::I64(77))])));
    let refused = Fields::new([(1, Value::record([(1, Value::I32(2))]))]);
    assert_eq!(ask(&mut stream, "standard:bm_register_write", write(16, 1)), (TMessageType::Reply, refused));
    for method in ["standard:bm_nothing", "nothing:bm_register_read", "simple_pre:bm_mc_set_lag_membership"] {
        let (kind, fields) = ask(&mut stream, method, Fields::new([(1, Value::I32(0))]));
        assert_eq!((kind, fields.i32(2)), (TMessageType::Exception, Ok(1)), "{method}");
    }
    let (kind, fields) = ask(&mut stream, "standard:bm_register_read", Fields::new([(1, Value::I32(0))]));
    assert_eq!((kind, fields.i32(2)), (TMessageType::Exception, Ok(7)));
    assert!(fields.string(1).expect("a text").contains("argument 2 is missing"));
    let (_, info) = ask(&mut stream, "standard:bm_mgmt_get_info", Fields::default());
    let info = info.fields(0).expect("a result");
    assert_eq!((info.i64(1), info.i32(2)), (Ok(7), Ok(i32::from(server.local_addr().port()))));
}

#[test]
fn five_hundred_clients_lose_nothing() {
    let server = serve();
    let mut streams: Vec<TcpStream> = (0..500).map(|_| connect(&server)).collect();
    let add = Fields::new([(1, Value::I32(0)), (2, text("P.pvs"))]);
    for stream in &mut streams {
        send(stream, "standard:bm_parse_vset_get", &add);
    }
    for stream in &mut streams {
        assert_eq!(receive(stream), (TMessageType::Reply, Fields::new([(0, Value::List(Kind::Bytes, Vec::new()))])));
    }
}

#[test]
fn what_is_no_call_ends_its_own_connection_alone() {
    let server = serve();
    let mut good = connect(&server);
    // HTTP; a string of 2 GiB; a list of 2^31 - 1 structs; the half of a call, whose other half never comes.
    let cases: [&[u8]; 3] = [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x80\x01\x00\x01\x7f\xff\xff\xff",
        b"\x80\x01\x00\x01\x00\x00\x00\x01x\x00\x00\x00\x05\x0f\x00\x01\x0c\x7f\xff\xff\xff",
    ];
    for case in cases {
        let mut bad = connect(&server);
        bad.write_all(case).expect("sent");
        bad.shutdown(std::net::Shutdown::Write).expect("shut");
        let mut rest = Vec::new();
        assert_eq!(bad.read_to_end(&mut rest).expect("closed"), 0, "{case:?}");
    }
    let mut half = connect(&server);
    half.write_all(b"\x80\x01\x00\x01\x00\x00\x00\x10standard:").expect("sent");
    assert_eq!(read_register(&mut good).0, TMessageType::Reply);
    half.write_all(b"bm_x\0\0").expect("the switch waits for the rest");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_fields_are_read_as_they_were_written(fields in fields()) {
        let mut bytes = Vec::new();
        write_fields(&mut TBinaryOutputProtocol::new(&mut bytes, true), &fields).expect("written");
        let mut rest = bytes.as_slice();
        prop_assert_eq!(read_fields(&mut TBinaryInputProtocol::new(&mut rest, true)).expect("read"), fields);
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut rest = bytes.as_slice();
        let _ = read_fields(&mut TBinaryInputProtocol::new(&mut rest, true));
    }

    /// Every method, with arguments of whatever kind: an answer, and no panic.
    #[test]
    fn any_arguments_are_answered(calls in prop::collection::vec((0..METHODS.len(), fields()), 1..40)) {
        let mut device = device_without_cost();
        let mut core = Core::new(Identity { swap: true, ..Identity::default() });
        let mut notifier = Notifier::new(0);
        for (method, mut args) in calls {
            let (service, method) = METHODS[method].split_once(':').expect("a service");
            args.push(1, Value::I32(0));
            if method.starts_with("bm_learning") {
                let _ = notifier.call(method, &args, device.switch());
            } else {
                let answer = core.call(service, method, &args, &mut device, 0);
                prop_assert!(answer != Err(Failure::UnknownMethod), "{}", method);
            }
        }
    }
}

fn device_without_cost() -> Device {
    thread_local!(static PROGRAM: Arc<Program> = program());
    let mut device = Device::new(DeviceConfig::default());
    PROGRAM.with(|program| device.load(0, Arc::clone(program)).expect("memory"));
    device
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        any::<i16>().prop_map(Value::I16),
        (-2..40i32).prop_map(Value::I32),
        any::<i64>().prop_map(Value::I64),
        (-1e6..1e6f64).prop_map(Value::Double),
        prop::sample::select(vec![
            "I.dmac", "I.acl", "I.lpm", "I.sel", "I.ecmp", "I.ind", "I.cnt", "I.met", "I.reg", "P.pvs", "I.fwd", "I.drop", "calc", "110"
        ])
        .prop_map(Value::text),
        prop::collection::vec(any::<u8>(), 0..8).prop_map(Value::Bytes),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec((1..6i16, inner), 0..5).prop_map(Value::record),
            prop::collection::vec(prop::collection::vec(any::<u8>(), 0..8).prop_map(Value::Bytes), 0..4)
                .prop_map(|items| Value::List(Kind::Bytes, items)),
        ]
    })
}

fn fields() -> impl Strategy<Value = Fields> {
    prop::collection::vec((1..7i16, value()), 0..7).prop_map(Fields::new)
}

const METHODS: [&str; 93] = [
    "standard:bm_mt_get_num_entries",
    "standard:bm_mt_clear_entries",
    "standard:bm_mt_add_entry",
    "standard:bm_mt_set_default_action",
    "standard:bm_mt_reset_default_entry",
    "standard:bm_mt_delete_entry",
    "standard:bm_mt_modify_entry",
    "standard:bm_mt_set_entry_ttl",
    "standard:bm_mt_act_prof_add_member",
    "standard:bm_mt_act_prof_delete_member",
    "standard:bm_mt_act_prof_modify_member",
    "standard:bm_mt_act_prof_create_group",
    "standard:bm_mt_act_prof_delete_group",
    "standard:bm_mt_act_prof_add_member_to_group",
    "standard:bm_mt_act_prof_remove_member_from_group",
    "standard:bm_mt_act_prof_get_members",
    "standard:bm_mt_act_prof_get_member",
    "standard:bm_mt_act_prof_get_groups",
    "standard:bm_mt_act_prof_get_group",
    "standard:bm_mt_indirect_add_entry",
    "standard:bm_mt_indirect_modify_entry",
    "standard:bm_mt_indirect_delete_entry",
    "standard:bm_mt_indirect_set_entry_ttl",
    "standard:bm_mt_indirect_set_default_member",
    "standard:bm_mt_indirect_reset_default_entry",
    "standard:bm_mt_indirect_ws_add_entry",
    "standard:bm_mt_indirect_ws_modify_entry",
    "standard:bm_mt_indirect_ws_set_default_group",
    "standard:bm_mt_read_counter",
    "standard:bm_mt_reset_counters",
    "standard:bm_mt_write_counter",
    "standard:bm_mt_set_meter_rates",
    "standard:bm_mt_get_meter_rates",
    "standard:bm_mt_get_entries",
    "standard:bm_mt_get_entry",
    "standard:bm_mt_get_default_entry",
    "standard:bm_mt_get_entry_from_key",
    "standard:bm_counter_read",
    "standard:bm_counter_reset_all",
    "standard:bm_counter_write",
    "standard:bm_learning_ack",
    "standard:bm_learning_ack_buffer",
    "standard:bm_learning_set_timeout",
    "standard:bm_learning_set_buffer_size",
    "standard:bm_swap_configs",
    "standard:bm_meter_array_set_rates",
    "standard:bm_meter_set_rates",
    "standard:bm_meter_get_rates",
    "standard:bm_register_read",
    "standard:bm_register_read_all",
    "standard:bm_register_write",
    "standard:bm_register_write_range",
    "standard:bm_register_reset",
    "standard:bm_parse_vset_add",
    "standard:bm_parse_vset_remove",
    "standard:bm_parse_vset_get",
    "standard:bm_parse_vset_clear",
    "standard:bm_mgmt_get_info",
    "standard:bm_set_crc16_custom_parameters",
    "standard:bm_set_crc32_custom_parameters",
    "standard:bm_set_toeplitz_hash_key",
    "standard:bm_reset_state",
    "standard:bm_get_config",
    "standard:bm_get_config_md5",
    "standard:bm_get_id_from_name",
    "standard:bm_serialize_state",
    "simple_pre:bm_mc_mgrp_create",
    "simple_pre:bm_mc_mgrp_destroy",
    "simple_pre:bm_mc_node_create",
    "simple_pre:bm_mc_node_associate",
    "simple_pre:bm_mc_node_dissociate",
    "simple_pre:bm_mc_node_destroy",
    "simple_pre:bm_mc_node_update",
    "simple_pre:bm_mc_get_entries",
    "simple_pre_lag:bm_mc_node_create",
    "simple_pre_lag:bm_mc_node_update",
    "simple_pre_lag:bm_mc_set_lag_membership",
    "simple_pre_lag:bm_mc_get_entries",
    "simple_switch:mirroring_mapping_add",
    "simple_switch:mirroring_mapping_delete",
    "simple_switch:mirroring_mapping_get_egress_port",
    "simple_switch:mirroring_session_add",
    "simple_switch:mirroring_session_delete",
    "simple_switch:mirroring_session_get",
    "simple_switch:set_egress_priority_queue_depth",
    "simple_switch:set_egress_queue_depth",
    "simple_switch:set_all_egress_queue_depths",
    "simple_switch:set_egress_priority_queue_rate",
    "simple_switch:set_egress_queue_rate",
    "simple_switch:set_all_egress_queue_rates",
    "simple_switch:get_time_elapsed_us",
    "simple_switch:get_time_since_epoch_us",
    "standard:bm_mt_get_num_entries",
];

const SECOND: Nanos = 1_000_000_000;

/// A frame from a source, to nobody known.
fn learn(device: &mut Device, now: Nanos, source: u8) -> Vec<Event> {
    let mut frame = vec![0; 60];
    frame[11] = source;
    device.receive(now, 1, &frame);
    device.take_events()
}

#[test]
fn samples_are_sent_together_once_and_again_after_an_acknowledgement() {
    let mut device = device();
    let mut notifier = Notifier::new(3);
    let mut deliver = |notifier: &mut Notifier, now, source| {
        let events = learn(&mut device, now, source);
        notifier.on_events(&events, device.switch().expect("a program"), now)
    };
    assert_eq!(deliver(&mut notifier, 0, 1), Vec::<Vec<u8>>::new());
    assert_eq!(deliver(&mut notifier, 5, 1), Vec::<Vec<u8>>::new(), "it is known already");
    assert_eq!(notifier.next_deadline(), Some(SECOND));
    let list = program().digests()[0].json_id as i32;
    let header = |buffer: u64, count: u32| {
        let mut header = b"LEA|".to_vec();
        header.extend_from_slice(&3u64.to_le_bytes());
        header.extend_from_slice(&0i32.to_le_bytes());
        header.extend_from_slice(&list.to_le_bytes());
        header.extend_from_slice(&buffer.to_le_bytes());
        header.extend_from_slice(&count.to_le_bytes());
        header
    };
    let sample = |source: u8| [0, 0, 0, 0, 0, source, 0, 1];
    assert_eq!(notifier.tick(SECOND - 1), Vec::<Vec<u8>>::new());
    assert_eq!(notifier.tick(SECOND), [[header(0, 1), sample(1).to_vec()].concat()]);
    // Sixteen others fill a buffer; the first is not acknowledged.
    let sent: Vec<_> = (1..=17).flat_map(|source| deliver(&mut notifier, 2 * SECOND, source)).collect();
    assert_eq!(sent, [[header(1, 16), (2..=17).flat_map(sample).collect()].concat()]);
    let ack = Fields::new([(1, Value::I32(0)), (2, Value::I32(list)), (3, Value::I64(0))]);
    notifier.call("bm_learning_ack_buffer", &ack, None).expect_err("there is no switch");
    let switch = device.switch().expect("a program");
    notifier.call("bm_learning_ack_buffer", &ack, Some(switch)).expect("acknowledged");
    let second =
        Fields::new([(1, Value::I32(0)), (2, Value::I32(list)), (3, Value::I64(1)), (4, Value::List(Kind::I32, vec![Value::I32(1)]))]);
    notifier.call("bm_learning_ack", &second, Some(switch)).expect("acknowledged");
    let again: Vec<_> = (1..=17)
        .flat_map(|source| {
            let events = learn(&mut device, 3 * SECOND, source);
            notifier.on_events(&events, device.switch().expect("a program"), 3 * SECOND)
        })
        .collect();
    assert!(again.is_empty());
    assert_eq!(notifier.tick(4 * SECOND), [[header(2, 2), [sample(1), sample(3)].concat()].concat()]);
}

#[test]
fn entries_that_age_are_named_by_their_handles() {
    let mut device = device();
    let mut core = Core::new(Identity::default());
    let key = Value::record([(1, Value::I32(0)), (2, Value::record([(1, Value::Bytes(vec![0, 0, 0, 0, 0, 9]))]))]);
    let add = Fields::new([
        (1, Value::I32(0)),
        (2, text("I.dmac")),
        (3, Value::List(Kind::Struct, vec![key])),
        (4, text("I.fwd")),
        (5, Value::List(Kind::Bytes, vec![Value::Bytes(vec![0, 2])])),
        (6, Value::record([])),
    ]);
    let entry = |handle| [(1, Value::I32(0)), (2, text("I.dmac")), (3, Value::I32(handle))];
    let mut call = |device: &mut Device, method: &str, args: &Fields| core.call("standard", method, args, device, 0);
    assert_eq!(call(&mut device, "bm_mt_add_entry", &add), Ok(Some(Value::I32(0))));
    assert_eq!(call(&mut device, "bm_mt_delete_entry", &Fields::new(entry(0))), Ok(None));
    assert_eq!(call(&mut device, "bm_mt_add_entry", &add), Ok(Some(Value::I32(1 << 24))));
    assert_eq!(call(&mut device, "bm_mt_delete_entry", &Fields::new(entry(0))), Err(Failure::Refused(3)), "the handle has expired");
    let mut ttl = Fields::new(entry(1 << 24));
    ttl.push(4, Value::I32(500));
    assert_eq!(call(&mut device, "bm_mt_set_entry_ttl", &ttl), Ok(None));
    device.poll(SECOND, &mut Vec::new());
    let events = device.take_events();
    let messages = Notifier::new(1).on_events(&events, device.switch().expect("a program"), SECOND);
    let table = program().table(program().table_by_name("I.dmac").expect("a table")).expect("a table").json_id as i32;
    let mut expected = b"AGE|".to_vec();
    expected.extend_from_slice(&1u64.to_le_bytes());
    expected.extend_from_slice(&0i32.to_le_bytes());
    expected.extend_from_slice(&0u64.to_le_bytes());
    expected.extend_from_slice(&table.to_le_bytes());
    expected.extend_from_slice(&1u32.to_le_bytes());
    expected.extend_from_slice(&(1u32 << 24).to_le_bytes());
    assert_eq!(messages, [expected]);
}

#[test]
fn ports_and_swaps_have_headers_of_32_bytes() {
    let notifier = Notifier::new(2);
    let port = notifier.port(5, true);
    assert_eq!((port.len(), &port[..12], &port[12..16]), (40, &b"PRT|\x02\0\0\0\0\0\0\0"[..], &1u32.to_le_bytes()[..]));
    assert_eq!(&port[32..], [5, 0, 0, 0, 1, 0, 0, 0]);
    let swap = notifier.swap(2);
    assert_eq!((swap.len(), &swap[16..20]), (32, &2i32.to_le_bytes()[..]));
}

/// BMv2's rate is of packets, evenly spaced, whatever their size: the first goes at once.
#[test]
fn a_queue_with_a_rate_in_packets_spaces_them() {
    let mut device = device();
    let mut core = Core::new(Identity::default());
    let mut call = |device: &mut Device, service: &str, method: &str, args: Fields| core.call(service, method, &args, device, 0);
    let data = Value::List(Kind::Bytes, vec![Value::Bytes(vec![2])]);
    let default = Fields::new([(1, Value::I32(0)), (2, text("I.dmac")), (3, text("I.fwd")), (4, data)]);
    assert_eq!(call(&mut device, "standard", "bm_mt_set_default_action", default), Ok(None));
    let rate = Fields::new([(1, Value::I32(2)), (2, Value::I64(1000))]);
    assert_eq!(call(&mut device, "simple_switch", "set_egress_queue_rate", rate), Ok(Some(Value::I32(0))));
    let depth = Fields::new([(1, Value::I32(2)), (2, Value::I32(2))]);
    assert_eq!(call(&mut device, "simple_switch", "set_egress_queue_depth", depth), Ok(Some(Value::I32(0))));
    for size in [60, 1000, 64, 80] {
        device.receive(10, 1, &vec![0; size]);
    }
    let mut out = Vec::new();
    device.poll(SECOND, &mut out);
    let left: Vec<_> = out.iter().map(|(port, instant, frame)| (*port, *instant, frame.len())).collect();
    // The queue holds two beside the one that left: the fourth found it full.
    assert_eq!(left, [(2, 10, 60), (2, 1_000_010, 1000), (2, 2_000_010, 64)]);
}

/// Kinds of BMv2's events, with the numbers that follow: of tables, actions and so on by the JSON, which gives each list its own.
fn kinds(device: &mut Device) -> Vec<(i32, Vec<i32>)> {
    let mut found = Vec::new();
    for event in device.take_observed() {
        let message = fairlane_thrift::nanolog::message(7, &event).expect("nothing that only the packet log has");
        let word = |at: usize| i32::from_le_bytes(message[at..at + 4].try_into().expect("four bytes"));
        assert_eq!((word(4), word(8), word(12)), (7, 0, 0), "device and context");
        found.push((word(0), (40..message.len()).step_by(4).map(word).collect()));
    }
    found
}

#[test]
fn the_event_log_has_a_message_for_each_step() {
    let mut device = Device::new(DeviceConfig { observe: Observing::Events, ..DeviceConfig::default() });
    (1..=2).for_each(|port| device.set_port(port, PortConfig::default()).expect("a port"));
    device.load(0, program()).expect("memory");
    let json: serde_json::Value = serde_json::from_str(program().source()).expect("JSON");
    let pipelines = json["pipelines"].as_array().expect("pipelines");
    let id = |name: &str, kind: &str| {
        let mut all = pipelines.iter().map(|one| &one[kind]).chain([&json[kind]]).filter_map(|list| list.as_array()).flatten();
        all.find(|one| one["name"] == name).and_then(|one| one["id"].as_i64()).unwrap_or_else(|| panic!("{name}")) as i32
    };
    learn(&mut device, 0, 1);
    assert!(kinds(&mut device).is_empty(), "nobody asked for steps");
    device.set_observing(true);
    learn(&mut device, 0, 2);
    let steps = kinds(&mut device);
    let (ingress, eth) = (id("ingress", "pipelines"), id("eth", "headers"));
    assert_eq!(&steps[..5], [(0, vec![1]), (2, vec![0]), (4, vec![eth]), (3, vec![0]), (9, vec![ingress])]);
    let tables = [("I.smac", "I.learn"), ("I.dmac", "I.drop")];
    for (table, action) in tables {
        let at = steps.iter().position(|step| *step == (13, vec![id(table, "tables")])).unwrap_or_else(|| panic!("{table}: {steps:?}"));
        assert_eq!(steps[at + 1], (14, vec![id(action, "actions")]));
    }
    assert!(steps.iter().any(|(kind, numbers)| *kind == 11 && numbers[1] == 0), "no IPv4: {steps:?}");
    assert_eq!(steps.last(), Some(&(10, vec![ingress])), "dropped");
    device.load(1, program()).expect("memory");
    assert_eq!(kinds(&mut device), [(999, vec![])]);
    device.set_observing(false);
    learn(&mut device, 2, 3);
    assert!(kinds(&mut device).is_empty());
}
