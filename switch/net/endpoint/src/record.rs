//! What the ends of flows leave behind: one list for each, in the order of time.

use crate::algorithm::{LossCause, NoteValue};
use crate::Nanos;

/// Something that one end of a flow did or saw. Totals run from the flow's start; bytes count IPv4 datagrams.
#[derive(Debug, Clone, PartialEq)]
pub enum FlowRecord {
    /// An end came to life.
    Start,
    /// A sender's rate in force from now on, and what it has sent, over all layers; its window, where the algorithm sets one.
    Sent {
        rate_bps: f64,
        packets: u64,
        bytes: u64,
        window_packets: Option<f64>,
    },
    /// The same of one layer of a layered flow, counted from 0.
    LayerSent {
        layer: usize,
        group: u32,
        rate_bps: f64,
        packets: u64,
    },
    /// A report as it reached a sender in a compound of `bytes` (IPv4 datagram without options), and the loss that its algorithm got.
    Feedback {
        reporter: u32,
        bytes: usize,
        loss: f64,
        loss_8bit: f64,
        loss_exact: Option<f64>,
        cumulative_lost: i32,
        desired_rate_bps: Option<u64>,
        utilisation: Option<f64>,
        rtt_s: Option<f64>,
        jitter_s: f64,
    },
    /// A report of a receiver that keeps its own time, as it reached a sender; packets count since that receiver's previous one.
    Report {
        reporter: u32,
        loss: f64,
        rtt_s: Option<f64>,
        receive_rate_bps: u64,
        loss_event_rate: Option<f64>,
        expected_packets: u32,
        lost_packets: u32,
    },
    /// Packets that the sender of an acknowledged flow found lost at one instant.
    Loss {
        first_sequence: u64,
        last_sequence: u64,
        lost_packets: u64,
        cause: LossCause,
    },
    /// What the sender of an acknowledged flow knows of its path, with each `Sent`.
    Path {
        latest_rtt_s: f64,
        srtt_s: f64,
        rttvar_s: f64,
        in_flight_packets: u64,
    },
    /// What an algorithm noted.
    Note {
        kind: String,
        values: Vec<(String, NoteValue)>,
    },
    /// A sender's control packet as routers left it, at the receiver, `bytes` as in `Feedback`; the sizes of the layers that it names.
    Control {
        sender: u32,
        bytes: usize,
        desired_rate_bps: u64,
        utilisation: f64,
        layers_bps: Vec<u64>,
    },
    /// What a receiver of data has counted, and the one-way delay of what arrived since the record before. `since`: at a marked instant,
    /// the time since the packet before.
    Data {
        packets: u64,
        bytes: u64,
        highest_sequence: Option<u64>,
        lost: i64,
        delay_sum_ns: u64,
        delay_max_ns: u64,
        media: Option<Media>,
        since: Option<Nanos>,
    },
    /// What it has counted of one layer of a layered flow, in the order of joining from 0; whether it is a member now.
    LayerData {
        layer: usize,
        group: u32,
        member: bool,
        packets: u64,
        bytes: u64,
        lost: i64,
    },
    /// A receiver becomes a member of a group, or leaves it.
    Join {
        group: u32,
    },
    Leave {
        group: u32,
    },
    /// What the application above a sender has produced, and what its buffer holds and has thrown away.
    Application {
        produced_packets: u64,
        produced_bytes: u64,
        waiting_packets: u64,
        discarded_packets: u64,
    },
    /// A frame of a film has been handed to its sender as a whole: RTP timestamp, packets with those for which the buffer had no room, bytes of
    /// the film's RTP packets, instant of the picture, and what the encoder was allowed then.
    FrameProduced {
        timestamp: u32,
        packets: u64,
        bytes: u64,
        discarded: u64,
        produced: Nanos,
        encoder_bps: f64,
    },
    /// What has arrived of a frame, and when its first and last packets did.
    FrameArrived {
        timestamp: u32,
        packets: u64,
        bytes: u64,
        produced: Nanos,
        first: Nanos,
        last: Nanos,
    },
    /// What a TCP sender has counted, and where it is.
    TcpSent {
        segments: u64,
        retransmitted: u64,
        loss_events: u64,
        timeouts: u64,
        acknowledged_bytes: u64,
        cwnd_bytes: u64,
        srtt_ns: Option<Nanos>,
    },
    /// A TCP sender sends its first segment with data: the connection is open.
    FirstData,
    /// The receiver has acknowledged the whole file that a TCP sender had, and nothing follows.
    Complete {
        bytes: u64,
    },
    /// A TCP receiver has the whole file of its sender; of flows that wait for others, and of those that these wait for.
    Delivered {
        bytes: u64,
    },
    /// What a TCP receiver has counted. `since`: as in `Data`, of what was delivered.
    TcpData {
        segments: u64,
        delivered_bytes: u64,
        since: Option<Nanos>,
    },
    /// A receiver hears a source for the first time.
    Source {
        ssrc: u32,
    },
    /// An RTCP BYE came.
    Bye {
        ssrc: u32,
    },
    /// A member was silent for so long that it no longer counts [RFC 3550 sec 6.3.5].
    Timeout {
        ssrc: u32,
    },
    /// Bytes that are no packet.
    Malformed {
        rtcp: bool,
    },
    /// An end is over: RTCP packets sent and received; `feedback`: acknowledgements and reports beside RTCP, sent or received;
    /// `forgiven`: packets that were due and not sent, because the end was kept waiting.
    End {
        packets: u64,
        rtcp_sent: u64,
        rtcp_received: u64,
        feedback: u64,
        malformed: u64,
        foreign: u64,
        forgiven: u64,
    },
}

/// What a receiver of data can say of playing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Media {
    /// Packets that came longer after the one before than the flow's threshold, since the start (SSVP's delayed packets).
    pub delayed_packets: u64,
    /// Packets that came longer after their production than the threshold, since the start.
    pub overdue_packets: u64,
    /// From production to arrival, of what arrived since the record before; production is sending where there is no application.
    pub age_sum_ns: u64,
    pub age_max_ns: u64,
}

/// The records of one end of a flow, with their instants.
pub type FlowLog = Vec<(Nanos, FlowRecord)>;
