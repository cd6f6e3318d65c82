//! The body of a request, which gives on whole messages only: gRPC's server reserves memory for the length that a message announces. What
//! has come of a message that is not whole is counted, over all of the switch's clients.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use fairlane_clients::{Full, Parts, Place, Pool, Reason, WHOLE_MESSAGE};
use http_body::{Frame, SizeHint};
use prost::bytes::Bytes;
use tonic::body::Body;
use tonic::Status;

/// gRPC's head of a message: a flag, and four bytes of length.
const HEAD: usize = 5;

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
    parts: Parts,
    ready: VecDeque<Bytes>,
    place: Option<Place>,
    /// A whole message has come, or the request is refused.
    content: bool,
}

impl Whole {
    pub(crate) fn new(inner: Body, messages: Pool, longest: usize, stream: bool) -> Whole {
        let (head, parts, ready) = (Vec::new(), Parts::default(), VecDeque::new());
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
            self.place(now)?;
            if let Some(place) = &self.place {
                self.parts.keep(&part, self.left, place, now)?;
            }
            self.left -= part.len();
            if self.left == 0 {
                self.finish();
            }
        }
        if !self.head.is_empty() {
            self.place(now)?.touch(now);
        }
        Ok(())
    }

    fn finish(&mut self) {
        self.content = true;
        self.ready.push_back(std::mem::take(&mut self.head).into());
        self.ready.extend(self.parts.drain().map(Bytes::from));
    }
}

fn full(full: Full) -> Status {
    Status::resource_exhausted(full.to_string())
}

fn lost(reason: Reason) -> Status {
    match reason {
        Reason::Crowded => {
            Status::resource_exhausted("the message was given up for other clients' messages, as it had stopped growing: send it again")
        }
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
                    if this.place.as_ref().is_some_and(Place::must_wait) {
                        context.waker().wake_by_ref();
                        return Poll::Pending;
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

#[cfg(test)]
mod tests {
    use std::task::Waker;
    use std::time::Duration;

    use fairlane_clients::Bounds;
    use http_body::Body as _;
    use proptest::prelude::*;

    use super::*;

    /// What has come, and nothing more for now; or the end.
    struct Came(VecDeque<Bytes>, bool);

    impl http_body::Body for Came {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
            match self.0.pop_front() {
                Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
                None if self.1 => Poll::Ready(None),
                None => Poll::Pending,
            }
        }
    }

    fn pool(most_bytes: usize) -> Pool {
        Pool::new(Bounds { most: 9, most_bytes, spared: Duration::ZERO, stall: None })
    }

    fn whole(parts: impl IntoIterator<Item = Vec<u8>>, ends: bool, messages: &Pool) -> Whole {
        let parts = parts.into_iter().map(Bytes::from).collect();
        Whole::new(Body::new(Came(parts, ends)), messages.clone(), 100_000, false)
    }

    /// Everything that is given on, and how that ends.
    fn given(body: &mut Whole) -> (Vec<u8>, Poll<Option<Status>>) {
        let mut bytes = Vec::new();
        loop {
            match Pin::new(&mut *body).poll_frame(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Some(Ok(frame))) => bytes.extend(frame.into_data().expect("data")),
                Poll::Ready(Some(Err(status))) => return (bytes, Poll::Ready(Some(status))),
                Poll::Ready(None) => return (bytes, Poll::Ready(None)),
                Poll::Pending => return (bytes, Poll::Pending),
            }
        }
    }

    fn message(length: usize) -> Vec<u8> {
        let mut bytes = vec![0];
        bytes.extend((length as u32).to_be_bytes());
        bytes.extend((0..length).map(|index| index as u8));
        bytes
    }

    proptest! {
        #[test]
        fn whole_messages_are_given_on_however_they_come(
            lengths in proptest::collection::vec(0_usize..20_000, 0..5),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..9),
            missing in 0_usize..30_000,
        ) {
            let messages: Vec<Vec<u8>> = lengths.into_iter().map(message).collect();
            let all = messages.concat();
            let came = &all[..all.len() - missing.min(all.len())];
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(came.len() + 1)).collect();
            cuts.extend([0, came.len()]);
            cuts.sort_unstable();
            let parts = cuts.windows(2).map(|pair| came[pair[0]..pair[1]].to_vec());
            let pool = pool(usize::MAX);
            let mut body = whole(parts, true, &pool);
            let (bytes, end) = given(&mut body);
            let mut expected: Vec<u8> = Vec::new();
            for one in &messages {
                if expected.len() + one.len() > came.len() {
                    break;
                }
                expected.extend(one);
            }
            prop_assert!(bytes == expected);
            let Poll::Ready(end) = end else { panic!("pending") };
            prop_assert_eq!(end.is_some(), expected.len() < came.len());
            drop(body);
            prop_assert_eq!(pool.held(), (0, 0));
        }
    }

    #[test]
    fn what_is_announced_takes_no_memory() {
        let pool = pool(usize::MAX);
        let mut body = whole([message(90_000)[..6].to_vec()], false, &pool);
        assert!(matches!(given(&mut body), (bytes, Poll::Pending) if bytes.is_empty()));
        assert!(matches!(pool.held(), (1, 1..=4096)));
    }

    #[test]
    fn a_head_that_announces_too_much_is_given_on_to_be_refused() {
        let pool = pool(usize::MAX);
        let mut body = whole([message(100_001)[..50].to_vec()], false, &pool);
        assert_eq!(given(&mut body).0, message(100_001)[..HEAD]);
        assert_eq!(pool.held(), (0, 0));
    }

    #[test]
    fn messages_have_a_bound_over_all_clients() {
        let pool = pool(10_000);
        let mut first = whole([message(9_000)[..8_000].to_vec()], false, &pool);
        assert!(given(&mut first).1.is_pending());
        let mut second = whole([message(9_000)[..8_000].to_vec()], false, &pool);
        assert!(given(&mut second).1.is_pending(), "the first is idle, and makes way");
        let Poll::Ready(Some(lost)) = given(&mut first).1 else { panic!("the first has lost its place") };
        assert_eq!(lost.code(), tonic::Code::ResourceExhausted);
        let mut third = whole([message(20_000)[..19_000].to_vec()], false, &pool);
        let Poll::Ready(Some(full)) = given(&mut third).1 else { panic!("there is no room for it at all") };
        assert_eq!(full.code(), tonic::Code::ResourceExhausted);
    }
}
