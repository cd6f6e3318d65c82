"""p4-guide's packet tests as its reader runs them: each `runptf.sh` unchanged, in its own folder, with p4c, simple_switch_grpc, ptf, pkill and sudo.

FAIRLANE_P4_GUIDE names a checkout of jafingerhut/p4-guide. The twin is a script of the same form in our own words."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.doors import support

pytestmark = support.needs("sudo", "pkill")
PAIRS = """for n in 0 2 4 6 8 10 12 14; do
    ip link add veth$n type veth peer name veth$((n + 1))
    for end in veth$n veth$((n + 1)); do sysctl -qw net.ipv6.conf.$end.disable_ipv6=1; ip link set $end mtu 9500 up; done
done
"""
# Without ptf-tests/duplicatekeys: it writes 192&&&0xff, which is the address's last octet, and expects a packet to 192.172.1.1 to match;
# and without lpmtester, which sends thousands of packets at ten a second, and of whose two forms one ends with an IndexError of its own.
SCRIPTS = (
    "demo1/runptf.sh",
    "demo1-bitselect-key/runptf.sh",
    "demo2/runptf.sh",
    "demo7/runptf.sh",
    "initial-table-entries/const-entries-runptf.sh",
    "initial-table-entries/init-entries-runptf.sh",
    "initial-table-entries/no-entries-runptf.sh",
    "ptf-tests/idletimeout/runptf.sh",
    "ptf-tests/matchkinds/runptf.sh",
    "ptf-tests/packetinout/runptf.sh",
    "ptf-tests/registeraccess/runptf.sh",
)


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_unchanged(script: str, tmp_path: Path) -> None:
    folder = (support.checkout("FAIRLANE_P4_GUIDE", "jafingerhut/p4-guide", tmp_path) / script).parent
    printed = support.run(f"{PAIRS}bash {Path(script).name}", folder, before=support.with_ptf(tmp_path))
    assert re.search(r"^OK$", printed, re.MULTILINE) and "FAIL" not in printed, printed
    # What pkill was to end is gone: the next script begins with nothing left of this one.
    left = printed.rpartition("in 4 seconds ...")[2]
    assert "fairlane-switch" not in left, printed


def test_the_twin(tmp_path: Path) -> None:
    folder = shutil.copytree(Path(__file__).parent / "packet_tests", tmp_path / "packet_tests")
    printed = support.run(f"{PAIRS}bash run.sh", folder, before=support.with_ptf(tmp_path))
    assert re.search(r"^OK$", printed, re.MULTILINE), printed
    assert (folder / "crossover.json").is_file() and (folder / "ss-log.txt").is_file(), printed
    assert "no switch is left" in printed
