"""`python -m fairlane.labs.ranking labs/10/my_scheme.py`: a report that ranks your own scheme among all of Fairlane's. `make -C labs/10 rank` does the same."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from fairlane.api import Result
from fairlane.hosts.algorithms import ALGORITHMS
from fairlane.labs.grading import Answer, Missed, algorithms, apart
from fairlane.labs.ranking import page
from fairlane.labs.ranking.measures import EVEN, MARKS, STORE, TCP, Measures, measure, rivals, situations, stored

KIND = "my-scheme"


def weights(text: str) -> dict[str, float]:
    """ "delay=2,loss=0" -> a weight for each mark, 1 where none is given."""
    chosen = dict(EVEN)
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if name not in EVEN:
            raise argparse.ArgumentTypeError(f"no mark {name!r}: there is {', '.join(MARKS)}")
        try:
            chosen[name] = float(value)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{part}: write {name}=2") from None
        if not 0 <= chosen[name] < float("inf"):
            raise argparse.ArgumentTypeError(f"{part}: 0 or more")
    if not any(chosen.values()):
        raise argparse.ArgumentTypeError("all weights are 0: nothing would count")
    return chosen


def main(argv: list[str] | None = None, say: Callable[[str], None] = print) -> int:
    """0: the report is written. 1: the scheme's file cannot run, and where. 2: wrong arguments."""
    parser = argparse.ArgumentParser(
        prog="python -m fairlane.labs.ranking", description="Rank a scheme of your own among all others, in one report."
    )
    parser.add_argument("file", type=Path, nargs="?", help="the algorithm file")
    parser.add_argument("--kind", default=KIND, help="its flow kind; default: %(default)s")
    parser.add_argument("--weights", type=weights, default=dict(EVEN), metavar="MARK=N,...", help=f"of {', '.join(MARKS)}; default: 1 each")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, metavar="FOLDER", default=Path("results/lab-10"), help="default: %(default)s")
    parser.add_argument(
        "--fresh", action="store_true", help="run the others, too, instead of taking what others.json has of seed 1; other seeds always do"
    )
    parser.add_argument("--store", action="store_true", help="run the others and write others.json; needs no file")
    args = parser.parse_args(argv)
    if args.store:
        STORE.write_text(
            json.dumps({kind: measure(kind, *situations(kind)).as_json() for kind in rivals()}, indent=1) + "\n",
            encoding="utf-8",
            newline="\n",
        )
        say(f"written: {os.path.relpath(STORE)}")
        return 0
    if args.file is None or not args.file.is_file():
        parser.error(f"{args.file or 'FILE.py'}: no such file")
    if args.kind in rivals():
        parser.error(f"--kind {args.kind}: is Fairlane's own; a scheme of yours has another name")
    try:
        return _report(args, say)
    except Missed as missed:
        say(f"{missed.message}\nhint: {missed.hint}")
        return 1
    finally:
        ALGORITHMS.pop(args.kind, None)


def _report(args: argparse.Namespace, say: Callable[[str], None]) -> int:
    own = _own(args.file.resolve(), args.kind, args.seed)
    measured = _others(args.seed, say) if args.fresh or args.seed != 1 else stored()
    measured[args.kind] = measure(args.kind, *own)
    lines = page.ranked(measured, args.kind, args.weights)
    pictures = [
        ("rates of its own flows", own[0].plot()),
        ("queue under its own flows", own[0].plot("queue")),
        (f"rates beside {TCP}", own[1].plot()),
    ]
    for line in lines:
        say(f"{'->' if line.own else '  '} {line.rank:2}  {line.label:18} {line.score:5.1f}")
    say(f"report: {os.path.relpath(page.write(lines, args.weights, args.seed, pictures, args.out))}")
    return 0


def _own(file: Path, kind: str, seed: int) -> tuple[Result, Result]:
    """The own scheme's runs. Missed names the file's line that went wrong."""
    with TemporaryDirectory(prefix="fairlane-rank-") as scratch:
        answer = None
        try:
            apart.only([file.name], file.parent, Path(scratch) / "answer")
            answer = Answer(Path(scratch) / "answer", Path(scratch), limits=apart.Limits(60.0))
            algorithms.use(answer, file.name, kind)
            return situations(kind, seed)
        except apart.Ended as error:
            raise Missed(f"{file.name} ended its process (exit code {error.code})", "'fairlane labs check 10' tells more") from error
        except apart.Late:
            raise Missed(f"{file.name} does not come to an end", "'fairlane labs check 10' names the line") from None
        finally:
            if answer is not None:
                answer.close()


def _others(seed: int, say: Callable[[str], None]) -> dict[str, Measures]:
    names = rivals()
    say(f"running {len(names)} schemes, 20 seconds of processor time")
    return {kind: measure(kind, *situations(kind, seed)) for kind in names}


if __name__ == "__main__":
    sys.exit(main())
