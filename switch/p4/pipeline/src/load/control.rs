//! `pipelines`: action profiles, tables, conditionals, and how control flows between them.

use std::collections::HashMap;

use super::json::{Node, Result};
use super::{reads, Loader};
use crate::control::{ActionCall, KeyMatch, TableAction, TableEntry};
use crate::definition::ConditionNote;
use crate::info::*;
use crate::ir::Node as Step;
use crate::ir::{Field, KeyPart, NextNode, Op, TableIr, TableKind};
use crate::observe;
use crate::table::{pack, prefix_mask};

/// Widest table key, bits, packed.
pub const MAX_KEY_BITS: usize = 2048;
/// Largest table.
const MAX_ENTRIES: u64 = 1 << 28;

impl<'n> Loader<'n> {
    pub(super) fn load_pipelines(&mut self, root: &Node) -> Result<()> {
        let list = root.get("pipelines")?;
        let nodes = list.items()?;
        for (name, gress) in [("ingress", Gress::Ingress), ("egress", Gress::Egress)] {
            let mut found = None;
            for node in &nodes {
                if node.get("name")?.str()? == name {
                    found = Some(node);
                }
            }
            let node = found.ok_or_else(|| list.err(format!("there is no pipeline named '{name}'")))?;
            let start = self.load_pipeline(node, gress)?;
            self.program.ir.pipeline_ids[gress as usize] = node.id()?;
            match gress {
                Gress::Ingress => self.starts.0 = start,
                Gress::Egress => self.starts.1 = start,
            }
        }
        Ok(())
    }

    fn load_pipeline(&mut self, node: &Node, gress: Gress) -> Result<NextNode> {
        for profile in node.list("action_profiles")? {
            self.load_profile(&profile)?;
        }
        let tables = node.list("tables")?;
        let conditionals = node.list("conditionals")?;
        let calls = node.list("action_calls")?;
        let first = self.program.ir.nodes.len();
        let mut names = HashMap::new();
        for item in tables.iter().chain(&conditionals).chain(&calls) {
            let name = item.get("name")?.str()?.to_string();
            let at = (first + names.len()) as u32;
            if names.insert(name.clone(), at).is_some() {
                return Err(item.err(format!("two nodes of the pipeline are named '{name}'")));
            }
        }
        for table in &tables {
            self.load_table(table, gress, &names)?;
        }
        for cond in &conditionals {
            let (mut code, mut slot) = self.condition(&cond.get("expression")?)?;
            if self.program.observed > observe::Observing::Nothing {
                let json_id = cond.id()?;
                self.observe(observe::Step::Condition(json_id, false), Some(slot));
                let expression = cond.get("expression")?;
                self.tell_reads(|names| reads::of_expression(&expression, names));
                self.program.notes.conditions.push(ConditionNote { json_id, name: cond.name(), source: cond.source() });
                code.end = self.codegen.here();
            }
            let (mut yes, mut no) = (next(cond, "true_next", &names)?, next(cond, "false_next", &names)?);
            // A lone negation costs nothing: the branches change places.
            let ops = &self.codegen.code[code.start as usize..code.end as usize];
            if let [Op::IsZero(u)] = ops
                && u.dst == slot
            {
                slot = u.a;
                std::mem::swap(&mut yes, &mut no);
                self.codegen.code.truncate(code.start as usize);
                self.program.ir.nodes.push(Step::Test { slot, yes, no });
                continue;
            }
            self.program.ir.nodes.push(if ops.is_empty() { Step::Test { slot, yes, no } } else { Step::Cond { code, slot, yes, no } });
        }
        for call in &calls {
            let action = self.action(&call.get("action_id")?)?;
            if !self.program.actions[action.index()].params.is_empty() {
                return Err(call.err("an action called directly has no parameters"));
            }
            let next = next(call, "next_node", &names)?;
            self.program.ir.nodes.push(Step::Call { action: action.0, next });
        }
        let start = next(node, "init_table", &names)?;
        self.refuse_cycles(node, first)?;
        Ok(start)
    }

    /// A packet must reach the end of the pipeline: its nodes form no cycle.
    fn refuse_cycles(&self, node: &Node, first: usize) -> Result<()> {
        let nodes = &self.program.ir.nodes[first..];
        let successors = |i: usize| -> Vec<u32> {
            let mut out: Vec<NextNode> = match &nodes[i] {
                Step::Table(t) => self.program.ir.tables[*t as usize].successors(),
                Step::Test { yes, no, .. } | Step::Cond { yes, no, .. } => vec![*yes, *no],
                Step::Call { next, .. } => vec![*next],
            };
            out.sort_unstable();
            out.dedup();
            out.into_iter().flatten().collect()
        };
        // Depth-first search with its own stack: 1 is "on the path", 2 is "done".
        let mut mark = vec![0_u8; nodes.len()];
        for root in 0..nodes.len() {
            if mark[root] != 0 {
                continue;
            }
            mark[root] = 1;
            let mut stack = vec![(root, successors(root))];
            while let Some((i, rest)) = stack.last_mut() {
                match rest.pop() {
                    Some(n) => {
                        let n = n as usize - first;
                        if mark[n] == 1 {
                            return Err(node.err(format!("the control flow of pipeline '{}' has a cycle", node.get("name")?.str()?)));
                        }
                        if mark[n] == 0 {
                            mark[n] = 1;
                            stack.push((n, successors(n)));
                        }
                    }
                    None => {
                        mark[*i] = 2;
                        stack.pop();
                    }
                }
            }
        }
        Ok(())
    }

    fn load_profile(&mut self, node: &Node) -> Result<()> {
        let name = node.get("name")?.str()?.to_string();
        let selector = match node.opt("selector") {
            Some(s) => {
                let calc = self.calculation(&s.get("algo")?, &s.get("input")?)?;
                self.program.ir.calculations.push(calc);
                Some((self.program.ir.calculations.len() - 1) as u32)
            }
            None => None,
        };
        let id = ProfileId(self.program.profiles.len() as u32);
        if self.profiles.insert(name.clone(), id).is_some() {
            return Err(node.err(format!("there are two action profiles '{name}'")));
        }
        self.program.profiles.push(ProfileInfo {
            name,
            json_id: node.get("id")?.int()?,
            max_size: node.get("max_size")?.uint(MAX_ENTRIES)? as usize,
            with_selector: selector.is_some(),
            tables: Vec::new(),
        });
        self.program.ir.selectors.push(selector);
        Ok(())
    }

    fn load_table(&mut self, node: &Node, gress: Gress, names: &HashMap<String, u32>) -> Result<()> {
        let id = TableId(self.program.tables.len() as u32);
        let name = node.get("name")?.str()?.to_string();
        let kind_node = node.get("match_type")?;
        let kind = match kind_node.str()? {
            "exact" => TableKind::Exact,
            "lpm" => TableKind::Lpm,
            "ternary" => TableKind::Ternary,
            "range" => TableKind::Range,
            other => return Err(kind_node.err(format!("there is no match type '{other}'"))),
        };
        let (key, parts, key_limbs) = self.table_key(node, kind)?;
        let actions = self.table_actions(node)?;
        let entries = node.opt("entries");
        let max_size = match (&entries, node.opt("max_size")) {
            (None, Some(n)) => n.uint(MAX_ENTRIES)? as usize,
            (Some(list), _) => list.items()?.len(),
            (None, None) => return Err(node.err(format!("table '{name}' has neither 'max_size' nor 'entries'"))),
        };
        let profile = self.table_profile(node, id)?;
        let direct_meter = match node.opt("direct_meters") {
            Some(n) => Some(self.direct_meter(&n, id)?),
            None => None,
        };
        let direct_counter = if node.flag("with_counters", false)? { Some(self.direct_counter(&name, id)) } else { None };
        let mut info = TableInfo {
            name,
            json_id: node.get("id")?.int()?,
            gress,
            key,
            actions,
            max_size,
            needs_priority: matches!(kind, TableKind::Ternary | TableKind::Range),
            const_entries: entries.is_some(),
            const_default: false,
            support_timeout: node.flag("support_timeout", false)?,
            direct_counter,
            direct_meter: direct_meter.map(|m| m.0),
            profile,
        };
        let mut ir = TableIr {
            kind,
            key: parts,
            key_limbs,
            next: Vec::new(),
            hit_miss: None,
            base_next: next(node, "base_default_next", names)?,
            default: None,
            entries: Vec::new(),
            meter_target: direct_meter.map(|m| m.1),
            end: 0,
        };
        self.table_next(node, &info, &mut ir, names)?;
        if let Some(default) = node.opt("default_entry") {
            let call = self.action_call(&default, &info)?;
            info.const_default = default.flag("action_const", false)? || default.flag("action_entry_const", false)?;
            ir.default = Some(call);
        }
        if let Some(list) = entries {
            if profile.is_some() {
                return Err(list.err("a table with an action profile cannot have entries of its own"));
            }
            let mut seen = std::collections::HashMap::new();
            for node in list.items()? {
                let entry = self.const_entry(&node, &info)?;
                let packed = pack(&info, &ir, &entry.key, entry.priority).map_err(|e| node.err(e.to_string()))?;
                if let Some(first) = seen.insert(format!("{packed:?}"), ir.entries.len()) {
                    return Err(node.err(format!("the entry matches the same as entry {first} of table '{}'", info.name)));
                }
                ir.entries.push(entry);
            }
        }
        self.program.notes.tables.push(node.source());
        self.program.tables.push(info);
        self.program.ir.tables.push(ir);
        self.program.ir.nodes.push(Step::Table(id.0));
        Ok(())
    }

    fn table_key(&self, node: &Node, kind: TableKind) -> Result<(Vec<KeyInfo>, Vec<KeyPart>, usize)> {
        let (mut infos, mut parts): (Vec<KeyInfo>, Vec<KeyPart>) = (Vec::new(), Vec::new());
        let (mut limb, mut used) = (0_u32, 0_u32);
        for item in node.get("key")?.items()? {
            let ty = item.get("match_type")?;
            let match_kind = match ty.str()? {
                "exact" => MatchKind::Exact,
                "lpm" => MatchKind::Lpm,
                "ternary" => MatchKind::Ternary,
                "range" => MatchKind::Range,
                "optional" => MatchKind::Optional,
                "valid" => MatchKind::Valid,
                other => return Err(ty.err(format!("there is no match type '{other}'"))),
            };
            let fits = match kind {
                TableKind::Exact => matches!(match_kind, MatchKind::Exact | MatchKind::Valid),
                TableKind::Lpm => matches!(match_kind, MatchKind::Exact | MatchKind::Valid | MatchKind::Lpm),
                TableKind::Ternary => match_kind != MatchKind::Range,
                TableKind::Range => true,
            };
            if !fits {
                return Err(ty.err(format!("a key of type '{}' cannot be in a table of this match_type", ty.str()?)));
            }
            let two_lpm = match_kind == MatchKind::Lpm && infos.iter().any(|k| k.kind == MatchKind::Lpm);
            if two_lpm {
                return Err(item.err("a table has at most one lpm key"));
            }
            let target = item.get("target")?;
            let (field, default_name) = if match_kind == MatchKind::Valid {
                let h = self.names.header(&target)?;
                let header = &self.names.layout.headers[h as usize];
                let one = self.names.layout.packet_end;
                let field = Field { slot: header.valid, width: 1, signed: false, saturating: false, valid: one };
                (field, header.name.clone())
            } else {
                let pair = target.tuple(2)?;
                (self.names.field(&target)?, format!("{}.{}", pair[0].str()?, pair[1].str()?))
            };
            let mask = match item.opt("mask") {
                Some(m) => {
                    let mut limbs = vec![0; field.limbs()];
                    m.hex_value(field.width)?.write_limbs(&mut limbs);
                    Some(limbs)
                }
                None => None,
            };
            // A field never straddles two limbs unless it is wider than one.
            if used + field.width > 64 && used > 0 {
                limb += 1;
                used = 0;
            }
            parts.push(KeyPart { field, mask, limb, shift: used });
            if field.width > 64 {
                limb += field.limbs() as u32;
            } else {
                used += field.width;
            }
            infos.push(KeyInfo {
                name: item.opt("name").map_or(Ok(default_name), |n| n.str().map(String::from))?,
                kind: match_kind,
                width: field.width,
            });
        }
        let limbs = (limb + u32::from(used > 0)).max(1) as usize;
        if limbs * 64 > MAX_KEY_BITS {
            return Err(node.get("key")?.err(format!("a table's key is at most {MAX_KEY_BITS} bits wide")));
        }
        Ok((infos, parts, limbs))
    }

    fn table_actions(&self, node: &Node) -> Result<Vec<ActionId>> {
        let mut actions = Vec::new();
        if let Some(ids) = node.opt("action_ids") {
            for id in ids.items()? {
                actions.push(self.action(&id)?);
            }
            return Ok(actions);
        }
        for name in node.get("actions")?.items()? {
            let text = name.str()?;
            let found = self.program.actions.iter().position(|a| a.name == text);
            let at = found.ok_or_else(|| name.err(format!("there is no action '{text}'")))?;
            actions.push(ActionId(at as u32));
        }
        Ok(actions)
    }

    fn table_profile(&mut self, node: &Node, id: TableId) -> Result<Option<ProfileId>> {
        let ty = node.get("type")?;
        let with_selector = match ty.str()? {
            "simple" => return Ok(None),
            "indirect" => false,
            "indirect_ws" => true,
            other => return Err(ty.err(format!("there is no table type '{other}'"))),
        };
        let n = node.get("action_profile")?;
        let profile = *self
            .profiles
            .get(n.str()?)
            .ok_or_else(|| n.err(format!("there is no action profile '{}' in this pipeline", n.v.as_str().unwrap_or("?"))))?;
        let info = &mut self.program.profiles[profile.index()];
        if with_selector && !info.with_selector {
            return Err(n.err(format!("action profile '{}' has no selector", info.name)));
        }
        info.tables.push(id);
        Ok(Some(profile))
    }

    fn direct_meter(&mut self, node: &Node, id: TableId) -> Result<(MeterId, Field)> {
        let name = node.str()?;
        let at =
            self.program.meters.iter().position(|m| m.name == name).ok_or_else(|| node.err(format!("there is no meter array '{name}'")))?;
        self.program.meters[at].table = Some(id);
        let root_meter = self.meter_targets.get(name).copied();
        let field = root_meter.ok_or_else(|| node.err(format!("the meter array '{name}' is not direct")))?;
        Ok((MeterId(at as u32), field))
    }

    /// The direct counter bound to the table; one is made up when the JSON names none.
    fn direct_counter(&mut self, table: &str, id: TableId) -> CounterId {
        let bound = self.counter_bindings.get(table).copied();
        let at = bound.unwrap_or_else(|| {
            self.program.counters.push(CounterInfo { name: format!("{table}.counter"), json_id: -1, size: 0, table: None });
            (self.program.counters.len() - 1) as u32
        });
        self.program.counters[at as usize].table = Some(id);
        CounterId(at)
    }

    fn table_next(&self, node: &Node, info: &TableInfo, ir: &mut TableIr, names: &HashMap<String, u32>) -> Result<()> {
        let list = node.get("next_tables")?;
        let has = |key: &str| list.v.get(key).is_some();
        if has("__HIT__") || has("__MISS__") {
            if !(has("__HIT__") && has("__MISS__")) {
                return Err(list.err("'next_tables' has one of __HIT__ and __MISS__ but not the other"));
            }
            ir.hit_miss = Some((next(&list, "__HIT__", names)?, next(&list, "__MISS__", names)?));
            ir.next = vec![None; info.actions.len()];
            return Ok(());
        }
        for action in &info.actions {
            let name = &self.program.actions[action.index()].name;
            if list.v.get(name.as_str()).is_none() {
                return Err(list.err(format!("there is no next node for action '{name}'")));
            }
            ir.next.push(next(&list, name, names)?);
        }
        Ok(())
    }

    fn action_call(&self, node: &Node, table: &TableInfo) -> Result<ActionCall> {
        let id_node = node.get("action_id")?;
        let action = self.action(&id_node)?;
        let info = &self.program.actions[action.index()];
        if !table.actions.contains(&action) {
            return Err(id_node.err(format!("action '{}' is not one of table '{}'", info.name, table.name)));
        }
        let data = node.get("action_data")?;
        let items = data.items()?;
        if items.len() != info.params.len() {
            return Err(data.err(format!("action '{}' takes {} arguments, found {}", info.name, info.params.len(), items.len())));
        }
        let args = items.iter().zip(&info.params).map(|(n, p)| n.hex_value(p.width)).collect::<Result<Vec<_>>>()?;
        Ok(ActionCall { action, args })
    }

    fn const_entry(&self, node: &Node, table: &TableInfo) -> Result<TableEntry> {
        let list = node.get("match_key")?;
        let mut key = Vec::new();
        for (item, info) in list.tuple(table.key.len())?.iter().zip(&table.key) {
            let ty = item.get("match_type")?;
            let width = info.width;
            key.push(match (ty.str()?, info.kind) {
                ("exact", MatchKind::Exact) => KeyMatch::Exact(item.get("key")?.hex_value(width)?),
                ("lpm", MatchKind::Lpm) => {
                    let prefix_len = item.get("prefix_length")?.uint(width.into())? as u32;
                    let value = masked(&item.get("key")?.hex_value(width)?, &prefix_mask(width, prefix_len), width);
                    KeyMatch::Lpm { value, prefix_len }
                }
                ("ternary" | "optional", MatchKind::Ternary | MatchKind::Optional) => {
                    let mask = item.get("mask")?.hex_value(width)?;
                    let value = masked(&item.get("key")?.hex_value(width)?, &mask, width);
                    KeyMatch::Ternary { value, mask }
                }
                ("range", MatchKind::Range) => {
                    KeyMatch::Range { low: item.get("start")?.hex_value(width)?, high: item.get("end")?.hex_value(width)? }
                }
                ("valid", MatchKind::Valid) => KeyMatch::Valid(item.get("key")?.bool()?),
                (other, _) => return Err(ty.err(format!("'{other}' is not the match type of key field '{}'", info.name))),
            });
        }
        // BMv2: the smallest number wins; here, as in P4Runtime, the largest.
        let priority = if table.needs_priority { i32::MAX - node.get("priority")?.uint(i32::MAX as u64 - 1)? as i32 } else { 0 };
        Ok(TableEntry { key, priority, action: TableAction::Call(self.action_call(&node.get("action_entry")?, table)?), idle_timeout: 0 })
    }
}

fn masked(value: &crate::Value, mask: &crate::Value, width: u32) -> crate::Value {
    let bytes: Vec<u8> = value.to_be_bytes(width).iter().zip(mask.to_be_bytes(width)).map(|(v, m)| v & m).collect();
    crate::Value::from_be_bytes(&bytes)
}

/// The node that attribute `key` names; none when null or missing.
fn next(node: &Node, key: &str, names: &HashMap<String, u32>) -> Result<NextNode> {
    let Some(n) = node.opt(key) else {
        return Ok(None);
    };
    let name = n.str()?;
    match names.get(name) {
        Some(&at) => Ok(Some(at)),
        None => Err(n.err(format!("there is no table, conditional or call '{name}' in this pipeline"))),
    }
}
