//! Match-action tables: entries, lookup, default actions.

mod entry;
mod index;
mod lpm;
mod profile;
mod range;
mod trie;

use crate::control::{ActionCall, CounterData, KeyMatch, TableAction};
use crate::exec::meter::Meter;
use crate::info::{MatchKind, MeterUnit, TableInfo};
use crate::ir::{Code, KeyPart, TableIr, TableKind};
use crate::program::Program;
use crate::Nanos;

pub use entry::{arguments, flatten, pack, prefix_mask, Limits};
pub use index::Packed;
use index::TupleSpace;
use lpm::{Lpm, PrefixField};
pub use profile::{Group, Member, Profile};

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

/// Parameters kept beside the code.
const INLINE: usize = 4;

/// What a packet that hits an entry needs, in one cache line.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hot {
    pub code: Code,
    /// Where the pipeline goes on.
    pub next: u32,
    pub params: [u64; INLINE],
    pub count: u32,
    /// The action must be looked up: a member, a group, or many parameters.
    pub slow: bool,
}

impl Hot {
    /// For an entry of table `t`, or for its default when `hit` is false.
    pub fn new(program: &Program, t: usize, target: Option<&Target>, hit: bool) -> Hot {
        let ir = &program.ir.tables[t];
        let chosen = |place| program.ir.next_code(ir, place, hit);
        match target {
            None => Hot {
                next: chosen(None),
                ..Hot::default()
            },
            Some(Target::Run(b)) if b.params.len() <= INLINE => {
                let mut params = [0; INLINE];
                params[..b.params.len()].copy_from_slice(&b.params);
                Hot {
                    code: program.ir.actions[b.action as usize].code,
                    next: chosen(Some(b.place)),
                    params,
                    count: b.params.len() as u32,
                    slow: false,
                }
            }
            Some(_) => Hot {
                slow: true,
                ..Hot::default()
            },
        }
    }
}

#[derive(Debug, Clone)]
pub struct Entry {
    pub target: Target,
    pub last_hit: Nanos,
    pub counter: CounterData,
    pub meter: Meter,
    pub packed: Packed,
    pub key: Vec<KeyMatch>,
    pub priority: i32,
    pub action: TableAction,
    pub idle_timeout: Nanos,
    /// When the idle timeout was last reported.
    pub reported: Nanos,
    pub is_const: bool,
    /// Order of insertion.
    pub sequence: u64,
}

/// The lookup structure for keys of `N` limbs.
#[derive(Debug)]
struct Space<const N: usize> {
    all: TupleSpace<N>,
    /// Beside it in an LPM table, for lookups.
    lpm: Option<Lpm<N>>,
}

impl<const N: usize> Space<N> {
    fn new(info: &TableInfo, ir: &TableIr) -> Space<N> {
        Space {
            all: TupleSpace::default(),
            lpm: lpm(info, ir),
        }
    }

    #[inline]
    fn lookup(&self, key: &[u64; N]) -> Option<u32> {
        match &self.lpm {
            None => self.all.lookup(key),
            Some(lpm) => lpm.lookup(key),
        }
    }

    fn find(&self, packed: &Packed) -> Option<u32> {
        self.all.find(packed)
    }

    fn insert(&mut self, packed: &Packed, entry: u32) {
        self.all.insert(packed, entry);
        if let Some(lpm) = &mut self.lpm {
            lpm.insert(packed, entry);
        }
    }

    fn remove(&mut self, packed: &Packed, entry: u32) {
        self.all.remove(packed);
        if let Some(lpm) = &mut self.lpm {
            lpm.remove(packed, entry, &self.all);
        }
    }

    fn clear(&mut self) {
        self.all.clear();
        if let Some(lpm) = &mut self.lpm {
            lpm.clear();
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
            let one = PrefixField {
                limb,
                shift: part.shift,
                width,
            };
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
    let field =
        field.filter(|f| ir.kind == TableKind::Lpm && (1..=lpm::WIDEST).contains(&f.width))?;
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
    /// Beside `entries`.
    pub hot: Vec<Hot>,
    pub default_hot: Hot,
    /// Free places in `entries`; the lowest is taken first, as BMv2 allocates handles.
    free: std::collections::BTreeSet<u32>,
    pub len: usize,
    sequence: u64,
    pub default: Option<(Target, TableAction)>,
    pub timeouts: bool,
    /// Hits are noted in the entry: for a timeout, a direct counter or a direct meter.
    pub watched: bool,
    unit: MeterUnit,
}

impl Table {
    /// The table in its initial state: the program's entries and default action.
    pub fn new(program: &Program, at: usize) -> Table {
        let info = &program.tables[at];
        let ir = &program.ir.tables[at];
        let unit = match info.direct_meter {
            Some(m) => program.meters[m.index()].unit,
            None => MeterUnit::Packets,
        };
        let mut table = Table {
            index: Index::new(info, ir),
            direct: direct(ir),
            entries: Vec::new(),
            hot: Vec::new(),
            default_hot: Hot::default(),
            free: std::collections::BTreeSet::new(),
            len: 0,
            sequence: 0,
            default: None,
            timeouts: info.support_timeout,
            watched: info.support_timeout
                || info.direct_counter.is_some()
                || info.direct_meter.is_some(),
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
            let (Ok(packed), Ok(bound)) = (
                pack(info, ir, &e.key, e.priority),
                flatten(program, info, call),
            ) else {
                continue;
            };
            if table.find(&packed).is_none() {
                let target = Target::Run(bound);
                let hot = Hot::new(program, at, Some(&target), true);
                let at = table.add(
                    0,
                    packed,
                    e.key.clone(),
                    e.priority,
                    target,
                    e.action.clone(),
                    0,
                    hot,
                );
                if let Some(Some(entry)) = table.entries.get_mut(at as usize) {
                    entry.is_const = true;
                }
            }
        }
        table
    }

    pub fn set_default(
        &mut self,
        program: &Program,
        at: usize,
        default: Option<(Target, TableAction)>,
    ) {
        self.default_hot = Hot::new(program, at, default.as_ref().map(|d| &d.0), false);
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
                if let Some(direct) = &self.direct {
                    let at = direct.get(key as usize).copied();
                    return at.filter(|&at| at != NO_ENTRY);
                }
                t.lookup(&[key])
            }
            Index::L2(t) => t.lookup(&build(&ir.key, slots)),
            Index::L4(t) => t.lookup(&build(&ir.key, slots)),
            Index::L8(t) => t.lookup(&build(&ir.key, slots)),
            Index::L16(t) => t.lookup(&build(&ir.key, slots)),
            Index::L32(t) => t.lookup(&build(&ir.key, slots)),
        }
    }

    pub fn find(&self, packed: &Packed) -> Option<u32> {
        each!(&self.index, t => t.find(packed))
    }

    /// Adds an entry whose match is not there yet; its place in `entries`.
    #[allow(clippy::too_many_arguments)]
    pub fn add(
        &mut self,
        now: Nanos,
        packed: Packed,
        key: Vec<KeyMatch>,
        priority: i32,
        target: Target,
        action: TableAction,
        idle_timeout: Nanos,
        hot: Hot,
    ) -> u32 {
        let at = match self.free.pop_first() {
            Some(at) => at,
            None => {
                self.entries.push(None);
                self.hot.push(Hot::default());
                (self.entries.len() - 1) as u32
            }
        };
        each!(&mut self.index, t => t.insert(&packed, at));
        self.point(&packed, at);
        self.hot[at as usize] = hot;
        self.entries[at as usize] = Some(Entry {
            target,
            last_hit: now,
            counter: CounterData::default(),
            meter: Meter::new(self.unit),
            packed,
            key,
            priority,
            action,
            idle_timeout,
            reported: 0,
            is_const: false,
            sequence: self.sequence,
        });
        self.sequence += 1;
        self.len += 1;
        at
    }

    pub fn remove(&mut self, at: u32) -> Option<Entry> {
        let entry = self.entries.get_mut(at as usize)?.take()?;
        each!(&mut self.index, t => t.remove(&entry.packed, at));
        self.point(&entry.packed, NO_ENTRY);
        self.free.insert(at);
        self.len -= 1;
        Some(entry)
    }

    /// What the array of short keys says of a match.
    fn point(&mut self, packed: &Packed, at: u32) {
        let direct = self.direct.as_deref_mut();
        if let Some(place) = direct.and_then(|d| d.get_mut(packed.value[0] as usize)) {
            *place = at;
        }
    }

    /// Removes all entries.
    pub fn clear(&mut self) -> Vec<Entry> {
        each!(&mut self.index, t => t.clear());
        if let Some(direct) = &mut self.direct {
            direct.fill(NO_ENTRY);
        }
        self.free.clear();
        self.len = 0;
        self.hot.clear();
        std::mem::take(&mut self.entries)
            .into_iter()
            .flatten()
            .collect()
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
pub fn resolve(program: &Program, actions: &[crate::ActionId], call: &ActionCall) -> Option<u32> {
    if let Some(place) = actions.iter().position(|a| *a == call.action) {
        return Some(place as u32);
    }
    // p4c gives some actions (NoAction) several ids under one name.
    let name = &program.actions.get(call.action.index())?.name;
    actions
        .iter()
        .position(|a| program.actions[a.index()].name == *name)
        .map(|p| p as u32)
}
