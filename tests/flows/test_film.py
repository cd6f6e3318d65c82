"""A film in a flow: what of it is read from records, modelled in virtual time, and encoded and decoded by GStreamer."""

from __future__ import annotations

import json
import re
import select
import struct
import subprocess
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fairlane import probes
from fairlane.cli import app
from fairlane.errors import CANNOT_RUN_HERE, Refusal
from fairlane.fabrics.places import VIRTUAL
from fairlane.films import carry_out, pictures, quality
from fairlane.films.model import Wanted
from fairlane.films.pictures import Film
from fairlane.hosts import film as beside
from fairlane.hosts.sources import Source
from fairlane.results import frames
from fairlane.results.frames import Frame, Quality

has_switch = all(probes.program(name) for name in ("fairlane-switch", "fairlane-compile"))
needs_gstreamer = pytest.mark.skipif(beside.missing() is not None, reason=f"needs GStreamer: {beside.missing()} is missing")
needs_ffmpeg = pytest.mark.skipif(probes.program("ffmpeg") is None, reason="needs ffmpeg (apt-get install ffmpeg)")


def records(folder: Path, lost: frozenset[int]) -> None:
    """Pictures 0 to 9 but 5, each 40 ms, of two packets that come 30 and 50 ms after it; of those in `lost` one packet is missing."""
    sender = [{"kind": "start", "t": 0.0, "mono_s": 100.0}]
    receiver = []
    for n in (0, 1, 2, 3, 4, 6, 7, 8, 9):
        produced_ns = 100_000_000_000 + n * 40_000_000
        sender.append(
            {"kind": "frame_produced", "timestamp": 3600 * n, "packets": 2, "bytes": 1000, "produced_ns": produced_ns, "encoder_bps": 2e5}
        )
        packets, last = (1, 30) if n in lost else (2, 50)
        receiver.append({
            "kind": "frame_arrived", "timestamp": 3600 * n, "packets": packets, "bytes": 500 * packets, "produced_ns": produced_ns,
            "first_ns": produced_ns + 30_000_000, "last_ns": produced_ns + last * 1_000_000,
        })  # fmt: skip
    for role, lines in (("sender", sender), ("receiver", receiver)):
        (folder / f"film.{role}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_frames_are_read_from_the_records_of_both_ends(tmp_path: Path) -> None:
    records(tmp_path, frozenset({2, 3, 4}))
    found = frames.read(tmp_path, "film", 25)
    assert [f.number for f in found] == [0, 1, 2, 3, 4, 6, 7, 8, 9]
    assert found[1] == Frame(1, 0.04, 2, 1000, 2e5, 2, 0.09, 0.09)
    assert (found[2].whole, found[2].shown_s) == (False, None)
    # From picture 1, there at 90 ms, to picture 6, there at 290 ms: 200 ms, and 190 are allowed at 25 a second.
    assert frames.freezes(found, 25) == [(pytest.approx(0.09), pytest.approx(0.29))]
    figures = frames.figures(found, {0: Quality(0.9, 30.0), 1: Quality(0.7, 20.0)}, 0.4, 25)
    assert (figures["pictures"], figures["encoded"], figures["shown"], figures["incomplete"], figures["freezes"]) == (10, 9, 6, 3, 1)
    assert figures["delay_median_s"] == pytest.approx(0.05) and figures["frozen_s"] == pytest.approx(0.2)
    assert figures["encoded_bps"] == pytest.approx(8 * 9000 / 0.4)
    assert figures["ssim_mean"] == pytest.approx(0.8) and figures["psnr_mean_db"] == pytest.approx(25.0)
    screen = frames.on_screen(found, 0.2)
    assert screen is not None and screen.number == 1 and frames.on_screen(found, 0.01) is None


def test_a_decoder_says_itself_when_pictures_were_there(tmp_path: Path) -> None:
    records(tmp_path, frozenset({2}))
    (tmp_path / "film.receiver.shown.jsonl").write_text(
        '{"timestamp": 0, "shown_ns": 100060000000}\n{"timestamp": 7200, "shown_ns": 100150000000}\n'
    )
    found = frames.read(tmp_path, "film", 25)
    # The damaged picture 2 was shown, the whole picture 1 was not.
    assert [f.shown_s for f in found[:3]] == [pytest.approx(0.06), None, pytest.approx(0.15)]


@pytest.mark.parametrize(
    ("text", "said"),
    [("2mbit@1s", "the first rate"), ("2mbit,1mbit", "each other one"), ("2mbit,x@3", "no rate"), ("2mbit,1mbit@5,3mbit@4", "must rise")],
)
def test_rates_that_cannot_be_are_refused(text: str, said: str) -> None:
    with pytest.raises(Refusal, match=said):
        carry_out.rates(text)


def test_rates_and_the_experiment_of_them() -> None:
    rates = carry_out.rates("2mbit,1mbit@20s, 500kbit@90")
    assert rates == ((0.0, 2e6), (20.0, 1e6), (90.0, 5e5))
    wanted = Wanted(("als",), rates, 0.04, None, 60.0, None, VIRTUAL, 1)
    chosen, text = carry_out.experiment("als", wanted, None)
    # 0.2 s of 2 Mb/s in packets of 1000 bytes; the change at 90 s is after the end.
    assert "queue_packets = 50 }" in text
    # Both fabrics' encoders have the same key frames; the model of RFC 8593 alone has none.
    assert "key_interval_s = 2.0" in text and Source("film").key_interval_frames is None
    assert len(chosen.changes) == 1 and chosen.flows[0].settings.source.kind == "film"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["als-layered"], "a layered flow goes to groups"),
        (["scraem"], "no rate-adaptation algorithm of that name.*scream"),
        (["tcp-reno"], "no rate-adaptation algorithm"),
        (["als", "--film", "x.mp4"], "modelled, without pictures"),
        (["als", "--rate", "fast"], "'fast' is no rate"),
    ],
)
def test_what_cannot_be_sent_is_refused(arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(app, ["film", *arguments])
    assert isinstance(done.exception, Refusal) and re.search(said, str(done.exception))


def test_a_source_says_what_is_wrong_with_it() -> None:
    assert Source.parse(Source("film", file="a/b.y4m", min_rate_bps=1e5).text()) == Source("film", file="a/b.y4m", min_rate_bps=1e5)
    for text, said in (
        ("film:file=a,b", "knows"),
        ("film:min_rate_bps=1e9", "at most max_rate_bps"),
        ("film:key_interval_s=0.1", "8 frames or more"),
    ):
        with pytest.raises(ValueError, match=said):
            Source.parse(text)


@pytest.mark.skipif(not has_switch, reason="needs the switch and the compiler (make build)")
def test_modelled_frames_follow_the_rate_in_virtual_time(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        app, ["film", "nada", "scream", "--rate", "2mbit,1mbit@20s", "--seconds", "40", "--out", str(tmp_path / "out")]
    )
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "out" / "film.json").read_text())
    for flow in found["flows"]:
        early = [f for f in flow["frames"] if 12 <= f["produced_s"] < 20]
        late = [f for f in flow["frames"] if 25 <= f["produced_s"] < 40]
        rate = {name: 8e-6 * sum(f["bytes"] for f in part) / seconds for name, part, seconds in (("early", early, 8), ("late", late, 15))}
        assert 1.0 < rate["early"] < 2.0 and 0.5 < rate["late"] < 1.0, (flow["algorithm"], rate)
        assert flow["figures"]["ssim_mean"] is None and flow["figures"]["shown"] > 900
        # 20 ms of propagation, and a frame's transmission, at least.
        assert 0.02 < flow["figures"]["delay_median_s"] < 0.3
    page = (tmp_path / "out" / "index.html").read_text()
    assert page.count("<svg") == 2 and "Virtual time" in page


def drawn(folder: Path, seconds: float = 4.0) -> Film:
    return pictures.make(None, seconds, folder)


def through(film: Film, folder: Path, seconds: float, rate_bps: int, loses: frozenset[int] = frozenset()) -> list[tuple[int, bytes]]:
    """Encoder and decoder with nothing between them but losses: packets by their number. Instant (ns) and RTP packet of each."""
    source = Source("film", file=str(film.path), min_rate_bps=100_000.0)
    sent = []
    encoder = beside.encoder(source, 1000, time.monotonic_ns() + 500_000_000)
    decoder = beside.decoder(str(folder / "film.receiver.jsonl"))
    end_s = time.monotonic() + 0.5 + seconds
    while time.monotonic() < end_s:
        encoder.socket.send(struct.pack(">QQQ", rate_bps, rate_bps, 0))
        while select.select([encoder.socket], [], [], 0.02)[0]:
            message = encoder.socket.recv(1 << 16)
            sent.append((struct.unpack_from(">Q", message)[0], message[8:]))
            if len(sent) not in loses:
                decoder.socket.send(struct.pack(">Q", time.monotonic_ns()) + message[8:])
    encoder.close()
    decoder.close()
    return sent


@needs_gstreamer
@needs_ffmpeg
@pytest.mark.parametrize("rate_bps", [300_000, 1_500_000])
def test_the_encoder_keeps_the_rate_that_it_is_told(tmp_path: Path, rate_bps: int) -> None:
    sent = through(drawn(tmp_path), tmp_path, 4.0, rate_bps)
    assert max(len(packet) for _, packet in sent) <= 1000 - beside.HEADERS_BYTES
    first_ns = sent[0][0]
    mean_bps = 8 * sum(len(packet) for at, packet in sent if at - first_ns >= 1e9) / ((sent[-1][0] - first_ns) / 1e9 - 1 + 0.04)
    assert mean_bps == pytest.approx(rate_bps, rel=0.2)


@needs_gstreamer
@needs_ffmpeg
@pytest.mark.long
def test_quality_falls_with_the_rate_and_with_losses(tmp_path: Path) -> None:
    film = drawn(tmp_path)
    means = {}
    for name, rate_bps, loses in (
        ("high", 1_500_000, frozenset[int]()),
        ("low", 200_000, frozenset()),
        ("lossy", 1_500_000, frozenset(range(150, 260))),
    ):
        folder = tmp_path / name
        folder.mkdir()
        sent = through(film, folder, 4.0, rate_bps, loses)
        # An encoder that had no processor goes on with the picture of the present: those before may lack some, also the first.
        encoded = {struct.unpack_from(">I", packet, 4)[0] * 25 // frames.CLOCK_HZ for _, packet in sent}
        kept: dict[int, bytes] = {}
        found = quality.measure(folder / "film.receiver.packets", film, 90, {30}, kept.__setitem__)
        assert list(found) == list(range(min(encoded), 90)) and len(found) > 60
        assert len(kept[30]) == film.picture_bytes
        means[name] = sum(q.ssim for q in found.values()) / len(found)
        shown = (folder / "film.receiver.shown.jsonl").read_text().count("\n")
        assert shown > 0.6 * len(encoded) if name == "lossy" else shown == len(encoded)
    assert means["high"] > 0.9 and means["low"] < means["high"] - 0.05 and means["lossy"] < means["high"] - 0.05, means


@needs_ffmpeg
def test_a_file_that_is_no_film_is_named(tmp_path: Path) -> None:
    (tmp_path / "no.mp4").write_text("no film")
    with pytest.raises(Refusal, match=r"no\.mp4: ffmpeg cannot read it"):
        pictures.make(tmp_path / "no.mp4", 2.0, tmp_path)
    with pytest.raises(Refusal, match="there is no such file"):
        pictures.make(tmp_path / "none.mp4", 2.0, tmp_path)


def test_where_gstreamer_is_missing_one_sentence_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "PYTHON", "/nowhere/python3")
    monkeypatch.setattr(pictures, "ffmpeg", lambda: "ffmpeg")
    done = CliRunner().invoke(app, ["film", "als", "--fabric", "mininet", "--out", str(tmp_path / "out")])
    assert isinstance(done.exception, Refusal) and done.exception.code == CANNOT_RUN_HERE
    assert re.search(r"needs GStreamer.*/nowhere/python3.*apt-get install python3-gi", str(done.exception))
    assert not list(tmp_path.iterdir()), "nothing is left"


@needs_gstreamer
def test_the_program_beside_says_why_it_ended(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.y4m").write_bytes(b"nothing\n")
    encoder = beside.encoder(Source("film", file=str(tmp_path / "x.y4m")), 1000, time.monotonic_ns())
    with pytest.raises(beside.FilmError, match="exit code 1"):
        encoder._process.wait(60)  # before its socket is closed
        encoder.close()
    assert "not YUV4MPEG2" in capfd.readouterr().err


@pytest.mark.root
@pytest.mark.timeout(180)
@pytest.mark.skipif(not probes.is_root(), reason="needs root")
@pytest.mark.skipif(not probes.has_mininet(), reason="needs Mininet (apt-get install mininet)")
@pytest.mark.skipif(not has_switch, reason="needs the switch and the compiler (make build)")
@needs_gstreamer
@needs_ffmpeg
@pytest.mark.long
def test_a_film_on_mininet(tmp_path: Path) -> None:
    done = subprocess.run(
        [probes.program("fairlane") or "fairlane", "film", "scream", "--rate", "1500kbit", "--seconds", "12", "--fabric", "mininet", "--grpc-port", "29759", "--out", str(tmp_path / "out")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (flow,) = json.loads((tmp_path / "out" / "film.json").read_text())["flows"]
    # A machine that is short of processors loses some; what is compared is still the film.
    assert flow["figures"]["shown"] > 200 and flow["figures"]["encoded"] <= 300
    assert 0.3 < flow["figures"]["ssim_mean"] <= 1.0
    # Two seconds are a group of pictures. How far SCReAM's rate rises is the machine's affair: what lets a packet wait takes 5 s of fast increase
    # [RFC 8298 sec 4.1.2.7]. That the encoder makes what SCReAM allows is ours.
    encoded = [f for f in flow["frames"] if f["packets"]]
    assert max(f["encoder_bps"] for f in encoded) > 1.2 * encoded[0]["encoder_bps"], "SCReAM's rate never rose"
    for begin in range(0, 12, 2):
        group = [f for f in encoded if begin <= f["produced_s"] < begin + 2]
        allowed_bytes = sum(f["encoder_bps"] for f in group) / 25 / 8
        assert len(group) < 40 or 0.6 < sum(f["bytes"] for f in group) / allowed_bytes < 1.3, f"the encoder's rate from {begin} s on"
    assert (tmp_path / "out" / "side-by-side.mp4").stat().st_size > 10_000
