//! What a link does to some of its frames: it loses, holds back, copies or corrupts them, as tc-netem's loss, reorder, duplicate and corrupt.
//!
//! Each kind draws from a stream of its own, once for each frame offered: adding one changes no draw of another.

use fairlane_random::Rng;
use fairlane_units::Nanos;

/// Bits of a frame before this byte are not corrupted: an Ethernet header has no checksum here, and addresses decide nothing.
const ETHERNET_BYTES: usize = 14;

/// How a link loses frames. Probabilities are in 0..=1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LossModel {
    /// Each frame alike.
    Bernoulli { p: f64 },
    /// Gilbert and Elliott's two states, entered frame by frame; the link begins in the good one. netem's gemodel: p, r, 1-k, 1-h.
    Gilbert { good_to_bad: f64, bad_to_good: f64, loss_good: f64, loss_bad: f64 },
}

impl LossModel {
    /// Its probabilities with their names.
    pub fn probabilities(&self) -> Vec<(&'static str, f64)> {
        match *self {
            LossModel::Bernoulli { p } => vec![("p", p)],
            LossModel::Gilbert { good_to_bad, bad_to_good, loss_good, loss_bad } => {
                vec![("good_to_bad", good_to_bad), ("bad_to_good", bad_to_good), ("loss_good", loss_good), ("loss_bad", loss_bad)]
            }
        }
    }
}

/// What happens to frames that are not lost. Probabilities are in 0..=1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Impairments {
    /// That a frame is held back, so that later ones overtake it.
    pub reorder: f64,
    /// By so much, after it would have arrived.
    pub reorder_delay_ns: Nanos,
    /// That a second copy follows a frame at once. It takes no time of the link, and is not corrupted.
    pub duplicate: f64,
    /// That one bit of a frame's datagram, drawn uniformly, is flipped.
    pub corrupt: f64,
}

impl Impairments {
    /// Its probabilities with their names.
    pub fn probabilities(&self) -> [(&'static str, f64); 3] {
        [("reorder", self.reorder), ("duplicate", self.duplicate), ("corrupt", self.corrupt)]
    }

    /// Whether every frame arrives once, in order and whole.
    pub fn are_none(&self) -> bool {
        self.probabilities().iter().all(|(_, p)| *p == 0.0)
    }
}

/// What of a link's impairments changes; `None` stays.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ImpairmentsChange {
    pub reorder: Option<f64>,
    pub reorder_delay_ns: Option<Nanos>,
    pub duplicate: Option<f64>,
    pub corrupt: Option<f64>,
}

impl ImpairmentsChange {
    /// The impairments after the change.
    pub fn of(&self, before: Impairments) -> Impairments {
        Impairments {
            reorder: self.reorder.unwrap_or(before.reorder),
            reorder_delay_ns: self.reorder_delay_ns.unwrap_or(before.reorder_delay_ns),
            duplicate: self.duplicate.unwrap_or(before.duplicate),
            corrupt: self.corrupt.unwrap_or(before.corrupt),
        }
    }
}

/// What becomes of one frame that is not lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Fate {
    /// It arrives so much later than it would.
    pub(crate) held: Nanos,
    pub(crate) copied: bool,
    /// The bit that is flipped.
    pub(crate) flipped: Option<usize>,
}

/// The streams of random numbers of a link's impairments, and the state of its bursts.
#[derive(Debug)]
pub(crate) struct Streams {
    burst: Rng,
    bad: bool,
    reorder: Rng,
    duplicate: Rng,
    corrupt: Rng,
}

impl Streams {
    /// Of the link from node `from` to node `to`.
    pub(crate) fn new(seed: u64, from: &str, to: &str) -> Streams {
        let stream = |name: &str| Rng::stream(seed, &format!("link {from}->{to} {name}"));
        Streams {
            burst: stream("gemodel"),
            bad: false,
            reorder: stream("reorder"),
            duplicate: stream("duplicate"),
            corrupt: stream("corrupt"),
        }
    }

    /// Bursts begin anew, in the good state.
    pub(crate) fn begin_bursts(&mut self) {
        self.bad = false;
    }

    /// Whether the next frame is lost. `own`: the link's stream.
    pub(crate) fn loses(&mut self, loss: Option<LossModel>, own: &mut Rng) -> bool {
        match loss {
            None => false,
            Some(LossModel::Bernoulli { p }) => own.chance(p),
            Some(LossModel::Gilbert { good_to_bad, bad_to_good, loss_good, loss_bad }) => {
                if self.burst.chance(if self.bad { bad_to_good } else { good_to_bad }) {
                    self.bad = !self.bad;
                }
                self.burst.chance(if self.bad { loss_bad } else { loss_good })
            }
        }
    }

    /// What becomes of a frame of so many bytes.
    pub(crate) fn fate(&mut self, impairments: &Impairments, bytes: usize) -> Fate {
        let held = impairments.reorder > 0.0 && self.reorder.chance(impairments.reorder);
        let copied = impairments.duplicate > 0.0 && self.duplicate.chance(impairments.duplicate);
        let corrupted = impairments.corrupt > 0.0 && self.corrupt.chance(impairments.corrupt);
        let bits = 8 * bytes.saturating_sub(ETHERNET_BYTES);
        let flipped = (corrupted && bits > 0).then(|| 8 * ETHERNET_BYTES + self.corrupt.up_to(bits as u64 - 1) as usize);
        Fate { held: if held { impairments.reorder_delay_ns } else { 0 }, copied, flipped }
    }
}

/// Flips a bit, the first byte's highest being number 0.
pub(crate) fn flip(frame: &mut [u8], bit: usize) {
    if let Some(byte) = frame.get_mut(bit / 8) {
        *byte ^= 0x80 >> (bit % 8);
    }
}
