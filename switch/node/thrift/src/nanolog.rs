//! BMv2's event log (bm_sim/event_logger.cpp): each step of a packet as a message of packed integers, little-endian.

use fairlane_device::pipeline::{EntryHandle, PacketEvent, Step};

use crate::service::handle_number;

/// `CONFIG_CHANGE`; the other kinds are numbered from 0.
const CONFIG_CHANGE: i32 = 999;
const CONTEXT: u32 = 0;

/// A step as BMv2's message, of the switch with this number; none of what only the packet log has.
pub fn message(device_id: u64, event: &PacketEvent) -> Option<Vec<u8>> {
    let number = |id: i64| id as i32;
    let (kind, first, second) = match event.step {
        Step::In(port) => (0, Some(port as i32), None),
        Step::Out(port, _) => (1, Some(port as i32), None),
        Step::ParserStart(id) => (2, Some(number(id)), None),
        Step::ParserDone(id) => (3, Some(number(id)), None),
        Step::Extract(id) => (4, Some(number(id)), None),
        Step::DeparserStart(id) => (5, Some(number(id)), None),
        Step::DeparserDone(id) => (6, Some(number(id)), None),
        Step::Emit(id) => (7, Some(number(id)), None),
        Step::ChecksumUpdate(id) => (8, Some(number(id)), None),
        Step::PipelineStart(id) => (9, Some(number(id)), None),
        Step::PipelineDone(id) => (10, Some(number(id)), None),
        Step::Condition(id, holds) => (11, Some(number(id)), Some(i32::from(holds))),
        Step::Hit(id, place, removals) => (12, Some(number(id)), Some(handle_number(EntryHandle { place, removals }))),
        Step::Miss(id) => (13, Some(number(id)), None),
        Step::Action(id) => (14, Some(number(id)), None),
        Step::ConfigChange => (CONFIG_CHANGE, None, None),
        Step::More(_) => return None,
    };
    let mut message = Vec::with_capacity(48);
    message.extend_from_slice(&i32::to_le_bytes(kind));
    message.extend_from_slice(&device_id.to_le_bytes());
    message.extend_from_slice(&CONTEXT.to_le_bytes());
    for word in [event.signature, event.packet, event.copy] {
        message.extend_from_slice(&word.to_le_bytes());
    }
    for value in [first, second].into_iter().flatten() {
        message.extend_from_slice(&value.to_le_bytes());
    }
    Some(message)
}
