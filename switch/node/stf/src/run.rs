//! Plays a script against a program.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlane_device::{Capacity, Device, DeviceConfig, Nanos, PortConfig, PortId};
use fairlane_pipeline::{
    ActionCall, ActionId, CloneSession, CounterData, CounterId, KeyMatch, MeterConfig, Observing, PacketEvent, Program, RegisterId,
    Replica, Switch, TableAction, TableEntry, TableId,
};

use crate::compare::{Difference, Pattern};
use crate::names::{find, find_key};
use crate::profiles;
use crate::read::{ActionText, Command, CounterUnit, KeyText, Script};
use crate::value::{fitting, key_match, number, omitted};

/// Priority queues, so that programs may use v1model's 3 bits of priority.
const PRIORITIES: usize = 8;
/// BMv2's runner waits a second between a CLI command and the next packet; meters and timeouts see that time.
const AFTER_COMMAND: Nanos = 1_000_000_000;
const BETWEEN_PACKETS: Nanos = 100_000;

/// A script that does not fit the program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct RunError {
    /// Line, counted from 1.
    pub line: u32,
    /// What is wrong.
    pub message: String,
}

/// What a run showed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// All that is not as the script says; empty when the test passes.
    pub differences: Vec<Difference>,
    /// Packets sent in.
    pub packets_in: usize,
    /// Packets that came out, at named ports or not.
    pub packets_out: usize,
    /// What the reading commands (`register_read`, ...) say, and `log_msg` lines.
    pub log: Vec<String>,
    /// What packets did, if that was asked for.
    pub steps: Vec<PacketEvent>,
}

/// Runs a script from the program's initial state.
pub fn run(program: Arc<Program>, script: &Script) -> Result<Outcome, RunError> {
    run_observed(program, script, Observing::Nothing)
}

/// [`run`], keeping packets' steps.
pub fn run_observed(program: Arc<Program>, script: &Script, observing: Observing) -> Result<Outcome, RunError> {
    let mut player = Player::observing(program, observing).map_err(|message| RunError { line: 1, message })?;
    for statement in &script.statements {
        player.play(statement.line, &statement.command).map_err(|message| RunError { line: statement.line, message })?;
    }
    Ok(player.finish())
}

/// A switch that a script is played on, and that packets can be given beside.
pub struct Player {
    program: Arc<Program>,
    device: Device,
    now: Nanos,
    received: BTreeMap<PortId, Vec<Vec<u8>>>,
    expected: BTreeMap<PortId, Vec<(u32, Pattern)>>,
    labels: BTreeMap<String, (TableId, Vec<KeyMatch>, i32)>,
    nodes: Vec<(u16, Vec<PortId>)>,
    outcome: Outcome,
}

impl Player {
    /// A switch in the program's initial state.
    ///
    /// # Errors
    /// There is not enough memory for it.
    pub fn new(program: Arc<Program>) -> Result<Player, String> {
        Player::observing(program, Observing::Nothing)
    }

    /// [`Player::new`], keeping packets' steps.
    ///
    /// # Errors
    /// There is not enough memory for it.
    pub fn observing(program: Arc<Program>, observe: Observing) -> Result<Player, String> {
        let mut device = Device::new(DeviceConfig { priorities: PRIORITIES, log: true, observe, ..DeviceConfig::default() });
        for port in 0..=510 {
            let config = PortConfig { capacity: Capacity::Unlimited, priorities: PRIORITIES, ..PortConfig::default() };
            // Ports 0..=510 with no rate are always accepted.
            let _ = device.set_port(port, config);
        }
        device.load(0, program.clone()).map_err(|error| error.to_string())?;
        device.set_observing(observe > Observing::Nothing);
        Ok(Player {
            program,
            device,
            now: AFTER_COMMAND,
            received: BTreeMap::new(),
            expected: BTreeMap::new(),
            labels: BTreeMap::new(),
            nodes: Vec::new(),
            outcome: Outcome::default(),
        })
    }

    /// [`Player::new`], ready for [`Player::watched`] of a program that notes values.
    ///
    /// # Errors
    /// There is not enough memory for it.
    pub fn watching(program: Arc<Program>) -> Result<Player, String> {
        let mut player = Player::observing(program, Observing::Values)?;
        player.device.set_observing(false);
        Ok(player)
    }

    /// One packet in, whose steps are kept: what comes out of which port, and the steps.
    pub fn watched(&mut self, port: PortId, bytes: &[u8]) -> (Vec<(PortId, Vec<u8>)>, Vec<PacketEvent>) {
        self.device.watch_next();
        let out = self.exchange(port, bytes);
        (out, self.device.take_observed())
    }

    fn switch(&mut self) -> Result<&mut Switch, String> {
        self.device.switch_mut().ok_or_else(|| "no program is loaded".to_string())
    }

    /// One packet in; what comes out of which port, in order.
    pub fn exchange(&mut self, port: PortId, bytes: &[u8]) -> Vec<(PortId, Vec<u8>)> {
        self.now += BETWEEN_PACKETS;
        self.device.receive(self.now, port, bytes);
        let mut out: Vec<(PortId, Nanos, Vec<u8>)> = Vec::new();
        self.device.poll(self.now, &mut out);
        self.device.take_events();
        self.device.take_log();
        out.into_iter().map(|(port, _, bytes)| (port, bytes)).collect()
    }

    /// The values of all registers and indirect counters, one array a line: `register NAME VALUE...`,
    /// `counter NAME PACKETS BYTES PACKETS BYTES...`.
    pub fn state(&self) -> Result<String, String> {
        let switch = self.device.switch().ok_or("no program is loaded")?;
        let mut text = String::new();
        for (i, info) in self.program.registers().iter().enumerate() {
            text.push_str(&format!("register {}", info.name));
            let values = switch.register_read_range(RegisterId(i as u32), 0, info.size).map_err(|e| e.to_string())?;
            values.iter().for_each(|value| text.push_str(&format!(" {value}")));
            text.push('\n');
        }
        for (i, info) in self.program.counters().iter().enumerate().filter(|(_, c)| c.table.is_none()) {
            text.push_str(&format!("counter {}", info.name));
            for cell in 0..info.size {
                let data = switch.counter_read(CounterId(i as u32), cell).map_err(|e| e.to_string())?;
                text.push_str(&format!(" {} {}", data.packets, data.bytes));
            }
            text.push('\n');
        }
        Ok(text)
    }

    /// Plays one command of a script.
    pub fn play(&mut self, line: u32, command: &Command) -> Result<(), String> {
        match command {
            Command::Packet { port, bytes } => {
                self.outcome.packets_in += 1;
                self.expected.entry(*port).or_default();
                self.now += BETWEEN_PACKETS;
                self.device.receive(self.now, *port, bytes);
                self.collect();
                return Ok(());
            }
            Command::Expect { port, pattern } => {
                self.expected.entry(*port).or_default().push((line, pattern.clone()));
                return Ok(());
            }
            Command::NoPacket | Command::Wait => {}
            Command::RemoveAll => {
                let program = self.program.clone();
                for (i, table) in program.tables().iter().enumerate() {
                    if !table.const_entries {
                        self.switch()?.table_clear(TableId(i as u32)).map_err(|e| e.to_string())?;
                    }
                }
            }
            Command::Add { table, priority, keys, action, label } => self.add(table, *priority, keys, action, label)?,
            Command::SetDefault { table, action } => {
                let table = self.table(table)?;
                let action = self.action(table, action)?;
                let action = self.in_profile(table, action)?;
                self.switch()?.table_set_default(table, Some(action)).map_err(|e| e.to_string())?;
            }
            Command::CheckCounter { name, index, check } => {
                let data = self.counter(name, index)?;
                match check {
                    None => self.say(format!("{name}({index}): {} packets, {} bytes", data.packets, data.bytes)),
                    Some((unit, comparison, wanted)) => {
                        let (got, word) = match unit {
                            CounterUnit::Packets => (data.packets, "packets"),
                            CounterUnit::Bytes => (data.bytes, "bytes"),
                        };
                        if !comparison.holds(got, *wanted) {
                            let what = format!("{name}({index}) {word} {} {wanted}", comparison.symbol());
                            self.outcome.differences.push(Difference::Counter { line, what, received: got });
                        }
                    }
                }
            }
            Command::Direct { name, words } => self.direct(name, words)?,
        }
        self.now += AFTER_COMMAND;
        self.collect();
        Ok(())
    }

    fn collect(&mut self) {
        let mut out: Vec<(PortId, Nanos, Vec<u8>)> = Vec::new();
        self.device.poll(self.now, &mut out);
        self.outcome.packets_out += out.len();
        for (port, _, bytes) in out {
            self.received.entry(port).or_default().push(bytes);
        }
        self.device.take_events();
        let (log, steps) = (self.device.take_log(), self.device.take_observed());
        self.outcome.log.extend(log);
        self.outcome.steps.extend(steps);
    }

    fn say(&mut self, text: String) {
        self.outcome.log.push(text);
    }

    fn finish(mut self) -> Outcome {
        self.now += AFTER_COMMAND;
        self.collect();
        for (port, expected) in &self.expected {
            let received = self.received.remove(port).unwrap_or_default();
            if received.len() != expected.len() {
                let (port, expected) = (*port, expected.len());
                self.outcome.differences.push(Difference::Count { port, expected, received });
                continue;
            }
            for (index, ((line, pattern), bytes)) in expected.iter().zip(received).enumerate() {
                if let Some(mismatch) = pattern.mismatch(&bytes) {
                    self.outcome.differences.push(Difference::Packet {
                        port: *port,
                        index,
                        line: *line,
                        expected: pattern.clone(),
                        received: bytes,
                        mismatch,
                    });
                }
            }
        }
        self.outcome
    }

    fn table(&self, name: &str) -> Result<TableId, String> {
        find("table", name, self.program.tables().iter().map(|t| t.name.as_str())).map(|i| TableId(i as u32))
    }

    fn action(&self, table: TableId, text: &ActionText) -> Result<TableAction, String> {
        let info = self.program.table(table).ok_or("no such table")?;
        let names = info.actions.iter().map(|a| self.program.action(*a).map_or("", |a| a.name.as_str()));
        let position = find("action", &text.name, names)?;
        let id: ActionId = info.actions[position];
        let action = self.program.action(id).ok_or("no such action")?;
        let mut args = Vec::new();
        for param in &action.params {
            let given = text.args.iter().find(|(name, _)| *name == param.name);
            let (_, value) = given.ok_or_else(|| format!("action {} needs {}", action.name, param.name))?;
            args.push(fitting(value, param.width).map_err(|e| format!("{}: {e}", param.name))?);
        }
        if let Some((name, _)) = text.args.iter().find(|(name, _)| action.params.iter().all(|p| p.name != *name)) {
            return Err(format!("action {} has no parameter {name}", action.name));
        }
        Ok(TableAction::Call(ActionCall { action: id, args }))
    }

    /// Where a table has an action profile, an action of a script becomes a member of it.
    fn in_profile(&mut self, table: TableId, action: TableAction) -> Result<TableAction, String> {
        let TableAction::Call(call) = action else { return Ok(action) };
        let program = self.program.clone();
        let member = profiles::member(&program, self.switch()?, table, call.clone())?;
        Ok(member.map_or(TableAction::Call(call), TableAction::Member))
    }

    fn add(
        &mut self,
        table: &str,
        priority: Option<i32>,
        keys: &[KeyText],
        action: &ActionText,
        label: &Option<String>,
    ) -> Result<(), String> {
        let table = self.table(table)?;
        let action = self.action(table, action)?;
        let program = self.program.clone();
        let info = program.table(table).ok_or("no such table")?;
        let mut key: Vec<KeyMatch> = info.key.iter().map(omitted).collect();
        for text in keys {
            let position = find_key(&text.name, info.key.iter().map(|k| k.name.as_str()))?;
            key[position] =
                key_match(&text.value, text.prefix.as_deref(), &info.key[position]).map_err(|e| format!("{}: {e}", text.name))?;
        }
        // Scripts count priorities from 0, the pipeline from 1; larger wins in both.
        let priority = if info.needs_priority { priority.unwrap_or(0).saturating_add(1) } else { 0 };
        let action = self.in_profile(table, action)?;
        let entry = TableEntry { key: key.clone(), priority, action, idle_timeout: 0 };
        let now = self.now;
        self.switch()?.table_insert(now, table, entry).map_err(|e| e.to_string())?;
        if let Some(label) = label {
            self.labels.insert(label.clone(), (table, key, priority));
        }
        Ok(())
    }

    /// An indirect counter's cell by number, a direct counter's by the name that an `add` gave its entry.
    fn counter(&mut self, name: &str, index: &str) -> Result<CounterData, String> {
        let program = self.program.clone();
        let i = find("counter", name, program.counters().iter().map(|c| c.name.as_str()))?;
        let id = fairlane_pipeline::CounterId(i as u32);
        if program.counters()[i].table.is_some() {
            let label = index.trim_start_matches('$');
            let (table, key, priority) = self.labels.get(label).cloned().ok_or_else(|| format!("no entry was added with `= {label}`"))?;
            let state = self.switch()?.table_get(table, &key, priority).map_err(|e| e.to_string())?;
            return state.counter.ok_or_else(|| format!("{name} is not the counter of that entry's table"));
        }
        let cell = index_of(index)?;
        self.switch()?.counter_read(id, cell).map_err(|e| e.to_string())
    }

    fn direct(&mut self, name: &str, words: &[String]) -> Result<(), String> {
        let program = self.program.clone();
        let word = |i: usize| words.get(i).map(String::as_str).ok_or_else(|| format!("{name} needs more arguments"));
        let register = |n: &str| {
            find("register", n, program.registers().iter().map(|r| r.name.as_str())).map(|i| fairlane_pipeline::RegisterId(i as u32))
        };
        let counter = |n: &str| {
            find("counter", n, program.counters().iter().map(|r| r.name.as_str())).map(|i| fairlane_pipeline::CounterId(i as u32))
        };
        let meter =
            |n: &str| find("meter", n, program.meters().iter().map(|r| r.name.as_str())).map(|i| fairlane_pipeline::MeterId(i as u32));
        let now = self.now;
        match name {
            "mirroring_add" => {
                let port = small(word(1)?)? as PortId;
                let replicas = vec![Replica { port, rid: 0 }];
                self.clone_session(word(0)?, CloneSession { replicas, ..CloneSession::default() })
            }
            "mirroring_add_mc" => {
                let group = small(word(1)?)?;
                self.clone_session(word(0)?, CloneSession { multicast_group: Some(group), ..CloneSession::default() })
            }
            "mirroring_delete" => {
                let session = u32::from(small(word(0)?)?);
                self.switch()?.clone_delete(session).map_err(|e| e.to_string())
            }
            "mirroring_get" => {
                let session = u32::from(small(word(0)?)?);
                let found = self.switch()?.clone_sessions().into_iter().find(|(id, _)| *id == session);
                self.say(format!("mirroring_get {session}: {found:?}"));
                Ok(())
            }
            "mc_mgrp_create" => {
                let group = small(word(0)?)?;
                self.switch()?.multicast_insert(group, Vec::new()).map_err(|e| e.to_string())
            }
            "mc_node_create" => {
                let ports: Result<Vec<PortId>, String> = words.iter().skip(1).map(|w| small(w).map(PortId::from)).collect();
                self.nodes.push((small(word(0)?)?, ports?));
                Ok(())
            }
            "mc_node_update" => {
                let ports: Result<Vec<PortId>, String> = words.iter().skip(1).map(|w| small(w).map(PortId::from)).collect();
                let node = index_of(word(0)?)?;
                self.nodes.get_mut(node).ok_or_else(|| format!("no multicast node {node}"))?.1 = ports?;
                Ok(())
            }
            "mc_node_associate" => self.associate(small(word(0)?)?, index_of(word(1)?)?),
            "counter_read" => {
                let data = self.counter(word(0)?, word(1)?)?;
                self.say(format!("{}[{}]= ({} bytes, {} packets)", word(0)?, word(1)?, data.bytes, data.packets));
                Ok(())
            }
            "counter_write" => {
                let (id, cell) = (counter(word(0)?)?, index_of(word(1)?)?);
                let data = CounterData { packets: large(word(2)?)?, bytes: large(word(3)?)? };
                self.switch()?.counter_write(id, cell, data).map_err(|e| e.to_string())
            }
            "register_read" => {
                let (id, cell) = (register(word(0)?)?, index_of(word(1)?)?);
                let value = self.switch()?.register_read(id, cell).map_err(|e| e.to_string())?;
                self.say(format!("{}[{cell}]= {value}", word(0)?));
                Ok(())
            }
            "register_write" => {
                let (id, cell) = (register(word(0)?)?, index_of(word(1)?)?);
                let value = number(word(2)?)?;
                self.switch()?.register_write(id, cell, &value).map_err(|e| e.to_string())
            }
            "register_reset" => {
                let id = register(word(0)?)?;
                let size = program.register(id).map_or(0, |r| r.size);
                let zero = fairlane_pipeline::Value::from(0u64);
                self.switch()?.register_write_range(id, 0, size, &zero).map_err(|e| e.to_string())
            }
            "meter_get_rates" => {
                let (id, cell) = (meter(word(0)?)?, index_of(word(1)?)?);
                let config = self.switch()?.meter_read(id, cell).map_err(|e| e.to_string())?;
                self.say(format!("{}[{cell}]= {config:?}", word(0)?));
                Ok(())
            }
            "meter_set_rates" => {
                let (id, cell) = (meter(word(0)?)?, index_of(word(1)?)?);
                let config = rates(&words[2..])?;
                self.switch()?.meter_write(now, id, cell, Some(config)).map_err(|e| e.to_string())
            }
            "meter_array_set_rates" => {
                let id = meter(word(0)?)?;
                let config = rates(&words[1..])?;
                for cell in 0..program.meter(id).map_or(0, |m| m.size) {
                    self.switch()?.meter_write(now, id, cell, Some(config)).map_err(|e| e.to_string())?;
                }
                Ok(())
            }
            other => profiles::command(other, words, &program, self.switch()?, now),
        }
    }

    fn clone_session(&mut self, session: &str, config: CloneSession) -> Result<(), String> {
        let id = u32::from(small(session)?);
        let switch = self.switch()?;
        let exists = switch.clone_sessions().iter().any(|(s, _)| *s == id);
        let done = if exists { switch.clone_modify(id, config) } else { switch.clone_insert(id, config) };
        done.map_err(|e| e.to_string())
    }

    fn associate(&mut self, group: u16, node: usize) -> Result<(), String> {
        let (rid, ports) = self.nodes.get(node).cloned().ok_or_else(|| format!("no multicast node {node}"))?;
        let switch = self.switch()?;
        let mut replicas = switch
            .multicast_groups()
            .into_iter()
            .find(|(g, _)| *g == group)
            .map(|(_, r)| r)
            .ok_or_else(|| format!("no multicast group {group}: mc_mgrp_create comes first"))?;
        replicas.extend(ports.into_iter().map(|port| Replica { port, rid }));
        switch.multicast_modify(group, replicas).map_err(|e| e.to_string())
    }
}

/// `RATE:BURST RATE:BURST`, committed first; rates are per microsecond, as in BMv2's CLI.
fn rates(words: &[String]) -> Result<MeterConfig, String> {
    let text = words.join(" ").replace(" :", ":").replace(": ", ":");
    let pairs: Vec<(f64, u64)> = text
        .split_whitespace()
        .map(|pair| {
            let (rate, burst) = pair.split_once(':').ok_or_else(|| format!("`{pair}` is not RATE:BURST"))?;
            let rate: f64 = rate.parse().map_err(|_| format!("`{rate}` is not a rate"))?;
            if !(0.0..=1e12).contains(&rate) {
                return Err(format!("rate {rate} is out of range"));
            }
            Ok((rate, large(burst)?))
        })
        .collect::<Result<_, String>>()?;
    let [(cir, cburst), (pir, pburst)] = pairs[..] else {
        return Err(format!("expected two RATE:BURST pairs, found {}", pairs.len()));
    };
    // Per microsecond, as BMv2's command line has them: kept to millionths per second.
    let split = |rate: f64| {
        let micro = (rate * 1e12).round() as u128;
        ((micro / 1_000_000) as u64, (micro % 1_000_000) as u32)
    };
    let ((cir, cir_micro), (pir, pir_micro)) = (split(cir), split(pir));
    Ok(MeterConfig { cir, cir_micro, cburst, pir, pir_micro, pburst })
}

fn small(text: &str) -> Result<u16, String> {
    fitting(text, 16)?.to_u64().map(|v| v as u16).ok_or_else(|| format!("{text} is too large"))
}

fn large(text: &str) -> Result<u64, String> {
    number(text)?.to_u64().ok_or_else(|| format!("{text} is too large"))
}

fn index_of(text: &str) -> Result<usize, String> {
    large(text).map(|v| v as usize)
}
