"""Circuit breakers of flows [RFC 8083]: settings, refusals, and runs from end to end. By themselves they are tested in `switch/net/endpoint/tests/circuit_breaker.rs`."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from fairlane import api, probes
from fairlane.hosts import agent
from fairlane.hosts.circuit_breaker import CircuitBreaker
from fairlane.inputs.located_toml import ConfigError
from fairlane.specs import Breaker

CEASE = '.circuit_breaker={action="cease"}'


def run(tmp_path: Path, kind: str, duration_s: float, *settings: str, seed: int = 1) -> tuple[list[dict], list[dict]]:
    """The records of the only flow's sender and receiver, over 1 Mb/s and 40 ms."""
    folder = tmp_path / "out"
    api.run(
        "dumbbell", f"{kind}:1", duration_s=duration_s, seed=seed, settings=settings, out=folder,
        bottleneck="1mbit", rtt="40ms", buffer="50", side_rate="100mbit",
    )  # fmt: skip
    (sender,), (receiver,) = (list(folder.glob(f"**/raw/*.{role}.jsonl")) for role in ("sender", "receiver"))
    return _lines(sender), _lines(receiver)


def _lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def of(records: list[dict], kind: str) -> list[dict]:
    return [record for record in records if record["kind"] == kind]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_cbr_of_ten_times_the_bottleneck_ceases_by_the_formula(tmp_path: Path, seed: int) -> None:
    """[RFC 8083 sec 4.3]: CB_INTERVAL = ceil(3 min(max(10 Tf, 10 Tr, 15), 15) / 15) = 3, so the fourth report is the first that can trip,
    and it does. The receiver's reports come 2.05 s apart or more [RFC 3550 sec 6.3.1], the first of them 1.0 s after it heard the sender."""
    sender, receiver = run(tmp_path, "cbr", 60, "cbr.rate_bps=10000000", f"cbr{CEASE}", seed=seed)
    (trip,) = of(sender, "circuit_breaker")
    assert (trip["cause"], trip["action"]) == ("congestion", "cease")
    # Nine of ten packets are lost. X by hand, of RTP packets of 972 bytes. The sender's reports are lost, too: where none came through,
    # a round trip counts as 0.25 s; else the queue of 50 packets is full, 50 x 8 ms more than the path.
    assert trip["loss"] == pytest.approx(0.9, abs=0.01)
    assert trip["rtt_s"] is None or trip["rtt_s"] == pytest.approx(0.44, abs=0.04)
    assert trip["tcp_bps"] == pytest.approx(8 * 972 / ((trip["rtt_s"] or 0.25) * math.sqrt(2 * trip["loss"] / 3)), rel=1e-9)
    assert trip["packets_bps"] == pytest.approx(10e6 * 972 / 1000, rel=0.001)
    (start,), (end,) = of(sender, "start"), of(sender, "end")
    assert end["t"] == trip["t"] and end["rtcp_received_packets"] == 4
    assert 1.0 + 3 * 2.05 <= trip["t"] - start["t"] <= 3.1 + 3 * 12
    # From then on nothing is sent, and what was on its way has arrived within the queue's 0.4 s.
    assert of(receiver, "data")[-1]["received_packets"] == next(
        record["received_packets"] for record in of(receiver, "data") if record["t"] > trip["t"] + 0.6
    )


def test_a_flow_that_the_path_carries_never_trips(tmp_path: Path) -> None:
    """An algorithm without RTCP of its own, and one with; TFRC fills the path."""
    for kind, settings in (("cbr", ["cbr.rate_bps=900000"]), ("tfrc", []), ("daa", [])):
        sender, receiver = run(tmp_path / kind, kind, 120, *settings, f"{kind}{CEASE}")
        assert not of(sender, "circuit_breaker") and of(sender, "end")[0]["t"] == pytest.approx(of(sender, "start")[0]["t"] + 120, abs=5)
        assert of(receiver, "end")[0]["rtcp_sent_packets"] > 15, "its reports"


def test_off_changes_nothing(tmp_path: Path) -> None:
    plain, _ = run(tmp_path / "plain", "cbr", 20, "cbr.rate_bps=2000000")
    off, _ = run(tmp_path / "off", "cbr", 20, "cbr.rate_bps=2000000", 'cbr.circuit_breaker={action="off"}')
    assert plain == off and of(plain, "end")[0]["rtcp_sent_packets"] == 0


def test_settings_are_spelled_and_refused() -> None:
    chosen = CircuitBreaker("cease", usable_loss=0.1, unusable_s=5.0)
    assert CircuitBreaker.parse(chosen.text()) == chosen
    assert CircuitBreaker.parse("reduce").native() == Breaker(True, None, None, 10.0) and CircuitBreaker().native() is None
    for text, message in (
        ("stop", "'stop' is none of off, cease, reduce"),
        ("cease:loss=1", "'loss=1': a circuit breaker knows usable_loss=, usable_rtt_s=, unusable_s="),
        ("cease:usable_loss=1", "usable_loss: must be at least 0 and below 1, got 1"),
        ("cease:unusable_s=0", "unusable_s: must be positive and finite, got 0"),
        ("off:usable_loss=0.1", 'action: give "cease" or "reduce"'),
    ):
        with pytest.raises(ValueError, match=message.replace("(", r"\(")):
            CircuitBreaker.parse(text)


@pytest.mark.parametrize(("algorithm", "source"), [("none", "cbr"), ("als-layered", "persistent")])
def test_it_is_for_one_receiver_over_rtp(algorithm: str, source: str, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = ["--role", "sender", "--local", "10.0.0.1", "--peer", "10.0.0.2", "--algorithm", algorithm, "--source", source]
    with pytest.raises(SystemExit) as caught:
        agent.main([*wanted, "--circuit-breaker", "cease"])
    assert caught.value.code == 2
    assert f"for a flow over RTP with one receiver, not for {algorithm}" in capsys.readouterr().err


def test_layers_are_refused_with_file_and_key(tmp_path: Path) -> None:
    text = (probes.ROOT / "experiments/als-8.toml").read_text()
    file = tmp_path / "layers.toml"
    file.write_text(text.replace("[als-layered]\n", '[als-layered]\ncircuit_breaker = { action = "cease" }\n', 1))
    with pytest.raises(ConfigError, match=r"layers\.toml.*circuit_breaker.*one receiver") as caught:
        api.run(file)
    assert "leave it" in str(caught.value)
