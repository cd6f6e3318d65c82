//! RTP, RTCP and the stamps of data as bytes. Lengths are checked once, when a view is made.

pub mod ccfb;
pub mod ntp;
pub mod rtcp;
pub mod rtp;
pub mod stamp;
