"""Every command that the documentation shows is run, here or where its page says; and the machinery that sees to it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fairlane import probes
from tools.documented import blocks, execute
from tools.documented.__main__ import not_run

PAGES = {page: (probes.ROOT / page).read_text(encoding="utf-8") for page in blocks.pages(probes.ROOT)}


@pytest.fixture(scope="module")
def found() -> list[blocks.Block]:
    return [block for page, text in PAGES.items() for block in blocks.blocks(page, text)]


def test_commands_stand_in_blocks_that_are_run() -> None:
    stray = [line for page, text in PAGES.items() for line in blocks.stray(page, text)]
    assert not stray, "write them as ```sh blocks (tools/documented/README.md):\n" + "\n".join(stray)


def test_what_is_run_elsewhere_is_there(found: list[blocks.Block]) -> None:
    for block in found:
        for text in (*block.said("elsewhere"), *block.said("skip")):
            for path in re.findall(r"[\w/]+\.(?:py|rs|md)\b", text):
                assert (probes.ROOT / path).exists(), f"{block.where}: {path}"


@pytest.mark.timeout(600)
def test_every_command_of_the_documentation(found: list[blocks.Block], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    execute.copy(probes.ROOT, tmp_path)
    done: list[execute.Done] = []
    left = execute.run_all(found, tmp_path, False, 120, done.append)
    with capsys.disabled():
        print(f"\n{len(done)} documented commands run, {sum(one.cpu_s for one in done):.0f} s of processor time. {not_run(left)}")
    failed = [f"{one.block.where}: {one.command}: exit code {one.code}\n{one.said[-3000:]}" for one in done if one.code != 0]
    assert not failed, "\n".join(failed)
    assert len(done) > 30


def block(text: str) -> blocks.Block:
    (only,) = blocks.blocks("page.md", text)
    return only


def test_a_block_is_read_with_its_comments() -> None:
    found = block("<!-- test: slow -->\n<!-- test: first: touch x -->\n\n```sh\nmake a   # b\n\nfairlane run c \\\n    --d 1\n```\n")
    assert found.commands == ("make a", "fairlane run c --d 1")
    assert (found.line, found.marks) == (5, (("slow", ""), ("first", "touch x")))


@pytest.mark.parametrize(
    "text",
    ["<!-- test: later -->", "<!-- test: skip -->", "<!-- test: slow: why -->", "<!-- test: slow -->\ntext\n", "<!-- test:skip: x -->"],
)
def test_a_comment_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(blocks.BadMark, match="page.md:"):
        list(blocks.blocks("page.md", text + "\n```sh\nmake\n```\n"))


@pytest.mark.parametrize(
    "text", ["    fairlane run als-3\n", "```\nmake test\n```\n", "    sudo .venv/bin/fairlane run x\n", "    $ python x.py\n"]
)
def test_commands_outside_shell_blocks_are_seen(text: str) -> None:
    assert len(list(blocks.stray("page.md", text))) == 1
    assert not list(blocks.stray("page.md", f"```text\n{text.replace('```', '')}```\n"))


@pytest.mark.parametrize(
    ("marks", "command", "now", "everything"),
    [
        ("", "fairlane list", True, True),
        ("slow", "fairlane list", False, True),
        ("skip: why", "fairlane list", False, False),
        ("elsewhere: why", "fairlane list", False, False),
        ("", "fairlane labs check 04", False, True),
    ],
)
def test_when_a_command_is_run(marks: str, command: str, now: bool, everything: bool) -> None:
    found = block((f"<!-- test: {marks} -->\n" if marks else "") + f"```sh\n{command}\n```\n")
    assert (execute.why_not(found, command, False) is None, execute.why_not(found, command, True) is None) == (now, everything)


@pytest.mark.parametrize("command", ["sudo .venv/bin/fairlane run als-3", "fairlane run als-3 --fabric mininet"])
def test_what_wants_root_is_not_run_by_make_test(command: str) -> None:
    assert execute.why_not(block(f"```sh\n{command}\n```\n"), command, False) == "make docs-commands runs it, as root"


def test_a_command_that_fails_is_told_and_ends_its_block(tmp_path: Path) -> None:
    (tmp_path / "hosts" / "algorithms").mkdir(parents=True)
    found = [block("```sh\nfalse\ntrue\n```\n"), block("```sh\necho well\n```\n"), block("```sh\nsleep 60\n```\n")]
    done: list[execute.Done] = []
    assert execute.run_all(found, tmp_path, False, 0.5, done.append) == []
    assert [(one.command, one.code, one.said) for one in done] == [("false", 1, ""), ("echo well", 0, "well\n"), ("sleep 60", None, "")]
