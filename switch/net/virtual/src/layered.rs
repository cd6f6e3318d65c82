//! Adding flows in layers: one sender, several receivers, a group for each layer [ALS sec 3.4].

use fairlane_endpoint::algorithm::{AckDetail, ReceiverAlgorithm, SenderAlgorithm};
use fairlane_endpoint::{check_session, is_forwarded_group, Ip, Life, ReceiverSpec, RtpReceiver, RtpSender, SenderSpec};

use crate::build::LINGER;
use crate::error::{nearest, BuildError};
use crate::flow::End;
use crate::identity::Form;
use crate::ip::PROTOCOL_UDP;
use crate::network::Network;
use crate::nodes::FlowEnds;
use crate::Nanos;

/// One receiver of a layered flow.
pub struct LayeredReceiver {
    /// By name.
    pub host: String,
    pub algorithm: Box<dyn ReceiverAlgorithm>,
    pub ssrc: u32,
    pub cname: String,
    /// When it joins and leaves the session; `None`: a little before the sender starts, a little after it stops.
    pub start: Option<Nanos>,
    pub stop: Option<Nanos>,
}

/// A flow over RTP in layers. Layer k is a stream of its own, of SSRC `sender_ssrc + k`, to its group; control packets go to the
/// base layer's, of which each receiver is a member from its start. Receivers report to the sender's address.
pub struct LayeredSpec {
    /// Unique; names its streams of randomness.
    pub name: String,
    /// Host by name.
    pub sender: String,
    pub algorithm: Box<dyn SenderAlgorithm>,
    pub receivers: Vec<LayeredReceiver>,
    /// IPv4 group of the base layer: the first of every `SetLayers`.
    pub base_group: u32,
    /// UDP port of data at all ends, even; RTCP uses the next.
    pub port: u16,
    pub start: Nanos,
    pub stop: Nanos,
    /// A data packet as IPv4 datagram, 56 to 9000.
    pub packet_bytes: u32,
    /// Of the RTP session [RFC 3550 sec 6.2], positive.
    pub session_bandwidth_bps: f64,
    /// As of `RtpSpec`; so the next two.
    pub pacing_jitter: f64,
    pub phase: Option<f64>,
    pub exact_loss: bool,
    pub delay_threshold: Nanos,
    pub sender_ssrc: u32,
    pub sender_cname: String,
}

impl Network {
    /// Adds a layered flow.
    ///
    /// # Errors
    /// An unknown host or one named twice, no receiver, a base group that is none, a name or a port that is taken, a time that cannot be.
    pub fn add_layered_flow(&mut self, spec: LayeredSpec) -> Result<(), BuildError> {
        let key = format!("flow {}", spec.name);
        let fail = |what: String| BuildError::new(key.clone(), what);
        let index = |name: &str, role: &str| {
            self.host(name).ok_or_else(|| {
                let known = self.hosts.iter().map(|host| host.name.as_str());
                BuildError::new(format!("{key} {role}"), format!("unknown host {name:?}{}", nearest(name, known)))
            })
        };
        let sender = index(&spec.sender, "sender")?;
        let receivers = spec.receivers.iter().map(|receiver| index(&receiver.host, "receiver")).collect::<Result<Vec<_>, _>>()?;
        if receivers.is_empty() {
            return Err(fail("has no receiver: name at least one host".into()));
        }
        if self.flow_of.contains_key(&spec.name) {
            return Err(fail("two flows have this name".into()));
        }
        self.check_times(&key, spec.start, spec.stop)?;
        if self.hosts[sender].address.version == Ip::V6 {
            return Err(fail("is in layers, which go to groups: over IPv4 alone".into()));
        }
        if !is_forwarded_group(spec.base_group) {
            let group = std::net::Ipv4Addr::from(spec.base_group);
            return Err(fail(format!("base group {group}: must be a group that routers forward, 224.0.1.0 to 239.255.255.255")));
        }
        if spec.port == 0 || spec.port % 2 == 1 {
            return Err(fail(format!("port {}: not 0, and even for RTP [RFC 3550 sec 11]", spec.port)));
        }
        check_session(Ip::V4, spec.packet_bytes, false, spec.session_bandwidth_bps, spec.pacing_jitter, spec.phase).map_err(fail)?;
        if spec.algorithm.interests().acks != AckDetail::None {
            return Err(fail("its algorithm wants acknowledgements of single packets: not with several receivers".into()));
        }
        let from = self.hosts[sender].address;
        let mut lives = Vec::new();
        for (number, (&host, receiver)) in receivers.iter().zip(&spec.receivers).enumerate() {
            if host == sender || receivers[..number].contains(&host) {
                return Err(fail(format!("{} is named twice: each end is a host of its own", receiver.host)));
            }
            let start = receiver.start.unwrap_or(spec.start.saturating_sub(LINGER));
            let stop = receiver.stop.unwrap_or(spec.stop.saturating_add(LINGER));
            if stop <= start {
                return Err(fail(format!(
                    "receiver {} stops at {stop} ns and starts at {start} ns: it must start before it stops",
                    receiver.host
                )));
            }
            if receiver.start.is_some() || receiver.stop.is_some() {
                self.check_times(&format!("{key} receiver {}", receiver.host), start, receiver.stop.unwrap_or(start + 1))?;
            }
            lives.push((start, stop));
            for port in [spec.port, spec.port + 1] {
                let peer = self.hosts[host].address.ip;
                let taken = self.hosts[sender].demux.contains_key(&(peer, port, PROTOCOL_UDP))
                    || self.hosts[host].demux.contains_key(&(from.ip, port, PROTOCOL_UDP));
                if taken {
                    return Err(fail(format!("port {port} is used by another flow between {} and {}", spec.sender, receiver.host)));
                }
            }
        }
        let seed = self.options.seed;
        let life = Life { peer: spec.base_group, ip: Ip::V4, start: spec.start, stop: spec.stop };
        let settings = SenderSpec {
            name: spec.name.clone(),
            packet_bytes: spec.packet_bytes,
            session_bandwidth_bps: spec.session_bandwidth_bps,
            pacing_jitter: spec.pacing_jitter,
            phase: spec.phase,
            exact_loss: spec.exact_loss,
            ssrc: spec.sender_ssrc,
            cname: spec.sender_cname.into_bytes(),
            layered: true,
            circuit_breaker: None,
            report_interval: None,
        };
        let first = self.add_end(End::Udp(Box::new(RtpSender::new(life, settings, spec.algorithm, None, seed))), sender, spec.port, false);
        let mut flow = FlowEnds { name: spec.name.clone(), sender: first, receivers: Vec::new(), form: Form::Rtp };
        for ((host, receiver), (start, stop)) in receivers.into_iter().zip(spec.receivers).zip(lives) {
            let own = self.hosts[host].address;
            let settings = ReceiverSpec {
                name: spec.name.clone(),
                stream: format!("flow {} receiver {}", spec.name, receiver.host),
                session_bandwidth_bps: spec.session_bandwidth_bps,
                ssrc: receiver.ssrc,
                cname: receiver.cname.into_bytes(),
                acks: false,
                report_interval: None,
                media: false,
                film: false,
                delay_threshold: spec.delay_threshold,
                base_group: Some(spec.base_group),
                rtcp: false,
            };
            let life = Life { peer: from.ip, ip: from.version, start, stop };
            let end = self.add_end(End::Udp(Box::new(RtpReceiver::new(life, settings, receiver.algorithm, seed))), host, spec.port, false);
            for port in [spec.port, spec.port + 1] {
                self.hosts[sender].demux.insert((own.ip, port, PROTOCOL_UDP), first);
                self.hosts[host].demux.insert((from.ip, port, PROTOCOL_UDP), end);
            }
            self.end_marks.extend([spec.start, start, spec.stop].map(|at| (at, end)));
            flow.receivers.push(end);
        }
        self.push_flow(flow);
        Ok(())
    }
}
