//! What clients hold of a switch, over all of its services: connections, and messages that are on their way. Both are bounded; where a
//! bound is met, the holder that has been idle for the longest loses its place, so that a new client is served.
//!
//! No sockets and no clock: `now` is an argument. A service that holds something asks [`Gone`] whether it has lost it.

#![forbid(unsafe_code)]

mod gone;
mod parts;
mod pool;

pub use gone::{Gone, Reason};
pub use parts::{Parts, Reader};
pub use pool::{Bounds, Full, Place, Pool};

use std::time::{Duration, Instant};

/// Bytes of messages on their way that a switch keeps at least, whatever its longest message is.
const LEAST_BYTES: usize = 80 << 20;
/// Messages on their way at the same time.
const MESSAGES: usize = 1024;
/// A message that has not grown for this long may lose its place to another one.
const STALLED: Duration = Duration::from_secs(1);
/// A message that has not grown for this long is given up.
const GIVEN_UP: Duration = Duration::from_secs(10);
/// How long a message may take in all.
pub const WHOLE_MESSAGE: Duration = Duration::from_secs(120);
/// How often [`Clients::expire`] is to be called.
pub const EXPIRE_EACH: Duration = Duration::from_millis(500);
/// Connections of all services.
const CONNECTIONS: usize = 4096;

/// The bounds of one switch. Clones are the same bounds.
#[derive(Debug, Clone)]
pub struct Clients {
    /// Connections: of clients that have sent nothing, of those between two requests, and of those with a request under way.
    pub connections: Pool,
    /// Messages that have not come whole, and answers that have not left whole.
    pub messages: Pool,
}

impl Clients {
    /// Bounds for a process that may have so many files open, and for messages of this many bytes.
    pub fn new(descriptors: usize, longest_message: usize) -> Clients {
        // The other half is for interfaces, logs and captures.
        let connections =
            Bounds { most: CONNECTIONS.min(descriptors / 2).max(1), most_bytes: usize::MAX, spared: Duration::ZERO, stall: None };
        let most_bytes = longest_message.saturating_add(longest_message / 4).max(LEAST_BYTES);
        let messages = Bounds { most: MESSAGES, most_bytes, spared: STALLED, stall: Some(GIVEN_UP) };
        Clients { connections: Pool::new(connections), messages: Pool::new(messages) }
    }

    /// Takes their places from all whose time is over.
    pub fn expire(&self, now: Instant) {
        self.connections.expire(now);
        self.messages.expire(now);
    }
}

impl Default for Clients {
    /// For the usual limit of 1024 open files.
    fn default() -> Self {
        Clients::new(1024, 0)
    }
}
