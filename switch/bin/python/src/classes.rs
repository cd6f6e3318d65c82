//! The classes of `fairlane/specs.py`, which says what each field means.

use std::num::NonZeroU32;

use fairlane_device::Scheduler;
use fairlane_endpoint::circuit_breaker::CircuitBreaker;
use fairlane_endpoint::wire::rtcp::{self, Alsf, LayerEntry, ReportBlock, SenderInfo};
use fairlane_endpoint::{Ip, MAX_PACKET_BYTES};
use fairlane_tcp::{Config, Ftp};
use fairlane_virtual::{ChannelConfig, FlowKind, FlowSpec, ImpairmentsChange, Jitter, LossModel, TcpSpec};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::algorithm::PythonHalf;
use crate::application::Application;
use crate::refused;

/// An object of `fairlane/specs.py`. The message of an error names the field.
pub(crate) struct Spec<T>(pub(crate) T);

impl<'py, T: FromPyObject<'py>> FromPyObject<'py> for Spec<T> {
    fn extract_bound(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        object.extract().map(Spec).map_err(|error| with_causes(object.py(), error))
    }
}

/// The field alone is in the error, what is wrong with it in the cause: joins the two, in the class of the last.
fn with_causes(py: Python<'_>, error: PyErr) -> PyErr {
    let Some(cause) = error.cause(py) else { return error };
    let cause = with_causes(py, cause);
    PyErr::from_type(cause.get_type(py), format!("{}: {}", error.value(py), cause.value(py)))
}

/// A probability, or the four of Gilbert's model.
pub(crate) struct Loss(pub(crate) LossModel);

impl<'py> FromPyObject<'py> for Loss {
    fn extract_bound(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(p) = object.extract() {
            return Ok(Loss(LossModel::Bernoulli { p }));
        }
        let Ok((good_to_bad, bad_to_good, loss_good, loss_bad)) = object.extract() else {
            let given = object.repr()?;
            return Err(PyTypeError::new_err(format!(
                "give a probability or (good_to_bad, bad_to_good, loss_good, loss_bad), got {given}"
            )));
        };
        Ok(Loss(LossModel::Gilbert { good_to_bad, bad_to_good, loss_good, loss_bad }))
    }
}

#[derive(FromPyObject)]
pub(crate) struct Link {
    rate_bps: Option<u64>,
    delay_ns: u64,
    queue_packets: u32,
    loss: Option<Loss>,
    jitter_ns: u64,
    jitter_std_ns: u64,
    reorder: f64,
    reorder_delay_ns: u64,
    duplicate: f64,
    corrupt: f64,
    overhead_bytes: i32,
    time_shift_ns: Option<u64>,
    weight: Option<NonZeroU32>,
}

impl Link {
    /// Raises ValueError.
    pub(crate) fn channel(self) -> PyResult<ChannelConfig> {
        let scheduler = match (self.weight, self.time_shift_ns) {
            (Some(_), Some(_)) => return Err(refused("time_shift_ns and weight: a port has one scheduler")),
            (Some(weight), None) => Scheduler::Weighted(weight),
            (None, shift) => shift.map_or(Scheduler::Strict, Scheduler::TimeShifted),
        };
        let Link { reorder, reorder_delay_ns, duplicate, corrupt, .. } = self;
        Ok(ChannelConfig {
            rate_bps: self.rate_bps,
            delay_ns: self.delay_ns,
            queue_packets: self.queue_packets,
            loss: self.loss.map(|Loss(model)| model),
            jitter: Jitter::of(self.jitter_ns, self.jitter_std_ns),
            impairments: fairlane_virtual::Impairments { reorder, reorder_delay_ns, duplicate, corrupt },
            overhead_bytes: self.overhead_bytes,
            scheduler,
        })
    }
}

#[derive(FromPyObject)]
pub(crate) struct Impairments {
    reorder: Option<f64>,
    reorder_delay_ns: Option<u64>,
    duplicate: Option<f64>,
    corrupt: Option<f64>,
}

impl Impairments {
    pub(crate) fn change(self) -> ImpairmentsChange {
        let Impairments { reorder, reorder_delay_ns, duplicate, corrupt } = self;
        ImpairmentsChange { reorder, reorder_delay_ns, duplicate, corrupt }
    }
}

#[derive(FromPyObject)]
pub(crate) struct FlowPath {
    name: String,
    sender_host: String,
    receiver_host: String,
    port: u16,
    start_ns: u64,
    stop_ns: u64,
}

impl FlowPath {
    pub(crate) fn flow(self, kind: FlowKind) -> FlowSpec {
        let FlowPath { name, sender_host: sender, receiver_host: receiver, port, start_ns: start, stop_ns: stop } = self;
        FlowSpec { name, sender, receiver, port, start, stop, kind }
    }
}

#[derive(FromPyObject)]
pub(crate) struct GroupPath {
    pub(crate) name: String,
    pub(crate) sender_host: String,
    pub(crate) base_group: String,
    pub(crate) port: u16,
    pub(crate) start_ns: u64,
    pub(crate) stop_ns: u64,
}

#[derive(FromPyObject)]
pub(crate) struct Half {
    algorithm: Py<PyAny>,
    rng: Py<PyAny>,
    pub(crate) ssrc: u32,
    pub(crate) cname: String,
}

impl Half {
    pub(crate) fn python(&self, py: Python<'_>) -> PyResult<Box<PythonHalf>> {
        PythonHalf::new(py, self.algorithm.clone_ref(py), self.rng.clone_ref(py)).map(Box::new)
    }
}

#[derive(FromPyObject)]
pub(crate) struct LayeredReceiver {
    host: String,
    half: Half,
    start_ns: Option<u64>,
    stop_ns: Option<u64>,
}

impl LayeredReceiver {
    pub(crate) fn member(self, py: Python<'_>) -> PyResult<fairlane_virtual::LayeredReceiver> {
        let algorithm = self.half.python(py)?;
        let LayeredReceiver { host, half: Half { ssrc, cname, .. }, start_ns: start, stop_ns: stop } = self;
        Ok(fairlane_virtual::LayeredReceiver { host, algorithm, ssrc, cname, start, stop })
    }
}

#[derive(FromPyObject)]
pub(crate) struct Session {
    pub(crate) packet_bytes: u32,
    pub(crate) session_bandwidth_bps: f64,
    pub(crate) pacing_jitter: f64,
    pub(crate) phase: Option<f64>,
    pub(crate) exact_loss: bool,
    pub(crate) delay_threshold_ns: u64,
}

#[derive(FromPyObject)]
struct Breaker {
    reduces: bool,
    usable_loss: Option<f64>,
    usable_rtt_s: Option<f64>,
    unusable_s: f64,
}

/// The default is that of a flow without options.
#[derive(FromPyObject, Default)]
pub(crate) struct RtpOptions {
    pub(crate) report_interval_ns: Option<u64>,
    application: Option<Application>,
    buffer_packets: u32,
    circuit_breaker: Option<Breaker>,
}

impl RtpOptions {
    pub(crate) fn application(&self) -> Option<fairlane_endpoint::Application> {
        let buffer_packets = self.buffer_packets;
        let limited = |application: &Application| fairlane_endpoint::Application { produces: application.produces(), buffer_packets };
        self.application.as_ref().map(limited)
    }

    pub(crate) fn circuit_breaker(&self) -> Option<CircuitBreaker> {
        self.circuit_breaker.as_ref().map(|&Breaker { reduces, usable_loss, usable_rtt_s, unusable_s }| CircuitBreaker {
            reduces,
            usable_loss,
            usable_rtt_s,
            unusable_s,
        })
    }
}

/// TCP header without options.
const TCP_BYTES: usize = 20;

#[derive(FromPyObject)]
pub(crate) struct Tcp<'py> {
    flavour: String,
    packet_bytes: u32,
    bytes: Option<u64>,
    options: Option<Bound<'py, PyDict>>,
    sending_jitter_ns: u64,
}

impl Tcp<'_> {
    /// Over a version of IP. Raises ValueError, TypeError.
    pub(crate) fn kind(&self, ip: Ip) -> PyResult<FlowKind> {
        let source = self.bytes.map_or(Ftp::Persistent, Ftp::Bytes);
        Ok(FlowKind::Tcp(TcpSpec { config: self.config(ip)?, source, sending_jitter: self.sending_jitter_ns }))
    }

    fn config(&self, ip: Ip) -> PyResult<Config> {
        let packet_bytes = self.packet_bytes;
        let headers = (ip.header_bytes() + TCP_BYTES) as u32;
        let least = headers + 40;
        if !(least..=MAX_PACKET_BYTES).contains(&packet_bytes) {
            return Err(refused(format!("packet_bytes: {least} to {MAX_PACKET_BYTES}, IP header included, got {packet_bytes}")));
        }
        let mut config = Config { flavour: self.flavour.parse().map_err(refused)?, mss: packet_bytes - headers, ..Config::default() };
        for (key, value) in self.options.iter().flat_map(|options| options.iter()) {
            let key: String = key.extract()?;
            match key.as_str() {
                "initial_window_segments" => config.initial_window_segments = value.extract()?,
                "initial_ssthresh" => config.initial_ssthresh = value.extract()?,
                "max_window" => config.max_window = value.extract()?,
                "initial_rto_ns" => config.initial_rto = value.extract()?,
                "min_rto_ns" => config.min_rto = value.extract()?,
                "max_rto_ns" => config.max_rto = value.extract()?,
                "timer_granularity_ns" => config.timer_granularity = value.extract()?,
                "delayed_ack" => config.delayed_ack = value.extract()?,
                "delayed_ack_timeout_ns" => config.delayed_ack_timeout = value.extract()?,
                "limited_transmit" => config.limited_transmit = value.extract()?,
                "timestamps" => config.timestamps = value.extract()?,
                "ecn" => config.ecn = value.extract()?,
                "abe" => config.abe = value.extract()?,
                "handshake" => config.handshake = value.extract()?,
                "reduction_base" => config.reduction_base = value.extract::<String>()?.parse().map_err(refused)?,
                "byte_counting" => config.byte_counting = value.extract()?,
                "reno_friendliness" => config.reno_friendliness = value.extract::<String>()?.parse().map_err(refused)?,
                "sack_recovery" => config.sack_recovery = value.extract::<String>()?.parse().map_err(refused)?,
                "loss_detection" => config.loss_detection = value.extract::<String>()?.parse().map_err(refused)?,
                "rtt_estimator" => config.rtt_estimator = value.extract::<String>()?.parse().map_err(refused)?,
                "avoid_multiple_fast_retransmits" => config.avoid_multiple_fast_retransmits = value.extract()?,
                "hold_ssthresh" => config.hold_ssthresh = value.extract()?,
                _ => return Err(refused(format!("TCP has no option {key:?}"))),
            }
        }
        if config.timestamps {
            // They are part of the datagram ([RFC 7323 sec A]: 12 bytes with padding).
            config.mss -= 12;
        }
        Ok(config)
    }
}

#[derive(FromPyObject)]
pub(crate) struct Report {
    pub(crate) highest_sequence: u64,
    pub(crate) echo_ns: u64,
    pub(crate) delay_us: u32,
    pub(crate) receive_rate_bps: u64,
    pub(crate) loss_event_rate: Option<u32>,
    pub(crate) expected_packets: u32,
    pub(crate) lost_packets: u32,
    pub(crate) reporter: u32,
    pub(crate) header: Vec<u8>,
}

/// (ssrc, fraction_lost, cumulative_lost, extended_highest_sequence, jitter, lsr, dlsr)
type Block = (u32, u8, i32, u32, u32, u32, u32);
/// (ssrc, desired_rate_bps, utilisation_ppm, [(address, rate_bps)])
type Pair = (u32, u64, u32, Vec<LayerEntry>);

#[derive(FromPyObject)]
pub(crate) struct Compound {
    ssrc: u32,
    sender: Option<(u64, u32, u32, u32)>,
    blocks: Vec<Block>,
    cname: Vec<u8>,
    from_sender: Option<Pair>,
    from_receiver: Option<Pair>,
    bye: Vec<u32>,
}

impl Compound {
    pub(crate) fn packet(self) -> rtcp::Compound {
        let block = |(ssrc, fraction_lost, cumulative_lost, extended_highest_sequence, jitter, lsr, dlsr): Block| ReportBlock {
            ssrc,
            fraction_lost,
            cumulative_lost,
            extended_highest_sequence,
            jitter,
            lsr,
            dlsr,
        };
        let info = |(ntp, rtp_timestamp, packet_count, octet_count)| SenderInfo { ntp, rtp_timestamp, packet_count, octet_count };
        let alsf = |(ssrc, desired_rate_bps, utilisation_ppm, layers): Pair| Alsf { ssrc, desired_rate_bps, utilisation_ppm, layers };
        rtcp::Compound {
            ssrc: self.ssrc,
            sender: self.sender.map(info),
            blocks: self.blocks.into_iter().map(block).collect(),
            cname: self.cname,
            from_sender: self.from_sender.map(alsf),
            from_receiver: self.from_receiver.map(alsf),
            congestion: Vec::new(),
            bye: self.bye,
        }
    }
}

/// `(time_ns, rtcp, group, payload)`.
#[cfg(target_os = "linux")]
pub(crate) type Arrival = (u64, bool, Option<u32>, Vec<u8>);

#[cfg(target_os = "linux")]
#[derive(FromPyObject)]
pub(crate) struct Place {
    pub(crate) local: String,
    pub(crate) peer: String,
    pub(crate) port: u16,
    pub(crate) start_ns: u64,
    pub(crate) stop_ns: u64,
    pub(crate) epoch_ns: u64,
    pub(crate) name: String,
    pub(crate) seed: u64,
    pub(crate) base_group: Option<String>,
    pub(crate) wake_fd: Option<i32>,
    pub(crate) film_fd: Option<i32>,
    pub(crate) arrivals: Option<Vec<Arrival>>,
    pub(crate) marks_ns: Vec<u64>,
}

#[cfg(target_os = "linux")]
#[derive(FromPyObject)]
pub(crate) struct Reception {
    pub(crate) session_bandwidth_bps: f64,
    pub(crate) acks: bool,
    pub(crate) report_interval_ns: Option<u64>,
    pub(crate) media: bool,
    pub(crate) film: bool,
    pub(crate) delay_threshold_ns: u64,
    pub(crate) rtcp: bool,
    pub(crate) stream: Option<String>,
}
