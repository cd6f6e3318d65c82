//! Which flow's packet a frame is, and which of its packets.

use fairlane_endpoint::is_multicast;
use fairlane_endpoint::wire::rtp::RtpHeader;
use fairlane_endpoint::wire::stamp::Stamp;
use fairlane_tcp::wire;
use rustc_hash::FxHashMap;

use crate::ip::{Datagram, ECN_MASK, PROTOCOL_TCP, PROTOCOL_UDP};

/// What a flow's packets look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Rtp,
    Raw,
    /// With the sender's first sequence number.
    Tcp(u32),
}

/// What a packet is to its flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Part {
    /// Of no flow.
    #[default]
    Other,
    Data,
    /// A TCP segment of the sender without data.
    Empty,
    /// TCP's acknowledgement, or feedback beside RTCP.
    Ack,
    Rtcp,
}

impl Part {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Part::Other => "",
            Part::Data => "data",
            Part::Empty => "empty",
            Part::Ack => "ack",
            Part::Rtcp => "rtcp",
        }
    }
}

/// See the module. `number`: of data the packets of its stream before it; of TCP the bytes before its first, or, of an acknowledgement, those that
/// are acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Identity {
    pub(crate) flow: Option<usize>,
    pub(crate) part: Part,
    /// From the receiver to the sender.
    pub(crate) back: bool,
    pub(crate) number: Option<u64>,
    pub(crate) ecn: u8,
}

/// Where a flow's packets go.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    pub(crate) form: Form,
    pub(crate) port: u16,
    pub(crate) sender: u32,
    pub(crate) receivers: Vec<u32>,
}

/// The flows by what their frames' headers say: source, destination (0 for a group), destination port, protocol.
#[derive(Debug, Default)]
pub(crate) struct Book {
    known: FxHashMap<(u32, u32, u16, u8), (usize, bool)>,
    routes: Vec<Route>,
}

impl Book {
    /// One flow more.
    pub(crate) fn add(&mut self, route: Route) {
        let flow = self.routes.len();
        let (protocol, ports) = match route.form {
            Form::Tcp(_) => (PROTOCOL_TCP, 1),
            Form::Rtp => (PROTOCOL_UDP, 2),
            Form::Raw => (PROTOCOL_UDP, 1),
        };
        for port in route.port..route.port.saturating_add(ports) {
            for &receiver in &route.receivers {
                self.known.insert((route.sender, receiver, port, protocol), (flow, false));
                self.known.insert((receiver, route.sender, port, protocol), (flow, true));
            }
            if route.receivers.len() > 1 {
                self.known.insert((route.sender, 0, port, protocol), (flow, false));
            }
        }
        self.routes.push(route);
    }

    /// How many flows it has.
    pub(crate) fn flows(&self) -> usize {
        self.routes.len()
    }

    pub(crate) fn identify(&self, frame: &[u8]) -> Identity {
        let Some(datagram) = Datagram::parse(frame) else { return Identity::default() };
        let ecn = datagram.tos & ECN_MASK;
        let destination = if is_multicast(datagram.destination) { 0 } else { datagram.destination };
        let found =
            datagram.ports().and_then(|(_, to)| Some((to, *self.known.get(&(datagram.source, destination, to, datagram.protocol))?)));
        let Some((to, (flow, back))) = found else { return Identity { ecn, ..Identity::default() } };
        let Route { form, port, .. } = self.routes[flow];
        let (part, number) = match form {
            Form::Tcp(iss) => segment(&datagram, iss, back),
            Form::Rtp | Form::Raw if to != port => (Part::Rtcp, None),
            Form::Rtp | Form::Raw if back => (Part::Ack, None),
            Form::Rtp => {
                let rest = datagram.udp_payload().and_then(RtpHeader::parse).map(|(_, rest)| rest);
                (Part::Data, rest.and_then(|rest| Stamp::parse(rest, false)).map(|stamp| stamp.number))
            }
            // Its stamp is that of RTP's data.
            Form::Raw => (Part::Data, datagram.udp_payload().and_then(|payload| Stamp::parse(payload, false)).map(|stamp| stamp.number)),
        };
        Identity { flow: Some(flow), part, back, number, ecn }
    }
}

/// `iss`: the sender's first sequence number, which its SYN has.
fn segment(datagram: &Datagram, iss: u32, back: bool) -> (Part, Option<u64>) {
    let Ok(header) = wire::parse(datagram.payload, datagram.payload.len()) else { return (Part::Other, None) };
    let since = |number: u32| Some(u64::from(number.wrapping_sub(iss).wrapping_sub(1)));
    match (back, header.segment.payload_len) {
        (true, _) => (Part::Ack, since(header.segment.ack)),
        (false, 0) => (Part::Empty, None),
        (false, _) => (Part::Data, since(header.segment.seq)),
    }
}
