//! The body of a request, which gives on whole messages only: gRPC's server reserves memory for the length that a message announces. What
//! has come of a message that is not whole is counted, over all of the switch's clients.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use fairlane_clients::{Full, Place, Pool, Reason, WHOLE_MESSAGE};
use http_body::{Frame, SizeHint};
use prost::bytes::{Bytes, BytesMut};
use tonic::body::Body;
use tonic::Status;

/// gRPC's head of a message: a flag, and four bytes of length.
const HEAD: usize = 5;
/// The first part of memory for a message; each further one is twice as large, up to `LARGEST`.
const SMALLEST: usize = 4 << 10;
const LARGEST: usize = 256 << 10;

pub(crate) struct Whole {
    inner: Body,
    messages: Pool,
    /// The longest message; gRPC's server refuses a longer one by its head.
    longest: usize,
    /// Between two messages the client may be silent.
    stream: bool,
    head: Vec<u8>,
    /// Bytes that the message still needs, beyond its head.
    left: usize,
    parts: VecDeque<BytesMut>,
    ready: VecDeque<Bytes>,
    place: Option<Place>,
    /// A whole message has come, or the request is refused.
    content: bool,
}

impl Whole {
    pub(crate) fn new(inner: Body, messages: Pool, longest: usize, stream: bool) -> Whole {
        let (head, parts, ready) = (Vec::new(), VecDeque::new(), VecDeque::new());
        Whole { inner, messages, longest, stream, head, left: 0, parts, ready, place: None, content: false }
    }

    fn length(head: &[u8]) -> usize {
        head.get(1..HEAD).map_or(0, |length| length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
    }

    fn place(&mut self, now: Instant) -> Result<&Place, Full> {
        if self.place.is_none() {
            self.place = Some(self.messages.enter(now, Some(WHOLE_MESSAGE))?);
        }
        self.place.as_ref().ok_or(Full)
    }

    fn feed(&mut self, mut data: Bytes, now: Instant) -> Result<(), Full> {
        while !data.is_empty() {
            if self.head.len() < HEAD {
                let whole = HEAD + Self::length(&data);
                if self.head.is_empty() && data.len() >= HEAD && whole - HEAD <= self.longest && data.len() >= whole {
                    self.ready.push_back(data.split_to(whole));
                    self.content = true;
                    continue;
                }
                self.head.extend_from_slice(&data.split_to(data.len().min(HEAD - self.head.len())));
                if self.head.len() < HEAD {
                    break;
                }
                self.left = Self::length(&self.head);
                if self.left > self.longest {
                    self.finish();
                    return Ok(());
                }
            }
            let part = data.split_to(data.len().min(self.left));
            self.left -= part.len();
            self.keep(&part, now)?;
            if self.left == 0 {
                self.finish();
            }
        }
        if !self.head.is_empty() {
            self.place(now)?.touch(now);
        }
        Ok(())
    }

    fn keep(&mut self, mut part: &[u8], now: Instant) -> Result<(), Full> {
        while !part.is_empty() {
            let room = self.parts.back().map_or(0, |last| last.capacity() - last.len());
            if room == 0 {
                // Not for what is announced, beyond this part.
                let size = (SMALLEST << self.parts.len().min(6)).min(LARGEST).min(self.left + part.len());
                self.place(now)?.grow(size, now)?;
                self.parts.push_back(BytesMut::with_capacity(size));
                continue;
            }
            let (now_kept, rest) = part.split_at(room.min(part.len()));
            if let Some(last) = self.parts.back_mut() {
                last.extend_from_slice(now_kept);
            }
            part = rest;
        }
        Ok(())
    }

    fn finish(&mut self) {
        self.content = true;
        self.ready.push_back(std::mem::take(&mut self.head).into());
        self.ready.extend(self.parts.drain(..).map(BytesMut::freeze));
    }
}

fn full(full: Full) -> Status {
    Status::resource_exhausted(full.to_string())
}

fn lost(reason: Reason) -> Status {
    match reason {
        Reason::Crowded => Status::resource_exhausted("the message was given up for other clients' messages, as it had stopped growing: send it again"),
        Reason::Late => Status::deadline_exceeded("the message has not come whole in time: send it again, without a pause of 10 s"),
    }
}

impl http_body::Body for Whole {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        loop {
            if let Some(bytes) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            if this.content && this.head.is_empty() {
                this.place = None;
            }
            if let Some(reason) = this.place.as_ref().and_then(|place| place.gone().poll(context)) {
                return Poll::Ready(Some(Err(lost(reason))));
            }
            let frame = match Pin::new(&mut this.inner).poll_frame(context) {
                Poll::Pending if this.place.is_some() || this.stream || this.content => return Poll::Pending,
                Poll::Pending => {
                    if let Err(error) = this.place(Instant::now()) {
                        return Poll::Ready(Some(Err(full(error))));
                    }
                    continue;
                }
                Poll::Ready(None) if !this.head.is_empty() => {
                    this.head.clear();
                    return Poll::Ready(Some(Err(Status::internal("the request ends within a message"))));
                }
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(frame)) => frame?,
            };
            match frame.into_data() {
                Ok(data) => {
                    if let Err(error) = this.feed(data, Instant::now()) {
                        return Poll::Ready(Some(Err(full(error))));
                    }
                }
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ready.is_empty() && self.head.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}
