"""Topology files: errors name file, line and key; the key positions are right in any TOML."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlane.inputs import located_toml
from fairlane.inputs.located_toml import ConfigError, tomllib
from fairlane.topologies import load

DUMBBELL = """\
kind = "dumbbell"
pairs = 2

[bottleneck]  # the link in the middle
rate_bps = 10_000_000
delay_s = 0.005
red = { minimum = 0.5, maximum = 0.95, max_p = 0.1, weight = 0.002 }

[access]
rate_bps = 100_000_000
"""
GRAPH = """\
kind = "graph"
nodes = [
  { name = "h1", kind = "host" }, { name = "h2", kind = "host" },
  { name = "s1", kind = "switch" },
]

[[links]]
ends = ["h1", "s1"]
rate_bps = 1000000

[[links]]
ends = ["s1:2", "h2"]
rate_bps = 1000000
"""


def from_text(text: str) -> object:
    return load.from_document(located_toml.parse(text, "net.toml"))


def test_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "net.toml").write_text(DUMBBELL)
    assert load.load(tmp_path / "net.toml").hosts == ("h1", "h2", "h3", "h4")
    assert from_text(GRAPH).switches == ("s1",)


@pytest.mark.parametrize(
    ("text", "change", "message"),
    [
        (DUMBBELL, ("delay_s", "dealy_s"), "net.toml:6: bottleneck.dealy_s: unknown key; did you mean 'delay_s'?"),
        (DUMBBELL, ("0.005", "-0.005"), "net.toml:6: bottleneck.delay_s: must not be negative, got -0.005 s"),
        (DUMBBELL, ("0.005", '"5ms"'), "net.toml:6: bottleneck.delay_s: expected a number, got '5ms'"),
        (
            DUMBBELL,
            ("rate_bps = 100_000_000", "rate_bps = 0"),
            "net.toml:10: access.rate_bps: a link of 0 bit/s never sends: give a positive rate",
        ),
        (
            DUMBBELL,
            ("minimum = 0.5", "minimum = 0.99"),
            "net.toml:7: bottleneck.red.minimum: RED needs 0 <= minimum < maximum <= 1, got 0.99 and 0.95",
        ),
        (DUMBBELL, ("pairs = 2", "pairs = true"), "net.toml:2: pairs: expected an integer, got True"),
        (DUMBBELL, ("pairs = 2", "pairs = 0"), "net.toml:2: pairs: a dumbbell has 1 to 508 pairs of hosts, got 0"),
        (DUMBBELL, ("pairs = 2\n", "\n"), "net.toml:1: missing key 'pairs'"),
        (DUMBBELL, ('"dumbbell"', '"dumbell"'), "net.toml:1: kind: unknown kind 'dumbell'; did you mean 'dumbbell'?"),
        (DUMBBELL, ('"dumbbell"', "dumbbell"), "net.toml: Invalid value (at line 1, column 8)"),
        (GRAPH, ('"s1:2", "h2"', '"s1:2", "s1:2"'), "net.toml:11: links[1]: the link loops back to the same port: s1, port 2"),
        (GRAPH, ('"h2", kind', '"h1", kind'), "net.toml:3: nodes[1]: two nodes are called 'h1' (nodes[0] is the other)"),
        (GRAPH, ('kind = "switch"', 'kind = "router"'), "net.toml:4: nodes[2].kind: expected one of 'host', 'switch', got 'router'"),
        (GRAPH, ('["h1", "s1"]', '["h1"]'), "net.toml:8: links[0].ends: expected 2 values, got 1"),
    ],
)
def test_errors_name_file_line_and_key(text: str, change: tuple[str, str], message: str) -> None:
    assert change[0] in text
    with pytest.raises(ConfigError) as refused:
        from_text(text.replace(*change, 1))
    assert str(refused.value) == message


def test_a_missing_file() -> None:
    with pytest.raises(ConfigError, match="/nonexistent/net.toml: No such file or directory"):
        load.load(Path("/nonexistent/net.toml"))


# Every key gets a distinct number as its value, so that the line where the number stands is the line of the key.
keys = st.sampled_from(["a", "b", "long-key", '"quoted.key"', "'li # teral'", '"uni\\u0041"'])
noise = st.sampled_from(
    [
        "",
        "# a [comment] = {\n",
        "\n\n",
        's = """\n[not.a.table]\nx = 1 \\"""" # "\n',
        "l = '''\n'a = {'\n''''\n",
        "m = [\n  [1, 2], # ]\n  { k = '}' },\n]\n",
    ]
)


@st.composite
def documents(draw: st.DrawFn) -> str:
    text, number = "", 0
    for table in range(draw(st.integers(0, 4))):
        header = draw(st.sampled_from(["[t{0}]", "[t{0}.deep.er]", "[[array]]", "[[array.of.arrays{0}]]"]))
        text += header.format(table) + draw(st.sampled_from(["\n", "  # end\n"]))
        for key in draw(st.lists(keys, unique=True, max_size=4)):
            number += 1
            shape = draw(st.sampled_from(["{0}", "[{0}, {0}]", "{{ k = {0} }}", "[\n {0},\n]", "[ {{ in.ner = {0} }} ]"]))
            text += f"{key} = {shape.format(7000 + number)}\n"
        text += draw(noise)
    return text


@settings(max_examples=150)
@given(documents())
def test_the_scan_finds_the_line_of_every_value(text: str) -> None:
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return  # such as [array] after [[array]]: the scan never sees it
    document = located_toml.parse(text, "x")
    lines = text.split("\n")

    def visit(value: object, path: tuple) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                visit(inner, (*path, key))
        elif isinstance(value, list):
            for index, inner in enumerate(value):
                visit(inner, (*path, index))
        elif isinstance(value, int) and value > 7000:
            assert path in document.places, (path, document.places)
            line = lines[document.place(path)[1] - 1]
            assert str(value) in line

    visit(values, ())


def test_documents_laid_over_each_other_keep_their_places() -> None:
    base = located_toml.parse("a = 1\n[t]\nx = [1]\ny = 2\n", "base")
    top = located_toml.parse("\n\n[t]\nx = [3, 4]\n", "top").over(base)
    assert top.values == {"a": 1, "t": {"x": [3, 4], "y": 2}}
    assert top.place(("t", "x", 1)) == ("top", 4)
    assert top.place(("t", "y")) == ("base", 4)
    assert str(top.error(("t", "y"), "is wrong")) == "base:4: t.y: is wrong"
