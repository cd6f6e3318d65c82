//! How other threads reach a device.

use std::fmt;
use std::sync::mpsc;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fairlane_tm::Nanos;

use crate::Device;

/// A mutex whose holders cannot leave anything half done.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Work on a device, with the instant at which it runs.
pub type Job = Box<dyn FnOnce(&mut Device, Nanos) + Send>;

/// The device's owner is gone; the job did not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the switch is shutting down")
    }
}

impl std::error::Error for Closed {}

/// A way to run closures on the thread that owns a device, between batches of packets.
///
/// Jobs of one handle run in the order of submission. A caller that wants a result sends it from the closure, blocking
/// ([`call`]) or through an asynchronous channel.
pub trait DeviceAccess: Send + Sync + 'static {
    /// Queues a job; returns at once.
    ///
    /// # Errors
    /// [`Closed`] when the owner is gone.
    fn submit(&self, job: Job) -> Result<(), Closed>;
}

/// Runs a closure on the device's thread and waits for its result. Not from that thread itself, and not from an asynchronous
/// task: it blocks.
///
/// # Errors
/// [`Closed`] when the owner is gone before the closure has run.
pub fn call<R: Send + 'static>(
    access: &(impl DeviceAccess + ?Sized),
    work: impl FnOnce(&mut Device, Nanos) -> R + Send + 'static,
) -> Result<R, Closed> {
    let (sender, receiver) = mpsc::sync_channel(1);
    access.submit(Box::new(move |device, now| {
        // The receiver waits below; it cannot be gone.
        let _ = sender.send(work(device, now));
    }))?;
    receiver.recv().map_err(|_| Closed)
}

/// A device behind a lock, with a clock of the caller's choice: for tests and for owners that have no loop of their own.
pub struct SharedDevice<C> {
    device: Mutex<Device>,
    clock: C,
}

impl<C: Fn() -> Nanos + Send + Sync + 'static> SharedDevice<C> {
    /// Wraps a device; `clock` tells the instant at which each job runs.
    pub fn new(device: Device, clock: C) -> Self {
        SharedDevice { device: Mutex::new(device), clock }
    }

    /// Runs a closure under the lock.
    pub fn with<R>(&self, work: impl FnOnce(&mut Device, Nanos) -> R) -> R {
        let mut device = lock(&self.device);
        work(&mut device, (self.clock)())
    }
}

impl<C: Fn() -> Nanos + Send + Sync + 'static> DeviceAccess for SharedDevice<C> {
    fn submit(&self, job: Job) -> Result<(), Closed> {
        self.with(job);
        Ok(())
    }
}
