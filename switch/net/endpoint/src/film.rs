//! Films: an encoder whose rate follows the flow's, outside of the flow's program or modelled, and the frames that come of it.
//!
//! Each packet of a film carries, after its stamp, an RTP packet of the film itself: a header whose timestamp names the frame, whose
//! number counts the film's packets and whose marker ends a frame (RFC 6184), and what the encoder made. A modelled film has zeros there.

use std::collections::VecDeque;

use fairlane_random::Stream;

use crate::record::FlowRecord;
use crate::wire::rtp::{RtpHeader, CLOCK_HZ, HEADER_BYTES, MARKER};
use crate::Nanos;

/// Between two times that an encoder outside is told its rate.
pub(crate) const TELL_PERIOD: Nanos = 20_000_000;
/// No new rate is taken for so long after the last transition: tau_v [RFC 8593 sec 5], [RFC 8593 sec 5.1].
const REACTION: Nanos = 200_000_000;
/// A change of the rate by more than this part is abrupt, and a transient follows it. Open in [RFC 8593 sec 5.2]; its authors' statistical model has it
/// (cisco/syncodecs). The 10 % of [RFC 8593 sec 7] is of their hybrid model.
const ABRUPT: f64 = 0.5;
/// The size of a transient's first frame over a mean frame's: K_B / B_0 [RFC 8593 sec 5].
const BURST_FRAME: f64 = 13.5 / 4.17;
/// Frames of a transient, which together are of mean size: K_d [RFC 8593 sec 5], [RFC 8593 sec 5.2].
const TRANSIENT_FRAMES: u64 = 8;
/// SCALE_B and SCALE_t, of the Laplace distributions of sizes and intervals about their means, over the means [RFC 8593 sec 5], [RFC 8593 sec 5.3].
const SIZE_SCALE: f64 = 0.15;
const INTERVAL_SCALE: f64 = 0.15;
/// Of what waits in the sender, as a rate over one frame, so much is taken from the encoder's rate [RFC 8698 sec 4.1]; at most this part of
/// the flow's rate [RFC 8698 eq 11].
const BETA_V: f64 = 0.1;
const MOST_SHAPING: f64 = 0.05;
/// A receiver writes down a frame when so long has passed since it began to come.
const FRAME_PATIENCE: Nanos = 2_000_000_000;
/// Frames that are open at once: forged ones must not use up memory.
const MOST_FRAMES: usize = 1024;

/// A film that is encoded while it is sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Film {
    pub frames_per_second: f64,
    /// Frames from one key frame to the next; `None`: as the encoder does without.
    pub key_interval_frames: Option<u64>,
    /// Of the encoder, without headers.
    pub min_rate_bps: f64,
    pub max_rate_bps: f64,
    /// A picture is left out while more than the rate carries in so long waits in the sender.
    pub most_waiting: Nanos,
}

impl Film {
    /// # Errors
    /// A value that cannot be.
    pub fn check(&self) -> Result<(), String> {
        let Film { frames_per_second, key_interval_frames, min_rate_bps, max_rate_bps, .. } = *self;
        for (name, value) in [("frames_per_second", frames_per_second), ("min_rate_bps", min_rate_bps), ("max_rate_bps", max_rate_bps)] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(format!("{name}: give a number above 0, got {value}"));
            }
        }
        if min_rate_bps > max_rate_bps {
            return Err(format!("min_rate_bps: give at most max_rate_bps, {max_rate_bps}, got {min_rate_bps}"));
        }
        if let Some(frames) = key_interval_frames.filter(|&frames| frames < TRANSIENT_FRAMES) {
            return Err(format!("key_interval_frames: give {TRANSIENT_FRAMES} or more, got {frames}"));
        }
        Ok(())
    }

    /// What the encoder may produce of the rate that its flow has: what headers of `overhead` bytes for each packet leave, where frames fill
    /// packets of `payload` bytes, and less where data wait, by 5 % of the rate at most [RFC 8698 eq 11, 13].
    pub(crate) fn encoder_rate_bps(&self, rate_bps: f64, overhead: u32, payload: u32, waiting_bytes: u64, drains: bool) -> f64 {
        let frame_bytes = rate_bps / 8.0 / self.frames_per_second;
        // The last packet of a frame is half full on the mean.
        let packets = frame_bytes / f64::from(payload + overhead) + 0.5;
        let headers_bps = packets * f64::from(overhead) * 8.0 * self.frames_per_second;
        let waiting_bps = if drains { BETA_V * 8.0 * waiting_bytes as f64 * self.frames_per_second } else { 0.0 };
        (rate_bps - headers_bps - waiting_bps.min(MOST_SHAPING * rate_bps)).clamp(self.min_rate_bps, self.max_rate_bps)
    }

    /// Whether so much waits that a picture is left out.
    fn leaves_out(&self, rate_bps: f64, waiting_bytes: u64) -> bool {
        8e9 * waiting_bytes as f64 > rate_bps * self.most_waiting as f64
    }
}

/// The encoder's model [RFC 8593 sec 5]: intervals between frames and sizes of frames are independent, each with a Laplace distribution about its
/// mean. A transient follows an abrupt change of the rate: one large frame, then smaller ones, together of mean size. Key frames mimic the
/// same burst, the first at the start.
pub(crate) struct Encoder {
    film: Film,
    stream: Stream,
    next_picture: u64,
    next: Nanos,
    /// Frames since the last key frame.
    since_key: u64,
    /// Frames of the transient so far.
    transient: u64,
    rate_bps: f64,
    /// When the rate was changed last.
    changed: Option<Nanos>,
}

impl Encoder {
    pub(crate) fn new(film: Film, stream: Stream) -> Encoder {
        Encoder { film, stream, next_picture: 0, next: 0, since_key: 0, transient: 0, rate_bps: film.min_rate_bps, changed: None }
    }

    /// When the next picture comes and its frame leaves the encoder, counted from the film's beginning.
    pub(crate) fn next(&self) -> Nanos {
        self.next
    }

    /// The next frame: its RTP timestamp and bytes; `None`: it is left out. `rate_bps`: what the encoder may produce, `flow_bps`: the flow's
    /// rate.
    pub(crate) fn frame(&mut self, rate_bps: f64, flow_bps: f64, waiting_bytes: u64) -> Option<(u32, u64)> {
        let now = self.next;
        let timestamp = timestamp(self.next_picture, self.film.frames_per_second);
        self.next_picture += 1;
        self.next += (self.about_one(INTERVAL_SCALE) / self.film.frames_per_second * 1e9).round() as Nanos;
        if self.film.leaves_out(flow_bps, waiting_bytes) {
            return None;
        }
        if rate_bps != self.rate_bps && self.changed.is_none_or(|then| now >= then + REACTION) {
            if (rate_bps - self.rate_bps).abs() > ABRUPT * self.rate_bps {
                self.transient = 0;
            }
            (self.rate_bps, self.changed) = (rate_bps, Some(now));
        }
        if self.film.key_interval_frames.is_some_and(|frames| self.since_key >= frames) {
            (self.since_key, self.transient) = (0, 0);
        }
        let ratio = match self.transient {
            0 => BURST_FRAME,
            n if n < TRANSIENT_FRAMES => (TRANSIENT_FRAMES as f64 - BURST_FRAME) / (TRANSIENT_FRAMES - 1) as f64,
            _ => 1.0,
        };
        self.since_key += 1;
        self.transient += 1;
        let bytes = ratio * self.about_one(SIZE_SCALE) * self.rate_bps / 8.0 / self.film.frames_per_second;
        Some((timestamp, bytes.max(1.0) as u64))
    }

    /// Of a Laplace distribution about 1, the difference of two exponentials; neither a time nor a size is negative.
    fn about_one(&mut self, scale: f64) -> f64 {
        (1.0 + self.stream.exponential(scale) - self.stream.exponential(scale)).max(0.0)
    }
}

/// Of a picture, counted from 0.
fn timestamp(picture: u64, frames_per_second: f64) -> u32 {
    (picture as f64 * CLOCK_HZ as f64 / frames_per_second).round() as u64 as u32
}

/// The header of a modelled film's packet.
pub(crate) fn modelled_header(sequence: u16, timestamp: u32, last: bool) -> [u8; HEADER_BYTES] {
    let mut header = RtpHeader { sequence, timestamp, ssrc: 0, extension: &[] }.emit();
    if last {
        header[1] |= MARKER;
    }
    header
}

/// A packet of a film at its sender: timestamp, and whether it ends its frame. `None`: it is none.
pub(crate) fn looked_at(packet: &[u8]) -> Option<(u32, bool)> {
    RtpHeader::parse(packet).map(|(header, _)| (header.timestamp, packet[1] & MARKER != 0))
}

/// A frame that is being handed to the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Handed {
    pub(crate) packets: u64,
    /// Of the film's RTP packets.
    pub(crate) bytes: u64,
    /// Packets for which the buffer had no room.
    pub(crate) discarded: u64,
}

#[derive(Debug)]
struct Coming {
    timestamp: u32,
    produced: Nanos,
    packets: u64,
    bytes: u64,
    first: Nanos,
    last: Nanos,
}

/// What has arrived of a film, frame by frame.
#[derive(Debug, Default)]
pub(crate) struct Frames(VecDeque<Coming>);

impl Frames {
    /// A packet of the film. False: it is none.
    pub(crate) fn arrived(&mut self, now: Nanos, produced: Nanos, packet: &[u8]) -> bool {
        let Some((timestamp, _)) = looked_at(packet) else { return false };
        let bytes = packet.len() as u64;
        if let Some(frame) = self.0.iter_mut().rev().find(|frame| frame.timestamp == timestamp) {
            frame.packets += 1;
            frame.bytes += bytes;
            frame.last = now;
            frame.produced = frame.produced.min(produced);
        } else if self.0.len() < MOST_FRAMES {
            self.0.push_back(Coming { timestamp, produced, packets: 1, bytes, first: now, last: now });
        }
        true
    }

    /// Records of frames of which nothing more is expected; at the end, of all.
    pub(crate) fn done(&mut self, now: Nanos, end: bool) -> impl Iterator<Item = FlowRecord> + '_ {
        std::iter::from_fn(move || {
            self.0.front().filter(|frame| end || frame.first + FRAME_PATIENCE <= now)?;
            let Coming { timestamp, produced, packets, bytes, first, last } = self.0.pop_front()?;
            Some(FlowRecord::FrameArrived { timestamp, packets, bytes, produced, first, last })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILM: Film =
        Film { frames_per_second: 25.0, key_interval_frames: Some(50), min_rate_bps: 1e5, max_rate_bps: 4e6, most_waiting: 200_000_000 };
    const WITHOUT_KEYS: Film = Film { key_interval_frames: None, ..FILM };

    #[test]
    fn the_model_produces_the_rate_that_it_is_given() {
        let mut encoder = Encoder::new(FILM, Stream::new(1, "film"));
        let frames: Vec<_> = (0..5000).filter_map(|_| encoder.frame(1e6, 1.1e6, 0)).collect();
        let mean_bps = frames.iter().map(|&(_, bytes)| bytes as f64 * 8.0).sum::<f64>() / 200.0;
        assert_eq!(frames.len(), 5000);
        assert!((0.98e6..1.02e6).contains(&mean_bps), "{mean_bps}");
        // Frames 0, 50, 100 ... are key frames: 13.5 / 4.17 = 3.237 times 5000 bytes on the mean.
        let keys: f64 = frames.iter().step_by(50).map(|&(_, bytes)| bytes as f64).sum::<f64>() / 100.0;
        assert!((0.93..1.07).contains(&(keys / (5000.0 * BURST_FRAME))), "{keys}");
        assert_eq!((frames[0].0, frames[1].0, frames[25].0), (0, 3600, 90_000));
    }

    #[test]
    fn intervals_are_independent_and_of_laplace_s_distribution() {
        let mut encoder = Encoder::new(FILM, Stream::new(1, "film"));
        let deviations: Vec<f64> = (0..20_000)
            .map(|_| {
                let before = encoder.next();
                encoder.frame(1e6, 1e6, 0);
                (encoder.next() - before) as f64 / 40e6 - 1.0
            })
            .collect();
        let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / 20_000.0;
        // Mean 0, mean deviation SCALE_t, variance 2 SCALE_t^2 = 0.045; neighbours are not correlated: 0 within three times 20,000^-0.5.
        assert!(mean(&mut deviations.iter().copied()).abs() < 0.005);
        assert!((0.146..0.154).contains(&mean(&mut deviations.iter().map(|d| d.abs()))));
        let variance = mean(&mut deviations.iter().map(|d| d * d));
        assert!((0.042..0.048).contains(&variance), "{variance}");
        let correlation = mean(&mut deviations.windows(2).map(|pair| pair[0] * pair[1])) / variance;
        assert!(correlation.abs() < 0.0213, "{correlation}");
    }

    #[test]
    fn a_new_rate_is_taken_after_the_encoders_reaction() {
        let mut encoder = Encoder::new(FILM, Stream::new(1, "film"));
        let mut changes = Vec::new();
        for n in 0..100 {
            let (now, before) = (encoder.next(), encoder.rate_bps);
            encoder.frame(1e6 + f64::from(n), 3e6, 0);
            if encoder.rate_bps != before {
                assert_eq!(encoder.rate_bps, 1e6 + f64::from(n));
                changes.push((n, now));
            }
        }
        // 200 ms are five frames of 40 ms, and up to one more.
        assert!(changes.windows(2).all(|pair| (REACTION..REACTION + 80_000_000).contains(&(pair[1].1 - pair[0].1))), "{changes:?}");
        // A rate that stays is no transition: the next one is taken at once.
        for _ in 0..10 {
            encoder.frame(encoder.rate_bps, 3e6, 0);
        }
        encoder.frame(1.5e6, 3e6, 0);
        assert_eq!(encoder.rate_bps, 1.5e6);
    }

    #[test]
    fn a_burst_follows_an_abrupt_change_and_nothing_else() {
        // Many encoders: frame by frame, the mean size over B_0 of the rate in force. 1 Mb/s, from frame 100 on 1.4, from 200 on 0.6 Mb/s.
        let encoders = 400;
        let mut mean = vec![0.0; 300];
        for n in 0..encoders {
            let mut encoder = Encoder::new(WITHOUT_KEYS, Stream::new(n, "film"));
            for (frame, sum) in mean.iter_mut().enumerate() {
                let rate_bps = [1e6, 1.4e6, 0.6e6][frame / 100];
                *sum += encoder.frame(rate_bps, 3e6, 0).map_or(0.0, |(_, bytes)| bytes as f64 / (rate_bps / 200.0)) / encoders as f64;
            }
        }
        let smaller = (8.0 - BURST_FRAME) / 7.0;
        let near = |value: f64, expected: f64| (value / expected - 1.0).abs() < 0.05;
        for (frame, &size) in mean.iter().enumerate() {
            let expected = match frame {
                0 | 200 => BURST_FRAME, // the film's beginning, and a fall by more than half
                1..=7 | 201..=207 => smaller,
                _ => 1.0, // steady, and a rise by two fifths
            };
            assert!(near(size, expected), "frame {frame}: {size}");
        }
        assert!(near(mean[200..208].iter().sum::<f64>(), 8.0), "on the mean the transient has the new rate");
    }

    #[test]
    fn pictures_are_left_out_while_much_waits() {
        let mut encoder = Encoder::new(FILM, Stream::new(1, "film"));
        // 200 ms of 1 Mb/s are 25,000 bytes.
        assert!(encoder.frame(1e6, 1e6, 25_000).is_some());
        assert_eq!(encoder.frame(1e6, 1e6, 25_001), None);
        assert_eq!(encoder.frame(1e6, 1e6, 0).map(|(timestamp, _)| timestamp), Some(7200));
    }

    #[test]
    fn the_encoders_share_by_hand() {
        // 1.04 Mb/s at 25 a second: 5200 bytes a frame, in packets of 1040: 5.5 packets of 40 bytes overhead, 44 kb/s.
        assert_eq!(FILM.encoder_rate_bps(1.04e6, 40, 1000, 0, true), 996_000.0);
        // 2000 bytes wait: 0.1 * 8 * 2000 * 25 = 40 kb/s less. 5000 would be 100 kb/s, but 5 % of the rate are 52 kb/s.
        assert_eq!(FILM.encoder_rate_bps(1.04e6, 40, 1000, 2000, true), 956_000.0);
        assert_eq!(FILM.encoder_rate_bps(1.04e6, 40, 1000, 5000, true), 944_000.0);
        assert_eq!(FILM.encoder_rate_bps(1.04e6, 40, 1000, 5000, false), 996_000.0);
        assert_eq!(FILM.encoder_rate_bps(1.04e6, 40, 1000, 500_000, true), 944_000.0);
    }

    #[test]
    fn frames_are_put_together_by_their_timestamps() {
        let mut frames = Frames::default();
        let packet = |sequence, timestamp, last| [&modelled_header(sequence, timestamp, last)[..], &[0; 88]].concat();
        assert!(frames.arrived(10, 1, &packet(0, 0, false)));
        assert!(frames.arrived(20, 11, &packet(2, 3600, true)));
        assert!(frames.arrived(30, 1, &packet(1, 0, true)));
        assert!(!frames.arrived(40, 1, &[0x40; 20]), "not RTP");
        assert_eq!(frames.done(FRAME_PATIENCE + 9, false).count(), 0);
        let first: Vec<_> = frames.done(FRAME_PATIENCE + 10, false).collect();
        assert_eq!(first, [FlowRecord::FrameArrived { timestamp: 0, packets: 2, bytes: 200, produced: 1, first: 10, last: 30 }]);
        let rest: Vec<_> = frames.done(0, true).collect();
        assert_eq!(rest, [FlowRecord::FrameArrived { timestamp: 3600, packets: 1, bytes: 100, produced: 11, first: 20, last: 20 }]);
        assert_eq!(looked_at(&packet(7, 9, true)), Some((9, true)));
    }
}
