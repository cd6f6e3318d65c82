//! Captures: classic pcap files with nanosecond timestamps, one for each direction of a link.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::Nanos;

/// Magic number of nanosecond timestamps (pcap-savefile(5)).
const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const LINKTYPE_ETHERNET: u32 = 1;

/// A capture file: frames as they arrive at the end of one direction of a link.
#[derive(Debug)]
pub(crate) struct Capture {
    file: BufWriter<File>,
    path: PathBuf,
}

impl Capture {
    pub(crate) fn create(directory: &Path, from: &str, to: &str) -> io::Result<Capture> {
        // Of `h1:1`, a host's second link: some systems have no colons in names of files.
        let path = directory.join(format!("{from}-{to}.pcap").replace(':', "."));
        let mut file = BufWriter::new(File::create_new(&path)?);
        file.write_all(&MAGIC_NANOSECONDS.to_le_bytes())?;
        file.write_all(&[2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0])?;
        file.write_all(&65_535u32.to_le_bytes())?;
        file.write_all(&LINKTYPE_ETHERNET.to_le_bytes())?;
        // Before a process is forked that would write it again.
        file.flush()?;
        Ok(Capture { file, path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn write(&mut self, unix: Nanos, frame: &[u8]) -> io::Result<()> {
        let length = frame.len() as u32;
        for word in [(unix / 1_000_000_000) as u32, (unix % 1_000_000_000) as u32, length, length] {
            self.file.write_all(&word.to_le_bytes())?;
        }
        self.file.write_all(frame)
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
