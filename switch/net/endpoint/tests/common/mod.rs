//! Ends of a flow as most tests want them; a test changes what it is about.
#![allow(dead_code)]

use fairlane_endpoint::{ReceiverSpec, SenderSpec};

/// Packets of 1000 bytes at even intervals from the start on.
pub fn sender_spec(session_bandwidth_bps: f64) -> SenderSpec {
    SenderSpec {
        name: "f".into(),
        packet_bytes: 1000,
        session_bandwidth_bps,
        pacing_jitter: 0.0,
        phase: Some(0.0),
        exact_loss: false,
        ssrc: 7,
        cname: b"sender".to_vec(),
        layered: false,
        circuit_breaker: None,
        report_interval: None,
    }
}

pub fn receiver_spec(session_bandwidth_bps: f64) -> ReceiverSpec {
    ReceiverSpec {
        name: "f".into(),
        stream: "flow f receiver".into(),
        session_bandwidth_bps,
        ssrc: 8,
        cname: b"receiver".to_vec(),
        acks: false,
        report_interval: None,
        media: false,
        film: false,
        delay_threshold: 75_000_000,
        base_group: None,
        rtcp: false,
    }
}
