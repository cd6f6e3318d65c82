"""Runs from Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from fairlane import api, probes, user_files
from fairlane.errors import Refusal
from fairlane.experiments import kinds
from fairlane.hosts import algorithms, own_algorithms
from fairlane.inputs import toml_text
from fairlane.inputs.located_toml import ConfigError

OWN = """
from fairlane.hosts.algorithms.als import AlsParameters, AlsReceiver, AlsSender
from fairlane.hosts.algorithms.base import Kind

KINDS = (Kind("own-scheme", "ALS by another name", AlsParameters, AlsSender, AlsReceiver),)
"""


@pytest.fixture(scope="module")
def result() -> api.Result:
    return api.run("dumbbell", ["als:2", "tcp-reno:1"], duration_s=20, queue="red", seed=3)


def test_a_result_has_tables_and_figures(result: api.Result) -> None:
    assert list(result.kinds.index) == ["als", "tcp-reno"]
    assert set(result.flows["flow"]) == {"als-0", "als-1", "tcp-reno"} | set(result.per_flow.index) and len(result.per_flow) == 3
    assert result.bottleneck["rate_bps"] == 10e6
    assert result.fair_rates["connections"].max() == 3


def test_plots_are_those_of_the_run(result: api.Result) -> None:
    assert len(result.plot("fair_rate").axes) == 2
    assert result.plot().axes[0].get_ylabel() == "goodput (Mb/s)"
    with pytest.raises(ValueError, match="it has rates, queue, fair_rate"):
        result.plot("rtt")  # type: ignore[arg-type]


def test_the_same_arguments_give_the_same_result(result: api.Result) -> None:
    again = api.run("dumbbell", ["als:2", "tcp-reno:1"], duration_s=20, queue="red", seed=3)
    assert again.summary == result.summary
    assert again.flows.equals(result.flows)


def test_results_are_written_where_asked(tmp_path: Path) -> None:
    api.run("dumbbell", ["als:1"], duration_s=5, out=tmp_path / "out")
    assert {"summary.json", "flows.csv", "rates.png", "raw"} <= {p.name for p in (tmp_path / "out").iterdir()}
    with pytest.raises(Refusal, match="never overwritten"):
        api.run("dumbbell", ["als:1"], duration_s=5, out=tmp_path / "out")


def test_options_of_a_file_of_its_own_are_refused() -> None:
    with pytest.raises(Refusal, match="--bottleneck: als-3 is an experiment with its own network"):
        api.run("als-3", bottleneck="1mbit")


def test_a_single_flow_needs_no_list() -> None:
    one, listed = (api.run("dumbbell", flows, duration_s=2) for flows in ("als:2", ["als:2"]))
    assert list(one.kinds.index) == ["als"] and one.kinds.equals(listed.kinds)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bottleneck": 10}, 'bottleneck=10: write it as in bottleneck="10mbit"'),
        ({"rtt": 0.064}, 'rtt=0.064: write it as in rtt="64ms"'),
        ({"flows": [("als", 2)]}, 'write it as in flows=["rap:2", "tcp-sack:2"]'),
        ({"duration_s": "5"}, "duration_s='5': write it as in duration_s=30"),
        ({"seed": True}, "seed=True: write it as in seed=1"),
        ({"switches": 2.5}, "switches=2.5: write it as in switches=3"),
    ],
)
def test_an_argument_of_another_type_is_refused_with_an_example(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(Refusal) as refused:
        api.run("dumbbell", **{"flows": ["als"], **arguments})  # type: ignore[arg-type]
    assert message in str(refused.value)


@pytest.fixture
def no_other_algorithms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(own_algorithms.FILES_VARIABLE, "")


def test_an_algorithm_of_a_file_anywhere_runs(tmp_path: Path, no_other_algorithms: None) -> None:
    path = tmp_path / "mine.py"
    path.write_text(OWN)
    try:
        result = api.run("dumbbell", ["own-scheme:2"], duration_s=10, algorithms=path)
        assert list(result.kinds.index) == ["own-scheme"]
        # Processes that a run starts know it, too.
        line = "from fairlane.experiments import kinds; from fairlane.hosts.algorithms import ALGORITHMS; print(ALGORITHMS['own-scheme'].summary)"
        done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True, cwd=probes.ROOT)
        assert done.stdout == "ALS by another name\n"
        assert os.environ[own_algorithms.FILES_VARIABLE] == str(path)
    finally:
        algorithms.ALGORITHMS.pop("own-scheme", None)
    assert "own-scheme" not in kinds.names()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "lists no flow kind"),
        (OWN.replace("own-scheme", "als"), r"flow kind 'als' is also listed in hosts/algorithms/als.py"),
        (OWN.replace("own-scheme", "Own Scheme"), "lower case, words joined by hyphens"),
        ("KINDS = (1,)", "holds 1, which is no"),
    ],
)
def test_a_file_without_a_kind_of_its_own_is_refused(tmp_path: Path, text: str, message: str, no_other_algorithms: None) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(Refusal, match=message):
        user_files.use_algorithm(path)
    with pytest.raises(Refusal, match="no such Python file"):
        user_files.use_algorithm(tmp_path / "other.py")


def test_a_program_that_lacks_what_the_controller_fills_is_refused(tmp_path: Path) -> None:
    (tmp_path / "forward.p4").write_text((probes.ROOT / "p4src" / "forward.p4").read_text().replace("IP_LPM", "routes"))
    with pytest.raises(Refusal, match=r"no table 'AlsIngress\.forward\.ipv4_lpm'; the program has AlsIngress\.forward"):
        api.run("dumbbell", ["als:1"], duration_s=2, programs=[tmp_path / "forward.p4"])


def test_a_p4_file_stands_in_place_of_the_one_of_its_name(tmp_path: Path) -> None:
    text = (probes.ROOT / "p4src" / "schemes" / "fair_rate" / "fair_rate.p4").read_text()
    path = tmp_path / "fair_rate.p4"
    path.write_text(text.replace("hdr.alsf.desired_rate_bps = fair_rate_bps;", "hdr.alsf.desired_rate_bps = 64000;"))
    result = api.run("dumbbell", ["als:2"], duration_s=20, programs=[path])
    assert result.per_flow["goodput_bps"].max() < 150_000, "R_d and a small AIR, not a share of 4.5 Mb/s"
    with pytest.raises(Refusal, match=r"mine.p4: replaces the file of the same name in p4src/, but there is none"):
        (tmp_path / "mine.p4").write_text(text)
        api.run("dumbbell", ["als:2"], programs=[tmp_path / "mine.p4"])
    with pytest.raises(Refusal, match="no such file"):
        api.run("dumbbell", ["als:2"], programs=[tmp_path / "other.p4"])


def test_a_copy_of_before_has_the_fair_rate_in_itself(tmp_path: Path) -> None:
    """Its als.p4 includes and applies it; `--program` replaces it there."""
    copied, here = tmp_path / "mine", probes.ROOT / "p4src"
    shutil.copytree(here, copied, ignore=shutil.ignore_patterns("schemes"))
    text = (here / "schemes" / "fair_rate" / "fair_rate.p4").read_text()
    (copied / "fair_rate.p4").write_text(text)
    als = (copied / "als.p4").read_text()
    for place, more in (
        ('#include "port_counters.p4"\n', '#include "fair_rate.p4"\n'),
        ("    PortCounters() ports;\n", "    FairRate() fair_rate;\n"),
        ("                ports.apply(standard_metadata);\n", "                fair_rate.apply(hdr, standard_metadata);\n"),
    ):
        assert als.count(place) == 1
        als = als.replace(place, more + place)
    (copied / "als.p4").write_text(als)
    network = {"kind": "dumbbell", "pairs": 2, "bottleneck": {"rate_bps": 2e6, "queue": "pie"}, "access": {"rate_bps": 1e7}}
    keys = {
        "title": "two",
        "bottleneck": "s1->s2",
        "duration_s": 10,
        "topology": network,
        "flows": [{"name": "als", "kind": "als", "count": 2}],
    }
    known = api.run(keys)
    for before in (api.run(keys, programs=[copied / "als.p4"]), api.run({**keys, "control": {"program": str(copied / "als.p4")}})):
        pd.testing.assert_frame_equal(known.fair_rates, before.fair_rates)
        pd.testing.assert_frame_equal(known.flows, before.flows)
    (tmp_path / "fair_rate.p4").write_text(text.replace("hdr.alsf.desired_rate_bps = fair_rate_bps;", "hdr.alsf.desired_rate_bps = 64000;"))
    slow = api.run("dumbbell", ["als:2"], duration_s=20, programs=[copied / "als.p4", tmp_path / "fair_rate.p4"])
    assert slow.per_flow["goodput_bps"].max() < 150_000


def test_a_dictionary_is_run_as_the_file_with_its_keys_is(tmp_path: Path) -> None:
    keys = {
        "title": "two",
        "bottleneck": "s1->s2",
        "duration_s": 2,
        "sweep": {"n": [1, 2]},
        "topology": {"kind": "dumbbell", "pairs": 2, "bottleneck": {"rate_bps": "= 1e6 * n"}, "access": {"rate_bps": 1e7}},
        "flows": [{"name": "one", "kind": "rap", "count": 2}],
    }
    (tmp_path / "two.toml").write_text(toml_text.table(keys))
    result = api.run(keys, at=["n=2"], name="two", pcap=tmp_path / "pcap", trace=tmp_path / "trace.csv", out=tmp_path / "from-keys")
    api.run(tmp_path / "two.toml", at=["n=2"], out=tmp_path / "from-file")
    assert result.experiment.id == "two"
    assert result.bottleneck["rate_bps"] == 2e6
    assert (tmp_path / "from-keys" / "flows.csv").read_bytes() == (tmp_path / "from-file" / "flows.csv").read_bytes()
    assert {path.name for path in (tmp_path / "pcap").iterdir()} >= {"s1-s2.pcap", "h1-s1.pcap"}
    assert len((tmp_path / "trace.csv").read_text().splitlines()) > 100
    with pytest.raises(ConfigError, match=r"the experiment's dictionary:1: flows\[0\].kind: "):
        api.run({**keys, "flows": [{"name": "one", "kind": "rapp"}]})
    with pytest.raises(ConfigError, match="duration_s: nan is not a number that can be used"):
        api.run({**keys, "duration_s": float("nan")})
    with pytest.raises(Refusal, match="--rtt: the dictionary has its own network"):
        api.run(keys, rtt="10ms")
