//! Rate-adaptive flows whose application limits them: instants and counts worked out by hand.

mod common;

use common::*;
use fairlane_endpoint::algorithm::{AckDetail, Action, Actions, Fault, Interests, SenderAlgorithm};
use fairlane_endpoint::record::{FlowRecord, Media};
use fairlane_endpoint::sources::{Emission, Mpeg4Parameters};
use fairlane_endpoint::{Application, Produces, RawTraffic};
use fairlane_virtual::{ChannelConfig, FlowKind, FlowSpec, Nanos, Network};

fn link(rate_bps: u64, delay_ns: u64, queue_packets: u32) -> ChannelConfig {
    ChannelConfig { rate_bps: Some(rate_bps), delay_ns, queue_packets, ..ChannelConfig::default() }
}

/// A flow at a constant rate above which an application stands.
fn limited(rate_bps: f64, stop: Nanos, traffic: RawTraffic, buffer_packets: u32) -> FlowSpec {
    let mut spec = fixed("f", 1, rate_bps, 0, stop);
    let FlowKind::Rtp(rtp) = &mut spec.kind else { unreachable!("fixed is an RTP flow") };
    rtp.application = Some(Application { produces: Produces::Traffic(traffic), buffer_packets });
    spec
}

/// Frames of so many bytes, so far apart.
fn frames(bytes: u64, apart: Nanos) -> RawTraffic {
    let frames = (0u64..).map(move |n| Emission { at: n * apart, bytes });
    RawTraffic::Other { source: Box::new(frames), with_headers: false }
}

/// (produced, bytes, waiting, discarded) at the end.
fn produced(network: &Network) -> (u64, u64, u64, u64) {
    let (sender, _) = network.logs(&network.flows()[0]);
    let last = sender.iter().rev().find_map(|(_, record)| match record {
        FlowRecord::Application { produced_packets, produced_bytes, waiting_packets, discarded_packets } => {
            Some((*produced_packets, *produced_bytes, *waiting_packets, *discarded_packets))
        }
        _ => None,
    });
    last.expect("a record")
}

fn sent(network: &Network) -> (u64, u64) {
    let (sender, _) = network.logs(&network.flows()[0]);
    let last = sender.iter().rev().find_map(|(_, record)| match record {
        FlowRecord::Sent { packets, bytes, .. } => Some((*packets, *bytes)),
        _ => None,
    });
    last.expect("a record")
}

/// Sum of all ages, the largest, and the counts at the end.
fn media(network: &Network) -> Media {
    let (_, receiver) = network.logs(&network.flows()[0]);
    let parts = receiver.iter().filter_map(|(_, record)| match record {
        FlowRecord::Data { media, .. } => *media,
        _ => None,
    });
    parts.fold(Media::default(), |sum, part| Media {
        age_sum_ns: sum.age_sum_ns + part.age_sum_ns,
        age_max_ns: sum.age_max_ns.max(part.age_max_ns),
        ..part
    })
}

/// Over an access link at 100 Mb/s, a bottleneck at 10 Mb/s and 5 ms, and an access link: nanoseconds for a datagram.
fn path(bytes: u64) -> Nanos {
    let wire = (bytes + 14) * 8;
    wire * 10 + wire * 100 + 5 * MS + wire * 10
}

fn network() -> Network {
    dumbbell(1, 1, &link(10_000_000, 5 * MS, 50), &link(100_000_000, 0, 1000))
}

#[test]
fn a_slow_application_sends_as_it_produces() {
    let mut network = network();
    // A packet each 8 ms, where the algorithm allows one each 4.
    network.add_flow(limited(2e6, SECOND, RawTraffic::ConstantBitRate { rate_bps: 1_000_000 }, 10)).expect("a good flow");
    network.run_until(2 * SECOND).expect("runs");
    assert_eq!(received(&network, 0), (125, 125_000, 0));
    let media = media(&network);
    assert_eq!((media.age_sum_ns, media.age_max_ns), (125 * path(1000), path(1000)));
    assert_eq!((media.delayed_packets, media.overdue_packets), (0, 0));
    assert_eq!((produced(&network), sent(&network)), ((125, 125_000, 0, 0), (125, 125_000)));
}

#[test]
fn the_pieces_of_a_frame_leave_at_the_rate() {
    let mut network = network();
    // 5000 bytes are five packets of 960 and one of 200: 240 with its headers. 8 ms between them, 100 ms between frames.
    network.add_flow(limited(1e6, SECOND, frames(5000, 100 * MS), 100)).expect("a good flow");
    network.run_until(2 * SECOND).expect("runs");
    assert_eq!(received(&network, 0), (60, 52_400, 0));
    let media = media(&network);
    let frame: u64 = (0..5).map(|k| k * 8 * MS + path(1000)).sum::<u64>() + 40 * MS + path(240);
    assert_eq!((media.age_sum_ns, media.age_max_ns), (10 * frame, 40 * MS + path(240)));
    // The first piece of each frame comes 60 ms after the last of the one before.
    assert_eq!((media.delayed_packets, media.overdue_packets), (0, 0));
}

#[test]
fn what_comes_late_is_counted_by_both_readings() {
    let mut network = network();
    // 16 ms between packets: the sixth leaves 80 ms after its frame; the next frame's first 120 ms after that.
    network.add_flow(limited(0.5e6, SECOND, frames(5000, 200 * MS), 100)).expect("a good flow");
    network.run_until(2 * SECOND).expect("runs");
    let media = media(&network);
    assert_eq!((media.delayed_packets, media.overdue_packets), (4, 5));
}

#[test]
fn a_buffer_that_is_full_loses_what_comes_and_the_books_balance() {
    let mut network = network();
    network.add_flow(limited(0.5e6, 10 * SECOND, frames(5000, 40 * MS), 8)).expect("a good flow");
    network.run_until(11 * SECOND).expect("runs");
    let ((packets, bytes, waiting, discarded), (sent_packets, sent_bytes)) = (produced(&network), sent(&network));
    // 250 frames of six packets; the transport carries 0.5 Mb/s of them.
    assert_eq!(packets, 1500);
    assert!(discarded > 0 && waiting <= 8);
    assert_eq!(packets, sent_packets + waiting + discarded);
    assert!(sent_bytes < bytes && (sent_bytes as f64 * 8.0 / 10.0 / 0.5e6 - 1.0).abs() < 0.01, "{sent_bytes}");
    let (received_packets, received_bytes, lost) = received(&network, 0);
    assert_eq!((received_packets, received_bytes, lost), (sent_packets, sent_bytes, 0));
    assert!(media(&network).overdue_packets > sent_packets / 2, "eight packets wait up to 128 ms");
}

/// A window that never changes.
struct Window(f64);

impl SenderAlgorithm for Window {
    fn interests(&self) -> Interests {
        Interests { acks: AckDetail::Losses, ..Interests::default() }
    }

    fn on_start(&mut self, _: Nanos, actions: &mut Actions) -> Result<(), Fault> {
        actions.push(Action::SetWindow { window_packets: self.0 });
        Ok(())
    }
}

#[test]
fn a_window_holds_back_what_it_has_no_room_for() {
    for (window, rtts) in [(100.0, 0), (2.0, 2)] {
        let mut network = network();
        let mut spec = limited(1.0, SECOND, frames(4800, 200 * MS), 100);
        let FlowKind::Rtp(rtp) = &mut spec.kind else { unreachable!("limited is an RTP flow") };
        rtp.sender = Box::new(Window(window));
        network.add_flow(spec).expect("a good flow");
        network.run_until(2 * SECOND).expect("runs");
        assert_eq!(received(&network, 0).0, 25, "five packets of each of five frames");
        // Acknowledgements of 40 bytes bring the window forward. The last of five packets waits behind others in the same queue when
        // all leave at once, and for two acknowledgements when two leave at once.
        let rtt = path(1000) + path(40);
        let last = if rtts == 0 { path(1000) + 4 * 811_200 } else { rtts * rtt + path(1000) };
        assert_eq!(media(&network).age_max_ns, last);
    }
}

#[test]
fn video_over_a_rate_repeats_and_balances() {
    let run = || {
        let mut network = network();
        let parameters = Box::new(Mpeg4Parameters::standard().expect("the crate's own"));
        let mut spec = limited(1.5e6, 20 * SECOND, RawTraffic::Mpeg4 { parameters, rate_scale: 1.0 }, 200);
        let FlowKind::Rtp(rtp) = &mut spec.kind else { unreachable!("limited is an RTP flow") };
        rtp.pacing_jitter = 0.5;
        network.add_flow(spec).expect("a good flow");
        network.run_until(21 * SECOND).expect("runs");
        network
    };
    let network = run();
    assert_eq!(records(&network), records(&run()));
    let (packets, bytes, waiting, discarded) = produced(&network);
    assert_eq!(packets, sent(&network).0 + waiting + discarded);
    assert!(packets > 500 && bytes < packets * 1000, "frames end in smaller packets");
    assert_eq!(received(&network, 0).0, sent(&network).0);
}

#[test]
fn what_cannot_be_is_refused() {
    let mut network = network();
    let mut refused = |spec: FlowSpec| network.add_flow(spec).expect_err("refused").to_string();
    assert!(refused(limited(1e6, SECOND, frames(1, 1), 0)).contains("a buffer of 0 packets"));
    let mut small = limited(1e6, SECOND, frames(1, 1), 1);
    let FlowKind::Rtp(rtp) = &mut small.kind else { unreachable!("limited is an RTP flow") };
    rtp.packet_bytes = 67;
    assert!(refused(small).contains("packet_bytes: 68 to 9000"));
    assert!(refused(limited(1e6, SECOND, RawTraffic::ConstantBitRate { rate_bps: 0 }, 1)).contains("rate_bps"));
}
