"""The command lines: good rates parse, bad arguments end with exit code 2 and a sentence."""

from __future__ import annotations

import pytest

from fairlane.hosts import agent, tcp_iperf3
from fairlane.hosts.arguments import parse_rate
from fairlane.hosts.sources import Source

GOOD = ["--role", "sender", "--local", "127.0.0.1", "--peer", "127.0.0.2"]


@pytest.mark.parametrize(
    ("text", "rate_bps"), [("10mbit", 10e6), ("500kbit", 500e3), ("1.5Gbit", 1.5e9), ("8000", 8000.0), ("64 ".strip(), 64.0)]
)
def test_rates(text: str, rate_bps: float) -> None:
    assert parse_rate(text) == rate_bps


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--max-rate", "10mbps"], "'10mbps' is no rate: write a positive number of bit/s"),
        (["--max-rate", "0"], "'0' is no rate"),
        (["--duration", "-1"], "'-1': a positive number of seconds"),
        (["--duration", "nan"], "'nan': a positive number of seconds"),
        (["--port", "5005"], "'5005': RTP data uses an even port from 2 to 65534, RTCP the next one"),
        (["--packet-bytes", "40"], "'40': from 56"),
        (["--peer", "10.0.0.256"], "'10.0.0.256' is no IPv4 or IPv6 address"),
        (["--ssrc", "-1"], "'-1': an SSRC is a number from 0 to 4294967295"),
        (["--pacing-jitter", "2"], "'2': a fraction from 0 to 1"),
        (["--param", "air=5"], "--param air=5: als knows max_rate_bps=, desired_rate_bps=, initial_air_bps="),
        (["--param", "initial_air_bps=x"], "--param initial_air_bps=x: 'x' is no number"),
        (["--param", "min_rate_bps=0"], "AlsParameters.min_rate_bps = 0.0: must be positive and finite"),
        (["--start-at", "10", "--stop-at", "9"], "--stop-at 9.0 is not after --start-at 10.0"),
        (["--stop-at", "9", "--duration", "9"], "not allowed with argument"),
        (["--source", "radio"], "'radio' is none of persistent, cbr, on-off, renewal, mpeg4"),
        (["--source", "cbr:rate=5"], "'rate=5': a source knows rate_bps=, on_s="),
        (["--source", "cbr:rate_bps=0"], "rate_bps: must be positive and finite, got 0"),
        (["--source", "on-off:shape=1"], "shape: Pareto periods with a finite mean need a shape above 1, got 1"),
        (["--algorithm", "none"], "--algorithm none sends what a source produces: give --source cbr, on-off, renewal or mpeg4"),
    ],
)
def test_bad_arguments_of_the_agent(more: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        agent.main([*GOOD, *more])
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "source",
    [
        Source(),
        Source("cbr", rate_bps=1.5e6),
        Source("on-off", shape=1.5, off_s=0.25),
        Source("renewal", gaps="pareto", shape=1.5, sizes="exponential", mean_bytes=300.0),
        Source("mpeg4", buffer_packets=30),
    ],
)
def test_a_source_reads_back(source: Source) -> None:
    assert Source.parse(source.text()) == source


def test_a_log_that_cannot_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert agent.main([*GOOD, "--log", "/nowhere/log"]) == 2
    assert capsys.readouterr().err == "fairlane.hosts.agent: cannot write the log /nowhere/log: No such file or directory\n"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--interval", "0.01"], "--interval 0.01: iperf3 takes 0.1 to 60 s"),
        (["--port", "0"], "--port 0: from 1 to 65535"),
        (["--stop-at", "1"], "--stop-at 1.0 is not after the start"),
    ],
)
def test_bad_arguments_of_the_tcp_flow(more: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        tcp_iperf3.main([*GOOD, *more])
    assert caught.value.code == 2
    assert message in capsys.readouterr().err
