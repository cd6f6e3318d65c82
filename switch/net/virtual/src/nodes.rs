//! Parts of a network: hosts, switches, ends of flows, and how others find them.

use std::collections::VecDeque;

use fairlane_device::Device;
use fairlane_p4rt::Core;
use rustc_hash::FxHashMap;

use crate::control::Call;
use crate::events::ActorSlot;
use crate::flow::End;
use crate::identity::Form;
use crate::ip::HostAddress;
use crate::membership::Membership;
use crate::{Nanos, PortId};

/// The number of a node among those of its kind.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NodeIndex {
    Host(usize),
    Switch(usize),
}

/// Where the ends of a flow are in the list of ends.
#[derive(Debug, Clone)]
pub struct FlowEnds {
    pub name: String,
    pub(crate) sender: usize,
    /// One, or as many as a layered flow has.
    pub(crate) receivers: Vec<usize>,
    pub(crate) form: Form,
}

pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) address: HostAddress,
    /// The channel it sends by.
    pub(crate) channel: Option<usize>,
    /// (peer, own port, protocol) -> end.
    pub(crate) demux: FxHashMap<(u32, u16, u8), usize>,
    pub(crate) membership: Membership,
    /// Of its membership reports.
    pub(crate) slot: ActorSlot,
    pub(crate) unclaimed: u64,
    /// Datagrams dropped for a wrong checksum of IPv4, UDP or TCP.
    pub(crate) wrong_checksums: u64,
}

pub(crate) struct SwitchNode {
    pub(crate) name: String,
    pub(crate) device: Device,
    pub(crate) core: Core,
    pub(crate) slot: ActorSlot,
    /// Of lists of digests that wait for company.
    pub(crate) digest_slot: ActorSlot,
    /// Calls of the control plane that are on their way to it.
    pub(crate) calls: VecDeque<Call>,
    pub(crate) call_slot: ActorSlot,
    /// How often it had something to say to the control plane.
    pub(crate) said: u64,
    /// Port -> channel.
    pub(crate) channels: Vec<Option<usize>>,
}

/// A frame on its way between two switches.
#[derive(Debug)]
pub(crate) struct Flying {
    pub(crate) arrival: Nanos,
    /// When its transmission began.
    pub(crate) sent: Nanos,
    pub(crate) frame: Vec<u8>,
}

/// The frames on their way in a direction of a link between two switches, in their order.
#[derive(Debug)]
pub(crate) struct Way {
    pub(crate) frames: VecDeque<Flying>,
    pub(crate) slot: ActorSlot,
}

/// Where a channel ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attachment {
    Host(usize),
    Switch(usize, PortId),
}

pub(crate) struct EndNode {
    pub(crate) end: End,
    pub(crate) host: usize,
    /// UDP port of data, or TCP port, at both ends.
    pub(crate) port: u16,
    pub(crate) slot: ActorSlot,
    /// Its timer moves with every packet, mostly to later: see `Network::rearm`.
    pub(crate) lazy: bool,
}
