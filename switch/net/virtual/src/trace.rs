//! The per-packet log: one line for each frame that enters or leaves a queue, is lost, or arrives.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::identity::Identity;
use crate::Nanos;

/// Where something happened to a frame: port and queue of a node; zeros at a host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) node: &'a str,
    pub(crate) port: u32,
    pub(crate) queue: usize,
}

impl<'a> Place<'a> {
    pub(crate) fn at(node: &'a str, port: u32) -> Place<'a> {
        Place { node, port, queue: 0 }
    }
}

/// Writes the log as CSV: `time_ns,event,node,port,bytes,cause,queue,flow,part,packet`. Events: `enqueue` and `dequeue` at a switch's port, `send` by a
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
    /// Creates the file.
    ///
    /// # Errors
    /// Those of the file system; the file is there already.
    pub fn create(path: &Path) -> io::Result<TraceWriter> {
        let mut file = BufWriter::new(File::create_new(path)?);
        file.write_all(b"time_ns,event,node,port,bytes,cause,queue,flow,part,packet\n")?;
        Ok(TraceWriter { file, path: path.to_path_buf(), failed: None })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// `what`: event and cause. `who`: the packet, and the name of its flow.
    pub(crate) fn write(&mut self, time: Nanos, what: (&str, &str), place: Place, bytes: u64, who: (Identity, &str)) {
        if self.failed.is_some() {
            return;
        }
        let ((event, cause), Place { node, port, queue }, (identity, flow)) = (what, place, who);
        let (part, number) = (identity.part.as_str(), identity.number.map_or_else(String::new, |number| number.to_string()));
        self.failed = writeln!(self.file, "{time},{event},{node},{port},{bytes},{cause},{queue},{flow},{part},{number}").err();
    }

    /// Writes out what is buffered; reports the first error of all writes.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.file.flush(),
        }
    }
}
