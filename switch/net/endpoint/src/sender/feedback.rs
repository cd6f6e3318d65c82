//! What a sender hears of its packets: acknowledgements and reports at the data port, RFC 8888's reports and report blocks in RTCP, timeouts.

use super::{RtpSender, State};
use crate::acks::AckPacket;
use crate::algorithm::{Ack, Fault, Feedback, Loss, NoteValue};
use crate::application::Backlog;
use crate::ccfb::number_of;
use crate::header::Quantity;
use crate::record::FlowRecord;
use crate::report::ReportPacket;
use crate::statistics::{loss_between, loss_of_layers};
use crate::stream::DataStream;
use crate::wire::ccfb::{age_s, CongestionFeedback};
use crate::wire::rtcp::{Compound, ReportBlock};
use crate::wire::{ntp, rtp};
use crate::Io;
use fairlane_units::rounded;

/// Forged reporters must not use up memory.
const MAX_REPORTERS: usize = 4096;

impl RtpSender {
    /// Feedback beside RTCP: to the data port.
    pub(super) fn on_direct(&mut self, payload: &[u8], io: &mut Io) -> Result<(), Fault> {
        if let Some(report) = ReportPacket::parse(payload) {
            return self.on_report(&report, io);
        }
        let acknowledged = AckPacket::parse(payload).and_then(|ack| self.acks.as_mut()?.acknowledge(io.now, ack));
        let Some((loss, ack)) = acknowledged else {
            self.malformed += 1;
            return Ok(());
        };
        self.feedback_received += 1;
        self.fill_path(self.acks.as_ref().map_or(0.0, |acks| acks.path().srtt_s));
        self.on_ack(loss, ack, io)?;
        self.fill_window(io);
        Ok(())
    }

    /// What feedback said of the path goes into the flow's own header. `rtt_s`: 0 where it is not known.
    fn fill_path(&mut self, rtt_s: f64) {
        if self.has_header() {
            let micros = |time_s: f64| (time_s * 1e6).round_ties_even() as u64;
            let interval_us = micros(8.0 * f64::from(self.spec.packet_bytes) / self.rate_bps());
            self.fill_header([(Quantity::RttUs, micros(rtt_s)), (Quantity::IntervalUs, interval_us)]);
        }
    }

    /// What a report says of the round trip.
    fn note_round_trip(&mut self, rtt_s: Option<f64>, io: &Io) {
        if let Some(rtt_s) = rtt_s {
            self.round_trips.add(io.now, rounded(rtt_s));
        }
    }

    /// Losses that an acknowledgement revealed, and what it says itself.
    fn on_ack(&mut self, loss: Option<Loss>, ack: Option<Ack>, io: &mut Io) -> Result<(), Fault> {
        self.on_loss(loss, io)?;
        if let Some(mut ack) = ack.filter(|_| self.hears_all) {
            ack.path.waiting_bytes = self.backlog.as_ref().map(Backlog::waiting_bytes);
            self.algorithm.on_ack(io.now, &ack, &mut self.actions)?;
            self.apply(io)?;
        }
        Ok(())
    }

    /// A report on many packets [RFC 8888 sec 3.1]: each that is news is one acknowledgement, in the order of numbers.
    pub(super) fn on_congestion_feedback(&mut self, feedback: &CongestionFeedback, io: &mut Io) -> Result<(), Fault> {
        // A circuit breaker may end the flow at any of its packets.
        if self.spec.report_interval.is_none() || self.state != State::Running {
            return Ok(());
        }
        let base = &self.streams[0];
        let (ssrc, first, sent) = (base.ssrc, base.first_sequence(), base.sent_packets);
        let said_s = io.now_s() - age_s(feedback.timestamp, ntp::from_unix(io.epoch + io.now));
        for stream in feedback.streams.iter().filter(|stream| stream.ssrc == ssrc) {
            let Some(begin) = number_of(stream.begin, first, sent) else { continue };
            if let Some(acks) = &mut self.acks {
                acks.reports_from(io.now, begin);
            }
            let mut news = Vec::new();
            for (number, packet) in (begin..sent).zip(&stream.packets) {
                let (Some(packet), Some(acks)) = (packet, &mut self.acks) else { continue };
                let arrival = packet.offset.seconds().map(|held_s| (said_s - held_s, held_s));
                let (loss, Some(ack)) = acks.reported(io.now, number, arrival, packet.ecn) else { continue };
                if self.algorithm.interests().ecn != 0 && self.ecn_path.arrived(packet.ecn) {
                    self.streams.iter_mut().for_each(DataStream::stop_ecn);
                    let values = vec![("sequence".to_string(), NoteValue::Int(number as i64))];
                    self.log.push((io.now, FlowRecord::Note { kind: "ecn.cleared".into(), values }));
                }
                news.push((loss, ack));
            }
            let last = news.len();
            for (n, (loss, ack)) in news.into_iter().enumerate() {
                if self.state != State::Running {
                    return Ok(());
                }
                self.on_ack(loss, Some(Ack { ends_report: n + 1 == last, ..ack }), io)?;
            }
        }
        self.fill_window(io);
        Ok(())
    }

    fn on_report(&mut self, report: &ReportPacket, io: &mut Io) -> Result<(), Fault> {
        self.feedback_received += 1;
        let feedback = report.feedback(io.now);
        self.note_round_trip(feedback.rtt_s, io);
        if self.acks.is_none() {
            self.fill_path(feedback.rtt_s.unwrap_or(0.0));
        }
        self.log.push((
            io.now,
            FlowRecord::Report {
                reporter: report.reporter,
                loss: feedback.loss_fraction,
                rtt_s: feedback.rtt_s,
                receive_rate_bps: report.receive_rate_bps,
                loss_event_rate: feedback.loss_event_rate,
                expected_packets: report.expected,
                lost_packets: report.lost,
            },
        ));
        self.algorithm.on_feedback(io.now, &feedback, &mut self.actions)?;
        self.apply(io)?;
        self.fill_window(io);
        Ok(())
    }

    /// Looks for timeouts. `sending`: before a paced packet leaves, and not by the timer.
    pub(super) fn expire(&mut self, sending: bool, io: &mut Io) -> Result<(), Fault> {
        let expired = self.acks.as_mut().and_then(|acks| acks.expire(io.now, sending));
        self.on_loss(expired, io)
    }

    fn on_loss(&mut self, loss: Option<Loss>, io: &mut Io) -> Result<(), Fault> {
        let Some(mut loss) = loss else { return Ok(()) };
        loss.path.waiting_bytes = self.backlog.as_ref().map(Backlog::waiting_bytes);
        let Loss { first_sequence, last_sequence, lost_packets, cause, .. } = loss;
        self.log.push((io.now, FlowRecord::Loss { first_sequence, last_sequence, lost_packets, cause }));
        self.algorithm.on_loss(io.now, &loss, &mut self.actions)?;
        self.apply(io)?;
        self.fill_window(io);
        Ok(())
    }

    /// What a compound says of this sender's streams is one report: losses and packets of all layers together.
    pub(super) fn on_blocks(&mut self, compound: &Compound, bytes: usize, io: &mut Io) -> Result<(), Fault> {
        let reporter = compound.ssrc;
        if let (Some(breakers), Some(schedule)) = (&mut self.breakers, &self.schedule) {
            let block = compound.blocks.iter().find(|block| block.ssrc == self.spec.ssrc);
            let rtt_s = block.and_then(|block| ntp::round_trip(ntp::from_unix(io.epoch + io.now), block.lsr, block.dlsr));
            let session = schedule.session(compound.sender.is_some());
            if let Some(trip) = breakers.reported(io.now_s(), block, rtt_s, session) {
                self.trip(&trip, io);
            }
        }
        if !self.hears_reports || self.state != State::Running {
            return Ok(());
        }
        let number = |block: &ReportBlock| self.streams.iter().position(|stream| stream.ssrc == block.ssrc);
        let blocks: Vec<ReportBlock> = compound.blocks.iter().filter(|block| number(block).is_some()).copied().collect();
        let Some(first) = blocks.iter().min_by_key(|block| number(block)).copied() else { return Ok(()) };
        let known = self.blocks.get(&reporter).map_or(&[][..], Vec::as_slice);
        let before = |block: &ReportBlock| known.iter().find(|known| known.ssrc == block.ssrc);
        let (exact, loss_8bit) = if let [block] = blocks.as_slice() {
            (loss_between(before(block), block), f64::from(block.fraction_lost) / 256.0)
        } else {
            loss_of_layers(blocks.iter().map(|block| (before(block), block)))
        };
        if self.blocks.contains_key(&reporter) || self.blocks.len() < MAX_REPORTERS {
            // A stream of which a report has no block, for want of data, keeps its block before.
            let known = self.blocks.entry(reporter).or_default();
            known.retain(|known| blocks.iter().all(|block| block.ssrc != known.ssrc));
            known.extend(blocks);
        }
        let loss = if self.spec.exact_loss { exact.unwrap_or(loss_8bit) } else { loss_8bit };
        let echoed = compound.from_receiver.as_ref().filter(|echoed| echoed.ssrc == reporter);
        let utilisation = echoed.map(|echoed| f64::from(echoed.utilisation_ppm) * 1e-6);
        let rtt_s = ntp::round_trip(ntp::from_unix(io.epoch + io.now), first.lsr, first.dlsr);
        self.note_round_trip(rtt_s, io);
        let jitter_s = f64::from(first.jitter) / rtp::CLOCK_HZ as f64;
        let feedback = Feedback {
            reporter,
            loss_fraction: loss,
            rtt_s,
            jitter_s: Some(jitter_s),
            desired_rate_bps: echoed.map(|echoed| echoed.desired_rate_bps as f64),
            utilisation,
            ..Feedback::default()
        };
        self.log.push((
            io.now,
            FlowRecord::Feedback {
                reporter,
                bytes,
                loss,
                loss_8bit,
                loss_exact: exact,
                cumulative_lost: first.cumulative_lost,
                desired_rate_bps: echoed.map(|echoed| echoed.desired_rate_bps),
                utilisation,
                rtt_s,
                jitter_s,
            },
        ));
        self.algorithm.on_feedback(io.now, &feedback, &mut self.actions)?;
        self.apply(io)
    }
}
