//! A socket of nanomsg's PUB protocol: subscribers get every message from when they connect.
//!
//! The wire format is that of nanomsg's mappings of scalability protocols to TCP and IPC (`sp-tcp-mapping-01`, `sp-ipc-mapping`): both
//! ends send a header of eight bytes with their protocol's number; then each message has its length before it, over IPC also a type.
//! Subscriptions are filtered by the subscriber.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{sync_channel, SyncSender, TrySendError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fairlane_device::lock;

/// Messages that wait for one subscriber; more are lost to it.
const QUEUE: usize = 4096;
/// How long a subscriber may take to say who it is, and to take a message.
const PATIENCE: Duration = Duration::from_secs(5);
const MOST_SUBSCRIBERS: usize = 256;

/// Numbers of the protocols PUB and SUB.
const PUB: u16 = 0x20;
const SUB: u16 = 0x21;

fn header(protocol: u16) -> [u8; 8] {
    let [high, low] = protocol.to_be_bytes();
    [0, b'S', b'P', 0, high, low, 0, 0]
}

/// Where a socket listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// `ipc:///PATH`
    Ipc(PathBuf),
    /// `tcp://ADDRESS:PORT`
    Tcp(SocketAddr),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Ipc(path) => write!(f, "ipc://{}", path.display()),
            Address::Tcp(address) => write!(f, "tcp://{address}"),
        }
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        if let Some(path) = text.strip_prefix("ipc://").filter(|path| !path.is_empty()) {
            return Ok(Address::Ipc(path.into()));
        }
        let tcp = text.strip_prefix("tcp://").map(|rest| rest.replacen('*', "0.0.0.0", 1));
        match tcp.and_then(|rest| rest.parse().ok()) {
            Some(address) => Ok(Address::Tcp(address)),
            None => Err("write it as ipc:///PATH or tcp://ADDRESS:PORT with an IP address".to_string()),
        }
    }
}

#[derive(Debug)]
enum Listener {
    Ipc(UnixListener),
    Tcp(TcpListener),
}

trait Stream: Read + Write + Send {
    fn set_patience(&self) -> io::Result<()>;
}

impl Stream for TcpStream {
    fn set_patience(&self) -> io::Result<()> {
        self.set_nodelay(true)?;
        self.set_read_timeout(Some(PATIENCE))?;
        self.set_write_timeout(Some(PATIENCE))
    }
}

impl Stream for UnixStream {
    fn set_patience(&self) -> io::Result<()> {
        self.set_read_timeout(Some(PATIENCE))?;
        self.set_write_timeout(Some(PATIENCE))
    }
}

impl Listener {
    fn bind(address: &Address) -> io::Result<Listener> {
        match address {
            Address::Tcp(address) => TcpListener::bind(address).map(Listener::Tcp),
            Address::Ipc(path) => {
                // A socket's file that nobody answers at was left by a switch that is gone.
                let left = std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
                if left && UnixStream::connect(path).is_err() {
                    std::fs::remove_file(path)?;
                }
                UnixListener::bind(path).map(Listener::Ipc)
            }
        }
    }

    fn accept(&self) -> io::Result<Box<dyn Stream>> {
        Ok(match self {
            Listener::Ipc(listener) => Box::new(listener.accept()?.0),
            Listener::Tcp(listener) => Box::new(listener.accept()?.0),
        })
    }
}

type Message = Arc<[u8]>;
type Subscribers = Arc<Mutex<Vec<SyncSender<Message>>>>;

/// The socket. Dropping it ends it, and its file.
#[derive(Debug)]
pub struct Publisher {
    address: Address,
    subscribers: Subscribers,
    stopped: Arc<AtomicBool>,
}

impl Publisher {
    /// Listens, on a thread of its own.
    ///
    /// # Errors
    /// Those of bind(2), as when another listens there.
    pub fn bind(address: &Address) -> io::Result<Publisher> {
        let listener = Listener::bind(address)?;
        let address = match &listener {
            Listener::Tcp(listener) => Address::Tcp(listener.local_addr()?),
            Listener::Ipc(_) => address.clone(),
        };
        let (subscribers, stopped) = (Subscribers::default(), Arc::new(AtomicBool::new(false)));
        let with_length_only = matches!(listener, Listener::Tcp(_));
        let (theirs, ends) = (Arc::clone(&subscribers), Arc::clone(&stopped));
        std::thread::Builder::new().name("notifications".into()).spawn(move || {
            while !ends.load(Ordering::Acquire) {
                match listener.accept() {
                    // Each has a thread, and each thread holds the subscribers.
                    Ok(_) if Arc::strong_count(&theirs) > 2 * MOST_SUBSCRIBERS => {}
                    Ok(stream) => admit(stream, with_length_only, &theirs),
                    // Out of descriptors, most likely.
                    Err(_) => std::thread::sleep(Duration::from_millis(100)),
                }
            }
        })?;
        Ok(Publisher { address, subscribers, stopped })
    }

    /// Where it listens, with the port that the system chose.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Somebody would get a message. Subscribers that went are noticed at the next message.
    pub fn has_subscribers(&self) -> bool {
        !lock(&self.subscribers).is_empty()
    }

    /// Sends a message to all subscribers. Does not block: who does not read in time misses messages.
    pub fn publish(&self, message: &[u8]) {
        let mut subscribers = lock(&self.subscribers);
        if subscribers.is_empty() {
            return;
        }
        let message: Message = message.into();
        subscribers.retain(|queue| !matches!(queue.try_send(Arc::clone(&message)), Err(TrySendError::Disconnected(_))));
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        // Wakes the thread that accepts.
        match &self.address {
            Address::Ipc(path) => {
                let _ = UnixStream::connect(path);
                let _ = std::fs::remove_file(path);
            }
            Address::Tcp(address) => {
                let _ = TcpStream::connect_timeout(address, Duration::from_millis(100));
            }
        }
    }
}

fn admit(mut stream: Box<dyn Stream>, with_length_only: bool, subscribers: &Subscribers) {
    let subscribers = Arc::clone(subscribers);
    let mut serve = move || -> io::Result<()> {
        stream.set_patience()?;
        stream.write_all(&header(PUB))?;
        let mut theirs = [0; 8];
        stream.read_exact(&mut theirs)?;
        if theirs != header(SUB) {
            return Ok(());
        }
        let (sender, messages) = sync_channel::<Message>(QUEUE);
        {
            let mut all = lock(&subscribers);
            if all.len() >= MOST_SUBSCRIBERS {
                return Ok(());
            }
            all.push(sender);
        }
        for message in messages {
            let mut frame = Vec::with_capacity(message.len() + 9);
            if !with_length_only {
                frame.push(1);
            }
            frame.extend_from_slice(&(message.len() as u64).to_be_bytes());
            frame.extend_from_slice(&message);
            stream.write_all(&frame)?;
        }
        Ok(())
    };
    // A subscriber that goes, or is none, is no error of ours.
    let _ = std::thread::Builder::new().name("subscriber".into()).stack_size(128 << 10).spawn(move || drop(serve()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written() {
        for text in ["ipc:///tmp/bmv2-0-notifications.ipc", "tcp://127.0.0.1:5000"] {
            assert_eq!(text.parse::<Address>().expect("an address").to_string(), text);
        }
        assert_eq!("tcp://*:7".parse::<Address>().expect("an address").to_string(), "tcp://0.0.0.0:7");
        for text in ["", "ipc://", "inproc://x", "tcp://host", "tcp://1.2.3.4"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    fn subscribed(publisher: &Publisher, stream: &mut (impl Read + Write)) {
        stream.write_all(&header(SUB)).expect("sent");
        let mut theirs = [0; 8];
        stream.read_exact(&mut theirs).expect("a header");
        assert_eq!(theirs, [0, b'S', b'P', 0, 0, 0x20, 0, 0]);
        while publisher.subscribers.lock().expect("not poisoned").is_empty() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn messages_go_to_who_subscribes_and_others_do_not_matter() {
        let publisher = Publisher::bind(&"tcp://127.0.0.1:0".parse().expect("an address")).expect("bound");
        let Address::Tcp(address) = *publisher.address() else { panic!("{}", publisher.address()) };
        let mut stranger = TcpStream::connect(address).expect("connected");
        stranger.write_all(b"GET / HTTP/1.0\r\n\r\n").expect("sent");
        let mut stream = TcpStream::connect(address).expect("connected");
        subscribed(&publisher, &mut stream);
        publisher.publish(b"LEA|x");
        let mut frame = [0; 13];
        stream.read_exact(&mut frame).expect("a message");
        assert_eq!(&frame, b"\0\0\0\0\0\0\0\x05LEA|x");
        drop(stream);
        for _ in 0..10 * QUEUE {
            publisher.publish(b"LEA|x");
        }
    }

    #[test]
    fn a_file_that_was_left_is_taken_over_and_one_in_use_is_not() {
        let path = std::env::temp_dir().join(format!("fairlane-publish-{}.ipc", std::process::id()));
        let address = Address::Ipc(path.clone());
        drop(UnixListener::bind(&path).expect("bound"));
        let publisher = Publisher::bind(&address).expect("the file was left");
        assert_eq!(Publisher::bind(&address).expect_err("in use").kind(), io::ErrorKind::AddrInUse);
        let mut stream = UnixStream::connect(&path).expect("connected");
        subscribed(&publisher, &mut stream);
        publisher.publish(b"AGE|");
        let mut frame = [0; 13];
        stream.read_exact(&mut frame).expect("a message");
        assert_eq!(&frame, b"\x01\0\0\0\0\0\0\0\x04AGE|");
        drop(publisher);
        assert!(!path.exists());
    }
}
