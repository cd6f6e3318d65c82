//! What PSA does around the program's blocks ([PSA sec 6.1 to 6.10]; targets/psa_switch/psa_switch.cpp): metadata set,
//! clones, resubmission, replication, recirculation, drops.
//!
//! Between ingress and egress a packet is bytes. What a deparser hands on (`normal_meta` and so on) is kept in the fields of the
//! packet on its way; all other fields are zero when a pass begins.

use super::flow::MICRO;
use super::*;
use crate::control::{CloneSession, Replica};
use crate::exec::{control, deparser, parser, run};
use crate::ir::{Deparser, Field, Psa};
use crate::observe::Detail;
use crate::Gress;

/// The egress port of a packet to recirculate, and the ingress port of one that was.
const PORT_RECIRCULATE: PortId = 0xffff_fffa;
/// The CPU port as a program names it.
const PORT_CPU: PortId = 0xffff_fffd;

/// `PSA_PacketPath_t`.
#[derive(Debug, Clone, Copy)]
enum Path {
    Normal,
    Unicast,
    Multicast,
    CloneI2e,
    CloneE2e,
    Resubmit,
    Recirculate,
}

impl Path {
    fn instance_type(self) -> InstanceType {
        match self {
            Path::Normal | Path::Unicast => InstanceType::Normal,
            Path::Multicast => InstanceType::Replication,
            Path::CloneI2e => InstanceType::IngressClone,
            Path::CloneE2e => InstanceType::EgressClone,
            Path::Resubmit => InstanceType::Resubmitted,
            Path::Recirculate => InstanceType::Recirculated,
        }
    }
}

/// How a packet comes into a queue: with its class of service, on its path.
#[derive(Clone, Copy)]
struct Queueing {
    class: u64,
    path: Path,
}

impl Runtime {
    /// A packet that has been reset, received on `port`.
    pub(super) fn psa_ingress(
        &mut self,
        program: &Program,
        psa: &Psa,
        now: Nanos,
        mut pkt: Box<Packet>,
        queued: &mut Vec<Queued>,
    ) -> Option<DropCause> {
        let port = if self.config.cpu_port == Some(pkt.ingress_port) { PORT_CPU } else { pkt.ingress_port };
        pkt.set(&psa.ingress_parser.port, port.into());
        self.psa_passes(program, psa, now, pkt, Path::Normal, queued)
    }

    /// Ingress, again for each resubmission; the port is in the parser's metadata.
    fn psa_passes(
        &mut self,
        program: &Program,
        psa: &Psa,
        now: Nanos,
        mut pkt: Box<Packet>,
        mut path: Path,
        queued: &mut Vec<Queued>,
    ) -> Option<DropCause> {
        let ir = &program.ir;
        loop {
            let length = pkt.length;
            self.state.now = now;
            let port = pkt.get(&psa.ingress_parser.port);
            pkt.set(&psa.ingress_parser.path, path as u64);
            self.state.tell(&pkt, || Detail::Processing(port as PortId));
            parser::parse_with(ir, &psa.parser, &mut self.state, &mut pkt);
            pkt.set(&psa.ingress.port, port);
            pkt.set(&psa.ingress.path, path as u64);
            pkt.set(&psa.ingress_timestamp, now / MICRO);
            let error = pkt.error;
            pkt.set(&psa.ingress_error, error);
            for f in [&psa.class_of_service, &psa.clone, &psa.resubmit, &psa.multicast_group] {
                pkt.set(f, 0);
            }
            pkt.set(&psa.drop, 1);
            control::apply(program, &mut self.state, &mut pkt, Gress::Ingress);
            pkt.exit = false;
            if pkt.failed.is_none() {
                // It may decide what goes with clones and resubmitted packets, and send digests, of packets that are dropped, too.
                self.state.note(&pkt, Step::DeparserStart(psa.deparser.id));
                run::run(ir, &mut self.state, &mut pkt, psa.deparser.code);
            }
            if let Some(cause) = pkt.failed {
                return self.end(pkt, cause);
            }
            if pkt.get(&psa.clone) != 0 {
                let session = pkt.get(&psa.clone_session_id) as u32;
                if let Some(config) = self.state.sessions.get(&session).cloned() {
                    let mut copy = self.fresh_frame(program, &pkt, length);
                    hand_on(&psa.clone_i2e_meta, &pkt, &mut copy);
                    self.psa_mirror(program, psa, copy, &config, Path::CloneI2e, queued);
                }
            }
            if pkt.get(&psa.drop) != 0 {
                self.state.tell(&pkt, || Detail::Dropping(Gress::Ingress));
                return self.end(pkt, DropCause::Ingress);
            }
            if pkt.get(&psa.resubmit) != 0 {
                if pkt.passes >= self.config.max_passes {
                    return self.end(pkt, DropCause::Loop);
                }
                self.state.tell(&pkt, || Detail::Resubmitting);
                let mut again = self.fresh_frame(program, &pkt, length);
                hand_on(&psa.resubmit_meta, &pkt, &mut again);
                again.set(&psa.ingress_parser.port, port);
                again.passes += 1;
                self.give(pkt);
                pkt = again;
                path = Path::Resubmit;
                continue;
            }
            let (group, port) = (pkt.get(&psa.multicast_group), pkt.get(&psa.egress_port) as PortId);
            let class = pkt.get(&psa.class_of_service);
            let out = self.psa_deparse(program, &psa.deparser, &psa.normal_meta, pkt);
            self.state.tell(&out, || if group == 0 { Detail::EgressPort(port) } else { Detail::Multicast });
            if group != 0 {
                let replicas = self.state.groups.get(&(group as u16)).filter(|_| group <= 0xffff).cloned();
                return match replicas {
                    Some(list) if !list.is_empty() => {
                        self.psa_replicate(program, psa, out, &list, Queueing { class, path: Path::Multicast }, queued);
                        None
                    }
                    _ => {
                        self.give(out);
                        Some(DropCause::MulticastEmpty)
                    }
                };
            }
            self.psa_enqueue(psa, out, Replica { port, rid: 0 }, Queueing { class, path: Path::Unicast }, queued);
            return None;
        }
    }

    /// The packet as bytes: its headers emitted, and of its fields only those handed on.
    fn psa_deparse(&mut self, program: &Program, deparser: &Deparser, kept: &[Field], mut pkt: Box<Packet>) -> Box<Packet> {
        let bytes = deparser::emit(&program.ir, deparser, &mut self.state, &mut pkt, &mut self.frames);
        let mut out = self.take(program);
        self.hold(&mut out, bytes);
        out.reset(&program.ir, pkt.ingress_port);
        out.ingress_length = pkt.ingress_length;
        out.passes = pkt.passes;
        out.name = pkt.name;
        hand_on(kept, &pkt, &mut out);
        self.give(pkt);
        out
    }

    fn psa_mirror(
        &mut self,
        program: &Program,
        psa: &Psa,
        mut pkt: Box<Packet>,
        config: &CloneSession,
        path: Path,
        queued: &mut Vec<Queued>,
    ) {
        if config.packet_length != 0 {
            pkt.len = pkt.len.min(config.packet_length as usize);
        }
        let mut replicas = Vec::new();
        if let Some(group) = config.multicast_group {
            replicas.extend(self.state.groups.get(&group).into_iter().flatten().copied());
        }
        replicas.extend(config.replicas.iter().copied());
        self.psa_replicate(program, psa, pkt, &replicas, Queueing { class: 0, path }, queued);
    }

    /// One copy per replica; the last is the packet itself.
    fn psa_replicate(
        &mut self,
        program: &Program,
        psa: &Psa,
        pkt: Box<Packet>,
        replicas: &[Replica],
        queueing: Queueing,
        queued: &mut Vec<Queued>,
    ) {
        let Some((last, others)) = replicas.split_last() else {
            self.give(pkt);
            return;
        };
        for r in others {
            let mut copy = self.take(program);
            copy.copy_from(&pkt);
            self.name_copy(&mut copy, 0);
            self.psa_enqueue(psa, copy, *r, queueing, queued);
        }
        self.psa_enqueue(psa, pkt, *last, queueing, queued);
    }

    /// Higher classes of service have queues of higher priority, as far as there are any.
    fn psa_enqueue(&mut self, psa: &Psa, mut pkt: Box<Packet>, to: Replica, Queueing { class, path }: Queueing, queued: &mut Vec<Queued>) {
        pkt.set(&psa.egress_parser.path, path as u64);
        pkt.set(&psa.egress_class_of_service, class);
        pkt.set(&psa.instance, to.rid.into());
        let egress_port = match (to.port, self.config.cpu_port) {
            (PORT_CPU, Some(cpu)) => cpu,
            (port, _) => port,
        };
        let priority = class.min(u64::from(self.config.priorities.saturating_sub(1))) as u32;
        queued.push(Queued { egress_port, priority, instance_type: path.instance_type(), epoch: self.epoch, packet: pkt });
    }

    /// A packet from its queue.
    pub(super) fn psa_egress(&mut self, program: &Program, psa: &Psa, now: Nanos, item: Queued, out: &mut EgressOut) -> Option<DropCause> {
        let ir = &program.ir;
        let emitted = item.egress_port;
        let port = if self.config.cpu_port == Some(emitted) { PORT_CPU } else { emitted };
        let mut pkt = item.packet;
        self.state.now = now;
        let path = pkt.get(&psa.egress_parser.path);
        pkt.set(&psa.egress_parser.port, port.into());
        parser::parse_with(ir, &ir.parser, &mut self.state, &mut pkt);
        pkt.set(&psa.egress.port, port.into());
        pkt.set(&psa.egress.path, path);
        pkt.set(&psa.egress_timestamp, now / MICRO);
        let error = pkt.error;
        pkt.set(&psa.egress_error, error);
        pkt.set(&psa.egress_clone, 0);
        pkt.set(&psa.egress_drop, 0);
        control::apply(program, &mut self.state, &mut pkt, Gress::Egress);
        pkt.exit = false;
        pkt.set(&psa.deparser_port, port.into());
        if pkt.failed.is_none() {
            self.state.note(&pkt, Step::DeparserStart(ir.deparser.id));
            run::run(ir, &mut self.state, &mut pkt, ir.deparser.code);
        }
        if let Some(cause) = pkt.failed {
            return self.end(pkt, cause);
        }
        let session = (pkt.get(&psa.egress_clone) != 0).then(|| pkt.get(&psa.egress_clone_session_id) as u32);
        let dropped = pkt.get(&psa.egress_drop) != 0;
        let config = session.and_then(|s| self.state.sessions.get(&s).cloned());
        if dropped {
            self.state.tell(&pkt, || Detail::Dropping(Gress::Egress));
        }
        if dropped && config.is_none() {
            return self.end(pkt, DropCause::Egress);
        }
        let kept: Vec<Field> = psa.clone_e2e_meta.iter().chain(&psa.recirculate_meta).copied().collect();
        let mut pkt = self.psa_deparse(program, &ir.deparser, &kept, pkt);
        if let Some(config) = config {
            let mut copy = self.take(program);
            copy.copy_from(&pkt);
            self.name_copy(&mut copy, 0);
            psa.recirculate_meta.iter().for_each(|f| clear(f, &mut copy));
            self.psa_mirror(program, psa, copy, &config, Path::CloneE2e, &mut out.queued);
        }
        if dropped {
            return self.end(pkt, DropCause::Egress);
        }
        if port != PORT_RECIRCULATE {
            let bytes = std::mem::take(&mut pkt.buf);
            self.state.note(&pkt, Step::Out(emitted, bytes.len()));
            self.give(pkt);
            out.emitted = Some(Emitted { port: emitted, bytes });
            return None;
        }
        if pkt.passes >= self.config.max_passes {
            return self.end(pkt, DropCause::Loop);
        }
        self.state.tell(&pkt, || Detail::Recirculating);
        psa.clone_e2e_meta.iter().for_each(|f| clear(f, &mut pkt));
        pkt.passes += 1;
        pkt.ingress_length = pkt.len as u32;
        pkt.set(&psa.ingress_parser.port, PORT_RECIRCULATE.into());
        self.psa_passes(program, psa, now, pkt, Path::Recirculate, &mut out.queued)
    }
}

fn hand_on(fields: &[Field], from: &Packet, to: &mut Packet) {
    for f in fields {
        to.copy_field(from, f);
    }
}

fn clear(f: &Field, pkt: &mut Packet) {
    let start = f.slot as usize;
    pkt.slots[start..start + f.limbs()].fill(0);
}
