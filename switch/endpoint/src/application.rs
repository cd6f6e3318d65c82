//! What an application hands to its transport: frames in pieces that wait, in a buffer with an end, until the rate or the window
//! lets them leave.

use std::collections::VecDeque;

use fairlane_sources::{Emission, Stream};

use crate::raw::{RawSource, RawTraffic, MAX_EMISSION};
use crate::wire::rtp::HEADER_BYTES;
use crate::wire::stamp::MEDIA_BYTES;
use crate::{Nanos, IP_UDP_BYTES};

/// Bytes of IPv4, UDP and RTP headers.
const HEADERS: u32 = (IP_UDP_BYTES + HEADER_BYTES) as u32;
/// The smallest datagram: headers, stamp, instant of production.
pub(crate) const MIN_BYTES: u32 = HEADERS + MEDIA_BYTES as u32;

/// An application above a rate-adaptive flow.
pub struct Application {
    /// What it produces, counted from the flow's start. A frame of more than a packet holds becomes several.
    pub traffic: RawTraffic,
    /// Packets that wait at most; what finds the buffer full is thrown away, and counted.
    pub buffer_packets: u32,
}

/// A packet that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// When its frame was produced.
    pub(crate) produced: Nanos,
    /// Of the IPv4 datagram.
    pub(crate) bytes: u32,
}

/// The application of a flow that runs, and what waits.
pub struct Backlog {
    source: RawSource,
    /// Whether the source's bytes count the headers of the one datagram that each emission is.
    with_headers: bool,
    packet_bytes: u32,
    buffer_packets: usize,
    start: Nanos,
    pending: Option<Emission>,
    waiting: VecDeque<Piece>,
    pub(crate) produced_packets: u64,
    /// Of IPv4 datagrams.
    pub(crate) produced_bytes: u64,
    pub(crate) discarded_packets: u64,
}

impl Backlog {
    /// `stream`: the flow's own. `start`: instant of the source's beginning.
    ///
    /// # Errors
    /// A buffer that holds nothing, and what the source refuses.
    pub fn new(application: Application, packet_bytes: u32, start: Nanos, stream: Stream) -> Result<Backlog, String> {
        if application.buffer_packets == 0 {
            return Err("buffer_packets: a buffer of 0 packets holds none: give at least 1".into());
        }
        let (mut source, with_headers) = application.traffic.source(packet_bytes, stream).map_err(|error| error.to_string())?;
        let pending = source.next();
        Ok(Backlog {
            source,
            with_headers,
            packet_bytes,
            buffer_packets: application.buffer_packets as usize,
            start,
            pending,
            waiting: VecDeque::new(),
            produced_packets: 0,
            produced_bytes: 0,
            discarded_packets: 0,
        })
    }

    /// When [`Backlog::produce`] has something to do.
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.pending.map(|emission| self.start.saturating_add(emission.at))
    }

    /// Takes in what was produced by now.
    pub(crate) fn produce(&mut self, now: Nanos) {
        while let Some(emission) = self.pending.filter(|emission| self.start.saturating_add(emission.at) <= now) {
            let headers = if self.with_headers { 0 } else { HEADERS };
            let most = u64::from(self.packet_bytes - headers);
            let mut left = emission.bytes.min(MAX_EMISSION);
            while left > 0 {
                let part = left.min(most);
                left -= part;
                let bytes = (part as u32 + headers).max(MIN_BYTES);
                self.produced_packets += 1;
                self.produced_bytes += u64::from(bytes);
                if self.waiting.len() < self.buffer_packets {
                    self.waiting.push_back(Piece { produced: self.start.saturating_add(emission.at), bytes });
                } else {
                    self.discarded_packets += 1;
                }
            }
            self.pending = self.source.next();
        }
    }

    /// The packet that waits longest.
    pub(crate) fn first(&self) -> Option<Piece> {
        self.waiting.front().copied()
    }

    /// That packet has left.
    pub(crate) fn pop(&mut self) {
        self.waiting.pop_front();
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backlog(buffer_packets: u32, emissions: &[(Nanos, u64)]) -> Backlog {
        let emissions: Vec<_> = emissions.iter().map(|&(at, bytes)| Emission { at, bytes }).collect();
        let traffic = RawTraffic::Other { source: Box::new(emissions.into_iter()), with_headers: false };
        Backlog::new(Application { traffic, buffer_packets }, 1000, 100, Stream::new(1, "test")).expect("a good source")
    }

    #[test]
    fn frames_become_packets_of_their_instant() {
        let mut backlog = backlog(10, &[(0, 2000), (50, 1), (60, 960)]);
        assert_eq!(backlog.next(), Some(100));
        backlog.produce(150);
        let taken: Vec<_> =
            std::iter::from_fn(|| backlog.first().inspect(|_| backlog.pop())).map(|piece| (piece.produced, piece.bytes)).collect();
        // 960 bytes of a packet are the frame's; 80 are left of 2000; no packet is smaller than its headers and stamps.
        assert_eq!(taken, [(100, 1000), (100, 1000), (100, 120), (150, MIN_BYTES)]);
        assert_eq!((backlog.next(), backlog.waiting()), (Some(160), 0));
    }

    #[test]
    fn a_full_buffer_throws_away_what_comes() {
        let mut backlog = backlog(2, &[(0, 3000), (10, 100)]);
        backlog.produce(200);
        assert_eq!((backlog.produced_packets, backlog.discarded_packets, backlog.waiting()), (5, 3, 2));
        assert_eq!(backlog.next(), None);
    }
}
