//! A dumbbell just big enough to compare TCP with ns-2: senders on the left, receivers on the right, one bottleneck with a
//! drop-tail or RED queue, an equal link back. Integer nanoseconds; one event at a time; the same run for the same arguments.
#![allow(dead_code)]

mod red;

pub use red::RedParameters;

use fairlane_tcp::{Config, Ftp, Nanos, Receiver, Sender, Transmit};
use red::Red;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

/// IPv4 and TCP headers, as ns-2 counts them whatever the options.
pub const HEADER: u64 = 40;

#[derive(Clone, Debug)]
pub struct Settings {
    pub config: Config,
    pub flows: usize,
    pub rate_bps: u64,
    /// Both propagation delays together.
    pub rtt: Nanos,
    /// Packets that may wait, the one in service not counted.
    pub buffer_packets: usize,
    pub red: Option<RedParameters>,
    /// Packets that the bottleneck loses, by number: 1 is the first that comes to it.
    pub lost: BTreeSet<u64>,
    pub seed: u64,
    pub until: Nanos,
    pub starts: Vec<Nanos>,
}

#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub delivered: Vec<u64>,
    pub loss_events: u64,
    pub timeouts: u64,
    pub retransmitted: u64,
    /// (instant, flow)
    pub drops: Vec<(Nanos, usize)>,
    pub mean_queue: f64,
    pub acks: u64,
    pub packets: u64,
    /// cwnd of flow 0 whenever it changed, in bytes.
    pub cwnd: Vec<(Nanos, u64)>,
}

enum Event {
    Start(usize),
    LinkFree,
    AtReceiver(usize, Transmit),
    BackLinkFree,
    AtSender(usize, Transmit),
    SenderTimer(usize),
    ReceiverTimer(usize),
}

struct Entry(Nanos, u64, Event);
impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

struct Flow {
    sender: Sender,
    receiver: Receiver,
    sender_event: Option<Nanos>,
    receiver_event: Option<Nanos>,
}

struct Dumbbell {
    settings: Settings,
    now: Nanos,
    order: u64,
    events: BinaryHeap<Reverse<Entry>>,
    flows: Vec<Flow>,
    queue: VecDeque<(usize, Transmit)>,
    busy: bool,
    arrived: u64,
    back_queue: VecDeque<(usize, Transmit)>,
    back_busy: bool,
    red: Option<Red>,
    /// Packets times nanoseconds, up to `queue_since`.
    queue_integral: u128,
    queue_since: Nanos,
    out: Vec<Transmit>,
    outcome: Outcome,
}

/// Runs `settings` to their end.
pub fn run(settings: Settings) -> Outcome {
    let flows = (0..settings.flows)
        .map(|i| {
            let mut sender = Sender::new(settings.config.clone(), 1 << 31).unwrap();
            Ftp::Persistent.attach(&mut sender);
            let mut receiver = Receiver::new(settings.config.clone(), i as u32).unwrap();
            if !settings.config.handshake {
                receiver.listen_without_handshake(1 << 31);
            }
            Flow { sender, receiver, sender_event: None, receiver_event: None }
        })
        .collect();
    let red = settings.red.clone().map(|p| Red::new(p, settings.rate_bps, settings.seed));
    let mut bell = Dumbbell {
        now: 0,
        order: 0,
        events: BinaryHeap::new(),
        flows,
        queue: VecDeque::new(),
        busy: false,
        arrived: 0,
        back_queue: VecDeque::new(),
        back_busy: false,
        red,
        queue_integral: 0,
        queue_since: 0,
        out: vec![],
        outcome: Outcome::default(),
        settings,
    };
    for (i, at) in bell.settings.starts.clone().into_iter().enumerate() {
        bell.schedule(at, Event::Start(i));
    }
    bell.run();
    bell.outcome
}

impl Dumbbell {
    fn schedule(&mut self, at: Nanos, event: Event) {
        self.order += 1;
        self.events.push(Reverse(Entry(at, self.order, event)));
    }

    fn run(&mut self) {
        while let Some(Reverse(Entry(at, _, event))) = self.events.pop() {
            if at > self.settings.until {
                break;
            }
            self.now = at;
            match event {
                Event::Start(i) => self.with_sender(i, |s, now, out| s.open(now, out)),
                Event::AtSender(i, t) => self.with_sender(i, |s, now, out| s.on_segment(now, &t.segment, out)),
                Event::SenderTimer(i) => {
                    self.flows[i].sender_event = None;
                    self.with_sender(i, |s, now, out| s.on_timer(now, out));
                }
                Event::AtReceiver(i, t) => self.with_receiver(i, |r, now, out| r.on_segment(now, &t.segment, false, out)),
                Event::ReceiverTimer(i) => {
                    self.flows[i].receiver_event = None;
                    self.with_receiver(i, |r, now, out| r.on_timer(now, out));
                }
                Event::LinkFree => {
                    self.busy = false;
                    self.serve();
                }
                Event::BackLinkFree => {
                    self.back_busy = false;
                    self.serve_back();
                }
            }
        }
        self.now = self.settings.until;
        self.count_queue();
        self.outcome.mean_queue = self.queue_integral as f64 / self.settings.until as f64;
        for flow in &self.flows {
            let stats = flow.sender.stats();
            self.outcome.delivered.push(flow.receiver.delivered());
            self.outcome.loss_events += stats.loss_events();
            self.outcome.timeouts += stats.timeouts;
            self.outcome.retransmitted += stats.segments_retransmitted;
            self.outcome.acks += stats.acks;
            self.outcome.packets += stats.segments_sent;
        }
    }

    fn with_sender(&mut self, i: usize, act: impl FnOnce(&mut Sender, Nanos, &mut Vec<Transmit>)) {
        let mut out = std::mem::take(&mut self.out);
        act(&mut self.flows[i].sender, self.now, &mut out);
        for t in out.drain(..) {
            self.arrive(i, t);
        }
        self.out = out;
        let flow = &mut self.flows[i];
        if i == 0 && self.outcome.cwnd.last().is_none_or(|last| last.1 != flow.sender.cwnd()) {
            self.outcome.cwnd.push((self.now, flow.sender.cwnd()));
        }
        // a timer that moved later keeps its event and is asked again
        if let Some(at) = flow.sender.next_timer()
            && flow.sender_event.is_none_or(|event| event > at)
        {
            flow.sender_event = Some(at);
            self.schedule(at, Event::SenderTimer(i));
        }
    }

    fn with_receiver(&mut self, i: usize, act: impl FnOnce(&mut Receiver, Nanos, &mut Vec<Transmit>)) {
        let mut out = std::mem::take(&mut self.out);
        act(&mut self.flows[i].receiver, self.now, &mut out);
        for t in out.drain(..) {
            self.back_queue.push_back((i, t));
        }
        self.out = out;
        self.serve_back();
        let flow = &mut self.flows[i];
        if let Some(at) = flow.receiver.next_timer()
            && flow.receiver_event.is_none_or(|event| event > at)
        {
            flow.receiver_event = Some(at);
            self.schedule(at, Event::ReceiverTimer(i));
        }
    }

    /// A packet comes to the bottleneck.
    fn arrive(&mut self, i: usize, t: Transmit) {
        self.count_queue();
        self.arrived += 1;
        let full = self.busy && self.queue.len() >= self.settings.buffer_packets;
        let waiting = self.queue.len();
        let now = self.now;
        let dropped = match &mut self.red {
            Some(red) => red.drops(now, waiting, full),
            None => full,
        };
        if dropped || self.settings.lost.contains(&self.arrived) {
            self.outcome.drops.push((self.now, i));
        } else {
            self.queue.push_back((i, t));
            self.serve();
        }
    }

    fn count_queue(&mut self) {
        self.queue_integral += self.queue.len() as u128 * u128::from(self.now - self.queue_since);
        self.queue_since = self.now;
    }

    fn transmission_time(&self, t: &Transmit) -> Nanos {
        (u64::from(t.segment.payload_len) + HEADER) * 8 * 1_000_000_000 / self.settings.rate_bps
    }

    fn serve(&mut self) {
        if self.busy {
            return;
        }
        self.count_queue();
        let Some((i, t)) = self.queue.pop_front() else {
            if let Some(red) = &mut self.red {
                red.idle_from(self.now);
            }
            return;
        };
        self.busy = true;
        let free = self.now + self.transmission_time(&t);
        self.schedule(free, Event::LinkFree);
        self.schedule(free + self.settings.rtt / 2, Event::AtReceiver(i, t));
    }

    fn serve_back(&mut self) {
        if self.back_busy {
            return;
        }
        if let Some((i, t)) = self.back_queue.pop_front() {
            self.back_busy = true;
            let free = self.now + self.transmission_time(&t);
            self.schedule(free, Event::BackLinkFree);
            self.schedule(free + self.settings.rtt / 2, Event::AtSender(i, t));
        }
    }
}

/// Drops of one flow within `window` of the first are one event [RFC 5348 sec 5.2]; as `run_tcp.py` counts.
pub fn drop_events(drops: &[(Nanos, usize)], window: Nanos) -> u64 {
    let mut begun = std::collections::HashMap::new();
    let mut count = 0;
    for &(at, flow) in drops {
        if begun.get(&flow).is_none_or(|&start| at > start + window) {
            begun.insert(flow, at);
            count += 1;
        }
    }
    count
}
