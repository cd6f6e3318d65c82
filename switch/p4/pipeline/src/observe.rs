//! What packets do on their way, for BMv2's event log; nothing is kept unless asked for ([`crate::Switch::set_observing`]).
//!
//! Numbers are those of the program's JSON. A packet keeps its number, copies of it count from 1, and the signature is the XXH64 of
//! the bytes that it was made of, all as in BMv2 (bm_sim/event_logger.cpp, bm_sim/packet.cpp).

use twox_hash::XxHash64;

use crate::PortId;

/// A step of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    In(PortId),
    Out(PortId),
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
        let name = PacketName { signature: XxHash64::oneshot(0, bytes), packet: self.next, copy: 0 };
        self.next += 1;
        name
    }

    /// The name of a copy of a packet, made of these of its bytes.
    pub fn copy(&mut self, of: PacketName, bytes: &[u8]) -> PacketName {
        let copies = &mut self.copies[of.packet as usize % COUNTED];
        *copies += 1;
        PacketName { signature: XxHash64::oneshot(0, bytes), packet: of.packet, copy: *copies }
    }
}
