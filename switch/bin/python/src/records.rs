//! Records as Python sees them: tuples and dictionaries.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::num::NonZeroU64;

use fairlane_device::{Delays, DropCause};
use fairlane_endpoint::algorithm::{LossCause, NoteValue};
use fairlane_endpoint::record::{FlowLog, FlowRecord};
use fairlane_virtual::record::PortSample;
use fairlane_virtual::Nanos;
use pyo3::exceptions::PyIndexError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

/// A dictionary. Its keys are strings that Python makes once.
macro_rules! dict {
    ($py:expr, $($key:ident = $value:expr),* $(,)?) => {{
        let dict = PyDict::new($py);
        $(dict.set_item(pyo3::intern!($py, stringify!($key)), $value)?;)*
        dict
    }};
}
pub(crate) use dict;

/// The records of one end of a flow, a sequence of `(time_ns, kind, fields)`. Each is made when it is read: there are many, most of
/// them are read once, and some never.
#[pyclass(frozen, sequence)]
pub(crate) struct Log(pub(crate) FlowLog);

#[pymethods]
impl Log {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Record<'py>> {
        let (time, record) = self.0.get(index).ok_or_else(|| PyIndexError::new_err("the log has no such record"))?;
        let (kind, fields) = flow_record(py, record)?;
        Ok((*time, kind, fields))
    }
}

type Record<'py> = (Nanos, Bound<'py, PyString>, Bound<'py, PyDict>);

fn flow_record<'py>(py: Python<'py>, record: &FlowRecord) -> PyResult<(Bound<'py, PyString>, Bound<'py, PyDict>)> {
    macro_rules! kind {
        ($kind:literal, $fields:expr $(,)?) => {
            Ok((intern!(py, $kind).clone(), $fields))
        };
    }
    match record {
        FlowRecord::Start => kind!("start", PyDict::new(py)),
        FlowRecord::Sent { rate_bps, packets, bytes, window_packets } => {
            let fields = dict!(py, rate_bps = *rate_bps, sent_packets = *packets, sent_bytes = *bytes);
            if let Some(window) = window_packets {
                fields.set_item(intern!(py, "window_packets"), window)?;
            }
            kind!("sent", fields)
        }
        FlowRecord::LayerSent { layer, group, rate_bps, packets } => kind!(
            "layer_sent",
            dict!(py, layer = *layer, group = Ipv4Addr::from(*group).to_string(), rate_bps = *rate_bps, sent_packets = *packets),
        ),
        FlowRecord::LayerData { layer, group, member, packets, bytes, lost } => kind!(
            "layer_data",
            dict!(
                py,
                layer = *layer,
                group = Ipv4Addr::from(*group).to_string(),
                member = *member,
                received_packets = *packets,
                received_bytes = *bytes,
                lost_packets = *lost,
            ),
        ),
        FlowRecord::Join { group } => kind!("join", dict!(py, group = Ipv4Addr::from(*group).to_string())),
        FlowRecord::Leave { group } => kind!("leave", dict!(py, group = Ipv4Addr::from(*group).to_string())),
        FlowRecord::Application { produced_packets, produced_bytes, waiting_packets, discarded_packets } => kind!(
            "application",
            dict!(
                py,
                produced_packets = *produced_packets,
                produced_bytes = *produced_bytes,
                waiting_packets = *waiting_packets,
                discarded_packets = *discarded_packets,
            ),
        ),
        FlowRecord::FrameProduced { timestamp, packets, bytes, discarded, produced, encoder_bps } => kind!(
            "frame_produced",
            dict!(
                py,
                timestamp = *timestamp,
                packets = *packets,
                bytes = *bytes,
                discarded_packets = *discarded,
                produced_ns = *produced,
                encoder_bps = *encoder_bps,
            ),
        ),
        FlowRecord::FrameArrived { timestamp, packets, bytes, produced, first, last } => kind!(
            "frame_arrived",
            dict!(
                py,
                timestamp = *timestamp,
                packets = *packets,
                bytes = *bytes,
                produced_ns = *produced,
                first_ns = *first,
                last_ns = *last,
            ),
        ),
        FlowRecord::Feedback {
            reporter,
            bytes,
            loss,
            loss_8bit,
            loss_exact,
            cumulative_lost,
            desired_rate_bps,
            utilisation,
            rtt_s,
            jitter_s,
        } => kind!(
            "feedback",
            dict!(
                py,
                ssrc = *reporter,
                bytes = *bytes,
                rd_bps = *desired_rate_bps,
                u = *utilisation,
                loss = *loss,
                loss_8bit = *loss_8bit,
                loss_exact = *loss_exact,
                cumulative_lost = *cumulative_lost,
                rtt_s = *rtt_s,
                jitter_s = *jitter_s,
            ),
        ),
        FlowRecord::Report { reporter, loss, rtt_s, receive_rate_bps, loss_event_rate, expected_packets, lost_packets } => kind!(
            "feedback",
            dict!(
                py,
                ssrc = *reporter,
                loss = *loss,
                rtt_s = *rtt_s,
                receive_rate_bps = *receive_rate_bps,
                loss_event_rate = *loss_event_rate,
                expected_packets = *expected_packets,
                lost_packets = *lost_packets,
            ),
        ),
        FlowRecord::Loss { first_sequence, last_sequence, lost_packets, cause } => kind!(
            "loss",
            dict!(
                py,
                first_sequence = *first_sequence,
                last_sequence = *last_sequence,
                lost_packets = *lost_packets,
                cause = match cause {
                    LossCause::Gap => "gap",
                    LossCause::Timeout => "timeout",
                },
            ),
        ),
        FlowRecord::Path { latest_rtt_s, srtt_s, rttvar_s, in_flight_packets } => kind!(
            "path",
            dict!(py, latest_rtt_s = *latest_rtt_s, srtt_s = *srtt_s, rttvar_s = *rttvar_s, in_flight_packets = *in_flight_packets,),
        ),
        FlowRecord::Note { kind, values } => {
            let fields = PyDict::new(py);
            for (name, value) in values {
                match value {
                    NoteValue::None => fields.set_item(name, py.None())?,
                    NoteValue::Int(value) => fields.set_item(name, value)?,
                    NoteValue::Float(value) => fields.set_item(name, value)?,
                    NoteValue::Text(value) => fields.set_item(name, value)?,
                }
            }
            Ok((PyString::new(py, kind), fields))
        }
        FlowRecord::Control { sender, bytes, desired_rate_bps, utilisation, layers_bps } => {
            let fields = dict!(py, ssrc = *sender, bytes = *bytes, rd_bps = *desired_rate_bps, u = *utilisation);
            if !layers_bps.is_empty() {
                fields.set_item(intern!(py, "layers_bps"), layers_bps)?;
            }
            kind!("control", fields)
        }
        FlowRecord::Data { packets, bytes, highest_sequence, lost, delay_sum_ns, delay_max_ns, media, since } => {
            let fields = dict!(
                py,
                received_packets = *packets,
                received_bytes = *bytes,
                highest_sequence = *highest_sequence,
                lost_packets = *lost,
                delay_sum_ns = *delay_sum_ns,
                delay_max_ns = *delay_max_ns,
            );
            if let Some(media) = media {
                fields.set_item(intern!(py, "delayed_packets"), media.delayed_packets)?;
                fields.set_item(intern!(py, "overdue_packets"), media.overdue_packets)?;
                fields.set_item(intern!(py, "age_sum_ns"), media.age_sum_ns)?;
                fields.set_item(intern!(py, "age_max_ns"), media.age_max_ns)?;
            }
            set_since(&fields, *since)?;
            kind!("data", fields)
        }
        FlowRecord::TcpSent { segments, retransmitted, loss_events, timeouts, acknowledged_bytes, cwnd_bytes, srtt_ns } => kind!(
            "tcp_sent",
            dict!(
                py,
                segments = *segments,
                retransmitted = *retransmitted,
                loss_events = *loss_events,
                timeouts = *timeouts,
                acknowledged_bytes = *acknowledged_bytes,
                cwnd_bytes = *cwnd_bytes,
                srtt_ns = *srtt_ns,
            ),
        ),
        FlowRecord::TcpData { segments, delivered_bytes, since } => {
            let fields = dict!(py, segments = *segments, delivered_bytes = *delivered_bytes);
            set_since(&fields, *since)?;
            kind!("tcp_data", fields)
        }
        FlowRecord::FirstData => kind!("first_data", PyDict::new(py)),
        FlowRecord::Complete { bytes } => kind!("complete", dict!(py, bytes = *bytes)),
        FlowRecord::Source { ssrc } => kind!("source", dict!(py, ssrc = *ssrc)),
        FlowRecord::Bye { ssrc } => kind!("bye", dict!(py, ssrc = *ssrc)),
        FlowRecord::Timeout { ssrc } => kind!("timeout", dict!(py, ssrc = *ssrc)),
        FlowRecord::Malformed { rtcp } => {
            let fields = PyDict::new(py);
            fields.set_item(intern!(py, "where"), if *rtcp { "rtcp" } else { "rtp" })?;
            kind!("malformed", fields)
        }
        FlowRecord::End { packets, rtcp_sent, rtcp_received, feedback, malformed, foreign, forgiven } => {
            let fields = dict!(
                py,
                packets = *packets,
                rtcp_sent_packets = *rtcp_sent,
                rtcp_received_packets = *rtcp_received,
                feedback_packets = *feedback,
                malformed_packets = *malformed,
                foreign_packets = *foreign,
            );
            if *forgiven > 0 {
                fields.set_item(intern!(py, "forgiven_packets"), forgiven)?;
            }
            kind!("end", fields)
        }
    }
}

/// Of a marked instant.
fn set_since(fields: &Bound<'_, PyDict>, since: Option<Nanos>) -> PyResult<()> {
    since.map_or(Ok(()), |since| fields.set_item(intern!(fields.py(), "since_ns"), since))
}

/// `"packets":2,"sum_ns":9,"min_ns":4,"max_ns":5,"bins":[[4,1],[5,1]]`: of each bin its begin and its packets.
pub(crate) fn delays(delays: &Delays) -> String {
    let (least, largest) = delays.range();
    let bins: Vec<String> = delays.bins().map(|(begin, count)| format!("[{begin},{count}]")).collect();
    let (packets, sum) = (delays.packets(), delays.sum());
    format!("\"packets\":{packets},\"sum_ns\":{sum},\"min_ns\":{least},\"max_ns\":{largest},\"bins\":[{}]", bins.join(","))
}

/// The names of drop causes, in the order of the columns.
pub(crate) fn drop_causes() -> Vec<&'static str> {
    DropCause::ALL.iter().map(|cause| cause.as_str()).collect()
}

/// `[(switch, port, sums)]`: of the samples from `first` on that are a multiple of `step`, one after the other as native doubles: rx_bytes,
/// tx_bytes, queue_integral_packet_ns, drops by cause.
pub(crate) fn port_sums<'py>(
    py: Python<'py>,
    samples: &[PortSample],
    first: Nanos,
    step: NonZeroU64,
) -> Vec<(usize, u32, Bound<'py, PyBytes>)> {
    let mut found: BTreeMap<(usize, u32), (Option<Nanos>, Vec<u8>)> = BTreeMap::new();
    for PortSample { time, port, switch } in samples.iter().filter(|sample| sample.time >= first && sample.time % step == 0) {
        let (last, sums) = found.entry((*switch, port.port)).or_default();
        // A port is read again where its rate changes, and at marked instants.
        if last.replace(*time) == Some(*time) {
            continue;
        }
        let counts = [port.rx_bytes as f64, port.tx_bytes as f64, port.queue_integral_packet_ns as f64];
        let drops = port.drops.iter().map(|(_, count)| count as f64);
        sums.extend(counts.into_iter().chain(drops).flat_map(f64::to_ne_bytes));
    }
    found.into_iter().map(|((switch, port), (_, sums))| (switch, port, PyBytes::new(py, &sums))).collect()
}
