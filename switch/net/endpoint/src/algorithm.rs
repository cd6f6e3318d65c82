//! The seam between a rate-adaptation algorithm and the end of its flow: `hosts/algorithms/base.py` in Rust.
//!
//! Events go in, actions come out. An algorithm in Python stands behind these traits with a thin adapter; it is called for
//! feedback, acknowledgements that change state, and timers, never for each packet. Units and conventions are those of
//! `base.py`: rates in bit/s of whole IPv4 datagrams, fractions from 0 to 1, sequence numbers that never wrap.

use std::ops::Range;

use serde::Serialize;

use crate::header::{OwnHeader, Place};
use crate::Nanos;

/// An algorithm failed: the run ends with this.
pub type Fault = Box<dyn std::error::Error + Send + Sync>;

/// Which acknowledgements reach the sender's handlers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AckDetail {
    /// The receiver sends no per-packet acks.
    #[default]
    None,
    /// Every packet is acked; `on_loss` runs when a loss is found.
    Losses,
    /// Every packet is acked and `on_ack` runs for each ack.
    Every,
}

/// What an algorithm wants to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interests {
    /// For a sender.
    pub acks: AckDetail,
    /// For a receiver: `on_gap` runs when packets are lost.
    pub gaps: bool,
    /// The end sends control packets on the RTCP timetable.
    pub rtcp: bool,
    /// A packet is lost when this many later ones were acked, or to a receiver: have arrived.
    pub loss_distance_packets: u64,
    /// For a receiver: acknowledgements say when their packet arrived.
    pub timed_acks: bool,
    /// For a sender: the ECN field of its data packets [RFC 3168 sec 5].
    pub ecn: u8,
}

impl Default for Interests {
    fn default() -> Self {
        Interests { acks: AckDetail::None, gaps: false, rtcp: false, loss_distance_packets: 3, timed_acks: false, ecn: 0 }
    }
}

/// What an acked flow knows at an event. Times are seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PathState {
    pub latest_rtt_s: f64,
    /// [RFC 6298 sec 2], gain 1/8.
    pub srtt_s: f64,
    /// [RFC 6298 sec 2], gain 1/4.
    pub rttvar_s: f64,
    pub in_flight_packets: u64,
    pub last_sent_sequence: i64,
    pub highest_acked_sequence: i64,
    /// Of an application's data that wait in the sender, as IPv4 datagrams; `None`: there is always more to send.
    pub waiting_bytes: Option<u64>,
}

/// One report of one receiver.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Feedback<'a> {
    pub reporter: u32,
    pub loss_fraction: f64,
    pub rtt_s: Option<f64>,
    pub jitter_s: Option<f64>,
    pub desired_rate_bps: Option<f64>,
    pub utilisation: Option<f64>,
    pub receive_rate_bps: Option<f64>,
    pub loss_event_rate: Option<f64>,
    /// What the receiver made of the headers of the flow's own; empty: nothing, or the flow has none.
    pub header: &'a [u8],
}

/// An acknowledgement of one data packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ack<'a> {
    pub sequence: u64,
    pub rtt_s: f64,
    pub newly_acked_packets: u64,
    pub path: PathState,
    /// From sending to arrival, plus what the receiver's clock is ahead of the sender's; `None`: the acknowledgement does not say it.
    pub one_way_delay_s: Option<f64>,
    /// What came back of the packet's own header, as switches left it; empty: nothing, or the flow has none.
    pub header: &'a [u8],
    /// The packet's ECN field, as it arrived.
    pub ecn: u8,
    /// From the packet's arrival to the report that speaks of it: part of the time since it left, not of `rtt_s`.
    pub held_s: f64,
    /// Whether nothing follows of the same report.
    pub ends_report: bool,
}

/// How a loss was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LossCause {
    /// Enough later packets were acked.
    Gap,
    /// Older than the timeout in force.
    Timeout,
}

/// Packets found lost at one instant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Loss {
    pub first_sequence: u64,
    pub last_sequence: u64,
    pub lost_packets: u64,
    pub cause: LossCause,
    pub path: PathState,
}

/// One layer of a layered transmission.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Layer {
    /// IPv4 group address.
    pub address: u32,
    pub rate_bps: f64,
}

/// A sender's control packet, as routers left it, at a receiver.
#[derive(Debug, Clone, PartialEq)]
pub struct Control {
    pub sender: u32,
    pub desired_rate_bps: f64,
    pub utilisation: f64,
    pub layers: Vec<Layer>,
}

/// What a receiver has counted since the flow began.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ReceptionState {
    pub received_packets: u64,
    /// Bytes of IPv4 datagrams.
    pub received_bytes: u64,
    pub lost_packets: u64,
    pub highest_sequence: u64,
    pub last_arrival_s: f64,
    pub sender_rtt_s: Option<f64>,
}

/// Sequence numbers skipped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gap {
    pub first_lost_sequence: u64,
    pub last_lost_sequence: u64,
    pub before_s: f64,
    pub after_s: f64,
    pub reception: ReceptionState,
}

/// A value of a [`Action::Note`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum NoteValue {
    None,
    Int(i64),
    Float(f64),
    Text(String),
}

/// How old an outstanding packet gets before it is lost.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LossTimeout {
    /// Where the factors are 0, and while no round trip is known.
    pub timeout_s: f64,
    pub srtt_factor: f64,
    pub rttvar_factor: f64,
    /// G of RFC 6298.
    pub granularity_s: f64,
    /// Looked for only before a paced packet leaves.
    pub before_sending: bool,
}

impl LossTimeout {
    /// With the round-trip times of a moment [RFC 6298 sec 2 step 2.3].
    pub fn in_force_s(&self, srtt_s: f64, rttvar_s: f64) -> f64 {
        if self.srtt_factor > 0.0 && srtt_s > 0.0 {
            self.srtt_factor * srtt_s + self.granularity_s.max(self.rttvar_factor * rttvar_s)
        } else {
            self.timeout_s
        }
    }
}

/// What an algorithm wants done. `base.py` says what each means and which half may ask for it.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    SetRate { rate_bps: f64, burst_packets: u32 },
    SetWindow { window_packets: f64 },
    SetEncoderRate { rate_bps: f64 },
    SetLossTimeout(LossTimeout),
    SetControl { desired_rate_bps: f64, utilisation: f64, layers: Vec<Layer> },
    StampData { rtt_s: f64 },
    SetHeader { fields: Vec<(Place, u64)> },
    SetReport { desired_rate_bps: f64, utilisation: f64 },
    SendFeedback { loss_event_rate: Option<f64> },
    SetLayers { layers: Vec<Layer> },
    JoinLayers { addresses: Vec<u32> },
    SetTimer { name: String, at_s: f64 },
    CancelTimer { name: String },
    Note { kind: String, values: Vec<(String, NoteValue)> },
}

impl Action {
    /// Its name in `base.py`.
    pub fn name(&self) -> &'static str {
        match self {
            Action::SetRate { .. } => "SetRate",
            Action::SetWindow { .. } => "SetWindow",
            Action::SetEncoderRate { .. } => "SetEncoderRate",
            Action::SetLossTimeout(_) => "SetLossTimeout",
            Action::SetControl { .. } => "SetControl",
            Action::StampData { .. } => "StampData",
            Action::SetHeader { .. } => "SetHeader",
            Action::SetReport { .. } => "SetReport",
            Action::SendFeedback { .. } => "SendFeedback",
            Action::SetLayers { .. } => "SetLayers",
            Action::JoinLayers { .. } => "JoinLayers",
            Action::SetTimer { .. } => "SetTimer",
            Action::CancelTimer { .. } => "CancelTimer",
            Action::Note { .. } => "Note",
        }
    }
}

/// What a handler says: its actions go to the end of the list.
pub type Actions = Vec<Action>;

/// The sending half. Handlers default to: nothing happens.
pub trait SenderAlgorithm: Send {
    fn interests(&self) -> Interests {
        Interests::default()
    }

    /// The header of the flow's own that its data packets carry. Asked once.
    fn header(&self) -> Option<OwnHeader> {
        None
    }

    /// The flow starts. Must ask for a rate or a window. Called once, before any other handler.
    ///
    /// # Errors
    /// Of the algorithm; they end the run. So in all handlers.
    fn on_start(&mut self, now: Nanos, actions: &mut Actions) -> Result<(), Fault>;

    fn on_feedback(&mut self, _now: Nanos, _feedback: &Feedback, _actions: &mut Actions) -> Result<(), Fault> {
        Ok(())
    }

    fn on_leave(&mut self, _now: Nanos, _reporter: u32, _actions: &mut Actions) -> Result<(), Fault> {
        Ok(())
    }

    fn on_ack(&mut self, _now: Nanos, _ack: &Ack, _actions: &mut Actions) -> Result<(), Fault> {
        Ok(())
    }

    fn on_loss(&mut self, _now: Nanos, _loss: &Loss, _actions: &mut Actions) -> Result<(), Fault> {
        Ok(())
    }

    fn on_timer(&mut self, _now: Nanos, _name: &str, _path: Option<&PathState>, _actions: &mut Actions) -> Result<(), Fault> {
        Ok(())
    }
}

/// The receiving half. Handlers default to: nothing happens.
pub trait ReceiverAlgorithm: Send {
    fn interests(&self) -> Interests {
        Interests::default()
    }

    /// The bytes of the header of the flow's own that go back to the sender: [`OwnHeader::returned`]. Asked once.
    fn returned(&self) -> Option<Range<usize>> {
        None
    }

    /// Where packets are not acknowledged one by one: these bytes of a packet's header join what the next report says, `kept`, which is empty
    /// at first. The last packet's go unless the algorithm says otherwise.
    ///
    /// # Errors
    /// As of [`SenderAlgorithm::on_start`].
    fn fold(&mut self, kept: &mut Vec<u8>, new: &[u8]) -> Result<(), Fault> {
        kept.clear();
        kept.extend_from_slice(new);
        Ok(())
    }

    fn on_start(&mut self, _now: Nanos, _actions: &mut Actions) -> Result<(), Fault> {
        Ok(())
    }

    fn on_control(&mut self, _now: Nanos, _control: &Control, _actions: &mut Actions) -> Result<(), Fault> {
        Ok(())
    }

    fn on_gap(&mut self, _now: Nanos, _gap: &Gap, _actions: &mut Actions) -> Result<(), Fault> {
        Ok(())
    }

    fn on_timer(&mut self, _now: Nanos, _name: &str, _reception: &ReceptionState, _actions: &mut Actions) -> Result<(), Fault> {
        Ok(())
    }
}

/// A constant rate, without feedback.
#[derive(Debug, Clone, Copy)]
pub struct FixedRate {
    pub rate_bps: f64,
}

impl SenderAlgorithm for FixedRate {
    fn on_start(&mut self, _now: Nanos, actions: &mut Actions) -> Result<(), Fault> {
        actions.push(Action::SetRate { rate_bps: self.rate_bps, burst_packets: 1 });
        Ok(())
    }
}

/// A receiver that only counts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Listener;

impl ReceiverAlgorithm for Listener {}
