"""Records of long runs: thinned sums tell the same, columns hold what lists of records do, and memory does not grow with time."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane import ad_hoc, probes
from fairlane.experiments import model
from fairlane.fabrics import raw, targets, virtual_fabric
from fairlane.fabrics.progress import Silent
from fairlane.results import columns, metrics, series, shares


def test_thinned_counters_end_where_all_of_them_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw, "_PIECE_ROWS", 37)
    times = 1e9 + np.arange(0.0, 50.0, 0.1)
    for name, first in (("s1.csv", 0), ("s1.2.csv", 250)):
        part = times[first : first + 250]
        frames = [
            pd.DataFrame({"unix_s": part, "port": port, "tx_bytes": port * 1000.0 * np.arange(len(part)), "rx": 1}) for port in (1, 2)
        ]
        pd.concat(frames).sort_values(["unix_s", "port"]).to_csv(tmp_path / name, index=False)
    every, thin = raw.switch_counters(tmp_path, "s1"), raw.switch_counters(tmp_path, "s1", lambda c: c != "rx", 0.7)
    assert len(every) == 1000 and 130 < len(thin) < 250 and list(thin.columns) == ["unix_s", "port", "tx_bytes"]
    for port in (1, 2):
        a, b = (frame[frame["port"] == port] for frame in (every, thin))
        assert b["unix_s"].diff().max() < 0.71 + 1e-6 and (b["unix_s"].iloc[-1], b["tx_bytes"].iloc[-1]) == (
            a["unix_s"].iloc[-1],
            a["tx_bytes"].iloc[-1],
        )
        assert np.isin(b["tx_bytes"], a["tx_bytes"]).all()


_PYTHON = {**os.environ, "PYTHONPATH": str(probes.ROOT)}
_RECORDS = st.lists(
    st.fixed_dictionaries(
        {"kind": st.sampled_from("ab")}, optional={"t": st.integers(0, 9), "x": st.none() | st.floats(-9, 9), "s": st.text(max_size=2)}
    ),
    max_size=15,
)


@given(_RECORDS, st.integers(1, 20))
def test_columns_hold_what_records_do(records: list[dict], at_once: int) -> None:
    with mock.patch.object(columns, "_AT_ONCE", at_once):
        found = columns.by_kind((dict(r) for r in records), {"a"}, 2.0)["a"]
    wanted = [r for r in records if r["kind"] == "a"]
    assert len(found) == len(wanted)
    assert found.get("x", 7.0).tolist() == [7.0 if r.get("x") is None else r["x"] for r in wanted]
    assert list(found.pairs("x", "t")) == [
        (pytest.approx(math.nan if r.get("x") is None else r["x"], nan_ok=True), r["t"] - 2.0) for r in wanted if "t" in r
    ]
    assert np.isnan(found["nothing"]).all() and np.isnan(found["s"]).all()


def test_a_long_runs_figures_are_those_of_all_its_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = ad_hoc.experiment("dumbbell", ad_hoc.Options(("als:2", "tcp-sack:1"), bottleneck="2mbit"), 40.0, 1)
    outcome = virtual_fabric.run(experiment, virtual_fabric.Options(targets.compiler()), tmp_path, Silent())
    found = []
    for long_s in (3000.0, 10.0):
        monkeypatch.setattr(model, "LONG_S", long_s)
        recorded = series.load(tmp_path, experiment, outcome.timing)
        found.append((recorded, metrics.compute(recorded), series.tables(recorded, shares.ShareTable(recorded))))
    (every, all_figures, all_tables), (thin, figures, tables) = found
    key = experiment.bottleneck
    assert len(thin.links[key].transmitted_bytes.times_s) < len(every.links[key].transmitted_bytes.times_s) / 3
    for a, b in zip(all_figures.links, figures.links):
        assert b.utilisation == pytest.approx(a.utilisation, rel=1e-3, abs=1e-6) and b.drops == pytest.approx(a.drops, abs=1)
    assert repr(figures.flows) == repr(all_figures.flows)  # nan, too, is the same there
    assert len(tables["links"]["time_s"]) == len(all_tables["links"]["time_s"]) / 4
    for a, b in zip(every.flows, thin.flows):
        assert len(b.goodput.times_s) < 0.4 * len(a.goodput.times_s)
        for sums in ("delay", "sent", "received"):
            ends = [getattr(record, sums).values[-1:].tolist() for record in (a, b)]
            assert ends[0] == ends[1]
    # Sums between the records that are left are straight lines.
    bits = [pd.DataFrame(table["flows"]).groupby("flow")["goodput_bps"].sum().to_numpy() for table in (tables, all_tables)]
    assert bits[0] == pytest.approx(bits[1], rel=1e-3)


_DRAW = """
import resource
import numpy as np
from fairlane.results import plots
picture = plots.Figure(figsize=(9, 5), dpi=110)
axes = picture.subplots()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
axes.plot(np.random.default_rng(1).uniform(0, 250, 200_000))
picture.savefig("line.png")
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3)
"""


def test_a_line_of_many_points_is_drawn_in_little_memory(tmp_path: Path) -> None:
    """The queue of 20,000 s in one piece takes 360 MB."""
    done = subprocess.run([sys.executable, "-c", _DRAW], cwd=tmp_path, env=_PYTHON, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 100, done.stdout
