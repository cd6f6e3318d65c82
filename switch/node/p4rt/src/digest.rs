//! Digests: configuration, buffering, acknowledgement [P4Runtime sec 9.8].
//!
//! For each digest that a client enabled there is a buffer of messages not sent yet, all distinct, and a cache of messages sent and
//! not acknowledged, for at most `ack_timeout_ns`. A message in either is not sent again.

use std::collections::{BTreeMap, HashSet, VecDeque};

use fairlane_pipeline::{DigestId, Nanos, Value};

use crate::model::{Digest, Model};
use crate::proto::p4::v1 as p4;
use crate::status::{Result, Status};

use p4::entity::Entity as Kind;
use p4::update::Type;

/// Messages in one list when `max_list_size` is 0, and in a buffer whatever the configuration says.
const MAX_LIST: usize = 1024;

type Message = Vec<Value>;

#[derive(Debug)]
struct Sent {
    list_id: u64,
    expires: Nanos,
    messages: Vec<Message>,
}

#[derive(Debug)]
struct Learner {
    config: p4::digest_entry::Config,
    timeout: Nanos,
    list_size: usize,
    ack_timeout: Nanos,
    buffer: Vec<Message>,
    /// When the first message entered the empty buffer.
    since: Nanos,
    sent: VecDeque<Sent>,
    /// What is in the buffer or in a list not acknowledged.
    known: HashSet<Message>,
}

/// The digests of one pipeline configuration.
#[derive(Debug)]
pub struct Digests {
    learners: BTreeMap<u32, Learner>,
    next_list: u64,
    /// Messages of one digest that are kept, sent or not: a client that never acknowledges costs no more.
    backlog: usize,
}

impl Learner {
    fn new(config: p4::digest_entry::Config, backlog: usize, number: &dyn Fn(&str, i64) -> Result<u64>) -> Result<Learner> {
        let longest = MAX_LIST.min(backlog);
        let timeout = number("max_timeout_ns", config.max_timeout_ns)?;
        let ack_timeout = number("ack_timeout_ns", config.ack_timeout_ns)?;
        let list_size = number("max_list_size", i64::from(config.max_list_size))? as usize;
        Ok(Learner {
            config,
            timeout,
            ack_timeout,
            list_size: if list_size == 0 { longest } else { list_size.min(longest) },
            buffer: Vec::new(),
            since: 0,
            sent: VecDeque::new(),
            known: HashSet::new(),
        })
    }

    fn forget(&mut self, sent: Sent) {
        for message in sent.messages {
            self.known.remove(&message);
        }
    }

    /// Lists whose time for acknowledgement has passed no longer hold back their messages.
    fn expire(&mut self, now: Nanos) {
        while self.sent.front().is_some_and(|sent| sent.expires <= now) {
            if let Some(sent) = self.sent.pop_front() {
                self.forget(sent);
            }
        }
    }

    /// When there is something to do.
    fn deadline(&self) -> Option<Nanos> {
        let flush = (!self.buffer.is_empty()).then(|| self.since.saturating_add(self.timeout));
        [flush, self.sent.front().map(|sent| sent.expires)].into_iter().flatten().min()
    }
}

impl Digests {
    /// No digest enabled. `backlog`: messages of one digest that may wait to be sent or acknowledged, at least 1.
    pub fn new(backlog: usize) -> Digests {
        Digests { learners: BTreeMap::new(), next_list: 0, backlog: backlog.max(1) }
    }

    /// Enables, changes or disables a digest.
    ///
    /// # Errors
    /// The canonical code of the update.
    pub fn write(&mut self, model: &Model, kind: Type, entry: &p4::DigestEntry, now: Nanos) -> Result<()> {
        let digest = known(model, entry.digest_id)?;
        let at = |status: Status| status.at(format!("digest \"{}\"", digest.name));
        let number = |what: &str, value: i64| u64::try_from(value).map_err(|_| Status::invalid(format!("{what} {value} is negative")));
        let enabled = self.learners.contains_key(&entry.digest_id);
        match kind {
            Type::Insert if enabled => Err(at(Status::exists("it is enabled already"))),
            Type::Modify | Type::Delete if !enabled => Err(at(Status::not_found("it is not enabled"))),
            Type::Delete => {
                self.learners.remove(&entry.digest_id);
                Ok(())
            }
            _ => {
                let learner = Learner::new(entry.config.unwrap_or_default(), self.backlog, &number).map_err(at)?;
                match self.learners.get_mut(&entry.digest_id) {
                    Some(old) => {
                        // The buffer and the lists under way stay; their lists keep the timeouts they were sent with.
                        old.expire(now);
                        old.config = learner.config;
                        old.timeout = learner.timeout;
                        old.ack_timeout = learner.ack_timeout;
                        old.list_size = learner.list_size;
                    }
                    None => {
                        self.learners.insert(entry.digest_id, learner);
                    }
                }
                Ok(())
            }
        }
    }

    /// Appends the configurations that a read selects.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for an unknown id, NOT_FOUND for a digest that is not enabled.
    pub fn read(&self, model: &Model, filter: &p4::DigestEntry, out: &mut Vec<p4::Entity>) -> Result<()> {
        if filter.digest_id != 0 {
            let digest = known(model, filter.digest_id)?;
            if !self.learners.contains_key(&filter.digest_id) {
                return Err(Status::not_found(format!("digest \"{}\" is not enabled", digest.name)));
            }
        }
        for (id, learner) in &self.learners {
            if filter.digest_id == 0 || filter.digest_id == *id {
                let entry = p4::DigestEntry { digest_id: *id, config: Some(learner.config) };
                out.push(p4::Entity { entity: Some(Kind::DigestEntry(entry)) });
            }
        }
        Ok(())
    }

    /// The data plane sent a message. Returns lists that are full.
    pub fn learn(&mut self, model: &Model, list: DigestId, members: Message, now: Nanos, epoch: Nanos) -> Option<p4::DigestList> {
        let digest = model.digest_of(list)?;
        let learner = self.learners.get_mut(&digest.id)?;
        learner.expire(now);
        if !learner.known.insert(members.clone()) {
            return None;
        }
        if learner.buffer.is_empty() {
            learner.since = now;
        }
        learner.buffer.push(members);
        let full = learner.buffer.len() >= learner.list_size || learner.timeout == 0;
        full.then(|| send(&mut self.next_list, self.backlog, digest, learner, now, epoch))
    }

    /// An acknowledgement from a client.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for an unknown digest. A list that is not known (any more) is ignored.
    pub fn acknowledge(&mut self, model: &Model, ack: &p4::DigestListAck) -> Result<()> {
        known(model, ack.digest_id)?;
        if let Some(learner) = self.learners.get_mut(&ack.digest_id) {
            let found = learner.sent.iter().position(|sent| sent.list_id == ack.list_id);
            if let Some(sent) = found.and_then(|index| learner.sent.remove(index)) {
                learner.forget(sent);
            }
        }
        Ok(())
    }

    /// Sends the buffers whose time has come, and forgets lists that nobody acknowledged.
    pub fn tick(&mut self, model: &Model, now: Nanos, epoch: Nanos) -> Vec<p4::DigestList> {
        let mut lists = Vec::new();
        for (id, learner) in &mut self.learners {
            learner.expire(now);
            let due = !learner.buffer.is_empty() && learner.since.saturating_add(learner.timeout) <= now;
            if let (true, Some(digest)) = (due, model.digests.get(id)) {
                lists.push(send(&mut self.next_list, self.backlog, digest, learner, now, epoch));
            }
        }
        lists
    }

    /// When [`Digests::tick`] has something to do.
    pub fn next_deadline(&self) -> Option<Nanos> {
        self.learners.values().filter_map(Learner::deadline).min()
    }
}

fn known(model: &Model, id: u32) -> Result<&Digest> {
    model.digests.get(&id).ok_or_else(|| Status::invalid(format!("digest_id {id} (0x{id:08x}) is not in the P4Info")))
}

fn send(next_list: &mut u64, backlog: usize, digest: &Digest, learner: &mut Learner, now: Nanos, epoch: Nanos) -> p4::DigestList {
    *next_list += 1;
    let messages = std::mem::take(&mut learner.buffer);
    let list = p4::DigestList {
        digest_id: digest.id,
        list_id: *next_list,
        data: messages.iter().map(|message| digest.data.encode(&mut message.iter())).collect(),
        timestamp: i64::try_from(epoch.saturating_add(now)).unwrap_or(i64::MAX),
    };
    let sent = Sent { list_id: *next_list, expires: now.saturating_add(learner.ack_timeout), messages };
    if learner.ack_timeout == 0 {
        learner.forget(sent);
    } else {
        // A shorter timeout configured later must not wait behind a longer one.
        let place = learner.sent.partition_point(|other| other.expires <= sent.expires);
        learner.sent.insert(place, sent);
        // The oldest go first: a message of theirs that comes again is sent again.
        while learner.known.len() > backlog {
            let Some(oldest) = learner.sent.pop_front() else { break };
            learner.forget(oldest);
        }
    }
    list
}
