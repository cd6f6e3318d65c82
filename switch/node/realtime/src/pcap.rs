//! Capture files: classic pcap with nanosecond timestamps, link type Ethernet.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use fairlane_device::Nanos;

const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const SNAP_LENGTH: u32 = 262_144;
const LINKTYPE_ETHERNET: u32 = 1;

/// One capture file. A write that fails ends the capture, not the switch.
#[derive(Debug)]
pub struct Capture {
    file: BufWriter<File>,
    path: PathBuf,
}

impl Capture {
    /// Creates (or empties) the file and writes its header.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn create(path: PathBuf) -> io::Result<Self> {
        let mut file = BufWriter::with_capacity(1 << 16, File::create(&path)?);
        file.write_all(&MAGIC_NANOSECONDS.to_le_bytes())?;
        file.write_all(&[2, 0, 4, 0])?; // version 2.4
        file.write_all(&[0; 8])?; // time zone, accuracy
        file.write_all(&SNAP_LENGTH.to_le_bytes())?;
        file.write_all(&LINKTYPE_ETHERNET.to_le_bytes())?;
        file.flush()?;
        Ok(Capture { file, path })
    }

    /// Appends a frame seen at `unix` nanoseconds since 1970.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&mut self, unix: Nanos, frame: &[u8]) -> io::Result<()> {
        let length = (frame.len() as u32).to_le_bytes();
        self.file.write_all(&((unix / 1_000_000_000) as u32).to_le_bytes())?;
        self.file.write_all(&((unix % 1_000_000_000) as u32).to_le_bytes())?;
        self.file.write_all(&length)?;
        self.file.write_all(&length)?;
        self.file.write_all(frame)
    }

    /// Writes out what is buffered.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_as_wireshark_reads_it() {
        let path = std::env::temp_dir().join(format!("fairlane-pcap-{}.pcap", std::process::id()));
        let mut capture = Capture::create(path.clone()).expect("a file");
        capture.write(1_700_000_000_123_456_789, &[1, 2, 3]).expect("written");
        capture.flush().expect("flushed");
        let bytes = std::fs::read(&path).expect("readable");
        std::fs::remove_file(&path).expect("removed");
        let words: Vec<u32> = bytes[..40].chunks(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect();
        assert_eq!(words, [0xa1b2_3c4d, 0x0004_0002, 0, 0, 262_144, 1, 1_700_000_000, 123_456_789, 3, 3]);
        assert_eq!(bytes[40..], [1, 2, 3]);
    }
}
