//! Partitions of one network in processes: of one machine, with a socket between each two, made before the processes part; or those that an object of
//! Python reaches, such as the ranks of MPI.

use std::cell::Cell;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::{Duration, Instant};

use fairlane_endpoint::algorithm::Fault;
use fairlane_virtual::{Heard, Nanos, Peers};
use pyo3::exceptions::PyConnectionError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes};

use crate::refused;

/// A wait is interrupted so often, to see whether the user wants to end.
const PATIENCE: Duration = Duration::from_millis(200);

/// A socket between each two of some processes, which are to be forked from the one that has made it.
#[pyclass(unsendable)]
pub(crate) struct Mesh {
    /// Of each process: its socket to each other.
    rows: Vec<Vec<Option<UnixStream>>>,
}

#[pymethods]
impl Mesh {
    /// Raises OSError when there are no more sockets.
    #[new]
    fn new(count: usize) -> PyResult<Mesh> {
        let mut rows: Vec<Vec<Option<UnixStream>>> = (0..count).map(|_| (0..count).map(|_| None).collect()).collect();
        for number in 0..count {
            let (before, after) = rows.split_at_mut(number + 1);
            for (other, row) in (number + 1..).zip(after) {
                let (here, there) = UnixStream::pair()?;
                before[number][other] = Some(here);
                row[number] = Some(there);
            }
        }
        Ok(Mesh { rows })
    }

    /// Closes the sockets that are left: those of the others, after one's own are in use.
    fn close(&mut self) {
        self.rows.clear();
    }
}

impl Mesh {
    /// Takes the sockets of one process, and closes all others, so that each notices when another ends.
    pub(crate) fn take(&mut self, own: usize) -> PyResult<Sockets> {
        if own >= self.rows.len() {
            return Err(refused(format!("{own} is none of the {} processes, or they have parted already", self.rows.len())));
        }
        let to = self.rows.swap_remove(own);
        self.rows.clear();
        for socket in to.iter().flatten() {
            socket.set_read_timeout(Some(PATIENCE))?;
        }
        Ok(Sockets { own, to, waited: Rc::default() })
    }
}

/// One process's sockets to all others.
pub(crate) struct Sockets {
    own: usize,
    to: Vec<Option<UnixStream>>,
    /// Time spent waiting for others.
    pub(crate) waited: Rc<Cell<Duration>>,
}

/// Another process has ended: its own end says why.
fn gone(peer: usize) -> Fault {
    Box::new(PyConnectionError::new_err(format!("the process of partition {peer} has ended")))
}

/// Reads all of it, and lets Python see signals meanwhile.
fn read(mut socket: &UnixStream, mut bytes: &mut [u8], peer: usize) -> Result<(), Fault> {
    while !bytes.is_empty() {
        match socket.read(bytes) {
            Ok(0) => return Err(gone(peer)),
            Ok(count) => bytes = &mut bytes[count..],
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {
                Python::attach(|py| py.check_signals())?;
            }
            Err(_) => return Err(gone(peer)),
        }
    }
    Ok(())
}

impl Sockets {
    fn send(&self, peer: usize, next: Nanos, bytes: &[u8]) -> Result<(), Fault> {
        let Some(mut socket) = self.to[peer].as_ref() else { return Ok(()) };
        let head = [next.to_le_bytes(), (bytes.len() as u64).to_le_bytes()].concat();
        let sent = if bytes.len() < 1 << 14 {
            socket.write_all(&[&head, bytes].concat())
        } else {
            socket.write_all(&head).and_then(|()| socket.write_all(bytes))
        };
        sent.map_err(|_| gone(peer))
    }

    /// Adds to `heard`.
    fn receive(&self, peer: usize, heard: &mut Heard) -> Result<(), Fault> {
        let Some(socket) = &self.to[peer] else { return Ok(()) };
        let began = Instant::now();
        let (mut next, mut length) = ([0; 8], [0; 8]);
        read(socket, &mut next, peer)?;
        self.waited.set(self.waited.get() + began.elapsed());
        read(socket, &mut length, peer)?;
        heard.floor = heard.floor.min(Nanos::from_le_bytes(next));
        let length = u64::from_le_bytes(length) as usize;
        if length > 0 {
            let mut bytes = vec![0; length];
            read(socket, &mut bytes, peer)?;
            heard.theirs.push((peer, bytes));
        }
        Ok(())
    }
}

impl Peers for Sockets {
    /// Of two, the lower one sends first and the other receives first; each goes through its peers in their order. So nobody waits for one who waits.
    fn exchange(&mut self, next: Nanos, ours: &mut [Vec<u8>]) -> Result<Heard, Fault> {
        let mut heard = Heard { floor: next, theirs: Vec::new() };
        for (peer, bytes) in ours.iter_mut().enumerate() {
            if self.own < peer {
                self.send(peer, next, bytes)?;
                self.receive(peer, &mut heard)?;
            } else {
                self.receive(peer, &mut heard)?;
                self.send(peer, next, bytes)?;
            }
            bytes.clear();
        }
        Ok(heard)
    }
}

impl Drop for Sockets {
    /// The others notice at once.
    fn drop(&mut self) {
        for socket in self.to.iter().flatten() {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

/// Others whom an object reaches by its `exchange(next_ns, [(peer, bytes)]) -> (floor_ns, [(peer, bytearray)])`, which means what [`Peers::exchange`] does.
pub(crate) struct Called {
    pub(crate) object: Py<PyAny>,
    /// Time in its calls: for sending, and for waiting.
    pub(crate) waited: Rc<Cell<Duration>>,
}

impl Peers for Called {
    fn exchange(&mut self, next: Nanos, ours: &mut [Vec<u8>]) -> Result<Heard, Fault> {
        let began = Instant::now();
        let heard = Python::attach(|py| -> PyResult<Heard> {
            let sent = ours.iter().enumerate().filter(|(_, bytes)| !bytes.is_empty());
            let sent: Vec<_> = sent.map(|(peer, bytes)| (peer, PyBytes::new(py, bytes))).collect();
            let found = self.object.bind(py).call_method1("exchange", (next, sent))?;
            let (floor, theirs): (Nanos, Vec<(usize, Bound<'_, PyByteArray>)>) = found.extract()?;
            Ok(Heard { floor, theirs: theirs.into_iter().map(|(peer, bytes)| (peer, bytes.to_vec())).collect() })
        })?;
        ours.iter_mut().for_each(Vec::clear);
        self.waited.set(self.waited.get() + began.elapsed());
        Ok(heard)
    }
}
