"""`python -m fairlane.controller.plane --config FILE.json --control FILE.py --out DIR`: run a control plane of one's own until SIGTERM or Ctrl-C."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from fairlane.controller.config import ConfigError
from fairlane.controller.plane import ControlPlane, network, own_file
from fairlane.controller.plane.engine import PlaneError
from fairlane.controller.plane.runner import PlaneController

FAULT = 2
"""Exit code: the user's own file is at fault, and would be again."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fairlane.controller.plane", description=__doc__)
    parser.add_argument("--config", type=Path, required=True, help="JSON, see controller/plane/network.py")
    parser.add_argument("--control", default="", help="Python file with the class; without it, nothing fills the tables")
    parser.add_argument("--out", type=Path, required=True, help="folder for control.jsonl and controller.jsonl")
    parser.add_argument("--changes", type=Path, help="JSON, see controller/changes.py; read again at SIGHUP")
    given = parser.parse_args(arguments)
    try:
        kind = own_file.load(Path(given.control)) if given.control else ControlPlane
        controller = PlaneController(
            network.read(given.config), own_file.made(given.control, kind), given.control, given.out, given.changes
        )
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: controller.stop())
        if sys.platform != "win32":
            signal.signal(signal.SIGHUP, lambda *_: controller.reread())
        controller.run()
    except (ConfigError, PlaneError, ValueError, OSError) as error:
        print(f"{error}", file=sys.stderr)
        return FAULT
    return 0


if __name__ == "__main__":
    sys.exit(main())
