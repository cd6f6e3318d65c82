//! What one ACK costs a sender, without a network around it: `cargo bench -p fairlane-tcp`. CPU time, so that other work on the
//! machine counts little.

use fairlane_tcp::{Config, Flags, Flavour, SackBlocks, Segment, Sender, Transmit};

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
    let start = cpu_time();
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
    (cpu_time() - start) / acks as f64
}

/// Nanoseconds that this process has been on a CPU (Linux).
fn cpu_time() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("this bench needs Linux's /proc/self/schedstat");
    text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("a number of nanoseconds")
}

fn main() {
    println!("{:8} {:>6} {:>7} {:>6} {:>8}", "flavour", "flows", "window", "loss", "ns/ACK");
    for flavour in Flavour::ALL {
        for (flows, window, loss) in [(1, 100, 0), (1, 100, 100), (1000, 100, 0), (1000, 100, 100)] {
            println!("{:8} {:>6} {:>7} {:>6} {:>8.1}", flavour.name(), flows, window, loss, cost(flavour, flows, window, loss));
        }
    }
}
