//! BMv2's notifications: learning (`LEA|`), ageing (`AGE|`), ports (`PRT|`) and swaps (`SWP|`).
//!
//! Each has a header of 32 bytes in the machine's order, little-endian here. A digest's samples follow in the network's order, each
//! field in whole bytes. As in BMv2, the samples of a list are sent together once there are 16 or the first has waited for a second,
//! and a sample that was sent is not sent again until it is acknowledged.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

use fairlane_device::pipeline::{Digest, DigestId, Program, Switch, TableId};
use fairlane_device::{Event, Nanos, PortId};

use crate::service::Failure;
use crate::value::Fields;

const SAMPLES: usize = 16;
const TIMEOUT: Nanos = 1_000_000_000;
const MILLISECOND: Nanos = 1_000_000;
/// Samples of a list that wait to be acknowledged; beyond that the oldest buffer is forgotten.
const MOST_UNACKNOWLEDGED: usize = 1 << 16;
const INVALID_LIST: i32 = crate::service::INVALID_LIST;
const CONTEXT: i32 = 0;

/// What a swap notification says: a new program was loaded, a swap was asked for, it is done.
pub const SWAP_LOADED: i32 = 0;
pub const SWAP_REQUESTED: i32 = 1;
pub const SWAP_DONE: i32 = 2;

/// The samples of one learn list.
#[derive(Debug)]
struct List {
    most: usize,
    timeout: Nanos,
    /// Number of the buffer that is being filled, its samples, and when the first came.
    buffer: u64,
    filling: Vec<Vec<u8>>,
    since: Nanos,
    /// Samples that are not taken again, and the buffers that they were sent in.
    known: HashSet<Vec<u8>>,
    sent: BTreeMap<u64, Vec<Option<Vec<u8>>>>,
    order: VecDeque<u64>,
}

impl Default for List {
    fn default() -> List {
        List {
            most: SAMPLES,
            timeout: TIMEOUT,
            buffer: 0,
            filling: Vec::new(),
            since: 0,
            known: HashSet::new(),
            sent: BTreeMap::new(),
            order: VecDeque::new(),
        }
    }
}

impl List {
    fn due(&self) -> Option<Nanos> {
        (!self.filling.is_empty() && self.timeout > 0).then(|| self.since.saturating_add(self.timeout))
    }

    /// Number and samples of the buffer, which is then sent.
    fn take(&mut self) -> (u64, Vec<Vec<u8>>) {
        let (number, samples) = (self.buffer, std::mem::take(&mut self.filling));
        self.buffer += 1;
        self.sent.insert(number, samples.iter().cloned().map(Some).collect());
        self.order.push_back(number);
        while self.known.len() > MOST_UNACKNOWLEDGED {
            let Some(oldest) = self.order.pop_front() else { break };
            self.forget(oldest);
        }
        (number, samples)
    }

    fn forget(&mut self, buffer: u64) {
        for sample in self.sent.remove(&buffer).into_iter().flatten().flatten() {
            self.known.remove(&sample);
        }
    }

    fn acknowledge(&mut self, buffer: u64, samples: &[i32]) {
        let Some(sent) = self.sent.get_mut(&buffer) else { return };
        for sample in samples.iter().filter_map(|&at| sent.get_mut(usize::try_from(at).ok()?)?.take()) {
            self.known.remove(&sample);
        }
        if sent.iter().all(Option::is_none) {
            self.sent.remove(&buffer);
        }
    }
}

/// Turns events into notifications. The instant is an argument; what is returned is to be published.
#[derive(Debug)]
pub struct Notifier {
    device_id: u64,
    program: Option<Arc<Program>>,
    lists: BTreeMap<DigestId, List>,
    ageings: u64,
}

fn start(topic: &[u8; 4], device_id: u64) -> Vec<u8> {
    let mut message = topic.to_vec();
    message.extend_from_slice(&device_id.to_le_bytes());
    message
}

impl Notifier {
    /// Of a switch with this number.
    pub fn new(device_id: u64) -> Notifier {
        Notifier { device_id, program: None, lists: BTreeMap::new(), ageings: 0 }
    }

    /// Forgets all samples, as after the start.
    pub fn reset(&mut self) {
        self.lists.clear();
    }

    fn of(&mut self, switch: &Switch) {
        if !self.program.as_ref().is_some_and(|program| program.is(switch.program())) {
            self.program = Some(Arc::clone(switch.program()));
            self.lists.clear();
        }
    }

    /// What the data plane has to say.
    pub fn on_events(&mut self, events: &[Event], switch: &Switch, now: Nanos) -> Vec<Vec<u8>> {
        self.of(switch);
        let mut messages = Vec::new();
        let mut aged: BTreeMap<TableId, Vec<i32>> = BTreeMap::new();
        for event in events {
            match event {
                Event::Digest(digest) => messages.extend(self.learn(digest, now)),
                Event::IdleTimeout { table, entry, .. } => {
                    if let Ok(handle) = switch.table_handle(*table, &entry.key, entry.priority) {
                        aged.entry(*table).or_default().push(crate::service::handle_number(handle));
                    }
                }
                Event::PacketIn { .. } => {}
            }
        }
        for (table, handles) in aged {
            let id = switch.program().table(table).map_or(0, |info| info.json_id as i32);
            let mut message = start(b"AGE|", self.device_id);
            message.extend_from_slice(&CONTEXT.to_le_bytes());
            message.extend_from_slice(&self.ageings.to_le_bytes());
            message.extend_from_slice(&id.to_le_bytes());
            message.extend_from_slice(&(handles.len() as u32).to_le_bytes());
            handles.iter().for_each(|handle| message.extend_from_slice(&handle.to_le_bytes()));
            self.ageings += 1;
            messages.push(message);
        }
        messages
    }

    fn learn(&mut self, digest: &Digest, now: Nanos) -> Option<Vec<u8>> {
        let program = self.program.as_ref()?;
        let info = program.digest(digest.list)?;
        let sample: Vec<u8> = digest.members.iter().zip(&info.widths).flat_map(|(value, &width)| value.to_be_bytes(width)).collect();
        let list = self.lists.entry(digest.list).or_default();
        if !list.known.insert(sample.clone()) {
            return None;
        }
        if list.filling.is_empty() {
            list.since = now;
        }
        list.filling.push(sample);
        let full = list.filling.len() >= list.most;
        if full {
            return self.send(digest.list);
        }
        None
    }

    fn send(&mut self, id: DigestId) -> Option<Vec<u8>> {
        let number = self.program.as_ref()?.digest(id)?.json_id as i32;
        let (buffer, samples) = self.lists.get_mut(&id)?.take();
        let mut message = start(b"LEA|", self.device_id);
        message.extend_from_slice(&CONTEXT.to_le_bytes());
        message.extend_from_slice(&number.to_le_bytes());
        message.extend_from_slice(&buffer.to_le_bytes());
        message.extend_from_slice(&(samples.len() as u32).to_le_bytes());
        samples.iter().for_each(|sample| message.extend_from_slice(sample));
        Some(message)
    }

    /// Sends the samples that have waited for long enough.
    pub fn tick(&mut self, now: Nanos) -> Vec<Vec<u8>> {
        let due: Vec<DigestId> =
            self.lists.iter().filter(|(_, list)| list.due().is_some_and(|due| due <= now)).map(|(&id, _)| id).collect();
        due.into_iter().filter_map(|id| self.send(id)).collect()
    }

    /// When [`Notifier::tick`] has something to do; `None` when only an event or a call can change that.
    pub fn next_deadline(&self) -> Option<Nanos> {
        self.lists.values().filter_map(List::due).min()
    }

    /// An interface went up or down.
    pub fn port(&self, port: PortId, up: bool) -> Vec<u8> {
        let mut message = start(b"PRT|", self.device_id);
        message.extend_from_slice(&1u32.to_le_bytes());
        message.resize(32, 0);
        message.extend_from_slice(&port.to_le_bytes());
        message.extend_from_slice(&u32::from(up).to_le_bytes());
        message
    }

    /// A program is being swapped.
    pub fn swap(&self, status: i32) -> Vec<u8> {
        let mut message = start(b"SWP|", self.device_id);
        message.extend_from_slice(&CONTEXT.to_le_bytes());
        message.extend_from_slice(&status.to_le_bytes());
        message.resize(32, 0);
        message
    }

    /// `bm_learning_*`, with what is to be published then.
    ///
    /// # Errors
    /// [`Failure`], as of any method.
    pub fn call(&mut self, method: &str, args: &Fields, switch: Option<&Switch>) -> Result<Vec<Vec<u8>>, Failure> {
        let unknown = Failure::Refused(INVALID_LIST);
        let switch = switch.ok_or(unknown.clone())?;
        self.of(switch);
        let number = i64::from(args.i32(2)?);
        let at = switch.program().digests().iter().position(|info| info.json_id == number).ok_or(unknown)?;
        let id = DigestId(at as u32);
        let list = self.lists.entry(id).or_default();
        match method {
            "bm_learning_ack" => {
                let samples: Vec<i32> = args
                    .list(4)?
                    .iter()
                    .filter_map(|value| if let crate::value::Value::I32(at) = value { Some(*at) } else { None })
                    .collect();
                list.acknowledge(args.i64(3)? as u64, &samples);
            }
            "bm_learning_ack_buffer" => list.forget(args.i64(3)? as u64),
            "bm_learning_set_timeout" => list.timeout = u64::from(args.i32(3)? as u32) * MILLISECOND,
            "bm_learning_set_buffer_size" => {
                list.most = args.i32(3)? as u32 as usize;
                if !list.filling.is_empty() && list.filling.len() >= list.most {
                    return Ok(self.send(id).into_iter().collect());
                }
            }
            _ => return Err(Failure::UnknownMethod),
        }
        Ok(Vec::new())
    }
}
