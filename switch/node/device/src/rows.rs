//! A switch's `raw/SWITCH.csv` and `raw/SWITCH.queues.csv`: what its ports and their several queues have counted, as text (docs/results.md).
//! Virtual and real switches write them alike.

use std::fmt::Write as _;

use fairlane_tm::{Nanos, PortId, QueueStats};

use crate::{DropCause, PortSnapshot};

const COUNTS: &str = "time_s,unix_s,port,rx_packets,rx_bytes,tx_packets,tx_bytes,queue_packets,queue_bytes,queue_packets_max,\
    queue_integral_packet_s,queue_packets_mean,busy_s,rx_missed,tx_failed";

/// The first line of the queues' file. Sums run from the start of the switch; the waits are those of the packets that left the queue in
/// the interval that ends with the row [RFC 9332 sec 2.5.2.2].
pub const QUEUE_HEADER: &str = "time_s,unix_s,port,queue,arrived_packets,tail_drops,dequeued_packets,tx_packets,tx_bytes,queue_packets,\
    wait_packets,wait_mean_s,wait_p99_s,wait_max_s\n";

/// Adds a queue's row to a text. unix: the instant on the calendar's clock. priority: the queue's; the port's other queues have others.
pub fn write_queue(text: &mut String, now: Nanos, unix: Nanos, port: PortId, priority: usize, queue: &QueueStats) {
    let _ = write!(text, "{},{}", Seconds(now.into()), Seconds(unix.into()));
    let QueueStats { arrived_packets, tail_drops, dequeued_packets, transmitted_packets, transmitted_bytes, depth_packets, waits } = *queue;
    push(text, [port.into(), priority as u64, arrived_packets, tail_drops, dequeued_packets, transmitted_packets, transmitted_bytes]);
    push(text, [depth_packets.into(), waits.packets]);
    for wait in [waits.mean_ns, waits.p99_ns, waits.max_ns] {
        let _ = write!(text, ",{}", Seconds(wait.into()));
    }
    text.push('\n');
}

/// The first line of the links' file. Sums run from the start of the run; a row has the direction FROM->TO.
pub const LINK_HEADER: &str = "time_s,unix_s,link,offered_packets,lost_packets,reordered_packets,duplicated_packets,corrupted_packets\n";

/// Adds the row of one direction of a link to a text. counts: in the columns' order.
pub fn write_link(text: &mut String, now: Nanos, unix: Nanos, link: &str, counts: [u64; 5]) {
    let _ = write!(text, "{},{},{link}", Seconds(now.into()), Seconds(unix.into()));
    push(text, counts);
    text.push('\n');
}

/// The column of [`PortSnapshot::wrong_checksums`], where a switch's file has it.
pub const WRONG_CHECKSUMS: &str = "wrong_checksums";

/// What a switch on sockets counts beside its device.
#[derive(Debug, Clone, Copy, Default)]
pub struct Further<'a> {
    /// Frames that the kernel dropped before they were received.
    pub rx_missed: u64,
    /// Frames that the kernel refused to send.
    pub tx_failed: u64,
    /// Of the columns that [`header`] was given.
    pub counts: &'a [u64],
}

/// The column of [`DropCause::LinkDown`], which is only in files of networks whose links fail: among `further`.
pub const LINK_DOWN: &str = "drop_link_down";

/// The first line. further: columns between the counts and the drops.
pub fn header<'a>(further: impl IntoIterator<Item = &'a str>) -> String {
    let mut line = String::from(COUNTS);
    for column in further {
        let _ = write!(line, ",{column}");
    }
    for cause in DropCause::ALL.iter().filter(|&&cause| is_usual(cause)) {
        let _ = write!(line, ",drop_{cause}");
    }
    line.push('\n');
    line
}

/// Whether every file has its column.
fn is_usual(cause: DropCause) -> bool {
    cause != DropCause::LinkDown
}

/// The interval that ended with a port's last row.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Interval {
    end: Nanos,
    integral: u128,
    sent: u64,
    /// Mean of the packets that waited, from the queue's integral.
    pub queue_packets: f64,
    /// Bytes put on the link, as bit/s.
    pub rate_bps: f64,
}

impl Interval {
    /// The next one, which ends at `now`.
    fn next(&self, now: Nanos, port: &PortSnapshot) -> Interval {
        let (end, integral, sent) = (now, port.queue_integral_packet_ns, port.tx_bytes);
        let (mut queue_packets, mut rate_bps) = (0.0, 0.0);
        if now > self.end {
            let elapsed = (now - self.end) as f64;
            queue_packets = integral.saturating_sub(self.integral) as f64 / elapsed;
            rate_bps = sent.saturating_sub(self.sent) as f64 * 8e9 / elapsed;
        }
        Interval { end, integral, sent, queue_packets, rate_bps }
    }
}

/// Writes a row per port and interval. All sums run from the start of the switch; `queue_packets_mean` is the mean over the interval
/// that ends with the row, from the integral of the queue.
#[derive(Debug, Default)]
pub struct PortRows {
    /// Of the ports by number.
    intervals: Vec<Option<Interval>>,
}

impl PortRows {
    /// A port's first interval begins here, and not at 0.
    pub fn begin(&mut self, now: Nanos, port: &PortSnapshot) {
        *self.interval(port.port) =
            Some(Interval { end: now, integral: port.queue_integral_packet_ns, sent: port.tx_bytes, ..Interval::default() });
    }

    /// What a port's last row says; `None` before it.
    pub fn last(&self, port: PortId) -> Option<&Interval> {
        self.intervals.get(port as usize)?.as_ref()
    }

    fn interval(&mut self, port: PortId) -> &mut Option<Interval> {
        let place = port as usize;
        if place >= self.intervals.len() {
            self.intervals.resize(place + 1, None);
        }
        &mut self.intervals[place]
    }

    /// Adds a port's row to a text. unix: the instant on the calendar's clock.
    pub fn write(&mut self, text: &mut String, now: Nanos, unix: Nanos, port: &PortSnapshot, further: Further<'_>) {
        let known = self.interval(port.port);
        let ended = known.unwrap_or_default().next(now, port);
        *known = Some(ended);
        let counts = [
            port.port.into(),
            port.rx_packets,
            port.rx_bytes,
            port.tx_packets,
            port.tx_bytes,
            port.depth_packets.into(),
            port.depth_bytes,
            port.max_depth_packets.into(),
        ];
        let _ = write!(text, "{},{}", Seconds(now.into()), Seconds(unix.into()));
        push(text, counts);
        let _ = write!(text, ",{},{:.6},{}", Seconds(port.queue_integral_packet_ns), ended.queue_packets, Seconds(port.busy_ns.into()));
        push(text, [further.rx_missed, further.tx_failed]);
        push(text, further.counts.iter().copied());
        push(text, port.drops.iter().filter(|&(cause, _)| is_usual(cause)).map(|(_, count)| count));
        text.push('\n');
    }
}

fn push(text: &mut String, counts: impl IntoIterator<Item = u64>) {
    for count in counts {
        text.push(',');
        match u8::try_from(count) {
            // Most are 0.
            Ok(digit @ 0..=9) => text.push(char::from(b'0' + digit)),
            _ => _ = write!(text, "{count}"),
        }
    }
}

/// Billionths with nine decimals, without a detour over floating point.
struct Seconds(u128);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match u64::try_from(self.0) {
            Ok(nanos) => write!(f, "{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000),
            Err(_) => write!(f, "{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_holds_its_intervals_mean_queue() {
        let (mut rows, mut text) = (PortRows::default(), String::new());
        let mut port = PortSnapshot { port: 3, ..PortSnapshot::default() };
        rows.begin(1_000_000_000, &port);
        port.queue_integral_packet_ns = 2_500_000_000;
        port.busy_ns = 500_000_000;
        port.tx_bytes = 1_000;
        rows.write(&mut text, 2_000_000_000, 6, &port, Further { rx_missed: 1, tx_failed: 12, counts: &[9, 8] });
        assert!(text.starts_with("2.000000000,0.000000006,3,0,0,0,1000,0,0,0,2.500000000,2.500000,0.500000000,1,12,9,8,0,0"), "{text}");
        let last = *rows.last(3).expect("a row");
        assert_eq!((last.queue_packets, last.rate_bps), (2.5, 8_000.0));
        assert_eq!(rows.last(2), None);
        assert_eq!(text.split(',').count(), header(["late_1ms", "late_2ms"]).split(',').count());
    }

    #[test]
    fn a_queues_row_has_its_headers_columns() {
        let waits = fairlane_tm::WaitSummary { packets: 4, mean_ns: 1_500, p99_ns: 2_000, max_ns: 3_000_000_000 };
        let queue = QueueStats {
            arrived_packets: 9,
            tail_drops: 1,
            dequeued_packets: 7,
            transmitted_packets: 5,
            transmitted_bytes: 5_070,
            depth_packets: 1,
            waits,
        };
        let mut text = String::new();
        write_queue(&mut text, 2_000_000_000, 6, 3, 1, &queue);
        assert_eq!(text, "2.000000000,0.000000006,3,1,9,1,7,5,5070,1,4,0.000001500,0.000002000,3.000000000\n");
        assert_eq!(text.split(',').count(), QUEUE_HEADER.split(',').count());
    }

    #[test]
    fn a_switch_that_began_at_0_needs_no_beginning() {
        let (mut rows, mut text) = (PortRows::default(), String::new());
        let port = PortSnapshot { queue_integral_packet_ns: 1 << 70, ..PortSnapshot::default() };
        rows.write(&mut text, 0, 0, &port, Further::default());
        rows.write(&mut text, 1_000, 1_000, &port, Further::default());
        assert!(text.contains(",1180591620717.411303424,0.000000,"), "{text}");
    }
}
