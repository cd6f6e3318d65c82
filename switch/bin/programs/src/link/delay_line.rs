//! A link's propagation delay in user space, for kernels without netem: frames between two interfaces, later by a fixed time.

use std::collections::VecDeque;

use fairlane_device::Nanos;

/// One direction of a link. Frames leave in the order in which they came.
#[derive(Debug)]
pub struct DelayLine {
    delay: Nanos,
    limit: usize,
    waiting: VecDeque<(Nanos, Vec<u8>)>,
    /// Frames that came when the line held its limit.
    pub dropped: u64,
}

impl DelayLine {
    /// A line that delays by `delay` and holds up to `limit` frames.
    pub fn new(delay: Nanos, limit: usize) -> Self {
        DelayLine { delay, limit, waiting: VecDeque::new(), dropped: 0 }
    }

    /// Takes a frame that arrived at `arrival`, copied into `buffer`. Gives the buffer back when the line is full.
    ///
    /// The frame is due at `arrival + delay`, or with the frame before it where the clock of arrivals went back.
    pub fn push(&mut self, arrival: Nanos, frame: &[u8], mut buffer: Vec<u8>) -> Option<Vec<u8>> {
        if self.waiting.len() >= self.limit {
            self.dropped += 1;
            return Some(buffer);
        }
        buffer.clear();
        buffer.extend_from_slice(frame);
        let due = arrival.saturating_add(self.delay);
        let due = self.waiting.back().map_or(due, |(before, _)| due.max(*before));
        self.waiting.push_back((due, buffer));
        None
    }

    /// Takes the first frame if it is due by `now`: the instant at which it was due, and the frame.
    pub fn pop(&mut self, now: Nanos) -> Option<(Nanos, Vec<u8>)> {
        if self.next()? > now {
            return None;
        }
        self.waiting.pop_front()
    }

    /// When the first frame is due.
    pub fn next(&self) -> Option<Nanos> {
        self.waiting.front().map(|(due, _)| *due)
    }
}

/// How late frames left: a histogram with buckets of one microsecond.
#[derive(Debug, Clone)]
pub struct Lateness {
    buckets: Vec<u64>,
    count: u64,
    sum: u128,
    maximum: Nanos,
}

/// Frames that are later than this many microseconds share a bucket.
const LATENESS_BUCKETS: usize = 100_000;

impl Default for Lateness {
    fn default() -> Self {
        Lateness { buckets: vec![0; LATENESS_BUCKETS + 1], count: 0, sum: 0, maximum: 0 }
    }
}

impl Lateness {
    /// Notes a frame that left `late` after it was due.
    pub fn add(&mut self, late: Nanos) {
        let bucket = usize::try_from(late / 1000).unwrap_or(LATENESS_BUCKETS).min(LATENESS_BUCKETS);
        self.buckets[bucket] += 1;
        self.count += 1;
        self.sum += u128::from(late);
        self.maximum = self.maximum.max(late);
    }

    /// Frames noted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Mean in microseconds; 0 when no frame was noted.
    pub fn mean_us(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        self.sum as f64 / self.count as f64 / 1000.0
    }

    /// The most, in microseconds.
    pub fn maximum_us(&self) -> f64 {
        self.maximum as f64 / 1000.0
    }

    /// The smallest number of microseconds that at least this part of the frames (0 to 1) is not later than, to the next whole
    /// one and at most the maximum.
    pub fn quantile_us(&self, part: f64) -> f64 {
        let wanted = (part.clamp(0.0, 1.0) * self.count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return if bucket == LATENESS_BUCKETS { self.maximum_us() } else { self.maximum_us().min((bucket + 1) as f64) };
            }
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn frames_leave_in_order_and_never_early(
            arrivals in prop::collection::vec(0u64..1_000_000, 1..60), delay in 0u64..500_000, step in 1u64..200_000,
        ) {
            let mut line = DelayLine::new(delay, usize::MAX);
            for (number, arrival) in arrivals.iter().enumerate() {
                prop_assert!(line.push(*arrival, &[number as u8], Vec::new()).is_none());
            }
            let (mut now, mut left) = (0, Vec::new());
            while let Some(next) = line.next() {
                now = (now + step).max(next);
                while let Some((due, frame)) = line.pop(now) {
                    prop_assert!(due <= now);
                    left.push((due, frame[0] as usize));
                }
            }
            prop_assert_eq!(left.len(), arrivals.len());
            for (position, (due, number)) in left.iter().enumerate() {
                prop_assert_eq!(*number, position);
                // Its own arrival decides, or the latest of those before it.
                let latest = arrivals[..=position].iter().max().expect("one at least");
                prop_assert_eq!(*due, latest + delay);
            }
        }
    }

    #[test]
    fn a_full_line_drops_what_comes_and_counts_it() {
        let mut line = DelayLine::new(10, 2);
        assert!(line.push(0, b"a", Vec::new()).is_none());
        assert!(line.push(1, b"b", Vec::new()).is_none());
        assert_eq!(line.push(2, b"c", vec![7]), Some(vec![7]));
        assert_eq!(line.dropped, 1);
        assert_eq!(line.pop(9), None);
        assert_eq!(line.pop(10), Some((10, b"a".to_vec())));
        assert!(line.push(11, b"d", vec![7, 7]).is_none());
        assert_eq!(line.pop(u64::MAX), Some((11, b"b".to_vec())));
        assert_eq!(line.pop(u64::MAX), Some((21, b"d".to_vec())));
    }

    #[test]
    fn lateness_of_a_known_set() {
        let mut lateness = Lateness::default();
        assert_eq!((lateness.mean_us(), lateness.quantile_us(0.99), lateness.maximum_us()), (0.0, 0.0, 0.0));
        for late in 1..=100u64 {
            lateness.add(late * 1000 - 500); // 0.5, 1.5, ... 99.5 us
        }
        assert_eq!((lateness.count(), lateness.mean_us(), lateness.maximum_us()), (100, 50.0, 99.5));
        assert_eq!((lateness.quantile_us(0.5), lateness.quantile_us(0.99), lateness.quantile_us(1.0)), (50.0, 99.0, 99.5));
        lateness.add(3_000_000_000);
        assert_eq!((lateness.quantile_us(1.0), lateness.maximum_us()), (3e6, 3e6));
    }
}
