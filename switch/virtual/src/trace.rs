//! The per-packet log: one line for each frame that enters or leaves a queue, is lost, or arrives.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::Nanos;

/// Writes the log as CSV: `time_ns,event,node,port,bytes,cause`. Events: `enqueue`, `dequeue`, `drop`, `receive`.
#[derive(Debug)]
pub struct TraceWriter {
    file: BufWriter<File>,
    path: PathBuf,
}

impl TraceWriter {
    /// Creates (or empties) the file.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn create(path: &Path) -> io::Result<TraceWriter> {
        let mut file = BufWriter::new(File::create(path)?);
        file.write_all(b"time_ns,event,node,port,bytes,cause\n")?;
        Ok(TraceWriter { file, path: path.to_path_buf() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn write(&mut self, time: Nanos, event: &str, node: &str, port: u32, bytes: u64, cause: &str) -> io::Result<()> {
        writeln!(self.file, "{time},{event},{node},{port},{bytes},{cause}")
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
