//! The TCP server: multiplexed services, buffered transport, binary protocol, a thread for each client.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fairlane_device::pipeline::Program;
use fairlane_device::{call, Device, DeviceAccess, Event, Nanos, PortId};
use thrift::protocol::{TBinaryInputProtocol, TBinaryOutputProtocol, TInputProtocol, TMessageIdentifier, TMessageType, TOutputProtocol};
use thrift::{ApplicationErrorKind, TConfiguration};

use crate::notify::{Notifier, SWAP_DONE, SWAP_LOADED, SWAP_REQUESTED};
use crate::ports::Ports;
use crate::publish::Publisher;
use crate::service::{Answer, Core, Failure, Identity};
use crate::value::{read_fields, write_fields, Fields, Kind, Value};

/// Clients at the same time.
const MOST_CLIENTS: usize = 1024;
/// Longest call, in bytes: a program of this size can be loaded.
const LONGEST: usize = 64 << 20;
/// How long the rest of a call may take to come.
const PATIENCE: Duration = Duration::from_secs(30);
const STACK: usize = 512 << 10;

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
    /// Held while a table is read.
    reading: Mutex<()>,
    /// The timer has to look again.
    rearm: Condvar,
    publisher: Option<Publisher>,
    event_log: Option<(u64, Publisher)>,
    clients: AtomicUsize,
    stopped: AtomicBool,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
        let listener = TcpListener::bind(config.address).map_err(|error| match error.kind() {
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
            reading: Mutex::new(()),
            core: Mutex::new(Core::new(identity.clone())),
            ports: config.ports,
            rearm: Condvar::new(),
            publisher: config.publisher,
            event_log: config.event_log.map(|publisher| (identity.device_id, publisher)),
            clients: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        let thread = |name: &str| std::thread::Builder::new().name(name.into());
        thread("thrift").spawn(move || accept(&listener, &accepting)).map_err(ServeError::Start)?;
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
        // Wakes the thread that accepts.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_millis(100));
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

    /// Publishes the steps of packets, and has them kept while somebody subscribes. Called by the owner of the device; does not block.
    pub fn observe(&self, device: &mut Device) {
        if let Some((device_id, publisher)) = &self.0.event_log {
            device.set_observing(publisher.has_subscribers());
            device.drain_observed(|event| publisher.publish(&crate::nanolog::message(*device_id, &event)));
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

    /// Serves a call on the client's thread: what acts on the device is a job of that one's.
    fn call(self: &Arc<Self>, service: &str, method: &str, args: Fields) -> Answer {
        match (service, method) {
            ("standard", "bm_dev_mgr_show_ports") => Ok(Some(self.show_ports())),
            ("standard", "bm_dev_mgr_add_port") => {
                let (interface, pcap) = (args.string(1)?, args.string(3).ok().filter(|path| !path.is_empty()));
                self.port_change(self.ports.add(args.i32(2)? as PortId, interface, pcap))
            }
            ("standard", "bm_dev_mgr_remove_port") => self.port_change(self.ports.remove(args.i32(1)? as PortId)),
            ("standard", "bm_load_new_config") => self.load(&args),
            ("standard", "bm_mt_get_entries") => self.entries(args),
            ("standard", _) if method.starts_with("bm_learning_") => self.learning(method, args),
            _ => self.on_device(service, method, args),
        }
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

    /// Reads a table in parts. One client at a time: an answer is as long as the table.
    fn entries(self: &Arc<Self>, args: Fields) -> Answer {
        let _one = lock(&self.reading);
        let (args, mut entries, mut next) = (Arc::new(args), Vec::new(), Some(0));
        while let Some(first) = next {
            let (shared, args) = (Arc::clone(self), Arc::clone(&args));
            let part = call(&*self.access, move |device, now| lock(&shared.core).entries(&args, device, now, first));
            let (mut part, after) = part.unwrap_or_else(|closed| Err(Failure::Impossible(closed.to_string())))?;
            entries.append(&mut part);
            next = after;
        }
        Ok(Some(Value::List(Kind::Struct, entries)))
    }

    fn learning(self: &Arc<Self>, method: &str, args: Fields) -> Answer {
        let (shared, method) = (Arc::clone(self), method.to_string());
        self.run(move |device, _| {
            let mut notifier = lock(&shared.notifier);
            let messages = notifier.call(&method, &args, device.switch())?;
            shared.rearm.notify_one();
            shared.publish(&messages);
            Ok(None)
        })
    }

    fn on_device(self: &Arc<Self>, service: &str, method: &str, args: Fields) -> Answer {
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
        drop(lock(&self.core).take_retired());
        answer
    }

    fn run(&self, work: impl FnOnce(&mut Device, Nanos) -> Answer + Send + 'static) -> Answer {
        call(&*self.access, work).unwrap_or_else(|closed| Err(Failure::Impossible(closed.to_string())))
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    while !shared.stopped.load(Ordering::Acquire) {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of descriptors, most likely.
                tracing::warn!(%error, "a Thrift client is not served");
                std::thread::sleep(Duration::from_millis(100));
                continue;
            }
        };
        if shared.clients.fetch_add(1, Ordering::AcqRel) >= MOST_CLIENTS {
            shared.clients.fetch_sub(1, Ordering::AcqRel);
            tracing::warn!("{MOST_CLIENTS} Thrift clients are connected, which is the limit: another one is refused");
            continue;
        }
        let serving = Arc::clone(shared);
        let thread = std::thread::Builder::new().name("thrift-client".into()).stack_size(STACK).spawn(move || {
            if let Err(error) = serve(stream, &serving) {
                tracing::debug!(%error, "a Thrift client's connection ends");
            }
            serving.clients.fetch_sub(1, Ordering::AcqRel);
        });
        if let Err(error) = thread {
            shared.clients.fetch_sub(1, Ordering::AcqRel);
            tracing::warn!(%error, "a Thrift client is not served");
        }
    }
}

/// Gives no more bytes than one call may have.
struct Metered {
    stream: BufReader<TcpStream>,
    left: usize,
}

impl Metered {
    /// Waits for the next call, however long; false when the client is gone.
    fn wait(&mut self) -> io::Result<bool> {
        self.left = LONGEST;
        loop {
            match self.stream.fill_buf() {
                Ok(bytes) => return Ok(!bytes.is_empty()),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Read for Metered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::Error::other(format!("a call of more than {LONGEST} bytes")));
        }
        let length = buffer.len().min(self.left);
        let read = self.stream.read(&mut buffer[..length])?;
        self.left -= read;
        Ok(read)
    }
}

/// Serves one client until it goes, or sends what is no call.
fn serve(stream: TcpStream, shared: &Arc<Shared>) -> thrift::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut output = stream.try_clone()?;
    let limits = TConfiguration::builder().max_recursion_depth(Some(16)).max_string_size(Some(LONGEST)).build()?;
    let metered = Metered { stream: BufReader::with_capacity(64 << 10, stream), left: 0 };
    let mut input = TBinaryInputProtocol::with_config(metered, true, limits);
    while input.transport.wait()? && !shared.stopped.load(Ordering::Acquire) {
        let message = input.read_message_begin()?;
        let args = read_fields(&mut input)?;
        input.read_message_end()?;
        let (service, method) = message.name.split_once(':').unwrap_or(("standard", &message.name));
        let answer = shared.call(service, method, args);
        if message.message_type != TMessageType::OneWay {
            let mut reply = Vec::new();
            write_answer(&mut reply, method, message.sequence_number, service, answer)?;
            output.write_all(&reply)?;
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
