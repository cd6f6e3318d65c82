//! Segments spaced in time: after one of n octets, the next leaves n / rate later.

use crate::Nanos;

/// When the next segment may leave.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pacer {
    /// Octets of payload a second, more than 0; `None`: segments leave as the window lets them.
    rate: Option<f64>,
    due: Nanos,
}

impl Pacer {
    pub fn set_rate(&mut self, rate: Option<f64>) {
        self.rate = rate.filter(|&rate| rate > 0.0);
    }

    /// How long a segment must wait: until then, or not at all.
    pub fn wait(&self, now: Nanos) -> Option<Nanos> {
        self.rate.map(|_| self.due).filter(|&due| due > now)
    }

    /// A segment of so many octets left. Time in which nothing was sent is no credit.
    pub fn sent(&mut self, now: Nanos, octets: u64) {
        if let Some(rate) = self.rate {
            self.due = self.due.max(now).saturating_add((octets as f64 / rate * 1e9) as Nanos);
        }
    }

    /// The next segment need not wait.
    pub fn release(&mut self) {
        self.due = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_leave_at_the_rate_and_idle_time_is_no_credit() {
        let mut pacer = Pacer::default();
        pacer.sent(0, 1000);
        assert_eq!(pacer.wait(0), None, "no rate, no pacing");
        pacer.set_rate(Some(1e6));
        pacer.sent(0, 1000);
        assert_eq!(pacer.wait(999_999), Some(1_000_000), "1000 octets at 1 MB/s take 1 ms");
        assert_eq!(pacer.wait(1_000_000), None);
        pacer.sent(1_000_000, 500);
        assert_eq!(pacer.wait(1_000_000), Some(1_500_000));
        pacer.sent(9_000_000, 1000);
        assert_eq!(pacer.wait(9_000_000), Some(10_000_000), "7.5 ms without a segment let no two leave at once");
        pacer.release();
        assert_eq!(pacer.wait(9_000_000), None);
    }
}
