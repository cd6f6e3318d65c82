"""The packet tests on real BMv2: simple_switch, driven by tools/bmv2."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tools.bmv2 import process, stf
from tools.bmv2.program import Program
from tools.conformance.suite import Suite


def bmv2(suite: Suite, json: str, test: Path) -> str | None:
    """None when the test passes, else the first thing that is not as the test says."""
    with tempfile.TemporaryDirectory(prefix="conformance-bmv2-") as folder:
        program = Path(folder) / "program.json"
        program.write_text(json, encoding="utf-8")
        try:
            with process.Bmv2(program) as switch:
                outcome = stf.play(switch, Program.load(program), test.read_text(encoding="utf-8"))
        except process.SwitchDied as error:
            return f"BMv2 ended: {' '.join(str(error).split())}"
        except (stf.ScriptError, OSError) as error:
            return str(error)
    return outcome.differences[0] if outcome.differences else None
