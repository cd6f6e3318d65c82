//! The codecs of the ends of flows, for tests and tools: fields of `hosts/wire/formats.toml` by name. What is no packet parses as None.

use fairlane_endpoint::wire::ccfb::{CongestionFeedback, Metric, Offset, StreamReport};
use fairlane_endpoint::wire::rtcp::{Alsf, Compound, ReportBlock};
use fairlane_endpoint::wire::rtp::RtpHeader;
use fairlane_endpoint::wire::{ntp, stamp::Stamp};
use fairlane_endpoint::{AckPacket, ReportPacket};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::classes::{self, Report, Spec};
use crate::records::dict;

type Parsed<'py> = PyResult<Option<Bound<'py, PyDict>>>;

/// header: what the packet's own header brings back, only beside arrived_ns.
#[pyfunction]
#[pyo3(signature = (sequence, history, arrived_ns=None, header=None, ecn=0))]
fn emit_ack<'py>(
    py: Python<'py>,
    sequence: u64,
    history: u32,
    arrived_ns: Option<u64>,
    header: Option<&[u8]>,
    ecn: u8,
) -> Bound<'py, PyBytes> {
    let mut bytes = Vec::new();
    AckPacket { sequence, history, ecn, arrived: arrived_ns, header: header.unwrap_or_default() }.emit(&mut bytes);
    PyBytes::new(py, &bytes)
}

#[pyfunction]
fn parse_ack<'py>(py: Python<'py>, payload: &[u8]) -> Parsed<'py> {
    let fields = |ack: AckPacket| {
        let header = PyBytes::new(py, ack.header);
        Ok(dict!(py, sequence = ack.sequence, history = ack.history, ecn = ack.ecn, arrived_ns = ack.arrived, header = header))
    };
    AckPacket::parse(payload).map(fields).transpose()
}

#[pyfunction]
fn emit_report<'py>(py: Python<'py>, report: Spec<Report>) -> Bound<'py, PyBytes> {
    let report = report.0;
    let packet = ReportPacket {
        highest_sequence: report.highest_sequence,
        echoed: report.echo_ns,
        held_us: report.delay_us,
        receive_rate_bps: report.receive_rate_bps,
        loss_event_ppb: report.loss_event_rate,
        expected: report.expected_packets,
        lost: report.lost_packets,
        reporter: report.reporter,
        header: &report.header,
    };
    PyBytes::new(py, &packet.emit())
}

#[pyfunction]
fn parse_report<'py>(py: Python<'py>, payload: &[u8]) -> Parsed<'py> {
    let fields = |report: ReportPacket| {
        Ok(dict!(
            py,
            highest_sequence = report.highest_sequence,
            echo_ns = report.echoed,
            delay_us = report.held_us,
            receive_rate_bps = report.receive_rate_bps,
            loss_event_rate = report.loss_event_ppb,
            expected_packets = report.expected,
            lost_packets = report.lost,
            reporter = report.reporter,
            header = PyBytes::new(py, report.header),
        ))
    };
    ReportPacket::parse(payload).map(fields).transpose()
}

#[pyfunction]
#[pyo3(signature = (sent_ns, sequence, rtt_us=None, produced_ns=None))]
fn emit_stamp(py: Python<'_>, sent_ns: u64, sequence: u64, rtt_us: Option<u32>, produced_ns: Option<u64>) -> Bound<'_, PyBytes> {
    let (bytes, length) = Stamp { sent: sent_ns, number: sequence, sender_rtt_us: rtt_us, produced: produced_ns }.emit();
    PyBytes::new(py, &bytes[..length])
}

/// media: an instant of production follows.
#[pyfunction]
#[pyo3(signature = (payload, media=false))]
fn parse_stamp<'py>(py: Python<'py>, payload: &[u8], media: bool) -> Parsed<'py> {
    let fields = |stamp: Stamp| {
        Ok(dict!(py, sent_ns = stamp.sent, sequence = stamp.number, rtt_us = stamp.sender_rtt_us, produced_ns = stamp.produced))
    };
    Stamp::parse(payload, media).map(fields).transpose()
}

/// extension: all of a header extension, empty for none.
#[pyfunction]
#[pyo3(signature = (sequence, timestamp, ssrc, payload, extension=None))]
fn emit_rtp<'py>(
    py: Python<'py>,
    sequence: u16,
    timestamp: u32,
    ssrc: u32,
    payload: &[u8],
    extension: Option<&[u8]>,
) -> Bound<'py, PyBytes> {
    let extension = extension.unwrap_or_default();
    let header = RtpHeader { sequence, timestamp, ssrc, extension };
    PyBytes::new(py, &[&header.emit()[..], extension, payload].concat())
}

#[pyfunction]
fn parse_rtp<'py>(py: Python<'py>, packet: &[u8]) -> Parsed<'py> {
    let fields = |(header, payload): (RtpHeader, &[u8])| {
        let payload = PyBytes::new(py, payload);
        let extension = PyBytes::new(py, header.extension);
        Ok(dict!(
            py,
            sequence = header.sequence,
            timestamp = header.timestamp,
            ssrc = header.ssrc,
            extension = extension,
            payload = payload
        ))
    };
    RtpHeader::parse(packet).map(fields).transpose()
}

#[pyfunction]
fn emit_rtcp(py: Python<'_>, compound: Spec<classes::Compound>) -> Bound<'_, PyBytes> {
    let mut bytes = Vec::new();
    compound.0.packet().emit(&mut bytes);
    PyBytes::new(py, &bytes)
}

/// The fields of `Compound`, by name.
#[pyfunction]
fn parse_rtcp<'py>(py: Python<'py>, payload: &[u8]) -> Parsed<'py> {
    let fields = |compound: Compound| {
        let sender = compound.sender.map(|info| (info.ntp, info.rtp_timestamp, info.packet_count, info.octet_count));
        let block = |b: &ReportBlock| (b.ssrc, b.fraction_lost, b.cumulative_lost, b.extended_highest_sequence, b.jitter, b.lsr, b.dlsr);
        let pair = |alsf: Alsf| (alsf.ssrc, alsf.desired_rate_bps, alsf.utilisation_ppm, alsf.layers);
        Ok(dict!(
            py,
            ssrc = compound.ssrc,
            sender = sender,
            blocks = compound.blocks.iter().map(block).collect::<Vec<_>>(),
            cname = PyBytes::new(py, &compound.cname),
            from_sender = compound.from_sender.map(pair),
            from_receiver = compound.from_receiver.map(pair),
            bye = compound.bye,
        ))
    };
    Compound::parse(payload).map(fields).transpose()
}

/// (ssrc, begin, [(ecn, arrival time offset) or None])
type Reported = (u32, u16, Vec<Option<(u8, u16)>>);

/// Congestion control feedback [RFC 8888 sec 3.1], a packet of reduced size. streams: (ssrc, begin_seq, packets), of each packet None or its ECN
/// field and arrival time offset as on the wire: 1/1024 s, 0x1ffe beyond, 0x1fff unknown.
#[pyfunction]
fn emit_ccfb(py: Python<'_>, ssrc: u32, streams: Vec<Reported>, timestamp: u32) -> Bound<'_, PyBytes> {
    let metric = |(ecn, offset)| Metric { ecn, offset: Offset::of_field(offset) };
    let stream = |(ssrc, begin, packets): Reported| {
        let packets = packets.into_iter().map(|packet| packet.map(metric)).collect();
        StreamReport { ssrc, begin, packets }
    };
    let mut bytes = Vec::new();
    CongestionFeedback { ssrc, streams: streams.into_iter().map(stream).collect(), timestamp }.emit(&mut bytes);
    PyBytes::new(py, &bytes)
}

/// The arguments of emit_ccfb, by name, of each such packet in a compound or in a packet of reduced size. None: it is neither.
#[pyfunction]
fn parse_ccfb<'py>(py: Python<'py>, payload: &[u8]) -> PyResult<Option<Vec<Bound<'py, PyDict>>>> {
    let metric = |metric: &Metric| (metric.ecn, metric.offset.field());
    let stream = |stream: &StreamReport| {
        let packets = stream.packets.iter().map(|packet| packet.as_ref().map(metric)).collect();
        (stream.ssrc, stream.begin, packets)
    };
    let fields = |feedback: &CongestionFeedback| {
        let streams: Vec<Reported> = feedback.streams.iter().map(stream).collect();
        Ok(dict!(py, ssrc = feedback.ssrc, streams = streams, timestamp = feedback.timestamp))
    };
    Compound::parse_reduced(payload).map(|compound| compound.congestion.iter().map(fields).collect()).transpose()
}

/// Seconds of a round trip [RFC 3550 sec 6.4.1]. None: no sender report was received, or the fields make no sense.
#[pyfunction]
fn round_trip_s(arrival_ntp: u64, lsr: u32, dlsr: u32) -> Option<f64> {
    ntp::round_trip(arrival_ntp, lsr, dlsr)
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(emit_ack, module)?)?;
    module.add_function(wrap_pyfunction!(parse_ack, module)?)?;
    module.add_function(wrap_pyfunction!(emit_report, module)?)?;
    module.add_function(wrap_pyfunction!(parse_report, module)?)?;
    module.add_function(wrap_pyfunction!(emit_stamp, module)?)?;
    module.add_function(wrap_pyfunction!(parse_stamp, module)?)?;
    module.add_function(wrap_pyfunction!(emit_rtp, module)?)?;
    module.add_function(wrap_pyfunction!(parse_rtp, module)?)?;
    module.add_function(wrap_pyfunction!(emit_rtcp, module)?)?;
    module.add_function(wrap_pyfunction!(parse_rtcp, module)?)?;
    module.add_function(wrap_pyfunction!(emit_ccfb, module)?)?;
    module.add_function(wrap_pyfunction!(parse_ccfb, module)?)?;
    module.add_function(wrap_pyfunction!(round_trip_s, module)?)?;
    Ok(())
}
