//! A small v1model program, as BMv2 JSON, that does what the first bytes of each frame say, and frames for it.

use std::sync::Arc;

use fairlane_device::pipeline::Program;
use fairlane_device::{Device, DeviceConfig, PortConfig};
use serde_json::{json, Value};

/// Field names and widths of the frame's header, in order.
const CONTROL: [(&str, u32); 7] =
    [("port", 16), ("priority", 8), ("what", 8), ("group", 16), ("enq_qdepth", 32), ("deq_qdepth", 32), ("deq_timedelta", 32)];

/// What the program does with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Forward = 0,
    DropInIngress = 1,
    DropInEgress = 2,
    /// Clone session 5, and the clone again, without end.
    CloneInEgress = 3,
    Digest = 4,
}

/// A frame of `size` bytes (at least 18) for `port`.
pub fn frame(port: u16, what: What, size: usize) -> Vec<u8> {
    frame_of(port, 0, what, 0, size)
}

pub fn frame_of(port: u16, priority: u8, what: What, group: u16, size: usize) -> Vec<u8> {
    let mut frame = Vec::with_capacity(size);
    frame.extend(port.to_be_bytes());
    frame.extend([priority, what as u8]);
    frame.extend(group.to_be_bytes());
    frame.resize(size.max(18), 0);
    frame
}

/// `enq_qdepth`, `deq_qdepth`, `deq_timedelta` in microseconds, as egress wrote them.
pub fn depths(frame: &[u8]) -> [u32; 3] {
    [6, 10, 14].map(|at| u32::from_be_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]]))
}

/// A device with the program and ports of the given configurations.
pub fn device(ports: &[(u32, PortConfig)]) -> Device {
    let mut device = Device::new(DeviceConfig { cpu_port: Some(255), priorities: 8, ..DeviceConfig::default() });
    for (port, config) in ports {
        device.set_port(*port, config.clone()).expect("a good port");
    }
    device.load(0, program()).expect("memory");
    device
}

pub fn program() -> Arc<Program> {
    Arc::new(Program::from_json(&program_json().to_string()).expect("a good program"))
}

fn field(header: &str, name: &str) -> Value {
    json!({"type": "field", "value": [header, name]})
}

fn assign(to: (&str, &str), from: (&str, &str)) -> Value {
    json!({"op": "assign", "parameters": [field(to.0, to.1), field(from.0, from.1)]})
}

fn hex(value: u32) -> Value {
    json!({"type": "hexstr", "value": format!("{value:#x}")})
}

/// A keyless table that runs one action and goes on to `next`.
fn step(id: u32, action: &str, next: Value) -> Value {
    json!({
        "name": format!("tbl_{action}"), "id": id, "key": [], "match_type": "exact", "type": "simple", "max_size": 1024,
        "with_counters": false, "support_timeout": false, "direct_meters": null, "action_ids": [id], "actions": [action],
        "base_default_next": next, "next_tables": {action: next},
        "default_entry": {"action_id": id, "action_const": true, "action_data": [], "action_entry_const": true}
    })
}

fn when(id: u32, what: What, then: &str, otherwise: Value) -> Value {
    json!({
        "name": format!("node_{id}"), "id": id,
        "expression": {"type": "expression",
                       "value": {"op": "==", "left": field("ctl", "what"), "right": hex(what as u32)}},
        "true_next": format!("tbl_{then}"), "false_next": otherwise
    })
}

fn program_json() -> Value {
    let mark_to_drop = json!({"op": "mark_to_drop", "parameters": [{"type": "header", "value": "standard_metadata"}]});
    let standard = ("standard_metadata", "standard_metadata");
    let actions = [
        (
            "forward",
            json!([
                assign((standard.0, "egress_spec"), ("ctl", "port")),
                assign((standard.0, "priority"), ("ctl", "priority")),
                assign((standard.0, "mcast_grp"), ("ctl", "group")),
            ]),
        ),
        ("drop_in", json!([mark_to_drop])),
        ("digest", json!([{"op": "generate_digest", "parameters": [hex(1), hex(1)]}])),
        (
            "stamp",
            json!([
                assign(("ctl", "enq_qdepth"), (standard.0, "enq_qdepth")),
                assign(("ctl", "deq_qdepth"), (standard.0, "deq_qdepth")),
                assign(("ctl", "deq_timedelta"), (standard.0, "deq_timedelta")),
            ]),
        ),
        ("drop_out", json!([mark_to_drop])),
        ("clone", json!([{"op": "clone_egress_pkt_to_egress", "parameters": [hex(5), hex(0)]}])),
    ];
    let actions: Vec<Value> = actions
        .iter()
        .enumerate()
        .map(|(id, (name, primitives))| json!({"name": name, "id": id, "runtime_data": [], "primitives": primitives}))
        .collect();
    json!({
        "header_types": [
            {"name": "scalars_0", "id": 0, "fields": []},
            {"name": "ctl_t", "id": 1, "fields": CONTROL.map(|(name, width)| json!([name, width, false]))},
            {"name": "standard_metadata", "id": 2, "fields": standard_fields()}
        ],
        "headers": [
            {"name": "scalars", "id": 0, "header_type": "scalars_0", "metadata": true, "pi_omit": true},
            {"name": standard.1, "id": 1, "header_type": "standard_metadata", "metadata": true, "pi_omit": true},
            {"name": "ctl", "id": 2, "header_type": "ctl_t", "metadata": false, "pi_omit": true}
        ],
        "header_stacks": [], "header_union_types": [], "header_unions": [], "header_union_stacks": [],
        "field_lists": [], "errors": [["NoError", 0]], "enums": [],
        "parsers": [{"name": "parser", "id": 0, "init_state": "start", "parse_states": [{
            "name": "start", "id": 0,
            "parser_ops": [{"parameters": [{"type": "regular", "value": "ctl"}], "op": "extract"}],
            "transitions": [{"value": "default", "mask": null, "next_state": null}], "transition_key": []
        }]}],
        "parse_vsets": [],
        "deparsers": [{"name": "deparser", "id": 0, "order": ["ctl"], "primitives": []}],
        "meter_arrays": [], "counter_arrays": [], "register_arrays": [], "calculations": [],
        "learn_lists": [{"id": 1, "name": "port_seen", "elements": [field("ctl", "port")]}],
        "actions": actions,
        "pipelines": [
            {"name": "ingress", "id": 0, "init_table": "tbl_forward", "action_profiles": [],
             "tables": [step(0, "forward", json!("node_0")), step(1, "drop_in", json!(null)), step(2, "digest", json!(null))],
             "conditionals": [when(0, What::DropInIngress, "drop_in", json!("node_1")), when(1, What::Digest, "digest", json!(null))]},
            {"name": "egress", "id": 1, "init_table": "tbl_stamp", "action_profiles": [],
             "tables": [step(3, "stamp", json!("node_2")), step(4, "drop_out", json!(null)), step(5, "clone", json!(null))],
             "conditionals": [when(2, What::DropInEgress, "drop_out", json!("node_3")),
                              when(3, What::CloneInEgress, "clone", json!(null))]}
        ],
        "checksums": [], "force_arith": [], "extern_instances": [],
        "field_aliases": aliases(),
        "program": "control.p4",
        "__meta__": {"version": [2, 23], "compiler": "by hand"}
    })
}

fn standard_fields() -> Value {
    json!([
        ["ingress_port", 9, false],
        ["egress_spec", 9, false],
        ["egress_port", 9, false],
        ["instance_type", 32, false],
        ["packet_length", 32, false],
        ["enq_timestamp", 32, false],
        ["enq_qdepth", 19, false],
        ["deq_timedelta", 32, false],
        ["deq_qdepth", 19, false],
        ["ingress_global_timestamp", 48, false],
        ["egress_global_timestamp", 48, false],
        ["mcast_grp", 16, false],
        ["egress_rid", 16, false],
        ["checksum_error", 1, false],
        ["parser_error", 32, false],
        ["priority", 3, false],
        ["_padding", 3, false]
    ])
}

fn aliases() -> Value {
    let alias = |group: &str, name: &str| json!([format!("{group}.{name}"), ["standard_metadata", name]]);
    let queueing = ["enq_timestamp", "enq_qdepth", "deq_timedelta", "deq_qdepth"];
    let intrinsic = ["ingress_global_timestamp", "egress_global_timestamp", "mcast_grp", "egress_rid", "priority"];
    let queueing = queueing.iter().map(|name| alias("queueing_metadata", name));
    queueing.chain(intrinsic.iter().map(|name| alias("intrinsic_metadata", name))).collect()
}
