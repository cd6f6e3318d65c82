"""Joins and leaves by Linux's own IGMPv2, seen by the switch, carried out by the controller: {our compiler, p4c} x {our switch, BMv2}."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bmv2 import pairs

GROUP = "239.1.0.1"
# 0.9 times the rate of the ports towards h0, h1, and h2; all on the way to h2 are faster than its own.
R_F = {"h0": 7_200_000, "h1": 3_600_000, "h2": 1_800_000}
NOBODY = {"h0": [], "h1": [], "h2": []}


def only(*names: str) -> dict[str, list[int]]:
    return {**NOBODY, **{name: [R_F[name]] for name in names}}


@pytest.mark.root
@pytest.mark.parametrize("switch", pairs.SWITCHES)
@pytest.mark.parametrize("compiler", pairs.COMPILERS)
def test_the_kernels_joins_and_leaves(compiler: str, switch: str, tmp_path: Path) -> None:
    result = pairs.drive("multicast.py", compiler, switch, tmp_path, timeout_s=110)

    assert result["nobody"] == NOBODY
    # Each copy has the fair rate of its own branch.
    assert result["two"] == only("h1", "h2")
    # Nothing comes back to who sent it.
    assert result["three"] == {"h0": only("h1", "h2"), "h1": only("h0", "h2"), "h2": only("h0", "h1")}
    assert result["one"] == only("h1")
    # Without a controller, and with the next one, the groups are what they were.
    assert result["alone"] == result["restarted"] == only("h1")
    assert result["joined again"] == only("h1", "h2")
    # "Instantaneously": within a tenth of a second here, the shortest of three.
    assert 0 <= result["join_s"] < 0.1 and 0 <= result["leave_s"] < 0.1
    h0, h1, h2 = (["s1", "2", GROUP], "10.0.1.1"), (["s1", "3", GROUP], "10.0.1.2"), (["s2", "2", GROUP], "10.0.2.1")
    seen = [
        [*who, event, ip]
        for (who, ip), event in (
            *((host, "join") for host in (h1, h2, h0)),
            *((h2, event) for _ in range(3) for event in ("leave", "join")),
            (h0, "leave"),
            (h2, "leave"),
        )
    ]
    assert result["memberships"][:11] == seen
    assert result["memberships"][11:13] == [[*h1[0], "restore", ""], [*h2[0], "join", "10.0.2.1"]]
    # The kernels answered queries for 4 s, more than the 2.5 s that a membership lasts; then one had no link any more.
    assert sorted(result["memberships"][13:15]) == [[*h1[0], "restore", ""], [*h2[0], "restore", ""]]
    assert result["answered"] == 15
    assert result["memberships"][15:] == [[*h2[0], "expire", ""]]
    assert result["expired"] == only("h1")
