//! `Read` over gRPC, with a bound on what its answers take.
//!
//! An answer is read in parts, ahead of the client, and waits encoded, as far as there is room for it ([`crate::reads`]). Beyond that a read goes on only
//! as its client takes what it has, a part at a time. So a client that does not read costs a few kilobytes beyond the budget, and never the device's thread.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use prost::bytes::BufMut;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::codec::{Codec, EncodeBuf, Encoder};
use tonic::codegen::{http, BoxFuture, Service};
use tonic::server::{Grpc, ServerStreamingService};
use tonic::{Request, Response, Status};
use tonic_prost::{ProstCodec, ProstDecoder};

use crate::core::ReadProgress;
use crate::proto::p4::v1 as p4;
use crate::reads::{Encoded, LOOK, STALLED};
use crate::shared::{wire, Shared};
use crate::turns::ReadTurn;

/// A read whose client has taken nothing for so long is ended, whether anybody else wants its room or not.
const ABANDONED: Duration = Duration::from_secs(30);

type Sender = mpsc::Sender<Result<Encoded, Status>>;

/// Reads what a request selects, and sends it as the client takes it.
async fn answer(shared: Arc<Shared>, request: Arc<p4::ReadRequest>, sender: Sender) {
    if let Err(status) = try_answer(&shared, &request, &sender).await {
        tracing::debug!(%status, "Read");
        // The client may be gone as well.
        let _ = sender.send(Err(status)).await;
    }
}

async fn try_answer(shared: &Arc<Shared>, request: &Arc<p4::ReadRequest>, sender: &Sender) -> Result<(), Status> {
    let mut slot = shared.reads.admit().await?;
    let mut turn = Some(shared.turns.read().await);
    slot.taken();
    let mut waiting: VecDeque<Encoded> = VecDeque::new();
    let (mut progress, mut outcome, mut hurried_since) = (ReadProgress::default(), Ok(()), None::<Instant>);
    loop {
        while !waiting.is_empty() {
            match sender.try_reserve() {
                Ok(place) => {
                    if let Some(message) = waiting.pop_front() {
                        place.send(Ok(message));
                    }
                    slot.taken();
                }
                Err(mpsc::error::TrySendError::Full(())) => break,
                Err(mpsc::error::TrySendError::Closed(())) => return Ok(()),
            }
        }
        if turn.is_none() && waiting.is_empty() {
            return outcome;
        }
        // For a client that takes what it has read, and ahead of it as far as there is room and nobody waits.
        if turn.as_ref().is_some_and(|turn| waiting.is_empty() || (shared.reads.has_room() && !turn.is_hurried())) {
            let wanted = Arc::clone(request);
            let part = shared.call(move |core, device, now| {
                let part = core.read_next(&wanted, &mut progress, device, now);
                ((part, progress), Vec::new())
            });
            let ((responses, over), so_far) = part.await?;
            progress = so_far;
            waiting.extend(responses.iter().map(|response| shared.reads.encode(response)));
            if let Some(status) = over {
                outcome = status.map_err(|status| wire(&status));
                // All is read: writes need not wait for the client.
                turn = None;
            }
            continue;
        }
        if turn.as_ref().is_some_and(ReadTurn::is_hurried) {
            hurried_since.get_or_insert_with(Instant::now);
        }
        // A client that takes what it has read has a moment, but not for ever a message at a time.
        let takes = slot.taken.elapsed() < LOOK && hurried_since.is_none_or(|since| since.elapsed() < STALLED);
        tokio::select! {
            place = sender.reserve() => {
                let Ok(place) = place else { return Ok(()) };
                if let Some(message) = waiting.pop_front() {
                    place.send(Ok(message));
                }
                slot.taken();
            }
            () = slot.end.notified() => return Err(Status::resource_exhausted(
                "other reads wait, and this client does not take what it has read: take it faster, or start the switch with a higher \
                 --grpc-server-max-reads",
            )),
            () = hurried(&mut turn), if !takes => return Err(Status::aborted(
                "a Write waits, and this client does not take what it has read: read again, and take it faster, or start the switch \
                 with a higher --grpc-server-max-read-bytes",
            )),
            () = tokio::time::sleep_until(slot.taken + ABANDONED) => return Err(Status::deadline_exceeded(format!(
                "the client has taken nothing of what it reads for {} s",
                ABANDONED.as_secs()
            ))),
            // There may be room by then.
            () = tokio::time::sleep(LOOK), if turn.is_some() => {}
        }
    }
}

async fn hurried(turn: &mut Option<ReadTurn>) {
    match turn {
        Some(turn) => turn.hurried().await,
        None => std::future::pending().await,
    }
}

// The method. tonic's generated code would encode each message when it is sent, so `build.rs` leaves `Read` to this module.

/// The path of the method.
const PATH: &str = "/p4.v1.P4Runtime/Read";

/// A service that answers `Read` itself.
#[derive(Clone)]
pub(crate) struct Reading<S> {
    pub shared: Arc<Shared>,
    pub others: S,
}

impl<S> Service<http::Request<Body>> for Reading<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.others.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        if request.uri().path() != PATH {
            return Box::pin(self.others.call(request));
        }
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            let most = Some(shared.limits.max_message_bytes);
            let mut grpc = Grpc::new(Answers).apply_max_message_size_config(most, most);
            Ok(grpc.server_streaming(Method(shared), request).await)
        })
    }
}

struct Method(Arc<Shared>);

impl ServerStreamingService<p4::ReadRequest> for Method {
    type Response = Encoded;
    type ResponseStream = ReceiverStream<Result<Encoded, Status>>;
    type Future = BoxFuture<Response<Self::ResponseStream>, Status>;

    fn call(&mut self, request: Request<p4::ReadRequest>) -> Self::Future {
        let shared = Arc::clone(&self.0);
        Box::pin(async move {
            let (sender, receiver) = mpsc::channel(1);
            tokio::spawn(answer(shared, Arc::new(request.into_inner()), sender));
            Ok(Response::new(ReceiverStream::new(receiver)))
        })
    }
}

/// Requests are decoded as usual, answers are encoded already.
struct Answers;

impl Codec for Answers {
    type Encode = Encoded;
    type Decode = p4::ReadRequest;
    type Encoder = Answers;
    type Decoder = ProstDecoder<p4::ReadRequest>;

    fn encoder(&mut self) -> Answers {
        Answers
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstCodec::<p4::ReadResponse, p4::ReadRequest>::default().decoder()
    }
}

impl Encoder for Answers {
    type Item = Encoded;
    type Error = Status;

    fn encode(&mut self, message: Encoded, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put_slice(&message.bytes);
        Ok(())
    }
}
