//! What the links of a switch's ports do beside rate and delay: losses, jitter, impairments, changes at their times, traces, and a host's sending end.
//!
//! A file (`--links`, JSON) describes them. The switch reads it when it starts, and again at SIGHUP, so that a run can say when it begins:
//!
//! ```json
//! {"seed": 1, "begin_unix_ns": 1700000000000000000, "links": [
//!   {"port": 1, "direction": "out", "from": "s1", "to": "s2", "loss": 0.01, "jitter_ns": 500000,
//!    "changes": [{"at_ns": 20000000000, "rate_bps": 5000000, "delay_ns": 10000000, "loss": 0.02, "jitter_ns": 0}],
//!    "trace": {"opportunities_ns": [0, 1000000, 1000000, 3000000], "bytes": 1500}},
//!   {"port": 2, "direction": "in", "from": "h1", "to": "s1", "rate_bps": 100000000, "delay_ns": 1000000, "queue_packets": 1000}
//! ]}
//! ```
//!
//! `out` is what the port sends; its rate, queue and delay are those of the command line. `in` is what comes to the port: with `rate_bps` the
//! switch is the sender's transmitter and queue, too. `at_ns` counts from `begin_unix_ns`; without it changes and traces wait. A trace may be
//! `{"rates_ns_bps": [[0, 5000000], [1000000000, 0], [2000000000, 8000000]]}` instead, and begins at `begin_unix_ns`. `jitter_ns` is uniform; `jitter_std_ns`
//! instead is Gaussian (`fairlane_channel::Jitter`). `"gemodel": {"p": 0.01, "r": 0.25, "loss_bad": 1, "loss_good": 0}` in place of `loss` is the model of
//! Gilbert and Elliott; `reorder` with `reorder_delay_ns`, `duplicate` and `corrupt` are those of `fairlane_channel::Impairments`. A change may have each of them. `"up": false` of a change is a failure of this direction, until a change with `true`: what waits, is on
//! the way, or comes meanwhile is lost.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fairlane_channel::{Channel, ChannelConfig, Impairments, ImpairmentsChange, Jitter, LossModel, Sent, Trace};
use fairlane_device::rows;
use fairlane_device::{Device, Nanos, PortId, Scheduler};
use serde::Deserialize;
use tracing::info;

use crate::clock;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    seed: u64,
    #[serde(default)]
    begin_unix_ns: Option<u64>,
    links: Vec<LinkEntry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Direction {
    In,
    Out,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkEntry {
    port: PortId,
    direction: Direction,
    from: String,
    to: String,
    #[serde(default)]
    rate_bps: Option<u64>,
    #[serde(default)]
    delay_ns: Nanos,
    #[serde(default = "many_packets")]
    queue_packets: u32,
    #[serde(default)]
    overhead_bytes: i32,
    #[serde(default)]
    loss: f64,
    #[serde(default)]
    gemodel: Option<Gemodel>,
    #[serde(default)]
    jitter_ns: Nanos,
    #[serde(default)]
    jitter_std_ns: Nanos,
    #[serde(default)]
    reorder: f64,
    #[serde(default)]
    reorder_delay_ns: Nanos,
    #[serde(default)]
    duplicate: f64,
    #[serde(default)]
    corrupt: f64,
    #[serde(default)]
    changes: Vec<ChangeEntry>,
    #[serde(default)]
    trace: Option<TraceEntry>,
}

impl LinkEntry {
    fn impairments(&self) -> Impairments {
        let &LinkEntry { reorder, reorder_delay_ns, duplicate, corrupt, .. } = self;
        Impairments { reorder, reorder_delay_ns, duplicate, corrupt }
    }
}

/// netem's names: p and r are the chances of a frame to begin and to end a bad state; loss_bad is 1-h, loss_good 1-k.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Gemodel {
    p: f64,
    r: f64,
    loss_bad: f64,
    loss_good: f64,
}

fn loss_model(loss: f64, gemodel: Option<Gemodel>) -> Option<LossModel> {
    let bursts =
        gemodel.map(|Gemodel { p, r, loss_bad, loss_good }| LossModel::Gilbert { good_to_bad: p, bad_to_good: r, loss_good, loss_bad });
    bursts.or((loss != 0.0).then_some(LossModel::Bernoulli { p: loss }))
}

fn many_packets() -> u32 {
    ChannelConfig::default().queue_packets
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeEntry {
    at_ns: Nanos,
    rate_bps: Option<u64>,
    delay_ns: Option<Nanos>,
    loss: Option<f64>,
    gemodel: Option<Gemodel>,
    jitter_ns: Option<Nanos>,
    jitter_std_ns: Option<Nanos>,
    reorder: Option<f64>,
    reorder_delay_ns: Option<Nanos>,
    duplicate: Option<f64>,
    corrupt: Option<f64>,
    up: Option<bool>,
}

impl ChangeEntry {
    fn impairments(&self) -> ImpairmentsChange {
        let &ChangeEntry { reorder, reorder_delay_ns, duplicate, corrupt, .. } = self;
        ImpairmentsChange { reorder, reorder_delay_ns, duplicate, corrupt }
    }

    fn loses(&self) -> bool {
        self.loss.is_some() || self.gemodel.is_some()
    }
}

#[derive(Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum TraceEntry {
    Opportunities { opportunities_ns: Vec<Nanos>, bytes: u32 },
    Rates { rates_ns_bps: Vec<(Nanos, u64)> },
}

#[derive(Debug)]
enum Step {
    Change(ChangeEntry),
    Follow(Arc<Trace>),
}

type Key = (PortId, Direction);

/// The links of a switch's ports; empty without `--links`.
#[derive(Default)]
pub(crate) struct Links {
    path: Option<PathBuf>,
    channels: BTreeMap<Key, Channel>,
    names: BTreeMap<Key, String>,
    /// Those that lose or impair frames at some time.
    impaired: BTreeSet<Key>,
    /// By time.
    steps: VecDeque<(Nanos, Key, Step)>,
    /// When the run began.
    origin: Nanos,
}

impl Links {
    /// Reads the file. The ports are those of `device`.
    ///
    /// # Errors
    /// One sentence that names the file and what is wrong in it.
    pub(crate) fn open(path: &Path, device: &Device) -> Result<Links, String> {
        let mut links = Links { path: Some(path.to_path_buf()), ..Links::default() };
        links.read(device)?;
        Ok(links)
    }

    /// Reads the file again: its values hold from now on, and its changes in place of the ones that were to come. What is under way stays.
    /// Nothing changes when it is refused.
    ///
    /// # Errors
    /// As [`Links::open`].
    pub(crate) fn read(&mut self, device: &Device) -> Result<(), String> {
        let Some(path) = &self.path else { return Ok(()) };
        let fail = |what: String| format!("--links {}: {what}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| fail(error.to_string()))?;
        let file: File = serde_json::from_str(&text).map_err(|error| fail(error.to_string()))?;
        let mut steps = Vec::new();
        let origin = file.begin_unix_ns.map(|unix| unix.saturating_sub(clock::unix().wrapping_sub(clock::now())));
        for (index, entry) in file.links.iter().enumerate() {
            let place = |what: String| fail(format!("links[{index}]: {what}"));
            check(entry, device).map_err(place)?;
            let Some(origin) = origin else { continue };
            let key = (entry.port, entry.direction);
            if let Some(trace) = &entry.trace {
                let trace = match trace {
                    TraceEntry::Opportunities { opportunities_ns, bytes } => Trace::opportunities(opportunities_ns.clone(), *bytes),
                    TraceEntry::Rates { rates_ns_bps } => Trace::rates(rates_ns_bps.clone()),
                };
                steps.push((origin, key, Step::Follow(Arc::new(trace.map_err(|error| place(error.to_string()))?))));
            }
            steps.extend(entry.changes.iter().map(|change| (origin.saturating_add(change.at_ns), key, Step::Change(change.clone()))));
        }
        steps.sort_by_key(|(at, ..)| *at);
        self.steps = steps.into();
        self.origin = origin.unwrap_or(0);
        for entry in file.links {
            let key = (entry.port, entry.direction);
            let (loss, impairments) = (loss_model(entry.loss, entry.gemodel), entry.impairments());
            let later = entry.changes.iter().any(|change| change.loses() || change.impairments() != ImpairmentsChange::default());
            if loss.is_some() || !impairments.are_none() || later {
                self.impaired.insert(key);
            }
            // Its rate keeps frames apart under jitter.
            let sends = device.port_config(entry.port).filter(|_| entry.direction == Direction::Out);
            let jitter = Jitter::of(entry.jitter_ns, entry.jitter_std_ns);
            if let Some(channel) = self.channels.get_mut(&key) {
                channel.set_loss(loss);
                channel.set_jitter(jitter);
                channel.set_impairments(impairments);
                continue;
            }
            let config = ChannelConfig {
                rate_bps: entry.rate_bps.or_else(|| sends?.rate_bps),
                delay_ns: entry.delay_ns,
                queue_packets: entry.queue_packets,
                loss,
                jitter,
                impairments,
                overhead_bytes: sends.map_or(entry.overhead_bytes, |port| port.overhead_bytes),
                scheduler: Scheduler::Strict,
            };
            self.names.insert(key, format!("{}->{}", entry.from, entry.to));
            self.channels.insert(key, Channel::new(config, entry.direction == Direction::In, file.seed, &entry.from, &entry.to));
        }
        Ok(())
    }

    /// Whether a file describes the links.
    pub(crate) fn is_used(&self) -> bool {
        self.path.is_some()
    }

    /// A frame leaves a port: given back when it is on the wire at once.
    pub(crate) fn leave(&mut self, port: PortId, departure: Nanos, frame: Vec<u8>) -> Option<Vec<u8>> {
        match self.channels.get_mut(&(port, Direction::Out)) {
            Some(channel) => channel.pass(departure, frame).ok(),
            None => Some(frame),
        }
    }

    /// A frame came to a port: whether its link carries it yet. If so, [`Links::arrived`] gives it out when it is at the port.
    pub(crate) fn come(&mut self, port: PortId, arrival: Nanos, frame: &[u8]) -> bool {
        let Some(channel) = self.channels.get_mut(&(port, Direction::In)) else { return false };
        match channel.send(arrival, frame.to_vec()) {
            Sent::First(_) | Sent::Behind | Sent::Full(_) => true,
        }
    }

    /// The next frame that is at the end of its link by `now`: at a port (`in`), or to be sent from a port.
    pub(crate) fn arrived(&mut self, now: Nanos) -> Option<Arrived> {
        while let Some((at, key)) = self.channels.iter().filter_map(|(key, channel)| Some((channel.next()?, *key))).min() {
            if at > now {
                return None;
            }
            let Some(Ok(frame)) = self.channels.get_mut(&key).and_then(Channel::arrive) else { continue };
            return Some(Arrived { port: key.0, inward: key.1 == Direction::In, at, frame });
        }
        None
    }

    /// When there is something to do next.
    pub(crate) fn next(&self) -> Option<Nanos> {
        let step = self.steps.front().map(|(at, ..)| *at);
        self.channels.values().filter_map(Channel::next).chain(step).min()
    }

    /// Makes the changes that are due by `now`.
    pub(crate) fn change(&mut self, now: Nanos, device: &mut Device) {
        while self.steps.front().is_some_and(|(at, ..)| *at <= now) {
            let Some((_, key, step)) = self.steps.pop_front() else { return };
            info!("port {}: {step:?}", key.0);
            let Some(channel) = self.channels.get_mut(&key) else { continue };
            let config = device.port_config(key.0).filter(|_| key.1 == Direction::Out).cloned();
            match step {
                Step::Follow(trace) if config.is_some() => {
                    device.follow(now, key.0, trace, self.origin);
                }
                Step::Follow(trace) => channel.follow(now, trace, self.origin),
                Step::Change(change) => {
                    if change.loses() {
                        channel.set_loss(loss_model(change.loss.unwrap_or(0.0), change.gemodel));
                    }
                    channel.set_impairments(change.impairments().of(channel.config.impairments));
                    if change.jitter_ns.is_some() || change.jitter_std_ns.is_some() {
                        channel.set_jitter(Jitter::of(change.jitter_ns.unwrap_or(0), change.jitter_std_ns.unwrap_or(0)));
                    }
                    if let Some(up) = change.up {
                        let lost = channel.set_up(up);
                        // What a host's end loses is in no port's counters, as a host's own drops are not.
                        if config.is_some() {
                            device.set_link(now, key.0, up);
                            lost.iter().for_each(|frame| device.lose_frame(now, key.0, frame));
                        }
                    }
                    if let Some(mut config) = config {
                        channel.config.rate_bps = change.rate_bps.or(channel.config.rate_bps);
                        config.rate_bps = change.rate_bps.or(config.rate_bps);
                        config.delay_ns = change.delay_ns.unwrap_or(config.delay_ns);
                        // The rate was checked when the file was read.
                        let _ = device.set_port(key.0, config);
                        continue;
                    }
                    if change.rate_bps.is_some() {
                        channel.set_rate(now, change.rate_bps);
                    }
                    if let Some(delay_ns) = change.delay_ns {
                        channel.set_delay(delay_ns);
                    }
                }
            }
        }
    }

    /// Of each direction that loses or impairs frames at some time, the row of `rows::LINK_HEADER`.
    pub(crate) fn write_rows(&self, text: &mut String, now: Nanos, unix: Nanos) {
        for (key, channel) in self.channels.iter().filter(|(key, _)| self.impaired.contains(key)) {
            rows::write_link(text, now, unix, &self.names[key], channel.stats.on_the_way());
        }
    }

    /// What was lost on each link, in words.
    pub(crate) fn summary(&self) -> Vec<String> {
        let counted = self.channels.iter().map(|(key, channel)| (&self.names[key], channel.stats));
        counted
            .map(|(name, stats)| {
                let mut line = format!(
                    "link {name}: {} frames, {} lost on the way, {} found the sender's queue full",
                    stats.offered_packets, stats.dropped_loss, stats.dropped_tail
                );
                if stats.reordered + stats.duplicated + stats.corrupted > 0 {
                    line += &format!(", {} reordered, {} copies, {} corrupted", stats.reordered, stats.duplicated, stats.corrupted);
                }
                if stats.dropped_down > 0 {
                    line += &format!(", {} lost by its failure", stats.dropped_down);
                }
                line
            })
            .collect()
    }
}

/// A frame at the end of its link: at a port, or on the wire behind a port.
pub(crate) struct Arrived {
    pub(crate) port: PortId,
    pub(crate) inward: bool,
    pub(crate) at: Nanos,
    pub(crate) frame: Vec<u8>,
}

fn check(entry: &LinkEntry, device: &Device) -> Result<(), String> {
    if device.port_config(entry.port).is_none() {
        return Err(format!("no -i option makes a port {}", entry.port));
    }
    if entry.direction == Direction::Out && (entry.rate_bps.is_some() || entry.delay_ns > 0 || entry.overhead_bytes != 0) {
        return Err("the rate, delay and overhead of what a port sends are options: --port-rate, --port-delay, --port-overhead".into());
    }
    if entry.queue_packets == 0 {
        return Err("queue_packets: a queue of 0 packets holds none: give at least 1".into());
    }
    let changed = |pick: fn(&ChangeEntry) -> Option<f64>| entry.changes.iter().filter_map(pick);
    if changed(|change| change.rate_bps.map(|rate| rate as f64)).chain(entry.rate_bps.map(|rate| rate as f64)).any(|rate| rate == 0.0) {
        return Err("rate_bps: a rate of 0 bit/s never sends: give a positive rate".into());
    }
    let of_changes = entry.changes.iter().map(|change| (loss_model(change.loss.unwrap_or(0.0), change.gemodel), change.impairments()));
    let of_changes = of_changes.map(|(loss, change)| (loss, change.of(Impairments::default())));
    for (loss, impairments) in of_changes.chain([(loss_model(entry.loss, entry.gemodel), entry.impairments())]) {
        let of_loss = loss.map(|loss| loss.probabilities()).unwrap_or_default();
        if let Some((name, p)) = of_loss.into_iter().chain(impairments.probabilities()).find(|(_, p)| !(0.0..=1.0).contains(p)) {
            let name = if name == "p" && entry.gemodel.is_none() { "loss" } else { name };
            return Err(format!("{name}: {p} is not a probability from 0 to 1"));
        }
    }
    Ok(())
}
