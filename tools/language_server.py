"""Plays an editor: pygls' client of the Language Server Protocol, for tests, times, and random edits.

    python -m tools.language_server times PROGRAM.p4... [-I DIR]
    python -m tools.language_server edits PROGRAM.p4... [-I DIR] [--count 10000] [--seed 1]

`times` prints the milliseconds of each request (the median of five, each after an edit and again without one). `edits` makes random edits, now
and then with a request of each kind at a random place; the server must live, give each answer in the protocol's form, and at the end, when the
text is the first one again, the first messages. Exit status 1 when it does not.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.client import LanguageClient

from fairlane import probes

ANSWER_S = 60.0


class Editor:
    """An editor with a folder, and the texts that are open in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.client = LanguageClient("fairlane-editor", "1")
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.found: dict[str, list[types.Diagnostic]] = {}
        self.shown: list[str] = []
        self.legend: list[str] = []
        self._news = asyncio.Event()

        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)  # type: ignore[untyped-decorator, unused-ignore]
        def published(params: types.PublishDiagnosticsParams) -> None:
            self.found[params.uri] = list(params.diagnostics)
            self._news.set()

        @self.client.feature(types.WINDOW_SHOW_MESSAGE)  # type: ignore[untyped-decorator, unused-ignore]
        def message(params: types.ShowMessageParams) -> None:
            self.shown.append(params.message)

    async def start(self, server: str, settings: dict[str, list[str]]) -> None:
        await self.client.start_io(server)
        params = types.InitializeParams(
            capabilities=types.ClientCapabilities(), root_uri=self.folder.as_uri(), initialization_options=settings, process_id=None
        )
        result = await self.client.initialize_async(params)
        colours = result.capabilities.semantic_tokens_provider
        assert colours is not None
        self.legend = list(colours.legend.token_types)
        self.client.initialized(types.InitializedParams())

    async def stop(self) -> int:
        """Ends the server, and gives its exit status."""
        process = self.client._server
        assert process is not None
        await asyncio.wait_for(self.client.shutdown_async(None), ANSWER_S)
        self.client.exit(None)
        status = await asyncio.wait_for(process.wait(), ANSWER_S)
        await self.client.stop()  # type: ignore[no-untyped-call]
        return status

    # -- texts

    async def open(self, path: Path, text: str) -> list[types.Diagnostic]:
        """Opens a file with a text; gives the messages about it."""
        uri = path.as_uri()
        self.texts[uri], self.versions[uri] = text, 1
        self._news.clear()
        item = types.TextDocumentItem(uri=uri, language_id="p4", version=1, text=text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(text_document=item))
        return await self._told(uri)

    async def change(self, path: Path, text: str) -> list[types.Diagnostic]:
        """Replaces the text; gives the messages about it."""
        self._news.clear()
        self._send(path.as_uri(), [types.TextDocumentContentChangeWholeDocument(text=text)], text)
        return await self._told(path.as_uri())

    def replace(self, path: Path, start: int, end: int, new: str) -> None:
        """Replaces a part of the text, and waits for nothing."""
        uri = path.as_uri()
        text = self.texts[uri]
        place = types.Range(start=position(text, start), end=position(text, end))
        self._send(uri, [types.TextDocumentContentChangePartial(range=place, text=new)], text[:start] + new + text[end:])

    def _send(self, uri: str, changes: list[Any], text: str) -> None:
        self.texts[uri] = text
        self.versions[uri] += 1
        document = types.VersionedTextDocumentIdentifier(uri=uri, version=self.versions[uri])
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(text_document=document, content_changes=changes))

    async def _told(self, uri: str) -> list[types.Diagnostic]:
        await asyncio.wait_for(self._news.wait(), ANSWER_S)
        # All files' messages come together; a request comes after them.
        await self.client.text_document_document_symbol_async(types.DocumentSymbolParams(text_document=document(uri)))
        return self.found.get(uri, [])

    def messages(self, path: Path) -> list[types.Diagnostic]:
        return self.found.get(path.as_uri(), [])

    def place(self, path: Path, text: str, after: int = 0) -> types.Position:
        """Where a text stands first, and so many characters on."""
        whole = self.texts[path.as_uri()]
        return position(whole, whole.index(text) + after)

    # -- requests

    async def hover(self, path: Path, at: types.Position) -> str:
        found = await self.client.text_document_hover_async(types.HoverParams(text_document=document(path), position=at))
        assert found is not None and isinstance(found.contents, types.MarkupContent)
        return found.contents.value

    async def definition(self, path: Path, at: types.Position) -> types.Location:
        found = await self.client.text_document_definition_async(types.DefinitionParams(text_document=document(path), position=at))
        assert isinstance(found, types.Location)
        return found

    async def references(self, path: Path, at: types.Position) -> list[types.Location]:
        context = types.ReferenceContext(include_declaration=True)
        params = types.ReferenceParams(text_document=document(path), position=at, context=context)
        return list(await self.client.text_document_references_async(params) or [])

    async def rename(self, path: Path, at: types.Position, name: str) -> str:
        """The text of the file after a rename."""
        found = await self.client.text_document_rename_async(types.RenameParams(text_document=document(path), position=at, new_name=name))
        assert found is not None and found.changes is not None
        return applied(self.texts[path.as_uri()], list(found.changes[path.as_uri()]))

    async def refused_rename(self, path: Path, at: types.Position, name: str) -> str:
        try:
            await self.rename(path, at, name)
        except JsonRpcException as refusal:
            return str(refusal)
        raise AssertionError(f"the rename to {name} is not refused")

    async def completion(self, path: Path, at: types.Position) -> set[str]:
        found = await self.client.text_document_completion_async(types.CompletionParams(text_document=document(path), position=at))
        items = found.items if isinstance(found, types.CompletionList) else found or []
        return {item.label for item in items}

    async def signature(self, path: Path, at: types.Position) -> tuple[str, int | None]:
        found = await self.client.text_document_signature_help_async(types.SignatureHelpParams(text_document=document(path), position=at))
        assert found is not None
        return found.signatures[found.active_signature or 0].label, found.active_parameter

    async def outline(self, path: Path) -> list[types.DocumentSymbol]:
        found = await self.client.text_document_document_symbol_async(types.DocumentSymbolParams(text_document=document(path)))
        return [symbol for symbol in found or [] if isinstance(symbol, types.DocumentSymbol)]

    async def colours(self, path: Path) -> set[tuple[str, str]]:
        """Words of the file with the types of their tokens."""
        found = await self.client.text_document_semantic_tokens_full_async(types.SemanticTokensParams(text_document=document(path)))
        assert found is not None
        lines = self.texts[path.as_uri()].split("\n")
        out, line, column = set(), 0, 0
        for down, right, length, kind, _ in zip(*[iter(found.data)] * 5, strict=True):
            line, column = line + down, right if down else column + right
            out.add((lines[line][column : column + length], self.legend[kind]))
        return out

    async def hints(self, path: Path) -> list[str]:
        text = self.texts[path.as_uri()]
        whole = types.Range(start=types.Position(0, 0), end=position(text, len(text)))
        found = await self.client.text_document_inlay_hint_async(types.InlayHintParams(text_document=document(path), range=whole))
        return [str(hint.label) for hint in found or []]

    async def fixes(self, path: Path, place: types.Range) -> list[types.CodeAction]:
        context = types.CodeActionContext(diagnostics=[])
        params = types.CodeActionParams(text_document=document(path), range=place, context=context)
        found = await self.client.text_document_code_action_async(params)
        return [fix for fix in found or [] if isinstance(fix, types.CodeAction)]

    async def formatted(self, path: Path) -> str:
        options = types.FormattingOptions(tab_size=4, insert_spaces=True)
        params = types.DocumentFormattingParams(text_document=document(path), options=options)
        found = await self.client.text_document_formatting_async(params)
        return applied(self.texts[path.as_uri()], list(found or []))


def document(path: Path | str) -> types.TextDocumentIdentifier:
    return types.TextDocumentIdentifier(uri=path if isinstance(path, str) else path.as_uri())


def position(text: str, offset: int) -> types.Position:
    line = text.count("\n", 0, offset)
    start = text.rfind("\n", 0, offset) + 1
    return types.Position(line=line, character=len(text[start:offset].encode("utf-16-le")) // 2)


def _offset(text: str, at: types.Position) -> int:
    lines = text.split("\n")
    before = sum(len(line) + 1 for line in lines[: at.line])
    rest = lines[at.line].encode("utf-16-le")[: at.character * 2] if at.line < len(lines) else b""
    return min(before + len(rest.decode("utf-16-le")), len(text))


def applied(text: str, edits: list[Any]) -> str:
    for edit in sorted(edits, key=lambda edit: (edit.range.start.line, edit.range.start.character), reverse=True):
        text = text[: _offset(text, edit.range.start)] + edit.new_text + text[_offset(text, edit.range.end) :]
    return text


def requests(editor: Editor, path: Path, at: types.Position) -> dict[str, Callable[[], Awaitable[Any]]]:
    """Each request, at a place."""
    client, here = editor.client, document(path)
    whole = types.Range(start=types.Position(0, 0), end=types.Position(100_000, 0))
    options = types.FormattingOptions(tab_size=4, insert_spaces=True)
    nothing = types.CodeActionContext(diagnostics=[])
    declared = types.ReferenceContext(include_declaration=True)
    return {
        "hover": lambda: client.text_document_hover_async(types.HoverParams(here, at)),
        "definition": lambda: client.text_document_definition_async(types.DefinitionParams(here, at)),
        "references": lambda: client.text_document_references_async(types.ReferenceParams(declared, here, at)),
        "highlights": lambda: client.text_document_document_highlight_async(types.DocumentHighlightParams(here, at)),
        "rename": lambda: client.text_document_rename_async(types.RenameParams(here, at, "another_name")),
        "completion": lambda: client.text_document_completion_async(types.CompletionParams(here, at)),
        "signature": lambda: client.text_document_signature_help_async(types.SignatureHelpParams(here, at)),
        "outline": lambda: client.text_document_document_symbol_async(types.DocumentSymbolParams(here)),
        "colours": lambda: client.text_document_semantic_tokens_full_async(types.SemanticTokensParams(here)),
        "values": lambda: client.text_document_inlay_hint_async(types.InlayHintParams(here, whole)),
        "fixes": lambda: client.text_document_code_action_async(types.CodeActionParams(here, whole, nothing)),
        "format": lambda: client.text_document_formatting_async(types.DocumentFormattingParams(here, options)),
    }


async def _answered(ask: Callable[[], Awaitable[Any]]) -> None:
    """Waits for an answer; a refusal is one, a fault of the server is none."""
    try:
        await asyncio.wait_for(ask(), ANSWER_S)
    except JsonRpcException as refusal:
        if "fault" in str(refusal):
            raise


async def times(editor: Editor, path: Path) -> dict[str, tuple[float, float]]:
    """Milliseconds of each request right after an edit, and again."""
    text = path.read_text(encoding="utf-8", errors="replace")
    await editor.open(path, text)
    taken: dict[str, list[tuple[float, float]]] = {"messages": []}
    middle = text.index("apply", len(text) // 2) if "apply" in text[len(text) // 2 :] else len(text) // 2
    for turn in range(5):
        started = time.perf_counter()
        await editor.change(path, text + f"// {turn}\n")
        taken["messages"].append(((time.perf_counter() - started) * 1e3, 0.0))
        for name, ask in requests(editor, path, position(text, middle)).items():
            editor.replace(path, 0, 0, " ")
            both = []
            for _ in range(2):
                started = time.perf_counter()
                await _answered(ask)
                both.append((time.perf_counter() - started) * 1e3)
            taken.setdefault(name, []).append((both[0], both[1]))
    return {name: (statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)) for name, pairs in taken.items()}


_PIECES = [
    "",
    "",
    " ",
    "{",
    "}",
    "(",
    ")",
    ";",
    ".",
    "<",
    ">",
    "\n",
    "x",
    "hdr.",
    "#if 1\n",
    "#endif\n",
    "/*",
    "*/",
    '"',
    "apply",
    "\u00e9\U0001f600",
    "@name(",
    "#define A A\n",
]


async def edits(editor: Editor, path: Path, count: int, seed: int) -> int:
    """Random edits; gives how many requests were answered."""
    draw = random.Random(seed)
    text = path.read_text(encoding="utf-8", errors="replace")
    first = await editor.open(path, text)
    asked = 0
    for turn in range(count):
        now = editor.texts[path.as_uri()]
        if turn % 40 == 39:
            # A text of rubbish only would try little.
            editor.replace(path, 0, len(now), text)
            continue
        start = draw.randrange(len(now) + 1)
        end = min(len(now), start + draw.choice([0, 0, 0, 1, 1, 3, 10, 200]))
        other = draw.randrange(len(text))
        editor.replace(path, start, end, draw.choice([*_PIECES, text[other : other + draw.randrange(60)]]))
        if turn % 10 == 0:
            now = editor.texts[path.as_uri()]
            asks = requests(editor, path, position(now, draw.choice([start, draw.randrange(len(now) + 1)])))
            name = draw.choice(sorted(asks))
            await _answered(asks[name])
            asked += 1
    last = await editor.change(path, text)
    if last != first:
        raise AssertionError(f"{path}: other messages than at first")
    faults = [line for line in editor.shown if "fault" in line]
    if faults:
        raise AssertionError(f"{path}: {faults[0]}")
    return asked


async def _main(arguments: argparse.Namespace, server: str) -> None:
    for number, path in enumerate(arguments.programs):
        path = path.resolve()
        editor = Editor(path.parent)
        await editor.start(server, {"include": [str(folder.resolve()) for folder in arguments.include]})
        lines = path.read_text(encoding="utf-8", errors="replace").count("\n")
        if arguments.what == "times":
            taken = await times(editor, path)
            for name, (fresh, again) in taken.items():
                print(f"| {path.name} | {lines} | {name} | {fresh:.0f} | {again:.1f} |", flush=True)
        else:
            asked = await edits(editor, path, arguments.count, arguments.seed + number)
            print(f"{path.name}: {arguments.count} edits, {asked} requests, no fault", flush=True)
        status = await editor.stop()
        if status:
            raise AssertionError(f"{path}: the server ended with {status}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["times", "edits"])
    parser.add_argument("programs", nargs="+", type=Path, metavar="PROGRAM.p4")
    parser.add_argument("-I", dest="include", action="append", default=[], type=Path, metavar="DIR")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    server = probes.program("fairlane-lsp")
    if server is None:
        sys.exit("fairlane-lsp is not built: run 'make build'")
    asyncio.run(_main(arguments, str(server)))


if __name__ == "__main__":
    main()
