//! What clients may take of the switch's memory.

/// Bounds on what clients can make the switch keep. Beyond each, a request is refused with RESOURCE_EXHAUSTED, or the oldest is
/// forgotten where nobody is there to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest message in bytes, in either direction. A pipeline's JSON may be some megabytes. Messages on their way, of all clients, take
    /// at most a quarter as much again, or 80 MiB.
    pub max_message_bytes: usize,
    /// Entries of one table, whatever size its program declares.
    pub max_table_entries: usize,
    /// Messages of one digest that wait to be sent or acknowledged; beyond that the oldest list is forgotten.
    pub max_digest_backlog: usize,
    /// Streams open at the same time.
    pub max_streams: usize,
    /// Messages that wait for one client; packets and digests beyond that are lost.
    pub max_queue: usize,
    /// Reads under way at the same time; one whose client takes nothing makes room for another.
    pub max_reads: usize,
    /// Bytes that all reads together read ahead of their clients; beyond that each goes on as its client takes them.
    pub max_read_bytes: usize,
}

impl Default for Limits {
    /// Messages up to 64 MiB, 4 Mi entries in a table, 256 Ki messages of a digest, 128 streams, 4096 messages for one client, 128 reads
    /// with 64 MiB that wait for their clients.
    fn default() -> Self {
        Limits {
            max_message_bytes: 64 << 20,
            max_table_entries: 4 << 20,
            max_digest_backlog: 256 << 10,
            max_streams: 128,
            max_queue: 4096,
            max_reads: 128,
            max_read_bytes: 64 << 20,
        }
    }
}
