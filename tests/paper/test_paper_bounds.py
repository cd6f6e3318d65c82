"""Between which values a measure can lie, and expectations that nothing can meet or miss."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.experiments import expressions, loader
from fairlane.inputs.located_toml import ConfigError
from fairlane.paper import bounds, read_row

NAMES = ("a.x", "b.x", "c.x")
ENDS = st.floats(-1e6, 1e6) | st.integers(-3, 3).map(float)


def intervals() -> st.SearchStrategy[dict[str, bounds.Interval]]:
    pair = st.tuples(ENDS, ENDS).map(lambda p: (min(p), max(p)))
    return st.fixed_dictionaries(dict.fromkeys(NAMES, pair))


def texts() -> st.SearchStrategy[str]:
    leaves = st.sampled_from([*NAMES, "2", "0.5", "n"])
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["+", "-", "*", "/"]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
            st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(lambda t: f"{t[0]}({t[1]}, {t[2]})"),
            st.tuples(st.sampled_from(["round", "floor", "ceil"]), inner).map(lambda t: f"{t[0]}({t[1]})"),
            st.tuples(inner, inner, inner, inner).map(lambda t: f"({t[0]} if {t[1]} < {t[2]} else {t[3]})"),
            inner.map(lambda t: f"(-{t})"),
        ),
        max_leaves=8,
    )


@given(texts(), intervals(), st.data())
def test_no_value_lies_outside_its_interval(text: str, names: dict[str, bounds.Interval], data: st.DataObject) -> None:
    chosen = {name: data.draw(st.floats(low, high), name) for name, (low, high) in names.items()}
    low, high = bounds.evaluate(text, {**names, "n": 7})
    try:
        value = float(expressions.evaluate(text, {**chosen, "n": 7}))
    except ValueError:
        return  # a division by zero: no value
    slack = 1e-6 * max(1.0, abs(value))
    assert low - slack <= value <= high + slack


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("= als.loss", (0.0, 1.0)),
        ("= 1 - als.loss", (0.0, 1.0)),
        ("= 100 * als.loss", (0.0, 100.0)),
        ("= tcp.mean_bps / als.mean_bps", bounds.COUNT),
        ("= tcp.mean_bps - als.mean_bps", bounds.ANY),
        ("= n * min(als.jain, 0.5)", (0.0, 4.0)),
        ("= 1 + run.als_mean_loss_fraction", (1.0, 2.0)),
    ],
)
def test_intervals_of_measures(text: str, expected: bounds.Interval) -> None:
    assert bounds.of_measure(text, {"n": 8}) == expected


def changed(folder: Path, expect: str) -> Path:
    """als-3 with one expectation of its own."""
    text = (loader.FOLDER / "als-3.toml").read_text()
    path = folder / "own.toml"
    path.write_text(text[: text.index("[[expect]]")] + f'[[expect]]\nname = "own"\n{expect}\n')
    (folder / "_rate_feedback.toml").write_text((loader.FOLDER / "_rate_feedback.toml").read_text())
    return path


@pytest.mark.parametrize(
    ("expect", "key", "message"),
    [
        ('measure = "als_loss"\nlow = 1.2', "low", "can never hold: als_loss lies between 0 and 1, so that low = 1.2 is out of reach"),
        ('measure = "als_loss"\nhigh = 2', "high", "can never fail: als_loss lies between 0 and 1 in every run"),
        ('measure = "als_loss"\nlow = 0', "low", "can never fail"),
        ('measure = "tcp_to_als"\nhigh = -0.5', "high", "can never hold: tcp_to_als lies at 0 or above"),
    ],
)
def test_what_no_result_can_meet_or_miss_is_refused(tmp_path: Path, expect: str, key: str, message: str) -> None:
    path = changed(tmp_path, expect)
    lines = path.read_text().splitlines()
    line = next(i for i, text in enumerate(lines, 1) if text.startswith(key) and i > lines.index("[[expect]]"))
    with pytest.raises(ConfigError) as error:
        read_row.load(path)
    assert f"own.toml:{line}: expect[0].{key}: {message}" in str(error.value)


def test_points_that_no_sweep_has_are_refused(tmp_path: Path) -> None:
    path = changed(tmp_path, 'measure = "als_loss"\nwhere = { n = 3 }\nhigh = 0.1\n\n[sweep]\nn = [1, 2]')
    with pytest.raises(ConfigError, match="where.n: can never hold: 'n' is never 3; it has 1, 2"):
        read_row.load(path)


def test_an_inherited_expectation_that_picks_no_point_is_refused(tmp_path: Path) -> None:
    """n = 3 is a value of the inherited [quick] alone, which a full pass does not have."""
    path = changed(tmp_path, 'measure = "als_loss"\nwhere = { n = 3 }\nhigh = 0.1\n\n[sweep]\nn = [1, 3]\n\n[quick]\nn = [3]')
    path.write_text(path.read_text().replace("[quick]\nseeds = [1, 2]\n", "", 1))
    heir = tmp_path / "heir.toml"
    heir.write_text('inherits = "own"\ntitle = "heir"\n\n[sweep]\nn = [1, 2]\n')
    line = path.read_text().splitlines().index("where = { n = 3 }") + 1
    with pytest.raises(ConfigError) as error:
        read_row.load(heir)
    assert f"own.toml:{line}: expect[0].where: can never hold: it picks no point" in str(error.value)


def test_a_trend_over_one_value_is_refused(tmp_path: Path) -> None:
    path = changed(tmp_path, 'measure = "als_loss"\nwhere = { n = 2 }\nover = "n"\ntrend = "falling"\n\n[sweep]\nn = [1, 2]')
    with pytest.raises(ConfigError, match=r"expect\[0\].over: can never hold: a trend needs two values of 'n'"):
        read_row.load(path)


def test_checks_of_a_single_run_are_held_to_the_same(tmp_path: Path) -> None:
    path = changed(tmp_path, 'measure = "als_loss"\nhigh = 0.02')
    path.write_text(path.read_text().replace("low = 0.85", "low = -1", 1).replace("high = 1.01", "", 1))
    with pytest.raises(ConfigError, match=r"checks\[2\].low: can never fail"):
        read_row.load(path)
