//! `fairlane-link --link A,B=5ms`: carries frames between two interfaces, each later by a link's propagation delay.
//!
//! It stands in for netem between a switch that has no delay of its own (BMv2) and what its port leads to. Rate and queue are the
//! switch's; a frame takes no time here but the delay. The kernel's time of arrival counts, so a late wake-up delays no frame that
//! is not due yet.

mod delay_line;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use delay_line::{DelayLine, Lateness};
use fairlane_realtime::clock;
use fairlane_realtime::say::{complain, say};
use fairlane_realtime::signals::Termination;
use fairlane_realtime::socket::{Interface, Received, Receiver, Sender};
use fairlane_units::text::parse_delay;
use fairlane_units::Nanos;
use rustix::event::{PollFd, PollFlags};

/// Carries frames between pairs of interfaces, each later by a link's propagation delay.
#[derive(Debug, Parser)]
#[command(name = "fairlane-link", version)]
struct Arguments {
    /// A link: two interfaces and the delay of each direction, such as a-eth0,b-eth0=5ms. Repeatable.
    #[arg(long = "link", value_name = "A,B=DELAY", required = true, value_parser = parse_link)]
    links: Vec<Link>,
    /// Frames that are under way in one direction at most; what comes beyond is dropped and counted.
    #[arg(long, default_value_t = 100_000, value_name = "FRAMES")]
    limit: usize,
    /// Write what was carried, and how late it left, to this file in the end (JSON).
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Do not ask the kernel to run this before ordinary processes.
    #[arg(long)]
    ordinary: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Link {
    ends: [String; 2],
    delay: Nanos,
}

fn parse_link(text: &str) -> Result<Link, String> {
    let form = || format!("{text:?} is not of the form A,B=DELAY, such as a-eth0,b-eth0=5ms");
    let (ends, delay) = text.rsplit_once('=').ok_or_else(form)?;
    let (a, b) = ends.split_once(',').ok_or_else(form)?;
    if a.is_empty() || b.is_empty() || b.contains(',') {
        return Err(form());
    }
    if a == b {
        return Err(format!("{text:?}: a link has two ends, and both are {a}"));
    }
    let delay = parse_delay(delay).map_err(|error| error.to_string())?;
    Ok(Link { ends: [a.to_string(), b.to_string()], delay })
}

/// From interface `from` to interface `to`, by their places in the list of interfaces.
struct Direction {
    from: usize,
    to: usize,
    line: DelayLine,
    lateness: Lateness,
    failed: u64,
}

pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            complain(format_args!("fairlane-link: {message}"));
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let termination = Termination::take_over().map_err(|error| error.to_string())?;
    let mut interfaces = Vec::new();
    let mut directions = Vec::new();
    for link in &arguments.links {
        let first = interfaces.len();
        for end in &link.ends {
            interfaces.push(Interface::open(end).map_err(|error| error.to_string())?);
        }
        for (from, to) in [(first, first + 1), (first + 1, first)] {
            let line = DelayLine::new(link.delay, arguments.limit);
            directions.push(Direction { from, to, line, lateness: Lateness::default(), failed: 0 });
        }
    }
    clock::sharpen_timers();
    let urgent = !arguments.ordinary && clock::run_before_others();
    say(format_args!("ready {} links{}", arguments.links.len(), if urgent { ", before ordinary processes" } else { "" }));
    carry(&termination, &interfaces, &mut directions).map_err(|error| format!("waiting for frames: {error}"))?;
    match &arguments.report {
        Some(path) => write_report(path, &mut interfaces, &directions).map_err(|error| format!("--report {}: {error}", path.display())),
        None => Ok(()),
    }
}

/// Carries frames until SIGINT or SIGTERM.
fn carry(termination: &Termination, interfaces: &[Interface], directions: &mut [Direction]) -> std::io::Result<()> {
    let mut polled = vec![PollFd::new(termination, PollFlags::IN)];
    polled.extend(interfaces.iter().map(|interface| PollFd::new(interface, PollFlags::IN)));
    let (mut receiver, mut sender, mut spare) = (Receiver::new(), Sender::new(), Vec::new());
    let mut batch: Vec<Nanos> = Vec::new();
    loop {
        for direction in directions.iter_mut() {
            while let Some((due, frame)) = direction.line.pop(clock::now()) {
                batch.push(due);
                if sender.push(frame) {
                    send(direction, &mut sender, &mut batch, interfaces, &mut spare);
                }
            }
            send(direction, &mut sender, &mut batch, interfaces, &mut spare);
        }
        let next = directions.iter().filter_map(|direction| direction.line.next()).min();
        clock::wait(&mut polled, next)?;
        if !polled[0].revents().is_empty() {
            return Ok(());
        }
        for direction in directions.iter_mut() {
            // An interface that is down says so once and is silent until it is up again.
            if !polled[direction.from + 1].revents().is_empty() && receiver.receive(&interfaces[direction.from]).is_ok() {
                for Received { arrival, bytes, .. } in receiver.frames() {
                    let buffer = spare.pop().unwrap_or_default();
                    spare.extend(direction.line.push(arrival, bytes, buffer));
                }
            }
        }
    }
}

fn send(direction: &mut Direction, sender: &mut Sender, batch: &mut Vec<Nanos>, interfaces: &[Interface], spare: &mut Vec<Vec<u8>>) {
    if batch.is_empty() {
        return;
    }
    direction.failed += sender.flush(&interfaces[direction.to], spare).failed;
    let now = clock::now();
    for due in batch.drain(..) {
        direction.lateness.add(now.saturating_sub(due));
    }
}

/// One object for each direction, in a list.
fn write_report(path: &Path, interfaces: &mut [Interface], directions: &[Direction]) -> std::io::Result<()> {
    let mut text = String::from("[\n");
    for (position, direction) in directions.iter().enumerate() {
        let missed = interfaces[direction.from].missed();
        let lateness = &direction.lateness;
        let (from, to) = (interfaces[direction.from].name(), interfaces[direction.to].name());
        text += &format!(
            "  {{\"from\": \"{from}\", \"to\": \"{to}\", \"frames\": {}, \"late_mean_us\": {:.2}, \"late_p50_us\": {:.2}, \
             \"late_p99_us\": {:.2}, \"late_max_us\": {:.2}, \"dropped\": {}, \"missed\": {missed}, \"failed\": {}}}{}\n",
            lateness.count(),
            lateness.mean_us(),
            lateness.quantile_us(0.5),
            lateness.quantile_us(0.99),
            lateness.maximum_us(),
            direction.line.dropped,
            direction.failed,
            if position + 1 < directions.len() { "," } else { "" },
        );
    }
    text += "]\n";
    std::fs::File::create(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_two_interfaces_and_a_delay() {
        let link = parse_link("f3a2-l1a,f3a2-l1b=5ms").expect("a link");
        assert_eq!(link, Link { ends: ["f3a2-l1a".into(), "f3a2-l1b".into()], delay: 5_000_000 });
        for (bad, said) in [
            ("a=5ms", "not of the form"),
            ("a,b", "not of the form"),
            (",b=5ms", "not of the form"),
            ("a,b,c=5ms", "not of the form"),
            ("a,a=5ms", "two ends"),
            ("a,b=5parsec", "parsec"),
        ] {
            let message = parse_link(bad).expect_err(bad);
            assert!(message.contains(said), "{bad}: {message}");
        }
    }
}
