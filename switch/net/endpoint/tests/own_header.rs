//! A header of a flow's own: out with each data packet, written into on the way, back with acknowledgements and reports.

mod common;

use std::ops::Range;
use std::sync::{Arc, Mutex};

use common::{receiver_spec, sender_spec};
use fairlane_endpoint::algorithm::{
    Ack, AckDetail, Action, Actions, Fault, Feedback, Interests, ReceiverAlgorithm, ReceptionState, SenderAlgorithm,
};
use fairlane_endpoint::header::{OwnHeader, Place, Quantity};
use fairlane_endpoint::wire::rtp::RtpHeader;
use fairlane_endpoint::{End, Incoming, Io, Ip, Life, Nanos, Network, Outgoing, ReceiverSpec, RtpReceiver, RtpSender};

const MS: Nanos = 1_000_000;
const SECOND: Nanos = 1_000 * MS;
/// "TE", four words: round trip, number of the packet, window, and what switches write.
const START: [u8; 4] = [0x54, 0x45, 0, 4];
const RTT: Place = Place { first_bit: 32, bits: 32 };
const SEQUENCE: Place = Place { first_bit: 64, bits: 32 };
const WINDOW: Place = Place { first_bit: 96, bits: 16 };
const KIND: Place = Place { first_bit: 112, bits: 16 };
/// Bytes that come back: from the number on.
const RETURNED: Range<usize> = 8..20;

/// Keeps what is sent.
#[derive(Default)]
struct Host(Vec<Vec<u8>>);

impl Network for Host {
    fn send(&mut self, datagram: &Outgoing) -> bool {
        let mut payload = datagram.head.to_vec();
        payload.resize(payload.len() + datagram.padding, 0);
        self.0.push(payload);
        true
    }

    fn join(&mut self, _: u32) -> Result<(), Fault> {
        Ok(())
    }

    fn leave(&mut self, _: u32) {}
}

/// Has a window of two packets, says another kind after the first acknowledgement, and keeps what came back.
struct Asks {
    acks: AckDetail,
    heard: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl SenderAlgorithm for Asks {
    fn interests(&self) -> Interests {
        Interests { acks: self.acks, ..Interests::default() }
    }

    fn header(&self) -> Option<OwnHeader> {
        let filled = vec![(Quantity::RttUs, RTT), (Quantity::Sequence, SEQUENCE), (Quantity::WindowPackets, WINDOW)];
        let bytes = [&START[..], &[0; 15], &[7]].concat();
        Some(OwnHeader { bytes, filled, returned: RETURNED })
    }

    fn on_start(&mut self, _: Nanos, actions: &mut Actions) -> Result<(), Fault> {
        actions.push(match self.acks {
            AckDetail::None => Action::SetRate { rate_bps: 8e5, burst_packets: 1 },
            _ => Action::SetWindow { window_packets: 2.0 },
        });
        Ok(())
    }

    fn on_ack(&mut self, _: Nanos, ack: &Ack, actions: &mut Actions) -> Result<(), Fault> {
        self.heard.lock().expect("is not poisoned").push(ack.header.to_vec());
        actions.push(Action::SetHeader { fields: vec![(KIND, 0x0809)] });
        Ok(())
    }

    fn on_feedback(&mut self, _: Nanos, feedback: &Feedback, _: &mut Actions) -> Result<(), Fault> {
        self.heard.lock().expect("is not poisoned").push(feedback.header.to_vec());
        Ok(())
    }
}

/// Reports once, after 100 ms; keeps the last header, or sums their last bytes.
struct Reports {
    sums: bool,
}

impl ReceiverAlgorithm for Reports {
    fn returned(&self) -> Option<Range<usize>> {
        Some(RETURNED)
    }

    fn fold(&mut self, kept: &mut Vec<u8>, new: &[u8]) -> Result<(), Fault> {
        let before = kept.last().copied().filter(|_| self.sums).unwrap_or(0);
        kept.clear();
        kept.extend_from_slice(new);
        if let Some(last) = kept.last_mut() {
            *last += before;
        }
        Ok(())
    }

    fn on_start(&mut self, _: Nanos, actions: &mut Actions) -> Result<(), Fault> {
        actions.push(Action::SetTimer { name: "report".into(), at_s: 0.1 });
        Ok(())
    }

    fn on_timer(&mut self, _: Nanos, _: &str, _: &ReceptionState, actions: &mut Actions) -> Result<(), Fault> {
        actions.push(Action::SendFeedback { loss_event_rate: None });
        Ok(())
    }
}

fn ends(acks: AckDetail, sums: bool) -> (RtpSender, RtpReceiver, Arc<Mutex<Vec<Vec<u8>>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let life = |peer| Life { peer, ip: Ip::V4, start: 0, stop: 10 * SECOND };
    let sender = RtpSender::new(life(1), sender_spec(1e6), Box::new(Asks { acks, heard: heard.clone() }), None, 1);
    let spec = ReceiverSpec { acks: acks != AckDetail::None, ..receiver_spec(1e6) };
    (sender, RtpReceiver::new(life(2), spec, Box::new(Reports { sums }), 1), heard)
}

fn run(end: &mut dyn End, host: &mut Host, until: Nanos) {
    while let Some(now) = end.next().filter(|&at| at <= until) {
        end.act(&mut Io { now, epoch: 0, network: host }).expect("runs");
    }
}

fn hand(end: &mut dyn End, payload: &[u8], now: Nanos) -> Vec<Vec<u8>> {
    let mut host = Host::default();
    let incoming = Incoming { rtcp: false, group: None, ecn: 0, payload };
    end.receive(&incoming, &mut Io { now, epoch: 0, network: &mut host }).expect("goes on");
    host.0
}

/// The header of a data packet.
fn header(packet: &[u8]) -> Vec<u8> {
    RtpHeader::parse(packet).expect("is RTP").0.extension.to_vec()
}

/// A switch writes the header's last byte.
fn switched(packet: &[u8], byte: u8) -> Vec<u8> {
    let mut packet = packet.to_vec();
    packet[12 + START.len() + 15] = byte;
    packet
}

#[test]
fn what_switches_write_comes_back_with_the_packets_acknowledgement() {
    let (mut sender, mut receiver, heard) = ends(AckDetail::Every, false);
    let mut host = Host::default();
    run(&mut sender, &mut host, 0);
    run(&mut receiver, &mut Host::default(), 0);
    let headers: Vec<_> = host.0.iter().map(|packet| header(packet)).collect();
    assert_eq!(headers.len(), 2);
    for (number, header) in headers.iter().enumerate() {
        assert_eq!(header, &[&START[..], &[0, 0, 0, 0], &[0, 0, 0, number as u8], &[0, 2, 0, 0], &[0, 0, 0, 7]].concat());
    }
    let acks = hand(&mut receiver, &switched(&host.0[0], 200), 10 * MS);
    // An acknowledgement with the instant of arrival, and the returned bytes behind it.
    assert_eq!(acks[0].len(), 20 + RETURNED.len());
    let next = hand(&mut sender, &acks[0], 20 * MS);
    assert_eq!(*heard.lock().expect("is not poisoned"), [[&headers[0][8..19], &[200]].concat()]);
    // 20 ms, the third packet, and what the algorithm set.
    assert_eq!(header(&next[0])[4..16], [20_000u32.to_be_bytes(), 2u32.to_be_bytes(), [0, 2, 8, 9]].concat());
}

#[test]
fn a_packet_without_the_header_or_with_a_shorter_one_is_acknowledged_without() {
    let (mut sender, mut receiver, heard) = ends(AckDetail::Every, false);
    let mut host = Host::default();
    run(&mut sender, &mut host, 0);
    run(&mut receiver, &mut Host::default(), 0);
    let payload = &host.0[0][12 + 20..];
    for extension in [&[][..], &[0x54, 0x45, 0, 1, 0, 0, 0, 0]] {
        let packet = [&RtpHeader { sequence: 1, timestamp: 0, ssrc: 7, extension }.emit()[..], extension, payload].concat();
        let acks = hand(&mut receiver, &packet, 10 * MS);
        assert_eq!(acks[0].len(), 12);
        hand(&mut sender, &acks[0], 20 * MS);
    }
    // The second one is no news.
    assert_eq!(*heard.lock().expect("is not poisoned"), [[0u8; 0]]);
}

#[test]
fn a_report_brings_back_what_the_receiver_makes_of_the_headers_since_the_one_before() {
    for (sums, said) in [(false, 5), (true, 15)] {
        let (mut sender, mut receiver, heard) = ends(AckDetail::None, sums);
        let mut host = Host::default();
        run(&mut sender, &mut host, 50 * MS);
        run(&mut receiver, &mut Host::default(), 0);
        assert_eq!(host.0.len(), 6);
        for (packet, byte) in host.0.iter().zip(0..) {
            assert!(hand(&mut receiver, &switched(packet, byte), 60 * MS).is_empty());
        }
        let mut reports = Host::default();
        run(&mut receiver, &mut reports, 100 * MS);
        assert_eq!(reports.0[0].len(), 44 + RETURNED.len());
        hand(&mut sender, &reports.0[0], 110 * MS);
        let heard = heard.lock().expect("is not poisoned");
        assert_eq!(heard.iter().map(|header| (header[3], header[11])).collect::<Vec<_>>(), [(5, said)]);
    }
}
