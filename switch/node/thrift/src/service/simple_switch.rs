//! The service `simple_switch`: mirroring (clone) sessions, queues, clocks.

use std::num::NonZeroU64;

use fairlane_device::pipeline::{CloneSession, Replica};
use fairlane_device::{Capacity, PortConfig, PortId, QueueLimits};

use super::codes::mirroring as code;
use super::{Answer, Call, Failure};
use crate::value::{Fields, Value};

const MICROSECOND: u64 = 1000;

impl Call<'_> {
    pub(super) fn simple_switch(mut self, method: &str) -> Answer {
        match method {
            "mirroring_session_add" => {
                let config = self.args.fields(2)?;
                // BMv2 reports no failure, not even of a number out of range.
                self.add_session(config.i32(1).ok(), config.i32(2).ok())?;
                Ok(None)
            }
            "mirroring_session_delete" => {
                let session = self.args.i32(1)?;
                if !self.delete_session(session)? {
                    return Err(Failure::Refused(code::NOT_FOUND));
                }
                Ok(None)
            }
            "mirroring_session_get" => {
                let Some(session) = self.session(self.args.i32(1)?) else { return Err(Failure::Refused(code::NOT_FOUND)) };
                let mut config = Fields::default();
                if let Some(copy) = session.replicas.first() {
                    config.push(1, Value::I32(copy.port as i32));
                }
                if let Some(group) = session.multicast_group {
                    config.push(2, Value::I32(i32::from(group)));
                }
                Ok(Some(Value::Struct(config)))
            }
            "mirroring_mapping_add" => {
                let added = self.add_session(Some(self.args.i32(2)?), None)?;
                Ok(Some(Value::I32(i32::from(added))))
            }
            "mirroring_mapping_delete" => {
                let deleted = self.delete_session(self.args.i32(1)?)?;
                Ok(Some(Value::I32(i32::from(deleted))))
            }
            "mirroring_mapping_get_egress_port" => {
                let port = self.session(self.args.i32(1)?).and_then(|session| session.replicas.first().map(|copy| copy.port as i32));
                Ok(Some(Value::I32(port.unwrap_or(-1))))
            }
            "set_egress_priority_queue_depth" => {
                let (port, priority, depth) = (self.port(1)?, self.args.i32(2)?, self.args.i32(3)? as u32);
                self.limit(port, Some(priority), |limits| limits.depth_packets = Some(depth))
            }
            "set_egress_queue_depth" => {
                let (port, depth) = (self.port(1)?, self.args.i32(2)? as u32);
                self.set_depth(port, depth)
            }
            "set_all_egress_queue_depths" => {
                let depth = self.args.i32(1)? as u32;
                self.each_port(|call, port| call.set_depth(port, depth).map(drop))
            }
            "set_egress_priority_queue_rate" => {
                let (port, priority, rate) = (self.port(1)?, self.args.i32(2)?, rate(self.args.i64(3)?));
                self.limit(port, Some(priority), |limits| limits.rate_pps = rate)
            }
            "set_egress_queue_rate" => {
                let (port, rate) = (self.port(1)?, rate(self.args.i64(2)?));
                self.limit(port, None, |limits| limits.rate_pps = rate)
            }
            "set_all_egress_queue_rates" => {
                let rate = rate(self.args.i64(1)?);
                self.each_port(|call, port| call.limit(port, None, |limits| limits.rate_pps = rate).map(drop))
            }
            "get_time_elapsed_us" => {
                let elapsed = self.now.saturating_sub(self.core.identity.started);
                Ok(Some(Value::I64((elapsed / MICROSECOND) as i64)))
            }
            "get_time_since_epoch_us" => {
                let since = self.core.identity.epoch.wrapping_add(self.now);
                Ok(Some(Value::I64((since / MICROSECOND) as i64)))
            }
            _ => Err(Failure::UnknownMethod),
        }
    }

    fn session(&self, number: i32) -> Option<CloneSession> {
        let number = u32::try_from(number).ok()?;
        let sessions = self.device.switch()?.clone_sessions();
        sessions.into_iter().find(|(id, _)| *id == number).map(|(_, session)| session)
    }

    /// Adds a session, or replaces it; whether there can be one of that number.
    fn add_session(&mut self, port: Option<i32>, group: Option<i32>) -> Result<bool, Failure> {
        let number = self.args.i32(1)?;
        let replicas = port.map(|port| Replica { port: port as u32, rid: 0 }).into_iter().collect();
        let config = CloneSession { replicas, multicast_group: group.and_then(|group| u16::try_from(group).ok()), packet_length: 0 };
        let (Ok(id), known) = (u32::try_from(number), self.session(number).is_some()) else { return Ok(false) };
        let Some(switch) = self.device.switch_mut() else { return Ok(false) };
        let written = if known { switch.clone_modify(id, config) } else { switch.clone_insert(id, config) };
        Ok(written.is_ok())
    }

    fn delete_session(&mut self, number: i32) -> Result<bool, Failure> {
        let Ok(id) = u32::try_from(number) else { return Ok(false) };
        Ok(self.device.switch_mut().is_some_and(|switch| switch.clone_delete(id).is_ok()))
    }

    fn port(&self, number: i16) -> Result<PortId, Failure> {
        Ok(self.args.i32(number)? as PortId)
    }

    fn each_port(&mut self, mut work: impl FnMut(&mut Self, PortId) -> Result<(), Failure>) -> Answer {
        for port in self.device.ports().collect::<Vec<_>>() {
            work(self, port)?;
        }
        Ok(Some(Value::I32(0)))
    }

    /// The depth of all queues of a port.
    fn set_depth(&mut self, port: PortId, depth: u32) -> Answer {
        if let Some(config) = self.device.port_config(port).cloned() {
            // It was a port a moment ago, and its other settings stay.
            let _ = self.device.set_port(port, PortConfig { capacity: Capacity::Packets(depth), ..config });
        }
        self.limit(port, None, |limits| limits.depth_packets = None)
    }

    /// Changes the limits of a queue, or of all queues of a port. BMv2 answers 0, also where there is no such port or queue.
    fn limit(&mut self, port: PortId, priority: Option<i32>, change: impl Fn(&mut QueueLimits)) -> Answer {
        let priorities = self.device.port_config(port).map_or(0, |config| config.priorities);
        let chosen = (0..priorities).filter(|&at| priority.is_none_or(|priority| usize::try_from(priority) == Ok(at)));
        for priority in chosen {
            let mut limits = self.device.queue_limits(port, priority);
            change(&mut limits);
            self.device.limit_queue(port, priority, limits);
        }
        Ok(Some(Value::I32(0)))
    }
}

/// BMv2's rate in packets per second; 0 is no limit.
fn rate(pps: i64) -> Option<NonZeroU64> {
    NonZeroU64::new(pps as u64)
}
