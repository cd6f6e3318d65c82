"""A seeded trace of each rate-based algorithm, held against a golden: `UPDATE_GOLDEN=1` writes the files anew; look at the difference
before keeping it. Unicast kinds run over `path_model`, layered ALS over the tree of [ALS fig 7] below."""

from __future__ import annotations

import csv
import io
import os
import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import path_model
from fairlane.hosts.algorithms import ALGORITHMS
from fairlane.hosts.algorithms.base import (
    Control,
    Feedback,
    JoinLayers,
    SetControl,
    SetLayers,
    SetReport,
    SetTimer,
    Timer,
)

GOLDEN = Path(__file__).parent / "golden"
MAX_RATE_BPS = 2e6
UNICAST = {
    "aimd-rtcp": {},
    "cbr": {"rate_bps": 1.2e6},
    "daa": {},
    "ssvp": {},
    "ssvp-as-printed": {"increase": "as-printed"},
    "ssvp-adp": {},
    "trabol": {},
    "trabol-memory": {},
}
"""Parameters beside those that a fabric fills in; "-as-printed" is a reading, not a kind."""


def unicast_trace(name: str) -> str:
    """At 1 Mb/s, 50 ms, 20 packets of buffer, 0.2% of losses beside the queue's: a minute, or six for what RTCP drives. TRABOL, made for
    fast links, at 20 Mb/s."""
    scale = 20 if name.startswith("trabol") else 1
    kind = ALGORITHMS[name.removesuffix("-as-printed")]
    known = kind.parameters.__dataclass_fields__
    filled = {k: v for k, v in {"max_rate_bps": scale * MAX_RATE_BPS, "packet_bytes": 1000}.items() if k in known}
    path = path_model.Path(capacity_bps=scale * 1e6, rtt_s=0.05, queue_packets=20, random_loss=0.002)
    loop = path_model.ClosedLoop(kind, kind.parameters(**filled, **UNICAST[name]), path, seed=11, jitter=0.2)
    minutes = 6 if loop.sender.interests.rtcp else 1
    rows = loop.run(60.0 * minutes, sample_s=1.0 * minutes).rows
    return as_csv(("t_s", "rate_bps", "sent", "delivered", "lost"), ((f"{t:g}", f"{r:.3f}", *counts) for t, r, *counts in rows))


def layered_trace() -> str:
    """Fair rates 90, 270 and 180 kb/s to receivers 0, 1 and 2; receiver 0 comes at 100 s [ALS sec 4.3]. Routers only lower R_d; reports
    and control packets come on an RTCP-like timetable; nothing is lost. A row whenever layers, sizes or memberships change."""
    kind = ALGORITHMS["als-layered"]
    parameters = kind.parameters(max_rate_bps=3e6)
    rng = random.Random(3)
    fair_bps = {0: 90e3, 1: 270e3, 2: 180e3}
    starts_s = {0: 100.0, 1: 0.0, 2: 0.0}
    sender, receivers = kind.sender(parameters), {}
    reports: dict[int, SetReport] = {}
    joined: dict[int, int] = {}
    said: SetControl | None = None
    sent: tuple[float, ...] = ()
    rows = []
    # (instant, stable order, what): "control" of the sender, "timer" of it, "report" of a receiver
    due: list[tuple[float, int, str]] = [(2.5, 1, "control"), *((starts_s[i], 10 + i, f"join {i}") for i in fair_bps)]

    def sender_does(actions: tuple) -> None:
        nonlocal said, sent
        for action in actions:
            if isinstance(action, SetTimer):
                due.append((action.at_s, 0, "timer"))
            elif isinstance(action, SetControl):
                said = action
            elif isinstance(action, SetLayers):
                sent = tuple(layer.rate_bps for layer in action.layers)

    def receiver_does(i: int, actions: tuple) -> None:
        for action in actions:
            if isinstance(action, SetReport):
                reports[i] = action
            elif isinstance(action, JoinLayers):
                joined[i] = len(action.addresses)

    sender_does(sender.on_start(0.0, rng))
    while due:
        now_s, order, what = entry = min(due)
        due.remove(entry)
        if now_s > 200:
            break
        if what == "timer":
            sender_does(sender.on_timer(now_s, Timer("als.adaptation"), rng))
        elif what == "control":
            for i, receiver in receivers.items():
                heard = Control(1, min(said.desired_rate_bps, fair_bps[i]), 0.95, said.layers)
                receiver_does(i, receiver.on_control(now_s, heard, rng))
            due.append((now_s + 5 * (0.5 + rng.random()), order, what))
        elif what.startswith("join"):
            i = order - 10
            receivers[i] = kind.receiver(parameters)
            receiver_does(i, receivers[i].on_start(now_s, rng))
            due.append((now_s + 2.5, 20 + i, "report"))
        else:
            echo = reports.get(order - 20)
            rd_bps, u = (echo.desired_rate_bps, echo.utilisation) if echo else (None, None)
            sender_does(sender.on_feedback(now_s, Feedback(order - 20, 0.0, desired_rate_bps=rd_bps, utilisation=u), rng))
            due.append((now_s + 5 * (0.5 + rng.random()), order, what))
        sizes = tuple(layer.rate_bps for layer in said.layers) if said.layers else ("", "", "")
        row = (*(f"{rate:.3f}" for rate in sent), *sizes, *(joined.get(i, "") for i in fair_bps))
        if not rows or rows[-1][1:] != row:
            rows.append((f"{now_s:.3f}", *row))
    header = "t_s rate_0 rate_1 rate_2 size_0 size_1 size_2 layers_of_0 layers_of_1 layers_of_2".split()
    return as_csv(header, rows)


def as_csv(header, rows) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


def compare(name: str, text: str) -> None:
    golden = GOLDEN / f"{name}.csv"
    if os.environ.get("UPDATE_GOLDEN") == "1":
        GOLDEN.mkdir(exist_ok=True)
        golden.write_text(text)
    assert text == golden.read_text()


@pytest.mark.parametrize("name", sorted(UNICAST))
def test_trace_equals_the_golden(name: str) -> None:
    compare(f"trace_{name}", unicast_trace(name))


def test_layered_trace_equals_the_golden_and_the_paper() -> None:
    text = layered_trace()
    compare("trace_als-layered", text)
    last = list(csv.DictReader(io.StringIO(text)))[-1]
    assert [last[f"size_{i}"] for i in range(3)] == ["90000.0", "90000.0", "90000.0"]  # R_d,min, (R_d,max - R_d,min) / 2
    assert [last[f"layers_of_{i}"] for i in range(3)] == ["1", "3", "2"]  # the joins of [ALS sec 4.3]
