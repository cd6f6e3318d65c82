"""A process that runs jobs for `fairlane.studies.schedule`: a pickled job on standard input, its pickled outcome on standard output, until
the input ends. It ends with its parent, for any reason, and ignores Ctrl-C, which the parent handles.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Failure:
    """Why a job could not be carried out, in a sentence."""

    reason: str


def attempt(function: Callable[[Any], Any], job: Any) -> Any:
    """What the function gives for the job, or the `Failure`: of an exception the text and the line that raised it, if it is in a user's file."""
    try:
        return function(job)
    except Exception as error:  # noqa: BLE001 (whatever a user's algorithm raises)
        names = [name for name, _ in job.files.algorithms]
        places = [(Path(place.filename).name, place.lineno) for place in traceback.extract_tb(error.__traceback__)]
        where = next((f" ({name}, line {line})" for name, line in reversed(places) if name in names), "")
        return Failure(f"{type(error).__name__}: {error}{where}")


def main() -> None:
    """What the process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What an algorithm prints must not come between the outcomes.
    outcomes = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    from fairlane.studies import points

    while True:
        try:
            job = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        outcome = pickle.dumps(attempt(points.run, job))
        try:
            outcomes.write(outcome)
            outcomes.flush()
        except OSError:
            return


if __name__ == "__main__":
    from fairlane.studies import worker  # noqa: PLW0406 # by its name: a `Failure` is then the same class on both sides

    worker.main()
