"""How often a clean run is called untrue, and what verdicts a busy machine gets: runs on Mininet, in turns, each with its verdict and figures.

    python bench/fidelity.py clean [--runs 20] [--seconds 15]      # false alarms: different experiments, one after the other
    python bench/fidelity.py busy [--loops 0,1,2,4,8] [--seconds 30] [--targets embedded,bmv2]  # als-3 beside busy loops, and one picture

Both write `runs.json` into --out (results/fidelity), and go on where they were stopped. The load average that each run began at stands with it, and the part of the
processors' time that a virtual machine's host took: where others use the machine, an alarm of a "clean" run is not false. Needs root and Mininet.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from forward import machine, show

# Each with another kind of traffic: ALS, RAP, TCP, layers, several bottlenecks.
CLEAN = (
    ("als-3",),
    ("chain", "--flow", "ssvp:2", "--flow", "tcp-sack:1", "--bottleneck", "4mbit"),
    ("dumbbell", "--flow", "rap:2", "--flow", "tcp-sack:2", "--queue", "red"),
    ("dumbbell", "--flow", "cbr:2", "--bottleneck", "5mbit", "--rtt", "30ms"),
    ("dumbbell", "--flow", "tfrc:3", "--bottleneck", "8mbit"),
    ("chain", "--flow", "als:3", "--bottleneck", "6mbit", "--rtt", "40ms"),
    ("dumbbell", "--flow", "als:4", "--flow", "tcp-reno:1", "--queue", "red"),
    ("dumbbell", "--flow", "tcp-cubic:3", "--bottleneck", "10mbit", "--rtt", "20ms"),
    ("chain", "--flow", "rap:2", "--switches", "3", "--rtt", "80ms"),
    ("dumbbell", "--flow", "on-off:3", "--bottleneck", "4mbit"),
)
MEASURES = ("late_part", "gap_s", "waiting_fraction", "forgiven_fraction", "missed_fraction", "round_trip_part")
COLOURS = {"true": "tab:green", "doubtful": "tab:orange", "invalid": "tab:red", "refused": "tab:gray"}
MARKERS = {"embedded": "o", "bmv2": "s"}
_LOOP = "while True: pass"


def one(arguments: tuple[str, ...], seconds: float, seed: int, loops: int, target: str, port: int, out: Path) -> dict[str, Any]:
    """A run beside busy loops, as a user starts it. verdict "refused": it ended early, for the reason in `said`."""
    load = os.getloadavg()[0]
    command = [
        sys.executable,
        "-m",
        "fairlane",
        "run",
        *arguments,
        "--fabric",
        "mininet",
        "--duration",
        f"{seconds:g}",
        "--seed",
        str(seed),
    ]
    command += ["--target", target, "--grpc-port", str(port), "--out", str(out)]
    with ExitStack() as stack:
        for _ in range(loops):
            # A session of its own, as other people's programs have: Linux shares the processors out by sessions first (sched_autogroup).
            busy = subprocess.Popen([sys.executable, "-c", _LOOP], start_new_session=True)
            stack.callback(busy.wait)
            stack.callback(busy.kill)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    about = {"experiment": " ".join(arguments), "seed": seed, "seconds": seconds, "loops": loops, "target": target, "load": load}
    about["exit"] = done.returncode
    if done.returncode != 0:
        return {**about, "verdict": "refused", "said": done.stderr.strip().splitlines()[-1:]}
    summary = json.loads((out / "summary.json").read_text())
    true = summary["fidelity"]
    bottleneck = next(link for link in summary["links"] if link["name"] == summary["bottleneck"])
    return {
        **about,
        "verdict": true["verdict"],
        "reasons": [r["what"] for r in true["reasons"]],
        "measured": true["measured"],
        "stolen": true["stolen"],
        "utilisation": bottleneck["utilisation"],
        "goodput_bps": {k["kind"]: k["mean_goodput_bps"] for k in summary["kinds"]},
    }


def carry_out(plan: list[tuple[tuple[str, ...], int, int, str]], seconds: float, port: int, out: Path) -> list[dict[str, Any]]:
    """plan: arguments, seed, loops, target. What is in runs.json already is not run again."""
    out.mkdir(parents=True, exist_ok=True)
    file = out / "runs.json"
    runs: list[dict[str, Any]] = json.loads(file.read_text())["runs"] if file.exists() else []
    known = {(r["experiment"], r["seed"], r["loops"], r["target"], r["seconds"]) for r in runs}
    for number, (arguments, seed, loops, target) in enumerate(plan):
        if (" ".join(arguments), seed, loops, target, seconds) in known:
            continue
        run = one(arguments, seconds, seed, loops, target, port, out / f"run-{int(time.time())}")
        runs.append(run)
        file.write_text(json.dumps({"machine": machine(), "runs": runs}, indent=2) + "\n")
        said = "; ".join(run.get("reasons", run.get("said", [])))
        show(f"{number + 1} of {len(plan)}: {run['experiment']}, {target}, {loops} loops, load {run['load']:.1f}: {run['verdict']} {said}")
    return runs


def draw(runs: list[dict[str, Any]], path: Path) -> None:
    """Measures and figures over busy loops, each run coloured by its verdict, with a marker for its target."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 6), layout="constrained")
    panels = [("late_part", "late_part"), ("waiting_fraction", "waiting_fraction"), ("forgiven_fraction", "forgiven_fraction")]
    panels += [
        ("utilisation", "utilisation of the bottleneck"),
        ("als", "goodput of an ALS flow, Mb/s"),
        ("tcp", "goodput of a TCP flow, Mb/s"),
    ]
    places = sorted({r["loops"] for r in runs})
    for axis, (what, title) in zip(figure.subplots(2, 3).flat, panels):
        top = 0.0
        for run in runs:
            if "measured" not in run:
                continue
            rates = [v / 1e6 for k, v in run["goodput_bps"].items() if k.startswith(what)]
            value = (
                run["measured"].get(what)
                if what in run["measured"]
                else run["utilisation"]
                if what == "utilisation"
                else rates[0]
                if rates
                else None
            )
            if value is not None:
                top = max(top, value)
                aside = 0.0 if run["target"] == "embedded" else 0.15
                axis.plot(places.index(run["loops"]) + aside, value, MARKERS[run["target"]], color=COLOURS[run["verdict"]])
        axis.set_title(title, fontsize="medium")
        axis.set_xticks(range(len(places)), [str(p) for p in places])
        axis.set_ylim(0, 1.08 * top or 1)
        axis.set_xlabel("busy loops")
    for verdict in ("true", "doubtful", "invalid"):
        figure.axes[0].plot([], [], "o", color=COLOURS[verdict], label=verdict)
    for target in sorted({r["target"] for r in runs}, reverse=True):
        figure.axes[0].plot([], [], MARKERS[target], color="tab:gray", label=target)
    figure.axes[0].legend(fontsize="small")
    figure.savefig(path, dpi=110)


def table(runs: list[dict[str, Any]]) -> str:
    lines = [f"{'run':60}{'target':>9}{'loops':>6}{'load':>6}{'stolen':>8}  {'verdict':9}" + "".join(f"{m:>19}" for m in MEASURES)]
    for run in runs:
        values = "".join(f"{value:19.4f}" if (value := run.get("measured", {}).get(m)) is not None else f"{'-':>19}" for m in MEASURES)
        lines.append(
            f"{run['experiment'][:59]:60}{run['target']:>9}{run['loops']:>6}{run['load']:>6.1f}{run.get('stolen', math.nan):>8.3f}  {run['verdict']:9}{values}"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["clean", "busy"])
    parser.add_argument("--runs", type=int, default=20, help="clean: how many (default: 20)")
    parser.add_argument("--loops", default="0,1,2,4,8", help="busy: numbers of loops (default: 0,1,2,4,8)")
    parser.add_argument("--repeat", type=int, default=1, help="busy: runs of each number (default: 1)")
    parser.add_argument("--targets", default="embedded", help="embedded, bmv2, or both with a comma (default: embedded)")
    parser.add_argument("--seconds", type=float, help="of each run (default: clean 15, busy 30)")
    parser.add_argument("--grpc-port", type=int, default=9559, help="P4Runtime port of the first switch (default: 9559)")
    parser.add_argument("--out", type=Path, help="folder (default: results/fidelity/clean or busy)")
    arguments = parser.parse_args()
    targets = arguments.targets.split(",")
    out = arguments.out or Path("results/fidelity") / arguments.what
    if arguments.what == "clean":
        plan = [(CLEAN[i % len(CLEAN)], 1 + i // len(CLEAN), 0, target) for i in range(arguments.runs) for target in targets]
    else:
        loops = [int(n) for n in arguments.loops.split(",")]
        plan = [(("als-3",), 1 + i, n, target) for i in range(arguments.repeat) for n in loops for target in targets]
    runs = carry_out(plan, arguments.seconds or (15.0 if arguments.what == "clean" else 30.0), arguments.grpc_port, out)
    print(table(runs))
    if arguments.what == "busy":
        draw(runs, out / "busy.png")
    else:
        print(f"{sum(r['verdict'] != 'true' for r in runs)} of {len(runs)} runs are not true")
    return 0


if __name__ == "__main__":
    sys.exit(main())
