"""Runs `fairlane` again and again without starting Python and reading its modules each time: a request is a line of JSON with `argv`,
`out` (a file), `timeout_s` and `plots`, without which plots are empty files; the answer is a line with the exit code, null when the time
was over, and the processor time. Each command has a process of its own, forked from this one."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
import traceback
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot  # read once, for all
from matplotlib.figure import Figure

from fairlane import ad_hoc, cli, execute
from fairlane.fabrics import virtual_fabric
from fairlane.results import compare


def main() -> None:
    """Until standard input ends."""
    for line in sys.stdin:
        request = json.loads(line)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        code = _run(**request)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(json.dumps([code, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime]), flush=True)


def _run(argv: list[str], out: str, timeout_s: float, plots: bool) -> int | None:
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.setsid()
        file = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(file, 1)
        os.dup2(file, 2)
        if not plots:
            Figure.savefig = _left_out  # type: ignore[method-assign, assignment]
        os._exit(_command(argv))
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _left_out(figure: Figure, path: str | Path, **more: object) -> None:
    Path(path).touch()


def _command(argv: list[str]) -> int:
    sys.argv = ["fairlane", *argv]
    try:
        cli.main()
        code = 0
    except SystemExit as exit_:
        code = exit_.code if isinstance(exit_.code, int) else (0 if exit_.code is None else 1)
    except BaseException:  # noqa: BLE001 - the caller reads the trace
        traceback.print_exc()
        code = 70
    sys.stdout.flush()
    sys.stderr.flush()
    return code


if __name__ == "__main__":
    main()
