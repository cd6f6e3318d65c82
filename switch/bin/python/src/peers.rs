//! Partitions of one network in processes of one machine: a socket between each two, made before the processes part.

use std::cell::Cell;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::{Duration, Instant};

use fairlane_endpoint::algorithm::Fault;
use fairlane_virtual::Peers;
use pyo3::exceptions::PyConnectionError;
use pyo3::prelude::*;

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
    fn send(&self, peer: usize, bytes: &[u8]) -> Result<(), Fault> {
        let Some(mut socket) = self.to[peer].as_ref() else { return Ok(()) };
        let length = (bytes.len() as u64).to_le_bytes();
        let sent = if bytes.len() < 1 << 14 {
            socket.write_all(&[&length, bytes].concat())
        } else {
            socket.write_all(&length).and_then(|()| socket.write_all(bytes))
        };
        sent.map_err(|_| gone(peer))
    }

    fn receive(&self, peer: usize) -> Result<Vec<u8>, Fault> {
        let Some(socket) = &self.to[peer] else { return Ok(Vec::new()) };
        let began = Instant::now();
        let mut length = [0; 8];
        read(socket, &mut length, peer)?;
        self.waited.set(self.waited.get() + began.elapsed());
        let mut bytes = vec![0; u64::from_le_bytes(length) as usize];
        read(socket, &mut bytes, peer)?;
        Ok(bytes)
    }
}

impl Peers for Sockets {
    /// Of two, the lower one sends first and the other receives first; each goes through its peers in their order. So nobody waits for one who waits.
    fn exchange(&mut self, ours: &mut [Vec<u8>]) -> Result<Vec<Vec<u8>>, Fault> {
        let mut theirs = Vec::with_capacity(self.to.len());
        for (peer, bytes) in ours.iter_mut().enumerate() {
            if self.own < peer {
                self.send(peer, bytes)?;
                theirs.push(self.receive(peer)?);
            } else {
                theirs.push(self.receive(peer)?);
                self.send(peer, bytes)?;
            }
            bytes.clear();
        }
        Ok(theirs)
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
