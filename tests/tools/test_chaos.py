"""make chaos: the order of faults, and that an end which is not in order is found."""

from __future__ import annotations

import dataclasses
import signal
from pathlib import Path

from tools.chaos.__main__ import order, strike
from tools.chaos.faults import FAULTS, Fault
from tools.chaos.subject import Place

TERMINATED = next(f for f in FAULTS if f.key == "virtual: SIGTERM")


def test_each_fault_strikes_once_before_any_strikes_twice() -> None:
    assert len({f.key for f in FAULTS}) == len(FAULTS)
    first = order(FAULTS, 1, len(FAULTS) + 3)
    assert set(first[: len(FAULTS)]) == set(FAULTS) and first == order(FAULTS, 1, len(FAULTS) + 3) != order(FAULTS, 2, len(FAULTS) + 3)


def test_an_end_in_order_and_one_that_is_not(tmp_path: Path) -> None:
    ended = strike(TERMINATED, 1, 0, tmp_path)
    assert ended.wrong == [] and ended.code in TERMINATED.ends and signal.SIGTERM.name in ended.struck
    strict = dataclasses.replace(TERMINATED, ends=(77,))
    assert strike(strict, 1, 1, tmp_path).wrong[0].startswith("exit code ")


def test_a_run_that_suffered_must_not_call_itself_true(tmp_path: Path) -> None:
    harmless = Fault(Place.VIRTUAL, "nothing", lambda subject, rng: "nothing was done", (0,), marked=True)
    ended = strike(dataclasses.replace(harmless, strike=lambda subject, rng: "pretended"), 1, 0, tmp_path)
    assert ended.code == 0 and ended.wrong == ["verdict true"]
