"""The page's Python: replacements for the compiler's process and the console, because a page has neither network nor processes.

Runs in Pyodide, after `fairlane` and its packages have been unpacked; `run` is what the worker calls. The page starts from the memory of a Python
that has imported this module, so nothing here may import `fairlane.native` before `begin`.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import io
import json
import os
import re
import shutil
import sys
import traceback
import types
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any


def without_native() -> types.ModuleType:
    """An empty module in place of the compiled core, which the memory of a Python cannot hold: `begin` fills it."""
    return sys.modules.setdefault("fairlane.native", types.ModuleType("fairlane.native"))


native: Any = without_native()

from fairlane import probes, user_files  # noqa: E402
from fairlane.errors import Refusal, RunFailed  # noqa: E402
from fairlane.experiments import loader  # noqa: E402
from fairlane.experiments.model import Experiment  # noqa: E402
from fairlane.fabrics import targets, virtual_fabric  # noqa: E402
from fairlane.fabrics.progress import Silent  # noqa: E402
from fairlane.hosts import algorithms  # noqa: E402
from fairlane.inputs.located_toml import ConfigError  # noqa: E402
from fairlane.labs.grading import Answer, Check, labs, runner  # noqa: E402

RUN = Path("/home/pyodide/run")
"""Where a run's raw records are, until the next one."""
COMPILED = Path("/home/pyodide/compiled")
GRADED = Path("/home/pyodide/graded")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_EXIT = re.compile(r"exit(?:_code|\s+code|\()[ :=]*(\d+)", re.IGNORECASE)
SHOW_EVERY_S = 0.5
"""Virtual seconds between two points of the page's curves."""


def begin() -> None:
    """Load the compiled core. Modules that have imported the empty one see it, too."""
    del sys.modules["fairlane.native"]
    vars(native).update(vars(importlib.import_module("fairlane.native")))


class Shown:
    """Drives a run and tells `tell` of it, a point at a time."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell

    def drive(self, active: virtual_fabric.ActiveRun, _: Any) -> list[dict[str, Any]]:
        step_ns = round(SHOW_EVERY_S * virtual_fabric.NS)
        while active.network.now_ns < active.end_ns:
            active.network.run_until(min(active.network.now_ns + step_ns, active.end_ns))
            active.records.drain()
            now = active.snapshot()
            point = {
                "at_s": now.elapsed_s,
                "of_s": now.duration_s,
                "rates_bps": dict(now.rates_bps),
                "connections": now.connections,
                "fair_rate_bps": now.fair_rate_bps,
                "queue_packets": now.queue_packets,
            }
            self._tell(json.dumps(point))
        return []


def _experiment(request: Mapping[str, Any]) -> Experiment:
    """Of a name that Fairlane knows, or of a text that stands in its place."""
    name = request["experiment"]
    if "text" in request:
        # Beside the others, from which it may inherit.
        folder = RUN / "experiments"
        shutil.copytree(loader.FOLDER, folder, ignore=lambda _, names: [n for n in names if not n.endswith(".toml")])
        path = folder / f"{name}.toml"
        path.write_text(request["text"])
    else:
        path = loader.find(name)
    return loader.load(path, request.get("duration_s"), request.get("seed"))


def run(request_json: str, tell: Callable[[str], None]) -> str:
    """A run to its end. request_json: `experiment`, and `text`, `duration_s`, `seed`, `programs` (P4 files by name) where they are not the experiment's
    own, `algorithms` (Python files by name). tell: takes a JSON text for each point of the curves. The answer is JSON: `records` by name with
    their lengths in bytes, or `error` with the sentence that a command line would print."""
    request = json.loads(request_json)
    shutil.rmtree(RUN, ignore_errors=True)
    raw = RUN / "raw"
    raw.mkdir(parents=True)
    kinds = dict(algorithms.ALGORITHMS)
    try:
        for name, text in (request.get("algorithms") or {}).items():
            (RUN / name).write_text(text)
            user_files.use_algorithm(RUN / name)
        chosen = _experiment(request)
        beside = user_files.replaceable(probes.PACKAGE / "p4src" / "als.p4")
        programs = []
        for name, text in (request.get("programs") or {}).items():
            if name in beside:
                programs.append(RUN / name)
                programs[-1].write_text(text)
        chosen = user_files.with_programs(chosen, programs)
        virtual_fabric.run(chosen, virtual_fabric.Options(targets.compiler(), live=Shown(tell)), raw, Silent())
    except (ConfigError, Refusal, RunFailed) as error:
        return json.dumps({"error": str(error).replace(f"{RUN}/experiments/", "").replace(f"{RUN}/", "")})
    except Exception as error:
        lines = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in lines if Path(frame.filename).parent == RUN]
        if not own:
            raise
        place = f"{Path(own[-1].filename).name}:{own[-1].lineno}: in {own[-1].name}: {own[-1].line}"
        return json.dumps({"error": f"{place}\n{type(error).__name__}: {error}"})
    finally:
        algorithms.ALGORITHMS.clear()
        algorithms.ALGORITHMS.update(kinds)
    return json.dumps({"records": {path.name: path.stat().st_size for path in sorted(raw.iterdir())}})


def records() -> bytes:
    """The last run's files as a zip archive."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted((RUN / "raw").iterdir()):
            archive.write(path, f"raw/{path.name}")
    return whole.getvalue()


def compiled(name: str, text: str) -> str:
    """A P4 program's messages: JSON with `ok` and `said`. A file that others include is compiled within `als.p4`."""
    shutil.rmtree(COMPILED, ignore_errors=True)
    COMPILED.mkdir(parents=True)
    own = COMPILED / name
    own.write_text(text)
    whole = own
    als = probes.PACKAGE / "p4src" / "als.p4"
    places = user_files.replaceable(als)
    if name in places:
        whole = user_files.assemble(als, [own], COMPILED / "p4src")
    program, _, said = native.compile(whole, include=[whole.parent], define=[])
    for folder in (f"{COMPILED}/p4src/", f"{COMPILED}/", *(f"{place.parent}/" for place in places.values() if len(place.parts) > 1)):
        said = said.replace(folder, "")
    return json.dumps({"ok": program is not None, "said": _COLOURS.sub("", said).strip()})


def _check(request: Mapping[str, Any]) -> tuple[Check, Answer, runner.Grading]:
    """A check of a lab, the answer in its folder, and the grading so far."""
    number = request["lab"]
    # The grader's own state, such as its random numbers, is as at the start of a process.
    for name in [name for name in sys.modules if name.startswith(f"fairlane.labs.{number}")]:
        del sys.modules[name]
    check = labs.load(number).checks[request["index"]]
    folder, scratch = GRADED / number, GRADED / "scratch"
    if request["index"] == 0 or not scratch.is_dir():
        os.chdir(GRADED.parent)
        shutil.rmtree(GRADED, ignore_errors=True)
        scratch.mkdir(parents=True)
        folder.mkdir()
        for name, text in request["files"].items():
            (folder / name).write_text(text)
        answer = Answer(folder, scratch)
        for score in map(_score, request["before"]):
            if score.points >= score.of:
                answer.remember(score)
    os.chdir(folder)
    answer = Answer(folder, scratch)
    return check, answer, runner.Grading(answer, request["looped"])


def _score(told: Mapping[str, Any]) -> runner.Score:
    return runner.Score(**told)


def graded(request_json: str) -> str:
    """A check of a lab. request_json: `lab`, `files` by name, `index` of the check, `before`: the scores of those before it, `looped`: whether one of
    them met a loop without end. The answer is JSON: `score`, `looped`, and `shown`: all scores with nothing said twice."""
    request = json.loads(request_json)
    check, _, grading = _check(request)
    score = grading.score(check)
    return _told(request, score, grading.looped)


def not_graded(request_json: str, how: str) -> str:
    """The same for a check that ended its worker. how: "late", or what ended it."""
    request = json.loads(request_json)
    check, _, grading = _check(request)
    if how == "late":
        return _told(request, runner.endless(check, runner.SLOWER * grading.limit_s(check)), True)
    code = _EXIT.search(how)
    return _told(request, runner.ended(check, int(code[1]) if code else 1), request["looped"])


def _told(request: Mapping[str, Any], score: runner.Score, looped: bool) -> str:
    shown = runner.said_once([*map(_score, request["before"]), score])
    return json.dumps({"score": asdict(score), "looped": looped, "shown": [asdict(one) for one in shown]})
