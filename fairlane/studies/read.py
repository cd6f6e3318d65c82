"""Reads a study from its experiment's file, and refuses impossible measures, figures and comparisons."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlane import user_files
from fairlane.errors import Refusal
from fairlane.experiments import expressions, loader, sweep
from fairlane.experiments.expressions import Value
from fairlane.experiments.model import Control, Settings
from fairlane.fabrics.packets import PacketRecord
from fairlane.inputs import schema
from fairlane.inputs.located_toml import Document, KeyPath
from fairlane.schemes import registry
from fairlane.studies import defaults, measures, programs, settling, units
from fairlane.studies.study import NO_FILES, Comparison, Curve, Figure, Keep, OwnFiles, Study

Axes = Mapping[str, Sequence[Value]]
KEYS = ("measure", "curves", "figures", "compare", "keep")
"""What a study reads of a file, beside the keys of sweeps and of experiments."""


@dataclass(frozen=True)
class Tables:
    """The keys of `KEYS`, for their types."""

    curves: tuple[Curve, ...] = ()
    figures: tuple[Figure, ...] = ()
    compare: tuple[Comparison, ...] = ()
    measure: dict[str, Any] = field(default_factory=dict)
    keep: Keep | None = None


def own_files(
    algorithms: Sequence[str | Path] = (),
    programs: Sequence[str | Path] = (),
    schemes: Sequence[str | Path] = (),
    control: str | Path | None = None,
) -> OwnFiles:
    """The user's own files, read; their flow kinds and schemes are known from now on. Refusal names the file at fault."""
    user_files.check_environment()
    for path in algorithms:
        user_files.use_algorithm(path)
    of_schemes: list[tuple[str, str]] = []
    for path in schemes:
        name = user_files.use_scheme(path)
        of_schemes += [(f"{name}/{file}", text) for file, text in user_files.scheme_files(registry.SCHEMES[name]).items()]
    return OwnFiles(
        _texts("--algorithm", algorithms),
        _texts("--program", programs),
        tuple(of_schemes),
        tuple(str(Path(path).absolute()) for path in programs),
        "" if control is None else str(user_files.checked_control(Path(control)).absolute()),
    )


def _texts(option: str, paths: Sequence[str | Path]) -> tuple[tuple[str, str], ...]:
    try:
        return tuple((Path(path).name, Path(path).read_text(encoding="utf-8")) for path in paths)
    except (OSError, UnicodeDecodeError) as error:
        raise Refusal(f"{option}: {error}") from error


def load(
    path: Path, at: Sequence[str] = (), seeds: Sequence[int] = (), duration_s: float | None = None, files: OwnFiles = NO_FILES
) -> Study:
    """A study from its file. at: "AXIS=VALUE", the kept value of an axis. seeds, duration_s: in place of the file's. ConfigError names file,
    line and key; Refusal: a P4 file that replaces none."""
    document = loader.read(path)
    loader.check_mininet(document, path.stem)
    return from_document(sweep.narrowed(document, at), path.stem, seeds, duration_s, files, sweep.axes_of(document))


def from_document(
    document: Document,
    name: str,
    seeds: Sequence[int] = (),
    duration_s: float | None = None,
    files: OwnFiles = NO_FILES,
    whole: Axes | None = None,
) -> Study:
    """The same, of what was read. name: the study's id. whole: the axes of the file, where the document has only some of their values."""
    changed: dict[str, Any] = {"seeds": list(seeds)} if seeds else {}
    if duration_s is not None:
        changed["duration_s"] = loader.check_duration(duration_s)
    document, files = _with_options(Document(document.name, {**document.values, **changed}, document.places), files)
    tables = schema.build(Tables, Document(document.name, {k: v for k, v in document.values.items() if k in KEYS}, document.places))
    expanded, settings, groups = runs(document, name)
    if files.programs:
        user_files.check_replaced(settings.control.program, [name for name, _ in files.programs])
    measured = measures.with_names(tables.measure or defaults.measures(groups), groups)
    figures = tables.figures or defaults.figures(measured, expanded.axes)
    check(document, measured, tables.curves, figures, tables.compare, expanded, groups)
    compared, left_out = comparisons(document, tables.compare, expanded, whole or expanded.axes)
    _check_kept(document, tables.keep, expanded, name)
    return Study(
        name,
        settings.title,
        expanded,
        measured,
        tables.curves,
        figures,
        compared,
        document,
        files=files,
        left_out=left_out,
        keep=tables.keep,
    )


def _check_kept(document: Document, keep: Keep | None, expanded: sweep.Sweep, name: str) -> None:
    """ConfigError for a link or a seed that no run has, and for Parquet without pyarrow."""
    if keep is None:
        return
    for i, seed in enumerate(keep.seeds):
        one_of(document, ("keep", "seeds", i), str(seed), {str(known) for known in expanded.seeds}, "seed of this study:")
    if keep.packets is None:
        return
    topologies = {point.axes: point for point in expanded.points if point.seed == expanded.seeds[0]}
    for point in topologies.values():
        try:
            PacketRecord(Path(keep.packets), keep.links).check(loader.from_document(point.document, name).topology)
        except Refusal as error:
            key = "links" if "--packets-of" in str(error) else "files"
            raise document.error(("keep", key), str(error).partition(": ")[2]) from error


def _with_options(document: Document, files: OwnFiles) -> tuple[Document, OwnFiles]:
    """The document with the whole program and the control plane that options give, and the files without that program."""
    control = document.values.get("control", {})
    named = control.get(loader.PROGRAM, Control.program) if isinstance(control, dict) else ""
    whole = user_files.whole_of([Path(path) for path in files.program_paths], Path(named).name if isinstance(named, str) else "")
    given = {loader.PROGRAM: str(whole or ""), loader.PLANE: files.control}
    if not any(given.values()) or not isinstance(control, dict):
        return document, files
    if whole is not None:
        files = dataclasses.replace(files, programs=tuple(one for one in files.programs if one[0] != whole.name))
    return programs.named(document, {key: path for key, path in given.items() if path}), files


def runs(document: Document, name: str, quick: bool = False) -> tuple[sweep.Sweep, Settings, tuple[str, ...]]:
    """All runs of a file, the settings of the first, and the names of its groups of flows. Each point's experiment is loaded, so that no
    error comes half way."""
    expanded = sweep.expand(sweep.without(document, sweep.REPORT_KEYS), quick)
    settings: Settings | None = None
    groups: dict[str, None] = {}
    for point in expanded.points:
        if point.seed != expanded.seeds[0]:
            continue  # a seed decides nothing that could be refused
        experiment = loader.from_document(point.document, name)
        settings = settings or experiment.settings
        groups |= dict.fromkeys(experiment.settings.groups)
    assert settings is not None
    return expanded, settings, tuple(groups)


def check(
    document: Document,
    measured: Mapping[str, Any],
    curves: Sequence[Curve],
    figures: Sequence[Figure],
    compared: Sequence[Comparison],
    expanded: sweep.Sweep,
    groups: Collection[str],
) -> None:
    """ConfigError for a measure, figure or comparison of something that does not exist."""
    values = set(dict(expanded.points[0].names))
    owners = {measures.name_of(group): group for group in groups} | {name: name for name in ("bottleneck", "all", "run")}
    for name, text in measured.items():
        _check_measure(document, name, text, owners, values)
        if name in expanded.axes:
            raise document.error(("measure", name), "an axis of the sweep has this name")
        if (column := units.column(name, text)) in {*expanded.axes, *measured} - {name}:
            owner = "an axis of the sweep" if column in expanded.axes else "another measure"
            raise document.error(("measure", name), f"its column in tables is {column}, which {owner} has: give it another name")
    axes, known = set(expanded.axes), set(measured)
    for i, figure in enumerate(figures):
        for name in figure.curves:
            one_of(document, ("figures", i, "curves"), name, {c.name for c in curves}, "curve")
        if figure.y:
            one_of(document, ("figures", i, "y"), figure.y, known, "measure")
            one_of(document, ("figures", i, "x"), figure.x, axes | known, "axis or measure")
        if figure.series:
            one_of(document, ("figures", i, "series"), figure.series, axes, "axis")
    for i, comparison in enumerate(compared):
        one_of(document, ("compare", i, "measure"), comparison.measure, known, "measure")
        for key in ("of", "to", "where"):
            for axis in getattr(comparison, key):
                one_of(document, ("compare", i, key), axis, axes, "axis")


def comparisons(
    document: Document, compared: Sequence[Comparison], expanded: sweep.Sweep, whole: Axes
) -> tuple[tuple[Comparison, ...], tuple[str, ...]]:
    """The comparisons that the chosen points allow, and a sentence for each other one. ConfigError for one that no point of the whole file allows."""
    points = dict.fromkeys(p.axes for p in expanded.points)
    of_file = dict.fromkeys(tuple(zip(whole, values)) for values in itertools.product(*whole.values()))
    kept, left_out = [], []
    for i, comparison in enumerate(compared):
        sides = {key: {**comparison.where, **getattr(comparison, key)} for key in ("of", "to", "where")}
        lacking = [key for key, picked in sides.items() if not any(True for _ in sweep.matching(points, picked))]
        for key in lacking:
            if not any(True for _ in sweep.matching(of_file, sides[key])):
                raise document.error(("compare", i, key), f"picks no point of the sweep: {_shown(sides[key])}")
        if lacking:
            left_out.append(
                f"The comparison of {comparison.measure}, {_shown(comparison.of)} with {_shown(comparison.to)}, is left out: "
                f"no chosen point has {_shown(sides[lacking[0]])}."
            )
        else:
            kept.append(comparison)
    return tuple(kept), tuple(left_out)


def _shown(picked: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in picked.items())


def _check_measure(document: Document, name: str, text: Any, owners: Mapping[str, str], values: set[str]) -> None:
    """owners: groups of flows and all else that has figures, as the file writes them, by their names in expressions."""
    path = ("measure", name)
    if not expressions.is_expression(text):
        raise document.error(path, 'expected an expression such as "= rap.mean_bps / tcp.mean_bps"')
    try:
        used = expressions.names_in(text)
    except ValueError as error:
        said = str(error)
        for unusual in sorted(owners, key=len, reverse=True):  # one may begin as another
            said = said.replace(unusual, owners[unusual])
        raise document.error(path, said) from error
    for whole in sorted(used):
        owner, dot, attribute = whole.partition(".")
        if not dot:
            one_of(document, path, owner, values, "axis or value of [let]")
            continue
        one_of(document, path, owners.get(owner, owner), set(owners.values()), "group of flows")
        known = {"bottleneck": measures.OF_BOTTLENECK, "run": (*loader.METRICS, *settling.OF_RUN)}.get(owner, measures.OF_FLOWS)
        one_of(document, path, attribute, set(known), "figure")


def one_of(document: Document, path: KeyPath, given: str, known: Collection[str], what: str) -> None:
    """ConfigError, with the nearest name, for one that is not known."""
    if given not in known:
        raise document.error(path, f"no {what} {given!r}{schema.nearest(given, sorted(known))}")
