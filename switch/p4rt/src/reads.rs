//! `Read` over gRPC, with a bound on what its answers take.
//!
//! An answer is read in parts, ahead of the client, and waits encoded. All answers that wait share a budget of bytes; beyond it a read goes on
//! only as its client takes what it has, a part at a time. So a client that does not read costs a few kilobytes beyond the budget, and never the
//! device's thread. The number of reads is bounded, too: where one more would be too many, the one whose client has taken nothing for
//! longest makes room.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use prost::bytes::BufMut;
use prost::Message;
use tokio::sync::{mpsc, Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::codec::{Codec, EncodeBuf, Encoder};
use tonic::codegen::{http, BoxFuture, Service};
use tonic::server::{Grpc, ServerStreamingService};
use tonic::{Request, Response, Status};
use tonic_prost::{ProstCodec, ProstDecoder};

use crate::core::ReadProgress;
use crate::limits::Limits;
use crate::proto::p4::v1 as p4;
use crate::server::{lock, wire, Shared};
use crate::turns::ReadTurn;

/// A read whose client has taken nothing for so long makes room for another.
const STALLED: Duration = Duration::from_millis(500);
/// So long a new read waits for room.
const ADMISSION: Duration = Duration::from_secs(1);
/// A read whose client has taken nothing for so long is ended, whether anybody else wants its room or not.
const ABANDONED: Duration = Duration::from_secs(30);
/// How often a read that waits looks for room.
const LOOK: Duration = Duration::from_millis(20);
/// The budget is counted in these.
const UNIT_BYTES: usize = 1024;
/// A part is read ahead only where so many units are free.
const PART_UNITS: usize = 64;

/// The reads under way, and the room for their answers.
#[derive(Debug)]
pub(crate) struct Reads {
    most: usize,
    room: Arc<Semaphore>,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    by_number: HashMap<u64, Pace>,
}

#[derive(Debug)]
struct Pace {
    /// When the client last took something.
    taken: Instant,
    end: Arc<Notify>,
}

/// A read under way, until it is dropped.
struct Slot<'a> {
    reads: &'a Reads,
    number: u64,
    end: Arc<Notify>,
    taken: Instant,
}

impl Slot<'_> {
    fn taken(&mut self) {
        self.taken = Instant::now();
        if let Some(pace) = lock(&self.reads.open).by_number.get_mut(&self.number) {
            pace.taken = self.taken;
        }
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        lock(&self.reads.open).by_number.remove(&self.number);
    }
}

impl Reads {
    pub fn new(limits: &Limits) -> Reads {
        let units = (limits.max_read_bytes / UNIT_BYTES).clamp(1, Semaphore::MAX_PERMITS);
        Reads { most: limits.max_reads, room: Arc::new(Semaphore::new(units)), open: Mutex::default() }
    }

    /// A place among the reads, now or soon.
    async fn admit(&self) -> Result<Slot<'_>, Status> {
        let deadline = Instant::now() + ADMISSION;
        loop {
            if let Some(slot) = self.try_admit() {
                return Ok(slot);
            }
            if Instant::now() >= deadline {
                return Err(Status::resource_exhausted(format!(
                    "{} reads are under way, which is the limit: try again, or start the switch with a higher --grpc-server-max-reads",
                    self.most
                )));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn try_admit(&self) -> Option<Slot<'_>> {
        let mut open = lock(&self.open);
        if open.by_number.len() >= self.most {
            let (&number, pace) = open.by_number.iter().min_by_key(|(_, pace)| pace.taken)?;
            if pace.taken.elapsed() < STALLED {
                return None;
            }
            pace.end.notify_one();
            open.by_number.remove(&number);
        }
        let number = open.next;
        open.next += 1;
        let (taken, end) = (Instant::now(), Arc::new(Notify::new()));
        open.by_number.insert(number, Pace { taken, end: Arc::clone(&end) });
        Some(Slot { reads: self, number, end, taken })
    }

    /// A part may be read ahead.
    fn has_room(&self) -> bool {
        self.room.available_permits() >= PART_UNITS
    }

    /// A message with its share of the budget. It has none where the budget is spent: each read may be one part ahead in any case.
    fn encode(&self, response: &p4::ReadResponse) -> Encoded {
        let bytes = response.encode_to_vec();
        let units = u32::try_from(bytes.len().div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX);
        Encoded { bytes, _room: Arc::clone(&self.room).try_acquire_many_owned(units).ok() }
    }
}

/// A message of an answer, encoded, with its share of the budget.
pub(crate) struct Encoded {
    bytes: Vec<u8>,
    _room: Option<OwnedSemaphorePermit>,
}

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
    let (mut progress, mut outcome) = (ReadProgress::default(), Ok(()));
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
            () = hurried(&mut turn) => return Err(Status::aborted(
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
