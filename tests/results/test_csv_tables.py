"""Tables and JSON are written as pandas and `json` write them, byte by byte."""

from __future__ import annotations

import io
import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.results import csv_tables, result_folder

FLOATS = st.floats() | st.floats(-1e9, 1e9) | st.integers(-(10**7), 10**7).map(float)
TEXTS = st.sampled_from(["s1->s2", "tcp-sack", 'a "name"', "a,b", "two\nlines", "", "ä"])


@given(st.lists(st.tuples(FLOATS, st.integers(-(2**40), 2**40), TEXTS, FLOATS), max_size=6), st.booleans())
def test_a_table_has_the_bytes_of_pandas(rows: list[tuple[float, int, str, float]], header: bool) -> None:
    columns = dict(zip(("time_s", "packets", "a,name", "share"), (list(column) for column in zip(*rows)) if rows else ([], [], [], [])))
    found = io.StringIO(newline="")
    csv_tables.write(found, {name: np.asarray(values) if name != "a,name" else values for name, values in columns.items()}, header)
    assert found.getvalue() == pd.DataFrame(columns).to_csv(index=False, float_format="%.6g", lineterminator="\n", header=header)


def test_a_table_without_columns_is_a_line() -> None:
    found = io.StringIO(newline="")
    csv_tables.write(found, csv_tables.joined([]))
    assert found.getvalue() == pd.DataFrame().to_csv(index=False, lineterminator="\n")


def test_parts_follow_each_other() -> None:
    parts = [
        {"time_s": np.asarray([1.0, 2.0]), "link": "a->b", "queue": [3, 4]},
        {"time_s": np.asarray([]), "link": "b->c", "queue": []},
        {"time_s": np.asarray([1.0]), "link": "c->d", "queue": [0.5]},
    ]
    found = csv_tables.joined(parts)
    assert (
        found["time_s"].tolist() == [1.0, 2.0, 1.0]
        and found["link"] == ["a->b", "a->b", "c->d"]
        and found["queue"].tolist() == [3.0, 4.0, 0.5]
    )


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner) | st.dictionaries(st.text() | st.integers(), inner, max_size=3),
    max_leaves=12,
)


@given(VALUES)
def test_json_has_the_bytes_of_json(value: object) -> None:
    assert result_folder.json_text(value) == json.dumps(value, indent=2) + "\n"


def test_what_is_no_number_is_null() -> None:
    found = result_folder.json_text({"a": math.nan, "b": [math.inf, np.float64(0.1), -math.inf], "c": {"d": ()}})
    assert found == json.dumps({"a": None, "b": [None, 0.1, None], "c": {"d": []}}, indent=2) + "\n"
    with pytest.raises(TypeError):
        result_folder.json_text({"a": object()})
