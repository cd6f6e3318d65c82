//! One direction of a link: serialisation and queue where a host sends (a switch has its own), propagation, loss, jitter, and what else a link
//! does to frames ([`Impairments`]).
//!
//! The network in virtual time has a channel for each direction of each link. The real-time switch has one for each direction that loses,
//! delays or impairs frames at random, and for what hosts send to it over a link that changes or follows a trace. The instant is an argument; the
//! stream of random numbers is named after the link, so that the same seed gives both the same stream.

#![forbid(unsafe_code)]

mod impairments;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use fairlane_random::Rng;
use fairlane_tm::Link;
pub use fairlane_tm::{Scheduler, Trace, TraceError};
use fairlane_units::{transmission, Nanos};
use impairments::{flip, Fate, Streams};
pub use impairments::{Impairments, ImpairmentsChange, LossModel};

/// How much later than it could a frame arrives. Jitter never reorders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jitter {
    /// Drawn uniformly from 0 to `most_ns`.
    Uniform { most_ns: Nanos },
    /// The absolute value of a Gaussian, at most [`JITTER_STDS`] standard deviations [RFC 8868 sec 4.5.3]; and a frame arrives no sooner after the one before than
    /// that takes at the link's rate [RFC 8868 sec 4.5.2].
    Gaussian { std_ns: Nanos },
}

/// N_STD: a Gaussian jitter ends at so many standard deviations [RFC 8868 sec 4.5.3].
pub const JITTER_STDS: f64 = 3.0;

impl Jitter {
    /// No jitter, or the one that is not 0; Gaussian where both are.
    pub fn of(uniform_ns: Nanos, std_ns: Nanos) -> Option<Jitter> {
        let gaussian = (std_ns > 0).then_some(Jitter::Gaussian { std_ns });
        gaussian.or((uniform_ns > 0).then_some(Jitter::Uniform { most_ns: uniform_ns }))
    }

    fn draw(self, rng: &mut Rng) -> Nanos {
        match self {
            Jitter::Uniform { most_ns } => rng.up_to(most_ns),
            // |max(min(N(0, std^2), N_STD std), -N_STD std)|
            Jitter::Gaussian { std_ns } => (rng.gaussian().clamp(-JITTER_STDS, JITTER_STDS).abs() * std_ns as f64) as Nanos,
        }
    }
}

/// What one direction of a link is.
#[derive(Debug, Clone, PartialEq)]
pub struct ChannelConfig {
    /// Bits per second, positive; `None` transmits in no time.
    pub rate_bps: Option<u64>,
    /// Propagation delay in nanoseconds.
    pub delay_ns: Nanos,
    /// Frames that wait at the sending end, the one in transmission not counted.
    pub queue_packets: u32,
    /// Frames lost on the way. They use link time.
    pub loss: Option<LossModel>,
    /// Each frame takes longer.
    pub jitter: Option<Jitter>,
    /// What else happens to frames on the way.
    pub impairments: Impairments,
    /// Bytes added to each frame on the link, or taken away (-14: the rate counts datagrams without Ethernet's header).
    pub overhead_bytes: i32,
    /// Of a switch's port with several queues: which sends next.
    pub scheduler: Scheduler,
}

impl Default for ChannelConfig {
    fn default() -> Self {
        ChannelConfig {
            rate_bps: None,
            delay_ns: 0,
            queue_packets: 1000,
            loss: None,
            jitter: None,
            impairments: Impairments::default(),
            overhead_bytes: 0,
            scheduler: Scheduler::Strict,
        }
    }
}

impl ChannelConfig {
    /// Of a frame, as the rate counts them.
    fn bits(&self, frame: &[u8]) -> u64 {
        8 * (frame.len() as u64).saturating_add_signed(self.overhead_bytes.into())
    }
}

/// What a channel has counted since the beginning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChannelStats {
    /// Frames given to it.
    pub offered_packets: u64,
    /// Frames that arrived at the other end, copies included.
    pub delivered_packets: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Frames that found the host's queue full.
    pub dropped_tail: u64,
    /// Frames lost on the way.
    pub dropped_loss: u64,
    /// Frames that arrived after one that was sent later (RFC 4737).
    pub reordered: u64,
    /// Copies made on the way.
    pub duplicated: u64,
    /// Frames that arrived with a bit flipped.
    pub corrupted: u64,
    /// Frames lost because the link had failed, or failed while they waited or were on the way.
    pub dropped_down: u64,
}

impl ChannelStats {
    /// Frames offered, and what happened to them on the way, as records of links have it: lost, reordered, duplicated, corrupted.
    pub fn on_the_way(&self) -> [u64; 5] {
        [self.offered_packets, self.dropped_loss, self.reordered, self.duplicated, self.corrupted]
    }
}

#[derive(Debug)]
struct OnTheWay {
    /// When its transmission begins: until then it waits.
    start: Nanos,
    arrival: Nanos,
    /// What jitter adds.
    late: Nanos,
    /// When the transmitter had sent the frame before it.
    free: Nanos,
    lost: bool,
    fate: Fate,
    /// Counted as they were sent.
    number: u64,
    frame: Vec<u8>,
}

/// One direction of a link.
#[derive(Debug)]
pub struct Channel {
    pub config: ChannelConfig,
    pub stats: ChannelStats,
    rng: Rng,
    streams: Streams,
    /// Whether the link has failed.
    down: bool,
    /// The transmitter, where a host sends.
    transmitter: Option<Link>,
    frames: VecDeque<OnTheWay>,
    /// How many at the front of `frames` have begun their transmission.
    begun: usize,
    /// The next frame arrives no sooner.
    earliest: Nanos,
    /// Frames held back, and copies, by the time of their arrival and in the order in which they came here: the frame's number, and the frame.
    held: BTreeMap<(Nanos, u64), (u64, Vec<u8>)>,
    /// Frames that were ever held.
    ever_held: u64,
    /// The highest number that has arrived.
    highest: u64,
}

/// What became of a frame that a host sends.
#[derive(Debug, PartialEq, Eq)]
pub enum Sent {
    /// It is the only one on its way, and arrives then.
    First(Nanos),
    /// It follows others.
    Behind,
    /// The queue is full, or the link has failed.
    Full(Vec<u8>),
}

impl Channel {
    /// The direction of a link from node `from` to node `to` in a run of seed `seed`. from_host: it has a transmitter and a queue.
    pub fn new(config: ChannelConfig, from_host: bool, seed: u64, from: &str, to: &str) -> Channel {
        let transmitter = from_host.then(|| Link::new(config.rate_bps));
        let rng = Rng::stream(seed, &format!("link {from}->{to}"));
        Channel {
            config,
            stats: ChannelStats::default(),
            rng,
            down: false,
            streams: Streams::new(seed, from, to),
            transmitter,
            frames: VecDeque::new(),
            begun: 0,
            earliest: 0,
            held: BTreeMap::new(),
            ever_held: 0,
            highest: 0,
        }
    }

    /// A host sends a frame.
    pub fn send(&mut self, now: Nanos, frame: Vec<u8>) -> Sent {
        self.stats.offered_packets += 1;
        while self.frames.get(self.begun).is_some_and(|waiting| waiting.start <= now) {
            self.begun += 1;
        }
        if self.down {
            self.stats.dropped_down += 1;
            return Sent::Full(frame);
        }
        let Some(transmitter) = &mut self.transmitter else { return Sent::Full(frame) };
        let (free, start) = (transmitter.free_at(), transmitter.free_for(now));
        if start > now && self.frames.len() - self.begun >= self.config.queue_packets as usize {
            self.stats.dropped_tail += 1;
            return Sent::Full(frame);
        }
        transmitter.begin(now);
        let finish = transmitter.transmit(self.config.bits(&frame));
        let lost = self.loses();
        let late = self.late();
        let fate = self.streams.fate(&self.config.impairments, frame.len());
        let arrival = self.arrival(finish.saturating_add(self.config.delay_ns).saturating_add(late), &frame);
        let number = self.stats.offered_packets;
        self.frames.push_back(OnTheWay { start, arrival, late, free, lost, fate, number, frame });
        if self.frames.len() == 1 && self.next() == Some(arrival) {
            Sent::First(arrival)
        } else {
            Sent::Behind
        }
    }

    /// Whether frames of a switch, which has serialised and delayed them itself, arrive at once.
    pub fn is_plain(&self) -> bool {
        self.config.loss.is_none() && self.config.jitter.is_none() && self.config.impairments.are_none()
    }

    /// A frame comes out of a switch's port. `Ok`: it arrives now. `Err`: it was lost, or arrives later (see [`Channel::next`]).
    pub fn pass(&mut self, now: Nanos, frame: Vec<u8>) -> Result<Vec<u8>, Option<Vec<u8>>> {
        self.stats.offered_packets += 1;
        let number = self.stats.offered_packets;
        if self.down {
            self.stats.dropped_down += 1;
            return Err(Some(frame));
        }
        if self.is_plain() && self.frames.is_empty() {
            return Ok(self.deliver(number, frame));
        }
        let lost = self.loses();
        let fate = self.streams.fate(&self.config.impairments, frame.len());
        if lost {
            self.stats.dropped_loss += 1;
            return Err(Some(frame));
        }
        let late = self.late();
        let arrival = self.arrival(now.saturating_add(late), &frame);
        if arrival == now && self.frames.is_empty() && fate == Fate::default() {
            return Ok(self.deliver(number, frame));
        }
        self.frames.push_back(OnTheWay { start: now, arrival, late, free: now, lost: false, fate, number, frame });
        Err(None)
    }

    /// When the next frame arrives, or is held back.
    pub fn next(&self) -> Option<Nanos> {
        let held = self.held.keys().next().map(|(release, _)| *release);
        self.frames.front().map(|first| first.arrival).into_iter().chain(held).min()
    }

    /// Takes the frame that arrives now. `Err`: it was lost on the way. `None`: it is held back from now on.
    pub fn arrive(&mut self) -> Option<Result<Vec<u8>, Vec<u8>>> {
        // A copy follows its frame before any other.
        if let Some(entry) = self.held.first_entry()
            && self.frames.front().is_none_or(|first| entry.key().0 <= first.arrival)
        {
            let (number, frame) = entry.remove();
            return Some(Ok(self.deliver(number, frame)));
        }
        let OnTheWay { arrival, lost, fate, number, mut frame, .. } = self.frames.pop_front()?;
        self.begun = self.begun.saturating_sub(1);
        if lost {
            self.stats.dropped_loss += 1;
            return Some(Err(frame));
        }
        let release = arrival.saturating_add(fate.held);
        let copy = fate.copied.then(|| frame.clone());
        if let Some(bit) = fate.flipped {
            flip(&mut frame, bit);
            self.stats.corrupted += 1;
        }
        let arrived = if fate.held > 0 {
            self.hold(release, number, frame);
            None
        } else {
            Some(Ok(self.deliver(number, frame)))
        };
        if let Some(copy) = copy {
            self.stats.duplicated += 1;
            self.hold(release, number, copy);
        }
        arrived
    }

    fn hold(&mut self, release: Nanos, number: u64, frame: Vec<u8>) {
        self.ever_held += 1;
        self.held.insert((release, self.ever_held), (number, frame));
    }

    /// A new rate holds from the next transmission: what is in transmission ends at the old one, what waits is planned anew.
    pub fn set_rate(&mut self, now: Nanos, rate_bps: Option<u64>) {
        self.config.rate_bps = rate_bps;
        self.plan_anew(now, |link| link.set_rate(rate_bps));
    }

    /// From now on a host sends as a trace says that began at `origin`, until it gets another rate.
    pub fn follow(&mut self, now: Nanos, trace: Arc<Trace>, origin: Nanos) {
        self.plan_anew(now, |link| link.follow(now, trace, origin));
    }

    fn plan_anew(&mut self, now: Nanos, change: impl FnOnce(&mut Link)) {
        let Some(transmitter) = &mut self.transmitter else { return };
        while self.frames.get(self.begun).is_some_and(|waiting| waiting.start <= now) {
            self.begun += 1;
        }
        let mut link = transmitter.clone();
        if let Some(first) = self.frames.get(self.begun) {
            // Back to the instant at which the first that waits met a free transmitter.
            link = Link::new(None);
            link.begin(first.free);
            link.transmit(0);
        }
        change(&mut link);
        let before = self.begun.checked_sub(1).and_then(|last| self.frames.get(last));
        self.earliest = before.map_or(0, |last| last.arrival.saturating_add(apart(&self.config, &last.frame)));
        for waiting in self.frames.iter_mut().skip(self.begun) {
            (waiting.free, waiting.start) = (link.free_at(), link.free_for(now));
            link.begin(now);
            let finish = link.transmit(self.config.bits(&waiting.frame));
            let arrival = finish.saturating_add(self.config.delay_ns).saturating_add(waiting.late);
            waiting.arrival = arrival.max(self.earliest);
            self.earliest = waiting.arrival.saturating_add(apart(&self.config, &waiting.frame));
        }
        *transmitter = link;
    }

    /// A new propagation delay for frames sent from now on.
    pub fn set_delay(&mut self, delay_ns: Nanos) {
        self.config.delay_ns = delay_ns;
    }

    /// Another way to lose frames, for those sent from now on; it begins in its good state.
    pub fn set_loss(&mut self, loss: Option<LossModel>) {
        self.config.loss = loss;
        self.streams.begin_bursts();
    }

    /// Another jitter, for frames sent from now on.
    pub fn set_jitter(&mut self, jitter: Option<Jitter>) {
        self.config.jitter = jitter;
    }

    /// Other impairments, for frames sent from now on.
    pub fn set_impairments(&mut self, impairments: Impairments) {
        self.config.impairments = impairments;
    }

    /// The link fails, or works again. The frames that wait or are on the way are lost, and so are all until it works again. Returns those lost now.
    pub fn set_up(&mut self, up: bool) -> Vec<Vec<u8>> {
        self.down = !up;
        if up {
            return Vec::new();
        }
        if self.transmitter.is_some() {
            self.transmitter = Some(Link::new(self.config.rate_bps));
        }
        (self.begun, self.earliest) = (0, 0);
        let held = std::mem::take(&mut self.held).into_values().map(|(_, frame)| frame);
        let lost: Vec<_> = self.frames.drain(..).map(|lost| lost.frame).chain(held).collect();
        self.stats.dropped_down += lost.len() as u64;
        lost
    }

    /// Frames that wait or are on their way.
    pub fn in_flight(&self) -> usize {
        self.frames.len() + self.held.len()
    }

    fn deliver(&mut self, number: u64, frame: Vec<u8>) -> Vec<u8> {
        self.stats.delivered_packets += 1;
        self.stats.delivered_bytes += frame.len() as u64;
        self.stats.reordered += u64::from(number < self.highest);
        self.highest = self.highest.max(number);
        frame
    }

    fn late(&mut self) -> Nanos {
        self.config.jitter.map_or(0, |jitter| jitter.draw(&mut self.rng))
    }

    /// No frame overtakes the one before it.
    fn arrival(&mut self, wanted: Nanos, frame: &[u8]) -> Nanos {
        let arrival = wanted.max(self.earliest);
        self.earliest = arrival.saturating_add(apart(&self.config, frame));
        arrival
    }

    fn loses(&mut self) -> bool {
        self.streams.loses(self.config.loss, &mut self.rng)
    }
}

/// serial(n): what a frame takes at the link's rate, where Gaussian jitter keeps frames so far apart [RFC 8868 sec 4.5.2].
fn apart(config: &ChannelConfig, frame: &[u8]) -> Nanos {
    match (config.jitter, config.rate_bps) {
        (Some(Jitter::Gaussian { .. }), Some(rate_bps)) => transmission(config.bits(frame).into(), rate_bps),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(config: ChannelConfig) -> Channel {
        Channel::new(config, true, 1, "a", "b")
    }

    fn arrivals(channel: &mut Channel) -> Vec<Nanos> {
        let mut times = Vec::new();
        while let Some(time) = channel.next() {
            times.push(time);
            channel.arrive();
        }
        times
    }

    #[test]
    fn frames_follow_each_other_and_the_queue_is_finite() {
        // 1000 bytes at 8 Mb/s take 1 ms.
        let config = ChannelConfig { rate_bps: Some(8_000_000), delay_ns: 5, queue_packets: 2, ..ChannelConfig::default() };
        let mut channel = channel(config);
        assert_eq!(channel.send(0, vec![0; 1000]), Sent::First(1_000_005));
        assert_eq!(channel.send(0, vec![0; 1000]), Sent::Behind);
        assert_eq!(channel.send(0, vec![0; 1000]), Sent::Behind);
        assert!(matches!(channel.send(0, vec![0; 1000]), Sent::Full(_)));
        // The second has begun, so one place is free.
        assert_eq!(channel.send(1_000_000, vec![0; 1000]), Sent::Behind);
        assert_eq!(arrivals(&mut channel), [1_000_005, 2_000_005, 3_000_005, 4_000_005]);
        assert_eq!(channel.stats.dropped_tail, 1);
    }

    #[test]
    fn a_new_rate_holds_for_what_waits() {
        let mut channel = channel(ChannelConfig { rate_bps: Some(8_000_000), ..ChannelConfig::default() });
        for _ in 0..3 {
            channel.send(0, vec![0; 1000]);
        }
        channel.set_rate(500_000, Some(16_000_000));
        channel.send(500_000, vec![0; 1000]);
        assert_eq!(arrivals(&mut channel), [1_000_000, 1_500_000, 2_000_000, 2_500_000]);
    }

    #[test]
    fn a_host_follows_a_trace_and_leaves_it() {
        let mut channel = channel(ChannelConfig { rate_bps: Some(8_000_000), delay_ns: 7, queue_packets: 3, ..ChannelConfig::default() });
        for _ in 0..3 {
            channel.send(0, vec![0; 1500]);
        }
        // The first is in transmission until 1.5 ms; the others wait for 2 ms and 4 ms.
        let trace = Trace::opportunities(vec![1_000_000, 3_000_000, 5_000_000], 1500).expect("a trace");
        channel.follow(1_000_000, Arc::new(trace), 1_000_000);
        assert_eq!(channel.send(1_100_000, vec![0; 1500]), Sent::Behind);
        // A full queue: three wait.
        assert_eq!(channel.send(1_200_000, vec![0; 1500]), Sent::Full(vec![0; 1500]));
        // Back to a rate, with one that still waits.
        channel.set_rate(4_500_000, Some(12_000_000));
        assert_eq!(arrivals(&mut channel), [1_500_007, 2_000_007, 4_000_007, 5_500_007]);
    }

    #[test]
    fn waiting_frames_keep_their_jitter_when_the_rate_changes() {
        let config = ChannelConfig { rate_bps: Some(8_000), jitter: Jitter::of(900_000_000, 0), ..ChannelConfig::default() };
        let drawn = |rate_bps| {
            let mut channel = channel(config.clone());
            for _ in 0..4 {
                channel.send(0, vec![0; 1000]);
            }
            channel.set_rate(0, rate_bps);
            arrivals(&mut channel).iter().enumerate().map(|(n, at)| at - (n as u64 + 1) * 1_000_000_000).collect::<Vec<_>>()
        };
        let late = drawn(Some(8_000));
        assert!(late.iter().all(|late| *late < 900_000_000) && late.iter().any(|late| *late > 100_000_000), "{late:?}");
    }

    #[test]
    fn jitter_never_reorders_and_loss_has_its_rate() {
        let config = ChannelConfig {
            rate_bps: Some(1_000_000_000),
            jitter: Jitter::of(100_000, 0),
            loss: Some(LossModel::Bernoulli { p: 0.2 }),
            queue_packets: 100_000,
            ..ChannelConfig::default()
        };
        let mut channel = channel(config);
        for _ in 0..10_000 {
            channel.send(0, vec![0; 100]);
        }
        let times = arrivals(&mut channel);
        assert!(times.is_sorted());
        let lost = channel.stats.dropped_loss;
        assert!((1_850..2_150).contains(&lost), "{lost}");
        assert_eq!(channel.stats.delivered_packets + lost, 10_000);
    }

    /// How late frames are that a switch sends each second, so that none is held back by the one before.
    fn late(std_ns: Nanos, count: u64) -> Vec<f64> {
        let config = ChannelConfig { rate_bps: Some(8_000_000), jitter: Jitter::of(0, std_ns), ..ChannelConfig::default() };
        let mut channel = Channel::new(config, false, 1, "a", "b");
        let mut drawn = Vec::new();
        for n in 0..count {
            let now = n * 1_000_000_000;
            if channel.pass(now, vec![0; 1000]).is_ok() {
                drawn.push(0.0);
            } else if let Some(at) = channel.next() {
                channel.arrive();
                drawn.push((at - now) as f64);
            }
        }
        drawn
    }

    #[test]
    fn gaussian_jitter_has_the_recommended_distribution() {
        // [RFC 8868 sec 4.5.3]: |max(min(N(0, 5 ms^2), 15 ms), -15 ms)|. By hand, in units of std: the mean is
        // sqrt(2 / pi) (1 - exp(-4.5)) + 3 x 0.0027 = 0.7970, the mean square 1 - sqrt(2 / pi) 3 exp(-4.5) - 0.0027 + 9 x 0.0027 = 0.9950; 0.27 % are at the bound.
        let drawn = late(5_000_000, 200_000);
        assert_eq!(drawn.len(), 200_000);
        let mean = |pick: &dyn Fn(f64) -> f64| drawn.iter().map(|late| pick(late / 5e6)).sum::<f64>() / drawn.len() as f64;
        assert!((mean(&|late| late) - 0.7970).abs() < 0.005);
        assert!((mean(&|late| late * late) - 0.9950).abs() < 0.01);
        assert!((mean(&|late| f64::from(late < 1.0)) - 0.6827).abs() < 0.005);
        assert!((mean(&|late| f64::from(late >= 2.9999)) - 0.0027).abs() < 0.0006);
        assert!(drawn.iter().all(|late| (0.0..=15e6).contains(late)));
    }

    #[test]
    fn gaussian_jitter_keeps_frames_apart_as_the_rfcs_recursion_does() {
        // j(n) = max(s(n) + z(n), j(n-1) + serial(n-1)) [RFC 8868 sec 4.5.2], with z(n) of the same stream drawn by hand.
        for (seed, rate_bps, gap_ns) in
            [(1, 1_000_000, 8_000_000), (2, 8_000_000, 1_000_000), (3, 100_000_000, 300_000), (4, 64_000, 150_000_000)]
        {
            let config = ChannelConfig { rate_bps: Some(rate_bps), jitter: Jitter::of(0, 5_000_000), ..ChannelConfig::default() };
            let mut channel = Channel::new(config, false, seed, "a", "b");
            let mut rng = Rng::stream(seed, "link a->b");
            let (mut expected, mut found) = (Vec::new(), Vec::new());
            for n in 0..2_000u64 {
                let (now, bytes) = (n * gap_ns, 100 + 97 * n % 900);
                while channel.next().is_some_and(|at| at <= now) {
                    found.extend(channel.next());
                    channel.arrive();
                }
                assert!(channel.pass(now, vec![0; bytes as usize]).is_err(), "a frame that is not late at all");
                let late = (rng.gaussian().clamp(-3.0, 3.0).abs() * 5e6) as u64;
                let after = expected.last().map_or(0, |(at, bits)| at + bits * 1_000_000_000 / rate_bps);
                expected.push(((now + late).max(after), 8 * bytes));
            }
            found.extend(arrivals(&mut channel));
            assert!(found.is_sorted());
            assert_eq!(found, expected.iter().map(|(at, _)| *at).collect::<Vec<_>>(), "{rate_bps} bit/s");
        }
    }
}
