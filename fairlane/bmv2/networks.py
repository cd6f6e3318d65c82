"""Networks of p4-utils, unchanged: p4-utils itself runs `network.py` and `p4app.json`, with Fairlane's switches, compiler and command line."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path

from fairlane import probes, python_child
from fairlane.bmv2 import environment
from fairlane.errors import CANNOT_RUN_HERE, Refusal

_KEYS = {"assignment_strategy", "switches", "links", "hosts"}
"""Of a `p4app.json`'s topology; a `topology.json` of the P4 tutorials has no key `topology`."""


def is_network(path: Path) -> bool:
    """A `network.py`, or a `p4app.json`. A file that cannot be read is neither."""
    if path.suffix == ".py":
        return True
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    topology = content.get("topology") if isinstance(content, dict) else None
    return isinstance(topology, dict) and bool(_KEYS & topology.keys())


def run(path: Path) -> None:
    """Become p4-utils with this network, in the file's folder. Raises Refusal before anything is started."""
    _check(path)
    network = [sys.executable, path.name] if path.suffix == ".py" else [*python_child.of_module("p4utils.p4run"), "--config", path.name]
    os.chdir(path.resolve().parent)
    sys.stdout.flush()
    os.execve(sys.executable, network, environment.extended(os.environ))


def _check(path: Path) -> None:
    if not path.is_file():
        raise Refusal(f"{path}: there is no such file")
    if path.suffix == ".py" and "p4utils" not in path.read_text(encoding="utf-8", errors="replace"):
        raise Refusal(f"{path}: it does not use p4utils, so that it is no network of p4-utils; run it with {sys.executable} {path}")
    probes.need_linux()
    if not probes.is_root():
        raise Refusal(f"{path}: p4-utils builds its networks with Mininet, which needs root: run the same with sudo", CANNOT_RUN_HERE)
    if not probes.has_mininet():
        raise Refusal(f"{path}: Mininet is not installed: 'fairlane doctor' says how", CANNOT_RUN_HERE)
    if probes.program("fairlane-switch") is None:
        raise Refusal("fairlane-switch is not built: run 'make build'.", CANNOT_RUN_HERE)
    missing = [name for name in ("thriftpy2", "p4utils", "networkx", "psutil", "ipaddr") if importlib.util.find_spec(name) is None]
    if missing:
        pip = f"{sys.executable} -m pip install"
        ways = [f"{pip} --no-deps FOLDER-OF-P4-UTILS"] if "p4utils" in missing else []
        others = [name for name in missing if name != "p4utils"]
        ways += [f"{pip} {' '.join(others)}"] if others else []
        raise Refusal(
            f"{path}: {sys.executable} has no {', '.join(missing)}: {'; '.join(ways)} (docs/coming-from-p4-utils.md)", CANNOT_RUN_HERE
        )
