//! `bm_mc_*`: multicast groups as BMv2 builds them, of nodes, each with ports (and LAGs) and a replication id.
//!
//! The device's groups are the truth, as P4Runtime writes them, too: before each call, groups that are not what these nodes make are
//! taken over from it.

use std::collections::{BTreeMap, BTreeSet};

use fairlane_device::pipeline::{Replica, Switch};
use serde_json::json;

use super::codes::replication as code;
use super::{Answer, Call, Failure};
use crate::value::Value;

/// A set of ports or LAGs as BMv2 writes it: of zeros and ones, number 0 last.
type Members = BTreeSet<u32>;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Node {
    rid: u16,
    ports: Members,
    lags: Members,
    group: Option<u32>,
}

/// Groups, nodes and LAGs.
#[derive(Debug, Default)]
pub struct Replication {
    /// Nodes of each group, in the order in which they were associated.
    groups: BTreeMap<u32, Vec<u32>>,
    nodes: BTreeMap<u32, Node>,
    lags: BTreeMap<u32, Members>,
}

/// `simple_switch` gives every packet this hash to choose a port of a LAG by.
const LAG_HASH: usize = 0xff;

impl Replication {
    /// The copies of a group.
    fn copies(&self, group: u32) -> Vec<Replica> {
        let mut copies = Vec::new();
        for node in self.groups.get(&group).into_iter().flatten().filter_map(|handle| self.nodes.get(handle)) {
            let lags = node.lags.iter().filter_map(|lag| self.lags.get(lag)).filter(|ports| !ports.is_empty());
            let of_lags = lags.filter_map(|ports| ports.iter().nth(LAG_HASH % ports.len()));
            copies.extend(node.ports.iter().chain(of_lags).map(|&port| Replica { port, rid: node.rid }));
        }
        copies
    }

    fn free_handle(&self) -> u32 {
        self.nodes.keys().fold(0, |free, &handle| if handle == free { free + 1 } else { free })
    }

    fn add(&mut self, node: Node) -> u32 {
        let handle = self.free_handle();
        self.nodes.insert(handle, node);
        handle
    }

    /// Takes over what others have made of the device's groups.
    fn sync(&mut self, switch: &Switch) {
        let theirs: BTreeMap<u32, Vec<Replica>> =
            switch.multicast_groups().into_iter().map(|(group, copies)| (u32::from(group), copies)).collect();
        // Group 0 is none to a device.
        let gone: Vec<u32> = self.groups.keys().copied().filter(|group| *group != 0 && !theirs.contains_key(group)).collect();
        for group in gone {
            self.drop_group(group);
        }
        for (group, copies) in theirs {
            if self.groups.contains_key(&group) && self.copies(group) == copies {
                continue;
            }
            for handle in self.groups.remove(&group).into_iter().flatten() {
                self.nodes.remove(&handle);
            }
            let mut by_rid: Vec<(u16, Members)> = Vec::new();
            for copy in copies {
                match by_rid.iter_mut().find(|(rid, _)| *rid == copy.rid) {
                    Some((_, ports)) => {
                        ports.insert(copy.port);
                    }
                    None => by_rid.push((copy.rid, Members::from([copy.port]))),
                }
            }
            let node = |(rid, ports)| Node { rid, ports, lags: Members::new(), group: Some(group) };
            let handles = by_rid.into_iter().map(|one| self.add(node(one))).collect();
            self.groups.insert(group, handles);
        }
    }

    fn drop_group(&mut self, group: u32) {
        for handle in self.groups.remove(&group).into_iter().flatten() {
            if let Some(node) = self.nodes.get_mut(&handle) {
                node.group = None;
            }
        }
    }

    fn json(&self, with_lags: bool) -> String {
        let groups: Vec<_> = self.groups.iter().map(|(id, nodes)| json!({ "id": id, "l1_handles": nodes })).collect();
        let nodes: Vec<_> =
            self.nodes.iter().map(|(handle, node)| json!({ "handle": handle, "l2_handle": handle, "rid": node.rid })).collect();
        let ports: Vec<_> =
            self.nodes.iter().map(|(handle, node)| json!({ "handle": handle, "lags": node.lags, "ports": node.ports })).collect();
        let mut all = json!({ "l1_handles": nodes, "l2_handles": ports, "mgrps": groups });
        if with_lags {
            all["lags"] = self.lags.iter().map(|(id, ports)| json!({ "id": id, "ports": ports })).collect();
        }
        all.to_string()
    }

    /// As after the start.
    pub fn reset(&mut self) {
        *self = Replication::default();
    }
}

impl Call<'_> {
    pub(super) fn replicate(mut self, method: &str, with_lags: bool) -> Answer {
        let Some(rest) = method.strip_prefix("bm_mc_") else { return Err(Failure::UnknownMethod) };
        self.check_context()?;
        let Some(switch) = self.device.switch() else { return Err(Failure::Refused(code::ERROR)) };
        self.core.replication.sync(switch);
        match rest {
            "mgrp_create" => {
                let id = self.args.i32(2)?;
                let group = u32::try_from(id).map_err(|_| Failure::Refused(code::INVALID_GROUP_ID))?;
                self.core.replication.groups.entry(group).or_default();
                self.write(group)?;
                Ok(Some(Value::I32(id)))
            }
            "mgrp_destroy" => {
                let group = self.args.i32(2)? as u32;
                self.core.replication.drop_group(group);
                if let (Ok(group), Some(switch)) = (u16::try_from(group), self.device.switch_mut()) {
                    // There may be none: BMv2 says nothing then.
                    let _ = switch.multicast_delete(group);
                }
                Ok(None)
            }
            "node_create" => {
                let rid = u16::try_from(self.args.i32(2)?).map_err(|_| Failure::Refused(code::ERROR))?;
                let (ports, lags) = (self.member_set(3)?, if with_lags { self.member_set(4)? } else { Members::new() });
                let handle = self.core.replication.add(Node { rid, ports, lags, group: None });
                Ok(Some(Value::I32(handle as i32)))
            }
            "node_update" => {
                let (ports, lags) = (self.member_set(3)?, if with_lags { self.member_set(4)? } else { Members::new() });
                let node = self.node(2)?;
                (node.ports, node.lags) = (ports, lags);
                let group = node.group;
                self.write_some(group)
            }
            "node_associate" => {
                let (group, handle) = (self.args.i32(2)? as u32, self.args.i32(3)? as u32);
                let node = self.node(3)?;
                let taken = node.group.is_some();
                let Some(nodes) = self.core.replication.groups.get_mut(&group) else { return Err(Failure::Refused(code::INVALID_GROUP)) };
                if taken {
                    return Err(Failure::Refused(code::ERROR));
                }
                nodes.push(handle);
                self.node(3)?.group = Some(group);
                self.write_some(Some(group))
            }
            "node_dissociate" => {
                let (group, handle) = (self.args.i32(2)? as u32, self.args.i32(3)? as u32);
                let belongs = self.node(3)?.group == Some(group);
                let Some(nodes) = self.core.replication.groups.get_mut(&group) else { return Err(Failure::Refused(code::INVALID_GROUP)) };
                if !belongs {
                    return Err(Failure::Refused(code::ERROR));
                }
                nodes.retain(|other| *other != handle);
                self.node(3)?.group = None;
                self.write_some(Some(group))
            }
            "node_destroy" => {
                let handle = self.args.i32(2)? as u32;
                let group = self.node(2)?.group;
                self.core.replication.nodes.remove(&handle);
                if let Some(nodes) = group.and_then(|group| self.core.replication.groups.get_mut(&group)) {
                    nodes.retain(|other| *other != handle);
                }
                self.write_some(group)
            }
            "set_lag_membership" if with_lags => {
                let lag = u32::try_from(self.args.i16(2)?).map_err(|_| Failure::Refused(code::ERROR))?;
                let ports = self.member_set(3)?;
                self.core.replication.lags.insert(lag, ports);
                let groups: Vec<u32> = self.core.replication.groups.keys().copied().collect();
                groups.into_iter().try_for_each(|group| self.write(group))?;
                Ok(None)
            }
            "get_entries" => Ok(Some(Value::text(self.core.replication.json(with_lags)))),
            _ => Err(Failure::UnknownMethod),
        }
    }

    fn node(&mut self, number: i16) -> Result<&mut Node, Failure> {
        let handle = self.args.i32(number)? as u32;
        self.core.replication.nodes.get_mut(&handle).ok_or(Failure::Refused(code::INVALID_NODE))
    }

    fn member_set(&self, number: i16) -> Result<Members, Failure> {
        let map = self.args.bytes(number)?;
        Ok(map.iter().rev().enumerate().filter(|&(_, &digit)| digit == b'1').map(|(at, _)| at as u32).collect())
    }

    fn write_some(&mut self, group: Option<u32>) -> Answer {
        if let Some(group) = group {
            self.write(group)?;
        }
        Ok(None)
    }

    /// Gives the device a group's copies.
    fn write(&mut self, group: u32) -> Result<(), Failure> {
        let copies = self.core.replication.copies(group);
        // Group 0 means no multicast: it may be built, and no packet goes to it.
        let (Some(id), Some(switch)) = (u16::try_from(group).ok().filter(|id| *id != 0), self.device.switch_mut()) else { return Ok(()) };
        switch.multicast_set(id, copies).map_err(|_| Failure::Refused(code::ERROR))
    }
}
