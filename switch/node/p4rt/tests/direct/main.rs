//! The service called directly, in virtual time: the compiler's output pushed, packets through the tables, digests by the
//! nanosecond, and no bytes that make it panic.

mod parts;

use std::path::Path;
use std::sync::OnceLock;

use fairlane_device::pipeline::Observing;
use fairlane_device::{Device, DeviceConfig};
use fairlane_p4rt::core::{ReadProgress, WriteProgress};
use fairlane_p4rt::proto::p4::config::v1 as config;
use fairlane_p4rt::proto::p4::v1 as p4;
use fairlane_p4rt::{ClientId, Code, Core, Notification};
use proptest::prelude::*;
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage};

use p4::entity::Entity as Kind;
use p4::field_match::FieldMatchType;
use p4::stream_message_request::Update as Request;
use p4::stream_message_response::Update as Response;
use p4::update::Type;

const CPU_PORT: u32 = 510;
const DEVICE: u64 = 3;
const CLIENT: ClientId = ClientId(1);
const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// The test program, compiled by our compiler: P4Info from its text form, and BMv2 JSON.
fn program() -> &'static p4::ForwardingPipelineConfig {
    static PROGRAM: OnceLock<p4::ForwardingPipelineConfig> = OnceLock::new();
    PROGRAM.get_or_init(|| compiled("tests/p4runtime/entities.p4"))
}

/// The program of the control plane's benchmark, which has a large table and a large register.
fn large() -> &'static p4::ForwardingPipelineConfig {
    static PROGRAM: OnceLock<p4::ForwardingPipelineConfig> = OnceLock::new();
    PROGRAM.get_or_init(|| compiled("bench/control.p4"))
}

fn compiled(source: &str) -> p4::ForwardingPipelineConfig {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(source);
    let outcome = fairlane_compiler::compile(&source, &Default::default());
    let json = outcome.json.unwrap_or_else(|| panic!("{}", outcome.rendered));
    let pool = DescriptorPool::decode(DESCRIPTORS).expect("descriptors");
    let descriptor = pool.get_message_by_name("p4.config.v1.P4Info").expect("P4Info");
    let info = DynamicMessage::parse_text_format(descriptor, &outcome.p4info.expect("P4Info")).expect("P4Info in text form");
    p4::ForwardingPipelineConfig {
        p4info: Some(info.transcode_to::<config::P4Info>().expect("P4Info")),
        p4_device_config: json.to_string().into_bytes(),
        cookie: None,
    }
}

fn info() -> &'static config::P4Info {
    program().p4info.as_ref().expect("P4Info")
}

/// A switch with its service and one primary.
struct Bench {
    core: Core,
    device: Device,
    now: u64,
}

const ELECTION: Option<p4::Uint128> = Some(p4::Uint128 { high: 0, low: 1 });

impl Bench {
    fn new() -> Bench {
        Bench::with(DeviceConfig::default())
    }

    fn with(config: DeviceConfig) -> Bench {
        let device = Device::new(DeviceConfig { cpu_port: Some(CPU_PORT), ..config });
        let mut bench = Bench { core: Core::new(DEVICE, 1_000_000_000_000), device, now: 1_000 };
        let update = p4::MasterArbitrationUpdate { device_id: DEVICE, election_id: ELECTION, ..Default::default() };
        let output = bench.stream(Request::Arbitration(update));
        assert_eq!(output.len(), 1);
        bench.push(program().clone(), p4::set_forwarding_pipeline_config_request::Action::VerifyAndCommit).expect("push");
        bench
    }

    fn stream(&mut self, update: Request) -> Vec<Response> {
        let message = p4::StreamMessageRequest { update: Some(update) };
        let output = self.core.stream_bytes(CLIENT, &message.encode_to_vec(), &mut self.device, self.now).expect("a message");
        assert_eq!(output.terminate, None);
        responses(output.messages)
    }

    fn push(
        &mut self,
        config: p4::ForwardingPipelineConfig,
        action: p4::set_forwarding_pipeline_config_request::Action,
    ) -> Result<(), fairlane_p4rt::Status> {
        let request = p4::SetForwardingPipelineConfigRequest {
            device_id: DEVICE,
            election_id: ELECTION,
            action: action as i32,
            config: Some(config),
            ..Default::default()
        };
        self.core.set_pipeline_bytes(&request.encode_to_vec(), &mut self.device, self.now)
    }

    fn write(&mut self, updates: Vec<(Type, Kind)>, atomicity: p4::write_request::Atomicity) -> Result<(), fairlane_p4rt::Status> {
        let updates =
            updates.into_iter().map(|(kind, entity)| p4::Update { r#type: kind as i32, entity: Some(p4::Entity { entity: Some(entity) }) });
        let request = p4::WriteRequest {
            device_id: DEVICE,
            election_id: ELECTION,
            updates: updates.collect(),
            atomicity: atomicity as i32,
            ..Default::default()
        };
        self.core.write_bytes(&request.encode_to_vec(), &mut self.device, self.now)
    }

    fn insert(&mut self, entity: Kind) {
        self.write(vec![(Type::Insert, entity)], Default::default()).expect("insert");
    }

    fn read(&mut self, entity: Kind) -> Vec<Kind> {
        let entities = vec![p4::Entity { entity: Some(entity) }];
        let request = p4::ReadRequest { device_id: DEVICE, entities, ..Default::default() };
        let (responses, status) = self.core.read_bytes(&request.encode_to_vec(), &mut self.device, self.now);
        status.expect("read");
        responses
            .iter()
            .flat_map(|response| p4::ReadResponse::decode(response.as_slice()).expect("a response").entities)
            .filter_map(|entity| entity.entity)
            .collect()
    }

    /// Everything that can be read, in an order that does not depend on that of insertion.
    fn state(&mut self) -> Vec<Vec<u8>> {
        let full = p4::TableEntry { counter_data: Some(Default::default()), meter_config: Some(Default::default()), ..Default::default() };
        let requests = [
            Kind::TableEntry(full),
            Kind::TableEntry(p4::TableEntry { is_default_action: true, ..Default::default() }),
            Kind::ActionProfileMember(Default::default()),
            Kind::ActionProfileGroup(Default::default()),
            Kind::CounterEntry(Default::default()),
            Kind::MeterEntry(Default::default()),
            Kind::RegisterEntry(Default::default()),
            Kind::PacketReplicationEngineEntry(Default::default()),
            Kind::ValueSetEntry(Default::default()),
            Kind::DigestEntry(Default::default()),
        ];
        let mut state: Vec<Vec<u8>> = requests
            .into_iter()
            .flat_map(|request| self.read(request))
            .map(|entity| p4::Entity { entity: Some(entity) }.encode_to_vec())
            .collect();
        state.sort();
        state
    }

    /// A packet-out with the source address, to be treated as if it had come in at port 2.
    fn packet(&mut self, source: u64, target: u64) -> Vec<Response> {
        let mut payload = target.to_be_bytes()[2..].to_vec();
        payload.extend(&source.to_be_bytes()[2..]);
        payload.extend([0x12, 0x34]);
        let metadata = [(1, 2u8), (2, 1), (3, 0)].map(|(metadata_id, value)| p4::PacketMetadata { metadata_id, value: vec![value] });
        let mut out = self.stream(Request::Packet(p4::PacketOut { payload, metadata: metadata.to_vec() }));
        out.extend(self.events());
        out
    }

    fn events(&mut self) -> Vec<Response> {
        let mut frames: Vec<(u32, u64, Vec<u8>)> = Vec::new();
        self.device.poll(self.now, &mut frames);
        let events = self.device.take_events();
        responses(self.core.on_device_events(events, self.now))
    }

    fn at(&mut self, now: u64) -> Vec<Response> {
        self.now = now;
        let mut out = self.events();
        out.extend(responses(self.core.tick(now)));
        out
    }
}

fn responses(messages: Vec<Notification>) -> Vec<Response> {
    messages
        .into_iter()
        .map(|(client, message)| {
            assert_eq!(client, CLIENT);
            message.update.expect("an update")
        })
        .collect()
}

fn table(alias: &str) -> &'static config::Table {
    info().tables.iter().find(|table| table.preamble.as_ref().unwrap().alias == alias).expect("a table")
}

fn action(name: &str, args: &[u64]) -> p4::Action {
    let action = info().actions.iter().find(|action| action.preamble.as_ref().unwrap().alias == name).expect("an action");
    let canonical = |value: u64| {
        let bytes = value.to_be_bytes();
        bytes[bytes.iter().position(|byte| *byte != 0).unwrap_or(7)..].to_vec()
    };
    p4::Action {
        action_id: action.preamble.as_ref().unwrap().id,
        params: action
            .params
            .iter()
            .zip(args)
            .map(|(param, value)| p4::action::Param { param_id: param.id, value: canonical(*value) })
            .collect(),
    }
}

fn l2(target: u64, port: u64) -> p4::TableEntry {
    let bytes = target.to_be_bytes();
    let value = bytes[bytes.iter().position(|byte| *byte != 0).unwrap_or(7)..].to_vec();
    p4::TableEntry {
        table_id: table("l2").preamble.as_ref().unwrap().id,
        r#match: vec![p4::FieldMatch { field_id: 1, field_match_type: Some(FieldMatchType::Exact(p4::field_match::Exact { value })) }],
        action: Some(p4::TableAction { r#type: Some(p4::table_action::Type::Action(action("l2_forward", &[port]))) }),
        ..Default::default()
    }
}

/// Asks for all entries of that table.
fn l2_all() -> p4::TableEntry {
    p4::TableEntry { table_id: table("l2").preamble.as_ref().unwrap().id, ..Default::default() }
}

fn digest_id() -> u32 {
    info().digests[0].preamble.as_ref().unwrap().id
}

fn learned(responses: &[Response]) -> Vec<Vec<u64>> {
    let address = |data: &p4::P4Data| match &data.data {
        Some(p4::p4_data::Data::Struct(members)) => match &members.members[0].data {
            Some(p4::p4_data::Data::Bitstring(bytes)) => bytes.iter().fold(0u64, |value, byte| value << 8 | u64::from(*byte)),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    responses
        .iter()
        .filter_map(|response| match response {
            Response::Digest(list) => Some(list.data.iter().map(address).collect()),
            _ => None,
        })
        .collect()
}

#[test]
fn a_packet_meets_the_entries_that_were_written() {
    let mut bench = Bench::new();
    bench.insert(Kind::TableEntry(l2(0xaa, u64::from(CPU_PORT))));
    let out = bench.packet(5, 0xaa);
    let [Response::Packet(packet)] = out.as_slice() else { panic!("{out:?}") };
    assert_eq!(packet.metadata[0], p4::PacketMetadata { metadata_id: 1, value: vec![2] });
    let counters = bench.read(Kind::DirectCounterEntry(Default::default()));
    let [Kind::DirectCounterEntry(counter)] = counters.as_slice() else { panic!("{counters:?}") };
    assert_eq!(counter.data.map(|data| data.packet_count), Some(1));
}

/// Some options make the switch run a variant of the program: it is still the one that was pushed.
#[test]
fn no_option_of_the_switch_shuts_its_service() {
    use p4::set_forwarding_pipeline_config_request::Action;
    let options = [
        DeviceConfig { observe: Observing::Events, ..Default::default() },
        DeviceConfig { observe: Observing::Everything, log: true, ..Default::default() },
        DeviceConfig { log: true, max_passes: 1, max_events: 1, seed: 7, ..Default::default() },
    ];
    for config in options {
        let mut bench = Bench::with(config.clone());
        bench.insert(Kind::TableEntry(l2(0xaa, 3)));
        assert_eq!(bench.read(Kind::TableEntry(l2_all())).len(), 1, "{config:?}");
        bench.push(program().clone(), Action::VerifyAndSave).expect("save");
        bench.insert(Kind::TableEntry(l2(0xbb, 4)));
        bench.insert(Kind::TableEntry(l2(0xcc, 5)));
        let commit = p4::SetForwardingPipelineConfigRequest {
            device_id: DEVICE,
            election_id: ELECTION,
            action: Action::Commit as i32,
            ..Default::default()
        };
        bench.core.set_pipeline_bytes(&commit.encode_to_vec(), &mut bench.device, bench.now).expect("commit");
        assert_eq!(bench.read(Kind::TableEntry(l2_all())).len(), 2, "{config:?}");
        bench.push(program().clone(), Action::ReconcileAndCommit).expect("reconcile");
        assert_eq!(bench.read(Kind::TableEntry(l2_all())).len(), 2, "{config:?}");
        // The same text loaded by somebody else is another program: what this service noted of its entries is gone with them.
        let json = std::str::from_utf8(&program().p4_device_config).expect("JSON");
        bench.device.load(bench.now, fairlane_pipeline::Program::from_json(json).expect("a program").into()).expect("memory");
        let refused = bench.write(vec![(Type::Insert, Kind::TableEntry(l2(0xaa, 3)))], Default::default()).expect_err("another program");
        assert_eq!(refused.code, Code::FailedPrecondition, "{refused}");
    }
}

#[test]
fn digests_by_the_nanosecond() {
    const MS: u64 = 1_000_000;
    let mut bench = Bench::new();
    let config = p4::digest_entry::Config { max_timeout_ns: 10 * MS as i64, max_list_size: 3, ack_timeout_ns: 100 * MS as i64 };
    bench.insert(Kind::DigestEntry(p4::DigestEntry { digest_id: digest_id(), config: Some(config) }));
    assert_eq!(bench.core.next_deadline(), None);
    bench.now = 20 * MS;
    assert_eq!(learned(&bench.packet(1, 9)), Vec::<Vec<u64>>::new());
    assert_eq!(bench.core.next_deadline(), Some(30 * MS));
    bench.now = 25 * MS;
    assert_eq!(learned(&bench.packet(2, 9)), Vec::<Vec<u64>>::new());
    // The time runs from the first message of the buffer, and not a nanosecond less.
    assert_eq!(learned(&bench.at(30 * MS - 1)), Vec::<Vec<u64>>::new());
    let out = bench.at(30 * MS);
    assert_eq!(learned(&out), [[1, 2]]);
    let list = out.iter().find_map(|response| match response {
        Response::Digest(list) => Some(list.clone()),
        _ => None,
    });
    let list = list.expect("a list");
    assert_eq!(list.timestamp, 1_000_000_000_000 + 30 * MS as i64);
    // Both are known now; the third and two more fill a list at once.
    bench.now = 40 * MS;
    for source in [1, 2, 3, 3, 4] {
        assert_eq!(learned(&bench.packet(source, 9)), Vec::<Vec<u64>>::new(), "{source}");
    }
    assert_eq!(learned(&bench.packet(5, 9)), [[3, 4, 5]]);
    // Acknowledged: the data plane may say it again.
    assert!(bench.stream(Request::DigestAck(p4::DigestListAck { digest_id: digest_id(), list_id: list.list_id })).is_empty());
    bench.now = 50 * MS;
    assert_eq!(learned(&bench.packet(1, 9)), Vec::<Vec<u64>>::new());
    assert_eq!(bench.core.next_deadline(), Some(60 * MS));
    assert_eq!(learned(&bench.at(60 * MS)), [[1]]);
    // The list of 40 ms was never acknowledged: 100 ms after it was sent its messages are new again.
    bench.now = 140 * MS - 1;
    assert_eq!(learned(&bench.packet(4, 9)), Vec::<Vec<u64>>::new());
    assert_eq!(bench.core.next_deadline(), Some(140 * MS));
    assert_eq!(learned(&bench.at(140 * MS)), Vec::<Vec<u64>>::new());
    assert_eq!(learned(&bench.packet(4, 9)), Vec::<Vec<u64>>::new());
    assert_eq!(learned(&bench.at(150 * MS)), [[4]]);
}

#[test]
fn idle_timeouts_are_told_once_for_each_timeout() {
    let mut bench = Bench::new();
    let entry = p4::TableEntry { idle_timeout_ns: 1_000_000_000, metadata: b"m".to_vec(), ..l2(0xaa, 1) };
    bench.insert(Kind::TableEntry(entry));
    let mut told = 0;
    for step in 1..=35u64 {
        for response in bench.at(step * 100_000_000) {
            let Response::IdleTimeoutNotification(note) = response else { panic!("{response:?}") };
            assert_eq!(note.table_entry[0].metadata, b"m");
            assert_eq!(note.table_entry[0].idle_timeout_ns, 1_000_000_000);
            told += 1;
        }
    }
    assert_eq!(told, 3);
}

#[test]
fn a_pipeline_is_checked_against_its_p4info() {
    let mut bench = Bench::new();
    let action = p4::set_forwarding_pipeline_config_request::Action::VerifyAndCommit;
    let mut refused = |change: &dyn Fn(&mut config::P4Info), expected: &str| {
        let mut config = program().clone();
        change(config.p4info.as_mut().expect("P4Info"));
        let status = bench.push(config, action).expect_err(expected);
        assert_eq!(status.code, Code::InvalidArgument);
        assert!(status.message.contains(expected), "{}", status.message);
    };
    refused(&|info| info.tables[0].match_fields[0].bitwidth = 47, "47 bits in the P4Info, 48 bits in the BMv2 JSON");
    refused(&|info| info.tables[0].match_fields.clear(), "0 key fields in the P4Info, 1 in the BMv2 JSON");
    refused(&|info| info.tables[0].preamble.as_mut().unwrap().name = "x.y".to_string(), "table \"x.y\"");
    refused(&|info| info.tables[0].preamble.as_mut().unwrap().id = 0, "id 0");
    refused(&|info| info.tables[1].preamble.as_mut().unwrap().id = info.tables[0].preamble.as_ref().unwrap().id, "used twice");
    refused(&|info| info.tables[0].preamble = None, "no preamble");
    refused(&|info| info.actions.clear(), "is not defined in the P4Info");
    refused(&|info| info.counters[0].size = -1, "-1 cells");
    refused(&|info| info.digests[0].type_spec = None, "no type_spec");
    refused(&|info| info.type_info = None, "no struct named");
    refused(&|info| info.value_sets[0].r#match[0].bitwidth = 15, "15 bits wide");
    refused(&|info| info.controller_packet_metadata[0].metadata[0].bitwidth = -1, "bitwidth -1 is negative");
    refused(
        &|info| info.tables[0].match_fields[0].r#match = Some(config::match_field::Match::OtherMatchType("fuzzy".to_string())),
        "fuzzy",
    );
}

/// Each array is small enough, and all together are not: refused before any memory is taken.
#[test]
fn arrays_have_a_budget_together() {
    let mut bench = Bench::new();
    let mut push = |kind: &str, count: usize, size: usize| {
        let mut json: serde_json::Value = serde_json::from_slice(&large().p4_device_config).expect("JSON");
        let arrays = json[kind].as_array_mut().expect("arrays");
        let one = arrays[0].clone();
        for id in 0..count {
            let mut more = one.clone();
            more["name"] = format!("more_{id}").into();
            more["id"] = (1000 + id).into();
            more["size"] = size.into();
            arrays.push(more);
        }
        let config = p4::ForwardingPipelineConfig { p4_device_config: json.to_string().into_bytes(), ..large().clone() };
        bench.push(config, p4::set_forwarding_pipeline_config_request::Action::VerifyAndCommit)
    };
    for kind in ["counter_arrays", "register_arrays"] {
        let refused = push(kind, 400, 1 << 24).expect_err("too much");
        assert_eq!(refused.code, Code::ResourceExhausted, "{refused}");
        assert!(refused.message.contains("'more_") && refused.message.contains("make arrays smaller"), "{refused}");
        push(kind, 4, 1 << 10).expect("little");
    }
}

#[test]
fn a_prepared_pipeline_is_refused_when_another_client_has_become_primary() {
    let mut bench = Bench::new();
    bench.insert(Kind::TableEntry(l2(0x0200_0000_0001, 4)));
    let request = p4::SetForwardingPipelineConfigRequest {
        device_id: DEVICE,
        election_id: ELECTION,
        action: p4::set_forwarding_pipeline_config_request::Action::VerifyAndCommit as i32,
        config: Some(program().clone()),
        ..Default::default()
    };
    let before = bench.read(Kind::TableEntry(Default::default()));
    bench.core.may_set_pipeline(&request).expect("the primary may");
    let prepared = Core::prepare_pipeline(&request, Default::default(), bench.device.config().clone());
    let higher = Some(p4::Uint128 { high: 0, low: 2 });
    let update = p4::MasterArbitrationUpdate { device_id: DEVICE, election_id: higher, ..Default::default() };
    let message = p4::StreamMessageRequest { update: Some(Request::Arbitration(update)) };
    bench.core.stream_message(ClientId(2), message, &mut bench.device, bench.now);
    let refused = bench.core.set_prepared_pipeline(&request, prepared, &mut bench.device, bench.now);
    assert_eq!(refused.map(drop).map_err(|status| status.code), Err(Code::PermissionDenied));
    assert_eq!(bench.read(Kind::TableEntry(Default::default())), before);
}

/// Each update needs the one before: undone in any other order than from last to first, the switch would refuse.
#[test]
fn dependent_updates_are_undone_in_reverse() {
    let profile = info().action_profiles.iter().find(|profile| profile.with_selector).unwrap().preamble.as_ref().unwrap().id;
    let member = p4::ActionProfileMember { action_profile_id: profile, member_id: 1, action: Some(action("set_nexthop", &[1, 1])) };
    let group = p4::ActionProfileGroup {
        action_profile_id: profile,
        group_id: 1,
        members: vec![p4::action_profile_group::Member { member_id: 1, weight: 1, watch_kind: None }],
        max_size: 0,
    };
    let entry = p4::TableEntry {
        table_id: table("balance").preamble.as_ref().unwrap().id,
        action: Some(p4::TableAction { r#type: Some(p4::table_action::Type::ActionProfileGroupId(1)) }),
        ..Default::default()
    };
    let mut bench = Bench::new();
    let before = bench.state();
    let mut batch = vec![
        (Type::Insert, Kind::ActionProfileMember(member)),
        (Type::Insert, Kind::ActionProfileGroup(group)),
        (Type::Insert, Kind::TableEntry(entry)),
        (Type::Delete, Kind::TableEntry(l2(1, 1))),
    ];
    let status = bench.write(batch.clone(), p4::write_request::Atomicity::DataplaneAtomic).expect_err("there is no such entry");
    let codes: Vec<Option<Code>> = status.details.iter().map(|detail| detail.as_ref().map(|(code, _)| *code)).collect();
    assert_eq!(codes, [Some(Code::Aborted), Some(Code::Aborted), Some(Code::Aborted), Some(Code::NotFound)]);
    assert_eq!(bench.state(), before);
    batch.pop();
    bench.write(batch, p4::write_request::Atomicity::DataplaneAtomic).expect("without the last");
    assert_ne!(bench.state(), before);
}

fn any_update() -> impl Strategy<Value = (Type, Kind)> {
    let kind = prop::sample::select(vec![Type::Insert, Type::Modify, Type::Delete]);
    let counter = info().counters[0].preamble.as_ref().unwrap().id;
    let register = info().registers[0].preamble.as_ref().unwrap().id;
    let profile = info().action_profiles.iter().find(|profile| profile.with_selector).unwrap().preamble.as_ref().unwrap().id;
    let balance = table("balance").preamble.as_ref().unwrap().id;
    let index = |index: i64| Some(p4::Index { index });
    let routes = table("routes").preamble.as_ref().unwrap().id;
    let entity = prop_oneof![
        prop::option::of(0u64..3).prop_map(move |port| Kind::TableEntry(p4::TableEntry {
            table_id: routes,
            is_default_action: true,
            action: port.map(|port| p4::TableAction { r#type: Some(p4::table_action::Type::Action(action("forward", &[port]))) }),
            ..Default::default()
        })),
        (0u64..4, 0u64..600).prop_map(|(target, port)| Kind::TableEntry(l2(target, port))),
        (0u64..4, 0i64..3).prop_map(|(target, packets)| Kind::TableEntry(p4::TableEntry {
            counter_data: Some(p4::CounterData { packet_count: packets, byte_count: 0 }),
            ..l2(target, 1)
        })),
        (0u32..4, 0u64..5000).prop_map(move |(member_id, nexthop)| Kind::ActionProfileMember(p4::ActionProfileMember {
            action_profile_id: profile,
            member_id,
            action: Some(action("set_nexthop", &[nexthop, 1])),
        })),
        (0u32..3, prop::collection::vec((0u32..4, 0i32..3), 0..3)).prop_map(move |(group_id, members)| {
            let members =
                members.into_iter().map(|(member_id, weight)| p4::action_profile_group::Member { member_id, weight, watch_kind: None });
            Kind::ActionProfileGroup(p4::ActionProfileGroup {
                action_profile_id: profile,
                group_id,
                members: members.collect(),
                max_size: 0,
            })
        }),
        (0u32..3, any::<bool>(), 1i32..33).prop_map(move |(id, group, prefix_len)| {
            let action = match group {
                true => p4::table_action::Type::ActionProfileGroupId(id),
                false => p4::table_action::Type::ActionProfileMemberId(id),
            };
            let lpm = p4::field_match::Lpm { value: vec![0x80, 0, 0, 0], prefix_len };
            Kind::TableEntry(p4::TableEntry {
                table_id: balance,
                r#match: vec![p4::FieldMatch { field_id: 1, field_match_type: Some(FieldMatchType::Lpm(lpm)) }],
                action: Some(p4::TableAction { r#type: Some(action) }),
                ..Default::default()
            })
        }),
        (-1i64..9, -1i64..9).prop_map(move |(cell, packets)| Kind::CounterEntry(p4::CounterEntry {
            counter_id: counter,
            index: index(cell),
            data: Some(p4::CounterData { packet_count: packets, byte_count: 1 }),
        })),
        (prop::option::of(0i64..17), prop::collection::vec(any::<u8>(), 0..8)).prop_map(move |(cell, value)| {
            Kind::RegisterEntry(p4::RegisterEntry {
                register_id: register,
                index: cell.and_then(index),
                data: Some(p4::P4Data { data: Some(p4::p4_data::Data::Bitstring(value)) }),
            })
        }),
        (0u32..4, prop::collection::vec((0u8..4, 0u32..3), 0..4)).prop_map(|(id, copies)| {
            let replicas = copies.into_iter().map(|(port, instance)| p4::Replica {
                port_kind: Some(p4::replica::PortKind::Port(vec![port])),
                instance,
                backup_replicas: Vec::new(),
            });
            let group = p4::MulticastGroupEntry { multicast_group_id: id, replicas: replicas.collect(), metadata: vec![1] };
            Kind::PacketReplicationEngineEntry(p4::PacketReplicationEngineEntry {
                r#type: Some(p4::packet_replication_engine_entry::Type::MulticastGroupEntry(group)),
            })
        }),
    ];
    (kind, entity)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// A batch that fails leaves no trace; one that succeeds does what its updates do one by one.
    #[test]
    fn all_or_none(first in prop::collection::vec(any_update(), 0..12), batch in prop::collection::vec(any_update(), 1..8)) {
        let mut bench = Bench::new();
        let _ = bench.write(first.clone(), Default::default());
        let before = bench.state();
        let outcome = bench.write(batch.clone(), p4::write_request::Atomicity::RollbackOnError);
        let after = bench.state();
        let mut one_by_one = Bench::new();
        let _ = one_by_one.write(first, Default::default());
        let expected = one_by_one.write(batch.clone(), Default::default());
        prop_assert_eq!(outcome.is_ok(), expected.is_ok());
        match outcome {
            Ok(()) => prop_assert_eq!(after, one_by_one.state()),
            Err(status) => {
                prop_assert_eq!(after, before, "{}", status);
                prop_assert_eq!(status.details.len(), batch.len());
            }
        }
    }

    /// What RECONCILE_AND_COMMIT keeps is everything, in the eyes of a reader.
    #[test]
    fn reconciled(updates in prop::collection::vec(any_update(), 0..16)) {
        let mut bench = Bench::new();
        let _ = bench.write(updates, Default::default());
        let before = bench.state();
        let mut config = program().clone();
        config.p4_device_config.push(b' ');
        bench.push(config, p4::set_forwarding_pipeline_config_request::Action::ReconcileAndCommit).expect("reconcile");
        prop_assert_eq!(bench.state(), before);
    }

    /// Bytes that are damaged messages, or no messages at all, are answered.
    #[test]
    fn no_bytes_are_fatal(
        updates in prop::collection::vec(any_update(), 1..4),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
        noise in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let mut bench = Bench::new();
        let spoil = |mut bytes: Vec<u8>| {
            for (at, value) in &damage {
                if !bytes.is_empty() {
                    let at = at.index(bytes.len());
                    bytes[at] = *value;
                }
            }
            let keep = cut.index(bytes.len() + 1);
            if keep % 3 == 0 {
                bytes.truncate(keep);
            }
            bytes
        };
        let write = p4::WriteRequest {
            device_id: DEVICE,
            election_id: ELECTION,
            updates: updates.iter().map(|(kind, entity)| p4::Update {
                r#type: *kind as i32,
                entity: Some(p4::Entity { entity: Some(entity.clone()) }),
            }).collect(),
            ..Default::default()
        };
        let read = p4::ReadRequest {
            device_id: DEVICE,
            entities: updates.into_iter().map(|(_, entity)| p4::Entity { entity: Some(entity) }).collect(),
            ..Default::default()
        };
        let Bench { core, device, now } = &mut bench;
        for bytes in [spoil(write.encode_to_vec()), noise.clone()] {
            let _ = core.write_bytes(&bytes, device, *now);
            let _ = core.set_pipeline_bytes(&bytes, device, *now);
            let _ = core.get_pipeline_bytes(&bytes);
            let _ = core.capabilities_bytes(&bytes);
        }
        for bytes in [spoil(read.encode_to_vec()), noise] {
            let _ = core.read_bytes(&bytes, device, *now);
            let _ = core.stream_bytes(ClientId(9), &bytes, device, *now);
        }
    }

    /// P4Info that does not fit, in whatever way, is refused or accepted, never fatal.
    #[test]
    fn no_p4info_is_fatal(damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut bytes = info().encode_to_vec();
        for (at, value) in damage {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(damaged) = config::P4Info::decode(bytes.as_slice()) {
            let mut bench = Bench::new();
            let config = p4::ForwardingPipelineConfig { p4info: Some(damaged), ..program().clone() };
            if bench.push(config, p4::set_forwarding_pipeline_config_request::Action::VerifyAndCommit).is_ok() {
                let _ = bench.packet(1, 2);
                let _ = bench.write(vec![(Type::Insert, Kind::TableEntry(l2(1, 2)))], Default::default());
            }
        }
    }
}
