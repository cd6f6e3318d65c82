//! Calls of Linux that no crate offers safely: batches of datagrams or frames, options by number, and a thread's urgency.
//!
//! The rest is `rustix`'s and `socket2`'s.

#![allow(unsafe_code)]

mod batch;
mod option;
mod urgency;

pub use batch::{Batch, Message, Outgoing, Sent};
pub use option::{bind, interface_flags, option, set_option};
pub use urgency::{is_ordinary, schedule};

use std::io;

/// The result of a call that answers less than 0 when it fails.
fn checked(answer: libc::c_int) -> io::Result<usize> {
    usize::try_from(answer).map_err(|_| io::Error::last_os_error())
}
