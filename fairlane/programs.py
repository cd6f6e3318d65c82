"""The commands `fairlane-switch`, `fairlane-compile`, ... of an installed package: they become the one executable that is all of these
programs. In a checkout `scripts/build` puts links to it in the place of these commands. `fairlane-switch-cli` is Python."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    program = Path(__file__).with_name("bin") / "fairlane-switch"
    name = Path(sys.argv[0]).name
    if not program.is_file():
        sys.exit(f"{name} is not built: run 'make build'.")
    os.execv(program, [name, *sys.argv[1:]])


def switch_cli() -> None:
    """`fairlane-switch-cli`: BMv2's command line."""
    try:
        from fairlane.bmv2 import switch_cli as command_line
    except ImportError as missing:
        sys.exit(f"fairlane-switch-cli: {missing}")
    command_line.main()
