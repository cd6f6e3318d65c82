//! Match-action tables: entries, lookup, default actions.

mod actions;
mod coded;
mod entry;
mod index;
mod key;
mod list;
mod lpm;
mod plan;
mod profile;
mod range;
mod rows;
mod shards;
mod trie;

use crate::control::{ActionCall, CounterData, KeyMatch, TableAction, TableEntry};
use crate::definition::Definition;
use crate::exec::meter::Meter;
use crate::info::{MatchKind, MeterUnit, TableInfo};
use crate::ir::{Code, KeyPart, TableIr, TableKind};
use crate::Nanos;

use actions::{Actions, Word};
pub use entry::{arguments, flatten, pack, prefix_mask, Limits};
use index::TupleSpace;
pub use key::Packed;
use key::{array, Key, Keyed};
use lpm::{Lpm, PrefixField};
pub use profile::{Group, Member, Profile};
use rows::RangeField;

/// An action ready to run: its index in the program, its place among the table's actions, and its
/// parameters as limbs.
#[derive(Debug, Clone)]
pub struct Bound {
    pub action: u32,
    /// Place in `TableInfo::actions`, which chooses the next node.
    pub place: u32,
    pub params: Box<[u64]>,
}

/// What an entry leads to.
#[derive(Debug, Clone)]
pub enum Target {
    Run(Bound),
    Member(u32),
    Group(u32),
    /// Actions repeated by weight.
    OneShot(Vec<Bound>),
}

/// Actions with more limbs of parameters are looked up.
const INLINE: usize = 4;

/// What is run for an action; its parameters are kept apart, since few actions have many of them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Call {
    pub code: Code,
    /// Where the pipeline goes on.
    pub next: u32,
    /// Bits of each parameter, where an entry's word holds them all.
    widths: [u8; INLINE],
    /// Limbs of parameters.
    pub count: u32,
    /// The action must be looked up: a member, a group, or many parameters.
    pub slow: bool,
}

impl Call {
    /// For an entry of table `t`, or for its default when `hit` is false; with its parameters.
    fn new<'a>(program: &Definition, t: usize, target: Option<&'a Target>, hit: bool) -> (Call, &'a [u64]) {
        let ir = &program.ir.tables[t];
        let chosen = |place| program.ir.next_code(ir, place, hit);
        match target {
            None => {
                let next = chosen(None);
                let call = Call { next, ..Call::default() };
                (call, &[])
            }
            Some(Target::Run(b)) if b.params.len() <= INLINE => {
                let call = Call {
                    code: program.ir.actions[b.action as usize].code,
                    next: chosen(Some(b.place)),
                    widths: actions::widths(&program.actions[b.action as usize]),
                    count: b.params.len() as u32,
                    slow: false,
                };
                (call, &b.params)
            }
            Some(_) => {
                let call = Call { slow: true, ..Call::default() };
                (call, &[])
            }
        }
    }
}

/// What is kept of an entry to read it back.
#[derive(Debug)]
pub struct Entry {
    /// The match as written, see [`coded`].
    key: Box<[u8]>,
    /// When it was inserted or modified.
    written: Nanos,
    /// Order of insertion.
    pub sequence: u64,
    pub priority: i32,
    pub is_const: bool,
}

impl Entry {
    /// The match as written.
    pub fn key(&self) -> Vec<KeyMatch> {
        coded::key_of(&self.key)
    }
}

/// What a hit changes, and what hits are compared with.
#[derive(Debug, Clone, Copy, Default)]
pub struct Watch {
    pub last_hit: Nanos,
    pub counter: CounterData,
    pub idle_timeout: Nanos,
    /// When the idle timeout was last reported.
    pub reported: Nanos,
}

/// The lookup structure for keys of `N` limbs.
#[derive(Debug)]
enum Space<const N: usize> {
    /// All fields are exact.
    Exact(Keyed<N, u32>),
    Tuples(TupleSpace<N>),
    Lpm(Lpm<N>),
}

impl<const N: usize> Space<N> {
    fn new(info: &TableInfo, ir: &TableIr) -> Space<N> {
        if ir.kind == TableKind::Exact {
            return Space::Exact(Keyed::default());
        }
        if let Some(lpm) = lpm(info, ir) {
            return Space::Lpm(lpm);
        }
        let ranges = ir.key.iter().zip(&info.key);
        let ranges: Vec<_> = ranges
            .filter(|(_, key)| key.kind == MatchKind::Range)
            .map(|(part, key)| RangeField { limb: part.limb as usize, shift: part.shift, width: key.width })
            .collect();
        Space::Tuples(TupleSpace::new(&ranges, room(info.max_size)))
    }

    #[inline]
    fn lookup(&self, key: &[u64; N]) -> Option<u32> {
        match self {
            Space::Exact(map) => map.get(&Key(*key)).copied(),
            Space::Tuples(tuples) => tuples.lookup(key),
            Space::Lpm(lpm) => lpm.lookup(key),
        }
    }

    fn find(&self, packed: &Packed) -> Option<u32> {
        match self {
            Space::Exact(map) => map.get(&Key(array(&packed.value))).copied(),
            Space::Tuples(tuples) => tuples.find(packed),
            Space::Lpm(lpm) => lpm.find(packed),
        }
    }

    fn insert(&mut self, packed: &Packed, entry: u32) {
        match self {
            Space::Exact(map) => {
                map.insert(Key(array(&packed.value)), entry);
            }
            Space::Tuples(tuples) => tuples.insert(packed, entry),
            Space::Lpm(lpm) => lpm.insert(packed, entry),
        }
    }

    fn remove(&mut self, packed: &Packed, entry: u32) {
        match self {
            Space::Exact(map) => {
                map.remove(&Key(array(&packed.value)));
            }
            Space::Tuples(tuples) => tuples.remove(entry),
            Space::Lpm(lpm) => lpm.remove(packed, entry),
        }
    }

    fn clear(&mut self) {
        match self {
            Space::Exact(map) => *map = Keyed::default(),
            Space::Tuples(tuples) => tuples.clear(),
            Space::Lpm(lpm) => lpm.clear(),
        }
    }
}

/// An empty trie for the lookups of a table, where it is an LPM table.
fn lpm<const N: usize>(info: &TableInfo, ir: &TableIr) -> Option<Lpm<N>> {
    let mut field = None;
    let mut exact = [0; N];
    for (part, key) in ir.key.iter().zip(&info.key) {
        let (limb, width) = (part.limb as usize, part.field.width);
        if key.kind == MatchKind::Lpm {
            let one = PrefixField { limb, shift: part.shift, width };
            if field.replace(one).is_some() {
                return None;
            }
            continue;
        }
        let bits = |n: u32| u64::MAX >> (64 - n.clamp(1, 64));
        exact[limb] |= bits(width) << part.shift;
        for i in 1..part.field.limbs() {
            exact[limb + i] = bits(width - 64 * i as u32);
        }
    }
    let field = field.filter(|f| ir.kind == TableKind::Lpm && (1..=lpm::WIDEST).contains(&f.width))?;
    Some(Lpm::new(field, (ir.key.len() > 1).then_some(exact)))
}

/// The lookup structure by number of limbs in the key.
#[derive(Debug)]
enum Index {
    L1(Space<1>),
    L2(Space<2>),
    L4(Space<4>),
    L8(Space<8>),
    L16(Space<16>),
    L32(Space<32>),
}

macro_rules! each {
    ($index:expr, $t:ident => $body:expr) => {
        match $index {
            Index::L1($t) => $body,
            Index::L2($t) => $body,
            Index::L4($t) => $body,
            Index::L8($t) => $body,
            Index::L16($t) => $body,
            Index::L32($t) => $body,
        }
    };
}

impl Index {
    fn new(info: &TableInfo, ir: &TableIr) -> Index {
        match ir.key_limbs {
            0..=1 => Index::L1(Space::new(info, ir)),
            2 => Index::L2(Space::new(info, ir)),
            3..=4 => Index::L4(Space::new(info, ir)),
            5..=8 => Index::L8(Space::new(info, ir)),
            9..=16 => Index::L16(Space::new(info, ir)),
            _ => Index::L32(Space::new(info, ir)),
        }
    }
}

/// Exact keys of at most so many bits are looked up in an array.
const DIRECT_BITS: u32 = 12;

/// No entry, in such an array and elsewhere.
const NO_ENTRY: u32 = u32::MAX;

/// The state of one table.
#[derive(Debug)]
pub struct Table {
    index: Index,
    /// The entry of each key, where keys are exact and short.
    direct: Option<Box<[u32]>>,
    pub entries: Vec<Option<Entry>>,
    /// Beside `entries`, a row of `actions`.
    action: Vec<u32>,
    /// Beside `entries`, what `actions` needs to run it.
    ready: Vec<Word>,
    actions: Actions,
    /// Beside `entries` where hits are noted: for a timeout, a direct counter or a direct meter.
    watches: Option<Vec<Watch>>,
    /// Beside `entries` where there is a direct meter.
    meters: Option<Vec<Meter>>,
    /// What is run without entry, and its parameters.
    default_call: (Call, Box<[u64]>),
    /// Free places in `entries`; the lowest is taken first, as BMv2 allocates handles.
    free: std::collections::BTreeSet<u32>,
    /// How often the entry of each place was removed, modulo 256: part of BMv2's handles.
    removals: Vec<u8>,
    pub len: usize,
    sequence: u64,
    pub default: Option<(Target, TableAction)>,
    pub timeouts: bool,
    unit: MeterUnit,
}

impl Table {
    /// The table in its initial state: the program's entries and default action.
    pub fn new(program: &Definition, at: usize) -> Table {
        let info = &program.tables[at];
        let ir = &program.ir.tables[at];
        let room = room(info.max_size);
        let unit = match info.direct_meter {
            Some(m) => program.meters[m.index()].unit,
            None => MeterUnit::Packets,
        };
        let mut table = Table {
            index: Index::new(info, ir),
            direct: direct(ir),
            entries: roomy(room),
            action: roomy(room),
            ready: roomy(room),
            actions: Actions::new(program, &info.actions, room),
            watches: (info.support_timeout || info.direct_counter.is_some() || info.direct_meter.is_some()).then(|| roomy(room)),
            meters: info.direct_meter.is_some().then(|| roomy(room)),
            default_call: Default::default(),
            free: std::collections::BTreeSet::new(),
            removals: Vec::new(),
            len: 0,
            sequence: 0,
            default: None,
            timeouts: info.support_timeout,
            unit,
        };
        let default = ir.default.as_ref().and_then(|call| {
            let bound = flatten(program, info, call).ok()?;
            Some((Target::Run(bound), TableAction::Call(call.clone())))
        });
        table.set_default(program, at, default);
        for e in &ir.entries {
            let TableAction::Call(call) = &e.action else {
                continue;
            };
            let (Ok(packed), Ok(bound)) = (pack(info, ir, &e.key, e.priority), flatten(program, info, call)) else {
                continue;
            };
            if table.find(&packed).is_none() {
                let place = table.add(program, at, 0, &packed, e, Target::Run(bound));
                if let Some(Some(entry)) = table.entries.get_mut(place as usize) {
                    entry.is_const = true;
                }
            }
        }
        table
    }

    pub fn set_default(&mut self, program: &Definition, at: usize, default: Option<(Target, TableAction)>) {
        let target = default.as_ref().map(|d| &d.0);
        let (call, params) = Call::new(program, at, target, false);
        self.default_call = (call, params.into());
        self.default = default;
    }

    /// The entry that matches the packet.
    #[inline]
    pub fn lookup(&self, ir: &TableIr, slots: &[u64]) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        match &self.index {
            Index::L1(t) => {
                let mut key = 0;
                for part in &ir.key {
                    key |= narrow(part, slots);
                }
                self.lookup_in(t, key)
            }
            Index::L2(t) => t.lookup(&build(&ir.key, slots)),
            Index::L4(t) => t.lookup(&build(&ir.key, slots)),
            Index::L8(t) => t.lookup(&build(&ir.key, slots)),
            Index::L16(t) => t.lookup(&build(&ir.key, slots)),
            Index::L32(t) => t.lookup(&build(&ir.key, slots)),
        }
    }

    /// The entry that a key of one limb hits, its fields where [`KeyPart`] puts them.
    #[cfg(not(target_family = "wasm"))] // machine code alone
    #[inline]
    pub fn lookup_narrow(&self, key: u64) -> Option<u32> {
        match &self.index {
            Index::L1(t) if self.len > 0 => self.lookup_in(t, key),
            _ => None,
        }
    }

    #[inline]
    fn lookup_in(&self, t: &Space<1>, key: u64) -> Option<u32> {
        if let Some(direct) = &self.direct {
            let at = direct.get(key as usize).copied();
            return at.filter(|&at| at != NO_ENTRY);
        }
        t.lookup(&[key])
    }

    pub fn find(&self, packed: &Packed) -> Option<u32> {
        each!(&self.index, t => t.find(packed))
    }

    /// What a packet runs that hit an entry, or none; its parameters are written into `slots`.
    #[inline]
    pub fn call(&self, hit: Option<u32>, slots: &mut [u64]) -> Call {
        if let Some(at) = hit {
            return self.actions.call(self.ready[at as usize], slots);
        }
        let (call, params) = &self.default_call;
        copy(params, slots);
        *call
    }

    /// What it runs where [`Call::slow`] says so.
    pub fn slow(&self, hit: Option<u32>) -> Option<&Target> {
        match hit {
            Some(at) => self.actions.slow(self.action[at as usize]),
            None => self.default.as_ref().map(|d| &d.0),
        }
    }

    /// Notes a hit by a packet of so many bytes; the direct meter, where there is one.
    #[inline]
    pub fn note(&mut self, at: u32, now: Nanos, bytes: u32) -> Option<&mut Meter> {
        let watch = self.watches.as_mut()?.get_mut(at as usize)?;
        watch.last_hit = now;
        watch.counter.packets = watch.counter.packets.wrapping_add(1);
        watch.counter.bytes = watch.counter.bytes.wrapping_add(u64::from(bytes));
        self.meters.as_mut()?.get_mut(at as usize)
    }

    pub fn watch(&self, at: u32) -> Option<&Watch> {
        self.watches.as_ref()?.get(at as usize)
    }

    pub fn watch_mut(&mut self, at: u32) -> Option<&mut Watch> {
        self.watches.as_mut()?.get_mut(at as usize)
    }

    pub fn meter(&self, at: u32) -> Option<&Meter> {
        self.meters.as_ref()?.get(at as usize)
    }

    pub fn meter_mut(&mut self, at: u32) -> Option<&mut Meter> {
        self.meters.as_mut()?.get_mut(at as usize)
    }

    /// When an entry was hit last, or written if that is later or all that is known.
    pub fn last_hit(&self, at: u32) -> Nanos {
        let written = self.entries.get(at as usize).and_then(|e| e.as_ref());
        self.watch(at).map_or(written.map_or(0, |e| e.written), |w| w.last_hit)
    }

    /// The action of an entry, as written.
    pub fn action(&self, at: u32) -> TableAction {
        self.actions.get(self.action[at as usize])
    }

    /// An entry as written.
    pub fn written(&self, at: u32) -> Option<TableEntry> {
        let e = self.entries.get(at as usize)?.as_ref()?;
        Some(TableEntry {
            key: e.key(),
            priority: e.priority,
            action: self.action(at),
            idle_timeout: self.watch(at).map_or(0, |w| w.idle_timeout),
        })
    }

    /// Adds an entry to this table, number `t`, whose match is not there yet; its place in
    /// `entries`. `target` is its action, ready to run.
    pub fn add(&mut self, program: &Definition, t: usize, now: Nanos, packed: &Packed, new: &TableEntry, target: Target) -> u32 {
        let at = match self.free.pop_first() {
            Some(at) => at,
            None => {
                self.entries.push(None);
                self.action.push(0);
                self.ready.push(Word::default());
                if let Some(watches) = &mut self.watches {
                    watches.push(Watch::default());
                }
                if let Some(meters) = &mut self.meters {
                    meters.push(Meter::new(self.unit));
                }
                (self.entries.len() - 1) as u32
            }
        };
        each!(&mut self.index, t => t.insert(packed, at));
        self.point(packed, at);
        self.take(program, t, at, new, target);
        if let Some(watch) = self.watch_mut(at) {
            *watch = Watch { last_hit: now, idle_timeout: new.idle_timeout, ..Watch::default() };
        }
        let unit = self.unit;
        if let Some(meter) = self.meter_mut(at) {
            *meter = Meter::new(unit);
        }
        self.entries[at as usize] =
            Some(Entry { key: coded::key(&new.key), written: now, priority: new.priority, is_const: false, sequence: self.sequence });
        self.sequence += 1;
        self.len += 1;
        at
    }

    /// Gives an entry its action.
    fn take(&mut self, program: &Definition, t: usize, at: u32, new: &TableEntry, target: Target) {
        let (row, word) = self.actions.take(program, t, &new.action, target);
        self.action[at as usize] = row;
        self.ready[at as usize] = word;
    }

    /// Replaces action and idle timeout of an entry; the action it had.
    pub fn modify(&mut self, program: &Definition, t: usize, now: Nanos, at: u32, new: &TableEntry, target: Target) -> TableAction {
        let before = self.action(at);
        self.actions.give(self.action[at as usize]);
        self.take(program, t, at, new, target);
        if let Some(Some(entry)) = self.entries.get_mut(at as usize) {
            entry.written = entry.written.max(now);
        }
        if let Some(watch) = self.watch_mut(at) {
            watch.idle_timeout = new.idle_timeout;
            watch.last_hit = watch.last_hit.max(now);
        }
        before
    }

    /// How often the entry of a place was removed, modulo 256.
    pub fn removals(&self, at: u32) -> u8 {
        self.removals.get(at as usize).copied().unwrap_or(0)
    }

    /// Removes an entry with this match; the action it had.
    pub fn remove(&mut self, packed: &Packed, at: u32) -> Option<TableAction> {
        self.entries.get_mut(at as usize)?.take()?;
        each!(&mut self.index, t => t.remove(packed, at));
        self.point(packed, NO_ENTRY);
        self.free.insert(at);
        if self.removals.len() <= at as usize {
            self.removals.resize(at as usize + 1, 0);
        }
        self.removals[at as usize] = self.removals[at as usize].wrapping_add(1);
        self.len -= 1;
        let action = self.action(at);
        self.actions.give(self.action[at as usize]);
        Some(action)
    }

    /// What the array of short keys says of a match.
    fn point(&mut self, packed: &Packed, at: u32) {
        let direct = self.direct.as_deref_mut();
        if let Some(place) = direct.and_then(|d| d.get_mut(packed.value[0] as usize)) {
            *place = at;
        }
    }

    /// Removes all entries; their actions, each with the number of its entries.
    pub fn clear(&mut self) -> Vec<(TableAction, u32)> {
        each!(&mut self.index, t => t.clear());
        if let Some(direct) = &mut self.direct {
            direct.fill(NO_ENTRY);
        }
        self.free.clear();
        self.removals.clear();
        self.len = 0;
        self.entries = Vec::new();
        self.action = Vec::new();
        self.ready = Vec::new();
        if let Some(watches) = &mut self.watches {
            *watches = Vec::new();
        }
        if let Some(meters) = &mut self.meters {
            *meters = Vec::new();
        }
        self.actions.clear()
    }
}

/// Tables of this size and more get room for their entries at the start: an array that grows is copied whole, while packets wait.
const LARGE: usize = 1 << 15;
/// Room for so many at most.
const MOST_ROOM: usize = 1 << 20;

/// How many entries a table of so many gets room for at the start. It costs addresses only: the system gives memory where it is used.
fn room(max_size: usize) -> usize {
    match cfg!(target_family = "wasm") || max_size < LARGE {
        true => 0,
        false => max_size.min(MOST_ROOM),
    }
}

/// An array with that much room, where the system has it.
fn roomy<T>(room: usize) -> Vec<T> {
    let mut array = Vec::new();
    // Without it the array grows as any other.
    let _ = array.try_reserve_exact(room);
    array
}

/// The parameters of an action into the packet's slots for them.
#[inline]
fn copy(params: &[u64], slots: &mut [u64]) {
    for (slot, v) in slots.iter_mut().zip(params) {
        *slot = *v;
    }
}

/// An empty array for the keys of a table, where they are exact and short.
fn direct(ir: &TableIr) -> Option<Box<[u32]>> {
    let bits: u32 = ir.key.iter().map(|part| part.field.width).sum();
    let short = ir.kind == TableKind::Exact && (1..=DIRECT_BITS).contains(&bits);
    short.then(|| vec![NO_ENTRY; 1 << bits].into_boxed_slice())
}

/// A field of at most 64 bits, shifted to its place in the packed key. A field of an invalid
/// header counts as zero, as in BMv2.
#[inline]
fn narrow(part: &KeyPart, slots: &[u64]) -> u64 {
    let mut v = slots[part.field.slot as usize] * slots[part.field.valid as usize];
    if let Some(mask) = &part.mask {
        v &= mask[0];
    }
    v << part.shift
}

#[inline]
fn build<const N: usize>(parts: &[KeyPart], slots: &[u64]) -> [u64; N] {
    let mut key = [0; N];
    for part in parts {
        let limb = part.limb as usize;
        if part.field.width <= 64 {
            key[limb] |= narrow(part, slots);
            continue;
        }
        let valid = slots[part.field.valid as usize];
        for i in 0..part.field.limbs() {
            let mask = part.mask.as_ref().map_or(u64::MAX, |m| m[i]);
            key[limb + i] = (slots[part.field.slot as usize + i] * valid) & mask;
        }
    }
    key
}

/// The call as written, with the action the table knows by that name.
pub fn resolve(program: &Definition, actions: &[crate::ActionId], call: &ActionCall) -> Option<u32> {
    if let Some(place) = actions.iter().position(|a| *a == call.action) {
        return Some(place as u32);
    }
    // p4c gives some actions (NoAction) several ids under one name.
    let name = &program.actions.get(call.action.index())?.name;
    actions.iter().position(|a| program.actions[a.index()].name == *name).map(|p| p as u32)
}
