//! Traffic sources: seeded iterators over what an application hands to its transport, and when.
//!
//! | file | source |
//! |---|---|
//! | `cbr.rs` | constant bit rate |
//! | `on_off.rs` | bursts at a constant rate, exponential or Pareto |
//! | `renewal.rs` | single packets after independent gaps, of independent sizes: Poisson arrivals |
//! | `persistent.rs` | always more to send |
//! | `mpeg4.rs` | MPEG-4: I, P and B frames from three TES models (`tes.rs`), parameters in `data/mpeg4.toml` |
//!
//! Nothing here reads a clock. Each source draws from a stream of its own (`fairlane-random`): the same seed and name give the same items on
//! every x86-64 machine, also by the logarithms of a pinned version of libm.
//!
//! ```
//! use fairlane_sources::{Emission, OnOff, OnOffParameters, Period, Stream};
//! let parameters = OnOffParameters {
//!     rate_bps: 1_000_000,
//!     packet_bytes: 500,
//!     on: Period::Exponential { mean_s: 0.5 },
//!     off: Period::Exponential { mean_s: 0.5 },
//! };
//! let packets: Vec<Emission> =
//!     OnOff::new(parameters, 0, Stream::new(1, "h1/voice")).unwrap().take_while(|e| e.at < 1_000_000_000).collect();
//! assert!(packets.iter().all(|e| e.bytes == 500));
//! ```

#![forbid(unsafe_code)]

mod cbr;
mod error;
mod mpeg4;
mod on_off;
mod persistent;
mod renewal;
pub mod tes;

pub use cbr::ConstantBitRate;
pub use error::ParameterError;
pub use fairlane_random::Stream;
pub use fairlane_units::Nanos;
pub use mpeg4::{Frame, FrameKind, FrameModel, Mpeg4, Mpeg4Parameters};
pub use on_off::{OnOff, OnOffParameters, Period};
pub use persistent::Persistent;
pub use renewal::{Gaps, Renewal, RenewalParameters, Sizes};

/// Data handed to the transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Emission {
    pub at: Nanos,
    /// Bytes of payload; `u64::MAX` is data without end.
    pub bytes: u64,
}
