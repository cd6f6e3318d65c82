"""Each file, command, option and key that a page names exists; and the picture of the floors is the contract that `make lint` checks."""

from __future__ import annotations

import dataclasses
import re
import typing
from pathlib import Path
from typing import Any

import pytest

from fairlane import cli, probes
from fairlane.experiments import fabrics, kinds, sweep
from fairlane.experiments.model import Settings
from fairlane.hosts.sources import Source
from fairlane.inputs import schema
from fairlane.inputs.located_toml import tomllib
from fairlane.schemes import registry
from fairlane.studies import read
from fairlane.topologies import builders, load, model
from tools.documented import blocks, names

ROOT = probes.ROOT
PAGES = [*blocks.pages(ROOT), "CHANGELOG.md"]


@pytest.fixture(scope="module")
def checkout() -> names.Checkout:
    return names.Checkout(ROOT, names.commands(cli.app), names.ALLOWED, names.OF_OTHERS)


def test_every_name_of_every_page_exists(checkout: names.Checkout) -> None:
    pages = [page for page in PAGES if page != "CHANGELOG.md"]  # that one speaks of what was
    found = [fault for page in pages for fault in names.faults(page, (ROOT / page).read_text(encoding="utf-8"), checkout)]
    assert not found, "\n".join(found)


def test_what_is_allowed_is_used_and_is_not_there(checkout: names.Checkout) -> None:
    spans = {span for page in PAGES for _, span in names.spans((ROOT / page).read_text(encoding="utf-8"))}
    assert set(names.ALLOWED) <= spans
    bare = dataclasses.replace(checkout, allowed={}, of_others={})
    for name in names.ALLOWED:
        pages = [page for page in PAGES if f"`{name}`" in (ROOT / page).read_text(encoding="utf-8")]
        assert any(fault for page in pages for fault in names.faults(page, f"`{name}`", bare)), f"{name} needs no permission"
    assert set(names.OF_OTHERS) <= set(PAGES)


@pytest.mark.parametrize(
    ("page", "text", "fault"),
    [
        ("switch/p4/pipeline/README.md", "`src/ir.rs`", "no such file"),
        ("switch/p4/pipeline/README.md", "headers (`wire.rs`)", "no such file"),
        ("switch/net/endpoint/README.md", "`rng.rs`", "no such file"),
        ("docs/a.md", "`controler/core.py`", "no such file"),
        ("docs/a.md", "`controler/`", "no such folder"),
        ("docs/a.md", "`sumary.json`", "no such file"),
        ("docs/a.md", "run `make tset`", "no Makefile has a goal tset"),
        ("docs/a.md", "`fairlane runn als-3`", "no command 'fairlane runn'"),
        ("docs/a.md", "`fairlane new algoritm x`", "no command 'fairlane new algoritm'"),
        ("docs/a.md", "`fairlane report --pcap x`", "'fairlane report' has no --pcap"),
        ("docs/a.md", "`sudo fairlane run x --fabrik mininet`", "'fairlane run' has no --fabrik"),
        ("docs/a.md", "give `--no-such-thing`", "no program of ours has --no-such-thing"),
        ("docs/a.md", "[x](nowhere.md)", "a link to nothing"),
    ],
)
def test_a_name_of_nothing_is_found(page: str, text: str, fault: str, checkout: names.Checkout) -> None:
    (found,) = names.faults(page, f"# Title\n\n{text}\n", checkout)
    assert found.startswith(f"{page}:3: ")
    assert re.search(fault, found)


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("switch/p4/pipeline/README.md", "`src/load/`, `load/codegen.rs`, `codegen.rs` and `switch/net/tcp/src/wire.rs`"),
        ("docs/a.md", "`controller/core.py`, `core.py`, `fairlane/p4src/als.p4`, `summary.json`, `FILE.p4`, `labs/NN/grade.py`"),
        ("docs/a.md", "`make test`, `make check`, `fairlane run als-3 --duration 3`, `fairlane new algorithm x --acks`, `--thrift-port 1`"),
        (
            "docs/a.md",
            "`fairlane compile --std p4-16`, `a/b = c`, `1/x`, `and/or`, `R_f = b U_l / n`, `x -> y`, `e.g. this`, `hdr.ipv4.dst`",
        ),
        ("docs/a.md", "```sh\ntouch mine.py\n```\nThen read `mine.py`. See [the list](own-aqm.md#top), [web](https://x.y/z.md)."),
    ],
)
def test_right_names_and_other_words_are_passed(page: str, text: str, checkout: names.Checkout) -> None:
    assert not list(names.faults(page, text, checkout))


def test_every_file_below_tests_that_a_text_names_exists(checkout: names.Checkout) -> None:
    found = []
    for name in sorted(checkout.files - {"CHANGELOG.md"}):
        path = ROOT / name
        if path.is_file() and not path.is_symlink():
            found += names.faults_below_tests(name, path.read_bytes().decode("utf-8", "replace"), checkout)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("file", "faults"),
    [("docs/test_documented_names.py", 0), ("test_documented_names.py", 1), ("docs/test_doc*.py", 0), ("test_doc*.py", 1)],
)
def test_a_file_below_tests_is_looked_for_in_its_folder(file: str, faults: int, checkout: names.Checkout) -> None:
    found = list(names.faults_below_tests("switch/Cargo.toml", f"# one\n# see tests/{file}, two\n", checkout))
    assert found == [f"switch/Cargo.toml:2: tests/{file}: no such file"] * faults


def _keys_of(kind: Any) -> set[str]:
    """Of a dataclass, and of those in its fields."""
    found: set[str] = set()
    for name, hint in schema.hints_of(kind).items():
        if name in {field.name for field in dataclasses.fields(kind)}:
            found.add(name)
            todo = [hint]
            while todo:
                one = todo.pop()
                todo += typing.get_args(one)
                if isinstance(one, type) and dataclasses.is_dataclass(one):
                    found |= _keys_of(one)
    return found


def _known_keys() -> set[str]:
    known = (
        _keys_of(Settings)
        | _keys_of(builders.LinkSpec)
        | _keys_of(Source)
        | _keys_of(read.Tables)
        | _keys_of(model.Link)
        | _keys_of(model.Node)
    )
    for kind in load._KINDS.values():
        known |= _keys_of(kind)
    for name, parameters in registry.parameters().items():
        known |= {name} | _keys_of(parameters)
    for kind in kinds.tables():
        known |= {kind, *kinds._fields(kind)}
    return known | {*sweep.KEYS, *sweep.REPORT_KEYS, *fabrics._OWN}


_ASSIGNED = re.compile(r"(?:^|[{,]\s*)([A-Za-z_][\w.-]*)\s*=(?!=)")


def test_every_key_in_the_page_of_experiment_files_exists() -> None:
    text = (ROOT / "docs" / "experiment-files.md").read_text(encoding="utf-8")
    blocks_ = [line for line in text.splitlines() if line.startswith("    ")]
    known = _known_keys()
    axes = {"n", "kind"}
    named: set[str] = set()
    for line in blocks_:
        line = re.sub(r"\s#.*$", "", line).strip()
        table = re.fullmatch(r"\[\[?([\w.-]+)\]\]?", line)
        named |= {table[1]} if table else set(_ASSIGNED.findall(line))
    for row in re.findall(r"^\| (`[^|]*`) \|", text, re.MULTILINE):
        named |= {key for key in re.findall(r"`([^`]*)`", row) if re.fullmatch(r"[a-z_]+", key)}
    for key in re.findall(r"`(?:[a-z]+\.)?control\.([a-z_]+)[^`]*`|`([a-z_]+) = [^`]*`", text):
        named |= {part for part in key if part}
    assert len(named) > 80
    unknown = {name for name in named if not all(part in known or part in axes for part in name.split("."))}
    assert not unknown


def test_the_floors_are_the_contract_of_the_import_linter() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [1-6] \|([^|]*)\|([^|]*)\|", page, re.MULTILINE)
    shown = [set(re.findall(r"`([\w]+)`", storey)) for python, _ in rows for storey in python.split(";") if "`" in storey]
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"][0]["layers"]
    assert shown == [set(layer.split(" | ")) for layer in contract]


def test_a_crate_is_above_what_it_depends_on() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [1-6] \|([^|]*)\|([^|]*)\|", page, re.MULTILINE)
    storeys = [set(re.findall(r"`([\w-]+)`", storey)) for _, rust in rows for storey in rust.split(";") if "`" in storey]
    height = {crate: -number for number, storey in enumerate(storeys) for crate in storey}
    members = tomllib.loads((ROOT / "switch/Cargo.toml").read_text(encoding="utf-8"))["workspace"]["members"]
    beside = {"memory", "fuzz-targets"}
    crates = {Path(folder).name: folder for folder in members if folder not in ("bin/memory", "bin/fuzz/targets")}
    assert set(height) == set(crates)
    for crate, folder in crates.items():
        wanted = tomllib.loads((ROOT / "switch" / folder / "Cargo.toml").read_text(encoding="utf-8")).get("dependencies", {})
        for other in {name.removeprefix("fairlane-") for name in wanted if name.startswith("fairlane-")} - beside:
            assert height[crate] > height[other], f"{crate} depends on {other}"


def test_the_exit_codes_of_the_page_are_those_of_the_program() -> None:
    from fairlane import errors

    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    shown = {int(code) for row in re.findall(r"^\| ([\d, ]+) \|", page, re.MULTILINE) for code in row.split(",")}
    named = {value for name, value in vars(errors).items() if name.isupper() and isinstance(value, int) and value < 256}
    assert shown == {0, 130, 143, *named}
