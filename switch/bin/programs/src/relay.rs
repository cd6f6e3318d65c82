//! `fairlane-relay IFACE_A IFACE_B`: copies every frame from one interface to the other and does nothing else.
//!
//! It receives, waits and sends with the code of `fairlane-switch`; benchmarks set the switch beside it to see what the
//! pipeline costs.

#![allow(unsafe_code)]

use std::os::fd::AsRawFd;
use std::process::ExitCode;

use fairlane_realtime::say::{complain, say};
use fairlane_realtime::signals::Termination;
use fairlane_realtime::socket::{Interface, Receiver, Sender};

pub fn main() -> ExitCode {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let [a, b] = names.as_slice() else {
        eprintln!("usage: fairlane-relay IFACE_A IFACE_B");
        return ExitCode::FAILURE;
    };
    match relay(a, b) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            complain(format_args!("fairlane-relay: {message}"));
            ExitCode::FAILURE
        }
    }
}

fn relay(a: &str, b: &str) -> Result<(), String> {
    let termination = Termination::take_over().map_err(|error| error.to_string())?;
    let open = |name| Interface::open(name).map_err(|error| error.to_string());
    let interfaces = [open(a)?, open(b)?];
    let (mut receiver, mut sender) = (Receiver::new(), Sender::new());
    let mut spare: Vec<Vec<u8>> = Vec::new();
    say(format_args!("ready relay {a} {b}"));
    let fds = [termination.as_raw_fd(), interfaces[0].as_raw_fd(), interfaces[1].as_raw_fd()];
    let mut polled = fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    loop {
        // SAFETY: the array lives through the call.
        unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, -1) };
        if polled[0].revents != 0 {
            return Ok(());
        }
        for from in 0..2 {
            if polled[from + 1].revents == 0 {
                continue;
            }
            if let Err(error) = receiver.receive(&interfaces[from]) {
                complain(format_args!("fairlane-relay: {}: {error}", interfaces[from].name()));
                continue;
            }
            let to = &interfaces[1 - from];
            for frame in receiver.frames() {
                let mut copy = spare.pop().unwrap_or_default();
                copy.clear();
                copy.extend_from_slice(frame.bytes);
                if sender.push(copy) {
                    sender.flush(to, &mut spare);
                }
            }
            sender.flush(to, &mut spare);
        }
    }
}
