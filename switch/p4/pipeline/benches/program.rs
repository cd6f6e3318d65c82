//! What a program costs without ports and queues: frames of a capture from memory through parser, ingress, egress and deparser.
//!
//! `cargo bench -p fairlane-pipeline --bench program -- PROGRAM.json FRAMES.pcap [PACKETS]`
//!
//! Prints one line of JSON: nanoseconds of CPU per packet, the median of some passes and the least, with the output's link busy (a
//! queue of ten behind each packet) and idle. The traffic manager is not in it; instead each packet is told what it would say.

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;

use fairlane_pipeline::{EgressOut, IngressOut, Program, QueueInfo, Switch, SwitchConfig};

fairlane_memory::huge_pages!();

const PASSES: usize = 9;
/// Nanoseconds between frames: 1000 B at 100 Mb/s.
const INTERVAL: u64 = 80_000;

fn main() -> ExitCode {
    // Cargo adds a flag of its own.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    match run(&arguments) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("program: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<String, String> {
    let [program, capture, rest @ ..] = arguments else {
        return Err("usage: program PROGRAM.json FRAMES.pcap [PACKETS]".to_string());
    };
    let packets: usize = rest.first().map_or(Ok(200_000), |n| n.parse()).map_err(|_| "PACKETS is a number")?;
    let text = std::fs::read_to_string(program).map_err(|error| format!("{program}: {error}"))?;
    let program = Arc::new(Program::from_json(&text).map_err(|error| format!("{program}: {error}"))?);
    let bytes = std::fs::read(capture).map_err(|error| format!("{capture}: {error}"))?;
    let frames = frames(&bytes).filter(|frames| !frames.is_empty()).ok_or(format!("{capture}: no little-endian pcap file with frames"))?;
    let busy = measure(&program, &frames, packets, 10);
    let idle = measure(&program, &frames, packets, 0);
    Ok(format!("{{\"packets\": {packets}, \"busy\": {busy}, \"idle\": {idle}}}"))
}

fn frames(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    if bytes.get(..4)? != [0xd4, 0xc3, 0xb2, 0xa1] {
        return None;
    }
    let (mut rest, mut all) = (bytes.get(24..)?, Vec::new());
    while rest.len() >= 16 {
        let length = u32::from_le_bytes(rest[8..12].try_into().ok()?) as usize;
        all.push(rest.get(16..16 + length)?);
        rest = &rest[16 + length..];
    }
    Some(all)
}

fn measure(program: &Arc<Program>, frames: &[&[u8]], packets: usize, queue: u32) -> String {
    let config = SwitchConfig { seed: 1, ..SwitchConfig::default() };
    let mut sw = Switch::new(Arc::clone(program), config).expect("memory");
    let (mut iout, mut eout) = (IngressOut::default(), EgressOut::default());
    let (mut times, mut out, mut now) = (Vec::new(), 0_usize, 1_000_000_000);
    for _ in 0..PASSES {
        let start = cpu_time();
        for i in 0..packets {
            now += INTERVAL;
            // As from a port's ring: the frame is copied into a buffer of the switch.
            let mut buffer = sw.buffer();
            buffer.extend_from_slice(black_box(frames[i % frames.len()]));
            sw.ingress_owned(now, 1, buffer, &mut iout);
            if let Some(item) = iout.queued.pop() {
                let info =
                    QueueInfo { enq_timestamp: now, enq_qdepth: queue, deq_timedelta: u64::from(queue) * INTERVAL, deq_qdepth: queue };
                sw.egress(now + info.deq_timedelta, item, info, &mut eout);
                out += usize::from(eout.emitted.is_some());
                black_box(&eout.emitted);
            }
        }
        times.push((cpu_time() - start) / packets as f64);
        sw.take_digests();
    }
    times.sort_by(f64::total_cmp);
    let emitted = out as f64 / (packets * PASSES) as f64;
    format!("{{\"ns_median\": {:.1}, \"ns_least\": {:.1}, \"emitted\": {emitted:.4}}}", times[PASSES / 2], times[0])
}

/// Nanoseconds this process has been on a CPU: a busy machine does not count.
fn cpu_time() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0.0)
}
