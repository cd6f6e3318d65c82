"""The suite rfc8869: its cases and the models of its traces, against the text of RFC 8869."""

from __future__ import annotations

import csv
import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from fairlane.experiments.model import Experiment
from fairlane.suites import cases, media
from fairlane.topologies import addressing
from fairlane.topologies.model import Port
from tools.traces import lte
from tools.traces.__main__ import RFC8869, SUITE
from tools.traces.lte import Lte
from tools.traces.wifi import Wifi

FILES = {path.stem: path for path in cases.files("rfc8869")}
CELLULAR = [name for name in FILES if name.startswith("2.")]
CELLS = [made for made in RFC8869 if isinstance(made, Lte)]
WIFI = [made for made in RFC8869 if isinstance(made, Wifi)]
USERS_DOWN = [0.7 * n for n in range(1, 16)]
USERS_UP = [0.7 * n for n in range(1, 11)]


def case(name: str, kind: str = "nada") -> cases.Case:
    return cases.load(FILES[name], kind)


def way(experiment: Experiment, flow: str = "media") -> tuple[Port, ...]:
    found = next(f for f in experiment.flows if f.name == flow)
    return addressing.path(experiment.topology, found.sender, found.receiver)


def read(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Times and rates of a committed trace."""
    with open(SUITE / name, newline="") as file:
        rows = list(csv.DictReader(file))
    return np.array([float(r["time_s"]) for r in rows]), np.array([float(r["rate_bps"]) for r in rows])


# ---------------------------------------------------------------------------------------------------------------------- cases


@pytest.mark.parametrize("name", FILES)
def test_every_case_says_what_it_leaves_out(name: str) -> None:
    found = case(name)
    assert found.suite.case == name and found.suite.says and found.suite.cannot_in_any and found.suite.expect
    for flow in found.experiment.flows:
        if flow.name.startswith("media"):  # the source of [RFC 8867 sec 4.3]
            source = flow.settings.source
            assert (source.kind, source.min_rate_bps, source.max_rate_bps) == ("film", 150e3, 1.5e6)
    videos, audios = ([f for f in found.experiment.flows if f.name.startswith(kind)] for kind in ("media", "audio"))
    assert len(videos) == len(audios) > 0
    assert {f.kind for f in case(name, "scream").experiment.flows if f.name.startswith("media")} == {"scream"}


@pytest.mark.parametrize("name", CELLULAR)
def test_cellular_cases_have_the_rfcs_times(name: str) -> None:
    """91 s, evaluated from 30 to 60 s, a call of 30 s; a round trip of 40 or 150 ms; the radio is the bottleneck [RFC 8869 sec 2.1.2]."""
    experiment = case(name).experiment
    assert experiment.duration_s == 91 and {(f.start_s, f.stop_s) for f in experiment.flows} == {(30.0, 60.0)}
    ports = way(experiment)
    assert 2 * sum(p.link.delay_s for p in ports) == pytest.approx(0.15 if name in ("2.1-down-105", "2.1-up-070") else 0.04)
    assert [p.link.rate_bps for p in ports if p.trace is None] == [10e9, 10e9]  # the wired connection


def test_cellular_traces_are_those_of_their_cases() -> None:
    for name in CELLULAR:
        trace = next(p.trace for p in way(case(name).experiment) if p.trace is not None)
        made = next(made for made in CELLS if made.name == trace.name)
        assert made.name == f"_{name}.csv" and made.uplink == ("-up-" in name)
        assert made.intensity == pytest.approx(float(name[-3:]) / 10)


def test_wired_bottleneck_of_3_1() -> None:
    """1 Mb/s, 50 ms one way, 300 ms of queue, at most 30 ms of jitter, no loss, 120 s [RFC 8869 sec 3.1.2]; flows of [RFC 8869 sec 3.1.3]."""
    for name in (name for name in FILES if name.startswith("3.1-")):
        experiment = case(name).experiment
        ports = way(experiment, next(f.name for f in experiment.flows if f.name.startswith("media")))
        assert experiment.duration_s == 120 and sum(p.link.delay_s for p in ports) == pytest.approx(0.05)
        (trunk,) = (p.link for p in ports if p.link.rate_bps == 1e6)
        assert trunk.queue_packets * 8000 / 1e6 == pytest.approx(0.3, rel=0.015) and trunk.queue == "droptail"
        assert sum(3 * p.link.jitter_std_s for p in ports) == pytest.approx(0.03) and all(p.link.loss == 0 for p in ports)
        assert {f.stop_s for f in experiment.flows if f.name.startswith("media")} == {119.0}
    beside = {
        n: [(f.kind, f.start_s, f.stop_s) for f in case(f"3.1-{n}").experiment.flows if f.name in ("background", "long")]
        for n in (1, 2, 3, 4, 5)
    }
    assert beside == {1: [], 2: [], 3: [("cbr", 0, 60)], 4: [("cbr", 60, 119)], 5: [("tcp-newreno", 0, 119)]}


def sides(experiment: Experiment, name: str) -> list[int]:
    """Flows of a name in the uplink, and in the downlink."""
    first = [addressing.path(experiment.topology, f.sender, f.receiver)[0].peer for f in experiment.flows if f.name.startswith(name)]
    return [first.count("s1"), first.count("s2")]


def test_flows_of_3_2() -> None:
    """N and M, and the times of the background [RFC 8869 sec 3.2.3]."""
    for name, media_flows in (
        ("both", [8, 8]),
        ("on-off", [8, 8]),
        ("off-on", [8, 8]),
        ("tcp", [8, 8]),
        ("up", [16, 0]),
        ("down", [16, 0]),
    ):
        experiment = case(f"3.2-{name}").experiment
        assert sides(experiment, "media") == media_flows and experiment.duration_s == 120
        assert {f.stop_s for f in experiment.flows if f.name.startswith("media")} == {119.0}
    times = {
        name: [(f.kind, f.start_s, f.stop_s) for f in case(f"3.2-{name}").experiment.flows if f.name.startswith(("background", "long"))]
        for name in ("on-off", "off-on", "tcp")
    }
    assert times == {"on-off": [("cbr", 0, 60)] * 5, "off-on": [("cbr", 61, 119)] * 5, "tcp": [("tcp-newreno", 40, 80)] * 5}
    assert all(sides(case(f"3.2-{name}").experiment, start)[1] == 0 for name, start in (("on-off", "background"), ("tcp", "long")))
    for n in (4, 8, 12, 20):
        flows = [f for f in case(f"3.2-down-{n:02}").experiment.flows if f.name.startswith("media")]
        assert len(flows) == n and all(0 <= f.start_s <= 10 and 110 <= f.stop_s <= 120 for f in flows)
        assert len({f.start_s for f in flows}) == n


@pytest.mark.parametrize("name", ["3.2-down", "3.2-up", "3.2-tcp"])
def test_the_benchmark_is_as_many_tcp_flows(name: str) -> None:
    found = case(name)
    assert found.reference is not None
    videos = [(f.sender, f.receiver, f.start_s, f.stop_s) for f in found.experiment.flows if f.name.startswith("media")]
    assert videos == [
        (f.sender, f.receiver, f.start_s, f.stop_s)
        for f in found.reference.flows
        if f.kind == "tcp-newreno" and f.name != "long" and f.name.startswith("measured")
    ]
    assert found.reference.topology == found.experiment.topology


# ----------------------------------------------------------------------------------------------------------------------- traces


@pytest.mark.parametrize("made", RFC8869, ids=lambda made: made.name)
def test_traces_are_what_the_tool_makes(made: Lte | Wifi) -> None:
    """Their beginnings; `python -m tools.traces --rfc8869` writes all of them."""
    begun = made.text(lte.EVALUATED_S[0] + 0.5 if isinstance(made, Lte) else 1.0).splitlines()
    rows = begun[:-1] if isinstance(made, Lte) else begun
    committed = (SUITE / made.name).read_text().splitlines()
    assert len(rows) > 10 and committed[: len(rows)] == rows


@pytest.mark.parametrize("made", CELLS, ids=lambda made: made.name)
def test_cells_are_set_up_as_the_rfc_says(made: Lte) -> None:
    """[RFC 8869 sec 2.1.2, 2.2.2]: radius, speed, intensity, other traffic."""
    bad = made.name.startswith("_2.2")
    assert made.radius_m == pytest.approx(577.3333 if bad else 166.666)
    assert made.speed_kmh == 3 or (made.speed_kmh == 30 and not bad)
    intensities = USERS_UP if made.uplink or bad else USERS_DOWN
    assert any(math.isclose(made.intensity, value) for value in intensities)
    assert made.web_bps == (1e6 if bad else 2e6) * (1 if made.uplink else 2)
    assert (lte.SITES * lte.SECTORS, lte.CALL_S, lte.EVALUATED_S) == (21, 30.0, (30.0, 60.0))


def test_users_arrive_as_a_poisson_process_and_stay_for_a_call() -> None:
    """Over 200 seeds: as many arrivals a second as the intensity, with a variance that is their mean; gaps are exponential; after 30 s the number of users is the
    intensity times the call, 5 for each of 21 cells with 3.5 users/s."""
    made = [Lte("x", seed, False, 3.5, 166.666, 3.0, 4e6).users()[22:] for seed in range(200)]
    counts = np.array([sum(u.arrives_s < 30 for u in users) for users in made])
    assert counts.mean() == pytest.approx(105, abs=3) and counts.var() == pytest.approx(105, rel=0.3)
    gaps = np.concatenate([np.diff([u.arrives_s for u in users]) for users in made])
    assert gaps.mean() == pytest.approx(1 / 3.5, rel=0.03) and gaps.std() == pytest.approx(gaps.mean(), rel=0.05)
    present = np.array([[sum(u.arrives_s <= t < u.leaves_s for u in users) for t in (30, 45, 59)] for users in made])
    assert present.mean(axis=0) == pytest.approx([105] * 3, abs=3)
    assert all(u.leaves_s - u.arrives_s == pytest.approx(30) for u in made[0])


def test_users_move_at_their_speed_and_begin_all_over_the_cells() -> None:
    for speed_kmh in (3.0, 30.0):
        users = Lte("x", 1, False, 10.5, 166.666, speed_kmh, 4e6).users()[22:]
        moved = [math.dist(u.at(u.arrives_s), u.at(u.arrives_s + 3.6)) for u in users]
        assert moved == pytest.approx([speed_kmh] * len(users))  # m in 3.6 s are km in an hour
    centre = [u for seed in range(40) for u in Lte("x", seed, False, 10.5, 166.666, 3.0, 4e6).users()[:1]]
    far_m = np.array([math.hypot(u.x_m, u.y_m) for u in centre])
    hexagon_m2 = math.sqrt(27) / 2 * (math.sqrt(3) * 166.666) ** 2  # of a site, 500 m from the next
    assert far_m.max() < math.sqrt(hexagon_m2 / math.pi) and np.mean(far_m**2) == pytest.approx(hexagon_m2 / math.pi / 2, rel=0.3)


def test_more_users_and_bad_coverage_leave_less() -> None:
    """Varying load, and radio coverage: the mean over seeds of what one user has [RFC 8869 sec 2.1, 2.2]."""

    def mean_bps(uplink: bool, intensity: float, radius_m: float, web_bps: float) -> float:
        return float(
            np.mean([rate for seed in range(6) for _, rate in Lte("x", seed, uplink, intensity, radius_m, 3.0, web_bps).rows(32.0)])
        )

    light, heavy = (mean_bps(False, users, 166.666, 4e6) for users in (0.7, 7.0))
    assert light > 1.5 * heavy
    near, far = (mean_bps(True, 0.7, radius_m, 1e6) for radius_m in (166.666, 577.3333))
    assert near > 3 * far


def test_fading_forgets_as_fast_as_users_move() -> None:
    """J0 at 2 GHz and 5 ms: 3 km/h is 5.56 Hz of Doppler, J0(0.175) = 0.9924; 30 km/h J0(1.746) = 1 - 0.7625 + 0.1453 - 0.0123
    + 0.0006 = 0.3711; its first zero is at 2.405."""
    assert lte._bessel(0.1746) == pytest.approx(0.9924, abs=1e-4)
    assert lte._bessel(1.7464) == pytest.approx(0.3711, abs=2e-4)
    assert lte._bessel(2.404825558) == pytest.approx(0.0, abs=1e-6) and lte._bessel(3.0) == 0.0


def test_wifi_carries_about_20_mbps() -> None:
    """[RFC 8869 sec 3.2.3]: around 20 Mb/s for applications with 16 flows from the access point, and less when 16 stations contend."""
    down, up = (read(f"_3.2-{way}.csv")[1].mean() for way in ("down", "up"))
    assert down == pytest.approx(20e6, rel=0.1) and up < 0.95 * down
    assert {made.down + made.up for made in WIFI} == {16} and all(made.flow_bps >= 1.5e6 for made in WIFI)


def test_one_frame_of_1000_bytes_takes_345_us() -> None:
    """By hand: 34 us of silence, 7.5 slots of 9 us on average, a preamble of 36 us, ceil((8 x 1044 + 22) / 208) = 41 symbols of 4 us, 16 us, 28 us: 345.5 us, 23.2 Mb/s
    without feedback; a sender that offers more has just that."""
    rates = [rate for _, rate in Wifi("x", 1, "up", 0, 1, flow_bps=50e6).rows(5.0)]
    assert np.mean(rates) == pytest.approx(8000 / 345.5e-6, rel=0.01)


def test_senders_offer_no_more_than_their_flows() -> None:
    rates = [rate for _, rate in Wifi("x", 1, "up", 0, 4).rows(20.0)]
    assert np.mean(rates) == pytest.approx(4 * 1.536e6, rel=0.01)


def test_more_stations_collide_more() -> None:
    """Two stations draw the same slot of 16 once in 16 times, and more often with 16 stations: throughput falls, though not by the whole of it, as windows double."""
    one, two, many = (np.mean([rate for _, rate in Wifi("x", 1, "up", 0, n, flow_bps=50e6).rows(10.0)]) for n in (1, 2, 16))
    assert 0.7 * one < many < two < one * 1.1


@pytest.mark.parametrize(
    ("name", "busy", "free"), [("on-off", (10, 60), (70, 120)), ("off-on", (70, 119), (10, 60)), ("tcp", (45, 80), (90, 119))]
)
def test_background_takes_the_air_while_it_is_there(name: str, busy: tuple[int, int], free: tuple[int, int]) -> None:
    """Five stations more: the uplink carries more, and leaves the access point less."""

    def mean_bps(way: str, when: tuple[int, int]) -> float:
        times_s, rates = read(f"_3.2-{name}-{way}.csv")
        return float(rates[(times_s >= when[0]) & (times_s < when[1])].mean())

    assert mean_bps("up", busy) > 1.2 * mean_bps("up", free) and mean_bps("down", busy) < 0.7 * mean_bps("down", free)


# ---------------------------------------------------------------------------------------------------------------------- figures


def test_use_of_a_trace_is_of_what_there_is_in_each_interval(tmp_path: Path) -> None:
    """A second of 6 Mb/s and one of nothing in turn, for a flow of at most 1.5 Mb/s: in the seconds from 45 to 60, of which seven
    have it, 0.7 Mb/s are available, not 1.5."""
    pytest.importorskip("fairlane.native", reason="the module fairlane.native is not built: make build")
    for path in SUITE.glob("_*"):
        (tmp_path / path.name).write_text(path.read_text())
    lines = "".join(f"{t},{rate}\n" for t, rate in enumerate(itertools.islice(itertools.cycle((6_000_000, 0)), 90)))
    (tmp_path / "_2.1-down-035.csv").write_text(f"time_s,rate_bps\n{lines}90,6000000\n")
    (tmp_path / "2.1-down-035.toml").write_text(FILES["2.1-down-035"].read_text())
    judged = cases.run(cases.load(tmp_path / "2.1-down-035.toml", "cbr"))
    (phase,) = judged.phases
    assert (phase.start_s, phase.end_s) == (30.0, 60.0)
    # The audio has 36 kb/s of its own; one opportunity an interval is the least of a trace.
    assert phase.available_bps == pytest.approx(0.7e6, rel=0.01)
    assert media.totals([phase])["least_use"] == phase.use
