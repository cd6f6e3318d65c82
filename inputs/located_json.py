"""JSON with the line of every key and element, so that an error can say file, line and key.

`json` checks the text and gives the values; the scan below runs over accepted text and only records lines.
"""

from __future__ import annotations

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined] # not in the stubs
from pathlib import Path

from fairlane.inputs.located_toml import ConfigError, Document, KeyPath, show

_BLANK = re.compile(r"[ \t\n\r]*")
_MOST_BITS = 4096
"""Of a whole number: table entries may be as wide as P4's fields."""
_SCALAR = re.compile(r"[^\s,\]}]+")


def read(path: Path) -> Document:
    """Read a JSON file; ConfigError when it cannot be read or parsed, or has a key twice."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8: byte {error.start}") from error
    try:
        values = json.loads(text, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}:{error.lineno}: not JSON: {error.msg} (column {error.colno})") from error
    except RecursionError as error:
        raise ConfigError(f"{path}: not JSON that can be read: brackets within brackets, too deep") from error
    except ValueError as error:  # a number with thousands of digits, NaN
        raise ConfigError(f"{path}: not JSON that can be read: {error}") from error
    if not isinstance(values, dict):
        raise ConfigError(f'{path}:1: expected an object, as in {{"hosts": ...}}')
    scan = _Scan(str(path), text)
    scan.value(scan.blank(0), ())
    return Document(str(path), values, scan.places).checked(_MOST_BITS)


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not a number")


class _Scan:
    def __init__(self, name: str, text: str) -> None:
        self._name = name
        self._text = text
        self._line_at = (0, 1)
        self.places: dict[KeyPath, tuple[str, int]] = {}

    def blank(self, at: int) -> int:
        found = _BLANK.match(self._text, at)
        assert found is not None
        return found.end()

    def value(self, at: int, path: KeyPath) -> int:
        """Note where the value at `at` and all within it stand; the place after it."""
        if path and path not in self.places:
            self._note(at, path)
        opening = self._text[at]
        if opening == '"':
            after: int = scanstring(self._text, at + 1)[1]
            return after
        if opening not in "{[":
            found = _SCALAR.match(self._text, at)
            assert found is not None
            return found.end()
        at = self.blank(at + 1)
        index = 0
        while self._text[at] not in "}]":
            here: KeyPath = (*path, index)
            if opening == "{":
                begin = at
                key, at = scanstring(self._text, at + 1)
                here = (*path, key)
                if here in self.places:
                    raise ConfigError(f"{self._name}:{self._line(begin)}: {show(here)}: the key is here twice")
                self._note(begin, here)
                at = self.blank(self.blank(at) + 1)
            at = self.blank(self.value(at, here))
            if self._text[at] == ",":
                at = self.blank(at + 1)
            index += 1
        return at + 1

    def _note(self, at: int, path: KeyPath) -> None:
        self.places[path] = (self._name, self._line(at))

    def _line(self, at: int) -> int:
        """Called with growing places: counts on from the last one."""
        before, line = self._line_at
        line += self._text.count("\n", before, at)
        self._line_at = (at, line)
        return line
