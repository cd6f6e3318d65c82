//! The control interface to multicast groups and clone sessions.

use super::*;
use crate::control::{CloneSession, Replica};

/// Clone sessions are 0 to this (simple_switch keeps the id in 15 bits).
const MAX_SESSION: u32 = 0x7fff;
/// Most copies of one group or session.
const MAX_REPLICAS: usize = 65536;

fn check_replicas(what: &str, replicas: &[Replica]) -> Control<()> {
    if replicas.len() > MAX_REPLICAS {
        return Err(ControlError::ResourceExhausted(format!("{what} makes more than {MAX_REPLICAS} copies")));
    }
    let mut seen = std::collections::HashSet::new();
    for r in replicas {
        if !seen.insert(r) {
            return Err(ControlError::InvalidArgument(format!("{what} has port {} with instance {} twice", r.port, r.rid)));
        }
    }
    Ok(())
}

impl Switch {
    /// Adds a multicast group (1 to 65535) with all its copies.
    pub fn multicast_insert(&mut self, group: u16, replicas: Vec<Replica>) -> Control<()> {
        if group == 0 {
            return Err(ControlError::InvalidArgument("multicast group 0 means no multicast".to_string()));
        }
        check_replicas(&format!("multicast group {group}"), &replicas)?;
        if self.rt.state.groups.contains_key(&group) {
            return Err(ControlError::AlreadyExists(format!("there is already a multicast group {group}")));
        }
        self.rt.state.groups.insert(group, replicas);
        Ok(())
    }

    /// Replaces the copies of a multicast group at once.
    pub fn multicast_modify(&mut self, group: u16, replicas: Vec<Replica>) -> Control<()> {
        check_replicas(&format!("multicast group {group}"), &replicas)?;
        match self.rt.state.groups.get_mut(&group) {
            Some(g) => {
                *g = replicas;
                Ok(())
            }
            None => Err(ControlError::NotFound(format!("there is no multicast group {group}"))),
        }
    }

    /// Sets the copies of a multicast group, new or not, as they are: BMv2 makes a copy twice that two nodes of a group ask for.
    pub fn multicast_set(&mut self, group: u16, replicas: Vec<Replica>) -> Control<()> {
        if group == 0 || replicas.len() > MAX_REPLICAS {
            return Err(ControlError::InvalidArgument(format!("multicast group {group} with {} copies cannot be", replicas.len())));
        }
        self.rt.state.groups.insert(group, replicas);
        Ok(())
    }

    /// Removes a multicast group.
    pub fn multicast_delete(&mut self, group: u16) -> Control<()> {
        match self.rt.state.groups.remove(&group) {
            Some(_) => Ok(()),
            None => Err(ControlError::NotFound(format!("there is no multicast group {group}"))),
        }
    }

    /// All multicast groups, by id.
    pub fn multicast_groups(&self) -> Vec<(u16, Vec<Replica>)> {
        self.multicast_groups_from(0).map(|(id, replicas)| (id, replicas.to_vec())).collect()
    }

    /// Multicast groups with this id or a higher one, by id.
    pub fn multicast_groups_from(&self, first: u16) -> impl Iterator<Item = (u16, &[Replica])> + '_ {
        self.rt.state.groups.range(first..).map(|(id, replicas)| (*id, replicas.as_slice()))
    }

    /// Adds a clone session (0 to 32767).
    pub fn clone_insert(&mut self, session: u32, config: CloneSession) -> Control<()> {
        if session > MAX_SESSION {
            return Err(ControlError::InvalidArgument(format!("clone session {session} does not exist, the last is {MAX_SESSION}")));
        }
        check_replicas(&format!("clone session {session}"), &config.replicas)?;
        if self.rt.state.sessions.contains_key(&session) {
            return Err(ControlError::AlreadyExists(format!("there is already a clone session {session}")));
        }
        self.rt.state.sessions.insert(session, config);
        Ok(())
    }

    /// Replaces a clone session.
    pub fn clone_modify(&mut self, session: u32, config: CloneSession) -> Control<()> {
        check_replicas(&format!("clone session {session}"), &config.replicas)?;
        match self.rt.state.sessions.get_mut(&session) {
            Some(s) => {
                *s = config;
                Ok(())
            }
            None => Err(ControlError::NotFound(format!("there is no clone session {session}"))),
        }
    }

    /// Removes a clone session.
    pub fn clone_delete(&mut self, session: u32) -> Control<()> {
        match self.rt.state.sessions.remove(&session) {
            Some(_) => Ok(()),
            None => Err(ControlError::NotFound(format!("there is no clone session {session}"))),
        }
    }

    /// All clone sessions, by id.
    pub fn clone_sessions(&self) -> Vec<(u32, CloneSession)> {
        self.clone_sessions_from(0).map(|(id, session)| (id, session.clone())).collect()
    }

    /// Clone sessions with this id or a higher one, by id.
    pub fn clone_sessions_from(&self, first: u32) -> impl Iterator<Item = (u32, &CloneSession)> + '_ {
        self.rt.state.sessions.range(first..).map(|(id, session)| (*id, session))
    }
}
