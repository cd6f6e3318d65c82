"""The language server, driven by pygls' client: each answer must have the form of the protocol, as `lsprotocol` has it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from lsprotocol import types

from fairlane import probes
from tools.language_server import Editor

ROOT = probes.ROOT
SERVER = probes.program("fairlane-lsp")
pytestmark = pytest.mark.skipif(SERVER is None, reason="fairlane-lsp is not built")

PROGRAM = """#include <core.p4>
#include <v1model.p4>
#define PORTS 4

// Of Ethernet.
header ethernet_t {
    bit<48> dst;
    @name("from") bit<48> src;
    bit<16> kind;
}

const bit<16> KIND = 0x800;
struct headers_t { ethernet_t ethernet; }
struct metadata_t { bit<9> port; }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.kind) {
            KIND: known;
            default: accept;
        }
    }
    state known { transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<32>>(PORTS) seen;
    action forward(bit<9> port) { standard.egress_spec = port; }
    table routes {
        key = { hdr.ethernet.dst: exact; }
        actions = { forward; NoAction; }
        default_action = NoAction();
    }
    apply {
        routes.apply();
        seen.write(0, 1);
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }
control C(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.ethernet); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


def line(text: str) -> int:
    """The line of PROGRAM, from 0, in which a text stands first."""
    return PROGRAM.count("\n", 0, PROGRAM.index(text))


def edit(work: Callable[[Editor], Awaitable[None]], folder: Path, **settings: list[str]) -> None:
    """Runs `work` with an editor in a folder, and ends the server as an editor does."""

    async def run() -> None:
        editor = Editor(folder)
        await editor.start(str(SERVER), settings)
        try:
            await work(editor)
        finally:
            assert await editor.stop() == 0

    asyncio.run(asyncio.wait_for(run(), 60))


def test_messages_follow_the_text_and_name_the_fix(tmp_path: Path) -> None:
    async def work(editor: Editor) -> None:
        path = tmp_path / "x.p4"
        assert await editor.open(path, PROGRAM) == []
        found = await editor.change(path, PROGRAM.replace("hdr.ethernet.kind", "hdr.ethernet.kimd").replace("seen.write", "sen.write"))
        errors = [message for message in found if message.severity == types.DiagnosticSeverity.Error]
        assert [message.range.start.line for message in errors] == [line("hdr.ethernet.kind"), line("seen.write")]
        assert "has no field `kimd`" in errors[0].message and errors[1].code == "undeclared-name"
        assert [fix.title for fix in await editor.fixes(path, errors[1].range)] == ["Replace it by `seen`"]
        assert await editor.change(path, PROGRAM) == []

    edit(work, tmp_path)


def test_names_are_found_shown_and_renamed(tmp_path: Path) -> None:
    async def work(editor: Editor) -> None:
        path = tmp_path / "x.p4"
        await editor.open(path, PROGRAM)
        at = editor.place(path, "hdr.ethernet.dst: exact", 13)
        text = await editor.hover(path, at)
        assert "bit<48> dst" in text and "field of `ethernet_t`" in text and "48 bits" in text
        header = await editor.hover(path, editor.place(path, "ethernet_t ethernet", 2))
        assert "112 bits (14 bytes)" in header and "Of Ethernet." in header and "section 7.2.2" in header
        assert "0x800" in await editor.hover(path, editor.place(path, "KIND: known"))
        assert "#define PORTS 4" in await editor.hover(path, editor.place(path, "PORTS) seen"))
        assert (await editor.definition(path, at)).range.start.line == 6
        # In a file that comes with the compiler.
        extract = await editor.definition(path, editor.place(path, "extract"))
        assert extract.uri.endswith("p4include/core.p4")
        included = await editor.definition(path, editor.place(path, "<v1model", 3))
        assert included.uri.endswith("p4include/v1model.p4")
        assert len(await editor.references(path, editor.place(path, "forward(bit"))) == 2
        state = await editor.references(path, editor.place(path, "state known", 7))
        assert [place.range.start.line for place in state] == [line("state known"), line("KIND: known")]
        renamed = await editor.rename(path, editor.place(path, "ethernet_t {"), "mac_t")
        assert renamed == PROGRAM.replace("ethernet_t", "mac_t")
        for name, why in (("bit", "no name"), ("metadata_t", "clash"), ("PORTS", "macro")):
            assert why in await editor.refused_rename(path, editor.place(path, "ethernet_t {"), name)
        assert "comes with the compiler" in await editor.refused_rename(path, editor.place(path, "NoAction"), "other")

    edit(work, tmp_path)


def test_completion_and_signatures_know_the_place(tmp_path: Path) -> None:
    async def work(editor: Editor) -> None:
        path = tmp_path / "x.p4"
        await editor.open(path, PROGRAM)
        cases = {
            "hdr.ethernet.": ({"dst", "src", "kind", "isValid", "setValid"}, {"forward"}),
            "hdr.": ({"ethernet"}, {"dst"}),
            "seen.": ({"read", "write"}, {"count"}),
            "routes.": ({"apply"}, {"forward"}),
            "HashAlgorithm.": ({"crc16", "crc32"}, set()),
            "error.": ({"NoError", "PacketTooShort"}, set()),
            "sta": ({"standard", "routes", "KIND", "if"}, {"port"}),
        }
        for written, (there, missing) in cases.items():
            await editor.change(path, PROGRAM.replace("        seen.write(0, 1);", f"        {written}"))
            names = await editor.completion(path, editor.place(path, f"        {written}\n", 8 + len(written)))
            assert there <= names and not missing & names, written
        await editor.change(path, PROGRAM.replace("KIND: known", "KIND: "))
        assert {"known", "start", "accept", "reject"} <= await editor.completion(path, editor.place(path, "KIND: ", 6))
        await editor.change(path, PROGRAM.replace("dst: exact", "dst: "))
        assert {"exact", "lpm", "ternary"} <= await editor.completion(path, editor.place(path, "dst: ", 5))
        await editor.change(path, PROGRAM.replace("seen.write(0, 1);", "seen.write(0, "))
        label, parameter = await editor.signature(path, editor.place(path, "write(0, ", 9))
        assert label.startswith("void write(") and parameter == 1

    edit(work, tmp_path)


def test_outline_colours_values_and_formatting(tmp_path: Path) -> None:
    async def work(editor: Editor) -> None:
        path = tmp_path / "x.p4"
        await editor.open(path, PROGRAM)
        outline = await editor.outline(path)
        assert [symbol.name for symbol in outline if symbol.name.isupper()] == ["KIND", "P", "V", "I", "E", "C", "D"]
        ingress = next(symbol for symbol in outline if symbol.name == "I")
        assert [child.name for child in ingress.children or []] == ["seen", "forward", "routes"]
        colours = await editor.colours(path)
        assert {
            ("ethernet_t", "struct"),
            ("kind", "property"),
            ("KIND", "variable"),
            ("PORTS", "macro"),
            ("forward", "function"),
        } <= colours
        assert await editor.hints(path) == ["= 0x800"]
        pretty = await editor.formatted(path)
        assert pretty == PROGRAM.replace(") { apply { } }\n", ") {\n    apply { }\n}\n").replace(
            ") { apply { packet.emit(hdr.ethernet); } }", ") {\n    apply { packet.emit(hdr.ethernet); }\n}"
        )
        await editor.change(path, PROGRAM.replace("    apply {\n        routes", "  apply\n{\n  routes"))
        assert await editor.formatted(path) == pretty

    edit(work, tmp_path)


def test_a_part_is_read_in_its_program_with_unsaved_text(tmp_path: Path) -> None:
    async def work(editor: Editor) -> None:
        part = tmp_path / "parts" / "headers.p4"
        part.parent.mkdir()
        head, rest = PROGRAM.split("parser P", 1)
        lines = head.splitlines(keepends=True)
        part.write_text("".join(lines[3:]))
        (tmp_path / "main.p4").write_text("".join(lines[:3]) + '#include "parts/headers.p4"\nparser P' + rest)
        assert await editor.open(part, part.read_text()) == []
        assert "48 bits" in await editor.hover(part, editor.place(part, "dst;"))
        # Used only in the other file, which is not open.
        assert len(await editor.references(part, editor.place(part, "kind;"))) == 2
        await editor.change(part, part.read_text().replace("bit<48> dst;", "bit<48> destination;"))
        assert any("dst" in message.message for message in editor.messages(tmp_path / "main.p4"))

    edit(work, tmp_path)


def test_als_in_its_checkout() -> None:
    async def work(editor: Editor) -> None:
        path = ROOT / "p4src" / "als.p4"
        assert [message for message in await editor.open(path, path.read_text()) if message.severity == 1] == []
        assert "Forward" in (await editor.hover(path, editor.place(path, "Forward() forward")))
        place = await editor.definition(path, editor.place(path, "Forward() forward"))
        assert place.uri.endswith("p4src/forward.p4")

    edit(work, ROOT, include=["p4src"])
