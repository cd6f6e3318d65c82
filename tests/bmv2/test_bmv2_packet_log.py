"""The packet log beside BMv2's: the same events in the same order. Skipped without `simple_switch`, or with one that was built without
its log (`-DENABLE_LOGGING_MACROS=ON`)."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from fairlane import probes
from tests.bmv2.test_bmv2_packets import NOT_ON_BMV2, TESTS, options
from tools.bmv2 import packet_log, process

ABSENT = process.why_absent()
# They branch on the time that packets wait, and on the length of queues.
TIMED = {"p4src/schemes/abc/abc.stf", "p4src/schemes/rcp/rcp.stf", "p4src/schemes/xcp/xcp.stf", "tests/p4src/multicast.stf"}
COMPARED = [
    pytest.param(source, test, id=test.stem)
    for source, test in TESTS
    if test.stem not in NOT_ON_BMV2 and str(test.relative_to(probes.ROOT)) not in TIMED
]


@functools.cache
def why_silent(folder: Path) -> str | None:
    """Why BMv2 says nothing of packets, if it does not."""
    if probes.program("fairlane-compile") is None:
        return "fairlane-compile is not built: run `make build`"
    source = probes.ROOT / "tests/p4/basic/basic.p4"
    if packet_log.run(source, source.with_suffix(".stf"), [], process.PROGRAM).lines < 100:
        return "this BMv2 was built without its log: -DENABLE_LOGGING_MACROS=ON"
    return None


@pytest.mark.skipif(ABSENT is not None, reason=f"no BMv2: {ABSENT}")
@pytest.mark.parametrize(("source", "test"), COMPARED)
def test_the_same_events_as_bmv2(source: Path, test: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    reason = why_silent(tmp_path_factory.getbasetemp())
    if reason is not None:
        pytest.skip(reason)
    compared = packet_log.run(source, test, options(test), process.PROGRAM)
    assert not compared.differences, "\n".join(compared.differences[:40])


def test_a_difference_is_found() -> None:
    """In the words of a packet, in their order, in a packet that only one of the switches has; not in times and threads."""
    bmv2 = (
        "[10:00:00.000] [bmv2] [T] [thread 1] bm_table_add_entry\n"
        "[10:00:00.001] [bmv2] [D] [thread 2] [0.0] [cxt 0] Looking up key:\n* h.x                 : 01\n\n"
        "[10:00:00.002] [bmv2] [D] [thread 2] [0.0] [cxt 0] Table 't': miss\n"
        "[10:00:00.003] [bmv2] [D] [thread 3] [1.0] [cxt 0] Egress port is 1\n"
    )
    ours = "[D] [0.0] [cxt 0] Looking up key:\n* h.x                 : 01\n\n[D] [0.0] [cxt 0] Table 't': miss\n"
    ours += "[T] [1.0] [cxt 0] Enqueuing packet at port 1, priority 0, behind 0 others\n[D] [1.0] [cxt 0] Egress port is 1\n"
    theirs = packet_log.by_packet(bmv2, packet_log._BMV2)

    def differences(text: str) -> list[str]:
        return packet_log.compare(theirs, packet_log.by_packet(text, packet_log._OURS)).differences

    assert theirs == {"0.0": ["D Looking up key:\n* h.x                 : 01", "D Table 't': miss"], "1.0": ["D Egress port is 1"]}
    assert not differences(ours)
    assert differences(ours.replace("is 1", "is 2")) == ["packet 1.0:", "-D Egress port is 1", "+D Egress port is 2"]
    assert differences(ours.replace("[D] [1.0]", "[T] [1.0]"))[0] == "packet 1.0:"
    assert differences("\n".join(reversed(ours.splitlines())))
