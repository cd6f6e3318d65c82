//! The time series of every port's counters, as CSV, and, in files of their own, of the queues of ports that have several (`.queues.csv`), and of
//! links that lose or impair frames (`.links.csv`).

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fairlane_device::rows::{self, Further, PortRows};
use fairlane_device::{DropCause, Nanos, PortId, PortSnapshot, QueueStats};

/// Bounds of lateness that are counted, in nanoseconds, and their columns.
pub const LATE: [(Nanos, &str); 10] = [
    (100_000, "late_100us"),
    (200_000, "late_200us"),
    (500_000, "late_500us"),
    (1_000_000, "late_1ms"),
    (2_000_000, "late_2ms"),
    (5_000_000, "late_5ms"),
    (10_000_000, "late_10ms"),
    (20_000_000, "late_20ms"),
    (50_000_000, "late_50ms"),
    (100_000_000, "late_100ms"),
];

/// What the real-time switch counts beside the device.
#[derive(Debug, Clone, Copy, Default)]
pub struct SocketCounts {
    /// Frames that the kernel dropped before they were received.
    pub rx_missed: u64,
    /// Frames that the kernel refused to send.
    pub tx_failed: u64,
    /// Frames that left later than the model of the link says, by more than each bound of [`LATE`].
    pub late: [u64; LATE.len()],
}

impl SocketCounts {
    /// Counts a frame that left `late` nanoseconds after the instant that its link's model gives.
    pub fn left(&mut self, late: Nanos) {
        for (count, (bound, _)) in self.late.iter_mut().zip(LATE) {
            if late <= bound {
                break;
            }
            *count += 1;
        }
    }
}

/// Writes one row per port and interval.
#[derive(Debug)]
pub struct StatsWriter {
    file: File,
    path: PathBuf,
    rows: PortRows,
    text: String,
    queues: Extra,
    links: Extra,
}

/// A file that begins with its first row.
#[derive(Debug)]
struct Extra {
    extension: &'static str,
    header: &'static str,
    file: Option<File>,
    text: String,
}

impl Extra {
    fn new(extension: &'static str, header: &'static str) -> Extra {
        Extra { extension, header, file: None, text: String::new() }
    }

    /// `beside`: the ports' file.
    fn flush(&mut self, beside: &Path) -> io::Result<()> {
        if self.text.is_empty() {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let mut file = File::create(beside.with_extension(self.extension))?;
                file.write_all(self.header.as_bytes())?;
                none.insert(file)
            }
        };
        let result = file.write_all(self.text.as_bytes());
        self.text.clear();
        result
    }
}

impl StatsWriter {
    /// Creates (or empties) the file and writes the header.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn create(path: PathBuf) -> io::Result<Self> {
        let mut file = File::create(&path)?;
        let further = LATE.iter().map(|(_, column)| *column).chain([rows::WRONG_CHECKSUMS, rows::LINK_DOWN]);
        file.write_all(rows::header(further).as_bytes())?;
        let (queues, links) = (Extra::new("queues.csv", rows::QUEUE_HEADER), Extra::new("links.csv", rows::LINK_HEADER));
        Ok(StatsWriter { file, path, rows: PortRows::default(), text: String::new(), queues, links })
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds the row of a port to the current interval; [`StatsWriter::flush`] writes them out. A port's first interval has no length.
    pub fn add(&mut self, now: Nanos, unix: Nanos, port: &PortSnapshot, sockets: SocketCounts) {
        if self.rows.last(port.port).is_none() {
            self.rows.begin(now, port);
        }
        let SocketCounts { rx_missed, tx_failed, late } = sockets;
        let mut counts = [0; LATE.len() + 2];
        counts[..LATE.len()].copy_from_slice(&late);
        counts[LATE.len()..].copy_from_slice(&[port.wrong_checksums, port.drops.get(DropCause::LinkDown)]);
        self.rows.write(&mut self.text, now, unix, port, Further { rx_missed, tx_failed, counts: &counts });
    }

    /// Adds the row of one of a port's several queues. The first one begins the queues' file.
    pub fn add_queue(&mut self, now: Nanos, unix: Nanos, port: PortId, priority: usize, queue: &QueueStats) {
        rows::write_queue(&mut self.queues.text, now, unix, port, priority, queue);
    }

    /// Where the current interval's rows of links go.
    pub fn link_text(&mut self) -> &mut String {
        &mut self.links.text
    }

    /// Writes the rows of the current interval.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn flush(&mut self) -> io::Result<()> {
        let result = self.file.write_all(self.text.as_bytes());
        self.text.clear();
        result.and(self.queues.flush(&self.path)).and(self.links.flush(&self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_late_by_more_than_a_bound() {
        let mut counts = SocketCounts::default();
        for late in [0, 100_000, 100_001, 2_000_000, 20_000_000] {
            counts.left(late);
        }
        assert_eq!(counts.late, [3, 2, 2, 2, 1, 1, 1, 0, 0, 0]);
    }

    #[test]
    fn rows_hold_the_mean_queue_of_their_interval() {
        let path = std::env::temp_dir().join(format!("fairlane-stats-{}.csv", std::process::id()));
        let mut stats = StatsWriter::create(path.clone()).expect("a file");
        let mut port = PortSnapshot { port: 3, ..PortSnapshot::default() };
        stats.add(1_000_000_000, 5, &port, SocketCounts::default());
        port.queue_integral_packet_ns = 2_500_000_000;
        port.busy_ns = 500_000_000;
        stats.add(2_000_000_000, 6, &port, SocketCounts { rx_missed: 1, tx_failed: 2, late: [9, 8, 7, 6, 5, 4, 3, 2, 1, 0] });
        stats.flush().expect("written");
        let text = std::fs::read_to_string(&path).expect("readable");
        std::fs::remove_file(&path).expect("removed");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[0].starts_with("time_s,unix_s,port,rx_packets"));
        assert!(lines[0].contains(",drop_ingress,drop_egress,drop_tail,drop_no_port"));
        assert_eq!(lines[0].split(',').count(), lines[2].split(',').count());
        assert!(lines[2].starts_with("2.000000000,0.000000006,3,0,0,0,0,0,0,0,2.500000000,2.500000,0.500000000,1,2,9,8,7,6,5,4,3,2,1,0,0"));
    }
}
