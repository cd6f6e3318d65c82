//! The gRPC server around [`Core`].
//!
//! Every request becomes a job on the device's thread ([`DeviceAccess`]); so the core has one caller at a time, and a packet never
//! waits for a lock. Large reads and writes are several jobs. The data plane's events are given to the core by that thread too
//! ([`EventSink::deliver`]). Messages for clients go through a bounded queue for each stream, and answers to reads through a budget for all of
//! them (`reading.rs`): a client that does not read loses packets and digests, or its read, never the switch its memory.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fairlane_clients::{Clients, EXPIRE_EACH};
use fairlane_device::{lock, Closed, Device, DeviceAccess, Event};
use fairlane_pipeline::Nanos;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot, watch, Notify, Semaphore};
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::Stream;
use tonic::{Code, Request, Response, Streaming};

use crate::arbitration::ClientId;
use crate::core::Core;
use crate::doors::Doors;
use crate::incoming;
use crate::limits::Limits;
use crate::oversize::{self, Oversize};
use crate::proto::p4::v1 as p4;
use crate::reading::Reading;
use crate::reads::Reads;
use crate::shared::{closed, wire, Client, Outgoing, Shared};
use crate::status::Status;
use crate::tls::{self, TlsError, TlsFiles};
use crate::turns::Turns;

use p4::p4_runtime_server::{P4Runtime, P4RuntimeServer};

/// How a server is set up.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Where to listen; port 0 lets the system choose.
    pub address: SocketAddr,
    /// The device id that clients must give.
    pub device_id: u64,
    /// Nanoseconds since the Unix epoch at the device's instant 0, for timestamps.
    pub epoch: Nanos,
    /// What clients may take.
    pub limits: Limits,
    /// Certificate and key; `None` serves without TLS.
    pub tls: Option<TlsFiles>,
    /// What the clients of all services of the switch hold.
    pub clients: Clients,
}

impl Default for ServerConfig {
    /// The loopback address with the port of P4Runtime, device 0, the default limits, no TLS.
    fn default() -> Self {
        ServerConfig {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 9559)),
            device_id: 0,
            epoch: 0,
            limits: Limits::default(),
            tls: None,
            clients: Clients::default(),
        }
    }
}

/// Why a server does not start.
#[derive(Debug)]
pub enum ServeError {
    /// Something else listens on the address.
    AddressInUse(SocketAddr),
    /// The address cannot be listened on.
    Bind(SocketAddr, io::Error),
    /// TLS was asked for and cannot be had.
    Tls(TlsError),
    /// The threads of the server cannot be started.
    Start(io::Error),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServeError::AddressInUse(address) => write!(
                f,
                "P4Runtime cannot listen on {address}: the address is in use (by another switch?); stop that one or choose \
                 another address with --grpc-server-addr"
            ),
            ServeError::Bind(address, error) => write!(f, "P4Runtime cannot listen on {address}: {error}"),
            ServeError::Tls(error) => error.fmt(f),
            ServeError::Start(error) => write!(f, "the P4Runtime server cannot start: {error}"),
        }
    }
}

impl std::error::Error for ServeError {}

/// Sends digests when their time has come.
async fn timer(shared: Arc<Shared>) {
    loop {
        let tick = shared.call(|core, _, now| {
            let messages = core.tick(now);
            (core.next_deadline().map(|deadline| deadline.saturating_sub(now)), messages)
        });
        let Ok(wait) = tick.await else { return };
        match wait {
            None => shared.rearm.notified().await,
            Some(wait) => {
                // Not twice in a row for rounding.
                let sleep = tokio::time::sleep(Duration::from_nanos(wait).max(Duration::from_micros(100)));
                tokio::select! {
                    () = sleep => {}
                    () = shared.rearm.notified() => {}
                }
            }
        }
    }
}

/// Takes their places from clients whose time is over.
async fn expire(clients: Clients) {
    loop {
        tokio::time::sleep(EXPIRE_EACH).await;
        clients.expire(std::time::Instant::now());
    }
}

struct Service(Arc<Shared>);

impl Service {
    /// Reads and builds a pipeline on a thread of its own; only the exchange happens on the device's, so that packets go on.
    async fn set_pipeline(&self, request: Arc<p4::SetForwardingPipelineConfigRequest>) -> Result<crate::status::Result<()>, tonic::Status> {
        let asked = Arc::clone(&request);
        let allowed = move |core: &mut Core, device: &mut Device, _: Nanos| {
            (core.may_set_pipeline(&asked).map(|()| device.config().clone()), Vec::new())
        };
        let device = match self.0.call(allowed).await? {
            Ok(device) => device,
            Err(status) => return Ok(Err(status)),
        };
        let (asked, limits) = (Arc::clone(&request), self.0.limits);
        let prepared = tokio::task::spawn_blocking(move || Core::prepare_pipeline(&asked, limits, device));
        let prepared = prepared.await.map_err(|error| tonic::Status::internal(format!("the pipeline cannot be read: {error}")))?;
        let work =
            move |core: &mut Core, device: &mut Device, now| (core.set_prepared_pipeline(&request, prepared, device, now), Vec::new());
        let turn = self.0.turns.write().await;
        let done = self.0.call(work).await?;
        drop(turn);
        Ok(done.map(|retired| {
            // Nobody waits for the memory.
            tokio::task::spawn_blocking(move || drop(retired));
        }))
    }
}

type BoxStream<T> = Pin<Box<dyn Stream<Item = Result<T, tonic::Status>> + Send>>;

/// Messages that one client's queue holds at least: an answer to arbitration must find room.
const MIN_QUEUE: usize = 16;

/// Packet-outs and acknowledgements of one client that wait for the device's thread.
const PENDING: usize = 256;

#[tonic::async_trait]
impl P4Runtime for Service {
    async fn write(&self, request: Request<p4::WriteRequest>) -> Result<Response<p4::WriteResponse>, tonic::Status> {
        let (shared, request) = (Arc::clone(&self.0), Arc::new(request.into_inner()));
        let turn = shared.turns.write().await;
        // A client that no longer waits for the answer does not stop its batch half-way.
        let done = tokio::spawn(async move {
            let done = shared.write_in_parts(&request).await;
            drop(turn);
            done.map(|progress| progress.finish(&request))
        });
        match done.await.map_err(|error| tonic::Status::internal(format!("the write has ended: {error}")))?? {
            Ok(()) => Ok(Response::new(p4::WriteResponse {})),
            Err(status) => {
                tracing::debug!(%status, "Write");
                Err(wire(&status))
            }
        }
    }

    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<p4::SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<p4::SetForwardingPipelineConfigResponse>, tonic::Status> {
        let request = Arc::new(request.into_inner());
        let action = request.action().as_str_name();
        match self.set_pipeline(request).await? {
            Ok(()) => {
                tracing::info!("SetForwardingPipelineConfig {action}");
                Ok(Response::new(p4::SetForwardingPipelineConfigResponse {}))
            }
            Err(status) => {
                tracing::warn!(%status, "SetForwardingPipelineConfig {action}");
                Err(wire(&status))
            }
        }
    }

    async fn get_forwarding_pipeline_config(
        &self,
        request: Request<p4::GetForwardingPipelineConfigRequest>,
    ) -> Result<Response<p4::GetForwardingPipelineConfigResponse>, tonic::Status> {
        let request = request.into_inner();
        self.0
            .request(move |core, device, _| {
                let response = core.get_pipeline(&request)?;
                if response.config.is_none() && device.switch().is_some() {
                    // As BMv2: clients push their config when they are told so.
                    return Err(Status::precondition(
                        "the switch runs a program of its command line, whose P4Info is not known: push it by SetForwardingPipelineConfig",
                    ));
                }
                Ok(response)
            })
            .await
    }

    type StreamChannelStream = BoxStream<p4::StreamMessageResponse>;

    async fn stream_channel(
        &self,
        request: Request<Streaming<p4::StreamMessageRequest>>,
    ) -> Result<Response<Self::StreamChannelStream>, tonic::Status> {
        let limits = self.0.limits;
        let client = ClientId(self.0.next_client.fetch_add(1, Ordering::Relaxed));
        let (sender, receiver) = mpsc::channel(limits.max_queue.max(MIN_QUEUE));
        let (open, ended) = oneshot::channel();
        {
            let mut clients = lock(&self.0.clients);
            if clients.len() >= limits.max_streams && !end_idlest(&mut clients) {
                tracing::warn!(streams = clients.len(), "another client's stream is refused");
                return Err(tonic::Status::resource_exhausted(format!(
                    "{} streams are open, which is the limit: close one, or start the switch with a higher \
                     --grpc-server-max-streams",
                    clients.len()
                )));
            }
            clients.insert(client, Client { queue: sender.clone(), arbitrated: false, _open: open });
        }
        tracing::info!(client = client.0, "a client has opened a stream");
        tokio::spawn(serve_stream(Arc::clone(&self.0), client, request.into_inner(), sender, ended));
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    async fn capabilities(&self, request: Request<p4::CapabilitiesRequest>) -> Result<Response<p4::CapabilitiesResponse>, tonic::Status> {
        let request = request.into_inner();
        self.0.request(move |core, _, _| core.capabilities(&request)).await
    }
}

/// Ends the oldest of the streams that have never taken part in arbitration: their clients are no controllers. False when there is none.
fn end_idlest(clients: &mut HashMap<ClientId, Client>) -> bool {
    let oldest = clients.iter().filter(|(_, client)| !client.arbitrated).map(|(id, _)| *id).min_by_key(|id| id.0);
    let Some(client) = oldest.and_then(|id| clients.remove(&id)) else { return false };
    let _ = client.queue.try_send(Err(tonic::Status::resource_exhausted(
        "the stream is closed for another client's: no MasterArbitrationUpdate has come on it, which must be the first message",
    )));
    true
}

/// Reads one client's stream until it ends, or is to end.
async fn serve_stream(
    shared: Arc<Shared>,
    client: ClientId,
    mut incoming: Streaming<p4::StreamMessageRequest>,
    outgoing: Outgoing,
    mut ended: oneshot::Receiver<()>,
) {
    let pending = Arc::new(Semaphore::new(PENDING));
    loop {
        let message = tokio::select! {
            message = incoming.message() => message,
            () = outgoing.closed() => break,
            _ = &mut ended => break,
        };
        let message = match message {
            Ok(Some(message)) => message,
            Ok(None) => break,
            Err(status) => {
                let given_up = matches!(status.code(), Code::ResourceExhausted | Code::DeadlineExceeded).then(|| status.clone());
                if let Some(refusal) = oversize::status(&status).or(given_up) {
                    tracing::info!(client = client.0, %refusal, "the client's stream is closed");
                    let _ = outgoing.try_send(Err(refusal));
                }
                break;
            }
        };
        let Ok(permit) = Arc::clone(&pending).acquire_owned().await else { break };
        let outgoing = outgoing.clone();
        let in_job = Arc::clone(&shared);
        let submitted = shared.submit(
            move |core, device, now| {
                let output = core.stream_message(client, message, device, now);
                (output.terminate, output.messages)
            },
            move |terminate| {
                if let Some(status) = terminate {
                    tracing::info!(client = client.0, %status, "the client's stream is closed");
                    lock(&in_job.clients).remove(&client);
                    let _ = outgoing.try_send(Err(wire(&status)));
                }
                drop(permit);
            },
        );
        if submitted.is_err() {
            let _ = outgoing_error(&shared, client);
            break;
        }
    }
    tracing::info!(client = client.0, "the client's stream has ended");
    shared.disconnect(client);
}

/// Tells a client that the device is gone.
fn outgoing_error(shared: &Shared, client: ClientId) -> Option<()> {
    let client = lock(&shared.clients).remove(&client)?;
    client.queue.try_send(Err(closed(Closed))).ok()
}

/// Where the device's thread puts what the data plane has to say.
#[derive(Clone)]
pub struct EventSink(Arc<Shared>);

impl EventSink {
    /// Turns events into messages for the primary clients. Called by the owner of the device with what
    /// [`Device::take_events`] gave; does not block.
    pub fn deliver(&self, events: Vec<Event>, now: Nanos) {
        if events.is_empty() {
            return;
        }
        let mut core = lock(&self.0.core);
        let messages = core.on_device_events(events, now);
        self.0.arm(&core);
        self.0.dispatch(messages);
    }
}

/// A running server. Dropping it shuts it down.
pub struct Server {
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
    stop: watch::Sender<bool>,
    done: Option<oneshot::Receiver<()>>,
    address: SocketAddr,
}

/// How long clients have to take leave when the server shuts down.
const FAREWELL: Duration = Duration::from_millis(500);

impl Server {
    /// Listens and serves, on a thread of its own.
    ///
    /// # Errors
    /// [`ServeError`], before any client is served.
    pub fn start(config: ServerConfig, access: Arc<dyn DeviceAccess>) -> Result<Server, ServeError> {
        let mut builder = tonic::transport::Server::builder();
        let mut purpose = None;
        if let Some(files) = &config.tls {
            let tls = tls::load(files).map_err(ServeError::Tls)?;
            purpose = tls::Purpose::of_clients(files).map_err(ServeError::Tls)?.map(Arc::new);
            builder = builder.tls_config(tls).map_err(|error| ServeError::Tls(tls::mismatch(files, &error)))?;
        }
        let listener = TcpListener::bind(config.address).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => ServeError::AddressInUse(config.address),
            _ => ServeError::Bind(config.address, error),
        })?;
        let start = ServeError::Start;
        listener.set_nonblocking(true).map_err(start)?;
        let address = listener.local_addr().map_err(start)?;
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).thread_name("p4runtime").enable_all().build().map_err(start)?;
        let shared = Arc::new(Shared {
            access,
            core: Mutex::new(Core::new(config.device_id, config.epoch).with_limits(config.limits)),
            clients: Mutex::new(HashMap::new()),
            next_client: AtomicU64::new(1),
            armed: AtomicU64::new(Nanos::MAX),
            rearm: Notify::new(),
            lost: AtomicU64::new(0),
            limits: config.limits,
            turns: Turns::default(),
            reads: Reads::new(&config.limits),
        });
        let service = P4RuntimeServer::new(Service(Arc::clone(&shared)))
            .max_decoding_message_size(config.limits.max_message_bytes)
            .max_encoding_message_size(config.limits.max_message_bytes);
        let (stop, mut stopped) = watch::channel(false);
        let (finished, done) = oneshot::channel();
        let guard = runtime.enter();
        let listener = tokio::net::TcpListener::from_std(listener).map_err(start)?;
        drop(guard);
        let (sender, incoming) = mpsc::channel(incoming::WAITING);
        runtime.spawn(incoming::accept(listener, config.clients.clone(), sender));
        let incoming = ReceiverStream::new(incoming);
        let service = Doors {
            inner: Oversize(Reading { shared: Arc::clone(&shared), others: service }),
            messages: config.clients.messages.clone(),
            longest: config.limits.max_message_bytes,
            purpose,
        };
        runtime.spawn(expire(config.clients));
        runtime.spawn(timer(Arc::clone(&shared)));
        runtime.spawn(async move {
            // Keep-alives find clients that vanished without closing: another may then become primary.
            let result = builder
                .http2_keepalive_interval(Some(Duration::from_secs(10)))
                .http2_keepalive_timeout(Some(Duration::from_secs(10)))
                .serve_with_incoming_shutdown(service, incoming, async move {
                    // An error means that the sender is gone, which is a stop as well.
                    let _ = stopped.wait_for(|stop| *stop).await;
                })
                .await;
            if let Err(error) = result {
                tracing::error!(%error, "the P4Runtime server has ended");
            }
            let _ = finished.send(());
        });
        tracing::info!(%address, tls = config.tls.is_some(), "P4Runtime server listening");
        Ok(Server { shared, runtime: Some(runtime), stop, done: Some(done), address })
    }

    /// The address it listens on, with the port that the system chose.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Where the device's thread delivers events.
    pub fn event_sink(&self) -> EventSink {
        EventSink(Arc::clone(&self.shared))
    }

    /// Ends all streams, finishes requests under way where the device still answers, and stops listening.
    pub fn shutdown(mut self) {
        self.stop_now();
    }

    fn stop_now(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        let _ = self.stop.send(true);
        self.shared.close();
        if let Some(done) = self.done.take() {
            runtime.block_on(async {
                // Streams that clients keep open all the same are cut.
                let _ = tokio::time::timeout(FAREWELL, done).await;
            });
        }
        runtime.shutdown_background();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop_now();
    }
}
