//! What packets do on their way, for BMv2's event log; nothing is kept unless asked for ([`crate::Switch::set_observing`]).
//!
//! Numbers are those of the program's JSON. A packet keeps its number, copies of it count from 1, and the signature is the XXH64 of
//! the bytes that it was made of, all as in BMv2 (bm_sim/event_logger.cpp, bm_sim/packet.cpp).

use crate::Port;

/// A step of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    In(Port),
    Out(Port),
    ParserStart(i64),
    ParserDone(i64),
    /// A header is extracted, if the packet is long enough.
    Extract(i64),
    DeparserStart(i64),
    DeparserDone(i64),
    /// A header was emitted.
    Emit(i64),
    ChecksumUpdate(i64),
    PipelineStart(i64),
    PipelineDone(i64),
    Condition(i64, bool),
    /// Table, and the place and removals of the entry that was hit.
    Hit(i64, u32, u8),
    Miss(i64),
    Action(i64),
    /// Another program runs from here on. No packet did it: its numbers are 0.
    ConfigChange,
}

/// A step, and whose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketEvent {
    pub signature: u64,
    pub packet: u64,
    /// 0 for the packet itself.
    pub copy: u64,
    pub step: Step,
}

/// Who a packet is.
#[derive(Debug, Clone, Copy, Default)]
pub struct PacketName {
    pub signature: u64,
    pub packet: u64,
    pub copy: u64,
}

/// Packets whose copies are counted apart; more at a time share a count.
const COUNTED: usize = 1024;

/// Gives packets and their copies numbers.
#[derive(Debug)]
pub struct Names {
    next: u64,
    copies: [u64; COUNTED],
}

impl Default for Names {
    fn default() -> Names {
        Names { next: 0, copies: [0; COUNTED] }
    }
}

impl Names {
    /// The name of a packet that came in.
    pub fn fresh(&mut self, bytes: &[u8]) -> PacketName {
        self.copies[self.next as usize % COUNTED] = 0;
        let name = PacketName { signature: xxh64(bytes), packet: self.next, copy: 0 };
        self.next += 1;
        name
    }

    /// The name of a copy of a packet, made of these of its bytes.
    pub fn copy(&mut self, of: PacketName, bytes: &[u8]) -> PacketName {
        let copies = &mut self.copies[of.packet as usize % COUNTED];
        *copies += 1;
        PacketName { signature: xxh64(bytes), packet: of.packet, copy: *copies }
    }
}

/// XXH64 (xxHash 0.8, seed 0).
pub fn xxh64(bytes: &[u8]) -> u64 {
    const P1: u64 = 0x9e37_79b1_85eb_ca87;
    const P2: u64 = 0xc2b2_ae3d_27d4_eb4f;
    const P3: u64 = 0x1656_67b1_9e37_79f9;
    const P4: u64 = 0x85eb_ca77_c2b2_ae63;
    const P5: u64 = 0x27d4_eb2f_1656_67c5;
    let round = |acc: u64, lane: u64| acc.wrapping_add(lane.wrapping_mul(P2)).rotate_left(31).wrapping_mul(P1);
    let word = |chunk: &[u8]| chunk.iter().rev().fold(0_u64, |v, &b| v << 8 | u64::from(b));
    let stripes = bytes.chunks_exact(32);
    let mut rest = stripes.remainder();
    let mut h = if bytes.len() < 32 {
        P5
    } else {
        let mut acc = [P1.wrapping_add(P2), P2, 0, P1.wrapping_neg()];
        for stripe in stripes {
            for (acc, lane) in acc.iter_mut().zip(stripe.chunks_exact(8)) {
                *acc = round(*acc, word(lane));
            }
        }
        let [a, b, c, d] = acc;
        let mixed = a.rotate_left(1).wrapping_add(b.rotate_left(7)).wrapping_add(c.rotate_left(12)).wrapping_add(d.rotate_left(18));
        acc.iter().fold(mixed, |h, &acc| (h ^ round(0, acc)).wrapping_mul(P1).wrapping_add(P4))
    };
    h = h.wrapping_add(bytes.len() as u64);
    while rest.len() >= 8 {
        h = (h ^ round(0, word(&rest[..8]))).rotate_left(27).wrapping_mul(P1).wrapping_add(P4);
        rest = &rest[8..];
    }
    if rest.len() >= 4 {
        h = (h ^ word(&rest[..4]).wrapping_mul(P1)).rotate_left(23).wrapping_mul(P2).wrapping_add(P3);
        rest = &rest[4..];
    }
    for &byte in rest {
        h = (h ^ u64::from(byte).wrapping_mul(P5)).rotate_left(11).wrapping_mul(P1);
    }
    h = (h ^ h >> 33).wrapping_mul(P2);
    h = (h ^ h >> 29).wrapping_mul(P3);
    h ^ h >> 32
}

#[cfg(test)]
mod tests {
    use super::xxh64;

    /// Values of xxHash's own library.
    #[test]
    fn xxh64_of_known_inputs() {
        assert_eq!(xxh64(b""), 0xef46_db37_51d8_e999);
        assert_eq!(xxh64(b"abc"), 0x44bc_2cf5_ad77_0999);
        let counted: Vec<u8> = (0..100).collect();
        for (length, want) in XXH64 {
            assert_eq!(xxh64(&counted[..length]), want, "{length} bytes");
        }
    }

    const XXH64: [(usize, u64); 4] =
        [(12, 0x424a_f23f_1f08_dca5), (31, 0xc346_d2b5_9b4d_8ee1), (32, 0xcbf5_9c51_16ff_32b4), (100, 0x6ac1_e580_3216_6597)];
}
