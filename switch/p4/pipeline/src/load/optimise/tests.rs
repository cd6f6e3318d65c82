//! Random code does the same before and after.

use super::*;
use crate::definition::Definition;
use crate::exec::packet::Packet;
use crate::exec::run::run;
use crate::exec::state::State;
use crate::load::codegen::ones;
use crate::SwitchConfig;
use proptest::prelude::*;

/// Widths of the fields in slots 0 to 7; then constants up to slot 12, then temporaries.
const WIDTHS: [u32; 8] = [1, 1, 8, 9, 16, 32, 48, 64];
const CONSTANTS: [u64; 5] = [1, 0, 2, 0xff, 0xffff_ffff];
const SLOTS: u32 = 17;

fn layout() -> Layout {
    let fields = WIDTHS.iter().enumerate().map(|(i, &width)| FieldDef {
        name: format!("f{i}"),
        width,
        signed: false,
        saturating: false,
        rel: i as u32,
        offset: 0,
        varbit: false,
    });
    let ty = HeaderType {
        name: "m".into(),
        fields: fields.collect(),
        slots: 8,
        bits: WIDTHS.iter().sum(),
        varbit: None,
        max_bytes: 0,
        words: None,
    };
    let header = Header {
        name: "m".into(),
        id: 0,
        ty: 0,
        metadata: true,
        base: 0,
        valid: 8,
        varbit: None,
        union: None,
        length: None,
        opaque: false,
    };
    let mut init = vec![0; SLOTS as usize];
    init[8..13].copy_from_slice(&CONSTANTS);
    Layout { types: vec![ty], headers: vec![header], metadata_end: 8, packet_end: 8, init, ..Layout::default() }
}

type Draft = (u8, Slot, Slot, Slot, u64, usize);

/// An instruction that keeps every field within its width.
fn op((kind, dst, a, b, imm, _): Draft, to: u32) -> Op {
    let dst = if dst < 8 { dst } else { dst + 5 };
    let mask = imm & WIDTHS.get(dst as usize).map_or(u64::MAX, |&w| ones(w));
    let (t, u) = (Tri { dst, a, b, mask }, Un { dst, a, imm: mask });
    let whole = Un { dst: 13, a, imm: mask };
    match kind {
        0 => Op::Mov(u),
        1 => Op::Add(t),
        2 => Op::Sub(t),
        3 => Op::Mul(t),
        4 => Op::And(t),
        5 => Op::Or(t),
        6 => Op::Xor(t),
        7 => Op::Shl(t),
        8 => Op::Shr(t),
        9 => Op::BitNot(u),
        10 => Op::Eq(t),
        11 => Op::Ne(t),
        12 => Op::LtU(t),
        13 => Op::LeS(t),
        14 => Op::NonZero(u),
        15 => Op::IsZero(u),
        16 => Op::MinU(u),
        17 => Op::Div(t),
        18 => Op::Select { dst: 14, c: a, a: b, b: dst },
        19 => Op::Sext(Un { imm: 8, ..whole }),
        20 => Op::RegGet { dst, reg: 0, idx: a, mask },
        21 => Op::RegSet { reg: 0, idx: a, src: b },
        22 => Op::Random { dst, lo: a, hi: b, mask },
        23 | 24 => Op::Jump(to),
        _ => Op::JumpIfZero(a, to),
    }
}

fn draft() -> impl Strategy<Value = Draft> {
    let mask = prop::sample::select(vec![u64::MAX, u64::MAX, 1, 0xff, 0xf0, 0]);
    (0..30_u8, 0..12_u32, 0..SLOTS, 0..SLOTS, mask, 0..6_usize)
}

/// Slots 0 to 7 and the register after the code ran.
fn outcome(layout: &Layout, code: Vec<Op>, start: &[u64]) -> (Vec<u64>, Vec<u64>, u64) {
    let mut program = Definition::default();
    let mut copy = Layout { types: layout.types.clone(), headers: layout.headers.clone(), init: layout.init.clone(), ..Layout::default() };
    copy.packet_end = 8;
    program.ir.layout = copy;
    let end = code.len() as u32;
    program.ir.code = code;
    let mut state = State::new(&program, &SwitchConfig::default()).expect("memory");
    state.registers.push(crate::exec::state::Register { width: 64, limbs: 1, size: 4, cells: vec![5, 6, 7, 8] });
    let mut packet = Packet::new(&program.ir.layout);
    packet.slots[..8].copy_from_slice(start);
    run(&program.ir, &mut state, &mut packet, Code { start: 0, end });
    let fields = packet.slots[..8].to_vec();
    (fields, state.registers[0].cells.clone(), state.rng.0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    /// What comes of a packet is the same before and after, for every slot that is read later.
    #[test]
    fn optimised_code_does_the_same(
        drafts in prop::collection::vec(draft(), 1..30),
        values in prop::collection::vec(any::<u64>(), 8),
        small in any::<bool>(),
        live in prop::collection::vec(any::<bool>(), 8),
    ) {
        let layout = layout();
        let start: Vec<u64> = values.iter().zip(WIDTHS)
            .map(|(v, w)| v & ones(w) & if small { 3 } else { u64::MAX }).collect();
        let n = drafts.len();
        let ops: Vec<Op> = drafts.iter().enumerate()
            .map(|(i, d)| op(*d, (i + 1 + d.5).min(n) as u32)).collect();
        let before = outcome(&layout, ops.clone(), &start);
        let read: Vec<Slot> = (0..8).filter(|&s| live[s as usize]).collect();
        // Label i is position i - 1; label 0 the end.
        let mut unit = Unit {
            ops: ops.iter().map(|op| {
                let mut op = *op;
                if let Some(to) = target(&mut op) {
                    *to = if *to as usize == n { 0 } else { *to + 1 };
                }
                Some(op)
            }).collect(),
            labels: std::iter::once(n).chain(0..n).collect(),
            nodes: HashMap::new(),
            forward: true,
        };
        prop_assert!(unit.is_forward());
        let known: HashMap<u64, Slot> = CONSTANTS.iter().zip(8..).map(|(v, s)| (*v, s)).collect();
        let mut constants = Constants::new(&known, layout.init.len());
        let context = Context {
            layout: &layout, heavy: &[], actions: &[], tables: &[], infos: &[],
            calculations: &[], arch: &Arch::default(), code: &[],
        };
        optimise(&mut unit, &context, &mut constants, &read);
        let (code, labels, _) = unit.pack();
        let code: Vec<Op> = code.into_iter().map(|mut op| {
            if let Some(to) = target(&mut op) {
                *to = labels[*to as usize];
            }
            op
        }).collect();
        prop_assert!(code.len() <= ops.len());
        let mut grown = layout.init.clone();
        grown.extend(constants.added);
        let after = outcome(&Layout { init: grown, ..layout }, code.clone(), &start);
        for &slot in &read {
            prop_assert_eq!(before.0[slot as usize], after.0[slot as usize], "slot {} {:#?}\n{:#?}", slot, &ops, &code);
        }
        prop_assert_eq!((before.1, before.2), (after.1, after.2));
    }
}
