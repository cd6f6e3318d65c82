//! What the algorithm asks for: rates and windows of the flow and its layers, timers, what goes into RTCP.

use super::{rate_field, utilisation_field, RtpSender, State};
use crate::algorithm::{Action, Fault, Layer};
use crate::header::Quantity;
use crate::pacer::Pacer;
use crate::record::FlowRecord;
use crate::stream::DataStream;
use crate::wire::rtcp::Alsf;
use crate::{instant, is_multicast, Io, Life};
use fairlane_random::Rng;

/// Packets: what an algorithm can ask for as its window; more would only fill memory.
const MAX_WINDOW: f64 = 1e6;
/// Layers of one flow: as many as one receiver's report has blocks for [RFC 3550 sec 6.4.2].
const MAX_LAYERS: usize = 31;

impl RtpSender {
    pub(super) fn apply(&mut self, io: &mut Io) -> Result<(), Fault> {
        let mut actions = std::mem::take(&mut self.actions);
        if self.state != State::Running {
            actions.clear();
        }
        for action in actions.drain(..) {
            match action {
                Action::SetRate { rate_bps, burst_packets } => self.set_rate(rate_bps, burst_packets, io)?,
                Action::SetControl { desired_rate_bps, utilisation, layers } => {
                    self.control = Some(Alsf {
                        ssrc: self.spec.ssrc,
                        desired_rate_bps: rate_field(desired_rate_bps),
                        utilisation_ppm: utilisation_field(utilisation),
                        layers: layers.iter().map(|layer: &Layer| (layer.address, rate_field(layer.rate_bps))).collect(),
                    });
                }
                Action::SetTimer { name, at_s } => self.timers.set(name, instant(at_s).max(io.now)),
                Action::CancelTimer { name } => self.timers.cancel(&name),
                Action::Note { kind, values } => self.log.push((io.now, FlowRecord::Note { kind, values })),
                Action::SetWindow { window_packets } if self.acks.is_some() => {
                    #[expect(clippy::manual_clamp, reason = "clamp would keep a window that is not a number")]
                    let window = window_packets.max(1.0).min(MAX_WINDOW);
                    self.window = Some(window);
                }
                Action::SetEncoderRate { rate_bps } if rate_bps > 0.0 && rate_bps.is_finite() => self.encoder_bps = Some(rate_bps),
                Action::SetLossTimeout(timeout) => {
                    if let Some(acks) = &mut self.acks {
                        acks.set_timeout(timeout);
                    }
                }
                Action::StampData { rtt_s } => {
                    for stream in &mut self.streams {
                        stream.stamp(rtt_s).map_err(|fault| format!("flow {}: {fault}", self.spec.name))?;
                    }
                }
                Action::SetHeader { fields } => {
                    for header in self.streams.iter_mut().filter_map(|stream| stream.header.as_mut()) {
                        fields.iter().for_each(|&(place, value)| header.set(place, value));
                    }
                }
                Action::SetLayers { layers } if self.spec.layered => self.set_layers(&layers, io)?,
                other => return Err(self.fault(&format!("{other:?} is not for this RTP sender"))),
            }
        }
        self.actions = actions;
        if self.has_header() {
            let window = self.window.unwrap_or(0.0);
            self.fill_header([(Quantity::RateBps, rate_field(self.rate_bps())), (Quantity::WindowPackets, window as u64)]);
        }
        Ok(())
    }

    fn set_rate(&mut self, rate_bps: f64, burst_packets: u32, io: &mut Io) -> Result<(), Fault> {
        if !(rate_bps > 0.0 && rate_bps.is_finite()) || burst_packets == 0 {
            let what = format!("SetRate of {rate_bps} bit/s in bursts of {burst_packets}: both must be positive");
            return Err(self.fault(&what));
        }
        if self.pace(0, rate_bps.min(self.most_bps), burst_packets, io) {
            self.note_sent(io.now);
        }
        Ok(())
    }

    /// Whether a pace that was there has changed.
    pub(super) fn pace(&mut self, index: usize, rate_bps: f64, burst_packets: u32, io: &Io) -> bool {
        match &mut self.streams[index].pacer {
            None => {
                let phase = self.spec.phase.unwrap_or_else(|| self.rng.unit());
                let rng = Rng::stream(self.rng.bits(), "pacing");
                let bytes = self.spec.packet_bytes;
                self.streams[index].pacer = Some(Pacer::new(io.now, rate_bps, burst_packets, bytes, phase, self.spec.pacing_jitter, rng));
                false
            }
            Some(pacer) if pacer.rate_bps != rate_bps || pacer.burst_packets != burst_packets => {
                pacer.set_rate(io.now, rate_bps, burst_packets);
                true
            }
            Some(_) => false,
        }
    }

    /// Layers that are not named, or have no rate, pause.
    fn set_layers(&mut self, layers: &[Layer], io: &mut Io) -> Result<(), Fault> {
        if layers.first().is_none_or(|base| base.address != self.life.peer) || layers.len() > MAX_LAYERS {
            let base = std::net::Ipv4Addr::from(self.life.peer);
            return Err(self.fault(&format!("SetLayers: the base layer's group {base} first, and at most {MAX_LAYERS} layers")));
        }
        let rates =
            |sender: &Self| sender.streams.iter().map(|stream| stream.pacer.as_ref().map(|pacer| pacer.rate_bps)).collect::<Vec<_>>();
        let before = rates(self);
        for (index, &Layer { address, rate_bps }) in layers.iter().enumerate() {
            if !(rate_bps >= 0.0 && rate_bps.is_finite() && is_multicast(address)) {
                let group = std::net::Ipv4Addr::from(address);
                return Err(self.fault(&format!("SetLayers: {rate_bps} bit/s to {group}: not negative, and to a multicast group")));
            }
            if index == self.streams.len() {
                let ssrc = self.spec.ssrc.wrapping_add(index as u32);
                let (ecn, header) = (self.algorithm.interests().ecn, self.streams[0].header.clone());
                self.streams.push(DataStream::new(
                    &Life { peer: address, ..self.life },
                    ssrc,
                    self.spec.packet_bytes,
                    ecn,
                    header,
                    &mut self.rng,
                ));
            }
            self.streams[index].to = address;
            if rate_bps > 0.0 {
                self.pace(index, rate_bps, 1, io);
            } else {
                self.streams[index].pause();
            }
        }
        for stream in self.streams.iter_mut().skip(layers.len()) {
            stream.pause();
        }
        if self.next_log > 0 && rates(self) != before {
            self.note_sent(io.now);
        }
        Ok(())
    }
}
