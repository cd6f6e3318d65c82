"""{our compiler, p4c} x {our switch, BMv2}: the ALS program under our controller, the same bytes out of every pair."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bmv2 import pairs

FAIR_RATE_OF_ONE = 9_000_000


@pytest.mark.parametrize("switch", pairs.SWITCHES)
@pytest.mark.parametrize("compiler", pairs.COMPILERS)
def test_als_over_p4runtime(compiler: str, switch: str, tmp_path: Path) -> None:
    result = pairs.drive("drive.py", compiler, switch, tmp_path, timeout_s=90)

    sent = bytes.fromhex(result["sent"])
    expected = bytearray(sent)
    expected[0:12] = bytes.fromhex("020000000022020000000021")
    expected[22] -= 1
    expected[24:26] = bytes.fromhex("cf82")  # the header checksum with the TTL one less
    expected[-12:-4] = FAIR_RATE_OF_ONE.to_bytes(8, "big")
    assert result["first"] == expected.hex()
    # One connection was seen on port 2, and what the controller then wrote is in force.
    assert result["digests"] == [1]
    assert result["records"] == [[1, 0, 0, FAIR_RATE_OF_ONE], [2, 1, 1, FAIR_RATE_OF_ONE]]
    assert result["second"][-24:-8] == FAIR_RATE_OF_ONE.to_bytes(8, "big").hex()
