//! The per-packet log: one line for each frame that enters or leaves a queue, is lost, or arrives.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::Nanos;

/// Writes the log as CSV: `time_ns,event,node,port,bytes,cause`. Events: `enqueue` and `dequeue` at a switch's port, `send` by a
/// host, `receive` at the end of a link, `drop` with its cause: those of `switch/node/device/src/counters.rs`, `tail` at a host whose
/// queue is full, `link` for a frame lost on the way.
#[derive(Debug)]
pub struct TraceWriter {
    file: BufWriter<File>,
    path: PathBuf,
    /// The first error; nothing is written after it.
    failed: Option<io::Error>,
}

impl TraceWriter {
    /// Creates (or empties) the file.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn create(path: &Path) -> io::Result<TraceWriter> {
        let mut file = BufWriter::new(File::create_new(path)?);
        file.write_all(b"time_ns,event,node,port,bytes,cause\n")?;
        Ok(TraceWriter { file, path: path.to_path_buf(), failed: None })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn write(&mut self, time: Nanos, event: &str, node: &str, port: u32, bytes: u64, cause: &str) {
        if self.failed.is_none() {
            self.failed = writeln!(self.file, "{time},{event},{node},{port},{bytes},{cause}").err();
        }
    }

    /// Writes out what is buffered; reports the first error of all writes.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.file.flush(),
        }
    }
}
