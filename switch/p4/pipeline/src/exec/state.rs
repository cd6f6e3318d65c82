//! What a switch remembers between packets: tables, counters, meters, registers and so on.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::control::{CloneSession, CounterData, Digest, Replica, ValueSetMember};
use crate::definition::Definition;
use crate::drop_cause::DropCause;
use crate::error::ControlError;
use crate::ir::Ir;
use crate::observe::{Detail, PacketEvent, PacketName, Step};
use crate::table::{Profile, Table};
use crate::Nanos;

use super::hash::CustomCrc;
use super::meter::Meter;
use super::packet::Packet;
use super::values::Values;

/// A register array: cells of whole limbs.
#[derive(Debug, Clone)]
pub struct Register {
    pub width: u32,
    pub limbs: usize,
    pub size: usize,
    pub cells: Vec<u64>,
}

impl Register {
    #[inline]
    pub fn get(&self, idx: u64) -> Option<u64> {
        if self.limbs == 1 {
            return self.cells.get(idx as usize).copied();
        }
        self.limbs_at(idx).map(|l| l[0])
    }

    #[inline]
    pub fn set(&mut self, idx: u64, v: u64) {
        let mask = if self.width >= 64 { u64::MAX } else { (1 << self.width) - 1 };
        if let Some(cell) = self.cells.get_mut(idx as usize) {
            *cell = v & mask;
        }
    }

    pub fn limbs_at(&self, idx: u64) -> Option<&[u64]> {
        if idx >= self.size as u64 {
            return None;
        }
        let start = idx as usize * self.limbs;
        self.cells.get(start..start + self.limbs)
    }

    pub fn limbs_at_mut(&mut self, idx: u64) -> Option<&mut [u64]> {
        if idx >= self.size as u64 {
            return None;
        }
        let start = idx as usize * self.limbs;
        self.cells.get_mut(start..start + self.limbs)
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): small, seeded, good enough for `random()`.
#[derive(Debug, Clone)]
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Uniform in `lo..=hi`, without bias (Lemire 2019).
    pub fn between(&mut self, lo: u64, hi: u64) -> u64 {
        let Some(span) = (hi - lo).checked_add(1) else {
            return self.next();
        };
        loop {
            let wide = u128::from(self.next()) * u128::from(span);
            let low = wide as u64;
            if low >= span || low >= span.wrapping_neg() % span {
                return lo + (wide >> 64) as u64;
            }
        }
    }
}

/// The cells of an array.
fn cells<T: Clone>(array: &str, count: usize, initial: T) -> Result<Vec<T>, ControlError> {
    let mut cells = Vec::new();
    cells.try_reserve_exact(count).map_err(|_| {
        ControlError::ResourceExhausted(format!(
            "there is not enough memory for '{array}', {} bytes: use smaller arrays, or raise the limit of the process's memory",
            count.saturating_mul(size_of::<T>())
        ))
    })?;
    cells.resize(count, initial);
    Ok(cells)
}

#[derive(Debug)]
pub struct State {
    pub tables: Vec<Table>,
    pub profiles: Vec<Profile>,
    pub counters: Vec<Vec<CounterData>>,
    pub meters: Vec<Vec<Meter>>,
    pub registers: Vec<Register>,
    pub value_sets: Vec<Vec<ValueSetMember>>,
    pub groups: BTreeMap<u16, Vec<Replica>>,
    pub sessions: BTreeMap<u32, CloneSession>,
    pub digests: VecDeque<Digest>,
    pub digests_lost: u64,
    pub max_digests: usize,
    pub rng: Rng,
    /// State of round robin per calculation.
    pub round_robin: Vec<u64>,
    /// By calculation, CRCs whose parameters were set.
    pub custom_crcs: BTreeMap<u32, CustomCrc>,
    /// `log_msg` lines, when kept.
    pub log: Option<Vec<String>>,
    /// Packets' steps, when kept.
    pub observed: Option<Vec<PacketEvent>>,
    /// They are kept with what the packet log says.
    pub detailed: bool,
    /// They are kept with values before and after.
    pub values: Option<Box<Values>>,
    /// The packets whose steps are kept; all of them where none are named.
    pub watched: Option<BTreeSet<u64>>,
    /// What a selector chose for the packet in hand: the place among its choices.
    pub chosen: usize,
    pub now: Nanos,
    pub max_parser_states: u32,
    pub drop_port: u64,
    /// Where the cells of each register begin, then those of each counter: for machine code. Arrays are
    /// made once and never grow.
    pub addresses: Vec<usize>,
    /// Scratch for calculations.
    pub scratch: Vec<u8>,
}

impl State {
    /// The initial state of a program.
    ///
    /// # Errors
    /// [`ControlError::ResourceExhausted`] where there is not enough memory for its arrays.
    pub fn new(program: &Definition, config: &crate::config::SwitchConfig) -> Result<State, ControlError> {
        let ir: &Ir = &program.ir;
        let mut state = State {
            tables: (0..program.tables.len()).map(|i| Table::new(program, i)).collect(),
            profiles: program.profiles.iter().map(|_| Profile::default()).collect(),
            counters: program.counters.iter().map(|c| cells(&c.name, c.size, CounterData::default())).collect::<Result<_, _>>()?,
            meters: program.meters.iter().map(|m| cells(&m.name, m.size, Meter::new(m.unit))).collect::<Result<_, _>>()?,
            registers: program
                .registers
                .iter()
                .map(|r| {
                    let limbs = r.width.div_ceil(64) as usize;
                    Ok(Register { width: r.width, limbs, size: r.size, cells: cells(&r.name, limbs * r.size, 0)? })
                })
                .collect::<Result<_, ControlError>>()?,
            value_sets: vec![Vec::new(); program.value_sets.len()],
            groups: BTreeMap::new(),
            sessions: BTreeMap::new(),
            digests: VecDeque::new(),
            digests_lost: 0,
            max_digests: config.max_digests,
            rng: Rng(config.seed),
            round_robin: vec![0; ir.calculations.len()],
            custom_crcs: BTreeMap::new(),
            log: config.log.then(Vec::new),
            observed: None,
            detailed: false,
            values: None,
            watched: None,
            chosen: 0,
            now: 0,
            max_parser_states: config.max_parser_states,
            drop_port: u64::from(config.drop_port),
            addresses: Vec::new(),
            scratch: Vec::new(),
        };
        state.note_addresses();
        Ok(state)
    }

    /// Keeps a packet's step, if steps are kept.
    #[inline]
    pub fn note(&mut self, pkt: &Packet, step: Step) {
        if self.observed.is_some() {
            self.keep(pkt, step);
        }
    }

    #[inline(never)]
    fn keep(&mut self, pkt: &Packet, step: Step) {
        let PacketName { signature, packet, copy } = pkt.name;
        if !self.watches(packet) {
            return;
        }
        let Some(observed) = &mut self.observed else { return };
        let mut push = |step| observed.push(PacketEvent { signature, packet, copy, step });
        if let Some(values) = &mut self.values {
            values.compare(pkt, self.now, |detail| push(Step::More(Box::new(detail))));
            if matches!(step, Step::Out(..)) || matches!(&step, Step::More(detail) if matches!(**detail, Detail::Gone(_))) {
                values.forget(pkt);
            }
        }
        push(step);
    }

    fn watches(&self, packet: u64) -> bool {
        self.watched.as_ref().is_none_or(|watched| watched.contains(&packet))
    }

    /// Whether a packet's steps are kept with what the packet log says.
    #[inline]
    pub fn details(&self, pkt: &Packet) -> bool {
        self.detailed && self.watches(pkt.name.packet)
    }

    /// Whether they are kept with values, too.
    #[inline]
    pub fn wants_values(&self, pkt: &Packet) -> bool {
        self.values.is_some() && self.details(pkt)
    }

    /// Keeps what the packet log says of a packet, if that is kept.
    #[inline]
    pub fn tell(&mut self, pkt: &Packet, detail: impl FnOnce() -> Detail) {
        if self.detailed && self.details(pkt) {
            self.note(pkt, Step::More(Box::new(detail())));
        }
    }

    /// Tells, where values are kept, why a packet ends.
    pub fn tell_gone(&mut self, pkt: &Packet, cause: DropCause) {
        if self.values.is_some() {
            self.tell(pkt, || Detail::Gone(cause));
        }
    }

    /// To be done anew when an array has been replaced.
    pub fn note_addresses(&mut self) {
        let registers = self.registers.iter_mut();
        let registers = registers.map(|r| r.cells.as_mut_ptr().expose_provenance());
        let counters = self.counters.iter_mut();
        let counters = counters.map(|c| c.as_mut_ptr().expose_provenance());
        self.addresses = registers.chain(counters).collect();
    }
}
