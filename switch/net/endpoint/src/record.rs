//! What the ends of flows leave behind: one list for each, in the order of time.
//!
//! A record is written by serde: here stand the kinds, the fields and their order that files and Python see.

use std::net::Ipv4Addr;

use serde::{Serialize, Serializer};

use crate::algorithm::{LossCause, NoteValue};
use crate::Nanos;

/// Something that one end of a flow did or saw. Totals run from the flow's start; bytes count IPv4 datagrams.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FlowRecord {
    /// An end came to life.
    Start,
    /// A sender's rate in force from now on, and what it has sent, over all layers; its window, where the algorithm sets one.
    Sent {
        rate_bps: f64,
        #[serde(rename = "sent_packets")]
        packets: u64,
        #[serde(rename = "sent_bytes")]
        bytes: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        window_packets: Option<f64>,
    },
    /// The same of one layer of a layered flow, counted from 0.
    LayerSent {
        layer: usize,
        #[serde(serialize_with = "address")]
        group: u32,
        rate_bps: f64,
        #[serde(rename = "sent_packets")]
        packets: u64,
    },
    /// A report as it reached a sender in a compound of `bytes` (IPv4 datagram without options), and the loss that its algorithm got.
    Feedback {
        #[serde(rename = "ssrc")]
        reporter: u32,
        bytes: usize,
        #[serde(rename = "rd_bps")]
        desired_rate_bps: Option<u64>,
        #[serde(rename = "u")]
        utilisation: Option<f64>,
        loss: f64,
        loss_8bit: f64,
        loss_exact: Option<f64>,
        cumulative_lost: i32,
        rtt_s: Option<f64>,
        jitter_s: f64,
    },
    /// A report of a receiver that keeps its own time, as it reached a sender; packets count since that receiver's previous one.
    #[serde(rename = "feedback")]
    Report {
        #[serde(rename = "ssrc")]
        reporter: u32,
        loss: f64,
        rtt_s: Option<f64>,
        receive_rate_bps: u64,
        loss_event_rate: Option<f64>,
        expected_packets: u32,
        lost_packets: u32,
    },
    /// Packets that the sender of an acknowledged flow found lost at one instant.
    Loss { first_sequence: u64, last_sequence: u64, lost_packets: u64, cause: LossCause },
    /// What the sender of an acknowledged flow knows of its path, with each `Sent`.
    Path { latest_rtt_s: f64, srtt_s: f64, rttvar_s: f64, in_flight_packets: u64 },
    /// A sender's control packet as routers left it, at the receiver, `bytes` as in `Feedback`; the sizes of the layers that it names.
    Control {
        #[serde(rename = "ssrc")]
        sender: u32,
        bytes: usize,
        #[serde(rename = "rd_bps")]
        desired_rate_bps: u64,
        #[serde(rename = "u")]
        utilisation: f64,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        layers_bps: Vec<u64>,
    },
    /// What a receiver of data has counted, and the one-way delay of what arrived since the record before. `since`: at a marked instant,
    /// the time since the packet before.
    Data {
        #[serde(rename = "received_packets")]
        packets: u64,
        #[serde(rename = "received_bytes")]
        bytes: u64,
        highest_sequence: Option<u64>,
        #[serde(rename = "lost_packets")]
        lost: i64,
        delay_sum_ns: u64,
        delay_max_ns: u64,
        #[serde(flatten)]
        media: Option<Media>,
        #[serde(rename = "since_ns", skip_serializing_if = "Option::is_none")]
        since: Option<Nanos>,
    },
    /// What it has counted of one layer of a layered flow, in the order of joining from 0; whether it is a member now.
    LayerData {
        layer: usize,
        #[serde(serialize_with = "address")]
        group: u32,
        member: bool,
        #[serde(rename = "received_packets")]
        packets: u64,
        #[serde(rename = "received_bytes")]
        bytes: u64,
        #[serde(rename = "lost_packets")]
        lost: i64,
    },
    /// A receiver becomes a member of a group, or leaves it.
    Join {
        #[serde(serialize_with = "address")]
        group: u32,
    },
    Leave {
        #[serde(serialize_with = "address")]
        group: u32,
    },
    /// What the application above a sender has produced, and what its buffer holds and has thrown away.
    Application { produced_packets: u64, produced_bytes: u64, waiting_packets: u64, discarded_packets: u64 },
    /// A frame of a film has been handed to its sender as a whole: RTP timestamp, packets with those for which the buffer had no room, bytes of
    /// the film's RTP packets, instant of the picture, and what the encoder was allowed then.
    FrameProduced {
        timestamp: u32,
        packets: u64,
        bytes: u64,
        #[serde(rename = "discarded_packets")]
        discarded: u64,
        #[serde(rename = "produced_ns")]
        produced: Nanos,
        encoder_bps: f64,
    },
    /// What has arrived of a frame, and when its first and last packets did.
    FrameArrived {
        timestamp: u32,
        packets: u64,
        bytes: u64,
        #[serde(rename = "produced_ns")]
        produced: Nanos,
        #[serde(rename = "first_ns")]
        first: Nanos,
        #[serde(rename = "last_ns")]
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
    Complete { bytes: u64 },
    /// A TCP receiver has the whole file of its sender; of flows that wait for others, and of those that these wait for.
    Delivered { bytes: u64 },
    /// What a TCP receiver has counted. `since`: as in `Data`, of what was delivered.
    TcpData {
        segments: u64,
        delivered_bytes: u64,
        #[serde(rename = "since_ns", skip_serializing_if = "Option::is_none")]
        since: Option<Nanos>,
    },
    /// A receiver hears a source for the first time.
    Source { ssrc: u32 },
    /// An RTCP BYE came.
    Bye { ssrc: u32 },
    /// A member was silent for so long that it no longer counts [RFC 3550 sec 6.3.5].
    Timeout { ssrc: u32 },
    /// Bytes that are no packet.
    Malformed {
        #[serde(rename = "where", serialize_with = "protocol")]
        rtcp: bool,
    },
    /// An end is over: RTCP packets sent and received; `feedback`: acknowledgements and reports beside RTCP, sent or received;
    /// `forgiven`: packets that were due and not sent, because the end was kept waiting.
    End {
        packets: u64,
        #[serde(rename = "rtcp_sent_packets")]
        rtcp_sent: u64,
        #[serde(rename = "rtcp_received_packets")]
        rtcp_received: u64,
        #[serde(rename = "feedback_packets")]
        feedback: u64,
        #[serde(rename = "malformed_packets")]
        malformed: u64,
        #[serde(rename = "foreign_packets")]
        foreign: u64,
        #[serde(rename = "forgiven_packets", skip_serializing_if = "is_zero")]
        forgiven: u64,
    },
    /// What an algorithm noted.
    #[serde(untagged)]
    Note {
        kind: String,
        #[serde(flatten, serialize_with = "pairs")]
        values: Vec<(String, NoteValue)>,
    },
}

fn address<S: Serializer>(group: &u32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&Ipv4Addr::from(*group))
}

fn protocol<S: Serializer>(rtcp: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(if *rtcp { "rtcp" } else { "rtp" })
}

fn pairs<S: Serializer>(values: &[(String, NoteValue)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(values.iter().map(|(name, value)| (name, value)))
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What a receiver of data can say of playing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
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

#[cfg(test)]
mod tests {
    use super::*;

    fn written(record: &FlowRecord) -> String {
        serde_json::to_string(record).unwrap()
    }

    #[test]
    fn what_is_absent_is_left_out() {
        let sent = |window_packets| FlowRecord::Sent { rate_bps: 1e6, packets: 2, bytes: 3, window_packets };
        assert_eq!(written(&sent(None)), r#"{"kind":"sent","rate_bps":1000000.0,"sent_packets":2,"sent_bytes":3}"#);
        assert!(written(&sent(Some(1.5))).ends_with(r#""window_packets":1.5}"#));
        let media = Media { delayed_packets: 7, ..Media::default() };
        let data = |media, since| FlowRecord::Data {
            packets: 1,
            bytes: 2,
            highest_sequence: None,
            lost: -1,
            delay_sum_ns: 4,
            delay_max_ns: 5,
            media,
            since,
        };
        let fields = r#"{"kind":"data","received_packets":1,"received_bytes":2,"highest_sequence":null,"lost_packets":-1,"delay_sum_ns":4,"delay_max_ns":5"#;
        assert_eq!(written(&data(None, None)), format!("{fields}}}"));
        let played = r#","delayed_packets":7,"overdue_packets":0,"age_sum_ns":0,"age_max_ns":0,"since_ns":6}"#;
        assert_eq!(written(&data(Some(media), Some(6))), format!("{fields}{played}"));
    }

    #[test]
    fn a_note_is_of_its_own_kind() {
        let values =
            vec![("x".into(), NoteValue::Float(0.5)), ("why".into(), NoteValue::Text("so".into())), ("none".into(), NoteValue::None)];
        let note = FlowRecord::Note { kind: "mine".into(), values };
        assert_eq!(written(&note), r#"{"kind":"mine","x":0.5,"why":"so","none":null}"#);
        assert_eq!(written(&FlowRecord::Join { group: 0xe000_0105 }), r#"{"kind":"join","group":"224.0.1.5"}"#);
        assert_eq!(written(&FlowRecord::Malformed { rtcp: false }), r#"{"kind":"malformed","where":"rtp"}"#);
        assert_eq!(written(&FlowRecord::Start), r#"{"kind":"start"}"#);
    }
}
