//! Flows that start when other flows are over: a response after its request, a query's next round after its answers.
//!
//! A host learns of a flow's end where the flow ends: a receiver when it has the last byte, a sender when that is acknowledged. So a flow can
//! wait for flows that its sender sends or receives.

use crate::error::{nearest, BuildError};
use crate::flow::End;
use crate::followers::Follower;
use crate::network::Network;
use crate::Nanos;

impl Network {
    /// Lets a TCP flow wait: it starts `delay` after the last of the flows `after` is over, and not before its own start. Where one never is over, or is so at
    /// the flow's stop or later, it never starts.
    ///
    /// # Errors
    /// An unknown flow; one that is not TCP's with a file; one that neither starts nor ends at the flow's sender; a flow that waits already, or has started.
    pub fn start_after(&mut self, name: &str, after: &[impl AsRef<str>], delay: Nanos) -> Result<(), BuildError> {
        let fail = |what: String| BuildError::new(format!("flow {name}"), what);
        let (sender, receiver) = self.ends_of(name)?;
        let host = self.ends[sender].host;
        let (mut watched, mut told) = (Vec::new(), vec![receiver]);
        for other in after.iter().map(AsRef::as_ref) {
            let (start, end) = self.ends_of(other)?;
            let there = [end, start].into_iter().find(|&at| self.ends[at].host == host);
            let at = there.ok_or_else(|| {
                fail(format!("{} learns nothing of the end of {other}, which is between other hosts", self.hosts[host].name))
            })?;
            if self.ends[at].end.is_over().is_none() {
                return Err(fail(format!("{other} has no end to wait for: it is no TCP flow with a file")));
            }
            watched.push(at);
            told.push(end);
        }
        let now = self.now;
        match &mut self.ends[sender].end {
            End::TcpSender(tcp) => tcp.wait(now).map_err(|reason| fail(reason.into()))?,
            _ => return Err(fail("only TCP flows can wait for others".into())),
        }
        let start = self.ends[sender].end.life().start;
        self.end_marks.remove(&(start, receiver));
        self.ends[receiver].end.life().start = Nanos::MAX;
        let slot = self.ends[sender].slot;
        self.queue.set(slot, None);
        for end in told {
            if let End::TcpReceiver(tcp) = &mut self.ends[end].end {
                tcp.tell();
            }
        }
        self.followers.add(Follower { sender, receiver, delay }, &watched);
        Ok(())
    }

    /// A flow that has one receiver.
    fn ends_of(&self, name: &str) -> Result<(usize, usize), BuildError> {
        match self.flow_number(name).map(|flow| &self.flows[flow]) {
            Some(flow) => Ok((flow.sender, flow.receivers[0])),
            None => {
                let known = self.flows.iter().map(|flow| flow.name.as_str());
                Err(BuildError::new(format!("flow {name}"), format!("there is no such flow{}", nearest(name, known))))
            }
        }
    }

    /// After something reached an end: those that wait for it may start.
    pub(crate) fn follow(&mut self, end: usize) {
        if self.followers.is_empty() || self.ends[end].end.is_over() != Some(true) {
            return;
        }
        for Follower { sender, receiver, delay } in self.followers.over(end) {
            let life = self.ends[sender].end.life();
            let start = life.start.max(self.now.saturating_add(delay));
            if start >= life.stop {
                continue;
            }
            life.start = start;
            self.ends[receiver].end.start_at(start);
            self.end_marks.insert((start, receiver));
            self.start_away(receiver, start);
            if let End::TcpSender(tcp) = &mut self.ends[sender].end {
                tcp.go();
            }
            let slot = self.ends[sender].slot;
            self.queue.set(slot, Some(start));
        }
    }
}
