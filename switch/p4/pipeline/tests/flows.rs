//! What happens around the P4 controls: clones, copies, resubmission, drops, metadata.

mod common;

use common::*;
use fairlane_pipeline::*;
use serde_json::json;

/// A header `h { kind:8, a:8, b:16 }` that the program reads and writes.
fn base() -> Build {
    let mut b = Build::new();
    b.header("h", &[("kind", 8), ("a", 8), ("b", 16)]);
    b.metadata("m", &[("keep", 8), ("lose", 8)]);
    b.extracts(&["h"]);
    b
}

fn replica(port: PortId, rid: u16) -> Replica {
    Replica { port, rid }
}

#[test]
fn unicast_and_metadata() {
    let mut b = base();
    b.always(0, "go", &[set_port(5), assign(field("h", "a"), std("ingress_port"))], None);
    b.always(1, "mark", &[assign(field("h", "kind"), std("egress_port")), assign(field("h", "b"), std("packet_length"))], None);
    let out = send(&mut b.switch(), 3, &[0, 0, 0, 0, 9, 9]);
    assert_eq!(out, [(5, vec![5, 3, 0, 6, 9, 9])]);
}

#[test]
fn times_and_depths_are_in_microseconds_and_packets() {
    let mut b = Build::new();
    b.header("q", &[("ts", 48), ("enq", 32), ("depth", 19), ("pad", 5), ("wait", 32), ("left", 19), ("p2", 5), ("out", 48)]);
    b.extracts(&["q"]);
    b.always(0, "go", &[set_port(1), assign(field("q", "ts"), std("ingress_global_timestamp"))], None);
    let pairs = [
        ("enq", "enq_timestamp"),
        ("depth", "enq_qdepth"),
        ("wait", "deq_timedelta"),
        ("left", "deq_qdepth"),
        ("out", "egress_global_timestamp"),
    ];
    let copies: Vec<_> = pairs.iter().map(|(f, s)| assign(field("q", f), std(s))).collect();
    b.always(1, "stamp", &copies, None);
    let mut sw = b.switch();
    let (mut iout, mut eout) = (IngressOut::default(), EgressOut::default());
    sw.ingress(5_000_999, 0, &[0; 26], &mut iout);
    let item = iout.queued.pop().expect("queued");
    assert_eq!((item.egress_port(), item.priority(), item.len()), (1, 0, 26));
    let info = QueueInfo { enq_timestamp: 6_001_000, enq_qdepth: 77, deq_timedelta: 2_500_000, deq_qdepth: (1 << 19) + 3 };
    sw.egress(9_000_000, item, info, &mut eout);
    let bytes = eout.emitted.expect("emitted").bytes;
    let bits = |from: usize, n: usize| (from..from + n).fold(0_u64, |v, i| v << 1 | u64::from(bytes[i / 8] >> (7 - i % 8) & 1));
    assert_eq!(bits(0, 48), 5000);
    assert_eq!(bits(48, 32), 6001);
    assert_eq!(bits(80, 19), 77);
    assert_eq!(bits(104, 32), 2500);
    assert_eq!(bits(136, 19), 3); // cut to 19 bits
    assert_eq!(bits(160, 48), 9000);
}

#[test]
fn drops_in_ingress_and_egress() {
    let mut b = base();
    let drop = prim("mark_to_drop", &[json!({"type": "header", "value": "standard_metadata"})]);
    b.always(0, "d", &[assign(std("mcast_grp"), hex(3)), drop.clone()], None);
    let mut sw = b.switch();
    assert!(send(&mut sw, 0, &[0; 4]).is_empty());
    assert_eq!(sw.stats().dropped_ingress, 1);

    let mut b = base();
    b.always(0, "go", &[set_port(1)], None).always(1, "d", &[drop], None);
    let mut sw = b.switch();
    assert!(send(&mut sw, 0, &[0; 4]).is_empty());
    assert_eq!(sw.stats().dropped_egress, 1);
}

#[test]
fn multicast_copies_carry_their_instance() {
    let mut b = base();
    b.always(0, "go", &[assign(std("mcast_grp"), hex(7)), set_port(1)], None);
    b.always(1, "mark", &[assign(field("h", "b"), std("egress_rid")), assign(field("h", "a"), std("instance_type"))], None);
    let mut sw = b.switch();
    // Unknown group: nothing, and said so.
    let mut out = IngressOut::default();
    sw.ingress(0, 0, &[0; 4], &mut out);
    assert_eq!(out.dropped, Some(DropCause::MulticastEmpty));
    sw.multicast_insert(7, vec![replica(2, 9), replica(4, 1), replica(2, 3)]).expect("insert");
    assert_eq!(send(&mut sw, 0, &[0, 0, 0, 0, 8]), [(2, vec![0, 5, 0, 9, 8]), (4, vec![0, 5, 0, 1, 8]), (2, vec![0, 5, 0, 3, 8])]);
    sw.multicast_modify(7, vec![replica(6, 0)]).expect("modify");
    assert_eq!(send(&mut sw, 0, &[0; 4]).len(), 1);
    assert_eq!(sw.multicast_groups(), [(7, vec![replica(6, 0)])]);
    sw.multicast_delete(7).expect("delete");
    assert!(matches!(sw.multicast_delete(7), Err(ControlError::NotFound(_))));
    assert!(matches!(sw.multicast_insert(0, vec![]), Err(ControlError::InvalidArgument(_))));
}

fn field_list(b: &mut Build) {
    b.push("field_lists", json!({"id": 1, "name": "fl", "elements": [field("m", "keep")]}));
}

#[test]
fn ingress_clone_is_the_frame_as_it_came() {
    let mut b = base();
    field_list(&mut b);
    b.always(
        0,
        "go",
        &[
            assign(field("m", "keep"), hex(0x41)),
            assign(field("m", "lose"), hex(0x42)),
            assign(field("h", "b"), hex(0xffff)),
            prim("clone_ingress_pkt_to_egress", &[hex(5), hex(1)]),
            set_port(2),
        ],
        None,
    );
    b.always(
        1,
        "mark",
        &[assign(field("h", "kind"), std("instance_type")), assign(field("h", "a"), expr("+", field("m", "keep"), field("m", "lose")))],
        None,
    );
    let mut sw = b.switch();
    // Without a session there is no clone.
    assert_eq!(send(&mut sw, 0, &[7, 7, 7, 7]), [(2, vec![0, 0x83, 0xff, 0xff])]);
    sw.clone_insert(5, CloneSession { replicas: vec![replica(9, 0)], ..CloneSession::default() }).expect("session");
    let out = send(&mut sw, 0, &[7, 7, 7, 7, 1, 2, 3]);
    assert_eq!(out, [(9, vec![1, 0x41, 7, 7, 1, 2, 3]), (2, vec![0, 0x83, 0xff, 0xff, 1, 2, 3])]);
    // Truncated clones, by a group.
    sw.multicast_insert(1, vec![replica(3, 0), replica(4, 0)]).expect("group");
    sw.clone_modify(5, CloneSession { replicas: vec![], multicast_group: Some(1), packet_length: 5 }).expect("modify");
    let ports: Vec<_> = send(&mut sw, 0, &[7; 9]).into_iter().map(|(p, f)| (p, f.len())).collect();
    assert_eq!(ports, [(3, 5), (4, 5), (2, 9)]);
}

#[test]
fn egress_clone_has_the_headers_of_egress() {
    let mut b = base();
    field_list(&mut b);
    b.always(0, "go", &[set_port(2), assign(field("m", "keep"), hex(3))], None);
    b.always(1, "mark", &[assign(field("h", "kind"), std("instance_type"))], Some("cond"));
    b.edit(|root| {
        root["pipelines"][1]["conditionals"] = json!([{"name": "cond", "id": 0,
            "expression": expr("==", std("instance_type"), hex(0)), "true_next": "tbl_clone", "false_next": "tbl_show"}]);
    });
    b.always(1, "clone", &[assign(field("h", "b"), hex(0xabcd)), prim("clone_egress_pkt_to_egress", &[hex(0), hex(1)])], None);
    b.always(1, "show", &[assign(field("h", "a"), field("m", "keep"))], None);
    let mut sw = b.switch();
    sw.clone_insert(0, CloneSession { replicas: vec![replica(8, 0)], ..CloneSession::default() }).expect("session");
    let out = send(&mut sw, 0, &[1, 1, 1, 1]);
    assert_eq!(out, [(2, vec![0, 1, 0xab, 0xcd]), (8, vec![2, 3, 0xab, 0xcd])]);
}

#[test]
fn resubmit_starts_over_with_the_original_frame() {
    let mut b = base();
    field_list(&mut b);
    b.edit(|root| {
        root["pipelines"][0]["init_table"] = json!("cond");
        root["pipelines"][0]["conditionals"] = json!([{"name": "cond", "id": 0,
            "expression": expr("==", field("m", "keep"), hex(3)), "true_next": "tbl_done", "false_next": "tbl_again"}]);
    });
    b.always(
        0,
        "again",
        &[
            assign(field("m", "keep"), expr("+", field("m", "keep"), hex(1))),
            assign(field("h", "b"), hex(0xdead)),
            prim("resubmit", &[hex(1)]),
        ],
        None,
    );
    b.always(0, "done", &[set_port(1), assign(field("h", "a"), std("instance_type"))], None);
    let mut sw = b.switch();
    assert_eq!(send(&mut sw, 0, &[1, 2, 3, 4, 5]), [(1, vec![1, 6, 3, 4, 5])]);

    // Without the field list it would go on for ever: the bound ends it.
    let mut b2 = base();
    b2.always(0, "again", &[prim("resubmit", &[hex(1)])], None);
    let mut sw = b2.switch();
    let mut out = IngressOut::default();
    sw.ingress(0, 0, &[0; 4], &mut out);
    assert_eq!(out.dropped, Some(DropCause::Loop));
}

#[test]
fn recirculate_parses_the_deparsed_frame() {
    let mut b = base();
    field_list(&mut b);
    b.always(0, "go", &[set_port(1), assign(field("h", "kind"), expr("+", field("h", "kind"), hex(1)))], None);
    b.edit(|root| {
        root["pipelines"][1]["init_table"] = json!("cond");
        root["pipelines"][1]["conditionals"] = json!([{"name": "cond", "id": 0,
            "expression": expr("<", field("h", "kind"), hex(3)), "true_next": "tbl_again", "false_next": "tbl_done"}]);
    });
    b.always(1, "again", &[assign(field("m", "keep"), hex(0x11)), prim("recirculate", &[hex(1)])], None);
    b.always(
        1,
        "done",
        &[assign(field("h", "a"), expr("|", std("instance_type"), field("m", "keep"))), assign(field("h", "b"), std("packet_length"))],
        None,
    );
    // kind 0 -> 1 -> 2 -> 3 in three passes.
    assert_eq!(send(&mut b.switch(), 0, &[0, 0, 0, 0, 6]), [(1, vec![3, 0x11, 0, 5, 6])]);
}

#[test]
fn digests_are_queued_with_their_fields() {
    let mut b = base();
    b.push("learn_lists", json!({"id": 1, "name": "seen", "elements": [field("h", "b"), field("h", "kind")]}));
    b.always(0, "go", &[set_port(1), prim("generate_digest", &[hex(1), hex(1)])], None);
    let program = b.load();
    let mut sw = Switch::new(program, SwitchConfig { max_digests: 2, ..SwitchConfig::default() }).expect("memory");
    for i in 0..3 {
        send_at(&mut sw, 1000 + i, 0, &[i as u8, 0, 1, 2], QueueInfo::default());
    }
    let digests = sw.take_digests();
    assert_eq!(digests.len(), 2);
    assert_eq!(digests[1].timestamp, 1001);
    assert_eq!(digests[1].members, [Value::from(0x102_u64), Value::from(1_u64)]);
    assert_eq!(sw.program().digests()[0].widths, [16, 8]);
    assert_eq!(sw.stats().digests_lost, 1);
    assert!(sw.take_digests().is_empty());
}

#[test]
fn truncate_cuts_the_frame() {
    let mut b = base();
    b.always(0, "go", &[set_port(1), prim("truncate", &[hex(6)])], None);
    assert_eq!(send(&mut b.switch(), 0, &[1, 2, 3, 4, 5, 6, 7, 8]), [(1, vec![1, 2, 3, 4, 5, 6])]);
    assert_eq!(send(&mut b.switch(), 0, &[1, 2, 3, 4, 5]), [(1, vec![1, 2, 3, 4, 5])]);
}

#[test]
fn exit_ends_the_control_only() {
    let mut b = base();
    b.always(0, "go", &[set_port(1), prim("exit", &[])], Some("tbl_never"));
    b.always(0, "never", &[set_port(2)], None);
    b.always(1, "mark", &[assign(field("h", "a"), hex(9))], None);
    assert_eq!(send(&mut b.switch(), 0, &[0; 4]), [(1, vec![0, 9, 0, 0])]);
}

#[test]
fn jumps_within_an_action() {
    let mut b = base();
    b.always(
        0,
        "go",
        &[
            set_port(1),
            prim("_jump_if_zero", &[field("h", "kind"), hex(4)]),
            assign(field("h", "a"), hex(1)),
            prim("_jump", &[hex(5)]),
            assign(field("h", "a"), hex(2)),
            assign(field("h", "b"), hex(3)),
        ],
        None,
    );
    let mut sw = b.switch();
    assert_eq!(send(&mut sw, 0, &[0, 9, 9, 9]), [(1, vec![0, 2, 0, 3])]);
    assert_eq!(send(&mut sw, 0, &[5, 9, 9, 9]), [(1, vec![5, 1, 0, 3])]);
    // A loop without end ends.
    let mut b = base();
    b.always(0, "go", &[set_port(1), prim("_jump", &[hex(0)])], None);
    let mut out = IngressOut::default();
    b.switch().ingress(0, 0, &[0; 4], &mut out);
    assert_eq!(out.dropped, Some(DropCause::Limit));
}

#[test]
fn log_and_assert() {
    let mut b = base();
    let vector = json!({"type": "parameters_vector", "value": [field("h", "kind"), field("h", "b")]});
    b.always(
        0,
        "go",
        &[
            set_port(1),
            prim("log_msg", &[json!({"type": "string", "value": "kind {} b {}"}), vector]),
            prim("assert", &[wrapped(expr("<", field("h", "kind"), hex(5)))]),
        ],
        None,
    );
    let mut sw = b.switch();
    assert_eq!(send(&mut sw, 0, &[4, 0, 1, 0]).len(), 1);
    assert_eq!(sw.take_log(), ["kind 4 b 256"]);
    let mut out = IngressOut::default();
    sw.ingress(0, 0, &[6, 0, 1, 0], &mut out);
    assert_eq!(out.dropped, Some(DropCause::Assert));
    assert_eq!(sw.take_log(), ["kind 6 b 256", "assert failed"]);
}

#[test]
fn priorities_and_jumbo_frames() {
    let mut b = base();
    b.always(0, "go", &[set_port(1), assign(std("priority"), field("h", "kind"))], None);
    let program = b.load();
    let mut sw = Switch::new(program, SwitchConfig { priorities: 4, ..SwitchConfig::default() }).expect("memory");
    let mut out = IngressOut::default();
    sw.ingress(0, 0, &[3, 0, 0, 0], &mut out);
    assert_eq!(out.queued[0].priority(), 3);
    sw.ingress(0, 0, &[4, 0, 0, 0], &mut out);
    assert_eq!(out.dropped, Some(DropCause::Priority));
    sw.ingress(0, 0, &vec![0; MAX_FRAME], &mut out);
    assert_eq!(out.dropped, None);
    sw.ingress(0, 0, &vec![0; MAX_FRAME + 1], &mut out);
    assert_eq!(out.dropped, Some(DropCause::Limit));
}

#[test]
fn packets_of_a_replaced_program_are_dropped() {
    let mut b = base();
    b.always(0, "go", &[set_port(1)], None);
    let mut sw = b.switch();
    let (mut out, mut eout) = (IngressOut::default(), EgressOut::default());
    sw.ingress(0, 0, &[0; 4], &mut out);
    let mut big = base();
    big.header("more", &[("x", 512)]).always(0, "go", &[set_port(2)], None);
    sw.swap(big.load()).expect("memory");
    let old = out.queued.pop().expect("queued");
    sw.egress(0, old, QueueInfo::default(), &mut eout);
    assert_eq!((eout.emitted, eout.dropped), (None, Some(DropCause::Swapped)));
    assert_eq!(send(&mut sw, 0, &[0; 4])[0].0, 2);
}

#[test]
fn random_repeats_with_its_seed() {
    let mut b = base();
    b.always(0, "go", &[set_port(1), prim("modify_field_rng_uniform", &[field("h", "b"), hex(10), hex(13)])], None);
    let run = |seed| {
        let mut sw = Switch::new(b.load(), SwitchConfig { seed, ..SwitchConfig::default() }).expect("memory");
        (0..400).map(|_| send(&mut sw, 0, &[0; 4])[0].1[3]).collect::<Vec<u8>>()
    };
    let first = run(1);
    assert_eq!(first, run(1));
    assert_ne!(first, run(2));
    for v in 10..=13 {
        let n = first.iter().filter(|&&x| x == v).count();
        assert!((60..=140).contains(&n), "{v} came {n} times of 400");
    }
    assert!(first.iter().all(|v| (10..=13).contains(v)));
}

#[test]
fn hash_and_offset() {
    let mut b = base();
    b.push("calculations", json!({"name": "calc", "id": 0, "algo": "crc16", "input": [field("h", "kind"), field("h", "a")]}));
    let calc = json!({"type": "calculation", "value": "calc"});
    b.always(0, "go", &[set_port(1), prim("modify_field_with_hash_based_offset", &[field("h", "b"), hex(100), calc, hex(10)])], None);
    let mut sw = b.switch();
    for a in 0..50_u8 {
        let frame = &send(&mut sw, 0, &[1, a, 0, 0])[0].1;
        let crc = naive_crc16(&[1, a]);
        assert_eq!(u16::from_be_bytes([frame[2], frame[3]]), 100 + crc % 10);
    }
}

/// CRC-16/ARC bit by bit.
fn naive_crc16(data: &[u8]) -> u16 {
    let mut crc = 0_u16;
    for b in data {
        crc ^= u16::from(*b);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xa001 } else { crc >> 1 };
        }
    }
    crc
}
