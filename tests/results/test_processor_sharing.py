"""Files over TCP on one link beside processor sharing: each file's time beside that of an exact simulation in which all files that are there share the link equally."""

from __future__ import annotations

import heapq
import math
from pathlib import Path

import pytest

from fairlane import api
from fairlane.experiments import loader
from fairlane.fabrics import virtual_fabric

EXAMPLE = Path(__file__).parents[2] / "docs/examples/sharing-study.toml"
pytestmark = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")


def shared(files: list[tuple[float, float]]) -> list[float]:
    """Times from arrival to departure of (arrival, seconds of service), in the order of arrival: the virtual time of equal shares."""
    served, now, there, times = 0.0, 0.0, [], [math.nan] * len(files)
    arrivals = sorted(range(len(files)), key=lambda n: files[n][0])
    while arrivals or there:
        next_s = files[arrivals[0]][0] if arrivals else math.inf
        ends_s = now + (there[0][0] - served) * len(there) if there else math.inf
        if ends_s <= next_s:
            served, now = there[0][0], ends_s
            _, n = heapq.heappop(there)
            times[n] = now - files[n][0]
        else:
            served += (next_s - now) / len(there) if there else 0.0
            now = next_s
            n = arrivals.pop(0)
            heapq.heappush(there, (served + files[n][1], n))
    return times


def test_equal_shares_by_hand() -> None:
    # The second comes when half of the first is done; then both get half. 1 + 2 * 1 = 3 s; the second has one second left then.
    assert shared([(0.0, 2.0), (1.0, 2.0), (10.0, 0.5)]) == [3.0, 3.0, 0.5]


def test_files_over_tcp_share_a_link_as_processor_sharing_does(tmp_path: Path) -> None:
    experiment = loader.load(EXAMPLE, 8.0, None, ["window=16", "load=0.6"])
    result = api.run_experiment(experiment)
    done = [record for record in result.recorded.flows if not math.isnan(record.completion_s)]
    sizes = [record.flow.tcp_settings.file_bytes or 0 for record in done]
    files = [(record.flow.start_s, (size + 66 * math.ceil(size / 1448)) * 8 / 100e6) for record, size in zip(done, sizes)]
    expected = [time_s + 0.0009 for time_s in shared(files)]  # handshake, and the way of the last segment and its acknowledgement
    measured = [record.completion_s for record in done]
    assert len(done) > 200
    assert sum(measured) == pytest.approx(sum(expected), rel=0.05)
    # Windows of whole segments share in steps: single files are further from it than their sum.
    assert sum(abs(a - b) for a, b in zip(measured, expected)) < 0.15 * sum(expected)
