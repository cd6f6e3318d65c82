"""Where numpy and pandas are not (a browser's page), a run is evaluated to the same numbers, to the last bit."""

from __future__ import annotations

import json
import math
import operator
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane import plain_arrays as plain
from fairlane import probes
from fairlane.fabrics import raw

NUMBERS = st.floats(-1e9, 1e9) | st.integers(-1000, 1000).map(float)
LISTS = st.lists(NUMBERS, max_size=12)
PAIRS = LISTS.flatmap(lambda a: st.tuples(st.just(a), st.lists(NUMBERS, min_size=len(a), max_size=len(a))))


def same(ours: object, theirs: object) -> None:
    a = ours.tolist() if isinstance(ours, plain.ndarray) else ours
    b = theirs.tolist() if hasattr(theirs, "tolist") else theirs
    assert repr(a) == repr(b)


@given(PAIRS, NUMBERS)
def test_arithmetic_and_comparison(pair: tuple[list[float], list[float]], number: float) -> None:
    (a, b), (x, y) = (tuple(map(lib.asarray, pair)) for lib in (plain, np))
    for do in (operator.add, operator.sub, operator.mul, operator.truediv, operator.lt, operator.le, operator.gt, operator.ge, operator.eq):
        with np.errstate(all="ignore"):
            same(do(a, b), do(x, y))
            same(do(a, number), do(x, number))
    same(number - a, number - x)
    same(8 * a + number, 8 * x + number)


@given(PAIRS, st.data())
def test_choosing(pair: tuple[list[float], list[float]], data: st.DataObject) -> None:
    (a, b), (x, y) = (tuple(map(lib.asarray, pair)) for lib in (plain, np))
    if not len(a):
        return
    same(a[a > b], x[x > y])
    same(a[(a > b) & ~(b < 0)], x[(x > y) & ~(y < 0)])
    rows = data.draw(st.lists(st.integers(0, len(a) - 1), min_size=1))
    same(a[plain.asarray(rows)], x[np.asarray(rows)])
    same(a[1:], x[1:])
    same(plain.where(a > b, a, -1.0), np.where(x > y, x, -1.0))
    # Of 0.0 and -0.0 numpy's answer depends on the processor.
    same(float(a.max()) + 0.0, float(x.max()) + 0.0)
    assert (a > b).any() == bool((x > y).any())


@given(LISTS)
def test_sums_and_differences(values: list[float]) -> None:
    same(plain.diff(values), np.diff(values))
    same(plain.cumsum(values), np.cumsum(values))
    same(plain.concatenate([values, [1.0]]), np.concatenate([values, [1.0]]))
    same(plain.isnan(plain.asarray([*values, math.nan])), np.isnan(np.asarray([*values, math.nan])))
    same(plain.searchsorted(sorted(values), values, side="right"), np.searchsorted(sorted(values), values, side="right"))


@given(st.lists(NUMBERS, min_size=1, max_size=9), st.lists(NUMBERS, min_size=9, max_size=9), LISTS)
def test_lines_between_points(xs: list[float], ys: list[float], at: list[float]) -> None:
    xs, ys = sorted(xs), ys[: len(xs)]
    at = [*at, *xs]
    same(
        plain.interp(plain.asarray(at), plain.asarray(xs), plain.asarray(ys), left=0.0),
        np.interp(at, xs, ys, left=0.0),
    )
    same(plain.interp(at[0], plain.asarray(xs), plain.asarray(ys)), float(np.interp(at[0], xs, ys)))


@pytest.mark.parametrize(("start", "stop", "step"), [(0.0, 60.0 + 1e-9, 0.1), (0.0, 20.0 + 1e-9, 1.0), (2.0, 60.0 + 1e-9, 0.15)])
def test_edges_of_bins(start: float, stop: float, step: float) -> None:
    same(plain.arange(start, stop, step), np.arange(start, stop, step))


_RUN = """
import json, sys
if sys.argv[1] == "plain":
    class Absent:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in ("numpy", "pandas", "matplotlib"):
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    sys.meta_path.insert(0, Absent())
    import importlib.util as util
    find = util.find_spec
    util.find_spec = lambda name, package=None: None if name == "pandas" else find(name, package)
from fairlane import api
from fairlane.results import series, shares
found = []
for result in (api.run("als-3", duration_s=30, seed=2), api.run("dumbbell", ["rap:2", "tcp-sack:1"], queue="red", duration_s=20)):
    tables = [{k: list(map(str, v)) for k, v in t.items()} for t in series.flow_columns(result.recorded, shares.ShareTable(result.recorded))]
    found.append([result.summary, tables])
assert ("numpy" in sys.modules) == (sys.argv[1] != "plain")
print(json.dumps(found, sort_keys=True))
"""


def test_a_run_without_numpy_and_pandas_has_the_same_figures(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(probes.ROOT)}
    found = []
    for how in ("plain", "numpy"):
        done = subprocess.run([sys.executable, "-c", _RUN, how], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    assert found[0] == found[1]


@given(
    st.lists(st.tuples(st.integers(1, 9), st.floats(0, 1e12), st.integers(0, 10**15)), max_size=5), st.sampled_from(["", "1,2", "9,cut o"])
)
def test_tables_are_read_as_by_pandas(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple], cut: str) -> None:
    path = tmp_path_factory.mktemp("table") / "s1.csv"
    path.write_text("\n".join(["port,unix_s,tx", *(",".join(map(repr, row)) for row in rows), cut]))
    read = []
    for pieces in (raw._plain_csv_pieces, raw._csv_pieces):
        read.append([{c: [float(v) for v in values] for c, values in piece.items()} for piece in pieces(path, lambda c: c != "unix_s")])
    if cut != "1,2":  # pandas fills a short row up, and leaves it out where a wanted column is missing: here it has none
        assert read[0] == read[1]
