"""A finished run on the same page: its records, read once."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from fairlane.errors import Interrupted, Refusal
from fairlane.experiments.model import Experiment
from fairlane.fabrics import raw
from fairlane.fabrics.flows import Timing, record_roles
from fairlane.live.restore import experiment_of
from fairlane.live.sampler import Sampler, counted
from fairlane.live.server import Server
from fairlane.live.session import FINISHED, Pace, Session
from fairlane.results import fidelity


def serve(folder: Path, port: int, say: Callable[[str], None]) -> None:
    """Show the results in `folder` until Ctrl-C. Refusal: it has no results."""
    server = Server(open_results(folder), port)
    server.start()
    say(f"live view of {folder}: {server.url} (Ctrl-C ends it)")
    try:
        while True:
            time.sleep(3600)
    except (KeyboardInterrupt, Interrupted):
        pass
    finally:
        server.stop()


def open_results(folder: Path) -> Session:
    """The session of a finished run. Refusal: the folder holds no results."""
    try:
        summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        experiment = experiment_of(json.loads((folder / "experiment.json").read_text(encoding="utf-8")))
        timing = Timing(summary["begin_unix_s"], summary["begin_unix_s"] + experiment.duration_s)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Refusal(f"{folder}: holds no results of 'fairlane run' that can be opened ({error}).") from error
    if not (folder / "raw").is_dir():
        raise Refusal(f"{folder}: its folder raw/ is missing, and the page is drawn from that.")
    sampler = read(experiment, timing, folder / "raw")
    note = "" if not summary.get("live_changes") else "This run was changed by hand while it ran."
    found = summary.get("fidelity") or {}
    doubt = fidelity.doubt(found.get("verdict", "true"), [r["what"] for r in found.get("reasons", ())])
    session = Session(experiment, sampler, FINISHED, Pace(finished=True, doubt=doubt), note)
    session.shares.advance(experiment.duration_s, sampler.complete)
    session.changes.extend(summary.get("live_changes", []))
    return session


def read(experiment: Experiment, timing: Timing, folder: Path) -> Sampler:
    """All records of a run, as samples."""
    frames = {switch: raw.switch_counters(folder, switch) for switch in experiment.topology.switches}
    causes = list(dict.fromkeys(c.removeprefix("drop_") for frame in frames.values() for c in frame.columns if c.startswith("drop_")))
    sampler = Sampler(experiment, timing, causes, estimate_averages=True)
    for switch, frame in frames.items():
        for row in frame.to_dict("records"):
            sampler.port(switch, int(row["port"]), row["unix_s"], port_values(row, causes))
    control = raw.controller_records(folder)
    _bare_ports(sampler, frames, control)
    for row in control.to_dict("records"):
        sampler.control(
            row["switch"],
            int(row["port"]),
            row["time_s"],
            int(row["connections"]),
            row["fair_rate_bps"],
            counted(row),
        )
    for flow in experiment.flows:
        for role in record_roles(flow):
            sampler.flow(flow.name, role, raw.flow_records(folder, flow.name, role))
    sampler.advance(timing.end_s)
    return sampler


def port_values(row: dict[str, Any], causes: list[str]) -> tuple[float, ...]:
    """What `Sampler.port` takes of a row of a switch's CSV."""
    return (
        float(row["rx_bytes"]),
        float(row["tx_bytes"]),
        float(row.get("queue_integral_packet_s", math.nan)),
        *(float(row.get(f"drop_{cause}", 0) or 0) for cause in causes),
    )


def _bare_ports(sampler: Sampler, frames: dict[str, pd.DataFrame], control: pd.DataFrame) -> None:
    """BMv2 keeps no counters of its own: the program's counts are known for each interval, the queue is not."""
    if control.empty:
        return
    for row in control.to_dict("records"):
        if frames[row["switch"]].empty:
            sampler.port(row["switch"], int(row["port"]), row["time_s"], (0.0, float(row["transmitted_bytes"]), math.nan))
