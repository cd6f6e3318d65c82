//! What an application hands to its transport: frames in pieces that wait, in a buffer with an end, until the rate or the window
//! lets them leave.

use std::collections::VecDeque;

use fairlane_sources::{Emission, Stream};

use crate::film::{looked_at, modelled_header, Encoder, Film, Handed};
use crate::raw::{RawSource, RawTraffic, MAX_EMISSION};
use crate::record::FlowRecord;
use crate::wire::rtp::HEADER_BYTES;
use crate::wire::stamp::MEDIA_BYTES;
use crate::{Ip, Nanos};

/// Of packets, over a version of IP (bytes).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    /// IP, UDP and RTP headers.
    headers: u32,
    /// The smallest datagram: headers, stamp, instant of production.
    pub(crate) least: u32,
    /// What a packet of a film holds beside what was encoded.
    film_headers: u32,
}

impl Sizes {
    pub(crate) const fn of(ip: Ip) -> Sizes {
        let headers = (ip.udp_bytes() + HEADER_BYTES) as u32;
        let least = headers + MEDIA_BYTES as u32;
        Sizes { headers, least, film_headers: least + HEADER_BYTES as u32 }
    }

    /// Smaller packets of a film would be headers for the most part.
    const fn least_film(self) -> u32 {
        2 * self.film_headers
    }
}

/// An application above a rate-adaptive flow.
pub struct Application {
    pub produces: Produces,
    /// Packets that wait at most; what finds the buffer full is thrown away, and counted.
    pub buffer_packets: u32,
}

/// What an application produces, counted from the flow's start.
pub enum Produces {
    /// A frame of more than a packet holds becomes several.
    Traffic(RawTraffic),
    /// A film whose encoder is a model.
    ModelledFilm(Film),
    /// A film whose encoder is a program beside the end.
    Film(Film),
}

impl Application {
    /// Whether its packets carry a film.
    pub fn is_film(&self) -> bool {
        !matches!(self.produces, Produces::Traffic(_))
    }
}

/// A packet that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// When its frame was produced.
    pub(crate) produced: Nanos,
    /// Of the IPv4 datagram.
    pub(crate) bytes: u32,
    /// What follows the stamp; zeros follow it up to `bytes`.
    pub(crate) content: Vec<u8>,
}

enum Feed {
    Source {
        source: RawSource,
        /// Whether the source's bytes count the headers of the one datagram that each emission is.
        with_headers: bool,
        pending: Option<Emission>,
    },
    Encoder(Box<Encoder>),
    Outside,
}

/// The application of a flow that runs, and what waits.
pub struct Backlog {
    feed: Feed,
    film: Option<Film>,
    sizes: Sizes,
    packet_bytes: u32,
    buffer_packets: usize,
    start: Nanos,
    waiting: VecDeque<Piece>,
    waiting_bytes: u64,
    /// The film's packets so far, modulo 2^16.
    film_sequence: u16,
    /// The frame that is being handed over.
    handed: Handed,
    pub(crate) produced_packets: u64,
    /// Of IPv4 datagrams.
    pub(crate) produced_bytes: u64,
    pub(crate) discarded_packets: u64,
}

impl Backlog {
    /// `packet_bytes`: of datagrams over `ip`. `stream`: the flow's own. `start`: instant of the source's beginning.
    ///
    /// # Errors
    /// A buffer that holds nothing, and what the source refuses.
    pub fn new(application: Application, ip: Ip, packet_bytes: u32, start: Nanos, stream: Stream) -> Result<Backlog, String> {
        let sizes = Sizes::of(ip);
        if application.buffer_packets == 0 {
            return Err("buffer_packets: a buffer of 0 packets holds none: give at least 1".into());
        }
        if let Produces::ModelledFilm(film) | Produces::Film(film) = &application.produces {
            film.check()?;
            let least = sizes.least_film();
            if packet_bytes < least {
                return Err(format!("packet_bytes: packets of a film need {least} bytes or more, got {packet_bytes}"));
            }
        }
        let (feed, film) = match application.produces {
            Produces::Traffic(traffic) => {
                let (mut source, with_headers) = traffic.source(packet_bytes, sizes.least, stream).map_err(|error| error.to_string())?;
                let pending = source.next();
                (Feed::Source { source, with_headers, pending }, None)
            }
            Produces::ModelledFilm(film) => (Feed::Encoder(Box::new(Encoder::new(film, stream))), Some(film)),
            Produces::Film(film) => (Feed::Outside, Some(film)),
        };
        Ok(Backlog {
            feed,
            film,
            sizes,
            packet_bytes,
            buffer_packets: application.buffer_packets as usize,
            start,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            film_sequence: 0,
            handed: Handed::default(),
            produced_packets: 0,
            produced_bytes: 0,
            discarded_packets: 0,
        })
    }

    /// When [`Backlog::produce`] has something to do.
    pub(crate) fn next(&self) -> Option<Nanos> {
        let at = match &self.feed {
            Feed::Source { pending, .. } => pending.map(|emission| emission.at),
            Feed::Encoder(encoder) => Some(encoder.next()),
            Feed::Outside => None,
        };
        at.map(|at| self.start.saturating_add(at))
    }

    /// Whether a program beside the end encodes a film, and is to be told its rate.
    pub(crate) fn is_outside(&self) -> bool {
        matches!(self.feed, Feed::Outside)
    }

    /// What an encoder may produce of a flow's rate. `drains`: less while data wait.
    pub(crate) fn encoder_rate_bps(&self, rate_bps: f64, drains: bool) -> Option<f64> {
        let payload = self.packet_bytes - self.sizes.film_headers;
        self.film.map(|film| film.encoder_rate_bps(rate_bps, self.sizes.film_headers, payload, self.waiting_bytes, drains))
    }

    /// Takes in what was produced by now, and says which frames. `rate_bps`: the flow's. `encoder_bps`: what an encoder may produce of it.
    pub(crate) fn produce(&mut self, now: Nanos, rate_bps: f64, encoder_bps: f64) -> Vec<FlowRecord> {
        let mut frames = Vec::new();
        while let Some(at) = self.next().filter(|&at| at <= now) {
            match &mut self.feed {
                Feed::Source { source, with_headers, pending } => {
                    let emitted = pending.take().map_or(0, |emission| emission.bytes);
                    *pending = source.next();
                    let headers = if *with_headers { 0 } else { self.sizes.headers };
                    let most = u64::from(self.packet_bytes - headers);
                    let mut left = emitted.min(MAX_EMISSION);
                    while left > 0 {
                        let part = left.min(most);
                        left -= part;
                        self.push(Piece { produced: at, bytes: (part as u32 + headers).max(self.sizes.least), content: Vec::new() });
                    }
                }
                Feed::Encoder(encoder) => {
                    let produced = self.start.saturating_add(encoder.next());
                    if let Some((timestamp, bytes)) = encoder.frame(encoder_bps, rate_bps, self.waiting_bytes) {
                        frames.extend(self.push_modelled(produced, timestamp, bytes, encoder_bps));
                    }
                }
                Feed::Outside => break,
            }
        }
        frames
    }

    fn push_modelled(&mut self, at: Nanos, timestamp: u32, bytes: u64, encoder_bps: f64) -> Option<FlowRecord> {
        let most = u64::from(self.packet_bytes - self.sizes.film_headers);
        let mut left = bytes.min(MAX_EMISSION);
        let mut frame = None;
        while left > 0 {
            let part = left.min(most);
            left -= part;
            let content = modelled_header(self.film_sequence, timestamp, left == 0).to_vec();
            frame = self.push_film(at, part as u32 + self.sizes.film_headers, content, encoder_bps);
        }
        frame
    }

    /// A packet of a film from the program beside the end. `Err`: it is none, or too large.
    pub(crate) fn take_film(&mut self, produced: Nanos, packet: &[u8], encoder_bps: f64) -> Result<Option<FlowRecord>, ()> {
        let bytes = packet.len() as u64 + u64::from(self.sizes.least);
        if looked_at(packet).is_none() || bytes > u64::from(self.packet_bytes) {
            return Err(());
        }
        Ok(self.push_film(produced, bytes as u32, packet.to_vec(), encoder_bps))
    }

    /// Its frame, when it is the last of it.
    fn push_film(&mut self, produced: Nanos, bytes: u32, content: Vec<u8>, encoder_bps: f64) -> Option<FlowRecord> {
        let (timestamp, last) = looked_at(&content)?;
        self.film_sequence = self.film_sequence.wrapping_add(1);
        self.handed.packets += 1;
        self.handed.bytes += u64::from(bytes - self.sizes.least);
        self.handed.discarded += u64::from(!self.push(Piece { produced, bytes, content }));
        last.then(|| {
            let Handed { packets, bytes, discarded } = std::mem::take(&mut self.handed);
            FlowRecord::FrameProduced { timestamp, packets, bytes, discarded, produced, encoder_bps }
        })
    }

    /// Whether there was room.
    fn push(&mut self, piece: Piece) -> bool {
        self.produced_packets += 1;
        self.produced_bytes += u64::from(piece.bytes);
        let room = self.waiting.len() < self.buffer_packets;
        if room {
            self.waiting_bytes += u64::from(piece.bytes);
            self.waiting.push_back(piece);
        } else {
            self.discarded_packets += 1;
        }
        room
    }

    /// The packet that waits longest.
    pub(crate) fn first(&self) -> Option<&Piece> {
        self.waiting.front()
    }

    /// That packet has left.
    pub(crate) fn pop(&mut self) {
        self.waiting_bytes -= self.waiting.pop_front().map_or(0, |piece| u64::from(piece.bytes));
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Of IPv4 datagrams.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backlog(buffer_packets: u32, emissions: &[(Nanos, u64)]) -> Backlog {
        let emissions: Vec<_> = emissions.iter().map(|&(at, bytes)| Emission { at, bytes }).collect();
        let traffic = RawTraffic::Other { source: Box::new(emissions.into_iter()), with_headers: false };
        Backlog::new(Application { produces: Produces::Traffic(traffic), buffer_packets }, Ip::V4, 1000, 100, Stream::new(1, "test"))
            .expect("a good source")
    }

    #[test]
    fn frames_become_packets_of_their_instant() {
        let mut backlog = backlog(10, &[(0, 2000), (50, 1), (60, 960)]);
        assert_eq!(backlog.next(), Some(100));
        assert_eq!(backlog.produce(150, 0.0, 0.0), []);
        let taken: Vec<_> =
            std::iter::from_fn(|| backlog.first().cloned().inspect(|_| backlog.pop())).map(|piece| (piece.produced, piece.bytes)).collect();
        // 960 bytes of a packet are the frame's; 80 are left of 2000; no packet is smaller than its headers and stamps.
        assert_eq!(taken, [(100, 1000), (100, 1000), (100, 120), (150, Sizes::of(Ip::V4).least)]);
        assert_eq!((backlog.next(), backlog.waiting()), (Some(160), 0));
    }

    #[test]
    fn a_full_buffer_throws_away_what_comes() {
        let mut backlog = backlog(2, &[(0, 3000), (10, 100)]);
        backlog.produce(200, 0.0, 0.0);
        assert_eq!((backlog.produced_packets, backlog.discarded_packets, backlog.waiting()), (5, 3, 2));
        assert_eq!(backlog.next(), None);
    }

    #[test]
    fn a_modelled_film_is_in_packets_with_its_headers() {
        let film = Film {
            frames_per_second: 25.0,
            key_interval_frames: Some(50),
            min_rate_bps: 1e5,
            max_rate_bps: 4e6,
            most_waiting: 200_000_000,
        };
        let application = Application { produces: Produces::ModelledFilm(film), buffer_packets: 1000 };
        let mut backlog = Backlog::new(application, Ip::V4, 1000, 100, Stream::new(1, "test")).expect("a good film");
        let frames = backlog.produce(60_000_100, 2e6, 1e6);
        let [FlowRecord::FrameProduced { timestamp: 0, packets, bytes, discarded: 0, produced: 100, .. }, FlowRecord::FrameProduced { timestamp: 3600, .. }] =
            frames[..]
        else {
            panic!("{frames:?}")
        };
        // Full packets hold 920 bytes and 12 of the film's header.
        assert_eq!(packets, (bytes - 12 * packets).div_ceil(920));
        let first = backlog.first().expect("it waits").clone();
        assert_eq!((first.bytes, first.content.len(), backlog.waiting_bytes()), (1000, 12, backlog.produced_bytes));
        assert_eq!(backlog.take_film(0, &[0x80; 900], 0.0).map(|_| ()), Ok(()));
        assert_eq!(backlog.take_film(0, &[0x80; 940], 0.0).map(|_| ()), Err(()), "1008 bytes with headers");
        assert_eq!(backlog.take_film(0, &[0x40; 900], 0.0).map(|_| ()), Err(()), "no RTP");
    }
}
