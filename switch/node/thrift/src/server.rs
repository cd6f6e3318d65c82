//! The TCP server: multiplexed services, buffered transport, binary protocol. One thread serves all clients; calls act on the device's.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use fairlane_clients::{Clients, Full, Parts, Place, Reader, EXPIRE_EACH, WHOLE_MESSAGE};
use fairlane_device::pipeline::{PacketEvent, Program};
use fairlane_device::{call, lock, Closed, Device, DeviceAccess, Event, Nanos, PortId};
use thrift::protocol::{TBinaryInputProtocol, TBinaryOutputProtocol, TInputProtocol, TMessageIdentifier, TMessageType, TOutputProtocol};
use thrift::{ApplicationErrorKind, TConfiguration};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, Notify, Semaphore};

use crate::notify::{Notifier, SWAP_DONE, SWAP_LOADED, SWAP_REQUESTED};
use crate::ports::Ports;
use crate::publish::Publisher;
use crate::scan::{Malformed, Scan, LONGEST};
use crate::service::{Answer, Core, Failure, Identity};
use crate::value::{read_fields, write_fields, Fields, Kind, Value};

/// What is read at once.
const CHUNK: usize = 16 << 10;
/// Between two tries to accept, when the process may open no more files.
const AGAIN: Duration = Duration::from_millis(50);
/// Between two looks at whether those that have lost their places have let their memory go.
const LET_GO: Duration = Duration::from_millis(1);
/// Calls whose answers are made at the same time.
const CALLS: usize = 8;
/// The call that reads a table.
const TABLE_READ: &str = "bm_mt_get_entries";

/// How a server is set up.
pub struct ServerConfig {
    /// Where to listen; port 0 lets the system choose.
    pub address: SocketAddr,
    /// What the switch says of itself; the server adds port and notifications' address.
    pub identity: Identity,
    /// The interfaces.
    pub ports: Arc<dyn Ports>,
    /// Where notifications go.
    pub publisher: Option<Publisher>,
    /// Where packets' steps go, when the device keeps them ([`fairlane_device::DeviceConfig`]).
    pub event_log: Option<Publisher>,
    /// The device's time, for notifications that wait.
    pub clock: fn() -> Nanos,
    /// What the clients of all services of the switch hold.
    pub clients: Clients,
}

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Something else listens on the address.
    #[error("Thrift cannot listen on {0}: the address is in use (by another switch?)")]
    AddressInUse(SocketAddr),
    /// The address cannot be listened on.
    #[error("Thrift cannot listen on {0}: {1}")]
    Bind(SocketAddr, io::Error),
    /// A thread cannot be started.
    #[error("the Thrift server cannot start: {0}")]
    Start(io::Error),
}

struct Shared {
    access: Arc<dyn DeviceAccess>,
    core: Mutex<Core>,
    ports: Arc<dyn Ports>,
    notifier: Mutex<Notifier>,
    /// One client at a time reads a table: an answer is as long as that.
    reading: Semaphore,
    /// The timer has to look again.
    rearm: Condvar,
    publisher: Option<Publisher>,
    event_log: Option<(u64, Publisher)>,
    clients: Clients,
    calls: Semaphore,
    stopped: AtomicBool,
    stop: Notify,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

/// A running server. Dropping it stops it: clients' connections end with the process.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
}

impl Server {
    /// Listens and serves, on threads of its own.
    ///
    /// # Errors
    /// [`ServeError`], before any client is served.
    pub fn start(config: ServerConfig, access: Arc<dyn DeviceAccess>) -> Result<Server, ServeError> {
        let listener = std::net::TcpListener::bind(config.address).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => ServeError::AddressInUse(config.address),
            _ => ServeError::Bind(config.address, error),
        })?;
        let address = listener.local_addr().map_err(ServeError::Start)?;
        let named = |publisher: &Option<Publisher>| publisher.as_ref().map(|publisher| publisher.address().to_string());
        let (notifications, event_log) = (named(&config.publisher), named(&config.event_log));
        let identity = Identity { thrift_port: address.port(), notifications, event_log, ..config.identity };
        let shared = Arc::new(Shared {
            access,
            notifier: Mutex::new(Notifier::new(identity.device_id)),
            reading: Semaphore::new(1),
            core: Mutex::new(Core::new(identity.clone())),
            ports: config.ports,
            rearm: Condvar::new(),
            publisher: config.publisher,
            event_log: config.event_log.map(|publisher| (identity.device_id, publisher)),
            clients: config.clients,
            calls: Semaphore::new(CALLS),
            stopped: AtomicBool::new(false),
            stop: Notify::new(),
        });
        listener.set_nonblocking(true).map_err(ServeError::Start)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(CALLS).build();
        let runtime = runtime.map_err(ServeError::Start)?;
        let guard = runtime.enter();
        let listener = TcpListener::from_std(listener).map_err(ServeError::Start)?;
        drop(guard);
        let accepting = Arc::clone(&shared);
        let thread = |name: &str| std::thread::Builder::new().name(name.into());
        let serving = move || {
            runtime.spawn(expire(accepting.clients.clone()));
            runtime.block_on(accept(listener, accepting));
            runtime.shutdown_background();
        };
        thread("thrift").spawn(serving).map_err(ServeError::Start)?;
        let waiting = Arc::clone(&shared);
        thread("learning").spawn(move || waiting.timer(config.clock)).map_err(ServeError::Start)?;
        tracing::info!(%address, "Thrift server listening");
        Ok(Server { shared, address })
    }

    /// The address it listens on, with the port that the system chose.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Where the device's thread delivers events.
    pub fn event_sink(&self) -> EventSink {
        EventSink(Arc::clone(&self.shared))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Release);
        self.shared.rearm.notify_all();
        self.shared.stop.notify_one();
    }
}

/// Where the device's thread puts what the data plane and the interfaces have to say.
#[derive(Clone)]
pub struct EventSink(Arc<Shared>);

impl EventSink {
    /// Publishes events. Called by the owner of the device with what [`Device::take_events`] gave; does not block.
    pub fn deliver(&self, events: &[Event], device: &Device, now: Nanos) {
        let (Some(switch), false) = (device.switch(), events.is_empty()) else { return };
        let mut notifier = lock(&self.0.notifier);
        let before = notifier.next_deadline();
        let messages = notifier.on_events(events, switch, now);
        if notifier.next_deadline() != before {
            self.0.rearm.notify_one();
        }
        self.0.publish(&messages);
    }

    /// Whether somebody subscribes to the steps of packets.
    pub fn wants_steps(&self) -> bool {
        self.0.event_log.as_ref().is_some_and(|(_, publisher)| publisher.has_subscribers())
    }

    /// Publishes a step of a packet. Called by the owner of the device; does not block.
    pub fn step(&self, event: &PacketEvent) {
        if let Some((device_id, publisher)) = &self.0.event_log
            && let Some(message) = crate::nanolog::message(*device_id, event)
        {
            publisher.publish(&message);
        }
    }

    /// Publishes that an interface went up or down.
    pub fn port(&self, port: PortId, up: bool) {
        let message = lock(&self.0.notifier).port(port, up);
        self.0.publish(&[message]);
    }
}

impl Shared {
    fn publish(&self, messages: &[Vec<u8>]) {
        if let Some(publisher) = &self.publisher {
            messages.iter().for_each(|message| publisher.publish(message));
        }
    }

    /// Sends the samples of digests that have waited for long enough.
    fn timer(&self, clock: fn() -> Nanos) {
        let mut notifier = lock(&self.notifier);
        while !self.stopped.load(Ordering::Acquire) {
            let messages = notifier.tick(clock());
            self.publish(&messages);
            let wait = notifier.next_deadline().map_or(Duration::from_secs(3600), |due| Duration::from_nanos(due.saturating_sub(clock())));
            let wait = wait.max(Duration::from_millis(1));
            notifier = self.rearm.wait_timeout(notifier, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Serves a call: what acts on the device is a job of its thread, what takes time is on one of its own.
    async fn call(self: &Arc<Self>, service: &str, method: &str, args: Fields) -> Answer {
        let work: fn(&Arc<Shared>, &Fields) -> Answer = match (service, method) {
            ("standard", "bm_dev_mgr_show_ports") => |shared, _| Ok(Some(shared.show_ports())),
            ("standard", "bm_dev_mgr_add_port") => |shared, args| {
                let (interface, pcap) = (args.string(1)?, args.string(3).ok().filter(|path| !path.is_empty()));
                shared.port_change(shared.ports.add(args.i32(2)? as PortId, interface, pcap))
            },
            ("standard", "bm_dev_mgr_remove_port") => |shared, args| shared.port_change(shared.ports.remove(args.i32(1)? as PortId)),
            ("standard", "bm_load_new_config") => |shared, args| shared.load(args),
            ("standard", TABLE_READ) => Shared::entries,
            ("standard", _) if method.starts_with("bm_learning_") => return self.learning(method, args).await,
            _ => return self.on_device(service, method, args).await,
        };
        let shared = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || work(&shared, &args)).await;
        done.unwrap_or_else(|error| Err(Failure::Impossible(error.to_string())))
    }

    fn show_ports(&self) -> Value {
        let one = |port: crate::ports::PortInfo| {
            Value::record([
                (1, Value::I32(port.number as i32)),
                (2, Value::text(port.interface)),
                (3, Value::Bool(port.up)),
                (4, Value::Map(Vec::new())),
            ])
        };
        Value::List(Kind::Struct, self.ports.list().into_iter().map(one).collect())
    }

    fn port_change(&self, changed: Result<(), String>) -> Answer {
        changed.map(|()| None).map_err(|reason| {
            tracing::warn!("{reason}");
            Failure::Refused(crate::service::PORT_ERROR)
        })
    }

    /// Reads a program here, and makes its tables and arrays, so that packets go on meanwhile.
    fn load(&self, args: &Fields) -> Answer {
        lock(&self.core).may_stage()?;
        let refused = |error: &dyn std::fmt::Display| Failure::Impossible(format!("the program: {error}"));
        let program = Program::from_json(args.string(1)?).map_err(|error| refused(&error))?;
        let config = call(&*self.access, |device, _| device.config().clone()).map_err(|closed| refused(&closed))?;
        let mut fresh = Box::new(Device::new(config));
        fresh.load(0, Arc::new(program)).map_err(|error| refused(&error))?;
        lock(&self.core).stage(fresh)?;
        let message = lock(&self.notifier).swap(SWAP_LOADED);
        self.publish(&[message]);
        Ok(None)
    }

    /// Reads a table in parts.
    fn entries(self: &Arc<Self>, args: &Fields) -> Answer {
        let (args, mut entries, mut next) = (Arc::new(args.clone()), Vec::new(), Some(0));
        while let Some(first) = next {
            let (shared, args) = (Arc::clone(self), Arc::clone(&args));
            let part = call(&*self.access, move |device, now| lock(&shared.core).entries(&args, device, now, first));
            let (mut part, after) = part.unwrap_or_else(|closed| Err(Failure::Impossible(closed.to_string())))?;
            entries.append(&mut part);
            next = after;
        }
        Ok(Some(Value::List(Kind::Struct, entries)))
    }

    async fn learning(self: &Arc<Self>, method: &str, args: Fields) -> Answer {
        let (shared, method) = (Arc::clone(self), method.to_string());
        self.run(move |device, _| {
            let mut notifier = lock(&shared.notifier);
            let messages = notifier.call(&method, &args, device.switch())?;
            shared.rearm.notify_one();
            shared.publish(&messages);
            Ok(None)
        })
        .await
    }

    async fn on_device(self: &Arc<Self>, service: &str, method: &str, args: Fields) -> Answer {
        let (shared, service, method) = (Arc::clone(self), service.to_string(), method.to_string());
        let answer = self.run(move |device, now| {
            let answer = lock(&shared.core).call(&service, &method, &args, device, now);
            match (method.as_str(), &answer) {
                ("bm_reset_state", Ok(_)) => lock(&shared.notifier).reset(),
                ("bm_swap_configs", Ok(_)) => {
                    let messages = [SWAP_REQUESTED, SWAP_DONE].map(|status| lock(&shared.notifier).swap(status));
                    shared.publish(&messages);
                }
                _ => {}
            }
            answer
        });
        let answer = answer.await;
        let retired = lock(&self.core).take_retired();
        if retired.is_some() {
            tokio::task::spawn_blocking(move || drop(retired));
        }
        answer
    }

    async fn run(&self, work: impl FnOnce(&mut Device, Nanos) -> Answer + Send + 'static) -> Answer {
        let (sender, receiver) = oneshot::channel();
        let closed = |closed: Closed| Err(Failure::Impossible(closed.to_string()));
        // The client may be gone meanwhile: then nobody wants the answer.
        match self.access.submit(Box::new(move |device, now| drop(sender.send(work(device, now))))) {
            Ok(()) => receiver.await.unwrap_or_else(|_| closed(Closed)),
            Err(error) => closed(error),
        }
    }
}

/// Accepts clients until the server stops.
async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shared.stop.notified() => return,
        };
        match accepted {
            Ok((stream, peer)) => match shared.clients.connections.enter(Instant::now(), None) {
                Ok(place) => drop(tokio::spawn(serve(stream, place, Arc::clone(&shared)))),
                Err(_) => tracing::warn!(%peer, "a Thrift client is not served: all connections have a request under way"),
            },
            Err(error) => {
                // Out of descriptors, most likely.
                tracing::warn!(%error, "a Thrift client is not served");
                shared.clients.connections.relieve(Instant::now());
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}

/// Takes their places from clients whose time is over.
async fn expire(clients: Clients) {
    loop {
        tokio::time::sleep(EXPIRE_EACH).await;
        clients.expire(Instant::now());
    }
}

/// Why a client is served no more.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Malformed(#[from] Malformed),
    #[error("{0}")]
    Protocol(#[from] thrift::Error),
    #[error("{0}")]
    Full(#[from] Full),
    #[error("its place went to another client, or its call or its answer did not move for too long")]
    Lost,
}

/// Serves one client until it goes, loses its place, or sends what is no call.
async fn serve(stream: TcpStream, place: Place, shared: Arc<Shared>) {
    if let Err(error) = serve_calls(&stream, &place, &shared).await {
        tracing::debug!(%error, "a Thrift client's connection ends");
    }
}

async fn serve_calls(stream: &TcpStream, place: &Place, shared: &Arc<Shared>) -> Result<(), Ended> {
    stream.set_nodelay(true)?;
    // What has come after the last call. An idle client keeps no memory.
    let mut more = Vec::new();
    while let Some(call) = receive(stream, place, &mut more, shared).await? {
        place.work();
        let reply = answer(call, shared).await;
        place.rest(Instant::now());
        if let Some(reply) = reply? {
            send(stream, place, &reply, shared).await?;
        }
    }
    Ok(())
}

/// Waits for a place to be lost.
async fn lost(place: Option<&Place>) -> Ended {
    let Some(place) = place else { return std::future::pending().await };
    std::future::poll_fn(|context| place.gone().poll(context).map_or(Poll::Pending, |_| Poll::Ready(Ended::Lost))).await
}

/// Waits for a whole call; `None` when the client is gone. more: what has come already, and then what comes after the call.
async fn receive(stream: &TcpStream, place: &Place, more: &mut Vec<u8>, shared: &Shared) -> Result<Option<Parts>, Ended> {
    let mut message: Option<Place> = None;
    let mut scan = Scan::default();
    let mut call = Parts::default();
    let mut came = std::mem::take(more);
    loop {
        let end = scan.end(&came)?;
        if let (Some(end), None) = (end, &message) {
            *more = came.split_off(end);
            return Ok(Some(came.into()));
        }
        if !came.is_empty() {
            let message = match &mut message {
                Some(message) => message,
                none => none.insert(shared.clients.messages.enter(Instant::now(), Some(WHOLE_MESSAGE))?),
            };
            let of_call = end.unwrap_or(came.len());
            call.keep(&came[..of_call], usize::MAX, message, Instant::now())?;
            message.touch(Instant::now());
            while message.must_wait() {
                tokio::time::sleep(LET_GO).await;
            }
            if end.is_some() {
                *more = came.split_off(of_call);
                return Ok(Some(call));
            }
        }
        tokio::select! {
            ready = stream.readable() => ready?,
            ended = lost(Some(place)) => return Err(ended),
            ended = lost(message.as_ref()) => return Err(ended),
        }
        came = match take(stream)? {
            Some(came) if came.is_empty() => return Ok(None),
            came => came.unwrap_or_default(),
        };
        if !came.is_empty() {
            place.touch(Instant::now());
        }
    }
}

/// What has come; `None` when that is nothing, empty at the end.
fn take(stream: &TcpStream) -> io::Result<Option<Vec<u8>>> {
    // Not in the task: it would be there for each idle client.
    let mut chunk = [0; CHUNK];
    match stream.try_read(&mut chunk) {
        Ok(read) => Ok(Some(chunk[..read].to_vec())),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Serves a call; `None` where no answer is wanted.
async fn answer(call: Parts, shared: &Arc<Shared>) -> Result<Option<Vec<u8>>, Ended> {
    let limits = TConfiguration::builder().max_recursion_depth(Some(16)).max_string_size(Some(LONGEST)).build()?;
    let mut input = TBinaryInputProtocol::with_config(Reader::from(call), true, limits);
    let message = input.read_message_begin()?;
    let args = read_fields(&mut input)?;
    input.read_message_end()?;
    let (service, method) = message.name.split_once(':').unwrap_or(("standard", &message.name));
    // Answers are large before they are bytes: so many at the same time.
    let _one = if method == TABLE_READ { Some(shared.reading.acquire().await) } else { None };
    let _permit = shared.calls.acquire().await;
    let answer = shared.call(service, method, args).await;
    if message.message_type == TMessageType::OneWay {
        return Ok(None);
    }
    let mut reply = Vec::new();
    write_answer(&mut reply, method, message.sequence_number, service, answer)?;
    Ok(Some(reply))
}

/// Sends an answer. A large one counts among the messages on their way.
async fn send(stream: &TcpStream, place: &Place, mut reply: &[u8], shared: &Shared) -> Result<(), Ended> {
    let mut message: Option<Place> = None;
    while !reply.is_empty() {
        match stream.try_write(reply) {
            Ok(sent) => {
                reply = &reply[sent..];
                place.touch(Instant::now());
                if let Some(message) = &message {
                    message.touch(Instant::now());
                }
                continue;
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return Err(error.into()),
        }
        if message.is_none() {
            let entered = shared.clients.messages.enter(Instant::now(), None)?;
            entered.grow(reply.len(), Instant::now())?;
            message = Some(entered);
        }
        tokio::select! {
            ready = stream.writable() => ready?,
            ended = lost(Some(place)) => return Err(ended),
            ended = lost(message.as_ref()) => return Err(ended),
        }
    }
    Ok(())
}

/// Field of a struct of results that holds the result, and that of its one exception.
const SUCCESS: i16 = 0;
const EXCEPTION: i16 = 1;

fn write_answer(reply: &mut Vec<u8>, method: &str, sequence: i32, service: &str, answer: Answer) -> thrift::Result<()> {
    let failed = |kind: ApplicationErrorKind, text: String| {
        (TMessageType::Exception, Fields::new([(1, Value::text(text)), (2, Value::I32(kind as i32))]))
    };
    let (kind, fields) = match answer {
        Ok(value) => (TMessageType::Reply, Fields::new(value.map(|value| (SUCCESS, value)))),
        Err(Failure::Refused(code)) => (TMessageType::Reply, Fields::new([(EXCEPTION, Value::record([(1, Value::I32(code))]))])),
        Err(Failure::UnknownMethod) => {
            failed(ApplicationErrorKind::UnknownMethod, format!("there is no method '{method}' of service '{service}'"))
        }
        Err(Failure::BadArgument(text)) => failed(ApplicationErrorKind::ProtocolError, format!("{method}: {text}")),
        Err(Failure::Impossible(text)) => failed(ApplicationErrorKind::InternalError, format!("{method}: {text}")),
    };
    let mut output = TBinaryOutputProtocol::new(reply, true);
    output.write_message_begin(&TMessageIdentifier::new(method, kind, sequence))?;
    write_fields(&mut output, &fields)?;
    output.write_message_end()
}
