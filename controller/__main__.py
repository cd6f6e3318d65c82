"""`python -m fairlane.controller --config FILE.json --out DIR`: run the control plane until SIGTERM or Ctrl-C."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from pathlib import Path

from fairlane.controller.config import ConfigError, read
from fairlane.controller.runner import Controller
from fairlane.inputs.own_python import OwnFault


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fairlane.controller", description=__doc__)
    parser.add_argument("--config", type=Path, required=True, help="JSON, see controller/README.md")
    parser.add_argument("--out", type=Path, required=True, help="folder for controller.csv and controller.jsonl")
    parser.add_argument(
        "--ready-timeout", type=float, default=20.0, metavar="S", help="seconds to wait for every switch to answer (default 20)"
    )
    parser.add_argument("--changes", type=Path, help="JSON, see controller/changes.py; read again at SIGHUP")
    given = parser.parse_args(arguments)
    try:
        controller = Controller(read(given.config), given.out, given.changes)
    except (ConfigError, ValueError, OSError) as error:
        print(f"controller: {error}", file=sys.stderr)
        return 2
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: controller.stop())
    if sys.platform != "win32":
        signal.signal(signal.SIGHUP, lambda *_: controller.reread())
    late: list[str] = []

    def watch() -> None:
        late.extend(controller.wait_ready(given.ready_timeout))
        if late:
            controller.stop()
        else:
            controller.log.event("ready", switches=len(controller.sessions))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        controller.run()
    except OwnFault as error:
        print(f"controller: {error}", file=sys.stderr)
        return 2
    if late:
        print(
            f"controller: no answer from {', '.join(late)} within {given.ready_timeout:g} s;"
            " are the switches running, and at these addresses?",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
