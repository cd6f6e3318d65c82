//! A small builder of BMv2 JSON, and a driver that runs frames through a switch.
#![allow(dead_code)]

pub mod table;

use std::sync::Arc;

use fairlane_pipeline::*;
use serde_json::{json, Value as Json};

/// Collects the parts of a program.
pub struct Build {
    root: Json,
    order: Vec<String>,
}

pub fn field(header: &str, name: &str) -> Json {
    json!({"type": "field", "value": [header, name]})
}

pub fn hex(v: u64) -> Json {
    json!({"type": "hexstr", "value": format!("{v:#x}")})
}

pub fn expr(op: &str, left: Json, right: Json) -> Json {
    json!({"type": "expression", "value": {"op": op, "left": left, "right": right}})
}

/// As primitives take expressions: wrapped once more.
pub fn wrapped(e: Json) -> Json {
    json!({"type": "expression", "value": e})
}

pub fn prim(op: &str, parameters: &[Json]) -> Json {
    json!({"op": op, "parameters": parameters})
}

pub fn assign(dst: Json, src: Json) -> Json {
    prim("assign", &[dst, src])
}

pub fn std(name: &str) -> Json {
    field("standard_metadata", name)
}

pub fn set_port(port: u64) -> Json {
    assign(std("egress_spec"), hex(port))
}

impl Build {
    /// Standard metadata, an empty parser and deparser, empty pipelines.
    pub fn new() -> Build {
        let standard = json!({"name": "standard_metadata", "id": 0, "fields": [
            ["ingress_port", 9, false], ["egress_spec", 9, false], ["egress_port", 9, false],
            ["instance_type", 32, false], ["packet_length", 32, false], ["enq_timestamp", 32, false],
            ["enq_qdepth", 19, false], ["deq_timedelta", 32, false], ["deq_qdepth", 19, false],
            ["ingress_global_timestamp", 48, false], ["egress_global_timestamp", 48, false],
            ["mcast_grp", 16, false], ["egress_rid", 16, false], ["checksum_error", 1, false],
            ["parser_error", 32, false], ["priority", 3, false], ["_padding", 3, false]]});
        let mut aliases = Vec::new();
        for (group, names) in [
            ("queueing_metadata", &["enq_timestamp", "enq_qdepth", "deq_timedelta", "deq_qdepth"][..]),
            ("intrinsic_metadata", &["ingress_global_timestamp", "egress_global_timestamp", "mcast_grp", "egress_rid", "priority"]),
        ] {
            for n in names {
                aliases.push(json!([format!("{group}.{n}"), ["standard_metadata", n]]));
            }
        }
        let pipeline = |name: &str| {
            json!({"name": name, "id": 0, "init_table": null, "tables": [], "action_profiles": [],
                   "conditionals": [], "action_calls": []})
        };
        let root = json!({
            "__meta__": {"version": [2, 23], "compiler": "by hand"},
            "header_types": [standard],
            "headers": [{"name": "standard_metadata", "id": 0, "header_type": "standard_metadata", "metadata": true}],
            "header_stacks": [], "header_union_types": [], "header_unions": [], "header_union_stacks": [],
            "field_lists": [], "errors": [["NoError", 1], ["PacketTooShort", 2], ["StackOutOfBounds", 4]],
            "enums": [], "parse_vsets": [],
            "parsers": [{"name": "parser", "id": 0, "init_state": "start", "parse_states": []}],
            "deparsers": [{"name": "deparser", "id": 0, "order": []}],
            "meter_arrays": [], "counter_arrays": [], "register_arrays": [], "calculations": [],
            "learn_lists": [], "actions": [], "checksums": [], "extern_instances": [],
            "field_aliases": aliases,
            "pipelines": [pipeline("ingress"), pipeline("egress")],
        });
        Build { root, order: Vec::new() }
    }

    pub fn push(&mut self, section: &str, item: Json) -> &mut Build {
        if let Some(list) = self.root[section].as_array_mut() {
            list.push(item);
        }
        self
    }

    /// A header type and one instance of the same name.
    pub fn header(&mut self, name: &str, fields: &[(&str, u64)]) -> &mut Build {
        let fields: Vec<Json> = fields.iter().map(|(n, w)| json!([n, w, false])).collect();
        self.header_type(name, json!(fields));
        self.instance(name, name, false)
    }

    pub fn metadata(&mut self, name: &str, fields: &[(&str, u64)]) -> &mut Build {
        let fields: Vec<Json> = fields.iter().map(|(n, w)| json!([n, w, false])).collect();
        self.header_type(name, json!(fields));
        self.instance(name, name, true)
    }

    pub fn header_type(&mut self, name: &str, fields: Json) -> &mut Build {
        let id = self.len("header_types");
        self.push("header_types", json!({"name": name, "id": id, "fields": fields}))
    }

    pub fn instance(&mut self, name: &str, ty: &str, metadata: bool) -> &mut Build {
        let id = self.len("headers");
        if !metadata {
            self.order.push(name.to_string());
        }
        self.push("headers", json!({"name": name, "id": id, "header_type": ty, "metadata": metadata}))
    }

    /// A stack of `n` headers of a type; elements are `name[i]`.
    pub fn stack(&mut self, name: &str, ty: &str, n: usize) -> &mut Build {
        let first = self.len("headers");
        for i in 0..n {
            self.instance(&format!("{name}[{i}]"), ty, false);
        }
        let ids: Vec<usize> = (first..first + n).collect();
        let id = self.len("header_stacks");
        self.push("header_stacks", json!({"name": name, "id": id, "header_type": ty, "header_ids": ids}))
    }

    fn len(&self, section: &str) -> usize {
        self.root[section].as_array().map_or(0, Vec::len)
    }

    /// A parser state; the first one is where parsing starts. `key` empty means `next` alone.
    pub fn state(&mut self, name: &str, ops: &[Json], key: &[Json], cases: &[(&str, Option<&str>)]) -> &mut Build {
        let transitions: Vec<Json> = cases
            .iter()
            .map(|(value, next)| match *value {
                "default" => {
                    json!({"type": "default", "value": null, "mask": null, "next_state": next})
                }
                v => match v.split_once('&') {
                    Some((v, m)) => {
                        json!({"type": "hexstr", "value": v, "mask": m, "next_state": next})
                    }
                    None => json!({"type": "hexstr", "value": v, "mask": null, "next_state": next}),
                },
            })
            .collect();
        let states = &mut self.root["parsers"][0]["parse_states"];
        let id = states.as_array().map_or(0, Vec::len);
        if id == 0 {
            self.root["parsers"][0]["init_state"] = json!(name);
        }
        let state = json!({"name": name, "id": id, "parser_ops": ops, "transition_key": key, "transitions": transitions});
        if let Some(list) = self.root["parsers"][0]["parse_states"].as_array_mut() {
            list.push(state);
        }
        self
    }

    pub fn extract(header: &str) -> Json {
        json!({"op": "extract", "parameters": [{"type": "regular", "value": header}]})
    }

    /// One state that extracts these headers.
    pub fn extracts(&mut self, headers: &[&str]) -> &mut Build {
        let ops: Vec<Json> = headers.iter().map(|h| Build::extract(h)).collect();
        self.state("start", &ops, &[], &[("default", None)])
    }

    /// An action; its id is its name's position.
    pub fn action(&mut self, name: &str, params: &[(&str, u64)], primitives: &[Json]) -> &mut Build {
        let id = self.len("actions");
        let data: Vec<Json> = params.iter().map(|(n, w)| json!({"name": n, "bitwidth": w})).collect();
        self.push("actions", json!({"name": name, "id": id, "runtime_data": data, "primitives": primitives}))
    }

    pub fn action_id(&self, name: &str) -> usize {
        let actions = self.root["actions"].as_array().expect("actions");
        actions.iter().position(|a| a["name"] == name).expect("action")
    }

    /// A table; keys are (header, field, match type). The last action is the default, without arguments.
    pub fn table(
        &mut self,
        gress: usize,
        name: &str,
        match_type: &str,
        key: &[(&str, &str, &str)],
        actions: &[&str],
        next: Option<&str>,
    ) -> &mut Build {
        let key: Vec<Json> =
            key.iter().map(|(h, f, m)| json!({"match_type": m, "name": format!("{h}.{f}"), "target": [h, f], "mask": null})).collect();
        let ids: Vec<usize> = actions.iter().map(|a| self.action_id(a)).collect();
        let nexts: serde_json::Map<String, Json> = actions.iter().map(|a| (a.to_string(), json!(next))).collect();
        let tables = &mut self.root["pipelines"][gress]["tables"];
        let id = tables.as_array().map_or(0, Vec::len) + gress * 1000;
        let table = json!({
            "name": name, "id": id, "key": key, "match_type": match_type, "type": "simple", "max_size": 64,
            "with_counters": false, "support_timeout": false, "direct_meters": null,
            "action_ids": ids, "actions": actions, "base_default_next": next, "next_tables": nexts,
            "default_entry": {"action_id": ids.last(), "action_const": false, "action_data": [],
                              "action_entry_const": false}});
        let pipeline = &mut self.root["pipelines"][gress];
        if pipeline["init_table"].is_null() {
            pipeline["init_table"] = json!(name);
        }
        if let Some(list) = pipeline["tables"].as_array_mut() {
            list.push(table);
        }
        self
    }

    /// An action that a control always runs, as p4c does it: a table without key.
    pub fn always(&mut self, gress: usize, name: &str, primitives: &[Json], next: Option<&str>) -> &mut Build {
        self.action(name, &[], primitives);
        self.table(gress, &format!("tbl_{name}"), "exact", &[], &[name], next)
    }

    pub fn edit(&mut self, f: impl FnOnce(&mut Json)) -> &mut Build {
        f(&mut self.root);
        self
    }

    pub fn json(&self) -> Json {
        let mut root = self.root.clone();
        if root["deparsers"][0]["order"].as_array().is_some_and(Vec::is_empty) {
            root["deparsers"][0]["order"] = json!(self.order);
        }
        root
    }

    pub fn load(&self) -> Arc<Program> {
        match Program::from_json(&self.json().to_string()) {
            Ok(p) => Arc::new(p),
            Err(e) => panic!("{e}"),
        }
    }

    pub fn switch(&self) -> Switch {
        Switch::new(self.load(), SwitchConfig { log: true, ..SwitchConfig::default() }).expect("memory")
    }

    /// The error of a program that must not load.
    pub fn error(&self) -> LoadError {
        Program::from_json(&self.json().to_string()).map(|_| ()).expect_err("the program loaded")
    }
}

/// What came of a frame: every frame emitted, clones and copies included, in order.
pub fn send(sw: &mut Switch, port: PortId, frame: &[u8]) -> Vec<(PortId, Vec<u8>)> {
    send_at(sw, 0, port, frame, QueueInfo::default())
}

pub fn send_at(sw: &mut Switch, now: Nanos, port: PortId, frame: &[u8], info: QueueInfo) -> Vec<(PortId, Vec<u8>)> {
    let (mut iout, mut eout) = (IngressOut::default(), EgressOut::default());
    sw.ingress(now, port, frame, &mut iout);
    let mut work: std::collections::VecDeque<Queued> = iout.queued.drain(..).collect();
    let mut frames = Vec::new();
    let mut left = 1000;
    while let Some(item) = work.pop_front() {
        left -= 1;
        assert!(left > 0, "packets without end");
        sw.egress(now, item, info, &mut eout);
        if let Some(e) = eout.emitted.take() {
            frames.push((e.port, e.bytes));
        }
        work.extend(eout.queued.drain(..));
    }
    frames
}

pub fn table_id(sw: &Switch, name: &str) -> TableId {
    sw.program().table_by_name(name).expect("table")
}

pub fn call(sw: &Switch, action: &str, args: &[u64]) -> TableAction {
    TableAction::Call(action_call(sw, action, args))
}

pub fn action_call(sw: &Switch, action: &str, args: &[u64]) -> ActionCall {
    let action = sw.program().action_by_name(action).expect("action");
    ActionCall { action, args: args.iter().map(|&a| Value::from(a)).collect() }
}

pub fn exact(v: u64) -> KeyMatch {
    KeyMatch::Exact(Value::from(v))
}

pub fn entry(key: Vec<KeyMatch>, priority: i32, action: TableAction) -> TableEntry {
    TableEntry { key, priority, action, idle_timeout: 0 }
}
