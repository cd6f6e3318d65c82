"""Parallel test processes (`make test`): the assignment of tests to processes.

Runs in real time wait more than they compute, so tests of ports, switches and runs run in parallel with all other tests. Tests of one
file share a process, because they share fixtures. Files that load the machine most, or would disturb each other, also share a process.
The longest tests start first.

Tests marked `alone` measure time. While one runs, no other test runs in any process.

Property tests draw the same examples each time, so that `make test` has the same result for the same code. `make properties` draws new
ones. No single example has a limit of time: the machine may be busy with a build.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from fairlane import probes

for ignored in (
    signal.SIGINT,
    signal.SIGHUP,
):  # by a shell that starts a job in the background, or nohup; what tests start would do so, too
    if signal.getsignal(ignored) == signal.SIG_IGN:
        signal.signal(ignored, signal.default_int_handler if ignored == signal.SIGINT else signal.SIG_DFL)

settings.register_profile("new", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", settings.get_profile("new"), derandomize=True)
settings.load_profile("same")  # `--hypothesis-profile` is read later

TOGETHER = {
    "test_mininet_run": "runs on the embedded switch",
    **dict.fromkeys(
        (
            "test_experiment_fabrics",
            "test_paper_mininet",
            "test_switch_realtime",
            "test_bmv2_run",
            "test_multicast_kernel",
            "test_bmv2_target",
            "test_bmv2",
        ),
        "runs compared, and BMv2",
    ),
}
"""By file name. All other files: each its own."""
BROWSERS = ("chromium", "firefox")
"""Of tests/live/test_web.py: each is opened once, by a process of its own."""
LONG = [*dict.fromkeys(TOGETHER.values()), "test_documented_commands", "test_labs", "test_notebooks", *BROWSERS]
"""Groups in the order in which processes take them, before all others."""


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder of our compiled programs."""
    found = probes.program("fairlane-stf")
    if found is None:
        pytest.skip("fairlane-stf is not built: run `make build`")
    return found.parent


def group(nodeid: str) -> str:
    path, *test = nodeid.split("::")
    name = Path(path).stem
    if name == "test_web":
        return next((browser for browser in BROWSERS if browser in test[-1]), name)
    return TOGETHER.get(name, name)


class ByGroup(LoadScopeScheduling):
    """Gives a process whole groups (`--dist loadgroup` and its mark do not work with pytest 9.2)."""

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByGroup:
    return ByGroup(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:
        order = {name: number for number, name in enumerate(LONG)}
        items.sort(key=lambda item: (order.get(group(item.nodeid), len(order)), item.get_closest_marker("alone") is None))


REAL_TIME = {
    *TOGETHER,
    "test_p4runtime_ptf",
    "test_tutorials_run",
    "test_connection_counter",
    "test_hosts_pacing",
    "test_hosts_sockets",
    "test_hosts_families",
    "test_hosts_tcp_iperf3",
    "test_mininet_fabric",
    "test_live",
}
"""Files whose tests hold real time against a bound; all others give way to them."""


def pytest_runtest_setup(item: pytest.Item) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ and os.geteuid() == 0:  # who is not root cannot take it back
        os.setpriority(os.PRIO_PROCESS, 0, 0 if Path(item.path).stem in REAL_TIME else 10)


GATE, FLOOR = Path(__file__), Path(__file__).parent.parent / "pyproject.toml"
"""Files that stand for locks; nothing is written. Who is at the gate goes on when the floor is free for it: those who come later wait, so
that tests going in and out do not keep one out that wants the floor for itself."""


@contextlib.contextmanager
def locked(path: Path, how: int) -> Iterator[None]:
    with path.open() as file:
        fcntl.flock(file, how)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)  # also where a child has it open


@contextlib.contextmanager
def floor(alone: bool) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        with locked(GATE, fcntl.LOCK_EX):
            stack.enter_context(locked(FLOOR, fcntl.LOCK_EX if alone else fcntl.LOCK_SH))
        yield


def _used_s() -> float:
    """Processor time of this process and of what it has started and ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Times:
    """`make test TIMES=FILE`: appends each test's processor time, wall time and name."""

    def __init__(self, path: str) -> None:
        self.path = path

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        used, began = _used_s(), time.monotonic()
        result = yield
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(f"{_used_s() - used:.2f}\t{time.monotonic() - began:.2f}\t{item.nodeid}\n")
        return result


class Floor:
    """A plugin of its own: what stands in this file itself is for tests of this folder alone."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)  # around pytest-timeout: waiting does not count
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        with floor(item.get_closest_marker("alone") is not None):
            return (yield)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Floor())
    if (path := os.environ.get("TIMES")) and "PYTEST_XDIST_WORKER" in os.environ:
        config.pluginmanager.register(Times(path))
