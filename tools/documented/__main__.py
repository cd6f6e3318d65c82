"""make docs-commands: runs every command of the documentation, unchanged, in a copy of the checkout."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from fairlane import probes
from tools.documented import blocks, execute


def not_run(left: list[execute.NotRun]) -> str:
    """What was not run, by reason."""
    reasons = sorted({one.reason for one in left})
    lines = ["Not run:"]
    for reason in reasons:
        lines.append(f"  {reason}")
        lines += [f"    {one.block.where}: {one.command}" for one in left if one.reason == reason]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.documented", description=__doc__)
    parser.add_argument("pages", nargs="*", help="some pages only")
    parser.add_argument("--quick", action="store_true", help="as make test does: without what is slow or needs root")
    options = parser.parse_args()
    pages = options.pages or blocks.pages(probes.ROOT)
    found = [block for page in pages for block in blocks.blocks(page, (probes.ROOT / page).read_text(encoding="utf-8"))]
    failed = 0
    begun = time.monotonic()

    def tell(done: execute.Done) -> None:
        nonlocal failed, begun
        now = time.monotonic()
        print(
            f"{'ok    ' if done.code == 0 else 'FAILED'} {now - begun:6.1f} s, CPU {done.cpu_s:5.1f} s  {done.block.where}: {done.command}",
            flush=True,
        )
        begun = now
        if done.code != 0:
            failed += 1
            print(f"exit code {done.code}\n{done.said}", flush=True)

    with tempfile.TemporaryDirectory(prefix="fairlane-documented-") as folder:
        execute.copy(probes.ROOT, Path(folder))
        left = execute.run_all(found, Path(folder), not options.quick, 900, tell)
    print(f"\n{not_run(left)}\n{sum(len(b.commands) for b in found)} commands in {len(found)} blocks; {len(left)} not run; {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
