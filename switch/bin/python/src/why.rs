//! The way of one packet through a network, as JSON (docs/why.md).

use std::path::Path;

use fairlane_virtual::{Network, Station, Visit};
use serde_json::{json, Value as Json};

/// The stations of the packet that the network follows. `root`: the folder from which the names of programs' files count.
pub fn way(network: &Network, root: &Path) -> String {
    let told = network.way().map(|station| match station {
        Station::Sent { time, host } => json!({ "kind": "sent", "time_ns": time, "node": host }),
        Station::Received { time, node } => json!({ "kind": "received", "time_ns": time, "node": node }),
        Station::Lost { time, node, cause } => json!({ "kind": "lost", "time_ns": time, "node": node, "cause": cause }),
        Station::Visit(visit) => visited(network, visit, root),
    });
    Json::Array(told.collect()).to_string()
}

fn visited(network: &Network, visit: &Visit, root: &Path) -> Json {
    let found = network.switch(visit.switch);
    let program = found.and_then(|(_, device)| device.switch()).map(|switch| switch.program());
    let steps = program.map_or_else(Vec::new, |program| fairlane_stf::explained(program, &visit.events, root));
    let frame: String = visit.frame.iter().map(|byte| format!("{byte:02x}")).collect();
    json!({
        "kind": "switch",
        "time_ns": visit.time,
        "node": found.map(|(name, _)| name),
        "port": visit.port,
        "frame": frame,
        "steps": steps,
        "cut": visit.cut,
    })
}
