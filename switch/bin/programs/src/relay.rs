//! `fairlane-relay IFACE_A IFACE_B`: copies every frame from one interface to the other and does nothing else.
//!
//! It receives, waits and sends with the code of `fairlane-switch`; benchmarks set the switch beside it to see what the
//! pipeline costs.

use std::process::ExitCode;

use fairlane_realtime::clock;
use fairlane_realtime::say::{complain, say};
use fairlane_realtime::signals::Termination;
use fairlane_realtime::socket::{Interface, Receiver, Sender};
use rustix::event::{PollFd, PollFlags};

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
    let [first, second] = interfaces.each_ref().map(|interface| PollFd::new(interface, PollFlags::IN));
    let mut polled = [PollFd::new(&termination, PollFlags::IN), first, second];
    loop {
        clock::wait(&mut polled, None).map_err(|error| error.to_string())?;
        if !polled[0].revents().is_empty() {
            return Ok(());
        }
        for from in 0..2 {
            if polled[from + 1].revents().is_empty() {
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
