"""Sweeps: one experiment file that describes many runs.

    seeds = [1, 2, 3, 4, 5]

    [sweep]                             # the axes; a run for each combination and seed
    n = [1, 2, 4, 8, 16, 32]
    delay_s = [0.02, 0.08]

    [let]                               # computed values, in order
    rate_bps = "= 2 * n * 40_000"

    [quick]                             # the values for a quick pass
    seeds = [1, 2]
    n = [1, 8, 32]

    [topology.bottleneck]
    rate_bps = "= rate_bps"

Every string that begins with "=" is computed for each point (`fairlane.experiments.expressions`).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairlane.experiments import expressions
from fairlane.experiments.expressions import Value
from fairlane.inputs import schema
from fairlane.inputs.located_toml import ConfigError, Document, KeyPath, fault_of

MININET = "mininet"
"""The key of an experiment file that `fairlane.experiments.fabrics` reads."""
KEYS = ("seeds", "sweep", "let", "quick", MININET)
"""Of an experiment file, of no use in a single run."""
REPORT_KEYS = ("measure", "curves", "figures", "compare", "keep", "expect", "ledger", "suite")
"""Of an experiment file, what is measured, drawn, kept and expected of its runs: read by `fairlane.studies.read`, `fairlane.paper.read_row` and `fairlane.suites.cases`."""
MOST_POINTS = 100_000


@dataclass(frozen=True)
class Point:
    """One run of a sweep. axes: the value of each axis, in the file's order. names: these and the values of [let]. document: the
    experiment with every expression worked out, without the sweep's own keys."""

    axes: tuple[tuple[str, Value], ...]
    seed: int
    names: tuple[tuple[str, Value], ...]
    document: Document

    @property
    def name(self) -> str:
        """For messages: "n=4 delay_s=0.02 seed=1"."""
        return " ".join(f"{k}={v}" for k, v in (*self.axes, ("seed", self.seed)))


@dataclass(frozen=True)
class Sweep:
    """axes: name -> values; without any there is one point for each seed."""

    axes: dict[str, tuple[Value, ...]]
    seeds: tuple[int, ...]
    points: tuple[Point, ...]


def is_several(document: Document) -> bool:
    """Whether more than one run is meant, apart from seeds."""
    return any(len(choices) > 1 for choices in document.values.get("sweep", {}).values())


def plain(document: Document, at: Sequence[str] = ()) -> Document:
    """A single experiment: the first point of a file with several, without the keys of sweeps and their report. at: as in
    `narrowed`."""
    document = narrowed(without(document, REPORT_KEYS), at)
    return expand(document).points[0].document if any(key in document.values for key in KEYS) else document


def narrowed(document: Document, at: Sequence[str]) -> Document:
    """A document whose sweep keeps one value of some axes, each given as "AXIS=VALUE". ConfigError for what it does not have."""
    axes = axes_of(document)
    kept: dict[str, Any] = {name: list(choices) for name, choices in axes.items()}
    for text in at:
        name, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"--at {text}: write AXIS=VALUE, such as n=8")
        if name not in axes:
            raise ConfigError(f"--at {text}: {document.name} has no axis {name!r}{schema.nearest(name, axes) if axes else ''}")
        found = [choice for choice in axes[name] if _means(value, choice)]
        if not found:
            raise ConfigError(f"--at {text}: {name} has the values {', '.join(map(str, axes[name]))}")
        kept[name] = found
    return Document(document.name, {**document.values, "sweep": kept}, document.places) if at else document


def _means(text: str, choice: Value) -> bool:
    if isinstance(choice, (str, bool)):
        return text == str(choice)
    try:
        return float(text) == float(choice)
    except ValueError:
        return False


def without(document: Document, keys: tuple[str, ...]) -> Document:
    """A document without some of its keys."""
    return Document(document.name, {k: v for k, v in document.values.items() if k not in keys}, document.places)


def expand(document: Document, quick: bool = False) -> Sweep:
    """All points of an experiment file. ConfigError names file, line and key."""
    values = document.values
    axes = axes_of(document)
    seeds = _seeds(document, ("seeds",)) if "seeds" in values else (values.get("seed", 1),)
    of_quick = _quick(document, axes, seeds)
    if quick:
        axes, seeds = of_quick
    size = len(seeds)
    for choices in axes.values():
        size *= len(choices)
    if size > MOST_POINTS:
        raise document.error(("sweep",), f"{size} runs; at most {MOST_POINTS}")
    common = {key: value for key, value in values.items() if key not in KEYS and not _has_expression(value)}
    points = []
    for combination in itertools.product(*axes.values()):
        names = _names(document, dict(zip(axes, combination)))
        for seed in seeds:
            points.append(Point(tuple(zip(axes, combination)), seed, tuple(names.items()), _at_point(document, common, names, seed)))
    return Sweep(axes, seeds, tuple(points))


def axes_of(document: Document) -> dict[str, tuple[Value, ...]]:
    """The axes of a file's sweep with their values; ConfigError for what cannot be one."""
    table = document.values.get("sweep", {})
    if not isinstance(table, dict):
        raise document.error(("sweep",), "expected a table of axes")
    return {name: _choices(document, ("sweep", name), given) for name, given in table.items()}


def _choices(document: Document, path: KeyPath, given: Any) -> tuple[Value, ...]:
    if not isinstance(given, list) or not given:
        raise document.error(path, "expected an array of values")
    for i, value in enumerate(given):
        if not isinstance(value, (int, float, str, bool)):
            raise document.error((*path, i), "expected a number, a string, or true or false")
        if value in given[:i]:
            raise document.error((*path, i), f"{value!r} is here twice")
    return tuple(given)


def _seeds(document: Document, path: KeyPath) -> tuple[int, ...]:
    given: Any = document.values
    for part in path:
        given = given[part]
    if not isinstance(given, list) or not given:
        raise document.error(path, "expected an array of seeds")
    for i, seed in enumerate(given):
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
            raise document.error((*path, i), f"a seed must be a whole number from 0 to 2^32 - 1, got {seed!r}")
        if seed in given[:i]:
            raise document.error((*path, i), f"seed {seed} is here twice")
    return tuple(given)


def _quick(
    document: Document, axes: dict[str, tuple[Value, ...]], seeds: tuple[int, ...]
) -> tuple[dict[str, tuple[Value, ...]], tuple[int, ...]]:
    table = document.values.get("quick", {})
    if not isinstance(table, dict):
        raise document.error(("quick",), "expected a table")
    axes = dict(axes)
    for name, given in table.items():
        if name == "seeds":
            seeds = _seeds(document, ("quick", "seeds"))
        elif name == "duration_s":
            continue
        elif name in axes:
            axes[name] = _choices(document, ("quick", name), given)
        else:
            raise document.error(("quick", name), f"unknown key{schema.nearest(name, [*axes, 'seeds', 'duration_s'])}")
    return axes, seeds


def _names(document: Document, axes: Mapping[str, Value]) -> dict[str, Value]:
    names: dict[str, Value] = dict(axes)
    table = document.values.get("let", {})
    if not isinstance(table, dict):
        raise document.error(("let",), "expected a table of values")
    for name, given in table.items():
        path = ("let", name)
        if name in axes:
            raise document.error(path, "an axis of the sweep has this name")
        names[name] = _worked_out(document, path, given, names) if expressions.is_expression(given) else given
    return names


def _has_expression(value: Any) -> bool:
    if isinstance(value, (dict, list)):
        return any(map(_has_expression, value.values() if isinstance(value, dict) else value))
    return expressions.is_expression(value)


def _at_point(document: Document, common: Mapping[str, Any], names: Mapping[str, Value], seed: int) -> Document:
    """common: the values that all points share, which are not read again for each."""
    values = {key: value for key, value in document.values.items() if key not in KEYS}
    worked = {key: common[key] if key in common else _resolved(document, (key,), value, names) for key, value in values.items()}
    worked["seed"] = seed
    return Document(document.name, worked, document.places)


def _resolved(document: Document, path: KeyPath, value: Any, names: Mapping[str, Value]) -> Any:
    if isinstance(value, dict):
        return {key: _resolved(document, (*path, key), inner, names) for key, inner in value.items()}
    if isinstance(value, list):
        return [_resolved(document, (*path, i), inner, names) for i, inner in enumerate(value)]
    return _worked_out(document, path, value, names) if expressions.is_expression(value) else value


def _worked_out(document: Document, path: KeyPath, text: str, names: Mapping[str, Value]) -> Value:
    try:
        value = expressions.evaluate(text, names)
    except ValueError as error:
        raise document.error(path, str(error)) from error
    if (fault := fault_of(value)) is not None:
        raise document.error(path, f"{text}: {fault}")
    return value


def point_key(axes: tuple[tuple[str, Value], ...], seed: int) -> str:
    """A file name for a point: the axes as JSON would write them, readable and unique."""
    parts = [f"{name}={json.dumps(value)}".replace('"', "").replace("/", "_") for name, value in axes]
    return "_".join([*parts, f"seed={seed}"]).replace(" ", "-")


def matching(points: Mapping[tuple[tuple[str, Value], ...], Any], where: Mapping[str, Any]) -> Iterator[tuple[tuple[str, Value], ...]]:
    """The axis values that a `where` table picks: each key equal to a value, or one of an array of values."""
    for axes in points:
        given = dict(axes)
        if all(given.get(k) in (v if isinstance(v, list | tuple) else (v,)) for k, v in where.items()):
            yield axes
