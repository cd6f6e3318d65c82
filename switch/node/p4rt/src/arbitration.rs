//! Which client is primary [P4Runtime sec 5].
//!
//! For each role the primary is the live client whose election id is the highest that the switch has ever received for the role.
//! The state machine sees one message at a time, on the thread of the device: no write is ever in flight while it runs.

use std::collections::BTreeMap;

use prost_types::Any;

use crate::proto::google::rpc;
use crate::proto::p4::v1 as p4;
use crate::status::{Code, Result, Status};

/// A client: one open stream. Chosen by whoever owns the streams, never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub u64);

/// A message for one client's stream.
pub type Notification = (ClientId, p4::StreamMessageResponse);

/// A role as the specification names it now, with the numeric id of P4Runtime 1.2 and before kept for clients that use it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct RoleKey {
    name: String,
    id: u64,
}

impl RoleKey {
    /// The role of a request; empty name and id 0 are the default role.
    pub fn new(name: &str, id: u64) -> RoleKey {
        // A client that fills in both means the name.
        RoleKey { name: name.to_string(), id: if name.is_empty() { id } else { 0 } }
    }

    fn describe(&self) -> String {
        match (self.name.is_empty(), self.id) {
            (false, _) => format!("role \"{}\"", self.name),
            (true, 0) => "the default role".to_string(),
            (true, id) => format!("role id {id}"),
        }
    }
}

#[derive(Debug)]
struct Client {
    role: RoleKey,
    /// `None` when the client left it unset: it can never be primary.
    election_id: Option<u128>,
}

#[derive(Debug, Default)]
struct Role {
    /// As the primary gave it last.
    config: Option<Any>,
    /// The highest election id of any primary so far, live or not.
    highest: Option<u128>,
    primary: Option<ClientId>,
}

/// Clients allowed to be connected to one role.
pub const MAX_CLIENTS_PER_ROLE: usize = 128;

/// The arbitration state of one device.
#[derive(Debug)]
pub struct Arbitration {
    device_id: u64,
    clients: BTreeMap<ClientId, Client>,
    roles: BTreeMap<RoleKey, Role>,
}

fn election_id(id: &p4::Uint128) -> u128 {
    u128::from(id.high) << 64 | u128::from(id.low)
}

fn message(id: u128) -> p4::Uint128 {
    p4::Uint128 { high: (id >> 64) as u64, low: id as u64 }
}

impl Arbitration {
    /// No client has ever connected.
    pub fn new(device_id: u64) -> Arbitration {
        Arbitration { device_id, clients: BTreeMap::new(), roles: BTreeMap::new() }
    }

    /// The device this is about.
    pub fn device_id(&self) -> u64 {
        self.device_id
    }

    /// A `MasterArbitrationUpdate` came in on a client's stream.
    ///
    /// # Errors
    /// The status with which the stream must be closed; call [`Arbitration::disconnect`] then.
    pub fn update(&mut self, client: ClientId, update: &p4::MasterArbitrationUpdate) -> Result<Vec<Notification>> {
        let known = self.clients.get(&client).map(|known| known.role.clone());
        if update.device_id != self.device_id {
            let text = format!("device_id {}: this switch has device id {}", update.device_id, self.device_id);
            return Err(if known.is_some() { Status::precondition(text) } else { Status::not_found(text) });
        }
        let (key, config) = match &update.role {
            Some(role) => (RoleKey::new(&role.name, deprecated_id(role)), role.config.clone()),
            None => (RoleKey::default(), None),
        };
        if known.as_ref().is_some_and(|role| *role != key) {
            return Err(Status::precondition(format!(
                "this stream belongs to {}: open another stream for {}",
                known.unwrap_or_default().describe(),
                key.describe()
            )));
        }
        let wanted = update.election_id.as_ref().map(election_id);
        let mut others = self.clients.iter().filter(|(id, other)| **id != client && other.role == key);
        if wanted.is_some() && others.clone().any(|(_, other)| other.election_id == wanted) {
            return Err(Status::invalid(format!(
                "election id {} is in use by another client of {}: choose another",
                wanted.unwrap_or_default(),
                key.describe()
            )));
        }
        if known.is_none() && others.by_ref().count() >= MAX_CLIENTS_PER_ROLE {
            return Err(Status::exhausted(format!("{} has {MAX_CLIENTS_PER_ROLE} clients already", key.describe())));
        }

        let role = self.roles.entry(key.clone()).or_default();
        let was_primary = role.primary == Some(client);
        // Zero is what proto3 clients send that never chose an id: like unset, it never wins.
        let eligible = wanted.filter(|id| *id != 0);
        let wins = eligible.is_some_and(|id| role.highest.is_none_or(|highest| id >= highest));
        self.clients.insert(client, Client { role: key.clone(), election_id: wanted });
        if wins {
            role.primary = Some(client);
            role.highest = eligible;
            role.config = config;
            // The new primary learns it last, when every other client knows (rule 3.2 of the section on updates).
            let mut notifications = self.notify(&key, |id| id != client);
            notifications.extend(self.notify(&key, |id| id == client));
            return Ok(notifications);
        }
        if was_primary {
            role.primary = None;
            return Ok(self.notify(&key, |_| true));
        }
        Ok(self.notify(&key, |id| id == client))
    }

    /// A client's stream is gone. The others of its role are told when it was primary.
    pub fn disconnect(&mut self, client: ClientId) -> Vec<Notification> {
        let Some(gone) = self.clients.remove(&client) else { return Vec::new() };
        match self.roles.get_mut(&gone.role) {
            Some(role) if role.primary == Some(client) => {
                role.primary = None;
                self.notify(&gone.role, |_| true)
            }
            _ => Vec::new(),
        }
    }

    /// Checks that a request which changes state comes from the primary of its role.
    ///
    /// # Errors
    /// NOT_FOUND for another device or an unknown role, PERMISSION_DENIED for anyone but the primary.
    pub fn check_primary(&self, device_id: u64, role: &RoleKey, id: Option<&p4::Uint128>) -> Result<()> {
        self.check_device(device_id)?;
        let Some(state) = self.roles.get(role) else {
            if *role == RoleKey::default() {
                return Err(Status::denied("not primary: no client has opened a stream with an election id yet"));
            }
            return Err(Status::not_found(format!("{}: no client has claimed it", role.describe())));
        };
        let id = id.map(election_id).unwrap_or_default();
        if state.primary.is_none() {
            return Err(Status::denied(format!(
                "not primary: {} has no primary now (election id {id}, highest seen {})",
                role.describe(),
                state.highest.unwrap_or_default()
            )));
        }
        if state.highest != Some(id) {
            return Err(Status::denied(format!(
                "not primary: election id {id}; the primary of {} has {}",
                role.describe(),
                state.highest.unwrap_or_default()
            )));
        }
        Ok(())
    }

    /// Checks the device id of a request.
    ///
    /// # Errors
    /// NOT_FOUND for another device.
    pub fn check_device(&self, device_id: u64) -> Result<()> {
        if device_id == self.device_id {
            return Ok(());
        }
        Err(Status::not_found(format!("device_id {device_id}: this switch has device id {}", self.device_id)))
    }

    /// True when the client is primary of its role.
    pub fn is_primary(&self, client: ClientId) -> bool {
        self.clients.get(&client).and_then(|known| self.roles.get(&known.role)).is_some_and(|role| role.primary == Some(client))
    }

    /// True once the client's first arbitration message was accepted.
    pub fn is_known(&self, client: ClientId) -> bool {
        self.clients.contains_key(&client)
    }

    /// The primaries of all roles, which receive packets, digests and idle timeouts.
    pub fn primaries(&self) -> impl Iterator<Item = ClientId> + '_ {
        self.roles.values().filter_map(|role| role.primary)
    }

    /// The advisory message for each client of a role that `to` selects, in order of their ids.
    fn notify(&self, key: &RoleKey, to: impl Fn(ClientId) -> bool) -> Vec<Notification> {
        let Some(role) = self.roles.get(key) else { return Vec::new() };
        let about = |client: ClientId| {
            let (code, text) = match role.primary {
                Some(primary) if primary == client => (Code::Ok, "Is primary"),
                Some(_) => (Code::AlreadyExists, "Is backup"),
                None => (Code::NotFound, "Is backup; there is no primary"),
            };
            let role_message = (*key != RoleKey::default() || role.config.is_some()).then(|| {
                #[allow(deprecated)]
                p4::Role { id: key.id, name: key.name.clone(), config: role.config.clone() }
            });
            p4::StreamMessageResponse {
                update: Some(p4::stream_message_response::Update::Arbitration(p4::MasterArbitrationUpdate {
                    device_id: self.device_id,
                    role: role_message,
                    election_id: role.highest.map(message),
                    status: Some(rpc::Status { code: code as i32, message: text.to_string(), details: Vec::new() }),
                })),
            }
        };
        self.clients.iter().filter(|(id, client)| client.role == *key && to(**id)).map(|(id, _)| (*id, about(*id))).collect()
    }
}

#[allow(deprecated)]
fn deprecated_id(role: &p4::Role) -> u64 {
    role.id
}

#[cfg(test)]
#[path = "arbitration_tests.rs"]
mod tests;
