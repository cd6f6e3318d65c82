//! The news that a place is lost, for the task that holds it.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Waker};

/// Why a place is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Another one needed it.
    Crowded,
    /// Its time was over.
    Late,
}

/// Whether a place is lost. The task that polls it is woken when it is.
#[derive(Debug, Default)]
pub struct Gone {
    reason: AtomicU8,
    waker: Mutex<Option<Waker>>,
}

const HERE: u8 = 0;
const CROWDED: u8 = 1;
const LATE: u8 = 2;

impl Gone {
    /// Why the place is lost; `None` while it is not.
    pub fn reason(&self) -> Option<Reason> {
        match self.reason.load(Ordering::Acquire) {
            HERE => None,
            CROWDED => Some(Reason::Crowded),
            _ => Some(Reason::Late),
        }
    }

    /// The same; wakes the task when that changes. Of several tasks, the last to poll is woken.
    pub fn poll(&self, context: &mut Context<'_>) -> Option<Reason> {
        let mut waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *waker {
            Some(known) => known.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        drop(waker);
        // After the waker is there: what happens in between is not missed.
        self.reason()
    }

    pub(crate) fn tell(&self, reason: Reason) {
        let reason = if reason == Reason::Crowded { CROWDED } else { LATE };
        self.reason.store(reason, Ordering::Release);
        if let Some(waker) = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take() {
            waker.wake();
        }
    }
}
