//! DCTCP's window [RFC 8257 sec 3.3]: a mark reduces it by half the fraction of the octets that were marked lately, a loss by half,
//! as elsewhere. Loss recovery is `sack.rs`, growth RFC 5681's.
//!
//! Only `+ - * /` are used, so that a run is the same on every machine.

use super::Core;

/// Weight of the latest window in alpha, g [RFC 8257 sec 4.2].
const G: f64 = 1.0 / 16.0;

#[derive(Clone, Debug)]
pub(crate) struct Dctcp {
    /// Estimated fraction of octets that met congestion, 0 to 1 (DCTCP.Alpha).
    alpha: f64,
    /// The stream offset whose acknowledgement ends the observation (DCTCP.WindowEnd).
    window_end: u64,
    /// Of the window under observation (DCTCP.BytesAcked, DCTCP.BytesMarked).
    acked: u64,
    marked: u64,
}

impl Dctcp {
    /// Alpha is 1 at first: a flow answers its first mark as other TCP does [RFC 8257 sec 3.3].
    pub fn new() -> Self {
        Dctcp { alpha: 1.0, window_end: 0, acked: 0, marked: 0 }
    }

    /// An ACK of `acked` new octets, up to the stream offset `ack`; `echo` is its ECE [RFC 8257 sec 3.3 step 1 to 8].
    pub fn on_ack(&mut self, core: &Core, ack: u64, acked: u64, echo: bool) {
        self.acked += acked;
        if echo {
            self.marked += acked;
        }
        if ack <= self.window_end || self.acked == 0 {
            return;
        }
        self.alpha = self.alpha * (1.0 - G) + G * self.marked as f64 / self.acked as f64;
        self.window_end = core.nxt;
        self.acked = 0;
        self.marked = 0;
    }

    /// The window after an ECN echo, cwnd (1 - alpha / 2) [RFC 8257 sec 3.3 step 9].
    pub fn reduced(&self, core: &Core) -> u64 {
        (core.cwnd as f64 * (1.0 - self.alpha / 2.0)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Flavour};

    /// [RFC 8257 sec 3.3] by hand: alpha 1, then windows with 0 %, 100 % and 25 % of the octets marked.
    #[test]
    fn alpha_follows_the_marked_part_window_by_window() {
        let mut core = Core::new(&Config { flavour: Flavour::Dctcp, mss: 1000, ..Config::default() });
        core.cwnd = 40_000;
        let mut dctcp = Dctcp::new();
        // the first ACK ends the empty first window
        core.nxt = 4_001;
        dctcp.on_ack(&core, 1_001, 1_000, false);
        assert!((dctcp.alpha - 15.0 / 16.0).abs() < 1e-12, "{}", dctcp.alpha);
        assert_eq!(dctcp.reduced(&core), 21_250);
        // up to 4,001 nothing changes; beyond it the window is over
        core.nxt = 8_001;
        for ack in [2_001, 3_001, 4_001, 5_001] {
            dctcp.on_ack(&core, ack, 1_000, true);
        }
        let alpha = 15.0 / 16.0 * 15.0 / 16.0 + 1.0 / 16.0;
        assert!((dctcp.alpha - alpha).abs() < 1e-12, "{}", dctcp.alpha);
        for (ack, echo) in [(6_001, true), (7_001, false), (8_001, false), (9_001, false)] {
            dctcp.on_ack(&core, ack, 1_000, echo);
        }
        assert!((dctcp.alpha - (alpha * 15.0 / 16.0 + 0.25 / 16.0)).abs() < 1e-12, "{}", dctcp.alpha);
    }
}
