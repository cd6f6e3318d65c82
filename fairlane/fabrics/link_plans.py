"""Loss, jitter, impairments, changes and traces of the links at a switch's ports: a file for each switch (`fairlane-switch --links`).

For packets that a switch sends, its port applies them. If a host's link has one of them, or its rate counts datagrams, the switch's port also
sends, queues, delays and drops the host's packets: the host's own interface then has no limits.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fairlane.controller.timetable import NS
from fairlane.experiments.model import Change, Experiment
from fairlane.topologies.model import Link, Port, Topology
from fairlane.topologies.trace import OPPORTUNITY_BYTES

_ON_THE_WAY = ("loss", "gemodel", "jitter_s", "jitter_std_s", "reorder", "duplicate", "corrupt")
"""Keys for what happens to frames on the way."""


def special(link: Link) -> str | None:
    """The key of a link that only virtual time and Fairlane's own switch have; None: the link has none of them."""
    return next((key for key in (*_ON_THE_WAY, "trace") if getattr(link, key)), "framing" if link.framing != "ethernet" else None)


def _has_two_delays(link: Link) -> bool:
    """One for each direction: on a kernel without netem, the port towards the host would have both."""
    return link.delay_s != link.backward.delay_s


@dataclass(frozen=True)
class LinkPlans:
    """Of a network: its links, their changes (each with the node and port that sends), and the seed of the run."""

    topology: Topology
    changes: tuple[tuple[Change, str, int], ...] = ()
    seed: int = 1

    @staticmethod
    def of(experiment: Experiment) -> LinkPlans:
        return LinkPlans(experiment.topology, tuple(_of_each_end(experiment)), experiment.seed)

    @cached_property
    def uplinks(self) -> frozenset[int]:
        """Indices of the links on which a host's sending end is in the switch's port."""
        hosts = set(self.topology.hosts)
        return frozenset(
            port.link_index
            for host in hosts
            for port in self.topology.ports()[host]
            if special(port.link) or self._changes_of(port) or _has_two_delays(self.topology.links[port.link_index])
        )

    @cached_property
    def switches(self) -> tuple[str, ...]:
        """Those that need a file."""
        return tuple(name for name in self.topology.switches if self._links(name, True))

    @property
    def keeps_round_trips(self) -> bool:
        """Whether a round trip without load is at the end of a run what the topology declares."""
        return not self.changes and all(special(link) in (None, "framing") for link in self.topology.directions)

    def write(self, switch: str, path: Path, begin_ns: int | None = None) -> None:
        """The switch's file. begin_ns: when the run begins, in Unix time. Before that is known, nothing is lost and nothing jitters, so that
        round trips can be measured."""
        begins = {} if begin_ns is None else {"begin_unix_ns": begin_ns}
        text = json.dumps({"seed": self.seed, **begins, "links": self._links(switch, begin_ns is not None)}, indent=1)
        fresh = path.with_name(path.name + ".new")
        fresh.write_text(text + "\n", encoding="utf-8", newline="\n")
        # The switch may read it at any time.
        fresh.replace(path)

    def _links(self, switch: str, begun: bool) -> list[dict[str, Any]]:
        found = []
        for port in self.topology.ports()[switch]:
            if special(port.link) in (*_ON_THE_WAY, "trace") or self._changes_of(port):
                found.append({"port": port.number, "direction": "out", **self._direction(port, begun)})
            if port.link_index in self.uplinks:
                (sender,) = self.topology.ports()[port.peer]
                found.append({"port": port.number, "direction": "in", **_sending_end(sender.link), **self._direction(sender, begun)})
        return found

    def _direction(self, sender: Port, begun: bool) -> dict[str, Any]:
        link = sender.link
        described: dict[str, Any] = {"from": sender.node, "to": sender.peer}
        if not begun:
            return described
        described |= {
            "loss": link.loss,
            **_jitter(link.jitter_s, link.jitter_std_s),
            **_impairments(link),
            "changes": [_change(c) for c in self._changes_of(sender)],
        }
        if sender.trace is not None:
            opportunities = sender.trace.opportunities_ns
            described["trace"] = (
                {"opportunities_ns": opportunities, "bytes": OPPORTUNITY_BYTES}
                if opportunities
                else {"rates_ns_bps": sender.trace.rates_ns_bps}
            )
        return described

    def _changes_of(self, sender: Port) -> list[Change]:
        return [change for change, node, number in self.changes if (node, number) == (sender.node, sender.number)]


def _of_each_end(experiment: Experiment) -> Iterator[tuple[Change, str, int]]:
    """The changes of links. A link that fails, or works again, does so at both ends."""
    for change, node, number in experiment.changes:
        if change.link:
            yield change, node, number
        if change.up is not None:
            _, other = experiment.topology.both_ends(node, number)
            yield Change(change.at_s, change.link, up=change.up), other.node, other.number


def _sending_end(link: Link) -> dict[str, Any]:
    return {
        "rate_bps": round(link.rate_bps),
        "delay_ns": round(link.delay_s * NS),
        "queue_packets": link.queue_packets,
        "overhead_bytes": -link.uncounted_bytes,
    }


def _change(change: Change) -> dict[str, Any]:
    values = {
        "rate_bps": None if change.rate_bps is None else round(change.rate_bps),
        "delay_ns": None if change.delay_s is None else round(change.delay_s * NS),
        "loss": change.loss,
        "up": change.up,
    }
    known = {key: value for key, value in values.items() if value is not None} | _impairments(change)
    jitters = change.jitter_s is not None or change.jitter_std_s is not None
    return {"at_ns": round(change.at_s * NS), **known, **(_jitter(change.jitter_s or 0.0, change.jitter_std_s or 0.0) if jitters else {})}


def _jitter(uniform_s: float, std_s: float) -> dict[str, int]:
    return {"jitter_std_ns": round(std_s * NS)} if std_s else {"jitter_ns": round(uniform_s * NS)}


def _impairments(of: Link | Change) -> dict[str, Any]:
    """Those that are given."""
    values = {
        "gemodel": of.gemodel and dataclasses.asdict(of.gemodel),
        "reorder": of.reorder,
        "reorder_delay_ns": None if of.reorder_delay_s is None else round(of.reorder_delay_s * NS),
        "duplicate": of.duplicate,
        "corrupt": of.corrupt,
    }
    return {key: value for key, value in values.items() if value or (isinstance(of, Change) and value is not None)}


def bmv2_obstacle(topology: Topology, changes: Sequence[tuple[Change, str, int]] = ()) -> str | None:
    """The first thing of a network's links that BMv2's ports do not have; None when they have all."""
    for link in topology.directions:
        key = special(link) or ("back.delay_s" if _has_two_delays(link) else None)
        if key is not None:
            return f"link {' - '.join(link.ends)} has {key}, which BMv2's ports do not have"
    changed = next((change for change, _, _ in changes if change.link), None)
    if changed is not None:
        return f"{changed.link} changes at {changed.at_s:g} s, and BMv2's ports do not change while it runs"
    return None
