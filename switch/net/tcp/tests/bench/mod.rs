//! A sender whose events and ACKs a test makes by hand. Segments are 1000 bytes and numbered from 0; `ack(n)` acknowledges segments 0 to n - 1.
#![allow(dead_code)]

use fairlane_tcp::{Config, Flags, Flavour, Nanos, ReductionBase, SackBlocks, Segment, Sender, Transmit};

pub const MSS: u64 = 1000;
pub const MS: Nanos = 1_000_000;

pub struct Bench {
    pub sender: Sender,
    pub now: Nanos,
    pub out: Vec<Transmit>,
}

pub fn config(flavour: Flavour) -> Config {
    Config {
        flavour,
        mss: 1000,
        initial_window_segments: 10,
        max_window: 1 << 20,
        handshake: false,
        reduction_base: ReductionBase::FlightSize,
        ..Config::default()
    }
}

impl Bench {
    pub fn new(config: Config) -> Self {
        let mut sender = Sender::new(config, 0).unwrap();
        sender.write(u64::MAX);
        Bench { sender, now: 0, out: vec![] }
    }

    /// Opens and returns the numbers of the segments sent.
    pub fn open(&mut self) -> Vec<u64> {
        self.sender.open(self.now, &mut self.out);
        // what is paced leaves within some milliseconds
        while let Some(at) = self.sender.next_timer().filter(|&at| at < 50 * MS) {
            self.sender.on_timer(at, &mut self.out);
        }
        self.sent()
    }

    pub fn sent(&mut self) -> Vec<u64> {
        self.out.drain(..).filter(|t| t.segment.payload_len > 0).map(|t| u64::from(t.segment.seq - 1) / MSS).collect()
    }

    pub fn ack(&mut self, upto: u64) -> Vec<u64> {
        self.ack_sack(upto, &[])
    }

    /// ACKs segment by segment from `acked` on, of as many as the window has.
    pub fn ack_window(&mut self, acked: &mut u64) {
        for _ in 0..self.cwnd() / MSS {
            *acked += 1;
            self.ack(*acked);
        }
    }

    /// An ACK with SACK blocks, in segment numbers.
    pub fn ack_sack(&mut self, upto: u64, blocks: &[(u64, u64)]) -> Vec<u64> {
        let mut sack = SackBlocks::default();
        for &(left, right) in blocks {
            sack.push((1 + left * MSS) as u32, (1 + right * MSS) as u32);
        }
        let scale = config(Flavour::Sack).window_scale();
        let segment =
            Segment { ack: (1 + upto * MSS) as u32, flags: Flags::ACK, window: ((1u64 << 20) >> scale) as u16, sack, ..Segment::default() };
        let segment = if self.sender.flavour() == Flavour::Prague { segment.with_ace(5) } else { segment };
        self.sender.on_segment(self.now, &segment, &mut self.out);
        self.sent()
    }

    /// The retransmission timer; what waits for the pace leaves before.
    pub fn fire_timer(&mut self) -> Vec<u64> {
        let before = self.sender.stats().timeouts;
        loop {
            self.now = self.sender.next_timer().expect("a timer is set");
            self.sender.on_timer(self.now, &mut self.out);
            let sent = self.sent();
            if !self.sender.flavour().is_paced() || self.sender.stats().timeouts > before {
                return sent;
            }
        }
    }

    pub fn cwnd(&self) -> u64 {
        self.sender.cwnd()
    }
}

/// A sender with `window` segments in flight, numbered from the answer on, in congestion avoidance.
pub fn in_flight(flavour: Flavour, window: u64) -> Bench {
    in_flight_with(config(flavour), window)
}

pub fn in_flight_with(config: Config, window: u64) -> Bench {
    let config = Config { initial_window_segments: window as u32, initial_ssthresh: Some(2 * MSS), ..config };
    let mut bench = Bench::new(config);
    assert_eq!(bench.open(), (0..window).collect::<Vec<_>>());
    bench.now = 100 * MS;
    bench
}
