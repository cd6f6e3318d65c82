"""Lab 7: max-min fair shares by progressive filling [ALS sec 2].

`python labs/07/max_min.py` prints the shares of the paper's chain.
"""

from __future__ import annotations

CHAIN_LINKS = {"L1": 1e6, "L2": 1e6, "L3": 1e6, "L4": 1e6}
CHAIN_PATHS = {
    "C0": ["L1", "L2", "L3", "L4"],
    "C1": ["L1", "L2"],
    "C2": ["L1"],
    "C3": ["L2"],
    "C4": ["L2", "L3"],
    "C5": ["L3"],
    "C6": ["L4"],
}


def shares(links: dict[str, float], paths: dict[str, list[str]]) -> dict[str, float]:
    """The max-min fair share of each connection, in bit/s.

    links: bit/s of each link. paths: the links that each connection crosses, at least one.
    """
    # BEGIN SOLUTION
    share: dict[str, float] = {}
    left = dict(links)
    while len(share) < len(paths):
        waiting = {link: [c for c in paths if link in paths[c] and c not in share] for link in links}
        tightest = min((link for link in links if waiting[link]), key=lambda link: left[link] / len(waiting[link]))
        rate = left[tightest] / len(waiting[tightest])
        for connection in waiting[tightest]:
            share[connection] = rate
            for link in paths[connection]:
                left[link] -= rate
    # SKELETON
    # share = dict.fromkeys(paths, 0.0)
    # # TODO 1
    # END SOLUTION
    return share


if __name__ == "__main__":
    for connection, bps in shares(CHAIN_LINKS, CHAIN_PATHS).items():
        print(f"{connection}  {bps / 1e3:6.1f} kb/s")
