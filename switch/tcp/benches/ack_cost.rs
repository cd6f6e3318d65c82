//! What one ACK costs a sender, without a network around it: `cargo bench -p fairlane-tcp`.

use fairlane_tcp::{Config, Flags, Flavour, SackBlocks, Segment, Sender, Transmit};
use std::time::Instant;

const MSS: u64 = 1000;
const ACKS: u64 = 5_000_000;

/// Nanoseconds per ACK with `flows` senders in turn; every `loss`-th segment's first transmission is missed (0: none).
fn cost(flavour: Flavour, flows: usize, window: u64, loss: u64) -> f64 {
    let config = Config { flavour, mss: MSS as u32, handshake: false, max_window: window * MSS, ..Config::default() };
    let scale = config.window_scale();
    let mut out: Vec<Transmit> = Vec::with_capacity(1 << 16);
    let mut flows: Vec<(Sender, u64)> = (0..flows)
        .map(|_| {
            let mut sender = Sender::new(config.clone(), 0).unwrap();
            sender.write(u64::MAX);
            sender.open(0, &mut out);
            (sender, 0)
        })
        .collect();
    out.clear();
    let start = Instant::now();
    let (mut acks, mut now) = (0, 0);
    while acks < ACKS {
        for (sender, acked) in &mut flows {
            now += 1000;
            let hole = loss > 0 && *acked % loss == loss - 1 && *acked + 5 < sender.flight_size() / MSS + *acked;
            // a hole: three ACKs with SACK blocks above it, then the ACK that fills it
            for step in 0..if hole { 4 } else { 1 } {
                let mut sack = SackBlocks::default();
                if hole && step < 3 {
                    sack.push((1 + (*acked + 1) * MSS) as u32, (1 + (*acked + 2 + step) * MSS) as u32);
                } else {
                    *acked += if hole { 4 } else { 1 };
                }
                let ack = Segment {
                    ack: (1 + *acked * MSS) as u32,
                    flags: Flags::ACK,
                    window: ((window * MSS) >> scale) as u16,
                    sack,
                    ..Segment::default()
                };
                sender.on_segment(now, &ack, &mut out);
                out.clear();
                acks += 1;
            }
        }
    }
    start.elapsed().as_nanos() as f64 / acks as f64
}

fn main() {
    println!("{:8} {:>6} {:>7} {:>6} {:>8}", "flavour", "flows", "window", "loss", "ns/ACK");
    for flavour in Flavour::ALL {
        for (flows, window, loss) in [(1, 100, 0), (1, 100, 100), (1000, 100, 0), (1000, 100, 100)] {
            println!("{:8} {:>6} {:>7} {:>6} {:>8.1}", flavour.name(), flows, window, loss, cost(flavour, flows, window, loss));
        }
    }
}
