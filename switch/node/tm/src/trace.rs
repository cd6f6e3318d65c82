//! A link's capacity that follows a recording: opportunities of delivery, as Mahimahi records them, or rates over time.
//!
//! | shape | a transmission |
//! |---|---|
//! | opportunities | waits for the first one after its packet came; takes what it needs of its bytes, and the rest of the next ones. What is left of an opportunity goes to the packets that wait at that instant, or is lost |
//! | rates | goes on across changes of the rate: it ends when the rate's integral has reached its bits |

use std::sync::Arc;

use crate::Nanos;

/// Why something is no trace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    #[error("a trace needs at least one entry")]
    Empty,
    #[error("entry {0} of the trace is before the one before it")]
    Order(usize),
    #[error("the trace's only instant is 0: it has no length, and cannot repeat")]
    NoLength,
    #[error("the trace's first rate must hold from 0 on")]
    Start,
    #[error("the trace's last rate is 0 bit/s: nothing would ever be sent after it")]
    EndsAtZero,
    #[error("an opportunity of 0 bytes sends nothing")]
    NoBytes,
}

/// A checked trace; instants count from its beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace(Shape);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Shape {
    /// Ascending; the last is the period after which all repeat.
    Opportunities { at: Vec<Nanos>, bytes: u32 },
    /// Ascending, the first at 0; the last rate holds for ever.
    Rates(Vec<(Nanos, u64)>),
}

impl Trace {
    /// At each instant so many bytes may leave; after the last instant the trace begins anew.
    ///
    /// # Errors
    /// No instants, or not in order; a trace of no length.
    pub fn opportunities(at: Vec<Nanos>, bytes: u32) -> Result<Trace, TraceError> {
        if bytes == 0 {
            return Err(TraceError::NoBytes);
        }
        check_order(&at, |instant| *instant)?;
        if at.last() == Some(&0) {
            return Err(TraceError::NoLength);
        }
        Ok(Trace(Shape::Opportunities { at, bytes }))
    }

    /// From each instant on, so many bits per second; 0 sends nothing.
    ///
    /// # Errors
    /// No rates, or not in order; none at instant 0; an end at 0 bit/s.
    pub fn rates(rates: Vec<(Nanos, u64)>) -> Result<Trace, TraceError> {
        check_order(&rates, |(instant, _)| *instant)?;
        if rates.first().is_some_and(|(instant, _)| *instant > 0) {
            return Err(TraceError::Start);
        }
        if rates.last().is_some_and(|(_, rate)| *rate == 0) {
            return Err(TraceError::EndsAtZero);
        }
        Ok(Trace(Shape::Rates(rates)))
    }
}

fn check_order<T>(entries: &[T], instant: impl Fn(&T) -> Nanos) -> Result<(), TraceError> {
    if entries.is_empty() {
        return Err(TraceError::Empty);
    }
    match entries.windows(2).position(|pair| instant(&pair[0]) > instant(&pair[1])) {
        Some(before) => Err(TraceError::Order(before + 2)),
        None => Ok(()),
    }
}

/// What is left of an opportunity, or the whole of it: its number, counted over all repetitions, and the bytes taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    number: u64,
    taken: u32,
}

/// The transmitter of a link that follows a trace.
#[derive(Debug, Clone)]
pub(crate) struct Follower {
    trace: Arc<Trace>,
    /// The instant at which the trace began.
    origin: Nanos,
    /// When the last transmission ends.
    free: Nanos,
    /// Of that end, the bits times 10^9 that the nanosecond has room for beyond it (rates).
    rest: u128,
    /// Where the last transmission ended (opportunities).
    place: Place,
    /// When the packet came that goes next.
    arrival: Nanos,
}

impl Follower {
    /// Follows a trace that began at `origin`. The transmitter is free from `free` on.
    pub(crate) fn new(trace: Arc<Trace>, origin: Nanos, free: Nanos) -> Follower {
        let mut follower = Follower { trace, origin, free, rest: 0, place: Place { number: 0, taken: 0 }, arrival: free };
        // The first opportunity at `free` or later.
        follower.place.number = match free.checked_sub(1) {
            Some(before) => follower.first_after(before),
            None => 0,
        };
        follower
    }

    /// The end of the last transmission.
    pub(crate) fn free_at(&self) -> Nanos {
        self.free
    }

    /// The instant at which a packet that arrived at `arrival` is served.
    pub(crate) fn free_for(&self, arrival: Nanos) -> Nanos {
        match self.trace.0 {
            Shape::Opportunities { .. } => self.instant(self.place_for(arrival).number),
            Shape::Rates(_) => self.free.max(arrival),
        }
    }

    pub(crate) fn begin(&mut self, arrival: Nanos) {
        self.arrival = arrival;
    }

    /// The instant at which the last of `bits` has left, and how long the link was busy with them.
    pub(crate) fn transmit(&mut self, bits: u64) -> (Nanos, Nanos) {
        let trace = Arc::clone(&self.trace);
        let busy = match &trace.0 {
            Shape::Opportunities { bytes, .. } => self.take(bits.div_ceil(8), *bytes),
            Shape::Rates(rates) => self.integrate(bits, rates),
        };
        (self.free, busy)
    }

    /// An opportunity's share of the time counts as busy with the part of its bytes that was used.
    fn take(&mut self, bytes: u64, each: u32) -> Nanos {
        let mut place = self.place_for(self.arrival);
        let (mut left, mut busy) = (bytes, 0);
        loop {
            let now = left.min(u64::from(each - place.taken));
            busy += (u128::from(self.share(place.number)) * u128::from(now) / u128::from(each)) as Nanos;
            left -= now;
            place.taken += now as u32;
            if left == 0 {
                break;
            }
            place = Place { number: place.number.saturating_add(1), taken: 0 };
        }
        self.free = self.instant(place.number);
        // A packet of no bytes leaves the place as it was.
        if bytes > 0 {
            self.place = place;
        }
        busy
    }

    fn place_for(&self, arrival: Nanos) -> Place {
        let Shape::Opportunities { bytes, .. } = self.trace.0 else { return self.place };
        let Place { number, taken } = self.place;
        let next = if taken == bytes { Place { number: number.saturating_add(1), taken: 0 } } else { self.place };
        if self.instant(next.number) > arrival {
            return next;
        }
        Place { number: self.first_after(arrival), taken: 0 }
    }

    /// The first opportunity after an instant.
    fn first_after(&self, instant: Nanos) -> u64 {
        let Shape::Opportunities { at, .. } = &self.trace.0 else { return 0 };
        let Some(since) = instant.checked_sub(self.origin) else { return 0 };
        let period = at.last().copied().unwrap_or(1);
        // At the end of a period, that is 0 of the next one, its last opportunities are over, and so is an opportunity at 0.
        let round = since / period;
        let within = at.partition_point(|&opportunity| opportunity <= since % period) as u64;
        round.saturating_mul(at.len() as u64).saturating_add(within)
    }

    /// When an opportunity is.
    fn instant(&self, number: u64) -> Nanos {
        let Shape::Opportunities { at, .. } = &self.trace.0 else { return self.free };
        let (round, within) = (number / at.len() as u64, (number % at.len() as u64) as usize);
        let period = at.last().copied().unwrap_or(1);
        self.origin.saturating_add(round.saturating_mul(period)).saturating_add(at[within])
    }

    /// Of the time since the instant before, what each of an instant's opportunities stands for.
    fn share(&self, number: u64) -> Nanos {
        let Shape::Opportunities { at, .. } = &self.trace.0 else { return 0 };
        let instant = at[(number % at.len() as u64) as usize];
        let first = at.partition_point(|&other| other < instant);
        let last = at.partition_point(|&other| other <= instant);
        let before = first.checked_sub(1).map_or(0, |index| at[index]);
        (instant - before) / (last - first) as Nanos
    }

    fn integrate(&mut self, bits: u64, rates: &[(Nanos, u64)]) -> Nanos {
        let start = self.free.max(self.arrival);
        // The part of a nanosecond is kept where transmissions are back to back.
        let mut need = u128::from(bits) * 1_000_000_000;
        let credit = if self.arrival >= self.free { 0 } else { self.rest };
        if need <= credit {
            self.rest = credit - need;
            return 0;
        }
        need -= credit;
        let mut now = start;
        loop {
            let since = now.saturating_sub(self.origin);
            let index = rates.partition_point(|(from, _)| *from <= since).max(1) - 1;
            let rate = u128::from(rates[index].1);
            let end = rates.get(index + 1).map(|(from, _)| self.origin.saturating_add(*from));
            let room = end.map_or(u128::MAX, |end| rate * u128::from(end - now));
            if need <= room {
                let lasts = need.div_ceil(rate.max(1));
                self.rest = lasts * rate - need;
                self.free = now.saturating_add(u64::try_from(lasts).unwrap_or(u64::MAX));
                break;
            }
            need -= room;
            now = end.unwrap_or(Nanos::MAX);
        }
        self.free - start
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Link;

    const MS: Nanos = 1_000_000;

    fn following(trace: Trace, origin: Nanos) -> Link {
        let mut link = Link::new(Some(1));
        link.follow(0, Arc::new(trace), origin);
        link
    }

    /// When each of some packets, which arrive at an instant (ms) with so many bytes, has left (ms).
    fn departures(link: &mut Link, packets: &[(u64, u64)]) -> Vec<u64> {
        let leave = |&(arrival, bytes): &(u64, u64)| {
            link.begin(arrival * MS);
            link.transmit(8 * bytes) / MS
        };
        packets.iter().map(leave).collect()
    }

    fn mahimahi(lines: &[u64]) -> Trace {
        Trace::opportunities(lines.iter().map(|ms| ms * MS).collect(), 1500).expect("a trace")
    }

    #[test]
    fn opportunities_by_hand() {
        // Lines 2, 5, 5, 9; so 2, 5, 5, 9, 11, 14, 14, 18, 20, ...
        let mut link = following(mahimahi(&[2, 5, 5, 9]), 0);
        assert_eq!(link.free_for(0), 2 * MS);
        // A full packet each: the two at 5 ms leave together; what comes at 9 ms is too late for 9.
        assert_eq!(departures(&mut link, &[(0, 1500), (1, 1500), (1, 1500), (9, 1500)]), [2, 5, 5, 11]);
        // The first at 14 ms takes 700, 700 and 100 bytes; the second 600 and 900. What comes when both are used, and what comes at 14 ms
        // itself, share the next.
        assert_eq!(departures(&mut link, &[(12, 700), (12, 700), (12, 700), (13, 900), (13, 1), (14, 100)]), [14, 14, 14, 14, 18, 18]);
        // One packet over three opportunities: 18 has 1399 bytes left, then 20 and 23.
        assert_eq!(departures(&mut link, &[(15, 4000)]), [23]);
    }

    #[test]
    fn an_opportunity_without_a_packet_is_lost() {
        let mut link = following(mahimahi(&[10]), 0);
        assert_eq!(departures(&mut link, &[(0, 1500), (55, 1500), (55, 1500), (60, 1500)]), [10, 60, 70, 80]);
    }

    #[test]
    fn a_trace_begins_at_its_origin_and_after_what_is_in_service() {
        let mut link = Link::new(Some(1_000_000));
        link.begin(0);
        assert_eq!(link.transmit(12_000), 12 * MS);
        link.follow(5 * MS, Arc::new(mahimahi(&[1, 3])), 5 * MS);
        // 6, 8, 9, 11 are before the end of service; 12 is at it.
        assert_eq!(departures(&mut link, &[(0, 1500), (0, 1500)]), [12, 14]);
        link.set_rate(Some(12_000_000));
        assert_eq!(departures(&mut link, &[(0, 1500)]), [15]);
    }

    #[test]
    fn opportunities_count_as_busy_with_the_part_that_is_used() {
        // Two at 4 ms stand for 2 ms each, one at 8 ms for 4 ms.
        let mut link = following(mahimahi(&[4, 4, 8]), 0);
        departures(&mut link, &[(0, 750)]);
        assert_eq!(link.busy_until(0), MS);
        departures(&mut link, &[(0, 750), (0, 1500), (0, 375)]);
        assert_eq!(link.busy_until(0), 5 * MS);
    }

    #[test]
    fn rates_are_integrated_over_their_changes() {
        // 1 Mb/s for 10 ms, nothing for 10 ms, 8 Mb/s.
        let trace = Trace::rates(vec![(0, 1_000_000), (10 * MS, 0), (20 * MS, 8_000_000)]).expect("a trace");
        let mut link = following(trace, 100 * MS);
        // 10,000 bits until 110 ms; the other 2,000 take 0.25 ms from 120 ms on.
        link.begin(100 * MS);
        assert_eq!(link.transmit(12_000), 120_250_000);
        link.begin(0);
        assert_eq!(link.transmit(8_000), 121_250_000);
        assert_eq!(link.busy_until(u64::MAX), 21_250_000);
    }

    #[test]
    fn parts_of_nanoseconds_add_up() {
        let trace = Trace::rates(vec![(0, 3_000_000_000)]).expect("a trace");
        let mut link = following(trace, 0);
        link.begin(10);
        assert_eq!(link.transmit(1), 11);
        for expected in [11, 11, 12, 12, 12, 13] {
            link.begin(0);
            assert_eq!(link.transmit(1), expected);
        }
    }

    #[test]
    fn what_is_no_trace_is_refused() {
        assert_eq!(Trace::opportunities(vec![], 1500), Err(TraceError::Empty));
        assert_eq!(Trace::opportunities(vec![0, 0], 1500), Err(TraceError::NoLength));
        assert_eq!(Trace::opportunities(vec![1], 0), Err(TraceError::NoBytes));
        assert_eq!(Trace::opportunities(vec![1, 3, 2], 1500), Err(TraceError::Order(3)));
        assert_eq!(Trace::rates(vec![(1, 5)]), Err(TraceError::Start));
        assert_eq!(Trace::rates(vec![(0, 5), (7, 0)]), Err(TraceError::EndsAtZero));
    }
}
