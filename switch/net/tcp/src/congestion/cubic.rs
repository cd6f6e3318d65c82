//! CUBIC's window [RFC 9438 sec 4]. Windows are in segments here, times in seconds, as in the RFC.
//!
//! Only `+ - * /` and `libm`'s cube root are used, so that a run is the same on every machine.

use super::Core;
use crate::{Nanos, RenoFriendliness};

/// Multiplicative decrease factor (section 4.6).
pub(super) const BETA: f64 = 0.7;
/// The same at a mark, with ABE (beta_ecn, [RFC 8511 sec 3.1]).
pub(super) const BETA_ECN: f64 = 0.85;
/// Segments per cubic second (section 5.1).
const C: f64 = 0.4;
/// The increase that makes an AIMD flow with `BETA` as aggressive as Reno (section 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// The same in Linux 2.6, computed once for a decrease factor of 0.8 and rounded there.
const ALPHA_LINUX26: f64 = 8.0 / 23.0;

#[derive(Clone, Debug)]
pub(crate) struct Cubic {
    friendliness: RenoFriendliness,
    /// The window before the last reduction.
    w_max: f64,
    /// cwnd when the current stage of congestion avoidance began, and the instant.
    epoch: Option<Epoch>,
    /// The window at the last reduction, for "has reached the window of the last reduction" (section 4.3).
    cwnd_prior: f64,
}

#[derive(Clone, Debug)]
struct Epoch {
    start: Nanos,
    /// Since when the application limits the flow: such time is not in t.
    limited_at: Option<Nanos>,
    k: f64,
    w_est: f64,
    /// Fraction of a segment that the window has earned and `Core`, which counts octets, does not hold yet.
    carry: f64,
}

impl Cubic {
    pub fn new(friendliness: RenoFriendliness) -> Self {
        Cubic { friendliness, w_max: 0.0, epoch: None, cwnd_prior: 0.0 }
    }

    /// Sections 4.6 and 4.7: the new threshold; remembers the window it came from.
    pub fn reduce(&mut self, core: &Core) -> u64 {
        if core.is_reduced() {
            return core.ssthresh;
        }
        self.reduced(core, BETA).max(2 * core.mss)
    }

    /// The same by the factor `beta`, without its lower bound, which a mark does not have.
    pub fn reduced(&mut self, core: &Core, beta: f64) -> u64 {
        let cwnd = core.cwnd as f64 / core.mss as f64;
        // fast convergence: the saturation point is falling, so leave room to others
        self.w_max = if cwnd < self.w_max { cwnd * (1.0 + beta) / 2.0 } else { cwnd };
        self.cwnd_prior = cwnd;
        self.epoch = None;
        (core.reduction_base() as f64 * beta) as u64
    }

    /// The threshold after a timeout. Congestion avoidance then begins at the plateau: K is 0, and W_max the window at its beginning
    /// [RFC 8312 sec 4.7], [RFC 9438 sec 4.8].
    pub fn on_timeout(&mut self, core: &Core) -> u64 {
        let ssthresh = self.reduce(core);
        self.w_max = 0.0;
        self.epoch = None;
        ssthresh
    }

    /// Sections 4.2 to 4.5: an ACK of `acked` octets outside recovery.
    pub fn grow(&mut self, core: &mut Core, now: Nanos, acked: u64, srtt: Option<Nanos>) {
        if !core.cwnd_limited {
            // no growth then, and t stands still [RFC 9438 sec 4.2], [RFC 9438 sec 5.8]
            if let Some(epoch) = &mut self.epoch {
                epoch.limited_at.get_or_insert(now);
            }
            return;
        }
        if core.cwnd < core.ssthresh {
            self.epoch = None;
            return core.grow(acked);
        }
        let mss = core.mss as f64;
        let cwnd = core.cwnd as f64 / mss;
        let (w_max, cwnd_prior) = (self.w_max.max(cwnd), self.cwnd_prior);
        let epoch = self.epoch.get_or_insert_with(|| Epoch {
            start: now,
            limited_at: None,
            // K = cbrt((W_max - cwnd_epoch) / C), equation (2)
            k: libm::cbrt((w_max - cwnd) / C),
            w_est: cwnd,
            carry: 0.0,
        });
        if self.w_max < cwnd && epoch.start == now {
            // no reduction since the start or since a timeout, or the window grew past it in slow start: the cubic starts at its plateau
            self.w_max = cwnd;
        }
        if let Some(since) = epoch.limited_at.take() {
            epoch.start += now - since;
        }
        let (t, rtt) = ((now - epoch.start) as f64 * 1e-9, srtt.unwrap_or(0) as f64 * 1e-9);
        // equation (1)
        let w_max = self.w_max;
        let w_cubic = |t: f64| C * (t - epoch.k) * (t - epoch.k) * (t - epoch.k) + w_max;
        let segments = acked as f64 / mss;
        let target = w_cubic(t + rtt).clamp(cwnd, 1.5 * cwnd);
        // (target - cwnd) / cwnd segments for an ACK [RFC 9438 sec 4.4], or for each segment that it acknowledges, where octets are counted
        let steps = if core.byte_counting { segments.min(2.0) } else { 1.0 };
        let by_cubic = cwnd + (target - cwnd) / cwnd * steps;
        let next = match self.friendliness {
            RenoFriendliness::Rfc9438 => {
                // W_est, equation (4); alpha is 1 once the window of the last reduction is reached
                let alpha = if epoch.w_est >= cwnd_prior { 1.0 } else { ALPHA };
                let w_est = epoch.w_est + alpha * segments / cwnd;
                // section 4.3: in the Reno-friendly region the window is W_est, though it does not fall
                let next = if w_cubic(t) < w_est { w_est.max(cwnd) } else { by_cubic };
                epoch.w_est = w_est;
                next
            }
            RenoFriendliness::Linux26 => {
                epoch.w_est += ALPHA_LINUX26 / cwnd;
                // one segment in cwnd / behind ACKs
                let behind = ((epoch.w_est - cwnd) as i64).max(0);
                by_cubic.max(cwnd + behind as f64 / cwnd)
            }
        };
        let octets = (next - cwnd) * mss + epoch.carry;
        core.cwnd = (core.cwnd + octets as u64).min(core.max_window);
        epoch.carry = octets - (octets as u64) as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Flavour};

    /// Fast convergence by the factor of the reduction: half-way between the window and what the reduction leaves of it.
    #[test]
    fn the_plateau_after_a_mark_is_of_its_own_factor() {
        for (beta, w_max) in [(BETA, 68.0), (BETA_ECN, 74.0)] {
            let mut core = Core::new(&Config { flavour: Flavour::Cubic, mss: 1000, ..Config::default() });
            let mut cubic = Cubic::new(RenoFriendliness::Rfc9438);
            core.cwnd = 100_000;
            cubic.reduced(&core, beta);
            assert_eq!(cubic.w_max, 100.0);
            core.cwnd = 80_000;
            cubic.reduced(&core, beta);
            assert!((cubic.w_max - w_max).abs() < 1e-9, "{}", cubic.w_max);
        }
    }
}
