"""Files over TCP here and in ns-3 (`bench.completion`): ns-3's input, the table, and files that need as long on both sides. docs/completion-against-ns3.md has all percentiles."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from bench import completion
from fairlane.experiments import paths
from fairlane.fabrics import virtual_fabric
from tests.oracle import ns3

needs_native = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")
of_each_case = pytest.mark.parametrize("case", completion.CASES, ids=lambda case: case.name)
LEAF_SPINE = next(case for case in completion.CASES if case.name == "leaf-spine")


def reference() -> dict[str, list[float]]:
    found: dict[str, list[float]] = json.loads(completion.DATA.read_text(encoding="utf-8"))
    return found


def test_ns3_gets_the_arrivals_and_the_ways_that_the_switches_choose() -> None:
    experiment = LEAF_SPINE.experiment(1)
    names = [node.name for node in experiment.topology.nodes]
    files = [line.split() for line in completion.described(experiment).splitlines() if line.startswith("file ")]
    assert len(files) == len(experiment.flows) > 100
    spines = set()
    for flow, (_, start_ns, size, *words) in zip(experiment.flows, files):
        assert (int(start_ns), int(size)) == (round(flow.start_s * 1e9), flow.tcp_settings.file_bytes)
        there, back = words[1 : 1 + int(words[0])], words[2 + int(words[0]) :]
        for way, ports in ((there, paths.there(experiment, flow)), (back, paths.back(experiment, flow))):
            assert [names[int(n)] for n in way] == [*(port.node for port in ports), ports[-1].peer]
            spines |= {names[int(n)] for n in way if names[int(n)].startswith("spine")}
    assert spines == {"spine1", "spine2"}


def test_the_ratio_is_ours_over_ns3s_within_a_range_of_sizes() -> None:
    outcomes = [
        completion.Outcome([50_000, 5_000_000], [0.01, 0.5], {"completion_s": [0.02, 1.0 + seed]}, {"completion_s": [0.02, 2.0 + 2 * seed]})
        for seed in range(3)
    ]
    found = {(sizes, part): (files, ratio, *(ends or ())) for sizes, files, part, _, _, ratio, ends in completion.rows(outcomes)}
    assert found["to 100 kB", 50] == pytest.approx((3, 1.0, 1.0, 1.0))
    assert found["above 1 MB", 99] == pytest.approx((3, 2.0, 2.0, 2.0))


@needs_native
@of_each_case
def test_files_one_after_another_take_ns3s_time(case: completion.Case) -> None:
    """Without other traffic: handshake, slow start, delayed acknowledgements, headers, links and their delays."""
    ours = completion.here(case.one_after_another())["completion_s"]
    assert ours == pytest.approx(reference()[case.name], rel=0.01)


@pytest.mark.skipif(not ns3.is_here(), reason=ns3.MISSING)
def test_the_committed_times_are_ns3s(tmp_path: Path) -> None:
    program = ns3.compiled(completion.SOURCE, tmp_path)
    assert program is not None
    for case in completion.CASES:
        theirs = completion.there(program, case, case.one_after_another())["completion_s"]
        assert all(math.isfinite(seconds) for seconds in theirs) and theirs == reference()[case.name], case.name


def test_the_page_has_each_case() -> None:
    page = completion.PAGE.read_text(encoding="utf-8")
    for case in completion.CASES:
        for sizes, _, _ in completion.SIZES:
            assert f"| {case.name} | {sizes} |" in page
