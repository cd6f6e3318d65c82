"""RAP and TFRC here and in ns-2, beside SACK on the same dumbbell; writes both to ``data/rates.json``, which is committed.

    python tests/oracle/run_rates.py            all cases (some minutes); without ns-2 the committed data stay as they are
    python tests/oracle/run_rates.py --missing  only cases that the data have not
    python tests/oracle/run_rates.py --here     Fairlane's side again; ns-2's stays
    python tests/oracle/run_rates.py --show     the table of the committed data

Table 1 of the RAP paper: 100 B packets, 40 kb/s for each flow, drop-tail, a buffer of four round trips, 120 s of which the first quarter
does not count. Half of the flows are SACK. Medians of five seeds. At a bottleneck delay of 80 ms RAP's second half of 240 s counts, and
TFRC's last quarter of 480 s: ns-2's, which after its first loss adds no more than a packet per round trip each round trip, still climbs
after 120 s.

Set equal on both sides: packets of 100 B on the wire (our links have ``framing = "ip"``; ns-2's TFRC would add 32 B), buffer in packets, and
TCP as in the rows of RAP (``experiments/_rap.toml``). TFRC has what ns-2's agent always has: section 4.5, q = 0.95 and a discount of at most
a half. RAP starts as ns-2's agent, which sends its second packet, and uses its first round trip, after 2 s (docs/algorithms/rap.md has the
effect). Jitter: TCP's sendings wait up to one packet's time on the bottleneck on both sides. RAP's and TFRC's packets move by a tenth of their
gap; in ns-2 ``overhead_`` adds up to a fifth of that time to RAP's gaps (the whole would cost RAP 6% of its rate).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import statistics
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
DATA = HERE / "data" / "rates.json"
SEEDS = (1, 2, 3, 4, 5)
SPARE_SEEDS = tuple(range(6, 16))
"""In place of ns-2 runs in which a RAP agent's SRTT froze."""
LIKE_NS2 = {
    "rap": {"initial_ipg_s": 2.0, "first_rtt_poll_s": 2.0},
    "tfrc": {"oscillation_reduction": True, "rtt_memory": 0.95, "discount_threshold": 0.5},
}
RATE_TOLERANCE, RATIO_TOLERANCE = 0.15, 0.25


def _rap_sack():
    """bench/rap_sack.py: bench is no package."""
    spec = importlib.util.spec_from_file_location("rap_sack", HERE.parents[1] / "bench" / "rap_sack.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


rap_sack = sys.modules.get("rap_sack") or _rap_sack()


def cases() -> list[dict]:
    spans = {("rap", 20): (120.0, 0.25), ("rap", 80): (240.0, 0.5), ("tfrc", 20): (120.0, 0.25), ("tfrc", 80): (480.0, 0.75)}
    return [
        {"kind": kind, "flows": flows, "delay_ms": delay, "seconds": seconds, "window_from": begin}
        for (kind, delay), (seconds, begin) in spans.items()
        for flows in (4, 16)
    ]


def dumbbell(case: dict, seed: int):
    return rap_sack.Dumbbell(
        kind=case["kind"],
        adaptive=case["flows"],
        sacks=case["flows"],
        delay_s=case["delay_ms"] / 1e3,
        seed=seed,
        seconds=case["seconds"],
        window_from=case["window_from"],
    )


def figures(goodput_bps: list[float]) -> dict[str, float]:
    """Mean goodput of the rate-based flows and of SACK, bit/s."""
    half = len(goodput_bps) // 2
    return {"rate_bps": round(statistics.mean(goodput_bps[:half]), 1), "sack_bps": round(statistics.mean(goodput_bps[half:]), 1)}


def run_ns2(case: dict, seed: int) -> dict:
    result = rap_sack.ns2(dumbbell(case, seed))
    return {"seed": seed, **figures(result["goodput_bps"]), "frozen": result["frozen"]}


def run_fairlane(case: dict, seed: int) -> dict:
    return {"seed": seed, **figures(rap_sack.run(dumbbell(case, seed), LIKE_NS2[case["kind"]]).goodput_bps)}


def medians(runs: list[dict]) -> tuple[float, float]:
    """(rate, ratio to SACK)."""
    return statistics.median(r["rate_bps"] for r in runs), statistics.median(r["rate_bps"] / r["sack_bps"] for r in runs)


def compare(row: dict) -> tuple[float, float]:
    """Fairlane's over ns-2's: (rate, ratio to SACK)."""
    (rate, ratio), (ns_rate, ns_ratio) = medians(row["fairlane"]), medians(row["ns2"])
    return rate / ns_rate, ratio / ns_ratio


def show(rows: list[dict]) -> None:
    print(f"{'kind':5} {'flows':>7} {'delay':>6} | {'rate here':>9} {'ns-2':>7} {'/':>5} | {'ratio here':>10} {'ns-2':>5} {'/':>5}")
    for row in rows:
        case = row["case"]
        (rate, ratio), (ns_rate, ns_ratio) = medians(row["fairlane"]), medians(row["ns2"])
        print(
            f"{case['kind']:5} {case['flows']:3}+{case['flows']:<3} {case['delay_ms']:3} ms | {rate / 1e3:6.1f}k   {ns_rate / 1e3:5.1f}k {rate / ns_rate:6.2f}"
            f" | {ratio:10.2f} {ns_ratio:5.2f} {ratio / ns_ratio:6.2f}"
        )


def write(rows: list[dict]) -> None:
    DATA.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    print(f"{DATA.relative_to(HERE.parents[1])}: {len(rows)} cases")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--here", action="store_true")
    parser.add_argument("--show", action="store_true")
    args = parser.parse_args()
    if args.show:
        show(json.loads(DATA.read_text()))
        return 0
    if args.here:
        rows = json.loads(DATA.read_text())
        for row in rows:
            row["fairlane"] = [run_fairlane(row["case"], seed) for seed in SEEDS]
            show([row])
        write(rows)
        return 0
    if shutil.which("ns") is None:
        print("ns-2 is not installed (Debian: apt install ns2); the committed data stay as they are")
        return 0
    known = json.loads(DATA.read_text()) if args.missing else []
    rows = []
    for case in cases():
        if row := next((row for row in known if row["case"] == case), None):
            rows.append(row)
            continue
        theirs: list[dict] = []
        left_out = 0
        for seed in SEEDS + SPARE_SEEDS:
            if len(theirs) < len(SEEDS):
                run = run_ns2(case, seed)
                frozen = run.pop("frozen")
                theirs, left_out = (theirs, left_out + 1) if frozen else ([*theirs, run], left_out)
        rows.append({"case": case, "ns2": theirs, "ns2_frozen_runs": left_out, "fairlane": [run_fairlane(case, seed) for seed in SEEDS]})
        show(rows[-1:])
    write(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
