//! Of which groups a host is a member, and what it says of that: the host's part of IGMPv2 [RFC 2236 sec 3, 6].

use std::collections::BTreeMap;

use fairlane_random::Rng;

use crate::igmp::Igmp;
use crate::Nanos;

/// Unsolicited Report Interval [RFC 2236 sec 8.10]: the report of a join is repeated once, within it.
const UNSOLICITED: Nanos = 10_000_000_000;
const TENTH: Nanos = 100_000_000;

#[derive(Debug)]
struct Group {
    /// Ends on this host that are members.
    members: u32,
    report_at: Option<Nanos>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Membership {
    groups: BTreeMap<u32, Group>,
    rng: Rng,
}

impl Membership {
    /// `rng`: the host's own.
    pub(crate) fn new(rng: Rng) -> Membership {
        Membership { groups: BTreeMap::new(), rng }
    }

    /// One end more is a member; what to send.
    pub(crate) fn join(&mut self, now: Nanos, group: u32) -> Option<Igmp> {
        let entry = self.groups.entry(group).or_insert(Group { members: 0, report_at: None });
        entry.members += 1;
        if entry.members > 1 {
            return None;
        }
        entry.report_at = Some(now + 1 + self.rng.up_to(UNSOLICITED - 1));
        Some(Igmp::Report { group })
    }

    /// One end less is a member; what to send.
    pub(crate) fn leave(&mut self, group: u32) -> Option<Igmp> {
        let entry = self.groups.get_mut(&group)?;
        entry.members -= 1;
        if entry.members > 0 {
            return None;
        }
        self.groups.remove(&group);
        Some(Igmp::Leave { group })
    }

    /// A message of another came: a query sets timers, the report of another member stops one (section 3).
    pub(crate) fn hear(&mut self, now: Nanos, message: Igmp) {
        match message {
            Igmp::Query { group, tenths } => {
                for (address, entry) in &mut self.groups {
                    if group.is_none_or(|group| group == *address) {
                        let latest = now + Nanos::from(tenths) * TENTH;
                        if entry.report_at.is_none_or(|at| at > latest) {
                            entry.report_at = Some(now + 1 + self.rng.up_to(Nanos::from(tenths) * TENTH - 1));
                        }
                    }
                }
            }
            Igmp::Report { group } => {
                if let Some(entry) = self.groups.get_mut(&group) {
                    entry.report_at = None;
                }
            }
            Igmp::Leave { .. } => {}
        }
    }

    /// When [`Membership::take_due`] has something.
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.groups.values().filter_map(|entry| entry.report_at).min()
    }

    /// A report that is due, of several the one of the lowest group.
    pub(crate) fn take_due(&mut self, now: Nanos) -> Option<Igmp> {
        let (&group, entry) = self.groups.iter_mut().find(|(_, entry)| entry.report_at.is_some_and(|at| at <= now))?;
        entry.report_at = None;
        Some(Igmp::Report { group })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = 1_000_000_000;

    fn membership() -> Membership {
        Membership::new(Rng::stream(1, "host"))
    }

    #[test]
    fn a_join_is_said_at_once_and_once_more() {
        let mut host = membership();
        assert_eq!(host.join(5 * SECOND, 7), Some(Igmp::Report { group: 7 }));
        let again = host.next().expect("a second report");
        assert!(again > 5 * SECOND && again <= 15 * SECOND);
        assert_eq!(host.take_due(again - 1), None);
        assert_eq!(host.take_due(again), Some(Igmp::Report { group: 7 }));
        assert_eq!((host.take_due(again), host.next()), (None, None));
    }

    #[test]
    fn a_host_is_a_member_while_one_of_its_ends_is() {
        let mut host = membership();
        assert!(host.join(0, 7).is_some() && host.join(0, 7).is_none());
        assert_eq!(host.leave(7), None);
        assert_eq!(host.leave(7), Some(Igmp::Leave { group: 7 }));
        assert_eq!((host.leave(7), host.next()), (None, None));
    }

    #[test]
    fn queries_are_answered_in_time_and_the_reports_of_others_suffice() {
        let mut host = membership();
        for group in [7, 8] {
            host.join(0, group);
            host.take_due(20 * SECOND);
        }
        host.hear(30 * SECOND, Igmp::Query { group: Some(8), tenths: 10 });
        let answer = host.next().expect("an answer");
        assert!(answer > 30 * SECOND && answer <= 31 * SECOND);
        assert_eq!(host.take_due(answer), Some(Igmp::Report { group: 8 }));
        host.hear(40 * SECOND, Igmp::Query { group: None, tenths: 100 });
        host.hear(40 * SECOND, Igmp::Report { group: 7 });
        assert_eq!(host.take_due(50 * SECOND), Some(Igmp::Report { group: 8 }));
        assert_eq!(host.take_due(50 * SECOND), None);
    }
}
