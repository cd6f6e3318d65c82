//! A recorded trace in place of sockets and clock: the datagrams that came to an end, and what it sends.

use fairlane_endpoint::algorithm::Fault;
use fairlane_endpoint::{Incoming, Nanos, Network, Outgoing};

use crate::driver::{Arrivals, Wire};

/// A datagram that came to an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    pub at: Nanos,
    pub rtcp: bool,
    pub group: Option<u32>,
    pub ecn: u8,
    pub payload: Vec<u8>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Trace {
    now: Nanos,
    /// Not yet come, the last first.
    arrivals: Vec<Arrival>,
    /// What the end sent: instant, address, whether to the RTCP port, payload.
    pub sent: Vec<(Nanos, u32, bool, Vec<u8>)>,
    /// Groups that it joined (true) and left.
    pub memberships: Vec<(Nanos, u32, bool)>,
}

impl Trace {
    /// `arrivals` in the order of time.
    pub fn new(mut arrivals: Vec<Arrival>) -> Trace {
        arrivals.reverse();
        Trace { arrivals, ..Trace::default() }
    }
}

impl Network for Trace {
    fn send(&mut self, datagram: &Outgoing) -> bool {
        let mut payload = datagram.head.to_vec();
        payload.resize(payload.len() + datagram.padding, 0);
        self.sent.push((self.now, datagram.to, datagram.kind.is_rtcp(), payload));
        true
    }

    fn join(&mut self, group: u32) -> Result<(), Fault> {
        self.memberships.push((self.now, group, true));
        Ok(())
    }

    fn leave(&mut self, group: u32) {
        self.memberships.push((self.now, group, false));
    }
}

impl Wire for Trace {
    fn now(&self) -> Nanos {
        self.now
    }

    fn wait(&mut self, until: Nanos, arrivals: &mut Arrivals) -> bool {
        self.now = self.now.max(self.arrivals.last().map_or(until, |next| next.at.min(until)));
        if let Some(Arrival { rtcp, group, ecn, payload, .. }) = self.arrivals.pop_if(|next| next.at <= self.now) {
            arrivals.push(&Incoming { rtcp, group, ecn, payload: &payload });
        }
        true
    }
}
