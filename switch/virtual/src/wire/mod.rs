//! Headers as bytes: Ethernet, IPv4, UDP, RTP and RTCP. Lengths are checked once, when a view is made.

pub mod igmp;
pub mod ip;
pub mod ntp;
pub mod rtcp;
pub mod rtp;
