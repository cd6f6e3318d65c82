//! What simple_switch does around the P4 controls (targets/simple_switch/simple_switch.cpp):
//! metadata set, clones, resubmission, replication, drops.

use super::*;
use crate::control::{CloneSession, Replica};
use crate::exec::native::Native;
use crate::exec::{control, deparser, heavy, parser};
use crate::observe::Detail;
use crate::Gress;

pub(super) const MICRO: Nanos = 1000;

impl Switch {
    /// Parser, checksum verification, ingress, then clone, digest, resubmit, multicast, drop or
    /// unicast. A frame from `config.cpu_port` is a packet-out like any other frame.
    pub fn ingress(&mut self, now: Nanos, port: PortId, frame: &[u8], out: &mut IngressOut) {
        self.warm();
        let mut owned = self.buffer();
        owned.extend_from_slice(frame);
        self.rt.ingress(&self.program, now, port, owned, out);
    }

    /// [`Switch::ingress`] of a frame that may be kept: its buffer goes through the switch with the
    /// packet and, where headers keep their places, leaves it as the frame that egress emits.
    pub fn ingress_owned(&mut self, now: Nanos, port: PortId, frame: Vec<u8>, out: &mut IngressOut) {
        self.warm();
        self.rt.ingress(&self.program, now, port, frame, out);
    }

    /// Has the program translated once it has proved to be worth that.
    #[inline]
    fn warm(&mut self) {
        if self.rt.cold > 0 {
            self.rt.cold -= 1;
            if self.rt.cold == 0 {
                self.translate();
            }
        }
    }

    #[cold]
    fn translate(&self) {
        let program = Arc::clone(&self.program);
        let thread = std::thread::Builder::new().name("translate".to_string());
        // Without a thread the interpreter goes on.
        let _ = thread.spawn(move || program.translate().is_ok());
    }

    /// Egress, egress clone, checksum update, deparser. A recirculated packet goes through ingress
    /// at once and shows up in `out.queued`.
    pub fn egress(&mut self, now: Nanos, item: Queued, info: QueueInfo, out: &mut EgressOut) {
        self.rt.egress(&self.program, now, item, info, out);
    }
}

impl Runtime {
    /// The program's machine code, when there is any and it is wanted.
    #[inline]
    fn native<'p>(&self, program: &'p Program) -> Option<&'p Native> {
        if self.interprets {
            return None;
        }
        program.native.get()?.as_ref().ok()
    }

    fn ingress(&mut self, program: &Program, now: Nanos, port: PortId, frame: Vec<u8>, out: &mut IngressOut) {
        for item in out.queued.drain(..) {
            self.discard(item);
        }
        self.stats.received += 1;
        let length = frame.len();
        if length > MAX_FRAME {
            self.recycle(frame);
            out.dropped = Some(DropCause::Limit);
            out.wrong_checksum = false;
            self.stats.dropped_other += 1;
            return;
        }
        let mut pkt = self.take(program);
        let ir = &program.ir;
        self.hold(&mut pkt, frame);
        pkt.reset(ir, port);
        if let Some(names) = &mut self.names {
            pkt.name = names.fresh(&pkt.buf);
            self.state.note(&pkt, Step::In(port));
        }
        let wrong_before = self.stats.wrong_checksums;
        out.dropped = match &ir.psa {
            None => {
                pkt.set_opt(&ir.arch.ingress_port, port.into());
                pkt.set_opt(&ir.arch.packet_length, length as u64);
                pkt.set_opt(&ir.arch.ingress_global_timestamp, now / MICRO);
                self.ingress_passes(program, now, pkt, &mut out.queued)
            }
            Some(psa) => self.psa_ingress(program, psa, now, pkt, &mut out.queued),
        };
        out.wrong_checksum = self.stats.wrong_checksums > wrong_before;
        self.count_drop(out.dropped);
    }

    /// Gives a packet its frame.
    pub(super) fn hold(&mut self, pkt: &mut Packet, frame: Vec<u8>) {
        let before = std::mem::replace(&mut pkt.buf, frame);
        if before.capacity() > 0 {
            self.recycle(before);
        }
    }

    /// A packet ends here; the cause again.
    pub(super) fn end(&mut self, pkt: Box<Packet>, cause: DropCause) -> Option<DropCause> {
        self.state.tell_gone(&pkt, cause);
        self.give(pkt);
        Some(cause)
    }

    fn count_drop(&mut self, cause: Option<DropCause>) {
        match cause {
            Some(DropCause::Ingress) => self.stats.dropped_ingress += 1,
            Some(DropCause::Egress) => self.stats.dropped_egress += 1,
            Some(_) => self.stats.dropped_other += 1,
            None => {}
        }
    }

    /// Ingress, again for each resubmission.
    fn ingress_passes(&mut self, program: &Program, now: Nanos, mut pkt: Box<Packet>, queued: &mut Vec<Queued>) -> Option<DropCause> {
        let ir = &program.ir;
        let arch = &ir.arch;
        loop {
            let length = pkt.length;
            self.state.now = now;
            self.state.tell(&pkt, || Detail::Processing(pkt.ingress_port));
            if let Some(native) = self.native(program) {
                native.ingress(program, &mut self.state, &mut pkt);
            } else {
                parser::parse(ir, &mut self.state, &mut pkt);
                let error = pkt.error;
                pkt.set_opt(&arch.parser_error, error);
                let wrong = pkt.checksum_error;
                pkt.set_opt(&arch.checksum_error, wrong.into());
                control::apply(program, &mut self.state, &mut pkt, Gress::Ingress);
            }
            pkt.exit = false;
            if let Some(cause) = pkt.failed {
                return self.end(pkt, cause);
            }
            if let Some((session, list)) = pkt.requests.clone.take() {
                self.state.tell(&pkt, || Detail::Cloning(Gress::Ingress));
                self.clone_ingress(program, &pkt, length, session, list, queued);
            }
            if pkt.requests.digest != 0 {
                heavy::pack(ir, &mut self.state, &pkt, pkt.requests.digest);
                pkt.requests.digest = 0;
            }
            if pkt.requests.resubmit != 0 {
                if pkt.passes >= self.config.max_passes {
                    return self.end(pkt, DropCause::Loop);
                }
                self.state.tell(&pkt, || Detail::Resubmitting);
                let mut again = self.fresh_frame(program, &pkt, length);
                copy_list(program, &mut again, &pkt, pkt.requests.resubmit);
                again.set_opt(&arch.instance_type, InstanceType::Resubmitted as u64);
                again.set_opt(&arch.packet_length, length.into());
                again.passes += 1;
                self.give(pkt);
                pkt = again;
                continue;
            }
            let group = arch.mcast_grp.as_ref().map_or(0, |f| pkt.get(f));
            if group != 0 {
                self.state.tell(&pkt, || Detail::Multicast);
                pkt.set_opt(&arch.instance_type, InstanceType::Replication as u64);
                let replicas = self.state.groups.get(&(group as u16)).filter(|_| group <= 0xffff).cloned();
                self.state.tell(&pkt, || Detail::Group(group as u16, replicas.as_ref().map(Vec::len)));
                return match replicas {
                    Some(list) if !list.is_empty() => {
                        self.replicate(program, pkt, &list, InstanceType::Replication, 0, queued);
                        None
                    }
                    _ => self.end(pkt, DropCause::MulticastEmpty),
                };
            }
            let port = arch.egress_spec.as_ref().map_or(0, |f| pkt.get(f)) as PortId;
            self.state.tell(&pkt, || Detail::EgressPort(port));
            if port == self.config.drop_port {
                self.state.tell(&pkt, || Detail::Dropping(Gress::Ingress));
                self.stats.wrong_checksums += u64::from(pkt.checksum_error);
                return self.end(pkt, DropCause::Ingress);
            }
            pkt.set_opt(&arch.instance_type, InstanceType::Normal as u64);
            return self.enqueue(program, pkt, port, InstanceType::Normal, queued);
        }
    }

    /// The same frame from its start, all fields zero.
    pub(super) fn fresh_frame(&mut self, program: &Program, pkt: &Packet, length: u32) -> Box<Packet> {
        let mut copy = self.take(program);
        copy.copy_frame(pkt);
        copy.offset = 0;
        copy.len = pkt.len.min(pkt.truncate);
        copy.length = length;
        copy.reset_fields(&program.ir);
        self.name_copy(&mut copy, 0);
        copy
    }

    /// Clones the frame as it came in; it is parsed again, since the original's headers changed.
    fn clone_ingress(&mut self, program: &Program, pkt: &Packet, length: u32, session: u32, list: u64, queued: &mut Vec<Queued>) {
        let Some(config) = self.state.sessions.get(&session).cloned() else {
            return;
        };
        let arch = &program.ir.arch;
        let mut copy = self.fresh_frame(program, pkt, length);
        copy.set_opt(&arch.ingress_port, copy.ingress_port.into());
        parser::parse(&program.ir, &mut self.state, &mut copy);
        copy.requests = Default::default();
        copy.exit = false;
        copy.reset_metadata(&program.ir.layout);
        copy_list(program, &mut copy, pkt, list);
        copy.set_opt(&arch.instance_type, InstanceType::IngressClone as u64);
        self.tell_clone(pkt, &config);
        self.mirror(program, copy, &config, InstanceType::IngressClone, queued);
    }

    /// Tells where a packet's clones go.
    fn tell_clone(&mut self, pkt: &Packet, config: &CloneSession) {
        config.multicast_group.iter().for_each(|group| self.state.tell(pkt, || Detail::CloneToGroup(*group)));
        config.replicas.iter().for_each(|r| self.state.tell(pkt, || Detail::CloneToPort(r.port)));
    }

    fn mirror(&mut self, program: &Program, pkt: Box<Packet>, config: &CloneSession, ty: InstanceType, queued: &mut Vec<Queued>) {
        let mut replicas = Vec::new();
        if let Some(group) = config.multicast_group {
            let copies = self.state.groups.get(&group);
            let count = copies.map(Vec::len);
            replicas.extend(copies.into_iter().flatten().copied());
            self.state.tell(&pkt, || Detail::Group(group, count));
            replicas.iter().for_each(|r| self.state.tell(&pkt, || Detail::Replicating(r.port)));
        }
        replicas.extend(config.replicas.iter().copied());
        self.replicate(program, pkt, &replicas, ty, config.packet_length as usize, queued);
    }

    /// One copy per replica; the last is the packet itself.
    fn replicate(
        &mut self,
        program: &Program,
        mut pkt: Box<Packet>,
        replicas: &[Replica],
        ty: InstanceType,
        limit: usize,
        queued: &mut Vec<Queued>,
    ) {
        let Some((last, others)) = replicas.split_last() else {
            self.give(pkt);
            return;
        };
        let rid = &program.ir.arch.egress_rid;
        if ty == InstanceType::Replication {
            replicas.iter().for_each(|r| self.state.tell(&pkt, || Detail::Replicating(r.port)));
        }
        for r in others {
            let mut copy = self.take(program);
            copy.copy_from(&pkt);
            let from = copy.offset;
            self.name_copy(&mut copy, from);
            copy.set_opt(rid, r.rid.into());
            if limit != 0 {
                copy.truncate = limit;
            }
            // A copy dropped for its priority is a drop of its own.
            let cause = self.enqueue(program, copy, r.port, ty, queued);
            self.count_drop(cause);
        }
        pkt.become_copy();
        if ty == InstanceType::Replication {
            let from = pkt.offset;
            self.name_copy(&mut pkt, from);
        }
        pkt.set_opt(rid, last.rid.into());
        if limit != 0 {
            pkt.truncate = limit;
        }
        let cause = self.enqueue(program, pkt, last.port, ty, queued);
        self.count_drop(cause);
    }

    fn enqueue(
        &mut self,
        program: &Program,
        packet: Box<Packet>,
        egress_port: PortId,
        instance_type: InstanceType,
        queued: &mut Vec<Queued>,
    ) -> Option<DropCause> {
        let priority = program.ir.arch.priority.as_ref().map_or(0, |f| packet.get(f));
        if priority >= u64::from(self.config.priorities) {
            self.state.tell(&packet, || Detail::NoQueue);
            return self.end(packet, DropCause::Priority);
        }
        queued.push(Queued { egress_port, priority: priority as u32, instance_type, epoch: self.epoch, packet });
        None
    }

    fn egress(&mut self, program: &Program, now: Nanos, item: Queued, info: QueueInfo, out: &mut EgressOut) {
        if let Some(frame) = out.emitted.take() {
            self.recycle(frame.bytes);
        }
        for item in out.queued.drain(..) {
            self.discard(item);
        }
        out.dropped = self.egress_pass(program, now, item, info, out);
        self.count_drop(out.dropped);
        self.stats.emitted += u64::from(out.emitted.is_some());
    }

    fn egress_pass(&mut self, program: &Program, now: Nanos, item: Queued, info: QueueInfo, out: &mut EgressOut) -> Option<DropCause> {
        if item.epoch != self.epoch {
            return Some(DropCause::Swapped);
        }
        let ir = &program.ir;
        if let Some(psa) = &ir.psa {
            return self.psa_egress(program, psa, now, item, out);
        }
        let arch = &ir.arch;
        let port = item.egress_port;
        let mut pkt = item.packet;
        pkt.set_opt(&arch.egress_global_timestamp, now / MICRO);
        if arch.queueing {
            pkt.set_opt(&arch.enq_timestamp, info.enq_timestamp / MICRO);
            pkt.set_opt(&arch.enq_qdepth, info.enq_qdepth.into());
            pkt.set_opt(&arch.deq_timedelta, info.deq_timedelta / MICRO);
            pkt.set_opt(&arch.deq_qdepth, info.deq_qdepth.into());
            pkt.set_opt(&arch.qid, item.priority.into());
        }
        pkt.set_opt(&arch.egress_port, port.into());
        // Anything but the drop port, so that only egress decides on a drop.
        pkt.set_opt(&arch.egress_spec, u64::from(self.config.drop_port) + 1);
        let length = pkt.length;
        pkt.set_opt(&arch.packet_length, length.into());
        self.state.now = now;
        let native = self.native(program);
        match native {
            Some(native) => native.egress(program, &mut self.state, &mut pkt),
            None => control::apply(program, &mut self.state, &mut pkt, Gress::Egress),
        }
        pkt.exit = false;
        if let Some(cause) = pkt.failed {
            return self.end(pkt, cause);
        }
        let clone = pkt.requests.clone.take();
        if clone.is_some() {
            self.state.tell(&pkt, || Detail::Cloning(Gress::Egress));
        }
        if let Some((session, list)) = clone
            && let Some(config) = self.state.sessions.get(&session).cloned()
        {
            let mut copy = self.take(program);
            copy.copy_from(&pkt);
            let from = copy.offset;
            self.name_copy(&mut copy, from);
            copy.reset_metadata(&ir.layout);
            copy_list(program, &mut copy, &pkt, list);
            copy.set_opt(&arch.instance_type, InstanceType::EgressClone as u64);
            self.tell_clone(&pkt, &config);
            self.mirror(program, copy, &config, InstanceType::EgressClone, &mut out.queued);
        }
        if arch.egress_spec.as_ref().map_or(0, |f| pkt.get(f)) == u64::from(self.config.drop_port) {
            self.state.tell(&pkt, || Detail::Dropping(Gress::Egress));
            return self.end(pkt, DropCause::Egress);
        }
        let bytes = match native {
            Some(native) => native.deparse(program, &mut self.state, &mut pkt, &mut self.frames),
            None => deparser::deparse(ir, &mut self.state, &mut pkt, &mut self.frames),
        };
        if pkt.requests.recirculate == 0 {
            self.state.note(&pkt, Step::Out(port, bytes.len()));
            self.give(pkt);
            out.emitted = Some(Emitted { port, bytes });
            return None;
        }
        if pkt.passes >= self.config.max_passes {
            self.recycle(bytes);
            return self.end(pkt, DropCause::Loop);
        }
        self.state.tell(&pkt, || Detail::Recirculating);
        let mut again = self.take(program);
        let length = bytes.len();
        self.hold(&mut again, bytes);
        again.reset(ir, pkt.ingress_port);
        again.name = pkt.name;
        self.name_copy(&mut again, 0);
        copy_list(program, &mut again, &pkt, pkt.requests.recirculate);
        again.set_opt(&arch.instance_type, InstanceType::Recirculated as u64);
        again.set_opt(&arch.packet_length, length as u64);
        again.passes = pkt.passes + 1;
        self.give(pkt);
        self.ingress_passes(program, now, again, &mut out.queued)
    }
}

/// Copies the fields of a field list; an unknown list is an empty one.
fn copy_list(program: &Program, to: &mut Packet, from: &Packet, list: u64) {
    if let Some(list) = program.ir.field_lists.iter().find(|l| l.id == list) {
        for f in &list.fields {
            to.copy_field(from, f);
        }
    }
}
