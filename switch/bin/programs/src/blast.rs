//! `fairlane-blast`: sends numbered UDP frames as fast as an interface takes them (or at a given rate), and counts those that arrive.
//!
//! Each frame is Ethernet, IPv4, UDP and an eight-byte magic, followed by its number and, where it is long enough, the instant of its
//! sending, from which `count` tells how long frames were on their way. The results are one line of JSON.

use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use fairlane_realtime::clock;
use fairlane_realtime::socket::{Interface, Receiver, Sender, BATCH};

const MAGIC: &[u8; 8] = b"FLBLAST1";
/// Ethernet, IPv4 and UDP headers.
const HEADERS: usize = 14 + 20 + 8;
const SHORTEST: usize = HEADERS + MAGIC.len() + 8;
/// With the instant of sending.
const STAMPED: usize = SHORTEST + 8;
/// Ways kept for the statistics.
const MOST_WAYS: usize = 1 << 22;

#[derive(Parser)]
#[command(name = "fairlane-blast", version, about = "Sends UDP frames through a switch, and counts those that come out")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Send frames
    Send {
        interface: String,
        /// Frame size in bytes, without the frame check sequence
        #[arg(long, default_value_t = 64)]
        size: usize,
        #[arg(long, default_value_t = 1.0)]
        seconds: f64,
        /// Frames per second; 0 is as fast as possible
        #[arg(long, default_value_t = 0)]
        rate: u64,
        #[arg(long, default_value = "10.0.1.1")]
        source: Ipv4Addr,
        /// Addresses to send from, one after the other: the source and those that follow it
        #[arg(long, default_value_t = 1)]
        sources: u32,
        #[arg(long, default_value = "10.0.2.2")]
        destination: Ipv4Addr,
    },
    /// Count frames of `send` until none has come for a second (after the first) or the time is over
    Count {
        interface: String,
        #[arg(long, default_value_t = 10.0)]
        seconds: f64,
    },
}

pub fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Send { interface, size, seconds, rate, source, sources, destination } => {
            send(&interface, &template(size, source, destination), duration(seconds), rate, (source, sources.max(1)))
        }
        Command::Count { interface, seconds } => count(&interface, duration(seconds)),
    };
    match result {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("fairlane-blast: {message}");
            ExitCode::FAILURE
        }
    }
}

fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO)
}

fn template(size: usize, source: Ipv4Addr, destination: Ipv4Addr) -> Vec<u8> {
    let size = size.clamp(SHORTEST, 65_535);
    let mut frame = Vec::with_capacity(size);
    frame.extend([2, 0, 0, 0, 2, 2, 2, 0, 0, 0, 1, 1, 0x08, 0x00]);
    let mut ip = [0u8; 20];
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&((size - 14) as u16).to_be_bytes());
    ip[6] = 0x40; // don't fragment
    ip[8] = 64;
    ip[9] = 17;
    ip[12..16].copy_from_slice(&source.octets());
    ip[16..20].copy_from_slice(&destination.octets());
    write_checksum(&mut ip);
    frame.extend(ip);
    frame.extend([0x13, 0x88, 0x13, 0x89]); // ports 5000, 5001
    frame.extend(((size - 34) as u16).to_be_bytes());
    frame.extend([0, 0]); // no checksum
    frame.extend(MAGIC);
    frame.resize(size, 0);
    frame
}

/// Of an IPv4 header without options [RFC 791 sec 3.1].
fn write_checksum(ip: &mut [u8]) {
    ip[10..12].fill(0);
    let sum: u32 = ip.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    ip[10..12].copy_from_slice(&(!((folded & 0xffff) + (folded >> 16)) as u16).to_be_bytes());
}

/// sources: the first address, and how many take turns.
fn send(name: &str, template: &[u8], lasting: Duration, rate: u64, sources: (Ipv4Addr, u32)) -> Result<String, String> {
    let interface = Interface::open(name).map_err(|error| error.to_string())?;
    let mut sender = Sender::new();
    let mut spare: Vec<Vec<u8>> = (0..BATCH).map(|_| template.to_vec()).collect();
    let (mut numbered, mut sent, mut failed) = (0u64, 0u64, 0u64);
    let start = Instant::now();
    while start.elapsed() < lasting {
        let allowed = match rate {
            0 => BATCH as u64,
            rate => ((start.elapsed().as_secs_f64() * rate as f64) as u64).saturating_sub(numbered).min(BATCH as u64),
        };
        if allowed == 0 {
            std::thread::sleep(Duration::from_micros(50));
            continue;
        }
        let now = clock::now();
        for _ in 0..allowed {
            let Some(mut frame) = spare.pop() else { break };
            frame[HEADERS + MAGIC.len()..SHORTEST].copy_from_slice(&numbered.to_be_bytes());
            if sources.1 > 1 {
                let source = u32::from(sources.0).wrapping_add((numbered % u64::from(sources.1)) as u32);
                frame[26..30].copy_from_slice(&source.to_be_bytes());
                write_checksum(&mut frame[14..34]);
            }
            if let Some(stamp) = frame.get_mut(SHORTEST..STAMPED) {
                stamp.copy_from_slice(&now.to_be_bytes());
            }
            numbered += 1;
            sender.push(frame);
        }
        let result = sender.flush(&interface, &mut spare);
        sent += result.frames;
        failed += result.failed;
    }
    let seconds = start.elapsed().as_secs_f64();
    Ok(format!("{{\"sent\": {sent}, \"failed\": {failed}, \"seconds\": {seconds:.6}}}"))
}

fn count(name: &str, lasting: Duration) -> Result<String, String> {
    let mut interface = Interface::open(name).map_err(|error| error.to_string())?;
    let mut receiver = Receiver::new();
    let (mut frames, mut bytes, mut reordered, mut highest) = (0u64, 0u64, 0u64, None);
    let (mut first, mut last) = (None, Instant::now());
    let (mut ways, mut arrived, mut longest_gap) = (Vec::new(), None, 0u64);
    let start = Instant::now();
    eprintln!("ready count {name}");
    while start.elapsed() < lasting && !(first.is_some() && last.elapsed() > Duration::from_secs(1)) {
        let received = receiver.receive(&interface).map_err(|error| format!("{name}: {error}"))?;
        for frame in receiver.frames() {
            let Some(number) = number_of(frame.bytes) else { continue };
            last = Instant::now();
            first.get_or_insert(last);
            if let Some(before) = arrived.replace(frame.arrival) {
                longest_gap = longest_gap.max(frame.arrival.saturating_sub(before));
            }
            if let Some(stamp) = frame.bytes.get(SHORTEST..STAMPED).and_then(|stamp| stamp.try_into().ok())
                && ways.len() < MOST_WAYS
            {
                ways.push(frame.arrival.saturating_sub(u64::from_be_bytes(stamp)));
            }
            frames += 1;
            bytes += frame.bytes.len() as u64;
            reordered += u64::from(highest.is_some_and(|highest| number < highest));
            highest = highest.max(Some(number));
        }
        if received == 0 {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
    let seconds = first.map_or(0.0, |first| (last - first).as_secs_f64());
    let missed = interface.missed();
    ways.sort_unstable();
    // The share of frames that were on their way no longer, in milliseconds.
    let way = |share: f64| {
        ways.get(((ways.len() as f64 * share) as usize).min(ways.len().saturating_sub(1))).map_or(0.0, |way| *way as f64 / 1e6)
    };
    Ok(format!(
        "{{\"frames\": {frames}, \"bytes\": {bytes}, \"reordered\": {reordered}, \"missed\": {missed}, \"seconds\": {seconds:.6}, \
         \"median_way_ms\": {:.4}, \"slowest_in_1000_ms\": {:.4}, \"longest_way_ms\": {:.4}, \"longest_gap_ms\": {:.4}}}",
        way(0.5),
        way(0.999),
        way(1.0),
        longest_gap as f64 / 1e6
    ))
}

fn number_of(frame: &[u8]) -> Option<u64> {
    let payload = frame.get(HEADERS..SHORTEST)?;
    let number = payload.strip_prefix(MAGIC)?;
    Some(u64::from_be_bytes(number.try_into().ok()?))
}
