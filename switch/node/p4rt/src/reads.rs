//! The reads under way, and the room for their answers.
//!
//! All answers that wait share a budget of bytes. The number of reads is bounded, too: where one more would be too many, the one whose client has
//! taken nothing for longest makes room.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fairlane_device::lock;
use prost::Message;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tonic::Status;

use crate::limits::Limits;
use crate::proto::p4::v1 as p4;

/// A read whose client has taken nothing for so long makes room for another.
pub(crate) const STALLED: Duration = Duration::from_millis(500);
/// So long a new read waits for room.
const ADMISSION: Duration = Duration::from_secs(1);
/// How often a read that waits looks for room.
pub(crate) const LOOK: Duration = Duration::from_millis(20);
/// The budget is counted in these.
const UNIT_BYTES: usize = 1024;
/// A part is read ahead only where so many units are free.
const PART_UNITS: usize = 64;

/// The reads under way, and the room for their answers.
#[derive(Debug)]
pub(crate) struct Reads {
    most: usize,
    room: Arc<Semaphore>,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    by_number: HashMap<u64, Pace>,
}

#[derive(Debug)]
struct Pace {
    /// When the client last took something.
    taken: Instant,
    end: Arc<Notify>,
}

/// A read under way, until it is dropped.
pub(crate) struct Slot<'a> {
    reads: &'a Reads,
    number: u64,
    pub end: Arc<Notify>,
    pub taken: Instant,
}

impl Slot<'_> {
    pub fn taken(&mut self) {
        self.taken = Instant::now();
        if let Some(pace) = lock(&self.reads.open).by_number.get_mut(&self.number) {
            pace.taken = self.taken;
        }
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        lock(&self.reads.open).by_number.remove(&self.number);
    }
}

impl Reads {
    pub fn new(limits: &Limits) -> Reads {
        let units = (limits.max_read_bytes / UNIT_BYTES).clamp(1, Semaphore::MAX_PERMITS);
        Reads { most: limits.max_reads, room: Arc::new(Semaphore::new(units)), open: Mutex::default() }
    }

    /// A place among the reads, now or soon.
    pub async fn admit(&self) -> Result<Slot<'_>, Status> {
        let deadline = Instant::now() + ADMISSION;
        loop {
            if let Some(slot) = self.try_admit() {
                return Ok(slot);
            }
            if Instant::now() >= deadline {
                return Err(Status::resource_exhausted(format!(
                    "{} reads are under way, which is the limit: try again, or start the switch with a higher --grpc-server-max-reads",
                    self.most
                )));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn try_admit(&self) -> Option<Slot<'_>> {
        let mut open = lock(&self.open);
        if open.by_number.len() >= self.most {
            let (&number, pace) = open.by_number.iter().min_by_key(|(_, pace)| pace.taken)?;
            if pace.taken.elapsed() < STALLED {
                return None;
            }
            pace.end.notify_one();
            open.by_number.remove(&number);
        }
        let number = open.next;
        open.next += 1;
        let (taken, end) = (Instant::now(), Arc::new(Notify::new()));
        open.by_number.insert(number, Pace { taken, end: Arc::clone(&end) });
        Some(Slot { reads: self, number, end, taken })
    }

    /// A part may be read ahead.
    pub fn has_room(&self) -> bool {
        self.room.available_permits() >= PART_UNITS
    }

    /// A message with its share of the budget. It has none where the budget is spent: each read may be one part ahead in any case.
    pub fn encode(&self, response: &p4::ReadResponse) -> Encoded {
        let bytes = response.encode_to_vec();
        let units = u32::try_from(bytes.len().div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX);
        Encoded { bytes, _room: Arc::clone(&self.room).try_acquire_many_owned(units).ok() }
    }
}

/// A message of an answer, encoded, with its share of the budget.
pub(crate) struct Encoded {
    pub bytes: Vec<u8>,
    _room: Option<OwnedSemaphorePermit>,
}
