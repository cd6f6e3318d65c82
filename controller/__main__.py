"""`python -m fairlane.controller --config FILE.json --out DIR`: run a control plane until SIGTERM or Ctrl-C: Fairlane's, or that of `--control FILE.py`."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from pathlib import Path

from fairlane.controller import config
from fairlane.controller.als import AlsPlane
from fairlane.controller.config import ConfigError
from fairlane.controller.plane import ControlPlane, network, own_file
from fairlane.controller.runner import Controller
from fairlane.inputs.own_python import OwnFault

FAULT = 2
"""Exit code: an input or the user's own file is at fault, and would be again."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fairlane.controller", description=__doc__)
    parser.add_argument("--config", type=Path, help="JSON, see controller/README.md: what Fairlane's controller is to do")
    parser.add_argument("--network", type=Path, help="JSON, see controller/plane/network.py: what a control plane of one's own sees")
    parser.add_argument("--control", default="", help="Python file with a control plane; without it and --config, nothing fills the tables")
    parser.add_argument("--out", type=Path, required=True, help="folder for controller.csv, control.jsonl and controller.jsonl")
    parser.add_argument(
        "--ready-timeout", type=float, default=20.0, metavar="S", help="seconds to wait for every switch to answer (default 20)"
    )
    parser.add_argument("--changes", type=Path, help="JSON, see controller/changes.py; read again at SIGHUP")
    given = parser.parse_args(arguments)
    if given.config is None and given.network is None:
        parser.error("give --config, --network, or both")
    try:
        controller = _controller(given)
    except OwnFault as error:
        print(error, file=sys.stderr)
        return FAULT
    except (ConfigError, ValueError, OSError) as error:
        print(f"controller: {error}", file=sys.stderr)
        return FAULT
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: controller.stop())
    if sys.platform != "win32":
        signal.signal(signal.SIGHUP, lambda *_: controller.reread())
    late: list[str] = []

    def watch() -> None:
        late.extend(controller.wait_ready(given.ready_timeout))
        if late:
            controller.stop()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        controller.run()
    except OwnFault as error:
        print(error, file=sys.stderr)
        return FAULT
    if late:
        print(
            f"controller: no answer from {', '.join(late)} within {given.ready_timeout:g} s;"
            " are the switches running, and at these addresses?",
            file=sys.stderr,
        )
        return 1
    return 0


def _controller(given: argparse.Namespace) -> Controller:
    kind = own_file.load(Path(given.control)) if given.control else AlsPlane if given.config else ControlPlane
    plane = own_file.made(given.control, kind)
    if not isinstance(plane, AlsPlane):
        return Controller(plane, network.read(given.network), given.out, file=given.control, planned=given.changes)
    seen = None if given.network is None else network.read(given.network)
    return Controller.of(config.read(given.config), given.out, given.changes, plane=plane, network=seen, file=given.control)


if __name__ == "__main__":
    sys.exit(main())
