//! Random code does the same interpreted and translated.

use super::*;
use crate::exec::meter::Meter;
use crate::exec::run::run;
use crate::info::{CounterInfo, MeterInfo, MeterUnit, RegisterInfo};
use crate::load::codegen::ones;
use crate::SwitchConfig;
use proptest::prelude::*;

/// Widths of the fields in slots 0 to 7; then a header's validity and its two fields, constants,
/// temporaries.
const WIDTHS: [u32; 8] = [1, 1, 8, 9, 16, 32, 48, 64];
const VALID: Slot = 8;
const HEADER: Slot = 9;
const CONSTANTS: [(Slot, u64); 6] = [(11, 1), (12, 0), (13, 2), (14, 63), (15, u64::MAX), (16, 64)];
const SLOTS: u32 = 20;

fn field(slot: Slot, width: u32) -> FieldDef {
    FieldDef { name: format!("f{slot}"), width, signed: false, saturating: false, rel: slot, offset: 0, varbit: false }
}

fn header_type(widths: &[u32]) -> HeaderType {
    let fields = widths.iter().enumerate();
    HeaderType {
        name: "t".into(),
        fields: fields.map(|(i, &w)| field(i as u32, w)).collect(),
        slots: widths.len() as u32,
        bits: widths.iter().sum(),
        varbit: None,
        max_bytes: 0,
        words: None,
    }
}

/// A program of registers, a counter and a meter, and this code.
fn program(code: Vec<Op>, live: &[Slot]) -> Definition {
    let mut p = Definition::default();
    let header = |ty, metadata, base, valid| Header {
        name: "h".into(),
        id: 0,
        ty,
        metadata,
        base,
        valid,
        varbit: None,
        union: None,
        length: None,
        opaque: false,
    };
    let mut init = vec![0; SLOTS as usize];
    for (slot, v) in CONSTANTS {
        init[slot as usize] = v;
    }
    p.ir.layout = Layout {
        types: vec![header_type(&WIDTHS), header_type(&[16, 16])],
        headers: vec![header(0, true, 0, 11), header(1, false, HEADER, VALID)],
        stacks: vec![Stack { name: "s".into(), id: 0, ty: 1, headers: vec![1], next: 2 }],
        metadata_end: 8,
        packet_end: 11,
        params: 17,
        init,
        ..Layout::default()
    };
    let port = |slot| Some(Field { slot, width: 9, signed: false, saturating: false, valid: 11 });
    p.ir.arch.egress_spec = port(3);
    p.ir.constants = CONSTANTS.to_vec();
    let end = code.len() as u32;
    p.ir.code = code;
    p.ir.ingress = crate::ir::Code { start: 0, end };
    p.ir.ingress_live = live.to_vec();
    let f = |slot, width| Field { width, ..port(slot).unwrap_or_else(|| unreachable!()) };
    let sum = (11, vec![(4, 0), (6, 3), (7, 0), (5, 8)]);
    let input = [f(4, 16), f(6, 48), f(7, 64), f(5, 32)];
    p.ir.calculations = vec![Calculation {
        name: String::new(),
        algo: crate::exec::hash::Algo::Csum16,
        input: input.into_iter().map(CalcInput::Field).collect(),
        payload: false,
        sum: Some(sum),
        short: None,
    }];
    p.ir.checksums = vec![Checksum {
        id: 0,
        name: "c".into(),
        target: f(4, 16),
        calc: 0,
        tests: vec![(VALID, true)],
        condition: None,
        verify: true,
        update: true,
    }];
    let (name, json_id) = (String::from("x"), 0);
    for width in [64, 32, 100] {
        p.registers.push(RegisterInfo { name: name.clone(), json_id, size: 4, width });
    }
    p.counters.push(CounterInfo { name: name.clone(), json_id, size: 3, table: None });
    let unit = MeterUnit::Packets;
    p.meters.push(MeterInfo { name, json_id, size: 2, unit, table: None });
    p
}

type Draft = (u8, Slot, Slot, Slot, u64, usize);

/// An instruction that keeps every field within its width.
fn op((kind, dst, a, b, imm, _): Draft, to: u32) -> Op {
    let dst = if dst < 8 { dst } else { dst + 9 };
    let mask = imm & WIDTHS.get(dst as usize).map_or(u64::MAX, |&w| ones(w));
    let (t, u) = (Tri { dst, a, b, mask }, Un { dst, a, imm: mask });
    let branch = Branch { a, b, to };
    let whole = |imm| Un { dst: 17 + dst % 3, a, imm };
    let bits = 1 + (imm & 63);
    match kind {
        0 | 1 => Op::Mov(u),
        2 => Op::Add(t),
        3 => Op::Sub(t),
        4 => Op::Mul(t),
        5 => Op::And(t),
        6 => Op::Or(t),
        7 => Op::Xor(t),
        8 => Op::Shl(t),
        9 => Op::Shr(t),
        10 => Op::Sar(t),
        11 => Op::BitNot(u),
        12 => Op::Eq(t),
        13 => Op::Ne(t),
        14 => Op::LtU(t),
        15 => Op::LeU(t),
        16 => Op::LtS(t),
        17 => Op::LeS(t),
        18 => Op::NonZero(Un { dst, a, imm: 0 }),
        19 => Op::IsZero(Un { dst, a, imm: 0 }),
        20 => Op::MinU(u),
        21 => Op::Div(t),
        22 => Op::Rem(t),
        23 => Op::Select { dst: 17 + dst % 3, c: a, a: b, b: dst },
        24 => Op::Sext(whole(bits)),
        25 => Op::ClampU(u),
        26 => Op::ClampS(whole(bits)),
        27 => Op::ClampUS(whole(bits)),
        28 => Op::RegGet { dst, reg: imm as u32 % 3, idx: a, mask },
        29 => Op::RegVal { dst: 17 + dst % 3, reg: imm as u32 % 3, idx: a },
        30 => Op::RegSet { reg: imm as u32 % 2, idx: a, src: b },
        31 => Op::Random { dst, lo: a, hi: b, mask },
        32 => Op::Count { counter: 0, idx: a },
        33 => Op::Meter { meter: 0, idx: a, dst, mask },
        34 => Op::SetValid(1),
        35 => Op::AddHeader(1),
        36 => Op::RemoveHeader(1),
        37 => Op::StackLast { dst: 17 + dst % 3, stack: 0, rel: a % 2 },
        38 => Op::MarkToDrop,
        39 => Op::Digest(a),
        40 => Op::Exit,
        41 => Op::Stop,
        42 => Op::Jump(to),
        43 => Op::JumpIfZero(a, to),
        44 => Op::JumpIfNonZero(a, to),
        45 => Op::UnlessEq(branch),
        46 => Op::UnlessNe(branch),
        47 => Op::UnlessLtU(branch),
        48 => Op::UnlessLeU(branch),
        49 => Op::UnlessLtS(branch),
        50 => Op::UnlessLeS(branch),
        _ => Op::Hash { dst: 17 + dst % 3, base: a, calc: 0, size: b },
    }
}

fn draft() -> impl Strategy<Value = Draft> {
    let mask = prop::sample::select(vec![u64::MAX, u64::MAX, 1, 0xff, 0xf0, 0, 7, 31]);
    (0..52_u8, 0..11_u32, 0..SLOTS, 0..SLOTS, mask, 0..6_usize)
}

/// All that can be seen after the code ran: slots, registers, counters, the packet, the state.
fn outcome(p: &Definition, start: &[u64], native: bool) -> (Vec<u64>, String) {
    let mut st = State::new(p, &SwitchConfig::default()).expect("memory");
    for (i, r) in st.registers.iter_mut().enumerate() {
        r.cells.iter_mut().enumerate().for_each(|(j, c)| *c = (i * 7 + j * 3) as u64);
    }
    st.meters[0][0] = Meter::new(MeterUnit::Packets);
    let mut pkt = Packet::new(&p.ir.layout);
    pkt.slots[..11].copy_from_slice(start);
    pkt.ingress_length = 77;
    pkt.length = 77;
    if native {
        let Some(steps) = Steps::only(p, p.ir.ingress) else {
            unreachable!("the code leads onward");
        };
        let made = compile(p, &[(&steps, &p.ir.ingress_live)]);
        let made = made.unwrap_or_else(|why| panic!("{why}"));
        made.code.call(0, p, &mut st, &mut pkt);
    } else {
        run(&p.ir, &mut st, &mut pkt, p.ir.ingress);
    }
    let live = p.ir.ingress_live.iter().map(|&s| pkt.slots[s as usize]);
    let rest = (&st.registers, &st.counters, &st.rng, pkt.exit, pkt.length, pkt.requests);
    (live.collect(), format!("{rest:?}"))
}

/// Values for all slots of the packet, within their widths.
fn values(raw: &[u64], small: bool) -> Vec<u64> {
    let widths = WIDTHS.iter().copied().chain([1, 16, 16]);
    raw.iter().zip(widths).map(|(v, w)| v & ones(w) & if small { 3 } else { u64::MAX }).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 300 } else { 5000 }))]
    #[test]
    fn translated_code_does_the_same(
        drafts in prop::collection::vec(draft(), 1..40),
        raw in prop::collection::vec(any::<u64>(), 11),
        small in any::<bool>(),
        live in prop::collection::vec(any::<bool>(), 11),
    ) {
        let n = drafts.len();
        let code: Vec<Op> = drafts.iter().enumerate()
            .map(|(i, d)| op(*d, (i + 1 + d.5).min(n) as u32)).collect();
        let live: Vec<Slot> = (0..11).filter(|&s| live[s as usize]).collect();
        let p = program(code, &live);
        let start = values(&raw, small);
        prop_assert_eq!(outcome(&p, &start, false), outcome(&p, &start, true), "{:#?}", p.ir.code);
    }
}

#[test]
fn a_loop_is_left_to_the_interpreter() {
    let p = program(vec![Op::MarkToDrop, Op::Jump(0)], &[]);
    assert!(Steps::only(&p, p.ir.ingress).is_none());
    assert!(Native::new(&p).is_err());
}
