"""The page's Python: what stands for gRPC, for the compiler's process and for the console where there is neither network nor process.

Runs in Pyodide, after `fairlane` and its packages have been unpacked; `run` is what the worker calls.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import io
import json
import shutil
import sys
import types
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def without_grpc() -> None:
    """finsy's protobuf messages under their names, without the package itself, whose first line wants gRPC."""
    if importlib.util.find_spec("grpc") is not None or "finsy" in sys.modules:
        return
    found = importlib.machinery.PathFinder.find_spec("finsy")
    if found is None or found.submodule_search_locations is None:
        raise ImportError("finsy's messages are not in the page: run 'make web' again")
    root = Path(next(iter(found.submodule_search_locations)))
    for name, folder in (("finsy", root), ("finsy.proto", root / "proto")):
        module = types.ModuleType(name)
        module.__path__ = [str(folder)]
        sys.modules[name] = module
    proto = sys.modules["finsy.proto"]
    for name, messages in (("p4i", "p4.config.v1.p4info_pb2"), ("p4d", "p4.v1.p4data_pb2"), ("p4r", "p4.v1.p4runtime_pb2")):
        setattr(proto, name, importlib.import_module(f"finsy.proto.{messages}"))


without_grpc()

from fairlane import native, probes, user_files  # noqa: E402
from fairlane.errors import Refusal, RunFailed  # noqa: E402
from fairlane.experiments import loader  # noqa: E402
from fairlane.experiments.model import Experiment  # noqa: E402
from fairlane.fabrics import virtual_fabric  # noqa: E402
from fairlane.fabrics.progress import Silent  # noqa: E402

RUN = Path("/home/pyodide/run")
"""Where a run's raw records are, until the next one."""
SHOW_EVERY_S = 0.5
"""Virtual seconds between two points of the page's curves."""


@dataclass(frozen=True)
class PageCompiler:
    """As `targets.Toolchain` for a fabric in virtual time: the compiler is in the module."""

    def compile(self, source: Path, folder: Path, defines: tuple[str, ...] = ()) -> tuple[Path, Path]:
        json_path, p4info_path = folder / f"{source.stem}.json", folder / f"{source.stem}.p4info.txtpb"
        program, p4info, said = native.compile(source, include=[source.parent], define=list(defines))
        if program is None or p4info is None:
            raise Refusal(f"{source} does not compile:\n{said.strip()}")
        json_path.write_text(program)
        p4info_path.write_text(p4info)
        return json_path, p4info_path


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


def _experiment(request: Mapping[str, Any], folder: Path) -> Experiment:
    """Of a name that Fairlane knows, or of the text of a file."""
    path = folder / "experiment.toml"
    if "text" in request:
        path.write_text(request["text"])
    else:
        path = loader.find(request["experiment"])
    return loader.load(path, request.get("duration_s"), request.get("seed"))


def run(request_json: str, tell: Callable[[str], None]) -> str:
    """A run to its end. request_json: `experiment` or `text`, and `duration_s`, `seed`, `programs` (P4 programs by name) where they
    are not the experiment's own. tell: takes a JSON text for each point of the curves. The answer is JSON: `records` by name with
    their lengths in bytes, or `error` with the sentence that a command line would print."""
    request = json.loads(request_json)
    shutil.rmtree(RUN, ignore_errors=True)
    raw = RUN / "raw"
    raw.mkdir(parents=True)
    try:
        chosen = _experiment(request, RUN)
        programs = []
        for name, text in (request.get("programs") or {}).items():
            programs.append(RUN / name)
            programs[-1].write_text(text)
        chosen = user_files.with_programs(chosen, programs) if programs else chosen
        options = virtual_fabric.Options(PageCompiler(), live=Shown(tell))  # type: ignore[arg-type]
        virtual_fabric.run(chosen, options, raw, Silent())
    except (Refusal, RunFailed) as error:
        return json.dumps({"error": str(error)})
    return json.dumps({"records": {path.name: path.stat().st_size for path in sorted(raw.iterdir())}})


def records() -> bytes:
    """The last run's files as a zip archive."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted((RUN / "raw").iterdir()):
            archive.write(path, f"raw/{path.name}")
    return whole.getvalue()


def source(name: str) -> str:
    """The text of one of Fairlane's own files: an experiment by its name, a P4 program by its file's."""
    return (probes.source(f"p4src/{name}") if name.endswith(".p4") else loader.find(name)).read_text()


def check(name: str, text: str) -> str:
    """A P4 program's messages: JSON with `ok` and `said`."""
    RUN.mkdir(parents=True, exist_ok=True)
    path = RUN / Path(name).name
    path.write_text(text)
    program, _, said = native.compile(path, include=[path.parent], define=[])
    return json.dumps({"ok": program is not None, "said": said.strip()})
