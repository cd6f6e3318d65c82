"""Several test processes side by side (`make test`): which tests share one.

Runs in real time wait more than they compute, so that tests of ports, switches and runs go side by side with all the others. Tests of one
file share a process, for their fixtures; files that load the machine most, or would disturb each other, share one, too. The longest go first.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

TOGETHER = {
    "test_mininet_run": "runs on the embedded switch",
    "test_experiment_fabrics": "runs compared with virtual time",
    "test_paper_mininet": "runs compared with virtual time",
    "test_switch_realtime": "runs compared with virtual time",
    "test_bmv2_run": "BMv2",
    "test_multicast_kernel": "BMv2",
    "test_bmv2_target": "BMv2",
    "test_bmv2": "BMv2",
}
"""By file name. All other files: each its own."""
LONG = [*dict.fromkeys(TOGETHER.values()), "test_documented_commands", "test_labs", "test_notebooks"]
"""Groups in the order in which processes take them, before all others."""


def group(path: str) -> str:
    name = Path(path).stem
    return TOGETHER.get(name, name)


class ByGroup(LoadScopeScheduling):
    """Gives a process whole groups (`--dist loadgroup` and its mark do not work with pytest 9.2)."""

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid.split("::")[0])


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByGroup:
    return ByGroup(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:
        order = {name: number for number, name in enumerate(LONG)}
        items.sort(key=lambda item: order.get(group(str(item.path)), len(order)))


REAL_TIME = {*TOGETHER, "test_p4runtime_ptf", "test_tutorials_run", "test_connection_counter", "test_hosts_pacing", "test_hosts_sockets",
             "test_hosts_families", "test_hosts_tcp_iperf3", "test_mininet_fabric", "test_live"}
"""Files whose tests hold real time against a bound; all others give way to them."""


def pytest_runtest_setup(item: pytest.Item) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ and os.geteuid() == 0:  # who is not root cannot take it back
        os.setpriority(os.PRIO_PROCESS, 0, 0 if Path(item.path).stem in REAL_TIME else 10)
