//! Large reads and writes, which go in parts.

use super::*;

#[test]
fn a_read_in_parts_gives_what_a_read_gives() {
    let mut bench = Bench::new();
    bench.insert(Kind::TableEntry(l2(0x0200_0000_0001, 4)));
    let entities = [
        Kind::RegisterEntry(Default::default()),
        Kind::TableEntry(Default::default()),
        Kind::CounterEntry(Default::default()),
        Kind::RegisterEntry(p4::RegisterEntry { register_id: 7, ..Default::default() }),
    ];
    let entities = entities.map(|entity| p4::Entity { entity: Some(entity) }).to_vec();
    let request = p4::ReadRequest { device_id: DEVICE, entities, ..Default::default() };
    let whole = bench.core.read(&request, &mut bench.device, bench.now);
    // There is no register 7: that entity has an error of its own.
    assert_eq!(whole.status.as_ref().map_err(|status| status.code), Err(Code::Unknown));
    let (mut parts, mut progress) = (Vec::new(), ReadProgress::default());
    let status = loop {
        let (responses, status) = bench.core.read_next(&request, &mut progress, &mut bench.device, bench.now);
        parts.extend(responses.into_iter().flat_map(|response| response.entities));
        if let Some(status) = status {
            break status;
        }
    };
    let whole_entities: Vec<_> = whole.responses.into_iter().flat_map(|response| response.entities).collect();
    assert_eq!((parts, status), (whole_entities, whole.status));
}

/// A switch whose table `hosts` is large.
struct Large {
    bench: Bench,
    table: u32,
    action: u32,
}

impl Large {
    fn new() -> Large {
        let mut bench = Bench::new();
        bench.push(large().clone(), p4::set_forwarding_pipeline_config_request::Action::VerifyAndCommit).expect("push");
        let info = large().p4info.as_ref().expect("P4Info");
        let table = info.tables.iter().filter_map(|table| table.preamble.as_ref()).find(|p| p.alias == "hosts").expect("hosts").id;
        let action = info.actions.iter().filter_map(|action| action.preamble.as_ref()).find(|p| p.alias == "mark").expect("mark").id;
        Large { bench, table, action }
    }

    fn request(&self, kind: Type, hosts: impl IntoIterator<Item = u32>, atomicity: p4::write_request::Atomicity) -> p4::WriteRequest {
        let entry = |host: u32| {
            let exact = p4::field_match::Exact { value: canonical(host) };
            p4::TableEntry {
                table_id: self.table,
                r#match: vec![p4::FieldMatch { field_id: 1, field_match_type: Some(FieldMatchType::Exact(exact)) }],
                action: Some(p4::TableAction {
                    r#type: Some(p4::table_action::Type::Action(p4::Action {
                        action_id: self.action,
                        params: vec![p4::action::Param { param_id: 1, value: canonical(host % 65536) }],
                    })),
                }),
                ..Default::default()
            }
        };
        let update = |host| p4::Update { r#type: kind as i32, entity: Some(p4::Entity { entity: Some(Kind::TableEntry(entry(host))) }) };
        p4::WriteRequest {
            device_id: DEVICE,
            election_id: ELECTION,
            updates: hosts.into_iter().map(update).collect(),
            atomicity: atomicity as i32,
            ..Default::default()
        }
    }

    fn entries(&mut self) -> usize {
        let switch = self.bench.device.switch().expect("a program");
        let id = switch.program().table_by_name("Receive.hosts").expect("hosts");
        switch.table_len(id).expect("hosts")
    }

    /// Writes in parts; the number of entries after each, and the outcome.
    fn write(&mut self, request: &p4::WriteRequest) -> (Vec<usize>, Result<(), fairlane_p4rt::Status>) {
        let (mut progress, mut after) = (WriteProgress::default(), Vec::new());
        loop {
            let over = self.bench.core.write_next(request, &mut progress, &mut self.bench.device, self.bench.now);
            after.push(self.entries());
            if over {
                return (after, progress.finish(request));
            }
        }
    }

    /// Reads in parts.
    fn read(&mut self, entity: Kind) -> Vec<Vec<p4::Entity>> {
        let request = p4::ReadRequest { device_id: DEVICE, entities: vec![p4::Entity { entity: Some(entity) }], ..Default::default() };
        let (mut progress, mut parts) = (ReadProgress::default(), Vec::new());
        loop {
            let (responses, status) = self.bench.core.read_next(&request, &mut progress, &mut self.bench.device, self.bench.now);
            parts.push(responses.into_iter().flat_map(|response| response.entities).collect::<Vec<_>>());
            if let Some(status) = status {
                status.expect("read");
                return parts;
            }
        }
    }
}

fn canonical(value: u32) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    bytes[bytes.iter().position(|byte| *byte != 0).unwrap_or(3)..].to_vec()
}

/// Packets may come between two parts, so none may be long; and all parts together are what one would be.
#[test]
fn large_writes_and_reads_have_many_small_parts() {
    use p4::write_request::Atomicity::{ContinueOnError, DataplaneAtomic, RollbackOnError};
    const MOST: usize = 600;
    let mut large = Large::new();
    let spread = |hosts: std::ops::Range<u32>| hosts.map(|host| host.wrapping_mul(2_654_435_761)).collect::<Vec<_>>();
    let steps = |before: usize, after: &[usize]| {
        let all: Vec<_> = std::iter::once(before).chain(after.iter().copied()).collect();
        all.windows(2).map(|pair| pair[0].abs_diff(pair[1])).max().expect("a part")
    };
    let (after, done) = large.write(&large.request(Type::Insert, spread(0..20_000), ContinueOnError));
    done.expect("insert");
    assert!(steps(0, &after) <= MOST && after.last() == Some(&20_000), "{after:?}");
    // Of updates that each count for themselves, those that can be are applied.
    let (after, done) = large.write(&large.request(Type::Delete, spread(19_000..22_000), ContinueOnError));
    let done = done.expect_err("most are not there");
    assert_eq!(done.details.len(), 3_000);
    assert!(done.details.iter().enumerate().all(|(i, detail)| detail.is_some() == (i >= 1_000)));
    assert!(steps(20_000, &after) <= MOST && after.last() == Some(&19_000), "{after:?}");

    let entries = Kind::TableEntry(p4::TableEntry { table_id: large.table, ..Default::default() });
    let parts = large.read(entries.clone());
    assert!(parts.iter().all(|part| part.len() <= MOST), "{:?}", parts.iter().map(Vec::len).collect::<Vec<_>>());
    let parts: Vec<Kind> = parts.into_iter().flatten().filter_map(|entity| entity.entity).collect();
    assert_eq!(parts.len(), 19_000);
    assert_eq!(parts, large.bench.read(entries.clone()));
    assert_eq!(large.read(Kind::RegisterEntry(Default::default())).iter().map(Vec::len).sum::<usize>(), 65_536);

    // All or none: what was applied is taken back, in parts as well.
    let batch = large.request(Type::Insert, spread(30_000..40_000).into_iter().chain([0]), RollbackOnError);
    let (after, done) = large.write(&batch);
    assert_eq!(done.expect_err("the last is there").details.iter().flatten().count(), 10_001);
    assert!(steps(19_000, &after) <= MOST && after.iter().max() > Some(&28_000), "{after:?}");
    assert_eq!(after.last(), Some(&19_000));
    assert_eq!(large.bench.read(entries), parts);
    let (_, done) = large.write(&large.request(Type::Insert, spread(30_000..40_000), RollbackOnError));
    done.expect("none is there");

    // Packets see all of such a batch or nothing: it is one part, or refused.
    let (after, done) = large.write(&large.request(Type::Insert, spread(50_000..51_024), DataplaneAtomic));
    done.expect("small enough");
    assert_eq!(after, [30_024]);
    let (after, done) = large.write(&large.request(Type::Insert, spread(60_000..61_025), DataplaneAtomic));
    assert_eq!((after.as_slice(), done.expect_err("too large").code), ([30_024].as_slice(), Code::Unimplemented));
    let all = Kind::RegisterEntry(p4::RegisterEntry {
        register_id: large.bench_register(),
        data: Some(p4::P4Data { data: Some(p4::p4_data::Data::Bitstring(vec![7])) }),
        ..Default::default()
    });
    for atomicity in [RollbackOnError, DataplaneAtomic] {
        let refused = large.bench.write(vec![(Type::Modify, all.clone())], atomicity).expect_err("65,536 cells");
        assert_eq!(refused.code, Code::Unimplemented, "{refused}");
    }
    large.bench.write(vec![(Type::Modify, all)], ContinueOnError).expect("in parts");
    let cells: Vec<_> = large.read(Kind::RegisterEntry(Default::default())).concat();
    assert!(cells.iter().all(|cell| match &cell.entity {
        Some(Kind::RegisterEntry(entry)) => entry.data == Some(p4::P4Data { data: Some(p4::p4_data::Data::Bitstring(vec![7])) }),
        other => panic!("{other:?}"),
    }));
}

impl Large {
    fn bench_register(&self) -> u32 {
        large().p4info.as_ref().expect("P4Info").registers[0].preamble.as_ref().expect("an id").id
    }
}
