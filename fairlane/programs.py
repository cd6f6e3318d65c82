"""The commands `fairlane-switch`, `fairlane-compile`, ... of an installed package: each starts the same executable, which contains all these
programs. In a checkout `scripts/build` replaces these commands by links to it. `fairlane-switch-cli` is Python."""

from __future__ import annotations

import sys
from pathlib import Path

from fairlane import python_child


def main() -> None:
    program = Path(__file__).with_name("bin") / ("fairlane-switch.exe" if sys.platform == "win32" else "fairlane-switch")
    name = Path(sys.argv[0]).name.removesuffix(".exe")
    if not program.is_file():
        sys.exit(f"{name} is not built: run 'make build'.")
    python_child.become(program, [name, *sys.argv[1:]])


def switch_cli() -> None:
    """`fairlane-switch-cli`: BMv2's command line."""
    try:
        from fairlane.bmv2 import switch_cli as command_line
    except ImportError as missing:
        sys.exit(f"fairlane-switch-cli: {missing}")
    command_line.main()
