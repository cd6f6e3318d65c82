"""Raw records are read as `json.loads` reads them, and half-written lines are left out."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from fairlane.fabrics import raw

OBJECTS = st.dictionaries(
    st.text(max_size=3), st.integers() | st.floats(allow_nan=False) | st.text(max_size=3) | st.none(), max_size=3
).map(json.dumps)
OTHERS = st.sampled_from(["", "{", '{"t": 1', '"t": 1}', "[]", "1", "null", "}{", '{"a": 1} {', "1,", ",", " {} ", "{}\t", '{"kind": "da'])


def objects(lines: list[str]) -> list[dict]:
    found = []
    for line in lines:
        try:
            found.append(json.loads(line))
        except ValueError:
            pass
    return [record for record in found if isinstance(record, dict)]


@given(st.lists(OBJECTS | OTHERS, max_size=6))
def test_lines_that_are_no_objects_are_left_out(lines: list[str]) -> None:
    assert list(raw.json_objects(lines)) == objects(lines)
