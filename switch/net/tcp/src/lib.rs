//! TCP endpoints for a packet network in virtual time.
//!
//! A connection carries data one way: a [`Sender`] and a [`Receiver`], each a state machine. Events go in (a segment
//! arrived, the timer ran out, the application wrote or closed), segments come out into a buffer that the caller owns.
//! Nothing here reads a clock or opens a socket: `now` is an argument ([`Nanos`]), and the caller asks for the next
//! timer deadline and calls back at it.
//!
//! | file | standard |
//! |---|---|
//! | `congestion/tahoe.rs` | Jacobson 1988; RFC 5681 without fast recovery |
//! | `congestion/reno.rs` | RFC 5681 |
//! | `congestion/newreno.rs` | RFC 6582 |
//! | `congestion/sack.rs`, `scoreboard.rs` | RFC 2018, RFC 6675 |
//! | `congestion/sack1.rs` | Fall and Floyd 1996 |
//! | `congestion/cubic.rs` | RFC 9438, with the loss recovery of `sack.rs` |
//! | `congestion/dctcp.rs` | RFC 8257, with the loss recovery of `sack.rs` |
//! | `congestion/prague.rs` | draft-briscoe-iccrg-prague-congestion-control-04, with the loss recovery of `sack.rs` |
//! | `congestion/bbr.rs` | draft-cardwell-iccrg-bbr-congestion-control-00 (BBR version 1), with the loss recovery of `sack.rs` |
//! | `rack.rs`, `tlp.rs`, `sender/rack_tlp.rs` | RFC 8985 (losses by time, tail loss probes), in place of RFC 6675 |
//! | `delivery.rs` | draft-cheng-iccrg-delivery-rate-estimation-00 |
//! | `rtt.rs` | RFC 6298, with timestamps [RFC 7323 sec G]; Jacobson 1988 |
//! | `ts_recent.rs` | RFC 7323 (which timestamp to echo; PAWS) |
//! | `sender.rs`, `receiver.rs`, `wire.rs` | RFC 9293, RFC 3042 (limited transmit), RFC 3168 (ECN), RFC 9768 (a count of marks), RFC 7323 (options), RFC 2883 (D-SACK) |
//!
//! Stream positions are 64-bit offsets inside (0 is the SYN, data start at 1) and 32-bit sequence numbers outside, so
//! wrapping is handled in one place, [`seq`]. Payload bytes are not stored: a segment says how many it carries.
//!
//! ```
//! use fairlane_tcp::{Config, Flavour, Receiver, Sender, Transmit};
//! let config = Config { flavour: Flavour::Sack, ..Config::default() };
//! let mut sender = Sender::new(config.clone(), 1000).unwrap();
//! let mut receiver = Receiver::new(config, 5000).unwrap();
//! let (mut there, mut back): (Vec<Transmit>, Vec<Transmit>) = (vec![], vec![]);
//! sender.write(10_000);
//! sender.close();
//! sender.open(0, &mut there);
//! let mut now = 0;
//! while !sender.is_done() {
//!     now += 5_000_000;
//!     for t in there.drain(..) { receiver.on_segment(now, &t.segment, false, &mut back); }
//!     now += 5_000_000;
//!     for t in back.drain(..) { sender.on_segment(now, &t.segment, &mut there); }
//!     if receiver.next_timer().is_some_and(|at| at <= now) { receiver.on_timer(now, &mut back); }
//!     if sender.next_timer().is_some_and(|at| at <= now) { sender.on_timer(now, &mut there); }
//! }
//! assert_eq!(receiver.delivered(), 10_000);
//! ```

#![forbid(unsafe_code)]

mod config;
mod congestion;
mod delivery;
mod ftp;
mod pacing;
mod rack;
mod ranges;
mod receiver;
mod rtt;
mod scoreboard;
mod segment;
mod sender;
pub mod seq;
mod tlp;
mod ts_recent;
pub mod wire;

pub use config::{Config, ConfigError, Flavour, LossDetection, ReductionBase, RenoFriendliness, RttEstimator, SackRecovery};
pub use fairlane_units::Nanos;
pub use ftp::Ftp;
pub use receiver::{Receiver, ReceiverStats};
pub use segment::{Ecn, Flags, SackBlocks, Segment, SynOptions, Timestamps, Transmit};
pub use sender::{Sender, SenderStats};
