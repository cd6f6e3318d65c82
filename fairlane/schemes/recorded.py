"""Schemes of a user's own in records: their descriptions as data, so that whoever reads a record needs no file of theirs, and runs no code of theirs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fairlane.schemes import registry
from fairlane.schemes.base import Average, Column, Counter, Parameters, PortLoop, Scheme

KEY = "own_schemes"
"""Of a recorded experiment."""


def described(links: Iterable[tuple[Parameters | None, int]]) -> dict[str, Any]:
    """What a record says of schemes, those of links with their buffers in packets, under `KEY`: by name, title, counters, columns of its control loop, queues of a port, whether
    all of it marks, and averages, each of parameters and a buffer. Empty where all of them come with Fairlane."""
    found: dict[str, Any] = {}
    for aqm, queue_packets in links:
        if aqm is None or registry.is_own(aqm.scheme):
            continue
        scheme = aqm.scheme
        said = found.setdefault(
            scheme.name,
            {
                "title": scheme.title,
                "counters": [dataclasses.asdict(counter) for counter in scheme.counters],
                "priorities": aqm.priorities,
                "marks": scheme.always_marks,
                "averages": [],
                **({"everywhere": True} if scheme.everywhere else {}),
                **({"loop": [dataclasses.asdict(column) for column in scheme.loop.columns]} if scheme.loop else {}),
            },
        )
        average = aqm.average(queue_packets)
        entry = None if average is None else {"parameters": dict(vars(aqm)), "queue_packets": queue_packets, "average": vars(average)}
        if entry is not None and entry not in said["averages"]:
            said["averages"].append(entry)
    return {KEY: found} if found else {}


def know(experiment: Mapping[str, Any]) -> None:
    """The schemes that a recorded experiment describes join `registry.SCHEMES`, for reading records alone; those that are there stay. KeyError,
    TypeError, ValueError: they are no descriptions."""
    for name, said in dict(experiment.get(KEY) or {}).items():
        tables = (experiment["settings"]["control"], *experiment["topology"]["links"])
        values = [table[name] for table in tables if table.get(name) is not None]
        if name not in registry.SCHEMES and values:
            registry.SCHEMES[name] = _scheme(name, said, list(values[0]))


def _scheme(name: str, said: Mapping[str, Any], keys: list[str]) -> Scheme:
    averages = [(entry["parameters"], entry["queue_packets"], Average(**entry["average"])) for entry in said["averages"]]

    def average(self: Parameters, queue_packets: int) -> Average | None:
        return next((found for values, packets, found in averages if values == vars(self) and packets == queue_packets), None)

    members = {"average": average, "priorities": int(said["priorities"]), **({"ecn": True} if said["marks"] else {})}
    parameters: Any = dataclasses.make_dataclass(
        "Recorded", [(key, Any) for key in keys], bases=(Parameters,), namespace=members, frozen=True
    )
    counters = tuple(Counter(**{**counter, "names": tuple(counter["names"])}) for counter in said["counters"])
    columns = tuple(Column(**column) for column in said.get("loop", ()))
    loop = type("RecordedLoop", (PortLoop,), {"columns": columns}) if columns else None
    scheme = Scheme(name, str(said["title"]), parameters, {}, counters, everywhere=bool(said.get("everywhere")), loop=loop)
    vars(scheme)["folder"] = Path("/") / "recorded" / name  # not looked for: it may be anywhere, or gone
    return scheme
