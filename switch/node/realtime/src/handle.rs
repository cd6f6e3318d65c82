//! How other threads reach the device while the switch runs.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{mpsc, Arc};
use std::time::{Duration, Instant};

use fairlane_device::{Closed, Device, DeviceAccess, Job, Nanos, PortId};
use fairlane_thrift::{PortInfo, Ports};
use rustix::event::{eventfd, EventfdFlags};

/// How long jobs run between two looks at the interfaces, so that a flood of requests does not starve packets; the last may take longer.
const TURN: Duration = Duration::from_micros(500);

/// A handle on the device of a running switch: clonable, usable from any thread.
#[derive(Clone)]
pub struct DeviceHandle {
    jobs: mpsc::Sender<Job>,
    ports: mpsc::Sender<PortRequest>,
    wake: Arc<Wake>,
}

/// The owner's end: what [`crate::engine::Engine`] serves.
pub struct JobQueue {
    jobs: mpsc::Receiver<Job>,
    ports: mpsc::Receiver<PortRequest>,
    wake: Arc<Wake>,
}

struct Wake {
    event: OwnedFd,
    pending: AtomicBool,
}

impl Wake {
    fn raise(&self) {
        if !self.pending.swap(true, Ordering::AcqRel) {
            // It can fail only when its counter is about to overflow: raised already.
            let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
        }
    }

    fn lower(&self) {
        let _ = rustix::io::read(&self.event, &mut [0; 8]);
        // Acquires what submitters did before they found the flag raised: their jobs are seen by the turn that follows.
        self.pending.swap(false, Ordering::AcqRel);
    }
}

/// A handle and the queue it feeds.
///
/// # Errors
/// Those of eventfd(2).
pub fn pair() -> io::Result<(DeviceHandle, JobQueue)> {
    let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
    let wake = Arc::new(Wake { event, pending: AtomicBool::new(false) });
    let (sender, receiver) = mpsc::channel();
    let (asks, asked) = mpsc::channel();
    Ok((DeviceHandle { jobs: sender, ports: asks, wake: Arc::clone(&wake) }, JobQueue { jobs: receiver, ports: asked, wake }))
}

impl DeviceAccess for DeviceHandle {
    fn submit(&self, job: Job) -> Result<(), Closed> {
        self.jobs.send(job).map_err(|_| Closed)?;
        self.wake.raise();
        Ok(())
    }
}

/// What others ask of the interfaces, with where the answer goes.
pub(crate) enum PortRequest {
    List(mpsc::SyncSender<Vec<PortInfo>>),
    Add { number: PortId, interface: String, pcap: Option<PathBuf>, done: mpsc::SyncSender<Result<(), String>> },
    Remove { number: PortId, done: mpsc::SyncSender<Result<(), String>> },
}

impl DeviceHandle {
    fn ask<R>(&self, request: impl FnOnce(mpsc::SyncSender<R>) -> PortRequest) -> Option<R> {
        let (done, answer) = mpsc::sync_channel(1);
        self.ports.send(request(done)).ok()?;
        self.wake.raise();
        answer.recv().ok()
    }
}

impl Ports for DeviceHandle {
    fn list(&self) -> Vec<PortInfo> {
        self.ask(PortRequest::List).unwrap_or_default()
    }

    fn add(&self, number: PortId, interface: &str, pcap: Option<&str>) -> Result<(), String> {
        let (interface, pcap) = (interface.to_string(), pcap.map(PathBuf::from));
        self.ask(|done| PortRequest::Add { number, interface, pcap, done }).unwrap_or_else(|| Err(Closed.to_string()))
    }

    fn remove(&self, number: PortId) -> Result<(), String> {
        self.ask(|done| PortRequest::Remove { number, done }).unwrap_or_else(|| Err(Closed.to_string()))
    }
}

impl JobQueue {
    /// The next request about the interfaces.
    pub(crate) fn port_request(&self) -> Option<PortRequest> {
        self.ports.try_recv().ok()
    }

    /// Runs what was submitted, for the time of a turn (the rest stays signalled).
    pub(crate) fn run(&self, device: &mut Device, clock: impl Fn() -> Nanos) {
        self.wake.lower();
        let begin = Instant::now();
        while begin.elapsed() < TURN {
            match self.jobs.try_recv() {
                Ok(job) => job(device, clock()),
                Err(_) => return,
            }
        }
        self.wake.raise();
    }
}

impl AsFd for JobQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.event.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlane_device::{call, DeviceConfig};

    #[test]
    fn jobs_run_in_order_and_results_come_back() {
        let (handle, queue) = pair().expect("an eventfd");
        let caller = std::thread::spawn(move || {
            for expected in 0..200u64 {
                let got = call(&handle, move |_, now| (now, expected));
                assert_eq!(got, Ok((7, expected)));
            }
        });
        let mut device = Device::new(DeviceConfig::default());
        while !caller.is_finished() {
            queue.run(&mut device, || 7);
        }
        caller.join().expect("all results came");
    }

    #[test]
    fn a_handle_outlives_its_switch() {
        let (handle, queue) = pair().expect("an eventfd");
        drop(queue);
        assert_eq!(call(&handle, |_, _| ()), Err(Closed));
    }
}
