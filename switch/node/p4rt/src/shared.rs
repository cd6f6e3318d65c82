//! What the server's tasks share: the core, its clients and the device's thread, on which every request becomes a job.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use fairlane_device::{lock, Closed, Device, DeviceAccess};
use fairlane_pipeline::Nanos;
use tokio::sync::{mpsc, oneshot, Notify};
use tonic::Response;

use crate::arbitration::{ClientId, Notification};
use crate::core::{Core, WriteProgress};
use crate::limits::Limits;
use crate::proto::p4::v1 as p4;
use crate::reads::Reads;
use crate::status::Status;
use crate::turns::Turns;

use p4::stream_message_response::Update as StreamUpdate;

pub(crate) type Outgoing = mpsc::Sender<Result<p4::StreamMessageResponse, tonic::Status>>;

/// A client's stream.
pub(crate) struct Client {
    pub queue: Outgoing,
    /// Who is primary was said to it: it is a controller.
    pub arbitrated: bool,
    /// Its end, when this is dropped.
    pub _open: oneshot::Sender<()>,
}

pub(crate) struct Shared {
    pub access: Arc<dyn DeviceAccess>,
    pub core: Mutex<Core>,
    pub clients: Mutex<HashMap<ClientId, Client>>,
    pub next_client: AtomicU64,
    /// The deadline that the timer task knows; `Nanos::MAX` is none.
    pub armed: AtomicU64,
    pub rearm: Notify,
    /// Messages lost because a client did not read.
    pub lost: AtomicU64,
    pub limits: Limits,
    pub turns: Turns,
    pub reads: Reads,
}

impl Shared {
    /// Queues messages for their clients. Never blocks.
    pub fn dispatch(&self, messages: Vec<Notification>) {
        if messages.is_empty() {
            return;
        }
        let mut clients = lock(&self.clients);
        for (client, message) in messages {
            let Some(Client { queue, arbitrated, .. }) = clients.get_mut(&client) else { continue };
            let must_arrive = matches!(message.update, Some(StreamUpdate::Arbitration(_)));
            *arbitrated |= must_arrive;
            if queue.try_send(Ok(message)).is_ok() {
                continue;
            }
            if must_arrive {
                // A client that misses who is primary must not go on: it sees its stream end.
                clients.remove(&client);
                tracing::warn!(client = client.0, "the client does not read its stream: closed");
            } else if self.lost.fetch_add(1, Ordering::Relaxed) == 0 {
                tracing::warn!(client = client.0, "the client does not read fast enough: packets or digests are lost");
            }
        }
    }

    /// Wakes the timer when the core's next deadline is another.
    pub fn arm(&self, core: &Core) {
        let deadline = core.next_deadline().unwrap_or(Nanos::MAX);
        if self.armed.swap(deadline, Ordering::AcqRel) != deadline {
            self.rearm.notify_one();
        }
    }

    /// Runs work on the device's thread, and dispatches the messages it leads to before anything else runs there.
    pub fn submit<R: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&mut Core, &mut Device, Nanos) -> (R, Vec<Notification>) + Send + 'static,
        done: impl FnOnce(R) + Send + 'static,
    ) -> Result<(), Closed> {
        let shared = Arc::clone(self);
        self.access.submit(Box::new(move |device, now| {
            let mut core = lock(&shared.core);
            let (result, messages) = work(&mut core, device, now);
            shared.arm(&core);
            shared.dispatch(messages);
            drop(core);
            done(result);
        }))
    }

    pub async fn call<R: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&mut Core, &mut Device, Nanos) -> (R, Vec<Notification>) + Send + 'static,
    ) -> Result<R, tonic::Status> {
        let (sender, receiver) = oneshot::channel();
        // The request may have been cancelled meanwhile: then nobody wants the result.
        self.submit(work, |result| drop(sender.send(result))).map_err(closed)?;
        receiver.await.map_err(|_| closed(Closed))
    }

    /// Applies a batch; the device's thread serves packets between its parts.
    pub async fn write_in_parts(self: &Arc<Self>, request: &Arc<p4::WriteRequest>) -> Result<WriteProgress, tonic::Status> {
        let mut progress = WriteProgress::default();
        loop {
            let request = Arc::clone(request);
            let part = self.call(move |core, device, now| {
                let over = core.write_next(&request, &mut progress, device, now);
                ((over, progress), Vec::new())
            });
            let (over, so_far) = part.await?;
            progress = so_far;
            if over {
                return Ok(progress);
            }
        }
    }

    pub async fn request<R: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&mut Core, &mut Device, Nanos) -> crate::status::Result<R> + Send + 'static,
    ) -> Result<Response<R>, tonic::Status> {
        let result = self.call(|core, device, now| (work(core, device, now), Vec::new())).await?;
        result.map(Response::new).map_err(|status| wire(&status))
    }

    pub fn disconnect(self: &Arc<Self>, client: ClientId) {
        lock(&self.clients).remove(&client);
        // When the device is gone there is nobody left to tell.
        let _ = self.submit(move |core, _, _| ((), core.disconnect(client)), drop);
    }

    /// Ends all streams.
    pub fn close(&self) {
        for (_, client) in lock(&self.clients).drain() {
            let _ = client.queue.try_send(Err(closed(Closed)));
        }
    }
}

pub(crate) fn closed(closed: Closed) -> tonic::Status {
    tonic::Status::unavailable(closed.to_string())
}

/// A status for gRPC, with its details in `grpc-status-details-bin`.
pub(crate) fn wire(status: &Status) -> tonic::Status {
    let code = tonic::Code::from(status.code as i32);
    let (message, details) = status.trailers();
    if details.is_empty() {
        tonic::Status::new(code, message)
    } else {
        tonic::Status::with_details(code, message, details.into())
    }
}
