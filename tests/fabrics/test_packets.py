"""The record of packets: a row for each packet's stay in a queue, which agrees with itself, with the histograms of waits, and with what ports and controller counted."""

from __future__ import annotations

import csv
import json
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import fairlane
from fairlane import api
from fairlane.errors import Refusal
from fairlane.experiments import loader
from fairlane.fabrics import virtual_fabric
from fairlane.fabrics.base import Settings
from fairlane.fabrics.packets import PacketRecord
from fairlane.fabrics.places import MININET, VIRTUAL
from fairlane.inputs import toml_text
from fairlane.inputs.located_toml import ConfigError
from fairlane.results import delays

pytestmark = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")

RUN: dict[str, Any] = {
    "title": "Two queues, and flows of each family",
    "bottleneck": "s1->s2",
    "duration_s": 5.0,
    "window_from": 0.0,
    "topology": {
        "kind": "dumbbell",
        "pairs": 4,
        "bottleneck": {"rate_bps": 8e6, "delay_s": 0.01, "queue_packets": 40},
        "access": {"rate_bps": 1e8, "delay_s": 0.001},
    },
    "flows": [
        {"name": "prague", "kind": "tcp-prague"},
        {"name": "cubic", "kind": "tcp-cubic"},
        {"name": "rap", "kind": "rap"},
        {"name": "poisson", "kind": "renewal"},
    ],
}


def run_with(queue: str, tmp_path: Path, changes: Sequence[dict[str, Any]] = ()) -> tuple[list[dict[str, str]], dict[str, Any]]:
    topology = {**RUN["topology"], "bottleneck": {**RUN["topology"]["bottleneck"], "queue": queue}}
    experiment = {**RUN, "topology": topology, "changes": list(changes)}
    fairlane.run(experiment, out=tmp_path / "out", packets=tmp_path / "packets.csv")
    with (tmp_path / "packets.csv").open() as file:
        return list(csv.DictReader(file)), json.loads((tmp_path / "out/summary.json").read_text())


@pytest.mark.parametrize("queue", ["dualpi2", "red", "codel", "droptail"])
def test_the_record_agrees_with_itself_and_with_all_that_was_counted(queue: str, tmp_path: Path) -> None:
    rows, summary = run_with(queue, tmp_path)
    link = [row for row in rows if row["link"] == "s1->s2"]
    found = next(each for each in summary["links"] if each["name"] == "s1->s2")
    within = [row for row in link if 0 <= float(row["departure_s"] or row["arrival_s"]) <= 5]

    # What waited in a queue before a packet: those that came before it and had not left.
    for number in {row["queue"] for row in link}:
        mine = [row for row in link if row["queue"] == number and row["departure_s"]]
        arrivals = sorted(float(row["arrival_s"]) for row in mine)
        departures = sorted(float(row["departure_s"]) for row in mine)
        for row in mine:
            at = float(row["arrival_s"])
            assert float(row["wait_s"]) == pytest.approx(float(row["departure_s"]) - at, abs=1.5e-9)
            # Of packets at the same instant some come before it.
            least = bisect_left(arrivals, at) - bisect_right(departures, at)
            assert least <= int(row["queue_packets"]) <= bisect_right(arrivals, at) - bisect_left(departures, at)
            assert (row["queue_packets"] == "0") == (row["queue_bytes"] == "0")
        in_order = sorted(mine, key=lambda row: float(row["departure_s"]))
        assert [float(row["arrival_s"]) for row in in_order] == sorted(float(row["arrival_s"]) for row in in_order)
    assert len({row["queue"] for row in link}) == (2 if queue == "dualpi2" else 1)

    # The histograms count the same packets.
    waits = delays.read(tmp_path / "out/raw").waits["s1", 1]
    together = delays.Delays.together(waits.values())
    left = [row for row in within if row["departure_s"]]
    assert together.packets == len(left)
    assert together.sum_ns == sum(round(float(row["wait_s"]) * 1e9) for row in left)

    # Drops, and marks: a full queue's as the port counted them, the program's as the controller last read them, after the flows' end.
    causes = Counter(row["drop"] for row in link)
    assert sum(row["drop"] == "tail" for row in within) == found["drops"].get("tail", 0)
    with (tmp_path / "out/raw/controller.csv").open() as file:
        last = [row for row in csv.DictReader(file) if (row["switch"], row["port"]) == ("s1", "1")][-1]
    counted = {column: int(last.get(column) or 0) for column in ("red_early_drops", "red_forced_drops", "aqm_drops", "marks")}
    assert causes["ingress"] + causes["egress"] == sum(counted.values()) - counted["marks"]
    assert (causes["ingress"] > 0, causes["egress"] > 0) == {"red": (True, False), "codel": (False, True)}.get(
        queue, (False, causes["egress"] > 0)
    )
    if queue == "dualpi2":
        assert sum(row["ecn"] == "3" for row in link) == counted["marks"] > 100
        assert {row["flow"] for row in link if row["queue"] == "1" and row["part"] == "data"} == {"prague"}

    # Each packet of a flow is there, and named.
    assert {row["flow"] for row in link} == {"prague", "cubic", "rap", "poisson"}
    numbers = sorted(int(row["packet"]) for row in link if row["flow"] == "poisson")
    assert numbers == list(range(len(numbers)))
    offsets = [int(row["packet"]) for row in link if row["flow"] == "cubic" and row["part"] == "data"]
    assert offsets[0] == 0 and all(offset % 948 == 0 for offset in offsets)
    back = [row for row in rows if row["link"] == "s2->s1"]
    assert {(row["flow"], row["part"]) for row in back} >= {("cubic", "ack"), ("prague", "ack"), ("rap", "ack")}


def lost_by_links(folder: Path) -> dict[str, int]:
    """Packets that each direction of a link lost in a whole run."""
    with (folder / "raw/links.csv").open() as file:
        return {row["link"]: int(row["lost_packets"]) for row in csv.DictReader(file)}


def test_each_packet_that_a_link_loses_has_a_row(tmp_path: Path) -> None:
    """Of links that lose single packets and in bursts, of switches and of hosts; as many as the links count, and as the log has. Who left a queue before it was lost has both rows."""
    lossy = {
        **RUN["topology"],
        "bottleneck": {**RUN["topology"]["bottleneck"], "gemodel": {"p": 0.01, "r": 0.3}},
        "access": {**RUN["topology"]["access"], "loss": 0.01},
    }
    fairlane.run({**RUN, "topology": lossy}, out=tmp_path / "out", packets=tmp_path / "packets.csv", trace=tmp_path / "trace.csv")
    with (tmp_path / "packets.csv").open() as file:
        rows = list(csv.DictReader(file))
    lost = [row for row in rows if row["drop"] == "link"]
    counted = lost_by_links(tmp_path / "out")
    assert Counter(row["link"] for row in lost) == Counter({link: count for link, count in counted.items() if count})
    assert counted["s1->s2"] > 50 and counted["h1->s1"] > 0 and counted["s2->h5"] > 0
    with (tmp_path / "trace.csv").open() as file:
        logged = [row for row in csv.DictReader(file) if (row["event"], row["cause"]) == ("drop", "link")]
    assert Counter((row["node"], row["flow"], row["part"], row["packet"]) for row in logged) == Counter(
        (row["link"].partition("->")[0], row["flow"], row["part"], row["packet"]) for row in lost
    )
    assert all(row[empty] == "" for row in lost for empty in ("queue", "queue_packets", "queue_bytes", "departure_s", "wait_s"))
    left: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        if row["departure_s"]:
            left.setdefault((row["link"], row["flow"], row["part"], row["packet"]), []).append(float(row["departure_s"]))
    of_switches = [row for row in lost if row["link"].startswith("s")]
    assert {row["link"] for row in of_switches} >= {"s1->s2", "s2->s1"}
    for row in of_switches:
        key = (row["link"], row["flow"], row["part"], row["packet"])
        assert any(departure_s <= float(row["arrival_s"]) for departure_s in left[key]), row


def test_losses_of_other_links_are_left_out_where_links_are_chosen(tmp_path: Path) -> None:
    lossy = {**RUN["topology"], "access": {**RUN["topology"]["access"], "loss": 0.01}}
    (tmp_path / "run.toml").write_text(toml_text.table({**RUN, "topology": lossy}))
    record = PacketRecord(tmp_path / "packets.csv", ["s1->s2", "s2->h5"])
    (tmp_path / "raw").mkdir()
    VIRTUAL.ready(loader.load(tmp_path / "run.toml"), Settings(packets=record)).run(tmp_path / "raw", fairlane_silent())
    with record.path.open() as file:
        lost = Counter(row["link"] for row in csv.DictReader(file) if row["drop"] == "link")
    assert lost == {"s2->h5": lost_by_links(tmp_path)["s2->h5"]}


def test_what_a_failed_link_loses_has_rows(tmp_path: Path) -> None:
    """What waits, what is under way and what comes while the link is down: as many as the ports count."""
    changes = [{"at_s": 2.0, "link": "s1->s2", "up": False}, {"at_s": 2.5, "link": "s1->s2", "up": True}]
    rows, _ = run_with("droptail", tmp_path, changes)
    down = [row for row in rows if row["drop"] == "link_down"]
    for switch, link in (("s1", "s1->s2"), ("s2", "s2->s1")):
        with (tmp_path / f"out/raw/{switch}.csv").open() as file:
            last = {row["port"]: int(row["drop_link_down"]) for row in csv.DictReader(file)}
        assert sum(row["link"] == link for row in down) == last["1"] > 0
        assert not any(count for port, count in last.items() if port != "1")
    there = [row for row in down if row["link"] == "s1->s2"]
    assert all(2.0 <= float(row["arrival_s"]) <= 2.5 for row in there if not row["queue"])
    # Under way at the failure; waiting then; come later.
    under_way = [row for row in there if not row["queue"]]
    waiting = [row for row in there if row["queue"] and float(row["arrival_s"]) < 2.0]
    later = [row for row in there if row["queue"] and float(row["arrival_s"]) >= 2.0]
    assert under_way and waiting and later
    assert {float(row["arrival_s"]) for row in under_way} == {2.0}
    assert len(waiting) <= 40 and all(row["departure_s"] == "" for row in (*waiting, *later))


def test_parquet_has_the_same_rows(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    rows, _ = run_with("dualpi2", tmp_path)
    fairlane.run(
        {**RUN, "topology": {**RUN["topology"], "bottleneck": {**RUN["topology"]["bottleneck"], "queue": "dualpi2"}}},
        packets=tmp_path / "p.parquet",
    )
    table = parquet.read_table(tmp_path / "p.parquet").to_pylist()
    assert len(table) == len(rows) and list(table[0]) == list(rows[0])
    for row, other in zip(table, rows):
        for key, text in other.items():
            assert (row[key] is None and text == "") or (
                str(row[key]) == text if isinstance(row[key], str | int) else row[key] == float(text)
            )
    assert not list(tmp_path.glob(".p.parquet*"))


def test_links_are_chosen_and_the_run_stays_the_same(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(fairlane_toml())
    experiment = loader.load(tmp_path / "run.toml")
    plain = api.run_experiment(experiment, out=tmp_path / "plain")
    record = PacketRecord(tmp_path / "packets.csv", ["s1->s2"])
    ready = VIRTUAL.ready(experiment, Settings(packets=record))
    (tmp_path / "raw").mkdir()
    ready.run(tmp_path / "raw", fairlane_silent())
    with record.path.open() as file:
        assert {row["link"] for row in csv.DictReader(file)} == {"s1->s2"}
    assert plain.summary["flows"]
    for path in sorted((tmp_path / "plain/raw").glob("*.jsonl")):
        assert path.read_bytes() == (tmp_path / "raw" / path.name).read_bytes(), path.name


def fairlane_toml() -> str:
    return toml_text.table(RUN)


def fairlane_silent() -> Any:
    from fairlane.fabrics.progress import Silent

    return Silent()


def test_what_cannot_be_recorded_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run.toml").write_text(fairlane_toml())
    experiment = loader.load(tmp_path / "run.toml")
    for link in ("s1->s9", "h1->s1", "s1"):
        with pytest.raises(Refusal, match=f"--packets-of {link}: no switch sends on such a link"):
            VIRTUAL.ready(experiment, Settings(packets=PacketRecord(tmp_path / "p.csv", [link])))
    with pytest.raises(Refusal, match="--packets: only virtual time"):
        MININET.ready(experiment, Settings(packets=PacketRecord(tmp_path / "p.csv")))
    monkeypatch.setattr("fairlane.fabrics.packets.find_spec", lambda name: None)
    with pytest.raises(Refusal, match=r"pip install 'fairlane\[parquet\]'"):
        VIRTUAL.ready(experiment, Settings(packets=PacketRecord(tmp_path / "p.parquet")))
    assert not (tmp_path / "p.csv").exists()


STUDY = {**RUN, "duration_s": 1.0, "seeds": [1, 2], "sweep": {"rate": [4e6, 8e6]}}


def test_a_study_keeps_what_it_is_asked_for(tmp_path: Path) -> None:
    keep = {"files": ["packets.csv", "captures", "trace.csv", "tables", "records"], "links": ["s1->s2"], "seeds": [2]}
    frame = fairlane.sweep({**STUDY, "keep": keep}, out=tmp_path / "study", workers=1)
    plain = fairlane.sweep(STUDY, out=tmp_path / "plain", workers=1)
    measures = [column for column in frame if not column.endswith("sha256")]
    assert frame[measures].equals(plain[measures])
    kept = {path.name: path for path in (tmp_path / "study/kept/study").iterdir()}
    assert sorted(kept) == ["rate=4000000.0 seed=2", "rate=8000000.0 seed=2"] or len(kept) == 2
    for folder in kept.values():
        names = {path.relative_to(folder).as_posix() for path in folder.rglob("*")}
        assert {"packets.csv", "trace.csv", "flows.csv", "links.csv", "fair_rates.csv", "captures/s1-s2.pcap", "records/s1.csv"} <= names
        with (folder / "packets.csv").open() as file:
            assert {row["link"] for row in csv.DictReader(file)} == {"s1->s2"}
    assert not (tmp_path / "plain/kept").exists()


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        ({"files": []}, "files: name what is to be kept"),
        ({"files": ["everything"]}, "everything"),
        ({"files": ["tables"], "links": ["s1->s2"]}, "links: of packets.csv or packets.parquet"),
        ({"files": ["packets.csv"], "links": ["s1->s3"]}, "no switch sends on such a link"),
        ({"files": ["tables"], "seeds": [3]}, "no seed of this study: '3'"),
    ],
)
def test_what_cannot_be_kept_is_refused_before_the_first_run(keep: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="keep.*" + message.replace("(", r"\(")):
        fairlane.sweep({**STUDY, "keep": keep}, out=tmp_path / "study", workers=1)


def test_a_worker_without_the_studys_folder_says_so(tmp_path: Path) -> None:
    from fairlane.errors import RunFailed
    from fairlane.studies.kept import Keeping
    from fairlane.studies.study import Keep

    with pytest.raises(RunFailed, match="shared disk"):
        Keeping(Keep(("tables",)), tmp_path / "elsewhere/kept/study/seed=1")
