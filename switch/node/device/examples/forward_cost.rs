//! What one frame costs in the device alone, without sockets: nanoseconds per frame for a BMv2 JSON and an IPv4 destination.
//!
//! `cargo run --release -p fairlane-device --example forward_cost -- forward.json [FRAMES]`

use std::sync::Arc;
use std::time::Instant;

use fairlane_device::pipeline::Program;
use fairlane_device::{Device, DeviceConfig, Nanos, Output, PortConfig, PortId};

/// Counts frames and gives their buffers back, as the real-time switch does.
struct Counter(u64);

impl Output for Counter {
    fn transmit(&mut self, _port: PortId, _departure: Nanos, frame: Vec<u8>) -> Option<Vec<u8>> {
        self.0 += 1;
        Some(frame)
    }
}

fn main() -> Result<(), String> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: forward_cost PROGRAM.json [FRAMES]")?;
    let frames: u64 = arguments.next().map_or(Ok(2_000_000), |text| text.parse()).map_err(|_| "FRAMES is a number")?;
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let program = Program::from_json(&text).map_err(|error| format!("{path}: {error}"))?;
    let mut device = Device::new(DeviceConfig::default());
    for port in [1, 2] {
        device.set_port(port, PortConfig::default()).map_err(|error| error.to_string())?;
    }
    device.load(0, Arc::new(program)).expect("memory");
    let frame = udp_frame();
    let (mut counter, start) = (Counter(0), Instant::now());
    for batch in 0..frames / 64 {
        for _ in 0..64 {
            device.receive(batch, 1, &frame);
        }
        device.poll(batch, &mut counter);
    }
    let elapsed = start.elapsed();
    println!("{} frames out, {:.0} ns per frame", counter.0, elapsed.as_nanos() as f64 / frames as f64);
    Ok(())
}

/// 64 bytes from 10.0.1.1 to 10.0.2.2.
fn udp_frame() -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 2, 2, 2, 0, 0, 0, 1, 1, 8, 0];
    frame.extend([0x45, 0, 0, 50, 0, 0, 0x40, 0, 64, 17, 0x23, 0xb6, 10, 0, 1, 1, 10, 0, 2, 2]);
    frame.resize(64, 0);
    frame
}
