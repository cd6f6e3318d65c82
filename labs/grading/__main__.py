"""`python -m fairlane.labs.grading 04`: grades the files of labs/04, or of another folder; `fairlane labs check 04` says the same."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from fairlane.inputs.located_toml import ConfigError
from fairlane.labs.grading import labs, runner


def main(argv: list[str] | None = None) -> int:
    """0: all points. 1: not all. 2: no such lab or folder."""
    parser = argparse.ArgumentParser(prog="python -m fairlane.labs.grading", description="Points for an answer to a lab.")
    parser.add_argument("lab", help="its number, such as 04")
    parser.add_argument("--answer", type=Path, metavar="FOLDER", help="the files to grade; default: those of the lab itself")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the points as JSON, too; - is standard output, without the text")
    args = parser.parse_args(argv)
    if args.lab not in labs.numbers():
        parser.error(f"no lab {args.lab!r}; there is {', '.join(labs.numbers())}")
    if args.answer is not None and not args.answer.is_dir():
        parser.error(f"--answer {args.answer}: no such folder")
    try:
        lab = labs.load(args.lab)
    except ConfigError as error:
        parser.error(str(error))
    grade = labs.graded(lab, args.answer or lab.folder)
    encoded = json.dumps(grade.as_json(), indent=2)
    if args.json == Path("-"):
        print(encoded)
    else:
        print(runner.text(grade))
        if args.json is not None:
            args.json.write_text(encoded + "\n", encoding="utf-8", newline="\n")
    return 0 if grade.points >= grade.of else 1


if __name__ == "__main__":
    sys.exit(main())
