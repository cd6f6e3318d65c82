"""The P4 tutorials as their reader runs them: `make run` in an exercise's folder, with its own Makefile and its own utils, and sudo.

FAIRLANE_TUTORIALS names a checkout of p4lang/tutorials. The twin in tests/doors/exercise has the same form in our own words."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.doors import support

pytestmark = [*support.needs("sudo", "make", "mnexec"), support.sudos_python()]


@dataclass(frozen=True)
class Exercise:
    """said: at Mininet's prompt. shown: patterns of what it then prints. logs: patterns of what files in the folder then hold. beside: in a second
    shell. files: of `solution`, where each goes."""

    said: tuple[str, ...]
    shown: tuple[str, ...] = ()
    logs: tuple[tuple[str, str], ...] = ()
    beside: str = ""
    solution: str = "."
    entries: bool = True
    needs: str = ""


def all_of(hosts: int) -> str:
    return rf"Results: 0% dropped \({hosts * (hosts - 1)}/{hosts * (hosts - 1)} received\)"


CONTROLLER = "sleep 14; PYTHONUNBUFFERED=1 ./mycontroller.py > controller.log 2>&1"
"""When the network is there, as the README's second shell does; 15 of the 30 pings are late enough."""
EXERCISES = {
    "basic": Exercise(("pingall",), (all_of(4),)),
    "basic_tunnel": Exercise(
        ("pingall", "h3 ./receive.py > h3.log 2>&1 &", "sh sleep 4", "h1 ./send.py 10.0.2.2 'P4 is cool' --dst_id 3", "sh sleep 1"),
        (all_of(3),),
        (("h3.log", "P4 is cool"),),
    ),
    "calc": Exercise(
        (r"h1 printf '3+4\n12-5\n12&5\n12|5\n12^5\nquit\n' | python3 calc.py",),
        (r"> 3\+4\n7\n.*> 12-5\n7\n.*> 12&5\n4\n.*> 12\|5\n13\n.*> 12\^5\n9\n",),
        entries=False,
    ),
    "ecn": Exercise(("pingall",), (all_of(5),)),
    "firewall": Exercise(
        ("pingall", "h3 iperf -s > /dev/null &", "sh sleep 1", "h1 iperf -c 10.0.3.3 -t 1", "h1 iperf -s > /dev/null &", "sh sleep 1")
        + ("h3 timeout 4 iperf -c 10.0.1.1 -t 1 || echo BLOCKED",),
        (all_of(4), r"bits/sec[^\n]*\n(.*\n)*.*BLOCKED"),
        needs="iperf",
    ),
    "flowcache": Exercise(
        ("h1 ping -c 30 h2",),
        (r" [1-8]?[0-9][.0-9]*% packet loss",),
        (("controller.log", "."),),
        beside=CONTROLLER.replace("./", f"{support.SHELL_PYTHON} "),
        entries=False,
    ),
    "link_monitor": Exercise(
        ("pingall", "h1 ./receive.py > r.log 2>&1 &", "sh sleep 4", "h1 timeout 5 ./send.py", "sh sleep 1"),
        (all_of(4),),
        (("r.log", r"Switch 1 - Port \d: [0-9.]+ Mbps"),),
    ),
    "load_balance": Exercise(
        ("h2 ./receive.py > h2.log 2>&1 &", "h3 ./receive.py > h3.log 2>&1 &", "sh sleep 4")
        + ("h1 ./send.py 10.0.0.1 'P4 is cool'",) * 4
        + ("sh sleep 1; cat h2.log h3.log > both.log",),
        logs=(("both.log", "(?s)(got a packet.*){4}P4 is cool"),),
    ),
    "mri": Exercise(("pingall",), (all_of(5),)),
    "multicast": Exercise(("pingall",), (r"h1 -> h2 h3 X \nh2 -> h1 h3 X \nh3 -> h1 h2 X \n",)),
    "multicast/all": Exercise(("pingall",), (all_of(4),), solution="sig-topo"),
    "p4runtime": Exercise(
        ("h1 ping -c 30 h2",),
        (r" [1-8]?[0-9][.0-9]*% packet loss",),
        (("controller.log", r"Reading tunnel counters.*\n.*: [1-9]"),),
        beside=CONTROLLER,
        entries=False,
    ),
    "qos": Exercise(("pingall",), (all_of(5),)),
    "source_routing": Exercise(
        ("h2 ./receive.py > h2.log 2>&1 &", "sh sleep 4", r"h1 printf '2 3 2 2 1\nq\n' | ./send.py 10.0.2.2", "sh sleep 1"),
        logs=(("h2.log", r"got a packet(.*\n)*.*ttl *= 59"),),
        entries=False,
    ),
}


@pytest.mark.parametrize("name", EXERCISES)
def test_make_run_of_an_exercise(name: str, tmp_path: Path) -> None:
    wanted = EXERCISES[name]
    if wanted.needs and shutil.which(wanted.needs) is None:
        pytest.skip(f"needs {wanted.needs}")
    folder = support.checkout("FAIRLANE_TUTORIALS", "p4lang/tutorials", tmp_path) / "exercises" / name.partition("/")[0]
    for file in (folder / "solution").iterdir():
        shutil.copy(file, folder / (wanted.solution if file.suffix == ".json" else "."))
    beside = f"({wanted.beside}) &" if wanted.beside else ""
    printed = support.run(f"{beside} make run", folder, said="\n".join((*wanted.said, "exit\n")))
    assert "ERROR" not in printed and "Traceback" not in printed, printed
    for pattern in wanted.shown:
        assert re.search(pattern, printed), printed
    for file, pattern in wanted.logs:
        assert re.search(pattern, text := (folder / file).read_text()), text + printed
    if wanted.entries:
        check_entries(folder)


def check_entries(folder: Path) -> None:
    """Each entry of each `sN-runtime.json` that the topology names was written: the tutorials' utils keep the requests that were accepted so far."""
    given = re.search(r"^TOPO = (.*)", (folder / "Makefile").read_text(), re.MULTILINE)
    topology = json.loads((folder / (given[1] if given else "topology.json")).read_text())
    for switch, its in topology["switches"].items():
        entries = json.loads((folder / its["runtime_json"]).read_text())
        written = (folder / "logs" / f"{switch}-p4runtime-requests.txt").read_text()
        assert len(re.findall(r"type: (?:INSERT|MODIFY)", written)) >= len(entries["table_entries"]) > 0, written


def test_the_twin(tmp_path: Path) -> None:
    folder = shutil.copytree(Path(__file__).parent / "exercise", tmp_path / "exercise")
    printed = support.run("make run", folder / "pair", said="pingall\nexit\n")
    assert re.search(all_of(2), printed), printed
    assert "s1: 2 entries written, 2 read" in printed
    assert (folder / "pair" / "logs" / "s1.log").stat().st_size > 0 and list((folder / "pair" / "pcaps").glob("*.pcap"))


@pytest.mark.parametrize("exercise", ["basic", "basic_tunnel"])
def test_make_test_of_an_exercise(exercise: str, tmp_path: Path) -> None:
    """Their packet tests: p4c, the switch and ptf, each called as their script calls it."""
    folder = support.checkout("FAIRLANE_TUTORIALS", "p4lang/tutorials", tmp_path) / "exercises" / exercise
    script = 'export P4_EXTRA_SUDO_OPTS="PYTHONPATH=$PYTHONPATH"; make test'
    printed = support.run(script, folder, before=support.with_ptf(tmp_path), env="--packages")
    assert re.search(r"^OK$", printed, re.MULTILINE) and "FAIL" not in printed, printed
