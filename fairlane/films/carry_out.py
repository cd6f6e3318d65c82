"""`fairlane film`: the same film with each algorithm alone over the same link, one run after the other, and their page."""

from __future__ import annotations

import io
import itertools
import re
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from fairlane import execute, user_files
from fairlane.errors import Refusal
from fairlane.experiments import kinds, loader
from fairlane.experiments.model import Experiment
from fairlane.fabrics import preflight, virtual_fabric
from fairlane.fabrics.base import Settings
from fairlane.fabrics.interrupts import interruptible
from fairlane.films import page, pictures, quality
from fairlane.films.model import Shown, Wanted
from fairlane.films.pictures import Film
from fairlane.hosts import film as beside
from fairlane.hosts.algorithms import ALGORITHMS
from fairlane.hosts.arguments import parse_rate
from fairlane.inputs import located_toml, schema
from fairlane.results import fidelity, frames, made, result_folder
from fairlane.results.frames import Quality

FLOW = "film"
PACKET_BYTES = 1000
SENDER_PACKETS = 2000
"""That may wait in the sender: pictures are left out long before."""
BUFFER_S = 0.2
"""What the link's queue holds of the first rate, unless the user says otherwise."""


def rates(text: str) -> tuple[tuple[float, float], ...]:
    """((0, 2e6), (20, 1e6)) of "2mbit,1mbit@20s". Refusal."""
    found = []
    for n, part in enumerate(text.split(",")):
        match = re.fullmatch(r"([^@]+)(?:@([0-9.]+)s?)?", part.strip())
        try:
            if match is None or (n == 0) != (match[2] is None):
                raise ValueError("the first rate has no time, and each other one its own")
            found.append((float(match[2] or 0.0), parse_rate(match[1])))
        except ValueError as error:
            raise Refusal(f"--rate {text}: {error}: write 2mbit, or 2mbit,1mbit@20s") from None
    if any(a[0] >= b[0] for a, b in itertools.pairwise(found)):
        raise Refusal(f"--rate {text}: times must rise from 0 s on")
    return tuple(found)


def experiment(kind: str, wanted: Wanted, film: Film | None) -> tuple[Experiment, str]:
    """And the text of its file. ConfigError names what is wrong with it."""
    most_bps = max(rate for _, rate in wanted.rates)
    buffer = wanted.buffer_packets or max(10, round(BUFFER_S * wanted.rates[0][1] / 8 / PACKET_BYTES))
    # GStreamer's encoder and the model have the same key frames.
    source = {"kind": "film", "buffer_packets": SENDER_PACKETS, "max_rate_bps": 1.5 * most_bps, "key_interval_s": beside.KEY_INTERVAL_S}
    if film is not None:
        source |= {"file": str(film.path)}
    written = ", ".join(f"{key} = {_toml(value)}" for key, value in source.items())
    lines = [
        f"title = {_toml(f'A film by {kind}')}",
        'bottleneck = "s1->s2"',
        f"duration_s = {wanted.seconds}",
        f"seed = {wanted.seed}",
        "",
        "[topology]",
        'kind = "dumbbell"',
        "pairs = 1",
        f"bottleneck = {{ rate_bps = {wanted.rates[0][1]}, delay_s = {wanted.rtt_s / 2}, queue_packets = {buffer} }}",
        f"access = {{ rate_bps = {10 * most_bps}, delay_s = 0.0, queue_packets = 1000 }}",
        "",
        f"[{kind}]",
        f"packet_bytes = {PACKET_BYTES}",
        f"maximum_rate_bps = {1.5 * most_bps}",
        f"source = {{ {written} }}",
        "",
        "[[flows]]",
        f'name = "{FLOW}"',
        f'kind = "{kind}"',
    ]
    for at_s, rate_bps in wanted.rates[1:]:
        if at_s < wanted.seconds:
            lines += ["", "[[changes]]", f"at_s = {at_s}", 'link = "s1->s2"', f"rate_bps = {rate_bps}"]
    text = "\n".join(lines) + "\n"
    return loader.from_document(located_toml.parse(text, f"the film by {kind}"), f"film-{kind}"), text


def _toml(value: object) -> str:
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"' if isinstance(value, str) else str(value)


def kinds_of(algorithms: Sequence[str]) -> list[str]:
    """Flow kinds by their names, or of Python files. Refusal for what cannot carry a film."""
    found: list[str] = []
    for name in algorithms:
        found += user_files.use_algorithm(name) if name.endswith(".py") else [name]
    for kind in found:
        algorithm = kinds.algorithm(kind)
        if algorithm is None:
            near = schema.nearest(kind, ALGORITHMS)
            raise Refusal(f"{kind}: no rate-adaptation algorithm of that name{near}: 'fairlane list' shows them, and FILE.py adds your own")
        if algorithm.layered:
            raise Refusal(f"{kind}: a layered flow goes to groups; a film has one receiver")
    return list(dict.fromkeys(found))


def carry_out(wanted: Wanted, out: Path | None, console: Console) -> bool:
    """Runs all, writes film.json, the pictures and the page to `out`; whether all runs were true to their model. Refusal before anything runs."""
    chosen = kinds_of(wanted.algorithms)
    for kind in chosen:
        experiment(kind, wanted, None)
    if wanted.fabric.real_time:
        pictures.ffmpeg()
    else:
        virtual_fabric.check_built()
    folder = result_folder.ResultFolder.reserve(out, "film", wanted.seed)
    began_s = time.monotonic()
    try:
        with interruptible(), tempfile.TemporaryDirectory(prefix="fairlane-film-") as temporary:
            made.write(folder.work, user_files.of_experiments(experiment(kind, wanted, None)[0] for kind in chosen))
            film = None
            if wanted.fabric.real_time:
                # Root, Mininet and GStreamer are asked for before the film is drawn.
                lacking = beside.missing()
                if lacking is not None:
                    raise preflight.no_gstreamer("a film", lacking)
                film = pictures.make(wanted.film, wanted.seconds, Path(temporary))
                console.print(
                    f"film: {film.what}; made in {time.monotonic() - began_s:.1f} s", highlight=False, markup=False, soft_wrap=True
                )
            shown = [_run(kind, wanted, film, folder.work, console) for kind in chosen]
            if film is not None:
                quality.side_by_side(
                    [(one.frames, _packets(folder.work / one.kind)) for one in shown], film, wanted.seconds, folder.work / page.VIDEO
                )
            took_s = time.monotonic() - began_s
            page.write(wanted, shown, film, took_s, folder.work)
            final = folder.publish()
    except BaseException:
        folder.discard()
        raise
    console.print(_table(shown))
    for one in shown:
        for sentence in one.true.sentences():
            console.print(f"{one.kind}: {sentence}", highlight=False, markup=False, soft_wrap=True)
    console.print(f"{took_s:.0f} s; results: {final}/{page.PAGE}", highlight=False, soft_wrap=True)
    return all(one.true.verdict == "true" for one in shown)


def _run(kind: str, wanted: Wanted, film: Film | None, folder: Path, console: Console) -> Shown:
    began_s = time.monotonic()
    chosen, text = experiment(kind, wanted, film)
    ready = wanted.fabric.ready(chosen, Settings("embedded", first_grpc_port=wanted.grpc_port))
    verdicts: list[fidelity.Fidelity] = []
    execute.execute(ready, folder / kind, Console(file=io.StringIO()), judged=verdicts.append)
    if film is not None:
        text = text.replace(str(film.path), "film.y4m")
    (folder / kind / "experiment.toml").write_text(text, encoding="utf-8", newline="\n")
    ran_s = time.monotonic() - began_s
    raw = folder / kind / "raw"
    rate = pictures.FRAMES_PER_SECOND
    found = frames.read(raw, FLOW, rate)
    rated: dict[int, Quality] = {}
    stills: dict[float, Path] = {}
    if film is not None:
        at = {t: frame.number for t in page.instants(wanted) if (frame := frames.on_screen(found, t)) is not None}

        def keep(number: int, picture: bytes) -> None:
            for t, wanted_number in at.items():
                if wanted_number == number:
                    stills[t] = folder / f"{kind}-{t:g}s.jpg"
                    quality.save_jpeg(picture, film, stills[t])

        rated = quality.measure(_packets(folder / kind), film, round(wanted.seconds * rate), set(at.values()), keep)
    took_s = time.monotonic() - began_s
    console.print(
        f"{kind}: {wanted.seconds:g} s of film on {wanted.fabric} in {ran_s:.1f} s"
        + (f", quality of its frames in {took_s - ran_s:.1f} s" if film is not None else ""),
        highlight=False,
        soft_wrap=True,
    )
    return Shown(kind, chosen, found, rated, frames.figures(found, rated, wanted.seconds, rate), verdicts[-1], took_s, stills)


def _packets(results: Path) -> Path:
    """What the receiver of a run has kept."""
    return beside.kept(results / "raw" / f"{FLOW}.receiver.jsonl")[0]


def _table(shown: Sequence[Shown]) -> Table:
    """One line a flow is too wide for a terminal: one column a flow."""
    table = Table("", *(one.kind for one in shown))
    for head, cell in page.COLUMNS:
        table.add_row(head, *(cell(one.figures) for one in shown))
    return table
