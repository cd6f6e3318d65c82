//! Multicast groups and clone sessions [P4Runtime sec 9.5].

use std::collections::HashSet;

use fairlane_pipeline::{CloneSession, Replica};

use super::{wrap, Kind, Target, Type, Window};
use crate::bytes;
use crate::proto::p4::v1 as p4;
use crate::status::{Result, Status};

use p4::packet_replication_engine_entry::Type as Engine;
use p4::replica::PortKind;

/// Ports are `bit<9>` in v1model.
const MAX_PORT: u32 = 511;
/// What PSA has beyond: recirculation, and the CPU port [PSA sec 4.1].
const PSA_PORTS: [u32; 2] = [0xffff_fffa, 0xffff_fffd];
/// Largest clone session id, as in BMv2.
const MAX_SESSION: u32 = 32767;

impl Target<'_> {
    pub(super) fn write_replication(&mut self, kind: Type, entry: &p4::PacketReplicationEngineEntry) -> Result<()> {
        match &entry.r#type {
            Some(Engine::MulticastGroupEntry(group)) => {
                let what = format!("multicast group {}", group.multicast_group_id);
                self.write_multicast(kind, group).map_err(|status| status.at(what))
            }
            Some(Engine::CloneSessionEntry(session)) => {
                let what = format!("clone session {}", session.session_id);
                self.write_clone(kind, session).map_err(|status| status.at(what))
            }
            None => Err(Status::invalid("the packet_replication_engine_entry is neither a group nor a session")),
        }
    }

    fn write_multicast(&mut self, kind: Type, group: &p4::MulticastGroupEntry) -> Result<()> {
        let id = group.multicast_group_id;
        let Some(number) = u16::try_from(id).ok().filter(|number| *number > 0) else {
            return Err(Status::invalid("the id must be 1 to 65535"));
        };
        let psa = self.switch.program().is_psa();
        match kind {
            Type::Delete => {
                self.switch.multicast_delete(number)?;
                self.notes.multicast.remove(&id);
                return Ok(());
            }
            Type::Insert => self.switch.multicast_insert(number, replicas(&group.replicas, psa)?)?,
            _ => self.switch.multicast_modify(number, replicas(&group.replicas, psa)?)?,
        }
        self.notes.multicast.insert(id, group.clone());
        Ok(())
    }

    fn write_clone(&mut self, kind: Type, session: &p4::CloneSessionEntry) -> Result<()> {
        let id = session.session_id;
        if id == 0 || id > MAX_SESSION {
            return Err(Status::invalid(format!("the id must be 1 to {MAX_SESSION}")));
        }
        if kind == Type::Delete {
            self.switch.clone_delete(id)?;
            self.notes.clones.remove(&id);
            return Ok(());
        }
        if session.class_of_service != 0 {
            return Err(Status::unimplemented("class_of_service: clones are queued by the priority that the program gives them"));
        }
        let packet_length = u32::try_from(session.packet_length_bytes)
            .map_err(|_| Status::invalid(format!("packet_length_bytes {} is negative", session.packet_length_bytes)))?;
        let psa = self.switch.program().is_psa();
        let config = CloneSession { replicas: replicas(&session.replicas, psa)?, multicast_group: None, packet_length };
        match kind {
            Type::Insert => self.switch.clone_insert(id, config)?,
            _ => self.switch.clone_modify(id, config)?,
        }
        self.notes.clones.insert(id, session.clone());
        Ok(())
    }

    pub(super) fn read_replication(
        &self,
        filter: &p4::PacketReplicationEngineEntry,
        window: &mut Window,
        out: &mut Vec<p4::Entity>,
    ) -> Result<()> {
        let before = out.len();
        let id = match &filter.r#type {
            Some(Engine::MulticastGroupEntry(filter)) => {
                self.read_multicast(filter.multicast_group_id, window, out);
                filter.multicast_group_id
            }
            Some(Engine::CloneSessionEntry(filter)) => {
                self.read_clones(filter.session_id, window, out);
                filter.session_id
            }
            // As PI: an unset type selects both kinds.
            None => {
                self.read_multicast(0, window, out);
                self.read_clones(0, window, out);
                0
            }
        };
        if id != 0 && out.len() == before {
            return Err(Status::not_found(format!("there is no multicast group or clone session {id}")));
        }
        Ok(())
    }

    fn read_multicast(&self, id: u32, window: &mut Window, out: &mut Vec<p4::Entity>) {
        let Some(first) = window.enter(MULTICAST).and_then(|done| u16::try_from(done.max(id.into())).ok()) else { return };
        for (number, copies) in self.switch.multicast_groups_from(first) {
            let number = u32::from(number);
            if id != 0 && id != number || !window.one(number) {
                break;
            }
            window.spend(copies.len());
            let group = self.notes.multicast.get(&number).filter(|note| holds(&note.replicas, copies)).cloned();
            let group = group.unwrap_or_else(|| p4::MulticastGroupEntry {
                multicast_group_id: number,
                replicas: copies.iter().map(replica_message).collect(),
                metadata: Vec::new(),
            });
            out.push(engine(Engine::MulticastGroupEntry(group)));
        }
    }

    fn read_clones(&self, id: u32, window: &mut Window, out: &mut Vec<p4::Entity>) {
        let Some(first) = window.enter(CLONES).and_then(|done| u32::try_from(done.max(id.into())).ok()) else { return };
        for (number, config) in self.switch.clone_sessions_from(first) {
            if id != 0 && id != number || !window.one(number) {
                break;
            }
            window.spend(config.replicas.len());
            let session = self.notes.clones.get(&number).filter(|note| holds(&note.replicas, &config.replicas)).cloned();
            let session = session.unwrap_or_else(|| p4::CloneSessionEntry {
                session_id: number,
                replicas: config.replicas.iter().map(replica_message).collect(),
                class_of_service: 0,
                packet_length_bytes: i32::try_from(config.packet_length).unwrap_or(i32::MAX),
            });
            out.push(engine(Engine::CloneSessionEntry(session)));
        }
    }
}

/// The objects of a read in parts.
const MULTICAST: u32 = 1;
const CLONES: u32 = 2;

fn engine(kind: Engine) -> p4::Entity {
    wrap(Kind::PacketReplicationEngineEntry(p4::PacketReplicationEngineEntry { r#type: Some(kind) }))
}

/// What a client wrote is in force: Thrift may have changed it since.
fn holds(noted: &[p4::Replica], copies: &[Replica]) -> bool {
    replicas(noted, true).is_ok_and(|noted| noted == copies)
}

fn replica_message(replica: &Replica) -> p4::Replica {
    let port = bytes::encode(&replica.port.into());
    p4::Replica { port_kind: Some(PortKind::Port(port)), instance: u32::from(replica.rid), backup_replicas: Vec::new() }
}

fn replicas(given: &[p4::Replica], psa: bool) -> Result<Vec<Replica>> {
    let mut replicas: Vec<Replica> = Vec::with_capacity(given.len());
    let mut seen = HashSet::with_capacity(given.len());
    for (index, replica) in given.iter().enumerate() {
        let at = |status: Status| status.at(format!("replica {}", index + 1));
        if !replica.backup_replicas.is_empty() {
            return Err(at(Status::unimplemented("backup_replicas: copies go to their port whatever its state")));
        }
        // Clients of P4Runtime before 1.4 write the port as a number.
        #[allow(deprecated)]
        let port = match &replica.port_kind {
            Some(PortKind::EgressPort(port)) => *port,
            Some(PortKind::Port(text)) => {
                let value = bytes::decode(text, 32).map_err(|status| at(status.at("port")))?;
                value.to_u64().and_then(|port| u32::try_from(port).ok()).unwrap_or(u32::MAX)
            }
            None => return Err(at(Status::invalid("it has no port"))),
        };
        if port > MAX_PORT && !(psa && PSA_PORTS.contains(&port)) {
            return Err(at(Status::invalid(format!("port {port}: ports are 0 to {MAX_PORT}"))));
        }
        let rid = u16::try_from(replica.instance)
            .map_err(|_| at(Status::invalid(format!("instance {}: instances are 0 to 65535", replica.instance))))?;
        let copy = Replica { port, rid };
        if !seen.insert(copy) {
            return Err(at(Status::invalid(format!("port {port} with instance {rid} is given twice"))));
        }
        replicas.push(copy);
    }
    Ok(replicas)
}
